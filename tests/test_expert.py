"""`expert`: where it thinks the tiles are, what it makes of a move; how well all bots play."""

from functools import cache
from math import comb

import numpy as np
import pytest
from test_bots import SETTINGS, dealt, lead_rules, moves_with_chance

from agents import View, expert, load
from agents.chances import BONEYARD, find_chances, none_chance
from agents.evaluate import evaluate
from domino_env.rules import Rules
from domino_env.state import (
    MAX_SEATS,
)
from domino_env.tiles import parse_tile
from domino_env.vector import DominoVec
from domino_env.worlds import belief


def chances(view):
    """The chances of each tile to lie with each seat and in the boneyard, float64 [B, 5, T]."""
    games, plans = expert.new_room()
    found = np.zeros((len(view), MAX_SEATS + 1, 55))
    for i in range(len(view)):
        games[0] = view.games[i]
        find_chances(games[0], int(view.seat[i]), plans[0], found[i])
    return found[:, :, : view.rules.tiles]


def shown(game):
    return View.of(game.rules, game.games, frozenset({"games"}))


def features(game):
    """The features of each legal move, by name."""
    view = shown(game)
    assert view.games is not None
    found = np.zeros((*view.mask.shape, expert.K))
    weights, scores = np.zeros((1, expert.K)), np.zeros(view.mask.shape)
    expert.weigh_each(view.games, view.mask, weights, expert.new_room(), scores, found)
    return {
        move: dict(zip(expert.FEATURES, found[0, action].tolist(), strict=True))
        for move, action in zip(game.legal_moves(), game.legal_actions(), strict=True)
    }


def after_a_pass():
    """2 seats with 5 tiles each; seat 0 has led 6-6, and seat 1 has passed."""
    rules = Rules.preset("sin_robo", lead="seat", hand_size=5)
    game = dealt(rules, "6-6 6-1 6-2 1-0 1-1", "5-5 5-4 4-4 4-3 3-3")
    game.play("6-6")
    game.play("pass")
    return game


# ---------------------------------------------------------------- where the tiles are


def test_a_tile_of_a_pip_that_the_other_seat_lacks_is_in_the_boneyard():
    # 23 tiles are unseen. 6-0, 6-3, 6-4, 6-5 lie in the boneyard, the 5 tiles among the other 19.
    found = chances(shown(after_a_pass()))[0]
    assert found[1, parse_tile("6-5")] == 0
    assert found[BONEYARD, parse_tile("6-5")] == 1
    assert found[1, parse_tile("5-5")] == pytest.approx(5 / 19)
    assert found[BONEYARD, parse_tile("5-5")] == pytest.approx(14 / 19)
    assert found[:, parse_tile("6-6")].tolist() == found[:, parse_tile("1-0")].tolist() == [0] * 5


def test_a_tile_that_one_seat_alone_can_hold_is_certain():
    rules = Rules.preset("sin_robo", seats=3, set=2, hand_size=2, lead="seat")
    game = dealt(rules, "2-2 2-1", "0-0 1-1", "2-0 1-0")
    game.play("2-2")
    game.play("pass")
    found = chances(shown(game))[0]  # of seat 2: 0-0 1-1 2-1 are out, and seat 1 has no 2
    assert found[0, parse_tile("2-1")] == 1
    assert found[1, parse_tile("0-0")] == found[1, parse_tile("1-1")] == 1
    assert found.sum() == 3


@pytest.mark.parametrize("setting", SETTINGS, ids=str)
def test_the_chances_are_those_of_a_count_of_all_deals_or_near(setting):
    rules = Rules.from_dict(setting)
    vec = DominoVec(150, rules, seed=8, observation=False)
    vec.reset()
    random = load("random", seed=8)
    for _ in range(8):
        vec.step(random.act(random.view(rules, vec.games)))
    view = View.of(rules, vec.games, frozenset({"games"}))
    exact, found = belief(view), chances(view)
    for i in range(len(view)):
        seats = [(int(view.seat[i]) + k) % rules.seats for k in range(1, rules.seats)]
        near = found[i, [*seats, BONEYARD]]
        assert np.abs(near - exact[i, 1:]).max() < (0.25 if rules.draw != "none" else 0.1)
        near -= exact[i, 1:]
        assert np.sqrt((near**2).mean()) < 0.03


