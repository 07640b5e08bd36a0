"""The exact belief as a switch: of `DominoVec`, `domino_v0`, `SoloEnv`, and as a part of a view.

That `worlds.belief` is right is tested against every deal in test_worlds.py.
"""

import copy
import pickle
import random
import subprocess
import sys
from typing import Any

import numpy as np
import pytest
from aec import is_over, legal_in, moves_from, new_env, new_raw, play_out
from gymnasium.utils.env_checker import check_env
from pettingzoo.test import api_test, seed_test
from support import random_rules
from test_no_leak import random_position, swapped_deals

from agents import Agent, View
from domino_env import Batch, DominoVec, Rules
from domino_env.solo import SoloEnv
from domino_env.worlds import belief

# Double-one, a tile each: whoever holds one tile knows the other two as well as a coin does.
COIN: dict[str, Any] = {"rules": "sin_robo", "set": 1, "hand_size": 1, "lead": "seat"}
NO_BELIEF = {"observation", "action_mask"}  # what an observation has at the least


def coin_belief(tile: int) -> list[list[float]]:
    """What a seat believes that holds one of the three tiles: own hand, the other's, boneyard."""
    own = [float(t == tile) for t in range(3)]
    return [own, *[[0.5 - 0.5 * one for one in own]] * 2]


def choose(batch: Batch, rng: np.random.Generator) -> np.ndarray:
    """A random legal action a row; 0 where the row is over."""
    return (rng.random(batch.mask.shape) * batch.mask).argmax(axis=1)


def expected(vec: DominoVec, batch: Batch) -> np.ndarray:
    return belief(vec.games, batch.seat, vec.places)


# ---------------------------------------------------------------- DominoVec


def test_a_row_holds_what_its_seat_can_work_out_by_hand() -> None:
    vec = DominoVec(12, **COIN, seed=0, forced="step", autoreset=False, belief=True)
    batch = vec.reset()
    tiles = [int(hand).bit_length() - 1 for hand in vec.games["hands"][:, 0]]
    assert set(tiles) == {0, 1, 2}
    assert batch.belief.tolist() == [coin_belief(tile) for tile in tiles]
    batch = vec.step(batch.mask.argmax(axis=1))
    assert batch.done.all()
    assert batch.seat.tolist() == [0] * 12
    for tile, found in zip(tiles, batch.belief, strict=True):
        out = np.array(coin_belief(tile))
        out[:, tile] = 0  # on the table now; of the others nothing has been learnt
        assert found.tolist() == out.tolist()


@pytest.mark.parametrize("seed", range(10))
def test_every_row_has_the_belief_of_its_seat_to_move(seed: int) -> None:
    rng, choice = random.Random(seed), np.random.default_rng(seed)
    rules, places = random_rules(rng, sets=(2, 3, 4, 6)), rng.choice([None, 4])
    switches: dict[str, Any] = {"autoreset": rng.random() < 0.6, "threads": rng.randint(1, 3)}
    switches["forced"] = rng.choice(["skip", "step"])
    vec = DominoVec(6, rules, seed=seed, belief=True, observe_as=places, **switches)
    P, T = vec.rules.seats, vec.rules.tiles
    out = vec.new_batch(belief=np.full((6, vec.places + 1, T), np.nan, np.float32))
    batch = vec.reset(out=out)
    for _ in range(40):
        note = f"seed {seed}, {rules}, {places=}, {switches}"
        assert np.array_equal(batch.belief, expected(vec, batch)), note
        table = np.bitwise_or.reduce(vec.games["placed"], axis=1)
        hidden = 1 - (table[:, None] >> np.arange(T) & 1)
        assert np.allclose(batch.belief.sum(axis=1), hidden, atol=1e-5), note
        sizes = np.zeros((6, vec.places + 1))
        for r in range(P):
            seat = (batch.seat + r) % P
            sizes[:, r] = vec.games["hand_size"][np.arange(6), seat]
        sizes[:, -1] = vec.games["stock"] - vec.games["drawn"]
        assert np.allclose(batch.belief.sum(axis=2), sizes, atol=1e-4), note
        batch = vec.step(choose(batch, choice), out=out)


def test_no_row_shows_what_is_hidden_from_its_seat() -> None:
    rng, found = random.Random(1), 0
    for _ in range(25):
        table = random_position(random_rules(rng, sets=(3, 4, 6)), rng, 20)
        vec = DominoVec(1, table.rules, belief=True)
        vec.games[:] = table.games
        seen = vec.current().belief.tobytes()
        for hands, boneyard in swapped_deals(table.oracle, int(table.g.seat), rng, 12):
            vec.games[:] = table.twin(hands, boneyard)
            found += vec.games.tobytes() != table.games.tobytes()
            assert vec.current().belief.tobytes() == seen, (table.rules, hands, boneyard)
            view = View.of(table.rules, vec.games, frozenset({"belief"}))
            assert believed(view).tobytes() == seen
    assert found > 50, "other deals than the true ones"


def test_the_belief_is_off_by_default_and_empty_then() -> None:
    batch = DominoVec(3, "cabra", seed=0, seats=3).reset()
    assert batch.belief.shape == (3, 0, 28)
    on = DominoVec(3, "cabra", seed=0, seats=3, observe_as=4, belief=True).reset()
    assert on.belief.shape == (3, 5, 28)
    assert on.belief.dtype == np.float32
    assert np.array_equal(on.mask, batch.mask)


def test_a_batch_that_has_not_been_dealt_believes_nothing() -> None:
    vec = DominoVec(2, "cabra", seed=0, belief=True)
    out = vec.new_batch(belief=np.ones((2, 3, 28), np.float32))
    assert not vec.current(out).belief.any()
    assert vec.reset(out=out).belief.any()


