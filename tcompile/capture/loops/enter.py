"""The handlers of instructions at which loops begin, and of jumps that may leave them.

Input: a frame at such an instruction.
Output: the frame after the loop or the branch that became a node, or after the plain instruction.
Why: the interpreter knows no loops, so these handlers are here. They import the files that make nodes with the first
loop: most functions have none.
"""

from __future__ import annotations

from tcompile.bytecode.dialect import D
from tcompile.bytecode.instructions import Instruction
from tcompile.capture.context.loop_plan import WhileLoop
from tcompile.capture.interpreter.frame import AT_HEADER, HANDLERS, Frame, handler
from tcompile.capture.interpreter.opcodes.control import jump_either_way
from tcompile.capture.values.counted import Counted
from tcompile.capture.values.object import OpaqueValue, advance
from tcompile.frontends.base import CannotCapture


@handler("FOR_ITER")
def _for_iter(f: Frame, i: Instruction) -> None:
    items = f.peek(D.iterator_items)
    if isinstance(items, OpaqueValue):  # the running frame's own: only that frame can advance it
        raise CannotCapture("frame-step", f.tx.current_text())
    if isinstance(items, Counted):
        from tcompile.capture.loops import scalar, whole_loop

        if not items.decided and scalar.enter(f, f.decoded.flow.loop_at(f.at - 1)):
            return
        if items.scalar:
            raise CannotCapture("unsupported-object", "A scalar loop that is no scalar code")
        if items.is_symbolic and whole_loop.enter_for(f, items):
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
    """Begins an iteration of a ``while`` loop, or enters the loop; then handles the instruction itself."""
    from tcompile.capture.loops import scalar, whole_loop

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
    if whole_loop.enter_while(f, header, iterations):
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
    if f.may_branch():
        from tcompile.capture.loops import branches

        if branches.enter(f, i, value):
            return
    if value.truth(f.tx) == i.opname.endswith("TRUE"):
        jump_either_way(f, i)
