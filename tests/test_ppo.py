"""The learner: its loss, its gradients, its schedule, and that it learns."""

import copy
import math
import signal

import numpy as np
import pytest
import torch
from learning import another, flat_gradient, one_minibatch, small

from agents.base import load
from agents.evaluate import evaluate
from agents.graph import tiles_held
from agents.loss import WATCHED, Minibatch, Weights, loss_of, masked_log_softmax
from agents.ppo import Config, Learner
from agents.selfplay import parameters_of
from agents.settings import in_bf16
from agents.training import StopOnInterrupt, evaluations

# ---------------------------------------------------------------- probabilities and entropy


def test_the_masked_log_softmax_is_that_of_the_legal_actions_alone():
    """Odds 1 : 3 once the action with logit 9 is illegal."""
    logits = torch.tensor([[math.log(1), 9.0, math.log(3)]], requires_grad=True)
    log_probs = masked_log_softmax(logits, torch.tensor([[1, 0, 1]], dtype=torch.int8))
    np.testing.assert_allclose(log_probs.exp().detach(), [[0.25, 0, 0.75]], rtol=1e-6)
    assert log_probs[0, 1] < -1e8
    log_probs[0, 0].backward()
    assert logits.grad is not None
    np.testing.assert_allclose(logits.grad, [[0.75, 0, -0.75]], rtol=1e-6)


def test_the_masked_log_softmax_is_float32_even_of_bfloat16_logits():
    logits = torch.tensor([[1.0, 0.0, -3.0]])
    mask = torch.ones(1, 3, dtype=torch.int8)
    found = masked_log_softmax(logits.bfloat16(), mask)
    assert found.dtype == torch.float32
    np.testing.assert_allclose(found, logits.log_softmax(1), rtol=1e-6)


def test_entropy_is_over_legal_moves_only():
    """A network of zeros plays its m legal moves alike: the entropy is the sum of log m."""
    learner = Learner(small())
    with torch.no_grad():
        for parameter in learner.parameters:
            parameter.zero_()
    mb = one_minibatch(learner)
    loss = loss_of(learner.network, mb, learner.config, Weights(0.1), None)
    entropy = loss.watched[WATCHED.index("entropy")]
    expected = sum(math.log(m) for m in (mb.mask != 0).sum(1).tolist())
    assert entropy.item() == pytest.approx(expected, rel=1e-5)


# ---------------------------------------------------------------- the loss


def chances_of(logits, mask):
    """Probabilities of the legal actions alone, [B] arrays of different lengths."""
    found = [np.exp(row[legal != 0].numpy()) for row, legal in zip(logits, mask, strict=True)]
    return [odds / odds.sum() for odds in found]


def loss_by_formula(network, mb, config, weights, magnet):
    """The loss and WATCHED in float64, decision by decision, from arXiv 1707.06347.

    The dual clip is (5) of arXiv 1912.09729: the gain of a negative advantage A is at least
    c A. The magnet is the divergence of the policy from it, sum p log(p / q). Imitation is the
    cross-entropy of the teacher's moves (arXiv 1803.03835, of a teacher without doubt). What the
    solver adds is the mean of its values over the policy, with the sign of a loss. A guess of hands
    is off by the squares of what it is off for each pip and place.
    """
    with torch.no_grad():
        logits, values = (tensor.double() for tensor in network(mb.inputs))
        guess = network.judge(mb.inputs).held
        pulled = torch.zeros_like(logits) if magnet is None else magnet(mb.inputs)[0].double()
    sums = dict.fromkeys(WATCHED, 0.0)
    both = zip(chances_of(logits, mb.mask), chances_of(pulled, mb.mask), strict=True)
    for i, (chances, towards) in enumerate(both):
        legal = np.flatnonzero(mb.mask[i].numpy())
        chance = chances[legal.tolist().index(int(mb.action[i]))]
        ratio, advantage = chance / math.exp(mb.log_prob[i]), mb.advantage[i].item()
        within = min(max(ratio, 1 - config.clip), 1 + config.clip)
        gain = min(ratio * advantage, within * advantage)
        if config.dual_clip and advantage < 0:
            gain = max(gain, config.dual_clip * advantage)
        sums["policy_loss"] -= gain
        sums["value_loss"] += (values[i].item() - mb.returns[i].item()) ** 2 / 2
        sums["entropy"] -= (chances * np.log(chances)).sum()
        sums["approx_kl"] += ratio - 1 - math.log(ratio)
        sums["clip_fraction"] += ratio != within
        if config.magnet != "none":
            sums["magnet"] += (chances * np.log(chances / towards)).sum()
        if weights.teacher:
            sums["imitation"] -= math.log(chances[legal.tolist().index(int(mb.advice[i]))])
        if config.solver_weight:
            sums["solver"] -= (chances * mb.solved[i].numpy()[legal]).sum()
        if guess is not None:
            state, rules = mb.inputs.state[i : i + 1], config.games_rules[0]
            sums["hands"] += float(
                (guess[i] - tiles_held(state, rules.seats, rules)[0]).square().sum()
            )
    total = sums["policy_loss"] + config.value_weight * sums["value_loss"]
    total += config.magnet_weight * sums["magnet"] - weights.entropy * sums["entropy"]
    total += weights.teacher * sums["imitation"] + config.solver_weight * sums["solver"]
    total += config.hands_weight * sums["hands"]
    return total, [sums[name] for name in WATCHED]


