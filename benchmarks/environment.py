"""One game in PettingZoo: `domino_v0` beside PettingZoo's own `connect_four_v3`, raw and wrapped.

    python -m benchmarks.environment

A live step is `last()` and `step()` with a legal action. The games are played once to note random
legal actions, then again with the clock on: CPU time of the loop alone.
"""

from __future__ import annotations

import random
import statistics
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from pettingzoo.classic.connect_four import connect_four
from rich.console import Console
from rich.table import Table

from domino_env import domino_v0

TARGETS = {"raw_env": 2.0, "env": 1.2}  # times as fast as connect_four_v3
Maker = Callable[[], Any]


def environment(runs: int = 9, games: int = 60) -> list[dict[str, Any]]:
    """Print the table, and return its rows: medians of `runs`, in turn, of `games` games each."""
    rows = []
    for name, target in TARGETS.items():
        ours, theirs = getattr(domino_v0, name), getattr(connect_four, name)
        pairs = [(step_time(ours, games, r), step_time(theirs, games, r)) for r in range(runs)]
        us, them = (statistics.median(times) for times in zip(*pairs, strict=True))
        ratio = statistics.median(b / a for a, b in pairs)
        rows.append({"name": name, "us": us, "connect_four": them, "x": ratio, "target": target})
    Console().print(_table(rows))
    return rows


def step_time(make: Maker, games: int, seed: int) -> float:
    """Microseconds of CPU time a live step, over `games` games of random legal play."""
    env = make()
    spent, steps = 0.0, 0
    for game in range(games):
        actions = _random_actions(env, 1000 * seed + game)
        env.reset(seed=1000 * seed + game)
        before = time.process_time()
        for action in actions:
            env.last()
            env.step(action)
        spent += time.process_time() - before
        steps += len(actions)
    return spent / steps * 1e6


def _random_actions(env: Any, seed: int) -> list[int]:
    """The actions of a random game of a seed."""
    rng, actions = random.Random(seed), []
    env.reset(seed=seed)
    while True:
        observation, _, terminated, truncated, _ = env.last()
        if terminated or truncated:
            return actions
        actions.append(rng.choice(np.flatnonzero(observation["action_mask"]).tolist()))
        env.step(actions[-1])


def _table(rows: list[dict[str, Any]]) -> Table:
    table = Table(title="One game in PettingZoo: microseconds of CPU a live step")
    for heading in ("", "domino_v0", "connect_four_v3", "times as fast", "target"):
        table.add_column(heading, justify="right" if heading else "left")
    for row in rows:
        figures = f"{row['us']:.1f}", f"{row['connect_four']:.1f}", f"{row['x']:.2f}"
        table.add_row(row["name"], *figures, f"{row['target']:.1f}")
    return table


if __name__ == "__main__":
    environment()
