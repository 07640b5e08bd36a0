"""Rollouts and advantages: what is stored, what is drawn, and which seat is credited."""

import math
from collections.abc import Callable

import numpy as np
import pytest
import torch

from agents.selfplay import Storage, Workers, collect, sample, seat_advantages
from agents.shape import Inputs
from domino_env import DominoVec
from domino_env.vector import BATCH_FIELDS

ROLLOUT_FIELDS = ("observation", "mask", "seat", "reward", "done")


def advantages_of(seat, value, reward, done, teams=False, gamma=1.0, trace=1.0):
    """`seat_advantages` of arrays or lists [K + 1, B]; returns [K, B]."""
    out = np.zeros((len(seat) - 1, len(seat[0])), np.float32)
    seat_advantages(
        np.array(seat, np.int8),
        np.array(value, np.float32),
        np.array(reward, np.float32),
        np.array(done, bool),
        teams,
        gamma,
        trace,
        out,
    )
    return out


def of_one_game(seat, value, reward, done=(), **how):
    """The advantages [K] of one game; `done` lists the slots that begin a new episode."""
    column = [[slot in done] for slot in range(len(seat))]
    return advantages_of(
        [[s] for s in seat], [[v] for v in value], [[r] for r in reward], column, **how
    )[:, 0]


# ---------------------------------------------------------------- advantages by the definition


def episode_by_definition(slots, values, rewards, ended, ahead, gamma, trace):
    """One seat's decisions in one episode: sums of (gamma trace)^l delta_l, by arXiv 1506.02438.

    `rewards[i]` is what it earned from its decision i until its next one, or the end.
    """
    after = [*values, 0.0 if ended else ahead][1:]
    deltas = [r + gamma * v - now for r, v, now in zip(rewards, after, values, strict=True)]
    return {
        slots[i]: sum((gamma * trace) ** (j - i) * deltas[j] for j in range(i, len(slots)))
        for i in range(len(slots))
    }


def game_by_definition(seat, value, reward, done, teams, gamma, trace):
    """The advantages of one game, each seat by itself: arrays [K + 1], reward [K + 1, P]."""
    steps, seats = len(seat) - 1, reward.shape[1]
    found = {}
    for p in range(seats):
        if p == seat[steps] or (teams and p % 2 == seat[steps] % 2):
            ahead = value[steps]
        else:
            ahead = -value[steps] / (1 if teams else seats - 1)
        slots, rewards = [], []
        for k in range(steps):
            if seat[k] == p:
                slots.append(k)
                rewards.append(0.0)
            if rewards:
                rewards[-1] += reward[k + 1, p]
            if done[k + 1] or k + 1 == steps:
                mine = [value[slot] for slot in slots]
                ended = done[k + 1]
                found |= episode_by_definition(slots, mine, rewards, ended, ahead, gamma, trace)
                slots, rewards = [], []
    return np.array([found[k] for k in range(steps)])


@pytest.mark.parametrize(("seats", "teams"), [(2, False), (3, False), (4, False), (4, True)])
@pytest.mark.parametrize(("gamma", "trace"), [(1.0, 0.95), (0.9, 0.7), (1.0, 0.0), (1.0, 1.0)])
def test_advantages_are_those_of_the_definition_for_each_seat(seats, teams, gamma, trace):
    rng = np.random.default_rng([seats, teams])
    K, B = 12, 60
    seat = rng.integers(seats, size=(K + 1, B))
    value = rng.normal(size=(K + 1, B)).astype(np.float32)
    reward = rng.normal(size=(K + 1, B, seats)).astype(np.float32)
    done = rng.random((K + 1, B)) < 0.2
    found = advantages_of(seat, value, reward, done, teams, gamma, trace)
    for b in range(B):
        game = seat[:, b], value[:, b].astype(float), reward[:, b].astype(float), done[:, b]
        expected = game_by_definition(*game, teams, gamma, trace)
        np.testing.assert_allclose(found[:, b], expected, atol=2e-5)