@pytest.mark.parametrize(
    ("magnet", "dual_clip", "teacher", "solver", "hands"),
    [("none", 0, 0, 0, 0), ("none", 1.5, 0.4, 2, 0), ("uniform", 0, 0.4, 0, 0.2),
     ("periodic", 1.5, 0, 3, 0)],
)  # fmt: skip
def test_the_loss_is_that_of_the_formula(magnet, dual_clip, teacher, solver, hands):
    rules = {"preset": "estandar", "seats": 3}
    switches = {"magnet": magnet, "dual_clip": dual_clip, "solver_weight": solver}
    if hands:
        switches |= {"hands_weight": hands, "network": "graph", "hidden": (16, 16)}
    learner = Learner(small(rules=rules, magnet_weight=0.3, **switches))
    mb = one_minibatch(learner)
    noise = torch.from_numpy(np.random.default_rng(0).normal(size=len(mb.log_prob))).float()
    mb.log_prob = mb.log_prob + 0.5 * noise  # so that many ratios leave the range
    pull = another(learner.config, 1) if magnet == "periodic" else None
    network = another(learner.config, 2)
    mb.advice = mb.mask.argmax(1)
    if solver:
        assert (mb.solved != 0).any(1).float().mean() > 0.1  # it did say something
        mb.solved = torch.from_numpy(np.random.default_rng(1).normal(size=mb.mask.shape)).float()
    weights = Weights(0.07, teacher)
    loss = loss_of(network, mb, learner.config, weights, pull)
    total, watched = loss_by_formula(network, mb, learner.config, weights, pull)
    seen = dict(zip(WATCHED, watched, strict=True))
    assert 0.2 < seen["clip_fraction"] / len(mb) < 0.9
    assert (seen["magnet"] > 1) == (magnet != "none")
    assert (seen["imitation"] > 1) == (teacher > 0)
    assert (abs(seen["solver"]) > 1) == (solver > 0)
    assert (seen["hands"] > 1) == (hands > 0)
    assert loss.total.item() == pytest.approx(total, rel=1e-4)
    np.testing.assert_allclose(loss.watched, watched, rtol=1e-4)
    if dual_clip:
        other = loss_of(network, mb, small(rules=rules), weights, pull)
        assert other.watched[0] > loss.watched[0] + 1  # it did bound some of the losses


def test_a_uniform_magnet_has_the_gradient_of_that_much_entropy():
    """Their sum is log m for m legal moves, whatever the network plays."""
    config = small(magnet="uniform", magnet_weight=0.4)
    mb, network = one_minibatch(Learner(small())), another(config, 1)
    parameters = parameters_of(network)

    def gradient(config, entropy_weight):
        total = loss_of(network, mb, config, Weights(entropy_weight), None).total / len(mb)
        return flat_gradient(total, parameters)

    pulled = gradient(config, 0.05)
    assert np.abs(pulled - gradient(small(), 0.05)).max() > 1e-3
    np.testing.assert_allclose(pulled, gradient(small(), 0.45), atol=1e-6)


@pytest.mark.parametrize("bf16", [False, True])
def test_the_policy_that_learns_is_at_first_the_one_that_played(bf16):
    """In float32 and in bfloat16: no ratio is off before the first step of the optimiser."""
    config = small(bf16=bf16, epochs=1, minibatch=10**6)
    figures = Learner(config).update()
    assert abs(figures["losses/approx_kl"]) < 1e-6
    assert figures["losses/clip_fraction"] == 0


def gradients(learner: Learner, mb: Minibatch) -> np.ndarray:
    """The gradient that a step of the optimiser uses."""
    learner.learn(mb, Weights(0.05))
    flat = [
        parameter.grad.flatten() for parameter in learner.parameters if parameter.grad is not None
    ]
    return torch.cat(flat).numpy()


