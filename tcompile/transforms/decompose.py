"""Decomposition of means, variances, clips and positions of extrema into primitive operations.

Input: a graph.
Output: one without ``mean``, ``var``, ``std`` and ``clip``, wherever their parts have the same bits, and without
``argmax`` and ``argmin`` where their parts are faster.
Why: backends fuse the parts with their neighbours.

The order of the arithmetic and the dtype of each step are NumPy's: a sum, a division by the count as float64, the
deviations, their squares, their sum.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tcompile.errors import GraphError
from tcompile.graph import Graph, Node, Operand, Size, ops
from tcompile.graph.dtypes import DType
from tcompile.graph.op import Op
from tcompile.graph.ops import apply
from tcompile.graph.sizes import SymInt, UnprovableSizeError, hint, product
from tcompile.transforms.rewrite import rewrite, same_type

_EXACT_IN_FLOAT32 = 1 << 24
_MEANS = ("float32", "float64", "complex64", "complex128")
_STATISTICS = (ops.MEAN, ops.VAR, ops.STD)
_POSITIONS = {ops.ARGMAX: ops.MAX, ops.ARGMIN: ops.MIN}
COMPOSED = frozenset((*_STATISTICS, ops.CLIP, *_POSITIONS))
# NumPy searches contiguous rows for an extremum in one pass; the decomposition takes two. It is faster in rows of at
# most so many elements, and where a library call takes longer than so many elements of one.
_SHORT, _FEW = 32, 4096


def decompose(graph: Graph) -> Graph:
    """Decomposes means, variances, standard deviations, clips and positions of extrema."""
    return rewrite(graph, _rule, decompose, lambda node: node.op in COMPOSED)


def _rule(result: Graph, node: Node, operands: tuple[Operand, ...]) -> Node | None:
    build: Callable[[_Parts, Node, Node, tuple[Operand, ...]], Node | None]
    if node.op in _STATISTICS:
        # Half precision accumulates in other dtypes, and complex numbers have other squares.
        if node.tensor.dtype.name not in (_MEANS if node.op is ops.MEAN else ("float32", "float64")):
            return None
        build = _statistic
    elif node.op is ops.CLIP:
        build = _clip
    elif node.op in _POSITIONS:
        build = _position
    else:
        return None
    draft = Graph(result.name, result.env, scratch=result.scratch)
    x = operands[0]
    if not isinstance(x, Node):
        return None
    try:
        made = build(_Parts(draft, node), draft.input("x", x.tensor), node, operands)
    except (GraphError, UnprovableSizeError):
        return None
    if made is None or not same_type(made.type, node.type):  # in another memory order: a broadcast operand
        return None
    built = build(_Parts(result, node), x, node, operands)
    if built is not None:
        built.type = node.type
    return built


class _Parts:
    """Adds the parts of one node at its place."""

    def __init__(self, graph: Graph, node: Node) -> None:
        self.graph, self.node = graph, node

    def __call__(self, op: Op | str, *operands: Operand, **attrs: Any) -> Node:
        return apply(self.graph, op, *operands, location=self.node.location, **attrs)


def _statistic(op: _Parts, x: Node, node: Node, operands: tuple[Operand, ...]) -> Node:
    axis, keepdims = node.attrs["axis"], node.attrs["keepdims"]
    count = product(x.tensor.shape[i] for i in axis)
    if node.op is ops.MEAN:
        return _divided(op, op("sum", x, axis=axis, keepdims=keepdims), count, node.tensor.dtype)
    mean = _divided(op, op("sum", x, axis=axis, keepdims=True), count, node.tensor.dtype)
    squares = op("square", op("subtract", x, mean))
    total = op("sum", squares, axis=axis, keepdims=keepdims)
    variance = _divided(op, total, _freedom(count, node.attrs["correction"]), node.tensor.dtype)
    return op("sqrt", variance) if node.op is ops.STD else variance


def _freedom(count: Size, correction: float) -> Size | float:
    if isinstance(correction, int):
        return count - correction
    if isinstance(count, SymInt):
        raise GraphError("a symbolic count minus a float is no size")
    return count - correction


def _divided(op: _Parts, total: Node, count: Size | float, dtype: DType) -> Node:
    """``total / count``, which NumPy computes in float64 for a float32 total, complex ones likewise.

    For a count that float32 holds exactly the quotient rounded twice is the quotient rounded once (float64 has more
    than twice the digits), so it is computed in float32 there. Complex division rounds several times.
    """
    whole = isinstance(count, int) and 0 < count <= _EXACT_IN_FLOAT32 and dtype.kind == "f"
    if dtype.itemsize * (1 if dtype.kind == "f" else 0.5) == 8 or whole:
        return op("divide", total, float(count) if not isinstance(count, SymInt) else count)
    wide = op("astype", total, dtype="float64" if dtype.kind == "f" else "complex128")
    quotient = op("divide", wide, count if isinstance(count, SymInt) else float(count))
    return op("astype", quotient, dtype=dtype.name)


def _position(op: _Parts, x: Node, node: Node, operands: tuple[Operand, ...]) -> Node | None:
    """The first index of the extremum, or of a NaN."""
    type, axis = x.tensor, node.attrs["axis"]
    count = type.shape[axis]
    in_one_piece = type.layout.order[-1] == axis
    if type.dtype.kind not in "iuf" or type.dtype.name == "float16" or hint(count) >= 1 << 31:
        return None
    size = product(type.shape)
    is_iteration = op.graph.scratch and hint(size) <= _FEW  # all iterations run in machine code, or each in Python
    if in_one_piece and not (is_iteration or _at_most(count, _SHORT) or _at_most(size, _FEW)):
        return None
    extremum = op(_POSITIONS[node.op], x, axis=(axis,), keepdims=True)
    found = op("equal", x, extremum)
    if type.dtype.kind == "f":
        found = op("logical_or", found, op("isnan", x))
    places = op("arange", start=0, stop=count, step=1, dtype="int64" if isinstance(count, SymInt) else "int32")
    places = op("reshape", places, shape=tuple(n if i == axis else 1 for i, n in enumerate(type.shape)))
    first = op("min", op("where", found, places, count), axis=(axis,), keepdims=node.attrs["keepdims"])
    return first if first.tensor.dtype == node.tensor.dtype else op("astype", first, dtype=node.tensor.dtype.name)


def _at_most(size: Size, most: int) -> bool:
    """Whether a size is no larger, in all calls: an open one may have any value in the next call."""
    high = size.bounds()[1] if isinstance(size, SymInt) else size
    return high is not None and high <= most


def _clip(op: _Parts, x: Node, node: Node, operands: tuple[Operand, ...]) -> Node | None:
    """Comparisons and selections; NaNs and equal zeros keep the first operand, as NumPy does with single bounds."""
    low, high = operands[1:]
    if any(isinstance(bound, Node | SymInt) or bound != bound for bound in (low, high)):
        return None
    at_least = op("where", op("less", x, low), low, x)
    return op("where", op("greater", at_least, high), high, at_least)
