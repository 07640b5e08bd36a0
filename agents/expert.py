"""`expert`: weighs what each move does to the chances of all seats to answer.

For every legal play it works out `FEATURES`: pips and doubles put down, what stays playable, the
chance of each other seat to have no answer, the chance to be the next to play, and what a block
would be worth. Their weighted sum is the score. The weights (`expert_weights.py`) depend on the
kind of game: whether it is drawn, seats and teams, and what is rewarded. They were fitted by
`benchmarks/fit_expert.py`.

The chances come from a count of the unseen tiles (`chances.py`).

`B` positions, `A` actions, `K` features, `T` tiles.
"""

from __future__ import annotations

from math import sqrt, tanh

import numpy as np

from agents.base import View
from agents.bots import Bot, after, pips_of, unseen_tiles
from agents.chances import BONEYARD, count_bits, find_chances, none_of
from agents.expert_weights import WEIGHTS
from domino_env.compiled import jit, lowest
from domino_env.engine import (
    drawable,
    only_move,
)
from domino_env.scoring import (
    hand_pips,
    side_count,
)
from domino_env.slots import PLAN
from domino_env.state import (
    ALONE,
    DRAW_NONE,
    GAME,
    MATCH,
    MAX_SEATS,
    POINTS,
    SCORE_LOSER,
    SCORE_NONE,
    Record,
)
from domino_env.tiles import DOUBLE, HIGH, LOW, MAX_TILES, PIPS, SUIT

FEATURES = (
    "pips",  # put down, in tens
    "pips_early",  # times the share of the hand as dealt that is still held
    "doubles",  # put down
    "second_tile",  # both doubles at once
    "variety",  # different pips that stay in hand
    "lonely_doubles",  # that stay in hand without another tile of their pip
    "follow",  # own tiles that fit the ends left
    "ends_held",  # ends left that own tiles fit
    "control",  # own share of the tiles that are still out, summed over the ends left
    "ends_equal",
    "over_own",  # covers an end that this seat made
    "over_partner",  # that its partner made
    "over_next",  # that the next seat made
    "none_next",  # chance that the next seat has no answer
    "none_second",  # the seat after it: the partner in teams
    "none_third",
    "next_goes_out",  # the chance that it has an answer, over the tiles it holds, squared
    "second_goes_out",
    "third_goes_out",
    "turn_returns",  # chance that nobody has an answer, and this seat has
    "answer_back",  # chance to have an answer after the next seat's
    "block",  # chance of a block now, times the chance to win it less a fair share
)
K = len(FEATURES)
OUT = 1e6  # the score of going out

BY_WIN, BY_WINNER_POINTS, BY_LOSER_POINTS = 0, 1, 2  # what is rewarded


# ---------------------------------------------------------------- what a block would be worth


@jit
def blocked_pips(g: Record, seat: int, chance: np.ndarray, tiles: int) -> tuple[float, float]:
    """The mean and the variance of the pips in another hand that holds some tiles only."""
    total, mean, square, count = 1e-9, 0.0, 0.0, 0
    while tiles != 0:
        t = lowest(tiles)
        tiles &= tiles - 1
        pips = int(PIPS[t])
        if t == 0 and (int(g.blank_double_when) != ALONE or int(g.hand_size[seat]) == 1):
            pips = int(g.blank_double)
        total += chance[seat, t]
        mean += chance[seat, t] * pips
        square += chance[seat, t] * pips * pips
        count += 1 if chance[seat, t] > 0 else 0
    mean, square = mean / total, square / total
    held = int(g.hand_size[seat])
    spared = max(count - held, 0) / max(count - 1, 1)  # of a sample without replacement
    return held * mean, held * spared * max(square - mean * mean, 0.0)


@jit
def block_chance(g: Record, own: int, chance: np.ndarray, tiles: int) -> float:
    """The chance to win a block with `own` pips in hand, where the others hold only `tiles`.

    The difference of each opponent's pips (both's, in teams) and the own is taken as normal.
    """
    seat, seats = int(g.seat), int(g.seats)
    mean, variance = float(own), 0.0
    if int(g.teams):
        mean, variance = blocked_pips(g, (seat + 2) % 4, chance, tiles)
        mean += own
    won = 1.0
    for k in range(1, side_count(g)):
        theirs, spread = blocked_pips(g, (seat + k) % seats, chance, tiles)
        if int(g.teams):
            more, wider = blocked_pips(g, (seat + 3) % 4, chance, tiles)
            theirs, spread = theirs + more, spread + wider
        won *= 0.5 + 0.5 * tanh(0.8 * (theirs - mean) / sqrt(spread + variance + 0.01))
    return won


