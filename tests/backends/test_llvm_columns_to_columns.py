"""Kernels that go from column to column, as at the edges of arrays: element by element, and never outside."""

import numpy as np
import pytest
from differential import Run, assert_same_run, check

import tcompile
from tcompile.backends.llvm.kernels import nest


def neumann(x):
    x[:, 0] = x[:, 1]
    x[:, -1] = x[:, -2]


def extrapolated(x):
    x[:, 0] = 2 * x[:, 10] - x[:, 20]


def backwards(x):
    x[::-1, 3] = x[:, 5]


def constant(x):
    x[:, 7] = 1


def one_number(x):
    x[:, 7] = x[0, 0]


EVERY = [neumann, extrapolated, backwards, constant, one_number]


@pytest.mark.parametrize("dtype", ["?", "i1", "u2", "i8", "f2", "f4", "f8", "c8", "c16"])
@pytest.mark.parametrize("f", EVERY)
@pytest.mark.parametrize("rows", [0, 1, 7, 41])
def test_columns(f, dtype, rows):
    memory = (np.arange(rows * 30).reshape(rows, 30) % 5).astype(dtype)
    check(f, lambda: [memory.copy()[:, 2:27]], dynamic=False)


@pytest.mark.parametrize("f", EVERY)
def test_columns_of_any_height(f):
    compiled = tcompile.compile(f)
    for rows in (5, 7, 41, 0, 1):
        wanted = np.arange(rows * 25.0).reshape(rows, 25).copy()
        got = wanted.copy()
        assert_same_run(Run(compiled, [got]), Run(f, [wanted]))


def test_they_are_done_one_by_one(monkeypatch):
    widths, lanes_of = [], nest.lanes_of
    monkeypatch.setattr(nest, "lanes_of", lambda kernel: widths.append(lanes_of(kernel)) or widths[-1])
    monkeypatch.setenv("TCOMPILE_CACHE_DIR", "")
    tcompile.reset()
    tcompile.compile(neumann, dynamic=False)(np.ones((41, 30)))
    assert widths == [1, 1]
    tcompile.compile(lambda x: np.exp(x[:, 0]), dynamic=False)(np.ones((41, 30)))
    assert widths[2:] == [8]
