"""Figures of duplicate play: worked by hand, and intervals that cover as often as they say."""

import json
import math
import re

import numpy as np
import pytest

from agents.result import BLOCKS, LEAST_DEALS, Budget, Result, Tally
from domino_env.rules import Rules

TWO = Rules.preset("sin_robo")
THREE = Rules.preset("sin_robo", seats=3)


def tally(rewards, rules=TWO):
    """The tally of A's rewards in some deals, a row a place; points are twice as many."""
    counted = Tally("a", "b", rules, 0)
    counted.add(np.array(rewards, float), 2 * np.array(rewards, float))
    return counted


# ---------------------------------------------------------------- by hand


def test_figures_are_those_worked_out_by_hand():
    result = tally([[1, 1, -1, 1], [-1, 1, 1, 0]]).result()
    # Means of the deals: 0, 1, 0, 1/2. Of mean 3/8 and squared distances 9, 25, 9, 1, of 64.
    assert (result.deals, result.games) == (4, 8)
    assert result.mean == 3 / 8
    assert result.ci95 == pytest.approx(1.96 * math.sqrt(44 / 64 / 3 / 4))
    assert (result.wins, result.draws, result.losses) == (5 / 8, 1 / 8, 2 / 8)
    assert result.points == 3 / 4


def test_the_interval_is_that_of_the_deals_and_not_of_the_games():
    # Whoever has the first place wins: 20 games, but no deal differs from another.
    result = tally([[1] * 10, [-1] * 10]).result()
    assert (result.mean, result.ci95) == (0, 0)
    assert math.isnan(result.fewer_games)
    assert result.to_dict()["fewer_games"] is None


def test_fewer_games_is_what_plain_play_would_take():
    # Games have the mean 1/2 and the variance 1 - 1/4; means of deals, 0 or 1, a variance of 1/4.
    # Plain play: 3/4 a game. Duplicate play: 2 games for 1/4, as 1/2 a game: 1.5 times fewer.
    assert tally([[1, 1, -1, 1], [-1, 1, 1, 1]]).result().fewer_games == 1.5


def test_games_that_have_nothing_in_common_are_worth_the_same_in_duplicate_play():
    random = np.random.default_rng(1)
    rewards = random.choice([-1, 1], (2, 100_000))
    assert tally(rewards).result().fewer_games == pytest.approx(1, abs=0.02)


def test_a_single_deal_has_no_interval():
    result = tally([[1], [1]]).result()
    assert math.isnan(result.ci95)
    assert result.interval() == "+1.000 ± ?"
    assert result.to_dict()["ci95"] is None


@pytest.mark.parametrize("cut", [1, 7, BLOCKS, 150])
def test_deals_may_come_in_any_parts(cut):
    random = np.random.default_rng(2)
    rewards = random.choice([1, -0.5, 0], (3, 200))
    parts = tally(rewards[:, :cut], THREE)
    parts.add(rewards[:, cut:], 2 * rewards[:, cut:])
    assert parts.result() == tally(rewards, THREE).result()


@pytest.mark.parametrize(
    ("rules", "rewards", "won"),
    [
        (TWO, [[1], [-1]], 1),
        (TWO, [[0], [1]], 1.5),  # a draw is half a win
        (THREE, [[1], [-0.5], [-0.5]], 1),
        (THREE, [[0], [0], [0]], 1),  # a draw of all: a third each
        (THREE.replace(reward="points"), [[7], [0], [-1.5]], 4 / 3),
        (Rules.preset("cabra", seats=3), [[0.5], [-1], [0.5]], 2),  # one goat
        (Rules.preset("cabra", seats=3), [[2], [-1], [0]], 5 / 3),  # two goats, one, three
    ],
)
def test_a_draw_counts_what_an_equal_gets(rules, rewards, won):
    assert tally(rewards, rules).result().blocks == (pytest.approx(won * rules.sides),)


def test_deal_i_is_in_block_i_modulo_their_number():
    rewards = -np.ones((2, BLOCKS + 3))
    rewards[:, [1, BLOCKS + 1, 2]] = 1
    blocks = tally(rewards).result().blocks
    assert blocks == (0, 4 * 2, 2 * 2, *[0] * (BLOCKS - 3))


# ---------------------------------------------------------------- known strength


def deals_of_known_mean(random, deals):
    """Two games a deal: the luck of the deal wins one and loses one, or skill decides both."""
    luck = random.random(deals) < 0.6
    skill = np.where(random.random(deals) < 0.55, 1, -1)
    return np.where(luck, [[1], [-1]], skill)  # of mean 0.4 * 0.1


def test_the_interval_holds_the_known_mean_as_often_as_it_says():
    random = np.random.default_rng(3)
    held = []
    for _ in range(3000):
        result = tally(deals_of_known_mean(random, 300)).result()
        held.append(abs(result.mean - 0.04) <= result.ci95)
    assert np.mean(held) == pytest.approx(0.95, abs=0.012)  # three standard errors


