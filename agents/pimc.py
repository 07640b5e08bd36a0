"""Search over sampled worlds: `pimc:20` plays what is best on average over 20 of them.

Perfect-information Monte Carlo: hidden worlds as the shuffle would have made them
(`domino_env.worlds`), the likelier the more often by what the others have played
(`agents.likelihood`), each solved as if all hands were seen (`agents.solver`). It knows what it is
shown, a redacted record. docs/search.md has figures.

`B` positions, `N` worlds of each, `M` candidates for them, `A` actions.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from typing import Any, Self

import numpy as np

from agents.base import Agent, AgentError, View
from agents.likelihood import log_likelihood
from agents.solver import Solver
from domino_env.rules import Rules
from domino_env.workers import Workers
from domino_env.worlds import sample_worlds

LIMIT = 200_000  # positions a world may take; past that it is looked at no deeper than DEPTH
DEPTH = 8
CANDIDATES = 10  # worlds that are drawn and weighed for each that is solved
AT_ONCE = 1024  # worlds that are solved together, over all positions: 6 MB of candidates
MOST = 1_000_000  # worlds, or milliseconds


class Pimc(Agent):
    """The action with the best mean value over the worlds; ties are broken at random.

    The budget of a decision is a number of worlds, `20`, or a time, `200ms`: then as many worlds as
    fit, at least one. `threads` share the worlds of a call; with a budget in worlds that changes no
    move. A match is searched for the points of its round, a single round for what it rewards. Three
    or four single seats are searched as the seat to move against all others (`Solver`).
    """

    uses = frozenset({"games"})
    deals_at_once = 64

    def __init__(self, budget: str, seed: int | None = None, *, threads: int = 1) -> None:
        super().__init__(seed)
        found = re.fullmatch(r"([0-9]{1,7})(ms)?", budget) if isinstance(budget, str) else None
        if found is None or not 1 <= int(found[1]) <= MOST:
            expected = f"worlds or milliseconds from 1 to {MOST:,}, as in pimc:20 or pimc:200ms"
            raise AgentError(f"pimc: found {budget!r}, expected {expected}")
        if isinstance(threads, bool) or not isinstance(threads, int) or threads < 1:
            raise AgentError(f"threads: found {threads!r}, expected an integer of at least 1")
        self.worlds = None if found[2] else int(found[1])
        self.seconds = int(found[1]) / 1000 if found[2] else None
        self.name = f"pimc:{budget}"
        self.threads = threads
        self._solvers: dict[Rules, list[tuple[Solver, Solver]]] = {}
        self._workers: Workers | None = None

    def copy(self) -> Self:
        """The same agent with a random state, solvers and threads of its own."""
        new = super().copy()
        new._solvers, new._workers = {}, None
        return new

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
        together = max(1, AT_ONCE // self.worlds) if self.worlds else 1
        for start in range(0, len(asked), together):
            rows = asked[start : start + together]
            values[rows] = self._mean(view.rules, view.games[rows], view.mask[rows] > 0)
        return values

    def _mean(self, rules: Rules, games: np.ndarray, legal: np.ndarray) -> np.ndarray:
        """The mean values over batches of worlds, by how likely a batch is; NaN as in `values`."""
        mean, weight = np.zeros(legal.shape), np.full(len(games), -np.inf)
        for size in self._batches():
            found, more = self._batch(rules, games, legal, size)
            both = np.logaddexp(weight, more)
            mean += np.exp(more - both)[:, None] * (found - mean)
            weight = both
        return mean

    def _batches(self) -> Iterator[int]:
        """How many worlds to solve next, until the budget is used up."""
        if self.worlds is not None:
            for start in range(0, self.worlds, AT_ONCE):
                yield min(AT_ONCE, self.worlds - start)
            return
        assert self.seconds is not None
        end, size = time.perf_counter() + self.seconds, 1
        while size > 0:
            begin = time.perf_counter()
            yield size
            now = time.perf_counter()
            size = min(2 * size, AT_ONCE, int(size * (end - now) / (now - begin)))

    def _batch(
        self, rules: Rules, games: np.ndarray, legal: np.ndarray, size: int
    ) -> tuple[np.ndarray, np.ndarray]:
        """The mean over N worlds, float64 [B, A], and the logarithm of their weight, float64 [B].

        They are drawn from M candidates, each as often as it is likely.
        """
        B, M = len(games), size * CANDIDATES
        seats = games["seat"].astype(np.int64)
        candidates = sample_worlds(games, seats, M, self.random).reshape(-1)
        weights = self._share(log_likelihood, candidates, np.repeat(seats, M)).reshape(B, M)
        drawn, weight = resampled(weights, size, self.random)
        chosen, where = np.unique(drawn, return_inverse=True)
        solved = self._solve(rules, candidates[chosen], legal[chosen // M])
        return solved[where].reshape(B, size, -1).mean(1), weight

    def _solve(self, rules: Rules, worlds: np.ndarray, legal: np.ndarray) -> np.ndarray:
        """The value of every legal action (bool [., A]) in every world, else NaN."""
        if rules not in self._solvers:
            points = rules.reward == "points" or rules.episode == "match"
            payoff = "points" if points else "win"
            self._solvers[rules] = [
                (Solver(rules, payoff, limit=LIMIT), Solver(rules, payoff, depth=DEPTH))
                for _ in range(self.threads)
            ]
        return self._share(_solve, worlds, legal, of_thread=self._solvers[rules])

    def _share(
        self, work: Callable[..., np.ndarray], *rows: np.ndarray, of_thread: Any = None
    ) -> np.ndarray:
        """`work` on all rows, shared over the threads; each has its item of `of_thread`."""
        own = [(one,) for one in of_thread] if of_thread else [()] * self.threads
        if self.threads == 1:
            return work(*rows, *own[0])
        if self._workers is None:
            self._workers = Workers(self.threads - 1)
        step = self.threads  # worlds that take long lie beside each other, so they are dealt out
        parts = [(*(part[k::step].copy() for part in rows), *own[k]) for k in range(step)]
        results = self._workers.run(work, parts)
        whole = np.empty((len(rows[0]), *results[0].shape[1:]))
        for k, result in enumerate(results):
            whole[k::step] = result
        return whole


def resampled(
    weights: np.ndarray, size: int, random: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """`size` of M candidates for each position, as often as they weigh, and the sum of all weights.

    Systematic resampling, with one random number for all (Kitagawa 1996). `weights` are logarithms,
    float64 [B, M]; so is the sum, float64 [B]. What is drawn is numbered over the candidates of all
    positions, int64 [B * size].
    """
    B, M = weights.shape
    most = weights.max(1)
    shares = np.exp(weights - most[:, None]).cumsum(1)
    marks = (np.arange(size) + random.random((B, 1))) / size * shares[:, -1:]
    # How many candidates lie before each mark, counted from those of the first position.
    at = [np.searchsorted(shares[b], marks[b]).clip(max=M - 1) + b * M for b in range(B)]
    return np.concatenate(at), most + np.log(shares[:, -1])


def _solve(worlds: np.ndarray, legal: np.ndarray, solvers: tuple[Solver, Solver]) -> np.ndarray:
    exact, shallow = solvers
    values = exact.action_values(worlds)
    late = (np.isnan(values) & legal).any(1)
    if late.any():
        values[late] = shallow.action_values(worlds[late])
    return values
