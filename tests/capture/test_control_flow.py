"""``while_loop``, ``scan``, ``map`` and ``associative_scan``: one node each, and the same in plain Python."""

from __future__ import annotations

from collections import namedtuple

import numpy as np
import pytest
from differential import assert_same

import tcompile
from tcompile import associative_scan, cond, scan, while_loop
from tcompile import map as map_
from tcompile.errors import InvalidArgument, InvalidType

from .helpers import X, check, whole, x, xy

Pair = namedtuple("Pair", "low high")


def ops(compiled):
    return [node.op.name for node in compiled.graphs[0].nodes]


# -- while_loop ------------------------------------------------------------------------------------------------------


def count(a):
    return while_loop(lambda i, v: i < 5, lambda i, v: (i + 1, v * 1.5), (0, a))


def zero_trips(a):
    return while_loop(lambda i, v: i < 0, lambda i, v: (i + 1, v * 2), (0, a))


def until_converged(a):
    def far(old, new):
        return np.abs(old - new).max() > 1e-3

    def step(old, new):
        return new, new * 0.5 + 1

    return while_loop(far, step, (a, a * 0.5 + 1))[1]


def reads_outside(a):
    scale, power = a.max() + 2, 3
    return while_loop(lambda v: (v < scale * 10).all(), lambda v: (v * power + a.min() + 8,), (np.abs(a),))[0] + scale


def passed_on(a):
    return while_loop(lambda i, w, v: i < 3, lambda i, w, v: (i + 1, w, v + w), (0, a, a * 2))


def views_and_second_names(a):
    return while_loop(lambda i, p, q: i < 3, lambda i, p, q: (i + 1, q[::-1], q[::-1]), (0, a[0], a[1]))


def outer_returned(a):
    b = a + 1
    return while_loop(lambda i, v: i < 2, lambda i, v: (i + 1, b), (0, a)), b


def strided(a):
    return while_loop(lambda v: v.sum() < 100, lambda v: (v.T.T + 10,), (a.T[::2, ::-1],))


def structures(a):
    def body(state, i):
        return {"p": Pair(state["p"].high, state["p"].low + 1), "l": [state["l"][0] * 2]}, i + 1

    return while_loop(lambda state, i: i < 4, body, [{"p": Pair(a, a * 2), "l": [a.sum()]}, 0])


def nested(a):
    def body(i, v):
        inner = while_loop(lambda j, w: j < i, lambda j, w: (j + 1, w + j), (0, v))
        return i + 1, cond(inner[1].sum() > 0, lambda w: w * 2, lambda w: w - 1, (inner[1],))

    return while_loop(lambda i, v: i < 4, body, (0, a))


def condition_of_one(a):
    return while_loop(lambda v: v[:1, :1] < 10, lambda v: (v + 3,), (a,))


def numbers(a, k, f):
    return while_loop(lambda i, v: i < k, lambda i, v: (i + k, v * f), (0, a * f))


@pytest.mark.parametrize("f", [
    count, zero_trips, until_converged, reads_outside, passed_on, views_and_second_names, outer_returned, strided,
    structures, nested, condition_of_one,
])  # fmt: skip
def test_while_loop_is_captured_whole(f):
    compiled = whole(f)
    assert "while_loop" in ops(compiled)


def test_while_loop_with_numbers_that_vary():
    compiled = tcompile.compile(numbers, fullgraph=True)
    for k, f in ((2, 0.5), (3, 1.5), (5, -2.0), (9, 0.25)):
        np.testing.assert_equal(compiled(X, k, f), numbers(X, k, f))
    assert len(compiled.entries) == 2
    whole(numbers, lambda: (X.copy(), 3, 0.5), dynamic=True)


def test_results_share_memory_with_nothing():
    for f in (zero_trips, passed_on, views_and_second_names, outer_returned):
        for run in (f, tcompile.compile(f, backend="eager", fullgraph=True), tcompile.compile(f, backend="llvm")):
            a = X.copy()
            found = run(a)
            found = [*found[0], found[1]] if f is outer_returned else list(found)
            for i, p in enumerate(found):
                assert p.flags.owndata and not np.shares_memory(p, a)
                assert not any(np.shares_memory(p, q) for q in found[:i])