def played_until(budget, random, part=100):
    """The result when the budget is spent, in parts."""
    counted, result, before = Tally("a", "b", TWO, 0), None, 0
    while result is None or not (result.deals == budget.most or budget.is_spent(before, result)):
        before = counted.deals
        rewards = deals_of_known_mean(random, min(part, budget.most - before))
        counted.add(rewards, rewards)
        result = counted.result()
    return result


def test_an_interval_that_was_played_down_to_a_width_holds_it_too():
    random = np.random.default_rng(4)
    held = []
    for _ in range(1000):
        result = played_until(Budget(None, until=0.05), random)
        assert result.ci95 <= 0.05
        held.append(abs(result.mean - 0.04) <= result.ci95)
    assert np.mean(held) == pytest.approx(0.95, abs=0.02)


# ---------------------------------------------------------------- how many deals


def result_of(deals, mean, ci95):
    return Result("a", "b", TWO, 0, mean, ci95, deals, 2 * deals, 0.5, 0, 0.5, mean)


def looks(budget, sizes):
    """The numbers of deals, of `sizes` one after another, at which a clear result ends it."""
    return [
        size
        for before, size in zip([0, *sizes], sizes, strict=False)
        if budget.is_spent(before, result_of(size, 0.5, 0.1))
    ]


def test_until_clear_is_looked_at_after_n_deals_twice_and_four_times_as_many():
    budget = Budget(16_000, until_clear=1000)
    assert looks(budget, range(1, 16_001)) == [1000, 2000, 4000, 8000, 16_000]
    assert looks(budget, range(64, 16_001, 64)) == [1024, 2048, 4032, 8000, 16_000]
    assert looks(budget, range(5000, 16_001, 5000)) == [5000, 10_000]


@pytest.mark.parametrize(
    ("mean", "ci95", "clear"), [(0.2, 0.1, True), (-0.2, 0.1, True), (0.1, 0.1, False)]
)
def test_a_result_is_clear_if_the_interval_does_not_hold_zero(mean, ci95, clear):
    assert Budget(None, until_clear=10).is_spent(0, result_of(10, mean, ci95)) is clear


def test_until_looks_only_once_the_spread_is_known():
    budget = Budget(None, until=0.1)
    assert not budget.is_spent(0, result_of(LEAST_DEALS - 1, 0, 0))
    assert budget.is_spent(0, result_of(LEAST_DEALS, 0, 0.1))
    assert not budget.is_spent(0, result_of(LEAST_DEALS, 0, 0.1001))


def test_all_deals_are_played_without_a_condition():
    assert not Budget(100).is_spent(0, result_of(50, 1, 0))
    assert Budget(None, until=0.1).most == 2**32
    assert Budget(70, until=0.1).most == 70


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"deals": None}, "deals: found None, expected an integer of at least 1"),
        ({"deals": 0, "until": 0.1}, "deals: found 0, expected 1 to 4294967296"),
        ({"deals": 5, "until": 0.0}, "until: found 0.0, expected a half width above 0"),
        ({"deals": 5, "until": -0.1}, "until: found -0.1, expected a half width above 0"),
        ({"deals": 5, "until": math.nan}, "until: found nan, expected a half width above 0"),
        ({"deals": 5, "until": math.inf}, "until: found inf, expected a half width above 0"),
        ({"deals": 5, "until": "x"}, "until: found 'x', expected a half width above 0"),
        ({"deals": 5, "until": True}, "until: found True, expected a half width above 0"),
        ({"deals": 5, "until_clear": 0}, "until_clear: found 0, expected 1 to 4294967296"),
        ({"deals": 5, "until": 0.1, "until_clear": 5}, "until: found until_clear too, expected"),
    ],
)
def test_what_is_no_budget_is_told(fields, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        Budget(**fields)


@pytest.mark.parametrize(
    ("fields", "plain"),
    [
        ((np.int64(5), np.float32(0.5)), "[5, 0.5, null]"),
        ((np.uint8(5), None, np.int16(2)), "[5, null, 2]"),
        ((None, 1), "[null, 1.0, null]"),
    ],
)
def test_the_numbers_of_a_budget_are_plain(fields, plain):
    assert json.dumps(list(vars(Budget(*fields)).values())) == plain


@pytest.mark.parametrize(
    ("budget", "text"),
    [
        (Budget(20_000), "20,000 deals"),
        (Budget(None, until=0.005), "deals, until ± 0.005"),
        (Budget(9000, until=0.01), "at most 9,000 deals, until ± 0.01"),
        (Budget(16_000, until_clear=1000), "at most 16,000 deals, until clear of 0 after 1,000"),
    ],
)
def test_a_budget_reads_well(budget, text):
    assert str(budget) == text
