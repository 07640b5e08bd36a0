"""The PettingZoo environment: its own tests' demands, and what they would not notice."""

import copy
import functools
import json
import random
from collections import defaultdict
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from aec import Beside, everything, is_over, legal_in, moves_from, new_env, new_raw, play_out
from all_deals import agreeing_deals
from pettingzoo.test import api_test, parallel_api_test, render_test, seed_test
from pettingzoo.test.state_test import test_parallel_env as check_parallel_state
from pettingzoo.test.state_test import test_state as check_state
from pettingzoo.test.state_test import test_state_space as check_state_space
from pettingzoo.utils import turn_based_aec_to_parallel
from pettingzoo.utils.wrappers import BaseWrapper
from support import action_of, move_of, random_rules

from domino_env import domino_v0, state
from domino_env.observation import history_each, observation_layout, observe_each, state_layout
from domino_env.rules import PRESETS

TABLES: list[dict[str, Any]] = [
    {"seats": 2},
    {"seats": 3},
    {"seats": 4},
    {"seats": 4, "teams": True},
]
CASES = Path(__file__).with_name("cases")

# What PettingZoo's tests remark on in its own card games as well.
pytestmark = [
    pytest.mark.filterwarnings(f"ignore:{text}:UserWarning")
    for text in (
        "Observation is not a NumPy array",
        "Observation space for each agent probably should be",
        "Action mask numpy array is all zeros",
    )
]


class LegalOnly(BaseWrapper[Any, Any, Any]):
    """Makes the first legal move where the action is not: `test_state` samples without a mask."""

    def step(self, action):
        mask = self.env.unwrapped.infos[self.agent_selection]["action_mask"]
        if action is not None and not mask[action]:
            action = int(np.flatnonzero(mask)[0])
        super().step(action)


def constructor(make, preset, table):
    return functools.partial(make, preset, **table)


# ---------------------------------------------------------------- PettingZoo's own tests


@pytest.mark.parametrize("table", TABLES, ids=str)
@pytest.mark.parametrize("preset", PRESETS)
@pytest.mark.parametrize("make", [new_env, new_raw])
def test_pettingzoo_is_content_with_every_preset(make, preset, table):
    new = constructor(make, preset, table)
    api_test(new(), num_cycles=30)
    seed_test(new, num_cycles=30)
    parallel_api_test(turn_based_aec_to_parallel(new()), num_cycles=30)
    check_state_space(new())
    check_state(new() if make is new_env else LegalOnly(new()), num_cycles=10)
    check_parallel_state(turn_based_aec_to_parallel(new()))


@pytest.mark.parametrize("table", TABLES, ids=str)
@pytest.mark.parametrize("preset", PRESETS)
@pytest.mark.parametrize("make", [new_env, new_raw])
def test_every_render_mode_gives_what_pettingzoo_expects(make, preset, table, monkeypatch):
    monkeypatch.setenv("SDL_VIDEODRIVER", "dummy")
    monkeypatch.setitem(domino_v0.raw_env.metadata, "render_fps", 1000)
    render_test(constructor(make, preset, table))


# ---------------------------------------------------------------- the right seat, by other sources


def recorded(name):
    lines = CASES.joinpath(name).read_text().splitlines()
    return [json.loads(line) for line in lines]


ONE_ROUND = [
    record
    for record in recorded("positions.jsonl") + recorded("random.jsonl")[::3]
    if len(record["rounds"]) == 1
]


