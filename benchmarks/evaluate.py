"""Duplicate evaluation: 10,000 deals of heaviest against random (target: under 10 s on 2 cores).

python -m benchmarks.evaluate
"""

from __future__ import annotations

import time
from typing import Any

from rich.console import Console
from rich.table import Table

from agents import load
from agents.evaluate import evaluate as play
from domino_env import Rules

TARGET = 10.0  # seconds


def evaluate(deals: int = 10_000) -> list[dict[str, Any]]:
    """Print the table, and return its rows."""
    rows = []
    for name, fields in (("sin_robo", {}), ("estandar", {}), ("cabra", {"episode": "round"})):
        rules = Rules.preset(name, **fields)
        play(load("heaviest", seed=0), load("random", seed=1), rules, 100)  # compile, load
        wall, cpu = time.perf_counter(), time.process_time()
        result = play(load("heaviest", seed=0), load("random", seed=1), rules, deals)
        rows.append(
            {
                "name": f"{name}, single hands",
                "mean": result.interval(),
                "wall": time.perf_counter() - wall,
                "cpu": time.process_time() - cpu,
            }
        )
    table = Table(title=f"{deals:,} duplicate deals of heaviest against random")
    for heading in ("", "result", "seconds", "CPU seconds", "target"):
        table.add_column(heading, justify="right" if heading else "left")
    for row in rows:
        figures = f"{row['wall']:.1f}", f"{row['cpu']:.1f}", f"{TARGET:.0f}"
        table.add_row(row["name"], row["mean"], *figures)
    Console().print(table)
    return rows


if __name__ == "__main__":
    evaluate()
