"""Duplicate play: shared deals, every place, the deal as the unit, and agents that misbehave."""

import json
import math
import re
import statistics
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from support import Highest, Lowest

from agents import AgentError, load
from agents.evaluate import evaluate
from agents.games import play_games
from agents.tables import results_table
from domino_env.game import Game
from domino_env.rules import Rules


def by_hand(rules, seed, lowest_seats):
    """Rewards of one game, a move at a time: the lowest action in some seats, else the highest."""
    game = Game(rules, seed=seed)
    while not game.over:
        game.play(game.legal_actions()[0 if game.seat in lowest_seats else -1])
    return game.rewards


# ---------------------------------------------------------------- known results


@pytest.mark.parametrize(
    ("setting", "places"),
    [
        ({"preset": "sin_robo"}, [{0}, {1}]),
        ({"preset": "estandar", "seats": 3}, [{0}, {1}, {2}]),
        ({"preset": "sin_robo", "teams": True, "seats": 4}, [{0, 2}, {1, 3}]),
        ({"preset": "cabra", "target": 30}, [{0}, {1}]),
        ({"preset": "cabra", "teams": True, "seats": 4, "target": 30}, [{0, 2}, {1, 3}]),
        ({"preset": "sin_robo_series", "reward": "points", "target": 40}, [{0}, {1}]),
    ],
    ids=str,
)
def test_every_deal_is_played_once_for_every_place_of_a(setting, places):
    rules = Rules.from_dict(setting)
    with_points = rules.replace(reward="points")
    deals, seed = 12, 3
    first = seed * 2**32
    rewards, points = (
        [[by_hand(r, first + i, own)[min(own)] for own in places] for i in range(deals)]
        for r in (rules, with_points)
    )
    result = evaluate(Lowest(), Highest(), rules, deals, seed=seed)
    games = [reward for deal in rewards for reward in deal]
    means = [statistics.fmean(deal) for deal in rewards]
    assert result.mean == pytest.approx(statistics.fmean(games))
    assert result.ci95 == pytest.approx(1.96 * statistics.stdev(means) / math.sqrt(deals))
    assert (result.deals, result.games) == (deals, deals * len(places))
    assert result.wins == pytest.approx(sum(r > 0 for r in games) / len(games))
    assert result.draws == pytest.approx(sum(r == 0 for r in games) / len(games))
    assert result.losses == pytest.approx(sum(r < 0 for r in games) / len(games))
    assert result.points == pytest.approx(statistics.fmean(p for deal in points for p in deal))


def test_seat_0_with_one_tile_goes_out_so_each_place_wins_once():
    rules = Rules.preset("sin_robo", set=1, hand_size=1, lead="seat")
    result = evaluate(Lowest(), Highest(), rules, 30)
    assert (result.mean, result.ci95) == (0, 0)
    assert (result.wins, result.draws, result.losses) == (0.5, 0, 0.5)
    assert result.points == 0


def test_uniform_play_on_a_small_set_is_worth_what_the_exact_tree_says():
    fields = {"lead": "seat", "reward": "points", "block_score": "gross"}
    rules = Rules.preset("sin_robo", set=2, hand_size=2, **fields)
    rewards = play_games(rules, [load("random", 1), load("random", 2)], 0, 40_000).rewards[:, 0]
    error = rewards.std() / math.sqrt(len(rewards))
    assert rewards.mean() == pytest.approx(1.45, abs=4 * error)  # FIGURES.md, small games


@pytest.mark.parametrize("setting", [{"seats": 2}, {"seats": 3}, {"seats": 4, "teams": True}])
def test_a_deterministic_agent_against_itself_is_exactly_even_on_every_deal(setting):
    result = evaluate(Highest(), Highest(), Rules.preset("cabra", **setting, target=30), 20)
    assert result.mean == pytest.approx(0, abs=1e-9)
    assert result.ci95 == pytest.approx(0, abs=1e-9)
    assert result.points == pytest.approx(0, abs=1e-5)


