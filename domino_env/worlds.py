"""Hidden worlds: deals drawn as the shuffle would have made them, given all that a seat knows.

    worlds = sample_worlds(games, seats, 1000, random=7)    # records [B, 1000], nothing hidden
    chance = belief(games, seats)                           # float32 [B, P + 1, T]: exact marginals

A world is a shuffle: a tile for every slot of the hands as dealt and of the boneyard. What a seat
knows rules tiles out of single slots, and says nothing else (docs/worlds.md has the proof):

- A draw or a pass proves that no slot which the seat had by then holds a tile that fits the ends of
  that moment, unless that tile was on the table already. It follows that a seat which draws k
  times and plays has put down the last tile drawn, and keeps the k - 1 before, which did not fit.
  A block at the end proves the same of all seats.
- A tile on the table lies in a slot that its seat had by then: dealt to it, or drawn before.
- A forced lead proves that the tiles before it were not dealt to anybody.

Two facts are about several slots together. Each is a flag that must be up when all tiles are laid:

- LED, while the leader was found by rule but the tile is not known: the leader was dealt one that
  comes before all known to be dealt, and nobody else was dealt one that comes before that.
- FITS, while nobody can draw and the round goes on: some seat holds a tile that fits.

Worlds are thus perfect matchings of tiles and slots. slots.py finds which tile may lie where.
matching.py counts, laying one tile after another: a state is how many slots of each kind are free,
tens of them in a usual position. The number of ways from each state to the end lets worlds be
drawn forwards, without a try that fails, and gives the marginals. Ways are float64, exact to 15
digits or so; a random choice is right within 2**-32.

`B` games, `P` seats, `T` tiles. Only what the seat knows is read (`redact`). When a round is over,
worlds agree with its events; who won and what was written is not asked.
"""

from __future__ import annotations

from collections.abc import Callable
from math import factorial
from typing import Any, Protocol, cast

import numpy as np

from domino_env.compiled import jit, lowest
from domino_env.errors import shown
from domino_env.matching import DONE, NO_ROOM, NO_WORLD, Graph, new_graph, prepare
from domino_env.observation import redact_each, relative
from domino_env.saved import copied
from domino_env.scoring import hand_pips
from domino_env.slots import PLAN, Plan, put
from domino_env.state import GAME, MAX_SEATS, PLAYING, Record, random_below, random_word, seed_games
from domino_env.tiles import MAX_TILES

STATES = 4096  # room for states at first; it grows where a position needs more


class Seen(Protocol):
    """A view, as agents get it: redacted games [B], and the seats that they are shown to."""

    @property
    def games(self) -> np.ndarray | None: ...  # noqa: D102
    @property
    def seat(self) -> np.ndarray: ...  # noqa: D102


# ---------------------------------------------------------------- drawing worlds


@jit
def draw_world(source: Record, plan: Plan, graph: Graph, g: Record) -> None:
    """Lay all tiles into g, a copy of the prepared game `source`, whose random state is used."""
    layers = int(plan.layers)
    for n in range(int(plan.groups)):
        plan.free[n] = plan.slots[n]
    s = 0
    for layer in range(layers):
        e = int(graph.edge[s])
        if e + 1 < graph.edge[s + 1]:
            luck = random_word(source) / 2.0**32
            while graph.share[e] <= luck:
                e += 1
        lay(source, plan, g, layer, int(graph.kind[e]), int(plan.order[layer]))
        s = int(graph.to[e])
    for k in range(layers, int(plan.tiles)):
        lay(source, plan, g, layers, -1, int(plan.order[k]))
    for k in range(4):
        g.random[k] = random_word(source)
    if int(g.end) != PLAYING:
        for p in range(int(g.seats)):
            g.pips[p] = hand_pips(g, int(g.hands[p]))


@jit
def lay(source: Record, plan: Plan, g: Record, layer: int, kind: int, tile: int) -> None:
    """Lay a tile into any free slot of a class, or of all classes if `kind` is -1."""
    n = choose_group(source, plan, layer, kind)
    if int(plan.seat[n]) >= 0:
        put(g, plan, n, tile)
    else:  # it takes the place of any that lie there or the next one, and that one moves there
        behind = int(g.drawn) + int(plan.slots[n]) - int(plan.free[n])
        place = int(g.drawn) + random_below(source, behind - int(g.drawn) + 1)
        g.boneyard[behind] = g.boneyard[place]
        g.boneyard[place] = tile
    plan.free[n] -= 1


@jit
def choose_group(source: Record, plan: Plan, layer: int, kind: int) -> int:
    """A group of a class by its share of the free slots."""
    slots, last = 0, 0
    for n in range(int(plan.groups)):
        if kind < 0 or int(plan.kind[layer, n]) == kind:
            slots += int(plan.free[n])
            last = n
    if last == kind:
        return kind
    at = random_below(source, slots)
    for n in range(int(plan.groups)):
        if kind < 0 or int(plan.kind[layer, n]) == kind:
            at -= int(plan.free[n])
            if at < 0:
                return n
    return last


