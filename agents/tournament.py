"""Tournaments: every agent against every other on the same deals, and ratings of them all.

The deals of all pairings are those of one seed. Two sides (2 seats, or pairs) mirror each other,
so a pairing is played once. With 3 or 4 single seats A in one seat against B in all others is not
the mirror of B against A, and both are played.

Letters: `N` agents.
"""

from __future__ import annotations

import contextlib
import hashlib
import math
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations, permutations
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import msgspec
from msgspec import Meta

from agents.base import Agent, AgentError
from agents.evaluate import MAX_SEED, evaluate
from agents.games import GameFile, check_new
from agents.ratings import Rating, ratings
from agents.result import NOTHING, UNKNOWN, Budget, Result, Tally, check_count
from agents.shipped import files_of
from domino_env.rules import Rules

FILE = "tournament.json"
Pairing = tuple[str, str]
Sum = Annotated[int, Meta(ge=-(2**62), le=2**62)]
WRITE_EVERY = 30.0  # seconds between two writings of a pairing that is being played
Progress = Callable[[int, int, str], None]  # pairings done, of how many, what is being played


@dataclass
class Tournament:
    """What came out of the pairings so far. Results are those of the first name of a pairing."""

    agents: list[str]
    rules: Rules
    budget: Budget
    seed: int
    only: list[str] = field(default_factory=list)  # in every pairing is one of these; []: of all
    results: dict[Pairing, Result] = field(default_factory=dict)
    failures: dict[Pairing, str] = field(default_factory=dict)  # messages of `AgentError`
    begun: Result | None = field(default=None, compare=False)  # of a pairing that was interrupted

    @property
    def sides(self) -> int:
        """The sides of a game."""
        return 2 if self.rules.teams else self.rules.seats

    @property
    def pairings(self) -> list[Pairing]:
        """All pairings that are to be played, in order."""
        every = combinations if self.sides == 2 else permutations
        only = set(self.only or self.agents)
        return [pair for pair in every(self.agents, 2) if only & set(pair)]

    @property
    def ended(self) -> bool:
        """Whether every pairing has been played, or has failed."""
        return all(pair in self.results or pair in self.failures for pair in self.pairings)

    def result(self, a: str, b: str) -> Result | None:
        """The result of `a` against `b`, mirrored if `b` played against `a`; None if there is none.

        Two sides are zero-sum (RULES.md 9), so the mirror is what the other side got.
        """
        found = self.results.get((a, b))
        mirrored = self.results.get((b, a)) if self.sides == 2 and found is None else None
        return found if mirrored is None else _mirror(mirrored)

    def ratings(self) -> dict[str, Rating | None]:
        """See `agents.ratings.ratings`."""
        return ratings(self.agents, self.results.values())

    def to_dict(self) -> dict[str, Any]:
        """All for JSON: arguments, ratings by agent, results by pairing, and the failures."""
        return {
            **self.arguments(),
            "ratings": {
                name: rating and {"elo": rating.elo, "ci95": _known(rating.ci95)}
                for name, rating in self.ratings().items()
            },
            "results": [result.to_dict() for result in self.results.values()],
            "failures": [
                {"a": a, "b": b, "error": error} for (a, b), error in self.failures.items()
            ],
        }

    def arguments(self) -> dict[str, Any]:
        """What was to be played."""
        rules = self.rules.to_dict()
        about = {"agents": self.agents, "rules": rules, **vars(self.budget), "seed": self.seed}
        return about | {"only": self.only}


def _known(number: float) -> float | None:
    return None if math.isnan(number) else number


def _mirror(result: Result) -> Result:
    return replace(
        result,
        a=result.b,
        b=result.a,
        mean=0.0 - result.mean,  # 0.0, where -mean is -0.0
        wins=result.losses,
        losses=result.wins,
        points=0.0 - result.points,
    )


