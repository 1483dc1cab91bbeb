"""What kernels call for before they read it: each array once, where it is read furthest on, in whole cache lines.

Columns are called for where some are read at a time, less than a page of each row.
"""

import numpy as np
import pytest
from differential import assert_same

import tcompile
from tcompile.backends.llvm.kernels import tiles
from tcompile.backends.llvm.kernels.nest import NEAR, Nest


def stencil(x):
    return x[1:-1, 1:-1] + x[:-2, 1:-1] + x[2:, 1:-1] + x[1:-1, :-2] + x[1:-1, 2:]


CASES = {
    "one array": (lambda x: x * 2 + x, ["f4"], [[0]]),
    "two arrays": (lambda x, y: (x * y).sum(), ["f4", "f4"], [[0, 0]]),
    "vectors of half a line": (lambda x, y: x * y, ["f4", "f8"], [[0]]),
    "rows": (lambda x: x / x.max(axis=1, keepdims=True), ["f4"], [[0]]),
    "columns": (lambda x: x.max(axis=0), ["f4"], [[]]),
    "some columns": (lambda x: x.max(axis=0), ["f4"], [[0]]),
    "stencil": (stencil, ["f4"], [[2 * 100 + 1]]),
    "across": (lambda x, y: x.T + y, ["f4", "f4"], [[0]]),
    "parts of lines": (lambda x: x + 1, ["i2"], [[]]),
    "backwards": (lambda x: x[:, ::-1] + 1, ["f4"], [[]]),
}
SHAPES = {"columns": (250, 40), "some columns": (80, 200)}


def called_for(f, args, dynamic, monkeypatch, near=1 << 15):
    """The offsets of what each kernel calls for, where so many bytes are near."""
    monkeypatch.setattr(Nest.prefetch_ahead, "__defaults__", (Nest.prefetch_ahead.__defaults__[0], near))
    monkeypatch.setattr(tiles, "NEAR", near)
    nests, begin = [], Nest.begin
    monkeypatch.setattr(Nest, "begin", lambda nest: (nests.append(nest), begin(nest))[1])
    monkeypatch.setenv("TCOMPILE_CACHE_DIR", "")
    tcompile.reset()
    assert_same(tcompile.compile(f, dynamic=dynamic)(*args), f(*args))
    return [[value.access.offset for value in nest.elements.ahead] for nest in nests]


@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize("case", CASES)
def test_each_array_is_called_for_once(case, dynamic, monkeypatch):
    f, dtypes, expected = CASES[case]
    rows, columns = SHAPES.get(case, (100, 100))
    args = [np.arange(rows * columns, dtype=dtype).reshape(rows, columns) % 7 for dtype in dtypes]
    found = called_for(f, args, dynamic, monkeypatch)
    if not dynamic:
        found = [[sum(multiple for multiple, _ in offset) for offset in offsets] for offsets in found]
        assert found == expected
    assert list(map(len, found)) == list(map(len, expected))


@pytest.mark.parametrize("dynamic", [False, True])
def test_what_caches_hold_is_not_called_for(dynamic, monkeypatch):
    assert 1 << 20 <= NEAR <= 1 << 25
    for size, count in ((40, 0), (500, 0), (1500, 1)):
        x = np.zeros((size, size), "f4")
        (found,) = called_for(stencil, [x], dynamic, monkeypatch, NEAR)
        assert len(found) == count
