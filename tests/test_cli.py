"""The `domino` command: what it prints, its exit status, and one clear line on bad input."""

import contextlib
import dataclasses
import io
import json
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from agents import cli, compare
from agents.cli import main
from agents.options import parse_settings

COMPILING = "domino: compiling for the first time"  # what a cold cache says on stderr
CASES = Path(__file__).parent / "cases"


def run(capsys, line):
    """Exit status, stdout and stderr of a command."""
    try:
        status = main(line.split())
    except SystemExit as exited:
        status = exited.code or 0
    printed = capsys.readouterr()
    errors = [row for row in printed.err.splitlines(True) if not row.startswith(COMPILING)]
    return status, printed.out, "".join(errors)


# ---------------------------------------------------------------- help and bad input


def test_help_lists_the_subcommands(capsys):
    status, out, err = run(capsys, "--help")
    assert (status, err) == (0, "")
    for name in ("train", "evaluate", "tournament", "play", "replay", "bench"):
        assert f"• {name} " in out


@pytest.mark.parametrize(
    ("command", "options"),
    [
        (
            "evaluate",
            ["--rules NAME", "--seats N", "--set FIELD=VALUE", "--deals N", "--until H", "--json"],
        ),
        ("play", ["--rules NAME", "--seats N", "--set FIELD=VALUE", "--seat N", "AGENT"]),
        ("replay", ["FILE", "--show"]),
    ],
)
def test_each_subcommand_has_help(capsys, command, options):
    status, out, err = run(capsys, f"{command} --help")
    assert (status, err) == (0, "")
    assert [option for option in options if option not in out] == []


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("", "Expected one of {train, evaluate, tournament, play, replay, exploit, bench}"),
        ("bogus", "Unrecognized options: bogus. Available subcommands: train, evaluate"),
        ("evaluate heaviest random --deal 3", "Unrecognized options: --deal, 3, did you mean"),
        ("evaluate heaviest random --deals 1e3", "deals: found '1e3', expected an integer\n"),
        ("evaluate heaviest random --seed x", "seed: found 'x', expected an integer\n"),
        ("evaluate heaviest random --until x", "until: found 'x', expected a number\n"),
        ("evaluate heaviest random --until-clear x", "until_clear: found 'x', expected an integer"),
        ("evaluate heaviest random --save agents", "agents: found a folder, expected a file"),
        ("evaluate heaviest random cfr:10", "cfr"),
        ("evaluate heaviest random --seats", "Missing value for argument '--seats'"),
        ("evaluate heaviest", "evaluate: found 1 agent, expected A and at least one opponent"),
        ("evaluate heaviest radnom", "agent: there is no 'radnom', did you mean random?"),
        ("evaluate runs/none random", "agent: there is no folder 'runs/none'"),
        ("evaluate heaviest random --rules cabr", "preset: there is no 'cabr', did you mean cabra"),
        ("evaluate heaviest random --set seat=2", "rules: there is no field 'seat', did you"),
        ("evaluate heaviest random --set seats", "--set: found 'seats', expected FIELD=VALUE"),
        ("evaluate heaviest random --set seats=[", "--set: found 'seats=[', expected a plain"),
        ("evaluate heaviest random --set seats=2.5", "seats: 2.5 is no integer, expected 2 to 4"),
        ("evaluate heaviest random --set set=6 --set set=7", "--set: found set twice"),
        ("evaluate heaviest random --seats 3 --set seats=4", "seats: found both in --seats and"),
        ("evaluate heaviest random --seats 5", "seats: 5 is out of range, expected 2 to 4"),
        ("evaluate heaviest random --deals 0", "deals: found 0, expected 1 to"),
        ("evaluate heaviest random --seed -1", "seed: found -1, expected 0 to"),
        ("evaluate heaviest random --threads 0", "threads: found 0, expected 1 to 1024"),
        ("evaluate heaviest random --until 0", "until: found 0.0, expected a half width above 0"),
        ("evaluate heaviest random --until -1", "until: found -1.0, expected a half width above 0"),
        ("evaluate heaviest random --until nan", "until: found nan, expected a half width above 0"),
        ("evaluate heaviest random --until-clear 0", "until_clear: found 0, expected 1 to"),
        ("evaluate heaviest random --until 1 --until-clear 5", "until: found until_clear too"),
        ("evaluate heaviest random --save no/g.jsonl", "no/g.jsonl: found no folder no, expected"),
        ("evaluate heaviest random --save Makefile", "Makefile: found a file, expected a new name"),
        ("tournament heaviest random --threads 0", "threads: found 0, expected 1 to 1024"),
        ("tournament heaviest random --until 0", "until: found 0.0, expected a half width above"),
        ("tournament heaviest random --save no/g", "no/g: found no folder no, expected it"),
        ("play heaviest --seat 2", "seat: found 2, expected 0 to 1"),
        ("play nobody", "agent: there is no 'nobody'"),
        ("replay", "Missing from domino replay: FILE"),
        ("replay no/file", "no/file: No such file or directory"),
        ("replay a b", "Unrecognized options: b"),
    ],
)
def test_bad_input_is_one_clear_line_and_status_2(capsys, line, message):
    status, out, err = run(capsys, line)
    assert (status, out) == (2, "")
    assert err.startswith(f"domino: {message}")
    assert err.count("\n") == 1


