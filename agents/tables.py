"""Results and tournaments to read: tables for the terminal and Markdown, CSV, a heat map.

Letters: `N` agents.
"""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Sequence
from itertools import permutations
from pathlib import Path
from typing import Any

import numpy as np
from rich.box import SIMPLE_HEAD
from rich.table import Table

from agents.evaluate import Result
from agents.ratings import Rating
from agents.tournament import Tournament
from domino_env.rules import Rules


def game_title(rules: Rules) -> str:
    """The game in a few words: `sin_robo, pairs, lead=seat`."""
    fields = {name: value for name, value in rules.given.items() if name not in ("seats", "teams")}
    game = f"{rules.preset}, {'pairs' if rules.teams else f'{rules.seats} seats'}"
    return game + "".join(f", {name}={value}" for name, value in fields.items())


def results_table(results: Sequence[Result]) -> Table:
    """Results of one agent against others on the same rules, a row each."""
    table = _titled(f"{results[0].a} in {game_title(results[0].rules)}", _CAPTION)
    table.add_column("against", overflow="fold")
    for heading in ("reward a game", "points", "won %", "drawn", "lost", "deals", "fewer"):
        table.add_column(heading, justify="right", no_wrap=True)
    for result in results:
        shares = (f"{100 * share:.1f}" for share in (result.wins, result.draws, result.losses))
        points, deals = f"{result.points:+.2f}", f"{result.deals:,}"
        fewer = "" if math.isnan(result.fewer_games) else f"{result.fewer_games:.1f}x"
        table.add_row(result.b, result.interval(), points, *shares, deals, fewer)
    return table


_CAPTION = """duplicate deals; ± is the 95% interval, from the spread over deals
fewer: plain play would take that many times the games for it"""


def _titled(title: str, caption: str) -> Table:
    table = Table(title=title, caption=caption, box=SIMPLE_HEAD, pad_edge=False)
    table.min_width = min(len(title), 80)  # a title is not broken for a small table
    table.title_justify = table.caption_justify = "left"
    return table


def title_of(played: Tournament) -> str:
    """The game and the number of deals: those that were played, where pairings differ in it."""
    deals = sorted({result.deals for result in played.results.values()})
    told = f"{deals[0]:,} to {deals[-1]:,} deals" if len(deals) > 1 else str(played.budget)
    return f"{game_title(played.rules)}: {told} a pairing"


def cross_table(played: Tournament) -> Table:
    """The ratings, and rewards of the row's agent against the column's, the strongest first."""
    rated = played.ratings()
    table = _titled(title_of(played), _CROSS_CAPTION)
    table.padding = 0  # seven agents fit into 80 columns
    table.add_column("", justify="right")
    table.add_column("agent", overflow="fold")
    table.add_column("Elo", justify="right", no_wrap=True)
    for k in range(len(rated)):
        table.add_column(str(k + 1), justify="right", no_wrap=True)
    for k, (name, rating) in enumerate(rated.items()):
        elo = "?" if rating is None else rating.text().replace(" ± ", "\n±")
        table.add_row(str(k + 1), name, elo, *(_cell(played, name, other) for other in rated))
    return table


WHAT = "reward a game of the row's agent"
_CROSS_CAPTION = f"{WHAT}; ± is the 95% interval; Elo of mean 0, by all results"


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
    figure = figure_class(figsize=(3.2 + 1.05 * N, 2.2 + 0.75 * N), dpi=100, layout="constrained")
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
    figure.supxlabel(_CROSS_CAPTION, fontsize=8)
    from PIL import Image  # matplotlib brings it

    picture = io.BytesIO()
    figure.savefig(picture, format="png")
    # 128 colours are enough, for a third of the bytes.
    Image.open(picture).convert("RGB").quantize(128).save(path, "png", optimize=True)


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
    return f"{_short(name)}\n" + ("" if rating is None else f"Elo {rating.text()}")


def _short(name: str) -> str:
    return name if len(name) <= 24 else f"…{name[-23:]}"  # of a folder the end tells most
