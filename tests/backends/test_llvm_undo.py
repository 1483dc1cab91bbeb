"""Kernels write to arrays of the caller at once; where NumPy would warn or raise, the old elements are put back."""

import numpy as np
import pytest

import tcompile
from tests.differential import Run, assert_same_run, check


def one_operation(a, b):
    a += b


def adds(a, b):
    a += 2 * b


def adds_and_goes_on(a, b):
    a += b
    c = a * 2
    a[1:-1] *= b[2:]
    return c, a.sum()


def a_part(a, b):
    inner = a[1:-1]
    inner += 0.25 * (b[:-2] + b[2:])
    return inner


def backwards(a, b):
    a[::-2] /= b[::2]


def out(a, b):
    return np.multiply(a, b, out=a)


def both(a, b):
    a += 1
    b -= a
    a *= b


def under_a_mask(a, b):
    a[a > 0] *= 3.0
    return a


def transposed(a, b):
    m = a[:4].reshape(2, 2)
    m.T[...] += b[:4].reshape(2, 2)


FUNCTIONS = [one_operation, adds, adds_and_goes_on, a_part, backwards, out, both, under_a_mask, transposed]


def arguments(kind, dtype="float64", size=37):
    a, b = (np.random.default_rng(seed).normal(size=size).astype(dtype) for seed in (0, 1))
    big = np.finfo(dtype).max / 2
    if kind == "overflow":
        a[5], b[5] = big * 1.9, big * 1.9
    elif kind == "overflow at the end":
        a[-1], b[-1] = big * 1.9, big * 1.9
    elif kind == "invalid":
        a[7], b[7] = np.inf, -np.inf
    elif kind == "zero":
        b[4], a[3] = 0, 0
    elif kind == "nan":
        a[3], b[9] = np.nan, np.nan
    return a, b


KINDS = ["plain", "overflow", "overflow at the end", "invalid", "zero", "nan"]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: f.__name__)
def test_arguments_and_warnings_are_numpys(function, kind):
    for dtype in ("float64", "float32"):
        check(function, lambda d=dtype: arguments(kind, d), calls=4)
        check(function, lambda d=dtype: [x[::2] for x in arguments(kind, d, 80)], backends=["llvm"])


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: f.__name__)
def test_states_of_errors(function, kind):
    for state in ("ignore", "warn", "raise", "print"):
        compiled = tcompile.compile(function)
        for _ in range(3):
            with np.errstate(all=state, under="ignore"):
                want, got = (Run(f, arguments(kind)) for f in (function, compiled))
            assert_same_run(got, want)


def test_after_a_warning_machine_code_goes_on():
    tcompile.reset()
    compiled = tcompile.compile(adds)
    for kind in ("plain", "plain", "plain", "overflow", "plain", "invalid", "plain"):
        assert_same_run(Run(compiled, arguments(kind)), Run(adds, arguments(kind)))
    (entry,) = compiled.entries
    assert entry.replays == 2 and entry.plan is not None


def test_one_kernel_without_a_copy():
    for function in (adds, a_part):
        (compiled,) = check(function, lambda: arguments("plain"), backends=["llvm"])
        entry = compiled.entries[0]
        assert len(entry.kernels) == 1 and "copy" not in entry.compiled_graph.source


def test_one_operation_is_numpys_own():
    for function in (one_operation, backwards, out):
        (compiled,) = check(function, lambda: arguments("plain"), backends=["llvm"], calls=3)
        entry = compiled.entries[0]
        assert entry.graph is not None and entry.captured.graph is None


def test_large_arrays():
    check(adds, lambda: arguments("overflow at the end", size=400_000), backends=["llvm"], calls=3)
    check(a_part, lambda: arguments("invalid", size=400_000), backends=["llvm"], calls=3)


def test_sizes_that_are_not_known():
    tcompile.reset()
    compiled = tcompile.compile(adds, dynamic=True)
    for size in (10, 20, 300):
        for kind in KINDS:
            assert_same_run(Run(compiled, arguments(kind, size=size)), Run(adds, arguments(kind, size=size)))


def test_an_index_that_is_out_of_range():
    def gathered(a, i):
        a += a[i]
        return a

    check(gathered, lambda: (np.arange(3.0), np.array([0, 2, 1])), backends=["llvm"])
    check(gathered, lambda: (np.arange(3.0), np.array([0, 7, 1])), backends=["llvm"])
