"""Where the interpreter comes to a loop, or to a jump that may be one of its exits.

Input: a frame at such an instruction. Output: the frame after the loop or the branch that became a node, or at the
instruction that plain interpretation leads to. Why: the interpreter knows no loops: the handlers of these instructions
are here, beside the loops that they enter, and ``FOR_ITER`` walks over known values where there is nothing to enter.
"""

from __future__ import annotations

from tcompile.bytecode.dialect import D
from tcompile.bytecode.instructions import Instruction
from tcompile.capture.context.loop_plan import LoopPlan, WhileLoop
from tcompile.capture.interpreter.frame import AT_HEADER, HANDLERS, Frame, handler
from tcompile.capture.interpreter.loop_info import Header
from tcompile.capture.interpreter.opcodes.control import jump_either_way
from tcompile.capture.loops import branches, scalar
from tcompile.capture.loops.trace_loop import Loop, is_known, make, plan_of
from tcompile.capture.values.base import LazyValue
from tcompile.capture.values.counted import Counted
from tcompile.capture.values.object import OpaqueValue, advance
from tcompile.frontends.base import CannotCapture
from tcompile.graph import Node
from tcompile.graph.sizes import VariesInLoop

FEW_ITERATIONS = 4  # as many are always unrolled
_COLLECTS = ("LIST_APPEND", "SET_ADD", "MAP_ADD")


@handler("FOR_ITER")
def _for_iter(f: Frame, i: Instruction) -> None:
    items = f.peek(D.iterator_items)
    if isinstance(items, OpaqueValue):  # the running frame's own, which only it can move on
        raise CannotCapture("frame-step", f.tx.current_text())
    if isinstance(items, Counted):
        if not items.decided and scalar.enter(f, f.decoded.flow.loop_at(f.at - 1)):
            return
        if items.scalar:
            raise CannotCapture("unsupported-object", "A scalar loop that is no scalar code")
        if items.is_symbolic and enter_for(f, items):
            return
        if items.taken and items.plan is not None and items.plan.interpreted_loop:
            raise CannotCapture("frame-step", f.tx.current_text())
    value = advance(f.tx, items)
    if value is not None:
        f.push(value)
        return
    del f.stack[-D.iterator_items :]
    f.at = f.decoded.flow.target(f.at - 1)


@handler(AT_HEADER)
def _at_header(f: Frame, i: Instruction) -> None:
    """Where an iteration of a ``while`` loop begins, or the loop is entered; then the instruction itself."""
    at = f.at - 1
    header = f.decoded.headers[at]
    if scalar.enter(f, header):
        return
    iterations = f.iterations.get(header.at)
    if (at == header.entry and f.came_back != at) or iterations is None:
        inside = at != header.entry or f.came_back == at
        whole = inside and f.began in f.decoded.flow.chain(at)  # it began with this very test
        iterations = f.iterations[header.at] = WhileLoop(inside, int(whole))
    else:
        iterations.taken += 1
    f.came_back = -1
    if enter_while(f, header, iterations):
        return
    if iterations.taken and (iterations.inside or (iterations.plan is not None and iterations.plan.interpreted_loop)):
        raise CannotCapture("frame-step", f.tx.current_text())
    HANDLERS[i.opname](f, i)


@handler(
    "POP_JUMP_IF_TRUE", "POP_JUMP_IF_FALSE", "POP_JUMP_FORWARD_IF_TRUE", "POP_JUMP_FORWARD_IF_FALSE",
    "POP_JUMP_BACKWARD_IF_TRUE", "POP_JUMP_BACKWARD_IF_FALSE",
)  # fmt: skip
def _pop_jump(f: Frame, i: Instruction) -> None:
    value = f.pop()
    if f.may_branch() and branches.enter(f, i, value):
        return
    if value.truth(f.tx) == i.opname.endswith("TRUE"):
        jump_either_way(f, i)


def enter_for(f: Frame, items: Counted) -> bool:
    """Makes a node of the loop whose FOR_ITER the frame is at; the iterator then has nothing left, or the odd
    iterations.

    Where the loop is to be unrolled nothing is done. Says whether the frame is already where it goes on after the
    loop. Raises Restart where capture has to start anew.
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
    except VariesInLoop:  # of the loop around: there are iterations in some of its iterations only
        if plan.unroll_factor > 1:
            raise
        sure = False
    return _make(f, items, header, plan, sure)


def enter_while(f: Frame, header: Header, iterations: WhileLoop) -> bool:
    """The same for a ``while`` loop, at the start of an iteration."""
    if iterations.decided:
        return False
    plan = plan_of(f, iterations, "any number of", bool(f.code.co_flags & 0x20))
    if plan is None or _is_apart(f, header, plan, iterations.taken):
        return False
    if plan.limit is not None:
        for name, value in f.locals.items():  # the limit may be known by their symbols
            if isinstance(value, LazyValue) and type(value.value) is int:
                f.locals[name] = value.settle(f.tx)
        if not is_known(f.tx.graph.env, plan.limit):
            plan.outcome, plan.reason = "unrolled", "how often it is done is not known where it begins"
            iterations.decided = True
            return False
        iterations.left = plan.limit = f.tx.graph.env.adopt(plan.limit)
        plan.iterations = f"at most {plan.limit}"
        if not iterations.left > 0:  # no iteration is done: the test says so
            return False
    return _make(f, iterations, header, plan)


def _is_apart(f: Frame, header: Header, plan: LoopPlan, taken: int) -> bool:
    """Whether an iteration is done before the node; the frame then knows."""
    f.peeled.pop(header.at, None)
    if taken < plan.peeled:
        f.peeled[header.at] = header, plan
    return taken < plan.peeled


def _make(f: Frame, items: Counted | WhileLoop, header: Header, plan: LoopPlan, sure: bool = True) -> bool:
    """The same as ``make``; ``sure`` says that an iteration is done at all."""
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
        branches.follow(self.f, self.header, at, yes, no, flag)


__all__ = ["FEW_ITERATIONS"]
