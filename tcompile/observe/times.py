"""Compile times by phase, since the process began.

Input: the end of every compile.
Output: ``compile_times()``, a table.
Why: times can be read afterwards, without a listener. The last compiles are kept one by one; the totals cover all.
"""

from __future__ import annotations

import io
from collections import deque

from tcompile import process
from tcompile.errors import InvalidArgument, InvalidType
from tcompile.observe import bus
from tcompile.observe.events import CompileFinished, Event
from tcompile.observe.tables import table

LIMIT = 1000  # number of compiles kept one by one

_lock = process.lock()
_compiles: deque[tuple[str, str, dict[str, float], float]] = deque(maxlen=LIMIT)
_totals: dict[str, tuple[int, float]] = {}  # by phase: the number of compiles with it, and their milliseconds


def compile_times(repr: str = "str", aggregate: bool = False) -> str:
    """Returns the compile times since the process began, or since ``reset()``, in milliseconds.

    Parameters
    ----------
    repr : {"str", "csv"}
        A table to read, or comma-separated values.
    aggregate : bool
        Whether there is one row for each phase of all compiles, in place of one for each of the last 1000 compiles.

    Returns
    -------
    str
        The table.

    Raises
    ------
    InvalidArgument, InvalidType
        For an argument that is not valid.

    Examples
    --------
    >>> import numpy as np, tcompile
    >>> _ = tcompile.compile(lambda x: x + 1)(np.ones(3))
    >>> compile_times("csv", aggregate=True).splitlines()[0]
    'phase,compiles,total ms,mean ms'
    """
    if not isinstance(aggregate, bool):
        raise InvalidType(f"aggregate must be bool, got {type(aggregate).__name__}")
    if repr not in ("str", "csv"):
        raise InvalidArgument(f"repr must be 'str' or 'csv', got {repr!r}")
    with _lock:
        compiles, totals = list(_compiles), dict(_totals)
    rows: list[tuple[str, ...]]
    if aggregate:
        head: tuple[str, ...] = ("phase", "compiles", "total ms", "mean ms")
        rows = [(phase, str(count), f"{ms:.3f}", f"{ms / count:.3f}") for phase, (count, ms) in totals.items()]
    else:
        phases = [phase for phase in totals if phase != "total"]
        head = ("compile", "function", *phases, "total")
        rows = [
            (compile_id, function, *(f"{times.get(phase, 0.0):.3f}" for phase in phases), f"{ms:.3f}")
            for compile_id, function, times, ms in compiles
        ]
    if repr == "csv":
        import csv

        out = io.StringIO()
        csv.writer(out, lineterminator="\n").writerows([head, *rows])
        return out.getvalue()
    return table(head, rows, 1 if aggregate else 2)


def phases(compile_id: str) -> dict[str, float]:
    """Returns the milliseconds of each phase of one of the last 1000 compiles; nothing for any other."""
    with _lock:
        return next((dict(times) for name, _, times, _ in _compiles if name == compile_id), {})


def _keep(event: Event) -> None:
    if isinstance(event, CompileFinished):
        with _lock:
            _compiles.append((event.compile_id, event.function, event.phases, event.ms))
            for phase, ms in (*event.phases.items(), ("total", event.ms)):
                count, total = _totals.get(phase, (0, 0.0))
                _totals[phase] = count + 1, total + ms


def clear() -> None:
    """Discards all times."""
    with _lock:
        _compiles.clear()
        _totals.clear()


bus.subscribe(_keep, background=True)

__all__ = ["LIMIT", "clear", "compile_times", "phases"]
