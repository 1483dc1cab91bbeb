"""Sorts of a few elements each: NumPy's values in every layout, NaNs last, and no flag raised."""

import itertools

import numpy as np
import pytest

from tcompile.backends.llvm.kernels.sorts import exchanges
from tests.backends.llvm_cases import LAYOUTS, check, sample


@pytest.mark.parametrize("count", range(1, 9))
def test_every_order_of_zeros_and_ones(count):
    """A network that sorts these sorts everything (D. E. Knuth, TAOCP 3, 5.3.4, theorem Z)."""
    for line in map(list, itertools.product((0, 1), repeat=count)):
        ones = sum(line)
        for low, high in exchanges(count):
            line[low], line[high] = sorted((line[low], line[high]))
        assert line == [0] * (count - ones) + [1] * ones


@pytest.mark.parametrize("count", [9, 16, 25])
def test_larger_networks(count):
    line = np.random.default_rng(1).integers(0, 5, (400, count))
    for low, high in exchanges(count):
        line[:, low], line[:, high] = np.minimum(line[:, low], line[:, high]), np.maximum(line[:, low], line[:, high])
    assert (np.diff(line) >= 0).all()
    for dtype in ("float64", "float32", "uint8"):
        check(lambda op, x: op("sort", x, axis=0), sample(dtype, (count, 70)), kernels=1)
        kernels = 0 if count > 9 and dtype != "uint8" else 1  # NumPy's own sort
        check(lambda op, x: op("sort", x, axis=1), sample(dtype, (70, count)), kernels=kernels)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize(("shape", "axis"), [
    ((17, 2), 1), ((100, 5), 1), ((3, 40), 0), ((8, 16), 0), ((4, 5, 6), 1), ((7, 3, 20), 1), ((64, 8), 1),
])  # fmt: skip
def test_layouts(shape, axis, layout):
    x = LAYOUTS[layout](sample("float64", shape))
    check(lambda op, x: op("sort", x, axis=axis), x, kernels=1)
    check(lambda op, x: op("add", op("index", op("sort", op("negative", x), axis=axis), key=(0,)), 1.0), x)


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "int32", "uint32", "int64", "uint64", "float32"])
def test_dtypes(dtype):
    for count in range(2, 9):
        check(lambda op, x: op("sort", x, axis=1), sample(dtype, (33, count)), kernels=1)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_nans_and_infinities(dtype):
    values = list(itertools.product([1.0, -np.inf, np.nan, np.inf], repeat=4))
    check(lambda op, x: op("sort", x, axis=1), np.array(values, dtype), kernels=1)


@pytest.mark.parametrize("shape", [(5, 3), (40, 10), (40, 1), (0, 3), (40, 0)])
def test_what_is_left_to_numpy(shape):
    check(lambda op, x: op("sort", x, axis=1), sample("float64", shape), kernels=0)


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_parts_of_complex_numbers(dtype):
    for count in (2, 5):
        x = sample(dtype, (33, count))
        check(lambda op, x: op("sort", op("real", x), axis=1), x)
        check(lambda op, x: op("sort", op("imag", x), axis=0), x.T)
