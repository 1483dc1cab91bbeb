"""Helpers for tests of calls in machine code.

Input: compiled functions.
Output: whether machine code has answered a call.
Why: a call has the same result either way.
"""

import numpy as np

import tcompile
from tcompile.runtime.dispatch import CompiledFunction

X = np.linspace(-2, 2, 8, dtype="f4")
W = np.linspace(1, 3, 8, dtype="f4")


def native_hits(compiled):
    """Returns the number of calls that machine code has answered."""
    return sum(entry.plan.hits for entry in compiled.entries if entry.plan is not None)


def answered(compiled, *args, **kwargs):
    """Returns whether machine code answers this call, and the result."""
    before = native_hits(compiled)
    result = compiled(*args, **kwargs)
    return native_hits(compiled) - before, result


def settled(function, *args, **kwargs):
    """Compiles a function and calls it until machine code answers such calls."""
    compiled = function if isinstance(function, CompiledFunction) else tcompile.compile(function)
    for _ in range(3):
        compiled(*args, **kwargs)
    hits, _ = answered(compiled, *args, **kwargs)
    assert hits == 1
    return compiled


def chain(x):
    return np.maximum(x * 2 + 1, 0) - x


class Layer:
    def __init__(self, w):
        self.w, self.scale, self.parts = w, 2.0, {"bias": w * 3, "list": [w, 4]}

    def plain(self, x):
        return x * self.w + self.parts["bias"] * self.scale

    compiled = tcompile.compile(plain)


def with_default(x, k=2.0, /, s=1, *, y=None, z=3):
    return x * k + s + z if y is None else y


def several(x, y):
    total = x + y
    return total, [x * y, (total, None, 3)], {"a": total, "b": x}


def chosen(x, mode, flag, nothing, pair):
    if mode == "double" and flag and nothing is None:
        return x * pair[0] + pair[1]
    return x - 1
