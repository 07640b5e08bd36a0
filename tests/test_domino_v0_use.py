"""Using the PettingZoo environment: seeds, given deals, copies, errors, pictures, names."""

import copy
import pickle
import random

import numpy as np
import pytest
from aec import everything, legal_in, moves_from, new_env, new_raw, play_out
from gymnasium.error import ResetNeeded
from support import tiles_in

from domino_env import domino_v0, engine, state
from domino_env.errors import IllegalMove
from domino_env.observation import layout_size, observation_layout
from domino_env.rules import Rules, RulesError

# ---------------------------------------------------------------- seeds, deals, copies


def first_hands(env):
    return env.games[0].hands.tolist()


def test_a_seed_gives_the_game_of_the_engine_and_a_reset_without_one_goes_on():
    env = new_env("sin_robo", seats=4)
    games = engine.new_games(Rules.preset("sin_robo", seats=4), 11)
    env.reset(seed=np.int64(11))
    for _ in range(3):
        engine.reset(games[0])
        assert first_hands(env.unwrapped) == games[0].hands.tolist()
        play_out(env, random.Random(0))
        env.reset()
    env.reset(seed=11)
    games = engine.new_games(Rules.preset("sin_robo", seats=4), 11)
    engine.reset(games[0])
    assert first_hands(env.unwrapped) == games[0].hands.tolist()


def test_the_first_reset_without_a_seed_is_random():
    deals = set()
    for _ in range(3):
        env = new_raw()
        env.reset()
        deals.add(tuple(first_hands(env)))
    assert len(deals) == 3


def test_a_seeded_reset_keeps_every_setting():
    env = new_raw("cabra", seats=3, set=4, forced="skip", history=True, observe_as=4)
    env.viewer = 2
    env.reset(seed=1)
    rules, spaces = env.rules, env.observation_spaces
    env.reset(seed=2)
    assert env.rules is rules
    assert env.observation_spaces is spaces
    assert (env.forced, env.viewer, env.rules.seats, env.rules.set) == ("skip", 2, 3, 4)
    assert env.observe("player_0")["observation"].shape == spaces["player_0"]["observation"].shape
    assert int(env.games[0].set) == 4


DEAL = {"hands": ["5-3 6-6", "3-3 5-5"], "boneyard": "1-1 2-2 3-0 3-1 3-2 4-0 4-1 4-2 4-3 4-4"}
DEAL["boneyard"] += " 0-0 1-0 2-0 2-1 5-0 5-1 5-2 5-4 6-0 6-1 6-2 6-3 6-4 6-5"
SMALL = {"hand_size": 2, "episode": "round"}


@pytest.mark.parametrize("make", [new_env, new_raw])
def test_options_deal_a_given_position_and_other_keys_are_ignored(make):
    env = make("cabra", **SMALL)
    env.reset(seed=5, options={**DEAL, "colour": "green"})
    assert env.agent_selection == "player_0"  # holds 6-6
    assert [tiles_in(bits) for bits in first_hands(env.unwrapped)[:2]] == [
        {(3, 5), (6, 6)},
        {(3, 3), (5, 5)},
    ]
    assert legal_in(env.observe("player_0")["action_mask"]) == [54]
    env.step(54)
    assert legal_in(env.observe("player_1")["action_mask"]) == [56]
    env.step(56)
    assert tiles_in(env.unwrapped.games[0].hands[1]) == {(3, 3), (5, 5), (1, 1)}


def test_the_shuffle_behind_a_given_deal_is_that_of_the_seed():
    env = new_raw("cabra", **SMALL)
    env.reset(seed=5)
    env.reset()
    second = first_hands(env)
    env.reset(seed=5, options=DEAL)
    env.reset()
    assert first_hands(env) == second


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"hands": DEAL["hands"]}, "boneyard: missing"),
        ({"boneyard": DEAL["boneyard"]}, "hands: missing"),
        ({"leader": 1}, "hands: missing"),
        ({**DEAL, "leader": 1}, "leader: found seat 1"),
        ({**DEAL, "hands": ["5-3 6-6"]}, "hands: found 1"),
        ({**DEAL, "hands": ["5-3 6-6", "3-3 9-9"]}, "9-9"),
        ({**DEAL, "hands": ["5-3 6-6", "3-3 6-6"]}, "deal: 5-5 is neither"),
        ([1], "options: found list"),
    ],
)
def test_a_bad_deal_is_one_clear_error_and_the_game_goes_on_as_it_was(options, message):
    env = new_raw("cabra", **SMALL)
    env.reset(seed=5)
    moves_from(env, random.Random(0), 1)
    before = everything(env)
    with pytest.raises(RulesError, match=message) as caught:
        env.reset(seed=9, options=options)
    assert "\n" not in str(caught.value)
    assert everything(env) == before


