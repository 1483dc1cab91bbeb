"""Complex and half-precision arithmetic, in terms of operations on floats.

Input: an operation of the op table with the kernel values it works on.
Output: kernel values of machine dtypes.
Why: no code generator knows arithmetic on such numbers.

Code generators load and store these numbers, split and join pairs (``part`` and ``pair``), and convert (``astype``). A
complex value is a pair of adjacent floats in memory. Half precision is converted to float32, computed, and rounded
after each operation, as NumPy does. The order of the arithmetic is NumPy's, so that results have its bits and raise its
flags.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import TypeAlias

import numpy as np

from tcompile.backends.schedule.kernel import KernelValue
from tcompile.backends.schedule.kernel_ops import BESIDE, CONSTANT, FMA, LOAD, PAIR, PART, REDUCE, SIGNALLING, Operation
from tcompile.graph import Node, ops
from tcompile.graph.dtypes import DType
from tcompile.graph.op import Op
from tcompile.graph.signals import may_signal

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
    """The dtype to which a number known only at run time converts beside operands of ``dtype``: it is rounded once."""
    return DOUBLE if dtype == HALF else machine_dtype(dtype)


@cache
def fused_products() -> bool:
    """Whether this NumPy, on this processor, fuses a multiplication and an addition in complex products."""
    x, y = np.full(64, 1 + 2.0**-30 + 1j), np.full(64, 1 - 2.0**-30 + 1j)
    return bool((x * y).real[0] != 0)


def _sets_flags(value: KernelValue) -> bool:
    """Whether computing a value from what is loaded may set floating-point flags that are reported."""
    left, seen = [value], {id(value)}
    while left:
        found = left.pop()
        if found.op is LOAD:
            continue
        if found.op not in (PART, PAIR, BESIDE) and found.node is not None and may_signal(found.node):
            return True
        left += [x for x in found.values if id(x) not in seen]
        seen.update(map(id, found.values))
    return False


class ComplexHalfWriter:
    """Writes operations on complex and half-precision values. ``add`` takes each value that is made."""

    def __init__(self, add: Callable[[KernelValue], KernelValue]) -> None:
        self._add = add
        self._node: Node | None = None
        self._known: dict[tuple[KernelValue, object], KernelValue] = {}

    # -- called by lowering -----------------------------------------------------------------------------------------
    def apply(self, node: Node, op: Operation, operands: list[Scalar], result: DType, operand: DType) -> KernelValue:
        """The operation ``op``; ``operand`` is the dtype of its operands, those that are bare numbers included."""
        self._node = node
        if "c" in (operand.kind, result.kind):
            return self._complex(op, operands, result, operand)
        if HALF in (operand, result):
            if operand == HALF and op is not ops.ASTYPE:
                operands = [self._half_number(x) for x in operands]
            return self._half(op, operands, result, operand)
        return self._op(op, operands, result, operand)

    def part(self, value: KernelValue, index: int) -> Real:
        """The real (0) or imaginary (1) part of a complex value."""
        if value.op is PAIR:
            found = value.operands[index]
            assert not isinstance(found, complex)
            return found
        key = (value, index)
        if key not in self._known:
            taken = KernelValue(PART, (value,), PARTS[value.dtype], value.axes, self._node, {"index": index})
            self._known[key] = self._add(taken)
        return self._known[key]

    def part_alone(self, value: KernelValue, node: Node) -> Real:
        """The part that ``node`` takes of a complex value; the other part is computed too where that may set flags."""
        index = int(node.op is ops.IMAG)
        found = self.part(value, index)
        other = value.operands[1 - index] if value.op is PAIR else None
        if not isinstance(found, KernelValue) or not isinstance(other, KernelValue) or not _sets_flags(other):
            return found
        return self._add(KernelValue(BESIDE, (found, other), found.dtype, found.axes | other.axes, node))

    def pair(self, node: Node, re: Real, im: Real, dtype: DType) -> KernelValue:
        """The complex value of two parts."""
        axes = frozenset().union(*(x.axes for x in (re, im) if isinstance(x, KernelValue)))
        return self._add(KernelValue(PAIR, (re, im), dtype, axes, node, {"operand_dtype": PARTS[dtype]}))

    def reduce(self, node: Node, operand: KernelValue, axes: frozenset[int]) -> KernelValue:
        """A reduction: of complex numbers, the sums of both parts."""
        self._node = node

        def over(value: Real, dtype: DType) -> KernelValue:
            if not isinstance(value, KernelValue):
                value = self._add(KernelValue(CONSTANT, (value,), dtype, frozenset(), node))
            return self._add(KernelValue(REDUCE, (value,), dtype, axes, node, {"op": node.op.name}))

        dtype = machine_dtype(operand.dtype)
        if operand.dtype in PARTS:
            re, im = (over(self.part(operand, index), dtype) for index in (0, 1))
            return self.pair(node, re, im, operand.dtype)
        if operand.dtype == HALF:
            return self._op(ops.ASTYPE, [over(self._wide(operand), dtype)], HALF, dtype)
        return over(operand, dtype)

    def arithmetic(self, node: Node, dtype: DType) -> Arithmetic:
        """Returns a function that applies operations for ``node`` to operands of a machine dtype."""
        self._node = node
        return Arithmetic(self._op, dtype)

    def product(
        self, node: Node, factors: list[KernelValue], total: KernelValue | None, dtype: DType, fused: bool
    ) -> KernelValue:
        """``total`` plus the product of two factors; ``fused``: rounded once, where the processor can."""
        if total is not None and fused and dtype in (SINGLE, DOUBLE) and fused_products():
            return self.apply(node, FMA, [*factors, total], dtype, dtype)
        made = self.apply(node, ops.MULTIPLY, list(factors), dtype, dtype)
        if total is None and dtype.kind in "iu":
            return made
        return self.apply(node, ops.ADD, [made, 0.0 if total is None else total], dtype, dtype)

    def finite(self, node: Node, value: KernelValue) -> KernelValue:
        """A value that is left to NumPy where it is infinite or a NaN."""
        apply = self.arithmetic(node, machine_dtype(value.dtype))
        if value.dtype not in PARTS:
            return apply(ops.FINITE, value)
        re, im = (apply(ops.FINITE, part) for part in self._split(value))
        return self.pair(node, re, im, value.dtype)

    # -- making values --------------------------------------------------------------------------------------------
    def _op(self, op: Operation, operands: list[Scalar], result: DType, operand: DType) -> KernelValue:
        axes = frozenset().union(*(x.axes for x in operands if isinstance(x, KernelValue)))
        plain = tuple(x for x in operands if not isinstance(x, complex))
        assert len(plain) == len(operands)
        return self._add(KernelValue(op, plain, result, axes, self._node, {"operand_dtype": operand}))

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
            self._known[key] = self._op(ops.ASTYPE, [value], SINGLE, HALF)
        return self._known[key]

    def _half_number(self, value: Scalar) -> Scalar:
        """The operand, converted to half precision where it is a number known only at run time."""
        known = not isinstance(value, KernelValue) or value.dtype != DOUBLE
        return value if known else self._op(ops.ASTYPE, [value], HALF, DOUBLE)

    def _half(self, op: Operation, operands: list[Scalar], result: DType, operand: DType) -> KernelValue:
        if op is ops.WHERE:  # selects elements unchanged
            return self._op(op, operands, result, operand)
        if op is ops.ASTYPE and operand != HALF:
            if operand.kind != "f":  # integers convert by way of float32
                operands, operand = [self._op(ops.ASTYPE, operands, SINGLE, operand)], SINGLE
            return self._op(ops.ASTYPE, operands, HALF, operand)
        wide_operands: list[Scalar] = [self._wide(x) for x in operands]
        if op is ops.ASTYPE:
            (wide,) = wide_operands
            assert isinstance(wide, KernelValue)
            return wide if result == SINGLE else self._op(ops.ASTYPE, [wide], result, SINGLE)
        if op in _FIRST_WINS:
            return self._op(ops.WHERE, [self._first_wins(op, wide_operands), *operands], HALF, HALF)
        computed = self._op(op, wide_operands, SINGLE if result == HALF else result, SINGLE)
        return self._op(ops.ASTYPE, [computed], HALF, SINGLE) if result == HALF else computed

    def _first_wins(self, op: Operation, operands: list[Scalar]) -> KernelValue:
        """Whether an extremum is the first operand: NumPy's choice for half precision, also for equal zeros."""
        sign, nan = _FIRST_WINS[op]
        better = self._op(sign, operands, BOOL, SINGLE)
        return self._op(ops.LOGICAL_OR, [better, self._op(ops.ISNAN, [operands[nan]], BOOL, SINGLE)], BOOL, BOOL)

    # -- complex numbers ------------------------------------------------------------------------------------------
    def _split(self, value: Scalar) -> Complex:
        if isinstance(value, KernelValue):
            return (self.part(value, 0), self.part(value, 1)) if value.dtype in PARTS else (value, 0.0)
        return complex(value).real, complex(value).imag

    def _complex(self, op: Operation, operands: list[Scalar], result: DType, operand: DType) -> KernelValue:
        node = self._node
        assert node is not None
        if op is ops.ASTYPE:
            return self._cast(operands[0], result, operand)
        o = Arithmetic(self._op, PARTS[operand])
        if op is ops.WHERE:
            condition, *branches = operands
            (a, b), (c, d) = map(self._split, branches)
            return self.pair(node, o(ops.WHERE, condition, a, c), o(ops.WHERE, condition, b, d), result)
        found = COMPLEX[op](o, *map(self._split, operands))
        return self.pair(node, *found, result) if isinstance(found, tuple) else found

    def _cast(self, value: Scalar, result: DType, operand: DType) -> KernelValue:
        node = self._node
        assert node is not None
        if operand not in PARTS:
            assert isinstance(value, KernelValue)
            if operand != PARTS[result]:
                value = self.apply(node, ops.ASTYPE, [value], PARTS[result], operand)
            return self.pair(node, value, 0.0, result)
        re, im = self._split(value)
        if result == BOOL:
            return _truth(Arithmetic(self._op, PARTS[operand]), (re, im))
        source, target = PARTS[operand], PARTS[result]
        if source == target:
            return self.pair(node, re, im, result)
        both = [self._op(ops.ASTYPE, [x], target, source) if isinstance(x, KernelValue) else x for x in (re, im)]
        return self.pair(node, both[0], both[1], result)


