"""Pointwise kernels whose innermost axis has a few elements: coordinates and colours, rows side by side."""

import ctypes
import mmap

import numpy as np
import pytest

import tcompile
from tcompile.backends.llvm.kernels.short_axes import with_rows_side_by_side
from tests.backends.llvm_cases import DTYPES, check, sample
from tests.backends.test_llvm_layouts import VIEWS


def unrolled(compiled):
    """How many kernels have a short axis unrolled."""
    return sum(with_rows_side_by_side(kernel) is not kernel for kernel in compiled.schedule.kernels)


def scaled(op, x, w, q):
    """Each point by a weight of its own, and each coordinate by another one."""
    weighed = op("multiply", x, op("expand_dims", w, axis=w.tensor.ndim))
    return [op("add", weighed, q), op("less", weighed, q)]


@pytest.mark.parametrize("few", range(1, 18))
@pytest.mark.parametrize("rows", [16, 17, 33, 100])
def test_points_times_weights(few, rows):
    for dtype in ("float64", "float32", "uint8", "int16"):
        x, w, q = sample(dtype, (5, rows, few)), sample(dtype, (5, rows), 1), sample(dtype, few, 2)
        compiled = check(scaled, x, w, q)
        if few in (2, 3):
            assert unrolled(compiled) == 1


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("few", [2, 3, 4, 5])
def test_every_dtype(dtype, few):
    def build(op, x, w, q):
        named = "logical_or" if dtype == "bool" else "add"
        return [op(named, op(named, x, q), op("expand_dims", w, axis=2)), op("not_equal", x, q)]

    check(build, sample(dtype, (3, 40, few)), sample(dtype, (3, 40), 1), sample(dtype, few, 2))


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("few", [2, 3, 7])
def test_any_layout(view, few):
    x, w, q = sample("float64", (70, few)), sample("float64", 70, 1), sample("float64", few, 2)
    check(scaled, VIEWS[view](x), w, q)
    check(scaled, x, w[::-1], q[::-1])


def test_differences_of_all_points():
    def build(op, p):
        return op("subtract", op("expand_dims", p, axis=0), op("expand_dims", p, axis=1))

    for count in (16, 19, 64):
        for few in (2, 3, 4):
            assert unrolled(check(build, sample("float32", (count, few)))) == 1


def test_nothing_beyond_the_last_row_is_touched():
    page = mmap.PAGESIZE
    memory = mmap.mmap(-1, 2 * page)
    libc = ctypes.CDLL(None, use_errno=True)
    start = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    assert libc.mprotect(ctypes.c_void_p(start + page), ctypes.c_size_t(page), 0) == 0
    try:
        for dtype in (np.float64, np.float32, np.uint8):
            for few in (2, 3, 5):
                for rows in (16, 19, 31):
                    size = rows * few
                    at = page - size * np.dtype(dtype).itemsize
                    x = np.frombuffer(memory, dtype, size, at).reshape(rows, few)
                    x[...] = np.arange(size).reshape(rows, few)
                    check(scaled, x, np.arange(rows).astype(dtype), np.arange(few).astype(dtype))
                    del x
    finally:
        assert libc.mprotect(ctypes.c_void_p(start + page), ctypes.c_size_t(page), 3) == 0


def test_writes_in_place_and_to_parts():
    def f(x, w, q):
        x *= w[:, :, None]
        x[1:, ::2] += q
        x[:, :, 1] = w
        y = np.zeros((40, 7))
        y[:, 2:5] = x[0] - q
        return x, y

    compiled = tcompile.compile(f)
    for _ in range(2):
        x, w, q = sample("float64", (3, 40, 3)), sample("float64", (3, 40), 1), sample("float64", 3, 2)
        mine = x.copy()
        for got, want in zip(compiled(mine, w, q), f(x.copy(), w, q), strict=True):
            np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("axis", [0, 1])
def test_sums_over_points(axis):
    """A value that is kept is computed on its own, and then added up."""

    def f(x, w):
        y = x * w[:, :, None]
        return y, y.sum(axis=axis), (-y).sum(axis=axis)

    for count in (17, 60):
        for few in (2, 3, 5):
            x, w = sample("float64", (count, 33, few)), sample("float64", (count, 33), 1)
            for got, want in zip(tcompile.compile(f)(x, w), f(x, w), strict=True):
                np.testing.assert_allclose(got, want, rtol=1e-12, atol=1e-12)


def test_flags_are_numpys():
    """Lanes without a row raise no flag of their own."""
    x = np.ones((17, 3))
    w = np.ones(17)

    def f(x, w):
        return x / w[:, None]

    compiled = tcompile.compile(f)
    with np.errstate(all="raise"):
        np.testing.assert_array_equal(compiled(x, w), x)
        w[5] = 0.0
        with pytest.raises(FloatingPointError):
            compiled(x, w)
