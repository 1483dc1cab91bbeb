"""Functions of other libraries on arrays: one operation of the graph where ``allow_in_graph`` says so, else a break.

SciPy stands for all of them: functions in C, ufuncs that are not NumPy's, Python that calls C, objects with methods.
"""

from __future__ import annotations

import numpy as np
import pytest
import scipy.fft
import scipy.integrate
import scipy.linalg
import scipy.ndimage
import scipy.signal
import scipy.special
from differential import BACKENDS, check

import tcompile
from tcompile.annotations import treatments

ALLOWED = (
    scipy.special.erf, scipy.special.expit, scipy.special.logsumexp, scipy.special.gammaln,
    scipy.ndimage.gaussian_filter, scipy.ndimage.convolve, scipy.signal.convolve2d, scipy.signal.fftconvolve,
    scipy.linalg.cholesky, scipy.linalg.lu, scipy.linalg.solve_triangular, scipy.linalg.expm, scipy.fft.dct,
    scipy.integrate.trapezoid,
)  # fmt: skip


@pytest.fixture
def allowed(monkeypatch):
    """SciPy's functions, allowed in graphs for the length of a test."""
    monkeypatch.setattr(treatments, "_table", dict(treatments._table))
    tcompile.allow_in_graph(list(ALLOWED))


def arguments():
    rng = np.random.default_rng(0)
    return rng.standard_normal((8, 8)), np.linspace(0.1, 1.7, 8)


def ufunc(a, v):
    return scipy.special.erf(a * 2) + 1, scipy.special.expit(v)[::-1] * v


def reduction(a, v):
    return scipy.special.logsumexp(a + 1, axis=0) - v, scipy.special.logsumexp(v)


def several_types(a, v):
    return scipy.special.gammaln(v.astype(np.float32)) * 2, scipy.special.gammaln(np.arange(1, 5)) + v[:4]


def filters(a, v):
    smooth = scipy.ndimage.gaussian_filter(a, 1.5)
    return a - smooth, scipy.ndimage.convolve(a, np.ones((3, 3)) / 9, mode="nearest") * 2


def convolutions(a, v):
    k = np.outer(v[:3], v[:3])
    return scipy.signal.convolve2d(a, k, mode="same") + a, scipy.signal.fftconvolve(v, v, "full").sum()


def factorised(a, v):
    s = a @ a.T + 8 * np.eye(8)
    low = scipy.linalg.cholesky(s, lower=True)
    return scipy.linalg.solve_triangular(low, v, lower=True) * 2, low


def several_results(a, v):
    p, low, up = scipy.linalg.lu(a)
    return np.abs(p @ low @ up - a).max() < 1e-12, (low * 2).trace(), up


def called_twice(a, v):
    return scipy.fft.dct(scipy.fft.dct(v + 1, norm="ortho") * 2, norm="ortho"), scipy.linalg.expm(a / 10) @ v


def in_a_loop(a, v):
    for i in range(3):
        v = scipy.special.erf(v) + i
    return v


def in_a_called_function(a, v):
    def smooth(m, width):
        return scipy.ndimage.gaussian_filter(m, width, order=0)

    return [smooth(a * w, w) for w in (1, 2)], scipy.integrate.trapezoid(v, dx=0.5)


def refused(a, v):
    return scipy.linalg.cholesky(a - 100 * np.eye(8))  # not positive definite


def caught(a, v):
    try:
        low = scipy.linalg.cholesky(a - 100 * np.eye(8))
    except np.linalg.LinAlgError as error:
        low = np.full(3, len(str(error)) > 0)
    return low, v * 2


PROGRAMS = [
    ufunc, reduction, several_types, filters, convolutions, factorised, several_results, called_twice, in_a_loop,
    in_a_called_function, refused, caught,
]  # fmt: skip


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("function", PROGRAMS, ids=lambda f: f.__name__)
def test_unmarked_calls_break_cleanly(function, backend):
    (compiled,) = check(function, arguments, calls=3, backends=[backend])
    assert compiled.breaks
    assert not any("internal" in broke.reason.id for broke in compiled.breaks)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("function", PROGRAMS, ids=lambda f: f.__name__)
def test_allowed_calls_are_operations(function, backend, allowed):
    (compiled,) = check(function, arguments, calls=3, backends=[backend])
    if function not in (refused, caught):
        assert not compiled.breaks
        (entry,) = compiled.entries
        assert "python_call" in {node.op.name for node in entry.graph.nodes}


def test_the_type_is_learned_and_checked_when_it_runs(allowed):
    def f(v):
        return scipy.signal.convolve(v, np.ones(3), "valid") * 2

    tcompile.allow_in_graph(scipy.signal.convolve)
    check(f, lambda: (np.arange(9.0),), stances=("default", "eager_then_compile"))
    compiled = tcompile.compile(f)
    for v in (np.arange(9.0), np.arange(12.0), np.arange(5, dtype=np.float32), np.arange(7), np.arange(4.0)):
        want, got = f(v), compiled(v)
        assert got.dtype == want.dtype
        np.testing.assert_array_equal(got, want)


def test_a_function_that_answers_otherwise_later_runs_plainly():
    answers = [np.ones(3), np.ones(4), np.ones(3, np.float32), 2.5, None]

    @tcompile.allow_in_graph
    def answer(v):
        return answers[0]

    def f(v):
        r = answer(v + 1)
        return r if r is None else r * 2

    compiled = tcompile.compile(f)
    for _ in range(len(answers)):
        want, got = f(np.ones(3)), compiled(np.ones(3))
        assert type(got) is type(want)
        np.testing.assert_array_equal(got, want)
        answers.append(answers.pop(0))


def test_breaks_say_why():
    def f(a, v):
        labels, count = scipy.ndimage.label(a > 0)
        area = scipy.integrate.quad(lambda t: t * v[0], 0, 1)[0]
        return labels * 2, count, scipy.special.erf(v + area) * 2

    (compiled,) = check(f, arguments, backends=("llvm",))
    assert "unknown-function" in {broke.reason.id for broke in compiled.breaks}


def test_what_is_a_scalar_to_python_is_one_to_numpy():
    """`np.take` takes np.float64(0) for a place, and no array of it; a float has no dtype, and an array of it has."""

    def f(x):
        return np.take(x, x.sum() % 1), np.fmin(float(np.isreal(x).max()), x)

    (compiled,) = check(f, lambda: (np.arange(4, dtype="f4"),), backends=["llvm"])
    assert not compiled.breaks and not any(entry.replays for entry in compiled.entries)
