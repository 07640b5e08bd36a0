"""Hidden worlds: how many are drawn a second, and how many positions are believed, on one core.

    python -m benchmarks.worlds

Positions are those of the seat to move in the middle of random play, as that seat knows them. CPU
time of `sample_worlds` and of `belief`, with all that they prepare for each position. Then the
steps of `DominoVec` with beliefs and without, over whole games.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from domino_env import DominoVec, Rules
from domino_env.observation import redact_each
from domino_env.worlds import belief, deal_count, sample_worlds

TARGET = 200_000  # worlds a second
MOVES = (6, 10, 14)  # moves after which positions are taken
VEC_GAMES, VEC_STEPS = 1024, 20
GAMES: dict[str, dict[str, Any]] = {
    "sin_robo, 2 seats": {"preset": "sin_robo"},
    "sin_robo, pairs": {"preset": "sin_robo", "seats": 4, "teams": True},
    "estandar, 2 seats": {"preset": "estandar"},
    "estandar, 4 seats, free lead": {"preset": "estandar", "seats": 4, "lead_tile": "free"},
    "cabra, 3 seats": {"preset": "cabra", "seats": 3},
    "estandar, double-nine, 4 seats": {"preset": "estandar", "seats": 4, "set": 9},
}


def worlds(runs: int = 5, positions: int = 64, count: int = 1000) -> list[dict[str, Any]]:
    """Print the table, and return its rows: medians of `runs`."""
    rows = []
    for name, fields in GAMES.items():
        games = middle_games(Rules.from_dict(fields), positions)
        few = rate(lambda g=games: sample_worlds(g, None, 20, 1).size, runs)
        many = rate(lambda g=games: sample_worlds(g, None, count, 1).size, runs)
        believed = rate(lambda g=games: len(belief(g)), runs)
        deals = float(np.median(deal_count(games)))
        row = {"name": name, "deals": deals, "few": few, "many": many, "belief": believed}
        rows.append(row | step_rates(Rules.from_dict(fields), runs))
    Console().print(_table(rows, count))
    return rows


def middle_games(rules: Rules, positions: int) -> np.recarray:
    """Redacted positions in the middle of random play, as the seats to move know them."""
    vec = DominoVec(positions, rules=rules, seed=0)
    batch, rng = vec.reset(), np.random.default_rng(0)
    taken = []
    for move in range(max(MOVES) + 1):
        if move in MOVES:
            taken.append(np.array(vec.games))
        lucky = rng.random(batch.mask.shape) * (batch.mask > 0)
        batch = vec.step(lucky.argmax(1))
    games = np.concatenate(taken).view(np.recarray)
    redact_each(games, games["seat"].astype(np.int64))
    return games


def rate(call: Callable[[], int], runs: int) -> float:
    """How many a second of CPU time, the median of some runs after one that is not counted."""
    call()
    rates = []
    for _ in range(runs):
        before = time.process_time()
        done = call()
        rates.append(done / (time.process_time() - before))
    return statistics.median(rates)


def step_rates(rules: Rules, runs: int) -> dict[str, float]:
    """Games stepped a second of CPU time: `vec` with beliefs, `times` as many without."""
    pairs = []
    for run in range(runs + 1):  # the first compiles
        slow, quick = (step_rate(rules, run, on) for on in (True, False))
        pairs.append((slow, quick / slow))
    vec, times = (statistics.median(values) for values in zip(*pairs[1:], strict=True))
    return {"vec": vec, "times": times}


def step_rate(rules: Rules, seed: int, believe: bool) -> float:
    """Games stepped a second of CPU time under random play, whose moves are made off the clock."""
    vec = DominoVec(VEC_GAMES, rules, seed=seed, belief=believe)
    batch, rng, spent = vec.reset(), np.random.default_rng(seed), 0.0
    for _ in range(VEC_STEPS):
        actions = (rng.random(batch.mask.shape) * batch.mask).argmax(axis=1)
        before = time.process_time()
        vec.step(actions, out=batch)
        spent += time.process_time() - before
    return VEC_GAMES * VEC_STEPS / spent


def _table(rows: list[dict[str, Any]], count: int) -> Table:
    table = Table(title=f"Hidden worlds a second and core in mid-game (target {TARGET:,})")
    headings = ("", "deals that agree", "20 a position", f"{count:,} a position", "beliefs")
    headings += ("DominoVec with them", "x without")
    for heading in headings:
        table.add_column(heading, justify="right" if heading else "left")
    for row in rows:
        figures = (
            f"{row['deals']:.1e}",
            *(f"{row[k]:,.0f}" for k in ("few", "many", "belief", "vec")),
        )
        table.add_row(row["name"], *figures, f"{row['times']:.0f}")
    return table


if __name__ == "__main__":
    worlds()
