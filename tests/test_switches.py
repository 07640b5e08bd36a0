"""The switches of a training run: each does what its text in `Config` says."""

import copy
from dataclasses import replace
from itertools import product

import numpy as np
import pytest
import torch
from learning import TABLES, another, one_minibatch, small, weights_of

from agents import cli
from agents.base import AgentError, View, load
from agents.graph import tiles_held
from agents.loss import WATCHED, Weights
from agents.policy import load_policy, save_policy
from agents.ppo import Learner, shape_of
from agents.solver import Solver
from agents.training import evaluations, labels
from domino_env import DominoVec, Rules

FOUR_TABLES = [
    {"preset": preset, **table}
    for preset, table in zip(["cabra", "sin_robo", "estandar", "cabra"], TABLES, strict=True)
]


# ---------------------------------------------------------------- steps of the optimiser


def test_a_learning_rate_that_does_not_fall_leaves_the_entropy_to_fall(monkeypatch):
    learner = Learner(small(anneal=False, learning_rate=0.004, entropy=0.5, entropy_end=0.1))
    weights = []
    epochs = learner.epochs
    monkeypatch.setattr(learner, "epochs", lambda w: weights.append(w.entropy) or epochs(w))
    rates = [learner.update()["charts/learning_rate"] for _ in range(8)]
    assert rates == [0.004] * 8
    np.testing.assert_allclose(weights, [0.1 + 0.4 * left / 8 for left in range(8, 0, -1)])


def test_advantages_that_are_not_normalised_are_learned_from_as_they_are():
    for normalise in (True, False):
        learner = Learner(small(normalise=normalise))
        mb = one_minibatch(learner)
        found = np.sort(mb.advantage)
        plain = np.sort(learner.tables[0].storage.advantage.flatten())
        expected = (plain - plain.mean()) / plain.std() if normalise else plain
        np.testing.assert_allclose(found, expected, atol=1e-5)
        total = learner.flat("advantage") + learner.flat("value")  # what the value learns stays
        np.testing.assert_array_equal(np.sort(mb.returns), np.sort(total))


@pytest.mark.parametrize(("limit", "expected"), [(0.03, 3), (0.0, 8), (1.0, 8)])
def test_the_epochs_end_once_a_minibatch_has_moved_too_far(monkeypatch, limit, expected):
    """Four minibatches an epoch; the third has moved by 0.05."""
    learner = Learner(small(epochs=2, minibatch=128, target_kl=limit))
    moved = iter([0.0, 0.01, 0.05, 0.0, 0.0, 0.0, 0.0, 0.0])
    seen = []

    def learn(mb, entropy_weight):
        seen.append(len(mb))
        return torch.tensor([next(moved) if name == "approx_kl" else 1.0 for name in WATCHED])

    monkeypatch.setattr(learner, "learn", learn)
    figures = learner.update()
    assert seen == [128] * expected
    assert figures["losses/approx_kl"] == pytest.approx(0.06 / expected)
    assert learner.updates == 1


# ---------------------------------------------------------------- magnets


def test_a_periodic_magnet_is_a_copy_that_is_renewed_when_it_is_due():
    learner = Learner(small(magnet="periodic", magnet_every=2))
    assert learner.magnet is not None
    expected = weights_of(learner.network)  # the first one is the network at the beginning
    for update in range(1, 6):
        np.testing.assert_array_equal(weights_of(learner.magnet), expected)
        learner.update()
        if update % 2 == 0:
            expected = weights_of(learner.network)
    assert not np.array_equal(weights_of(learner.network), expected)


def test_a_magnet_holds_the_policy_back():
    """The stronger it pulls towards the beginning, the nearer the policy stays to it."""
    moved = {}
    for weight in (0.0, 10.0):
        learner = Learner(small(magnet="periodic", magnet_weight=weight, learning_rate=0.01))
        for _ in range(4):
            moved[weight] = learner.update()["losses/magnet"]
    assert 0 < moved[10.0] < 0.1 * moved[0.0]


def test_only_a_periodic_magnet_takes_memory():
    assert Learner(small()).magnet is None
    assert Learner(small(magnet="uniform")).magnet is None


# ---------------------------------------------------------------- the teacher


