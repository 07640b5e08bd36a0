"""Compiling and caching: `jit`, the few operations that Numba lacks, and where compiled code lives.

Numba's disk cache watches only the file that holds a function, so a change in a callee of
another module would leave stale code. Here the cache folder is named by a hash of the file and of
all that it imports: an edit starts fresh folders for what it may have changed, and for no more.
With `NUMBA_DISABLE_JIT=1` everything runs as plain Python, with the same results.
"""

from __future__ import annotations

import functools
import hashlib
import os
import re
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import numba
import numpy as np
from llvmlite import ir
from numba.core import config, event, types
from numba.extending import intrinsic

F = TypeVar("F", bound=Callable[..., Any])

_settings: Any = config  # its attributes are made at run time
PLAIN = bool(_settings.DISABLE_JIT)
SLOW_COMPILE = 3.0  # seconds of compiling after which the user is told
_IMPORT = re.compile(r"^from (domino_env|agents)\.(\w+) import", re.MULTILINE)
_HERE = Path(__file__).resolve().parent


@functools.cache
def _source_hash(file: Path) -> str:
    """A hash of a source file and all it imports of this project; constants are compiled in."""
    digest = hashlib.sha256(numba.__version__.encode())
    sources: dict[Path, bytes] = {}
    waiting = [file, Path(__file__).resolve()]
    while waiting:
        path = waiting.pop()
        if path not in sources and path.is_file():
            sources[path] = path.read_bytes()
            found = _IMPORT.findall(sources[path].decode())
            waiting += [_HERE.parent / package / f"{name}.py" for package, name in found]
    for path in sorted(sources):
        digest.update(path.name.encode() + b"\0" + sources[path])
    return digest.hexdigest()[:16]


@functools.cache
def _cache_folder(file: Path) -> str | None:
    """The writable folder for the compiled code of a source file; None where there is none."""
    base = Path(_settings.CACHE_DIR or _user_cache()) / _source_hash(file)
    try:
        base.mkdir(parents=True, exist_ok=True)
    except OSError:
        return None
    return str(base) if os.access(base, os.W_OK) else None


def _user_cache() -> Path:
    home = os.environ.get("XDG_CACHE_HOME") or os.environ.get("LOCALAPPDATA")
    try:
        return Path(home or Path.home() / ".cache") / "domino_env"
    except RuntimeError:  # no home folder at all
        return Path(os.devnull) / "none"


def jit(function: F) -> F:
    """Compile `function` with Numba: cached on disk, without the GIL, without bounds checks."""
    return _compiled(function, inline=False)


def inlined(function: F) -> F:
    """`jit`, and compiled into its callers: for what takes arrays and runs at every move.

    Numba counts the references to an array that it hands to a call: two atomic operations, which
    take longer than a small function does.
    """
    return _compiled(function, inline=True)


def _compiled(function: F, inline: bool) -> F:
    folder = None if PLAIN else _cache_folder(Path(function.__code__.co_filename).resolve())
    cache = folder is not None
    compiler: Any = numba.njit(nogil=True, error_model="numpy", cache=cache, forceinline=inline)
    before = _settings.CACHE_DIR
    _settings.CACHE_DIR = folder or before  # read once, while the function is decorated
    try:
        return compiler(function)
    finally:
        _settings.CACHE_DIR = before


class _CompileNotice(event.Listener):
    """Says on stderr, once a process, that compiling takes its time and will be remembered."""

    def __init__(self) -> None:
        self.depth = 0
        self.spent = 0.0
        self.began = 0.0
        self.timer: threading.Timer | None = None

    def on_start(self, event: event.Event) -> None:
        if not _is_ours(event):
            return
        self.depth += 1
        if self.depth == 1 and self.spent < SLOW_COMPILE:
            self.began = time.perf_counter()
            self.timer = threading.Timer(SLOW_COMPILE - self.spent, _say_compiling)
            self.timer.daemon = True
            self.timer.start()

    def on_end(self, event: event.Event) -> None:
        if not _is_ours(event):
            return
        self.depth -= 1
        if self.depth == 0 and self.timer is not None:
            self.timer.cancel()
            self.timer = None
            self.spent += time.perf_counter() - self.began


