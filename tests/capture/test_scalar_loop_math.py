"""Python's ``math`` functions in scalar loops: Python's bits, kinds and errors."""

import math
import re
import warnings
from pathlib import Path

import numpy as np
import pytest
from differential import check

import tcompile
from tcompile.capture.scalar_loops.translator import CALLS
from tests.capture.test_scalar_loops import BACKENDS, _function, ops

SPECIAL = [
    0.0,
    -0.0,
    1.0,
    -1.0,
    0.5,
    2.5,
    -3.5,
    1e-310,
    5e-324,
    1e300,
    -1e308,
    math.inf,
    -math.inf,
    math.nan,
    171.0,
    1e-8,
]
ONE = (
    "exp", "exp2", "log", "log2", "log10", "log1p", "expm1", "sin", "cos", "tan", "asin", "acos", "atan", "sinh",
    "cosh", "tanh", "asinh", "acosh", "atanh", "erf", "erfc", "cbrt", "sqrt", "fabs", "floor", "ceil", "trunc", "isnan",
    "isinf", "isfinite", "radians", "degrees",
)  # fmt: skip
TWO = ("atan2", "pow", "fmod", "remainder", "copysign", "nextafter", "hypot", "log", "isclose")


def _random(seed):
    rng = np.random.default_rng(seed)
    return rng.standard_normal(2000) * 2.0 ** rng.integers(-40, 40, 2000)


def _outcome(function, *given):
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return repr(function(*given))
    except (ValueError, OverflowError, ZeroDivisionError) as error:
        return repr(error)


def _same(text, rows, *, integers=False):
    """Compares row by row: the first raising row would hide the others."""
    body = f"def f(x, y):\n    found = None\n    for i in range(len(x)):\n        found = {text}\n    return found\n"
    function = _function(body)
    compiled = tcompile.compile(function)
    dtype = np.int64 if integers else np.float64
    for row in rows:
        x, y = (np.full(12, value, dtype) for value in row)
        assert _outcome(compiled, x, y) == _outcome(function, x, y), row
    assert "scalar_loop" in ops(compiled)


@pytest.mark.parametrize("name", ONE)
def test_functions_of_one_number(name):
    values = [*SPECIAL, *_random(1)[:60], *np.linspace(-1, 1, 21)]
    _same(f"math.{name}(x[i])", [(value, 0.0) for value in values])
    _same(f"math.{name}(float(x[i]) * 0.5)", [(value, 0.0) for value in values[:30]])


@pytest.mark.parametrize("name", TWO)
def test_functions_of_two_numbers(name):
    pairs = [(a, b) for a in SPECIAL for b in SPECIAL] + list(zip(_random(2)[:60], _random(3)[:60], strict=True))
    _same(f"math.{name}(x[i], y[i])", pairs)


@pytest.mark.parametrize("text", [
    "math.hypot(x[i], y[i])", "math.hypot(x[i], y[i], 3.0)", "math.hypot(x[i])", "math.hypot(x[i], y[i], x[i], y[i])",
    "math.dist((x[i], y[i]), (0.5, x[0]))",
])  # fmt: skip
def test_lengths_have_pythons_bits(text):
    rng = np.random.default_rng(4)
    x = rng.standard_normal(20000) * 2.0 ** rng.integers(-3, 3, 20000)
    y = rng.standard_normal(20000)
    function = _function(f"def f(x, y, out):\n    for i in range(len(x)):\n        out[i] = {text}\n    return out\n")
    compiled = tcompile.compile(function)
    for scale in (1.0, 2.0**-1000, 2.0**1000, 1e-7):
        plain, ours = function(x * scale, y * scale, np.zeros(20000)), compiled(x * scale, y * scale, np.zeros(20000))
        assert plain.tobytes() == ours.tobytes()
    assert "scalar_loop" in ops(compiled)


@pytest.mark.parametrize("name", ["erf", "erfc", "cbrt", "exp2", "asinh", "atanh", "pow", "atan2", "remainder"])
def test_many_numbers(name):
    given = "x[i], y[i]" if name in TWO else "x[i]"
    function = _function(f"def f(x, y, out):\n    for i in range(len(x)):\n        out[i] = math.{name}({given})\n")
    x, y = np.random.default_rng(5).random((2, 20000)) * 0.999 + 5e-4
    compiled, plain, ours = tcompile.compile(function), np.zeros(20000), np.zeros(20000)
    function(x, y, plain)
    compiled(x, y, ours)
    assert plain.tobytes() == ours.tobytes()