# ---------------------------------------------------------------- the features of a move


@jit
def read(
    games: np.recarray,
    i: int,
    room: tuple[np.recarray, np.recarray],
    chance: np.ndarray,
    free: np.ndarray,
) -> None:
    """What is the same for all moves of game i.

    `chance` [5, T] as `find_chances` says; `free` int64 [4], how many tiles of each hand are not
    certain.
    """
    copies, plans = room
    copies[0] = games[i]
    g = copies[0]
    seat = int(g.seat)
    find_chances(g, seat, plans[0], chance)
    for p in range(int(g.seats)):
        if p != seat:
            free[p] = int(g.hand_size[p]) - count_bits(int(g.hands[p]))


@jit
def own_features(g: Record, action: int, out: np.ndarray) -> None:
    """The features that the own hand and the ends give, into `out` [K]."""
    hand, dealt = int(g.hands[g.seat]), int(g.deal_size)
    put, left, right = after(g, action)
    kept = hand & ~put
    down = hand_pips(g, hand) - hand_pips(g, kept)
    out[0] = down / 10
    out[1] = down / 10 * count_bits(kept) / dealt
    doubles = 0
    lonely = 0
    for v in range(int(g.set) + 1):
        double = 1 << int(DOUBLE[v])
        if put & double:
            doubles += 1
        if kept & int(SUIT[v]) == double:
            lonely += 1
    out[2] = doubles
    out[3] = count_bits(put) - 1
    out[4] = count_bits(pips_of(kept))
    out[5] = lonely
    out[6] = count_bits(kept & (int(SUIT[left]) | int(SUIT[right])))
    out[7] = count_bits(pips_of(kept) & (1 << left | 1 << right))
    out[9] = 1 if left == right else 0
    for k in range(10, 13):
        out[k] = 0
    if int(g.left) >= 0 and count_bits(put) == 1:
        maker = int(g.right_by) if action & 1 else int(g.left_by)
        place = (maker - int(g.seat)) % int(g.seats)
        out[10] = 1 if place == 0 else 0
        out[11] = 1 if place == 2 and int(g.teams) else 0
        out[12] = 1 if place == 1 else 0


@jit
def answer_features(
    g: Record,
    action: int,
    unseen: int,
    chance: np.ndarray,
    free: np.ndarray,
    out: np.ndarray,
) -> None:
    """The features that the other hands give, into `out` [K], behind `own_features`."""
    seat, seats = int(g.seat), int(g.seats)
    put, left, right = after(g, action)
    kept = int(g.hands[seat]) & ~put
    fitting = unseen & (int(SUIT[left]) | int(SUIT[right]))
    out[8] = control(kept, unseen, left)
    if left != right:
        out[8] += control(kept, unseen, right)
    nobody = 1.0 if count_bits(fitting) <= int(g.stock) - int(g.drawn) else 0.0
    for k in range(1, MAX_SEATS):
        out[12 + k], out[15 + k] = 0.0, 0.0
        if k < seats:
            p = (seat + k) % seats
            none = none_of(chance, p, fitting, free[p])
            out[12 + k] = none
            out[15 + k] = (1 - none) / int(g.hand_size[p]) ** 2
            nobody *= none
    follows = kept & (int(SUIT[left]) | int(SUIT[right])) != 0
    out[19] = nobody if follows else 0.0
    out[20] = answer_back(kept, left, right, (seat + 1) % seats, chance)
    out[21] = 0.0
    if not follows and nobody > 0 and drawable(g) == 0:
        won = block_chance(g, hand_pips(g, kept), chance, unseen & ~fitting)
        out[21] = nobody * (won - 1 / side_count(g))


@jit
def control(kept: int, unseen: int, end: int) -> float:
    """The share of the tiles of a pip still out that is in the own hand."""
    own, others = count_bits(kept & int(SUIT[end])), count_bits(unseen & int(SUIT[end]))
    return own / (own + others) if own > 0 else 0.0


