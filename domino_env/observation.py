"""What a seat may know, as arrays: observation, history, state, mask, and the redacted record.

Everything is seat-relative: index 0 is the observer, then clockwise. The parts of the observation
and their order are those of `observation_layout`; the functions that write them go through the
parts in the same order, with a running offset. Sets, of tiles, pips and seats, are unpacked 8 bits
at a time from a table, which may write up to 7 zero bytes into the part behind: it comes later.
"""

from __future__ import annotations

from math import prod

import numpy as np

from domino_env.compiled import jit, store_word
from domino_env.engine import (
    MATCH,
    MAX_SEATS,
    PLAYING,
    Record,
    drawable,
    longest_round,
    may_draw,
    may_play_both,
    plays,
)
from domino_env.rules import CHOICES, Rules

Layout = dict[str, tuple[slice, tuple[int, ...]]]

# The switches that change play, as the part `rules` shows them: choices as one-hot groups.
SWITCH_CHOICES = ("draw", "lead", "next_lead", "score")
SWITCH_VALUES = ("set", "seats", "teams", "hand_size", "reserve", "double_pair", "lead_tile")
SWITCH_VALUES += ("blank_double", "blank_double_when", "opening", "opening_mode")
SWITCH_VALUES += ("block_score", "team_block", "episode", "reward")
RULES_SIZE = len(SWITCH_VALUES) + sum(len(CHOICES[name]) for name in SWITCH_CHOICES)

OWN_TILE, PLAY, BOTH, DRAW, PASS = 1, 2, 3, 4, 5  # kinds of `history`
LEFT_END, RIGHT_END = 1, 2

_BITS = np.unpackbits(np.arange(256, dtype=np.uint8)[:, None], axis=1, bitorder="little")
WORDS = _BITS.view("<i8").ravel().copy()  # 8 bits as the 8 bytes of a word
# Four tiles that fit left (low bits of the index) and right (high bits), as 8 bytes of a mask.
SIDES = np.stack([_BITS[:, :4], _BITS[:, 4:]], axis=2).reshape(256, 8).view("<i8").ravel().copy()


# ---------------------------------------------------------------- layouts


def places_of(rules: Rules, observe_as: int | None) -> int:
    """P of the observation: the seats, or `observe_as` (at least the seats, at most 4)."""
    if observe_as is None:
        return rules.seats
    if isinstance(observe_as, bool) or not isinstance(observe_as, int | np.integer):
        raise ValueError(f"observe_as: {observe_as!r} is no integer, expected {rules.seats} to 4")
    if not rules.seats <= observe_as <= MAX_SEATS:
        raise ValueError(f"observe_as: found {observe_as}, expected {rules.seats} to {MAX_SEATS}")
    return int(observe_as)


def observation_layout(rules: Rules, observe_as: int | None = None) -> Layout:
    """The parts of the observation, `{name: (slice, shape)}`, in their order (uint8 [D]).

    P is `rules.seats`, or `observe_as`: absent seats are zero.
    """
    return _layout({"hand": (rules.tiles,)}, rules, places_of(rules, observe_as))


def state_layout(rules: Rules, observe_as: int | None = None) -> Layout:
    """The parts of `state`: all hands, each tile's place in the drawing order, then the rest."""
    places = places_of(rules, observe_as)
    return _layout({"hands": (places, rules.tiles), "boneyard": (rules.tiles,)}, rules, places)


def _layout(own: dict[str, tuple[int, ...]], rules: Rules, places: int) -> Layout:
    tiles, pips, seats = (rules.tiles,), (rules.set + 1,), (places,)
    shapes = own | {
        "placed": seats + tiles,
        "left": pips,
        "right": pips,
        "left_by": seats,
        "right_by": seats,
        "hand_size": seats,
        "stock": (2,),
        "draws": seats,
        "passes": seats,
        "drew": (1,),
        "lacks": seats + pips,
        "not_dealt": tiles,
        "leader": seats,
        "to_move": seats,
        "score": seats,
        "open": seats,
        "aside": seats,
        "match": (2,),
        "rules": (RULES_SIZE,),
    }
    layout: Layout = {}
    offset = 0
    for name, shape in shapes.items():
        layout[name] = (slice(offset, offset + prod(shape)), shape)
        offset += prod(shape)
    return layout


