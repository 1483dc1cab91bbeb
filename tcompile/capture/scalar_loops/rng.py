"""Random numbers in programs of typed blocks.

Input: the distribution, and the arguments.
Output: instructions.
Why: loops draw numbers. Arguments that NumPy refuses are replayed before anything is drawn, so plain Python raises its
own error.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TypeVar

from tcompile.capture.scalar_loops.builder import Instructions, Refused, V, is_number
from tcompile.graph.ops.draws import DRAWS, MOST_POISSON, Draw
from tcompile.graph.ops.scalar_loop import dtype_of
from tcompile.records import dataclass

T = TypeVar("T")


@dataclass(frozen=True)
class Drawing:
    """A draw: ``state`` is the number of the array with the state of a bit generator of a ``family``, ``spare`` are
    those of the arrays of ``draws.SPARE``, where it keeps a number; ``name`` is a row of ``DRAWS``.
    """

    state: int
    family: str
    name: str
    spare: Sequence[int] = ()

    @property
    def row(self) -> Draw:
        """Returns its table row."""
        return DRAWS[self.name]


def in_order(row: Draw, args: Sequence[T], named: Mapping[str, T], default: Callable[[float], T]) -> list[T]:
    """Returns the arguments of a draw by position; ``default`` makes missing ones."""
    given = {**dict(zip(row.parameters, args, strict=False)), **named}
    if len(args) > len(row.parameters) or not set(named) <= set(row.parameters[len(args) :]):
        raise Refused("a draw with other arguments")
    found = []
    for parameter, usual in zip(row.parameters, row.defaults, strict=True):
        if parameter in given:
            found.append(given[parameter])
        elif usual is not None:
            found.append(default(usual))
        elif parameter not in ("high", "stop"):  # without it the other bound has another meaning
            raise Refused(f"a draw without {parameter}")
    return found


def draw(t: Instructions, what: Drawing, arguments: Sequence[V]) -> V:
    """Emits the drawn number. The open block may change."""
    if what.name in _PYTHONS:
        if not all(map(is_number, arguments)):
            raise Refused(f"{what.name} of something else than numbers")
        t.accesses += 1
        return _PYTHONS[what.name](t, what, list(arguments))
    return drawn(t, what, parameters(t, what.name, arguments))


def drawn(t: Instructions, what: Drawing, given: Sequence[V]) -> V:
    """Emits a number for these ``parameters``."""
    t.accesses += 1
    if what.row.keeps:
        number = _one_of_two(t, what, _polar)
        return t.binary("+", given[0], t.binary("*", given[1], number)) if given else number
    return t.add("draw", what.row.kind, what.state, what.family, what.name, *(value.register for value in given))


def _one_of_two(t: Instructions, what: Drawing, make: Callable[[Instructions, Drawing], tuple[V, V]]) -> V:
    """Emits a normal number of a generator that makes two at a time: the one that it returns, and one that it keeps."""
    has, kept = what.spare

    def store(array: int, value: V) -> None:
        t.block.lines.append(("store", -1, array, value.register, place))

    place = t.constant(0).register
    zero = t.constant(0.0)
    there, again, join = (t.new_block() for _ in range(3))
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
    number, other = make(t, what)
    store(kept, other)
    store(has, t.constant(1))
    t.block.end = ("jump", join.number, (number.register,))
    t.block = join
    return found


def _polar(t: Instructions, what: Drawing) -> tuple[V, V]:
    """RandomState's two normal numbers (G. Marsaglia's polar method, 1964)."""
    one, two, minus, zero = (t.constant(value) for value in (1.0, 2.0, -2.0, 0.0))
    again, retry, inside, made = (t.new_block() for _ in range(4))
    t.block.end = ("jump", again.number, ())
    t.block = again
    x, y = (t.binary("-", t.binary("*", two, _random(t, what)), one) for _ in range(2))
    square = t.binary("+", t.binary("*", x, x), t.binary("*", y, y))
    again.end = ("branch", t.binary(">=", square, one).register, retry.number, (), inside.number, ())
    retry.end = ("back", again.number, ())
    t.block = inside
    inside.end = ("branch", t.binary("==", square, zero).register, retry.number, (), made.number, ())
    t.block = made
    factor = t.add("math.sqrt", "float", t.binary("/", t.binary("*", minus, _log(t, square)), square).register)
    return t.binary("*", factor, y), t.binary("*", factor, x)


def _gauss(t: Instructions, what: Drawing) -> tuple[V, V]:
    """The two of ``random.gauss`` (G. Box and M. Muller's method, 1958)."""
    angle = t.binary("*", _random(t, what), t.constant(2.0 * math.pi))
    rest = t.binary("-", t.constant(1.0), _random(t, what))
    radius = t.add("math.sqrt", "float", t.binary("*", t.constant(-2.0), _log(t, rest)).register)
    sine, cosine = (t.add(name, "float", angle.register) for name in ("math.sin", "math.cos"))
    return t.binary("*", cosine, radius), t.binary("*", sine, radius)


def parameters(t: Instructions, name: str, arguments: Sequence[V]) -> list[V]:
    """Returns the arguments for NumPy's function, in their order."""
    if not all(map(is_number, arguments)):
        raise Refused(f"{name} of something else than numbers")
    if name in ("integers", "randint"):
        return _bounds(t, name, arguments)
    if name == "below":
        return _bounds(t, name, arguments)[1:]
    given = [as_float(t, value) for value in arguments]
    if name == "uniform":
        given[1] = t.binary("-", given[1], given[0])
        t.require(t.add("<=", "bool", given[1].register, t.constant(sys.float_info.max).register))
    if name == "poisson":
        t.require(t.add("<=", "bool", given[0].register, t.constant(MOST_POISSON).register))
    for place in DRAWS[name].positive:
        t.require(t.add(">", "bool", given[place].register, t.constant(0.0).register))
    return given


def _bounds(t: Instructions, name: str, arguments: Sequence[V]) -> list[V]:
    """Returns the bounds of integers: the least, and one past the last."""
    given = [t.constant(0), *arguments] if len(arguments) == 1 else list(arguments)
    if not all(dtype_of(value.kind).kind in "iu" for value in given):
        raise Refused(f"{name} of something else than ints")
    given = [V("int", t.as_ints(value.registers)) for value in given]
    t.require(t.add("<", "bool", given[0].register, given[1].register))
    return given


def below(t: Instructions, what: Drawing, count: V) -> V:
    """Emits a Python int from 0 on that is below ``count``. Where that is not positive, the program replays."""
    return drawn(t, replace(what, name="below"), parameters(t, "below", [count]))


def _random(t: Instructions, what: Drawing) -> V:
    return drawn(t, replace(what, name="random"), ())


def _uniform(t: Instructions, what: Drawing, given: list[V]) -> V:
    a, b = given
    width = t.binary("-", b, a)
    return t.binary("+", a, t.binary("*", width, _random(t, what)))


def _randint(t: Instructions, what: Drawing, given: list[V]) -> V:
    low, high = given
    return _randrange(t, what, [low, t.binary("+", high, t.constant(1))])


def _randrange(t: Instructions, what: Drawing, given: list[V]) -> V:
    if not all(dtype_of(value.kind).kind in "iub" for value in given):
        raise Refused("a range of something else than ints")
    ints = [V("int", t.as_ints(value.registers)) for value in given]
    if len(ints) == 1:
        return below(t, what, ints[0])
    low, high = ints
    return t.binary("+", low, below(t, what, t.binary("-", high, low)))


def _expovariate(t: Instructions, what: Drawing, given: list[V]) -> V:
    logarithm = _log(t, t.binary("-", t.constant(1.0), _random(t, what)))
    return t.binary("/", t.add("negative", "float", logarithm.register), given[0])


def _normalvariate(t: Instructions, what: Drawing, given: list[V]) -> V:
    """By A. J. Kinderman and J. F. Monahan's ratio of uniform numbers (1977)."""
    mean, deviation = given
    one, half, four, factor = (t.constant(value) for value in (1.0, 0.5, 4.0, 4 * math.exp(-0.5) / math.sqrt(2.0)))
    again, retry, made = (t.new_block() for _ in range(3))
    t.block.end = ("jump", again.number, ())
    t.block = again
    first = _random(t, what)
    second = t.binary("-", one, _random(t, what))
    number = t.binary("/", t.binary("*", factor, t.binary("-", first, half)), second)
    quarter = t.binary("/", t.binary("*", number, number), four)
    inside = t.binary("<=", quarter, t.add("negative", "float", _log(t, second).register))
    t.block.end = ("branch", inside.register, made.number, (), retry.number, ())
    retry.end = ("back", again.number, ())
    t.block = made
    return t.binary("+", mean, t.binary("*", number, deviation))


def _scaled_gauss(t: Instructions, what: Drawing, given: list[V]) -> V:
    mean, deviation = given
    return t.binary("+", mean, t.binary("*", _one_of_two(t, what, _gauss), deviation))


def _log(t: Instructions, number: V) -> V:
    return t.add("math.log", "float", number.register)


# Python's own draws, as its library makes them of others.
_PYTHONS: Mapping[str, Callable[[Instructions, Drawing, list[V]], V]] = {
    "python_uniform": _uniform, "python_randint": _randint, "python_randrange": _randrange,
    "python_expovariate": _expovariate, "python_normalvariate": _normalvariate,
    "python_gauss": _scaled_gauss,
}  # fmt: skip


def fill(t: Instructions, target: int, axes: int, what: Drawing, arguments: Sequence[V]) -> None:
    """Ends a program with a loop for each axis of an array, all of whose elements are drawn in order."""
    start = t.block
    given = parameters(t, what.name, arguments)
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
    number = drawn(t, what, given)
    last = t.block
    last.lines.append(("store", -1, target, number.register, *places))
    last.end = ("jump", _next(t, places[-1], once, headers[-1].number), ())
    end.end = ("exit", ())


def _next(t: Instructions, place: int, once: int, header: int) -> int:
    """Returns a block that continues with the next iteration of a loop."""
    t.block = block = t.new_block()
    block.end = ("back", header, (t.add("step", "int", place, once).register,))
    return block.number


def as_float(t: Instructions, value: V) -> V:
    """``float(value)``."""
    return value if value.kind == "float" else t.add("float", "float", value.register)


__all__ = ["Drawing", "as_float", "below", "draw", "fill", "in_order"]
