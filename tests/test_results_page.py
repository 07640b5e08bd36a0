"""The shipped policies: measured once, kept by their files, and told from what is kept alone."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from learning import another, small, started

from agents import evaluate as evaluate_module
from agents import load, shipped
from agents.exploiter import exploiter_config
from agents.options import RulesOptions, parse
from agents.policy import Trained, save_policy
from agents.result import Result
from agents.tournament import read_tournament
from benchmarks import __main__ as speeds
from benchmarks import cards, measures, nashconv, opponents, policies, results, variants
from domino_env import Rules

BOTS = "heaviest", "random"
NAMES = "sin_robo-2", "sin_robo-match-2"
README = "# domino\n\n<!-- results -->\nold\n<!-- /results -->\n\n## Install\n"
CHANGES = {
    shipped: {"POLICIES": "policies"},
    measures: {
        "KEPT": "kept",
        "TRAINING": "training",
        "SPEED": "speed.json",
        "BOTS": BOTS,
        "PIMC": "pimc:1",
        "SLOW_PIMC": "pimc:2",
        "SEARCH": "+search:2",
        "RATED": ("heaviest",),
        "LOOKS": {"2": (2, 4, 1), "pairs": (2, 4, 0)},
        "MOST_MATCHES": 4,
        "PLUS_LOOK": 2,
        "PLUS_MOST": 4,
        "DEALS": 8,
        "MATCHES": 2,
    },
    opponents: {"KEPT": "opponents", "BOTS": BOTS},
    nashconv: {"FOLDER": "nashconv"},
    variants: {"FOLDER": "variants"},
    results: {
        "PAGE": "results.md",
        "README": "README.md",
        "IMAGES": "images",
        "SHOWN": ("pimc:1", *BOTS),
        "SHORT": ("heaviest", "pimc:1"),
    },
    policies: {"RUNS": "runs", "EXPLOITER_DEALS": 20, "TIMED_GAMES": 1},
}


@pytest.fixture
def place(tmp_path, monkeypatch):
    """Two small policies, two bots, few deals, and a README; everything is kept in here."""
    pytest.importorskip("matplotlib")
    for module, values in CHANGES.items():
        for name, value in values.items():
            is_place = isinstance(getattr(module, name), Path)
            monkeypatch.setattr(module, name, tmp_path / value if is_place else value)
    for name in NAMES:
        make_policy(name, seed=1)
    (tmp_path / "README.md").write_text(README)
    return tmp_path


def make_policy(name, seed, **trained):
    folder = shipped.POLICIES / name
    folder.mkdir(parents=True, exist_ok=True)
    config = small(rules=measures.rules_of(name).to_dict())
    save_policy(folder, another(config, seed), half=True, **trained)


def page_of(place):
    """The sections of the page that is written anew, by their titles."""
    results.results()
    sections = (place / "results.md").read_text().split("\n## ")[1:]
    return {title: text.strip() for title, _, text in (s.partition("\n") for s in sections)}


def rows_of(text, name):
    """The cells of the rows of tables that begin with that name."""
    rows = [line.strip("| ").split(" | ") for line in text.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in row] for row in rows if row[0] == f"`{name}`"]


# ---------------------------------------------------------------- measuring


def test_every_part_is_played_once_and_kept(place, evaluated, capsys):
    policies.policies(["bots", "search", "match"])
    hand, match = NAMES
    assert evaluated == [
        *[(hand, bot) for bot in BOTS] * 2,  # with a forced lead, and with a free one
        *[(match, bot) for bot in BOTS],
        (hand, "pimc:1"),
        (match, hand),
    ]
    folders = {path.parent.name: read_tournament(path.parent) for path in place.rglob("tour*.json")}
    rules = {name: played.rules for name, played in folders.items() if played}
    hands = Rules.preset("sin_robo", seats=2)
    series = Rules.preset("sin_robo_series", seats=2)
    assert rules == {
        "sin_robo-2-bots": hands,
        "sin_robo-2-bots-lead-free": hands.replace(lead_tile="free"),
        "sin_robo-2-search": hands,
        "sin_robo-match-2-bots": series,
        "sin_robo-match-2-match": series,
    }
    assert "sin_robo-2 in sin_robo, 2 seats" in capsys.readouterr().out
    evaluated.clear()
    policies.policies(["bots", "search", "match"])
    assert not evaluated


def test_another_policy_of_a_name_is_measured_anew_and_no_other(place, evaluated):
    policies.policies(["bots", "match"])
    evaluated.clear()
    make_policy("sin_robo-match-2", seed=2)
    policies.policies(["bots", "match"])
    match = "sin_robo-match-2"
    assert evaluated == [*[(match, bot) for bot in BOTS], (match, "sin_robo-2")]
    evaluated.clear()
    make_policy("sin_robo-2", seed=2)
    policies.policies(["bots", "match"])
    hand = "sin_robo-2"
    assert evaluated == [*[(hand, bot) for bot in BOTS] * 2, (match, hand)]


def test_what_was_played_on_other_deals_is_not_there_and_is_played_again(
    place, evaluated, monkeypatch
):
    policies.policies(["bots", "search", "sin_robo-2"])
    evaluated.clear()
    monkeypatch.setattr(measures, "LOOKS", {"2": (2, 4, 2)})
    assert not measures.results_of("sin_robo-2", "search")
    policies.policies(["bots", "search", "sin_robo-2"])
    assert evaluated == [("sin_robo-2", "pimc:1")]
    (found,) = measures.results_of("sin_robo-2", "search")
    assert found.seed == 2
    evaluated.clear()
    monkeypatch.setattr(measures, "LOOKS", {"2": (2, 6, 2)})
    policies.policies(["bots", "search", "sin_robo-2"])
    assert evaluated == [("sin_robo-2", "pimc:1")]


def test_a_measurement_that_was_ended_goes_on_with_what_is_missing(place, evaluated, monkeypatch):
    def ended(*_, **__):
        raise KeyboardInterrupt

    play = evaluate_module._Match.play
    monkeypatch.setattr(evaluate_module._Match, "play", ended)
    assert policies.policies(["bots", "sin_robo-2"])[0]["met"] is None
    assert evaluated == [("sin_robo-2", "heaviest")]
    evaluated.clear()
    monkeypatch.setattr(evaluate_module._Match, "play", play)
    assert policies.policies(["bots", "sin_robo-2"])[0]["met"] is not None
    assert evaluated == [("sin_robo-2", bot) for bot in BOTS] * 2


def test_an_exploiter_is_trained_once_and_told_with_its_curve(place, monkeypatch, capsys):
    def quick(*arguments):
        few = {"games": 64, "steps": 8, "minibatch": 256, "bf16": False, "workers": 1}
        config = replace(exploiter_config(*arguments), decisions=2048, minutes=0.0, **few)
        return replace(config, evaluate_every=1, evaluate_deals=10)

    monkeypatch.setattr("agents.exploiter.exploiter_config", quick)
    monkeypatch.setattr("agents.run.draw_curves", lambda *_: None)
    assert page_of(place)["Exploiters"] == "Not measured."
    policies.policies(["exploiter"], minutes=1.0)
    monkeypatch.setattr("agents.exploiter.exploit", None)  # it would fail if it were called
    policies.policies(["exploiter"], minutes=0.5)
    found = json.loads((place / "kept" / "sin_robo-2-exploiter.json").read_text())
    assert (found["b"], found["deals"], len(found["curve"])) == ("sin_robo-2", 20, 4)
    words = f"{found['mean']:+.3f} ± {found['ci95']:.3f} after 1 minutes"
    assert f"sin_robo-2: an exploiter wins {words}" in capsys.readouterr().out
    told = page_of(place)
    assert words in told["Exploiters"]
    met = "**met**" if found["mean"] <= 0.03 else "**not met**"
    assert ["an exploiter wins", "at most +0.03", words, met] in [
        row[1:] for row in rows_of(told["What has to be reached"], "sin_robo-2")
    ]
    assert (place / "images" / "exploiter-sin_robo-2.png").read_bytes().startswith(b"\x89PNG")
    make_policy("sin_robo-2", seed=2)
    assert page_of(place)["Exploiters"] == "Not measured."


def test_search_is_measured_with_the_time_of_its_decisions(place, monkeypatch, capsys):
    def without_search(name, seed=None):
        agent = load(name.removesuffix("+search:2"), seed)
        agent.name = name
        return agent

    monkeypatch.setattr(policies, "load", without_search)
    policies.policies(["plus"])
    out = capsys.readouterr().out
    times = json.loads((place / "kept" / "sin_robo-2-times.json").read_text())["ms"]
    assert list(times) == ["sin_robo-2+search:2", "sin_robo-2", "pimc:2"]
    assert all(f"{name}: {ms:.2f} ms of CPU a decision" in out for name, ms in times.items())
    monkeypatch.setattr(policies, "decision_ms", None)  # it would fail if it were called
    policies.policies(["plus"])
    told = page_of(place)["With search"]
    assert f"`pimc:2` {times['pimc:2']:.2f} ms" in told
    assert [row[0] for row in rows_of(told, "pimc:2")] == ["`pimc:2`"]


def test_what_takes_long_is_about_few_policies_unless_others_are_named(place):
    for words, expected in (
        ([], ["sin_robo-2"]),
        (["exploiter"], ["sin_robo-2"]),
        (["sin_robo-match-2"], []),
        (["bots", "sin_robo-match-2", "exploiter"], ["sin_robo-match-2"]),
    ):
        assert list(policies.of_word("exploiter", words)) == expected
    assert list(policies.of_word("bots", [])) == [*NAMES]
    assert list(policies.of_word("bots", ["sin_robo-2"])) == ["sin_robo-2"]


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["bot"], "policies: found 'bot', did you mean bots?"),
        (["sin_robo-3x"], "policies: found 'sin_robo-3x', did you mean sin_robo-2?"),
        (["qqq"], "expected bots, search, match, exploiter, plus or a policy: sin_robo-2, "),
        (["curves", "runs/x"], "curves: found runs/x, expected RUN NAME"),
        (["curves", "runs/x", "cabra-5"], "policy: found 'cabra-5', expected GAME-TABLE or GAME"),
    ],
)
def test_a_wrong_word_is_one_line(place, capsys, words, told):
    assert policies.main(words) == 2
    error = capsys.readouterr().err
    assert told in error
    assert error.count("\n") == 1


# ---------------------------------------------------------------- the pages


def test_the_pages_tell_what_is_kept(place):
    policies.policies(["bots", "search", "match"])
    told = page_of(place)
    kept = {
        p: read_tournament(place / "kept" / p) for p in ("sin_robo-2-bots", "sin_robo-2-search")
    }
    against = {r.b: r for played in kept.values() if played for r in played.results.values()}
    intervals = [against[name].interval() for name in ("pimc:1", *BOTS)]
    ((_, elo, _, *cells),) = rows_of(told["Single hands"], "sin_robo-2")
    assert cells == intervals
    rated = measures.strength("sin_robo-2").ratings()["sin_robo-2"]
    assert rated is not None
    assert elo == rated.text()
    ((_, own, *_),) = rows_of(told["Matches"], "sin_robo-match-2")
    (match,) = measures.results_of("sin_robo-match-2", "match")
    assert own == f"{match.interval()} ({match.deals})"
    assert len(rows_of(told["A free lead"], "heaviest")) == 1
    readme = (place / "README.md").read_text()
    assert rows_of(readme, "sin_robo-2") == [
        ["`sin_robo-2`", against["heaviest"].interval(), against["pimc:1"].interval()]
    ]
    before, after = README.split("old")
    assert readme.startswith(before)
    assert readme.endswith(after)
    assert "old" not in readme


def test_a_card_stands_beside_each_policy(place):
    policies.policies(["bots", "match"])
    results.results()
    hand, match = ((shipped.POLICIES / name / "README.md").read_text() for name in NAMES)
    assert "domino play sin_robo-2 --rules sin_robo --seats 2\n" in hand
    assert 'load("sin_robo-2")' in hand
    (heaviest, free) = rows_of(hand, "heaviest")
    result, _ = measures.results_of("sin_robo-2", "bots")
    won, deals = f"{100 * result.wins:.1f}", f"{result.deals}"
    assert (heaviest[1], heaviest[3], heaviest[6]) == (result.interval(), won, deals)
    assert free[1] == measures.results_of("sin_robo-2", "bots", "-lead-free")[0].interval()
    assert "domino train policies/sin_robo-match-2 --run" in match
    assert len(rows_of(match, "sin_robo-2")) == 1


def test_nothing_is_told_that_was_not_measured_of_this_file(place):
    told = page_of(place)
    bars = told.pop("What has to be reached")
    commands = told.pop("Machines and commands")
    assert "python -m benchmarks.policies" in commands
    assert set(told.values()) == {"Not measured."}
    assert bars.startswith("Of 5: 0 met, 0 not met, 5 not measured.")
    policies.policies(["bots", "sin_robo-2"])
    assert rows_of(page_of(place)["Single hands"], "sin_robo-2")
    make_policy("sin_robo-2", seed=2)
    assert page_of(place)["Single hands"] == "Not measured."
    assert "Not measured." in (shipped.POLICIES / "sin_robo-2" / "README.md").read_text()


def test_where_no_policy_is_shipped_the_readme_says_nothing(place):
    for name in NAMES:
        (shipped.POLICIES / name / "policy.safetensors").unlink()
    page_of(place)
    assert (place / "README.md").read_text() == README.replace("old\n", "")


@pytest.mark.parametrize("name", ["cabra-3", "sin_robo-pairs", "estandar-match-2"])
def test_the_options_of_a_card_mean_the_rules_by_which_it_is_measured(name):
    rules = measures.rules_of(name)
    options = parse(RulesOptions, cards.cli_rules(rules).split(), "domino")
    assert options.chosen_rules([]) == rules
    assert shipped.policy_name(rules) == name


def test_a_readme_without_markers_is_one_line(place, capsys):
    (place / "README.md").write_text("# domino\n")
    assert results.main([]) == 2
    error = capsys.readouterr().err
    assert "found 0 times <!-- results --> ... <!-- /results -->, expected it once" in error
    assert results.main(["x"]) == 2
    assert "results: found x, expected no words" in capsys.readouterr().err


# ---------------------------------------------------------------- bars


def result_of(b, mean, ci95=0.01, wins=0.5):
    rules = Rules.preset("sin_robo")
    return Result("a", b, rules, 0, mean, ci95, 100, 200, wins, 0.0, 1 - wins, 0.0)


def test_every_bot_is_beaten_when_the_closest_is_clear_of_zero(monkeypatch):
    found = [result_of("heaviest", 0.3), result_of("random", 0.02)]
    monkeypatch.setattr(measures, "BOTS", BOTS)
    monkeypatch.setattr(measures, "results_of", lambda *_: found)
    bar = measures.beats_bots("cabra-2")
    assert (bar.met, bar.found) == (True, "closest `random`, +0.020 ± 0.010")
    found[1] = result_of("random", 0.02, ci95=0.02)
    assert measures.beats_bots("cabra-2").met is False
    found.pop()
    assert measures.beats_bots("cabra-2").met is None


@pytest.mark.parametrize(
    ("name", "mean", "wins", "met"),
    [
        ("sin_robo-2", 0.21, 0.0, True),
        ("sin_robo-2", 0.2099, 1.0, False),
        ("sin_robo-pairs", 0.0, 0.74, True),
        ("sin_robo-pairs", 1.0, 0.7399, False),
    ],
)
def test_a_free_lead_has_a_bar_in_reward_or_in_games_won(monkeypatch, name, mean, wins, met):
    found = [result_of("random", -1.0), result_of("heaviest", mean, wins=wins)]
    monkeypatch.setattr(measures, "results_of", lambda *_: found)
    assert measures.free_lead(name).met is met


# ---------------------------------------------------------------- learning curves and speed


def test_what_is_kept_of_a_run_is_short_and_told(place, tmp_path, capsys):
    config = small(rules=measures.rules_of("sin_robo-2").to_dict(), hidden=(8,))
    learner = started(tmp_path / "run", config, 2)
    assert policies.main(["curves", str(tmp_path / "run"), "sin_robo-2"]) == 0
    kept = (place / "training" / "sin_robo-2.jsonl").read_text().splitlines()
    about, *lines = map(json.loads, kept)
    assert about["decisions"] == learner.decisions == 1024
    assert about["config"]["hidden"] == [8]
    assert [line["decisions"] for line in lines] == [512, 1024]
    assert set(lines[0]) == {"decisions", *policies.PANELS}
    words = f"1,024 decisions in {learner.seconds:,.0f} s of training"
    assert f"sin_robo-2: {words}, 2 lines" in capsys.readouterr().out
    assert words in page_of(place)["Learning curves"]
    assert (place / "images" / "training-sin_robo-2.png").read_bytes().startswith(b"\x89PNG")
    card = (shipped.POLICIES / "sin_robo-2" / "README.md").read_text()
    assert words in card
    assert "hidden: [8]" in card
    make_policy("sin_robo-2", 1, trained=Trained(2048, 1.0, "domino-run-2"))  # of another run
    assert page_of(place)["Learning curves"] == "Not measured."


def test_a_long_run_keeps_evaluations_and_its_ends():
    lines: list[dict[str, Any]] = [
        {"decisions": k * 1e6, "losses/entropy": 1.23456789, "x": 1.0} for k in range(1000)
    ]
    for k in range(9, 1000, 10):
        lines[k] |= {"eval/expert": 0.1, "eval/expert_ci95": None}
    kept = list(policies.thinned(lines))
    evaluated = [line["decisions"] / 1e6 for line in kept if "eval/expert" in line]
    assert len(kept) == 100
    assert (len(evaluated), evaluated[0], evaluated[-1]) == (50, 9, 999)
    assert kept[0] == {"decisions": 0, "losses/entropy": 1.2346}
    assert [line["decisions"] for line in kept] == sorted({line["decisions"] for line in kept})


def test_speeds_are_kept_with_their_machine_and_told(place, monkeypatch, capsys):
    learner = {"name": "float32", "ours": 1e5, "bare network": 1.5e5, "MaskablePPO": float("nan")}
    rows = {"environment": [{"name": "env", "x": 7.0, "target": 1.2}], "train": [learner]}
    monkeypatch.setattr(speeds, "run", rows.__getitem__)
    for name in rows:
        assert speeds.main([name, "--save"]) == 0
    machine = measures.machine()
    assert json.loads((place / "speed.json").read_text())["machine"] == machine
    told = page_of(place)["Speed"]
    assert f"on {machine['cores']} core" in told
    env = "| `env` in PettingZoo, times as fast as `connect_four_v3` | 7.00 | 1.2 |"
    assert env in told
    assert "| PPO, decisions a second, float32 | 100,000 |  |" in told
    assert "the bare network, float32 | 67% | 60% |" in told
    assert "MaskablePPO" not in told
    monkeypatch.setattr(measures, "machine", lambda: {"cores": 64, "processor": "another"})
    assert speeds.main(["train", "--save"]) == 0
    assert env not in page_of(place)["Speed"]
    assert speeds.main(["--safe"]) == 2
    assert "found '--safe', expected --json, --save, vector" in capsys.readouterr().err
