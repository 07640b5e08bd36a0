"""Bots that weigh every legal move with a number and play one of the best, ties at random.

A bot gives `scores`; choosing, and the probabilities of the choice, are the same for all. Those
that look beyond the tile they put down read the redacted record (`View.games`).
"""

from __future__ import annotations

import numpy as np

from agents.base import Agent, View
from agents.chances import count_bits, none_chance
from domino_env.compiled import jit, lowest
from domino_env.rules import Rules
from domino_env.state import (
    Record,
)
from domino_env.tiles import DOUBLE, HIGH, LOW, PIPS, SUIT


@jit
def favourites(mask: np.ndarray, scores: np.ndarray, row: int) -> tuple[float, int]:
    """The highest score of a legal action in a row, and how many legal actions have it."""
    best, count = -np.inf, 0
    for a in range(mask.shape[1]):
        if mask[row, a] != 0:
            if scores[row, a] > best:
                best, count = scores[row, a], 1
            elif scores[row, a] == best:
                count += 1
    return best, count


@jit
def choose_each(mask: np.ndarray, scores: np.ndarray, uniform: np.ndarray, out: np.ndarray) -> None:
    """Write to `out` (int64 [B]) a legal action of the highest score, each with the same chance.

    `mask` int8 [B, A], `scores` float64 [B, A], `uniform` float64 [B] in [0, 1): one number a row.
    """
    for i in range(len(mask)):
        best, count = favourites(mask, scores, i)
        left = int(uniform[i] * count)
        for a in range(mask.shape[1]):
            if mask[i, a] != 0 and scores[i, a] == best:
                if left == 0:
                    out[i] = a
                    break
                left -= 1


@jit
def spread_each(mask: np.ndarray, scores: np.ndarray, out: np.ndarray) -> None:
    """Write to `out` (float32 [B, A], zero before) the probabilities of `choose_each`."""
    for i in range(len(mask)):
        best, count = favourites(mask, scores, i)
        for a in range(mask.shape[1]):
            if mask[i, a] != 0 and scores[i, a] == best:
                out[i, a] = 1 / count


class Bot(Agent):
    """Plays a legal action of the highest score."""

    uses: frozenset[str] = frozenset()

    def scores(self, view: View) -> np.ndarray:
        """A number for every action, float64 [B, A]; those of illegal ones are never read."""
        raise NotImplementedError

    def act(self, view: View) -> np.ndarray:
        """An action of the highest score for every position, int64 [B], ties broken at random."""
        actions = np.zeros(len(view), np.int64)
        choose_each(view.mask, self.scores(view), self.random.random(len(view)), actions)
        return actions

    def policy(self, view: View) -> np.ndarray:
        """Uniform over the actions of the highest score, float32 [B, A]."""
        probabilities = np.zeros(view.mask.shape, np.float32)
        spread_each(view.mask, self.scores(view), probabilities)
        return probabilities


# ---------------------------------------------------------------- the tile put down


class Random(Bot):
    """Uniform over the legal actions."""

    name = "random"

    def scores(self, view: View) -> np.ndarray:
        """All the same."""
        return np.zeros(view.mask.shape)


class Heaviest(Bot):
    """Puts down the most pips it can (bota gorda): of both doubles, their sum.

    0-0 counts `blank_double` where the rules make it count always; alone in a hand it is no choice.
    """

    name = "heaviest"

    def scores(self, view: View) -> np.ndarray:
        """The pips that an action puts down."""
        pips = tile_pips(view.rules)
        scores = tile_scores(view, pips)
        if view.rules.double_pair:
            scores[:, -1] = both_pips(view, pips)
        return scores


class Lightest(Heaviest):
    """Puts down the fewest pips it can, counted as `Heaviest` does."""

    name = "lightest"

    def scores(self, view: View) -> np.ndarray:
        """The pips that an action puts down, negative."""
        return -super().scores(view)


class DoubleFirst(Bot):
    """Puts down a double where it can, both where that is allowed; else any tile."""

    name = "double_first"

    def scores(self, view: View) -> np.ndarray:
        """The doubles that an action puts down."""
        doubles = LOW[: view.rules.tiles] == HIGH[: view.rules.tiles]
        scores = tile_scores(view, doubles.astype(np.int64))
        scores[:, -1] = 2
        return scores


def tile_scores(view: View, values: np.ndarray) -> np.ndarray:
    """Scores float64 [B, A] of putting down each tile, left or right, from its value ([T])."""
    scores = np.zeros(view.mask.shape)
    scores[:, : 2 * len(values)] = np.repeat(values, 2)
    return scores


def tile_pips(rules: Rules) -> np.ndarray:
    """What each tile counts in a hand of several, int64 [T] (RULES.md 7)."""
    pips = PIPS[: rules.tiles].copy()
    pips[0] = rules.blank_double if rules.blank_double_when == "always" else 0
    return pips


