"""Complex numbers and half precision in kernels: values, special values and flags are NumPy's."""

import contextlib
import itertools
import warnings

import numpy as np
import pytest

from tcompile.backends.llvm import compile_graph, native
from tcompile.backends.llvm.kernels.pointwise import has_lowering
from tcompile.backends.replay import Replay
from tcompile.backends.schedule.complex_and_half import COMPLEX
from tcompile.graph import Graph, ScalarType, TensorType
from tcompile.graph.ops import OPS, apply
from tests.backends.llvm_cases import DTYPES, check, graph_of, sample

HALF = np.dtype("float16")
COMPLEXES = ["complex64", "complex128"]
PARTS = [0.0, -0.0, 1.0, -2.5, np.inf, -np.inf, np.nan, 3e-200, 1e200]
HALVES = [0.0, -0.0, 1, -1, 0.5, 2.5, -2.5, np.inf, -np.inf, np.nan, 6e-8, -6e-8, 65504, -65504, 300, 1e-4]
NO_ROWS = ("python_sqrt", "python_divide", "finite", "scalar_pow")  # of Python's floats, and of numbers alone
HALF_ROWS = [
    name for name, op in OPS.items()
    if op.kind == "pointwise" and op.arity in (1, 2) and name not in (*NO_ROWS, "astype", "nextafter", "ordered")
    and has_lowering(op, np.dtype("float32"))
]  # fmt: skip
LAYOUTS = {
    "rows": lambda x: x, "columns": np.asfortranarray, "strided": lambda x: np.repeat(x, 2, 1)[:, ::2],
    "turned": lambda x: x[::-1, ::-1], "spread": lambda x: np.broadcast_to(x[:1], x.shape),
}  # fmt: skip


def numbers(dtype, shape, seed=0):
    rng = np.random.default_rng(seed)
    return (rng.normal(size=shape) + 1j * rng.normal(size=shape)).astype(dtype)


def assert_bits(got, want):
    got, want = np.asarray(got), np.asarray(want)
    assert got.dtype == want.dtype and got.shape == want.shape
    if want.dtype.kind == "c":
        assert_bits(got.real, want.real)
        assert_bits(got.imag, want.imag)
        return
    np.testing.assert_array_equal(got, want)
    if want.dtype.kind == "f":
        number = ~np.isnan(want)
        np.testing.assert_array_equal(np.signbit(got[number]), np.signbit(want[number]))


def assert_flags(name, compiled, graph, operands, dtype, needless=()):
    """Replays wherever NumPy warns, and nowhere else but for the named operations."""
    for combination in operands:
        arrays = [np.array([x], dtype) for x in combination]
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            graph(*arrays)
        replayed = False
        try:
            compiled(*arrays)
        except Replay:
            replayed = True
        assert replayed or not caught, (name, combination, str(caught[0].message))
        assert caught or not replayed or name in needless, (name, combination)


@pytest.mark.parametrize("dtype", COMPLEXES)
@pytest.mark.parametrize("name", [op.name for op in COMPLEX if op.name != "ordered"])  # which computes nothing
def test_complex_operations_have_numpys_bits_and_flags(name, dtype):
    rng = np.random.default_rng(0)
    with np.errstate(all="ignore"):
        special = np.array([complex(a, b) for a in PARTS for b in PARTS]).astype(dtype)
    arity = OPS[name].arity
    pairs = list(itertools.product(special, repeat=arity))
    columns = [np.array(column) for column in zip(*pairs, strict=True)]
    columns = [np.concatenate([c, numbers(dtype, 1001, i)]) for i, c in enumerate(columns)]
    graph = graph_of(lambda op, *x: op(name, *x), *columns)
    compiled = compile_graph(graph)
    assert len(compiled.kernels) == 1
    with np.errstate(all="ignore"):
        want, got = graph(*columns)[0], compiled(*columns)[0]
    if name == "abs":  # NumPy itself is exact in one loop, and within 2 ULP in another
        with np.errstate(all="ignore"):
            far = np.abs(got - want) > 4 * np.spacing(np.abs(want))
        assert not far[np.isfinite(want)].any()
        np.testing.assert_array_equal(got[~np.isfinite(want)], want[~np.isfinite(want)])
    else:
        assert_bits(got, want)
    single = graph_of(lambda op, *x: op(name, *x), *[special[:1]] * arity)
    some = [pairs[i] for i in rng.permutation(len(pairs))[:600]]
    assert_flags(name, compile_graph(single), single, some, dtype, needless=("divide",))


