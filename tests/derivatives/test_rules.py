"""Each rule of the table of derivatives, beside finite differences; first and second order, float64 and float32."""

from __future__ import annotations

import numpy as np
import pytest

import tcompile
from tcompile.errors import DerivativeError
from tcompile.graph import ops
from tcompile.graph.op import OPS
from tcompile.transforms.autodiff import NO_VJP, VJPS
from tcompile.transforms.autodiff.reverse import LOOPS

X = np.array([0.3, -1.2, 2.5, 0.9, -0.4, 1.7])
P = np.abs(X) + 0.2  # positive
U = X / 3  # between -1 and 1
M = np.random.default_rng(0).standard_normal((3, 4))
B = np.random.default_rng(1).standard_normal((4, 2))
T = np.random.default_rng(2).standard_normal((2, 3, 4))
C = np.array([0.7, -0.3, 1.9])
K = np.array([2, 0, 2, 1])
MASK = X > 0
A = np.random.default_rng(3).standard_normal((3, 3)) + 2 * np.eye(3)

CASES = {
    # pointwise
    "negative": (lambda x: -x, X),
    "positive": (lambda x: +x, X),
    "sqrt": (np.sqrt, P),
    "square": (np.square, X),
    "reciprocal": (np.reciprocal, P),
    "exp": (np.exp, X),
    "exp2": (np.exp2, X),
    "expm1": (np.expm1, X),
    "log": (np.log, P),
    "log1p": (np.log1p, P),
    "log2": (np.log2, P),
    "log10": (np.log10, P),
    "cbrt": (np.cbrt, P),
    "sin": (np.sin, X),
    "cos": (np.cos, X),
    "tan": (np.tan, U),
    "asin": (np.arcsin, U),
    "acos": (np.arccos, U),
    "atan": (np.arctan, X),
    "sinh": (np.sinh, X),
    "cosh": (np.cosh, X),
    "tanh": (np.tanh, X),
    "asinh": (np.arcsinh, X),
    "acosh": (np.arccosh, P + 1),
    "atanh": (np.arctanh, U),
    "abs": (np.abs, X),
    "add": (lambda x, y: x + y, X, P),
    "subtract": (lambda x, y: x - y, X, P),
    "multiply": (lambda x, y: x * y, X, P),
    "divide": (lambda x, y: x / y, X, P),
    "remainder": (lambda x, y: x % y, X, P),
    "fmod": (np.fmod, X, P),
    "pow": (lambda x, y: x**y, P, X),
    "pow 2": (lambda x: x**2, X),
    "pow 3": (lambda x: x**3, X),
    "pow -1.5": (lambda x: x**-1.5, P),
    "pow 0": (lambda x: x**0, X),
    "pow 1": (lambda x: x**1, X),
    "pow of a number": (lambda x: 2.0**x, X),
    "maximum": (np.maximum, X, P - 0.5),
    "minimum": (np.minimum, X, P - 0.5),
    "fmax": (np.fmax, X, P - 0.5),
    "fmin": (np.fmin, X, P - 0.5),
    "atan2": (np.arctan2, X, P),
    "atan2 of a number": (lambda x: np.arctan2(x, 2.0), X),
    "hypot": (np.hypot, X, P),
    "logaddexp": (np.logaddexp, X, P),
    "copysign": (np.copysign, P, X),
    "clip": (lambda x: np.clip(x, -1.0, 1.0), X),
    "clip by arrays": (np.clip, X, P - 1.3, P),
    "where": (lambda x, y: np.where(x > 0.5, x * y, y - x), X, P),
    "floor": (lambda x: np.floor(x) * x, X),
    "sign": (lambda x: np.sign(x) * x, X),
    "heaviside": (lambda x: np.heaviside(x, 0.5) * x, X),
    "heaviside at zeros": (lambda x: np.heaviside(np.arange(len(x)) % 2, x) * x, X),
    # broadcasting
    "rows": (lambda m, c: m * c[:, None], M, C),
    "a number beside": (lambda x: 3 - 2 * x, X),
    "scalars": (lambda x, y: x * y + np.sin(x), np.float64(1.3), 0.7),
    # reductions
    "sum": (lambda m: np.sum(m, axis=0), M),
    "sum keepdims": (lambda m: m / np.sum(m * m, axis=1, keepdims=True), M),
    "mean": (lambda t: np.mean(t, axis=(0, 2)), T),
    "prod": (lambda m: np.prod(m, axis=1), M),
    "prod of all": (np.prod, X),
    "prod beside zeros": (lambda m: np.prod(m, axis=0), M * (np.arange(12).reshape(3, 4) != 5)),
    "max": (lambda m: np.max(m, axis=1), M),
    "min": (lambda m: np.min(m, axis=0), M),
    "max of all": (np.max, M),
    "var": (lambda m: np.var(m, axis=1), M),
    "std": (lambda m: np.std(m, axis=0, ddof=1), M),
    "cumsum": (lambda m: np.cumsum(m, axis=1), M),
    "cumprod": (lambda m: np.cumprod(m, axis=0) ** 2, M),
    "cumprod beside zeros": (np.cumprod, X * MASK),
    "argmax": (lambda m: m[np.argmax(m, axis=0), np.arange(4)], M),
    "any": (lambda x: x * np.any(x > 2), X),
    # views and copies
    "reshape": (lambda m: m.reshape(2, 6) * np.arange(6), M),
    "transpose": (lambda m: m.T * C, M),
    "transposed twice": (lambda t: np.transpose(t, (2, 0, 1)) ** 2, T),
    "ravel": (lambda m: m.T.ravel() ** 2, M),
    "broadcast": (lambda c: np.broadcast_to(c, (4, 3)) * np.arange(12).reshape(4, 3), C),
    "expand": (lambda c: np.expand_dims(c, 1) * M, C),
    "squeeze": (lambda c: np.squeeze(c[None] ** 2), C),
    "flip": (lambda m: np.flip(m, 0) * np.arange(4), M),
    "copy": (lambda x: x.copy() * x, X),
    "index": (lambda m: m[1:, ::2] ** 2, M),
    "negative step": (lambda x: x[::-2] * x[1::2], X),
    "element": (lambda x: x[2] * x, X),
    "diagonal": (lambda m: np.diagonal(m) ** 2, M),
    "diagonal above": (lambda m: np.diagonal(m, 1) ** 2, M),
    "diagonal below": (lambda m: np.diagonal(m, -1) ** 2, M),
    "trace": (lambda m: np.trace(m @ m.T), M),
    "diagonals of a stack": (lambda t: np.diagonal(np.ascontiguousarray(t), 0, 1, 2) ** 2, T),
    "windows": (lambda x: np.sum(np.lib.stride_tricks.sliding_window_view(x, 3) ** 2, axis=1), X),
    "windows of two axes": (lambda m: np.sum(np.lib.stride_tricks.sliding_window_view(m, (2, 3)) ** 2, axis=(2, 3)), M),
    "concatenate": (lambda x, y: np.concatenate([x, y, x]) ** 2, X, P),
    "stack": (lambda x, y: np.stack([x, y], 1) ** 2, X, P),
    "roll": (lambda m: np.roll(m, 1, axis=0) * m, M),
    "roll by two": (lambda x: np.roll(x, -2) * x, X),
    "pad wrap": (lambda m: np.pad(m, 1, mode="wrap") ** 2, M),
    "pad wrap unevenly": (lambda m: np.pad(m, ((0, 2), (3, 1)), mode="wrap") ** 2, M),
    "pad wrap around twice": (lambda x: np.pad(x, 13, mode="wrap") ** 2, X),
    "pad edge": (lambda m: np.pad(m, 1, mode="edge") ** 2, M),
    "pad edge unevenly": (lambda t: np.pad(t, ((0, 3), (9, 0), (1, 2)), mode="edge") ** 2, T),
    "pad reflect": (lambda m: np.pad(m, ((2, 1), (0, 2)), mode="reflect") ** 2, M),
    "pad reflect oddly": (lambda x: np.pad(x, 2, mode="reflect", reflect_type="odd") ** 2, X),
    "pad symmetric oddly": (lambda m: np.pad(m, ((2, 3), (1, 0)), mode="symmetric", reflect_type="odd") ** 2, M),
    "pad symmetric": (lambda m: np.pad(m, ((2, 3), (1, 0)), mode="symmetric") ** 2, M),
    "pad zeros": (lambda m: np.pad(m, 1) ** 2, M),
    "repeat": (lambda x: np.repeat(x, 2) ** 2, X),
    "tile": (lambda x: np.tile(x, 2) ** 2, X),
    "sort": (lambda x: np.sort(x) * np.arange(6), X),
    "sort rows": (lambda m: np.sort(m, axis=0) ** 2 * M, M),
    "diff": (lambda x: np.diff(x) ** 2, X),
    "tril": (lambda m: np.tril(m) ** 2, M),
    # reads and writes at computed places
    "gather": (lambda m: m[K[:3]] ** 2, M),
    "gather twice the same": (lambda x: x[K] * x[K], X),
    "take": (lambda m: np.take(m, K, axis=1) ** 2, M),
    "mask": (lambda x: np.where(MASK, x, 0) ** 2, X),
    "mean of a mask": (lambda x: x[MASK].sum() ** 2, X),
    # products
    "matmul": (lambda a, b: a @ b, M, B),
    "vector": (lambda a, c: c @ a, M, C),
    "matrix by vector": (lambda a, x: a @ x, M, X[:4]),
    "inverse": (np.linalg.inv, A),
    "solve": (np.linalg.solve, A, C),
    "solve for columns": (np.linalg.solve, A, M),
    "det": (np.linalg.det, A),
    "slogdet": (lambda a: np.linalg.slogdet(a)[1], A),
    "cholesky": (lambda a: np.linalg.cholesky(a @ a.T + np.eye(3)), A),
    "eigh": (lambda a: np.linalg.eigh(a + a.T)[0] ** 2, A),
    "eigenvectors": (lambda a: np.linalg.eigh(a + a.T)[1] ** 2 @ C, A),
    "eigvalsh": (lambda a: np.linalg.eigvalsh(a + a.T), A),
    "norm": (np.linalg.norm, X),
    "norm of rows": (lambda m: np.linalg.norm(m, axis=1), M),
    "einsum": (lambda a, b: np.einsum("ij,jk->ki", a, b), M, B),
    "einsum with an axis of size 1": (lambda a: np.einsum("ij,ij->i", a[:, :1], a), M),
    "einsum with a summed axis of size 1": (lambda a, b: np.einsum("ij,jk->ik", a[:, :1], b), M, B),
    "tril above": (lambda m: np.tril(m, 1), M),
    "triu of a row": (np.triu, X),
    "dot of stacks": (np.dot, T, B),
    "dot with a number": (lambda m: np.dot(m, 2.0), M),
    "dot of stacks of both kinds": (np.dot, M, T.reshape(2, 4, 3)),
    "inner of stacks": (np.inner, T, M),
    "tensordot of axes": (lambda a, b: np.tensordot(a, b, ([1, 2], [0, 1])), T, M),
    "vdot": (np.vdot, M, M + 1),
    "vecdot": (np.vecdot, M, M + 1),
    "linalg outer": (np.linalg.outer, X, P),
    "multi dot": (lambda a, b: np.linalg.multi_dot([a, b, b.T]), M, B),
    "singular values": (np.linalg.svdvals, M),
    "svd": (lambda m: np.abs(np.linalg.svd(m, full_matrices=False)[0]), M),
    "svd, right side": (lambda m: np.abs(np.linalg.svd(m, full_matrices=False)[2]), M.T),
    "pinv": (np.linalg.pinv, M),
    "qr": (lambda a: np.abs(np.linalg.qr(a)[1]), A),
    "qr of a tall matrix": (lambda a: np.abs(np.linalg.qr(a)[0]), M.T),
    "matrix norm": (np.linalg.matrix_norm, M),
    "spectral norm": (lambda m: np.linalg.norm(m, 2), M),
    "nuclear norm": (lambda m: np.linalg.norm(m, "nuc"), M),
    "norm of columns": (lambda m: np.linalg.norm(m, 1), M),
    "cond": (np.linalg.cond, A),
    "inverse power": (lambda a: np.linalg.matrix_power(a, -2), A),
    "convolve same": (lambda a, v: np.convolve(a, v, "same"), X, C),
    "convolve valid": (lambda a, v: np.convolve(a, v, "valid"), X, C),
    "correlate full": (lambda a, v: np.correlate(a, v, "full"), X, C),
    "sum with an initial value": (lambda x, y: np.sum(x, initial=y[0]), X, P),
    "average": (lambda x, w: np.average(x, weights=w), X, P),
    "average of rows": (lambda m, w: np.average(m, axis=1, weights=w), M, P[:4]),
    "cov": (np.cov, M),
    "corrcoef": (np.corrcoef, M),
    "median": (np.median, X),
    "median of rows": (lambda m: np.median(m, axis=1), M),
    "percentile": (lambda x: np.percentile(x, 30), X),
    "quantile": (lambda m: np.quantile(m, 0.7, axis=0), M),
    "sinc": (np.sinc, X),
    "float power": (lambda x, y: np.float_power(x, y), P, X),
    "logaddexp2": (np.logaddexp2, X, P),
    "logaddexp2 with a number": (lambda x: np.logaddexp2(1, x) + np.float_power(2, x) + np.dot(3, x), X),
    "ints beside floats": (
        lambda x: np.logaddexp2(x, np.arange(6)) * np.average(x, weights=np.arange(6)) + np.vecdot(x, np.arange(6)),
        X,
    ),
    "products with ints": (lambda x: np.vdot(x, np.arange(6)) + np.linalg.outer(np.arange(3), x) + np.dot(x, 2), X),
    "modf": (lambda x: np.modf(x)[0] * x, X),
    "ldexp": (lambda x: np.ldexp(x, np.arange(6)), X),
    "round to a place": (lambda x: np.round(x, 1) * x, X),
    "interp": (lambda x, y: np.interp(x, np.arange(6.0), y), X, P),
    "vander": (lambda x: np.vander(x, 3), X),
    "ediff1d": (np.ediff1d, M),
    "flatten in Fortran order": (lambda m: m.flatten("F"), M),
    "array of numbers": (lambda x: np.array([[x[0], 1.0], [x[1] * x[2], x[0]]]), X),
    "one operand in several places": (lambda a: np.block([[a, a], [a, 2 * a]]), A),
    "stacked with itself": (lambda x: np.vstack([x, x]), X),
    "appended to itself": (lambda x: np.append(x, x), X),
    "constants inserted": (lambda x: np.insert(np.append(x, 2.0), [1, 2], [2, 3.0]), X),
    "chosen among constants": (lambda x: np.choose(np.arange(6) % 3, [x, 2.0, 1.0]), X),
    "block of constants": (lambda a: np.block([[a, np.ones((3, 1))], [1.0, 1.0, 2.0, 0.0]]), A),
    "stacked with ints": (lambda x: np.stack([x, np.arange(6)]) * np.append(x, K[:0]), X),
    "ints among floats": (lambda x: np.array([x[0], K[1], 1, x[K[0]]]), X),
    "appended ints": (lambda x: np.append(np.insert(x, 2, K), np.arange(3)), X),
    "prod of nothing": (lambda x: np.prod(x[:0]) + x, X),
    "matrix power": (lambda a: np.linalg.matrix_power(a, 3), A),
    "convolve": (np.convolve, X, C),
    "degrees": (np.rad2deg, X),
    "dot": (lambda x, y: np.dot(x, y), X, P),
    "stack of products": (lambda t, b: t @ b, T, B),
    "broadcast product": (lambda t, m: t @ m.T, T, M),
    "outer": (np.outer, C, X),
    "tensordot": (lambda a, b: np.tensordot(a, b, 1), M, B),
}


