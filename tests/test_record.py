"""Records: written, read by replay, refused with the reason, printed (RULES.md 12)."""

import copy
import json
import random
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from oracle import Oracle
from support import played, random_rules

from domino_env.errors import RecordError
from domino_env.game import Game
from domino_env.record import (
    game_to_record,
    parse_record,
    read_records,
    record_text,
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


# ---------------------------------------------------------------- writing


def test_a_record_of_the_written_form_is_written_back_as_it_is():
    written = {**OUT, "rules": {"preset": "sin_robo", "hand_size": 2, "lead": "seat", "set": 2}}
    assert json.dumps(game_to_record(record_to_game(written))) == json.dumps(written)


def test_reading_and_writing_is_the_identity_on_every_case_once_written():
    for record in all_cases():
        written = json.dumps(game_to_record(record_to_game(record)))
        assert json.dumps(game_to_record(record_to_game(json.loads(written)))) == written


def test_a_case_is_written_as_it_was_but_for_order_and_ignored_keys():
    aliases = {"kozel": "cabra", "goat": "cabra", "block": "sin_robo", "draw": "estandar"}
    for record in all_cases():
        expected = {key: record[key] for key in ("rules", "rounds", "result") if key in record}
        preset = expected["rules"]["preset"]
        expected["rules"] = {**expected["rules"], "preset": aliases.get(preset, preset)}
        drawn = expected["rules"].get("lead") == "random"
        expected["rounds"] = [
            {
                key: [" ".join(sorted(hand.split(), reverse=True)) for hand in value]
                if key == "hands"
                else value
                for key, value in entry.items()
                if key != "legal" and (key != "leader" or (drawn and not entry["moves"]))
            }
            for entry in record["rounds"]
        ]
        assert game_to_record(record_to_game(record)) == expected


@pytest.mark.parametrize("seed", range(120))
def test_what_is_written_of_a_random_game_is_what_the_rules_say(seed):
    rng = random.Random(seed)
    rules = random_rules(rng)
    print(seed, rules)
    game = played(Game(rules, seed), seed)
    record = game.to_record()
    oracle = Oracle(rules)
    for entry in record["rounds"]:
        drawn = oracle.rules["lead"] == "random" and oracle.next_leader is None
        leader = int(entry["moves"][0][0]) if drawn else None
        oracle.next_round(entry["hands"], entry["boneyard"], leader)
        for move in entry["moves"]:
            assert move[0] == str(oracle.seat)
            oracle.play(move[2:])
        assert (entry["end"], entry["winner"]) == (oracle.end, oracle.winner)
        assert entry["pips"] == oracle.pips
        assert entry.get("written") == oracle.written
        assert entry.get("scores", oracle.scores) == oracle.scores
    assert oracle.over is not None
    assert game.truncated == (oracle.over == "truncated")
    assert record["result"].get("goats") == oracle.goats
    reward = record["result"]["reward"]
    assert [Fraction(r).limit_denominator(6) for r in reward] == oracle.rewards
    assert all(type(r) is int for r in reward if r == int(r))


@pytest.mark.parametrize("seed", range(60))
def test_a_record_that_stops_anywhere_gives_the_same_game_and_the_same_record(seed):
    rng = random.Random(seed)
    rules = random_rules(rng)
    print(seed, rules)
    game = played(Game(rules, seed), seed, rng.choice([0, 1, 5, 20, 60, 200]))
    record = json.loads(json.dumps(game.to_record()))
    again = Game.from_record(record, seed=seed)  # the same shuffles, consumed one by one
    assert again == game
    assert again.to_record() == record
    assert played(again, 1) == played(game, 1)


def test_rewards_are_whole_numbers_where_they_are_whole():
    third = {"preset": "sin_robo", "seats": 4, "hand_size": 1, "set": 2, "lead": "seat"}
    hands = ["2-2", "1-1", "0-0", "1-0"]
    game = Game.deal(third, hands, "2-1 2-0")
    game.play("2-2")
    assert json.dumps(game.to_record()["result"]) == (
        '{"reward": [1, -0.3333333333333333, -0.3333333333333333, -0.3333333333333333]}'
    )


def test_a_round_without_moves_is_written_if_its_deal_was_given():
    game = Game.deal(RULES, DEAL["hands"], DEAL["boneyard"])
    assert game.to_record() == {"rules": RULES, "rounds": [{**DEAL, "moves": []}]}
    assert Game(RULES, seed=3).to_record() == {"rules": RULES, "rounds": []}


def test_rules_are_written_with_the_main_name_and_sorted_fields():
    game = Game({"seats": 3, "preset": "kozel", "hand_size": 4})
    written = json.dumps(game.to_record()["rules"])
    assert written == '{"preset": "cabra", "hand_size": 4, "seats": 3}'


def test_a_truncated_match_has_a_result_without_reward_and_without_goats():
    rules = {**MATCH_RULES, "max_rounds": 1}
    record = {"rules": rules, "rounds": [MATCH_ROUND], "result": {"reward": [0, 0], "goats": []}}
    game = Game.from_record(record)
    assert game.truncated
    assert game.to_record()["result"] == record["result"]
    assert refusal(changed(record, "result.reward", [1, -1])) == (
        "result: reward: found [1, -1], expected [0, 0]"
    )


# ---------------------------------------------------------------- reading


def test_a_record_that_stops_between_rounds_goes_on_by_the_seed():
    record = {"rules": MATCH_RULES, "rounds": [MATCH_ROUND]}
    one, two = (Game.from_record(record, seed=seed) for seed in (1, 1))
    assert one == two
    assert (one.round, one.scores, one.moves) == (1, [0, 25], [])
    assert {tuple(Game.from_record(record, seed=s).hands) for s in range(6)} != {tuple(one.hands)}
    assert one.to_record()["rounds"] == [MATCH_ROUND]


def test_the_dealt_rounds_behind_a_record_are_those_of_the_seed():
    second = played(Game(MATCH_RULES, seed=5), 0).to_record()["rounds"][1]
    game = Game.from_record({"rules": MATCH_RULES, "rounds": [MATCH_ROUND]}, seed=5)
    assert (game.hands, game.boneyard) == (second["hands"], second["boneyard"])


def test_unknown_keys_are_ignored_anywhere_but_in_the_rules():
    record = {**OUT, "name": "x", "why": 3, "rounds": [{**OUT["rounds"][0], "legal": None}]}
    assert game_to_record(record_to_game(record)) == OUT


def test_tiles_in_either_order_and_more_spaces_are_read():
    record = changed(OUT, "rounds.0.hands", [" 0-1  2-2 ", "1-2 0-0"])
    record = changed(record, "rounds.0.moves", [" 0  2-2", "1 1-2  L ", "0 0-1 L"])
    record = changed(record, "rounds.0.boneyard", "1-1   0-2")
    assert game_to_record(record_to_game(record)) == OUT


def test_outcomes_that_are_left_out_are_not_compared():
    assert record_to_game(changed(OUT, "result")).games[0].over
    for key in ("winner", "pips"):
        record_to_game(changed(OUT, f"rounds.0.{key}"))
    assert refusal(changed(OUT, "rounds.0.end")) == (
        "round 0: the round is over, expected its end, 'out'"
    )


def test_rewards_are_read_within_a_millionth():
    record_to_game(changed(OUT, "result.reward", [1 + 9e-7, -1.0]))
    for reward in ([1 + 2e-6, -1], [1, -1 - 2e-6], [1, 10**400], [1, -(10**400)]):
        assert refusal(changed(OUT, "result.reward", reward)).startswith("result: reward: found")


def test_a_drawn_leader_is_named_by_the_record_or_by_the_first_move():
    record = changed({**OUT, "rules": {**RULES, "lead": "random"}}, "result")
    record = changed(record, "rounds.0", {**DEAL, "moves": []})
    assert refusal(record) == "round 0: found no leader, expected it as integer"
    for seat in (0, 1):
        given = changed(record, "rounds.0.leader", seat)
        assert record_to_game(given).games[0].seat == seat
        assert game_to_record(record_to_game(given))["rounds"][0]["leader"] == seat
    moved = changed(record, "rounds.0.moves", ["1 2-1"])
    assert record_to_game(moved).games[0].leader == 1
    assert "leader" not in game_to_record(record_to_game(moved))["rounds"][0]
    assert refusal(changed(moved, "rounds.0.leader", 0)) == (
        "round 0, move 0: found seat 1, expected seat 0 to move"
    )
    assert refusal(changed(record, "rounds.0.moves", ["4 2-1"])) == (
        "round 0: leader: there is no seat 4, expected 0 to 1"
    )


def test_a_leader_by_rule_need_not_be_named_but_must_agree():
    assert game_to_record(record_to_game(changed(OUT, "rounds.0.leader", 0))) == OUT
    assert refusal(changed(OUT, "rounds.0.leader", 1)) == (
        "round 0: leader: found seat 1, expected seat 0 by the rules"
    )


def test_the_second_round_is_led_as_the_first_one_ended():
    rules = {**MATCH_RULES, "lead": "random", "next_lead": "rotate"}
    rounds = [MATCH_ROUND, {**DEAL, "moves": []}]
    game = Game.from_record({"rules": rules, "rounds": rounds})
    assert (game.leader, game.legal_moves()) == (1, ["0-0", "2-1"])
    assert game.to_record()["rounds"] == rounds


# ---------------------------------------------------------------- faults


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


# ---------------------------------------------------------------- files and text


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (b"", "the text is no JSON: Expecting value (column 1)"),
        (b"  \n", "the text is no JSON: Expecting value (column 1)"),
        (b"{} {}", "the text is no JSON: Extra data (column 4)"),
        (b'{"rules": NaN}', "the text is no JSON: found NaN, expected a number"),
        (b"[1]", "record: [1] is no object"),
        (b'"x"', "record: 'x' is no object"),
        (b"[" * 100_000, "the text is no record: it is nested too deep"),
        (b"\xff{}", "the text is no JSON: 'utf-8' codec can't decode byte 0xff in position 0"),
        (b'{"rules": ' + b"7" * 5000, "the text is no JSON: Exceeds the limit"),
    ],
)
def test_a_line_that_is_no_json_object_is_no_record(line, message):
    with pytest.raises(RecordError) as caught:
        parse_record(line)
    assert str(caught.value).startswith(message)


