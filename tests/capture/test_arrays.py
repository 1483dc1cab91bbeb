# ruff: noqa: C416, E501
"""Arrays as Python sees them: aliases, in-place operators, views, identity, what is not captured about them."""

from __future__ import annotations

import numpy as np
import pytest
from differential import assert_same, check

import tcompile

from .helpers import X, whole, x, xy


def aliases(a, b):
    c = a + b
    d = c
    e = [c]
    d += 1
    c *= b
    return c, d, e[0], c is d


def in_place_in_a_helper(a, b):
    def add(v):
        v += b
        return v

    c = a * 2
    d = add(c)
    return c, d, c - d


def in_place_in_a_closure(a, b):
    c = a * 2

    def add():
        nonlocal c
        c += b

    add()
    return c


def in_place_keeps_the_dtype(a, b):
    c = (a + b).astype("float32")
    c += b
    c /= 3
    i = (a * 4).astype("int32")
    i //= 2
    return c, i


def in_place_on_scalars(a, b):
    s = a.sum()
    t = s
    s += 1
    n = 3
    n += a
    return s, t, n


def views_of_results(a, b):
    c = a + b
    return c, c[1:], c.T, c.reshape(-1), c[0, 0], c[None, ..., :2]


def views_of_arguments(a, b):
    return a[1:], a.T, a.reshape(2, 6), b[::-1], a, b[..., 0], np.broadcast_to(a[0], (2, 4)), np.asarray(a)


def same_computation_twice(a, b):
    return a + b, a + b, (a + 1)[:], a * 1


def attributes(a, b):
    return a.shape, a.ndim, a.size, a.dtype, len(a), a.T.shape, a.itemsize, a.nbytes


def rows(a, b):
    total = 0
    for i, row in enumerate(a):
        total = total + row * i
    return total, [r for r in b[:2]], a[-1], a[1][2], [a[i, i] for i in range(3)]


def methods_kept(a, b):
    total = a.sum
    c = a * 2
    m = c.mean
    c += 1
    return total(), m(), c


def scalars(a, b):
    s = a.max()
    return s * 2, s + b, a[0, 0] - 1, np.float32(2) * a, a.sum() / a.size, -s, abs(s)


def boolean(a, b):
    return (a > 0) & (b < 2), ~(a == b), (a > 0) | (a < -1), 1 < a, a != 3, np.where(a > 0, a, b)


@pytest.mark.parametrize("f", [
    aliases, in_place_in_a_helper, in_place_in_a_closure, in_place_keeps_the_dtype, in_place_on_scalars, views_of_results,
    views_of_arguments, same_computation_twice, attributes, rows, methods_kept, scalars, boolean,
], ids=lambda f: f.__name__)  # fmt: skip
def test_captured_whole(f):
    whole(f, xy)


def test_results_share_memory_as_in_python():
    for backend in ("eager", "aot_eager", "llvm"):
        compiled = tcompile.compile(views_of_results, backend=backend, fullgraph=True)
        c, *views = compiled(X, X)
        for view in views[:3]:
            assert np.shares_memory(c, view), backend
        first, second, third, fourth = tcompile.compile(same_computation_twice, backend=backend)(X, X)
        arrays = [first, second, third, fourth]
        for i, p in enumerate(arrays):
            for q in arrays[:i]:
                assert p is not q and not np.shares_memory(p, q), backend


def test_arguments_returned_are_the_arguments():
    def f(a, b):
        return a, [b], np.asarray(a), a.reshape(a.shape)

    for backend in ("eager", "llvm"):
        a, b = X.copy(), X.copy()
        one, (two,), three, four = tcompile.compile(f, backend=backend, fullgraph=True)(a, b)
        assert one is a and two is b and three is a and four is not a and np.shares_memory(four, a)


@pytest.mark.parametrize("write, line", [
    (lambda a: a.__iadd__(1), "a.__iadd__(1)"),
])  # fmt: skip
def test_writes_by_methods(write, line):
    got, want = X.copy(), X.copy()
    compiled = tcompile.compile(lambda a: write(a) * 2, backend="eager")
    np.testing.assert_array_equal(compiled(got), write(want) * 2)
    np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("value", [
    np.array([1, "x", None], dtype=object), np.array([1.0, 2.0], dtype=np.longdouble), np.array(["2020-01-01"], "M8[D]"),
    np.ma.masked_array([1.0, 2.0], [False, False]), X.view(type("Sub", (np.ndarray,), {})), np.array([(1, 2.0)], dtype=[("p", "i4"), ("q", "f8")]),
    np.array([1, 2], dtype=">i4"), np.arange(3, dtype=np.longlong), np.rec.array([(1, 2.0)]),
], ids=lambda v: str(v.dtype))  # fmt: skip
@pytest.mark.recompile_limit(40)
def test_arrays_that_are_not_captured(value):
    def f(v, a):
        return v == v, a * 2, v[:1], v.copy()

    def items(v):
        return [w for w in v], v.shape, v.size

    for function, args in ((f, (value, X)), (items, (value,))):
        compiled = tcompile.compile(function, backend="eager")
        want = function(*args)
        for _ in range(3):
            got = compiled(*args)
            assert [type(v) for v in got] == [type(v) for v in want]
            for p, q in zip(got, want, strict=True):
                assert np.shape(p) == np.shape(q) and getattr(p, "dtype", None) == getattr(q, "dtype", None)
        assert len(compiled.cache.first.entries) == 1


