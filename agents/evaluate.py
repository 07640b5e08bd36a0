"""Duplicate play: every deal is played once for each place that A can take.

Dominoes is mostly luck, and both agents get the same luck here. The unit of statistics is the
deal: the mean over its games, whose spread gives the interval (docs/evaluation.md).

Letters: `R` rotations (places that A can take), `P` seats.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass, field, replace
from itertools import islice
from threading import Event
from typing import Any, NamedTuple, TypeVar

import numpy as np

from agents.base import Agent
from agents.games import GameFile, Played, blamed, play_games, records
from agents.result import SEED_STEP, Budget, Result, Tally, check_count, places
from domino_env.rules import Rules

T = TypeVar("T")
MAX_SEED = 2**31 - 1
MAX_THREADS = 1024


def evaluate(
    a: Agent,
    b: Agent,
    rules: Rules,
    deals: int | None,
    seed: int = 0,
    progress: Callable[[Result], None] | None = None,
    *,
    until: float | None = None,
    until_clear: int | None = None,
    threads: int | None = None,
    save: GameFile | None = None,
    begun: Result | None = None,
) -> Result:
    """Play `a` against `b` on `deals` deals (of a match: seeds, and so all its deals).

    Deal i is that of the game with seed `2**32 * seed + i`. It is played with A in each seat in
    turn and B in all others, with teams by A's pair in either place. Copies of both agents play,
    seeded from `seed`, on `threads` threads (None: as many as there are cores for this process):
    the same call gives the same result, on any number of them.

    `deals` is the most where `until` or `until_clear` is given, and may be None then. `until` ends
    it as soon as the interval's half width is at most that. `until_clear` is a number of deals:
    after that many, twice, four times as many, it ends if the interval does not hold 0.

    `progress` gets the result so far now and then, `save` a record of every game. Ctrl-C gives the
    result so far (`interrupted`), if there is one. `begun` is such a result, or one that `progress`
    got: the call goes on from it, to the result that it would have had without an interruption.
    Raises `AgentError` for an agent that does not fit the rules or gives no legal move, and
    `ValueError` for bad numbers and for what was begun by another call.
    """
    budget = Budget(deals, until, until_clear)
    seed = check_count("seed", seed, 0, MAX_SEED)
    threads = check_count("threads", cores() if threads is None else threads, 1, MAX_THREADS)
    for agent in (a, b):
        agent.check(rules)
        with blamed(agent, "evaluate"):
            check_count("deals_at_once", agent.deals_at_once, 1, SEED_STEP)
    match = _Match(a, b, rules, seed, save is not None)
    tally = match.tally(begun, budget.most)
    if begun is not None and budget.is_spent(match.before(tally.deals), begun):
        return tally.result()
    jobs = match.jobs(tally.deals, budget.most)
    done: tuple[Result, int] | None = None  # with the size of the file: set at once, for Ctrl-C
    try:
        with closing(in_order(match.play, jobs, threads, match.stop)) as played:
            while chunk := list(islice(played, len(places(rules)))):
                before = tally.deals
                tally.add(np.array([p.rewards for p in chunk]), np.array([p.points for p in chunk]))
                lines = (p.lines for p in chunk)
                done = tally.result(), 0 if save is None else save.write(zip(*lines, strict=True))
                if progress is not None:
                    progress(done[0])
                if budget.is_spent(before, done[0]):
                    break
    except KeyboardInterrupt:
        if done is None:
            raise
        if save is not None:
            save.cut(done[1])
        return replace(done[0], interrupted=True)
    return tally.result()


def cores() -> int:
    """How many cores this process may use."""
    if hasattr(os, "sched_getaffinity"):  # not on macOS and Windows
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


# ---------------------------------------------------------------- games in threads


class _Rotation(NamedTuple):
    """Some deals with A in one place."""

    rewards: np.ndarray  # float64 [deals], A's
    points: np.ndarray  # float64 [deals], what they would be under `reward: points`
    lines: list[str]  # the games as records, if they are wanted


@dataclass
class _Match:
    """Games of A against B, in chunks that do not depend on who plays them, or when."""

    a: Agent
    b: Agent
    rules: Rules
    seed: int
    with_lines: bool
    stop: Event = field(default_factory=Event)

    @property
    def at_once(self) -> int:
        """The deals of a chunk."""
        return min(self.a.deals_at_once, self.b.deals_at_once)

    def before(self, deals: int) -> int:
        """How many deals there were before the chunk that ends with these."""
        return max(0, deals - 1) // self.at_once * self.at_once

    def tally(self, begun: Result | None, most: int) -> Tally:
        """What to count in; `ValueError` for what was begun by another call."""
        about = self.a.name, self.b.name, self.rules, self.seed
        if begun is None:
            return Tally(*about)
        if (begun.a, begun.b, begun.rules, begun.seed) != about or not begun.sums:
            found = f"{begun.a} against {begun.b} with seed {begun.seed}"
            raise ValueError(f"begun: found a result of {found}, expected one of this call")
        if begun.deals > most or (begun.deals < most and begun.deals % self.at_once):
            expected = f"a multiple of {self.at_once} and at most {most}"
            raise ValueError(f"begun: found {begun.deals} deals, expected {expected}")
        return Tally(*about, begun.sums)

    def jobs(self, begun: int, deals: int) -> Iterator[tuple[int, int, int, int]]:
        """Chunk, its first deal, its deals, and rotation; a chunk's rotations one by one."""
        for first in range(begun, deals, self.at_once):
            for rotation in range(len(places(self.rules))):
                yield first // self.at_once, first, min(self.at_once, deals - first), rotation

    def play(self, chunk: int, first: int, count: int, rotation: int) -> _Rotation:
        """Play the games of a job with copies of the agents: each thread has its own."""
        copies = []
        for which, agent in enumerate((self.a, self.b)):
            with blamed(agent, "copy"):
                copies.append(agent.copy())
                copies[which].seed((self.seed, chunk, rotation, which))
        a, b = copies
        is_a = places(self.rules)[rotation]
        seats, seed = [a if own else b for own in is_a], SEED_STEP * self.seed + first
        played = play_games(self.rules, seats, seed, count, self.stop)
        return _Rotation(
            played.rewards[:, is_a].mean(axis=1),
            played.points[:, is_a].mean(axis=1),
            self._lines(seats, seed, played),
        )

    def _lines(self, seats: list[Agent], seed: int, played: Played) -> list[str]:
        if not self.with_lines:
            return [""] * len(played.rewards)
        return records(self.rules, seats, seed, played, self.stop)


def in_order(
    function: Callable[..., T], jobs: Iterable[tuple[Any, ...]], threads: int, stop: Event
) -> Generator[T]:
    """`function(*job)` of each job, in their order, worked out by threads a little ahead.

    The first error in that order is raised. When no more are asked for, `stop` is set.
    """
    with ThreadPoolExecutor(threads, "domino") as pool:
        waiting: deque[Future[T]] = deque()
        try:
            for job in jobs:
                waiting.append(pool.submit(function, *job))
                if len(waiting) == 2 * threads:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            stop.set()
            pool.shutdown(wait=False, cancel_futures=True)
