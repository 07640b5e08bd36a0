"""How exploitable the learner is on small games, exactly: NashConv over training.

    python -m benchmarks.nashconv

Each game of configs/small is learned by each of METHODS with each of SEEDS, on one thread. A run
is kept in results/nashconv, and made again only if its settings have changed. Then the table of
docs/exploitability.md is printed, with CFR+ on the same game beside it, and its picture drawn.
"""

from __future__ import annotations

import json
import statistics
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from agents.base import View
from agents.config import CONFIGS, read_config
from agents.curves import COLOURS
from agents.exact import CfrPlus, exploitability, normalised, strategy_of, uniform
from agents.policy import PolicyAgent, write_file
from agents.ppo import Config, Learner
from agents.small_game import SmallGame, small_game

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "results" / "nashconv"
PICTURE = ROOT / "docs" / "images" / "nashconv.png"
SEEDS = (0, 1, 2)
LOOKS = 16  # times that a run is scored, at equal distances
CFR_ENOUGH = 1e-6  # CFR+ stops here, if its time is not over before


@dataclass(frozen=True)
class Game:
    """A game of configs/small, and how exploitable its policies may be at most."""

    title: str
    target: float


GAMES = {
    "double_2_hand_2": Game("double-2, hands of 2", 0.01),
    "double_3_hand_3": Game("double-3, hands of 3", 0.05),
}
# What each method changes in the configuration of the game. The divergence from uniform play is
# the entropy turned round, so an entropy that falls to 0 makes the pull of the uniform magnet fall.
METHODS: dict[str, dict[str, Any]] = {
    "PPO": {},
    "uniform magnet": {
        "magnet": "uniform",
        "magnet_weight": 0.05,
        "entropy": 0.15,
        "entropy_end": 0.0,
    },
    "periodic magnet": {
        "magnet": "periodic",
        "magnet_weight": 0.1,
        "magnet_every": 40,
        "entropy": 0.1,
    },
}


@dataclass(frozen=True)
class Score:
    """NashConv in the course of a run."""

    decisions: int
    seconds: float  # of CPU time, training alone
    averaged: float  # of the averaged network, which is the one that is played
    last: float  # of the network as it stands


@dataclass(frozen=True)
class Trained:
    """A run: what it was, and how exploitable it was from the beginning to the end."""

    game: str
    method: str
    seed: int
    settings: dict[str, Any]
    scores: list[Score]


def main() -> list[dict[str, Any]]:
    """Make the runs that are missing, print the table, draw the picture; returns the rows."""
    runs = train_all()
    rows = [row for game in GAMES for row in rows_of(game, runs)]
    print(table(rows))
    draw(runs)
    print(f"drawn: {PICTURE.relative_to(ROOT)}")
    return rows


# ---------------------------------------------------------------- runs


def train_all() -> list[Trained]:
    """All runs, those that are not kept yet made and written."""
    jobs = [(game, method, seed) for game in GAMES for method in METHODS for seed in SEEDS]
    columns = TextColumn("{task.description}"), BarColumn(bar_width=20), TimeRemainingColumn()
    with Progress(*columns, console=Console(stderr=True)) as bar:
        task = bar.add_task("", total=sum(config_of(*job).decisions for job in jobs))
        runs = []
        for game, method, seed in jobs:
            bar.update(task, description=f"{game}, {method}, seed {seed}")
            run = kept(game, method, seed)
            if run is None:
                run = trained(game, method, seed, lambda decisions: bar.advance(task, decisions))
            else:
                bar.advance(task, config_of(game, method, seed).decisions)
            runs.append(run)
    return runs


def config_of(game: str, method: str, seed: int) -> Config:
    """The configuration of a run."""
    base = read_config(CONFIGS / "small" / f"{game}.yaml", Config)
    return replace(base, **METHODS[method], seed=seed)


