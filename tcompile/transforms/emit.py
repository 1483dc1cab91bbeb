"""Adding operations to a graph by rules: derivatives (``autodiff``) and batches (``batching``).

Input: a graph, and for each operation its operands.
Output: nodes at the place in the user's code of the node that a rule transforms.
Why: rules are formulas; which types, broadcasts and memory orders they need is worked out here, once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias
from weakref import WeakKeyDictionary, WeakSet

import numpy as np

from tcompile.graph import ops
from tcompile.graph.build import apply
from tcompile.graph.ir import Graph, Location, Node, Operand
from tcompile.graph.op import OPS, Op
from tcompile.graph.ops.writing import Path
from tcompile.graph.sizes import Size, is_one, same_shape
from tcompile.graph.types import TensorType
from tcompile.records import dataclass

Library: TypeAlias = Callable[
    [Graph, Location | None, Callable[..., Any], tuple[Any, ...], dict[str, Any]], Sequence[Node]
]


# Functions that kernels compute of real numbers alone: of complex ones they are library calls.
REAL_IN_KERNELS = (
    ops.EXP, ops.EXP2, ops.EXPM1, ops.LOG, ops.LOG1P, ops.LOG2, ops.LOG10, ops.SQRT, ops.SIN, ops.COS, ops.TAN,
    ops.ASIN, ops.ACOS, ops.ATAN, ops.SINH, ops.COSH, ops.TANH, ops.ASINH, ops.ACOSH, ops.ATANH,
)  # fmt: skip
STOPPED: WeakSet[Node] = WeakSet()  # nodes of which derivatives see no dependence (``stop_gradient``)


@dataclass(eq=False)
class CustomRule:
    """The user's rule for some nodes, which show a function's results.

    ``pull`` adds the cotangents of ``inputs``, from those of ``results``.
    """

    inputs: list[Node]
    results: list[Node]
    pull: Callable[[Sequence[Node]], Sequence[Node | None]]


CUSTOM: WeakKeyDictionary[Node, CustomRule] = WeakKeyDictionary()  # by each of the results


class Emit:
    """Adds nodes to ``graph``, all of them at ``location``. ``library`` adds calls of NumPy's functions.

    ``silent``: floating-point conditions that they meet are not reported.
    """

    def __init__(self, graph: Graph, library: Library, silent: bool = True) -> None:
        self.graph = graph
        self.library = library
        self.silent = silent
        self.location: Location | None = None

    def __call__(self, op: Op, *operands: Operand, **attrs: Any) -> Node:
        """The node of ``op`` on these operands. Raises GraphError where they do not fit."""
        if op in REAL_IN_KERNELS and any(isinstance(o, Node) and is_complex(o) for o in operands):
            return self.numpy(op.reference(np), *operands)
        made = apply(self.graph, op, *operands, location=self.location, **attrs)
        made.silent = self.silent
        return made

    def numpy(self, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Node:
        """What a function of NumPy gives of nodes and constants, in whichever way the frontend expresses it."""
        (made,) = self.several(function, *args, **kwargs)
        return made

    def several(self, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Sequence[Node]:
        """The same of a function with several results."""
        before = len(self.graph.nodes)
        made = self.library(self.graph, self.location, function, args, kwargs)
        for node in self.graph.nodes[before:]:
            node.silent = self.silent
        return made

    # -- arithmetic ------------------------------------------------------------------------------------------------
    def add(self, a: Operand, b: Operand) -> Node:
        """``a + b``."""
        return self(ops.ADD, *self._alike(a, b))

    def subtract(self, a: Operand, b: Operand) -> Node:
        """``a - b``."""
        return self(ops.SUBTRACT, *self._alike(a, b))

    def multiply(self, a: Operand, b: Operand) -> Node:
        """``a * b``."""
        return self._of_filled(ops.MULTIPLY, a, b) or self(ops.MULTIPLY, *self._alike(a, b))

    def divide(self, a: Operand, b: Operand) -> Node:
        """``a / b``."""
        return self._of_filled(ops.DIVIDE, a, b) or self(ops.DIVIDE, *self._alike(a, b))

    def _of_filled(self, op: Op, a: Operand, b: Operand) -> Node | None:
        """The operation on an array that is filled with one number, and another number; None for other operands."""
        value = _value(a) if isinstance(a, Node) else None
        if value is None or type(b) not in (int, float) or not isinstance(a, Node):
            return None
        with np.errstate(all="ignore"):
            made = op.reference(np)(a.tensor.dtype.type(value), b)
        return self.full(a, float(made)) if np.isfinite(made) and made.dtype == a.tensor.dtype else None

    def _alike(self, *operands: Operand) -> Sequence[Operand]:
        """Operands of one dtype: real ones beside complex ones become complex."""
        tensors = [o for o in operands if isinstance(o, Node) and isinstance(o.type, TensorType)]
        wide = next((o.tensor.dtype for o in tensors if o.tensor.dtype.kind == "c"), None)
        if wide is None:
            return operands
        return [self.cast(o, wide) if o in tensors else o for o in operands]  # type: ignore[arg-type]

    def negative(self, a: Operand) -> Node:
        """``-a``."""
        return self(ops.NEGATIVE, a)

    def conj(self, a: Node) -> Node:
        """``a.conj()``."""
        return self(ops.CONJ, a) if is_complex(a) else a

    def where(self, condition: Node, a: Operand, b: Operand) -> Node:
        """``a`` where the condition holds, else ``b``."""
        return self(ops.WHERE, condition, a, b)

    def scaled(self, g: Node, factor: Operand) -> Node:
        """``g * factor``: a cotangent times a partial derivative.

        Where ``g`` is zero because a ``where`` took its other side, the product is zero too, though the factor may be
        infinite or NaN there: the multiplication moves inside of the ``where``.
        """
        return self.through_where(g, lambda part: self._times(part, factor))

    def _times(self, g: Node, factor: Operand) -> Node:
        value = _value(g)
        if value is None or not isinstance(factor, Node) or not isinstance(factor.type, TensorType):
            return self.multiply(g, factor)
        if factor.tensor.dtype != g.tensor.dtype or not same_shape(factor.tensor.shape, g.tensor.shape):
            return self.multiply(g, factor)
        return factor if value == 1.0 else self.multiply(value, factor)

    def through_where(self, g: Node, formula: Any) -> Node:
        """``formula(g)``, linear in ``g``, which stays zero where a ``where`` took its other side."""
        if g.op is ops.WHERE:
            condition, yes, no = g.operands
            assert isinstance(condition, Node)
            if isinstance(yes, Node) and _is_zero(no):
                return self.where(condition, self.through_where(yes, formula), 0.0)
            if isinstance(no, Node) and _is_zero(yes):
                return self.where(condition, 0.0, self.through_where(no, formula))
        made: Node = formula(g)
        return made

    # -- shapes ----------------------------------------------------------------------------------------------------
    def full(self, like: Node, value: complex, shape: Sequence[Size] | None = None) -> Node:
        """An array of one value, of the dtype and (by default) the shape of ``like``."""
        sizes = like.tensor.shape if shape is None else tuple(shape)
        return self(ops.FULL, shape=sizes, fill_value=value, dtype=like.tensor.dtype.name)

    def zeros(self, type: TensorType) -> Node:
        """An array of zeros, in C order."""
        return self(ops.FULL, shape=type.shape, fill_value=0.0, dtype=type.dtype.name)

    def reshape(self, x: Node, shape: Sequence[Size]) -> Node:
        """``x`` in another shape, whatever order its elements lie in."""
        if same_shape(x.tensor.shape, tuple(shape)):
            return x
        value = _value(x)
        if value is not None:
            return self.full(x, value, shape)
        if not x.tensor.c_contiguous:
            x = self(ops.COPY_C, x)
        return self(ops.RESHAPE, x, shape=tuple(shape))

    def broadcast(self, x: Node, shape: Sequence[Size]) -> Node:
        """``x`` broadcast to a shape."""
        if same_shape(x.tensor.shape, tuple(shape)):
            return x
        value = _value(x)
        return self(ops.BROADCAST_TO, x, shape=tuple(shape)) if value is None else self.full(x, value, shape)

    def sum_to(self, g: Node, shape: Sequence[Size]) -> Node:
        """The transpose of a broadcast: the sum of ``g`` over the axes along which ``shape`` was repeated."""
        lead = g.tensor.ndim - len(shape)
        axes = [
            axis
            for axis, size in enumerate(g.tensor.shape)
            if axis < lead or (is_one(shape[axis - lead]) and not is_one(size))
        ]
        if axes:
            g = self(ops.SUM, g, axis=tuple(axes), keepdims=False)
        return self.reshape(g, shape)

    def expanded(self, g: Node, shape: Sequence[Size], axis: Sequence[int]) -> Node:
        """What a reduction gave, with the axes that it reduced as axes of size one."""
        return self.reshape(g, [1 if i in axis else n for i, n in enumerate(shape)])

    def permute(self, x: Node, axes: Sequence[int]) -> Node:
        """``x`` with its axes in another order."""
        return x if list(axes) == list(range(len(axes))) else self(ops.PERMUTE_DIMS, x, axes=tuple(axes))

    def in_order(self, x: Node, like: TensorType) -> Node:
        """``x``, which lies in C order, with its axes in the memory order of ``like``."""
        if like.in_c_order:
            return x
        order = like.layout.order
        back = [order.index(axis) for axis in range(like.ndim)]
        return self.permute(self(ops.COPY_C, self.permute(x, order)), back)

    def cast(self, x: Node, dtype: np.dtype[Any]) -> Node:
        """``x`` in another dtype: the real part, where that is none of complex numbers."""
        if x.tensor.dtype.kind == "c" and dtype.kind != "c":
            x = self(ops.COPY_C, self(ops.REAL, x))
        return x if x.tensor.dtype == dtype else self(ops.ASTYPE, x, dtype=dtype.name)

    def shown(self, x: Node, path: Path) -> Node:
        """The part of ``x`` that a path of view ops shows."""
        for name, attrs in path:
            x = self(OPS[name], x, **dict(attrs))
        return x


def _value(x: Node) -> float | None:
    """The number that an array is filled with: the cotangent of a sum is such an array."""
    value = x.attrs["fill_value"] if x.op is ops.FULL else None
    return value if type(value) is float else None


def _is_zero(operand: Operand) -> bool:
    return not isinstance(operand, Node) and type(operand) in (int, float) and operand == 0


def is_complex(node: Node) -> bool:
    """Whether a node has complex numbers."""
    return isinstance(node.type, TensorType) and node.type.dtype.kind == "c"


def is_float(node: Node) -> bool:
    """Whether a node has a dtype in which derivatives are taken."""
    return isinstance(node.type, TensorType) and node.type.dtype.kind in "fc"


__all__ = ["CUSTOM", "REAL_IN_KERNELS", "STOPPED", "CustomRule", "Emit", "Library", "is_complex", "is_float"]
