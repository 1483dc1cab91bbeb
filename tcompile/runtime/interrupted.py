"""Interrupts of captured loops: plain Python runs up to the loop and raises the handler's exception there.

Input: an ``Interrupted`` run, which has had no side effects.
Output: a trace function, which watches plain Python repeat the stretch until it is inside a captured loop.
Why: the exception must be raised where the user's handlers, ``finally`` clauses and contexts are active. The side
effects and variables before the loop must be those of an interrupted plain loop.
"""

from __future__ import annotations

import dis
import sys
import threading
import types
from collections.abc import Iterable
from typing import Any

from tcompile.backends.replay import Interrupted
from tcompile.callers import is_callers
from tcompile.graph import Graph
from tcompile.graph.ops.control import LOOPS
from tcompile.observe.warn import OURS
from tcompile.polls import Changed
from tcompile.runtime.cache import Entry, FunctionCache

# Interrupted runs in machine code, by thread, until the call is made again in Python.
pending: dict[int, Interrupted | Changed] = {}


def is_raised(error: BaseException) -> bool:
    """Whether machine code raises an exception that occurred in it, instead of repeating the call in Python."""
    if isinstance(error, Interrupted | Changed):
        pending[threading.get_ident()] = error
        return False
    return is_callers(error)


def taken() -> Interrupted | Changed | None:
    """Returns and removes the interrupt of this thread's last run in machine code."""
    return pending.pop(threading.get_ident(), None)


def raise_in_loop(error: Interrupted, cache: FunctionCache, entries: Iterable[Entry]) -> None:
    """Makes the next plain run raise the exception inside a loop that one of the entries has captured.

    Raises it at once if another trace function is set, or no loop is known.
    """
    loops = {place for entry in entries if entry.captured.graph for place in _loops(entry.captured.graph)}
    if not loops or sys.gettrace() is not None:
        raise error.error
    frame: types.FrameType | None = sys._getframe()
    while frame is not None and _is_own(frame):
        frame = frame.f_back
    rewrittens = [rewritten.code for rewritten in (cache.rewritten, cache.built) if rewritten is not None]
    watch = _Watch(error.error, loops)
    if frame is not None and frame.f_code in rewrittens:  # it resumes by itself
        watch.bottom = frame
        frame.f_trace = watch.inside
    sys.settrace(watch)


def _loops(graph: Graph) -> Iterable[tuple[str, int]]:
    for node in graph.nodes:
        if node.op in LOOPS and node.location is not None:
            yield node.location.file, node.location.line
        for region in node.regions:
            yield from _loops(region)


def _is_own(frame: types.FrameType) -> bool:
    return frame.f_code.co_filename.startswith((OURS, "<tcompile"))


class _Watch:
    """A trace function: raises at the first event after a loop's first line, at the latest when the frame is left."""

    def __init__(self, error: BaseException, loops: set[tuple[str, int]]) -> None:
        self.errors = [error]  # removed when it is raised: its frames reference this object
        self.loops = loops
        self.bottom: types.FrameType | None = None  # the frame in which plain Python began
        self.is_near = False

    def __call__(self, frame: types.FrameType, event: str, arg: Any) -> Any:
        """Handles the call event of a function."""
        if _is_own(frame):
            return None
        self.bottom = self.bottom or frame
        return self.inside(frame, event, arg)

    def inside(self, frame: types.FrameType, event: str, arg: Any) -> Any:
        """Handles other events in a function."""
        passes = event == "opcode" and "JUMP_BACKWARD" not in _instruction(frame)
        if (self.is_near and not passes) or (event == "return" and frame is self.bottom):
            sys.settrace(None)
            self.bottom = None
            frame.f_trace_opcodes = False
            raise self.errors.pop()
        if not passes:
            self.is_near = event == "line" and (frame.f_code.co_filename, frame.f_lineno) in self.loops
            frame.f_trace_opcodes = self.is_near  # from 3.12 on, a loop in one line has no other events
        return self.inside


def _instruction(frame: types.FrameType) -> str:
    return dis.opname[frame.f_code.co_code[frame.f_lasti]]


__all__ = ["is_raised", "pending", "raise_in_loop", "taken"]
