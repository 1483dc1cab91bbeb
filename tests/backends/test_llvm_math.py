"""Values, special values and flags of the vector functions, against NumPy in extended precision."""

import contextlib
import itertools
import re
from pathlib import Path

import numpy as np
import pytest

import tcompile
from tcompile.backends import llvm
from tcompile.backends.llvm import compile_graph, native
from tcompile.backends.llvm.vector import elementary
from tcompile.backends.llvm.vector.vmath import FUNCTIONS
from tcompile.backends.replay import Replay
from tcompile.graph import Graph, TensorType
from tcompile.graph.ops import apply
from tests.backends.llvm_cases import FLOATS, check, graph_of, run_both, same

UNARY = sorted(name for name, f in FUNCTIONS.items() if f.arity == 1)
NUMPY = {"asin": "arcsin", "acos": "arccos", "atan": "arctan", "asinh": "arcsinh", "acosh": "arccosh",
         "atanh": "arctanh", "atan2": "arctan2", "pow": "power"}  # fmt: skip
# Where each function is ordinary: no flag may be raised there.
DOMAIN = {"log": (1e-3, 1e3), "log2": (1e-3, 1e3), "log10": (1e-3, 1e3), "log1p": (-0.99, 100), "asin": (-1, 1),
          "acos": (-1, 1), "acosh": (1, 1e4), "atanh": (-0.99, 0.99), "exp": (-80, 80), "exp2": (-100, 100),
          "expm1": (-20, 80), "sinh": (-80, 80), "cosh": (-80, 80)}  # fmt: skip
SPECIAL = [0.0, -0.0, 1.0, -1.0, 0.5, 2.0, -2.0, np.nan, np.inf, -np.inf, 1e-30, -1e-30, 1e30, -1e30, 100.0, -100.0,
           800.0, -800.0, 1e5, 3.5e38]  # fmt: skip
ULP = 4.0
FEATURES = np._core._multiarray_umath.__cpu_features__
# On x86 without AVX-512, NumPy's loop for one exponent of all elements has signs of its own for 1, 3 and -1.
OWN_SIGNS = (1, 3, -1) if FEATURES.get("AVX2") and not FEATURES.get("AVX512_SKX") else ()


@pytest.fixture(autouse=True)
def kernels(monkeypatch):
    """Everything that kernels can compute is computed by them."""
    monkeypatch.setattr(llvm, "left_to_numpy", lambda graph, supports: set())


def one(name, dtype, n, arity=1):
    graph = Graph(name)
    inputs = [graph.input(f"x{i}", TensorType(np.dtype(dtype), (n,))) for i in range(arity)]
    graph.outputs = [apply(graph, name, *inputs)]
    return graph


def reference(name, *operands):
    with np.errstate(all="ignore"):
        return getattr(np, NUMPY.get(name, name))(*(o.astype(np.longdouble) for o in operands))


def assert_within(got, exact, ulp):
    with np.errstate(all="ignore"):
        unit = np.spacing(np.abs(exact).astype(got.dtype))
        error = np.abs(got - exact) / unit
    worst = np.nanmax(error)
    assert worst <= ulp, (worst, got[np.nanargmax(error)], exact[np.nanargmax(error)])


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", UNARY)
def test_error_and_no_flags_on_ordinary_data(name, dtype):
    low, high = DOMAIN.get(name, (-30, 30))
    rng = np.random.default_rng(3)
    x = np.concatenate([np.linspace(low, high, 20011), rng.uniform(low, high, 20000), rng.normal(size=5000) * 0.01])
    x = x[(x >= low) & (x <= high)].astype(dtype)
    x = x[(x >= low) & (x <= high)]
    (got,) = compile_graph(one(name, dtype, len(x)))(x)  # raises Replay on any flag
    assert_within(got, reference(name, x), ULP)


