"""The folder of a training run: configuration, metrics, checkpoints, and how they are read back.

    config.yaml                       the configuration as resolved
    metrics.jsonl                     one line an update
    events.out.tfevents.*             the same for TensorBoard
    curves.png                        the same as a picture, renewed once a minute and at the end
    policy.safetensors                the trained agent so far: `load("runs/NAME/")`
    checkpoint/state.safetensors      all that is needed to go on exactly
    checkpoint/previous.safetensors   the one before it
    .lock                             held while a process trains

Nothing is ever unpickled. A save is atomic: a new file first, then in the place of the old one.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import yaml
from filelock import FileLock, Timeout
from rich.console import Console
from rich.progress import (
    BarColumn,
    Progress,
    TaskID,
    TaskProgressColumn,
    TextColumn,
    TimeRemainingColumn,
)
from torch.utils.tensorboard import SummaryWriter

from agents.checkpoint import PREVIOUS_FILE, STATE_FILE, checkpoint_of
from agents.curves import draw_curves
from agents.policy import save_policy, write_file

if TYPE_CHECKING:
    from agents.ppo import Config, Learner

CONFIG_FILE, METRICS_FILE, CHECKPOINT = "config.yaml", "metrics.jsonl", "checkpoint"
LOCK = ".lock"  # held by the process that trains; after a kill it is free again
DRAW_EVERY = 60.0  # seconds at least between two pictures of the curves


class RunError(ValueError):
    """A run or a configuration that cannot be used; one line."""


@contextmanager
def held(folder: Path) -> Iterator[None]:
    """Keep other processes from training in a folder, which is made; `RunError` if one does."""
    folder.mkdir(parents=True, exist_ok=True)
    try:
        lock = FileLock(folder / LOCK).acquire(timeout=0)
    except Timeout:
        raise RunError(f"{folder}: another process trains in it, expected none") from None
    with lock:
        yield


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
        self.drawn = time.monotonic()

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

    def save(self, learner: Learner, games: list[bytes]) -> None:
        """Write the policy and a checkpoint; the one before it is kept beside.

        `games` are those of `gathered_games`.
        """
        save_policy(self.folder, learner.played)
        content = checkpoint_of(learner, games)
        write_file(self.checkpoint / STATE_FILE, content, self.checkpoint / PREVIOUS_FILE)
        if self.board is not None:
            self.board.flush()
        if time.monotonic() - self.drawn > DRAW_EVERY:
            self.draw()

    def draw(self) -> None:
        """Draw the learning curves."""
        draw_curves(self.folder, self.folder / METRICS_FILE)
        self.drawn = time.monotonic()

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


# ---------------------------------------------------------------- progress


class Bar:
    """The progress of a run on stderr: decisions, speed, and the figures that tell how it goes.

    On a terminal a bar, in a log a line for each evaluation, else (`shown` false) nothing.
    """

    def __init__(self, shown: bool = True) -> None:
        self.result = ""
        self.shown = shown
        console = Console(stderr=True)
        self.progress = Progress(
            TextColumn("training"),
            BarColumn(bar_width=20),
            TaskProgressColumn(),
            TextColumn("{task.fields[figures]}"),
            TimeRemainingColumn(),
            console=console,
            disable=not (shown and console.is_terminal),
        )
        self.task: TaskID = self.progress.add_task("", total=1.0, figures="")

    def __enter__(self) -> Bar:
        self.progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.progress.stop()

    def show(self, share: float, decisions: int, figures: dict[str, float]) -> None:
        """The figures of an update, with the share of the run that is over.

        The last evaluation stays until the next one.
        """
        results = [name for name in figures if f"{name}_ci95" in figures]
        if results:
            told = (f"{figures[name]:+.3f} ± {figures[f'{name}_ci95']:.3f}" for name in results)
            names = (name.removeprefix("eval/") for name in results)
            self.result = ", ".join(map(" ".join, zip(names, told, strict=True)))
            if self.shown and self.progress.disable:
                print(f"{decisions:,} decisions, {self.result}", file=sys.stderr, flush=True)
        text = (
            f"{decisions:,} decisions {figures['charts/SPS'] / 1000:.0f}k/s "
            f"entropy {figures['losses/entropy']:.2f} "
            f"value {figures['losses/value_loss']:.3f} {self.result}"
        )
        self.progress.update(self.task, completed=share, figures=text)


def new_folder(config_name: str) -> Path:
    """A fresh folder for a run: runs/NAME-DATE-TIME."""
    return Path("runs") / f"{config_name}-{time.strftime('%Y%m%d-%H%M%S')}"