class Arithmetic:
    """Operations on the parts of complex numbers: ``o(ops.ADD, a, b)``."""

    def __init__(self, op: Callable[[Operation, list[Scalar], DType, DType], KernelValue], dtype: DType) -> None:
        self._op, self._dtype = op, dtype

    def __call__(self, op: Operation, *operands: Scalar) -> KernelValue:
        """One operation; predicates give booleans."""
        if op in _ON_BOOLEANS:
            return self._op(op, list(operands), BOOL, BOOL)
        return self._op(op, list(operands), BOOL if op in _PREDICATES else self._dtype, self._dtype)


_ON_BOOLEANS = frozenset[Operation]({ops.LOGICAL_AND, ops.LOGICAL_OR, ops.LOGICAL_XOR, ops.LOGICAL_NOT})
_PREDICATES = frozenset[Operation]({*SIGNALLING, *SIGNALLING.values(), ops.ISNAN, ops.ISINF, ops.ISFINITE})
# The comparison, and the operand whose NaN, lets the first operand of an extremum win.
_FIRST_WINS: dict[Operation, tuple[Op, int]] = {
    ops.MAXIMUM: (ops.GREATER_EQUAL, 0),
    ops.MINIMUM: (ops.LESS_EQUAL, 0),
    ops.FMAX: (ops.GREATER_EQUAL, 1),
    ops.FMIN: (ops.LESS_EQUAL, 1),
}
_STRICT = {ops.LESS_EQUAL: ops.LESS, ops.GREATER_EQUAL: ops.GREATER}


