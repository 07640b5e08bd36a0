"""Self-play: the storage of a rollout, moves drawn from a network, and advantages per seat.

`K` steps, `B` games, `P` seats, `A` actions, `D` observation length. The environment writes each
step straight into the tensors of the storage; nothing is copied.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor

from agents.shape import Inputs
from domino_env import DominoVec
from domino_env.compiled import jit
from domino_env.vector import Batch

Acting = Callable[[Inputs], tuple[Tensor, Tensor]]  # logits [B, A] and values [B]


class Workers:
    """Runs a function over slices of a range, shared between threads, results in order.

    Torch keeps to one thread inside each: two threads of its own on two busy cores were up to
    seven times slower than one.
    """

    def __init__(self, count: int) -> None:
        self.count = count
        self._pool = ThreadPoolExecutor(count) if count > 1 else None

    def map(
        self, function: Callable[[slice], Any], length: int, piece: int | None = None
    ) -> list[Any]:
        """`function(part)` for each slice of `piece` of range(length); None: one slice a thread."""
        piece = piece or max(1, -(-length // self.count))
        parts = [slice(lo, min(lo + piece, length)) for lo in range(0, length, piece)]
        if self._pool is None:
            return [function(part) for part in parts]
        return list(self._pool.map(function, parts))


class Storage:
    """One rollout: K steps of B games, in the order [K, B]; slot K is where the next one begins.

    `parts` are those of `Inputs` that the network is shown. `learns` is where the decision is the
    learner's, and not an opponent's; `advice` what a teacher would have played there; `solved` what
    a solver makes of every action, with `solves`.
    """

    observation: Tensor  # uint8 [K + 1, B, D]; so with the other parts, where there are any

    def __init__(
        self,
        vec: DominoVec,
        steps: int,
        parts: Sequence[str] = ("observation",),
        solves: bool = False,
    ) -> None:
        self.steps, self.games, self.parts = steps, vec.num_games, tuple(parts)
        first = vec.new_batch()
        shape = (steps + 1, vec.num_games)
        for name in ("observation", "history", "belief", "state"):
            if name in parts:
                array = getattr(first, name)
                setattr(
                    self, name, torch.from_numpy(np.zeros(shape + array.shape[1:], array.dtype))
                )
        self.mask = torch.zeros(*shape, first.mask.shape[1], dtype=torch.int8)
        self.seat = torch.zeros(shape, dtype=torch.int8)
        self.reward = torch.zeros(*shape, vec.rules.seats)
        self.done = torch.zeros(shape, dtype=torch.bool)
        self.action = torch.zeros(shape, dtype=torch.int64)
        self.log_prob = torch.zeros(shape)
        self.value = torch.zeros(shape)
        self.learns = torch.ones(shape, dtype=torch.bool)
        self.advice = torch.zeros(shape, dtype=torch.int64)
        self.solved = torch.zeros(*shape, self.mask.shape[2] if solves else 0)
        self.advantage = torch.zeros(steps, vec.num_games)
        self.batches = [self._batch(vec, k) for k in range(steps + 1)]

    def _batch(self, vec: DominoVec, k: int) -> Batch:
        names = (*self.parts, "mask", "seat", "reward", "done")
        return vec.new_batch(**{name: getattr(self, name)[k].numpy() for name in names})

    def inputs(self, *where: Any) -> Inputs:
        """What the network is shown, at an index of [K + 1, B]."""
        return Inputs(**{name: getattr(self, name)[where] for name in self.parts})

    def flat(self, name: str) -> Tensor:
        """A tensor of the K steps as [K*B, ...]."""
        tensor = getattr(self, name)[: self.steps]
        return tensor.reshape(self.steps * self.games, *tensor.shape[2:])

    def carry_over(self) -> None:
        """Begin the next rollout where this one ended."""
        for name in (*self.parts, "mask", "seat"):
            getattr(self, name)[0] = getattr(self, name)[self.steps]


class Others(Protocol):
    """Opponents, a teacher or a solver, who look at every step of a rollout."""

    def move(self, vec: DominoVec, storage: Storage, k: int, uniform: np.ndarray) -> None:
        """Write at step k their actions and where the learner's decisions are; or what they say."""
        ...