def _is_ours(event: Any) -> bool:
    function = event.data["dispatcher"].py_func
    return (function.__module__ or "").partition(".")[0] in ("domino_env", "agents")


def _say_compiling() -> None:
    kept = (
        "kept on disk for the next time"
        if _cache_folder(Path(__file__).resolve())
        else "no folder to keep it in"
    )
    print(f"domino: compiling for the first time, up to a minute ({kept})", file=sys.stderr)


def lowest(bits: int) -> int:
    """The index of the lowest bit of a set that is not empty."""
    return (int(bits) & -int(bits)).bit_length() - 1


def highest(bits: int) -> int:
    """The index of the highest bit of a set that is not empty."""
    return int(bits).bit_length() - 1


# What follows writes 8 or 32 bytes at once, at a place of a row that has room for them: bytes that
# mean nothing are written over by what comes later.
_PAIRS = [16 * (k % 2) + k // 2 for k in range(32)]


def store_word(out: np.ndarray, row: int, offset: int, word: int) -> None:
    """Write the 8 bytes of an int64, lowest first, to out[row, offset : offset + 8]."""
    out[row, offset : offset + 8] = [int(word) >> 8 * k & 255 for k in range(8)]


def store_bits(out: np.ndarray, row: int, offset: int, bits: int) -> None:
    """Write the lowest 32 bits of a set as bytes to out[row, offset : offset + 32]."""
    out[row, offset : offset + 32] = [int(bits) >> k & 1 for k in range(32)]


def store_pairs(out: np.ndarray, row: int, offset: int, bits: int) -> None:
    """Write 32 bits as bytes to out[row, offset : offset + 32] in the order 0, 16, 1, 17, ..."""
    out[row, offset : offset + 32] = [int(bits) >> k & 1 for k in _PAIRS]


if not PLAIN:
    import numba.cpython.unsafe.numbers as numbers

    _zeros_above: Any = numbers.leading_zeros
    _zeros_below: Any = numbers.trailing_zeros

    event.register("numba:compile", _CompileNotice())

    @jit
    def _lowest(bits: int) -> int:
        return numba.int64(_zeros_below(numba.int64(bits)))

    @jit
    def _highest(bits: int) -> int:
        return 63 - numba.int64(_zeros_above(numba.int64(bits)))

    # Loops over bytes would take most of the time of an environment step. LLVM turns bits into
    # bytes by vector instructions, and one store writes them. (Numba has no big-endian machines.)

    def _word(builder: Any, word: Any) -> Any:
        return word

    def _bits(builder: Any, word: Any) -> Any:
        return builder.zext(_flags(builder, word), ir.VectorType(ir.IntType(8), 32))

    def _pairs(builder: Any, word: Any) -> Any:
        flags = _flags(builder, word)
        order = ir.Constant(ir.VectorType(ir.IntType(32), 32), _PAIRS)
        flags = builder.shuffle_vector(flags, flags, order)
        return builder.zext(flags, ir.VectorType(ir.IntType(8), 32))

    def _flags(builder: Any, word: Any) -> Any:
        low = builder.trunc(word, ir.IntType(32))
        return builder.bitcast(low, ir.VectorType(ir.IntType(1), 32))

    def _storing(value_of: Callable[[Any, Any], Any]) -> Any:
        """A compiled (out, row, offset, word) that stores value_of(builder, word)."""

        def typed(typing: Any, out: Any, row: Any, offset: Any, word: Any) -> Any:
            return types.void(out, types.int64, types.int64, types.int64), emit

        def emit(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            array, row, offset, word = arguments
            array = context.make_array(signature.args[0])(context, builder, array)
            start = builder.mul(row, builder.extract_value(array.strides, 0))
            data = builder.bitcast(array.data, ir.IntType(8).as_pointer())
            place = builder.gep(data, [builder.add(start, offset)])
            value = value_of(builder, word)
            builder.store(value, builder.bitcast(place, value.type.as_pointer()), align=1)
            return context.get_dummy_value()

        return intrinsic(typed)

    lowest = _lowest
    highest = _highest
    store_word = _storing(_word)
    store_bits = _storing(_bits)
    store_pairs = _storing(_pairs)
