"""Tile numbers, suits and text (RULES.md 1)."""

import numpy as np
import pytest

from domino_env import tiles
from domino_env.tiles import DOUBLE, DOUBLES, HIGH, LOW, PIPS, SUIT

# Every tile of a double-three set in the order of its number, written out by hand.
DOUBLE_THREE = ["0-0", "1-0", "1-1", "2-0", "2-1", "2-2", "3-0", "3-1", "3-2", "3-3"]


def test_tiles_are_numbered_by_higher_half_then_lower_half():
    assert [tiles.tile_text(t) for t in range(10)] == DOUBLE_THREE
    assert (tiles.tile_text(25), tiles.tile_text(26), tiles.tile_text(27)) == ("6-4", "6-5", "6-6")
    assert (tiles.tile_text(45), tiles.tile_text(54)) == ("9-0", "9-9")


def test_the_arrays_hold_halves_and_sums_as_int64():
    assert [a.dtype for a in (LOW, HIGH, PIPS, SUIT, DOUBLE)] == [np.int64] * 5
    assert [a.shape for a in (LOW, HIGH, PIPS, SUIT, DOUBLE)] == [(55,)] * 3 + [(10,)] * 2
    assert LOW[:6].tolist() == [0, 0, 1, 0, 1, 2]
    assert HIGH[:6].tolist() == [0, 1, 1, 2, 2, 2]
    assert PIPS[:6].tolist() == [0, 1, 2, 2, 3, 4]
    assert PIPS[:28].sum() == 168  # a double-six set: each of 0..6 eight times, 21 x 8


def test_the_arrays_are_read_only():
    for array in (LOW, HIGH, PIPS, SUIT, DOUBLE):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1


def test_a_suit_holds_the_tiles_that_show_its_pip():
    def suit_in(v: int, set_: int) -> list[int]:
        return [t for t in tiles.tiles_of(SUIT[v]) if t < tiles.tile_count(set_)]

    assert suit_in(2, 3) == [3, 4, 5, 8]  # 2-0 2-1 2-2 3-2
    assert suit_in(6, 6) == [21, 22, 23, 24, 25, 26, 27]
    assert all(len(tiles.tiles_of(suit)) == 10 for suit in SUIT)
    assert SUIT[9] > 0  # tile 54 stays clear of the sign bit


def test_doubles_are_the_tiles_with_equal_halves():
    assert DOUBLE.tolist() == [0, 2, 5, 9, 14, 20, 27, 35, 44, 54]
    assert isinstance(DOUBLES, int)
    assert tiles.tiles_of(DOUBLES) == DOUBLE.tolist()


def test_a_double_six_set_has_28_tiles():
    assert [tiles.tile_count(n) for n in range(1, 10)] == [3, 6, 10, 15, 21, 28, 36, 45, 55]


def test_a_set_is_named_in_words():
    assert [tiles.set_name(n) for n in (1, 6, 9)] == ["double-one", "double-six", "double-nine"]


def test_a_tile_is_read_in_either_order():
    assert tiles.parse_tile("6-5") == tiles.parse_tile("5-6") == 26
    assert tiles.parse_tile("9-0") == tiles.parse_tile("0-9", 9) == 45
    assert tiles.parse_tile("6-6", 6) == 27
    assert [tiles.parse_tile(text, 3) for text in DOUBLE_THREE] == list(range(10))


def test_a_tile_of_a_larger_set_is_refused():
    with pytest.raises(ValueError, match=r"^7-1 is no tile of a double-six set$"):
        tiles.parse_tile("7-1", 6)
    with pytest.raises(ValueError, match=r"^0-4 is no tile of a double-three set$"):
        tiles.parse_tile("0-4", 3)


@pytest.mark.parametrize(
    "text",
    ["", "6", "65", "6-", "-6", "6--5", "6-5-4", " 6-5", "6-5\n", "10-1", "a-b", "\uff16-5", 65],
)
def test_text_that_is_no_tile_is_refused(text):
    with pytest.raises(ValueError, match=r"is no tile of a double-six set, expected text like 6-0"):
        tiles.parse_tile(text, 6)


@pytest.mark.parametrize("t", [-1, 55])
def test_a_number_that_is_no_tile_has_no_text(t):
    with pytest.raises(ValueError, match=rf"tile: {t} is no tile number, expected 0 to 54"):
        tiles.tile_text(t)


def test_tiles_are_read_in_the_order_of_the_text():
    assert tiles.parse_tiles("5-4 6-6\t0-1", 6) == [19, 27, 1]
    assert tiles.parse_tiles("1-0 0-1", 6) == [1, 1]
    assert tiles.parse_tiles("", 6) == tiles.parse_tiles("  ", 6) == []


def test_one_wrong_tile_among_many_is_named():
    with pytest.raises(ValueError, match=r"^7-1 is no tile of a double-six set$"):
        tiles.parse_tiles("6-6 7-1 5-4", 6)
    with pytest.raises(ValueError, match="is no text"):
        tiles.parse_tiles(["6-6"], 6)  # pyright: ignore[reportArgumentType]


def test_a_bit_set_lists_its_tiles_lowest_first_and_writes_them_highest_first():
    bits = tiles.bits_of([27, 0, 19, 27])
    assert bits == 2**27 + 2**19 + 1
    assert tiles.tiles_of(bits) == [0, 19, 27]
    assert tiles.tiles_text(bits) == "6-6 5-4 0-0"
    assert (tiles.tiles_of(0), tiles.tiles_text(0), tiles.bits_of([])) == ([], "", 0)


def test_bit_sets_accept_numpy_integers_up_to_the_last_tile():
    bits = tiles.bits_of(np.array([54, 1], dtype=np.int8))
    assert (bits, type(bits)) == (2**54 + 2, int)
    assert tiles.tiles_of(np.int64(bits)) == [1, 54]
