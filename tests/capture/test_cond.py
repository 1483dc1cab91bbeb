"""``tcompile.cond``: both branches in one node."""

from __future__ import annotations

import numpy as np
import pytest

import tcompile
from tcompile import cond

from .helpers import X, whole


def both():
    """Arguments under which each branch is taken, in turn."""
    return [(X.copy(),), (-X.copy(),)]


def check_both(f, ops=None):
    for args in both():
        whole(f, lambda args=args: args, ops=ops)
    compiled = tcompile.compile(f, backend="llvm", fullgraph=True)
    for args in both() * 2:
        np.testing.assert_equal(compiled(*args), f(*args))
    assert len(compiled.entries) == 1


def simple(a):
    return cond(a.sum() > 0, lambda v: v * 2, lambda v: v - 1, (a,))


def closures(a):
    scale, shift = a.max() + 2, 3

    def up(v):
        return v * scale + shift

    def down(v):
        return v - a * scale

    return cond(a.sum() > 0, up, down, (a + 1,)) * scale


def several(a):
    return cond(
        a.mean() > 0,
        lambda p, q, k: (p + q, {"s": p.sum()}),
        lambda p, q, k: (p * q * k, {"s": q.max()}),
        (a, a + 1, 2),
    )


def of_views(a):
    return cond(a[0, 0] > a[1, 1], lambda p, q: p + q.T, lambda p, q: p * q.T, (a[:, 1], a.T[1:2, :])) + a[:, 0]


def nested(a):
    def inner(v):
        return cond(v.max() > 2, lambda w: w + 100, lambda w: w - 100, [v])

    return cond(a.sum() > 0, inner, lambda v: v * 0, (a,))


def no_operands(a):
    return cond(a.sum() > 0, lambda: a * 2, lambda: a + 2)


def python_predicate(a):
    return cond(a.ndim == 2, lambda v: v * 2, lambda v: [v], (a,))


def scalars(a):
    return cond(a.sum() > 0, lambda v: v.sum(), lambda v: v.max(), (a,)) * 2


@pytest.mark.parametrize("f", [simple, closures, several, of_views, nested, no_operands, python_predicate, scalars])
def test_captured_whole(f):
    check_both(f)


@pytest.mark.parametrize("f", [
    lambda a: cond(a.sum() > 0, lambda v: v, lambda v: v + 1, (a,)),
    lambda a: cond(a.sum() > 0, lambda v: v[1:], lambda v: v[:-1], (a,)),
    lambda a: cond(a.sum() > 0, lambda v: v.astype("f4"), lambda v: v + 1, (a,)),
    lambda a: cond(a.sum() > 0, lambda v: (v + 1,), lambda v: v + 1, (a,)),
    lambda a: cond(a.sum() > 0, lambda v: v.sum(), lambda v: v + 1, (a,)),
    lambda a: cond(a.sum() > 0, lambda v: 3, lambda v: v + 1, (a,)),
])  # fmt: skip
def test_branches_that_do_not_fit_run_plainly(f):
    compiled = tcompile.compile(f, backend="eager")
    for args in both():
        np.testing.assert_equal(compiled(*args), f(*args))
    assert compiled.breaks[0].reason.id == "cond-mismatch" and "cond(" in compiled.breaks[0].where.text


def test_branches_that_change_something():
    def f(a):
        log = []

        def up(v):
            log.append(1)
            return v + 1

        return cond(a.sum() > 0, up, lambda v: v - 1, (a,)), len(log)

    compiled = tcompile.compile(f, backend="eager")
    for args in both():
        np.testing.assert_equal(compiled(*args), f(*args))
    assert [broke.reason.id for broke in compiled.breaks] == ["loop-mismatch"]

    def g(a):
        c = a + 1

        def up(v):
            nonlocal c
            c += v
            return v + 1

        return cond(a.sum() > 0, up, lambda v: v - 1, (a,)), c

    compiled = tcompile.compile(g, backend="eager")
    for args in both():
        np.testing.assert_equal(compiled(*args), g(*args))


def test_symbolic_sizes():
    compiled = tcompile.compile(simple, backend="llvm", fullgraph=True)
    for n in (3, 4, 5, 9):
        for sign in (1, -1):
            a = np.ones((n, 2)) * sign
            np.testing.assert_array_equal(compiled(a), simple(a))
    assert len(compiled.entries) == 2


def test_wrong_arguments():
    from tcompile.errors import InvalidType

    compiled = tcompile.compile(lambda a: cond(a > 0, lambda: a, lambda: a), backend="eager")
    with pytest.raises(InvalidType, match="pred must be"):
        compiled(X)
