"""Kernels of the triton backend against NumPy, in Triton's interpreter."""

import itertools

import numpy as np
import pytest

pytest.importorskip("triton")

from differential import check as check_function

import tcompile
from tcompile.backends.replay import Replay
from tcompile.graph import Graph, ScalarType, TensorType
from tcompile.graph.ops import apply
from tests.backends.llvm_cases import DTYPES, FLOATS, INTEGERS, graph_of, same, sample
from tests.backends.triton_cases import check, on_interpreter

F32, F64 = np.dtype("float32"), np.dtype("float64")
ANY = ["add", "multiply", "maximum", "minimum", "fmax", "fmin", "equal", "not_equal", "less", "less_equal", "greater",
       "greater_equal", "logical_and", "logical_or", "logical_xor"]  # fmt: skip
FUNCTIONS = ["exp", "exp2", "expm1", "sin", "cos", "tan", "atan", "sinh", "cosh", "tanh", "asinh", "cbrt"]
SPECIAL = [0.0, -0.0, 1.0, -1.0, 0.5, -2.5, np.nan, np.inf, -np.inf, 1e-30, 3.7e8, -1e-42]


@pytest.mark.parametrize("dtype", DTYPES)
def test_operations_on_two_operands(dtype):
    a, b = sample(dtype, (5, 37), 1), sample(dtype, (5, 37), 2)
    names = [*ANY, *([] if dtype == "bool" else ["subtract"]), *([] if dtype in FLOATS else ["bitwise_xor"])]
    check(lambda op, x, y: [op(name, x, y) for name in names], a, b, kernels=1)


@pytest.mark.parametrize("dtype", DTYPES[1:])
def test_operations_on_one_operand(dtype):
    names = ["negative", "positive", "square", "abs", "sign", "floor", "ceil", "trunc", "logical_not"]
    names += ["round", "isnan", "isinf", "isfinite", "signbit"] if dtype in FLOATS else []
    check(lambda op, x: [op(name, x) for name in names], sample(dtype, (5, 37)))


@pytest.mark.parametrize("dtype", INTEGERS)
def test_integers_divide_shift_and_wrap_as_numpys(dtype):
    info = np.iinfo(dtype)
    edge = np.array([info.min, info.max, 0, 1, 3, 7, info.max - 1, info.min + 1], dtype)
    a, b = (np.array(x, dtype) for x in zip(*itertools.product(edge, edge), strict=True))
    check(lambda op, x, y: [op(n, x, y) for n in ("add", "subtract", "multiply", "bitwise_left_shift")], a, b)
    divisor = np.where((b == 0) | (b == dtype_of(dtype)(-1 if info.min else 1)), dtype_of(dtype)(2), b)
    for name in ("floor_divide", "remainder", "fmod"):
        check(lambda op, x, y: op(name, x, y), a, divisor)
        check(lambda op, x, y: op(name, x, y), a, b)  # by zero: NumPy warns
    check(lambda op, x, y: op("pow", x, y), a, np.abs(sample(dtype, a.shape)))


def dtype_of(name):
    return np.dtype(name).type


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", ["add", "multiply", "divide", "remainder", "floor_divide", "pow", "maximum", "less",
                                  "heaviside"])  # fmt: skip
def test_special_values_and_their_warnings(dtype, name):
    pairs = np.array(list(itertools.product(SPECIAL, SPECIAL)), dtype)
    if name == "maximum":  # NumPy's sign of a zero result depends on the position
        pairs[pairs == 0] = 0
    if name == "pow":  # infinite operands are left to NumPy
        pairs = pairs[~np.isinf(pairs).any(axis=1)]
    ulp = 4 if name == "pow" else 0
    for first in range(0, len(pairs), 6):  # a few at a time, so that one warning does not hide the others
        a, b = (np.ascontiguousarray(pairs[first : first + 6, side]) for side in (0, 1))
        check(lambda op, x, y: op(name, x, y), a, b, ulp=ulp)