@pytest.mark.parametrize("name", ["random", "heaviest"])
@pytest.mark.parametrize("setting", [{"seats": 2}, {"seats": 3}, {"seats": 4, "teams": True}])
def test_a_bot_against_itself_is_even_within_its_interval(name, setting):
    result = evaluate(load(name), load(name), Rules.preset("sin_robo", **setting), 4000, seed=1)
    assert 0 < result.ci95 < 0.05
    assert abs(result.mean) < 1.5 * result.ci95


@pytest.mark.parametrize(
    ("setting", "expected", "error"),
    [({"seats": 2}, 0.194, 0.019), ({"seats": 4, "teams": True}, 0.089, 0.020)],
    ids=["two seats", "pairs"],
)
def test_heaviest_against_random_is_as_others_found(setting, expected, error):
    rules = Rules.preset("sin_robo", **setting, lead_tile="free")
    result = evaluate(load("heaviest"), load("random"), rules, 10_000)
    assert result.mean == pytest.approx(expected, abs=1.5 * math.hypot(error, result.ci95))


def test_heaviest_wins_as_often_as_others_found_leading_and_second():
    rules = Rules.preset("sin_robo", lead="seat")
    heaviest, random = load("heaviest", 1), load("random", 2)
    leading = play_games(rules, [heaviest, random], 0, 40_000).rewards[:, 0]
    second = play_games(rules, [random, heaviest], 0, 40_000).rewards[:, 1]
    assert 100 * (leading > 0).mean() == pytest.approx(66.0, abs=0.8)  # three standard errors
    assert 100 * (second > 0).mean() == pytest.approx(48.8, abs=0.8)


# ---------------------------------------------------------------- statistics


def test_a_single_deal_has_no_interval():
    result = evaluate(Lowest(), Highest(), Rules.preset("sin_robo"), 1)
    assert math.isnan(result.ci95)
    assert result.to_dict()["ci95"] is None


def test_points_are_counted_whatever_the_reward_is():
    agents = load("heaviest"), load("random")
    rules = Rules.preset("cabra", target=40, seats=3)
    won = evaluate(*agents, rules, 50)
    points = evaluate(*agents, rules.replace(reward="points"), 50)
    assert won.points == pytest.approx(points.mean)
    assert won.mean != pytest.approx(points.mean)
    assert points.points == points.mean


def test_a_match_that_is_cut_off_is_drawn_and_still_has_points():
    rules = Rules.preset("cabra", max_rounds=1, target=1000)
    result = evaluate(Lowest(), Highest(), rules, 20)
    assert (result.mean, result.draws) == (0, 1)
    assert result.points != 0


@pytest.mark.slow
@pytest.mark.parametrize("fields", [{"seats": 2}, {"seats": 3}, {"seats": 4, "teams": True}])
def test_the_interval_holds_the_known_mean_as_often_as_it_says(fields):
    rules, held = Rules.preset("cabra", episode="round", **fields), []
    for seed in range(400):
        result = evaluate(load("random"), load("random"), rules, 60, seed)
        held.append(abs(result.mean) <= result.ci95)  # of equals it is 0
    assert np.mean(held) == pytest.approx(0.95, abs=0.033)  # three standard errors


# ---------------------------------------------------------------- reproducible, in parts


def test_the_same_call_gives_the_same_result_and_another_seed_another():
    rules, a, b = Rules.preset("sin_robo"), load("heaviest"), load("random", 7)
    first = evaluate(a, b, rules, 300, seed=5)
    assert evaluate(a, b, rules, 300, seed=5) == first
    assert evaluate(load("heaviest"), load("random"), rules, 300, seed=5) == first
    assert evaluate(a, b, rules, 300, seed=6).mean != first.mean


def test_how_many_deals_are_played_together_does_not_matter():
    rules = Rules.preset("sin_robo", seats=3)
    whole = evaluate(Lowest(), Highest(), rules, 25)
    a = Lowest()
    a.deals_at_once = 10
    assert evaluate(a, Highest(), rules, 25) == whole


def test_progress_is_told_the_result_so_far():
    a, told = Lowest(), []
    a.deals_at_once = 10
    result = evaluate(a, Highest(), Rules.preset("sin_robo"), 25, progress=told.append)
    assert [part.deals for part in told] == [10, 20, 25]
    assert told[-1] == result
    assert told[0] == evaluate(Lowest(), Highest(), Rules.preset("sin_robo"), 10)