# ---------------------------------------------------------------- advantages worked out by hand


def test_seats_that_do_not_make_the_last_move_get_their_reward():
    """Seats 0, 1, 2 move once each; seat 2's move ends it, seat 0 wins 1, the others lose 1/2."""
    reward = [[0, 0, 0], [0, 0, 0], [0, 0, 0], [1, -0.5, -0.5]]
    found = of_one_game([0, 1, 2, 1], [0.1, 0.2, 0.3, 9], reward, done=[3])
    np.testing.assert_allclose(found, [1 - 0.1, -0.5 - 0.2, -0.5 - 0.3], rtol=1e-6)


def test_a_seat_looks_ahead_to_its_own_next_decision():
    """A2 = 1 - 0.3, A1 = -1 - 0.2, A0 = (0.3 - 0.1) + 0.5 * A2."""
    reward = [[0, 0], [0, 0], [0, 0], [1, -1]]
    found = of_one_game([0, 1, 0, 1], [0.1, 0.2, 0.3, 9], reward, done=[3], trace=0.5)
    np.testing.assert_allclose(found, [0.2 + 0.5 * 0.7, -1.2, 0.7], rtol=1e-6)


def test_everything_earned_between_two_decisions_counts():
    """Rounds of a match pay seat 0 while others move: 1 + 2 + 4 until it moves again, then 8."""
    paid = [0, 1, 2, 4, 8]
    reward = [[r, -r / 2, -r / 2] for r in paid]
    found = of_one_game([0, 1, 2, 0, 1], [0] * 5, reward, trace=0.0)
    np.testing.assert_allclose(found, [7, -0.5 * (2 + 4 + 8), -0.5 * (4 + 8), 8])


def test_an_episode_knows_nothing_of_the_next_one():
    """Seat 0 ends an episode with its first move; the next episode pays it -1."""
    reward = [[0, 0], [1, -1], [0, 0], [-1, 1]]
    found = of_one_game([0, 0, 1, 0], [0, 0, 0, 9], reward, done=[1, 3])
    np.testing.assert_allclose(found, [1, -1, 1])


def test_behind_the_end_the_next_movers_value_counts_against_the_others():
    """Of three seats, the others share the opposite of what the mover, seat 2, expects."""
    for mover, expected in ((0, -0.3), (1, -0.3), (2, 0.6)):
        found = of_one_game([mover, 2], [0.25, 0.6], [[0, 0, 0], [0, 0, 0]])
        np.testing.assert_allclose(found, [expected - 0.25], rtol=1e-6)


def test_behind_the_end_a_partner_expects_the_same():
    for mover, expected in ((0, 0.6), (1, -0.6), (2, 0.6), (3, -0.6)):
        found = of_one_game([mover, 2], [0.25, 0.6], [[0] * 4, [0] * 4], teams=True)
        np.testing.assert_allclose(found, [expected - 0.25], rtol=1e-6)


def test_gamma_discounts_from_decision_to_decision_of_a_seat():
    """A1 = 0.5 * 0.4 - 0.2 is of seat 1, which expects -0.4 at slot 2; A0 = 0.5 * 0.4 - 0.1."""
    found = of_one_game([0, 1, 0], [0.1, 0.2, 0.4], [[0, 0]] * 3, gamma=0.5)
    np.testing.assert_allclose(found, [0.2 - 0.1, -0.2 - 0.2], rtol=1e-6)


# ---------------------------------------------------------------- drawing moves


def drawn_from(logits, mask, uniform):
    """Actions and log-probabilities for rows of logits, mask and uniform numbers."""
    action, log_prob = np.full(len(uniform), -7), np.full(len(uniform), 7, np.float32)
    sample(
        np.array(logits, np.float32), np.array(mask, np.int8), np.array(uniform), action, log_prob
    )
    return action, log_prob


