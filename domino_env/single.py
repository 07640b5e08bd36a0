"""One game for one caller: the compiled entries that `domino_v0` steps and looks with.

Each call from Python costs a fraction of a microsecond an argument, so a step is one call that
checks, moves, and writes what the next seat to move may see.
"""

from __future__ import annotations

from typing import cast

import numpy as np

from domino_env.compiled import PLAIN, jit
from domino_env.engine import advance, is_legal, reset, skip_forced
from domino_env.observation import mask, observe
from domino_env.state import GAME, NOT_OVER

ILLEGAL = -1  # what `step_game` returns instead of a status


def fast(games: np.recarray) -> np.recarray:
    """The same records as an array whose type is known at a glance: 0.3 instead of 2.7 us a call.

    Numba knows a structured dtype by its object, so this is `GAME` itself and not one equal to it.
    Plain Python needs the attributes of a record array.
    """
    return games if PLAIN else cast(np.recarray, games.view(np.ndarray).view(GAME))


@jit
def reset_game(games: np.recarray) -> None:
    """Begin a new episode of games[0]: an empty record and the first deal."""
    reset(games[0])


@jit
def step_game(games: np.recarray, action: int, skip: bool, places: int, out: np.ndarray) -> int:
    """Make a move of games[0], deal on, and look; `ILLEGAL`, with nothing changed, if it is none.

    `skip` makes the forced moves behind it too. Returns and writes what `look_at_game` does.
    """
    if not is_legal(games[0], action):
        return ILLEGAL
    advance(games[0], action)
    return look_at_game(games, skip, places, out)


@jit
def look_at_game(games: np.recarray, skip: bool, places: int, out: np.ndarray) -> int:
    """Write what the seat to move of games[0] may see: out[0] observation, out[1] mask (0 or 1).

    `out` is uint8 [2, D]; D is larger than the A bytes of the mask. At the end it is what the seat
    that moved last may see. Returns the status: that seat + 4 * `over`.
    """
    if skip and int(games[0].over) == NOT_OVER:
        skip_forced(games, 0, games.copy())
    g = games[0]
    observe(g, int(g.seat), places, out, 0)
    mask(g, out, 1)
    return int(g.seat) + 4 * int(g.over)
