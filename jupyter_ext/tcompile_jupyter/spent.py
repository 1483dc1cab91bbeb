"""Where the time of a slow cell went, by samples of the one run that the user asked for.

Input: a cell that runs, and the events of its run.
Output: a ``TimeSpent``: compiled code, compiling and plain Python apart, and the lines that took most.
Why: whoever waits for a cell sees the cause below it, without another run. ``--time`` measures more exactly.
"""

from __future__ import annotations

import contextlib
import linecache
import types
from collections.abc import Iterator
from time import perf_counter

from tcompile.debug.plain_causes import plain_causes
from tcompile.debug.sampling import GENERATED, REST, Rest, Sampler, is_library, is_ours
from tcompile.observe.display.profiles import LineTime
from tcompile_jupyter.cells import Cell
from tcompile_jupyter.displays import TimeSpent
from tcompile_jupyter.record import Record

SLOW_MS = 200.0
"""Cells that take less time have no such list."""

_PERIOD = 1e-2  # seconds from one sample to the next
_MOST = 5  # causes that are listed
_LEAST = 0.05  # the share of a cause that is listed
_COMPILED, _COMPILING, _LOADING = ("", 1), ("", 2), ("", 3)  # in place of a line


class Spent:
    """Samples one run of a cell."""

    def __init__(self) -> None:
        self._names: dict[tuple[str, int], str] = {}
        self._sampler: Sampler[tuple[str, int]] = Sampler(_PERIOD, self._key)
        self._ms = 0.0

    @contextlib.contextmanager
    def watching(self) -> Iterator[None]:
        """A block that is sampled."""
        with self._sampler:
            started = perf_counter()
            self._sampler.begin()
            try:
                yield
            finally:
                self._sampler.looks = False
                self._ms = (perf_counter() - started) * 1e3

    def view(self, record: Record) -> TimeSpent | None:
        """What took the time; None for a cell that was quick. ``record`` has the events of the run."""
        ns = self._sampler.ns
        sampled = sum(ns.values()) + self._sampler.rest
        if self._ms < SLOW_MS or not sampled:
            return None
        scale = self._ms / sampled
        compiled, compiling, loading = (ns.get(kind, 0) * scale for kind in (_COMPILED, _COMPILING, _LOADING))
        lines = [
            LineTime(file=file, line=line, text=linecache.getline(file, line).rstrip(), plain=taken * scale)
            for (file, line), taken in ns.items()
            if file
        ]
        functions = list(record)
        breaks = [event for function in functions for event in function.breaks]
        fallbacks = [event for function in functions for event in function.fallbacks]
        found = plain_causes(lines, self._names, breaks, fallbacks)
        listed = [cause for cause in found if cause.ms > _LEAST * self._ms]
        listed.sort(key=lambda cause: -cause.ms)
        plain = sum(line.plain for line in lines)
        return TimeSpent(
            ms=self._ms, compiled_ms=compiled, compiling_ms=compiling, loading_ms=loading, plain_ms=plain,
            causes=tuple(listed[:_MOST]),
        )  # fmt: skip

    def _key(self, frame: types.FrameType | None) -> tuple[str, int] | Rest:
        """The user's line that a frame runs, unless compiled code or the compiler runs for it."""
        kind: tuple[str, int] | None = None
        imports = False
        while frame is not None:
            imports = imports or frame.f_code.co_filename.startswith("<frozen importlib")
            if frame.f_code.co_filename.startswith(GENERATED):
                kind = _COMPILED
            elif frame.f_code is Cell.run.__code__:
                break
            elif is_ours(frame):
                kind = kind or (_LOADING if imports else _COMPILING)
            elif not is_library(frame):
                if kind is not None:
                    return kind
                line = frame.f_code.co_filename, frame.f_lineno or frame.f_code.co_firstlineno
                self._names[line] = frame.f_code.co_qualname
                return line
            frame = frame.f_back
        return kind or REST


__all__ = ["SLOW_MS", "Spent"]
