"""Reports about functions of NumPy: special values, reductions, sorting, making of arrays."""

from __future__ import annotations

import math

import numpy as np
import pytest

from reports.programs import Table

TABLE = Table()
NAN, INF = math.nan, math.inf
RANDOM = lambda *shape: np.random.default_rng(0).standard_normal(shape)
WITH_NANS = lambda: (np.array([0, 1, NAN, 3]),)


@TABLE.calls("numba-333", lambda: (np.arange(9).reshape(3, 3), np.array([1, 2, 3])), lambda: (RANDOM(4, 3), RANDOM(3)))
def sum_of_columns(x, y):
    """The sums of columns are added to a row."""
    return np.sum(x, 0) + y


@TABLE.calls("numba-2609", lambda: (40,), lambda: (3,), lambda: (0,))
def column_of_ones(n):
    """A column of ones is made."""
    return np.ones((n, 1), dtype=np.float64)


@TABLE.calls("numba-7042", lambda: (np.zeros((3, 0)), np.zeros(0)), lambda: (np.ones((2, 3)), np.ones(3)))
def empty_product(a, b):
    """A matrix product has no terms."""
    return a.dot(b), a @ b


@TABLE.calls("numba-4144", lambda: (np.arange(1, 40), 10), lambda: (np.arange(1.0, 40), 3), lambda: (np.ones(9), True))
def products_of_windows(x, d):
    """Products of sliding windows are written to the elements of a float array."""
    windows = np.lib.stride_tricks.sliding_window_view(x, d)
    out = np.zeros(len(windows))
    for i in range(len(windows)):
        out[i] = windows[i, :].prod()
    return out


@TABLE.calls("numba-10026", lambda: (np.array([0.0, -0.0, INF, -INF, 1, -1]),), lambda: (np.array([INF, -2], "f4"),))
def signs(x):
    """signbit of zeros and infinities of both signs."""
    return np.signbit(x)


@TABLE.calls("numba-10069", lambda: (np.array([NAN]), np.array([NAN, 1])), lambda: (np.array([3, 1]), np.array([1, 2])))
def union(a, b):
    """The union of two arrays that contain NaN."""
    return np.union1d(a, b)


@TABLE.calls("numba-10025", lambda: (12345.6789, 308), lambda: (12345.6789, 2), lambda: (np.array([0.5, 1.5, 2.5]), 0))
def rounded(x, decimals):
    """A number is rounded to more decimals than it can have: infinite, with a warning."""
    return np.around(x, decimals=decimals)


@TABLE.calls(
    "numba-9995",
    lambda: (np.array([1, 2]), NAN, NAN),
    lambda: (np.array([1.0, 5]), 2, NAN),
    lambda: (np.arange(9.0), 1, 2),
)
def clipped_by_nan(x, low, high):
    """Integers are clipped at NaN."""
    return np.clip(x, low, high)


@TABLE.calls("numba-10000", lambda: (np.array([1, 2]), INF, INF), lambda: (np.array([1, 2]), -INF, 1))
def clipped_by_infinity(x, low, high):
    """Integers are clipped at infinity."""
    return np.clip(x, low, high)


@TABLE.calls(
    "numba-9991",
    lambda: (np.array([[1], [2]]), 0, np.array([3, 4, 5])),
    lambda: (RANDOM(3, 1), -RANDOM(2), 1.0),
)
def clipped_and_broadcast(x, low, high):
    """The bounds of clip have more columns than what is clipped."""
    return np.clip(x, low, high)


@TABLE.calls("numba-10142", lambda: (np.array(NAN), -1, 1), lambda: (np.array([NAN, 3.0, -3.0]), -1, 1))
def clipped_nan(a, low, high):
    """A NaN of no dimension is clipped and stays NaN."""
    return a.clip(low, high)


@TABLE.calls("numba-9992", lambda: (np.array([True]), np.array([5])), lambda: (RANDOM(2, 2), np.arange(3)))
def kronecker(a, b):
    """The Kronecker product of bools and integers."""
    return np.kron(a, b)


@TABLE.calls("numba-10092", lambda: (np.arange(1, 9).reshape(2, 2, 2), (0, 2)), lambda: (RANDOM(2, 3, 4), (1,)))
def average(x, axis):
    """An average over two axes."""
    return np.average(x, axis=axis)


