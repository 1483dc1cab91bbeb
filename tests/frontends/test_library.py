"""Every function that stays a call of NumPy, from one table: over dtypes, memory orders, ranks and empty arrays.

What a call gives is compared bit for bit; what is computed by kernels as well, for the graph runs in NumPy here.
"""

from __future__ import annotations

import functools
import itertools
import re
import sys
import warnings

import numpy as np
import pytest

import tcompile
from tcompile.frontends.numpy import coverage
from tcompile.numpy_versions import DOT_WARNS, HAS_MATVEC

from .harness import check as harness_check
from .test_ufuncs import LAYOUTS, sample

# x is of shape (3, 4), y of the same shape in another dtype, z a square matrix well away from singular ones.
TABLE = """
np.median(x) | np.median(x, 0) | np.median(x, axis=(0, 1), keepdims=True) | np.median(x, -1, keepdims=True)
np.percentile(x, 30) | np.percentile(x, [10, 50.0], axis=0) | np.percentile(x, y[0, :2] * 0 + 5, axis=1)
np.percentile(x, 30, method='nearest') | np.quantile(x, 0.25, axis=1, keepdims=True) | np.quantile(x, [0.1, 0.9])
np.quantile(x, 0.5, axis=0, weights=np.abs(y[:, 0]) + 1, method='inverted_cdf')
np.nanmedian(x) | np.nanmedian(x, axis=0) | np.nanpercentile(x, 30, 1) | np.nanquantile(x, [0.2, 0.3], axis=0)
np.nanmax(x) | np.nanmax(x, axis=1) | np.nanmin(x, 0, keepdims=True) | np.nanmean(x) | np.nanmean(x, -1)
np.nanvar(x) | np.nanvar(x, 0, ddof=1) | np.nanstd(x, axis=1) | np.nanargmax(x) | np.nanargmin(x, axis=1)
np.nansum(x, 1) | np.nanprod(x) | np.nanprod(x, axis=0) | np.nancumsum(x) | np.nancumsum(x, 1) | np.nancumprod(x, 0)
np.average(x, weights=y) | np.average(x, 0, weights=[1, 2, 3]) | np.average(x, axis=1, returned=True)
np.cov(x) | np.cov(x, rowvar=False) | np.cov(x[0], y[0]) | np.cov(x, bias=True) | np.cov(x[0]) | np.cov(x, y, ddof=0)
np.corrcoef(x) | np.corrcoef(x[0], y[0]) | np.corrcoef(x, rowvar=False)
np.histogram(x) | np.histogram(x, 5) | np.histogram(x, bins=4, range=(0, 3)) | np.histogram(x, [0, 1, 2, 5.5])
np.histogram(x, density=True) | np.histogram(x, 3, weights=y) | np.histogram_bin_edges(x, 7)
np.histogram2d(x[0], y[0]) | np.histogram2d(x[0], y[0], [3, 4]) | np.digitize(x, [0, 1, 2])
np.digitize(x, [1.5], True)
np.interp(x, [0, 1, 2], [5.0, 7.0, 8.0]) | np.interp(x, y[0], y[1], left=-1, right=1)
np.interp(x, [0.0, 1.0, 2.0], [5.0, 6, 7], period=4) | np.trapezoid(x) | np.trapezoid(x, dx=2)
np.trapezoid(x, axis=0)
np.trapezoid(x, [0, 1, 4, 9]) | np.trapezoid(x[0], y[0])
np.gradient(x) | np.gradient(x, axis=1) | np.gradient(x, 2.0) | np.gradient(x[0], [1.0, 2.0, 4.0, 8.0])
np.gradient(x, 1, 2.5) | np.gradient(x, axis=(0, 1)) | np.gradient(x, edge_order=2, axis=0)
np.diff(x, prepend=0) | np.diff(x, 2, append=y[:, :1]) | np.diff(x, n=3, axis=1) | np.ediff1d(x)
np.ediff1d(x, to_end=[1], to_begin=2)
np.convolve(x[0], y[0]) | np.convolve(x[0], y[1], 'same') | np.correlate(x[0], y[0])
np.correlate(x[0], [1, 2], 'full')
np.unwrap(x) | np.unwrap(x, axis=0) | np.unwrap(x, period=10) | np.i0(x) | np.sinc(x) | np.angle(x)
np.angle(x, deg=True)
np.isneginf(x) | np.isposinf(x) | np.fix(x) | np.iscomplex(x) | np.isreal(x) | np.nan_to_num(x, nan=2)
np.round(x, 1) | np.around(x, -1) | x.round(2) | np.isclose(x, y) | np.isclose(x, 1, equal_nan=True)
np.isin(x, [0, 1])
np.isin(x, y, invert=True) | np.clip(x, 0, y) | np.sort(x, kind='stable') | np.sort(x, axis=0) | np.sort(x, None)
np.argsort(x, 0, kind='stable') | np.argsort(x) | x.argsort(axis=None) | np.partition(x, 2)
np.partition(x, (0, 1), axis=0)
np.argpartition(x, 1) | x.argpartition(2, axis=0) | np.lexsort((x, y)) | np.lexsort((x[0], y[0])) | np.sort_complex(x)
np.searchsorted(np.sort(x[0]), y) | np.searchsorted(np.sort(x[0]), 1) | np.searchsorted([1, 2, 3], x, side='right')
np.searchsorted(np.sort(x[0]), [1, 2], sorter=[0, 1, 2, 3]) | np.sort(x[0]).searchsorted(y[0])
np.take(x, [0, 2], 0) | np.take(x, 1) | np.take(x, 1, axis=1) | np.take(x, y.astype('i8') * 0)
x.take([[1, 2]], axis=1)
np.take(x, [7, -9], mode='wrap') | np.take_along_axis(x, np.argsort(x, 1), 1)
np.take_along_axis(x, np.argmax(x, 0, keepdims=True), 0) | np.take_along_axis(x, np.argsort(x, None), None)
np.choose(y.astype('i8') * 0, [x, 5]) | np.choose([0, 1, 0, 1], (x, y)) | (y.astype('i8') * 0).choose([x, y])
np.select([x > 2, x > 0], [x, y]) | np.select([x > 2, x > 1], [x, 3], 7) | np.select([x > 0], [x * 2], default=y)
np.packbits(x > 0) | np.packbits(x > 0, axis=1) | np.unpackbits(x.astype('u1'))
np.unpackbits(x.astype('u1'), axis=0)
np.unpackbits(x.astype('u1'), axis=1, count=5, bitorder='little') | np.packbits(x.astype('u1'), 0, 'little')
np.unravel_index(np.argmax(x), x.shape) | np.unravel_index(np.argsort(x, 1), (5, 6))
np.unravel_index([1, 2], (3, 4), 'F')
np.ravel_multi_index((np.argsort(x, 1), np.argsort(y, 1)), (4, 4)) | np.ravel_multi_index(([1, 2], [0, 1]), (3, 3))
np.ravel_multi_index((np.argsort(x, 1), 9), (4, 4), mode='clip')
np.roll(x, 1) | np.roll(x, -7, 1) | np.roll(x, (1, 2), (0, 1)) | np.roll(x, 2, axis=(0, 1)) | np.repeat(x, 2)
np.repeat(x, 3, 0) | x.repeat(2, axis=1) | np.repeat(x, [2], axis=1) | np.tile(x, 2) | np.tile(x, (2, 1, 3))
np.tile(3, 4)
np.resize(x, (2, 9)) | np.resize(x, 5) | np.resize(x, (3, 4)) | np.pad(x, 1) | np.pad(x, ((1, 2), (0, 3)), 'edge')
np.pad(x, (1, 2), mode='reflect') | np.pad(x, ((1, 1),), 'constant', constant_values=7) | np.pad(x, 2, 'wrap')
np.pad(x, [(0, 1), (2, 0)], 'linear_ramp', end_values=(1, 2)) | np.pad(x, 1, 'mean') | np.pad(x, 1, 'symmetric')
np.delete(x, 1, 0) | np.delete(x, [0, 2], axis=1) | np.delete(x, slice(None, None, 2), 1) | np.delete(x, 3)
np.delete(x, -1, 1)
np.insert(x, 1, 5) | np.insert(x, 1, y[0], axis=0) | np.insert(x, [1, 2], 3, axis=1) | np.insert(x, slice(0, 2), 0, 1)
np.append(x, y) | np.append(x, y, axis=0) | np.append(x, [1, 2]) | np.append(x, 5)
np.tril(x) | np.triu(x, 1) | np.tril(x, -1) | np.triu(x[0]) | np.tri(3) | np.tri(3, 4, 1, dtype=int) | np.diag(x[0])
np.diag(x[0], 2) | np.diag(x) | np.diag(x, 1) | np.diagflat(x) | np.diagflat([1, 2], -1) | np.vander(x[0])
np.vander(x[0], 3, increasing=True) | np.asfortranarray(x) | np.asfortranarray(x, dtype='f8')
np.array(x, ndmin=3) | np.array(x, order='F') | np.copy(x, 'F') | np.array(x, order='C')
np.ascontiguousarray(x, 'f4')
np.tril_indices(3) | np.tril_indices(3, 1, 4) | np.triu_indices(4, -1) | np.triu_indices(3, k=5)
np.tril_indices_from(z)
np.triu_indices_from(z, 1) | np.diag_indices(3) | np.diag_indices(4, 3) | np.diag_indices_from(z)
np.ix_([0, 1], [2, 3]) | np.ix_(np.arange(2), np.arange(3)) | np.indices((2, 3)) | np.indices((2, 3), sparse=True)
np.indices((2,), dtype='f4') | np.meshgrid(x[0], y[0], sparse=True) | np.meshgrid(x, 2.0)
np.meshgrid(x[0], indexing='ij')
np.bartlett(5) | np.blackman(6) | np.hamming(7) | np.hanning(1) | np.kaiser(5, 3.0) | np.hanning(0)
np.linspace(x[0], y[0], 5) | np.linspace(0, 1, 5, retstep=True) | np.linspace(x, 3, 4, axis=-1)
np.linspace(x[0, 0], 2, 3)
np.logspace(0, 2, 5) | np.logspace(0, 2, 4, base=2) | np.logspace(x[0] * 0, 2, 3) | np.geomspace(1, 100, 5)
np.geomspace(1, 8, 4, dtype='f4') | np.geomspace(np.abs(x) + 1, 100, 3, axis=1)
np.zeros((2, 3), order='F') | np.ones((2, 3), order='F', dtype='i4') | np.zeros_like(x, order='F')
np.full((2, 3), x[0, 0])
np.full_like(x, y[0], dtype='f8') | np.ones_like(x, shape=(2, 5)) | np.eye(3, order='F') | np.full((3, 4), x)
np.matmul(x, y.T) | np.dot(x, y.T) | np.dot(x, 2) | x.dot(y[0]) | np.inner(x, y) | np.inner(x, 3) | np.vdot(x, y)
np.vecdot(x, y) | np.matvec(x, y[0]) | np.vecmat(x[:, 0], y) | np.outer(x, y) | np.outer(x[0], 2) | np.kron(x, y)
np.kron(x[0], y) | np.kron(2, x) | np.tensordot(x, y) | np.tensordot(x, y, ([1], [1])) | np.tensordot(x, y, axes=0)
np.cross(x[:, :3], y[:, :3]) | np.cross(x[0, :3], y[:, :3]) | np.cross(x.T[:, :3], y[:3, 1], axisa=1)
np.trace(x) | x.trace(1) | np.trace(x, dtype='f8') | np.trace(np.stack([x, y]), axis1=1, axis2=2)
np.einsum('ij,kj->ik', x, y) | np.einsum('ii', z) | np.einsum('...j,...j', x, y) | np.einsum('ij->', x)
np.einsum('i...->...', x) | np.einsum('ij,jk,kl', z, z, z) | np.einsum('ij,ij->ij', x, y) | np.einsum('ii->i', z)
np.linalg.inv(z) | np.linalg.inv(np.stack([z, z])) | np.linalg.pinv(x) | np.linalg.det(z) | np.linalg.slogdet(z)
np.linalg.cholesky(z @ z.T) | np.linalg.cholesky(z @ z.T, upper=True) | np.linalg.matrix_power(z, 3)
np.linalg.matrix_power(z, 0) | np.linalg.matrix_power(z, -2) | np.linalg.matrix_power(z, 1)
np.linalg.solve(z, z[0]) | np.linalg.solve(z, z) | np.linalg.solve(np.stack([z, z]), z) | np.linalg.eig(z)
np.linalg.eigvals(z) | np.linalg.eigh(z @ z.T) | np.linalg.eigvalsh(z, 'U') | np.linalg.eigh(z).eigenvalues
np.linalg.svd(x) | np.linalg.svd(x, full_matrices=False) | np.linalg.svd(x, compute_uv=False) | np.linalg.svdvals(x)
np.linalg.qr(x) | np.linalg.qr(x, 'r') | np.linalg.qr(x, mode='complete') | np.linalg.qr(x.T, 'raw')
np.linalg.matrix_rank(x) | np.linalg.matrix_rank(np.stack([x, y])) | np.linalg.cond(z) | np.linalg.cond(z, 1)
np.linalg.norm(x) | np.linalg.norm(x, 1) | np.linalg.norm(x, axis=0) | np.linalg.norm(x, 'nuc') | np.linalg.norm(x, 2)
np.linalg.norm(x, np.inf, (0, 1), True) | np.linalg.norm(x[0], 3) | np.linalg.vector_norm(x, axis=1, ord=1)
np.linalg.matrix_norm(x) | np.linalg.matrix_norm(np.stack([x, y]), keepdims=True, ord=-2) | np.linalg.vector_norm(x)
np.linalg.tensorinv(z, 1) | np.linalg.tensorsolve(z, z[0]) | np.linalg.multi_dot([x, y.T, x]) | np.linalg.vecdot(x, y)
np.linalg.outer(x[0], y[0]) | np.linalg.tensordot(x, y, axes=2) | np.linalg.trace(x, offset=1)
np.linalg.matmul(x, y.T)
np.linalg.cross(x[:, :3], y[:, :3]) | np.linalg.diagonal(x) | np.linalg.matrix_transpose(x)
np.fft.fft(x) | np.fft.fft(x, 6, 0) | np.fft.ifft(x, norm='ortho') | np.fft.rfft(x) | np.fft.rfft(x, n=7)
np.fft.irfft(x)
np.fft.irfft(x, 5, axis=0) | np.fft.hfft(x) | np.fft.ihfft(x) | np.fft.fft2(x) | np.fft.ifft2(x, s=(2, 2))
np.fft.rfft2(x)
np.fft.irfft2(x) | np.fft.fftn(x, axes=(0,)) | np.fft.ifftn(x) | np.fft.rfftn(x, (5, 6), axes=(0, 1))
np.fft.irfftn(x)
np.fft.fftshift(x) | np.fft.ifftshift(x, axes=1) | np.fft.fftfreq(5) | np.fft.fftfreq(6, 0.5) | np.fft.rfftfreq(7)
np.fft.fftshift(x, (0, 1))
np.polyval([1, 2.0, 3], x) | np.polyval(y[0], x) | np.polyval([], x) | np.polyadd(x[0], [1, 2])
np.polysub([1], y[0])
np.polyder(x[0]) | np.polyder(x[0], 2) | np.polyint(x[0]) | np.polyint(x[0], 2, [1, 2]) | np.poly(x[0])
np.polyfit([0, 1, 2, 3.0], x[0], 1) | np.polyfit([0, 1, 2.0], x, 1)
np.polyfit([0, 1, 2, 3], y[0], 2, w=[1, 2, 3, 4])
np.sum(x, where=y > 0) | np.sum(x, 0, initial=3) | x.sum(axis=1, where=y > 0, initial=1) | np.max(x, initial=2)
np.max(x, 0, where=y > 0, initial=0) | np.min(x, axis=1, initial=5) | np.prod(x, where=[True, False, True, True])
np.any(x, where=y > 0) | np.all(x, 0, where=y > 0) | np.mean(x, dtype='f4')
np.std(x, 0, mean=np.mean(x, 0, keepdims=True))
np.var(x, correction=1) | np.amax(x) | np.amin(x, 0) | np.argmax(x) | x.argmin(1) | np.ptp(x) | np.count_nonzero(x, 0)
np.cumsum(x, 0) | x.cumprod(1) | np.cumulative_sum(x, axis=0) | np.cumulative_prod(x, axis=1, include_initial=True)
np.cumulative_sum(x[0]) | np.cumsum(x, dtype='c16')
np.add.accumulate(x) | np.maximum.accumulate(x, 1) | np.multiply.outer(x[0], y) | np.subtract.outer(x, 2)
np.add.reduceat(x, [0, 2], 1) | np.hypot.reduce(x) | np.add.reduce(x, (0, 1), keepdims=True)
np.logaddexp.accumulate(x[0]) | np.add.reduceat(np.arange(99.0), [0, 40, 9]) | np.maximum.reduceat(x, (1, 0))
np.maximum.reduce(x, initial=2) | np.add.reduce(x, 1, where=y > 0) | np.minimum.outer(2, y) | np.bitwise_xor.reduce(x)
np.modf(x) | np.frexp(x) | np.divmod(x, 3) | np.divmod(y, x + 9) | np.add(x, y, casting='unsafe')
np.sin(x, order='F')
np.float_power(x, 2) | np.heaviside(x, 0.5) | np.ldexp(x, 2) | np.gcd(x, 6) | np.lcm(x, 4) | np.logaddexp2(x, y)
np.spacing(x) | np.deg2rad(x) | np.degrees(x) | np.rad2deg(x) | np.radians(x) | np.bitwise_count(x)
np.multiply(x, y, dtype='f8')
np.rot90(x) | np.rot90(x, 2) | np.rot90(x, -1, (1, 0)) | np.rot90(x, 4) | np.unstack(x) | np.unstack(x, axis=1)
np.diagonal(x) | np.diagonal(x, 1) | x.diagonal(-1) | np.diagonal(np.stack([x, y]), axis1=1, axis2=2) | x.diagonal()
np.dsplit(np.dstack([x, y]), 2) | np.iterable(x), np.iterable(3) | np.common_type(x, y)
np.concatenate([x, y], axis=1, dtype='c16') | np.concat([x, y]) | np.stack([x, y], 1) | np.vstack([x, y])
np.hstack([x, y]) | np.block([[x, y], [y, x]]) | np.block([x, np.ones((3, 1))]) | np.block(x)
np.block([x[0], 2, y[1]])
np.block([[[x, y]], [[y, x]]]) | np.block([[np.eye(2), np.zeros((2, 3))], [x[:, :2], np.ones((3, 3))]])
np.dstack([x, y]) | np.column_stack([x, y]) | x.real | x.imag | np.real(x) | np.imag(x) | x.ravel('F')
x.flatten('F')
np.abs(x) | np.absolute(x) | np.fabs(x) | np.conj(x) | np.conjugate(x) | x.conj() | x.conjugate() | np.isnat(x)
x.cumsum() | np.cumprod(x, 0) | x.cumsum(0) | x.sum(0) | x.repeat(2) | x.take(0)
np.reshape(x, (4, 3), order='F') | x.copy('F') | x.astype('f4', order='F') | np.ravel(x, 'K')
"""
LATER = () if HAS_MATVEC else ("np.matvec(", "np.vecmat(")
PROGRAMS = [
    text.strip() for line in TABLE.splitlines() for text in line.split(" | ")
    if text.strip() and not text.strip().startswith(LATER)
]  # fmt: skip
SPECIAL = np.array([[0.0, -0.0, np.nan, np.inf], [1.5, np.nan, -np.inf, 2], [3, 1e300, -1e-300, 7]])
DTYPES = ["?", "i1", "u2", "i4", "i8", "u8", "f2", "f4", "f8", "c8", "c16"]
NOT_CAPTURED = {  # in float64 and C order
    "np.linalg.matrix_power(z, 1)",  # the argument itself
    "np.einsum('ii->i', z)",  # a view
    "x.imag",
    "np.imag(x)",  # a read-only array of zeros
}


