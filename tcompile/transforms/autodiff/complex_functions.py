"""Derivatives of functions of complex numbers, which are library calls.

Input: a call of one of NumPy's ufuncs of complex operands, and its result's cotangent.
Output: the operands' cotangents.
Why: kernels compute real functions alone, so those of complex numbers are not rows of the op table. Holomorphic
functions have the rules of the real ones (``table`` says why).
"""

from __future__ import annotations

import cmath
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tcompile.graph import ops
from tcompile.graph.ir import Node, Operand
from tcompile.graph.ops.opaque import Slot
from tcompile.transforms.autodiff.calls import target
from tcompile.transforms.autodiff.table import COMPLEX_CALLS, Pull
from tcompile.transforms.emit import Emit
from tcompile.transforms.library_calls import argument


def _square(e: Emit, x: Node) -> Node:
    return e.multiply(x, x)


def _over(e: Emit, x: Node) -> Node:
    return e.divide(1.0, x)


def _root(e: Emit, x: Node) -> Node:
    return e.numpy(np.sqrt, x)


# The partial derivatives, of the result ``y`` and the operand ``x``.
_PARTIALS: dict[str, Callable[[Emit, Node, Node], Node]] = {
    "exp": lambda e, y, x: y,
    "exp2": lambda e, y, x: e.multiply(y, math.log(2.0)),
    "expm1": lambda e, y, x: e.add(y, 1.0),
    "log": lambda e, y, x: _over(e, x),
    "log1p": lambda e, y, x: _over(e, e.add(x, 1.0)),
    "log2": lambda e, y, x: _over(e, e.multiply(x, math.log(2.0))),
    "log10": lambda e, y, x: _over(e, e.multiply(x, math.log(10.0))),
    "sqrt": lambda e, y, x: e.divide(0.5, y),
    "sin": lambda e, y, x: e.numpy(np.cos, x),
    "cos": lambda e, y, x: e.negative(e.numpy(np.sin, x)),
    "tan": lambda e, y, x: e.add(_square(e, y), 1.0),
    "arcsin": lambda e, y, x: _over(e, _root(e, e.subtract(1.0, _square(e, x)))),
    "arccos": lambda e, y, x: e.negative(_over(e, _root(e, e.subtract(1.0, _square(e, x))))),
    "arctan": lambda e, y, x: _over(e, e.add(_square(e, x), 1.0)),
    "sinh": lambda e, y, x: e.numpy(np.cosh, x),
    "cosh": lambda e, y, x: e.numpy(np.sinh, x),
    "tanh": lambda e, y, x: e.subtract(1.0, _square(e, y)),
    "arcsinh": lambda e, y, x: _over(e, _root(e, e.add(_square(e, x), 1.0))),
    "arccosh": lambda e, y, x: _over(e, e.multiply(_root(e, e.subtract(x, 1.0)), _root(e, e.add(x, 1.0)))),
    "arctanh": lambda e, y, x: _over(e, e.subtract(1.0, _square(e, x))),
}


def _unary(name: str, partial: Callable[[Emit, Node, Node], Node]) -> None:
    @target(f"numpy.{name}")
    def rule(e: Emit, node: Node, g: Node) -> Sequence[Pull | None]:
        return [lambda: e.scaled(g, partial(e, node, node.inputs[0]))]


for _name, _partial in _PARTIALS.items():
    _unary(_name, _partial)
COMPLEX_CALLS.update(f"numpy.{name}" for name in (*_PARTIALS, "cumsum", "multiply", "power"))


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
