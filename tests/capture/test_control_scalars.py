"""``.item()``, ``float()``, ``int()`` and ``bool()`` of one element: in the graph while only arrays meet the number."""

from __future__ import annotations

import numpy as np
import pytest
from differential import assert_same

import tcompile

from .helpers import X, check, whole

DTYPES = ["float16", "float32", "float64", "int8", "int32", "int64", "uint8", "bool"]


def arithmetic(a):
    s = float(a.sum())
    return a * s, s * a + 1, a - s * 2, (1 + s) * 0.5 - a, np.maximum(a, s), s / (abs(a) + 1), a < s


def item(a):
    return a + a[0, 0].item() * 2 - a.max().item(), a[1:2, 1:2].item() + a


def returned(a):
    s = a.mean().item()
    return float(a.sum()), bool(a.sum() > 0), [s, -s, abs(s), +s, s - 1.5], {"same": (s, s)}, int(a.argmax())


def integers(a):
    n = int(a.argmax())
    k = (a > 0).sum().item()
    return a * n, a + k, a > k, np.arange(4) * k - n, k


def booleans(a):
    return bool(a[0, 0]), bool(a.any()), a.any().item()


def comparisons(a):
    s, k = a.mean().item(), int(a.argmax())
    return s < 1, s >= 0.5, 2.0 > s, s == s, s != 0, k > 3, 11 == k, k != k, k <= 2**62, [s < a.max().item()]


def in_arrays(a):
    s = a.sum().item()
    return np.array([s, 1.0, 2]), np.where(a > 0, s, a), np.clip(a, None, s), s


@pytest.mark.parametrize("f", [arithmetic, item, returned, integers, booleans, comparisons, in_arrays])
def test_captured_whole(f):
    whole(f)


def with_each(a):
    s = float(a.ravel()[1] if a.ndim else a)
    return a + s if a.dtype.kind == "f" else s, s


@pytest.mark.parametrize("dtype", DTYPES)
def test_every_dtype_gives_plain_numbers(dtype):
    array = np.array([[0, 1, 2], [3, 0, 1]]).astype(dtype)

    def f(a):
        return [with_each(a), a.max().item(), bool(a[0, 1]), bool(a[0, 0])]

    whole(f, lambda: (array.copy(),))

    def g(a):
        return int(a[1, 0])

    check(g, lambda: (array.copy(),))


def test_floats_are_weak_and_rounded_as_numpy_does():
    a = np.array([1.0, 2.0, 1e30], "float32")

    def f(a, b):
        s = b.sum().item()
        return a * s, s - a, np.add(a, s)

    for b in (np.array([0.1, 0.2]), np.array([1e-300]), np.array([np.nan]), np.array([1e300])):
        check(f, lambda b=b: (a.copy(), b.copy()))
    check(f, lambda: (np.array([1.0, 2.0], "float16"), np.array([0.1])))


def test_ints_beside_small_integers_run_plainly():
    def f(a, n):
        return a + int(n.sum())

    for dtype in ("int8", "uint8", "int32", "bool", "complex64"):
        check(f, lambda dtype=dtype: (np.ones(3, dtype), np.array([100, 27])))
        check(f, lambda dtype=dtype: (np.ones(3, dtype), np.array([1000, 27])))


def test_huge_ints_and_nans():
    def f(n, x):
        k = int(n)
        return k * 2, k - 1

    check(f, lambda: (np.array(2**62), X))

    def g(n, x):
        return x + int(n), x * n.item(), n.item()

    for n in (2**62 + 1, -(2**63), 2**53 + 1):
        check(g, lambda n=n: (np.array(n), X.copy()))
        check(g, lambda n=n: (np.array(n), X.astype("f4")))

    def h(x):
        return int(x.sum()), float(x.sum())

    for value in (1.9, -1.9, 1e30):
        check(h, lambda value=value: (np.array([value]),))
    for value in (np.nan, np.inf):
        check(h, lambda value=value: (np.array([value]),))
    check(lambda x: x.sum().item() * 1e308 * 10, lambda: (np.array([1e10]),))


@pytest.mark.parametrize("f", [
    lambda a: a * 2 if float(a.sum()) > 0 else a,
    lambda a: a[int(a.argmax()) % 3],
    lambda a: f"{a.sum().item():.3f}",
    lambda a: {round(a.sum().item(), 3): a + 1},
    lambda a: a + 1 / float(a.max()),
    lambda a: a ** a.max().item(),
    lambda a: a + float(a.sum()) ** 2,
    lambda a: a + float(a.sum()) // 1,
    lambda a: [1, 2] * int(a.argmin() + 1),
    lambda a: list(range(int(a.argmax() % 4))),
    lambda a: a.sum().item() is None,
    lambda a: int(a.argmax()) < 2**70,
    lambda a: int(a.argmax()) < 2.5,
    lambda a: 0 < a.sum().item() < 30,
    lambda a: bool(a[0, 0]) < True,
    lambda a: a[:, int(a.argmax()) > 3],
    lambda a: a * (a.sum().item() > 3),
    lambda a: (a * np.nan).sum().item() == (a * np.nan).sum().item(),
    lambda a: ((a * np.nan).sum().item() < 3, (a / 0).sum().item() > 1e308),
    lambda a: a.sum().item() == "text",
    lambda a: (a.sum().item() == 3, a.sum().item() < 1e9),
    lambda a: max(a.sum().item(), 3.0) + a,
    lambda a: sum([a.sum().item(), 1.0]) + a,
    lambda a: isinstance(a.sum().item(), float) and type(int(a.argmax())) is int,
    lambda a: a.item(3),
    lambda a: a.tolist(),
    lambda a: a.sum().tolist(),
    lambda a: np.hypot(a.astype("f4"), a.sum().item()),
    lambda a: np.float32(a.sum().item()) + a.astype("f4"),
    lambda a: np.sin(a.sum().item()) + a,
    lambda a: np.full((2, 2), a.sum().item()),
    lambda a: np.zeros(int(a.argmax())),
    lambda a: a.reshape(int(a.argmax()) - 8, -1),
    lambda a: ~int(a.argmax()) + a,
    lambda a: -int(a.argmax()) + a,
    lambda a: int(a.argmax()) + int(a.argmin()) + a,
    lambda a: [float(a.sum())] == [float(a.sum())],
    lambda a: float(a),
])  # fmt: skip
def test_what_needs_the_number_is_right_too(f):
    check(f, lambda: (X.copy(),))


def test_division_by_a_zero_that_is_read_raises():
    def f(a):
        return a / 2, 1.0 / float(a.sum() - a.sum())

    check(f, lambda: (X.copy(),))
    with np.errstate(all="ignore"):
        check(f, lambda: (X.copy(),))


def test_inside_loops_and_branches():
    def f(a):
        s = a.max().item()
        return tcompile.while_loop(lambda v, t: v.sum() < 100, lambda v, t: (v + s, t), (abs(a), s))

    def g(a):
        s = a.max().item()
        return tcompile.cond(a.sum() > 0, lambda v: v * s, lambda v: v - s, (a,))

    whole(f)
    whole(g)


def test_not_given_to_allowed_functions_as_an_array():
    @tcompile.allow_in_graph
    def needs_float(v, s):
        assert type(s) is float
        return v * s

    check(lambda a: needs_float(a, a.sum().item()), lambda: (X.copy(),))


def test_sizes_that_vary():
    compiled = tcompile.compile(arithmetic, fullgraph=True)
    for n in (3, 4, 5, 9):
        a = np.arange(n * 2.0).reshape(n, 2)
        assert_same(compiled(a), arithmetic(a))
    assert len(compiled.entries) == 2