def arguments(dtype, other="f4", layout=None):
    z = sample(dtype, (4, 4)) % 7 + (np.eye(4) * 9).astype(dtype) if dtype[0] not in "?c" else sample(dtype, (4, 4))
    x, y = sample(dtype), sample(other)
    if layout is not None:
        x, y, z = (LAYOUTS[layout](a[:, :, None])[:, :, 0] for a in (x, y, z))
    return x, y, z.astype(dtype)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("text", PROGRAMS)
def test_call(text):
    # Which of two zeros is the larger depends in NumPy on where they stand.
    zeros = not re.search(r"nanm(ax|in)|m(ax|in)\(.*initial", text)
    # NumPy's einsum adds in another order; the matrix product that a tensordot becomes warns where it overflows.
    exact = "einsum" not in text and (DOT_WARNS or "tensordot" not in text)
    check = functools.partial(harness_check, zeros=zeros, exact=exact)
    assert (check(text, *arguments("f8", "f8")) is None) == (text in NOT_CAPTURED or plainly_refused(text))
    for dtype, other in itertools.product(DTYPES, ["f4", "i8"]):
        check(text, *arguments(dtype, other))
    for layout in ("f", "cut", "reversed", "broadcast", "middle"):
        check(text, *arguments("f8", "f8", layout))
        check(text, *arguments("i4", "f4", layout))
    for shape in ((), (1,), (3,), (0,), (1, 4), (3, 1), (0, 4), (3, 0), (2, 3, 4), (5, 1, 2)):
        for dtype in ("f8", "i4"):
            check(text, sample(dtype, shape), sample("f8", shape), sample(dtype, shape))
    check(text, np.float32(3), np.float64(2), np.float64(3))
    check(text, np.int8(3), np.int16(2), np.float64(2.5))
    check(text, SPECIAL, SPECIAL[::-1], SPECIAL[:, :3])
    check(text, np.full((3, 4), np.nan), SPECIAL, SPECIAL)


