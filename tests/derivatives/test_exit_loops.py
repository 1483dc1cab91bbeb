"""Derivatives of loops over arrays that a test may end, and of branches in loops.

Input: programs with ``break``, ``continue``, ``while`` and ``if`` on values, at several arguments. Output: none; the
tests fail where a gradient differs from finite differences or from that of the path, or where the loop is unrolled.
Why: fixed-point iterations, line searches and solvers end when a number is small.
"""

from __future__ import annotations

import numpy as np
import pytest

import tcompile
from tcompile import derivatives
from tcompile.graph import ops
from tcompile.transforms.autodiff import exit_loops


def converges(x, b):
    for _ in range(400):
        y = np.cos(x) * 0.5 + b
        if np.max(np.abs(y - x)) < 1e-9:
            break
        x = y
    return np.sum(x * x)


def leaves_what_it_has_just_computed(x, b):
    while True:
        y = np.sin(x) * 0.5 + b
        d = np.max(np.abs(y - x))
        x = y * 1.0
        if d < 1e-3:
            break
    return np.sum(x * y)


def depends_on_its_number(x, b):
    for k in range(60):
        x = np.sin(x) + b * k * 0.01
        if np.sum(x) > 4.0:
            x = x * k
            break
    return np.sum(x * x)


def passes_over(x, b):
    s = np.zeros_like(x)
    for k in range(30):
        x = np.sin(x) + b
        if np.sum(x) > 2.5:
            x = x * 0.5
            continue
        s = s + x * k
    return np.sum(s * b)


def takes_branches(x, b):
    for k in range(25):
        if np.sum(x) > 2.0:
            x = x * 0.25 * b
        else:
            x = x + b * k
        x = np.tanh(x)
    return np.sum(x * b)


def returns_inside(x, b):
    for k in range(50):
        x = x * 1.1 + b
        if np.sum(x) > 30.0:
            return np.sum(x) * k
    return np.sum(x * x)


def has_two_exits(x, b):
    total = np.zeros_like(x)
    for _ in range(40):
        x = x * 1.05 + 0.1 * b
        if x[0] > 3.0:
            total = total + x
            break
        total = total + np.exp(-x)
        if total[0] > 6.0:
            total = total * x
            break
    return np.sum(total)


def nests(x, b):
    for t in range(6):
        for _ in range(50):
            y = 0.5 * np.cos(x) + b * t
            d = np.max(np.abs(y - x))
            x = y
            if d < 1e-8:
                break
        x = x * 1.1
    return np.sum(x)


def writes_rows(x, b):
    rows = np.zeros((20, x.size))
    for k in range(20):
        rows[k] = x * b
        x = np.sin(x) + 0.3
        if np.sum(x) > 5.5:
            break
    return np.sum(rows * rows)


def multiplies(x, b):
    a = np.outer(b, b) * 0.3 + np.eye(len(b)) * 0.5
    for _ in range(100):
        y = a @ x
        y = y / np.sqrt(np.sum(y * y))
        if np.max(np.abs(y - x)) < 1e-10:
            break
        x = y
    return np.sum(x * b)


PROGRAMS = [
    converges, leaves_what_it_has_just_computed, depends_on_its_number, passes_over, takes_branches, returns_inside,
    has_two_exits, nests, writes_rows, multiplies,
]  # fmt: skip
ARGUMENTS = [
    (np.linspace(0.1, 0.9, 7), np.linspace(0.1, 0.4, 7)),
    (np.linspace(0.3, 0.5, 7), np.linspace(0.35, 0.2, 7)),
    (np.linspace(0.2, 0.1, 7), np.linspace(0.05, 0.12, 7)),
    (np.linspace(3.0, 1.0, 7), np.linspace(0.5, 0.6, 7)),
]


@pytest.mark.parametrize("function", PROGRAMS, ids=lambda f: f.__name__)
def test_gradients(function):
    """In one graph for all arguments, with a loop in it; of first and of second order."""
    gradient = tcompile.grad(function, (0, 1))
    for x, b in ARGUMENTS:
        tcompile.check_grads(function, order=2, tolerance=2e-5)(x, b)
        plain = plainly(function, x, b)
        for one, other in zip(gradient(x, b), plain, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-12)
    assert len(gradient.graphs) == 1
    assert any(node.op is ops.EXIT_LOOP for graph in gradient.graphs for node in nodes(graph))


def nodes(graph):
    for node in graph.nodes:
        yield node
        for region in node.regions:
            yield from nodes(region)


def plainly(function, *args):
    with tcompile.set_stance("force_eager"):
        return tcompile.grad(function, (0, 1))(*args)


@pytest.mark.parametrize("function", PROGRAMS, ids=lambda f: f.__name__)
def test_both_modes(function):
    """The derivative along a direction is the gradient's product with it."""
    x, b = ARGUMENTS[0]
    random = np.random.default_rng(1)
    v, w = random.standard_normal(7), random.standard_normal(7)
    _, along = tcompile.jvp(function, (x, b), (v, w))
    gx, gb = tcompile.grad(function, (0, 1))(x, b)
    np.testing.assert_allclose(along, gx @ v + gb @ w, rtol=1e-9)


