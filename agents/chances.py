"""Where the unseen tiles are, near enough and fast: what the agent `expert` reckons with.

A seat knows of every slot of the shuffle which tiles may lie in it (`domino_env.slots`). Tiles that
have one place left are laid. Each of the others gets a chance of each group of slots in proportion
to a weight of the group, and the weights are balanced until every group expects as many tiles as
it has slots (Sinkhorn and Knopp, 1967). Where two groups are left, as with two seats before anyone
draws, that is exact; else it is within a few hundredths of `worlds.belief`, which counts all deals.
What several slots together prove (flags of `domino_env.slots`) is left out.

`T` tiles; `N` groups of slots.
"""

from __future__ import annotations

import numpy as np

from domino_env.compiled import jit, lowest
from domino_env.slots import MAX_GROUPS, Plan, know, settle_tiles
from domino_env.state import (
    MAX_SEATS,
    Record,
)

BONEYARD = MAX_SEATS  # the row of `chance` behind the seats
ROUNDS = 12  # of balancing at most
CLOSE = 3e-3  # a group expects as many tiles as it has slots, within that


@jit
def count_bits(bits: int) -> int:
    """How many tiles or pips are in a set."""
    bits -= bits >> 1 & 0x5555555555555555
    bits = (bits & 0x3333333333333333) + (bits >> 2 & 0x3333333333333333)
    bits = bits + (bits >> 4) & 0x0F0F0F0F0F0F0F0F
    bits += bits >> 8
    bits += bits >> 16
    return bits + (bits >> 32) & 127


@jit
def none_chance(size: float, held: int, fitting: int) -> float:
    """The chance that none of `fitting` tiles out of `size` is among `held` drawn from them."""
    chance = 1.0
    for j in range(fitting):
        if size - j <= held:
            return 0.0
        chance *= 1 - held / (size - j)
    return chance


@jit
def find_chances(g: Record, seat: int, plan: Plan, chance: np.ndarray) -> None:
    """Write the chance of every tile to lie in each hand, and in the boneyard, as `seat` knows it.

    `chance` is float64 [5, T]: a row a seat, the boneyard last; 0 for tiles that `seat` sees.
    `g`, redacted, is used up: its hands get the tiles that are known for certain. `plan` is room.
    """
    know(g, seat, plan)
    rest = settle_tiles(g, plan)
    merge_groups(plan)
    weight = np.empty(MAX_GROUPS)
    first_weights(plan, rest, weight)
    balance(plan, rest, weight)
    chance[:] = 0.0
    share_out(plan, rest & ~int(plan.table), weight, chance)
    for p in range(MAX_SEATS):
        certain = int(g.hands[p]) if p != seat else 0
        while certain != 0:
            chance[p, lowest(certain)] = 1.0
            certain &= certain - 1


@jit
def merge_groups(plan: Plan) -> None:
    """Keep the groups with a free slot, those of one seat that may hold the same tiles as one."""
    groups = int(plan.groups)
    kept = 0
    for n in range(groups):
        seat, allowed, slots = int(plan.seat[n]), int(plan.allowed[n]), int(plan.slots[n])
        m = 0
        while m < kept and (int(plan.seat[m]) != seat or int(plan.allowed[m]) != allowed):
            m += 1
        if m < kept:
            plan.slots[m] += slots
        elif slots > 0:
            plan.seat[kept], plan.allowed[kept], plan.slots[kept] = seat, allowed, slots
            kept += 1
    plan.groups = kept


@jit
def first_weights(plan: Plan, tiles: int, weight: np.ndarray) -> None:
    """The free slots of each group, less the tiles that can lie nowhere else: exact for two."""
    for n in range(int(plan.groups)):
        elsewhere = 0
        for m in range(int(plan.groups)):
            if m != n:
                elsewhere |= int(plan.allowed[m])
        only = count_bits(tiles & int(plan.allowed[n]) & ~elsewhere)
        weight[n] = max(int(plan.slots[n]) - only, 1e-6)


@jit
def balance(plan: Plan, tiles: int, weight: np.ndarray) -> None:
    """Scale the weights [N] until every group expects as many tiles as it has slots."""
    expected = np.empty(MAX_GROUPS)
    for _ in range(ROUNDS):
        expected[: int(plan.groups)] = 0.0
        rest = tiles
        while rest != 0:
            t = lowest(rest)
            rest &= rest - 1
            total = total_weight(plan, weight, t)
            for n in range(int(plan.groups)):
                if int(plan.allowed[n]) >> t & 1:
                    expected[n] += weight[n] / total
        off = 0.0
        for n in range(int(plan.groups)):
            slots = int(plan.slots[n])
            off = max(off, abs(expected[n] - slots))
            weight[n] *= slots / max(expected[n], 1e-9)
        if off < CLOSE:
            break


@jit
def total_weight(plan: Plan, weight: np.ndarray, tile: int) -> float:
    """The weights [N] of all groups that may hold a tile."""
    total = 1e-300
    for n in range(int(plan.groups)):
        if int(plan.allowed[n]) >> tile & 1:
            total += weight[n]
    return total


@jit
def share_out(plan: Plan, tiles: int, weight: np.ndarray, chance: np.ndarray) -> None:
    """Add the chances of some tiles by the weights [N] of the groups to `chance` [5, T]."""
    while tiles != 0:
        t = lowest(tiles)
        tiles &= tiles - 1
        total = total_weight(plan, weight, t)
        for n in range(int(plan.groups)):
            if int(plan.allowed[n]) >> t & 1:
                row = int(plan.seat[n]) if int(plan.seat[n]) >= 0 else BONEYARD
                chance[row, t] += weight[n] / total


@jit
def none_of(chance: np.ndarray, seat: int, tiles: int, free: int) -> float:
    """The chance that a seat holds none of some tiles; `free` of its tiles are not certain.

    As if those were drawn from as many equal tiles as give the average of some tiles its chance.
    """
    expected, count = 0.0, 0
    while tiles != 0:
        share = chance[seat, lowest(tiles)]
        tiles &= tiles - 1
        if share == 1.0:
            return 0.0
        if share > 0:
            expected += share
            count += 1
    return none_chance(free * count / expected, free, count) if count > 0 else 1.0
