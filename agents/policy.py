"""Trained policies as agents: `PolicyAgent`, `save_policy`, `load_policy`.

A policy is one file, `policy.safetensors`: the tensors of the network, all in float32 or all in
float16, and as metadata the rules it was trained by and its shape. Nothing is ever unpickled.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import lru_cache
from pathlib import Path
from typing import Annotated, NamedTuple

import msgspec
import numpy as np
import torch
from msgspec import Meta
from safetensors import safe_open
from safetensors.torch import save
from torch import Tensor

from agents.base import Agent, AgentError, View
from agents.network import Network
from agents.shape import Inputs, Shape
from agents.shipped import POLICY_FILE, folder_of, table_of
from domino_env import DominoVec
from domino_env.observation import observation_layout
from domino_env.rules import FIELDS, Rules

FORMAT = "domino-policy-2"


class PolicyAgent(Agent):
    """A trained network as an agent; it plays by the rules of its observation's shape.

    By other rules than it was trained for it is shown those nearest to them (`as_trained`).
    """

    def __init__(self, network: Network, name: str, seed: int | None, device: str = "cpu") -> None:
        super().__init__(seed)
        self.name = name
        self.network = network.to(device_of(device)).eval()
        self.uses = frozenset(network.shape.parts) - {"state"}
        self.observe_as = network.shape.observe_as
        self.trained_for = [Rules.from_dict(rules) for rules in network.shape.rules]

    def check(self, rules: Rules) -> None:
        """Raise `AgentError` unless seats, set and sides are those the policy was trained for."""
        places = self.observe_as
        if places and rules.seats > places:
            raise AgentError(f"{self.name}: found {rules.seats} seats, trained for {places}")
        for name in ("set", "seats", "teams"):
            found = getattr(rules, name)
            trained = sorted({getattr(games, name) for games in self.trained_for})
            if found not in trained and not (name != "set" and places):
                expected = " or ".join(map(str, trained))
                raise AgentError(f"{self.name}: found {name} {found}, trained for {expected}")

    def as_trained(self, rules: Rules, rows: np.ndarray) -> np.ndarray:
        """Observations or states, uint8 [B, .], of a game by `rules` as the network knows them.

        What never changed in training has weights that nobody trained. So the part `rules` becomes
        that of the nearest rules that it was trained for at such a table; unless both are matches,
        the parts before it, from `score` on, become those of a new game.
        """
        trained = self._nearest(rules)
        if trained is None or trained == rules:
            return rows
        both = trained.episode == rules.episode == "match"
        tail = _tail(trained, self.observe_as, "rules" if both else "score")
        rows = rows.copy()
        rows[:, -len(tail) :] = tail
        return rows

    def _nearest(self, rules: Rules) -> Rules | None:
        """Of the rules that it was trained for at such a table those with most fields the same."""

        def others(trained: Rules) -> int:
            return sum(getattr(trained, name) != getattr(rules, name) for name in FIELDS)

        table = [trained for trained in self.trained_for if table_of(trained) == table_of(rules)]
        return min(table, key=others, default=None)

    def policy(self, view: View) -> np.ndarray:
        """The probabilities that `act` draws from, float32 [B, A]."""
        parts = {name: getattr(view, name) for name in self.uses}
        for name, part in parts.items():
            if part is None:
                raise AgentError(f"{self.name}: found a view without {name}, expected one")
        parts["observation"] = self.as_trained(view.rules, parts["observation"])
        with torch.inference_mode():
            inputs = Inputs(**{name: torch.from_numpy(part) for name, part in parts.items()})
            logits = self.network.logits(inputs).double().cpu().numpy()
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


@lru_cache(maxsize=256)
def _tail(rules: Rules, observe_as: int | None, first: str) -> np.ndarray:
    """The end of the observation of a new game, from the part `first` on, uint8 [.]."""
    start = observation_layout(rules, observe_as)[first][0].start
    return DominoVec(1, rules, seed=0, observe_as=observe_as).reset().observation[0, start:].copy()


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


@dataclass(frozen=True)
class Trained:
    """How long a policy was trained."""

    decisions: Annotated[int, Meta(ge=0)]
    seconds: Annotated[float, Meta(ge=0)]
    format: str  # of the checkpoint that says so


def save_policy(
    folder: Path, network: Network, *, half: bool = False, trained: Trained | None = None
) -> None:
    """Write `policy.safetensors` into `folder`, with `half` the weights rounded to float16.

    Raises `ValueError` if a weight is too large for that, or no number.
    """
    tensors = {name: tensor.contiguous().cpu() for name, tensor in network.state_dict().items()}
    if half:
        tensors = {name: tensor.half() for name, tensor in tensors.items()}
        for name, tensor in tensors.items():
            if not tensor.isfinite().all():
                raise ValueError(f"tensor {name!r}: found weights that float16 cannot hold")
    metadata = {"format": FORMAT, "shape": msgspec.json.encode(asdict(network.shape)).decode()}
    if trained is not None:
        metadata["trained"] = msgspec.json.encode(trained).decode()
    write_file(folder / POLICY_FILE, save(tensors, metadata))


def load_policy(folder: str | Path, seed: int | None = None, device: str = "cpu") -> PolicyAgent:
    """The agent of a run's or a policy's folder, or of the shipped policy of that name.

    Raises `AgentError`, one line.
    """
    read = _read(folder)
    network = Network(read.shape)
    network.load_state_dict(read.tensors)
    return PolicyAgent(network, str(folder), seed, device)


def policy_rules(folder: str | Path) -> Rules:
    """The rules that the policy in `folder` was trained by, the first of several."""
    return Rules.from_dict(policy_shape(folder).rules[0])


def policy_shape(folder: str | Path) -> Shape:
    """The shape of the network of the policy in `folder`."""
    return _read(folder).shape


def policy_trained(folder: str | Path) -> Trained | None:
    """How long the policy in `folder` was trained, if its file says so."""
    return _read(folder).trained


class _Policy(NamedTuple):
    shape: Shape
    trained: Trained | None
    tensors: dict[str, Tensor]  # float32


def _read(folder: str | Path) -> _Policy:
    path = folder_of(folder) / POLICY_FILE
    if not path.is_file():
        raise AgentError(f"{folder}: there is no {POLICY_FILE} in it")
    try:
        metadata, tensors = read_tensors(path, FORMAT)
        shape = msgspec.json.decode(metadata.get("shape", ""), type=Shape)
        trained = msgspec.json.decode(metadata.get("trained", "null"), type=Trained | None)
        if all(tensor.dtype == torch.float16 for tensor in tensors.values()):
            tensors = {name: tensor.float() for name, tensor in tensors.items()}
        with torch.device("meta"):  # no memory for a network that the file only claims to hold
            check_tensors(tensors, Network(shape).state_dict())
    except (ValueError, RecursionError) as error:
        raise AgentError(f"{path}: {error}") from None
    return _Policy(shape, trained, tensors)


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
