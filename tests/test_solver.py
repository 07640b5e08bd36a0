"""The solver against plain minimax over the reference, against the `dominoes` package, by hand."""

import copy
import math
import random
from fractions import Fraction
from typing import Any

import dominoes
import numpy as np
import pytest
from oracle import Oracle
from support import Table, action_of, random_rules

from agents.solver import GENERATIONS, Payoff, Solver, Terms
from domino_env import engine, state
from domino_env.game import Game
from domino_env.rules import Rules

ALL, NONE = Terms(own=1, rest=1), Terms()
LOSE_ALL = Terms(own=-1, rest=-1)
DOMINOES = Payoff((LOSE_ALL, NONE, ALL), (LOSE_ALL, NONE, ALL))


def copied(oracle: Oracle) -> Oracle:
    """A copy that shares what a round does not change."""
    twin = copy.copy(oracle)
    for name in ("boneyard", "events", "drawn", "scores", "open", "aside", "rewards"):
        setattr(twin, name, list(getattr(oracle, name)))
    twin.hands = [set(hand) for hand in oracle.hands]
    return twin


def minimax(oracle: Oracle, hero: int) -> Fraction:
    """The reward of `hero` if its side does its best, and everyone else their worst to it."""
    if oracle.seat is None:
        return oracle.rewards[hero]
    ours = next(side for side in oracle.sides if hero in side)
    values = [minimax(after(oracle, move), hero) for move in oracle.legal()]
    return max(values) if oracle.seat in ours else min(values)


def after(oracle: Oracle, move: str) -> Oracle:
    twin = copied(oracle)
    twin.play(move)
    return twin


def late_position(rng: random.Random, rules: dict[str, Any]) -> Table | None:
    """A game in which few tiles are left, after random moves; None if it was over before."""
    table = Table(rules, rng.randrange(2**32))
    oracle = table.oracle
    few = rng.randint(4, 8)
    while oracle.seat is not None:
        drawable = len(oracle.boneyard) if oracle.rules["draw"] != "none" else 0
        if sum(map(len, oracle.hands)) + drawable <= few:
            return table
        table.play(rng.choice(oracle.legal()))
    return None


def round_rules(rng: random.Random, objective: str) -> dict[str, Any]:
    rules = random_rules(rng) | {"episode": "round", "reward": objective}
    return rules | {"max_rounds": 1}


@pytest.mark.parametrize("objective", ["win", "points"])
@pytest.mark.parametrize("seed", range(3))
def test_every_action_is_worth_what_plain_minimax_says(objective, seed):
    rng, compared = random.Random(seed), 0
    while compared < 60:
        rules = round_rules(rng, objective)
        table = late_position(rng, rules)
        if table is None or table.oracle.seat is None:
            continue
        compared += 1
        solver, hero = Solver(table.rules, objective), table.oracle.seat
        expected = np.full(table.rules.actions, np.nan)
        for move in table.oracle.legal():
            value = minimax(after(table.oracle, move), hero)
            expected[action_of(move, table.rules.tiles)] = float(value)
        found = solver.action_values(table.games)[0]
        np.testing.assert_allclose(found, expected, atol=1e-9, err_msg=f"{seed} {rules}")
        values, actions = solver.solve(table.games)
        assert values[0] == pytest.approx(np.nanmax(expected)), (seed, rules)
        assert expected[actions[0]] == pytest.approx(values[0]), (seed, rules)


def play_out(rules: Rules, objective: str, seed: int, most: int) -> tuple[float, float]:
    """The value of a deal to seat 0's side, and what the solver's moves then earn it."""
    games = Game(rules, seed=seed).games.copy()
    g: Any = games[0]
    solver = Solver(rules, objective, limit=most)
    first = None
    while int(g.end) == state.PLAYING:
        values, actions = solver.solve(games)
        value = values[0] if int(g.seat) % 2 == 0 else -values[0]
        first = value if first is None else first
        assert value == first
        engine.move(g, int(actions[0]))
    return first or 0.0, int(g.earned[0]) / state.UNIT


