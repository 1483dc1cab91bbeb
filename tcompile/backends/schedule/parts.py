"""Numbers that machines do not compute with: complex and half-precision operations in terms of operations on floats.

Input: an operation of the op table with the kernel values it works on. Output: kernel values of machine types. A
complex value is a pair of floats that lie beside one another in memory; half precision is converted to float32,
computed, and rounded after each operation, as NumPy does. Exists so that no code generator knows arithmetic on such
numbers: it loads and stores them, takes pairs apart and puts them together (``part`` and ``pair``), and converts
(``astype``). The order of the arithmetic is NumPy's, so that results have its bits and raise its flags.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import TypeAlias

import numpy as np

from tcompile.backends.schedule.kernel import KernelValue
from tcompile.graph import Node
from tcompile.graph.dtypes import DType

BOOL = np.dtype("bool")
HALF, SINGLE, DOUBLE = np.dtype("float16"), np.dtype("float32"), np.dtype("float64")
PARTS: dict[DType, DType] = {np.dtype("complex64"): SINGLE, np.dtype("complex128"): DOUBLE}

Scalar: TypeAlias = "KernelValue | bool | int | float | complex"
Real: TypeAlias = "KernelValue | bool | int | float"
Complex: TypeAlias = tuple[Real, Real]


def machine_dtype(dtype: DType) -> DType:
    """The dtype in which numbers of ``dtype`` are computed: of a complex number, that of its parts."""
    return SINGLE if dtype == HALF else PARTS.get(dtype, dtype)


def number_dtype(dtype: DType) -> DType:
    """The dtype in which a number known at run time only comes to operands of ``dtype``: it is rounded once."""
    return DOUBLE if dtype == HALF else machine_dtype(dtype)


@cache
def fused_products() -> bool:
    """Whether this NumPy, on this processor, fuses a multiplication and an addition in complex products."""
    x, y = np.full(64, 1 + 2.0**-30 + 1j), np.full(64, 1 - 2.0**-30 + 1j)
    return bool((x * y).real[0] != 0)


class PartWriter:
    """Writes operations on complex and half-precision values. ``add`` takes each value that is made."""

    def __init__(self, add: Callable[[KernelValue], KernelValue]) -> None:
        self._add = add
        self._node: Node | None = None
        self._known: dict[tuple[KernelValue, object], KernelValue] = {}

    # -- what lowering asks for -----------------------------------------------------------------------------------
    def apply(self, node: Node, name: str, operands: list[Scalar], result: DType, operand: DType) -> KernelValue:
        """The operation ``name``; ``operand`` is the dtype of its operands, those that are bare numbers included."""
        self._node = node
        if "c" in (operand.kind, result.kind):
            return self._complex(name, operands, result, operand)
        if HALF in (operand, result):
            if operand == HALF and name != "astype":
                operands = [self._half_number(x) for x in operands]
            return self._half(name, operands, result, operand)
        return self._op(name, operands, result, operand)

    def part(self, value: KernelValue, index: int) -> Real:
        """The real (0) or imaginary (1) part of a complex value."""
        if value.op == "pair":
            found = value.operands[index]
            assert not isinstance(found, complex)
            return found
        key = (value, index)
        if key not in self._known:
            taken = KernelValue("part", (value,), PARTS[value.dtype], value.axes, self._node, {"index": index})
            self._known[key] = self._add(taken)
        return self._known[key]

    def pair(self, node: Node, re: Real, im: Real, dtype: DType) -> KernelValue:
        """The complex value of two parts."""
        axes = frozenset().union(*(x.axes for x in (re, im) if isinstance(x, KernelValue)))
        return self._add(KernelValue("pair", (re, im), dtype, axes, node, {"operand_dtype": PARTS[dtype]}))

    def reduce(self, node: Node, operand: KernelValue, axes: frozenset[int]) -> KernelValue:
        """A reduction: of complex numbers, the sums of both parts."""
        self._node = node

        def over(value: Real, dtype: DType) -> KernelValue:
            if not isinstance(value, KernelValue):
                value = self._add(KernelValue("constant", (value,), dtype, frozenset(), node))
            return self._add(KernelValue("reduce", (value,), dtype, axes, node, {"op": node.op.name}))

        dtype = machine_dtype(operand.dtype)
        if operand.dtype in PARTS:
            re, im = (over(self.part(operand, index), dtype) for index in (0, 1))
            return self.pair(node, re, im, operand.dtype)
        if operand.dtype == HALF:
            return self._op("astype", [over(self._wide(operand), dtype)], HALF, dtype)
        return over(operand, dtype)

    def arithmetic(self, node: Node, dtype: DType) -> Arithmetic:
        """What applies operations for ``node`` to operands of a machine's dtype."""
        self._node = node
        return Arithmetic(self._op, dtype)

    def product(
        self, node: Node, factors: list[KernelValue], total: KernelValue | None, dtype: DType, fused: bool
    ) -> KernelValue:
        """``total`` plus the product of two factors; ``fused``: rounded once, where the processor can."""
        if total is not None and fused and dtype in (SINGLE, DOUBLE) and fused_products():
            return self.apply(node, "fma", [*factors, total], dtype, dtype)
        made = self.apply(node, "multiply", list(factors), dtype, dtype)
        if total is None and dtype.kind in "iu":
            return made
        return self.apply(node, "add", [made, 0.0 if total is None else total], dtype, dtype)

    def finite(self, node: Node, value: KernelValue) -> KernelValue:
        """A value that is left to NumPy where it is infinite or a NaN."""
        apply = self.arithmetic(node, machine_dtype(value.dtype))
        if value.dtype not in PARTS:
            return apply("finite", value)
        re, im = (apply("finite", part) for part in self._split(value))
        return self.pair(node, re, im, value.dtype)

    # -- making values --------------------------------------------------------------------------------------------
    def _op(self, name: str, operands: list[Scalar], result: DType, operand: DType) -> KernelValue:
        axes = frozenset().union(*(x.axes for x in operands if isinstance(x, KernelValue)))
        plain = tuple(x for x in operands if not isinstance(x, complex))
        assert len(plain) == len(operands)
        return self._add(KernelValue(name, plain, result, axes, self._node, {"operand_dtype": operand}))

    # -- half precision -------------------------------------------------------------------------------------------
    def _wide(self, value: Scalar) -> Real:
        """A half-precision operand as float32."""
        assert not isinstance(value, complex)
        if not isinstance(value, KernelValue):
            return float(np.float16(value))
        if value.dtype != HALF:
            return value
        key = (value, SINGLE)
        if key not in self._known:
            self._known[key] = self._op("astype", [value], SINGLE, HALF)
        return self._known[key]

    def _half_number(self, value: Scalar) -> Scalar:
        """An operand, where it is a number known at run time only, in half precision."""
        known = not isinstance(value, KernelValue) or value.dtype != DOUBLE
        return value if known else self._op("astype", [value], HALF, DOUBLE)

    def _half(self, name: str, operands: list[Scalar], result: DType, operand: DType) -> KernelValue:
        if name == "where":  # moves elements as they are
            return self._op(name, operands, result, operand)
        if name == "astype" and operand != HALF:
            if operand.kind != "f":  # integers go by way of float32
                operands, operand = [self._op("astype", operands, SINGLE, operand)], SINGLE
            return self._op("astype", operands, HALF, operand)
        wide_operands: list[Scalar] = [self._wide(x) for x in operands]
        if name == "astype":
            (wide,) = wide_operands
            assert isinstance(wide, KernelValue)
            return wide if result == SINGLE else self._op("astype", [wide], result, SINGLE)
        if name in _FIRST_WINS:
            return self._op("where", [self._first_wins(name, wide_operands), *operands], HALF, HALF)
        computed = self._op(name, wide_operands, SINGLE if result == HALF else result, SINGLE)
        return self._op("astype", [computed], HALF, SINGLE) if result == HALF else computed

    def _first_wins(self, name: str, operands: list[Scalar]) -> KernelValue:
        """Whether an extremum is the first operand: NumPy's choice for half precision, where equal zeros are."""
        sign, nan = _FIRST_WINS[name]
        better = self._op(sign, operands, BOOL, SINGLE)
        return self._op("logical_or", [better, self._op("isnan", [operands[nan]], BOOL, SINGLE)], BOOL, BOOL)

    # -- complex numbers ------------------------------------------------------------------------------------------
    def _split(self, value: Scalar) -> Complex:
        if isinstance(value, KernelValue):
            return (self.part(value, 0), self.part(value, 1)) if value.dtype in PARTS else (value, 0.0)
        return complex(value).real, complex(value).imag

    def _complex(self, name: str, operands: list[Scalar], result: DType, operand: DType) -> KernelValue:
        node = self._node
        assert node is not None
        if name == "astype":
            return self._cast(operands[0], result, operand)
        o = Arithmetic(self._op, PARTS[operand])
        if name == "where":
            condition, *branches = operands
            (a, b), (c, d) = map(self._split, branches)
            return self.pair(node, o("where", condition, a, c), o("where", condition, b, d), result)
        found = COMPLEX[name](o, *map(self._split, operands))
        return self.pair(node, *found, result) if isinstance(found, tuple) else found

    def _cast(self, value: Scalar, result: DType, operand: DType) -> KernelValue:
        node = self._node
        assert node is not None
        if operand not in PARTS:
            assert isinstance(value, KernelValue)
            if operand != PARTS[result]:
                value = self.apply(node, "astype", [value], PARTS[result], operand)
            return self.pair(node, value, 0.0, result)
        re, im = self._split(value)
        if result == BOOL:
            return _truth(Arithmetic(self._op, PARTS[operand]), (re, im))
        source, target = PARTS[operand], PARTS[result]
        if source == target:
            return self.pair(node, re, im, result)
        both = [self._op("astype", [x], target, source) if isinstance(x, KernelValue) else x for x in (re, im)]
        return self.pair(node, both[0], both[1], result)


