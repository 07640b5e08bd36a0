"""A policy that searches: what it plays on, how it weighs worlds and leaves, what it is shown."""

import numpy as np
import pytest
import torch
from made_policies import Home

from agents import load, policy_search
from agents.base import AgentError, View
from agents.evaluate import evaluate
from agents.mlp import Mlp
from agents.network import Network
from agents.pimc import Pimc
from agents.policy import PolicyAgent, save_policy
from agents.policy_search import (
    CARELESS,
    LATE,
    PolicySearch,
    log_likelihood,
    log_policy,
    returns_of,
    won,
)
from agents.shape import Inputs, Shape
from agents.solver import tiles_placed
from domino_env import DominoVec, Game, Rules
from domino_env.observation import layout_size, observe_each, state_layout
from domino_env.worlds import sample_worlds


def agent_of(rules: Rules, seed=0, spread=1.0, trained: Rules | None = None, **shape):
    """A small network that nobody trained, but with clear opinions."""
    torch.manual_seed(seed)
    given = [(trained or rules).to_dict()]
    network = Network(Shape(given, **{"hidden": [16], "temperature": 1.0, **shape}))
    assert isinstance(network.actor, Mlp)
    torch.nn.init.normal_(network.actor.head.weight, 0, spread)
    return PolicyAgent(network, "test", seed)


def view_of(game: Game) -> View:
    return View.of(game.rules, game.games)


def chances(agent: PolicyAgent, game: Game) -> dict[int, float]:
    """The policy's probabilities of the legal actions."""
    found = agent.policy(agent.view(game.rules, game.games))[0]
    return {action: float(found[action]) for action in game.legal_actions()}


def after(game: Game, action: int) -> Game:
    """The game after a move and all forced ones behind it."""
    game = game.copy()
    game.play(action)
    while not game.over and len(game.legal_actions()) == 1:
        game.play(game.legal_actions()[0])
    return game


def worth(agent: PolicyAgent, game: Game, seat: int) -> float:
    """What a game pays to a seat if the policy plays on for all, over all its lines of play."""
    if game.over:
        return game.rewards[seat]
    lines = chances(agent, game).items()
    return sum(chance * worth(agent, after(game, action), seat) for action, chance in lines)


def second_choice(game: Game) -> Game:
    """The game where a seat chooses for the second time, the last legal moves being made."""
    choices = 0
    while choices < 1 or len(game.legal_actions()) == 1:
        choices += len(game.legal_actions()) > 1
        game.play(game.legal_actions()[-1])
    return game


@pytest.fixture
def means_alone(monkeypatch):
    """The means of whole games, without the policy's opinion."""
    for name, value in {"HEAT": 0.0, "DEPTH": 1000}.items():
        monkeypatch.setattr(policy_search, name, value)


# ---------------------------------------------------------------- what it plays on

SMALL = [
    ("sin_robo", {"set": 3, "hand_size": 3}, 5),
    ("sin_robo", {"set": 3, "hand_size": 3, "seats": 3, "reward": "points"}, 0),
    ("sin_robo", {"set": 3, "hand_size": 2, "seats": 4, "teams": True}, 4),
    ("estandar", {"set": 3, "hand_size": 3, "reserve": 2}, 13),
]


