"""Runs that end badly: kills at any moment, full disks, writes that break off."""

import errno
import os
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
import yaml
from learning import STATE, figures_of, of_6, resumed, same_state, started

from agents import cli
from agents.ppo import Config, Learner
from agents.run import Run
from agents.training import save

# ---------------------------------------------------------------- kills


def test_a_run_that_was_killed_at_any_moment_of_a_save_goes_on(tmp_path, monkeypatch):
    """What lies on the disk before and after each step of a save is a run that resumes."""
    config = of_6()
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
        save(run, learner)
        learner.update()
        save(run, learner)
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
        save(Run(moment, config, resume=True), again)
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
ppo.Learner(ppo.Config(games=4, steps=1, workers=1, hidden=(4,))).rollout()


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
    config = of_6(bf16=True, workers=2, decisions=60 * 512, save_every=1)
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
    config = of_6(decisions=400 * 512, save_every=1000)
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
    config = of_6()
    run = Run(tmp_path, config)
    run.log(1, 512, {"x": 1.0})
    assert same_state(resumed(tmp_path, config), Learner(config))
    assert figures_of(tmp_path) == []


# ---------------------------------------------------------------- full disks


def without_bytes_to_spare(path: Path) -> None:
    """Make the next write of this file fail as on a full disk."""
    if not Path("/dev/full").exists():
        pytest.skip("needs /dev/full")
    path.symlink_to("/dev/full")


def test_a_full_disk_is_one_line_and_leaves_what_was_saved(tmp_path, capsys):
    config = of_6()
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
    run = Run(tmp_path, of_6())
    without_bytes_to_spare(tmp_path / "metrics.jsonl")
    with pytest.raises(OSError, match=f"{os.strerror(errno.ENOSPC)}: '{tmp_path}/metrics.jsonl'"):
        run.log(1, 512, {"x": 1.0})


def test_a_file_that_ends_in_the_middle_of_a_write_leaves_what_was_saved(tmp_path):
    """A limit on the size of files ends the write after 20,000 bytes of the new checkpoint."""
    config = of_6()
    learner = started(tmp_path, config, 2)
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, before[1]))
    try:
        with pytest.raises(OSError, match=os.strerror(errno.EFBIG)):
            save(Run(tmp_path, config, resume=True), learner)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert not list(tmp_path.rglob("*.new"))
    assert same_state(resumed(tmp_path, config), learner)
