"""Universal functions and reductions of array libraries in scalar code.

Input: a ``Translator`` and the values of the arguments.
Output: instructions in the open block, or ``Refused``.
Why: beside ``opcodes``, which handles instructions. A frontend says which of its functions is which instruction.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tcompile.capture.scalar_loops import slices
from tcompile.capture.scalar_loops.builder import Refused, V, numbers_of
from tcompile.capture.scalar_loops.rng import as_float
from tcompile.capture.scalar_loops.translator import LIBRARY_CALLS, Translator
from tcompile.graph.dtypes import named
from tcompile.graph.ops.scalar_loop import UFUNCS, common, operand_count


def _root(t: Translator, arguments: list[V]) -> V:
    (value,) = numbers_of(arguments)
    if value.kind == "int":  # NumPy takes no root of an int beyond 64 bits
        value = t.add("np.int64", "np.int64", value.register)
    if value.kind in ("float", "np.int64", "np.int32", "np.uint32"):
        value = t.add("np.float64", "np.float64", as_float(t, value).register)
    if value.kind not in ("np.float64", "np.float32"):
        raise Refused(f"np.sqrt of {value.kind}")
    return t.add("np.sqrt", value.kind, value.register)


def _magnitude(t: Translator, arguments: list[V]) -> V:
    (value,) = numbers_of(arguments)
    if value.kind == "float":
        value = t.add("np.float64", "np.float64", value.register)
    if value.kind not in ("np.float64", "np.float32"):
        raise Refused(f"np.abs of {value.kind}")
    return t.add("abs", value.kind, value.register)


def _ufunc(name: str) -> Callable[[Translator, list[V]], V]:
    """Emits a ufunc of floats; for integers some give integers, or narrower floats."""
    whole = () if name in ("floor", "ceil", "trunc", "rint") else ("int", "np.int64", "np.int32", "np.uint32")
    count = operand_count(name)

    def run(t: Translator, arguments: list[V]) -> V:
        floats = sum(value.kind in ("float", "np.float64") for value in arguments)
        known = all(value.kind in ("float", "np.float64", *whole) for value in arguments)
        if len(arguments) != count or not known or (count > 1 and not floats):
            raise Refused(f"np.{name} with other arguments")
        return t.add(f"np.{name}", "np.float64", *(as_float(t, value).register for value in arguments))

    return run


def _float64(t: Translator, arguments: Sequence[V]) -> V:
    (value,) = numbers_of(arguments)
    if value.kind not in ("float", "np.float64"):
        raise Refused("a ufunc of something else than a float64")
    return value if value.kind == "np.float64" else t.add("np.float64", "np.float64", value.register)


def _square(t: Translator, arguments: list[V]) -> V:
    value = _float64(t, arguments)
    return t.binary("*", value, value)


def _sign(t: Translator, arguments: list[V]) -> V:
    found = value = _float64(t, arguments)
    zero = t.add("const", "np.float64", 0.0)
    for sign, other in ((">", 1.0), ("<", -1.0), ("==", 0.0)):
        holds, known = t.truth(t.binary(sign, value, zero)), t.add("const", "np.float64", other)
        found = t.add("select", "np.float64", holds.register, known.register, found.register)
    return found


def _size_is(sign: str) -> Callable[[Translator, list[V]], V]:
    """A comparison of a number's size with infinity."""

    def run(t: Translator, arguments: list[V]) -> V:
        size = t.add("abs", "np.float64", _float64(t, arguments).register)
        return t.binary(sign, size, t.add("const", "np.float64", float("inf")))

    return run


def _is_nan(t: Translator, arguments: list[V]) -> V:
    value = _float64(t, arguments)
    return t.binary("!=", value, value)


def _of_vector(function: Callable[..., V], count: int) -> Callable[[Translator, list[V]], V]:
    def run(t: Translator, arguments: list[V]) -> V:
        if len(arguments) != count or not all(map(slices.is_vector, arguments)):
            raise Refused("a reduction of something else than a slice")
        return function(t, *arguments)

    return run


def _scalar(name: str) -> Callable[[Translator, list[V]], V]:
    kind = f"np.{name}"

    def run(t: Translator, arguments: list[V]) -> V:
        (value,) = numbers_of(arguments)
        to = named(name)
        if value.kind == kind:
            return value
        exact = common(value.kind, kind) == to if to.kind == "f" else value.kind in ("int", "bool")
        if not exact:
            raise Refused(f"np.{name} of {value.kind}")
        return t.add(kind, kind, value.register)

    return run


LIBRARY_CALLS |= {
    "np.sqrt": _root, "np.absolute": _magnitude, "np.fabs": _magnitude,
    "np.square": _square, "np.sign": _sign, "np.isnan": _is_nan, "np.isinf": _size_is("=="),
    "np.sum": _of_vector(slices.sum_of, 1), "np.dot": _of_vector(slices.product, 2),
    "np.mean": _of_vector(lambda t, value: slices.sum_of(t, value, is_mean=True), 1),
    "np.isfinite": _size_is("<"), "np.float64": _scalar("float64"), "np.int64": _scalar("int64"),
    **{f"np.{name}": _ufunc(name) for name in UFUNCS},
}  # fmt: skip
__all__: list[str] = []  # what others need is in the table of the translator