def whole_range(dtype, n=15_000, seed=0):
    """Finite numbers of every size, denormals among them, small ones, and neighbourhoods of zeros and poles."""
    rng = np.random.default_rng(seed)
    bits = f"uint{np.dtype(dtype).itemsize * 8}"
    anything = rng.integers(0, np.iinfo(bits).max, n, dtype=bits).view(dtype)
    usual = rng.normal(size=n) * 10 ** rng.uniform(-3, 3, n)
    near = [np.arange(-999, 999) * 0.5, np.arange(-999, 999) * np.pi / 4, 1 + np.arange(-50, 50) * np.finfo(dtype).eps]
    with np.errstate(all="ignore"):
        parts = [anything[np.isfinite(anything)], usual, rng.uniform(-1, 1, n), *near]
        return np.concatenate([part.astype(dtype) for part in parts])


def assert_close_everywhere(got, exact, ulp):
    """Within ``ulp`` where finite; infinities, NaNs and the signs of zeros exactly."""
    with np.errstate(all="ignore"):
        want = exact.astype(got.dtype)
        finite = np.isfinite(want) & np.isfinite(got)
        np.testing.assert_array_equal(got[~finite], want[~finite])
        zero = (want == 0) & (got == 0)
        np.testing.assert_array_equal(np.signbit(got[zero]), np.signbit(want[zero]))
        error = np.abs(got[finite] - exact[finite]) / np.spacing(np.abs(want[finite])).astype(np.longdouble)
    assert error.max() <= ulp, (error.max(), got[finite][error.argmax()], exact[finite][error.argmax()])


def documented_bounds():
    """The largest error of each function in ULP, as docs/numerics.md states it."""
    page = (Path(__file__).resolve().parents[2] / "docs" / "numerics.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| ([a-z0-9, ()]+?) \| (\d+) ULP \|$", page, re.MULTILINE)
    return {name.split()[0]: float(bound) for names, bound in rows for name in names.split(", ")}


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", UNARY)
def test_the_documented_bound_holds_everywhere(name, dtype):
    x = whole_range(dtype)
    with np.errstate(all="ignore"):
        (got,) = compile_graph(one(name, dtype, len(x)))(x)
    assert_close_everywhere(got, reference(name, x), documented_bounds()[name])


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", ["atan2", "hypot", "pow", "logaddexp"])
def test_the_documented_bound_holds_for_two_operands(name, dtype):
    rng = np.random.default_rng(7)
    x, y = rng.permutation(whole_range(dtype, seed=1)), whole_range(dtype, seed=2)
    n = min(len(x), len(y))
    x, y = x[:n], y[:n]
    if name == "pow":
        x = np.where(np.arange(n) % 4, np.abs(x), x)
        with np.errstate(all="ignore"):
            y = np.where(np.arange(n) % 3, y % 50, np.round(y % 20)).astype(dtype)
    with np.errstate(all="ignore"):
        (got,) = compile_graph(one(name, dtype, n, 2))(x, y)
    exact = reference(name, x, y)
    if name == "logaddexp":  # cancels near zero in NumPy as well
        got, exact = got[np.abs(exact) > 1], exact[np.abs(exact) > 1]
    assert_close_everywhere(got, exact, documented_bounds()[name])


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", elementary.FUNCTIONS)
def test_without_a_vector_library(name, dtype, monkeypatch):
    monkeypatch.setattr(native, "has_symbol", lambda symbol: False)
    if not native.machine().fuses:
        pytest.skip("the processor does not fuse multiplications and additions")
    test_error_and_no_flags_on_ordinary_data(name, dtype)
    test_the_documented_bound_holds_everywhere(name, dtype)
    test_special_values_and_flags(name, dtype)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", ["sin", "cos", "tan"])
def test_neighbours_of_multiples(name, dtype, monkeypatch):
    """Where an argument is next to a multiple of pi / 2, as few bits are left of it as there can be."""
    most = 6000 if dtype == "float32" else 60_000
    near = (np.arange(-most, most) * (np.pi / 2)).astype(dtype)
    x = np.concatenate([near, np.nextafter(near, np.asarray(0, dtype)), np.nextafter(near, np.asarray(1e9, dtype))])
    for has_symbol in (native.has_symbol, lambda symbol: False):
        monkeypatch.setattr(native, "has_symbol", has_symbol)
        with np.errstate(all="ignore"):
            (got,) = compile_graph(one(name, dtype, len(x)))(x)
        assert_close_everywhere(got, reference(name, x), documented_bounds()[name])


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", UNARY)
def test_special_values_and_flags(name, dtype):
    graph = one(name, dtype, 1)
    for value in SPECIAL:
        with np.errstate(all="ignore"):
            x = np.array([value], dtype)
        got, expected, noisy = run_both(graph, x)
        if noisy:
            assert got is None, (name, value)
        elif got is None:
            assert name == "exp" and np.isposinf(x[0])
        else:
            same(got[0], expected[0], ulp=ULP)
        with np.errstate(all="ignore"):
            same(compile_graph(graph)(x)[0], expected[0], ulp=ULP)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", ["atan2", "hypot", "pow", "logaddexp", "nextafter"])
