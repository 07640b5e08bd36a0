"""The engine beside the reference: random rules, random play, every field after every move."""

import random
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest
from oracle_rules import Tile, whole_set
from support import (
    NUMBER,
    TILE,
    Table,
    history_of,
    mask_of,
    move_of,
    pips_in,
    random_rules,
    tiles_in,
)

from domino_env import engine, state
from domino_env.rules import Rules

ENDS = {engine.PLAYING: None, engine.OUT: "out", engine.BLOCKED: "blocked"}
OVER = {engine.NOT_OVER: None, state.TERMINATED: "terminated", state.TRUNCATED: "truncated"}


def check_table(table: Table) -> None:
    """Tiles, ends, what has happened, and what it proves."""
    g, oracle, seats = table.g, table.oracle, range(table.rules.seats)
    held = [tiles_in(g.hands[p]) for p in range(4)]
    placed = [tiles_in(g.placed[p]) for p in range(4)]
    undrawn = [int(t) for t in g.boneyard[g.drawn : g.stock]]
    assert held == [*oracle.hands, set(), set()][:4]
    assert undrawn == [NUMBER[tile] for tile in oracle.boneyard]
    lying = [NUMBER[tile] for group in held + placed for tile in group]
    assert sorted(lying + undrawn) == list(range(table.rules.tiles)), "tiles conserved"
    assert [int(n) for n in g.hand_size] == [len(hand) for hand in held]
    assert (int(g.left), int(g.right)) == (oracle.ends or (-1, -1))
    by = [-1 if seat is None else seat for seat in oracle.ends_by()]
    assert [int(g.left_by), int(g.right_by)] == by
    for p in seats:
        own = [move for seat, move in oracle.events if seat == p]
        assert (int(g.draws[p]), int(g.passes[p])) == (own.count("draw"), own.count("pass"))
    assert [pips_in(g.lacks[p]) for p in seats] == oracle.lacks()
    assert tiles_in(g.not_dealt) == oracle.not_dealt()
    assert int(g.leader) == oracle.lead_seat


def check_turn(table: Table) -> None:
    """Who moves and what is legal: `is_legal` of every integer, `only_move` and the mask."""
    g, legal, tiles = table.g, table.oracle.legal(), table.rules.tiles
    assert int(g.seat) == table.oracle.seat
    assert table.legal() == legal
    assert legal, "some action is always legal"
    lead = not table.oracle.ends
    masked = np.flatnonzero(mask_of(table.games, table.rules) == 1)
    assert sorted(move_of(int(a), tiles, lead) for a in masked) == legal
    assert not any(engine.is_legal(g, a) for a in (-1, -2, 2 * tiles + 3, 2 * tiles + 4, 1 << 40))
    only = engine.only_move(g)
    assert (move_of(only, tiles, lead) if only >= 0 else None) == (
        legal[0] if len(legal) == 1 else None
    )


def check_record(table: Table) -> None:
    """The end of the round, points and rewards; nothing of them before the end."""
    g, oracle, rules = table.g, table.oracle, table.rules
    assert ENDS[int(g.end)] == oracle.end
    assert OVER[int(g.over)] == oracle.over
    winner = [] if oracle.winner is None else oracle.winner
    assert [p for p in range(4) if int(g.winner) >> p & 1] == winner
    pips = oracle.pips or [0] * rules.seats
    assert [int(n) for n in g.pips] == [*pips, 0, 0][:4]
    sides = len(oracle.sides)
    assert [int(n) for n in g.scores[:sides]] == oracle.scores
    assert [int(n) for n in g.aside[:sides]] == oracle.aside
    born_open = rules.score != "none" and rules.opening == 0  # then nothing was ever closed
    assert [bool(n) for n in g.opened[:sides]] == [born_open or is_open for is_open in oracle.open]
    earned = [Fraction(int(n), state.UNIT) for n in g.earned]
    assert earned[: rules.seats] == oracle.rewards
    assert sum(earned) == 0
    if rules.teams:
        assert earned[:2] == earned[2:]
    if oracle.end is not None:
        next_leader = -1 if oracle.next_leader is None else oracle.next_leader
        assert int(g.next_leader) == next_leader