@jit
def sample_each(
    games: np.ndarray,
    seats: np.ndarray,
    begin: int,
    plans: np.recarray,
    graph: Graph,
    worlds: np.recarray,
    count: int,
) -> tuple[int, int]:
    """Draw `count` worlds of each game from `begin` on; returns where and how that ended."""
    for i in range(begin, len(games)):
        how = prepare(games[i], seats[i], plans[0], graph)
        if how != DONE:
            return i, how
        for row in range(i * count, (i + 1) * count):
            worlds[row] = games[i]
            draw_world(games[i], plans[0], graph, worlds[row])
    return len(games), DONE


# ---------------------------------------------------------------- marginals


@jit
def spread(plan: Plan, graph: Graph, chance: np.ndarray) -> None:
    """Set chance (float64 [MAX_SEATS + 1, MAX_TILES]) for all tiles to lay.

    Rows are seats, the last is the boneyard; tiles on the table count with the seat that placed
    them.
    """
    layers = int(plan.layers)
    chance[:] = 0.0
    open_slots = np.zeros(MAX_SEATS + 1)  # in the mean, when the tiles that fit everywhere come
    for n in range(int(plan.groups)):
        open_slots[plan.seat[n]] += plan.slots[n]
    graph.mass[: int(plan.first[layers + 1])] = 0.0
    graph.mass[0] = 1.0
    for layer in range(layers):
        tile = int(plan.order[layer])
        for s in range(int(plan.first[layer]), int(plan.first[layer + 1])):
            before = 0.0
            for e in range(graph.edge[s], graph.edge[s + 1]):
                mass = graph.mass[s] * (graph.share[e] - before)
                before = graph.share[e]
                graph.mass[graph.to[e]] += mass
                chance[plan.seat[graph.kind[e]], tile] += mass
                open_slots[plan.seat[graph.kind[e]]] -= mass
    for p in range(MAX_SEATS + 1):
        share = max(0.0, open_slots[p] / max(1, int(plan.tiles) - layers))
        for k in range(layers, int(plan.tiles)):
            chance[p, plan.order[k]] = share


@jit
def believe_each(
    games: np.ndarray,
    seats: np.ndarray,
    begin: int,
    plans: np.recarray,
    graph: Graph,
    out: np.ndarray,
) -> tuple[int, int]:
    """Write to out (float32 [B, places + 1, T]) what `belief` says; returns as `sample_each`."""
    chance = np.zeros((MAX_SEATS + 1, MAX_TILES))
    for i in range(begin, len(games)):
        g, plan, seat = games[i], plans[0], int(seats[i])
        out[i] = 0.0
        if int(g.hands[seat]) | int(g.placed[seat]) == 0:  # nothing has been dealt
            continue
        how = prepare(g, seat, plan, graph)
        if how != DONE:
            return i, how
        spread(plan, graph, chance)
        put_chances(g, seat, plan, chance, out, i)
    return len(games), DONE


@jit
def put_chances(
    g: Record, seat: int, plan: Plan, chance: np.ndarray, out: np.ndarray, row: int
) -> None:
    """Write to out[row], which is 0, the tiles whose place is certain and those of `spread`."""
    for p in range(int(g.seats)):
        place, rest = relative(p, seat, int(g.seats)), int(g.hands[p])
        while rest != 0:
            out[row, place, lowest(rest)] = 1.0
            rest &= rest - 1
    for k in range(int(plan.tiles)):
        t = int(plan.order[k])
        if not int(plan.table) >> t & 1:
            for p in range(int(g.seats)):
                out[row, relative(p, seat, int(g.seats)), t] = chance[p, t]
            out[row, out.shape[1] - 1, t] = chance[MAX_SEATS, t]


@jit
def count_each(
    games: np.ndarray,
    seats: np.ndarray,
    begin: int,
    plans: np.recarray,
    graph: Graph,
    out: np.ndarray,
) -> tuple[int, int]:
    """Write to out (float64 [B]) how many shuffles agree, with orders within hands counted."""
    for i in range(begin, len(games)):
        how = prepare(games[i], seats[i], plans[0], graph)
        if how != DONE:
            return i, how
        out[i] = graph.ways[0] * plans[0].settled_ways
        for k in range(1, 1 + int(plans[0].tiles) - int(plans[0].layers)):
            out[i] *= k
    return len(games), DONE


# ---------------------------------------------------------------- from Python


