"""Loops over elements: what bounds, shared values and elements in registers must leave as Python has it."""

import numpy as np
import pytest

from tcompile.backends.llvm.scalar_loops.ranges import Ranges
from tcompile.graph.ops.scalar_blocks import reachable, tidy
from tcompile.graph.ops.scalar_carry import carry
from tcompile.graph.ops.scalar_versions import merge_versions
from tests.capture.test_scalar_loops import BACKENDS, captured
from tests.differential import check


def recurrence(d, n):
    for i in range(n):
        d[i] = d[i] + 0.5 * d[i - 1]  # the first one reads the last element
    return d


def backwards(d, n):
    for i in range(n - 2, -1, -1):
        d[i] = d[i] - 0.25 * d[i + 1]
    return d


def by_twos(d, n):
    for i in range(2, n, 2):
        d[i] = d[i - 2] * 2 - d[i - 1]
    return d


def sometimes(d, n):
    for i in range(1, n):
        if d[i] > 0.5:
            d[i] = d[i - 1] + 1
    return d


def leaves(d, n):
    found = -1.0
    for i in range(1, n):
        last = d[i - 1]
        if last > 3:
            found = last
            break
        d[i] = d[i] + last
    return found, d


def two_writes(d, n):
    for i in range(1, n):
        d[i] = d[i] + d[i - 1]
        d[0] = d[i]
    return d


def rows(d, n):
    for i in range(1, 3):
        for j in range(1, n):
            d[i, j] = d[i - 1, j] + d[i, j - 1] * 0.5
    return d


def two_views(d, n):
    e = d[1:]
    for i in range(1, n - 1):
        d[i] = d[i] + e[i - 1]
    return d


RECURRENCES = [recurrence, backwards, by_twos, sometimes, leaves, two_writes, two_views]


@pytest.mark.parametrize("f", RECURRENCES)
def test_recurrences(f):
    captured(f, lambda: (np.random.default_rng(3).random(15), 14))


@pytest.mark.parametrize("f", RECURRENCES)
@pytest.mark.parametrize("n", [0, 1, 2])
def test_recurrences_of_few_iterations(f, n):
    list(check(f, lambda: (np.random.default_rng(3).random(15), n), backends=BACKENDS, ulp=0))


def test_recurrence_along_rows():
    captured(rows, lambda: (np.random.default_rng(3).random((3, 8)), 7))


def triangle(d, n):
    for end in range(n):
        for i in range(2, end):  # has no iteration at first
            d[i] = d[i - 3] - d[i]
    return d


def triangle_backwards(d, n):
    for end in range(n):
        for i in range(end, 2, -2):
            d[i] = d[i + 2] * 0.5 + d[i]
    return d


@pytest.mark.parametrize("f", [triangle, triangle_backwards])
def test_recurrences_that_may_have_no_iteration(f):
    captured(f, lambda: (np.random.default_rng(3).random(14), 12))


def beyond(d, n):
    for i in range(n):
        d[i] = d[i] + d[i - 1]
    return d


def test_beyond_the_end():
    captured(beyond, lambda: (np.ones(7), 9))


def narrow(d, n):
    for i in range(1, n):
        d[i] = d[i - 1] + d[i]  # int8 overflows, and NumPy warns
    return d


def test_narrow_ints():
    captured(narrow, lambda: (np.full(9, 3, np.int8), 9))
    captured(narrow, lambda: (np.full(9, 100, np.int8), 9))


# -- one element in all iterations
# -----------------------------------------------------------------------------------------
def products(a, b, c, n):
    for i in range(a.shape[0]):
        for j in range(b.shape[1]):
            for k in range(n):
                c[i, j] += a[i, k] * b[k, j]
    return c


def is_read_elsewhere(a, b, c, n):  # also at the place that is written
    for i in range(3):
        for k in range(n):
            c[i, 2] += a[i, k] * c[i, k] + c[1, 2]
    return c


def written_first(a, b, c, n):
    for i in range(3):
        for k in range(n):
            c[i, 1] = a[i, k]
            b[i, k] = c[i, 1] * 2
    return b, c


def read_twice(a, b, c, n):
    for i in range(3):
        for k in range(n):
            before = c[i, 1]
            c[i, 1] = before * 0.5 + a[i, k]
            b[i, k] = c[i, 1] - before
    return b, c


def two_places(a, b, c, n):
    for i in range(3):
        for k in range(n):
            c[i, 1] += a[i, k]
            c[i, 2] += c[i, 1]
    return c


def now_and_then(a, b, c, n):
    for i in range(3):
        for k in range(n):
            if a[i, k] > 0.5:
                c[i, 1] += a[i, k]
    return c


def through_a_view(a, b, c, n):
    row = c[1]
    for k in range(n):
        c[1, 2] += a[1, k]
        row[2] = row[2] * 0.5 if a[0, k] > 0.3 else c[1, 2]
    return c


def is_left(a, b, c, n):
    for i in range(3):
        for k in range(n):
            c[i, 0] += a[i, k]
            if c[i, 0] > 2:
                break
    return c


def a_step_is_missing(a, b, c, n):  # there is no such element, and nobody asks where there is no iteration
    for k in range(n):
        c[n + 2, 0] += a[0, k]
    return c