@pytest.mark.parametrize(("f", "error", "text"), [
    (lambda a: while_loop(3, lambda v: (v,), (a,)), InvalidType, "cond_fn must be callable, got int 3"),
    (lambda a: while_loop(lambda v: True, None, (a,)), InvalidType, "body_fn must be callable, got NoneType None"),
    (lambda a: while_loop(lambda v: True, lambda v: v, a), InvalidType, "carried must be a tuple or list, got ndarray"),
    (lambda a: while_loop(lambda v: False, lambda v: v, (a, "no")), InvalidType, r"carried\[1\] must be an array"),
    (lambda a: while_loop(lambda v: v, lambda v: (v,), (a,)), InvalidType, "a bool or a boolean array of one element"),
    (lambda a: while_loop(lambda v: v.sum(), lambda v: (v,), (a,)), InvalidType, "cond_fn must return a bool"),
    (lambda a: while_loop(lambda v: v.sum() < 1e9, lambda v: v * 2, (abs(a),)), InvalidType, "structure of carried"),
    (lambda a: while_loop(lambda v: v.sum() < 1e9, lambda v: (v[1:],), (abs(a),)), InvalidArgument,
     r"leaf 0 of carried is float64\[3, 4\], and float64\[2, 4\]"),
    (lambda a: while_loop(lambda v: v.sum() < 1e9, lambda v: (v.astype("f4"),), (abs(a),)), InvalidArgument, "dtype"),
    (lambda a: while_loop(lambda v: v.sum() < 1e9, lambda v: (v, v), (abs(a),)), InvalidType, "structure"),
])  # fmt: skip
def test_while_loop_refuses(f, error, text):
    for run in (f, tcompile.compile(f, backend="eager")):
        with pytest.raises(error, match=text):
            run(X.copy())


def test_bodies_that_cannot_be_captured_run_plainly():
    def prints(a):
        def body(i, v):
            print("at", int(i))
            return i + 1, v + 1

        return while_loop(lambda i, v: i < 2, body, (0, a))

    def branches(a):
        def body(i, v):
            return (i + 1, v + 1) if v.sum() > 0 else (i + 2, v)

        return while_loop(lambda i, v: i < 5, body, (0, a))

    def changes(a):
        seen = []

        def body(i, v):
            seen.append(i)
            return i + 1, v + 1

        return while_loop(lambda i, v: i < 2, body, (0, a)), len(seen)

    def plain_condition(a):
        left = [True, True, False]
        return while_loop(lambda v: left.pop(0), lambda v: (v + 1,), (a,))

    for f in (prints, branches, changes, plain_condition):
        check(f, x, backends=("eager", "llvm"))


# -- scan ------------------------------------------------------------------------------------------------------------


def running(a):
    return scan(lambda total, row: (total + row, total * row), np.zeros(4), a)


def along_one(a):
    return scan(lambda c, v: (c + v.sum(), {"s": v * c, "t": (v[:2], c)}), 1.0, a, dim=1)


def backwards(a):
    return scan(lambda c, v: (c * 0.5 + v, c), np.ones(3), a, dim=-1, reverse=True)


def several(a):
    scale = a.max()
    init = (np.float64(0), {"k": np.zeros(4)})
    return scan(lambda c, v: ((c[0] + v[0].max(), {"k": c[1]["k"] - v[1]}), v[0] * scale), init, [a, a * 2])


def no_carry(a):
    return scan(lambda c, v: ((), v.sum()), (), a)


def of_scalars(a):
    return scan(lambda c, v: (c + v, c), 0.0, a[0])


def scans_in_scans(a):
    return scan(lambda c, row: scan(lambda d, v: (d + v, d * c), c, row), 0.0, a)


@pytest.mark.parametrize("f", [running, along_one, backwards, several, no_carry, of_scalars, scans_in_scans])
def test_scan_is_captured_whole(f):
    assert ops(whole(f)).count("scan") == 1


@pytest.mark.parametrize(("f", "error", "text"), [
    (lambda a: scan(1, 0.0, a), InvalidType, "combine_fn must be callable"),
    (lambda a: scan(lambda c, v: (c, v), 0.0, a, dim=2), InvalidArgument, "dim must be an axis of every array"),
    (lambda a: scan(lambda c, v: (c, v), 0.0, a, dim="x"), InvalidType, "dim must be an int, got str 'x'"),
    (lambda a: scan(lambda c, v: (c, v), 0.0, a, reverse=1), InvalidType, "reverse must be bool, got int 1"),
    (lambda a: scan(lambda c, v: (c, v), 0.0, a[:0]), InvalidArgument, "one size along dim, at least 1"),
    (lambda a: scan(lambda c, v: (c, v), 0.0, (a, a[1:])), InvalidArgument, r"got shapes \(3, 4\), \(2, 4\)"),
    (lambda a: scan(lambda c, v: (c, v), 0.0, ()), InvalidArgument, "at least one array"),
    (lambda a: scan(lambda c, v: c, 0.0, a), InvalidType, r"must return \(carry, y\)"),
    (lambda a: scan(lambda c, v: (c + v, v), 0.0, a), InvalidArgument, "must keep dtype and shape"),
    (lambda a: scan(lambda c, v: (c, "no"), 0.0, a), InvalidType, "combine_fn's result must be an array"),
])  # fmt: skip
def test_scan_refuses(f, error, text):
    for run in (f, tcompile.compile(f, backend="eager")):
        with pytest.raises(error, match=text):
            run(X.copy())


