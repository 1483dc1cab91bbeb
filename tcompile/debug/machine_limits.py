"""What this machine's memory and processor can do at most, as kernels reach it.

Input: nothing; kernels are compiled and timed when they are first asked for, which takes up to half a second.
Output: bytes and operations in a second.
Why: a time says nothing by itself. Beside these limits it says whether a kernel can become any faster: the roofline
model (S. Williams, A. Waterman, D. Patterson, "Roofline", Communications of the ACM 52(4), 2009).

Caches are faster than memory, and small kernels run on one thread. So both figures are measured at three sizes, and
those of the size that is nearest hold.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from time import perf_counter
from typing import Any

import numpy as np

from tcompile.backends.llvm import compile_graph
from tcompile.graph import Graph, TensorType
from tcompile.graph.dtypes import FLOAT64
from tcompile.graph.ops import apply
from tcompile.observe.context import of_no_cell

_SIZES = 1 << 14, 1 << 19, 1 << 23  # elements: in a core's cache, in the cache of all, in memory
_TERMS = 24  # of a polynomial, each a multiplication and an addition
_SECONDS = 0.01  # for each figure


def bytes_per_second(nbytes: float) -> float:
    """Returns how fast a kernel can read and write so many bytes, in bytes a second.

    >>> bytes_per_second(1e5) > 1e8
    True
    """
    elements = nbytes / 16
    size = _nearest(elements)
    return 16 * size / _seconds(False, size)


def operations_per_second(elements: float) -> float:
    """Returns how fast a kernel can add and multiply so many float64, in operations a second."""
    size = min(_nearest(elements), _SIZES[1])
    return 2 * _TERMS * size / _seconds(True, size)


def _nearest(elements: float) -> int:
    return min(_SIZES, key=lambda size: abs(math.log(size / max(1.0, elements))))


@functools.cache
def _seconds(computes: bool, size: int) -> float:
    """The least time of a kernel over so many elements: a polynomial, or nearly a copy."""
    kernel, x = _kernel(computes, size), np.linspace(0.0, 1.0, size)
    kernel(x)
    over, taken = perf_counter() + _SECONDS, math.inf
    while True:
        started = perf_counter()
        kernel(x)
        ended = perf_counter()
        taken = min(taken, ended - started)
        if ended > over:
            return taken


def _kernel(computes: bool, size: int) -> Callable[[Any], Any]:
    graph = Graph("limit")
    x = graph.input("x", TensorType(FLOAT64, (size,)))
    y = apply(graph, "add", x, 1.0)
    for _ in range(_TERMS if computes else 0):
        y = apply(graph, "add", apply(graph, "multiply", y, x), 0.5)
    graph.outputs = [y]
    with of_no_cell():
        return compile_graph(graph)


__all__ = ["bytes_per_second", "operations_per_second"]