def test_the_chance_to_hold_none_of_some_tiles_is_hypergeometric():
    assert none_chance(19.0, 5, 4) == pytest.approx(comb(15, 5) / comb(19, 5))
    assert none_chance(19.0, 5, 0) == 1
    assert none_chance(6.0, 5, 2) == 0  # one of the two at least is among the 5


# ---------------------------------------------------------------- what it makes of a move


def test_the_features_of_a_move_are_those_worked_out_by_hand():
    found = features(after_a_pass())
    six_one = found["6-1 L"]  # leaves 1 and 6, keeps 6-2 1-0 1-1
    assert six_one["pips"] == 0.7
    assert six_one["pips_early"] == pytest.approx(0.7 * 3 / 5)
    assert (six_one["doubles"], six_one["second_tile"]) == (0, 0)
    assert six_one["variety"] == 4  # 0, 1, 2, 6
    assert six_one["lonely_doubles"] == 0  # 1-0 goes with 1-1
    assert (six_one["follow"], six_one["ends_held"]) == (3, 2)
    # Of the 1s 1-0 and 1-1 in hand, 2-1 3-1 4-1 5-1 unseen; of the 6s 6-2, and 6-0 6-3 6-4 6-5.
    assert six_one["control"] == pytest.approx(2 / 6 + 1 / 5)
    assert six_one["ends_equal"] == 0
    assert (six_one["over_own"], six_one["over_next"], six_one["over_partner"]) == (1, 0, 0)
    none = comb(15, 5) / comb(19, 5)  # it lacks 6, so four 1s of 19 tiles fit
    assert six_one["none_next"] == pytest.approx(none)
    assert six_one["next_goes_out"] == pytest.approx((1 - none) / 25)
    assert six_one["turn_returns"] == pytest.approx(none)
    assert six_one["answer_back"] == 1  # it can only cover the 1, and 6-2 fits the 6
    assert (six_one["none_second"], six_one["none_third"], six_one["block"]) == (0, 0, 0)
    six_two = found["6-2 L"]  # leaves 2 and 6: six 2s of the 19 fit
    assert six_two["none_next"] == pytest.approx(comb(13, 5) / comb(19, 5))


def test_the_turn_returns_where_the_only_other_seat_has_no_answer():
    rules = Rules.preset("sin_robo", set=2, hand_size=2, lead="seat")
    game = dealt(rules, "2-1 0-0", "1-0 2-2")
    game.play("2-1")
    found = features(game)  # of seat 1: seat 0 has one of 0-0, 1-1 and 2-0, the others lie aside
    assert found["1-0 L"]["none_next"] == pytest.approx(1 / 3)  # leaves 0 and 2: 1-1 fits neither
    assert found["1-0 L"]["turn_returns"] == pytest.approx(1 / 3)  # 2-2 fits
    assert found["1-0 L"]["block"] == 0
    assert found["2-2 R"]["none_next"] == pytest.approx(1 / 3)  # leaves 1 and 2: 0-0 fits neither


