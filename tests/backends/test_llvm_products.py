"""Products of small matrices in kernels: values within their bound, zeros' signs and memory order NumPy's."""

import numpy as np
import pytest

import tcompile
from tcompile.backends.llvm import compile_graph
from tests.backends.llvm_cases import graph_of
from tests.differential import check

SHAPES = [
    ((2, 2), (2, 2)), ((3, 3), (3,)), ((3,), (3, 4)), ((4,), (4,)), ((1, 3), (3, 1)), ((3, 1), (1, 3)),
    ((0, 3), (3, 2)), ((5, 2, 3), (3, 2)), ((2, 2), (7, 2, 1)), ((6, 1, 2, 2), (3, 2, 2)),
    ((300, 3), (3, 3)), ((2, 4), (4, 16)),
]  # fmt: skip
DTYPES = ["float32", "float64", "complex64", "complex128", "int8", "int64", "uint16"]


def factors(shapes, dtype, order, kind):
    rng = np.random.default_rng(len(shapes[0]))
    a, b = (rng.normal(scale=10, size=shape) for shape in shapes)
    if kind == "zeros":  # every product is a zero of some sign
        a, b = np.copysign(0.0, a), np.abs(b)
    elif kind == "special":
        a.flat[::3], b.flat[::4] = np.inf, np.nan
    with np.errstate(all="ignore"):
        return [np.array(x, order=order).astype(dtype, order="K") for x in (a, b)]


def product(a, b):
    return a @ b


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shapes", SHAPES, ids=str)
def test_small_products(shapes, dtype):
    for order in "CF":
        for kind in ("normal", "zeros", *(["special"] if dtype.startswith("float") else [])):
            make = lambda o=order, k=kind: factors(shapes, dtype, o, k)
            (compiled,) = check(product, make, backends=["llvm"], ulp=2048)  # terms may cancel: see test_bound
            assert kind == "special" or not compiled.entries[0].replays


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_bound(dtype):
    """The error of an element is at most four units of the sum of its products' sizes."""
    a, b = (x.astype(dtype) for x in factors(((2000, 4), (4, 4)), "float64", "C", "normal"))
    got = tcompile.compile(product)(a, b)
    wide = np.longdouble
    error = np.abs(got - a.astype(wide) @ b.astype(wide))
    assert (error <= 4 * np.finfo(dtype).eps / 2 * (np.abs(a).astype(wide) @ np.abs(b).astype(wide))).all()


def test_products_share_a_kernel_with_their_neighbours():
    a, b, c = (np.ones((2, 2)) for _ in range(3))
    graph = graph_of(lambda op, x, y, z: op("add", op("matmul", op("matmul", x, y), op("exp", x)), z), a, b, c)
    assert len(compile_graph(graph).kernels) <= 2
    assert not any(step.kind == "call" for step in compile_graph(graph).schedule.steps)


def test_large_products_stay_calls():
    for shapes in (((9, 5), (5, 2)), ((2, 3), (3, 40))):
        graph = graph_of(lambda op, x, y: op("matmul", x, y), *map(np.ones, shapes))
        assert compile_graph(graph).kernels == []


def test_the_option_exact_leaves_products_to_numpy():
    graph = graph_of(lambda op, x, y: op("matmul", x, y), np.ones((2, 2)), np.ones((2, 2)))
    assert compile_graph(graph, exact=True).kernels == []
