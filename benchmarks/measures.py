"""What is measured of the shipped policies, where it is kept, and the bars that they have to clear.

Nothing is played here: `benchmarks.policies` plays, `benchmarks.results` tells. What was played by
another file of a policy than the one that is shipped now counts as not there.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.table import Table

from agents import shipped as package
from agents.policy import write_file
from agents.result import Budget, Result
from agents.tournament import Tournament, read_tournament
from benchmarks import opponents
from domino_env import Rules

TREE = Path(__file__).resolve().parent.parent
RESULTS = TREE / "results"
KEPT, TRAINING, SPEED = RESULTS / "policies", RESULTS / "training", RESULTS / "speed.json"
BOTS = opponents.BOTS
PIMC, SEARCH, SLOW_PIMC = "pimc:20", "+search:50", "pimc:100"
RATED = PIMC, "expert", "heaviest"  # whose ratings are told beside that of a policy
FREE_LEAD = "sin_robo-2", "sin_robo-pairs"  # measured with a free lead too
# Deals at the tables where search plays: until clear of zero after so many, and the most; fewer in
# pairs, where it takes longest. Then their seed: at two seats, where policies come closest to
# search, deals on which no earlier one has met it.
LOOKS = {"2": (5_000, 20_000, 1), "pairs": (1_000, 2_000, 0)}
MOST_MATCHES = 8_000  # against the policy for single hands, until clear of zero
PLUS_LOOK, PLUS_MOST = 500, 4_000  # the same, where search plays search
DEALS, MATCHES = 20_000, 2_000  # against bots; a match has many hands

# The bars that are numbers.
LEAST_FREE_2, LEAST_FREE_PAIRS = 0.21, 0.74  # reward a game, share of games won; of FREE_LEAD
MOST_EXPLOITED = 0.03  # reward a game


# ---------------------------------------------------------------- the policies and their games


def shipped() -> list[str]:
    """The names of the policies that are shipped, game by game, each file once."""
    names = [path.parent.name for path in package.POLICIES.glob(f"*/{package.POLICY_FILE}")]
    games = list(opponents.GAMES)
    return sorted(names, key=lambda name: (games.index(game_of(name)), is_match(name), name))


def is_shipped(name: str) -> bool:
    """Whether there is a policy of that name."""
    return file_of(name).is_file()


def file_of(name: str) -> Path:
    """The file of a policy."""
    return package.POLICIES / name / package.POLICY_FILE


def game_of(name: str) -> str:
    """The game of a policy."""
    return _parsed(name)[1]


def is_match(name: str) -> bool:
    """Whether it is a policy for matches."""
    return bool(_parsed(name)[2])


def table_of(name: str) -> str:
    """Its table: 2, 3, 4 or pairs."""
    return _parsed(name)[3]


def _parsed(name: str) -> re.Match[str]:
    found = re.fullmatch(rf"({'|'.join(opponents.GAMES)})(-match)?-([234]|pairs)", name)
    if found is None:
        expected = "GAME-TABLE or GAME-match-TABLE, as in sin_robo-pairs"
        raise ValueError(f"policy: found {name!r}, expected {expected}")
    return found


def title_of(table: str) -> str:
    """A table as `benchmarks.opponents` calls it: `2 seats`, `pairs`."""
    return table if table == "pairs" else f"{table} seats"


def rules_of(name: str) -> Rules:
    """The rules by which a policy is measured: those of the game at its table."""
    game, fields = game_of(name), opponents.TABLES[title_of(table_of(name))]
    if not is_match(name):
        return Rules.preset(game, **opponents.GAMES[game], **fields)
    return Rules.preset(game if game == "cabra" else f"{game}_series", **fields)


def fingerprint(name: str) -> str:
    """The SHA-256 of the file of a policy."""
    return hashlib.sha256(file_of(name).read_bytes()).hexdigest()


# ---------------------------------------------------------------- what is played with a policy


@dataclass(frozen=True)
class Part:
    """Matches of an agent, a shipped policy alone or with search, against others."""

    policy: str
    word: str
    rules: Rules
    others: Sequence[str]
    deals: int
    until_clear: int | None = None
    adds: str = ""  # to the name of the policy, for the agent
    variant: str = ""  # of the rules, in the name of the folder
    seed: int = 0

    @property
    def agent(self) -> str:
        """The name of the agent that is measured."""
        return self.policy + self.adds

    @property
    def folder(self) -> Path:
        """Where it is kept."""
        return KEPT / f"{self.policy}-{self.word}{self.variant}"

    @property
    def trained(self) -> dict[str, str]:
        """The fingerprints of the policies that play."""
        names = [self.policy, *(other for other in self.others if is_shipped(other))]
        return {name: fingerprint(name) for name in names}

    @property
    def plan(self) -> Tournament:
        """The tournament of which nothing has been played yet."""
        budget = Budget(self.deals, until_clear=self.until_clear)
        agents = [self.agent, *self.others]
        return Tournament(agents, self.rules, budget, self.seed, only=[self.agent])


def parts(name: str) -> list[Part]:
    """All that is played with a policy."""
    rules, table = rules_of(name), table_of(name)
    if is_match(name):
        found = [Part(name, "bots", rules, BOTS, MATCHES)]
        hand = name.replace("-match", "")
        match = Part(name, "match", rules, (hand,), MOST_MATCHES, MATCHES)
        return [*found, match] if is_shipped(hand) else found
    found = [Part(name, "bots", rules, BOTS, DEALS)]
    if name in FREE_LEAD:
        free = rules.replace(lead_tile="free")
        found.append(Part(name, "bots", free, BOTS, DEALS, variant="-lead-free"))
    if table in LOOKS:
        look, most, seed = LOOKS[table]
        found.append(Part(name, "search", rules, (PIMC,), most, look, seed=seed))
        found.append(Part(name, "plus", rules, (name, SLOW_PIMC), PLUS_MOST, PLUS_LOOK, SEARCH))
    return found


# ---------------------------------------------------------------- what is kept


def is_current(folder: Path, trained: dict[str, str]) -> bool:
    """Whether what is kept in a folder was played by these policies."""
    return read_json(folder / "trained.json") == trained


def kept(part: Part) -> Tournament | None:
    """What has been played of a part by the policies as they are now; None if nothing has."""
    found = read_tournament(part.folder) if is_current(part.folder, part.trained) else None
    planned = found is not None and found.arguments() == part.plan.arguments()
    return found if planned else None


def results_of(name: str, word: str, variant: str = "") -> list[Result]:
    """The results of the agent of a part, in the order of the others; none that are missing."""
    for part in parts(name):
        played = kept(part) if (part.word, part.variant) == (word, variant) else None
        if played is not None:
            found = [played.result(part.agent, other) for other in part.others]
            return [result for result in found if result is not None]
    return []


def kept_json(name: str, what: str) -> dict[str, Any]:
    """What is kept of the policy as it is now that is no tournament; nothing if nothing is."""
    found = read_json(json_path(name, what))
    return found if found.get("trained") == fingerprint(name) else {}


def json_path(name: str, what: str) -> Path:
    """Where that is kept."""
    return KEPT / f"{name}-{what}.json"


def keep_json(path: Path, content: dict[str, Any]) -> None:
    """Write a file as a whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    write_file(path, (json.dumps(content, indent=1) + "\n").encode())