def layout_size(layout: Layout) -> int:
    """Length of the vector that a layout describes."""
    return max(part.stop for part, _ in layout.values())


def history_length(rules: Rules) -> int:
    """Rows of `history`: the longest that a round of these rules can need."""
    return rules.hand_size + sum(longest_round(rules))


# ---------------------------------------------------------------- observation and state


@jit
def observe(g: Record, seat: int, places: int, out: np.ndarray, row: int) -> None:
    """Write what `seat` may know to `out[row]` (uint8 [., D], contiguous)."""
    offset = put_bits(out, row, 0, int(g.hands[seat]), int(g.tiles))
    put_public(g, seat, places, out, row, offset)


@jit
def state(g: Record, seat: int, places: int, out: np.ndarray, row: int) -> None:
    """Write the whole game as `seat` would number it to `out[row]` (uint8, `state_layout`)."""
    tiles = int(g.tiles)
    offset = put_sets(g.hands, seat, int(g.seats), tiles, places, out, row, 0)
    for t in range(tiles):
        out[row, offset + t] = 0
    for k in range(int(g.drawn), int(g.stock)):
        out[row, offset + int(g.boneyard[k])] = 1 + k - int(g.drawn)
    put_public(g, seat, places, out, row, offset + tiles)


@jit
def put_bits(out: np.ndarray, row: int, offset: int, bits: int, size: int) -> int:
    """Unpack the lowest `size` bits to bytes at `offset`; returns the offset behind them."""
    for k in range(0, size, 8):
        store_word(out, row, offset + k, WORDS[bits >> k & 255])
    return offset + size


@jit
def absolute(observer: int, place: int, seats: int) -> int:
    """The seat at a place as `observer` counts: itself 0, then clockwise."""
    beyond = observer + place - seats
    return beyond + (seats & beyond >> 63)  # without a branch: seats are hard to predict


@jit
def relative(seat: int, observer: int, seats: int) -> int:
    """The place of `seat` as `observer` counts: itself 0, then clockwise."""
    before = seat - observer
    return before + (seats & before >> 63)


@jit
def place_bit(who: int, observer: int, seats: int) -> int:
    """The place of a seat as a one-hot set; empty where `who` is negative."""
    return 1 << relative(who, observer, seats) if who >= 0 else 0


@jit
def put_sets(
    sets: np.ndarray,
    seat: int,
    seats: int,
    tiles: int,
    places: int,
    out: np.ndarray,
    row: int,
    offset: int,
) -> int:
    """A tile set a place, zero for absent seats; returns the offset behind them."""
    for r in range(places):
        bits = int(sets[absolute(seat, r, seats)]) if r < seats else 0
        offset = put_bits(out, row, offset, bits, tiles)
    return offset


@jit
def put_public(g: Record, seat: int, places: int, out: np.ndarray, row: int, offset: int) -> None:
    """Everything behind the hand: `placed` to `rules`."""
    seats, tiles, pips = int(g.seats), int(g.tiles), int(g.set) + 1
    o = put_sets(g.placed, seat, seats, tiles, places, out, row, offset)
    table = 0
    if int(g.left) >= 0:
        table = 1 << int(g.left) | 1 << pips + int(g.right)
        table |= place_bit(int(g.left_by), seat, seats) << 2 * pips
        table |= place_bit(int(g.right_by), seat, seats) << 2 * pips + places
    o = put_bits(out, row, o, table, 2 * pips + 2 * places)
    o = put_counts(g, seat, places, out, row, o)
    lacks = 1 if int(g.turn_draws) > 0 else 0
    for r in range(seats):
        lacks |= int(g.lacks[absolute(seat, r, seats)]) << 1 + r * pips
    o = put_bits(out, row, o, lacks, 1 + places * pips)
    o = put_bits(out, row, o, int(g.not_dealt), tiles)
    turn = place_bit(int(g.leader), seat, seats)
    if int(g.end) == PLAYING:
        turn |= place_bit(int(g.seat), seat, seats) << places
    o = put_bits(out, row, o, turn, 2 * places)
    o = put_match(g, seat, places, out, row, o)
    put_rules(g, out, row, o)


