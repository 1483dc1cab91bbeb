"""Integer division by way of floats, shifts and multiplications: NumPy's results for every pair of edges."""

import operator

import numpy as np
import pytest

from tcompile.backends.llvm import compile_graph
from tcompile.backends.replay import Replay
from tests.backends.llvm_cases import INTEGERS, graph_of

OPERATIONS = {"floor_divide": operator.floordiv, "remainder": operator.mod, "fmod": np.fmod}
POWERS = [2**k + d for k in (0, 1, 3, 7, 8, 15, 16, 23, 24, 31, 32, 52, 53, 62, 63, 64) for d in (-1, 0, 1)]


def edges(dtype):
    info = np.iinfo(dtype)
    values = {*POWERS, *(-p for p in POWERS), 0, 6, 7, 10, -6, -7, -10, info.min, info.min + 1, info.max}
    return np.array(sorted(v for v in values if info.min <= v <= info.max), dtype)


def run(graph, *arrays):
    with np.errstate(all="ignore"):
        try:
            return compile_graph(graph)(*arrays)[0]
        except Replay:  # pragma: no cover
            pytest.fail("a replay where nobody is told of flags")


@pytest.mark.parametrize("name", OPERATIONS)
@pytest.mark.parametrize("dtype", INTEGERS)
def test_every_pair(name, dtype):
    x = edges(dtype)
    a, b = (m.ravel() for m in np.meshgrid(x, x))
    rng = np.random.default_rng(0)
    size = min(int(np.iinfo(dtype).max), 2**53 - 1)
    quotient, divisor = rng.integers(1, max(2, size >> 20), 3000), rng.integers(1, min(size, 2**20), 3000)
    near = np.minimum(quotient * divisor + rng.integers(-1, 2, 3000), size).astype(dtype)  # around a whole quotient
    divisor = divisor.astype(dtype)
    for left, right in ((a, b), (near, divisor), (near[:16], divisor[:16])):
        with np.errstate(all="ignore"):
            want = OPERATIONS[name](left, right)
        got = run(graph_of(lambda op, x, y: op(name, x, y), left, right), left, right)
        np.testing.assert_array_equal(got, want, strict=True)


def test_numbers_that_are_known_are_seen():
    """Shifts for powers of two, no test for zero, no other operand's NaN: what is known need not be asked."""
    x, y = np.arange(40), np.arange(40.0)
    shifted = compile_graph(graph_of(lambda op, x: op("floor_divide", x, 8), x)).kernels[0].ir
    assert "ashr" in shifted and "div" not in shifted.replace("floor_divide", "")
    beside, among = (
        compile_graph(graph_of(build, y)).kernels[0].ir
        for build in (lambda op, x: op("maximum", x, 0.5), lambda op, x: op("maximum", x, op("sqrt", x)))
    )
    assert beside.count("fcmp") < among.count("fcmp")


@pytest.mark.parametrize("name", OPERATIONS)
@pytest.mark.parametrize("dtype", INTEGERS)
def test_by_a_number(name, dtype):
    x = edges(dtype)
    info = np.iinfo(dtype)
    for number in (0, 1, 2, 3, 7, 8, 10, 64, -1, -2, -3, -8, int(info.max), int(info.min)):
        if info.min <= number <= info.max:
            with np.errstate(all="ignore"):
                want = OPERATIONS[name](x, np.asarray(number, dtype))
            got = run(graph_of(lambda op, x: op(name, x, number), x), x)
            np.testing.assert_array_equal(got, want, strict=True)
