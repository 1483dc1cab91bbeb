import itertools

import numpy as np
import pytest

from tcompile.backends.llvm import compile_graph
from tcompile.backends.replay import Replay
from tests.backends.llvm_cases import DTYPES, FLOATS, INTEGERS, check, graph_of, sample

ANY = ["add", "multiply", "maximum", "minimum", "fmax", "fmin", "equal", "not_equal", "less", "less_equal", "greater",
       "greater_equal", "logical_and", "logical_or", "logical_xor"]  # fmt: skip
UNARY = ["negative", "positive", "square", "abs", "sign", "floor", "ceil", "trunc", "round"]
SPECIAL = [0.0, -0.0, 1.0, -1.0, 0.5, -2.5, 1.5, 2.5, np.nan, np.inf, -np.inf, 1e-30, 3.7e8, -1e-42]


def specials(dtype):
    values = np.array(list(itertools.product(SPECIAL, SPECIAL)), dtype)
    return np.ascontiguousarray(values[:, 0]), np.ascontiguousarray(values[:, 1])


@pytest.mark.parametrize("dtype", DTYPES)
def test_binary(dtype):
    a, b = sample(dtype, (5, 37), 1), sample(dtype, (5, 37), 2)
    names = [*ANY, *([] if dtype == "bool" else ["subtract"])]
    check(lambda op, x, y: [op(name, x, y) for name in names], a, b)


@pytest.mark.parametrize("dtype", DTYPES[1:])
def test_unary(dtype):
    a = sample(dtype, (5, 37))
    check(lambda op, x: [op(name, x) for name in [*UNARY[:-1], "logical_not"]], a)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", [*ANY, "subtract", "divide", "copysign", "heaviside", "floor_divide", "remainder",
                                  "fmod"])  # fmt: skip
def test_special_values_binary(dtype, name):
    a, b = specials(dtype)
    if name in ("fmax", "fmin", "maximum", "minimum"):  # NumPy's sign of a zero result depends on the position
        a, b = np.where(a == 0, 0, a), np.where(b == 0, 0, b)
    for part in range(0, len(a), 14):  # one row at a time, so that one warning does not hide the others
        check(lambda op, x, y: op(name, x, y), a[part : part + 14].copy(), b[part : part + 14].copy())
    for i in range(len(a)):
        if name in ("floor_divide", "remainder", "fmod", "divide"):
            check(lambda op, x, y: op(name, x, y), a[i : i + 1].copy(), b[i : i + 1].copy())


@pytest.mark.parametrize("dtype", [*DTYPES, "float16", "complex64", "complex128"])
def test_memory_order(dtype):
    a = (np.arange(120) % 3).astype(dtype).reshape(4, 5, 6)
    check(lambda op, x: op("ordered", op("add", x, x), axes=(2, 0, 1)), a, kernels=1)


@pytest.mark.parametrize("dtype", FLOATS)
def test_special_values_unary(dtype):
    a = np.array(SPECIAL, dtype)
    predicates = ["isnan", "isinf", "isfinite", "signbit", "logical_not"]
    check(lambda op, x: [op(name, x) for name in [*UNARY, *predicates]], a)


@pytest.mark.parametrize("dtype", FLOATS)
def test_float_division_on_ordinary_data(dtype):
    a, b = sample(dtype, 1000, 1) * 100, sample(dtype, 1000, 2)
    check(lambda op, x, y: [op(name, x, y) for name in ("floor_divide", "remainder", "fmod", "divide")], a, b)


@pytest.mark.parametrize("dtype", FLOATS)
def test_float_remainders_near_multiples(dtype):
    rng = np.random.default_rng(5)
    b = (rng.normal(size=3000) * 10.0 ** rng.integers(-5, 5, 3000)).astype(dtype)
    for k in (rng.integers(-9, 9, 3000), rng.integers(-(2**21), 2**21, 3000), rng.integers(-(2**40), 2**40, 3000)):
        a = (b * k).astype(dtype)
        for x in (a, np.nextafter(a, np.inf, dtype=dtype), np.nextafter(a, -np.inf, dtype=dtype)):
            check(lambda op, x, y: [op(name, x, y) for name in ("floor_divide", "remainder", "fmod")], x, b)


