"""Tournaments: every pairing once, going on after an end, failing agents, ratings, files."""

import csv
import dataclasses
import json
import math
import re

import numpy as np
import pytest
from made_up import FixedBinomial, made_up, rating_of
from support import Highest, Lowest

from agents import Agent, AgentError, load, tables, tournament
from agents.cli import main
from agents.evaluate import evaluate
from agents.result import Budget
from agents.tables import cross_table, write_csv, write_heat_map
from agents.tournament import Tournament, play_tournament, read_tournament
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


@pytest.fixture
def evaluated(monkeypatch):
    """The pairings that were played."""
    pairings = []

    def noting(a, b, *rest, **how):
        pairings.append((a.name, b.name))
        return evaluate(a, b, *rest, **how)

    monkeypatch.setattr(tournament, "evaluate", noting)
    return pairings


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


def test_a_pairing_that_was_cut_short_is_not_kept(tmp_path, monkeypatch):
    def stopped(a, b, rules, deals, **how):
        return dataclasses.replace(evaluate(a, b, rules, deals), interrupted=True)

    monkeypatch.setattr(tournament, "evaluate", stopped)
    part = play_tournament(agents(), TWO, 20, 0, tmp_path)
    assert (part.results, part.ended, list(tmp_path.iterdir())) == ({}, False, [])


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


# ---------------------------------------------------------------- to read


@pytest.fixture
def small():
    """Three agents, the strongest in the middle, one pairing failed."""
    played = made_up(TWO, [-0.5, 1, -0.5], 400, FixedBinomial())
    played.failures["agent 0", "agent 2"] = "agent 2: raised"
    del played.results["agent 0", "agent 2"]
    return played


def test_the_table_has_the_strongest_first_and_the_reward_of_the_row(small):
    from rich.console import Console

    console = Console(width=80)
    with console.capture() as captured:
        console.print(cross_table(small))
    text = captured.get()
    assert "sin_robo, 2 seats: 400 deals a pairing" in text
    # e^1.5 / (1 + e^1.5) of 800 games are 654: a reward of 0.635.
    rows = [line.split() for line in text.splitlines() if "agent " in line and "±" not in line]
    rows = [row for row in rows if row[1] == "agent"]
    assert [row[2] for row in rows] == ["1", "0", "2"]
    assert rows[0][4:] == ["+0.635", "+0.635"]
    assert rows[1][4:] == ["-0.635", "failed"]


def test_the_csv_has_both_directions_and_the_ratings(small, tmp_path):
    write_csv(small, tmp_path / "t.csv")
    rows = list(csv.DictReader((tmp_path / "t.csv").read_text().splitlines()))
    pairs = [(row["a"][-1], row["b"][-1]) for row in rows]
    assert pairs == [("1", "0"), ("1", "2"), ("0", "1"), ("2", "1")]
    means = [float(row["mean"]) for row in rows]
    assert means == pytest.approx([0.635, 0.635, -0.635, -0.635], abs=5e-4)
    assert float(rows[0]["elo"]) == pytest.approx(rating_of(small, "agent 1").elo)
    assert rows[2]["wins"] == rows[0]["losses"]


def test_the_heat_map_is_a_picture_even_of_nothing(small, tmp_path):
    pytest.importorskip("matplotlib")
    for played in (small, Tournament(["a", "b"], TWO, Budget(5), 0)):
        write_heat_map(played, tmp_path / "t.png")
        assert (tmp_path / "t.png").read_bytes().startswith(b"\x89PNG")


def test_the_heat_map_says_what_its_numbers_are(small, tmp_path, monkeypatch):
    figure_module = pytest.importorskip("matplotlib.figure")
    made = []

    class Noted(figure_module.Figure):
        def __init__(self, **how):
            super().__init__(**how)
            made.append(self)

    monkeypatch.setattr(tables, "import_figure", lambda: Noted)
    write_heat_map(small, tmp_path / "t.png")
    texts = [
        text.get_text() for text in made[0].findobj(match=lambda part: hasattr(part, "get_text"))
    ]
    label = f"agent 1\nElo {rating_of(small, 'agent 1').text()}"
    assert label in texts
    assert any("± is the 95% interval; Elo of mean 0" in text for text in texts)


def command(capsys, line):
    status = main(["tournament", *line.split()])
    printed = capsys.readouterr()
    return status, printed.out, printed.err


def test_the_command_prints_json_and_writes_files(capsys, tmp_path, evaluated):
    pytest.importorskip("matplotlib")
    files = f"--csv {tmp_path}/t.csv --png {tmp_path}/t.png --out {tmp_path}/kept"
    line = f"heaviest lightest random --rules estandar --deals 20 --seed 4 --json {files}"
    status, out, _ = command(capsys, line)
    assert status == 0
    figures = json.loads(out)
    assert figures["agents"] == list(BOTS)
    assert (figures["rules"], figures["deals"], figures["seed"]) == ({"preset": "estandar"}, 20, 4)
    assert [(result["a"], result["b"]) for result in figures["results"]] == evaluated
    assert set(figures["ratings"]) == set(BOTS)
    assert sum(rating["elo"] for rating in figures["ratings"].values()) == pytest.approx(
        0, abs=1e-6
    )
    assert figures["failures"] == []
    assert len((tmp_path / "t.csv").read_text().splitlines()) == 7
    assert (tmp_path / "t.png").stat().st_size > 1000
    assert command(capsys, line)[1] == out
    assert len(evaluated) == 3


