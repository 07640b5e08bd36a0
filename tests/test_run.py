"""Runs: going on exactly, kills and full disks at any moment, and checkpoints from strangers."""

import errno
import json
import os
import pickle
import resource
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
import yaml
from safetensors import safe_open
from safetensors.torch import load_file, save, save_file
from tensorboard.backend.event_processing.event_file_loader import EventFileLoader

from agents import cli, policy
from agents.base import load
from agents.ppo import Config, Learner, train
from agents.run import FORMAT, Run, RunError, numbers_of, tensors_of

STATE, PREVIOUS = "checkpoint/state.safetensors", "checkpoint/previous.safetensors"
UPDATES = 6


def small(**fields: Any) -> Config:
    """A run of 6 updates with everything small."""
    fixed = {
        "rules": {"preset": "cabra", "episode": "round"},
        "games": 64,
        "steps": 8,
        "decisions": UPDATES * 64 * 8,
        "minibatch": 256,
        "hidden": (16,),
        "evaluate_every": 0,
        "workers": 1,
        "bf16": False,
    }
    return Config(**{**fixed, **fields})


def started(folder: Path, config: Config, updates: int) -> Learner:
    """A run with that many updates, each saved."""
    run, learner = Run(folder, config), Learner(config)
    for _ in range(updates):
        figures = learner.update()
        run.log(learner.updates, learner.decisions, figures)
        run.save(learner)
    return learner


def resumed(folder: Path, config: Config) -> Learner:
    """A new learner in the state of that run."""
    learner = Learner(config)
    Run(folder, config, resume=True).restore(learner)
    return learner


def same_state(a: Learner, b: Learner) -> bool:
    """Whether two learners will do the same from now on."""
    numbers = [{**vars(numbers_of(learner)), "seconds": 0} for learner in (a, b)]
    tensors = [tensors_of(learner) for learner in (a, b)]
    return (
        numbers[0] == numbers[1]
        and tensors[0].keys() == tensors[1].keys()
        and all(torch.equal(tensor, tensors[1][name]) for name, tensor in tensors[0].items())
    )


def figures_of(folder: Path) -> list[dict[str, Any]]:
    """The metrics of a run without what depends on the clock."""
    lines = (folder / "metrics.jsonl").read_text().splitlines()
    clock = ("time", "charts/SPS")
    return [{k: v for k, v in json.loads(line).items() if k not in clock} for line in lines]


def without_bytes_to_spare(path: Path) -> None:
    """Make the next write of this file fail as on a full disk."""
    if not Path("/dev/full").exists():
        pytest.skip("needs /dev/full")
    path.symlink_to("/dev/full")


# ---------------------------------------------------------------- going on


def interrupt(learner: Learner) -> None:
    signal.raise_signal(signal.SIGINT)


def use_up_the_minutes(learner: Learner) -> None:
    learner.seconds += 3600


@pytest.mark.parametrize(
    ("fields", "stop"),
    [
        ({"evaluate_every": 2, "evaluate_deals": 16}, interrupt),
        ({"bf16": True, "workers": 2, "minibatch": 300}, interrupt),
        ({"rules": {"preset": "cabra", "seats": 4, "teams": True, "target": 20}}, interrupt),
        ({"minutes": 60, "rules": {"preset": "sin_robo", "reward": "points"}}, use_up_the_minutes),
    ],
    ids=["float32", "bf16 and two workers", "matches in pairs", "minutes over"],
)
def test_a_run_that_was_stopped_goes_on_as_if_it_had_not_been(tmp_path, capsys, fields, stop):
    """Weights, optimiser, games, random numbers and figures are equal to the last bit."""
    config = small(**fields)
    whole, first = Learner(config), Learner(config)
    train(Run(tmp_path / "whole", config), whole)
    run = Run(tmp_path / "halves", config)
    log = run.log

    def log_and_stop(update: int, decisions: int, figures: dict[str, float]) -> None:
        log(update, decisions, figures)
        if update == UPDATES // 2:
            stop(first)

    run.log = log_and_stop  # type: ignore[method-assign]
    train(run, first)
    longer = small(**{**fields, "minutes": 0.0})
    second = resumed(tmp_path / "halves", longer)
    assert first.updates == second.updates == UPDATES // 2
    assert same_state(first, second)
    train(Run(tmp_path / "halves", longer, resume=True), second)
    assert whole.updates == second.updates == UPDATES
    assert same_state(whole, second)
    figures = figures_of(tmp_path / "whole")
    assert figures_of(tmp_path / "halves") == figures
    assert [line["update"] for line in figures] == [1, 2, 3, 4, 5, 6]
    if stop is interrupt:
        assert f"go on with: domino train --resume {tmp_path}/halves" in capsys.readouterr().out