def test_moves_are_drawn_as_often_as_the_softmax_over_legal_actions_says():
    rng = np.random.default_rng(5)
    logits = np.array([3.0, 0.5, 9.0, -1.0, 0.0, 1.5], np.float32)
    mask = np.array([1, 1, 0, 1, 0, 1], np.int8)
    n = 100_000
    action, log_prob = drawn_from(np.tile(logits, (n, 1)), np.tile(mask, (n, 1)), rng.random(n))
    odds = [math.exp(x) * m for x, m in zip(logits.tolist(), mask.tolist(), strict=True)]
    expected = np.array(odds) / sum(odds)
    seen = np.bincount(action, minlength=6)
    assert seen[mask == 0].sum() == 0
    legal = mask == 1
    chi2 = ((seen - n * expected)[legal] ** 2 / (n * expected)[legal]).sum()
    assert chi2 < 21.1  # exceeded once in 10,000 samples: three degrees of freedom
    np.testing.assert_allclose(log_prob, np.log(expected[action]), rtol=1e-5)


def test_the_uniform_number_decides_at_the_cumulated_probability():
    logits = [[9.0, math.log(1), math.log(3), 9.0]] * 4
    action, log_prob = drawn_from(logits, [[0, 1, 1, 0]] * 4, [0.0, 0.2499, 0.2501, 1 - 2**-53])
    assert action.tolist() == [1, 1, 2, 2]
    np.testing.assert_allclose(np.exp(log_prob), [0.25, 0.25, 0.75, 0.75], rtol=1e-6)


@pytest.mark.parametrize("uniform", [0.0, 0.5, 1 - 2**-53])
def test_extreme_logits_give_legal_moves_and_finite_probabilities(uniform):
    logits = [
        [3e38, -3e38, 0.0],
        [-3e38, 3e38, 3e38],
        [-3e38, -3e38, 3e38],
        [-1e4, 1e4, 2e4],
        [5.0, 1e4, -1e4],
    ]
    mask = [[0, 1, 0], [1, 1, 0], [1, 1, 0], [1, 1, 0], [0, 0, 1]]
    action, log_prob = drawn_from(logits, mask, [uniform] * 5)
    assert action[[0, 1, 3, 4]].tolist() == [1, 1, 1, 2]
    assert action[2] == (0 if uniform < 0.5 else 1)
    np.testing.assert_allclose(np.exp(log_prob), [1, 1, 0.5, 1, 1], rtol=1e-6)


# ---------------------------------------------------------------- rollouts


def greedy_for(A: int) -> Callable[[Inputs], tuple[torch.Tensor, torch.Tensor]]:
    """A network whose outputs do not depend on how rows are grouped: sums of whole numbers."""
    weights = torch.from_numpy(np.random.default_rng(0).integers(-2, 3, size=(512, A))).float() / 8

    def network(inputs):
        rows = inputs.observation.float().clamp(max=1)
        return rows @ weights[: rows.shape[1]], rows.sum(1) / 64

    return network


def play(games=64, steps=8, rollouts=1, workers=1, threads=1, seed=3, **rules):
    """Yield the storage after each of some rollouts of the stand-in network."""
    vec = DominoVec(games, seed=seed, threads=threads, **rules)
    storage = Storage(vec, steps)
    vec.reset(out=storage.batches[0])
    network, random = greedy_for(vec.rules.actions), np.random.default_rng(seed)
    crew = Workers(workers)
    for _ in range(rollouts):
        collect(vec, storage, network, random.random((steps, games)), crew)
        yield vec, storage
        storage.carry_over()