# -- map and associative_scan ----------------------------------------------------------------------------------------


def rows(a):
    return map_(lambda row: row.sum(), a), map_(lambda row: (row * 2, [row[0]]), a)


def rows_with_more(a):
    scale = a.mean()
    return map_(lambda row, k, b: row * scale + k - b, a, 3, a[0])


def several_columns(a):
    return map_(lambda v: {"p": v["p"] @ v["q"]}, {"p": a, "q": a + 1})


def transposed_rows(a):
    return map_(lambda m: m.T, a.reshape(3, 2, 2))


def cumulative(a):
    return associative_scan(lambda p, q: p + q, a), associative_scan(lambda p, q: p * q, a, 1)


def cumulative_backwards(a):
    return associative_scan(np.maximum, a, dim=-1, reverse=True, combine_mode="generic")


def linear_recurrence(a):
    def combine(p, q):
        return p[0] * q[0], p[1] * q[0] + q[1]

    return associative_scan(combine, (a, a * 0.5), 1)


def single(a):
    return associative_scan(lambda p, q: p + q, a[:1])


@pytest.mark.parametrize("f", [
    rows, rows_with_more, several_columns, transposed_rows, cumulative, cumulative_backwards, linear_recurrence,
    single,
])  # fmt: skip
def test_map_and_associative_scan_are_captured_whole(f):
    whole(f)


def test_they_are_what_numpy_computes():
    np.testing.assert_array_equal(cumulative(X)[0], np.cumsum(X, 0))
    np.testing.assert_array_equal(cumulative_backwards(X), np.maximum.accumulate(X[:, ::-1], 1)[:, ::-1])
    np.testing.assert_array_equal(rows(X)[0], X.sum(1))
    np.testing.assert_array_equal(running(X)[0], np.cumsum(X, 0)[-1])


@pytest.mark.parametrize("f", [count, reads_outside, running, along_one, backwards, rows, rows_with_more, cumulative])
def test_sizes_that_vary(f):
    for backend in ("eager", "llvm"):
        compiled = tcompile.compile(f, backend=backend, fullgraph=True)
        for n in (3, 5, 6, 9):
            a = np.linspace(-1, 2, n * 4).reshape(n, 4)
            if f is backwards:
                a = a.T[:3].copy()
            assert_same(compiled(a), f(a))
        assert len(compiled.entries) == 2, compiled.recompiles


@pytest.mark.parametrize(("f", "error", "text"), [
    (lambda a: map_(2, a), InvalidType, "map: fn must be callable"),
    (lambda a: map_(lambda v: v, a[:0]), InvalidArgument, "at least 1"),
    (lambda a: map_(lambda v: v, 3), InvalidArgument, "dim must be an axis"),
    (lambda a: associative_scan(np.add, a, combine_mode="tree"), InvalidArgument, "or 'generic', got 'tree'"),
    (lambda a: associative_scan(lambda p, q: p, a, dim=5), InvalidArgument, "dim must be an axis"),
    (lambda a: associative_scan(lambda p, q: p.sum(), a), InvalidArgument, "must keep dtype and shape"),
])  # fmt: skip
def test_map_and_associative_scan_refuse(f, error, text):
    for run in (f, tcompile.compile(f, backend="eager")):
        with pytest.raises(error, match=text):
            run(X.copy())


def test_floating_point_errors_come_from_plain_numpy():
    def f(a, b):
        return while_loop(lambda i, v: i < 3, lambda i, v: (i + 1, v / (b - b)), (0, a))

    check(f, xy)
    with np.errstate(all="ignore"):
        check(f, xy)
    with np.errstate(all="raise"):
        check(f, xy)


def test_a_long_loop_is_left_to_python_and_its_body_compiled():
    def paths(d):
        for k in list(range(d.shape[0])):
            d = np.minimum(d, d[:, k, None] + d[None, k, :])
        return d

    def twice(d):
        return paths(d) + paths(d.T)

    d = np.random.default_rng(0).random((150, 150))
    for function in (paths, twice):
        compiled = tcompile.compile(function, backend="eager")
        for _ in range(2):
            np.testing.assert_array_equal(compiled(d), function(d))
        assert all(len(graph.nodes) < 50 for graph in compiled.graphs)
    compiled = tcompile.compile(paths, backend="eager")
    compiled(d)
    assert [broke.reason.id for broke in compiled.breaks] == ["too-long"]
    with tcompile.config.patch(max_unrolled=10_000):
        tcompile.reset()
        compiled(d)
        assert not compiled.breaks
    tcompile.reset()
    whole = tcompile.compile(paths, backend="eager", fullgraph=True)
    np.testing.assert_array_equal(whole(d), paths(d))