def test_the_advice_is_what_the_teacher_plays_in_each_position():
    learner = Learner(small(teacher="expert", steps=4))
    (table,) = learner.tables
    assert learner.teacher is not None
    expert, games = load("expert"), table.vec.games.copy()
    learner.rollout(taught=True)
    for k in range(4):
        best = expert.policy(View.of(table.rules, games, expert.uses))  # it breaks ties at random
        assert (best[np.arange(64), table.storage.advice[k]] > 0).all()
        vec = DominoVec(64, table.rules)
        vec.games[:] = games
        vec.step(table.storage.action[k].numpy())
        games = vec.games.copy()


def test_a_run_learns_to_play_as_its_teacher():
    learner = Learner(small(teacher="heaviest", teacher_share=1.0, learning_rate=0.03, games=256))
    before = learner.update()["losses/imitation"]
    for _ in range(6):
        after = learner.update()["losses/imitation"]
    assert after < 0.5 * before


def test_the_teacher_falls_silent_when_its_share_of_the_run_is_over():
    learner = Learner(small(teacher="expert", teacher_weight=2.0, teacher_share=0.5))
    found = [learner.weights(left).teacher for left in (1.0, 0.75, 0.5, 0.25)]
    assert found == pytest.approx([2.0, 1.0, 0.0, 0.0])
    figures = [learner.update()["losses/imitation"] for _ in range(8)]
    assert [figure > 0 for figure in figures] == [True] * 4 + [False] * 4
    assert Learner(small()).weights(1.0).teacher == 0


# ---------------------------------------------------------------- the solver


def test_the_solver_says_how_much_better_than_the_mean_each_move_is():
    """In half of the positions with so many tiles on the table, by the solver itself."""
    learner = Learner(
        small(solver_weight=1.0, solver_from=6, solver_share=0.5, solver_depth=3, steps=12)
    )
    (table,) = learner.tables
    learner.rollout()  # from here on the games are in the middle of their rounds
    table.storage.carry_over()
    games, asked, late = table.vec.games.copy(), 0, 0
    learner.updates = 1
    learner.rollout()
    for k in range(12):
        values = Solver(table.rules, "win", depth=3).action_values(games)
        better = np.nan_to_num(values - np.nanmean(values, 1, keepdims=True))
        found = table.storage.solved[k].numpy()
        said = found.any(1)
        np.testing.assert_allclose(found[said], better[said], atol=1e-6)
        placed = np.array([sum(int(seat).bit_count() for seat in g["placed"]) for g in games])
        assert (placed[said] >= 6).all()
        differs = better.any(1) & (placed >= 6)
        asked, late = asked + said.sum(), late + differs.sum()
        vec = DominoVec(64, table.rules)
        vec.games[:] = games
        vec.step(table.storage.action[k].numpy())
        games = vec.games.copy()
    assert late > 100
    assert 0.3 < asked / late < 0.7


def test_a_run_learns_what_the_solver_says():
    learner = Learner(small(solver_weight=10.0, learning_rate=0.01, hidden=(64,)))
    mb = one_minibatch(learner)
    figures = [learner.learn(mb, learner.weights(1.0)) for _ in range(40)]
    before, after = (figure[WATCHED.index("solver")] for figure in figures[::39])
    best = mb.solved.max(1).values.mean()  # of a policy that always plays what it says
    assert abs(before) < 0.1 * best
    assert -after > 0.6 * best


def test_only_a_solver_that_is_asked_takes_memory():
    assert Learner(small()).tables[0].storage.solved.numel() == 0


def test_a_solver_refuses_what_it_cannot_judge():
    with pytest.raises(ValueError, match="solver_weight: found episode match and reward win"):
        Learner(small(rules={"preset": "cabra"}, solver_weight=1.0))


# ---------------------------------------------------------------- hands


def test_a_run_learns_to_guess_hands_better_than_by_their_means():
    fields = {"network": "graph", "hidden": (32, 32), "history": True}
    rules = {"preset": "sin_robo", "seats": 4, "teams": True}
    learner = Learner(small(rules=rules, hands_weight=1.0, learning_rate=0.01, **fields))
    mb = one_minibatch(learner)
    assert mb.inputs.state is not None
    figures = [learner.learn(mb, learner.weights(1.0)) for _ in range(60)]
    first, last = (float(figure[WATCHED.index("hands")]) for figure in figures[::59])
    truth = tiles_held(mb.inputs.state, 4, Rules.from_dict(rules))
    of_means = float((truth - truth.mean(0)).square().sum()) / len(mb)
    assert first > of_means
    assert last < 0.9 * of_means


