"""Operators and ufuncs: dtypes, kinds, memory orders and values against NumPy."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import tcompile

from .harness import check

DTYPES = ["?", "i1", "u1", "i2", "u4", "i4", "i8", "u8", "f2", "f4", "f8", "c8", "c16"]
SIGNS = ["+", "-", "*", "/", "//", "%", "**", "&", "|", "^", "<<", ">>", "<", "<=", "==", "!=", ">", ">="]
NUMBERS = [0, 1, 2, 3, -1, 300, 2**40, 2**70, 0.5, 2.0, -1.0, 0.0, 1e300, float("nan"), float("inf"), True, False, 2j]


def sample(dtype, shape=(3, 4)):
    size = int(np.prod(shape))
    values = np.resize(np.array([1, 2, 0, 3, 100, 7, 5, 1]), size).reshape(shape)
    array = values.astype(dtype)
    if array.dtype.kind in "if":
        array = np.where(np.arange(size).reshape(shape) % 3 == 1, -array, array)
    return array.astype(dtype)


KINDS = {"array": lambda a: a, "rank0": lambda a: a.reshape(-1)[1:2].reshape(()), "scalar": lambda a: a.reshape(-1)[3]}


@pytest.mark.parametrize("sign", SIGNS)
@pytest.mark.parametrize("kind", KINDS)
def test_operator_with_numbers(sign, kind):
    captured = 0
    for dtype, number in itertools.product(DTYPES, NUMBERS):
        x = KINDS[kind](sample(dtype))
        for text in (f"x {sign} ({number!r})", f"({number!r}) {sign} x"):
            text = text.replace("nan", "float('nan')").replace("inf", "float('inf')")
            captured += check(text, x) is not None
    assert captured > 60


@pytest.mark.parametrize("sign", SIGNS)
def test_operator_between_dtypes(sign):
    captured = 0
    for (a, c), (left, right) in itertools.product(itertools.product(DTYPES, DTYPES), itertools.product(KINDS, KINDS)):
        captured += check(f"x {sign} y", KINDS[left](sample(a)), KINDS[right](sample(c))) is not None
    assert captured > 200


@pytest.mark.parametrize("sign", [s for s in SIGNS if s not in ("<", "<=", "==", "!=", ">", ">=")])
def test_inplace(sign):
    captured = 0

    def function(np, x, y):
        scope = {"x": x, "y": y}
        exec(f"x {sign}= y", scope)
        return scope["x"]

    for (a, c), kind in itertools.product(itertools.product(DTYPES, DTYPES), ("array", "rank0", "scalar")):
        y = KINDS[kind](sample(c))
        x = sample(a)
        try:
            expected = function(np, x.copy(), y)
        except Exception:
            assert check_inplace(function, x, y) is None
            continue
        found = check_inplace(function, x, y)
        if found is not None:
            captured += 1
            assert found.dtype == expected.dtype
            np.testing.assert_array_equal(found, expected)
    assert captured > 50


def check_inplace(function, x, y):
    from tcompile.frontends.base import CannotCapture

    from .harness import trace

    try:
        b, result = trace(function, x, y)
    except CannotCapture:
        return None
    b.graph.outputs = [result.node]
    try:
        with np.errstate(all="ignore"):
            return b.graph(x, y)[0]
    except Exception:
        return None


test_inplace = pytest.mark.filterwarnings("ignore::RuntimeWarning")(test_inplace)
UNARY = [
    "abs(x)", "-x", "+x", "~x", *(
        f"np.{n}(x)" for n in (
            "sin cos tan arcsin arccos arctan sinh cosh tanh arcsinh arccosh arctanh exp exp2 expm1 log "
            "log2 log10 log1p sqrt "
            "cbrt square reciprocal floor ceil trunc rint sign absolute fabs negative positive isnan "
            "isinf isfinite signbit "
            "logical_not invert conjugate deg2rad rad2deg spacing bitwise_count iteration around real isrealobj "
            "iscomplexobj divmod modf frexp"
        ).split()
    ),
]  # fmt: skip


@pytest.mark.parametrize("text", UNARY)
def test_unary(text):
    for dtype, kind in itertools.product(DTYPES, KINDS):
        check(text, KINDS[kind](sample(dtype)))


BINARY = (
    "add subtract multiply divide true_divide floor_divide remainder mod fmod power float_power maximum minimum "
    "fmax fmin "
    "arctan2 hypot logaddexp logaddexp2 copysign nextafter bitwise_and bitwise_or bitwise_xor left_shift "
    "right_shift equal "
    "not_equal less less_equal greater greater_equal logical_and logical_or logical_xor heaviside gcd lcm ldexp divmod"
).split()


@pytest.mark.parametrize("name", BINARY)
def test_binary_ufunc(name):
    for a, c in itertools.product(DTYPES, DTYPES):
        check(f"np.{name}(x, y)", sample(a), sample(c, (4,)))
    for dtype, number in itertools.product(DTYPES, [2, 0.5, True]):
        check(f"np.{name}(x, {number})", sample(dtype))
        check(f"np.{name}({number}, x)", sample(dtype)[0, 0])


@pytest.mark.parametrize(
    "text",
    [
        "np.add(x, y, dtype='f8')", "np.add(x, y, dtype='f4')", "np.add(x, y, dtype='i4')",
        "np.sqrt(x, dtype='f4')",
        "np.add(x, y, casting='unsafe')", "np.add(x, y, order='F')", "np.sin(x, where=True)",
        "np.sin(x, out=None)",
    ],
)  # fmt: skip
def test_keywords(text):
    for a, c in itertools.product(DTYPES, DTYPES):
        check(text, sample(a), sample(c))


LAYOUTS = {
    "c": lambda a: np.ascontiguousarray(a),
    "f": lambda a: np.asfortranarray(a),
    "middle": lambda a: np.ascontiguousarray(np.moveaxis(a, 0, 1)).swapaxes(0, 1),
    "cut": lambda a: np.repeat(a, 2, axis=1)[:, ::2],
    "reversed": lambda a: a[::-1],
    "broadcast": lambda a: np.broadcast_to(a[:1], a.shape),
    "transposed": lambda a: np.ascontiguousarray(a.transpose(2, 0, 1)).transpose(1, 2, 0),
    "row": lambda a: a[:1],
    "column": lambda a: np.asfortranarray(a)[:, :, :1],
}


@pytest.mark.parametrize("left", LAYOUTS)
@pytest.mark.parametrize("right", LAYOUTS)
def test_memory_order(left, right):
    x, y = LAYOUTS[left](sample("f4", (2, 3, 4))), LAYOUTS[right](sample("f8", (2, 3, 4)))
    captured = [
        check(text, a, c)
        for a, c in [(x, y), (x, y.astype("f4", copy=False)), (y, y), (x, y[0])]
        for text in ("x + y", "np.where(x > 1, x, y)", "np.where(y > x, 1.0, y)", "np.clip(x, y, 5.0)", "x * 2")
    ]
    assert sum(g is not None for g in captured) >= 10


def test_numbers_alone():
    assert check("np.sqrt(2.0)") is not None
    check("np.add(1, 2)")
    check("np.maximum(np.float32(1), 2)")
    check("np.float32(2) * x", sample("f4"))
    check("x * np.float64(2)", sample("f4"))
    check("x + [1.0, 2.0, 3.0, 4.0]", sample("f4"))


SPECIAL = np.array([0.0, -0.0, 1.0, -1.0, np.nan, np.inf, -np.inf, 1e-40, 3.5, 2.5] * 4)


@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_special_values(dtype):
    x = SPECIAL.astype(dtype)
    for text in UNARY:
        check(text, x)
    for exponent in (-1, 0, 1, 2, 3, 0.5, 2.0, -1.0, 1.0, 0.0):
        assert check(f"x ** {exponent}", x) is not None
    bounds = ["0.0", "-0.0", "1.0", "-1", "float('nan')", "None"]
    for low, high in itertools.product(bounds, bounds):
        check(f"np.clip(x, {low}, {high})", x)
        check(f"x.clip({low}, {high})", x[0])
    more = ["np.where(x, x, 2)", "np.nansum(x)", "np.nan_to_num(x)", "np.round(x)", "x.round(1)", "np.where(x, 1, 0)"]
    for text in more:
        assert check(text, x) is not None


@pytest.mark.parametrize("dtype", ["f2", "f4", "f8"])
def test_powers_that_are_roots(dtype):
    """One exponent 0.5 for all elements is a square root in some versions of NumPy: of -0.0 and -inf, too."""
    x = np.array([-0.0, -np.inf, -2.0, 0.0, 4.0, np.nan, np.inf, 1e-3], dtype)
    for exponent in (0.5, 0.25):
        for shape in ((), (1,), (1, 1), (8,), (8, 1)):
            for base in ("x", "x[:1]", "x[:, None]", "x[0]"):
                assert check(f"np.power({base}, y)", x, np.full(shape, exponent, dtype)) is not None
            check("x ** y", x, np.full(shape, exponent, dtype))
        for text in (f"np.power(x, {exponent})", f"np.power(x, np.float32({exponent}))", f"x ** {exponent}"):
            check(text, x)


@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_powers_of_numbers_known_at_run_time(dtype):
    compiled = tcompile.compile(lambda p, e: (np.power(p, e), np.power(e * 2, p)), backend="llvm")
    for base in (2.0, 3.5, -0.0, -np.inf, 4.0, 0.25):
        for exponent in (0.5, 0.25, 2.0):
            given = base, np.array(exponent, dtype)
            with np.errstate(all="ignore"):
                pairs = list(zip(compiled(*given), compiled.function(*given), strict=True))
            for got, want in pairs:
                assert (got.dtype, np.signbit(got)) == (want.dtype, np.signbit(want))
                np.testing.assert_allclose(got, want, rtol=1e-6)
    assert not compiled.breaks