def collect(
    vec: DominoVec,
    storage: Storage,
    network: Acting,
    uniform: np.ndarray,
    workers: Workers,
    others: Sequence[Others] = (),
) -> None:
    """Play K steps in every game from slot 0 of the storage on, all seats by `network`.

    `uniform` [K, B] in [0, 1) decides what is drawn. Where there are `others`, they move for their
    own seats.
    """
    for k in range(storage.steps + 1):
        last = k == storage.steps
        luck = np.zeros(storage.games) if last else uniform[k]

        def choose(part: slice, k: int = k, luck: np.ndarray = luck) -> None:
            with torch.inference_mode():
                logits, value = network(storage.inputs(k, part))
                storage.value[k, part] = value
                sample(
                    logits.float().cpu().numpy(),
                    storage.mask[k, part].numpy(),
                    luck[part],
                    storage.action[k, part].numpy(),
                    storage.log_prob[k, part].numpy(),
                )

        workers.map(choose, storage.games)
        if not last:
            for other in others:
                other.move(vec, storage, k, luck)
            vec.step(storage.action[k].numpy(), out=storage.batches[k + 1])


@jit
def sample(
    logits: np.ndarray,
    mask: np.ndarray,
    uniform: np.ndarray,
    action: np.ndarray,
    log_prob: np.ndarray,
) -> None:
    """Draw legal actions from logits float32 [B, A]; writes action int64 [B], log_prob float32 [B].

    `uniform` [B] in [0, 1) decides. Work is done for the legal actions alone, mostly two to six.
    """
    for b in range(logits.shape[0]):
        best = -np.inf
        for a in range(logits.shape[1]):
            if mask[b, a] and logits[b, a] > best:
                best = logits[b, a]
        total = 0.0
        for a in range(logits.shape[1]):
            if mask[b, a]:
                total += np.exp(logits[b, a] - best)
        left = uniform[b] * total
        for a in range(logits.shape[1]):
            if mask[b, a]:
                action[b] = a
                left -= np.exp(logits[b, a] - best)
                if left < 0:
                    break
        log_prob[b] = logits[b, action[b]] - best - np.log(total)


def advantages(storage: Storage, teams: bool, gamma: float, trace: float) -> None:
    """Fill `storage.advantage` by `seat_advantages`."""
    seat_advantages(
        storage.seat.numpy(),
        storage.value.numpy(),
        storage.reward.numpy(),
        storage.done.numpy(),
        teams,
        gamma,
        trace,
        storage.advantage.numpy(),
    )


@jit
def seat_advantages(
    seat: np.ndarray,
    value: np.ndarray,
    reward: np.ndarray,
    done: np.ndarray,
    teams: bool,
    gamma: float,
    trace: float,
    out: np.ndarray,
) -> None:
    """Generalised advantage estimation (arXiv 1506.02438), for each seat over its own decisions.

    seat int8, value float32, done bool [K + 1, B]; reward float32 [K + 1, B, P]; out [K, B]. Slot
    k + 1 holds what the move of slot k earned. Between two decisions of a seat all that it earned
    counts, so a seat that does not make the last move still gets its reward. Behind the last slot
    the seat to move counts on its value there; the sum is zero, so its partner does the same and
    the others share the opposite.
    """
    steps, games = out.shape
    seats = reward.shape[2]
    ahead = np.zeros(seats, np.float32)  # value at the seat's next decision
    carried = np.zeros(seats, np.float32)  # its advantage there
    earned = np.zeros(seats, np.float32)  # reward until there
    for b in range(games):
        mover = int(seat[steps, b])
        for p in range(seats):
            carried[p] = 0
            earned[p] = 0
            same_side = p == mover or (teams and (p - mover) % 2 == 0)
            share = 1 if teams else seats - 1
            ahead[p] = value[steps, b] if same_side else -value[steps, b] / share
        for k in range(steps - 1, -1, -1):
            for p in range(seats):
                if done[k + 1, b]:
                    ahead[p] = 0
                    carried[p] = 0
                    earned[p] = 0
                earned[p] += reward[k + 1, b, p]
            p = int(seat[k, b])
            delta = earned[p] + gamma * ahead[p] - value[k, b]
            carried[p] = delta + gamma * trace * carried[p]
            out[k, b] = carried[p]
            ahead[p] = value[k, b]
            earned[p] = 0


def parameters_of(module: torch.nn.Module) -> Sequence[Tensor]:
    """The trainable tensors of a network, in their fixed order."""
    return [parameter for parameter in module.parameters() if parameter.requires_grad]
