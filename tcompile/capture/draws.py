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
from tcompile.graph.ops.draws import DRAWS, method_of
from tcompile.graph.ops.element_loop import dtype_of

if TYPE_CHECKING:
    from tcompile.capture.state import Capture
    from tcompile.capture.values.random_generator import RandomGeneratorValue

# The parameters of methods whose names are not NumPy's for those of ``DRAWS``, in their order; ``size`` follows.
_NAMES: Mapping[str, tuple[str, ...]] = {
    "uniform": ("low", "high"), "integers": ("low", "high"), "randint": ("low", "high"), "normal": ("loc", "scale"),
    "exponential": ("scale",), "standard_gamma": ("shape",), "gamma": ("shape", "scale"), "beta": ("a", "b"),
    "chisquare": ("df",), "laplace": ("loc", "scale"), "logistic": ("loc", "scale"), "gumbel": ("loc", "scale"),
    "lognormal": ("mean", "sigma"), "rayleigh": ("scale",), "weibull": ("a",), "pareto": ("a",), "poisson": ("lam",),
}  # fmt: skip


def call(
    tx: Capture, owner: RandomGeneratorValue, name: str, args: Sequence[Value], kwargs: Mapping[str, Value]
) -> Value:
    """What the method gives. Raises CannotCapture for what is plain Python's."""
    row = method_of(owner.python_type, name)
    if row is None or owner.family is None or not (tx.open_loops or tx.options.max_unrolled is None):
        raise CannotCapture("random-numbers", f"{owner.source.text}.{name}")
    try:
        arguments, shape = _bound(row, _NAMES.get(row, ()), name, args, kwargs)
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
    state, kind = owner.state(tx), DRAWS[what.split()[1]].kind
    if shape is None:
        number = element_draws.draw(t, 0, what, given)
        t.block.end = ("exit", (number.register,))
        (node,) = append(tx, t, [state], numbers, [kind])
        return number_of(tx, kind, node)
    made = tx.builder.op("full", shape=shape, fill_value=0, dtype=dtype_of(kind).name)
    array = tx.new_array(Traced(made), tx.frontends[0])
    element_draws.fill(t, 1, len(shape), 0, what, given)
    append(tx, t, [state, array], numbers, [])
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
    row: str, names: Sequence[str], name: str, args: Sequence[Value], kwargs: Mapping[str, Value]
) -> tuple[list[Value], tuple[Any, ...] | None]:
    """The parameters of the draw, and the shape that is asked for; None where that is one number."""
    if name == "rand":
        return [], _shape(SequenceValue(list(args), tuple)) if args else None
    names = (*names, "size")
    given = dict(zip(names, args, strict=False))
    if len(args) > len(names) or not set(kwargs) <= set(names) or set(kwargs) & set(given):
        raise Refused("other arguments")
    given |= kwargs
    size = given.pop("size", None)
    defaults = DRAWS[row].defaults or (None,) * (len(names) - 1)
    found: list[Value] = []
    for place, parameter in enumerate(names[:-1]):
        value = given.get(parameter)
        if value is None and defaults[place] is not None:
            value = Constant(defaults[place])
        if value is not None and not value.is_none:
            found.append(value)
        elif place < 1 or defaults[place] is not None:
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
