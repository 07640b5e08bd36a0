"""The page of results, the model cards and the table in README.md, from what is kept in results/.

    python -m benchmarks.results

plays nothing. `benchmarks.policies`, `benchmarks.opponents` and `benchmarks.nashconv` keep what
they measure there, `python -m benchmarks --save` keeps speeds. What is missing is left out, or
told as not measured.
"""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from agents import shipped as package
from agents.policy import write_file
from benchmarks import measures, nashconv, opponents, variants
from benchmarks.cards import (
    bars_text,
    bound_words,
    draw_exploiter,
    draw_training,
    kept_training,
    machine_words,
    part_title,
    results_table,
    table,
    times_words,
    write_card,
)
from benchmarks.measures import (
    BOTS,
    PIMC,
    TREE,
    all_bars,
    game_of,
    is_match,
    kept_json,
    parts,
    read_json,
    results_of,
    shipped,
    strength,
    training_words,
)

PAGE, README, IMAGES = TREE / "docs" / "results.md", TREE / "README.md", TREE / "docs" / "images"
MARKERS = "<!-- results -->", "<!-- /results -->"
SHOWN = (PIMC, *reversed(BOTS))  # the columns, the strongest first as far as they come so
SHORT = "random", "heaviest", "expert", PIMC  # those of README.md


def results() -> list[dict[str, Any]]:
    """Write the page, the cards and README's table; returns the bars as rows."""
    sections = {
        "What has to be reached": bars_section(),
        "Single hands": hands_section(),
        "A free lead": "\n\n".join(map(part_section, those_parts("bots", "-lead-free"))),
        "Matches": matches_section(),
        "With search": "\n\n".join(map(part_section, those_parts("plus"))),
        "Exploiters": exploiters_section(),
        "Small games, exactly": small_section(),
        "What each switch of the learner is worth": switches_section(),
        "Learning curves": training_section(),
        "Speed": speed_section(),
        "Machines and commands": COMMANDS,
    }
    told = (f"## {title}\n\n{text or NOTHING}" for title, text in sections.items())
    PAGE.parent.mkdir(parents=True, exist_ok=True)
    write_file(PAGE, ("\n\n".join([HEAD, *told]) + "\n").encode())
    for name in shipped():
        write_card(name)
    write_readme()
    return [vars(bar) for bar in all_bars()]


HEAD = """# Results

What the policies that come with the package reach. This page, their model cards
(`agents/policies/NAME/README.md`) and the table in the README are written by

```
python -m benchmarks.results
```

from what is kept in `results/`: every figure is one that a command below printed. Matches are
duplicate play ([how](evaluation.md)): reward a game, ± its 95% interval. A hand that is won
counts 1, and the losers share -1. At a table of 3 or 4 single seats the policy has one seat and
the other agent all others."""
NOTHING = "Not measured."
COMMANDS = """```
domino train policies/NAME --run runs/NAME              # trains a policy
python -m agents.shipped runs/NAME NAME                 # ships it
python -m benchmarks.policies curves runs/NAME NAME     # keeps its learning curve
python -m benchmarks.policies                           # plays what is missing
python -m benchmarks.opponents                          # the bots among themselves
python -m benchmarks.nashconv                           # small games
python -m benchmarks.variants                           # switches of the learner
python -m benchmarks --save                             # speed
python -m benchmarks.results                            # writes all this
```

Figures of matches follow from the policies and the seed, not from the machine. Where a machine
counts, it is told beside the figures."""


def bars_section() -> str:
    """All bars, and how many are met."""
    bars = all_bars()
    if not bars:
        return ""
    verdicts = [bar.verdict for bar in bars]
    counts = (f"{verdicts.count(what)} {what}" for what in ("met", "not met", "not measured"))
    return f"Of {len(bars)}: {', '.join(counts)}.\n\n{bars_text(bars, named=True)}"


# ---------------------------------------------------------------- strength


def hands_section() -> str:
    """A table for each game: the policy of each table against every bot and search."""
    found = [(game, hands_table(game)) for game in opponents.GAMES]
    told = [f"### {game}\n\n{text}" for game, text in found if text]
    return "\n\n".join([HANDS, *told]) if told else ""


HANDS = f"""{measures.DEALS:,} duplicate deals against each bot. Against `{PIMC}` as many as it
takes to be clear of zero, looked at after {measures.LOOKS["2"][0]:,}, twice and four times as many
(in pairs {measures.LOOKS["pairs"][0]:,} and twice as many). Elo is fitted to all pairings at that
table, with mean 0, those of [the opponents](opponents.md) among themselves too; that of `expert`
is told beside."""


def hands_table(game: str) -> str:
    """The policies of a game for single hands, a row each; "" if none has played."""
    names = [name for name in shipped() if game_of(name) == game and not is_match(name)]
    rows = [row for name in names if (row := hands_row(name))]
    same = [(n, s) for n, s in package.SAME.items() if measures.is_shipped(s) and "match" not in n]
    told = [f"`{s}` is `{n}` too: all tiles are dealt." for n, s in same if n.startswith(game)]
    heads = ["policy", "Elo", "Elo of `expert`", *(f"against `{bot}`" for bot in SHOWN)]
    return "\n\n".join([*([table([heads, *rows])] if rows else []), *told])