class Arithmetic:
    """Operations on the parts of complex numbers: ``o("add", a, b)``."""

    def __init__(self, op: Callable[[str, list[Scalar], DType, DType], KernelValue], dtype: DType) -> None:
        self._op, self._dtype = op, dtype

    def __call__(self, name: str, *operands: Scalar) -> KernelValue:
        """One operation; predicates give booleans."""
        if name in _ON_BOOLEANS:
            return self._op(name, list(operands), BOOL, BOOL)
        predicate = name.removeprefix("signalling_") in _PREDICATES
        return self._op(name, list(operands), BOOL if predicate else self._dtype, self._dtype)


_ON_BOOLEANS = frozenset({"logical_and", "logical_or", "logical_xor", "logical_not"})
_PREDICATES = frozenset({
    "equal", "not_equal", "less", "less_equal", "greater", "greater_equal", "isnan", "isinf", "isfinite",
})  # fmt: skip
# Which comparison, and which operand's NaN, let the first operand of an extremum win.
_FIRST_WINS = {
    "maximum": ("greater_equal", 0),
    "minimum": ("less_equal", 0),
    "fmax": ("greater_equal", 1),
    "fmin": ("less_equal", 1),
}


def _truth(o: Arithmetic, a: Complex) -> KernelValue:
    return o("logical_or", o("not_equal", a[0], 0.0), o("not_equal", a[1], 0.0))


