"""What the subcommands of `domino` share: reading options, the choice of rules, progress bars."""

from __future__ import annotations

import contextlib
import io
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Annotated, Any, TypeVar

import tyro
import yaml
from tyro.conf import FlagCreatePairsOff, UseAppendAction, arg

from agents.base import SEARCH, import_trained, is_folder
from agents.shipped import game_of
from domino_env.rules import DEFAULT_PRESET, Rules

T = TypeVar("T")
Switch = FlagCreatePairsOff[bool]
Settings = Annotated[UseAppendAction[tuple[str, ...]], arg(name="set", metavar="FIELD=VALUE")]
GOOD, BAD_INPUT, INTERRUPTED = 0, 2, 130  # exit statuses


@dataclass(kw_only=True)
class RulesOptions:
    """Options of the subcommands that play by given rules."""

    rules: Annotated[str | None, arg(metavar="NAME", help_behavior_hint="")] = None
    """Preset: cabra, sin_robo, estandar. Left out: that of the first run or
    policy given (runs/NAME, cabra-2), else sin_robo."""
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
        name = name.rpartition(SEARCH)[0] or name
        if game_of(name):
            return Rules.preset(name)
        if is_folder(name):
            return import_trained("agents.policy", name).policy_rules(name)
    return None


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
    text = _BAD_NUMBER.sub(_bad_number, " ".join(parts[0]))
    for first, *rest in parts[1:]:
        if first.startswith("Perhaps you meant") and rest:
            text += f", did you mean {rest[0].split()[0]}?"
        elif first.startswith("Available subcommands"):
            text += f". {' '.join([first, *rest])}"
    return text


_BAD_NUMBER = re.compile(
    r"Error parsing --([\w-]+): .*(?:int\(\) with base 10|string to (float)): (.*)"
)


def _bad_number(found: re.Match[str]) -> str:
    """What tyro says of a text that is no number, as the project says it."""
    option, is_float, value = found.groups()
    expected = "a number" if is_float else "an integer"
    return f"{option.replace('-', '_')}: found {value}, expected {expected}"


@contextlib.contextmanager
def progress_bar(title: str) -> Iterator[Callable[..., None] | None]:
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

        def update(done: int, total: int | None, note: str = "") -> None:
            bar.update(task, completed=done, total=total, description=f"{title} {note}".rstrip())

        yield update
