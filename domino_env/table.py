"""From a game record to the `Table` that render.py and picture.py draw."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from domino_env.engine import (
    drawable,
)
from domino_env.moves import line_of, moves_of
from domino_env.render import Table, Tile
from domino_env.state import (
    MATCH,
    NOT_OVER,
    OUT,
    PLAYING,
    SCORE_LOSER,
    SCORE_NONE,
    TRUNCATED,
    Record,
)
from domino_env.tiles import HIGH, LOW, tiles_of


def table_of(g: Record, viewer: int, shown: Collection[int]) -> Table:
    """What there is to see of one game: the hands of the seats in `shown` face up, no others.

    `viewer` is the seat at the bottom of the picture.
    """
    seats, over = int(g.seats), int(g.end) != PLAYING or int(g.over) != NOT_OVER
    moves = moves_of(g)
    line = line_of(moves)
    return Table(
        hands=[_hand(g, p) if p in shown else [None] * int(g.hand_size[p]) for p in range(seats)],
        line=line.tiles,
        placed_by=line.placed_by,
        lead=line.lead,
        newest=line.newest,
        boneyard=int(g.stock) - int(g.drawn),
        drawable=drawable(g),
        scores=None if int(g.score) == SCORE_NONE else [int(n) for n in g.scores[: _sides(g)]],
        target=int(g.target) if int(g.episode) == MATCH else None,
        teams=bool(g.teams),
        round=int(g.round_number),
        to_move=None if over else int(g.seat),
        leader=int(g.leader),
        viewer=viewer,
        last_move=_move_words(*moves[-1]) if moves else "",
        result=_result(g) if over else "",
    )


def _hand(g: Record, seat: int) -> list[Tile]:
    return [(int(LOW[t]), int(HIGH[t])) for t in reversed(tiles_of(g.hands[seat]))]


def _sides(g: Record) -> int:
    return 2 if int(g.teams) else int(g.seats)


def _move_words(seat: int, move: str) -> str:
    said = {"draw": "draws", "pass": "passes", "both": "plays both doubles"}
    return f"player_{seat} {said.get(move, f'plays {move}')}"


def _result(g: Record) -> str:
    """How the round ended, and the game if it did, in one line."""
    if int(g.end) == PLAYING:
        return f"player_{int(g.seat)} made an illegal move"
    seats = range(int(g.seats))
    how = f"player_{int(g.seat)} is out" if int(g.end) == OUT else "blocked"
    winners = _names(p for p in seats if int(g.winner) >> p & 1)
    who = f"won by {winners}" if winners else "drawn"
    pips = ", ".join(str(int(g.pips[p])) for p in seats)
    return f"{how}, round {who}, pips {pips}{_match_result(g)}"


def _match_result(g: Record) -> str:
    if int(g.episode) != MATCH or int(g.over) == NOT_OVER:
        return ""
    if int(g.over) == TRUNCATED:
        return f"; match cut off after {int(g.max_rounds)} rounds"
    reached = [p for p in range(int(g.seats)) if int(g.scores[p % _sides(g)]) >= int(g.target)]
    if int(g.score) == SCORE_LOSER:
        return f"; goats {_names(reached)}"
    return f"; match won by {_names(reached)}"


def _names(seats: Iterable[int]) -> str:
    return " and ".join(f"player_{p}" for p in seats)
