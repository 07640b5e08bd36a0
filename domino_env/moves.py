"""Moves as text, and the line on the table that they make (RULES.md 5, 12).

The text of a move is that of a record, without the seat: `6-5 R`, `6-5` (the lead), `both`, `draw`,
`pass`. Everything here is worked out from one GAME record, mostly from its events.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np

from domino_env.engine import (
    is_legal,
)
from domino_env.errors import IllegalMove, shown
from domino_env.observation import mask_each
from domino_env.state import (
    NOT_OVER,
    Record,
)
from domino_env.tiles import parse_tile, tile_count, tile_text

Move = tuple[int, str]  # the seat and its move
WORDS = ("draw", "pass", "both")  # the actions 2T, 2T + 1, 2T + 2
ENDS = ("L", "R")


def move_text(action: int, tiles: int, *, lead: bool = False) -> str:
    """An action as text, in a set of `tiles` tiles; as the `lead` it has no side."""
    if action >= 2 * tiles:
        return WORDS[action - 2 * tiles]
    tile = tile_text(action >> 1)
    return tile if lead else f"{tile} {ENDS[action & 1]}"


def parse_move(text: str, set_: int, *, lead: bool) -> int:
    """The action that a text names in a double-`set_` set; whether it is legal is not looked at.

    Raises `IllegalMove` on a text that is no move, a lead with a side, a later tile without one.
    """
    word, *side = text.split() or [""]
    if word in WORDS and not side:
        return 2 * tile_count(set_) + WORDS.index(word)
    if side not in ([], ["L"], ["R"]):
        raise IllegalMove(f"move: {shown(text)} is no move, expected text like 6-5 R or pass")
    try:
        tile = parse_tile(word[:8], set_)  # cut, so that the message stays short
    except ValueError as error:
        raise IllegalMove(f"move: {error}") from None
    if lead and side:
        raise IllegalMove(f"move: {shown(text)} was found as the lead, expected a tile alone")
    if not lead and not side:
        raise IllegalMove(f"move: {shown(text)} was found without its side, expected L or R")
    return 2 * tile + (side == ["R"])


def legal_actions(games: np.recarray) -> list[int]:
    """The legal actions of the game in an array of length one, lowest first; none at its end."""
    mask = np.zeros((1, 2 * int(games[0].tiles) + 3), np.int8)
    mask_each(games, mask)
    return np.flatnonzero(mask[0]).tolist()


def legal_moves(games: np.recarray) -> list[str]:
    """`legal_actions` as text, in the same order."""
    g = games[0]
    lead = int(g.left) < 0
    return [move_text(action, int(g.tiles), lead=lead) for action in legal_actions(games)]


def check_legal(games: np.recarray, action: int) -> None:
    """Raise `IllegalMove` if the seat to move in the game [1] may not make that action."""
    g = games[0]
    tiles, last = int(g.tiles), 2 * int(g.tiles) + 2
    if int(g.over) != NOT_OVER:
        raise IllegalMove("move: the game is over, expected no more moves")
    if not 0 <= action <= last:
        raise IllegalMove(f"move: there is no action {shown(action)}, expected 0 to {last}")
    if not is_legal(g, action):
        lead = int(g.left) < 0 and not action & 1
        move = move_text(action, tiles, lead=lead)
        move = move if move in ("draw", "pass") else f"play {move}"
        legal = ", ".join(legal_moves(games))
        raise IllegalMove(f"move: seat {g.seat} may not {move} (legal: {legal})")


def moves_of(g: Record) -> list[Move]:
    """All moves of the round of a record, from its events."""
    seats, tiles = int(g.seats), int(g.tiles)
    moves: list[Move] = []
    for event in g.events[: int(g.event_count)].tolist():
        action, who, passes = event & 127, event >> 7 & 3, event >> 9
        moves.append((who, move_text(action, tiles, lead=not moves)))
        first = who if action == 2 * tiles else who + 1  # who draws and cannot play passes itself
        moves += [((first + k) % seats, "pass") for k in range(passes)]
    return moves


def dealt_hands(g: Record) -> list[int]:
    """The hands as they were dealt, bit sets by seat: all own tiles but those drawn since."""
    hands = [int(g.hands[p]) | int(g.placed[p]) for p in range(int(g.seats))]
    drawers = [who for who, move in moves_of(g) if move == "draw"]
    for k, who in enumerate(drawers):
        hands[who] &= ~(1 << int(g.boneyard[k]))
    return hands


@dataclass
class Line:
    """The line on the table, from its left end to its right end."""

    tiles: list[tuple[int, int]] = field(default_factory=list)  # halves as they lie
    placed_by: list[int] = field(default_factory=list)  # seat of each tile
    lead: int = 0  # index of the first tile of the round
    newest: list[int] = field(default_factory=list)  # indices of what the last move put down

    def add(self, seat: int, move: str) -> None:
        """Lay down what a move, as `move_text` writes it, puts on the table."""
        self.newest = []
        if move == "both":
            left, right = self.tiles[0][0], self.tiles[-1][1]
            self._put(seat, (left, left), "L")
            self._put(seat, (right, right), "R")
            self.newest = [0, len(self.tiles) - 1]
        elif move not in WORDS:
            tile, side = (int(move[2]), int(move[0])), move[4:]  # lower half first
            if side and (tile[1] if side == "L" else tile[0]) != self._end(side):
                tile = tile[1], tile[0]
            self._put(seat, tile, side)
            self.newest = [0 if side == "L" else len(self.tiles) - 1]

    def _end(self, side: str) -> int:
        return self.tiles[0][0] if side == "L" else self.tiles[-1][1]

    def _put(self, seat: int, tile: tuple[int, int], side: str) -> None:
        at = 0 if side == "L" else len(self.tiles)
        self.tiles.insert(at, tile)
        self.placed_by.insert(at, seat)
        self.lead += side == "L"


def line_of(moves: Iterable[Move]) -> Line:
    """The line that the moves of a round make."""
    line = Line()
    for seat, move in moves:
        line.add(seat, move)
    return line
