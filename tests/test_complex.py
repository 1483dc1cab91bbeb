"""Programs on complex numbers and half precision, plain and compiled: nothing tells them apart, and they fuse."""

import numpy as np
import pytest
from differential import check

import tcompile


def numbers(dtype, shape, seed=0):
    rng = np.random.default_rng(seed)
    return (rng.normal(size=shape) + 1j * rng.normal(size=shape)).astype(dtype)


PROGRAMS = {
    "polynomial": lambda x, y: x * y + 2 * x - (1 + 2j) / y + x.conj(),
    "parts": lambda x, y: (x * y).real + (x - y).imag,
    "magnitude": lambda x, y: np.abs(x) ** 2 + np.absolute(y),
    "energy": lambda x, y: (x * x.conj()).real,
    "where": lambda x, y: np.where(np.abs(x) > 1, x, y * 1j) + np.where(x.real > 0, x, 0),
    "comparisons": lambda x, y: (x == y) | (x != y) & (x < y) | np.isnan(x),
    "casts": lambda x, y: (x.real.astype("c8"), x.astype("c16"), (x + 1).astype("c8"), x.astype(bool)),
    "powers": lambda x, y: (x**2, x**3, x**-1, x**0.5),
    "rotation": lambda x, y: np.exp(1j * x.real) * y,
    "spectrum": lambda x, y: np.fft.fft(x * 2) * y,
    "turned": lambda x, y: x.T + y.T + 1,
    "flipped": lambda x, y: x[::-1] + y[:, ::-1],
    "broadcast": lambda x, y: x * y[0] + x[:, :1],
    "extrema": lambda x, y: np.maximum(x, y) - np.fmin(x, y),
    "reciprocal": lambda x, y: np.reciprocal(x) + np.square(y),
    "numpy scalars": lambda x, y: x * np.complex64(2 + 1j) + np.float32(3),
    "angle": lambda x, y: np.angle(x * y),
    "softmax": lambda x, y: np.exp(x) / np.exp(x.real).sum(axis=1, keepdims=True),
    "a view": lambda x, y: (x.real, x.imag),
    "scalar results": lambda x, y: (x[0, 0] * y[0, 0] - x[0, 1] * y[0, 1], x[0, 0] / y[0, 0], abs(x[0, 1]), -x[1, 1]),
    "powers of scalars": lambda x, y: (x[0, 0] ** 2, x[0, 1] ** y[0, 1], 1 / x[1, 1], x[1, 0] == y[1, 0]),
}
ONE_KERNEL = {"polynomial", "parts", "magnitude", "energy", "where", "comparisons", "broadcast", "extrema"}


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_programs(name, dtype):
    for shape in ((7, 33), (40, 5)):
        made = lambda: (numbers(dtype, shape), numbers(dtype, shape, 1))
        for compiled in check(PROGRAMS[name], made, backends=("llvm", "eager")):
            assert not compiled.breaks
        if name in ONE_KERNEL:
            compiled = tcompile.compile(PROGRAMS[name])
            compiled(*made())
            assert len(compiled.entries[0].kernels) == 1


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_sums_and_means(dtype):
    for shape in ((7, 33), (3, 3000), (300, 70)):
        made = lambda: (numbers(dtype, shape) + 3 - 2j, numbers(dtype, shape, 1) * 0.1)
        check(lambda x, y: (x.sum(), x.sum(axis=0), (x + y).sum(axis=1, keepdims=True)), made, backends=("llvm",))
        check(lambda x, y: (x.mean(), x.mean(axis=0), x / x.mean(axis=-1, keepdims=True)), made, backends=("llvm",))
        check(lambda x, y: (x.sum(where=x.real > 2), np.nansum(x), x.var(), x.std(axis=0)), made, backends=("llvm",))


def test_numbers_that_vary():
    compiled = tcompile.compile(lambda z, t, n: z * t + n * z - n)
    for dtype in ("complex64", "complex128", "float16"):
        z = numbers("complex64", 50).real.astype(dtype)
        for t, n in ((0.1, 2), (0.2, 3), (0.3, 4), (0.7, 6), (1e-3, 7)):
            got, want = compiled(z, t, n), compiled.function(z, t, n)
            assert got.dtype == want.dtype
            np.testing.assert_array_equal(got, want)
    assert not compiled.breaks and all(len(entry.kernels) == 1 for entry in compiled.entries)


def escape_times(c):
    z, n = np.zeros_like(c), np.zeros(c.shape, int)
    for _ in range(12):
        m = np.abs(z) <= 2
        z[m] = z[m] * z[m] + c[m]
        n[m] += 1
    return z, n


def masked(z, c):
    z = z.copy()
    m = np.isfinite(z) & (z != 0)
    z[m] = c[m] / z[m]
    return z, z[m].sum(), (z[m] < c[m]).any(), (z[m] * 2).all()


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_masks(dtype):
    plane = (np.linspace(-2, 1, 60)[None, :] + 1j * np.linspace(-1, 1, 40)[:, None]).astype(dtype)
    (compiled,) = check(escape_times, lambda: (plane,), backends=("llvm",))
    assert not compiled.breaks

    def arguments():
        z = numbers(dtype, 300)
        z[::7], z[3::11], z[5::13] = np.nan + 1j, complex(np.inf, -np.inf), 0
        return z, numbers(dtype, 300, 1) * 0.1 + 1

    (compiled,) = check(masked, arguments, backends=("llvm",))
    assert not compiled.breaks


HALVES = {
    "polynomial": lambda x, y: x * y + 2 * x - 1 / (y * y + 1),
    "where": lambda x, y: np.where(x > y, x, 0.1) + np.maximum(x, 0),
    "gelu": lambda x, y: 0.5 * x * (1 + np.tanh(x * 0.8)),
    "mixed": lambda x, y: x + y.astype("float32"),
    "narrowed": lambda x, y: (x.astype("float64") * 0.1).astype("float16"),
    "extrema": lambda x, y: (x.max(), x.min(axis=0), x - x.max(axis=1, keepdims=True)),
    "sums": lambda x, y: (x.sum(axis=1), x.mean(axis=0), x.var()),
    "division": lambda x, y: (x // (y + 4), x % (y + 4), np.fmod(x, y + 4)),
    "rounding": lambda x, y: (np.floor(x), np.rint(y), np.sign(x), abs(y), x.astype("int32")),
}


@pytest.mark.parametrize("name", HALVES)
def test_half_precision(name):
    for shape in ((7, 33), (40, 5)):
        made = lambda: (numbers("complex64", shape).real.astype("f2"), numbers("complex64", shape, 1).real.astype("f2"))
        for compiled in check(HALVES[name], made, backends=("llvm", "eager")):
            assert not compiled.breaks
