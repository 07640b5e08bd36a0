"""Games as records: `--save` writes each once, whatever stops it, and `domino replay` reads it."""

import json
import statistics
import time
from pathlib import Path
from threading import Event

import pytest
from support import Highest, Lowest

from agents import evaluate as evaluation
from agents import load
from agents import tournament as tournaments
from agents.evaluate import evaluate
from agents.games import GameFile, Stopped, play_games, records
from agents.tournament import FILE, play_tournament
from domino_env.game import Game
from domino_env.record import read_records, record_to_game
from domino_env.rules import Rules

TWO = Rules.preset("sin_robo")


def saved(path, a, b, rules, deals, **how):
    """The records of the games of A against B."""
    with GameFile(path) as games:
        evaluate(a, b, rules, deals, save=games, **how)
        games.keep()
    return list(read_records(path))


@pytest.mark.parametrize(
    ("fields", "places"),
    [
        ({"preset": "sin_robo"}, ["ab", "ba"]),
        ({"preset": "cabra", "seats": 3, "target": 30}, ["abb", "bab", "bba"]),
        ({"preset": "estandar", "seats": 4, "teams": True}, ["abab", "baba"]),
    ],
)
def test_every_game_is_saved_with_its_players_deal_by_deal(tmp_path, fields, places):
    names = {"a": "heaviest", "b": "random"}
    agents = load("heaviest"), load("random")
    records = saved(tmp_path / "g.jsonl", *agents, Rules.from_dict(fields), 7, seed=2)
    assert [record["players"] for record in records] == 7 * [
        [names[seat] for seat in place] for place in places
    ]
    deals = [record["rounds"][0]["hands"] for record in records]
    sides = len(places)
    for k in range(0, len(deals), sides):
        assert deals[k : k + sides] == sides * [deals[k]]
    assert len({str(deal) for deal in deals}) == 7


def test_the_saved_games_are_those_that_were_counted(tmp_path):
    rules = Rules.preset("cabra", seats=3, target=30)
    records = saved(tmp_path / "g.jsonl", load("expert"), load("random"), rules, 20)
    result = evaluate(load("expert"), load("random"), rules, 20)
    rewards = [r["result"]["reward"][r["players"].index("expert")] for r in records]
    assert sum(rewards) / len(rewards) == pytest.approx(result.mean)
    assert sum(reward > 0 for reward in rewards) == round(result.wins * result.games)


def test_the_file_is_the_same_on_any_number_of_threads(tmp_path):
    files = []
    for threads in (1, 3):
        a = load("expert")
        a.deals_at_once = 4
        saved(tmp_path / str(threads), a, load("random"), TWO, 30, threads=threads)
        files.append((tmp_path / str(threads)).read_bytes())
    assert files[0] == files[1]


def test_after_ctrl_c_the_file_has_the_games_of_the_result(tmp_path):
    def interrupt(result):
        if result.deals == 20:
            raise KeyboardInterrupt

    a = Lowest()
    a.deals_at_once = 10
    records = saved(tmp_path / "g.jsonl", a, Highest(), TWO, 50, progress=interrupt)
    assert len(records) == 2 * 20


@pytest.mark.parametrize(
    "fields",
    [
        {"preset": "cabra", "seats": 4, "teams": True, "target": 30},
        {"preset": "sin_robo", "set": 1, "hand_size": 1, "lead": "seat"},  # nobody has a choice
    ],
    ids=str,
)
def test_a_saved_game_is_the_one_that_its_seed_and_its_players_make(fields):
    rules = Rules.from_dict(fields)
    agents = [(Lowest(), Highest())[seat % 2] for seat in range(rules.seats)]
    for k, line in enumerate(records(rules, agents, 40, play_games(rules, agents, 40, 6))):
        game = Game(rules, seed=40 + k)
        while not game.over:  # a move at a time, the forced ones too
            game.play(game.legal_actions()[-(game.seat % 2)])
        assert json.loads(line) == {**game.to_record(), "players": [a.name for a in agents]}


def test_records_cost_less_than_to_play_them_again_move_by_move():
    agents, ratios = [Lowest(), Highest()], []
    played = play_games(TWO, agents, 0, 100)
    for _ in range(4):  # the first compiles
        began = time.process_time()
        lines = records(TWO, agents, 0, played)
        wrote = time.process_time()
        for line in lines:
            record_to_game(json.loads(line))
        ratios.append((wrote - began) / (time.process_time() - wrote))
    assert statistics.median(ratios[1:]) < 1


def test_no_more_is_written_once_nobody_waits_for_it(monkeypatch, tmp_path):
    def and_stop(rules, seats, seed, games, stop):
        played = play_games(rules, seats, seed, games, stop)
        stop.set()
        return played

    agents, stop = [Lowest(), Highest()], Event()
    played = and_stop(TWO, agents, 0, 5, stop)
    with pytest.raises(Stopped):
        records(TWO, agents, 0, played, stop)
    monkeypatch.setattr(evaluation, "play_games", and_stop)
    with pytest.raises(Stopped):
        saved(tmp_path / "g.jsonl", Lowest(), Highest(), TWO, 5)


# ---------------------------------------------------------------- the file


def lines(path):
    return path.read_text().splitlines()


def test_what_is_not_kept_is_taken_back(tmp_path):
    path = tmp_path / "g.jsonl"
    with GameFile(path) as games:
        games.write([["1", "2"]])
        games.keep()
        games.write([["3"]])
        assert games.kept == 4
    assert lines(path) == ["1", "2"]
    with GameFile(path, 2) as games:
        games.write([["4"], ["5"]])
        games.cut(4)
        games.write([["6"]])
        games.keep()
    assert lines(path) == ["1", "4", "6"]


