"""`np.pad` of small arrays is kernels with NumPy's values, of others one call."""

from __future__ import annotations

import numpy as np
import pytest

from tests.differential import check

X = np.random.default_rng(0).normal(size=(3, 4, 5))
MODES = ("constant", "edge", "wrap", "reflect", "symmetric")
LAYOUTS = {
    "c": lambda x: x, "f": np.asfortranarray, "cut": lambda x: np.repeat(x, 2, 1)[:, ::2],
    "row": lambda x: x[0, 0, ::-2], "one": lambda x: x[:1, :1, :1], "none": lambda x: x[:, :0],
}  # fmt: skip


def ops(compiled):
    return {node.op.name for graph in compiled.graphs for node in graph.nodes}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("width", [1, (2, 0), (0, 1), ((1, 2),), 2, 3, 7, 0])
def test_pad(mode, width):
    for name, layout in LAYOUTS.items():
        padded = lambda x: np.pad(x, width, mode=mode) * 1
        (compiled,) = check(padded, lambda: [layout(X)], backends=["llvm"], exact=True)
        if name == "c" and width in (1, (2, 0), (0, 1), ((1, 2),)):
            assert "assign" in ops(compiled)
            assert "call" not in ops(compiled)


@pytest.mark.parametrize("dtype", ["?", "u1", "i8", "f4", "c16"])
def test_dtypes(dtype):
    check(lambda x: np.pad(x, 1), lambda: [(X * 9).astype(dtype)], exact=True)
    check(lambda x: np.pad(x, ((1, 2), (0, 0), (2, 1)), "edge"), lambda: [(X * 9).astype(dtype)], exact=True)


@pytest.mark.parametrize(
    "call",
    [
        lambda x: np.pad(x, 1, constant_values=7), lambda x: np.pad(x, 1, constant_values=(1, 2)),
        lambda x: np.pad(x, 1, constant_values=1.5), lambda x: np.pad(x.astype(int), 1, constant_values=1.5),
        lambda x: np.pad(x, 1, constant_values=np.nan), lambda x: np.pad(x, -1), lambda x: np.pad(x, 1, "mean"),
        lambda x: np.pad(x, 1, "reflect", reflect_type="odd"), lambda x: np.pad(x, 1, "edge", constant_values=1),
        lambda x: np.pad(x, 1, "edge", reflect_type="even"),
        lambda x: np.pad(x, 1, "nothing"), lambda x: np.pad(x[0, 0, 0], 1), lambda x: np.pad(x, ((1, 1),) * 2),
        lambda x: np.pad([1, 2, 3], 1) + x[0, 0, 0], lambda x: np.pad(x, 1.5), lambda x: np.pad(x, {0: 1}),
        lambda x: np.pad(x.repeat(30, axis=0).repeat(30, axis=1).repeat(5, axis=2), 1),
    ],
)  # fmt: skip
def test_other_arguments(call):
    check(call, lambda: [X.copy()], backends=["llvm"], exact=True)


def test_stencil_on_a_padded_array():
    def f(x):
        p = np.pad(x[0], 1, mode="edge")
        x[0] += p[2:, 1:-1] + p[:-2, 1:-1] - 2 * p[1:-1, 1:-1]
        return x

    check(f, lambda: [X.copy()])