def test_a_guess_of_hands_is_no_part_of_play(tmp_path):
    """It is taken over where both have one, and where one alone has it that is no other network."""
    fields = {"network": "graph", "hidden": (16, 16)}
    with_it, without = small(hands_weight=0.1, **fields), small(**fields)
    assert shape_of(with_it).parts == ("observation", "state")
    for before, now in product((with_it, without), repeat=2):
        made = another(before, 1)
        folder = tmp_path / f"{before.hands_weight}-{now.hands_weight}"
        folder.mkdir()
        save_policy(folder, made)
        learner = Learner(replace(now, initial=str(folder)))
        taken, made = learner.network.state_dict(), made.state_dict()
        for name in made.keys() & taken.keys():
            np.testing.assert_array_equal(made[name], taken[name])
        learner.update()
    agent = load_policy(tmp_path / "0.1-0.1")
    assert agent.uses == {"observation"}


# ---------------------------------------------------------------- where it begins


def test_a_run_may_begin_with_the_weights_of_a_policy(tmp_path):
    before = Learner(small(seed=5))
    before.update()
    save_policy(tmp_path, before.played)
    learner = Learner(small(initial=str(tmp_path), magnet="periodic", rules={"preset": "sin_robo"}))
    assert learner.magnet is not None
    for network in (learner.network, learner.played, learner.magnet):
        np.testing.assert_array_equal(weights_of(network), weights_of(before.played))
    learner.update()
    assert not np.array_equal(weights_of(learner.network), weights_of(before.played))


@pytest.mark.parametrize(
    "fields",
    [{"hidden": (17,)}, {"hidden": (16, 16)}, {"network": "attention"}, {"rules": {"seats": 3}},
     {"privileged_critic": True}, {"history": True}],
)  # fmt: skip
def test_a_policy_of_another_shape_is_one_clear_error(tmp_path, fields):
    save_policy(tmp_path, Learner(small()).played)
    with pytest.raises(ValueError, match="initial: found another network in") as caught:
        Learner(small(initial=str(tmp_path), **fields))
    assert str(caught.value) == (
        f"initial: found another network in {tmp_path}, expected that of this run"
    )


def test_a_beginning_that_is_not_there_is_one_line(tmp_path, capsys):
    with pytest.raises(AgentError, match=f"{tmp_path}: there is no policy.safetensors in it"):
        Learner(small(initial=str(tmp_path)))
    words = ["train", "cabra", "--initial", str(tmp_path), "--run", str(tmp_path / "run")]
    assert cli.main(words) == 2
    printed = capsys.readouterr()
    assert printed.err == f"domino: {tmp_path}: there is no policy.safetensors in it\n"
    assert not (tmp_path / "run").exists()


# ---------------------------------------------------------------- several games at once


def one_of_four(learner: Learner, k: int) -> Learner:
    """A learner of one of the four tables alone, with the same network and random numbers."""
    config = learner.config
    games = config.games // 4
    alone = Learner(
        small(
            rules=FOUR_TABLES[k],
            observe_as=4,
            games=games,
            seed=config.seed + k * games,
            minibatch=10**6,
            normalise=False,
            gradient_norm=1e9,
        )
    )
    alone.network.load_state_dict(learner.network.state_dict())
    alone.random = np.random.default_rng(config.seed)
    alone.random.random((config.steps, k * games))  # what the tables before it have used
    return alone


def gradient_of(learner: Learner) -> np.ndarray:
    """That of all decisions of a first rollout."""
    learner.learn(one_minibatch(learner), Weights(0.05))
    return np.concatenate([p.grad.flatten() for p in learner.parameters if p.grad is not None])


