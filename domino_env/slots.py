"""What a seat knows, as tiles and slots: the first part of worlds.py, which says why.

A *slot* is a place of the shuffle: in a hand as dealt, or in the boneyard. Slots of one seat that
may hold the same tiles are a *group*. `know` finds the groups, `settle_tiles` lays the tiles that
have one place left, `order_tiles` puts the others into the order in which worlds.py lays them.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from domino_env.compiled import jit, lowest
from domino_env.engine import (
    blocked,
    first_tile,
    tiles_before,
)
from domino_env.state import (
    BLOCKED,
    FREE,
    LEAD_LOWEST,
    MAX_SEATS,
    NOBODY,
    PLAYING,
    Record,
)
from domino_env.tiles import DOUBLE, HIGH, LOW, SUIT

MAX_GROUPS = 56  # the boneyard, the hands of others, and each tile that they drew: 55 at most
LED, FITS = 1, 2  # what must have come true when all tiles are laid, as flags

PLAN = np.dtype(
    [
        ("unseen", "i8"),  # set of all tiles that the seat has not had in hand
        ("table", "i8"),  # set of all tiles on the table
        ("known_dealt", "i8", MAX_SEATS),  # sets of tiles known to have been dealt to each seat
        ("goal", "i8"),  # the flags that must be up in the end
        ("lead_tiles", "i8"),  # set of tiles that bear on LED
        ("fitting", "i8"),  # set of tiles that bear on FITS
        ("leader", "i8"),
        ("settled_ways", "f8"),  # to lay the tiles that have only one place left
        ("groups", "i8"),
        # of each group
        ("seat", "i8", MAX_GROUPS),  # NOBODY for the boneyard that is not drawn yet
        ("dealt", "i8", MAX_GROUPS),  # 1 for the slots of a hand as dealt
        ("allowed", "i8", MAX_GROUPS),  # set of tiles
        ("slots", "i8", MAX_GROUPS),
        ("position", "i8", MAX_GROUPS),  # in the boneyard, of a tile that was drawn; else -1
        ("free", "i8", MAX_GROUPS),  # slots that are free while tiles are being laid
        # of the tiles to lay
        ("tiles", "i8"),  # how many
        ("layers", "i8"),  # the first of them, which do not fit everywhere: one a layer of states
        ("order", "i8", MAX_GROUPS),  # the tiles
        ("rank", "i8", MAX_GROUPS),  # what they are sorted by
        # of each layer, and the end
        ("first", "i8", MAX_GROUPS + 2),  # the first state
        ("kind", "i8", (MAX_GROUPS, MAX_GROUPS)),  # the class of each group: its first group
        ("stride", "i8", (MAX_GROUPS, MAX_GROUPS)),  # what one free slot of it adds to a key
    ],
    align=True,
)
Plan = Any  # one element of a record array of dtype PLAN


# ---------------------------------------------------------------- which slot may hold which tile


@jit
def know(g: Record, seat: int, plan: Plan) -> None:
    """Set down all slots that `seat` has not seen, and the tiles that each may hold."""
    own = int(g.hands[seat]) | int(g.placed[seat])
    unseen = ((1 << int(g.tiles)) - 1) & ~own
    plan.unseen = unseen
    plan.leader = g.leader
    plan.groups = 0
    add_group(plan, NOBODY, 0, unseen, int(g.stock) - int(g.drawn), NOBODY)
    for p in range(MAX_SEATS):
        plan.known_dealt[p] = 0
        if p != seat:
            g.hands[p] = 0
            if p < int(g.seats):
                add_group(plan, p, 1, unseen & ~int(g.not_dealt), int(g.deal_size), NOBODY)
    plan.known_dealt[seat] = own
    read_events(g, seat, plan)
    for n in range(int(plan.groups)):
        placed = int(g.placed[plan.seat[n]]) if int(plan.seat[n]) >= 0 else 0
        plan.allowed[n] = int(plan.allowed[n]) & (placed | ~int(plan.table))


@jit
def add_group(plan: Plan, seat: int, dealt: int, allowed: int, slots: int, position: int) -> None:
    """Add a group of slots."""
    n = int(plan.groups)
    plan.seat[n] = seat
    plan.dealt[n] = dealt
    plan.allowed[n] = allowed
    plan.slots[n] = slots
    plan.position[n] = position
    plan.groups = n + 1


@jit
def read_events(g: Record, seat: int, plan: Plan) -> None:
    """Go through the round: which slots were drawn when, and what draws and passes prove."""
    draw = 2 * int(g.tiles)
    left, right, drawn = NOBODY, NOBODY, 0
    plan.table = 0
    for k in range(int(g.event_count)):
        event = int(g.events[k])
        action, first = event & 127, event >> 7 & 3
        if action == draw:
            prove_lacks(plan, first, left, right)
            take_slot(g, seat, plan, first, drawn)
            drawn += 1
        elif action > draw:
            plan.table = int(plan.table) | 1 << int(DOUBLE[left]) | 1 << int(DOUBLE[right])
        else:
            plan.table = int(plan.table) | 1 << (action >> 1)
            left, right = ends_after(left, right, action >> 1, action & 1)
        if action != draw:
            first += 1
        for j in range(event >> 9):
            prove_lacks(plan, (first + j) % int(g.seats), left, right)
    if int(g.end) == BLOCKED:
        for p in range(int(g.seats)):
            prove_lacks(plan, p, left, right)


@jit
def take_slot(g: Record, seat: int, plan: Plan, who: int, position: int) -> None:
    """A tile is drawn: a new slot, which holds no tile of the table, or the seat's own tile."""
    if who != seat:
        add_group(plan, who, 0, int(plan.unseen) & ~int(plan.table), 1, position)
    else:
        drawn = 1 << int(g.boneyard[position])
        plan.known_dealt[seat] = int(plan.known_dealt[seat]) & ~drawn