@pytest.mark.parametrize("dtype", INTEGERS)
@pytest.mark.parametrize("name", ["floor_divide", "remainder", "fmod"])
def test_integer_division(dtype, name):
    a, b = sample(dtype, 200, 1), sample(dtype, 200, 2)
    least = np.iinfo(dtype).min
    b[b == 0] = 3
    check(lambda op, x, y: op(name, x, y), a, b)
    check(lambda op, x: op(name, x, 3), a)
    check(lambda op, x, y: op(name, x, y), a, np.zeros_like(b))
    if least:
        check(lambda op, x, y: op(name, x, y), np.full(33, least, dtype), np.full(33, -1, dtype))


@pytest.mark.parametrize("dtype", INTEGERS)
def test_bits_and_shifts(dtype):
    a, b = sample(dtype, 100, 1), sample(dtype, 100, 2)
    names = ["bitwise_and", "bitwise_or", "bitwise_xor", "bitwise_left_shift", "bitwise_right_shift"]
    counts = np.array([0, 1, 7, 8, 15, 16, 31, 32, 63, 64, 100, *([-1, -3] if dtype[0] == "i" else [])]).astype(dtype)
    check(lambda op, x, y: [op(name, x, y) for name in names] + [op("bitwise_invert", x)], a, b)
    values = np.full(counts.shape, 93, dtype)
    check(lambda op, x, y: [op(name, x, y) for name in names], values, counts)


@pytest.mark.parametrize("dtype", INTEGERS)
def test_integer_power(dtype):
    a, b = sample(dtype, 100, 1), np.abs(sample(dtype, 100, 2)) * 3
    check(lambda op, x, y: op("pow", x, y), a, b)


def test_negative_integer_powers_are_left_to_numpy():
    a = np.arange(1, 9)
    compiled = compile_graph(graph_of(lambda op, x, y: op("pow", x, y), a, a))
    with pytest.raises(Replay):
        compiled(a, -a)


def test_bool_operations():
    a, b = sample("bool", 50, 1), sample("bool", 50, 2)
    names = ["bitwise_and", "bitwise_or", "bitwise_xor"]
    check(lambda op, x, y: [op(n, x, y) for n in names] + [op("bitwise_invert", x), op("logical_not", y)], a, b)
    odd = np.array([0, 1, 2, 255, 3] * 10, "u1").view(bool)  # bytes that are neither 0 nor 1
    check(lambda op, x: op("astype", op("logical_and", x, x), dtype=np.dtype("int32")), odd)


@pytest.mark.parametrize("source", DTYPES)
def test_casts(source):
    a = sample(source, 77)
    check(lambda op, x: [op("astype", x, dtype=np.dtype(target)) for target in DTYPES if _defined(source, target)], a)


def _defined(source, target):
    return not (source in FLOATS and target.startswith("u"))


@pytest.mark.parametrize("source", FLOATS)
@pytest.mark.parametrize("target", INTEGERS)
def test_float_to_integer_at_the_limits(source, target):
    info = np.iinfo(target)
    for value in (float(info.min), float(info.max), info.min - 0.5, info.max + 0.5, np.nan, np.inf, 1e30, -0.9):
        a = np.full(3, value, source)
        check_cast(a, target)


def check_cast(a, target):
    from tests.backends.llvm_cases import graph_of, run_both, same

    graph = graph_of(lambda op, x: op("astype", x, dtype=np.dtype(target)), a)
    got, expected, noisy = run_both(graph, a)
    if noisy:
        assert got is None
    elif got is not None:
        same(got[0], expected[0])
    else:  # only a value that the target cannot hold is left to NumPy
        assert not (np.iinfo(target).min <= float(a[0]) <= np.iinfo(target).max)


