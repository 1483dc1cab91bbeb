"""Arrays of literals are made once, and nobody can tell."""

import numpy as np
import pytest

import tcompile
from tests.differential import check


def row():
    return (np.arange(6.0).reshape(2, 3),)


def number():
    return (1.5,)


def returned(x):
    return np.array([1.0, 2.0, 3.0]), x


def viewed(x):
    return np.eye(3)[1:], np.array([[1, 2], [3, 4]]).T, np.linspace(0, 1, 5).reshape(5, 1)


def written(x):
    a = np.array([1.0, 2.0, 3.0])
    a += x
    a[0] = 7
    return a


def written_later(x):
    a = np.array([1.0, 2.0, 3.0])
    b = a * x
    a[1:] = b[1:]
    return b, a


def given_to_a_function_that_returns_it(x):
    return np.atleast_2d(np.array([1.0, x])), np.linalg.matrix_power(np.eye(2), 1)


def only_read(x):
    return x @ np.eye(3) * np.array([1.0, 2.0, 3.0]) + np.linspace(0, 1, 3) + np.array([True, False, True])


def carried_by_a_loop(x):
    total = np.array([0.0, 1.0])
    for _ in range(3):
        total[0] += x
        total = total * 2 if x < 0 else total
    return total


FUNCTIONS = [returned, viewed, written, written_later, given_to_a_function_that_returns_it, carried_by_a_loop]


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: f.__name__)
def test_each_call_has_arrays_of_its_own(function):
    check(function, number, calls=4)
    compiled = tcompile.compile(function)
    for _ in range(4):
        results = compiled(1.5)
        for got, want in zip(results, function(1.5), strict=True):
            np.testing.assert_array_equal(got, want)
        for array in results if isinstance(results, tuple) else (results,):
            if isinstance(array, np.ndarray):
                array[...] = 99


def test_only_read():
    (compiled,) = check(only_read, row, calls=4, backends=["llvm"])
    source = compiled.entries[0].compiled_graph.source
    assert "numpy_" not in source and "copy" not in source


def test_what_fails_still_fails():
    check(lambda x: x + np.linspace(0, 1, -3), row)
    with np.errstate(over="raise"):
        check(lambda x: x + np.array([1e300], dtype=np.float32), row, calls=3)


def test_large_arrays_are_not_kept():
    (compiled,) = check(lambda x: x * np.eye(200)[:2, :3], row, backends=["llvm"])
    assert "numpy_eye" in compiled.entries[0].compiled_graph.source
