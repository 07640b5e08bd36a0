"""Training in several processes: the same run, up to the rounding of sums."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import yaml
from learning import another, one_minibatch, resumed, small, started, weights_of

from agents.loss import Weights
from agents.parallel import Ranks
from agents.policy import save_policy
from agents.ppo import Config, Learner

ROOT = Path(__file__).resolve().parent.parent
# A sum in another order differs by some roundings of float32, 6e-8 each. Adam's steps then do too,
# and the figures of a run of eight updates by some more; another game would change the third digit.
ROUNDING = 1e-5


class Alone(Ranks):
    """One of several processes, with nobody to talk to."""

    def __init__(self, rank: int, count: int) -> None:
        super().__init__()
        self.rank, self.count = rank, count

    def sum(self, tensor: torch.Tensor) -> torch.Tensor:
        return tensor


def part_of(learner: Learner, rank: int, count: int) -> Learner:
    """The same learner as one of several processes."""
    learner.ranks = Alone(rank, count)
    learner.tables = learner._tables()
    return learner


def two_processes(*words: str) -> subprocess.CompletedProcess[str]:
    """`domino train` with these words, by `torchrun` at a free port."""
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"]
    return subprocess.run(
        [*command, "--", str(ROOT / "train.py"), *words],
        capture_output=True,
        text=True,
        timeout=240,
        cwd=ROOT,
        env=os.environ | {"OMP_NUM_THREADS": "1"},
    )


def figures_of(folder: Path) -> list[dict[str, Any]]:
    """The metrics of a run without what depends on the clock."""
    lines = (folder / "metrics.jsonl").read_text().splitlines()
    return [without_clock(json.loads(line)) for line in lines]


def without_clock(figures: dict[str, Any]) -> dict[str, Any]:
    return {k: v for k, v in figures.items() if k not in ("time", "charts/SPS")}


def check_close(found: list[dict[str, Any]], expected: list[dict[str, Any]]) -> None:
    assert len(found) == len(expected) > 0
    for mine, theirs in zip(found, expected, strict=True):
        assert mine.keys() == theirs.keys()
        np.testing.assert_allclose(list(mine.values()), list(theirs.values()), ROUNDING, ROUNDING)


# ---------------------------------------------------------------- shares


@pytest.mark.parametrize("count", [1, 2, 3, 7])
def test_the_games_are_shared_without_a_gap(count):
    shares = [Alone(rank, count).share(20) for rank in range(count)]
    assert [i for share in shares for i in range(20)[share]] == list(range(20))
    sizes = [share.stop - share.start for share in shares]
    assert max(sizes) - min(sizes) <= 1


def test_fewer_games_than_processes_are_one_clear_error():
    with pytest.raises(ValueError, match="games: found 2, expected one for each of 3 processes"):
        Alone(0, 3).share(2)


def test_one_process_sends_nothing():
    ranks = Ranks()
    assert (ranks.count, ranks.first, ranks.gather(b"abc"), ranks.agree(0.5)) == (
        1,
        True,
        [b"abc"],
        0.5,
    )
    assert not torch.distributed.is_initialized()


def test_the_processes_play_the_games_of_one_and_learn_each_decision_in_the_same_minibatch():
    tables = [{"preset": "sin_robo", "seats": 3}, {"preset": "cabra"}]
    config = small(rules=tables, observe_as=4, minibatch=100, epochs=2, normalise=False)
    whole = Learner(config)
    parts = [part_of(Learner(config), rank, 3) for rank in range(3)]
    for learner in (whole, *parts):
        learner.rollout()
    for k, table in enumerate(whole.tables):
        for name in ("observation", "action", "reward"):
            theirs = [getattr(part.tables[k].storage, name) for part in parts]
            assert torch.equal(torch.cat(theirs, 1), getattr(table.storage, name))
    batches = [list(learner.minibatches()) for learner in (whole, *parts)]
    for mb, *shares in zip(*batches, strict=True):
        values = torch.cat([share.returns for share in shares])
        np.testing.assert_allclose(np.sort(values), np.sort(mb.returns), atol=1e-6)
        rows = torch.cat([share.inputs.observation for share in shares])
        assert sorted(map(bytes, rows.numpy())) == sorted(map(bytes, mb.inputs.observation.numpy()))
        assert len(mb) in (100, 12)
        assert all(0 < len(share) < len(mb) for share in shares if len(mb) == 100)


def test_a_process_without_any_decision_of_a_minibatch_gives_nothing():
    learner = Learner(small())
    nothing = one_minibatch(learner).rows(slice(0, 0))
    before = weights_of(learner.network)
    watched = learner.learn(nothing, Weights(0.05))
    np.testing.assert_array_equal(weights_of(learner.network), before)
    assert watched.tolist() == [0.0] * len(watched)


# ---------------------------------------------------------------- processes


def with_bot(folder: Path, **fields: Any) -> Config:
    """A run against snapshots and a bot that draws nothing at random."""
    save_policy(folder, another(small(), 1))
    opponents = {"pool": 0.25, "bots": 0.25, "bot_names": (f"{folder}/",), "snapshot_every": 2}
    magnet = {"magnet": "periodic", "magnet_every": 2, "magnet_weight": 0.2}
    return small(decisions=6 * 512, minibatch=300, **opponents, **magnet, **fields)


def test_a_run_goes_on_in_two_processes_and_then_in_one_again(tmp_path):
    """Two updates in one process, four in two, and two more in one: as eight in one."""
    (tmp_path / "bot").mkdir()
    config = with_bot(tmp_path / "bot")
    started(tmp_path / "two", config, 2)
    started(tmp_path / "one", config, 6)
    ran = two_processes("--resume", str(tmp_path / "two"))
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout == f"Trained and saved: {tmp_path}/two\n"  # by the first process alone
    assert len(list((tmp_path / "two").glob("events.out.tfevents.*"))) == 2
    check_close(figures_of(tmp_path / "two"), figures_of(tmp_path / "one"))
    longer = {**vars(config), "decisions": 8 * 512}
    one, two = (resumed(tmp_path / name, Config(**longer)) for name in ("one", "two"))
    assert one.updates == two.updates == 6
    for table, other in zip(one.tables, two.tables, strict=True):
        assert table.vec.games.tobytes() == other.vec.games.tobytes()
        assert table.blocks.opponents == other.blocks.opponents
    assert one.random.bit_generator.state == two.random.bit_generator.state
    np.testing.assert_allclose(weights_of(two.played), weights_of(one.played), atol=1e-5)
    for _ in range(2):
        check_close([without_clock(two.update())], [without_clock(one.update())])


@pytest.mark.slow
@pytest.mark.parametrize("network", ["mlp", "attention"])
def test_a_run_of_two_processes_is_that_of_one_with_every_switch_on(tmp_path, network):
    (tmp_path / "bot").mkdir()
    save_policy(tmp_path / "bot", another(small(observe_as=4), 1))
    config = small(
        rules=[{"preset": "cabra", "episode": "round"}, {"preset": "sin_robo", "seats": 3}],
        observe_as=4,
        network=network,
        decisions=6 * 512,
        minibatch=300,
        pool=0.25,
        bots=0.25,
        bot_names=(f"{tmp_path}/bot/",),
        snapshot_every=2,
        magnet="uniform",
        dual_clip=3.0,
        target_kl=1e-3,
        history=True,
        belief=True,
        privileged_critic=True,
        evaluate_every=3,
        evaluate_deals=16,
    )
    given = {name: list(v) if isinstance(v, tuple) else v for name, v in vars(config).items()}
    (tmp_path / "all.yaml").write_text(yaml.safe_dump(given))
    ran = two_processes(str(tmp_path / "all.yaml"), f"--run={tmp_path}/two")
    assert ran.returncode == 0, ran.stderr
    learner = Learner(config)
    found = [
        {k: v for k, v in line.items() if not k.startswith("eval/")}
        for line in figures_of(tmp_path / "two")
    ]
    expected = []
    while not learner.finished:
        figures = learner.update()
        numbers = {"update": learner.updates, "decisions": learner.decisions}
        expected.append(without_clock({**numbers, **figures}))
    check_close(found, expected)
    assert "eval/sin_robo-3/heaviest" in figures_of(tmp_path / "two")[2]
