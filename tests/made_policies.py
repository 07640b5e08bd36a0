"""Small policies that are shipped in a folder of a test's own."""

from pathlib import Path

import torch
from learning import another, small

from agents import shipped
from agents.network import Network
from agents.policy import PolicyAgent, save_policy
from domino_env import Rules

TABLES = {
    "2": {"seats": 2},
    "3": {"seats": 3},
    "4": {"seats": 4},
    "pairs": {"seats": 4, "teams": True},
}


def rules_named(name: str) -> Rules:
    """The rules of the policy of that name."""
    game, *match, table = name.split("-")
    if not match:
        return Rules.preset(game, episode="round", **TABLES[table])
    preset = game if game == "cabra" else f"{game}_series"
    return Rules.preset(preset, **TABLES[table])


def network_for(rules: Rules, seed: int, **fields) -> Network:
    """A small network that plays clearly otherwise than one of another seed."""
    return another(small(rules=rules.to_dict(), **fields), seed, spread=1.0)


def weights(agent: PolicyAgent) -> torch.Tensor:
    """All weights of an agent, one behind the other."""
    return torch.cat([tensor.flatten() for tensor in agent.network.state_dict().values()])


class Home:
    """The folder of the shipped policies, as long as a test runs."""

    def __init__(self, monkeypatch, folder: Path) -> None:
        self.folder = folder
        monkeypatch.setattr(shipped, "POLICIES", folder)

    def __call__(self, *names: str, **fields) -> Path:
        """Ship policies of these names, each with weights of its own; returns the folder."""
        for name in names:
            (self.folder / name).mkdir(parents=True)
            network = network_for(rules_named(name), sum(name.encode()), **fields)
            save_policy(self.folder / name, network)
        return self.folder