def play_tournament(
    agents: Sequence[Agent],
    rules: Rules,
    deals: int | None,
    seed: int = 0,
    folder: str | Path | None = None,
    progress: Progress | None = None,
    *,
    until: float | None = None,
    until_clear: int | None = None,
    threads: int | None = None,
    save: str | Path | None = None,
    only: Sequence[str] = (),
) -> Tournament:
    """Play every pairing of `agents` by `agents.evaluate.evaluate`, on the deals of `seed`.

    `deals`, `until`, `until_clear` and `threads` are those of `evaluate`, for each pairing. With
    `only`, names, the pairings are those of these agents, with each other and with the rest.
    With a folder, `tournament.json` in it is written after each pairing and on the way; the same
    call goes on from there, within a pairing too, and plays again only what failed. `save` is a
    file that gets a record of every game of the pairings that do not fail. A pairing in which an
    agent fails is noted in `failures`, and the others are played. Ctrl-C ends the tournament
    (`ended` tells), and what there is is returned.
    Raises `ValueError` for bad numbers, names that are not all different, an agent that does not
    fit the rules (`AgentError`), a folder that holds another tournament, one whose agents have
    been trained further since, and a file that cannot take the games.
    """
    seed = check_count("seed", seed, 0, MAX_SEED)
    budget = Budget(deals, until, until_clear)
    _check(agents, rules, only)
    by_name = {agent.name: agent for agent in agents}
    played = Tournament(list(by_name), rules, budget, seed, list(only))
    file = _File(folder, played, save)
    with contextlib.nullcontext() if save is None else GameFile(save, file.saved) as games:
        file.write(played, games)
        for done, (a, b) in enumerate(played.pairings):
            if (a, b) in played.results:
                continue
            file.begin((a, b), played, games)

            def told(so_far: Result, done: int = done) -> None:
                if progress is not None:
                    what = f"{so_far.a} : {so_far.b} {so_far.interval()}"
                    progress(done, len(played.pairings), what)
                played.begun = so_far
                if file.is_due():
                    file.write(played, games)

            how: Any = vars(budget) | {"threads": threads, "save": games, "begun": played.begun}
            try:
                result = evaluate(by_name[a], by_name[b], rules, seed=seed, progress=told, **how)
            except AgentError as error:
                played.failures[a, b] = str(error)
                file.drop(played, games)
                continue
            except KeyboardInterrupt:  # before there was anything new
                break
            if result.interrupted:
                played.begun = result
                if file.path is not None:
                    file.write(played, games)
                break
            played.results[a, b], played.begun = result, None
            file.write(played, games)
    return played


def _check(agents: Sequence[Agent], rules: Rules, only: Sequence[str]) -> None:
    names = [agent.name for agent in agents]
    if len(names) < 2:
        found = f"{len(names)} agent" + ("" if len(names) == 1 else "s")
        raise ValueError(f"tournament: found {found}, expected at least two")
    for name in names:
        if names.count(name) > 1:
            raise ValueError(f"tournament: found the agent {name} twice, expected it once")
    for name in only:
        if name not in names:
            raise ValueError(f"only: found {name}, expected one of {', '.join(names)}")
    for agent in agents:
        agent.check(rules)


# ---------------------------------------------------------------- the file of a tournament


class _File:
    """The file of a tournament; without a folder, one that is never written."""

    def __init__(self, folder: str | Path | None, played: Tournament, save: Any) -> None:
        self.path = None if folder is None else Path(folder) / FILE
        self.about = {**played.arguments(), "save": None if save is None else _tidy(save)}
        self.about["trained"] = _fingerprints(played.agents)
        self.saved = 0  # bytes of the file of games
        self.start = 0  # how many of them are not of the pairing that is being played
        self.written = time.monotonic()
        if self.path is not None and self.path.parent.exists() and not self.path.parent.is_dir():
            raise ValueError(f"{self.path.parent}: found a file, expected a folder")
        if self.path is not None and self.path.exists():
            before = self._read(self.path, played)
            played.results, played.begun = before.results, before.begun
        elif save is not None:
            check_new(save)

    def _read(self, path: Path, played: Tournament) -> Tournament:
        """What is in the file; `ValueError` if it is not whole, or of another tournament."""
        kept, before = _decoded(path)
        saved_to = kept.save and _tidy(kept.save)
        about = {**before.arguments(), "save": saved_to, "trained": kept.trained}
        for name, value in self.about.items():
            if name == "trained" and about[name] != value:
                changed = [agent for agent in value if kept.trained.get(agent) != value[agent]]
                raise ValueError(
                    f"{path}: found results of {', '.join(changed)} before it was trained further, "
                    "expected another folder"
                )
            if name == "save" and about[name] != value:
                raise ValueError(f"{path}: found {_place(saved_to)}, expected {_place(value)}")
            if about[name] != value:
                raise ValueError(
                    f"{path}: found a tournament with {name} {about[name]}, expected {value}"
                )
        begun = [] if before.begun is None else [(before.begun.a, before.begun.b)]
        if not {*before.results, *begun} <= set(played.pairings):
            raise ValueError(f"{path}: found pairings of agents that it does not name")
        self.saved, self.start = kept.saved, kept.begun.start if kept.begun else kept.saved
        return before

    def begin(self, pair: Pairing, played: Tournament, games: GameFile | None) -> None:
        """Before a pairing is played: what has been begun is of this one, or nothing."""
        if played.begun is not None and (played.begun.a, played.begun.b) != pair:
            self.drop(played, games)
        if played.begun is None:
            self.start = 0 if games is None else games.kept

    def drop(self, played: Tournament, games: GameFile | None) -> None:
        """Take back what has been begun, and its games once the file no longer tells of them."""
        played.begun, self.saved = None, self.start
        self._put(played, games)
        if games is not None:
            games.cut(self.start)

    def is_due(self) -> bool:
        """Whether what has been begun should be written again."""
        return self.path is not None and time.monotonic() >= self.written + WRITE_EVERY

    def write(self, played: Tournament, games: GameFile | None) -> None:
        """Write the file as a whole or not at all, when the games that it tells of are safe."""
        if games is not None:
            games.keep()
            self.saved = games.kept
        self._put(played, games)

    def _put(self, played: Tournament, games: GameFile | None) -> None:
        nothing = not (played.results or played.begun or games is not None)
        if self.path is None or (nothing and not self.path.exists()):
            return
        self.path.parent.mkdir(parents=True, exist_ok=True)
        results = [
            {**result.to_dict(), "blocks": result.blocks} for result in played.results.values()
        ]
        content = {**self.about, "saved": self.saved, "results": results}
        if (begun := played.begun) is not None:
            content["begun"] = _Begun(begun.a, begun.b, begun.sums, self.start)
        temporary = self.path.with_name(self.path.name + ".new")
        with temporary.open("wb") as file:
            file.write(msgspec.json.encode(content))
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(self.path)
        self.written = time.monotonic()


