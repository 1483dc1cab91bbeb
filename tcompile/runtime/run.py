"""Calls user code with none of tcompile's frames below it.

Input: a function of the user's, in its own or its rewritten code, and a timer of the call.
Output: its result.
Why: debuggers go from the user's function to its caller, and must find the user's caller there. So a call's decisions
are over before user code begins, and the frames that finish the call are hidden.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from sys import gettrace
from typing import Any, Protocol

from tcompile.runtime.debuggers import debugger_tool
from tcompile.runtime.unseen import never_begins, pause, resume_tracing, thread

_IS_3_11 = sys.version_info < (3, 12)  # which has no ``sys.monitoring``


class Around(Protocol):
    """Times one call."""

    def begin(self) -> None:
        """Handles the begin of the call."""

    def end(self, returned: bool) -> None:
        """Handles the end of the call, by return or exception."""


class Run:
    """A function that a call is to run with its arguments, and the timer of the call."""

    __slots__ = ("around", "function")

    def __init__(self, function: Callable[..., Any], around: Around | None = None) -> None:
        self.function = function
        self.around = around


def carry_out(run: Run, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    """Calls the function."""
    around = run.around
    if around is None:
        return run.function(*args, **kwargs)
    returned = False
    around.begin()
    try:
        result = run.function(*args, **kwargs)
        returned = True
    finally:
        if gettrace() is None and (_IS_3_11 or debugger_tool() is None):
            around.end(returned)
        else:
            pause(thread())
            try:
                around.end(returned)
            finally:
                resume_tracing(thread())
    return result


carry_out_unseen = never_begins(carry_out)  # for calls that are not counted: see ``unseen.is_counted``

__all__ = ["Around", "Run", "carry_out", "carry_out_unseen"]
