"""The `domino` command: train, evaluate, tournament, play, replay, exploit, bench.

On bad input every subcommand prints one clear line on stderr and ends with status 2.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Annotated, Any, TypeVar

import tyro
import yaml
from tyro.conf import FlagCreatePairsOff, Positional, UseAppendAction, arg, subcommand

from agents.base import import_trained, is_folder, load
from agents.evaluate import Result, evaluate, results_table
from agents.exact import Cfr, exploitability, strategy_of
from agents.play import play_in_terminal
from agents.small_game import check_size, small_game
from agents.tournament import (
    Tournament,
    cross_table,
    import_figure,
    play_tournament,
    write_csv,
    write_heat_map,
)
from domino_env.errors import RecordError
from domino_env.record import read_records, record_text
from domino_env.rules import DEFAULT_PRESET, Rules

T = TypeVar("T")
GOOD, BAD_INPUT, INTERRUPTED = 0, 2, 130  # exit statuses
Switch = FlagCreatePairsOff[bool]
Settings = Annotated[UseAppendAction[tuple[str, ...]], arg(name="set", metavar="FIELD=VALUE")]


# ---------------------------------------------------------------- the subcommands


@dataclass(kw_only=True)
class RulesOptions:
    """Options of the subcommands that play by given rules."""

    rules: Annotated[str | None, arg(metavar="NAME", help_behavior_hint="")] = None
    """Preset: cabra, sin_robo, estandar. Left out: that of the first run given, else sin_robo."""
    seats: Annotated[int | None, arg(metavar="N", help_behavior_hint="")] = None
    """Seats, 2 to 4."""
    settings: Settings = ()
    """Another field of the rules, such as teams=true."""

    def chosen_rules(self, agents: Sequence[str]) -> Rules:
        """The rules that the options name; `agents` are those that will play."""
        fields = parse_settings(self.settings)
        if self.seats is not None and fields.setdefault("seats", self.seats) != self.seats:
            raise ValueError("seats: found both in --seats and in --set, expected one of them")
        rules = _rules_of_run(agents) or DEFAULT_PRESET if self.rules is None else self.rules
        return Rules.of(rules, **fields)


def parse_settings(settings: Sequence[str]) -> dict[str, Any]:
    """The fields that texts like `teams=true` give; a value is what YAML reads it as."""
    fields: dict[str, Any] = {}
    for setting in settings:
        name, equals, value = setting.partition("=")
        if not name or not equals:
            raise ValueError(f"--set: found {setting!r}, expected FIELD=VALUE")
        if name in fields:
            raise ValueError(f"--set: found {name} twice, expected it once")
        try:
            fields[name] = yaml.safe_load(value)
        except yaml.YAMLError:
            raise ValueError(f"--set: found {setting!r}, expected a plain value") from None
    return fields


def _rules_of_run(agents: Sequence[str]) -> Rules | None:
    for name in agents:
        if is_folder(name):
            return import_trained("agents.policy", name).policy_rules(name)
    return None


@dataclass(kw_only=True)
class Evaluate(RulesOptions):
    """Play A against each of the others, duplicate deals in every place.

    An agent is a bot (random, lightest, heaviest, double_first, mobility, blocker, expert, pimc:N,
    cfr:N on small sets) or the folder of a trained one (runs/NAME).
    """

    agents: Annotated[
        Positional[tuple[str, ...]], arg(metavar="A B [C ...]", help_behavior_hint="")
    ]
    """A and its opponents."""
    deals: Annotated[int, arg(metavar="N")] = 10_000
    """Deals, each played once for every place that A can take."""
    seed: Annotated[int, arg(metavar="S")] = 0
    """Seed of the deals and of the agents' choices."""
    device: str = "cpu"
    """Where networks run."""
    as_json: Annotated[Switch, arg(name="json", help_behavior_hint="")] = False
    """Print JSON: an object, or for several opponents a list of them."""

    def run(self) -> int:
        """Play, and print what there is, after Ctrl-C or a failing agent too."""
        if len(self.agents) < 2:
            found = f"{len(self.agents)} agent" + ("" if len(self.agents) == 1 else "s")
            raise ValueError(f"evaluate: found {found}, expected A and at least one opponent")
        a, *others = (load(name, device=self.device) for name in self.agents)
        rules = self.chosen_rules(self.agents)
        results: list[Result] = []
        try:
            for b in others:
                with _progress(f"{a.name} against {b.name}", self.deals) as progress:
                    results.append(evaluate(a, b, rules, self.deals, self.seed, progress))
                if results[-1].deals < self.deals:
                    return INTERRUPTED
            return GOOD
        finally:
            if results:
                self._print(results, whole=len(others) == 1)

    def _print(self, results: list[Result], whole: bool) -> None:
        if self.as_json:
            figures = [result.to_dict() for result in results]
            print(json.dumps(figures[0] if whole else figures))
        else:
            from rich.console import Console

            Console().print(results_table(results))