def test_ctrl_c_gives_what_there_is():
    def interrupt(result):
        if result.deals == 20:
            raise KeyboardInterrupt

    a = Lowest()
    a.deals_at_once = 10
    result = evaluate(a, Highest(), Rules.preset("sin_robo"), 50, progress=interrupt)
    assert result.interrupted
    assert result == evaluate(Lowest(), Highest(), Rules.preset("sin_robo"), 20)


@pytest.mark.parametrize(
    "budget",
    [{"deals": 47}, {"deals": None, "until": 0.1}, {"deals": 80, "until_clear": 10}],
    ids=str,
)
@pytest.mark.parametrize(
    "table", [{"seats": 2}, {"seats": 3}, {"seats": 4, "teams": True}], ids=str
)
def test_an_interrupted_call_goes_on_to_the_result_of_a_whole_one(table, budget):
    rules, chunks = Rules.preset("cabra", **table, episode="round"), set()

    class Noting(Lowest):
        deals_at_once = 10

        def seed(self, seed):
            if isinstance(seed, tuple):
                chunks.add(seed[1])
            super().seed(seed)

    def duel(**how):
        chunks.clear()
        return evaluate(Noting(), load("random"), rules, seed=3, threads=1, **budget, **how)

    def interrupt(result):
        raise KeyboardInterrupt

    parts, part = [], None
    whole = duel(progress=parts.append)
    assert len(parts) > 3
    for so_far in parts:
        part = duel(progress=interrupt, begun=part)
        assert (part, part.interrupted) == (so_far, True)
        assert duel(begun=part) == whole
        assert not chunks & set(range(part.deals // 10))
    assert part == whole
    assert not chunks


def test_a_result_goes_on_to_more_deals():
    few = evaluate(Lowest(), Highest(), Rules.preset("sin_robo"), Lowest.deals_at_once)
    more = evaluate(Lowest(), Highest(), few.rules, few.deals + 10, begun=few)
    assert more == evaluate(Lowest(), Highest(), few.rules, few.deals + 10)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"a": "heaviest"}, "found a result of heaviest against highest with seed 0, expected one"),
        ({"seed": 1}, "found a result of lowest against highest with seed 1, expected one of this"),
        ({"rules": Rules.preset("cabra")}, "found a result of lowest against highest"),
        ({"sums": ()}, "found a result of lowest against highest"),
        ({"deals": 7}, "found 7 deals, expected a multiple of 10 and at most 20"),
        ({"deals": 30}, "found 30 deals, expected a multiple of 10 and at most 20"),
    ],
    ids=str,
)
def test_what_was_begun_by_another_call_is_an_error(changed, message):
    a = Lowest()
    a.deals_at_once = 10
    begun = replace(evaluate(a, Highest(), Rules.preset("sin_robo"), 10), **changed)
    with pytest.raises(ValueError, match=f"^begun: {message}"):
        evaluate(a, Highest(), Rules.preset("sin_robo"), 20, begun=begun)


def test_ctrl_c_before_there_is_a_result_is_passed_on():
    class Stopped(Lowest):
        def act(self, view):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        evaluate(Stopped(), Lowest(), Rules.preset("sin_robo"), 5)


# ---------------------------------------------------------------- what agents are asked


class Spy(Lowest):
    """Notes what it is shown."""

    uses = frozenset({"observation", "games"})

    def __init__(self):
        super().__init__()
        self.views = []

    def act(self, view):
        self.views.append(view)
        return super().act(view)


def test_an_agent_is_asked_for_its_own_seats_only_where_it_has_a_choice():
    a, b, rules = Spy(), Spy(), Rules.preset("cabra", seats=4, teams=True, episode="round")
    play_games(rules, [a, b, a, b], 0, 50)
    for agent, seats in ((a, {0, 2}), (b, {1, 3})):
        assert {int(seat) for view in agent.views for seat in view.seat} == seats
        assert min(view.mask.sum(axis=1).min() for view in agent.views) >= 2


def test_an_agent_is_shown_redacted_games_and_no_parts_that_it_does_not_use():
    a, rules = Spy(), Rules.preset("estandar")
    play_games(rules, [a, Highest()], 0, 20)
    for view in a.views:
        assert view.history is None
        assert view.observation is not None
        assert not view.games["random"].any()
        assert not view.games["hands"][:, 1:].any()
        assert view.games["hands"][:, 0].all()