@pytest.mark.parametrize(("bf16", "tolerance"), [(False, 1e-5), (True, 2e-2)])
def test_the_gradient_of_two_workers_is_that_of_one(bf16, tolerance):
    mb = one_minibatch(Learner(small()))
    found = [
        gradients(Learner(small(workers=workers, bf16=bf16, gradient_norm=1e9)), mb)
        for workers in (1, 2, 3)
    ]
    scale = np.abs(found[0]).max()
    assert scale > 1e-3
    for other in found[1:]:
        np.testing.assert_allclose(other, found[0], atol=tolerance * scale)


def test_the_gradient_is_that_of_the_mean_loss_and_is_clipped():
    mb = one_minibatch(Learner(small()))
    learner = Learner(small())
    total = loss_of(learner.network, mb, learner.config, Weights(0.05), None).total / len(mb.action)
    plain = flat_gradient(total, learner.parameters)
    free = gradients(Learner(small(workers=2, gradient_norm=1e9)), mb)
    np.testing.assert_allclose(free, plain, atol=1e-6)
    clipped = gradients(Learner(small(gradient_norm=0.001)), mb)
    np.testing.assert_allclose(clipped, plain * 0.001 / np.linalg.norm(plain), atol=1e-7)


# ---------------------------------------------------------------- an update


def test_every_decision_of_a_rollout_is_learned_from_once_an_epoch():
    learner = Learner(small(epochs=3, minibatch=100))
    learner.update()
    learner.tables[0].storage.log_prob[:8] = torch.arange(512.0).reshape(
        8, 64
    )  # a name for each decision
    batches = [mb.log_prob.tolist() for mb in learner.minibatches()]
    assert [len(batch) for batch in batches] == [100, 100, 100, 100, 100, 12] * 3
    epochs = [[x for batch in batches[e : e + 6] for x in batch] for e in (0, 6, 12)]
    for epoch in epochs:
        assert sorted(epoch) == list(range(512))
    assert epochs[0] != epochs[1]


def test_a_minibatch_keeps_what_belongs_together():
    learner = Learner(small())
    learner.update()
    storage = learner.tables[0].storage
    storage.log_prob[:8] = torch.arange(512.0).reshape(8, 64)
    advantage = storage.advantage.flatten()
    mean, deviation = advantage.mean().item(), advantage.std(correction=0).item()
    mb = next(learner.minibatches())
    for i, name in enumerate(mb.log_prob.long().tolist()):
        k, b = divmod(name, 64)
        assert torch.equal(mb.inputs.observation[i], storage.observation[k, b])
        assert torch.equal(mb.mask[i], storage.mask[k, b])
        assert mb.action[i] == storage.action[k, b]
        expected = (storage.advantage[k, b].item() - mean) / deviation
        assert mb.advantage[i].item() == pytest.approx(expected, abs=1e-5)
        total = storage.advantage[k, b].item() + storage.value[k, b].item()
        assert mb.returns[i].item() == pytest.approx(total, abs=1e-6)


def test_learning_rate_and_entropy_weight_fall_over_the_run():
    learner = Learner(small(learning_rate=0.004, entropy=0.5, entropy_end=0.1))
    seen = []
    learn = learner.learn
    learner.learn = lambda mb, w: seen.append(w.entropy) or learn(mb, w)  # type: ignore
    rates = []
    while not learner.finished:
        seen.clear()
        rate = learner.update()["charts/learning_rate"]
        assert rate == learner.optimiser.param_groups[0]["lr"]
        rates.append((rate, seen[0]))
    expected = [(0.004 * left / 8, 0.1 + 0.4 * left / 8) for left in range(8, 0, -1)]
    np.testing.assert_allclose(rates, expected)


def test_the_schedule_stays_at_its_end_when_a_run_is_longer():
    learner = Learner(small(decisions=1))
    learner.update()
    before = copy.deepcopy(learner.network.state_dict())
    assert learner.finished
    learner.update()
    assert all(torch.equal(before[name], now) for name, now in learner.network.state_dict().items())


def test_the_played_network_is_an_average_of_the_trained_ones():
    """The first update is taken whole; the second moves it by 10/11 of the way."""
    learner = Learner(small())
    learner.update()
    first = [parameter.clone() for parameter in learner.parameters]
    for old, new in zip(parameters_of(learner.played), first, strict=True):
        assert torch.equal(old, new)
    learner.update()
    pairs = zip(parameters_of(learner.played), learner.parameters, first, strict=True)
    for played, new, old in pairs:
        np.testing.assert_allclose(played.detach(), (old + 10 * new).detach() / 11, atol=1e-6)


