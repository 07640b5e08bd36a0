"""What `Rules` refuses, and the one line it says (RULES.md 2 to 10)."""

import json
from pathlib import Path

import numpy as np
import pytest
import yaml

from domino_env.rules import FIELDS, Rules, RulesError

CASES = Path(__file__).parent / "cases"
FAULTY_RULES = {
    "seats-five": "seats: 5 is out of range, expected 2 to 4",
    "hand-size-too-big": ("hand_size: 15 tiles x 2 seats is more than the 28 of a double-six set"),
    "teams-of-three": "teams: found with 3 seats, expected 4 seats",
    "unknown-field": "rules: there is no field 'handsize', did you mean hand_size?",
    "unknown-value": "draw: there is no 'always', expected none, one or until_playable",
}


def refusal(make, *args, **kwargs) -> str:
    """The message with which the call refuses; it is always one line."""
    with pytest.raises(RulesError) as caught:
        make(*args, **kwargs)
    message = str(caught.value)
    assert "\n" not in message
    assert len(message) < 400
    return message


def test_the_cases_with_faulty_rules_are_refused():
    found = {}
    for case in map(json.loads, (CASES / "errors.jsonl").read_text().splitlines()):
        if "rules" in case:
            try:
                Rules.from_dict(case["rules"])
            except RulesError as error:
                found[case["name"]] = str(error)
    assert found == FAULTY_RULES


@pytest.mark.parametrize(
    ("field", "low", "high"),
    [
        ("set", 1, 9),
        ("seats", 2, 4),
        ("reserve", 0, 55),
        ("blank_double", 0, 1000),
        ("opening", 0, 1_000_000),
        ("max_rounds", 1, 1_000_000),
        ("target", 1, 1_000_000),
    ],
)
def test_integers_stay_in_their_range(field, low, high):
    others = {"score": "winner"}
    assert getattr(Rules(**others, **{field: low}), field) == low
    assert getattr(Rules(**others, **{field: high}), field) == high
    for value in (low - 1, high + 1):
        message = refusal(Rules, **others, **{field: value})
        assert message == f"{field}: {value} is out of range, expected {low} to {high}"


def test_a_hand_has_a_tile_and_all_hands_come_from_the_set():
    assert refusal(Rules, hand_size=0) == "hand_size: 0 is out of range, expected 1 or more"
    assert (
        refusal(Rules, seats=4, hand_size=8)
        == "hand_size: 8 tiles x 4 seats is more than the 28 of a double-six set"
    )
    assert Rules(hand_size=14).stock == 0
    assert refusal(Rules, hand_size=15).startswith("hand_size: 15 tiles x 2 seats")


def test_four_seats_cannot_share_a_double_one_set():
    message = "hand_size: 1 tile x 4 seats is more than the 3 of a double-one set"
    assert refusal(Rules, set=1, seats=4) == message
    assert refusal(Rules, set=1, seats=4, teams=True) == message


def test_a_given_hand_must_fit_after_replace_too():
    message = refusal(Rules(hand_size=14).replace, seats=3)
    assert message == "hand_size: 14 tiles x 3 seats is more than the 28 of a double-six set"


def test_only_four_seats_play_in_teams():
    assert refusal(Rules, teams=True) == "teams: found with 2 seats, expected 4 seats"
    assert refusal(Rules, teams=True, seats=3) == "teams: found with 3 seats, expected 4 seats"
    pairs = Rules(teams=True, seats=4)
    assert refusal(pairs.replace, seats=2) == "teams: found with 2 seats, expected 4 seats"
    assert not Rules(teams=False, seats=3).teams


def test_without_score_there_is_no_target_and_no_match():
    message = "target: found 61 with score none, expected no target"
    assert refusal(Rules, target=61) == message
    assert refusal(Rules.preset("sin_robo_series", target=61).replace, score="none") == message
    message = "episode: found match with score none, expected round"
    assert refusal(Rules, episode="match") == message
    assert Rules(episode="round", target=None) == Rules()


@pytest.mark.parametrize("value", [True, False, 3.0, "3", None, [3], np.float64(3), np.bool_(True)])
def test_an_integer_is_nothing_else(value):
    assert refusal(Rules, seats=value).startswith("seats: ")
    assert refusal(Rules, seats=value).endswith("is no integer, expected 2 to 4")


@pytest.mark.parametrize("value", [0, 1, "yes", "true", None, 1.0])
def test_a_switch_is_true_or_false(value):
    message = refusal(Rules, double_pair=value)
    assert message == f"double_pair: {value!r} is no switch, expected true or false"


