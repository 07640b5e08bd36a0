"""All that a run needs to go on exactly, as one safetensors file, and back.

Tensors are those of the networks (the trained one, its average, the magnet, the snapshots), of the
optimiser, and the records of the games in flight; numbers are JSON in the metadata. Nothing is
ever unpickled, and nothing is set before all of it has been checked.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
import numpy as np
import torch
from msgspec import Meta
from safetensors.torch import save
from torch import Tensor, nn

from agents.network import Network
from agents.policy import check_tensors, read_tensors
from domino_env.saved import pack, unpack
from domino_env.state import GAME

if TYPE_CHECKING:
    from agents.ppo import Learner

STATE_FILE, PREVIOUS_FILE = "state.safetensors", "previous.safetensors"
FORMAT = "domino-run-2"


@dataclass(frozen=True)
class Numbers:
    """The part of a learner's state that is not tensors."""

    updates: Annotated[int, Meta(ge=0, le=2**62)]
    decisions: Annotated[int, Meta(ge=0, le=2**62)]
    seconds: Annotated[float, Meta(ge=0)]
    random: dict[str, Any]  # of NumPy's generator, its 128-bit integers as text
    won: list[Annotated[float, Meta(ge=0, le=1)]]  # of each opponent, as in `Pool`
    snapshots: Annotated[int, Meta(ge=0, le=1024)]
    opponents: list[list[int]]  # of each table, as in `Blocks`


def gathered_games(learner: Learner) -> list[bytes]:
    """The records of the games of each table, of all processes in the first one."""
    found = []
    for table in learner.tables:
        parts = learner.ranks.gather(table.vec.games.tobytes())
        found.append(pack(np.frombuffer(b"".join(parts), GAME), {}))
    return found


def checkpoint_of(learner: Learner, games: list[bytes]) -> bytes:
    """The content of a checkpoint file; `games` as `gathered_games` gives them."""
    metadata = {"format": FORMAT, "state": msgspec.json.encode(numbers_of(learner)).decode()}
    tensors = tensors_of(learner)
    for k, content in enumerate(games):
        tensors[f"games.{k}"] = torch.frombuffer(bytearray(content), dtype=torch.uint8)
    return save(tensors, metadata)


def restore(folder: Path, learner: Learner) -> None:
    """Put a new learner into the state of a checkpoint in `folder`, or of the one before it.

    A run that was ended before its first checkpoint begins anew. Raises `ValueError` if there are
    checkpoints and none can be used.
    """
    present = [path for path in (folder / STATE_FILE, folder / PREVIOUS_FILE) if path.exists()]
    faults = []
    for path in present:
        try:
            put_state(learner, *read_checkpoint(path))
            break
        except ValueError as error:
            faults.append(f"{path}: {error}")
    if faults and len(faults) == len(present):
        raise ValueError("; ".join(faults))
    for fault in faults:
        print(f"{fault}; going on from the checkpoint before it", file=sys.stderr)


# ---------------------------------------------------------------- to the file


def numbers_of(learner: Learner) -> Numbers:
    """The numbers of a learner's state."""
    state = learner.random.bit_generator.state
    words = {**state, "state": {name: str(word) for name, word in state["state"].items()}}
    return Numbers(
        learner.updates,
        learner.decisions,
        learner.seconds,
        words,
        learner.pool.won.tolist(),
        len(learner.pool.snapshots),
        [table.blocks.opponents for table in learner.tables],
    )


def modules_of(learner: Learner, snapshots: list[Network]) -> dict[str, nn.Module]:
    """The networks of a learner by the first part of their tensors' names."""
    found: dict[str, nn.Module] = {"network": learner.network, "played": learner.played}
    if learner.magnet is not None:
        found["magnet"] = learner.magnet
    return found | {f"snapshot.{k}": snapshot for k, snapshot in enumerate(snapshots)}


def tensors_of(learner: Learner) -> dict[str, Tensor]:
    """The tensors of a learner's state, by name, without the games."""
    tensors = {
        f"{prefix}.{name}": tensor
        for prefix, module in modules_of(learner, learner.pool.snapshots).items()
        for name, tensor in module.state_dict().items()
    }
    for k, parameter in enumerate(learner.parameters):
        for name, value in learner.optimiser.state[parameter].items():
            tensors[f"optimiser.{k}.{name}"] = value
    return {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}


# ---------------------------------------------------------------- and back