@pytest.mark.parametrize("threads", [1, 2])
def test_copies_pickles_and_saved_games_believe_the_same(threads: int) -> None:
    make: dict[str, Any] = {"rules": "estandar", "threads": threads, "belief": True, "seats": 3}
    vec, rng = DominoVec(5, **make, seed=9), np.random.default_rng(9)
    batch = vec.reset()
    for _ in range(8):
        batch = vec.step(choose(batch, rng))
    other = DominoVec(5, **make, seed=77)
    assert np.array_equal(other.load(vec.save()).belief, batch.belief)
    twins = [vec.copy(), copy.deepcopy(vec), pickle.loads(pickle.dumps(vec)), other]
    for _ in range(8):
        actions = choose(batch, rng)
        batch = vec.step(actions)
        for twin in twins:
            assert np.array_equal(twin.step(actions).belief, batch.belief)


def test_without_the_switch_no_worlds_are_imported() -> None:
    code = "import sys, domino_env; from agents import View, load; "
    code += "vec = domino_env.DominoVec(2); vec.reset(); View.of(vec.rules, vec.games); "
    code += "env = domino_env.domino_v0.env(); env.reset(); env.last(); "
    code += "print('domino_env.worlds' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False"]


# ---------------------------------------------------------------- one game


@pytest.mark.filterwarnings("ignore::UserWarning")  # as in test_domino_v0.py
@pytest.mark.parametrize("fields", [{"seats": 2}, {"seats": 4, "teams": True}, {"observe_as": 4}])
@pytest.mark.parametrize("make", [new_env, new_raw])
def test_pettingzoo_is_content_with_beliefs(make: Any, fields: dict[str, Any]) -> None:
    api_test(make("cabra", belief=True, **fields), num_cycles=30)
    seed_test(lambda: make("estandar", belief=True, **fields), num_cycles=20)


@pytest.mark.parametrize("forced", ["step", "skip"])
def test_gymnasium_is_content_with_beliefs(forced: Any) -> None:
    env = SoloEnv("cabra", seats=3, forced=forced, belief=True, observe_as=4)
    check_env(env, skip_render_check=True)
    observation, _ = env.reset(seed=1)
    assert observation["belief"].shape == (5, 28)


def test_every_agent_has_its_own_belief_at_any_time() -> None:
    env = new_raw("estandar", seats=3, observe_as=4, belief=True, history=True)
    env.reset(seed=3)
    rng, ended = random.Random(3), False
    while not ended:
        ended = is_over(env)
        for seat, agent in enumerate(env.possible_agents):
            seen = env.observe(agent)
            assert list(seen) == ["observation", "action_mask", "history", "belief"]
            assert seen in env.observation_space(agent)
            assert np.array_equal(seen["belief"], belief(env.games, seat, 4)[0])
            assert seen["belief"][0].tolist() == seen["observation"][:28].tolist()
        moves_from(env, rng, 1)
    play_out(env, rng)
    assert env.observe("player_2")["belief"].any()


def test_an_environment_has_no_belief_unless_it_is_asked_for() -> None:
    env = new_raw()
    env.reset(seed=3)
    assert set(env.last()[0]) == NO_BELIEF
    assert set(env.observation_space("player_0").spaces) == NO_BELIEF
    assert set(SoloEnv().reset(seed=3)[0]) == NO_BELIEF


def test_an_illegal_move_ends_the_game_with_a_belief_as_before() -> None:
    env = new_env("sin_robo", belief=True)
    env.reset(seed=3)
    moves_from(env, random.Random(3), 4)
    before, illegal = env.last()[0], int((env.last()[0]["action_mask"] == 0).argmax())
    agent = env.agent_selection
    env.step(illegal)
    assert env.terminations[agent]
    after = env.observe(agent)
    assert np.allclose(after["belief"].sum(axis=0), before["belief"].sum(axis=0))
    assert legal_in(after["action_mask"]) == []


# ---------------------------------------------------------------- views


class Believer(Agent):
    """An agent that wants to see nothing but its belief."""

    uses = frozenset({"belief"})
    observe_as = 4


def believed(view: View) -> np.ndarray:
    assert view.belief is not None
    return view.belief


def test_an_agent_gets_a_belief_if_it_names_it() -> None:
    vec = DominoVec(9, "cabra", seed=4, seats=3, belief=True, observe_as=4)
    batch, rng = vec.reset(), np.random.default_rng(4)
    for _ in range(10):
        batch = vec.step(choose(batch, rng))
    before = vec.games.tobytes()
    view = Believer().view(vec.rules, vec.games)
    assert believed(view).tolist() == batch.belief.tolist()
    assert (view.observation, view.history, view.games) == (None, None, None)
    assert vec.games.tobytes() == before
    rows = np.array([7, 2])
    for some in (view.rows(rows), Believer().view(vec.rules, vec.games[rows])):
        assert believed(some).tolist() == batch.belief[rows].tolist()


def test_a_view_has_no_belief_unless_it_is_named() -> None:
    vec = DominoVec(2, "cabra", seed=4)
    vec.reset()
    view = View.of(vec.rules, vec.games)
    assert view.games is not None
    assert view.belief is None
    assert view.rows(np.array([1])).belief is None
    assert Agent().view(vec.rules, vec.games).belief is None


def test_a_view_of_no_positions_has_a_belief_of_none() -> None:
    rules = Rules.preset("cabra")
    games = DominoVec(1, rules).games[:0]
    assert believed(View.of(rules, games, frozenset({"belief"}), 3)).shape == (0, 4, 28)
