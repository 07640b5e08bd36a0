"""Configurations: the files that are shipped, strict reading, and changes from the command line."""

import math
from dataclasses import fields
from pathlib import Path

import pytest
import yaml

from agents import cli
from agents.config import CONFIGS, ConfigError, config_path, described, read_config, split_options
from agents.ppo import Config
from domino_env import Rules, RulesError

SHIPPED = sorted(CONFIGS.glob("*.yaml"))
SMALL = sorted((CONFIGS / "small").glob("*.yaml"))


@pytest.fixture
def read(tmp_path):
    """Read a config of that text with those words of the command line."""

    def reading(text: str, *words: str) -> Config:
        path = tmp_path / "x.yaml"
        path.write_text(text, encoding="utf-8")
        return read_config(path, Config, words)

    return reading


# ---------------------------------------------------------------- what is shipped


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.stem)
def test_a_shipped_config_is_valid_and_is_found_by_its_name(path):
    config = read_config(path, Config)
    assert config_path(path.stem) == path
    assert config.games_rules[0].seats in (2, 3, 4)


@pytest.mark.parametrize("path", SMALL, ids=lambda path: path.stem)
def test_the_configs_of_small_games_are_valid_and_draw_their_moves(path):
    config = read_config(path, Config)
    assert config.games_rules[0].set < 6
    assert config.temperature == 1.0


def test_the_three_games_are_shipped_as_single_hands_for_two_seats():
    for name in ("cabra", "sin_robo", "estandar"):
        (rules,) = read_config(config_path(name), Config).games_rules
        assert (rules.preset, rules.seats, rules.episode) == (name, 2, "round")


def test_an_unknown_config_is_an_error_that_lists_the_shipped_ones():
    with pytest.raises(FileNotFoundError, match=r"there is no 'cabre', .*cabra, .*sin_robo"):
        config_path("cabre")
    with pytest.raises(FileNotFoundError, match=r"there is no 'cabra/x\.yaml'"):
        config_path("cabra/x.yaml")


# ---------------------------------------------------------------- a file


def test_what_a_file_leaves_out_is_as_in_config(read):
    assert read("") == Config()
    assert read("games: 64\n") == Config(games=64)


def test_a_file_gives_every_kind_of_value(read):
    config = read(
        "rules: {preset: estandar, seats: 3}\n"
        "decisions: 1_000\nlearning_rate: 2e-4\nclip: 0.1\nhidden: [16, 8]\nbf16: false\n"
    )
    assert config.rules == {"preset": "estandar", "seats": 3}
    assert config.games_rules == [Rules.preset("estandar", seats=3)]
    assert (config.decisions, config.learning_rate, config.clip) == (1000, 0.0002, 0.1)
    assert (config.hidden, config.bf16) == ((16, 8), False)


def test_several_games_are_a_list_in_the_file_or_on_the_command_line(read):
    games = [Rules.preset("cabra"), Rules.preset("sin_robo", seats=4, teams=True)]
    text = "[{preset: cabra}, {preset: sin_robo, seats: 4, teams: true}]"
    assert read(f"rules: {text}\nobserve_as: 4").games_rules == games
    assert read("", "--rules", text, "--observe_as", "4").games_rules == games
    with pytest.raises(ConfigError, match="expected one preset and fields to change"):
        read(f"rules: {text}", "--rules.seats", "3")


@pytest.mark.parametrize(
    ("text", "value"),
    [("1e-3", 0.001), ("1E3", 1000.0), ("2.5e-1", 0.25), ("3", 3.0), ("0.5", 0.5), ("+1e+1", 10.0)],
)
def test_numbers_may_be_written_with_an_exponent(read, text, value):
    assert read(f"learning_rate: {text}").learning_rate == value
    assert read("", "--learning_rate", text).learning_rate == value


