"""`DominoVec`: many games of one `Rules` at once, one array of records and one compiled loop.

    vec = DominoVec(4096, rules="sin_robo", seed=0)
    batch = vec.reset()
    while True:
        batch = vec.step(choose(batch.observation, batch.mask))

Shapes: `B` games, `P` seats, `T` tiles, `A` actions, `D` observation length, `H` rows of history.
"""

from __future__ import annotations

import copy
import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from itertools import pairwise
from operator import attrgetter, is_
from typing import Any, Literal, Self

import numpy as np

from domino_env.compiled import jit
from domino_env.engine import advance, is_legal, reset, skip_forced
from domino_env.errors import IllegalMove
from domino_env.observation import (
    history,
    history_length,
    layout_size,
    mask,
    observation_layout,
    observe,
    places_of,
    state,
    state_layout,
)
from domino_env.rules import Rules
from domino_env.saved import pack, unpack
from domino_env.scoring import side_count
from domino_env.state import (
    GAME,
    NOT_OVER,
    TERMINATED,
    TRUNCATED,
    UNIT,
    Record,
    new_games,
    seed_games,
)
from domino_env.workers import Workers


@dataclass
class Batch:
    """What a step gives, an array a field; parts that are switched off have length 0.

    `reward` is all that was earned in this step, in the episode that it ended too; the `final_`
    arrays tell of the last finished episode of the row, zero before there is one.
    """

    observation: np.ndarray  # uint8 [B, D], of the seat to move now
    mask: np.ndarray  # int8 [B, A], its legal actions; all zero in a finished row
    seat: np.ndarray  # int8 [B], the seat to move; in a finished row, the one that moved last
    reward: np.ndarray  # float32 [B, P], by absolute seat
    terminated: np.ndarray  # bool [B]
    truncated: np.ndarray  # bool [B], ended by `max_rounds`
    done: np.ndarray  # bool [B], either of them
    final_reward: np.ndarray  # float32 [B, P], the sum over that episode
    final_scores: np.ndarray  # int32 [B, P], points on the record, a team's for both partners
    final_length: np.ndarray  # int32 [B], its moves, forced ones too
    history: np.ndarray  # uint8 [B, H, 4]
    state: np.ndarray  # uint8 [B, S], numbered from the seat to move
    belief: np.ndarray  # float32 [B, P + 1, T], P as in the observation; finished rows have it too


BATCH_FIELDS = tuple(field.name for field in fields(Batch))
_arrays_of = attrgetter(*BATCH_FIELDS)
SHARED_CHECK = 4096  # with fewer games, threads take longer to begin than the check of all takes
FINAL_FIELDS = ("final_reward", "final_scores", "final_length")


