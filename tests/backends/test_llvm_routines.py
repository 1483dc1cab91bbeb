"""Products and solutions that NumPy's own loops compute for machine code: NumPy's bits, warnings and errors."""

import _thread
import itertools
import signal
import threading
import time

import numpy as np
import pytest

import tcompile
from tcompile.backends.llvm import compile_graph, native
from tcompile.backends.llvm.kernels import routines
from tests.backends.llvm_cases import graph_of
from tests.differential import assert_same, check
from tests.test_exact import same_bits

LAYOUTS = {
    "rows": np.ascontiguousarray, "columns": np.asfortranarray, "strided": lambda x: np.repeat(x, 2, -1)[..., ::2],
    "turned": lambda x: x[..., ::-1], "same": lambda x: np.broadcast_to(x[..., :1], x.shape),
}  # fmt: skip
SHAPES = [
    ((7,), (7,)), ((7,), (7, 5)), ((6, 7), (7,)), ((6, 7), (7, 5)), ((1, 7), (7, 1)), ((6, 1), (1, 5)), ((1, 7), (7,)),
    ((0, 7), (7, 5)), ((6, 0), (0, 5)), ((3, 6, 7), (7, 5)), ((3, 6, 7), (3, 7, 5)), ((2, 1, 6, 7), (3, 7, 5)),
    ((2, 3, 6, 7), (7,)), ((40, 50), (50, 30)),
]  # fmt: skip
DTYPES = ["float32", "float64", "complex64", "complex128", "float16", "int16", "uint64", "bool"]


def numbers(shape, dtype, seed=0):
    x = np.random.default_rng(seed).normal(size=shape) * 3
    return (x + 1j * x[::-1] if np.dtype(dtype).kind == "c" and x.ndim else np.abs(x)).astype(dtype)


def product(a, b):
    return a @ b


def is_native(f, *args):
    """Whether machine code runs the iterations of all loops of a function."""
    loops = tcompile.explain(f)(*args).loops
    return bool(loops) and all("runs in machine code" in text for text in loops)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.recompile_limit(100)
def test_products_have_numpys_bits(dtype):
    for (first, second), (one, other) in zip(SHAPES * 4, itertools.cycle(itertools.product(LAYOUTS, LAYOUTS))):
        a, b = LAYOUTS[one](numbers(first, dtype)), LAYOUTS[other](numbers(second, dtype, 1))
        same_bits(product, a, b)


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex128", "int64"])
def test_dot_and_its_relatives_have_numpys_bits(dtype):
    row, matrix = numbers(9, dtype), numbers((9, 9), dtype, 1)
    for f in (np.dot, np.inner):
        for one, other in itertools.product((row, matrix, matrix.T, matrix[::2, ::-1][:, :5]), repeat=2):
            same_bits(lambda a, b, f=f: f(a, b), one, other)
    same_bits(lambda a: (np.vdot(a, a), a.dot(a), np.vecdot(a, a), np.linalg.norm(a)), row)
    same_bits(lambda a: (a.dot(a), np.linalg.norm(a), np.vecdot(a, a), np.inner(a, a)), matrix.T)


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex128", "int64", "uint8"])
@pytest.mark.recompile_limit(1000)
def test_dot_of_rows_is_a_product_however_they_lie(dtype):
    rows = {
        "dense": lambda a: a[0], "column": lambda a: a[:, 1], "steps": lambda a: a[1:, ::3].T[1],
        "turned": lambda a: a[0, ::-1], "turned column": lambda a: a[::-1, 2],
        "twice turned": lambda a: a[::-1, 1][::-1],
        "same": lambda a: np.broadcast_to(a[3, 3], (35,)), "new axis": lambda a: a[None, 2, None, :, None][0, 0, :, 0],
        "diagonal": lambda a: a.diagonal(), "flipped": lambda a: np.flip(a, 0)[:, 4],
    }  # fmt: skip
    pairs = [
        (one, other)
        for one, other in itertools.product(rows.values(), repeat=2)
        if (one(np.ones((35, 35))).shape) == other(np.ones((35, 35))).shape
    ]
    every = 1 if dtype == "float64" else 3  # which one to call does not depend on the dtype
    for (one, other), f in zip(pairs[::every], itertools.cycle((np.dot, np.inner)), strict=False):
        same_bits(lambda a, f=f, one=one, other=other: f(one(a), other(a)), numbers((35, 35), dtype))
    found = tcompile.explain(lambda a: np.dot(a[:, 1], a[::-1, 2]) + 1)(numbers((35, 35), "float64"))
    assert "numpy.dot" not in str(found).partition("Guards")[0]


