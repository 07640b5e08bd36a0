"""Agents by name, what they are shown, and the simple bots."""

import random
import subprocess
import sys
from math import comb

import numpy as np
import pytest
from support import random_rules

from agents import Agent, AgentError, View, load
from agents.bots import Blocker
from domino_env.game import Game
from domino_env.observation import history_length, layout_size, observation_layout
from domino_env.rules import Rules
from domino_env.vector import DominoVec
from domino_env.worlds import sample_worlds

BOTS = ("random", "lightest", "heaviest", "double_first", "mobility", "blocker", "expert")
SETTINGS = [
    {"preset": preset, "seats": seats, "teams": teams}
    for preset in ("cabra", "sin_robo", "estandar")
    for seats, teams in ((2, False), (3, False), (4, False), (4, True))
]


def dealt(rules, *hands):
    """A game with these hands and the rest of the set, lowest tile first, as the boneyard."""
    tiles = [f"{a}-{b}" for a in range(rules.set + 1) for b in range(a + 1)]
    held = " ".join(hands).split()
    return Game.deal(rules, list(hands), " ".join(t for t in tiles if t not in held))


def moves_with_chance(agent, game):
    """The moves that the agent may make in a game, with their probabilities."""
    chances = agent.policy(agent.view(game.rules, game.games))[0]
    pairs = zip(game.legal_moves(), game.legal_actions(), strict=True)
    assert chances.sum() == pytest.approx(1)
    return {move: pytest.approx(chances[a]) for move, a in pairs if chances[a] > 0}


def lead_rules(preset, **fields):
    return Rules.preset(preset, lead="seat", hand_size=3, **fields)


# ---------------------------------------------------------------- heaviest


def test_heaviest_leads_the_tile_with_most_pips():
    game = dealt(lead_rules("sin_robo"), "6-4 5-5 6-5", "6-0 5-0 4-0")
    assert moves_with_chance(load("heaviest"), game) == {"6-5": 1}


def test_heaviest_looks_at_legal_moves_only():
    game = dealt(lead_rules("sin_robo"), "6-6 3-0 2-1", "1-0 5-5 6-0")
    game.play("3-0")
    assert game.legal_moves() == ["1-0 L", "6-0 L"]
    assert moves_with_chance(load("heaviest"), game) == {"6-0 L": 1}


def test_equal_pips_and_both_ends_of_a_tile_are_ties():
    rules = lead_rules("sin_robo")
    assert moves_with_chance(load("heaviest"), dealt(rules, "6-2 5-3 4-3", "6-0 5-0 4-0")) == {
        "6-2": 0.5,
        "5-3": 0.5,
    }
    game = dealt(rules, "6-5 1-0 2-0", "6-2 5-3 3-3")
    game.play("6-5")
    assert moves_with_chance(load("heaviest"), game) == {"6-2 R": 0.5, "5-3 L": 0.5}


def test_blank_double_counts_25_in_cabra():
    game = dealt(lead_rules("cabra"), "6-6 0-0 6-5", "6-0 5-0 4-0")
    assert moves_with_chance(load("heaviest"), game) == {"0-0": 1}


def test_blank_double_counts_nothing_in_a_hand_of_several_where_it_must_be_alone():
    rules = lead_rules("cabra", blank_double_when="alone")
    game = dealt(rules, "6-6 0-0 6-5", "6-0 5-0 4-0")
    assert moves_with_chance(load("heaviest"), game) == {"6-6": 1}


def test_blank_double_counts_nothing_in_sin_robo():
    game = dealt(lead_rules("sin_robo"), "1-0 0-0 2-0", "6-0 5-0 4-0")
    assert moves_with_chance(load("heaviest"), game) == {"2-0": 1}


def test_both_doubles_count_their_sum():
    game = dealt(lead_rules("cabra"), "6-5 1-0 2-0", "6-6 5-5 6-4")
    game.play("6-5")
    assert moves_with_chance(load("heaviest"), game) == {"both": 1}  # 22 against 12


def test_both_light_doubles_are_less_than_a_heavy_tile():
    game = dealt(lead_rules("cabra"), "2-1 1-0 2-0", "2-2 1-1 6-1")
    game.play("2-1")
    assert "both" in game.legal_moves()
    assert moves_with_chance(load("heaviest"), game) == {"6-1 L": 1}  # 7 against 6