def test_two_operands(name, dtype):
    rng = np.random.default_rng(4)
    x, y = rng.normal(size=20000).astype(dtype) * 3, rng.normal(size=20000).astype(dtype) * 3
    if name == "pow":
        x = np.abs(x) + np.asarray(0.01, dtype)
    (got,) = compile_graph(one(name, dtype, len(x), 2))(x, y)
    if name == "nextafter":
        same(got, np.nextafter(x, y))
    else:
        exact = reference(name, x, y)
        if name == "logaddexp":  # cancels near zero in NumPy as well
            keep = np.abs(exact) > 1
            got, exact = got[keep], exact[keep]
        assert_within(got, exact, ULP)
    graph = one(name, dtype, 1, 2)
    compiled = compile_graph(graph)
    for a, b in itertools.product(SPECIAL, SPECIAL):
        with np.errstate(all="ignore"):
            x, y = np.array([a], dtype), np.array([b], dtype)
        got, expected, noisy = run_both(graph, x, y)
        if noisy:
            assert got is None, (name, a, b)
        elif got is not None:
            same(got[0], expected[0], ulp=ULP)
        with np.errstate(all="ignore"), contextlib.suppress(Replay):
            same(compiled(x, y)[0], expected[0], ulp=ULP)


@pytest.mark.parametrize("dtype", FLOATS)
def test_exp_is_the_same_on_processors_that_scale_and_on_others(dtype, monkeypatch):
    low, high = (-106, 90) if dtype == "float32" else (-750, 711)
    x = np.linspace(low, high, 4099).astype(dtype)
    with np.errstate(all="ignore"):
        (first,) = compile_graph(one("exp", dtype, len(x)))(x)
        monkeypatch.setattr(llvm.native.Machine, "scales_vectors", False)
        (second,) = compile_graph(one("exp", dtype, len(x)))(x)
    np.testing.assert_array_equal(first, second)


def test_powers_of_negative_numbers():
    x = np.linspace(-20, 20, 101)
    for exponent in (3.0, -2.0, 4.0):
        keep = x[x != 0]
        check(lambda op, x: op("pow", x, exponent), keep, ulp=ULP)
    check(lambda op, x: op("pow", x, 0.5), x, ulp=ULP)


@pytest.mark.parametrize("dtype", FLOATS)
def test_small_integer_powers(dtype):
    x = (np.random.default_rng(0).normal(size=20000) * 3).astype(dtype)
    with np.errstate(all="ignore"):
        special = np.array([v for v in SPECIAL if np.isfinite(np.asarray(v, dtype))], dtype)
    for exponent in (2, 3.0, 4, 5.0, 6, 7.0):
        graph = graph_of(lambda op, x: op("pow", x, exponent), x)
        assert_within(compile_graph(graph)(x)[0], x.astype(np.longdouble) ** exponent, ULP)
        for value in special:
            check(lambda op, x: op("pow", x, exponent), np.array([value]), ulp=ULP)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("exponent", [0.5, 1.5, 2.5, -0.5, -1.5, -2])
