"""The option ``exact``: results have NumPy's very bits, function by function and in whole programs."""

import warnings

import numpy as np
import pytest

import tcompile
from tcompile.errors import InvalidArgument, InvalidType

UNARY = [
    "exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "sin", "cos", "tan", "arcsin", "arccos", "arctan", "sinh",
    "cosh", "tanh", "arcsinh", "arccosh", "arctanh", "cbrt", "sqrt", "square", "reciprocal", "absolute", "fabs", "sign",
    "floor", "ceil", "trunc", "rint", "negative", "positive", "degrees", "radians", "deg2rad", "rad2deg", "signbit",
    "isnan", "isinf", "isfinite", "spacing", "sinc", "i0", "nan_to_num", "angle", "logical_not", "conjugate",
]  # fmt: skip
BINARY = [
    "add", "subtract", "multiply", "divide", "floor_divide", "remainder", "fmod", "power", "float_power", "hypot",
    "arctan2", "logaddexp", "logaddexp2", "maximum", "minimum", "fmax", "fmin", "copysign", "nextafter", "heaviside",
    "less", "less_equal", "greater", "greater_equal", "equal", "not_equal", "logical_and", "logical_or", "logical_xor",
    "dot", "inner", "outer", "vdot", "kron", "convolve", "correlate", "cross",
]  # fmt: skip
REDUCTIONS = [
    "sum", "prod", "mean", "var", "std", "max", "min", "ptp", "any", "all", "argmax", "argmin", "cumsum", "cumprod",
    "nansum", "nanprod", "nanmean", "nanvar", "nanstd", "nanmax", "nanmin", "median", "average", "count_nonzero",
    "trapezoid", "diff", "gradient", "sort", "argsort",
]  # fmt: skip
DTYPES = ["float16", "float32", "float64", "complex64", "complex128", "int32", "bool"]
LAYOUTS = {
    "rows": lambda x: x, "columns": np.asfortranarray, "strided": lambda x: np.repeat(x, 2, 1)[:, ::2],
    "turned": lambda x: x[::-1, ::-1],
}  # fmt: skip


def data(dtype, shape=(37, 53), seed=0):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=shape) * 3
    if np.dtype(dtype).kind == "c":
        x = x + 1j * rng.normal(size=shape)
    if np.dtype(dtype).kind == "b":
        return x > 0
    x = x.astype(dtype)
    x.flat[::71] = 0
    return x


