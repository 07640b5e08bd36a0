"""Perfect information: the exact value and the best move of a round whose tiles all lie open.

    solver = Solver(rules, "points")
    values, actions = solver.solve(games)        # of each position, to the seat that is to move
    values = solver.action_values(games)         # float64 [B, A], of every legal action

Two sides: the value of best play by both, to the side of the seat to move. Three or four single
seats: the seat to move against all others together (*paranoid*: Sturtevant and Korf 2000, "On
pruning techniques for multi-player games"), so what it is sure of, whatever they do.

Of a match it is the round that is solved, as if nothing came after it. `agents.alphabeta` searches;
moves from the position that is asked about are made by the engine.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import numpy as np

from agents.alphabeta import (
    BOTH,
    FAR,
    LOST,
    OPEN,
    OURS,
    SEARCH,
    THEIRS,
    UNLIMITED,
    WON,
    give,
    next_to_play,
    payoff_at_end,
    reaches,
    value_of,
)
from domino_env.compiled import jit
from domino_env.engine import is_legal, move, only_move
from domino_env.rules import Rules
from domino_env.scoring import side_count
from domino_env.state import BLOCKED, GAME, NOBODY, PLAYING, UNIT, Record
from domino_env.tiles import MAX_TILES, PIPS, SUIT

GENERATIONS = (1 << 15) - 1  # as many as a place of the table can tell apart


class Terms(NamedTuple):
    """A sum of pips left in hand, to a side: `one + own*... + rest*... + winner*...`."""

    one: float = 0
    own: float = 0  # times the pips of the side itself
    rest: float = 0  # times the pips of all others
    winner: float = 0  # times the pips of the side that won, which is one of these


@dataclass(frozen=True)
class Payoff:
    """What a round is worth to a side, by how it ended, and whether it was lost, drawn or won.

    With `clip` nobody gains by a round that is lost, or loses by one that is won.
    """

    out: tuple[Terms, Terms, Terms]
    block: tuple[Terms, Terms, Terms]
    clip: bool = False

    @classmethod
    def of(cls, rules: Rules, objective: str) -> Self:
        """`win`: 1, 0, or -1 shared over the others; `points`: of a round, both as in RULES.md 9.

        Raises `ValueError` on another objective.
        """
        others = rules.sides - 1
        if objective == "win":
            each = (Terms(one=-1 / others), Terms(), Terms(one=1))
            return cls(each, each)
        if objective != "points":
            raise ValueError(f"objective: found {objective!r}, expected win or points")
        if rules.score == "loser":
            each = Terms(own=-1, rest=1 / others)
            return cls((each, each, each), (each, each, each))
        return cls(_written(others, 1), _written(others, 2 - (rules.block_score == "gross")), True)

    def table(self) -> np.ndarray:
        """The terms in sixths, int64 [2, 3, 4]: out or block; lost, drawn, won; the four terms.

        Raises `ValueError` where they are no sixths.
        """
        terms = np.array([self.out, self.block], np.float64) * UNIT
        table = np.rint(terms).astype(np.int64)
        if not np.allclose(table, terms):
            raise ValueError(f"payoff: found {self}, expected multiples of 1/{UNIT}")
        return table


def _bounds(table: np.ndarray, sides: int, clip: bool) -> tuple[np.ndarray, np.ndarray]:
    """Terms (1, own, rest; int64 [3]) that no payoff of a table is above, and none below.

    Pips only get fewer, so a term that lowers the payoff may come to nothing.
    """
    most, least = table[..., :3].copy(), table[..., :3].copy()
    winner = table[..., 3]
    for bound, extreme in ((most, np.maximum), (least, np.minimum)):
        bound[:, WON, 1] += winner[:, WON]
        bound[:, LOST, 2] += winner[:, LOST] if sides == 2 else extreme(winner[:, LOST], 0)
        bound[..., 1:] = extreme(bound[..., 1:], 0)
    if clip:
        most[:, LOST], least[:, WON] = 0, 0
    return most.max(axis=(0, 1)), least.min(axis=(0, 1))


def _written(others: int, times: int) -> tuple[Terms, Terms, Terms]:
    """All pips less `times` the winner's are written by the winner, and borne by the others."""
    share = 1 / others
    return (Terms(0, -share, -share, times * share), Terms(), Terms(0, 1, 1, -times))


