"""The reference against the cases, and against a few positions worked by hand."""

import json
import random
from collections.abc import Iterator
from fractions import Fraction
from itertools import permutations
from pathlib import Path
from typing import Any

import pytest
from all_deals import agreeing_deals
from oracle import Deal, Oracle
from oracle_rules import resolve, text_of, texts_of, tile_of, whole_set

CASES = Path(__file__).parent / "cases"
OPEN_LEAD = {"preset": "estandar", "hand_size": 3, "lead": "seat"}


def cases(name: str) -> list[Any]:
    lines = (CASES / name).read_text(encoding="utf-8").splitlines()
    records = [json.loads(line) for line in lines]
    return [pytest.param(r, id=r.get("name", f"line-{i}")) for i, r in enumerate(records, 1)]


def leader_of(dealt: dict[str, Any], rules: dict[str, Any]) -> int | None:
    """What the record says of the leader: `leader`, or the first move of a random lead."""
    if rules["lead"] == "random" and "leader" not in dealt and dealt["moves"]:
        return int(dealt["moves"][0].split()[0])
    return dealt.get("leader")


def rest_of(hands: list[str], front: str = "", pips: int = 6) -> list[str]:
    """A boneyard: `front`, then every other tile of the set."""
    used = {tile_of(text) for text in " ".join([*hands, front]).split()}
    return front.split() + [text_of(t) for t in whole_set(pips) if t not in used]


def dealt(rules: dict[str, Any], hands: list[str], front: str = "") -> Oracle:
    game = Oracle(rules)
    game.next_round(hands, rest_of(hands, front, game.rules["set"]))
    return game


def played(game: Oracle, *moves: str) -> Oracle:
    for move in moves:
        seat, text = move.split(maxsplit=1)
        assert game.seat == int(seat), move
        game.play(text)
    return game


@pytest.mark.parametrize("record", cases("positions.jsonl") + cases("random.jsonl"))
def test_a_case_is_reproduced_in_every_particular(record: dict[str, Any]) -> None:
    game = Oracle(record["rules"])
    for index, dealing in enumerate(record["rounds"]):
        assert game.over is None, f"round {index} comes after the game"
        leader = leader_of(dealing, game.rules) if game.next_leader is None else None
        game.next_round(dealing["hands"], dealing["boneyard"], leader)
        check_moves(game, dealing)
        check_end(game, dealing)
    assert (game.over is not None) == ("result" in record)
    if "result" in record:
        assert game.rewards == pytest.approx(record["result"]["reward"], abs=1e-6)
        assert sum(game.rewards) == 0
        assert game.goats == record["result"].get("goats")


def check_moves(game: Oracle, dealing: dict[str, Any]) -> None:
    for number, legal in enumerate(dealing["legal"]):
        assert [f"{game.seat} {move}" for move in game.legal()] == legal, number
        if number < len(dealing["moves"]):
            played(game, dealing["moves"][number])
    assert len(game.events) == len(dealing["moves"])


def check_end(game: Oracle, dealing: dict[str, Any]) -> None:
    assert game.end == dealing.get("end")
    assert (game.seat is None) == ("end" in dealing)
    if "end" in dealing:
        assert (game.winner, game.pips) == (dealing["winner"], dealing["pips"])
        assert game.written == dealing.get("written")
        assert ("scores" not in dealing) or game.scores == dealing["scores"]


def test_defaults_follow_from_the_other_fields() -> None:
    def of(preset: str, **fields: Any) -> dict[str, Any]:
        return resolve({"preset": preset, **fields})

    assert [of("kozel", seats=s)["hand_size"] for s in (2, 3, 4)] == [7, 5, 5]
    assert of("block", seats=4, teams=True)["hand_size"] == 7
    # 55 tiles: 41 may be dealt to single seats, 55 to teams
    assert [of("draw", set=9, seats=s)["hand_size"] for s in (2, 3, 4)] == [10, 10, 10]
    assert of("draw", set=3, seats=4)["hand_size"] == 1  # 7 of 10 tiles at most
    assert of("draw", set=1, seats=3)["hand_size"] == 1  # three quarters are 2, but never none
    assert of("draw", set=8, seats=4, teams=True)["hand_size"] == 7
    assert [of("goat", seats=s)["target"] for s in (2, 3)] == [101, 101]
    assert [of("estandar_series", seats=s)["target"] for s in (2, 3, 4)] == [100, 61, 61]
    assert of("sin_robo_series", seats=4, teams=True)["target"] == 100
    assert (of("sin_robo")["target"], of("sin_robo")["episode"]) == (None, "round")
    assert (of("cabra")["opening"], of("sin_robo", score="loser")["opening"]) == (13, 0)