def written(x, y):
    x = x.copy()
    x[1:3] = y[:2] * x[0]
    x[4] += x[1] ** 2
    x[::2] *= y[1]
    return x


def writes_by_mask(x, y):
    x = x.copy()
    x[MASK] = 0.5
    x[~MASK] *= y[~MASK]
    return x


def scattered(x, y):
    x = x.copy()
    x[K] = y[:4] * 2
    return x * x


def added_at(x, y):
    x = x.copy()
    np.add.at(x, K, y[:4])
    return x * x


def written_twice(x, y):
    out = np.zeros((2, 6))
    out[0] = x
    out[1] = y
    out[:, 2] = out[:, 3] * 2
    return out * out


def filled(x, y):
    out = np.empty(6)
    out[:3] = x[:3] * y[:3]
    out[3:] = x[3:]
    out.sort()
    return out * np.arange(6)


def into_out(x, y):
    out = np.empty_like(x)
    np.multiply(x, y, out=out)
    np.sin(out, out=out)
    return out


def by_rows(x, y):
    m = np.outer(x, y)
    m[1] = m[2] + m[0]
    m[:, 1] *= 2
    return m.sum(axis=0)


for program in (written, writes_by_mask, scattered, added_at, written_twice, filled, into_out, by_rows):
    CASES[program.__name__] = (program, X, P)


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("backend", ["llvm", "plain"])
def test_against_differences(name, backend):
    function, *args = CASES[name]

    def weighed(*given):
        result = function(*given)
        return np.sum(result * np.cos(np.arange(np.size(result)).reshape(np.shape(result))))

    stance = "force_eager" if backend == "plain" else "default"
    with tcompile.set_stance(stance):
        tcompile.check_grads(weighed, order=2 if backend == "llvm" else 1, step=1e-5, tolerance=1e-6)(*args)


