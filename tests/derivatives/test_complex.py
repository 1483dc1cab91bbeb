"""Derivatives through complex numbers.

Input: real functions of real arrays whose steps are complex, and functions of complex arrays. Output: none; the tests
fail where a derivative differs from finite differences, or from the formula. Why: the rules follow JAX's convention,
which a wrong sign or a missing conjugate breaks in the imaginary parts alone.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tcompile
from tcompile.errors import DerivativeError

X = np.random.default_rng(0).random(8)
Z = np.array([1 + 2j, 0.5 - 1j, -0.3 + 0.1j])
WEIGHTS = np.random.default_rng(1).random(64)


def weighed(v: Any) -> Any:
    """A real number that depends on all real and imaginary parts."""
    v = np.asarray(v).ravel()
    if np.iscomplexobj(v):
        return (v.real * WEIGHTS[: v.size]).sum() + (v.imag * WEIGHTS[::-1][: v.size]).sum()
    return (v * WEIGHTS[: v.size]).sum()


def assigned(x: Any) -> Any:
    z = np.zeros(8, complex)
    z[2:5] = x[:3]
    z[0] = x[4] * 1j
    z[1:3] *= x[5] * 1j
    return z


def iterated(x: Any) -> Any:
    z = np.zeros(8, complex)
    for _ in range(20):
        z = z * z * 0.1 + x * (0.5 + 0.1j)
    return z


def split_step(x: Any) -> Any:
    """Schroedinger's equation, by half steps in space and in frequency."""
    psi = x.astype(complex)
    for _ in range(10):
        psi = np.fft.ifft(np.fft.fft(psi) * np.exp(-0.1j * np.arange(8)))
        psi = psi * np.exp(-0.1j * np.abs(psi) ** 2)
    return psi


def square(x: Any) -> Any:
    return x[:4].reshape(2, 2) + 1j * x[4:].reshape(2, 2)