# ---------------------------------------------------------------- agents that misbehave


class Bad(Spy):
    """Gives a wrong answer after so many questions."""

    name = "bad"

    def __init__(self, wrong, after=0):
        super().__init__()
        self.wrong, self.after, self.failed = wrong, after, []

    def act(self, view):
        actions = super().act(view)
        if len(self.views) <= self.after:
            return actions
        self.failed.append(view)
        return self.wrong(view, actions)


def error_of(bad, rules=None, deals=3):
    rules = rules or Rules.preset("cabra")
    with pytest.raises(AgentError) as raised:
        evaluate(bad, Highest(), rules, deals, threads=1)
    assert "\n" not in str(raised.value)
    return str(raised.value)


def position_in(message):
    return Game.from_record(json.loads(message.partition("position: ")[2]))


@pytest.mark.parametrize("after", [0, 3, 40])
def test_an_illegal_move_is_told_with_the_position_as_a_record(after):
    def wrong(view, actions):
        actions[-1] = np.flatnonzero(view.mask[-1] == 0)[0]
        return actions

    bad = Bad(wrong, after)
    message = error_of(bad, deals=30)
    game, view = position_in(message), bad.failed[0]
    assert game.seat == view.seat[-1]
    assert game.observe(game.seat).tolist() == view.observation[-1].tolist()
    legal = ", ".join(map(str, game.legal_actions()))
    assert re.match(rf"bad: gave the action \d+, expected one of {legal}; position: ", message)


def test_the_position_of_a_free_lead_has_its_deal():
    bad = Bad(lambda view, actions: actions - 1000)
    message = error_of(bad, Rules.preset("sin_robo", lead="random"))
    game = position_in(message)
    assert game.moves_made == 0
    assert game.observe(game.seat).tolist() == bad.failed[0].observation[0].tolist()
    assert "gave the action -" in message


@pytest.mark.parametrize(
    ("wrong", "found"),
    [
        (lambda view, actions: actions[:-1], "gave int64 of shape (2,), expected integers of"),
        (lambda view, actions: actions[:, None], "gave int64 of shape (3, 1), expected"),
        (lambda view, actions: actions.astype(float), "gave float64 of shape (3,), expected"),
        (lambda view, actions: None, "gave object of shape (), expected"),
    ],
)
def test_a_wrong_shape_or_dtype_is_told(wrong, found):
    message = error_of(Bad(wrong), Rules.preset("sin_robo", lead="seat"))
    assert message.startswith(f"bad: {found}")
    assert not position_in(message).over


def test_ragged_actions_are_told_with_the_position():
    bad = Bad(lambda view, actions: [[1], [1, 2]])
    message = error_of(bad, Rules.preset("sin_robo", lead="seat"))
    assert message.startswith("bad: raised ValueError: ")
    assert not position_in(message).over


def test_what_an_agent_writes_into_the_mask_makes_nothing_legal():
    def wrong(view, actions):
        view.mask[:] = 1
        return actions * 0 + view.mask.shape[1] - 3  # to draw, which sin_robo has not

    message = error_of(Bad(wrong), Rules.preset("sin_robo", lead="seat"))
    legal = ", ".join(map(str, position_in(message).legal_actions()))
    assert message.startswith(f"bad: gave the action 56, expected one of {legal}; position: ")


class Failing(Lowest):
    """Raises in what is not `act`."""

    name = "failing"

    def __init__(self, what):
        super().__init__()
        setattr(self, what, self.fail)

    def fail(self, *_):
        raise RuntimeError("no\nidea")


@pytest.mark.parametrize(
    ("what", "told"), [("view", "view raised"), ("copy", "copy raised"), ("seed", "copy raised")]
)
def test_an_agent_that_raises_elsewhere_is_named_too(what, told):
    assert error_of(Failing(what)) == f"failing: {told} RuntimeError: no idea"


def test_a_view_that_shows_illegal_actions_is_the_fault_of_its_agent():
    class Blind(Bad):
        def view(self, rules, games):
            view = super().view(rules, games)
            view.mask[:] = 1
            return view

    message = error_of(Blind(lambda view, actions: actions * 0 + 56), Rules.preset("sin_robo"))
    assert message.startswith("bad: gave the action 56, expected one of ")


