"""Sampled worlds and beliefs against every deal that agrees with what a seat knows.

Small sets are enumerated by the reference (`agreeing_deals`), so what is expected owes nothing to
the way in which worlds are counted. In large sets every world is played again from its deal.
"""

import math
import random
from collections import Counter
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from all_deals import agreeing_deals
from oracle_rules import text_of, tile_of
from support import NUMBER, TILE, Table, random_rules, redacted, tiles_in
from test_no_leak import knowledge, random_position, tiny_rules

from domino_env import engine
from domino_env.worlds import belief, deal_count, sample_worlds

ROOT = Path(__file__).resolve().parent.parent
MOST = 400  # deals that are enumerated without impatience
Deal = tuple[Any, ...]  # sets of tiles dealt to each seat, then the boneyard in order


def deals_of(table: Table, seat: int, most: int = MOST) -> list[Deal]:
    """Every deal that agrees with what a seat knows; empty if there are too many to look at."""
    deals = []
    for hands, boneyard in islice(agreeing_deals(table.oracle, seat), most + 1):
        dealt = [frozenset(tile_of(text) for text in hand) for hand in hands]
        deals.append((*dealt, tuple(tile_of(text) for text in boneyard)))
    return deals if len(deals) <= most else []


def deal_of(table: Table, world: Any) -> Deal:
    """The deal that a world began with."""
    boneyard = tuple(TILE[int(t)] for t in world.boneyard[: world.stock])
    dealt = [tiles_in(world.hands[p] | world.placed[p]) for p in range(table.rules.seats)]
    drawers = [who for who, move in table.oracle.events if move == "draw"]
    for who, tile in zip(drawers, boneyard, strict=False):
        dealt[who].remove(tile)
    return (*(frozenset(hand) for hand in dealt), boneyard)


def count_deals(table: Table, drawn: np.recarray) -> Counter[Deal]:
    """How many of the worlds drawn began with each deal."""
    hidden = np.concatenate([drawn["hands"], drawn["boneyard"]], axis=1)
    _, first, times = np.unique(hidden, axis=0, return_index=True, return_counts=True)
    deals = [deal_of(table, drawn[i]) for i in first]
    assert len(set(deals)) == len(deals)
    return Counter(dict(zip(deals, times.tolist(), strict=True)))


def marginals(table: Table, seat: int, deals: list[Deal]) -> np.ndarray:
    """How often each tile lies in each hand now, or undrawn, in these deals: [P + 1, T]."""
    P, T = table.rules.seats, table.rules.tiles
    counts = np.zeros((P + 1, T))
    on_table = {tile for placed in table.g.placed for tile in tiles_in(placed)}
    drawers = [who for who, move in table.oracle.events if move == "draw"]
    for *dealt, boneyard in deals:
        held = [(who, tile) for who in range(P) for tile in dealt[who]]
        held += zip(drawers, boneyard, strict=False)
        for who, tile in held:
            counts[(who - seat) % P, NUMBER[tile]] += tile not in on_table
        for tile in boneyard[len(drawers) :]:
            counts[P, NUMBER[tile]] += 1
    return counts / len(deals)


def unfinished(rules: dict[str, Any], rng: random.Random, latest: int) -> Table:
    """A random position of a round that is still being played."""
    while True:
        table = random_position(rules, rng, latest)
        if table.oracle.end is None:
            return table


# ---------------------------------------------------------------- against every deal

