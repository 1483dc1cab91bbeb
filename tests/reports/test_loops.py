"""Reports about loops: sums over iterations, variables after loops, jumps, loops that others run in parallel."""

from __future__ import annotations

import numpy as np
import pytest

from reports.programs import Table

TABLE = Table()
RANDOM = lambda *shape: np.random.default_rng(0).standard_normal(shape)


@TABLE.calls("numba-3522", lambda: (RANDOM(5, 7), np.ones((5, 7)), 2), lambda: (RANDOM(40, 3), np.ones((40, 3)), 0))
def stack(rows, out, place):
    """All rows are added to one row of a result."""
    out[place, :] = 0.0
    for i in range(out.shape[0]):
        out[place, :] += rows[i]
    return out


@TABLE.calls("numba-4922", lambda: (10,), lambda: (20,), lambda: (0,))
def conditional_count(n):
    """A count grows in every iteration, and once more in some."""
    c = 0
    for i in range(n):
        c += 1
        if i > 10:
            c += 1
    return c


@TABLE.calls(
    "numba-7344",
    lambda: (np.arange(9) % 3 == 0, 1),
    lambda: (np.arange(40) % 2 == 0, 2),
    lambda: (np.zeros(3, bool), 0),
)
def count_from(cond, s):
    """A count of elements starts with a number other than zero."""
    for i in range(cond.shape[0]):
        if cond[i]:
            s += 1
    return s


@TABLE.calls("numba-2759", lambda: (5,), lambda: (50,), lambda: (0,))
def two_sums(n):
    """Two loops add to one number."""
    acc = 0
    for i in range(n):
        acc += i
    for i in range(n):
        acc += i
    return acc


def add_to(arr, idx, val):
    old = arr[idx]
    arr[idx] += val
    return old


@TABLE.calls("numba-6920", lambda: (np.arange(10),), lambda: (RANDOM(50),))
def sum_by_helper(arr):
    """A helper adds to an element of an array made before the loop."""
    accum = np.zeros(1, arr.dtype)
    for i in range(arr.size):
        add_to(accum, 0, arr[i])
    return accum[0]


@TABLE.calls("numba-8177", lambda: (4,), lambda: (40,))
def copied_counter(n):
    """A copy of the loop's variable is changed in the loop."""
    seen = []
    for i in range(n):
        j = i
        j += 1
        seen.append(i + j)
    return seen, j


@TABLE.calls("numba-7578", lambda: (np.arange(1.0, 11),), lambda: (RANDOM(50) ** 2 + 1,))
def jacobian(d):
    """Rows of an array are summed in a loop, then the array is changed by another one."""
    b = np.log(d)
    out = np.empty_like(b)
    b = np.exp(b)
    for i in range(len(b)):
        x = b[i] * b
        out[i] = (x / (1 + x)).sum()
    b2 = b**2
    out -= b2 / (1 + b2)
    return out - d


@TABLE.calls("numba-8007", lambda: (np.arange(64, dtype="u1").reshape(8, 8), 3), lambda: (np.ones((5, 9), "u1"), 2))
def shifted_sum(img, rad):
    """A padded image is summed over all of its shifts, in two loops."""
    img = img - np.amin(img)
    s = img.shape
    padded = np.zeros((s[0] + 2 * rad, s[1] + 2 * rad), np.int32)
    padded[rad : rad + s[0], rad : rad + s[1]] = img
    b = np.zeros(s, np.float32)
    for i in range(rad):
        for j in range(rad):
            b = b + padded[i : i + s[0], j : j + s[1]]
    return b


@TABLE.calls("numba-4915", lambda: (65,), lambda: (1,), lambda: (np.int64(7),))
def endless(value):
    """A number is replaced in each iteration of `while True`, which a test leaves."""
    a = 0
    while True:
        value = value * 16807 % 2147483647
        if a > 3:
            return value
        a += 1


@TABLE.calls("numba-1522", lambda: (1,), lambda: (np.array(3),), lambda: (2.5,))
def branches_and_continue(x):
    """Nested branches with `continue` lead around an assignment."""
    ret = 2
    for _ in range(3):
        a = x
        if a != x:
            if a != x:
                a = x
            continue
        if a == x:
            ret = a
    return ret


@TABLE.calls("numba-2273", lambda: (np.arange(3.0),), lambda: (np.arange(40),))
def nested_breaks(x):
    """Two endless loops are left at once."""
    a = 0.0
    while True:
        while True:
            a += x.sum()
            break
        break
    return a


@TABLE.calls("numba-3979", lambda: ([1, 2], ["A", "B"]), lambda: ([], ["C"]), lambda: ([1.5], [np.ones(2)]))
def one_name_two_types(a, b):
    """One name is the variable of two loops over values of different types."""
    seen = []
    for i in a:
        seen.append(i)
    for i in b:
        seen.append(i)
    return seen


@TABLE.calls("numba-5501", lambda: (np.arange(3), 0), lambda: (np.arange(3), 2), lambda: (np.arange(3.0), 1))
def becomes_float(x, n):
    """A number is an int where a loop has no iteration, and a float where it has."""
    trace = 0
    for i in range(n):
        trace = trace + 0.5 * i
    return x + trace, trace


@TABLE.calls(
    "numba-3745",
    lambda: (np.linspace(1, 2, 500), np.linspace(2, 1, 500)),
    lambda: (np.ones(3), np.full(3, 2.0)),
)
def option_prices(price, strike):
    """A chain of array operations is written as whole arrays (reported as slower than a loop)."""
    a = np.log(price / strike)
    b = 0.05 * 1.5
    z = 1.5 * 0.2 * 0.2 * 2
    y = 1 / np.sqrt(z)
    w1, w2 = (a - b + 0.25 * z) * y, (a - b - 0.25 * z) * y
    call = price * np.tanh(w1) - strike * np.exp(-b) * np.tanh(w2)
    return call, strike * np.exp(-b)


@TABLE.calls("numba-849", lambda: (RANDOM(100), RANDOM(100)[::-1]), lambda: (RANDOM(3), np.float64(2)))
def relative_difference(x, y):
    """A relative difference of small arrays (reported as slow)."""
    return 2 * (x - y) / (x + y)


@TABLE.calls("jax-5210", lambda: (0, RANDOM(10), RANDOM(10)), lambda: (1, np.ones(3), np.zeros(3)))
def chosen(i, x, y):
    """One of two functions made in the call is chosen by a number."""
    return [lambda: x, lambda: y][i]() + 1


@TABLE.calls("pytorch-175855", lambda: (np.ones(1),), lambda: (np.arange(3.0),))
def growing_list(x):
    """A generator walks over a list that grows meanwhile."""
    vals = [x.sum()]

    def walk():
        for item in vals:
            if len(vals) < 3:
                vals.append(item + 1)
            yield item

    return np.stack(list(walk())).sum()


@TABLE.calls("pytorch-103563", lambda: (np.arange(2.0),), lambda: (np.ones((2, 2)),))
def nested_list(x):
    """Elements of a nested list are replaced by arrays in a loop, one made of the last."""
    data = [[1, 2, 3], [4, 5, 6], [7, 8, 9]]
    for i in range(3):
        if i == 0:
            data[0][i] = x
        else:
            data[0][i] = data[0][i - 1] + 1
    return data[0][-1], data


@pytest.mark.parametrize("number", TABLE.numbers)
def test_report(number):
    TABLE.check(number)