@pytest.mark.parametrize("text", ["round(x[i])", "round(float(x[i]))", "round(x[i], 2)", "round(x[i], 0)"])
def test_rounding(text):
    values = [0.5, 1.5, 2.5, -0.5, -1.5, 2.675, 1e15, 4503599627370497.5, 1e300, math.inf, math.nan, *_random(6)[:40]]
    _same(text, [(value, 0.0) for value in values])


@pytest.mark.parametrize("text", [
    "math.gcd(x[i], y[i])", "math.gcd(int(x[i]), 12)", "math.factorial(x[i] % 21)", "math.factorial(x[i])",
    "math.comb(x[i], y[i])", "math.comb(int(x[i]) % 40, int(y[i]) % 40)", "math.isqrt(x[i])", "round(x[i])",
    "math.isqrt(int(x[i]) * int(x[i]))", "math.isqrt(int(x[i]) * int(x[i]) + 2 * int(x[i]))", "math.floor(int(x[i]))",
    "math.trunc(int(x[i]) + 1)", "math.ceil(x[i])", "divmod(x[i], y[i])", "divmod(int(x[i]), int(y[i]))",
])  # fmt: skip
def test_functions_of_ints(text):
    numbers = [0, 1, 2, 7, 12, 20, 25, 61, -5, 144]
    if "factorial" not in text and "comb" not in text:  # for which Python takes minutes
        numbers += [3037000499, 2**31, 999999999, 4611686014132420608]
    _same(text, [(a, b) for a in numbers for b in (numbers if "y[" in text else [0])], integers=True)


@pytest.mark.parametrize("text", [
    "divmod(x[i], y[i])", "divmod(float(x[i]), 0.7)", "pow(x[i], 2)", "pow(x[i], y[i])", "math.log(i + 2, 3)",
    "math.hypot(i, 4)", "math.radians(i)", "np.square(x[i])", "np.sign(x[i])", "np.isnan(x[i])", "np.isfinite(y[i])",
    "np.isinf(x[i])", "np.power(x[i] * x[i], y[i])", "np.power(x[i], 2)", "np.square(0.5 * i)", "np.sign(i * 0.5)",
    "math.copysign(x[i], -0.0)", "math.trunc(a[i])", "round(a[i])", "round(True)", "math.floor(a[i] > 1)",
])  # fmt: skip
def test_kinds_of_results(text):
    lines = f"def f(a, x, y):\n    r = t = None\n    for i in range(8):\n        t = r\n        r = {text}\n"
    a = np.array([-3, 7, 2, 1, 5, -8, 4, 9])
    check(_function(lines + "    return r, t\n"), lambda: (a.copy(), a * 0.3, a * -0.7), backends=BACKENDS, ulp=0)


def test_functions_of_math_have_gradients():
    def f(x, y):
        total = 0.0
        for i in range(len(x)):
            total += math.hypot(x[i], y[i]) * math.atan2(x[i], y[i]) + math.pow(x[i], y[i]) * math.erf(x[i])
            total += math.fmod(x[i] * 7, y[i]) + math.copysign(x[i], -y[i]) + math.erfc(y[i]) + math.asinh(x[i])
            total += math.remainder(x[i] * 5, y[i]) + math.log(y[i] + 1, x[i] + 2) + math.degrees(x[i])
        return total

    x, y = np.random.default_rng(8).random((2, 20)) + 0.5
    for argument in (0, 1):
        gradient = tcompile.grad(f, argnums=argument)(x, y)
        for i in range(20):
            step = np.zeros(20)
            step[i] = 1e-6
            moved = [f(x + s * step, y) if argument == 0 else f(x, y + s * step) for s in (1, -1)]
            assert gradient[i] == pytest.approx((moved[0] - moved[1]) / 2e-6, rel=1e-6, abs=1e-7)


def test_the_guide_says_which_functions_are_left_out():
    guide = (Path(__file__).parents[2] / "docs" / "guide.md").read_text()
    left_out = re.findall(r"`(\w+)`", guide.partition("the functions of `math` but ")[2].partition(", and those of")[0])
    here = {name for name, found in vars(math).items() if callable(found) and name[0] != "_"}
    missing = {name for name in here if id(getattr(math, name)) not in CALLS}
    assert missing - {"fsum", "prod", "sumprod"} == set(left_out) & here
