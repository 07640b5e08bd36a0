"""What a seat may know, as arrays: observation, history, state, mask, and the redacted record.

Everything is seat-relative: index 0 is the observer, then clockwise. The parts of the observation
and their order are those of `observation_layout`; the functions that write them go through the
parts in the same order, with a running offset. Several parts are gathered in one integer and
written by one store, which may reach into the parts behind: these come later.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import prod
from typing import Any

import numpy as np

from domino_env.compiled import inlined, jit, store_bits, store_pairs, store_word
from domino_env.engine import (
    drawable,
    may_draw,
    may_play_both,
    plays,
)
from domino_env.rules import CHOICES, Rules
from domino_env.state import (
    MAX_SEATS,
    PLAYING,
    Record,
    longest_round,
)

AnyRules = str | Mapping[str, Any] | Rules
Layout = dict[str, tuple[slice, tuple[int, ...]]]

# The switches that change play, as the part `rules` shows them: choices as one-hot groups.
SWITCH_CHOICES = ("draw", "lead", "next_lead", "score")
SWITCH_VALUES = ("set", "seats", "teams", "hand_size", "reserve", "double_pair", "lead_tile")
SWITCH_VALUES += ("blank_double", "blank_double_when", "opening", "opening_mode")
SWITCH_VALUES += ("block_score", "team_block", "episode", "reward")
RULES_SIZE = len(SWITCH_VALUES) + sum(len(CHOICES[name]) for name in SWITCH_CHOICES)

# WORDS[b]: the 8 bits of b as the 8 bytes of an integer
WORDS = np.unpackbits(np.arange(256, dtype=np.uint8)[:, None], axis=1, bitorder="little")
WORDS = WORDS.view("<i8").ravel()

OWN_TILE, PLAY, BOTH, DRAW, PASS = 1, 2, 3, 4, 5  # kinds of `history`
LEFT_END, RIGHT_END = 1, 2


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


def observation_layout(rules: AnyRules, observe_as: int | None = None) -> Layout:
    """The parts of the observation, `{name: (slice, shape)}`, in their order (uint8 [D]).

    P is `rules.seats`, or `observe_as`: absent seats are zero. `rules` is what `Rules.of` takes.
    """
    rules = Rules.of(rules)
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


def history_length(rules: AnyRules) -> int:
    """Rows of `history`: the longest that a round of these rules can need."""
    rules = Rules.of(rules)
    return rules.hand_size + sum(longest_round(rules))


# ---------------------------------------------------------------- observation and state


@inlined
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


@inlined
def put_bits(out: np.ndarray, row: int, offset: int, bits: int, size: int) -> int:
    """Unpack the lowest `size` bits to bytes at `offset`; returns the offset behind them."""
    for k in range(0, size, 32):
        store_bits(out, row, offset + k, bits >> k)
    return offset + size


@jit
def turned(fields: int, width: int, observer: int, seats: int) -> int:
    """Fields of `width` bits, one a seat, in the order in which `observer` counts the seats."""
    fields &= (1 << width * seats) - 1
    first = width * observer
    behind = fields & (1 << first) - 1
    return fields >> first | behind << width * seats - first


@jit
def as_word(values: np.ndarray) -> int:
    """The four bytes of a field of a record as one integer, the lowest first."""
    low = int(values[0]) & 255 | (int(values[1]) & 255) << 8
    return low | (int(values[2]) & 255) << 16 | (int(values[3]) & 255) << 24


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


@inlined
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


@inlined
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
    lacks |= turned(lacks_of_all(g, pips), pips, seat, seats) << 1
    o = put_bits(out, row, o, lacks, 1 + places * pips)
    o = put_bits(out, row, o, int(g.not_dealt), tiles)
    turn = place_bit(int(g.leader), seat, seats)
    if int(g.end) == PLAYING:
        turn |= place_bit(int(g.seat), seat, seats) << places
    o = put_bits(out, row, o, turn, 2 * places)
    o = put_match(g, seat, places, out, row, o)
    put_rules(g, out, row, o)


@jit
def lacks_of_all(g: Record, pips: int) -> int:
    """`lacks` as one integer, `pips` bits a seat."""
    both = int(g.lacks[0]) | int(g.lacks[1]) << pips
    return both | (int(g.lacks[2]) | int(g.lacks[3]) << pips) << 2 * pips


@inlined
def put_counts(g: Record, seat: int, places: int, out: np.ndarray, row: int, offset: int) -> int:
    """The parts `hand_size`, `stock`, `draws` and `passes`."""
    seats, stock = int(g.seats), int(g.stock) - int(g.drawn)
    sizes = turned(as_word(g.hand_size), 8, seat, seats)
    store_word(out, row, offset, sizes | (stock | drawable(g) << 8) << 8 * places)
    draws = turned(as_word(g.draws), 8, seat, seats)
    passes = turned(as_word(g.passes), 8, seat, seats)
    store_word(out, row, offset + places + 2, draws | passes << 8 * places)
    return offset + 3 * places + 2


@jit
def capped(points: np.ndarray) -> int:
    """Points by side, up to 255, as the bytes of one integer."""
    low = min(int(points[0]), 255) | min(int(points[1]), 255) << 8
    return low | min(int(points[2]), 255) << 16 | min(int(points[3]), 255) << 24


@jit
def by_side(g: Record, sides: int, seat: int) -> int:
    """A byte a side as a byte a place, a team's for both partners."""
    if int(g.teams):
        sides = sides & 0xFFFF | sides << 16
    return turned(sides, 8, seat, int(g.seats))