@pytest.mark.parametrize("dtype", ["int16", "uint16", "int8"])
def test_small_products_of_small_integers_become_floats(dtype):
    """LLVM stopped the process where such a kernel, beside loops of numbers, was made into code without passes."""

    def f(x, y):
        halves = np.vectorize(lambda v: v / 2 if v > 1 else v)(y)
        return x.dot(x.T) - 0.5, halves, np.sqrt(np.trunc(y))

    x, y = np.arange(6, dtype=dtype).reshape(2, 3), np.linspace(0, 3, 4)
    assert_same(tcompile.compile(f)(x, y), f(x, y))


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex128"])
def test_one_product_may_be_a_negative_zero(dtype):
    """``dot`` does not add a single product to zero; products of matrices, and ``vdot``, do."""
    x, y = np.array([-1, 2, 3, 4] * 4, dtype), np.array([0, 0, 5, 0] * 4, dtype)
    for f in (
        lambda x, y: (np.dot(x[:1], y[:1]), np.inner(x[-1:], y[:1]), np.vdot(x[:1], y[:1]), x[:1] @ y[:1]),
        lambda x, y: (np.dot(x[:1, None], y[:1]), np.dot(x[:1], y[:1, None]), x[None, :1] @ y[None, :1]),
        lambda x, y: (np.dot(x[:1, None], y[None, :3]), np.tensordot(x[:1], y[:1], 1), np.vdot(x[::-1], y)),
    ):
        same_bits(f, x, y)

    def growing(x, y):
        made = np.zeros(len(x), x.dtype)
        for i in range(len(x)):
            made[i] = np.dot(x[:i], y[::-1][-i - 1 : -1])
        return made

    same_bits(growing, x, y)
    assert is_native(growing, x, y)


def test_operands_are_read_through_transposes_and_slices():
    a, b = numbers((8, 6), "float64"), numbers((8, 6), "float64", 1)
    compiled = same_bits(
        lambda a, b: (a.T @ b, a[1:, ::2] @ b[::-2].T[:3, :1], b[:, 0] @ a, a[2] @ b[3][:, None]), a, b
    )
    (entry,) = compiled.entries
    assert [kernel.form for kernel in entry.compiled_graph.schedule.kernels] == ["routine"] * 4
    assert entry.compiled_graph.recipe is not None


def test_temporary_arrays_that_nothing_large_follows_may_last_to_the_end():
    """A call without Python keeps them; where another could have their memory, Python gives it back."""

    def one(x, m):
        y = x @ m
        return y / np.linalg.norm(y)

    def other(x, m):
        y = (x @ m) @ m
        return np.cumsum(y) * 2

    for f, stays in ((one, True), (other, False)):
        compiled = tcompile.compile(f, dynamic=True)
        for n in (30, 31, 40):
            x, m = numbers((n,), "float64"), numbers((n, n), "float64", 1)
            np.testing.assert_allclose(compiled(x, m), f(x, m), rtol=1e-12)
        (entry,) = compiled.entries
        assert (entry.compiled_graph.recipe is not None) is stays


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
def test_solutions_and_inverses_have_numpys_bits(dtype):
    a = numbers((2, 6, 6), dtype) + 9 * np.eye(6, dtype=dtype)
    b = numbers((6, 3), dtype, 1)
    spd = a[0] @ a[0].conj().T
    compiled = same_bits(lambda a, b: (np.linalg.solve(a, b), np.linalg.solve(a[0].T, b[:, 0]), np.linalg.inv(a)), a, b)
    assert {k.form for entry in compiled.entries for k in entry.compiled_graph.schedule.kernels} == {"routine"}
    same_bits(lambda a: (np.linalg.cholesky(a), np.linalg.inv(a.T)), spd)
    same_bits(lambda a, b: np.linalg.solve(a, b), a.astype("float32" if dtype == "float64" else "complex64"), b)


def test_what_is_singular_raises_as_in_numpy():
    check(lambda a, b: np.linalg.solve(a, b) + 1, lambda: (np.ones((5, 5)), np.ones(5)))
    check(lambda a: np.linalg.cholesky(a) * 2, lambda: (-np.eye(5),))


