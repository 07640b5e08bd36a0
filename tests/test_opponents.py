"""The page of opponents: played once, kept, and written from what is kept."""

import json

import pytest

from benchmarks import opponents

BOTS = "heaviest", "random"


@pytest.fixture
def place(tmp_path, monkeypatch):
    """A small page: one game, two tables, a search agent of one world."""
    pytest.importorskip("matplotlib")
    for name, value in {
        "KEPT": tmp_path / "kept",
        "PAGE": tmp_path / "opponents.md",
        "IMAGES": tmp_path / "images",
        "BOTS": BOTS,
        "SEARCH": ("pimc:1",),
        "GAMES": {"sin_robo": {}},
        "TABLES": {"2 seats": {"seats": 2}, "3 seats": {"seats": 3}},
        "SEARCHED": ("2 seats",),
        "DEALS": 20,
        "FIRST_LOOK": 5,
        "MOST": 10,
    }.items():
        monkeypatch.setattr(opponents, name, value)
    return tmp_path


def test_the_page_has_a_row_for_each_agent_that_played(place, capsys):
    opponents.opponents(["bots", "page"])
    tables = (place / "opponents.md").read_text().split("### ")[1:]
    assert [table.splitlines()[0] for table in tables] == ["sin_robo, 2 seats", "sin_robo, 3 seats"]
    for table in tables:
        rows = [line.split(" | ") for line in table.splitlines() if line.startswith("| `")]
        assert {row[0] for row in rows} == {f"| `{name}`" for name in BOTS}
        assert all(len(row) == 4 for row in rows)
    assert (place / "images" / "opponents-sin_robo.png").read_bytes().startswith(b"\x89PNG")
    assert "sin_robo, 3 seats: 20 deals a pairing" in capsys.readouterr().out


def test_search_meets_every_bot_and_is_rated_with_them(place):
    whole, _ = opponents.opponents(["bots", "search", "page"])
    assert set(whole["ratings"]) == {"pimc:1", *BOTS}
    pairs = [{result["a"], result["b"]} for result in whole["results"]]
    assert pairs == [set(BOTS), {"pimc:1", "heaviest"}, {"pimc:1", "random"}]
    assert "| `pimc:1` | " in (place / "opponents.md").read_text()


def test_nothing_is_played_twice(place, monkeypatch):
    opponents.opponents(["bots"])
    kept = sorted((place / "kept").rglob("*.json"))
    assert [file.parent.name for file in kept] == ["sin_robo-2-seats-bots", "sin_robo-3-seats-bots"]
    assert [len(json.loads(file.read_text())["results"]) for file in kept] == [1, 2]

    def again(*_, **__):
        raise AssertionError("played again")

    monkeypatch.setattr("agents.tournament.evaluate", again)
    opponents.opponents(["bots"])
