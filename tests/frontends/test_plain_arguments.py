"""NumPy's functions on plain numbers, alone and beside arrays, as arguments of every kind that people pass."""

from __future__ import annotations

import numpy as np
import pytest

import tcompile

NUMBERS = [
    0, 0.0, -0.0, 1, 2.5, True, 2**63, -(2**63), 1 + 2j, np.float32(1.5), np.int8(3), np.uint64(5), np.bool_(True),
]  # fmt: skip
ARRAY = np.arange(4.0)
CALLS = [
    "np.real(s)", "np.imag(s)", "np.squeeze(s)", "np.transpose(s)", "np.ravel(s)", "np.reshape(s, 1)", "np.sum(s)",
    "np.prod(s)", "np.max(s)", "np.abs(s)", "np.conj(s)", "np.round(s)", "np.round(x, s)", "np.add(s, x)",
    "np.multiply(s, s)", "np.isnan(s)", "np.transpose(x, s)", "np.transpose(x, x)", "np.broadcast_to(s, 3)",
    "np.broadcast_to(1.0, s)", "np.where(x > 1, s, x)", "np.array(s)", "np.asarray(s)", "np.full(2, s)",
    "np.full_like(x, s)", "np.clip(x, 0, s)", "np.minimum(x, s, x.copy())",
    "np.arange(0, 3, 1) if s else np.arange(0.0, 3, 1)", "np.mean(s)", "np.var(s)", "np.argmax(s)", "np.cumsum(s)",
    "np.repeat(s, 2)", "np.tile(s, 2)", "np.roll(x, s)", "np.sqrt(s)", "np.exp(s)", "np.sign(s)",
    "np.floor(s)", "np.power(x, s)",
]  # fmt: skip
BOUNDS = [-1, -1.0, 0, 0.0, 2, 2.0, 3]


def outcome(f, *args):
    """Type, dtype and value of a result, or the error."""
    try:
        with np.errstate(all="ignore"):
            result = f(*args)
    except Exception as error:
        return type(error), str(error)
    return type(result), getattr(result, "dtype", None), repr(result)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("text", CALLS)
def test_plain_numbers(text):
    f = eval(f"lambda s, x: {text}", {"np": np})
    compiled = tcompile.compile(f, backend="eager")
    with tcompile.config.patch(recompile_limit=100):
        for number in NUMBERS:
            assert outcome(compiled, number, ARRAY) == outcome(f, number, ARRAY), number


def test_bounds_of_ranges():
    def f(*bounds):
        return np.arange(*bounds)

    compiled = tcompile.compile(f, backend="eager")
    with tcompile.config.patch(recompile_limit=1000):
        for start in BOUNDS:
            for stop in BOUNDS:
                for args in ((stop,), (start, stop), (start, stop, 1), (start, stop, 0.5)):
                    assert outcome(compiled, *args) == outcome(f, *args), args