@pytest.mark.parametrize("how", ["ignore", "warn", "raise", "call"])
def test_what_is_singular_raises_whatever_the_error_state_is(how):
    """NumPy's functions set an error state of their own: overflow within them is reported in none."""

    def state():
        return np.errstate(all=how, call=lambda kind, flag: None)

    def inside(a, b):
        with state():
            return np.linalg.solve(a, b), np.linalg.inv(a), np.linalg.cholesky(a)

    for n in (2, 3, 5):
        for a in (np.zeros((n, n)), np.ones((n, n)), -np.eye(n), 1e300 * spd(n), np.full((n, n), np.inf)):
            for f in (np.linalg.inv, np.linalg.cholesky, lambda a: np.linalg.solve(a, a), lambda a: inside(a, a[0])):
                with state():
                    check(lambda a, f=f: f(a), lambda a=a: (a.copy(),), ulp=256)


@pytest.mark.parametrize("n", [3, 5])  # computed in a kernel, and by NumPy's loop
def test_what_is_singular_raises_before_later_writes(n):
    def inverse(a, b, s):
        a[:] = s * 2
        b[:] = np.linalg.inv(a) + 1

    def between(a, b, s):
        a[:] = s * 2
        b[:] = s @ np.linalg.inv(a)

    for f in (inverse, between):
        for s in (np.ones((n, n)), np.eye(n) * 2 + 1):
            check(f, lambda s=s: (np.zeros((n, n)), np.full((n, n), 7.0), s.copy()), backends=("llvm",), ulp=64)


def test_warnings_are_numpys():
    huge = np.full((5, 5), 1e200)
    for f in (lambda a: a @ a, lambda a: np.dot(a[0], a[0]), lambda a: np.vdot(a[0], a[0]), np.linalg.norm):
        check(f, lambda: (huge.copy(),))
    check(lambda a: a @ np.zeros((5, 5)), lambda: (np.full((5, 5), np.inf),))


def test_products_of_halves_that_overflow_say_so():
    """What leaves the range of half precision does so in a conversion, which raises the flag in another unit."""
    for n in (1, 2, 5):
        large = np.full((n, n), 60000, np.float16)
        for f in (lambda a: a @ a, lambda a: a[0] @ a[0], lambda a: np.dot(a[0], a[0]), lambda a: a[0].dot(a)):
            check(f, lambda large=large: (large.copy(),))
            check(f, lambda large=large: (large / np.float16(30000),))
    tcompile.reset()
    half = np.ones(1, np.float16)
    compiled = tcompile.compile(lambda a: a @ a)
    with np.errstate(over="raise"):  # what others have left in the flags is not ours
        np.longdouble(3) / 7, np.exp(np.longdouble(-1e5))
        assert compiled(half) == 1

    def powers(a, n):
        for _ in range(n):
            a = a @ a
        return a

    (compiled,) = check(powers, lambda: (numbers((6, 6), "float64"), 40), backends=("llvm",))
    assert compiled.entries[0].replays


def test_large_products_let_other_threads_run():
    a = numbers((1500, 1500), "float32")
    compiled = tcompile.compile(product)
    compiled(a, a), compiled(a, a)
    ticks, over = [], threading.Event()

    def tick():
        while not over.is_set():
            ticks.append(time.perf_counter())
            time.sleep(0.0005)

    other = threading.Thread(target=tick)
    other.start()
    began = time.perf_counter()
    compiled(a, a)
    ended = time.perf_counter()
    over.set()
    other.join()
    assert sum(began < at < ended for at in ticks) >= 2


def test_sizes_that_vary():
    compiled = tcompile.compile(lambda a, b: a @ b + 1, dynamic=True, fullgraph=True)
    for n in (5, 9, 70, 200):
        a, b = numbers((n, n + 1), "float64"), numbers((n + 1, 11), "float64", 1)
        np.testing.assert_array_equal(compiled(a, b), a @ b + 1)
    assert len(compiled.entries) == 1


def test_without_numpys_loops_they_are_calls(monkeypatch):
    graph = graph_of(lambda op, x, y: op("matmul", x, y), np.ones((9, 5)), np.ones((5, 2)))
    monkeypatch.setattr(native, "has_inner_loops", lambda: False)
    routines._loop.cache_clear()
    try:
        assert compile_graph(graph).kernels == []
    finally:
        routines._loop.cache_clear()


def test_a_universal_function_that_looks_different_is_not_looked_into():
    assert native.inner_loop(np.matmul, "OO->O") is None
    assert native.inner_loop(np.matmul, "dd->f") is None
    assert native.inner_loop(np.frompyfunc(max, 2, 1), "OO->O") is None


# -- in loops ----------------------------------------------------------------------------------------------------------


