"""Alpha-beta over the rest of a round whose tiles all lie open; the compiled half of `Solver`.

The search is MTD(f) (Plaat et al. 1996, "Best-first fixed-depth minimax algorithms"): a few passes
that each ask whether the value reaches a goal, over one table of what was found. Draws and passes
are never a choice; they belong to the move before. A position is the tiles in hand, the two ends in
either order and the seat to move. That is its key, exactly, where nobody draws; where tiles are
drawn, who holds which is hashed in, to 63 bits.

Values are those to *our* side, in sixths, as rewards in the engine, whose functions also count the
pips and find the winner.

Letters: `K` places of the table, `N` moves of a position. A *level* of the path is a position in
which a seat plays; 0 is the one that is asked about.
"""

from __future__ import annotations

import numpy as np

from domino_env.compiled import jit, lowest
from domino_env.engine import drawable
from domino_env.scoring import hand_pips, side_pips, winning_side
from domino_env.state import BLOCKED, DRAW_NONE, DRAW_UNTIL, NOBODY, OUT, Record
from domino_env.tiles import DOUBLE, MAX_TILES, PIPS, SUIT

LEVELS = 108  # more than a round has plays
N = 24  # more moves than a position has: 19 with tiles, and both doubles
TABLE_BITS = 16
BOTH = 126  # a move is 2 * tile + (0 at the lower end, 1 at the higher one), or this
OPEN = 1 << 20  # no value yet
FAR = 16_000  # beyond every value, and 2 * FAR + 1 fits into BOUND_BITS
BOUND_BITS = 15
WORD = (1 << 63) - 1
OURS, THEIRS = 0, 1  # places of `held`
LOST, DRAWN, WON = 0, 1, 2  # places of a payoff
UNLIMITED = 1 << 60

# What makes a move worth looking at first; set by hand.
NEXT_CANNOT, NEXT_FITS, SAME_FITS, HEAVY = 1000, 40, 12, 8

# Named as in GAME, so that the engine's functions can be called.
FROM_GAME = ("seats", "teams", "draw", "reserve", "stock", "drawn", "seat", "double_pair")
FROM_GAME += ("blank_double", "blank_double_when", "team_block")

SEARCH = np.dtype(
    [
        *((name, "i8") for name in FROM_GAME),
        ("hands", "i8", 4),
        ("pips", "i8", 4),
        ("boneyard", "i8", MAX_TILES),
        ("ours", "i8", 4),  # OURS or THEIRS, by seat
        ("held", "i8", 2),  # no less than the pips of their hands, OURS and THEIRS
        ("worth", "i8", MAX_TILES),  # what a tile counts in `held`
        ("payoff", "i8", (2, 3, 4)),  # out or block; LOST, DRAWN, WON; 1, own, rest, winner's pips
        ("clipped", "i8"),
        ("most", "i8", 3),  # bounds on the payoff: 1, own, rest
        ("least", "i8", 3),
        ("pipless", "i8"),  # pips do not count in them, so they hold while tiles are drawn too
        ("nodes", "i8"),  # positions looked at
        ("limit", "i8"),  # of nodes
        ("depth", "i8"),  # level from which on only the first move is looked at
        ("best", "i8"),  # the move of level 0 that reached the last goal that was reached
        ("history", "i8", (4, 128)),  # how often a move of a seat was enough
        ("at_seat", "i8", LEVELS),  # the path: of each level the seat to move,
        ("at_low", "i8", LEVELS),  # the lower and
        ("at_high", "i8", LEVELS),  # the higher end,
        ("at_drawn", "i8", LEVELS),  # how many tiles have been drawn,
        ("at_key", "i8", LEVELS),
        ("at_least", "i8", LEVELS),  # what is known of the value,
        ("at_most", "i8", LEVELS),
        ("at_moves", "i8", (LEVELS, N)),  # 128 * score + move
        ("at_count", "i8", LEVELS),  # how many moves,
        ("at_next", "i8", LEVELS),  # how many of them have been made,
        ("at_value", "i8", LEVELS),  # the best value so far, to the seat to move,
        ("at_best", "i8", LEVELS),  # and its move
        ("generation", "i8"),  # only what was written in this one counts
        ("table", "i8", (1 << TABLE_BITS, 2)),  # [K]: key; generation, move, at most, at least
    ],
    align=True,
)


