"""The tree of a small game in sequence form, as flat arrays; the compiled half of `SmallGame`.

Every deal is played out in every way, by the engine. What is kept is not the positions but, of each
finished round, the last *sequence* of each seat (von Stengel 1996, "Efficient computation of
behavior strategies"): the information set in which the seat chose last and what it chose, which
with perfect recall stand for all that it chose before. That is all that values need.

Letters: `I` information sets, `S` sequences, `Z` finished rounds, `P` seats, `M` places of a table.

The sequences 0 to P-1 are those of seats that have not chosen yet. Behind them come the legal
actions of each information set, lowest first, the sets in the order in which they were found: a set
comes after those that its seat has been asked in before, so one loop forwards carries what depends
on the past, and one loop backwards what depends on the future.

A tile is drawn by chance when it is drawn, and the order of those behind it is left open: a
position stands for as many deals as there are such orders.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from domino_env.compiled import jit, lowest
from domino_env.engine import (
    begin,
    drawable,
    may_draw,
    may_play_both,
    move,
    plays,
)
from domino_env.observation import history
from domino_env.state import (
    NOBODY,
    NOT_OVER,
    UNIT,
    Record,
)

FREE = -1
ROW_BITS = 13  # of a row of `history`: kind 3, seat 2, end 2, tile 6
NODES, INFOSETS, ROUNDS, PREFIXES = 0, 1, 2, 3  # places of `Tree.count`
OLD_NODES, OLD_ROUNDS = 4, 5  # the same before the deal that is being walked
PER_INFOSET, PER_ROUND = ("owner", "before", "deal"), ("reached", "payoff")  # arrays of `Tree`


class Tree(NamedTuple):
    """The arrays of a small game. They are longer than what is in them until it is built."""

    edges: np.ndarray  # int64 [M], M a power of two: prefix << ROW_BITS | row of history, or FREE
    leads_to: np.ndarray  # int32 [M], the prefix of a history that the edge makes longer
    infoset: np.ndarray  # int32 [M / 2], of each prefix; NOBODY where its seat has no choice
    owner: np.ndarray  # int8 [I], the seat that chooses
    before: np.ndarray  # int32 [I], the sequence of that seat that leads there
    first: np.ndarray  # int32 [I + 1], the first of its sequences
    deal: np.ndarray  # int32 [I], the deal in which it was found
    reached: np.ndarray  # int32 [Z, P], the last sequence of each seat
    payoff: np.ndarray  # float64 [Z, P], the reward of each seat times the chance of the deals
    count: np.ndarray  # int64 [6], how many NODES, INFOSETS, ROUNDS, PREFIXES


class Path(NamedTuple):
    """The way from a deal to the position that is looked at, one level a move."""

    games: np.recarray  # [levels] of GAME
    sequence: np.ndarray  # int32 [levels, P], the last sequence of each seat
    base: np.ndarray  # int32 [levels], the sequence of the first option; NOBODY: chance draws
    options: np.ndarray  # int32 [levels, A], actions, or the tiles that may be drawn
    size: np.ndarray  # int32 [levels], how many options
    taken: np.ndarray  # int32 [levels], how many of them have been looked at
    history: np.ndarray  # uint8 [1, H, 4]


# ---------------------------------------------------------------- information sets


@jit
def place_of(edges: np.ndarray, key: int) -> int:
    """Where an edge is in the table, or where it would go."""
    last = len(edges) - 1
    at = (key % 2147483647) * 1103515245 >> 20 & last
    while edges[at] != FREE and edges[at] != key:
        at = at + 1 & last
    return at


@jit
def prefix_of(tree: Tree, seat: int, rows: np.ndarray, i: int, add: bool) -> int:
    """The number of the history rows[i] (uint8 [., H, 4]) of a seat; NOBODY if it is not there."""
    prefix = seat
    for k in range(rows.shape[1]):
        kind = int(rows[i, k, 0])
        if kind == 0:
            break
        row = kind | int(rows[i, k, 1]) << 3 | int(rows[i, k, 3]) << 5 | int(rows[i, k, 2]) << 7
        key = prefix << ROW_BITS | row
        at = place_of(tree.edges, key)
        if tree.edges[at] == FREE:
            if not add:
                return NOBODY
            tree.edges[at] = key
            tree.leads_to[at] = tree.count[PREFIXES]
            tree.count[PREFIXES] += 1
        prefix = int(tree.leads_to[at])
    return prefix


@jit
def find_infosets(tree: Tree, seats: np.ndarray, rows: np.ndarray, out: np.ndarray) -> None:
    """Write to `out` (int64 [B]) the information sets of histories uint8 [B, H, 4], or NOBODY."""
    for i in range(len(seats)):
        prefix = prefix_of(tree, int(seats[i]), rows, i, False)
        out[i] = tree.infoset[prefix] if prefix >= 0 else NOBODY


@jit
def infoset_at(tree: Tree, path: Path, level: int, deal: int) -> int:
    """The information set of the seat to move, whose options are listed; new if need be."""
    g = path.games[level]
    seat = int(g.seat)
    history(g, seat, path.history, 0)
    prefix = prefix_of(tree, seat, path.history, 0, True)
    found = int(tree.infoset[prefix])
    if found >= 0:
        return found
    new = int(tree.count[INFOSETS])
    tree.count[INFOSETS] += 1
    tree.infoset[prefix] = new
    tree.owner[new] = seat
    tree.before[new] = path.sequence[level, seat]
    tree.first[new + 1] = tree.first[new] + path.size[level]
    tree.deal[new] = deal
    return new


@jit
def move_edges(
    edges: np.ndarray, leads_to: np.ndarray, new_edges: np.ndarray, new_leads_to: np.ndarray
) -> None:
    """Copy all edges into a larger table."""
    for at in range(len(edges)):
        if edges[at] != FREE:
            place = place_of(new_edges, edges[at])
            new_edges[place] = edges[at]
            new_leads_to[place] = leads_to[at]


# ---------------------------------------------------------------- positions


@jit
def orders(g: Record) -> int:
    """In how many orders the tiles that may still be drawn can come; g stands for so many deals."""
    count = 1
    for k in range(drawable(g)):
        count *= int(g.stock) - int(g.drawn) - k
    return count


@jit
def list_actions(g: Record, options: np.ndarray, level: int) -> int:
    """List the actions of a seat that has something to play, lowest first; returns how many."""
    left, right = plays(g)
    rest = left | right
    count = 0
    while rest != 0:
        tile = lowest(rest)
        rest &= rest - 1
        if left >> tile & 1:
            options[level, count] = 2 * tile
            count += 1
        if right >> tile & 1:
            options[level, count] = 2 * tile + 1
            count += 1
    if may_play_both(g):
        options[level, count] = 2 * int(g.tiles) + 2
        count += 1
    return count


@jit
def list_draws(g: Record, options: np.ndarray, level: int) -> int:
    """List the tiles of the boneyard, of which any may be in front; returns how many."""
    rest = (1 << int(g.tiles)) - 1
    for p in range(int(g.seats)):
        rest &= ~(int(g.hands[p]) | int(g.placed[p]))
    count = 0
    while rest != 0:
        options[level, count] = lowest(rest)
        rest &= rest - 1
        count += 1
    return count


@jit
def has_to_play(g: Record) -> bool:
    """Whether the seat to move has something to play, which it then must."""
    left, right = plays(g)
    return left | right != 0


@jit
def take_option(path: Path, level: int) -> None:
    """Make the next option of a level, and the passes behind it, on the level above."""
    k = int(path.taken[level])
    path.taken[level] += 1
    above = level + 1
    path.games[above] = path.games[level]
    path.sequence[above] = path.sequence[level]
    g = path.games[above]
    if int(path.base[level]) == NOBODY:
        g.boneyard[int(g.drawn)] = path.options[level, k]
        move(g, 2 * int(g.tiles))
    else:
        path.sequence[above, int(g.seat)] = path.base[level] + k
        move(g, int(path.options[level, k]))
    while int(g.over) == NOT_OVER and not has_to_play(g) and not may_draw(g):
        move(g, 2 * int(g.tiles) + 1)


# ---------------------------------------------------------------- walking


@jit
def enter(
    tree: Tree, path: Path, level: int, deal: int, deals: float, begin_at: int, seen: np.recarray
) -> None:
    """Look at a new position and list what may follow.

    The first walk, with an empty `seen`, writes the tree. A later one keeps a position of each
    information set from `begin_at` in `seen`.
    """
    g = path.games[level]
    path.taken[level], path.size[level] = 0, 0
    if int(g.over) != NOT_OVER:
        if len(seen) == 0:
            note_round(tree, path, level, deals)
    elif has_to_play(g):
        path.size[level] = list_actions(g, path.options, level)
        infoset = infoset_at(tree, path, level, deal)
        path.base[level] = tree.first[infoset]
        tree.count[NODES] += orders(g)
        if 0 <= infoset - begin_at < len(seen):
            seen[infoset - begin_at] = g
    else:
        path.base[level] = NOBODY
        path.size[level] = list_draws(g, path.options, level)


@jit
def note_round(tree: Tree, path: Path, level: int, deals: float) -> None:
    """Keep a finished round."""
    g = path.games[level]
    z = int(tree.count[ROUNDS])
    tree.count[ROUNDS] += 1
    tree.count[NODES] += orders(g)
    tree.reached[z] = path.sequence[level]
    for p in range(tree.payoff.shape[1]):
        tree.payoff[z, p] = int(g.earned[p]) * orders(g) / (UNIT * deals)


@jit
def has_room(tree: Tree, path: Path) -> bool:
    """Whether one more position fits into the arrays for sure."""
    return (
        tree.count[PREFIXES] + path.history.shape[1] < len(tree.infoset)
        and tree.count[INFOSETS] < len(tree.owner)
        and tree.count[ROUNDS] < len(tree.reached)
    )


@jit
def walk_deal(
    tree: Tree, path: Path, deal: int, deals: float, begin_at: int, seen: np.recarray
) -> bool:
    """Walk everything that can follow the deal of level 0; False if the arrays become full."""
    for p in range(path.sequence.shape[1]):
        path.sequence[0, p] = p
    if len(seen) == 0 and not has_room(tree, path):
        return False
    enter(tree, path, 0, deal, deals, begin_at, seen)
    level = 0
    while level >= 0:
        if path.taken[level] == path.size[level]:
            level -= 1
            continue
        if len(seen) == 0 and not has_room(tree, path):
            return False
        take_option(path, level)
        level += 1
        enter(tree, path, level, deal, deals, begin_at, seen)
    return True


@jit
def walk_deals(
    tree: Tree,
    path: Path,
    hands: np.ndarray,
    first: int,
    last: int,
    deals: float,
    begin_at: int,
    seen: np.recarray,
) -> int:
    """Walk the deals `first` to `last` - 1 of hands int64 [., P + 1], behind the hands the leader.

    Returns the first deal that was not walked because the arrays are full, else `last`.
    """
    seats = path.sequence.shape[1]
    for d in range(first, last):
        g = path.games[0]
        for p in range(seats):
            g.hands[p] = hands[d, p]
        begin(g, hands[d, seats])
        tree.count[OLD_NODES], tree.count[OLD_ROUNDS] = tree.count[NODES], tree.count[ROUNDS]
        if not walk_deal(tree, path, d, deals, begin_at, seen):
            return d
    return last
