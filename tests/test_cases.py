"""Every case of tests/cases: positions and games come out as recorded, faults are refused."""

import json
from pathlib import Path
from typing import Any

import pytest

from domino_env.errors import RecordError
from domino_env.game import Game
from domino_env.record import parse_record, read_records, record_to_game

CASES = Path(__file__).parent / "cases"
MESSAGES = {
    "tile-dealt-twice-in-hands": "round 0: deal: found 6-1 2 times, expected every tile once",
    "unknown-tile-in-hand": "round 0: hand of seat 0: 7-1 is no tile of a double-six set",
    "tile-missing": "round 0: deal: 2-2 is neither in a hand nor in the boneyard",
    "wrong-seat-moves-twice": "round 0, move 1: found seat 0, expected seat 1 to move",
    "tile-of-another-hand": "round 0, move 1: seat 1 may not play 6-1 L (legal: 6-3 L)",
    "tile-does-not-fit-that-end": "round 0, move 1: seat 1 may not play 6-3 L (legal: 6-3 R)",
    "pass-while-holding-a-fitting-tile": "round 0, move 1: seat 1 may not pass (legal: 6-3 L)",
    "pass-instead-of-drawing": "round 0, move 1: seat 1 may not pass (legal: draw)",
    "draw-from-an-empty-boneyard": "round 0, move 3: seat 1 may not draw (legal: pass)",
    "draw-while-able-to-play": "round 0, move 1: seat 1 may not draw (legal: 6-3 L)",
    "right-side-of-equal-ends": "round 0, move 1: seat 1 may not play 6-3 R (legal: 6-3 L)",
    "both-with-one-double": "round 0, move 1: seat 1 may not play both (legal: 3-3 L, 5-4 R)",
    "forced-lead-not-led": "round 0, move 0: seat 0 may not play 6-1 (legal: 6-6)",
    "side-missing": "round 0, move 1: '6-3' was found without its side, expected L or R",
    "move-after-out": "round 0, move 3: the round is over, expected no more moves",
    "winner-differs": "round 0: winner: found [1], expected [0]",
    "written-differs": "round 0: written: found [14, 0], expected [3, 0]",
    "reward-differs": "result: reward: found [-1, 1], expected [1, -1]",
    "end-is-not-blocked": (
        "round 0: end: found 'blocked', expected none, as the round is not over"
    ),
    "round-after-the-game": "round 1: the game is over, expected no more rounds",
    "result-of-an-unfinished-round": ("result: found one, expected none, as the game is not over"),
    "seats-five": "rules: seats: 5 is out of range, expected 2 to 4",
    "hand-size-too-big": (
        "rules: hand_size: 15 tiles x 2 seats is more than the 28 of a double-six set"
    ),
    "teams-of-three": "rules: teams: found with 3 seats, expected 4 seats",
    "unknown-field": "rules: there is no field 'handsize', did you mean hand_size?",
    "unknown-value": "rules: draw: there is no 'always', expected none, one or until_playable",
    "bad-json-cut-off": "the text is no JSON: Expecting ',' delimiter (column 241)",
}


def cases(kind: str) -> list[Any]:
    """The cases of a file, each named by its `name` or its line."""
    lines = (CASES / f"{kind}.jsonl").read_text().splitlines()
    records = [json.loads(line) for line in lines]
    return [pytest.param(r, id=r.get("name", f"{kind}-{n}")) for n, r in enumerate(records, 1)]


def legal_of(game: Game) -> list[str]:
    """All legal moves with the seat, sorted as in the cases."""
    return sorted(f"{game.seat} {move}" for move in game.legal_moves())


@pytest.mark.parametrize("record", cases("positions") + cases("random"))
def test_the_legal_moves_are_those_of_the_case_before_each_move(record):
    for n, entry in enumerate(record["rounds"]):
        start = {key: entry[key] for key in ("hands", "boneyard")}
        start |= {"moves": [], "leader": int((entry["moves"] or entry["legal"][0])[0][0])}
        rounds = [*record["rounds"][:n], start]
        game = Game.from_record({"rules": record["rules"], "rounds": rounds})
        for move, legal in zip(entry["moves"], entry["legal"], strict=False):
            assert legal_of(game) == legal
            game.play(move[2:])
        if "end" in entry:
            assert len(entry["legal"]) == len(entry["moves"])
            assert game.over or game.round == n + 1
        else:
            assert legal_of(game) == entry["legal"][len(entry["moves"])]


@pytest.mark.parametrize("record", cases("positions") + cases("random"))
def test_the_outcome_is_that_of_the_case(record):
    game = Game.from_record(record)
    written = game.to_record()
    for entry, recorded in zip(written["rounds"], record["rounds"], strict=True):
        assert entry["moves"] == recorded["moves"]
        for key in ("end", "winner", "pips", "written", "scores"):
            assert entry.get(key) == recorded.get(key)
    assert game.over == ("result" in record)
    if game.over:
        assert written["result"] == record["result"]
        assert game.rewards == pytest.approx(record["result"]["reward"], abs=1e-6)


@pytest.mark.parametrize("record", cases("errors"))
def test_a_faulty_case_is_refused_in_one_line(record):
    with pytest.raises(RecordError) as caught:
        record_to_game(parse_record(record["text"]) if "text" in record else record)
    assert str(caught.value) == MESSAGES[record["name"]]


@pytest.mark.parametrize("record", cases("errors"))
def test_a_faulty_line_of_a_file_is_named(record, tmp_path):
    good = (CASES / "positions.jsonl").read_text().splitlines()[:2]
    path = tmp_path / "games.jsonl"
    path.write_text("\n".join([*good, record.get("text") or json.dumps(record), *good]))
    read = read_records(path)
    assert [next(read)["name"], next(read)["name"]] == [json.loads(line)["name"] for line in good]
    with pytest.raises(RecordError) as caught:
        next(read)
    assert str(caught.value) == f"line 3: {MESSAGES[record['name']]}"