# ---------------------------------------------------------------- what a round is worth


@jit
def payoff_at_end(s: Record, end: int, seat: int) -> int:
    """What a round that ended with a move of `seat` is worth to our side."""
    s.seat = seat
    own, rest = 0, 0
    for p in range(int(s.seats)):
        s.pips[p] = hand_pips(s, int(s.hands[p]))
        if int(s.ours[p]) == OURS:
            own += int(s.pips[p])
        else:
            rest += int(s.pips[p])
    side = winning_side(s, end)
    result, winner = DRAWN, 0
    if side >= 0:
        result = WON if int(s.ours[side]) == OURS else LOST
        winner = side_pips(s, side)
    terms = s.payoff[0 if end == OUT else 1, result]
    value = int(terms[0]) + int(terms[1]) * own + int(terms[2]) * rest + int(terms[3]) * winner
    if int(s.clipped) and (result - DRAWN) * value < 0:
        return 0
    return value


@jit
def bound(s: Record, terms: np.ndarray) -> int:
    """A bound on the value, where nobody can draw any more: pips in hand only get fewer."""
    return int(terms[0]) + int(terms[1]) * int(s.held[OURS]) + int(terms[2]) * int(s.held[THEIRS])


# ---------------------------------------------------------------- moves


@jit
def bit_count(x: int) -> int:
    """How many bits are set in 0 <= x < 2**63."""
    x = x - (x >> 1 & 0x5555555555555555)
    x = (x & 0x3333333333333333) + (x >> 2 & 0x3333333333333333)
    x = x + (x >> 4) & 0x0F0F0F0F0F0F0F0F
    x = x + (x >> 8)
    x = x + (x >> 16)
    return x + (x >> 32) & 127


@jit
def tiles_of_move(m: int, low: int, high: int) -> int:
    """The tiles that a move puts down."""
    return 1 << int(DOUBLE[low]) | 1 << int(DOUBLE[high]) if m == BOTH else 1 << (m >> 1)


@jit
def ends_after(m: int, low: int, high: int) -> tuple[int, int]:
    """The lower and the higher end that a move leaves."""
    if m == BOTH:
        return low, high
    stays = low if m & 1 else high
    new = int(PIPS[m >> 1]) - (high if m & 1 else low)
    return (stays, new) if stays < new else (new, stays)


@jit
def score(s: Record, seat: int, m: int, low: int, high: int) -> int:
    """How promising a move is: the next opponent cannot answer, our side can, it is heavy."""
    tiles = tiles_of_move(m, low, high)
    hand = int(s.hands[seat]) & ~tiles
    if hand == 0:
        return UNLIMITED >> 8
    new_low, new_high = ends_after(m, low, high)
    fits = int(SUIT[new_low]) | int(SUIT[new_high])
    total = int(s.history[seat, m]) + SAME_FITS * bit_count(hand & fits)
    total += HEAVY * (2 * (low + high) if m == BOTH else int(PIPS[m >> 1]))
    p = seat
    nobody_yet = True
    for _ in range(int(s.seats) - 1):
        p = p + 1 if p + 1 < int(s.seats) else 0
        count = bit_count(int(s.hands[p]) & fits)
        if int(s.ours[p]) == int(s.ours[seat]):
            total += SAME_FITS * count
        elif nobody_yet:
            total += NEXT_CANNOT if count == 0 else -NEXT_FITS * count
        nobody_yet = nobody_yet and count == 0
    return total


@jit
def list_moves(s: Record, k: int, hint: int) -> None:
    """Write down the moves of level k with their scores; the hint has the highest."""
    seat, low, high = int(s.at_seat[k]), int(s.at_low[k]), int(s.at_high[k])
    hand = int(s.hands[seat])
    count = 0
    for side in range(2 if low != high else 1):
        rest = hand & int(SUIT[high if side else low])
        while rest != 0:
            s.at_moves[k, count] = 2 * lowest(rest) + side
            rest &= rest - 1
            count += 1
    both = hand >> int(DOUBLE[low]) & hand >> int(DOUBLE[high]) & int(s.double_pair)
    if both and low != high:
        s.at_moves[k, count] = BOTH
        count += 1
    for j in range(count if count > 1 else 0):
        m = int(s.at_moves[k, j])
        worth = UNLIMITED >> 7 if m == hint else score(s, seat, m, low, high)
        s.at_moves[k, j] = worth * 128 + m
    s.at_count[k] = count if k < int(s.depth) else 1
    s.at_next[k] = 0
    if k >= int(s.depth):
        best_first(s, k, 0, count)


