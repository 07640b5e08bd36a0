"""The rules and the tiles of `oracle.py`: what RULES.md says before any game is played.

It imports nothing of the project. A tile is a pair (a, b) with a <= b, a hand a set of tiles.
"""

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

Tile = tuple[int, int]

MAIN_NAMES = {"kozel": "cabra", "goat": "cabra", "block": "sin_robo", "draw": "estandar"}
FIELDS: dict[str, Any] = {
    "set": 6,
    "seats": 2,
    "teams": False,
    "hand_size": None,
    "lead": "highest_double",
    "lead_tile": "forced",
    "next_lead": "same",
    "draw": "none",
    "reserve": 0,
    "double_pair": False,
    "blank_double": 0,
    "blank_double_when": "always",
    "team_block": "total",
    "score": "none",
    "block_score": "net",
    "target": None,
    "opening": 0,
    "opening_mode": "lost",
    "episode": None,
    "reward": "win",
    "max_rounds": 1000,
}
PRESETS: dict[str, dict[str, Any]] = {
    "cabra": {
        "draw": "until_playable",
        "double_pair": True,
        "blank_double": 25,
        "score": "loser",
        "opening": 13,
    },
    "sin_robo": {},
    "estandar": {"draw": "until_playable"},
    "sin_robo_series": {"score": "winner"},
    "estandar_series": {"draw": "until_playable", "score": "winner"},
}


def resolve(rules: dict[str, Any]) -> dict[str, Any]:
    """All fields of a record's `rules`: preset, overrides, derived defaults (RULES.md 3, 8, 10).

    ValueError on an unknown preset or field, a set or seats out of range, teams without four
    seats, a hand size that the set does not allow, and a target or a match without scores.
    """
    given = dict(rules)
    name = given.pop("preset")
    name = MAIN_NAMES.get(name, name)
    if name not in PRESETS or not set(given) <= set(FIELDS):
        raise ValueError(f"rules: unknown preset or field in {rules}")
    full: dict[str, Any] = {"preset": name} | FIELDS | PRESETS[name] | given
    if full["set"] not in range(1, 10) or full["seats"] not in range(2, 5):
        raise ValueError(f"set, seats: {full['set']}, {full['seats']}, expected 1 to 9, 2 to 4")
    if full["teams"] and full["seats"] != 4:
        raise ValueError(f"teams: {full['seats']} seats, expected 4")
    if full["score"] == "none" and (full["target"] is not None or full["episode"] == "match"):
        raise ValueError("score: none takes no target and no match")
    if full["hand_size"] is None:
        full["hand_size"] = default_hand_size(full["set"], full["seats"], full["teams"])
    if not 1 <= full["hand_size"] <= len(whole_set(full["set"])) // full["seats"]:
        raise ValueError(f"hand_size: {full['hand_size']} for {full['seats']} seats")
    if full["target"] is None and full["score"] != "none":
        few_sides = full["seats"] == 2 or full["teams"]
        full["target"] = 101 if full["score"] == "loser" else 100 if few_sides else 61
    if full["episode"] is None:
        full["episode"] = "round" if full["score"] == "none" else "match"
    return full


def default_hand_size(pips: int, seats: int, teams: bool) -> int:
    """The hand size of a double-`pips` set where none is given (RULES.md 3)."""
    if pips == 6:
        return 7 if seats == 2 or teams else 5
    tiles = len(whole_set(pips))
    most = Fraction(tiles) if teams else Fraction(3 * tiles, 4)
    sizes = range(2, (10 if pips == 9 else 7) + 1)
    return max([1, *(size for size in sizes if size * seats <= most)])  # 1 at least, "always"


def whole_set(pips: int) -> list[Tile]:
    """Every tile of a double-`pips` set once, by number (RULES.md 1)."""
    return [(a, b) for b in range(pips + 1) for a in range(b + 1)]


def tile_of(text: str) -> Tile:
    """The tile of "6-5" or "5-6"."""
    a, b = sorted(int(half) for half in text.split("-"))
    return a, b


def text_of(tile: Tile) -> str:
    """A tile with its higher half first."""
    return f"{tile[1]}-{tile[0]}"


def tiles_of(texts: str | Sequence[str]) -> list[Tile]:
    """The tiles of "6-5 4-4" or ["6-5", "4-4"]."""
    return [tile_of(text) for text in (texts.split() if isinstance(texts, str) else texts)]


def texts_of(hand: set[Tile]) -> list[str]:
    """A hand as text, highest tile first."""
    return [text_of(tile) for tile in sorted(hand, key=lambda t: (t[1], t[0]), reverse=True)]


def lead_order(tile: Tile, lead: str) -> tuple[int, ...]:
    """A key: of the tiles of all hands the one with the smallest key begins (RULES.md 4)."""
    a, b = tile
    if lead == "highest_double":
        return (a != b, -b, -a)
    return (a != b, b == 0, b, a)


def leading_tile(hands: list[set[Tile]], lead: str) -> tuple[int, Tile]:
    """The seat and the tile that `highest_double` or `lowest_double` names (RULES.md 4)."""
    _, seat, tile = min((lead_order(t, lead), s, t) for s, hand in enumerate(hands) for t in hand)
    return seat, tile


def pips_of(hand: set[Tile], rules: dict[str, Any]) -> int:
    """The pips of a hand, with what 0-0 counts (RULES.md 7)."""
    total = sum(a + b for a, b in hand)
    if (0, 0) in hand and (rules["blank_double_when"] == "always" or len(hand) == 1):
        total += rules["blank_double"]
    return total


def ends_after(ends: tuple[int, ...], move: str) -> tuple[int, ...]:
    """The two ends of the table after a move (RULES.md 4 and 5)."""
    if move in ("both", "draw", "pass"):
        return ends
    a, b = tile_of(move.split()[0])
    if not ends:
        return a, b
    left, right = ends
    if move.endswith("L"):
        return (b if a == left else a), right
    return left, (b if a == right else a)