# ---------------------------------------------------------------- the position that is asked about


@jit
def set_up(s: Record, g: Record) -> None:
    """Begin the search of a game: its rules, and whose side is ours."""
    s.seats, s.teams, s.double_pair = g.seats, g.teams, g.double_pair
    s.draw, s.reserve, s.stock = g.draw, g.reserve, g.stock
    s.blank_double, s.blank_double_when = g.blank_double, g.blank_double_when
    s.team_block = g.team_block
    s.worth[0] = g.blank_double
    sides = side_count(g)
    for p in range(4):
        s.ours[p] = OURS if (p - int(g.seat)) % sides == 0 else THEIRS
        for m in range(128):
            s.history[p, m] = 0
    for k in range(MAX_TILES):
        s.boneyard[k] = g.boneyard[k]
    s.nodes = 0
    if int(s.generation) == GENERATIONS:
        for k in range(len(s.table)):
            s.table[k, 1] = 0
        s.generation = 0
    s.generation += 1


@jit
def place(s: Record, g: Record) -> int:
    """Make a position with tiles on the table level 0; its value where the round is over."""
    s.held[OURS], s.held[THEIRS] = 0, 0
    for p in range(4):
        s.hands[p] = 0
        give(s, p, int(g.hands[p]), 1)
    s.drawn = g.drawn
    if int(g.end) != PLAYING:
        return payoff_at_end(s, int(g.end), int(g.seat))
    left, right = int(g.left), int(g.right)
    fits = int(SUIT[left]) | int(SUIT[right])
    player = next_to_play(s, int(g.seat), fits, int(g.turn_draws))
    if player == NOBODY:
        return payoff_at_end(s, BLOCKED, int(g.seat))
    s.at_seat[0] = player
    s.at_low[0] = min(left, right)
    s.at_high[0] = max(left, right)
    return OPEN


@jit
def value_after(s: Record, g: Record, scratch: np.recarray, action: int, guess: int) -> int:
    """The exact value of a legal action."""
    scratch[0] = g
    move(scratch[0], action)
    value = place(s, scratch[0])
    return value_of(s, guess) if value == OPEN else value


@jit
def best_of_all(s: Record, g: Record, scratch: np.recarray) -> tuple[int, int]:
    """Value and best action, action by action: each need only be shown to be no better."""
    best, best_action = OPEN, NOBODY
    for action in range(2 * int(g.tiles) + 3):
        if not is_legal(g, action):
            continue
        if best != OPEN:
            scratch[0] = g
            move(scratch[0], action)
            value = place(s, scratch[0])
            if (reaches(s, best + 1) if value == OPEN else value) <= best:
                continue
        best = value_after(s, g, scratch, action, 0 if best == OPEN else best + 1)
        best_action = action
    return best, best_action


@jit
def best_of_game(s: Record, g: Record, scratch: np.recarray) -> tuple[int, int]:
    """Value and best action of a round that is not over."""
    set_up(s, g)
    only = only_move(g)
    if only >= 0:
        return value_after(s, g, scratch, only, 0), only
    if int(g.left) < 0:
        return best_of_all(s, g, scratch)
    place(s, g)
    value, m = value_of(s, 0), int(s.best)
    if m == BOTH:
        return value, 2 * int(g.tiles) + 2
    side = 0 if m & 1 == 0 else 1
    if int(g.left) > int(g.right):
        side = 1 - side
    return value, 2 * (m >> 1) + side


