"""A policy that searches: `NAME+search:50` lets NAME play each move on in 50 sampled worlds.

A trained policy is improved where it stands. Hidden worlds are drawn (`domino_env.worlds`), the
likelier the more often by what the others have played, as if they were the policy. Every legal
action is made in each, and the policy plays on for all seats; each is shown what that seat would
know, so nobody looks through the table, as in `pimc` all do. After `DEPTH` choices the network's
value stands for the rest. The action with the best mean return is played, once the policy's own
opinion is added: the fewer the worlds, the more it counts. In a single round of two sides the end,
from `LATE` tiles on the table on, is not played on but solved in each world, as `pimc` does it:
that is as strong there, and faster. docs/search.md tells what was tried.

`B` positions, `N` worlds of each, `M` candidates for them, `A` actions; `W` worlds of all
positions, `G` games that are played on, one for each world and legal action.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from agents.base import Agent, AgentError
from agents.pimc import Pimc, resampled
from agents.policy import PolicyAgent
from agents.replay import BYTES, asked_each, deal_each, make_each, replay_each, return_each, taken
from agents.selfplay import sample
from agents.shape import Inputs
from agents.shipped import Shipped
from agents.solver import tiles_placed
from domino_env.observation import layout_size, observe_each, redact_each, state_layout
from domino_env.rules import Rules
from domino_env.saved import copied
from domino_env.state import NOT_OVER, PLAYING, UNIT, longest_round
from domino_env.worlds import sample_worlds

LATE = 12  # tiles on the table from which on worlds are solved
DEPTH = 4  # choices that are played on before the network's value is taken
CANDIDATES = 4  # worlds that are drawn and weighed for each that is played
CARELESS = 0.1  # share of the others' moves that are taken as made without a thought
HEAT = 0.3  # standard errors of a mean that one unit of the policy's log-probability is worth
EQUAL = 1e-6  # return that such a unit is worth where all worlds say the same
ROWS = 512  # positions that the network is shown at once


class PolicySearch(Pimc):
    """The action with the best mean return of games that the policy plays, and its own opinion.

    `agent` is the trained policy, or the shipped ones of a game. The budget is that of `Pimc`, and
    `values` are the sums that are compared. The return is what the episode pays; where the network
    cannot tell that, games are played to the end of the round (`Leaves`, `returns_of`). The policy
    is taken at temperature 1, whatever it is played at.
    """

    def __init__(self, agent: Agent, budget: str, seed: int | None = None) -> None:
        if not isinstance(agent, PolicyAgent | Shipped):
            raise AgentError(f"search: found {agent.name}, expected a trained policy")
        try:
            super().__init__(budget, seed)
        except AgentError as error:
            text = str(error).replace("pimc:", "search:", 1)
            raise AgentError(text.replace("as in pimc", "as in NAME+search")) from None
        self.agent = agent
        self.name = f"{agent.name}+search:{budget}"

    def check(self, rules: Rules) -> None:
        """Raise `AgentError` where the policy cannot play by these rules."""
        self.agent.check(rules)

    def _mean(self, rules: Rules, games: np.ndarray, legal: np.ndarray) -> np.ndarray:
        """The mean of each legal action and what the policy thinks of it, float64 [B, A]."""
        agent = self.agent
        policy = agent.pick(rules) if isinstance(agent, Shipped) else agent
        solves = rules.sides == 2 and rules.episode == "round"
        late = (tiles_placed(games) >= LATE) & solves
        values = np.full(legal.shape, np.nan)
        if late.any():
            opinion = EQUAL * log_policy(policy, rules, games[late])
            values[late] = super()._mean(rules, games[late], legal[late]) + opinion
        if not late.all():
            values[~late] = self._mean_return(policy, rules, games[~late], legal[~late])
        return values

    def _mean_return(
        self, policy: PolicyAgent, rules: Rules, games: np.ndarray, legal: np.ndarray
    ) -> np.ndarray:
        """The mean return of each legal action and what the policy thinks of it, float64 [B, A].

        The larger the standard error of a mean, the more its log-probability counts.
        """
        mean, square = np.zeros(legal.shape), np.zeros(legal.shape)
        weight, worlds = np.full(len(games), -np.inf), 0
        for size in self._batches():
            returns, more = self._play(policy, rules, games, legal, size)
            both = np.logaddexp(weight, more)
            share = np.exp(more - both)[:, None]
            mean += share * (returns.mean(1) - mean)
            square += share * ((returns**2).mean(1) - square)
            weight, worlds = both, worlds + size
        error = np.sqrt(np.nanmean((square - mean**2).clip(0), 1, keepdims=True) / worlds)
        return mean + (HEAT * error + EQUAL) * log_policy(policy, rules, games)

    def _play(
        self, policy: PolicyAgent, rules: Rules, games: np.ndarray, legal: np.ndarray, size: int
    ) -> tuple[np.ndarray, np.ndarray]:
        """Returns in N worlds, float64 [B, N, A], and the logarithm of their weight, float64 [B].

        Worlds are drawn from M candidates as in `Pimc`.
        """
        B, M = len(games), size * CANDIDATES
        seats = games["seat"].astype(np.int64)
        candidates = sample_worlds(games, seats, M, self.random).reshape(-1)
        weights = log_likelihood(policy, rules, candidates, np.repeat(seats, M)).reshape(B, M)
        chosen, weight = resampled(weights, size, self.random)
        worlds = taken(candidates, chosen)
        luck = self.random.random((len(worlds), sum(longest_round(rules))))
        returns = returns_of(policy, rules, worlds, np.repeat(legal, size, 0), luck)
        return returns.reshape(B, size, -1), weight


# ---------------------------------------------------------------- playing on


class Leaves(NamedTuple):
    """What the network's value may stand for, by the rules that it was trained for."""

    rest: bool  # what the games still pay, or in a match played by a single-hand policy the round
    next_round: bool  # what the match still pays, at the beginning of its next round

    @classmethod
    def of(cls, policy: PolicyAgent, rules: Rules) -> Leaves:
        """The leaves of the rules that the policy takes these for (`PolicyAgent.as_trained`).

        The value of points is not used: a run may have scaled them.
        """
        trained = policy._nearest(rules)
        wins = trained is not None and trained.reward == rules.reward == "win"
        matches = trained is not None and trained.episode == "match"
        return cls(wins and (rules.episode == "match" or not matches), wins and matches)