def _tidy(path: str | Path) -> str:
    return os.path.normpath(path)


def _place(save: str | None) -> str:
    return "no file of games" if save is None else f"games saved to {save}"


class _Begun(msgspec.Struct, forbid_unknown_fields=True):
    a: str
    b: str
    sums: Annotated[tuple[Sum, ...], Meta(min_length=len(NOTHING), max_length=len(NOTHING))]
    start: Annotated[int, Meta(ge=0)]  # bytes of the file of games before its own


class _Kept(msgspec.Struct, forbid_unknown_fields=True):
    agents: list[str]
    rules: dict[str, int | bool | str]
    deals: int | None
    seed: int
    results: list[dict[str, Any]]
    until: float | None = None
    until_clear: int | None = None
    only: list[str] = []
    save: str | None = None
    saved: int = 0
    trained: dict[str, str] = {}
    begun: _Begun | None = None


def read_tournament(folder: str | Path) -> Tournament | None:
    """The tournament that is kept in a folder, as far as it has come; None if there is none.

    Raises `ValueError` if the file is not whole.
    """
    path = Path(folder) / FILE
    return _decoded(path)[1] if path.exists() else None


def _decoded(path: Path) -> tuple[_Kept, Tournament]:
    try:
        kept = msgspec.json.decode(path.read_bytes(), type=_Kept)
        results = [_result_of(figures) for figures in kept.results]
        budget = Budget(kept.deals, kept.until, kept.until_clear)
        rules = Rules.of(kept.rules)
        begun = kept.begun and _begun(kept.begun, kept, rules)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{path}: cannot be read as a tournament: {error}") from None
    by_pairing = {(result.a, result.b): result for result in results}
    about = (kept.agents, rules, budget, kept.seed, kept.only)
    return kept, Tournament(*about, by_pairing, begun=begun)


def _begun(begun: _Begun, kept: _Kept, rules: Rules) -> Result:
    if begun.sums[0] < 1 or begun.start > kept.saved:
        found = f"{begun.sums[0]} deals and games from byte {begun.start} on"
        raise ValueError(f"begun: found {found}, expected deals, and games that were saved")
    return Tally(begun.a, begun.b, rules, kept.seed, begun.sums).result()


def _fingerprints(agents: Sequence[str]) -> dict[str, str]:
    """The SHA-256 of the policies of each agent that has any."""
    files = {name: files_of(name) for name in agents}
    return {
        name: hashlib.sha256(b"".join(path.read_bytes() for path in found)).hexdigest()
        for name, found in files.items()
        if found
    }


_Figures = msgspec.defstruct(
    "_Figures",
    [
        (name, {"rules": dict[str, int | bool | str]}.get(name, kind))
        for name, kind in (get_type_hints(Result) | dict.fromkeys(UNKNOWN, float | None)).items()
        if name not in ("interrupted", "sums")
    ],
    forbid_unknown_fields=True,
)


def _result_of(figures: dict[str, Any]) -> Result:
    """What `Result.to_dict` was made from."""
    figures = msgspec.structs.asdict(msgspec.convert(figures, _Figures))
    unknown = {name: math.nan for name in UNKNOWN if figures[name] is None}
    return Result(**{**figures, "rules": Rules.of(figures["rules"]), **unknown})