def read_json(path: Path) -> dict[str, Any]:
    """What is in a file; nothing if there is none."""
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}


def exploiter_words(found: dict[str, Any]) -> str:
    """What an exploiter wins, of what is kept of it."""
    return f"{found['mean']:+.3f} ± {found['ci95']:.3f} after {found['minutes']:g} minutes"


def training_words(about: dict[str, Any]) -> str:
    """How long a policy was trained, of what is kept of its run."""
    return f"{about['decisions']:,} decisions in {about['seconds']:,.0f} s of training"


def machine() -> dict[str, Any]:
    """What this machine computes with."""
    return {"cores": os.cpu_count(), "processor": _processor()}


def _processor() -> str:
    path = Path("/proc/cpuinfo")  # of Linux
    text = path.read_text(encoding="utf-8") if path.exists() else ""
    found = re.search(r"^model name\s*: (.+)$", text, re.MULTILINE)
    return found[1].strip() if found else platform.processor() or platform.machine()


def strength(name: str) -> Tournament:
    """All agents at the table of a policy, in single hands: the bots among themselves as well.

    Those of docs/opponents.md are by the same rules, so all can be rated together.
    """
    whole = opponents.kept(game_of(name), title_of(table_of(name)))
    for part in parts(name):
        if part.word in ("bots", "search") and not part.variant and (played := kept(part)):
            whole.agents = list(dict.fromkeys([*whole.agents, *played.agents]))
            whole.results.update(played.results)
    return whole


