"""Arrays of one byte over and over are filled by a kernel that all modules share."""

from __future__ import annotations

import numpy as np
import pytest

from tcompile.backends.llvm import compile_graph, native
from tests.backends.llvm_cases import check, graph_of


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint64", "float16", "float32", "float64"])
@pytest.mark.parametrize("shape", [(), (3,), (5, 7), (0, 4), (1000, 1500)])
def test_zeros(shape, dtype):
    compiled = check(lambda op: op("full", shape=shape, fill_value=np.zeros((), dtype).item(), dtype=np.dtype(dtype)))
    assert [kernel.functions for kernel in compiled.kernels] == [("tc_zeros",)]
    assert "llvm.memset" in compiled.kernels[0].listings()[0]


def test_ones_of_a_byte():
    for dtype in ("bool", "uint8"):
        one = np.ones((), dtype).item()
        compiled = check(lambda op, d=np.dtype(dtype), one=one: op("full", shape=(9,), fill_value=one, dtype=d))
        assert compiled.kernels[0].functions == ("tc_ones",)


@pytest.mark.parametrize("value, dtype", [(-0.0, "float64"), (1, "int32"), (1.0, "float32"), (2, "uint8")])
def test_other_numbers_have_kernels_of_their_own(value, dtype):
    graph = graph_of(lambda op: op("full", shape=(9,), fill_value=value, dtype=np.dtype(dtype)))
    compiled = compile_graph(graph)
    assert compiled(*())[0].tobytes() == np.full(9, value, dtype).tobytes()
    assert not set(compiled.kernels[0].functions) & set(native.FILLS.values())
