"""Pointwise kernels that read arrays across the grain: every shape, layout and dtype, edges of tiles among them."""

import numpy as np
import pytest

from tcompile.backends.llvm import compile_graph
from tcompile.backends.llvm.kernels import tiles
from tcompile.graph import Graph, TensorType
from tcompile.graph.ops import apply
from tests.backends.llvm_cases import DTYPES, check, same, sample


def forms(compiled):
    return [kernel.form for kernel in compiled.schedule.kernels]


def turned(op, x):
    return op("permute_dims", x, axes=(1, 0))


@pytest.mark.parametrize("shape", [(16, 16), (17, 16), (16, 17), (33, 100), (130, 65), (64, 300), (257, 31)])
@pytest.mark.parametrize("dtype", DTYPES)
def test_a_transposed_array_beside_others(shape, dtype):
    x, y = sample(dtype, shape, 1), sample(dtype, shape[::-1], 2)
    compiled = check(lambda op, x, y: op("add", turned(op, x), y), x, y)
    assert forms(compiled) == ["tiled"]
    check(lambda op, x, y: op("where", op("equal", turned(op, x), y), y, turned(op, x)), x, y)


@pytest.mark.parametrize("dtype", ["float64", "float32", "int8", "bool"])
@pytest.mark.parametrize("skipped", [0, 1, 5])
def test_arrays_that_no_cache_holds(dtype, skipped, monkeypatch):
    """Higher strips, which begin where cache lines do, and rows that are called for ahead."""
    monkeypatch.setattr(tiles, "NEAR", 0)
    for shape in ((257, 300), (1000, 33), (20, 2000), (520, 9)):
        x, y = sample(dtype, shape, 1)[:, skipped:], sample(dtype, shape[::-1], 2)[skipped:]
        check(lambda op, x, y: op("where", op("equal", turned(op, x), y), y, turned(op, x)), x, y)


def test_many_that_are_read_across():
    def build(op, y, *arrays):
        for x in arrays:
            y = op("add", y, turned(op, x))
        return y

    arrays = [sample("float32", (70, 40), seed) for seed in range(20)]
    assert forms(check(build, sample("float32", (40, 70)), *arrays)) == ["tiled"]


def test_several_of_several_dtypes():
    a, b, c = sample("float32", (70, 40)), sample("int8", (70, 40)), sample("float64", (40, 70))

    def build(op, a, b, c):
        wide = op("astype", turned(op, a), dtype="float64")
        return [op("add", wide, c), op("multiply", op("astype", turned(op, b), dtype="float64"), c)]

    assert "tiled" in forms(check(build, a, b, c))


def test_values_of_rows_and_columns_beside_it():
    x, y = sample("float32", (50, 35)), sample("float32", (35, 50))
    row, column = sample("float32", (1, 50)), sample("float32", (35, 1))

    def build(op, x, y, row, column):
        return op("add", op("multiply", turned(op, x), row), op("subtract", y, column))

    assert forms(check(build, x, y, row, column)) == ["tiled"]


@pytest.mark.parametrize("axes", [(0, 2, 1), (2, 0, 1), (2, 1, 0), (1, 2, 0)])
def test_more_axes(axes):
    x = sample("float32", (20, 35, 18))
    y = sample("float32", tuple(x.shape[a] for a in axes))
    check(lambda op, x, y: op("add", op("permute_dims", x, axes=axes), y), x, y)
    reversed_ = (slice(None), slice(None, None, -1), slice(1, None))
    check(lambda op, x: op("negative", op("index", op("permute_dims", x, axes=axes), key=reversed_)), x)


def test_flags_at_the_edges():
    x, y = np.ones((20, 33)), np.ones((33, 20))
    check(lambda op, x, y: op("divide", y, turned(op, x)), x, y)
    x[19, 32] = 0
    check(lambda op, x, y: op("divide", y, turned(op, x)), x, y)


def test_sizes_that_are_known_later():
    graph = Graph("symbolic")
    n, m = graph.env.symbol(40, 2), graph.env.symbol(50, 2)
    x = graph.input("x", TensorType(np.dtype("float32"), (n, m)))
    y = graph.input("y", TensorType(np.dtype("float32"), (m, n)))
    graph.outputs = [apply(graph, "add", apply(graph, "permute_dims", x, axes=(1, 0)), y)]
    graph.env.frozen = True
    compiled = compile_graph(graph)
    assert forms(compiled) == ["tiled"]
    for shape in ((40, 50), (2, 2), (3, 17), (700, 90), (5, 16)):
        a, b = sample("float32", shape, 1), sample("float32", shape[::-1], 2)
        for got, expected in zip(compiled(a, b), graph(a, b), strict=True):
            same(got, expected)