def spd(n=12):
    a = numbers((n, n), "float64")
    return a @ a.T / n + np.eye(n)


def power_iteration(a, x, n):
    for _ in range(n):
        y = a @ x
        x = y / np.linalg.norm(y)
    return x, x @ a @ x


def conjugate_gradient(a, b, tol, n):
    x = np.zeros(len(b))
    r = p = b - a.dot(x)
    rs = r @ r
    for _ in range(n):
        ap = a @ p
        alpha = rs / np.dot(p, ap)
        x = x + alpha * p
        r = r - alpha * ap
        new = np.vdot(r, r)
        if np.sqrt(new) < tol:
            break
        p = r + (new / rs) * p
        rs = new
    return x


def value_iteration(p, r, tol):
    v = np.zeros(len(r))
    while True:
        w = (r + 0.9 * (p @ v)).max(axis=1)
        if np.abs(w - v).max() < tol:
            return w
        v = w


def newton(a, x, n):
    for _ in range(n):
        x = x - np.linalg.solve(a + np.diag(3 * x * x), a @ x + x**3 - 1)
    return x


def logistic(x, y, n):
    w = np.zeros(x.shape[1])
    for _ in range(n):
        w = w - 0.1 * (x.T @ (1 / (1 + np.exp(-(x @ w))) - y)) / len(y)
    return w


def rows(a, b, n):
    h = b
    for t in range(n):
        h = np.tanh(a @ h + a[t : t + 3].T @ b[:3] + a[t] @ b)
    return h


def kalman(f, h, zs, n):
    x, p = np.zeros(4), np.eye(4)
    for t in range(n):
        x, p = f @ x, f @ p @ f.T + 0.1 * np.eye(4)
        gain = p @ h.T @ np.linalg.inv(h @ p @ h.T + np.eye(2))
        x, p = x + gain @ (zs[t] - h @ x), p - gain @ h @ p
    return x


LOOPS = [
    (power_iteration, lambda: (spd(), np.ones(12), 40)), (conjugate_gradient, lambda: (spd(), np.ones(12), 1e-9, 60)),
    (value_iteration, lambda: (numbers((8, 3, 8), "float64") / 60, numbers((8, 3), "float64"), 1e-7)),
    (newton, lambda: (spd(), np.ones(12), 20)),
    (logistic, lambda: (numbers((30, 5), "float64"), np.arange(30) % 2.0, 50)),
    (rows, lambda: (numbers((12, 12), "float64") / 30, numbers(12, "float64", 1), 9)),
    (kalman, lambda: (0.9 * np.eye(4) + 0.01, np.eye(2, 4), numbers((20, 2), "float64"), 20)),
]  # fmt: skip


@pytest.mark.parametrize(("f", "make"), LOOPS, ids=[f.__name__ for f, _ in LOOPS])
def test_loops_stay_in_machine_code(f, make):
    check(f, make, backends=("llvm",), ulp=1 << 14)  # rounding errors of many iterations
    tcompile.reset()
    assert is_native(f, *make())


def test_a_loop_of_products_can_be_interrupted():
    compiled, x = tcompile.compile(power_iteration), np.ones(12)
    compiled(spd(), x, 100)
    handler = signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs ignore it
    timer = threading.Timer(0.1, _thread.interrupt_main)
    try:
        timer.start()
        with pytest.raises(KeyboardInterrupt):
            compiled(spd(), x, 50_000_000)
        timer.join()
    finally:
        signal.signal(signal.SIGINT, handler)


def test_stacks_in_loops():
    def f(a, x, n):
        for _ in range(n):
            x = np.tanh(a @ x)
        return x

    for shapes in (((3, 6, 6), (6, 6)), ((2, 3, 6, 6), (3, 6, 2)), ((6, 6), (2, 1, 6, 3))):
        a, x = (numbers(shape, "float64") / 9 for shape in shapes)
        x = np.broadcast_to(x, (a @ x).shape).copy()
        check(f, lambda a=a, x=x: (a.copy(), x.copy(), 40), backends=("llvm",), ulp=4096)
        tcompile.reset()
        assert is_native(f, a, x, 40)


def test_an_iteration_that_turns_out_singular_raises_there():
    def f(a, n):
        for _ in range(n):
            a = np.linalg.inv(a - np.eye(5))
        return a

    check(f, lambda: (np.eye(5) * 2, 20), backends=("llvm",))
    check(f, lambda: (spd(5), 20), backends=("llvm",), ulp=1 << 20)
