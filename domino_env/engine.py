"""The engine: one game is one record, and the rules are small functions on it.

`GAME` holds all of a game: the deal, the table, what has happened, scores, rules, random state.
The functions take a record `g` of an array of games and change it in place; each follows the
section of RULES.md that its docstring names. Compiled by Numba, or plain Python under
`NUMBA_DISABLE_JIT=1`, with the same results: fields are cast to `int` before arithmetic, sets of
tiles are signed 64-bit integers (bit t is tile t).

An action is `2*tile + side` (side 0 left, 1 right), then `2T` draw, `2T + 1` pass, `2T + 2` both.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from domino_env.compiled import jit, lowest
from domino_env.rules import CHOICES, Rules
from domino_env.tiles import DOUBLE, DOUBLES, HIGH, LOW, MAX_TILES, PIPS, SUIT

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

GAME = np.dtype(
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
    ],
    align=True,
)


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
    s0, s1 = np.int64(g.random[0]), np.int64(g.random[1])
    s2, s3 = np.int64(g.random[2]), np.int64(g.random[3])
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


@jit
def reset(g: Record) -> None:
    """Begin a new episode: an empty record, and the first deal."""
    for side in range(MAX_SEATS):
        g.scores[side] = 0
        g.aside[side] = 0
        g.earned[side] = 0
        g.opened[side] = 1 if int(g.score) != SCORE_NONE and int(g.opening) == 0 else 0
    g.moves = 0
    g.round_number = 0
    g.over = NOT_OVER
    g.asked = 0
    g.next_leader = NOBODY
    deal(g)


@jit
def deal(g: Record) -> None:
    """Shuffle and deal a round (RULES.md 3); the only place where the random state moves."""
    tiles = int(g.tiles)
    for k in range(tiles):
        g.boneyard[k] = k
    for k in range(tiles - 1, 0, -1):
        j = random_below(g, k + 1)
        swapped = int(g.boneyard[k])
        g.boneyard[k] = g.boneyard[j]
        g.boneyard[j] = swapped
    drawn_leader = random_below(g, int(g.seats)) if int(g.lead) == LEAD_RANDOM else NOBODY
    top = tiles
    for p in range(int(g.seats)):
        hand = 0
        for _ in range(int(g.deal_size)):
            top -= 1
            hand |= 1 << int(g.boneyard[top])
        g.hands[p] = hand
    for k in range(top, tiles):
        g.boneyard[k] = NOBODY
    g.stock = top
    begin(g, drawn_leader)


@jit
def begin(g: Record, drawn_leader: int) -> None:
    """Clear the table for the hands and the boneyard that lie dealt, and find the leader."""
    for p in range(MAX_SEATS):
        g.hand_size[p] = g.deal_size if p < int(g.seats) else 0
        g.placed[p] = 0
        g.lacks[p] = 0
        g.pips[p] = 0
        g.draws[p] = 0
        g.passes[p] = 0
    for k in range(int(g.event_count)):
        g.events[k] = 0
    g.event_count = 0
    g.drawn = 0
    g.turn_draws = 0
    g.kept_lacks = 0
    g.not_dealt = 0
    g.left = NOBODY
    g.right = NOBODY
    g.left_by = NOBODY
    g.right_by = NOBODY
    g.end = PLAYING
    g.winner = 0
    g.by_rule = 1 if int(g.next_leader) == NOBODY else 0
    leader = int(g.next_leader)
    if leader == NOBODY:
        leader = drawn_leader if int(g.lead) == LEAD_RANDOM else leader_by_rule(g)
    g.leader = leader
    g.seat = leader


@jit
def leader_by_rule(g: Record) -> int:
    """The seat that leads by `lead`: the holder of the tile that must go first (RULES.md 4)."""
    if int(g.lead) == LEAD_SEAT:
        return 0
    all_hands = 0
    for p in range(int(g.seats)):
        all_hands |= int(g.hands[p])
    first = first_tile(g, all_hands)
    for p in range(int(g.seats)):
        if int(g.hands[p]) >> first & 1:
            return p
    return 0


@jit
def first_tile(g: Record, tiles: int) -> int:
    """The tile of a set that `lead` puts first: its best double, else its best tile."""
    last = int(g.set)
    if int(g.lead) == LEAD_HIGHEST:
        for v in range(last, -1, -1):
            if tiles >> int(DOUBLE[v]) & 1:
                return int(DOUBLE[v])
        return highest(tiles)
    for v in range(1, last + 1):
        if tiles >> int(DOUBLE[v]) & 1:
            return int(DOUBLE[v])
    return 0 if tiles & 1 else lowest(tiles)


@jit
def highest(tiles: int) -> int:
    """The highest tile of a set that is not empty."""
    t = MAX_TILES - 1
    while not tiles >> t & 1:
        t -= 1
    return t


# ---------------------------------------------------------------- what is legal (RULES.md 5)


@jit
def lead_is_forced(g: Record) -> bool:
    """Whether the leader of this round had to lead the tile that `lead` names."""
    return int(g.by_rule) == 1 and int(g.lead) <= LEAD_LOWEST and int(g.lead_tile) != FREE


@jit
def plays(g: Record) -> tuple[int, int]:
    """The tiles that the seat to move may put left, and right; all left where it is the same."""
    hand = int(g.hands[g.seat])
    left, right = int(g.left), int(g.right)
    if left < 0:
        return (1 << first_tile(g, hand) if lead_is_forced(g) else hand), 0
    return hand & int(SUIT[left]), (hand & int(SUIT[right]) if left != right else 0)


@jit
def drawable(g: Record) -> int:
    """How many boneyard tiles may still be drawn in this round, by whoever can."""
    if int(g.draw) == DRAW_NONE:
        return 0
    return max(0, int(g.stock) - int(g.drawn) - int(g.reserve))


@jit
def may_draw(g: Record) -> bool:
    """Whether the seat to move, with nothing to play, draws (else it passes)."""
    return drawable(g) > 0 and (int(g.draw) == DRAW_UNTIL or int(g.turn_draws) == 0)


@jit
def may_play_both(g: Record) -> bool:
    """Whether the seat to move may put down both doubles of the ends in one move."""
    left, right = int(g.left), int(g.right)
    if int(g.double_pair) == 0 or left < 0 or left == right:
        return False
    hand = int(g.hands[g.seat])
    return (hand >> int(DOUBLE[left]) & hand >> int(DOUBLE[right]) & 1) == 1


@jit
def is_legal(g: Record, action: int) -> bool:
    """Whether `action`, any integer, is a legal move of the seat to move."""
    draw = 2 * int(g.tiles)
    if int(g.end) != PLAYING or action < 0 or action > draw + 2:
        return False
    left, right = plays(g)
    if action < draw:
        return ((right if action & 1 else left) >> (action >> 1) & 1) == 1
    if action == draw + 2:
        return may_play_both(g)
    return left | right == 0 and may_draw(g) == (action == draw)


@jit
def only_move(g: Record) -> int:
    """The only legal action of the seat to move, or -1 where it has a choice."""
    left, right = plays(g)
    draw = 2 * int(g.tiles)
    if left == 0 and right == 0:
        return draw if may_draw(g) else draw + 1
    if (left != 0 and right != 0) or (left | right) & ((left | right) - 1) != 0:
        return -1
    return 2 * lowest(left) if left != 0 else 2 * lowest(right) + 1


# ---------------------------------------------------------------- the moves (RULES.md 5, 6)


@jit
def move(g: Record, action: int) -> None:
    """Make a legal move; a round that it ends is settled, the next one not yet dealt."""
    seat = int(g.seat)
    draw = 2 * int(g.tiles)
    g.moves += 1
    if action == draw:
        draw_tile(g, seat)
    elif action == draw + 1:
        pass_turn(g, seat)
    elif action == draw + 2:
        play_both(g, seat)
    else:
        play_tile(g, seat, action >> 1, action & 1)
    if int(g.hand_size[seat]) == 0:
        settle(g, OUT)
    elif blocked(g):
        settle(g, BLOCKED)
    elif action != draw:
        g.turn_draws = 0
        g.kept_lacks = 0
        g.seat = seat + 1 if seat + 1 < int(g.seats) else 0


@jit
def advance(g: Record, action: int) -> None:
    """`move`, then the deal of the next round where the match goes on."""
    move(g, action)
    if int(g.end) != PLAYING and int(g.over) == NOT_OVER:
        next_round(g)


@jit
def next_round(g: Record) -> None:
    """Deal the round after one that is settled."""
    g.round_number += 1
    deal(g)


@jit
def note(g: Record, action: int, seat: int) -> None:
    """Write a play or a draw down among the events of the round."""
    g.events[int(g.event_count)] = action + 128 * seat
    g.event_count += 1


@jit
def play_tile(g: Record, seat: int, tile: int, side: int) -> None:
    """Put a tile at an end; its other half is the end now."""
    note(g, 2 * tile + side, seat)
    if int(g.left) < 0:
        if lead_is_forced(g):
            g.not_dealt = tiles_before(g, tile)
        g.left, g.right = LOW[tile], HIGH[tile]
        g.left_by, g.right_by = seat, seat
    else:
        prove_lacks_of_player(g, seat)
        halves = int(LOW[tile]) + int(HIGH[tile])
        if side == 0:
            g.left = halves - int(g.left)
            g.left_by = seat
        else:
            g.right = halves - int(g.right)
            g.right_by = seat
    put_down(g, seat, 1 << tile)
    g.hand_size[seat] -= 1


@jit
def play_both(g: Record, seat: int) -> None:
    """Put both doubles down; the ends stay what they were."""
    note(g, 2 * int(g.tiles) + 2, seat)
    put_down(g, seat, 1 << int(DOUBLE[g.left]) | 1 << int(DOUBLE[g.right]))
    g.left_by, g.right_by = seat, seat
    g.hand_size[seat] -= 2


@jit
def put_down(g: Record, seat: int, tiles: int) -> None:
    """Move tiles from the hand of a seat to the table."""
    g.hands[seat] = int(g.hands[seat]) & ~tiles
    g.placed[seat] = int(g.placed[seat]) | tiles


@jit
def draw_tile(g: Record, seat: int) -> None:
    """Take the front tile of the boneyard; nothing is claimed of this hand for now."""
    note(g, 2 * int(g.tiles), seat)
    if int(g.turn_draws) == 0:
        g.kept_lacks = g.lacks[seat]
        g.lacks[seat] = 0
    g.hands[seat] = int(g.hands[seat]) | 1 << int(g.boneyard[g.drawn])
    g.hand_size[seat] += 1
    g.drawn += 1
    g.turn_draws += 1
    g.draws[seat] += 1


@jit
def pass_turn(g: Record, seat: int) -> None:
    """Pass, which proves that the hand holds neither end; `lacks` is empty after draws."""
    g.events[int(g.event_count) - 1] += 512
    g.lacks[seat] = int(g.lacks[seat]) | ends(g)
    g.passes[seat] += 1


@jit
def ends(g: Record) -> int:
    """The open ends as a set of pips."""
    return 1 << int(g.left) | 1 << int(g.right)


@jit
def prove_lacks_of_player(g: Record, seat: int) -> None:
    """What a play after draws proves: after one, the drawn tile is the one put down."""
    if int(g.turn_draws) > 0:
        older = int(g.kept_lacks) if int(g.turn_draws) == 1 else 0
        g.lacks[seat] = older | ends(g)


@jit
def tiles_before(g: Record, led: int) -> int:
    """The tiles that would have been led before the forced lead `led`, so nobody was dealt them."""
    whole = (1 << int(g.tiles)) - 1
    if int(g.lead) == LEAD_HIGHEST:
        higher = whole & ~((2 << led) - 1)
        return higher & DOUBLES if DOUBLES >> led & 1 else higher | whole & DOUBLES
    lower = (1 << led) - 1
    if led == 0:
        return whole & DOUBLES & ~1
    return lower & DOUBLES & ~1 if DOUBLES >> led & 1 else lower | whole & DOUBLES


@jit
def blocked(g: Record) -> bool:
    """Whether no seat holds a tile that fits and nobody can draw any more."""
    if int(g.left) < 0 or drawable(g) > 0:
        return False
    hands = int(g.hands[0]) | int(g.hands[1]) | int(g.hands[2]) | int(g.hands[3])
    return hands & (int(SUIT[g.left]) | int(SUIT[g.right])) == 0


# ---------------------------------------------------------------- the end of a round (7, 8, 9)


@jit
def settle(g: Record, end: int) -> None:
    """Count, write and reward the round that has just ended, and end the episode if it does."""
    g.end = end
    g.turn_draws = 0
    g.kept_lacks = 0
    for p in range(int(g.seats)):
        g.pips[p] = hand_pips(g, int(g.hands[p]))
    side = winning_side(g, end)
    sides = side_count(g)
    worth = points_won(g, end, side)
    g.winner = 0
    for p in range(int(g.seats)):
        if p % sides == side:
            g.winner = int(g.winner) | 1 << p
    g.next_leader = next_leader(g, end, side)
    if int(g.reward) == POINTS:
        reward_points(g, side, worth)
    write_points(g, side, worth)
    finish(g)


@jit
def hand_pips(g: Record, hand: int) -> int:
    """The pips of a hand; 0-0 counts `blank_double`, always or alone (RULES.md 7)."""
    if hand == 1 or (hand & 1 and int(g.blank_double_when) != ALONE):
        pips = int(g.blank_double)
    else:
        pips = 0
    rest = hand & ~1
    while rest != 0:
        pips += int(PIPS[lowest(rest)])
        rest &= rest - 1
    return pips


@jit
def side_count(g: Record) -> int:
    """2 with teams, else the seats; the side of seat p is `p % side_count`."""
    return 2 if int(g.teams) else int(g.seats)


@jit
def side_pips(g: Record, side: int) -> int:
    """The pips in all hands of a side."""
    return int(g.pips[side]) + (int(g.pips[side + 2]) if int(g.teams) else 0)


@jit
def block_count(g: Record, side: int) -> int:
    """What a side counts after a block: its total, or its lightest hand (`team_block`)."""
    if int(g.teams) and int(g.team_block) == LOWEST_HAND:
        return min(int(g.pips[side]), int(g.pips[side + 2]))
    return side_pips(g, side)


@jit
def winning_side(g: Record, end: int) -> int:
    """The side that wins the round, or -1 for a drawn one (RULES.md 7)."""
    sides = side_count(g)
    if end == OUT:
        return int(g.seat) % sides
    best = 0
    tied = False
    for side in range(1, sides):
        if block_count(g, side) < block_count(g, best):
            best = side
            tied = False
        elif block_count(g, side) == block_count(g, best):
            tied = True
    return NOBODY if tied else best


@jit
def points_won(g: Record, end: int, side: int) -> int:
    """What the winning side writes under `winner` scoring (RULES.md 8)."""
    if side < 0:
        return 0
    points = 0
    for other in range(side_count(g)):
        if other != side:
            points += side_pips(g, other)
    if end == BLOCKED and int(g.block_score) != GROSS:
        points = max(0, points - side_pips(g, side))
    return points


@jit
def next_leader(g: Record, end: int, side: int) -> int:
    """Who leads the next round by `next_lead`; -1: whom `lead` names (RULES.md 4)."""
    if int(g.next_lead) == NEXT_SAME:
        return NOBODY
    if int(g.next_lead) == NEXT_ROTATE:
        return (int(g.leader) + 1) % int(g.seats)
    if side < 0:
        return int(g.leader)
    if end == OUT:
        return int(g.seat)
    if int(g.teams) and int(g.pips[side + 2]) < int(g.pips[side]):
        return side + 2
    return side


@jit
def reward_points(g: Record, side: int, worth: int) -> None:
    """`reward: points` of one round, zero-sum over the sides (RULES.md 9)."""
    sides = side_count(g)
    total = 0
    for other in range(sides):
        total += side_pips(g, other)
    for p in range(int(g.seats)):
        if int(g.score) == SCORE_LOSER:
            earned = (total - sides * side_pips(g, p % sides)) * UNIT // (sides - 1)
        elif p % sides == side:
            earned = worth * UNIT
        else:
            earned = -(worth * UNIT // (sides - 1))
        g.earned[p] += earned


@jit
def write_points(g: Record, side: int, worth: int) -> None:
    """Write the round on the record (RULES.md 8)."""
    if int(g.score) == SCORE_WINNER and side >= 0:
        g.scores[side] += worth
    elif int(g.score) == SCORE_LOSER:
        for s in range(side_count(g)):
            points = side_pips(g, s) + int(g.aside[s])
            g.aside[s] = 0
            if int(g.opened[s]) or points >= int(g.opening):
                g.opened[s] = 1
                g.scores[s] += points
            elif int(g.opening_mode) == PENDING:
                g.aside[s] = points


@jit
def finish(g: Record) -> None:
    """End the episode after a single round, at the target, or after `max_rounds` rounds."""
    if int(g.episode) != MATCH:
        g.over = TERMINATED
        reward_win(g, int(g.winner))
        return
    reached = 0
    sides = side_count(g)
    for p in range(int(g.seats)):
        if int(g.scores[p % sides]) >= int(g.target):
            reached |= 1 << p
    if reached != 0:
        g.over = TERMINATED
        everyone = (1 << int(g.seats)) - 1
        if int(g.score) == SCORE_WINNER:
            reward_win(g, reached)
        elif reached != everyone:
            reward_goats(g, reached)
    elif int(g.round_number) + 1 >= int(g.max_rounds):
        g.over = TRUNCATED


@jit
def reward_win(g: Record, winners: int) -> None:
    """`reward: win`: +1 for each winner, the losing sides share -1 (RULES.md 9)."""
    if int(g.reward) == POINTS or winners == 0:
        return
    for p in range(int(g.seats)):
        g.earned[p] += UNIT if winners >> p & 1 else -(UNIT // (side_count(g) - 1))


@jit
def reward_goats(g: Record, goats: int) -> None:
    """`reward: win` of a match lost by its goats: -1 each, the others share what they lose."""
    if int(g.reward) == POINTS:
        return
    sides = side_count(g)
    count = 0
    for side in range(sides):
        count += goats >> side & 1
    for p in range(int(g.seats)):
        g.earned[p] += -UNIT if goats >> p & 1 else UNIT * count // (sides - count)


# ---------------------------------------------------------------- forced moves


@jit
def skip_forced(games: np.recarray, i: int, scratch: np.recarray) -> None:
    """Make every move that is the only legal one, until a seat has a choice or the episode ends.

    A move that would end an episode in which nobody has been asked anything is left to be made.
    """
    g = games[i]
    while int(g.over) == NOT_OVER:
        action = only_move(g)
        if action < 0:
            break
        if int(g.asked) == 0:
            scratch[0] = g
            move(scratch[0], action)
            if int(scratch[0].over) != NOT_OVER:
                break
        advance(g, action)
    if int(g.over) == NOT_OVER:
        g.asked = 1


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
