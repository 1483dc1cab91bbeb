"""``while`` loops that a loop comes to again and again: each time their ints may begin where others have left them."""

import numpy as np
import pytest
from differential import check


def goes_on(y, n):
    k = 0
    for _ in range(n):
        while k < 50 and (y > k).all():
            k += 1
        y = y * 1.1
    return k


def of_known_starts(y, n):
    for k in (0, 1):
        while k < 5 and y[0] > k:
            k = k + 1
            y = y + 1
    return k, y


def steps_back(y, n):
    k = 0
    for _ in range(n):
        while k < 5 and y.max() < 1e6:
            k += 1
            y = y * 1.1
        k -= 1
    return k, y


def counts_only(y, n):
    k = 0
    for _ in range(n):
        while k < 5:
            k += 1
            y = y * 1.1
        k -= 1
    return k, y


def raised(y, k):
    while k < 9 and y.sum() > k:
        k += 1
    return y + 1, k


def by_a_helper(y, n):
    k = 0
    for _ in range(n):
        y, k = raised(y, k)
        k = k // 2
    return y, k


def arrays_change_places(y, n):
    u, v, s = y.copy(), y.copy(), 0
    for i in range(9):
        k = n - i
        while k > 0:
            u[1:-1] = v[2:] * 0.25 + v[:-2] * 0.5
            u, v = v, u
            k -= 2
        s += k
    return u, v, k, s


def left_at_the_end_of_an_iteration(y, n):
    k, s = 12, 0
    for _ in range(n):
        while y.max() < 50:
            k += 1
            y = y + 1
            if k >= 9:
                break
        s += k
    return s, y


def left_by_what_is_not(y, n):
    k, s = 12, 0
    for _ in range(n):
        while y.max() < 50:
            k += 1
            if not (not k >= 9):
                break
        s += k
    return s, y


def left_by_the_number_of_the_iteration(y, n):
    k, s = 12, 0
    for i in range(n):
        while y.max() < 50:
            k += 1
            y = y + 0.5
            if not (k < i):
                break
        s += k
    return s, y


FUNCTIONS = [
    goes_on, of_known_starts, steps_back, counts_only, by_a_helper, arrays_change_places,
    left_at_the_end_of_an_iteration, left_by_what_is_not, left_by_the_number_of_the_iteration,
]  # fmt: skip


@pytest.mark.parametrize("f", FUNCTIONS, ids=lambda f: f.__name__)
@pytest.mark.parametrize("n", [1, 2, 3, 12, 100])
def test_as_in_plain_python(f, n):
    for scale in (1, 3):
        check(f, lambda scale=scale: (np.array([2.0, 3, 4, 5, 6]) * scale, n), backends=("eager", "llvm"), ulp=1 << 12)
