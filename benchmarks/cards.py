"""The model cards of the shipped policies, and what they share with the page of results.

Everything told is kept in results/ or in the file of the policy; what is not there is told as not
measured. `python -m benchmarks.results` writes them.
"""

from __future__ import annotations

import io
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import yaml

from agents import shipped as package
from agents.curves import COLOURS, Metrics, figure_of
from agents.policy import policy_shape, policy_trained, write_file
from agents.result import Result
from agents.tables import game_title
from benchmarks import measures
from benchmarks.measures import (
    Part,
    bars_of,
    exploiter_words,
    file_of,
    game_of,
    is_match,
    kept_json,
    parts,
    results_of,
    rules_of,
    table_of,
    title_of,
    training_words,
)
from domino_env import Rules

NOT_MEASURED = "Not measured."


def write_card(name: str) -> None:
    """Write README.md beside the file of a policy."""
    sections = {
        "": head(name),
        "Use": use(name),
        "Rules": rules_section(name),
        "Training": training(name),
        "Results": "\n\n".join(results(name)) or NOT_MEASURED,
        "What has to be reached": bars_text(bars_of(name)),
        "Limits": limits(name),
        "Reproduction": reproduction(name),
    }
    parts = [f"## {title}\n\n{text}" if title else text for title, text in sections.items()]
    write_file(file_of(name).with_name("README.md"), ("\n\n".join(parts) + "\n").encode())


def head(name: str) -> str:
    """The title, and what the policy is."""
    played = "matches" if is_match(name) else "single hands"
    where = f"`{game_of(name)}`, {title_of(table_of(name))}, {played}"
    also = [other for other, same in package.SAME.items() if same == name]
    serves = f" It is `{also[0]}` too, which is the same game." if also else ""
    return (
        f"# {name}\n\nA trained policy for {where}; it comes with the package.{serves} This page "
        "is written by `python -m benchmarks.results` from what has been measured."
    )


def use(name: str) -> str:
    """How to load it, and how to play it."""
    options = cli_rules(rules_of(name))
    code = f"""from agents import load

agent = load("{name}")
agent = load("{game_of(name)}")  # or that of whatever table and episode is played"""
    words = f"domino evaluate {name} expert {options}\ndomino play {name} {options}"
    return f"```python\n{code}\n```\n\n```\n{words}\n```"


def cli_rules(rules: Rules) -> str:
    """The options of the command line for these rules."""
    rest = {name: value for name, value in rules.given.items() if name != "seats"}
    settings = (f" --set {name}={json.dumps(value).strip(chr(34))}" for name, value in rest.items())
    return f"--rules {rules.preset} --seats {rules.seats}{''.join(settings)}"


def rules_section(name: str) -> str:
    """The rules by which it is measured, and those it was trained by."""
    trained = (f"`{game_title(Rules.from_dict(r))}`" for r in policy_shape(name).rules)
    return (
        f"Measured by: `{game_title(rules_of(name))}`. Trained by: {'; '.join(trained)}. "
        "By other rules at such a table it plays as if they were the nearest of those."
    )


# ---------------------------------------------------------------- training


def kept_training(name: str) -> tuple[dict[str, Any], list[bytes]]:
    """What is kept of a training run: about it, and lines of its metrics; nothing of another run.

    The file of the policy says how many decisions it was trained for, if its run did.
    """
    path = measures.TRAINING / f"{name}.jsonl"
    lines = path.read_bytes().splitlines() if path.exists() else []
    about = json.loads(lines[0]) if lines else {}
    trained = policy_trained(name)
    other = bool(about) and trained is not None and trained.decisions != about["decisions"]
    return ({}, []) if other else (about, lines[1:])


def training(name: str) -> str:
    """How long it was trained, and by which settings."""
    about, _ = kept_training(name)
    if not about:
        return (
            f"{NOT_MEASURED} `python -m benchmarks.policies curves RUN {name}` keeps it of a run."
        )
    config = {field: value for field, value in about["config"].items() if field != "rules"}
    text = yaml.safe_dump(config, sort_keys=False, default_flow_style=None).strip()
    return (
        f"{training_words(about)}, on {machine_words(about['machine'])}. What is not as "
        f"`domino train --help` has it:\n\n```yaml\n{text}\n```\n\nThe learning curve is in "
        f"`docs/images/training-{name}.png`, its figures in `results/training/{name}.jsonl`."
    )


def machine_words(machine: dict[str, Any]) -> str:
    """A machine in words."""
    cores = machine["cores"]
    return f"{cores} core{'' if cores == 1 else 's'} ({machine['processor']})"


def draw_training(name: str, path: Path) -> None:
    """Write the learning curves that are kept of a policy as a picture."""
    save_picture(figure_of(Metrics(kept_training(name)[1]), name), path)


