"""Compiling and caching: `jit`, `lowest`, and where the compiled code lives on disk.

Numba's disk cache watches only the file that holds a function, so a change in a callee of
another module would leave stale code. Here the cache folder is named by a hash of every source
file that compiled code can come from: any edit starts a fresh folder.
With `NUMBA_DISABLE_JIT=1` everything runs as plain Python, with the same results.
"""

from __future__ import annotations

import functools
import hashlib
import os
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

PLAIN = bool(config.DISABLE_JIT)
SLOW_COMPILE = 3.0  # seconds of compiling after which the user is told
_HERE = Path(__file__).resolve().parent


@functools.cache
def _source_hash(folder: Path) -> str:
    """A hash of the sources of this package and of `folder` that use compiled code."""
    digest = hashlib.sha256(numba.__version__.encode())
    for path in sorted({*_HERE.glob("*.py"), *folder.glob("*.py")}):
        source = path.read_bytes()
        if b"compiled" in source:
            digest.update(path.name.encode() + b"\0" + source)
    return digest.hexdigest()[:16]


@functools.cache
def _cache_folder(folder: Path) -> str | None:
    """The writable folder for the compiled code of `folder`; None where there is none."""
    base = Path(config.CACHE_DIR or _user_cache()) / _source_hash(folder)
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
    options: dict[str, Any] = {"nogil": True, "error_model": "numpy"}
    folder = None if PLAIN else _cache_folder(Path(function.__code__.co_filename).resolve().parent)
    if folder is None:
        return numba.njit(**options)(function)
    before = config.CACHE_DIR
    config.CACHE_DIR = folder  # read once, while the function is decorated
    try:
        return numba.njit(cache=True, **options)(function)
    finally:
        config.CACHE_DIR = before


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


def _is_ours(event: event.Event) -> bool:
    function = event.data["dispatcher"].py_func
    return (function.__module__ or "").partition(".")[0] in ("domino_env", "agents")


def _say_compiling() -> None:
    kept = "kept on disk for the next time" if _cache_folder(_HERE) else "no folder to keep it in"
    print(f"domino: compiling for the first time, up to a minute ({kept})", file=sys.stderr)


if PLAIN:

    def lowest(bits: int) -> int:
        """The index of the lowest bit of a set that is not empty."""
        return (int(bits) & -int(bits)).bit_length() - 1

    def store_word(out: np.ndarray, row: int, offset: int, word: int) -> None:
        """Write the 8 bytes of an int64 (little-endian) to out[row, offset:offset + 8]."""
        out[row, offset : offset + 8] = np.frombuffer(int(word).to_bytes(8, "little"), out.dtype)

else:
    from numba.cpython.unsafe.numbers import trailing_zeros

    event.register("numba:compile", _CompileNotice())

    @jit
    def lowest(bits: int) -> int:
        """The index of the lowest bit of a set that is not empty."""
        return numba.int64(trailing_zeros(numba.int64(bits)))

    @intrinsic
    def store_word(typing: Any, out: Any, row: Any, offset: Any, word: Any) -> Any:
        """Write the 8 bytes of an int64 to out[row, offset:offset + 8]: one store, no loop."""

        def emit(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            array, at_row, at_offset, value = arguments
            struct = context.make_array(signature.args[0])(context, builder, array)
            start = builder.mul(at_row, builder.extract_value(struct.strides, 0))
            data = builder.bitcast(struct.data, ir.IntType(8).as_pointer())
            place = builder.gep(data, [builder.add(start, at_offset)])
            place = builder.bitcast(place, ir.IntType(64).as_pointer())
            if sys.byteorder == "big":
                value = builder.bswap(value)
            builder.store(value, place, align=1)
            return context.get_dummy_value()

        return types.void(out, types.int64, types.int64, types.int64), emit
