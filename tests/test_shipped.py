"""The policies that come with the package: which one plays, and by what names."""

import json
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from learning import small
from made_policies import Home, network_for, rules_named, weights

from agents import cli, config, policy, shipped
from agents.base import AgentError, load
from agents.config import CONFIGS, config_path, read_config
from agents.evaluate import evaluate
from agents.exploiter import exploiter_config
from agents.policy import PolicyAgent, load_policy, policy_rules, policy_shape, save_policy
from agents.ppo import Config, Learner
from agents.settings import shape_of
from agents.shipped import MOST_BYTES, POLICIES, Shipped, files_of, policy_name, total_bytes
from domino_env import DominoVec, Game, Rules


@pytest.fixture
def make(monkeypatch, tmp_path):
    return Home(monkeypatch, tmp_path / "policies")


def plays_as(agent: Shipped, rules: Rules, folder: Path) -> bool:
    """Whether what plays by these rules is the policy in `folder`."""
    return torch.equal(weights(agent.pick(rules)), weights(load_policy(folder)))


def positions(rules: Rules, games=64, moves=5, seed=0) -> np.ndarray:
    """Games after some moves."""
    vec = DominoVec(games, rules, seed=seed)
    batch = vec.reset()
    for _ in range(moves):
        batch = vec.step(batch.mask.argmax(1))
    return vec.games.copy()


# ---------------------------------------------------------------- which policy plays


NAMES = ["cabra-2", "cabra-3", "cabra-pairs", "cabra-match-2", "cabra-match-pairs", "sin_robo-2"]


@pytest.mark.parametrize(
    ("name", "fields", "expected"),
    [
        ("cabra", {"seats": 2, "episode": "round"}, "cabra-2"),
        ("cabra", {"seats": 2}, "cabra-match-2"),
        ("kozel", {"seats": 2, "target": 31}, "cabra-match-2"),
        ("goat", {"seats": 3, "episode": "round"}, "cabra-3"),
        ("cabra", {"seats": 3}, "cabra-3"),  # no policy for matches of three
        ("cabra", {"seats": 4, "teams": True}, "cabra-match-pairs"),
        ("cabra", {"seats": 4, "teams": True, "episode": "round"}, "cabra-pairs"),
        ("sin_robo", {"seats": 2}, "sin_robo-2"),
        ("sin_robo_series", {"seats": 2}, "sin_robo-2"),
        ("block", {"seats": 2, "lead_tile": "free"}, "sin_robo-2"),
    ],
)
def test_the_policy_for_the_table_plays_and_in_matches_that_for_matches(
    make, name, fields, expected
):
    home = make(*NAMES)
    agent = load(name, seed=0)
    rules = Rules.preset(name, **fields)
    assert isinstance(agent, Shipped)
    assert agent.name == name
    agent.check(rules)
    assert plays_as(agent, rules, home / expected)
    games = positions(rules)
    view = agent.view(rules, games)
    alone = load_policy(home / expected)
    np.testing.assert_array_equal(agent.act(view), alone.act(alone.view(rules, games)))
    np.testing.assert_array_equal(agent.policy(view), alone.policy(view))


def test_a_game_with_matches_alone_plays_single_hands_by_that_policy(make):
    home = make("estandar-match-2")
    rules = Rules.preset("estandar")
    assert plays_as(Shipped("draw"), rules, home / "estandar-match-2")
    assert evaluate(load("estandar"), load("random", seed=0), rules, 4, threads=1).games == 8


def test_estandar_in_pairs_is_played_by_the_policy_of_sin_robo_unless_it_has_its_own(make):
    home = make("sin_robo-pairs", "sin_robo-match-pairs", "estandar-2")
    hand, match = (rules_named(f"estandar-{kind}pairs") for kind in ("", "match-"))
    agent = Shipped("estandar")
    assert plays_as(agent, hand, home / "sin_robo-pairs")
    assert plays_as(agent, match, home / "sin_robo-match-pairs")
    assert torch.equal(weights(load_policy("estandar-pairs")), weights(agent.pick(hand)))
    make("estandar-pairs")
    assert plays_as(Shipped("estandar"), hand, home / "estandar-pairs")


