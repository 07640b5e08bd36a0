"""Learning curves: what is read of the metrics, what the picture shows, and when it is drawn."""

import json
import math
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from learning import small

from agents.curves import CURVES_FILE, Metrics, draw_curves, figure_of
from agents.ppo import Learner
from agents.run import Run
from agents.training import save, train

LINE = {
    "losses/entropy": 1.5,
    "losses/approx_kl": 0.01,
    "losses/explained_variance": 0.25,
    "charts/SPS": 50_000.0,
}


def lines_of(*figures: dict[str, Any]) -> list[bytes]:
    """Lines of metrics, a million decisions an update."""
    return [
        json.dumps({"update": k, "decisions": k * 10**6, "time": 1e9 + k, **line}).encode()
        for k, line in enumerate(figures, 1)
    ]


def drawn(panel: Any, label: str) -> np.ndarray:
    """The points of the line with that label, [n, 2]."""
    (line,) = [line for line in panel.lines if line.get_label() == label]
    return np.stack([line.get_xdata(), line.get_ydata()], 1)


def panels_of(lines: list[bytes]) -> dict[str, Any]:
    """The panels of a figure by their titles' first word."""
    return {a.get_title().split()[0]: a for a in figure_of(Metrics(lines), "run").axes}


def size_of(path: Path) -> tuple[int, int]:
    """Width and height of a PNG file, from its header."""
    content = path.read_bytes()
    assert content[:8] == b"\x89PNG\r\n\x1a\n"
    assert content[-8:-4] == b"IEND"
    width, height = struct.unpack(">II", content[16:24])
    return width, height


def test_a_figure_has_the_points_where_it_was_written():
    lines = lines_of({"x": 1.0}, {"y": 5}, {"x": 3.0, "y": None})
    metrics = Metrics(lines)
    assert [column.tolist() for column in metrics.of("x")] == [[1.0, 3.0], [1.0, 3.0]]
    millions, y = metrics.of("y")
    assert (millions.tolist(), y[0]) == ([2.0, 3.0], 5)
    assert math.isnan(y[1])  # what is no number has no point
    assert [len(column) for column in metrics.of("z")] == [0, 0]


def test_lines_that_cannot_be_read_are_left_out():
    whole = lines_of({"x": 1.0}, {"x": 2.0})
    broken = [b'{"decisions":3,"x', b"\xff", b"[]", b"{}", b'{"x":1}', b"[" * 10**5, b""]
    assert Metrics([whole[0], *broken, whole[1]]).lines == Metrics(whole).lines


def test_results_are_shown_with_their_intervals_at_millions_of_decisions():
    mean = {"eval/heaviest": 0.3, "eval/heaviest_ci95": 0.1, "eval/cabra-2/random": 0.5}
    panels = panels_of(lines_of(LINE, LINE | mean, LINE, LINE | mean | {"eval/heaviest": 0.4}))
    assert set(panels) == {"reward", "entropy", "approx_kl", "explained", "decisions"}
    np.testing.assert_allclose(drawn(panels["reward"], "heaviest"), [[2, 0.3], [4, 0.4]])
    np.testing.assert_allclose(drawn(panels["reward"], "cabra-2/random"), [[2, 0.5], [4, 0.5]])
    (band,) = panels["reward"].collections
    corners = {tuple(point) for point in band.get_paths()[0].vertices.round(6).tolist()}
    assert corners == {(2, 0.2), (2, 0.4), (4, 0.3), (4, 0.5)}
    assert {panel.get_xlabel() for panel in panels.values()} == {"decisions, millions"}


def test_the_other_panels_show_every_update():
    later = {"losses/entropy": 1.0, "losses/explained_variance": -400.0, "charts/SPS": 60_000.0}
    panels = panels_of(lines_of(LINE, LINE | later))
    for title, points in (
        ("entropy", [1.5, 1.0]),
        ("approx_kl", [0.01, 0.01]),
        ("explained", [0.25, -400]),
        ("decisions", [50, 60]),  # thousands
    ):
        (line,) = panels[title].lines
        assert list(line.get_xdata()) == [1, 2]
        np.testing.assert_allclose(line.get_ydata(), points)
    assert panels["explained"].get_ylim() == (-0.1, 1.05)  # so that the rest can be seen


def test_opponents_have_a_panel_if_there_are_any():
    assert "share" not in panels_of(lines_of(LINE))
    panels = panels_of(lines_of(LINE, LINE | {"opponents/expert": 0.4, "opponents/pool": 0.6}))
    np.testing.assert_allclose(drawn(panels["share"], "expert"), [[2, 0.4]])
    np.testing.assert_allclose(drawn(panels["share"], "pool"), [[2, 0.6]])


@pytest.mark.parametrize("count", [None, 0, 1, 50])
def test_a_picture_is_drawn_of_any_number_of_lines(tmp_path, count):
    metrics = tmp_path / "metrics.jsonl"
    if count is not None:
        metrics.write_bytes(b"\n".join(lines_of(*[LINE] * count)))
    draw_curves(tmp_path, metrics)
    assert size_of(tmp_path / CURVES_FILE) == (1200, 700)
    assert not list(tmp_path.glob("*.new"))


def test_a_run_draws_at_its_end_and_at_most_once_a_minute_before(tmp_path, monkeypatch):
    pictures = []
    monkeypatch.setattr("agents.run.draw_curves", lambda *paths: pictures.append(paths))
    config = small(decisions=4 * 512, save_every=1)
    run, learner = Run(tmp_path, config), Learner(config)
    train(run, learner)
    assert pictures == [(tmp_path, tmp_path / "metrics.jsonl")]
    run.drawn -= 59
    save(run, learner)
    assert len(pictures) == 1
    run.drawn -= 2
    save(run, learner)
    save(run, learner)
    assert len(pictures) == 2