def replay(record, **arguments):
    """Play a record of one round through `options`, checking the masks; the sum of `last`."""
    env = new_raw(record["rules"], **arguments)
    told = record["rounds"][0]
    options = {name: told[name] for name in ("hands", "boneyard", "leader") if name in told}
    if env.rules.lead == "random" and told["moves"]:
        options["leader"] = int(told["moves"][0][0])
    env.reset(seed=0, options=options)
    total = defaultdict(float)
    tiles = env.rules.tiles
    for n, move in enumerate([*told["moves"], None]):
        observation, reward, *_ = env.last()
        total[env.agent_selection] += reward
        if n < len(told["legal"]):
            seat = env.agent_selection.removeprefix("player_")
            legal = legal_in(observation["action_mask"])
            moves = [f"{seat} {move_of(action, tiles, n == 0)}" for action in legal]
            assert sorted(moves) == told["legal"][n]
        if move is not None:
            env.step(action_of(move[2:], tiles))
    return env, total


@pytest.mark.parametrize("record", ONE_ROUND, ids=lambda record: record.get("name", "random"))
def test_a_recorded_round_has_the_recorded_moves_and_rewards(record):
    env, total = replay(record)
    if "result" not in record:
        return
    first = env.agent_selection
    for agent in env.agent_iter():
        if agent != first:  # `replay` has seen the reward of the first
            total[agent] += env.last()[1]
        env.step(None)
    rewards = [total[f"player_{p}"] for p in range(env.rules.seats)]
    assert rewards == pytest.approx(record["result"]["reward"], abs=1e-9)
    assert not env.agents


def test_going_out_with_both_doubles_is_rewarded_at_once_to_both_seats():
    (record,) = (r for r in ONE_ROUND if r.get("name") == "both-is-going-out")
    env, _ = replay(record)
    assert env.rewards == {"player_0": -1.0, "player_1": 1.0}
    assert env.terminations == {"player_0": True, "player_1": True}
    assert env.truncations == {"player_0": False, "player_1": False}


@pytest.mark.parametrize("seed", range(120))
def test_masks_rewards_and_ends_are_those_of_the_reference(seed):
    rng = random.Random(seed)
    beside = Beside(random_rules(rng), seed)
    env, oracle, moves = beside.env, beside.oracle, 0
    while not oracle.over and moves < 400:
        assert env.agent_selection == f"player_{oracle.seat}"
        legal = beside.legal()
        assert legal == oracle.legal()
        for agent in env.agents:
            waiting = agent != env.agent_selection
            assert env.infos[agent]["action_mask"].tolist() == (
                [0] * env.rules.actions if waiting else env.observe(agent)["action_mask"].tolist()
            )
            assert not (waiting and env.observe(agent)["action_mask"].any())
        beside.play(rng.choice(legal))
        moves += 1
    if oracle.over:
        assert set(env.terminations.values()) == {oracle.over == "terminated"}
        assert set(env.truncations.values()) == {oracle.over == "truncated"}
        assert not any(env.infos[agent]["action_mask"].any() for agent in env.agents)


@pytest.mark.parametrize("forced", ["step", "skip"])
@pytest.mark.parametrize("seed", range(40))
def test_the_rewards_of_last_sum_to_those_of_the_game(seed, forced):
    rng = random.Random(seed)
    rules = random_rules(rng, sets=(1, 2, 3, 6)) | {"max_rounds": 3}
    env = new_raw(rules, forced=forced)
    env.reset(seed=seed)
    total = play_out(env, rng)
    earned = env.games["earned"][0, : env.rules.seats] / 6
    assert [total[agent] for agent in env.possible_agents] == pytest.approx(earned.tolist())
    assert sum(total.values()) == pytest.approx(0)
    if env.rules.teams:
        assert total["player_0"] == total["player_2"]