@pytest.mark.parametrize("part", ["real", "imag"])
@pytest.mark.parametrize("between", ["none", "conj", "reduction"])
@pytest.mark.parametrize("name", ["add", "multiply", "divide"])
def test_a_part_that_is_not_used_raises_its_flags(name, between, part):
    def build(op, x, y):
        z = op(name, x, y)
        half = op("add", op(part, op("conj", z) if between == "conj" else z), 1.0)
        return [op("sum", half, axis=(0,), keepdims=True) if between == "reduction" else half]

    needless = [name] if between == "reduction" else []
    parts = itertools.product([1.0, 1.5e308, -1.5e308], repeat=4)
    operands = [(complex(a, b), complex(c, d)) for a, b, c, d in parts]
    graph = graph_of(build, *(np.array([number]) for number in operands[0]))
    assert_flags(name, compile_graph(graph), graph, operands, np.complex128, needless=("divide", *needless))


@pytest.mark.parametrize("dtype", COMPLEXES)
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("shape", [(5, 37), (1, 64), (37, 5), (0, 3), (3, 1)])
def test_complex_layouts_and_tails(shape, layout, dtype):
    a, b = LAYOUTS[layout](numbers(dtype, shape, 1)), LAYOUTS[layout](numbers(dtype, shape, 2))

    # NumPy does not fuse the products of complex64 numbers where it walks backwards.
    name = "divide" if (layout, dtype) == ("turned", "complex64") else "multiply"

    def build(op, x, y):
        z = op("add", op(name, x, y), op("conj", x))
        flipped = op("index", y, key=(slice(None), slice(None, None, -1)))
        turned = op("permute_dims", op("negative", x), axes=(1, 0))
        return [z, op("real", z), op("imag", z), op("subtract", flipped, x), turned]

    graph = graph_of(build, a, b)
    for got, want in zip(compile_graph(graph)(a, b), graph(a, b), strict=True):
        assert_bits(got, want)
        assert got.size == 0 or [s for s, n in zip(got.strides, got.shape, strict=True) if n > 1] == [
            s for s, n in zip(want.strides, want.shape, strict=True) if n > 1
        ]


@pytest.mark.parametrize("dtype", COMPLEXES)
def test_complex_numbers_of_other_types(dtype):
    a = numbers(dtype, (4, 30))
    real = sample("float32", (4, 30), 3)
    into = np.dtype(dtype)
    check(lambda op, x: [op("multiply", x, 2.0), op("add", 1 - 2j, x), op("equal", x, 1)], a, kernels=1)
    for source in DTYPES:
        check(lambda op, x: op("astype", x, dtype=into), sample(source, 77), kernels=1)
    for target in [*COMPLEXES, "bool"]:
        check(lambda op, x: op("astype", op("negative", x), dtype=np.dtype(target)), a, kernels=1)
    check(lambda op, x, r: op("where", op("greater", r, 0.0), x, 1j), a, real, kernels=1)
    check(lambda op, x: op("add", op("full", shape=(4, 30), fill_value=2 - 1j, dtype=into), x), a, kernels=1)
    check(lambda op, x, r: op("real", op("astype", r, dtype=into)), a, real, kernels=1)
    check(lambda op, x: op("imag", op("full", shape=(3,), fill_value=2 - 1j, dtype=into)), a)


@pytest.mark.parametrize("dtype", COMPLEXES)
@pytest.mark.parametrize("shape", [(7, 64), (300, 17), (3, 5000), (300, 400)])
def test_complex_sums(shape, dtype):
    a = numbers(dtype, shape) + 2 + 1j  # no cancellation
    for axis in ((0,), (1,), (0, 1)):
        check(lambda op, x: op("sum", op("multiply", x, 2.0), axis=axis, keepdims=True), a, rtol=1e-5, kernels=1)
    check(lambda op, x: op("divide", x, op("sum", x, axis=(1,), keepdims=True)), a, rtol=1e-5, kernels=1)
    check(lambda op, x: op("subtract", x, op("sum", x, axis=(0,), keepdims=True)), a, rtol=1e-4, kernels=1)


def test_powers_of_numbers_are_no_row_for_arrays():
    a, b = np.arange(1.0, 20.0), np.arange(19.0)[::-1] / 4
    graph = graph_of(lambda op, x, y: op("scalar_pow", x, y), a, b)
    np.testing.assert_array_equal(compile_graph(graph)(a, b)[0], a**b)


