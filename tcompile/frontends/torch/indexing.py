"""Rows of indexing by tensors.

Input: nodes, and tensors of indices.
Output: nodes.
Why: gathers fuse with what is computed of them.

Only operations whose negative indices count from the end have rows: others raise there, which kernels do not.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tcompile.frontends.torch.lowering import Builder, NoLowering, lowering
from tcompile.graph import Node
from tcompile.graph.dtypes import kind_of


def _places(x: Node, indices: Sequence[Node | None]) -> tuple[tuple[int, ...], list[Node]]:
    """The axes that are indexed, and the indices."""
    axes = tuple(axis for axis, index in enumerate(indices) if index is not None)
    found = [index for index in indices if index is not None]
    if not found or any(kind_of(index.tensor.dtype) != "i" for index in found):
        raise NoLowering("a mask")
    return axes, found


def _order(rank: int, axes: tuple[int, ...], count: int) -> tuple[int, ...]:
    """The axes of a gather's result in PyTorch's order: those of the indices are where the indexed axes were.

    In a gather they come first; in PyTorch's result, too, where the indexed axes are not side by side.
    """
    first = axes[0] if axes == tuple(range(axes[0], axes[0] + len(axes))) else 0
    rest = list(range(count, count + rank - len(axes)))
    return (*rest[:first], *range(count), *rest[first:])


@lowering("aten.index.Tensor")
def index(b: Builder, x: Node, indices: Sequence[Node | None]) -> Node:
    """``x[indices]``."""
    axes, found = _places(x, indices)
    made = b.op("gather", x, *found, axes=axes)
    order = _order(x.tensor.ndim, axes, made.tensor.ndim - x.tensor.ndim + len(axes))
    return made if order == tuple(range(made.tensor.ndim)) else b.op("permute_dims", made, axes=order)


@lowering("aten.index_put.default")
def index_put(
    b: Builder, x: Node, indices: Sequence[Node | None], values: Node, accumulate: bool = False
) -> Node:  # fmt: skip
    """``x`` with values put, or added, where indices say."""
    axes, found = _places(x, indices)
    if x.tensor.dtype != values.tensor.dtype or kind_of(x.tensor.dtype) not in "iuf" or x.tensor.dtype.itemsize < 4:
        raise NoLowering("values of another dtype")
    order = _order(x.tensor.ndim, axes, max(index.tensor.ndim for index in found))
    missing = len(order) - values.tensor.ndim
    for _ in range(missing):
        values = b.op("expand_dims", values, axis=0)
    if order != tuple(range(len(order))):
        values = b.op("permute_dims", values, axes=tuple(order.index(axis) for axis in range(len(order))))
    whole = b.op("ordered", x, axes=tuple(range(x.tensor.ndim)))
    more: dict[str, Any] = {"ufunc": "add"} if accumulate else {}
    return b.op("combine" if accumulate else "scatter", whole, values, *found, axes=axes, path=(), **more)
