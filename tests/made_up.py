"""Results of agents of known strength, drawn rather than played."""

import math

import numpy as np

from agents.result import BLOCKS, Budget, Result
from agents.tournament import Tournament


def made_up(rules, strengths, deals, random, pairs=None):
    """A tournament of independent games between agents whose log odds are those of `strengths`."""
    names = [f"agent {k}" for k in range(len(strengths))]
    played = Tournament(names, rules, Budget(deals), 0)
    sides = played.sides
    for a, b in pairs or played.pairings:
        odds = math.exp(strengths[names.index(a)] - strengths[names.index(b)]) / (sides - 1)
        won = random.binomial(sides * deals_of_blocks(deals), odds / (1 + odds))
        played.results[a, b] = result_with(a, b, rules, deals, won)
    return played


def deals_of_blocks(deals):
    """Deal i is in block i % BLOCKS."""
    return np.bincount(np.arange(deals) % BLOCKS, minlength=BLOCKS)


def result_with(a, b, rules, deals, won):
    """The result of A's winning so many games of each block."""
    games = deals * (2 if rules.teams else rules.seats)
    wins = won.sum() / games
    loss = -1 / (rules.sides - 1)  # what A gets where one of the others wins: 2 seats -1, 3 -1/2
    mean, spread = wins + (1 - wins) * loss, (1 - loss) * math.sqrt(wins * (1 - wins) / games)
    blocks = tuple(int(count) for count in np.rint(won * rules.sides))
    return Result(
        a, b, rules, 0, mean, 1.96 * spread, deals, games, wins, 0, 1 - wins, mean, blocks=blocks
    )


class FixedBinomial:
    """Gives the mean of a binomial distribution."""

    def binomial(self, n, p):
        return n * p


def rating_of(played, name):
    rating = played.ratings()[name]
    assert rating is not None
    return rating
