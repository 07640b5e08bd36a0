"""Making the policy of a run a shipped one: its name, weights in float16, what is told of it."""

import json

import pytest
import torch
from learning import small, started
from made_policies import Home, network_for, rules_named, weights
from safetensors.torch import load_file, save_file

from agents import shipped
from agents.base import AgentError
from agents.policy import FORMAT, POLICY_FILE, Trained, load_policy, policy_trained, save_policy
from agents.shipped import policy_name, ship
from domino_env import Rules


@pytest.fixture
def make(monkeypatch, tmp_path):
    return Home(monkeypatch, tmp_path / "policies")


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("cabra-match-3", Rules.preset("goat", seats=3)),
        ("cabra-pairs", Rules.preset("cabra", seats=4, teams=True, episode="round")),
        ("sin_robo-2", Rules.preset("block", lead_tile="free")),
        ("estandar-match-4", Rules.preset("estandar_series", seats=4)),
        ("estandar-4", Rules.preset("estandar_series", seats=4, episode="round")),
    ],
)
def test_a_policy_is_named_by_its_game_its_table_and_whether_it_plays_matches(name, expected):
    assert policy_name(expected) == name


# ---------------------------------------------------------------- weights in float16


def test_rounded_weights_take_half_the_bytes_and_are_read_as_float32(tmp_path):
    network = network_for(Rules.preset("cabra"), 1, privileged_critic=True)
    sizes = []
    for half in (False, True):
        save_policy(tmp_path, network, half=half)
        sizes.append((tmp_path / POLICY_FILE).stat().st_size)
        stored = {tensor.dtype for tensor in load_file(tmp_path / POLICY_FILE).values()}
        assert stored == {torch.float16 if half else torch.float32}
        read = load_policy(tmp_path).network
        for name, tensor in network.state_dict().items():
            found = read.state_dict()[name]
            assert found.dtype == torch.float32
            assert torch.equal(found, tensor.half().float() if half else tensor)
    assert sizes[1] < 0.6 * sizes[0]
    assert any(name.startswith("critic_body") for name in read.state_dict())


@pytest.mark.parametrize("other", [torch.float32, torch.bfloat16, torch.float64])
def test_tensors_of_several_types_are_refused(tmp_path, other):
    save_policy(tmp_path, network_for(Rules.preset("cabra"), 1), half=True)
    path = tmp_path / POLICY_FILE
    tensors = load_file(path)
    metadata = {"format": FORMAT, "shape": json.dumps({"rules": [{}], "hidden": [16]})}
    save_file({**tensors, "critic.bias": tensors["critic.bias"].to(other)}, path, metadata)
    with pytest.raises(AgentError, match=r"found (float16|bfloat16|float64) "):
        load_policy(tmp_path)


@pytest.mark.parametrize("weight", [7e4, float("nan")])
def test_a_weight_that_float16_cannot_hold_is_refused(make, tmp_path, weight):
    network = network_for(rules_named("cabra-2"), 1)
    with torch.no_grad():
        network.critic.bias.fill_(weight)
    save_policy(tmp_path, network)
    with pytest.raises(ValueError, match=r"tensor 'critic\.bias': found weights that float16"):
        ship(tmp_path, "cabra-2")
    assert shipped.shipped() == {}


# ---------------------------------------------------------------- ship


def test_the_policy_of_a_run_is_shipped_with_how_long_it_was_trained(make, tmp_path, capsys):
    home = make()
    learner = started(tmp_path / "run", small(), 2)
    assert shipped.main([str(tmp_path / "run"), "cabra-2"]) == 0
    path = home / "cabra-2" / POLICY_FILE
    size = f"{path.stat().st_size:,} bytes"
    assert capsys.readouterr().out == f"{path}: {size}; all together {size[:-6]} of 20,000,000\n"
    assert policy_trained("cabra-2") == Trained(1024, learner.seconds, "domino-run-2")
    assert learner.seconds > 0
    found = load_policy("cabra-2").network.state_dict()
    for name, tensor in learner.played.state_dict().items():
        assert torch.equal(found[name], tensor.half().float())
    assert policy_trained(tmp_path / "run") is None


def test_shipping_a_policy_again_replaces_it_and_needs_no_checkpoint(make, tmp_path):
    make("cabra-2")
    save_policy(tmp_path, network_for(rules_named("cabra-2"), 7))
    assert ship(tmp_path, "cabra-2") == shipped.POLICIES / "cabra-2" / POLICY_FILE
    found, expected = weights(load_policy("cabra-2")), weights(load_policy(tmp_path))
    assert torch.equal(found, expected.half().float())
    assert policy_trained("cabra-2") is None


@pytest.mark.parametrize(
    ("fields", "name", "expected"),
    [
        ({}, "cabra-3", "expected cabra-2"),
        ({}, "cabra-match-2", "expected cabra-2"),
        ({}, "../cabra-2", "expected cabra-2"),
        ({"set": 5}, "cabra-2", "expected a policy for the double-six set"),
    ],
)
def test_a_name_that_is_not_that_of_the_rules_is_refused(
    make, tmp_path, capsys, fields, name, expected
):
    home = make()
    save_policy(tmp_path, network_for(rules_named("cabra-2").replace(**fields), 1))
    assert shipped.main([str(tmp_path), name]) == 2
    error = capsys.readouterr().err
    assert error == f"agents.shipped: name: found {name!r} for {tmp_path}, {expected}\n"
    assert not home.exists()
    assert shipped.main([name]) == 2
    assert "found 1 arguments, expected RUN NAME" in capsys.readouterr().err
