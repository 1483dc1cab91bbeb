"""Passes the compiler's events to the page, in batches.

Input: events, from the bus.
Output: calls of the readers with a tuple of events, at most a few times a second.
Why: widgets and the JupyterLab panel must cost a program next to nothing. They share one listener, which only keeps the
event, and one thread, which calls them. Without readers there is neither.

It does not listen to calls of compiled functions, so they stay in machine code.
"""

from __future__ import annotations

import sys
import threading
import traceback
from collections import deque
from collections.abc import Callable
from typing import Any

from tcompile.observe import bus
from tcompile.observe.events import CallTimed, Event, LoopTimed, PassFinished

PERIOD = 0.25
"""Seconds between two batches."""

MOST = 5000
"""The maximum number of events in a batch; older ones are dropped."""

Reader = Callable[[tuple[Event, ...]], None]


class Feed:
    """One listener and one thread for all readers; use the ``feed`` of this module.

    Readers run in that thread, outside any stance's ``with`` block, or in the thread that calls ``flush``.
    """

    def __init__(self) -> None:
        self._readers: tuple[Reader, ...] = ()
        self._waiting: deque[Event] = deque(maxlen=MOST)
        self._came = threading.Event()
        self._telling = threading.RLock()
        self._changing = threading.Lock()
        self._undo: list[Callable[[], None]] = []

    def open(self, reader: Reader) -> Callable[[], None]:
        """Adds a reader and returns the function that removes it."""
        with self._changing:
            self._readers = (*self._readers, reader)
            if not self._undo:
                self._start()

        def close() -> None:
            with self._changing:
                self._readers = tuple(other for other in self._readers if other is not reader)
                if not self._readers:
                    self._stop()

        return close

    def flush(self) -> None:
        """Passes all pending events to the readers now."""
        with self._telling:
            self._came.clear()
            batch = []
            while self._waiting:
                batch.append(self._waiting.popleft())
            if not batch:
                return
            for reader in self._readers:
                try:
                    reader(tuple(batch))
                except Exception:
                    print("tcompile: a display failed:", file=sys.stderr)
                    traceback.print_exc()

    def _keep(self, event: Event) -> None:
        if not isinstance(event, PassFinished | CallTimed | LoopTimed):
            self._waiting.append(event)
            self._came.set()

    def _start(self) -> None:
        over = threading.Event()
        self._undo = [bus.subscribe(self._keep, calls=False), over.set, self._came.set, _after_cells(self.flush)]
        threading.Thread(target=self._run, args=(over,), name="tcompile feed", daemon=True).start()

    def _stop(self) -> None:
        for undo in self._undo:
            undo()
        self._undo = []
        self._waiting.clear()

    def _run(self, over: threading.Event) -> None:
        while not over.is_set():
            self._came.wait()
            if not over.wait(PERIOD):
                self.flush()


def _after_cells(call: Callable[[], None]) -> Callable[[], None]:
    """Registers ``call``, called after each cell, so that displays are complete when a cell has run."""
    shell: Any = None
    if "IPython" in sys.modules:
        from IPython.core.getipython import get_ipython

        shell = get_ipython()
    if shell is None:
        return lambda: None

    def after_cell(*_: Any) -> None:
        call()

    shell.events.register("post_run_cell", after_cell)

    def undo() -> None:
        if after_cell in shell.events.callbacks["post_run_cell"]:
            shell.events.unregister("post_run_cell", after_cell)

    return undo


feed = Feed()

__all__ = ["MOST", "PERIOD", "Feed", "Reader", "feed"]
