"""What the learner makes small: the loss of PPO (arXiv 1707.06347) and what the switches add to it.

Letters: `M` decisions of a minibatch, `A` actions.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

import torch
import torch.nn.functional as F
from torch import Tensor

from agents.graph import tiles_held
from agents.network import Network
from agents.settings import Config, in_bf16
from agents.shape import Inputs


def masked_log_softmax(logits: Tensor, mask: Tensor) -> Tensor:
    """Log-probabilities [B, A] over the legal actions; about -1e9 for the others."""
    return F.log_softmax(logits.float().masked_fill(mask == 0, -1e9), dim=-1)


@dataclass
class Minibatch:
    """Decisions of a rollout, [M, ...], with the advantage already normalised."""

    inputs: Inputs
    mask: Tensor
    action: Tensor
    log_prob: Tensor
    advantage: Tensor
    returns: Tensor
    advice: Tensor
    solved: Tensor

    def __len__(self) -> int:
        return len(self.action)

    def rows(self, rows: slice) -> Minibatch:
        """Some of its decisions."""
        tensors = (getattr(self, field.name) for field in fields(self)[1:])
        return Minibatch(self.inputs.rows(rows), *(tensor[rows] for tensor in tensors))


@dataclass
class Loss:
    """A loss to differentiate, and the sums of WATCHED."""

    total: Tensor
    watched: Tensor


WATCHED = (
    "policy_loss",
    "value_loss",
    "entropy",
    "approx_kl",
    "clip_fraction",
    "magnet",
    "imitation",
    "solver",
    "hands",
)


@dataclass
class Weights:
    """The weights of a loss that change over a run."""

    entropy: float
    teacher: float = 0.0


def loss_of(
    network: Network, mb: Minibatch, config: Config, weights: Weights, magnet: Network | None
) -> Loss:
    """The PPO loss, summed over a minibatch (its caller divides), and figures to watch."""
    with torch.autocast(config.device, torch.bfloat16, enabled=in_bf16(config)):
        logits, value, guess = network.judge(mb.inputs)
    log_probs = masked_log_softmax(logits, mb.mask)
    log_ratio = log_probs.gather(1, mb.action[:, None]).squeeze(1) - mb.log_prob
    ratio = log_ratio.exp()
    clipped = ratio.clamp(1 - config.clip, 1 + config.clip)
    gain = torch.min(ratio * mb.advantage, clipped * mb.advantage)
    if config.dual_clip:
        bounded = torch.max(gain, config.dual_clip * mb.advantage)
        gain = torch.where(mb.advantage < 0, bounded, gain)
    policy_loss = -gain.sum()
    value_loss = 0.5 * (value.float() - mb.returns).pow(2).sum()
    probs = log_probs.exp()
    entropy = -(probs * log_probs).sum()
    total = policy_loss + config.value_weight * value_loss - weights.entropy * entropy
    pull = torch.zeros(())
    if config.magnet != "none":
        pull = (probs * (log_probs - magnet_log_probs(magnet, mb, config))).sum()
        total = total + config.magnet_weight * pull
    imitation = torch.zeros(())
    if weights.teacher:
        imitation = -log_probs.gather(1, mb.advice[:, None]).sum()
        total = total + weights.teacher * imitation
    solver = torch.zeros(())
    if config.solver_weight:
        solver = -(probs * mb.solved).sum()  # the gradient of the policy by all actions at once
        total = total + config.solver_weight * solver
    hands = torch.zeros(())
    if guess is not None:
        assert mb.inputs.state is not None
        rules = config.games_rules[0]  # all of one set
        hands = (guess.float() - tiles_held(mb.inputs.state, guess.shape[2], rules)).pow(2).sum()
        total = total + config.hands_weight * hands
    with torch.no_grad():
        approx_kl = (ratio - 1 - log_ratio).sum()
        clip_fraction = (ratio != clipped).float().sum()
    watched = (policy_loss, value_loss, entropy, approx_kl, clip_fraction)
    watched += (pull, imitation, solver, hands)
    return Loss(total, torch.stack([figure.detach().to(total.device) for figure in watched]))


@torch.no_grad()
def magnet_log_probs(magnet: Network | None, mb: Minibatch, config: Config) -> Tensor:
    """Log-probabilities [B, A] of the magnet: uniform over the legal actions, or a network's."""
    if magnet is None:
        return masked_log_softmax(torch.zeros(mb.mask.shape, device=mb.mask.device), mb.mask)
    with torch.autocast(config.device, torch.bfloat16, enabled=in_bf16(config)):
        return masked_log_softmax(magnet.logits(mb.inputs), mb.mask)