def pickled(env):
    return pickle.loads(pickle.dumps(env))


@pytest.mark.parametrize("copied", [copy.deepcopy, pickled])
@pytest.mark.parametrize("make", [new_env, new_raw])
def test_a_copy_in_mid_game_goes_on_exactly_and_alone(make, copied):
    env = make("cabra", seats=3, history=True, render_mode="ansi")
    env.reset(seed=8)
    env.action_space("player_0").seed(3)
    moves_from(env, random.Random(8), 30)
    twin = copied(env)
    before = everything(env)
    assert everything(twin) == before
    rng = random.Random(1)
    trace = []
    for _ in range(150):
        moves_from(twin, rng, 1)
        trace.append((everything(twin), twin.render(), twin.last()[1]))
    assert everything(env) == before
    rng = random.Random(1)
    for seen in trace:
        moves_from(env, rng, 1)
        assert (everything(env), env.render(), env.last()[1]) == seen
    sampled = [e.action_space("player_0").sample() for e in (env, twin)]
    assert sampled[0] == sampled[1]
    env.reset()
    twin.reset()
    assert everything(env) == everything(twin)


def test_an_environment_can_be_copied_before_its_first_reset():
    env = pickled(new_env("estandar", seats=4, teams=True))
    env.reset(seed=1)
    other = new_env("estandar", seats=4, teams=True)
    other.reset(seed=1)
    assert everything(env) == everything(other)


# ---------------------------------------------------------------- what is not allowed

NONSENSE = [
    -1,
    59,
    10**30,
    1.0,
    float("nan"),
    np.float64(3),
    None,
    "draw",
    True,
    [1],
    np.array([1]),
]


@pytest.mark.parametrize("action", NONSENSE, ids=repr)
def test_what_is_no_action_is_one_clear_error_and_nothing_moves(action):
    env = new_raw()
    env.reset(seed=6)
    before = everything(env)
    with pytest.raises(IllegalMove, match=r"^action: found .*, expected an integer from 0 to 58$"):
        env.step(action)
    assert everything(env) == before


def test_an_illegal_action_is_an_error_that_names_the_move_and_nothing_moves():
    env = new_raw("cabra", **SMALL)
    env.reset(seed=6, options=DEAL)
    before = everything(env)
    with pytest.raises(IllegalMove, match=r"seat 0 may not play 5-3 .*legal: 6-6") as caught:
        env.step(36)  # 5-3 left: 6-6 must be led
    assert "\n" not in str(caught.value)
    assert everything(env) == before
    env.step(54)
    assert env.agent_selection == "player_1"


@pytest.mark.parametrize("number", [int, np.int32, np.int64, np.uint8, np.array])
@pytest.mark.parametrize("make", [new_env, new_raw])
def test_integers_of_every_kind_are_actions(make, number):
    env = make("cabra", **SMALL)
    env.reset(seed=6, options=DEAL)
    env.step(number(54))
    assert env.agent_selection == "player_1"


def test_an_illegal_action_in_env_ends_the_game_as_pettingzoo_does():
    env = new_env("cabra", seats=3)
    env.reset(seed=6)
    moves_from(env, random.Random(6), 5)
    offender = env.agent_selection
    mask = env.observe(offender)["action_mask"]
    env.step(int(np.flatnonzero(mask == 0)[0]))
    assert env.terminations == dict.fromkeys(env.possible_agents, True)
    assert env.rewards == {agent: -1.0 * (agent == offender) for agent in env.possible_agents}
    for agent in env.possible_agents:
        assert not env.observe(agent)["action_mask"].any()
        assert not env.infos[agent]["action_mask"].any()
    total = play_out(env, random.Random(0))
    assert total == {agent: -1.0 * (agent == offender) for agent in env.possible_agents}
    assert env.agents == []
    env.reset(seed=6)
    assert env.observe(env.agent_selection)["action_mask"].any()


@pytest.mark.parametrize("action", [-1, 59, 1.5, float("nan"), "draw"])
def test_what_is_no_action_is_an_assertion_in_env(action):
    env = new_env()
    env.reset(seed=6)
    with pytest.raises(AssertionError, match="action is not in action space"):
        env.step(action)