OF_REALS = {
    "fft": np.fft.fft,
    "fft, padded": lambda x: np.fft.fft(x, 12),
    "fft, cut": lambda x: np.fft.fft(x, 5),
    "ifft": lambda x: np.fft.ifft(x, norm="ortho"),
    "rfft": np.fft.rfft,
    "rfft, cut": lambda x: np.fft.rfft(x, 7),
    "rfft, padded": lambda x: np.fft.rfft(x, 11, norm="forward"),
    "rfft along rows": lambda x: np.fft.rfft(x.reshape(4, 2), axis=0),
    "irfft": lambda x: np.fft.irfft(np.fft.rfft(x) * np.exp(x[0])),
    "irfft, odd": lambda x: np.fft.irfft(np.fft.rfft(x) * (1 + 2j) * x[:5], 7),
    "irfft, padded": lambda x: np.fft.irfft(np.fft.rfft(x) * (1 + 2j) * x[:5], 12, norm="ortho"),
    "irfft, forward": lambda x: np.fft.irfft(np.fft.rfft(x) * (1 + 2j) * x[:5], norm="forward"),
    "irfft of reals": np.fft.irfft,
    "fft2": lambda x: np.fft.fft2(x.reshape(2, 4)),
    "rfft2": lambda x: np.fft.rfft2(x.reshape(2, 4)),
    "irfft2": lambda x: np.fft.irfft2(np.fft.rfft2(x.reshape(2, 4)) ** 2),
    "fftn, sizes": lambda x: np.fft.fftn(x.reshape(2, 4), s=(3, 5), axes=(0, 1)),
    "ifftn": lambda x: np.fft.ifftn(x.reshape(2, 4) * 1j, axes=(0,)),
    "fftshift": lambda x: np.fft.fftshift(np.fft.fft(x)),
    "ifftshift": lambda x: np.fft.ifftshift(np.fft.fft(x[:7])),
    "abs": lambda x: np.abs(np.fft.fft(x)),
    "power spectrum": lambda x: np.abs(np.fft.fft(x)) ** 2,
    "angle": lambda x: np.angle(np.fft.fft(x))[1:4],
    "exp": lambda x: np.exp(1j * x),
    "expm1": lambda x: np.expm1(1j * x),
    "exp2": lambda x: np.exp2(1j * x),
    "sin": lambda x: (x + 1j * x**2) * np.sin(x * 1j + x),
    "cos": lambda x: np.cos(x * 1j + x),
    "tan": lambda x: np.tan(x * 1j + x),
    "sinh": lambda x: np.sinh(x * 1j + x),
    "cosh": lambda x: np.cosh(x * 1j + x),
    "tanh": lambda x: np.tanh(x * 1j + x),
    "arcsin": lambda x: np.arcsin(x * 1j + x),
    "arccos": lambda x: np.arccos(x * 1j + x),
    "arctan": lambda x: np.arctan(x * 1j + 2 * x),
    "arcsinh": lambda x: np.arcsinh(x * 1j + x),
    "arccosh": lambda x: np.arccosh(x * 1j + x),
    "arctanh": lambda x: np.arctanh(x * 1j + x),
    "log": lambda x: np.log(x - 2 + 1j * x),
    "log1p": lambda x: np.log1p(x + 1j * x),
    "log2": lambda x: np.log2(x - 2 + 1j * x),
    "log10": lambda x: np.log10(x - 2 + 1j * x),
    "sqrt": lambda x: np.sqrt(x - 2 + 0.1j),
    "square": lambda x: np.square(x + 1j),
    "reciprocal": lambda x: np.reciprocal(x + 1j),
    "conj": lambda x: np.conj(np.exp(1j * x)) * x,
    "divide": lambda x: 1 / (x + 1j),
    "an int power": lambda x: (x + 1j) ** 3,
    "a float power": lambda x: (x + 1j) ** 2.5,
    "a power of the array": lambda x: (x + 1j) ** (x * 2),
    "a power of itself": lambda x: (x + 1j) ** (x + 1j),
    "a number's power": lambda x: 2.0 ** (x * 1j),
    "mean": lambda x: np.mean((x + 1j) * x),
    "var": lambda x: np.var(x + 1j * x**2),
    "std": lambda x: np.std((x + 1j * x**2).reshape(2, 4), axis=1, ddof=1),
    "cumsum": lambda x: np.cumsum(x + 1j * x**2),
    "matmul": lambda x: (x.reshape(2, 4) + 1j) @ (x.reshape(4, 2) * 1j),
    "matmul with reals": lambda x: (x.reshape(2, 4) + 1j) @ x.reshape(4, 2),
    "vdot": lambda x: np.vdot(x + 1j * x**2, x * 1j + x**3),
    "vecdot": lambda x: np.vecdot(x + 1j * x**2, x * 1j + x**3),
    "norm": lambda x: np.linalg.norm(x + 1j * x**2),
    "inv": lambda x: np.linalg.inv(square(x)),
    "solve": lambda x: np.linalg.solve(square(x), x[:2]),
    "det": lambda x: np.linalg.det(square(x)),
    "assign": assigned,
    "loop": iterated,
    "a wave": split_step,
    "convolve": lambda x: np.convolve(x + 1j, x[:3] * 1j),
    "correlate": lambda x: np.correlate(x + 1j * x**2, x[:3] * 1j + x[1:4]),
    "where": lambda x: np.where(x > 0.5, x * 1j, x),
    "einsum": lambda x: np.einsum("ij,kj->ik", x.reshape(2, 4) + 1j, x.reshape(2, 4) * 1j),
    "einsum, element by element": lambda x: np.einsum("i,i->i", x + 1j, x * 1j),
    "tensordot": lambda x: np.tensordot((x * 1j).reshape(2, 4), (x + 1j).reshape(4, 2), ([1], [0])),
    "tensordot over no axes": lambda x: np.tensordot(x[:3] * 1j, x[:2], 0),
    "scalars": lambda x: (x[0] * 1j) * (x[1] + 2j),
    "gather": lambda x: (x * 1j)[[1, 1, 2]],
    "stack": lambda x: np.stack([x * 1j, x + 1j]),
    "a complex constant": lambda x: x * complex(2, 3),
    "astype": lambda x: x.astype(complex) ** 2,
    "diff": lambda x: np.diff(x * 1j),
    "trace": lambda x: np.trace((x * 1j).reshape(2, 4)),
    "outer": lambda x: np.outer(x * 1j, x),
    "kron": lambda x: np.kron(x[:2] * 1j, x[:3]),
    "cross": lambda x: np.cross(x[:3] * 1j, x[3:6]),
    "the largest": lambda x: np.abs(np.fft.fft(x)).max(),
}


