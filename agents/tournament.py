"""Tournaments: every agent against every other on the same deals, and ratings of them all.

The deals of all pairings are those of one seed. Two sides (2 seats, or pairs) mirror each other,
so a pairing is played once. With 3 or 4 single seats A in one seat against B in all others is not
the mirror of B against A, and both are played.

Letters: `N` agents.
"""

from __future__ import annotations

import csv
import math
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations, permutations
from pathlib import Path
from typing import Any, get_type_hints

import msgspec
import numpy as np
from rich.box import SIMPLE_HEAD
from rich.table import Table

from agents.base import Agent, AgentError
from agents.evaluate import Result, evaluate
from agents.ratings import Rating, ratings
from domino_env.rules import Rules

FILE = "tournament.json"
Pairing = tuple[str, str]
Progress = Callable[[int, int, str], None]  # pairings done, of how many, what is being played


@dataclass
class Tournament:
    """What came out of the pairings so far. Results are those of the first name of a pairing."""

    agents: list[str]
    rules: Rules
    deals: int
    seed: int
    results: dict[Pairing, Result] = field(default_factory=dict)
    failures: dict[Pairing, str] = field(default_factory=dict)  # messages of `AgentError`

    @property
    def sides(self) -> int:
        """The sides of a game."""
        return 2 if self.rules.teams else self.rules.seats

    @property
    def pairings(self) -> list[Pairing]:
        """All pairings that are to be played, in order."""
        every = combinations if self.sides == 2 else permutations
        return list(every(self.agents, 2))

    @property
    def ended(self) -> bool:
        """Whether every pairing has been played, or has failed."""
        return all(pair in self.results or pair in self.failures for pair in self.pairings)

    def result(self, a: str, b: str) -> Result | None:
        """The result of `a` against `b`, mirrored if `b` played against `a`; None if there is none.

        Two sides are zero-sum (RULES.md 9), so the mirror is what the other side got.
        """
        found = self.results.get((a, b))
        mirrored = self.results.get((b, a)) if self.sides == 2 and found is None else None
        return found if mirrored is None else _mirror(mirrored)

    def ratings(self) -> dict[str, Rating | None]:
        """See `agents.ratings.ratings`."""
        return ratings(self.agents, self.results.values())

    def to_dict(self) -> dict[str, Any]:
        """All for JSON: arguments, ratings by agent, results by pairing, and the failures."""
        return {
            **self.arguments(),
            "ratings": {
                name: rating and {"elo": rating.elo, "ci95": rating.ci95}
                for name, rating in self.ratings().items()
            },
            "results": [result.to_dict() for result in self.results.values()],
            "failures": [
                {"a": a, "b": b, "error": error} for (a, b), error in self.failures.items()
            ],
        }

    def arguments(self) -> dict[str, Any]:
        """What was to be played."""
        rules = self.rules.to_dict()
        return {"agents": self.agents, "rules": rules, "deals": self.deals, "seed": self.seed}


def _mirror(result: Result) -> Result:
    return replace(
        result,
        a=result.b,
        b=result.a,
        mean=0.0 - result.mean,  # 0.0, where -mean is -0.0
        wins=result.losses,
        losses=result.wins,
        points=0.0 - result.points,
    )


def play_tournament(
    agents: Sequence[Agent],
    rules: Rules,
    deals: int,
    seed: int = 0,
    folder: str | Path | None = None,
    progress: Progress | None = None,
) -> Tournament:
    """Play every pairing of `agents` by `agents.evaluate.evaluate`, on the deals of `seed`.

    With a folder, `tournament.json` in it is written after each pairing; the same call goes on
    from there, and plays again only what failed. A pairing in which an agent fails is noted in
    `failures`, and the others are played. Ctrl-C ends the tournament (`ended` tells); the pairing
    that is being played is then lost, and those before it are returned.
    Raises `ValueError` for bad numbers, names that are not all different, an agent that does not
    fit the rules (`AgentError`), and a folder that holds another tournament.
    """
    _check(agents, rules)
    by_name = {agent.name: agent for agent in agents}
    played = Tournament(list(by_name), rules, deals, seed)
    path = None if folder is None else Path(folder) / FILE
    if path is not None and path.parent.exists() and not path.parent.is_dir():
        raise ValueError(f"{path.parent}: found a file, expected a folder")
    if path is not None and path.exists():
        played.results = _read(path, played)
    for done, (a, b) in enumerate(played.pairings):
        if (a, b) in played.results:
            continue
        told = _teller(played, done, progress)
        try:
            result = evaluate(by_name[a], by_name[b], rules, deals, seed, told)
        except AgentError as error:
            played.failures[a, b] = str(error)
            continue
        except KeyboardInterrupt:
            break
        if result.deals < deals:
            break
        played.results[a, b] = result
        if path is not None:
            _write(path, played)
    return played


