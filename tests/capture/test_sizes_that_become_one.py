"""Sizes such as ``n - 1`` that turn out to be one: an axis of one element has no place in memory order, and what is
dense in one order is dense in the other.
"""

from __future__ import annotations

import numpy as np
import pytest

import tcompile


def filled(*shape):
    return np.arange(float(np.prod(shape))).reshape(shape)


def turned(n):
    return filled(n, 3, 2).transpose(2, 0, 1), filled(3, 2, n).transpose(1, 2, 0)


def in_other_order(x):
    y = np.asarray(x[1:], order="F")
    y += 1
    return y.ravel()


def in_fortran_order(x):
    y = np.asfortranarray(x[1:])
    y += 1
    return y.ravel()


def joined(x):
    v = x[:, 1:].T
    return np.concatenate([v, v]) + 1, np.hstack([v, v]) * 2, np.vstack([v, v]) + 1, np.append(v, v, axis=0) + 1


def gathered(x):
    v = x[2:].transpose(2, 1, 0)
    return v[[0, 1]] * 1, v[:, [0, 1]] * 1, v[np.array([0, 1]) * 1] + 1


CASES = {
    "in_other_order": (in_other_order, lambda n: [filled(n, 4)], (5, 4, 2, 3)),
    "in_fortran_order": (in_fortran_order, lambda n: [filled(n, 4)], (5, 4, 2, 3)),
    "joined": (joined, lambda n: [filled(4, n)], (5, 4, 2, 3)),
    "added": (lambda x, y: x[:, 1:] + y[:, 1:], turned, (5, 4, 2, 3)),
    "added, at one first": (lambda x, y: x[:, 1:] + y[:, 1:], turned, (2, 5, 4, 2)),
    "gathered": (gathered, lambda n: [filled(n, 3, 3)], (5, 4, 3, 6)),
    "gathered, at one first": (gathered, lambda n: [filled(n, 3, 3)], (3, 5, 4, 3)),
}  # fmt: skip


def told(arrays):
    """Values, and strides of axes that have any; which of two orders an array is dense in follows from these."""
    arrays = arrays if isinstance(arrays, tuple | list) else [arrays]
    return [
        (a.tolist(), [s for s, n in zip(a.strides, a.shape, strict=True) if n > 1], a.flags.c_contiguous)
        for a in arrays
    ]  # fmt: skip


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("dynamic", [None, True])
@pytest.mark.parametrize("backend", ["llvm", "eager"])
def test_order(name, dynamic, backend):
    f, make, sizes = CASES[name]
    compiled = tcompile.compile(f, dynamic=dynamic, backend=backend)
    for n in sizes:
        plain, given = make(n), make(n)
        assert told(compiled(*given)) == told(f(*plain)), n
        assert told(given) == told(plain), n


def test_nothing_is_asked_where_all_lie_in_c_order():
    compiled = tcompile.compile(lambda x, y: np.concatenate([x[1:] + y[1:], x[1:]])[[0]] * 2, dynamic=True)
    for n in (5, 4, 2):
        compiled(filled(n, 3), filled(n, 3))
    assert len(compiled.entries) == 1


VIEWS = [
    "np.ascontiguousarray(x[:, 1:])", "np.asarray(x[:, 1:], order='C')", "x[:, 1:].astype(float, 'C', copy=False)",
    "np.asfortranarray(x[:, 1:].T)", "np.asfortranarray(x[1:])", "np.ascontiguousarray(x[1:].T)",
]  # fmt: skip
PLACES = [
    lambda n: np.asfortranarray(filled(n, n)), lambda n: filled(n, n), lambda n: np.zeros((n, n + 3))[:, :n],
    lambda n: filled(n, 2 * n)[:, ::2],
]  # fmt: skip


@pytest.mark.parametrize("text", VIEWS)
@pytest.mark.parametrize("place", range(len(PLACES)))
@pytest.mark.parametrize("dynamic", [None, True])
def test_view_or_copy(text, place, dynamic):
    space = {"np": np}
    exec(f"def f(x):\n    v = {text}\n    v += 1\n    return v", space)
    compiled = tcompile.compile(space["f"], dynamic=dynamic)
    for n in (4, 3, 2, 5, 2):
        rows = []
        for g in (space["f"], compiled):
            x = PLACES[place](n)
            v = g(x)
            rows.append((v.tolist(), x.tolist(), np.shares_memory(v, x)))
        assert rows[0] == rows[1], n


def test_what_has_no_elements_may_be_itself():
    def f(x, k):
        v = x[k:]
        return np.asfortranarray(v) is v, np.asarray(v, order="F") is v

    compiled = tcompile.compile(f)
    for k in (1, 2, 5, 4, 3):
        assert compiled(filled(5, 3), k) == f(filled(5, 3), k), k


def test_where_it_lies_in_memory_is_the_same_to_verify():
    """The mean's axes of one element lie elsewhere once its graph is in canonical form."""

    def f(x):
        return round(float(x.diagonal(1).var()), 9), (x.diagonal(1) - 1.5).tolist()

    with tcompile.config.patch(verify=True):
        compiled = tcompile.compile(f)
        for n, m in ((6, 4), (5, 4), (2, 17), (5, 7)):
            x = (filled(2, n, m) % 7).astype("uint16")
            assert compiled(x) == f(x), n
