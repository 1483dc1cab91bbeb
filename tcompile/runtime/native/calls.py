"""The machine code of calls, and the table for one compiled function.

Input: a compiled function, and plans of its entries.
Output: an object that CPython calls through machine code (``call.ll``). It compares a few words that permit machine
code, binds the arguments, and tries the plans, the last hit first. Anything else calls the object's ``__call__``.
Why: a call costs a tenth of a microsecond, and Python decides everything but hits.
"""

from __future__ import annotations

import array
import types
import weakref
from collections.abc import Sequence
from functools import cache
from typing import Any, NamedTuple, cast

import numpy as np

from tcompile import stance, system
from tcompile.backends import helpers
from tcompile.backends.llvm.native import abi, memory, target, threads
from tcompile.callers import raise_if_callers
from tcompile.config import Config, config
from tcompile.observe import bus
from tcompile.runtime import cache as caches
from tcompile.runtime.cache import SUSPENDS, Entry, Region
from tcompile.runtime.interrupted import is_raised
from tcompile.runtime.native import bindings, layout, stack
from tcompile.runtime.native.plan import plan_of
from tcompile.runtime.native.words import FRAME, MOST_WORDS, OPERATIONS, OUTCOMES, PLAN_CODE, CallPlan

_SPREAD = 0x0C  # code flags of *args and **kwargs
_MOST_PARAMETERS = 64
_FOREVER = 1e9  # seconds
_FULL = "maximum recursion depth exceeded: compiled functions take C's stack, of which little is left"

# The words of a table, in order; then the closure's cells, the parameters' names, and the plans.
_TABLE = ("GENERATION", "FUNCTION", "CODE", "FRAME", "OWNED", "WORDS", "CELLS", "COUNT", "POSITIONAL", "ONLY", "PLANS")


class _Machine(NamedTuple):
    """The loaded code: where a call enters, and the operations of plans by name."""

    code: target.MachineCode
    call: int
    enter: int


@cache
def machine() -> _Machine | str:
    """Returns the machine code of calls, generated on first use; or the reason why there is none."""
    reason = abi.unsupported() or layout.unsupported()
    if reason is not None:
        return reason
    values: dict[str, object] = {**layout.OFFSETS, **layout.function_fields(), **FRAME, **OUTCOMES, **PLAN_CODE}
    values |= {"TRACE_OBJECT": layout.trace_object(), "PROBES": system.STACK_PROBES}
    values |= {f"T_{name}": i for i, name in enumerate(_TABLE)} | {"T_LISTS": len(_TABLE), "POOLED": memory.THRESHOLD}
    words = {
        "generation": caches.generation, "departed": stance.departed, "listening": bus.listened,
        "switched_off": vars(Config)["native_calls"].off, "changes": bindings.changes,
        "room": stack.room, "new_array": memory.new_array,
    }  # fmt: skip
    objects = {
        "stance_block": stance.blocks, "none": None, "report": helpers.floating_point_report,
        "check_errors": helpers.check_error_state, "empty": memory.empty, "harmless": helpers.harmless,
        "is_raised": is_raised, "measure_room": stack.measure, "yes": True,
        "error_state": np._core.umath._extobj_contextvar,  # type: ignore[attr-defined]
    }  # fmt: skip
    try:
        ir = abi.c_string("full_text", _FULL) + abi.method_def("check_method", "check_stack", "check_stack()")
        ir += target.source("call.ll", values, __package__) + system.text("clock")
        symbols = {name: target.immortal(held).buffer_info()[0] for name, held in words.items()}
        symbols["debugger"] = layout.debugger_name() or target.immortal(array.array("q", [0])).buffer_info()[0]
        symbols |= {name: id(target.immortal(held)) for name, held in objects.items()}
        symbols["tc_parallel"] = threads.code()["tc_parallel"]
        symbols |= abi.symbols(ir)
        # More effort in instruction selection takes ten times as long, and makes a call a tenth faster.
        names = ["call", "enter", "rebound", "check_method", *OPERATIONS]
        code = target.keep_forever(target.load(ir, names, symbols, opt=0))
    except (RuntimeError, OSError, ValueError, AttributeError) as error:
        return f"the machine code of calls could not be made: {error}"
    stack.check = abi.builtin(code, "check_method")
    return _Machine(code, code["call"], code["enter"])


def suits(function: types.FunctionType) -> bool:
    """Whether the machine code can bind arguments to the function's parameters."""
    code = function.__code__
    return not code.co_flags & (_SPREAD | SUSPENDS) and not code.co_cellvars


def attach(called: Any, slot: Any, function: types.FunctionType, entries: Sequence[Entry]) -> None:
    """Lets machine code answer calls of ``called`` that fit one of the entries; none if no entry has a plan.

    slot: the descriptor of the slot that machine code reads. ``function`` is called where an entry asks for it. Calls
    in progress continue with their table, which they keep alive.
    """
    made = _machine_for(called)
    plans = _plans([entry for entry in entries if entry.captured.exit is None], made)
    _attach_plans(called, slot, function, plans)


def attach_resting(called: Any, slot: Any, function: types.FunctionType, plan: CallPlan | None) -> None:
    """The same for a function that rests, with a plan of ``resting_plan``."""
    _attach_plans(called, slot, function, [] if plan is None else [plan])


