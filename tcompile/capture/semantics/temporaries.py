"""Temporaries: operands of an operator that have no other reference.

Input: an operator's operands, and the frames being followed.
Output: the operand whose memory the library takes for the result (NumPy: where it is large). The result then has the
operand's memory layout.
Why: the layout depends on other references to the operand. ``x.T * 2 + y`` and ``t + y`` may differ in their strides,
though ``t`` is ``x.T * 2``.

References are read off the frames' variables, and off the instruction that left the operand on the stack. Where that is
not conclusive (it came through a container, or out of a function), the graph ends before the operator.
"""

from __future__ import annotations

import dis

from tcompile.bytecode.decode import JUMPS
from tcompile.capture.guards.sources import ParameterSource
from tcompile.capture.values.array import ArrayValue
from tcompile.capture.values.base import Context, FrameView, Value
from tcompile.capture.values.callable import ClosureCell
from tcompile.frontends.base import CannotCapture
from tcompile.graph.op import Aliasing

_VARIABLES = ("LOAD_DEREF", "LOAD_CLASSDEREF", "LOAD_GLOBAL", "LOAD_NAME")  # a frame's own variables are read directly


def reused(tx: Context, operands: list[Value], taken: list[int]) -> ArrayValue | None:
    """The first operand, of those at the places ``taken``, that has no other reference."""
    for place in taken:
        operand = operands[place]
        assert isinstance(operand, ArrayValue)
        held = _is_held(tx, operand, last=place == len(operands) - 1)
        if held is None:
            raise CannotCapture("memory-order", f"NumPy may give the memory of {operand.describe()} to the result")
        if not held:
            return operand
    return None


def _is_held(tx: Context, array: ArrayValue, last: bool) -> bool | None:
    """Whether an operand has a reference beside the stack, or does not own its memory; None: unknown."""
    memory, source = array.memory, array.source
    if memory is None or array.path:
        return True
    if any(value is array or (source is not None and value.source == source) for value in _variables(tx)):
        return True
    frame = tx.frames[-1]
    left_by = _producer(frame, last)
    if left_by is not None and frame.instructions[left_by].opname in _VARIABLES:
        return True
    if memory.owner is not None:  # its source has a reference, unless that is the stack alone
        return None if source is None or isinstance(source, ParameterSource) else True
    made_here = left_by is not None and array.traced.node.location is frame.location(left_by)
    owning = memory.root.op.memory is Aliasing.FRESH
    return False if made_here and owning else None


def _variables(tx: Context) -> list[Value]:
    """The values of the variables and stacks of all frames."""
    found: list[Value] = []
    for frame in tx.frames:
        found += frame.locals.values()
        found += frame.stack
        cells = (cell.value for cell in frame.cells.values() if isinstance(cell, ClosureCell))
        found += (value for value in cells if value is not None)
    return found


def _producer(frame: FrameView, last: bool) -> int | None:
    """The number of the instruction that left an operand of the current operator; None where it is not clear."""
    instructions, at = frame.instructions, frame.at - 2
    if instructions[frame.at - 1].opname != "BINARY_OP":
        return None
    if last:
        return at
    missing = 1  # how many stack items the instructions after ``at`` still need
    while missing > 0:
        if at < 0 or instructions[at].opcode in JUMPS or instructions[at + 1].is_jump_target:
            return None
        argument = instructions[at].arg if instructions[at].opcode >= dis.HAVE_ARGUMENT else None
        missing -= dis.stack_effect(instructions[at].opcode, argument, jump=False)
        at -= 1
    return None if missing < 0 or instructions[at + 1].is_jump_target else at