def draw_exploiter(name: str, path: Path) -> None:
    """Write what an exploiter won while it learned as a picture."""
    from matplotlib.figure import Figure

    found = kept_json(name, "exploiter")
    decisions, mean, half = zip(*found["curve"], strict=True)
    x = [count / 1e6 for count in decisions]
    figure = Figure(figsize=(8, 3.5), layout="constrained")
    axes = figure.subplots()
    axes.axhline(0, color="#666666", linewidth=1)
    limit = measures.MOST_EXPLOITED
    axes.axhline(limit, color="black", linestyle="--", linewidth=1, label=f"bar, {limit:+.2f}")
    axes.plot(x, mean, color=COLOURS[0], marker="o", markersize=3, label="while it learns")
    low, high = zip(*((m - h, m + h) for m, h in zip(mean, half, strict=True)), strict=True)
    axes.fill_between(x, low, high, color=COLOURS[0], alpha=0.2, linewidth=0)
    axes.errorbar(
        x[-1:],
        found["mean"],
        found["ci95"],
        color=COLOURS[1],
        fmt="s",
        label="at the end, new deals",
    )
    axes.set_title(f"reward a game of an exploiter against {name}, 95% intervals", fontsize=10)
    axes.set_xlabel("decisions, millions")
    axes.grid(alpha=0.3)
    axes.legend(fontsize=8)
    save_picture(figure, path)


def save_picture(figure: Any, path: Path) -> None:
    """Write a figure of matplotlib as a PNG file of few colours, a third of the bytes."""
    from PIL import Image  # matplotlib brings it

    path.parent.mkdir(parents=True, exist_ok=True)
    content, small = io.BytesIO(), io.BytesIO()
    figure.savefig(content, format="png", dpi=80)
    Image.open(content).convert("RGB").quantize(128).save(small, "png", optimize=True)
    write_file(path, small.getvalue())


# ---------------------------------------------------------------- results


def results(name: str) -> list[str]:
    """The tables of all that was played with a policy, and its exploiter."""
    found = []
    for part in parts(name):
        played = results_of(name, part.word, part.variant)
        if played:
            found.append(f"{part_title(part)}:\n\n{results_table(played)}")
        if played and part.word == "plus" and (times := times_words(name)):
            found.append(times)
    if exploiter := kept_json(name, "exploiter"):
        found.append(
            f"An exploiter, a lower bound of what can be won of it: {bound_words(exploiter)}"
        )
    if found:
        found.insert(0, DUPLICATE)
    return found


DUPLICATE = """Duplicate play, ± is the 95% interval. The policy has one seat, or one pair, and the
other agent has all others."""


def part_title(part: Part) -> str:
    """The agent and the rules of a part."""
    return f"`{part.agent}`, {game_title(part.rules)}"


def results_table(found: Sequence[Result]) -> str:
    """Results of one agent as Markdown, as `python -m benchmarks.policies` prints them."""
    rows = [["against", "reward a game", "points", "won %", "drawn %", "lost %", "deals"]]
    for result in found:
        shares = (f"{100 * share:.1f}" for share in (result.wins, result.draws, result.losses))
        points, deals = f"{result.points:+.2f}", f"{result.deals:,}"
        rows.append([f"`{result.b}`", result.interval(), points, *shares, deals])
    return table(rows)


def table(rows: Sequence[Sequence[str]], left: int = 1) -> str:
    """Rows as a table in Markdown, the first row its headings, all but `left` columns right."""
    head, *rest = rows
    line = [*["---"] * left, *["--:"] * (len(head) - left)]
    return "\n".join(f"| {' | '.join(row)} |" for row in (head, line, *rest))


def times_words(name: str) -> str:
    """What a decision of a policy with search and of its opponents takes; "" if not measured."""
    found = kept_json(name, "times")
    told = (f"`{agent}` {ms:.2f} ms" for agent, ms in found.get("ms", {}).items())
    return f"CPU time of a decision: {', '.join(told)}." if found else ""


def bound_words(exploiter: dict[str, Any]) -> str:
    """What an exploiter came to, and whether it still got better."""
    late, half = exploiter["late_gain"], exploiter["late_gain_ci95"]
    last = "too short a curve to tell whether it had stopped improving"
    if late is not None:
        last = f"the last quarter of its curve is {late:+.3f} ± {half:.3f} above the one before"
    return f"{exploiter_words(exploiter)}, on {exploiter['deals']:,} new deals; {last}."


def bars_text(bars: Sequence[measures.Bar], named: bool = False) -> str:
    """The bars as a table; `named`: with the policies."""
    rows = [["policy", "", "expected", "measured", ""]]
    rows += [
        [f"`{b.policy}`", b.what, b.expected, b.found, f"**{b.verdict}**"]
        for b in sorted(bars, key=lambda b: ("not met", "not measured", "met").index(b.verdict))
    ]
    return table(rows, left=5) if named else table([row[1:] for row in rows], left=4)


def limits(name: str) -> str:
    """What the policy cannot do."""
    shape = policy_shape(name)
    lines = [f"It plays {title_of(table_of(name))} with the double-six set, and refuses all else."]
    if shape.temperature == 0:
        lines.append("It plays the likeliest move, always: who knows it can foresee what it does.")
    if shape.privileged:
        lines.append("Its value looks at all hands, which helped to train it; its moves do not.")
    lines.append("Weights are rounded to float16. It has not been measured against people.")
    open_bars = [bar for bar in bars_of(name) if not bar.met]
    lines += [f"{bar.what}: {bar.verdict} ({bar.expected})." for bar in open_bars]
    return "\n".join(f"- {line}" for line in lines)


def reproduction(name: str) -> str:
    """The commands that made the policy and this page."""
    return (
        "```\n"
        f"domino train policies/{name} --run runs/{name}\n"
        f"python -m agents.shipped runs/{name} {name}\n"
        f"python -m benchmarks.policies curves runs/{name} {name}\n"
        f"python -m benchmarks.policies {name}\n"
        "python -m benchmarks.results\n```"
    )
