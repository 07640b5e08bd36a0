"""`GAME`: all of a game in one record, with its random state; how records are made.

The deal, the table, what has happened, scores and rules. A batch of games is an array of records.
Sets of tiles are signed 64-bit integers: bit t is tile t.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from domino_env.compiled import jit
from domino_env.rules import CHOICES, Rules
from domino_env.tiles import MAX_TILES

_int64: Any = np.int64  # where int() would stay unsigned when compiled
Record = Any  # one element of a record array of dtype GAME

MAX_SEATS = 4
MAX_EVENTS = 106  # plays and draws of a round, at most: 54 + 51 with two hands of 2 in double-nine
UNIT = 6  # rewards are counted in sixths: halves and thirds of points stay exact

NOT_OVER, TERMINATED, TRUNCATED = 0, 1, 2  # GAME.over
PLAYING, OUT, BLOCKED = 0, 1, 2  # GAME.end
NOBODY = -1

DRAW_NONE, DRAW_ONE, DRAW_UNTIL = 0, 1, 2
LEAD_HIGHEST, LEAD_LOWEST, LEAD_SEAT, LEAD_RANDOM = 0, 1, 2, 3
NEXT_SAME, NEXT_WINNER, NEXT_ROTATE = 0, 1, 2
SCORE_NONE, SCORE_WINNER, SCORE_LOSER = 0, 1, 2
FREE, ALONE, PENDING, GROSS, LOWEST_HAND, MATCH, POINTS = 1, 1, 1, 1, 1, 1, 1

RULE_FIELDS = [
    ("target", "i4"),
    ("opening", "i4"),
    ("max_rounds", "i4"),
    ("blank_double", "i2"),
    *((name, "i1") for name in ("set", "seats", "teams", "deal_size", "draw", "reserve")),
    *((name, "i1") for name in ("double_pair", "lead", "lead_tile", "next_lead")),
    *((name, "i1") for name in ("blank_double_when", "score", "opening_mode", "block_score")),
    *((name, "i1") for name in ("team_block", "episode", "reward")),
]

# Of type np.record, so that `games[i].hands` works in plain Python too.
_FIELDS = np.dtype(
    [
        ("hands", "i8", MAX_SEATS),  # tile set of each seat
        ("placed", "i8", MAX_SEATS),  # tiles on the table, by who placed them
        ("not_dealt", "i8"),  # tiles that a forced lead proves not to have been dealt
        ("random", "u4", 4),  # state of the game's own generator, xoshiro128++
        ("scores", "i4", MAX_SEATS),  # points on the record, by side
        ("aside", "i4", MAX_SEATS),  # points kept aside before the opening, by side
        ("earned", "i4", MAX_SEATS),  # reward of the episode so far, by seat, in 1/UNIT
        ("moves", "i4"),  # moves of the episode
        ("round_number", "i4"),  # from 0 (`round` is a method of NumPy records)
        *(field for field in RULE_FIELDS if field[1] == "i4"),
        ("events", "i2", MAX_EVENTS),  # plays and draws: action + 128*seat + 512*passes after it
        ("lacks", "i2", MAX_SEATS),  # pips that the seat is proven to lack, bit v for pip v
        ("pips", "i2", MAX_SEATS),  # of each hand at the end of the round, else 0
        ("kept_lacks", "i2"),  # of the seat to move, from before its draws of this turn
        *(field for field in RULE_FIELDS if field[1] == "i2"),
        ("boneyard", "i1", MAX_TILES),  # in drawing order, -1 behind its end; drawn tiles stay
        ("hand_size", "i1", MAX_SEATS),
        ("tiles", "i1"),  # T
        ("stock", "i1"),  # tiles of the boneyard at the deal
        ("drawn", "i1"),  # how many of them have been drawn
        ("event_count", "i1"),
        ("left", "i1"),  # the open ends, -1 before the lead
        ("right", "i1"),
        ("left_by", "i1"),  # the seat whose tile made the end
        ("right_by", "i1"),
        ("seat", "i1"),  # to move; after the end, the seat that moved last
        ("leader", "i1"),
        ("by_rule", "i1"),  # the leader was found by `lead`, not by `next_lead`
        ("next_leader", "i1"),  # of the next round; -1: by `lead`
        ("turn_draws", "i1"),  # draws of the seat to move in this turn
        ("end", "i1"),  # PLAYING, OUT, BLOCKED
        ("winner", "i1"),  # bit p: seat p is of the side that won the round
        ("over", "i1"),  # NOT_OVER, TERMINATED, TRUNCATED
        ("asked", "i1"),  # an agent has had a choice in this episode (for forced="skip")
        ("opened", "u1", MAX_SEATS),  # the record is open, by side
        ("draws", "u1", MAX_SEATS),  # in this round
        ("passes", "u1", MAX_SEATS),
        *(field for field in RULE_FIELDS if field[1] == "i1"),
        ("unused", "i1", 3),  # no gap in a record, so that equal games are equal bytes
    ],
    align=True,
)
GAME = np.dtype((np.record, _FIELDS))


# ---------------------------------------------------------------- making games


def new_games(rules: Rules, seeds: np.ndarray | int) -> np.recarray:
    """Games of `rules` before their first deal, one a seed ([B] integers, or one for B = 1).

    Call `reset` on each, which deals. The random state is splitmix64 of the seed, in 32-bit words.
    """
    seeds = np.atleast_1d(np.asarray(seeds, dtype=np.uint64))
    games = np.zeros(len(seeds), GAME).view(np.recarray)
    for name, code in rules.codes().items():
        games["deal_size" if name == "hand_size" else name] = code
    games["tiles"] = rules.tiles
    games["end"] = OUT  # no round is on, so nothing is legal
    seed_games(games, seeds)
    return games


def seed_games(games: np.recarray, seeds: np.ndarray) -> None:
    """Set the random state of each game from its seed (uint64 [B])."""
    for half, gamma in enumerate((0x9E3779B97F4A7C15, 0x3C6EF372FE94F82A)):
        z = seeds + np.uint64(gamma)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        z ^= z >> np.uint64(31)
        games["random"][:, 2 * half] = z & np.uint64(0xFFFFFFFF)
        games["random"][:, 2 * half + 1] = z >> np.uint64(32)


@jit
def rotated(x: int, k: int) -> int:
    """The 32-bit word `x` rotated left by k."""
    return ((x << k) | (x >> (32 - k))) & 0xFFFFFFFF


@jit
def random_word(g: Record) -> int:
    """32 random bits: xoshiro128++ (Blackman and Vigna, 2019)."""
    s0, s1 = _int64(g.random[0]), _int64(g.random[1])
    s2, s3 = _int64(g.random[2]), _int64(g.random[3])
    word = (rotated((s0 + s3) & 0xFFFFFFFF, 7) + s0) & 0xFFFFFFFF
    t = (s1 << 9) & 0xFFFFFFFF
    s2 ^= s0
    s3 ^= s1
    g.random[1] = s1 ^ s2
    g.random[0] = s0 ^ s3
    g.random[2] = s2 ^ t
    g.random[3] = rotated(s3, 11)
    return word


@jit
def random_below(g: Record, n: int) -> int:
    """A uniform integer in [0, n), n at most 55; each has its share within 2**-32."""
    return random_word(g) * n >> 32


def longest_round(rules: Rules) -> tuple[int, int, int]:
    """Bounds on the plays, draws and passes of one round.

    A round ends when a hand is empty, so all but one seat keep a tile. Between two plays at most
    `seats - 1` seats pass without having drawn, since a full circle of passes is a block; with
    `draw: one` each draw may be followed by one more pass.
    """
    draws = 0 if rules.draw == CHOICES["draw"][DRAW_NONE] else max(0, rules.stock - rules.reserve)
    plays = rules.seats * (rules.hand_size - 1) + 1 + draws
    passes = (plays - 1) * (rules.seats - 1)
    return plays, draws, passes + (draws if rules.draw == CHOICES["draw"][DRAW_ONE] else 0)
