"""Sums, means and variances of hard inputs: never further from the exact result than NumPy's pairwise summation."""

import math
import warnings

import numpy as np
import pytest

import tcompile
from tests.backends.llvm_cases import FLOATS

RNG = np.random.default_rng(0)


def signs(shape):
    return (-1.0) ** np.arange(math.prod(shape)).reshape(shape)


def cancelling(shape):
    x = RNG.normal(size=shape) * 1e5
    return x - np.roll(x, 1, -1) + 1e-9


HARD = {
    "positive": lambda shape: RNG.random(shape) + 0.1,
    "normal": lambda shape: RNG.normal(size=shape),
    "some huge": lambda shape: np.where(RNG.random(shape) < 0.01, 1e8, 1.0) * RNG.random(shape),
    "alternating": lambda shape: signs(shape) * (1e6 + RNG.random(shape)),
    "all sizes": lambda shape: 10.0 ** RNG.uniform(-12, 6, shape),
    "cancelling": cancelling,
    "tenths": lambda shape: np.full(shape, 0.1),
}
CASES = [((100_003,), None), ((50, 3001), 0), ((50, 3001), 1), ((3001, 50), 0), ((3001, 50), None), ((1000, 1), 0)]
CASES += [((rows, 3001), 0) for rows in (3, 4, 7, 8, 12)] + [((3001, columns), 1) for columns in (2, 5, 7, 9, 16)]


def exact_sums(x, axis):
    """Correctly rounded float64 sums."""
    rows = x.reshape(1, -1) if axis is None else np.moveaxis(x, axis, -1)
    return np.array([math.fsum(row) for row in rows.reshape(-1, rows.shape[-1]).tolist()])


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("kind", HARD)
def test_sums_are_as_close_as_numpys(kind, dtype):
    compiled = tcompile.compile(lambda x, axis: x.sum(axis=axis, keepdims=True), dynamic=False)
    for shape, axis in CASES:
        x = HARD[kind](shape).astype(dtype)
        want = exact_sums(x, axis).astype(np.longdouble)
        ours, numpys = (
            np.abs(result.astype(np.longdouble).ravel() - want).max()
            for result in (compiled(x, axis), x.sum(axis=axis, keepdims=True))
        )
        half = 0.51 * np.spacing(np.abs(want).max().astype(dtype))
        assert ours <= max(numpys, half), (shape, axis, ours, numpys, half)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("kind", HARD)
@pytest.mark.parametrize("name", ["mean", "var", "std"])
def test_moments_are_as_close_as_numpys(name, kind, dtype):
    function = getattr(np, name)
    compiled = tcompile.compile(lambda x, axis: function(x, axis=axis), dynamic=False)
    for shape, axis in CASES:
        x = HARD[kind](shape).astype(dtype)
        want = function(x.astype(np.longdouble), axis=axis)
        ours, numpys = (
            np.abs(np.asarray(result).astype(np.longdouble) - want).max()
            for result in (compiled(x, axis), function(x, axis=axis))
        )
        unit = np.spacing(np.abs(want).max().astype(dtype))
        assert ours <= max(numpys, 2 * unit), (shape, axis, ours / unit, numpys / unit)


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
def test_special_values_in_sums_and_means(dtype):
    compiled = tcompile.compile(lambda x: (x.sum(axis=0), x.sum(axis=1), x.sum(), x.mean(axis=1)), dynamic=False)
    for special in ([np.nan], [np.inf], [-np.inf], [np.inf, np.inf], [np.inf, np.nan], [-0.0], [0.0, -0.0]):
        x = np.ones((20, 40), dtype) if special[0] != 0 else np.full((20, 40), -0.0, dtype)
        x[3, : len(special)] = special
        with np.errstate(all="ignore"):
            pairs = list(zip(compiled(x), compiled.function(x), strict=True))
        for got, want in pairs:
            np.testing.assert_array_equal(got, want)
            if np.dtype(dtype).kind == "f":
                number = ~np.isnan(want)
                np.testing.assert_array_equal(np.signbit(got)[number], np.signbit(want)[number])


def test_products_of_infinities_and_nans():
    """Whether an infinity meets a zero, or a NaN before it, depends on the order, and with it the warning."""
    compiled = tcompile.compile(lambda x: (x.prod(), x.prod(axis=0), x.prod(axis=1)), dynamic=False)
    random = np.random.default_rng(0)
    for _ in range(30):
        x = random.choice([0.0, 1.0, -2.0, np.inf, np.nan], (8, 9), p=[0.05, 0.6, 0.25, 0.05, 0.05])
        told = []
        for function in (compiled, compiled.function):
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                told.append((function(x), {str(w.message) for w in caught}))
        (got, ours), (want, numpys) = told
        assert ours == numpys
        for a, b in zip(got, want, strict=True):
            np.testing.assert_array_equal(a, b)