@pytest.mark.parametrize("n", range(1, 71))
def test_tails(n):
    a, b = sample("float32", n, 1), sample("float32", n, 2)
    check(lambda op, x, y: op("divide", op("add", x, 1.0), op("add", op("abs", y), 0.5)), a, b)
    check(lambda op, x: op("astype", op("multiply", x, 3), dtype=np.dtype("uint8")), np.arange(n, dtype="uint8"))


def test_no_flag_comes_from_beyond_the_end():
    a = np.arange(1, 20, dtype="float32")
    check(lambda op, x: op("log", x), a, ulp=4)
    check(lambda op, x: op("divide", 1.0, x), a)
    grid = np.arange(1, 58, dtype="float64").reshape(19, 3)
    check(lambda op, x: [op("log", x), op("reciprocal", x)], grid, ulp=4)


def test_scalar_arithmetic_reports_overflow():
    for value, name in ((100, "scalar_add"), (100, "scalar_multiply"), (5, "scalar_add")):
        a = np.array(value, "int8")
        check(lambda op, x: op(name, x, x), a)
    check(lambda op, x: op("scalar_negative", x), np.array(-128, "int8"))
    check(lambda op, x: op("scalar_negative", x), np.array(3, "uint8"))


def test_nan_raises_no_flag():
    a = sample("float32", 100)
    a[::7] = np.nan
    names = ["maximum", "minimum", "less", "greater_equal", "equal", "not_equal", "fmax", "fmin"]
    compiled = check(lambda op, x: [op(n, x, 0.5) for n in names] + [op("sign", x), op("round", x)], a)
    assert len(compiled.kernels) == 1


def test_where_and_numbers():
    a, b = sample("float32", (3, 40), 1), sample("float32", (3, 40), 2)
    check(lambda op, x, y: op("where", op("greater", x, y), x, 0.0), a, b)
    check(lambda op, x, y: op("where", op("greater", x, 0.25), op("multiply", x, y), y), a, b)
    check(lambda op, x: op("where", op("isnan", x), 1, x), np.array([np.nan, 2.0]))


def test_unsupported_operations_are_library_calls():
    z = np.array([1 + 2j, 3.0])
    compiled = check(lambda op, x: op("multiply", op("exp", x), x), z, kernels=1)
    assert "numpy_exp" in compiled.source
    check(lambda op, x: op("add", x, 300), np.array([1, 2], "uint16"))


def test_a_cast_that_discards_imaginary_parts_is_replayed():
    a = np.array([1 + 2j, 3.0])
    compiled = compile_graph(graph_of(lambda op, x: op("astype", x, dtype=np.dtype("float64")), a))
    with pytest.raises(Replay):
        compiled(a)
    check(lambda op, x: op("astype", x, dtype=np.dtype("bool")), a)


def test_creation():
    f32 = np.dtype("float32")
    a = sample("float32", (4, 6))
    check(lambda op, x: [op("add", x, op("full", shape=(4, 6), fill_value=2.5, dtype=f32)),
                         op("full", shape=(3,), fill_value=7, dtype=np.dtype("int64"))], a)  # fmt: skip
    i64 = np.dtype("int64")
    check(lambda op, x: op("multiply", x, op("astype", op("arange", start=0, stop=6, step=1, dtype=i64), dtype=f32)), a)
    check(lambda op: [op("arange", start=3, stop=50, step=4, dtype=i64), op("eye", n_rows=3, n_cols=4, k=1, dtype=f32),
                      op("linspace", start=0.0, stop=1.0, num=7, endpoint=True, dtype=f32)])  # fmt: skip


def test_no_nans_in_floats_of_an_int_less_itself():
    """LLVM finds out late that there are none, and stopped the process."""
    a, b, f64 = sample("float64", (2, 3)), sample("int64", (2, 3)), np.dtype("float64")
    for name in ("fmax", "fmin", "maximum", "minimum"):
        check(lambda op, x, y, name=name: op(name, x, op("astype", op("subtract", y, y), dtype=f64)), a, b)
        check(lambda op, x, y, name=name: op(name, op("astype", op("subtract", y, y), dtype=f64), x), a, b)
