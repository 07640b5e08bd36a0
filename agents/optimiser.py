"""Optimisers: Adam, or Muon for the inner layers and Adam for the rest."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from agents.network import Network

MOMENTUM = 0.95
# How often a x + b x^3 + c x^5 is taken of the singular values; a is what small ones grow by.
STEPS, QUINTIC = 5, (3.4445, -4.7750, 2.0315)
LIKE_ADAM = 0.2  # root mean square of a step of Adam, in learning rates (arXiv 2502.16982)


def optimiser_of(name: str, network: Network, learning_rate: float) -> Muon:
    """The optimiser called `adam` or `muon` of all weights of a network."""
    inner = network.inner_weights() if name == "muon" else []
    return Muon(inner, list(network.parameters()), learning_rate)


class Muon(torch.optim.Adam):
    """Adam (arXiv 1412.6980) but for some matrices, which move by Muon (arXiv 2502.16982).

    Their step is the momentum of their gradient with all singular values brought near to 1, so
    that it turns in every direction alike, and about as long as one of Adam: both have the same
    learning rate. Without matrices it is Adam.
    """

    def __init__(
        self, matrices: Sequence[Tensor], parameters: Sequence[Tensor], learning_rate: float
    ) -> None:
        self.matrices = list(matrices)
        by_muon = {id(matrix) for matrix in matrices}
        rest = [parameter for parameter in parameters if id(parameter) not in by_muon]
        super().__init__(rest, learning_rate, fused=True)

    @torch.no_grad()
    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Move all of them along their gradients."""
        found = super().step(closure)
        for matrix in self.matrices:
            gradient = matrix.grad
            assert gradient is not None
            if not self.state[matrix]:
                self.state[matrix]["momentum"] = torch.zeros_like(matrix)
            momentum = self.state[matrix]["momentum"].lerp_(gradient, 1 - MOMENTUM)
            ahead = gradient.lerp(momentum, MOMENTUM)  # Nesterov
            length = LIKE_ADAM * max(matrix.shape) ** 0.5
            matrix.sub_(orthogonal(ahead), alpha=self.param_groups[0]["lr"] * length)
        return found

    def moments(self, parameter: Tensor) -> dict[str, Tensor]:
        """What is kept of a parameter behind the first step, by name: tensors of those shapes."""
        if any(parameter is matrix for matrix in self.matrices):
            return {"momentum": parameter}
        return {"step": torch.zeros(()), "exp_avg": parameter, "exp_avg_sq": parameter}


def orthogonal(matrix: Tensor) -> Tensor:
    """[M, N] with the same singular vectors, and singular values between 0.6 and 1.3.

    By Newton-Schulz iterations, which take products alone. A value that is very small beside the
    norm of the matrix grows by a^5, 485 times, and so stays small.
    """
    a, b, c = QUINTIC
    wide = matrix.shape[0] <= matrix.shape[1]
    x = matrix if wide else matrix.T
    x = x / (x.norm() + 1e-7)
    for _ in range(STEPS):
        gram = x @ x.T
        x = torch.addmm(x, torch.addmm(gram, gram, gram, beta=b, alpha=c), x, beta=a)
    return x if wide else x.T
