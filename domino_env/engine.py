"""The engine: one game is one record, and the rules are small functions on it.

`GAME` holds all of a game: the deal, the table, what has happened, scores, rules, random state.
The functions take a record `g` of an array of games and change it in place; each follows the
section of RULES.md that its docstring names. Compiled by Numba, or plain Python under
`NUMBA_DISABLE_JIT=1`, with the same results: fields are cast to `int` before arithmetic, sets of
tiles are signed 64-bit integers (bit t is tile t).

An action is `2*tile + side` (side 0 left, 1 right), then `2T` draw, `2T + 1` pass, `2T + 2` both.
"""

from __future__ import annotations

import numpy as np

from domino_env.compiled import highest, inlined, jit, lowest
from domino_env.scoring import settle
from domino_env.state import (
    BLOCKED,
    DRAW_NONE,
    DRAW_UNTIL,
    FREE,
    LEAD_HIGHEST,
    LEAD_LOWEST,
    LEAD_RANDOM,
    LEAD_SEAT,
    MAX_SEATS,
    NOBODY,
    NOT_OVER,
    OUT,
    PLAYING,
    SCORE_NONE,
    Record,
    random_below,
)
from domino_env.state import GAME as GAME
from domino_env.state import new_games as new_games
from domino_env.tiles import DOUBLE, DOUBLES, HIGH, LOW, SUIT

# ---------------------------------------------------------------- the deal (RULES.md 3, 4)


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
    g.boneyard[0] = 0
    for k in range(1, tiles):  # inside-out: tile k to place j, what lies there to place k
        j = random_below(g, k + 1)
        g.boneyard[k] = g.boneyard[j]
        g.boneyard[j] = k
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
    first = first_tile(g, int(g.hands[0]) | int(g.hands[1]) | int(g.hands[2]) | int(g.hands[3]))
    leader = 0
    for p in range(1, MAX_SEATS):
        leader += p * (int(g.hands[p]) >> first & 1)
    return leader


@jit
def first_tile(g: Record, tiles: int) -> int:
    """The tile of a set that `lead` puts first: its best double, else its best tile."""
    doubles = tiles & DOUBLES
    if int(g.lead) == LEAD_HIGHEST:
        return highest(doubles if doubles != 0 else tiles)
    if doubles > 1:
        return lowest(doubles & ~1)
    return lowest(tiles)  # 0-0 where it is the only double


# ---------------------------------------------------------------- what is legal (RULES.md 5)


@jit
def lead_is_forced(g: Record) -> bool:
    """Whether the leader of this round had to lead the tile that `lead` names."""
    return int(g.by_rule) == 1 and int(g.lead) <= LEAD_LOWEST and int(g.lead_tile) != FREE


@inlined
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


# ---------------------------------------------------------------- forced moves


@jit
def skip_forced(games: np.ndarray, i: int, scratch: np.ndarray) -> None:
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
