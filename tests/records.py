"""Records of tests: small sound ones, changed ones, and how they are refused."""

import copy
from pathlib import Path
from typing import Any

import pytest

from domino_env.errors import RecordError
from domino_env.record import (
    read_records,
    record_to_game,
)

CASES = Path(__file__).parent / "cases"

# Double-two, two hands of two, seat 0 leads. 0 2-2, 1 2-1 L, 0 1-0 L: seat 0 is out; 0-0 is left.
RULES = {"preset": "sin_robo", "hand_size": 2, "lead": "seat", "set": 2}
DEAL = {"hands": ["2-2 1-0", "2-1 0-0"], "boneyard": "1-1 2-0"}
MOVES = ["0 2-2", "1 2-1 L", "0 1-0 L"]
ENDED = {"end": "out", "winner": [0], "pips": [0, 0]}
OUT = {
    "rules": RULES,
    "rounds": [{**DEAL, "moves": MOVES, **ENDED}],
    "result": {"reward": [1, -1]},
}
# The same round in a match: seat 1 is left with 0-0, which counts 25 here.
MATCH_RULES = {**RULES, "preset": "cabra", "draw": "none", "target": 50}
MATCH_ROUND = {
    **DEAL,
    "moves": MOVES,
    "end": "out",
    "winner": [0],
    "pips": [0, 25],
    "written": [0, 25],
    "scores": [0, 25],
}


def changed(record: dict[str, Any], path: str, *value: Any) -> dict[str, Any]:
    """A copy of a record with what is at a path (`rounds.0.pips`) set, or removed."""
    new = copy.deepcopy(record)
    *way, last = [int(key) if key.isdigit() else key for key in path.split(".")]
    place: Any = new
    for key in way:
        place = place[key]
    if value:
        place[last] = value[0]
    else:
        del place[last]
    return new


def refusal(record: Any) -> str:
    """The one line with which a record is refused."""
    with pytest.raises(RecordError) as caught:
        record_to_game(record)
    message = str(caught.value)
    assert "\n" not in message
    assert len(message) < 300
    return message


def all_cases() -> list[dict[str, Any]]:
    """The records of positions.jsonl and random.jsonl."""
    return [r for kind in ("positions", "random") for r in read_records(CASES / f"{kind}.jsonl")]
