"""The bots, one core: decisions a second (targets: 1 million, expert 100,000).

    python -m benchmarks.bots

A bot is shown POSITIONS positions of games in random play, and asked for all its moves at once;
what it takes to show them (`View.of`) is not counted. CPU seconds, medians of REPEATS.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from agents import load
from benchmarks.opponents import BOTS, GAMES, TABLES, rules_of
from domino_env import DominoVec, Rules

POSITIONS = 8192
MOVES = 40  # of each game before, so that rounds stand at all stages
REPEATS = 5
TARGETS = {name: 1e5 if name == "expert" else 1e6 for name in BOTS}


def bots() -> list[dict[str, Any]]:
    """Print the table; returns its rows."""
    rules = {f"{game}, {table}": rules_of(game, table) for game in GAMES for table in TABLES}
    rows = [
        {"name": name, "target": TARGETS[name], "rates": rates_of(name, rules)} for name in BOTS
    ]
    shown = Table("bot", "slowest", "fastest", "target", title="decisions a second and core")
    for row in rows:
        slow, fast = (pick(row["rates"].items(), key=lambda item: item[1]) for pick in (min, max))
        ends = (f"{rate:,.0f} ({game})" for game, rate in (slow, fast))
        shown.add_row(row["name"], *ends, f"{row['target']:,.0f}")
    Console().print(shown)
    return rows


def rates_of(name: str, games: dict[str, Rules]) -> dict[str, float]:
    """Decisions a second of a bot in each game."""
    agent, found = load(name, seed=0), {}
    for game, rules in games.items():
        view = agent.view(rules, positions(rules))
        found[game] = POSITIONS / seconds(partial(agent.act, view))
    return found


def positions(rules: Rules) -> np.recarray:
    """Games after MOVES random moves each, where a choice is to be made."""
    vec, random = DominoVec(POSITIONS, rules, seed=0), np.random.default_rng(0)
    batch = vec.reset()
    for _ in range(MOVES):
        luck = random.random(batch.mask.shape)
        batch = vec.step(np.where(batch.mask > 0, luck, -1).argmax(1))
    return vec.games


def seconds(work: Callable[[], Any]) -> float:
    """CPU seconds of a call, the median of several; the first one is not counted."""
    work()
    times = []
    for _ in range(REPEATS):
        began = time.process_time()
        work()
        times.append(time.process_time() - began)
    return statistics.median(times)


if __name__ == "__main__":
    bots()
