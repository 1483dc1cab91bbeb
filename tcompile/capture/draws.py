"""Random numbers where they are drawn in a loop that becomes a node.

Enters: a generator's method, and captured arguments. Leaves: the number or the array that it gives, drawn by a loop
over elements from the generator's state. Exists for loops over arrays with draws in them. Outside of loops a draw is
plain Python's, unless a break would be an error: NumPy's own call costs less than to hand the state in and out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from tcompile.capture import element_draws
from tcompile.capture.element_instructions import Instructions, Refused, V
from tcompile.capture.element_nodes import append, number_of, operand_of
from tcompile.capture.values.base import Value
from tcompile.capture.values.constant import Constant, IntegerValue
from tcompile.capture.values.container import SequenceValue
from tcompile.frontends.base import CannotCapture, Traced
from tcompile.graph import SymInt
from tcompile.graph.ops.draws import DRAWS, Draw, method_of
from tcompile.graph.ops.element_loop import dtype_of

if TYPE_CHECKING:
    from tcompile.capture.state import Capture
    from tcompile.capture.values.random_generator import RandomGeneratorValue


def call(
    tx: Capture, owner: RandomGeneratorValue, name: str, args: Sequence[Value], kwargs: Mapping[str, Value]
) -> Value:
    """What the method gives. Raises CannotCapture for what is plain Python's."""
    row = method_of(owner.python_type, name)
    if row is None or owner.family is None or not (tx.open_loops or tx.options.max_unrolled is None):
        raise CannotCapture("random-numbers", f"{owner.source.text}.{name}")
    try:
        arguments, shape = _bound(DRAWS[row], name, args, kwargs)
        return _drawn(tx, owner, f"{owner.family.name} {row}", arguments, shape)
    except Refused as reason:
        raise CannotCapture("random-numbers", f"{owner.source.text}.{name}: {reason}") from reason


def _drawn(
    tx: Capture, owner: RandomGeneratorValue, what: str, arguments: Sequence[Value], shape: tuple[Any, ...] | None
) -> Value:
    """The number, or the array of that shape."""
    t = Instructions()
    t.block = t.new_block()
    numbers: list[tuple[int, Any]] = []
    given = [_number(tx, t, numbers, value) for value in arguments]
    name = what.split()[1]
    kind, arrays = DRAWS[name].kind, [owner.state(tx), *(owner.spare(tx) if name.startswith("polar") else ())]
    spare = range(1, len(arrays))
    if shape is None:
        number = element_draws.draw(t, 0, what, spare, given)
        t.block.end = ("exit", (number.register,))
        (node,) = append(tx, t, arrays, numbers, [kind])
        return number_of(tx, kind, node)
    made = tx.builder.op("full", shape=shape, fill_value=0, dtype=dtype_of(kind).name)
    array = tx.new_array(Traced(made), tx.frontends[0])
    element_draws.fill(t, len(arrays), len(shape), 0, what, spare, given)
    append(tx, t, [*arrays, array], numbers, [])
    return array


def _number(tx: Capture, t: Instructions, numbers: list[tuple[int, Any]], value: Value) -> V:
    if isinstance(value, Constant):
        return t.constant(value.value)
    operand = operand_of(tx, value)
    if operand is None:
        raise Refused(f"{value.describe()} is no number")
    kind, given = operand
    register = t.register(kind)
    numbers.append((register, given))
    return V(kind, (register,))


def _bound(
    row: Draw, name: str, args: Sequence[Value], kwargs: Mapping[str, Value]
) -> tuple[list[Value], tuple[Any, ...] | None]:
    """The parameters of the draw, and the shape that is asked for; None where that is one number."""
    if name in ("rand", "randn"):
        return [], _shape(SequenceValue(list(args), tuple)) if args else None
    names = (*row.parameters, "size")
    given = dict(zip(names, args, strict=False))
    if len(args) > len(names) or not set(kwargs) <= set(names) or set(kwargs) & set(given):
        raise Refused("other arguments")
    given |= kwargs
    size = given.pop("size", None)
    found: list[Value] = []
    for parameter, default in zip(row.parameters, row.defaults, strict=True):
        value = given.get(parameter)
        if value is None and default is not None:
            value = Constant(default)
        if value is not None and not value.is_none:
            found.append(value)
        elif parameter != "high":
            raise Refused(f"no {parameter}")
    return found, None if size is None or size.is_none else _shape(size)


def _shape(size: Value) -> tuple[Any, ...]:
    items = list(size.items) if isinstance(size, SequenceValue) else [size]
    shape = tuple(
        item.size if isinstance(item, IntegerValue) else item.value if isinstance(item, Constant) else None
        for item in items
    )
    if not shape or not all(isinstance(n, SymInt) or (type(n) is int and n >= 0) for n in shape):
        raise Refused("another size")
    return shape


__all__ = ["call"]
