"""The settings of a training run."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

import torch
from msgspec import Meta

from agents.shape import NotNegative, Shape, Width
from domino_env.rules import Rules

AtLeast1 = Annotated[int, Meta(ge=1, le=2**40)]
AtLeast0 = Annotated[int, Meta(ge=0, le=2**40)]
Positive = Annotated[float, Meta(gt=0, le=1e9)]
Share = Annotated[float, Meta(ge=0, le=1)]


@dataclass(frozen=True)
class Config:
    """A training run. Every field may stand in the YAML file or on the command line."""

    rules: dict[str, Any] | list[dict[str, Any]] = field(
        default_factory=lambda: {"preset": "cabra"}
    )
    """the game: a preset and fields that override it; or a list of games learned at once"""
    observe_as: Annotated[int, Meta(ge=2, le=4)] | None = None
    """places of the observation; 4 lets one network serve 2, 3 and 4 seats"""
    decisions: AtLeast1 = 40_000_000
    """length of the run"""
    minutes: NotNegative = 0.0
    """stop after so many minutes of training even before; 0: no limit"""
    schedule: Literal["decisions", "minutes"] = "decisions"
    """what learning rate and entropy fall over; with minutes that depends on the machine too"""
    seed: AtLeast0 = 0
    """of the deals, the moves and the network"""
    initial: str = ""
    """folder of a policy or run whose network to begin with"""
    games: Annotated[int, Meta(ge=1, le=2**24)] = 2048
    """games played at once (B), shared by the tables"""
    steps: Annotated[int, Meta(ge=1, le=2**16)] = 32
    """decisions of each game in a rollout (K)"""
    epochs: AtLeast1 = 2
    """passes over a rollout"""
    minibatch: AtLeast1 = 8192
    """decisions in one step of the optimiser"""
    optimiser: Literal["adam", "muon"] = "adam"
    """adam, or muon for the weights between layers (arXiv 2502.16982)"""
    learning_rate: Positive = 1e-3
    """of the optimiser at the beginning"""
    anneal: bool = True
    """let the learning rate fall to zero over the run"""
    gamma: Share = 1.0
    """discount from one decision of a seat to its next"""
    trace: Share = 0.95
    """lambda of the advantage estimation"""
    normalise: bool = True
    """bring the advantages of a rollout to mean 0 and deviation 1"""
    clip: Positive = 0.2
    """how far the ratio of probabilities may leave 1"""
    dual_clip: NotNegative = 0.0
    """how many times a negative advantage may count at most (arXiv 1912.09729); 0: off"""
    target_kl: NotNegative = 0.0
    """end the epochs of an update once a minibatch has moved so far; 0: off"""
    value_weight: NotNegative = 0.5
    """weight of the value loss"""
    entropy: NotNegative = 0.05
    """weight of the entropy over the legal moves at the beginning"""
    entropy_end: NotNegative = 0.01
    """the same at the end"""
    magnet: Literal["none", "uniform", "periodic"] = "none"
    """pull towards uniform play (arXiv 2206.05825), or towards a copy renewed now and then"""
    magnet_weight: NotNegative = 0.05
    """weight of the divergence from the magnet"""
    magnet_every: AtLeast1 = 100
    """updates between two copies of a periodic magnet"""
    teacher: str = ""
    """agent whose moves are imitated at first (kickstarting, arXiv 1803.03835)"""
    teacher_weight: NotNegative = 1.0
    """weight of the imitation at the beginning"""
    teacher_share: Share = 0.3
    """share of the run over which that falls to nothing"""
    solver_weight: NotNegative = 0.0
    """weight of what a solver that sees all hands makes of every legal move; 0: it is not asked"""
    solver_from: AtLeast0 = 0
    """tiles on the table from which on it is asked"""
    solver_share: Share = 1.0
    """share of those positions in which it is asked, drawn at random"""
    solver_depth: AtLeast1 = 8
    """plays after which it looks at the most promising one alone"""
    hands_weight: NotNegative = 0.0
    """weight of guessing how many tiles of each pip the others hold, an auxiliary task of graph"""
    gradient_norm: Positive = 0.5
    """largest norm of a gradient"""
    average: Share = 0.99
    """share of the old weights in the averaged network, which is the one that is played"""
    reward_scale: Positive = 1.0
    """what a reward is divided by, for `reward: points`"""
    pool: Share = 0.0
    """share of the games against snapshots of itself"""
    pool_size: Annotated[int, Meta(ge=0, le=1024)] = 8
    """snapshots that are kept"""
    bots: Share = 0.0
    """share of the games against the bots"""
    bot_names: Annotated[tuple[str, ...], Meta(max_length=64)] = ("expert", "heaviest")
    """agents to play against, as `domino evaluate` takes them"""
    snapshot_every: AtLeast1 = 50
    """updates between two snapshots, and between two draws of the opponents"""
    network: Literal["mlp", "attention", "graph"] = "mlp"
    """linear layers, attention over tiles and events, or messages between pips"""
    hidden: Annotated[tuple[Width, ...], Meta(max_length=64)] = (256, 256)
    """widths of the layers; see agents/shape.py for attention and graph"""
    history: bool = False
    """show the network the events of the round"""
    belief: bool = False
    """show the network the exact chance of each place of each tile"""
    privileged_critic: bool = False
    """show all hands to the value, not to the policy (arXiv 2203.16406)"""
    temperature: NotNegative = 0.0
    """of the moves of the trained agent; 0 plays the likeliest"""
    bf16: bool | None = None
    """multiply matrices in bfloat16; null: if the device has instructions for it"""
    workers: Annotated[int, Meta(ge=1, le=1024)] = 2
    """threads that share rollouts and gradients"""
    device: Annotated[str, Meta(pattern="^(cpu|cuda)$")] = "cpu"
    """where the network is: cpu or cuda"""
    evaluate_every: AtLeast0 = 25
    """updates between two evaluations; 0: none"""
    evaluate_deals: Annotated[int, Meta(ge=1, le=2**32)] = 2048
    """duplicate deals of such an evaluation"""
    baselines: Annotated[tuple[str, ...], Meta(max_length=64)] = ("heaviest",)
    """agents to evaluate against"""
    save_every: AtLeast1 = 25
    """updates between two checkpoints"""

    @property
    def games_rules(self) -> list[Rules]:
        """The rules of each table."""
        listed = self.rules if isinstance(self.rules, list) else [self.rules]
        return [Rules.from_dict(rules) for rules in listed]


def in_bf16(config: Config) -> bool:
    """Whether matrices are multiplied in bfloat16.

    Without instructions for it that takes longer, on a processor with AVX2 alone eight times as
    long. What a processor has, torch tells under names that are not public yet; without them: no.
    """
    if config.bf16 is not None:
        return config.bf16
    if config.device == "cuda":
        return torch.cuda.is_bf16_supported()
    names = ("_is_avx512_bf16_supported", "_is_amx_tile_supported")
    return any(getattr(torch.cpu, name, bool)() for name in names)


def shape_of(config: Config) -> Shape:
    """The shape of the network of a run."""
    return Shape(
        [rules.to_dict() for rules in config.games_rules],
        list(config.hidden),
        network=config.network,
        history=config.history,
        belief=config.belief,
        privileged=config.privileged_critic,
        hands=config.hands_weight > 0,
        observe_as=config.observe_as,
        temperature=config.temperature,
    )


def check(config: Config) -> None:
    """Raise `ValueError` for fields that do not fit each other."""
    games = config.games_rules
    if not games:
        raise ValueError("rules: found an empty list, expected one game or more")
    if len(games) > config.games:
        raise ValueError(
            f"games: found {config.games}, expected one for each of {len(games)} rules"
        )
    if len({rules.set for rules in games}) > 1:
        raise ValueError("rules: found several sets, expected one set for all of a list")
    seats = sorted({rules.seats for rules in games})
    if config.observe_as is None and len(seats) > 1:
        raise ValueError(f"rules: found {seats} seats, expected observe_as: 4 with them")
    if config.observe_as is not None and config.observe_as < seats[-1]:
        raise ValueError(f"observe_as: found {config.observe_as}, expected at least {seats[-1]}")
    for game in games if config.solver_weight else ():
        if (game.episode, game.reward) != ("round", "win"):
            found = f"episode {game.episode} and reward {game.reward}"
            raise ValueError(f"solver_weight: found {found}, expected round and win with it")
    if config.schedule == "minutes" and not config.minutes:
        raise ValueError("schedule: found minutes, expected a number of minutes with it")
    if config.pool + config.bots > 1:
        raise ValueError(
            f"pool, bots: found {config.pool} and {config.bots}, expected at most 1 together"
        )
    if config.pool and not config.pool_size:
        raise ValueError("pool_size: found 0, expected 1 or more with a pool")
    if config.bots and not config.bot_names:
        raise ValueError("bot_names: found none, expected one or more with bots")