@pytest.mark.parametrize("name", CASES)
def test_dtypes_kinds_and_layouts(name):
    """Gradients have the dtypes and shapes of what is differentiated, wherever its elements lie."""
    function, *args = CASES[name]
    numbers = tuple(range(len(args)))

    def total(*given):
        return np.sum(function(*given))

    wide = tcompile.grad(total, numbers)(*args)
    for gradient, arg in zip(wide, args, strict=True):
        assert type(gradient) is type(arg) and np.shape(gradient) == np.shape(arg)
    single = [np.asfortranarray(arg.astype(np.float32)) if np.ndim(arg) else arg for arg in args]
    for gradient, arg, exact in zip(tcompile.grad(total, numbers)(*single), single, wide, strict=True):
        assert np.asarray(gradient).dtype == np.asarray(arg).dtype
        np.testing.assert_allclose(gradient, exact, rtol=2e-3, atol=2e-3)


@pytest.mark.parametrize("name", CASES)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_no_elements(name):
    """A function of one array that plain Python computes of none has a gradient without elements, or a clear error."""
    function, *args = CASES[name]
    empty = np.empty((0, *np.shape(args[0])[1:]))
    if len(args) > 1 or not np.ndim(args[0]):
        return
    try:
        function(empty)
    except (ValueError, IndexError, np.linalg.LinAlgError):
        return
    try:
        assert tcompile.grad(lambda x: np.sum(function(x)))(empty).shape == empty.shape
    except DerivativeError as error:
        assert "[internal-error]" not in str(error) and "[recursion]" not in str(error)


