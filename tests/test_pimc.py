"""The search over sampled worlds."""

import numpy as np
import pytest

from agents import load, pimc
from agents.base import AgentError, View
from agents.evaluate import evaluate
from agents.likelihood import log_likelihood
from agents.pimc import Pimc
from agents.solver import Solver
from domino_env import DominoVec, Game, Rules
from domino_env.worlds import sample_worlds


def view_of(game: Game) -> View:
    return View.of(game.rules, game.games)


def test_a_last_choice_that_wins_in_every_world_is_found():
    # Seat 0 leads with three tiles; after 1-1 seat 1 (no 1) can never play, and seat 0 goes out.
    game = Game.deal(
        Rules.preset("sin_robo", set=2, hand_size=2, lead="seat"),
        hands=["1-1 2-1", "2-2 0-0"],
        boneyard="1-0 2-0",
    )
    agent = Pimc("50", seed=0)
    values = agent.values(view_of(game))[0]
    legal = dict(zip(game.legal_moves(), values[game.legal_actions()], strict=True))
    # Led 1-1, the other hand is any two of 0-0, 1-0, 2-0, 2-2: 2-1 is answered only through a 1.
    assert legal["1-1"] > legal["2-1"]
    assert game.legal_moves()[game.legal_actions().index(int(agent.act(view_of(game))[0]))] == "1-1"


WHOLE_SET = [  # with two seats and no boneyard nothing is hidden
    {"set": 3, "hand_size": 5, "lead": "seat"},
    {"set": 3, "hand_size": 5, "lead": "seat", "double_pair": True, "reward": "points"},
    {"set": 2, "hand_size": 3, "lead": "seat", "score": "loser", "target": 50},
]


@pytest.mark.parametrize("fields", WHOLE_SET, ids=str)
def test_with_one_possible_world_it_says_what_the_solver_says(fields):
    rules = Rules.preset("sin_robo", **fields)
    points = rules.reward == "points" or rules.episode == "match"
    solver = Solver(rules, "points" if points else "win")
    agent, searched = Pimc("3", seed=0), 0
    for seed in range(6):
        game, random = Game(rules, seed=seed), np.random.default_rng(seed)
        while not game.over and int(game.games[0].round_number) == 0:
            if len(game.legal_actions()) > 1:
                searched += 1
                expected = solver.action_values(game.games)[0]
                found = agent.values(view_of(game))[0]
                assert found == pytest.approx(expected, nan_ok=True)
                chosen = int(agent.act(view_of(game))[0])
                assert expected[chosen] == pytest.approx(np.nanmax(expected))
            game.play(int(random.choice(game.legal_actions())))
    assert searched > 6


@pytest.mark.parametrize("together", [1024, 700])  # in one batch, in three
def test_many_worlds_come_to_the_mean_over_all_by_their_likelihood(together, monkeypatch):
    monkeypatch.setattr(pimc, "AT_ONCE", together)
    rules = Rules.preset("sin_robo", set=3, hand_size=3, lead="seat")
    game = Game(rules, seed=5)
    for _ in range(2):
        game.play(game.legal_moves()[-1])
    worlds = sample_worlds(game.games, None, 2000, random=0)[0]
    worlds = worlds[np.unique(worlds["hands"], axis=0, return_index=True)[1]]  # its order is idle
    weights = np.exp(log_likelihood(worlds, np.full(len(worlds), game.seat)))
    assert len(worlds) > 10
    assert weights.max() > 1.5 * weights.min()
    expected = weights @ Solver(rules).action_values(worlds) / weights.sum()
    found = Pimc("2000", seed=1).values(view_of(game))[0]
    assert found == pytest.approx(expected, abs=0.05, nan_ok=True)
    plain = Solver(rules).action_values(worlds).mean(0)
    assert np.nanmax(abs(plain - expected)) > 0.1  # so the weights are felt


TABLES = [{}, {"seats": 3}, {"seats": 4}, {"seats": 4, "teams": True}]


