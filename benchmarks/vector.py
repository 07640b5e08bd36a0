"""`DominoVec` beside OpenSpiel's `python_block_dominoes`, the same game as `sin_robo` for two.

    python -m benchmarks.vector

Moves a second of CPU time where one thread works, of wall time where two do; deals are on the
clock, and OpenSpiel's chance moves with them. Random legal actions are made off the clock. Medians
of runs that take turns.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pyspiel
from open_spiel.python.games import block_dominoes  # noqa: F401  registers the game
from rich.console import Console
from rich.table import Table

from domino_env import DominoVec
from domino_env.compiled import jit
from domino_env.engine import (
    advance,
    reset,
)
from domino_env.observation import mask_each, observe_each
from domino_env.state import (
    GAME,
    NOT_OVER,
)
from domino_env.vector import first_illegal

GAMES = 1024
MANY_GAMES = 65_536  # where handing rows to a thread costs little beside the work
STEPS = 200
RUNS = 9
TARGET, TARGET_MASK, TARGET_RATIO, TARGET_THREADS = 8e6, 15e6, 800, 1.8
TARGET_BYTES, TARGET_START, TARGET_COMPILE = 512, 1.5, 60
START = """
import time
from domino_env import DominoVec
DominoVec(16, "sin_robo", seed=0).reset()
print(time.process_time())
"""
Clock = Callable[[], float]
Row = dict[str, Any]


def vector(runs: int = RUNS) -> list[Row]:
    """Print the tables; return the rows of the first, with what was reached and its target."""
    rows = [*speed_rows(runs), *start_rows()]
    console = Console()
    console.print(_table("DominoVec, 1,024 games of sin_robo for two, forced='step'", rows))
    console.print(_table("Where the time of a move goes (nanoseconds of CPU)", part_rows(runs)))
    return rows


# ---------------------------------------------------------------- moves a second


def speed_rows(runs: int) -> list[Row]:
    """Moves a second: with observations, without, on two threads; OpenSpiel's in turn."""
    switches: list[dict[str, Any]] = [{}, {"observation": False}, {"threads": 2}]
    seen, bare, threaded = (_player(GAMES, **fields) for fields in switches)
    many, many_threaded = _player(MANY_GAMES), _player(MANY_GAMES, threads=2)
    taken: dict[str, list[float]] = {}
    for run in range(runs):
        for name, speed in {
            "seen": lambda: seen.speed(time.process_time),
            "bare": lambda: bare.speed(time.process_time),
            "spiel": lambda run=run: spiel_speed(run),
            "wall": lambda: seen.speed(time.perf_counter),
            "wall of two": lambda: threaded.speed(time.perf_counter),
            "many": lambda: many.speed(time.perf_counter),
            "many of two": lambda: many_threaded.speed(time.perf_counter),
        }.items():
            taken.setdefault(name, []).append(speed())
    of = {name: statistics.median(values) for name, values in taken.items()}
    threads, many_threads = (
        statistics.median(two / one for one, two in zip(taken[a], taken[b], strict=True))
        for a, b in (("wall", "wall of two"), ("many", "many of two"))
    )
    ratio = of["seen"] / of["spiel"]
    return [
        _row("moves a second, observation and mask", of["seen"], TARGET, "{:,.0f}"),
        _row("OpenSpiel 2 python_block_dominoes, tensor and mask", of["spiel"], None, "{:,.0f}"),
        _row("as many times OpenSpiel's", ratio, TARGET_RATIO, "{:,.0f}"),
        _row("moves a second, mask only", of["bare"], TARGET_MASK, "{:,.0f}"),
        _row("two threads over one, wall time", threads, TARGET_THREADS, "{:.2f}"),
        _row(f"the same, {MANY_GAMES:,} games", many_threads, TARGET_THREADS, "{:.2f}"),
    ]


def _player(games: int, **fields: Any) -> Player:
    return Player(DominoVec(games, "sin_robo", seed=0, forced="step", **fields))


class Player:
    """A batch under random play, with its own arrays."""

    def __init__(self, vec: DominoVec) -> None:
        self.vec, self.out = vec, vec.new_batch()
        self.actions = np.zeros(vec.num_games, np.int64)
        self.seed = 0
        vec.reset(out=self.out)
        self.speed(time.process_time)  # compiles, and brings the games out of step

    def choose(self) -> np.ndarray:
        """Random legal actions [B]."""
        self.seed += 1
        choose_each(self.out.mask, self.actions, self.seed)
        return self.actions

    def speed(self, clock: Clock) -> float:
        """Moves a second over `STEPS` steps."""
        spent = 0.0
        for _ in range(STEPS):
            self.choose()
            before = clock()
            self.vec.step(self.actions, out=self.out)
            spent += clock() - before
        return STEPS * self.vec.num_games / spent