def test_the_process_ends_with_that_status_and_without_a_traceback():
    command = [sys.executable, "-m", "agents.cli", "evaluate", "heaviest", "--fo"]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert ended.returncode == 2
    assert ended.stdout == ""
    assert ended.stderr == "domino: Unrecognized options: --fo\n"


# ---------------------------------------------------------------- evaluate


def test_settings_are_read_as_yaml_reads_them():
    texts = ["teams=true", "hand_size=7", "lead=seat", "score=none", "target=null"]
    assert parse_settings(texts) == {
        "teams": True,
        "hand_size": 7,
        "lead": "seat",
        "score": "none",
        "target": None,
    }


def test_evaluate_prints_one_object_for_one_pairing(capsys):
    line = "evaluate heaviest random --rules cabra --seats 4 --set teams=true --set episode=round"
    status, out, err = run(capsys, f"{line} --deals 200 --seed 3 --json")
    assert (status, err) == (0, "")
    assert len(out.splitlines()) == 1
    figures = json.loads(out)
    assert (figures["a"], figures["b"], figures["seed"]) == ("heaviest", "random", 3)
    assert figures["rules"] == {"preset": "cabra", "episode": "round", "seats": 4, "teams": True}
    assert (figures["deals"], figures["games"]) == (200, 400)
    assert figures["wins"] + figures["draws"] + figures["losses"] == pytest.approx(1)
    assert figures["wins"] - figures["losses"] == pytest.approx(figures["mean"])
    assert 0 < figures["ci95"] < 0.2
    assert isinstance(figures["points"], float)


def test_evaluate_prints_a_list_for_several_opponents(capsys):
    status, out, _ = run(capsys, "evaluate heaviest random heaviest --deals 1 --json")
    assert status == 0
    figures = json.loads(out)
    assert [pairing["b"] for pairing in figures] == ["random", "heaviest"]
    assert [pairing["ci95"] for pairing in figures] == [None, None]  # of a single deal


def test_evaluate_prints_a_table_with_a_row_for_each_opponent(capsys):
    status, out, err = run(capsys, "evaluate heaviest random heaviest --rules block --deals 100")
    assert (status, err) == (0, "")
    rows = [line.split()[0] for line in out.splitlines() if "±" in line and "100" in line]
    assert rows == ["random", "heaviest"]
    assert "heaviest in sin_robo, 2 seats" in out