def path_of(game: str, method: str, seed: int) -> Path:
    """Where a run is kept."""
    return FOLDER / f"{game}-{method.replace(' ', '_')}-{seed}.json"


def settings_of(config: Config) -> dict[str, Any]:
    """What is not as `Config` has it, as it comes back from JSON."""
    default = asdict(Config())
    changed = {name: value for name, value in asdict(config).items() if value != default[name]}
    return json.loads(json.dumps(changed))


def kept(game: str, method: str, seed: int) -> Trained | None:
    """A run that was made before, by the same settings."""
    path = path_of(game, method, seed)
    if not path.exists():
        return None
    found = json.loads(path.read_text(encoding="utf-8"))
    if found["settings"] != settings_of(config_of(game, method, seed)):
        return None
    return Trained(**found | {"scores": [Score(**score) for score in found["scores"]]})


def trained(game: str, method: str, seed: int, progress: Callable[[int], None]) -> Trained:
    """Make a run, and keep it; `progress` is told the decisions of each update."""
    config = config_of(game, method, seed)
    Learner(replace(config, decisions=1)).update()  # compiles
    run = Trained(game, method, seed, settings_of(config), scores_of(config, progress))
    FOLDER.mkdir(parents=True, exist_ok=True)
    write_file(path_of(game, method, seed), (json.dumps(asdict(run), indent=1) + "\n").encode())
    last = run.scores[-1]
    print(f"{game}, {method}, seed {seed}: {last.averaged:.4f} in {last.seconds:.0f} s", flush=True)
    return run