def test_the_command_prints_a_table(capsys):
    status, out, _ = command(capsys, "heaviest random --seats 3 --deals 10")
    assert status == 0
    assert "sin_robo, 3 seats: 10 deals a pairing" in out


def test_the_command_ends_with_status_130_and_what_there_is_after_ctrl_c(
    capsys, monkeypatch, tmp_path
):
    def stopped(a, b, *rest, **how):
        if b.name == "random":
            raise KeyboardInterrupt
        return evaluate(a, b, *rest, **how)

    monkeypatch.setattr(tournament, "evaluate", stopped)
    line = "heaviest lightest random --deals 10 --json"
    status, out, err = command(capsys, line)
    assert (status, err) == (130, "domino: interrupted after 1 of 3 pairings\n")
    assert len(json.loads(out)["results"]) == 1
    err = command(capsys, f"{line} --out {tmp_path}")[2]
    assert err == "domino: interrupted after 1 of 3 pairings; the same command goes on\n"


def test_ctrl_c_before_the_first_result_leaves_the_files_as_they_were(
    capsys, monkeypatch, tmp_path
):
    def stopped(*_, **how):
        raise KeyboardInterrupt

    monkeypatch.setattr(tournament, "evaluate", stopped)
    for name in ("t.csv", "t.png"):
        (tmp_path / name).write_text("older")
    files = f"--csv {tmp_path}/t.csv --png {tmp_path}/t.png"
    status, _, err = command(capsys, f"heaviest random {files}")
    assert (status, err) == (130, "domino: interrupted after 0 of 1 pairings\n")
    assert [(tmp_path / name).read_text() for name in ("t.csv", "t.png")] == 2 * ["older"]


def test_a_folder_is_the_same_agent_however_it_is_written(capsys, tmp_path, monkeypatch):
    pytest.importorskip("torch")
    from agents.policy import Network, Shape, save_policy

    monkeypatch.chdir(tmp_path)
    (tmp_path / "R" / "expert").mkdir(parents=True)
    save_policy(tmp_path / "R" / "expert", Network(Shape([{"preset": "sin_robo"}], [8])))
    for name in ("R/expert/", "./R/expert"):
        line = f"{name} random --rules sin_robo --deals 2 --out kept --json"
        status, out, err = command(capsys, line)
        assert (status, err, json.loads(out)["agents"]) == (0, "", ["R/expert", "random"])
    monkeypatch.chdir(tmp_path / "R")  # here ./expert is the folder, and expert the bot
    _, out, _ = command(capsys, "./expert expert --rules sin_robo --deals 2 --json")
    assert json.loads(out)["agents"] == ["./expert", "expert"]


def test_the_command_names_a_failing_agent_on_one_line_and_ends_with_status_2(capsys, monkeypatch):
    def failing(a, b, *rest, **how):
        if b.name == "random":
            raise AgentError("random: raised")
        return evaluate(a, b, *rest, **how)

    monkeypatch.setattr(tournament, "evaluate", failing)
    status, out, err = command(capsys, "heaviest lightest random --deals 10 --json")
    assert (status, err) == (2, "domino: random: raised\n")
    figures = json.loads(out)
    assert len(figures["results"]) == 1
    assert figures["failures"][0] == {"a": "heaviest", "b": "random", "error": "random: raised"}


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("heaviest", "tournament: found 1 agent, expected at least two"),
        ("heaviest random heaviest", "tournament: found the agent heaviest twice, expected it"),
        ("heaviest radnom", "agent: there is no 'radnom', did you mean random?"),
        ("heaviest random --deals 0", "deals: found 0, expected 1 to"),
        ("heaviest random --seed -1", "seed: found -1, expected 0 to"),
        ("heaviest random --out Makefile", "Makefile: found a file, expected a folder"),
        ("heaviest random --csv no/t.csv", "no/t.csv: found no folder no, expected it"),
        ("heaviest random --png no/t.png", "no/t.png: found no folder no, expected it"),
        ("heaviest random --csv folder", "folder: found a folder, expected a file"),
        ("heaviest random --png folder", "folder: found a folder, expected a file"),
        ("heaviest random --save folder", "folder: found a folder, expected a file"),
        ("heaviest random --rules cabr", "preset: there is no 'cabr', did you mean cabra"),
    ],
)
def test_bad_input_is_one_clear_line_and_status_2(capsys, monkeypatch, tmp_path, line, message):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "Makefile").touch()
    (tmp_path / "folder").mkdir()
    status, out, err = command(capsys, line)
    assert (status, out) == (2, "")
    assert err.startswith(f"domino: {message}")
    assert err.count("\n") == 1
