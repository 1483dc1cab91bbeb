"""The loop of a graph that a thread is running, and the results of the loops before it.

Input: the Python frames below an entry, innermost first.
Output: ``Running``.
Why: after a change by another thread, a frame resumes after the last finished loop, whose results only the running
program has.
"""

from __future__ import annotations

import types
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from tcompile.graph import Node, evaluate
from tcompile.graph.ops.control import LOOPS
from tcompile.records import dataclass

KEY = "__loops__"  # under which a host program's global names have its Loops


@dataclass(frozen=True)
class RunningLoops:
    """The loops of a host program.

    Attributes:
        lines: the name of the loop that runs while the program is at a line.
        results: for each loop, the variables that hold its results, by their number, until they are overwritten.
    """

    lines: Mapping[int, str]
    results: Mapping[str, Mapping[int, str]]


class Running:
    """A running loop, and the frame of the program that runs it."""

    def __init__(self, loop: str, frame: types.FrameType) -> None:
        self.loop, self._frame = loop, frame

    def earlier(self) -> dict[tuple[str, int], Any]:
        """Copies of the results of other loops, by their names and the numbers of the results."""
        known, loops = self._frame.f_locals, self._frame.f_globals.get(KEY)
        if isinstance(loops, RunningLoops):
            rows = loops.results.items()
            found = {(loop, at): known.get(name) for loop, row in rows for at, name in row.items()}
        else:
            done = ((node, values) for node, values in known["values"].items() if node.op in LOOPS)
            found = {(node.name, at): value for node, values in done for at, value in enumerate(values)}
        return {place: np.array(value, order="K") for place, value in found.items() if value is not None}


def running(frames: Iterable[types.FrameType]) -> Running | None:
    """The loop of the graph that the outermost of these frames runs; None where that is unknown."""
    found = None
    for frame in frames:
        loops = frame.f_globals.get(KEY)
        if isinstance(loops, RunningLoops):
            name = loops.lines.get(frame.f_lineno)
        elif frame.f_code is evaluate.run.__code__:
            node = frame.f_locals.get("node")
            name = node.name if isinstance(node, Node) else None
        else:
            continue
        found = None if name is None else Running(name, frame)
    return found


__all__ = ["KEY", "Running", "RunningLoops", "running"]
