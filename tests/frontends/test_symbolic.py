"""Sizes and Python numbers that are known at run time only: one graph, several shapes and values."""

from __future__ import annotations

import numpy as np
import pytest

from tcompile.frontends.base import Builder, CannotCapture, Traced, TracedNumber
from tcompile.graph import ScalarType, TensorType
from tcompile.graph.types import Layout
from tcompile.graph.verify import verify
from tcompile.numpy_versions import HAS_MATVEC

from .harness import FRONTEND, Namespace, Proxy, compare, leaves, unwrap

PROGRAMS = [
    "x + 1", "x * x.shape[0]", "x / n", "n - x", "x.sum()", "x.mean(axis=0)", "np.var(x, axis=1)", "x.std()",
    "x.max(axis=-1, keepdims=True)", "x.argmax()", "x.argmin(0)", "np.prod(x, 1)",
    "x.reshape(-1)", "x.reshape(x.shape[1], x.shape[0])", "np.reshape(x, (x.size,))", "x.T", "x.T + x.T",
    "x[1:]", "x[:-1]", "x[1:-1, :2] * 2", "x[::2]", "x[::-1]", "x[0]", "x[-1]", "x[0, -1]",
    "x[:n]", "x[n:]", "x[n]", "x[:, None] + x", "np.diff(x, axis=0)", "np.zeros(x.shape)", "np.zeros_like(x)",
    "np.ones(n)", "np.full((n, 2), 1.5)", "np.arange(n)", "np.arange(n) * 2 + x[0, 0]", "np.arange(0, n, 2)",
    "np.linspace(0, 1, n)", "np.eye(n)", "np.concatenate([x, x])", "np.concatenate([x, x[:1]], axis=0)",
    "np.stack([x, x])", "x @ x.T", "x.T @ x", "np.dot(x, x.T)", "np.outer(x[0], x[1])",
    "np.where(x > 0, x, n)", "np.clip(x, 0, n)",
    "np.broadcast_to(x[0], x.shape)", "np.expand_dims(x, 0)", "np.squeeze(x)", "np.cumsum(x, 0)",
    "np.sort(x)", "np.roll(x, 1, 0)", "np.repeat(x, 2)", "np.tile(x, 2)", "np.linalg.norm(x)",
    "np.float64(n) * x", "np.sqrt(n)", "np.sqrt(n) + x",
    "np.asarray(n)", "np.array([n, 1, 2])", "np.maximum(x, n)", "np.maximum(n, 3)", "x ** 2", "x // n",
    "x % n", "np.tril(x)", "np.convolve(x[0], x[1])", "np.fft.rfft(x)", "np.meshgrid(x[0], x[:, 0])",
    "np.einsum('ij,kj->ik', x, x)",
    "x.shape, x.size, x.nbytes, x.ndim", "np.median(x)", "np.full_like(x, n)", "np.full(3, n)",
    "x.ravel()[n]", "np.flip(x, 0)", "np.split(x, 1)", "np.percentile(x, 10, axis=0)", "x > n",
    "(x > 0).sum()", "np.count_nonzero(x, axis=0)",
    "np.nanmax(x, axis=0)", "np.nanmean(x, 1)", "np.nanvar(x)", "np.nanmedian(x, axis=1)", "np.trapezoid(x, axis=0)",
    "np.gradient(x)", "np.gradient(x, axis=1)", "np.pad(x, 1)", "np.pad(x, ((1, 2), (0, 3)), 'edge')",
    "np.kron(x, x[:2])",
    "np.cov(x)", "np.cov(x, rowvar=False)", "np.corrcoef(x)", "np.histogram(x, 4)", "np.digitize(x, [1, 3])",
    "np.interp(x, [0, 5, 9], [1.0, 2, 3])", "np.correlate(x[0], x[1])", "np.correlate(x[0], x[:, 0], 'full')",
    "np.convolve(x[0], x[:, 0], 'same')", "np.convolve(x[0], x[:, 0], 'valid')", "np.partition(x, 1)",
    "np.lexsort((x, x))",
    "np.searchsorted(np.sort(x[0]), x)", "np.take(x, [0, 1], 1)", "np.take(x, 0)",
    "np.take_along_axis(x, np.argsort(x), 1)",
    "np.select([x > 4, x > 2], [x, 1], 0)", "np.packbits(x > 3)", "np.packbits(x > 3, axis=1)", "np.tril(x[0])",
    "np.diag(x[0])", "np.diag(x[0], 2)", "np.diag(x)", "np.diagonal(x, 1)", "np.trace(x)", "np.diagflat(x)",
    "np.vander(x[0], 3)", "np.vander(x[0])", "np.asfortranarray(x)", "np.rot90(x)", "np.ediff1d(x)",
    "np.diff(x, 2, 0)",
    "np.diff(x, append=0)", "np.diff(x, 9)", "np.append(x, x[0])", "np.append(x, x, 0)", "np.inner(x, x)",
    "np.vdot(x, x)",
    "np.tensordot(x, x, ([1], [1]))", "np.vecdot(x, x)", "np.linalg.pinv(x)",
    "np.linalg.svd(x)",
    "np.linalg.svd(x, full_matrices=False)", "np.linalg.qr(x)", "np.linalg.inv(x @ x.T + np.eye(x.shape[0]))",
    "np.linalg.solve(x @ x.T + np.eye(x.shape[0]), x)", "np.linalg.eigvalsh(x @ x.T)", "np.linalg.norm(x, axis=0)",
    "np.linalg.matrix_rank(x)", "np.fft.fft(x, axis=0)", "np.fft.irfft(x)", "np.fft.irfft2(x)",
    "np.fft.fftn(x, (4, 4), (0, 1))",
    "np.fft.fftshift(x)", "np.unwrap(x, axis=0)", "np.isclose(x, 3)", "np.isin(x, [1, 2])",
    "np.average(x, weights=x)",
    "np.sum(x, where=x > 3)", "np.max(x, 0, initial=4)", "np.add.accumulate(x, 1)", "np.add.reduceat(x, [0, 2])",
    "np.multiply.outer(x, x[0])", "np.meshgrid(x[0], x[:, 0], sparse=True)",
    "np.cumulative_sum(x, axis=0, include_initial=True)",
    "np.unravel_index(np.argmax(x, 0), (5, 7))", "np.modf(x / 2)", "np.polyfit(x[:, 0], x, 1)",
    "np.polyval([1, 2, 3], x)",
    "np.polyadd(x[0], x[:, 0])", "np.poly(x[0])", "np.triu_indices_from(x)", "np.diag_indices(n)", "np.hanning(n)",
    "np.tri(n)", "np.linspace(x[0], x[1], n)", "np.resize(x, (n, 3))", "np.delete(x, 1, 0)",
    "np.quantile(x, [0.1, 0.5], axis=0)",
    "np.empty_like(x).shape", "np.empty((n, 2)).shape", "x.flatten('F')", *["np.matvec(x, x[0])"] * bool(HAS_MATVEC),
]  # fmt: skip


