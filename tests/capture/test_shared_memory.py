"""What shares memory with its operand, and is written, is seen through it; and what is a copy is not.

Each function below may give a view, a copy or its operand itself: a write to either one must show exactly where plain
NumPy shows it.
"""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import tcompile

EXPRESSIONS = [
    "a", "a[...]", "a[:]", "a[None]", "a[1:]", "a[:, 1]", "a[::-1]", "a[1]", "a.T", "a.transpose(1, 0)",
    "np.transpose(a)", "a.view()", "a.reshape(-1)", "a.reshape(2, -1)", "np.reshape(a, (-1,))", "a.ravel()",
    "np.ravel(a)", "a.flatten()", "a.copy()", "np.copy(a)", "np.asarray(a)", "np.array(a)",
    "np.array(a, copy=None)", "np.asarray(a, dtype=a.dtype)", "np.ascontiguousarray(a)", "np.asfortranarray(a)",
    "np.require(a)", "np.atleast_1d(a)", "np.atleast_2d(a)", "np.atleast_3d(a)", "np.squeeze(a)", "a.squeeze()",
    "np.expand_dims(a, 0)", "np.real(a)", "a.real", "np.imag(a)", "a.imag", "a.conj()", "np.conj(a)",
    "a.conjugate()", "np.real_if_close(a)", "a.astype(a.dtype)", "a.astype(a.dtype, copy=False)",
    "np.astype(a, a.dtype)", "np.astype(a, a.dtype, copy=False)", "np.swapaxes(a, 0, 1)", "a.swapaxes(0, 1)",
    "np.moveaxis(a, 0, 1)", "np.rollaxis(a, 1)", "np.rot90(a)", "np.flip(a)", "np.fliplr(a)", "np.flipud(a)",
    "np.diagonal(a)", "a.diagonal()", "np.diag(a)", "np.split(a, 2)[0]", "np.array_split(a, 2)[1]",
    "np.hsplit(a, 2)[0]", "np.vsplit(a, 2)[0]", "np.broadcast_to(a, a.shape)", "np.broadcast_arrays(a, a)[0]",
    "np.meshgrid(a[0], a[:, 0], copy=False)[0]", "np.meshgrid(a[0], a[:, 0])[0]", "np.stack([a, a])",
    "np.concatenate([a])", "np.concatenate([a, a])", "np.take(a, [0, 1], axis=0)", "np.repeat(a, 2)",
    "np.tile(a, 1)", "np.tile(a, (1, 1))", "np.roll(a, 1)", "np.roll(a, 0)", "np.pad(a, 0)", "np.pad(a, 1)",
    "np.positive(a)", "+a", "np.clip(a, None, None)", "a.round(0)", "np.round(a)", "np.nan_to_num(a)",
    "np.where(True, a, a)", "np.einsum('ij->ji', a)", "np.einsum('ij->ij', a)", "np.einsum('ii->i', a[:2, :2])",
    "np.sort(a)", "np.squeeze(a[:1])", "np.triu(a)", "np.tril(a)", "np.delete(a, [])", "np.insert(a, 0, 1)",
    "np.append(a, a)", "np.resize(a, a.shape)", "np.unstack(a)[0]", "np.permute_dims(a, (1, 0))",
    "np.matrix_transpose(a)", "a.mT", "np.lib.stride_tricks.sliding_window_view(a, 2, axis=0)",
    "np.ravel(a, order='F')", "np.ravel(a, order='K')", "a.ravel('A')", "a.reshape(-1, order='F')",
    "a.reshape(-1, order='A')", "np.sum(a, axis=())", "a.sum(axis=())", "np.max(a, axis=())",
    "np.cumsum(a, axis=0)", "np.diff(a, n=0)", "np.gradient(a)[0]", "np.linalg.matrix_transpose(a)",
    "np.linalg.diagonal(a)", "np.trim_zeros(a[0])", "np.unwrap(a)", "np.block([a])", "np.block([[a]])",
    "np.column_stack([a])", "np.vstack([a])", "np.dstack([a])", "np.choose([0], [a])", "np.select([True], [a])",
    "np.fft.fftshift(a)", "np.asanyarray(a)", "np.flatnonzero(a)", "np.dot(a, a.T)", "np.multiply(a, 1)", "a * 1",
    "abs(a)", "np.fabs(a)", "np.linalg.matrix_power(a[:2,:2], 1)", "np.kron(a, 1)", "np.outer(a, 1)",
    "np.convolve(a[0], [1])", "np.interp(a, [0,1],[0,1])", "np.ma.getdata(a)", "a.__array__()", "a.item(0)",
    "np.array(a, ndmin=3)", "np.array(a, ndmin=3, copy=None)", "np.array([a])[0]", "list(a)[0]", "[*a][1]",
    "np.lib.stride_tricks.as_strided(a, (2,), (8,))", "np.partition(a, 1)", "np.apply_along_axis(np.sort, 0, a)",
    "np.nan_to_num(a, copy=False)", "np.permute_dims(a)", "np.piecewise(a, [a > 1], [2])", "np.packbits(a > 0)",
    "np.ix_(a[0] > 0)[0]", "np.tri(2)", "np.linalg.cross(a[:, :3], a[:, :3])", "np.atleast_1d(a, a)[1]",
]  # fmt: skip
WRITES = ("v += 1", "v[0] = v[-1]", "a[0] = 5")
OPERANDS = {
    "c": lambda: np.arange(1.0, 13).reshape(3, 4), "cut": lambda: np.arange(1.0, 73).reshape(6, 12)[::2, ::3],
    "complex": lambda: np.asfortranarray(np.arange(1.0, 13).reshape(3, 4) + 1j),
}  # fmt: skip


def outcome(f, a):
    """The operand, the result, and how they share memory; or the error."""
    try:
        copy, v = f(a)
    except Exception as error:
        return a, type(error), None
    shared = isinstance(v, np.ndarray) and np.shares_memory(a, v)
    return a, (copy, v, getattr(v, "dtype", type(v)), shared), getattr(getattr(v, "flags", None), "writeable", None)


@pytest.mark.parametrize("text", EXPRESSIONS)
def test_writes_are_seen_where_plain_numpy_shows_them(text):
    for number, make in enumerate(OPERANDS.values()):
        write = WRITES[(number + len(text)) % len(WRITES)]
        scope = {"np": np}
        exec(f"def f(a):\n    v = {text}\n    {write}\n    return a.copy(), v\n", scope)
        compiled = tcompile.compile(scope["f"], backend="eager")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for _ in range(2):
                want, got = outcome(scope["f"], make()), outcome(compiled, make())
                assert str(got) == str(want), write


@pytest.mark.parametrize("backend", ["eager", "aot_eager", "llvm"])
@pytest.mark.parametrize("view", ["x.transpose()", "x.T", "x[...]", "x.reshape(1)"])
def test_views_of_rank_zero_show_what_was_written(backend, view):
    """NumPy's functions give a scalar where an array of rank 0 is written; its views are views of one array."""
    names = {"np": np}
    exec(f"def f(a):\n    x = np.array(a)\n    v = {view}\n    x += 1\n    return v, x\n", names)
    compiled = tcompile.compile(names["f"], backend=backend)
    for _ in range(2):
        v, x = compiled(2)
        assert np.shares_memory(v, x) and v == 3 and x == 3
