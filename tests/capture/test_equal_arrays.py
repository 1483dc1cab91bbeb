"""Equal arrays become one in a graph, and a scalar loop that writes one of them still reads the other."""

from __future__ import annotations

import numpy as np
import pytest
from differential import check


def before_it_is_written(x, n):
    for t in range(n):
        y = x.copy()
        for e in range(8):
            x[e] = y[e - 1] + t
    return x


def once(x, n):
    y = x.copy()
    for e in range(8):
        x[e] = y[e - 1]
    return x


def computed_twice_alone(x, n):
    z = x * 2
    y = x * 2
    for e in range(8):
        z[e] = y[e - 1]
    return z


def computed_twice_inside(x, n):
    z = x * 2
    for t in range(n):
        a = z * 0.5
        b = z * 0.5
        for e in range(8):
            a[e] = b[e - 1]
        z = z + a
    return z


def whole_part(x, n):
    for t in range(n):
        y = x[:].copy()
        for e in range(8):
            x[e] = y[e - 1] + t
    return x


def turned(x, n):
    for t in range(n):
        y = x[::-1].copy()
        for e in range(8):
            x[e] = y[e - 1] + t
    return x


def two_copies(x, n):
    for t in range(n):
        y = x.copy()
        z = y.copy()
        for e in range(8):
            x[e] = y[e - 1] + z[-e]
            y[e] = x[e]
        x[0] = y[0] * 0.001
    return x


def reshaped(x, n):
    x = x.reshape(2, 4)
    for t in range(n):
        y = x.reshape(8).copy().reshape(2, 4)
        for e in range(2):
            for i in range(4):
                x[e, i] = y[e - 1, i - 1] + t
    return x


def bound_anew(x, n):
    y = x
    for t in range(n):
        x = x.copy()
        for e in range(8):
            x[e] = y[e - 1] + t
        y = x.copy()
    return x, y


def computed_twice(x, n):
    t = 0
    while t < n:
        y = x * 1
        y2 = x * 1
        for e in range(8):
            y[e] = y2[e - 1] + t
        x = y
        t += 1
    return x, y


def exchanged_with_equal_ones(x, n):
    a, c = x, x.copy()
    for i in range(n):
        a, c = c, np.roll(x, 1) * 0.5
        for e in range(8):
            a[e] = c[e - 1]
    return a


def parts_and_places(x, n):
    at = np.array([3, 1, 1, 0, 7, 2])
    for _ in range(n):
        y = x.copy()
        x[at] = y[:6] * 0.5
        x[1:] += y[:-1] * 0.25
        np.add.at(x, at, y[2:] * 0.25)
    return x


def two_of_zeros(x, n):
    for _ in range(n):
        a, b = np.zeros(8), np.zeros(8)
        for e in range(8):
            a[e] = x[e] + b[e - 1]
            b[e] = a[e] * 0.5
        x = (a + b) * 0.25
    return x


def two_of_one_row(x, n):
    a = np.zeros((2, 8))
    for _ in range(n):
        u, v = a[0].copy(), a[0].copy()
        for e in range(1, 8):
            u[e] = v[e - 1] * 0.5 + x[e]
            v[e] = u[e - 1] * 0.5
        a[0], a[1] = u, v
    return a


PROGRAMS = [value for value in list(globals().values()) if getattr(value, "__module__", "") == __name__]


@pytest.mark.parametrize("f", PROGRAMS)
def test_what_is_written_is_not_what_is_read(f):
    for n in (2, 30):
        for dynamic in (None, True):
            check(f, lambda n=n: (np.arange(8.0), n), exact=True, dynamic=dynamic)
