"""Threads that share a call with the thread that makes it."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Sequence
from typing import Any


class Workers:
    """`count` threads beside the caller's, for functions that let go of the GIL.

    A call is handed over by a bare lock: 10 microseconds there and back, where a pool of the
    standard library takes 25, and a step of 1,024 games 100. The threads end with this object.
    """

    def __init__(self, count: int) -> None:
        self._desks = [_Desk() for _ in range(count)]
        self._busy: list[_Desk] = []
        for desk in self._desks:
            threading.Thread(target=_serve, args=(desk,), name="domino", daemon=True).start()
            weakref.finalize(self, desk.give, None, ())

    def run(self, function: Callable[..., Any], parts: Sequence[tuple[Any, ...]]) -> list[Any]:
        """`function(*part)` of each part, `count` + 1 at most: the first in this thread.

        Raises the first error of a part, once all have ended.
        """
        self._wait()  # for what an interrupted call has left running
        for desk, part in zip(self._desks, parts[1:], strict=False):
            self._busy.append(desk)
            desk.give(function, part)
        used = list(self._busy)
        try:
            own = function(*parts[0])
        finally:
            self._wait()
        return [own, *(desk.take() for desk in used)]

    def _wait(self) -> None:
        while self._busy:
            self._busy[-1].done.acquire()
            self._busy.pop()


class _Desk:
    """Where one thread finds its work and leaves the result."""

    def __init__(self) -> None:
        self.work: tuple[Callable[..., Any] | None, tuple[Any, ...]] = None, ()
        self.result: Any = None
        self.error: BaseException | None = None
        self.begin, self.done = threading.Lock(), threading.Lock()
        self.begin.acquire()
        self.done.acquire()

    def give(self, function: Callable[..., Any] | None, part: tuple[Any, ...]) -> None:
        """Start the thread on a part; without a function it ends."""
        self.work = function, part
        self.begin.release()

    def take(self) -> Any:
        """The result of the part, or its error raised."""
        result, error = self.result, self.error
        self.work, self.result, self.error = (None, ()), None, None
        if error is not None:
            raise error
        return result


def _serve(desk: _Desk) -> None:
    while True:
        desk.begin.acquire()
        function, part = desk.work
        if function is None:
            return
        try:
            desk.result = function(*part)
        except BaseException as error:  # it belongs to the thread that asked
            desk.error = error
        del function, part
        desk.done.release()
