"""Calls in machine code: guards, allocation, kernels and return without a Python frame.

Input: the entries of a function.
Output: a table for the compiled function's machine code: how arguments become parameters, and one plan for each entry.
Why: a call costs a tenth of a microsecond. Entries without a plan, and calls that miss all plans, go to the compiled
function's ``__call__``.

Only the base class of compiled functions is imported here. The rest needs the code generators, which are loaded on the
first compile.
"""

from __future__ import annotations

import types
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from tcompile import reentry
from tcompile.runtime.native.layout import Base, complete

if TYPE_CHECKING:
    from tcompile.runtime.cache import Entry, Region
    from tcompile.runtime.native.words import CallPlan


@reentry.slow
def attach(called: Any, slot: Any, function: types.FunctionType, entries: Sequence[Entry]) -> None:
    """``calls.attach``."""
    from tcompile.runtime.native import calls

    calls.attach(called, slot, function, entries)


@reentry.slow
def attach_resting(called: Any, slot: Any, function: types.FunctionType, plan: CallPlan | None) -> None:
    """``calls.attach_resting``."""
    from tcompile.runtime.native import calls

    calls.attach_resting(called, slot, function, plan)


@reentry.slow
def resting_plan(limit: float, patience: float) -> CallPlan | None:
    """``calls.resting_plan``."""
    from tcompile.runtime.native import calls

    return calls.resting_plan(limit, patience)


@reentry.slow
def excess_of(plan: CallPlan) -> float:
    """``calls.excess_of``."""
    from tcompile.runtime.native import calls

    return calls.excess_of(plan)


@reentry.slow
def attach_resume_point(called: Any, slot: Any, region: Region, whole: bool, returned: Sequence[bool]) -> None:
    """``calls.attach_resume_point``."""
    from tcompile.runtime.native import calls

    calls.attach_resume_point(called, slot, region, whole, returned)


@reentry.slow
def unavailable() -> str | None:
    """Returns why calls are not machine code in this process, in one sentence; None if they can be.

    The first call generates the machine code, which takes some tens of milliseconds; the answer is cached.
    """
    from tcompile.runtime.native import calls

    machine = calls.machine()
    return machine if isinstance(machine, str) else None


__all__ = [
    "Base", "attach", "attach_resting", "attach_resume_point", "complete", "excess_of", "resting_plan", "unavailable",
]  # fmt: skip