@jit
def best_first(s: Record, k: int, start: int, count: int) -> int:
    """Bring the best move of level k from `start` on to that place."""
    best = start
    for j in range(start + 1, count):
        if int(s.at_moves[k, j]) > int(s.at_moves[k, best]):
            best = j
    found = int(s.at_moves[k, best])
    s.at_moves[k, best] = s.at_moves[k, start]
    s.at_moves[k, start] = found
    return found & 127


@jit
def give(s: Record, seat: int, tiles: int, sign: int) -> None:
    """Put tiles into a hand (sign 1), or take them out of it (-1)."""
    s.hands[seat] = int(s.hands[seat]) ^ tiles
    side = int(s.ours[seat])
    while tiles != 0:
        s.held[side] += sign * int(s.worth[lowest(tiles)])
        tiles &= tiles - 1


@jit
def next_to_play(s: Record, seat: int, fits: int, draws: int) -> int:
    """The seat that plays next, once `seat` and those behind it have drawn or passed; NOBODY."""
    while int(s.hands[seat]) & fits == 0:
        left = drawable(s)
        hands = int(s.hands[0]) | int(s.hands[1]) | int(s.hands[2]) | int(s.hands[3])
        if left == 0 and hands & fits == 0:
            return NOBODY
        if left > 0 and (int(s.draw) == DRAW_UNTIL or draws == 0):
            give(s, seat, 1 << int(s.boneyard[s.drawn]), 1)
            s.drawn += 1
            draws += 1
        else:
            seat = seat + 1 if seat + 1 < int(s.seats) else 0
            draws = 0
    return seat


@jit
def make_next(s: Record, k: int) -> int:
    """Make the next move of level k, which leads to level k + 1; its value if it ends the round."""
    seat, low, high = int(s.at_seat[k]), int(s.at_low[k]), int(s.at_high[k])
    m = best_first(s, k, int(s.at_next[k]), int(s.at_count[k]))
    s.at_drawn[k] = s.drawn
    give(s, seat, tiles_of_move(m, low, high), -1)
    if int(s.hands[seat]) == 0:
        return payoff_at_end(s, OUT, seat)
    new_low, new_high = ends_after(m, low, high)
    after = seat + 1 if seat + 1 < int(s.seats) else 0
    player = next_to_play(s, after, int(SUIT[new_low]) | int(SUIT[new_high]), 0)
    if player < 0:
        return payoff_at_end(s, BLOCKED, seat)
    s.at_seat[k + 1] = player
    s.at_low[k + 1] = new_low
    s.at_high[k + 1] = new_high
    return OPEN


@jit
def take_back(s: Record, k: int) -> int:
    """Take back the last move of level k, and what was drawn after it; the move."""
    while int(s.drawn) > int(s.at_drawn[k]):
        s.drawn -= 1
        tile = int(s.boneyard[s.drawn])
        for p in range(int(s.seats)):
            if int(s.hands[p]) >> tile & 1:
                give(s, p, 1 << tile, -1)
    m = int(s.at_moves[k, s.at_next[k]]) & 127
    give(s, int(s.at_seat[k]), tiles_of_move(m, int(s.at_low[k]), int(s.at_high[k])), 1)
    s.at_next[k] += 1
    return m


# ---------------------------------------------------------------- the table of what was found


