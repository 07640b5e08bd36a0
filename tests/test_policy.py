"""Trained policies as agents: what they play, what they refuse, files that cannot be trusted."""

import json
import pickle
import resource
import struct
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save, save_file

from agents import cli
from agents.base import AgentError, View, load
from agents.evaluate import evaluate
from agents.mlp import Mlp
from agents.network import Network
from agents.policy import (
    FORMAT,
    POLICY_FILE,
    PolicyAgent,
    load_policy,
    policy_rules,
    save_policy,
)
from agents.shape import Shape
from domino_env import DominoVec, Rules
from domino_env.observation import layout_size, observation_layout
from domino_env.rules import PRESETS

TABLES = [{"seats": 2}, {"seats": 3}, {"seats": 4}, {"seats": 4, "teams": True}]


def network_of(rules: Rules | dict, seed=0, spread=1.0, **shape) -> Network:
    """A small network whose logits differ clearly between actions."""
    given = rules.to_dict() if isinstance(rules, Rules) else rules
    torch.manual_seed(seed)
    network = Network(Shape([given], **{"hidden": [16], **shape}))
    assert isinstance(network.actor, Mlp)
    torch.nn.init.normal_(network.actor.head.weight, 0, spread)
    return network


def agent_of(rules: Rules, seed: int | None = 0, **shape) -> PolicyAgent:
    return PolicyAgent(network_of(rules, **shape), "test", seed)


def view_of(rules: Rules, games=32, moves=5, seed=0, **options) -> View:
    """Positions after some random moves."""
    vec = DominoVec(games, rules, seed=seed)
    batch = vec.reset()
    for _ in range(moves):
        batch = vec.step(batch.mask.argmax(1))
    return View.of(rules, vec.games, frozenset({"observation"}), **options)


def logits_by_hand(network: Network, observation: np.ndarray) -> np.ndarray:
    """The outputs of a network with one hidden layer, in NumPy: parts in units, then two layers."""
    rules = Rules.from_dict(network.shape.rules[0])
    x = observation.astype(float)
    units = {"hand_size": 8, "stock": 16, "draws": 8, "passes": 8, "score": 64}
    units |= {"aside": 16, "match": 64, "rules": 16}
    for name, unit in units.items():
        x[:, observation_layout(rules)[name][0]] /= unit
    weights = {name: tensor.double().numpy() for name, tensor in network.state_dict().items()}
    h = np.maximum(x @ weights["actor.body.0.weight"].T + weights["actor.body.0.bias"], 0)
    return h @ weights["actor.head.weight"].T + weights["actor.head.bias"]


# ---------------------------------------------------------------- playing


@pytest.mark.parametrize("preset", PRESETS)
@pytest.mark.parametrize("table", TABLES, ids=["2", "3", "4", "pairs"])
def test_moves_are_legal_and_probabilities_sum_to_1_in_every_game(preset, table):
    rules = Rules.preset(preset, **table)
    view = view_of(rules, moves=3)
    for temperature in (0.0, 1.0):
        agent = agent_of(rules, temperature=temperature)
        agent.check(rules)
        chances, actions = agent.policy(view), agent.act(view)
        assert (chances.dtype, chances.shape) == (np.float32, (32, rules.actions))
        assert actions.shape == (32,)
        assert view.mask[np.arange(32), actions].all()
        assert not chances[view.mask == 0].any()
        np.testing.assert_allclose(chances.sum(1), 1, rtol=1e-5)


def test_a_greedy_agent_plays_the_legal_action_with_the_highest_logit():
    rules = Rules.preset("cabra", episode="round")
    agent, view = agent_of(rules), view_of(rules, games=200)
    assert view.observation is not None
    logits = np.where(view.mask != 0, logits_by_hand(agent.network, view.observation), -np.inf)
    assert (logits.argmax(1) != np.where(view.mask != 0, 1, 0).argmax(1)).any()
    np.testing.assert_array_equal(agent.act(view), logits.argmax(1))
    np.testing.assert_array_equal(agent.policy(view).argmax(1), logits.argmax(1))
    assert set(agent.policy(view).max(1)) == {1.0}


