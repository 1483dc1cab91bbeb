"""Universal functions of numbers, in loops over elements: NumPy's bits, and its warnings."""

import numpy as np
import pytest

import tcompile
from tests.capture.test_element_loops import ops

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
    assert "element_loop" in ops(compiled)


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
    assert "element_loop" in ops(compiled)


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