@pytest.mark.parametrize(("preset", "fields", "seed"), SMALL, ids=str)
def test_many_worlds_come_to_what_the_policy_earns_over_all_worlds_by_their_likelihood(
    preset, fields, seed, means_alone
):
    rules = Rules.preset(preset, lead="seat", episode="round", **fields)
    agent, game = agent_of(rules), second_choice(Game(rules, seed=seed))
    worlds = sample_worlds(game.games, None, 1000, random=0)[0]
    key = worlds["hands"]
    if rules.draw != "none":  # else the order of the boneyard is idle
        key = np.concatenate([key, worlds["boneyard"]], 1)
    worlds = worlds[np.unique(key, axis=0, return_index=True)[1]]
    weights = np.exp(log_likelihood(agent, rules, worlds, np.full(len(worlds), game.seat)))
    assert len(worlds) > 10
    assert weights.max() > 3 * weights.min()
    expected = np.full(rules.actions, np.nan)
    for action in game.legal_actions():
        earned = []
        for k in range(len(worlds)):
            world = game.copy()
            world.games[0] = worlds[k]
            earned.append(worth(agent, after(world, action), game.seat))
        expected[action] = weights @ earned / weights.sum()
    found = PolicySearch(agent, "3000", seed=1).values(view_of(game))[0]
    scale = 1 if rules.reward == "win" else 5  # points
    assert np.nanmax(expected) - np.nanmin(expected) > 0.1 * scale
    assert found == pytest.approx(expected, abs=0.05 * scale, nan_ok=True)


def test_all_actions_are_played_on_with_the_same_luck_whichever_are_asked_for():
    rules = Rules.preset("cabra", episode="round")
    view, agent = positions(rules), agent_of(rules)
    assert view.games is not None
    worlds = sample_worlds(view.games, None, 1, 0)[:, 0]
    luck = np.random.default_rng(1).random((len(worlds), 200))
    whole = returns_of(agent, rules, worlds, view.mask > 0, luck)
    first = np.arange(rules.actions) == (view.mask > 0).argmax(1)[:, None]
    single = returns_of(agent, rules, worlds, first, luck)
    np.testing.assert_array_equal(single[first], whole[first])
    other = returns_of(agent, rules, worlds, first, luck[::-1])
    assert (other[first] != whole[first]).any()


def positions(rules: Rules, games=64, moves=3, seed=0) -> View:
    """Positions with a choice."""
    vec = DominoVec(games, rules, seed=seed)
    batch = vec.reset()
    for _ in range(moves):
        batch = vec.step(batch.mask.argmax(1))
    return View.of(rules, vec.games)


# ---------------------------------------------------------------- leaves


def value_of(agent: PolicyAgent, game: Game, seat: int) -> float:
    """What the network says that a game still pays to a seat, by the table of sides."""
    mover, rules = game.seat, game.rules
    state = np.zeros((1, layout_size(state_layout(rules))), np.uint8)
    observe_each(game.games, np.array([mover]), rules.seats, True, state)
    shown = torch.from_numpy(state) if agent.network.shape.privileged else None
    inputs = Inputs(torch.from_numpy(game.observe(mover)[None]), state=shown)
    value = float(agent.network(inputs)[1].detach())
    if rules.teams:
        return value if (mover - seat) % 2 == 0 else -value
    return value if mover == seat else -value / (rules.seats - 1)


LEAVES = [
    ("sin_robo", {"episode": "round"}, True),
    ("cabra", {"seats": 3, "episode": "round"}, False),
    ("cabra", {"target": 40}, True),
    ("estandar_series", {"seats": 3, "target": 40}, True),
    ("sin_robo_series", {"seats": 4, "teams": True, "target": 60}, False),
]


@pytest.mark.parametrize(("preset", "fields", "privileged"), LEAVES, ids=str)
def test_a_leaf_is_the_networks_value_by_sides_in_a_match_in_the_next_round_too(
    preset, fields, privileged, monkeypatch
):
    monkeypatch.setattr(policy_search, "DEPTH", 0)
    rules = Rules.preset(preset, **fields)
    agent, random = agent_of(rules, privileged=privileged), np.random.default_rng(2)
    rounds = ends = 0
    for seed in range(2):
        game = Game(rules, seed=seed)
        while not game.over:
            legal = game.legal_actions()
            found = returns_of(agent, rules, game.games, game.mask()[None] > 0, np.zeros((1, 200)))
            for action in legal if len(legal) > 1 else []:
                then, seat = after(game, action), game.seat
                expected = then.rewards[seat] if then.over else value_of(agent, then, seat)
                assert found[0, action] == pytest.approx(expected, abs=1e-5)
                ends += then.over
                rounds += not then.over and then.round != game.round
            game.play(int(random.choice(legal)))
    assert ends > 0
    assert (rounds > 0) == (rules.episode == "match")


