"""Duplicate evaluation: 10,000 deals of heaviest against random (target: under 10 s on 2 cores).

python -m benchmarks.evaluate

Then threads: how many times faster all cores are than one, for cheap agents and for a search that
spends nearly all its time in compiled loops. Wall time, medians of runs that take turns.
"""

from __future__ import annotations

import statistics
import time
from typing import Any

from rich.console import Console
from rich.table import Table

from agents import load
from agents.evaluate import cores
from agents.evaluate import evaluate as play
from domino_env import Rules

TARGET = 10.0  # seconds
RUNS = 5
MATCHES = (
    ("heaviest", "random", 16_384),
    ("expert", "heaviest", 16_384),
    ("pimc:5", "heaviest", 128),
)


def evaluate(deals: int = 10_000, runs: int = RUNS) -> list[dict[str, Any]]:
    """Print the tables, and return their rows."""
    rows = [speed_row(name, deals) for name in ("sin_robo", "estandar", "cabra")]
    table = Table(title=f"{deals:,} duplicate deals of heaviest against random")
    for heading in ("", "result", "seconds", "CPU seconds", "target"):
        table.add_column(heading, justify="right" if heading else "left")
    for row in rows:
        figures = f"{row['wall']:.1f}", f"{row['cpu']:.1f}", f"{TARGET:.0f}"
        table.add_row(row["name"], row["mean"], *figures)
    Console().print(table)
    return rows + thread_rows(runs)


def speed_row(name: str, deals: int) -> dict[str, Any]:
    rules = Rules.preset(name, episode="round")
    seconds, cpu, result = timed("heaviest", "random", rules, deals, cores())
    about = {"name": f"{name}, single hands", "mean": result.interval()}
    return {**about, "wall": seconds, "cpu": cpu}


def timed(a: str, b: str, rules: Rules, deals: int, threads: int) -> tuple[float, float, Any]:
    """Seconds, CPU seconds and the result, once all is compiled."""
    play(load(a), load(b), rules, 10, threads=threads)
    wall, cpu = time.perf_counter(), time.process_time()
    result = play(load(a), load(b), rules, deals, threads=threads)
    return time.perf_counter() - wall, time.process_time() - cpu, result


def thread_rows(runs: int) -> list[dict[str, Any]]:
    """One thread against all cores."""
    rules, rows = Rules.preset("sin_robo"), []
    for a, b, deals in MATCHES:
        ratios = []
        for _ in range(runs):
            one, many = (timed(a, b, rules, deals, threads) for threads in (1, cores()))
            assert one[2] == many[2]
            ratios.append(one[0] / many[0])
        rows.append({"name": f"{a} against {b}", "faster": statistics.median(ratios)})
    table = Table(title=f"{cores()} threads against one, wall time (as much as cores are idle)")
    table.add_column("")
    table.add_column("times faster", justify="right")
    for row in rows:
        table.add_row(row["name"], f"{row['faster']:.2f}")
    Console().print(table)
    return rows


if __name__ == "__main__":
    evaluate()
