"""Tournaments: every pairing once, going on after an end, failing agents, ratings, files."""

import json
import math
import re
import signal

import numpy as np
import pytest
from support import Highest, Lowest

from agents import Agent, AgentError, load, tournament
from agents.evaluate import evaluate
from agents.result import NOTHING
from agents.tournament import FILE, play_tournament, read_tournament
from domino_env.rules import Rules

TWO = Rules.preset("sin_robo")
THREE = Rules.preset("sin_robo", seats=3)
PAIRS = Rules.preset("sin_robo", seats=4, teams=True)
BOTS = ("heaviest", "lightest", "random")


def agents(*names):
    return [load(name, 1) for name in names or BOTS]


def duel(a, b, *rest):
    """`evaluate` of two bots."""
    return evaluate(load(a, 1), load(b, 1), *rest)


def result_of(played, a, b):
    result = played.result(a, b)
    assert result is not None
    return result


class Bad(Agent):
    """Gives no legal move."""

    name = "bad"
    uses = frozenset()

    def act(self, view):
        return np.full(len(view), -1)


# ---------------------------------------------------------------- the pairings


@pytest.mark.parametrize("rules", [TWO, PAIRS], ids=["two seats", "pairs"])
def test_two_sides_play_each_pairing_once_and_mirror_it(rules, evaluated):
    played = play_tournament(agents(), rules, 50, seed=3)
    assert evaluated == [("heaviest", "lightest"), ("heaviest", "random"), ("lightest", "random")]
    assert played.ended
    for a, b in evaluated:
        result, mirror = result_of(played, a, b), result_of(played, b, a)
        assert result == duel(a, b, rules, 50, 3)
        assert (mirror.a, mirror.b, mirror.ci95) == (b, a, result.ci95)
        assert (mirror.mean, mirror.points) == (-result.mean, -result.points)
        assert (mirror.wins, mirror.draws) == (result.losses, result.draws)
    assert played.result("random", "random") is None


def test_the_mirror_is_what_the_other_agent_gets_on_the_same_deals():
    played = play_tournament([Lowest(), Highest()], TWO, 200)
    other = evaluate(Highest(), Lowest(), TWO, 200)
    mirror = result_of(played, "highest", "lowest")
    assert mirror.mean != 0
    assert mirror.mean == pytest.approx(other.mean)
    assert mirror.points == pytest.approx(other.points)
    assert (mirror.wins, mirror.losses) == (other.wins, other.losses)


def test_single_seats_play_both_ways(evaluated):
    played = play_tournament(agents("heaviest", "random"), THREE, 20)
    assert evaluated == [("heaviest", "random"), ("random", "heaviest")]
    for a, b in evaluated:
        assert played.result(a, b) == duel(a, b, THREE, 20)


def test_progress_tells_the_pairings_done_and_what_is_played():
    told = []
    play_tournament(agents(), TWO, 5, progress=lambda *note: told.append(note))
    assert [note[:2] for note in told] == [(0, 3), (1, 3), (2, 3)]
    assert re.match(r"heaviest : lightest [+-]\d\.\d{3} ± ", told[0][2])


# ---------------------------------------------------------------- going on


def test_the_same_call_plays_nothing_twice(tmp_path, evaluated):
    first = play_tournament(agents(), TWO, 20, 3, tmp_path / "new" / "folder")
    assert len(evaluated) == 3
    again = play_tournament(agents(), TWO, 20, 3, tmp_path / "new" / "folder")
    assert len(evaluated) == 3
    assert again == first


def test_an_interrupted_tournament_goes_on(tmp_path, evaluated, monkeypatch):
    whole = play_tournament(agents(), TWO, 20)
    noting = tournament.evaluate

    def stopped(a, b, *rest, **how):
        if (a.name, b.name) == ("heaviest", "random"):
            raise KeyboardInterrupt
        return noting(a, b, *rest, **how)

    monkeypatch.setattr(tournament, "evaluate", stopped)
    part = play_tournament(agents(), TWO, 20, 0, tmp_path)
    assert (list(part.results), part.ended) == ([("heaviest", "lightest")], False)
    monkeypatch.setattr(tournament, "evaluate", noting)
    evaluated.clear()
    assert play_tournament(agents(), TWO, 20, 0, tmp_path) == whole
    assert evaluated == [("heaviest", "random"), ("lightest", "random")]


