"""Loops over elements whose iterations wait for no others: several at once are as one after another."""

import linecache
from functools import partial
from random import Random

import numpy as np
import pytest

from tcompile.backends.llvm.scalar_loops import lower
from tests.capture.straight_programs import arguments, program
from tests.capture.test_scalar_loops import BACKENDS, captured
from tests.differential import check

DTYPES = ("float64", "float32")
SIZES = (1, 7, 8, 9, 15, 16, 17, 40)


def random(*shape, dtype="float64"):
    made = np.random.default_rng(5).standard_normal(shape).astype(dtype)
    made.flat[::5] = [-0.0, 0.0, np.nan, np.inf][len(shape) % 4]
    return made


def scaled(x, y):
    for i in range(x.shape[0]):
        y[i] = 2.0 * x[i] + y[i]
    return y


def chosen(x, y):
    for i in range(x.shape[0]):
        y[i] = min(x[i], y[i])
        x[i] = x[i] if x[i] > 0 else -abs(y[i])
    return x, y


def known_factor(x, y):
    a = x[0]
    for i in range(2, x.shape[0]):
        y[i - 2] = x[i] * a - (x[i - 1] + x[i - 2]) * y[0]
    return y


def last_counter(x, y):
    i = -1
    for i in range(x.shape[0]):
        y[i] = np.sqrt(abs(x[i]))
    return y, i


def one_iteration_waits(x, y):
    for i in range(x.shape[0]):
        x[i] = x[i] + x[4]
    return x


def first_and_last_wait(x, y):
    last = x.shape[0] - 1
    for i in range(x.shape[0]):
        x[i] = x[i] - x[0] * x[last] + x[-1]
    return x


def shifted_reads(x, y):
    e = x[1:]
    for i in range(x.shape[0] - 1):
        x[i] = x[i] + e[i]
    return x


def shifted_writes(x, y):
    e = x[1:]
    for i in range(x.shape[0] - 1):
        e[i] = x[i] * 0.5
    return x


def two_writes(x, y):
    for i in range(x.shape[0] - 1):
        y[i] = x[i]
        y[i + 1] = -x[i]
    return y


def halves(x, y):
    half = x.shape[0] // 2
    left, right = x[:half], x[half:]
    for i in range(half):
        left[i] = right[i] - left[i]
    return x


def truth(x, y):
    m = np.zeros(x.shape[0], bool)
    for i in range(x.shape[0]):
        m[i] = (x[i] > 0.25) & (not y[i] < x[i])
    return m


FUNCTIONS = [
    scaled, chosen, known_factor, last_counter, one_iteration_waits, first_and_last_wait, shifted_reads, shifted_writes,
    two_writes, halves, truth,
]  # fmt: skip


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("f", FUNCTIONS)
def test_iterations_at_once(f, n, dtype):
    run = captured if n >= 16 else partial(check, backends=BACKENDS, ulp=0)  # few iterations are written out
    run(f, lambda: (random(n, dtype=dtype), random(n, dtype=dtype)[::-1].copy()))


@pytest.mark.parametrize("f", [scaled, chosen, one_iteration_waits, halves])
def test_strided_and_reversed_arrays(f):
    captured(f, lambda: (random(60)[::3], random(20)[::-1]))
    captured(f, lambda: (random(40, 3)[:, 1], random(3, 40)[2]))


def test_both_dtypes():
    captured(scaled, lambda: (random(40), random(40, dtype="float32")))
    captured(scaled, lambda: (random(40, dtype="float32"), random(40)))
    captured(chosen, lambda: (random(40, dtype="float32"), random(40)))


def test_whole_numbers_are_chosen():
    for dtype in ("int64", "uint8", "int16"):
        make = lambda: np.random.default_rng(2).integers(0, 100, 70).astype(dtype)
        captured(chosen_whole, lambda: (make(), make()[::-1].copy()))


def chosen_whole(x, y):
    for i in range(x.shape[0]):
        y[i] = max(x[i], y[i])
        x[i] = 7 if x[i] < 7 else x[i]
    return x, y


def paths(d):
    n = d.shape[0]
    for k in range(n):
        for i in range(n):
            for j in range(n):
                d[i, j] = min(d[i, j], d[i, k] + d[k, j])
    return d


def paths_of_negative(d):
    for k in range(-3, 3):
        for j in range(d.shape[1]):
            d[2, j] = d[2, k] * 0.5 - d[2, j]
    return d


def rows_of_itself(d):
    for i in range(1, d.shape[0]):
        for j in range(d.shape[1]):
            d[i, j] = d[i - 1, j] * 0.5 + d[d.shape[0] - 1 - i, j]
    return d


