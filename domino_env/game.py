"""`Game`: one game as a Python object, for people, tests, records and pictures.

    game = Game("cabra", seed=7, seats=3)
    while not game.over:
        game.play(game.legal_moves()[0])
    print(game.rewards, game.to_record())

A game is an array of one GAME record, `games`, on which the engine plays; the finished rounds of a
match are copies of what it was at their end.
"""

from __future__ import annotations

import operator
from collections.abc import Mapping, Sequence
from typing import Any, Self

import numpy as np

from domino_env import engine
from domino_env.deal import Tiles, new_game, set_deal
from domino_env.errors import IllegalMove, shown
from domino_env.moves import check_legal, legal_actions, legal_moves, moves_of, parse_move
from domino_env.observation import (
    history_each,
    history_length,
    layout_size,
    mask_each,
    observation_layout,
    observe_each,
    redact_each,
)
from domino_env.record import Played, game_to_record, record_to_game
from domino_env.render import Table, table_text
from domino_env.rules import Rules
from domino_env.state import (
    NOT_OVER,
    TRUNCATED,
    UNIT,
)
from domino_env.table import table_of
from domino_env.tiles import tile_text, tiles_text


class Game(Played):
    """A game of `rules` (a name, a mapping or `Rules`; `fields` override it), dealt from a seed.

    Every move is made by `play`, the only legal one too. The next round of a match is dealt in the
    move that ends a round. Games are equal if their records are, in every field; copies and pickles
    keep everything. Raises `RulesError` on bad rules, `ValueError` on a bad seed.
    """

    def __init__(
        self,
        rules: str | Mapping[str, Any] | Rules = "cabra",
        seed: int | None = None,
        **fields: Any,
    ) -> None:
        rules = Rules.of(rules, **fields)
        super().__init__(rules, new_game(rules, seed))
        engine.reset(self.games[0])

    @classmethod
    def deal(
        cls,
        rules: str | Mapping[str, Any] | Rules,
        hands: Sequence[Tiles],
        boneyard: Tiles,
        leader: int | None = None,
        seed: int | None = None,
        **fields: Any,
    ) -> Self:
        """A game whose first round is given: a hand a seat, the boneyard in drawing order.

        Tiles are text or a list, `"6-5 4-4"` or `["6-5", "4-4"]`. `leader` is for `lead: random`,
        elsewhere it must agree. Raises `RulesError` on a deal that these rules do not make.
        """
        rules = Rules.of(rules, **fields)
        game = cls.__new__(cls)
        Played.__init__(game, rules, new_game(rules, seed), given=True)
        set_deal(game.games, 0, rules, hands, boneyard, leader)
        return game

    @classmethod
    def from_record(cls, record: Mapping[str, Any], seed: int | None = None) -> Self:
        """The game in the position that a record reaches (RULES.md 12), or `RecordError`.

        What the record does not hold is dealt by the random state of `seed`.
        """
        game = cls.__new__(cls)
        vars(game).update(vars(record_to_game(record, seed)))
        return game

    def to_record(self) -> dict[str, Any]:
        """The game so far as a record (RULES.md 12), a dict of JSON's types."""
        return game_to_record(self)

    def copy(self) -> Self:
        """An independent copy in the same state."""
        new = self.__class__.__new__(self.__class__)
        vars(new).update(vars(self), games=self.games.copy(), finished=list(self.finished))
        return new

    __copy__ = copy

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Game):
            return NotImplemented
        return bool((self.games == other.games).all())

    __hash__ = None  # type: ignore[assignment]  # a game changes

    # ---- moves

    @property
    def seat(self) -> int:
        """The seat to move; at the end of the game, the seat that moved last."""
        return int(self.games[0].seat)

    def legal_actions(self) -> list[int]:
        """The legal actions of the seat to move, lowest first; none at the end."""
        return legal_actions(self.games)

    def legal_moves(self) -> list[str]:
        """`legal_actions` as text, in the same order: `6-5 R`, `6-5` (the lead), `draw`, ..."""
        return legal_moves(self.games)

    def play(self, move: str | int | np.integer) -> None:
        """Make a move, a text as in `legal_moves` or an action number, or raise `IllegalMove`."""
        action = self._action(move)
        check_legal(self.games, action)
        self.move_on(action)

    def _action(self, move: str | int | np.integer) -> int:
        if isinstance(move, str):
            return parse_move(move, self.rules.set, lead=self.ends is None)
        try:
            if not isinstance(move, bool):
                return operator.index(move)
        except TypeError:
            pass
        last = self.rules.actions - 1
        raise IllegalMove(
            f"move: {shown(move)} is no move, expected text or an action, 0 to {last}"
        )

    # ---- the position

    @property
    def over(self) -> bool:
        """Whether the game is over; `truncated` says if it was `max_rounds` that ended it."""
        return int(self.games[0].over) != NOT_OVER

    @property
    def truncated(self) -> bool:
        """Whether the match was ended by `max_rounds`."""
        return int(self.games[0].over) == TRUNCATED

    @property
    def rewards(self) -> list[float]:
        """The rewards of the game so far, by seat (RULES.md 9)."""
        return [n / UNIT for n in self.games[0].earned[: self.rules.seats].tolist()]

    @property
    def scores(self) -> list[int]:
        """The points on the record, by side (RULES.md 8)."""
        return self.games[0].scores[: self.rules.sides].tolist()

    @property
    def hands(self) -> list[str]:
        """The tiles of each seat, highest first."""
        return [tiles_text(hand) for hand in self.games[0].hands[: self.rules.seats]]

    @property
    def boneyard(self) -> str:
        """The tiles left in the boneyard, in drawing order."""
        g = self.games[0]
        return " ".join(tile_text(t) for t in g.boneyard[int(g.drawn) : int(g.stock)])

    @property
    def ends(self) -> tuple[int, int] | None:
        """The open ends, left and right; None before the lead."""
        g = self.games[0]
        return None if int(g.left) < 0 else (int(g.left), int(g.right))

    @property
    def round(self) -> int:
        """The number of the round, from 0."""
        return int(self.games["round_number"][0])

    @property
    def leader(self) -> int:
        """The seat that leads, or led, this round."""
        return int(self.games[0].leader)

    @property
    def moves(self) -> list[str]:
        """The moves of this round as a record has them: `0 6-5 R`."""
        return [f"{seat} {move}" for seat, move in moves_of(self.games[0])]

    @property
    def moves_made(self) -> int:
        """The number of moves in all rounds."""
        return int(self.games[0].moves)

    # ---- what a seat knows, as arrays

    def mask(self) -> np.ndarray:
        """The legal actions of the seat to move: int8 [A], zero at the end."""
        mask = np.zeros((1, self.rules.actions), np.int8)
        mask_each(self.games, mask)
        return mask[0]

    def observe(self, seat: int) -> np.ndarray:
        """What `seat` may know: uint8 [D], the parts of `observation_layout(rules)`."""
        size = layout_size(observation_layout(self.rules))
        out = np.zeros((1, size), np.uint8)
        observe_each(self.games, self._seats(seat), self.rules.seats, False, out)
        return out[0]

    def history(self, seat: int) -> np.ndarray:
        """The round as `seat` saw it: uint8 [history_length(rules), 4] (docs/observations.md)."""
        out = np.zeros((1, history_length(self.rules), 4), np.uint8)
        history_each(self.games, self._seats(seat), out)
        return out[0]

    def redact(self, seat: int) -> np.recarray:
        """The record [1] without anything that is hidden from `seat`."""
        games = self.games.copy()
        redact_each(games, self._seats(seat))
        return games

    def _seats(self, seat: int) -> np.ndarray:
        if isinstance(seat, bool) or not isinstance(seat, int | np.integer):
            raise ValueError(f"seat: {shown(seat)} is no integer")
        if not 0 <= seat < self.rules.seats:
            raise ValueError(f"seat: found {shown(seat)}, expected 0 to {self.rules.seats - 1}")
        return np.array([seat], np.int64)

    # ---- for people

    def table(self, viewer: int | None = None) -> Table:
        """The table as `viewer` sees it, everything face up without one (render.py)."""
        if viewer is not None:
            self._seats(viewer)
            return table_of(self.games[0], viewer, (viewer,))
        return table_of(self.games[0], 0, range(self.rules.seats))

    def __str__(self) -> str:
        return table_text(self.table())

    def __repr__(self) -> str:
        state = "over" if self.over else f"seat {self.seat} to move"
        return f"<Game {self.rules!r}: round {self.round}, {self.moves_made} moves made, {state}>"
