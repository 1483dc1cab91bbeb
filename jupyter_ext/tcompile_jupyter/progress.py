"""Shows the progress of a compile that takes longer than a moment.

Input: the compiles in progress (``tcompile.observe.context``).
Output: a line under the running cell, updated a few times a second, with the function, the phase, the progress and the
seconds so far. In a terminal, a line that is erased afterwards.
Why: users must see that the kernel has not hung. A compile of the usual few milliseconds costs one check of a flag.
"""

from __future__ import annotations

import contextlib
import os
import sys
import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol

from IPython.display import DisplayHandle

from tcompile.observe import context
from tcompile.observe.context import Work
from tcompile.observe.display import html
from tcompile.runtime.cell import CELL

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell

PATIENCE = 0.5
"""Seconds after which a compile is shown."""

METADATA = {"tcompile": "progress"}
"""The outputs' metadata, by which readers of a notebook recognise them."""

_RENEWED = 0.25  # seconds between two checks
PHASES = "load", "capture", "transforms", "backend", "entry"
_MEANING = {
    "load": "loading the backend", "capture": "following the bytecode", "transforms": "transforming the graph",
    "backend": "making machine code", "entry": "writing the guards",
}  # fmt: skip


class Screen(Protocol):
    """A place that shows the line."""

    def show(self, work: Work, seconds: float) -> None:
        """Shows or updates the line."""

    def end(self, work: Work, seconds: float) -> None:
        """The compile has ended."""


class Notebook:
    """An output of the running cell."""

    def __init__(self) -> None:
        self._handle: Any = None

    def show(self, work: Work, seconds: float) -> None:
        """Shows or updates the output."""
        data = {"text/plain": line(work, seconds), "text/html": as_html(work, seconds)}
        if self._handle is None:
            self._handle = DisplayHandle()
            self._handle.display(data, raw=True, metadata=METADATA)
        else:
            self._handle.update(data, raw=True, metadata=METADATA)

    def end(self, work: Work, seconds: float) -> None:
        """Leaves the duration: an output cannot be removed."""
        if self._handle is not None:
            done = f"compiled {_name(work)} in {seconds:.1f} s"
            data = {
                "text/plain": done,
                "text/html": html.page(f'<span class="tcd-dim">{html.text(done)}</span>'),
            }
            self._handle.update(data, raw=True, metadata=METADATA)
            self._handle = None


class Terminal:
    """The last line of a terminal; nothing where standard error is a file."""

    def show(self, work: Work, seconds: float) -> None:
        """Writes over the line."""
        if sys.stderr.isatty():
            sys.stderr.write(f"\r\x1b[K{line(work, seconds)[:100]}")
            sys.stderr.flush()

    def end(self, work: Work, seconds: float) -> None:
        """Clears the line."""
        if sys.stderr.isatty():
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()


class Progress:
    """Watches compiles from a thread of its own, which sleeps while there are none."""

    def __init__(self, screen: Screen) -> None:
        self._screen = screen
        self._wake = threading.Event()
        self._thread: threading.Thread | None = None
        self._process = 0
        self._ended = False
        self._shown: Work | None = None
        self._lock = threading.Lock()

    def begins(self) -> None:
        """Handles the begin of a compile."""
        if self._wake.is_set() and self._process == os.getpid():
            return
        if self._thread is None or self._process != os.getpid():  # threads do not survive a fork
            self._process = os.getpid()
            self._wake = threading.Event()
            self._thread = threading.Thread(target=self._look, name="tcompile progress", daemon=True)
            self._thread.start()
        self._wake.set()

    def ends(self, work: Work) -> None:
        """Handles the end of a compile: its output is final before the cell continues."""
        if self._shown is work:
            with contextlib.suppress(Exception):
                self._last(work)

    def _last(self, work: Work) -> None:
        with self._lock:
            if self._shown is work:
                self._shown = None
                self._screen.end(work, time.perf_counter() - work.started)

    def close(self) -> None:
        """Ends the thread."""
        self._ended = True
        self._wake.set()

    def _look(self) -> None:
        while True:
            self._wake.wait()
            time.sleep(PATIENCE)
            self._wake.clear()
            if self._ended:
                return
            try:
                self._follow()
            except Exception:  # errors of the display must not disturb the compile
                return

    def _follow(self) -> None:
        while works := context.running():
            seconds = time.perf_counter() - works[0].started
            with self._lock:
                if seconds >= PATIENCE and works[0] in context.running() and self._shown in (None, works[0]):
                    self._shown = works[0]
                    self._screen.show(works[0], seconds)
            time.sleep(_RENEWED)


def line(work: Work, seconds: float) -> str:
    """Returns the progress of a compile, in a line.

    >>> line(Work("f", phase="capture", count=lambda: "120 instructions followed"), 1.23)
    'compiling f: following the bytecode (2 of 5), 120 instructions followed, 1.2 s'
    """
    return html.printable(f"compiling {_name(work)}: {', '.join(_facts(work, seconds))}")


def as_html(work: Work, seconds: float) -> str:
    """Returns the same with a bar."""
    done = PHASES.index(work.phase) if work.phase in PHASES else 0
    bar = f'<progress max="{len(PHASES)}" value="{done}" style="width:8em"></progress>'
    rest = html.facts(map(html.text, _facts(work, seconds)))
    return html.page(f'{bar} compiling <b>{html.short(_name(work))}</b> <span class="tcd-dim">{rest}</span>')


def _name(work: Work) -> str:
    return "the cell" if work.function == CELL else html.cut(work.function or "a function")


def _facts(work: Work, seconds: float) -> list[str]:
    count = work.count() if work.count is not None else ""
    phase = _MEANING.get(work.phase, work.phase)
    step = f" ({PHASES.index(work.phase) + 1} of {len(PHASES)})" if work.phase in PHASES else ""
    return [text for text in (f"{phase}{step}" if phase else "", count, f"{seconds:.1f} s") if text]


def show_progress(shell: InteractiveShell) -> Callable[[], None]:
    """Shows the progress of long compiles in ``shell``. Returns a function that undoes it."""
    progress = Progress(Notebook() if getattr(shell, "kernel", None) is not None else Terminal())
    forget = context.follow(progress.begins, progress.ends)

    def undo() -> None:
        forget()
        progress.close()

    return undo


__all__ = [
    "METADATA", "PATIENCE", "PHASES", "Notebook", "Progress", "Screen", "Terminal", "html", "line", "show_progress",
]  # fmt: skip
