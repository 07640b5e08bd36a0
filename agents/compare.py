"""The subcommands of `domino` that play agents against each other: evaluate, tournament."""

from __future__ import annotations

import contextlib
import json
import os
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Annotated, Any

from rich.console import Console
from tyro.conf import Positional, arg

from agents.base import Agent, is_folder, load
from agents.evaluate import evaluate
from agents.games import GameFile, check_new, check_place
from agents.options import (
    BAD_INPUT,
    GOOD,
    INTERRUPTED,
    RulesOptions,
    Switch,
    progress_bar,
)
from agents.result import Budget, Result
from agents.tables import cross_table, import_figure, results_table, write_csv, write_heat_map
from agents.tournament import Tournament, play_tournament

DEALS = 10_000


def _tidy(name: str) -> str:
    """The shortest way to write a folder, if that does not make it a bot's name."""
    tidy = os.path.normpath(name)
    return tidy if is_folder(name) and is_folder(tidy) else name


def _interrupted(
    done: int, pairings: int, part: Result | None = None, goes_on: bool = False
) -> int:
    """Tell how far it came, on stderr; returns the exit status."""
    more = "" if part is None else f" and {part.deals:,} deals of the next"
    hint = "; the same command goes on" if goes_on else ""
    print(f"domino: interrupted after {done} of {pairings} pairings{more}{hint}", file=sys.stderr)
    return INTERRUPTED


@dataclass(kw_only=True)
class MatchOptions(RulesOptions):
    """Options of the subcommands that play agents against each other."""

    deals: Annotated[int | None, arg(metavar="N", help_behavior_hint="(default: 10000)")] = None
    """Deals a pairing, each played once for every place; with --until and --until-clear the most,
    left out: no limit."""
    until: Annotated[float | None, arg(metavar="H", help_behavior_hint="")] = None
    """Play until the half width of the 95% interval is at most H."""
    until_clear: Annotated[int | None, arg(metavar="N", help_behavior_hint="")] = None
    """Play N deals, then twice as many, and so on, until the 95% interval does not hold 0."""
    threads: Annotated[int | None, arg(metavar="N", help_behavior_hint="")] = None
    """Threads that play; left out, one for each core. The results are the same with any number."""
    seed: Annotated[int, arg(metavar="S")] = 0
    """Seed of the deals and of the agents' choices."""
    device: str = "cpu"
    """Where networks run."""
    save: Annotated[str | None, arg(metavar="FILE", help_behavior_hint="")] = None
    """Write a record of every game to this file, for domino replay."""

    def loaded(self, names: tuple[str, ...]) -> list[Agent]:
        """The agents of these names; a folder is called the same however it is written."""
        return [load(_tidy(name), device=self.device) for name in names]

    def how(self) -> dict[str, Any]:
        """The arguments that `evaluate` and `play_tournament` take, without the file."""
        limit = self.until is not None or self.until_clear is not None
        deals = DEALS if self.deals is None and not limit else self.deals
        budget = Budget(deals, self.until, self.until_clear)
        return {**vars(budget), "seed": self.seed, "threads": self.threads}


@dataclass(kw_only=True)
class Evaluate(MatchOptions):
    """Play A against each of the others, duplicate deals in every place.

    An agent is a bot (random, lightest, heaviest, double_first, mobility, blocker, expert, pimc:N,
    cfr:N on small sets) or the folder of a trained one (runs/NAME).
    """

    agents: Annotated[
        Positional[tuple[str, ...]], arg(metavar="A B [C ...]", help_behavior_hint="")
    ]
    """A and its opponents."""
    as_json: Annotated[Switch, arg(name="json", help_behavior_hint="")] = False
    """Print JSON: an object, or for several opponents a list of them."""

    def run(self) -> int:
        """Play, and print what there is, after Ctrl-C or a failing agent too."""
        if len(self.agents) < 2:
            found = f"{len(self.agents)} agent" + ("" if len(self.agents) == 1 else "s")
            raise ValueError(f"evaluate: found {found}, expected A and at least one opponent")
        a, *others = self.loaded(self.agents)
        rules, how = self.chosen_rules(self.agents), self.how()
        for agent in (a, *others):
            agent.check(rules)
        if self.save is not None:
            check_new(self.save)
        results: list[Result] = []
        try:
            with contextlib.nullcontext() if self.save is None else GameFile(self.save) as games:
                for b in others:
                    with self._progress(f"{a.name} against {b.name}") as progress:
                        results.append(evaluate(a, b, rules, progress=progress, save=games, **how))
                    if games is not None:
                        games.keep()
                    if results[-1].interrupted:
                        return _interrupted(len(results) - 1, len(others), results[-1])
            return GOOD
        except KeyboardInterrupt:
            return _interrupted(len(results), len(others))
        finally:
            if results:
                self._print(results, whole=len(others) == 1)

    def _print(self, results: list[Result], whole: bool) -> None:
        if self.as_json:
            figures = [result.to_dict() for result in results]
            print(json.dumps(figures[0] if whole else figures))
        else:
            Console().print(results_table(results))

    @contextlib.contextmanager
    def _progress(self, title: str) -> Iterator[Callable[[Result], None] | None]:
        """A bar on stderr with the result so far, where stderr is a terminal."""
        most = self.how()["deals"]
        with progress_bar(title) as bar:

            def show(result: Result) -> None:
                assert bar is not None
                total = most
                if self.until is not None:  # the interval shrinks with the root of the deals
                    needed = round(result.deals * (result.ci95 / self.until) ** 2)
                    total = needed if most is None else min(most, needed)
                bar(result.deals, total, result.interval())

            yield None if bar is None else show


@dataclass(kw_only=True)
class Compete(MatchOptions):
    """Play every agent against every other on the same deals, and rate them all."""

    agents: Annotated[Positional[tuple[str, ...]], arg(metavar="A B C ...", help_behavior_hint="")]
    """Agents, as `domino evaluate` takes them."""
    out: Annotated[str | None, arg(metavar="FOLDER", help_behavior_hint="")] = None
    """Keep all results in this folder; the same command goes on from where it was stopped."""
    csv: Annotated[str | None, arg(metavar="FILE", help_behavior_hint="")] = None
    """Write the results to this file, a row for each agent against each other."""
    png: Annotated[str | None, arg(metavar="FILE", help_behavior_hint="")] = None
    """Write the cross-table to this file, as a picture."""
    as_json: Annotated[Switch, arg(name="json", help_behavior_hint="")] = False
    """Print one JSON object."""

    def run(self) -> int:
        """Play, and print and write what there is, after Ctrl-C or failing agents too."""
        agents = self.loaded(self.agents)
        rules, how = self.chosen_rules(self.agents), self.how()
        for file in filter(None, (self.csv, self.png)):
            check_place(file)
        if self.png is not None:
            import_figure()
        with progress_bar("pairings") as bar:
            played = play_tournament(
                agents, rules, folder=self.out, progress=bar, save=self.save, **how
            )
        self._show(played)
        for error in dict.fromkeys(played.failures.values()):
            print(f"domino: {error}", file=sys.stderr)
        if not played.ended:
            done = len(played.results) + len(played.failures)
            goes_on = self.out is not None
            return _interrupted(done, len(played.pairings), played.begun, goes_on)
        return BAD_INPUT if played.failures else GOOD

    def _show(self, played: Tournament) -> None:
        if self.as_json:
            print(json.dumps(played.to_dict()))
        else:
            Console().print(cross_table(played))
        if not played.results:  # what an earlier tournament wrote is worth more
            return
        if self.csv is not None:
            write_csv(played, self.csv)
        if self.png is not None:
            write_heat_map(played, self.png)
