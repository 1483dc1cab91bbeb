"""Derivatives of Fourier transforms.

Input: a call of ``numpy.fft`` and its result's cotangent.
Output: the operand's cotangent.
Why: the transforms are linear, and a matrix of Fourier's is its own transpose, so the transpose of each transform is
one of them again. What pads or cuts an axis is transposed to what cuts or pads it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tcompile.errors import DerivativeError
from tcompile.graph import ops
from tcompile.graph.ir import Node
from tcompile.graph.ops.opaque import Slot, resolve
from tcompile.graph.sizes import Size, always
from tcompile.transforms.autodiff.calls import target
from tcompile.transforms.autodiff.composed import composed
from tcompile.transforms.autodiff.table import COMPLEX_CALLS, Pull
from tcompile.transforms.emit import Emit
from tcompile.transforms.library_calls import argument

_SCALES = {None: "forward", "backward": "forward", "ortho": "ortho", "forward": "backward"}  # those of the inverse


def _options(node: Node) -> tuple[Any, int, Any]:
    """The length, the axis and the norm of a transform along one axis."""
    n, axis, norm = argument(node, 1, "n"), argument(node, 2, "axis", -1), argument(node, 3, "norm")
    if isinstance(n, Slot):
        raise DerivativeError(f"{node.attrs['target']} with a length that is an array has no derivative rule")
    ndim = node.inputs[0].tensor.ndim
    return n, axis % ndim, norm


def _fitted(e: Emit, g: Node, axis: int, size: Size) -> Node:
    """The transpose of cutting an axis, or of padding it with zeros at its end: ``g`` with ``size`` places there."""
    have = g.tensor.shape[axis]
    before = (slice(None),) * axis
    if always(lambda: have == size):
        return g
    if always(lambda: have > size):
        return e(ops.INDEX, g, key=(*before, slice(0, size)))
    shape = list(g.tensor.shape)
    shape[axis] = size - have
    return e(ops.CONCAT, g, e.full(g, 0.0, shape), axis=axis)


@target("numpy.fft.fft", "numpy.fft.ifft")
def _fft(e: Emit, node: Node, g: Node) -> Sequence[Pull | None]:
    _, axis, norm = _options(node)
    size = node.inputs[0].tensor.shape[axis]
    return [lambda: _fitted(e, e.numpy(resolve(node.attrs["target"]), g, axis=axis, norm=norm), axis, size)]


@target("numpy.fft.rfft")
def _rfft(e: Emit, node: Node, g: Node) -> Sequence[Pull | None]:
    n, axis, norm = _options(node)
    size = node.inputs[0].tensor.shape[axis]
    length = size if n is None else n

    def pull() -> Node:
        whole = e.numpy(np.fft.fft, _fitted(e, g, axis, length), axis=axis, norm=norm)
        return _fitted(e, whole, axis, size)

    return [pull]


@target("numpy.fft.irfft")
def _irfft(e: Emit, node: Node, g: Node) -> Sequence[Pull | None]:
    """Each frequency but 0 and the last of an even length stands for two, which are conjugates of each other."""
    _, axis, norm = _options(node)
    size, length = node.inputs[0].tensor.shape[axis], node.tensor.shape[axis]

    def pull() -> Node:
        found = e.conj(e.numpy(np.fft.rfft, g, axis=axis, norm=_SCALES[norm]))
        numbers = e(ops.ARANGE, start=0, stop=length // 2 + 1, step=1, dtype="int64")
        alone = e(ops.LOGICAL_OR, e(ops.EQUAL, numbers, 0), e(ops.EQUAL, e.multiply(numbers, 2), length))
        shape = [alone.tensor.size if i == axis else 1 for i in range(g.tensor.ndim)]
        twice = e.where(e.reshape(alone, shape), found, e.multiply(found, 2.0))
        return _fitted(e, twice, axis, size)

    return [pull]


@target("numpy.fft.fftshift", "numpy.fft.ifftshift")
def _shift(e: Emit, node: Node, g: Node) -> Sequence[Pull | None]:
    back = np.fft.ifftshift if node.attrs["target"].endswith(".fftshift") else np.fft.fftshift
    return [lambda: e.numpy(back, g, axes=argument(node, 1, "axes"))]


def _along_each_axis(name: str, first: Callable[..., Any], others: Callable[..., Any], inverse: bool) -> None:
    """Transforms along several axes, one after the other; ``first`` is that of the last axis."""

    def made(default: Any) -> Callable[[Emit, Node], Node]:
        def composition(e: Emit, node: Node) -> Node:
            x = node.inputs[0]
            sizes, axes = argument(node, 1, "s"), argument(node, 2, "axes", default)
            norm, ndim = argument(node, 3, "norm"), x.tensor.ndim
            if axes is None:
                axes = range(ndim) if sizes is None else range(-len(sizes), 0)
            lengths = [None if n == -1 else n for n in sizes] if sizes is not None else [None] * len(axes)
            steps = [(others, n, axis) for n, axis in zip(lengths, axes, strict=True)]
            steps[-1] = (first, *steps[-1][1:])
            for function, n, axis in steps if inverse else reversed(steps):
                x = e.numpy(function, x, n=n, axis=axis, norm=norm)
            return x

        return composition

    for suffix, default in (("n", None), ("2", (-2, -1))):
        composed(f"fft.{name}{suffix}")(made(default))
        COMPLEX_CALLS.add(f"numpy.fft.{name}{suffix}")


_along_each_axis("fft", np.fft.fft, np.fft.fft, inverse=False)
_along_each_axis("ifft", np.fft.ifft, np.fft.ifft, inverse=True)
_along_each_axis("rfft", np.fft.rfft, np.fft.fft, inverse=False)
_along_each_axis("irfft", np.fft.irfft, np.fft.ifft, inverse=True)
COMPLEX_CALLS.update(f"numpy.fft.{name}" for name in ("fft", "ifft", "rfft", "irfft", "fftshift", "ifftshift"))
