"""Exceptions that must propagate to the caller: from signal handlers, and after side effects have begun.

Input: exceptions caught in tcompile's own code.
Output: whether to re-raise them.
Why: a signal handler can run between any two lines, and tcompile catches most exceptions to fall back to plain Python.
"""

from __future__ import annotations

import contextlib
import signal

MARK = "_tcompile_callers"  # attribute that marks an exception as the caller's


def mark(error: BaseException) -> BaseException:
    """Marks an exception as the caller's: it is raised, and nothing runs again.

    This holds for exceptions of signal handlers, and for those raised after side effects that must not happen twice.
    """
    object.__setattr__(error, MARK, True)
    return error


def is_callers(error: BaseException) -> bool:
    """Whether an exception belongs to the caller: it is marked, or a signal handler raised it inside tcompile's code.

    A handler is recognised by its code in the traceback.

    >>> is_callers(ValueError()), is_callers(mark(ValueError()))
    (False, True)
    """
    with contextlib.suppress(AttributeError):
        return bool(object.__getattribute__(error, MARK))  # bypasses a user's __getattr__
    codes = _codes_of_handlers()
    traceback = error.__traceback__
    while traceback is not None and traceback.tb_frame.f_code not in codes:
        traceback = traceback.tb_next
    if traceback is not None:
        mark(error)  # frames may be missing from the traceback
    return traceback is not None


def raise_if_callers(error: BaseException) -> None:
    """Re-raises an exception that belongs to the caller."""
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
