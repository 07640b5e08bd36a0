"""Sampled worlds and beliefs: positions worked out by hand, and how they are asked for."""

import hashlib
import os
import random
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from oracle_rules import tile_of
from support import NUMBER, Table, action_of, bits, random_rules, redacted
from test_no_leak import random_position
from test_worlds import unfinished

from domino_env import engine, worlds
from domino_env.worlds import belief, deal_count, sample_worlds

ROOT = Path(__file__).resolve().parent.parent


# ---------------------------------------------------------------- by hand


def play(rules: dict[str, Any], hands: list[str], boneyard: str, moves: list[str]) -> np.recarray:
    """The game after some moves of a given deal."""
    table = Table(rules, 0)
    games = table.twin([hand.split() for hand in hands], boneyard.split())
    for move in moves:
        engine.move(games[0], action_of(move, table.rules.tiles))
    return games


def chances(games: np.recarray, seat: int, tile: str) -> list[float]:
    return [round(float(c), 4) for c in belief(games, seat)[0, :, NUMBER[tile_of(tile)]]]


BLOCK = {"preset": "sin_robo", "set": 2, "hand_size": 2, "lead": "seat"}
BLOCK_DEAL = (["1-1 2-1", "0-0 2-0"], "1-0 2-2")


def test_a_pass_leaves_what_does_not_fit() -> None:
    games = play(BLOCK, *BLOCK_DEAL, ["1-1", "pass"])
    assert chances(games, 0, "1-0") == [0, 0, 1]
    assert chances(games, 0, "2-2") == [0, 0.6667, 0.3333]  # two of 0-0, 2-0, 2-2
    assert chances(games, 0, "2-1") == [1, 0, 0]  # its own
    assert chances(games, 0, "1-1") == [0, 0, 0]  # on the table
    assert deal_count(games, 0)[0] == 6  # three hands, two orders of the boneyard


def test_a_round_that_goes_on_proves_that_somebody_can_play() -> None:
    games = play(BLOCK, *BLOCK_DEAL, ["1-1", "pass"])
    assert chances(games, 1, "1-0") == [0, 0.5, 0.5]  # seat 0 holds 1-0 or 2-1, or it had ended
    assert chances(games, 1, "2-2") == [0, 0, 1]
    games = play(BLOCK, ["1-1 2-2", "1-0 2-0"], "0-0 2-1", ["1-1"])
    assert chances(games, 1, "2-2") == [0, 0.3333, 0.6667]  # seat 1 can play itself: nothing told


def test_tiles_that_did_not_fit_stay_with_the_seat_that_drew_them() -> None:
    rules = BLOCK | {"preset": "estandar"}
    games = play(rules, ["1-1 2-1", "0-0 2-0"], "2-2 1-0", ["1-1", "draw"])
    assert chances(games, 0, "1-0") == [0, 0.5, 0.5]  # of two tiles not dealt, the first or not
    engine.move(games[0], action_of("draw", 6))  # so the first did not fit
    assert chances(games, 0, "1-0") == [0, 1, 0]  # nothing is left to draw: this one does
    engine.move(games[0], action_of("1-0 L", 6))
    assert [chances(games, 0, tile)[1] for tile in ("0-0", "2-0", "2-2")] == [1, 1, 1]
    assert deal_count(games, 0)[0] == 3  # any of the three was drawn first
    boneyards = Counter(tuple(w.boneyard[:2]) for w in sample_worlds(games, 0, 3000, 1)[0])
    assert set(boneyards) == {(NUMBER[0, 0], 1), (NUMBER[0, 2], 1), (NUMBER[2, 2], 1)}
    assert min(boneyards.values()) > 900


FREE = {"preset": "sin_robo", "set": 2, "hand_size": 2, "lead_tile": "free"}


def test_a_free_lead_tells_of_the_leaders_hand_without_saying_the_tile() -> None:
    games = play(FREE, ["0-0 2-0", "1-1 1-0"], "2-1 2-2", [])
    assert int(games[0].leader) == 1
    # Seat 1 holds any two of 1-0, 1-1, 2-1, 2-2, but not 1-0 with 2-1: seat 0 would lead with 0-0.
    assert chances(games, 0, "2-2") == chances(games, 0, "1-1") == [0, 0.6, 0.4]
    assert chances(games, 0, "1-0") == chances(games, 0, "2-1") == [0, 0.4, 0.6]
    engine.move(games[0], action_of("1-0", 6))
    assert chances(games, 0, "2-2") == chances(games, 0, "1-1") == [0, 0.5, 0.5]
    assert chances(games, 0, "2-1") == [0, 0, 1]
    assert chances(games, 1, "2-2") == [0, 0, 1]  # seat 0 would have led


