"""``max`` and ``min`` of floats: any NaN wins, wherever it stands, and raises no flag."""

import numpy as np
import pytest

from tcompile.backends.llvm import compile_graph
from tests.backends.llvm_cases import FLOATS, graph_of


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", ["max", "min"])
def test_extrema_with_nans_anywhere(name, dtype):
    for shape, axis in (((1003,), (0,)), ((3, 300), (1,)), ((300, 5), (0,)), ((50, 3), (1,)), ((40000,), (0,))):
        x = np.random.default_rng(0).normal(size=shape).astype(dtype)
        graph = graph_of(lambda op, x: op(name, x, axis=axis, keepdims=False), x)
        compiled = compile_graph(graph)
        for value in (np.nan, -np.nan, np.inf, -np.inf):
            for place in (None, 0, 1, 17, 64, 130, x.size - 1, slice(None), slice(None, None, 3)):
                given = x.copy()
                if place is not None:
                    given.flat[place] = value
                np.testing.assert_array_equal(compiled(given)[0], graph(given)[0])  # raises Replay on any flag