@pytest.mark.parametrize("name", OF_REALS)
def test_complex_steps(name):
    """The gradient is that of finite differences, and so is the derivative of the gradient."""
    of = OF_REALS[name]

    def function(x: Any) -> Any:
        return weighed(of(x))

    tcompile.check_grads(function, order=2, tolerance=2e-5)(X)
    found = tcompile.grad(function)(X)
    assert found.dtype == np.float64
    along = WEIGHTS[20:28]
    assert np.isclose(tcompile.jvp(function, (X,), (along,))[1], found @ along, rtol=1e-12, atol=1e-13)
    with tcompile.set_stance("force_eager"):
        assert np.allclose(tcompile.grad(function)(X), found, rtol=1e-12, atol=1e-13)


def test_tensordot_of_reals_over_no_axes():
    """It is one call of NumPy's, and has the derivative of a product."""
    tcompile.check_grads(lambda x: weighed(np.tensordot(x[:3], x[:2], 0)))(X)


HOLOMORPHIC = {
    "a cube": (lambda z: (z**3).sum(), lambda z: 3 * z**2),
    "sin": (lambda z: np.sin(z).sum(), np.cos),
    "a product": (lambda z: (z * z.sum()).sum(), lambda z: 2 * z.sum() + 0 * z),
    "log": (lambda z: np.log(z).sum(), lambda z: 1 / z),
}


@pytest.mark.parametrize("name", HOLOMORPHIC)
def test_holomorphic(name):
    """A holomorphic function has its complex derivative."""
    function, derivative = HOLOMORPHIC[name]
    for found in (
        tcompile.grad(function, holomorphic=True)(Z),
        tcompile.value_and_grad(function, holomorphic=True)(Z)[1],
        tcompile.compile(lambda z: tcompile.grad(function, holomorphic=True)(z))(Z),
    ):
        assert found.dtype == np.complex128
        assert np.allclose(found, derivative(Z), rtol=1e-13)
    scalar = tcompile.grad(lambda z: z * z, holomorphic=True)(np.complex128(1 + 1j))
    assert type(scalar) is np.complex128 and scalar == 2 + 2j
    assert tcompile.grad(function, holomorphic=True)(Z.astype(np.complex64)).dtype == np.complex64


def test_cotangents_and_tangents():
    """``vjp`` gives the number g with d loss = real(g dz), as JAX does; ``jvp`` the derivative along a direction."""
    _, pull = tcompile.vjp(lambda z: np.abs(z) ** 2, Z)
    assert np.allclose(pull(np.ones(3))[0], 2 * Z.conj())
    assert np.allclose(tcompile.vjp(lambda z: z * 2j, Z)[1](np.array([1 + 0j, 1j, 0]))[0], [2j, -2, 0])
    assert np.allclose(tcompile.vjp(lambda x: x * 2j, Z.real)[1](np.array([1 + 0j, 1j, 0]))[0], [0, -2, 0])
    along = np.array([1j, 1.0, 0.5 - 1j])
    assert np.allclose(tcompile.jvp(lambda z: np.exp(z) * 2j, (Z,), (along,))[1], 2j * np.exp(Z) * along)
    assert np.allclose(tcompile.jvp(lambda z: np.abs(z) ** 2, (Z,), (along,))[1], 2 * (Z.conj() * along).real)
    _, push = tcompile.linearize(np.fft.rfft, X)
    assert np.allclose(push(WEIGHTS[:8]), np.fft.rfft(WEIGHTS[:8]))


