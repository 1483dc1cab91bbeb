"""Loops whose rows get shorter in each iteration, with open sizes: they run in machine code all the same."""

from __future__ import annotations

import numpy as np
import pytest
from differential import check

import tcompile
from tcompile.observe import bus
from tcompile.observe.events import LoopDecided


def lu(a):
    n = a.shape[0]
    order = np.arange(n)
    for k in range(n - 1):
        m = k + np.argmax(np.abs(a[k:, k]))
        if m != k:
            a[[k, m]] = a[[m, k]]
            order[[k, m]] = order[[m, k]]
        a[k + 1 :, k] /= a[k, k]
        a[k + 1 :, k + 1 :] -= np.outer(a[k + 1 :, k], a[k, k + 1 :])
    return order


def largest_below(a):
    found = np.zeros(a.shape[1])
    for k in range(a.shape[0] - 1):
        found[k] = np.abs(a[k:, k]).max() + a[k, : a.shape[1] - k].min()
    return found


def places(a):
    found = np.zeros(a.shape[0], int)
    for k in range(a.shape[0] - 1):
        found[k] = 100 * np.argmax(a[k:, k]) + a[k, k:].argmin()
    return found


def triangle(a):
    """Rows that get longer, the first of which has one element."""
    found = np.zeros(a.shape[0])
    for i in range(a.shape[0]):
        found[i] = a[i, : i + 1].max() * (a[: i + 1, i].argmax() + 1)
    return found


def inside(a):
    total = np.zeros(a.shape[1])
    for i in range(a.shape[0] - 1):
        for j in range(i + 1):
            total += a[j : a.shape[0] - i + j, 0].max() + a[i:, 0].argmax()
    return total


LOOPS = [lu, largest_below, places, triangle, inside]


def square(n, nan=False):
    a = np.random.default_rng(n).integers(-50, 50, (n, n)) / 4.0 + 13 * np.eye(n)
    if nan:
        a[n // 2, n // 3] = np.nan
    return a


@pytest.mark.parametrize("dynamic", [None, True, False])
@pytest.mark.parametrize("f", LOOPS)
def test_as_in_plain_python(f, dynamic):
    for n in (12, 30, 9, 2):
        check(f, lambda n=n: (square(n),), backends=("llvm", "eager"), calls=2, dynamic=dynamic)
    check(f, lambda: (square(14, nan=True),), backends=("llvm",), calls=1, dynamic=dynamic)


@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize("f", LOOPS)
def test_machine_code_goes_through_the_iterations(f, dynamic):
    events = []
    with bus.listening(events.append):
        tcompile.compile(f, dynamic=dynamic)(square(20))
    told = [(event.outcome, event.reason) for event in events if isinstance(event, LoopDecided)]
    assert "machine code" in {outcome for outcome, _ in told}
    assert "python iterations" not in {outcome for outcome, _ in told}, told


def test_rows_of_which_one_may_be_empty_are_numpys():
    def f(a):
        found = np.zeros(a.shape[0])
        for k in range(a.shape[0]):
            found[k] = a[k + 1 :, k].max() if k < a.shape[0] - 1 else 0
        return found

    def g(a):
        found = np.zeros(a.shape[0])
        for k in range(a.shape[0]):
            found[k] = a[k + 1 :, k].max()
        return found

    for function in (f, g):
        for n in (12, 20):
            check(function, lambda n=n: (square(n),), backends=("llvm", "eager"), calls=2)