def test_a_pairing_that_was_cut_short_goes_on_where_it_was(tmp_path, monkeypatch):
    def in_parts(stop):
        def progress(done, total, note):
            if done == 1:
                stop()

        entered = agents()
        for agent in entered:
            agent.deals_at_once = 5
        return play_tournament(entered, TWO, 20, 0, tmp_path, progress, threads=1)

    whole = in_parts(lambda: None)
    (tmp_path / FILE).unlink()
    for deals in (5, 10, 15):
        part = in_parts(lambda: signal.raise_signal(signal.SIGINT))
        assert (list(part.results), part.ended) == ([("heaviest", "lightest")], False)
        assert part.begun is not None
        assert (part.begun.a, part.begun.b, part.begun.deals) == ("heaviest", "random", deals)
        kept = read_tournament(tmp_path)
        assert (kept, kept and kept.begun) == (part, part.begun)
    found, played = [], tournament.evaluate

    def noting(*rest, begun, **how):
        found.append(begun and begun.deals)
        return played(*rest, begun=begun, **how)

    monkeypatch.setattr(tournament, "evaluate", noting)
    assert in_parts(lambda: None) == whole
    assert found == [15, None]
    assert (kept := read_tournament(tmp_path)) is not None
    assert kept.begun is None


def test_numbers_of_numpy_are_kept_as_those_of_python(tmp_path):
    numbers = {"deals": np.int64(4), "seed": np.uint8(3), "until": np.float32(0.5)}
    played = play_tournament(agents(), TWO, folder=tmp_path, **numbers)
    assert read_tournament(tmp_path) == played
    assert play_tournament(agents(), TWO, 4, 3, tmp_path, until=0.5) == played


def test_a_single_deal_is_kept_without_an_interval(tmp_path):
    for _ in range(2):
        played = play_tournament(agents("heaviest", "random"), TWO, 1, 0, tmp_path)
        assert math.isnan(played.results["heaviest", "random"].ci95)


@pytest.mark.parametrize(
    ("names", "rules", "deals", "seed", "message"),
    [
        (BOTS[:2], TWO, 5, 0, r"agents \['heaviest', 'random'\], expected \['heaviest', 'light"),
        (("heaviest", "random"), PAIRS, 5, 0, r"with rules \{'preset': 'sin_robo'\}, expected"),
        (("heaviest", "random"), TWO, 6, 0, "with deals 5, expected 6"),
        (("heaviest", "random"), TWO, 5, 1, "with seed 0, expected 1"),
    ],
)
def test_a_folder_of_another_tournament_is_refused(tmp_path, names, rules, deals, seed, message):
    play_tournament(agents("heaviest", "random"), TWO, 5, 0, tmp_path)
    kept = (tmp_path / "tournament.json").read_bytes()
    with pytest.raises(ValueError, match=message):
        play_tournament(agents(*names), rules, deals, seed, tmp_path)
    assert (tmp_path / "tournament.json").read_bytes() == kept


def trained(folder, weights):
    """An agent that is a folder with a policy in it."""
    folder.mkdir(exist_ok=True)
    (folder / "policy.safetensors").write_bytes(weights)
    agent = Lowest()
    agent.name = str(folder)
    return agent


def test_an_agent_that_was_trained_further_is_noticed(tmp_path, evaluated):
    pytest.importorskip("torch")
    run, kept = tmp_path / "run", tmp_path / "kept"
    others = agents("heaviest", "random")
    play_tournament([trained(run, b"one"), *others], TWO, 5, 0, kept)
    before = (kept / "tournament.json").read_bytes()
    evaluated.clear()
    play_tournament([trained(run, b"one"), *others], TWO, 5, 0, kept)
    message = f"found results of {run} before it was trained further, expected another folder"
    with pytest.raises(ValueError, match=message):
        play_tournament([trained(run, b"two"), *others], TWO, 5, 0, kept)
    assert evaluated == []
    assert (kept / "tournament.json").read_bytes() == before


def test_only_the_pairings_of_some_agents_are_played(tmp_path, evaluated):
    played = play_tournament(agents(), TWO, 5, 0, tmp_path, only=["lightest"])
    assert evaluated == [("heaviest", "lightest"), ("lightest", "random")]
    assert played.ended
    with pytest.raises(ValueError, match=r"with only \['lightest'\], expected \[\]"):
        play_tournament(agents(), TWO, 5, 0, tmp_path)
    with pytest.raises(ValueError, match="only: found expert, expected one of heaviest, lightest"):
        play_tournament(agents(), TWO, 5, only=["expert"])


