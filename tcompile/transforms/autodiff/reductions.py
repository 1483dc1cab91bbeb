"""Derivatives of reductions, cumulative sums and products of matrices.

Input: a node and its result's cotangent.
Output: the operands' cotangents.
Why: a sum's transpose is a broadcast, a product's is a product; extremes hand the cotangent to the elements that
attained them, in equal parts.
"""

from __future__ import annotations

from collections.abc import Sequence

from tcompile.graph import ops
from tcompile.graph.ir import Graph, Node
from tcompile.graph.sizes import always, product
from tcompile.graph.types import ScalarType, TensorType
from tcompile.transforms.autodiff.table import Pull, complex_too, constant, derivative
from tcompile.transforms.emit import Emit

constant(ops.ANY, ops.ALL, ops.ARGMAX, ops.ARGMIN)
complex_too(
    ops.SUM, ops.MEAN, ops.PROD, ops.VAR, ops.STD, ops.CUMULATIVE_SUM, ops.CUMULATIVE_PROD, ops.MATMUL,
)  # fmt: skip


def _axes(node: Node) -> tuple[int, ...]:
    axis = node.attrs["axis"]
    return axis if isinstance(axis, tuple) else (axis,)


def _back(e: Emit, node: Node, value: Node) -> Node:
    """A reduction's result, or its cotangent, beside the elements: axes of size one for those that were reduced."""
    return e.expanded(value, node.inputs[0].tensor.shape, _axes(node))


@derivative(ops.SUM)
def _sum(e: Emit, node: Node, g: Node) -> Sequence[Pull | None]:
    return [lambda: e.broadcast(_back(e, node, g), node.inputs[0].tensor.shape)]


@derivative(ops.MEAN)
def _mean(e: Emit, node: Node, g: Node) -> Sequence[Pull | None]:
    shape = node.inputs[0].tensor.shape
    count = product(shape[axis] for axis in _axes(node))
    return [lambda: e.broadcast(e.divide(_back(e, node, g), count), shape)]


@derivative(ops.PROD)
def _prod(e: Emit, node: Node, g: Node) -> Sequence[Pull | None]:
    x, axes = node.inputs[0], _axes(node)

    def pull() -> Node:
        if not always(lambda: x.tensor.size > 0):
            return e.full(x, 0.0)
        # The product of all others, by the products of those before and of those after: right beside zeros too.
        shape = x.tensor.shape
        kept = [axis for axis in range(len(shape)) if axis not in axes]
        order = [*kept, *axes]
        turned = e.permute(x, order)
        count = product(shape[axis] for axis in axes)
        flat = e.reshape(turned, [*(shape[axis] for axis in kept), count])
        last = len(kept)
        others = e.multiply(_before(e, flat, last), e(ops.FLIP, _before(e, e(ops.FLIP, flat, axis=(last,)), last),
                                                      axis=(last,)))  # fmt: skip
        back = e.permute(e.reshape(others, turned.tensor.shape), [order.index(i) for i in range(len(order))])
        return e.multiply(_back(e, node, g), back)

    return [pull]


def _before(e: Emit, x: Node, axis: int) -> Node:
    """The product of the elements before each one, along the last axis."""
    shape = x.tensor.shape
    key = (*(slice(None),) * axis, slice(0, shape[axis] - 1))
    ones = e.full(x, 1.0, [*shape[:axis], 1])
    return e(ops.CONCAT, ones, e(ops.CUMULATIVE_PROD, e(ops.INDEX, x, key=key), axis=axis), axis=axis)


@derivative(ops.MAX, ops.MIN)
def _extreme(e: Emit, node: Node, g: Node) -> Sequence[Pull | None]:
    x = node.inputs[0]

    def pull() -> Node:
        attained = e(ops.EQUAL, x, _back(e, node, node))
        counts = e.cast(attained, node.tensor.dtype)
        many = e(ops.SUM, counts, axis=_axes(node), keepdims=True)
        return e.where(attained, e.divide(_back(e, node, g), many), 0.0)

    return [pull]


def _centred(e: Emit, node: Node) -> Node:
    x = node.inputs[0]
    mean = e(ops.MEAN, x, axis=_axes(node), keepdims=True)
    return e.subtract(x, mean)


@derivative(ops.VAR)
def _var(e: Emit, node: Node, g: Node) -> Sequence[Pull | None]:
    count = product(node.inputs[0].tensor.shape[axis] for axis in _axes(node))

    def pull() -> Node:
        scale = e.divide(e.multiply(_back(e, node, g), 2.0), count - node.attrs["correction"])
        return e.multiply(scale, e.conj(_centred(e, node)))

    return [pull]


@derivative(ops.STD)
def _std(e: Emit, node: Node, g: Node) -> Sequence[Pull | None]:
    count = product(node.inputs[0].tensor.shape[axis] for axis in _axes(node))

    def pull() -> Node:
        below = e.multiply(_back(e, node, node), count - node.attrs["correction"])
        return e.multiply(e.divide(_back(e, node, g), below), e.conj(_centred(e, node)))

    return [pull]


@derivative(ops.CUMULATIVE_SUM)
def _cumulative_sum(e: Emit, node: Node, g: Node) -> Sequence[Pull | None]:
    axis = node.attrs["axis"] % max(node.tensor.ndim, 1)
    return [lambda: e(ops.FLIP, e(ops.CUMULATIVE_SUM, e(ops.FLIP, g, axis=(axis,)), axis=axis), axis=(axis,))]