def read_checkpoint(path: Path) -> tuple[Numbers, dict[str, Tensor]]:
    """The numbers and tensors of a checkpoint file; `ValueError` if it is not whole."""
    metadata, tensors = read_tensors(path, FORMAT)
    try:
        return msgspec.json.decode(metadata.get("state", ""), type=Numbers), tensors
    except RecursionError:
        raise ValueError("its numbers cannot be read") from None


def put_state(learner: Learner, numbers: Numbers, tensors: dict[str, Tensor]) -> None:
    """Set the whole state of a new learner; `ValueError`, nothing set, if it does not fit."""
    check_numbers(learner, numbers)
    snapshots = [Network(learner.network.shape) for _ in range(numbers.snapshots)]
    modules = modules_of(learner, snapshots)
    games = {name: tensor for name, tensor in tensors.items() if name.startswith("games.")}
    rest = {name: tensor for name, tensor in tensors.items() if name not in games}
    check_tensors(rest, expected_tensors(learner, numbers, modules))
    records = [records_of(learner, k, games) for k in range(len(learner.tables))]
    random = _generator_of(numbers.random)
    learner.random = random
    for prefix, module in modules.items():
        module.load_state_dict(_below(f"{prefix}.", rest))
    for k, parameter in enumerate(learner.parameters if numbers.updates else ()):
        moments = _below(f"optimiser.{k}.", rest)
        on_device = {name: value.to(parameter.device) for name, value in moments.items()}
        learner.optimiser.state[parameter] = on_device
    learner.updates, learner.decisions = numbers.updates, numbers.decisions
    learner.seconds = numbers.seconds
    device = next(learner.network.parameters()).device
    learner.pool.snapshots = [s.requires_grad_(False).to(device) for s in snapshots]
    learner.pool.won = np.array(numbers.won, np.float64)
    for table, found, opponents in zip(learner.tables, records, numbers.opponents, strict=True):
        table.vec.games[:] = found[table.mine]
        table.vec.current(out=table.storage.batches[0])
        table.blocks.opponents = list(opponents)


def check_numbers(learner: Learner, numbers: Numbers) -> None:
    """Raise `ValueError` where the opponents are not as many as the run has."""
    pool, count = learner.pool, len(numbers.won)
    good = count == len(pool.bots) + numbers.snapshots and numbers.snapshots <= pool.size
    good &= len(numbers.opponents) == len(learner.tables)
    for table, opponents in zip(learner.tables, numbers.opponents, strict=False):
        good &= len(opponents) == len(table.blocks.opponents)
        good &= all(-1 <= opponent < count for opponent in opponents)
    if not good:
        raise ValueError("opponents: found others than those of this run")


def expected_tensors(
    learner: Learner, numbers: Numbers, modules: dict[str, nn.Module]
) -> dict[str, Tensor]:
    """What a checkpoint with these numbers must hold besides the games."""
    expected = {
        f"{prefix}.{name}": tensor
        for prefix, module in modules.items()
        for name, tensor in module.state_dict().items()
    }
    for k, parameter in enumerate(learner.parameters if numbers.updates else ()):
        moments = learner.optimiser.moments(parameter)
        expected |= {f"optimiser.{k}.{name}": like for name, like in moments.items()}
    return expected


def records_of(learner: Learner, k: int, games: dict[str, Tensor]) -> np.ndarray:
    """The records of all games of a table; `ValueError` if they are none of its rules."""
    table, name = learner.tables[k], f"games.{k}"
    if len(games) != len(learner.tables) or name not in games:
        raise ValueError(f"games: found {len(games)} tables, expected {len(learner.tables)}")
    if games[name].dtype != torch.uint8:
        raise ValueError(f"{name}: found {games[name].dtype}, expected torch.uint8")
    return unpack(games[name].numpy().tobytes(), table.rules, table.total, {})[0]


def _generator_of(words: dict[str, Any]) -> np.random.Generator:
    random = np.random.default_rng()
    try:
        state = {name: int(word) for name, word in words["state"].items()}
        random.bit_generator.state = {**words, "state": state}
    except (KeyError, TypeError, AttributeError, ValueError, OverflowError) as error:
        raise ValueError(f"random state: cannot be used ({error})") from None
    return random


def _below(prefix: str, tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    return {k.removeprefix(prefix): v for k, v in tensors.items() if k.startswith(prefix)}
