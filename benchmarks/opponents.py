"""The opponents that come with the project against each other: makes docs/opponents.md.

    python -m benchmarks.opponents [bots | search | page]

`bots` plays the tournaments of the bots, `search` those of the search agents against them, `page`
writes the page from what has been played; without a word all three. Every pairing is kept in
results/opponents as soon as it is played, so the command may be stopped and run again.
"""

from __future__ import annotations

import sys
from itertools import product
from pathlib import Path
from typing import Any

from rich.console import Console

from agents import load
from agents.result import Budget
from agents.tables import cross_table, write_heat_map
from agents.tournament import Tournament, play_tournament, read_tournament
from domino_env import Rules

TREE = Path(__file__).resolve().parent.parent
KEPT, PAGE, IMAGES = (
    TREE / place for place in ("results/opponents", "docs/opponents.md", "docs/images")
)
BOTS = "random", "lightest", "heaviest", "double_first", "mobility", "blocker", "expert"
SEARCH = ("pimc:20",)
GAMES: dict[str, dict[str, Any]] = {"cabra": {"episode": "round"}, "sin_robo": {}, "estandar": {}}
TABLES: dict[str, dict[str, Any]] = {
    "2 seats": {"seats": 2},
    "3 seats": {"seats": 3},
    "4 seats": {"seats": 4},
    "pairs": {"seats": 4, "teams": True},
}
SEARCHED = "2 seats", "pairs"
DEALS = 20_000
FIRST_LOOK, MOST = 1_000, 16_000  # of a search agent's pairing, until it is clear of zero


def opponents(words: list[str] | None = None) -> list[dict[str, Any]]:
    """Play what is missing and write the page; returns the tournaments."""
    words = words or ["bots", "search", "page"]
    for table in product(GAMES, TABLES):
        if "bots" in words and not show(play_bots(*table)):
            return []
    for table, game in product(SEARCHED, GAMES):
        if "search" in words and not show(play_search(game, table)):
            return []
    if "page" in words:
        write_page()
    return [kept(*table).to_dict() for table in product(GAMES, TABLES)]


def rules_of(game: str, table: str) -> Rules:
    return Rules.preset(game, **GAMES[game], **TABLES[table])


def folder_of(game: str, table: str, part: str) -> Path:
    return KEPT / f"{game}-{table.replace(' ', '-')}-{part}"


def play_bots(game: str, table: str) -> Tournament:
    """Every bot against every other."""
    agents = [load(name) for name in BOTS]
    folder = folder_of(game, table, "bots")
    return play_tournament(agents, rules_of(game, table), DEALS, folder=folder)


def play_search(game: str, table: str) -> Tournament:
    """Each search agent against every bot and every other search agent."""
    return play_tournament(
        [load(name) for name in (*SEARCH, *BOTS)],
        rules_of(game, table),
        MOST,
        until_clear=FIRST_LOOK,
        folder=folder_of(game, table, "search"),
        only=SEARCH,
    )


def show(played: Tournament) -> bool:
    """Print a tournament; whether it has been played to its end."""
    Console().print(cross_table(played))
    for error in played.failures.values():
        print(error, file=sys.stderr)
    return played.ended


# ---------------------------------------------------------------- the page


def kept(game: str, table: str) -> Tournament:
    """All that has been played at a table."""
    whole = Tournament([*BOTS], rules_of(game, table), Budget(DEALS), 0)
    for part in ("bots", "search"):
        found = read_tournament(folder_of(game, table, part))
        if found is not None:
            whole.agents = list(dict.fromkeys([*whole.agents, *found.agents]))
            whole.results.update(found.results)
    return whole


def write_page() -> None:
    """Write docs/opponents.md and its pictures, of the tables that have been played."""
    IMAGES.mkdir(exist_ok=True)
    parts, searched = [], False
    for game in GAMES:
        parts.append(f"## {game}" + (", single hands" if GAMES[game] else ""))
        for table in TABLES:
            played = kept(game, table)
            if not played.results:
                continue
            searched |= len(played.agents) > len(BOTS)
            parts.append(f"### {game}, {table}\n\n{markdown(played)}")
            if table == "2 seats":
                picture = IMAGES / f"opponents-{game}.png"
                write_heat_map(played, picture)
                parts.append(f"![{game}, 2 seats](images/{picture.name})")
    head = HEAD + (SEARCH_HEAD if searched else "")
    PAGE.write_text("\n\n".join([head, *parts]) + "\n", encoding="utf-8")


def markdown(played: Tournament) -> str:
    """A tournament as a table, the strongest agent first."""
    rated = {name: rating for name, rating in played.ratings().items() if rating is not None}
    rows = [["", "Elo", *(f"`{name}`" for name in rated)], ["---", *["--:"] * (len(rated) + 1)]]
    for name, rating in rated.items():
        cells = (played.result(name, other) for other in rated)
        rows.append(
            [f"`{name}`", rating.text(), *("" if c is None else c.interval() for c in cells)]
        )
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


HEAD = f"""# The opponents

What the agents that come with the project are worth against each other. This page and
`results/opponents/` are made by

```
python -m benchmarks.opponents
```

which plays what is missing and may be stopped at any time. The figures follow from the seed alone,
not from the machine.

How to read the tables: the agents are sorted by strength. A cell is the reward a game of the row's
agent against the column's, with its 95% interval: a hand that is won counts 1, and the losers share
-1. At a table of 3 or 4 single seats the row's agent has one seat and the column's all others, so
the two cells of a pair are two matches. Elo is fitted to the whole table, with mean 0
([how](evaluation.md)). Every pairing of bots was played on the same {DEALS:,} duplicate deals.
In pairs all 28 tiles are dealt: nothing is drawn, and `estandar` is `sin_robo`."""
SEARCH_HEAD = f"""
Search ({", ".join(f"`{name}`" for name in SEARCH)}) played until clear of zero: {FIRST_LOOK:,}
deals, then twice as many, up to {MOST:,}."""


if __name__ == "__main__":
    if not set(sys.argv[1:]) <= {"bots", "search", "page"}:
        sys.exit(f"opponents: found {' '.join(sys.argv[1:])}, expected bots, search or page")
    opponents(sys.argv[1:])
