"""What the history says of each pip, counted anew from the moves of the reference."""

import random

import numpy as np
import pytest
from oracle_rules import ends_after, tile_of
from support import NUMBER, Table, history_of
from test_observation import random_positions

from agents.pip_history import CHANNELS, pip_history


def counted(table: Table, seat: int, places: int) -> np.ndarray:
    """float [CHANNELS, P, N], from the events and the ends of the table at each."""
    found = np.zeros((len(CHANNELS), places, table.rules.set + 1))
    ends: tuple[int, ...] = ()
    turn = 0

    def note(name: str, pip: int, late: bool = True) -> None:
        found[CHANNELS.index(name), place, pip] += 1
        if late:
            found[CHANNELS.index(f"{name}_late"), place, pip] += turn / 32

    for who, move in table.oracle.events:
        place, before, ends = (who - seat) % table.rules.seats, ends, ends_after(ends, move)
        turn += move != "draw"
        if move == "draw":
            for end in before:
                found[CHANNELS.index("drew"), place, end] += 0.5
        elif move == "pass":
            for end in before:
                found[CHANNELS.index("passed_late"), place, end] = turn / 32
        elif move == "both":
            for end in before:
                note("opened", end)
                note("covered", end)
        elif not before:
            for end in set(tile_of(move)):
                note("opened", end)
        else:
            covered = before[0] if move.endswith("L") else before[-1]
            high, low = tile_of(move.split()[0])
            note("covered", covered)
            note("opened", high + low - covered)
            if before[0] != before[1]:
                note("spared", sum(before) - covered)
    return found


@pytest.mark.parametrize("seed", range(6))
def test_every_event_is_counted_for_the_pips_it_is_about(seed: int) -> None:
    rng = random.Random(seed)
    seen = np.zeros(len(CHANNELS))
    for table in random_positions(seed):
        seat = rng.randrange(table.rules.seats)
        rows = history_of(table.games, table.rules, seat)
        expected = counted(table, seat, 4)
        found = pip_history(rows[None], 4, table.rules.set + 1)
        np.testing.assert_allclose(found[0], expected.reshape(found.shape[1:]), rtol=1e-5)
        seen += expected.sum((1, 2))
    assert (seen > 0).all()


def test_a_round_is_counted_by_hand() -> None:
    """6-6 by the seat itself, 6-3 left by the next, a pass, 6-1 right by the last of four."""
    rows = [
        [2, 0, 1 + NUMBER[tile_of("6-6")], 1],
        [2, 1, 1 + NUMBER[tile_of("6-3")], 1],
        [5, 2, 0, 0],
    ]
    rows += [[2, 3, 1 + NUMBER[tile_of("6-1")], 2], [0, 0, 0, 0]]
    found = pip_history(np.array([rows], np.uint8), 4, 7).reshape(len(CHANNELS), 4, 7)
    expected = np.zeros_like(found)
    for name, place, pip, count, late in [
        ("opened", 0, 6, 1, 1),
        ("covered", 1, 6, 1, 2),
        ("opened", 1, 3, 1, 2),
        ("covered", 3, 6, 1, 4),
        ("opened", 3, 1, 1, 4),
        ("spared", 3, 3, 1, 4),
    ]:
        expected[CHANNELS.index(name), place, pip] = count
        expected[CHANNELS.index(f"{name}_late"), place, pip] = late / 32
    expected[CHANNELS.index("passed_late"), 2, [3, 6]] = 3 / 32
    np.testing.assert_allclose(found, expected)


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ([2, 2, 1, 1], "history: found 2 in column 1, expected at most 1"),
        ([2, 0, 29, 1], "history: found 29 in column 2, expected at most 28"),
    ],
)
def test_rows_of_another_game_are_refused(row: list[int], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        pip_history(np.array([[row]], np.uint8), 2, 7)