def hands_row(name: str) -> list[str]:
    """The ratings and results of a policy for single hands; nothing if it has not played."""
    results = [*results_of(name, "bots"), *results_of(name, "search")]
    found = {result.b: result.interval() for result in results}
    rated = strength(name).ratings() if found else {}
    elo = (rated.get(who) for who in (name, "expert"))
    told = ["" if rating is None else rating.text() for rating in elo]
    return [f"`{name}`", *told, *(found.get(bot, "") for bot in SHOWN)] if found else []


def those_parts(word: str, variant: str = "") -> list[measures.Part]:
    """The parts of all policies that have been played, at least in part."""
    every = (part for name in shipped() for part in parts(name))
    those = [part for part in every if (part.word, part.variant) == (word, variant)]
    return [part for part in those if results_of(part.policy, word, variant)]


def part_section(part: measures.Part) -> str:
    """The results of a part, with times where those were taken."""
    told = [f"{part_title(part)}:", results_table(results_of(part.policy, part.word, part.variant))]
    if part.word == "plus" and (times := times_words(part.policy)):
        machine = machine_words(kept_json(part.policy, "times")["machine"])
        told.append(f"{times} Measured on {machine}.")
    return "\n\n".join(told)


def matches_section() -> str:
    """The policies for matches, a row each."""
    rows = []
    for name in shipped():
        found = {result.b: result for result in results_of(name, "bots")} if is_match(name) else {}
        own = results_of(name, "match") if is_match(name) else []
        if found or own:
            cells = (found[bot].interval() if bot in found else "" for bot in SHOWN[1:])
            told = f"{own[0].interval()} ({own[0].deals:,})" if own else ""
            rows.append([f"`{name}`", told, *cells])
    if not rows:
        return ""
    bots = (f"against `{bot}`" for bot in SHOWN[1:])
    heads = ["policy", "against the policy for single hands (matches)", *bots]
    return f"Reward a match; {measures.MATCHES:,} duplicate matches of each bot.\n\n" + table(
        [heads, *rows]
    )


# ---------------------------------------------------------------- exploitability


def exploiters_section() -> str:
    """What exploiters won, with their curves."""
    told = []
    for name in shipped():
        if found := kept_json(name, "exploiter"):
            machine = machine_words(found["machine"])
            told.append(f"`{name}`, on {machine}: {bound_words(found)}")
        if found.get("curve"):
            picture = IMAGES / f"exploiter-{name}.png"
            draw_exploiter(name, picture)
            told.append(f"![exploiter of {name}](images/{picture.name})")
    return "\n\n".join([EXPLOITERS, *told]) if told else ""


EXPLOITERS = """A learner that plays against the policy alone, beginning as the policy itself, and
is measured on deals that it was not trained on: a lower bound of what can be won of it."""


def small_section() -> str:
    """NashConv of the learner on small games, at the end of the runs that are kept."""
    rows = [["game", "method", "NashConv", "runs", "target"]]
    for game, about in nashconv.GAMES.items():
        for method in nashconv.METHODS:
            runs = [nashconv.kept(game, method, seed) for seed in nashconv.SEEDS]
            last = [run.scores[-1].averaged for run in runs if run is not None]
            if last:
                told = nashconv.spread(last), str(len(last)), f"{about.target:g}"
                rows.append([about.title, method, *told])
    picture = nashconv.PICTURE.name
    told = [SMALL, table(rows, left=2), f"![NashConv over training](images/{picture})"]
    return "\n\n".join(told) if len(rows) > 1 else ""


SMALL = """The same learner on games that are small enough for an exact best response: median
(least to greatest) of the seeds; [more](exploitability.md)."""


# ---------------------------------------------------------------- training and speed


def switches_section() -> str:
    """The variants of the learner that have been measured."""
    return f"{SWITCHES}\n\n{variants.table()}" if variants.all_kept() else ""


SWITCHES = f"""Strength after {variants.MINUTES:g} minutes of CPU time on one thread, on
{variants.DEALS:,} duplicate deals; all games at once get as much time as all of them. Unless said
otherwise runs begin by imitating `expert`."""


def training_section() -> str:
    """The learning curves that are kept."""
    told = []
    for name in shipped():
        about, _ = kept_training(name)
        if about:
            picture = IMAGES / f"training-{name}.png"
            draw_training(name, picture)
            words = f"{training_words(about)}, on {machine_words(about['machine'])}"
            told.append(f"### {name}\n\n{words}.\n\n![{name}](images/{picture.name})")
    return "\n\n".join(told)