@inlined
def put_match(g: Record, seat: int, places: int, out: np.ndarray, row: int, offset: int) -> int:
    """The parts `score`, `open`, `aside` (a team's for both partners) and `match`."""
    score = by_side(g, capped(g.scores), seat)
    store_word(out, row, offset, score | by_side(g, as_word(g.opened), seat) << 8 * places)
    match = min(int(g.target), 255) | min(int(g.round_number), 255) << 8
    aside = by_side(g, capped(g.aside), seat)
    store_word(out, row, offset + 2 * places, aside | match << 8 * places)
    return offset + 3 * places + 2


@inlined
def put_rules(g: Record, out: np.ndarray, row: int, offset: int) -> None:
    """The part `rules`, in the order of SWITCH_CHOICES and SWITCH_VALUES; the row ends with it."""
    choices = 1 << int(g.draw) | 8 << int(g.lead) | 128 << int(g.next_lead) | 1024 << int(g.score)
    store_word(out, row, offset, WORDS[choices & 255])
    store_word(out, row, offset + 8, WORDS[choices >> 8])
    blank_double, opening = min(int(g.blank_double), 255), min(int(g.opening), 255)
    word = int(g.set) | int(g.seats) << 8 | int(g.teams) << 16 | int(g.deal_size) << 24
    word |= int(g.reserve) << 32 | int(g.double_pair) << 40 | int(g.lead_tile) << 48
    store_word(out, row, offset + 13, word)
    word = blank_double | int(g.blank_double_when) << 8 | opening << 16
    word |= int(g.opening_mode) << 24 | int(g.block_score) << 32 | int(g.team_block) << 40
    store_word(out, row, offset + 20, word | int(g.episode) << 48 | int(g.reward) << 56)


# ---------------------------------------------------------------- mask, history, redaction


@inlined
def mask(g: Record, out: np.ndarray, row: int) -> None:
    """Write the legal actions of the seat to move to `out[row]` (int8 [., A]); zero at the end."""
    tiles = int(g.tiles)
    if int(g.end) != PLAYING:
        out[row] = 0
        return
    left, right = plays(g)
    if tiles < 16:
        for t in range(tiles):
            out[row, 2 * t] = left >> t & 1
            out[row, 2 * t + 1] = right >> t & 1
    else:
        for k in range(0, tiles - 16, 16):
            put_16_tiles(out, row, k, left, right)
        last = tiles - 16  # not beyond the row
        put_16_tiles(out, row, last, left, right)
    drawing = 0
    if left | right == 0:
        drawing = 1 if may_draw(g) else 2
    out[row, 2 * tiles] = drawing & 1
    out[row, 2 * tiles + 1] = drawing >> 1
    out[row, 2 * tiles + 2] = 1 if may_play_both(g) else 0


@inlined
def put_16_tiles(out: np.ndarray, row: int, first: int, left: int, right: int) -> None:
    """The part of the mask of 16 tiles that may go left, or right."""
    bits = left >> first & 0xFFFF | (right >> first & 0xFFFF) << 16
    store_pairs(out, row, 2 * first, bits)


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
    games: np.ndarray, seats: np.ndarray, places: int, whole: bool, out: np.ndarray
) -> None:
    """`observe`, or `state` where `whole`, of games [B] from seats int64 [B] to out [B, D]."""
    for i in range(len(games)):
        if whole:
            state(games[i], seats[i], places, out, i)
        else:
            observe(games[i], seats[i], places, out, i)


@jit
def mask_each(games: np.ndarray, out: np.ndarray) -> None:
    """`mask` of games [B] to out int8 [B, A]."""
    for i in range(len(games)):
        mask(games[i], out, i)


@jit
def history_each(games: np.ndarray, seats: np.ndarray, out: np.ndarray) -> None:
    """`history` of games [B] from seats int64 [B] to out uint8 [B, H, 4]."""
    for i in range(len(games)):
        history(games[i], seats[i], out, i)


@jit
def redact_each(games: np.ndarray, seats: np.ndarray) -> None:
    """`redact` games [B] for seats int64 [B], in place."""
    for i in range(len(games)):
        redact(games[i], seats[i])