def test_at_zero():
    """The gradient of ``abs`` is 0 at 0."""
    assert np.array_equal(tcompile.grad(lambda x: np.abs(x * 1j).sum())(np.zeros(2)), np.zeros(2))


def test_powers_at_zero():
    """An exponent 0 and a base 0 give 0, and no warning, as for reals."""
    ones = np.ones(2, complex)
    zeros = np.array([0j, 1j])
    with np.errstate(all="raise"):
        assert np.array_equal(tcompile.vjp(lambda z: z**0, zeros)[1](ones)[0], [0, 0])
        assert np.array_equal(tcompile.vjp(lambda w: 0.0**w, zeros + 2)[1](ones)[0], [0, 0])
    with np.errstate(all="ignore"):
        assert np.array_equal(tcompile.vjp(lambda z: z ** np.zeros(2), zeros)[1](ones)[0], [0, 0])


def test_powers_of_scalars():
    """A complex scalar has the powers of an array."""
    found = tcompile.grad(lambda z: z[0] ** 2, holomorphic=True)(Z)
    assert np.allclose(found, [2 * Z[0], 0, 0])
    assert np.isclose(tcompile.grad(lambda z: z**3, holomorphic=True)(np.complex128(1 + 2j)), 3 * (1 + 2j) ** 2)


def test_batches_and_jacobians():
    """Batches and Jacobians of functions whose steps are complex."""

    def function(x: Any) -> Any:
        return (np.abs(np.fft.fft(x)) ** 4).sum()

    rows = X.reshape(2, 4)
    each = [tcompile.grad(function)(row) for row in rows]
    assert np.allclose(tcompile.vmap(tcompile.grad(function))(rows), each)
    spectrum = tcompile.jacrev(lambda x: np.abs(np.fft.fft(x)))(X)
    assert np.allclose(spectrum, tcompile.jacfwd(lambda x: np.abs(np.fft.fft(x)))(X))
    assert np.allclose(tcompile.hessian(function)(X), tcompile.hessian(function)(X).T)


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: tcompile.grad(lambda z: np.abs(z).sum())(Z), "holomorphic=True"),
        (lambda: tcompile.grad(lambda x: (x * 1j).sum())(X), "returns a complex number"),
        (lambda: tcompile.grad(lambda z: (z * 1j).sum(), holomorphic=True)(X), "arguments are complex, got"),
        (lambda: tcompile.grad(lambda z: np.abs(z).sum(), holomorphic=True)(Z), "returns a complex scalar"),
        (lambda: tcompile.grad(lambda z: z * 2, holomorphic=True)(Z), "returns a complex scalar"),
        (lambda: tcompile.grad(lambda z: z * z, holomorphic=True)(1 + 1j), "complex128"),
        (lambda: tcompile.vjp(lambda x: x * 2, X)[1](X * 1j), "A cotangent is complex"),
        (lambda: tcompile.jvp(lambda x: x * 2, (X,), (X * 1j,)), "Tangent 0 is complex"),
        (lambda: tcompile.grad(lambda x: np.sign(x * 1j).real.sum())(X), "sign has no derivative rule for complex"),
        (lambda: tcompile.grad(lambda x: np.linalg.svd(square(x), False)[1].sum())(X), "svd has no derivative rule"),
        (lambda: tcompile.jacrev(np.fft.fft)(X), "functions with real results"),
        (lambda: tcompile.jacfwd(lambda z: np.abs(z) ** 2)(Z), "jacfwd takes real arguments"),
    ],
)  # fmt: skip
def test_what_is_refused(make, text):
    """What has no derivative says why."""
    with pytest.raises(DerivativeError, match=text):
        make()


def test_parts_that_are_written():
    """A write through ``.real`` or ``.imag`` is refused: it is no linear function of complex numbers."""

    def function(x: Any) -> Any:
        z = np.zeros(8, complex)
        z.imag[2:4] = x[:2]
        return weighed(z * z)

    with pytest.raises(DerivativeError, match="real or the imaginary part"):
        tcompile.grad(function)(X)
