"""Reductions in vectors: how each accumulates, merges and finishes.

Input: vectors of elements.
Output: accumulator vectors, and their final value.
Why: all loop nests accumulate alike.

A reduction is a list of accumulator parts. Sums of float32 are carried in float64. Sums of float64 carry the rounding
errors of additions beside the sum (Knuth's two-sum), except for the few elements that are added first where there are
several at once. So both are at least as exact as NumPy's pairwise summation.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence

from tcompile.backends.llvm import native
from tcompile.backends.llvm.kernels.pointwise import maximum, minimum
from tcompile.backends.llvm.vector.text import scalar_type
from tcompile.backends.llvm.vector.vectors import FLOAT32, FLOAT64, Vectors
from tcompile.backends.schedule.kernel import identity_element
from tcompile.backends.status import ONLY_NUMPY
from tcompile.graph.dtypes import DType
from tcompile.records import dataclass


@dataclass(frozen=True)
class VectorReduction:
    """The reduction ``op`` over elements of ``dtype``."""

    op: str
    dtype: DType

    @property
    def parts(self) -> tuple[DType, ...]:
        """The dtypes of the accumulators."""
        if self.op == "sum" and self.dtype == FLOAT32:
            return (FLOAT64,)
        if self._keeps_errors:
            return (FLOAT64, FLOAT64)
        if self._is_product:
            return (self.dtype,) * 3
        return (self.dtype, self.dtype) if self._is_extremum else (self.dtype,)

    @property
    def _is_extremum(self) -> bool:
        """Whether this is ``max`` or ``min`` of floats, carried as the extremum of the numbers and, beside it, any NaN.

        False where the processor has an instruction for it.
        """
        return self.op in ("max", "min") and self.dtype.kind == "f" and not native.machine().has_extremes

    @property
    def _is_product(self) -> bool:
        """Whether this is a product of floats, which carries beside it the products of the large and of the small
        elements.

        These bound every partial product, in any order: where neither overflows or underflows, none does.
        """
        return self.op == "prod" and self.dtype.kind == "f"

    @property
    def _keeps_errors(self) -> bool:
        """Whether the rounding errors of additions are carried beside the sum."""
        return self.op == "sum" and self.dtype == FLOAT64

    def identity(self) -> bool | int | float:
        """The identity element (the parts start from it)."""
        return identity_element(self.op, self.dtype)

    def start(self, v: Vectors) -> list[str]:
        """The accumulators before the first element."""
        beside = 1 if self._is_product else 0
        return [v.constant(part, self.identity() if i == 0 else beside) for i, part in enumerate(self.parts)]

    def first(self, v: Vectors, element: str) -> list[str]:
        """The accumulators after the first vector of elements. A sum of negative zeros ends as zero all the same."""
        if self._keeps_errors:
            return [element, v.constant(FLOAT64, 0)]
        return self.update(v, self.start(v), element)

    def update(self, v: Vectors, accumulators: list[str], element: str) -> list[str]:
        """The accumulators after one more vector of elements."""
        if self.op == "sum" and self.dtype == FLOAT32:
            wide = v.convert("fpext", element, FLOAT32, FLOAT64)
            return [v.op("fadd", FLOAT64, accumulators[0], wide)]
        if self._keeps_errors:
            total, error = two_sum(v, accumulators[0], element)
            return [total, v.op("fadd", FLOAT64, accumulators[1], error)]
        if self._is_product:
            d, one, size = self.dtype, v.constant(self.dtype, 1), v.call("fabs", self.dtype, element)
            below = v.mask("and", v.quiet("olt", d, size, one), v.quiet("une", d, size, v.constant(d, 0)))
            large, small = v.pick(v.quiet("ogt", d, size, one), d, size, one), v.pick(below, d, size, one)
            return self._multiplied(v, accumulators, [element, large, small])
        if self._is_extremum:
            lost = v.is_nan(self.dtype, element)
            return [self._further(v, accumulators[0], element), v.pick(lost, self.dtype, element, accumulators[1])]
        return [self._combine(v, accumulators[0], element)]

    def of_few(self, v: Vectors, elements: Sequence[str]) -> str:
        """The result for a given number of vectors. Fewer than eight floats are added in NumPy's order."""
        if self._keeps_errors:
            several = len(elements) if len(elements) < _UNROLLED else _UNROLLED // 2
            elements = [_added_in_turn(v, elements[at : at + several]) for at in range(0, len(elements), several)]
        held = self.first(v, elements[0])
        for element in elements[1:]:
            held = self.update(v, held, element)
        return self.finish(v, held)

    # Several vectors at once. Each has a set of accumulators, so that they are independent; but sums of float64 add the
    # elements first, and take the rounding error of adding that sum only.
    def side_by_side(self, held: list[str], start: list[str], count: int) -> list[list[str]]:
        """The sets for ``count`` vectors at once, the first of which is ``held``."""
        return [held] if self._keeps_errors else [held, *[start] * (count - 1)]

    def first_of_all(self, v: Vectors, elements: list[str]) -> list[list[str]]:
        """The sets after the first vectors of elements."""
        if self._keeps_errors:
            return [[_added(v, elements), v.constant(FLOAT64, 0)]]
        return [self.first(v, element) for element in elements]

    # Some rows of a column at once; ``kept`` are the carried accumulators. Sums of float64 add the rows plainly, and
    # take the rounding error of adding that sum only.
    def begin(self, v: Vectors, kept: list[str]) -> list[str]:
        """The accumulators before the first of some rows."""
        return [v.constant(FLOAT64, 0)] if self._keeps_errors else kept

    def further(self, v: Vectors, kept: list[str], held: list[str], element: str) -> list[str]:
        """The accumulators of some rows after one more."""
        return [v.op("fadd", FLOAT64, held[0], element)] if self._keeps_errors else self.update(v, held, element)

    def end(self, v: Vectors, kept: list[str], held: list[str], reciprocal: str) -> list[str]:
        """The carried accumulators after some rows."""
        return self.update(v, kept, held[0]) if self._keeps_errors else held

    def update_all(self, v: Vectors, sets: list[list[str]], elements: list[str]) -> list[list[str]]:
        """The sets after one more vector each."""
        if self._keeps_errors:
            return [self.update(v, sets[0], _added(v, elements))]
        if not self._is_extremum:
            return [self.update(v, held, element) for held, element in zip(sets, elements, strict=True)]
        # Processors test two vectors for NaNs at once, and hardly any data has some.
        w, type = v.w, v.type(self.dtype)
        pairs = [v.w.get(f"fcmp uno {type} {a}, {b}") for a, b in zip(elements[::2], elements[1::2], strict=True)]
        lost = pairs[0]
        for pair in pairs[1:]:
            lost = v.mask("or", lost, pair)
        numbers, some, on = w.label("numbers"), w.label("some"), w.label("on")
        w.branch(v.any(lost), some, numbers)
        w.place(numbers)
        sign = "ogt" if self.op == "max" else "olt"
        plain = []
        for held, element in zip(sets, elements, strict=True):  # one instruction each
            plain.append(v.pick(v.w.get(f"fcmp {sign} {type} {held[0]}, {element}"), self.dtype, held[0], element))
        w.jump(on)
        w.place(some)
        exact = [self.update(v, held, element) for held, element in zip(sets, elements, strict=True)]
        w.jump(on)
        w.place(on)
        return [
            [w.select_phi(type, [(a, numbers), (b[0], some)]), w.select_phi(type, [(held[1], numbers), (b[1], some)])]
            for a, b, held in zip(plain, exact, sets, strict=True)
        ]

    def merge(self, v: Vectors, a: list[str], b: list[str]) -> list[str]:
        """Merges two sets of accumulators."""
        if self._keeps_errors:
            total, error = two_sum(v, a[0], b[0])
            return [total, v.op("fadd", FLOAT64, v.op("fadd", FLOAT64, a[1], b[1]), error)]
        if self.op == "sum" and self.dtype == FLOAT32:
            return [v.op("fadd", FLOAT64, a[0], b[0])]
        if self._is_product:
            return self._multiplied(v, a, b)
        if self._is_extremum:
            lost = v.is_nan(self.dtype, b[1])
            return [self._further(v, a[0], b[0]), v.pick(lost, self.dtype, b[1], a[1])]
        return [self._combine(v, a[0], b[0])]

    def finish(self, v: Vectors, accumulators: list[str]) -> str:
        """The result's vector."""
        if self.op == "sum" and self.dtype == FLOAT32:
            return v.convert("fptrunc", accumulators[0], FLOAT64, FLOAT32)
        if self._keeps_errors:
            total, error = accumulators
            lost = v.is_nan(FLOAT64, error)  # the sum is infinite or NaN, and its error is meaningless
            return v.pick(lost, FLOAT64, total, v.op("fadd", FLOAT64, total, error))
        if self._is_extremum:
            best, lost = accumulators
            return v.pick(v.is_nan(self.dtype, lost), self.dtype, lost, best)
        if self._is_product:  # whether an infinity meets a zero, or a NaN before it, depends on NumPy's order
            infinite = v.quiet("oeq", self.dtype, accumulators[1], v.constant(self.dtype, math.inf))
            v.report(v.mask("and", v.is_nan(self.dtype, accumulators[0]), infinite), ONLY_NUMPY)
        return accumulators[0]

    def joined(self, v: Vectors, a: list[str], b: list[str], low: list[int], high: list[int]) -> list[str]:
        """The lanes ``low`` of ``a`` and ``b`` (whose lanes are numbered on), each merged with the same of ``high``."""
        first, second = (
            [v.shuffle(scalar_type(part), x, lanes, y) for part, x, y in zip(self.parts, a, b, strict=True)]
            for lanes in (low, high)
        )
        return self.merge(v, first, second)

    def across(self, v: Vectors, accumulators: list[str]) -> list[str]:
        """Merges the lanes by halves: leaves vectors of one lane, for ``v.of(1)``."""
        if self.op in ("any", "all"):
            (mask,) = accumulators
            found = v.any(mask if self.op == "any" else v.negate(mask))
            return [v.of(1).spread("i1", found if self.op == "any" else v.w.get(f"xor i1 {found}, true"))]
        while v.lanes > 1:
            step = v.lanes // 2
            low, high = list(range(step)), list(range(step, v.lanes))
            halves = [
                [v.shuffle(scalar_type(part), x, lanes) for part, x in zip(self.parts, accumulators, strict=True)]
                for lanes in (low, high)
            ]
            v = v.of(step)
            accumulators = self.merge(v, *halves)
        return accumulators

    def _further(self, v: Vectors, a: str, b: str) -> str:
        """The extremum of ``a``, which is a number, and ``b``: ``a`` where that is a NaN, and ``b`` where equal."""
        return v.pick(v.quiet("ugt" if self.op == "max" else "ult", self.dtype, a, b), self.dtype, a, b)

    def _multiplied(self, v: Vectors, a: list[str], b: list[str]) -> list[str]:
        return [v.op("fmul", self.dtype, one, two) for one, two in zip(a, b, strict=True)]

    def _combine(self, v: Vectors, a: str, b: str) -> str:
        d = self.dtype
        if self.op in ("any", "all"):
            return v.mask("or" if self.op == "any" else "and", a, b)
        if self.op == "max":
            return maximum(v, d, a, b)
        if self.op == "min":
            return minimum(v, d, a, b)
        name = {"sum": "add", "prod": "mul"}[self.op]
        return v.op(("f" if d.kind == "f" else "") + name, d, a, b)


_UNROLLED = 8  # NumPy adds fewer elements than that one after the other


def _added_in_turn(v: Vectors, elements: Sequence[str]) -> str:
    """The sum of some vectors, one after the other."""
    return functools.reduce(lambda total, element: v.op("fadd", FLOAT64, total, element), elements)


def _added(v: Vectors, elements: Sequence[str]) -> str:
    """The sum of some vectors, as a tree."""
    elements = list(elements)
    while len(elements) > 1:
        pairs = zip(elements[::2], elements[1::2], strict=True)
        elements = [v.op("fadd", FLOAT64, a, b) for a, b in pairs]
    return elements[0]


def two_sum(v: Vectors, a: str, b: str) -> tuple[str, str]:
    """The rounded sum and its exact rounding error (D. E. Knuth, TAOCP 2, 4.2.2, theorem B)."""
    total = v.op("fadd", FLOAT64, a, b)
    b_part = v.op("fsub", FLOAT64, total, a)
    a_part = v.op("fsub", FLOAT64, total, b_part)
    error = v.op("fadd", FLOAT64, v.op("fsub", FLOAT64, a, a_part), v.op("fsub", FLOAT64, b, b_part))
    return total, error
