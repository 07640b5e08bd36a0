"""`Game`: what it is dealt, plays, tells and refuses."""

import copy
import pickle
import random
from typing import Any

import numpy as np
import pytest
from oracle import Oracle
from support import played, random_rules

from domino_env import engine
from domino_env.deal import new_game, set_deal
from domino_env.errors import IllegalMove
from domino_env.game import Game
from domino_env.observation import history_length, layout_size, observation_layout
from domino_env.rules import Rules, RulesError
from domino_env.tiles import bits_of, parse_tiles

# Double-two, two hands of two, seat 0 leads; 1-1 and 2-0 stay in the boneyard.
SMALL = {"preset": "sin_robo", "hand_size": 2, "lead": "seat", "set": 2}
HANDS, STOCK = ["2-2 1-0", "2-1 0-0"], "1-1 2-0"


def small(**fields) -> Game:
    """The little game above, perhaps under other rules."""
    return Game.deal(SMALL, HANDS, STOCK, **fields)


# ---------------------------------------------------------------- deals and seeds


def test_the_same_seed_deals_the_same_game_whichever_way_its_rules_are_given():
    seed: Any = np.int64(7)
    games = [Game("kozel", seed=7, seats=3), Game({"preset": "cabra", "seats": 3}, 7)]
    games.append(Game(Rules.preset("cabra", seats=3), seed=seed))
    assert games[0] == games[1] == games[2]
    assert games[0] != Game("cabra", seed=8, seats=3)


def test_without_a_seed_the_deal_comes_by_chance():
    assert len({tuple(Game("sin_robo").hands) for _ in range(4)}) > 1


@pytest.mark.parametrize("seed", [-1, 1.5, "7", True, float("nan")])
def test_a_bad_seed_is_refused(seed):
    with pytest.raises(ValueError, match=r"^seed: found .*, expected an integer of at least 0$"):
        Game("cabra", seed=seed)


def test_a_given_deal_is_dealt_and_the_boneyard_is_drawn_in_its_order():
    hands = ["0-0 1-0 1-1 2-0 2-1 2-2 3-0", "6-6 6-5 6-4 6-3 6-2 6-1 6-0"]
    stock = "4-3 4-2 4-1 4-0 3-3 3-2 3-1 5-5 5-4 5-3 5-2 5-1 5-0 4-4"
    game = Game.deal("estandar", hands, stock)
    assert game.hands == ["3-0 2-2 2-1 2-0 1-1 1-0 0-0", "6-6 6-5 6-4 6-3 6-2 6-1 6-0"]
    assert game.boneyard == stock
    assert (game.seat, game.leader, game.legal_moves()) == (1, 1, ["6-6"])
    game.play("6-6")
    game.play("draw")
    game.play("draw")
    assert game.hands[0] == "4-3 4-2 3-0 2-2 2-1 2-0 1-1 1-0 0-0"
    assert game.boneyard == stock[8:]


def test_tiles_of_a_deal_are_text_or_lists():
    lists = Game.deal(SMALL, [["2-2", "0-1"], ("1-2", "0-0")], ["1-1", "0-2"], seed=1)
    assert lists == small(seed=1)


def test_a_given_deal_still_uses_up_its_shuffle():
    rules = {**SMALL, "preset": "sin_robo_series"}
    given, dealt = Game.deal(rules, HANDS, STOCK, seed=3), Game(rules, seed=3)
    assert given.games["random"].tolist() == dealt.games["random"].tolist()
    for game in (given, dealt):
        while game.round == 0:
            game.play(game.legal_actions()[0])
    assert (given.hands, given.boneyard) == (dealt.hands, dealt.boneyard)


def test_a_drawn_leader_is_the_given_one_or_that_of_the_shuffle():
    rules = {**SMALL, "lead": "random"}
    assert [Game.deal(rules, HANDS, STOCK, leader=p).leader for p in (0, 1)] == [0, 1]
    for seed in range(8):
        assert Game.deal(rules, HANDS, STOCK, seed=seed).leader == Game(rules, seed=seed).leader
    assert small(leader=0).leader == 0