def test_every_operation_has_a_rule_or_a_reason():
    missing = [
        op.name for op in OPS.values() if op not in VJPS and op not in NO_VJP and op not in LOOPS and op is not ops.GET
    ]
    assert not missing
    assert not [op.name for op in VJPS if op in NO_VJP]


# -- parts of one array ------------------------------------------------------------------------------------------------
R = np.random.default_rng(7).standard_normal((5, 6))


@pytest.mark.parametrize("function", [
    lambda u: u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] + u[1:-1, :-2] - 4 * u[1:-1, 1:-1],
    lambda u: u[1:] + u[:-1] + u[:4] * 2 + u[1:] * u[1:],
    lambda u: u[::2, ::-1] + u[::2] + u[[0, 2, 4]],
    lambda u: u[0] + u[1] + u[-1] + u[0] * 3,
    lambda u: u[:, 0] + u[:, 5] + u[:, 0] + u.T[0],
    lambda u: u[None, 1:3] + u[None, 2:4] + u[3:][None],
    lambda u: u[:0].sum() + u[5:].sum() + u[:5] + u[0:5],
    lambda u: (u[:2] + u[3:]).sum() + u[2:3],
])  # fmt: skip
def test_parts_of_one_array(function):
    def total(u):
        found = function(u)
        return np.sum(found * np.cos(np.arange(found.size).reshape(found.shape)))

    tcompile.check_grads(total, order=2)(R)
    np.testing.assert_allclose(
        tcompile.grad(total)(R.astype(np.float32)), tcompile.grad(total)(R), rtol=1e-4, atol=1e-5
    )


