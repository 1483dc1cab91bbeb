"""Medians of a few elements each are kernels with NumPy's values; all others stay NumPy's."""

from __future__ import annotations

import numpy as np
import pytest

from tests.differential import check

X = np.random.default_rng(0).normal(size=(5, 9, 20)) * 9
SPECIAL = np.array([np.nan, np.inf, -np.inf, 1.0, 2.0])
LAYOUTS = {
    "c": lambda x: x, "f": np.asfortranarray, "cut": lambda x: np.repeat(x, 2, 1)[:, ::2],
    "turned": lambda x: x.transpose(1, 0, 2), "reversed": lambda x: x[::-1, :, ::-1],
}  # fmt: skip


def ops(compiled):
    return {node.op.name for graph in compiled.graphs for node in graph.nodes}


@pytest.mark.parametrize("dtype", ["f8", "f4", "i8", "u1"])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_few_elements(layout, dtype):
    for axis in (0, 1, -1):
        compiled = check(
            lambda x: np.median(x, axis=axis) + 1, lambda: [LAYOUTS[layout](np.abs(X).astype(dtype))], backends=["llvm"]
        )[-1]
        assert "sort" in ops(compiled) or layout != "c"


@pytest.mark.parametrize("count", [2, 3, 4, 5, 25, 26])
def test_special_numbers(count):
    x = np.random.default_rng(count).choice(SPECIAL, (count, 64))
    check(lambda x: np.median(x, axis=0), lambda: [x.copy()])
    check(lambda x: np.median(x, axis=0), lambda: [np.where(x > 2, 3, x)])


@pytest.mark.parametrize("count", [3, 4])
@pytest.mark.parametrize("dtype", ["f8", "f4"])
def test_negative_zeros_have_no_median(count, dtype):
    zeros = np.random.default_rng(count).choice([-0.0, -0.0, 0.0], (count, 64)).astype(dtype)
    for x in (zeros, np.abs(zeros) * -1):
        check(lambda x: np.median(x, axis=0), lambda x=x: [x.copy()], exact=True, options={"exact": True})


@pytest.mark.parametrize(
    "call",
    [
        lambda x: np.median(x), lambda x: np.median(x, axis=(0, 1)), lambda x: np.median(x, axis=0, keepdims=True),
        lambda x: np.median(x[0, 0]), lambda x: np.median(x[:, 0, :2], axis=0), lambda x: np.median(x > 0, axis=0),
        lambda x: np.median(x.astype("f2"), axis=0), lambda x: np.median(x + 1j, axis=0), lambda x: np.median(x, 3),
        lambda x: np.median(x[:1], axis=0), lambda x: np.median(x[:0], axis=0),
        lambda x: np.median(x, axis=0, out=x[0]),
    ],
)  # fmt: skip
@pytest.mark.filterwarnings("ignore")
def test_other_medians(call):
    check(call, lambda: [X.copy()], backends=["llvm"])


def test_median_filter():
    def filtered(image):
        n, m = image.shape
        near = np.stack([image[i : n - 2 + i, j : m - 2 + j] for i in range(3) for j in range(3)])
        return np.median(near, axis=0)

    compiled = check(filtered, lambda: [X[0].repeat(3, axis=0)], backends=["llvm"])[-1]
    assert "sort" in ops(compiled)