GAMES = {
    "block": {"preset": "sin_robo"},
    "draw": {"preset": "estandar"},
    "goat": {"preset": "cabra"},
    "draw one": {"preset": "estandar", "draw": "one"},
    "reserve": {"preset": "estandar", "reserve": 1},
    "draw one, reserve": {"preset": "sin_robo", "draw": "one", "reserve": 2, "double_pair": True},
}
TABLES = {
    "two": {"set": 2, "seats": 2, "hand_size": 2},
    "two of double-three": {"set": 3, "seats": 2, "hand_size": 3},
    "three": {"set": 2, "seats": 3, "hand_size": 1},
    "three of double-three": {"set": 3, "seats": 3, "hand_size": 2},
    "four": {"set": 2, "seats": 4, "hand_size": 1},
    "pairs": {"set": 2, "seats": 4, "hand_size": 1, "teams": True},
}
LEADS = [
    {},
    {"lead_tile": "free"},
    {"lead": "lowest_double"},
    {"lead": "lowest_double", "lead_tile": "free"},
    {"lead": "seat"},
    {"lead": "random"},
    {"lead_tile": "free", "score": "winner", "target": 30, "next_lead": "rotate"},
]


def small_positions(game: str, table: str, rng: random.Random) -> Iterator[tuple[Table, int]]:
    """Random positions of each way to lead, and a seat that knows enough to enumerate."""
    for lead in LEADS * 3:
        position = unfinished(GAMES[game] | TABLES[table] | lead, rng, 12)
        yield position, rng.randrange(position.rules.seats)


def check_exact(position: Table, seat: int, most: int = MOST) -> bool:
    """The number of deals and the marginals are those of all deals; False if they are too many."""
    deals = deals_of(position, seat, most)
    if deals:
        known = redacted(position.games, seat)
        where = (position.rules, position.oracle.events, seat)
        assert deal_count(known, seat)[0] == pytest.approx(len(deals), rel=1e-12), where
        assert belief(known, seat)[0] == pytest.approx(marginals(position, seat, deals), abs=1e-6)
    return len(deals) > 0


@pytest.mark.parametrize("table", TABLES)
@pytest.mark.parametrize("game", GAMES)
def test_number_and_marginals_are_those_of_all_deals_that_agree(game: str, table: str) -> None:
    positions = small_positions(game, table, random.Random(f"{game} {table}"))
    assert sum(check_exact(*position) for position in positions) > 2


@pytest.mark.parametrize("seed", range(12))
def test_number_and_marginals_are_right_for_any_rules(seed: int) -> None:
    rng = random.Random(seed)
    for _ in range(8):
        position = unfinished(tiny_rules(rng), rng, 14)
        for seat in range(position.rules.seats):
            check_exact(position, seat)


@pytest.mark.slow
@pytest.mark.parametrize("game", GAMES)
def test_number_and_marginals_are_right_with_many_deals_too(game: str) -> None:
    rng = random.Random(game)
    rules = GAMES[game] | {"set": 3, "seats": 4, "hand_size": 2, "teams": True, "lead_tile": "free"}
    for _ in range(4):
        position = unfinished(rules, rng, 12)
        check_exact(position, rng.randrange(4), 20_000)


def chi_square_is_fair(found: Counter[Deal], deals: list[Deal], draws: int) -> bool:
    """Whether the statistic of a uniform draw lies within what chance explains (1 in 10,000)."""
    mean = draws / len(deals)
    statistic = sum((found[deal] - mean) ** 2 / mean for deal in deals)
    freedom = len(deals) - 1
    return statistic < freedom + 4 * math.sqrt(2 * freedom) + 10


@pytest.mark.parametrize("game", GAMES)
def test_sampled_worlds_are_uniform_over_all_deals_that_agree(game: str) -> None:
    rng = random.Random(game)
    checked = 0
    for table in TABLES:
        for position, seat in small_positions(game, table, rng):
            deals = deals_of(position, seat, 100)
            if len(deals) > 1:
                draws = 40 * len(deals)
                drawn = sample_worlds(redacted(position.games, seat), seat, draws, checked)[0]
                found = count_deals(position, drawn)
                assert set(found) == set(deals), "each deal is drawn, the true one too, no other"
                assert chi_square_is_fair(found, deals, draws), (position.rules, seat)
                checked += 1
    assert checked > 12


