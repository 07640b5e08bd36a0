"""`DominoVec`: each row is the game of its own seed, whatever lies beside it."""

import copy
import random
import threading
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from batches import choose, same
from oracle import Oracle
from support import (
    Table,
    history_of,
    mask_of,
    move_of,
    observed,
    random_rules,
    state_of,
    tiles_in,
)

from domino_env import engine
from domino_env.errors import IllegalMove
from domino_env.observation import history_length, layout_size, observation_layout, state_layout
from domino_env.rules import Rules
from domino_env.vector import FINAL_FIELDS, SHARED_CHECK, Batch, DominoVec

SEATS = [(2, False), (3, False), (4, False), (4, True)]
PRESETS = ["cabra", "sin_robo", "estandar", "sin_robo_series", "estandar_series"]
HERE = threading.current_thread()
ALL_FORCED = {"preset": "sin_robo", "hand_size": 1, "lead": "seat", "set": 2}  # the lead ends it


class Row:
    """What a row has to do, with the reference beside it; forced moves are made by hand."""

    def __init__(self, rules: dict[str, Any], seed: int, skip: bool) -> None:
        self.table, self.skip = Table(rules, seed), skip
        self.final: tuple[list[Fraction], list[int], int] | None = None
        self.begin()

    def begin(self) -> None:
        """The deal is made; forced moves up to the first choice."""
        self.asked = False
        self.given = [Fraction(0)] * self.table.rules.seats  # of this episode, so far
        self.skip_forced()

    def skip_forced(self) -> None:
        oracle = self.table.oracle
        while oracle.over is None:
            if oracle.end is not None:
                self.table.next_round()
            elif not self.skip or len(oracle.legal()) > 1 or self.is_last_to_ask():
                self.asked = self.skip
                return
            else:
                self.table.play(oracle.legal()[0])

    def is_last_to_ask(self) -> bool:
        """The only move would end an episode in which nobody has been asked."""
        after = copy.deepcopy(self.table.oracle)
        after.play(after.legal()[0])
        return not self.asked and after.over is not None

    def step(self, action: int, autoreset: bool) -> tuple[list[Fraction], str | None]:
        """The rewards of this step, and how the episode ended."""
        table, oracle = self.table, self.table.oracle
        if oracle.over is not None:
            return [Fraction(0)] * table.rules.seats, oracle.over
        table.play(move_of(action, table.rules.tiles, not oracle.ends))
        self.skip_forced()
        reward = self.take()
        if oracle.over is not None:
            sides, seats = len(oracle.sides), table.rules.seats
            scores = [oracle.scores[p % sides] for p in range(seats)]
            self.final = oracle.rewards, scores, int(table.g.moves)
            if autoreset:
                engine.reset(table.g)
                table.oracle = Oracle(oracle.given)
                table._deal()
                self.begin()
                reward = [a + b for a, b in zip(reward, self.take(), strict=True)]
        return reward, oracle.over

    def take(self) -> list[Fraction]:
        """What has been earned since this was last asked."""
        before, self.given = self.given, list(self.table.oracle.rewards)
        return [b - a for a, b in zip(before, self.given, strict=True)]

    def record(self) -> bytes:
        self.table.g.asked = self.asked
        return self.table.games.tobytes()


def check_row(batch: Batch, vec: DominoVec, i: int, row: Row) -> None:
    """The record and all that is seen of it."""
    games: Any = vec.games[i : i + 1]
    rules, seat = vec.rules, int(row.table.g.seat)
    assert games.tobytes() == row.record()
    assert int(batch.seat[i]) == seat
    assert np.array_equal(batch.mask[i], mask_of(games, rules))
    assert np.array_equal(batch.observation[i], observed(games, rules, seat, vec.places))
    assert np.array_equal(batch.state[i], state_of(games, rules, seat, vec.places))
    assert np.array_equal(batch.history[i], history_of(games, rules, seat))


def check_outcome(batch: Batch, i: int, row: Row, reward: list[Fraction], over: Any) -> None:
    """The reward of a step, how the episode ended, and what is kept of the last one."""
    assert batch.reward[i].tolist() == [np.float32(float(r)) for r in reward]
    ended = (bool(batch.terminated[i]), bool(batch.truncated[i]), bool(batch.done[i]))
    assert ended == (over == "terminated", over == "truncated", over is not None)
    seats = row.table.rules.seats
    total, scores, length = row.final or ([Fraction(0)] * seats, [0] * seats, 0)
    assert batch.final_reward[i].tolist() == [np.float32(float(r)) for r in total]
    assert batch.final_scores[i].tolist() == scores
    assert int(batch.final_length[i]) == length


