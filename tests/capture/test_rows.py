"""Rows at places that a loop computes: read as they are, and left to Python where it matters that they are views."""

from __future__ import annotations

import numpy as np
import pytest

import tcompile

from .loop_check import Plan, nodes_of

HEAD = """
def f(a, b, n):
    x, w = np.arange(24.0).reshape(6, 4) % 7, np.ones(4)
    k = np.array([3, 1, 5, 0, 2, 4, -1, 2])
"""

READ = [
    """
    for i in range(n):
        w = w * 0.5 + x[()][2]
    return (w, x)
    """,
    """
    for i in range(n):
        row = x[k[i % 8]]
        w = w * 0.5 + row
    return (w,)
    """,
    """
    for i in k:
        x[2] = w
        row = x[i]
        w = w * 0.5 + row
    return (w, x)
    """,
    """
    for i in k:
        x[i] = w
        row = x[i]
        w = w * 0.5 + row
    return (w, x)
    """,
    """
    for i in k:
        row = x[i]
        if row.sum() > 9:
            w = w * 0.5 + row
    return (w, x)
    """,
    """
    for i in k:
        row = x[i]
        if row.sum() > 12:
            break
        w = w * 0.5 + row
    return (w, x)
    """,
    """
    for i in k:
        row = x[i]
        for j in range(4):
            w[j] = w[j] * 0.5 + row[j]
    return (w, x)
    """,
    """
    for i in k:
        row = x[i]
        for j in range(n):
            w = w * 0.5 + row
    return (w, x)
    """,
    """
    X3 = np.arange(48.0).reshape(3, 4, 4)
    for i in k:
        w = w * 0.5 + X3[i % 3, i % 2] + X3[i % 3].sum(0)
    X3[0] = 1
    return (w, X3)
    """,
    """
    Y = np.arange(24.0).reshape(4, 6) % 5
    for i in k:
        w = w * 0.5 + Y[:, i]
    return (w, Y)
    """,
    """
    X3 = np.arange(4 * 6 * 8.0).reshape(4, 6, 8) % 11
    for i in range(len(k) - 1):
        column = X3[:, k[i], k[i + 1]]
        w = (w * 0.5 + column) % 3 + X3[1, k[i], :4]
    return (w, X3)
    """,
    """
    Y = np.arange(24.0).reshape(4, 6) % 5
    m = np.eye(4)
    for i in range(n):
        w = (w @ m) * Y[:, k[i % 8]]
        w /= w.sum()
    return (w, Y)
    """,
    """
    for i in k:
        w[i % 4] = x[i].max()
        x[2] = x[i] * 0.5 + x[i - 1][::-1]
    return (w, x)
    """,
    """
    for i in range(n):
        best = int(x[k[i % 8]].argmax())
        x[i % 6, best] += 0.5 * x[k[(i + 1) % 8]].min()
    return (x,)
    """,
    """
    s = 0
    for i in range(n):
        at = int(np.argmax(x[s]))
        after = (s + at + 1) % 6
        x[s, at] = x[s, at] * 0.5 + 0.25 * np.max(x[after]) - 1
        s = after
    return (x, s)
    """,
    """
    for i in k:
        for j in range(4):
            w[j] = w[j] * 0.5 + x[i][j]
        x[i % 6] = x[i - 1] * 0.25 + 1
    return (w, x)
    """,
    """
    q = 0
    for i in range(n):
        q = q * 3 % 5 + 1
        row = x[q]
        w = w * 0.5 + row
    x *= 2
    return (w, x)
    """,
]

# Rows that something else may see, that are written, or whose array is.
SEEN = [
    """
    for i in range(n):
        row = x[()]
        w = w * 0.5 + row[1]
        x[1] = i
    return (w, x)
    """,
    """
    for i in k:
        row = x[i]
        w = w * 0.5 + (row @ w) * row
    return (w, row, x)
    """,
    """
    for i in k:
        row = x[i]
        w = w * 0.5 + row
    row[0] = 7
    return (w, row, x)
    """,
    """
    for i in k:
        row = x[i]
        x[1] = w
        w = w * 0.5 + row
    return (w, x)
    """,
    """
    held = []
    for i in k:
        held.append(x[i])
        x[1] = w
        w = w * 0.5 + held.pop()
    return (w, x)
    """,
    """
    for i in k:
        part = x[i][1:]
        x[:] = x * 0.5
        w[1:] = w[1:] * 0.5 + part
    return (w, x)
    """,
    """
    def g(row):
        x[i] = 3
        return row * 0.5
    for i in k:
        w = g(x[i])
    return (w, x)
    """,
    """
    for i in k:
        x[0], w = x[i] * 0.5, x[i]
    return (w, x)
    """,
    """
    for i in k:
        x[i] += 1
        x[i][1] = 4
    return (w, x)
    """,
    """
    for i in k:
        row = x[i]
        row += 1
        w = w * 0.5 + row
    return (w, x)
    """,
    """
    for i in k:
        w = x[i]
    return (w, x)
    """,
    """
    for i in k:
        t = w
        w = x[i]
        w = w + t
    return (w, x, t)
    """,
    """
    for i in k:
        row = x[i]
        if row.sum() > 9:
            w = row
    return (w, x)
    """,
    """
    for i in k:
        row = x[i]
        if row.sum() > 12:
            break
        w = w * 0.5 + row
    return (w, x, row)
    """,
    """
    for i in k:
        row = x[i + 2]
        w = w * 0.5 + row
    return (w, x)
    """,
    """
    p.q = w
    for i in k:
        p.q = x[i]
    return (w, x)
    """,
    """
    l = [x, x.T]
    for i in k:
        row = l[0][i][::-1]
        y = row[:2]
        w = w * 0.5 + row
        w[:2] = w[:2] + y
    return (w, y)
    """,
    """
    Y = np.arange(24.0).reshape(4, 6) % 5
    for i in k:
        column = Y[:, i]
        column += 1
        w = w * 0.5 + column
    return (w, Y)
    """,
    """
    Y = np.arange(24.0).reshape(4, 6) % 5
    for i in k:
        column = Y[:, i]
        Y[0] = w.sum()
        w = w * 0.5 + column
    return (w, Y)
    """,
    """
    X3 = np.arange(4 * 6 * 8.0).reshape(4, 6, 8) % 11
    y = np.zeros((4, 8))
    for i in k:
        y = y * 0.5 + X3[:, i]
        w = w + y.sum(1)
    return (w, y)
    """,
    """
    F = np.asfortranarray(x)
    for i in k:
        w = w * 0.5 + F[i]
    return (w,)
    """,
    """
    def g(row):
        return row
    for i in k:
        row = g(x[i])
        w = np.where(row is w, row, w + np.asarray(row))
    return (w,)
    """,
    """
    for i in k:
        row = x[i]
        x *= 1.5
        w = w * 0.5 + row
    return (w, x)
    """,
    """
    Y = x[:]
    for i in k:
        row = Y[i]
        x[0] = 1.5
        w = w * 0.5 + row
    return (w, x)
    """,
]


