"""Ratings of agents, fitted to all results of a tournament at once.

Letters: `N` agents, `K` pairings.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from agents.evaluate import Result

ELO = 400 / math.log(10)  # points of Elo that e times the odds are worth


class Rating(NamedTuple):
    """Strength on the Elo scale; the mean over the agents that have one is 0."""

    elo: float
    ci95: float  # half width of the 95% interval


def ratings(agents: Sequence[str], results: Iterable[Result]) -> dict[str, Rating | None]:
    """Ratings by results on the same rules, the highest first; None where there is no result.

    Maximum likelihood of the model of Bradley and Terry (Biometrika 39, 1952): the log odds that A
    wins are the difference in strength, plus, with more than two sides, the log odds among equals
    (Luce's choice of a winner, or, where a match has losers, of a loser). A draw is worth what an
    equal gets, half a win for two sides. Each pairing gets one drawn game more, so that an agent
    that never lost has a rating too. Intervals are those of the luck in the deals, by the Hessian,
    with two games for each deal. By itself a pairing on duplicate deals is worth more than that,
    but an agent meets the same deals in all its pairings: between the bots, over 50 to 100 seeds,
    these intervals hold their agent's mean 94 to 99 times in 100.
    If failures split the agents, those outside the largest group have no rating.
    """
    results = list(results)
    group = _largest_group(agents, results)
    fitted: dict[str, Rating | None] = {}
    if len(group) > 1:
        strength, covariance = fit(*_scores(group, results), len(group))
        half = 1.96 * np.sqrt(np.diag(covariance))
        for k in np.argsort(-strength.round(9), kind="stable"):
            fitted[group[k]] = Rating(float(ELO * strength[k]), float(ELO * half[k]))
    return fitted | {name: None for name in agents if name not in fitted}


def fit(
    a: np.ndarray, b: np.ndarray, share: np.ndarray, games: np.ndarray, offset: float, agents: int
) -> tuple[np.ndarray, np.ndarray]:
    """Strengths [N] (log odds, mean 0) and their covariance [N, N], by Newton's method.

    `a`, `b` int64 [K] are agents, who must all be linked by pairings; `share` float64 [K] is what A
    won of `games` [K] independent games, `offset` the log odds of a win among equals.
    """
    differs = np.zeros((len(a), agents))
    differs[np.arange(len(a)), a] = 1
    differs[np.arange(len(b)), b] = -1
    strength = np.zeros(agents)
    for _ in range(100):
        chance = 1 / (1 + np.exp(-(differs @ strength + offset)))
        hessian = differs.T * (games * chance * (1 - chance)) @ differs
        covariance = np.linalg.pinv(hessian, hermitian=True)  # the mean of all stays 0
        step = covariance @ (differs.T @ (games * (share - chance)))
        strength += step * min(1, 1 / max(np.abs(step).max(), 1e-300))  # at most e times the odds
        if np.abs(step).max() < 1e-10:
            break
    return strength, covariance


def _scores(
    group: list[str], results: list[Result]
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, float]:
    """The results as `fit` takes them."""
    place = {name: k for k, name in enumerate(group)}
    results = [result for result in results if {result.a, result.b} <= set(group)]
    rules = results[0].rules
    sides = 2 if rules.teams else rules.seats
    has_losers = rules.score == "loser" and rules.episode == "match"
    equal = 1 - 1 / sides if has_losers else 1 / sides
    share = np.array([_share(result, sides, equal) for result in results])
    games = np.array([2.0 * result.deals for result in results])
    return (
        np.array([place[result.a] for result in results]),
        np.array([place[result.b] for result in results]),
        (share * games + equal) / (games + 1),
        games + 1,
        math.log(equal / (1 - equal)),
    )


def _share(result: Result, sides: int, equal: float) -> float:
    """What A won of its games: under `reward: win` a tie of some sides is a share of a win."""
    if result.rules.reward != "win":
        return result.wins + result.draws * equal
    # From a loss to a win the reward grows by sides / (sides - 1).
    return min(max(equal + result.mean * (sides - 1) / sides, 0), 1)


def _largest_group(agents: Sequence[str], results: list[Result]) -> list[str]:
    """The most agents that pairings link, directly or through others, in their order."""
    group = {name: {name} for name in agents}
    for result in results:
        joined = group[result.a] | group[result.b]
        group.update(dict.fromkeys(joined, joined))
    largest = max(group.values(), key=len)
    return [name for name in agents if name in largest]
