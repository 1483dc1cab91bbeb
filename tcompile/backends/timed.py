"""Timing of the loops of a program, while an observer listens.

Input: the callable that runs a loop, as a host program calls it.
Output: the same results, and ``LoopTimed`` events.
Why: the time of a call does not show the time of an iteration.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from tcompile.graph import Node
from tcompile.graph.verify import user_line
from tcompile.observe import bus
from tcompile.observe.events import LoopTimed
from tcompile.observe.source_location import UserLine
from tcompile.records import dataclass

_FIRST = 16  # runs that are reported one by one
_MS = 1.0  # later runs are reported together, once they add up to this


@dataclass
class TimedLoop:
    """A loop that a host program calls with the first and the last value of its induction variable and the carried
    values.

    ``counts`` says that the loop's last result but one is the number of iterations done. ``unreported`` are the runs,
    iterations and milliseconds that no event has reported yet.
    """

    loop: Callable[..., tuple[Any, ...]]
    where: UserLine
    counts: bool = False
    reported: int = 0
    unreported: tuple[int, int, float] = (0, 0, 0.0)

    def __call__(self, start: int, stop: int, *carried: Any, **sizes: Any) -> tuple[Any, ...]:
        """Runs it."""
        if not bus.listened[0]:
            return self.loop(start, stop, *carried, **sizes)
        began = time.perf_counter()
        results = self.loop(start, stop, *carried, **sizes)
        took = (time.perf_counter() - began) * 1e3
        done = int(results[-2]) if self.counts else max(stop - start, 0)
        runs, iterations, ms = self.unreported
        self.unreported = runs, iterations, ms = runs + 1, iterations + done, ms + took
        if self.reported < _FIRST or ms >= _MS:
            self.reported, self.unreported = self.reported + 1, (0, 0, 0.0)
            bus.emit(LoopTimed(function=self.where.function, where=self.where, runs=runs, iterations=iterations, ms=ms))
        return results


def line_of(node: Node) -> UserLine:
    """The user's line of a node."""
    return UserLine() if node.location is None else user_line(node.location)


__all__ = ["TimedLoop", "line_of"]