def test_a_seat_that_leads_by_turn_tells_nothing_of_its_hand() -> None:
    games = play(FREE, ["0-0 2-0", "1-1 1-0"], "2-1 2-2", [])
    games[0].by_rule = 0
    assert chances(games, 0, "2-2") == chances(games, 0, "2-1") == [0, 0.5, 0.5]


def test_a_forced_lead_tells_which_tiles_were_not_dealt() -> None:
    rules = {"preset": "estandar", "set": 2, "seats": 3, "hand_size": 1}
    games = play(rules, ["1-1", "0-0", "2-1"], "2-2 1-0 2-0", ["1-1"])
    assert int(games[0].end) == engine.OUT
    games = play(rules | {"hand_size": 2}, ["1-1 1-0", "0-0 2-0", "2-1 2-2"], "", [])
    assert chances(games, 0, "2-2") == [0, 0, 1, 0]  # seat 2 is to lead, and holds 2-2
    games = play(BLOCK | {"lead": "highest_double"}, ["1-1 2-0", "0-0 1-0"], "2-2 2-1", ["1-1"])
    assert chances(games, 1, "2-2") == [0, 0, 1]
    assert chances(games, 0, "0-0") == [0, 0.6667, 0.3333]


def test_a_block_at_the_end_shows_what_nobody_holds() -> None:
    games = play(BLOCK, ["1-1 2-2", "0-0 2-0"], "1-0 2-1", ["1-1"])
    assert int(games[0].end) == engine.BLOCKED
    assert chances(games, 0, "1-0") == [0, 0, 1]
    assert {int(w.pips[1]) for w in sample_worlds(games, 0, 50, 1)[0]} == {2}  # 0-0 and 2-0 only
    assert belief(games, 0).shape == (1, 3, 6)


def test_absent_seats_are_zero_in_a_belief_for_more_places() -> None:
    games = play(BLOCK, *BLOCK_DEAL, ["1-1", "pass"])
    narrow, wide = belief(games, 1), belief(games, 1, observe_as=4)
    assert wide.shape == (1, 5, 6)
    assert wide.dtype == np.float32
    assert np.array_equal(wide[:, [0, 1, 4]], narrow)
    assert not wide[:, 2:4].any()


# ---------------------------------------------------------------- how they are asked for


class Shown(NamedTuple):
    """What an agent is shown, as far as worlds are concerned."""

    games: Any
    seat: Any


def some_games(**fields: Any) -> tuple[np.recarray, np.ndarray]:
    """Positions of one game, as the seats to move see them, and those seats."""
    rng = random.Random(3)
    rules = {"preset": "estandar", "seats": 3, "lead_tile": "free"} | fields
    tables = [unfinished(rules, rng, 25) for _ in range(6)]
    games = np.concatenate([redacted(t.games, int(t.g.seat)) for t in tables]).view(np.recarray)
    return games, games["seat"].astype(np.int64)


def test_the_same_seed_gives_the_same_worlds_and_fewer_are_the_first_of_more() -> None:
    games, seats = some_games()
    drawn = sample_worlds(games, seats, 20, 7)
    assert drawn.shape == (6, 20)
    assert drawn.tobytes() == sample_worlds(games, seats, 20, np.random.default_rng(7)).tobytes()
    assert drawn[:, :5].tobytes() == sample_worlds(games, seats, 5, 7).tobytes()
    assert drawn[:4].tobytes() == sample_worlds(games[:4], seats[:4], 20, 7).tobytes()
    assert drawn.tobytes() != sample_worlds(games, seats, 20, 8).tobytes()
    assert sample_worlds(games, seats, 0).shape == (6, 0)


def test_each_world_has_a_random_state_of_its_own() -> None:
    games, seats = some_games()
    drawn = sample_worlds(games, seats, 20, 7)
    assert len({state.tobytes() for state in drawn["random"].reshape(-1, 4)}) == 120


def test_nothing_that_is_hidden_is_read() -> None:
    rng = random.Random(4)
    for _ in range(20):
        table = random_position(random_rules(rng), rng, 60)
        seat = rng.randrange(table.rules.seats)
        open_, known = table.games.copy(), redacted(table.games, seat)
        assert (
            sample_worlds(open_, seat, 3, 1).tobytes() == sample_worlds(known, seat, 3, 1).tobytes()
        )
        assert belief(open_, seat).tobytes() == belief(known, seat).tobytes()
        assert open_.tobytes() == table.games.tobytes(), "what is given stays as it is"


def test_a_view_says_itself_whose_it_is() -> None:
    games, seats = some_games()
    view = Shown(games, seats)
    assert belief(view).tobytes() == belief(games, seats).tobytes() == belief(games).tobytes()
    worlds_of_view = sample_worlds(view, None, 4, 1)
    assert worlds_of_view.tobytes() == sample_worlds(games, seats, 4, 1).tobytes()