@jit
def ends_after(left: int, right: int, tile: int, side: int) -> tuple[int, int]:
    """The ends of the table after a tile is put at a side."""
    if left < 0:
        return int(LOW[tile]), int(HIGH[tile])
    halves = int(LOW[tile]) + int(HIGH[tile])
    return (left, halves - right) if side else (halves - left, right)


@jit
def prove_lacks(plan: Plan, seat: int, left: int, right: int) -> None:
    """A seat holds no tile that fits: of those, its slots hold only what is on the table."""
    fitting = (int(SUIT[left]) | int(SUIT[right])) & ~int(plan.table)
    for n in range(int(plan.groups)):
        if int(plan.seat[n]) == seat:
            plan.allowed[n] = int(plan.allowed[n]) & ~fitting


# ---------------------------------------------------------------- tiles with one place left


@jit
def settle_tiles(g: Record, plan: Plan) -> int:
    """Lay all tiles that have one place left, into g; returns the set of the others."""
    tiles, before = int(plan.unseen), 0
    plan.settled_ways = 1.0
    while before != tiles:
        before = tiles
        rest = tiles
        while rest != 0:
            t = lowest(rest)
            rest &= rest - 1
            n = only_group(plan, t)
            if n >= 0:
                tiles &= ~(1 << t)
                settle(g, plan, n, t)
    return tiles


@jit
def only_group(plan: Plan, tile: int) -> int:
    """The only group with a slot for a tile; -1 if there are several, or it is the boneyard."""
    only = -1
    for n in range(int(plan.groups)):
        if int(plan.slots[n]) > 0 and int(plan.allowed[n]) >> tile & 1:
            if only >= 0:
                return -1
            only = n
    return only if only >= 0 and int(plan.seat[only]) >= 0 else -1