@pytest.mark.parametrize("temperature", [0.5, 1.0, 3.0])
def test_probabilities_are_the_softmax_at_the_temperature(temperature):
    rules = Rules.preset("estandar")
    agent, view = agent_of(rules, temperature=temperature), view_of(rules)
    assert view.observation is not None
    odds = np.exp(logits_by_hand(agent.network, view.observation) / temperature) * view.mask
    np.testing.assert_allclose(agent.policy(view), odds / odds.sum(1, keepdims=True), atol=1e-5)


def test_moves_are_drawn_from_the_probabilities():
    rules = Rules.preset("sin_robo", lead_tile="free")
    agent = agent_of(rules, temperature=1.0, spread=0.2)
    view = view_of(rules, games=1, moves=0).rows(np.zeros(40_000, int))
    seen, expected = np.bincount(agent.act(view), minlength=59), agent.policy(view)[0].astype(float)
    legal = expected > 0
    assert legal.sum() == 7
    assert seen[~legal].sum() == 0
    chi2 = ((seen - 40_000 * expected)[legal] ** 2 / (40_000 * expected)[legal]).sum()
    assert chi2 < 27.9  # exceeded once in 10,000 samples: six degrees of freedom


def test_the_seed_decides_what_is_drawn():
    rules = Rules.preset("sin_robo")
    view = view_of(rules, games=500)
    first, again, other = (
        agent_of(rules, seed=seed, temperature=2.0).act(view) for seed in (1, 1, 2)
    )
    np.testing.assert_array_equal(first, again)
    assert (first != other).any()


@pytest.mark.parametrize("temperature", [1e-300, 1e-9, 1e9])
def test_extreme_temperatures_and_logits_give_probabilities(temperature):
    rules = Rules.preset("sin_robo", lead_tile="free")
    agent = agent_of(rules, temperature=temperature, spread=1e4)
    view = view_of(rules)
    chances = agent.policy(view)
    assert np.isfinite(chances).all()
    np.testing.assert_allclose(chances.sum(1), 1, rtol=1e-5)
    assert view.mask[np.arange(32), agent.act(view)].all()


def test_a_view_without_observation_is_an_error():
    rules = Rules.preset("sin_robo")
    view = View.of(rules, DominoVec(2, rules, seed=0).games, frozenset())
    with pytest.raises(AgentError, match="found a view without observation"):
        agent_of(rules).act(view)


# ---------------------------------------------------------------- what it may play


def test_an_agent_refuses_other_seats_sides_and_sets():
    agent = agent_of(Rules.preset("cabra", seats=4))
    agent.check(Rules.preset("sin_robo", seats=4))  # other rules of play it is shown
    for fields, message in (
        ({"seats": 2}, "test: found seats 2, trained for 4"),
        ({"seats": 4, "teams": True}, "test: found teams True, trained for False"),
        ({"seats": 4, "set": 9}, "test: found set 9, trained for 6"),
    ):
        with pytest.raises(AgentError, match=message):
            agent.check(Rules.preset("cabra", **fields))


def test_an_agent_of_a_wide_observation_plays_at_every_table_up_to_its_width():
    agent = agent_of(Rules.preset("cabra", seats=2), observe_as=3, temperature=1.0)
    for seats in (2, 3):
        rules = Rules.preset("sin_robo", seats=seats)
        agent.check(rules)
        assert evaluate(agent, load("random", seed=0), rules, 8).games == 8 * seats
    with pytest.raises(AgentError, match="found 4 seats, trained for 3"):
        agent.check(Rules.preset("sin_robo", seats=4))
    with pytest.raises(AgentError, match="found set 9, trained for 6"):
        agent.check(Rules.preset("sin_robo", set=9))