def test_a_run_that_is_over_stays_as_it_is(tmp_path):
    config = small()
    train(Run(tmp_path, config), Learner(config))
    again = resumed(tmp_path, config)
    before = tensors_of(again)
    train(Run(tmp_path, config, resume=True), again)
    assert again.updates == UPDATES
    assert all(torch.equal(before[name], tensor) for name, tensor in tensors_of(again).items())


def test_a_run_is_a_folder_of_the_files_that_it_promises(tmp_path):
    config = small(rules={"preset": "estandar", "seats": 3})
    learner = Learner(config)
    train(Run(tmp_path, config), learner)
    events = [path for path in tmp_path.iterdir() if path.name.startswith("events.out.tfevents.")]
    names = {str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*") if path.is_file()}
    assert names == {"config.yaml", "metrics.jsonl", "policy.safetensors", STATE, events[0].name}
    assert yaml.safe_load((tmp_path / "config.yaml").read_text())["rules"] == config.rules
    with safe_open(tmp_path / STATE, framework="pt") as file:
        assert file.metadata()["format"] == FORMAT
    agent = load(f"{tmp_path}/")
    assert isinstance(agent, policy.PolicyAgent)
    for name, tensor in agent.network.state_dict().items():
        assert torch.equal(tensor, learner.played.state_dict()[name])


def test_tensorboard_gets_every_figure_of_every_update(tmp_path):
    config = small()
    train(Run(tmp_path, config), Learner(config))
    (path,) = tmp_path.glob("events.out.tfevents.*")
    seen = {
        (event.step, value.tag): value.tensor.float_val[0] if value.tensor.float_val else None
        for event in EventFileLoader(str(path)).Load()
        for value in event.summary.value
    }
    figures = figures_of(tmp_path)
    expected = {(line["decisions"], tag) for line in figures for tag in line if "/" in tag} | {
        (line["decisions"], "charts/SPS") for line in figures
    }
    assert set(seen) == expected
    last = figures[-1]
    assert seen[last["decisions"], "losses/entropy"] == pytest.approx(last["losses/entropy"])


def test_a_folder_with_a_run_is_not_begun_again(tmp_path):
    Run(tmp_path, small())
    before = (tmp_path / "config.yaml").read_bytes()
    with pytest.raises(RunError, match=f"{tmp_path}: there is a run in it, go on with --resume"):
        Run(tmp_path, small(games=3))
    assert (tmp_path / "config.yaml").read_bytes() == before


def test_changed_settings_of_a_resumed_run_are_kept(tmp_path):
    started(tmp_path, small(), 1)
    resumed(tmp_path, small(decisions=10**6))
    assert yaml.safe_load((tmp_path / "config.yaml").read_text())["decisions"] == 10**6


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"hidden": (17,)}, "tensor 'network.actor.weight': found float32 [59, 16], expected"),
        ({"games": 65}, "tensor 'games': found uint8 ["),
        ({"rules": {"preset": "cabra", "seats": 3}}, "tensor 'games'|tensor 'network.body"),
        ({"rules": {"preset": "sin_robo"}}, "saved games: "),
    ],
)
def test_a_run_cannot_go_on_with_another_network_or_other_games(tmp_path, fields, message):
    started(tmp_path, small(), 1)
    with pytest.raises(RunError) as caught:
        resumed(tmp_path, small(**fields))
    assert any(part in str(caught.value) for part in message.split("|"))
    assert "\n" not in str(caught.value)
    resumed(tmp_path, small())


# ---------------------------------------------------------------- metrics


def test_metrics_of_updates_that_are_made_again_and_cut_off_lines_are_dropped(tmp_path):
    config = small()
    learner = started(tmp_path, config, 2)
    path = tmp_path / "metrics.jsonl"
    whole = path.read_bytes()
    for rest in (b'{"update":3,"x":1}\n{"upd', b'{"update":3}', b"\xff\n[]\n{}\n", b"[" * 10**5):
        path.write_bytes(whole + rest)
        assert same_state(resumed(tmp_path, config), learner)
        assert path.read_bytes() == whole
    path.write_bytes(whole[:-1])  # only the end of the line is missing
    resumed(tmp_path, config)
    assert path.read_bytes() == whole
    path.unlink()
    resumed(tmp_path, config)


# ---------------------------------------------------------------- kills