def check_length(table: Table) -> None:
    """A round keeps within what `longest_round` says, and what the record has room for."""
    events = table.oracle.events
    draws = sum(move == "draw" for _, move in events)
    passes = sum(move == "pass" for _, move in events)
    found = (len(events) - draws - passes, draws, passes)
    bound = state.longest_round(table.rules)
    assert all(n <= most for n, most in zip(found, bound, strict=True)), (found, bound)
    assert int(table.g.event_count) == found[0] + found[1] <= state.MAX_EVENTS


def check(table: Table) -> None:
    check_table(table)
    check_record(table)
    if table.oracle.end is None:
        check_turn(table)
    else:
        check_length(table)


def play_out(table: Table, rng: random.Random) -> None:
    """Random play to the end of the game, checked after every move."""
    check(table)
    while table.oracle.over is None:
        if table.oracle.end is not None:
            table.next_round()
        else:
            table.play(rng.choice(table.oracle.legal()))
        check(table)


@pytest.mark.parametrize("seed", range(40))
def test_random_play_under_random_rules_goes_as_in_the_reference(seed: int) -> None:
    rng = random.Random(seed)
    for _ in range(15):
        rules = random_rules(rng)
        table = Table(rules, rng.getrandbits(64))
        try:
            play_out(table, rng)
        except Exception as error:
            error.add_note(f"seed {seed}, {rules}, events {table.oracle.events}")
            raise


@pytest.mark.parametrize("preset", ["cabra", "sin_robo_series", "estandar_series"])
@pytest.mark.parametrize(("seats", "teams"), [(2, False), (3, False), (4, False), (4, True)])
def test_a_whole_match_goes_as_in_the_reference(preset: str, seats: int, teams: bool) -> None:
    table = Table({"preset": preset, "seats": seats, "teams": teams}, seats)
    play_out(table, random.Random(seats))
    assert table.oracle.over == "terminated"


@pytest.mark.parametrize(("seats", "teams"), [(2, False), (3, False), (4, True)])
def test_the_last_leader_leads_again_after_a_drawn_round(seats: int, teams: bool) -> None:
    rng = random.Random(seats)
    telling = 0
    for seed in range(8):
        rules = {"preset": "sin_robo_series", "seats": seats, "teams": teams, "hand_size": 3}
        rules |= {"next_lead": "winner", "target": 1_000_000, "max_rounds": 60}
        table = Table(rules | {"team_block": rng.choice(["total", "lowest_hand"])}, seed)
        while table.oracle.over is None:
            if table.oracle.end is not None:
                table.next_round()
                continue
            table.play(rng.choice(table.oracle.legal()))
            if table.oracle.end is not None:
                check(table)
                telling += not table.oracle.winner and int(table.g.seat) != table.oracle.lead_seat
    assert telling, "drawn rounds that another seat ended"


def test_a_game_fits_into_512_bytes() -> None:
    assert engine.GAME.itemsize <= 512


def test_a_game_is_all_fields_so_that_equal_games_are_equal_bytes() -> None:
    sizes = [engine.GAME[name].itemsize for name in engine.GAME.names or ()]
    assert sum(sizes) == engine.GAME.itemsize  # a copy leaves anything in bytes between fields


# ---------------------------------------------------------------- the longest rounds