def test_a_file_with_no_game_is_not_left_behind(tmp_path):
    with GameFile(tmp_path / "g.jsonl") as games:
        games.write([["1"]])
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("name", "size", "message"),
    [
        ("no/g.jsonl", 0, "no/g.jsonl: found no folder no, expected it"),
        ("g.jsonl", 9, "g.jsonl: found no file, expected the 9 bytes that were saved"),
        ("empty", 9, "empty: found 0 bytes, expected the 9 bytes that were saved"),
        ("folder", 0, "folder: found a folder, expected a file"),
    ],
)
def test_a_file_that_cannot_take_the_games_is_told(tmp_path, monkeypatch, name, size, message):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "empty").touch()
    (tmp_path / "folder").mkdir()
    with pytest.raises(ValueError, match=message):
        GameFile(name, size)


# ---------------------------------------------------------------- tournaments


BOTS = "heaviest", "lightest", "random"


def tournament(folder, save, stop_at=None, names=BOTS):
    """A tournament that Ctrl-C ends in the pairing of that number, after a part of it."""

    def progress(done, total, note):
        if done == stop_at:
            raise KeyboardInterrupt

    agents = [load(name) for name in names]
    for agent in agents:
        agent.deals_at_once = 5
    return play_tournament(agents, TWO, 12, 3, folder, progress, save=save)


@pytest.mark.parametrize("stops", [[0], [1], [2], [1, 2], [0, 0, 1]])
def test_an_interrupted_tournament_saves_every_game_once(tmp_path, stops):
    whole, parts = tmp_path / "whole.jsonl", tmp_path / "parts.jsonl"
    tournament(None, whole)
    assert len(list(read_records(whole))) == 3 * 2 * 12
    for stop_at in stops:
        assert not tournament(tmp_path / "kept", parts, stop_at).ended
    assert tournament(tmp_path / "kept", parts).ended
    assert parts.read_bytes() == whole.read_bytes()
    tournament(tmp_path / "kept", parts)
    assert parts.read_bytes() == whole.read_bytes()


def test_a_tournament_that_was_killed_saves_every_game_once(tmp_path):
    whole, parts = tmp_path / "whole.jsonl", tmp_path / "parts.jsonl"
    tournament(None, whole)
    tournament(tmp_path / "kept", parts, stop_at=1)
    with parts.open("a") as file:
        file.write('{"rules": {"pre')  # what was being written then
    tournament(tmp_path / "kept", parts)
    assert parts.read_bytes() == whole.read_bytes()


def test_a_tournament_goes_on_from_whatever_was_on_the_disk(tmp_path, monkeypatch):
    """What a kill leaves: the file of any moment, and more games behind those that it knows."""
    monkeypatch.setattr(tournaments, "WRITE_EVERY", 0.0)
    kept, save, snapshots = tmp_path / "kept" / FILE, tmp_path / "g.jsonl", []
    write = tournaments._File._put

    def noting(*arguments):
        write(*arguments)
        if kept.exists():
            snapshots.append((kept.read_bytes(), save.read_bytes()))

    monkeypatch.setattr(tournaments._File, "_put", noting)
    whole = tournament(kept.parent, save)
    monkeypatch.setattr(tournaments._File, "_put", write)
    games = save.read_bytes()
    assert len({file for file, _ in snapshots}) == 1 + 3 * 4  # at first, 3 chunks, and their end
    for file, found in snapshots:
        kept.write_bytes(file)
        save.write_bytes(found + b'{"rules": {"pre')
        assert tournament(kept.parent, save) == whole
        assert save.read_bytes() == games


class Bad(Lowest):
    """Raises in its second chunk of deals."""

    name = "bad"
    deals_at_once = 5

    def seed(self, seed):
        self.late = isinstance(seed, tuple) and seed[1] > 0
        super().seed(seed)

    def act(self, view):
        if self.late:
            raise RuntimeError("no idea")
        return super().act(view)


def test_the_games_of_a_pairing_that_failed_are_not_saved(tmp_path, monkeypatch):
    monkeypatch.setattr(tournaments, "WRITE_EVERY", 0.0)
    agents = [load("heaviest"), Bad(), load("random")]
    save = tmp_path / "g.jsonl"
    for folder in (None, tmp_path / "kept", tmp_path / "kept"):
        if folder is None or not folder.exists():
            save.unlink(missing_ok=True)
        played = play_tournament(agents, TWO, 12, 3, folder, save=save)
        assert len(played.failures) == 2
        assert played.begun is None
        players = [set(json.loads(line)["players"]) for line in lines(save)]
        assert players == 24 * [{"heaviest", "random"}]


def test_a_file_that_does_not_go_with_the_tournament_is_refused(tmp_path):
    save, other = tmp_path / "g.jsonl", tmp_path / "other.jsonl"
    tournament(tmp_path / "kept", save, stop_at=1)
    before = save.read_bytes()
    with pytest.raises(
        ValueError, match=r"found games saved to .*g\.jsonl, expected no file of games"
    ):
        tournament(tmp_path / "kept", None)
    with pytest.raises(ValueError, match=r"saved to .*g\.jsonl, expected .* to .*other\.jsonl"):
        tournament(tmp_path / "kept", other)
    with pytest.raises(ValueError, match=r"g\.jsonl: found a file, expected a new name"):
        tournament(tmp_path / "new", save)
    assert save.read_bytes() == before
    save.write_bytes(before[:-9])
    with pytest.raises(ValueError, match="bytes, expected the"):
        tournament(tmp_path / "kept", save)
    assert not Path(other).exists()


def test_a_file_of_games_is_the_same_however_its_path_is_written(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "T").mkdir()
    tournament("kept", "./T//x", stop_at=1)
    assert tournament("kept", "T/x").ended
    assert len(lines(tmp_path / "T" / "x")) == 3 * 2 * 12
