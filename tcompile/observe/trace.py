"""Traces: every event in a file as it happens.

Input: events, while ``tracing(folder)`` is on, or all of a process under ``TCOMPILE_TRACE``.
Output: ``events-<pid>.jsonl`` with one event a line, in the form that ``events.schema.json`` states; and
``trace-<pid>.json`` in the trace event format, which ui.perfetto.dev and chrome://tracing draw as a time line.
Why: each line is written at once, so a crash leaves the events before it.
"""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TextIO

from tcompile import process
from tcompile.observe import bus
from tcompile.observe.events import (
    CallTimed,
    CompileFinished,
    CompileStarted,
    Event,
    GraphCaptured,
    KernelCompiled,
    PassFinished,
)

FOLDER = "tcompile_trace"  # where TCOMPILE_TRACE=1 writes
_INSIDE = {"transforms": PassFinished, "backend": KernelCompiled}  # the phase to which an event belongs


class Trace:
    """A listener that writes the two files of a process. A forked child gets files of its own."""

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.folder = Path(folder)
        self.folder.mkdir(parents=True, exist_ok=True)
        self._lock = process.lock()
        self._parts: dict[str, list[PassFinished | KernelCompiled]] = {}  # by compile, until it ends
        self._open()

    def _open(self) -> None:
        self._process = os.getpid()
        self._threads: dict[int, int] = {}  # by identity, as small numbers: Perfetto truncates long ones
        self._events: TextIO = (self.folder / f"events-{self._process}.jsonl").open("w", encoding="utf-8")
        self._trace: TextIO = (self.folder / f"trace-{self._process}.json").open("w", encoding="utf-8")
        # An array without its end is valid in this format: the file can be opened at any time.
        self._trace.write("[\n")
        name = f"tcompile, {Path(sys.argv[0]).name or 'interactive'}" if sys.argv else "tcompile"
        self._line(self._mark("process_name", 0, {"name": name}))

    def __call__(self, event: Event) -> None:
        """Writes one event."""
        with self._lock:
            if os.getpid() != self._process:
                self._open()
            if self._events.closed:
                return
            data = event.as_dict()
            self._events.write(json.dumps(data) + "\n")
            for row in self._rows(event, data):
                self._line(row)
            if not isinstance(event, CallTimed):
                self._events.flush()
                self._trace.flush()

    def close(self) -> None:
        """Ends the files."""
        with self._lock:
            self._events.close()
            self._trace.close()

    def _line(self, row: dict[str, Any]) -> None:
        self._trace.write(json.dumps(row) + ",\n")

    def _rows(self, event: Event, data: dict[str, Any]) -> Iterator[dict[str, Any]]:
        """Returns an event's rows on the time line."""
        if event.thread not in self._threads:
            self._threads[event.thread] = number = len(self._threads) + 1
            alive = next((thread for thread in threading.enumerate() if thread.ident == event.thread), None)
            yield self._mark("thread_name", number, {"name": alive.name if alive is not None else "thread"})
        match event:
            case PassFinished() | KernelCompiled():
                self._parts.setdefault(event.compile_id, []).append(event)
            case CompileFinished():
                yield from self._compile(event)
            case CompileStarted():
                self._parts.pop(event.compile_id, None)
            case CallTimed():
                about = {"stands for calls": event.calls} if event.calls > 1 else {}
                start = self._start(event, event.ms)
                yield self._slice(event, f"call {event.function}", "call", start, event.ms, about)
            case _:
                about = {key: data[key] for key in data if key not in _EVERY and data[key] not in ("", [], None)}
                if isinstance(event, GraphCaptured):
                    about.pop("code", None)
                title = event.kind.replace("_", " ")
                yield {
                    **self._place(event), "ph": "i", "s": "t", "cat": event.kind, "ts": event.time * 1e6,
                    "name": f"{title}: {event.function}" if event.function else title, "args": about,
                }  # fmt: skip

    def _compile(self, event: CompileFinished) -> Iterator[dict[str, Any]]:
        """Returns the slice of a compile, its phases inside it, and inside these the passes and the kernels.

        Parts are laid end to end, and clipped to their parent: clocks are not that exact.
        """
        begin = self._start(event, event.ms)
        about = {
            "compile": event.compile_id, "backend": event.backend, "outcome": event.outcome, "kernels": event.kernels,
            "cell": event.cell, "defined in": event.defined_in,
        }  # fmt: skip
        yield self._slice(event, f"compile {event.function}", "compile", begin, event.ms, about)
        parts = self._parts.pop(event.compile_id, [])
        left = event.ms
        for phase, ms in event.phases.items():
            ms = min(ms, left)
            yield self._slice(event, phase, "phase", begin, ms, {})
            at, inside = begin, ms
            for part in (part for part in parts if isinstance(part, _INSIDE.get(phase, ()))):
                took = min(part.ms, inside)
                named = f"pass {part.name}" if isinstance(part, PassFinished) else f"kernel {part.kernel}"
                yield self._slice(part, named, part.kind, at, took, _of_part(part))
                at, inside = at + took * 1e3, inside - took
            begin, left = begin + ms * 1e3, left - ms

    def _slice(
        self, event: Event, name: str, category: str, start: float, ms: float, about: dict[str, Any]
    ) -> dict[str, Any]:
        row = {**self._place(event), "ph": "X", "cat": category, "name": name, "ts": start, "dur": ms * 1e3}
        return {**row, "args": about} if about else row

    def _start(self, event: Event, ms: float) -> float:
        return event.time * 1e6 - ms * 1e3

    def _place(self, event: Event) -> dict[str, Any]:
        return {"pid": self._process, "tid": self._threads[event.thread]}

    def _mark(self, name: str, thread: int, about: dict[str, Any]) -> dict[str, Any]:
        return {"ph": "M", "name": name, "pid": self._process, "tid": thread, "args": about}


_EVERY = {"id", "kind", "schema", "time", "thread", "function"}


def _of_part(part: PassFinished | KernelCompiled) -> dict[str, Any]:
    if isinstance(part, PassFinished):
        return {"ops before": part.before, "ops after": part.after}
    return {"description": part.description, "ops": ", ".join(part.nodes)}


@contextlib.contextmanager
def tracing(folder: str | os.PathLike[str]) -> Iterator[Trace]:
    """Writes the events of a block into ``folder``, which is created if missing."""
    trace = Trace(folder)
    try:
        with bus.listening(trace):
            yield trace
    finally:
        trace.close()


def follow(value: str) -> None:
    """Traces the whole process; ``value`` is that of TCOMPILE_TRACE: a folder, or 1. Raises OSError."""
    trace = Trace(FOLDER if value == "1" else value)
    bus.subscribe(trace)
    atexit.register(trace.close)


__all__ = ["FOLDER", "Trace", "follow", "tracing"]
