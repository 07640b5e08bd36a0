"""Duplicate play: every deal is played once for each place that A can take.

Dominoes is mostly luck, and both agents get the same luck here. The unit of statistics is the
deal: the mean over its games, whose spread gives the interval.

Letters: `B` games, `P` seats, `R` rotations (places that A can take).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from rich.box import SIMPLE_HEAD
from rich.table import Table

from agents.base import Agent, AgentError, View
from domino_env.game import Game
from domino_env.rules import Rules
from domino_env.vector import DominoVec

MAX_SEED = 2**31 - 1
SEED_STEP = 2**32  # deal i is that of the game with seed SEED_STEP * seed + i: no two seeds share


@dataclass(frozen=True)
class Result:
    """What came out of A's games against B. Rewards are A's, and those of one game."""

    a: str
    b: str
    rules: Rules
    seed: int
    mean: float  # reward
    ci95: float  # half width of the 95% interval of the mean; nan for a single deal
    deals: int
    games: int
    wins: float  # share of A's games with positive reward
    draws: float  # zero
    losses: float  # negative
    points: float  # mean of what A's reward would be under `reward: points`

    def to_dict(self) -> dict[str, Any]:
        """The figures for JSON; the interval of a single deal is None."""
        ci95 = None if np.isnan(self.ci95) else self.ci95
        return {**vars(self), "rules": self.rules.to_dict(), "ci95": ci95}

    def interval(self) -> str:
        """The mean with its interval, as text: `+0.194 ± 0.019`."""
        half = "?" if np.isnan(self.ci95) else f"{self.ci95:.3f}"  # one deal has no spread
        return f"{self.mean:+.3f} ± {half}"


def evaluate(
    a: Agent,
    b: Agent,
    rules: Rules,
    deals: int,
    seed: int = 0,
    progress: Callable[[Result], None] | None = None,
) -> Result:
    """Play `a` against `b` on `deals` deals (of a match: seeds, and so all its deals).

    Deal i is that of the game with seed `2**32 * seed + i`. It is played with A in each seat in
    turn and B in all others, with teams by A's pair in either place. Both agents are seeded anew
    from `seed`, so the same call gives the same result. `progress` gets the result so far now and
    then. Ctrl-C gives the result so far, with fewer `deals`, if there is one.
    Raises `AgentError` for an agent that does not fit the rules or gives no legal move.
    """
    _check_count("deals", deals, 1, SEED_STEP)
    _check_count("seed", seed, 0, MAX_SEED)
    for agent in (a, b):
        agent.check(rules)
    tally = Tally(a.name, b.name, rules, seed)
    at_once = min(a.deals_at_once, b.deals_at_once)
    try:
        for chunk, first in enumerate(range(0, deals, at_once)):
            count = min(at_once, deals - first)
            tally.add(*_play_rotations(a, b, rules, (seed, chunk), first, count))
            if progress is not None:
                progress(tally.result())
    except KeyboardInterrupt:
        if not tally.rewards:
            raise
    return tally.result()


def _check_count(name: str, value: int, low: int, high: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int | np.integer):
        raise ValueError(f"{name}: found {value!r}, expected an integer of at least {low}")
    if not low <= value <= high:
        raise ValueError(f"{name}: found {value}, expected {low} to {high}")


def places(rules: Rules) -> np.ndarray:
    """The places that A can take, bool [R, P]: each seat, or either pair."""
    if rules.teams:
        return np.array([[True, False, True, False], [False, True, False, True]])
    return np.eye(rules.seats, dtype=bool)


def _play_rotations(
    a: Agent, b: Agent, rules: Rules, seed: tuple[int, int], first: int, count: int
) -> tuple[np.ndarray, np.ndarray]:
    """A's rewards and points, float64 [R, count] each, in the deals from `first` on."""
    rewards, points = [], []
    for rotation, is_a in enumerate(places(rules)):
        for which, agent in enumerate((a, b)):
            agent.seed((*seed, rotation, which))
        seats = [a if own else b for own in is_a]
        played = play_games(rules, seats, SEED_STEP * seed[0] + first, count)
        rewards.append(played.rewards[:, is_a].mean(axis=1))
        points.append(played.points[:, is_a].mean(axis=1))
    return np.array(rewards), np.array(points)