def test_the_trip_count_does_not_matter():
    def power(x, n):
        for _ in range(n):
            x = np.sin(x) * 1.5
            if x[0] < 0.0:
                break
        return np.sum(x)

    gradient = tcompile.grad(power)
    for n in (20, 2000):
        gradient(np.linspace(0.5, 1.0, 5), n)
    assert len({graph.op_count for graph in gradient.graphs}) == 1


def test_sizes_are_open():
    gradient = tcompile.grad(converges, (0, 1))
    for n in (3, 4, 5, 6, 7):
        x, b = np.linspace(0.1, 0.9, n), np.linspace(0.1, 0.4, n)
        for one, other in zip(gradient(x, b), plainly(converges, x, b), strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-12)
    assert len(gradient.graphs) <= 2


@pytest.mark.parametrize("dtype", ["float32", "complex128"])
def test_dtypes(dtype):
    x, b = (a.astype(dtype) for a in ARGUMENTS[0])
    if dtype == "complex128":
        x = x + 0.25j

    def f(x, b):
        for _ in range(30):
            y = x * x * 0.3 + b
            if np.abs(y - x).max() < 1e-4:
                break
            x = y
        return x

    value, pulled = tcompile.vjp(f, x, b)
    with tcompile.set_stance("force_eager"):
        _, plain = tcompile.vjp(f, x, b)
        expected = plain(np.ones_like(value))
    for one, other in zip(pulled(np.ones_like(value)), expected, strict=True):
        assert one.dtype == other.dtype == np.dtype(dtype)
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-7)


def count_splits(monkeypatch):
    """A list, which gets an item with each loop that is split into segments."""
    splits = []
    split = exit_loops._of_segments
    monkeypatch.setattr(exit_loops, "_of_segments", lambda *given: (splits.append(given), split(*given))[1])
    return splits


def test_more_iterations_than_there_is_room_for(monkeypatch):
    """The loop is split. A call with fewer iterations afterwards is right, too."""
    monkeypatch.setattr(tcompile.config, "autodiff_memory", 1000)
    splits = count_splits(monkeypatch)

    def f(x, least):
        while np.max(x) > least:
            x = np.sin(x)
        return np.sum(x)

    gradient = tcompile.grad(f)
    x = np.linspace(0.5, 1.5, 5)
    for least in (0.8, 0.2, 0.8):
        h = np.full(5, 1e-6)
        numeric = (f(x + h, least) - f(x - h, least)) / 2e-6
        np.testing.assert_allclose(np.sum(gradient(x, least)), numeric, rtol=1e-6)
    assert splits


def test_examples_of_a_batch():
    xs, b = np.linspace(0.1, 1.2, 12).reshape(4, 3), np.linspace(0.1, 0.3, 3)
    found = tcompile.vmap(tcompile.grad(converges), (0, None))(xs, b)
    np.testing.assert_allclose(found, [tcompile.grad(converges)(x, b) for x in xs], atol=1e-12)


def test_a_print_in_a_branch_of_a_loop(capsys):
    def f(x):
        for i in range(4):
            x = x * 0.5
            if x[0] > 0.2:
                print(i, x[0])
        return np.sum(x)

    np.testing.assert_array_equal(tcompile.grad(f)(np.ones(2)), [0.0625, 0.0625])
    assert capsys.readouterr().out == "0 0.5\n1 0.25\n"


def test_what_a_product_with_the_hessian_needs():
    """It writes rows in place: no iteration goes over a whole stack."""

    def f(b):
        x = np.zeros_like(b)
        for k in range(3000):
            y = np.cos(x) * 0.5 + b + 0.001 * k / (1 + k)
            if np.max(np.abs(y - x)) < 1e-6:
                break
            x = y
        return np.sum(x * x)

    b, v = np.linspace(0.1, 0.9, 6), np.linspace(1.0, -1.0, 6)
    product = tcompile.hvp(f)
    step = 1e-5
    gradient = tcompile.grad(f)
    numeric = (gradient(b + step * v) - gradient(b - step * v)) / (2 * step)
    np.testing.assert_allclose(product(b, v), numeric, rtol=1e-5, atol=1e-6)
    whole = [
        node for graph in product.graphs for node in nodes(graph) if node.op in (ops.SCATTER, ops.COMBINE, ops.ASSIGN)
    ]
    assert whole and not any(
        node.op is ops.ADD and any(n.op is ops.COMBINE for n in node.inputs)
        for graph in product.graphs
        for node in nodes(graph)
    )


