"""Collects events.

Input: events from the bus.
Output: the latest of them, up to a limit, in order, and the number of dropped ones.
Why: ``explain``, reports under a notebook cell and the history read events afterwards.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from typing import TypeVar

from tcompile import process
from tcompile.observe import bus
from tcompile.observe.events import Event

E = TypeVar("E", bound=Event)


class Recorder:
    """A context manager that collects the events emitted inside its block, the last ``limit`` of them.

    ``this_thread`` leaves out events of other threads. The events stay readable after the block; entering it again
    continues collecting.

    >>> with Recorder(limit=2) as seen:
    ...     for name in "abc":
    ...         bus.emit(Event(function=name))
    >>> [event.function for event in seen.events], seen.dropped
    (['b', 'c'], 1)
    """

    def __init__(self, limit: int = 10_000, *, this_thread: bool = False) -> None:
        self._events: deque[Event] = deque(maxlen=limit)
        self._lock = process.lock()
        self._total = 0
        self._thread = threading.get_ident() if this_thread else None
        self._stops: list[Callable[[], None]] = []

    def __call__(self, event: Event) -> None:
        """Adds one event."""
        if self._thread is None or event.thread == self._thread:
            with self._lock:
                self._total += 1
                self._events.append(event)

    @property
    def events(self) -> tuple[Event, ...]:
        """Returns the kept events, oldest first."""
        with self._lock:
            return tuple(self._events)

    def of(self, kind: type[E]) -> tuple[E, ...]:
        """Returns the kept events of one kind."""
        return tuple(event for event in self.events if isinstance(event, kind))

    @property
    def dropped(self) -> int:
        """Returns the number of events dropped before the kept ones."""
        with self._lock:
            return self._total - len(self._events)

    def clear(self) -> None:
        """Discards all events."""
        with self._lock:
            self._events.clear()
            self._total = 0

    def __enter__(self) -> Recorder:
        self._stops.append(bus.subscribe(self) if not self._stops else lambda: None)
        return self

    def __exit__(self, *error: object) -> None:
        self._stops.pop()()

    def __len__(self) -> int:
        return len(self._events)

    def __repr__(self) -> str:
        before = f", {self.dropped} dropped before them" if self.dropped else ""
        return f"<Recorder: {len(self)} events{before}>"


__all__ = ["Recorder"]