def test_a_stencil_in_a_loop_that_writes_to_what_it_reads():
    def heat(u):
        u = u.copy()
        for _ in range(15):
            u[1:-1, 1:-1] += 0.1 * (u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] + u[1:-1, :-2] - 4 * u[1:-1, 1:-1])
            u[0] = u[1] * u[2]
        return np.sum(u * u)

    tcompile.check_grads(heat, order=2)(R)


@pytest.mark.parametrize("function", [np.median, lambda x: np.quantile(x, 0.3), lambda x: np.percentile(x, 70)])
def test_quantiles_of_other_sizes(function):
    gradient = tcompile.grad(function)
    for size in (5, 7, 9, 11, 6, 13):
        x = np.random.default_rng(size).standard_normal(size)
        np.testing.assert_allclose(np.sum(gradient(x)), 1.0)
        tcompile.check_grads(function)(x)


@pytest.mark.parametrize(
    "function",
    [np.linalg.norm, lambda x: np.dot(x, x), lambda x: np.inner(x, x), lambda x: np.tensordot(x, x, 1), np.vdot],
)
@pytest.mark.parametrize("size", [0, 1, 3])
def test_products_of_short_vectors(function, size):
    x = np.linspace(0.5, 1.0, size)
    value = (lambda x: function(x, x)) if function is np.vdot else function
    tcompile.check_grads(value, order=2 if size or function is not np.linalg.norm else 1)(x)