@dataclass
class Tally:
    """Games of A against B, counted as they come in."""

    a: str
    b: str
    rules: Rules
    seed: int
    rewards: list[np.ndarray] = field(default_factory=list)  # [R, deals] each
    points: list[np.ndarray] = field(default_factory=list)

    def add(self, rewards: np.ndarray, points: np.ndarray) -> None:
        """Count A's rewards and points in some deals more, [R, deals]."""
        self.rewards.append(rewards)
        self.points.append(points)

    def result(self) -> Result:
        """The result so far; there must be one deal at least."""
        rewards = np.concatenate(self.rewards, axis=1)
        mean, ci95 = mean_interval(rewards.mean(axis=0))
        return Result(
            self.a,
            self.b,
            self.rules,
            self.seed,
            mean=mean,
            ci95=ci95,
            deals=rewards.shape[1],
            games=rewards.size,
            wins=float((rewards > 0).mean()),
            draws=float((rewards == 0).mean()),
            losses=float((rewards < 0).mean()),
            points=float(np.concatenate(self.points, axis=1).mean(axis=0).mean()),
        )


def mean_interval(values: np.ndarray) -> tuple[float, float]:
    """The mean of independent values and the half width of its 95% interval (normal).

    The half width is 1.96 standard errors, nan for a single value.
    """
    if len(values) < 2:
        return float(values.mean()), float("nan")
    return float(values.mean()), float(1.96 * values.std(ddof=1) / np.sqrt(len(values)))


# ---------------------------------------------------------------- games in batch


@dataclass(frozen=True)
class Played:
    """Games that were played to their ends."""

    rewards: np.ndarray  # float64 [B, P], the sum over the episode
    points: np.ndarray  # float64 [B, P], what it would be under `reward: points`
    actions: list[np.ndarray]  # int8 [B] a step, what the agents chose; any number once it is over


def play_games(rules: Rules, seats: Sequence[Agent], seed: int, games: int) -> Played:
    """Play `games` games to their ends with an agent in each seat; game i has seed `seed + i`.

    An agent in several seats is asked for all of them together. Moves that are the only legal one
    are made without asking. Raises `AgentError`, with the position, for what is no legal move.
    """
    with_points = rules.replace(reward="points")
    vec = DominoVec(games, rules, seed=seed, autoreset=False, observation=False)
    # Stepped beside it for the points: the games keep their reward, as a seat is shown what it is.
    points = DominoVec(games, with_points, seed=seed, autoreset=False, observation=False)
    batch, scored = vec.reset(), points.reset()
    chosen: list[np.ndarray] = []
    owner = np.array([id(agent) for agent in seats])
    while not batch.done.all():
        actions = np.zeros(games, np.int64)
        asked = np.where(batch.done, 0, owner[batch.seat])
        for agent in {id(agent): agent for agent in seats}.values():
            rows = np.flatnonzero(asked == id(agent))
            if len(rows) > 0:
                view = agent.view(rules, vec.games[rows])
                actions[rows] = ask(agent, view, _Position(rules, seed, rows, chosen))
        vec.step(actions, out=batch)
        points.step(actions, out=scored)
        chosen.append(actions.astype(np.int8))
    return Played(batch.final_reward.astype(float), scored.final_reward.astype(float), chosen)


@dataclass(frozen=True)
class _Position:
    """Tells the position of a row of a view as a record, by playing its game again."""

    rules: Rules
    seed: int
    rows: np.ndarray  # [.] the game of each row
    chosen: list[np.ndarray]  # as in `Played.actions`, so far

    def __call__(self, row: int) -> str:
        game = int(self.rows[row])
        reached = played_again(self.rules, self.seed + game, self.chosen, game)
        reached.given = True  # a deal that nobody has moved in is part of the position too
        return json.dumps(reached.to_record())


