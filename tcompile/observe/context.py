"""What an event belongs to: the compile that is going on, and the notebook cells behind it.

Enters: what the compiler is at (``compiling``), which cell runs (``current_cell``), and how a front end names the cell
that a file of code came from (``name_cells``). Leaves: the values with which an event fills what its sender does not
say. Exists so that a pass or a kernel writer need not know for whom it works.
"""

from __future__ import annotations

import contextlib
import contextvars
from collections.abc import Callable, Iterator

current_cell: contextvars.ContextVar[str | None] = contextvars.ContextVar("tcompile_cell", default=None)
"""The cell that runs: JupyterLab's id of it, or ``In[3]`` where the front end sends none."""

_Work = tuple[str, str, str | None]
_work: contextvars.ContextVar[_Work] = contextvars.ContextVar("tcompile_work", default=("", "", None))


@contextlib.contextmanager
def compiling(function: str, compile_id: str, file: str) -> Iterator[None]:
    """Says for the length of a ``with`` block what is being compiled, and in which file it was written.

    >>> with compiling("f", "0/0", "f.py"):
    ...     function(), compile_id(), defined_in()
    ('f', '0/0', None)
    """
    token = _work.set((function, compile_id, cell_of(file)))
    try:
        yield
    finally:
        _work.reset(token)


def function() -> str:
    """The function that is being compiled; "" while none is."""
    return _work.get()[0]


def compile_id() -> str:
    """The id of the compile that is going on; "" while none is."""
    return _work.get()[1]


def defined_in() -> str | None:
    """The cell that defined the function that is being compiled."""
    return _work.get()[2]


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


__all__ = ["cell_of", "compile_id", "compiling", "current_cell", "defined_in", "function", "name_cells"]