def test_rewards_are_divided_by_their_scale():
    """Points rewards with a scale of 10 give a tenth of the advantage of a network of zeros."""
    rules = {"preset": "sin_robo", "reward": "points"}
    found = []
    for scale in (1.0, 10.0):
        learner = Learner(small(rules=rules, reward_scale=scale))
        with torch.no_grad():
            for parameter in learner.parameters:
                parameter.zero_()
        learner.update()
        found.append(learner.tables[0].storage.advantage.numpy())
    assert np.abs(found[0]).max() > 5
    np.testing.assert_allclose(found[1], found[0] / 10, atol=1e-5)


def test_explained_variance_is_what_its_name_says():
    learner = Learner(small())
    learner.update()
    storage = learner.tables[0].storage
    value, advantage = storage.value[:8].numpy(), storage.advantage.numpy()
    returns = value + advantage
    expected = 1 - np.var(returns - value) / np.var(returns)
    assert learner.explained_variance() == pytest.approx(expected, abs=1e-4)


def test_a_single_decision_is_enough_for_an_update():
    learner = Learner(small(games=1, steps=1, workers=2, decisions=2))
    figures = learner.update()
    assert all(math.isfinite(figure) for figure in figures.values())
    assert all(parameter.isfinite().all() for parameter in learner.parameters)


def test_a_run_is_over_after_its_minutes_or_its_decisions():
    learner = Learner(small(minutes=2.0))
    assert not learner.finished
    learner.seconds = 119.0
    assert not learner.finished
    learner.seconds = 120.0
    assert learner.finished
    endless = Learner(small())
    endless.seconds = 1e9
    assert not endless.finished
    endless.decisions = 8 * 512
    assert endless.finished


def test_a_schedule_in_minutes_ends_with_them_or_with_the_decisions():
    learner = Learner(small(minutes=2.0, schedule="minutes", learning_rate=0.004))
    learner.seconds = 90.0
    assert learner.update()["charts/learning_rate"] == pytest.approx(0.001)
    learner.seconds, learner.decisions = 30.0, 7 * 512
    assert learner.update()["charts/learning_rate"] == pytest.approx(0.0005)
    with pytest.raises(ValueError, match="schedule: found minutes, expected a number of minutes"):
        Learner(small(schedule="minutes"))


@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_bfloat16_is_used_as_told_or_where_the_device_has_it(monkeypatch, device):
    monkeypatch.setattr("torch.cpu._is_avx512_bf16_supported", lambda: False, raising=False)
    for has in (True, False):
        monkeypatch.setattr("torch.cpu._is_amx_tile_supported", lambda has=has: has, raising=False)
        monkeypatch.setattr("torch.cuda.is_bf16_supported", lambda has=has: has)
        assert [in_bf16(Config(bf16=told, device=device)) for told in (None, True, False)] == [
            has,
            True,
            False,
        ]


def test_an_evaluation_changes_nothing_of_the_learner():
    learners = [Learner(small(evaluate_deals=16)) for _ in range(2)]
    for learner in learners:
        learner.update()
    figures = evaluations(learners[0])
    assert evaluations(learners[0]) == figures
    assert learners[0].update()["losses/value_loss"] == learners[1].update()["losses/value_loss"]


def test_the_first_interrupt_asks_and_the_second_one_stops():
    before = signal.getsignal(signal.SIGINT)
    with StopOnInterrupt() as stop:
        signal.raise_signal(signal.SIGINT)
        assert stop.asked
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
    assert signal.getsignal(signal.SIGINT) is before


# ---------------------------------------------------------------- learning


@pytest.mark.parametrize("seats", [2, 3])
def test_training_on_a_tiny_game_beats_uniform_play(seats):
    """Double-2, two tiles a seat; with the advantage's sign turned it would not."""
    rules = {"preset": "sin_robo", "set": 2, "hand_size": 2, "lead": "seat", "seats": seats}
    config = small(rules=rules, decisions=120 * 1024, games=128, minibatch=1024, learning_rate=0.01)
    learner = Learner(config)
    start = evaluate(learner.agent(), load("random", seed=0), learner.tables[0].rules, 20)
    assert start.games == 20 * seats
    while not learner.finished:
        learner.update()
    result = evaluate(learner.agent(), load("random", seed=0), learner.tables[0].rules, 4096)
    print(result)
    assert result.mean - 2 * result.ci95 > 0
