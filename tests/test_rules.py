"""`Rules`: fields, presets, derived fields, codes, copies (RULES.md 2 to 10)."""

import copy
import dataclasses
import json
import pickle
from pathlib import Path

import numpy as np
import pytest

from domino_env.rules import ALIASES, CHOICES, FIELDS, PRESETS, Rules

CASES = Path(__file__).parent / "cases"


# Presets and their fields.


def test_rules_alone_are_sin_robo():
    # RULES.md 3 to 10, field by field
    expected = {
        "set": 6,
        "seats": 2,
        "teams": False,
        "hand_size": 7,
        "draw": "none",
        "reserve": 0,
        "double_pair": False,
        "lead": "highest_double",
        "lead_tile": "forced",
        "next_lead": "same",
        "blank_double": 0,
        "blank_double_when": "always",
        "score": "none",
        "target": None,
        "opening": 0,
        "opening_mode": "lost",
        "block_score": "net",
        "team_block": "total",
        "episode": "round",
        "reward": "win",
        "max_rounds": 1000,
    }
    assert {name: getattr(Rules(), name) for name in FIELDS} == expected
    assert Rules() == Rules.preset("sin_robo") == Rules.from_dict({}) == Rules.of("block")


@pytest.mark.parametrize(
    ("name", "changed"),
    [
        (
            "cabra",
            {
                "draw": "until_playable",
                "double_pair": True,
                "blank_double": 25,
                "score": "loser",
                "target": 101,
                "opening": 13,
                "episode": "match",
            },
        ),
        ("estandar", {"draw": "until_playable"}),
        ("sin_robo", {}),
        ("sin_robo_series", {"score": "winner", "target": 100, "episode": "match"}),
        (
            "estandar_series",
            {"draw": "until_playable", "score": "winner", "target": 100, "episode": "match"},
        ),
    ],
)
def test_a_preset_differs_from_sin_robo_in_just_these_fields(name, changed):
    rules, plain = Rules.preset(name), Rules()
    found = {f: getattr(rules, f) for f in FIELDS if getattr(rules, f) != getattr(plain, f)}
    assert found == changed
    assert rules.preset == name


def test_there_are_five_presets_and_four_other_names():
    assert set(PRESETS) == {"cabra", "sin_robo", "estandar", "sin_robo_series", "estandar_series"}
    assert ALIASES == {"kozel": "cabra", "goat": "cabra", "block": "sin_robo", "draw": "estandar"}


def test_another_name_of_a_preset_gives_equal_rules_with_the_main_name():
    for other, main in ALIASES.items():
        rules = Rules.preset(other, seats=3)
        assert rules == Rules.preset(main, seats=3)
        assert hash(rules) == hash(Rules.preset(main, seats=3))
        assert rules.preset == main


def test_equality_is_that_of_the_resolved_fields():
    assert Rules.preset("sin_robo", draw="until_playable") == Rules.preset("estandar")
    assert Rules.preset("cabra", target=101) == Rules.preset("cabra")
    assert len({Rules(), Rules(seats=2), Rules(hand_size=7), Rules.preset("estandar")}) == 2
    assert Rules() != Rules(hand_size=6)
    assert Rules() != Rules(max_rounds=999)


# Derived fields.


@pytest.mark.parametrize(
    ("set_", "two", "three", "four", "pairs"),
    [  # RULES.md 3 by hand; three quarters of T: 2, 4, 7, 11, 15, -, 27, 33, 41
        (1, 1, 1, None, None),
        (2, 2, 1, 1, 1),
        (3, 3, 2, 1, 2),
        (4, 5, 3, 2, 3),
        (5, 7, 5, 3, 5),
        (6, 7, 5, 5, 7),
        (7, 7, 7, 6, 7),
        (8, 7, 7, 7, 7),
        (9, 10, 10, 10, 10),
    ],
)
def test_the_default_hand_follows_from_set_seats_and_teams(set_, two, three, four, pairs):
    assert Rules(set=set_, seats=2).hand_size == two
    assert Rules(set=set_, seats=3).hand_size == three
    if four is not None:  # four seats cannot share the three tiles of a double-one set
        assert Rules(set=set_, seats=4).hand_size == four
        assert Rules(set=set_, seats=4, teams=True).hand_size == pairs


