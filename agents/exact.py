"""Small games, exactly: values, best responses, exploitability, CFR+, and the agent `cfr:N`.

    game = small_game(Rules.preset("sin_robo", set=2, hand_size=2, lead="seat"))
    exploitability(game, strategy_of(load("heaviest"), game)).nashconv

A *strategy* is the probability of every sequence of a game (agents/tree.py) in its information
set, for all seats: float64 [S]. Its *plan* has the product of what leads to a sequence instead.

Letters: `I` information sets, `S` sequences, `Z` finished rounds, `P` seats.
"""

from __future__ import annotations

from dataclasses import dataclass
from threading import Lock

import numpy as np

from agents.base import Agent, AgentError, View
from agents.small_game import Progress, SmallGame, check_size, small_game
from agents.tree import Tree
from domino_env.compiled import jit
from domino_env.rules import Rules

BATCH = 8192  # positions that an agent is shown at once
SOLVING = Lock()  # threads that want the same strategy wait for the one that makes it


# ---------------------------------------------------------------- strategies, compiled


@jit
def make_plan(tree: Tree, strategy: np.ndarray, plan: np.ndarray) -> None:
    """Write the plan of a strategy, of all seats."""
    for p in range(tree.reached.shape[1]):
        plan[p] = 1.0
    for i in range(len(tree.owner)):
        for s in range(tree.first[i], tree.first[i + 1]):
            plan[s] = plan[tree.before[i]] * strategy[s]


@jit
def write_values(tree: Tree, plan: np.ndarray, seat: int, values: np.ndarray) -> None:
    """Write what the rounds that end with each sequence of a seat are worth to it.

    The others play their plans, the seat whatever leads there.
    """
    values[:] = 0.0
    for z in range(len(tree.reached)):
        worth = tree.payoff[z, seat]
        for p in range(tree.reached.shape[1]):
            if p != seat:
                worth *= plan[tree.reached[z, p]]
        values[tree.reached[z, seat]] += worth


@jit
def respond(tree: Tree, seat: int, values: np.ndarray) -> float:
    """The value of the best response of a seat, from `write_values`, which is used up."""
    for i in range(len(tree.owner) - 1, -1, -1):
        if tree.owner[i] == seat:
            best = -np.inf
            for s in range(tree.first[i], tree.first[i + 1]):
                best = max(best, values[s])
            values[tree.before[i]] += best
    return values[seat]


@jit
def iterate(
    tree: Tree,
    first: int,
    last: int,
    regrets: np.ndarray,
    strategy: np.ndarray,
    plan: np.ndarray,
    average: np.ndarray,
    values: np.ndarray,
) -> None:
    """CFR+ for two seats, iterations `first` to `last` - 1 counted from 0; all arrays are [S].

    The seats take turns; the plan of iteration t counts t + 1 times in the average.
    """
    for t in range(first, last):
        for seat in range(2):
            write_values(tree, plan, seat, values)
            add_regrets(tree, seat, values, strategy, regrets)
            match_regrets(tree, seat, regrets, strategy, plan)
            for i in range(len(tree.owner)):
                if tree.owner[i] == seat:
                    for s in range(tree.first[i], tree.first[i + 1]):
                        average[s] += (t + 1) * plan[s]


@jit
def add_regrets(
    tree: Tree, seat: int, values: np.ndarray, strategy: np.ndarray, regrets: np.ndarray
) -> None:
    """Add to the regrets of a seat, from `write_values`, which is used up; none falls below 0."""
    for i in range(len(tree.owner) - 1, -1, -1):
        if tree.owner[i] == seat:
            mean = 0.0
            for s in range(tree.first[i], tree.first[i + 1]):
                mean += strategy[s] * values[s]
            values[tree.before[i]] += mean
            for s in range(tree.first[i], tree.first[i + 1]):
                regrets[s] = max(0.0, regrets[s] + values[s] - mean)


