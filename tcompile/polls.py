"""Polls: whether anything that running compiled code has read was changed by others since.

Input: the poll of a loop that runs for long, in machine code or in Python. Output: ``has_changed``, ``Clock``, which
says when the next poll is due, and ``Changed``. Why: backends run loops, and the runtime knows what the running code
has read; it registers a function here, so that imports go one way.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from time import perf_counter
from types import FrameType
from typing import Any

from tcompile.callers import MARK

_INTERVAL = 0.005  # seconds from one poll to the next
_PATIENCE = 0.03  # seconds from a change to the end of a loop inside another one
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

    __slots__ = ("last", "left", "since", "stretch")

    def __init__(self) -> None:
        self.left = self.stretch = 1  # iterations up to the next look at the time
        self.last = perf_counter()
        self.since = 0.0  # when something was first seen to have changed

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
        if self.is_due() and self.has_changed():
            raise Changed(iterations=iterations, results=results)

    def has_changed(self) -> bool:
        """Whether the loop is to end after this iteration, since something has changed.

        A loop inside another one goes on for a while, so that the outer one can end after a whole iteration.
        """
        if not has_changed():
            return False
        self.since = self.since or self.last
        return self.last - self.since > _PATIENCE or not self._is_inside()

    def _is_inside(self) -> bool:
        """Whether another loop that has a clock runs this one."""
        frame: FrameType | None = sys._getframe(2)
        while frame is not None:
            other = frame.f_locals.get("clock")
            if type(other) is Clock and other is not self:
                return True
            frame = frame.f_back
        return False


__all__ = ["Changed", "Clock", "has_changed", "register"]
