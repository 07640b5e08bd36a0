"""The training loop, and the command `domino train`."""

from __future__ import annotations

import signal
import sys
from contextlib import nullcontext
from pathlib import Path

from agents.checkpoint import gathered_games, restore
from agents.config import config_path, described, read_config, split_options
from agents.evaluate import evaluate
from agents.ppo import Config, Learner
from agents.run import CHECKPOINT, CONFIG_FILE, Bar, Run, RunError, held, new_folder
from domino_env.rules import Rules


def train(run: Run | None, learner: Learner) -> None:
    """Train until the run is finished or interrupted; either way the run is saved.

    Of several processes the first has the run, the others None.
    """
    config, ranks = learner.config, learner.ranks
    stop = StopOnInterrupt()
    with Bar(shown=run is not None) as bar, stop:
        while not (learner.finished or ranks.agree(stop.asked)):
            figures = learner.update()
            if run is not None and _is_due(config.evaluate_every, learner.updates):
                figures |= evaluations(learner)
            bar.show(learner.progress, learner.decisions, figures)
            if run is not None:
                run.log(learner.updates, learner.decisions, figures)
            if _is_due(config.save_every, learner.updates):
                save(run, learner)
        save(run, learner)
    if run is not None:
        run.draw()


def resume(run: Run | None, folder: Path, learner: Learner) -> None:
    """Put a new learner where the run in `folder` was saved last."""
    try:
        restore(folder / CHECKPOINT, learner)
    except ValueError as error:
        raise RunError(str(error)) from None
    if run is not None:
        run.forget_after(learner.updates)
        run.write_config(learner.config)


def _is_due(every: int, updates: int) -> bool:
    return every > 0 and updates % every == 0


def save(run: Run | None, learner: Learner) -> None:
    """Save the run; every process hands in its games."""
    games = gathered_games(learner)
    if run is not None:
        run.save(learner, games)


def evaluations(learner: Learner) -> dict[str, float]:
    """The results against the baselines, on the same deals each time."""
    figures: dict[str, float] = {}
    tables = learner.tables
    for table, label in zip(tables, labels([table.rules for table in tables]), strict=True):
        for baseline in learner.baselines:
            deals = learner.config.evaluate_deals
            result = evaluate(learner.agent(), baseline, table.rules, deals, seed=10**9)
            key = f"eval/{baseline.name}" if len(tables) == 1 else f"eval/{label}/{baseline.name}"
            figures |= {key: result.mean, f"{key}_ci95": result.ci95}
    return figures


def labels(games: list[Rules]) -> list[str]:
    """A short name for each of several games, all different."""
    names = [f"{g.preset}-{'pairs' if g.teams else g.seats}" for g in games]
    return [name if names.count(name) == 1 else f"{name}-{k}" for k, name in enumerate(names)]


class StopOnInterrupt:
    """While it is entered, Ctrl-C asks to stop after the update under way; a second one stops."""

    def __enter__(self) -> StopOnInterrupt:
        self.asked = False
        self.before = signal.signal(signal.SIGINT, self.ask)
        return self

    def ask(self, *_: object) -> None:
        """Note the first interrupt; the next one has its usual effect."""
        self.asked = True
        signal.signal(signal.SIGINT, self.before)

    def __exit__(self, *_: object) -> None:
        signal.signal(signal.SIGINT, self.before)


USAGE = """usage: domino train CONFIG [--run FOLDER] [--FIELD VALUE ...]
       domino train --resume FOLDER [--FIELD VALUE ...]

CONFIG is a YAML file, or the name of a shipped one. --rules.seats 4 changes a field of the rules.
Ctrl-C saves the run; --resume goes on exactly where it was saved.

fields and what they are without a word in the file:
"""


def main(arguments: list[str] | None = None) -> None:
    """The command `domino train`, also as `python train.py`; `ValueError` on bad input."""
    words = split_options(sys.argv[1:] if arguments is None else arguments)
    if {"-h", "--help"} & set(words):
        print(USAGE + described(Config))
        return
    folder = _taken(words, "--run")
    resumed = _taken(words, "--resume")
    if resumed is not None and folder is not None:
        raise RunError("train: found both --run and --resume, expected one of them")
    if resumed is not None and words and not words[0].startswith("-"):
        raise RunError(f"train: found {words[0]!r} and --resume, expected one of them")
    if resumed is not None:
        path = Path(resumed) / CONFIG_FILE
    elif not words:
        raise RunError("train: found no config, expected a config or --resume FOLDER")
    elif words[0].startswith("-"):
        raise RunError(f"train: found {words[0]!r} first, expected a config or --resume FOLDER")
    else:
        path = config_path(words.pop(0))
    config = read_config(path, Config, words)
    if resumed is not None:
        check_unchanged(read_config(path, Config), config)
    learner = _new_learner(config)
    where = Path(resumed or folder or new_folder(path.stem))
    first = learner.ranks.first
    with held(where) if first else nullcontext():
        run = Run(where, config, resume=bool(resumed)) if first else None
        if resumed is not None:
            resume(run, where, learner)
        train(run, learner)
    if first and learner.finished:
        print(f"Trained and saved: {where}")
    elif first:
        print(f"Interrupted and saved; go on with: domino train --resume {where}")


def check_unchanged(before: Config, now: Config) -> None:
    """Raise `RunError` where a run is to go on with another network or optimiser."""
    network = ("network", "hidden", "history", "belief", "privileged_critic", "observe_as")
    for name in (*network, "hands_weight", "optimiser"):
        found, expected = getattr(now, name), getattr(before, name)
        if found != expected:
            raise RunError(f"{name}: found {found}, expected {expected}, with which the run began")


def _new_learner(config: Config) -> Learner:
    try:
        return Learner(config)
    except (MemoryError, RuntimeError) as error:
        raise RunError(
            f"train: found no room for {config.games} games of {config.steps} steps and layers of "
            f"{config.hidden}, expected fewer ({error})"
        ) from None


def _taken(words: list[str], option: str) -> str | None:
    """Take `option VALUE` out of the words; its value, None where it is not among them."""
    if option not in words:
        return None
    at = words.index(option)
    if at + 1 == len(words):
        raise RunError(f"train: found {option} without a folder, expected {option} FOLDER")
    words.pop(at)
    return words.pop(at)