@dataclass(kw_only=True)
class Compete(RulesOptions):
    """Play every agent against every other on the same deals, and rate them all."""

    agents: Annotated[Positional[tuple[str, ...]], arg(metavar="A B C ...", help_behavior_hint="")]
    """Agents, as `domino evaluate` takes them."""
    deals: Annotated[int, arg(metavar="N")] = 10_000
    """Deals a pairing, each played once for every place."""
    seed: Annotated[int, arg(metavar="S")] = 0
    """Seed of the deals and of the agents' choices."""
    device: str = "cpu"
    """Where networks run."""
    out: Annotated[str | None, arg(metavar="FOLDER", help_behavior_hint="")] = None
    """Keep each pairing in this folder; the same command goes on from there."""
    csv: Annotated[str | None, arg(metavar="FILE", help_behavior_hint="")] = None
    """Write the results to this file, a row for each agent against each other."""
    png: Annotated[str | None, arg(metavar="FILE", help_behavior_hint="")] = None
    """Write the cross-table to this file, as a picture."""
    as_json: Annotated[Switch, arg(name="json", help_behavior_hint="")] = False
    """Print one JSON object."""

    def run(self) -> int:
        """Play, and print and write what there is, after Ctrl-C or failing agents too."""
        agents = [load(name, device=self.device) for name in self.agents]
        rules = self.chosen_rules(self.agents)
        for file in filter(None, (self.csv, self.png)):
            if not Path(file).parent.is_dir():
                raise ValueError(f"{file}: found no folder {Path(file).parent}, expected it")
        if self.png is not None:
            import_figure()
        with _bar("pairings") as bar:
            played = play_tournament(agents, rules, self.deals, self.seed, self.out, bar)
        self._show(played)
        for error in dict.fromkeys(played.failures.values()):
            print(f"domino: {error}", file=sys.stderr)
        if not played.ended:
            return INTERRUPTED
        return BAD_INPUT if played.failures else GOOD

    def _show(self, played: Tournament) -> None:
        if self.as_json:
            print(json.dumps(played.to_dict()))
        else:
            from rich.console import Console

            Console().print(cross_table(played))
        if self.csv is not None:
            write_csv(played, self.csv)
        if self.png is not None:
            write_heat_map(played, self.png)


@contextlib.contextmanager
def _progress(title: str, deals: int) -> Iterator[Callable[[Result], None] | None]:
    """A bar on stderr with the result so far, where stderr is a terminal."""
    with _bar(title) as bar:
        yield bar and (lambda result: bar(result.deals, deals, result.interval()))


@contextlib.contextmanager
def _bar(title: str) -> Iterator[Callable[..., None] | None]:
    """A bar on stderr, to be called with what is done, of how much, and a note; else None."""
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
    )

    console = Console(stderr=True)
    if not console.is_terminal:
        yield None
        return
    text = TextColumn("{task.description}")
    columns = text, BarColumn(), MofNCompleteColumn(), TimeRemainingColumn()
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task(title, total=None)

        def update(done: int, total: int, note: str = "") -> None:
            bar.update(task, completed=done, total=total, description=f"{title} {note}".rstrip())

        yield update


