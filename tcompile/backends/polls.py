"""Polls: whether anything that running compiled code has read was changed by others since.

Input: the poll of a loop that runs for long, in machine code or in Python. Output: ``has_changed``, and ``Clock``,
which says when the next poll is due. Why: backends run loops, and the runtime knows what the running code has read; it
registers a function here, so that imports go one way.
"""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter

_INTERVAL = 0.005  # seconds from one poll to the next
_readers: list[Callable[[], bool]] = []


def register(reader: Callable[[], bool]) -> None:
    """Has ``reader`` asked at each poll, from the Python frames below which the code runs."""
    _readers[:] = [reader]


def has_changed() -> bool:
    """Whether something that the running code has read is now another object or number."""
    return any(reader() for reader in _readers)


class Clock:
    """When the next poll of a loop is due whose iterations Python runs.

    >>> clock = Clock()
    >>> clock.is_due()
    False
    """

    __slots__ = ("last", "left", "stretch")

    def __init__(self) -> None:
        self.left = self.stretch = 1  # iterations up to the next look at the time
        self.last = perf_counter()

    def is_due(self) -> bool:
        """Whether an interval has gone by; to be asked after each iteration."""
        self.left -= 1
        if self.left:
            return False
        now = perf_counter()
        is_due = now - self.last >= _INTERVAL
        if is_due:
            self.last = now
        self.left = self.stretch = max(self.stretch // 4, 1) if is_due else self.stretch * 2
        return is_due


__all__ = ["Clock", "has_changed", "register"]
