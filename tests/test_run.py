"""Runs: going on exactly, the files of their folder, and their metrics."""

import signal
from pathlib import Path
from typing import Any

import pytest
import torch
import yaml
from learning import STATE, UPDATES, figures_of, of_6, resumed, same_state, started
from safetensors import safe_open
from tensorboard.backend.event_processing.event_file_loader import EventFileLoader

from agents import cli, policy, training
from agents.base import load
from agents.checkpoint import FORMAT, tensors_of
from agents.ppo import Learner
from agents.run import LOCK, Run, RunError, held
from agents.training import train

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
        ({"network": "graph", "hidden": (16, 8), "hands_weight": 0.1}, interrupt),
        (EVERYTHING, interrupt),
    ],
    ids=[
        "float32",
        "bf16, two workers",
        "matches in pairs",
        "minutes",
        "taught",
        "hands",
        "everything",
    ],
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


def test_rich_warnings_and_files_are_closed(tmp_path):
    """Every warning is an error in these tests, an unclosed file among them."""
    config = of_6(evaluate_every=3, evaluate_deals=8)
    train(Run(tmp_path, config), Learner(config))
    assert "eval/heaviest" in figures_of(tmp_path)[2]
