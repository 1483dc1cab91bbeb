"""Rows of reductions and scans.

Input: nodes and axes.
Output: nodes.
Why: reductions fuse with what comes before, and with what comes after along other axes.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch

from tcompile.frontends.torch.elementwise import _as_bool
from tcompile.frontends.torch.lowering import Builder, NoLowering, computing, lowering, sizes
from tcompile.frontends.torch.tensors import DTYPES
from tcompile.graph import Node
from tcompile.graph.dtypes import FLOAT64, DType, kind_of

Axes = Sequence[int] | int | None


def axes_of(x: Node, dim: Axes) -> tuple[int, ...]:
    """The axes that ``dim`` names, none of which may be missing: no axis means all."""
    ndim = x.tensor.ndim
    if dim is None or (not isinstance(dim, int) and not len(dim)):
        return tuple(range(ndim))
    return tuple(sorted(d % ndim if ndim else d for d in ([dim] if isinstance(dim, int) else dim)))


def _reduced(b: Builder, name: str, x: Node, dim: Axes, keepdim: bool, empty: bool = True) -> Node:
    """A reduction. ``empty``: it has a result where there are no elements."""
    if not x.tensor.ndim:
        return x
    axes = axes_of(x, dim)
    if not empty and not math.prod(sizes(x)[axis] for axis in axes):
        raise NoLowering("a reduction of no elements")
    return b.op(name, x, axis=axes, keepdims=bool(keepdim))


def total(b: Builder, x: Node, dim: Axes, keepdim: bool, dtype: DType) -> Node:
    """A sum in ``dtype``."""
    if kind_of(dtype) not in "iuf":
        raise NoLowering("a sum of complex numbers")
    return _reduced(b, "sum", b.node(x, dtype), dim, keepdim)


def mean_of(b: Builder, x: Node, dim: Axes, keepdim: bool) -> Node:
    """The mean of a float tensor, in its own dtype."""
    count = math.prod(sizes(x)[axis] for axis in axes_of(x, dim)) if x.tensor.ndim else 1
    made = total(b, x, dim, keepdim, x.tensor.dtype)
    return b.op("divide", made, float(count)) if count else b.full(b.shape, math.nan, x.tensor.dtype)


@lowering("aten.sum.dim_IntList")
def sum_(b: Builder, x: Node, dim: Axes = None, keepdim: bool = False, *, dtype: Any = None) -> Node:
    """The sum; of half precision in float32."""
    wide = computing(b) if kind_of(b.dtype) == "f" else b.dtype
    return b.result(total(b, x, dim, keepdim, wide))


@lowering("aten.mean.default", "aten.mean.dim")
def mean(b: Builder, x: Node, dim: Axes = None, keepdim: bool = False, *, dtype: Any = None) -> Node:
    """The mean."""
    return b.result(mean_of(b, b.node(x, computing(b)), dim, keepdim))


@lowering("aten.amax.default", "aten.max.default")
def amax(b: Builder, x: Node, dim: Axes = None, keepdim: bool = False) -> Node:
    """The largest; NaNs win."""
    return _extreme(b, "max", x, dim, keepdim)


@lowering("aten.amin.default", "aten.min.default")
def amin(b: Builder, x: Node, dim: Axes = None, keepdim: bool = False) -> Node:
    """The smallest; NaNs win."""
    return _extreme(b, "min", x, dim, keepdim)


def _extreme(b: Builder, name: str, x: Node, dim: Axes, keepdim: bool) -> Node:
    if kind_of(x.tensor.dtype) not in "iuf":
        raise NoLowering("booleans")
    return _reduced(b, name, x, dim, keepdim, empty=False)


def _some(dim: Axes) -> Axes:
    """The axes; raises NoLowering for none, which means none here."""
    if dim is not None and not isinstance(dim, int) and not len(dim):
        raise NoLowering("no axes")
    return dim


@lowering("aten.any.default", "aten.any.dim", "aten.any.dims")
def any_(b: Builder, x: Node, dim: Axes = None, keepdim: bool = False) -> Node:
    """Whether one is not zero."""
    return b.result(_reduced(b, "any", _as_bool(b, x), _some(dim), keepdim))


@lowering("aten.prod.default", "aten.prod.dim_int")
def prod(b: Builder, x: Node, dim: Axes = None, keepdim: bool = False, *, dtype: torch.dtype | None = None) -> Node:
    """The product."""
    wide = computing(b) if kind_of(b.dtype) == "f" else b.dtype
    if kind_of(wide) not in "iuf":
        raise NoLowering("a product of complex numbers")
    return b.result(_reduced(b, "prod", b.node(x, wide), dim, keepdim))


@lowering("aten.argmax.default")
def argmax(b: Builder, x: Node, dim: int | None = None, keepdim: bool = False) -> Node:
    """The position of the first of the largest."""
    return _position(b, "argmax", x, dim, keepdim)


@lowering("aten.argmin.default")
def argmin(b: Builder, x: Node, dim: int | None = None, keepdim: bool = False) -> Node:
    """The position of the first of the smallest."""
    return _position(b, "argmin", x, dim, keepdim)


def _position(b: Builder, name: str, x: Node, dim: int | None, keepdim: bool) -> Node:
    if dim is None or not x.tensor.ndim:
        raise NoLowering("a position among all elements")
    if not x.tensor.shape[axes_of(x, dim)[0]]:
        raise NoLowering("a position among no elements")
    return b.op(name, x, axis=axes_of(x, dim)[0], keepdims=bool(keepdim))


@lowering("aten.var.correction")
def var(b: Builder, x: Node, dim: Axes = None, *, correction: Any = None, keepdim: bool = False) -> Node:
    """The variance."""
    return b.result(variance(b, b.node(x, computing(b)), dim, 1 if correction is None else correction, keepdim)[0])


@lowering("aten.var_mean.correction")
def var_mean(
    b: Builder, x: Node, dim: Axes = None, *, correction: Any = None, keepdim: bool = False
) -> tuple[Node, ...]:
    """The variance, and the mean."""
    if x.tensor.dtype.itemsize < 4 or kind_of(x.tensor.dtype) != "f":
        raise NoLowering("half precision or complex numbers")
    return variance(b, x, dim, 1 if correction is None else correction, keepdim)


def variance(b: Builder, x: Node, dim: Axes, correction: float, keepdim: bool) -> tuple[Node, Node]:
    """The variance and the mean, from the deviations: two passes."""
    axes = axes_of(x, dim)
    count = math.prod(sizes(x)[axis] for axis in axes)
    if count <= correction or not x.tensor.ndim:
        raise NoLowering("a variance of too few elements")
    middle = b.op("divide", b.op("sum", x, axis=axes, keepdims=True), float(count))
    apart = b.op("subtract", x, middle)
    squares = b.op("sum", b.op("multiply", apart, apart), axis=axes, keepdims=bool(keepdim))
    spread = b.op("divide", squares, float(count - correction))
    return spread, middle if keepdim else b.op("squeeze", middle, axis=axes)


@lowering("aten.cumsum.default")
def cumsum(b: Builder, x: Node, dim: int, *, dtype: torch.dtype | None = None) -> Node:
    """The sums of all elements up to each."""
    return _scan(b, "cumulative_sum", x, dim, dtype)


@lowering("aten.cumprod.default")
def cumprod(b: Builder, x: Node, dim: int, *, dtype: torch.dtype | None = None) -> Node:
    """The products of all elements up to each."""
    return _scan(b, "cumulative_prod", x, dim, dtype)


def _scan(b: Builder, name: str, x: Node, dim: int, dtype: torch.dtype | None) -> Node:
    wide = DTYPES[dtype] if dtype is not None else b.dtype
    if not x.tensor.ndim or kind_of(wide) not in "iuf" or wide.itemsize < 4:
        raise NoLowering("a scan in half precision")
    summed = FLOAT64 if kind_of(wide) == "f" else wide  # PyTorch adds up floats in double precision
    return b.result(b.op(name, b.node(x, summed), axis=dim % x.tensor.ndim))
