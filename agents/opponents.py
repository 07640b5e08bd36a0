"""Who a learner plays against besides itself: bots, snapshots of itself.

The games of a table are cut into blocks: first those of self-play, then `SLOTS` blocks against the
pool of snapshots, then `SLOTS` against bots. In a block the learner takes one place of each game
(a seat, or a pair), in turn from game to game, and one opponent takes all others. Opponents are
drawn anew at every snapshot, the harder ones more often: in proportion to the square of what they
win of the learner, as it ran lately (prioritised fictitious self-play: Vinyals et al. 2019,
"Grandmaster level in StarCraft II using multi-agent reinforcement learning").

Letters: `B` games, `K` steps, `P` seats, `N` opponents.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence

import numpy as np
import torch

from agents.base import Agent, load
from agents.evaluate import places
from agents.network import Network
from agents.selfplay import Storage, sample
from domino_env import DominoVec, Rules

SLOTS = 4
SELF = -1
MEMORY = 0.98  # share of the old results in what the learner wins lately, an update
LEAST = 0.01  # weight of an opponent that never wins, so that it is met again


class Pool:
    """The opponents that there are, the bots first, and what the learner wins of each lately."""

    def __init__(self, bots: Sequence[str], size: int, seed: int, device: str) -> None:
        self.bots = [load(name, device=device) for name in bots]
        self.size = size
        self.seed = seed
        self.snapshots: list[Network] = []
        self.won = np.full(len(bots), 0.5)  # float64 [N], share of the games

    def add(self, network: Network) -> None:
        """Take a snapshot; the oldest but the first makes room."""
        if self.size == 0:
            return
        if len(self.snapshots) == self.size:
            oldest = 1 if self.size > 1 else 0
            del self.snapshots[oldest]
            self.won = np.delete(self.won, len(self.bots) + oldest)
        self.snapshots.append(copy.deepcopy(network).requires_grad_(False))
        self.won = np.append(self.won, 0.5)

    def draw(self, bots: bool, random: np.random.Generator) -> int:
        """An opponent, from the bots or from the snapshots; SELF if there is none."""
        first, count = (0, len(self.bots)) if bots else (len(self.bots), len(self.snapshots))
        if count == 0:
            return SELF
        weights = np.maximum((1 - self.won[first : first + count]) ** 2, LEAST)
        return first + int(random.choice(count, p=weights / weights.sum()))

    def note(self, results: np.ndarray) -> None:
        """Count results [N, 2] of an update: what the learner won of how many games."""
        for n in np.flatnonzero(results[:, 1]):
            share = results[n, 0] / results[n, 1]
            self.won[n] += (1 - MEMORY) * (share - self.won[n])


class Blocks:
    """The opponents of one table, `Others` for `collect`; `mine` are the games of this process."""

    def __init__(
        self, rules: Rules, games: int, mine: slice, shares: tuple[float, float], pool: Pool
    ) -> None:
        self.pool, self.mine = pool, mine
        self.opponents = [SELF] * (2 * SLOTS)
        for bot in pool.bots:
            bot.check(rules)
        snapshots = round(games * shares[0])
        bots = min(round(games * shares[1]), games - snapshots)
        slot = np.full(games, -1)
        slot[games - bots - snapshots : games - bots] = (
            np.arange(snapshots) * SLOTS // max(snapshots, 1)
        )
        slot[games - bots :] = SLOTS + np.arange(bots) * SLOTS // max(bots, 1)
        self.slot = slot[mine]  # int64 [B], -1 in self-play
        own = places(rules)
        self.own = own[np.arange(games) % len(own)][mine]  # bool [B, P], the learner's seats

    @property
    def any(self) -> bool:
        """Whether any game is against somebody else."""
        return bool((self.slot >= 0).any())

    def draw(self, random: np.random.Generator) -> None:
        """Draw the opponent of every slot anew."""
        self.opponents = [self.pool.draw(k >= SLOTS, random) for k in range(2 * SLOTS)]

    def begin(self, update: int) -> None:
        """Begin a rollout: seed the bots, so that a resumed run goes on exactly."""
        for k, bot in enumerate(self.pool.bots):
            bot.seed((self.pool.seed, update, k, self.mine.start))

    def move(self, vec: DominoVec, storage: Storage, k: int, uniform: np.ndarray) -> None:
        """Write the opponents' actions at step k, and where the learner's decisions are."""
        seat = storage.seat[k].numpy().astype(np.int64)
        who = np.append(self.opponents, SELF)[self.slot]
        theirs = (who != SELF) & ~self.own[np.arange(len(seat)), seat]
        storage.learns[k] = torch.from_numpy(~theirs)
        for n in np.unique(who[theirs]):
            rows = np.flatnonzero(theirs & (who == n))
            if n < len(self.pool.bots):
                actions = self._asked(self.pool.bots[n], vec, rows)
            else:
                network = self.pool.snapshots[n - len(self.pool.bots)]
                actions = self._drawn(network, storage, k, rows, uniform[rows])
            storage.action[k, torch.from_numpy(rows)] = torch.from_numpy(actions)

    def _asked(self, bot: Agent, vec: DominoVec, rows: np.ndarray) -> np.ndarray:
        return bot.act(bot.view(vec.rules, vec.games[rows]))

    def _drawn(
        self, network: Network, storage: Storage, k: int, rows: np.ndarray, uniform: np.ndarray
    ) -> np.ndarray:
        with torch.inference_mode():
            logits = network.logits(storage.inputs(k, torch.from_numpy(rows))).float().cpu().numpy()
        actions, unused = np.zeros(len(rows), np.int64), np.zeros(len(rows), np.float32)
        sample(logits, storage.mask[k].numpy()[rows], uniform, actions, unused)
        return actions

    def count(self, storage: Storage) -> np.ndarray:
        """What the learner won of how many games that a rollout has ended, float64 [N, 2]."""
        results = np.zeros((len(self.pool.won), 2))
        who = np.append(self.opponents, SELF)[self.slot]
        for batch in storage.batches[1:]:
            rows = np.flatnonzero(batch.done & (who != SELF))
            earned = (batch.final_reward * self.own)[rows].sum(1)
            won = np.stack([0.5 + 0.5 * np.sign(earned), np.ones(len(rows))], 1)
            np.add.at(results, who[rows], won)
        return results