def played_again(rules: Rules, seed: int, actions: Sequence[np.ndarray], row: int) -> Game:
    """The game of a row of `play_games` as a `Game`; `actions` are `Played.actions`, or the first.

    It stands where the next choice is to be made, or at its end.
    """
    game = _without_forced(Game(rules, seed=seed), asked=False)
    for step in actions:
        if game.over:
            break
        game.play(int(step[row]))
        game = _without_forced(game, asked=True)
    return game


def _without_forced(game: Game, asked: bool) -> Game:
    """Make the moves that are the only legal one, as `forced="skip"` does."""
    while not game.over and len(game.legal_actions()) == 1:
        after = game.copy()
        after.play(after.legal_actions()[0])
        if after.over and not asked:
            break
        game = after
    return game


# ---------------------------------------------------------------- asking an agent


def ask(agent: Agent, view: View, position: Callable[[int], str]) -> np.ndarray:
    """What the agent plays in each position, int64 [B], all legal.

    `position` tells a row of the view as a record, for the message of the `AgentError` that is
    raised where the agent raises, or gives no legal move.
    """
    try:
        given = agent.act(view)
    except Exception as error:
        row = _failing_row(agent, view)
        found = " ".join(f"{type(error).__name__}: {error}".split())
        raise AgentError(f"{agent.name}: raised {found}; position: {position(row)}") from error
    actions = np.asarray(given)
    B, A = view.mask.shape
    if actions.dtype.kind not in "iu" or actions.shape != (B,):
        raise AgentError(
            f"{agent.name}: gave {actions.dtype} of shape {actions.shape}, expected integers of "
            f"shape ({B},); first position: {position(0)}"
        )
    actions = actions.astype(np.int64)
    legal = (actions >= 0) & (actions < A)
    legal &= view.mask[np.arange(B), np.where(legal, actions, 0)] != 0
    if not legal.all():
        row = int(np.argmin(legal))
        expected = ", ".join(map(str, np.flatnonzero(view.mask[row])))
        raise AgentError(
            f"{agent.name}: gave the action {actions[row]}, expected one of {expected}; "
            f"position: {position(row)}"
        )
    return actions


def _failing_row(agent: Agent, view: View) -> int:
    """A row in which the agent raises by itself, by halving; the last if it needs several."""
    rows = np.arange(len(view))
    while len(rows) > 1:
        half = rows[: len(rows) // 2]
        try:
            agent.act(view.rows(half))
        except Exception:
            rows = half
        else:
            rows = rows[len(half) :]
    return int(rows[0])


# ---------------------------------------------------------------- results as a table


def results_table(results: Sequence[Result]) -> Table:
    """Results of one agent against others on the same rules, a row each."""
    rules = results[0].rules
    fields = {name: value for name, value in rules.given.items() if name not in ("seats", "teams")}
    game = f"{rules.preset}, {'pairs' if rules.teams else f'{rules.seats} seats'}"
    game += "".join(f", {name}={value}" for name, value in fields.items())
    table = Table(title=f"{results[0].a} in {game}", caption=_CAPTION, box=SIMPLE_HEAD)
    table.title_justify = table.caption_justify = "left"
    table.add_column("against", overflow="fold")
    for heading in ("reward a game", "points", "won %", "drawn %", "lost %", "deals"):
        table.add_column(heading, justify="right", no_wrap=True)
    for result in results:
        shares = (f"{100 * share:.1f}" for share in (result.wins, result.draws, result.losses))
        points, deals = f"{result.points:+.2f}", f"{result.deals:,}"
        table.add_row(result.b, result.interval(), points, *shares, deals)
    return table


_CAPTION = "duplicate deals; ± is the 95% interval, from the spread over deals"
