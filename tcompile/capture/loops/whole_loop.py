"""Loops of a frame's own code, at the start of an iteration.

Input: a frame where an iteration of a ``for`` or ``while`` begins.
Output: whether the frame is after the loop, which has become a node.
Why: a branch in a loop is captured as a loop of its own, so ``branches`` builds on ``trace_loop``. This file uses both.
"""

from __future__ import annotations

from tcompile.bytecode.dialect import D
from tcompile.capture.context.loop_plan import LoopPlan, WhileLoop
from tcompile.capture.interpreter.frame import Frame
from tcompile.capture.interpreter.loop_info import Header
from tcompile.capture.loops.branches import follow
from tcompile.capture.loops.trace_loop import Loop, is_known, make, plan_of
from tcompile.capture.values.base import LazyValue
from tcompile.capture.values.counted import Counted
from tcompile.graph import Node
from tcompile.graph.sizes import VariesInLoop

FEW_ITERATIONS = 4  # trip counts up to this one are always unrolled
_COLLECTS = ("LIST_APPEND", "SET_ADD", "MAP_ADD")


def enter_for(f: Frame, items: Counted) -> bool:
    """Makes a node of the loop whose FOR_ITER the frame is at. The iterator keeps no items, or the odd iterations.

    Does nothing where the loop is to be unrolled. Returns whether the frame is where it goes on after the loop. Raises
    Restart where capture has to start anew.
    """
    if items.decided:
        return False
    header = f.decoded.flow.loop_at(f.at - 1)
    few = isinstance(items.left, int) and items.left <= FEW_ITERATIONS
    plan = plan_of(f, items, str(items.left), few or _collects(f))
    if plan is None or _is_apart(f, header, plan, items.taken):
        return False
    sure = True
    try:
        if not items.left > plan.unroll_factor - 1:
            return False
    except VariesInLoop:  # the trip count is zero in some iterations of the loop around
        if plan.unroll_factor > 1:
            raise
        sure = False
    return _make(f, items, header, plan, sure)


def enter_while(f: Frame, header: Header, iterations: WhileLoop) -> bool:
    """Makes a node of a ``while`` loop, at the start of an iteration; returns as ``enter_for`` does."""
    if iterations.decided:
        return False
    plan = plan_of(f, iterations, "any number of", bool(f.code.co_flags & 0x20))
    if plan is None or _is_apart(f, header, plan, iterations.taken):
        return False
    if plan.limit is not None:
        for name, value in f.locals.items():  # the limit may be an expression of their symbols
            if isinstance(value, LazyValue) and type(value.value) is int:
                f.locals[name] = value.settle(f.tx)
        if not is_known(f.tx.graph.env, plan.limit):
            plan.outcome, plan.reason = "unrolled", "its trip count is not known where it begins"
            iterations.decided = True
            return False
        iterations.left = plan.limit = f.tx.graph.env.adopt(plan.limit)
        plan.iterations = f"at most {plan.limit}"
        if not iterations.left > 0:  # the trip count is zero, as the test will find
            return False
    return _make(f, iterations, header, plan)


def _is_apart(f: Frame, header: Header, plan: LoopPlan, taken: int) -> bool:
    """Whether this iteration is peeled. Notes it in the frame."""
    f.peeled.pop(header.at, None)
    if taken < plan.peeled:
        f.peeled[header.at] = header, plan
    return taken < plan.peeled


def _make(f: Frame, items: Counted | WhileLoop, header: Header, plan: LoopPlan, sure: bool = True) -> bool:
    """Makes the node; ``sure`` says that at least one iteration is done."""
    items.decided = True
    return make(WholeLoop(f, items, plan, header, sure))


def _collects(f: Frame) -> bool:
    """Whether the loop is that of a comprehension or a generator expression."""
    header = f.at - 1
    instructions, positions = f.decoded.instructions, f.decoded.positions
    if f.code.co_flags & 0x20:
        return True
    end = positions[instructions[header].argval]
    last = instructions[end - 2] if end >= 2 else None
    return last is not None and last.opname in _COLLECTS and last.arg == 1 + D.iterator_items and end - 2 > header


class WholeLoop(Loop):
    """A loop of the frame's own code."""

    def branch(self, at: int, yes: int, no: int, flag: Node) -> None:
        """Follows both ways of a jump, up to where they meet in this iteration."""
        follow(self.f, self.header, at, yes, no, flag)


__all__ = ["enter_for", "enter_while"]