def test_a_match_played_by_a_policy_of_single_hands_is_worth_its_round(means_alone):
    hand, match = Rules.preset("cabra", episode="round"), Rules.preset("cabra", target=500)
    agent, random, outs = agent_of(hand), np.random.default_rng(0), 0
    game = Game(match, seed=1)
    while outs < 3:
        legal, holds = game.legal_actions(), int(game.games[0].hand_size[game.seat])
        if len(legal) > 1:
            found = returns_of(agent, match, game.games, game.mask()[None] > 0, np.zeros((1, 200)))
            assert set(found[0, legal]) <= {-1.0, 0.0, 1.0}
            if holds == 1:
                outs += 1
                assert found[0, legal].tolist() == [1.0] * len(legal)
        game.play(int(random.choice(legal)))


@pytest.mark.parametrize(
    ("winner", "sides", "expected"),
    [(0b0100, 4, [-1 / 3, -1 / 3, 1, -1 / 3]), (0b0101, 2, [1, -1, 1, -1]), (0, 3, [0, 0, 0, 0])],
)
def test_a_round_pays_its_winners_1_and_the_losing_sides_share_what_they_lose(
    winner, sides, expected
):
    games = np.repeat(Game("sin_robo", seed=0).games, 4).view(np.recarray)
    games["winner"] = winner
    assert won(games, np.arange(4), sides).tolist() == pytest.approx(expected)


@pytest.mark.parametrize(
    ("trained", "played", "expected"),
    [
        ({"episode": "round"}, {"episode": "round"}, (True, False)),
        ({}, {}, (True, True)),
        ({"episode": "round"}, {}, (True, False)),
        ({}, {"episode": "round"}, (False, True)),
        ({"episode": "round", "reward": "points"}, {"episode": "round"}, (False, False)),
        ({"reward": "points"}, {"reward": "points"}, (False, False)),
        ({"seats": 4}, {"seats": 3}, (False, False)),  # at another table, as four can observe three
    ],
    ids=str,
)
def test_the_networks_value_is_used_for_what_it_was_trained_for_alone(trained, played, expected):
    rules = Rules.preset("cabra", **played)
    agent = agent_of(rules, trained=Rules.preset("cabra", **trained), observe_as=4)
    assert policy_search.Leaves.of(agent, rules) == expected


# ---------------------------------------------------------------- how likely a world is


@pytest.mark.parametrize(
    ("preset", "fields"),
    [
        ("sin_robo", {"seats": 4, "teams": True}),
        ("estandar", {"draw": "one", "reserve": 2}),
        ("cabra", {"next_lead": "winner", "target": 500}),
    ],
    ids=str,
)
def test_a_world_is_as_likely_as_all_choices_of_the_others_together(preset, fields):
    game, random = Game(Rules.preset(preset, **fields), seed=4), np.random.default_rng(4)
    agent, seats = agent_of(game.rules), game.rules.seats
    sums, choices = np.zeros(seats), 0
    for _ in range(40):
        mover, legal, round_number = game.seat, game.legal_actions(), game.round
        action = int(random.choice(legal))
        if len(legal) > 1:
            chance = (1 - CARELESS) * chances(agent, game)[action] + CARELESS / len(legal)
            sums[np.arange(seats) != mover] += np.log(chance)
            choices += 1
        game.play(action)
        if game.over:
            break
        if game.round != round_number:
            sums[:] = 0.0
        every = np.repeat(game.games, 2 * seats).view(np.recarray)  # each of them twice
        found = log_likelihood(agent, game.rules, every, np.arange(2 * seats) % seats)
        assert found == pytest.approx(np.tile(sums, 2), abs=1e-4)
    assert choices > 6


