"""The `domino` command: train, evaluate, tournament, play, replay, exploit, bench.

On bad input every subcommand prints one clear line on stderr and ends with status 2.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from tyro.conf import Positional, arg, subcommand

from agents.base import import_trained, load
from agents.compare import Compete, Evaluate
from agents.exploit import Exploit
from agents.options import (
    BAD_INPUT,
    GOOD,
    INTERRUPTED,
    RulesOptions,
    Switch,
    parse,
)
from agents.play import play_in_terminal
from domino_env.errors import RecordError
from domino_env.record import read_records, record_text

# ---------------------------------------------------------------- the subcommands


@dataclass(kw_only=True)
class Play(RulesOptions):
    """Play against an agent in the terminal."""

    agent: Annotated[Positional[str], arg(metavar="AGENT")]
    """The agent in all other seats: a bot, a shipped policy (cabra, cabra-2), or the folder of a
    trained one."""
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
class Train:
    """Train an agent: `domino train CONFIG --help` lists the fields that can be changed."""

    config: Annotated[Positional[str], arg(metavar="CONFIG [--FIELD VALUE ...]")]
    """A YAML file, or the name of a shipped config (cabra, policies/cabra-2)."""

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
    return import_trained("agents.training", "train").main(argv) or GOOD


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


if __name__ == "__main__":
    sys.exit(main())