def test_in_pairs_it_plays_estandar_exactly_as_sin_robo(make):
    """All tiles are dealt, so the games are the same, but an observation shows which it is."""
    make("sin_robo-pairs", temperature=1.0)
    block, draw = rules_named("sin_robo-pairs"), rules_named("estandar-pairs")
    chances = []
    for rules in (block, draw):
        agent = load(rules.preset, seed=0)
        chances.append(agent.policy(agent.view(rules, positions(rules, moves=8))))
    np.testing.assert_array_equal(chances[0], chances[1])
    assert len(set(chances[0].argmax(1))) > 5


def test_the_policy_for_single_hands_plays_each_round_of_a_match_as_a_single_hand(make):
    make("cabra-2", temperature=1.0)
    agent, seen = load("cabra", seed=0), 0
    match, hand = Rules.preset("cabra"), Rules.preset("cabra", episode="round")
    game = Game(match, seed=1)
    for _ in range(70):
        game.play(game.legal_actions()[0])
        rounds = game.to_record()["rounds"]
        if game.over or len(rounds) < 3 or not rounds[-1]["moves"]:
            continue
        now = rounds[-1]
        alone = Game.deal(hand, hands=now["hands"], boneyard=now["boneyard"])
        for text in now["moves"]:
            alone.play(text.partition(" ")[2])
        if alone.over:
            continue
        views = [agent.view(match, game.games), agent.view(hand, alone.games)]
        in_match, by_itself = (np.asarray(view.observation) for view in views)
        assert not np.array_equal(in_match, by_itself)
        np.testing.assert_array_equal(agent.policy(views[0]), agent.policy(views[1]))
        seen += 1
    assert seen > 10


def test_a_policy_for_matches_sees_the_score(make):
    make("cabra-match-2", temperature=1.0)
    agent, rules = load("cabra", seed=0), Rules.preset("cabra")
    games = positions(rules, moves=3)
    ahead = games.copy()
    ahead["scores"][:, 0] = 77
    views = [agent.view(rules, batch) for batch in (games, ahead)]
    assert (np.abs(agent.policy(views[0]) - agent.policy(views[1])).max(1) > 1e-4).any()
    np.testing.assert_array_equal(
        agent.policy(views[1]), load_policy("cabra-match-2").policy(views[1])
    )


# ---------------------------------------------------------------- copies and seeds


def test_a_policy_is_loaded_when_it_is_needed_and_once_for_all_copies(make, monkeypatch):
    make("cabra-2", "cabra-3")
    loaded, real = [], policy.load_policy

    def noting(folder, *rest, **how):
        loaded.append(Path(folder).name)
        return real(folder, *rest, **how)

    monkeypatch.setattr(policy, "load_policy", noting)
    agent = Shipped("cabra", seed=0)
    assert loaded == []
    two, three = (Rules.preset("cabra", seats=seats, episode="round") for seats in (2, 3))
    for player in (agent, agent.copy(), agent.copy()):
        player.act(player.view(two, positions(two)))
    assert loaded == ["cabra-2"]
    assert evaluate(agent, load("random", 0), three, 6, threads=2).games == 18
    assert loaded == ["cabra-2", "cabra-3"]
    assert agent.copy().pick(two).network is agent.pick(two).network


def test_the_seed_decides_what_is_drawn_and_a_copy_draws_by_itself(make):
    make("sin_robo-2", temperature=2.0)
    rules = Rules.preset("sin_robo", lead_tile="free")
    games = positions(rules, games=300, moves=0)
    agent = load("sin_robo", seed=3)
    view, copied = agent.view(rules, games), agent.copy()
    first, second = agent.act(view), agent.act(view)
    assert (first != second).any()
    np.testing.assert_array_equal(copied.act(view), first)
    agent.seed(3)
    np.testing.assert_array_equal(agent.act(view), first)
    assert (load("sin_robo", seed=4).act(view) != first).any()


