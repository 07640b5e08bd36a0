"""The text form of a game: writing a record, reading it by replay, printing it (RULES.md 12).

    record_to_game(record)      checks a record and gives the game in the position reached
    game_to_record(game)        the record of a game; on records that this writes, the identity
    read_records(path)          the records of a JSON Lines file, each checked
    record_text(game)           the game for people to read

`Game.from_record` and `Game.to_record` are the first two.
"""

from __future__ import annotations

import json
import os
import textwrap
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any

import numpy as np

from domino_env import engine
from domino_env.deal import new_game, set_deal
from domino_env.errors import IllegalMove, RecordError, shown
from domino_env.moves import check_legal, dealt_hands, line_of, moves_of, parse_move
from domino_env.rules import Rules, RulesError
from domino_env.state import (
    MATCH,
    NOBODY,
    NOT_OVER,
    PLAYING,
    UNIT,
)
from domino_env.tiles import tile_text, tiles_text

OUTCOME = ("end", "winner", "pips", "written", "scores")
_KINDS = {dict: "object", list: "list", str: "text", int: "integer"}


@dataclass(eq=False)
class Played:
    """A game as its rounds: what a record tells, and what `Game` goes on from."""

    rules: Rules
    games: np.recarray  # GAME [1], the round in progress; at the end of the game, the last one
    finished: list[np.recarray] = field(default_factory=list)  # GAME [1] each, the rounds before
    given: bool = False  # the deal of the round in progress was given, not shuffled

    @property
    def rounds(self) -> list[np.recarray]:
        """All rounds in their order, each a record array [1]."""
        return [*self.finished, self.games]

    def move_on(self, action: int) -> None:
        """Make a legal move; where it ends a round and not the game, deal the next."""
        engine.move(self.games[0], action)
        self.deal_if_over()

    def deal_if_over(self) -> None:
        """Deal the next round of a match if this one is over."""
        g = self.games[0]
        if int(g.end) != PLAYING and int(g.over) == NOT_OVER:
            self.finished.append(self.games.copy())
            engine.next_round(g)
            self.given = False


# ---------------------------------------------------------------- writing


def game_to_record(game: Played) -> dict[str, Any]:
    """The record of a game: a dict of JSON's types.

    A round that nobody has moved in is written only if its deal was given.
    """
    rounds = game.rounds
    if int(rounds[-1][0].event_count) == 0 and not game.given:
        del rounds[-1]
    record: dict[str, Any] = {"rules": game.rules.to_dict(), "rounds": []}
    for n, games in enumerate(rounds):
        g = games[0]
        entry: dict[str, Any] = {
            "hands": [tiles_text(hand) for hand in dealt_hands(g)],
            "boneyard": " ".join(tile_text(t) for t in g.boneyard[: int(g.stock)]),
        }
        moves = [f"{seat} {move}" for seat, move in moves_of(g)]
        if not moves and _leader_is_drawn(game.rules, g):
            entry["leader"] = int(g.leader)
        entry["moves"] = moves
        record["rounds"].append(entry | _outcome(game.rules, rounds, n))
    if int(game.games[0].over) != NOT_OVER:
        record["result"] = _result(game)
    return record


def _leader_is_drawn(rules: Rules, g: engine.Record) -> bool:
    return rules.lead == "random" and int(g.by_rule) == 1


def _outcome(rules: Rules, rounds: list[np.recarray], n: int) -> dict[str, Any]:
    """The outcome of round n as a record says it; empty while it is being played."""
    g = rounds[n][0]
    if int(g.end) == PLAYING:
        return {}
    outcome: dict[str, Any] = {
        "end": "out" if int(g.end) == engine.OUT else "blocked",
        "winner": [p for p in range(rules.seats) if int(g.winner) >> p & 1],
        "pips": g.pips[: rules.seats].tolist(),
    }
    if rules.score != "none":
        scores = g.scores[: rules.sides]
        before = rounds[n - 1][0].scores[: rules.sides] if n else 0
        outcome["written"] = (scores - before).tolist()
        outcome["scores"] = scores.tolist()
    return outcome