def test_a_run_that_was_killed_at_any_moment_of_a_save_goes_on(tmp_path, monkeypatch):
    """What lies on the disk before and after each step of a save is a run that resumes."""
    config = small()
    run, learner = Run(tmp_path / "run", config), Learner(config)
    moments: list[Path] = []

    def watched(function: Callable[..., Any]) -> Callable[..., Any]:
        def step(*arguments: Any) -> Any:
            moments.append(shutil.copytree(run.folder, tmp_path / f"{len(moments)}"))
            result = function(*arguments)
            moments.append(shutil.copytree(run.folder, tmp_path / f"{len(moments)}"))
            return result

        return step

    figures = learner.update()
    run.log(1, learner.decisions, figures)
    states = {0: Learner(config), 1: Learner(config), 2: Learner(config)}
    states[1].update()
    states[2].update()
    states[2].update()
    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", watched(os.fsync))
        patch.setattr(Path, "replace", watched(Path.replace))
        run.save(learner)
        learner.update()
        run.save(learner)
    moments.append(run.folder)
    for moment in list(moments):
        for half in moment.rglob("*.new"):  # a file of which only a part was written
            cut = shutil.copytree(moment, tmp_path / f"{moment.name}-{half.name}")
            new = cut / half.relative_to(moment)
            new.write_bytes(new.read_bytes()[: new.stat().st_size // 2])
            moments.append(cut)
    found = []
    for moment in moments:
        again = resumed(moment, config)
        assert same_state(again, states[again.updates])
        Run(moment, config, resume=True).save(again)
        assert same_state(resumed(moment, config), again)
        found.append(again.updates)
    assert len(moments) > 20
    assert set(found) == {0, 1, 2}


# Every life of the run is a fork of a process that has loaded torch and the compiled code once.
LIVES = """
import os, random, signal, sys, time
from pathlib import Path
from agents import cli, ppo

folder, seed, *words = sys.argv[1:]
rng = random.Random(int(seed))
resume = ["train", "--resume", folder]
warm = ppo.Learner(ppo.Config(games=4, steps=1, workers=1, hidden=(4,)))
ppo.collect(warm.vec, warm.storage, warm.acting(), warm.random, warm.workers)
ppo.advantages(warm.storage, False, 1.0, 1.0)


def begin(arguments):
    child = os.fork()
    if child == 0:
        sys.stdout = sys.stderr = open(os.devnull, "w")
        os._exit(cli.main(arguments))
    return child


def saved_at():
    try:
        return os.stat(Path(folder) / "checkpoint/state.safetensors").st_mtime_ns
    except OSError:
        return 0


kills, arguments = 0, ["train", *words, "--run", folder]
for life in range(5):
    before, child = saved_at(), begin(arguments)
    while life and saved_at() == before and os.waitpid(child, os.WNOHANG)[0] == 0:
        time.sleep(0.001)
    time.sleep(rng.random() * 0.05)
    os.kill(child, signal.SIGKILL)
    kills += os.WIFSIGNALED(os.waitpid(child, 0)[1])
    if (Path(folder) / "config.yaml").exists():
        arguments = resume
print(kills, os.waitstatus_to_exitcode(os.waitpid(begin(arguments), 0)[1]))
"""


def written(path: Path, config: Config) -> Path:
    """A config as a file."""
    given = {name: list(v) if isinstance(v, tuple) else v for name, v in vars(config).items()}
    path.write_text(yaml.safe_dump(given))
    return path


def test_a_run_that_is_killed_again_and_again_ends_as_if_it_had_not_been(tmp_path):
    config = small(bf16=True, workers=2, decisions=60 * 512, save_every=1)
    path = written(tmp_path / "small.yaml", config)
    seed = str(int(time.time()))
    print(f"seed {seed}")
    words = [sys.executable, "-c", LIVES, str(tmp_path / "run"), seed, str(path)]
    lives = subprocess.run(words, capture_output=True, text=True, timeout=240)
    kills, status = lives.stdout.split()
    assert (int(kills) >= 3, status) == (True, "0"), lives.stderr
    whole = Learner(config)
    while not whole.finished:
        whole.update()
    assert same_state(resumed(tmp_path / "run", config), whole)
    updates = [line["update"] for line in figures_of(tmp_path / "run")]
    assert updates == list(range(1, 61))


def test_ctrl_c_saves_a_run_and_it_goes_on_in_another_process(tmp_path):
    config = small(decisions=400 * 512, save_every=1000)
    folder = tmp_path / "run"
    path = written(tmp_path / "small.yaml", config)
    words = [sys.executable, "-m", "agents.cli", "train", str(path), f"--run={folder}"]
    process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    deadline = time.monotonic() + 120
    while not (folder / "metrics.jsonl").exists() and time.monotonic() < deadline:
        time.sleep(0.002)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=120)
    assert process.returncode == 0, err
    assert out == f"Interrupted and saved; go on with: domino train --resume {folder}\n"
    assert "Traceback" not in err
    learner, whole = resumed(folder, config), Learner(config)
    assert 0 < learner.updates < 400
    while whole.updates < learner.updates:
        whole.update()
    assert same_state(learner, whole)
    last = str(learner.decisions + 2 * 512)
    assert cli.main(["train", "--resume", str(folder), f"--decisions={last}"]) == 0
    assert figures_of(folder)[-1]["update"] == learner.updates + 2


def test_a_run_without_a_checkpoint_begins_anew(tmp_path):
    """It was killed before its first save."""
    config = small()
    run = Run(tmp_path, config)
    run.log(1, 512, {"x": 1.0})
    assert same_state(resumed(tmp_path, config), Learner(config))
    assert figures_of(tmp_path) == []


# ---------------------------------------------------------------- full disks


def test_a_full_disk_is_one_line_and_leaves_what_was_saved(tmp_path, capsys):
    config = small()
    learner = started(tmp_path, config, 2)
    again = ["train", "--resume", str(tmp_path)]
    for name in (STATE, "policy.safetensors", "metrics.jsonl", "config.yaml"):
        path = tmp_path / f"{name}.new"
        without_bytes_to_spare(path)
        capsys.readouterr()
        assert cli.main(again) == 2
        err = capsys.readouterr().err.splitlines()
        expected = f"domino: {tmp_path}/{name}: {os.strerror(errno.ENOSPC)}"
        assert [line for line in err if not line.startswith("training")] == [expected]
        assert not path.is_symlink()  # the part that was written does not fill the disk further
        assert same_state(resumed(tmp_path, config), learner)


def test_metrics_that_cannot_be_written_are_one_line(tmp_path):
    run = Run(tmp_path, small())
    without_bytes_to_spare(tmp_path / "metrics.jsonl")
    with pytest.raises(OSError, match=f"{os.strerror(errno.ENOSPC)}: '{tmp_path}/metrics.jsonl'"):
        run.log(1, 512, {"x": 1.0})


def test_a_file_that_ends_in_the_middle_of_a_write_leaves_what_was_saved(tmp_path):
    """A limit on the size of files ends the write after 20,000 bytes of the new checkpoint."""
    config = small()
    learner = started(tmp_path, config, 2)
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, before[1]))
    try:
        with pytest.raises(OSError, match=os.strerror(errno.EFBIG)):
            Run(tmp_path, config, resume=True).save(learner)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert not list(tmp_path.rglob("*.new"))
    assert same_state(resumed(tmp_path, config), learner)


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


