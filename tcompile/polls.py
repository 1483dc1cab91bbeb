"""Polls: whether anything that running compiled code has read was changed by others since.

Input: the poll of a loop that runs for long, in machine code or in Python. Output: ``has_changed``, ``Clock``, which
says when the next poll is due, and ``Changed``. Why: backends run loops, and the runtime knows what the running code
has read; it registers a function here, so that imports go one way.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from time import perf_counter
from typing import Any

from tcompile.callers import MARK

_INTERVAL = 0.005  # seconds from one poll to the next
_readers: list[Callable[[], bool]] = []


def register(reader: Callable[[], bool]) -> None:
    """Has ``reader`` asked at each poll, from the Python frames below which the code runs."""
    _readers[:] = [reader]


def has_changed() -> bool:
    """Whether something that the running code has read is now another object or number."""
    return any(reader() for reader in _readers)


class Changed(Exception):
    """Something that the running code has read was changed by a signal handler or by another thread, during a loop.

    Attributes:
        loop: name of the loop's node, or "" where the loop was left in the middle of an iteration.
        iterations: number of iterations that are done, or the position of the loop's iterator for a scalar loop.
        results: what the node results in after that many iterations.
        variables: numbers that a scalar loop holds where its next iteration begins.
    """

    def __init__(
        self, loop: str = "", iterations: int = 0, results: Sequence[Any] = (), variables: Sequence[Any] = ()
    ) -> None:
        super().__init__("something that a loop reads has changed")
        self.loop, self.iterations, self.results, self.variables = loop, iterations, results, variables


setattr(Changed, MARK, False)  # it is ours, whatever runs in the frames above


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

    def tick(self, iterations: int = 0, results: Sequence[Any] = ()) -> None:
        """To be called after each iteration, with what the loop would result in now. Raises Changed."""
        if self.is_due() and has_changed():
            raise Changed(iterations=iterations, results=results)


__all__ = ["Changed", "Clock", "has_changed", "register"]
