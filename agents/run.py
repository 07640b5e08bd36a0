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

import time
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np
import torch
import yaml
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeRemainingColumn
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor
from torch.utils.tensorboard import SummaryWriter

from agents.policy import save_policy, write_file

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
            text = yaml.safe_dump(msgspec.to_builtins(config), sort_keys=False)
            write_file(folder / CONFIG_FILE, text.encode())
        self.board: SummaryWriter | None = None

    def log(self, update: int, decisions: int, figures: dict[str, float]) -> None:
        """Add the figures of an update to metrics.jsonl and to TensorBoard."""
        line = {"update": update, "decisions": decisions, "time": time.time(), **figures}
        with (self.folder / METRICS_FILE).open("ab") as file:
            file.write(msgspec.json.encode(line) + b"\n")
        if self.board is None:
            self.board = SummaryWriter(str(self.folder), purge_step=decisions)
        for name, figure in figures.items():
            self.board.add_scalar(name, figure, decisions)

    def save(self, learner: Learner) -> None:
        """Write the policy and a checkpoint; the one before it is kept beside."""
        save_policy(self.folder, learner.played)
        metadata = {"format": FORMAT, "state": msgspec.json.encode(numbers_of(learner)).decode()}
        content = save(tensors_of(learner), metadata)
        current = self.checkpoint / STATE_FILE
        if current.exists():
            current.replace(self.checkpoint / PREVIOUS_FILE)
        write_file(current, content)

    def restore(self, learner: Learner) -> None:
        """Put a new learner into the state of the checkpoint, or of the one before it."""
        faults = []
        for name in (STATE_FILE, PREVIOUS_FILE):
            path = self.checkpoint / name
            try:
                numbers, tensors = read_checkpoint(path)
                put_state(learner, numbers, tensors)
            except RunError as error:
                faults.append(str(error))
                continue
            self.forget_after(learner.updates)
            return
        raise RunError("; ".join(faults))

    def forget_after(self, update: int) -> None:
        """Drop the metrics of updates that will be made again."""
        path = self.folder / METRICS_FILE
        if not path.exists():
            return
        lines = path.read_bytes().splitlines(keepends=True)
        kept = [line for line in lines if _update_of(line) <= update]
        write_file(path, b"".join(kept))


def _update_of(line: bytes) -> float:
    try:
        return msgspec.json.decode(line)["update"]
    except (msgspec.DecodeError, KeyError, TypeError):
        return float("inf")  # a line that was cut off


# ---------------------------------------------------------------- checkpoints


def numbers_of(learner: Learner) -> dict[str, Any]:
    """The part of a learner's state that is not tensors."""
    return {
        "updates": learner.updates,
        "decisions": learner.decisions,
        "seconds": learner.seconds,
        "random": _random_words(learner.random),
    }


def _random_words(random: np.random.Generator) -> dict[str, Any]:
    """The state of a generator; its 128-bit integers as text, which JSON readers can hold."""
    state = random.bit_generator.state
    return {**state, "state": {name: str(word) for name, word in state["state"].items()}}


def tensors_of(learner: Learner) -> dict[str, Tensor]:
    """The tensors of a learner's state, by name."""
    tensors = {f"network.{k}": v for k, v in learner.network.state_dict().items()}
    tensors |= {f"played.{k}": v for k, v in learner.played.state_dict().items()}
    for k, parameter in enumerate(learner.parameters):
        for name, value in learner.optimiser.state[parameter].items():
            tensors[f"optimiser.{k}.{name}"] = value
    tensors["games"] = torch.frombuffer(bytearray(learner.vec.save()), dtype=torch.uint8)
    return {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}


def read_checkpoint(path: Path) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """The numbers and tensors of a checkpoint file; `RunError` if it is not whole."""
    try:
        with safe_open(path, framework="pt") as file:
            metadata = file.metadata() or {}
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        if metadata.get("format") != FORMAT:
            raise RunError(f"{path}: found format {metadata.get('format')}, expected {FORMAT}")
        return msgspec.json.decode(metadata["state"]), tensors
    except (SafetensorError, OSError, KeyError, msgspec.DecodeError) as error:
        raise RunError(f"{path}: cannot be read ({error})") from None


def put_state(learner: Learner, numbers: dict[str, Any], tensors: dict[str, Tensor]) -> None:
    """Set the whole state of a learner; `RunError` if it does not fit."""
    try:
        for prefix, module in (("network.", learner.network), ("played.", learner.played)):
            own = {k.removeprefix(prefix): v for k, v in tensors.items() if k.startswith(prefix)}
            module.load_state_dict(own)
        for k, parameter in enumerate(learner.parameters):
            prefix = f"optimiser.{k}."
            own = {n.removeprefix(prefix): v for n, v in tensors.items() if n.startswith(prefix)}
            device = parameter.device
            learner.optimiser.state[parameter] = {
                name: value if name == "step" else value.to(device) for name, value in own.items()
            }
        words = numbers["random"]
        state = {name: int(word) for name, word in words["state"].items()}
        learner.random.bit_generator.state = {**words, "state": state}
        learner.vec.load(tensors["games"].numpy().tobytes())
        learner.updates = int(numbers["updates"])
        learner.decisions = int(numbers["decisions"])
        learner.seconds = float(numbers["seconds"])
    except (KeyError, RuntimeError, ValueError, TypeError, AttributeError) as error:
        raise RunError(f"checkpoint: does not fit this run ({error})") from None
    learner.vec.current(out=learner.storage.batches[0])


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
        self.total, self.lines = total, 0

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


def resolved(config: Config) -> dict[str, Any]:
    """A configuration as plain values."""
    return asdict(config)
