"""What the switches of the learner are worth: measured once, by the settings that are told."""

from dataclasses import replace

import pytest

from benchmarks import variants


@pytest.fixture
def quick(monkeypatch, tmp_path):
    """Runs of two updates with 32 games, measured on 4 deals, kept in a folder of their own."""
    monkeypatch.setattr(variants, "FOLDER", tmp_path)
    monkeypatch.setattr(variants, "DEALS", 4)
    small = {"games": 32, "steps": 4, "minibatch": 64, "decisions": 256, "bf16": False}
    made = variants.config_of
    monkeypatch.setattr(
        variants, "config_of", lambda name, games: replace(made(name, games), **small)
    )
    monkeypatch.setattr(variants, "VARIANTS", {"a": {}, "b": {"hidden": (8,)}})
    return tmp_path


def test_what_has_been_measured_is_not_measured_again(quick, monkeypatch, capsys):
    rows = variants.main(["a", "b"])
    assert [(row["game"], row["variant"]) for row in rows] == [
        ("cabra, 2 seats", "a"),
        ("cabra, 2 seats", "b"),
        ("sin_robo, pairs", "a"),
        ("sin_robo, pairs", "b"),
    ]
    assert [row["decisions"] for row in rows] == [256] * 4
    assert rows[1]["results"].keys() == {"expert", "heaviest"}
    assert rows[1]["results"]["expert"]["deals"] == 4
    printed = capsys.readouterr().out
    assert (
        f"| sin_robo, pairs | b | 0.0 M | {rows[3]['results']['expert']['mean']:+.3f} ±" in printed
    )
    monkeypatch.setattr(variants, "measure", None)
    assert variants.main(["a", "b"]) == rows
    monkeypatch.setattr(variants, "VARIANTS", {"a": {}, "b": {"hidden": (9,)}})
    assert [row["variant"] for row in map(vars, variants.all_kept())] == ["a", "a"]


def test_all_games_at_once_are_one_run_with_the_time_of_all(quick):
    rows = variants.main([variants.TOGETHER])
    assert [row["game"] for row in rows] == ["cabra, 2 seats", "sin_robo, pairs"]
    assert rows[0]["minutes"] == rows[1]["minutes"]
    config = variants.config_of(variants.TOGETHER, [*variants.GAMES])
    assert (config.minutes, config.observe_as) == (2 * variants.MINUTES, 4)
    assert [rules.seats for rules in config.games_rules] == [2, 4]


@pytest.mark.parametrize("name", variants.VARIANTS)
def test_each_variant_differs_from_the_others_by_its_switches(name):
    config = variants.config_of(name, ["sin_robo, pairs"])
    for field, value in variants.VARIANTS[name].items():
        assert getattr(config, field) == value
    others = (
        variants.config_of(other, ["sin_robo, pairs"])
        for other in variants.VARIANTS
        if other != name
    )
    assert all(config != other for other in others)
