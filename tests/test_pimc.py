"""The search over sampled worlds."""

import numpy as np
import pytest

from agents import load
from agents.base import AgentError, View
from agents.evaluate import evaluate
from agents.pimc import Pimc
from domino_env import Game, Rules
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


def test_with_one_world_left_it_plays_the_solved_move():
    # 4 x 1 with everything dealt and three hands on the table: nothing is hidden from seat 0.
    game = Game.deal(
        Rules.preset("sin_robo", set=1, hand_size=1, lead="seat", seats=3),
        hands=["1-0", "0-0", "1-1"],
        boneyard="",
    )
    assert load("pimc:3", seed=1).act(view_of(game)).tolist() == [game.legal_actions()[0]]


@pytest.mark.parametrize("fields", [{}, {"seats": 4, "teams": True}, {"seats": 3}])
@pytest.mark.parametrize("preset", ["sin_robo", "cabra", "estandar"])
def test_hidden_tiles_do_not_change_its_move(preset, fields):
    rules = Rules.preset(preset, episode="round", **fields)
    game = Game(rules, seed=5)
    random = np.random.default_rng(5)
    for _ in range(9):
        game.play(int(random.choice(game.legal_actions())))
        if game.over:
            break
        moves = load("pimc:5", seed=3).act(view_of(game))
        others = sample_worlds(game.games, None, 3, random)[0]
        for k in range(3):
            again = load("pimc:5", seed=3).act(View.of(rules, others[k : k + 1]))
            assert again.tolist() == moves.tolist()


def test_it_beats_the_heaviest_tile_in_pairs():
    rules = Rules.preset("sin_robo", seats=4, teams=True)
    result = evaluate(load("pimc:10", seed=0), load("heaviest", seed=1), rules, deals=60, seed=77)
    assert result.mean - result.ci95 > 0  # +0.42 ± 0.12 over 100 deals with 20 worlds


@pytest.mark.parametrize("name", ["pimc", "pimc:", "pimc:0", "pimc:x", "pimc:-3"])
def test_a_number_of_worlds_that_is_none_is_one_clear_error(name):
    with pytest.raises(AgentError, match=r"pimc.*expected"):
        load(name)
