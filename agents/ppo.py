"""The learner: PPO (arXiv 1707.06347) in self-play, one network for all seats.

Read from top to bottom: configuration, loss, update, training loop, command line. Rollouts and
advantages are in selfplay.py, the folder of a run in run.py, the network in policy.py.
"""

from __future__ import annotations

import copy
import signal
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import reduce
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import torch
import torch.nn.functional as F
from msgspec import Meta
from torch import Tensor

from agents.base import load
from agents.config import config_path, described, read_config, split_options
from agents.evaluate import evaluate
from agents.policy import Network, NotNegative, PolicyAgent, Shape, Width, device_of
from agents.run import CONFIG_FILE, Bar, Run, RunError, new_folder
from agents.selfplay import Storage, Workers, advantages, collect, parameters_of
from domino_env import DominoVec, Rules

AtLeast1 = Annotated[int, Meta(ge=1, le=2**40)]
AtLeast0 = Annotated[int, Meta(ge=0, le=2**40)]
Positive = Annotated[float, Meta(gt=0, le=1e9)]
Share = Annotated[float, Meta(ge=0, le=1)]


@dataclass(frozen=True)
class Config:
    """A training run. Every field may stand in the YAML file or on the command line."""

    rules: dict[str, Any] = field(default_factory=lambda: {"preset": "cabra"})
    """the game: a preset and fields that override it"""
    decisions: AtLeast1 = 40_000_000
    """length of the run; the learning rate falls to zero over it"""
    minutes: NotNegative = 0.0
    """stop after so many minutes of training even before; 0: no limit"""
    seed: AtLeast0 = 0
    """of the deals, the moves and the network"""
    games: Annotated[int, Meta(ge=1, le=2**24)] = 2048
    """games played at once (B)"""
    steps: Annotated[int, Meta(ge=1, le=2**16)] = 32
    """decisions of each game in a rollout (K)"""
    epochs: AtLeast1 = 2
    """passes over a rollout"""
    minibatch: AtLeast1 = 8192
    """decisions in one step of the optimiser"""
    learning_rate: Positive = 1e-3
    """of Adam at the beginning"""
    gamma: Share = 1.0
    """discount from one decision of a seat to its next"""
    trace: Share = 0.95
    """lambda of the advantage estimation"""
    clip: Positive = 0.2
    """how far the ratio of probabilities may leave 1"""
    value_weight: NotNegative = 0.5
    """weight of the value loss"""
    entropy: NotNegative = 0.05
    """weight of the entropy over the legal moves at the beginning"""
    entropy_end: NotNegative = 0.01
    """the same at the end"""
    gradient_norm: Positive = 0.5
    """largest norm of a gradient"""
    average: Share = 0.99
    """share of the old weights in the averaged network, which is the one that is played"""
    reward_scale: Positive = 1.0
    """what a reward is divided by, for `reward: points`"""
    hidden: Annotated[tuple[Width, ...], Meta(max_length=64)] = (256, 256)
    """widths of the hidden layers"""
    temperature: NotNegative = 0.0
    """of the moves of the trained agent; 0 plays the likeliest"""
    bf16: bool = True
    """multiply matrices in bfloat16"""
    workers: Annotated[int, Meta(ge=1, le=1024)] = 2
    """threads that share rollouts and gradients"""
    device: Annotated[str, Meta(pattern="^(cpu|cuda)$")] = "cpu"
    """where the network is: cpu or cuda"""
    evaluate_every: AtLeast0 = 25
    """updates between two evaluations against `heaviest`; 0: none"""
    evaluate_deals: Annotated[int, Meta(ge=1, le=2**32)] = 2048
    """duplicate deals of such an evaluation"""
    save_every: AtLeast1 = 25
    """updates between two checkpoints"""


# ---------------------------------------------------------------- loss and update


def masked_log_softmax(logits: Tensor, mask: Tensor) -> Tensor:
    """Log-probabilities [B, A] over the legal actions; about -1e9 for the others."""
    return F.log_softmax(logits.float().masked_fill(mask == 0, -1e9), dim=-1)


@dataclass
class Minibatch:
    """Decisions of a rollout, [M, ...], with the advantage already normalised."""

    observation: Tensor
    mask: Tensor
    action: Tensor
    log_prob: Tensor
    advantage: Tensor
    returns: Tensor


def loss_of(network: Network, mb: Minibatch, config: Config, entropy_weight: float) -> Loss:
    """The PPO loss, summed over a minibatch (its caller divides), and figures to watch."""
    with torch.autocast(config.device, torch.bfloat16, enabled=config.bf16):
        logits, value = network(mb.observation)
    log_probs = masked_log_softmax(logits, mb.mask)
    log_ratio = log_probs.gather(1, mb.action[:, None]).squeeze(1) - mb.log_prob
    ratio = log_ratio.exp()
    clipped = ratio.clamp(1 - config.clip, 1 + config.clip)
    policy_loss = -torch.min(ratio * mb.advantage, clipped * mb.advantage).sum()
    value_loss = 0.5 * (value.float() - mb.returns).pow(2).sum()
    entropy = -(log_probs.exp() * log_probs).sum()
    total = policy_loss + config.value_weight * value_loss - entropy_weight * entropy
    with torch.no_grad():
        approx_kl = (ratio - 1 - log_ratio).sum()
        clip_fraction = (ratio != clipped).float().sum()
    watched = (policy_loss, value_loss, entropy, approx_kl, clip_fraction)
    return Loss(total, torch.stack([figure.detach() for figure in watched]))