@jit
def key_of(s: Record, k: int) -> int:
    """The key of the position at level k."""
    hands = int(s.hands[0]) | int(s.hands[1]) | int(s.hands[2]) | int(s.hands[3])
    low, high = int(s.at_low[k]), int(s.at_high[k])
    key = hands | (high * (high + 1) // 2 + low) << MAX_TILES | int(s.at_seat[k]) << 61
    if int(s.draw) != DRAW_NONE:
        owners = int(s.hands[0]) * 0x1E3779B97F4A7C15 + int(s.hands[1]) * 0x3F58476D1CE4E5B9
        owners += int(s.hands[2]) * 0x14D049BB133111EB + int(s.drawn) * 0x2545F4914F6CDD1D
        key ^= owners & WORD
    return key


@jit
def place_of(s: Record, key: int, generation: int) -> int:
    """The place of a key in the table; where it is not there, the one it goes to."""
    mixed = (key ^ key >> 29) * 0x1E3779B97F4A7C15 & WORD
    at = mixed >> (63 - TABLE_BITS)
    for place in (at, at ^ 1):
        if int(s.table[place, 0]) == key and int(s.table[place, 1]) >> 48 == generation:
            return place
    return at if int(s.table[at, 1]) >> 48 != generation else at ^ 1


@jit
def enter(s: Record, k: int, goal: int) -> int:
    """Begin with level k: its value if enough is known to tell whether it reaches the goal."""
    s.nodes += 1
    s.at_least[k], s.at_most[k] = -FAR, FAR
    if k > 0 and (int(s.pipless) or drawable(s) == 0):
        s.at_least[k], s.at_most[k] = bound(s, s.least), bound(s, s.most)
        if int(s.at_least[k]) >= goal:
            return int(s.at_least[k])
        if int(s.at_most[k]) < goal:
            return int(s.at_most[k])
    key = key_of(s, k)
    s.at_key[k] = key
    generation, hint = int(s.generation), NOBODY
    at = place_of(s, key, generation)
    data = int(s.table[at, 1])
    if int(s.table[at, 0]) == key and data >> 48 == generation:
        s.at_least[k] = max(int(s.at_least[k]), (data & (1 << BOUND_BITS) - 1) - FAR)
        s.at_most[k] = min(int(s.at_most[k]), (data >> BOUND_BITS & (1 << BOUND_BITS) - 1) - FAR)
        hint = data >> 2 * BOUND_BITS & 127
        if k > 0 and int(s.at_least[k]) >= goal:
            return int(s.at_least[k])
        if k > 0 and int(s.at_most[k]) < goal:
            return int(s.at_most[k])
    s.at_value[k] = -2 * FAR
    list_moves(s, k, hint)
    return OPEN


@jit
def conclude(s: Record, k: int, m: int, value: int, goal: int) -> int:
    """Take in the value of move m of level k: the value of the level if that is enough."""
    seat = int(s.at_seat[k])
    sign, aim = (1, goal) if int(s.ours[seat]) == OURS else (-1, 1 - goal)
    if sign * value > int(s.at_value[k]):
        s.at_value[k] = sign * value
        s.at_best[k] = m
    enough = int(s.at_value[k]) >= aim
    if not enough and int(s.at_next[k]) < int(s.at_count[k]):
        return OPEN
    if enough:
        s.history[seat, m] += 1 << max(0, 10 - (k >> 1))
        if k == 0:
            s.best = m
    value = sign * int(s.at_value[k])
    if value >= goal:
        s.at_least[k] = value
    else:
        s.at_most[k] = value
    key, generation = int(s.at_key[k]), int(s.generation)
    at = place_of(s, key, generation)
    s.table[at, 0] = key
    bounds = (int(s.at_most[k]) + FAR) << BOUND_BITS | int(s.at_least[k]) + FAR
    s.table[at, 1] = generation << 48 | int(s.at_best[k]) << 2 * BOUND_BITS | bounds
    return value


# ---------------------------------------------------------------- the search


@jit
def reaches(s: Record, goal: int) -> int:
    """A bound on the value of level 0: from below if it is `goal` or more, else from above."""
    k = 0
    value = enter(s, 0, goal)
    while int(s.nodes) <= int(s.limit):
        if value == OPEN:
            value = make_next(s, k)
            k += 1
            if value == OPEN:
                value = enter(s, k, goal)
        elif k == 0:
            break
        else:
            k -= 1
            value = conclude(s, k, take_back(s, k), value, goal)
    return value


@jit
def value_of(s: Record, guess: int) -> int:
    """The value of level 0 (MTD(f)); the better the guess the sooner."""
    least, most, value = -FAR, FAR, guess
    while least < most and int(s.nodes) <= int(s.limit):
        goal = value + 1 if value == least else value
        value = reaches(s, goal)
        if value >= goal:
            least = value
        else:
            most = value
    return value
