"""Derivatives of control-flow functions and regions, and what the derivative of a long loop stores.

Input: functions of arrays. Output: none; the tests fail where a derivative differs from finite differences, or stores
more than it may. Why: each of these has regions, whose derivatives are regions of their own.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tcompile
from tcompile.graph import Graph, ops
from tcompile.graph.types import TensorType

X = np.random.default_rng(0).random(6)
A = np.random.default_rng(1).random((4, 6))
ONES = np.arange(6.0)


@tcompile.nested_compile_region
def region(v: Any, w: Any) -> Any:
    return np.tanh(v * w) + v[0]


kept = tcompile.checkpoint(lambda v, w: (np.tanh(v * w) * v).sum() * v)


def layers(x: Any) -> Any:
    v = x
    for _ in range(3):
        v = region(v, x * 2)
    return v.sum()


def branch(x: Any) -> Any:
    return tcompile.cond(x.sum() > 1, lambda v: np.sin(v) * 2, lambda v: v**2, (x,)).sum()


def branch_with_more(x: Any) -> Any:
    def true(v: Any, u: Any) -> Any:
        return np.sin(v) * ONES * u, v.sum()

    def false(v: Any, u: Any) -> Any:
        return v**2 * u, u[1] * v[0]

    array, number = tcompile.cond(x[0] > 0.5, true, false, (x, x * 2))
    return (array * x).sum() + number


def scan_of_rows(x: Any) -> Any:
    last, rows = tcompile.scan(lambda c, r: (np.tanh(c + r * x), c * r), x, A * x.sum())
    return (last * x).sum() + (rows**2).sum()


def last_of_scan(x: Any) -> Any:
    return tcompile.scan(lambda c, r: (np.tanh(c + r), c.sum()), x, A)[0].sum()


def rows_of_scan(x: Any) -> Any:
    return (tcompile.scan(lambda c, r: (np.tanh(c + r), c.sum()), x, A, reverse=True)[1] ** 2).sum()


def counted(x: Any) -> Any:
    return tcompile.while_loop(lambda i, v: i < 3, lambda i, v: (i + 1, v * x), (0, x))[1].sum()


def until(x: Any) -> Any:
    return tcompile.while_loop(lambda v: v.sum() < 50, lambda v: (v * 1.5 + np.sin(x),), (x,))[0].sum()


FUNCTIONS = {
    "a region": layers,
    "checkpoint": lambda x: kept(kept(x, x * 2), x).sum(),
    "checkpoint where it is used": lambda x: tcompile.checkpoint(lambda v: np.sin(v) * v)(x).sum(),
    "a branch": branch,
    "the other branch": lambda x: branch(-x),
    "a branch with two results": branch_with_more,
    "its other branch": lambda x: branch_with_more(-x),
    "a map": lambda x: (tcompile.map(lambda r: np.sin(r) * 2, A * x) * A).sum(),
    "a map that reads an array": lambda x: (tcompile.map(lambda r: np.sin(r) @ x, A * x) ** 2).sum(),
    "a scan": scan_of_rows,
    "a scan's end": last_of_scan,
    "a scan's rows": rows_of_scan,
    "an associative scan": lambda x: (tcompile.associative_scan(lambda a, b: a * b, x, 0) * ONES).sum(),
    "a counted while_loop": counted,
    "a while_loop": until,
    "a scan in a batch": lambda x: (
        tcompile.vmap(lambda r: tcompile.scan(lambda c, v: (c * v, c), r[0], r)[0])(A * x).sum()
    ),
    "a scan in a loop": lambda x: sum(scan_of_rows(x * i) for i in range(1, 4)),
}  # fmt: skip


@pytest.mark.parametrize("name", FUNCTIONS)
def test_control(name):
    """The gradient is that of finite differences, and so is the derivative of the gradient."""
    function = FUNCTIONS[name]
    tcompile.check_grads(function, order=2, tolerance=2e-5)(X)
    found = tcompile.grad(function)(X)
    assert np.isclose(tcompile.jvp(function, (X,), (ONES,))[1], found @ ONES, rtol=1e-10)
    with tcompile.set_stance("force_eager"):
        assert np.allclose(tcompile.grad(function)(X), found, rtol=1e-12)
    value, _ = tcompile.value_and_grad(function)(X)
    assert np.allclose(value, function(X), rtol=1e-12)


def test_checkpoint_is_a_region():
    """What a checkpointed function computes is no node of the graph around it."""
    gradient = tcompile.grad(FUNCTIONS["checkpoint"])
    gradient(X)
    (graph,) = [entry.graph for entry in gradient.cache.entries]
    assert not any(node.op is ops.TANH for node in graph.nodes)
    assert sum(node.op is ops.INVOKE for node in graph.nodes) == 4
    with pytest.raises(TypeError, match="checkpoint: fun must be callable, got int"):
        tcompile.checkpoint(3)


def test_while_loop_keeps_its_values():
    """What plain Python refuses has no gradient either."""

    def grown(x: Any) -> Any:
        return tcompile.while_loop(lambda a: a.size < 20, lambda a: (np.concatenate([a, a]),), (x,))[0].sum()

    with pytest.raises(ValueError, match=r"shape"):
        grown(X)
    with pytest.raises(tcompile.errors.DerivativeError, match="other structures, dtypes or shapes"):
        tcompile.grad(grown)(X)


# -- what loops store --------------------------------------------------------------------------------------------------
def sines(x: Any, n: int) -> Any:
    y = x
    for i in range(n):
        y = np.sin(y) * (i + 1) * 0.01 + y * 0.9
    return y.sum()


def writes(x: Any, n: int) -> Any:
    y, z, s = x.copy(), x * 2, np.zeros(())
    for i in range(n):
        y[i % 6] = np.sin(y[(i + 1) % 6]) * z[i % 6]
        s = s + y.sum() * i
    return s + (y * y).sum()


def nested(x: Any, n: int) -> Any:
    total = 0.0
    for i in range(n):
        y = x * i
        for j in range(20):
            y = np.tanh(y + x * j * 0.01)
        total = total + (y**2).sum()
    return total


def heat(x: Any, n: int) -> Any:
    u = x.copy()
    for _ in range(n):
        u[1:-1] = u[1:-1] + 0.1 * (u[2:] - 2 * u[1:-1] + u[:-2]) * np.cos(u[1:-1])
    return (u**2).sum()


def listed(x: Any, n: int) -> Any:
    out, y = [], x
    for _ in range(n):
        y = np.sin(y) + 0.1
        out.append(y.sum())
    return sum(out)


LOOPS = {"sines": sines, "writes": writes, "nested": nested, "heat": heat, "listed": listed}


@pytest.mark.parametrize("name", LOOPS)
def test_little_memory(name):
    """A loop in segments has the derivative of one that stores all its iterations, whatever the memory."""
    function = LOOPS[name]
    for n in (1, 15, 16, 37, 50):
        found = []
        for memory in (1 << 40, 4000, 400, 0):
            with tcompile.config.patch(autodiff_memory=memory):
                tcompile.reset()
                found.append(tcompile.grad(lambda x, n=n: function(x, n))(X))
        assert all(np.allclose(one, found[0], rtol=1e-12, atol=1e-15) for one in found)
    with tcompile.config.patch(autodiff_memory=400):
        tcompile.check_grads(lambda x: function(x, 20), order=2, tolerance=2e-5)(X)


def test_open_trip_counts():
    """Segments of a loop whose trip count is an argument."""
    wanted = [tcompile.grad(sines)(X, n) for n in (40, 50, 60)]
    with tcompile.config.patch(autodiff_memory=100):
        tcompile.reset()
        gradient = tcompile.grad(sines)
        for n, want in zip((40, 50, 60), wanted, strict=True):
            assert np.allclose(gradient(X, n), want, rtol=1e-12)
        for n in (70, 33, 2, 1, 0):
            tcompile.check_grads(lambda x, n=n: sines(x, n))(X)
            with tcompile.set_stance("force_eager"):
                plain = tcompile.grad(sines)(X, n)
            assert np.allclose(gradient(X, n), plain, rtol=1e-12)


def stored(graph: Graph) -> int:
    """The bytes of the largest array in a graph and its regions."""
    sizes = [
        type.size * type.dtype.itemsize
        for node in graph.nodes
        for type in (node.type if isinstance(node.type, tuple) else (node.type,))
        if isinstance(type, TensorType) and isinstance(type.size, int)
    ]
    return max([*sizes, *(stored(inner) for node in graph.nodes for inner in node.regions)])


@pytest.mark.parametrize(("memory", "least", "most"), [(1 << 40, 900, 900), (48 * 200, 100, 200), (0, 28, 31)])
def test_how_much_is_stored(memory, least, most):
    """The stacks are as long as the memory allows, and at least about the square root of the iterations."""
    with tcompile.config.patch(autodiff_memory=memory):
        gradient = tcompile.grad(lambda x: sines(x, 900))
        gradient(X)
    (graph,) = [entry.graph for entry in gradient.cache.entries]
    assert least * 48 <= stored(graph) <= most * 48


def test_a_row_is_stored_and_not_its_array():
    """An iteration that reads one row stores one."""

    def function(x: Any) -> Any:
        y = x.copy()
        for i in range(1, 400):
            y[i] = np.tanh(y[i - 1] * 0.5) + x[i]
        return (y * y).sum()

    gradient = tcompile.grad(function)
    x = np.random.default_rng(0).random((400, 3))
    tcompile.check_grads(function)(x)
    gradient(x)
    (graph,) = [entry.graph for entry in gradient.cache.entries]
    assert stored(graph) == 400 * 3 * 8


def unused(graph: Graph, name: str) -> int:
    """How many nodes of an operation nothing reads, in a graph and its regions."""
    read = {operand for node in graph.nodes for operand in node.inputs}.union(graph.outputs)
    own = sum(node.op.name == name and node not in read for node in graph.nodes)
    return own + sum(unused(inner, name) for node in graph.nodes for inner in node.regions)


def test_masks_are_stored_and_not_what_is_compared():
    def shortest(d):
        for k in range(len(d)):
            d = np.minimum(d, d[:, k, None] + d[None, k, :])
        return np.sum(np.maximum(d, 0.7) ** 2)

    d = np.random.default_rng(0).uniform(0.1, 2.0, (70, 70))
    d[3, 4:6] = d[4, 3] = d[3, 3] + d[3, 4]  # two are equal
    gradient = tcompile.grad(shortest)
    gradient(d)
    assert stored(gradient.graphs[0]) == 70 * 70 * 70
    with tcompile.config.patch(autodiff_memory=100_000):  # in segments
        expected = gradient(d)
        tcompile.reset()
        np.testing.assert_allclose((gradient := tcompile.grad(shortest))(d), expected, rtol=1e-12)
        assert stored(gradient.graphs[0]) < 70 * 70 * 70
        assert not unused(gradient.graphs[0], "less_equal")
    tcompile.check_grads(shortest, order=2)(d + 0.01 * np.cos(np.arange(4900.0).reshape(70, 70)))


def test_a_maximum_of_numbers_that_are_none():
    """A cotangent goes to the number, in halves where neither operand is one."""
    x, y = np.array([np.nan, 1.0, np.nan, 2.0]), np.array([1.0, np.nan, np.nan, 2.0])
    for extremum in (np.fmax, np.fmin):
        gradients = tcompile.grad(lambda x, y, f=extremum: np.sum(f(x, y)), (0, 1))(x, y)
        np.testing.assert_array_equal(gradients, [[0.0, 1.0, 0.5, 0.5], [1.0, 0.0, 0.5, 0.5]])


def test_products_are_stored():
    """A product's result, or what depends on it, is stored; within little memory it is computed again."""

    def function(w: Any) -> Any:
        h = np.ones((8, 6))
        for _ in range(40):
            h = np.tanh(h @ w)
        return h.sum()

    w = np.random.default_rng(0).random((6, 6)) * 0.3
    products = []
    for memory in (1 << 30, 40 * 8 * 6 * 8):
        with tcompile.config.patch(autodiff_memory=memory):
            tcompile.reset()
            gradient = tcompile.grad(function)
            gradient(w)
        tcompile.check_grads(function, order=2)(w)
        (graph,) = [entry.graph for entry in gradient.cache.entries]
        bodies = [node.regions[0] for node in graph.nodes if node.regions]
        products.append([sum(node.op is ops.MATMUL for node in body.nodes) for body in bodies])
    assert products == [[1, 2], [1, 3]]
