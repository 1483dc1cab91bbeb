"""Calls in machine code: guards, allocation, kernels and return without a Python frame.

Input: the entries of a function. Output: a table from which the machine code of the compiled function works: how
arguments become parameters, and one plan an entry. Whatever has no plan, and any call that fits none, is Python's: the
compiled function's own ``__call__``.

Only the class that compiled functions inherit from is there at once. The rest needs the code generators, which are not
loaded before something is compiled.
"""

from __future__ import annotations

import types
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from tcompile import reentry
from tcompile.runtime.native.layout import Base, complete

if TYPE_CHECKING:
    from tcompile.runtime.cache import Entry, Region


@reentry.slow
def attach(called: Any, slot: Any, function: types.FunctionType, entries: Sequence[Entry]) -> None:
    """``calls.attach``."""
    from tcompile.runtime.native import calls

    calls.attach(called, slot, function, entries)


@reentry.slow
def attach_resume_point(called: Any, slot: Any, region: Region, whole: bool, returned: Sequence[bool]) -> None:
    """``calls.attach_resume_point``."""
    from tcompile.runtime.native import calls

    calls.attach_resume_point(called, slot, region, whole, returned)


@reentry.slow
def unavailable() -> str | None:
    """Why calls are not machine code in this process, in one sentence; None where they can be.

    The first call makes the machine code, some tens of milliseconds; the answer is kept.
    """
    from tcompile.runtime.native import calls

    machine = calls.machine()
    return machine if isinstance(machine, str) else None


__all__ = ["Base", "attach", "attach_resume_point", "complete", "unavailable"]