@pytest.mark.parametrize("value", [None, True, 1, ["one"]])
def test_a_choice_is_text(value):
    message = refusal(Rules, draw=value)
    assert message == f"draw: {value!r} is no text, expected none, one or until_playable"


@pytest.mark.parametrize("name", FIELDS)
def test_no_field_but_a_derived_one_is_none(name):
    if name in ("hand_size", "target", "episode"):
        assert Rules.from_dict({name: None}) == Rules()
        assert Rules.from_dict({name: None}).given == {}
    else:
        assert refusal(Rules.from_dict, {name: None}).startswith(f"{name}: None is no ")


@pytest.mark.parametrize(
    ("wrong", "near"),
    [
        ("handsize", "hand_size"),
        ("seat", "seats"),
        ("Seats", "seats"),
        ("team", "teams"),
        ("blank_doubles", "blank_double"),
        ("targets", "target"),
    ],
)
def test_an_unknown_field_proposes_the_nearest(wrong, near):
    expected = f"rules: there is no field {wrong!r}, did you mean {near}?"
    for make in (Rules, Rules().replace):
        assert refusal(make, **{wrong: 3}) == expected
    assert refusal(Rules.preset, "cabra", **{wrong: 3}) == expected
    assert refusal(Rules.from_dict, {wrong: 3}) == expected
    assert refusal(Rules.of, Rules(), **{wrong: 3}) == expected


@pytest.mark.parametrize("name", ["xyzzy", 3, None, "self", "given", "_given", "_preset", "tiles"])
def test_what_is_no_field_is_refused(name):
    assert f"there is no field {name!r}, " in refusal(Rules.from_dict, {name: 3})


def test_an_unknown_preset_proposes_the_nearest():
    assert refusal(Rules.preset, "cabre") == "preset: there is no 'cabre', did you mean cabra?"
    assert refusal(Rules.of, "KOZEL") == "preset: there is no 'KOZEL', did you mean kozel?"
    assert refusal(Rules.from_dict, {"preset": "sinrobo"}).endswith("did you mean sin_robo?")
    assert "expected cabra, sin_robo, estandar" in refusal(Rules.preset, "poker")
    for wrong in (None, 3, ["cabra"]):
        assert refusal(Rules.preset, wrong).startswith(f"preset: {wrong!r} is no text, expected ")


def test_an_unknown_value_proposes_the_nearest():
    message = refusal(Rules, draw="until-playable")
    assert message == "draw: there is no 'until-playable', did you mean until_playable?"
    message = refusal(Rules, draw="always")
    assert message == "draw: there is no 'always', expected none, one or until_playable"
    assert refusal(Rules, reward="xyz") == "reward: there is no 'xyz', expected win or points"


def test_a_preset_is_no_override():
    message = "preset: 'estandar' was found among the overrides, expected fields"
    assert refusal(Rules.preset, "cabra", **{"preset": "estandar"}) == message
    assert refusal(Rules().replace, preset="estandar") == message
    assert refusal(Rules.of, {"preset": "cabra"}, preset="estandar") == message


def test_what_is_no_name_mapping_or_rules_is_refused():
    for wrong in (None, 5, ["cabra"]):
        assert refusal(Rules.of, wrong).startswith(f"rules: {wrong!r} is not what was expected")
    for wrong in (None, "cabra", 5, [("preset", "cabra")]):
        assert refusal(Rules.from_dict, wrong).startswith("rules: ")


def test_a_yaml_section_is_read_as_strictly():
    def read(text: str) -> Rules:
        return Rules.from_dict(yaml.safe_load(text))

    expected = Rules.preset("cabra", seats=4, teams=True, draw="none")
    assert read("{preset: goat, seats: 4, teams: true, draw: none}") == expected
    assert refusal(read, "{preset: goat, seats: '4'}").startswith("seats: '4' is no integer")
    assert refusal(read, "{preset: goat, draw: null}").startswith("draw: None is no text")
    assert refusal(read, "{preset: goat, 4: seats}").startswith("rules: there is no field 4, ")
    assert refusal(read, "{preset: null}").startswith("preset: None is no text")
    assert refusal(read, "").startswith("rules: None is no mapping")


def test_a_message_stays_on_one_short_line():
    refusal(Rules, draw="\n".join("x" * 500))
    refusal(Rules, seats=np.eye(2))  # its repr has two lines
    refusal(Rules, hand_size=10**50)