def _product(o: Arithmetic, a: Complex, b: Complex) -> Complex:
    (ar, ai), (br, bi) = a, b
    left, right = o("multiply", ai, bi), o("multiply", ai, br)
    if fused_products():
        return o("fma", ar, br, o("negative", left)), o("fma", ar, bi, right)
    return o("subtract", o("multiply", ar, br), left), o("add", o("multiply", ar, bi), right)


def _larger_real(o: Arithmetic, b: Complex) -> tuple[KernelValue, KernelValue]:
    """Whether the real part is at least as large as the imaginary one, and whether both are zero."""
    re, im = o("abs", b[0]), o("abs", b[1])
    return o("signalling_greater_equal", re, im), o("logical_and", o("equal", re, 0.0), o("equal", im, 0.0))


def _quotient(o: Arithmetic, a: Complex, b: Complex) -> Complex:
    """R. L. Smith's algorithm (CACM 5, 1962). By zero each part is divided by it, so that both may be infinite."""
    (ar, ai), (br, bi) = a, b
    first, zero = _larger_real(o, b)
    large, small = o("where", first, br, bi), o("where", first, bi, br)
    large = o("where", zero, 1.0, large)  # where it is zero, these lanes raise nothing
    ratio = o("divide", small, large)
    scale = o("divide", 1.0, o("add", large, o("multiply", small, ratio)))
    along, across = o("where", first, ar, ai), o("where", first, ai, ar)
    turned = o("multiply", along, ratio)
    re = o("multiply", o("add", along, o("multiply", across, ratio)), scale)
    im = o("multiply", o("subtract", o("where", first, across, turned), o("where", first, turned, across)), scale)
    return _by_zero(o, zero, (re, im), a)


