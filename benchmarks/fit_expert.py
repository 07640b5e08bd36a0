"""Fit the weights of the agent `expert`: python -m benchmarks.fit_expert > FILE.

FILE is then to be `agents/expert_weights.py`.

`expert` plays all seats, and now and then a move at random, each legal one with the same chance.
The result of the round for its seat, regressed on the features of that move less their mean over
the legal moves, gives what each feature is worth. The weights found play the next pass.
Progress goes to stderr. Seeds from 2**40 on, which nothing else uses.
"""

from __future__ import annotations

import sys

import numpy as np

from agents import expert
from agents.base import View
from domino_env.rules import Rules
from domino_env.vector import DominoVec

AT_RANDOM = 0.15  # share of the moves
GAMES = 4096  # at once
RIDGE = 5e-4  # pulls weights that the games say little about to zero
SEATINGS = ({"seats": 2}, {"seats": 3}, {"seats": 4}, {"seats": 4, "teams": True})
NAMES = ("2 seats", "3 seats", "4 seats", "pairs")
OBJECTIVES = ("who wins the round", "points of the winner", "points of the losers")


def rules_of(objective: int, drawn: int, seating: int) -> list[Rules]:
    """The rules that weights are fitted by."""
    presets = {
        (expert.BY_WIN, 0): [("sin_robo", {})],
        (expert.BY_WIN, 1): [("estandar", {}), ("cabra", {"episode": "round"})],
        (expert.BY_WINNER_POINTS, 0): [("sin_robo", {"reward": "points"})],
        (expert.BY_WINNER_POINTS, 1): [("estandar", {"reward": "points"})],
        (expert.BY_LOSER_POINTS, 0): [
            ("cabra", {"draw": "none", "episode": "round", "reward": "points"})
        ],
        (expert.BY_LOSER_POINTS, 1): [("cabra", {"episode": "round", "reward": "points"})],
    }
    fields = SEATINGS[seating]
    return [Rules.preset(name, **more, **fields) for name, more in presets[objective, drawn]]


def features_of(view: View) -> np.ndarray:
    """The features of the plays of a view, float64 [B, A, K]; zero for all others."""
    assert view.games is not None
    features = np.zeros((*view.mask.shape, expert.K))
    free = np.zeros((len(view), expert.K))
    room, scores = expert.new_room(), np.zeros(view.mask.shape)
    expert.weigh_each(view.games, view.mask, free, room, scores, features)
    return features


def best(mask: np.ndarray, scores: np.ndarray) -> np.ndarray:
    """The legal action of the highest score in each row, int64 [B]."""
    return np.where(mask != 0, scores, -np.inf).argmax(axis=1)


def trials(rules: Rules, weights: np.ndarray, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Features [N, K] of the moves at random, less their mean, and what their seats got [N]."""
    random = np.random.default_rng(seed)
    vec = DominoVec(GAMES, rules, seed=seed, autoreset=False, observation=False)
    batch, agent = vec.reset(), Fitted(weights, seed)
    found, rows, seats = [], [], []
    while not batch.done.all():
        view = agent.view(rules, vec.games)
        actions = agent.act(view)
        choice = ~batch.done & (view.mask.sum(axis=1) > 1)
        some = np.flatnonzero(choice & (random.random(GAMES) < AT_RANDOM))
        tried = view.rows(some)
        actions[some] = best(tried.mask, random.random(tried.mask.shape))
        features = features_of(tried)
        mean = features.sum(axis=1) / tried.mask.sum(axis=1)[:, None]  # of illegal ones it is zero
        found.append(features[np.arange(len(some)), actions[some]] - mean)
        rows.append(some)
        seats.append(tried.seat)
        batch = vec.step(actions)
    got = batch.final_reward.astype(float)[np.concatenate(rows), np.concatenate(seats)]
    return np.concatenate(found), got


class Fitted(expert.Expert):
    """`expert` with some weights [K]."""

    def __init__(self, weights: np.ndarray, seed: int) -> None:
        super().__init__(seed)
        self.weights = weights

    def weights_for(self, games: np.recarray) -> np.ndarray:
        """The same for all."""
        return np.tile(self.weights, (len(games), 1))


def fit(rules: list[Rules], weights: np.ndarray, chunks: int, seed: int) -> np.ndarray:
    """The weights of one pass, float64 [K], in units of the spread of the result."""
    square, product = np.zeros((expert.K, expert.K)), np.zeros(expert.K)
    count = 0
    for chunk in range(chunks):
        x, y = trials(rules[chunk % len(rules)], weights, seed + chunk * GAMES)
        y = (y - y.mean()) / y.std()
        square += x.T @ x
        product += x.T @ y
        count += len(y)
    return np.linalg.solve(square / count + RIDGE * np.eye(expert.K), product / count)


def main(passes: int = 3, chunks: int = 16) -> None:
    """Print the module with the weights."""
    weights = expert.WEIGHTS.copy()
    for objective in range(3):
        for drawn in range(2):
            for seating in range(4):
                w = weights[objective, drawn, seating]
                for step in range(passes):
                    seed = 2**40 + 2**30 * (objective * 8 + drawn * 4 + seating) + 2**24 * step
                    rules = rules_of(objective, drawn, seating)
                    w = fit(rules, w, chunks * (1 + step), seed)
                weights[objective, drawn, seating] = w
                print(OBJECTIVES[objective], drawn, NAMES[seating], w.round(3), file=sys.stderr)
    print(as_module(weights))


def as_module(weights: np.ndarray) -> str:
    """The source of `agents/expert_weights.py`."""
    lines = ['"""Weights of the features of `expert`, printed by `benchmarks/fit_expert.py`.']
    lines += ["", "Columns: 2, 3, 4 seats and pairs without drawing, then the same with it."]
    lines += ['"""', "", "import numpy as np", "", 'TABLES = """']
    for objective, name in enumerate(OBJECTIVES):
        lines.append(f"# {name}")
        columns = weights[objective].reshape(8, expert.K)
        for k, feature in enumerate(expert.FEATURES):
            numbers = "".join(f"{value:8.3f}" for value in columns[:, k])
            lines.append(f"{numbers}  # {feature}")
    lines += ['"""', ""]
    lines.append("_READ = np.loadtxt(TABLES.splitlines()).reshape(3, -1, 2, 4)")
    lines.append("WEIGHTS = _READ.transpose(0, 2, 3, 1).copy()  # float64 [3, 2, 4, K]")
    return "\n".join(lines)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