SUMS = [
    products, is_read_elsewhere, written_first, read_twice, two_places, now_and_then, through_a_view, is_left,
    a_step_is_missing,
]  # fmt: skip


@pytest.mark.parametrize("f", SUMS)
@pytest.mark.parametrize("n", [0, 1, 2, 4, 5])
@pytest.mark.parametrize("dtype", ["float64", "float32", "int8", "int64"])
def test_sums_in_elements(f, n, dtype):
    def given():
        made = np.random.default_rng(3).random((3, 4, 4)) * (1 if dtype[0] == "f" else 50)
        return (*made.astype(dtype), n)

    list(check(f, given, backends=BACKENDS, calls=2, ulp=0))


def test_sums_in_elements_are_captured():
    captured(products, lambda: (*np.random.default_rng(3).random((3, 4, 4)), 4))


def shifts(a, n):
    total = 0
    for i in range(n):
        total = (total << 1) ^ (a[i] & 7) ^ (i >> 1)
    return total


def wraps(a, n):
    x = np.int64(3)
    for i in range(n):
        x = (x << np.int64(7)) | (a[i] & 1)
    return x


def remainders(a, n):
    s = 0
    for i in range(n):
        s += (i - 3) // 2 + (i - 3) % 4 + (i * i) // (i + 1) + int(a[i] % 5) + int(a[i] // 3)
    return s


def signs(a, n):
    s = 0
    for i in range(n):
        k = a[i] - 4
        if k >= 0:
            s += 10 // (k + 1)
        elif k < -2:
            s += a[k]
        else:
            s -= a[-k]
    return s


@pytest.mark.parametrize("f", [shifts, wraps, remainders, signs])
@pytest.mark.parametrize("n", [9, 30])
def test_integers(f, n):
    captured(f, lambda: (np.random.default_rng(1).integers(0, 9, 30), n))


def test_an_int_that_grows_without_end():
    def f(a):
        x = 1
        for i in range(len(a)):
            x = x * 3 + a[i]
        return x

    captured(f, lambda: (np.zeros(70, np.int64),))


def nearest(a, n):
    best, found = np.inf, -1
    for k in range(n):
        s = 0.0  # Python's float, which is np.float64 from the first addition on
        for j in range(a.shape[1]):
            s += (a[0, j] - a[k, j]) * 0.5
        if s < best:
            best = s
            found = k
    return best, found


def quotients(a, n):
    s = 1.0
    for k in range(n):
        s = s / a[0, k]
    return s


def either(a, n):
    s = 0
    for k in range(n):
        if a[0, k] > 0.5:
            s = s + 1
        else:
            s = a[1, k]
    return s


@pytest.mark.parametrize("f", [nearest, quotients, either])
@pytest.mark.parametrize("n", [5, 7])
def test_kinds_of_the_same_bits(f, n):
    captured(f, lambda: (np.random.default_rng(2).random((8, 8)), n))
    captured(f, lambda: (np.zeros((8, 8)), n))


def count(limit):
    """``for i in range(limit): x = i`` as a program."""
    kinds = ("int", "int", "int", "int", "bool", "int")
    blocks = (
        ((), (("const", 0, 0), ("const", 1, limit), ("const", 2, 1)), ("jump", 1, (0,))),
        ((3,), (("more", 4, 3, 1, 2),), ("branch", 4, 2, (), 3, ())),
        ((), (("step", 5, 3, 2),), ("back", 1, (5,))),
        ((), (), ("exit", (3,))),
    )
    return kinds, (), blocks, ("int",)


def test_bounds_of_a_counter():
    kinds, _, blocks, _ = count(10)
    ranges = Ranges(kinds, blocks, reachable(blocks), lambda array, axis: None)
    assert next(ranges.before(2))[3] == (0, 9)
    assert ranges.iterations(1) == 10
    assert ranges.phis[3] == (0, 10)


def test_versions_of_the_same_bits_become_one():
    """``s = 0.0; for i in range(9): s = s + x``, of which capture makes two loops."""
    kinds = ("int", "int", "int", "float", "np.float64", "int", "float", "bool", "int", "np.float64", "int")
    kinds += ("np.float64", "bool", "int", "np.float64")
    blocks = (
        ((), (("const", 0, 0), ("const", 1, 9), ("const", 2, 1), ("const", 3, 0.0)), ("jump", 1, (0, 3))),
        ((5, 6), (("more", 7, 5, 1, 2),), ("branch", 7, 2, (), 5, ())),
        ((), (("step", 8, 5, 2), ("+", 9, 6, 4)), ("back", 3, (8, 9))),
        ((10, 11), (("more", 12, 10, 1, 2),), ("branch", 12, 4, (), 5, ())),
        ((), (("step", 13, 10, 2), ("+", 14, 11, 4)), ("back", 3, (13, 14))),
        ((), (), ("exit", (1,))),
    )
    merged = merge_versions((kinds, (4,), blocks, ("int",)))
    assert [merged[2][at][2][:2] for at in reachable(merged[2])][:2] == [("jump", 1), ("branch", 7)]
    assert len(reachable(merged[2])) == 4


def test_programs_stay_what_they_are():
    program = count(10)
    assert merge_versions(program) == program
    assert carry(tidy(program), lambda array: array) == tidy(program)
    assert len(tidy(program)[2]) == 4
