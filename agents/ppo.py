"""The learner: PPO (arXiv 1707.06347) in self-play, one network for all seats.

The loss is in loss.py, the settings in settings.py, rollouts and advantages in selfplay.py, who
else plays in opponents.py, who teaches in teachers.py, the network in network.py, its steps in
optimiser.py, the training loop in training.py.

Several games may be learned at once, each a *table* of its own; several processes may share them
(parallel.py).
"""

from __future__ import annotations

import copy
import time
from collections.abc import Iterator
from functools import reduce
from itertools import product

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from agents.base import load
from agents.loss import WATCHED, Minibatch, Weights, loss_of
from agents.network import Network
from agents.opponents import Blocks, Pool
from agents.optimiser import optimiser_of
from agents.parallel import Ranks
from agents.policy import PolicyAgent, device_of, load_policy
from agents.selfplay import Others, Storage, Workers, advantages, collect, parameters_of
from agents.settings import Config, check, in_bf16, shape_of
from agents.shape import Inputs
from agents.teachers import OpenHands, Teacher
from domino_env import DominoVec, Rules


class Table:
    """The games of one set of rules that this process plays, and their rollout."""

    def __init__(
        self, config: Config, rules: Rules, games: int, seed: int, pool: Pool, ranks: Ranks
    ) -> None:
        self.rules, self.total, self.mine = rules, games, ranks.share(games)
        count = self.mine.stop - self.mine.start
        parts = shape_of(config).parts
        self.vec = DominoVec(
            count,
            rules,
            seed=seed + self.mine.start,
            threads=config.workers if count >= MANY_GAMES else 1,
            observe_as=config.observe_as,
            history="history" in parts,
            state="state" in parts,
            belief="belief" in parts,
        )
        solves = config.solver_weight > 0
        self.storage = Storage(self.vec, config.steps, parts, solves)
        self.vec.reset(out=self.storage.batches[0])
        self.blocks = Blocks(rules, games, self.mine, (config.pool, config.bots), pool)
        self.solver = OpenHands(rules, config, games, self.mine) if solves else None


def _alike(one: Tensor | None, other: Tensor | None) -> bool:
    return one is not None and other is not None and one.shape == other.shape


MANY_GAMES = 16384  # from here on threads make the step of the environment faster
PIECE = 1024  # decisions whose gradient is computed at once