def test_both_doubles_with_the_blank_one_count_25_and_more():
    game = dealt(lead_rules("cabra"), "1-0 6-1 2-0", "0-0 1-1 6-0")
    game.play("1-0")
    assert moves_with_chance(load("heaviest"), game) == {"both": 1}  # 27 against 25


# ---------------------------------------------------------------- lightest, double_first


def test_lightest_puts_down_the_fewest_pips():
    game = dealt(lead_rules("sin_robo"), "6-4 5-5 3-1", "6-0 5-0 4-0")
    assert moves_with_chance(load("lightest"), game) == {"3-1": 1}


def test_lightest_counts_the_blank_double_of_cabra_and_the_sum_of_both_doubles():
    hands = "6-6 0-0 6-5", "6-0 5-0 4-0"
    assert moves_with_chance(load("lightest"), dealt(lead_rules("cabra"), *hands)) == {"6-5": 1}
    assert moves_with_chance(load("lightest"), dealt(lead_rules("sin_robo"), *hands)) == {"0-0": 1}
    game = dealt(lead_rules("cabra"), "2-1 1-0 2-0", "2-2 1-1 6-1")
    game.play("2-1")
    assert moves_with_chance(load("lightest"), game) == {"1-1 L": 1}  # 2; both are 6


def test_double_first_prefers_any_double_to_any_other_tile():
    game = dealt(lead_rules("sin_robo"), "6-5 1-1 0-0", "6-0 5-0 4-0")
    assert moves_with_chance(load("double_first"), game) == {"1-1": 0.5, "0-0": 0.5}
    game = dealt(lead_rules("sin_robo"), "6-5 1-1 0-0", "6-4 6-3 5-4")
    game.play("6-5")
    assert moves_with_chance(load("double_first"), game) == {
        "6-4 R": pytest.approx(1 / 3),
        "6-3 R": pytest.approx(1 / 3),
        "5-4 L": pytest.approx(1 / 3),
    }


def test_double_first_puts_down_both_doubles_where_it_can():
    game = dealt(lead_rules("cabra"), "6-5 1-0 2-0", "6-6 5-5 6-4")
    game.play("6-5")
    assert moves_with_chance(load("double_first"), game) == {"both": 1}


# ---------------------------------------------------------------- mobility


def test_mobility_keeps_the_most_different_pips():
    game = dealt(lead_rules("sin_robo"), "6-5 6-4 3-2", "6-0 5-0 4-0")
    # Without 6-5: 6 4 3 2. Without 6-4: 6 5 3 2. Without 3-2: 6 5 4.
    assert moves_with_chance(load("mobility"), game) == {"6-5": 0.5, "6-4": 0.5}


def test_mobility_counts_what_is_left_of_both_doubles():
    game = dealt(lead_rules("cabra"), "6-5 1-0 2-0", "6-6 5-5 6-4")
    game.play("6-5")
    # Without 6-6: 5 6 4. Without 5-5: 6 4. Without 6-4: 6 5. Without both: 6 4.
    assert moves_with_chance(load("mobility"), game) == {"6-6 R": 1}


# ---------------------------------------------------------------- blocker


def blocking(game):
    """The scores that blocker gives the legal moves."""
    agent = Blocker()
    scores = agent.scores(agent.view(game.rules, game.games))
    return dict(zip(game.legal_moves(), scores[0, game.legal_actions()], strict=True))


def test_blocker_leaves_what_the_next_seat_is_least_likely_to_hold():
    rules = Rules.preset("sin_robo", lead="seat", hand_size=5)
    game = dealt(rules, "6-6 6-1 6-2 1-0 1-1", "5-5 5-4 4-4 4-3 3-3")
    game.play("6-6")
    game.play("pass")
    # It lacks 6 and has 5 of 19 tiles. After 6-1 four of them fit, 2-1 3-1 4-1 5-1; after 6-2
    # six, the 2s but 6-2.
    assert blocking(game) == {
        "6-1 L": pytest.approx(comb(15, 5) / comb(19, 5)),
        "6-2 L": pytest.approx(comb(13, 5) / comb(19, 5)),
    }
    assert moves_with_chance(load("blocker"), game) == {"6-1 L": 1}


