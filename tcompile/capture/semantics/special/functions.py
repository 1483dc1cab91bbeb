"""Functions that ask about compilation or end it.

Input: calls of ``is_compiling``, ``graph_break``, ``set_stance`` and functions marked by ``disable`` or by a stance.
Output: constants and breaks.
Why: capture knows the answers, and plain Python must do the rest.
"""

from __future__ import annotations

import types
from collections.abc import Mapping, Sequence
from typing import Any

from tcompile.annotations.intrinsics import cudagraph_mark_step_begin, graph_break, is_compiling, unroll
from tcompile.annotations.treatments import is_compiled_by_torch
from tcompile.capture.semantics.special.registry import bind, special
from tcompile.capture.semantics.subgraph import state_of
from tcompile.capture.values.base import Context, Value
from tcompile.capture.values.constant import Constant
from tcompile.capture.values.slices import RangeValue
from tcompile.frontends.base import CannotCapture, scalar_iterations, without_effects
from tcompile.stance import refusal, set_stance


@special(is_compiling)
def _is_compiling(tx: Context, function: Constant, args: Sequence[Value], kwargs: Mapping[str, Value]) -> Value:
    tx.differs = True
    return Constant(True)


@special(graph_break)
def _graph_break(tx: Context, function: Constant, args: Sequence[Value], kwargs: Mapping[str, Value]) -> Value:
    reason = next((str(v.value) for v in [*args, *kwargs.values()] if isinstance(v, Constant)), "")
    raise CannotCapture("graph-break-call", reason or "The program asks for it.")


@special(cudagraph_mark_step_begin)
def _mark_step(tx: Context, function: Constant, args: Sequence[Value], kwargs: Mapping[str, Value]) -> Value:
    bind("cudagraph_mark_step_begin", {}, args, kwargs)
    return Constant(None)


@special(unroll)
def _unroll(tx: Context, function: Constant, args: Sequence[Value], kwargs: Mapping[str, Value]) -> Value:
    (values,) = bind("unroll", {"values": None}, args, kwargs)
    if isinstance(values, RangeValue):
        values.unrolled = True
    return values


@special(scalar_iterations)
def _scalar_iterations(tx: Context, function: Constant, args: Sequence[Value], kwargs: Mapping[str, Value]) -> Value:
    (values,) = args
    assert isinstance(values, RangeValue)
    values.scalar = True
    return values


@special(set_stance)
def _set_stance(tx: Context, function: Constant, args: Sequence[Value], kwargs: Mapping[str, Value]) -> Value:
    if not tx.options.enter_compiled:  # a cell is no compiled function: its statements may change the stance
        raise CannotCapture("side-effect", "A call of set_stance")
    raise refusal("a call of set_stance", tx.user_stack())


@special(without_effects)
def _without_effects(tx: Context, function: Constant, args: Sequence[Value], kwargs: Mapping[str, Value]) -> Value:
    called, *rest = args
    before = state_of(tx)
    result = called.call(tx, rest, kwargs)
    if state_of(tx)[:2] != before[:2]:
        raise CannotCapture("side-effect", f"A change that {called.describe()} makes")
    return result


def refuse_marked(tx: Context, function: Any) -> None:
    """Stops at functions that a stance decorates (an error) or that are excluded from compilation (a break)."""
    if not is_marked(function):
        return
    if hasattr(function, "__tcompile_stance__"):
        if not tx.options.enter_compiled:
            raise CannotCapture("disabled-function", f"`{function.__qualname__}` has a stance of its own.")
        raise refusal(f"{function.__qualname__}, which set_stance decorates", tx.user_stack())
    if is_compiled_by_torch(function):
        raise CannotCapture("disabled-function", f"`{function.__qualname__}` is torch.compile's to run.")
    why = function.__tcompile_disabled__
    raise CannotCapture("disabled-function", f"`{function.__qualname__}` is disabled{f': {why}' if why else '.'}")


def is_marked(function: Any) -> bool:
    """Whether ``refuse_marked`` stops at ``function``."""
    if not issubclass(type(function), types.FunctionType):
        return False  # methods of a user's object are not called: they may run Python code
    own = hasattr(function, "__tcompile_stance__") or hasattr(function, "__tcompile_disabled__")
    return own or is_compiled_by_torch(function)
