"""Guards of NumPy arrays.

Input: the type that was captured, and its open axes.
Output: Python conditions, each with its readable form.
Why: they must distinguish exactly the types that the frontend's ``type_of`` distinguishes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tcompile.frontends.base import Check
from tcompile.frontends.numpy.values import copied_dtype, layout_of
from tcompile.graph import Layout, TensorType


def checks(
    name: str,
    type: TensorType,
    scalar: bool,
    open_axes: frozenset[int],
    constant: Callable[[Any], str],
    array_class: Any = np.ndarray,
    contiguous: str = "{}.flags.c_contiguous",
    own_dtype: bool = False,
) -> list[Check]:
    """The conditions on the array or NumPy scalar called ``name``. ``array_class`` is that of the library's arrays,
    and ``contiguous`` how one of them is asked whether it lies in C order. ``own_dtype``: its dtype is a copy.
    """
    if scalar:
        cls = type.dtype.type
        return [Check(f"type({{}}) is {constant(cls)}", f"type({name}) is {cls.__name__}", cls.__name__, "type")]
    ndarray, dtype = constant(array_class), constant(type.dtype)
    is_dtype = Check(f"{{}}.dtype is {dtype}", f"{name}.dtype == {type.dtype}", str(type.dtype), "dtype")
    if own_dtype:
        text, expected = f"{name}.dtype is a copy of {type.dtype}", f"a copy of {type.dtype}"
        is_dtype = Check(f"{constant(copied_dtype)}({{}}.dtype) is {dtype}", text, expected, "dtype")
    found = [Check(f"type({{}}) is {ndarray}", f"type({name}) is ndarray", "ndarray", "type"), is_dtype]
    if not open_axes:
        shape = tuple(type.shape)
        found.append(Check(f"{{}}.shape == {shape}", f"{name}.shape == {shape}", str(shape), "shape"))
    else:
        found.append(Check(f"{{}}.ndim == {type.ndim}", f"{name}.ndim == {type.ndim}", str(type.ndim), "shape"))
        for axis, size in enumerate(type.shape):
            if axis not in open_axes:
                text = f"{name}.shape[{axis}] == {size}"
                found.append(Check(f"{{}}.shape[{axis}] == {size}", text, str(size), "shape"))
    if type.c_contiguous:
        if type.ndim:
            found.append(Check(contiguous, f"{name} is C-contiguous", "C-contiguous", "layout"))
    else:
        held, read = constant(type.layout), constant(layout_of)
        expected = "F-contiguous"
        if type.layout != Layout.of_order(tuple(reversed(range(type.ndim)))):
            expected = "dense" if type.layout.dense else "strided"
            expected += f" with its axes in memory order {type.layout.order}" if type.ndim > 1 else ""
        found.append(Check(f"{read}({{}}) == {held}", f"{name} is {expected}", expected, "layout"))
    return found