def test_evaluate_prints_what_there_is_when_it_is_interrupted(capsys, monkeypatch):
    played = []
    real = compare.evaluate

    def stopped(a, b, rules, **how):
        played.append(b.name)
        if len(played) == 2:
            raise KeyboardInterrupt
        return real(a, b, rules, **how)

    monkeypatch.setattr(compare, "evaluate", stopped)
    line = "evaluate heaviest random heaviest random --deals 20 --json"
    status, out, err = run(capsys, line)
    assert (status, err) == (130, "domino: interrupted after 1 of 3 pairings\n")
    assert [figures["b"] for figures in json.loads(out)] == ["random"]
    assert played == ["random", "heaviest"]


def test_evaluate_goes_no_further_after_a_pairing_that_was_cut_short(capsys, monkeypatch):
    real = compare.evaluate

    def stopped(a, b, rules, **how):
        return dataclasses.replace(real(a, b, rules, 7), interrupted=True)

    monkeypatch.setattr(compare, "evaluate", stopped)
    status, out, err = run(capsys, "evaluate heaviest random heaviest --deals 20 --json")
    told = "domino: interrupted after 0 of 2 pairings and 7 deals of the next\n"
    assert (status, err) == (130, told)
    assert [figures["deals"] for figures in json.loads(out)] == [7]


def test_the_pairings_before_one_that_fails_are_kept(capsys, monkeypatch):
    def failing(a, b, *rest, **how):
        if b.name == "random":
            raise ValueError("random: raised")
        return real(a, b, *rest, **how)

    real = compare.evaluate
    monkeypatch.setattr(compare, "evaluate", failing)
    status, out, err = run(capsys, "evaluate heaviest heaviest random --deals 20 --json")
    assert (status, err) == (2, "domino: random: raised\n")
    assert [figures["b"] for figures in json.loads(out)] == ["heaviest"]


def test_evaluate_plays_until_the_interval_is_narrow_enough(capsys):
    status, out, _ = run(capsys, "evaluate heaviest random --until 0.03 --threads 1 --json")
    assert status == 0
    figures = json.loads(out)
    assert 0 < figures["ci95"] <= 0.03
    assert figures["deals"] % 2048 == 0  # whole parts


def test_evaluate_with_all_deals_played_and_no_width_reached_is_no_interruption(capsys):
    status, out, _ = run(capsys, "evaluate heaviest random --until 0.001 --deals 300 --json")
    assert (status, json.loads(out)["deals"]) == (0, 300)


def test_the_saved_games_of_all_pairings_are_accepted_by_replay(capsys, tmp_path):
    file = tmp_path / "games.jsonl"
    assert run(capsys, f"evaluate heaviest random expert --deals 5 --save {file}")[0] == 0
    status, out, _ = run(capsys, f"replay {file}")
    assert (status, out.startswith(f"{file}: 20 games, 20 rounds, ")) == (0, True)
    players = [json.loads(line)["players"] for line in file.read_text().splitlines()]
    assert players[:2] == [["heaviest", "random"], ["random", "heaviest"]]
    assert players[-2:] == [["heaviest", "expert"], ["expert", "heaviest"]]


def test_the_games_before_a_pairing_that_fails_are_saved(capsys, monkeypatch, tmp_path):
    def failing(a, b, *rest, save, **how):
        result = real(a, b, *rest, save=save, **how)
        if b.name == "random":
            raise ValueError("random: raised")
        return result

    real, file = compare.evaluate, tmp_path / "games.jsonl"
    monkeypatch.setattr(compare, "evaluate", failing)
    status, _, err = run(capsys, f"evaluate heaviest expert random --deals 4 --save {file}")
    assert (status, err) == (2, "domino: random: raised\n")
    players = [set(json.loads(line)["players"]) for line in file.read_text().splitlines()]
    assert players == 8 * [{"heaviest", "expert"}]


