"""Code of the user's that a call is to run, and how it is called with no frame of ours below it.

Input: a function of the user's, in its own code or its host's, and what times the call.
Output: its result.
Why: whoever looks from the user's function to its caller, as debuggers do, is to find the user's caller there. So what
a call decides is over before the user's code begins, and the frames that finish the call are hidden.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from sys import gettrace
from typing import Any, Protocol

from tcompile.runtime.debuggers import debugger_tool
from tcompile.runtime.unseen import go_on, never_begins, pause, thread

_IS_3_11 = sys.version_info < (3, 12)  # which has no ``sys.monitoring``


class Around(Protocol):
    """Times one call."""

    def begin(self) -> None:
        """The call begins."""

    def end(self, returned: bool) -> None:
        """The call has returned, or raised."""


class Run:
    """A function that a call is to run with its arguments, and what times the call."""

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
                go_on(thread())
    return result


carry_out_unseen = never_begins(carry_out)  # for calls that nothing counts: see ``unseen.is_counted``

__all__ = ["Around", "Run", "carry_out", "carry_out_unseen"]
