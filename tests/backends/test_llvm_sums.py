"""Sums, means and variances of hard inputs: as close to the exact result as NumPy's pairwise summation, or closer."""

import math
import warnings

import numpy as np
import pytest

import tcompile
from tests.backends.llvm_cases import FLOATS


def signs(shape):
    return (-1.0) ** np.arange(math.prod(shape)).reshape(shape)


def cancelling(rng, shape):
    x = rng.normal(size=shape) * 1e5
    return x - np.roll(x, 1, -1) + 1e-9


HARD = {
    "positive": lambda rng, shape: rng.random(shape) + 0.1,
    "normal": lambda rng, shape: rng.normal(size=shape),
    "some huge": lambda rng, shape: np.where(rng.random(shape) < 0.01, 1e8, 1.0) * rng.random(shape),
    "alternating": lambda rng, shape: signs(shape) * (1e6 + rng.random(shape)),
    "all sizes": lambda rng, shape: 10.0 ** rng.uniform(-12, 6, shape),
    "cancelling": cancelling,
    "tenths": lambda rng, shape: np.full(shape, 0.1),
}
DRAWS = 4
CLOSE = 1.4  # NumPy's error is by chance a smaller one now and then
CASES = [((100_003,), None), ((50, 3001), 0), ((50, 3001), 1), ((3001, 50), 0), ((3001, 50), None), ((1000, 1), 0)]
CASES += [((rows, 3001), 0) for rows in (3, 4, 7, 8, 12)] + [((3001, columns), 1) for columns in (2, 5, 7, 9, 16)]


def exact_sums(x, axis):
    """Correctly rounded float64 sums."""
    rows = x.reshape(1, -1) if axis is None else np.moveaxis(x, axis, -1)
    return np.array([math.fsum(row) for row in rows.reshape(-1, rows.shape[-1]).tolist()])


def errors(compiled, function, exact, kind, shape, axis, dtype):
    """The root mean squares of ours and of NumPy's errors in some draws, and the result's last place."""
    ours, numpys, place = [], [], 0.0
    for seed in range(DRAWS):
        x = HARD[kind](np.random.default_rng(seed), shape).astype(dtype)
        want = np.asarray(exact(x, axis)).astype(np.longdouble).ravel()
        for found, f in ((ours, compiled), (numpys, function)):
            found.append(np.asarray(f(x, axis)).astype(np.longdouble).ravel() - want)
        place = max(place, np.spacing(np.abs(want).max().astype(dtype)))
    return *(float(np.sqrt(np.mean(np.square(found)))) for found in (ours, numpys)), place


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("kind", HARD)
@pytest.mark.recompile_limit(20)
def test_sums_are_as_close_as_numpys(kind, dtype):
    def total(x, axis):
        return x.sum(axis=axis, keepdims=True)

    compiled = tcompile.compile(total, dynamic=False)
    for shape, axis in CASES:
        ours, numpys, place = errors(compiled, total, exact_sums, kind, shape, axis, dtype)
        assert ours <= max(CLOSE * numpys, 0.3 * place), (shape, axis, ours / place, numpys / place)


@pytest.mark.parametrize("kind", ["normal", "alternating"])
@pytest.mark.parametrize("size", [1000, 20_000])
def test_sums_of_many_are_closer(kind, size):
    compiled, errors = tcompile.compile(lambda x: x.sum()), []
    for seed in range(40):
        x = HARD[kind](np.random.default_rng(seed), (size,))
        errors.append([abs(found - math.fsum(x)) for found in (compiled(x), x.sum())])
    ours, numpys = np.sqrt(np.mean(np.square(errors), axis=0))
    assert ours <= 0.55 * numpys


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("kind", HARD)
@pytest.mark.parametrize("name", ["mean", "var", "std"])
@pytest.mark.recompile_limit(20)
def test_moments_are_as_close_as_numpys(name, kind, dtype):
    function = getattr(np, name)
    compiled = tcompile.compile(lambda x, axis: function(x, axis=axis), dynamic=False)

    def plain(x, axis):
        return function(x, axis=axis)

    def exact(x, axis):
        return function(x.astype(np.longdouble), axis=axis)

    for shape, axis in CASES:
        ours, numpys, place = errors(compiled, plain, exact, kind, shape, axis, dtype)
        assert ours <= max(CLOSE * numpys, 2 * place), (shape, axis, ours / place, numpys / place)


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