@jit
def settle(g: Record, plan: Plan, n: int, tile: int) -> None:
    """Lay a tile into group n for good."""
    put(g, plan, n, tile)
    if int(plan.dealt[n]):
        seat = int(plan.seat[n])
        plan.known_dealt[seat] = int(plan.known_dealt[seat]) | 1 << tile
    plan.settled_ways *= plan.slots[n]
    plan.slots[n] -= 1


@jit
def put(g: Record, plan: Plan, n: int, tile: int) -> None:
    """Put a tile into g as lying in group n, which is not the boneyard that lies undrawn."""
    if not int(plan.table) >> tile & 1:
        seat = int(plan.seat[n])
        g.hands[seat] = int(g.hands[seat]) | 1 << tile
    if not int(plan.dealt[n]):
        g.boneyard[plan.position[n]] = tile


@jit
def drop_full_groups(plan: Plan) -> None:
    """Forget the groups without a free slot."""
    groups = int(plan.groups)
    plan.groups = 0
    for n in range(groups):
        if int(plan.slots[n]) > 0:
            seat, dealt, allowed = int(plan.seat[n]), int(plan.dealt[n]), int(plan.allowed[n])
            add_group(plan, seat, dealt, allowed, int(plan.slots[n]), int(plan.position[n]))


# ---------------------------------------------------------------- the order of the others


@jit
def order_tiles(g: Record, plan: Plan, tiles: int) -> None:
    """Put the tiles to lay into order: those that bear on LED, then the narrowest first."""
    plan.goal = 0
    plan.lead_tiles = tiles & tiles_before_known(g, plan)
    plan.fitting = 0
    if int(g.end) == PLAYING and blocked(g):  # as far as the seat knows the hands
        plan.goal = int(plan.goal) | FITS
        plan.fitting = tiles & ~int(plan.table) & (int(SUIT[g.left]) | int(SUIT[g.right]))
    plan.tiles = 0
    plan.layers = 0
    rest = int(plan.lead_tiles)
    while rest != 0:
        t = first_tile(g, rest)
        rest &= ~(1 << t)
        insert_tile(plan, t, int(plan.tiles) - MAX_GROUPS, True)
    rest = tiles & ~int(plan.lead_tiles)
    while rest != 0:
        t = lowest(rest)
        rest &= rest - 1
        slots, others = slots_for(plan, t)
        fits = int(plan.fitting) >> t & 1
        insert_tile(plan, t, 2 * slots - fits, others > 0 or fits == 1)


@jit
def tiles_before_known(g: Record, plan: Plan) -> int:
    """The tiles that `lead` puts before all that are known to have been dealt.

    Empty where the lead tells nothing, or all that it told is in `not_dealt`. Sets the goal LED if
    the leader must have been dealt one of them.
    """
    forced = int(g.lead_tile) != FREE and int(g.event_count) > 0
    if int(g.by_rule) == 0 or int(g.lead) > LEAD_LOWEST or forced:
        return 0
    known = 0
    for p in range(MAX_SEATS):
        known |= int(plan.known_dealt[p])
    first = first_tile(g, known)
    if not int(plan.known_dealt[g.leader]) >> first & 1:
        plan.goal = LED
    return tiles_before(g, first)


@jit
def slots_for(plan: Plan, tile: int) -> tuple[int, int]:
    """The free slots that may hold a tile, and those that may not."""
    slots, others = 0, 0
    for n in range(int(plan.groups)):
        if int(plan.allowed[n]) >> tile & 1:
            slots += int(plan.slots[n])
        else:
            others += int(plan.slots[n])
    return slots, others


@jit
def insert_tile(plan: Plan, tile: int, rank: int, layer: bool) -> None:
    """Insert a tile into the order, behind those of its rank."""
    k = int(plan.tiles)
    while k > 0 and int(plan.rank[k - 1]) > rank:
        plan.order[k] = plan.order[k - 1]
        plan.rank[k] = plan.rank[k - 1]
        k -= 1
    plan.order[k] = tile
    plan.rank[k] = rank
    plan.tiles += 1
    if layer:
        plan.layers += 1