class Learner:
    """Everything that training changes: network, optimiser, games in flight, random numbers."""

    def __init__(self, config: Config) -> None:
        check(config)
        self.config = config
        self.ranks = Ranks(config.device)
        torch.set_num_threads(1)
        torch.manual_seed(config.seed)
        self.network = Network(shape_of(config)).to(device_of(config.device))
        if config.initial:
            self.begin_with(config.initial)
        self.played = copy.deepcopy(self.network)  # the average of the weights over time
        periodic = config.magnet == "periodic"
        self.magnet = copy.deepcopy(self.network).requires_grad_(False) if periodic else None
        self.parameters = parameters_of(self.network)
        self.optimiser = optimiser_of(config.optimiser, self.network, config.learning_rate)
        self.random = np.random.default_rng(config.seed)
        self.workers = Workers(config.workers)
        bots = config.bot_names if config.bots else ()
        self.pool = Pool(bots, config.pool_size if config.pool else 0, config.seed, config.device)
        self.teacher = Teacher(config.teacher, config.device) if config.teacher else None
        self.tables = self._tables()
        evaluated = config.baselines if config.evaluate_every else ()
        self.baselines = [load(name, seed=1, device=config.device) for name in evaluated]
        asked = [*self.baselines, *([self.teacher.agent] if self.teacher else [])]
        for agent, table in product(asked, self.tables):
            agent.check(table.rules)
        self.draw_opponents()
        self.updates = 0
        self.decisions = 0
        self.seconds = 0.0

    def _tables(self) -> list[Table]:
        config, games = self.config, self.config.games_rules
        cuts = [config.games * k // len(games) for k in range(len(games) + 1)]
        return [
            Table(
                config, rules, cuts[k + 1] - cuts[k], config.seed + cuts[k], self.pool, self.ranks
            )
            for k, rules in enumerate(games)
        ]

    def begin_with(self, folder: str) -> None:
        """Take over the weights of a policy; `ValueError` if its network is another one.

        A guess of hands is no part of play: it is taken over where both have one.
        """
        given, expected = load_policy(folder).network.state_dict(), self.network.state_dict()
        differ = {k for k in given | expected if not _alike(given.get(k), expected.get(k))}
        if any(not name.startswith("held.") for name in differ):
            raise ValueError(
                f"initial: found another network in {folder}, expected that of this run"
            )
        self.network.load_state_dict({k: v for k, v in given.items() if k not in differ}, False)

    @property
    def progress(self) -> float:
        """The share of the run that is over, in decisions or in minutes, whichever is more."""
        seconds = 60 * self.config.minutes
        late = self.seconds / seconds if seconds else 0.0
        return min(1.0, max(late, self.decisions / self.config.decisions))

    @property
    def finished(self) -> bool:
        """Whether the run has reached its length."""
        return self.progress >= 1

    @property
    def left(self) -> float:
        """The share of the schedule that is left."""
        if self.config.schedule == "minutes":
            return 1 - self.progress
        return max(0.0, 1 - self.decisions / self.config.decisions)

    def update(self) -> dict[str, float]:
        """One rollout and what is learned from it; returns the figures to log."""
        config, began = self.config, time.perf_counter()
        left = self.left
        rate = config.learning_rate * (left if config.anneal else 1)
        for group in self.optimiser.param_groups:
            group["lr"] = rate
        weights = self.weights(left)
        self.rollout(taught=weights.teacher > 0)
        watched = self.epochs(weights)
        self.average_weights()
        explained = self.explained_variance()
        for table in self.tables:
            table.storage.carry_over()
        self.updates += 1
        self.decisions += config.games * config.steps
        self.renew()
        took = self.ranks.agree(time.perf_counter() - began)
        self.seconds += took
        return {
            **{f"losses/{name}": figure for name, figure in watched.items()},
            "losses/explained_variance": explained,
            "charts/SPS": config.games * config.steps / took,
            "charts/learning_rate": rate,
            **{f"opponents/{name}": share for name, share in self.opponent_results()},
        }

    def weights(self, left: float) -> Weights:
        """The weights of the loss where that share of the schedule is left."""
        config = self.config
        entropy = config.entropy_end + (config.entropy - config.entropy_end) * left
        taught = bool(config.teacher) and config.teacher_share > 0
        over = (1 - left) / config.teacher_share if taught else 1.0
        return Weights(entropy, config.teacher_weight * max(0.0, 1 - over))

    def rollout(self, taught: bool = False) -> None:
        """Play K steps at every table, with the teacher's advice if `taught`; advantages."""
        config, acting = self.config, self.acting()
        results = torch.zeros(len(self.pool.won), 2, dtype=torch.float64)
        for table in self.tables:
            # All processes draw the same numbers, and use those of their own games.
            uniform = self.random.random((config.steps, table.total))[:, table.mine]
            table.blocks.begin(self.updates)
            others: list[Others] = [table.blocks] if table.blocks.any else []
            if taught and self.teacher is not None:
                self.teacher.begin((config.seed, self.updates, table.mine.start))
                others.append(self.teacher)
            if table.solver is not None:
                table.solver.begin((config.seed, self.updates))
                others.append(table.solver)
            collect(table.vec, table.storage, acting, uniform, self.workers, others)
            if config.reward_scale != 1:
                table.storage.reward /= config.reward_scale
            advantages(table.storage, table.rules.teams, config.gamma, config.trace)
            results += torch.from_numpy(table.blocks.count(table.storage))
        self.pool.note(self.ranks.sum(results).numpy())

    def acting(self) -> Network:
        """A copy of the network for the rollout, in bfloat16 once instead of at every step."""
        if not in_bf16(self.config):
            return self.network
        return copy.deepcopy(self.network).to(torch.bfloat16)

    def epochs(self, weights: Weights) -> dict[str, float]:
        """The steps of the optimiser on a rollout; the means of WATCHED over its minibatches."""
        watched = []
        for mb in self.minibatches():
            watched.append(self.learn(mb, weights))
            if (
                self.config.target_kl
                and watched[-1][WATCHED.index("approx_kl")] > self.config.target_kl
            ):
                break
        return dict(zip(WATCHED, torch.stack(watched).mean(0).tolist(), strict=True))

    def minibatches(self) -> Iterator[Minibatch]:
        """This process's decisions of the rollout in random order, `epochs` times, cut.

        All processes draw the same order of the decisions of all, and take their own of each cut.
        """
        flat = self.flat
        advantage, value, learns = flat("advantage"), flat("value"), flat("learns")
        mean, deviation = self.moments(advantage[learns])
        returns = advantage + value
        if self.config.normalise:
            advantage = (advantage - mean) / (deviation + 1e-8)
        inputs = Inputs(**{name: flat(name) for name in self.tables[0].storage.parts})
        rest = [flat("mask"), flat("action"), flat("log_prob"), advantage, returns]
        rest += [flat("advice"), flat("solved")]
        local = self.local_rows(learns)
        for _ in range(self.config.epochs):
            order = self.random.permutation(self.config.games * self.config.steps)
            for cut in range(0, len(order), self.config.minibatch):
                found = local[order[cut : cut + self.config.minibatch]]
                rows = torch.from_numpy(found[found >= 0]).to(advantage.device)
                yield Minibatch(inputs.rows(rows), *(tensor[rows] for tensor in rest))

    def flat(self, name: str) -> Tensor:
        """A tensor of the rollouts of all tables, one behind the other, on the device."""
        flats = [table.storage.flat(name) for table in self.tables]
        if name == "history":  # of all tables as long as that of the longest
            rows = max(part.shape[1] for part in flats)
            flats = [F.pad(part, (0, 0, 0, rows - part.shape[1])) for part in flats]
        return (flats[0] if len(flats) == 1 else torch.cat(flats)).to(self.config.device)

    def local_rows(self, learns: Tensor) -> np.ndarray:
        """Of each decision of all processes its row in `flat`; -1 where it is not learned from."""
        own, found, first = learns.cpu().numpy(), [], 0
        for table in self.tables:
            rows = np.full((self.config.steps, table.total), -1)
            count = self.config.steps * (table.mine.stop - table.mine.start)
            numbers = np.where(own[first : first + count], np.arange(first, first + count), -1)
            rows[:, table.mine] = numbers.reshape(self.config.steps, -1)
            found.append(rows.ravel())
            first += count
        return np.concatenate(found)

    def moments(self, values: Tensor) -> tuple[float, float]:
        """Mean and standard deviation of the values of all processes."""
        values = values.double()
        sums = torch.stack([torch.ones_like(values).sum(), values.sum(), values.square().sum()])
        count, total, square = self.ranks.sum(sums).tolist()
        mean = total / max(count, 1)
        return mean, max(square / max(count, 1) - mean**2, 0.0) ** 0.5

    def learn(self, mb: Minibatch, weights: Weights) -> Tensor:
        """One step of the optimiser; its gradient is summed over pieces of the minibatch.

        Pieces that fit into the cache are a quarter faster than the whole, and since their order
        is fixed the rounding does not depend on the number of threads.
        """

        def share(part: slice) -> tuple[Tensor, Tensor]:
            loss = loss_of(self.network, mb.rows(part), self.config, weights, self.magnet)
            grads = torch.autograd.grad(loss.total, self.parameters)
            return torch.cat([grad.flatten() for grad in grads]), loss.watched

        piece = PIECE if self.config.device == "cpu" else max(len(mb), 1)
        shares = self.workers.map(share, len(mb), piece) or [self._nothing()]
        size = torch.full((1,), len(mb), device=shares[0][0].device)
        sums = [reduce(torch.add, parts) for parts in zip(*shares, strict=True)]
        total = self.ranks.sum(torch.cat([*sums, size]))
        gradient, watched = (
            total[:-1].div(total[-1].clamp(min=1)).split([len(sums[0]), len(WATCHED)])
        )
        offset = 0
        for parameter in self.parameters:
            parameter.grad = gradient[offset : offset + parameter.numel()].view_as(parameter)
            offset += parameter.numel()
        torch.nn.utils.clip_grad_norm_(self.parameters, self.config.gradient_norm)
        self.optimiser.step()
        return watched

    def _nothing(self) -> tuple[Tensor, Tensor]:
        """The gradient and the figures of no decision at all."""
        device = self.config.device
        size = sum(parameter.numel() for parameter in self.parameters)
        return torch.zeros(size, device=device), torch.zeros(len(WATCHED), device=device)

    @torch.no_grad()
    def average_weights(self) -> None:
        """Move the played network towards the trained one, faster at the beginning."""
        keep = min(self.config.average, self.updates / (self.updates + 10))
        for old, new in zip(parameters_of(self.played), self.parameters, strict=True):
            old.lerp_(new, 1 - keep)

    def renew(self) -> None:
        """Take a snapshot, draw the opponents and copy the magnet anew, each when its time is."""
        if self.updates % self.config.snapshot_every == 0:
            self.pool.add(self.network)
            self.draw_opponents()
        if self.magnet is not None and self.updates % self.config.magnet_every == 0:
            self.magnet.load_state_dict(self.network.state_dict())

    def draw_opponents(self) -> None:
        """Draw the opponents of all tables that have any."""
        for table in self.tables:
            if self.config.pool or self.config.bots:
                table.blocks.draw(self.random)

    def opponent_results(self) -> Iterator[tuple[str, float]]:
        """What the learner wins of each bot lately, and of the snapshots on average."""
        won, bots = self.pool.won, self.pool.bots
        for bot, share in zip(bots, won, strict=False):
            yield bot.name, float(share)
        if len(won) > len(bots):
            yield "pool", float(won[len(bots) :].mean())

    def explained_variance(self) -> float:
        """1 - Var(returns - values) / Var(returns) over the last rollout."""
        advantage, learns = self.flat("advantage"), self.flat("learns")
        returns = advantage + self.flat("value")
        unexplained = self.moments(advantage[learns])[1] ** 2
        return 1 - unexplained / (self.moments(returns[learns])[1] ** 2 + 1e-8)

    def agent(self) -> PolicyAgent:
        """The averaged network as an agent."""
        return PolicyAgent(copy.deepcopy(self.played), "self", seed=0, device=self.config.device)