@pytest.mark.skipif(not native.has_half(), reason="a processor without half precision")
@pytest.mark.parametrize("name", HALF_ROWS)
def test_half_precision_has_numpys_bits_and_flags(name):
    every = np.arange(1 << 16, dtype="uint16").view(HALF)
    if name in ("pow", "logaddexp"):  # infinities and NaNs are left to NumPy
        every = every[np.isfinite(every)]
    rng = np.random.default_rng(0)
    arity = OPS[name].arity
    arrays = [every] if arity == 1 else [rng.permutation(every), rng.permutation(every)]
    graph = graph_of(lambda op, *x: op(name, *x), *arrays)
    compiled = compile_graph(graph)
    assert len(compiled.kernels) == 1
    with np.errstate(all="ignore"):
        want, got = graph(*arrays)[0], compiled(*arrays)[0]
    if want.dtype == HALF:
        number = ~np.isnan(want)
        np.testing.assert_array_equal(np.isnan(got), np.isnan(want))
        steps = np.abs(got[number].view("int16").astype(int) - want[number].view("int16").astype(int))
        assert steps.max() <= 1 and (steps > 0).sum() < 50, steps.max()
        got, want = got[~number], want[~number]
    np.testing.assert_array_equal(got, want)
    halves = np.array(HALVES, HALF)
    single = graph_of(lambda op, *x: op(name, *x), *[halves[:1]] * arity)
    operands = itertools.product(halves, repeat=arity)
    assert_flags(name, compile_graph(single), single, operands, HALF, needless=("exp", "pow", "logaddexp"))


@pytest.mark.skipif(not native.has_half(), reason="a processor without half precision")
def test_half_precision_casts_numbers_and_reductions():
    a, b = sample("float16", (5, 37), 1), sample("float16", (5, 37), 2)
    for source in DTYPES:
        check(lambda op, x: op("astype", x, dtype=HALF), sample(source, 77), kernels=1)
    for target in [*DTYPES, *COMPLEXES]:
        if not target.startswith("u"):
            check(lambda op, x: op("astype", x, dtype=np.dtype(target)), a, kernels=1)
    check(lambda op, x: op("astype", x, dtype=HALF), np.array([1.0, 70000.0], "float32"))
    check(lambda op, x: op("astype", x, dtype=HALF), np.array([1, 70000]))
    check(lambda op, x, y: op("where", op("less", x, y), x, 1.3), a, b, kernels=1)
    check(lambda op, x, y: op("add", op("multiply", x, 0.1), y), a, b, kernels=1)
    check(lambda op, x: [op("max", x, axis=(1,), keepdims=False), op("min", x, axis=(0,), keepdims=True)], a)
    check(lambda op, x: op("subtract", x, op("max", x, axis=(1,), keepdims=True)), a, kernels=1)
    check(lambda op, x: op("sum", x, axis=(1,), keepdims=False), a, kernels=0)
    for layout in LAYOUTS.values():
        check(lambda op, x, y: [op("multiply", x, y), op("permute_dims", op("negative", x), axes=(1, 0))],
              layout(a), layout(b))  # fmt: skip


@pytest.mark.skipif(not native.has_half(), reason="a processor without half precision")
def test_float64_is_rounded_to_half_precision_once():
    halves = np.arange(1 << 15, dtype="uint16").view(HALF)[:0x7C00].astype("float64")
    middles = (halves[1:] + halves[:-1]) / 2
    parts = [halves, middles]
    for x in (middles, np.array([65519.99, 65520.0, 65504.0, 1e300, np.inf, np.nan, 5e-324, 2.0**-25, 2.0**-24])):
        parts += [np.nextafter(x, np.inf), np.nextafter(x, 0), x * (1 + 2.0**-30), x * (1 - 2.0**-30)]
    x = np.concatenate([*parts, *(-part for part in parts)])
    graph = graph_of(lambda op, x: op("astype", x, dtype=HALF), x)
    with np.errstate(all="ignore"):
        assert_bits(compile_graph(graph)(x)[0], x.astype(HALF))
    for value in (65519.99, 65520.0, 1e300, np.inf, np.nan, 1.1):
        check(lambda op, x: op("astype", x, dtype=HALF), np.array([value]), kernels=1)


def test_large_complex_results_go_past_the_cache():
    a = numbers("complex64", (1 << 22) + 3)
    with contextlib.suppress(MemoryError):
        check(lambda op, x: op("add", x, 1.0), a, kernels=1)


@pytest.mark.parametrize("dtype", ["float16", *COMPLEXES])
def test_numbers_known_at_run_time_only(dtype):
    graph = Graph("numbers")
    x = graph.input("x", TensorType(np.dtype(dtype), (30,)))
    t = graph.input("t", ScalarType("float"))
    k = graph.input("k", ScalarType("int", graph.env.symbol(3)))
    n = k.type.symbol
    chosen = apply(graph, "where", apply(graph, "equal", x, n), t, x)
    graph.outputs = [apply(graph, "multiply", x, t), apply(graph, "add", apply(graph, "add", x, n), t), chosen]
    compiled = compile_graph(graph)
    a = np.arange(30).astype(dtype)
    for t, k in ((0.1, 3), (2.5, -7), (float("nan"), 2011), (65519.0, 2), (1 + 2.0**-11 + 2.0**-40, 5)):
        with np.errstate(all="ignore"):
            for got, expected in zip(compiled(a, t, k), graph(a, t, k), strict=True):
                assert_bits(got, expected)
    if dtype == "float16":
        with pytest.raises(Replay):  # NumPy says that the conversion overflows
            compiled(a, 1e6, 3)
