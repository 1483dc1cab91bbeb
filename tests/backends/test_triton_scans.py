"""Cumulative sums and products in Triton kernels, in its interpreter: NumPy's values and warnings."""

import numpy as np
import pytest

pytest.importorskip("triton")

from tcompile.backends import triton
from tcompile.backends.replay import Replay
from tcompile.backends.triton import rows, scans
from tcompile.backends.triton.configs import TilingConfig
from tests.backends.llvm_cases import LAYOUTS, graph_of, sample, scan
from tests.backends.triton_cases import check, on_interpreter

SHAPES = [(0,), (1,), (100,), (0, 3), (3, 0), (9, 1), (33, 130), (3, 5, 70)]


@pytest.mark.parametrize("layout", ["rows", "columns", "strided", "turned", "spread"])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_layouts(shape, layout):
    x = LAYOUTS[layout](sample("float64", shape))
    for axis in range(len(shape)):
        check(scan(axis), x, rtol=1e-13, kernels=1)


@pytest.mark.parametrize("name", ["cumulative_sum", "cumulative_prod"])
@pytest.mark.parametrize("dtype", ["int8", "uint16", "int32", "int64", "uint64", "float32"])
def test_dtypes(dtype, name):
    for x in (sample(dtype, (300, 7)), sample(dtype, (7, 300)).T):
        check(scan(1, name), x, rtol=1e-6 if name == "cumulative_sum" else 0.0, kernels=1)


def test_products_of_floats_underflow_as_numpys():
    tiny = np.tile(np.array([1e-30, 1e-30, 1e30, 1e30], "f4"), (scans.ENOUGH_ROWS, 1))
    check(scan(1, "cumulative_prod"), tiny, kernels=1)
    check(scan(1, "cumulative_prod"), tiny[1:], kernels=0)  # there NumPy computes it


def test_what_is_computed_on_the_way():
    x, y = sample("float64", (20, 30)), sample("float64", (30,))
    for axis in range(2):
        check(lambda op, x, y, axis=axis: op("cumulative_sum", op("multiply", op("exp", x), y), axis=axis), x, y,
              rtol=1e-12, kernels=1)  # fmt: skip
        check(lambda op, x, axis=axis: op("cumulative_sum", op("cumulative_sum", x, axis=axis), axis=1 - axis), x,
              rtol=1e-12)  # fmt: skip


@pytest.mark.parametrize("special", [-0.0, np.inf, np.nan, 1e308, 5e-324])
def test_special_values_and_warnings(special):
    for at in (0, 4, 18):
        x = np.zeros((6, 19))
        x[:, at] = special
        for values in (x, -x, x.T.copy()):
            check(scan(0), values)
            check(scan(1), values)
    for name in ("cumulative_sum", "cumulative_prod"):
        check(scan(0, name), np.array([special, special, -special]))
    rows = np.tile([1.0, special, -1.0], (scans.ENOUGH_ROWS, 1))
    check(scan(1, "cumulative_prod"), rows)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_sums_that_leave_the_range_and_come_back_are_numpys(dtype):
    """In every error state: added up as a tree, which a GPU does, they may never have left it."""
    big = np.finfo(dtype).max
    x = np.array([big, big, -big], dtype)
    made = on_interpreter(graph_of(scan(0), x))
    for state in ("warn", "ignore"):
        with np.errstate(all=state), pytest.raises(Replay):
            made(x)


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32"])
def test_long_rows_are_shared_out(dtype, monkeypatch):
    monkeypatch.setattr(triton, "USUAL", TilingConfig(elements=16, chunk=64))
    monkeypatch.setattr(rows, "IN_REGISTERS", 16)
    for values in (sample(dtype, 270), sample(dtype, (3, 130)), sample(dtype, (130, 3))):
        made = check(scan(int(values.shape[0] == 3)), values, rtol=1e-6 if dtype == "float32" else 1e-13, kernels=1)
        assert len(made.kernels[0].functions) == 2
    if dtype != "int32":
        check(scan(0), np.full(270, -0.0, dtype))
        late = np.zeros(270, dtype)
        late[170] = np.finfo(dtype).max
        check(scan(0), late)
        late[185] = late[170]
        check(scan(0), late)  # NumPy warns
        late[190] = np.nan
        check(scan(0), late)