def test_a_tournament_takes_the_same_options(capsys, tmp_path):
    line = "tournament heaviest random --deals 30 --until-clear 5 --threads 1 --json"
    status, out, _ = run(capsys, f"{line} --save {tmp_path}/g.jsonl --out {tmp_path}/kept")
    figures = json.loads(out)
    assert (status, figures["until_clear"], figures["deals"]) == (0, 5, 30)
    assert figures["results"][0]["deals"] == 30
    status, out, _ = run(capsys, f"replay {tmp_path}/g.jsonl")
    assert (status, out.split(", ")[0]) == (0, f"{tmp_path}/g.jsonl: 60 games")


def test_the_progress_bar_has_the_running_interval(capsys, monkeypatch):
    told = []

    @contextlib.contextmanager
    def bar(title):
        yield lambda *note: told.append((title, *note))

    monkeypatch.setattr(compare, "progress_bar", bar)
    _, out, _ = run(capsys, "evaluate heaviest random --deals 3000 --json")
    figures = json.loads(out)
    assert [note[:3] for note in told] == [
        ("heaviest against random", 2048, 3000),
        ("heaviest against random", 3000, 3000),
    ]
    assert told[1][3] == f"{figures['mean']:+.3f} ± {figures['ci95']:.3f}"
    run(capsys, "evaluate heaviest random --until 0.02")
    # A half width of 0.022 or so after 2,048 deals: as many more as its square is larger.
    _, deals, total, note = told[2]
    half = float(note.split("± ")[1])
    assert total == pytest.approx(deals * (half / 0.02) ** 2, rel=0.1)


@pytest.fixture
def trained(tmp_path):
    """The folder of an untrained policy for three seats of estandar."""
    pytest.importorskip("torch")
    from agents.policy import Network, Shape, save_policy

    rules = {"preset": "estandar", "seats": 3}
    save_policy(tmp_path, Network(Shape([rules], [8])))
    (tmp_path / "config.yaml").write_text("rules: {preset: estandar, seats: 3}\n")
    return tmp_path


def test_a_trained_agent_is_evaluated_by_the_rules_of_its_run(capsys, trained):
    status, out, _ = run(capsys, f"evaluate {trained} random --deals 10 --json")
    assert status == 0
    assert json.loads(out)["rules"] == {"preset": "estandar", "seats": 3}
    assert (json.loads(out)["a"], json.loads(out)["games"]) == (str(trained), 30)


def test_given_rules_go_before_those_of_the_run(capsys, trained):
    line = f"evaluate random {trained} --deals 10 --json --rules sin_robo --seats 3"
    status, out, _ = run(capsys, line)
    assert status == 0
    assert json.loads(out)["rules"] == {"preset": "sin_robo", "seats": 3}


def test_rules_that_a_trained_agent_does_not_fit_are_one_clear_line(capsys, trained):
    status, out, err = run(capsys, f"evaluate {trained} random --deals 10 --seats 2")
    assert (status, out) == (2, "")
    assert err == f"domino: {trained}: found seats 2, trained for 3\n"


# ---------------------------------------------------------------- replay


def test_replay_counts_the_games_of_a_good_file(capsys, tmp_path):
    lines = (CASES / "random.jsonl").read_text().splitlines()[:3]
    file = tmp_path / "games.jsonl"
    file.write_text("\n".join(lines) + "\n")
    rounds = [entry for line in lines for entry in json.loads(line)["rounds"]]
    moves = sum(len(entry["moves"]) for entry in rounds)
    expected = f"{file}: 3 games, {len(rounds)} rounds, {moves} moves, no fault found\n"
    assert run(capsys, f"replay {file}") == (0, expected, "")


def test_replay_tells_the_line_of_the_first_fault(capsys, tmp_path):
    good = (CASES / "random.jsonl").read_text().splitlines()[0]
    bad = json.loads(good)
    bad["rounds"][0]["moves"][0] = "0 9-9"
    file = tmp_path / "games.jsonl"
    file.write_text(f"{good}\n{json.dumps(bad)}\n{{\n")
    status, out, err = run(capsys, f"replay {file}")
    assert (status, out) == (2, "")
    assert err.startswith(f"domino: {file}, line 2: round 0, move 0: ")
    assert err.count("\n") == 1