@TABLE.calls("numba-10093", lambda: (np.array([1]), 1), lambda: (RANDOM(100), 7), lambda: (np.array([2.0, 2.0]), 3))
def counted(x, bins):
    """A histogram of values that are all equal."""
    return np.histogram(x, bins=bins)


@TABLE.calls(
    "numba-9684",
    lambda: (np.array([1.0, 0, 1]), 0),
    lambda: (np.array([1, 0, 2]), None),
    lambda: (np.eye(3), 0),
)
def nonzeros(a, axis):
    """count_nonzero along the only axis gives a number."""
    return np.count_nonzero(a, axis=axis), a.astype(bool).sum(axis=0)


@TABLE.calls("numba-3815", lambda: (np.array([1, 2, 3]),), lambda: (RANDOM(3, 4),))
def sum_along_last(x):
    """The sum of one dimension along its axis is a scalar."""
    return x.sum(axis=-1), type(x.sum(axis=-1)).__name__


@TABLE.calls("numba-2270", lambda: (np.ones((2, 3)),), lambda: (np.ones((5, 1), "f4"),))
def sums_of_rows(x):
    """The method sum gets its axis by position."""
    return x.sum(1)


@TABLE.calls("numba-5288", lambda: ((np.arange(10) + 2**60),), lambda: (RANDOM(40),))
def deviations(arr):
    """The deviations from a mean of large numbers are summed."""
    mean = np.sum(np.divide(arr, arr.size))
    return np.subtract(arr, mean)


@TABLE.calls("numba-5255", lambda: (np.eye(6, dtype=bool), 3), lambda: (np.eye(6), 3))
def counts_in_windows(x, d):
    """The dtype of an array is compared with a string to choose a result."""
    if x.dtype != "bool":
        return np.full(x.shape, np.nan, np.float32)
    out = np.zeros((x.shape[0] - d + 1, x.shape[1]), np.float32)
    for i in range(x.shape[1]):
        out[:, i] = np.lib.stride_tricks.sliding_window_view(x[:, i], d).sum(1)
    return out


@TABLE.calls(
    "numba-8768",
    lambda: (np.array([NAN, 1]), np.array([1.5, NAN])),
    lambda: (RANDOM(9), np.array([-1.0, 0, 1])),
)
def digitized(x, bins):
    """Bins and values of digitize contain NaN."""
    return np.digitize(x, bins)


@TABLE.calls("numba-6768", lambda: (0.010101010101010102,), lambda: (0.3,), lambda: (0.1,))
def steps(step):
    """arange with a fractional step has NumPy's very bits."""
    return np.arange(0, 1 + step, step).view(np.int64), np.linspace(0, 1, 100).view(np.int64)


@TABLE.calls(
    "numba-3499",
    lambda: (-(10.0 ** np.arange(-10, 100, 9)) + 0j,),
    lambda: (np.array([-4 - 0j, -4 + 0j, 1e-300j]),),
)
def complex_roots(a):
    """Square roots of large negative complex numbers, and on both sides of the cut."""
    return np.sqrt(a)


@TABLE.calls("numba-9139", lambda: (np.linspace(0, 3, 3),), lambda: (np.abs(RANDOM(5, 7)),))
def by_largest(a):
    """An array is divided by its own maximum."""
    return a / a.max()


@TABLE.calls("numba-2857", lambda: (np.ones((4, 3)), np.ones(4)), lambda: (RANDOM(5, 2), RANDOM(5)))
def repeated_product(x, y):
    """A product of a negated vector and a matrix product, in a loop that carries nothing."""
    w = np.ones(x.shape[1])
    for _ in range(3):
        b = -y * np.dot(x, w)
    return b


@TABLE.calls("jax-6431", lambda: (np.array([NAN, 1, NAN]),), lambda: (np.log(np.array([NAN, 2, 3])),))
def median_beside_nans(x):
    """nanmedian of an array with NaNs of several bit patterns."""
    return np.nanmedian(x), np.nanmean(x)


