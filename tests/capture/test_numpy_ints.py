"""Ints of NumPy that change from call to call stay open, unless a graph needs their values."""

from __future__ import annotations

import numpy as np
import pytest
from differential import BACKENDS, Run, assert_same_run, check

import tcompile

X = np.linspace(-2.0, 3.0, 12)
LABELS = np.arange(12) % 5


def of_class(x, labels, c):
    return (x * (labels == c)).sum() + c


def scaled(x, pair):
    return x * pair[1] - pair[1] // 2


def shifted(x, k):
    return np.roll(x, k) + 1


def after(x, k):
    return x[k:] * 2


def branch(x, k):
    return x + 1 if k > 2 else x - 1


def printed(x, k):
    y = x * k
    print(k)
    return y + k


def counted(x, k):
    total = x * 0
    for i in range(k):
        total = total + i
    return total


def picked(x, k):
    return x[k] + x[-k] + [1, 2, 3, 4, 5, 6, 7, 8, 9][k]


def powers(x, k):
    return k**2 + x, k % 3, -k, k / 3, np.float32(k) + x, float(k), k == 3


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int32", "int64", "uint64"])
@pytest.mark.parametrize(
    "function", [of_class, scaled, shifted, after, branch, printed, counted, picked, powers],
    ids=lambda function: function.__name__,
)  # fmt: skip
def test_as_numpy(function, dtype):
    kind = np.dtype(dtype).type
    more = (LABELS,) if function is of_class else ()

    def given(value):
        return kind(value) if function is not scaled else (0, kind(value))

    for backend in BACKENDS:
        tcompile.reset()
        compiled = tcompile.compile(function, backend=backend)
        for value in (1, 2, 3, 5, 4, 7, 6):
            assert_same_run(Run(compiled, (X, *more, given(value))), Run(function, (X, *more, given(value))))
        if function in (of_class, scaled, shifted):
            assert len(compiled.entries) == 2


def test_values_that_a_graph_needs_are_fixed_and_others_stay_open():
    def f(x, k, lr, c):
        return x[k:] * lr + c

    tcompile.reset()
    compiled = tcompile.compile(f)
    for k, lr, c in [(1, 0.5, 1), (2, 0.5, 1), (2, 0.25, 2), (2, 0.75, 3), (1, 0.125, 4), (2, 0.0625, 5)]:
        got, want = compiled(X, np.int64(k), lr, np.int64(c)), f(X, np.int64(k), lr, np.int64(c))
        np.testing.assert_array_equal(got, want)
    assert len(compiled.entries) <= 5


def test_classes_of_a_loop_over_unique_values():
    def means(x, labels):
        return [masked(x, labels, c) for c in np.unique(labels)]

    def masked(x, labels, c):
        print(end="")
        return np.where(labels == c, x, 0.0).sum()

    tcompile.reset()
    compiled = tcompile.compile(means)
    np.testing.assert_allclose(compiled(X, np.arange(12)), means(X, np.arange(12)))
    inner = [c for c in tcompile.runtime.cache.caches() if c.name.endswith("masked")]
    assert sum(len(cache.entries) for cache in inner) <= 4


def divided(x):
    return x[0] // x[1], x[0] % x[1], x[2] % 7 + x[0] // 3


@pytest.mark.parametrize("errors", ["ignore", "warn", "raise"])
@pytest.mark.parametrize("dtype", ["i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8"])
def test_divisions_of_scalars_are_kernels(dtype, errors):
    """By zero, and of the least int by -1, they do what NumPy's scalars do, with their texts."""
    least, most = np.iinfo(dtype).min, np.iinfo(dtype).max
    tcompile.reset()
    compiled = tcompile.compile(divided, backend="llvm")
    minus = -1 if least else 1
    for pair in ((17, 5), (least, minus), (most, 2), (17, 0), (least, 0), (0, 3), (least, most), (17, minus * 4)):
        x = np.array([*pair, pair[0], pair[0]], dtype)
        with np.errstate(all=errors):
            assert_same_run(Run(compiled, (x,)), Run(divided, (x,)))
    assert all(not entry.broke for entry in compiled.entries)
    assert all(step.kind != "call" for step in compiled.entries[0].compiled_graph.host.schedule.steps)


def lists_of_ints(a, k):
    m, n = a.argmax(), len(a)
    flat = a.ravel()
    flat[[m, k]] = flat[[k, m]]
    return (
        np.array([m, 3]), np.array([[m, n], [True, m]]), np.array([m, n, k]), flat[[m, 0, -1]], np.array([m]),
        np.array([m, 2.5]), np.array([m, k], dtype=np.int8), np.array([np.int32(4), m]), np.array([m, k], dtype=float),
    )  # fmt: skip


@pytest.mark.parametrize("dynamic", [None, True])
def test_arrays_of_a_few_ints(dynamic):
    for n, k in ((3, 1), (5, 2), (4, 0), (6, 3)):
        a = np.arange(2.0 * n).reshape(n, 2) % 5
        check(lists_of_ints, lambda a=a, k=k: (a.copy(), k), dynamic=dynamic, fullgraph=True)
