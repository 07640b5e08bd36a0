"""Observation, state and history, rebuilt from the reference alone, byte for byte."""

import random
from collections.abc import Iterator
from itertools import chain
from typing import Any

import numpy as np
import pytest
from oracle import Oracle
from oracle_rules import tile_of
from support import (
    NUMBER,
    TILE,
    Table,
    action_of,
    history_of,
    mask_of,
    observed,
    random_rules,
    state_of,
)

from domino_env import engine, observation
from domino_env.observation import SWITCH_CHOICES, SWITCH_VALUES
from domino_env.rules import CHOICES, Rules

Parts = dict[str, list[int]]


def one_hot(index: int | None, size: int) -> list[int]:
    return [int(k == index) for k in range(size)]


def tile_bytes(tiles: Any, rules: Rules) -> list[int]:
    """One byte a tile: whether it is one of these."""
    numbers = {NUMBER[tile] for tile in tiles}
    return [int(t in numbers) for t in range(rules.tiles)]


class Viewer:
    """What one seat may know of a game of the reference, part by part (docs/observations.md)."""

    def __init__(self, oracle: Oracle, rules: Rules, seat: int, places: int) -> None:
        self.oracle, self.rules, self.seat, self.places = oracle, rules, seat, places

    def by_seat(self, values: Any, size: int = 1) -> list[int]:
        """A value or list of each seat, the observer's first, absent seats zero."""
        n = self.rules.seats
        turned = [values[(self.seat + r) % n] for r in range(n)] + [0] * (self.places - n)
        rows = [v if isinstance(v, list) else [v] * size for v in turned]
        return [int(x) for row in rows for x in row]

    def place(self, seat: int | None) -> list[int]:
        """A seat, one-hot."""
        relative = None if seat is None else (seat - self.seat) % self.rules.seats
        return one_hot(relative, self.places)

    def side_of(self, values: list[Any]) -> list[Any]:
        """The value of each seat's side."""
        sides = self.oracle.sides
        return [
            next(values[i] for i, side in enumerate(sides) if seat in side)
            for seat in range(self.rules.seats)
        ]

    def placed(self) -> list[list[int]]:
        """The tiles on the table of each seat."""
        tiles: list[set[Any]] = [set() for _ in range(self.rules.seats)]
        ends: list[int] = []
        for seat, move in self.oracle.events:
            if move == "both":
                tiles[seat] |= {(end, end) for end in ends}
            elif move not in ("draw", "pass"):
                tile = tile_of(move.split()[0])
                tiles[seat].add(tile)
                i = int(move.endswith("R"))
                ends = ends or list(tile)
                if " " in move:
                    ends[i] = sum(tile) - ends[i]
        return [tile_bytes(group, self.rules) for group in tiles]

    def counts(self, kind: str) -> list[int]:
        return [self.oracle.events.count((s, kind)) for s in range(self.rules.seats)]

    def switches(self) -> list[int]:
        """The part `rules`, from the resolved fields of the reference."""
        fields = self.oracle.rules

        def code(name: str) -> int:
            value = fields[name]
            return CHOICES[name].index(value) if name in CHOICES else min(int(value), 255)

        groups = [one_hot(code(name), len(CHOICES[name])) for name in SWITCH_CHOICES]
        return [*chain(*groups), *(code(name) for name in SWITCH_VALUES)]

    def public(self) -> Parts:
        """Every part behind the hand, in the order of docs/observations.md."""
        oracle, rules, pips = self.oracle, self.rules, self.rules.set + 1
        left, right = oracle.ends or (None, None)
        undrawn, still = len(oracle.boneyard), oracle.seat is not None
        drawable = 0 if rules.draw == "none" else max(0, undrawn - rules.reserve)
        lacks = [[int(v in known) for v in range(pips)] for known in oracle.lacks()]
        nothing_closed = rules.score != "none" and rules.opening == 0
        is_open = [nothing_closed or opened for opened in oracle.open]
        number = oracle.rounds - (oracle.end is not None)
        target = rules.target or 0
        drew = still and oracle.events[-1:] == [(oracle.seat, "draw")]
        return {
            "placed": self.by_seat(self.placed(), rules.tiles),
            "left": one_hot(left, pips),
            "right": one_hot(right, pips),
            "left_by": self.place(oracle.ends_by()[0]),
            "right_by": self.place(oracle.ends_by()[1]),
            "hand_size": self.by_seat([len(hand) for hand in oracle.hands]),
            "stock": [undrawn, drawable],
            "draws": self.by_seat(self.counts("draw")),
            "passes": self.by_seat(self.counts("pass")),
            "drew": [int(drew)],
            "lacks": self.by_seat(lacks, pips),
            "not_dealt": tile_bytes(oracle.not_dealt(), rules),
            "leader": self.place(oracle.lead_seat),
            "to_move": self.place(oracle.seat),
            "score": self.by_seat(self.side_of(oracle.scores)),
            "open": self.by_seat(self.side_of(is_open)),
            "aside": self.by_seat(self.side_of(oracle.aside)),
            "match": [target, number],
            "rules": self.switches(),
        }

    def observation(self) -> Parts:
        return {"hand": tile_bytes(self.oracle.hands[self.seat], self.rules)} | self.public()

    def state(self) -> Parts:
        """All hands and each boneyard tile's place in the drawing order, then the rest."""
        hands = [tile_bytes(hand, self.rules) for hand in self.oracle.hands]
        order = [0] * self.rules.tiles
        for place, tile in enumerate(self.oracle.boneyard, 1):
            order[NUMBER[tile]] = place
        hidden = {"hands": self.by_seat(hands, self.rules.tiles), "boneyard": order}
        return hidden | self.public()

    def history(self) -> list[list[int]]:
        """Own dealt tiles, lowest first, then every event as this seat saw it."""
        hands, _ = self.oracle.dealt
        rows = [[1, 0, 1 + n, 0] for n in sorted(NUMBER[tile] for tile in hands[self.seat])]
        drawn = iter(self.oracle.drawn)
        for seat, move in self.oracle.events:
            tile, end = 0, 0
            if move == "draw":
                kind = 4
                taken = NUMBER[next(drawn)[1]]
                tile = 1 + taken if seat == self.seat else 0
            elif move in ("both", "pass"):
                kind = 3 if move == "both" else 5
            else:
                kind, tile = 2, 1 + NUMBER[tile_of(move.split()[0])]
                end = 2 if move.endswith("R") else 1
            rows.append([kind, (seat - self.seat) % self.rules.seats, tile, end])
        return rows


