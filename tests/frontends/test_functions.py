"""Reductions, shapes, indexing, joining, creation and opaque calls against NumPy, over dtypes, kinds and
memory orders."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from .harness import check
from .test_ufuncs import LAYOUTS, sample

DTYPES = ["?", "i1", "u2", "i4", "i8", "u8", "f2", "f4", "f8", "c16"]
REDUCTIONS = (
    "sum prod max min amax amin mean var std any all argmax argmin count_nonzero ptp nansum median average"
).split()


ARGUMENTS = [
    "", ", axis=0", ", 1", ", axis=-1",
    ", axis=(0, 2)", ", axis=None, keepdims=True", ", axis=1, keepdims=True", ", axis=()",
]  # fmt: skip


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("name", REDUCTIONS)
def test_reduction(name, layout):
    exact = name not in ("mean", "var", "std", "average")
    for dtype in DTYPES:
        x = LAYOUTS[layout](sample(dtype, (2, 3, 4)))
        for arguments in ARGUMENTS:
            check(f"np.{name}(x{arguments})", x, exact=exact)
    if name not in ("amax", "amin", "count_nonzero", "ptp", "nansum", "median", "average"):
        assert check(f"x.{name}()", LAYOUTS[layout](sample("f4", (2, 3, 4)))) is not None


@pytest.mark.parametrize("text", [
    "(x[1:] + x[:-1]).sum(0)", "x[1:].copy('K').sum(axis=0) + 1", "np.where(x[1:] > 1, x[1:], 2).all(0)",
    "x[1:].astype('f8').any(axis=0)", "np.trapezoid(x, axis=0)",
])  # fmt: skip
def test_what_has_no_elements_has_no_memory_order(text):
    assert check(text, sample("u1", (2, 16, 1)).swapaxes(0, -1)) is not None


@pytest.mark.parametrize("name", REDUCTIONS)
@pytest.mark.parametrize("shape", [(), (1,), (0,), (0, 3), (3, 0), (1, 1), (5, 1)])
def test_reduction_of_small_shapes(name, shape):
    for dtype in DTYPES:
        for arguments in ("", ", axis=0", ", keepdims=True", ", axis=-1"):
            check(f"np.{name}(x{arguments})", sample(dtype, shape), exact=False)
    check(f"np.{name}(x)", np.float32(3))
    check(f"np.{name}(x)", np.int8(3))


@pytest.mark.parametrize(
    "text",
    [
        "np.sum(x, dtype='f8')", "np.sum(x, 0, 'f4')", "x.sum(dtype='i4')", "x.mean(dtype='f8')",
        "x.mean(0, 'f4')",
        "np.var(x, ddof=1)", "np.std(x, 0, ddof=1.5)", "np.std(x, correction=1)", "np.var(x, ddof=100)",
        "np.var(x, dtype='f8')",
        "np.sum(x, out=None)", "np.sum(x, where=True)", "np.sum(x, initial=3)", "np.percentile(x, 30)",
        "np.quantile(x, 0.5, axis=1)",
        "np.percentile(x, 30, axis=(0, 1))", "np.add.reduce(x)", "np.add.reduce(x, axis=None)",
        "np.maximum.reduce(x, 1)",
        "np.multiply.reduce(x)", "np.logical_or.reduce(x)", "np.subtract.reduce(x)", "np.sum(x, axis=5)",
        "np.sum([1, 2])",
        "np.sum([x[0, 0], 2])", "np.sum((x, x))", "np.max(x, -1).sum()",
    ],
)  # fmt: skip
def test_reduction_arguments(text):
    for dtype in DTYPES:
        check(text, sample(dtype), exact=False)


SHAPES = [
    "x.reshape(-1)", "x.reshape(6, 4)", "x.reshape((4, -1))", "np.reshape(x, (2, 3, 2, 2))",
    "x.reshape(x.shape)", "x.reshape(24, 1)",
    "np.reshape(x, -1)", "x.reshape(5, 5)", "x.reshape(2, 12)", "x.reshape(2, 3, 4, 1)",
    "x.reshape(1, 2, 3, 4)", "x.ravel()",
    "np.ravel(x)", "x.flatten()", "x.T", "x.mT", "np.transpose(x)", "x.transpose(1, 0, 2)",
    "x.transpose((2, 0, 1))",
    "np.transpose(x, (0, -1, 1))", "x.swapaxes(0, 1)", "np.swapaxes(x, 0, -1)", "np.moveaxis(x, 0, -1)",
    "np.moveaxis(x, (0, 1), (1, 2))", "np.rollaxis(x, 2)", "np.squeeze(x)", "x.squeeze()",
    "x[:, :1].squeeze()", "x[:1].squeeze(0)",
    "x.squeeze(axis=1)", "np.expand_dims(x, 0)", "np.expand_dims(x, -1)", "np.expand_dims(x, (0, 2))",
    "np.broadcast_to(x, (5, 2, 3, 4))",
    "np.broadcast_to(x, x.shape)", "np.broadcast_to(x[:1], (7, 3, 4))", "np.broadcast_to(x, (3, 4))",
    "np.atleast_1d(x)", "np.atleast_2d(x[0, 0])",
    "np.atleast_3d(x[0])", "np.atleast_3d(x[0, 0])", "np.atleast_1d(x[0, 0, 0])", "np.atleast_2d(x, x[0, 0])",
    "np.flip(x)", "np.flip(x, 0)",
    "np.flip(x, (0, 2))", "np.fliplr(x)", "np.flipud(x)", "x.view()", "np.split(x, 3, 1)",
    "np.split(x, [1, 2], axis=-1)",
    "np.array_split(x, 2, 1)", "np.hsplit(x, 3)", "np.vsplit(x, 2)", "np.split(x, 5)",
    "np.matrix_transpose(x)", "x.real", "x.conj()", "np.real(x)",
    "np.asarray(x)", "np.asanyarray(x)", "np.ascontiguousarray(x)", "np.ascontiguousarray(x[0, 0, 0])",
    "np.array(x)", "np.array(x, copy=True)",
    "np.copy(x)", "x.copy()", "x.copy('K')", "np.asarray(x, dtype='f4')", "np.asarray(x, dtype=x.dtype)",
    "np.array(x, 'i8')",
    "x.astype('f4')", "x.astype(np.int64)", "x.astype(bool)", "x.astype(x.dtype)",
    "x.astype(x.dtype, copy=False)", "x.astype('f8', casting='safe')",
    "np.float64(x)", "np.float32(x)", "np.int8(x[0, 0, 0])", "np.zeros_like(x)",
    "np.ones_like(x, dtype='i4')", "np.full_like(x, 3)",
    "np.full_like(x, 2.5)", "np.asarray(x[0, 0, 0])", "np.array(x[0, 0, 0])", "x[0, 0, 0].copy()",
    "x[0, 0, 0].astype('f4')", "x[0, 0, 0].T",
    "x[0, 0, 0].reshape(1)", "x[0, 0, 0].reshape(())", "x[0, 0, 0].squeeze()", "x[0, 0, 0].flatten()",
    "x[0, 0, 0].ravel()", "x[0, 0, 0].real",
    "x[0, 0, 0][()]", "x[0, 0, 0][...]", "np.isscalar(x[0, 0, 0])",
    "x.shape, x.ndim, x.size, x.dtype, x.itemsize, x.nbytes, len(x)",
    "np.shape(x), np.ndim(x), np.size(x), np.size(x, 1), np.isscalar(x), np.result_type(x, 'f4', 1.0)",
    "np.finfo(np.float32).max",
    "np.iscomplexobj(x), np.isrealobj(x), np.can_cast(x, 'f8'), np.dtype('f4'), np.promote_types(x.dtype, 'i8')",
    "np.float32(2), np.int8(3)",
    "np.broadcast_shapes((3, 1), (4,))", "x[0, 0, 0].dtype, x[0, 0, 0].shape, x[0, 0, 0].ndim",
]  # fmt: skip


@pytest.mark.parametrize("text", SHAPES)
def test_shape(text):
    for layout, dtype in itertools.product(LAYOUTS, ["?", "i4", "f4", "f8", "c8"]):
        check(text, LAYOUTS[layout](sample(dtype, (2, 3, 4))))
    for shape in [(), (1,), (3,), (0,), (1, 1), (0, 3)]:
        check(text, sample("f4", shape))
    check(text, np.float32(3))


def test_shape_is_captured():
    refused = [t for t in SHAPES if check(t, sample("f4", (2, 3, 4))) is None]
    assert refused == [
        "x.reshape(5, 5)", "x.squeeze(axis=1)", "np.broadcast_to(x, (3, 4))", "np.split(x, 5)",
    ]  # fmt: skip


KEYS = [
    "0", "-1", "1, 2", "0, 0, 0", "-1, -1, -1", "...", "..., 0", "0, ...", "0, ..., 0", "0, 1, 2, ...", ":",
    "::-1", "1:", ":-1", "::2", "5:1",
    "1:2, :, 1:3", ":, ::-1, ::2", "None", ":, None", "None, 0, None", "..., None", "0, 0, 0, None", "()",
    "10", "0, 0, 0, 0", "[0, 1]", "True", "1.5",
    "-100:100", "::-2, 1", "slice(None), slice(0, 0)", "np.int64(1)", "1, np.int8(0):2", "..., ...", "0:1",
    "0:1, 0", ":, 0:1, 0", ":, :, :-1", "1:, :-1",
    "::5", "::-1, 0, 0", "2:0:-1", "-1:-3:-1",
]  # fmt: skip


@pytest.mark.parametrize("key", KEYS)
def test_index(key):
    for layout in LAYOUTS:
        check(f"x[{key}]", LAYOUTS[layout](sample("f4", (2, 3, 4))))
        check(f"x[{key}] + 1", LAYOUTS[layout](sample("f4", (2, 3, 4))))
    for shape in [(), (1,), (3,), (0,), (1, 4), (2, 1, 3), (0, 2, 3)]:
        check(f"x[{key}]", sample("f4", shape))
    check(f"x[{key}]", np.float64(2))
    check(f"x[{key}]", np.array([1, 2, 3])[1])


def test_index_is_captured():
    refused = [k for k in KEYS if check(f"x[{k}]", sample("f4", (2, 3, 4))) is None]
    assert refused == ["10", "0, 0, 0, 0", "True", "1.5", "..., ..."]


JOINS = [
    "np.concatenate([x, y])", "np.concatenate((x, y), axis=1)", "np.concatenate((x, y), axis=None)",
    "np.concatenate((x, y), dtype='f8')",
    "np.concatenate((x, 3))", "np.stack([x, y])", "np.stack((x, y), -1)", "np.stack((x, y), 1)",
    "np.vstack([x, y])", "np.hstack([x, y])",
    "np.dstack((x, y))", "np.column_stack((x, y))", "np.vstack((x[0], y[0]))", "np.hstack((x[0], y[0]))",
    "np.dstack((x[0], y[0]))",
    "np.column_stack((x[0], y[0]))", "np.column_stack((x[0], y.T))", "np.hstack((x[0, 0], y[0, 0]))",
    "np.stack((x[0, 0], y[0, 0]))", "np.stack([x[0, 0], 3])",
    "np.concatenate([x])", "np.concatenate([x, y, x[:1]])", "np.concatenate([])",
    "np.array([x[0, 0], y[0, 0], 2.5])", "np.array([[x[0, 0], 1], [2, 3]])",
    "np.array([x, y])", "np.array([[x, y], (y, x)])", "np.array((x, y), 'f8')", "np.asarray([x])",
    "np.meshgrid(x[0], y[0])", "np.meshgrid(x[0], y[:, 0], indexing='ij')",
    "np.meshgrid(x[0], y[0], x[:, 0])",
]  # fmt: skip


@pytest.mark.parametrize("text", JOINS)
def test_join(text):
    two = ["c", "f", "cut", "reversed", "broadcast", "column"]
    for a, c in itertools.product(["?", "i4", "u8", "f4", "f8"], ["?", "i4", "f4"]):
        check(text, sample(a), sample(c))
    for left, right in itertools.product(two, two):
        x, y = LAYOUTS[left](sample("f4", (3, 4, 2))), LAYOUTS[right](sample("f4", (3, 4, 2)))
        check(text, x, y)
        check(text, x[:, :, 0], y[:, :, 0])
    refused = check(text, sample("f4"), sample("f4")) is None
    assert refused == (text in ("np.concatenate((x, 3))", "np.concatenate([])"))


CREATIONS = [
    "np.zeros(3)", "np.zeros((2, 3), 'i4')", "np.ones((2, 3), dtype=bool)", "np.zeros((2, 3), order='F')",
    "np.ones([2, 3])", "np.zeros(())",
    "np.full((2, 2), 7)", "np.full((2, 2), 7.5)", "np.full(3, 7, 'u1')", "np.full(3, 300, 'u1')",
    "np.full(3, True)", "np.full((2,), x[0])", "np.full(2, x)",
    "np.full(3, np.float32(2))", "np.full((2,), np.float64(2.5), 'f4')", "np.arange(5)", "np.arange(2, 9, 3)",
    "np.arange(9, 2, -2)", "np.arange(0.0, 1.0, 0.1)",
    "np.arange(5.5)", "np.arange(5, dtype='f4')", "np.arange(1, 5, dtype='u1')", "np.arange(5, 1)",
    "np.arange(2, 9, step=3)", "np.arange(start=2, stop=9)",
    "np.arange(3, dtype=bool)", "np.arange(0, 5, 0)", "np.linspace(0, 1)", "np.linspace(0, 10, 7)",
    "np.linspace(0, 1, 5, endpoint=False)", "np.linspace(1, 2, 4, dtype='f4')",
    "np.linspace(0, 10, 5, dtype='i4')", "np.linspace(0, 1, 1)", "np.linspace(0, 1, 0)",
    "np.linspace(0, 1, retstep=True)", "np.eye(3)", "np.eye(2, 4, 1, 'i4')", "np.identity(3)",
    "np.identity(2, 'f4')", "np.empty(3).shape", "np.ndarray((2, 3)).shape",
    "np.ndarray(4, dtype='f4').dtype", "np.ndarray((2, 3), order='F').flags.f_contiguous",
    "np.empty_like(x).dtype", "np.array(3)", "np.array(3.5, 'f4')",
    "np.array([1, 2, 3])", "np.array([[1.5, 2], [3, 4]], 'f4')", "np.asarray([1, 2])",
    "np.array([1, 'a'])", "np.array([[1], [2, 3]])", "np.array([], 'f4')", "np.array([300], 'u1')",
    "np.asarray(2.5)", "np.asarray(np.float32(2))", "np.zeros(-1)",
    "np.zeros(x.shape)", "np.ones(x.shape[0], x.dtype)", "np.zeros_like(2)", "np.random.rand(3)",
    "np.full_like(x, x[0])", "np.zeros(3, 'O')", "np.zeros(3, 'M8[s]')", "np.zeros(3, '>f4')",
    "np.asarray(x, order='C')", "np.asarray(x, order='F')", "np.array(x, ndmin=2)", "np.zeros(2, 'c8')",
    "np.float32('2')", "np.bool_(x[0])", "np.float64(x[0])", "np.int32(2.7)", "np.uint8(300)",
]  # fmt: skip


@pytest.mark.parametrize("text", CREATIONS)
def test_creation(text):
    for dtype in ["?", "i4", "f4", "f8", "c8"]:
        check(text, sample(dtype, (3,)))


CALLS = [
    "np.cumsum(x)", "np.cumsum(x, 0)", "x.cumsum(axis=1)", "np.cumprod(x, -1)", "np.cumsum(x, 1, dtype='f8')",
    "np.sort(x)", "np.sort(x, 0)", "np.sort(x, None)", "np.argsort(x)",
    "x.argsort(0)", "np.argsort(x, kind='stable')", "np.diff(x)", "np.diff(x, axis=0)", "np.diff(x, 2)",
    "np.diff(x, 0)", "np.tril(x)", "np.triu(x, 1)", "np.roll(x, 1)", "np.roll(x, 2, 0)",
    "np.roll(x, (1, -1), (0, 1))", "np.repeat(x, 3)", "np.repeat(x, 2, axis=1)", "x.repeat(2, 0)",
    "np.tile(x, 2)", "np.tile(x, (2, 1))", "np.tile(x, (2, 1, 3))", "np.take(x, [0, 1])",
    "np.take(x, [0, 2], axis=1)", "x.take([[0, 1], [2, 0]], 0)", "np.take(x, [100])", "np.take(x, 1)",
    "np.searchsorted(np.array([1.0, 2.0, 5.0]), x)", "np.searchsorted(x[0], 2)", "np.isclose(x, y)",
    "np.isclose(x, 1.0)", "np.convolve(x[0], y[0])", "np.convolve(x[0], y[0], 'same')",
    "np.convolve(x[0], y[0][:2], mode='valid')", "np.linalg.norm(x)", "np.linalg.norm(x, axis=1)",
    "np.linalg.norm(x[0])",
    "np.linalg.norm(x[0], 1)", "np.linalg.norm(x, axis=0, ord=np.inf)",
    "np.interp(x, [0.0, 1.0, 2.0], [5, 6, 7])", "np.nan_to_num(x)", "np.nan_to_num(x, nan=1.0)",
    "np.round(x, 2)", "x.round()", "np.where(x > 1, x, y)",
    "np.where(x > 1, 1, 0)", "np.where(x > 1, 1.0, y)", "np.where(x, x, 2.5)", "np.where(x)",
    "np.where(True, x, y)", "np.where(x[0, 0] > 1, x[0, 0], 2)", "np.clip(x, 0, 1)", "np.clip(x, 0.5, None)",
    "x.clip(1)", "np.clip(x, 1)", "x.clip(a_min=1)", "np.clip(x, min=1)", "np.clip(x, 0, 2, min=1)",
    "x.swapaxes(axis1=0, axis2=1)",
    "np.dot(a=x, b=y.T)", "np.outer(x, b=y)", "x.clip(max=2)",
    "np.clip(x, y, y + 1)", "np.clip(x, -1000, 1000)", "x.clip(min=0, max=3)", "np.clip(x, None, None)",
    "x @ y.T", "np.matmul(x, y.T)", "np.dot(x, y.T)", "x.dot(y[0])", "x[0] @ y[0]", "x @ y[0]", "x[0] @ y.T",
    "np.dot(x[0], y[0])", "np.dot(x, 2)",
    "np.inner(x, y)", "np.outer(x[0], y[0])", "np.outer(x, y)", "np.vdot(x, y)",
    "np.tensordot(x, y, axes=([1], [1]))", "np.tensordot(x, y, 2)", "np.tensordot(x, y.T, 1)",
    "np.tensordot(x[1:, :2], y[1:, :2])", "np.tensordot(x[:, ::-1], y, ([0, 1], [0, 1]))", "np.tensordot(x, y, (0, 0))",
    "np.tensordot(x, y, ([-1], [1]))", "np.tensordot(x, y, 3)", "np.tensordot(x, y, ([0], [0, 1]))",
    "np.linalg.det(x[:3, :3])", "np.linalg.inv(x[:3, :3] + np.eye(3) * 9)",
    "np.linalg.solve(x[:3, :3] + np.eye(3) * 9, y[:3, 0])", "np.linalg.inv(np.zeros((2, 2)) * x[0, 0])",
    "np.linalg.cholesky(np.eye(3) + 0 * x[:3, :3])", "np.trace(x)", "x.trace(1)", "np.fft.fft(x)",
    "np.fft.rfft(x)", "np.fft.ifft(x, norm='ortho')",
    "np.unique(x)", "np.nonzero(x)", "x.nonzero()", "np.allclose(x, y)", "x.item()", "x.tolist()",
    "np.median(x, axis=0)", "x @ 2", "x[0, 0] @ y",
    "np.linalg.eig(x)", "np.einsum('ij,ij->i', x, y)",
    "np.einsum('ij,kj', x, y)", "np.einsum('ij->', x)", "np.einsum('ij->ji', x)",
    "np.einsum('...j,...j', x, y)", "np.einsum('ij,j->i', x, y[0])", "np.cross(x[:, :3], y[:, :3])",
    "np.kron(x, y)", "np.polyval([1.0, 2.0], x)", "np.gradient(x[0])",
]  # fmt: skip


@pytest.mark.parametrize("text", CALLS)
def test_call(text):
    loose = any(n in text for n in ("fft", "solve", "inv", "det"))
    for a, c in itertools.product(["?", "i1", "i4", "u8", "f2", "f4", "f8", "c16"], ["i4", "f4"]):
        check(text, sample(a), sample(c), exact=not loose)
    orders = ["c", "f", "cut", "reversed", "broadcast", "column", "row"]
    for left, right in itertools.product(orders, orders[:3]):
        x, y = (LAYOUTS[k](sample("f4", (3, 4, 5))) for k in (left, right))
        for p, q in ((x, y), (x[:, :, 0], y[:, :, 0]), (x.T[0], y[0])):
            check(text, p, q, exact=not loose)


LOOKS = ["np.matmul(x, y.swapaxes(-1, -2))", "x @ y.swapaxes(-1, -2)", "x[0] @ y[0].mT", "x @ y[0, 0].T"]


@pytest.mark.parametrize("text", LOOKS)
@pytest.mark.parametrize("order", list(itertools.permutations(range(4))))
def test_matmul_of_stacks(text, order):
    base = sample("f4", (2, 3, 4, 5))
    back = tuple(np.argsort(order))
    x = np.ascontiguousarray(base.transpose(order)).transpose(back)
    assert check(text, x, base) is not None
    assert check(text, x, x) is not None
    check(text, x, x.astype("f8"))
    check(text, x[::2], x[:1])