@pytest.mark.parametrize("kind", [np.longlong, np.ulonglong, np.intc, np.uintc, np.long, np.ulong])
@pytest.mark.parametrize("backend", ["eager", "llvm"])
def test_scalars_of_types_that_have_a_twin(kind, backend):
    """C may have two integer types of one size: arrays and scalars of the second are left to Python."""
    for function in (
        lambda w: np.sum(w),
        lambda w: w + 1,
        lambda w: w * np.ones(3, int),
        lambda w: [w, abs(w), w.dtype.char],
    ):
        compiled = tcompile.compile(function, backend=backend)
        want, compiles = function(kind(3)), set()
        for _ in range(3):
            got = compiled(kind(3))
            assert_same(got, want)
            assert getattr(got, "dtype", None) is getattr(want, "dtype", None)
            compiles.add(compiled.cache.compiles)
        assert len(compiles) == 1


def test_arrays_of_objects_are_read_anew():
    def f(v):
        return v + v

    held = np.array([1, 2], dtype=object)
    compiled = tcompile.compile(f, backend="eager")
    assert list(compiled(held)) == [2, 4]
    held[0] = "s"
    assert list(compiled(held)) == ["ss", 4]


def test_memory_orders_have_entries_of_their_own():
    compiled = tcompile.compile(lambda a: a * 2 + 1, backend="eager", fullgraph=True)
    base = np.arange(24.0).reshape(2, 3, 4)
    variants = [
        base, base.T, base.transpose(1, 0, 2), base[:, ::2], base[..., ::-1], np.asfortranarray(base[:, :1]), base[:, :1],
        base[:1].T, np.broadcast_to(base[0], (2, 3, 4)), base[:, :, 1:3], base.transpose(0, 2, 1)[:, :, :1],
    ]  # fmt: skip
    for v in variants:
        before = len(compiled.entries)
        for _ in range(2):
            got, want = compiled(v), v * 2 + 1
            np.testing.assert_array_equal(got, want)
            keep = [i for i, n in enumerate(want.shape) if n != 1]
            assert [got.strides[i] for i in keep] == [want.strides[i] for i in keep]
        assert len(compiled.entries) <= before + 1
        if len(compiled.entries) > 6:
            tcompile.reset()


@pytest.mark.parametrize("f, reason, line", [
    (lambda a: a * 2 if a.sum() > 0 else a, "data-dependent-branch", "a.sum() > 0"),
    (lambda a: {v for v in a[0] if v > 0}, "data-dependent-branch", "v > 0"),
    (lambda a: complex(a.sum()) * a, "data-dependent-value", "complex(a.sum())"),
    (lambda a: int(a[0, 0]) * a, "array-conversion", "int(a[0, 0])"),
    (lambda a: range(int(a.shape[0]), a.argmax()), "data-dependent-value", "a.argmax()"),
    (lambda a: (a > 0) and a, "data-dependent-branch", "(a > 0) and a"),
    (lambda a: not a, "data-dependent-branch", "not a"),
    (lambda a: 0 < a.sum() < 3, "data-dependent-branch", "0 < a.sum() < 3"),
    (lambda a: a in [a + 1], "data-dependent-branch", "a in [a + 1]"),
    (lambda a: [1, 2][a.argmax()], "data-dependent-value", "[1, 2][a.argmax()]"),
    (lambda a: f"{a}", "data-dependent-value", "a"),
    (lambda a: sorted(a[0]), "data-dependent-branch", "sorted(a[0])"),
    (lambda a: a[a > 0], "data-dependent-shape", "a[a > 0]"),
    (lambda a: np.nonzero(a), "data-dependent-shape", "np.nonzero(a)"),
])  # fmt: skip
def test_values_that_python_needs(f, reason, line):
    compiled = tcompile.compile(f, backend="eager")
    broke = None
    try:
        want = f(X)
    except Exception as error:
        with pytest.raises(type(error)):
            compiled(X)
    else:
        np.testing.assert_equal(compiled(X), want)
    (broke,) = compiled.breaks
    assert broke.reason.id == reason or reason.startswith("data-dependent"), (broke.reason.id, broke.detail)
    assert line in broke.where.text


def test_views_of_broadcasts_are_read_only():
    def f(a):
        return np.broadcast_to(a, a.shape).T, np.broadcast_to(a, a.shape)[None]

    whole(f, x)


@pytest.mark.parametrize(
    "f",
    [
        lambda a: a.sum() * (1, 2), lambda a: [a] * a.astype("int64").max(), lambda a: a.astype("int64").max() * a.shape,
        lambda a: np.array(2) * (1, 2), lambda a: (1, 2) * a.sum(),
    ],
)  # fmt: skip
def test_scalars_of_numpy_repeat_sequences(f):
    check(f, lambda: (np.abs(X),), backends=("eager",))


@pytest.mark.parametrize("dtype", ["int64", "float64", "bool"])
def test_scalars_of_numpy_repeat_sequences_in_place_too(dtype):
    def several(a):
        n = a.sum()
        n *= [1, 2]
        return n

    def an_element(a, i):
        a[i] *= [2]
        return a

    check(several, lambda: (np.arange(3).astype(dtype),))
    check(an_element, lambda: (np.arange(3).astype(dtype), np.int64(1)))


@pytest.mark.parametrize("f", [
    lambda a: a.__abs__(0), lambda a: a.sum().__neg__(axis=0), lambda a: a.ravel().searchsorted(np.int16),
])  # fmt: skip
def test_arguments_that_nobody_takes_raise(f):
    check(f, lambda: (X,), backends=("eager",))


def test_a_view_that_turns_out_to_be_in_c_order():
    def f(x):
        row = x[1]
        same = np.ascontiguousarray(row)
        x.sort()
        return row, same

    check(f, lambda: [np.array([[3.0, 1.0, 2.0], [6.0, 4.0, 5.0]])[::-1]])