def shown_with(rules: Rules, agent: PolicyAgent, state: bool) -> tuple[np.ndarray, np.ndarray]:
    """What `as_trained` makes of positions of these rules, and what it was given."""
    vec = DominoVec(8, rules, seed=0, state=state, observe_as=agent.observe_as)
    batch = vec.reset()
    given = batch.state if state else batch.observation
    return agent.as_trained(rules, given), given


@pytest.mark.parametrize("state", [False, True])
def test_other_rules_are_shown_as_the_nearest_that_it_was_trained_for(state):
    games = [Rules.preset("sin_robo"), Rules.preset("cabra"), Rules.preset("cabra", seats=3)]
    shape = Shape([rules.to_dict() for rules in games], [4], observe_as=4, privileged=state)
    agent = PolicyAgent(Network(shape), "test", 0)
    for rules, trained in (
        (games[0], games[0]),
        (games[2], games[2]),
        (Rules.preset("sin_robo", lead_tile="free"), games[0]),
        (Rules.preset("cabra", blank_double=0), games[1]),
    ):
        shown, given = shown_with(rules, agent, state)
        _, familiar = shown_with(trained, agent, state)
        end = layout_size(observation_layout(rules, 4))
        start = observation_layout(rules, 4)["rules"][0].start
        np.testing.assert_array_equal(shown[:, start - end :], familiar[:, start - end :])
        np.testing.assert_array_equal(shown[:, : start - end], given[:, : start - end])
        assert np.array_equal(shown, given) == (rules == trained)
    shown, given = shown_with(Rules.preset("cabra", seats=4), agent, state)
    np.testing.assert_array_equal(shown, given)  # there is no such table to choose from


def test_a_device_that_is_not_there_is_an_error():
    network = network_of({"preset": "cabra"})
    for device in ("qpu", "meta", "cuda:9999"):
        with pytest.raises(AgentError, match=f"device: found '{device}', which cannot be used"):
            PolicyAgent(network, "test", 0, device)


# ---------------------------------------------------------------- files


def test_a_saved_policy_plays_as_before(tmp_path):
    rules = Rules.preset("cabra", seats=3, episode="round")
    agent, view = agent_of(rules, hidden=[16, 8], temperature=0.7), view_of(rules)
    save_policy(tmp_path, agent.network)
    for folder in (str(tmp_path), f"{tmp_path}/"):
        again = load(folder, seed=0)
        assert again.name == folder
        np.testing.assert_array_equal(again.policy(view), agent.policy(view))
    assert policy_rules(tmp_path) == rules
    assert policy_rules(tmp_path).preset == "cabra"
    assert [path.name for path in tmp_path.iterdir()] == [POLICY_FILE]


def test_a_policy_is_evaluated_from_its_folder(tmp_path, capsys):
    save_policy(tmp_path, network_of({"preset": "estandar", "set": 3}))
    assert cli.main(["evaluate", str(tmp_path), "random", "--deals", "8", "--json"]) == 0
    figures = json.loads(capsys.readouterr().out)
    assert (figures["rules"]["preset"], figures["rules"]["set"]) == ("estandar", 3)