@pytest.mark.parametrize("objective", ["win", "points"])
@pytest.mark.parametrize(
    ("preset", "fields"),
    [
        ("sin_robo", {"seats": 4, "teams": True}),
        ("sin_robo", {"seats": 4, "teams": True, "lead_tile": "free", "team_block": "lowest_hand"}),
        ("sin_robo", {"lead": "random", "block_score": "gross"}),
        ("estandar", {"set": 4}),
        ("cabra", {"set": 4}),
        ("cabra", {"seats": 4, "teams": True, "hand_size": 5, "draw": "one", "reserve": 2}),
    ],
)
def test_the_best_moves_of_whole_deals_earn_the_value_that_was_foretold(preset, fields, objective):
    rules = Rules.preset(preset, episode="round", reward=objective, **fields)
    for seed in range(2):
        value, earned = play_out(rules, objective, seed, 20_000_000)
        assert value == earned


def their_game(table: Table) -> dominoes.Game:
    """A position of four seats as one of the `dominoes` package."""
    oracle, board = table.oracle, dominoes.Board()
    for _, move in oracle.events:
        if move != "pass":
            board.add(dominoes.Domino(*map(int, move[:3].split("-"))), not move.endswith("R"))
    hands = [dominoes.Hand([dominoes.Domino(*t) for t in sorted(h)]) for h in oracle.hands]
    game = dominoes.Game(board, hands, [], oracle.seat, (), 0, None)
    game._update_valid_moves()
    return game


def test_full_deals_in_pairs_are_worth_what_the_dominoes_package_says():
    rng = random.Random(7)
    rules = {"preset": "sin_robo", "seats": 4, "teams": True}
    solver, compared = Solver(Rules.from_dict(rules), DOMINOES), 0
    while compared < 25:
        table = Table(rules, rng.randrange(2**32))
        for _ in range(10):
            if table.oracle.seat is not None:
                table.play(rng.choice(table.oracle.legal()))
        if table.oracle.seat is None or table.oracle.legal() == ["pass"]:
            continue
        compared += 1
        sign = -1 if table.oracle.seat % 2 else 1
        _, expected = dominoes.search.alphabeta(their_game(table))
        assert solver.solve(table.games)[0][0] == sign * expected


def dealt(hands: list[str], boneyard: str, *moves: str, **rules: Any) -> tuple[Solver, Any]:
    """A solver of points, and a position."""
    preset = rules.pop("preset", "sin_robo")
    resolved = Rules.preset(preset, episode="round", **rules)
    game = Game.deal(resolved, hands, boneyard)
    for move in moves:
        game.play(move)
    return Solver(resolved, "points"), game.games


def test_a_double_pair_that_ends_the_round_is_seen_before_the_lead():
    # After 2-1 seat 1 puts down both doubles and is out: 2-0 is left. After 2-0 it can only play
    # 2-2, and seat 0 is out with 2-1: 1-1 is left.
    fields: dict[str, Any] = {"preset": "cabra", "set": 2, "hand_size": 2, "lead": "seat"}
    solver, games = dealt(["2-1 2-0", "1-1 2-2"], "0-0 1-0", **fields)
    values = solver.action_values(games)[0]
    assert (values[2 * 4], values[2 * 3]) == (-2, 2)
    solver, games = dealt(["2-1 2-0", "1-1 2-2"], "0-0 1-0", **fields, double_pair=False)
    values = solver.action_values(games)[0]
    assert (values[2 * 4], values[2 * 3]) == (2, 2)


def test_the_pips_of_a_forced_end_are_counted_for_the_seat_to_move():
    # Seat 1 must answer 2-2 with 2-1, and seat 0 goes out with 1-0: seat 1 keeps the 2 of 1-1.
    solver, games = dealt(["2-2 1-0", "2-1 1-1"], "0-0 2-0", "2-2", set=2, hand_size=2)
    values, actions = solver.solve(games)
    assert (values[0], actions[0]) == (-2, 2 * 4)


def test_a_block_won_by_the_lightest_hand_is_worth_nothing_where_its_team_holds_more():
    # 0-0 blocks at once. Seat 0 has 2, so its team wins with 2 + 15 pips against 7 + 9.
    hands = ["0-0 1-1", "2-1 2-2", "4-4 4-3", "3-1 3-2"]
    fields: dict[str, Any] = {"set": 4, "seats": 4, "teams": True, "hand_size": 2, "lead": "seat"}
    fields["team_block"] = "lowest_hand"
    rest = "1-0 2-0 3-0 4-0 3-3 4-1 4-2"
    solver, games = dealt(hands, rest, **fields)
    assert solver.action_values(games)[0][0] == 0
    solver, games = dealt(hands, rest, **fields, block_score="gross")
    assert solver.action_values(games)[0][0] == 16