@dataclass
class Loss:
    """A loss to differentiate, and the sums of WATCHED."""

    total: Tensor
    watched: Tensor


MANY_GAMES = 16384  # from here on threads make the step of the environment faster
PIECE = 2048  # decisions whose gradient is computed at once
WATCHED = ("policy_loss", "value_loss", "entropy", "approx_kl", "clip_fraction")


class Learner:
    """Everything that training changes: network, optimiser, games in flight, random numbers."""

    def __init__(self, config: Config) -> None:
        self.config = config
        self.rules = Rules.from_dict(config.rules)
        torch.set_num_threads(1)
        torch.manual_seed(config.seed)
        shape = Shape(self.rules.to_dict(), list(config.hidden), temperature=config.temperature)
        self.network = Network(shape).to(device_of(config.device))
        self.played = copy.deepcopy(self.network)  # the average of the weights over time
        self.parameters = parameters_of(self.network)
        self.optimiser = torch.optim.Adam(self.parameters, config.learning_rate, fused=True)
        self.random = np.random.default_rng(config.seed)
        self.workers = Workers(config.workers)
        threads = config.workers if config.games >= MANY_GAMES else 1
        self.vec = DominoVec(config.games, self.rules, seed=config.seed, threads=threads)
        self.storage = Storage(self.vec, config.steps)
        self.vec.reset(out=self.storage.batches[0])
        self.updates = 0
        self.decisions = 0
        self.seconds = 0.0

    @property
    def finished(self) -> bool:
        """Whether the run has reached its length, in decisions or in minutes."""
        late = 0 < self.config.minutes * 60 <= self.seconds
        return late or self.decisions >= self.config.decisions

    def update(self) -> dict[str, float]:
        """One rollout and what is learned from it; returns the figures to log."""
        began = time.perf_counter()
        left = max(0.0, 1 - self.decisions / self.config.decisions)
        for group in self.optimiser.param_groups:
            group["lr"] = self.config.learning_rate * left
        collect(self.vec, self.storage, self.acting(), self.random, self.workers)
        if self.config.reward_scale != 1:
            self.storage.reward /= self.config.reward_scale
        advantages(self.storage, self.rules.teams, self.config.gamma, self.config.trace)
        entropy_weight = self.config.entropy_end
        entropy_weight += (self.config.entropy - self.config.entropy_end) * left
        watched = torch.stack([self.learn(mb, entropy_weight) for mb in self.minibatches()])
        self.average_weights()
        self.storage.carry_over()
        self.updates += 1
        self.decisions += self.config.games * self.config.steps
        took = time.perf_counter() - began
        self.seconds += took
        figures = dict(zip(WATCHED, watched.mean(0).tolist(), strict=True))
        return {
            **{f"losses/{name}": figure for name, figure in figures.items()},
            "losses/explained_variance": self.explained_variance(),
            "charts/SPS": self.config.games * self.config.steps / took,
            "charts/learning_rate": self.config.learning_rate * left,
        }

    def acting(self) -> Network:
        """A copy of the network for the rollout, in bfloat16 once instead of at every step."""
        if not self.config.bf16:
            return self.network
        return copy.deepcopy(self.network).to(torch.bfloat16)

    def minibatches(self) -> Iterator[Minibatch]:
        """The rollout in random order, `epochs` times, cut into minibatches."""
        storage = self.storage
        advantage = storage.flat("advantage")
        returns = advantage + storage.flat("value")
        advantage = (advantage - advantage.mean()) / (advantage.std(correction=0) + 1e-8)
        tensors = [storage.flat(name) for name in ("observation", "mask", "action", "log_prob")]
        for _ in range(self.config.epochs):
            order = torch.from_numpy(self.random.permutation(len(advantage)))
            for rows in order.split(self.config.minibatch):
                taken = [tensor[rows] for tensor in (*tensors, advantage, returns)]
                yield Minibatch(*(tensor.to(self.config.device) for tensor in taken))

    def learn(self, mb: Minibatch, entropy_weight: float) -> Tensor:
        """One step of the optimiser; its gradient is summed over pieces of the minibatch.

        Pieces that fit into the cache are a quarter faster than the whole, and since their order
        is fixed the rounding does not depend on the number of threads.
        """
        size = len(mb.action)

        def share(part: slice) -> tuple[tuple[Tensor, ...], Tensor]:
            piece = Minibatch(*(getattr(mb, name)[part] for name in mb.__dataclass_fields__))
            loss = loss_of(self.network, piece, self.config, entropy_weight)
            return torch.autograd.grad(loss.total / size, self.parameters), loss.watched

        shares = self.workers.map(share, size, PIECE)
        for k, parameter in enumerate(self.parameters):
            parameter.grad = reduce(torch.add, [grads[k] for grads, _ in shares])
        torch.nn.utils.clip_grad_norm_(self.parameters, self.config.gradient_norm)
        self.optimiser.step()
        return torch.stack([watched for _, watched in shares]).sum(0) / size

    @torch.no_grad()
    def average_weights(self) -> None:
        """Move the played network towards the trained one, faster at the beginning."""
        keep = min(self.config.average, self.updates / (self.updates + 10))
        for old, new in zip(parameters_of(self.played), self.parameters, strict=True):
            old.lerp_(new, 1 - keep)

    def explained_variance(self) -> float:
        """1 - Var(returns - values) / Var(returns) over the last rollout."""
        returns = self.storage.flat("advantage") + self.storage.flat("value")
        unexplained = self.storage.advantage.var(correction=0)
        return float(1 - unexplained / (returns.var(correction=0) + 1e-8))

    def agent(self) -> PolicyAgent:
        """The averaged network as an agent."""
        return PolicyAgent(copy.deepcopy(self.played), "self", seed=0, device=self.config.device)