def _truth(o: Arithmetic, a: Complex) -> KernelValue:
    return o(ops.LOGICAL_OR, o(ops.NOT_EQUAL, a[0], 0.0), o(ops.NOT_EQUAL, a[1], 0.0))


def _product(o: Arithmetic, a: Complex, b: Complex) -> Complex:
    (ar, ai), (br, bi) = a, b
    left, right = o(ops.MULTIPLY, ai, bi), o(ops.MULTIPLY, ai, br)
    if fused_products():
        return o(FMA, ar, br, o(ops.NEGATIVE, left)), o(FMA, ar, bi, right)
    return o(ops.SUBTRACT, o(ops.MULTIPLY, ar, br), left), o(ops.ADD, o(ops.MULTIPLY, ar, bi), right)


def _larger_real(o: Arithmetic, b: Complex) -> tuple[KernelValue, KernelValue]:
    """Whether the real part is at least as large as the imaginary one, and whether both are zero."""
    re, im = o(ops.ABS, b[0]), o(ops.ABS, b[1])
    return o(SIGNALLING[ops.GREATER_EQUAL], re, im), o(ops.LOGICAL_AND, o(ops.EQUAL, re, 0.0), o(ops.EQUAL, im, 0.0))


def _quotient(o: Arithmetic, a: Complex, b: Complex) -> Complex:
    """R. L. Smith's algorithm (CACM 5, 1962). By zero each part is divided by it, so that both may be infinite."""
    (ar, ai), (br, bi) = a, b
    first, zero = _larger_real(o, b)
    large, small = o(ops.WHERE, first, br, bi), o(ops.WHERE, first, bi, br)
    large = o(ops.WHERE, zero, 1.0, large)  # where it is zero, these lanes raise no flag
    ratio = o(ops.DIVIDE, small, large)
    scale = o(ops.DIVIDE, 1.0, o(ops.ADD, large, o(ops.MULTIPLY, small, ratio)))
    along, across = o(ops.WHERE, first, ar, ai), o(ops.WHERE, first, ai, ar)
    turned = o(ops.MULTIPLY, along, ratio)
    re = o(ops.MULTIPLY, o(ops.ADD, along, o(ops.MULTIPLY, across, ratio)), scale)
    one, other = o(ops.WHERE, first, across, turned), o(ops.WHERE, first, turned, across)
    im = o(ops.MULTIPLY, o(ops.SUBTRACT, one, other), scale)
    return _by_zero(o, zero, (re, im), a)


