"""The folder of a training run: configuration, metrics, checkpoints, and how they are read back.

    config.yaml                       the configuration as resolved
    metrics.jsonl                     one line an update
    events.out.tfevents.*             the same for TensorBoard
    policy.safetensors                the trained agent so far: `load("runs/NAME/")`
    checkpoint/state.safetensors      all that is needed to go on exactly
    checkpoint/previous.safetensors   the one before it

Nothing is ever unpickled. A save is atomic: a new file first, then in the place of the old one.
"""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
import numpy as np
import torch
import yaml
from msgspec import Meta
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeRemainingColumn
from safetensors.torch import save
from torch import Tensor
from torch.utils.tensorboard import SummaryWriter

from agents.policy import check_tensors, read_tensors, save_policy, write_file

if TYPE_CHECKING:
    from agents.ppo import Config, Learner

CONFIG_FILE, METRICS_FILE, CHECKPOINT = "config.yaml", "metrics.jsonl", "checkpoint"
STATE_FILE, PREVIOUS_FILE = "state.safetensors", "previous.safetensors"
FORMAT = "domino-run-1"


class RunError(ValueError):
    """A run or a configuration that cannot be used; one line."""


class Run:
    """The folder of a run, open for writing."""

    def __init__(self, folder: Path, config: Config, *, resume: bool = False) -> None:
        self.folder = folder
        self.checkpoint = folder / CHECKPOINT
        if not resume and (folder / CONFIG_FILE).exists():
            raise RunError(f"{folder}: there is a run in it, go on with --resume {folder}")
        self.checkpoint.mkdir(parents=True, exist_ok=True)
        if not resume:
            self.write_config(config)
        self.board: SummaryWriter | None = None

    def write_config(self, config: Config) -> None:
        """Write config.yaml, which `--resume` reads."""
        text = yaml.safe_dump(msgspec.to_builtins(config), sort_keys=False)
        write_file(self.folder / CONFIG_FILE, text.encode())

    def log(self, update: int, decisions: int, figures: dict[str, float]) -> None:
        """Add the figures of an update to metrics.jsonl and to TensorBoard."""
        line = {"update": update, "decisions": decisions, "time": time.time(), **figures}
        path = self.folder / METRICS_FILE
        try:
            with path.open("ab") as file:
                file.write(msgspec.json.encode(line) + b"\n")
        except OSError as error:
            raise OSError(error.errno, error.strerror, str(path)) from None
        if self.board is None:
            self.board = SummaryWriter(str(self.folder), purge_step=decisions)
        for name, figure in figures.items():
            self.board.add_scalar(name, figure, decisions)

    def save(self, learner: Learner) -> None:
        """Write the policy and a checkpoint; the one before it is kept beside."""
        save_policy(self.folder, learner.played)
        metadata = {"format": FORMAT, "state": msgspec.json.encode(numbers_of(learner)).decode()}
        content = save(tensors_of(learner), metadata)
        write_file(self.checkpoint / STATE_FILE, content, self.checkpoint / PREVIOUS_FILE)
        if self.board is not None:
            self.board.flush()

    def restore(self, learner: Learner) -> None:
        """Put a new learner into the state of the checkpoint, or of the one before it.

        A run that was ended before its first checkpoint begins anew. `RunError` if there are
        checkpoints and none can be used.
        """
        paths = [self.checkpoint / name for name in (STATE_FILE, PREVIOUS_FILE)]
        present = [path for path in paths if path.exists()]
        faults = []
        for path in present:
            try:
                put_state(learner, *read_checkpoint(path))
                break
            except ValueError as error:
                faults.append(f"{path}: {error}")
        if faults and len(faults) == len(present):
            raise RunError("; ".join(faults))
        for fault in faults:
            print(f"{fault}; going on from the checkpoint before it", file=sys.stderr)
        self.forget_after(learner.updates)
        self.write_config(learner.config)

    def forget_after(self, update: int) -> None:
        """Drop the metrics of updates that will be made again, and lines that were cut off."""
        path = self.folder / METRICS_FILE
        if path.exists():
            lines = path.read_bytes().splitlines()
            kept = [line + b"\n" for line in lines if _update_of(line) <= update]
            write_file(path, b"".join(kept))


class _Line(msgspec.Struct):
    update: int


def _update_of(line: bytes) -> float:
    try:
        return msgspec.json.decode(line, type=_Line).update
    except (ValueError, RecursionError):
        return float("inf")


# ---------------------------------------------------------------- checkpoints


@dataclass(frozen=True)
class Numbers:
    """The part of a learner's state that is not tensors."""

    updates: Annotated[int, Meta(ge=0, le=2**62)]
    decisions: Annotated[int, Meta(ge=0, le=2**62)]
    seconds: Annotated[float, Meta(ge=0)]
    random: dict[str, Any]  # of NumPy's generator, its 128-bit integers as text


