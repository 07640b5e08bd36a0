"""Checkpoints from anywhere: broken ones, hostile ones, and those of other runs."""

import json
import os
import pickle
from pathlib import Path
from typing import Any

import pytest
import torch
from learning import PREVIOUS, STATE, resumed, same_state, small, started
from safetensors import safe_open
from safetensors.torch import load_file, save, save_file

from agents import cli
from agents.checkpoint import FORMAT, gathered_games, tensors_of
from agents.ppo import Config, Learner
from agents.run import Run, RunError
from agents.training import resume

# ---------------------------------------------------------------- broken and hostile checkpoints


def checkpoint_of(path: Path) -> tuple[dict[str, Any], dict[str, torch.Tensor]]:
    """The numbers and tensors of a checkpoint."""
    with safe_open(path, framework="pt") as file:
        tensors = {name: tensor.clone() for name, tensor in load_file(path).items()}
        return json.loads(file.metadata()["state"]), tensors


def test_the_checkpoint_before_is_used_when_the_last_one_is_broken(tmp_path, capsys):
    config = small()
    started(tmp_path, config, 2)
    before = Learner(config)
    before.update()
    whole = (tmp_path / STATE).read_bytes()
    for content in (b"", whole[:1000], whole[:-1], os.urandom(1000), pickle.dumps({"a": 1})):
        (tmp_path / STATE).write_bytes(content)
        capsys.readouterr()
        assert same_state(resumed(tmp_path, config), before)
        err = capsys.readouterr().err
        assert err.startswith(f"{tmp_path}/{STATE}: cannot be read (")
        assert err.endswith("; going on from the checkpoint before it\n")
        assert err.count("\n") == 1
    (tmp_path / STATE).unlink()
    assert same_state(resumed(tmp_path, config), before)
    assert capsys.readouterr().err == ""  # killed between two renames: nothing is lost


def test_without_any_whole_checkpoint_there_is_one_line(tmp_path, capsys):
    started(tmp_path, small(), 2)
    (tmp_path / STATE).write_bytes(b"x" * 100)
    (tmp_path / PREVIOUS).write_bytes(b"")
    capsys.readouterr()
    assert cli.main(["train", "--resume", str(tmp_path)]) == 2
    err = capsys.readouterr().err
    assert err.count("\n") == 1
    assert err.startswith(f"domino: {tmp_path}/{STATE}: cannot be read (")
    assert f"; {tmp_path}/{PREVIOUS}: cannot be read (" in err


def hostile_numbers() -> list[tuple[str, Any]]:
    """Numbers that a checkpoint must not hold."""
    deep = json.loads("[" * 500 + "]" * 500)
    state = {"bit_generator": "PCG64", "has_uint32": 0, "uinteger": 0}
    return [
        ("updates", -10),
        ("updates", "many"),
        ("updates", 1.5),
        ("updates", 10**30),
        ("updates", 0),  # there would be no optimiser yet
        ("seconds", -1),
        ("decisions", None),
        ("random", {}),
        ("random", []),
        ("random", {"state": 3}),
        ("random", {**state, "state": {"state": "1", "inc": deep}}),
        ("random", {**state, "state": {"state": "1"}}),
        ("random", {**state, "state": {"state": "-1", "inc": "1"}}),
        ("random", {**state, "state": {"state": "9" * 10**4, "inc": "1"}}),
        ("random", {**state, "state": {"state": "9" * 60, "inc": "1"}}),
        ("random", {**state, "bit_generator": "MT19937", "state": {"state": "1", "inc": "1"}}),
        ("random", {**state, "uinteger": 10**30, "state": {"state": "1", "inc": "1"}}),
    ]


def hostile_opponents() -> list[tuple[str, Any]]:
    """Opponents that a run with one bot and one snapshot, numbers 0 and 1, cannot have."""
    return [
        ("won", [0.5]),
        ("won", [0.5, 0.5, 0.5]),
        ("won", [0.5, 1.5]),
        ("won", [0.5, -0.1]),
        ("won", [0.5, None]),
        ("snapshots", 0),
        ("snapshots", 2),
        ("snapshots", -1),
        ("snapshots", 10**9),
        ("opponents", []),
        ("opponents", [[1, 1, 1, 1, 0, 0, 0, 0]] * 2),
        ("opponents", [[1, 1, 1, 1, 0, 0, 0]]),
        ("opponents", [[1, 1, 1, 1, 0, 0, 0, 2]]),
        ("opponents", [[1, 1, 1, 1, 0, 0, 0, -2]]),
        ("opponents", [[1, 1, 1, 1, 0, 0, 0, 0.5]]),
        ("opponents", [[1, 1, 1, 1, 0, 0, 0, 10**40]]),
    ]


