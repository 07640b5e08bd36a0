"""Figures of random play and of counting, beside those of programs that share no code with ours.

    python -m benchmarks.figures [ROUNDS]

plays ROUNDS rounds a row (400,000 by default), every legal move being equally likely, and prints
ours, the reference, and the difference in standard errors: two is usual, four is not.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from math import comb, inf, sqrt
from typing import Any, NamedTuple

import numpy as np

from domino_env.compiled import jit
from domino_env.engine import (
    blocked,
    move,
    only_move,
    reset,
)
from domino_env.observation import mask
from domino_env.rules import Rules
from domino_env.state import (
    BLOCKED,
    GAME,
    NOT_OVER,
    new_games,
    random_below,
)
from domino_env.tiles import DOUBLES

ROUNDS = 400_000
REFERENCE_ROUNDS = 400_000
OUTCOME, BLOCK, CLOSED, PLACED, DRAWS = range(5)  # columns of `play_rounds`
DRAWN, LEADER_WON, OTHERS_WON = 0, 1, 2  # OUTCOME


class Row(NamedTuple):
    """A row of the table of random play: rules, and the reference's figures, None if not given."""

    rules: Rules
    leader_wins: float | None
    blocked: float | None
    drawn: float | None
    placed: float | None
    draws: float | None


def _rules(preset: str, **fields: Any) -> Rules:
    return Rules.preset(preset, episode="round", **fields)


RANDOM_PLAY = [
    Row(_rules("sin_robo", lead="seat"), 56.64, 70.36, 2.56, 10.362, None),
    Row(_rules("sin_robo"), 57.54, 65.65, 2.82, 10.571, None),
    Row(_rules("sin_robo", seats=4, hand_size=7), 36.09, 25.11, 1.90, 22.498, None),
    Row(_rules("sin_robo", seats=4, teams=True), 57.76, 25.11, 1.82, 22.498, None),
    Row(_rules("estandar"), 54.96, 17.37, 0.52, 18.372, 7.925),
    Row(_rules("cabra"), None, 16.77, None, None, None),
]

# Dealt tiles of a double-six set, and the chance that none of them is a double.
NO_DOUBLE = {14: 0.0028986, 15: 0.0014493, 20: 6.757e-6}


class Blocks(NamedTuple):
    """The fewest and the most tiles on the table when nobody holds a tile that fits.

    The reference counts a last tile that makes it so as well. By RULES.md 6 that round is out, not
    blocked: in a block every seat still holds a tile, so the most is one less.
    """

    name: str
    rules: Rules
    shortest: int
    longest: int


BLOCKS = [
    Blocks("4 x 7", Rules(seats=4, hand_size=7), 10, 25),
    Blocks("2 x 7", Rules(seats=2, hand_size=7, lead="seat"), 1, 13),
]


@dataclass
class Figure:
    """One of our figures beside the reference's; `error` is that of their difference."""

    game: str
    name: str
    ours: float
    reference: float
    error: float

    @property
    def z(self) -> float:
        """The difference in standard errors."""
        difference = self.ours - self.reference
        return difference / self.error if self.error else inf * difference


# ---------------------------------------------------------------- playing


@jit
def random_action(g: Any, dice: Any, legal: np.ndarray) -> int:
    """A legal action, all equally likely; `legal` int8 [1, A] is room to write, `dice` a game."""
    action = only_move(g)
    if action >= 0:
        return action
    mask(g, legal, 0)
    count = 0
    for a in range(legal.shape[1]):
        count += legal[0, a]
    rank = random_below(dice, count)
    action = -1
    while rank >= 0:
        action += 1
        rank -= legal[0, action]
    return action


@jit
def play_rounds(games: np.recarray, legal: np.ndarray, out: np.ndarray) -> None:
    """Play games[0] again and again, with the dice of games[1]; a round a row of `out` int16."""
    g, dice = games[0], games[1]
    for n in range(len(out)):
        reset(g)
        while int(g.over) == NOT_OVER:
            move(g, random_action(g, dice, legal))
        out[n, OUTCOME] = DRAWN
        if int(g.winner) != 0:
            out[n, OUTCOME] = LEADER_WON if int(g.winner) >> int(g.leader) & 1 else OTHERS_WON
        out[n, BLOCK] = 1 if int(g.end) == BLOCKED else 0
        out[n, CLOSED] = 1 if blocked(g) else 0
        placed = int(g.tiles) - int(g.stock) + int(g.drawn)
        draws = 0
        for p in range(int(g.seats)):
            placed -= int(g.hand_size[p])
            draws += int(g.draws[p])
        out[n, PLACED] = placed
        out[n, DRAWS] = draws


