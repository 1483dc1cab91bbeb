"""Large temporaries: NumPy's operators overwrite them, and the result then lies in memory as they did."""

from __future__ import annotations

import operator

import numpy as np
import pytest

import tcompile
from tests.differential import check

HELD = np.ones((200, 200)).T * 2


def arguments(n=200):
    x = np.arange(float(n * n)).reshape(n, n)
    return x, x[::-1] + 1


def twice(x):
    return x.T * 2


KNOWN = {
    "left": lambda x, y: x.T * 2 + y,
    "right": lambda x, y: y + x.T * 2,
    "right, of another operator": lambda x, y: y - x.T * 2,
    "left of a quotient": lambda x, y: (x.T + 1) / y,
    "function": lambda x, y: np.sqrt(x.T) * y,
    "method": lambda x, y: x.T.copy(order="K") + y,
    "sign": lambda x, y: -x.T * y,
    "comparison": lambda x, y: (x.T > 3) & (y > 3),
    "no such operator": lambda x, y: (x.T * 2) % y,
    "no such ufunc": lambda x, y: np.add(x.T * 2, y),
    "of another dtype": lambda x, y: (x.T.astype("f4") * 2) + y,
    "cast": lambda x, y: x.T * 2 + y.astype("f4"),
    "integers": lambda x, y: (x.T.astype(int) * 2) / y.astype(int),
    "shifted": lambda x, y: (x.T.astype(int) + 1) << y.astype("i1"),
    "complex": lambda x, y: (x.T + 1j) + y,
    "a view": lambda x, y: (x * 2).T + y,
    "two": lambda x, y: (y * 2) + (x.T * 2),
    "three": lambda x, y: x.T * 2 + y + y * x.T,
    "broadcast": lambda x, y: x.T * 2 + y[:1],
    "a variable": lambda x, y: [t := x.T * 2, t + y],
    "both": lambda x, y: (t := x.T * 2) + y - t,
    "a parameter": lambda x, y: (lambda t: t + y)(x.T * 2),
    "three axes": lambda x, y: (x.reshape(20, 5, -1).transpose(1, 2, 0) + 1) * y.reshape(5, -1, 20),
}
UNKNOWN = {
    "out of a function": lambda x, y: twice(x) + y,
    "out of a list": lambda x, y: [x.T * 2][0] + y,
    "popped": lambda x, y: [x.T * 2].pop() + y,
    "a choice": lambda x, y: (x.T * 2 if len(x) > 3 else x) + y,
    "no operator": lambda x, y: operator.add(x.T * 2, y),
    "sum": lambda x, y: sum([x.T * 2, y]),
}


@pytest.mark.parametrize("name", KNOWN)
@pytest.mark.parametrize("n", [100, 200])
def test_known(name, n):
    compiled = check(KNOWN[name], lambda: arguments(n))[-1]
    assert not compiled.breaks


@pytest.mark.parametrize("name", UNKNOWN)
def test_unknown(name):
    check(UNKNOWN[name], arguments)


def test_arguments_and_globals_are_held():
    compiled = check(lambda x, y: (x + y, HELD + y), lambda: (np.asfortranarray(arguments()[0]), arguments()[1]))[-1]
    assert not compiled.breaks


def test_left_on_the_stack_by_a_break():
    def f(x, y):
        return (x.T * 2) + [y, print("here")][0]

    check(f, arguments)


def test_sizes_that_vary():
    def f(x, y):
        return x.T * 2 + y

    compiled = tcompile.compile(f, dynamic=True)
    for n in (100, 200, 150, 250, 181, 182):
        args = arguments(n)
        assert compiled(*args).strides == f(*args).strides
    assert len(compiled.entries) == 2


def test_small_ones_need_nothing():
    def f(x, y):
        return x.T * 2 + y

    compiled = tcompile.compile(f)
    counts = []
    for n in (100, 200):
        compiled(*arguments(n))
        counts.append([node.op.name for node in compiled.graphs[-1].nodes].count("ordered"))
    # Where NumPy does not find CPython's evaluation loop on the stack of C, it overwrites no operand: Debian's 3.14.
    overwrites = not f(*arguments(200)).flags.c_contiguous
    assert counts == [0, int(overwrites)]
