"""The debug folder: everything about each compile, as files to read and run.

Input: events, while ``writing(folder)`` is on, or all of a process under ``TCOMPILE_DEBUG``.
Output: one folder for each compile, and an ``index.html`` over all of them.
Why: a crash must leave evidence. The graph and the kernels' IR are written at once, the rest after the compile, so that
the compile's times exclude it.

In the folder of a compile: ``graph.py`` (the captured graph as a script that runs, and compares the backends on it),
``graph.txt``, ``graph.svg``, ``pass_<n>_<name>.txt`` (the graph after each transform), ``kernels.txt``, ``kernels.ll``
and ``kernels.s`` (the operations of each kernel, their LLVM IR, or ``kernels.triton``, and their assembly),
``kernels.py`` (the program around them), ``entry.py`` (the program that checks the guards and calls it),
``guards.txt``, ``breaks.txt``, ``times.json``, ``events.jsonl`` and ``index.html``.
"""

from __future__ import annotations

import atexit
import contextlib
import inspect
import json
import linecache
import os
import re
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from tcompile import process
from tcompile.observe import bus, page
from tcompile.observe.events import (
    CompileFinished,
    CompileStarted,
    Event,
    FellBack,
    GraphBroke,
    GraphCaptured,
    KernelCompiled,
    PassFinished,
    RecompileStarted,
)
from tcompile.observe.source_location import UserLine, format_line, format_stack

FOLDER = "tcompile_debug"  # where TCOMPILE_DEBUG=1 writes
_REST = 0.5  # minimum seconds between two versions of the index


class DebugFolder:
    """A listener that writes the folders of a process. A forked child gets a folder of its own."""

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self._parent = Path(folder)
        self._lock = process.lock()
        self._open()

    def _open(self) -> None:
        self._process = os.getpid()
        name = f"{time.strftime('%Y%m%d-%H%M%S')}-{self._process}"
        taken = len(list(self._parent.glob(f"{name}*"))) if self._parent.exists() else 0
        self.folder = self._parent / (f"{name}-{taken}" if taken else name)
        self.folder.mkdir(parents=True)
        self._running: dict[str, CompileFolder] = {}
        self._rows: list[page.PageRow] = []
        self._fallbacks: list[FellBack] = []
        self._written = 0.0
        self.write_index()

    def __call__(self, event: Event) -> None:
        """Writes the files of ``event``."""
        with self._lock:
            if os.getpid() != self._process:
                self._open()
            if isinstance(event, CompileStarted):
                number = len(self._rows)
                row = page.PageRow(f"{number:03}_{_file_name(event.function)}", event)
                self._rows.append(row)
                self._running[event.compile_id] = CompileFolder(self.folder / row.name, row)
            elif isinstance(event, FellBack):
                self._fallbacks.append(event)
            compile = self._running.get(event.compile_id)
            if compile is not None:
                compile.take(event)
            if isinstance(event, CompileFinished):
                self._running.pop(event.compile_id, None)
                if time.monotonic() - self._written > _REST:
                    self.write_index()

    def write_index(self) -> None:
        """Writes the index page, which otherwise lags by up to half a second."""
        text = page.index(self.folder.name, self._rows, self._fallbacks)
        _write(self.folder / "index.html", text)
        self._written = time.monotonic()


