"""Counting the worlds that agree with what a seat knows: the second part of worlds.py.

The tiles that slots.py has put into order are laid one by one. A *state* is how many slots are free
in each group when the tile of a *layer* comes; groups of a seat that no tile still to be laid can
tell apart count as one, a *class*. `explore` finds the states and the ways on from each, `edges`;
`count_ways` works out backwards how many ways lead from each to the end.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from domino_env.compiled import jit
from domino_env.slots import (
    FITS,
    LED,
    MAX_GROUPS,
    Plan,
    drop_full_groups,
    know,
    order_tiles,
    settle_tiles,
)
from domino_env.state import (
    Record,
)

EDGES = 6  # room for edges, for each state
FLAGS = 4  # combinations of LED and FITS
DONE, NO_ROOM, NO_WORLD = 0, 1, 2  # what comes of `prepare`


class Graph(NamedTuple):
    """States (S) and the edges between them (E): the work space of one call, for all its games."""

    key: np.ndarray  # int64 [S], flags + free slots of each class in mixed radix
    ways: np.ndarray  # float64 [S], how many ways lead from here to the end
    mass: np.ndarray  # float64 [S], the probability to come by here
    edge: np.ndarray  # int64 [S + 1], the first edge of each state
    to: np.ndarray  # int32 [E], the state that it leads to
    kind: np.ndarray  # int8 [E], the class into which it lays the tile
    share: np.ndarray  # float64 [E], the probability of it and the edges before it
    table: np.ndarray  # int32 [2S + 1], hash table of the states of one layer, -1 empty
    home: np.ndarray  # int32 [S], the place of each state in it


def new_graph(states: int) -> Graph:
    """Work space for so many states."""
    edges = EDGES * states + MAX_GROUPS
    return Graph(
        key=np.empty(states, np.int64),
        ways=np.empty(states),
        mass=np.empty(states),
        edge=np.empty(states + 1, np.int64),
        to=np.empty(edges, np.int32),
        kind=np.empty(edges, np.int8),
        share=np.empty(edges),
        table=np.full(2 * states + 1, -1, np.int32),
        home=np.empty(states, np.int32),
    )


# ---------------------------------------------------------------- counting


@jit
def prepare(g: Record, seat: int, plan: Plan, graph: Graph) -> int:
    """Count the worlds of a redacted game, and fill into it what is certain.

    Returns DONE, NO_ROOM in the graph, or NO_WORLD that agrees.
    """
    know(g, seat, plan)
    tiles = settle_tiles(g, plan)
    drop_full_groups(plan)
    order_tiles(g, plan, tiles)
    find_classes(plan)
    if not explore(plan, graph):
        return NO_ROOM
    count_ways(plan, graph)
    return DONE if graph.ways[0] > 0 else NO_WORLD


@jit
def find_classes(plan: Plan) -> None:
    """Find the classes for the tiles from each layer on, and what their slots add to a key."""
    groups, layers = int(plan.groups), int(plan.layers)
    ahead = 0
    for layer in range(layers, -1, -1):
        if layer < layers:
            ahead |= 1 << int(plan.order[layer])
        for n in range(groups):
            plan.kind[layer, n] = first_alike(plan, n, ahead)
        stride = FLAGS
        for kind in range(groups):
            slots = 0
            for n in range(kind, groups):
                if int(plan.kind[layer, n]) == kind:
                    plan.stride[layer, n] = stride
                    slots += int(plan.slots[n])
            stride *= slots + 1


@jit
def first_alike(plan: Plan, n: int, ahead: int) -> int:
    """The first group of the same seat that the tiles ahead cannot tell from group n."""
    for m in range(n):
        told = (int(plan.allowed[m]) ^ int(plan.allowed[n])) & ahead
        if int(plan.dealt[m]) != int(plan.dealt[n]):
            told |= int(plan.lead_tiles) & ahead
        if int(plan.seat[m]) == int(plan.seat[n]) and told == 0:
            return m
    return n


@jit
def explore(plan: Plan, graph: Graph) -> bool:
    """Find the states layer by layer, and the edges between them; False if there is no room."""
    key = 0
    for n in range(int(plan.groups)):
        key += int(plan.slots[n]) * int(plan.stride[0, n])
    graph.key[0] = key
    plan.first[0] = 0
    states, edges, room = 1, 0, True
    for layer in range(int(plan.layers)):
        plan.first[layer + 1] = states
        for s in range(int(plan.first[layer]), int(plan.first[layer + 1])):
            graph.edge[s] = edges
            if states + MAX_GROUPS > len(graph.key) or edges + MAX_GROUPS > len(graph.to):
                room = False
                break
            states, edges = branch(plan, graph, layer, s, states, edges)
        for s in range(int(plan.first[layer + 1]), states):
            graph.table[graph.home[s]] = -1
        if not room:
            return False
    graph.edge[int(plan.first[int(plan.layers)])] = edges
    plan.first[int(plan.layers) + 1] = states
    return True


@jit
def branch(
    plan: Plan, graph: Graph, layer: int, s: int, states: int, edges: int
) -> tuple[int, int]:
    """Lay the tile of a layer in every way from state s; returns how many states and edges."""
    tile = int(plan.order[layer])
    flags = int(graph.key[s]) & (FLAGS - 1)
    after = read_state(plan, layer, int(graph.key[s]) - flags)
    for n in range(int(plan.groups)):
        if int(plan.free[n]) > 0 and int(plan.allowed[n]) >> tile & 1:
            up = flags_after(plan, flags, n, tile)
            if up >= 0:
                to = find_state(graph, after - int(plan.stride[layer + 1, n]) + up, states)
                states = max(states, to + 1)
                graph.to[edges] = to
                graph.kind[edges] = n
                graph.share[edges] = plan.free[n]
                edges += 1
    return states, edges


@jit
def read_state(plan: Plan, layer: int, key: int) -> int:
    """Set `free` to the slots of each class, at its first group; returns the next layer's key."""
    after = 0
    for n in range(int(plan.groups) - 1, -1, -1):
        plan.free[n] = 0
        if int(plan.kind[layer, n]) == n:
            plan.free[n] = key // int(plan.stride[layer, n])
            key %= int(plan.stride[layer, n])
            after += int(plan.free[n]) * int(plan.stride[layer + 1, n])
    return after