class Boom:
    """Unpickling one writes a file."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self):
        return Path.touch, (self.path,)


def with_header(header: object, data: bytes = b"") -> bytes:
    """A safetensors file with any header."""
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + data


def claiming(shape: object, tensors: dict[str, torch.Tensor] | None = None) -> bytes:
    """A policy file that claims to be of a shape."""
    held = network_of({"preset": "cabra"}).state_dict() if tensors is None else tensors
    return save(held, {"format": FORMAT, "shape": json.dumps(shape)})


def empty_tensors(width: int) -> dict[str, torch.Tensor]:
    """Tensors of huge shapes that need no bytes."""
    names = ("actor.body.0.weight", "actor.body.0.bias", "actor.head.weight")
    return {name: torch.zeros(width, 0) for name in names}


GOOD_SHAPE = {"rules": [{"preset": "cabra"}], "hidden": [16]}
HOSTILE = {
    "nothing": b"",
    "garbage": bytes(range(256)) * 40,
    "a header of 4 exabytes": struct.pack("<Q", 2**62) + b"{}",
    "a header longer than the file": struct.pack("<Q", 90_000_000) + b"{}",
    "a zip file": b"PK\x03\x04" + bytes(100),
    "no metadata": with_header({}),
    "metadata of the wrong type": with_header({"__metadata__": {"format": 3}}),
    "nested brackets": struct.pack("<Q", 100_000) + b"[" * 100_000,
    "another format": save({}, {"format": "x" * 10**5}),
    "no shape": save({}, {"format": FORMAT}),
    "a shape that is no JSON": save({}, {"format": FORMAT, "shape": "{"}),
    "a deep shape": save({}, {"format": FORMAT, "shape": '{"rules":[{"a":' + "[" * 10**5}),
    "a field too few": claiming({"hidden": [16]}),
    "no rules": claiming(GOOD_SHAPE | {"rules": []}),
    "rules of the format before": claiming(GOOD_SHAPE | {"rules": {"preset": "cabra"}}),
    "an unknown network": claiming(GOOD_SHAPE | {"network": "lstm"}),
    "another network": claiming(GOOD_SHAPE | {"network": "attention"}),
    "attention without a width": claiming(GOOD_SHAPE | {"network": "attention", "hidden": []}),
    "wide attention that is not there": claiming(
        GOOD_SHAPE | {"network": "attention", "hidden": [65536] * 64, "history": True}
    ),
    "a part that its tensors do not take": claiming(GOOD_SHAPE | {"belief": True}),
    "unknown rules": claiming(GOOD_SHAPE | {"rules": [{"preset": "cabra", "seets": 3}]}),
    "other widths": claiming(GOOD_SHAPE | {"hidden": [17]}),
    "more layers": claiming(GOOD_SHAPE | {"hidden": [16, 16]}),
    "no layers": claiming(GOOD_SHAPE | {"hidden": []}),
    "a width of 0": claiming(GOOD_SHAPE | {"hidden": [0]}),
    "a huge width": claiming(GOOD_SHAPE | {"hidden": [10**9]}),
    "a width beyond integers": claiming(GOOD_SHAPE | {"hidden": [10**30]}),
    "wide layers that are not there": claiming(GOOD_SHAPE | {"hidden": [65536] * 8}),
    "a million layers": claiming(GOOD_SHAPE | {"hidden": [1] * 10**6}),
    "wide tensors without bytes": claiming(GOOD_SHAPE | {"hidden": [65536]}, empty_tensors(65536)),
    "other rules than its tensors": claiming(
        GOOD_SHAPE | {"rules": [{"preset": "cabra", "set": 9}]}
    ),
    "too many places": claiming(GOOD_SHAPE | {"observe_as": 5}),
    "too few places": claiming(GOOD_SHAPE | {"observe_as": -1}),
    "a negative temperature": claiming(GOOD_SHAPE | {"temperature": -1}),
    "tensors of another type": claiming(
        GOOD_SHAPE, {k: v.double() for k, v in network_of({"preset": "cabra"}).state_dict().items()}
    ),
    "a tensor too many": claiming(
        GOOD_SHAPE, network_of({"preset": "cabra"}).state_dict() | {"x\ny": torch.zeros(1)}
    ),
}


@pytest.mark.parametrize("what", HOSTILE)
def test_a_hostile_file_is_one_line_and_takes_no_memory(tmp_path, what):
    (tmp_path / POLICY_FILE).write_bytes(HOSTILE[what])
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for read in (load_policy, policy_rules):
        with pytest.raises(AgentError) as caught:
            read(tmp_path)
        message = str(caught.value)
        assert message.startswith(f"{tmp_path}/{POLICY_FILE}: ")
        assert "\n" not in message
        assert len(message) < 400 + len(str(tmp_path))
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 200_000  # KiB on Linux


@pytest.mark.parametrize("dtype", ["F4", "F6_E2M3", "F8_E8M0", "F8_E4M3FNUZ", "C64", "U64", "I8"])
def test_tensors_of_unusual_types_are_refused(tmp_path, dtype):
    bits = {"F4": 4, "F6_E2M3": 6, "C64": 64, "U64": 64}.get(dtype, 8)
    tensor = {"dtype": dtype, "shape": [16], "data_offsets": [0, 2 * bits]}
    header = {"__metadata__": {"format": FORMAT, "shape": json.dumps(GOOD_SHAPE)}}
    (tmp_path / POLICY_FILE).write_bytes(
        with_header(header | {"actor.head.bias": tensor}, bytes(2 * bits))
    )
    with pytest.raises(AgentError, match=POLICY_FILE):
        load_policy(tmp_path)


def test_a_pickle_is_not_unpickled(tmp_path):
    mark = tmp_path / "mark"
    (tmp_path / POLICY_FILE).write_bytes(pickle.dumps(Boom(mark)))
    with pytest.raises(AgentError, match="cannot be read"):
        load_policy(tmp_path)
    torch.save({"x": Boom(mark)}, tmp_path / POLICY_FILE)
    with pytest.raises(AgentError, match="cannot be read"):
        load_policy(tmp_path)
    assert not mark.exists()


def test_a_truncated_policy_is_refused_wherever_it_was_cut(tmp_path):
    save_policy(tmp_path, network_of({"preset": "cabra"}))
    path = tmp_path / POLICY_FILE
    whole = path.read_bytes()
    for length in [*range(0, len(whole), 997), len(whole) - 1]:
        path.write_bytes(whole[:length])
        with pytest.raises(AgentError, match="cannot be read"):
            load_policy(tmp_path)
    path.write_bytes(whole)
    load_policy(tmp_path)


def test_weights_that_are_no_numbers_still_give_no_illegal_move(tmp_path):
    rules = Rules.preset("cabra")
    save_policy(tmp_path, network_of(rules))
    path = tmp_path / POLICY_FILE
    metadata = {"format": FORMAT, "shape": json.dumps(GOOD_SHAPE)}
    broken = {name: torch.full_like(t, float("nan")) for name, t in load_file(path).items()}
    save_file(broken, path, metadata)
    view = view_of(rules)
    assert view.mask[np.arange(32), load_policy(tmp_path).act(view)].all()


def test_a_folder_without_a_policy_and_a_name_without_a_folder_are_errors(tmp_path):
    with pytest.raises(AgentError, match=rf"{tmp_path}: there is no {POLICY_FILE} in it"):
        load(str(tmp_path))
    with pytest.raises(AgentError, match="there is no folder '/nowhere/at/all'"):
        load("/nowhere/at/all")


# ---------------------------------------------------------------- the network


def test_a_network_begins_with_nearly_uniform_play():
    rules = Rules.preset("sin_robo", lead_tile="free")
    network = Network(Shape([rules.to_dict()], [64, 64], temperature=1.0))
    view = view_of(rules, moves=0)
    found = PolicyAgent(network, "test", 0).policy(view)
    np.testing.assert_allclose(found[view.mask != 0], 1 / 7, atol=0.02)


def test_the_network_scales_exactly_in_bfloat16_too():
    """Units are powers of two and observations below 256, so that no digit is lost."""
    network = Network(Shape([{"preset": "cabra"}], [4]))
    assert isinstance(network.actor, Mlp)
    units = network.actor.scale.scale
    observation = torch.arange(256, dtype=torch.uint8)[:, None].expand(256, len(units))
    exact = observation.double() * units.double()
    assert torch.equal(network.actor.bfloat16().scale(observation).double(), exact)
    assert len(units) == layout_size(observation_layout(Rules.preset("cabra")))
