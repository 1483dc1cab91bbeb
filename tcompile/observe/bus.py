"""The bus: carries events from the compiler to whoever listens.

Input: events (``emit``). Output: calls of the listeners, in the order in which they subscribed, in the
thread that emitted. Exists so that a stage never knows its readers. Emitting with no listener is one truth
test.
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
listened = array.array("q", [0])  # how many listeners want calls timed: machine code reads it


def active() -> bool:
    """Whether anybody listens. Who makes an event that costs something asks first."""
    return bool(_listeners)


_STEADY = 64  # calls that are all timed, from when a listener comes
_SHORT_MS = 0.5  # of shorter ones, later, one of so many
_OF_SHORT = 64
_left = 1  # calls until one is timed
_timed = 0


def times_call() -> int:
    """For how many calls the one that now starts is to stand if it is timed; 0: it is not to be timed.

    Every call is timed at first, later every long one and a sample of the short ones, so that who listens does not
    slow a loop down.
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


def tell_call(function: str, cell: str | None, ms: float, calls: int) -> None:
    """Emits the time of a call for which ``times_call`` gave ``calls``."""
    global _timed, _stride
    _timed += 1
    _stride = _OF_SHORT if _timed > _STEADY and ms < _SHORT_MS else 1
    emit(CallTimed(function=function, defined_in=cell, ms=ms, calls=calls))


def emit(event: Event) -> None:
    """Hands ``event`` to every listener. A listener's error is printed, and never reaches the user's call."""
    for listener in _background + _listeners:
        try:
            listener(event)
        except Exception as error:
            raise_if_callers(error)
            print("tcompile: an event listener failed:", file=sys.stderr)
            traceback.print_exc()


def subscribe(listener: Listener, *, background: bool = False, calls: bool = True) -> Callable[[], None]:
    """Adds a listener and returns the function that removes it.

    One with ``calls=False`` has no calls timed for it: it costs them nothing, and is told of everything else. A
    ``background`` listener hears only what is emitted anyway, for it does not make ``active()`` true.
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


__all__ = ["Listener", "active", "current_cell", "emit", "listening", "subscribe", "tell_call", "times_call"]
