"""Networks, and trained policies as agents: `Network`, `save_policy`, `load_policy`.

A policy is one file, `policy.safetensors`: the tensors of the network, and as metadata the rules
it was trained by and its shape. Nothing is ever unpickled.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor, nn

from agents.base import Agent, AgentError, View
from domino_env.observation import layout_size, observation_layout
from domino_env.rules import Rules, RulesError

POLICY_FILE = "policy.safetensors"
FORMAT = "domino-policy-1"

# What one unit of a part of the observation is divided by; the parts that are not here are flags.
UNITS = {
    "hand_size": 8.0,
    "stock": 16.0,
    "draws": 8.0,
    "passes": 8.0,
    "score": 64.0,
    "aside": 16.0,
    "match": 64.0,
    "rules": 16.0,
}


@dataclass(frozen=True)
class Shape:
    """What a network must know to be built."""

    rules: dict[str, Any]  # Rules.to_dict()
    hidden: list[int]  # widths of the hidden layers
    observe_as: int | None = None
    temperature: float = 0.0  # of the moves that the agent draws; 0 takes the likeliest


class Network(nn.Module):
    """Observation to logits of all actions and the value of the seat to move."""

    scale: Tensor

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.shape = shape
        rules = Rules.from_dict(shape.rules)
        layout = observation_layout(rules, shape.observe_as)
        scale = torch.ones(layout_size(layout))
        for name, unit in UNITS.items():
            scale[layout[name][0]] = 1 / unit
        self.register_buffer("scale", scale, persistent=False)
        sizes = [len(scale), *shape.hidden]
        layers: list[nn.Module] = []
        for fan_in, width in pairwise(sizes):
            layers += [nn.Linear(fan_in, width), nn.ReLU()]
        self.body = nn.Sequential(*layers)
        self.actor = nn.Linear(sizes[-1], rules.actions)
        self.critic = nn.Linear(sizes[-1], 1)
        for layer in self.modules():
            if isinstance(layer, nn.Linear):
                nn.init.orthogonal_(layer.weight, 2**0.5)
                nn.init.zeros_(layer.bias)
        nn.init.orthogonal_(self.actor.weight, 0.01)  # begin with nearly uniform play
        nn.init.orthogonal_(self.critic.weight, 1.0)

    def forward(self, observation: Tensor) -> tuple[Tensor, Tensor]:
        """Logits [B, A] and values [B] of observations uint8 [B, D]."""
        hidden = self.body(observation.to(self.scale.dtype) * self.scale)
        return self.actor(hidden), self.critic(hidden).squeeze(-1)


class PolicyAgent(Agent):
    """A trained network as an agent; it plays by the rules of its observation's shape."""

    uses = frozenset({"observation"})

    def __init__(self, network: Network, name: str, seed: int | None, device: str = "cpu") -> None:
        super().__init__(seed)
        self.name = name
        self.device = torch.device(device)
        self.network = network.to(self.device).eval()
        self.rules = Rules.from_dict(network.shape.rules)

    def check(self, rules: Rules) -> None:
        """Raise `AgentError` unless seats, set and sides are those the policy was trained for."""
        places = self.network.shape.observe_as
        for name in ("set", "seats", "teams"):
            found, expected = getattr(rules, name), getattr(self.rules, name)
            if found != expected and not (name != "set" and places):
                raise AgentError(f"{self.name}: found {name} {found}, trained for {expected}")

    def policy(self, view: View) -> np.ndarray:
        """The probabilities that `act` draws from, float32 [B, A]."""
        if view.observation is None:
            raise AgentError(f"{self.name}: found a view without observation, expected one")
        with torch.inference_mode():
            observation = torch.from_numpy(view.observation).to(self.device)
            logits = self.network(observation)[0].float().cpu().numpy()
        logits = np.where(view.mask > 0, logits, -np.inf)
        best = logits.max(1, keepdims=True)
        if self.network.shape.temperature == 0:
            chosen = np.zeros_like(logits)
            chosen[np.arange(len(logits)), logits.argmax(1)] = 1
            return chosen
        odds = np.exp((logits - best) / self.network.shape.temperature)
        return (odds / odds.sum(1, keepdims=True)).astype(np.float32)

    def act(self, view: View) -> np.ndarray:
        """A move for every position, int64 [B]."""
        chances = self.policy(view)
        if self.network.shape.temperature == 0:
            return chances.argmax(1)
        ladder = chances.cumsum(1)
        drawn = self.random.random(len(chances))[:, None] * ladder[:, -1:]
        return (ladder > drawn).argmax(1)


def write_file(path: Path, content: bytes) -> None:
    """Write a file as a whole or not at all: to a neighbour first, then in its place."""
    temporary = path.with_name(path.name + ".new")
    with temporary.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    temporary.replace(path)


def save_policy(folder: Path, network: Network) -> None:
    """Write `policy.safetensors` into `folder`."""
    tensors = {name: tensor.contiguous().cpu() for name, tensor in network.state_dict().items()}
    shape = msgspec.json.encode(asdict(network.shape)).decode()
    write_file(folder / POLICY_FILE, save(tensors, {"format": FORMAT, "shape": shape}))


def load_policy(folder: str | Path, seed: int | None = None, device: str = "cpu") -> PolicyAgent:
    """The agent of a run's or a policy's folder. Raises `AgentError`, one line."""
    metadata, tensors = _read(folder)
    network = Network(_shape(folder, metadata))
    try:
        network.load_state_dict(tensors)
    except RuntimeError:
        raise AgentError(f"{folder}: the tensors do not fit the network they name") from None
    return PolicyAgent(network, str(folder), seed, device)


def policy_rules(folder: str | Path) -> Rules:
    """The rules that the policy in `folder` was trained by."""
    return Rules.from_dict(_shape(folder, _read(folder)[0]).rules)


def _read(folder: str | Path) -> tuple[Mapping[str, str], dict[str, Tensor]]:
    path = Path(folder) / POLICY_FILE
    if not path.is_file():
        raise AgentError(f"{folder}: there is no {POLICY_FILE} in it")
    try:
        with safe_open(path, framework="pt") as file:
            return file.metadata() or {}, {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except (SafetensorError, OSError) as error:
        raise AgentError(f"{path}: cannot be read ({error})") from None


def _shape(folder: str | Path, metadata: Mapping[str, str]) -> Shape:
    if metadata.get("format") != FORMAT:
        raise AgentError(f"{folder}: found format {metadata.get('format')}, expected {FORMAT}")
    try:
        shape = msgspec.json.decode(metadata.get("shape", ""), type=Shape)
        Rules.from_dict(shape.rules)
    except (msgspec.MsgspecError, RulesError) as error:
        raise AgentError(f"{folder}: its shape cannot be read ({error})") from None
    return shape
