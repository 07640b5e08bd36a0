"""What is hidden from a seat shows in nothing that it is given.

A seat cannot tell the deals apart that agree with its own tiles and with the public events. All of
them, or random ones in large sets, must give it the same bytes.
"""

import random
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import pytest
from all_deals import agreeing_deals, agrees
from oracle import Deal, Oracle
from oracle_rules import texts_of, tile_of
from support import (
    NUMBER,
    TILE,
    Table,
    history_of,
    mask_of,
    observed,
    pips_in,
    random_rules,
    redacted,
    tiles_in,
)

from domino_env import engine

# set, seats, hand size: few enough deals agree with what a seat knows to look at all of them
TINY = [(1, 2, 1), (1, 3, 1), (2, 2, 1), (2, 2, 2), (2, 2, 3), (2, 3, 1), (2, 3, 2), (2, 4, 1)]
TINY += [(3, 2, 3), (3, 2, 4), (3, 2, 5), (3, 3, 3), (3, 4, 2)]


def tiny_rules(rng: random.Random) -> dict[str, Any]:
    set_, seats, hand = rng.choice(TINY)
    rules = random_rules(rng, sets=(set_,))
    while rules["seats"] != seats:
        rules = random_rules(rng, sets=(set_,))
    return rules | {"hand_size": hand}


def random_position(rules: dict[str, Any], rng: random.Random, latest: int) -> Table:
    """A random position of a random round; the end of a round is as likely as any other."""
    table = Table(rules, rng.getrandbits(64))
    for _ in range(rng.randrange(latest)):
        if table.oracle.over is not None:
            break
        if table.oracle.end is not None:
            if rng.random() < 0.3:
                break
            table.next_round()
        else:
            table.play(rng.choice(table.oracle.legal()))
    return table


def knowledge(table: Table, games: np.recarray, seat: int) -> tuple[bytes, ...]:
    """Everything that a seat is given of a game, as bytes."""
    rules = table.rules
    seen = [observed(games, rules, seat, places).tobytes() for places in (rules.seats, 4)]
    seen += [history_of(games, rules, seat).tobytes(), redacted(games, seat).tobytes()]
    if table.oracle.seat in (seat, None):
        seen.append(mask_of(games, rules).tobytes())
    return tuple(seen)


def check_deals(table: Table, seat: int, deals: Iterable[Deal]) -> int:
    """All these deals look the same to a seat, and nothing it is told is false in one of them.

    Returns how many differ in what is hidden.
    """
    known = knowledge(table, table.games, seat)
    different: set[bytes] = set()
    for hands, boneyard in deals:
        games = table.twin(hands, boneyard)
        assert knowledge(table, games, seat) == known, (seat, hands, boneyard)
        different.add(games.tobytes())
        dealt = {tile_of(text) for hand in hands for text in hand}
        assert not tiles_in(table.g.not_dealt) & dealt
        for p in range(table.rules.seats):
            held = {pip for tile in tiles_in(games[0].hands[p]) for pip in tile}
            assert not pips_in(table.g.lacks[p]) & held
    return len(different)


@pytest.mark.parametrize("seed", range(30))
def test_all_deals_that_agree_with_what_a_seat_knows_look_the_same_to_it(seed: int) -> None:
    rng = random.Random(seed)
    found = 0
    for _ in range(8):
        table = random_position(tiny_rules(rng), rng, 14)
        seat = rng.randrange(table.rules.seats)
        deals = list(agreeing_deals(table.oracle, seat))
        found += check_deals(table, seat, deals)
    assert found > 4, "other deals than the true ones"


def swapped_deals(oracle: Oracle, seat: int, rng: random.Random, tries: int) -> Iterator[Deal]:
    """Deals that agree with what a seat knows, each two hidden tiles away from the one before."""
    hands, boneyard = [sorted(hand) for hand in oracle.dealt[0]], list(oracle.dealt[1])
    own = {tile for who, tile in oracle.drawn if who == seat}
    groups = [*hands[:seat], *hands[seat + 1 :], boneyard]
    hidden = [(g, i) for g in groups for i, tile in enumerate(g) if tile not in own]
    for _ in range(tries if len(hidden) > 1 else 0):
        (a, i), (b, j) = rng.sample(hidden, 2)
        a[i], b[j] = b[j], a[i]
        texts = [texts_of(set(hand)) for hand in hands]
        if agrees(oracle, texts, boneyard, len(oracle.events)):
            yield texts, [text for tile in boneyard for text in texts_of({tile})]
        else:
            a[i], b[j] = b[j], a[i]


@pytest.mark.parametrize("seed", range(100, 140))
def test_deals_of_large_sets_that_agree_look_the_same_too(seed: int) -> None:
    rng = random.Random(seed)
    found = 0
    for _ in range(5):
        table = random_position(random_rules(rng, sets=(4, 5, 6, 6, 6, 7, 9)), rng, 40)
        seat = rng.randrange(table.rules.seats)
        found += check_deals(table, seat, swapped_deals(table.oracle, seat, rng, 25))
    assert found > 5, "other deals than the true ones"


# ---------------------------------------------------------------- redact


def slots_left(table: Table, seat: int) -> list[int]:
    """The boneyard that a seat may see: what it drew, and what was played when just drawn."""
    slots = [-1] * len(table.oracle.dealt[1])
    draws = -1
    for index, (who, move) in enumerate(table.oracle.events):
        if move != "draw":
            continue
        draws += 1
        _, then = (*table.oracle.events, (None, ""))[index + 1]
        if who == seat:
            slots[draws] = NUMBER[table.oracle.drawn[draws][1]]
        elif then not in ("draw", "pass", "both", ""):
            slots[draws] = NUMBER[tile_of(then.split()[0])]
            assert table.oracle.drawn[draws] == (who, TILE[slots[draws]])
    return slots


@pytest.mark.parametrize("seed", range(200, 220))
def test_redact_removes_what_is_hidden_and_nothing_else(seed: int) -> None:
    rng = random.Random(seed)
    for _ in range(20):
        table = random_position(random_rules(rng), rng, 60)
        seat = rng.randrange(table.rules.seats)
        table.g.asked = rng.randrange(2)
        expected, g = table.games.copy(), redacted(table.games, seat)[0]
        for p in range(4):
            expected[0].random[p] = 0
            expected[0].pips[p] = 0  # they tell the hands at the end
            if p != seat:
                expected[0].hands[p] = 0
        expected[0].asked = 0  # whether somebody had a choice
        slots = slots_left(table, seat)
        expected[0].boneyard[: len(slots)] = slots
        for name in engine.GAME.names or ():
            assert np.array_equal(g[name], expected[0][name]), (name, table.rules)


def test_a_tile_drawn_by_another_seat_shows_once_it_had_to_be_played() -> None:
    rules = {"preset": "estandar", "set": 2, "hand_size": 2, "lead": "seat"}
    table = Table(rules, 0)
    games = table.twin([["2-1", "1-1"], ["0-0", "2-0"]], ["1-0", "2-2"])
    draw = 12
    engine.move(games[0], 2 * 2)  # seat 0 leads 1-1, keeps 2-1
    engine.move(games[0], draw)  # seat 1 holds no 1: draws 1-0, which fits
    assert redacted(games, 0)[0].boneyard.tolist()[:2] == [-1, -1]
    assert redacted(games, 1)[0].boneyard.tolist()[:2] == [1, -1]
    engine.move(games[0], 2 * 1)  # and must be played: now everybody knows it
    assert redacted(games, 0)[0].boneyard.tolist()[:2] == [1, -1]
    assert redacted(games, 1)[0].boneyard.tolist()[:2] == [1, -1]
