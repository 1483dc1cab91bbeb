"""The triton backend on a real GPU: `make test-gpu`. Where there is none, all of this is skipped."""

import importlib
import itertools

import numpy as np
import pytest
from differential import Run, assert_same_run

import tcompile
from tcompile.errors import BackendError
from tests.backends.gpu_programs import ON_CUPY, ON_NUMPY, arrays


def _has_gpu() -> bool:
    try:
        from tcompile.backends.triton import cuda

        cuda.current()
    except BackendError:
        return False
    return True


pytestmark = pytest.mark.skipif(not _has_gpu(), reason="no GPU")
FLOATS = ["float32", "float64"]
FUNCTIONS = ["exp", "exp2", "expm1", "log1p", "sin", "cos", "tan", "arctan", "sinh", "cosh", "tanh", "arcsinh", "cbrt",
             "sqrt", "floor", "rint", "absolute", "negative"]  # fmt: skip


def on_gpu(function, **settings):
    """The function, compiled."""
    return tcompile.compile(function, backend="triton", **settings)


def same_on_gpu(function, make_args, ulp=8.0):
    compiled = on_gpu(function)
    for _ in range(2):
        want = Run(function, make_args())
        assert_same_run(Run(compiled, make_args(), interpret=False), want, ulp=ulp)
    assert compiled.graphs


def sample(dtype, shape, seed=0):
    rng = np.random.default_rng(seed)
    if np.dtype(dtype).kind == "f":
        return rng.normal(size=shape).astype(dtype)
    return rng.integers(0 if np.dtype(dtype).kind in "bu" else -7, 2 if dtype == "bool" else 8, shape).astype(dtype)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions(name, dtype):
    function = getattr(np, name)
    for n in (1, 1000, 100_003):
        x = np.abs(sample(dtype, n)) if name == "sqrt" else sample(dtype, n)
        if name == "log1p":
            x = np.abs(x)
        same_on_gpu(lambda x: function(x) + 0, lambda: [x.copy()], ulp=8)


BOUND = 4.0  # ULP, as docs/numerics.md says


@pytest.mark.parametrize("dtype", FLOATS)
def test_functions_are_within_the_documented_bound(dtype, load_tool):
    tool, cupy, found = load_tool("write_vector_math"), importlib.import_module("cupy"), {}
    for name, (called, *_) in {**tool.ONE, **tool.TWO}.items():
        if name == "logaddexp":  # CuPy's is not captured
            continue
        function = getattr(np, called)
        given = tool.arguments(name, dtype, 1 if name in tool.ONE else 2)
        compiled = tcompile.compile(tool._wrapped(called, len(given)), fullgraph=True)
        with np.errstate(all="ignore"):
            exact = function(*(x.astype(np.longdouble) for x in given))
        found[name] = tool.error(compiled(*map(cupy.asarray, given)).get(), exact)
    print(dtype, {name: round(ulp, 2) for name, ulp in found.items()})
    assert max(found.values()) <= BOUND, found


def test_memory_that_runs_out_is_cupys_error_and_loses_nothing():
    cupy = importlib.import_module("cupy")
    x = cupy.ones(1 << 22, "f4")
    compiled = tcompile.compile(lambda x: (x + 1, x * 2), fullgraph=True)
    compiled(x)
    pool = cupy.get_default_memory_pool()
    pool.free_all_blocks()
    pool.set_limit(size=pool.total_bytes() + 1000)
    try:
        with pytest.raises(cupy.cuda.memory.OutOfMemoryError):
            compiled(x)
    finally:
        pool.set_limit(size=0)
    got = compiled(x)
    assert float(got[0].sum()) == float(got[1].sum()) == 2 * x.size