@pytest.mark.parametrize("dtype", FLOATS)
def test_functions_and_their_warnings(dtype):
    check(lambda op, x: [op(name, x) for name in FUNCTIONS], sample(dtype, 300), ulp=4)
    for name in ("log", "sqrt", "exp", "asin", "atanh", "cosh", "reciprocal"):
        for value in SPECIAL:
            check(lambda op, x: op(name, x), np.array([value], dtype), ulp=4)


@pytest.mark.parametrize("value", SPECIAL)
def test_pythons_root_leaves_errors_to_python(value):
    def root(op, x):
        return op("python_sqrt", x)

    number = np.array([value])
    if value >= 0 or np.isnan(value):
        check(root, number)
        return
    with pytest.raises(Replay), np.errstate(all="ignore"):
        on_interpreter(graph_of(root, number))(number)


@pytest.mark.parametrize("value", SPECIAL)
def test_what_is_an_error_of_pythons_floats_is_left_to_python(value):
    cases = [
        (lambda op, x: op("python_divide", 1.5, x), value == 0), (lambda op, x: op("python_divide", x, 1.5), False),
        (lambda op, x: op("finite", x), not np.isfinite(value)),
    ]  # fmt: skip
    number = np.array([value])
    for case, is_error in cases:
        if not is_error:
            check(case, number)
            continue
        with pytest.raises(Replay), np.errstate(all="ignore"):
            on_interpreter(graph_of(case, number))(number)


@pytest.mark.parametrize("source", [*DTYPES, "float16"])
def test_casts(source):
    a = sample(source, 100)
    targets = [t for t in (*DTYPES, "float16") if not (np.dtype(source).kind == "f" and t.startswith("uint"))]
    check(lambda op, x: [op("astype", x, dtype=np.dtype(t)) for t in targets if t != source], a)
    if source in FLOATS:  # what the integers cannot hold is left to NumPy
        graph_case = lambda op, x: op("astype", x, dtype=np.dtype("int32"))
        check(graph_case, np.array([1.5, -2.5, 2.0**31 - 129], source))
        check(graph_case, np.array([1.5, 2.0**31], source))


@pytest.mark.parametrize("dtype", ["float16", "complex64", "complex128"])
def test_half_precision_and_complex_numbers(dtype):
    a, b = (sample("float64", 200, n).astype(dtype) for n in (1, 2))
    if np.dtype(dtype).kind == "c":
        a, b = a + 1j * sample("float64", 200, 3).astype(a.real.dtype), b - 2j
        a, b = a.astype(dtype), b.astype(dtype)
    import triton

    # NumPy iterations products of complex numbers once; the interpreter of older versions of Triton iterations tl.fma
    # twice.
    rtol = 0.0 if hasattr(triton._C.libtriton.interpreter, "fma_fp64") else 1e-7
    names = ["add", "subtract", "multiply", "divide", "equal"]
    check(lambda op, x, y: [*(op(name, x, y) for name in names), op("negative", x), op("abs", y)], a, b, ulp=4,
          rtol=rtol)  # fmt: skip
    if np.dtype(dtype).kind == "c":
        check(lambda op, x: op("sum", x, axis=(0,), keepdims=False), a, rtol=1e-6)
        check(lambda op, x: [op("real", x), op("imag", x), op("conj", x)], a)


def softmax(axis):
    def build(op, x):
        e = op("exp", op("subtract", x, op("max", x, axis=(axis,), keepdims=True)))
        return op("divide", e, op("sum", e, axis=(axis,), keepdims=True))

    return build


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("shape", [(7, 64), (3, 1), (1, 3), (300, 17), (3, 9000)])
def test_softmax_is_one_kernel(axis, shape):
    check(softmax(axis), sample("float32", shape), ulp=8, rtol=1e-6, kernels=1 if shape[axis] > 1 else None)


