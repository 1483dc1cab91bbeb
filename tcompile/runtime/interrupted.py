"""Interrupts of captured loops: plain Python goes as far as the loop, and raises there what a handler has raised.

Input: an ``Interrupted`` run, which has left no effects. Output: nothing; plain Python, which does the stretch again,
is watched by a trace function until it is in a loop that was captured. Why: the exception must come up where
the user's handlers, ``finally`` clauses and contexts are in force, with the effects of what stands before the loop
made, and the variables there that an interrupted loop of plain Python leaves.
"""

from __future__ import annotations

import dis
import os
import sys
import threading
import types
from collections.abc import Iterable
from typing import Any

from tcompile.backends.replay import Interrupted
from tcompile.callers import is_callers
from tcompile.graph import Graph
from tcompile.graph.ops.control import LOOPS
from tcompile.polls import Changed
from tcompile.runtime.cache import Entry, FunctionCache

_OWN = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep

# Runs in machine code that were interrupted, by thread, until the call is made again in Python.
pending: dict[int, Interrupted | Changed] = {}


def is_raised(error: BaseException) -> bool:
    """Whether machine code is to raise an exception that came up in it, and not to make the call again in Python."""
    if isinstance(error, Interrupted | Changed):
        pending[threading.get_ident()] = error
        return False
    return is_callers(error)


def taken() -> Interrupted | Changed | None:
    """What has interrupted the last run of machine code in this thread, once."""
    return pending.pop(threading.get_ident(), None)


def go_on(error: Interrupted, cache: FunctionCache, entries: Iterable[Entry]) -> None:
    """Has what runs next in plain Python raise what was raised, in a loop that one of the entries has captured.

    Raises it at once where somebody else traces, or no loop is known.
    """
    loops = {place for entry in entries if entry.captured.graph for place in _loops(entry.captured.graph)}
    if not loops or sys.gettrace() is not None:
        raise error.error
    frame: types.FrameType | None = sys._getframe()
    while frame is not None and _is_own(frame):
        frame = frame.f_back
    rewrittens = [rewritten.code for rewritten in (cache.rewritten, cache.built) if rewritten is not None]
    watch = _Watch(error.error, loops)
    if frame is not None and frame.f_code in rewrittens:  # goes on by itself
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
    return frame.f_code.co_filename.startswith((_OWN, "<tcompile"))


class _Watch:
    """A trace function: raises at the first event after a loop's first line, in the end where the frame is left."""

    def __init__(self, error: BaseException, loops: set[tuple[str, int]]) -> None:
        self.errors = [error]  # taken out where it is raised: its frames hold this
        self.loops = loops
        self.bottom: types.FrameType | None = None  # where plain Python has begun
        self.is_near = False

    def __call__(self, frame: types.FrameType, event: str, arg: Any) -> Any:
        """A function begins."""
        if _is_own(frame):
            return None
        self.bottom = self.bottom or frame
        return self.inside(frame, event, arg)

    def inside(self, frame: types.FrameType, event: str, arg: Any) -> Any:
        """Something happens in a function."""
        passes = event == "opcode" and "JUMP_BACKWARD" not in _instruction(frame)
        if (self.is_near and not passes) or (event == "return" and frame is self.bottom):
            sys.settrace(None)
            self.bottom = None
            frame.f_trace_opcodes = False
            raise self.errors.pop()
        if not passes:
            self.is_near = event == "line" and (frame.f_code.co_filename, frame.f_lineno) in self.loops
            frame.f_trace_opcodes = self.is_near  # from 3.12 on a loop in one line has no other events
        return self.inside


def _instruction(frame: types.FrameType) -> str:
    return dis.opname[frame.f_code.co_code[frame.f_lasti]]


__all__ = ["go_on", "is_raised", "pending", "taken"]
