"""Ratings of agents, fitted to all results of a tournament at once.

Letters: `N` agents, `K` pairings, `G` blocks of deals (`agents.result.BLOCKS`).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from agents.result import BLOCKS, Result, equal_share

ELO = 400 / math.log(10)  # points of Elo that e times the odds are worth


class Rating(NamedTuple):
    """Strength on the Elo scale; the mean over the agents that have one is 0."""

    elo: float
    ci95: float  # half width of the 95% interval; nan with a single deal

    def text(self) -> str:
        """The rating with its interval: `+123 ± 8`."""
        return f"{self.elo:+.0f} ± {'?' if math.isnan(self.ci95) else f'{self.ci95:.0f}'}"


def ratings(agents: Sequence[str], results: Iterable[Result]) -> dict[str, Rating | None]:
    """Ratings by results on the same rules, the highest first; None where there is no result.

    Maximum likelihood of the model of Bradley and Terry (Biometrika 39, 1952): the log odds that A
    wins are the difference in strength, plus, with more than two sides, the log odds among equals
    (Luce's choice of a winner, or, where a match has losers, of a loser). A draw is worth what an
    equal gets, half a win for two sides. Each pairing gets one drawn game more, so that an agent
    that never lost has a rating too. If failures split the agents, those outside the largest group
    have no rating.

    Intervals are those of the luck in the deals. Games are not independent: a deal is played in
    every place, and in all pairings. So the spread is that of whole blocks of deals, the same in
    all pairings (the sandwich covariance of clusters: Liang and Zeger, Biometrika 73, 1986).
    """
    results = list(results)
    group = _largest_group(agents, results)
    fitted: dict[str, Rating | None] = {}
    if len(group) > 1:
        strength, half = _strengths(group, [result for result in results if result.a in group])
        for k in np.argsort(-strength.round(9), kind="stable"):
            fitted[group[k]] = Rating(float(ELO * strength[k]), float(ELO * half[k]))
    return fitted | {name: None for name in agents if name not in fitted}


def _strengths(group: list[str], results: list[Result]) -> tuple[np.ndarray, np.ndarray]:
    """Strengths [N] and the half widths of their 95% intervals [N], in log odds."""
    equal = equal_share(results[0].rules)
    differs = np.zeros((len(results), len(group)))
    for k, result in enumerate(results):
        differs[k, group.index(result.a)], differs[k, group.index(result.b)] = 1, -1
    won, games = (np.array(list(map(count, results))) for count in (_won, _games))  # [K, G]
    share = (won.sum(1) + equal) / (games.sum(1) + 1)
    strength, chance, inverse = fit(differs, share, games.sum(1) + 1, math.log(equal / (1 - equal)))
    left = differs.T @ (won - games * chance[:, None])  # what the strengths leave in each block
    used = int((games.sum(0) > 0).sum())
    if used < 2:
        return strength, np.full(len(group), math.nan)
    spread = left @ left.T * used / (used - 1) + differs.T @ differs * equal * (1 - equal)
    quantile = 1.96 + 2.37 / (used - 1)  # of Student's t, nearly
    return strength, quantile * np.sqrt(np.diag(inverse @ spread @ inverse))


def fit(
    differs: np.ndarray, share: np.ndarray, games: np.ndarray, offset: float
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Strengths [N] (log odds, mean 0) by Newton's method, chances [K], inverse Hessian [N, N].

    `differs` [K, N] is 1 for A and -1 for B of a pairing, and links all agents; `share` [K] is what
    A won of `games` [K], `offset` the log odds of a win among equals.
    """
    strength = np.zeros(differs.shape[1])
    for _ in range(100):
        chance = 1 / (1 + np.exp(-(differs @ strength + offset)))
        hessian = differs.T * (games * chance * (1 - chance)) @ differs
        inverse = np.linalg.pinv(hessian, hermitian=True)  # the mean of all stays 0
        step = inverse @ (differs.T @ (games * (share - chance)))
        strength += step * min(1, 1 / max(np.abs(step).max(), 1e-300))  # at most e times the odds
        if np.abs(step).max() < 1e-10:
            break
    return strength, chance, inverse


def _won(result: Result) -> np.ndarray:
    """The games that A won in each block, float64 [G]."""
    blocks = np.array(result.blocks) / result.rules.sides
    return np.pad(blocks, (0, BLOCKS - len(blocks)))


def _games(result: Result) -> np.ndarray:
    """The games in each block, float64 [G]."""
    deals = (result.deals - np.arange(BLOCKS) + BLOCKS - 1) // BLOCKS
    return deals * (result.games / result.deals)


def _largest_group(agents: Sequence[str], results: list[Result]) -> list[str]:
    """The most agents that pairings link, directly or through others, in their order."""
    group = {name: {name} for name in agents}
    for result in results:
        joined = group[result.a] | group[result.b]
        group.update(dict.fromkeys(joined, joined))
    largest = max(group.values(), key=len)
    return [name for name in agents if name in largest]