# ---------------------------------------------------------------- against the reference


@pytest.mark.parametrize("seed", range(24))
def test_every_step_of_every_row_is_that_of_the_reference(seed: int) -> None:
    rng = random.Random(seed)
    rules, first = random_rules(rng), rng.getrandbits(62)
    skip, autoreset, threads = rng.random() < 0.6, rng.random() < 0.7, rng.randint(1, 3)
    places = rng.choice([None, 4])
    vec = DominoVec(
        4,
        rules,
        seed=first,
        forced="skip" if skip else "step",
        autoreset=autoreset,
        threads=threads,
        history=True,
        state=True,
        observe_as=places,
    )
    try:
        rows = [Row(rules, first + i, skip) for i in range(4)]
        batch, choice = vec.reset(), np.random.default_rng(seed)
        for i, row in enumerate(rows):
            check_row(batch, vec, i, row)
            check_outcome(batch, i, row, row.take(), None)
        for _ in range(60):
            actions = choose(batch, choice)
            batch = vec.step(actions)
            for i, row in enumerate(rows):
                outcome = row.step(int(actions[i]), autoreset)
                check_row(batch, vec, i, row)
                check_outcome(batch, i, row, *outcome)
    except Exception as error:
        error.add_note(f"seed {seed}, {rules}, {skip=}, {autoreset=}, {threads=}, {places=}")
        raise


@pytest.mark.parametrize("forced", ["step", "skip"])
@pytest.mark.parametrize(("seats", "teams"), SEATS)
@pytest.mark.parametrize("preset", PRESETS)
def test_every_preset_plays_episodes_whose_rewards_add_up(
    preset: str, seats: int, teams: bool, forced: Any
) -> None:
    vec = DominoVec(16, preset, seed=5, seats=seats, teams=teams, forced=forced)
    batch, rng = vec.reset(), np.random.default_rng(5)
    total, episodes = np.zeros_like(batch.reward), 0
    for _ in range(1500 if "series" in preset or preset == "cabra" else 200):
        assert batch.mask.any(axis=1).all()
        batch = vec.step(choose(batch, rng))
        total += batch.reward
        assert np.abs(batch.reward.sum(axis=1)).max() < 1e-6
        done = batch.done
        assert np.allclose(total[done], batch.final_reward[done], atol=1e-6)
        assert (batch.final_length[done] > 0).all()
        total[done] = 0
        episodes += int(done.sum())
    assert episodes >= 16
    assert batch.final_scores.any() == (vec.rules.score != "none")
    if teams:
        for array in (batch.final_reward, batch.final_scores):
            assert np.array_equal(array[:, :2], array[:, 2:])


def test_a_match_that_is_truncated_says_so_and_keeps_its_scores() -> None:
    vec = DominoVec(8, "sin_robo_series", seed=2, max_rounds=2, target=100_000)
    batch, rng = vec.reset(), np.random.default_rng(2)
    while not batch.done.any():
        batch = vec.step(choose(batch, rng))
    assert np.array_equal(batch.truncated, batch.done)
    assert not batch.terminated.any()
    assert (batch.final_scores[batch.done].sum(axis=1) > 0).any()
    assert not batch.final_reward.any()
    assert (vec.games["round_number"][batch.done] == 0).all()  # dealt anew


# ---------------------------------------------------------------- rows


def test_row_i_is_row_0_of_the_next_seed() -> None:
    vec = DominoVec(3, "cabra", seed=2**64 - 1, seats=3)
    singles = [DominoVec(1, "cabra", seed=seed, seats=3) for seed in (2**64 - 1, 0, 1)]
    batch, alone = vec.reset(), [single.reset() for single in singles]
    rng = np.random.default_rng(0)
    for _ in range(200):
        assert all(same(batch, one, slice(i, i + 1)) for i, one in enumerate(alone))
        actions = choose(batch, rng)
        batch = vec.step(actions)
        alone = [s.step(actions[i : i + 1]) for i, s in enumerate(singles)]


def test_a_finished_row_stays_as_it_is_under_any_action() -> None:
    vec = DominoVec(6, "estandar", seed=1, autoreset=False, forced="step")
    batch, rng = vec.reset(), np.random.default_rng(1)
    while not batch.done.all():
        before, games = batch, vec.games.copy()
        actions = choose(batch, rng)
        actions[batch.done] = rng.integers(-(2**62), 2**62, int(batch.done.sum()))
        batch = vec.step(actions)
        over = before.done
        assert games[over].tobytes() == vec.games[over].tobytes()
        assert batch.done[over].all()
        assert not batch.mask[over].any()
        assert not batch.reward[over].any()
        assert np.array_equal(batch.observation[over], before.observation[over])
        assert np.array_equal(batch.seat[over], before.seat[over])
        assert np.array_equal(batch.final_reward[over], before.final_reward[over])
    assert np.array_equal(batch.final_reward, vec.games["earned"][:, :2] / np.float32(6))
    assert not vec.reset().done.any()


