"""The Gymnasium environment of one learner, and the names in the two registries."""

import copy
import pickle
import random
import subprocess
import sys
from typing import Any

import gymnasium
import numpy as np
import pettingzoo
import pytest
from gymnasium.error import ResetNeeded
from gymnasium.utils.env_checker import check_env

from domino_env import domino_v0
from domino_env.errors import IllegalMove
from domino_env.registration import GYMNASIUM_ID, PETTINGZOO_ID, register_all
from domino_env.rules import PRESETS, RulesError
from domino_env.solo import SoloEnv, uniform

ROUND = {"hand_size": 2, "episode": "round"}
new_solo: Any = SoloEnv
DEAL = {"hands": ["5-3 6-6", "3-3 5-5"], "boneyard": "1-1 2-2 3-0 3-1 3-2 4-0 4-1 4-2 4-3 4-4"}
DEAL["boneyard"] += " 0-0 1-0 2-0 2-1 5-0 5-1 5-2 5-4 6-0 6-1 6-2 6-3 6-4 6-5"


def legal_in(mask):
    return np.flatnonzero(mask).tolist()


def play_out(env, rng, observation):
    """Play at random to the end; all that was given, as values."""
    told = []
    while True:
        action = rng.choice(legal_in(observation["action_mask"]))
        observation, reward, terminated, truncated, info = env.step(action)
        arrays = {name: array.tolist() for name, array in observation.items()}
        told.append((arrays, reward, terminated, truncated, info["seat"]))
        if terminated or truncated:
            return told


def first(observation, rng):
    """An opponent that takes its lowest legal action."""
    return int(np.flatnonzero(observation["action_mask"])[0])


def scripted(action):
    """An opponent that has one answer to everything."""
    return lambda observation, rng: action


@pytest.mark.parametrize("forced", ["step", "skip"])
@pytest.mark.parametrize("preset", PRESETS)
def test_gymnasium_is_content(preset, forced):
    check_env(SoloEnv(preset, seats=3, forced=forced, history=True), skip_render_check=True)


def test_gymnasium_is_content_with_what_make_makes(monkeypatch):
    monkeypatch.setenv("SDL_VIDEODRIVER", "dummy")
    monkeypatch.setitem(domino_v0.raw_env.metadata, "render_fps", 1000)
    register_all()
    check_env(gymnasium.make(GYMNASIUM_ID, rules="sin_robo", render_mode="ansi").unwrapped)


def test_make_finds_both_and_a_second_registration_is_silent():
    register_all()
    register_all()
    env = pettingzoo.make("aec", PETTINGZOO_ID, rules="estandar", seats=3)
    assert str(env) == "domino_v0"
    assert env.possible_agents == ["player_0", "player_1", "player_2"]
    solo = gymnasium.make(GYMNASIUM_ID, rules="estandar", seats=3, seat=1)
    _, info = solo.reset(seed=1)
    assert info["seat"] == 1
    masks = solo.get_wrapper_attr("action_masks")()  # as sb3-contrib's MaskablePPO asks
    assert masks.tolist() == info["action_mask"].astype(bool).tolist()


def test_registering_imports_neither_the_solo_environment_nor_pygame():
    code = "import sys; from domino_env.registration import register_all; register_all();"
    code += "print(sorted({'domino_env.solo', 'pygame'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


def test_the_learner_gets_what_its_seat_earns_in_a_known_game():
    lead, both = 36, 58  # seat 1 goes out with both doubles after 5-3
    for seat, mine, theirs, reward in ((0, lead, both, -1.0), (1, both, lead, 1.0)):
        env = SoloEnv("cabra", **ROUND, lead="seat", seat=seat, opponents=scripted(theirs))
        env.reset(seed=1, options=DEAL)
        observation, given, terminated, truncated, info = env.step(mine)
        assert (given, terminated, truncated) == (reward, True, False)
        assert not observation["action_mask"].any()
        assert not info["action_mask"].any()


@pytest.mark.parametrize("forced", ["step", "skip"])
@pytest.mark.parametrize(
    "rules",
    [
        {"rules": "cabra", "seats": 3, "reward": "points", "target": 40},
        {"rules": "estandar", "seats": 4, "teams": True},
        {"rules": "sin_robo_series", "reward": "points", "hand_size": 2},
        {"rules": "cabra", "max_rounds": 2},
    ],
)
def test_the_rewards_sum_to_those_of_the_game(rules, forced):
    env, rng = SoloEnv(**rules, forced=forced), random.Random(5)
    for episode in range(25):
        observation, info = env.reset(seed=episode)
        told = play_out(env, rng, observation)
        earned = env.game.games["earned"][0, info["seat"]] / 6
        assert sum(step[1] for step in told) == pytest.approx(earned)
        assert not any(step[2] or step[3] for step in told[:-1])
        assert told[-1][2:4] == ((True, False) if env.game.games[0].over == 1 else (False, True))


def test_the_learner_is_asked_in_its_turn_alone_and_sees_its_own_seat():
    env, rng = SoloEnv("cabra", seats=4, history=True), random.Random(0)
    observation, info = env.reset(seed=3)
    seats = set()
    for _ in range(900):
        agent = f"player_{info['seat']}"
        assert env.game.agent_selection == agent
        assert env.agent == agent
        seen = env.game.observe(agent)
        assert {n: a.tolist() for n, a in seen.items()} == {
            n: a.tolist() for n, a in observation.items()
        }
        assert info["action_mask"].tolist() == observation["action_mask"].tolist()
        assert info["action_mask"].dtype == np.int8
        assert env.action_masks().tolist() == [bool(m) for m in observation["action_mask"]]
        assert env.action_masks().dtype == bool
        seats.add(info["seat"])
        action = rng.choice(legal_in(observation["action_mask"]))
        observation, _, terminated, truncated, info = env.step(action)
        if terminated or truncated:
            observation, info = env.reset()
    assert seats == {0, 1, 2, 3}


