"""The history of a round as numbers for each pip and each place: how `graph` reads it.

What a seat plays says what it holds, and to its partner the most: it opens pips that it has more
of, covers those it wants closed, and leaves open what it does not mind. So every play is counted
for the pip that it puts at an end, for the pip that it covers, and for the other end that it leaves
as it is; passes and draws count for the ends that were not answered. *Late* counts weigh an event
by how late in the round it was.

`B` positions, `P` places, `N` pips, `H` rows of history.
"""

from __future__ import annotations

import numpy as np

from domino_env.compiled import jit
from domino_env.observation import BOTH, DRAW, LEFT_END, OWN_TILE, PLAY
from domino_env.tiles import HIGH, LOW

CHANNELS = (
    "opened",  # put at an end
    "covered",  # at an end
    "spared",  # at the other end, left as it is; not where both ends are the same
    "opened_late",
    "covered_late",
    "spared_late",
    "passed_late",  # with it at an end, the last time
    "drew",  # with it at an end
)
OPENED, COVERED, SPARED, LATE, _, _, PASSED, DREW = range(len(CHANNELS))
TURNS = 32.0  # plays and passes after which an event weighs 1


def pip_history(history: np.ndarray, places: int, pips: int) -> np.ndarray:
    """Rows of `history`, uint8 [B, H, 4], to float32 [B, CHANNELS * P, N], channel by channel.

    Raises `ValueError` where they name a place or a tile that there is not.
    """
    for column, last in ((1, places - 1), (2, pips * (pips + 1) // 2)):
        found = history[..., column].max(initial=0)
        if found > last:
            raise ValueError(f"history: found {found} in column {column}, expected at most {last}")
    out = np.zeros((len(history), len(CHANNELS), places, pips), np.float32)
    count_each(history, out)
    return out.reshape(len(history), -1, pips)


@jit
def count_each(history: np.ndarray, out: np.ndarray) -> None:
    """Add the events of uint8 [B, H, 4] to float32 [B, CHANNELS, P, N]."""
    for i in range(len(history)):
        ends, turn = (-1, -1), 0
        for row in range(history.shape[1]):
            kind, place = int(history[i, row, 0]), int(history[i, row, 1])
            if kind == 0:
                break
            if kind == OWN_TILE:
                continue
            if kind == DRAW:
                for end in ends:
                    out[i, DREW, place, end] += 0.5
                continue
            turn += 1
            late = turn / TURNS
            if kind == PLAY:
                tile = int(history[i, row, 2]) - 1
                ends = count_play(ends, tile, int(history[i, row, 3]), late, out[i, :, place])
            elif kind == BOTH:
                for end in ends:
                    count(out[i, :, place], OPENED, end, late)
                    count(out[i, :, place], COVERED, end, late)
            else:
                for end in ends:
                    out[i, PASSED, place, end] = late


@jit
def count_play(
    ends: tuple[int, int], tile: int, side: int, late: float, out: np.ndarray
) -> tuple[int, int]:
    """Count one tile put down, into [CHANNELS, N]; returns the ends after it."""
    low, high = int(LOW[tile]), int(HIGH[tile])
    if ends[0] < 0:
        count(out, OPENED, low, late)
        if high != low:
            count(out, OPENED, high, late)
        return low, high
    covered, other = ends if side == LEFT_END else (ends[1], ends[0])
    opened = low + high - covered
    count(out, COVERED, covered, late)
    count(out, OPENED, opened, late)
    if other != covered:
        count(out, SPARED, other, late)
    return (opened, other) if side == LEFT_END else (other, opened)


@jit
def count(out: np.ndarray, channel: int, pip: int, late: float) -> None:
    """Count an event of a pip, and how late it was."""
    out[channel, pip] += 1
    out[LATE + channel, pip] += late