WRONG = [
    ("gamse: 3", r"there is no field 'gamse', did you mean games\?"),
    ("qqq: 3", r"there is no field 'qqq', expected one of rules, observe_as, decisions"),
    ("1: 2", "there is no field '1'"),
    ("games: 0", "games: found 0, expected an integer >= 1"),
    ("games: 2.5", r"games: found 2\.5, expected an integer"),
    ("games: true", "games: found True, expected an integer"),
    ("games: '64'", "games: found '64', expected an integer"),
    ("games:", "games: found None, expected an integer"),
    ("seed: -1", "seed: found -1, expected an integer >= 0"),
    ("seed: 1180591620717411303424", "seed: found 1180591620717411303424, "),
    ("gamma: 1.5", r"gamma: found 1\.5, expected a number <= 1"),
    ("learning_rate: 0", "learning_rate: found 0, expected a number > 0"),
    ("learning_rate: .inf", "learning_rate: found inf, expected a number <= "),
    ("learning_rate: .nan", "learning_rate: found nan, expected a number"),
    ("entropy: fast", "entropy: found 'fast', expected a number"),
    ("bf16: 1", "bf16: found 1, expected true, false or null"),
    ("anneal: 1", "anneal: found 1, expected true or false"),
    ("device: gpu", r"device: found 'gpu', expected cpu or cuda"),
    ("hidden: 16", "hidden: found 16, expected a list"),
    ("hidden: [16, 0]", r"hidden: found \[16, 0\], expected an integer >= 1"),
    ("hidden: [1000000000]", r"hidden: found \[1000000000\], expected an integer <= 65536"),
    ("rules: cabra", "rules: found 'cabra', expected a preset and fields"),
    ("rules: {1: 2}", "rules: found {1: 2}, expected `str`"),
    ("rules: 3", "rules: found 3, expected a preset and fields, or a list of such"),
    ("rules: [cabra]", r"rules: found \['cabra'\], expected a preset and fields"),
    ("rules: [{preset: cabra}, {seets: 3}]", r"there is no field 'seets', did you mean seats\?"),
    ("observe_as: two", "observe_as: found 'two', expected an integer or null"),
    ("observe_as: 5", "observe_as: found 5, expected an integer <= 4"),
    ("network: lstm", "network: found 'lstm', expected one of mlp, attention"),
    ("magnet: 3", "magnet: found 3, expected `str`"),
    ("magnet: moving", "magnet: found 'moving', expected one of none, uniform, periodic"),
    ("pool: 1.5", r"pool: found 1\.5, expected a number <= 1"),
    ("bot_names: expert", "bot_names: found 'expert', expected a list"),
    ("snapshot_every: 0", "snapshot_every: found 0, expected an integer >= 1"),
    ("rules: {seats: 9}", "seats: 9 is out of range, expected 2 to 4"),
    ("rules: {seets: 3}", r"rules: there is no field 'seets', did you mean seats\?"),
    ("rules: {preset: cabre}", r"preset: there is no 'cabre', did you mean cabra\?"),
    ("- games", "found list, expected fields and values"),
    ("games: [", "cannot be read"),
    ("games: !!python/object/apply:os.system [true]", "cannot be read"),
    ("\x00", "cannot be read"),
    ("games: &a [*a]", "games: found"),
    ("games: " + "[" * 5000, "cannot be read"),
]


@pytest.mark.parametrize(("text", "message"), WRONG, ids=[text[:40] for text, _ in WRONG])
def test_a_fault_of_a_file_is_one_line_that_says_what_was_found_and_expected(read, text, message):
    with pytest.raises((ConfigError, RulesError), match=message) as caught:
        read(text)
    assert "\n" not in str(caught.value)


def test_a_file_that_is_no_text_is_an_error(tmp_path):
    path = tmp_path / "x.yaml"
    path.write_bytes(b"games: \xff\xfe")
    with pytest.raises(ConfigError, match="cannot be read"):
        read_config(path, Config)
    with pytest.raises(ConfigError, match="cannot be read"):
        read_config(tmp_path / "none.yaml", Config)


# ---------------------------------------------------------------- the command line


@pytest.mark.parametrize(
    "words",
    [
        ["--games", "64", "--learning_rate", "0.5"],
        ["--games=64", "--learning-rate=0.5"],
        ["--games", "3", "--learning_rate=0.5", "--games", "64"],
    ],
)
def test_fields_are_changed_by_options(read, words):
    assert read("games: 5\nclip: 0.3", *words) == Config(games=64, learning_rate=0.5, clip=0.3)


def test_lists_and_switches_are_read_as_in_a_file(read):
    config = read("", "--hidden", "[16, 8]", "--bf16", "false", "--hidden=[4]")
    assert (config.hidden, config.bf16) == ((4,), False)


def test_a_field_of_the_rules_is_changed_and_the_others_stay(read):
    text = "rules: {preset: estandar, set: 3}"
    assert read(text, "--rules.seats", "4").rules == {"preset": "estandar", "set": 3, "seats": 4}
    both = read(text, "--rules.seats=4", "--rules.teams", "true", "--rules.hand-size", "2").rules
    assert both == {"preset": "estandar", "set": 3, "seats": 4, "teams": True, "hand_size": 2}
    assert read("", "--rules.seats", "3").rules == {"preset": "cabra", "seats": 3}


@pytest.mark.parametrize("order", [1, -1])
def test_a_name_gives_other_rules_whichever_way_round_the_options_stand(read, order):
    pairs = [["--rules", "estandar"], ["--rules.seats", "4"]][::order]
    config = read("rules: {preset: cabra, set: 3}", *pairs[0], *pairs[1])
    assert config.rules == {"preset": "estandar", "seats": 4}


