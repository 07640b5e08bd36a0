"""Faults of a record: each is refused in one line, with its place and reason (RULES.md 12)."""

import copy
import random
from typing import Any

import pytest
from records import (
    DEAL,
    ENDED,
    MATCH_ROUND,
    MATCH_RULES,
    MOVES,
    OUT,
    RULES,
    all_cases,
    changed,
    refusal,
)

from domino_env.errors import RecordError
from domino_env.record import (
    game_to_record,
    record_to_game,
)


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        ("rules", [], "record: found no rules, expected it as object"),
        ("rules", [None], "record: rules: None is no object"),
        ("rules", ["cabra"], "record: rules: 'cabra' is no object"),
        ("rules.preset", [], "rules: found no preset, expected it as text"),
        ("rules.preset", [3], "rules: preset: 3 is no text"),
        ("rules.preset", ["cobra"], "rules: preset: there is no 'cobra', did you mean cabra?"),
        ("rules.seats", ["2"], "rules: seats: '2' is no integer, expected 2 to 4"),
        ("rules.seats", [2.0], "rules: seats: 2.0 is no integer, expected 2 to 4"),
        ("rules.teams", [0], "rules: teams: 0 is no switch, expected true or false"),
        ("rounds", [], "record: found no rounds, expected it as list"),
        ("rounds", [{}], "record: rounds: {} is no list"),
        ("rounds.0", [[]], "round 0: [] is no object"),
        ("rounds.0.hands", [], "round 0: found no hands, expected it as list"),
        ("rounds.0.hands", ["2-2 1-0"], "round 0: hands: '2-2 1-0' is no list"),
        ("rounds.0.hands", [["2-2 1-0", 7]], "round 0: hands: 7 is no text"),
        ("rounds.0.hands", [[["2-2"], "1-0"]], "round 0: hands: ['2-2'] is no text"),
        ("rounds.0.hands", [["2-2 1-0"]], "round 0: hands: found 1, expected 2, one a seat"),
        (
            "rounds.0.hands",
            [["2-2 1-0", "2-1", "0-0"]],
            "round 0: hands: found 3, expected 2, one a seat",
        ),
        (
            "rounds.0.hands",
            [["2-2 1-0", "2-1, 0-0"]],
            "round 0: hand of seat 1: '2-1,' is no tile of a double-two set, "
            "expected text like 2-0",
        ),
        (
            "rounds.0.hands",
            [["2-2 1-0 2-1", "0-0"]],
            "round 0: hand of seat 0: found 3 tiles, expected 2",
        ),
        (
            "rounds.0.hands",
            [["2-2 1-0 2-2", "2-1 0-0"]],
            "round 0: deal: found 2-2 2 times, expected every tile once",
        ),
        ("rounds.0.boneyard", [], "round 0: found no boneyard, expected it as text"),
        ("rounds.0.boneyard", [["1-1"]], "round 0: boneyard: ['1-1'] is no text"),
        (
            "rounds.0.boneyard",
            ["1-1"],
            "round 0: deal: 2-0 is neither in a hand nor in the boneyard",
        ),
        (
            "rounds.0.boneyard",
            ["1-1 2-0 0-1"],
            "round 0: deal: found 1-0 2 times, expected every tile once",
        ),
        ("rounds.0.boneyard", ["3-1"], "round 0: boneyard: 3-1 is no tile of a double-two set"),
        ("rounds.0.leader", ["0"], "round 0: leader: '0' is no integer"),
        ("rounds.0.leader", [False], "round 0: leader: False is no integer"),
        ("rounds.0.leader", [None], "round 0: leader: None is no integer"),
        ("rounds.0.leader", [-1], "round 0: leader: there is no seat -1, expected 0 to 1"),
        ("rounds.0.moves", [], "round 0: found no moves, expected it as list"),
        ("rounds.0.moves", ["0 2-2"], "round 0: moves: '0 2-2' is no list"),
        ("rounds.0.moves", [[{}]], "round 0: moves: {} is no text"),
        ("rounds.0.moves.2", [""], "round 0, move 2: '' is no move, expected text like 0 6-5 R"),
        ("rounds.0.moves.2", ["0"], "round 0, move 2: '0' is no move, expected text like 0 6-5 R"),
        (
            "rounds.0.moves.2",
            ["1-0 L"],
            "round 0, move 2: '1-0 L' is no move, expected text like 0 6-5 R",
        ),
        ("rounds.0.moves.2", ["7 1-0 L"], "round 0, move 2: found seat 7, expected seat 0 to move"),
        (
            "rounds.0.moves.2",
            ["-1 1-0 L"],
            "round 0, move 2: '-1 1-0 L' is no move, expected text like 0 6-5 R",
        ),
        (
            "rounds.0.moves.2",
            ["0 1-0 X"],
            "round 0, move 2: '1-0 X' is no move, expected text like 6-5 R or pass",
        ),
        (
            "rounds.0.moves.2",
            ["0 1-0 L L"],
            "round 0, move 2: '1-0 L L' is no move, expected text like 6-5 R or pass",
        ),
        ("rounds.0.moves.2", ["0 3-0 L"], "round 0, move 2: 3-0 is no tile of a double-two set"),
        (
            "rounds.0.moves.2",
            ["0 both"],
            "round 0, move 2: seat 0 may not play both (legal: 1-0 L)",
        ),
        (
            "rounds.0.moves.2",
            ["0 Pass"],
            "round 0, move 2: 'Pass' is no tile of a double-two set, expected text like 2-0",
        ),
        (
            "rounds.0.moves.0",
            ["0 2-2 L"],
            "round 0, move 0: '2-2 L' was found as the lead, expected a tile alone",
        ),
        ("rounds.0.moves.0", ["0 pass"], "round 0, move 0: seat 0 may not pass (legal: 1-0, 2-2)"),
        ("rounds.0.end", ["blocked"], "round 0: end: found 'blocked', expected out"),
        ("rounds.0.end", [None], "round 0: end: found None, expected out"),
        ("rounds.0.winner", [[]], "round 0: winner: found [], expected [0]"),
        ("rounds.0.winner", [[0, 0]], "round 0: winner: found [0, 0], expected [0]"),
        ("rounds.0.winner", [[False]], "round 0: winner: found [False], expected [0]"),
        ("rounds.0.winner", [0], "round 0: winner: found 0, expected [0]"),
        ("rounds.0.pips", [[0, 0.0]], "round 0: pips: found [0, 0.0], expected [0, 0]"),
        ("rounds.0.pips", [[0]], "round 0: pips: found [0], expected [0, 0]"),
        ("rounds.0.written", [[0, 0]], "round 0: written: found [0, 0], expected none"),
        ("rounds.0.scores", [[0, 0]], "round 0: scores: found [0, 0], expected none"),
        ("result", [None], "record: result: None is no object"),
        ("result.reward", [[1, -1, 0]], "result: reward: found [1, -1, 0], expected [1, -1]"),
        ("result.reward", [[1, "-1"]], "result: reward: found [1, '-1'], expected [1, -1]"),
        ("result.reward", [[True, -1]], "result: reward: found [True, -1], expected [1, -1]"),
        (
            "result.reward",
            [[float("nan"), -1]],
            "result: reward: found [nan, -1], expected [1, -1]",
        ),
        ("result.goats", [[1]], "result: goats: found [1], expected none"),
    ],
)
def test_a_fault_is_told_with_its_place_and_reason(path, value, message):
    assert refusal(changed(OUT, path, *value)) == message


