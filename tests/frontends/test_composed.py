"""Norms along an axis and triangles are fused; every other norm and triangle stays NumPy's call."""

from __future__ import annotations

import numpy as np
import pytest
from differential import check

import tcompile

X = np.random.default_rng(0).standard_normal((4, 5, 6))
LAYOUTS = {
    "c": lambda: X.copy(), "f": lambda: np.asfortranarray(X), "cut": lambda: np.repeat(X, 2, 1)[:, ::2],
    "turned": lambda: X.transpose(1, 0, 2), "reversed": lambda: X[::-1, :, ::-1],
    "broadcast": lambda: np.broadcast_to(X[:1, :, :1], (4, 5, 6)), "empty": lambda: X[:, :0].copy(),
}  # fmt: skip
FUSED = [
    lambda x: np.linalg.norm(x, axis=1) * 2, lambda x: np.linalg.norm(x + 1, axis=-1, keepdims=True),
    lambda x: x / (1 + np.linalg.norm(x, 2, 0)), lambda x: np.linalg.norm(x, ord=1, axis=(2,)),
    lambda x: np.linalg.norm(x[0, 0], axis=0), lambda x: np.tril(x), lambda x: np.triu(x, 1) + 1,
    lambda x: np.tril(x[0], -2), lambda x: np.triu(x[0].T, k=-1), lambda x: np.tril(x > 0) | np.triu(x < 1, 2),
    lambda x: np.where(np.tril(np.ones(x.shape[1:], dtype=bool)), x, -np.inf),
    lambda x: np.linalg.norm(x) + 1, lambda x: np.linalg.norm(x[0]) + 1, lambda x: np.linalg.norm(x[0] * 2, "fro"),
    lambda x: np.diag(x[0, 0]) * 2, lambda x: np.diag(x[0, 0] > 0), lambda x: np.diag(x[0]) + 1,
    lambda x: np.linalg.norm(x[0, 0]) * 2, lambda x: np.linalg.norm(x[0, 0] * 2, 2), lambda x: np.linalg.norm(x.T),
    lambda x: np.linalg.norm(x[0, :, 0]) + 1, lambda x: np.linalg.norm(x[0, 0, ::-1]),
    lambda x: np.linalg.norm(x[0, 0], np.inf) + np.linalg.norm(x[0, 0], 1), lambda x: np.linalg.norm(x, np.inf, 1),
    lambda x: np.gradient(x, 0.3, edge_order=2, axis=-1), lambda x: np.gradient(x, 2, 0.5, edge_order=2, axis=(1, 2)),
    lambda x: np.cross(x[..., :3], x[..., 3:]), lambda x: np.cross(x[..., :3], x[0, 0, 1:4], axisc=0) * 2,
    lambda x: np.cross(x[0, 0, :3], x[0, 1, :3]), lambda x: np.kron(x[0] + 1, x + 2),
    lambda x: np.kron(x[0, 0] * 2, x[0]),
]  # fmt: skip
CALLS = [
    lambda x: np.linalg.norm(x, 3, axis=0) + 1, lambda x: np.linalg.norm(x[0, 0], -np.inf) + 1,
    lambda x: np.linalg.norm(x, axis=(0, 1)) + 1, lambda x: np.tril(x[0, 0]) + 1,
    lambda x: np.linalg.norm(x, -np.inf, axis=0) + 1,
    lambda x: np.gradient(x[0, 0], x[0, 0] * 0 + np.arange(6.0) ** 2) + 1,
]  # fmt: skip


def calls(compiled):
    final = [entry.compiled_graph.schedule.graph for entry in compiled.entries]
    return any(node.op.name == "call" for graph in final for node in graph.nodes)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("number", range(len(FUSED)))
def test_fused(number, layout):
    (*_, compiled) = check(FUSED[number], lambda: (LAYOUTS[layout](),), calls=1)
    if layout == "c":
        assert not calls(compiled)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("number", range(len(CALLS)))
def test_calls(number):
    (*_, compiled) = check(CALLS[number], lambda: (X.copy(),), calls=1)
    assert calls(compiled)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("dtype", ["f4", "f2", "i4", "u1", "?", "c8", "c16"])
