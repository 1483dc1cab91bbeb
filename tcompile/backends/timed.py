"""How long the loops of a program take, told while somebody listens.

Input: what runs a loop, as a host program calls it. Output: the same results, and ``LoopTimed`` events. Exists because
a call's time says nothing of an iteration's.
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

_FIRST = 16  # runs that are told one by one
_MS = 1.0  # later, those that come to as much are told together


@dataclass
class TimedLoop:
    """A loop that a host program calls with the first and the last number of its iterations and what they carry.

    ``counts`` says that the loop's last result but one is the induction variable that were done. ``untold`` are the
    runs, iterations and milliseconds that no event has told yet.
    """

    loop: Callable[..., tuple[Any, ...]]
    where: UserLine
    counts: bool = False
    told: int = 0
    untold: tuple[int, int, float] = (0, 0, 0.0)

    def __call__(self, start: int, stop: int, *carried: Any, **sizes: Any) -> tuple[Any, ...]:
        """Runs it."""
        if not bus.listened[0]:
            return self.loop(start, stop, *carried, **sizes)
        began = time.perf_counter()
        results = self.loop(start, stop, *carried, **sizes)
        took = (time.perf_counter() - began) * 1e3
        done = int(results[-2]) if self.counts else max(stop - start, 0)
        runs, iterations, ms = self.untold
        self.untold = runs, iterations, ms = runs + 1, iterations + done, ms + took
        if self.told < _FIRST or ms >= _MS:
            self.told, self.untold = self.told + 1, (0, 0, 0.0)
            bus.emit(LoopTimed(function=self.where.function, where=self.where, runs=runs, iterations=iterations, ms=ms))
        return results


def line_of(node: Node) -> UserLine:
    """The user's line after a node."""
    return UserLine() if node.location is None else user_line(node.location)


__all__ = ["TimedLoop", "line_of"]