WRONG_WORDS = [
    (["--gamse", "3"], r"train: there is no field 'gamse', did you mean games\?"),
    (["--games"], "train: found '--games' without a value, expected --field value"),
    (["games", "3"], "train: found 'games', expected --field value"),
    (["--games.seats", "4"], "train: found '--games.seats', expected --games or --rules.FIELD"),
    (["--rules.", "4"], "train: found '--rules.', expected --rules or --rules.FIELD"),
    (["--rules.seets", "4"], r"there is no field 'seets', did you mean seats\?"),
    (["--rules.seats", "[4"], r"train: found '\[4' for --rules.seats, expected a value"),
    (["--rules", "4"], "rules: found 4, expected a preset and fields"),
    (["--games", "many"], "games: found 'many', expected an integer"),
]


@pytest.mark.parametrize(("words", "message"), WRONG_WORDS)
def test_a_fault_of_an_option_is_one_line(read, words, message):
    with pytest.raises((ConfigError, RulesError), match=message):
        read("games: 5", *words)


def test_rules_that_are_no_mapping_cannot_be_changed(read):
    with pytest.raises(ConfigError, match="rules: found 'cabra', expected a preset and fields"):
        read("rules: cabra", "--rules.seats", "3")


def test_only_options_are_split_at_the_first_equals_sign():
    words = ["a=b", "--c=d=e", "--f", "g=h", "--i="]
    assert split_options(words) == ["a=b", "--c", "d=e", "--f", "g=h", "--i", ""]


def test_the_help_tells_every_field_with_its_default():
    lines = {line.split()[0]: line for line in described(Config).splitlines()}
    assert list(lines) == [f"--{field.name}" for field in fields(Config)]
    assert lines["--games"].split()[1:3] == ["2048", "games"]
    assert "(256, 256)" in lines["--hidden"]
    assert "the game: a preset" in lines["--rules"]


# ---------------------------------------------------------------- domino train


def trained(capsys, *words: str) -> tuple[int, str, str]:
    """What `domino train` with these words returns and prints."""
    status = cli.main(["train", *words])
    printed = capsys.readouterr()
    return status, printed.out, printed.err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["cabra", "--gamse", "3"], r"train: there is no field 'gamse', did you mean games\?"),
        (["cabra", "--games", "0"], "train: games: found 0, expected an integer >= 1"),
        (["cabre"], "config: there is no 'cabre', shipped are"),
        (["--games", "3"], "train: found '--games' first, expected a config or --resume FOLDER"),
        ([], "train: found no config, expected a config or --resume FOLDER"),
        (["cabra", "--resume", "x"], "train: found 'cabra' and --resume, expected one of them"),
        (["cabra", "--device", "x"], "train: device: found 'x', expected cpu or cuda"),
        (["--run"], "train: found --run without a folder, expected --run FOLDER"),
        (["--run", "x"], "train: found no config, expected a config or --resume FOLDER"),
        (["--run=x", "--resume=y"], "train: found both --run and --resume, expected one of them"),
        (["--resume", "/nowhere/x"], "config.yaml: cannot be read"),
        (["cabra", "--rules.seats", "5"], "seats: 5 is out of range, expected 2 to 4"),
        (
            ["cabra", "--games", "1_000_000_000_000"],
            "games: found 1000000000000, expected an integer <=",
        ),
    ],
)
def test_bad_input_is_one_line_and_status_2(capsys, tmp_path, monkeypatch, words, message):
    monkeypatch.chdir(tmp_path)
    status, out, err = trained(capsys, *words)
    assert (status, out) == (2, "")
    assert err.startswith("domino: ")
    assert err.count("\n") == 1
    assert message.replace("\\", "") in err
    assert not list(tmp_path.iterdir())  # nothing was begun


@pytest.mark.parametrize("error", [MemoryError("8 TiB"), RuntimeError("can't allocate memory")])
def test_a_rollout_that_is_too_large_for_the_memory_is_one_line(
    capsys, monkeypatch, tmp_path, error
):
    def no_room(config):
        raise error

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("agents.training.Learner", no_room)
    status, _, err = trained(capsys, "cabra", "--games", "7", "--steps", "9", "--hidden", "[5]")
    assert status == 2
    expected = "train: found no room for 7 games of 9 steps and layers of (5,), expected fewer"
    assert err == f"domino: {expected} ({error})\n"


def test_help_prints_the_usage(capsys):
    for words in (["--help"], ["cabra", "-h"]):
        status, out, err = trained(capsys, *words)
        assert (status, err) == (0, "")
        assert out.startswith("usage: domino train CONFIG")
        assert "--learning_rate" in out


def test_defaults_are_within_their_own_bounds(read):
    """A default is not checked where it is used, so it is checked here."""
    for field in fields(Config):
        value = getattr(Config(), field.name)
        assert not (isinstance(value, float) and not math.isfinite(value))
        given = list(value) if isinstance(value, tuple) else value
        assert read(yaml.safe_dump({field.name: given})) == Config()


def test_the_folder_of_configs_is_that_of_this_project():
    assert Path(__file__).resolve().parent.parent / "configs" == CONFIGS