@derivative(ops.CUMULATIVE_PROD)
def _cumulative_prod(e: Emit, node: Node, g: Node) -> Sequence[Pull | None]:
    """From the end, ``r[i] = g[i] + x[i + 1] * r[i + 1]``; the cotangent is ``r[i]`` times the product before ``i``."""
    x, axis = node.inputs[0], node.attrs["axis"] % max(node.tensor.ndim, 1)

    def pull() -> Node:
        if not always(lambda: x.tensor.size > 0):
            return e.full(x, 0.0)
        order = [axis, *(i for i in range(x.tensor.ndim) if i != axis)]
        rows, cotangents = e(ops.COPY_C, e.permute(x, order)), e(ops.COPY_C, e.permute(g, order))
        size, *rest = rows.tensor.shape
        after = e(ops.CONCAT, e(ops.INDEX, rows, key=(slice(1, None),)), e.full(x, 0.0, [1, *rest]), axis=0)
        before = e(ops.CONCAT, e.full(x, 1.0, [1, *rest]), e(ops.INDEX, e(ops.CUMULATIVE_PROD, rows, axis=0),
                                                              key=(slice(0, size - 1),)), axis=0)  # fmt: skip
        sums = _recurrence(e, e(ops.COPY_C, after), cotangents)
        return e.permute(e.multiply(sums, before), [order.index(i) for i in range(len(order))])

    return [pull]


def _recurrence(e: Emit, factors: Node, terms: Node) -> Node:
    """From the last row to the first, ``r = terms[i] + factors[i] * r``, all of them."""
    size, *rest = terms.tensor.shape
    graph = Graph("recurrence", e.graph.env, scratch=True)
    number = graph.env.counter(size - 1)
    graph.input("iteration", ScalarType("int", number))
    inside = Emit(graph, e.library)
    row_type = TensorType(terms.tensor.dtype, tuple(rest))
    made, last, given, added = (
        graph.input(name, type)
        for name, type in (
            ("made", terms.tensor),
            ("last", row_type),
            ("factors", terms.tensor),
            ("terms", terms.tensor),
        )
    )
    key = (size - 1 - number,)
    row = inside.add(inside(ops.INDEX, added, key=key), inside.multiply(inside(ops.INDEX, given, key=key), last))
    stored = inside(ops.ASSIGN, made, row, path=((ops.INDEX.name, (("key", key),)),))
    graph.outputs = [stored, row, given, added]
    graph.updates = {0: 1}
    start = [e.full(terms, 0.0), e.full(terms, 0.0, rest), factors, terms]
    types = (terms.tensor, row_type, terms.tensor, terms.tensor)
    loop = e.graph.append(ops.FORI_LOOP, [0, size, *start], {}, types, location=e.location, regions=(graph,))
    loop.silent = True
    return e.graph.append(ops.GET, [loop], {"index": 0}, terms.tensor, location=e.location)


@derivative(ops.MATMUL)
def _matmul(e: Emit, node: Node, g: Node) -> Sequence[Pull | None]:
    a, b = node.inputs
    if 1 in (a.tensor.ndim, b.tensor.ndim) and max(a.tensor.ndim, b.tensor.ndim) <= 2:
        return _product_with_vector(e, node, g)
    a2 = e.reshape(a, [1, *a.tensor.shape]) if a.tensor.ndim == 1 else a
    b2 = e.reshape(b, [*b.tensor.shape, 1]) if b.tensor.ndim == 1 else b

    def cotangent() -> Node:
        """``g`` with the axes of a row and of a column."""
        shape = list(g.tensor.shape)
        if b.tensor.ndim == 1:
            shape = [*shape, 1]
        if a.tensor.ndim == 1:
            shape = [*shape[:-1], 1, shape[-1]]
        return e.reshape(g, shape)

    def to_a() -> Node:
        whole = e(ops.MATMUL, cotangent(), e.cast(_transposed(e, b2), g.tensor.dtype))
        return e.reshape(e.sum_to(whole, a2.tensor.shape), a.tensor.shape)

    def to_b() -> Node:
        whole = e(ops.MATMUL, e.cast(_transposed(e, a2), g.tensor.dtype), cotangent())
        return e.reshape(e.sum_to(whole, b2.tensor.shape), b.tensor.shape)

    return [to_a, to_b]


def _product_with_vector(e: Emit, node: Node, g: Node) -> Sequence[Pull | None]:
    """The product of a vector with a vector or a matrix: outer products are multiplications, which fuse."""
    a, b = (e.cast(operand, g.tensor.dtype) for operand in node.inputs)
    if a.tensor.ndim == b.tensor.ndim:
        return [lambda: e.multiply(g, b), lambda: e.multiply(g, a)]

    def outer(column: Node, row: Node) -> Node:
        return e.multiply(e.reshape(column, [*column.tensor.shape, 1]), e.reshape(row, [1, *row.tensor.shape]))

    if a.tensor.ndim == 2:
        return [lambda: outer(g, b), lambda: e(ops.MATMUL, _transposed(e, a), g)]
    return [lambda: e(ops.MATMUL, b, g), lambda: outer(a, g)]


def _transposed(e: Emit, x: Node) -> Node:
    ndim = x.tensor.ndim
    return e.permute(x, [*range(ndim - 2), ndim - 1, ndim - 2])
