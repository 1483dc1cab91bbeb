"""Random numbers in programs of typed blocks.

Enters: what is drawn, and the arguments. Leaves: instructions. What NumPy refuses is left to plain Python before
anything is drawn, which raises its own error.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from tcompile.capture.element_instructions import Instructions, Refused, V, is_number
from tcompile.graph.ops.draws import DRAWS, MOST_POISSON
from tcompile.graph.ops.element_loop import dtype_of


def draw(t: Instructions, state: int, what: str, spare: Sequence[int], arguments: Sequence[V]) -> V:
    """The number that is drawn; ``state`` is the number of the array with the generator's state.

    ``spare`` are those of the arrays of ``draws.SPARE``, where it is a RandomState. The block may be another one after.
    """
    return drawn(t, state, what, spare, parameters(t, what, arguments))


def drawn(t: Instructions, state: int, what: str, spare: Sequence[int], given: Sequence[V]) -> V:
    """A number for such ``parameters``."""
    t.accesses += 1
    family, name = what.split()
    if name.startswith("polar"):
        number = _polar(t, state, f"{family} random", *spare)
        return t.binary("+", given[0], t.binary("*", given[1], number)) if given else number
    return t.add("draw", DRAWS[name].kind, state, what, *(value.register for value in given))


def _polar(t: Instructions, state: int, uniform: str, has: int, kept: int) -> V:
    """A normal number, as RandomState makes two at a time (G. Marsaglia's polar method, 1964) and keeps one."""

    def store(array: int, value: V) -> None:
        t.block.lines.append(("store", -1, array, value.register, place))

    place = t.constant(0).register
    one, two, minus, zero = (t.constant(value) for value in (1.0, 2.0, -2.0, 0.0))
    there, again, retry, inside, made, join = (t.new_block() for _ in range(6))
    found = V("float", (t.register("float"),))
    join.parameters = [found.register]
    some = t.truth(t.binary("!=", t.add("load", "np.int32", has, place), t.constant(0)))
    t.block.end = ("branch", some.register, there.number, (), again.number, ())

    t.block = there
    number = as_float(t, t.add("load", "np.float64", kept, place))
    store(kept, zero)
    store(has, t.constant(0))
    there.end = ("jump", join.number, (number.register,))

    t.block = again
    x, y = (t.binary("-", t.binary("*", two, t.add("draw", "float", state, uniform)), one) for _ in range(2))
    square = t.binary("+", t.binary("*", x, x), t.binary("*", y, y))
    again.end = ("branch", t.binary(">=", square, one).register, retry.number, (), inside.number, ())
    retry.end = ("back", again.number, ())
    t.block = inside
    inside.end = ("branch", t.binary("==", square, zero).register, retry.number, (), made.number, ())

    t.block = made
    logarithm = t.add("math.log", "float", square.register)
    factor = t.add("math.sqrt", "float", t.binary("/", t.binary("*", minus, logarithm), square).register)
    store(kept, t.binary("*", factor, x))
    store(has, t.constant(1))
    made.end = ("jump", join.number, (t.binary("*", factor, y).register,))
    t.block = join
    return found


def parameters(t: Instructions, what: str, arguments: Sequence[V]) -> list[V]:
    """What NumPy's function is given."""
    name = what.split()[1]
    if not all(map(is_number, arguments)):
        raise Refused(f"{name} of something else than numbers")
    if name in ("integers", "randint"):
        return _bounds(t, name, arguments)
    defaults = DRAWS[name].defaults
    if len(arguments) > len(defaults) or None in defaults[len(arguments) :]:
        raise Refused(f"{name} with other arguments")
    given = [as_float(t, value) for value in arguments]
    given += [t.constant(default) for default in defaults[len(arguments) :]]
    if name == "uniform":
        given[1] = t.binary("-", given[1], given[0])
        t.require(t.add("<=", "bool", given[1].register, t.constant(sys.float_info.max).register))
    if name == "poisson":
        t.require(t.add("<=", "bool", given[0].register, t.constant(MOST_POISSON).register))
    for place in DRAWS[name].positive:
        t.require(t.add(">", "bool", given[place].register, t.constant(0.0).register))
    return given


def _bounds(t: Instructions, name: str, arguments: Sequence[V]) -> list[V]:
    """Of whole numbers, the least one and the one behind the last."""
    given = [t.constant(0), *arguments] if len(arguments) == 1 else list(arguments)
    if len(given) != 2 or not all(dtype_of(value.kind).kind in "iu" for value in given):
        raise Refused(f"{name} of something else than ints")
    given = [V("int", t.as_ints(value.registers)) for value in given]
    t.require(t.add("<", "bool", given[0].register, given[1].register))
    return given


def fill(
    t: Instructions, target: int, axes: int, state: int, what: str, spare: Sequence[int], arguments: Sequence[V]
) -> None:
    """Ends a program with a loop for each axis of an array, all of whose elements are drawn, one after the other."""
    start = t.block
    given = parameters(t, what, arguments)
    first, once = t.constant(0).register, t.constant(1).register
    sizes = [t.add("size", "int", target, axis).register for axis in range(axes)]
    places = [t.register("int") for _ in range(axes)]
    headers = [t.new_block() for _ in range(axes)]
    body, end = t.new_block(), t.new_block()
    start.end = ("jump", headers[0].number, (first,))
    for axis, header in enumerate(headers):
        header.parameters = [places[axis]]
        t.block = header
        more = t.add("more", "bool", places[axis], sizes[axis], once).register
        inner = (headers[axis + 1].number, (first,)) if axis + 1 < axes else (body.number, ())
        outer = _next(t, places[axis - 1], once, headers[axis - 1].number) if axis else end.number
        header.end = ("branch", more, *inner, outer, ())
    t.block = body
    number = drawn(t, state, what, spare, given)
    last = t.block
    last.lines.append(("store", -1, target, number.register, *places))
    last.end = ("jump", _next(t, places[-1], once, headers[-1].number), ())
    end.end = ("exit", ())


def _next(t: Instructions, place: int, once: int, header: int) -> int:
    """A block that goes on with the next round of a loop."""
    t.block = block = t.new_block()
    block.end = ("back", header, (t.add("step", "int", place, once).register,))
    return block.number


def as_float(t: Instructions, value: V) -> V:
    """``float(value)``."""
    return value if value.kind == "float" else t.add("float", "float", value.register)


__all__ = ["as_float", "draw", "fill"]