def test_a_dead_agent_takes_none_alone():
    env = new_raw(episode="round")
    env.reset(seed=3)
    moves_from(env, random.Random(3), 200)
    with pytest.raises(ValueError, match="only valid action is None"):
        env.step(0)
    env.step(None)
    env.step(None)
    with pytest.raises(ResetNeeded, match="the game is over"):
        env.step(0)


@pytest.mark.parametrize("call", ["step", "observe", "state", "render"])
def test_nothing_goes_before_the_first_reset(call):
    arguments = {"step": [0], "observe": ["player_0"]}.get(call, [])
    with pytest.raises(ResetNeeded, match=r"expected reset\(\) first"):
        getattr(new_raw(render_mode="ansi"), call)(*arguments)
    with pytest.raises(AssertionError, match="reset"):
        getattr(new_env(render_mode="ansi"), call)(*arguments)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"rules": "goats"}, "did you mean goat"),
        ({"forced": "never"}, "forced: found 'never', expected step or skip"),
        ({"render_mode": "png"}, "render_mode: found 'png', expected None or human"),
        ({"observe_as": 1}, "observe_as: found 1, expected 2 to 4"),
        ({"seat": 3}, "did you mean seats"),
        ({"hand_size": 15}, "hand_size: 15 tiles"),
    ],
)
def test_bad_arguments_are_one_clear_error(arguments, message):
    with pytest.raises(ValueError, match=message) as caught:
        new_env(**arguments)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("seed", [-1, 1.5, "7", True])
def test_a_bad_seed_is_one_clear_error(seed):
    env = new_raw()
    with pytest.raises(ValueError, match="seed: found"):
        env.reset(seed=seed)


def test_an_unknown_agent_is_one_clear_error():
    env = new_raw()
    env.reset(seed=1)
    with pytest.raises(ValueError, match="agent: found 'player_2', expected player_0 to player_1"):
        env.observe("player_2")


# ---------------------------------------------------------------- pictures, names, length


def test_the_text_shows_the_hand_of_the_seat_to_move_and_no_other_until_the_end():
    env = new_env("cabra", **SMALL, render_mode="ansi")
    env.reset(seed=6, options=DEAL)
    text = env.render()
    assert "6-6 5-3" in text
    assert "3-3" not in text
    env.step(54)
    text = env.render()
    assert "5-5 3-3" in text
    assert "5-3" not in text
    assert "player_0 plays 6-6" in text
    assert "24 tiles" in text
    play_out(env, random.Random(0))
    assert "▒" not in env.render()
    assert "round won by" in env.render()


def test_a_viewer_sees_its_own_hand_alone():
    env = new_raw("cabra", **SMALL, render_mode="ansi")
    env.viewer = 1
    env.reset(seed=6, options=DEAL)
    text = env.render()
    assert "5-5 3-3" in text
    assert "6-6" not in text


def test_a_match_shows_its_scores_and_a_picture_has_three_colours():
    env = new_raw("cabra", seats=4, teams=True, render_mode="ansi")
    env.reset(seed=1)
    assert "target 101: player_0 + player_2 0, player_1 + player_3 0" in env.render()
    env = new_raw("cabra", render_mode="rgb_array")
    env.reset(seed=1)
    assert env.render().shape == (720, 960, 3)


def test_rendering_without_a_mode_warns_and_gives_nothing():
    env = new_env()
    env.reset(seed=1)
    with pytest.warns(UserWarning, match="render_mode is None"):
        assert env.render() is None


def test_the_environment_is_called_domino_v0():
    env = new_env()
    assert str(env) == "domino_v0"
    assert env.metadata["name"] == "domino_v0"
    assert set(env.metadata["render_modes"]) == {"human", "ansi", "rgb_array"}


def test_the_figures_of_the_page_are_right():
    page, rules = " ".join(str(domino_v0.__doc__).split()), Rules.preset("cabra")
    layout = observation_layout(rules)
    for told, figure in (
        ("`(193,)` in `cabra` with two seats", layout_size(layout) == 193),
        ("`Discrete(59)`", rules.actions == 59),
        ("| rules | 28 |", layout["rules"][1] == (28,)),
        ("67 moves in `cabra` with two seats", sum(state.longest_round(rules)) == 67),
    ):
        assert told in page
        assert figure
    parts = [name for name in layout if f"| {name}" not in page and f", {name}" not in page]
    assert not parts


def test_a_shallow_copy_has_a_game_of_its_own():
    env = domino_v0.raw_env("cabra")
    env.reset(seed=1)
    before = env.games.tobytes()
    other = copy.copy(env)
    other.step(int(other.last()[4]["action_mask"].argmax()))
    assert env.games.tobytes() == before != other.games.tobytes()