def numbers_of(learner: Learner) -> Numbers:
    """The numbers of a learner's state."""
    state = learner.random.bit_generator.state
    words = {**state, "state": {name: str(word) for name, word in state["state"].items()}}
    return Numbers(learner.updates, learner.decisions, learner.seconds, words)


def _generator_of(words: dict[str, Any]) -> np.random.Generator:
    random = np.random.default_rng()
    try:
        state = {name: int(word) for name, word in words["state"].items()}
        random.bit_generator.state = {**words, "state": state}
    except (KeyError, TypeError, AttributeError, ValueError, OverflowError) as error:
        raise ValueError(f"random state: cannot be used ({error})") from None
    return random


def tensors_of(learner: Learner) -> dict[str, Tensor]:
    """The tensors of a learner's state, by name; the games are the bytes of `DominoVec.save`."""
    tensors = {f"network.{k}": v for k, v in learner.network.state_dict().items()}
    tensors |= {f"played.{k}": v for k, v in learner.played.state_dict().items()}
    for k, parameter in enumerate(learner.parameters):
        for name, value in learner.optimiser.state[parameter].items():
            tensors[f"optimiser.{k}.{name}"] = value
    tensors["games"] = torch.frombuffer(bytearray(learner.vec.save()), dtype=torch.uint8)
    return {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}


def read_checkpoint(path: Path) -> tuple[Numbers, dict[str, Tensor]]:
    """The numbers and tensors of a checkpoint file; `ValueError` if it is not whole."""
    metadata, tensors = read_tensors(path, FORMAT)
    try:
        return msgspec.json.decode(metadata.get("state", ""), type=Numbers), tensors
    except RecursionError:
        raise ValueError("its numbers cannot be read") from None


def put_state(learner: Learner, numbers: Numbers, tensors: dict[str, Tensor]) -> None:
    """Set the whole state of a new learner; `ValueError`, nothing set, if it does not fit."""
    expected = tensors_of(learner)
    for k, parameter in enumerate(learner.parameters if numbers.updates else ()):
        moments = {"step": torch.zeros(()), "exp_avg": parameter, "exp_avg_sq": parameter}
        expected |= {f"optimiser.{k}.{name}": like for name, like in moments.items()}
    check_tensors(tensors, expected)
    random = _generator_of(numbers.random)
    learner.vec.load(tensors["games"].numpy().tobytes())
    learner.random = random
    for prefix, module in (("network.", learner.network), ("played.", learner.played)):
        module.load_state_dict(_below(prefix, tensors))
    for k, parameter in enumerate(learner.parameters):
        moments = _below(f"optimiser.{k}.", tensors)
        on_device = {name: value.to(parameter.device) for name, value in moments.items()}
        learner.optimiser.state[parameter] = on_device
    learner.updates, learner.decisions = numbers.updates, numbers.decisions
    learner.seconds = numbers.seconds
    learner.vec.current(out=learner.storage.batches[0])


def _below(prefix: str, tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    return {k.removeprefix(prefix): v for k, v in tensors.items() if k.startswith(prefix)}


# ---------------------------------------------------------------- progress


class Bar:
    """The progress of a run on stderr: decisions, speed, and the figures that tell how it goes."""

    def __init__(self, total: int, done: int) -> None:
        self.result = ""
        self.progress = Progress(
            TextColumn("training"),
            BarColumn(bar_width=20),
            TextColumn("{task.completed:,}/{task.total:,} decisions"),
            TextColumn("{task.fields[figures]}"),
            TimeRemainingColumn(),
            console=Console(stderr=True),
        )
        self.task: TaskID = self.progress.add_task("", total=total, completed=done, figures="")
        self.total = total

    def __enter__(self) -> Bar:
        self.progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.progress.stop()

    def show(self, decisions: int, figures: dict[str, float]) -> None:
        """The figures of an update; the last evaluation stays until the next one."""
        if "eval/heaviest" in figures:
            mean, half = figures["eval/heaviest"], figures["eval/heaviest_ci95"]
            self.result = f"heaviest {mean:+.3f} ± {half:.3f}"
            if not self.progress.console.is_terminal:  # a log gets lines now and then, not a bar
                print(f"{decisions:,} of {self.total:,} decisions, {self.result}", flush=True)
        text = (
            f"{figures['charts/SPS'] / 1000:.0f}k/s entropy {figures['losses/entropy']:.2f} "
            f"value {figures['losses/value_loss']:.3f} {self.result}"
        )
        self.progress.update(self.task, completed=min(decisions, self.total), figures=text)


def new_folder(config_name: str) -> Path:
    """A fresh folder for a run: runs/NAME-DATE-TIME."""
    return Path("runs") / f"{config_name}-{time.strftime('%Y%m%d-%H%M%S')}"
