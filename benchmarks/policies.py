"""The shipped policies, measured: against bots and search, in matches, by exploiters, with search.

    python -m benchmarks.policies [WORD ...] [NAME ...] [--minutes M]
    python -m benchmarks.policies curves RUN NAME

NAME is a folder of agents/policies, WORD what is to be played:

    bots       every bot; of two policies with a free lead too
    search     pimc:20, at two seats and in pairs, until clear of zero
    match      of a match policy: the one for single hands, in matches
    exploiter  what a learner wins of it that trains for M minutes (10); of sin_robo-2
    plus       NAME+search:50 against NAME and pimc:100; of sin_robo-2 and sin_robo-pairs

Without a word all of them, without a name all policies; then the bars are printed. The two that
are about few policies are about others if word and name are both given. Every pairing
is kept in results/policies while it is played, with the SHA-256 of the policies in it: what is
missing is played, from where it was stopped; what was played by another policy of that name, or on
other deals, is played again.
`curves` keeps what is told of a training run in results/training, from the folder of the run.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from agents import load
from agents.curves import PANELS, Metrics
from agents.options import progress_bar
from agents.policy import write_file
from agents.tables import results_table
from agents.tournament import FILE, play_tournament
from benchmarks import measures
from benchmarks.measures import (
    Part,
    all_bars,
    bars_table,
    fingerprint,
    json_path,
    keep_json,
    kept,
    kept_json,
    machine,
    parts,
    rules_of,
    shipped,
    strength,
)
from domino_env import Rules

WORDS = "bots", "search", "match", "exploiter", "plus"
# Of these what takes long is played if no policy is named.
FEW = {"exploiter": ("sin_robo-2",), "plus": ("sin_robo-2", "sin_robo-pairs")}
MINUTES, EXPLOITER_DEALS = 10.0, 20_000
RUNS = measures.TREE / "runs"  # of the exploiters
TIMED_GAMES = 8  # together, for the time of a decision
LINES = 100  # that are kept of the metrics of a run


def policies(words: Sequence[str] = (), minutes: float = MINUTES) -> list[dict[str, Any]]:
    """Measure what is missing, and print the ratings and the bars; returns the bars as rows.

    Raises `ValueError` for a word that is neither one of WORDS nor a policy.
    """
    picked, names = chosen(words)
    if all(measured(word, name, minutes) for word in picked for name in of_word(word, words)):
        Console().print(ratings_table(names))
        Console().print(bars_table(all_bars()))
    return [asdict(bar) for bar in all_bars()]


def chosen(words: Sequence[str]) -> tuple[list[str], list[str]]:
    """What is to be played, and the policies that were named."""
    known = shipped()
    for word in words:
        if word not in WORDS and word not in known:
            near = get_close_matches(word, [*WORDS, *known], n=1)
            expected = f"{', '.join(WORDS)} or a policy: {', '.join(known) or 'none is shipped'}"
            hint = f"did you mean {near[0]}?" if near else f"expected {expected}"
            raise ValueError(f"policies: found {word!r}, {hint}")
    picked = [word for word in WORDS if word in words]
    return picked or [*WORDS], [name for name in known if name in words] or known


def of_word(word: str, words: Sequence[str]) -> Sequence[str]:
    """The policies that a word is about: those that were named, few if it takes long."""
    _, names = chosen(words)
    asked = word in words and not set(words) <= set(WORDS)
    return names if asked or word not in FEW else [name for name in names if name in FEW[word]]


def measured(word: str, name: str, minutes: float) -> bool:
    """Play what is missing of a policy, and print it; whether it came to its end."""
    if word == "exploiter":
        return exploit(name, minutes)
    return all(play(part) for part in parts(name) if part.word == word)


def play(part: Part) -> bool:
    """Play what is missing of a part, and print it; whether it was played to its end."""
    if kept(part) is None:  # what is there was played by other policies, or otherwise
        (part.folder / FILE).unlink(missing_ok=True)
        keep_json(part.folder / "trained.json", part.trained)
    with progress_bar(part.folder.name) as bar:
        played = play_tournament(
            [load(name) for name in (part.agent, *part.others)],
            part.rules,
            part.deals,
            seed=part.seed,
            until_clear=part.until_clear,
            folder=part.folder,
            progress=bar,
            only=[part.agent],
        )
    results = [played.result(part.agent, other) for other in part.others]
    if found := [result for result in results if result is not None]:
        Console().print(results_table(found))
    for error in played.failures.values():
        print(error, file=sys.stderr)
    if part.word == "plus" and played.ended:
        show_times(part)
    return played.ended


def ratings_table(names: Sequence[str]) -> Table:
    """The rating of each policy for single hands among all agents of its table."""
    table = Table(title="Elo of mean 0 at each table, fitted with docs/opponents.md")
    for heading in ("policy", "Elo", *measures.RATED):
        table.add_column(heading, justify="left" if heading == "policy" else "right")
    for name in names:
        rated = {} if measures.is_match(name) else strength(name).ratings()
        if rated.get(name) is not None:
            found = (rated.get(who) for who in (name, *measures.RATED))
            table.add_row(name, *("" if rating is None else rating.text() for rating in found))
    return table


# ---------------------------------------------------------------- exploiters


def exploit(name: str, minutes: float) -> bool:
    """Train an exploiter of a policy, unless one has been trained as long; whether it is there."""
    found = kept_json(name, "exploiter")
    if found.get("minutes", 0) < minutes:
        found = exploiter_of(name, minutes)
        if found is None:
            return False
        keep_json(json_path(name, "exploiter"), found)
    print(f"{name}: an exploiter wins {measures.exploiter_words(found)}")
    return True


def exploiter_of(name: str, minutes: float) -> dict[str, Any] | None:
    """What an exploiter comes to, with its curve; None if it was interrupted."""
    from agents import exploiter

    run = RUNS / f"exploiter-{name}-{time.strftime('%Y%m%d-%H%M%S')}"
    config = exploiter.exploiter_config(name, rules_of(name), minutes)
    bound = exploiter.exploit(config, run, EXPLOITER_DEALS)
    if bound is None:
        return None
    about = {"minutes": minutes, "machine": machine(), "trained": fingerprint(name)}
    return bound.to_dict() | about


# ---------------------------------------------------------------- time of a decision


def show_times(part: Part) -> None:
    """Time the agents of a part, unless that has been done, and print it."""
    found = kept_json(part.policy, "times")
    if not found:
        times = {name: decision_ms(name, part.rules) for name in (part.agent, *part.others)}
        found = {"ms": times, "machine": machine(), "trained": fingerprint(part.policy)}
        keep_json(json_path(part.policy, "times"), found)
    for agent, ms in found["ms"].items():
        print(f"{agent}: {ms:.2f} ms of CPU a decision")


def decision_ms(name: str, rules: Rules) -> float:
    """Milliseconds of CPU a decision, TIMED_GAMES games played together by the agent alone.

    A decision is a position with more than one legal move.
    """
    from benchmarks.search import played

    agent: Any = load(name, seed=0)
    for games, seed in ((1, 1000), (TIMED_GAMES, 1)):  # the first compiles
        spent = {"all": 0.0}
        decisions = sum(len(view) for view in played(agent, rules, games, seed, spent))
    return 1e3 * spent["all"] / decisions


# ---------------------------------------------------------------- learning curves


def keep_curves(run: Path, name: str) -> None:
    """Keep what is told of a training run: a line about it, then some lines of its metrics.

    The machine is that of this call. Raises `ValueError` or `OSError` where the folder is no run.
    """
    from agents.checkpoint import STATE_FILE, read_checkpoint
    from agents.config import read_config
    from agents.ppo import Config
    from agents.run import CHECKPOINT, CONFIG_FILE, METRICS_FILE
    from benchmarks.nashconv import settings_of

    rules_of(name)  # checks it
    config = read_config(run / CONFIG_FILE, Config)
    numbers, _ = read_checkpoint(run / CHECKPOINT / STATE_FILE)
    about = {
        "decisions": numbers.decisions,
        "seconds": round(numbers.seconds, 1),
        "config": settings_of(config),
        "machine": machine(),
    }
    metrics = Metrics((run / METRICS_FILE).read_bytes().splitlines())
    lines = [about, *thinned(metrics.lines)]
    measures.TRAINING.mkdir(parents=True, exist_ok=True)
    content = "".join(json.dumps(line) + "\n" for line in lines)
    write_file(measures.TRAINING / f"{name}.jsonl", content.encode())
    print(f"{name}: {measures.training_words(about)}, {len(lines) - 1} lines of metrics kept")


def thinned(lines: Sequence[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """At most LINES of metrics, at equal distances; up to half of them are evaluations."""
    evaluated = [k for k, line in enumerate(lines) if any(n.startswith("eval/") for n in line)]
    rest = sorted(set(range(len(lines))) - set(evaluated))
    some = spread(evaluated, LINES // 2)
    for k in sorted([*some, *spread(rest, LINES - len(some))]):
        names = ("decisions", *(n for n in lines[k] if n.startswith("eval/") or n in PANELS))
        yield {name: _rounded(lines[k][name]) for name in names}


def spread(items: Sequence[int], most: int) -> list[int]:
    """The items, or `most` of them, the first and the last among these."""
    if len(items) <= most:
        return list(items)
    return [items[round(k * (len(items) - 1) / (most - 1))] for k in range(most)]


def _rounded(figure: float | None) -> float | None:
    if figure is None:
        return None
    return round(figure) if abs(figure) >= 1e4 else float(f"{figure:.5g}")


# ---------------------------------------------------------------- the command


def main(arguments: Sequence[str] | None = None) -> int:
    """The command; returns the exit status, 2 with one line on bad input."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.policies",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("words", nargs="*", metavar="WORD or NAME")
    parser.add_argument("--minutes", type=float, default=MINUTES, metavar="M")
    found = parser.parse_args(arguments)
    try:
        if found.words[:1] != ["curves"]:
            policies(found.words, found.minutes)
        elif len(found.words) == 3:
            keep_curves(Path(found.words[1]), found.words[2])
        else:
            words = " ".join(found.words[1:]) or "nothing"
            raise ValueError(f"curves: found {words}, expected RUN NAME")
    except (ValueError, OSError) as error:
        print(f"policies: {str(error).removeprefix('policies: ')}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
