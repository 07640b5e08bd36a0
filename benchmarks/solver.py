"""The solver: its speed beside the `dominoes` package, and its figures beside independent ones.

    python -m benchmarks.solver speed [DEALS [THEIRS]]
    python -m benchmarks.solver figures [DEALS]

`speed`: value and best move of 4 x 7 deals in pairs after the forced 6-6, DEALS (50) by our solver
for three payoffs, the first THEIRS (5) of them by `dominoes.search.alphabeta` too, with the same
values; CPU time. `figures`: DEALS (20,000) of these solved for the payoff of that package, by which
the side that goes out writes all remaining pips, and a block gives the lighter pair both totals.
"""

from __future__ import annotations

import statistics
import sys
import time
from math import sqrt
from typing import Any

import dominoes
import numpy as np
from rich.console import Console
from rich.progress import track
from rich.table import Table

from agents.solver import Payoff, Solver, Terms
from domino_env.compiled import jit
from domino_env.engine import move, only_move, reset
from domino_env.rules import Rules
from domino_env.state import new_games
from domino_env.tiles import HIGH, LOW, tiles_of

RULES = Rules.preset("sin_robo", seats=4, teams=True)
WRITES_ALL = (Terms(own=-1, rest=-1), Terms(), Terms(own=1, rest=1))
DOMINOES = Payoff(out=WRITES_ALL, block=WRITES_ALL)
TARGET_MS = 10.0
REFERENCE = {
    "wins %": 46.16,
    "draws %": 1.74,
    "mean": -2.91,
}  # to the leader's pair, with best play
REFERENCE_DEALS = 20_000


@jit
def deal_and_lead(games: np.recarray) -> None:
    """Deal a round of every game, and lead the tile that must be led."""
    for i in range(len(games)):
        reset(games[i])
        move(games[i], only_move(games[i]))


def dealt(deals: int, seed: int = 0) -> np.recarray:
    """GAME [deals] after the forced lead."""
    games = new_games(RULES, np.arange(seed, seed + deals))
    deal_and_lead(games)
    return games


def speed(deals: int = 50, theirs: int = 5) -> list[dict[str, Any]]:
    """Print the table of milliseconds a deal, and return its rows."""
    games = dealt(deals)
    rows = []
    for name, payoff in (("win", "win"), ("points", "points"), ("dominoes'", DOMINOES)):
        solver = Solver(RULES, payoff)
        solver.solve(games[:1])  # compile
        solver.action_values(games[:1])
        values, spent = _timed(lambda i, solver=solver: solver.solve(games[i : i + 1])[0][0], deals)
        rows.append(_row(f"solve, {name}", spent))
        _, spent = _timed(lambda i, solver=solver: solver.action_values(games[i : i + 1]), deals)
        rows.append(_row(f"every action, {name}", spent))
    expected, spent = _timed(lambda i: _their_value(games[i]), min(theirs, deals))
    if expected != values[: len(expected)]:
        raise AssertionError(f"values: found {values[: len(expected)]}, expected {expected}")
    rows.append(_row("dominoes 6.1.0 alphabeta", spent))
    table = Table("4 x 7 pairs, 6-6 led", "deals", "ms, median", "mean", "max", "target")
    for row in rows:
        target = f"{TARGET_MS:.0f}" if row["name"].startswith("solve") else ""
        figures = (f"{row[name]:,.2f}" for name in ("median", "mean", "max"))
        table.add_row(row["name"], str(row["deals"]), *figures, target)
    Console().print(table)
    return rows


def _timed(solve: Any, deals: int) -> tuple[list[Any], list[float]]:
    """The values of deals, and the CPU milliseconds that each took."""
    values, spent = [], []
    for i in range(deals):
        before = time.process_time()
        values.append(solve(i))
        spent.append((time.process_time() - before) * 1e3)
    return values, spent


def _row(name: str, spent: list[float]) -> dict[str, Any]:
    median, mean = statistics.median(spent), statistics.fmean(spent)
    return {
        "name": name,
        "deals": len(spent),
        "median": median,
        "mean": mean,
        "max": max(spent),
    }


def _their_value(g: Any) -> float:
    """The value of a game after 6-6 to the seat to move, by the package."""
    board = dominoes.Board()
    board.add(dominoes.Domino(6, 6), True)
    hands = [
        dominoes.Hand([dominoes.Domino(int(LOW[t]), int(HIGH[t])) for t in tiles_of(g.hands[p])])
        for p in range(4)
    ]
    leader, seat = int(g.leader), int(g.seat)
    game = dominoes.Game(board, hands, [], seat, (), leader, None)
    game._update_valid_moves()
    passed = 0
    while not game.valid_moves:  # the package passes by itself, but only after a move
        passed += 1
        game.turn = (seat + passed) % 4
        game._update_valid_moves()
    _, value = dominoes.search.alphabeta(game)
    return -value if seat % 2 else value


def figures(deals: int = REFERENCE_DEALS) -> list[dict[str, Any]]:
    """Print the figures of best play beside the reference's, and return the rows."""
    solver = Solver(RULES, DOMINOES)
    games = new_games(RULES, np.arange(deals))
    values = np.empty(deals)
    deal_and_lead(games)
    for start in track(range(0, deals, 100), "solving", transient=True):
        some = games[start : start + 100]
        sign = np.where((some["seat"] - some["leader"]) % 2, -1, 1)
        values[start : start + 100] = sign * solver.solve(some)[0]
    samples = {"wins %": 100.0 * (values > 0), "draws %": 100.0 * (values == 0), "mean": values}
    table = Table(f"best play, {deals:,} deals", "ours", "error", "reference", "in errors of both")
    rows = []
    for name, sample in samples.items():
        ours, error = float(sample.mean()), float(sample.std() / sqrt(deals))
        both = error * sqrt(1 + deals / REFERENCE_DEALS)
        apart = (ours - REFERENCE[name]) / both
        rows.append({"name": name, "ours": ours, "error": error, "apart": apart})
        table.add_row(name, f"{ours:.2f}", f"{error:.2f}", f"{REFERENCE[name]}", f"{apart:+.1f}")
    Console().print(table)
    return rows


COMMANDS = {"speed": speed, "figures": figures}


if __name__ == "__main__":
    command, *numbers = sys.argv[1:] or ["speed"]
    if command not in COMMANDS or not all(number.isdigit() for number in numbers):
        raise SystemExit(f"benchmarks.solver: found {' '.join(sys.argv[1:])!r}\n{__doc__}")
    COMMANDS[command](*map(int, numbers))