@jit
def deals_without_double(games: np.recarray, deals: int) -> int:
    """In how many of so many deals no seat holds a double."""
    found = 0
    for _ in range(deals):
        reset(games[0])
        hands = 0
        for p in range(int(games[0].seats)):
            hands |= int(games[0].hands[p])
        found += 1 if hands & DOUBLES == 0 else 0
    return found


def played(rules: Rules, rounds: int, seed: int) -> np.ndarray:
    """Rounds of random play, int16 [rounds, 5].

    Who won, whether it was a block, whether nobody could go on (a block, or a last tile that made
    one), tiles placed, draws.
    """
    games = new_games(rules, np.array([seed, seed + 1], np.uint64))
    assert games.dtype == np.dtype((np.record, GAME))
    out = np.zeros((rounds, 5), np.int16)
    play_rounds(games, np.zeros((1, rules.actions), np.int8), out)
    return out


# ---------------------------------------------------------------- comparing


def random_play(rounds: int, seed: int = 0) -> list[Figure]:
    """All figures of the table of random play."""
    figures = []
    for i, row in enumerate(RANDOM_PLAY):
        found = played(row.rules, rounds, seed + 2 * i)
        samples = {
            "leader_wins": 100 * (found[:, OUTCOME] == LEADER_WON),
            "blocked": 100 * found[:, BLOCK],
            "drawn": 100 * (found[:, OUTCOME] == DRAWN),
            "placed": found[:, PLACED],
            "draws": found[:, DRAWS],
        }
        for name, values in samples.items():
            reference = getattr(row, name)
            if reference is not None:
                figures.append(compared(row.rules, name, values, reference))
    return figures


def compared(rules: Rules, name: str, values: np.ndarray, reference: float) -> Figure:
    """The mean of a sample beside the reference's, whose own sample spreads as ours does."""
    spread = float(values.std())
    error = spread * sqrt(1 / len(values) + 1 / REFERENCE_ROUNDS)
    unit = "" if name in ("placed", "draws") else " %"
    label = name.replace("_", " ") + unit
    return Figure(described(rules), label, float(values.mean()), reference, error)


def no_double(deals: int, seed: int = 100) -> list[Figure]:
    """The chance that no dealt tile is a double, from our deals."""
    sizes = {14: (2, 7), 15: (3, 5), 20: (4, 5)}
    figures = []
    for tiles, chance in NO_DOUBLE.items():
        seats, hand = sizes[tiles]
        games = new_games(Rules(seats=seats, hand_size=hand), seed + tiles)
        share = deals_without_double(games, deals) / deals
        error = sqrt(chance * (1 - chance) / deals)
        figures.append(Figure(f"{seats} x {hand}", "no double", share, chance, error))
    return figures


def blocks(rounds: int, seed: int = 200) -> list[tuple[Blocks, np.ndarray, np.ndarray]]:
    """For each of BLOCKS the tiles placed when nobody could go on: all rounds, and blocks alone."""
    found = []
    for i, expected in enumerate(BLOCKS):
        rows = played(expected.rules, rounds, seed + 2 * i)
        closed = rows[rows[:, CLOSED] == 1]
        found.append((expected, closed[:, PLACED], closed[closed[:, BLOCK] == 1, PLACED]))
    return found


def described(rules: Rules) -> str:
    """Rules as the table names them."""
    given = {name: value for name, value in rules.given.items() if name != "episode"}
    return " ".join([rules.preset, *(f"{name}={value}" for name, value in given.items())])


# ---------------------------------------------------------------- printing


def show(figures: list[Figure], digits: int) -> None:
    """A table of figures."""
    print(f"{'game':<36}{'figure':<16}{'ours':>12}{'reference':>12}{'std errors':>12}")
    for f in figures:
        numbers = f"{f.ours:>12.{digits}f}{f.reference:>12.{digits}f}{f.z:>12.2f}"
        print(f"{f.game:<36}{f.name:<16}{numbers}")


def main(rounds: int = ROUNDS) -> None:
    """Print every figure; `rounds` a row of random play, 25 times as many deals."""
    print(f"Random play, {rounds:,} rounds a row\n")
    show(random_play(rounds), 3)
    print(f"\nDeals without a double, of {25 * rounds:,}\n")
    show(no_double(25 * rounds), 8)
    print(f"\nTiles on the table when nobody can go on, of {rounds:,} rounds\n")
    for expected, closed, block in blocks(rounds):
        reference = f"reference {expected.shortest} to {expected.longest}"
        ours = f"{closed.min()} to {closed.max()}, in a block at most {block.max()}"
        print(f"{expected.name}: {ours}; {reference}")
    print(f"\nDeals of 2 x 7: {comb(28, 7) * comb(21, 7):,}")
    print(f"Deals of 4 x 7: {comb(28, 7) * comb(21, 7) * comb(14, 7):,}")


if __name__ == "__main__":
    main(*(int(word) for word in sys.argv[1:2]))