def _check(agents: Sequence[Agent], rules: Rules) -> None:
    names = [agent.name for agent in agents]
    if len(names) < 2:
        found = f"{len(names)} agent" + ("" if len(names) == 1 else "s")
        raise ValueError(f"tournament: found {found}, expected at least two")
    for name in names:
        if names.count(name) > 1:
            raise ValueError(f"tournament: found the agent {name} twice, expected it once")
    for agent in agents:
        agent.check(rules)


def _teller(
    played: Tournament, done: int, progress: Progress | None
) -> Callable[[Result], None] | None:
    if progress is None:
        return None
    total = len(played.pairings)
    return lambda so_far: progress(done, total, f"{so_far.a} : {so_far.b} {so_far.interval()}")


# ---------------------------------------------------------------- the file of a tournament


class _Kept(msgspec.Struct, forbid_unknown_fields=True):
    agents: list[str]
    rules: dict[str, int | bool | str]
    deals: int
    seed: int
    results: list[dict[str, Any]]


def _read(path: Path, expected: Tournament) -> dict[Pairing, Result]:
    """The results in the file; `ValueError` if it is not whole, or of another tournament."""
    try:
        kept = msgspec.json.decode(path.read_bytes(), type=_Kept)
        results = [_result_of(figures) for figures in kept.results]
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{path}: cannot be read as a tournament: {error}") from None
    for name, value in expected.arguments().items():
        found = getattr(kept, name)
        if found != value:
            raise ValueError(f"{path}: found a tournament with {name} {found}, expected {value}")
    by_pairing = {(result.a, result.b): result for result in results}
    if not set(by_pairing) <= set(expected.pairings):
        raise ValueError(f"{path}: found pairings of agents that it does not name")
    return by_pairing


_Figures = msgspec.defstruct(
    "_Figures",
    [
        (name, {"rules": dict[str, int | bool | str], "ci95": float | None}.get(name, kind))
        for name, kind in get_type_hints(Result).items()
    ],
    forbid_unknown_fields=True,
)


def _result_of(figures: dict[str, Any]) -> Result:
    """What `Result.to_dict` was made from."""
    figures = msgspec.structs.asdict(msgspec.convert(figures, _Figures))
    ci95 = math.nan if figures["ci95"] is None else figures["ci95"]
    return Result(**{**figures, "rules": Rules.of(figures["rules"]), "ci95": ci95})