@jit
def choose_each(mask: np.ndarray, actions: np.ndarray, seed: int) -> None:
    """A random legal action of each row, by a linear congruential generator of 31 bits."""
    luck = seed * 2654435761 & 0x7FFFFFFF
    for i in range(len(mask)):
        legal = 0
        for a in range(mask.shape[1]):
            legal += mask[i, a]
        luck = luck * 1103515245 + 12345 & 0x7FFFFFFF
        chosen = (luck >> 8) % max(legal, 1)
        for a in range(mask.shape[1]):
            if mask[i, a]:
                if chosen == 0:
                    actions[i] = a
                chosen -= 1


def spiel_speed(seed: int, games: int = 12) -> float:
    """Moves a second of OpenSpiel; its deals, tensors and masks are on the clock."""
    game, rng = pyspiel.load_game("python_block_dominoes"), np.random.default_rng(seed)
    spent, moves = 0.0, 0
    for _ in range(games):
        actions = _spiel_actions(game, rng)
        before = time.process_time()
        state = game.new_initial_state()
        for action in actions:
            if not state.is_chance_node():
                state.information_state_tensor(state.current_player())
                state.legal_actions_mask()
                moves += 1
            state.apply_action(action)
        spent += time.process_time() - before
    return moves / spent


def _spiel_actions(game: Any, rng: np.random.Generator) -> list[int]:
    """All actions of a random game, those of chance too."""
    state, actions = game.new_initial_state(), []
    while not state.is_terminal():
        actions.append(int(rng.choice(state.legal_actions())))
        state.apply_action(actions[-1])
    return actions


# ---------------------------------------------------------------- where the time goes


def part_rows(runs: int) -> list[Row]:
    """Each part of a step alone, over the same games; the rest is bookkeeping and Python."""
    player = Player(DominoVec(GAMES, "sin_robo", seed=0, forced="step"))
    vec, out, seats = player.vec, player.out, np.zeros(GAMES, np.int64)
    taken: dict[str, list[float]] = {}

    def note(name: str, function: Callable[..., Any], *arguments: Any) -> None:
        before = time.process_time()
        function(*arguments)
        taken.setdefault(name, []).append((time.process_time() - before) / GAMES * 1e9)

    for _ in range(20 * runs):
        actions, games = player.choose(), vec.games.view(GAME, np.ndarray).copy()
        seats[:] = games["seat"]
        note("are all actions legal", first_illegal, 0, GAMES, games, actions)
        note("mask", mask_each, games, out.mask)
        note("observation", observe_each, games, seats, vec.places, False, out.observation)
        note("moves, ends of rounds, deals", move_each, games, actions)
        note("a whole step", lambda actions=actions: vec.step(actions, out=out))
    of = {name: statistics.median(values) for name, values in taken.items()}
    whole = of.pop("a whole step")
    one = Player(DominoVec(1, "sin_robo", seed=0, forced="step"))
    rows = [_row(name, value, None, "{:.1f}") for name, value in of.items()]
    rows.append(_row("bookkeeping, Python", whole - sum(of.values()), None, "{:.1f}"))
    rows.append(_row("a whole step, a game", whole, None, "{:.1f}"))
    call = 1e9 / one.speed(time.process_time)
    return [*rows, _row("a whole step of a batch of one", call, None, "{:,.0f}")]


@jit
def move_each(games: np.ndarray, actions: np.ndarray) -> None:
    """Make a move in each game, and deal it anew where that ends it."""
    for i in range(len(games)):
        advance(games[i], actions[i])
        if int(games[i].over) != NOT_OVER:
            reset(games[i])


# ---------------------------------------------------------------- memory and start


def start_rows() -> list[Row]:
    """The size of a game, and what a start takes, from the cache and without it."""
    with tempfile.TemporaryDirectory() as folder:
        first = start_time(folder)
        warm = statistics.median(start_time(folder) for _ in range(3))
    return [
        _row("bytes of one game in memory", GAME.itemsize, TARGET_BYTES, "{:.0f}", most=True),
        _row("import and first reset, CPU seconds", warm, TARGET_START, "{:.2f}", most=True),
        _row("the same, compiling first", first, TARGET_COMPILE, "{:.1f}", most=True),
    ]


def start_time(cache: str) -> float:
    """CPU seconds of a fresh process up to its first batch."""
    done = subprocess.run(
        [sys.executable, "-c", START],
        env=os.environ | {"NUMBA_CACHE_DIR": cache},
        capture_output=True,
        text=True,
        check=True,
        timeout=300,
    )
    return float(done.stdout)


# ---------------------------------------------------------------- the tables


def _row(name: str, reached: float, target: float | None, form: str, *, most: bool = False) -> Row:
    """A row: `most` where the target is the most that is allowed."""
    return {"name": name, "reached": reached, "target": target, "form": form, "most": most}


def _table(title: str, rows: list[Row]) -> Table:
    table = Table(title=title)
    table.add_column("")
    table.add_column("reached", justify="right")
    has_targets = any(row["target"] is not None for row in rows)
    if has_targets:
        table.add_column("target", justify="right")
    for row in rows:
        cells = [row["name"], row["form"].format(row["reached"])]
        if has_targets:
            bound = "at most " if row["most"] else ""
            known = row["target"] is not None
            cells.append(bound + row["form"].format(row["target"]) if known else "")
        table.add_row(*cells)
    return table


if __name__ == "__main__":
    vector()