def test_replace_derives_hand_size_anew():
    assert Rules.preset("cabra", seats=2).replace(seats=4).hand_size == 5
    assert Rules.preset("cabra").replace(seats=4, teams=True).hand_size == 7
    assert Rules(set=9).replace(set=6).hand_size == 7


def test_replace_keeps_a_given_hand_size_until_it_is_given_as_none():
    rules = Rules(hand_size=7).replace(seats=4)
    assert rules.hand_size == 7
    assert rules.replace(hand_size=None).hand_size == 5
    assert rules.replace(hand_size=None).given == {"seats": 4}


@pytest.mark.parametrize(
    ("fields", "target"),
    [
        ({"score": "winner"}, 100),
        ({"score": "winner", "seats": 3}, 61),
        ({"score": "winner", "seats": 4}, 61),
        ({"score": "winner", "seats": 4, "teams": True}, 100),
        ({"score": "loser"}, 101),
        ({"score": "loser", "seats": 3}, 101),
        ({"score": "loser", "seats": 4, "teams": True}, 101),
        ({"score": "none", "seats": 4}, None),
    ],
)
def test_the_default_target_follows_from_score_seats_and_teams(fields, target):
    assert Rules(**fields).target == target
    assert Rules(**fields).episode == ("round" if target is None else "match")


def test_replace_derives_target_and_episode_anew():
    assert Rules.preset("sin_robo_series").replace(seats=3).target == 61
    assert Rules.preset("sin_robo_series", target=100).replace(seats=3).target == 100
    plain = Rules.preset("cabra").replace(score="none")
    assert (plain.target, plain.episode, plain.opening) == (None, "round", 13)
    assert plain.replace(score="winner").target == 100
    assert plain.replace(score="winner").episode == "match"


def test_a_round_of_a_scoring_game_keeps_its_target():
    rules = Rules.preset("cabra", episode="round")
    assert (rules.episode, rules.target) == ("round", 101)
    assert rules.replace(episode=None).episode == "match"


def test_counts_follow_from_set_seats_and_hand_size():
    rules = Rules.preset("cabra")
    assert (rules.tiles, rules.stock, rules.sides, rules.actions) == (28, 14, 2, 59)
    four = Rules(seats=4)
    assert (four.stock, four.sides) == (8, 4)
    pairs = Rules(seats=4, teams=True)
    assert (pairs.stock, pairs.sides) == (0, 2)
    nine = Rules(set=9, seats=3)
    assert (nine.tiles, nine.stock, nine.sides, nine.actions) == (55, 25, 3, 113)


# Codes.


def test_choices_come_in_the_order_of_the_specification():
    assert CHOICES == {
        "draw": ("none", "one", "until_playable"),
        "lead": ("highest_double", "lowest_double", "seat", "random"),
        "lead_tile": ("forced", "free"),
        "next_lead": ("same", "winner", "rotate"),
        "blank_double_when": ("always", "alone"),
        "score": ("none", "winner", "loser"),
        "opening_mode": ("lost", "pending"),
        "block_score": ("net", "gross"),
        "team_block": ("total", "lowest_hand"),
        "episode": ("round", "match"),
        "reward": ("win", "points"),
    }


def test_codes_are_small_integers():
    codes = Rules.preset("cabra", seats=4, teams=True, lead="random", reward="points").codes()
    assert tuple(codes) == FIELDS
    assert {type(code) for code in codes.values()} == {int}
    some = {name: codes[name] for name in ("draw", "score", "lead", "episode", "reward", "teams")}
    assert some == {"draw": 2, "score": 2, "lead": 3, "episode": 1, "reward": 1, "teams": 1}
    assert (codes["target"], codes["blank_double"], codes["hand_size"]) == (101, 25, 7)
    assert (Rules().codes()["target"], Rules().codes()["double_pair"]) == (0, 0)


