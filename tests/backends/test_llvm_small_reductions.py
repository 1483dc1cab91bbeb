"""Reductions over rows of a few elements: many rows side by side, whatever the layout, to the last row."""

import ctypes
import mmap

import differential
import numpy as np
import pytest

from tests.backends.llvm_cases import DTYPES, check, sample
from tests.backends.test_llvm_fusion import layer_norm, softmax
from tests.backends.test_llvm_layouts import VIEWS


def forms(compiled):
    return [kernel.form for kernel in compiled.schedule.kernels]


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("few", [1, 2, 3, 5, 8, 10, 16])
def test_softmax_and_layer_norm_of_many_short_rows(view, few):
    for dtype in ("float32", "float64"):
        for rows in (16, 17, 33, 1000):
            a = VIEWS[view](sample(dtype, (rows, few)))
            compiled = check(softmax(1), a, ulp=8, rtol=1e-6)
            assert few == 1 or forms(compiled) == ["small_rows"]
            if few > 1:
                w, b = sample(dtype, few, 3), sample(dtype, few, 4)
                check(layer_norm(1, few), a, w, b, ulp=16, rtol=1e-3)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("axis", [0, 1])
def test_every_reduction(dtype, axis):
    a = sample(dtype, (67, 3) if axis else (3, 67))
    names = ["max", "min", "any", "all"] + ([] if dtype == "bool" else ["sum", "prod"])

    def build(op, x):
        given = [op("not_equal", x, 0) if name in ("any", "all") and dtype != "bool" else x for name in names]
        return [op(name, y, axis=(axis,), keepdims=False) for name, y in zip(names, given, strict=True)]

    compiled = check(build, a, ulp=4, rtol=1e-6)
    assert "small_rows" in forms(compiled)


@pytest.mark.parametrize("shape", [(2, 40, 3), (40, 3, 2), (3, 2, 40)])
@pytest.mark.parametrize("axis", [0, 1, 2])
def test_leading_axes(shape, axis):
    a = sample("float32", shape)
    check(softmax(axis), a, ulp=8, rtol=1e-6)


@pytest.mark.parametrize("few", [2, 3, 7, 11])
@pytest.mark.parametrize("count", [16, 17, 40])
def test_distances_of_points(few, count):
    def build(op, p):
        d = op("subtract", op("expand_dims", p, axis=1), op("expand_dims", p, axis=0))
        return op("sqrt", op("sum", op("multiply", d, d), axis=(2,), keepdims=False))

    for view in ("c", "f", "strided", "reversed"):
        compiled = check(build, VIEWS[view](sample("float32", (count, few))), ulp=4)
        assert forms(compiled) == ["small_rows"]


def test_signs_flags_and_special_values():
    a = np.array([[np.nan, 1, 2], [np.inf, -np.inf, 0], [-0.0, -0.0, -0.0], [1e38, 1e38, 1e38]] * 5, "float32")
    check(lambda op, x: [op(name, x, axis=(1,), keepdims=False) for name in ("max", "min")], a)
    check(lambda op, x: op("sum", x, axis=(1,), keepdims=False), a[2:3].repeat(20, 0))
    ok = np.ones((19, 3))
    check(lambda op, x, y: op("divide", x, op("sum", y, axis=(1,), keepdims=True)), ok, ok)
    bad = np.ones((19, 3))
    bad[18] = 0
    check(lambda op, x, y: op("divide", x, op("sum", y, axis=(1,), keepdims=True)), ok, bad)


@pytest.mark.parametrize("few", [2, 3, 4, 9])
def test_rows_are_written_where_they_lie(few):
    """In place, into parts of rows, and beside others: what lies between stays as it is."""

    def normalised(x, out):
        x /= x.sum(axis=1, keepdims=True)
        out[:, 1:-1] = x - x.max(axis=1, keepdims=True)
        return out

    for rows in (16, 17, 23, 100):
        for dtype in ("float32", "float64", "int8"):
            made = np.random.default_rng(0).integers(1, 9, (rows, few)).astype(dtype)
            if dtype == "int8":
                differential.check(lambda x: x - x.min(axis=1, keepdims=True), lambda m=made: (m.copy(),), calls=1)
                continue
            arguments = lambda m=made, n=rows, d=dtype: (m.copy(), np.full((n, few + 2), 7, d))
            differential.check(normalised, arguments, backends=("llvm",), calls=1, exact=True)


@pytest.mark.parametrize("few", [1, 2, 3, 4, 9])
def test_booleans_beside_numbers(few):
    """Elements of rows, elements of columns, and one number a row, of several dtypes each."""

    def chosen(x, y, m, k, a, b):
        every = np.where(m & k, x, y)
        return every.sum(axis=1), (every * a[:, None]).max(axis=1), np.any(m ^ b[:, None], axis=1), (m & k).all(axis=1)

    for rows in (16, 17, 40):
        random = np.random.default_rng(rows)
        x, y = random.integers(0, 9, (2, rows, few)).astype("f4")
        m, k, b = random.random((rows, few)) > 0.5, random.random((few, rows)) > 0.2, random.random(rows) > 0.5
        differential.check(chosen, lambda a=(x, y, m, k.T, x[:, 0], b): a, backends=("llvm",), exact=True)


def test_places_along_the_rows_and_across():
    def places(x):
        across = np.arange(len(x))[:, None]
        return (x * np.arange(x.shape[1])).sum(axis=1), (x + across).max(axis=1), (x + across) / x.sum(1, keepdims=True)

    for shape in ((17, 3), (40, 7), (33, 16)):
        differential.check(places, lambda s=shape: (np.arange(1.0, s[0] * s[1] + 1).reshape(s),), backends=("llvm",))


@pytest.mark.parametrize("few", [2, 3, 4, 8, 10, 16])
def test_nothing_is_read_beyond_the_last_row(few):
    page = mmap.PAGESIZE
    memory = mmap.mmap(-1, 2 * page)  # what follows is another page, which may not be read
    libc = ctypes.CDLL(None)
    whole = np.frombuffer(memory, "uint8")
    assert libc.mprotect(ctypes.c_void_p(whole.ctypes.data + page), page, 0) == 0
    try:
        for rows in (16, 17, 31, 32, 33):
            nbytes = rows * few * 4
            a = whole[page - nbytes : page].view("float32").reshape(rows, few)
            a[...] = sample("float32", (rows, few))
            check(softmax(1), a, ulp=8, rtol=1e-6)
            if few in (3, 4):  # the same, of views that the kernel knows
                check(lambda op, x: softmax(1)(op, op("index", x, key=(slice(None), slice(few - 2, few)))), a, ulp=8)
                check(lambda op, x: softmax(1)(op, op("index", x, key=(slice(None), slice(1, few)))), a, ulp=8)
            if few > 2:  # the last element of each row is not read: what is there may be another page
                cut = np.lib.stride_tricks.as_strided(a[:, 1:], (rows, few - 1), a.strides)
                check(softmax(1), cut, ulp=8, rtol=1e-6)
    finally:
        libc.mprotect(ctypes.c_void_p(whole.ctypes.data + page), page, 3)
