"""``%tcompile watch``: a line under every cell that compiled something.

Input: IPython's events at the begin and end of a cell, and the compiler's events between.
Output: one line, which opens the cell's report.
Why: cells without the magic may compile, too: functions under a decorator. It listens in the background, so calls of
compiled functions run as fast as without it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from IPython.display import display

from tcompile.observe import bus
from tcompile_jupyter.record import Record
from tcompile_jupyter.report import CellReport, Line
from tcompile_jupyter.status import current_stance

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell


class Watch:
    """Watches the cells of ``shell`` while it is set."""

    def __init__(self, shell: InteractiveShell) -> None:
        self._shell = shell
        self._stop: Callable[[], None] | None = None
        self._record: Record | None = None

    @property
    def on(self) -> bool:
        """Whether it watches."""
        return self._stop is not None

    def set(self, on: bool) -> None:
        """Starts or stops; repeating either has no effect."""
        if on == self.on:
            return
        if self._stop is not None:
            self._stop()
            self._stop = None
            return
        events = self._shell.events
        events.register("pre_run_cell", self._begins)
        events.register("post_run_cell", self._ends)
        unsubscribe = bus.subscribe(self._take, background=True)

        def stop() -> None:
            events.unregister("pre_run_cell", self._begins)
            events.unregister("post_run_cell", self._ends)
            unsubscribe()
            self._record = None

        self._stop = stop

    def skip(self) -> None:
        """Handles a running cell that has a report of its own."""
        self._record = None

    def _begins(self, info: Any) -> None:
        self._record = Record(bus.current_cell.get())

    def _take(self, event: Any) -> None:
        if self._record is not None:
            self._record(event)

    def _ends(self, result: Any) -> None:
        record, self._record = self._record, None
        if record is not None and any(function.graphs or function.breaks for function in record):
            display(Line(CellReport(record, stance=current_stance())))


__all__ = ["Watch"]