@pytest.mark.parametrize(
    "copied",
    [lambda x: x.copy(order="F"), lambda x: np.copy(x, order="F"), lambda x: x.astype(np.float64, order="F")],
)
def test_copies_in_fortran_order(copied):
    tcompile.check_grads(lambda x: np.sum(np.sin(copied(x)) * M), order=2)(M / 2)
    np.testing.assert_allclose(tcompile.grad(lambda x: np.sum(copied(x) * M))(M.astype(np.float32)), M, rtol=1e-6)


def _in_place(x, y):
    for i in range(4):
        y[i % 3] = (y @ M[:, :3].T)[1]
        y[:, 0] += np.sin(x[:, 1])
        y = np.asfortranarray(y * x.T)
    return y


def _leaves(x, y):
    for i in range(6):
        if i % 2:
            continue
        y = np.exp(-y.T).T + x
        if y[0, 0] > 3.0:
            break
    return y


def _views(x, y):
    for _ in range(3):
        y = y[::-1] * x.T
        if np.sum(y) > 50.0:
            y = y.T + x
    return y


@pytest.mark.parametrize("function", [_in_place, _leaves, _views])
@pytest.mark.parametrize("start", [np.asfortranarray, np.transpose, np.array])
@pytest.mark.parametrize("compiled", [False, True])
def test_loops_that_carry_arrays_in_fortran_order(function, start, compiled):
    weights = np.cos(np.arange(9.0)).reshape(3, 3)

    def total(x):
        return np.sum(function(x, start(x * 1.0)) * weights)

    gradient = tcompile.compile(tcompile.grad(total)) if compiled else tcompile.grad(total)
    x = np.linspace(0.3, 1.0, 9).reshape(3, 3)
    for given in (x, np.asfortranarray(x)):
        tcompile.check_grads(total, order=2)(given)
        expected = gradient(given)
        np.testing.assert_allclose(tcompile.vmap(gradient)(np.stack([given, given / 2]))[0], expected, rtol=1e-12)
        _, tangent = tcompile.jvp(total, (given,), (weights,))
        np.testing.assert_allclose(tangent, np.sum(expected * weights), rtol=1e-9)