def returns_of(
    policy: PolicyAgent, rules: Rules, worlds: np.ndarray, legal: np.ndarray, luck: np.ndarray
) -> np.ndarray:
    """What each legal action (bool [W, A]) pays the seat to move in each world, else NaN.

    `luck` [W, .] in [0, 1) decides the moves by their number in the round, so that all actions have
    the same luck. Beyond the round a match is worth what the network says at the beginning of the
    next one. Where it was not trained for matches, the round pays as if it were the episode: for
    `reward: win` +1 to the winners, and for points those that are written.
    """
    world, actions = np.nonzero(legal)
    games = taken(worlds, world)
    seats, before = games["seat"].astype(np.int64), games["earned"].copy()
    leaves = Leaves.of(policy, rules)
    found, rows = np.zeros(len(games)), np.arange(len(games))
    make_each(games, rows, actions)
    for depth in count():
        rows = rows[games["end"][rows] == PLAYING]
        if len(rows) == 0 or (leaves.rest and depth == DEPTH):
            break
        now = taken(games, rows)
        at = world[rows], now["moves"] - worlds["moves"][world[rows]]
        make_each(games, rows, drawn(policy, rules, now, luck[at]))
    if len(rows):
        found[rows] = values_of(policy, rules, taken(games, rows), seats[rows])
    rows = np.flatnonzero((games["end"] != PLAYING) & (games["over"] == NOT_OVER))
    if leaves.next_round:
        deal_each(games, rows, games[:1].copy())
        rows = rows[games["over"][rows] == NOT_OVER]
        found[rows] = values_of(policy, rules, taken(games, rows), seats[rows])
    elif rules.reward == "win":
        found[rows] = won(games[rows], seats[rows], rules.sides)
    found += (games["earned"] - before)[np.arange(len(games)), seats] / UNIT
    values = np.full(legal.shape, np.nan)
    values[world, actions] = found
    return values


def won(games: np.ndarray, seats: np.ndarray, sides: int) -> np.ndarray:
    """What a round that is over pays to `seats` under `reward: win`, float64 [G]."""
    winner = games["winner"].astype(np.int64)
    lost = np.where(winner > 0, -1 / (sides - 1), 0)
    return np.where(winner >> seats & 1, 1, lost)


def drawn(policy: PolicyAgent, rules: Rules, games: np.ndarray, luck: np.ndarray) -> np.ndarray:
    """The policy's moves in `games`, at temperature 1, by luck in [0, 1): int64 [G]."""
    logits, mask = logits_of(policy, rules, games)
    actions, unused = np.zeros(len(games), np.int64), np.zeros(len(games), np.float32)
    sample(logits, mask, luck, actions, unused)
    return actions