@pytest.mark.parametrize("record", [None, 3, "cabra", [OUT], b"{}"])
def test_what_is_no_object_is_no_record(record):
    assert refusal(record).endswith("is no object")


def test_an_unfinished_round_has_no_outcome_and_no_round_behind_it():
    open_round = {**DEAL, "moves": MOVES[:2]}
    for key, value in ENDED.items():
        record = {"rules": RULES, "rounds": [{**open_round, key: value}]}
        assert refusal(record) == (
            f"round 0: {key}: found {value!r}, expected none, as the round is not over"
        )
    record = {"rules": RULES, "rounds": [open_round, open_round]}
    assert refusal(record) == "round 1: round 0 is not over, expected no round behind it"
    record = {"rules": RULES, "rounds": [], "result": {"reward": [0, 0]}}
    assert refusal(record) == "result: found one, expected none, as the game is not over"


def test_goats_and_scores_of_a_match_must_agree():
    last = {**copy.deepcopy(MATCH_ROUND), "scores": [0, 50]}
    record = {
        "rules": MATCH_RULES,
        "rounds": [MATCH_ROUND, last],
        "result": {"reward": [1, -1], "goats": [1]},
    }
    record_to_game(record)
    assert refusal(changed(record, "result.goats", [])) == "result: goats: found [], expected [1]"
    assert refusal(changed(record, "rounds.1.scores", [0, 25])) == (
        "round 1: scores: found [0, 25], expected [0, 50]"
    )
    assert refusal(changed(record, "rounds.1.written", [0, 50])) == (
        "round 1: written: found [0, 50], expected [0, 25]"
    )
    assert refusal({**record, "rounds": [MATCH_ROUND, last, last]}) == (
        "round 2: the game is over, expected no more rounds"
    )
    assert refusal(changed(record, "rounds.1.moves.1", "1 0-0 L")) == (
        "round 1, move 1: seat 1 may not play 0-0 L (legal: 2-1 L)"
    )


