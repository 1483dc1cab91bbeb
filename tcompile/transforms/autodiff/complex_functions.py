"""Derivatives of functions of complex numbers, which are library calls.

Input: a call of one of NumPy's ufuncs of complex operands, and its result's cotangent.
Output: the operands' cotangents.
Why: kernels compute real functions alone, so those of complex numbers are not rows of the op table. Holomorphic
functions have the rules of the real ones (``table`` says why), which ``pointwise`` has.
"""

from __future__ import annotations

import cmath
from collections.abc import Sequence
from typing import Any

import numpy as np

from tcompile.graph import ops
from tcompile.graph.ir import Node, Operand
from tcompile.graph.ops.opaque import Slot
from tcompile.transforms.autodiff import pointwise  # noqa: F401  # registers the rules
from tcompile.transforms.autodiff.calls import TARGETS, target
from tcompile.transforms.autodiff.table import COMPLEX_CALLS, VJPS, Pull
from tcompile.transforms.emit import REAL_IN_KERNELS, Emit
from tcompile.transforms.library_calls import argument

for _row in REAL_IN_KERNELS:
    TARGETS[f"numpy.{_row.reference(np).__name__}"] = VJPS[_row]
COMPLEX_CALLS.update(f"numpy.{_row.reference(np).__name__}" for _row in REAL_IN_KERNELS)
COMPLEX_CALLS.update(("numpy.cumsum", "numpy.multiply", "numpy.power"))


@target("numpy.cumsum")
def _cumsum(e: Emit, node: Node, g: Node) -> Sequence[Pull | None]:
    axis = argument(node, 1, "axis")

    def pull() -> Node:
        along = 0 if axis is None else axis % g.tensor.ndim
        turned = e.numpy(np.cumsum, e(ops.FLIP, g, axis=(along,)), axis=along)
        return e.reshape(e(ops.FLIP, turned, axis=(along,)), node.inputs[0].tensor.shape)

    return [pull]


def _given(node: Node) -> list[Any]:
    """The two operands of a call, nodes or numbers."""
    return [node.operands[part.index] if isinstance(part, Slot) else part for part in node.attrs["args"]]


@target("numpy.multiply")
def _multiply(e: Emit, node: Node, g: Node) -> Sequence[Pull | None]:
    a, b = _given(node)

    def pull_of(operand: Operand) -> Pull | None:
        if not isinstance(operand, Node):
            return None
        others = [b] if operand is a else []
        others += [a] if operand is b else []

        def pull() -> Node:
            parts = [e.sum_to(e.scaled(g, other), operand.tensor.shape) for other in others]
            return parts[0] if len(parts) == 1 else e.add(*parts)

        return pull

    return [pull_of(operand) if node.operands.index(operand) == i else None for i, operand in enumerate(node.operands)]


@target("numpy.power")
def _power(e: Emit, node: Node, g: Node) -> Sequence[Pull | None]:
    base, exponent = _given(node)

    def to_base() -> Node:
        # 0 where the exponent is 0, also at the base 0.
        if not isinstance(exponent, Node):
            if exponent == 0:
                return e.full(base, 0.0)
            partial, given = e.numpy(np.power, base, exponent - 1), g
        else:
            partial = e.numpy(np.power, base, e.subtract(exponent, 1.0))
            given = e.where(e(ops.EQUAL, exponent, 0.0), 0.0, g)
        return e.sum_to(e.scaled(given, e.multiply(partial, exponent)), base.tensor.shape)

    def to_exponent() -> Node:
        # 0 at the base 0, where the logarithm is infinite.
        zero = e(ops.EQUAL, base, 0.0) if isinstance(base, Node) else None
        logarithm = e.numpy(np.log, base) if isinstance(base, Node) else cmath.log(base) if base else 0.0
        partial = e.multiply(node, logarithm if isinstance(logarithm, Node) else e.full(node, logarithm, ()))
        given = g if zero is None else e.where(zero, 0.0, g)
        return e.sum_to(e.scaled(given, partial), exponent.tensor.shape)

    both = [pull for operand, pull in ((base, to_base), (exponent, to_exponent)) if isinstance(operand, Node)]
    if base is exponent:
        return [lambda: e.add(to_base(), to_exponent()), *(None for _ in node.operands[1:])]
    return both
