"""Products of matrices in Triton kernels, with what is computed before and after them."""

import numpy as np
import pytest

pytest.importorskip("triton")

import tcompile
from tcompile.backends import triton
from tcompile.backends.replay import Replay
from tcompile.backends.triton import products
from tcompile.backends.triton.configs import RESIDENT, TilingConfig
from tcompile.config import config
from tcompile.graph import Graph, TensorType
from tcompile.graph.ops import apply
from tcompile.graph.sizes import ShapeEnv
from tests.backends.fake_cupy import FakeArray
from tests.backends.llvm_cases import LAYOUTS, graph_of, sample
from tests.backends.triton_cases import check, compile_all, on_interpreter

BOUND = {"float16": 4e-3, "float32": 1e-5, "float64": 1e-13}


def product(op, a, b):
    return op("matmul", a, b)


def layer(op, x, w, b):
    return op("maximum", op("add", op("matmul", x, w), b), 0.0)


def compare(build, *arrays, kernels=1):
    made = check(build, *arrays, rtol=8 * BOUND[arrays[0].dtype.name], kernels=kernels)
    assert [kernel.description.split()[0] for kernel in made.kernels].count("dots") >= 1
    return made


@pytest.mark.parametrize("dtype", BOUND)
@pytest.mark.parametrize("m, k, n", [(5, 6, 7), (70, 50, 90), (64, 64, 64), (128, 32, 65), (200, 5, 3), (3, 200, 5)])
def test_products(dtype, m, k, n):
    compare(product, sample(dtype, (m, k)), sample(dtype, (k, n)))


@pytest.mark.parametrize("one", LAYOUTS)
@pytest.mark.parametrize("other", ["rows", "columns", "turned"])
def test_layouts(one, other):
    compare(product, LAYOUTS[one](sample("float32", (40, 50))), LAYOUTS[other](sample("float32", (50, 33))))


@pytest.mark.parametrize(
    "a, b",
    [
        ((3, 8, 9), (3, 9, 10)),
        ((3, 8, 9), (9, 10)),
        ((8, 9), (3, 9, 10)),
        ((3, 1, 8, 9), (5, 9, 10)),
        ((2, 3, 8, 9), (2, 3, 9, 70)),
        ((1, 8, 9), (3, 9, 10)),
    ],
)
def test_stacks(a, b):
    compare(product, sample("float64", a), sample("float64", b))


@pytest.mark.parametrize("a, b", [((0, 8), (8, 9)), ((8, 0), (0, 9)), ((8, 9), (9, 0)), ((0, 8, 9), (9, 5))])
def test_no_elements(a, b):
    check(product, np.ones(a), np.ones(b))


def test_what_a_factor_is_computed_from_is_computed_in_the_kernel():
    x, w = sample("float32", (40, 50)), sample("float32", (50, 60))

    def build(op, x, w, s):
        return op("matmul", op("where", op("greater", x, 0.0), x, op("multiply", s, 0.5)), op("add", w, 1.0))

    compare(build, x, w, sample("float32", (50,)))


def test_expensive_values_are_computed_once():
    x, w = sample("float32", (90, 70)), sample("float32", (70, 80))
    made = check(lambda op, x, w: op("matmul", op("exp", x), w), x, w, rtol=1e-4, kernels=2)
    assert [kernel.description.split()[0] for kernel in made.kernels] == ["flat", "dots"]


@pytest.mark.parametrize("dtype", BOUND)
def test_what_is_computed_of_a_product(dtype):
    arrays = sample(dtype, (70, 50)), sample(dtype, (50, 90)), sample(dtype, (90,))
    made = compare(layer, *arrays)
    assert "tl.dot" in made.kernels[0].ir and compile_all(made) == 3


def test_the_users_line_stands_where_a_product_is_made():
    with config.patch(triton_interpret=True):
        compiled = tcompile.compile(lambda x, w: x @ w, backend="triton")
        compiled(np.ones((5, 6)), np.ones((6, 7)))
    (kernel,) = on_interpreter(compiled.graphs[0]).kernels
    assert "# test_triton_dots.py:" in kernel.ir.partition("tl.dot")[0]


def test_a_residual_and_columns():
    def build(op, x, w, r, c):
        return op("add", op("multiply", op("matmul", x, w), c), r)

    x, w, r = sample("float32", (40, 50)), sample("float32", (50, 60)), sample("float32", (60, 40)).T
    compare(build, x, w, r, sample("float32", (40, 1)))