@pytest.mark.parametrize("f", [paths, paths_of_negative, rows_of_itself])
@pytest.mark.parametrize("shape", [(9, 9), (20, 20), (3, 33)])
def test_rows_of_one_array(f, shape):
    if f is not paths or shape[0] == shape[1]:
        captured(f, lambda: (np.abs(random(*shape)),))


def test_places_of_narrow_ints():
    def f(d, where):
        for i in range(where.shape[0]):
            k = where[i]
            for j in range(d.shape[1]):
                d[i, j] = d[i, j] - d[i, k] * 0.5
        return d

    for dtype in ("int32", "uint8", "int64"):
        captured(f, lambda: (random(6, 30), np.array([0, 3, 29, 17, 1, 29], dtype)))


def test_a_warning_is_given_in_its_iteration():
    def f(x, y):
        for i in range(x.shape[0]):
            y[i] = x[i] * 1e300
        return y

    captured(f, lambda: (np.where(np.arange(30) == 17, 1e300, 1.0), np.zeros(30)))
    captured(f, lambda: (np.where(np.arange(32) == 31, np.inf, 1.0), np.zeros(32)))


def steps_of_time(u, n):  # rows that may not be there
    for t in range(n):
        for i in range(1, u.shape[1] - 1):
            u[t + 1, i] = u[t, i] + 0.1 * (u[t, i - 1] - 2 * u[t, i] + u[t, i + 1])
    return u


def from_the_end(u, n):  # rows by negative numbers: the last one is the one before the first
    for t in range(-n, n):
        for i in range(1, u.shape[1] - 1):
            u[t + 1, i] = u[t, i] * 0.5 + u[t, i + 1]
    return u


def some_paths(d, n):
    for k in range(n):
        for i in range(d.shape[0]):
            for j in range(d.shape[1]):
                d[i, j] = min(d[i, j], d[i, k] + d[k, j])
    return d


def columns_that_may_be_missing(u, n):
    for i in range(u.shape[0]):
        for j in range(n):
            u[i, j] = u[i, j] * 0.5 + 1.0
    return u


def columns_from_the_end(u, n):
    for i in range(u.shape[0]):
        for j in range(n):
            u[i, j - 20] = u[i, j - 20] * 0.5 + 1.0
    return u


ASKED = (steps_of_time, from_the_end, some_paths, columns_that_may_be_missing, columns_from_the_end)


@pytest.mark.parametrize("f", ASKED)
@pytest.mark.parametrize("shape", [(1, 40), (2, 9), (12, 40)])
def test_indices_are_asked_when_a_strip_begins(f, shape):
    for n in (1, 2, 8, shape[0] - 1, shape[0], 25, shape[1], shape[1] + 1):
        captured(f, lambda n=n: (np.abs(random(*shape)), n))
        check(f, lambda n=n: (np.abs(random(*shape)), n), dynamic=True, backends=BACKENDS, ulp=0)


@pytest.mark.parametrize("f", [scaled, one_iteration_waits, shifted_reads, paths, *ASKED])
def test_lanes_are_written(f, monkeypatch):
    texts = []
    written = lower.write
    monkeypatch.setattr(lower, "write", lambda *given: texts.append(written(*given)) or texts[-1])
    given = [random(40, 40)] if f is paths else [random(40), random(40)]
    if f in ASKED:
        given = [random(40, 40), 20]
        captured(f, lambda: (random(40, 40), 19))
    captured(f, lambda: tuple(given))
    assert "<8 x double>" in texts[-1].text
    assert not lower.needs_passes(texts)


def test_literals_that_overflow_where_they_are_stored():
    def f(x, y):
        for i in range(x.shape[0]):
            x[i] = 1e200
            y[i] = abs(-1e200)
        return x, y

    for dtype in ("float32", "float64"):
        captured(f, lambda: (np.zeros(20, dtype), np.zeros(20, dtype)))


def unread(x, y):
    for i in range(x.shape[0]):
        np.sqrt(x[i])
        y[i] = x[i] * 1e300
        y[i] = x[i]
    return y


def unread_before_a_test(x, y):
    for i in range(x.shape[0]):
        x[i] * 1e300
        if y[i] > 0:
            y[i] = x[i]
    return y


def asked_for_nothing(x, y):
    for i in range(x.shape[0]):
        if np.sqrt(x[i]) * 1e300 < 0.5:
            pass
    return y


