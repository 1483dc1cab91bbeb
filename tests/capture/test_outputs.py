"""``out=`` and ``where=``: results that are written into arrays which are there already."""

from __future__ import annotations

import numpy as np
import pytest

from tests.differential import check


def arguments():
    """Whole numbers, so that results are exact on every backend."""
    a = np.arange(-11.0, 13.0).reshape(4, 6)
    return a, np.abs(a) + 1, np.zeros_like(a), a > 0


def ufuncs(a, b, c, m):
    r = np.add(a, b, out=c)
    np.multiply(a, 2, c)
    np.negative(b, out=(b,))
    np.subtract(a, b, out=a)
    np.add(a[1:], a[:-1], out=a[:-1])
    np.add(a[0], 1, out=b)
    np.minimum(a.T, 3, out=c.T)
    return r


def masked(a, b, c, m):
    np.sqrt(a, out=b, where=m)
    np.divide(1, a, out=c, where=a != 0)
    np.add(c, 1, out=c, where=m[0])
    np.reciprocal(b, out=b, where=b != 0)
    np.floor_divide(a, b, where=b > 1, out=a)
    np.arctanh(a * 0, out=b, where=a > 0)
    np.arccosh(a * 0 + 1, out=b, where=a > 0)


def casts(a, b, c, m):
    i, f = np.zeros(a.shape, "i8"), np.zeros(a.shape, "f4")
    np.add(a, b, out=f)
    np.multiply(i, 2, out=f)
    np.add(a, 1, out=i, casting="unsafe")
    q, r = np.divmod(a, b, a, c)
    np.greater(a, b, out=m)
    np.greater(a, b, out=c)
    np.add(1, 2, out=b)
    np.add(i, 1, i, dtype="i4")
    return i, f, q, r


def reduces(a, b, c, m):
    s = np.sum(a, axis=0, out=c[0])
    a.sum(1, None, c[:, 5][:4])
    b.max(axis=0, out=b[1])
    np.maximum.reduce(a, 0, None, c[3])
    np.any(a, axis=0, out=m[0])
    a.mean(axis=0, out=c[1])
    o = np.zeros(6, "i8")
    np.argmax(a, axis=0, out=o)
    np.sum(m, axis=0, out=o)
    z = np.zeros(())
    np.add.reduce(b, 0, out=(c[2],))
    return s, o, np.sum(a, out=z)


def scans(a, b, c, m):
    np.cumsum(a, axis=1, out=c)
    a.cumsum(axis=0, out=a)
    np.add.accumulate(b, out=b)
    np.modf(a, None, c)
    np.modf(a, out=(None, a))


def others(a, b, c, m):
    np.clip(a, 0, 3, out=a)
    b.clip(2, 5, out=c)
    np.round(b, 1, out=b)
    b.round(out=b)
    np.take(a, [0, 1], axis=0, out=c[:2])
    np.concatenate([a[:2], b[2:]], out=c)
    np.stack([a[0], b[0]], out=c[1:3])
    o = np.zeros((4, 4))
    np.matmul(a, b.T, out=o)
    np.dot(a, b.T, out=o)
    np.median(a, axis=0, out=c[0])
    return o


FUNCTIONS = (ufuncs, masked, casts, reduces, scans, others)


@pytest.mark.parametrize("f", FUNCTIONS, ids=lambda f: f.__name__)
def test_outputs(f):
    compiled = check(f, arguments)[-1]
    assert not compiled.breaks, [(str(b), b.detail) for b in compiled.breaks]


REFUSED = {
    "another shape": lambda a, b, c, m: np.add(a, 1, out=np.zeros(3)),
    "a smaller shape": lambda a, b, c, m: np.add(a, 1, out=c[0]),
    "fewer axes": lambda a, b, c, m: np.add(a[:1], 1, out=c[0]),
    "no tuple for two outputs": lambda a, b, c, m: np.modf(a, out=c),
    "one output of two": lambda a, b, c, m: np.modf(a, out=(c,)),
    "a tuple for no ufunc": lambda a, b, c, m: np.cumsum(a, 1, out=(c,)),
    "a tuple for a reduction": lambda a, b, c, m: np.sum(a, 0, out=(c[0],)),
    "a tuple for a method": lambda a, b, c, m: a.max(0, out=(c[0],)),
    "a tuple by its place": lambda a, b, c, m: np.add(a, 1, (c,)),
    "casting": lambda a, b, c, m: np.add(a, 1, out=np.zeros(a.shape, "i4")),
    "casting=no": lambda a, b, c, m: np.add(a, 1, out=np.zeros(a.shape, "f4"), casting="no"),
    "no array": lambda a, b, c, m: np.add(a, 1, out=[1]),
    "a number": lambda a, b, c, m: np.add(a, 1, out=a[0, 0]),
    "never": lambda a, b, c, m: np.sqrt(a, out=c, where=False),
    "a warning": lambda a, b, c, m: np.maximum(a, b, c),
    "two outputs": lambda a, b, c, m: np.add(a, 1, c, out=b),
    "mask of integers": lambda a, b, c, m: np.add(a, 1, out=c, where=np.ones(6, int)),
    "reduced to another dtype": lambda a, b, c, m: np.sum(a.astype("i1"), axis=0, out=np.zeros(6, "i1")),
    "reduced to floats": lambda a, b, c, m: np.sum(a > 0, axis=0, out=c[0]),
    "of a function without": lambda a, b, c, m: np.sort(a, out=c),
    "overlapping": lambda a, b, c, m: np.concatenate([a[1:], a[:1]], out=a),
    "read only": lambda a, b, c, m: np.add(a, 1, out=np.broadcast_to(c[0], a.shape)),
    "half": lambda a, b, c, m: np.mean(a.astype("f2"), axis=0, out=np.zeros(6, "f2")),
}


@pytest.mark.parametrize("name", REFUSED)
def test_other_outputs_are_plain_pythons(name):
    def f(a, b, c, m):
        a += 1
        REFUSED[name](a, b, c, m)
        return a + 1

    check(f, arguments)


def test_an_output_is_the_very_object():
    def f(a, b, c, m):
        d = np.empty_like(a)
        return np.add(a, b, out=c) is c, np.sum(a, axis=0, out=d[0]) is d, a.clip(0, 1, out=d) is d

    compiled = check(f, arguments)[-1]
    assert not compiled.breaks


def test_what_where_leaves_out_does_not_warn():
    def f(a, b, c, m):
        np.sqrt(a, out=c, where=a >= 0)
        np.log(b - 1, out=b, where=b > 1)
        np.true_divide(1.0, a, out=a, where=a != 0)
        return c

    def make():
        a = np.array([-1.0, 0.0, 4.0, np.nan, -np.inf])
        return a, np.array([0.0, 1.0, 2.0, -3.0, 2.0]), np.zeros(5), None

    check(f, make)
    check(lambda a, b, c, m: np.sqrt(a, out=c, where=a > -2), make)
