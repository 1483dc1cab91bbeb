"""Cumulative sums and products: NumPy's bits, in every layout, with its warnings and no others."""

import numpy as np
import pytest

from tcompile.backends import llvm
from tcompile.backends.llvm import compile_graph, native
from tests.backends.llvm_cases import LAYOUTS, check, graph_of, sample, scan

SHAPES = [(0,), (1,), (5,), (100,), (0, 3), (3, 0), (1, 9), (9, 1), (7, 20), (33, 130), (3, 5, 70), (70, 3, 5)]


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_layouts(shape, layout):
    x = LAYOUTS[layout](sample("float32", shape))
    for axis in range(len(shape)):
        check(scan(axis), x, kernels=1)


@pytest.mark.parametrize("name", ["cumulative_sum", "cumulative_prod"])
@pytest.mark.parametrize("dtype", ["int8", "uint16", "int32", "int64", "uint64", "float32", "float64"])
def test_dtypes(dtype, name):
    x = sample(dtype, (6, 40))
    for axis in range(2):
        check(scan(axis, name), x, kernels=1)
        check(scan(axis, name), np.concatenate([x, x * 3], axis), kernels=1)


def test_what_is_computed_on_the_way():
    x, y = sample("float64", (20, 30)), sample("float64", (30,))
    for axis in range(2):
        check(lambda op, x, y, axis=axis: op("cumulative_sum", op("multiply", op("exp", x), y), axis=axis), x, y,
              rtol=1e-13, kernels=1)  # fmt: skip
        check(lambda op, x, y, axis=axis: op("sqrt", op("cumulative_sum", op("square", x), axis=axis)), x, y)
        check(lambda op, x, axis=axis: op("cumulative_prod", op("cumulative_sum", x, axis=axis), axis=1 - axis), x)


@pytest.mark.parametrize("special", [-0.0, np.inf, -np.inf, np.nan, 1e308, -1e308, 5e-324])
@pytest.mark.parametrize("name", ["cumulative_sum", "cumulative_prod"])
def test_special_values_and_warnings(name, special):
    """A value that overflows when it is added once more is not added beyond the end of a row."""
    for at in (0, 4, 18):
        x = np.zeros((6, 19)) if name == "cumulative_sum" else np.ones((6, 19))
        x[:, at] = special
        for values in (x, -x, x.T.copy(), np.where(x == special, x, -x)):
            check(scan(0, name), values)
            check(scan(1, name), values)
    check(scan(0, name), np.array([special, special, -special]))


def test_threads_and_the_way_past_the_cache(monkeypatch):
    monkeypatch.setattr(llvm, "NONTEMPORAL_BYTES", 1 << 10)
    for axis in range(2):
        x = sample("float32", (200, 1000))
        compiled = compile_graph(graph_of(scan(axis), x))
        for threads in (1, 2):
            before = native.num_threads()
            native.set_num_threads(threads)
            (got,) = compiled(x)
            native.set_num_threads(before)
            np.testing.assert_array_equal(got, np.cumsum(x, axis))
