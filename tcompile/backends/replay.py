"""The exception by which compiled code gives a call back to plain Python.

Enters: exceptions. Leaves: ``Replay``, and what tells the exceptions of signals' handlers, which are the caller's, from
it. Exists because compiled code raises and warns nothing of its own: whatever NumPy would report is reported by NumPy
itself, from the user's own line, when the same stretch runs again in plain Python.
"""

from __future__ import annotations

import contextlib
import signal

_MARK = "_tcompile_callers"  # the attribute of exceptions that are the caller's


def mark(error: BaseException) -> BaseException:
    """Says of an exception that it is the caller's, and no reason to run again.

    So it is where a signal's handler has raised it, or where effects had begun that would be made twice.
    """
    object.__setattr__(error, _MARK, True)
    return error


def is_callers(error: BaseException) -> bool:
    """Whether it is the caller's: it is marked, or a signal's handler has raised it between two of our own lines.

    The latter shows the code of a handler that is installed in its traceback.
    """
    with contextlib.suppress(AttributeError):
        return bool(object.__getattribute__(error, _MARK))  # no __getattr__ of the user's may say so
    if isinstance(error, Replay):
        return False
    codes = _codes_of_handlers()
    traceback = error.__traceback__
    while traceback is not None and traceback.tb_frame.f_code not in codes:
        traceback = traceback.tb_next
    if traceback is not None:
        mark(error)  # as its frames may be cut off
    return traceback is not None


def raise_if_callers(error: BaseException) -> None:
    """Raises what is the caller's."""
    if is_callers(error):
        raise error


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