def test_a_seat_that_draws_one_tile_a_turn_passes_with_the_second_one_untouched():
    # Seat 1 draws 3-3 and passes; seat 0 is out with 2-0: 1-1, 2-1 and 3-3 are left.
    fields: dict[str, Any] = {"set": 3, "hand_size": 2, "lead": "seat", "draw": "one"}
    rest = "3-3 3-1 1-0 2-2 3-0 3-2"
    solver, games = dealt(["0-0 2-0", "1-1 2-1"], rest, "0-0", **fields)
    values, actions = solver.solve(games)
    assert (values[0], actions[0]) == (-11, 20)


def test_a_round_that_is_over_has_no_value_and_no_action():
    solver, games = dealt(["2-2", "2-1"], "0-0 1-0 1-1 2-0", "2-2", set=2, hand_size=1)
    values, actions = solver.solve(games)
    assert math.isnan(values[0])
    assert actions[0] == -1
    assert np.isnan(solver.action_values(games)).all()


def test_games_are_left_as_they_are_and_solved_one_as_many():
    rules = Rules.preset("sin_robo", seats=4, teams=True)
    games = np.concatenate([Game(rules, seed=seed).games for seed in range(5)])
    before = games.copy()
    solver = Solver(rules, "points")
    values, actions = solver.solve(games)
    table = solver.action_values(games)
    assert games.tobytes() == before.tobytes()
    for i in range(5):
        value, action = Solver(rules, "points").solve(games[i : i + 1])
        assert (value[0], action[0]) == (values[i], actions[i])
        assert table[i, actions[i]] == values[i] == np.nanmax(table[i])


def test_what_an_older_search_wrote_never_counts_also_when_generations_begin_anew():
    rules = Rules.preset("sin_robo", seats=4, teams=True)
    games = np.concatenate([Game(rules, seed=seed).games for seed in range(4)])
    expected = np.array([Solver(rules).solve(games[i : i + 1])[0][0] for i in range(4)])
    solver = Solver(rules)
    solver.solve(games[::-1])
    solver._search.generation = GENERATIONS - 2
    assert (solver.solve(games)[0] == expected).all()
    assert solver._search["generation"][0] == 2
    assert (solver.solve(games)[0] == expected).all()


def test_a_position_beyond_the_limit_has_no_value():
    rules = Rules.preset("sin_robo", seats=4, teams=True)
    games = Game(rules, seed=1).games
    solver = Solver(rules, limit=50)
    values, actions = solver.solve(games)
    assert math.isnan(values[0])
    assert actions[0] == -1
    assert solver.nodes <= 51
    assert np.isnan(solver.action_values(games)).all()
    assert Solver(rules, limit=10_000_000).solve(games)[0][0] == Solver(rules).solve(games)[0][0]


def test_a_depth_beyond_the_end_is_exact_and_a_small_one_takes_fewer_positions():
    rules = Rules.preset("sin_robo", seats=4, teams=True)
    games = Game(rules, seed=1).games
    exact, deep, shallow = (Solver(rules, "points", depth=depth) for depth in (None, 28, 2))
    assert exact.solve(games)[0][0] == deep.solve(games)[0][0]
    assert math.isfinite(shallow.solve(games)[0][0])
    assert shallow.nodes < exact.nodes / 20


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"payoff": "pips"}, "objective: found 'pips', expected win or points"),
        ({"limit": 0}, "limit: found 0, expected 1 or more"),
        ({"depth": -3}, "depth: found -3, expected 1 or more"),
        ({"payoff": Payoff((NONE, NONE, Terms(0.1)), (NONE, NONE, NONE))}, r"multiples of 1/6"),
        (
            {"payoff": Payoff((NONE, NONE, Terms(0, 0, 99)), (NONE, NONE, NONE))},
            "values above 2666",
        ),
    ],
)
def test_what_cannot_be_solved_is_named(arguments, message):
    with pytest.raises(ValueError, match=message):
        Solver(Rules(), **arguments)