def test_the_records_of_a_file_come_as_they_stand_there(tmp_path):
    path = tmp_path / "games.jsonl"
    lines = [json.dumps({**OUT, "name": name}) for name in ("a", "ñ")]
    path.write_bytes("\r\n".join(lines).encode())
    assert list(read_records(path)) == [{**OUT, "name": "a"}, {**OUT, "name": "ñ"}]
    path.write_text(lines[0] + "\n\n")
    with pytest.raises(RecordError, match=r"^line 2: the text is no JSON"):
        list(read_records(path))
    path.write_text("")
    assert list(read_records(path)) == []


def test_a_game_is_printed_with_its_deal_moves_line_and_outcome():
    assert record_text({"rules": MATCH_RULES, "rounds": [MATCH_ROUND]}).splitlines() == [
        'cabra, draw "none", hand_size 2, lead "seat", set 2, target 50',
        "",
        "Round 0",
        "  seat 0    2-2 1-0",
        "  seat 1    2-1 0-0",
        "  boneyard  1-1 2-0",
        "  move      seat 0  seat 1",
        "  0         2-2     2-1 L",
        "  2         1-0 L",
        "  line      0-1 1-2 2-2",
        "  end       out, seat 0 won",
        "  pips      0 25",
        "  written   0 25",
        "  scores    0 25",
    ]