def _by_zero(o: Arithmetic, zero: KernelValue, result: Complex, a: Complex) -> Complex:
    none = o("where", zero, 0.0, 1.0)
    parts = [o("divide", o("where", zero, x, 1.0), none) for x in a]
    return o("where", zero, parts[0], result[0]), o("where", zero, parts[1], result[1])


def _reciprocal(o: Arithmetic, a: Complex) -> Complex:
    re, im = a
    first = o("signalling_less_equal", o("abs", im), o("abs", re))
    large, small = o("where", first, re, im), o("where", first, im, re)
    ratio = o("divide", small, large)
    whole = o("add", large, o("multiply", small, ratio))
    above = o("where", first, 1.0, ratio)
    below = o("where", first, o("negative", ratio), -1.0)
    return o("divide", above, whole), o("divide", below, whole)


def _ordered(sign: str, signalling: bool = True) -> Callable[[Arithmetic, Complex, Complex], KernelValue]:
    """Real parts decide, then imaginary ones; a NaN anywhere gives false."""
    start = "signalling_" if signalling else ""
    last, first = start + sign, start + sign.removesuffix("_equal")

    def rule(o: Arithmetic, a: Complex, b: Complex) -> KernelValue:
        numbers = o("logical_and", o("equal", a[1], a[1]), o("equal", b[1], b[1]))
        apart = o("logical_and", o(first, a[0], b[0]), numbers)
        tie = o("equal", a[0], b[0])  # elsewhere the imaginary parts are not even looked at
        decided = o(last, o("where", tie, a[1], 0.0), o("where", tie, b[1], 0.0))
        return o("logical_or", apart, o("logical_and", tie, decided))

    return rule


def _extremum(name: str) -> Callable[[Arithmetic, Complex, Complex], Complex]:
    sign, nan = _FIRST_WINS[name]
    better = _ordered(sign, signalling=False)

    def rule(o: Arithmetic, a: Complex, b: Complex) -> Complex:
        x = (a, b)[nan]
        lost = o("logical_or", o("isnan", x[0]), o("isnan", x[1]))
        first = o("logical_or", better(o, a, b), lost)
        return o("where", first, a[0], b[0]), o("where", first, a[1], b[1])

    return rule


def _logical(name: str) -> Callable[[Arithmetic, Complex, Complex], KernelValue]:
    return lambda o, a, b: o(name, _truth(o, a), _truth(o, b))


# What each operation is on complex operands: a pair of parts, or one real or boolean value.
COMPLEX: dict[str, Callable[..., Complex | KernelValue]] = {
    "add": lambda o, a, b: (o("add", a[0], b[0]), o("add", a[1], b[1])),
    "subtract": lambda o, a, b: (o("subtract", a[0], b[0]), o("subtract", a[1], b[1])),
    "multiply": _product,
    "square": lambda o, a: _product(o, a, a),
    "divide": _quotient,
    "reciprocal": _reciprocal,
    "negative": lambda o, a: (o("negative", a[0]), o("negative", a[1])),
    "positive": lambda o, a: a,
    "ordered": lambda o, a: a,
    "conj": lambda o, a: (a[0], o("negative", a[1])),
    "abs": lambda o, a: o("hypot", a[0], a[1]),
    "equal": lambda o, a, b: o("logical_and", o("equal", a[0], b[0]), o("equal", a[1], b[1])),
    "not_equal": lambda o, a, b: o("logical_or", o("not_equal", a[0], b[0]), o("not_equal", a[1], b[1])),
    **{name: _ordered(name) for name in ("less", "less_equal", "greater", "greater_equal")},
    "isnan": lambda o, a: o("logical_or", o("isnan", a[0]), o("isnan", a[1])),
    "isinf": lambda o, a: o("logical_or", o("isinf", a[0]), o("isinf", a[1])),
    "isfinite": lambda o, a: o("logical_and", o("isfinite", a[0]), o("isfinite", a[1])),
    "logical_not": lambda o, a: o("logical_not", _truth(o, a)),
    **{name: _logical(name) for name in ("logical_and", "logical_or", "logical_xor")},
    **{name: _extremum(name) for name in _FIRST_WINS},
}

__all__ = ["COMPLEX", "HALF", "PARTS", "PartWriter", "machine_dtype", "number_dtype"]