def test_no_rules_let_a_round_outgrow_the_room_for_its_events() -> None:
    longest = 0
    for set_, seats, draw in product(range(1, 10), (2, 3, 4), ("none", "one", "until_playable")):
        for hand in range(2, len(whole_set(set_)) // seats + 1):  # with one, the lead ends it
            rules = Rules(set=set_, seats=seats, draw=draw, hand_size=hand)
            plays, draws, _ = state.longest_round(rules)
            longest = max(longest, plays + draws)
    assert longest == 105  # two hands of 2 in double-nine: 51 draws, 3 plays and 51 more
    assert longest <= state.MAX_EVENTS <= np.iinfo(engine.GAME["event_count"]).max


@pytest.mark.parametrize("draw", ["one", "until_playable"])
def test_a_dealer_who_makes_rounds_long_cannot_overfill_them(draw: str) -> None:
    rules = {"preset": "estandar", "set": 9, "hand_size": 2, "lead": "seat", "draw": draw}
    longest = 0
    for seed in range(8):
        table = Table(rules, seed)
        g, rng = table.g, random.Random(seed)
        while int(g.over) == engine.NOT_OVER:
            stack_boneyard(g, rng)
            legal = [a for a in range(table.rules.actions) if engine.is_legal(g, a)]
            engine.move(g, max(legal, key=lambda a: lengthening(table.games, a, rng)))
        plays, draws, passes = state.longest_round(table.rules)
        assert int(g.event_count) <= plays + draws <= state.MAX_EVENTS
        assert int(g.moves) <= plays + draws + passes
        assert np.any(history_of(table.games, table.rules, 0)[int(g.moves) + 1])  # all are there
        longest = max(longest, int(g.event_count))
    assert longest >= 95, "the dealer does his work"


def stack_boneyard(g: Any, rng: random.Random) -> None:
    """Bring the tile to the front of the boneyard that keeps the round going best."""
    first, ends = int(g.drawn), (int(g.left), int(g.right))
    undrawn = range(first, int(g.stock))
    if undrawn and ends[0] >= 0:
        best = max(undrawn, key=lambda k: promise(g, TILE[int(g.boneyard[k])], ends, rng))
        g.boneyard[first], g.boneyard[best] = int(g.boneyard[best]), int(g.boneyard[first])


def promise(g: Any, tile: Tile, ends: tuple[int, int], rng: random.Random) -> float:
    """How well the round goes on if the seat to move draws this tile and puts it down."""
    after = [{ends[1 - i], sum(tile) - ends[i]} for i in (0, 1) if ends[i] in tile]
    return max([liveliness(g, new, 1 - int(g.seat)) for new in after], default=-1) + rng.random()


def lengthening(games: np.recarray, action: int, rng: random.Random) -> float:
    """How well the round goes on after a move."""
    g = games.copy()[0]
    engine.move(g, action)
    over = int(g.over) != engine.NOT_OVER
    ends = {int(g.left), int(g.right)}
    return -99 if over else liveliness(g, ends, int(g.seat)) + rng.random()


def liveliness(g: Any, ends: set[int], seat: int) -> int:
    """How many tiles fit these ends; best of all, none of the seat that has to move then."""
    hands = [tiles_in(g.hands[p]) for p in range(2)]
    undrawn = [TILE[int(t)] for t in g.boneyard[g.drawn : g.stock]]
    fitting = sum(bool(ends & set(tile)) for tile in [*hands[0], *hands[1], *undrawn])
    return fitting + 10 * (not any(ends & set(tile) for tile in hands[seat]))


# ---------------------------------------------------------------- forced moves


@pytest.mark.parametrize("seed", range(10))
def test_forced_moves_are_skipped_up_to_a_choice_or_the_last_chance_to_ask(seed: int) -> None:
    rng = random.Random(seed)
    for _ in range(10):
        games = engine.new_games(Rules.from_dict(random_rules(rng)), rng.getrandbits(64))
        engine.reset(games[0])
        while int(games[0].over) == engine.NOT_OVER:
            expected, asked = games.copy(), bool(games[0].asked)
            while engine.only_move(expected[0]) >= 0:
                after = expected.copy()
                engine.advance(after[0], engine.only_move(after[0]))
                if int(after[0].over) != engine.NOT_OVER and not asked:
                    break
                expected = after
                if int(after[0].over) != engine.NOT_OVER:
                    break
            engine.skip_forced(games, 0, games.copy())
            expected[0].asked = games[0].asked
            assert games.tobytes() == expected.tobytes()
            if int(games[0].over) == engine.NOT_OVER:
                assert int(games[0].asked) == 1
                numbers = range(2 * int(games[0].tiles) + 3)
                legal = [a for a in numbers if engine.is_legal(games[0], a)]
                engine.advance(games[0], rng.choice(legal))


def test_an_episode_without_any_choice_still_asks_once() -> None:
    games = engine.new_games(Rules(hand_size=1, lead="seat"), 0)
    engine.reset(games[0])
    engine.skip_forced(games, 0, games.copy())
    assert int(games[0].over) == engine.NOT_OVER  # the only move would have ended it
    assert int(games[0].asked) == 1
