"""Evaluation in threads gives the same on any number of them, and ends when it is asked to."""

import json
import math
import threading
import time

import pytest
from support import Highest, Lowest

from agents import AgentError, load
from agents.evaluate import evaluate, in_order
from agents.games import Stopped, play_games
from agents.result import LEAST_DEALS
from domino_env.game import Game
from domino_env.rules import Rules

# ---------------------------------------------------------------- threads


@pytest.mark.parametrize(
    ("a", "b", "fields", "deals", "at_once"),
    [
        ("random", "mobility", {"preset": "sin_robo"}, 700, 100),
        ("expert", "random", {"preset": "cabra", "seats": 3, "target": 30}, 50, 20),
        ("pimc:2", "random", {"preset": "sin_robo", "seats": 4, "teams": True}, 9, 2),
        ("cfr:20", "random", {"preset": "sin_robo", "set": 2, "hand_size": 2}, 90, 20),
    ],
)
def test_the_result_is_the_same_on_any_number_of_threads(a, b, fields, deals, at_once):
    rules, told = Rules.from_dict(fields), []
    for threads in (1, 2, 5):
        first = load(a)
        first.deals_at_once = at_once
        told.append([])
        evaluate(first, load(b), rules, deals, 7, told[-1].append, threads=threads)
    assert told[0] == told[1] == told[2]
    assert len(told[0]) == math.ceil(deals / at_once)


def test_threads_do_not_share_what_an_agent_keeps_to_itself():
    class Noting(Lowest):
        """Sees to it that two of it play at the same time, and notes who plays when."""

        meeting, playing = threading.Barrier(2, timeout=20), []

        def act(self, view):
            if len(self.playing) < 2:
                self.playing.append((id(self), id(self.random), threading.get_ident()))
                self.meeting.wait()
            return super().act(view)

    a = Noting()
    evaluate(a, Highest(), Rules.preset("sin_robo"), 3, threads=2)
    (one, random_of_one, thread_of_one), (two, random_of_two, thread_of_two) = a.playing
    assert len({id(a), one, two}) == 3
    assert len({id(a.random), random_of_one, random_of_two}) == 3
    assert thread_of_one != thread_of_two


def test_what_an_agent_has_of_luck_is_left_as_it_was():
    a, twin = load("random", 5), load("random", 5)
    evaluate(a, load("random", 6), Rules.preset("sin_robo"), 5)
    assert a.random.random() == twin.random.random()


def test_the_first_error_is_told_whichever_thread_is_first():
    class Late(Lowest):
        """Raises at once, but in the first games, with seat 0, late."""

        def act(self, view):
            if (view.seat == 0).any():
                time.sleep(0.1)
            raise RuntimeError("no idea")

    rules, found = Rules.preset("sin_robo", lead="seat"), []
    for threads in (1, 4):
        with pytest.raises(AgentError) as raised:
            evaluate(Late(), Highest(), rules, 50, threads=threads)
        found.append(str(raised.value))
    assert found[0] == found[1]
    position = Game.from_record(json.loads(found[0].partition("position: ")[2]))
    assert position.seat == 0


def test_no_more_is_played_than_is_asked_for():
    begun, stop = [], threading.Event()
    results = in_order(begun.append, ((k,) for k in range(10**9)), 3, stop)
    next(results)
    next(results)
    assert not stop.is_set()
    results.close()
    assert stop.is_set()
    assert max(begun) <= 2 * 3 + 1


def test_games_that_nobody_waits_for_are_given_up():
    stop = threading.Event()

    class Stopping(Lowest):
        asked = 0

        def act(self, view):
            type(self).asked += 1
            stop.set()
            return super().act(view)

    with pytest.raises(Stopped):
        play_games(Rules.preset("cabra"), [Stopping(), Highest()], 0, 10, stop)
    assert Stopping.asked == 1


# ---------------------------------------------------------------- until


def test_until_ends_with_the_first_part_that_is_narrow_enough():
    a, told = load("heaviest"), []
    a.deals_at_once = 100
    result = evaluate(a, load("random"), Rules.preset("sin_robo"), None, 1, told.append, until=0.06)
    widths = [part.ci95 for part in told]
    assert widths[-1] == result.ci95 <= 0.06
    assert [part.deals for part in told if part.deals >= LEAST_DEALS and part.ci95 <= 0.06] == [
        result.deals
    ]


def test_until_gives_the_result_of_as_many_deals():
    a = load("heaviest")
    a.deals_at_once = 100
    rules = Rules.preset("sin_robo")
    result = evaluate(a, load("random"), rules, None, 1, until=0.06)
    assert result == evaluate(a, load("random"), rules, result.deals, 1)
    assert evaluate(a, load("random"), rules, 150, 1, until=0.06).deals == 150


def test_until_clear_ends_at_a_look():
    a, rules = load("expert"), Rules.preset("sin_robo")
    a.deals_at_once = 50
    assert evaluate(a, load("random"), rules, None, until_clear=200).deals == 200
    even = evaluate(Highest(), Highest(), rules, 3000, until_clear=200)
    assert (even.deals, even.mean) == (3000, 0)
