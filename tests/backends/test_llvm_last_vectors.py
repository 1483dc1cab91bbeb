"""The last vector of a row begins before its last but one ends, where elements may be computed twice."""

import numpy as np
import pytest

from tests.backends.llvm_cases import check as check_graph
from tests.differential import check

WIDTHS = (7, 8, 9, 13, 16, 17, 23, 33, 39)


def plain(x, y):
    return x * 2 - y, x > y


def into_itself(x, y):
    x[1:] = x[1:] * 2 + y[1:]
    return x


def into_itself_shifted(x, y):
    x[:, 1:] = x[:, :-1] + y[:, 1:]
    return x


def into_its_rows(x, y):
    x[1:-1] = x[2:] - x[:-2]
    return x


def onto_the_other(x, y):
    np.multiply(x, 0.5, out=y)
    y += x
    return y


def twice_the_same(x, y):
    y = y * 2
    y[:, 2:] = y[:, 2:] + x[:, 2:]
    y[:, :-2] += x[:, 2:]
    return y


def through_a_view(x, y):
    z = x + 1
    z[::2] = z[::2] * y[::2]
    v = z[:, 3:]
    v *= 3
    return z


def counted(x, y):
    return x + np.arange(x.shape[1]), np.where(y > 0, x, np.arange(x.shape[0])[:, None])


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize(
    "f",
    [plain, into_itself, into_itself_shifted, into_its_rows, onto_the_other, twice_the_same, through_a_view, counted],
)
def test_rows_of_any_width(f, width):
    for dtype in ("float64", "float32", "int16"):

        def make(dtype=dtype):
            values = np.random.default_rng(width).integers(-50, 50, (2, 5, width)).astype(dtype)
            return values[0].copy(), values[1].copy()

        if dtype != "int16" or f is not onto_the_other:
            check(f, make, backends=("llvm",), ulp=0)


def shares(x, y):
    return x / (1 + np.abs(x).sum(1, keepdims=True)), (x - x.max(1)[:, None]) * y


def shares_in_place(x, y):
    x[:] = x / (1 + np.abs(x).sum(1, keepdims=True))
    y -= y.max(1, keepdims=True)
    return x, y


@pytest.mark.parametrize("width", [*WIDTHS, 129])
@pytest.mark.parametrize("f", [shares, shares_in_place])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_rows_that_are_reduced_first(f, width, dtype):
    values = np.random.default_rng(width).integers(-50, 50, (2, 5, width)).astype(dtype)
    check(f, lambda: (values[0].copy(), values[1].copy()), backends=("llvm",), ulp=1)


@pytest.mark.parametrize("f", [into_itself, into_its_rows, onto_the_other])
def test_arguments_that_are_one_array(f):
    def make():
        x = np.random.default_rng(0).random((5, 21))
        return x, x

    check(f, make, backends=("llvm",), ulp=0)


def test_a_flag_is_raised_as_by_numpy():
    def f(x, y):
        return x / y

    for column in (0, 12, 20):
        y = np.ones((3, 21))
        y[1, column] = 0
        check(f, lambda y=y: (np.ones((3, 21)), y), backends=("llvm",), ulp=0)


def test_no_lane_is_masked():
    x = np.ones((5, 30))[:, :21]
    compiled = check_graph(lambda op, x, y: op("add", op("multiply", x, 2.0), y), x, x[::-1])
    assert "masked.store" not in compiled.kernels[0].listings()[0]
