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
from typing import Annotated, Any

import msgspec
import numpy as np
import torch
from msgspec import Meta
from safetensors import safe_open
from safetensors.torch import save
from torch import Tensor, nn

from agents.base import Agent, AgentError, View
from domino_env.observation import layout_size, observation_layout
from domino_env.rules import Rules

Width = Annotated[int, Meta(ge=1, le=2**16)]
NotNegative = Annotated[float, Meta(ge=0, le=1e9)]

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
    hidden: Annotated[list[Width], Meta(max_length=64)]  # widths of the hidden layers
    observe_as: int | None = None
    temperature: NotNegative = 0.0  # of the moves that the agent draws; 0 takes the likeliest


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
        observation = observation.to(self.scale.device).to(self.scale.dtype)
        hidden = self.body(observation * self.scale)
        return self.actor(hidden), self.critic(hidden).squeeze(-1)


class PolicyAgent(Agent):
    """A trained network as an agent; it plays by the rules of its observation's shape."""

    uses = frozenset({"observation"})

    def __init__(self, network: Network, name: str, seed: int | None, device: str = "cpu") -> None:
        super().__init__(seed)
        self.name = name
        self.network = network.to(device_of(device)).eval()
        self.observe_as = network.shape.observe_as
        self.rules = Rules.from_dict(network.shape.rules)

    def check(self, rules: Rules) -> None:
        """Raise `AgentError` unless seats, set and sides are those the policy was trained for."""
        places = self.observe_as
        if places and rules.seats > places:
            raise AgentError(f"{self.name}: found {rules.seats} seats, trained for {places}")
        for name in ("set", "seats", "teams"):
            found, expected = getattr(rules, name), getattr(self.rules, name)
            if found != expected and not (name != "set" and places):
                raise AgentError(f"{self.name}: found {name} {found}, trained for {expected}")

    def policy(self, view: View) -> np.ndarray:
        """The probabilities that `act` draws from, float32 [B, A]."""
        if view.observation is None:
            raise AgentError(f"{self.name}: found a view without observation, expected one")
        with torch.inference_mode():
            logits = self.network(torch.from_numpy(view.observation))[0].double().cpu().numpy()
        logits = np.where(view.mask > 0, logits, -np.inf)
        if self.network.shape.temperature == 0:
            chosen = np.zeros(logits.shape, np.float32)
            chosen[np.arange(len(logits)), logits.argmax(1)] = 1
            return chosen
        behind = logits - logits.max(1, keepdims=True)
        with np.errstate(over="ignore"):  # a tiny temperature
            odds = np.exp(behind / self.network.shape.temperature)
        return (odds / odds.sum(1, keepdims=True)).astype(np.float32)

    def act(self, view: View) -> np.ndarray:
        """A move for every position, int64 [B]."""
        chances = self.policy(view)
        if self.network.shape.temperature == 0:
            return chances.argmax(1)
        ladder = chances.cumsum(1)
        drawn = self.random.random(len(chances))[:, None] * ladder[:, -1:]
        return (ladder > drawn).argmax(1)


def device_of(name: str) -> torch.device:
    """The device of that name; `AgentError` where there is none."""
    try:
        device = torch.device(name)
        torch.zeros(1, device=device).cpu()
    except (RuntimeError, AssertionError) as error:
        reason = str(error).splitlines()[0]
        raise AgentError(f"device: found {name!r}, which cannot be used ({reason})") from None
    return device


# ---------------------------------------------------------------- files


def write_file(path: Path, content: bytes, previous: Path | None = None) -> None:
    """Write a file as a whole or not at all: to a neighbour first, then in its place.

    What was in its place becomes `previous`, if that is given. An `OSError`, of a full disk say,
    names the file and leaves everything as it was.
    """
    temporary = path.with_name(path.name + ".new")
    try:
        with temporary.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        if previous is not None and path.exists():
            path.replace(previous)
        temporary.replace(path)
    except OSError as error:
        temporary.unlink(missing_ok=True)
        raise OSError(error.errno, error.strerror, str(path)) from None


def save_policy(folder: Path, network: Network) -> None:
    """Write `policy.safetensors` into `folder`."""
    tensors = {name: tensor.contiguous().cpu() for name, tensor in network.state_dict().items()}
    shape = msgspec.json.encode(asdict(network.shape)).decode()
    write_file(folder / POLICY_FILE, save(tensors, {"format": FORMAT, "shape": shape}))


def load_policy(folder: str | Path, seed: int | None = None, device: str = "cpu") -> PolicyAgent:
    """The agent of a run's or a policy's folder. Raises `AgentError`, one line."""
    shape, tensors = _read(folder)
    network = Network(shape)
    network.load_state_dict(tensors)
    return PolicyAgent(network, str(folder), seed, device)


def policy_rules(folder: str | Path) -> Rules:
    """The rules that the policy in `folder` was trained by."""
    return Rules.from_dict(_read(folder)[0].rules)


def _read(folder: str | Path) -> tuple[Shape, dict[str, Tensor]]:
    path = Path(folder) / POLICY_FILE
    if not path.is_file():
        raise AgentError(f"{folder}: there is no {POLICY_FILE} in it")
    try:
        metadata, tensors = read_tensors(path, FORMAT)
        shape = msgspec.json.decode(metadata.get("shape", ""), type=Shape)
        with torch.device("meta"):  # no memory for a network that the file only claims to hold
            check_tensors(tensors, Network(shape).state_dict())
    except (ValueError, RecursionError) as error:
        raise AgentError(f"{path}: {error}") from None
    return shape, tensors


def read_tensors(path: Path, expected: str) -> tuple[Mapping[str, str], dict[str, Tensor]]:
    """Metadata and tensors of a safetensors file; `ValueError` if broken or of another format."""
    try:
        with safe_open(path, framework="pt") as file:
            metadata = file.metadata() or {}
            # Copies: the tensors of the file itself would die with it, by a signal.
            tensors = {name: file.get_tensor(name).clone() for name in file.keys()}  # noqa: SIM118
    except Exception as error:  # what a hostile file leads to has no type in common
        raise ValueError(f"cannot be read ({error})") from None
    found = metadata.get("format", "none")
    if found != expected:
        raise ValueError(f"found format {found[:60]!r}, expected {expected!r}")
    return metadata, tensors


def check_tensors(found: Mapping[str, Tensor], expected: Mapping[str, Tensor]) -> None:
    """Raise `ValueError` unless the names, types and shapes are the expected ones."""
    for name in sorted(found.keys() | expected.keys()):
        kinds = [_kind_of(tensors.get(name)) for tensors in (found, expected)]
        if kinds[0] != kinds[1]:
            raise ValueError(f"tensor {name[:60]!r}: found {kinds[0]}, expected {kinds[1]}")


def _kind_of(tensor: Tensor | None) -> str:
    if tensor is None:
        return "none"
    return f"{str(tensor.dtype).removeprefix('torch.')} {list(tensor.shape)}"