def test_blocker_knows_what_a_forced_lead_tells_until_that_seat_has_drawn():
    rules = Rules.preset("sin_robo", hand_size=3)
    game = dealt(rules, "5-5 2-1 4-3", "6-5 5-0 1-0")
    game.play("5-5")
    # 6-6 was not dealt. After 6-5 nine of 23 tiles fit: 6-0 to 6-4, 5-1 to 5-4. It has two.
    assert blocking(game)["6-5 L"] == pytest.approx(comb(14, 2) / comb(23, 2))
    game = dealt(rules.replace(draw="until_playable"), "5-5 2-1 4-3", "6-5 5-0 1-0")
    game.play("5-5")
    game.games["draws"][0, 0] = 1  # of its two tiles one may now be 6-6
    assert blocking(game)["6-5 L"] == pytest.approx(comb(14, 2) / comb(24, 2))


def test_blocker_leaves_a_pip_that_the_next_seat_lacks_and_the_partner_may_have():
    rules = Rules.preset("sin_robo", seats=4, teams=True, lead="seat", hand_size=3)
    game = dealt(rules, "6-6 6-2 2-1", "5-5 4-4 3-3", "6-3 0-0 1-0", "3-1 5-0 4-0")
    for move in ("6-6", "pass", "6-3 L", "3-1 L"):  # the ends are 1 and 6
        game.play(move)
    assert moves_with_chance(load("blocker"), game) == {"2-1 L": 1}  # 2 and 6; next lacks 6


def test_blocker_does_not_leave_a_pip_that_the_partner_lacks():
    rules = Rules.preset("sin_robo", seats=4, teams=True, lead="seat", hand_size=3)
    game = dealt(rules, "6-6 6-2 2-1", "6-3 5-5 4-4", "5-4 0-0 1-0", "3-1 5-0 4-0")
    for move in ("6-6", "6-3 L", "pass", "3-1 L"):  # the ends are 1 and 6
        game.play(move)
    assert moves_with_chance(load("blocker"), game) == {"6-2 R": 1}  # 1 and 2


# ---------------------------------------------------------------- random, and chance


def test_random_gives_every_legal_move_the_same_chance():
    game = dealt(lead_rules("cabra"), "6-5 1-0 2-0", "6-6 5-5 6-4")
    game.play("6-5")
    expected = {"5-5 L": 0.25, "6-4 R": 0.25, "6-6 R": 0.25, "both": 0.25}
    assert moves_with_chance(load("random"), game) == expected


@pytest.mark.parametrize("name", BOTS)
def test_a_bot_draws_its_moves_with_the_chances_that_it_gives(name):
    game = dealt(lead_rules("sin_robo"), "6-5 1-0 2-0", "6-2 5-3 5-2")
    game.play("6-5")
    agent = load(name, seed=5)
    view = agent.view(game.rules, game.games)
    many = view.rows(np.zeros(20_000, int))
    shares = np.bincount(agent.act(many), minlength=game.rules.actions) / 20_000
    assert shares == pytest.approx(agent.policy(view)[0], abs=0.015)  # four standard errors


@pytest.mark.parametrize("name", BOTS)
@pytest.mark.parametrize("setting", SETTINGS, ids=str)
def test_a_bot_plays_whole_games_of_every_kind_with_legal_moves_only(name, setting):
    rules = Rules.from_dict(setting)
    vec = DominoVec(32, rules, seed=3, observation=False)
    agent, batch = load(name, seed=3), vec.reset()
    for _ in range(60):
        actions = agent.act(agent.view(rules, vec.games))
        assert actions.dtype == np.int64
        assert (batch.mask[np.arange(32), actions] == 1).all()
        batch = vec.step(actions)


@pytest.mark.parametrize("seed", range(30))
def test_every_bot_plays_by_any_rules(seed):
    rules = Rules.from_dict(random_rules(random.Random(seed)))
    for name in BOTS:
        vec = DominoVec(8, rules, seed=seed, observation=False)
        agent, batch = load(name, seed=seed), vec.reset()
        for _ in range(25):
            actions = agent.act(agent.view(rules, vec.games))
            assert (batch.mask[np.arange(8), actions] == 1).all()
            batch = vec.step(actions)


@pytest.mark.parametrize("setting", SETTINGS, ids=str)
def test_the_move_of_a_bot_does_not_change_when_hidden_tiles_are_swapped(setting):
    rules = Rules.from_dict(setting)
    vec, _ = games_under_way(rules, steps=7)
    worlds = sample_worlds(vec.games, None, 3, random=2)
    assert (worlds["hands"] != vec.games["hands"][:, None]).any()
    for name in BOTS:
        agent = load(name)
        expected = agent.policy(agent.view(rules, vec.games))
        for k in range(3):
            found = agent.policy(agent.view(rules, worlds[:, k].copy()))
            assert (found == expected).all()