def positions(table: Table, rng: random.Random) -> Iterator[None]:
    """Every position of a random game, the ends of the rounds too."""
    yield
    while table.oracle.over is None:
        if table.oracle.end is not None:
            table.next_round()
        else:
            table.play(rng.choice(table.oracle.legal()))
        yield


def random_positions(seed: int, games: int = 8) -> Iterator[Table]:
    rng = random.Random(seed)
    for _ in range(games):
        table = Table(random_rules(rng), rng.getrandbits(64))
        for _ in positions(table, rng):
            yield table


def check_parts(found: np.ndarray, layout: observation.Layout, expected: Parts) -> None:
    assert list(layout) == list(expected), "the parts, in their order"
    end = 0
    for name, values in expected.items():
        part, shape = layout[name]
        assert (part.start, part.stop) == (end, end + len(values)), name
        assert np.prod(shape) == len(values), name
        assert list(found[part]) == [min(value, 255) for value in values], name
        end = part.stop
    assert found.dtype == np.uint8
    assert len(found) == end


@pytest.mark.parametrize("seed", range(12))
def test_every_seat_observes_what_it_may_know_at_any_time(seed: int) -> None:
    for table in random_positions(seed):
        rules = table.rules
        for seat in range(rules.seats):
            for places in range(rules.seats, 5):
                viewer = Viewer(table.oracle, rules, seat, places)
                layout = observation.observation_layout(rules, places)
                found = observed(table.games, rules, seat, places)
                check_parts(found, layout, viewer.observation())


@pytest.mark.parametrize("seed", range(12, 18))
def test_the_state_shows_all_hands_and_the_drawing_order(seed: int) -> None:
    for table in random_positions(seed):
        rules = table.rules
        for seat in range(rules.seats):
            for places in {rules.seats, 4}:
                viewer = Viewer(table.oracle, rules, seat, places)
                found = state_of(table.games, rules, seat, places)
                check_parts(found, observation.state_layout(rules, places), viewer.state())


@pytest.mark.parametrize("seed", range(18, 30))
def test_the_history_recalls_the_round_perfectly(seed: int) -> None:
    for table in random_positions(seed):
        for seat in range(table.rules.seats):
            rows = Viewer(table.oracle, table.rules, seat, 4).history()
            found = history_of(table.games, table.rules, seat)
            assert found.dtype == np.uint8
            assert found[: len(rows)].tolist() == rows
            assert not found[len(rows) :].any()


# ---------------------------------------------------------------- the observation is enough