def _by_zero(o: Arithmetic, zero: KernelValue, result: Complex, a: Complex) -> Complex:
    none = o(ops.WHERE, zero, 0.0, 1.0)
    parts = [o(ops.DIVIDE, o(ops.WHERE, zero, x, 1.0), none) for x in a]
    return o(ops.WHERE, zero, parts[0], result[0]), o(ops.WHERE, zero, parts[1], result[1])


def _reciprocal(o: Arithmetic, a: Complex) -> Complex:
    re, im = a
    first = o(SIGNALLING[ops.LESS_EQUAL], o(ops.ABS, im), o(ops.ABS, re))
    large, small = o(ops.WHERE, first, re, im), o(ops.WHERE, first, im, re)
    ratio = o(ops.DIVIDE, small, large)
    whole = o(ops.ADD, large, o(ops.MULTIPLY, small, ratio))
    above = o(ops.WHERE, first, 1.0, ratio)
    below = o(ops.WHERE, first, o(ops.NEGATIVE, ratio), -1.0)
    return o(ops.DIVIDE, above, whole), o(ops.DIVIDE, below, whole)


def _ordered(sign: Op, signalling: bool = True) -> Callable[[Arithmetic, Complex, Complex], KernelValue]:
    """Compares real parts, then imaginary ones; a NaN anywhere gives false."""
    strict = _STRICT.get(sign, sign)
    last, first = (SIGNALLING[sign], SIGNALLING[strict]) if signalling else (sign, strict)

    def rule(o: Arithmetic, a: Complex, b: Complex) -> KernelValue:
        numbers = o(ops.LOGICAL_AND, o(ops.EQUAL, a[1], a[1]), o(ops.EQUAL, b[1], b[1]))
        apart = o(ops.LOGICAL_AND, o(first, a[0], b[0]), numbers)
        tie = o(ops.EQUAL, a[0], b[0])  # elsewhere the imaginary parts are not compared
        decided = o(last, o(ops.WHERE, tie, a[1], 0.0), o(ops.WHERE, tie, b[1], 0.0))
        return o(ops.LOGICAL_OR, apart, o(ops.LOGICAL_AND, tie, decided))

    return rule