@jit
def put_counts(g: Record, seat: int, places: int, out: np.ndarray, row: int, offset: int) -> int:
    """The parts `hand_size`, `stock`, `draws` and `passes`."""
    seats = int(g.seats)
    behind = offset + places
    out[row, behind] = int(g.stock) - int(g.drawn)
    out[row, behind + 1] = drawable(g)
    for r in range(places):
        p = absolute(seat, r, seats) if r < seats else -1
        out[row, offset + r] = g.hand_size[p] if p >= 0 else 0
        out[row, behind + 2 + r] = g.draws[p] if p >= 0 else 0
        out[row, behind + 2 + places + r] = g.passes[p] if p >= 0 else 0
    return offset + 3 * places + 2


@jit
def put_match(g: Record, seat: int, places: int, out: np.ndarray, row: int, offset: int) -> int:
    """The parts `score`, `open`, `aside` (a team's for both partners) and `match`."""
    seats = int(g.seats)
    for r in range(places):
        side = absolute(seat, r, seats) if r < seats else MAX_SEATS - 1
        if int(g.teams):
            side &= 1
        here = 1 if r < seats else 0
        out[row, offset + r] = here * min(int(g.scores[side]), 255)
        out[row, offset + places + r] = here * int(g.opened[side])
        out[row, offset + 2 * places + r] = here * min(int(g.aside[side]), 255)
    o = offset + 3 * places
    out[row, o] = min(int(g.target), 255) if int(g.episode) == MATCH else 0
    out[row, o + 1] = min(int(g.round_number), 255)
    return o + 2


@jit
def put_rules(g: Record, out: np.ndarray, row: int, offset: int) -> None:
    """The part `rules`, in the order of SWITCH_CHOICES and SWITCH_VALUES."""
    choices = 1 << int(g.draw) | 8 << int(g.lead) | 128 << int(g.next_lead) | 1024 << int(g.score)
    o = put_bits(out, row, offset, choices, 13)
    out[row, o] = g.set
    out[row, o + 1] = g.seats
    out[row, o + 2] = g.teams
    out[row, o + 3] = g.deal_size
    out[row, o + 4] = g.reserve
    out[row, o + 5] = g.double_pair
    out[row, o + 6] = g.lead_tile
    out[row, o + 7] = min(int(g.blank_double), 255)
    out[row, o + 8] = g.blank_double_when
    out[row, o + 9] = min(int(g.opening), 255)
    out[row, o + 10] = g.opening_mode
    out[row, o + 11] = g.block_score
    out[row, o + 12] = g.team_block
    out[row, o + 13] = g.episode
    out[row, o + 14] = g.reward


# ---------------------------------------------------------------- mask, history, redaction


@jit
def mask(g: Record, out: np.ndarray, row: int) -> None:
    """Write the legal actions of the seat to move to `out[row]` (int8 [., A]); zero at the end."""
    tiles = int(g.tiles)
    if int(g.end) != PLAYING:
        out[row] = 0
        return
    left, right = plays(g)
    k = 0
    while k + 4 <= tiles:  # four tiles, eight bytes at a time: a row has no room for more
        index = (left >> k & 15) | (right >> k & 15) << 4
        store_word(out, row, 2 * k, SIDES[index])
        k += 4
    while k < tiles:
        out[row, 2 * k] = left >> k & 1
        out[row, 2 * k + 1] = right >> k & 1
        k += 1
    drawing = 0
    if left | right == 0:
        drawing = 1 if may_draw(g) else 2
    out[row, 2 * tiles] = drawing & 1
    out[row, 2 * tiles + 1] = drawing >> 1
    out[row, 2 * tiles + 2] = 1 if may_play_both(g) else 0