def test_replay_shows_each_game(capsys, tmp_path):
    file = tmp_path / "games.jsonl"
    file.write_text((CASES / "positions.jsonl").read_text().splitlines()[0] + "\n")
    status, out, _ = run(capsys, f"replay {file} --show")
    assert status == 0
    assert out.startswith("Game 1: ")
    assert "Round 0" in out
    assert "seat 1" in out


# ---------------------------------------------------------------- play


def typed(monkeypatch, text):
    monkeypatch.setattr(sys, "stdin", io.StringIO(text))


def test_a_person_plays_to_the_end(capsys, monkeypatch):
    typed(monkeypatch, "1\n" * 40)
    status, out, err = run(capsys, "play heaviest --rules sin_robo --seed 5")
    assert (status, err) == (0, "")
    assert out.startswith("You are player_0, heaviest plays for the others.")
    assert "player_1 plays " in out
    assert "Your move (1 to " in out
    assert "result" in out
    assert out.splitlines()[-1].startswith("Rewards: player_0 ")


def test_a_person_may_type_the_move_and_is_asked_again_after_nonsense(capsys, monkeypatch):
    line = "play random --rules sin_robo --set lead=seat --seed 5"
    typed(monkeypatch, "q\n")
    shown = run(capsys, line)[1]
    second = next(row for row in shown.splitlines() if row.startswith("1: ")).split("   ")[1]
    move = second.removeprefix("2: ")
    typed(monkeypatch, f"0\n9-9\n99\n\n{move.lower()}\nq\n")
    out = run(capsys, line)[1]
    assert out.count("is none of these moves") == 4
    assert f"player_0 plays {move}\n" in out


@pytest.mark.parametrize("text", ["q\n", "quit\n", ""])
def test_a_person_may_leave(capsys, monkeypatch, text):
    typed(monkeypatch, text)
    status, out, err = run(capsys, "play heaviest --seats 4 --set teams=true --seat 2 --seed 1")
    assert (status, err) == (0, "")
    assert "player_0 your partner" in out
    assert out.endswith("You left the game.\n")


def test_a_person_sees_no_hand_but_the_own_before_the_end(capsys, monkeypatch):
    typed(monkeypatch, "q\n")
    out = run(capsys, "play heaviest --rules sin_robo --set lead=seat --seed 2")[1]
    others = [row for row in out.splitlines() if row.startswith("  1 player_1")]
    assert len(others) == 1
    assert set(others[0].split("tiles:")[1]) == {"▒", " "}


# ---------------------------------------------------------------- train and bench


def test_train_gets_its_arguments_as_they_are(monkeypatch):
    got = []
    monkeypatch.setitem(sys.modules, "agents.training", SimpleNamespace(main=got.append))
    assert main(["train", "cabra", "--seed", "3", "--help"]) == 0
    assert got == [["cabra", "--seed", "3", "--help"]]


def test_bench_without_a_source_tree_says_so(capsys, monkeypatch, tmp_path):
    monkeypatch.setattr(cli, "__file__", str(tmp_path / "agents" / "cli.py"))
    status, out, err = run(capsys, "bench")
    assert (status, out) == (2, "")
    assert err == f"domino: bench: found no benchmarks in {tmp_path}, expected a source tree\n"


def test_bench_runs_the_benchmarks_of_the_source_tree(monkeypatch, tmp_path):
    (tmp_path / "benchmarks").mkdir()
    script = "import sys; sys.exit(len(sys.argv[1:]) + 40)\n"
    (tmp_path / "benchmarks" / "__main__.py").write_text(script)
    monkeypatch.setattr(cli, "__file__", str(tmp_path / "agents" / "cli.py"))
    assert main(["bench", "--only", "x"]) == 42