@jit
def match_regrets(
    tree: Tree, seat: int, regrets: np.ndarray, strategy: np.ndarray, plan: np.ndarray
) -> None:
    """Make the strategy of a seat proportional to its regrets, and its plan with it."""
    for i in range(len(tree.owner)):
        if tree.owner[i] == seat:
            normalise(regrets, tree.first[i], tree.first[i + 1], strategy)
            for s in range(tree.first[i], tree.first[i + 1]):
                plan[s] = plan[tree.before[i]] * strategy[s]


@jit
def normalise(weights: np.ndarray, first: int, last: int, strategy: np.ndarray) -> None:
    """Write probabilities proportional to weights[first:last]; equal ones if all are 0."""
    total = 0.0
    for s in range(first, last):
        total += weights[s]
    for s in range(first, last):
        strategy[s] = weights[s] / total if total > 0 else 1 / (last - first)


@jit
def normalise_all(tree: Tree, weights: np.ndarray, strategy: np.ndarray) -> None:
    """`normalise` every information set."""
    for i in range(len(tree.owner)):
        normalise(weights, tree.first[i], tree.first[i + 1], strategy)


@jit
def spread(
    tree: Tree, strategy: np.ndarray, infosets: np.ndarray, mask: np.ndarray, out: np.ndarray
) -> None:
    """Write probabilities to the legal actions of float32 [B, A], zero before.

    `infosets` int64 [B]; where it is negative all legal actions get the same.
    """
    for i in range(len(mask)):
        infoset = infosets[i]
        s = tree.first[infoset] if infoset >= 0 else 0
        legal = mask[i].sum()
        for a in range(mask.shape[1]):
            if mask[i, a] != 0:
                out[i, a] = strategy[s] if infoset >= 0 else 1 / legal
                s += 1


# ---------------------------------------------------------------- strategies


def uniform(game: SmallGame) -> np.ndarray:
    """The strategy that takes every legal action with the same probability."""
    return normalised(game, np.zeros(game.sequences))


def normalised(game: SmallGame, weights: np.ndarray) -> np.ndarray:
    """The strategy proportional to non-negative weights, float64 [S]; equal where all are 0."""
    strategy = np.ones(game.sequences)
    normalise_all(game.tree, weights, strategy)
    return strategy


def strategy_of(agent: Agent, game: SmallGame, progress: Progress | None = None) -> np.ndarray:
    """The strategy of an agent that has `policy`: it is asked once in every information set.

    It is shown a position of the set as in any other game. Raises `AgentError` if it does not play
    by these rules, or gives anything but the probabilities of legal actions.
    """
    agent.check(game.rules)
    weights = np.ones(game.sequences)
    for first in range(0, game.infosets, BATCH):
        last = min(first + BATCH, game.infosets)
        view = agent.view(game.rules, game.positions(first, last))
        chances = _checked(agent, agent.policy(view), view.mask)
        sequences = slice(game.tree.first[first], game.tree.first[last])
        weights[sequences] = chances[view.mask != 0]  # lowest first, as the sequences are
        if progress is not None:
            progress(last, game.infosets)
    return normalised(game, weights)


def _checked(agent: Agent, chances: np.ndarray, mask: np.ndarray) -> np.ndarray:
    if chances.shape != mask.shape:
        raise AgentError(f"{agent.name}: found a policy {chances.shape}, expected {mask.shape}")
    if not (chances >= 0).all() or (chances[mask == 0] != 0).any():
        raise AgentError(f"{agent.name}: found a policy beyond the legal actions, expected none")
    totals = chances.sum(1, dtype=np.float64)
    worst = float(totals[np.abs(totals - 1).argmax()])
    if abs(worst - 1) > 1e-4:
        raise AgentError(f"{agent.name}: found a policy that sums to {worst:.6g}, expected 1")
    return chances


@dataclass(frozen=True)
class Exploitability:
    """What a strategy of all seats is worth, and what each seat alone could make of it."""

    values: list[float]  # reward of each seat, all playing the strategy
    best: list[float]  # the same, if that seat alone plays its best response instead

    @property
    def nashconv(self) -> float:
        """The sum of what the seats gain; 0 in an equilibrium (Lanctot et al. 2017)."""
        return sum(b - v for b, v in zip(self.best, self.values, strict=True))