def resting_plan(limit: float, patience: float) -> CallPlan | None:
    """Returns the plan of a function that rests: plain Python runs it, until its calls have exceeded ``limit`` seconds
    by ``patience`` seconds in all. ``excess_of`` returns by how much; None where there is no machine code.
    """
    made = machine()
    if isinstance(made, str):
        return None
    limit_in_ns, patience_in_ns = (int(min(seconds, _FOREVER) * 1e9) for seconds in (limit, patience))
    off = vars(Config)["rest_when_slower"].off
    code = [made.code.addresses["resting"], limit_in_ns, patience_in_ns, off.buffer_info()[0], 0, 0]
    return CallPlan(array.array("Q", [0] * PLAN_CODE["P_CODE"] + code), (off,), 0, 0, 0)


def excess_of(plan: CallPlan) -> float:
    """Returns by how many seconds calls of a function that rests have exceeded the limit."""
    return plan.words[PLAN_CODE["P_CODE"] + 4] * 1e-9


def _attach_plans(called: Any, slot: Any, function: types.FunctionType, plans: Sequence[CallPlan]) -> None:
    made = _machine_for(called)
    code = function.__code__
    names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    cells = function.__closure__ or ()
    suited = plans if suits(function) else []
    table = _table(suited, function, cells, names, code.co_argcount, code.co_posonlyargcount)
    if made is not None and table is not None:
        slot.__set__(called, table)
        layout.point(called, made.call)
    elif attached(called, slot):
        slot.__delete__(called)


def attach_resume_point(called: Any, slot: Any, region: Region, whole: bool, returned: Sequence[bool]) -> None:
    """The same for a resume point's callable: ``called`` holds the table weakly, the region strongly.

    whole: whether entries that run to the function's end are answered as well; ``returned`` leads the rewritten code
    there.
    """
    made = _machine_for(called)
    entries = [entry for entry in region.entries if whole or entry.captured.exit is not None or entry.graph is None]
    arity = region.start.arity
    plans = _plans(entries, made, returned)
    table = _table(plans, cast(types.FunctionType, _continue_in_python), (), ("",) * arity, arity, arity)
    if made is not None and table is not None:
        region.tables[called] = table
        slot.__set__(called, weakref.ref(table))
        layout.point(called, made.enter)
    elif attached(called, slot):
        slot.__delete__(called)


def _continue_in_python(*values: Any) -> None:
    """The callable of a resume point for a plan whose stretch is to run in plain Python."""


def _machine_for(called: Any) -> _Machine | None:
    made = machine() if layout.is_complete(type(called)) else ""
    return None if isinstance(made, str) else made


def _plans(entries: Sequence[Entry], made: _Machine | None, returned: Sequence[bool] | None = None) -> list[CallPlan]:
    """Returns the plans of those entries that have one."""
    if made is None:
        return []
    return [plan for entry in entries if (plan := _plan(entry, made, returned)) is not None]


def _table(
    plans: Sequence[CallPlan],
    function: types.FunctionType,
    cells: Sequence[types.CellType],
    names: Sequence[str],
    positional: int,
    only: int,
) -> layout.Table | None:
    """Returns the table's words; None if there is no plan."""
    if not plans or len(names) > _MOST_PARAMETERS:
        return None
    count = len(names)
    registers, owned, words = (max(getattr(p, size) for p in plans) for size in ("registers", "owned", "words_needed"))
    # Defaults are owned too, one for each parameter.
    first = FRAME["F_REGISTERS"] + registers
    sizes = {"FRAME": first + owned + count + words, "OWNED": first, "WORDS": first + owned + count}
    head = {
        **sizes, "GENERATION": caches.generation[0], "FUNCTION": id(function), "CODE": id(function.__code__),
        "CELLS": len(cells), "COUNT": count, "POSITIONAL": positional, "ONLY": only, "PLANS": len(plans),
    }  # fmt: skip
    table = layout.Table("Q", [head[name] for name in _TABLE])
    table.extend(map(id, (*cells, *names)))
    table.extend(plan.address for plan in plans)
    table.keep = (function, function.__code__, *cells, *names, *plans)
    return table


def _plan(entry: Entry, made: _Machine, returned: Sequence[bool] | None) -> CallPlan | None:
    """Returns the plan of an entry, made once."""
    if not entry.planned:
        entry.planned = True
        if entry.rest is not None:
            try:
                plan = plan_of(entry.captured, entry.rest, made.code.addresses, returned)
            except Exception as error:  # a bug in tcompile, which must not fail the call
                raise_if_callers(error)
                if config.verify:
                    raise
                plan = None
            entry.plan = plan if plan is not None and plan.size <= MOST_WORDS else None
    return entry.plan if not entry.suspensions else None  # which would run again in Python


def attached(called: Any, slot: Any) -> bool:
    """Whether machine code answers some calls of ``called``."""
    try:
        slot.__get__(called)
    except AttributeError:
        return False
    return True


__all__ = [
    "attach", "attach_resting", "attach_resume_point", "attached", "excess_of", "machine", "resting_plan", "suits",
]  # fmt: skip
