"""Elements a few places apart: read as whole vectors, but never beyond the first and the last of them."""

import ctypes
import mmap
import sys

import numpy as np
import pytest

from tcompile.backends.llvm import compile_graph
from tests.backends.llvm_cases import graph_of

PAGE = mmap.PAGESIZE


def between_guards(values, at_end):
    """A copy of ``values`` in memory that starts, or ends, beside a page that must not be touched, and its owner."""
    pages = -(-values.nbytes // PAGE) + 2
    owner = mmap.mmap(-1, pages * PAGE)
    address = np.frombuffer(owner, np.uint8).ctypes.data
    place = (pages - 1) * PAGE - values.nbytes if at_end else PAGE
    copy = np.frombuffer(owner, values.dtype, len(values), place)
    copy[:] = values
    protect = ctypes.CDLL(None).mprotect
    for page in (0, pages - 1):
        assert protect(ctypes.c_void_p(address + page * PAGE), PAGE, 0) == 0
    return copy, owner


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="protects pages as Linux does")
@pytest.mark.parametrize("step", [2, 3, 5, 8, 9, -1, -2, -5])
@pytest.mark.parametrize("dtype", ["float32", "float64", "int16", "uint8", "bool", "complex64"])
def test_nothing_outside_is_read(dtype, step):
    rng = np.random.default_rng(0)
    for size in (1, 17, 64, 100, 255):
        values = rng.integers(0, 100, size).astype(dtype)
        operation = "logical_not" if dtype == "bool" else "negative"
        graph = graph_of(lambda op, x: op(operation, op("index", x, key=(slice(None, None, step),))), values)
        compiled = compile_graph(graph)
        want = graph(values)[0]
        for at_end in (False, True):
            x, owner = between_guards(values, at_end)
            np.testing.assert_array_equal(compiled(x)[0], want)
            del x, owner
