"""What an event belongs to: the compile that is going on, and the notebook cells after it.

Input: what the compiler is at (``compiling``), which cell runs (``current_cell``), and how a front end names the cell
that a file of code came from (``name_cells``). Output: the values with which an event fills what its sender does not
say, and how far a long compile is (``running``). Exists so that a pass or a kernel writer need not know for whom it
works.
"""

from __future__ import annotations

import contextlib
import contextvars
import time
from collections.abc import Callable, Iterator

from tcompile import strict
from tcompile.records import dataclass

current_cell: contextvars.ContextVar[str | None] = contextvars.ContextVar("tcompile_cell", default=None)
"""The cell that runs: JupyterLab's id of it, or ``In[3]`` where the front end sends none."""


@dataclass(eq=False)
class Work:
    """A compile that is going on: what it is of, since when (``time.perf_counter``), and how far it is.

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
_followers: list[tuple[Callable[[], None], Callable[[Work], None]]] = []  # called when a compile begins, and ends


@contextlib.contextmanager
def compiling(function: str, compile_id: str, cell: str | None = None) -> Iterator[None]:
    """Says for the length of a ``with`` block what is being compiled, and which cell defined it.

    >>> with compiling("f", "0/0"):
    ...     function(), compile_id(), defined_in(), running()[-1].function
    ('f', '0/0', None, 'f')
    """
    work = Work(function, compile_id, cell, time.perf_counter())
    token, put_back = None, strict.state()
    try:  # from here on: an interrupt at any place leaves nothing behind
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


def running() -> list[Work]:
    """The compiles that are going on, in all threads, outermost first."""
    return list(_running)


def enter(phase: str, count: Callable[[], str] | None = None) -> None:
    """The compile that is going on has come to a phase, of which ``count`` says how much is done."""
    work = _work.get()
    if work is not _NOTHING:
        work.phase, work.count = phase, count


def follow(begins: Callable[[], None], ends: Callable[[Work], None]) -> Callable[[], None]:
    """Calls ``begins()`` whenever a compile begins, and ``ends(work)`` when it has ended. Returns what undoes it."""
    pair = begins, ends
    _followers.append(pair)
    return lambda: _followers.remove(pair) if pair in _followers else None


def function() -> str:
    """The function that is being compiled; "" while none is."""
    return _work.get().function


def compile_id() -> str:
    """The id of the compile that is going on; "" while none is."""
    return _work.get().compile_id


def defined_in() -> str | None:
    """The cell that defined the function that is being compiled."""
    return _work.get().defined_in


_namers: tuple[Callable[[str], str | None], ...] = ()


def name_cells(namer: Callable[[str], str | None]) -> Callable[[], None]:
    """Lets ``namer(file)`` say which cell a file of code came from (None: it is no cell's). Returns what undoes it."""
    global _namers
    _namers = (*_namers, namer)

    def remove() -> None:
        global _namers
        _namers = tuple(other for other in _namers if other is not namer)

    return remove


def cell_of(file: str) -> str | None:
    """The cell that a file of code came from; None for a file that is no cell's.

    >>> remove = name_cells({"/tmp/1234.py": "In[3]"}.get)
    >>> cell_of("/tmp/1234.py"), cell_of("a.py")
    ('In[3]', None)
    >>> remove()
    """
    return next((cell for namer in _namers if (cell := namer(file)) is not None), None)


__all__ = [
    "Work", "cell_of", "compile_id", "compiling", "current_cell", "defined_in", "enter", "follow", "function",
    "name_cells",    "running",
]  # fmt: skip