@pytest.mark.parametrize(
    ("hands", "boneyard", "leader", "message"),
    [
        (HANDS, "1-1", None, "deal: 2-0 is neither in a hand nor in the boneyard"),
        (HANDS, "1-1 2-0 2-2", None, "deal: found 2-2 2 times, expected every tile once"),
        (HANDS, "1-1 3-0", None, "boneyard: 3-0 is no tile of a double-two set"),
        (HANDS, 5, None, "boneyard: 5 is no text, expected tiles like '2-0 1-1'"),
        (HANDS, None, None, "boneyard: None is no text, expected tiles like '2-0 1-1'"),
        (HANDS[:1], STOCK, None, "hands: found 1, expected 2, one a seat"),
        ("2-2 1-0", STOCK, None, "hands: '2-2 1-0' is no list, expected one hand a seat"),
        (["2-2 1-0 2-1", "0-0"], STOCK, None, "hand of seat 0: found 3 tiles, expected 2"),
        (["0-0", "2-2 1-0 2-1"], STOCK, None, "hand of seat 0: found 1 tile, expected 2"),
        (
            [[22, "1-0"], "2-1 0-0"],
            STOCK,
            None,
            "hand of seat 0: '22' is no tile of a double-two set, expected text like 2-0",
        ),
        (HANDS, STOCK, 1, "leader: found seat 1, expected seat 0 by the rules"),
        (HANDS, STOCK, 2, "leader: there is no seat 2, expected 0 to 1"),
        (HANDS, STOCK, True, "leader: True is no integer, expected 0 to 1"),
    ],
)
def test_a_bad_deal_is_refused_before_anything_changes(hands, boneyard, leader, message):
    rules = Rules.of(SMALL)
    games = new_game(rules, 1)
    engine.reset(games[0])
    before = games.tobytes()
    with pytest.raises(RulesError) as caught:
        set_deal(games, 0, rules, hands, boneyard, leader)
    assert str(caught.value) == message
    assert games.tobytes() == before


def test_a_deal_is_set_in_the_row_that_is_named():
    rules = Rules.of(SMALL)
    games = engine.new_games(rules, np.arange(3))
    for i in range(3):
        engine.reset(games[i])
    rows = [row.tobytes() for row in games]
    set_deal(games, 1, rules, HANDS, STOCK)
    assert [games[0].tobytes(), games[2].tobytes()] == [rows[0], rows[2]]
    assert games[1].hands[:2].tolist() == [bits_of(parse_tiles(hand)) for hand in HANDS]


# ---------------------------------------------------------------- moves


def test_a_round_is_played_by_text_or_by_number():
    game = small()
    assert (game.seat, game.ends) == (0, None)
    assert game.legal_moves() == ["1-0", "2-2"]
    assert game.legal_actions() == [2, 10]  # 1-0 is tile 1, 2-2 is tile 5
    game.play("2-2")
    assert (game.seat, game.ends, game.legal_moves()) == (1, (2, 2), ["2-1 L"])
    game.play(8)
    assert (game.ends, game.moves) == ((1, 2), ["0 2-2", "1 2-1 L"])
    game.play(np.int8(2))
    assert game.over
    assert (game.rewards, game.moves_made, game.legal_moves()) == ([1.0, -1.0], 3, [])


def test_every_move_that_is_offered_can_be_played_by_its_text():
    for seed in range(12):
        game = Game("cabra", seed=seed)
        for _ in range(30):
            pairs = list(zip(game.legal_moves(), game.legal_actions(), strict=True))
            by_text, by_number = game.copy(), game.copy()
            move, action = random.Random(seed).choice(pairs)
            by_text.play(f"  {move} ")
            by_number.play(action)
            assert by_text == by_number
            game = by_text