def test_the_measure_of_uniform_draws_tells_uneven_ones() -> None:
    deals: list[Deal] = [(n,) for n in range(10)]
    assert chi_square_is_fair(Counter(dict.fromkeys(deals, 40)), deals, 400)
    assert not chi_square_is_fair(Counter(dict.fromkeys(deals[:9], 44)), deals, 400)


# ---------------------------------------------------------------- large sets


def check_worlds(table: Table, seat: int, count: int) -> int:
    """Worlds played again give the seat what it knows; returns how many differ."""
    known = redacted(table.games, seat)
    seen = knowledge(table, table.games, seat)
    drawn = sample_worlds(known, seat, count, 5)[0]
    for world in drawn:
        *hands, boneyard = deal_of(table, world)
        texts = [[text_of(tile) for tile in hand] for hand in hands]
        twin = table.twin(texts, [text_of(tile) for tile in boneyard])
        assert knowledge(table, twin, seat) == seen
        for name in engine.GAME.names or ():
            if name not in ("random", "asked"):
                assert np.array_equal(world[name], twin[0][name]), (name, table.rules)
    return len({world.tobytes() for world in drawn[["hands", "boneyard"]]})


@pytest.mark.parametrize("preset", ["sin_robo", "estandar", "cabra"])
@pytest.mark.parametrize("seats", [2, 3, 4, 5])
def test_worlds_of_a_double_six_game_replayed_show_the_seat_the_same(
    preset: str, seats: int
) -> None:
    rng = random.Random(f"{preset} {seats}")
    rules = {"preset": preset, "seats": min(seats, 4), "teams": seats == 5}
    for lead in LEADS:
        position = unfinished(rules | {"lead_tile": "free"} | lead, rng, 30)
        check_worlds(position, rng.randrange(position.rules.seats), 8)


@pytest.mark.parametrize("seed", range(40))
def test_worlds_of_any_game_replayed_show_the_seat_the_same(seed: int) -> None:
    rng = random.Random(seed)
    different = 0
    for _ in range(4):
        position = unfinished(random_rules(rng), rng, 60)
        different += check_worlds(position, rng.randrange(position.rules.seats), 8)
    assert different > 4


@pytest.mark.parametrize("seed", range(40, 60))
def test_where_the_tiles_truly_lie_is_always_possible(seed: int) -> None:
    rng = random.Random(seed)
    for _ in range(10):
        table = random_position(random_rules(rng), rng, 80)
        P, seat = table.rules.seats, rng.randrange(table.rules.seats)
        chance = belief(redacted(table.games, seat), seat)[0]
        placed = [tiles_in(table.g.placed[p]) for p in range(P)]
        hidden = [
            float(all(TILE[t] not in tiles for tiles in placed)) for t in range(len(chance.T))
        ]
        assert chance.sum(0) == pytest.approx(hidden, abs=1e-5)
        for p in range(P):
            for tile in tiles_in(table.g.hands[p]):
                assert chance[(p - seat) % P, NUMBER[tile]] > (0 if p != seat else 0.999)
        for t in table.g.boneyard[table.g.drawn : table.g.stock]:
            assert chance[P, t] > 0


@pytest.mark.parametrize("seed", range(3))
def test_worlds_lie_as_often_as_the_marginals_say(seed: int) -> None:
    rng = random.Random(seed)
    for preset in ("sin_robo", "estandar"):
        rules = {"preset": preset, "seats": rng.choice([2, 3, 4]), "lead_tile": "free"}
        table = unfinished(rules, rng, 30)
        seat = rng.randrange(table.rules.seats)
        drawn = sample_worlds(table.games, seat, 20_000, rng.getrandbits(60))[0]
        chance = belief(table.games, seat)[0]
        for p in range(table.rules.seats):
            held = drawn["hands"][:, (seat + p) % table.rules.seats, None]
            often = (held >> np.arange(table.rules.tiles) & 1).mean(0)
            assert np.abs(often - chance[p]).max() < 5 * 0.5 / math.sqrt(20_000)