def both_pips(view: View, pips: np.ndarray) -> np.ndarray:
    """The pips of the doubles of both ends, int64 [B]; right where `both` is legal.

    With different ends no other double fits, so they are the legal doubles, left and right.
    """
    doubles = DOUBLE[: view.rules.set + 1]
    fits = view.mask[:, 2 * doubles] + view.mask[:, 2 * doubles + 1]
    return fits @ pips[doubles]


# ---------------------------------------------------------------- what it leaves


@jit
def after(g: Record, action: int) -> tuple[int, int, int]:
    """The tiles that a legal play puts down (bit set), and the ends that it leaves."""
    left, right = int(g.left), int(g.right)
    if action == 2 * int(g.tiles) + 2:
        return 1 << int(DOUBLE[left]) | 1 << int(DOUBLE[right]), left, right
    tile = action >> 1
    halves = int(LOW[tile]) + int(HIGH[tile])
    if left < 0:
        return 1 << tile, int(LOW[tile]), int(HIGH[tile])
    if action & 1:
        return 1 << tile, left, halves - right
    return 1 << tile, halves - left, right


@jit
def pips_of(tiles: int) -> int:
    """The pips that are in a set of tiles, bit v for pip v."""
    pips = 0
    while tiles != 0:
        tile = lowest(tiles)
        pips |= 1 << int(LOW[tile]) | 1 << int(HIGH[tile])
        tiles &= tiles - 1
    return pips


@jit
def unseen_tiles(g: Record) -> int:
    """The tiles that the seat to move neither holds nor sees on the table."""
    table = int(g.placed[0]) | int(g.placed[1]) | int(g.placed[2]) | int(g.placed[3])
    return ((1 << int(g.tiles)) - 1) & ~(table | int(g.hands[g.seat]))


@jit
def candidates(g: Record, seat: int, unseen: int) -> int:
    """The unseen tiles that a seat may hold: it lacks none of their pips, and they were dealt.

    A seat that has drawn may hold tiles that were not dealt.
    """
    lacks = int(g.lacks[seat])
    while lacks != 0:
        unseen &= ~int(SUIT[lowest(lacks)])
        lacks &= lacks - 1
    return unseen if int(g.draws[seat]) > 0 else unseen & ~int(g.not_dealt)


@jit
def lacks_chance(g: Record, seat: int, unseen: int, fitting: int) -> float:
    """The chance that a seat holds none of some tiles, each of its candidates being as likely."""
    held = candidates(g, seat, unseen)
    return none_chance(count_bits(held), int(g.hand_size[seat]), count_bits(held & fitting))


@jit
def variety_each(games: np.recarray, mask: np.ndarray, out: np.ndarray) -> None:
    """Write to `out` (float64 [B, A]) how many different pips each legal play leaves in hand."""
    for i in range(len(games)):
        g = games[i]
        for a in range(2 * int(g.tiles) + 3):
            if mask[i, a] != 0 and a != 2 * int(g.tiles) and a != 2 * int(g.tiles) + 1:
                put, _, _ = after(g, a)
                out[i, a] = count_bits(pips_of(int(g.hands[g.seat]) & ~put))


@jit
def blocking_each(games: np.recarray, mask: np.ndarray, out: np.ndarray) -> None:
    """Write to `out` (float64 [B, A]) the chance that the next seat has no answer to each play.

    In teams the chance that the partner has none is taken off.
    """
    for i in range(len(games)):
        g = games[i]
        unseen, seats = unseen_tiles(g), int(g.seats)
        for a in range(2 * int(g.tiles) + 3):
            if mask[i, a] != 0 and a != 2 * int(g.tiles) and a != 2 * int(g.tiles) + 1:
                _, left, right = after(g, a)
                fitting = unseen & (int(SUIT[left]) | int(SUIT[right]))
                chance = lacks_chance(g, (int(g.seat) + 1) % seats, unseen, fitting)
                if int(g.teams):
                    chance -= lacks_chance(g, (int(g.seat) + 2) % seats, unseen, fitting)
                out[i, a] = chance


class Mobility(Bot):
    """Keeps the most different pips in hand: puts down the most accompanied tile."""

    name = "mobility"
    uses = frozenset({"games"})

    def scores(self, view: View) -> np.ndarray:
        """How many different pips stay in hand."""
        assert view.games is not None
        scores = np.zeros(view.mask.shape)
        variety_each(view.games, view.mask, scores)
        return scores


class Blocker(Bot):
    """Leaves ends that the next seat lacks, for certain or likely, and its partner does not."""

    name = "blocker"
    uses = frozenset({"games"})

    def scores(self, view: View) -> np.ndarray:
        """The chance that the next seat has no answer, less the partner's."""
        assert view.games is not None
        scores = np.zeros(view.mask.shape)
        blocking_each(view.games, view.mask, scores)
        return scores
