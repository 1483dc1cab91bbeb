"""Medians of a few elements each, as in image filters: a kernel sorts the elements.

Input: an array and an axis of few elements.
Output: a sort along it, and the mean of the middle elements, or NaN if there is one.
Why: a kernel is faster on short rows. All other medians are one call (``statistics``).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tcompile.frontends.base import Builder, CannotCapture, Traced
from tcompile.frontends.numpy import ufuncs
from tcompile.frontends.numpy.library import RULES, type_of_call
from tcompile.frontends.numpy.registry import function, refuse_unless
from tcompile.frontends.numpy.values import FLOAT, array, axis_in, cast, same_order
from tcompile.graph.sizes import hint

MOST, FEWEST_ROWS = 25, 16  # elements that are sorted, and rows of them


@function("median")
def median(
    b: Builder, a: Any, axis: Any = None, out: Any = None, overwrite_input: Any = False, keepdims: Any = False
) -> Traced:
    """``np.median`` along an axis of a few elements."""
    refuse_unless(
        "median", out=(out, (None,)), overwrite_input=(overwrite_input, (False,)), keepdims=(keepdims, (False,))
    )
    x = array(b, a)
    dtype = x.type.dtype
    if axis is None or isinstance(axis, tuple) or dtype.name == "float16" or dtype.kind not in "iuf":
        raise CannotCapture("unsupported-argument", "median of all elements, or of this dtype")
    place = axis_in(axis, x.type.ndim)
    count = x.type.shape[place]
    few = isinstance(count, int) and 1 < count <= MOST
    if not few or hint(x.type.size) < FEWEST_ROWS * hint(count):
        raise CannotCapture("unsupported-argument", "median of many elements, or of few rows")
    called = type_of_call(b, RULES[np.median], [a], {"axis": axis})
    ordered = b.op("sort", x.node, axis=place)

    def item(number: int) -> Traced:
        return Traced(b.op("index", ordered, key=(*(slice(None),) * place, number)))

    half = hint(count) // 2
    into = dtype if dtype.kind == "f" else FLOAT
    middle = Traced(cast(b, item(half), into))
    if hint(count) % 2 == 0:
        below = Traced(cast(b, item(half - 1), into))
        middle = ufuncs.emit(b, np.true_divide, [ufuncs.emit(b, np.add, [below, middle]), 2.0])
    if dtype.kind == "f":
        middle = ufuncs.emit(b, np.add, [middle, 0.0])  # NumPy's mean begins at zero: there is no negative zero
        last = item(hint(count) - 1)  # where NaNs are
        middle = Traced(b.op("where", b.op("isnan", last.node), last.node, middle.node))
    if not same_order(middle.type, called.type.layout):
        raise CannotCapture("memory-order", "a median in another memory order than NumPy gives")
    return middle
