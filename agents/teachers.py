"""Who teaches a learner: an agent that it imitates, and a solver that sees all hands.

Both look at every step of a rollout, as `Others` for `collect`, and write what they say.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch

from agents.base import load
from agents.selfplay import Storage
from agents.settings import Config
from agents.solver import Solver, tiles_placed
from domino_env import DominoVec, Rules


class Teacher:
    """An agent that says what it would play, `Others` for `collect`."""

    def __init__(self, name: str, device: str) -> None:
        self.agent = load(name, device=device)

    def begin(self, seed: Sequence[int]) -> None:
        """Begin a rollout: seed the agent, so that a resumed run goes on exactly."""
        self.agent.seed(seed)

    def move(self, vec: DominoVec, storage: Storage, k: int, uniform: np.ndarray) -> None:
        """Write the advice for step k."""
        advice = self.agent.act(self.agent.view(vec.rules, vec.games))
        storage.advice[k] = torch.from_numpy(advice)


class OpenHands:
    """A solver that sees all hands and says what every legal action is worth, for `collect`.

    Best play by all in the true position is not what the seats can know, but its mean over all
    that they cannot tell apart is what `pimc` goes by, and it comes without the luck of a game
    played out. So the policy may learn from it as from a critic that judges all actions at once.
    """

    def __init__(self, rules: Rules, config: Config, games: int, mine: slice) -> None:
        self.solver = Solver(rules, "win", depth=config.solver_depth)
        self.config, self.games, self.mine = config, games, mine
        self.random = np.random.default_rng(config.seed)

    def begin(self, seed: Sequence[int]) -> None:
        """Begin a rollout: seed what is drawn, so that a resumed run goes on exactly."""
        self.random = np.random.default_rng(seed)

    def move(self, vec: DominoVec, storage: Storage, k: int, uniform: np.ndarray) -> None:
        """Write for step k how much better than the mean of all each legal action is, else 0."""
        config, games = self.config, np.asarray(vec.games)
        # All processes draw the same numbers, and use those of their own games.
        asked = self.random.random(self.games)[self.mine] < config.solver_share
        asked &= storage.learns[k].numpy() & (tiles_placed(games) >= config.solver_from)
        rows = np.flatnonzero(asked)
        values = self.solver.action_values(games[rows])
        better = values - np.nanmean(values, 1, keepdims=True)
        storage.solved[k] = 0
        storage.solved[k, torch.from_numpy(rows)] = torch.from_numpy(np.nan_to_num(better)).float()
