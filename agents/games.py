"""Games between agents, played to their ends in one batch, and read as records.

Letters: `B` games, `P` seats, `A` actions.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from threading import Event
from typing import Self

import numpy as np

from agents.base import Agent, AgentError, View
from domino_env.game import Game
from domino_env.rules import Rules
from domino_env.vector import DominoVec


class Stopped(Exception):
    """Games that nobody waits for any more."""


@dataclass(frozen=True)
class Played:
    """Games that were played to their ends."""

    rewards: np.ndarray  # float64 [B, P], the sum over the episode
    points: np.ndarray  # float64 [B, P], what it would be under `reward: points`
    actions: list[np.ndarray]  # int8 [B] a step, what the agents chose; any number once it is over


def play_games(
    rules: Rules, seats: Sequence[Agent], seed: int, games: int, stop: Event | None = None
) -> Played:
    """Play `games` games to their ends with an agent in each seat; game i has seed `seed + i`.

    An agent in several seats is asked for all of them together. Moves that are the only legal one
    are made without asking. Raises `AgentError`, with the position, for what is no legal move, and
    `Stopped` soon after `stop` is set.
    """
    with_points = rules.replace(reward="points")
    vec = DominoVec(games, rules, seed=seed, autoreset=False, observation=False)
    # Stepped beside it for the points: the games keep their reward, as a seat is shown what it is.
    points = DominoVec(games, with_points, seed=seed, autoreset=False, observation=False)
    batch, scored = vec.reset(), points.reset()
    chosen: list[np.ndarray] = []
    owner = np.array([id(agent) for agent in seats])
    while not batch.done.all():
        if stop is not None and stop.is_set():
            raise Stopped
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


# ---------------------------------------------------------------- games as records


def records(rules: Rules, seats: Sequence[Agent], seed: int, played: Played) -> list[str]:
    """The games of `play_games` as records (RULES.md 12), each with `players`, a name a seat."""
    players = [agent.name for agent in seats]
    games = (played_again(rules, seed + i, played.actions, i) for i in range(len(played.rewards)))
    return [json.dumps({**game.to_record(), "players": players}) for game in games]


class GameFile:
    """A JSON Lines file of records, which in the end holds those that were kept.

    It is a new one, or goes on behind its first `size` bytes. Raises `ValueError` where there is
    another file, or no folder.
    """

    def __init__(self, path: str | Path, size: int = 0) -> None:
        self.path, self.kept = Path(path), size
        if not self.path.parent.is_dir():
            raise ValueError(f"{path}: found no folder {self.path.parent}, expected it")
        found = self.path.stat().st_size if self.path.exists() else 0
        if found < size:
            raise ValueError(f"{path}: found {found} bytes, expected the {size} that were saved")
        self._file = self.path.open("r+b" if found else "wb")
        self.cut()

    def write(self, deals: Iterable[Sequence[str]]) -> int:
        """Write records, those of a deal together; returns the size of the file behind them."""
        lines = "".join(f"{line}\n" for deal in deals for line in deal)
        self._file.write(lines.encode())
        return self._file.tell()

    def keep(self) -> None:
        """Keep what has been written, whatever happens from now on."""
        self._file.flush()
        os.fsync(self._file.fileno())
        self.kept = self._file.tell()

    def cut(self, size: int | None = None) -> None:
        """Take back what lies behind `size`, None: what has not been kept."""
        self._file.flush()
        self._file.truncate(self.kept if size is None else size)
        self._file.seek(0, os.SEEK_END)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.cut()
        self._file.close()
        if self.kept == 0:
            self.path.unlink()


def check_new(path: str | Path) -> None:
    """Raise `ValueError` if there is a file with something in it."""
    if Path(path).exists() and Path(path).stat().st_size:
        raise ValueError(f"{path}: found a file, expected a new name")


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
