"""Training in several processes, on one machine or more, begun by `torchrun`.

Each process plays its share of the games and works out its part of each gradient; sums of all make
the step, so a run learns as one process with the same games would (bots that choose at random draw
other numbers). In one process nothing is sent.
"""

from __future__ import annotations

import os
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor


class Ranks:
    """This process among those of a run."""

    def __init__(self, device: str = "cpu") -> None:
        self.count = int(os.environ.get("WORLD_SIZE", "1"))
        self.rank = int(os.environ.get("RANK", "0"))
        if self.count > 1 and not dist.is_initialized():
            if device == "cuda":
                torch.cuda.set_device(int(os.environ.get("LOCAL_RANK", "0")))
            dist.init_process_group("nccl" if device == "cuda" else "gloo")
        # For what is not on the device: games on their way into a checkpoint.
        self.files: Any = dist.new_group(backend="gloo") if self.count > 1 else None

    @property
    def first(self) -> bool:
        """Whether this process writes the run's files."""
        return self.rank == 0

    def share(self, total: int) -> slice:
        """This process's part of `total` games; `ValueError` where there is not one for each."""
        if total < self.count:
            raise ValueError(
                f"games: found {total}, expected one for each of {self.count} processes"
            )
        return slice(total * self.rank // self.count, total * (self.rank + 1) // self.count)

    def sum(self, tensor: Tensor) -> Tensor:
        """The sum of the tensors of all processes, in place."""
        if self.count > 1:
            dist.all_reduce(tensor)
        return tensor

    def gather(self, part: bytes) -> list[bytes]:
        """The bytes of every process, in order, in the first one; elsewhere its own alone."""
        if self.first:
            return [part, *(self._received(rank) for rank in range(1, self.count))]
        content = torch.frombuffer(bytearray(part), dtype=torch.uint8)
        dist.send(torch.tensor([len(part)]), 0, self.files)
        dist.send(content, 0, self.files)
        return [part]

    def _received(self, rank: int) -> bytes:
        size = torch.zeros(1, dtype=torch.int64)
        dist.recv(size, rank, self.files)
        content = torch.zeros(int(size), dtype=torch.uint8)
        dist.recv(content, rank, self.files)
        return content.numpy().tobytes()

    def agree(self, value: float) -> float:
        """What the first process says, in all."""
        if self.count == 1:
            return value
        tensor = torch.tensor([value], dtype=torch.float64)
        dist.broadcast(tensor, 0, self.files)
        return float(tensor)