def refused(folder: Path, config: Config, content: bytes) -> str:
    """Why a checkpoint is refused; the one before it is gone."""
    (folder / STATE).write_bytes(content)
    (folder / PREVIOUS).unlink(missing_ok=True)
    learner = Learner(config)
    before = tensors_of(learner)
    with pytest.raises(RunError) as caught:
        Run(folder, config, resume=True).restore(learner)
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
    assert message.endswith("found format 'domino-run-0', expected 'domino-run-1'")
    save_file(tensors, tmp_path / STATE, {"format": FORMAT, "state": json.dumps(numbers)})
    assert resumed(tmp_path, config).updates == 1


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
            assert f"tensor '{name}': found" in refused(tmp_path, config, save(changed, metadata))
    extra = tensors | {"optimiser.99.step": torch.zeros(())}
    assert "tensor 'optimiser.99.step'" in refused(tmp_path, config, save(extra, metadata))


def test_games_that_no_moves_have_led_to_are_refused(tmp_path):
    """They are checked by `DominoVec.load`; compiled code would trust what they hold."""
    config = small()
    started(tmp_path, config, 1)
    numbers, tensors = checkpoint_of(tmp_path / STATE)
    metadata = {"format": FORMAT, "state": json.dumps(numbers)}
    vec = Learner(config).vec
    vec.games["seat"][5] = 100
    for saved in (vec.save(), bytes(len(vec.save()))):
        tensors["games"] = torch.frombuffer(bytearray(saved), dtype=torch.uint8)
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


def test_rich_warnings_and_files_are_closed(tmp_path):
    """Every warning is an error in these tests, an unclosed file among them."""
    config = small(evaluate_every=3, evaluate_deals=8)
    train(Run(tmp_path, config), Learner(config))
    assert "eval/heaviest" in figures_of(tmp_path)[2]
