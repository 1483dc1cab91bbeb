"""Universal functions of numbers, in scalar loops: NumPy's bits, and its warnings."""

import warnings

import numpy as np
import pytest

import tcompile
from tests.capture.test_scalar_loops import ops

UNARY = (
    "exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "cbrt", "sin", "cos", "tan", "arcsin", "arccos", "arctan",
    "sinh", "cosh", "tanh", "arcsinh", "arccosh", "arctanh", "floor", "ceil", "trunc", "rint",
)  # fmt: skip


@pytest.mark.parametrize("name", UNARY)
def test_universal_functions_give_numpys_bits(name):
    names = {"np": np}
    text = f"def f(x, out):\n    for i in range(len(x)):\n        out[i] = np.{name}(x[i] * 1.0) + np.{name}(0.5 * i)\n"
    exec(text, names)
    rng = np.random.default_rng(1)
    values = np.concatenate([rng.standard_normal(300) * 10.0 ** rng.integers(-5, 3, 300), [0.0, -0.0, 1.0, -1.0]])
    compiled = tcompile.compile(names["f"])
    plain, ours = np.zeros(len(values)), np.zeros(len(values))
    with np.errstate(all="ignore"):
        names["f"](values, plain)
        compiled(values, ours)
    assert plain.tobytes() == ours.tobytes()
    assert "scalar_loop" in ops(compiled)


@pytest.mark.parametrize("name", ["arctan2", "maximum", "minimum"])
def test_universal_functions_of_two_numbers(name):
    names = {"np": np}
    text = f"def f(x, y, out):\n    for i in range(len(x)):\n        out[i] = np.{name}(x[i], y[i])\n"
    exec(text, names)
    special = [0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 3.5]
    x, y = (np.ravel(part) for part in np.meshgrid(special, special))
    compiled = tcompile.compile(names["f"])
    plain, ours = np.zeros(len(x)), np.zeros(len(x))
    names["f"](x, y, plain)
    compiled(x, y, ours)
    assert plain.tobytes() == ours.tobytes()
    assert "scalar_loop" in ops(compiled)


def test_warnings_of_universal_functions_are_numpys():
    def f(x, out):
        for i in range(len(x)):
            out[i] = np.log(x[i])
        return out

    compiled = tcompile.compile(f)
    compiled(np.ones(20), np.zeros(20))
    for _ in range(2):
        with pytest.warns(RuntimeWarning, match="divide by zero encountered in log"):
            compiled(np.arange(20.0), np.zeros(20))


def largest(y, m):
    z = y.copy()
    for i in range(len(y)):
        z[i] = np.maximum(y[i] * 1e10, 0.0)
    return z


def smallest(y, m):
    for i in range(len(y)):
        y[i] = y[i] - np.minimum(y[i], 1.0) * 1e5
    return y


def unrelated(y, m):
    s = 0.0
    for i in range(len(y)):
        y[i] = y[i] - y[i]
        s = s + np.tanh(1.0)
    return y, s


def left_early(y, m):
    s = 0.0
    for i in range(len(y)):
        s = y[i] * y[i]
        if np.maximum(s, 1.0) > 1e10:
            return s, i
    return s


def several(y, m):
    s = 0.0
    for i in range(len(y)):
        s = s + np.exp(y[i])
        s = np.minimum(np.maximum(s, y[i]), 1e300)
        s = np.tanh(s + np.sin(y[i]))
    return s


def bools_times_infinity(y, m):
    for i in range(len(y)):
        y[i] = m[i] * np.inf + (y[i] > 2) * np.inf
    return y


def literals_less_infinity(y, m):
    for i in range(len(y)):
        z = np.inf if m[i] else 1.0
        y[i] = z - np.float64(np.inf)
    return y


def literals_by_literals(y, m):
    for i in range(len(y)):
        x = np.float64(0.0) if m[i] else np.float64(1.0)
        y[i] = np.float64(1.0) / x
    return y


@pytest.mark.parametrize(
    "f",
    [
        largest, smallest, unrelated, left_early, several, bools_times_infinity, literals_less_infinity,
        literals_by_literals,
    ],
    ids=lambda f: f.__name__,
)  # fmt: skip
def test_what_raises_flags_raises_them(f):
    """Some of NumPy's functions clear the flags when they are done; what LLVM computes by itself raises none."""
    compiled = tcompile.compile(f)
    for y in ([1e308, 1, 2, 3, 4, 5], [1, 2, 3, 4, 5, 1e308], [np.inf, 1, 1, 1, 1], [1, 1, 1, np.inf, 1, 1], range(6)):
        for m in ([1, 0, 1, 0, 1, 1], [0] * 6, [1] * 6):
            for how in ("warn", "raise", "ignore"):
                told = []
                for function in (f, compiled):
                    with warnings.catch_warnings(record=True) as caught, np.errstate(all=how, under="ignore"):
                        warnings.simplefilter("always")
                        try:
                            made = repr(function(np.array(y, float), np.array(m, bool)))
                        except FloatingPointError as error:
                            made = str(error)
                    told.append((made, {str(w.message) for w in caught}))
                assert told[0] == told[1]
    assert "scalar_loop" in ops(compiled)