GARBAGE: list[Any] = [
    None, True, False, 0, -1, 3, 10**30, 10**400, -(10**5000), 1.5, float("nan"), float("inf"),
    "", " ", "0", "6-6", "0 6-6", "0 draw", "pass", "\x00", "ä\ud800\u2028\n", "9" * 5000,
    "x" * 10**5, [], [[]], {}, {"preset": "cabra"}, [None], [1, "2"], ["6-6 6-5"], {"": {"": []}},
]  # fmt: skip


def garbled(record: Any, rng: random.Random) -> Any:
    """The record with one value somewhere in it removed, doubled, or replaced by garbage."""
    if isinstance(record, dict) and record and rng.random() < 0.9:
        key = rng.choice(list(record))
        if rng.random() < 0.1:
            return {k: v for k, v in record.items() if k != key}
        if rng.random() < 0.05:
            return {**record, rng.choice(["seats", "end", "\n"]): rng.choice(GARBAGE)}
        return {**record, key: garbled(record[key], rng)}
    if isinstance(record, list) and record and rng.random() < 0.9:
        k = rng.randrange(len(record))
        new = [garbled(record[k], rng), record[k], *rng.sample(record, 1)]
        return [*record[:k], *new[: rng.choice([0, 1, 1, 1, 2, 3])], *record[k + 1 :]]
    if isinstance(record, str) and record and rng.random() < 0.6:
        k = rng.randrange(len(record))
        return record[:k] + rng.choice(["", " ", "0", "6", "-", "L", "é"]) + record[k + 1 :]
    if type(record) is int and rng.random() < 0.5:
        return record + rng.choice([-1, 1, 10**9, 10**20])
    return rng.choice(GARBAGE)


@pytest.mark.parametrize("seed", range(6))
def test_whatever_a_record_holds_it_is_read_or_refused_in_one_line(seed):
    print("seed", seed)
    rng = random.Random(seed)
    sound = [r for r in all_cases() if len(r["rounds"]) < 4]
    read = 0
    for _ in range(400):
        record = rng.choice(sound)
        for _ in range(rng.choice([1, 1, 1, 2, 5])):
            record = garbled(record, rng)
        try:
            game = record_to_game(record)
        except RecordError as error:
            message = str(error)
            assert message.isprintable(), message
            assert len(message) < 400
        else:
            read += 1
            written = game_to_record(game)
            assert game_to_record(record_to_game(written)) == written
    assert read > 20