def test_a_tournament_plays_each_pairing_until_it_is_clear():
    entered = [Lowest(), Highest(), load("random", 1)]
    for agent in entered:
        agent.deals_at_once = 50
    played = play_tournament(entered, TWO, 1600, until_clear=100)
    looks = {100, 200, 400, 800, 1600}
    for result in played.results.values():
        assert result.deals in looks
        assert result.deals == 1600 or abs(result.mean) > result.ci95
    assert played.arguments()["until_clear"] == 100


def test_what_is_kept_can_be_read_without_its_agents(tmp_path):
    played = play_tournament(agents(), THREE, 5, 2, tmp_path, until_clear=3)
    assert read_tournament(tmp_path) == played
    assert read_tournament(tmp_path / "none") is None


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("{", ""),
        ('"deals":5', '"deals":"5"'),
        ('"mean":', '"mean":"x","was":'),
        ('"points":', '"point":'),
        ('"b":"random"', '"b":"expert"'),
        ('"ci95":', '"ci":'),
        ('"preset"', '"present"'),
    ],
)
def test_a_spoilt_file_is_one_clear_line(tmp_path, old, new):
    play_tournament(agents("heaviest", "random"), TWO, 5, 0, tmp_path)
    file = tmp_path / "tournament.json"
    text = file.read_text()
    assert old in text
    file.write_text(text.replace(old, new))
    with pytest.raises(ValueError, match=f"^{re.escape(str(file))}: [^\n]*$"):
        play_tournament(agents("heaviest", "random"), TWO, 5, 0, tmp_path)


@pytest.mark.parametrize(
    "begun",
    [
        {"sums": NOTHING},
        {"sums": [5]},
        {"sums": [4.5, *NOTHING[1:]]},
        {"sums": [2**70, *NOTHING[1:]]},
        {"sums": [2, 99, *NOTHING[2:]]},  # no such variance
        {"b": "expert"},
        {"start": "0"},
        {"start": -1},
        {"start": 1},
    ],
    ids=str,
)
def test_a_spoilt_pairing_is_one_clear_line(tmp_path, begun):
    play_tournament(agents("heaviest", "random"), TWO, 5, 0, tmp_path)
    file = tmp_path / FILE
    kept = json.loads(file.read_text()) | {"results": []}
    good = {"a": "heaviest", "b": "random", "sums": [1, *NOTHING[1:]], "start": 0}
    file.write_text(json.dumps(kept | {"begun": good}))
    whole = read_tournament(tmp_path)
    assert whole is not None
    assert whole.begun is not None
    assert whole.begun.deals == 1
    file.write_text(json.dumps(kept | {"begun": good | begun}))
    with pytest.raises(ValueError, match=f"^{re.escape(str(file))}: [^\n]*$"):
        play_tournament(agents("heaviest", "random"), TWO, 5, 0, tmp_path)


# ---------------------------------------------------------------- agents that fail


def test_a_failing_agent_is_named_and_the_rest_is_kept(tmp_path, evaluated):
    entered = [load("heaviest"), Bad(), load("random"), load("lightest")]
    played = play_tournament(entered, TWO, 10, 0, tmp_path)
    assert list(played.results) == [
        ("heaviest", "random"),
        ("heaviest", "lightest"),
        ("random", "lightest"),
    ]
    assert {pair for pair in evaluated if "bad" in pair} == set(played.failures)
    assert all(error.startswith("bad: gave the action -1") for error in played.failures.values())
    assert played.ended
    rated = played.ratings()
    assert rated["bad"] is None
    assert sum(rating.elo for rating in rated.values() if rating) == pytest.approx(0, abs=1e-6)
    evaluated.clear()
    play_tournament(entered, TWO, 10, 0, tmp_path)
    assert set(evaluated) == set(played.failures)  # what failed is tried again, nothing else


def test_a_bad_number_of_an_agent_ends_its_own_pairings_alone():
    bad = Lowest()
    bad.deals_at_once = 0
    played = play_tournament([load("heaviest"), bad, load("random")], TWO, 10)
    assert list(played.results) == [("heaviest", "random")]
    assert {error.partition(":")[0] for error in played.failures.values()} == {"lowest"}


def test_an_agent_that_does_not_fit_is_told_before_any_game(evaluated):
    class Picky(Bad):
        name = "picky"

        def check(self, rules):
            raise AgentError("picky: found seats 2, trained for 3")

    with pytest.raises(AgentError, match="trained for 3"):
        play_tournament([*agents(), Picky()], TWO, 5)
    assert evaluated == []