@pytest.mark.parametrize("number", range(len(FUSED)))
def test_dtypes(number, dtype):
    check(FUSED[number], lambda: ((X * 3).astype(dtype),), calls=1)


def test_bits():
    special = np.array([[0.0, -0.0, np.nan], [np.inf, -np.inf, -0.0], [1e308, 1e-310, -1.0]])
    check(lambda x: (np.tril(x), np.triu(x), np.tril(-x, -1)), lambda: (special.copy(),), exact=True)
    check(lambda x: np.linalg.norm(x[:, 1:2], axis=1) * 1.5, lambda: (special.copy(),), exact=True)


@pytest.mark.parametrize("call", [
    lambda x: np.linalg.norm(x, axis=3), lambda x: np.linalg.norm(x, axis=1.5), lambda x: np.tril(x, 0.5),
    lambda x: np.triu(x[0, 0, 0]), lambda x: np.linalg.norm(x, "fro", axis=0), lambda x: np.gradient(x[0, 0, 0]),
    lambda x: np.gradient(x, axis=(0, 0)), lambda x: np.gradient(x, 1, 2), lambda x: np.gradient(x[:1]),
    lambda x: np.gradient(x[0], 0), lambda x: np.gradient(x[0] > 0), lambda x: np.gradient(x[0, :2]),
])  # fmt: skip
def test_errors_are_numpy_s(call):
    check(call, lambda: (X.copy(),), calls=1)


@pytest.mark.parametrize("dtype", ["float64", "uint8", "complex128", "bool"])
def test_reductions_of_no_elements_lie_as_the_strides_say(dtype):
    def f(x):
        return x.all(0), x.sum(0), x.any((0, 1)), x.prod(0) + 1

    check(f, lambda: (np.moveaxis(np.ones((4, 3, 2, 2), dtype), 0, -1)[:0],), backends=("eager", "llvm"))


def test_numbers_that_vary_stay_weak_in_selections():
    def f(x, d):
        return np.select([x > 1], [x], d), np.select([x > 1, x < 0], [d, x])

    x = np.array([0.5, 1.5, 2.5], "float32")
    compiled = tcompile.compile(f, backend="eager")
    for number in (2.5, 3.5, 1, 4, 0.25, 3):
        for got, want in zip(compiled(x, number), f(x, number), strict=True):
            np.testing.assert_array_equal(got, want, strict=True)


@pytest.mark.parametrize("otypes", [None, "f"])
def test_scalars_of_numpys_stay_scalars_in_vectorize(otypes):
    def f(x, y):
        return np.vectorize(lambda a, b: a * b, otypes=otypes)(x, y)

    for x in (np.array([200, 3, 255], np.uint8), [1, 2, 3], [np.uint8(200), np.uint8(3)]):
        for y in (np.uint8(3), np.float32(1e20), 3, 2.5, np.bool_(True)):
            check(f, lambda x=x, y=y: (x, y))
            check(f, lambda x=x, y=y: (y, x))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("zeros", [0, 3])
def test_products_whose_parts_leave_the_range_are_numpys(dtype, zeros):
    def f(x):
        return np.prod(x), x.prod(0), x.prod(1), x[:, :3].prod(1)

    random = np.random.default_rng(3)
    x = (10.0 ** random.uniform(-30, 30, (90, 40))).astype(dtype)
    pairs = x.copy()
    pairs[:, ::2] = 1 / x[:, 1::2]
    for values in (x, pairs):
        values[random.integers(0, 90, zeros), random.integers(0, 40, zeros)] = 0
        check(f, lambda values=values: (values,), backends=("llvm",))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_zero_is_not_what_makes_a_product_zero(dtype):
    x = np.full((90, 8), 1e8 if dtype == "float32" else 1e60, dtype)
    x[:, -1] = 0
    check(lambda x: x.prod(1), lambda: (x,), backends=("llvm",))
    check(lambda x: x[:1].prod(), lambda: (x,), backends=("llvm",))
    check(lambda x: x.prod(0), lambda: (x.T.copy(),), backends=("llvm",))
    check(lambda x: x.prod(1), lambda: (1 / np.where(x, x, 1),), backends=("llvm",))