def test_a_fixed_seat_stays_and_the_game_of_a_seed_is_that_of_domino_v0():
    env, other = SoloEnv("estandar", seats=3, seat=2), domino_v0.raw_env("estandar", seats=3)
    for seed in range(20):
        _, info = env.reset(seed=seed)
        other.reset(seed=seed)
        assert info["seat"] == 2
        same = env.game.games["random"].tolist() == other.games["random"].tolist()
        assert same  # the random state moves in deals alone


def test_each_opponent_has_its_seat_clockwise_from_the_learner():
    asked = []

    def opponent(name):
        def choose(observation, rng):
            asked.append((name, env.game.agent_selection))
            return uniform(observation, rng)

        return choose

    env = SoloEnv("cabra", seats=4, seat=2, opponents=[opponent(n) for n in "abc"])
    observation, _ = env.reset(seed=1)
    play_out(env, random.Random(1), observation)
    assert set(asked) == {("a", "player_3"), ("b", "player_0"), ("c", "player_1")}


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda env: pickle.loads(pickle.dumps(env))])
def test_the_same_seed_and_a_copy_give_the_same_episodes(copied):
    env = SoloEnv("cabra", seats=3, opponents=[None, first])
    observation, _ = env.reset(seed=9)
    twin = copied(env)
    told = play_out(env, random.Random(2), observation)
    assert play_out(twin, random.Random(2), observation) == told
    for seed in (None, 9):
        observation, info = env.reset(seed=seed)
        other, other_info = twin.reset(seed=seed)
        assert info["seat"] == other_info["seat"]
        same = play_out(twin, random.Random(2), other)
        assert play_out(env, random.Random(2), observation) == same
    assert same == told


def test_with_skip_the_learner_always_has_a_choice_after_its_first_turn():
    env, rng = SoloEnv("sin_robo", forced="skip"), random.Random(1)
    for seed in range(40):
        observation, _ = env.reset(seed=seed)
        for told in play_out(env, rng, observation)[:-1]:
            assert sum(told[0]["action_mask"]) > 1


def test_an_illegal_action_loses():
    env = SoloEnv("cabra", **ROUND, seat=0)
    env.reset(seed=1, options=DEAL)
    observation, reward, terminated, truncated, info = env.step(36)  # 6-6 must be led
    assert (reward, terminated, truncated) == (-1.0, True, False)
    assert info["illegal_action"] == 36
    assert not observation["action_mask"].any()
    assert not env.action_masks().any()
    with pytest.raises(ResetNeeded, match="no game is going on"):
        env.step(54)
    env.reset(seed=1, options=DEAL)
    assert legal_in(env.action_masks()) == [54]


@pytest.mark.parametrize("action", [-1, 59, 1.0, float("nan"), None, "draw", True])
def test_what_is_no_action_is_one_clear_error(action):
    env = SoloEnv("cabra", **ROUND, seat=0)
    env.reset(seed=1, options=DEAL)
    with pytest.raises(IllegalMove, match="action: found"):
        env.step(action)
    env.step(np.int64(54))


def test_an_opponent_that_plays_no_legal_move_is_named():
    env = SoloEnv("cabra", **ROUND, seat=0, opponents=scripted(0))
    env.reset(seed=1, options=DEAL)
    with pytest.raises(IllegalMove, match="seat 1 may not play"):
        env.step(54)


def test_a_deal_without_a_move_of_the_learner_is_dealt_again():
    rules: dict[str, Any] = {"rules": "sin_robo", "set": 1, "hand_size": 1, "lead": "random"}
    env = SoloEnv(**rules, seat=1)
    for seed in range(30):  # the leader goes out with its only tile
        env.reset(seed=seed)
        assert int(env.game.games[0].leader) == 1
    options = {"hands": ["0-0", "1-1"], "boneyard": "1-0", "leader": 0}
    with pytest.raises(RulesError, match="the deal leaves seat 1 no move"):
        env.reset(seed=1, options=options)
    env.reset(seed=1, options=options | {"leader": 1})
    never = SoloEnv(**{**rules, "lead": "seat"}, seat=1)
    with pytest.raises(RulesError, match="1000 deals left seat 1 no move"):
        never.reset(seed=1)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"seat": 2}, "seat: found 2, expected 0 to 1, or None"),
        ({"seat": True}, "seat: found True"),
        ({"opponents": 3}, "opponents: found 3, expected a callable or a list"),
        ({"opponents": [None, None]}, "opponents: found 2, expected 1"),
        ({"opponents": ["heaviest"]}, "opponents: found 'heaviest', expected a callable or None"),
        ({"forced": "never"}, "forced: found 'never'"),
    ],
)
def test_bad_arguments_are_one_clear_error(arguments, message):
    with pytest.raises(ValueError, match=message) as caught:
        new_solo(**arguments)
    assert "\n" not in str(caught.value)


def test_the_learner_sees_its_own_hand_alone_in_the_text():
    texts = []

    def peek(observation, rng):
        texts.append(env.render())
        return first(observation, rng)

    env = SoloEnv("cabra", **ROUND, seat=1, opponents=peek, render_mode="ansi")
    env.reset(seed=1, options=DEAL)
    texts.append(env.render())
    assert "player_0 plays 6-6" in texts[1]
    for text in texts:
        assert "5-5 3-3" in text
        assert "5-3" not in text