@pytest.mark.parametrize(
    ("move", "message"),
    [
        ("0-0 L", "move: seat 1 may not play 0-0 L (legal: 2-1 L)"),
        ("2-1 R", "move: seat 1 may not play 2-1 R (legal: 2-1 L)"),
        ("1-2 R", "move: seat 1 may not play 2-1 R (legal: 2-1 L)"),
        ("pass", "move: seat 1 may not pass (legal: 2-1 L)"),
        ("draw", "move: seat 1 may not draw (legal: 2-1 L)"),
        ("both", "move: seat 1 may not play both (legal: 2-1 L)"),
        ("2-1", "move: '2-1' was found without its side, expected L or R"),
        ("2-1 l", "move: '2-1 l' is no move, expected text like 6-5 R or pass"),
        ("2-1 L R", "move: '2-1 L R' is no move, expected text like 6-5 R or pass"),
        ("pass L", "move: 'pass' is no tile of a double-two set, expected text like 2-0"),
        ("6-5 L", "move: 6-5 is no tile of a double-two set"),
        ("", "move: '' is no tile of a double-two set, expected text like 2-0"),
        (13, "move: seat 1 may not pass (legal: 2-1 L)"),
        (15, "move: there is no action 15, expected 0 to 14"),
        (-1, "move: there is no action -1, expected 0 to 14"),
        (10**30, f"move: there is no action {10**30}, expected 0 to 14"),
        (8.0, "move: 8.0 is no move, expected text or an action, 0 to 14"),
        (float("nan"), "move: nan is no move, expected text or an action, 0 to 14"),
        (True, "move: True is no move, expected text or an action, 0 to 14"),
        (None, "move: None is no move, expected text or an action, 0 to 14"),
        ([8], "move: [8] is no move, expected text or an action, 0 to 14"),
        (b"2-1 L", "move: b'2-1 L' is no move, expected text or an action, 0 to 14"),
    ],
)
def test_a_move_that_is_not_legal_is_refused_and_nothing_changes(move, message):
    game = small(seed=1)
    game.play("2-2")
    before = game.copy()
    with pytest.raises(IllegalMove) as caught:
        game.play(move)
    assert str(caught.value) == message
    assert game == before


def test_the_lead_has_no_side():
    for move, message in (
        ("2-2 L", "move: '2-2 L' was found as the lead, expected a tile alone"),
        (11, "move: seat 0 may not play 2-2 R (legal: 1-0, 2-2)"),
        ("0-0", "move: seat 0 may not play 0-0 (legal: 1-0, 2-2)"),
    ):
        with pytest.raises(IllegalMove) as caught:
            small().play(move)
        assert str(caught.value) == message


def test_nothing_is_played_after_the_end():
    game = played(small(), 0)
    for move in (0, "pass", "2-1 L", 10**30):
        with pytest.raises(IllegalMove, match=r"^move: the game is over"):
            game.play(move)


def test_the_next_round_is_dealt_in_the_move_that_ends_a_round():
    game = Game.deal({**SMALL, "preset": "sin_robo_series"}, HANDS, STOCK, seed=2)
    for move in ("2-2", "2-1 L", "1-0 L"):
        game.play(move)
    assert (game.over, game.round, game.moves, game.moves_made) == (False, 1, [], 3)
    assert (game.scores, len(game.finished), len(game.rounds)) == ([0, 0], 1, 2)
    assert game.finished[0][0].end == engine.OUT
    assert sorted(" ".join([*game.hands, game.boneyard]).split()) == (
        ["0-0", "1-0", "1-1", "2-0", "2-1", "2-2"]
    )


@pytest.mark.parametrize("seed", range(40))
def test_a_game_tells_at_every_move_what_the_rules_say(seed):
    rng = random.Random(seed)
    rules = random_rules(rng)
    print(seed, rules)
    game, oracle = Game(rules, seed), Oracle(rules)
    while not game.over and game.moves_made < 150:
        if not game.moves:
            drawn = oracle.rules["lead"] == "random" and oracle.next_leader is None
            oracle.next_round(game.hands, game.boneyard, game.leader if drawn else None)
        assert game.seat == oracle.seat
        assert sorted(game.legal_moves()) == oracle.legal()
        assert game.ends == (oracle.ends or None)
        assert game.moves == [f"{seat} {move}" for seat, move in oracle.events]
        move = rng.choice(game.legal_moves())
        game.play(move)
        oracle.play(move)
        assert game.scores == oracle.scores
        assert game.rewards == pytest.approx([float(r) for r in oracle.rewards])
        assert game.over == (oracle.over is not None)


# ---------------------------------------------------------------- copies


def test_a_copy_goes_its_own_way():
    game = played(Game("sin_robo_series", seed=1), 1, 40)
    for twin in (game.copy(), copy.copy(game), copy.deepcopy(game)):
        record = game.to_record()
        assert twin == game
        assert twin.to_record() == record
        played(twin, 2)
        assert twin != game
        assert game.to_record() == record


def test_a_pickle_in_the_middle_of_a_match_keeps_everything():
    game = played(Game("cabra", seed=1, seats=4, teams=True), 1, 90)
    assert game.round > 0
    again = pickle.loads(pickle.dumps(game))
    assert again == game
    assert again.rules == game.rules
    assert again.to_record() == game.to_record()
    assert played(again, 5).to_record() == played(game, 5).to_record()


