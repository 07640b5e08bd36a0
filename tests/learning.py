"""Helpers of the tests of the learner: small runs, and networks that differ clearly."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from agents.checkpoint import gathered_games, numbers_of, tensors_of
from agents.loss import Minibatch
from agents.network import Network
from agents.ppo import Config, Learner, shape_of
from agents.run import Run
from agents.training import resume, save

STATE, PREVIOUS = "checkpoint/state.safetensors", "checkpoint/previous.safetensors"
TABLES = [{"seats": 2}, {"seats": 3}, {"seats": 4}, {"seats": 4, "teams": True}]
TABLE_NAMES = ["2", "3", "4", "pairs"]
UPDATES = 6  # of `of_6`


def small(**fields: Any) -> Config:
    """A run of 8 updates with everything small."""
    fixed = {
        "rules": {"preset": "cabra", "episode": "round"},
        "games": 64,
        "steps": 8,
        "decisions": 8 * 512,
        "minibatch": 512,
        "hidden": (16,),
        "evaluate_every": 0,
        "workers": 1,
        "bf16": False,
    }
    return Config(**{**fixed, **fields})


def of_6(**fields: Any) -> Config:
    """A small run of 6 updates."""
    return small(**{"decisions": UPDATES * 64 * 8, "minibatch": 256, **fields})


def figures_of(folder: Path) -> list[dict[str, Any]]:
    """The metrics of a run without what depends on the clock."""
    lines = (folder / "metrics.jsonl").read_text().splitlines()
    clock = ("time", "charts/SPS")
    return [{k: v for k, v in json.loads(line).items() if k not in clock} for line in lines]


def another(config: Config, seed: int, spread: float = 0.3) -> Network:
    """A network of that run which does not play nearly uniformly."""
    torch.manual_seed(seed)
    network = Network(shape_of(config))
    for name, parameter in network.named_parameters():
        if "head.weight" in name:
            torch.nn.init.normal_(parameter, 0, spread)
    return network


def one_minibatch(learner: Learner) -> Minibatch:
    """All of a first rollout, before anything is learned from it."""
    learner.rollout()
    mb = next(learner.minibatches())
    assert len(mb) == learner.config.games * learner.config.steps
    return mb


def flat_gradient(total: Tensor, parameters: Any) -> np.ndarray:
    """The gradient of a loss by all parameters, one behind the other."""
    return torch.cat([g.flatten() for g in torch.autograd.grad(total, parameters)]).numpy()


def weights_of(network: torch.nn.Module) -> np.ndarray:
    """All weights, one behind the other, a copy."""
    return torch.cat([p.detach().flatten() for p in network.parameters()]).cpu().numpy().copy()


# ---------------------------------------------------------------- runs


def started(folder: Path, config: Config, updates: int) -> Learner:
    """A run with that many updates, each saved."""
    run, learner = Run(folder, config), Learner(config)
    for _ in range(updates):
        figures = learner.update()
        run.log(learner.updates, learner.decisions, figures)
        save(run, learner)
    return learner


def resumed(folder: Path, config: Config) -> Learner:
    """A new learner in the state of that run."""
    learner = Learner(config)
    resume(Run(folder, config, resume=True), folder, learner)
    return learner


def same_state(a: Learner, b: Learner) -> bool:
    """Whether two learners will do the same from now on."""
    numbers = [{**vars(numbers_of(learner)), "seconds": 0} for learner in (a, b)]
    tensors = [tensors_of(learner) for learner in (a, b)]
    return (
        numbers[0] == numbers[1]
        and gathered_games(a) == gathered_games(b)
        and tensors[0].keys() == tensors[1].keys()
        and all(torch.equal(tensor, tensors[1][name]) for name, tensor in tensors[0].items())
    )