def test_a_sure_block_is_made_with_a_light_hand_and_not_with_a_heavy_one():
    rules = Rules.preset("sin_robo", set=2, hand_size=2, lead="seat")
    light = features(dealt(rules, "2-2 0-0", "1-0 1-1"))["2-2"]
    # Leads 2-2, keeps nothing that fits; the other has 2-1 or 2-0 unless both lie in the boneyard:
    # 2 of the 4 tiles 1-0 1-1 2-0 2-1, so with chance 1/6.
    assert light["none_next"] == pytest.approx(1 / 6)
    # It would then have 1-0 and 1-1, 3 pips against none; against 2 and 1 pips in the other case.
    assert light["block"] == pytest.approx(1 / 12)
    heavy = features(dealt(rules, "2-2 1-1", "1-0 0-0"))["2-2"]
    assert heavy["block"] == pytest.approx(-1 / 12)
    # A drawn game does not end there.
    drawn = Rules.preset("estandar", set=2, hand_size=2, lead="seat")
    assert features(dealt(drawn, "2-2 0-0", "1-0 1-1"))["2-2"]["block"] == 0


def test_it_goes_out_where_it_can():
    rules = Rules.preset("cabra", lead="seat", hand_size=2)
    game = dealt(rules, "6-5 1-0", "6-6 5-5")
    game.play("6-5")
    scores = expert.Expert().scores(shown(game))[0, game.legal_actions()]
    assert game.legal_moves() == ["5-5 L", "6-6 R", "both"]
    assert (scores > expert.OUT / 2).tolist() == [False, False, True]


def test_it_gets_rid_of_the_blank_double_in_cabra_and_not_in_sin_robo():
    hand, other = "0-0 6-6 6-5", "5-1 4-1 3-2"
    assert moves_with_chance(load("expert"), dealt(lead_rules("cabra"), hand, other)) == {"0-0": 1}
    found = moves_with_chance(load("expert"), dealt(lead_rules("sin_robo"), hand, other))
    assert found == {"6-6": 1}


def test_it_plays_for_the_points_in_a_match_and_else_for_what_is_rewarded():
    def goal(preset, **fields):
        return expert.objective(DominoVec(1, preset, seed=1, **fields).games)[0]

    assert goal("cabra") == goal("cabra", episode="round", reward="points")
    assert goal("cabra") == expert.BY_LOSER_POINTS
    assert goal("cabra", episode="round") == goal("sin_robo") == expert.BY_WIN
    assert goal("sin_robo_series") == goal("estandar", reward="points") == expert.BY_WINNER_POINTS


# ---------------------------------------------------------------- how well bots play


@pytest.mark.parametrize(
    ("name", "preset", "fields", "wins"),
    [
        ("double_first", "sin_robo", {"seats": 4, "teams": True}, 57.7),
        ("heaviest", "sin_robo", {"seats": 4, "teams": True}, 50.7),
        ("lightest", "sin_robo", {"seats": 4, "teams": True}, 45.7),
        ("double_first", "estandar", {}, 57.0),
        ("heaviest", "estandar", {}, 49.6),
    ],
)
def test_a_bot_wins_as_often_against_random_as_in_an_independent_program(
    name, preset, fields, wins
):
    result = evaluate(load(name), load("random"), Rules.preset(preset, **fields), 10_000, seed=4)
    error = 100 * result.ci95 / 1.96 / 2  # a share of wins moves by half of what the mean does
    assert 0.2 < error < 0.4
    assert 100 * result.wins == pytest.approx(wins, abs=4 * error)


OTHERS = ("random", "lightest", "heaviest", "double_first", "mobility", "blocker")


@cache
def against(other, preset, pairs):
    fields = {"seats": 4, "teams": True} if pairs else {}
    deals = {"cabra": 600, "sin_robo": 4000, "estandar": 1500}[preset]
    return evaluate(load("expert"), load(other), Rules.preset(preset, **fields), deals, seed=5)


@pytest.mark.parametrize("pairs", [False, True], ids=["2 seats", "pairs"])
@pytest.mark.parametrize("preset", ["cabra", "sin_robo", "estandar"])
@pytest.mark.parametrize("other", OTHERS)
def test_expert_beats_every_other_bot(other, preset, pairs):
    result = against(other, preset, pairs)
    assert result.mean - result.ci95 > 0, result.interval()