def test_powers_by_roots_and_inverses(exponent, dtype):
    rng = np.random.default_rng(1)
    info = np.finfo(dtype)
    logarithms = rng.uniform(np.log2(info.tiny), np.log2(info.max), 20000) / 3
    x = np.concatenate([np.exp2(logarithms), rng.uniform(0.5, 2, 5000)]).astype(dtype)
    graph = graph_of(lambda op, x: op("pow", x, exponent), x)
    assert_within(compile_graph(graph)(x)[0], x.astype(np.longdouble) ** exponent, ULP)
    # Results that overflow, underflow and lie among the denormal numbers; zeros, infinities, roots of negative numbers.
    edge = [info.tiny, info.tiny / 64, 4 * info.tiny, info.tiny**0.7, info.max ** (1 / 2.4), info.max**0.5, info.max]
    with np.errstate(all="ignore"):
        special = np.array([*SPECIAL, *edge, *(-e for e in edge)], dtype)
    for value in special:
        if value != -np.inf:  # which is left to NumPy
            check(lambda op, x: op("pow", x, exponent), np.array([value]), ulp=ULP)
        for state in ({"divide": "raise"}, {"over": "raise"}, {"invalid": "raise"}):
            one_value = np.array([value])
            compiled = compile_graph(graph_of(lambda op, x: op("pow", x, exponent), one_value))
            with np.errstate(**{"divide": "ignore", "over": "ignore", "invalid": "ignore", **state}):
                raised = False
                try:
                    np.power(one_value, np.asarray(exponent, dtype))
                except FloatingPointError:
                    raised = True
                with contextlib.suppress(Replay):
                    compiled(one_value)
                    assert not raised, (value, exponent, state)


def test_functions_give_the_same_wherever_the_element_lies():
    x = np.linspace(0.1, 5, 67).astype("float32")
    names = ["exp", "log", "sin", "tanh", "cbrt", "atan"]
    for name in names:
        (whole,) = compile_graph(one(name, "float32", 67))(x)
        for start, stop in ((0, 1), (3, 20), (60, 67)):
            (part,) = compile_graph(one(name, "float32", stop - start))(x[start:stop].copy())
            same(part, whole[start:stop])


def test_without_libmvec_scalar_functions_take_over(monkeypatch):
    from tcompile.backends.llvm import native

    monkeypatch.setattr(native, "has_symbol", lambda name: False)
    x = np.linspace(0.1, 5, 67)
    check(lambda op, x: [op(n, x) for n in ("log", "sin", "tanh", "expm1")], x, ulp=ULP)
    check(lambda op, x: [op(n, x) for n in ("log", "sin")], x.astype("float32"), ulp=ULP)


def test_exp_keeps_its_bound_on_many_arguments():
    x = np.linspace(-87, 88, 400_001).astype("float32")  # 16.292751 is beyond 1 ULP where 1 + r is rounded once
    (got,) = compile_graph(one("exp", "float32", len(x)))(x)
    assert_within(got, np.exp(x.astype(np.float64)), documented_bounds()["exp"] * 0.9)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("n", [1, 3, 40])
@pytest.mark.parametrize("exponent", [1, 3, -1, 7, 2, 0, 0.5, 3.3, -np.inf, np.nan])
def test_powers_of_nans_have_numpys_signs(exponent, n, dtype):
    exponents = np.full(n, exponent, dtype)
    one, *several = (lambda x: np.power(x, exponent), lambda x: np.power(x, exponents), lambda x: x**exponents)
    for power in several if exponent in OWN_SIGNS else (one, *several):
        compiled = tcompile.compile(lambda x, power=power: np.copysign(1, power(x)))
        with np.errstate(all="ignore"):
            for base in (np.nan, -np.nan, -2):
                given = np.full(n, base, dtype)
                assert compiled(given).tolist() == np.copysign(1, power(given)).tolist(), base


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("n", [1, 3, 40])
@pytest.mark.parametrize("name", [
    "arcsin", "arccos", "log", "log2", "log10", "log1p", "sqrt", "arccosh", "arctanh", "sin",
])  # fmt: skip
def test_nans_have_numpys_signs(name, n, dtype):
    """Those of numbers without a value, and those that came in."""
    function = getattr(np, name)
    none = {"arcsin": 2, "arccos": -2, "log1p": -2, "arccosh": 0.5, "arctanh": 2, "sin": np.inf}
    compiled = tcompile.compile(lambda x: np.signbit(function(x)))
    with np.errstate(invalid="ignore"):
        # Where NumPy has vector loops, that of arccos turns the signs of float64 NaNs that come in, others drop them.
        turned = () if name == "arccos" else (np.nan,) if name in ("log", "sin") else (np.nan, -np.nan)
        for x in (none.get(name, -1), *turned):
            given = np.full(n, x, dtype)
            assert compiled(given).tolist() == np.signbit(function(given)).tolist(), x
