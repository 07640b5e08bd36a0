"""Gymnasium: one learner at the table, given opponents in the other seats.

    env = gymnasium.make("domino_env/Domino-v0", rules="sin_robo", opponents=my_opponent)
    observation, info = env.reset(seed=7)
    observation, reward, terminated, truncated, info = env.step(action)

Rules, observations, masks, actions and options are those of `domino_v0`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

import gymnasium
import numpy as np
from gymnasium.error import ResetNeeded

from domino_env.aec import Observation, raw_env
from domino_env.errors import shown
from domino_env.rules import Rules, RulesError
from domino_env.state import UNIT

Opponent = Callable[[Observation, np.random.Generator], Any]
MOST_DEALS = 1000  # how many deals without a move of the learner are passed over in a row


def uniform(observation: Observation, rng: np.random.Generator) -> int:
    """The opponent that plays any legal action with equal chance."""
    legal = np.flatnonzero(observation["action_mask"])
    return int(legal[rng.integers(len(legal))])


class SoloEnv(gymnasium.Env[Observation, Any]):
    """A game in which the learner has one seat.

    `opponents` choose for the other seats: one for all, or a list with one for each other seat,
    clockwise from the learner. An opponent is called with the observation of its seat (a dictionary
    as in `domino_v0`) and the environment's random generator, and returns an action; None plays
    uniformly. `seat` is the learner's, or None for one drawn in each episode. With `forced="skip"`
    nobody is asked where only one move is legal. The other arguments are those of `domino_v0.env`.

    A reward is what the learner's seat earns from its action to its next turn. An illegal action
    loses: the episode ends with -1 and `info["illegal_action"]`; what is no action at all is an
    `IllegalMove`. A deal that leaves the learner no move at all is dealt again, if it was not
    given. `info` has the learner's `seat` and its `action_mask`.
    """

    metadata: dict[str, Any] = raw_env.metadata

    def __init__(
        self,
        rules: str | Mapping[str, Any] | Rules = "cabra",
        *,
        opponents: Opponent | Sequence[Opponent | None] | None = None,
        seat: int | None = None,
        forced: Literal["step", "skip"] = "step",
        history: bool = False,
        belief: bool = False,
        observe_as: int | None = None,
        render_mode: str | None = None,
        **fields: Any,
    ) -> None:
        self.game = raw_env(
            rules,
            forced=forced,
            history=history,
            belief=belief,
            observe_as=observe_as,
            render_mode=render_mode,
            **fields,
        )
        self.render_mode = render_mode
        self.observation_space = self.game.observation_space("player_0")
        self.action_space = self.game.action_space("player_0")
        self._opponents = _each_opponent(opponents, self.game.rules.seats - 1)
        self._fixed = _checked_seat(seat, self.game.rules.seats)
        self._live = False
        self._paid = 0  # what the learner has been given so far, in 1/UNIT
        self.seat = self._fixed or 0

    @property
    def agent(self) -> str:
        """The learner's name in `domino_v0`."""
        return f"player_{self.seat}"

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        """Begin an episode and play up to the learner's first turn.

        The game of a seed is that of `domino_v0`. Raises `RulesError` on a given deal, or rules,
        that leave the learner no move.
        """
        super().reset(seed=seed)
        seats = self.game.rules.seats
        drawn = int(self.np_random.integers(seats)) if self._fixed is None else self._fixed
        self.seat = self.game.viewer = drawn
        for _ in range(MOST_DEALS):
            self.game.reset(seed=seed, options=options)
            self._paid = 0
            self._play_others()
            if self._live:
                return self.game.observe(self.agent), self._info()
            if _deals(options):
                raise RulesError(f"options: the deal leaves seat {self.seat} no move, expected one")
            seed = None
        raise RulesError(f"rules: {MOST_DEALS} deals left seat {self.seat} no move, expected one")

    def step(self, action: Any) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        """Make the learner's move and play up to its next turn, or the end."""
        if not self._live:
            raise ResetNeeded("step: no game is going on, expected reset() first")
        number = self.game.action_number(action)
        if not self.action_masks()[number]:
            return self._lose(number)
        self.game.step(number)
        self._play_others()
        earned = int(self.game.games["earned"][0, self.seat])
        reward = (earned - self._paid) / UNIT
        self._paid = earned
        terminated, truncated = self._ended()
        return self.game.observe(self.agent), reward, terminated, truncated, self._info()

    def _lose(self, number: int) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        self._live = False
        observation = self.game.observe(self.agent)
        observation["action_mask"][:] = 0
        return observation, -1.0, True, False, self._info() | {"illegal_action": number}

    def _play_others(self) -> None:
        """Let the opponents move until the learner is to move or the episode is over."""
        game, seats = self.game, self.game.rules.seats
        self._live = not any(self._ended())
        while self._live and game.agent_selection != self.agent:
            place = (game.possible_agents.index(game.agent_selection) - self.seat) % seats
            choose = self._opponents[place - 1]
            game.step(choose(game.observe(game.agent_selection), self.np_random))
            self._live = not any(self._ended())

    def _ended(self) -> tuple[bool, bool]:
        return self.game.terminations[self.agent], self.game.truncations[self.agent]

    def _info(self) -> dict[str, Any]:
        return {"action_mask": self.action_masks().astype(np.int8), "seat": self.seat}

    def action_masks(self) -> np.ndarray:
        """The learner's legal actions, bool [A], as sb3-contrib's MaskablePPO asks for them."""
        if not self._live:
            return np.zeros(self.game.rules.actions, bool)
        return self.game.infos[self.agent]["action_mask"].astype(bool)

    def render(self) -> Any:
        """The table as the learner sees it: text, a picture, or None with a window."""
        return self.game.render()

    def close(self) -> None:
        """Close the window, if one is open."""
        self.game.close()


def _each_opponent(opponents: Any, count: int) -> list[Opponent]:
    if opponents is None or callable(opponents):
        opponents = [opponents] * count
    if not isinstance(opponents, list | tuple):
        raise ValueError(f"opponents: found {shown(opponents)}, expected a callable or a list")
    if len(opponents) != count:
        raise ValueError(f"opponents: found {len(opponents)}, expected {count}, one a seat")
    for chosen in opponents:
        if chosen is not None and not callable(chosen):
            raise ValueError(f"opponents: found {shown(chosen)}, expected a callable or None")
    return [uniform if chosen is None else chosen for chosen in opponents]


def _checked_seat(seat: Any, seats: int) -> int | None:
    if seat is None:
        return None
    good = isinstance(seat, int | np.integer) and not isinstance(seat, bool)
    if not good or not 0 <= seat < seats:
        raise ValueError(f"seat: found {shown(seat)}, expected 0 to {seats - 1}, or None")
    return int(seat)


def _deals(options: Mapping[str, Any] | None) -> bool:
    return bool(options) and options.get("hands") is not None