def test_the_environment_writes_into_the_tensors_themselves():
    vec = DominoVec(4, "cabra", seed=0)
    storage = Storage(vec, 3)
    for k, batch in enumerate(storage.batches):
        for name in ROLLOUT_FIELDS:
            tensor = getattr(storage, name)[k].numpy()
            array = getattr(batch, name)
            assert array.ctypes.data == tensor.ctypes.data
            assert (array.shape, array.dtype) == (tensor.shape, tensor.dtype)
    others = [name for name in BATCH_FIELDS if name not in ROLLOUT_FIELDS]
    vec.reset(out=storage.batches[2])
    assert storage.mask[2].any(1).all()
    assert not storage.mask[1].any()
    assert others  # the rest of a batch has arrays of its own


@pytest.mark.parametrize("rules", [{"rules": "cabra", "seats": 3}, {"seats": 4, "teams": True}])
def test_three_rollouts_are_one_run_of_the_same_games(rules):
    """Slot k + 1 is what slot k's actions led to, and slot 0 is where the last rollout ended."""
    twin = DominoVec(64, seed=3, **rules)
    batch = twin.reset()
    for _, storage in play(rollouts=3, **rules):
        for name in ("observation", "mask", "seat"):
            np.testing.assert_array_equal(getattr(storage, name)[0], getattr(batch, name))
        for k in range(8):
            batch = twin.step(storage.action[k].numpy())
            for name in ROLLOUT_FIELDS:
                np.testing.assert_array_equal(getattr(storage, name)[k + 1], getattr(batch, name))


def test_rewards_of_rollouts_sum_to_what_the_games_earned():
    rules = {"rules": "cabra", "seats": 3, "target": 30, "reward": "points"}
    vec = DominoVec(64, seed=3, **rules)
    before = vec.reset().reward.sum(0) * 0
    stored = np.zeros(3)
    finished = np.zeros(3)
    for played, storage in play(rollouts=6, **rules):
        stored += storage.reward[1:].numpy().sum((0, 1))
        for k in range(8):
            batch = vec.step(storage.action[k].numpy())
            finished += batch.final_reward[batch.done].sum(0)
        running = np.asarray(played.games["earned"])[:, :3].sum(0) / 6  # counted in sixths
    assert np.abs(finished).sum() > 100
    np.testing.assert_allclose(stored, before + finished + running, atol=1e-2)


def test_log_probs_and_values_are_those_of_the_network_at_that_slot():
    for vec, storage in play(rules="estandar"):
        network = greedy_for(vec.rules.actions)
        for k in range(9):
            logits, value = network(storage.inputs(k))
            np.testing.assert_array_equal(storage.value[k], value)
            legal = logits.double().masked_fill(storage.mask[k] == 0, -math.inf)
            log_probs = legal.log_softmax(1).gather(1, storage.action[k][:, None])[:, 0]
            np.testing.assert_allclose(storage.log_prob[k], log_probs, atol=1e-5)


def test_workers_and_threads_change_nothing_but_the_time():
    runs = [
        {name: getattr(storage, name).clone() for name in ("action", "observation", "reward")}
        for workers in (1, 2, 3)
        for _, storage in play(games=65, workers=workers, threads=workers, rules="cabra")
    ]
    for run in runs[1:]:
        for name, tensor in run.items():
            assert torch.equal(tensor, runs[0][name]), name


@pytest.mark.parametrize("length", [0, 1, 2, 7, 64])
@pytest.mark.parametrize("count", [1, 2, 5])
def test_workers_cover_a_range_once_and_in_order(count, length):
    parts = Workers(count).map(lambda part: list(range(length))[part], length)
    assert len(parts) == len(list(range(0, length, max(1, -(-length // count)))))
    assert [i for part in parts for i in part] == list(range(length))


@pytest.mark.parametrize("count", [1, 3])
def test_workers_cut_a_range_into_pieces_of_the_given_size(count):
    parts = Workers(count).map(lambda part: (part.start, part.stop), 10, 4)
    assert parts == [(0, 4), (4, 8), (8, 10)]


def test_an_error_in_a_worker_is_raised():
    with pytest.raises(ZeroDivisionError):
        Workers(2).map(lambda part: 1 // part.start, 4)