class CompileFolder:
    """One compile, and its folder."""

    def __init__(self, folder: Path, row: page.PageRow) -> None:
        self.folder = folder
        self.row = row
        self.page = page.CompilePage(row)
        self._passes: list[tuple[PassFinished, Any]] = []
        self._assemblies: list[Callable[[], str]] = []
        folder.mkdir()

    def take(self, event: Event) -> None:
        """Writes the files of one event."""
        with (self.folder / "events.jsonl").open("a", encoding="utf-8") as file:
            file.write(json.dumps(event.as_dict()) + "\n")
        match event:
            case CompileStarted():
                self.page.source = _source(event.where)
            case RecompileStarted():
                self._text("recompile.txt", "\n".join(event.reasons))
                self.page.add("Why it was compiled again", "\n".join(event.reasons), "recompile.txt")
            case GraphCaptured():
                self._captured(event)
            case GraphBroke():
                self._broke(event)
            case PassFinished():
                self._passes.append((event, event.get_graph() if event.get_graph is not None else None))
            case KernelCompiled():
                self._kernel(event)
            case FellBack():
                self.page.add("Ran in plain Python", f"{event.reason}: {event.detail}")
            case CompileFinished():
                self._finished(event)
                _write(self.folder / "index.html", self.page.html())

    def _captured(self, event: GraphCaptured) -> None:
        self.row.ops += event.ops
        self._text("guards.txt", "\n".join(event.guards))
        graph = event.get_graph() if event.get_graph is not None else None
        if graph is None:
            return
        line = self.row.started.where
        about = f"The graph {event.graph} of {event.function}, as captured.\n{line.file}, line {line.line}"
        self._text("graph.txt", graph.readable())
        self._text("graph.py", graph.script(about))
        self.page.captured = graph
        self.page.guards = "\n".join(event.guards)

    def _broke(self, event: GraphBroke) -> None:
        self.row.breaks += 1
        rows = [f"{event.headline} [{event.reason}]", format_stack(event.stack or (event.where,), title="")]
        rows += [event.explanation, *(f"Hint: {hint}" for hint in event.hints)]
        text = "\n".join(row for row in rows if row)
        self._text("breaks.txt", text + "\n")
        self.page.breaks.append(event.where)
        self.page.add("Graph break", text, "breaks.txt", opened=True)

    def _write_passes(self) -> None:
        last = self.page.captured.readable() if self.page.captured is not None else ""
        for number, (event, graph) in enumerate(self._passes):
            text = graph.readable() if graph is not None else ""
            file = f"pass_{number}_{_file_name(event.name)}.txt"
            self._text(file, text)
            self.page.passes.append((event, "" if text == last else text, file))
            self.page.final, last = graph, text

    def _kernel(self, event: KernelCompiled) -> None:
        self.row.kernels += 1
        rows = [f"{event.kernel}: {event.description}", f"    {', '.join(event.nodes)}"]
        rows += dict.fromkeys(format_line(line, caret=False) for line in event.lines)
        self._append("kernels.txt", "\n".join(rows) + "\n")
        self.page.kernels.append(event)
        # The kernels of a graph share a module: the text of the first contains all.
        ir = event.get_ir() if event.get_ir is not None else ""
        if ir and ir not in self.page.ir:
            self.page.ir.append(ir)
            self._append(page.kernels_file(event.language), ir)
            if event.get_assembly is not None:
                self._assemblies.append(event.get_assembly)

    def _finished(self, event: CompileFinished) -> None:
        self.row.finished = event
        if self.page.captured is not None:
            self._text("graph.svg", self.page.captured.svg())
        self._write_passes()
        self.page.assembly = [get() for get in self._assemblies]
        if self.page.assembly:
            self._text("kernels.s", "\n".join(self.page.assembly))
        for name, title, get in (
            ("kernels.py", "The program around the kernels", event.get_graph_code),
            ("entry.py", "The entry: guards, then the graph", event.get_entry_code),
        ):
            text = (get() or "") if get is not None else ""
            if text:
                self._text(name, text)
                self.page.programs.append((title, text, name))
        self._text("times.json", json.dumps({**event.phases, "total": event.ms}, indent=1))

    def _text(self, name: str, text: str) -> None:
        _write(self.folder / name, text)

    def _append(self, name: str, text: str) -> None:
        with (self.folder / name).open("a", encoding="utf-8", errors="backslashreplace") as file:
            file.write(text)


def _write(path: Path, text: str) -> None:
    path.write_text(text if text.endswith("\n") else text + "\n", encoding="utf-8", errors="backslashreplace")


def _file_name(text: str) -> str:
    """Returns a function's name as part of a path."""
    return re.sub(r"[^A-Za-z0-9_.-]+", "_", text).strip("._")[-40:] or "function"


def _source(where: UserLine) -> list[tuple[int, str]]:
    """Returns the numbered lines of the function that begins at ``where``; none if its file cannot be read."""
    try:
        lines = linecache.getlines(where.file)[where.line - 1 :]
        block = inspect.getblock(lines) if lines else []
    except Exception:
        block = []
    return [(where.line + n, line.rstrip("\n")) for n, line in enumerate(block)]


@contextlib.contextmanager
def writing(folder: str | os.PathLike[str]) -> Iterator[DebugFolder]:
    """Writes the compiles of a block into a new folder inside ``folder``; yields the writer.

    ``writer.folder`` is that folder; open its ``index.html``.
    """
    made = DebugFolder(folder)
    try:
        with bus.listening(made, calls=False):
            yield made
    finally:
        made.write_index()


class _Traced:
    """The folder for compiles that ask for one: one for each process, reported when it is made."""

    def __init__(self) -> None:
        self._lock = process.lock()
        self._made: DebugFolder | None = None
        self._users = 0
        self._stop: Callable[[], None] = lambda: None

    def begin(self) -> None:
        """Starts writing events."""
        with self._lock:
            if self._made is None:
                # an absolute path: the process may change its directory
                self._made = DebugFolder(Path(FOLDER).absolute())
                atexit.register(self._made.write_index)
                _report(self._made)
            self._users += 1
            if self._users == 1:
                self._stop = bus.subscribe(self._made, calls=False)

    def end(self) -> None:
        """Stops writing when all that have begun are done."""
        with self._lock:
            self._users -= 1
            if not self._users:
                self._stop()


_of_process = _Traced()


@contextlib.contextmanager
def traced() -> Iterator[None]:
    """Writes the compiles of a block into ``tcompile_debug``. If it cannot be written, that is reported."""
    try:
        _of_process.begin()
    except OSError as error:
        print(f"tcompile: no debug folder is written ({error})", file=sys.stderr)
        yield
        return
    try:
        yield
    finally:
        _of_process.end()


def follow(value: str) -> None:
    """Writes for the whole process; ``value`` is that of TCOMPILE_DEBUG: a folder, or 1. Raises OSError."""
    made = DebugFolder(FOLDER if value == "1" else value)
    bus.subscribe(made, calls=False)
    atexit.register(made.write_index)
    _report(made)


def _report(made: DebugFolder) -> None:
    print(f"tcompile: see {made.folder / 'index.html'}", file=sys.stderr)


__all__ = ["FOLDER", "DebugFolder", "follow", "traced", "writing"]