@pytest.mark.parametrize("threads", [2, 3, 64])
def test_threads_change_nothing(threads: int) -> None:
    one = DominoVec(7, "cabra", seed=3, seats=4, history=True, belief=True)
    many = DominoVec(7, "cabra", seed=3, seats=4, history=True, belief=True, threads=threads)
    a, b, rng = one.reset(), many.reset(), np.random.default_rng(3)
    for _ in range(150):
        assert same(a, b)
        actions = choose(a, rng)
        a, b = one.step(actions), many.step(actions)
    with pytest.raises(IllegalMove, match=r"illegal in 7 of 7 rows"):
        many.step(np.full(7, -1))


def test_many_rows_are_checked_by_all_threads() -> None:
    vec = DominoVec(SHARED_CHECK, "cabra", seed=3, threads=3)
    actions = vec.reset().mask.argmax(axis=1)
    for row in (0, SHARED_CHECK // 2, SHARED_CHECK - 1):
        bad = actions.copy()
        bad[row] = -1
        with pytest.raises(IllegalMove, match=rf"illegal in 1 of 4096 rows \({row}\)"):
            vec.step(bad)
    assert not vec.step(actions).mask[0].all()


def test_an_episode_in_which_all_is_forced_still_has_a_step() -> None:
    vec = DominoVec(5, ALL_FORCED, seed=0)
    batch = vec.reset()
    for _ in range(4):
        assert not batch.mask[:, -3:].any()
        assert (batch.mask.sum(axis=1) == 1).all()
        batch = vec.step(batch.mask.argmax(axis=1))
        assert batch.done.all()
        assert batch.reward.tolist() == [[1, -1]] * 5
        assert batch.final_length.tolist() == [1] * 5


def test_what_forced_moves_earn_before_the_first_choice_is_in_the_reward() -> None:
    # Seat 0 leads its only tile and is out: it writes the pips of the other hand, three times.
    rules = ALL_FORCED | {"preset": "sin_robo_series", "reward": "points", "target": 10**6}
    vec = DominoVec(3, rules, seed=0, max_rounds=3)
    deals = engine.new_games(vec.rules, np.arange(3))

    def worth(rounds: int) -> np.ndarray:
        points = np.zeros(3)
        for i in range(3):
            for _ in range(rounds):
                engine.reset(deals[i])
                points[i] += sum(sum(tile) for tile in tiles_in(deals[i].hands[1]))
        return points

    batch, first = vec.reset(), worth(2)
    assert batch.reward[:, 0].tolist() == first.tolist()
    for _ in range(3):
        last, begun = worth(1), worth(2)  # the third round, and two of the next match
        batch = vec.step(batch.mask.argmax(axis=1))
        assert batch.truncated.all()
        assert batch.reward[:, 0].tolist() == (last + begun).tolist()
        assert batch.final_reward[:, 1].tolist() == (-first - last).tolist()
        first = begun
    worth(1)  # the third round of this match lies dealt, and is not played
    assert vec.reset().reward[:, 0].tolist() == worth(2).tolist()


# ---------------------------------------------------------------- reset, seeds, switches


def test_a_reset_without_a_seed_goes_on_and_with_one_begins_again() -> None:
    vec = DominoVec(4, "sin_robo", seed=8)
    first = vec.reset()
    second = vec.reset()
    assert not same(first, second)
    assert same(first, vec.reset(seed=8))
    assert same(second, vec.reset())
    assert not same(first, DominoVec(4, "sin_robo").reset())  # by chance


def test_a_reset_clears_what_was_kept_of_the_last_episodes() -> None:
    vec = DominoVec(4, ALL_FORCED, seed=8)
    batch = vec.reset()
    assert vec.step(batch.mask.argmax(axis=1)).final_length.all()
    batch = vec.reset()
    assert not any(getattr(batch, name).any() for name in FINAL_FIELDS)


def test_looking_moves_nothing_and_rewards_nothing() -> None:
    vec = DominoVec(4, ALL_FORCED, seed=8)
    batch = vec.step(vec.reset().mask.argmax(axis=1))
    games = vec.games.tobytes()
    current = vec.current()
    assert vec.games.tobytes() == games
    assert not current.reward.any()
    assert not current.done.any()
    for name in ("observation", "mask", "seat", *FINAL_FIELDS):
        assert np.array_equal(getattr(current, name), getattr(batch, name))


def test_shapes_and_dtypes_are_those_that_were_asked_for() -> None:
    rules = Rules.preset("cabra", seats=3)
    vec = DominoVec(2, rules, seed=0, history=True, state=True, observe_as=4)
    batch = vec.reset()
    D, S = layout_size(observation_layout(rules, 4)), layout_size(state_layout(rules, 4))
    assert vec.layout == observation_layout(rules, 4)
    assert (batch.observation.shape, batch.state.shape) == ((2, D), (2, S))
    assert batch.history.shape == (2, history_length(rules), 4)
    assert batch.mask.shape == (2, 59)
    assert (batch.mask.dtype, batch.seat.dtype) == (np.int8, np.int8)
    assert (batch.reward.shape, batch.reward.dtype) == ((2, 3), np.float32)
    bare = DominoVec(2, rules, seed=0, observation=False).reset()
    assert (bare.observation.shape, bare.state.shape) == ((2, 0), (2, 0))
    assert np.array_equal(bare.mask, batch.mask)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"num_games": 0}, "num_games: found 0, expected an integer of at least 1"),
        ({"num_games": 2.0}, "num_games: found 2.0"),
        ({"num_games": True}, "num_games: found True"),
        ({"threads": 0}, "threads: found 0"),
        ({"seed": -1}, "seed: found -1, expected an integer of at least 0"),
        ({"seed": 1.5}, "seed: found 1.5"),
        ({"forced": "never"}, "forced: found 'never', expected 'skip' or 'step'"),
        ({"observe_as": 1}, "observe_as: found 1, expected 2 to 4"),
        ({"seets": 3}, "did you mean seats?"),
    ],
)
def test_a_bad_argument_is_named(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError) as error:  # noqa: PT011
        DominoVec(**{"num_games": 2, **fields})
    assert message in str(error.value)
    assert "\n" not in str(error.value)