def the_same_either_way(x, y):
    for i in range(x.shape[0]):
        y[i] = x[i] if np.sqrt(x[i]) * 1e300 < 0.5 else x[i]  # noqa: RUF034
    return y


def carried_for_nothing(x, y):
    last = 0.0
    for i in range(x.shape[0]):
        last = np.sqrt(x[i]) * 1e300  # noqa: F841
        y[i] = 2.0
    return y


def never_below(x, y):  # what a root or a square is compared with decides it
    for i in range(x.shape[0]):
        y[i] = min(-2, np.sqrt(x[i]))
        if x[i] * x[i] < -1:
            y[i] = 3.0
    return y


def never_above(x, y):
    for i in range(x.shape[0]):
        y[i] = max(np.inf, np.sqrt(x[i]) * 1e300)
    return y


def clipped_for_nothing(x, y):
    for i in range(x.shape[0]):
        y[i] = min(-1.0, max(0.0, np.sqrt(x[i]) * 1e300))
    return y


def compared_with_itself(x, y):
    for i in range(x.shape[0]):
        y[i] = 2.0 if np.sqrt(x[i]) * 1e300 > np.sqrt(x[i]) * 1e300 else 1.0
        if x[i] * x[i] < x[i] * x[i]:
            y[i] = 3.0
    return y


UNREAD = (
    unread, unread_before_a_test, asked_for_nothing, the_same_either_way, carried_for_nothing, never_below, never_above,
    clipped_for_nothing, compared_with_itself,
)  # fmt: skip


@pytest.mark.parametrize("f", UNREAD)
def test_unused_values_warn(f):
    for number in (-1.0, 1e200):
        captured(f, lambda n=number: (np.where(np.arange(32) == 3, n, 1.0), np.zeros(32)))


@pytest.mark.parametrize("seeds", range(0, 400, 25))
def test_generated_iterations(seeds):
    for seed in range(seeds, seeds + 25):
        source = program(Random(seed))
        f = function_of(source, f"<iterations {seed}>")
        check(f, lambda seed=seed: arguments(seed), backends=("llvm",), ulp=0)


def function_of(source, name):
    space = {"np": np}
    linecache.cache[name] = (len(source), None, source.splitlines(keepends=True), name)
    exec(compile(source, name, "exec"), space)
    return space["f"]


def used_on_one_way(x, y):  # and computed, with its warning, on all
    for i in range(len(x)):
        t = np.sqrt(x[i]) * 1e300
        if i > len(x):
            y[i] = t
    return y


def asked_second(x, y):
    for i in range(len(x)):
        t = np.sqrt(x[i]) * 1e300
        if y[i] > 0 and t > 1:
            y[i] = 1.0
    return y


def used_in_the_end(x, y):
    t = 0.0
    for i in range(len(x)):
        t = np.sqrt(x[i]) * 1e300
        y[i] = 1.0
    return t, y


@pytest.mark.parametrize("f", [used_on_one_way, asked_second, used_in_the_end])
def test_what_is_used_elsewhere_warns_where_it_is_computed(f):
    for number in (-1.0, 1e200):
        for size in (32, 20):
            captured(f, lambda n=number, s=size: (np.where(np.arange(s) == 3, n, 1.0), np.zeros(s)))


DECIDED = [
    "t < -z", "t < -float(1)", "t < abs(0.0)", "t < np.sqrt(0.0)", "t < z * -1.0", "t < i - i", "t < w", "t < last",
    "abs(t) < -abs(t)", "t < t * 1.0", "-t > t * -1.0", "t > x[i] * x[i] + 0.0", "min(t, 0.5) > 1.0",
    "max(t, 2.0) < 1.0", "t > np.inf", "t < np.nan", "i > len(x)", "x[i] > 0 and t > 1", "float(i) < 0",
]  # fmt: skip


@pytest.mark.parametrize("test", DECIDED)
@pytest.mark.parametrize("dtype", DTYPES)
def test_what_a_compiler_decides_warns_all_the_same(test, dtype):
    source = f"""
def f(x, y):
    z, last = 1.0, 0.0
    for i in range(len(x)):
        w = -1.0 if i > 3 else -2.0
        t = x[i] * x[i]
        if {test}:
            y[i] = 1.0
        last = -1.0
    return y
"""
    f = function_of(source, f"<decided {test} {dtype}>")
    for size in (32, 20):
        for sign in (1, -1):
            large = sign * (1e200 if dtype == "float64" else 1e30)
            captured(f, lambda s=size, n=large: (np.where(np.arange(s) == 3, n, 1).astype(dtype), np.zeros(s, dtype)))
