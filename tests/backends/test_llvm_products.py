"""Products and inverses of small matrices in kernels: values within their bounds, the rest as in NumPy."""

import numpy as np
import pytest

import tcompile
from tcompile.backends.llvm import compile_graph
from tests.backends.llvm_cases import graph_of
from tests.differential import Run, assert_same_run, check

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


def matrices(n, dtype, seed):
    """Some of every kind: of normal and of equal pivots, diagonal ones, nearly singular and singular ones."""
    rng = np.random.default_rng(seed)
    normal = rng.normal(size=(n, n)) + 0.0
    whole = np.round(rng.normal(scale=2, size=(n, n)))
    diagonal = np.diag(rng.normal(size=n))
    near = normal.copy()
    near[:, -1] = near[:, 0] * 0.3
    flags = np.where(np.eye(n), normal, -0.0)
    special = np.where(np.eye(n), np.inf, 1.0)
    kinds = (normal, whole, diagonal, near, np.ones((n, n)), np.zeros((n, n)), flags, special, special * np.nan)
    return [np.array(kind, dtype=dtype) for kind in kinds]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("n", [1, 2, 3])
def test_small_inverses(n, dtype):
    rng = np.random.default_rng(n)
    solve, inv = np.linalg.solve, np.linalg.inv
    cases = [(lambda a, b: solve(a, b), (shape,)) for shape in ((n,), (n, 1), (n, 4), (2, n, 2))]
    cases += [(lambda a: inv(a), ()), (lambda a: inv(a.T), ()), (lambda a: inv(np.stack([a, a + np.eye(n)])), ())]
    for function, shapes in cases:
        tcompile.reset()
        compiled = tcompile.compile(function)
        for seed in range(5):
            for a in matrices(n, dtype, seed):
                with np.errstate(all="ignore"):
                    size = np.nan_to_num(np.linalg.cond(a), posinf=1) if np.isfinite(a).all() else 1
                arguments = [a, *(rng.normal(size=shape).astype(dtype) for shape in shapes)]
                # The error is bounded for a whole column, whatever its smaller elements are.
                assert_same_run(Run(compiled, arguments), Run(function, arguments), ulp=8e3 * max(1.0, size))


def test_the_signs_of_zeros_in_solutions():
    solve = np.linalg.solve
    for n in (1, 2, 3):
        tcompile.reset()
        compiled = tcompile.compile(lambda a, b: solve(a, b))
        for seed in range(20):
            rng = np.random.default_rng(seed)
            a, b = rng.normal(size=(n, n)) + 9 * np.eye(n), np.copysign(0.0, rng.normal(size=(n, 3)))
            b[:, seed % 3] = 1
            assert_same_run(Run(compiled, [a, b]), Run(solve, [a, b]), ulp=1e4)


def test_inverses_run_in_kernels():
    def gain(p, h, r):
        return p @ h.T @ np.linalg.inv(h @ p @ h.T + r)

    make = lambda: [np.eye(2) * 2 + 1, np.array([[1.0, 0.5]]), np.array([[0.01]])]
    (compiled,) = check(gain, make, backends=["llvm"], calls=4)
    (entry,) = compiled.entries
    assert not entry.replays
    assert all(step.kind == "kernel" for step in entry.compiled_graph.schedule.steps)


def test_what_is_singular_raises_as_in_numpy():
    compiled = tcompile.compile(lambda a: np.linalg.inv(a) @ a)
    compiled(np.eye(2))
    for _ in range(3):
        with pytest.raises(np.linalg.LinAlgError, match="Singular matrix"):
            compiled(np.array([[0.1, 0.2], [0.3, 0.6]]) * 0)
    np.testing.assert_array_equal(compiled(np.eye(2)), np.eye(2))


def test_products_share_a_kernel_with_their_neighbours():
    a, b, c = (np.ones((2, 2)) for _ in range(3))
    graph = graph_of(lambda op, x, y, z: op("add", op("matmul", op("matmul", x, y), op("exp", x)), z), a, b, c)
    assert len(compile_graph(graph).kernels) <= 2
    assert not any(step.kind == "call" for step in compile_graph(graph).schedule.steps)


def test_products_over_several_axes_stay_in_loops():
    def convolve(image, kernel):
        height, width, _, channels = kernel.shape
        out = np.zeros((image.shape[0] - height + 1, image.shape[1] - width + 1, channels))
        for i in range(out.shape[0]):
            for j in range(out.shape[1]):
                out[i, j] = np.tensordot(image[i : i + height, j : j + width], kernel, axes=3)
        return out

    image, kernel = np.arange(192.0).reshape(8, 8, 3) % 7, np.arange(108.0).reshape(3, 3, 3, 4) % 5
    (*_, compiled) = check(convolve, lambda: (image, kernel), backends=("llvm",))
    assert "tensordot" not in compiled.graphs[0].readable().replace("np.tensordot", "")


def forms(shapes, **options):
    graph = graph_of(lambda op, x, y: op("matmul", x, y), *map(np.ones, shapes))
    return [kernel.form for kernel in compile_graph(graph, **options).schedule.kernels]


def test_large_products_are_numpys():
    for shapes in (((9, 5), (5, 2)), ((2, 3), (3, 40))):
        assert forms(shapes) == ["routine"]


def test_the_option_exact_leaves_products_to_numpy():
    assert forms(((2, 2), (2, 2))) == ["flat"]
    assert forms(((2, 2), (2, 2)), exact=True) == ["routine"]


@pytest.mark.parametrize("dtype", DTYPES)
def test_no_kernel_looks_at_what_lies_around_an_array(dtype):
    """Where LLVM halves vectors, a masked load with a known mask has read after the array."""

    def factor(n):
        around = np.full(64, np.nan if np.dtype(dtype).kind in "fc" else 7).astype(dtype)
        around[8 : 8 + n * n] = np.arange(n * n) % 2
        return around[8 : 8 + n * n].reshape(n, n)

    for n in (2, 3):
        (compiled,) = check(product, lambda n=n: [factor(n), factor(n)], backends=["llvm"])
        assert not compiled.entries[0].replays
