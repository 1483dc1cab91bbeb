"""The event bus: passes events from the compiler to listeners.

Input: events (``emit``).
Output: calls of the listeners, in the order of subscription, in the emitting thread.
Why: a stage never knows its readers. Emitting without a listener is one truth test.
"""

from __future__ import annotations

import array
import contextlib
import sys
import traceback
from collections.abc import Callable, Iterator

from tcompile.callers import raise_if_callers
from tcompile.observe.context import current_cell
from tcompile.observe.events import CallTimed, Event

Listener = Callable[[Event], None]

_listeners: tuple[Listener, ...] = ()
_background: tuple[Listener, ...] = ()
listened = array.array("q", [0])  # number of listeners that want calls timed: machine code reads it


def active() -> bool:
    """Whether there are listeners. Check it before making an event that costs time."""
    return bool(_listeners)


_STEADY = 64  # calls that are all timed, once a listener subscribes
_SHORT_MS = 0.5  # afterwards, one in this many short calls is timed
_OF_SHORT = 64
_left = 1  # calls until the next timed one
_timed = 0


def times_call() -> int:
    """Returns the number of calls that this call represents if timed; 0: do not time it.

    Every call is timed at first, later every long one and a sample of the short ones, so that listeners do not slow a
    loop down.
    """
    global _left
    if not listened[0]:
        return 0
    _left -= 1
    if _left > 0:
        return 0
    _left = _stride
    return _stride


_stride = 1


def emit_call(function: str, cell: str | None, ms: float, calls: int) -> None:
    """Emits the time of a call for which ``times_call`` returned ``calls``."""
    global _timed, _stride
    _timed += 1
    _stride = _OF_SHORT if _timed > _STEADY and ms < _SHORT_MS else 1
    emit(CallTimed(function=function, defined_in=cell, ms=ms, calls=calls))


def emit(event: Event) -> None:
    """Passes ``event`` to every listener. A listener's error is printed, and never reaches the user's call."""
    for listener in _background + _listeners:
        try:
            listener(event)
        except Exception as error:
            raise_if_callers(error)
            print("tcompile: an event listener failed:", file=sys.stderr)
            traceback.print_exc()


def subscribe(listener: Listener, *, background: bool = False, calls: bool = True) -> Callable[[], None]:
    """Adds a listener and returns the function that removes it.

    With ``calls=False`` no calls are timed for it: it costs them nothing, and receives all other events. A
    ``background`` listener does not make ``active()`` true, so it receives only events that are emitted anyway.
    """
    global _listeners, _background, _left, _stride, _timed
    timed = calls and not background
    if background:
        _background = (*_background, listener)
    else:
        _listeners = (*_listeners, listener)
    if timed:
        _left, _stride, _timed = 1, 1, 0
        listened[0] += 1

    def unsubscribe() -> None:
        global _listeners, _background
        nonlocal timed
        _listeners = tuple(other for other in _listeners if other is not listener)
        _background = tuple(other for other in _background if other is not listener)
        if timed:
            timed = False
            listened[0] -= 1

    return unsubscribe


@contextlib.contextmanager
def listening(listener: Listener, *, calls: bool = True) -> Iterator[None]:
    """Listens for the length of a ``with`` block."""
    unsubscribe = subscribe(listener, calls=calls)
    try:
        yield
    finally:
        unsubscribe()


__all__ = ["Listener", "active", "current_cell", "emit", "emit_call", "listening", "subscribe", "times_call"]
