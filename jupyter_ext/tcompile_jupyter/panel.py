"""The kernel's end of the JupyterLab extension: tells pages what happens, and answers their questions.

Input: the comms of pages, the events in batches, and questions. Output: news, while anybody looks, and answers. Exists
so that a page that comes late, or twice, or after a restart, knows what any other one knows. The other end is
``labextension/src/protocol.ts``.

The kernel keeps one comm of its own open under the name ``tcompile``: pages see it come when the extension is loaded,
and a page that comes later finds it in the list of comms. A kernel without it is left alone by the page.
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
from tcompile.stance import STANCES, current, set_stance
from tcompile_jupyter.feed import feed
from tcompile_jupyter.findings import cells_of, find, find_entry, function_state

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell

TARGET = "tcompile"
_NOT_TOLD = (CallTimed, LoopTimed, PassFinished)
PROTOCOL = 1
PAGES = 8
"""Pages that are told; one that was closed without a word goes when another comes."""

FUNCTIONS = 1000
"""Functions that a page is told of at most, the newest."""

_RUNS = 512  # cells whose beginning is remembered
_LONGEST = 2_000  # characters of a text in an event, as a page is told of it
_LISTING = 1_000_000  # characters of IR or of assembly


class Pages:
    """The pages that show something of this kernel."""

    def __init__(self) -> None:
        self.open: list[Page] = []
        self.runs: deque[tuple[str, float]] = deque(maxlen=_RUNS)

    def begins(self, *_: Any) -> None:
        """Notes that a cell begins to run."""
        cell = current_cell.get()
        if cell is not None:
            self.runs.append((cell, time.time()))

    def connect(self, comm: Any, _: Any) -> None:
        """Takes a page in, whose comm this is."""
        page = Page(comm, self)
        self.open.append(page)
        comm.on_msg(page.hears)
        comm.on_close(lambda _: self.drop(page))
        for old in self.open[:-PAGES]:
            self.drop(old)

    def drop(self, page: Page) -> None:
        """Lets a page go."""
        page.quiet()
        if page in self.open:
            self.open.remove(page)


class Page:
    """One page: whether it listens, and up to where it has been told."""

    def __init__(self, comm: Any, pages: Pages) -> None:
        self.comm = comm
        self.pages = pages
        self._stop: Callable[[], None] | None = None
        self._told = 0.0  # when it was last told which cells ran
        self._counts: dict[int, tuple[int, int]] = {}  # of each function, the calls that it was told of

    def hears(self, message: dict[str, Any]) -> None:
        """Answers a question; what it is about is in ``ask``."""
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
        """Tells the page all that is remembered, and from now on what happens."""
        if self._stop is None:
            self._stop = feed.open(self.tell)
        self._told = 0.0
        self._say(history.events, _newest(), whole=True)

    def quiet(self) -> None:
        """Tells the page nothing any more."""
        if self._stop is not None:
            self._stop()
            self._stop = None

    def tell(self, events: Iterable[Event]) -> None:
        """Tells the page of events, and of the functions that they speak of."""
        events = tuple(events)
        numbers = {int(event.compile_id.partition("/")[0]) for event in events if event.compile_id}
        self._say(events, [cache for cache in _newest() if cache.number in numbers])

    def stance(self, stance: str) -> None:
        """Sets the stance of the process."""
        set_stance(stance)
        self._say((), ())

    def functions(self) -> dict[str, Any]:
        """The functions that have been called since the page was last told of them."""
        called = [cache for cache in _newest() if _count(cache) != self._counts.get(cache.number)]
        return {"functions": self._states(called)}

    def graph(self, number: int, entry: int) -> dict[str, Any]:
        """The graph of an entry; None where it has none."""
        found = find_entry(number, entry)
        if found is None:
            raise LookupError(_gone(number))
        return {"graph": None if found.graph is None else found.graph.view(draw=False).data()}

    def kernel(self, number: int, entry: int, kernel: str) -> dict[str, Any]:
        """A kernel of an entry, with its listings."""
        found = find_entry(number, entry)
        named = [one for one in found.kernels if one.name == kernel] if found is not None else []
        if not named:
            raise LookupError(_gone(number))
        data = named[0].view().data()
        return {"kernel": {**data, "ir": data["ir"][:_LISTING], "assembly": data["assembly"][:_LISTING]}}

    def _say(self, events: Iterable[Event], touched: Iterable[FunctionCache], *, whole: bool = False) -> None:
        states = self._states(touched)
        runs = [run for run in list(self.pages.runs) if run[1] > self._told]
        self._told = runs[-1][1] if runs else self._told
        alive = [cache.number for cache in _newest()]
        self._counts = {number: self._counts[number] for number in alive if number in self._counts}
        self.comm.send(
            {
                "type": "news", "protocol": PROTOCOL, "schema": SCHEMA_VERSION, "whole": whole,
                "events": [_short(event) for event in events if not isinstance(event, _NOT_TOLD)],
                "dropped": history.dropped, "functions": states, "alive": alive,
                "cells": cells_of(states), "runs": runs, "stance": current().name,
                "stances": dict(STANCES) if whole else {},
            }
        )  # fmt: skip

    def _states(self, touched: Iterable[FunctionCache]) -> list[dict[str, Any]]:
        """What is known of functions. One that changes in this moment is left out: the next news has it."""
        states = []
        for cache in touched:
            try:
                if cache.held() is not None and (cache.compiles or cache.breaks or cache.eager_calls):
                    self._counts[cache.number] = _count(cache)
                    states.append(function_state(cache))
            except RuntimeError:  # a dict that has grown in another thread
                continue
        return states


def open_pages(shell: InteractiveShell) -> Callable[[], None]:
    """Lets pages connect to this kernel, and says that it is there. Returns what undoes it."""
    kernel = getattr(shell, "kernel", None)
    if getattr(kernel, "comm_manager", None) is None:  # a terminal
        return lambda: None
    from comm import create_comm

    pages = Pages()
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


def _newest() -> tuple[FunctionCache, ...]:
    """The functions that pages are told of."""
    return caches()[-FUNCTIONS:]


def _count(cache: FunctionCache) -> tuple[int, int]:
    """How often compiled code answered, and how often plain Python did."""
    return sum(entry.hits for entry in list(cache.entries)), cache.eager_calls


def _short(event: Event) -> dict[str, Any]:
    """An event without its graph, and with texts of bearable length."""
    lazy: dict[str, Any] = {f.name: None for f in dataclasses.fields(event) if f.name.startswith("get_")}
    data = dataclasses.replace(event, **lazy).as_dict()
    return {key: value[:_LONGEST] if isinstance(value, str) else value for key, value in data.items()}


def _gone(number: int) -> str:
    return "it is not there any more" if find(number) is not None else "the function is not there any more"


__all__ = ["FUNCTIONS", "PAGES", "PROTOCOL", "TARGET", "Page", "Pages", "open_pages"]