def exploitability(game: SmallGame, strategy: np.ndarray) -> Exploitability:
    """Values and best responses of every seat; partners are not told from opponents."""
    plan, values = np.ones(game.sequences), np.zeros(game.sequences)
    make_plan(game.tree, strategy, plan)
    result = Exploitability([], [])
    for seat in range(game.rules.seats):
        write_values(game.tree, plan, seat, values)
        result.values.append(float(plan @ values))
        result.best.append(respond(game.tree, seat, values))
    return result


# ---------------------------------------------------------------- CFR+


class CfrPlus:
    """CFR+ (Tammelin 2014, arXiv:1407.5042): alternating updates, linear averaging."""

    def __init__(self, game: SmallGame) -> None:
        if game.rules.seats != 2:
            raise ValueError(f"cfr: found {game.rules.seats} seats, expected 2")
        self.game = game
        self.iterations = 0
        self._regrets = np.zeros(game.sequences)
        self._current = uniform(game)
        self._plan = np.ones(game.sequences)
        self._average = np.zeros(game.sequences)
        self._values = np.zeros(game.sequences)
        make_plan(game.tree, self._current, self._plan)

    def run(self, iterations: int) -> None:
        """Do so many iterations more."""
        arrays = self._regrets, self._current, self._plan, self._average, self._values
        iterate(self.game.tree, self.iterations, self.iterations + iterations, *arrays)
        self.iterations += iterations

    @property
    def strategy(self) -> np.ndarray:
        """The average strategy so far, float64 [S]."""
        return normalised(self.game, self._average)


class Cfr(Agent):
    """`cfr:N`, the average strategy of N iterations of CFR+ on the whole game.

    It is made when the first view of a game comes, or by `solve`, and kept.
    """

    uses = frozenset({"history"})

    def __init__(self, iterations: str, seed: int | None = None) -> None:
        super().__init__(seed)
        if not (iterations.isascii() and iterations.isdigit() and int(iterations) > 0):
            raise AgentError(f"agent: found 'cfr:{iterations}', expected cfr:N with N from 1")
        self.iterations = int(iterations)
        self.name = f"cfr:{iterations}"
        self._solved: dict[Rules, tuple[SmallGame, np.ndarray]] = {}

    def check(self, rules: Rules) -> None:
        """Raise `AgentError` unless it is one round of a small game for two seats."""
        try:
            if rules.seats != 2:
                raise ValueError(f"found {rules.seats} seats, expected 2")
            check_size(rules)
        except ValueError as error:
            raise AgentError(f"{self.name}: {error}") from None

    def solve(self, rules: Rules, progress: Progress | None = None) -> None:
        """Make the strategy for a game, unless it is there; copies of the agent share it."""
        with SOLVING:
            if rules in self._solved:
                return
            self.check(rules)
            solver = CfrPlus(small_game(rules))
            step = max(1, self.iterations // 100)
            while solver.iterations < self.iterations:
                solver.run(min(step, self.iterations - solver.iterations))
                if progress is not None:
                    progress(solver.iterations, self.iterations)
            self._solved[rules] = solver.game, solver.strategy

    def policy(self, view: View) -> np.ndarray:
        """The average strategy, float32 [B, A]."""
        if view.history is None:
            raise AgentError(f"{self.name}: found a view without history, expected one")
        self.solve(view.rules)
        game, strategy = self._solved[view.rules]
        infosets = game.find(view.seat, view.history)
        if ((infosets < 0) & (view.mask.sum(1) > 1)).any():
            raise AgentError(f"{self.name}: found a position that is not of the game it solved")
        chances = np.zeros(view.mask.shape, np.float32)
        spread(game.tree, strategy, infosets, view.mask, chances)
        return chances

    def act(self, view: View) -> np.ndarray:
        """An action drawn from the policy for every position, int64 [B]."""
        ladder = self.policy(view).cumsum(1)
        drawn = self.random.random(len(ladder))[:, None] * ladder[:, -1:]
        return (ladder > drawn).argmax(1)
