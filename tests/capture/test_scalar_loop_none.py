"""Variables of scalar loops that are None until they have a value, or again."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from differential import check

import tcompile
from tests.capture.test_scalar_loops import ops


def longest_run(x):
    start, best = None, 0
    for i in range(len(x)):
        if x[i] > 0.3:
            if start is None:
                start = i
        elif start is not None:
            best = max(best, i - start)
            start = None
    return best, start


def rises(x):
    before, count = None, 0
    for v in x:
        if before is not None and v > before:
            count += 1
        before = v
    return count, before


def first_beyond(x):
    found = None
    for i in range(len(x)):
        if x[i] > 0.9:
            found = i
            break
    return found


def largest(x):
    best = None
    for i in range(len(x)):
        if best is None or x[i] > best:
            best = x[i]
    return best


def last_low(x):
    last, total = None, 0
    for i in range(len(x)):
        if last:
            total += last
        last = None if x[i] < 0.5 else i
    return total, last, not last


def in_a_helper(x):
    def found(v):
        return None if v < 0.5 else v * 2

    total = 0.0
    for v in x:
        w = found(v)
        total += -1.0 if w is None else w
    return total


def pairs(x):
    at, total = None, 0
    for i in range(len(x)):
        at = (i, x[i] + 1) if at is None else None
        if at is not None:
            total += at[1]
    return total, at


FUNCTIONS = [longest_run, rises, first_beyond, largest, last_low, in_a_helper, pairs]


@pytest.mark.parametrize("function", FUNCTIONS)
def test_none_until_a_value(function):
    x = np.random.default_rng(0).random(50)
    for given in (x, x * 0.2, x + 1, x[:1], x[:0], np.append(x, 0.1)):
        (compiled,) = check(function, lambda given=given: [given.copy()], ulp=0, backends=["llvm"])
    compiled = tcompile.compile(function)
    compiled(x)
    assert "scalar_loop" in ops(compiled)


@pytest.mark.parametrize("text", ["s is x", "s is 1.0", "None is None", "s is not None", "x is None", "b is True"])
def test_other_identities(text):
    names = {}
    lines = ["def f(x):", "    s, b = None, True", "    n = 0", "    for i in range(len(x)):", f"        n += {text}",
             "        s = x[i] * 2", "    return n, s"]  # fmt: skip
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SyntaxWarning)
        exec("\n".join(lines), names)
    check(names["f"], lambda: [np.arange(20.0)], ulp=0, backends=["llvm"])
