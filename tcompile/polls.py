"""Polls: checks for changes by others to anything that running compiled code has read.

Input: polls of long-running loops, in machine code or in Python.
Output: ``has_changed``; ``Clock``, which times the polls; ``Changed``, which ends the loop.
Why: backends run loops, and the runtime knows what the running code has read. The runtime registers a function here, so
imports stay one-way.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from time import perf_counter
from types import FrameType
from typing import Any

from tcompile.callers import MARK

_INTERVAL = 0.005  # seconds from one poll to the next
_PATIENCE = 0.03  # seconds from a change to the end of an inner loop
_readers: list[Callable[[], bool]] = []


def register(reader: Callable[[], bool]) -> None:
    """Registers ``reader``, called at each poll from the Python frames above the running code."""
    _readers[:] = [reader]


def has_changed() -> bool:
    """Whether any object or number that the running code has read has changed."""
    return any(reader() for reader in _readers)


class Changed(Exception):
    """The frame of a running loop goes on in plain Python: something that the loop has read was changed by a signal
    handler or another thread, a scalar loop comes to an exception, or a loop comes to what only plain Python does.

    Attributes:
        reason: why, for people.
        loop: name of the loop's node, or "" if the loop ended in the middle of an iteration.
        iterations: completed iterations; for a scalar loop, the position of its iterator.
        results: the node's results after that many iterations.
        variables: for a scalar loop, words with its iterator's position, the version of its iteration, and the numbers
            that it holds at the start of its next iteration. Before an exception the version is negative, and the
            numbers are those that it holds there.
    """

    def __init__(
        self,
        loop: str = "",
        iterations: int = 0,
        results: Sequence[Any] = (),
        variables: Sequence[Any] = (),
        reason: str = "something that a loop reads has changed",
    ) -> None:
        super().__init__(reason)
        self.reason = reason
        self.loop, self.iterations, self.results, self.variables = loop, iterations, results, variables

    @property
    def place(self) -> tuple[str, int]:
        """Where the loop ended: its name, and the version of its iteration. Versions differ in variables' kinds."""
        return self.loop, int(self.variables[1]) if len(self.variables) else 0

    def before(self, iterations: int, results: Sequence[Any]) -> Changed:
        """The same, where an inner loop has ended in the middle of an iteration: the outer one ends before it.

        >>> changed = Changed("inner", 7, ("lost",)).before(2, (1.5,))
        >>> changed.iterations, changed.results
        (2, (1.5,))
        """
        self.iterations, self.results, self.variables = iterations, results, ()
        return self

    @property
    def raises(self) -> bool:
        """Whether the loop has come to an exception."""
        return self.place[1] < 0


setattr(Changed, MARK, False)  # marked as tcompile's, whatever the frames above run


class Clock:
    """Times the polls of a loop whose iterations run in Python.

    >>> clock = Clock()
    >>> clock.is_due()
    False
    """

    __slots__ = ("began", "last", "left", "since", "stretch")

    def __init__(self) -> None:
        self.left = self.stretch = 1  # iterations until the time is read again
        self.began = self.last = perf_counter()
        self.since = 0.0  # when the change was first seen

    def is_due(self) -> bool:
        """Whether the interval has passed; call it after each iteration."""
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
        """Polls if due; call it after each iteration, with the loop's results so far. Raises Changed."""
        if self.is_due() and self.has_changed():
            raise Changed(iterations=iterations, results=results)

    def tick_inside(self) -> None:
        """Polls if due, inside an iteration of a scalar loop. Raises Changed if the iteration takes too long."""
        if self.is_due() and has_changed():
            self.since = self.since or self.last
            if self.last - self.since > _PATIENCE:
                raise Changed

    def has_changed(self) -> bool:
        """Whether the loop is to end after this iteration, because of a change.

        An inner loop continues for a while, so that the outer loop can end after a whole iteration.
        """
        if not has_changed():
            return False
        self.since = self.since or self.last
        return self.last - self.since > _PATIENCE or not self._is_inside()

    def leaves(self) -> bool:
        """Whether a scalar loop is to end before its next iteration, because of a change."""
        return bool(self.since) and not self._is_inside()

    def is_late(self) -> bool:
        """Whether a scalar loop has run so long that it is not to run again where it comes to an exception."""
        return perf_counter() - self.began > _INTERVAL and not self._is_inside()

    def _is_inside(self) -> bool:
        """Whether this loop runs inside another loop that has a clock."""
        frame: FrameType | None = sys._getframe(2)
        while frame is not None:
            other = frame.f_locals.get("clock")
            if type(other) is Clock and other is not self:
                return True
            frame = frame.f_back
        return False


__all__ = ["Changed", "Clock", "has_changed", "register"]