def test_games_need_not_lie_side_by_side() -> None:
    games, seats = some_games()
    assert belief(games[::2], seats[::2]).tobytes() == belief(games, seats)[::2].tobytes()
    assert belief(games[::-1]).tobytes() == belief(games)[::-1].tobytes()


def test_a_seat_that_is_not_at_the_table_of_its_row_is_named() -> None:
    games, _ = some_games()
    with pytest.raises(ValueError, match=r"^seats: there is no seat 4, expected 0 to 2$"):
        belief(games, np.array([0, 2, 1, 4, 0, -1]))


def test_room_that_is_too_small_grows(monkeypatch: pytest.MonkeyPatch) -> None:
    games, seats = some_games(seats=4, set=9, hand_size=3)
    expected = belief(games, seats), sample_worlds(games, seats, 9, 1).tobytes()
    rooms: list[int] = []
    new_graph = worlds.new_graph
    monkeypatch.setattr(worlds, "STATES", 60)
    monkeypatch.setattr(worlds, "new_graph", lambda room: rooms.append(room) or new_graph(room))
    assert np.array_equal(belief(games, seats), expected[0])
    assert rooms[:2] == [60, 240]
    assert sample_worlds(games, seats, 9, 1).tobytes() == expected[1]


def test_the_engine_plays_a_world_to_its_end() -> None:
    games, seats = some_games(score="loser", target=40)
    for g in sample_worlds(games, seats, 3, 1).reshape(-1):
        game = np.array([g]).view(np.recarray)
        while not game[0].over:
            left, right = engine.plays(game[0])
            draw = 2 * int(game[0].tiles)
            nothing = draw if engine.may_draw(game[0]) else draw + 1
            action = (
                2 * engine.lowest(left) if left else 2 * engine.lowest(right) + 1 if right else -1
            )
            engine.advance(game[0], action if action >= 0 else nothing)
        assert game[0].scores.max() >= 40


@pytest.mark.parametrize(
    ("seats", "count", "message"),
    [
        (3, 1, "seats: there is no seat 3, expected 0 to 2"),
        (-1, 1, "seats: there is no seat -1, expected 0 to 2"),
        (0.5, 1, r"seats: found 0.5, expected integers \[6\]"),
        ([0, 1], 1, r"seats: found \[0, 1\], expected integers \[6\]"),
        (0, -1, "count: found -1, expected an integer of at least 0"),
        (0, True, "count: found True, expected an integer of at least 0"),
    ],
)
def test_what_cannot_be_asked_for_is_named(seats: Any, count: Any, message: str) -> None:
    with pytest.raises(ValueError, match=f"^{message}$"):
        sample_worlds(some_games()[0], seats, count)


def test_what_is_no_record_or_not_of_one_size_is_named() -> None:
    games, _ = some_games()
    with pytest.raises(ValueError, match=r"^games: found None, expected records"):
        belief(Shown(None, 0))
    with pytest.raises(ValueError, match=r"^games: found array\(\[1\]\), expected records"):
        deal_count(np.array([1]))
    other = play(BLOCK, *BLOCK_DEAL, [])
    with pytest.raises(ValueError, match=r"^games: found 2 sizes of games"):
        belief(np.concatenate([games, other]))
    with pytest.raises(ValueError, match=r"^observe_as: found 2, expected 3 to 4$"):
        belief(games, observe_as=2)
    assert deal_count(np.concatenate([games, other])).shape == (7,)


def test_a_record_that_no_deal_agrees_with_is_named() -> None:
    games = np.concatenate([play(BLOCK, *BLOCK_DEAL, ["1-1", "pass"])] * 2).view(np.recarray)
    games[1].hands[0] = bits({(0, 0), (0, 2)})  # then seat 1, which passed, had to hold a 1
    with pytest.raises(ValueError, match=r"^games: no deal agrees with game 1 as seat 0 knows it$"):
        sample_worlds(games, 0, 1)


SCRIPT = """
import sys
sys.path.insert(0, "tests")
from test_worlds_use import digest
print(digest())
"""


def digest() -> str:
    """A hash of worlds, beliefs and counts of a few games."""
    whole = hashlib.sha256()
    for fields in ({}, {"draw": "one", "seats": 4}, {"preset": "sin_robo"}):
        games, seats = some_games(**fields)
        whole.update(sample_worlds(games, seats, 3, 1).tobytes())
        whole.update(belief(games, seats).tobytes() + deal_count(games, seats).tobytes())
    return whole.hexdigest()


def test_plain_python_draws_the_same_worlds_byte_by_byte() -> None:
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT],
        cwd=ROOT,
        env=os.environ | {"NUMBA_DISABLE_JIT": "1", "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=280,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == [digest()]
