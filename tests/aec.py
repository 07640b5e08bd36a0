"""Helpers of the tests of `domino_v0`: playing, looking at everything, and the reference beside."""

import copy
from collections import defaultdict
from typing import Any

import numpy as np
from oracle import Oracle
from oracle_rules import text_of
from support import TILE, action_of, move_of, tiles_in

from domino_env import domino_v0

# PettingZoo's types know nothing of an observation that is a dictionary.
new_env: Any = domino_v0.env
new_raw: Any = domino_v0.raw_env


def legal_in(mask):
    return np.flatnonzero(mask).tolist()


def is_over(env):
    agent = env.agent_selection
    return env.terminations[agent] or env.truncations[agent]


def play_out(env, rng):
    """Play at random to the end; returns the sum of what `last` gave each agent."""
    total = defaultdict(float)
    for agent in env.agent_iter():
        observation, reward, *_ = env.last()
        total[agent] += reward
        env.step(None if is_over(env) else rng.choice(legal_in(observation["action_mask"])))
    return dict(total)


def moves_from(env, rng, count):
    """Make so many random moves, or as many as there are."""
    for _ in range(count):
        if is_over(env):
            return
        env.step(rng.choice(legal_in(env.last()[0]["action_mask"])))


def everything(env):
    """All that can be seen of an environment, as one comparable value."""
    raw = env.unwrapped
    seen = [
        *(env.observe(agent) for agent in env.possible_agents),
        {"state": env.state(), "games": np.frombuffer(raw.games.tobytes(), np.uint8)},
        *env.infos.values(),
    ]
    arrays = [(name, part[name].tolist()) for part in seen for name in sorted(part)]
    plain = env.agents, env.agent_selection, env.rewards, env.terminations, env.truncations
    return arrays, copy.deepcopy(plain), dict(raw._cumulative_rewards)


class Beside:
    """An environment and the reference, given the same deals and moves."""

    def __init__(self, rules, seed):
        self.env = new_raw(rules, history=True)
        self.oracle = Oracle(rules)
        self.env.reset(seed=seed)
        self.tiles = self.env.rules.tiles
        self.deal()

    def deal(self):
        g, seats = self.env.games[0], range(self.env.rules.seats)
        hands = [[text_of(tile) for tile in tiles_in(g.hands[p])] for p in seats]
        boneyard = [text_of(TILE[int(t)]) for t in g.boneyard[: g.stock]]
        drawn = self.oracle.rules["lead"] == "random" and self.oracle.next_leader is None
        self.oracle.next_round(hands, boneyard, int(g.leader) if drawn else None)

    def legal(self):
        mask = self.env.observe(self.env.agent_selection)["action_mask"]
        return sorted(move_of(a, self.tiles, not self.oracle.ends) for a in legal_in(mask))

    def play(self, move):
        before = list(self.oracle.rewards)
        self.oracle.play(move)
        self.env.step(action_of(move, self.tiles))
        gains = zip(self.env.possible_agents, self.oracle.rewards, before, strict=True)
        assert self.env.rewards == {agent: float(now - then) for agent, now, then in gains}
        if self.oracle.seat is None and not self.oracle.over:
            self.deal()