def test_a_match_goes_over_several_rounds_to_its_target():
    env = new_raw("cabra", seats=3)
    env.reset(seed=4)
    play_out(env, random.Random(4))
    g = env.games[0]
    scores = g.scores[:3].tolist()
    assert int(env.games["round_number"][0]) >= 2
    assert max(scores) >= 101
    goats = [score >= 101 for score in scores]
    lost = [-6 if goat else 6 * sum(goats) // (3 - sum(goats)) for goat in goats]
    assert g.earned[:3].tolist() == lost


def test_a_match_that_max_rounds_cuts_off_is_truncated_and_rewards_nobody():
    env = new_raw("cabra", max_rounds=2)
    env.reset(seed=1)
    rng = random.Random(1)
    moves_from(env, rng, 1000)
    assert env.terminations == {"player_0": False, "player_1": False}
    assert env.truncations == {"player_0": True, "player_1": True}
    assert play_out(env, rng) == {"player_0": 0, "player_1": 0}
    assert int(env.games["round_number"][0]) == 1


@pytest.mark.parametrize("seed", range(20))
def test_a_round_is_no_longer_than_the_bound(seed):
    rng = random.Random(seed)
    rules = random_rules(rng, sets=(2, 3, 6)) | {"episode": "round"}
    env = new_raw(rules)
    env.reset(seed=seed)
    play_out(env, rng)
    assert int(env.games[0].moves) <= sum(state.longest_round(env.rules))


# ---------------------------------------------------------------- forced moves


@pytest.mark.parametrize("seed", range(40))
def test_skipping_plays_the_same_game_and_asks_only_where_there_is_a_choice(seed):
    rng = random.Random(seed)
    rules = random_rules(rng, sets=(2, 3, 6)) | {"max_rounds": 3}
    skip, step = new_raw(rules, forced="skip"), new_raw(rules)
    skip.reset(seed=seed)
    step.reset(seed=seed)
    asked = 0
    while not is_over(skip):
        legal = legal_in(skip.last()[0]["action_mask"])
        assert len(legal) > 1 or asked == 0  # a forced move may end an episode without a question
        while len(own := legal_in(step.last()[0]["action_mask"])) == 1 and own != legal:
            step.step(own[0])
        assert own == legal
        action = rng.choice(legal)
        skip.step(action)
        step.step(action)
        asked += 1
    while not is_over(step):
        (forced,) = legal_in(step.last()[0]["action_mask"])
        step.step(forced)
    assert asked >= 1
    skip.games["asked"] = step.games["asked"] = 0
    assert skip.games.tobytes() == step.games.tobytes()


# ---------------------------------------------------------------- what a seat may see


@pytest.mark.parametrize("seed", range(24))
def test_no_deal_that_agrees_with_what_a_seat_knows_looks_different(seed):
    rng = random.Random(seed)
    rules = {"preset": "cabra", "hand_size": 2, "episode": "round"}
    rules |= rng.choice([{"set": 2, "seats": 2}, {"set": 3, "seats": 3}])
    rules["draw"] = rng.choice(["none", "one", "until_playable"])
    rules["lead"] = rng.choice(["highest_double", "seat", "random"])
    beside = Beside(rules, seed)
    moves = []
    for _ in range(rng.randint(1, 6)):
        if beside.oracle.seat is None or beside.oracle.over:
            break
        moves.append(rng.choice(beside.oracle.legal()))
        beside.play(moves[-1])
    agent = rng.choice(beside.env.possible_agents)
    seat = beside.env.possible_agents.index(agent)
    seen = beside.env.observe(agent)
    twin = new_raw(rules, history=True)
    leader = beside.oracle.lead_seat if rules["lead"] == "random" else None
    deals = list(islice(agreeing_deals(beside.oracle, seat), 0, 2000, 49))
    assert deals
    for hands, boneyard in deals:
        twin.reset(options={"hands": hands, "boneyard": boneyard, "leader": leader})
        for move in moves:
            twin.step(action_of(move, beside.tiles))
        other = twin.observe(agent)
        for name, array in seen.items():
            assert array.tobytes() == other[name].tobytes(), (name, hands, boneyard)


def test_every_agent_can_be_observed_at_any_time_and_sees_its_own_hand():
    env = new_raw(seats=3, history=True, observe_as=4)
    hand = observation_layout(env.rules, 4)["hand"][0]
    env.reset(seed=3)
    rng = random.Random(3)
    for _ in range(40):
        for seat, agent in enumerate(env.possible_agents):
            seen = env.observe(agent)
            expected = np.empty((1, *seen["observation"].shape), np.uint8)
            observe_each(env.games, np.array([seat]), 4, False, expected)
            assert seen["observation"].tobytes() == expected.tobytes()
            rows = np.empty((1, *seen["history"].shape), np.uint8)
            history_each(env.games, np.array([seat]), rows)
            assert seen["history"].tobytes() == rows.tobytes()
            bits = int(env.games[0].hands[seat])
            assert seen["observation"][hand].tolist() == [bits >> t & 1 for t in range(28)]
            assert seen in env.observation_space(agent)
        moves_from(env, rng, 1)


def test_agents_that_are_gone_can_still_be_observed():
    env = new_env(episode="round")
    env.reset(seed=3)
    play_out(env, random.Random(3))
    assert env.agents == []
    for agent in env.possible_agents:
        assert not env.observe(agent)["action_mask"].any()
    assert env.state() in env.state_space


def test_the_state_holds_all_hands_numbered_from_the_seat_to_move():
    env = new_raw(seats=3, episode="round")
    env.reset(seed=3)
    rng = random.Random(3)
    layout = state_layout(env.rules)
    part, shape = layout["hands"]
    last = 0
    for _ in range(200):
        g, state = env.games[0], env.state()
        assert state in env.state_space
        seats = [(int(g.seat) + r) % 3 for r in range(3)]
        hands = [[int(g.hands[p]) >> t & 1 for t in range(28)] for p in seats]
        assert state[part].reshape(shape).tolist() == hands
        place = state[layout["boneyard"][0]]
        left = g.boneyard[g.drawn : g.stock].tolist()
        assert [int(place[t]) for t in left] == list(range(1, len(left) + 1))
        assert int(place.astype(bool).sum()) == len(left)
        if env.terminations["player_0"]:
            assert int(g.seat) == last
            break
        last = int(g.seat)
        moves_from(env, rng, 1)
    assert env.terminations["player_0"]


@pytest.mark.parametrize("make", [new_env, new_raw])
def test_the_spaces_are_the_same_objects_each_time_and_one_an_agent(make):
    env = make(seats=3)
    for name in ("observation_space", "action_space"):
        spaces = [getattr(env, name)(agent) for agent in env.possible_agents]
        env.reset(seed=1)
        again = [getattr(env, name)(agent) for agent in env.possible_agents]
        assert all(a is b for a, b in zip(spaces, again, strict=True))
        assert len({id(space) for space in spaces}) == 3


def test_what_was_handed_out_never_changes():
    env = new_raw(history=True)
    env.reset(seed=2)
    rng = random.Random(2)
    kept = []
    for _ in range(60):
        handed = [env.observe(agent) for agent in env.possible_agents]
        handed += list(env.infos.values())
        handed += [env.rewards, env.terminations, env.truncations, {"state": env.state()}]
        kept.append((handed, copy.deepcopy(handed)))
        moves_from(env, rng, 1)
    for handed, before in kept:
        assert [list(part) for part in handed] == [list(part) for part in before]
        for part, old in zip(handed, before, strict=True):
            for name in part:
                assert np.array_equal(part[name], old[name])


def test_writing_into_what_was_handed_out_changes_nothing():
    env, twin = new_raw(history=True), new_raw(history=True)
    rng = random.Random(2)
    env.reset(seed=2)
    twin.reset(seed=2)
    for _ in range(40):
        for part in [env.observe("player_0"), env.observe("player_1"), *env.infos.values()]:
            for array in part.values():
                array[:] = 7
        env.state()[:] = 7
        mask = twin.infos[twin.agent_selection]["action_mask"]
        action = rng.choice(legal_in(mask))
        env.step(action)
        twin.step(action)
        assert everything(env) == everything(twin)