@pytest.mark.parametrize("fields", TABLES, ids=str)
@pytest.mark.parametrize("preset", ["sin_robo", "cabra", "estandar"])
def test_hidden_tiles_do_not_change_its_move(preset, fields):
    rules = Rules.preset(preset, episode="round", **fields)
    random, drawn, different = np.random.default_rng(5), 0, 0
    for seed in (5, 6):
        game = Game(rules, seed=seed)
        while not game.over:
            game.play(int(random.choice(game.legal_actions())))
            if len(game.legal_actions()) < 2:
                continue
            drawn += int(game.games[0].drawn) > 0
            values = Pimc("2", seed=3).values(view_of(game))
            others = sample_worlds(game.games, None, 2, random)[0]
            for k in range(2):
                different += (others[k]["hands"] != game.games[0]["hands"]).any()
                again = Pimc("2", seed=3).values(View.of(rules, others[k : k + 1]))
                assert np.array_equal(again, values, equal_nan=True)
    assert different > 5
    assert (drawn > 0) == (rules.draw != "none" and not rules.teams)


# ---------------------------------------------------------------- budgets


@pytest.mark.parametrize(("preset", "fields"), [("cabra", {}), ("estandar", {"seats": 3})])
def test_threads_change_no_move(preset, fields):
    vec = DominoVec(9, Rules.preset(preset, **fields), seed=2)
    batch, random = vec.reset(), np.random.default_rng(2)
    for _ in range(3):
        batch = vec.step(np.where(batch.mask, random.random(batch.mask.shape), -1).argmax(1))
    view = View.of(vec.rules, vec.games)
    expected = Pimc("7", seed=1).values(view)
    for threads in (2, 3):
        found = Pimc("7", seed=1, threads=threads).values(view)
        assert np.array_equal(found, expected, equal_nan=True)


@pytest.mark.parametrize(("milliseconds", "sizes"), [(125, [1, 2, 4, 1]), (15, [1]), (40, [1, 1])])
def test_a_budget_in_time_takes_as_many_worlds_as_fit_and_at_least_one(
    milliseconds, sizes, monkeypatch
):
    now = 100.0
    monkeypatch.setattr(pimc.time, "perf_counter", lambda: now)
    found = []
    for size in Pimc(f"{milliseconds}ms")._batches():
        found.append(size)
        now += size / 64  # 15.6 milliseconds a world
    assert found == sizes


def test_it_plays_with_a_budget_in_time():
    vec = DominoVec(3, "estandar", seed=2)
    batch = vec.reset()
    agent = load("pimc:1ms", seed=0)
    actions = agent.act(View.of(vec.rules, vec.games))
    assert batch.mask[np.arange(3), actions].all()
    assert agent.name == "pimc:1ms"


def test_a_copy_plays_on_as_the_agent_does_with_nothing_of_it():
    agent = Pimc("4", seed=6, threads=2)
    view = view_of(Game("cabra", seed=3))
    agent.act(view)
    copy = agent.copy()
    assert copy._solvers is not agent._solvers
    assert copy._workers is None
    assert copy.threads == 2
    assert [copy.act(view).tolist() for _ in range(3)] == [
        agent.act(view).tolist() for _ in range(3)
    ]


def test_it_beats_the_heaviest_tile_in_pairs():
    rules = Rules.preset("sin_robo", seats=4, teams=True)
    result = evaluate(load("pimc:5", seed=0), load("heaviest", seed=1), rules, deals=40, seed=77)
    assert result.mean - result.ci95 > 0


WRONG = ["pimc", "pimc:", "pimc:0", "pimc:x", "pimc:-3", "pimc:0ms", "pimc:2s", "pimc:9999999"]


@pytest.mark.parametrize("name", WRONG)
def test_a_budget_that_is_none_is_one_clear_error(name):
    with pytest.raises(AgentError, match=r"^(agent|pimc): found '.*', expected .*pimc:") as raised:
        load(name)
    assert "\n" not in str(raised.value)


def test_a_budget_that_is_no_text_is_one_clear_error():
    with pytest.raises(AgentError, match=r"^pimc: found 20, expected worlds or milliseconds"):
        Pimc(20)  # type: ignore[arg-type]


@pytest.mark.parametrize("threads", [0, 1.5, True])
def test_threads_that_cannot_be_are_one_clear_error(threads):
    with pytest.raises(AgentError, match=r"^threads: found .*, expected an integer of at least 1$"):
        Pimc("3", threads=threads)


def test_a_view_without_games_is_one_clear_error():
    game = Game("sin_robo", seed=1)
    view = View.of(game.rules, game.games, frozenset())
    with pytest.raises(AgentError, match="pimc:3: found a view without games, expected redacted"):
        load("pimc:3").act(view)
