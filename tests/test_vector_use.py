"""`DominoVec` in use: arrays of the caller, copies, threads."""

import copy
import gc
import pickle
import threading
from typing import Any

import numpy as np
import pytest
import torch
from batches import choose, same

from domino_env.observation import layout_size
from domino_env.vector import BATCH_FIELDS, Batch, DominoVec
from domino_env.workers import Workers

HERE = threading.current_thread()


# ---------------------------------------------------------------- arrays of the caller


def test_a_step_writes_into_the_arrays_of_the_caller() -> None:
    K, B = 20, 6
    vec, twin = (DominoVec(B, "estandar", seed=6) for _ in range(2))
    D = layout_size(vec.layout)
    storage = np.zeros((K + 1, B, D), np.uint8)
    masks = torch.zeros((K + 1, B, vec.rules.actions), dtype=torch.int8)
    rng = np.random.default_rng(6)
    batch = expected = twin.reset()
    for k in range(K + 1):
        out = vec.new_batch(observation=storage[k], mask=masks[k].numpy())
        if k == 0:
            batch = vec.reset(out=out)
        else:
            actions = choose(expected, rng)
            expected = twin.step(actions)
            batch = vec.step(actions, out=out)
        assert batch is out
        assert np.shares_memory(batch.observation, storage[k])
        assert same(batch, expected)
        assert np.array_equal(masks[k].numpy(), expected.mask)
    assert len({row.tobytes() for row in storage}) > K // 2  # earlier steps are still there


def test_without_out_each_step_has_arrays_of_its_own() -> None:
    vec = DominoVec(3, "cabra", seed=6)
    first = vec.reset()
    kept = copy.deepcopy(first)
    second = vec.step(first.mask.argmax(axis=1))
    assert same(first, kept)
    assert not any(
        np.shares_memory(getattr(first, name), getattr(second, name)) for name in BATCH_FIELDS
    )


def test_the_rows_beside_the_written_ones_are_left_alone() -> None:
    vec = DominoVec(3, "cabra", seed=6, state=True, history=True, belief=True)
    whole = {name: np.full((9, *shape[1:]), 77, dtype) for name, (shape, dtype) in shapes(vec)}
    vec.reset(out=Batch(**{name: array[3:6] for name, array in whole.items()}))
    for name, array in whole.items():
        rest = np.delete(array, slice(3, 6), axis=0)
        assert (rest == np.full_like(rest, 77)).all(), name


def shapes(vec: DominoVec) -> list[tuple[str, tuple[tuple[int, ...], Any]]]:
    batch = vec.current()
    return [(f, (getattr(batch, f).shape, getattr(batch, f).dtype)) for f in BATCH_FIELDS]


@pytest.mark.parametrize("name", BATCH_FIELDS)
def test_an_array_that_does_not_fit_is_one_clear_error(name: str) -> None:
    vec = DominoVec(4, "cabra", seed=6, state=True, history=True, belief=True)
    vec.step(vec.reset().mask.argmax(axis=1), out=vec.new_batch())
    good, before = getattr(vec.current(), name), vec.games.tobytes()
    read_only = good.copy()
    read_only.flags.writeable = False
    bad = [good[:-1], good.astype(np.float64), np.repeat(good, 2, axis=0)[::2], read_only]
    for array in [*bad, good.tolist(), None]:
        out = vec.new_batch()
        setattr(out, name, array)
        for call in (vec.current, vec.reset, lambda out: vec.reset(seed=1, out=out)):
            with pytest.raises(ValueError, match=rf"^out\.{name}: found [^\n]+, expected [^\n]+$"):
                call(out=out)
        with pytest.raises(ValueError, match=rf"^out\.{name}: "):
            vec.step(vec.current().mask.argmax(axis=1), out=out)
        assert vec.games.tobytes() == before
    with pytest.raises(ValueError, match="out: found dict, expected a Batch"):
        vec.current(out={})  # type: ignore[arg-type]


# ---------------------------------------------------------------- copies


@pytest.mark.parametrize("threads", [1, 2])
def test_copies_go_on_alike_and_apart(threads: int) -> None:
    vec = DominoVec(5, "cabra", seed=9, threads=threads, episode="round")
    batch, rng = vec.reset(), np.random.default_rng(9)
    for _ in range(30):
        batch = vec.step(choose(batch, rng))
    saved = vec.save()
    other = DominoVec(5, "cabra", seed=77, threads=threads, episode="round")
    loaded = other.load(saved)
    assert np.array_equal(loaded.observation, batch.observation)
    copies = [vec.copy(), copy.deepcopy(vec), pickle.loads(pickle.dumps(vec)), other]
    for _ in range(60):
        actions = choose(batch, rng)
        batch = vec.step(actions)
        assert batch.final_length.all()  # kept from before the copy
        for twin in copies:
            assert same(twin.step(actions), batch)
    before = [twin.games.tobytes() for twin in copies]
    vec.step(choose(batch, rng))
    assert [twin.games.tobytes() for twin in copies] == before
    assert vec.load(saved).final_reward.tolist() == other.load(saved).final_reward.tolist()


# ---------------------------------------------------------------- threads


def test_each_part_of_a_call_has_its_result_and_only_the_first_runs_here() -> None:
    workers = Workers(2)
    names = workers.run(lambda k: (k, threading.current_thread() is HERE), [(0,), (1,), (2,)])
    assert names == [(0, True), (1, False), (2, False)]
    assert workers.run(int, [("7",), ("8",)]) == [7, 8]
    assert workers.run(int, [("7",)]) == [7]


def test_an_error_of_any_part_reaches_the_caller_and_the_next_call_goes_well() -> None:
    workers = Workers(2)
    for parts in ([("x",), ("8",), ("9",)], [("7",), ("x",), ("9",)], [("7",), ("8",), ("x",)]):
        with pytest.raises(ValueError, match="'x'"):
            workers.run(int, parts)
        assert workers.run(int, [("1",), ("2",), ("3",)]) == [1, 2, 3]


def test_threads_end_with_their_batch() -> None:
    before = set(threading.enumerate())
    vec = DominoVec(4, "cabra", seed=0, threads=3)
    twin = vec.copy()
    own = set(threading.enumerate()) - before
    assert len(own) == 4
    del vec, twin
    gc.collect()
    for thread in own:
        thread.join(timeout=10)
        assert not thread.is_alive()


def test_a_shallow_copy_has_games_of_its_own():
    vec = DominoVec(3, "sin_robo", seed=1)
    batch = vec.reset()
    before = vec.games.tobytes()
    other = copy.copy(vec)
    other.step(batch.mask.argmax(1))
    assert vec.games.tobytes() == before != other.games.tobytes()
