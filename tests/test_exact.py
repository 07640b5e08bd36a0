"""Small games, exactly: counts, values, best responses, CFR+, `cfr:N`, `domino exploit`."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from exact_reference import Reference
from support import action_of

from agents import Agent, AgentError, View, load
from agents.cli import main
from agents.evaluate import evaluate
from agents.exact import Cfr, CfrPlus, exploitability, strategy_of, uniform
from agents.small_game import SmallGame, small_game
from domino_env.game import Game
from domino_env.observation import OWN_TILE
from domino_env.rules import Rules

ROOT = Path(__file__).resolve().parent.parent
GROSS = {"lead": "seat", "reward": "points", "block_score": "gross"}

# set, hand, fields, deals, nodes, value at equilibrium and its error, value and NashConv of uniform
# play: worked out by other programs, the first row by OpenSpiel's exploitability code too.
FIGURES = [
    (2, 2, GROSS, 90, 744, 2.2, 1e-5, 1.45, 1.127778),
    (2, 2, {"lead": "seat"}, 90, 744, 73 / 90, 1e-5, 0.577778, 0.266667),
    (2, 3, GROSS, 20, 1_064, 1.8499, 3e-4, 1.161111, 3.179167),
    (3, 2, GROSS, 1_260, 9_396, 2.925472, 1e-5, 2.070238, 1.236508),
    (3, 3, GROSS, 4_200, 157_044, 2.50034, 1e-5, 1.565438, 2.985602),
]
# Values at equilibrium of games with draws and both doubles, `lead: seat`, from a linear program
# over the sequences (von Stengel 1996), solved by HiGHS.
EQUILIBRIA = [
    ("cabra", 2, 2, "win", 0.75),
    ("cabra", 2, 2, "points", 9.827778),
    ("cabra", 2, 3, "win", 0.6),
    ("cabra", 2, 3, "points", 8.75),
    ("estandar", 2, 2, "win", 0.816667),
    ("estandar", 2, 2, "points", 2.4),
    ("estandar", 2, 3, "points", 1.85),
    ("sin_robo", 3, 2, "points", 2.655556),
]
SMALL = [
    {"preset": "sin_robo", "set": 1, "hand_size": 1, "lead": "seat"},
    {"preset": "sin_robo", "set": 2, "hand_size": 2, "lead": "seat", "reward": "points"},
    {"preset": "estandar", "set": 1, "hand_size": 1},
    {"preset": "estandar", "set": 2, "hand_size": 2, "lead": "seat", "reward": "points"},
    {"preset": "estandar", "set": 2, "hand_size": 1, "reserve": 2, "lead": "lowest_double"},
    {"preset": "estandar", "set": 2, "hand_size": 2, "draw": "one", "lead_tile": "free"},
    {"preset": "estandar", "set": 2, "hand_size": 2, "draw": "one", "reserve": 1, "lead": "random"},
    {"preset": "cabra", "set": 2, "hand_size": 2, "lead": "seat", "episode": "round"},
    {"preset": "cabra", "set": 2, "hand_size": 2, "episode": "round", "reward": "points"},
    {"preset": "cabra", "set": 2, "hand_size": 3, "lead": "random", "episode": "round"},
    {"preset": "cabra", "set": 1, "seats": 3, "hand_size": 1, "episode": "round"},
    {"preset": "estandar", "set": 2, "seats": 3, "hand_size": 1, "lead": "seat", "reserve": 1},
    {"preset": "sin_robo", "set": 2, "seats": 3, "hand_size": 2, **GROSS},
    {"preset": "sin_robo", "set": 2, "seats": 4, "teams": True, "hand_size": 1, "lead": "seat"},
]
NAMES = [" ".join(str(value) for value in rules.values()) for rules in SMALL]


class Skewed(Agent):
    """Plays in proportion to weights that the reference works out too."""

    name = "skewed"
    uses = frozenset({"history"})

    def policy(self, view: View) -> np.ndarray:
        assert view.history is not None
        kinds = view.history[:, :, 0]
        events = ((kinds != 0) & (kinds != OWN_TILE)).sum(1)
        actions = np.arange(view.mask.shape[1])
        weights = weight_of(view.seat[:, None], actions, events[:, None]) * view.mask
        return (weights / weights.sum(1, keepdims=True)).astype(np.float32)


def weight_of(seat, action, events):
    return 1 + (3 * action + 5 * events + 7 * seat) % 11


def solved(game: SmallGame, iterations: int) -> CfrPlus:
    solver = CfrPlus(game)
    solver.run(iterations)
    return solver


def lead_seat(set_: int, hand_size: int, preset: str = "sin_robo", **fields) -> Rules:
    return Rules.preset(preset, set=set_, hand_size=hand_size, lead="seat", **fields)


# ---------------------------------------------------------------- values of others


@pytest.mark.parametrize("row", FIGURES, ids=lambda row: f"set {row[0]} hand {row[1]}")
def test_the_independent_figures_come_out(row):
    set_, hand_size, fields, deals, nodes, value, error, uniform_value, uniform_nashconv = row
    game = small_game(Rules.preset("sin_robo", set=set_, hand_size=hand_size, **fields))
    assert (game.deals, game.nodes) == (deals, nodes)
    even = exploitability(game, uniform(game))
    assert even.values[0] == pytest.approx(uniform_value, abs=6e-7)
    assert even.nashconv == pytest.approx(uniform_nashconv, abs=6e-7)
    fair = exploitability(game, solved(game, 1000 if nodes < 10_000 else 400).strategy)
    assert 0 <= fair.nashconv < 1e-4
    assert fair.values[0] == pytest.approx(value, abs=error)
    assert -fair.best[1] - error <= value <= fair.best[0] + error


@pytest.mark.parametrize("rules", SMALL, ids=NAMES)
def test_a_plain_recursion_over_all_deals_finds_the_same(rules):
    game = SmallGame(Rules.from_dict(rules))
    tiles = game.rules.tiles

    def weigh(seat, move, events):
        return weight_of(seat, action_of(move, tiles), events)

    reference = Reference(rules, weigh)
    assert game.deals == len(reference.roots)
    assert game.nodes == reference.nodes
    assert game.infosets == len(reference.decisions)
    found = exploitability(game, strategy_of(Skewed(), game))
    seats = range(game.rules.seats)
    assert found.values == pytest.approx([reference.value(p) for p in seats], abs=1e-5)
    assert found.best == pytest.approx([reference.best(p) for p in seats], abs=1e-5)


def test_a_hand_of_one_tile_goes_out_at_once():
    # Double-one: 3 x 2 deals, in each the lead and the finished round; 0, 1 or 2 pips are left.
    game = SmallGame(Rules.preset("sin_robo", set=1, hand_size=1, **GROSS))
    assert (game.deals, game.nodes, game.infosets) == (6, 12, 3)
    assert exploitability(game, uniform(game)).values == pytest.approx([1, -1])


def test_orders_of_the_boneyard_count_as_deals():
    # Double-two, a hand of one: 6 x 5 deals of the hands, 4! orders of the other four tiles.
    game = SmallGame(lead_seat(2, 1, "estandar"))
    assert (game.deals, game.nodes) == (30 * 24, 30 * 24 * 2)
    game = SmallGame(lead_seat(2, 1, "estandar", reserve=3))
    assert (game.deals, game.nodes) == (30 * 4, 30 * 4 * 2)


# ---------------------------------------------------------------- information sets


@pytest.mark.parametrize("rules", SMALL, ids=NAMES)
def test_a_position_of_each_information_set_is_found_again(rules):
    game = SmallGame(Rules.from_dict(rules))
    view = View.of(game.rules, game.positions(0, game.infosets))
    assert view.history is not None
    assert game.find(view.seat, view.history).tolist() == list(range(game.infosets))
    assert view.mask.sum(1).tolist() == np.diff(game.tree.first).tolist()
    middle = View.of(game.rules, game.positions(game.infosets // 2, game.infosets))
    assert (middle.mask == view.mask[game.infosets // 2 :]).all()


def test_an_agent_is_shown_nothing_hidden():
    class Curious(Skewed):
        uses = frozenset({"history", "games"})

        def policy(self, view):
            assert view.games is not None
            rows = np.arange(len(view))
            assert (view.games["hands"][rows, 1 - view.seat] == 0).all()
            assert (view.games["boneyard"][:, : view.rules.stock] == -1).all()
            assert (view.games["random"] == 0).all()
            return super().policy(view)

    strategy_of(Curious(), SmallGame(lead_seat(2, 2)))


def test_a_history_of_another_game_is_not_found():
    game = SmallGame(lead_seat(2, 2))
    view = View.of(lead_seat(3, 2), Game.deal(lead_seat(3, 2), ["3-3 3-2", "3-1 3-0"], REST).games)
    assert view.history is not None
    assert game.find(view.seat, view.history).tolist() == [-1]


REST = "0-0 1-0 1-1 2-0 2-1 2-2"


# ---------------------------------------------------------------- CFR+


def test_exploitability_of_cfr_falls():
    game = SmallGame(lead_seat(2, 3, reward="points"))
    solver, gaps = CfrPlus(game), []
    for _ in range(5):
        solver.run(4 * max(1, solver.iterations))
        gaps.append(exploitability(game, solver.strategy).nashconv)
    assert gaps == sorted(gaps, reverse=True)
    assert gaps[-1] < 1e-4 < gaps[0]


@pytest.mark.parametrize(("preset", "set_", "hand_size", "reward", "value"), EQUILIBRIA)
def test_cfr_finds_the_value_that_linear_programming_finds(preset, set_, hand_size, reward, value):
    game = SmallGame(lead_seat(set_, hand_size, preset, episode="round", reward=reward))
    fair = exploitability(game, solved(game, 1000).strategy)
    assert -fair.best[1] - 1e-6 <= value <= fair.best[0] + 1e-6
    assert fair.nashconv < 1e-4


def test_a_run_in_parts_is_the_same_run():
    game = SmallGame(lead_seat(2, 2, "cabra", episode="round"))
    parts = CfrPlus(game)
    for iterations in (1, 2, 7):
        parts.run(iterations)
    assert parts.iterations == 10
    assert (parts.strategy == solved(game, 10).strategy).all()


@pytest.mark.parametrize("lead", ["highest_double", "lowest_double", "random"])
def test_a_game_that_is_the_same_for_both_seats_is_worth_nothing(lead):
    rules = Rules.preset("cabra", set=2, hand_size=2, episode="round", reward="points", lead=lead)
    game = SmallGame(rules)
    for strategy in (uniform(game), solved(game, 500).strategy):
        result = exploitability(game, strategy)
        assert result.values == pytest.approx([0, 0], abs=1e-5)
        assert result.best[0] == pytest.approx(result.best[1], abs=1e-5)


def test_values_sum_to_zero_and_best_responses_never_lose():
    for rules in SMALL:
        game = SmallGame(Rules.from_dict(rules))
        result = exploitability(game, strategy_of(Skewed(), game))
        assert sum(result.values) == pytest.approx(0, abs=1e-9)
        gains = [b - v for b, v in zip(result.best, result.values, strict=True)]
        assert min(gains) >= -1e-9
        assert result.nashconv == pytest.approx(sum(gains))


# ---------------------------------------------------------------- the agent


def test_cfr_plays_the_average_strategy():
    game = small_game(lead_seat(2, 3))
    played = strategy_of(load("cfr:50"), game)
    assert played == pytest.approx(solved(game, 50).strategy, abs=1e-6)


def test_cfr_draws_its_moves_from_its_policy():
    game = Game.deal(lead_seat(2, 2), ["2-1 2-0", "1-1 1-0"], "0-0 2-2")
    agent = load("cfr:1", seed=5)
    chances = agent.policy(View.of(game.rules, game.games))[0]
    assert 0.05 < chances[chances > 0].min() < 0.95
    many = View.of(game.rules, np.repeat(game.games, 20_000))
    shares = np.bincount(agent.act(many), minlength=len(chances)) / 20_000
    assert shares == pytest.approx(chances, abs=0.015)


@pytest.mark.parametrize("preset", ["sin_robo", "estandar", "cabra"])
def test_cfr_in_equilibrium_gets_its_value_in_play(preset):
    rules = lead_seat(2, 2, preset, episode="round")
    result = evaluate(load("cfr:300"), load("random"), rules, 2000, seed=3)
    assert result.mean > 3 * result.ci95 / 2


def test_cfr_makes_forced_moves_without_being_asked_in_the_tree():
    game = Game.deal(lead_seat(2, 2, "estandar"), ["1-1 0-0", "2-2 2-0"], "2-1 1-0")
    game.play("1-1")
    assert game.legal_moves() == ["draw"]
    assert load("cfr:1").act(View.of(game.rules, game.games)).tolist() == game.legal_actions()


@pytest.mark.parametrize("name", ["cfr:0", "cfr:-1", "cfr:many", "cfr:1.5", "cfr:", "cfr"])
def test_cfr_without_a_number_of_iterations_is_an_error(name):
    with pytest.raises(AgentError, match="expected cfr:N"):
        load(name)


def test_cfr_refuses_what_it_cannot_solve():
    agent = Cfr("5")
    with pytest.raises(AgentError, match="cfr:5: found 3 seats, expected 2"):
        agent.check(lead_seat(2, 1, seats=3))
    with pytest.raises(AgentError, match="found match, expected round"):
        agent.check(lead_seat(2, 2, "cabra"))
    with pytest.raises(AgentError, match="137,680,171,200 deals"):
        agent.check(Rules.preset("sin_robo"))


# ---------------------------------------------------------------- bad policies, large games


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda chances, mask: chances / 2, "sums to 0.5, expected 1"),
        (lambda chances, mask: np.full_like(chances, 1 / mask.shape[1]), "beyond the legal"),
        (lambda chances, mask: np.full_like(chances, np.nan), "beyond the legal"),
        (lambda chances, mask: chances[:, 1:], "expected"),
    ],
)
def test_a_policy_that_is_none_is_an_error(change, message):
    class Broken(Skewed):
        name = "broken"

        def policy(self, view):
            return change(super().policy(view), view.mask)

    with pytest.raises(AgentError, match=f"broken: .*{message}"):
        strategy_of(Broken(), SmallGame(lead_seat(2, 2)))


def test_an_agent_without_policy_is_an_error():
    with pytest.raises(AgentError, match="gives no probabilities"):
        strategy_of(Agent(), SmallGame(lead_seat(2, 2)))


def test_a_game_that_is_too_large_is_refused_with_its_deals(monkeypatch):
    with pytest.raises(
        ValueError, match="rules: found 137,680,171,200 deals of the hands, too many"
    ):
        SmallGame(Rules.preset("sin_robo"))
    monkeypatch.setattr("agents.small_game.MAX_ROUNDS", 1000)
    with pytest.raises(
        ValueError, match=r"found 1,260 deals .* x 720 orders .* at most 1,000 finished"
    ):
        SmallGame(lead_seat(3, 2, "estandar"))
    assert len(SmallGame(lead_seat(2, 3)).tree.reached) == 438


# ---------------------------------------------------------------- plain Python, the command


SCRIPT = """
from agents.exact import *
rules = Rules.preset("cabra", set=2, hand_size=2, episode="round")
game = small_game(rules)
solver = CfrPlus(game)
solver.run(3)
result = exploitability(game, solver.strategy)
found = [game.nodes, game.infosets, game.sequences, *result.values, *result.best]
found += strategy_of(Cfr("2"), game).tolist()
print(*found)
"""


def test_plain_python_finds_the_same(capsys):
    exec(SCRIPT, {})
    compiled = capsys.readouterr().out.split()
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT],
        env=os.environ | {"NUMBA_DISABLE_JIT": "1", "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=250,
    )
    assert done.returncode == 0, done.stderr
    plain = [float(word) for word in done.stdout.split()]
    assert plain == pytest.approx([float(word) for word in compiled], abs=1e-9)


def exploit(capsys, *options: str) -> dict:
    assert main(["exploit", *options, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_the_command_prints_the_figures(capsys):
    options = ["--set", "set=2", "--set", "hand_size=2", "--set", "lead=seat"]
    gross = ["--set", "reward=points", "--set", "block_score=gross"]
    found = exploit(capsys, "random", "--rules", "sin_robo", *options, *gross)
    assert found["nashconv"] == pytest.approx(1.127778, abs=1e-6)
    assert found["value"] == pytest.approx(1.45, abs=1e-6)
    assert (found["nodes"], found["infosets"], found["deals"]) == (744, 180, 90)
    found = exploit(capsys, "cfr:1000", "--rules", "sin_robo", *options)
    assert found["nashconv"] < 1e-4
    assert found["value"] == pytest.approx(73 / 90, abs=1e-5)


def test_the_command_has_a_table_for_people(capsys):
    options = ["--set", "set=2", "--set", "hand_size=2", "--set", "lead=seat"]
    assert main(["exploit", "random", *options]) == 0
    lines = capsys.readouterr().out.splitlines()
    for name, figure in {
        "NashConv": "0.266667",
        "value to seat 0": "0.577778",
        "nodes": "744",
    }.items():
        assert any(name in line and figure in line for line in lines)


def test_the_command_knows_three_seats(capsys):
    options = ["--seats", "3", "--set", "set=2", "--set", "hand_size=2", "--set", "lead=seat"]
    found = exploit(capsys, "random", *options)
    game = SmallGame(lead_seat(2, 2, seats=3))
    assert found["nashconv"] == pytest.approx(exploitability(game, uniform(game)).nashconv)
    assert len(found["best"]) == 3


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["random"], "137,680,171,200 deals"),
        (["random", "--rules", "cabra", "--set", "set=2"], "found match, expected round"),
        (["cfr:10", "--seats", "3", "--set", "set=2"], "found 3 seats, expected 2"),
        (["randon", "--set", "set=2"], "did you mean random?"),
    ],
)
def test_the_command_ends_with_status_2_on_bad_input(options, message, capsys):
    assert main(["exploit", *options]) == 2
    printed = capsys.readouterr()
    assert message in printed.err
    assert printed.err.count("\n") == 1
    assert printed.out == ""
