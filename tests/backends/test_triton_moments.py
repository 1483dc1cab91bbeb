"""Variances of rows that are read once, where nothing is reported (arrays of a GPU's), in Triton's interpreter."""

import numpy as np
import pytest

pytest.importorskip("triton")

from tcompile.backends import triton
from tcompile.backends.triton import kernels, moments
from tcompile.backends.triton import rows as rows_module
from tcompile.backends.triton.configs import TilingConfig
from tests.backends.llvm_cases import graph_of, same, sample
from tests.backends.test_triton_complex_and_half import normal, variance
from tests.backends.triton_cases import compile_all, on_interpreter

write = kernels.write


@pytest.fixture(autouse=True)
def short_and_silent(monkeypatch):
    """Few elements are many, and kernels tell nothing."""
    monkeypatch.setattr(triton, "USUAL", TilingConfig(elements=32, rows=2, chunk=32))
    monkeypatch.setattr(rows_module, "IN_REGISTERS", 16)
    monkeypatch.setattr(kernels, "write", lambda kernel, signals, *given: write(kernel, False, *given))


def compared(build, x, rtol, count=1):
    graph = graph_of(build, x)
    made = on_interpreter(graph)
    with np.errstate(all="ignore"):
        got, want = made(x), graph(x)
    for one, other in zip(got, want, strict=True):
        same(one, other, rtol=rtol)
    assert len(made.kernels[0].functions) == count
    return made


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize(("dtype", "rtol"), [("float32", 1e-5), ("float64", 2e-14)])
def test_rows_are_read_once(dtype, rtol, axis, monkeypatch):
    x = sample(dtype, (150, 3) if axis == 0 else (3, 150))
    compile_all(compared(variance(axis), x, rtol), (90,))
    compile_all(compared(normal(axis), x, rtol, count=2), (90,))
    monkeypatch.setattr(rows_module, "FEW_PROGRAMS", 0)  # so no row is shared out
    compared(variance(axis), x, rtol)


@pytest.mark.parametrize("shift", [1e3, 1e6, -1e8])
@pytest.mark.parametrize("first", [0.0, 1.0, 1e7])
def test_what_cancels_out(shift, first):
    x = (np.random.default_rng(1).normal(size=(2000, 3)) + shift).astype("f4")
    x[0] += np.float32(first)
    (got,) = compared(variance(0), x, np.inf)(x)
    mean = (x.sum(axis=0, dtype="f8").astype("f4") / np.float32(2000)).astype("f8")
    np.testing.assert_allclose(got, np.square(x - mean).mean(axis=0), rtol=1e-6)


@pytest.mark.parametrize("shift", [0.0, 1e6, -1e12])
@pytest.mark.parametrize("first", [0.0, 1.0, 1e3, 1e9])
@pytest.mark.parametrize("rows", [17, 200])
def test_nothing_cancels_out_of_float64(rows, first, shift):
    """Not further from the exact number than NumPy's, which sums what differs from a rounded mean, too."""
    x = np.random.default_rng(1).normal(size=(rows, 8)) + shift
    x[0] += first
    graph = graph_of(variance(0), x)
    (got,), (theirs,) = on_interpreter(graph)(x), graph(x)
    wide = x.astype(np.longdouble)
    mean = (wide.sum(axis=0).astype("f8") / rows).astype(np.longdouble)
    exact = np.square(wide - mean).mean(axis=0)
    ours, numpys = (np.sqrt(np.square((one - exact) / exact).mean()) for one in (got, theirs))
    assert ours < max(numpys, 3e-16)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf, 3e38, 2e20, 1.7e308, 1e160])
def test_what_is_not_finite(bad):
    for at in (slice(1), slice(70, 71), slice(0, 150, 7)):
        for dtype, rtol in (("float32", 1e-5), ("float64", 2e-14)):
            x = sample(dtype, (150, 3))
            x[at, 1] = min(bad, 3e38) if dtype == "float32" else bad
            compared(variance(0), x, rtol)
            if at.stop != 150:  # else the mean depends on the order of what overflows
                x[4, 1] = -x[at, 1][0]
                compared(variance(0), x, rtol)
    compared(variance(0), np.full((150, 2), np.float32(0.1)), 1e-6)
    compared(variance(0), np.full((150, 2), 0.1), 1e-6)


def test_other_sums_are_left_as_they_are():
    def apart(op, x):
        near = op("subtract", op("exp", x), op("max", x, axis=(0,), keepdims=True))
        return op("sum", op("multiply", near, near), axis=(0,), keepdims=False)

    compared(apart, sample("float32", (150, 3)), 1e-4, count=2)

    def from_the_least(op, x):
        near = op("subtract", x, op("min", x, axis=(0,), keepdims=True))
        return op("sum", op("multiply", near, near), axis=(0,), keepdims=False)

    for at in (0, 70):  # an infinity stays one
        x = sample("float32", (150, 3))
        x[at, 1] = np.inf
        compared(from_the_least, x, 1e-5, count=2)
    graph = graph_of(variance(0), sample("float32", (150, 3)))
    (kernel,) = on_interpreter(graph).schedule.kernels
    assert moments.in_one_pass(kernel) is not kernel