def speed_section() -> str:
    """What `python -m benchmarks --save` kept."""
    kept = read_json(measures.SPEED)
    rows = speed_rows(kept.get("rows", {}))
    if not rows:
        return ""
    head = f"Printed by `python -m benchmarks --save` on {machine_words(kept['machine'])}."
    return f"{head} {BF16}\n\n{table([['', 'reached', 'target'], *rows])}"


BF16 = """The rows of bf16 are slow on a processor that has no instructions for it;
the learner uses it where there are some ([more](training.md#speed))."""


def speed_rows(found: dict[str, list[dict[str, Any]]]) -> list[list[str]]:
    """Rows of benchmarks in the words and digits in which those print them."""
    rows: list[list[str]] = []
    for row in found.get("vector", []):
        target = "" if row["target"] is None else row["form"].format(row["target"])
        bound = "at most " if row["most"] else ""
        rows.append([row["name"], row["form"].format(row["reached"]), bound + target])
    for row in found.get("environment", []):
        what = f"`{row['name']}` in PettingZoo, times as fast as `connect_four_v3`"
        rows.append([what, f"{row['x']:.2f}", f"{row['target']:.1f}"])
    for row in found.get("bots", []):
        what = f"decisions of `{row['name']}` a second, in the game where it is slowest"
        rows.append([what, f"{min(row['rates'].values()):,.0f}", f"{row['target']:,.0f}"])
    for row in found.get("evaluate", []):
        if "wall" in row:
            what = f"10,000 duplicate deals of heaviest against random, {row['name']}, seconds"
            rows.append([what, f"{row['wall']:.1f}", "10"])
    for row in found.get("worlds", []):
        what = f"hidden worlds a second, 20 a position, {row['name']}"
        rows.append([what, f"{row['few']:,.0f}", "200,000"])
    for row in found.get("search", []):
        target = "20" if row["name"] == "sin_robo, pairs" else ""
        rows.append(
            [f"decisions of pimc:20 a second, {row['name']}", f"{row['rate']:,.1f}", target]
        )
    for row in found.get("train", []):
        rows += train_rows(row)
    return rows


def train_rows(row: dict[str, Any]) -> list[list[str]]:
    """The learner in one precision: decisions a second, and beside others in the same run."""
    share = f"{row['ours'] / row['bare network']:.0%}"
    rows = [
        [f"PPO, decisions a second, {row['name']}", f"{row['ours']:,.0f}", ""],
        [f"the same, of the bare network, {row['name']}", share, "60%"],
    ]
    for peer in (name for name in row if name.startswith("MaskablePPO")):
        if not math.isnan(row[peer]):
            target = "60" if row["name"] == "bf16" else "30"
            times = f"{row['ours'] / row[peer]:.1f}"
            rows.append([f"the same, times {peer}, {row['name']}", times, target])
    return rows


# ---------------------------------------------------------------- README


def write_readme() -> None:
    """Put the short form between the markers; says so if they are missing."""
    text = README.read_text(encoding="utf-8")
    first, last = MARKERS
    between = f"{re.escape(first)}.*?{re.escape(last)}"
    new, count = re.subn(between, lambda _: f"{first}{short()}\n{last}", text, flags=re.DOTALL)
    if count != 1:
        raise ValueError(f"{README}: found {count} times {' ... '.join(MARKERS)}, expected it once")
    write_file(README, new.encode())


def short() -> str:
    """The policies against a few agents, on lines of their own; nothing if none is shipped."""
    rows = [row for name in shipped() if (row := short_row(name))]
    bars = all_bars()
    met = sum(bar.met is True for bar in bars)
    heads = ["policy", *(f"`{agent}`" for agent in SHORT)]
    tail = f"Bars that they have to reach: {met} of {len(bars)} are met. {README_TAIL}"
    told = [README_HEAD, table([heads, *rows]) if rows else NOTHING, tail]
    return "\n" + "\n\n".join(told) if bars else ""


README_HEAD = """## Results

The trained policies that come with the package: reward a game (a match) against other agents on
duplicate deals, with its 95% interval."""
README_TAIL = """[`docs/results.md`](docs/results.md) has
all figures and learning curves, and each policy its model card in `agents/policies/`."""


def short_row(name: str) -> list[str]:
    """A policy against SHORT; nothing if it has not played."""
    results = [*results_of(name, "bots"), *results_of(name, "search")]
    found = {result.b: result.interval() for result in results}
    return [f"`{name}`", *(found.get(agent, "") for agent in SHORT)] if found else []


def main(words: Sequence[str]) -> int:
    """The command; returns the exit status, 2 with one line on bad input."""
    try:
        if words:
            raise ValueError(f"found {' '.join(words)}, expected no words")
        results()
    except (ValueError, OSError) as error:
        print(f"results: {error}", file=sys.stderr)
        return 2
    for path in (PAGE, README, *(measures.file_of(n).with_name("README.md") for n in shipped())):
        print(f"written: {relative(path)}")
    return 0


def relative(path: Path) -> Path:
    """A path from the top of the tree, if it is in it."""
    return path.relative_to(TREE) if path.is_relative_to(TREE) else path


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