@pytest.mark.parametrize("body", READ)
def test_rows_that_are_only_read(body):
    for backend in ("eager", "llvm"):
        assert nodes_of(HEAD + body, Plan(backend, (7, 8, 1, 0)))


@pytest.mark.parametrize("body", SEEN)
def test_rows_that_are_views_to_somebody(body):
    for backend in ("eager", "llvm"):
        assert nodes_of(HEAD + body, Plan(backend, (7, 8, 1, 0))) is not None


def descent(x, y, order, n):
    w = np.zeros(x.shape[1])
    for k in range(n):
        i = order[k]
        row = x[i]
        w = w - 0.125 * (row @ w - y[i]) * row
    return w


def perceptron(x, y, order, n):
    w = np.zeros(x.shape[1])
    for _ in range(n):
        for row, sign in zip(x, np.sign(y)):
            if sign * (row @ w) <= 0:
                w = w + sign * row
    return w


def gram_schmidt(x, y, order, n):
    q = x.copy()
    for j in range(q.shape[1]):
        for i in range(j):
            q[:, j] -= (q[:, i] @ q[:, j]) * q[:, i]
        q[:, j] /= np.linalg.norm(q[:, j])
    return q


@pytest.mark.parametrize("f", [descent, perceptron, gram_schmidt])
def test_what_goes_by_rows_and_columns_is_one_loop_in_machine_code(f):
    random = np.random.default_rng(0)
    x, y, order = random.random((40, 8)), random.standard_normal(40), random.permutation(40)
    compiled = tcompile.compile(f)
    for n in (30, 40, 1):
        np.testing.assert_allclose(compiled(x, y, order, n), f(x, y, order, n), rtol=1e-9)
    assert not compiled.breaks
    report = tcompile.explain(f)(x, y, order, 30)
    assert report.loops
    for loop in report.loops:
        assert "This loop runs in machine code" in str(loop)


def test_a_row_out_of_range_raises_in_its_iteration():
    def f(x, order, seen):
        w = np.zeros(3)
        for k in range(9):
            seen[k] = 1
            w = w + x[order[k]]
        return w

    x, order, seen = np.ones((4, 3)), np.array([0, 1, 2, 3, -4, 4, 0, 0, 0]), np.zeros(9)
    with pytest.raises(IndexError, match="index 4 is out of bounds for axis 0 with size 4"):
        tcompile.compile(f)(x, order, seen)
    assert seen.tolist() == [1, 1, 1, 1, 1, 1, 0, 0, 0]


def test_powers_of_distances_stay_in_the_loop():
    """NumPy's scalars have libm's powers, and so have iterations in machine code."""

    def forces(x, n):
        f = np.zeros_like(x)
        for i in range(n):
            for j in range(i + 1, n):
                d = x[j] - x[i]
                g = d / np.sqrt(d @ d) ** 3
                f[i] += g
                f[j] -= g
        return f

    x = np.random.default_rng(0).normal(size=(20, 3))
    for options in ({}, {"exact": True}):
        compiled = tcompile.compile(forces, backend="llvm", options=options)
        np.testing.assert_allclose(compiled(x, 20), forces(x, 20), rtol=1e-12)
        (entry,) = compiled.entries
        loops = entry.compiled_graph.host.native_loops
        assert not compiled.breaks and loops and all(loops.values())  # None: Python runs its iterations
        for n in (9, 1, 0):
            np.testing.assert_allclose(compiled(x, n), forces(x, n), rtol=1e-12)


def test_powers_of_numbers_have_numpys_bits():
    def powers(x, i, j):
        return x[i] ** x[j], x[i] ** 3, 2 ** x[j], x[i] ** 0.5

    special = [0.0, -0.0, 1.0, -2.0, 0.5, np.inf, -np.inf, np.nan, 1e30, 1e-30, 5e-324]
    for dtype in ("float64", "float32", "float16"):
        with np.errstate(all="ignore"):
            x = np.concatenate([special, np.random.default_rng(1).uniform(-10, 10, 40)]).astype(dtype)
            compiled = tcompile.compile(powers, backend="llvm")
            for i in range(0, len(x), 3):
                for j in range(len(x)):
                    assert repr(compiled(x, i, j)) == repr(powers(x, i, j))
    with pytest.warns(RuntimeWarning, match="overflow encountered in scalar power"):
        compiled(np.full(9, 1e300), 0, 0)
