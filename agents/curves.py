"""The learning curves of a run as one picture, `curves.png`, from its `metrics.jsonl`."""

from __future__ import annotations

import io
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from agents.policy import write_file

CURVES_FILE = "curves.png"
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00", "#000000", "#999999")
# A layout that measures all texts would take half of the time.
MARGINS = {"left": 0.05, "right": 0.985, "bottom": 0.07, "top": 0.91, "hspace": 0.28, "wspace": 0.3}
PANELS = {
    "losses/entropy": "entropy of the moves",
    "losses/approx_kl": "approx_kl of an update",
    "losses/explained_variance": "explained variance of the value",
    "charts/SPS": "decisions a second, thousands",
}


class Metrics:
    """The lines of `metrics.jsonl` as columns; lines that cannot be read are left out."""

    def __init__(self, lines: Iterable[bytes]) -> None:
        found = (_figures_of(line) for line in lines)
        self.lines = [figures for figures in found if figures and "decisions" in figures]
        self.names = sorted({name for figures in self.lines for name in figures})

    def of(self, name: str) -> tuple[np.ndarray, np.ndarray]:
        """Decisions in millions, and the figures of that name where there are any, float64 [n]."""
        pairs = [(line["decisions"], line[name]) for line in self.lines if name in line]
        points = np.array(pairs, np.float64).reshape(-1, 2)  # None, JSON's NaN, becomes NaN
        return points[:, 0] / 1e6, points[:, 1]

    def below(self, prefix: str) -> list[str]:
        """The names with that prefix, without the half widths of intervals."""
        return [n for n in self.names if n.startswith(prefix) and not n.endswith("_ci95")]


def _figures_of(line: bytes) -> dict[str, float | None]:
    try:
        return msgspec.json.decode(line, type=dict[str, float | None])
    except (ValueError, RecursionError):
        return {}


def draw_curves(folder: Path, metrics_file: Path) -> None:
    """Write `curves.png` into `folder`, as a whole or not at all; no metrics are an empty picture.

    Raises `OSError` where the metrics cannot be read or the picture cannot be written.
    """
    metrics = Metrics(metrics_file.read_bytes().splitlines() if metrics_file.exists() else ())
    content = io.BytesIO()
    figure_of(metrics, folder.resolve().name).savefig(content, format="png", dpi=100)
    write_file(folder / CURVES_FILE, content.getvalue())


def figure_of(metrics: Metrics, title: str) -> Any:
    """The curves as a figure of matplotlib, which draws without a display."""
    from matplotlib.figure import Figure  # it takes its time, and is not needed before

    figure = Figure(figsize=(12, 7))
    figure.suptitle(title, y=0.98)
    top = ["results"] * 2 + ["opponents" if metrics.below("opponents/") else "results"] * 2
    rows: list[Any] = [top, list(PANELS)]
    panels = figure.subplot_mosaic(rows, height_ratios=(3, 2), gridspec_kw=MARGINS)
    _results(panels["results"], metrics)
    if "opponents" in panels:
        _opponents(panels["opponents"], metrics)
    for name, heading in PANELS.items():
        x, y = metrics.of(name)
        panels[name].plot(
            x, y / 1000 if name == "charts/SPS" else y, **_marked(x), color=COLOURS[0]
        )
        panels[name].set_title(heading, fontsize=10)
    panels["losses/explained_variance"].set_ylim(-0.1, 1.05)  # at first it may be far below 0
    panels["charts/SPS"].set_ylim(bottom=0)
    for panel in panels.values():
        panel.set_xlim(left=0)
        panel.set_xlabel("decisions, millions")
        panel.grid(alpha=0.3)
    return figure


def _results(panel: Any, metrics: Metrics) -> None:
    panel.set_title("reward a game against each baseline, with its 95% interval", fontsize=10)
    panel.axhline(0, color="#666666", linewidth=1)
    for colour, name in _coloured(metrics.below("eval/")):
        x, mean = metrics.of(name)
        half = metrics.of(f"{name}_ci95")[1]
        label = name.removeprefix("eval/")
        panel.plot(x, mean, **_marked(x), color=colour, label=label)
        if len(half) == len(mean):
            panel.fill_between(x, mean - half, mean + half, color=colour, alpha=0.2, linewidth=0)
    _legend(panel)


def _opponents(panel: Any, metrics: Metrics) -> None:
    panel.set_title("share of the games won lately of each opponent in training", fontsize=10)
    panel.axhline(0.5, color="#666666", linewidth=1)
    for colour, name in _coloured(metrics.below("opponents/")):
        x, share = metrics.of(name)
        panel.plot(x, share, **_marked(x), color=colour, label=name.removeprefix("opponents/"))
    _legend(panel)


def _coloured(names: list[str]) -> list[tuple[str, str]]:
    return [(COLOURS[k % len(COLOURS)], name) for k, name in enumerate(names)]


def _marked(x: np.ndarray) -> dict[str, Any]:
    """Points where there are few, which as a line alone would not be seen."""
    return {"linewidth": 1.3, "marker": "o" if len(x) <= 40 else "", "markersize": 3}


def _legend(panel: Any) -> None:
    handles, labels = panel.get_legend_handles_labels()
    if labels:
        panel.legend(handles, labels, fontsize=8, loc="best")
