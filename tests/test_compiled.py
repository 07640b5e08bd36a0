"""Compiled or plain Python, cached or not: the same results, and never those of older sources."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

from domino_env import compiled

TESTS = Path(__file__).resolve().parent
ROOT = TESTS.parent
GAMES = 30

# Compiles a few functions; says how many, and what two of them found.
SMALL = """
from numba.core import event
from domino_env import compiled, engine, rules, scoring
compiled.SLOW_COMPILE = {slow}

class Count(event.Listener):
    names = set()
    def on_start(self, event):
        if event.data["dispatcher"].py_func.__module__.startswith("domino_env"):
            self.names.add(event.data["dispatcher"].py_func.__name__)
    def on_end(self, event):
        pass

event.register("numba:compile", Count())
games = engine.new_games(rules.Rules(), 5)
print(scoring.hand_pips(games[0], 1 << 26), engine.first_tile(games[0], 1 << 26), len(Count.names))
"""


def run(
    *arguments: str, package: Path = ROOT, **environment: str
) -> subprocess.CompletedProcess[str]:
    """Run Python on the package in a folder, with environment variables changed."""
    done = subprocess.run(
        [sys.executable, *arguments],
        cwd=package,
        env=os.environ | {"PYTHONPATH": str(package)} | environment,
        capture_output=True,
        text=True,
        timeout=280,
    )
    assert done.returncode == 0, done.stderr
    return done


def small(cache: Path, package: Path = ROOT, slow: float = 1e9) -> tuple[list[int], str]:
    """The numbers that SMALL prints, and what stands on stderr."""
    done = run("-c", SMALL.format(slow=slow), package=package, NUMBA_CACHE_DIR=str(cache))
    return [int(word) for word in done.stdout.split()], done.stderr


def test_plain_python_makes_the_same_games_byte_by_byte() -> None:
    script = str(TESTS / "fingerprint.py")
    fast = run(script, str(GAMES), NUMBA_DISABLE_JIT="0").stdout.splitlines()
    plain = run(script, str(GAMES), NUMBA_DISABLE_JIT="1").stdout.splitlines()
    assert len(fast) == GAMES
    assert fast == plain


def test_a_second_start_compiles_nothing_and_says_nothing(tmp_path: Path) -> None:
    (*results, compiled_first), said = small(tmp_path, slow=0.001)
    assert (results, compiled_first) == ([11, 26], 4)  # with lowest and highest
    assert said.count("domino: compiling for the first time") == 1
    assert "kept on disk" in said
    assert small(tmp_path, slow=0.001) == ([11, 26, 0], "")


def test_a_quick_compile_is_not_worth_a_word(tmp_path: Path) -> None:
    assert compiled.SLOW_COMPILE == 3
    code = "from domino_env.state import rotated as f; print(f(3, 31), len(f.stats.cache_misses))"
    done = run("-c", code, NUMBA_CACHE_DIR=str(tmp_path))
    assert done.stdout.split() == ["2147483649", "1"]  # 0b11 by 31 places; compiled here
    assert done.stderr == ""


def test_an_edit_of_the_tiles_reaches_the_compiled_engine(tmp_path: Path) -> None:
    shutil.copytree(ROOT / "domino_env", tmp_path / "domino_env")
    cache = tmp_path / "cache"
    assert small(cache, tmp_path)[0] == [11, 26, 4]
    tiles = tmp_path / "domino_env" / "tiles.py"
    source = tiles.read_text(encoding="utf-8")
    edited = source.replace("PIPS = LOW + HIGH ", "PIPS = 100 + LOW + HIGH ")
    assert edited != source
    tiles.write_text(edited, encoding="utf-8")
    assert small(cache, tmp_path)[0] == [111, 26, 2]  # lowest and highest know of no tiles
    tiles.write_text(source, encoding="utf-8")
    assert small(cache, tmp_path)[0] == [11, 26, 0]  # the first code is still there


def test_an_edit_of_what_the_engine_does_not_import_compiles_nothing_anew(tmp_path: Path) -> None:
    shutil.copytree(ROOT / "domino_env", tmp_path / "domino_env")
    cache = tmp_path / "cache"
    assert small(cache, tmp_path)[0] == [11, 26, 4]
    with (tmp_path / "domino_env" / "vector.py").open("a", encoding="utf-8") as file:
        file.write("EDITED = True\n")
    assert small(cache, tmp_path)[0] == [11, 26, 0]


def test_without_a_folder_to_write_in_everything_works(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("no folder")
    found, said = small(file / "cache", slow=0.001)
    assert found == [11, 26, 4]
    assert "no folder to keep it in" in said