@pytest.mark.parametrize(
    ("shape", "dtype"),
    [*((s, d) for s in ((1000,), (40_000,), (4, 15, 20)) for d in ("float32", "float64", "int32", "uint8")),
     ((3, 33_000), "float32"), ((9_000, 3), "float32")],
)  # fmt: skip
def test_reductions_over_any_axes(shape, dtype):
    a = sample(dtype, shape)
    every = [axes for n in range(1, len(shape) + 1) for axes in itertools.combinations(range(len(shape)), n)]
    for axes in every:
        names = ["sum", "max", "min"]
        made = check(lambda op, x: [op(m, x, axis=axes, keepdims=False) for m in names], a, rtol=1e-4)
        assert len(made.kernels) == 1
    check(lambda op, x: op("any", op("greater", x, 2), axis=every[-1], keepdims=False), a)
    check(lambda op, x: op("all", op("less", x, 2), axis=every[-1], keepdims=True), a)


@pytest.mark.parametrize("n", [700, 40_000])
def test_what_reductions_meet(n):
    for bad in ([np.nan], [np.inf], [np.inf, -np.inf], [3e38, 3e38], [np.nan, -np.inf]):
        a = sample("float32", n)
        a[: len(bad)] = bad
        check(lambda op, x: op("sum", x, axis=(0,), keepdims=False), a, rtol=1e-5)
        check(lambda op, x: [op(m, x, axis=(0,), keepdims=False) for m in ("max", "min")], a)
    near_one = lambda op, x: op("add", op("multiply", x, 1e-4), 1.0)
    check(lambda op, x: op("prod", near_one(op, x), axis=(0,), keepdims=False), sample("float64", n), rtol=1e-2)


@pytest.mark.parametrize("shape", [(3, 2), ()])
def test_reductions_over_no_axis(shape):
    build = lambda op, x: [op(name, x, axis=(), keepdims=False) for name in ("sum", "prod", "max")]
    check(build, sample("float64", shape))


def test_sums_of_float64_are_as_exact_as_numpys():
    errors = []
    for seed in range(8):
        rng = np.random.default_rng(seed)
        a = rng.normal(size=60_000) * 10.0 ** rng.integers(-8, 8, 60_000)
        exact = np.sum(a.astype(np.longdouble))
        (got,) = check(lambda op, x: op("sum", x, axis=(0,), keepdims=False), a, rtol=1e-12)(a)
        errors.append((float(got - exact), float(np.sum(a) - exact)))
        assert abs(errors[-1][0]) <= 8 * np.finfo(float).eps * np.abs(a).sum()
    ours, numpys = np.square(errors).mean(axis=0)
    assert ours <= numpys


@pytest.mark.parametrize("layout", [np.asfortranarray, lambda x: x[::-1, ::-1], lambda x: np.repeat(x, 2, 1)[:, ::2],
                                    lambda x: np.broadcast_to(x[:1], x.shape), lambda x: x.T.copy().T])  # fmt: skip
def test_layouts(layout):
    a, b = layout(sample("float32", (40, 30))), sample("float32", (40, 30), 2)
    check(lambda op, x, y: op("add", x, op("multiply", y, 2.0)), a, b)
    check(lambda op, x: op("sum", x, axis=(0,), keepdims=False), a, rtol=1e-5)


def test_transposes_are_read_in_rectangles():
    compiled = check(lambda op, x, y: op("add", op("permute_dims", x, axes=(1, 0)), y),
                     sample("float32", (70, 90)), sample("float32", (90, 70), 2), kernels=1)  # fmt: skip
    assert "TALL" in compiled.kernels[0].ir


def test_gathers_reach_from_both_ends_and_report_what_is_beyond():
    a, at = sample("float32", (10, 4)), np.array([[0, 9, -1], [3, -10, 5]])
    build = lambda op, x, i: op("multiply", op("gather", x, i, axes=(0,)), 2.0)
    check(build, a, at, kernels=1)
    graph = graph_of(build, a, at)
    with pytest.raises(Replay):
        on_interpreter(graph)(a, np.array([[0, 10, -1], [3, -10, 5]]))