@pytest.mark.parametrize("number", [0, -1, None, 1.5])
def test_an_agent_that_wants_no_number_of_deals_is_named(number):
    bad = Bad(lambda view, actions: actions)
    bad.deals_at_once = number
    assert "bad: evaluate raised ValueError: deals_at_once: found " in error_of(bad)


def test_a_number_that_is_no_action_is_told():
    message = error_of(Bad(lambda view, actions: actions + 10**6))
    assert "gave the action 1000" in message


def test_an_agent_that_raises_is_told_with_the_position_where_it_does():
    def wrong(view, actions):
        if 1 in view.seat and len(view) and (view.games["round_number"] == 1).any():
            raise RuntimeError("no\nidea")
        return actions

    message = error_of(Bad(wrong), Rules.preset("cabra", target=200))
    assert message.startswith("bad: raised RuntimeError: no idea; position: ")
    game = position_in(message)
    assert (game.seat, game.round) == (1, 1)


def test_an_agent_that_does_not_fit_the_rules_is_told_before_any_game():
    class Picky(Lowest):
        def check(self, rules):
            raise AgentError("picky: found seats 2, trained for 3")

    with pytest.raises(AgentError, match="trained for 3"):
        evaluate(Lowest(), Picky(), Rules.preset("cabra"), 5)


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("deals", 0, "deals: found 0, expected 1 to"),
        ("deals", 2.0, "deals: found 2.0, expected an integer"),
        ("seed", -1, "seed: found -1, expected 0 to"),
        ("seed", 2**31, "seed: found 2147483648, expected 0 to 2147483647"),
        ("threads", 0, "threads: found 0, expected 1 to 1024"),
        ("threads", 1.5, "threads: found 1.5, expected an integer"),
        ("until", 0, "until: found 0, expected a half width above 0"),
        ("until", "x", "until: found 'x', expected a half width above 0"),
        ("until", True, "until: found True, expected a half width above 0"),
        ("until_clear", 0, "until_clear: found 0, expected 1 to"),
    ],
)
def test_bad_numbers_are_told(name, value, message):
    numbers = {"deals": 5, "seed": 0, name: value}
    with pytest.raises(ValueError, match=message):
        evaluate(Lowest(), Highest(), Rules.preset("cabra"), **numbers)


# ---------------------------------------------------------------- results to read


def test_numbers_of_numpy_are_as_good_as_those_of_python():
    rules = Rules.preset("sin_robo")
    numbers: Any = [(np.int64(5), np.int64(3)), (np.int32(5), np.uint8(3))]
    for given in numbers:
        result = evaluate(load("heaviest", 1), load("random", 2), rules, *given)
        assert result == evaluate(load("heaviest", 1), load("random", 2), rules, 5, 3)
        assert json.loads(json.dumps(result.to_dict()))["seed"] == 3


def test_a_result_for_json_has_the_contract_keys():
    figures = evaluate(Lowest(), Highest(), Rules.preset("cabra", seats=3), 5).to_dict()
    assert list(figures)[4:] == [
        *("mean", "ci95", "deals", "games", "wins", "draws", "losses", "points", "fewer_games")
    ]
    assert figures["rules"] == {"preset": "cabra", "seats": 3}
    assert (figures["a"], figures["b"], figures["games"]) == ("lowest", "highest", 15)
    assert json.loads(json.dumps(figures)) == figures


def test_the_table_has_a_row_for_each_opponent():
    from rich.console import Console

    rules = Rules.preset("sin_robo", set=1, hand_size=1, lead="seat")
    results = [evaluate(Lowest(), b, rules, 1200) for b in (Highest(), load("random"))]
    console = Console(width=80)
    with console.capture() as captured:
        console.print(results_table(results))
    text = captured.get()
    assert "lowest in sin_robo, 2 seats, hand_size=1, lead=seat, set=1" in text
    for name in ("highest", "random"):
        assert re.search(rf"{name} +\+0.000 ± 0.000 +\+0.00 +50.0 +0.0 +50.0 +1,200", text)
