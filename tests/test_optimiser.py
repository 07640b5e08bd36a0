"""Optimisers: what a step of Muon does to a matrix, and which weights it moves."""

import copy

import numpy as np
import pytest
import torch
from learning import small, weights_of

from agents.network import Network
from agents.optimiser import MOMENTUM, Muon, optimiser_of, orthogonal
from agents.ppo import Learner, shape_of

RATE = 0.004


def matrix(rows: int, columns: int, condition: float = 100.0, scale: float = 1.0) -> torch.Tensor:
    """Singular values fall evenly in their logarithms from `scale` to that over `condition`."""
    torch.manual_seed(rows * columns)
    u, _, v = torch.linalg.svd(torch.randn(rows, columns), full_matrices=False)
    values = scale * condition ** -torch.linspace(0, 1, min(rows, columns))
    return u * values @ v


def directions(found: torch.Tensor, like: torch.Tensor) -> torch.Tensor:
    """`found` [M, N] in the singular vectors of `like`."""
    u, _, v = torch.linalg.svd(like.double(), full_matrices=False)
    return u.T @ found.double() @ v.T


@pytest.mark.parametrize("scale", [1e-4, 1.0, 1e4])
@pytest.mark.parametrize("shape", [(8, 8), (8, 20), (20, 8), (128, 250), (1, 5)])
def test_singular_values_are_brought_near_to_one_and_their_vectors_kept(shape, scale):
    given = matrix(*shape, scale=scale)
    found = directions(orthogonal(given), given)
    values = found.diagonal()
    assert 0.6 < values.min() <= values.max() < 1.3
    np.testing.assert_allclose(found, values.diag(), atol=2e-3)


def test_very_small_singular_values_grow_but_stay_small():
    values = directions(orthogonal(given := matrix(8, 20, condition=1e6)), given).diagonal()
    start = torch.linalg.svdvals(given) / given.norm()
    np.testing.assert_allclose(values[-1] / start[-1], 3.4445**5, rtol=0.02)
    assert values[-1] < 0.001


def test_no_gradient_is_no_step():
    assert not orthogonal(torch.zeros(4, 6)).any()


def network_of(optimiser: str, **fields) -> tuple[Network, Muon]:
    torch.manual_seed(0)
    network = Network(shape_of(small(privileged_critic=True, history=True, **fields)))
    return network, optimiser_of(optimiser, network, RATE)


def stepped(network: Network, optimiser: torch.optim.Optimizer, steps: int) -> list[torch.Tensor]:
    """Take steps along made-up gradients; the gradients of each parameter, [steps, ...]."""
    torch.manual_seed(1)
    given = [torch.randn(steps, *parameter.shape) for parameter in network.parameters()]
    for step in range(steps):
        for parameter, gradients in zip(network.parameters(), given, strict=True):
            parameter.grad = gradients[step].clone()
        optimiser.step()
    return given


def test_adam_is_that_of_torch():
    network, ours = network_of("adam")
    other = copy.deepcopy(network)
    stepped(network, ours, 3)
    stepped(other, torch.optim.Adam(other.parameters(), RATE, fused=True), 3)
    np.testing.assert_array_equal(weights_of(network), weights_of(other))


def test_muon_moves_matrices_by_the_momentum_of_their_gradients_and_the_rest_by_adam():
    network, muon = network_of("muon")
    before, adam = copy.deepcopy(network), copy.deepcopy(network)
    gradients = stepped(network, muon, 2)
    stepped(adam, torch.optim.Adam(adam.parameters(), RATE, fused=True), 2)
    by_muon = {id(parameter) for parameter in muon.matrices}
    rest = 0
    every = zip(network.parameters(), before.parameters(), adam.parameters(), strict=True)
    for (now, old, by_adam), (first, second) in zip(every, gradients, strict=True):
        if id(now) not in by_muon:
            np.testing.assert_array_equal(now.detach(), by_adam.detach())
            rest += 1
            continue
        momenta = [(1 - MOMENTUM) * first]
        momenta.append(MOMENTUM * momenta[0] + (1 - MOMENTUM) * second)
        ahead = [
            MOMENTUM * momentum + (1 - MOMENTUM) * gradient
            for momentum, gradient in zip(momenta, (first, second), strict=True)
        ]
        length = RATE * 0.2 * max(now.shape) ** 0.5
        expected = old - length * (orthogonal(ahead[0]) + orthogonal(ahead[1]))
        np.testing.assert_allclose(now.detach(), expected.detach(), atol=1e-6)
    assert 0 < rest < len(gradients)


@pytest.mark.parametrize(
    ("network", "hidden", "without"),
    [
        ("mlp", (16, 16), {"head", "critic", "columns"}),
        ("graph", (16, 8, 8), {"head", "score", "critic"}),
        ("attention", (16, 16), {"tile_head", "table_head", "critic", "tile_name", "columns"}),
    ],
)
def test_muon_moves_all_matrices_between_layers(network, hidden, without):
    """All weights with two axes but for logits, the value, and vectors of tiles and events."""
    built, muon = network_of("muon", network=network, hidden=hidden)
    matrices = {name: p for name, p in built.named_parameters() if p.ndim == 2}
    moved = {n for n, p in matrices.items() if any(p is matrix for matrix in muon.matrices)}
    rest = {part for name in matrices.keys() - moved for part in name.split(".")}
    assert without <= rest
    assert not any(part in without for name in moved for part in name.split("."))
    assert {name for name in matrices if not without & set(name.split("."))} - moved <= {
        "actor.events.place"
    }


def test_a_learner_lets_the_steps_of_both_fall():
    learner = Learner(small(optimiser="muon"))
    for _ in range(8):
        learner.update()
    assert learner.finished
    before = weights_of(learner.network)
    learner.update()  # behind the end of its schedule the learning rate is zero
    assert len(learner.optimiser.matrices) == 1
    np.testing.assert_array_equal(weights_of(learner.network), before)
