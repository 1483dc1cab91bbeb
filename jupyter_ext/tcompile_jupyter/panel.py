"""The kernel's end of the JupyterLab extension: sends news to pages, and answers their requests.

Input: the pages' comms, events in batches, and requests.
Output: news, while a page listens, and answers.
Why: a page that connects late, twice, or after a restart has the same state as any other. The other end is
``labextension/src/protocol.ts``.

The kernel keeps one comm of its own open under the name ``tcompile``. Pages see it appear when the extension is loaded,
and a later page finds it in the list of comms. A page ignores a kernel without it.
"""

from __future__ import annotations

import dataclasses
import time
from collections import deque
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from tcompile.observe.context import current_cell
from tcompile.observe.events import SCHEMA_VERSION, CallTimed, Event, LoopTimed, PassFinished
from tcompile.observe.history import history
from tcompile.runtime.cache import FunctionCache, caches
from tcompile.runtime.cell import statement_caches
from tcompile.stance import STANCES, current, set_stance
from tcompile_jupyter.feed import feed
from tcompile_jupyter.findings import cells_of, find_entry, function_state
from tcompile_jupyter.record import CellRuns

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell

TARGET = "tcompile"
_NOT_TOLD = (CallTimed, LoopTimed, PassFinished)
PROTOCOL = 2
PAGES = 8
"""The maximum of pages; one that vanished without closing its comm is dropped when another connects."""

FUNCTIONS = 1000
"""The maximum of functions sent to a page, the newest."""

_RUNS = 20  # of a cell whose begin is remembered
_LONGEST = 2_000  # characters of a text in an event, as sent to a page
_LISTING = 1_000_000  # characters of IR or of assembly


class Pages:
    """The pages that show something of this kernel, whose user's names ``namespace`` are."""

    def __init__(self, namespace: dict[str, Any]) -> None:
        self.namespace = namespace
        self.open: list[Page] = []
        self.runs: dict[str, deque[float]] = {}  # when the latest runs of each cell began

    def begins(self, *_: Any) -> None:
        """Records that a cell begins to run."""
        cell = current_cell.get()
        if cell is not None:
            runs = self.runs.pop(cell, None) or deque(maxlen=_RUNS)
            runs.append(time.time())
            self.runs[cell] = runs
            if len(self.runs) > CellRuns.MOST:
                self.runs.pop(next(iter(self.runs)))

    def began(self, cell: str, at: float) -> float:
        """Returns when the run of a cell began that was under way at a time; 0 if that is forgotten."""
        return max((time for time in self.runs.get(cell, ()) if time <= at), default=0.0)

    def caches(self) -> tuple[FunctionCache, ...]:
        """Returns what was compiled, the newest last: functions, and cells' own statements."""
        return (*caches()[-FUNCTIONS:], *statement_caches(self.namespace))

    def find(self, number: int) -> FunctionCache | None:
        """Returns the cache with a number."""
        return next((cache for cache in self.caches() if cache.number == number), None)

    def connect(self, comm: Any, _: Any) -> None:
        """Adds a page, whose comm this is."""
        page = Page(comm, self)
        self.open.append(page)
        comm.on_msg(page.hears)
        comm.on_close(lambda _: self.drop(page))
        for old in self.open[:-PAGES]:
            self.drop(old)

    def drop(self, page: Page) -> None:
        """Removes a page."""
        page.quiet()
        if page in self.open:
            self.open.remove(page)