def captured(program, x, n):
    b = Builder()
    sizes = tuple(b.env.symbol(s, minimum=2) for s in x.shape)
    layout = Layout.c(2) if x.flags.c_contiguous else Layout((1, 2))
    traced = Proxy(b, Traced(b.graph.input("x", TensorType(x.dtype, sizes, layout))))
    number = b.env.symbol(n)
    b.graph.input("n", ScalarType("int", number))
    function = eval(f"lambda np, x, n: ({program})")
    return b, number, unwrap(function(Namespace(b), traced, number))


@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.parametrize("dtype", ["f4", "i4"])
@pytest.mark.parametrize("order", ["C", "F"])
def test_one_graph_for_many_shapes(program, dtype, order):
    rng = np.random.default_rng(0)

    def data(shape):
        return np.asarray(rng.integers(1, 9, shape), dtype, order=order)

    x = data((5, 7))
    try:
        b, _, results = captured(program, x, 3)
    except CannotCapture:
        return
    b.graph.outputs = [r.node for r in leaves(results) if isinstance(r, Traced)]
    verify(b.graph)
    function = eval(f"lambda np, x, n: ({program})")
    held = 0
    for shape, n in [((5, 7), 3), ((5, 7), 2), ((9, 4), 3), ((7, 7), 5), ((4, 12), 2)]:
        values = {"s0": shape[0], "s1": shape[1], "s2": n}
        # A guard is Python text over the symbols; where one fails, the graph is not for this call.
        if any(eval(relation, {}, values) != holds for relation, holds in b.env.guards.items()):
            continue
        held += 1
        y = data(shape)
        try:
            expected = function(np, y, n)
        except Exception as error:
            with pytest.raises(type(error)):
                b.graph(y, n)
            continue
        outputs = iter(b.graph(y, n))
        for result, plain in zip(leaves(results), leaves(expected), strict=True):
            if isinstance(result, Traced):
                found = next(outputs)
                node_type = result.node.tensor
                shape_found = tuple(s if isinstance(s, int) else s.evaluate(values) for s in node_type.shape)
                static = Traced(_with_shape(result.node, shape_found), result.scalar)
                compare(static, found, plain, True, [y])
            else:
                seen = result if isinstance(result, int | str | tuple) else result.evaluate(values)
                if isinstance(seen, tuple):
                    seen = tuple(s if isinstance(s, int) else s.evaluate(values) for s in seen)
                assert seen == plain
    assert held