# ---------------------------------------------------------------- errors


def test_rules_that_no_policy_can_play_are_one_line_with_what_is_expected(make):
    make("cabra-2", "cabra-match-2", "cabra-pairs")
    agent = load("cabra")
    for fields, message in (
        ({"seats": 3}, "cabra: found 3 seats, shipped for 2 or pairs"),
        ({"seats": 2, "set": 9}, "cabra: found set 9, trained for 6"),
    ):
        with pytest.raises(AgentError) as caught:
            agent.check(Rules.preset("cabra", **fields))
        assert str(caught.value) == message


def test_a_game_without_policies_says_which_games_have_some(make):
    make("cabra-2")
    expected = "block: found no shipped policy, games that have one: cabra"
    with pytest.raises(AgentError, match=expected):
        load("block")


def test_a_device_that_is_not_there_is_an_error_at_once(make):
    make("cabra-2")
    with pytest.raises(AgentError, match="device: found 'qpu', which cannot be used"):
        load("cabra", device="qpu")


@pytest.mark.parametrize("name", ["cabra", "cabra-2"])
def test_without_torch_the_error_says_what_to_install(make, monkeypatch, name):
    make("cabra-2")
    monkeypatch.setitem(sys.modules, "torch", None)
    monkeypatch.delitem(sys.modules, "agents.policy", raising=False)
    with pytest.raises(AgentError, match=rf"{name}: found no torch, expected it: pip install"):
        load(name)


# ---------------------------------------------------------------- names


def test_one_policy_has_a_name_of_its_own(make):
    home = make("cabra-2", "cabra-match-2")
    agent = load("cabra-2", seed=0)
    assert isinstance(agent, PolicyAgent)
    assert agent.name == "cabra-2"
    assert torch.equal(weights(agent), weights(load_policy(home / "cabra-2")))
    assert policy_rules("cabra-match-2") == Rules.preset("cabra")


def test_a_slash_means_a_folder_and_a_folder_here_goes_first(make, monkeypatch, tmp_path):
    make("cabra-2")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(AgentError, match=r"there is no folder '\./cabra-2'"):
        load("./cabra-2")
    Path("cabra-2").mkdir()
    save_policy(Path("cabra-2"), network_for(rules_named("cabra-2"), 99))
    own = weights(load_policy(tmp_path / "cabra-2"))
    for name in ("./cabra-2", "cabra-2"):
        agent = load(name)
        assert isinstance(agent, PolicyAgent)
        assert torch.equal(weights(agent), own)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("cabra-22", "there is no 'cabra-22', did you mean cabra-2?"),
        ("sin_robo-pair", "there is no 'sin_robo-pair', did you mean sin_robo-pairs?"),
        ("Cabra", "there is no 'Cabra', did you mean cabra?"),
        ("cabra:3", "there is no 'cabra:3', did you mean cabra?"),
        ("heavyest", "there is no 'heavyest', did you mean heaviest?"),
        (
            "zzz",
            "pimc:N, cabra, estandar, sin_robo, cabra-2, estandar-pairs, sin_robo-pairs "
            "or the folder of a run",
        ),
    ],
)
def test_an_unknown_name_proposes_the_nearest_of_bots_and_policies(make, name, message):
    make("cabra-2", "sin_robo-pairs")
    (shipped.POLICIES / "notes").mkdir()  # no policy in it
    with pytest.raises(AgentError) as caught:
        load(name)
    assert str(caught.value).startswith("agent: there is no ")
    assert str(caught.value).endswith(message)


def test_a_policy_is_evaluated_by_its_name_and_by_its_rules(make, capsys):
    make("cabra-3")
    assert cli.main(["evaluate", "cabra-3", "random", "--deals", "4", "--json"]) == 0
    figures = json.loads(capsys.readouterr().out)
    assert (figures["a"], figures["games"]) == ("cabra-3", 12)
    assert figures["rules"] == {"preset": "cabra", "episode": "round", "seats": 3}


