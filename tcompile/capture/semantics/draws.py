"""Random numbers that are drawn in a loop that becomes a node, and large draws anywhere.

Input: a generator's method, and captured arguments.
Output: the number or array of the method, drawn by a scalar loop from the generator's state.
Why: outside of loops, NumPy's own call draws a few numbers faster than a graph loads and stores the state. So plain
Python draws them, unless a break would be an error.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from tcompile.capture.scalar_loops.builder import Instructions, Refused, V
from tcompile.capture.scalar_loops.node import append, number_of, operand_of
from tcompile.capture.scalar_loops.rng import Drawing, draw, fill, in_order
from tcompile.capture.values.array import ArrayContext, ArrayValue
from tcompile.capture.values.base import Value
from tcompile.capture.values.constant import Constant, IntegerValue, integer
from tcompile.capture.values.container import SequenceValue
from tcompile.frontends.base import CannotCapture, Traced
from tcompile.graph import SymInt
from tcompile.graph.ops.draws import DRAWS, is_legacy, is_plain, is_python_generator, method_of
from tcompile.graph.ops.scalar_loop import dtype_of

if TYPE_CHECKING:
    from tcompile.capture.values.random_generator import RandomGeneratorValue


def call(
    tx: ArrayContext, owner: RandomGeneratorValue, name: str, args: Sequence[Value], kwargs: Mapping[str, Value]
) -> Value:
    """The result of the method. Raises CannotCapture for draws that are left to plain Python."""
    if name == "choice" and not (is_legacy(owner.value) or is_python_generator(owner.value)):
        return _choice(tx, owner, args, kwargs)
    row = method_of(owner.python_type, name)
    if row is None or owner.family is None:
        raise CannotCapture("random-numbers", f"{owner.source.text}.{name}")
    try:
        size, given = (None, args) if owner.family.is_pythons else _size(row, name, args, kwargs)
        shape = None if size is None or size.is_none else _shape(size)
        if not (tx.open_loops or tx.options.max_unrolled is None or _pays(owner, row, shape)):
            raise CannotCapture("random-numbers", f"{owner.source.text}.{name}")
        arguments = in_order(DRAWS[row], given, {key: kwargs[key] for key in kwargs if key != "size"}, Constant)
        return _drawn(tx, owner, row, arguments, shape)
    except Refused as reason:
        raise CannotCapture("random-numbers", f"{owner.source.text}.{name} ({reason})") from reason


def _choice(tx: ArrayContext, owner: RandomGeneratorValue, args: Sequence[Value], kwargs: Mapping[str, Value]) -> Value:
    """Elements of an array, or ints below a bound, drawn with replacement: positions are drawn."""
    given = {**dict(zip(("a", "size", "replace", "p", "axis"), args, strict=False)), **kwargs}
    source = given.pop("a", None)
    size = given.pop("size", None)
    usual = {"replace": True, "p": None, "axis": 0, "shuffle": True}
    others = not all(name in usual and _is(value, usual[name]) for name, value in given.items())
    if others or len(args) > 5 or size is None or size.is_none or source is None:
        raise CannotCapture("random-numbers", f"{owner.source.text}.choice")
    if isinstance(source, ArrayValue) and source.traced.type.shape:
        count = integer(source.traced.type.shape[0])
        places = call(tx, owner, "integers", [Constant(0), count], {"size": size})
        return source.method(tx, "take", [places], {"axis": Constant(0)})
    if issubclass(source.python_type, int) and source.python_type is not bool:
        return call(tx, owner, "integers", [Constant(0), source], {"size": size})
    raise CannotCapture("random-numbers", f"{owner.source.text}.choice of {source.describe()}")


def _is(value: Value, usual: object) -> bool:
    return isinstance(value, Constant) and type(value.value) is type(usual) and value.value == usual


def _pays(owner: RandomGeneratorValue, row: str, shape: Sequence[Any] | None) -> bool:
    """Whether a draw outside of loops belongs in the graph, because NumPy's own call is no faster.

    A RandomState's state, and the data beside it, are too large to load and store. For draws of little more than the
    generator's bits, the graph is faster only where it calls no functions for the bits.
    """
    assert owner.family is not None
    what = DRAWS[row]
    if shape is None or not what.many or is_legacy(owner.value):
        return False
    if not (what.function or is_plain(owner.family.name)):
        return False
    return any(isinstance(n, SymInt) for n in shape) or math.prod(shape) >= what.many


def _size(
    row: str, name: str, args: Sequence[Value], kwargs: Mapping[str, Value]
) -> tuple[Value | None, Sequence[Value]]:
    """The size argument, and the other positional arguments."""
    if name in ("rand", "randn"):
        return (SequenceValue(list(args), tuple) if args else None), ()
    count = len(DRAWS[row].parameters)
    if len(args) > count + 1 or (len(args) > count and "size" in kwargs):
        raise Refused("other arguments")
    return (args[count] if len(args) > count else kwargs.get("size")), args[:count]


def _drawn(
    tx: ArrayContext, owner: RandomGeneratorValue, row: str, arguments: Sequence[Value], shape: tuple[Any, ...] | None
) -> Value:
    """The number, or the array of that shape."""
    assert owner.family is not None
    t = Instructions()
    t.block = t.new_block()
    given = [_number(tx, t, value) for value in arguments]
    if DRAWS[row].keeps and owner.family.is_pythons:
        raise Refused("it keeps a number in an attribute")
    arrays = [owner.state(tx), *(owner.spare(tx) if DRAWS[row].keeps else ())]
    what = Drawing(0, owner.family.name, row, range(1, len(arrays)))
    kind = what.row.kind
    if shape is None:
        number = draw(t, what, given)
        t.block.end = ("exit", (number.register,))
        (node,) = append(tx, t, arrays, [number.kind], row)
        return number_of(tx, number.kind, node)
    made = tx.builder.op("empty", shape=shape, dtype=dtype_of(kind).name)
    array = tx.new_array(Traced(made))
    fill(t, len(arrays), len(shape), what, given)
    append(tx, t, [*arrays, array], [], row)
    return array


def _number(tx: ArrayContext, t: Instructions, value: Value) -> V:
    if isinstance(value, Constant):
        return t.constant(value.value)
    operand = operand_of(tx, value)
    if operand is None:
        raise Refused(f"{value.describe()} is no number")
    return t.operand(*operand)


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