# ---------------------------------------------------------------- how likely a world is


def log_likelihood(
    policy: PolicyAgent, rules: Rules, worlds: np.ndarray, seats: np.ndarray
) -> np.ndarray:
    """How likely the moves of all seats but `seats` (int64 [W]) are, as logarithms, float64 [W].

    As `agents.likelihood`, with the policy at temperature 1 for the others.
    """
    again, out = copied(worlds).view(np.recarray), np.zeros(len(worlds))
    return_each(again)
    asked = np.zeros(len(worlds), np.bool_)
    for k in range(int(worlds["event_count"].max(initial=0))):
        asked_each(worlds, again, seats, k, asked)
        rows = np.flatnonzero(asked)
        if len(rows):
            actions = worlds["events"][rows, k].astype(np.int64) & 127
            out[rows] += log_chance(policy, rules, taken(again, rows), actions)
        replay_each(worlds, again, k)
    return out


def log_chance(
    policy: PolicyAgent, rules: Rules, games: np.ndarray, actions: np.ndarray
) -> np.ndarray:
    """The logarithm of the chance that the seats to move make these moves, float64 [W]."""
    logs = log_policy(policy, rules, games)
    legal = np.isfinite(logs).sum(1)
    chances = np.exp(logs[np.arange(len(games)), actions])
    return np.log((1 - CARELESS) * chances + CARELESS / legal)


# ---------------------------------------------------------------- the network


@contextmanager
def one_thread() -> Iterator[None]:
    """Keep torch to one thread meanwhile: evaluation has threads of its own."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def inputs_of(
    policy: PolicyAgent, rules: Rules, games: np.ndarray
) -> tuple[dict[str, np.ndarray], np.ndarray]:
    """What the seats to move are shown, by the names of `Inputs`, and their legal actions."""
    view = policy.view(rules, games)
    parts = {name: getattr(view, name) for name in policy.uses}
    parts["observation"] = policy.as_trained(rules, parts["observation"])
    return parts, view.mask


def logits_of(
    policy: PolicyAgent, rules: Rules, games: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """The network's logits, float32 [G, A], and the legal actions, int8 [G, A].

    In many worlds a seat knows the same, and the network is asked once for all of them.
    """
    known = copied(games).view(np.recarray)
    redact_each(known, known["seat"].astype(np.int64))
    _, first, back = np.unique(known.view(BYTES), return_index=True, return_inverse=True)
    parts, mask = inputs_of(policy, rules, taken(known, first))
    logits = _run(policy.network.logits, parts, np.empty(mask.shape, np.float32))
    return logits[back.ravel()], mask[back.ravel()]


def log_policy(policy: PolicyAgent, rules: Rules, games: np.ndarray) -> np.ndarray:
    """The policy's log-probabilities at temperature 1, float64 [G, A], -inf if not legal."""
    logits, mask = logits_of(policy, rules, games)
    logits = np.where(mask > 0, logits.astype(float), -np.inf)
    logits -= logits.max(1, keepdims=True)
    return logits - np.log(np.exp(logits).sum(1, keepdims=True))


def values_of(
    policy: PolicyAgent, rules: Rules, games: np.ndarray, seats: np.ndarray
) -> np.ndarray:
    """What the network says that `games` still pay to `seats`, float64 [G].

    Its value is that to the seat to move; its partner counts on the same, all others share the
    opposite (as in `seat_advantages`). A critic that was trained with open hands sees those of the
    sampled world; the others see what the seat to move knows there.
    """
    parts, _ = inputs_of(policy, rules, games)
    movers = games["seat"].astype(np.int64)
    if policy.network.shape.privileged:
        size = layout_size(state_layout(rules, policy.observe_as))
        state = np.zeros((len(games), size), np.uint8)
        places = policy.observe_as or rules.seats
        observe_each(games, movers, places, True, state)
        parts["state"] = policy.as_trained(rules, state)
    values = _run(lambda inputs: policy.network(inputs)[1], parts, np.empty(len(games)))
    same = (movers - seats) % rules.sides == 0
    return np.where(same, values, -values / (rules.sides - 1))


def _run(
    network: Callable[[Inputs], Tensor], parts: dict[str, np.ndarray], out: np.ndarray
) -> np.ndarray:
    with one_thread(), torch.inference_mode():
        inputs = Inputs(**{name: torch.from_numpy(part) for name, part in parts.items()})
        for k in range(0, len(out), ROWS):
            part = slice(k, k + ROWS)
            out[part] = network(inputs.rows(part)).float().cpu().numpy()
    return out