# ---------------------------------------------------------------- what it plays


def test_the_policy_decides_where_all_worlds_say_the_same(monkeypatch):
    monkeypatch.setattr(
        policy_search, "returns_of", lambda p, r, w, legal, luck: np.where(legal, 0.5, np.nan)
    )
    rules = Rules.preset("estandar")
    view, agent = positions(rules), agent_of(rules)
    expected = agent.policy(view).argmax(1)
    assert (expected != view.mask.argmax(1)).any()
    np.testing.assert_array_equal(PolicySearch(agent, "3", seed=0).act(view), expected)


def test_the_fewer_the_worlds_the_more_the_policys_opinion_counts(monkeypatch):
    """Half of the worlds say 1 and the others 0: a standard error of 0.5 / sqrt(N)."""

    def split(policy, rules, worlds, legal, luck):
        return np.where(legal, np.arange(len(worlds))[:, None] % 2, np.nan)

    monkeypatch.setattr(policy_search, "returns_of", split)
    rules = Rules.preset("sin_robo", lead_tile="free")
    view, agent = positions(rules, games=4, moves=0), agent_of(rules)
    assert view.games is not None
    opinion = log_policy(agent, rules, view.games)
    for worlds, error in ((4, 0.25), (64, 0.0625)):
        values = PolicySearch(agent, str(worlds), seed=0).values(view)
        expected = np.where(view.mask > 0, 0.5 + policy_search.HEAT * error * opinion, np.nan)
        np.testing.assert_allclose(values, expected, atol=1e-4)


@pytest.mark.parametrize(
    ("preset", "fields", "solves"),
    [
        ("cabra", {"episode": "round"}, True),
        ("sin_robo", {"seats": 4, "teams": True}, True),
        ("cabra", {"episode": "round", "seats": 3}, False),
        ("cabra", {}, False),
    ],
    ids=str,
)
def test_the_end_of_a_round_of_two_sides_is_solved(preset, fields, solves, monkeypatch):
    rules = Rules.preset(preset, **fields)
    agent = agent_of(rules)
    parts = [np.asarray(positions(rules, 16, moves).games) for moves in (3, 13)]
    games = np.concatenate(parts)
    view = View.of(rules, games)
    late = tiles_placed(games) >= LATE
    assert 0 < late.sum() < len(late)

    monkeypatch.setattr(Pimc, "_mean", lambda self, rules, games, legal: np.where(legal, 7, np.nan))
    asked = view.mask.sum(1) > 1
    found = PolicySearch(agent, "2", seed=0).values(view)
    solved = np.abs(np.nan_to_num(found, nan=7) - 7).max(1) < 1e-3
    np.testing.assert_array_equal(solved[asked], late[asked] & solves)


def test_what_is_solved_is_what_pimc_finds_and_the_policy_decides_between_equals(monkeypatch):
    monkeypatch.setattr(policy_search, "LATE", 0)
    rules = Rules.preset("estandar")
    view, agent = positions(rules, games=8, moves=12), agent_of(rules)
    assert view.games is not None
    expected = Pimc("5", seed=1).values(view)
    asked = view.mask.sum(1) > 1
    expected[asked] += policy_search.EQUAL * log_policy(agent, rules, view.games[asked])
    found = PolicySearch(agent, "5", seed=1).values(view)
    np.testing.assert_allclose(found[asked], expected[asked], rtol=0, atol=1e-9)


TABLES = [{}, {"seats": 3}, {"seats": 4}, {"seats": 4, "teams": True}]