def legal_by_observation(vector: np.ndarray, layout: observation.Layout) -> set[int]:
    """The legal actions of the observer, who is to move, from its observation alone."""
    part = {name: vector[s].reshape(shape) for name, (s, shape) in layout.items()}
    switches = switches_of(part["rules"])
    hand = {TILE[t] for t in np.flatnonzero(part["hand"]).tolist()}
    tiles = len(part["hand"])
    if not part["left"].any():
        return {2 * NUMBER[tile] for tile in leads(hand, switches, int(part["match"][1]))}
    left, right = int(part["left"].argmax()), int(part["right"].argmax())
    actions = {2 * NUMBER[tile] for tile in hand if left in tile}
    if left != right:
        actions |= {2 * NUMBER[tile] + 1 for tile in hand if right in tile}
        if switches["double_pair"] and {(left, left), (right, right)} <= hand:
            actions.add(2 * tiles + 2)
    stuck = switches["draw"] == "one" and part["drew"][0]
    return actions or {2 * tiles + (0 if part["stock"][1] and not stuck else 1)}


def switches_of(part: np.ndarray) -> dict[str, Any]:
    """The part `rules` read back."""
    switches: dict[str, Any] = {}
    offset = 0
    for name in SWITCH_CHOICES:
        size = len(CHOICES[name])
        switches[name] = CHOICES[name][int(part[offset : offset + size].argmax())]
        offset += size
    return switches | dict(zip(SWITCH_VALUES, part[offset:].tolist(), strict=True))


def leads(hand: set[Any], switches: dict[str, Any], round_number: int) -> set[Any]:
    """The tiles that the leader may lead: one where the lead is forced."""
    by_rule = round_number == 0 or switches["next_lead"] == "same"
    if switches["lead"] in ("seat", "random") or switches["lead_tile"] or not by_rule:
        return hand
    doubles = {(a, b) for a, b in hand if a == b}
    if switches["lead"] == "highest_double":
        return {max(doubles or hand, key=lambda tile: tile[::-1])}
    return {min(doubles - {(0, 0)} or doubles or hand, key=lambda tile: tile[::-1])}


@pytest.mark.parametrize("seed", range(30, 50))
def test_the_observation_alone_tells_the_legal_actions(seed: int) -> None:
    for table in random_positions(seed):
        seat, rules = table.oracle.seat, table.rules
        if seat is None:
            continue
        vector = observed(table.games, rules, seat, rules.seats)
        told = legal_by_observation(vector, observation.observation_layout(rules))
        assert told == {action_of(move, rules.tiles) for move in table.oracle.legal()}
        assert told == set(np.flatnonzero(mask_of(table.games, rules)).tolist())


def test_the_mask_is_zero_at_the_end_and_between_two_rounds() -> None:
    for table in random_positions(50, games=40):
        mask = mask_of(table.games, table.rules)
        assert mask.dtype == np.int8
        assert mask.any() == (table.oracle.seat is not None)


def test_numbers_above_255_are_written_as_255() -> None:
    rules = Rules.preset("cabra", target=1000, opening=300, blank_double=400)
    games = engine.new_games(rules, 1)
    engine.reset(games[0])
    games[0].scores[0], games[0].scores[1] = 255, 256
    games[0].aside[0], games[0].aside[1] = 299, 7
    games[0].round_number = 700
    layout = observation.observation_layout(rules)
    found = observed(games, rules, 1, 2)
    assert found[layout["score"][0]].tolist() == [255, 255]
    assert found[layout["aside"][0]].tolist() == [7, 255]
    assert found[layout["match"][0]].tolist() == [255, 255]
    switches = switches_of(found[layout["rules"][0]])
    assert (switches["blank_double"], switches["opening"]) == (255, 255)


def test_a_long_match_is_observed_beyond_round_255() -> None:
    rules = {"preset": "sin_robo_series", "set": 1, "seats": 2, "target": 1000, "max_rounds": 300}
    table = Table(rules, 3)
    for _ in positions(table, random.Random(3)):
        viewer = Viewer(table.oracle, table.rules, 0, 2)
        layout = observation.observation_layout(table.rules)
        check_parts(observed(table.games, table.rules, 0, 2), layout, viewer.observation())
    assert table.oracle.rounds == 300


# ---------------------------------------------------------------- observe_as


@pytest.mark.parametrize("places", [1, 5, 2.0, True, "4"])
def test_observe_as_takes_the_seats_to_four(places: Any) -> None:
    with pytest.raises(ValueError, match="observe_as"):
        observation.observation_layout(Rules(seats=2), places)
    with pytest.raises(ValueError, match="observe_as: found 2, expected 3 to 4"):
        observation.state_layout(Rules(seats=3), 2)


def test_the_same_length_for_two_three_and_four_seats_as_four() -> None:
    sizes = {
        observation.layout_size(observation.observation_layout(Rules(seats=seats), 4))
        for seats in (2, 3, 4)
    }
    assert len(sizes) == 1