def plainly_refused(text):
    """What this NumPy raises for, warns of, or gives a dtype that depends on the values."""
    older = np.linalg.eigvals(np.eye(1)).dtype.kind != "c"
    if older and ("linalg.eig(" in text or "linalg.eigvals(" in text):
        return True
    scope = dict(zip("xyz", arguments("f8", "f8"), strict=True), np=np)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            warnings.simplefilter("ignore", RuntimeWarning)
            eval(text, scope)
    except (TypeError, DeprecationWarning):
        return True
    return False


def _names(section):
    return {row.name for row in coverage() if row.section == section and row.state == "call"}


# Those that write are in tests/capture/test_writes.py, those that are subscripted in tests/capture/test_subscripts.py.
ELSEWHERE = {"sort", "c_", "mgrid", "ogrid", "r_"}


@pytest.mark.parametrize("section", ["numpy", "numpy.linalg", "numpy.fft", "numpy.ndarray"])
def test_the_table_has_every_call(section):
    prefix = {"numpy": r"np\.", "numpy.ndarray": r"\)?\b[xyz)](?:\[0\])?\)*\."}.get(section, rf"np\.{section[6:]}\.")
    named = set(re.findall(rf"{prefix}(\w+)", "\n".join(PROGRAMS)))
    assert _names(section) - named <= ELSEWHERE


def test_no_name_is_unknown():
    assert [row.name for row in coverage() if row.reason == "unknown-function"] == []


def test_arrays_without_axes_keep_their_methods():
    def f(np, x):
        return x.astype("float32", order="F"), x.flatten("F"), x.copy("F"), np.require(x, "float32")

    harness_check(f, np.array(True))


def test_methods_of_scalars_are_not_tried_as_those_of_arrays():
    """CPython 3.12 and 3.13 free an argument too often where a profiler runs and an unfit descriptor is called."""

    def f(z):
        return z.astype(bool, copy=False) + 1

    made = tcompile.compile(f)
    sys.setprofile(lambda *about: None)
    try:
        assert made(np.complex64(1j)) == 2
    finally:
        sys.setprofile(None)
    (broke,) = made.breaks
    assert broke.reason.id == "unsupported-argument"


@pytest.mark.parametrize("f", [lambda x: np.meshgrid(x, x + 1, copy=False)[0], lambda x: np.broadcast_arrays(x, 1)[0]])
def test_results_that_warn_when_they_are_written_to_are_not_asked(f):
    compiled = tcompile.compile(f)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in range(3):
            np.testing.assert_array_equal(compiled(np.arange(3.0)), f(np.arange(3.0)))
