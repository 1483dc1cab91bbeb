"""Instructions for operators, comparisons and truth.

Input: a frame with the operands on its stack.
Output: the result in their place.
Why: ``semantics.operators`` has the meaning of each operator, and these handlers decode it from the instruction.
"""

from __future__ import annotations

from tcompile.bytecode.instructions import Instruction
from tcompile.capture.interpreter.frame import Frame, handler
from tcompile.capture.semantics.operators import binary, contains, identical, inplace_object, unary
from tcompile.capture.values.array import ArrayValue
from tcompile.capture.values.base import Value, settled
from tcompile.capture.values.constant import Constant
from tcompile.capture.values.container import SequenceValue
from tcompile.capture.values.dicts import DictValue
from tcompile.capture.values.object import ObjectValue
from tcompile.capture.values.scalar import truth_node, truth_of
from tcompile.capture.values.selected import SelectedValue
from tcompile.capture.values.sets import SetValue, collection
from tcompile.capture.values.signs import COMPARE
from tcompile.capture.values.tensor import TensorValue
from tcompile.capture.values.text import held, remainder
from tcompile.frontends.base import CannotCapture


@handler("BINARY_OP")
def _binary_op(f: Frame, i: Instruction) -> None:
    left, right = f.pop_many_unread(2)
    left, sign = settled(f.tx, left), i.argrepr
    made = remainder(f.tx, left, right) if sign in ("%", "%=") else None
    if made is not None:
        f.push(made)
        return
    right = settled(f.tx, right)
    if sign.endswith("=") and sign not in COMPARE:
        f.push(_inplace(f, sign[:-1], left, right))
    else:
        f.push(binary(f.tx, sign, left, right))


def _inplace(f: Frame, sign: str, left: Value, right: Value) -> Value:
    if isinstance(left, TensorValue):
        return left.update(f.tx, sign, right)
    if isinstance(left, SelectedValue) or (isinstance(left, ArrayValue) and not left.traced.scalar):
        return left.update(f.tx, sign, right)
    if isinstance(left, SequenceValue) and left.cls is list and not isinstance(right, ArrayValue):
        if sign == "+":
            found = right.call_operator(f.tx, "__radd__", [left]) if isinstance(right, ObjectValue) else None
            if found is not None:  # it comes before the list's own method
                return found
            left.method(f.tx, "extend", [right], {})
            return left
        raise CannotCapture("unsupported-operands", f"{left.describe()} {sign}= {right.describe()}")
    if isinstance(left, SetValue) and left.cls is set and isinstance(right, SetValue) and sign in _SET_CHANGES:
        left.change(f.tx, _SET_CHANGES[sign], (collection(f.tx, right),))
        return left
    if isinstance(left, DictValue) and sign == "|":
        left.method(f.tx, "update", [right], {})
        return left
    if isinstance(left, ObjectValue):
        return inplace_object(f.tx, sign, left, right)
    return binary(f.tx, sign, left, right)


_SET_CHANGES = {
    "|": "update", "&": "intersection_update", "-": "difference_update", "^": "symmetric_difference_update",
}  # fmt: skip


@handler("COMPARE_OP")
def _compare_op(f: Frame, i: Instruction) -> None:
    left, right = f.pop_many(2)
    sign = i.argval.removeprefix("bool(").removesuffix(")")
    result = binary(f.tx, sign, left, right)
    f.push(_truth(f, result) if i.argrepr.startswith("bool(") else result)


@handler("IS_OP")
def _is_op(f: Frame, i: Instruction) -> None:
    left, right = f.pop_many(2)
    f.push(Constant(identical(f.tx, left, right) != bool(i.arg)))


@handler("CONTAINS_OP")
def _contains_op(f: Frame, i: Instruction) -> None:
    item, container = f.pop_many_unread(2)
    container = settled(f.tx, container)
    item = (held if isinstance(container, DictValue) else settled)(f.tx, item)
    f.push(Constant(contains(f.tx, container, item) != bool(i.arg)))


@handler("UNARY_NEGATIVE")
def _negative(f: Frame, i: Instruction) -> None:
    f.push(unary(f.tx, "-", f.pop()))


@handler("UNARY_POSITIVE")
def positive(f: Frame, i: Instruction) -> None:
    """``+value`` (3.12 and later spell it as an intrinsic)."""
    f.push(unary(f.tx, "+", f.pop()))


@handler("UNARY_INVERT")
def _invert(f: Frame, i: Instruction) -> None:
    f.push(unary(f.tx, "~", f.pop()))


@handler("UNARY_NOT")
def _not(f: Frame, i: Instruction) -> None:
    f.push(Constant(not f.pop().truth(f.tx)))


@handler("TO_BOOL")
def _to_bool(f: Frame, i: Instruction) -> None:
    f.push(_truth(f, f.pop()))


def _truth(f: Frame, value: Value) -> Value:
    """Whether a value is true: a bool, or one of the graph's where a jump in an iteration may go both ways."""
    node = truth_node(f.tx, value) if f.may_branch() else None
    return Constant(value.truth(f.tx)) if node is None else truth_of(f.tx, node)


@handler("GET_LEN")
def _get_len(f: Frame, i: Instruction) -> None:
    f.push(f.peek(1).length(f.tx))
