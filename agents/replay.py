"""Many games moved on at once, or played again from their deal: the compiled part of searches.

`G` games, `W` worlds; records are GAME (domino_env/state.py).
"""

from __future__ import annotations

import numpy as np

from agents.likelihood import return_to_deal
from domino_env.compiled import jit
from domino_env.engine import move, next_round, only_move, skip_forced
from domino_env.state import GAME, PLAYING

BYTES = np.dtype(f"V{GAME.itemsize}")


def taken(games: np.ndarray, rows: np.ndarray) -> np.recarray:
    """A copy of some games; NumPy takes records ten times slower than their bytes (`copied`)."""
    return games.view(BYTES, np.ndarray)[rows].view(GAME).view(np.recarray)


@jit
def make_each(games: np.ndarray, rows: np.ndarray, actions: np.ndarray) -> None:
    """Make a move in some games, and those behind it that are forced, within the round."""
    for k in range(len(rows)):
        g, action = games[int(rows[k])], int(actions[k])
        while action >= 0:
            move(g, action)
            action = only_move(g) if int(g.end) == PLAYING else -1


@jit
def deal_each(games: np.ndarray, rows: np.ndarray, scratch: np.ndarray) -> None:
    """Deal the next round of some matches, up to the first choice there."""
    for k in range(len(rows)):
        g = games[int(rows[k])]
        next_round(g)
        g.asked = 1  # redaction has taken it away
        skip_forced(games, rows[k], scratch)


@jit
def return_each(games: np.ndarray) -> None:
    """Take back all moves of the round in each game."""
    for i in range(len(games)):
        return_to_deal(games[i])


@jit
def asked_each(
    worlds: np.ndarray, again: np.ndarray, seats: np.ndarray, k: int, out: np.ndarray
) -> None:
    """Whether event k of a world is a choice of another seat than `seats`; `again` stands there."""
    for i in range(len(worlds)):
        event = int(worlds[i].events[k])
        others = k < int(worlds[i].event_count) and event >> 7 & 3 != seats[i]
        out[i] = others and only_move(again[i]) < 0


@jit
def replay_each(worlds: np.ndarray, again: np.ndarray, k: int) -> None:
    """Make the move of event k of each world, and the passes behind it, in `again`."""
    for i in range(len(worlds)):
        if k < int(worlds[i].event_count):
            g, event = again[i], int(worlds[i].events[k])
            move(g, event & 127)
            for _ in range(event >> 9):
                move(g, 2 * int(g.tiles) + 1)
