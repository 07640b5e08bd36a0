"""Search over sampled worlds: `pimc:N` plays what is best on average over N of them.

Perfect-information Monte Carlo: hidden worlds as the shuffle would have made them
(`domino_env.worlds`), each solved as if all hands were seen (`agents.solver`). It knows what it is
shown, a redacted record.
"""

from __future__ import annotations

import numpy as np

from agents.base import Agent, AgentError, View
from agents.solver import Solver
from domino_env.rules import Rules
from domino_env.worlds import sample_worlds

LIMIT = 200_000  # positions a world may take; past that it is looked at no deeper than DEPTH
DEPTH = 8


class Pimc(Agent):
    """The action with the best mean value over N worlds; ties are broken at random.

    A match is searched for the points of its round, a single round for what it rewards. Three or
    four single seats are searched as the seat to move against all others (`Solver`).
    """

    uses = frozenset({"games"})
    deals_at_once = 64

    def __init__(self, worlds: str, seed: int | None = None) -> None:
        super().__init__(seed)
        if not worlds.isdecimal() or not 1 <= int(worlds) <= 1_000_000:
            raise AgentError(f"pimc: found {worlds!r} worlds, expected 1 to 1,000,000")
        self.worlds = int(worlds)
        self.name = f"pimc:{self.worlds}"
        self._solvers: dict[Rules, tuple[Solver, Solver]] = {}

    def act(self, view: View) -> np.ndarray:
        """A move for every position, int64 [B]."""
        values = self.values(view)
        # Worlds differ by far more than this, so it decides between equal means alone.
        values += self.random.random(values.shape) * 1e-9
        return np.where(view.mask > 0, values, -np.inf).argmax(1)

    def values(self, view: View) -> np.ndarray:
        """The mean value of every legal action over the worlds, float64 [B, A], else NaN."""
        if view.games is None:
            raise AgentError(f"{self.name}: found a view without games, expected redacted records")
        values = np.where(view.mask > 0, 0.0, np.nan)
        asked = np.flatnonzero(view.mask.sum(1) > 1)  # where there is one move, nothing is searched
        if len(asked):
            games = view.games[asked]
            worlds = sample_worlds(games, games["seat"].astype(np.int64), self.worlds, self.random)
            legal = np.repeat(view.mask[asked] > 0, self.worlds, axis=0)
            solved = self._solve(view.rules, worlds.reshape(-1), legal)
            values[asked] = solved.reshape(len(asked), self.worlds, -1).mean(1)
        return values

    def _solve(self, rules: Rules, worlds: np.ndarray, legal: np.ndarray) -> np.ndarray:
        """The value of every legal action (bool [B * N, A]) in every world, else NaN."""
        if rules not in self._solvers:
            points = rules.reward == "points" or rules.episode == "match"
            payoff = "points" if points else "win"
            exact = Solver(rules, payoff, limit=LIMIT)
            self._solvers[rules] = exact, Solver(rules, payoff, depth=DEPTH)
        exact, shallow = self._solvers[rules]
        values = exact.action_values(worlds)
        late = (np.isnan(values) & legal).any(1)
        if late.any():
            values[late] = shallow.action_values(worlds[late])
        return values