@pytest.mark.parametrize(
    ("rules", "message"),
    [
        ({"preset": "goats"}, "preset or field"),
        ({"preset": "cabra", "handsize": 2}, "preset or field"),
        ({"preset": "cabra", "set": 10}, "set, seats: 10, 2"),
        ({"preset": "cabra", "seats": 5}, "set, seats: 6, 5"),
        ({"preset": "cabra", "seats": 3, "teams": True}, "teams: 3 seats"),
        ({"preset": "cabra", "hand_size": 15}, "hand_size: 15"),
        ({"preset": "sin_robo", "target": 100}, "score: none"),
        ({"preset": "sin_robo", "episode": "match"}, "score: none"),
    ],
)
def test_impossible_rules_are_refused(rules: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        resolve(rules)


def test_an_illegal_move_or_deal_is_refused() -> None:
    game = dealt(OPEN_LEAD, ["6-6 6-1 4-4", "6-3 5-5 5-4"])
    with pytest.raises(ValueError, match="6-6 L"):
        game.play("6-6 L")
    played(game, "0 6-6")
    with pytest.raises(ValueError, match="draw"):
        game.play("draw")
    with pytest.raises(ValueError, match="deal"):
        dealt(OPEN_LEAD, ["6-6 6-1 4-4", "6-6 5-5 5-4"])


@pytest.mark.parametrize(("reward", "expected"), [("win", [0, 0]), ("points", [3, -3])])
def test_a_match_still_open_after_its_last_round_is_truncated(
    reward: str, expected: list[int]
) -> None:
    # 3-3 blocks at once; 6-5 against 6-6 and 2-0 writes 14 - 11, far from 100
    rules = {"preset": "sin_robo_series", "hand_size": 2, "lead": "seat", "max_rounds": 1}
    game = played(dealt(rules | {"reward": reward}, ["3-3 6-5", "6-6 2-0"]), "0 3-3")
    assert (game.over, game.scores, game.rewards) == ("truncated", [3, 0], expected)


def test_points_of_losing_teams_are_the_difference_of_the_totals() -> None:
    # seat 0 is out; its partner keeps 12, the others 6 and 12
    rules = {"preset": "cabra", "hand_size": 2, "lead": "seat", "draw": "none", "seats": 4}
    rules |= {"teams": True, "episode": "round", "reward": "points"}
    game = dealt(rules, ["6-5 5-4", "6-1 5-1", "6-6 0-0", "1-0 6-3"])
    played(game, "0 6-5", "1 6-1 R", "2 pass", "3 1-0 R")
    assert game.hands[2] == {(0, 0), (6, 6)}
    assert game.legal() == ["5-4 L"]
    played(game, "0 5-4 L")
    assert game.pips == [0, 6, 37, 9]  # 0-0 counts 25
    assert game.rewards == [-22, 22, -22, 22]
    assert all(isinstance(reward, Fraction) for reward in game.rewards)


def test_a_net_block_is_worth_no_less_than_nothing() -> None:
    # the lightest hand, 5, wins for a team of 35 pips; the other team has only 22
    rules = {"preset": "sin_robo_series", "hand_size": 3, "lead": "seat", "seats": 4}
    rules |= {"teams": True, "team_block": "lowest_hand", "reward": "points"}
    game = dealt(rules, ["3-3 4-0 1-0", "5-0 4-1 0-0", "6-6 6-4 6-2", "6-1 2-1 2-0"])
    played(game, "0 3-3")
    assert (game.pips, game.winner) == ([5, 10, 30, 12], [0, 2])
    assert (game.written, game.rewards) == ([0, 0], [0, 0, 0, 0])


# -- what the seats know: lacks ---------------------------------------------------------------


def drawing_game() -> Oracle:
    """Seat 1 holds nothing that fits: it must draw in each of its turns."""
    return dealt(OPEN_LEAD, ["6-6 6-0 3-3", "5-5 5-4 3-2"], "6-1 1-0")


def test_a_seat_that_has_drawn_and_is_still_to_move_claims_nothing() -> None:
    game = played(drawing_game(), "0 6-6", "1 draw")
    assert game.lacks() == [set(), set()]
    played(game, "1 6-1 L", "0 6-0 R")
    assert game.lacks() == [set(), {6}]
    played(game, "1 draw")
    assert game.lacks() == [set(), set()]


def test_a_play_after_one_draw_adds_both_ends_to_what_was_known() -> None:
    game = played(drawing_game(), "0 6-6", "1 draw", "1 6-1 L", "0 6-0 R")
    assert game.ends == (1, 0)
    played(game, "1 draw", "1 1-0 L")
    assert game.lacks() == [set(), {6, 1, 0}]


def test_a_play_after_several_draws_leaves_the_two_ends_alone() -> None:
    # the ends are 1 and 0 again, but seat 1 finds 1-0 only as its third tile
    game = dealt(OPEN_LEAD, ["6-6 6-0 3-3", "5-5 5-4 3-2"], "6-1 4-4 6-2 1-0")
    played(game, "0 6-6", "1 draw", "1 6-1 L", "0 6-0 R", "1 draw", "1 draw", "1 draw")
    assert game.lacks() == [set(), set()]
    played(game, "1 1-0 L")
    assert game.lacks() == [set(), {1, 0}]  # it holds 6-2 by now


def test_a_play_without_a_draw_changes_nothing() -> None:
    game = dealt(OPEN_LEAD, ["6-6 5-1 3-3", "5-5 5-4 3-2"], "6-1")
    played(game, "0 6-6", "1 draw", "1 6-1 L", "0 5-1 L", "1 5-4 L")
    assert game.lacks() == [set(), {6}]


def test_a_pass_after_a_draw_leaves_the_two_ends_alone() -> None:
    rules = OPEN_LEAD | {"draw": "one"}
    game = dealt(rules, ["6-6 6-0 6-5", "4-4 4-3 3-2"], "6-1 6-2 4-1")
    played(game, "0 6-6", "1 draw", "1 6-1 L")
    assert game.lacks() == [set(), {6}]
    played(game, "0 6-0 R")  # ends 1 and 0; 6-2 does not fit
    played(game, "1 draw", "1 pass")
    assert game.lacks() == [set(), {1, 0}]


def test_a_draw_that_blocks_claims_nothing_of_the_seat_that_drew() -> None:
    # a draw is the last event of seat 1; that the round is blocked is no event of its own
    rules = {"preset": "estandar", "set": 3, "hand_size": 3, "lead": "seat", "reserve": 3}
    game = dealt(rules, ["3-3 1-0 0-0", "1-1 2-1 2-2"], "2-0")
    played(game, "0 3-3", "1 draw")
    assert (game.end, game.lacks()) == ("blocked", [set(), set()])


def test_passes_without_a_draw_add_up() -> None:
    rules = {"preset": "sin_robo", "hand_size": 3, "lead": "seat"}
    game = dealt(rules, ["6-6 6-5 5-4", "3-3 3-2 4-1"])
    played(game, "0 6-6", "1 pass", "0 6-5 L", "1 pass")
    assert game.lacks() == [set(), {6, 5}]
    played(game, "0 5-4 L")
    assert (game.end, game.lacks()) == ("out", [set(), {6, 5}])


def test_a_double_makes_its_end_and_both_doubles_make_both() -> None:
    rules = {"preset": "cabra", "hand_size": 4, "lead": "seat"}
    hands = ["5-3 4-3 4-4 6-5", "3-3 5-5 6-6 2-2"]
    game = dealt(rules, hands)
    assert game.ends_by() == (None, None)
    assert played(game, "0 5-3").ends_by() == (0, 0)
    played(game, "1 5-5 R")
    assert (game.ends_by(), game.ends) == ((0, 1), (3, 5))
    played(game, "0 6-5 R", "1 3-3 L")
    assert (game.ends_by(), game.ends) == ((1, 0), (3, 6))
    game = played(dealt(rules, hands), "0 5-3", "1 both")
    assert (game.ends_by(), game.ends) == ((1, 1), (3, 5))


# -- what the seats know: not_dealt -----------------------------------------------------------


def not_dealt_after(rules: dict[str, Any], hands: list[str], first: str) -> list[str]:
    game = dealt({"preset": "estandar", "hand_size": 2} | rules, hands)
    assert game.not_dealt() == set()  # who leads says it too, but nothing has been led yet
    return texts_of(played(game, first).not_dealt())


DOUBLES = ["6-6", "5-5", "4-4", "3-3", "2-2", "1-1", "0-0"]


def test_a_forced_double_leaves_no_higher_double_in_any_hand() -> None:
    assert not_dealt_after({}, ["4-4 6-5", "3-3 2-1"], "0 4-4") == ["6-6", "5-5"]


def test_a_forced_tile_that_is_no_double_leaves_no_double_at_all() -> None:
    higher = {"6-5", "6-4", "6-3", "6-2", "6-1"}
    found = not_dealt_after({}, ["5-4 5-3", "6-0 1-0"], "1 6-0")
    assert set(found) == higher | set(DOUBLES)


def test_the_lowest_double_leaves_the_doubles_before_it_with_the_blank_last() -> None:
    rule = {"lead": "lowest_double"}
    assert not_dealt_after(rule, ["3-3 6-5", "6-6 0-0"], "0 3-3") == ["2-2", "1-1"]
    assert not_dealt_after(rule, ["2-1 6-5", "1-0 0-0"], "1 0-0") == DOUBLES[:-1]
    lower = {"1-0", "2-0", "2-1", "3-0", "3-1", "3-2", "4-0", "4-1"}
    found = not_dealt_after(rule, ["5-0 6-5", "6-4 4-2"], "1 4-2")
    assert set(found) == lower | set(DOUBLES)


@pytest.mark.parametrize("rules", [{"lead": "seat"}, {"lead_tile": "free"}])
def test_a_lead_that_is_not_forced_proves_nothing(rules: dict[str, Any]) -> None:
    assert not_dealt_after(rules, ["4-4 6-5", "3-3 2-1"], "0 4-4") == []


def test_what_was_not_dealt_stays_so_after_it_is_drawn_and_played() -> None:
    game = dealt({"preset": "estandar", "hand_size": 2}, ["4-4 6-4", "3-3 2-1"], "5-5 5-4")
    played(game, "0 4-4", "1 draw", "1 draw", "1 5-4 L", "0 6-4 R")
    assert texts_of(game.not_dealt()) == ["6-6", "5-5"]


def test_a_round_begun_by_the_last_winner_proves_nothing() -> None:
    rules = {"preset": "sin_robo_series", "hand_size": 2, "next_lead": "winner"}
    game = played(dealt(rules, ["3-3 6-5", "5-4 2-0"]), "0 3-3")  # blocked, 11 against 11
    assert (game.winner, game.lead_seat) == ([], 0)
    game.next_round(["3-3 6-5", "6-6 2-0"], rest_of(["3-3 6-5", "6-6 2-0"]))
    assert (game.lead_seat, game.must_lead, game.legal()) == (0, None, ["3-3", "6-5"])
    assert played(game, "0 6-5").not_dealt() == set()


# -- deals that agree -------------------------------------------------------------------------


def test_deals_of_a_small_set_are_counted_by_hand() -> None:
    rules = {"preset": "estandar", "set": 2, "hand_size": 2, "lead": "seat"}
    hands = ["2-2 2-0", "1-0 0-0"]
    # four unseen tiles: 6 hands of the other seat, 2 orders of the boneyard
    game = dealt(rules, hands, "1-1 2-1")
    assert len(set(map(str, agreeing_deals(game, 0)))) == 12
    # a draw: the other hand lacks 2-1, so it is one of 3; the first tile drawn is open
    played(game, "0 2-2", "1 draw")
    assert len(list(agreeing_deals(game, 0))) == 6
    # a second draw: the first tile was not 2-1
    played(game, "1 draw")
    assert len(list(agreeing_deals(game, 0))) == 3
    # seat 1 has drawn the boneyard itself and knows all
    assert list(agreeing_deals(game, 1)) == [([["2-2", "2-0"], ["1-0", "0-0"]], ["1-1", "2-1"])]


def test_a_seat_knows_its_own_draws_when_another_has_drawn_before() -> None:
    rules = {"preset": "estandar", "set": 3, "hand_size": 2, "lead": "seat"}
    game = dealt(rules, ["3-3 2-2", "1-0 0-0"], "1-1 3-1 2-0 2-1")
    played(game, "0 3-3", "1 draw", "1 draw", "1 3-1 L", "0 draw", "0 draw", "0 2-1 L")
    # seat 1 has 0-0, 1-0, 1-1 without a 3, one of them drawn first; 3-0 and 3-2 lie undrawn
    deals = list(agreeing_deals(game, 0))
    assert len(deals) == 6
    assert all(boneyard[1:4] == ["3-1", "2-0", "2-1"] for _, boneyard in deals)
    assert {boneyard[0] for _, boneyard in deals} == {"0-0", "1-0", "1-1"}


def test_who_leads_and_what_is_led_tells_of_the_other_hands() -> None:
    # seat 1 holds 0-0 of 0-0, 1-0, 1-1 and does not lead: seat 0 must hold 1-1
    game = dealt({"preset": "sin_robo", "set": 1}, ["1-1", "0-0"])
    assert list(agreeing_deals(game, 1)) == [([["1-1"], ["0-0"]], ["1-0"])]
    assert len(list(agreeing_deals(game, 0))) == 2


def every_deal(game: Oracle) -> Iterator[Deal]:
    seats, size = game.rules["seats"], game.rules["hand_size"]
    for order in permutations(whole_set(game.rules["set"])):
        hands = [order[s * size : (s + 1) * size] for s in range(seats)]
        if all(list(hand) == sorted(hand) for hand in hands):
            texts = [texts_of(set(hand)) for hand in hands]
            yield texts, [text_of(tile) for tile in order[seats * size :]]


def knowledge(game: Oracle, seat: int) -> tuple[Any, ...]:
    drawn = [(who, tile if who == seat else None) for who, tile in game.drawn]
    outcome = (game.end, game.winner, game.pips)
    return game.lead_seat, game.dealt[0][seat], drawn, game.events, outcome


def twin_of(game: Oracle, deal: Deal) -> Oracle | None:
    """The same moves from another deal, None where they are not legal."""
    twin = game.redeal(*deal)
    for seat, move in game.events:
        if twin.seat != seat or move not in twin.legal():
            return None
        twin.play(move)
    return twin


TINY = [
    {"preset": "estandar", "lead": "seat", "hand_size": 2},
    {"preset": "estandar", "hand_size": 1},
    {"preset": "cabra", "hand_size": 2, "lead": "lowest_double", "reserve": 1},
    {"preset": "estandar", "hand_size": 2, "draw": "one"},
    {"preset": "estandar", "hand_size": 1, "seats": 3, "draw": "one", "lead_tile": "free"},
    {"preset": "sin_robo", "hand_size": 2},
]


def random_games(seed: int, rules: dict[str, Any], count: int) -> Iterator[tuple[Oracle, str]]:
    """Every position of some random games, the same object moving on; with a line to print."""
    rng = random.Random(seed)
    for number in range(count):
        game = Oracle(rules)
        tiles = [text_of(tile) for tile in whole_set(game.rules["set"])]
        rng.shuffle(tiles)
        size, seats = game.rules["hand_size"], game.rules["seats"]
        hands = [tiles[s * size : (s + 1) * size] for s in range(seats)]
        game.next_round(hands, tiles[seats * size :])
        yield game, f"seed {seed} game {number} {rules} {hands}"
        while game.seat is not None:
            game.play(rng.choice(game.legal()))
            yield game, f"seed {seed} game {number} {rules} {hands} {game.events}"


@pytest.mark.parametrize("rules", TINY, ids=str)
def test_agreeing_deals_are_those_that_a_search_through_all_deals_finds(
    rules: dict[str, Any],
) -> None:
    for game, line in random_games(1, rules | {"set": 2, "episode": "round"}, 3):
        replayed = [(deal, twin_of(game, deal)) for deal in every_deal(game)]
        for seat in range(game.rules["seats"]):
            known = knowledge(game, seat)
            expected = [d for d, twin in replayed if twin and knowledge(twin, seat) == known]
            assert sorted(agreeing_deals(game, seat)) == sorted(expected), (line, seat)


@pytest.mark.parametrize("rules", TINY, ids=str)
def test_nothing_that_is_claimed_is_false_in_a_deal_that_agrees(rules: dict[str, Any]) -> None:
    for game, line in random_games(2, rules | {"set": 2, "episode": "round"}, 6):
        for seat in range(game.rules["seats"]):
            for deal in agreeing_deals(game, seat):
                twin = twin_of(game, deal)
                assert twin is not None
                for claimed, hand in zip(game.lacks(), twin.hands, strict=True):
                    assert not any(claimed & set(tile) for tile in hand), (line, seat, deal)
                for hand in twin.dealt[0]:
                    assert not game.not_dealt() & hand, (line, seat, deal)
