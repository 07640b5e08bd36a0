"""Trained policies that come with the package: their names, and the one for a table (`Shipped`).

Each is a folder of `agents/policies/`, named GAME-TABLE for single hands or GAME-match-TABLE for
matches: GAME is cabra, sin_robo or estandar, TABLE is 2, 3, 4 or pairs. `load("cabra")` picks among
those of a game by the rules that are played; `load("cabra-2")` is that policy and no other.

`python -m agents.shipped RUN NAME` makes the policy of a run one of them.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from copy import copy
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING

import numpy as np

from agents.base import SEARCH, Agent, AgentError, View, import_trained, is_folder
from domino_env.rules import ALIASES, DEFAULTS, PRESETS, Rules

if TYPE_CHECKING:
    from agents.policy import PolicyAgent, Trained

POLICIES = Path(__file__).resolve().parent / "policies"
POLICY_FILE = "policy.safetensors"
MOST_BYTES = 20_000_000  # of all policies together: they travel with every installation

# Policies that are another one too. In pairs all 28 tiles are dealt, so nobody can draw.
SAME = {
    "estandar-pairs": "sin_robo-pairs",
    "estandar-match-pairs": "sin_robo-match-pairs",
}


# ---------------------------------------------------------------- names


def shipped() -> dict[str, Path]:
    """The folder of each policy that is shipped, by its name, in the order of the names."""
    found = {path.parent.name: path.parent for path in POLICIES.glob(f"*/{POLICY_FILE}")}
    shared = {name: found[other] for name, other in SAME.items() if other in found}
    return dict(sorted({**shared, **found}.items()))


def shipped_games() -> list[str]:
    """The games that have a shipped policy: names for `load`, as the other names of presets are."""
    return sorted(set(map(_game_in, shipped())) & PRESETS.keys())


def game_of(preset: str) -> str | None:
    """The game of a preset, by its main or other name; a series is the same game in matches."""
    name = ALIASES.get(preset, preset)
    return name.removesuffix("_series") if name in PRESETS else None


def folder_of(name: str | Path) -> Path:
    """The folder `name` of a run or policy; that of a shipped policy if there is none here."""
    home = None if Path(name).is_dir() else shipped().get(str(name))
    return Path(name) if home is None else home


def files_of(name: str) -> list[Path]:
    """The files of the policies that the agent of that name plays by; none of a bot."""
    name = name.rpartition(SEARCH)[0] or name
    if game_of(name):
        found = {folder for key, folder in shipped().items() if _game_in(key) == game_of(name)}
    else:
        found = {folder_of(name)} if is_folder(name) else set()
    return sorted(folder / POLICY_FILE for folder in found if (folder / POLICY_FILE).is_file())


def _game_in(name: str) -> str:
    return name.partition("-")[0]


def policy_name(rules: Rules) -> str:
    """What a policy that was trained by these rules is called."""
    match = "-match" if rules.episode == "match" else ""
    return f"{game_of(rules.preset)}{match}-{table_of(rules)}"


def table_of(rules: Rules) -> str:
    """The table in names of policies: 2, 3, 4 or pairs."""
    return "pairs" if rules.teams else str(rules.seats)


# ---------------------------------------------------------------- the agent of a game


class Shipped(Agent):
    """The shipped policies of a game as one agent, which plays by the one for the table.

    Where a match is played that is the policy for matches, and the one for single hands if there is
    none; for single hands the other way round. A policy is loaded when it is first needed, once for
    an agent and all its copies. `uses` is what any of the policies is shown.

    Raises `AgentError` if none is shipped for that game.
    """

    def __init__(self, preset: str, seed: int | None = None, device: str = "cpu") -> None:
        super().__init__(seed)
        self.name, self.device = preset, device
        self.game = game_of(preset)
        self.folders = {
            name: path for name, path in shipped().items() if _game_in(name) == self.game
        }
        if not self.folders:
            having = ", ".join(shipped_games()) or "none"
            raise AgentError(f"{preset}: found no shipped policy, games that have one: {having}")
        trained = import_trained("agents.policy", preset)
        trained.device_of(device)
        shapes = [trained.policy_shape(path) for path in self.folders.values()]
        self.uses = frozenset(part for shape in shapes for part in shape.parts) - {"state"}
        widths = {shape.observe_as for shape in shapes}
        self.observe_as = widths.pop() if len(widths) == 1 else None
        self._loaded: dict[str, PolicyAgent] = {}
        self._lock = Lock()  # for `_loaded`, which copies in other threads share

    def pick(self, rules: Rules) -> PolicyAgent:
        """The policy for these rules, with this agent's name and random state.

        Raises `AgentError` if none is shipped for the table.
        """
        name = self.name_for(rules)
        with self._lock:
            if name not in self._loaded:
                load_policy = import_trained("agents.policy", self.name).load_policy
                self._loaded[name] = load_policy(self.folders[name], device=self.device)
            picked = copy(self._loaded[name])
        picked.name, picked.random = self.name, self.random
        return picked

    def name_for(self, rules: Rules) -> str:
        """The name of the policy for these rules; `AgentError` if none is shipped for the table."""
        table = table_of(rules)
        names = [f"{self.game}-{table}", f"{self.game}-match-{table}"]
        for name in reversed(names) if rules.episode == "match" else names:
            if name in self.folders:
                return name
        found = table if rules.teams else f"{table} seats"
        tables = sorted({name.rpartition("-")[2] for name in self.folders})
        raise AgentError(f"{self.name}: found {found}, shipped for {' or '.join(tables)}")

    def check(self, rules: Rules) -> None:
        """Raise `AgentError` unless a policy is shipped for the table and plays with the set."""
        self.pick(rules).check(rules)

    def view(self, rules: Rules, games: np.ndarray) -> View:
        """What the policy for these rules is shown of `games` (GAME [B])."""
        return self.pick(rules).view(rules, games)

    def act(self, view: View) -> np.ndarray:
        """A move for every position, int64 [B]."""
        return self.pick(view.rules).act(view)

    def policy(self, view: View) -> np.ndarray:
        """The probabilities that `act` draws from, float32 [B, A]."""
        return self.pick(view.rules).policy(view)


# ---------------------------------------------------------------- shipping one


def ship(run: str | Path, name: str) -> Path:
    """Make the policy of a run's folder the shipped one of that name; returns its file.

    Weights are rounded to float16. How long it was trained is written beside them, if the run has
    a checkpoint. Raises `ValueError` where the name is not that of the policy's rules.
    """
    policy = import_trained("agents.policy", "ship")
    agent = policy.load_policy(run)
    fitting = {policy_name(r) for r in agent.trained_for if r.set == DEFAULTS["set"]}
    if name not in fitting:
        expected = " or ".join(sorted(fitting)) or "a policy for the double-six set"
        raise ValueError(f"name: found {name!r} for {run}, expected {expected}")
    folder = POLICIES / name
    folder.mkdir(parents=True, exist_ok=True)
    policy.save_policy(folder, agent.network, half=True, trained=_trained_in(Path(run)))
    return folder / POLICY_FILE


def _trained_in(run: Path) -> Trained | None:
    from agents.checkpoint import FORMAT, STATE_FILE, read_checkpoint
    from agents.policy import Trained
    from agents.run import CHECKPOINT

    path = run / CHECKPOINT / STATE_FILE
    if not path.is_file():
        return None
    numbers, _ = read_checkpoint(path)
    return Trained(numbers.decisions, numbers.seconds, FORMAT)


def total_bytes() -> int:
    """The size of all shipped policies together."""
    return sum(path.stat().st_size for path in POLICIES.glob(f"*/{POLICY_FILE}"))


def main(arguments: Sequence[str]) -> int:
    """The command `python -m agents.shipped RUN NAME`; returns the exit status."""
    try:
        if len(arguments) != 2:
            raise ValueError(f"found {len(arguments)} arguments, expected RUN NAME")
        path = ship(*arguments)
    except (ValueError, OSError) as error:
        print(f"agents.shipped: {error}", file=sys.stderr)
        return 2
    size, total = path.stat().st_size, total_bytes()
    print(f"{path}: {size:,} bytes; all together {total:,} of {MOST_BYTES:,}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