def _with_shape(node, shape):
    from tcompile.graph import Node

    type = TensorType(node.tensor.dtype, shape, node.tensor.layout)
    return Node(node.op, node.operands, node.attrs, type, node.name)


def test_most_programs_are_captured():
    refused = []
    for program in PROGRAMS:
        try:
            captured(program, np.ones((5, 7), "f4"), 3)
        except CannotCapture:
            refused.append(program)
    assert refused == []


FLOATS = [
    "x * f", "f - x", "f / x", "x + f", "np.maximum(x, f)", "np.where(x > f, x, f)", "np.sqrt(f)",
    "np.float64(f)", "np.float32(f)", "np.sqrt(f) * x", "np.add(f, f)", "np.asarray(f)", "np.array([f, 1])",
    "np.full(3, f)", "np.full_like(x, f)", "x > f", "x ** f", "f ** x", "np.power(x, f)", "np.clip(x, f, 5)",
    "x // f", "np.sum([f, 2.0])", "np.isscalar(f)", "np.result_type(x, f)", "np.exp(f)",
]  # fmt: skip


@pytest.mark.parametrize("program", FLOATS)
@pytest.mark.parametrize("dtype", ["f4", "f8", "i4", "?", "f2"])
def test_numbers_known_at_run_time(program, dtype):
    x = np.array([[1, 2, 0], [3, 1, 5]]).astype(dtype)
    b = Builder()
    traced = Proxy(b, Traced(b.graph.input("x", FRONTEND.type_of(x))))
    number = TracedNumber(b.graph.input("f", ScalarType("float")))
    function = eval(f"lambda np, x, f: ({program})")
    try:
        results = unwrap(function(Namespace(b), traced, number))
    except CannotCapture as error:
        assert program in ("x ** f", "np.array([f, 1])") or (program == "x // f" and dtype == "?"), error
        return
    except TypeError:
        return  # Python's own operator between a number and a number
    b.graph.outputs = [r.node for r in leaves(results) if isinstance(r, Traced)]
    for f in (2.0, 0.5, -1.5, 0.0):
        with np.errstate(all="ignore"):
            outputs = iter(b.graph(x, f))
            for result, plain in zip(leaves(results), leaves(function(np, x, f)), strict=True):
                if isinstance(result, Traced):
                    compare(result, next(outputs), plain, True, [])
                else:
                    assert result == plain