# ---------------------------------------------------------------- illegal actions


def test_an_illegal_action_names_its_rows_and_nothing_has_moved() -> None:
    vec = DominoVec(12, "sin_robo", seed=4, lead="seat", forced="step")
    batch = vec.reset()
    actions = batch.mask.argmax(axis=1)
    actions[[3, 11]] = 56  # draw, where nobody ever draws
    before = vec.games.tobytes()
    legal = np.flatnonzero(batch.mask[3]).tolist()
    with pytest.raises(IllegalMove) as error:
        vec.step(actions)
    assert str(error.value) == (
        f"actions: illegal in 2 of 12 rows (3, 11); row 3: found 56, expected one of {legal}"
    )
    assert vec.games.tobytes() == before
    with pytest.raises(IllegalMove, match=r"12 of 12 rows \(0, 1, 2, 3, 4, 5, 6, 7, \.\.\.\); "):
        vec.step(np.full(12, 2**62))


BAD_ACTIONS: list[Any] = [
    *(np.array([value, value]) for value in (np.nan, 3.0, True, "6-6", None, 1j)),
    *(np.zeros(3, int), np.zeros((2, 1), int), np.int64(0), 5, []),
    *(np.array([-1, -1]), np.array([59, 59]), np.array([2**63, 2**63], np.uint64)),
]


@pytest.mark.parametrize("actions", BAD_ACTIONS)
def test_actions_of_a_wrong_kind_are_one_clear_error(actions: Any) -> None:
    vec = DominoVec(2, "cabra", seed=4)
    vec.reset()
    before = vec.games.tobytes()
    with pytest.raises(IllegalMove, match=r"^actions: [^\n]+ expected [^\n]+$"):
        vec.step(actions)
    assert vec.games.tobytes() == before


def test_a_step_before_the_first_reset_asks_for_it() -> None:
    for actions in ([0, 0], [57, 57]):
        with pytest.raises(IllegalMove, match=r"row 0 has not been dealt, .* call of reset first"):
            DominoVec(2, "cabra", seed=4).step(np.array(actions))


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int32, np.uint64, ">i4"])
def test_actions_may_be_integers_of_any_size(dtype: Any) -> None:
    vec, twin = DominoVec(8, "cabra", seed=4), DominoVec(8, "cabra", seed=4)
    actions = vec.reset().mask.argmax(axis=1)
    twin.reset()
    strided = np.repeat(actions.astype(dtype), 2)[::2]
    assert same(vec.step(actions), twin.step(strided))
    assert vec.games.tobytes() == twin.games.tobytes()