def scores_of(config: Config, progress: Callable[[int], None]) -> list[Score]:
    """Train, and score the policy LOOKS times on the way."""
    learner, game = Learner(config), small_game(config.games_rules[0])
    every = max(1, config.decisions // (config.games * config.steps * LOOKS))
    scores, seconds = [score(learner, game, 0.0)], 0.0
    while not learner.finished:
        began = time.process_time()
        learner.update()
        seconds += time.process_time() - began
        progress(config.games * config.steps)
        if learner.updates % every == 0 or learner.finished:
            scores.append(score(learner, game, seconds))
    return scores


def score(learner: Learner, game: SmallGame, seconds: float) -> Score:
    """How exploitable the averaged network and the last one are."""
    agents = learner.agent(), PolicyAgent(learner.network, "last", seed=0)
    figures = [exploitability(game, strategy_of(agent, game)).nashconv for agent in agents]
    return Score(learner.decisions, round(seconds, 2), *(round(figure, 6) for figure in figures))


# ---------------------------------------------------------------- table


def rows_of(name: str, runs: list[Trained]) -> list[dict[str, Any]]:
    """The rows of a game: uniform play, the methods, and CFR+ in the CPU time of a run."""
    game = small_game(config_of(name, "PPO", 0).games_rules[0])
    even = exploitability(game, uniform(game)).nashconv
    rows = [{"name": "uniform play", "nashconv": [even]}]
    for method in METHODS:
        own = [run for run in runs if (run.game, run.method) == (name, method)]
        last = [run.scores[-1] for run in own]
        figures = {"nashconv": [at.averaged for at in last], "last": [at.last for at in last]}
        seconds = statistics.median(at.seconds for at in last)
        rows.append({"name": method, **figures, "seconds": seconds})
    best = min(statistics.median(row["nashconv"]) for row in rows[1:])
    rows += cfr_rows(game, best, statistics.median(row["seconds"] for row in rows[1:]))
    return [{"game": GAMES[name].title, "target": GAMES[name].target, **row} for row in rows]


def cfr_rows(game: SmallGame, best: float, seconds: float) -> list[dict[str, Any]]:
    """CFR+ when it is as good as the best method, and when `seconds` of CPU time are over.

    Then the same without what the observation does not show, the order of the events.
    """
    CfrPlus(game).run(1)  # compiles
    solver, took, found = CfrPlus(game), 0.0, []
    nashconv = float("inf")
    while took < seconds and nashconv > CFR_ENOUGH:
        began = time.process_time()
        solver.run(max(1, solver.iterations // 10))
        took += time.process_time() - began
        nashconv = exploitability(game, solver.strategy).nashconv
        if (not found and nashconv <= best) or took >= seconds or nashconv <= CFR_ENOUGH:
            name = f"CFR+, {solver.iterations:,} iterations"
            found.append({"name": name, "nashconv": [nashconv], "seconds": took})
    shown_less = exploitability(game, by_observation(game, solver.strategy)).nashconv
    return [*found, {"name": "the same, by the observation alone", "nashconv": [shown_less]}]


def by_observation(game: SmallGame, strategy: np.ndarray) -> np.ndarray:
    """The mean of a strategy over the information sets that have one observation, float64 [S]."""
    view = View.of(game.rules, game.positions(0, game.infosets), frozenset({"observation"}))
    assert view.observation is not None
    _, alike = np.unique(view.observation, axis=0, return_inverse=True)
    own = slice(game.tree.first[0], None)
    chances, sums = np.zeros(view.mask.shape), np.zeros((alike.max() + 1, view.mask.shape[1]))
    chances[view.mask != 0] = strategy[own]  # lowest first, as the sequences are
    np.add.at(sums, alike, chances)
    weights = strategy.copy()
    weights[own] = sums[alike][view.mask != 0]
    return normalised(game, weights)


def table(rows: list[dict[str, Any]]) -> str:
    """The rows as Markdown; NashConv as median (least to greatest) of the seeds."""
    lines = ["| game | played by | NashConv | of the last weights | target | CPU seconds |"]
    lines.append("|---|---|--:|--:|--:|--:|")
    for row in rows:
        figures = [spread(row["nashconv"]), spread(row.get("last", [])), f"{row['target']:g}"]
        seconds = f"{row['seconds']:.3g}" if "seconds" in row else ""
        lines.append(f"| {' | '.join([row['game'], row['name'], *figures, seconds])} |")
    return "\n".join(lines)


def spread(figures: list[float]) -> str:
    """Median (least to greatest)."""
    if len(figures) < 2:
        return "".join(shown(figure) for figure in figures)
    return f"{shown(statistics.median(figures))} ({shown(min(figures))} to {shown(max(figures))})"


def shown(figure: float) -> str:
    """Four places, or two digits of what they would hide."""
    return f"{figure:.4f}" if figure >= 0.001 else f"{figure:.1e}"


# ---------------------------------------------------------------- picture


def draw(runs: list[Trained]) -> None:
    """Write PICTURE: a panel for each game, a line for each run, the medians thick."""
    from matplotlib.figure import Figure
    from matplotlib.ticker import LogLocator

    figure = Figure(figsize=(11, 4.5), layout="constrained")
    for axes, (name, game) in zip(figure.subplots(1, len(GAMES)), GAMES.items(), strict=True):
        for method, colour in zip(METHODS, COLOURS, strict=False):
            own = [run for run in runs if (run.game, run.method) == (name, method)]
            lines = np.array([[at.averaged for at in run.scores] for run in own])
            x = np.array([at.decisions for at in own[0].scores]) / 1e6
            axes.plot(x, lines.T, color=colour, linewidth=0.7, alpha=0.5)
            axes.plot(x, np.median(lines, 0), color=colour, linewidth=2, label=method)
        axes.axhline(game.target, color="black", linestyle="--", linewidth=1, label="target")
        axes.set_yscale("log")
        axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        axes.yaxis.set_major_formatter("{x:g}")
        axes.yaxis.set_minor_formatter("")
        axes.set_title(f"sin_robo, {game.title}")
        axes.set_xlabel("decisions, millions")
        axes.set_ylabel("NashConv")
        axes.grid(alpha=0.3, which="both")
        axes.legend()
    PICTURE.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(PICTURE, dpi=110)


if __name__ == "__main__":
    main()
