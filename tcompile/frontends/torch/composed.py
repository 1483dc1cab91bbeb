"""Rows of products, softmax and normalisations.

Input: nodes and numbers.
Output: nodes.
Why: products stay calls of BLAS; everything around them, and softmax and normalisations as a whole, are kernels.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from tcompile.frontends.torch.lowering import Builder, NoLowering, computing, floating, lowering, sizes
from tcompile.frontends.torch.reductions import variance
from tcompile.graph import Node
from tcompile.graph.dtypes import kind_of

# The largest product, in multiplications, that NumPy computes. For larger ones OpenBLAS uses threads, which would
# wait for PyTorch's spinning threads.
_MOST = 1 << 18


def _product(b: Builder, x: Node, y: Node) -> Node:
    if x.tensor.dtype.itemsize < 4 or kind_of(x.tensor.dtype) not in "fc" or x.tensor.dtype != y.tensor.dtype:
        raise NoLowering("a product of integers or in half precision")
    if x.tensor.ndim == y.tensor.ndim and x.tensor.ndim > 1 and math.prod(sizes(x)) * sizes(y)[-1] > _MOST:
        return b.call("aten.mm.default" if x.tensor.ndim == 2 else "aten.bmm.default", x, y)
    return b.op("matmul", x, y)


@lowering("aten.mm.default", "aten.bmm.default")
def mm(b: Builder, x: Node, y: Node) -> Node:
    """A product of matrices, or of stacks of them."""
    return _product(b, x, y)


@lowering("aten.addmm.default", "aten.baddbmm.default", "aten.addmv.default")
def addmm(b: Builder, bias: Node, x: Node, y: Node, *, beta: Any = 1, alpha: Any = 1) -> Node:
    """``beta * bias + alpha * x @ y``."""
    made = _product(b, x, y)
    if alpha != 1:
        made = b.op("multiply", made, b.cast(alpha, made.tensor.dtype))
    if beta == 0:  # NaNs of the bias do not count
        return made
    if beta != 1:
        bias = b.op("multiply", bias, b.cast(beta, bias.tensor.dtype))
    return b.op("add", made, bias)


@lowering("aten._softmax.default")
def softmax(b: Builder, x: Node, dim: int, half_to_float: bool) -> Node:
    """``exp(x) / sum(exp(x))`` along an axis."""
    x, axis = _axis(b, x, dim)
    powers = b.op("exp", b.op("subtract", x, b.op("max", x, axis=axis, keepdims=True)))
    return b.result(b.op("divide", powers, b.op("sum", powers, axis=axis, keepdims=True)))


@lowering("aten._log_softmax.default")
def log_softmax(b: Builder, x: Node, dim: int, half_to_float: bool) -> Node:
    """The logarithm of softmax."""
    x, axis = _axis(b, x, dim)
    below = b.op("subtract", x, b.op("max", x, axis=axis, keepdims=True))
    total = b.op("sum", b.op("exp", below), axis=axis, keepdims=True)
    return b.result(b.op("subtract", below, b.op("log", total)))


def _axis(b: Builder, x: Node, dim: int) -> tuple[Node, tuple[int, ...]]:
    if not x.tensor.ndim or not x.tensor.shape[dim]:
        raise NoLowering("softmax of no axis or no elements")
    return b.node(x, computing(b)), (dim % x.tensor.ndim,)


@lowering("aten._softmax_backward_data.default")
def softmax_backward(b: Builder, gradient: Node, y: Node, dim: int, input_dtype: Any) -> Node:
    """``y * (gradient - sum(y * gradient))``."""
    if floating(b) != gradient.tensor.dtype or not y.tensor.ndim:
        raise NoLowering("half precision")
    gradient, axis = _axis(b, gradient, dim)
    product = b.op("multiply", gradient, b.node(y, gradient.tensor.dtype))
    total = b.op("sum", product, axis=axis, keepdims=True)
    return b.result(b.op("subtract", product, b.op("multiply", b.node(y, gradient.tensor.dtype), total)))


@lowering("aten._log_softmax_backward_data.default")
def log_softmax_backward(b: Builder, gradient: Node, y: Node, dim: int, input_dtype: Any) -> Node:
    """``gradient - exp(y) * sum(gradient)``."""
    if floating(b) != gradient.tensor.dtype or not y.tensor.ndim:
        raise NoLowering("half precision")
    gradient, axis = _axis(b, gradient, dim)
    total = b.op("sum", gradient, axis=axis, keepdims=True)
    return b.result(b.op("subtract", gradient, b.op("multiply", b.op("exp", b.node(y, gradient.tensor.dtype)), total)))


@lowering("aten.native_layer_norm.default")
def layer_norm(
    b: Builder, x: Node, normalized: Sequence[int], weight: Node | None, bias: Node | None, eps: float
) -> tuple[Node, ...]:
    """``(x - mean) / sqrt(var + eps) * weight + bias`` over the last axes, the mean, and one over that root."""
    if x.tensor.dtype.itemsize < 4 or any(p is not None and p.tensor.dtype != x.tensor.dtype for p in (weight, bias)):
        raise NoLowering("half precision")
    axes = tuple(range(x.tensor.ndim - len(normalized), x.tensor.ndim))
    if not math.prod(sizes(x)):
        raise NoLowering("no elements")
    spread, middle = variance(b, x, axes, 0, True)
    scale = b.op("divide", 1.0, b.op("sqrt", b.op("add", spread, float(eps))))
    made = b.op("multiply", b.op("subtract", x, middle), scale)
    if weight is not None:
        made = b.op("multiply", made, weight)
    if bias is not None:
        made = b.op("add", made, bias)
    return made, middle, scale


@lowering("aten._native_batch_norm_legit_functional.default")
def batch_norm(
    b: Builder, x: Node, weight: Node | None, bias: Node | None, mean: Node, var: Node, training: bool, momentum: float,
    eps: float,
) -> tuple[Node, ...]:  # fmt: skip
    """Each channel normalised by its own mean and variance, the mean, one over the root, and both running values."""
    numbers = [p for p in (x, weight, bias, mean, var) if p is not None]
    count = math.prod(sizes(x)) // max(1, sizes(x)[1])
    if (
        not training
        or x.tensor.dtype.itemsize < 4
        or count < 2
        or any(p.tensor.dtype != x.tensor.dtype for p in numbers)
    ):
        raise NoLowering("half precision, or running values are used")
    axes = tuple(axis for axis in range(x.tensor.ndim) if axis != 1)
    spread, middle = variance(b, x, axes, 0, True)
    scale = b.op("divide", 1.0, b.op("sqrt", b.op("add", spread, float(eps))))
    made = _by_channel(b, b.op("multiply", b.op("subtract", x, middle), scale), weight, bias)
    flat, flat_spread = (b.op("reshape", node, shape=mean.tensor.shape) for node in (middle, spread))
    new_mean = _moved(b, mean, flat, momentum)
    new_var = _moved(b, var, b.op("multiply", flat_spread, count / (count - 1)), momentum)
    return made, flat, b.op("reshape", scale, shape=mean.tensor.shape), new_mean, new_var


def _moved(b: Builder, old: Node, new: Node, momentum: float) -> Node:
    """A running value after one more batch."""
    return b.op("add", b.op("multiply", new, float(momentum)), b.op("multiply", old, 1.0 - momentum))


@lowering("aten._native_batch_norm_legit_no_training.default")
def batch_norm_by_running_values(
    b: Builder, x: Node, weight: Node | None, bias: Node | None, mean: Node, var: Node, momentum: float, eps: float
) -> tuple[Node, ...]:
    """Each channel normalised by its running mean and variance, and two tensors without elements."""
    if x.tensor.dtype.itemsize < 4 or any(p is not None and p.tensor.dtype != x.tensor.dtype for p in (weight, mean)):
        raise NoLowering("half precision")
    scale = b.op("divide", 1.0, b.op("sqrt", b.op("add", var, float(eps))))
    apart = b.op("subtract", x, _channels(b, x, mean))
    made = _by_channel(b, b.op("multiply", apart, _channels(b, x, scale)), weight, bias)
    return made, b.full((0,), 0.0, x.tensor.dtype), b.full((0,), 0.0, x.tensor.dtype)


def _by_channel(b: Builder, x: Node, weight: Node | None, bias: Node | None) -> Node:
    if weight is not None:
        x = b.op("multiply", x, _channels(b, x, weight))
    return x if bias is None else b.op("add", x, _channels(b, x, bias))


def _channels(b: Builder, x: Node, values: Node) -> Node:
    """A value for each channel, which is axis 1 of ``x``."""
    return b.op("reshape", values, shape=(1, sizes(x)[1], *(1 for _ in range(x.tensor.ndim - 2))))