# ---------------------------------------------------------------- bars


@dataclass(frozen=True)
class Bar:
    """What a policy has to reach; `met` is None as long as that has not been measured."""

    policy: str
    what: str
    expected: str
    found: str = ""
    met: bool | None = None

    @property
    def verdict(self) -> str:
        """Whether it is met, in words."""
        return "not measured" if self.met is None else "met" if self.met else "not met"


CLEAR = "interval above zero"


def all_bars() -> list[Bar]:
    """The bars of all policies that are shipped."""
    return [bar for name in shipped() for bar in bars_of(name)]


def bars_of(name: str) -> list[Bar]:
    """The bars of a policy."""
    bars = [beats_bots(name)]
    if not is_match(name) and table_of(name) in LOOKS:
        bars.append(beats(name, "search", f"beats `{PIMC}`"))
    if is_match(name) and game_of(name) == "cabra":
        bars.append(beats(name, "match", "beats the policy for single hands in matches"))
    if name in FREE_LEAD:
        bars.append(free_lead(name))
    if name == "sin_robo-2" or kept_json(name, "exploiter"):
        bars.append(exploited(name))
    return bars


def beats_bots(name: str) -> Bar:
    """The bar of all bots; its figure is the closest result."""
    bar, results = Bar(name, "beats every bot", CLEAR), results_of(name, "bots")
    if len(results) < len(BOTS):
        return bar
    least = min(results, key=lambda result: result.mean - result.ci95)
    return _reached(bar, f"closest `{least.b}`, {least.interval()}", least.mean > least.ci95)


def beats(name: str, word: str, what: str) -> Bar:
    """A bar of a part with one result."""
    bar, results = Bar(name, what, CLEAR), results_of(name, word)
    return bar if not results else _clear(bar, results[0])


def _clear(bar: Bar, result: Result) -> Bar:
    return _reached(bar, result.interval(), result.mean > result.ci95)


def _reached(bar: Bar, found: str, met: bool) -> Bar:
    return Bar(bar.policy, bar.what, bar.expected, found, met)


def free_lead(name: str) -> Bar:
    """How much is won of `heaviest` with a free lead."""
    pairs = table_of(name) == "pairs"
    expected = f"{LEAST_FREE_PAIRS:.0%} of games won" if pairs else f"{LEAST_FREE_2:+.2f}"
    bar = Bar(name, "against `heaviest` with a free lead", f"at least {expected}")
    for result in results_of(name, "bots", "-lead-free"):
        if result.b == "heaviest" and pairs:
            won = f"{100 * result.wins:.1f}% won, {result.interval()}"
            return _reached(bar, won, result.wins >= LEAST_FREE_PAIRS)
        if result.b == "heaviest":
            return _reached(bar, result.interval(), result.mean >= LEAST_FREE_2)
    return bar


def exploited(name: str) -> Bar:
    """What an exploiter wins of it."""
    bar = Bar(name, "an exploiter wins", f"at most {MOST_EXPLOITED:+.2f}")
    found = kept_json(name, "exploiter")
    if not found:
        return bar
    return _reached(bar, exploiter_words(found), found["mean"] <= MOST_EXPLOITED)


def bars_table(bars: Sequence[Bar]) -> Table:
    """The bars for the terminal."""
    table = Table(title="What the shipped policies have to reach; reward a game, 95% interval")
    for heading in ("policy", "", "expected", "found", "verdict"):
        table.add_column(heading, overflow="fold", no_wrap=heading in ("policy", "verdict"))
    for bar in bars:
        cells = (bar.policy, bar.what, bar.expected, bar.found, bar.verdict)
        table.add_row(*(cell.replace("`", "") for cell in cells))
    return table