def test_elements_numbered_by_the_loop():
    """The row is one that the graph computes: elements are gathered."""

    def f(x, a):
        for k in range(40):
            x = np.sin(x * a[k]) + a[2 * k + 1] * k
            if np.sum(x) > 60.0:
                break
        return np.sum(x * x)

    a = np.linspace(0.3, 0.9, 90)
    for x in (np.linspace(0.0, 1.0, 4), np.linspace(2.0, 3.0, 4)):
        tcompile.check_grads(f, order=2, tolerance=2e-5)(x, a)


def test_a_bound_that_is_never_reached():
    """There is no memory for so many rows, and no need."""

    def f(x, most):
        for _ in range(most):
            y = np.cos(x)
            if np.max(np.abs(y - x)) < 1e-6:
                break
            x = y
        return np.sum(x * x)

    gradient = tcompile.grad(f)
    x = np.linspace(0.1, 0.9, 1000)
    expected = gradient(x, 100)
    for most in (1000, 10**9, 10**12, 1000):
        np.testing.assert_allclose(gradient(x, most), expected, rtol=1e-12)


@pytest.fixture
def little_room(monkeypatch):
    """Room for 16 rows; following a path fails. It gives a list, which gets an item with each split."""

    def refused(*_):
        raise AssertionError("a path is followed")

    monkeypatch.setattr(derivatives, "_by_path", refused)
    monkeypatch.setattr(exit_loops, "_OFTEN", 16)
    monkeypatch.setattr(exit_loops, "_USUAL", 0)
    return count_splits(monkeypatch)


def _settles(x, most):
    for i in range(most):
        x = x + 0.1 * np.cos(x) + 1e-3 * np.sin(i * 1.0)
        if np.min(x) > 1.5:
            break
    return np.sum(x * x) + i


def _several_ends(x, most):
    y = x
    for i in range(most):
        if i % 3 == 0:
            continue
        y = y + 0.01 * np.cos(x * y)
        if y[1] > 2.0:
            break
        if y[0] < -3.0:
            return np.sum(y)
        x = x * 0.999
    return np.sum(y * x) * i


def _nested(x, most):
    for j in range(most):
        for _ in range(40):
            x = x + 0.01 * np.cos(x)
            if x[0] > 0.2 * j:
                break
        if np.sum(x) > 50.0:
            break
        x = x * 0.97
    return np.sum(x * x)


def _sliced(x, most):
    x = x.copy()
    for i in range(most):
        x[i % 4] = np.sin(x[(i + 1) % 4]) * 1.1
        if np.max(np.abs(x)) < 0.01:
            break
    return np.sum(x * x)


def _unbounded(x, most):
    n = 0
    while np.sum(x) < most / 25.0:
        x = x + 0.05 * np.cos(0.2 * x)
        n += 1
    return np.sum(x) * n


@pytest.mark.parametrize("function", [_settles, _several_ends, _nested, _sliced, _unbounded])
def test_segments(little_room, function):
    """The loop is split into segments, of which the derivative recomputes each."""
    x = np.array([0.3, 0.5, -0.2, 0.1])
    gradient = tcompile.grad(function)
    for most in (5, 16, 17, 40, 200):
        tcompile.check_grads(lambda x, most=most: function(x, most), tolerance=2e-5)(x)
        if function is not _nested:  # its second derivative is a long program
            value, tangent = tcompile.jvp(lambda x, most=most: function(x, most), (x,), (np.cos(x),))
            np.testing.assert_allclose(tangent, gradient(x, most) @ np.cos(x), rtol=1e-9)
            np.testing.assert_allclose(value, function(x, most), rtol=1e-12)
    assert little_room


def test_many_iterations():
    """There is room for some 42,000 rows."""

    def f(x, most):
        for _ in range(most):
            x = x + 1e-5 * np.cos(x)
            if np.max(x) > 1e3:
                break
        return np.sum(x)

    x = np.linspace(0.0, 1.0, 50)
    gradient = tcompile.grad(f)
    for most in (1000, 45_000, 50_000):
        expected, y = np.ones(50), x
        for _ in range(most):
            expected = expected * (1 - 1e-5 * np.sin(y))
            y = y + 1e-5 * np.cos(y)
        np.testing.assert_allclose(gradient(x, most), expected, rtol=1e-9)


@pytest.mark.parametrize("ends", [False, True])
def test_warnings_of_loops_in_segments(monkeypatch, ends):
    """The operations of the function itself are not silent, though they are copied."""
    monkeypatch.setattr(tcompile.config, "autodiff_memory", 1000)

    def f(x, most):
        total = 0.0
        for _ in range(most):
            y = np.sqrt(x)
            total = total + np.sum(np.sin(y))
            x = x - 0.01
            if ends and np.sum(x) > 100.0:
                break
        return total

    x = np.array([2.0, 1.0, 3.0])
    with np.errstate(invalid="warn"):
        with pytest.warns(RuntimeWarning, match="invalid value"):
            assert np.isnan(tcompile.value_and_grad(f)(x, 200)[0])
        assert np.isfinite(tcompile.value_and_grad(f)(x, 90)[0])
    found = tcompile.find_nan(f)(x, 200)
    assert found.operation == "sqrt" and not found.backward
