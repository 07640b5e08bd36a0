"""Bots that weigh every legal move with a number and play one of the best, ties at random.

A bot gives `scores`; choosing, and the probabilities of the choice, are the same for all.
"""

from __future__ import annotations

import numpy as np

from agents.base import Agent, View
from domino_env.compiled import jit
from domino_env.rules import Rules
from domino_env.tiles import DOUBLE, PIPS


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
        scores = np.zeros(view.mask.shape)
        scores[:, : 2 * len(pips)] = np.repeat(pips, 2)
        if view.rules.double_pair:
            scores[:, -1] = both_pips(view, pips)
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
