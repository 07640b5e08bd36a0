"""PPO end to end: where the time goes, beside the bare network and sb3-contrib's MaskablePPO.

    python -m benchmarks.train

All in one process and turn by turn: our learner on cabra with two seats (2 x 256, 2 epochs), the
same forward passes and optimiser steps without any game ("bare network"), and MaskablePPO through
the Gymnasium environment with the same network: once with our epochs and minibatches of 2,048 in
16 environments, once as it comes (one environment, 10 epochs, minibatches of 64).
"""

from __future__ import annotations

import statistics
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from functools import reduce
from typing import Any

import torch
from rich.console import Console
from rich.table import Table

import agents.ppo
from agents.loss import Minibatch
from agents.ppo import PIECE, Config, Learner
from agents.settings import in_bf16

RULES = {"preset": "cabra", "episode": "round"}
TARGETS = {"of the bare network": 0.6, "x MaskablePPO, bf16": 60.0, "x MaskablePPO, float32": 30.0}


class Profile:
    """Wall time spent inside functions, without that in others that are watched too, by label."""

    def __init__(self) -> None:
        self.seconds: defaultdict[str, float] = defaultdict(float)
        self._inside: list[float] = []  # of each call under way, the time of watched calls in it

    def watch(self, owner: Any, name: str, label: str) -> None:
        """Count the time of `owner.name` under `label` from now on."""
        setattr(owner, name, self._timed(getattr(owner, name), label))

    def watch_each(self, owner: Any, name: str, label: str) -> None:
        """The same of an iterator: the time that it takes to give each of its items."""
        iterate = getattr(owner, name)

        def timed(*arguments: Any) -> Iterator[Any]:
            items = iterate(*arguments)
            return iter(self._timed(lambda: next(items, None), label), None)

        setattr(owner, name, timed)

    def _timed(self, function: Callable[..., Any], label: str) -> Callable[..., Any]:
        def timed(*arguments: Any, **options: Any) -> Any:
            began = time.perf_counter()
            self._inside.append(0.0)
            try:
                return function(*arguments, **options)
            finally:
                took = time.perf_counter() - began
                self.seconds[label] += took - self._inside.pop()
                if self._inside:
                    self._inside[-1] += took

        return timed


def ours(bf16: bool) -> tuple[Learner, Profile]:
    """A learner that has compiled and warmed up, with its parts watched."""
    learner = Learner(Config(rules=RULES, bf16=bf16))
    learner.update()
    profile, (table,) = Profile(), learner.tables
    profile.watch(table.vec, "step", "environment")
    profile.watch(learner, "acting", "copy")
    profile.watch_each(learner, "minibatches", "copy")
    profile.watch(table.storage, "carry_over", "copy")
    profile.watch(agents.ppo, "collect", "inference")
    profile.watch(agents.ppo, "advantages", "advantage")
    profile.watch(learner, "learn", "update")
    profile.watch(learner, "average_weights", "update")
    return learner, profile


def bare(learner: Learner) -> Callable[[], None]:
    """The forward passes and optimiser steps of one update, on the same data, and nothing else."""
    config, storage = learner.config, learner.tables[0].storage
    batches = list(learner.minibatches())

    def work() -> None:
        acting = learner.acting()
        with torch.inference_mode():
            for k in range(config.steps + 1):
                learner.workers.map(lambda part, k=k: acting(storage.inputs(k, part)), config.games)
        for mb in batches:
            _step(learner, mb)

    return work


def _step(learner: Learner, mb: Minibatch) -> None:
    """Forward, backward and optimiser with the plainest loss there is."""

    def share(part: slice) -> tuple[torch.Tensor, ...]:
        with torch.autocast("cpu", torch.bfloat16, enabled=in_bf16(learner.config)):
            logits, value = learner.network(mb.inputs.rows(part))
        loss = logits.float().mean() + value.float().mean()
        return torch.autograd.grad(loss, learner.parameters)

    shares = learner.workers.map(share, len(mb), PIECE)
    for k, parameter in enumerate(learner.parameters):
        parameter.grad = reduce(torch.add, [grads[k] for grads in shares]) * 0  # stay as it is
    learner.optimiser.step()