def _write(path: Path, played: Tournament) -> None:
    """Write the file as a whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(path.name + ".new")
    results = [result.to_dict() for result in played.results.values()]
    with temporary.open("wb") as file:
        file.write(msgspec.json.encode({**played.arguments(), "results": results}))
        file.flush()
        os.fsync(file.fileno())
    temporary.replace(path)


# ---------------------------------------------------------------- to read


def title_of(played: Tournament) -> str:
    """The game and the number of deals."""
    rules = played.rules
    fields = {name: value for name, value in rules.given.items() if name not in ("seats", "teams")}
    game = f"{rules.preset}, {'pairs' if rules.teams else f'{rules.seats} seats'}"
    game += "".join(f", {name}={value}" for name, value in fields.items())
    return f"{game}: {played.deals:,} deals a pairing"


def cross_table(played: Tournament) -> Table:
    """The ratings, and rewards of the row's agent against the column's, the strongest first."""
    rated = played.ratings()
    caption = f"{WHAT}; ± is the 95% interval; Elo of mean 0, by all results"
    table = Table(title=title_of(played), caption=caption, box=SIMPLE_HEAD)
    table.title_justify = table.caption_justify = "left"
    table.add_column("", justify="right")
    table.add_column("agent", overflow="fold")
    table.add_column("Elo", justify="right", no_wrap=True)
    for k in range(len(rated)):
        table.add_column(str(k + 1), justify="right", no_wrap=True)
    for k, (name, rating) in enumerate(rated.items()):
        elo = "?" if rating is None else f"{rating.elo:+.0f}\n±{rating.ci95:.0f}"
        table.add_row(str(k + 1), name, elo, *(_cell(played, name, other) for other in rated))
    return table


WHAT = "reward a game of the row's agent"


def _cell(played: Tournament, a: str, b: str) -> str:
    result = played.result(a, b)
    if result is not None:
        return result.interval().replace(" ± ", "\n±")
    failed = {(a, b), (b, a) if played.sides == 2 else (a, b)} & set(played.failures)
    return "failed" if failed else ""


def write_csv(played: Tournament, path: str | Path) -> None:
    """Write a row for each agent against each other: figures of `Result`, and the rating of A."""
    figures = ("mean", "ci95", "deals", "games", "wins", "draws", "losses", "points")
    rated = played.ratings()
    with Path(path).open("w", encoding="utf-8", newline="") as file:
        rows = csv.writer(file, lineterminator="\n")
        rows.writerow(["a", "b", *figures, "elo", "elo_ci95"])
        for a, b in permutations(rated, 2):
            result = played.result(a, b)
            if result is not None:
                row = result.to_dict()
                rows.writerow([a, b, *(row[name] for name in figures), *(rated[a] or ("", ""))])


def write_heat_map(played: Tournament, path: str | Path) -> None:
    """Write the cross-table as a picture (PNG), red where the row's agent wins, blue where not.

    Raises `ValueError` where matplotlib is missing.
    """
    figure_class = import_figure()
    rated = played.ratings()
    names, N = list(rated), len(rated)
    found = [[played.result(a, b) for b in names] for a in names]
    means = np.array([[math.nan if cell is None else cell.mean for cell in row] for row in found])
    most = max(float(np.nanmax(np.abs(means), initial=0)), 1e-9)
    figure = figure_class(figsize=(3.2 + 1.05 * N, 2.2 + 0.75 * N), dpi=120, layout="constrained")
    axes = figure.add_subplot()
    axes.set_facecolor("0.88")
    image = axes.imshow(means, cmap="RdBu_r", vmin=-most, vmax=most, aspect="auto")
    for row, a in enumerate(names):
        for column, b in enumerate(names):
            red, green, blue, _ = image.cmap(image.norm(means[row, column]))
            dark = 0.3 * red + 0.6 * green + 0.1 * blue < 0.55
            where = {"ha": "center", "va": "center", "color": "white" if dark else "black"}
            axes.text(column, row, _cell(played, a, b), fontsize=9, **where)
    axes.set_xticks(range(N), [_short(name) for name in names], rotation=30, ha="right")
    axes.set_yticks(range(N), [_label(name, rating) for name, rating in rated.items()])
    axes.set_xlabel("against")
    axes.set_title(title_of(played), fontsize=11, wrap=True)
    figure.colorbar(image, label=WHAT)
    figure.savefig(path, format="png")


def import_figure() -> Any:
    """The figure of matplotlib, which the `train` extra has; `ValueError` where it is missing."""
    try:
        from matplotlib.figure import Figure
    except ModuleNotFoundError:
        raise ValueError(
            "tournament: found no matplotlib, expected it: pip install 'domino-env[train]'"
        ) from None
    return Figure


def _label(name: str, rating: Rating | None) -> str:
    return f"{_short(name)}\n" + (
        "" if rating is None else f"{rating.elo:+.0f} ± {rating.ci95:.0f}"
    )


def _short(name: str) -> str:
    return name if len(name) <= 24 else f"…{name[-23:]}"  # of a folder the end tells most
