"""Rows side by side in memory, and rows whose parts are shared out among programs, pass by pass."""

from unittest import mock

import numpy as np
import pytest

pytest.importorskip("triton")

from differential import Run, assert_same_run

import tcompile
from tcompile.backends import triton
from tcompile.backends.triton import interpreter
from tcompile.backends.triton import rows as rows_module
from tcompile.backends.triton.configs import TilingConfig
from tcompile.graph import Graph, TensorType
from tcompile.graph.ops import apply
from tests.backends.llvm_cases import graph_of, same, sample
from tests.backends.test_triton import softmax
from tests.backends.triton_cases import check, compile_all, on_interpreter

tools = interpreter.Interpreter.tools


@pytest.fixture
def short(monkeypatch):
    """Few elements are many."""
    monkeypatch.setattr(triton, "USUAL", TilingConfig(elements=32, rows=4, chunk=32))
    monkeypatch.setattr(rows_module, "IN_REGISTERS", 16)


def variance(axis):
    def build(op, x):
        n = float(x.tensor.shape[axis])
        apart = op("subtract", x, op("divide", op("sum", x, axis=(axis,), keepdims=True), n))
        return op("divide", op("sum", op("multiply", apart, apart), axis=(axis,), keepdims=False), n)

    return build


def normal(axis):
    """Three passes, and what is stored once a row."""

    def build(op, x):
        n = float(x.tensor.shape[axis])
        mean = op("divide", op("sum", x, axis=(axis,), keepdims=True), n)
        apart = op("subtract", x, mean)
        spread = op("sqrt", op("divide", op("sum", op("multiply", apart, apart), axis=(axis,), keepdims=True), n))
        return op("divide", apart, spread), mean, spread

    return build


def functions(made):
    (kernel,) = made.kernels
    return [function.name for function in kernel.functions]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("axis", [0, 1])
def test_passes_are_functions(short, axis, dtype):
    for build, count, shape in ((variance, 2, (140, 3)), (softmax, 3, (141, 5)), (normal, 3, (130, 1))):
        x = sample(dtype, shape if axis == 0 else shape[::-1])
        made = check(build(axis), x, ulp=8, rtol=1e-5 if dtype == "float32" else 1e-12, kernels=1)
        assert len(functions(made)) == count


def test_what_is_stored_once_a_row(short):
    def texts(build, x):
        (kernel,) = check(build, x, ulp=8, rtol=1e-6).kernels
        return [function.text for function in kernel.functions]

    def with_maximum(op, x):
        return [softmax(0)(op, x), op("max", x, axis=(0,), keepdims=False)]

    for x in (sample("float32", (140, 5)), sample("float32", (140, 1))):
        assert not any("if " in text for text in texts(softmax(0), x))  # nothing is
        assert ["if part == 0" in text for text in texts(with_maximum, x)] == [False, False, True]
        assert ["if is_last(" in text for text in texts(variance(0), x)] == [False, True]


def test_counters_are_zero_again(short):
    x = sample("float64", (140, 9))
    counters = np.zeros(8, np.int32)
    own = {"counters": lambda count: counters}
    with mock.patch.object(interpreter.Interpreter, "tools", lambda self: tools(self) | own):
        made = on_interpreter(graph_of(variance(0), x))
    for _ in range(3):
        np.testing.assert_allclose(made(x)[0], x.var(axis=0))
        assert not counters.any()


@pytest.mark.parametrize("bad", [[np.nan], [np.inf], [np.inf, -np.inf], [3e38, 3e38], [2e38], [-0.0]])
def test_what_passes_meet(short, bad):
    for at in (0, 70):
        x = np.zeros((140, 3), "f4")
        x[at : at + len(bad), 1] = bad
        for build in (variance, normal):
            check(build(0), x, rtol=1e-5)
        check(lambda op, x: [op(m, x, axis=(0,), keepdims=False) for m in ("sum", "max", "min")], x, rtol=1e-5)


