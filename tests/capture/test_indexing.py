"""Integer arrays and lists as indices: what they read, and what is written through them."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import tcompile
from tests.differential import BACKENDS, check

I = np.array([3, 0, -1, 3])
J = np.array([[0, 1], [2, 2]], dtype="i4")

LAYOUTS = {
    "c": lambda x: x, "fortran": np.asfortranarray, "cut": lambda x: np.repeat(x, 2, 1)[:, ::2],
    "reversed": lambda x: x[:, ::-1], "f4": lambda x: x.astype("f4"), "complex": lambda x: x * 1j,
}  # fmt: skip


def cube(layout="c"):
    return LAYOUTS[layout](np.arange(4 * 6 * 5.0).reshape(4, 6, 5))


READS = {
    "first": lambda x, i, j: x[i],
    "second": lambda x, i, j: x[:, i],
    "last": lambda x, i, j: x[..., i],
    "matrix": lambda x, i, j: x[:, j],
    "pairs": lambda x, i, j: x[i, i],
    "apart": lambda x, i, j: x[i, :, i],
    "apart by None": lambda x, i, j: x[i, None, i],
    "with slices": lambda x, i, j: x[1:, ::2, i],
    "with ints": lambda x, i, j: (x[0, i], x[0, :, i], x[i, :, -1], x[:, 2, i]),
    "broadcast": lambda x, i, j: x[i[:, None, None], j],
    "three": lambda x, i, j: x[j, j, j],
    "unsigned": lambda x, i, j: x[j.astype("u1")],
    "fortran indices": lambda x, i, j: x[:, j.T],
    "empty": lambda x, i, j: (x[i[:0]], x[[]], x[:, []]),
    "lists": lambda x, i, j: (x[[0, 2]], x[:, [1, -1]], x[[0, 1], [1, 2]], x[[[0, 1], [1, 0]]]),
    "tuples inside": lambda x, i, j: x[(0, 1), (1, 2)],
    "computed": lambda x, i, j: x[(i + 1) % 4] * 2 + x[i],
    "chain": lambda x, i, j: x[i][:, j][0],
    "element": lambda x, i, j: x[x.argmax() // 30, 0, i[0]],
    "rank 0": lambda x, i, j: (x[np.array(1)], x[np.array(1), 0, 2], x[0, np.array(1), 2]),
    "sum": lambda x, i, j: (x[i] - x[1]).sum(axis=0),
}


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("read", READS)
def test_reads(read, layout):
    compiled = check(READS[read], lambda: (cube(layout), I.copy(), J.copy()))[-1]
    assert not compiled.breaks


def test_views_are_told_from_copies():
    def f(x, i):
        a, b = x[:, i], x[i]
        a *= 2
        b -= 1
        return a, b, a.T, x

    check(f, lambda: (cube(), I.copy()))


def test_an_index_out_of_range_raises():
    def f(x, i):
        y = x + 1
        return y[i]

    def g(x, i):
        x[0] = 5
        x[i] = 1

    for function in (f, g):
        check(function, lambda: (cube(), I + 3))
        check(function, lambda: (cube(), I - 4))


def test_indices_that_are_none():
    check(lambda x, i: x[i], lambda: (cube(), I * 1.0))
    check(lambda x, i: x[i, i, i, i], lambda: (cube(), I))
    check(lambda x, i: x[i, i[:3]], lambda: (cube(), I))


def test_sizes_that_vary():
    @tcompile.compile
    def f(x, i):
        return x[i] * 2, x[:, i[:2]]

    for rows, places in itertools.product((4, 5, 9), (2, 3, 7)):
        x, i = np.arange(rows * 6.0).reshape(rows, 6), np.arange(places) % 4
        for got, want in zip(f(x, i), (x[i] * 2, x[:, i[:2]]), strict=True):
            np.testing.assert_array_equal(got, want)
            assert got.strides == want.strides
    assert len(f.entries) <= 3


def writes(x, i, j):
    x[i] = 1
    x[:, j] *= 2
    x[i, i] = [[1], [2], [3], [4]]
    x[1:, [0, 2]] += x[:-1, [1, 1]]
    x[:, i] = np.arange(20).reshape(4, 5)[:, ::-1]
    x[..., i] = np.ones((1, 1, 1, 4))


def repeated(x, i, j):
    x[[0, 0, 0], 0, 0] = [1, 2, 3]
    x[[1, 1], 1] += 1
    x[j.T, 0, 0] = j


def through_views(x, i, j):
    y = x[1:, ::2].T
    y[i[1], i - 1] = 5
    z = x[0]
    z[i] = z[j[0]].sum()
    return x[:, 0], z


def element(x, i, j):
    x[x.argmax() // 30, 0, 0] = 7
    x[i[0]] = 3
    return x


def casts(x, i, j):
    n = np.zeros(8, "i4")
    n[i] = 2.7
    n[j] = x[0, :2, :2]
    n[[0, 1]] = True
    return n


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("f", [writes, repeated, through_views, element], ids=lambda f: f.__name__)
def test_writes(f, layout):
    compiled = check(f, lambda: (cube(layout), I.copy(), J.copy()))[-1]
    assert not compiled.breaks


def test_writes_cast():
    compiled = check(casts, lambda: (cube(), I.copy(), J.copy()))[-1]
    assert not compiled.breaks


def test_values_that_do_not_fit():
    def f(x, i):
        x[0] = 0
        x[i] = np.ones(3)

    check(f, lambda: (cube(), I.copy()))


def test_indices_that_are_written():
    def f(x, i):
        i[0] = 1
        y = x[i]
        i[1] = 2
        i[i] = 3
        return y, x[i]

    for backend in BACKENDS:
        compiled = tcompile.compile(f, backend=backend)
        for _ in range(2):
            one, two = I.copy(), I.copy()
            for got, want in zip(compiled(cube(), two), f(cube(), one), strict=True):
                np.testing.assert_array_equal(got, want)
            np.testing.assert_array_equal(one, two)


# -- in kernels ----------------------------------------------------------------------------------------------------


FUSED = {
    "map": lambda x, i, j: (x[i] * 2 + 1, x[:, i] - x[:, :4], x[i, i] + i[:, None]),
    "rows": lambda x, i, j: (x[i].sum(axis=-1), x[i].max(axis=1), x[:, i].sum(axis=1)),
    "columns": lambda x, i, j: (x[i].sum(axis=0), x[:, i].mean(axis=0), x[j, j].sum(axis=(0, 1))),
    "everything": lambda x, i, j: (x[i].sum(), (x[i, i] * x[0, 0]).max(), np.abs(x[:, j]).sum()),
    "of what is computed": lambda x, i, j: ((x + 1)[i], (x * 2)[:, (i + 1) % 4], (x - 1).T[j]),
    "twice": lambda x, i, j: x[i][i] * x[j][0, 0],
    "of views": lambda x, i, j: (x[1:][i[:1] * 0], x[::-1, ::2][i[:2], :][:, :2], x.T[i], x[:, 1:4][i]),
    "booleans": lambda x, i, j: (x > 7)[i] & (x < 90)[i],
    "integers": lambda x, i, j: (i[i] + j[j[0], 0].sum(), x.astype("i2")[i] * 2),
}


@pytest.mark.parametrize("layout", ["c", "fortran", "cut", "f4"])
@pytest.mark.parametrize("name", FUSED)
def test_gathers_in_kernels(name, layout):
    compiled = check(FUSED[name], lambda: (cube(layout), I.copy(), J.copy()), backends=["llvm"])[-1]
    assert not compiled.breaks
    large = np.random.default_rng(1).integers(-20, 20, 500)
    check(FUSED[name], lambda: (LAYOUTS[layout](np.arange(20 * 23 * 21.0).reshape(20, 23, 21)), large, J + large[:2]),
          backends=["llvm"], ulp=64)  # fmt: skip


def test_a_gather_is_fused():
    compiled = tcompile.compile(lambda x, i: np.sqrt(x[i] * 2).sum())
    compiled(np.arange(100.0), np.arange(50) % 7)
    (kernel,) = compiled.entries[0].kernels
    assert "masked.gather" in kernel.ir


def test_what_is_read_while_it_is_written():
    def f(x, i):
        x[1:] = x[i[:3]] * 2
        x += x[i]
        x[:, i] = x[:, i[::-1]] + 1
        x[i[0]] = x[i].sum(axis=0)
        y = x[i]
        x *= 2
        return y + 1, x[i]

    compiled = check(f, lambda: (cube(), I.copy()))[-1]
    assert not compiled.breaks


@pytest.mark.parametrize("wrong", [4, 100, -5, 2**62, -(2**63)])
def test_an_index_out_of_range_in_the_middle_of_writes(wrong):
    def f(x, y, i):
        x[:] = 1
        y[1:] = (x + y)[i[:3]]
        x[:] = 2
        y *= 2

    def g(x, y, i):
        z = x[i] + 1
        x[:] = 3
        return z

    bad = I.copy()
    bad[2] = wrong
    for function in (f, g):
        for index in (I, bad):
            check(function, lambda index=index: (cube(), cube() + 1, index.copy()))


def test_nothing_to_read_from():
    check(lambda x, i: x[i] + 1, lambda: (np.ones((0, 3)), np.array([0, 0])))
    check(lambda x, i: x[i] + 1, lambda: (np.ones((0, 3)), np.array([], int)))
    check(lambda x, i: (x[i] + 1).sum(), lambda: (np.ones(5), np.array([], int)))


TAKES = {
    "rows": lambda x, i, j: (np.take(x, i, axis=0), x.take(j, 0), np.take(x, [0, -1], axis=0) * 2),
    "flat": lambda x, i, j: (np.take(x, j), x.take(i) + 1, np.take(x, 7), np.take(x[0, 0], i)),
    "inner": lambda x, i, j: (np.take(x, i, axis=1), x.take(j, axis=-1)),
    "one": lambda x, i, j: (np.take(x, 1, axis=0), np.take(i, 1), np.take(x, i[0], 0)),
    "modes": lambda x, i, j: (np.take(x, i + 9, axis=0, mode="clip"), np.take(x, i + 9, mode="wrap")),
    "along": lambda x, i, j: np.take_along_axis(x[:, :, 0], x[:, :, 0].argsort(axis=1), axis=1),
    "largest": lambda x, i, j: np.take_along_axis(x, x.argmax(axis=0, keepdims=True), axis=0).sum(),
}


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("name", TAKES)
def test_takes(name, layout):
    if layout == "complex" and name == "along":
        pytest.skip("the order of complex numbers")
    check(TAKES[name], lambda: (cube(layout), I.copy(), J.copy()))


def test_takes_that_raise():
    check(lambda x, i: np.take(x, i, axis=0), lambda: (cube(), I + 9))
    check(lambda x, i: np.take(x, i * 1.0, axis=0), lambda: (cube(), I))
    check(lambda x, i: np.take_along_axis(x, i, 0), lambda: (cube(), I))


@pytest.mark.parametrize("dtype", ["c16", "f8"])
@pytest.mark.parametrize("wrong", [0, 9])
def test_what_follows_an_error_is_not_written(wrong, dtype):
    def f(x, y, i, w):
        x[:] = 1
        z = np.sort((x + y)[i])
        w[:] = 2
        return z

    def g(x, y, i, w):
        x[:] = 1
        z = (x * 2)[i]
        w += 2
        x[0] = 5
        return z

    for function in (f, g):
        check(function, lambda: (np.arange(4).astype(dtype), np.ones(4, dtype), np.array([1, wrong]), np.zeros(4)))