@jit
def answer_back(kept: int, left: int, right: int, seat: int, chance: np.ndarray) -> float:
    """The chance that `kept` fits the ends once `seat` has played one of its tiles at random.

    1 where it has none that fits, and `kept` does; 0 where `kept` does not.
    """
    pips = pips_of(kept)
    total, fits = 1e-9, 1e-9 if pips & (1 << left | 1 << right) else 0.0
    for side in range(2 if left != right else 1):
        end, other = (left, right) if side == 0 else (right, left)
        tiles = int(SUIT[end])
        while tiles != 0:
            t = lowest(tiles)
            far = int(LOW[t]) + int(HIGH[t]) - end
            total += chance[seat, t]
            if pips >> far & 1 or pips >> other & 1:
                fits += chance[seat, t]
            tiles &= tiles - 1
    return fits / total


@jit
def is_play(g: Record, action: int) -> bool:
    """Whether an action puts tiles down."""
    return action < 2 * int(g.tiles) or action == 2 * int(g.tiles) + 2


def new_room() -> tuple[np.recarray, np.recarray]:
    """Room for `weigh_each`: one game, and one plan of its slots."""
    return np.zeros(1, GAME).view(np.recarray), np.zeros(1, PLAN).view(np.recarray)


@jit
def weigh_each(
    games: np.recarray,
    mask: np.ndarray,
    weights: np.ndarray,
    room: tuple[np.recarray, np.recarray],
    scores: np.ndarray,
    features: np.ndarray,
) -> None:
    """Write the score of each legal play to `scores` (float64 [B, A]).

    `weights` float64 [B, K]; `room` as `new_room` gives it. `features` float64 [B, A, K] gets the
    features too, unless it is empty. Going out scores `OUT`; where there is no choice, nothing is
    written.
    """
    free = np.zeros(MAX_SEATS, np.int64)
    chance = np.zeros((BONEYARD + 1, MAX_TILES))
    found = np.zeros(K)
    for i in range(len(games)):
        g = games[i]
        if only_move(g) >= 0:
            continue
        unseen = unseen_tiles(g)
        read(games, i, room, chance, free)
        for a in range(2 * int(g.tiles) + 3):
            if mask[i, a] != 0 and is_play(g, a):
                own_features(g, a, found)
                answer_features(g, a, unseen, chance, free, found)
                total = OUT if count_bits(int(g.hands[g.seat])) == 1 + found[3] else 0.0
                for k in range(K):
                    total += weights[i, k] * found[k]
                    if len(features) > 0:
                        features[i, a, k] = found[k]
                scores[i, a] = total


# ---------------------------------------------------------------- what is rewarded


def objective(games: np.recarray) -> np.ndarray:
    """What counts in each position, int64 [B]: `BY_WIN`, or the points of the round.

    In a match the points do, to its end: playing for the round once a side is within 12 or 30
    points of the target lost 0.002 to 0.022 a match against that, in four kinds of match.
    """
    loser = games["score"] == SCORE_LOSER
    by_points = np.where(loser, BY_LOSER_POINTS, BY_WINNER_POINTS)
    match = (games["score"] != SCORE_NONE) & (games["episode"] == MATCH)
    return np.where((games["reward"] == POINTS) | match, by_points, BY_WIN)


def kind_of_game(games: np.recarray) -> tuple[np.ndarray, np.ndarray]:
    """The indices of each game in `WEIGHTS`: drawn or not, and 2, 3, 4 seats or pairs (0 to 3)."""
    drawn = (games["draw"] != DRAW_NONE).astype(np.int64)
    return drawn, np.where(games["teams"] != 0, 3, games["seats"].astype(np.int64) - 2)


class Expert(Bot):
    """Plays the move with the best weighed features; goes out where it can."""

    name = "expert"
    uses = frozenset({"games"})

    def scores(self, view: View) -> np.ndarray:
        """The weighed features of every action."""
        assert view.games is not None
        weights, scores = self.weights_for(view.games), np.zeros(view.mask.shape)
        weigh_each(view.games, view.mask, weights, new_room(), scores, NO_FEATURES)
        return scores

    def weights_for(self, games: np.recarray) -> np.ndarray:
        """The weights of the features in each position, float64 [B, K]."""
        return WEIGHTS[(objective(games), *kind_of_game(games))]


NO_FEATURES = np.zeros((0, 0, 0))