def same_bits(function, *args):
    """Compares plain and compiled results, bit for bit."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            want = function(*args)
        except Exception as error:
            with pytest.raises(type(error)):
                tcompile.compile(function, options={"exact": True})(*args)
            return None
        compiled = tcompile.compile(function, options={"exact": True})
        for _ in range(2):
            assert_same_bits(compiled(*args), want)
    return compiled


def assert_same_bits(got, want):
    if isinstance(want, tuple | list):
        assert type(got) is type(want) and len(got) == len(want)
        for a, b in zip(got, want, strict=True):
            assert_same_bits(a, b)
        return
    assert type(got) is type(want)
    got, want = np.asarray(got), np.asarray(want)
    assert got.dtype == want.dtype and got.shape == want.shape
    numbers = ~np.isnan(want) if want.dtype.kind in "fc" else np.ones(want.shape, bool)
    np.testing.assert_array_equal(got, want)
    assert np.ascontiguousarray(got[numbers]).tobytes() == np.ascontiguousarray(want[numbers]).tobytes()


@pytest.fixture(autouse=True)
def fresh():
    tcompile.reset()
    yield
    tcompile.reset()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", UNARY)
def test_elementwise_functions(name, dtype):
    f = getattr(np, name)
    layout = list(LAYOUTS)[(UNARY.index(name) + DTYPES.index(dtype)) % len(LAYOUTS)]
    same_bits(lambda x: f(x + x), LAYOUTS[layout](data(dtype)))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", BINARY)
def test_functions_of_two_arrays(name, dtype):
    f = getattr(np, name)
    a, b = data(dtype, seed=1), data(dtype, seed=2)
    if name in ("dot", "inner", "cross", "convolve", "correlate", "kron", "vdot"):
        a, b = a[:3, 0], b[:3, 0]
    same_bits(lambda x, y: f(-x, y) if x.dtype.kind != "b" else f(~x, y), a.T, b.T)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", REDUCTIONS)
def test_reductions(name, dtype):
    f = getattr(np, name)
    layout = list(LAYOUTS)[(REDUCTIONS.index(name) + DTYPES.index(dtype)) % len(LAYOUTS)]
    x = LAYOUTS[layout](data(dtype, (130, 257)))
    same_bits(lambda x: [f(x), f(x, axis=0), f(x, axis=1)] if name != "gradient" else [f(x, axis=1)], x)


@pytest.mark.parametrize("name", ["sum", "prod", "mean", "max", "min", "any", "all", "var", "std"])
def test_reductions_with_where_and_initial(name):
    x = data("float64", (40, 300), 3)
    f = getattr(np, name)
    more = {"initial": -np.inf if name == "max" else np.inf} if name in ("max", "min") else {}
    same_bits(lambda x: f(x, axis=1, where=x > 0, **more), x)
    same_bits(lambda x: f(x, where=x > 0, **more), x)


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex128", "float16"])
@pytest.mark.recompile_limit(20)
def test_powers(dtype):
    x = np.abs(data(dtype)) + np.asarray(0.5, dtype)
    for exponent in (2, 3, 4, 0.5, -1, 1.5, 2.0, 6, 0):
        same_bits(lambda x: x**exponent, x)


@pytest.mark.parametrize("other", ["complex64", "complex128"])
@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
@pytest.mark.recompile_limit(20)
def test_products_of_one_complex_number(dtype, other):
    """NumPy fuses multiplication and addition there or does not, by the numbers of axes and the types."""

    def products(x, y):
        return x * y, x[None] * y, x * y[..., None], np.multiply.outer(x, y)

    compiled = tcompile.compile(products)
    for seed in range(8):  # half of them have the same bits, fused or not
        x, y = (data(kind, (2,), s)[1:] for kind, s in ((dtype, seed), (other, seed + 100)))
        for right in (y, y[None], y.reshape(())):
            same_bits(products, x, right)
            assert_same_bits(compiled(x, right), products(x, right))
        same_bits(lambda x, y: (x[::-1] * y, np.square(x[0])), x, y)


def softmax(x):
    e = np.exp(x - x.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


def layer_norm(x):
    return (x - x.mean(axis=1, keepdims=True)) / np.sqrt(x.var(axis=1, keepdims=True) + 1e-5)


def physics(x):
    r = np.sqrt(x[:, None, :3] ** 2 + x[None, :, :3] ** 2).sum(axis=2)
    return np.where(r > 1, np.sin(r) / (r + 0.5), np.cos(r) ** 3).mean()


def distances(x):
    return np.maximum(((x[:, None, :8] - x[None, :, :8]) ** 2).sum(-1), 0).argmin(axis=1), np.hypot(x, 2 * x)


def masked(x):
    return x[x > 0].sum(), np.clip(x, -0.5, 0.5).std(axis=0), np.nanmean(np.where(x > 0, x, np.nan), axis=0)


def algebra(x):
    return x @ x.T, np.einsum("ij,ij->i", x, x), np.linalg.norm(x, axis=1), np.tensordot(x, x, 2), np.trace(x)


def image(x):
    return (np.pad(x, 1)[2:, 1:-1] - np.roll(x, 1, 0)) * 0.25, np.fft.fft(x).real, np.cumsum(x, axis=1), np.diff(x)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("program", [softmax, layer_norm, physics, distances, masked, algebra, image])
def test_programs(program, dtype):
    compiled = same_bits(program, data(dtype))
    assert compiled.graphs


def test_moments_of_selected_integers():
    x = np.random.default_rng(0).integers(-(1 << 62), 1 << 62, 5000)
    same_bits(lambda x: (x[x > 0].mean(), x[x > 0].sum(), x[x < 0].max(), x.mean(), x.var()), x)


def test_what_is_exact_anyway_still_fuses():
    compiled = same_bits(lambda x: np.where(x > 0, np.sqrt(np.abs(x)) * 2 + 1, x / 3), data("float64"))
    assert sum(len(entry.kernels) for entry in compiled.entries) == 1


def test_the_option_is_listed_and_checked():
    assert "exact" in tcompile.list_options()
    with pytest.raises(InvalidArgument, match="Did you mean 'exact'"):
        tcompile.compile(softmax, options={"exakt": True})
    with pytest.raises(InvalidType):
        tcompile.compile(softmax, options={"exact": 1})
    with pytest.raises(InvalidArgument, match="own backends"):
        tcompile.compile(softmax, backend=lambda graph, inputs: graph, options={"exact": True})


def test_exact_and_other_callables_of_one_function_do_not_share_entries():
    x = data("float64")
    plain, exact = tcompile.compile(softmax), tcompile.compile(softmax, options={"exact": True})
    with np.errstate(all="ignore"):
        plain(x), exact(x)
    assert plain.entries[0].kernels and len(exact.entries[0].kernels) != len(plain.entries[0].kernels)
    with tcompile.set_stance(force_backend="llvm"):
        assert_same_bits(exact(x), softmax(x))


CASTS = {
    "sum": lambda x: x.sum(dtype="f4"), "sum of columns": lambda x: x.sum(0, dtype="f4"),
    "mean": lambda x: x.mean(dtype="f4"), "mean of what it is": lambda x: x.mean(),
    "nansum": lambda x: np.nansum(x, dtype="f4"), "reduce": lambda x: np.add.reduce(x, dtype="f4"),
    "variances": lambda x: x.var(-1), "deviation": lambda x: x.std(),
}  # fmt: skip
SUMMED = {
    "more than NumPy casts at a time": data("float64", (100, 1000)), "columns": data("float64", (300, 400)).T,
    "half precision": data("float16", (100, 1000)), "broadcast": np.broadcast_to(data("float64")[0], (300, 53)),
    "broadcast ints": np.broadcast_to((data("float64") * 100).astype("i4")[0], (40, 53)),
}  # fmt: skip


@pytest.mark.parametrize("what", SUMMED)
@pytest.mark.parametrize("name", CASTS)
def test_sums_that_cast(name, what):
    """NumPy casts a buffer full of elements at a time, and adds each by itself."""
    same_bits(CASTS[name], SUMMED[what])
