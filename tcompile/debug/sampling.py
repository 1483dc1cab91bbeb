"""A thread that looks now and then where another thread is.

Input: a period, and a function from a frame to a key.
Output: nanoseconds by key.
Why: plain Python has no place for a clock between its lines. Looking takes some 0.1 ms in a notebook.

A sample counts for the time since the one before, since C code may keep the thread waiting. Half of the usual period
counts for the key seen before, in which that time began.
"""

from __future__ import annotations

import sys
import sysconfig
import threading
import types
from collections import defaultdict
from collections.abc import Callable, Hashable
from time import perf_counter_ns
from typing import Final, Generic, TypeVar

K = TypeVar("K", bound=Hashable)

OURS = "tcompile", "tcompile_jupyter"
GENERATED = "<tcompile"  # how the file names of generated code begin
_LIBRARIES = tuple({sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")})


class Rest:
    """What a key function returns for time that has no key; ``REST`` is the only one."""


REST: Final = Rest()


def is_ours(frame: types.FrameType) -> bool:
    """Whether a frame runs a module of tcompile."""
    return str(frame.f_globals.get("__name__")).partition(".")[0] in OURS


def is_library(frame: types.FrameType) -> bool:
    """Whether a frame runs the standard library or an installed package."""
    return frame.f_code.co_filename.startswith((*_LIBRARIES, "<frozen"))


class Sampler(Generic[K]):
    """Looks at the thread that makes it, every ``period`` seconds, within a ``with`` block.

    ``key`` maps the thread's frame to a key, to ``REST``, or to None where the time does not count at all. ``ns`` are
    nanoseconds by key, ``rest`` those without one. ``eager`` makes Python switch threads twice as often as samples are
    taken, for short periods.
    """

    def __init__(
        self, period: float, key: Callable[[types.FrameType | None], K | Rest | None], *, eager: bool = False
    ) -> None:
        self.ns: dict[K, int] = defaultdict(int)
        self.rest = 0
        self.looks = False
        self._period, self._key, self._eager = period, key, eager
        self._last = 0
        self._before: K | None = None
        self._thread = threading.get_ident()
        self._over = threading.Event()

    def __enter__(self) -> Sampler[K]:
        self._interval = sys.getswitchinterval()
        if self._eager:
            sys.setswitchinterval(self._period / 2)
        self._runs = threading.Thread(target=self._run, name="tcompile profile", daemon=True)
        for mark in ("pydev_do_not_trace", "is_pydev_daemon_thread"):  # debuggers neither list nor stop it
            setattr(self._runs, mark, True)
        self._runs.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._over.set()
        self._runs.join()
        if self._eager:
            sys.setswitchinterval(self._interval)

    def begin(self) -> None:
        """Begins to look."""
        self._last, self._before, self.looks = perf_counter_ns(), None, True

    def _run(self) -> None:
        while not self._over.wait(self._period):
            if self.looks:  # no name holds the frame until the next sample: it would keep arrays alive
                self._take(sys._current_frames().get(self._thread))

    def _take(self, frame: types.FrameType | None) -> None:
        now = perf_counter_ns()
        taken, self._last = now - self._last, now
        if self._before is not None:
            early = min(taken, int(self._period * 1e9)) // 2
            self.ns[self._before] += early
            taken -= early
        found = self._key(frame)
        self._before = None
        if isinstance(found, Rest):
            self.rest += taken
        elif found is not None:
            self.ns[found] += taken
            self._before = found


__all__ = ["GENERATED", "REST", "Rest", "Sampler", "is_library", "is_ours"]