@jit
def flags_after(plan: Plan, flags: int, n: int, tile: int) -> int:
    """The flags after a tile is laid into group n; -1 if the leader would have been another."""
    if int(plan.lead_tiles) >> tile & 1 and int(plan.dealt[n]) and flags & LED == 0:
        if int(plan.seat[n]) != int(plan.leader):
            return -1
        flags |= LED
    if int(plan.fitting) >> tile & 1 and int(plan.seat[n]) >= 0:
        flags |= FITS
    return flags


@jit
def find_state(graph: Graph, key: int, states: int) -> int:
    """The number of a state of the next layer; `states` for a new one, which is then added."""
    at = key % len(graph.table)
    while graph.table[at] >= 0 and graph.key[graph.table[at]] != key:
        at = at + 1 if at + 1 < len(graph.table) else 0
    if graph.table[at] < 0:
        graph.table[at] = states
        graph.home[states] = at
        graph.key[states] = key
    return int(graph.table[at])


@jit
def count_ways(plan: Plan, graph: Graph) -> None:
    """Count from the end how many ways lead on from each state, and so how likely each edge is."""
    end, goal = int(plan.first[int(plan.layers)]), int(plan.goal)
    for s in range(end, int(plan.first[int(plan.layers) + 1])):
        graph.ways[s] = 1.0 if int(graph.key[s]) & goal == goal else 0.0
    for s in range(end - 1, -1, -1):
        total = 0.0
        for e in range(graph.edge[s], graph.edge[s + 1]):
            total += graph.share[e] * graph.ways[graph.to[e]]
            graph.share[e] = total
        graph.ways[s] = total
        for e in range(graph.edge[s], graph.edge[s + 1]):  # the last that counts is exactly 1
            graph.share[e] /= max(total, 1.0)