def refused(folder: Path, config: Config, content: bytes) -> str:
    """Why a checkpoint is refused; the one before it is gone."""
    (folder / STATE).write_bytes(content)
    (folder / PREVIOUS).unlink(missing_ok=True)
    learner = Learner(config)
    before = tensors_of(learner)
    with pytest.raises(RunError) as caught:
        resume(Run(folder, config, resume=True), folder, learner)
    assert all(torch.equal(before[name], tensor) for name, tensor in tensors_of(learner).items())
    message = str(caught.value)
    assert message.startswith(f"{folder}/{STATE}: ")
    assert "\n" not in message
    assert len(message) < 500 + len(str(folder))
    return message


def test_hostile_numbers_are_refused(tmp_path):
    config = small()
    started(tmp_path, config, 1)
    numbers, tensors = checkpoint_of(tmp_path / STATE)
    for name, value in hostile_numbers():
        state = json.dumps({**numbers, name: value})
        refused(tmp_path, config, save(tensors, {"format": FORMAT, "state": state}))
    for state in ("", "{}", "[]", "[" * 10**5, '{"updates":1,"x":' + "[" * 10**5):
        refused(tmp_path, config, save(tensors, {"format": FORMAT, "state": state}))
    metadata = {"format": "domino-run-0", "state": json.dumps(numbers)}
    message = refused(tmp_path, config, save(tensors, metadata))
    assert message.endswith("found format 'domino-run-0', expected 'domino-run-2'")
    assert resumed_from(tmp_path, config, tensors, numbers).updates == 1


def test_hostile_numbers_of_opponents_are_refused(tmp_path):
    """They choose rows and networks, so none may point beside them."""
    opponents: dict[str, Any] = {"bots": 0.3, "bot_names": ("heaviest",), "pool": 0.3}
    config = small(**opponents, pool_size=1, snapshot_every=1)
    learner = started(tmp_path, config, 1)
    numbers, tensors = checkpoint_of(tmp_path / STATE)
    assert (numbers["won"], numbers["snapshots"]) == ([learner.pool.won[0], 0.5], 1)
    assert numbers["opponents"] == [[1, 1, 1, 1, 0, 0, 0, 0]]
    for name, value in hostile_opponents():
        state = json.dumps({**numbers, name: value})
        refused(tmp_path, config, save(tensors, {"format": FORMAT, "state": state}))
    more = {**numbers, "snapshots": 2, "won": [0.5] * 3}  # as a larger pool would have them
    held = {name: t for name, t in tensors.items() if name.startswith("snapshot.")}
    doubled = tensors | {k.replace(".0.", ".1.", 1): v.clone() for k, v in held.items()}
    metadata = {"format": FORMAT, "state": json.dumps(more)}
    assert "opponents: found" in refused(tmp_path, config, save(doubled, metadata))
    assert resumed_from(tmp_path, config, tensors, numbers).pool.won.tolist() == numbers["won"]


def resumed_from(folder: Path, config: Config, tensors: Any, numbers: Any) -> Learner:
    """A run that goes on from these tensors and numbers."""
    save_file(tensors, folder / STATE, {"format": FORMAT, "state": json.dumps(numbers)})
    return resumed(folder, config)


def test_hostile_tensors_are_refused(tmp_path):
    config = small()
    started(tmp_path, config, 1)
    numbers, tensors = checkpoint_of(tmp_path / STATE)
    metadata = {"format": FORMAT, "state": json.dumps(numbers)}
    for name, tensor in tensors.items():
        for other in (
            None,
            tensor.double() if tensor.is_floating_point() else tensor.float(),
            tensor.flatten()[:0],
        ):
            changed = {k: v for k, v in tensors.items() if k != name}
            if other is not None:
                changed[name] = other
            found = refused(tmp_path, config, save(changed, metadata))
            assert ("games" if name == "games.0" else f"tensor '{name}': found") in found
    extra = tensors | {"optimiser.99.step": torch.zeros(())}
    assert "tensor 'optimiser.99.step'" in refused(tmp_path, config, save(extra, metadata))


def test_games_that_no_moves_have_led_to_are_refused(tmp_path):
    """They are checked as `DominoVec.load` does; compiled code would trust what they hold."""
    config = small()
    started(tmp_path, config, 1)
    numbers, tensors = checkpoint_of(tmp_path / STATE)
    metadata = {"format": FORMAT, "state": json.dumps(numbers)}
    learner = Learner(config)
    learner.tables[0].vec.games["seat"][5] = 100
    (broken,) = gathered_games(learner)
    for saved in (broken, bytes(len(broken))):
        tensors["games.0"] = torch.frombuffer(bytearray(saved), dtype=torch.uint8)
        assert ": saved games: " in refused(tmp_path, config, save(tensors, metadata))


class Boom:
    """Unpickling one writes a file."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self):
        return Path.touch, (self.path,)


def test_nothing_is_unpickled(tmp_path):
    config = small()
    started(tmp_path, config, 1)
    mark = tmp_path / "mark"
    assert "cannot be read" in refused(tmp_path, config, pickle.dumps(Boom(mark)))
    torch.save({"games": Boom(mark)}, tmp_path / "boom")
    assert "cannot be read" in refused(tmp_path, config, (tmp_path / "boom").read_bytes())
    assert not mark.exists()
