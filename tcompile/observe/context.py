"""The context of an event: the current compile, and the notebook cells involved.

Input: the current compile (``compiling``), the running cell (``current_cell``), and the front end's names for cells
(``name_cells``).
Output: the fields that an event's sender leaves out, and the progress of a long compile (``running``).
Why: a pass or a kernel writer need not know for which compile it works.
"""

from __future__ import annotations

import contextlib
import contextvars
import time
from collections.abc import Callable, Iterator

from tcompile import strict
from tcompile.records import dataclass

current_cell: contextvars.ContextVar[str | None] = contextvars.ContextVar("tcompile_cell", default=None)
"""The running cell: JupyterLab's id of it, or ``In[3]`` if the front end sends none."""


@dataclass(eq=False)
class Work:
    """A compile in progress: of what, since when (``time.perf_counter``), and its phase.

    ``count`` says how much of the phase is done, in a few words.
    """

    function: str = ""
    compile_id: str = ""
    defined_in: str | None = None
    started: float = 0.0
    phase: str = ""
    count: Callable[[], str] | None = None


_NOTHING = Work()
_work: contextvars.ContextVar[Work] = contextvars.ContextVar("tcompile_work", default=_NOTHING)
_running: list[Work] = []
_followers: list[tuple[Callable[[], None], Callable[[Work], None]]] = []  # called at the begin and end of each compile


@contextlib.contextmanager
def compiling(function: str, compile_id: str, cell: str | None = None) -> Iterator[None]:
    """Declares what is being compiled for the length of a ``with`` block, and which cell defined it.

    >>> with compiling("f", "0/0"):
    ...     function(), compile_id(), defined_in(), running()[-1].function
    ('f', '0/0', None, 'f')
    """
    work = Work(function, compile_id, cell, time.perf_counter())
    token, put_back = None, strict.state()
    try:  # from here on, an interrupt at any place loses no state
        token = _work.set(work)
        _running.append(work)
        for begins, _ in _followers:
            begins()
        yield
    finally:
        put_back()
        if work in _running:
            _running.remove(work)
        if token is not None:
            _work.reset(token)
        for _, ends in _followers:
            ends(work)


@contextlib.contextmanager
def of_no_cell() -> Iterator[None]:
    """A block whose events are of no cell: what is compiled for a measurement counts nowhere."""
    token = current_cell.set(None)
    try:
        yield
    finally:
        current_cell.reset(token)


def running() -> list[Work]:
    """Returns the compiles in progress, in all threads, outermost first."""
    return list(_running)


def enter(phase: str, count: Callable[[], str] | None = None) -> None:
    """Sets the phase of the current compile; ``count`` says how much of it is done."""
    work = _work.get()
    if work is not _NOTHING:
        work.phase, work.count = phase, count


def follow(begins: Callable[[], None], ends: Callable[[Work], None]) -> Callable[[], None]:
    """Calls ``begins()`` at the begin of each compile, and ``ends(work)`` at its end. Returns a function that undoes
    it.
    """
    pair = begins, ends
    _followers.append(pair)
    return lambda: _followers.remove(pair) if pair in _followers else None


def function() -> str:
    """Returns the name of the function being compiled; "" outside a compile."""
    return _work.get().function


def compile_id() -> str:
    """Returns the id of the current compile; "" outside a compile."""
    return _work.get().compile_id


def defined_in() -> str | None:
    """Returns the cell that defined the function being compiled."""
    return _work.get().defined_in


_namers: tuple[Callable[[str], str | None], ...] = ()


def name_cells(namer: Callable[[str], str | None]) -> Callable[[], None]:
    """Registers ``namer(file)``, which returns the cell of a code file, or None. Returns a function that undoes it."""
    global _namers
    _namers = (*_namers, namer)

    def remove() -> None:
        global _namers
        _namers = tuple(other for other in _namers if other is not namer)

    return remove


def cell_of(file: str) -> str | None:
    """Returns the cell that a file of code came from; None for any other file.

    >>> remove = name_cells({"/tmp/1234.py": "In[3]"}.get)
    >>> cell_of("/tmp/1234.py"), cell_of("a.py")
    ('In[3]', None)
    >>> remove()
    """
    return next((cell for namer in _namers if (cell := namer(file)) is not None), None)


__all__ = [
    "Work", "cell_of", "compile_id", "compiling", "current_cell", "defined_in", "enter", "follow", "function",
    "name_cells", "of_no_cell", "running",
]  # fmt: skip