def test_each_table_plays_its_own_rules_and_learns_what_it_would_alone():
    """The rollouts are equal, and the gradient is the mean of those of the four."""
    config = small(rules=FOUR_TABLES, observe_as=4, normalise=False, gradient_norm=1e9)
    learner = Learner(copy.copy(config))
    alone = [one_of_four(learner, k) for k in range(4)]
    gradients = [gradient_of(one) for one in alone]
    whole = gradient_of(learner)
    for k, table in enumerate(learner.tables):
        assert table.rules == Rules.from_dict(FOUR_TABLES[k])
        assert (table.vec.num_games, table.vec.places) == (16, 4)
        other = alone[k].tables[0].storage
        for name in ("observation", "mask", "seat", "action", "log_prob", "reward", "advantage"):
            found, expected = getattr(table.storage, name), getattr(other, name)
            np.testing.assert_array_equal(found, expected, err_msg=f"{k} {name}")
    scale = np.abs(whole).max()
    np.testing.assert_allclose(whole, np.mean(gradients, 0), atol=1e-5 * scale)
    assert np.abs(gradients[0] - gradients[1]).max() > 0.1 * scale


@pytest.mark.parametrize("network", ["mlp", "attention"])
def test_games_with_histories_of_different_lengths_are_learned_together(network):
    """The shorter ones get rows without an event behind them."""
    learner = Learner(small(rules=FOUR_TABLES, observe_as=4, history=True, network=network))
    learner.update()
    lengths = [table.vec.current().history.shape[1] for table in learner.tables]
    assert len(set(lengths)) > 1
    history = learner.flat("history")
    assert history.shape == (512, max(lengths), 4)
    for k, table in enumerate(learner.tables):
        rows = history[128 * k : 128 * (k + 1)]
        assert torch.equal(rows[:, : lengths[k]], table.storage.flat("history"))
        assert not rows[:, lengths[k] :].any()


def test_games_that_do_not_divide_evenly_are_all_played():
    learner = Learner(small(rules=FOUR_TABLES[:3], observe_as=4))
    assert [table.vec.num_games for table in learner.tables] == [21, 21, 22]
    learner.update()
    assert sum(len(mb) for mb in learner.minibatches()) == 2 * 512


def test_the_results_of_several_games_have_names_of_their_own():
    learner = Learner(small(rules=FOUR_TABLES, observe_as=4, evaluate_every=1, evaluate_deals=4))
    figures = evaluations(learner)
    names = ["cabra-2", "sin_robo-3", "estandar-4", "cabra-pairs"]
    assert list(figures) == [
        f"eval/{name}/heaviest{end}" for name in names for end in ("", "_ci95")
    ]
    same = Rules.preset("cabra", target=50)
    games = [Rules.preset("cabra"), Rules.preset("sin_robo"), same]
    assert labels(games) == ["cabra-2-0", "sin_robo-2", "cabra-2-2"]
    one = Learner(small(evaluate_every=1, evaluate_deals=4, baselines=("random", "expert")))
    assert [*evaluations(one)][::2] == ["eval/random", "eval/expert"]


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"rules": []}, "rules: found an empty list, expected one game or more"),
        ({"rules": FOUR_TABLES, "observe_as": 4, "games": 3}, "games: found 3, expected one for"),
        ({"rules": [{"set": 6}, {"set": 9}]}, "rules: found several sets, expected one set"),
        ({"rules": FOUR_TABLES[:2]}, r"rules: found \[2, 3\] seats, expected observe_as: 4"),
        ({"rules": {"seats": 4}, "observe_as": 3}, "observe_as: found 3, expected at least 4"),
        ({"pool": 0.6, "bots": 0.5}, r"pool, bots: found 0\.6 and 0\.5, expected at most 1"),
        ({"pool": 0.1, "pool_size": 0}, "pool_size: found 0, expected 1 or more with a pool"),
        ({"bots": 0.1, "bot_names": ()}, "bot_names: found none, expected one or more with bots"),
        ({"bots": 0.1, "bot_names": ("expart",)}, r"no 'expart', did you mean expert\?"),
    ],
)
def test_fields_that_do_not_fit_each_other_are_one_clear_error(fields, message):
    with pytest.raises(ValueError, match=message) as caught:
        Learner(small(**fields))
    assert "\n" not in str(caught.value)


def test_the_network_is_shown_what_the_switches_say():
    everything = small(history=True, belief=True, privileged_critic=True)
    assert shape_of(everything).parts == ("observation", "history", "belief", "state")
    assert shape_of(small()).parts == ("observation",)
    storage = Learner(everything).tables[0].storage
    assert {name: part.shape[2:] for name, part in storage.inputs()._asdict().items()} == {
        "observation": (193,),
        "history": (74, 4),
        "belief": (3, 28),
        "state": (249,),
    }
