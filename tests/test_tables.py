"""A tournament as people and programs read it: table, CSV, heat map, and by the command."""

import csv
import dataclasses
import json

import pytest
from made_up import FixedBinomial, made_up, rating_of

from agents import AgentError, tables, tournament
from agents.cli import main
from agents.evaluate import evaluate
from agents.result import Budget
from agents.tables import cross_table, title_of, write_csv, write_heat_map
from agents.tournament import Tournament
from domino_env.rules import Rules

TWO = Rules.preset("sin_robo")
BOTS = ("heaviest", "lightest", "random")


@pytest.fixture
def small():
    """Three agents, the strongest in the middle, one pairing failed."""
    played = made_up(TWO, [-0.5, 1, -0.5], 400, FixedBinomial())
    played.failures["agent 0", "agent 2"] = "agent 2: raised"
    del played.results["agent 0", "agent 2"]
    return played


def test_the_title_tells_how_many_deals_were_played_where_pairings_differ(small):
    (pair, result), *_ = small.results.items()
    assert title_of(small) == "sin_robo, 2 seats: 400 deals a pairing"
    small.results[pair] = dataclasses.replace(result, deals=50)
    assert title_of(small) == "sin_robo, 2 seats: 50 to 400 deals a pairing"


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
