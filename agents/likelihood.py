"""How likely hidden worlds are, by the moves that the others have made.

All worlds of `domino_env.worlds` are equally likely as deals. But in some of them a seat has made
moves that it would hardly have made: it kept a heavy double, or left an end open that it could
close. Here the round is played again in each world, from its deal. Wherever another seat than the
one that knows had a choice, `expert` weighs its moves, with what that seat knew. A player who is
modelled so makes a move of score s with a chance in proportion to exp(s / HEAT), and one time in
1 / CARELESS any move. Real players are neither; the more careless the model, the less it takes.

`B` worlds, `A` actions.
"""

from __future__ import annotations

from math import exp, log

import numpy as np

from agents.expert import NO_FEATURES, Expert, new_room, weigh_each
from domino_env.compiled import jit
from domino_env.engine import begin, move, only_move
from domino_env.observation import mask
from domino_env.state import GAME, Record

HEAT = 0.1  # scores are near to rewards: a move that is worse by so much is played 2.7 times less
CARELESS = 0.2  # share of the moves that are made without a thought


@jit
def return_to_deal(g: Record) -> None:
    """Take back all moves of the round."""
    drawn = 0
    for p in range(int(g.seats)):
        g.hands[p] = int(g.hands[p]) | int(g.placed[p])
    for k in range(int(g.event_count)):
        event = int(g.events[k])
        if event & 127 == 2 * int(g.tiles):
            who = event >> 7 & 3
            g.hands[who] = int(g.hands[who]) & ~(1 << int(g.boneyard[drawn]))
            drawn += 1
    begin(g, int(g.leader))


@jit
def log_chance(scores: np.ndarray, legal: np.ndarray, action: int) -> float:
    """The logarithm of the chance of a move by the scores of all; float64, int8 [1, A]."""
    best, count, total = -np.inf, 0, 0.0
    for a in range(legal.shape[1]):
        if legal[0, a] != 0:
            count += 1
            best = max(best, scores[0, a])
    for a in range(legal.shape[1]):
        if legal[0, a] != 0:
            total += exp((scores[0, a] - best) / HEAT)
    thought = exp((scores[0, action] - best) / HEAT) / total
    return log((1 - CARELESS) * thought + CARELESS / count)


@jit
def likelihood_each(
    worlds: np.recarray,
    seats: np.ndarray,
    weights: np.ndarray,
    again: np.recarray,
    room: tuple[np.recarray, np.recarray],
    none: np.ndarray,
    out: np.ndarray,
) -> None:
    """Write to `out` (float64 [B]) the logarithm of how likely the moves of the others are.

    `seats` int64 [B]: those that know; `weights` float64 [B, K] of `expert`. `again` is room for
    one game, `room` as `new_room` gives it, `none` empty.
    """
    legal = np.zeros((1, 2 * int(worlds[0].tiles) + 3), np.int8)
    scores = np.zeros(legal.shape)
    for i in range(len(worlds)):
        again[0] = worlds[i]
        g, out[i] = again[0], 0.0
        return_to_deal(g)
        for k in range(int(worlds[i].event_count)):
            event = int(worlds[i].events[k])
            if event >> 7 & 3 != seats[i] and only_move(g) < 0:
                mask(g, legal, 0)
                weigh_each(again, legal, weights[i : i + 1], room, scores, none)
                out[i] += log_chance(scores, legal, event & 127)
            move(g, event & 127)
            for _ in range(event >> 9):
                move(g, 2 * int(g.tiles) + 1)


def log_likelihood(worlds: np.ndarray, seats: np.ndarray) -> np.ndarray:
    """How likely the moves of all seats but one are in each world, as logarithms, float64 [B].

    `worlds` (GAME [B], rounds that are on) and `seats` (int64 [B], whose own moves say nothing to
    them) as `sample_worlds` takes and gives them.
    """
    out = np.zeros(len(worlds))
    if len(worlds):
        records = worlds.view(np.recarray)
        weights = Expert().weights_for(records)
        again = np.zeros(1, GAME).view(np.recarray)
        likelihood_each(records, seats, weights, again, new_room(), NO_FEATURES, out)
    return out