def test_streams_of_cupys_and_threads():
    from concurrent.futures import ThreadPoolExecutor

    cupy = importlib.import_module("cupy")
    for mode in ("default", "reduce-overhead"):

        def steps(x):
            for k in range(4):
                x = x - x.sum(axis=k % 2, keepdims=True) / 64
            return x

        compiled = tcompile.compile(steps, mode=mode)
        given = [sample("float64", (40, 40), n) for n in range(8)]
        want = [steps(x) for x in given]

        def turns(n):
            with cupy.cuda.Stream(non_blocking=True) as stream:
                x = cupy.asarray(given[n])
                made = [compiled(x) for _ in range(30)]
                stream.synchronize()
                return [m.get() for m in made]

        with ThreadPoolExecutor(4) as pool:
            for n, found in enumerate(pool.map(turns, range(8))):
                for got in found:
                    np.testing.assert_allclose(got, want[n], rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("mode", ["default", "reduce-overhead"])
def test_parts_of_rows_are_merged_once_all_are_there(mode):
    """Programs leave parts in any order, and launches on several streams run at once: the bits are always the same."""
    cupy = importlib.import_module("cupy")
    shapes = [(3_000_000,), (3, 400_000), (200_000, 40), (70_000, 300)]
    functions = [lambda x: (x * x).sum(axis=0), lambda x: x.sum(axis=-1), lambda x: (x - x.mean(axis=0)).var(axis=0)]
    streams = [cupy.cuda.Stream(non_blocking=True) for _ in range(4)]
    for dtype in ("float32", "float64", "int64"):
        for function in functions:
            for shape in shapes:
                tcompile.reset()
                compiled = tcompile.compile(function, fullgraph=True, mode=mode, dynamic=False)
                x = cupy.asarray(sample(dtype, shape))
                want = compiled(x).get()
                np.testing.assert_allclose(want, function(x).get(), rtol=1e-3, atol=1e-3)
                cupy.cuda.Device().synchronize()
                made = []
                for _ in range(25):
                    for stream in streams:
                        with stream:
                            made.append(compiled(x))
                cupy.cuda.Device().synchronize()
                for got in made:
                    np.testing.assert_array_equal(got.get(), want)


@pytest.mark.parametrize("dtype", ["int8", "int32", "int64", "uint8", "uint64", "float16", "float32", "float64"])
def test_arithmetic(dtype):
    def f(x, y):
        return x + y, x * y, np.maximum(x, y), x < y, np.where(x > y, x, y), x // (y * y + 1)

    same_on_gpu(f, lambda: [sample(dtype, (70, 90)), sample(dtype, (70, 90), 1)])
    same_on_gpu(f, lambda: [sample(dtype, (90, 70)).T, sample(dtype, (70, 180), 1)[:, ::2]])


@pytest.mark.parametrize("dtype", ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"])
def test_the_least_and_the_largest_integers(dtype):
    """What is computed of them is computed with, in registers that may have more bits."""

    def f(x, y):
        a, b = abs(x), -x
        return (a % 6, b % 6, a // 7, a < 0, b > y, a.astype("f4"), b.astype("i8"), (x + y) % 5, (x * y) // 3,
                np.maximum(a, y), np.where(b < a, 1, 2), (x - y) > 0, np.sign(a), ~x % 9,
                (0 - x) % 6, (x * x.dtype.type(-1)) // 7 if x.dtype.kind == "i" else x)  # fmt: skip

    info = np.iinfo(dtype)
    ends = np.array([info.min, info.min + 1, 0, 1, 2, info.max // 2, info.max - 1, info.max], dtype)
    x, y = (np.ascontiguousarray(a) for a in np.meshgrid(ends, ends))
    compiled = on_gpu(f, fullgraph=True)
    with np.errstate(all="ignore"):
        for got, want in zip(compiled(x, y), f(x, y), strict=True):
            np.testing.assert_array_equal(got, want)
            assert got.dtype == want.dtype


def test_complex_numbers():
    def f(x, y):
        return x * y + x / (y + 3), np.abs(x), x.sum()

    x, y = (sample("float64", 500, n) + 1j * sample("float64", 500, n + 5) for n in (0, 1))
    same_on_gpu(f, lambda: [x, y])


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32"])
@pytest.mark.parametrize("shape", [(1000,), (3_000_000,), (3, 400_000), (400_000, 3), (40, 50, 60)])
def test_reductions(shape, dtype):
    x = sample(dtype, shape)
    positive = np.abs(x) + 1  # nothing cancels; NumPy, which adds rows one by one, is further from the sum than we are
    bound = {"float32": 2, "float64": 16, "int32": 0}[dtype] * (np.finfo(dtype).eps if dtype != "int32" else 0)
    for n in range(1, len(shape) + 1):
        for axes in itertools.combinations(range(len(shape)), n):
            same_on_gpu(lambda x: (x.max(axis=axes), x.min(axis=axes)), lambda: [x])
            same_on_gpu(lambda x: x.sum(axis=axes), lambda: [positive], ulp=1 << 14)
            got = on_gpu(lambda x: x.sum(axis=axes), fullgraph=True)(positive)
            exact = positive.astype(np.longdouble if dtype == "float64" else "f8").sum(axis=axes)
            np.testing.assert_allclose(got, exact, rtol=bound)


@pytest.mark.parametrize("shape", [(1000,), (3_000_000,), (3, 400_000), (400_000, 3), (40, 50, 60)])
def test_cumulative_sums_and_products(shape):
    for axis in range(len(shape)):
        x = sample("int64", shape)
        same_on_gpu(lambda x: (np.cumsum(x, axis=axis), np.cumprod(x, axis=axis)), lambda: [x])
        wide = np.random.default_rng(0).random(shape)  # all positive: nothing cancels
        same_on_gpu(lambda x: np.cumsum(x, axis=axis), lambda: [wide], ulp=1 << 12)
        if x.ndim > 1:
            same_on_gpu(lambda x: np.cumprod(x, axis=axis), lambda: [wide + 0.5], ulp=0)


@pytest.mark.parametrize("shape", [(300, 17), (64, 1000), (5, 100_000)])
def test_softmax_and_layer_norm(shape):
    def softmax(x):
        e = np.exp(x - x.max(axis=-1, keepdims=True))
        return e / e.sum(axis=-1, keepdims=True)

    def layer_norm(x):
        d = x - x.mean(axis=-1, keepdims=True)
        return d / np.sqrt((d * d).mean(axis=-1, keepdims=True) + 1e-5)

    x = sample("float32", shape)
    same_on_gpu(softmax, lambda: [x], ulp=64)
    got = on_gpu(layer_norm, fullgraph=True)(x)
    np.testing.assert_allclose(got, layer_norm(x.astype("f8")), rtol=1e-5, atol=1e-6)  # what is near the mean cancels


@pytest.mark.parametrize("shape", [(4096, 70), (3000, 4000), (4, 300_000)])
@pytest.mark.parametrize(("dtype", "rtol"), [("float32", 1e-5), ("float64", 1e-13)])
def test_variances(dtype, rtol, shape):
    x = sample(dtype, shape) + 3
    for axis in (0, 1, None):
        got = on_gpu(lambda x: x.var(axis=axis), fullgraph=True)(x)
        np.testing.assert_allclose(got, x.astype("f8").var(axis=axis), rtol=rtol)


@pytest.mark.parametrize("dtype", FLOATS)
def test_rows_of_few_elements(dtype):
    p = sample(dtype, (700, 3))
    same_on_gpu(lambda p: np.sqrt(((p[:, None] - p[None]) ** 2).sum(axis=-1)), lambda: [p], ulp=8)
    same_on_gpu(lambda p: (p.max(axis=1), p.prod(axis=1), p / abs(p).sum(axis=1, keepdims=True)), lambda: [p], ulp=8)


@pytest.mark.parametrize("function", ON_NUMPY)
def test_programs(function):
    same_on_gpu(function, arrays)


@pytest.mark.parametrize("mode", ["default", "reduce-overhead", "max-autotune"])
@pytest.mark.parametrize("function", ON_CUPY)
def test_programs_on_cupy_arrays(function, mode):
    cupy = importlib.import_module("cupy")
    compiled = tcompile.compile(function, fullgraph=True, mode=mode)
    for _ in range(3):
        mine, plain = [[cupy.asarray(x) for x in arrays("f4")] for _ in range(2)]
        same_cupy_values(compiled(*mine), function(*plain))
        same_cupy_values(mine, plain)
    assert compiled.graphs


def same_cupy_values(got, want):
    if isinstance(want, tuple | list):
        assert len(got) == len(want)
        for a, b in zip(got, want, strict=True):
            same_cupy_values(a, b)
    elif hasattr(want, "get"):
        assert (type(got), got.dtype, got.shape, got.strides) == (type(want), want.dtype, want.shape, want.strides)
        np.testing.assert_allclose(got.get(), want.get(), rtol=1e-5, atol=1e-5)
    else:
        assert got == want


def test_offsets_of_64_bits():
    x = np.zeros((1 << 31) + 5, np.int8)
    x[-1] = 3
    compiled = on_gpu(lambda x: x + x)
    got = compiled(x)
    assert got[-1] == 6 and not got[:-1].any()


def test_a_block_on_the_gpu():
    compiled = tcompile.compile(lambda x: np.sqrt(x) * 2.0)
    with tcompile.device("cuda"):
        np.testing.assert_array_equal(compiled(np.arange(9.0)), np.sqrt(np.arange(9.0)) * 2)
