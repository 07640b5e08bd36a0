"""Runs: going on exactly, kills and full disks at any moment, and checkpoints from strangers."""

import errno
import json
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
import torch
import yaml
from learning import STATE, resumed, same_state, small, started
from safetensors import safe_open
from tensorboard.backend.event_processing.event_file_loader import EventFileLoader

from agents import cli, policy, training
from agents.base import load
from agents.checkpoint import FORMAT, tensors_of
from agents.ppo import Config, Learner
from agents.run import LOCK, Run, RunError, held
from agents.training import save, train

UPDATES = 6


# Every switch that keeps something from one update to another, and every part of a network.
EVERYTHING: dict[str, Any] = {
    "rules": [{"preset": "cabra", "episode": "round"}, {"preset": "sin_robo", "seats": 3}],
    "observe_as": 4,
    "network": "attention",
    "history": True,
    "belief": True,
    "privileged_critic": True,
    "pool": 0.3,
    "pool_size": 2,
    "bots": 0.3,
    "bot_names": ("heaviest", "random"),
    "snapshot_every": 1,
    "magnet": "periodic",
    "magnet_every": 2,
    "optimiser": "muon",
    "bf16": True,
}


def of_6(**fields: Any) -> Config:
    """A small run of 6 updates."""
    return small(**{"decisions": UPDATES * 64 * 8, "minibatch": 256, **fields})


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
        ({"teacher": "expert", "solver_weight": 2.0, "solver_share": 0.5}, interrupt),
        (EVERYTHING, interrupt),
    ],
    ids=["float32", "bf16, two workers", "matches in pairs", "minutes", "taught", "everything"],
)
def test_a_run_that_was_stopped_goes_on_as_if_it_had_not_been(tmp_path, fields, stop):
    """Weights, optimiser, games, random numbers and figures are equal to the last bit."""
    config = of_6(**fields)
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
    longer = of_6(**{**fields, "minutes": 0.0})
    second = resumed(tmp_path / "halves", longer)
    assert first.updates == second.updates == UPDATES // 2
    assert same_state(first, second)
    train(Run(tmp_path / "halves", longer, resume=True), second)
    assert whole.updates == second.updates == UPDATES
    assert same_state(whole, second)
    figures = figures_of(tmp_path / "whole")
    assert figures_of(tmp_path / "halves") == figures
    assert [line["update"] for line in figures] == [1, 2, 3, 4, 5, 6]


def test_a_run_that_is_over_stays_as_it_is(tmp_path):
    config = of_6()
    train(Run(tmp_path, config), Learner(config))
    again = resumed(tmp_path, config)
    before = tensors_of(again)
    train(Run(tmp_path, config, resume=True), again)
    assert again.updates == UPDATES
    assert all(torch.equal(before[name], tensor) for name, tensor in tensors_of(again).items())


def test_a_run_is_a_folder_of_the_files_that_it_promises(tmp_path):
    config = of_6(rules={"preset": "estandar", "seats": 3})
    learner = Learner(config)
    train(Run(tmp_path, config), learner)
    events = [path for path in tmp_path.iterdir() if path.name.startswith("events.out.tfevents.")]
    names = {str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*") if path.is_file()}
    assert names == {"config.yaml", "metrics.jsonl", "curves.png", "policy.safetensors", STATE} | {
        path.name for path in events
    }
    assert len(events) == 1
    assert yaml.safe_load((tmp_path / "config.yaml").read_text())["rules"] == config.rules
    with safe_open(tmp_path / STATE, framework="pt") as file:
        assert file.metadata()["format"] == FORMAT
    agent = load(f"{tmp_path}/")
    assert isinstance(agent, policy.PolicyAgent)
    for name, tensor in agent.network.state_dict().items():
        assert torch.equal(tensor, learner.played.state_dict()[name])


def test_tensorboard_gets_every_figure_of_every_update(tmp_path):
    config = of_6()
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
    Run(tmp_path, of_6())
    before = (tmp_path / "config.yaml").read_bytes()
    with pytest.raises(RunError, match=f"{tmp_path}: there is a run in it, go on with --resume"):
        Run(tmp_path, of_6(games=3))
    assert (tmp_path / "config.yaml").read_bytes() == before


def test_two_processes_do_not_train_in_one_folder(tmp_path):
    started(tmp_path, of_6(), 1)
    again = ["--resume", str(tmp_path)]
    before = contents(tmp_path)
    with held(tmp_path), pytest.raises(RunError, match=f"^{tmp_path}: another process trains in"):
        training.main(again)
    assert contents(tmp_path) == before
    training.main(again)  # it is free again
    assert contents(tmp_path) != before


def contents(folder: Path) -> dict[str, bytes]:
    """All files of a folder but the lock."""
    files = (path for path in folder.rglob("*") if path.is_file() and path.name != LOCK)
    return {str(path): path.read_bytes() for path in files}


def test_changed_settings_of_a_resumed_run_are_kept(tmp_path):
    started(tmp_path, of_6(), 1)
    resumed(tmp_path, of_6(decisions=10**6))
    assert yaml.safe_load((tmp_path / "config.yaml").read_text())["decisions"] == 10**6


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"hidden": (17,)}, "tensor 'network.actor.body.0.bias': found float32 [16], expected"),
        ({"games": 65}, " of 65 games"),
        ({"rules": {"preset": "cabra", "seats": 3}}, "'network.actor.body.0.weight': found"),
        ({"rules": {"preset": "sin_robo"}}, "saved games: "),
        ({"history": True}, "tensor 'network.actor.body.0.weight': found float32 [16, "),
        ({"network": "attention"}, "tensor 'network.actor.blocks.0.before.bias': found none, exp"),
        ({"magnet": "periodic"}, "tensor 'magnet.actor.body.0.bias': found none, expected"),
        ({"optimiser": "muon"}, "tensor 'optimiser.0.exp_avg': found float32 [16, "),
        ({"bots": 0.5}, "opponents: found others than those of this run"),
        ({"rules": [{"preset": "cabra", "episode": "round"}] * 2}, "opponents: found others"),
    ],
)
def test_a_run_cannot_go_on_with_another_network_or_other_games(tmp_path, fields, message):
    started(tmp_path, of_6(), 1)
    with pytest.raises(RunError) as caught:
        resumed(tmp_path, of_6(**fields))
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)
    resumed(tmp_path, of_6())


def test_a_run_that_is_to_go_on_with_another_network_is_one_line(tmp_path, capsys):
    config = of_6()
    started(tmp_path, config, 1)
    assert cli.main(["train", "--resume", str(tmp_path), "--hidden", "[17]"]) == 2
    expected = "domino: hidden: found (17,), expected (16,), with which the run began\n"
    assert capsys.readouterr().err == expected


def test_baselines_that_cannot_play_are_noticed_before_the_run_begins(tmp_path):
    with pytest.raises(ValueError, match="there is no 'heavyest', did you mean heaviest"):
        Learner(of_6(evaluate_every=2, baselines=("heavyest",)))
    with pytest.raises(ValueError, match="cfr:10: "):
        Learner(of_6(evaluate_every=2, baselines=("cfr:10",)))


# ---------------------------------------------------------------- metrics


def test_metrics_of_updates_that_are_made_again_and_cut_off_lines_are_dropped(tmp_path):
    config = of_6()
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


def test_rich_warnings_and_files_are_closed(tmp_path):
    """Every warning is an error in these tests, an unclosed file among them."""
    config = of_6(evaluate_every=3, evaluate_deals=8)
    train(Run(tmp_path, config), Learner(config))
    assert "eval/heaviest" in figures_of(tmp_path)[2]
