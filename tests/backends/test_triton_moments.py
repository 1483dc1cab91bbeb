"""Variances of rows that are read once, where nothing is reported (arrays of a GPU's), in Triton's interpreter."""

import numpy as np
import pytest

pytest.importorskip("triton")

from tcompile.backends import triton
from tcompile.backends.triton import kernels, moments
from tcompile.backends.triton import rows as rows_module
from tcompile.backends.triton.configs import Config
from tests.backends.llvm_cases import graph_of, same, sample
from tests.backends.test_triton_parts import normal, variance
from tests.backends.triton_cases import compile_all, on_interpreter

write = kernels.write


@pytest.fixture(autouse=True)
def short_and_silent(monkeypatch):
    """Few elements are many, and kernels tell nothing."""
    monkeypatch.setattr(triton, "USUAL", Config(elements=32, rows=4, chunk=32))
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
def test_rows_are_read_once(axis, monkeypatch):
    x = sample("float32", (150, 3) if axis == 0 else (3, 150))
    compile_all(compared(variance(axis), x, 1e-5), (90,))
    compile_all(compared(normal(axis), x, 1e-5, count=2), (90,))
    monkeypatch.setattr(rows_module, "FEW_PROGRAMS", 0)  # so no row is shared out
    compared(variance(axis), x, 1e-5)


@pytest.mark.parametrize("shift", [1e3, 1e6, -1e8])
@pytest.mark.parametrize("first", [0.0, 1.0, 1e7])
def test_what_cancels_out(shift, first):
    x = (np.random.default_rng(1).normal(size=(2000, 3)) + shift).astype("f4")
    x[0] += np.float32(first)
    (got,) = compared(variance(0), x, np.inf)(x)
    mean = (x.sum(axis=0, dtype="f8").astype("f4") / np.float32(2000)).astype("f8")
    np.testing.assert_allclose(got, np.square(x - mean).mean(axis=0), rtol=1e-6)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf, 3e38, 2e20])
def test_what_is_not_finite(bad):
    for at in (slice(1), slice(70, 71), slice(0, 150, 7)):
        x = sample("float32", (150, 3))
        x[at, 1] = bad
        compared(variance(0), x, 1e-5)
    compared(variance(0), np.full((150, 2), np.float32(0.1)), 1e-6)


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
    compared(variance(0), sample("float64", (150, 3)), 1e-12, count=2)
    graph = graph_of(variance(0), sample("float32", (150, 3)))
    (kernel,) = on_interpreter(graph).schedule.kernels
    assert moments.in_one_pass(kernel) is not kernel