def _result(game: Played) -> dict[str, Any]:
    """The result of a finished game: rewards, and the goats of a match with `loser` scoring."""
    g, rules = game.games[0], game.rules
    sixths = g.earned[: rules.seats].tolist()
    result = {"reward": [n // UNIT if n % UNIT == 0 else n / UNIT for n in sixths]}
    if rules.score == "loser" and int(g.episode) == MATCH:
        seats = range(rules.seats)
        result["goats"] = [p for p in seats if int(g.scores[p % rules.sides]) >= int(g.target)]
    return result


# ---------------------------------------------------------------- reading


def record_to_game(record: Mapping[str, Any], seed: int | None = None) -> Played:
    """Replay a record; gives the game in the position that it reaches.

    The rounds that the record does not hold are dealt by the random state of `seed`, by chance
    without one. Raises `RecordError` on every fault, and names the round, the move and the reason.
    """
    _check_kind("record", record, dict)
    rules = _rules_of(record)
    entries = _get("record", record, "rounds", list)
    game = Played(rules, new_game(rules, seed))
    if not entries:
        engine.reset(game.games[0])
    for n, entry in enumerate(entries):
        _check_kind(f"round {n}", entry, dict)
        _read_round(game, n, entry)
    _check_result(game, record)
    game.deal_if_over()
    return game


def read_records(path: str | os.PathLike[str]) -> Iterator[dict[str, Any]]:
    """The records of a JSON Lines file, as they stand there, each checked by replay.

    Raises `RecordError` at the first fault, with the number of its line, from 1.
    """
    with open(path, "rb") as file:
        for number, line in enumerate(file, 1):
            try:
                record = parse_record(line)
                record_to_game(record)
            except RecordError as error:
                raise RecordError(f"line {number}: {error}") from None
            yield record


def parse_record(line: bytes | str) -> dict[str, Any]:
    """One line of JSON, which must hold an object, or `RecordError`."""
    try:
        text = line.decode() if isinstance(line, bytes) else line
        record = json.loads(text.rstrip(), parse_constant=_refuse_constant)
    except json.JSONDecodeError as error:
        raise RecordError(f"the text is no JSON: {error.msg} (column {error.colno})") from None
    except RecursionError:
        raise RecordError("the text is no record: it is nested too deep") from None
    except ValueError as error:
        raise RecordError(f"the text is no JSON: {error}") from None
    _check_kind("record", record, dict)
    return record


def _refuse_constant(name: str) -> None:
    raise ValueError(f"found {name}, expected a number")


def _check_kind(name: str, value: object, kind: type) -> None:
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        raise RecordError(f"{name}: {shown(value)} is no {_KINDS[kind]}")


def _get(where: str, mapping: Mapping[str, Any], key: str, kind: type) -> Any:
    """A value that must be there, and of that kind."""
    if key not in mapping:
        raise RecordError(f"{where}: found no {key}, expected it as {_KINDS[kind]}")
    _check_kind(f"{where}: {key}", mapping[key], kind)
    return mapping[key]


def _get_texts(where: str, mapping: Mapping[str, Any], key: str) -> list[str]:
    texts = _get(where, mapping, key, list)
    for text in texts:
        _check_kind(f"{where}: {key}", text, str)
    return texts


def _rules_of(record: Mapping[str, Any]) -> Rules:
    mapping = _get("record", record, "rules", dict)
    _get("rules", mapping, "preset", str)
    try:
        return Rules.from_dict(mapping)
    except (ValueError, RecursionError) as error:
        raise RecordError(f"rules: {str(error).removeprefix('rules: ')}") from None


def _read_round(game: Played, n: int, entry: Mapping[str, Any]) -> None:
    """Deal and replay round n, and compare its outcome with the recorded one."""
    where = f"round {n}"
    if n:
        _close_round(game, n)
    hands, boneyard = _get_texts(where, entry, "hands"), _get(where, entry, "boneyard", str)
    texts = _get_texts(where, entry, "moves")
    moves = [_split_move(f"{where}, move {m}", text) for m, text in enumerate(texts)]
    leader = _leader(game.rules, n, entry, moves)
    try:
        set_deal(game.games, 0, game.rules, hands, boneyard, leader, later=n > 0)
    except RulesError as error:
        raise RecordError(f"{where}: {error}") from None
    game.given = True
    for m, (seat, text) in enumerate(moves):
        try:
            _replay_move(game, seat, text)
        except IllegalMove as error:
            reason = str(error).removeprefix("move: ")
            raise RecordError(f"{where}, move {m}: {reason}") from None
    _check_outcome(game, n, entry)


def _close_round(game: Played, n: int) -> None:
    """Put the round before round n to the finished ones."""
    g = game.games[0]
    if int(g.over) != NOT_OVER:
        raise RecordError(f"round {n}: the game is over, expected no more rounds")
    if int(g.end) == PLAYING:
        raise RecordError(f"round {n}: round {n - 1} is not over, expected no round behind it")
    game.finished.append(game.games.copy())


def _split_move(where: str, text: str) -> tuple[int, str]:
    """The seat and the move of a text like `0 6-5 R`."""
    seat, *move = text.split(maxsplit=1) or [""]
    if len(seat) != 1 or seat not in "0123456789" or not move:
        raise RecordError(f"{where}: {shown(text)} is no move, expected text like 0 6-5 R")
    return int(seat), move[0]


def _leader(
    rules: Rules, n: int, entry: Mapping[str, Any], moves: list[tuple[int, str]]
) -> int | None:
    """The leader that round n names; where it is drawn and not named, the first seat to move."""
    if "leader" in entry:
        return _get(f"round {n}", entry, "leader", int)
    if rules.lead == "random" and (n == 0 or rules.next_lead == "same"):
        return moves[0][0] if moves else _get(f"round {n}", entry, "leader", int)
    return None


def _replay_move(game: Played, seat: int, text: str) -> None:
    """Make a recorded move, or raise `IllegalMove`; the next round is not dealt yet."""
    g = game.games[0]
    if int(g.end) != PLAYING:
        raise IllegalMove("move: the round is over, expected no more moves")
    if seat != int(g.seat):
        raise IllegalMove(f"move: found seat {seat}, expected seat {g.seat} to move")
    action = parse_move(text, game.rules.set, lead=int(g.left) == NOBODY)
    check_legal(game.games, action)
    engine.move(g, action)


def _check_outcome(game: Played, n: int, entry: Mapping[str, Any]) -> None:
    """Compare the outcome keys that a round has; once it is over it must have its `end`."""
    expected = _outcome(game.rules, game.rounds, n)
    if expected and "end" not in entry:
        raise RecordError(f"round {n}: the round is over, expected its end, {expected['end']!r}")
    for key in OUTCOME:
        if key in entry and not _agrees(key, entry[key], expected.get(key)):
            wanted = expected.get(key, "none" if expected else "none, as the round is not over")
            raise RecordError(f"round {n}: {key}: found {shown(entry[key])}, expected {wanted}")


def _check_result(game: Played, record: Mapping[str, Any]) -> None:
    """Compare the keys that the result has; there is none before the end of the game."""
    if "result" not in record:
        return
    if int(game.games[0].over) == NOT_OVER:
        raise RecordError("result: found one, expected none, as the game is not over")
    result, expected = _get("record", record, "result", dict), _result(game)
    for key in ("reward", "goats"):
        if key in result and not _agrees(key, result[key], expected.get(key)):
            wanted = expected.get(key, "none")
            raise RecordError(f"result: {key}: found {shown(result[key])}, expected {wanted}")


def _agrees(key: str, found: Any, expected: Any) -> bool:
    """Whether a recorded outcome says the same; seats in any order, rewards within 1e-6."""
    if expected is None or type(found) is not type(expected):
        return False
    if isinstance(expected, str):
        return found == expected
    if key == "reward":
        return len(found) == len(expected) and all(map(_is_near, found, expected))
    if not all(type(number) is int for number in found):
        return False
    return (sorted(found) if key in ("winner", "goats") else found) == expected


def _is_near(found: Any, expected: float) -> bool:
    # No subtraction: an integer of JSON may be too large for a float.
    return type(found) in (int, float) and expected - 1e-6 <= found <= expected + 1e-6


# ---------------------------------------------------------------- for people


def record_text(game: Played | Mapping[str, Any]) -> str:
    """Every round of a game or a record readably: the deal, a column of moves a seat, the end.

    A record is replayed first, and raises `RecordError` as `record_to_game` does.
    """
    record = game_to_record(game if isinstance(game, Played) else record_to_game(game))
    preset, *fields = record["rules"].items()
    rows = [", ".join([preset[1], *(f"{name} {json.dumps(value)}" for name, value in fields)])]
    for n, entry in enumerate(record["rounds"]):
        rows += ["", f"Round {n}", *_round_rows(entry)]
    if "result" in record:
        rows += ["", *(_row(name, _listed(value)) for name, value in record["result"].items())]
    return "\n".join(rows)


def _round_rows(entry: Mapping[str, Any]) -> list[str]:
    moves = [(int(move[0]), move[2:]) for move in entry["moves"]]
    rows = [_row(f"seat {seat}", hand) for seat, hand in enumerate(entry["hands"])]
    rows.append(_row("boneyard", entry["boneyard"]))
    if "leader" in entry:
        rows.append(_row("leader", f"seat {entry['leader']}"))
    rows += _move_rows(moves, len(entry["hands"]))
    rows.append(_row("line", " ".join(f"{a}-{b}" for a, b in line_of(moves).tiles)))
    if "end" in entry:
        winner = " and ".join(f"seat {seat}" for seat in entry["winner"])
        rows.append(_row("end", f"{entry['end']}, {winner or 'nobody'} won"))
    return rows + [_row(key, _listed(entry[key])) for key in OUTCOME[2:] if key in entry]


def _move_rows(moves: list[tuple[int, str]], seats: int) -> list[str]:
    """The moves in columns, a row for each time around the table, with its first move's number."""
    rows = [["move", *(f"seat {seat}" for seat in range(seats))]]
    last = seats
    for seat, turn in groupby(enumerate(moves), key=lambda numbered: numbered[1][0]):
        (number, _), *_ = numbered = list(turn)
        words = [move for _, (_, move) in numbered]
        draws = words.count("draw")
        drawn = [] if not draws else ["draw" if draws == 1 else f"{draws} draws"]
        if seat <= last:
            rows.append([str(number), *[""] * seats])
        rows[-1][seat + 1] = ", ".join([*drawn, *(word for word in words if word != "draw")])
        last = seat
    width = 2 + max(len(cell) for row in rows for cell in row[1:])
    return [
        f"  {row[0]:<9} " + "".join(f"{cell:<{width}}" for cell in row[1:]).rstrip() for row in rows
    ]


def _row(name: str, text: str) -> str:
    """A name and its text, which wraps at 80 columns behind it."""
    return (
        textwrap.fill(text, 80, initial_indent=f"  {name:<9} ", subsequent_indent=" " * 12).rstrip()
        or f"  {name}"
    )


def _listed(numbers: list[float]) -> str:
    return " ".join(f"{number:g}" for number in numbers) or "none"
