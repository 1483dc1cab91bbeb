"""The bus: carries events from the compiler to whoever listens.

Enters: events (``emit``). Leaves: calls of the listeners, in the order in which they subscribed, in the
thread that emitted. Exists so that a stage never knows its readers. Emitting with no listener is one truth
test.
"""

from __future__ import annotations

import contextlib
import contextvars
import sys
import traceback
from collections.abc import Callable, Iterator

from tcompile.observe.events import Event

Listener = Callable[[Event], None]

_listeners: tuple[Listener, ...] = ()
_background: tuple[Listener, ...] = ()
current_cell: contextvars.ContextVar[str | None] = contextvars.ContextVar("tcompile_cell", default=None)


def active() -> bool:
    """Whether anybody listens. Callers on the call path ask before they build an event."""
    return bool(_listeners)


def emit(event: Event) -> None:
    """Hands ``event`` to every listener. A listener's error is printed, and never reaches the user's call."""
    for listener in _background + _listeners:
        try:
            listener(event)
        except Exception:
            print("tcompile: an event listener failed:", file=sys.stderr)
            traceback.print_exc()


def subscribe(listener: Listener, *, background: bool = False) -> Callable[[], None]:
    """Adds a listener and returns the function that removes it.

    A ``background`` listener hears what is emitted anyway: it does not make ``active()`` true, so that
    keeping a history costs nothing on the call path.
    """
    global _listeners, _background
    if background:
        _background = (*_background, listener)
    else:
        _listeners = (*_listeners, listener)

    def unsubscribe() -> None:
        global _listeners, _background
        _listeners = tuple(other for other in _listeners if other is not listener)
        _background = tuple(other for other in _background if other is not listener)

    return unsubscribe


@contextlib.contextmanager
def listening(listener: Listener) -> Iterator[None]:
    """Listens for the length of a ``with`` block."""
    unsubscribe = subscribe(listener)
    try:
        yield
    finally:
        unsubscribe()