@dataclass(kw_only=True)
class Play(RulesOptions):
    """Play against an agent in the terminal."""

    agent: Annotated[Positional[str], arg(metavar="AGENT")]
    """The agent in all other seats: a bot, or the folder of a trained one."""
    seat: Annotated[int, arg(metavar="N")] = 0
    """Your seat, from 0."""
    seed: Annotated[int | None, arg(metavar="S", help_behavior_hint="")] = None
    """Seed of the deals and of the agent's choices; left out, by chance."""
    device: str = "cpu"
    """Where a network runs."""

    def run(self) -> int:
        """Play one game."""
        agent = load(self.agent, self.seed, self.device)
        rules = self.chosen_rules([self.agent])
        play_in_terminal(agent, rules, self.seat, self.seed)
        return GOOD


@dataclass(kw_only=True)
class Replay:
    """Check the games of a file by playing them again.

    The file has one game record a line. The first fault ends it, with its line number and status 2.
    """

    file: Annotated[Positional[str], arg(metavar="FILE")]
    """A file of game records (JSON Lines)."""
    show: Annotated[Switch, arg(help_behavior_hint="")] = False
    """Print every game readably."""

    def run(self) -> int:
        """Check every line, then print a summary."""
        games = rounds = moves = 0
        try:
            for record in read_records(self.file):
                games, rounds = games + 1, rounds + len(record["rounds"])
                moves += sum(len(entry["moves"]) for entry in record["rounds"])
                if self.show:
                    print(f"Game {games}: {record_text(record)}\n")
        except RecordError as error:
            raise RecordError(f"{self.file}, {error}") from None
        print(f"{self.file}: {games:,} games, {rounds:,} rounds, {moves:,} moves, no fault found")
        return GOOD


@dataclass(kw_only=True)
class Exploit(RulesOptions):
    """Print how much an agent loses to best responses, exactly: small sets and hands only.

    The agent is one that has probabilities: a bot, the folder of a trained one, or cfr:N, the
    average strategy of N iterations of CFR+ on the game.
    """

    agent: Annotated[Positional[str], arg(metavar="AGENT")]
    """The agent in all seats."""
    device: str = "cpu"
    """Where a network runs."""
    as_json: Annotated[Switch, arg(name="json", help_behavior_hint="")] = False
    """Print one JSON object."""

    def run(self) -> int:
        """Build the game, ask the agent everywhere, and print what comes of it."""
        agent = load(self.agent, device=self.device)
        rules = self.chosen_rules([self.agent])
        check_size(rules)
        agent.check(rules)
        with _bar("the game") as progress:
            game = small_game(rules, progress)
        if isinstance(agent, Cfr):
            with _bar("iterations of CFR+") as progress:
                agent.solve(rules, progress)
        with _bar(f"policy of {agent.name}") as progress:
            result = exploitability(game, strategy_of(agent, game, progress))
        self._print(
            {
                "agent": agent.name,
                "nashconv": result.nashconv,
                "value": result.values[0],
                "best": result.best,
                "deals": game.deals,
                "nodes": game.nodes,
                "infosets": game.infosets,
            }
        )
        return GOOD

    def _print(self, figures: dict[str, Any]) -> None:
        if self.as_json:
            print(json.dumps(figures))
            return
        from rich.console import Console
        from rich.table import Table

        table = Table("NashConv, the sum of all gains", f"{figures['nashconv']:.6f}")
        table.add_row(
            f"{figures['agent']} in all seats: value to seat 0", f"{figures['value']:.6f}"
        )
        for seat, value in enumerate(figures["best"]):
            table.add_row(f"value to seat {seat} of its best response", f"{value:.6f}")
        for name in ("deals", "nodes", "infosets"):
            table.add_row(name, f"{figures[name]:,}")
        Console().print(table)


@dataclass(kw_only=True)
class Train:
    """Train an agent: `domino train CONFIG --help` lists the fields that can be changed."""

    config: Annotated[Positional[str], arg(metavar="CONFIG [--FIELD VALUE ...]")]
    """A YAML file, or the name of a shipped config."""

    def run(self) -> int:
        """See `_train`, which gets the options as they are."""
        return _train([self.config])