def test_a_run_may_begin_with_a_shipped_policy(make):
    make("cabra-2")
    learner = Learner(small(initial="cabra-2", rules=rules_named("cabra-2").to_dict()))
    expected = load_policy("cabra-2").network.state_dict()
    for name, tensor in learner.network.state_dict().items():
        assert torch.equal(tensor, expected[name])
    with pytest.raises(ValueError, match="initial: found another network in cabra-2"):
        Learner(small(initial="cabra-2", hidden=(8,)))


def test_an_exploiter_begins_as_the_policy_for_the_table(make):
    make("cabra-2", "cabra-pairs")
    rules = rules_named("cabra-pairs")
    config = exploiter_config("cabra", rules, 1.0)
    assert (config.initial, config.hidden, config.bot_names) == ("cabra-pairs", (16,), ("cabra",))
    assert exploiter_config("heaviest", rules, 1.0).initial == ""


def test_the_files_of_an_agent_are_those_of_all_policies_it_plays_by(make):
    home = make("cabra-2", "cabra-pairs", "sin_robo-pairs")
    cabra = [home / name / "policy.safetensors" for name in ("cabra-2", "cabra-pairs")]
    assert files_of("kozel") == cabra
    assert files_of("cabra+search:50") == cabra
    assert files_of("cabra-pairs") == files_of(f"{home}/cabra-pairs") == cabra[1:]
    assert files_of("estandar") == [home / "sin_robo-pairs" / "policy.safetensors"]
    assert files_of("expert") == files_of("pimc:20") == files_of("cabra-3") == []


def test_a_config_in_a_folder_is_found_by_its_name_and_listed(monkeypatch, tmp_path):
    for name in ("b", "a", "policies/cabra-2", "policies/cabra-3", "small/x"):
        path = tmp_path / f"{name}.yaml"
        path.parent.mkdir(exist_ok=True)
        path.write_text("games: 64\n")
    monkeypatch.setattr(config, "CONFIGS", tmp_path)
    assert config_path("policies/cabra-2") == tmp_path / "policies" / "cabra-2.yaml"
    with pytest.raises(FileNotFoundError) as caught:
        config_path("policies/cabra-9")
    assert str(caught.value) == (
        "config: there is no 'policies/cabra-9', shipped are a, b; policies/ cabra-2, cabra-3; "
        "small/ x"
    )


# ---------------------------------------------------------------- what is really shipped


REALLY = sorted(path.name for path in POLICIES.glob("*") if path.is_dir())


@pytest.mark.parametrize("name", REALLY)
def test_a_shipped_policy_plays_its_game(name):
    agent, rules = load(name, seed=0), policy_rules(name)
    assert policy_name(rules) == name
    assert evaluate(agent, load("random", seed=0), rules, 8, threads=1).deals == 8
    game = load(rules.preset, seed=0)
    assert isinstance(game, Shipped)
    assert plays_as(game, rules, POLICIES / name)


@pytest.mark.parametrize("name", REALLY)
def test_a_shipped_policy_has_a_card_and_the_config_that_it_was_trained_by(name):
    assert (POLICIES / name / "README.md").stat().st_size > 0
    made_by = read_config(config_path(f"policies/{name}"), Config)
    assert policy_shape(name) == shape_of(made_by)


def test_all_shipped_policies_together_are_small():
    assert total_bytes() < MOST_BYTES


@pytest.mark.parametrize(
    "path", sorted((CONFIGS / "policies").glob("*.yaml")), ids=lambda p: p.stem
)
def test_a_config_begins_with_a_network_of_its_own_kind(path):
    made_by = read_config(path, Config)
    if made_by.initial:
        begun = replace(policy_shape(made_by.initial), rules=[])
        assert begun == replace(shape_of(made_by), rules=[])