class DominoVec:
    """`num_games` games of the same rules, stepped together.

    Game i of a batch with seed s is the game of seed s + i. With `forced="skip"` the environment
    makes every move that is the only legal one; `"step"` asks for each. With `autoreset` a game
    that ends is dealt anew in the same step; without, a finished row is stepped with any action
    and stays as it is. `threads` share the rows between them, which pays from about 16,000 games:
    waking a thread takes as long as a thousand moves. `observation=False` leaves the observation
    out; `history`, `state` and `belief` (that of worlds.py, many times the work of a step) add
    theirs; `observe_as` is that of `observation_layout`. `rules` is a name, a mapping or `Rules`;
    `fields` override it.
    """

    def __init__(
        self,
        num_games: int,
        rules: str | Mapping[str, Any] | Rules = "cabra",
        *,
        seed: int | None = None,
        forced: Literal["skip", "step"] = "skip",
        autoreset: bool = True,
        threads: int = 1,
        observation: bool = True,
        history: bool = False,
        state: bool = False,
        belief: bool = False,
        observe_as: int | None = None,
        **fields: Any,
    ) -> None:
        self.rules = Rules.of(rules, **fields)
        self.num_games = _positive("num_games", num_games)
        self.threads = min(_positive("threads", threads), self.num_games)
        if forced not in ("skip", "step"):
            raise ValueError(f"forced: found {forced!r}, expected 'skip' or 'step'")
        self.forced = forced
        self.autoreset, self._believes = bool(autoreset), bool(belief)
        self.places = places_of(self.rules, observe_as)
        self.layout = observation_layout(self.rules, observe_as)
        self._shapes = self._batch_shapes(observation, history, state, belief)
        self._out_arrays: tuple[np.ndarray, ...] = ()  # the last ones that were found good
        self._workers = Workers(self.threads - 1)
        self._hold(new_games(self.rules, self._seeds(seed)))
        self._final = {name: np.zeros(*self._shapes[name]) for name in FINAL_FIELDS}

    @property
    def games(self) -> np.recarray:
        """The records of the games, dtype `GAME`, [B]."""
        return self._games

    def _hold(self, games: np.ndarray) -> None:
        self._games = games.view(np.recarray)
        # The same memory: Numba needs 4 microseconds to recognise a recarray, 0.3 for this.
        self._rows = games.view(GAME, np.ndarray)

    def _batch_shapes(
        self, observation: bool, history: bool, state: bool, belief: bool
    ) -> dict[str, Any]:
        B, P, A = self.num_games, self.rules.seats, self.rules.actions
        D = layout_size(self.layout) if observation else 0
        H = history_length(self.rules) if history else 0
        S = layout_size(state_layout(self.rules, self.places)) if state else 0
        return {
            "observation": ((B, D), np.uint8),
            "mask": ((B, A), np.int8),
            "seat": ((B,), np.int8),
            "reward": ((B, P), np.float32),
            **dict.fromkeys(("terminated", "truncated", "done"), ((B,), np.bool_)),
            "final_reward": ((B, P), np.float32),
            "final_scores": ((B, P), np.int32),
            "final_length": ((B,), np.int32),
            "history": ((B, H, 4), np.uint8),
            "state": ((B, S), np.uint8),
            "belief": ((B, self.places + 1 if belief else 0, self.rules.tiles), np.float32),
        }

    def _seeds(self, seed: int | None) -> np.ndarray:
        if seed is None:
            seed = secrets.randbits(63)
        if isinstance(seed, bool) or not isinstance(seed, int | np.integer) or seed < 0:
            raise ValueError(f"seed: found {seed!r}, expected an integer of at least 0")
        first = np.uint64(int(seed) % 2**64)
        return first + np.arange(self.num_games, dtype=np.uint64)

    def new_batch(self, **arrays: np.ndarray) -> Batch:
        """A `Batch` for `step(out=...)`, made of the given arrays, and of new ones for the rest."""
        made = {name: np.zeros(*self._shapes[name]) for name in BATCH_FIELDS if name not in arrays}
        batch = Batch(**{**made, **arrays})
        self._check_out(batch)
        return batch

    def reset(self, *, seed: int | None = None, out: Batch | None = None) -> Batch:
        """Begin a new episode in every row; without a seed the random states go on.

        The reward is what forced moves before the first choice earned, mostly nothing.
        """
        batch = self.new_batch() if out is None else out
        self._check_out(batch)
        if seed is not None:
            seed_games(self.games, self._seeds(seed))
        for array in self._final.values():
            array[:] = 0
        return self._run(None, True, batch)

    def step(self, actions: np.ndarray, out: Batch | None = None) -> Batch:
        """Make a move in every row: `actions`, integers [B].

        With `out` the result is written into its arrays, without a copy. Raises `IllegalMove`
        before any game has moved if an action is not legal in its row.
        """
        return self._run(self._checked(actions), False, out)

    def current(self, out: Batch | None = None) -> Batch:
        """The batch as it stands, with a reward of zero; nothing moves."""
        return self._run(None, False, out)

    def copy(self) -> Self:
        """An independent copy in the same state."""
        return copy.deepcopy(self)

    def save(self) -> bytes:
        """The state of all games; `load` on a `DominoVec` of the same rules and size goes on."""
        return pack(self._rows, self._final)

    def load(self, saved: bytes) -> Batch:
        """Go on from what `save` gave; returns `current()`.

        Raises `ValueError`, with nothing changed, if the bytes are no games of these rules.
        """
        games, self._final = unpack(saved, self.rules, self.num_games, self._final)
        self._hold(games)
        return self.current()

    __copy__ = copy  # a shallow one would share the games

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        new = object.__new__(type(self))
        new.__setstate__(copy.deepcopy(self.__getstate__(), memo))
        return new

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_rows": None, "_workers": None, "_out_arrays": ()}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._hold(self._games)
        self._workers = Workers(self.threads - 1)

    def _checked(self, actions: np.ndarray) -> np.ndarray:
        """The actions as contiguous int64 [B], all legal."""
        given = np.asarray(actions)
        if given.dtype.kind not in "iu" or given.shape != (self.num_games,):
            raise IllegalMove(
                f"actions: found {given.dtype} of shape {given.shape}, "
                f"expected integers of shape ({self.num_games},)"
            )
        actions = np.ascontiguousarray(given, dtype=np.int64)
        if self.num_games < SHARED_CHECK:
            first = first_illegal(0, self.num_games, self._rows, actions)
        else:
            first = min(self._share(first_illegal, self._rows, actions))
        if first < self.num_games:
            raise IllegalMove(self._tell_illegal(actions))
        return actions

    def _tell_illegal(self, actions: np.ndarray) -> str:
        live = self.games["over"] == NOT_OVER
        rows = [
            int(i) for i in np.flatnonzero(live) if not is_legal(self.games[i], int(actions[i]))
        ]
        shown = ", ".join(str(i) for i in rows[:8]) + (", ..." if len(rows) > 8 else "")
        row = rows[0]
        if not self._legal(row):
            return f"actions: row {row} has not been dealt, expected a call of reset first"
        return (
            f"actions: illegal in {len(rows)} of {self.num_games} rows ({shown}); row {row}: "
            f"found {actions[row]}, expected one of {self._legal(row)}"
        )

    def _legal(self, row: int) -> list[int]:
        game = self.games[row]
        return [a for a in range(self.rules.actions) if is_legal(game, a)]

    def _run(self, actions: np.ndarray | None, restart: bool, out: Batch | None) -> Batch:
        """Reset (`restart`), or step, or neither without `actions`; then write the batch."""
        batch = self.new_batch() if out is None else out
        arrays = self._check_out(batch)
        mode = _RESET if restart else _LOOK if actions is None else _STEP
        if actions is None:
            actions = np.zeros(self.num_games, np.int64)
        skip = self.forced == "skip"
        switches = mode, skip, self.autoreset, self.places
        self._share(run_rows, self._rows, actions, switches, *self._final.values(), *arrays[:-1])
        if self._believes:
            self._share(believe_rows, self._rows, self.places, batch.belief)
        return batch

    def _share(self, function: Callable[..., Any], *arguments: Any) -> list[Any]:
        """`function(lo, hi, *arguments)` over all rows, shared between the threads."""
        if self.threads == 1:
            return [function(0, self.num_games, *arguments)]
        cuts = [self.num_games * k // self.threads for k in range(self.threads + 1)]
        return self._workers.run(function, [(*cut, *arguments) for cut in pairwise(cuts)])

    def _check_out(self, batch: Batch) -> tuple[np.ndarray, ...]:
        """The arrays of a batch, of the right shape and dtype and contiguous."""
        if not isinstance(batch, Batch):
            raise ValueError(f"out: found {type(batch).__name__}, expected a Batch")
        arrays = _arrays_of(batch)
        if all(map(is_, arrays, self._out_arrays)) and self._out_arrays:
            return arrays
        for name, array in zip(BATCH_FIELDS, arrays, strict=True):
            shape, dtype = self._shapes[name]
            if not isinstance(array, np.ndarray):
                raise ValueError(f"out.{name}: found {type(array).__name__}, expected an array")
            good = array.shape == shape and array.dtype == dtype
            if not (good and array.flags.carray):
                raise ValueError(
                    f"out.{name}: found {array.dtype} {array.shape}, expected a contiguous "
                    f"writeable array of {np.dtype(dtype)} {shape}"
                )
        self._out_arrays = arrays
        return arrays


def _positive(name: str, value: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 1:
        raise ValueError(f"{name}: found {value!r}, expected an integer of at least 1")
    return int(value)


def believe_rows(lo: int, hi: int, games: np.ndarray, places: int, out: np.ndarray) -> None:
    """Write the beliefs of the seats to move (in a finished row, that moved last) to out[lo:hi]."""
    from domino_env.worlds import belief  # it takes its time, and most do without

    out[lo:hi] = belief(games[lo:hi], None, places)


# ---------------------------------------------------------------- the compiled loop

_RESET, _STEP, _LOOK = 0, 1, 2


@jit
def first_illegal(lo: int, hi: int, games: np.ndarray, actions: np.ndarray) -> int:
    """The first row whose action is not legal, or a number behind all rows; finished rows pass."""
    for i in range(lo, hi):
        if int(games[i].over) == NOT_OVER and not is_legal(games[i], actions[i]):
            return i
    return len(games)


@jit
def run_rows(
    lo: int,
    hi: int,
    games: np.ndarray,
    actions: np.ndarray,
    switches: tuple[int, bool, bool, int],
    kept_reward: np.ndarray,
    kept_scores: np.ndarray,
    kept_length: np.ndarray,
    out_observation: np.ndarray,
    out_mask: np.ndarray,
    out_seat: np.ndarray,
    out_reward: np.ndarray,
    out_terminated: np.ndarray,
    out_truncated: np.ndarray,
    out_done: np.ndarray,
    out_final_reward: np.ndarray,
    out_final_scores: np.ndarray,
    out_final_length: np.ndarray,
    out_history: np.ndarray,
    out_state: np.ndarray,
) -> None:
    """Reset, step or look at rows lo to hi, and write the batch, but for its beliefs."""
    mode, skip, autoreset, places = switches
    scratch = games[:1].copy()
    out_reward[lo:hi] = 0
    for i in range(lo, hi):
        g = games[i]
        before = int(g.earned[0]), int(g.earned[1]), int(g.earned[2]), int(g.earned[3])
        round_before = int(g.round_number)
        if mode == _RESET:
            begin_episode(games, i, skip, scratch)
            before = 0, 0, 0, 0
            round_before = 0
        elif mode == _STEP and int(g.over) == NOT_OVER:
            advance(g, actions[i])
            if skip:
                skip_forced(games, i, scratch)
            if int(g.over) != NOT_OVER:
                keep_final(g, i, kept_reward, kept_scores, kept_length)
        over = int(g.over)
        out_terminated[i] = over == TERMINATED
        out_truncated[i] = over == TRUNCATED
        out_done[i] = over != NOT_OVER
        if over != NOT_OVER or int(g.round_number) != round_before:
            add_reward(g, before, out_reward, i)
        if over != NOT_OVER and autoreset and mode != _LOOK:
            begin_episode(games, i, skip, scratch)
            if skip:
                add_reward(g, (0, 0, 0, 0), out_reward, i)
        out_seat[i] = g.seat
        mask(g, out_mask, i)
        if out_observation.shape[1] > 0:
            observe(g, int(g.seat), places, out_observation, i)
        if out_history.shape[1] > 0:
            history(g, int(g.seat), out_history, i)
        if out_state.shape[1] > 0:
            state(g, int(g.seat), places, out_state, i)
    out_final_reward[lo:hi] = kept_reward[lo:hi]
    out_final_scores[lo:hi] = kept_scores[lo:hi]
    out_final_length[lo:hi] = kept_length[lo:hi]


@jit
def begin_episode(games: np.ndarray, i: int, skip: bool, scratch: np.ndarray) -> None:
    """Deal row i anew, up to its first choice where forced moves are skipped."""
    reset(games[i])
    if skip:
        skip_forced(games, i, scratch)


@jit
def add_reward(g: Record, before: tuple[int, int, int, int], out: np.ndarray, row: int) -> None:
    """Add what has been earned since `before` to out[row]."""
    for p in range(out.shape[1]):
        out[row, p] += (int(g.earned[p]) - before[p]) / UNIT


@jit
def keep_final(
    g: Record, i: int, reward: np.ndarray, scores: np.ndarray, length: np.ndarray
) -> None:
    """Note what the episode that has just ended came to, before the row is dealt anew."""
    for p in range(reward.shape[1]):
        reward[i, p] = int(g.earned[p]) / UNIT
        scores[i, p] = g.scores[p % side_count(g)]
    length[i] = g.moves
