"""Games between agents, played to their ends in one batch, and read as records.

Letters: `B` games, `P` seats, `A` actions.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from threading import Event
from typing import Self

import numpy as np

from agents.base import Agent, AgentError, View
from domino_env.compiled import jit
from domino_env.engine import move, only_move, reset
from domino_env.record import Played as Rounds
from domino_env.record import game_to_record
from domino_env.rules import Rules
from domino_env.state import GAME, NOT_OVER, PLAYING, new_games
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
                with blamed(agent, "view"):
                    view = agent.view(rules, vec.games[rows])
                position = _Position(rules, seed, rows, chosen)
                actions[rows] = ask(agent, view, position, batch.mask[rows])
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
        actions = np.array([step[game] for step in self.chosen], np.int8)
        reached = _played_again(self.rules, _dealt(self.rules, self.seed + game, 1), actions)
        reached.given = True  # a deal that nobody has moved in is part of the position too
        return json.dumps(game_to_record(reached))


def _played_again(rules: Rules, dealt: np.ndarray, actions: np.ndarray) -> Rounds:
    """A game of `play_games`, from its row of `_dealt` (GAME [1]) and its actions, integers [K].

    It stands where the next choice is to be made, or at its end.
    """
    game, rows, at = Rounds(rules, dealt.view(np.recarray)), dealt.view(GAME, np.ndarray), 0
    while True:
        at = _play_round(rows, rows.copy(), actions, at)
        if rows["end"][0] == PLAYING or rows["over"][0] != NOT_OVER:
            return game
        game.deal_if_over()


def _dealt(rules: Rules, seed: int, B: int) -> np.recarray:
    """The games of `play_games` with their first deal, GAME [B]."""
    seeds = np.uint64(seed % 2**64) + np.arange(B, dtype=np.uint64)
    games = new_games(rules, seeds)
    for k in range(len(games)):
        reset(games[k])
    return games


@jit
def _play_round(games: np.ndarray, scratch: np.ndarray, actions: np.ndarray, at: int) -> int:
    """Play the round of a game [1] to its end, or till actions[at:] are used up; the new `at`.

    Moves that are the only legal one are made as `forced="skip"` makes them.
    """
    g = games[0]
    while int(g.end) == PLAYING:
        action = only_move(g)
        if action >= 0 and at == 0:  # nobody has been asked so far
            scratch[0] = g
            move(scratch[0], action)
            if int(scratch[0].over) != NOT_OVER:
                action = -1
        if action < 0:
            if at == len(actions):
                break
            action = int(actions[at])
            at += 1
        move(g, action)
    return at


# ---------------------------------------------------------------- games as records


def records(
    rules: Rules, seats: Sequence[Agent], seed: int, played: Played, stop: Event | None = None
) -> list[str]:
    """The games of `play_games` as records (RULES.md 12), each with `players`, a name a seat.

    Raises `Stopped` soon after `stop` is set.
    """
    players, lines = [agent.name for agent in seats], []
    dealt = _dealt(rules, seed, len(played.rewards))
    actions = np.array(played.actions).T  # [B, K]
    for i in range(len(dealt)):
        if stop is not None and stop.is_set():
            raise Stopped
        game = _played_again(rules, dealt[i : i + 1], actions[i].copy())
        lines.append(json.dumps({**game_to_record(game), "players": players}))
    return lines


class GameFile:
    """A JSON Lines file of records, which in the end holds those that were kept.

    It is a new one, or goes on behind its first `size` bytes. Raises `ValueError` where there is
    another file, or no folder.
    """

    def __init__(self, path: str | Path, size: int = 0) -> None:
        self.path, self.kept = Path(path), size
        check_place(path)
        found = self.path.stat().st_size if self.path.exists() else 0
        if found < size:
            what = f"{found} bytes" if self.path.exists() else "no file"
            raise ValueError(f"{path}: found {what}, expected the {size} bytes that were saved")
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
        self.kept = self.kept if size is None else min(self.kept, size)
        self._file.truncate(self.kept if size is None else size)
        self._file.seek(0, os.SEEK_END)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.cut()
        self._file.close()
        if self.kept == 0:
            self.path.unlink()


def check_place(path: str | Path) -> None:
    """Raise `ValueError` if no file can be written there: it is a folder, or in none."""
    if not Path(path).parent.is_dir():
        raise ValueError(f"{path}: found no folder {Path(path).parent}, expected it")
    if Path(path).is_dir():
        raise ValueError(f"{path}: found a folder, expected a file")


def check_new(path: str | Path) -> None:
    """Raise `ValueError` if there is a file with something in it, or no place for one."""
    check_place(path)
    if Path(path).exists() and Path(path).stat().st_size:
        raise ValueError(f"{path}: found a file, expected a new name")


# ---------------------------------------------------------------- asking an agent


def ask(
    agent: Agent,
    view: View,
    position: Callable[[int], str],
    mask: np.ndarray | None = None,
) -> np.ndarray:
    """What the agent plays in each position, int64 [B], all legal by `mask` (None: the view's).

    `position` tells a row of the view as a record, for the message of the `AgentError` that is
    raised where the agent raises, or gives no legal move.
    """
    mask = (view.mask if mask is None else mask).copy()  # the agent may write into what it gets
    B, A = mask.shape
    try:
        actions = _acted(agent, view)
    except Exception as error:
        row = _failing_row(agent, view, B)
        raise AgentError(f"{_raised(agent, '', error)}; position: {position(row)}") from error
    if actions.dtype.kind not in "iu" or actions.shape != (B,):
        raise AgentError(
            f"{agent.name}: gave {actions.dtype} of shape {actions.shape}, expected integers of "
            f"shape ({B},); first position: {position(0)}"
        )
    actions = actions.astype(np.int64)
    legal = (actions >= 0) & (actions < A)
    legal &= mask[np.arange(B), np.where(legal, actions, 0)] != 0
    if not legal.all():
        row = int(np.argmin(legal))
        expected = ", ".join(map(str, np.flatnonzero(mask[row])))
        raise AgentError(
            f"{agent.name}: gave the action {actions[row]}, expected one of {expected}; "
            f"position: {position(row)}"
        )
    return actions


@contextlib.contextmanager
def blamed(agent: Agent, what: str) -> Iterator[None]:
    """Make an `AgentError` that names the agent, and what it was to do, of all that it raises."""
    try:
        yield
    except Exception as error:
        raise AgentError(_raised(agent, f"{what} ", error)) from error


def _raised(agent: Agent, what: str, error: Exception) -> str:
    return f"{agent.name}: {what}raised " + " ".join(f"{type(error).__name__}: {error}".split())


def _acted(agent: Agent, view: View) -> np.ndarray:
    return np.asarray(agent.act(view))


def _failing_row(agent: Agent, view: View, B: int) -> int:
    """A row in which the agent raises by itself, by halving; the last if it needs several."""
    rows = np.arange(B)
    while len(rows) > 1:
        half = rows[: len(rows) // 2]
        try:
            _acted(agent, view.rows(half))
        except Exception:
            rows = half
        else:
            rows = rows[len(half) :]
    return int(rows[0])