def test_several_products_in_one_kernel():
    def resume_point(op, x, w, v):
        return op("multiply", op("matmul", x, w), op("maximum", op("matmul", x, v), 0.0))

    x, w, v = sample("float32", (40, 50)), sample("float32", (50, 60)), sample("float32", (50, 60))
    made = compare(resume_point, x, w, v)
    assert made.kernels[0].ir.count("tl.dot") == 2


def test_products_of_products():
    a, b, c = sample("float64", (40, 50)), sample("float64", (50, 60)), sample("float64", (60, 20))
    compare(lambda op, a, b, c: op("matmul", op("matmul", a, b), c), a, b, c, kernels=2)
    compare(lambda op, a: op("matmul", a, op("permute_dims", a, axes=(1, 0))), a)
    compare(lambda op, a: op("matmul", a, a), sample("float64", (40, 40)))


def test_sums_of_a_product_are_another_kernel():
    def build(op, x, w):
        z = op("matmul", x, w)
        return z, op("sum", z, axis=(1,), keepdims=False), op("max", z, axis=(0,), keepdims=False)

    check(build, sample("float64", (40, 50)), sample("float64", (50, 60)), rtol=1e-12)


def test_sums_over_the_same_space_leave_the_product_to_the_library():
    def build(op, x, w):
        turned = op("permute_dims", w, axes=(1, 0))
        terms = op("multiply", op("expand_dims", x, axis=1), op("expand_dims", turned, axis=0))
        return op("matmul", x, w), op("sum", terms, axis=(2,), keepdims=False)

    check(build, sample("float64", (7, 5)), sample("float64", (5, 6)), rtol=1e-12)


def test_terms_are_never_stored():
    def build(op, x, w):
        for _ in range(70):
            x = op("add", x, 0.25)
        return op("matmul", x, w)

    made = check(build, sample("float64", (7, 5)), sample("float64", (5, 6)), rtol=1e-12)
    assert all(node.tensor.ndim == 2 for kernel in made.kernels for node in kernel.nodes)


def test_elements_at_computed_places_are_factors():
    def build(op, table, rows, w):
        return op("matmul", op("gather", table, rows, axes=(0,)), w)

    table, w = sample("float32", (30, 20)), sample("float32", (20, 40))
    compare(build, table, np.arange(50) % 30 - 10, w)
    far = np.array([0, 99])
    with pytest.raises(Replay):
        on_interpreter(graph_of(build, table, far, w))(table, far, w)


@pytest.mark.parametrize("special", [np.nan, np.inf, 1e308])
def test_what_is_not_finite_is_left_to_numpy(special):
    a, b = np.ones((5, 6)), np.ones((6, 7))
    a[2, 3], b[3] = special, 10.0
    with pytest.raises(Replay):
        on_interpreter(graph_of(product, a, b))(a, b)


def test_what_a_factor_reports():
    check(lambda op, x, w: op("matmul", op("divide", 1.0, x), w), np.zeros((5, 6)), np.ones((6, 7)))


@pytest.mark.parametrize("dtype", ["int64", "uint8", "bool", "complex128"])
def test_other_dtypes_are_the_librarys(dtype):
    a, b = np.ones((5, 6), dtype), np.ones((6, 7), dtype)
    assert not check(product, a, b, rtol=1e-13).kernels


def test_open_sizes():
    env = ShapeEnv()
    graph = Graph("case", env)
    m, k, n = map(env.symbol, (70, 50, 9))
    single = np.dtype("float32")
    x, w = (graph.input(name, TensorType(single, shape)) for name, shape in (("x", (m, k)), ("w", (k, n))))
    graph.outputs = [apply(graph, "multiply", apply(graph, "matmul", x, w), 2.0)]
    made = on_interpreter(graph)
    for sizes in ((70, 50, 9), (3, 100, 200), (65, 1, 64)):
        a, b = sample("float32", sizes[:2]), sample("float32", sizes[1:])
        np.testing.assert_allclose(made(a, b)[0], a @ b * 2, rtol=1e-4, atol=1e-4)
    assert compile_all(made) == 3


@pytest.mark.parametrize("tile", [(16, 16, 16), (32, 64, 32), (128, 256, 32)], ids=str)
def test_every_tile(tile, monkeypatch):
    monkeypatch.setattr(triton, "USUAL", TilingConfig(tile=tile))
    made = compare(layer, sample("float32", (150, 40)), sample("float32", (40, 300)), sample("float32", (300,)))
    assert dict(made.kernels[0].functions[0].blocks) == dict(zip(("TALL", "WIDE", "DEEP"), tile, strict=True))


