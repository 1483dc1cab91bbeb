"""Helpers for the tests of loops.

Input: programs.
Output: inputs, and the compiled graphs.
Why: many files test loops.
"""

from __future__ import annotations

import numpy as np
from differential import check

N = 40


def ops(compiled):
    return [node.op.name for graph in compiled.graphs for node in graph.nodes]


def each(f, make_args, **more):
    """What ``check`` compiles, one backend after the other, while its graphs are there."""
    for backend in ("eager", "llvm"):
        yield check(f, make_args, backends=(backend,), ulp=64, **more)[0]


def line():
    return np.linspace(-1, 2, 12)


def grid():
    return (np.arange(42.0).reshape(6, 7) * 37 % 11) / 7


def until_inside(x, n):
    for i in range(n):
        y = x + i
        while y.max() > 1.5:
            y = y * 0.8
        x = 0.5 * x + 0.1 * y
    return x
