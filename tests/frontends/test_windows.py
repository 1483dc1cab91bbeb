"""`sliding_window_view`: a view that kernels read as any other, in NumPy's memory orders, and that nobody writes to."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.lib.stride_tricks import sliding_window_view

import tcompile
from tcompile.graph.printer import code
from tcompile.graph.reader import from_code
from tests.differential import check
from tests.frontends.harness import check as check_frontend

X = np.random.default_rng(0).uniform(1, 9, (6, 7, 20))
LAYOUTS = {
    "c": lambda x: x, "f": np.asfortranarray, "cut": lambda x: np.repeat(x, 2, 1)[:, ::2],
    "turned": lambda x: x.transpose(1, 0, 2), "reversed": lambda x: x[::-1, :, ::-1],
    "broadcast": lambda x: np.broadcast_to(x[:1], x.shape), "few": lambda x: x[:1, :2, :3],
}  # fmt: skip
WINDOWS = "np.lib.stride_tricks.sliding_window_view"


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("arguments", ["3, 0", "2, -1", "(2, 2), (0, 2)", "(2, 2), axis=(2, 1)", "(1, 2, 3)", "1, 1"])
def test_views_and_their_orders(arguments, layout):
    x = LAYOUTS[layout](X)
    for form in ("{} + 1", "{}", "{}.sum(axis=-1)", "{}.T * 2", "{}[..., 1:]", "np.copy({})", "{} + x[0, 0, 0]"):
        check_frontend(form.format(f"{WINDOWS}(x, {arguments})"), x, exact=False)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("arguments", ["3, 0", "4, -1", "(2, 3), (0, 2)", "(2, 4), axis=(2, 1)", "(2, 2, 3)"])
def test_steps_between_windows_and_inside(arguments, layout):
    """They have strides in common, so that steps decide which axis is the outer one."""
    x = LAYOUTS[layout](X)
    for cut in ("[::2]", "[..., ::2]", "[::2, ..., ::3]", "[::3][..., ::2]", "[..., ::2][::-1, :, ::2]", "[::2][::2]"):
        for form in ("{} + 1", "{}.T * 2", "np.copy({})"):
            check_frontend(form.format(f"{WINDOWS}(x, {arguments}){cut}"), x, exact=False)


@pytest.mark.parametrize(
    "call",
    [
        lambda x: sliding_window_view(x, 5, 2).mean(axis=-1) + 1,
        lambda x: sliding_window_view(x, (3, 3), (0, 1)).sum(axis=(-2, -1)),
        lambda x: np.median(sliding_window_view(x[0], (3, 3)), axis=-1),
        lambda x: sliding_window_view(x[0, 0] * 2, 4).max(1),
        lambda x: sliding_window_view(x[0, 0], 3) @ x[0, 0, :3],
        lambda x: sliding_window_view(x, 2, 0)[..., ::-1] * x[1:, ..., None],
        lambda x: np.einsum("ijkl,kl->ij", sliding_window_view(x[1], (3, 3)), x[0, :3, :3]),
        lambda x: sliding_window_view(np.cumsum(x[0, 0]), 2).std(axis=1),
        lambda x: sliding_window_view(x > 0, 3, 1).any(-1),
        lambda x: sliding_window_view(x[0, 0], 8)[::4].T * 2,
    ],
)  # fmt: skip
@pytest.mark.parametrize("layout", ["c", "f", "cut"])
def test_kernels(call, layout):
    compiled = check(call, lambda: [LAYOUTS[layout](X)])[-1]
    assert any(node.op.name == "windows" for graph in compiled.graphs for node in graph.nodes)
    assert not compiled.breaks


def test_orders_are_read_back():
    compiled = tcompile.compile(lambda x: np.copy(sliding_window_view(x, 4)[::3].T), backend="eager")
    compiled(X[0, 0])
    text = code(compiled.graphs[0])

    assert "f64[6, 4]{strided 1.6" in text
    assert code(from_code(text)) == text


def test_memory_is_shared():
    def f(x):
        windows = sliding_window_view(x, 3)
        x[2] = 7
        return windows, windows.sum(axis=1), windows.flags.writeable

    check(f, lambda: [np.arange(8.0)])


@pytest.mark.parametrize(
    "call",
    [
        lambda x: sliding_window_view(x, 25, 2),
        lambda x: sliding_window_view(x, -1, 2),
        lambda x: sliding_window_view(x, 3),
        lambda x: sliding_window_view(x, (2, 2), (0, 0)),
        lambda x: sliding_window_view(x, 0, 0),
        lambda x: sliding_window_view(x, 2, 5),
        lambda x: sliding_window_view(x[0, 0], 3).__setitem__(0, 1),
        lambda x: sliding_window_view(x[0, 0, 0], ()),
        lambda x: sliding_window_view(x[0, 0], 3, writeable=True)[0],
        lambda x: sliding_window_view([1, 2, 3], 2) * x[0, 0, 0],
        lambda x: np.add(sliding_window_view(x[0, 0], 3), 1, out=sliding_window_view(x[0, 0], 3)),
    ],
)  # fmt: skip
def test_other_arguments(call):
    check(call, lambda: [X.copy()], backends=["llvm"])


def test_sizes_that_vary():
    def f(x):
        return sliding_window_view(x, 3).sum(axis=1)

    compiled = tcompile.compile(f)
    for n in (9, 5, 30, 3, 4):
        np.testing.assert_allclose(compiled(np.arange(float(n))), f(np.arange(float(n))))


def test_into_the_same_array():
    def f(x):
        x[2:-2] = sliding_window_view(x, 5).sum(axis=1)
        x[1:] += sliding_window_view(x, 2)[:, 0]
        return x

    check(f, lambda: [np.arange(40.0)])