def test_a_row_of_moves_begins_with_its_number_and_counts_the_draws_of_a_turn():
    rules = {**RULES, "preset": "estandar", "set": 3}
    deal = {"hands": ["3-3 1-1", "1-0 0-0"], "boneyard": "2-0 3-2 2-1 2-2 3-0 3-1"}
    moves = ["0 3-3", "1 draw", "1 draw", "1 3-2 L", "0 draw", "0 2-1 L", "1 1-0 L", "0 draw"]
    rows = record_text({"rules": rules, "rounds": [{**deal, "moves": moves}]}).splitlines()
    assert rows[6:10] == [
        "  move      seat 0          seat 1",
        "  0         3-3             2 draws, 3-2 L",
        "  4         draw, 2-1 L     1-0 L",
        "  7         draw",
    ]


def test_the_leader_stands_in_its_column():
    record = {"rules": {**RULES, "lead": "random"}, "rounds": [{**DEAL, "moves": [], "leader": 1}]}
    assert "  leader    seat 1" in record_text(record).splitlines()
    record["rounds"][0]["moves"] = ["1 2-1", "0 2-2 R"]
    assert record_text(record).splitlines()[6:9] == [
        "  move      seat 0  seat 1",
        "  0                 2-1",
        "  1         2-2 R",
    ]


def test_a_game_that_stands_in_the_middle_is_printed():
    game = played(Game("cabra", seed=4), 4, 9)
    assert record_text(game) == record_text(game.to_record())
    assert record_text(Game("cabra", seed=4)) == "cabra"
