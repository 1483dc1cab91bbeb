"""How an entry checks that an array is the one it was compiled for.

Enters: the type that was captured and which axes are open. Leaves: Python conditions, each with its readable form.
Exists beside the frontends because only they know their arrays' attributes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tcompile.graph import Layout, TensorType
from tcompile.graph.sizes import is_one

Check = tuple[str, str, str, str]  # code, text, expected, attribute to show


def array_check(
    name: str, type: TensorType, scalar: bool, open_axes: frozenset[int], constant: Callable[[Any], str]
) -> list[Check]:
    """The conditions on the NumPy array or scalar called ``name``; ``{}`` in a code stands for its variable."""
    if scalar:
        cls = type.dtype.type
        return [(f"type({{}}) is {constant(cls)}", f"type({name}) is {cls.__name__}", cls.__name__, "__class__")]
    ndarray, dtype = constant(np.ndarray), constant(type.dtype)
    checks: list[Check] = [
        (f"type({{}}) is {ndarray}", f"type({name}) is ndarray", "ndarray", "__class__"),
        (f"{{}}.dtype is {dtype}", f"{name}.dtype == {type.dtype}", str(type.dtype), "dtype"),
    ]
    if not open_axes:
        shape = tuple(type.shape)
        checks.append((f"{{}}.shape == {shape}", f"{name}.shape == {shape}", str(shape), "shape"))
    else:
        checks.append((f"{{}}.ndim == {type.ndim}", f"{name}.ndim == {type.ndim}", str(type.ndim), "shape"))
        for axis, size in enumerate(type.shape):
            if axis not in open_axes:
                text = f"{name}.shape[{axis}] == {size}"
                checks.append((f"{{}}.shape[{axis}] == {size}", text, str(size), "shape"))
    if type.c_contiguous:
        if type.ndim:
            checks.append(("{}.flags.c_contiguous", f"{name} is C-contiguous", "C-contiguous", "strides"))
    else:
        held, read = constant(type.layout), constant(layout_of)
        text = f"{name} has memory order {type.layout.order}"
        expected = f"{'dense' if type.layout.dense else 'strided'} in axis order {type.layout.order}"
        checks.append((f"{read}({{}}) == {held}", text, expected, "strides"))
    return checks


def layout_of(x: np.ndarray[Any, Any]) -> Layout:
    """The layout of an existing array: how its strides are ordered, and whether they follow from its shape."""
    ndim = x.ndim
    if x.flags.c_contiguous:
        return Layout.c(ndim)
    magnitudes = [abs(s) if n != 1 else 0 for s, n in zip(x.strides, x.shape, strict=True)]
    ordered = sorted({m for m in magnitudes if m})
    ranks = [ordered.index(m) + 1 if m else 0 for m in magnitudes]
    step, dense = x.itemsize, len(ordered) == sum(1 for n in x.shape if n != 1)
    for axis in sorted((a for a in range(ndim) if x.shape[a] != 1), key=lambda a: magnitudes[a]):
        dense = dense and x.strides[axis] == step
        step *= x.shape[axis]
    if not dense:
        return Layout(tuple(ranks), dense=False)
    order = sorted(range(ndim), key=lambda a: (-magnitudes[a] if x.shape[a] != 1 else 0, a))
    ones_last = [a for a in order if x.shape[a] != 1] + [a for a in order if x.shape[a] == 1]
    return Layout.of_order(tuple(ones_last), dense=True)


__all__ = ["Check", "array_check", "is_one", "layout_of"]
