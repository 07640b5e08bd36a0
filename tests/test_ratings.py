"""Ratings find agents of known strength, and their intervals hold it as often as they say."""

import dataclasses
import math

import numpy as np
import pytest
from made_up import FixedBinomial, deals_of_blocks, made_up, rating_of, result_with

from agents import load
from agents.result import BLOCKS, Budget
from agents.tournament import Tournament, play_tournament
from domino_env.rules import Rules

TWO = Rules.preset("sin_robo")
THREE = Rules.preset("sin_robo", seats=3)
PAIRS = Rules.preset("sin_robo", seats=4, teams=True)


@pytest.mark.parametrize("rules", [TWO, THREE], ids=["two seats", "three seats"])
def test_ratings_find_known_strengths_and_intervals_cover_them(rules):
    random = np.random.default_rng(5)
    strengths = np.array([1.0, 0.4, 0.1, -0.3, -1.2])  # of mean 0
    elo = strengths * 400 / math.log(10)
    covered, errors = [], []
    for _ in range(200):
        rated = made_up(rules, strengths, 1000, random).ratings()
        found = np.array([rated[f"agent {k}"] for k in range(5)])
        errors.append(found[:, 0] - elo)
        covered.append(np.abs(errors[-1]) < found[:, 1])
    assert np.mean(covered) == pytest.approx(0.95, abs=0.02)  # of 1,000: standard error 0.007
    assert np.mean(errors, axis=0) == pytest.approx(np.zeros(5), abs=1.5)


def test_intervals_know_that_all_pairings_share_the_luck_of_a_deal():
    # In each deal either agent 0 wins all its games, of all pairings, or loses them: a coin a deal.
    # Its log odds to the rest have the error of 400 games, not of 2 x 2 x 400. With two others its
    # strength is 2/3 of them: 2/3 * 2 * 1.96 / sqrt(400) = 0.131, or 22.7 points of Elo.
    random = np.random.default_rng(8)
    halves = []
    for _ in range(50):
        played = Tournament(["a", "b", "c"], TWO, Budget(400), 0)
        coins = np.bincount(np.arange(400) % BLOCKS, random.integers(2, size=400), BLOCKS)
        for b in ("b", "c"):
            played.results["a", b] = result_with("a", b, TWO, 400, 2 * coins)
        played.results["b", "c"] = result_with("b", "c", TWO, 400, deals_of_blocks(400))
        halves.append(rating_of(played, "a").ci95)
    assert np.mean(halves) == pytest.approx(22.7, rel=0.05)


@pytest.mark.slow
@pytest.mark.parametrize("rules", [TWO, THREE, PAIRS], ids=["two seats", "three seats", "pairs"])
def test_intervals_cover_although_all_pairings_share_their_deals(rules):
    names = ("random", "lightest", "heaviest", "mobility", "blocker")
    seeds = 60
    tournaments = [
        play_tournament([load(name, 1) for name in names], rules, 100, seed)
        for seed in range(seeds)
    ]
    found = np.array([[rating_of(played, name) for name in names] for played in tournaments])
    off = np.abs(found[..., 0] - found[..., 0].mean(axis=0)) * math.sqrt(seeds / (seeds - 1))
    assert (off < found[..., 1]).mean() == pytest.approx(0.95, abs=0.04)


def test_two_agents_are_apart_by_the_log_odds_of_a_win():
    random = np.random.default_rng(3)
    found = []
    for _ in range(30):
        won = made_up(TWO, [math.log(3) / 2, -math.log(3) / 2], 10**4, random)
        found.append(rating_of(won, "agent 0"))
    elos, halves = np.array(found).T
    # Variance of the log odds: 1 / (n p q), of half the difference a quarter of it.
    half = 1.96 * math.sqrt(1 / (2 * 10**4 * 0.75 * 0.25) / 4) * 400 / math.log(10)
    assert halves.mean() == pytest.approx(half, rel=0.06)
    assert elos.mean() == pytest.approx(200 * math.log10(3), abs=half / 3)


def two_with(rules, share, **fields):
    """The rating of A, who won a share of the games of 640 deals against B."""
    played = Tournament(["a", "b"], rules, Budget(640), 0)
    games = 640 * rules.sides
    won = result_with("a", "b", rules, 640, np.full(BLOCKS, games / BLOCKS * share))
    played.results["a", "b"] = dataclasses.replace(won, **fields)
    return rating_of(played, "a")


def test_equals_have_the_same_rating_in_every_game():
    losers = Rules.preset("cabra", seats=3)
    for rules, won in ((TWO, 1 / 2), (THREE, 1 / 3), (PAIRS, 1 / 2), (losers, 2 / 3)):
        assert two_with(rules, won).elo == pytest.approx(0, abs=1e-9)


def test_where_a_match_has_a_loser_the_odds_are_those_of_losing():
    # A goat in half of 1,920 games of three seats, twice an equal's odds; 2/3 of a game are added.
    odds = (960 + 2 / 3) / (960 + 1 / 3) / 2
    found = two_with(Rules.preset("cabra", seats=3), 1 / 2)
    assert found.elo == pytest.approx(200 * math.log10(odds), abs=0.001)


def test_a_drawn_game_is_added_to_each_pairing():
    assert two_with(TWO, 3 / 4).elo == pytest.approx(200 * math.log10(960.5 / 320.5), abs=0.001)


def test_an_agent_that_wins_all_has_a_rating():
    played = made_up(TWO, [40, -20, -20], 500, FixedBinomial())
    assert next(iter(played.ratings())) == "agent 0"
    assert 400 < rating_of(played, "agent 0").elo < 4000
    assert 50 < rating_of(played, "agent 0").ci95 < 2000
    second, third = (rating_of(played, name).elo for name in ("agent 1", "agent 2"))
    assert second == pytest.approx(third)


def test_a_single_deal_has_a_rating_without_an_interval():
    played = play_tournament([load("heaviest", 1), load("random", 1)], TWO, 1)
    assert math.isnan(rating_of(played, "random").ci95)
    assert played.to_dict()["ratings"]["random"]["ci95"] is None
    assert rating_of(played, "random").text().endswith(" ± ?")


def test_agents_that_no_pairing_links_to_the_rest_have_no_rating():
    pairs = [("agent 0", "agent 1"), ("agent 2", "agent 3"), ("agent 3", "agent 4")]
    played = made_up(TWO, [0, 0, 1, 0, -1], 1000, FixedBinomial(), pairs)
    rated = played.ratings()
    assert list(rated) == ["agent 2", "agent 3", "agent 4", "agent 0", "agent 1"]
    assert rated["agent 0"] is rated["agent 1"] is None
    assert rating_of(played, "agent 3").elo == pytest.approx(0, abs=0.1)
    assert set(Tournament(["a", "b"], TWO, Budget(5), 0).ratings().values()) == {None}