@jit
def solve_each(
    search: np.recarray,
    games: np.recarray,
    scratch: np.recarray,
    values: np.ndarray,
    actions: np.ndarray,
) -> int:
    """Write values (float64 [B]) and best actions (int64 [B]); how many positions were looked at.

    NaN and NOBODY where the round is over or the limit was hit. `search` [1] of SEARCH is set up
    by `Solver`, `scratch` is [1] of GAME.
    """
    s, nodes = search[0], 0
    for i in range(len(games)):
        values[i], actions[i] = np.nan, NOBODY
        if int(games[i].end) != PLAYING:
            continue
        value, action = best_of_game(s, games[i], scratch)
        nodes += int(s.nodes)
        if int(s.nodes) <= int(s.limit):
            values[i], actions[i] = value / UNIT, action
    return nodes


@jit
def action_values_each(
    search: np.recarray, games: np.recarray, scratch: np.recarray, values: np.ndarray
) -> int:
    """Write the value of every legal action (float64 [B, A], else NaN); as in `solve_each`."""
    s, nodes = search[0], 0
    for i in range(len(games)):
        g, value = games[i], 0
        values[i] = np.nan
        if int(g.end) != PLAYING:
            continue
        set_up(s, g)
        for action in range(2 * int(g.tiles) + 3):
            if is_legal(g, action):
                value = value_after(s, g, scratch, action, value)
                if int(s.nodes) > int(s.limit):
                    break
                values[i, action] = value / UNIT
        nodes += int(s.nodes)
    return nodes


# ---------------------------------------------------------------- for use


def tiles_placed(games: np.ndarray) -> np.ndarray:
    """How many tiles are on the table of each of `games` (GAME [B]), int64 [B]."""
    return np.bitwise_count(games["placed"]).sum(1, dtype=np.int64)


class Solver:
    """Solves rounds of `rules`. It keeps 1.2 MB of its own: one a thread, as many as you like.

    `payoff` is `"win"`, `"points"` (`Payoff.of`), or any `Payoff`. With `limit`, a position that
    takes more positions than that to solve has the value NaN. With `depth`, only the most promising
    move is looked at from that many plays on, so values are no longer exact but soon there.
    """

    def __init__(
        self,
        rules: Rules,
        payoff: str | Payoff = "win",
        *,
        limit: int | None = None,
        depth: int | None = None,
    ) -> None:
        for name, number in (("limit", limit), ("depth", depth)):
            if number is not None and number < 1:
                raise ValueError(f"{name}: found {number}, expected 1 or more")
        self.rules = rules
        self.payoff = payoff if isinstance(payoff, Payoff) else Payoff.of(rules, payoff)
        self.nodes = 0  # positions looked at by the last call
        self._search = self._made(UNLIMITED if limit is None else limit, depth)
        self._scratch = np.zeros(1, GAME).view(np.recarray)

    def solve(self, games: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Values (float64 [B]) of `games` (GAME [B]) to the seats to move, and best actions.

        The actions are int64 [B]. A round that is over has no value (NaN) and no action (-1).
        """
        values, actions = np.empty(len(games)), np.empty(len(games), np.int64)
        games = games.view(np.recarray)
        self.nodes = solve_each(self._search, games, self._scratch, values, actions)
        return values, actions

    def action_values(self, games: np.ndarray) -> np.ndarray:
        """The value of every legal action, float64 [B, A] to the seats to move, else NaN."""
        values = np.empty((len(games), self.rules.actions))
        games = games.view(np.recarray)
        self.nodes = action_values_each(self._search, games, self._scratch, values)
        return values

    def _made(self, limit: int, depth: int | None) -> np.recarray:
        search: Any = np.zeros(1, SEARCH).view(np.recarray)
        table = self.payoff.table()
        most, least = _bounds(table, self.rules.sides, self.payoff.clip)
        pips = int(PIPS[: self.rules.tiles].sum()) + self.rules.blank_double
        if max(most[0] + max(most[1:]) * pips, -least[0] - min(least[1:]) * pips) > FAR:
            raise ValueError(f"payoff: found values above {FAR // UNIT}, expected less")
        search.payoff[0], search.clipped = table, self.payoff.clip
        search.most[0], search.least[0] = most, least
        search.pipless = not (most[1:].any() or least[1:].any())
        search.worth[0] = PIPS
        search.limit, search.depth = limit, UNLIMITED if depth is None else depth
        return search