class Page:
    """One page: whether it listens, and how much it has received."""

    def __init__(self, comm: Any, pages: Pages) -> None:
        self.comm = comm
        self.pages = pages
        self._stop: Callable[[], None] | None = None
        self._counts: dict[int, tuple[int, int]] = {}  # for each function, the number of calls sent
        self._runs = CellRuns(pages.began)

    def hears(self, message: dict[str, Any]) -> None:
        """Answers a request; its subject is in ``ask``."""
        data = message["content"]["data"]
        question = data.get("question") if isinstance(data, dict) else None
        if not isinstance(question, int):
            return
        answers: dict[str, Callable[..., dict[str, Any] | None]] = {
            "listen": self.listen, "quiet": self.quiet, "stance": self.stance, "functions": self.functions,
            "graph": self.graph, "kernel": self.kernel,
        }  # fmt: skip
        error, answer = "", None
        try:
            known = {key: value for key, value in data.items() if key not in ("ask", "question")}
            answer = answers[data["ask"]](**known)
        except Exception as failed:
            error = f"{type(failed).__name__}: {failed}"
        self.comm.send({"type": "answer", "question": question, "error": error, **(answer or {})})

    def listen(self) -> None:
        """Sends the page all remembered state, and from now on the news."""
        feed.flush()  # what waits there is in the history, too
        if self._stop is None:
            self._stop = feed.open(self.tell)
        self._runs = CellRuns(self.pages.began)
        self._say(history.events, self.pages.caches(), whole=True)

    def quiet(self) -> None:
        """Sends the page no more news."""
        if self._stop is not None:
            self._stop()
            self._stop = None

    def tell(self, events: Iterable[Event]) -> None:
        """Sends the page events, and the functions they concern."""
        events = tuple(events)
        numbers = {int(event.compile_id.partition("/")[0]) for event in events if event.compile_id}
        self._say(events, [cache for cache in self.pages.caches() if cache.number in numbers])

    def stance(self, stance: str) -> None:
        """Sets the stance of the process."""
        set_stance(stance)
        self._say((), ())

    def functions(self) -> dict[str, Any]:
        """Returns the functions called since the page's last update."""
        called = [cache for cache in self.pages.caches() if _count(cache) != self._counts.get(cache.number)]
        return {"functions": self._states(called)}

    def graph(self, number: int, entry: int) -> dict[str, Any]:
        """Returns the graph of an entry; None if it has none."""
        found = find_entry(self.pages.find(number), entry)
        if found is None:
            raise LookupError(self._gone(number))
        return {"graph": None if found.graph is None else found.graph.view(draw=False).data()}

    def kernel(self, number: int, entry: int, kernel: str) -> dict[str, Any]:
        """Returns a kernel of an entry, with its listings."""
        found = find_entry(self.pages.find(number), entry)
        named = [one for one in found.kernels if one.name == kernel] if found is not None else []
        if not named:
            raise LookupError(self._gone(number))
        data = named[0].view().data()
        return {"kernel": {**data, "ir": data["ir"][:_LISTING], "assembly": data["assembly"][:_LISTING]}}

    def _say(self, events: Iterable[Event], touched: Iterable[FunctionCache], *, whole: bool = False) -> None:
        states = self._states(touched)
        events = [event for event in events if not isinstance(event, _NOT_TOLD)]
        cells = dict.fromkeys(cell for event in events if (cell := self._runs.add(event)) is not None)
        alive = [cache.number for cache in self.pages.caches()]
        self._counts = {number: self._counts[number] for number in alive if number in self._counts}
        self.comm.send(
            {
                "type": "news", "protocol": PROTOCOL, "schema": SCHEMA_VERSION, "whole": whole,
                "events": list(map(_short, events)), "summaries": {cell: self._runs.summary(cell) for cell in cells},
                "dropped": history.dropped, "functions": states, "alive": alive,
                "cells": cells_of(states), "stance": current().name,
                "stances": dict(STANCES) if whole else {},
            }
        )  # fmt: skip

    def _states(self, touched: Iterable[FunctionCache]) -> list[dict[str, Any]]:
        """Returns the records of functions. One that is changing now is left out until the next update."""
        states = []
        for cache in touched:
            try:
                if cache.held() is not None and (cache.compiles or cache.breaks or cache.eager_calls):
                    self._counts[cache.number] = _count(cache)
                    states.append(function_state(cache))
            except RuntimeError:  # a dict that has grown in another thread
                continue
        return states

    def _gone(self, number: int) -> str:
        return "it no longer exists" if self.pages.find(number) is not None else "the function no longer exists"


def open_pages(shell: InteractiveShell) -> Callable[[], None]:
    """Lets pages connect to this kernel, and announces it. Returns a function that undoes it."""
    kernel = getattr(shell, "kernel", None)
    if getattr(kernel, "comm_manager", None) is None:  # a terminal
        return lambda: None
    from comm import create_comm

    pages = Pages(shell.user_ns)
    manager: Any = kernel.comm_manager  # type: ignore[union-attr]
    manager.register_target(TARGET, pages.connect)
    shell.events.register("pre_run_cell", pages.begins)
    pages.begins()
    here = create_comm(target_name=TARGET)

    def undo() -> None:
        for page in tuple(pages.open):
            pages.drop(page)
            page.comm.close()
        here.close()
        manager.unregister_target(TARGET, pages.connect)
        shell.events.unregister("pre_run_cell", pages.begins)

    return undo


def _count(cache: FunctionCache) -> tuple[int, int]:
    """Returns the number of calls answered by compiled code, and by plain Python."""
    return sum(entry.hits for entry in list(cache.entries)), cache.eager_calls


def _short(event: Event) -> dict[str, Any]:
    """Returns an event without its graph, with shortened texts."""
    lazy: dict[str, Any] = {f.name: None for f in dataclasses.fields(event) if f.name.startswith("get_")}
    data = dataclasses.replace(event, **lazy).as_dict()
    return {key: value[:_LONGEST] if isinstance(value, str) else value for key, value in data.items()}


__all__ = ["FUNCTIONS", "PAGES", "PROTOCOL", "TARGET", "Page", "Pages", "open_pages"]