@dataclass(kw_only=True)
class Bench:
    """Print the speed targets beside what is reached here; needs a source tree."""

    options: Annotated[
        Positional[tuple[str, ...]], arg(metavar="[OPTIONS]", help_behavior_hint="")
    ] = ()
    """Options of the benchmarks."""

    def run(self) -> int:
        """See `_bench`, which gets the options as they are."""
        return _bench(list(self.options))


def _train(argv: list[str]) -> int:
    return import_trained("agents.ppo", "train").main(argv) or GOOD


def _bench(argv: list[str]) -> int:
    tree = Path(__file__).resolve().parent.parent
    if not (tree / "benchmarks" / "__main__.py").is_file():
        raise ValueError(f"bench: found no benchmarks in {tree}, expected a source tree")
    return subprocess.run([sys.executable, "-m", "benchmarks", *argv], cwd=tree).returncode


# ---------------------------------------------------------------- the command line

DELEGATED = {"train": _train, "bench": _bench}  # their options are read elsewhere
Command = (
    Annotated[Train, subcommand("train")]
    | Annotated[Evaluate, subcommand("evaluate")]
    | Annotated[Compete, subcommand("tournament")]
    | Annotated[Play, subcommand("play")]
    | Annotated[Replay, subcommand("replay")]
    | Annotated[Exploit, subcommand("exploit")]
    | Annotated[Bench, subcommand("bench")]
)
DESCRIPTION = "Dominoes: train agents, measure them on duplicate deals, play against them."


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command with `argv` (that of the process if None); returns the exit status."""
    argv = sys.argv[1:] if argv is None else list(argv)
    try:
        if argv and argv[0] in DELEGATED:
            return DELEGATED[argv[0]](argv[1:])
        return parse(Command, argv, "domino", DESCRIPTION).run()  # type: ignore[arg-type]
    except (ValueError, OSError) as error:
        return _fail(error)
    except KeyboardInterrupt:
        return INTERRUPTED


def _fail(error: ValueError | OSError) -> int:
    if isinstance(error, BrokenPipeError):  # whoever read the output, `head` say, has enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return GOOD
    text = str(error)
    if isinstance(error, OSError) and error.filename is not None:
        text = f"{error.filename}: {error.strerror}"
    print(f"domino: {' '.join(text.split())}", file=sys.stderr)
    return BAD_INPUT


def parse(kind: type[T], argv: Sequence[str], prog: str, description: str | None = None) -> T:
    """The options `argv` as an instance of a dataclass, by tyro.

    Raises `ValueError` with one line where tyro prints a box, and `SystemExit(0)` after `--help`.
    """
    box = io.StringIO()
    try:
        with contextlib.redirect_stderr(box):
            return tyro.cli(kind, prog=prog, description=description, args=argv)
    except SystemExit as exited:
        if not exited.code:
            raise
        raise ValueError(_in_one_line(box.getvalue())) from None


def _in_one_line(box: str) -> str:
    """What a box of tyro says: its first part, and the nearest name if there is one.

    A box has its title on top, then parts with rules between them, drawn in UTF-8 or in ASCII.
    """
    plain = re.sub(r"\x1b\[[0-9;]*m", "", box)
    rows = [row.strip("│ ") for row in plain.splitlines()[1:]]
    ruled = groupby(filter(None, rows), lambda row: set(row) <= set("─-╰╯"))
    parts = [list(part) for is_rule, part in ruled if not is_rule]
    if not parts:
        return " ".join(plain.split())
    text = " ".join(parts[0])
    for first, *rest in parts[1:]:
        if first.startswith("Perhaps you meant") and rest:
            text += f", did you mean {rest[0].split()[0]}?"
        elif first.startswith("Available subcommands"):
            text += f". {' '.join([first, *rest])}"
    return text


if __name__ == "__main__":
    sys.exit(main())