# Writing, reading, copying.


def test_to_dict_is_the_main_name_and_the_given_fields_sorted():
    rules = Rules.preset("kozel", target=101, seats=3, hand_size=None, draw="one")
    assert list(rules.to_dict().items()) == [
        ("preset", "cabra"),
        ("draw", "one"),
        ("seats", 3),
        ("target", 101),
    ]
    assert rules.given == {"draw": "one", "seats": 3, "target": 101}
    assert Rules().to_dict() == {"preset": "sin_robo"}


def test_from_dict_reads_what_to_dict_writes():
    for name in PRESETS:
        rules = Rules.preset(name, seats=4, teams=True, reserve=2, lead="random")
        again = Rules.from_dict(rules.to_dict())
        assert again == rules
        assert (again.preset, again.given) == (rules.preset, rules.given)
        assert json.loads(json.dumps(rules.to_dict())) == rules.to_dict()


def test_from_dict_leaves_its_mapping_alone():
    mapping = {"preset": "cabra", "seats": 3}
    Rules.from_dict(mapping)
    assert mapping == {"preset": "cabra", "seats": 3}


def test_numpy_values_become_plain_ones():
    rules = Rules(seats=np.int64(4), teams=np.bool_(True), draw=np.str_("one"))
    assert rules == Rules(seats=4, teams=True, draw="one")
    assert [type(value) for value in rules.given.values()] == [str, int, bool]
    assert (type(rules.seats), type(rules.teams), type(rules.draw)) == (int, bool, str)


def test_of_takes_a_name_a_mapping_or_rules_with_overrides():
    expected = Rules.preset("cabra", seats=4, teams=True)
    assert Rules.of("goat", seats=4, teams=True) == expected
    # neither half could be played without the other
    assert Rules.of({"preset": "cabra", "teams": True}, seats=4) == expected
    assert Rules.of(Rules.preset("cabra", seats=2), seats=4, teams=True) == expected
    assert Rules.of(Rules.preset("cabra", seats=2), seats=4, teams=True).preset == "cabra"
    assert Rules.of({"preset": "draw"}) == Rules.preset("estandar")


def test_rules_cannot_be_changed():
    rules = Rules.preset("cabra")
    for name in ("seats", "preset", "other"):
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(rules, name, 3)
    rules.given["seats"] = 3
    assert rules.given == {}
    with pytest.raises(TypeError):
        PRESETS["cabra"]["seats"] = 3  # pyright: ignore[reportIndexIssue]


@pytest.mark.parametrize("name", PRESETS)
def test_pickles_and_copies_keep_everything(name):
    rules = Rules.preset(name, seats=3, lead="random")
    for again in (pickle.loads(pickle.dumps(rules)), copy.deepcopy(rules), copy.copy(rules)):
        assert again == rules
        assert hash(again) == hash(rules)
        assert again.to_dict() == rules.to_dict()
        assert again.codes() == rules.codes()


def test_the_repr_makes_the_rules_again():
    rules = Rules.preset("goat", seats=3, draw="one")
    assert repr(rules) == "Rules.preset('cabra', draw='one', seats=3)"
    assert eval(repr(rules)) == rules


def test_the_cases_have_rules_that_deal_hands_of_their_size():
    for name in ("positions.jsonl", "random.jsonl"):
        for case in map(json.loads, (CASES / name).read_text().splitlines()):
            rules = Rules.from_dict(case["rules"])
            for hand in (hand for deal in case["rounds"] for hand in deal["hands"]):
                assert len(hand.split()) == rules.hand_size, case
            for deal in case["rounds"]:
                assert len(deal["hands"]) == rules.seats
                assert len(deal["boneyard"].split()) == rules.stock