def _extremum(op: Op) -> Callable[[Arithmetic, Complex, Complex], Complex]:
    sign, nan = _FIRST_WINS[op]
    better = _ordered(sign, signalling=False)

    def rule(o: Arithmetic, a: Complex, b: Complex) -> Complex:
        x = (a, b)[nan]
        lost = o(ops.LOGICAL_OR, o(ops.ISNAN, x[0]), o(ops.ISNAN, x[1]))
        first = o(ops.LOGICAL_OR, better(o, a, b), lost)
        return o(ops.WHERE, first, a[0], b[0]), o(ops.WHERE, first, a[1], b[1])

    return rule


def _logical(op: Op) -> Callable[[Arithmetic, Complex, Complex], KernelValue]:
    return lambda o, a, b: o(op, _truth(o, a), _truth(o, b))


# Each operation on complex operands: a pair of parts, or one real or boolean value.
COMPLEX: dict[Operation, Callable[..., Complex | KernelValue]] = {
    ops.ADD: lambda o, a, b: (o(ops.ADD, a[0], b[0]), o(ops.ADD, a[1], b[1])),
    ops.SUBTRACT: lambda o, a, b: (o(ops.SUBTRACT, a[0], b[0]), o(ops.SUBTRACT, a[1], b[1])),
    ops.MULTIPLY: _product,
    ops.SQUARE: lambda o, a: _product(o, a, a),
    ops.DIVIDE: _quotient,
    ops.RECIPROCAL: _reciprocal,
    ops.NEGATIVE: lambda o, a: (o(ops.NEGATIVE, a[0]), o(ops.NEGATIVE, a[1])),
    ops.POSITIVE: lambda o, a: a,
    ops.ORDERED: lambda o, a: a,
    ops.CONJ: lambda o, a: (a[0], o(ops.NEGATIVE, a[1])),
    ops.ABS: lambda o, a: o(ops.HYPOT, a[0], a[1]),
    ops.EQUAL: lambda o, a, b: o(ops.LOGICAL_AND, o(ops.EQUAL, a[0], b[0]), o(ops.EQUAL, a[1], b[1])),
    ops.NOT_EQUAL: lambda o, a, b: o(ops.LOGICAL_OR, o(ops.NOT_EQUAL, a[0], b[0]), o(ops.NOT_EQUAL, a[1], b[1])),
    **{op: _ordered(op) for op in (ops.LESS, ops.LESS_EQUAL, ops.GREATER, ops.GREATER_EQUAL)},
    ops.ISNAN: lambda o, a: o(ops.LOGICAL_OR, o(ops.ISNAN, a[0]), o(ops.ISNAN, a[1])),
    ops.ISINF: lambda o, a: o(ops.LOGICAL_OR, o(ops.ISINF, a[0]), o(ops.ISINF, a[1])),
    ops.ISFINITE: lambda o, a: o(ops.LOGICAL_AND, o(ops.ISFINITE, a[0]), o(ops.ISFINITE, a[1])),
    ops.LOGICAL_NOT: lambda o, a: o(ops.LOGICAL_NOT, _truth(o, a)),
    **{op: _logical(op) for op in (ops.LOGICAL_AND, ops.LOGICAL_OR, ops.LOGICAL_XOR)},
    **{op: _extremum(op) for op in (ops.MAXIMUM, ops.MINIMUM, ops.FMAX, ops.FMIN)},
}

__all__ = ["COMPLEX", "HALF", "PARTS", "ComplexHalfWriter", "machine_dtype", "number_dtype"]
