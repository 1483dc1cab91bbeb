"""The exception by which compiled code gives a call back to plain Python.

Enters: exceptions. Leaves: ``Replay``, and what tells the exceptions of signals' handlers, which are the caller's, from
it. Exists because compiled code raises and warns nothing of its own: whatever NumPy would report is reported by NumPy
itself, from the user's own line, when the same stretch runs again in plain Python.
"""

from __future__ import annotations

import contextlib
import signal

MARK = "_tcompile_of_a_signal"  # the attribute of exceptions that a signal's handler has raised


def mark(error: BaseException) -> BaseException:
    """Says of an exception that a signal's handler has raised it: it is the caller's, and no reason to run again."""
    object.__setattr__(error, MARK, True)
    return error


def raise_if_of_a_signal(error: BaseException) -> None:
    """Raises, marked, what a signal's handler has raised, in machine code or between two of our own lines.

    The latter shows the code of a handler that is installed in its traceback.
    """
    with contextlib.suppress(AttributeError):
        if object.__getattribute__(error, MARK):  # no __getattr__ of the user's may say so
            raise error
    codes = None
    traceback = error.__traceback__
    while traceback is not None and not isinstance(error, Replay):
        codes = _codes_of_handlers() if codes is None else codes
        if traceback.tb_frame.f_code in codes:
            raise mark(error)
        traceback = traceback.tb_next


def _codes_of_handlers() -> set[object]:
    found: set[object] = set()
    for number in signal.valid_signals():
        handler = signal.getsignal(number)
        if callable(handler) and handler is not signal.default_int_handler:
            found |= {getattr(called, "__code__", None) for called in (handler, type(handler).__call__)}
    return found - {None}


class Replay(Exception):
    """The results of this run are void: run the same code in plain Python, which will raise, warn, or just work."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason
