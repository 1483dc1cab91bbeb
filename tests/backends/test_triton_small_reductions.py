"""Rows of a few elements, which a thread takes whole: NumPy's values and warnings, in Triton's interpreter."""

import numpy as np
import pytest

pytest.importorskip("triton")

from tcompile.backends import triton
from tcompile.backends.triton.configs import UNROLLED, UNROLLED_STRIDED, TilingConfig
from tcompile.backends.triton.small_reductions import NUMPYS_ORDER
from tcompile.graph import Graph, TensorType
from tcompile.graph.ops import apply
from tests.backends.llvm_cases import DTYPES, LAYOUTS, same, sample
from tests.backends.test_triton import softmax
from tests.backends.triton_cases import check, compile_all, on_interpreter


def totals(op, x, axis=(1,)):
    names = ["sum", "prod", "max", "min"] if x.tensor.dtype != bool else ["any", "all"]
    return [op(name, x, axis=axis, keepdims=False) for name in names]


def distances(op, p, q):
    d = op("subtract", op("expand_dims", p, axis=1), op("expand_dims", q, axis=0))
    return op("sqrt", op("sum", op("multiply", d, d), axis=(2,), keepdims=False))


def is_written_out(made):
    ((function,),) = [kernel.functions for kernel in made.kernels]
    return not any(name == "COLUMNS" for name, _ in function.blocks)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("row", [1, 2, 3, UNROLLED_STRIDED, UNROLLED])
def test_rows_of_every_length(row, dtype):
    for x, axis in ((sample(dtype, (70, row)), 1), (sample(dtype, (row, 70)), 0)):
        made = check(lambda op, x, axis=axis: totals(op, x, (axis,)), x, rtol=1e-5, kernels=1 if row > 1 else None)
        if row > 1:
            assert is_written_out(made) == (axis == 0 or row <= UNROLLED_STRIDED)


@pytest.mark.parametrize("row", [1, 2, 3, NUMPYS_ORDER - 1])
def test_a_few_float32_are_added_up_in_numpys_order(row):
    for x, axis in ((sample("float32", (500, row)), 1), (sample("float32", (row, 500)), 0),
                    (sample("float32", (row, 500)).T, 1), (sample("float32", (20, row, 25)), 1)):  # fmt: skip
        check(lambda op, x, axis=axis: op("sum", op("multiply", x, 1.1), axis=(axis,), keepdims=False), x)


@pytest.mark.parametrize("dtype", ["float16", "complex64", "complex128"])
def test_half_precision_and_complex_numbers(dtype):
    x = sample("float64", (40, 3)).astype(dtype)
    x = (x + 1j * sample("float64", (40, 3), 2)).astype(dtype) if x.dtype.kind == "c" else x
    check(lambda op, x: op("sum", x, axis=(1,), keepdims=False), x, rtol=1e-2 if dtype == "float16" else 1e-6)
    check(lambda op, x: op("subtract", x, op("sum", x, axis=(1,), keepdims=True)), x,
          rtol=1e-2 if dtype == "float16" else 1e-6)  # fmt: skip


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("axis", [0, 1])
def test_several_passes(dtype, axis):
    x = sample(dtype, (50, 5) if axis else (5, 50))
    made = check(softmax(axis), x, ulp=8, rtol=1e-6, kernels=1)
    assert is_written_out(made) and made.kernels[0].ir.count("exp(") == 5  # nothing is computed again
    compile_all(made, (90,))


@pytest.mark.parametrize("shape", [(20, 2, 3), (1, 2, 3), (20, 1, 5), (3, 20, 2)])
def test_several_reduced_axes(shape):
    x, y = sample("float32", shape), sample("float32", (*shape[1:2], 1), 2)
    for axes in ((1, 2), (0, 2), (2,)):
        check(lambda op, x, y, axes=axes: op("sum", op("multiply", x, op("exp", y)), axis=axes, keepdims=False), x, y,
              rtol=1e-5)  # fmt: skip


@pytest.mark.parametrize("bad", [[np.nan], [np.inf], [np.inf, -np.inf], [3e38, 3e38], [np.nan, -np.inf], [-0.0, -0.0]])
def test_what_reductions_meet(bad):
    x = np.ones((9, 3), "f4")
    x[4, : len(bad)] = bad
    x[5] = bad[0]
    names = ("sum", "max", "min", "prod")
    for name in names if len(set(bad)) == 1 else names[:3]:  # an infinity beside a NaN may have met a zero
        for values, axis in ((x, 1), (x.T.copy(), 0), (x[:5], 1)):
            check(lambda op, x, name=name, axis=axis: op(name, x, axis=(axis,), keepdims=False), values, rtol=1e-6)


def test_what_elements_meet():
    for low in (-1.0, 0.0, 1.0):
        check(lambda op, x: op("sum", op("log", x), axis=(1,), keepdims=False), np.array([[low, 2.0, 3.0]] * 5),
              rtol=1e-12)  # fmt: skip


@pytest.mark.parametrize("n", [3, 7])
def test_sums_of_few_float64_are_numpys(n):
    x = np.zeros((40, n))
    x[:, :3] = [[1e16, 1.0, -1e16], [1.0, 1e16, -1e16], [1e-30, 1.0, -1.0], [0.1, 0.2, 0.3]] * 10
    x[10:] += sample("float64", (30, n))
    for values, axis in ((x, 1), (x.T.copy(), 0)):
        made = check(lambda op, x, axis=axis: op("sum", x, axis=(axis,), keepdims=False), values)
        assert is_written_out(made)
        np.testing.assert_array_equal(made(values)[0], values.sum(axis=axis))


def test_sums_of_float64_carry_rounding_errors():
    x = np.zeros((2, 9, 3))
    x[0], x[1, :, 2] = [1e16, 1.0, -1e16], 1e-30
    (got,) = check(lambda op, x: op("sum", x, axis=(0, 2), keepdims=False), x, rtol=1.0)(x)
    np.testing.assert_array_equal(got, 1.0)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_layouts(layout):
    x = LAYOUTS[layout](sample("float32", (30, 4)))
    check(totals, x, rtol=1e-5)
    check(lambda op, x: op("multiply", x, op("max", x, axis=(1,), keepdims=True)), x)


@pytest.mark.parametrize("shapes", [((70, 3), (150, 3)), ((64, 16), (128, 16)), ((3, 3), (200, 3))])
def test_distances_are_computed_in_rectangles(shapes):
    p, q = (sample("float32", shape, n) for n, shape in enumerate(shapes))
    made = check(distances, p, q, ulp=2, rtol=1e-5, kernels=1)
    assert is_written_out(made) and ("TALL" in made.kernels[0].ir) == (shapes[0][0] > 3)
    compile_all(made, (90,))


def test_rectangles_of_more_axes(monkeypatch):
    monkeypatch.setattr(triton, "USUAL", TilingConfig(elements=16, side=2))
    x, y = sample("float64", (3, 9, 1, 2)), sample("float64", (3, 1, 7, 2), 2)
    total = lambda op, x, y: op("sum", op("log", op("multiply", x, y)), axis=(3,), keepdims=False)
    made = check(total, np.abs(x) + 1, np.abs(y) + 1, rtol=1e-12, kernels=1)
    assert "TALL" in made.kernels[0].ir
    compile_all(made, (90,), wide=True)
    check(total, np.abs(x) + 1, np.abs(y) * 0, rtol=1e-12)  # NumPy warns


def test_gathers_and_numbers_that_count():
    x, at = sample("float32", (10, 3)), np.array([[0, 9, -1], [3, -10, 5]])
    made = check(lambda op, x, i: op("sum", op("gather", x, i, axes=(0,)), axis=(1,), keepdims=False), x, at, rtol=1e-5)
    compile_all(made, (90,))

    def counted(op, x):
        return op("max", op("multiply", x, op("arange", start=0, stop=3, step=1, dtype=np.dtype("float32"))), axis=(1,),
                  keepdims=False)  # fmt: skip

    compile_all(check(counted, x), (90,))


def test_sizes_that_vary():
    graph = Graph("symbolic")
    n, m = graph.env.symbol(30, 2), graph.env.symbol(20, 2)
    x = graph.input("x", TensorType(np.dtype("float32"), (n, m, 3)))
    total = apply(graph, "sum", x, axis=(2,), keepdims=True)
    graph.outputs = [apply(graph, "divide", x, total), apply(graph, "max", x, axis=(2,), keepdims=False)]
    graph.env.frozen = True
    compiled = on_interpreter(graph)
    assert is_written_out(compiled)
    for shape in ((30, 20, 3), (2, 900, 3), (3, 3, 3), (0, 5, 3)):
        a = np.abs(sample("float32", shape)) + 1
        for got, want in zip(compiled(a), graph(a), strict=True):
            same(got, want, ulp=8, rtol=1e-5)
    compile_all(compiled, (90,))


@pytest.mark.parametrize("shape", [(0, 3), (3, 0), (1, 3), (3, 1)])
def test_little(shape):
    check(lambda op, x: op("sum", x, axis=(1,), keepdims=False), sample("float32", shape), rtol=1e-6)