@TABLE.calls("jax-4640", WITH_NANS, lambda: (np.array([NAN] * 40),), lambda: (np.array([1.0, NAN, NAN]),))
def argmax_with_nan(x):
    """argmax gives the place of the first NaN."""
    return np.argmax(x)


@TABLE.calls("jax-3193", lambda: (np.full(100, NAN),), lambda: (np.r_[np.full(50, NAN), np.zeros(50)],), WITH_NANS)
def extremes_with_nan(x):
    """argmin and argmax of NaNs before and after numbers."""
    return np.argmin(x), np.argmax(x), x.min(), x.max()


@TABLE.calls(
    "jax-2446",
    lambda: (np.array([INF] * 3),),
    lambda: (np.array([INF, -INF]),),
    lambda: (np.array([1, INF, 2, 3]),),
)
def median_of_infinities(x):
    """The median of infinities."""
    return np.median(x)


@TABLE.calls("jax-6444", lambda: (np.array([1, 2, NAN]),), lambda: (RANDOM(20),), lambda: (np.eye(3),))
def quantile_with_nan(x):
    """A quantile of an array with a NaN is NaN."""
    return np.quantile(x, 0.5), np.percentile(x, [10, 90], axis=0)


@TABLE.calls("jax-7894", lambda: (np.array([[5.5, 6.25, 5.5, 7.25, NAN]] * 2),), lambda: (RANDOM(3, 4),))
def percentile_of_means(data):
    """nanpercentile of what nanmean gave, with a column of NaNs."""
    means = np.nanmean(data, axis=0, keepdims=True)
    return np.nanpercentile(means, 10, axis=1)


@TABLE.calls("jax-145", lambda: (0.0, 1.0, 0.1), lambda: (1.0, 0.0, -0.25), lambda: (0, 10, 3))
def fractional_arange(start, stop, step):
    """arange of floats has as many elements as NumPy's."""
    return np.arange(start, stop, step)


@TABLE.calls("jax-3450", lambda: (2.5,), lambda: (3,), lambda: (-1.5,), lambda: (np.float32(2.5),))
def arange_to_fraction(stop):
    """arange gets only a stop that is not whole."""
    return np.arange(stop)


@TABLE.calls("jax-2077", lambda: (np.array([[1, NAN, 3], [NAN, NAN, 6]]),), lambda: (RANDOM(2, 3),))
def functions_beside_nans(x):
    """All reductions that pass over NaN."""
    return (
        np.nansum(x, 0), np.nanprod(x, 1), np.nancumsum(x), np.nancumprod(x), np.nanvar(x, 1), np.nanstd(x),
        np.nanmin(x, 1), np.nanmax(x), np.nanargmin(x, 1), np.nanargmax(x, 1),
    )  # fmt: skip


@TABLE.calls("pytorch-93784", lambda: (np.array([-3, NAN, -1, 0, 1, NAN], "f2"), np.array([0, 0, NAN, 0, 0, 0], "f2")))
def extremes_carry_nan(x, y):
    """A NaN in either operand of maximum and minimum, and in clip with one bound, comes out."""
    return np.maximum(x, y), np.minimum(y, x), np.clip(x, 0.5, None), np.maximum(x, 0)


@TABLE.calls("pytorch-118266", lambda: (np.array([-2.0, 100]),), lambda: (RANDOM(30),))
def argmax_of_log(x):
    """argmax follows a logarithm that gives NaN."""
    with np.errstate(all="ignore"):
        return np.argmax(np.log1p(x))


@TABLE.calls("pytorch-114229", lambda: (RANDOM(3, 4, 5),), lambda: (RANDOM(1, 2, 40),))
def argmax_of_differences(x):
    """argmax of what cancels, with an intermediate result as a further result."""
    mul = x / np.arctan(x) * np.tan(x)
    return mul, (mul - mul).argmax(2)


@TABLE.calls("pytorch-178964", lambda: (RANDOM(8, 8).T, RANDOM(8, 8)), lambda: (RANDOM(5, 9).T, RANDOM(9, 5)))
def places_of_row_maxima(a, b):
    """Maxima of rows and their places, where an operand is transposed."""
    s = a + b
    return s.max(axis=1), s.argmax(axis=1)