def test_a_game_is_equal_to_games_alone():
    assert small(seed=1) != "a game"
    with pytest.raises(TypeError):
        hash(small())


# ---------------------------------------------------------------- what a seat knows


def test_the_mask_marks_the_legal_actions_and_nothing_at_the_end():
    game = small()
    assert (game.mask().dtype, game.mask().shape) == (np.int8, (15,))
    assert np.flatnonzero(game.mask()).tolist() == game.legal_actions() == [2, 10]
    assert not played(game, 0).mask().any()


def test_observations_are_those_of_the_seat_that_is_named():
    game = small()
    layout = observation_layout(game.rules)
    hand = layout["hand"][0]
    for seat, tiles in ((0, [1, 5]), (1, [0, 4])):
        out = game.observe(seat)
        assert (out.dtype, out.shape) == (np.uint8, (layout_size(layout),))
        assert np.flatnonzero(out[hand]).tolist() == tiles
        assert game.history(seat)[:3].tolist() == [[1, 0, 1 + t, 0] for t in tiles] + [[0] * 4]
        assert game.history(seat).shape == (history_length(game.rules), 4)


def test_a_redacted_record_hides_and_the_game_stays_as_it_is():
    game = small(seed=4)
    before = game.copy()
    hidden = game.redact(1)
    assert hidden[0].hands[:2].tolist() == [0, bits_of(parse_tiles(HANDS[1]))]
    assert hidden[0].boneyard[: hidden[0].stock].tolist() == [-1, -1]
    assert game == before


@pytest.mark.parametrize("look", ["observe", "history", "redact", "table"])
def test_a_seat_that_is_not_there_sees_nothing(look):
    for seat in (2, -1):
        with pytest.raises(ValueError, match=rf"^seat: found {seat}, expected 0 to 1$"):
            getattr(small(), look)(seat)
    with pytest.raises(ValueError, match=r"^seat: '0' is no integer$"):
        getattr(small(), look)("0")


# ---------------------------------------------------------------- for people


def test_the_table_shows_all_hands_or_those_that_the_viewer_may_see():
    game = Game.deal({**SMALL, "preset": "sin_robo_series"}, HANDS, STOCK)
    game.play("2-2")
    game.play("2-1 L")
    table = game.table()
    assert [list(hand) for hand in table.hands] == [[(0, 1)], [(0, 0)]]
    assert (table.line, table.placed_by, table.lead, table.newest) == (
        [(1, 2), (2, 2)],
        [1, 0],
        1,
        [0],
    )
    assert (table.boneyard, table.scores, table.to_move, table.leader) == (2, [0, 0], 0, 0)
    assert [list(hand) for hand in game.table(1).hands] == [[None], [(0, 0)]]
    assert game.table(1).viewer == 1


def test_the_line_of_both_doubles_has_one_at_each_end():
    rules = {"preset": "cabra", "hand_size": 3, "lead": "seat", "set": 3, "draw": "none"}
    game = Game.deal(rules, ["2-1 0-0 3-0", "1-1 2-2 3-1"], "1-0 2-0 3-3 3-2")
    game.play("2-1")
    assert game.legal_moves() == ["1-1 L", "2-2 R", "3-1 L", "both"]
    game.play("both")
    table = game.table()
    assert table.line == [(1, 1), (1, 2), (2, 2)]
    assert (table.placed_by, table.lead, table.newest) == ([1, 0, 1], 1, [0, 2])
    game.play("pass")
    assert (game.table().line, game.table().newest) == (table.line, [])
    assert game.moves == ["0 2-1", "1 both", "0 pass"]


def test_the_line_of_a_table_fits_together_whatever_was_played():
    for seed in range(20):
        game = played(Game("cabra", seed=seed, seats=3, episode="round"), seed, 25)
        table = game.table()  # a line that does not fit raises
        placed = sum(bin(int(tiles)).count("1") for tiles in game.games[0].placed)
        assert len(table.line) == placed
        if game.ends:
            assert (table.line[0][0], table.line[-1][1]) == game.ends


def test_a_game_is_shown_as_text():
    game = small()
    game.play("2-2")
    assert "player_1" in str(game)
    assert "2-1 0-0" in str(game)
    assert repr(game) == (
        "<Game Rules.preset('sin_robo', hand_size=2, lead='seat', set=2): round 0, 1 moves made, "
        "seat 1 to move>"
    )
