"""The search over sampled worlds: how many decisions a second, and where the time goes.

    python -m benchmarks.search [GAMES [WORLDS]]

`pimc:WORLDS` (20) plays GAMES (6) games with itself in every game and at every table, CPU time of
one thread. A decision is a position with more than one legal move. The target is for pairs in
`sin_robo`.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from agents.base import View
from agents.likelihood import log_likelihood
from agents.pimc import CANDIDATES, LIMIT, Pimc
from agents.solver import Solver
from domino_env import DominoVec, Rules
from domino_env.worlds import sample_worlds

TARGET = 20.0  # decisions a second and core
TABLES = ({"seats": 2}, {"seats": 3}, {"seats": 4}, {"seats": 4, "teams": True})
COLUMNS = {
    "rate": "per s",
    "ms": "ms",
    "draw": "draw %",
    "weigh": "weigh %",
    "solve": "solve %",
    "late": "late %",
}
CAPTION = f"of a decision; late: worlds that take more than {LIMIT:,} positions to solve"


def search(games: int = 6, worlds: int = 20) -> list[dict[str, Any]]:
    """Print the table, and return its rows."""
    rows = []
    for preset in ("sin_robo", "estandar", "cabra"):
        for fields in TABLES:
            rules = Rules.preset(preset, episode="round", **fields)
            measured(rules, 1, 2, seed=1000)  # compile
            rows.append({"name": named(rules)} | measured(rules, games, worlds, seed=1))
    title = f"pimc:{worlds} in every seat, {games} games each, one thread"
    table = Table(title=title, caption=CAPTION, box=SIMPLE_HEAD, padding=(0, 1, 0, 0))
    for heading in ("", *COLUMNS.values(), "target"):
        table.add_column(heading, justify="right" if heading else "left", no_wrap=True)
    for row in rows:
        figures = (f"{row[name]:,.1f}" for name in COLUMNS)
        target = f"{TARGET:.0f}" if row["name"] == "sin_robo, pairs" else ""
        table.add_row(row["name"], *figures, target)
    Console().print(table)
    return rows


def named(rules: Rules) -> str:
    """The game and the table in words."""
    return f"{rules.preset}, {'pairs' if rules.teams else f'{rules.seats} seats'}"


def measured(rules: Rules, games: int, worlds: int, seed: int) -> dict[str, Any]:
    """The figures of some games: the time of whole decisions, and of their parts done once more.

    The share of worlds past `LIMIT` is that of worlds drawn as the deals are.
    """
    agent, solver = Pimc(str(worlds), seed=seed), Solver(rules, limit=LIMIT)
    random = np.random.default_rng(seed)
    spent = {"all": 0.0, "draw": 0.0, "weigh": 0.0}
    decisions = late = 0
    for view in played(agent, rules, games, seed, spent):
        assert view.games is not None
        decisions += len(view)
        before = time.process_time()
        found = sample_worlds(view.games, view.seat, worlds * CANDIDATES, random)
        drawn = time.process_time()
        log_likelihood(found.reshape(-1), np.repeat(view.seat, worlds * CANDIDATES))
        spent["draw"] += drawn - before
        spent["weigh"] += time.process_time() - drawn
        late += int(np.isnan(solver.solve(found[:, :worlds].reshape(-1))[0]).sum())
    shares = {name: 100 * spent[name] / spent["all"] for name in ("draw", "weigh")}
    return {
        "decisions": decisions,
        "rate": decisions / spent["all"],
        "ms": 1e3 * spent["all"] / decisions,
        **shares,
        "solve": 100 - sum(shares.values()),
        "late": 100 * late / (decisions * worlds),
    }


def played(
    agent: Pimc, rules: Rules, games: int, seed: int, spent: dict[str, float]
) -> Iterator[View]:
    """The decisions of games that an agent plays with itself; `spent` gets its time."""
    vec = DominoVec(games, rules, seed=seed, autoreset=False, observation=False)
    batch = vec.reset()
    while not batch.done.all():
        rows = np.flatnonzero(~batch.done)
        view, actions = agent.view(rules, vec.games[rows]), np.zeros(games, np.int64)
        before = time.process_time()
        actions[rows] = agent.act(view)
        spent["all"] += time.process_time() - before
        choices = view.mask.sum(1) > 1
        if choices.any():
            yield view.rows(choices)
        vec.step(actions, out=batch)


if __name__ == "__main__":
    search(*map(int, sys.argv[1:]))
