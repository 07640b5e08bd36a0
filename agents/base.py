"""What an agent is (`Agent`), what it is shown (`View`), and how one is found by its name (`load`).

`B` positions, `P` seats, `T` tiles, `A` actions, `D` observation length, `H` rows of history.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy, deepcopy
from dataclasses import dataclass, fields
from difflib import get_close_matches
from importlib import import_module
from typing import Any, NamedTuple, Self

import numpy as np

from domino_env.observation import (
    history_each,
    history_length,
    layout_size,
    mask_each,
    observation_layout,
    observe_each,
    places_of,
    redact_each,
)
from domino_env.rules import Rules
from domino_env.saved import copied

# Parts of a view that cost time to make. `belief` costs far more, so it has to be named in `uses`.
PARTS = frozenset({"observation", "history", "games"})


class AgentError(ValueError):
    """An agent that cannot be had, does not fit the rules, or did not give a legal move."""


@dataclass(frozen=True)
class View:
    """B positions, each as the seat that is to move may know it; nothing else is in here.

    A part that the agent does not use (`Agent.uses`) may be None.
    """

    rules: Rules
    seat: np.ndarray  # int64 [B], the seats to move
    observation: np.ndarray | None  # uint8 [B, D], as `observation_layout` says
    mask: np.ndarray  # int8 [B, A], the legal actions
    history: np.ndarray | None  # uint8 [B, H, 4]
    games: np.recarray | None  # [B] of GAME, redacted for the seats to move
    belief: np.ndarray | None = None  # float32 [B, P + 1, T], where each tile lies (worlds.py)

    @classmethod
    def of(
        cls,
        rules: Rules,
        games: np.ndarray,
        uses: frozenset[str] = PARTS,
        observe_as: int | None = None,
    ) -> Self:
        """The view of `games` [B], which are left as they are, with the parts named in `uses`.

        Every part is made from the redacted records, so none can show more than they do. P of the
        observation and the belief is the seats, or `observe_as` (`observation_layout`).
        """
        seen = copied(games).view(np.recarray)
        B, seat = len(seen), seen["seat"].astype(np.int64)
        redact_each(seen, seat)
        mask = np.zeros((B, rules.actions), np.int8)
        mask_each(seen, mask)
        observation = history = belief = None
        if "observation" in uses:
            size = layout_size(observation_layout(rules, observe_as))
            observation = np.zeros((B, size), np.uint8)
            observe_each(seen, seat, places_of(rules, observe_as), False, observation)
        if "history" in uses:
            history = np.zeros((B, history_length(rules), 4), np.uint8)
            history_each(seen, seat, history)
        if "belief" in uses:
            from domino_env import worlds  # it takes its time, and few want it

            belief = np.zeros((B, places_of(rules, observe_as) + 1, rules.tiles), np.float32)
            if B > 0:
                belief[:] = worlds.belief(seen, seat, observe_as)
        shown = seen if "games" in uses else None
        return cls(rules, seat, observation, mask, history, shown, belief)

    def __len__(self) -> int:
        return len(self.mask)

    def rows(self, rows: np.ndarray) -> Self:
        """The view of some of its positions: `rows`, integers or bools."""
        parts: dict[str, Any] = {}
        for field in fields(self):
            part = getattr(self, field.name)
            parts[field.name] = part[rows] if isinstance(part, np.ndarray) else part
        return type(self)(**parts)


class Agent:
    """Chooses moves. It keeps nothing between calls but its random state, `self.random`.

    A subclass gives `act`, and `policy` if it can; it names in `uses` what it reads of a view
    besides `mask` and `seat`, which saves the time to make the rest.
    """

    name: str = "agent"
    uses: frozenset[str] = PARTS
    observe_as: int | None = None  # of the observation that it wants, as in `observation_layout`
    deals_at_once: int = 2048  # evaluation plays that many together; a slow agent wants fewer

    def __init__(self, seed: int | None = None) -> None:
        self.seed(seed)

    def seed(self, seed: int | Sequence[int] | None) -> None:
        """Set the random state anew: the same seed and the same calls give the same moves."""
        try:
            self.random = np.random.default_rng(seed)
        except (TypeError, ValueError):
            raise AgentError(f"seed: found {seed!r}, expected an integer of at least 0") from None

    def copy(self) -> Self:
        """The same agent with a random state of its own, to play in another thread.

        All else is shared: an agent that writes to anything while it plays gives its copy another.
        """
        new = copy(self)
        new.random = deepcopy(self.random)
        return new

    def check(self, rules: Rules) -> None:
        """Raise `AgentError` if the agent cannot play by these rules; a bot plays all."""

    def view(self, rules: Rules, games: np.ndarray) -> View:
        """What this agent is shown of `games` (GAME [B], not redacted)."""
        return View.of(rules, games, self.uses, self.observe_as)

    def act(self, view: View) -> np.ndarray:
        """A legal action for every position, int64 [B]."""
        raise NotImplementedError

    def policy(self, view: View) -> np.ndarray:
        """The probability of every action that `act` draws from, float32 [B, A]."""
        raise AgentError(f"{self.name}: the agent gives no probabilities of its moves")


class Kind(NamedTuple):
    """A kind of agent that is known by name."""

    where: str  # "module:Class", imported when it is asked for
    argument: str = ""  # what stands behind the colon of its name, "" if there is no colon


# A class is called with `seed=`, and with the text behind the colon before it if it takes one.
KINDS: dict[str, Kind] = {
    "random": Kind("agents.bots:Random"),
    "lightest": Kind("agents.bots:Lightest"),
    "heaviest": Kind("agents.bots:Heaviest"),
    "double_first": Kind("agents.bots:DoubleFirst"),
    "mobility": Kind("agents.bots:Mobility"),
    "blocker": Kind("agents.bots:Blocker"),
    "expert": Kind("agents.expert:Expert"),
    "cfr": Kind("agents.exact:Cfr", "N"),
    "pimc": Kind("agents.pimc:Pimc", "N"),
}
SEARCH = "+search:"  # between the name of a trained policy and the budget of its search


def load(name: str, seed: int | None = None, device: str = "cpu") -> Agent:
    """The agent of that name: a bot, a shipped policy, or the folder of a run or policy.

    A preset's name, "cabra", means the policies shipped for its game, "cabra-2" one of them
    (shipped.py); a name with a slash is a folder. "+search:50" behind any of them makes it search
    (policy_search.py). `seed` is that of the agent's random choices (None: from the system),
    `device` where a network runs.
    Raises `AgentError`, with the nearest name, if there is no such agent.
    """
    if not isinstance(name, str):
        raise AgentError(f"agent: found {name!r}, expected {_examples()}")
    kind, colon, argument = name.partition(":")
    searching, search, budget = name.rpartition(SEARCH)
    if search:
        policy = load(searching, seed, device)
        agent = import_trained("agents.policy_search", name).PolicySearch(policy, budget, seed)
    elif kind in KINDS:
        agent = _make(kind, name, argument if colon else None, seed)
    elif _shipped().game_of(name):
        agent = _shipped().Shipped(name, seed, device)
    elif is_folder(name):
        agent = _load_policy(name, seed, device)
    else:
        known = [*KINDS, *_shipped().shipped_games(), *_shipped().shipped()]
        near = get_close_matches(kind.casefold(), known, n=1, cutoff=0.5)
        hint = f"did you mean {near[0]}?" if near else f"expected {_examples()}"
        raise AgentError(f"agent: there is no {name!r}, {hint}")
    agent.name = name
    return agent


def is_folder(name: str) -> bool:
    """Whether a name means the folder of one policy: it has a slash, is a folder, or is shipped."""
    if name == "" or name.partition(":")[0] in KINDS or _shipped().game_of(name) or SEARCH in name:
        return False
    return "/" in name or "\\" in name or _shipped().folder_of(name).is_dir()


def _examples() -> str:
    bots = (f"{name}:{kind.argument}" if kind.argument else name for name, kind in KINDS.items())
    trained = [*_shipped().shipped_games(), *_shipped().shipped()]
    return f"{', '.join([*bots, *trained])} or the folder of a run"


def _shipped() -> Any:
    return import_module("agents.shipped")  # which itself needs this module


def _make(kind: str, name: str, argument: str | None, seed: int | None) -> Agent:
    where, takes = KINDS[kind]
    if takes and not argument:
        raise AgentError(f"agent: found {name!r}, expected {kind}:{takes}")
    if not takes and argument is not None:
        raise AgentError(f"agent: found {name!r}, expected {kind} alone, it takes no argument")
    module, _, cls = where.partition(":")
    make = getattr(import_module(module), cls)
    return make(argument, seed=seed) if takes else make(seed=seed)


def _load_policy(name: str, seed: int | None, device: str) -> Agent:
    if not _shipped().folder_of(name).is_dir():
        raise AgentError(f"agent: there is no folder {name!r}, expected that of a run or policy")
    return import_trained("agents.policy", name).load_policy(name, seed, device)


def import_trained(module: str, what: str) -> Any:
    """A module that needs the `train` extra, for `what`; `AgentError` where it is missing."""
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in ("torch", "safetensors", "tensorboard"):
            raise
        raise AgentError(
            f"{what}: found no {error.name}, expected it: pip install 'domino-env[train]'"
        ) from None
