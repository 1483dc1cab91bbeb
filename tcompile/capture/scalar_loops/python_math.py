"""Python's ``math`` functions, ``round``, ``divmod`` and ``pow`` in scalar code.

Input: a ``Translator`` and the values of the arguments.
Output: instructions in the open block, or ``Refused``.
Why: beside ``opcodes``, which handles instructions.

Each function has Python's bits: where Python's ``math`` calls the C library, so does the instruction of the same name;
others consist of such instructions. Where Python would raise, the program replays in plain Python.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from tcompile.capture.scalar_loops.builder import Refused, V, numbers_of
from tcompile.capture.scalar_loops.rng import as_float
from tcompile.capture.scalar_loops.translator import CALLS, Translator
from tcompile.graph.ops.scalar_loop import LIBRARY, LIBRARY_OF_TWO, dtype_of

_DIGITS = range(23)  # of ``round``: the powers of ten that are floats


def _ints(t: Translator, arguments: Sequence[V], count: int) -> list[V]:
    given = numbers_of(arguments, count)
    if any(dtype_of(value.kind).kind not in "biu" for value in given):
        raise Refused("a function of ints with other arguments")
    return [V("int", t.as_ints(value.registers), value.known) for value in given]


def _of_floats(name: str, count: int, kind: str = "float") -> Callable[[Translator, list[V]], V]:
    def run(t: Translator, arguments: list[V]) -> V:
        given = numbers_of(arguments, count)
        return t.add(f"math.{name}", kind, *(as_float(t, value).register for value in given))

    return run


def _to_int(name: str) -> Callable[[Translator, list[V]], V]:
    def run(t: Translator, arguments: list[V]) -> V:
        (value,) = numbers_of(arguments, 1)
        if value.kind in ("int", "bool"):
            return V("int", t.as_ints(value.registers))
        if name == "trunc" and value.kind not in ("float", "np.float64"):
            raise Refused("math.trunc of something else than a float")
        return t.add(f"math.{name}", "int", as_float(t, value).register)

    return run


def _log(t: Translator, arguments: list[V]) -> V:
    value, *base = (as_float(t, given) for given in numbers_of(arguments, 1, 2))
    found = t.add("math.log", "float", value.register)
    return t.binary("/", found, t.add("math.log", "float", base[0].register)) if base else found


def _times(factor: float) -> Callable[[Translator, list[V]], V]:
    def run(t: Translator, arguments: list[V]) -> V:
        (value,) = numbers_of(arguments, 1)
        return t.binary("*", as_float(t, value), t.constant(factor))

    return run


def _hypot(t: Translator, arguments: list[V]) -> V:
    given = numbers_of(arguments, 1, 4)
    return t.add("math.hypot", "float", *(as_float(t, value).register for value in given))


def _dist(t: Translator, arguments: list[V]) -> V:
    if len(arguments) != 2 or any(value.kind[0] != "tuple" for value in arguments):
        raise Refused("math.dist of something else than tuples")
    one, two = (numbers_of(t.items(value), 1, 4) for value in arguments)
    if len(one) != len(two):
        raise Refused("math.dist of tuples of other lengths")
    return _hypot(t, [t.binary("-", as_float(t, a), as_float(t, b)) for a, b in zip(one, two, strict=True)])


def _is_close(t: Translator, arguments: list[V]) -> V:
    """Emits ``math.isclose`` of two finite numbers with its default tolerances."""
    a, b = (as_float(t, value) for value in numbers_of(arguments, 2))
    tolerance, infinity = t.constant(1e-9), t.constant(math.inf)
    for value in (a, b):
        t.require(t.binary("<", t.add("abs", "float", value.register), infinity))
    apart = t.add("abs", "float", t.binary("-", b, a).register)
    found = t.constant(False)
    for value in (a, b):
        within = t.binary("<=", apart, t.add("abs", "float", t.binary("*", tolerance, value).register))
        found = t.binary("|", found, within)
    return found


def _round(t: Translator, arguments: list[V]) -> V:
    value, *digits = numbers_of(arguments, 1, 2)
    if value.kind == "np.bool":
        raise Refused("a bool of NumPy's rounded")
    if not digits:
        is_float = dtype_of(value.kind).kind == "f"
        return t.add("round", "int", value.register) if is_float else V("int", t.as_ints(value.registers))
    if value.kind != "np.float64" or type(digits[0].known) is not int or digits[0].known not in _DIGITS:
        raise Refused("a number rounded to decimals")  # Python's own floats round decimal digits
    power = t.add("const", "np.float64", 10.0 ** digits[0].known)
    whole = t.add("np.rint", "np.float64", t.binary("*", value, power).register)
    return t.binary("/", whole, power)


def _divided(t: Translator, arguments: list[V]) -> V:
    a, b = numbers_of(arguments, 2)
    return t.pack([t.binary("//", a, b), t.binary("%", a, b)])


def _power(t: Translator, arguments: list[V]) -> V:
    a, b = numbers_of(arguments, 2)
    return t.binary("**", a, b)


# -- of ints, in loops -------------------------------------------------------------------------------------------------


def _repeat(
    t: Translator, start: Sequence[V], goes_on: Callable[[Sequence[V]], V], step: Callable[[Sequence[V]], Sequence[V]]
) -> list[V]:
    """Emits a loop over ints: while ``goes_on``, they become what ``step`` gives. Returns them as they are after it."""
    header, body, end = (t.new_block() for _ in range(3))
    carried = [V("int", (t.register("int"),)) for _ in start]
    header.parameters = [value.register for value in carried]
    t.block.end = ("jump", header.number, tuple(value.register for value in start))
    t.block = header
    more = goes_on(carried)
    t.block.end = ("branch", more.register, body.number, (), end.number, ())
    t.block = body
    following = step(carried)
    t.block.end = ("back", header.number, tuple(value.register for value in following))
    t.block = end
    return carried


def _handed_back(function: Callable[[Translator, list[V]], V]) -> Callable[[Translator, list[V]], V]:
    """A function whose code has several blocks: the next instruction begins one of its own."""

    def run(t: Translator, arguments: list[V]) -> V:
        value = function(t, arguments)
        t.hand_back(value)
        return value

    return run


def _gcd(t: Translator, arguments: list[V]) -> V:
    a, b = (t.add("abs", "int", value.register) for value in _ints(t, arguments, 2))
    zero = t.constant(0)
    return _repeat(t, (a, b), lambda at: t.binary("!=", at[1], zero), lambda at: (at[1], t.binary("%", *at)))[0]


def _factorial(t: Translator, arguments: list[V]) -> V:
    (n,) = _ints(t, arguments, 1)
    zero, one = t.constant(0), t.constant(1)
    t.require(t.binary(">=", n, zero))

    def step(at: Sequence[V]) -> Sequence[V]:
        return t.binary("*", *at), t.binary("-", at[1], one)

    return _repeat(t, (one, n), lambda at: t.binary(">", at[1], one), step)[0]


def _comb(t: Translator, arguments: list[V]) -> V:
    n, k = _ints(t, arguments, 2)
    zero, one = t.constant(0), t.constant(1)
    t.require(t.binary(">=", k, zero))
    t.require(t.binary(">=", n, k))
    other = t.binary("-", n, k)
    least = t.add("select", "int", t.binary("<", k, other).register, k.register, other.register)

    def step(at: Sequence[V]) -> Sequence[V]:
        found, taken = at
        following = t.binary("+", taken, one)
        return t.binary("//", t.binary("*", found, t.binary("-", n, taken)), following), following

    return _repeat(t, (one, zero), lambda at: t.binary("<", at[1], least), step)[0]


CALLS |= {
    **{id(getattr(math, name)): _of_floats(name, 1) for name in (*LIBRARY, "sqrt", "fabs")},
    **{id(getattr(math, name)): _of_floats(name, 2) for name in LIBRARY_OF_TWO},
    **{id(getattr(math, name)): _to_int(name) for name in ("floor", "ceil", "trunc")},
    **{id(getattr(math, name)): _of_floats(name, 1, "bool") for name in ("isnan", "isinf", "isfinite")},
    id(math.log): _log, id(math.radians): _times(math.pi / 180), id(math.degrees): _times(180 / math.pi),
    id(math.hypot): _hypot, id(math.dist): _dist, id(math.isclose): _is_close, id(round): _round,
    id(divmod): _divided, id(pow): _power, id(math.gcd): _handed_back(_gcd),
    id(math.factorial): _handed_back(_factorial), id(math.comb): _handed_back(_comb),
    id(math.isqrt): lambda t, arguments: t.add("math.isqrt", "int", _ints(t, arguments, 1)[0].register),
}  # fmt: skip
__all__: list[str] = []  # what others need is in the table of the translator
