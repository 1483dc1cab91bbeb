"""Rows of views and of joined tensors.

Input: nodes, sizes and axes.
Output: nodes.
Why: a view costs nothing in a kernel.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tcompile.errors import GraphError
from tcompile.frontends.torch.lowering import Builder, NoLowering, lowering, sizes
from tcompile.graph import Node


@lowering("aten.view.default")
def reshape(b: Builder, x: Node, size: Any) -> Node:
    """The same elements in another shape."""
    if x.tensor.shape == b.shape:
        return x
    try:
        return b.op("reshape", x, shape=b.shape)
    except GraphError:  # a view or a copy: run time would say
        return b.op("reshape", b.op("ordered", x, axes=tuple(range(x.tensor.ndim))), shape=b.shape)


@lowering("aten.permute.default")
def permute(b: Builder, x: Node, dims: Sequence[int]) -> Node:
    """The axes in another order."""
    return b.op("permute_dims", x, axes=tuple(d % x.tensor.ndim for d in dims))


@lowering("aten.expand.default")
def expand(b: Builder, x: Node, size: Any, *, implicit: bool = False) -> Node:
    """Broadcast to a shape."""
    return x if x.tensor.shape == b.shape else b.op("broadcast_to", x, shape=b.shape)


@lowering("aten.squeeze.dims")
def squeeze(b: Builder, x: Node, dim: Any) -> Node:
    """Without axes of size one."""
    return x if x.tensor.shape == b.shape else b.op("reshape", x, shape=b.shape)


@lowering("aten.unsqueeze.default")
def unsqueeze(b: Builder, x: Node, dim: int) -> Node:
    """With another axis of size one."""
    return b.op("expand_dims", x, axis=dim % (x.tensor.ndim + 1))


@lowering("aten.slice.Tensor")
def slice_(b: Builder, x: Node, dim: int = 0, start: int | None = None, end: int | None = None, step: int = 1) -> Node:
    """A slice along an axis."""
    axis = dim % x.tensor.ndim
    begin, stop, _ = slice(start, end, step).indices(sizes(x)[axis])
    if (begin, step) == (0, 1) and stop == x.tensor.shape[axis]:
        return x
    return b.op("index", x, key=_key(x, axis, slice(begin, max(begin, stop), step)))


def _key(x: Node, axis: int, item: Any) -> tuple[Any, ...]:
    return (*(slice(None) for _ in range(axis)), item, *(slice(None) for _ in range(axis + 1, x.tensor.ndim)))


@lowering("aten.select.int")
def select(b: Builder, x: Node, dim: int, index: int) -> Node:
    """One place along an axis."""
    axis = dim % x.tensor.ndim
    return b.op("index", x, key=_key(x, axis, index % sizes(x)[axis]))


@lowering("aten.split_with_sizes.default")
def split(b: Builder, x: Node, lengths: Any, dim: int = 0) -> tuple[Node, ...]:
    """Consecutive parts along an axis."""
    axis, begin, parts = dim % x.tensor.ndim, 0, []
    for fake in b.expected:
        end = begin + int(fake.shape[axis])
        parts.append(b.op("index", x, key=_key(x, axis, slice(begin, end, 1))))
        begin = end
    return tuple(parts)


@lowering("aten.unbind.int")
def unbind(b: Builder, x: Node, dim: int = 0) -> tuple[Node, ...]:
    """Each place along an axis."""
    axis = dim % x.tensor.ndim
    return tuple(b.op("index", x, key=_key(x, axis, i)) for i in range(len(b.expected)))


@lowering("aten.alias.default", "aten.detach.default", "aten.lift_fresh_copy.default")
def alias(b: Builder, x: Node) -> Node:
    """The same tensor."""
    return x


@lowering("aten.clone.default")
def clone(b: Builder, x: Node, **options: Any) -> Node:
    """The same elements in the memory order that is asked for; a result of the graph gets memory of its own."""
    return b.ordered_as(x, b.expected)


@lowering("aten.flip.default")
def flip(b: Builder, x: Node, dims: Sequence[int]) -> Node:
    """The order along axes reversed."""
    if not x.tensor.ndim or not dims:
        return x
    return b.op("flip", x, axis=tuple(sorted(d % x.tensor.ndim for d in dims)))


@lowering("aten.cat.default")
def cat(b: Builder, parts: Sequence[Node], dim: int = 0) -> Node:
    """Tensors joined along an axis; those of no elements and one axis do not count."""
    kept = [x for x in parts if x.tensor.shape != (0,) or len(b.shape) == 1]
    if any(x.tensor.ndim != len(b.shape) for x in kept) or not kept:
        raise NoLowering("tensors of other ranks")
    return b.op("concat", *(b.node(x, b.dtype) for x in kept), axis=dim % len(b.shape))


@lowering("aten.slice_scatter.default")
def slice_scatter(
    b: Builder, x: Node, part: Node, dim: int = 0, start: int | None = None, end: int | None = None, step: int = 1
) -> Node:
    """``x`` with a slice replaced."""
    axis = dim % x.tensor.ndim
    begin, stop, _ = slice(start, end, step).indices(sizes(x)[axis])
    key = _key(x, axis, slice(begin, max(begin, stop), step))
    whole = b.op("ordered", x, axes=tuple(range(x.tensor.ndim)))
    return b.op("assign", whole, b.node(part, x.tensor.dtype), path=(("index", (("key", key),)),))
