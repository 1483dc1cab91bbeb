"""Variances of columns in one pass: as exact as NumPy's, with the same warnings, whatever the data."""

from __future__ import annotations

import numpy as np
import pytest
from differential import check

import tcompile
from tcompile.backends.llvm.kernels import columns

RANDOM = np.random.default_rng(17)
DATA = {
    "uniform": lambda shape: RANDOM.random(shape), "far from zero": lambda shape: RANDOM.random(shape) + 1e6,
    "rising": lambda shape: np.cumsum(RANDOM.random(shape), axis=0) * 100,
    "of heavy tails": lambda shape: RANDOM.standard_cauchy(shape), "the same": lambda shape: np.full(shape, 0.1),
    "one far away": lambda shape: np.where(np.arange(shape[0])[:, None] == 0, 1e5, RANDOM.random(shape)),
}  # fmt: skip


def variance(x):
    return x.var(axis=0)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("data", DATA)
def test_errors_are_not_above_those_of_numpy(data, dtype):
    compiled = tcompile.compile(variance, backend="llvm")
    for shape in ((2, 40), (6, 64), (7, 33), (13, 129), (300, 70)):
        x = DATA[data](shape).astype(dtype)
        exact = variance(x.astype(np.longdouble))
        room = 12 * np.finfo(dtype).eps * exact + np.finfo(dtype).tiny
        ours, theirs = abs(compiled(x) - exact), abs(variance(x) - exact)
        assert (ours <= np.maximum(room, theirs.max())).all(), shape


@pytest.mark.parametrize(
    "text",
    [
        "x.var(axis=0)", "x.std(axis=0, ddof=1)", "(x.mean(axis=0), x.var(axis=0))",
        "np.exp(x).var(axis=0, keepdims=True)",
        "((x - x.mean(axis=0)) ** 2).sum(axis=0)", "2 + (x - x.mean(axis=0)) / (x.std(axis=0) + 1)", "x.T.var(axis=1)",
        "x[None].repeat(2, 0).var(axis=(0, 1))", "x.reshape(5, -1, x.shape[1]).var(axis=(0, 1))",
        "(x + x[0]).var(axis=0)",
    ],
)  # fmt: skip
def test_forms(text):
    space = {"np": np}
    exec(f"def f(x):\n    return {text}", space)
    for dynamic in (False, True):
        for shape in ((15, 70), (5, 3)):
            x = RANDOM.random(shape)
            check(space["f"], lambda x=x: [x], backends=["llvm"], dynamic=dynamic, ulp=64)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 1e200, 1e160, 1e-170])
@pytest.mark.parametrize("row", [0, 3, 8])
def test_special_values_and_warnings(value, row):
    x = RANDOM.random((9, 20))
    x[row, 4:6] = value
    check(variance, lambda: [x], backends=["llvm"], ulp=64)
    with np.errstate(over="ignore"):
        narrow = x.astype("float32")
    check(variance, lambda: [narrow], backends=["llvm"], ulp=64)


@pytest.mark.parametrize("text", ["x.var(axis=0)", "(x - x.mean(axis=0)) / x.std(axis=0)"])
def test_one_pass_less(text, monkeypatch):
    passes = []

    class Counted(columns.Stages):
        def __post_init__(self):
            super().__post_init__()
            passes.append(self.passes)

    monkeypatch.setattr(columns, "Stages", Counted)
    f = eval(f"lambda x: {text}")
    tcompile.compile(f, backend="llvm")(RANDOM.random((50, 90)))
    assert passes == [1 if text == "x.var(axis=0)" else 2]


def test_deviations_from_something_else_take_two():
    def f(x):
        return ((x - x.sum(axis=0) / 51) ** 2).sum(axis=0), ((x - x[::-1].mean(axis=0)) ** 2).sum(axis=0)

    x = RANDOM.random((50, 90))
    check(f, lambda: [x], backends=["llvm"], ulp=64)