@TABLE.calls(
    "pytorch-97968",
    *[lambda d=d: (np.ones((5, 10, 1), d), np.ones((10, 1), d)) for d in ("i1", "?", "i2", "u2")],
)
def both_then_least(x, y):
    """A bitwise and of small integers is bounded by an array."""
    return np.minimum(np.bitwise_and(x, y), y)


@TABLE.calls("pytorch-93380", lambda: (np.ones((3, 4, 2, 1), "i4"), np.ones((2, 2, 1, 4, 1), "i4")))
def least_of_places(a, b):
    """The least of broadcast arrays and of places of maxima."""
    return np.minimum(b, a.argmax(3)).min(3), -a.max()


@TABLE.calls("pytorch-148808", lambda: (RANDOM(1, 10),), lambda: (RANDOM(50, 3),))
def normalized(x):
    """An array is scaled by its own extremes."""
    low, high = x.min(), x.max()
    return (x - low) / (high - low)


@TABLE.calls("pytorch-146643", lambda: (RANDOM(4, 101),), lambda: (np.zeros((2, 7)),))
def maximum_and_place(x):
    """A maximum and its place come out of one pass."""
    return x.max(-1), x.argmax(-1)


@TABLE.calls("pytorch-189799", lambda: (np.array([-0.5, -0.1, -0.9], "f4"),), lambda: (np.array([-0.0, 0.0, -0.3]),))
def sign_of_zero(x):
    """Minus zero plus zero is zero, and its reciprocal infinite."""
    with np.errstate(divide="ignore"):
        return np.reciprocal(np.ceil(x) + np.zeros_like(x)), 1 / np.sqrt(x * 0)


@TABLE.calls("pytorch-183606", lambda: (np.array([-0.0, 0.0, -1.0, 2.5, -2.5]),), lambda: (np.full(40, -0.0, "f4"),))
def fraction_of_zero(x):
    """The fractional part of minus zero is a divisor."""
    with np.errstate(divide="ignore"):
        return 1.0 / (x - np.trunc(x)), np.modf(x)


@TABLE.calls("pytorch-187935", lambda: (np.array([[1, -0.0, 0.0], [-1, -0.0, 2.5]]),), lambda: (np.float64(-0.0),))
def signbit_of_zero(x):
    """signbit of minus zero in float64."""
    return np.signbit(x), np.copysign(3.0, x)


@TABLE.calls("pytorch-185696", lambda: (np.array([0.0, 6e-8, -6e-8], "f2"),), lambda: (np.array([0.0, -0.0]),))
def angle_with_negated(x):
    """arctan2 of an array and its negation, which holds zeros of both signs."""
    return np.arctan2(x, -x)


@TABLE.calls("pytorch-189808", lambda: (np.array([-1.0, 4.0, -0.0]),), lambda: (np.array([-4.0] * 20, "f4"),))
def root_of_negative(x):
    """Roots of negative numbers are NaN, with a warning."""
    return np.sqrt(x)


@TABLE.calls("pytorch-189801", lambda: (np.array([-1e-8, -1e-38, -1e-45], "f4"),), lambda: (np.array([-5e-324, 3.0]),))
def denormals(x):
    """Denormal numbers are not zero: they are divided by zero."""
    with np.errstate(all="ignore"):
        return np.expm1(x) / np.zeros_like(x), x * np.float32(0.5)


@TABLE.calls("pytorch-147206", lambda: (3, 0), lambda: (2, 2))
def remainder_of_bools(n, m):
    """A remainder by an array of bools that may be empty."""
    return np.remainder(1, np.eye(n, m) <= 1)


@TABLE.calls("pytorch-111370", lambda: (np.array([1, 2, 3]),), lambda: (np.zeros((2, 2)),), lambda: (np.array(4),))
def as_list(x):
    """An array is turned into a list in the middle of a function."""
    y = x * 2
    return y.tolist(), np.array(y.tolist()) + 1


@TABLE.calls("pytorch-112335", lambda: (np.array([1, 2]),), lambda: (RANDOM(3),))
def rows_to_array(x):
    """asarray gets a list of arrays."""
    return np.asarray([x, x + 1])


@pytest.mark.parametrize("number", TABLE.numbers)
def test_report(number):
    TABLE.check(number)