def sample_worlds(
    games: np.ndarray | Seen,
    seats: np.ndarray | int | None,
    count: int,
    random: int | np.random.Generator | None = None,
) -> np.recarray:
    """Draw hidden worlds: GAME records [B, count] that agree with what the seats know of `games`.

    `games` is [B] of GAME, redacted or not, or a view of an agent; only what `seats` know is read:
    integers [B], one for all, or None for the seats to move. A world is any of the shuffles that
    agree (hands, and the order of the boneyard) with the same probability, independent of the
    others. It has a random state of its own for the rounds behind, and the engine plays it on.
    `random` is a seed, a generator, or None for luck. Game i's worlds follow from the i-th number
    drawn from it alone; the first of many worlds are those of few.

    Raises `ValueError` if a seat or the count cannot be, or if no deal agrees with a record.
    """
    if isinstance(count, bool) or not isinstance(count, int | np.integer) or count < 0:
        raise ValueError(f"count: found {shown(count)}, expected an integer of at least 0")
    known, who = _known(games, seats)
    seeds = np.random.default_rng(random).integers(0, 2**64, len(known), np.uint64)
    seed_games(known.view(np.recarray), seeds)
    worlds: Any = np.empty(len(known) * int(count), GAME).view(np.recarray)
    _run(sample_each, known, who, worlds, int(count))
    return worlds.reshape(len(known), int(count))


def belief(
    games: np.ndarray | Seen,
    seats: np.ndarray | int | None = None,
    observe_as: int | None = None,
) -> np.ndarray:
    """Where each tile lies, as the seats know it: exact probabilities, float32 [B, P + 1, T].

    `games` and `seats` as for `sample_worlds`, the games all of as many seats and tiles. Rows are
    the hands, the observer's first, then clockwise; the last is the boneyard that is not drawn. The
    column of a tile sums to 1, that of a tile on the table is 0. P is the seats, or `observe_as`,
    as in the observation: absent seats are 0, and so is a game before its first deal.

    Raises `ValueError` if a seat cannot be, the games differ, or no deal agrees with a record.
    """
    known, who = _known(games, seats)
    sizes = np.unique(known["tiles"] * np.int64(8) + known["seats"])
    if len(sizes) != 1:
        raise ValueError(f"games: found {len(sizes)} sizes of games, expected games of one size")
    T, P = divmod(int(sizes[0]), 8)
    places = P if observe_as is None else observe_as
    if places not in range(P, MAX_SEATS + 1):
        raise ValueError(f"observe_as: found {shown(places)}, expected {P} to {MAX_SEATS}")
    out = np.empty((len(known), places + 1, T), np.float32)
    _run(believe_each, known, who, out)
    return out


def deal_count(games: np.ndarray | Seen, seats: np.ndarray | int | None = None) -> np.ndarray:
    """How many deals (hands, and the order of the boneyard) agree: float64 [B].

    Arguments and errors are those of `sample_worlds`.
    """
    known, who = _known(games, seats)
    out = np.zeros(len(known))
    _run(count_each, known, who, out)
    sizes = known[["deal_size", "seats"]].tolist()
    return out / [float(factorial(size)) ** (seats - 1) for size, seats in sizes]


def _known(
    games: np.ndarray | Seen, seats: np.ndarray | int | None
) -> tuple[np.ndarray, np.ndarray]:
    """Redacted copies of the games, and the seats as int64 [B]; `ValueError` if they cannot be."""
    if not isinstance(games, np.ndarray) and hasattr(games, "games"):
        return _known(cast(Any, games.games), games.seat if seats is None else seats)
    if not isinstance(games, np.ndarray) or games.dtype != GAME or games.ndim != 1:
        raise ValueError(f"games: found {shown(games)}, expected records [B] of dtype GAME")
    known = copied(games)
    given = np.asarray(known["seat"] if seats is None else seats)
    if given.dtype.kind not in "iu" or given.shape not in ((), games.shape):
        raise ValueError(f"seats: found {shown(seats)}, expected integers [{len(games)}]")
    who = np.full(games.shape, given, np.int64)
    beyond = (who < 0) | (who >= known["seats"])
    if beyond.any():
        seat, last = int(who[beyond][0]), int(known["seats"][beyond][0]) - 1
        raise ValueError(f"seats: there is no seat {seat}, expected 0 to {last}")
    redact_each(known, who)
    return known, who


def _run(
    each: Callable[..., tuple[int, int]], games: np.ndarray, seats: np.ndarray, *out: Any
) -> None:
    """Call a compiled function over all games, with more room from where it had none left."""
    plans = np.zeros(1, PLAN).view(np.recarray)
    states, begin, how = STATES, 0, NO_ROOM
    while how == NO_ROOM:
        begin, how = each(games, seats, begin, plans, new_graph(states), *out)
        states *= 4
    if how == NO_WORLD:
        raise ValueError(f"games: no deal agrees with game {begin} as seat {seats[begin]} knows it")