# ---------------------------------------------------------------- the training loop


def train(run: Run, learner: Learner) -> None:
    """Train until the run is finished or interrupted; either way the run is saved."""
    config = learner.config
    stop = StopOnInterrupt()
    with Bar(config.decisions, learner.decisions) as bar, stop:
        while not (learner.finished or stop.asked):
            figures = learner.update()
            if config.evaluate_every and learner.updates % config.evaluate_every == 0:
                figures |= versus_heaviest(learner)
            run.log(learner.updates, learner.decisions, figures)
            bar.show(learner.decisions, figures)
            if learner.updates % config.save_every == 0:
                run.save(learner)
        run.save(learner)
    if stop.asked:
        print(f"Interrupted and saved; go on with: domino train --resume {run.folder}")
    else:
        print(f"Trained and saved: {run.folder}")


def versus_heaviest(learner: Learner) -> dict[str, float]:
    """The running result against `heaviest`, on the same deals each time."""
    deals = learner.config.evaluate_deals
    result = evaluate(learner.agent(), load("heaviest", seed=1), learner.rules, deals, seed=10**9)
    return {"eval/heaviest": result.mean, "eval/heaviest_ci95": result.ci95}


class StopOnInterrupt:
    """While it is entered, Ctrl-C asks to stop after the update under way; a second one stops."""

    def __enter__(self) -> StopOnInterrupt:
        self.asked = False
        self.before = signal.signal(signal.SIGINT, self.ask)
        return self

    def ask(self, *_: object) -> None:
        """Note the first interrupt; the next one has its usual effect."""
        self.asked = True
        signal.signal(signal.SIGINT, self.before)

    def __exit__(self, *_: object) -> None:
        signal.signal(signal.SIGINT, self.before)


USAGE = """usage: domino train CONFIG [--run FOLDER] [--FIELD VALUE ...]
       domino train --resume FOLDER [--FIELD VALUE ...]

CONFIG is a YAML file, or the name of a shipped one. --rules.seats 4 changes a field of the rules.
Ctrl-C saves the run; --resume goes on exactly where it was saved.

fields and what they are without a word in the file:
"""


def main(arguments: list[str] | None = None) -> None:
    """The command `domino train`, also as `python train.py`; `ValueError` on bad input."""
    words = split_options(sys.argv[1:] if arguments is None else arguments)
    if {"-h", "--help"} & set(words):
        print(USAGE + described(Config))
        return
    folder = _taken(words, "--run")
    resumed = _taken(words, "--resume")
    if resumed is not None and folder is not None:
        raise RunError("train: found both --run and --resume, expected one of them")
    if resumed is not None and words and not words[0].startswith("-"):
        raise RunError(f"train: found {words[0]!r} and --resume, expected one of them")
    if resumed is not None:
        path = Path(resumed) / CONFIG_FILE
    elif not words:
        raise RunError("train: found no config, expected a config or --resume FOLDER")
    elif words[0].startswith("-"):
        raise RunError(f"train: found {words[0]!r} first, expected a config or --resume FOLDER")
    else:
        path = config_path(words.pop(0))
    config = read_config(path, Config, words)
    learner = _new_learner(config)
    run = Run(Path(resumed or folder or new_folder(path.stem)), config, resume=bool(resumed))
    if resumed is not None:
        run.restore(learner)
    train(run, learner)


def _new_learner(config: Config) -> Learner:
    try:
        return Learner(config)
    except (MemoryError, RuntimeError) as error:
        raise RunError(
            f"train: found no room for {config.games} games of {config.steps} steps and layers of "
            f"{config.hidden}, expected fewer ({error})"
        ) from None


def _taken(words: list[str], option: str) -> str | None:
    """Take `option VALUE` out of the words; its value, None where it is not among them."""
    if option not in words:
        return None
    at = words.index(option)
    if at + 1 == len(words):
        raise RunError(f"train: found {option} without a folder, expected {option} FOLDER")
    words.pop(at)
    return words.pop(at)