def test_dtypes_and_layouts(short):
    for dtype in ("bool", "int8", "int64"):
        names = ("any", "all") if dtype == "bool" else ("sum", "prod", "max", "min")
        check(lambda op, x, names=names: [op(name, x, axis=(0,), keepdims=False) for name in names],
              sample(dtype, (140, 5)))  # fmt: skip
    for layout in (np.asfortranarray, lambda x: np.repeat(x[::-1, ::-1], 2, 1)[:, ::2]):
        check(softmax(0), layout(sample("float32", (140, 5))), ulp=8, rtol=1e-6)
    check(variance(1), sample("float64", (2, 140, 3)), rtol=1e-12)


def test_operands_of_rows_and_gathers(short):
    x, row, at = sample("float32", (140, 5)), sample("float32", 5, 2), np.array([0, 3, -1, 2, 1])

    def build(op, x, row, at):
        scaled = op("multiply", x, op("exp", op("gather", row, at, axes=(0,))))
        return op("divide", scaled, op("add", op("max", scaled, axis=(0,), keepdims=True), 9.0))

    compile_all(check(build, x, row, at, ulp=8, kernels=1), (90,))


def test_sizes_that_vary(short):
    graph = Graph("symbolic")
    n, m = graph.env.symbol(300, 2), graph.env.symbol(4, 2)
    x = graph.input("x", TensorType(np.dtype("float32"), (n, m)))
    mean = apply(graph, "divide", apply(graph, "sum", x, axis=(0,), keepdims=True), n)
    apart = apply(graph, "subtract", x, mean)
    graph.outputs = [apart, apply(graph, "sum", apply(graph, "multiply", apart, apart), axis=(0,), keepdims=False)]
    graph.env.frozen = True
    compiled = on_interpreter(graph)
    assert len(functions(compiled)) == 2
    for shape in ((300, 4), (3, 70), (2000, 2), (5, 0)):
        a = sample("float32", shape)
        for got, want in zip(compiled(a), graph(a), strict=True):
            same(got, want, ulp=8, rtol=1e-4)
    compile_all(compiled, (90,), wide=True)


def test_rows_side_by_side_are_read_together():
    def blocks(shape, build):
        made = on_interpreter(graph_of(build(0), np.broadcast_to(np.float32(0), shape).copy()))
        return [dict(function.blocks) for function in made.kernels[0].functions]

    total = lambda axis: lambda op, x: op("sum", x, axis=(axis,), keepdims=False)
    assert blocks((2000, 30000), total) == [{"ROWS": 32, "COLUMNS": 128}]
    assert blocks((500, 20), softmax) == [{"ROWS": 16, "COLUMNS": 512}]  # read once
    for one in blocks((2048, 1024), variance)[:2]:
        assert (one["ROWS"], one["COLUMNS"], one["CHUNK"]) == (32, 128, 256)


@pytest.mark.parametrize("row", [20, 100, 700])
def test_rows_side_by_side(row):
    for build in (variance, softmax):
        check(build(0), sample("float32", (row, 70)), ulp=8, rtol=1e-5, kernels=1)
    check(lambda op, x: op("sum", x, axis=(0,), keepdims=False), sample("float64", (row, 70)), rtol=1e-13)


def test_products_that_leave_the_range_and_come_back_are_numpys():
    x = np.ones(20_000, "f4")
    x[[0, 4096]], x[[1, 5]] = 1e-30, 1e30
    check(lambda op, x: op("prod", x, axis=(0,), keepdims=False), x)
    check(lambda op, x: op("prod", x, axis=(1,), keepdims=False), np.array([[1e-20, 1e20, 1e-20, 1]] * 9, "f4"))


def test_rows_that_may_have_no_elements(short):
    def centred(x):
        mean = x[2:].sum(axis=0) / (len(x) - 2)
        return x[2:] - mean, (x[2:] * mean).sum(axis=0), x[2:].cumsum(axis=0)

    with tcompile.config.patch(triton_interpret=True):
        compiled = tcompile.compile(centred, backend="triton", dynamic=True, fullgraph=True)
        for n in (300, 3, 2, 150):  # NumPy warns of two
            x = sample("float64", (n, 5))
            assert_same_run(Run(compiled, [x]), Run(centred, [x]), ulp=1 << 12)
        assert len(compiled.graphs) == 1