def test_the_same_seed_gives_the_same_moves_and_seed_begins_again():
    rules = Rules.preset("sin_robo", lead="seat")
    vec = DominoVec(200, rules, seed=3)
    vec.reset()
    agent = load("random", seed=11)
    view = agent.view(rules, vec.games)
    first = agent.act(view).tolist()
    assert load("random", seed=11).act(view).tolist() == first
    assert load("random", seed=12).act(view).tolist() != first
    assert agent.act(view).tolist() != first
    agent.seed(11)
    assert agent.act(view).tolist() == first


# ---------------------------------------------------------------- what an agent is shown


def games_under_way(rules, steps=5):
    vec = DominoVec(16, rules, seed=1)
    batch, agent = vec.reset(), load("random", seed=1)
    for _ in range(steps):
        batch = vec.step(agent.act(agent.view(rules, vec.games)))
    return vec, batch


def test_a_view_is_what_the_batch_environment_shows():
    rules = Rules.preset("estandar", seats=3)
    vec, batch = games_under_way(rules)
    view = View.of(rules, vec.games)
    assert view.observation is not None
    assert view.seat.tolist() == batch.seat.tolist()
    assert (view.mask == batch.mask).all()
    assert (view.observation == batch.observation).all()


def test_the_games_in_a_view_are_redacted_and_the_real_ones_untouched():
    rules = Rules.preset("estandar", seats=3)
    vec, _ = games_under_way(rules)
    before = vec.games.tobytes()
    games = View.of(rules, vec.games).games
    assert games is not None
    assert vec.games.tobytes() == before
    for game, real in zip(games, vec.games, strict=True):
        own = int(real.seat)
        assert game.hands[own] == real.hands[own] != 0
        assert [hand for p, hand in enumerate(game.hands) if p != own] == [0, 0, 0]
        assert not game.random.any()
        assert (game.boneyard[real.drawn : real.stock] == -1).all()


def test_a_view_has_only_the_parts_that_are_asked_for():
    rules = Rules.preset("cabra")
    vec, _ = games_under_way(rules)
    view = View.of(rules, vec.games, frozenset())
    assert (view.observation, view.history, view.games) == (None, None, None)
    history = View.of(rules, vec.games, frozenset({"history"})).history
    assert history is not None
    assert history.shape == (16, history_length(rules), 4)
    assert view.rows(np.array([3, 5])).seat.tolist() == view.seat[[3, 5]].tolist()


def test_an_agent_gets_the_observation_of_the_seats_that_it_wants():
    class Wide(Agent):
        observe_as = 4

    rules = Rules.preset("cabra")
    vec, _ = games_under_way(rules)
    observation = Wide().view(rules, vec.games).observation
    wide = DominoVec(16, rules, seed=1, observe_as=4)
    wide.load(vec.save())
    assert observation is not None
    assert observation.shape[1] == layout_size(observation_layout(rules, 4))
    assert (observation == wide.current().observation).all()


# ---------------------------------------------------------------- by name


def test_agents_are_known_by_their_names():
    assert load("random").name == "random"
    assert load("heaviest", seed=1, device="cpu").name == "heaviest"


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("heavyest", "there is no 'heavyest', did you mean heaviest?"),
        ("Random", "did you mean random"),
        ("zzz", "there is no 'zzz', expected random, lightest, heaviest"),
        ("", "there is no ''"),
        ("random:3", "found 'random:3', expected random alone"),
        ("runs/nothing", "there is no folder 'runs/nothing'"),
        (7, "found 7"),
    ],
)
def test_an_unknown_agent_is_one_clear_line(name, message):
    with pytest.raises(AgentError, match=message.replace("?", r"\?")) as raised:
        load(name)
    assert "\n" not in str(raised.value)


def test_an_agent_without_probabilities_says_so():
    class Silent(Agent):
        name = "silent"

    with pytest.raises(AgentError, match="silent: the agent gives no probabilities"):
        Silent().policy(None)  # type: ignore[arg-type]


def test_a_trained_agent_without_torch_says_what_to_install(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "torch", None)
    monkeypatch.delitem(sys.modules, "agents.policy", raising=False)
    with pytest.raises(AgentError, match=r"found no torch, expected it: pip install"):
        load(str(tmp_path))


def test_importing_agents_and_the_command_imports_no_torch():
    code = (
        "import sys, agents, agents.cli; agents.load('heaviest'); sys.exit('torch' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], timeout=60).returncode == 0
