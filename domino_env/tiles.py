"""Tiles: their numbers, their pips, sets of them, and their text (RULES.md 1).

A tile with pips a <= b has the number b(b+1)/2 + a, whatever the set: 0-0 is 0, 1-0 is 1, 1-1 is
2, 6-6 is 27. A larger number is a higher tile. A *bit set* is an integer whose bit t stands for
tile t; the 55 tiles of the largest set fit into a signed 64-bit integer.
"""

import re
from collections.abc import Iterable

import numpy as np

MAX_PIP = 9
MAX_TILES = 55

_PAIRS = [(low, high) for high in range(MAX_PIP + 1) for low in range(high + 1)]
_SET_WORDS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")
_TILE = re.compile(r"([0-9])-([0-9])")


def _constant(values: Iterable[int]) -> np.ndarray:
    array = np.array(list(values), dtype=np.int64)
    array.setflags(write=False)
    return array


LOW = _constant(low for low, _ in _PAIRS)  # int64 [55], the lower half of each tile
HIGH = _constant(high for _, high in _PAIRS)  # int64 [55], the higher half of each tile
PIPS = LOW + HIGH  # int64 [55], the sum of both halves (what 0-0 counts is up to the rules)
PIPS.setflags(write=False)
DOUBLE = _constant(v * (v + 1) // 2 + v for v in range(MAX_PIP + 1))  # int64 [10], tile v-v
SUIT = _constant(  # int64 [10], bit set of the tiles that hold pip v
    sum(1 << t for t, pair in enumerate(_PAIRS) if v in pair) for v in range(MAX_PIP + 1)
)
DOUBLES = sum(1 << int(t) for t in DOUBLE)  # bit set of all doubles


def tile_count(set_: int) -> int:
    """Number of tiles T of a double-`set_` set."""
    return (set_ + 1) * (set_ + 2) // 2


def set_name(set_: int) -> str:
    """Name of a set in words, as messages use it: `double-six`."""
    return f"double-{_SET_WORDS[set_]}"


def tile_text(t: int | np.integer) -> str:
    """A tile as text, higher half first: `6-5`.

    Raises `ValueError` if `t` is not 0 to 54.
    """
    if not 0 <= t < MAX_TILES:
        raise ValueError(f"tile: {t} is no tile number, expected 0 to {MAX_TILES - 1}")
    return f"{HIGH[t]}-{LOW[t]}"


def parse_tile(text: str, set_: int = MAX_PIP) -> int:
    """Number of the tile that `text` names, in either order: `6-5` and `5-6` are one tile.

    Raises `ValueError` if the text is no tile, or no tile of a double-`set_` set.
    """
    halves = _TILE.fullmatch(text) if isinstance(text, str) else None
    if halves is None:
        raise ValueError(
            f"{text!r} is no tile of a {set_name(set_)} set, expected text like {set_}-0"
        )
    low, high = sorted(int(half) for half in halves.groups())
    if high > set_:
        raise ValueError(f"{text} is no tile of a {set_name(set_)} set")
    return tile_count(high - 1) + low


def tiles_text(bits: int | np.integer) -> str:
    """The tiles of a bit set as text, highest first, separated by spaces."""
    return " ".join(tile_text(t) for t in reversed(tiles_of(bits)))


def parse_tiles(text: str, set_: int = MAX_PIP) -> list[int]:
    """Numbers of the tiles that `text` names, separated by white space, in the order of the text.

    A tile named twice is in the list twice. Raises `ValueError` as `parse_tile` does.
    """
    if not isinstance(text, str):
        raise ValueError(f"tiles: {text!r} is no text, expected tiles like '{set_}-0 1-1'")
    return [parse_tile(word, set_) for word in text.split()]


def bits_of(tiles: Iterable[int | np.integer]) -> int:
    """Bit set of the given tile numbers; a tile that comes twice counts once."""
    bits = 0
    for t in tiles:
        bits |= 1 << int(t)
    return bits


def tiles_of(bits: int | np.integer) -> list[int]:
    """Tile numbers of a bit set, lowest first."""
    rest = int(bits)
    return [t for t in range(rest.bit_length()) if rest >> t & 1]