def maskable_ppo(steps: int, games: int, **settings: Any) -> Callable[[], float]:
    """MaskablePPO on the solo environment, warmed up; calling it trains and gives decisions/s."""
    from sb3_contrib import MaskablePPO  # pyright: ignore[reportMissingImports]
    from stable_baselines3.common.vec_env import DummyVecEnv  # pyright: ignore[reportMissingImports]

    from domino_env.solo import SoloEnv

    envs = DummyVecEnv([lambda: SoloEnv(RULES, forced="skip") for _ in range(games)])
    network = {"net_arch": [256, 256]}
    model = MaskablePPO(
        "MultiInputPolicy", envs, n_steps=steps // games, policy_kwargs=network, **settings
    )
    model.learn(steps)

    def measure() -> float:
        began = time.perf_counter()
        model.learn(steps, reset_num_timesteps=False)
        return steps / (time.perf_counter() - began)

    return measure


PEERS: dict[str, dict[str, int]] = {
    "MaskablePPO, our batches": {"games": 16, "batch_size": 2048, "n_epochs": 2},
    "MaskablePPO as it comes": {"games": 1},
}


def train(runs: int = 5, updates: int = 2, peer: bool = True) -> list[dict[str, Any]]:
    """Print both tables, and return the rows of the first: medians of `runs`."""
    rows = []
    theirs = {name: maskable_ppo(2048, **how) for name, how in PEERS.items()} if peer else {}
    for bf16 in (True, False):
        learner, profile = ours(bf16)
        work = bare(learner)
        work()
        decisions = updates * learner.config.games * learner.config.steps
        speeds: dict[str, list[float]] = {name: [] for name in ("ours", "bare network", *PEERS)}
        profile.seconds.clear()
        for _ in range(runs):
            speeds["ours"].append(decisions / _seconds(learner.update, updates))
            parts = profile.seconds.copy()
            speeds["bare network"].append(decisions / _seconds(work, updates))
            profile.seconds = parts.copy()  # what the bare network does is not ours
            for name, measure in theirs.items():
                speeds[name].append(measure())
        row = {name: statistics.median(found or [float("nan")]) for name, found in speeds.items()}
        rows.append({"name": "bf16" if bf16 else "float32", **row, "parts": dict(parts)})
        rows[-1]["seconds"] = sum(decisions / speed for speed in speeds["ours"])
    Console().print(_speeds(rows))
    Console().print(_parts(rows))
    return rows


def _seconds(function: Callable[[], Any], times: int) -> float:
    began = time.perf_counter()
    for _ in range(times):
        function()
    return time.perf_counter() - began


def _speeds(rows: list[dict[str, Any]]) -> Table:
    table = Table(title="PPO end to end, decisions a second")
    for heading in ("", *(row["name"] for row in rows)):
        table.add_column(heading, justify="right" if heading else "left")
    for name in ("ours", "bare network", *PEERS):
        table.add_row(name, *(f"{row[name]:,.0f}" for row in rows))
    shares = (f"{row['ours'] / row['bare network']:.0%}" for row in rows)
    table.add_row(f"of the bare network (target {TARGETS['of the bare network']:.0%})", *shares)
    wanted = " and ".join(f"{TARGETS['x MaskablePPO, ' + row['name']]:.0f}" for row in rows)
    for name in PEERS:
        ratios = (f"{row['ours'] / row[name]:.1f}" for row in rows)
        table.add_row(f"times {name} (target {wanted})", *ratios)
    return table


PARTS = {
    "environment": "environment: moves, observations, masks",
    "copy": "copy: minibatches, the network in bfloat16",
    "inference": "inference: forward passes, moves drawn",
    "advantage": "advantage",
    "update": "update: loss, gradient, optimiser",
}


def _parts(rows: list[dict[str, Any]]) -> Table:
    table = Table(title="Where the time of an update goes")
    table.add_column("part")
    for row in rows:
        table.add_column(row["name"], justify="right")
    for part, text in PARTS.items():
        table.add_row(text, *(f"{row['parts'][part] / row['seconds']:.1%}" for row in rows))
    rest = [1 - sum(row["parts"].values()) / row["seconds"] for row in rows]
    table.add_row("the rest: figures", *(f"{share:.1%}" for share in rest))
    return table


if __name__ == "__main__":
    train()
