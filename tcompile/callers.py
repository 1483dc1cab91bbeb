"""Exceptions that are the caller's: those of signals' handlers, and of effects that have begun.

Input: exceptions that came up in our own code. Output: whether they go on to the caller. Why: a handler runs
between any two lines of Python's, ours too, and much of ours takes an exception for a reason to go another way.
"""

from __future__ import annotations

import contextlib
import signal

MARK = "_tcompile_callers"  # the attribute of exceptions that says whether they are the caller's


def mark(error: BaseException) -> BaseException:
    """Says of an exception that it is the caller's, and no reason to run again.

    So it is where a signal's handler has raised it, or where effects had begun that would be made twice.
    """
    object.__setattr__(error, MARK, True)
    return error


def is_callers(error: BaseException) -> bool:
    """Whether it is the caller's: it is marked, or a signal's handler has raised it between two of our own lines.

    The latter shows the code of a handler that is installed in its traceback.

    >>> is_callers(ValueError()), is_callers(mark(ValueError()))
    (False, True)
    """
    with contextlib.suppress(AttributeError):
        return bool(object.__getattribute__(error, MARK))  # no __getattr__ of the user's may say so
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


__all__ = ["MARK", "is_callers", "mark", "raise_if_callers"]