@jit
def history(g: Record, seat: int, out: np.ndarray, row: int) -> None:
    """Write the events of the round as `seat` saw them to `out[row]` (uint8 [., H, 4])."""
    out[row] = 0
    seats, draw = int(g.seats), 2 * int(g.tiles)
    n = put_own_tiles(g, seat, out, row)
    drawn = 0
    for k in range(int(g.event_count)):
        event = int(g.events[k])
        action, who, passes = event & 127, event >> 7 & 3, event >> 9
        out[row, n, 1] = relative(who, seat, seats)
        if action < draw:
            out[row, n, 0] = PLAY
            out[row, n, 2] = 1 + (action >> 1)
            out[row, n, 3] = LEFT_END + (action & 1)
        elif action == draw:
            out[row, n, 0] = DRAW
            out[row, n, 2] = 1 + int(g.boneyard[drawn]) if who == seat else 0
            drawn += 1
        else:
            out[row, n, 0] = BOTH
        n += 1
        first = who if action == draw else who + 1
        for j in range(passes):
            out[row, n, 0] = PASS
            out[row, n, 1] = relative((first + j) % seats, seat, seats)
            n += 1


@jit
def put_own_tiles(g: Record, seat: int, out: np.ndarray, row: int) -> int:
    """The tiles dealt to `seat`, lowest first; returns how many."""
    own = int(g.hands[seat]) | int(g.placed[seat])
    drawn = 0
    for k in range(int(g.event_count)):
        event = int(g.events[k])
        if event & 127 == 2 * int(g.tiles):
            if event >> 7 & 3 == seat:
                own &= ~(1 << int(g.boneyard[drawn]))
            drawn += 1
    n = 0
    for t in range(int(g.tiles)):
        if own >> t & 1:
            out[row, n, 0] = OWN_TILE
            out[row, n, 2] = 1 + t
            n += 1
    return n


@jit
def redact(g: Record, seat: int) -> None:
    """Remove from a record, in place, everything that is hidden from `seat`.

    Random state 0; other hands 0, their sizes kept; boneyard slots -1 unless the seat drew that
    tile itself or it is certainly the tile that was played right after it was drawn. The pips of
    hands at the end of a round, and whether all moves so far were forced, go too.
    """
    for p in range(MAX_SEATS):
        g.random[p] = 0
        g.pips[p] = 0
        if p != seat:
            g.hands[p] = 0
    g.asked = 0
    draw = 2 * int(g.tiles)
    drawn = 0
    for k in range(int(g.event_count)):
        event = int(g.events[k])
        if event & 127 == draw:
            played = -1
            if k + 1 < int(g.event_count) and event >> 9 == 0:
                played = int(g.events[k + 1]) & 127
            if event >> 7 & 3 != seat:
                g.boneyard[drawn] = played >> 1 if 0 <= played < draw else -1
            drawn += 1
    for k in range(drawn, int(g.stock)):
        g.boneyard[k] = -1


# ---------------------------------------------------------------- for many games, from Python


@jit
def observe_each(
    games: np.recarray, seats: np.ndarray, places: int, whole: bool, out: np.ndarray
) -> None:
    """`observe`, or `state` where `whole`, of games [B] from seats int64 [B] to out [B, D]."""
    for i in range(len(games)):
        if whole:
            state(games[i], seats[i], places, out, i)
        else:
            observe(games[i], seats[i], places, out, i)


@jit
def mask_each(games: np.recarray, out: np.ndarray) -> None:
    """`mask` of games [B] to out int8 [B, A]."""
    for i in range(len(games)):
        mask(games[i], out, i)


@jit
def history_each(games: np.recarray, seats: np.ndarray, out: np.ndarray) -> None:
    """`history` of games [B] from seats int64 [B] to out uint8 [B, H, 4]."""
    for i in range(len(games)):
        history(games[i], seats[i], out, i)


@jit
def redact_each(games: np.recarray, seats: np.ndarray) -> None:
    """`redact` games [B] for seats int64 [B], in place."""
    for i in range(len(games)):
        redact(games[i], seats[i])