def test_sizes_that_vary_and_numbers():
    graph = Graph("symbolic")
    n, m = graph.env.symbol(30, 2), graph.env.symbol(20, 2)
    x = graph.input("x", TensorType(F32, (n, m)))
    k = graph.input("k", ScalarType("float"))
    scaled = apply(graph, "multiply", x, k)
    total = apply(graph, "sum", scaled, axis=(1,), keepdims=True)
    graph.outputs = [apply(graph, "divide", scaled, m), apply(graph, "subtract", scaled, total)]
    graph.env.frozen = True
    compiled = on_interpreter(graph)
    for shape in ((30, 20), (2, 3000), (3, 3), (0, 5)):
        a = sample("float32", shape)
        for got, want in zip(compiled(a, 0.1), graph(a, 0.1), strict=True):
            same(got, want, ulp=8, rtol=1e-5)


def test_numbers_that_overflow():
    graph = Graph("numbers")
    x, k = graph.input("x", TensorType(F32, (40, 3))), graph.input("k", ScalarType("float"))
    scaled = apply(graph, "multiply", x, k)
    graph.outputs = [scaled, apply(graph, "max", scaled, axis=(1,), keepdims=True)]
    compiled = on_interpreter(graph)
    a = sample("float32", (40, 3))
    for got, want in zip(compiled(a, 1e30), graph(a, 1e30), strict=True):
        same(got, want, rtol=1e-5)
    with pytest.raises(Replay):
        compiled(a * 0, 1e39)


def test_the_source_reads_as_the_users_lines():
    events = []

    def f(x):
        y = np.sqrt(x) + 1.0
        return y * 2.0

    with tcompile.config.patch(triton_interpret=True), tcompile.observe.bus.listening(events.append):
        compiled = tcompile.compile(f, backend="triton")
        np.testing.assert_array_equal(compiled(np.ones(5)), f(np.ones(5)))
    (told,) = [e for e in events if e.kind == "kernel_compiled"]
    text = told.get_ir()
    (kernel,) = on_interpreter(graph_of(lambda op, x: op("add", x, 1.0), np.ones(5))).kernels
    shown = kernel.view()
    assert shown.language == "Triton" and ".visible .entry" in shown.assembly and "tl.load" in shown.body()
    assert "y = np.sqrt(x) + 1.0" in text and "return y * 2.0" in text and "def kernel_0" in text


def heat(u):
    v = u.copy()
    for _ in range(3):
        v[1:-1] = v[1:-1] + 0.1 * (v[2:] - 2 * v[1:-1] + v[:-2])
    return v


def masked(x):
    y = x.copy()
    y[y > 0] = np.sqrt(y[y > 0])
    return y, np.where(x > 0, x, -x).sum(axis=0)


def in_place(x, y):
    x += y
    x[::2] *= 2
    return x.mean(), x.std()


def with_calls(x):
    y = np.sort(x * 2.0, axis=0)
    return np.linalg.norm(y), y @ y.T + 1.0


def warns(x):
    return np.log(x) / x


def raises(x):
    return x[np.array([0, 99])] + 1.0


PROGRAMS = {
    heat: lambda: [np.linspace(0.0, 1.0, 50)],
    masked: lambda: [np.linspace(-1.0, 1.0, 60).reshape(12, 5)],
    in_place: lambda: [np.linspace(0.0, 1.0, 30), np.ones(30)],
    with_calls: lambda: [np.linspace(-1.0, 1.0, 20).reshape(4, 5)],
    warns: lambda: [np.array([0.0, 1.0, -1.0])],
    raises: lambda: [np.arange(5.0)],
}


@pytest.mark.parametrize("function", PROGRAMS)
def test_programs(function):
    check_function(function, PROGRAMS[function], backends=("triton",))