@pytest.mark.parametrize("fields", TABLES, ids=str)
@pytest.mark.parametrize("preset", ["sin_robo", "cabra", "estandar"])
def test_hidden_tiles_do_not_change_its_move(preset, fields):
    rules = Rules.preset(preset, **fields)
    shape = {"privileged": True, "history": fields == {}}
    agent, random, different = agent_of(rules, **shape), np.random.default_rng(5), 0
    game = Game(rules, seed=5)
    while not game.over and different < 20:
        game.play(int(random.choice(game.legal_actions())))
        if game.over or len(game.legal_actions()) < 2:
            continue
        values = PolicySearch(agent, "2", seed=3).values(view_of(game))
        others = sample_worlds(game.games, None, 2, random)[0]
        for k in range(2):
            different += (others[k]["hands"] != game.games[0]["hands"]).any()
            again = PolicySearch(agent, "2", seed=3).values(View.of(rules, others[k : k + 1]))
            assert np.array_equal(again, values, equal_nan=True)
    assert different > 5


def test_the_same_seed_gives_the_same_moves_and_a_copy_goes_on_alike():
    rules = Rules.preset("cabra", episode="round")
    view, agent = positions(rules), agent_of(rules, spread=0.1)
    first, again, other = (PolicySearch(agent, "4", seed=seed) for seed in (1, 1, 2))
    before = first.values(view)
    np.testing.assert_array_equal(before, again.values(view))
    assert not np.array_equal(before, other.values(view), equal_nan=True)
    copy = first.copy()
    np.testing.assert_array_equal(copy.act(view), first.act(view))
    np.testing.assert_array_equal(copy.act(view), first.act(view))


def test_it_beats_the_policy_that_it_searches_with():
    rules = Rules.preset("sin_robo", lead_tile="free")
    agent = agent_of(rules, spread=0.1, trained=rules)
    result = evaluate(PolicySearch(agent, "8", seed=0), agent, rules, 120, seed=3, threads=1)
    assert result.mean - result.ci95 > 0


def test_it_plays_with_a_budget_in_time_and_leaves_torchs_threads_as_they_were():
    rules = Rules.preset("sin_robo")
    view = positions(rules, games=3)
    before = torch.get_num_threads()
    torch.set_num_threads(before + 1)
    try:
        actions = PolicySearch(agent_of(rules), "1ms", seed=0).act(view)
        assert torch.get_num_threads() == before + 1
    finally:
        torch.set_num_threads(before)
    assert view.mask[np.arange(3), actions].all()


# ---------------------------------------------------------------- names


def test_a_name_with_search_is_the_policy_of_a_folder_or_a_shipped_one(tmp_path, monkeypatch):
    rules = Rules.preset("cabra", episode="round", seats=2)
    save_policy(tmp_path, agent_of(rules).network)
    Home(monkeypatch, tmp_path / "policies")("cabra-2")
    for name in (f"{tmp_path}/", "cabra", "cabra-2"):
        agent = load(f"{name}+search:3", seed=0)
        assert isinstance(agent, PolicySearch)
        assert (agent.name, agent.worlds) == (f"{name}+search:3", 3)
        agent.check(rules)
        with pytest.raises(AgentError, match=r"found .*, (trained|shipped) for 2"):
            agent.check(rules.replace(seats=3))
        assert evaluate(agent, load("random", seed=0), rules, 2, threads=1).games == 4


@pytest.mark.parametrize("budget", ["", "0", "x", "0ms", "2s", "9999999"])
def test_a_budget_that_is_none_is_one_clear_error(budget, tmp_path):
    save_policy(tmp_path, agent_of(Rules.preset("cabra")).network)
    expected = r"worlds or milliseconds from 1 to 1,000,000, as in NAME\+search:20"
    with pytest.raises(AgentError, match=f"^search: found '{budget}', expected {expected}"):
        load(f"{tmp_path}/+search:{budget}")


def test_what_is_no_trained_policy_is_one_clear_error():
    with pytest.raises(AgentError, match=r"^search: found heaviest, expected a trained policy$"):
        load("heaviest+search:5")
    with pytest.raises(AgentError, match="there is no 'heavyest', did you mean heaviest"):
        load("heavyest+search:5")
