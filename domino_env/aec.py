"""The game as a PettingZoo environment without wrappers; `domino_v0` is its page, and wraps it."""

from __future__ import annotations

import copy
import operator
from collections.abc import Mapping
from typing import Any, Literal

import gymnasium
import numpy as np
from gymnasium import spaces
from gymnasium.error import ResetNeeded
from pettingzoo.utils.env import AECEnv

from domino_env.deal import new_game, set_deal
from domino_env.display import RENDER_MODES, Display
from domino_env.errors import IllegalMove, shown
from domino_env.moves import check_legal
from domino_env.observation import (
    history_each,
    history_length,
    layout_size,
    observation_layout,
    observe_each,
    places_of,
    state_layout,
)
from domino_env.rules import Rules, RulesError
from domino_env.single import ILLEGAL, fast, look_at_game, reset_game, step_game
from domino_env.state import NOT_OVER, OUT, TERMINATED, TRUNCATED, UNIT, new_games

FORCED = ("step", "skip")
Observation = dict[str, np.ndarray]
Environment = AECEnv[str, Any, Any]  # agents, observations, actions


class raw_env(AECEnv[str, Any, Any]):  # noqa: N801 (PettingZoo's name)
    """The game without wrappers; arguments as in `domino_v0`.

    `games` is its record, [1]. `viewer` is the seat at the bottom of the picture, whose hand alone
    is rendered face up until the end; None: seat 0 at the bottom, the hand of the seat to move.
    """

    metadata: dict[str, Any] = {  # noqa: RUF012 (PettingZoo declares it so)
        "render_modes": list(RENDER_MODES),
        "name": "domino_v0",
        "is_parallelizable": False,
        "render_fps": 2,
    }

    def __init__(
        self,
        rules: str | Mapping[str, Any] | Rules = "cabra",
        *,
        forced: Literal["step", "skip"] = "step",
        history: bool = False,
        belief: bool = False,
        observe_as: int | None = None,
        render_mode: str | None = None,
        **fields: Any,
    ) -> None:
        super().__init__()
        self.rules = Rules.of(rules, **fields)
        self.forced = _choice("forced", forced, FORCED)
        self.history, self.belief = bool(history), bool(belief)
        self.places = places_of(self.rules, observe_as)
        self.render_mode = _choice("render_mode", render_mode, (None, *RENDER_MODES))
        self.viewer: int | None = None
        self._display = Display(self.metadata["render_fps"])
        self._make_spaces()
        self.games = new_games(self.rules, 0)
        self._seeded = False
        self._out = np.zeros((2, self._size), np.uint8)
        self._seat = -1  # of the observation in `_out`; no game yet
        self._paid: list[int] = []  # what the rewards so far come to, by seat, in 1/UNIT
        self._bind()

    def _make_spaces(self) -> None:
        self.possible_agents = [f"player_{p}" for p in range(self.rules.seats)]
        self.agents: list[str] = []
        self._seat_of = {agent: p for p, agent in enumerate(self.possible_agents)}
        self._size = layout_size(observation_layout(self.rules, self.places))
        state_size = layout_size(state_layout(self.rules, self.places))
        self.state_space = spaces.Box(0, 255, (state_size,), np.uint8)
        self.observation_spaces = {a: self._observation_space() for a in self.possible_agents}
        self.action_spaces = {a: spaces.Discrete(self.rules.actions) for a in self.possible_agents}

    def _observation_space(self) -> spaces.Dict:
        parts: dict[str, spaces.Space[Any]] = {
            "observation": spaces.Box(0, 255, (self._size,), np.uint8),
            "action_mask": spaces.Box(0, 1, (self.rules.actions,), np.int8),
        }
        if self.history:
            parts["history"] = spaces.Box(0, 255, (history_length(self.rules), 4), np.uint8)
        if self.belief:
            parts["belief"] = spaces.Box(0, 1, (self.places + 1, self.rules.tiles), np.float32)
        return spaces.Dict(parts)

    def _bind(self) -> None:
        """Make the views of `games` and `_out` that steps go through; a copy needs its own."""
        self.games = self.games.view(np.recarray)
        self._fast = fast(self.games)
        self._earned = self.games["earned"][0, : self.rules.seats]
        self._observation = self._out[0]
        self._mask = self._out[1, : self.rules.actions].view(np.int8)
        self._no_mask = np.zeros(self.rules.actions, np.int8)
        self._skip = self.forced == "skip"

    def __getstate__(self) -> dict[str, Any]:
        views = ("_fast", "_earned", "_observation", "_mask", "_no_mask")
        return {name: value for name, value in self.__dict__.items() if name not in views}

    def __copy__(self) -> raw_env:
        """A copy with a game of its own; one that shared it would spoil both."""
        return copy.deepcopy(self)

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._bind()

    def observation_space(self, agent: str) -> spaces.Space[Any]:
        """The space of an agent's observations, the same object each call."""
        return self.observation_spaces[agent]

    def action_space(self, agent: str) -> spaces.Space[Any]:
        """The space of an agent's actions, the same object each call."""
        return self.action_spaces[agent]

    # ------------------------------------------------------------ episodes

    def reset(self, seed: int | None = None, options: Mapping[str, Any] | None = None) -> None:
        """Begin a new episode, of a given deal where `options` has one.

        Raises `RulesError` on a bad deal and `ValueError` on a bad seed, with nothing changed.
        """
        on = seed is None and self._seeded  # from where the random state stands
        games = self.games.copy() if on else new_game(self.rules, seed)
        deal = _given_deal(options)
        if deal is None:
            reset_game(fast(games))
        else:
            set_deal(games, 0, self.rules, *deal)
        self.games[:] = games
        self._seeded = True
        self._begin()

    def _begin(self) -> None:
        self.agents = self.possible_agents[:]
        self._skip_agent_selection = None
        self.terminations = dict.fromkeys(self.agents, False)
        self.truncations = dict.fromkeys(self.agents, False)
        self._cumulative_rewards = dict.fromkeys(self.agents, 0.0)
        status = look_at_game(self._fast, self._skip, self.places, self._out)
        # Points that forced moves before the first question have earned come with the first step.
        self._paid = [0] * self.rules.seats
        self.rewards = dict.fromkeys(self.agents, 0.0)
        self._take(status)

    def step(self, action: int | None) -> None:
        """Make a move of the seat to move: an integer, or None for an agent that is dead.

        Raises `IllegalMove`, with nothing changed, if the action is not legal.
        """
        agent = self._selected()
        if self.terminations[agent] or self.truncations[agent]:
            self._was_dead_step(action)
            return
        number = self.action_number(action)
        status = step_game(self._fast, number, self._skip, self.places, self._out)
        if status == ILLEGAL:
            check_legal(self.games, number)  # raises, with the legal moves
        self._cumulative_rewards[agent] = 0.0
        self._pay()
        self._take(status)

    def _selected(self) -> str:
        if not self.agents:
            state = "over" if self._seeded else "not yet begun"
            raise ResetNeeded(f"step: the game is {state}, expected reset() first")
        return self.agent_selection

    def action_number(self, action: Any) -> int:
        """The action as a Python integer; `IllegalMove` if it is no integer or out of range."""
        last = self.rules.actions - 1
        try:
            number = -1 if isinstance(action, bool) else operator.index(action)
        except TypeError:
            number = -1
        if not 0 <= number <= last:
            raise IllegalMove(
                f"action: found {shown(action)}, expected an integer from 0 to {last}"
            )
        return number

    def _pay(self) -> None:
        """Give the rewards that have been earned since the last step."""
        earned = self._earned.tolist()
        if earned == self._paid:
            self.rewards = dict.fromkeys(self.agents, 0.0)
            return
        gains = zip(self.agents, earned, self._paid, strict=True)
        self.rewards = {agent: (now - before) / UNIT for agent, now, before in gains}
        self._paid = earned
        self._accumulate_rewards()

    def _take(self, status: int) -> None:
        """Take over whose turn it is, whether the episode is over, and the mask.

        Everything handed out is new, so that nobody's copy changes later.
        """
        over = status >> 2
        self._seat = status & 3
        self.agent_selection = self.possible_agents[self._seat]
        self.infos = {agent: {"action_mask": self._no_mask.copy()} for agent in self.agents}
        if over:
            self.terminations = dict.fromkeys(self.agents, over == TERMINATED)
            self.truncations = dict.fromkeys(self.agents, over == TRUNCATED)
        else:
            self.infos[self.agent_selection]["action_mask"] = self._mask.copy()
        if self.render_mode == "human":
            self.render()

    def _deads_step_first(self) -> str:
        """PettingZoo's illegal-move wrapper calls this when it has ended the game: it is over."""
        self.games["over"] = TERMINATED
        self.games["end"] = OUT  # so that nothing is legal any more
        self._take(look_at_game(self._fast, self._skip, self.places, self._out))
        return super()._deads_step_first()

    # ------------------------------------------------------------ what there is to see

    def observe(self, agent: str) -> Observation:
        """What an agent may know now, as in its space; all new arrays."""
        seat = self._seat_of.get(agent, -1)
        if seat == self._seat >= 0:
            observed = {"observation": self._observation.copy(), "action_mask": self._mask.copy()}
        else:
            self._check_observer(agent)
            observed = {
                "observation": self._look(seat, False, self._size),
                "action_mask": self._no_mask.copy(),
            }
        if self.history:
            rows = np.empty((1, history_length(self.rules), 4), np.uint8)
            history_each(self._fast, np.array([seat]), rows)
            observed["history"] = rows[0]
        if self.belief:
            from domino_env.worlds import belief

            observed["belief"] = belief(self._fast, seat, self.places)[0]
        return observed

    def _check_observer(self, agent: Any) -> None:
        if agent not in self._seat_of:
            expected = f"{self.possible_agents[0]} to {self.possible_agents[-1]}"
            raise ValueError(f"agent: found {agent!r}, expected {expected}")
        if self._seat < 0:
            raise ResetNeeded("observe: there is no game yet, expected reset() first")

    def _look(self, seat: int, whole: bool, size: int) -> np.ndarray:
        out = np.empty((1, size), np.uint8)
        observe_each(self._fast, np.array([seat]), self.places, whole, out)
        return out[0]

    def state(self) -> np.ndarray:
        """The whole game, uint8 [S], as the seat to move numbers it (at the end, the last one)."""
        if self._seat < 0:
            raise ResetNeeded("state: there is no game yet, expected reset() first")
        return self._look(self._seat, True, self.state_space.shape[0])

    def render(self) -> str | np.ndarray | None:
        """The table: text for `ansi`, uint8 [H, W, 3] for `rgb_array`, a window for `human`."""
        if self.render_mode is None:
            gymnasium.logger.warn("render: render_mode is None, expected one of the constructor")
            return None
        if self._seat < 0:
            raise ResetNeeded("render: there is no game yet, expected reset() first")
        return self._display.draw(self.render_mode, self.games, self.viewer or 0, self._shown())

    def _shown(self) -> range | list[int]:
        """The seats whose hands are rendered face up: one, and all at the end."""
        if int(self.games[0].over) != NOT_OVER:
            return range(self.rules.seats)
        return [self._seat if self.viewer is None else self.viewer]

    def close(self) -> None:
        """Close the window, if one is open."""
        self._display.close()


def _choice(name: str, value: Any, choices: tuple[Any, ...]) -> Any:
    if value not in choices:
        raise ValueError(f"{name}: found {value!r}, expected {' or '.join(map(str, choices))}")
    return value


def _given_deal(options: Any) -> tuple[Any, Any, Any] | None:
    """Hands, boneyard and leader of `options`; None where it deals nothing."""
    if options is None:
        return None
    if not isinstance(options, Mapping):
        raise RulesError(f"options: found {type(options).__name__}, expected a mapping or None")
    hands, boneyard, leader = (options.get(name) for name in ("hands", "boneyard", "leader"))
    if hands is None and boneyard is None and leader is None:
        return None
    for name, value in (("hands", hands), ("boneyard", boneyard)):
        if value is None:
            raise RulesError(f"{name}: missing in options, expected hands and boneyard together")
    return hands, boneyard, leader
