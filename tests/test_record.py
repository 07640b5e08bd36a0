"""Records: written, read by replay, refused with the reason, printed (RULES.md 12)."""

import json
import random
from fractions import Fraction

import pytest
from oracle import Oracle
from records import DEAL, MATCH_ROUND, MATCH_RULES, OUT, RULES, all_cases, changed, refusal
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
