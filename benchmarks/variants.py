"""What each switch of the learner is worth: strength after the same CPU time.

    python -m benchmarks.variants [NAME ...]

Every variant learns each of GAMES for MINUTES of CPU time on one thread, one after another, and is
then measured on the same duplicate deals; the one that learns all GAMES at once gets as much time
as all of them. Schedules follow the CPU time, so that a busy machine changes little. What has been
measured is kept in results/variants and not measured again; NAMEs choose variants.
"""

from __future__ import annotations

import sys
import time
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import msgspec
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from agents.base import load
from agents.evaluate import evaluate
from agents.policy import write_file
from agents.ppo import Config, Learner
from domino_env import Rules

FOLDER = Path(__file__).resolve().parent.parent / "results" / "variants"
MINUTES = 3.0  # of CPU time, for each game
DEALS = 8192
BASELINES = ("expert", "heaviest")
GAMES: dict[str, dict[str, Any]] = {
    "cabra, 2 seats": {"preset": "cabra", "episode": "round"},
    "sin_robo, pairs": {"preset": "sin_robo", "seats": 4, "teams": True},
}
ALIKE: dict[str, Any] = {"teacher_share": 0.1, "entropy": 0.1, "epochs": 1}
ALIKE |= {"minibatch": 1024, "learning_rate": 0.004}
GRAPH: dict[str, Any] = {**ALIKE, "network": "graph", "hidden": (128, 32), "teacher": "expert"}
VARIANTS: dict[str, dict[str, Any]] = {
    "graph": GRAPH,
    "mlp": {**GRAPH, "network": "mlp", "hidden": (256, 256)},
    "attention": {**GRAPH, "network": "attention", "hidden": (64, 64)},
    "graph, two rounds": {**GRAPH, "hidden": (128, 32, 32)},
    "graph, wider": {**GRAPH, "hidden": (256, 64)},
    "graph, privileged critic": {**GRAPH, "privileged_critic": True},
    "graph, belief": {**GRAPH, "belief": True},
    "graph, history": {**GRAPH, "history": True},
    "graph, history, hands": {**GRAPH, "history": True, "hands_weight": 0.1},
    "graph, no teacher": {**GRAPH, "teacher": ""},
    "graph, solver": {**GRAPH, "solver_weight": 2.0, "solver_from": 10, "solver_share": 0.5},
    "graph, 2 epochs": {**GRAPH, "epochs": 2},
    "graph, muon": {**GRAPH, "optimiser": "muon"},
    "graph, learning rate 0.001": {**GRAPH, "learning_rate": 0.001},
    "graph, entropy 0.05": {**GRAPH, "entropy": 0.05},
    "graph, pool": {**GRAPH, "pool": 0.3},
    "graph, uniform magnet": {**GRAPH, "magnet": "uniform"},
    "graph, periodic magnet": {**GRAPH, "magnet": "periodic"},
}
TOGETHER = "graph, all games at once"


@dataclass(frozen=True)
class Measured:
    """A variant after its training."""

    game: str
    variant: str
    changes: dict[str, Any]
    minutes: float  # of CPU time
    decisions: int
    results: dict[str, dict[str, Any]]  # of each baseline, as `Result.to_dict` gives them


def main(names: list[str] | None = None) -> list[dict[str, Any]]:
    """Measure what is missing and print the table; returns its rows."""
    names = names or [*VARIANTS, TOGETHER]
    jobs = [(name, [game]) for name in names if name in VARIANTS for game in GAMES]
    jobs += [(TOGETHER, [*GAMES])] if TOGETHER in names else []
    columns = TextColumn("{task.description}"), BarColumn(bar_width=20), TimeRemainingColumn()
    with Progress(*columns, console=Console(stderr=True)) as bar:
        task = bar.add_task("", total=sum(len(games) for _, games in jobs))
        for name, games in jobs:
            bar.update(task, description=f"{name}: {', '.join(games)}")
            if any(kept(name, game) is None for game in games):
                measure(name, games)
            bar.advance(task, len(games))
    rows = [asdict(found) for found in all_kept()]
    print(table())
    return rows


def config_of(name: str, games: list[str]) -> Config:
    """The configuration of a variant."""
    rules = [GAMES[game] for game in games]
    config = Config(
        rules=rules[0],
        minutes=MINUTES * len(games),
        schedule="minutes",
        decisions=2**40,
        workers=1,
        evaluate_every=0,
        **VARIANTS.get(name, GRAPH),
    )
    return replace(config, rules=rules, observe_as=4) if len(games) > 1 else config


def measure(name: str, games: list[str]) -> None:
    """Train a variant, and keep what it is worth in each of its games."""
    config = config_of(name, games)
    learner = Learner(config)
    learner.update()  # what is compiled or allocated once is not counted
    learner.seconds, began = 0.0, time.process_time()
    while not learner.finished:
        learner.update()
        learner.seconds = time.process_time() - began
    agent = learner.agent()
    for game in games:
        rules = Rules.from_dict(GAMES[game])
        results = {
            baseline: evaluate(agent, load(baseline, seed=1), rules, DEALS, seed=10**9).to_dict()
            for baseline in BASELINES
        }
        minutes = learner.seconds / 60
        changes = VARIANTS.get(name, GRAPH)
        found = Measured(game, name, changes, minutes, learner.decisions, results)
        FOLDER.mkdir(parents=True, exist_ok=True)
        write_file(path_of(name, game), msgspec.json.format(msgspec.json.encode(found)) + b"\n")


def path_of(name: str, game: str) -> Path:
    """Where a measurement is kept."""
    return FOLDER / f"{game}-{name}.json".replace(", ", "-").replace(" ", "_")


def kept(name: str, game: str) -> Measured | None:
    """What has been measured of the variant as it is now, in one game."""
    path = path_of(name, game)
    if not path.exists():
        return None
    found = msgspec.json.decode(path.read_bytes(), type=Measured)
    now = msgspec.json.decode(msgspec.json.encode(VARIANTS.get(name, GRAPH)))
    return found if found.changes == now else None


def all_kept() -> list[Measured]:
    """All that has been measured, the games one after the other."""
    found = (kept(name, game) for game in GAMES for name in [*VARIANTS, TOGETHER])
    return [one for one in found if one is not None]


def table() -> str:
    """What has been measured as a table in Markdown."""
    head = ["game", "variant", "decisions", *(f"against `{name}`" for name in BASELINES)]
    rows = [head, ["---"] * 2 + ["--:"] * (len(head) - 2)]
    for found in all_kept():
        cells = [
            f"{found.results[name]['mean']:+.3f} ± {found.results[name]['ci95']:.3f}"
            for name in BASELINES
        ]
        rows.append([found.game, found.variant, f"{found.decisions / 1e6:.1f} M", *cells])
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


if __name__ == "__main__":
    unknown = set(sys.argv[1:]) - {*VARIANTS, TOGETHER}
    if unknown:
        expected = "; ".join([*VARIANTS, TOGETHER])
        sys.exit(f"variants: found {', '.join(sorted(unknown))}, expected some of: {expected}")
    main(sys.argv[1:])