def test_without_tiles_products_are_the_librarys(monkeypatch):
    monkeypatch.setattr(triton, "USUAL", TilingConfig(tile=None))
    made = check(layer, sample("float32", (15, 40)), sample("float32", (40, 30)), sample("float32", (30,)), rtol=1e-5)
    assert [kernel.description.split()[0] for kernel in made.kernels] == ["flat"]


def test_factors_are_read_without_masks_where_blocks_are_full():
    x, w = sample("float32", (128, 64)), sample("float32", (64, 192))
    assert "mask" not in compare(product, x, w).kernels[0].ir.partition("bits =")[0]


# -- CuPy's arrays -----------------------------------------------------------------------------------------------------


def on_gpu(x):
    return FakeArray(None, host=x)


def dense(x, w, b):
    return np.maximum(x @ w + b, 0) * 2


def made_for(gpu, function, chosen, monkeypatch, *arrays):
    """What ``function`` gives on CuPy's arrays where ``chosen`` is the fastest, and its kernels."""
    gpu()
    seen = []
    monkeypatch.setattr(triton.tuning, "best", lambda *given: chosen)
    make = triton._make
    monkeypatch.setattr(triton, "_make", lambda *given: seen.append(make(*given)) or seen[-1])
    with config.patch(triton_interpret=False):
        got = tcompile.compile(function, mode="max-autotune-no-cudagraphs")(*map(on_gpu, arrays))
    return got.host, seen[-1]


@pytest.mark.parametrize("function", [dense, lambda x, w, b: np.dot(x, w) + b])
@pytest.mark.parametrize("chosen, steps", [(RESIDENT, 2), (TilingConfig(tile=(64, 64, 32)), 1)])
def test_products_of_cupy_are_cublas_or_ours(gpu, monkeypatch, function, chosen, steps):
    arrays = sample("float32", (70, 50)), sample("float32", (50, 90)), sample("float32", (90,))
    got, made = made_for(gpu, function, chosen, monkeypatch, *arrays)
    np.testing.assert_allclose(got, function(*arrays), rtol=1e-4, atol=1e-4)
    assert len(made.schedule.steps) == steps


@pytest.mark.parametrize("tile", [None, (64, 64, 32)])
def test_rows_of_odd_length_are_filled_up(gpu, monkeypatch, tile):
    arrays = sample("float32", (70, 51)), sample("float32", (51, 90)), sample("float32", (90,))
    got, made = made_for(gpu, dense, TilingConfig(tile=tile, padded=True), monkeypatch, *arrays)
    np.testing.assert_allclose(got, dense(*arrays), rtol=1e-4, atol=1e-4)
    assert any(node.tensor.shape in ((70, 52), (52, 92)) for step in made.schedule.steps for node in step.writes)


def test_what_is_tried():
    x, w = sample("float32", (70, 51)), sample("float32", (51, 90))
    graph = graph_of(product, x, w)
    assert not any(map(products.is_ragged, graph.nodes))  # NumPy's
    assert "tile" in triton.tuning._choices(graph, [])
    assert "tile" not in triton.tuning._choices(graph_of(lambda op, x: op("add", x, 1.0), x), [])


def test_options_of_products():
    both = {"max_autotune": True, "epilogue_fusion": False, "shape_padding": True}
    assert tcompile.compile(dense, options=both) is not None
    with pytest.raises(tcompile.errors.InvalidArgument, match="'epilogue_fusion' says what 'max_autotune' may try"):
        tcompile.compile(dense, options={"epilogue_fusion": True})
    with pytest.raises(tcompile.errors.InvalidType, match="option 'shape_padding' must be bool, got int 1"):
        tcompile.compile(dense, options={"shape_padding": 1})


@pytest.mark.parametrize("options, tuned", [
    ({"max_autotune": True}, {"tile", "points"}), ({"max_autotune": True, "epilogue_fusion": False}, {"points"}),
    ({"shape_padding": True}, {"padded"}), ({"triton.cudagraphs": True}, set()),
])  # fmt: skip
def test_options_say_what_is_timed(gpu, monkeypatch, options, tuned):
    gpu()
    seen = []
    monkeypatch.setattr(triton.tuning, "best", lambda graph, inputs, usual, tuned, *rest: seen.append(tuned) or usual)
    tcompile.compile(dense, options=options)(*(on_gpu(np.ones((4, 4))) for _ in range(3)))
    assert {"tile", "points", "padded"} & (seen[0] if seen else set()) == tuned
