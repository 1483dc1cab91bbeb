"""Reductions of many rows, some rows at a time: every reduction, layout and number of rows."""

import numpy as np
import pytest

from tcompile.backends.llvm import compile_graph
from tcompile.backends.llvm.kernels import codegen
from tcompile.graph import Graph, TensorType
from tcompile.graph.ops import apply
from tests.backends.llvm_cases import DTYPES, check, same, sample
from tests.backends.test_llvm_layouts import VIEWS


@pytest.fixture
def blocks(monkeypatch):
    """The kernels that are walked some rows at a time."""
    seen = []
    write = codegen.BatchedRowsNest.rows
    monkeypatch.setattr(codegen.BatchedRowsNest, "rows", lambda self: seen.append(self.kernel) or write(self))
    return seen


@pytest.mark.parametrize("shape", [(64, 19), (65, 17), (79, 64), (200, 100), (80, 333)])
@pytest.mark.parametrize("dtype", DTYPES)
def test_every_reduction(dtype, shape, blocks):
    a = sample(dtype, shape)
    names = ["max", "min", "any", "all"] + ([] if dtype == "bool" else ["sum"])

    def build(op, x):
        given = [op("not_equal", x, 0) if name in ("any", "all") and dtype != "bool" else x for name in names]
        return [op(name, y, axis=(1,), keepdims=False) for name, y in zip(names, given, strict=True)]

    check(build, a, ulp=8, rtol=1e-5)
    assert blocks


@pytest.mark.parametrize("view", VIEWS)
def test_layouts_and_what_follows_the_sum(view):
    for dtype in ("float32", "float64"):
        a = VIEWS[view](sample(dtype, (75, 40)))
        w = sample(dtype, (75, 1))

        def build(op, x, w):
            total = op("sum", op("multiply", op("add", x, w), x), axis=(1,), keepdims=True)
            return [op("sqrt", op("abs", op("subtract", total, w))), op("exp", op("multiply", total, 0.01))]

        check(build, a, w, ulp=8, rtol=1e-5)


@pytest.mark.parametrize("axis", [(1,), (2,), (1, 2), (0, 2)])
def test_more_axes(axis):
    a = sample("float32", (70, 12, 33))
    check(lambda op, x: op("sum", op("square", x), axis=axis, keepdims=False), a, ulp=8, rtol=1e-5)
    check(lambda op, x: op("max", x, axis=axis, keepdims=True), a.transpose(1, 0, 2))


def test_distances(blocks):
    def build(op, p):
        d = op("subtract", op("expand_dims", p, axis=1), op("expand_dims", p, axis=0))
        return op("sqrt", op("sum", op("multiply", d, d), axis=(2,), keepdims=False))

    for count in (64, 67):
        check(build, sample("float32", (count, 64)), ulp=4, rtol=1e-6)
    assert blocks


def test_flags_and_special_values(blocks):
    a = sample("float32", (66, 20))
    a[65, 19], a[3, 4], a[7] = np.inf, np.nan, -0.0
    check(lambda op, x: op("sum", x, axis=(1,), keepdims=False), a, ulp=8, rtol=1e-6)
    check(lambda op, x: op("max", x, axis=(1,), keepdims=False), a)
    a[9, 3], a[9, 5] = np.inf, -np.inf
    check(lambda op, x: op("sum", x, axis=(1,), keepdims=False), a, ulp=8, rtol=1e-6)
    ones = np.ones((66, 20))
    check(lambda op, x: op("divide", 1.0, op("sum", x, axis=(1,), keepdims=False)), ones)
    ones[65] = 0
    check(lambda op, x: op("divide", 1.0, op("sum", x, axis=(1,), keepdims=False)), ones)
    assert len(blocks) >= 4


def test_sizes_that_are_known_later():
    graph = Graph("symbolic")
    n, m = graph.env.symbol(100, 2), graph.env.symbol(50, 2)
    x = graph.input("x", TensorType(np.dtype("float32"), (n, m)))
    graph.outputs = [apply(graph, "sqrt", apply(graph, "sum", apply(graph, "square", x), axis=(1,), keepdims=False))]
    graph.env.frozen = True
    compiled = compile_graph(graph)
    for shape in ((100, 50), (2, 2), (3, 17), (700, 90), (17, 16)):
        a = sample("float32", shape, 1)
        same(compiled(a)[0], graph(a)[0], ulp=8, rtol=1e-5)
