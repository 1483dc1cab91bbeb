"""Loops over elements write to arrays of the caller where they are; what they held is put back before plain Python."""

import numpy as np
import pytest

from tcompile.backends.loop_runners import PartLoop, PythonLoop
from tcompile.backends.timed import TimedLoop
from tests.differential import check


def forward(a, b, last):
    for i in range(1, last):
        a[i] = a[i] / b[i - 1] + a[i - 1]
    return a


def both_ways(a, b, last):
    c, d = a[:12], a[12:]
    for i in range(1, last):
        b[i] = b[i] - c[i - 1] * 0.5
        d[i] = d[i] / b[i - 1]
    d[-1] = d[-1] / b[-1]
    for i in range(10, -1, -1):
        d[i] = (d[i] - c[i] * d[i + 1]) / b[i]
    return d


def between_operations(a, b, last):
    a *= 0.5
    for i in range(1, last):
        a[i] += a[i - 1]
    a[1:-1] += b[0]
    b[0] = a.max()
    return a[::2]


def a_copy_stays(a, b, last):
    old = a.copy()
    for i in range(last):
        a[i] = old[-i - 1] + b[0]
    old[0] = 5
    for i in range(last):
        a[-1] += old[i]
    return old, a


def counts(a, b, last):
    n = np.zeros(3, np.int64)
    for i in range(last):
        n[i % 3] += 1
    n[0] = n[0] * 2
    for i in range(last):
        a[i] = n[i % 3]
    return n


FUNCTIONS = [forward, both_ways, between_operations, a_copy_stays, counts]
# The loops go on beyond the arrays' ends, or divide by zero, or come to an end.
KINDS = {"plain": 12, "beyond": 36, "zero": 12, "none": 0}


def arguments(kind):
    a, b = (np.random.default_rng(seed).random(n) + 0.5 for seed, n in ((0, 24), (1, 12)))
    if kind == "zero":
        b[6] = 0
    return a, b, KINDS[kind]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: f.__name__)
def test_arguments_are_as_pythons(function, kind):
    check(function, lambda: arguments(kind), backends=["llvm"], calls=3)


@pytest.mark.parametrize("function", [forward, both_ways, between_operations], ids=lambda f: f.__name__)
def test_only_what_is_written_is_copied(function):
    (compiled,) = check(function, lambda: arguments("plain"), backends=["llvm"])
    lines = compiled.entries[0].compiled_graph.source.splitlines()
    # Once something has changed that the loop reads, its results are copied before what was written is put back.
    copies = [line for line in lines if "copy(" in line and "raise with_results(" not in line]
    assert copies and all("= copy(part_" in line for line in copies)


def test_what_is_read_before_is_no_longer_there_for_plain_python():
    def f(a, b, last):  # what goes back to `a` was computed from elements of it that stay at first
        a[1:-1] = b[0]
        a *= 0.5
        for i in range(last):
            a[i] -= 3
        a *= 0.5
        b[:] = np.sqrt(a[:12])

    check(f, lambda: arguments("plain"), backends=["llvm"], calls=3)


def sweeps(a, b, last):
    for k in range(last):
        a[:12] = a[:12] * 0.5 + b
        for i in range(1, 24):
            a[i] = (a[i] + a[i - 1]) * 0.5
        b[1:] = a[1:12] + k
    return a


def sweeps_until(a, b, last):
    s = a[0]
    for k in range(last):
        a = a * 0.5 + k
        for i in range(1, 24):
            if a[i] > 9.5:
                break
            a[i] = a[i] / b[i % 12] + a[i - 1]
            s = a[i]
        if s > 9:
            break
        b[1:] = a[1:12]
    return a, b, s


def more_each_iteration(a, b, last):
    for k in range(2 * last):
        a *= 0.5
        for i in range(k + 1):
            b[i % 12] = a[i] - b[i % 5]
            b[i % 7] = b[i % 3] * 0.5 + a[i]
    return a


@pytest.mark.parametrize("function", [sweeps, sweeps_until, more_each_iteration], ids=lambda f: f.__name__)
def test_loops_in_loops_of_kernels_run_without_python(function):
    (compiled,) = check(function, lambda: arguments("plain"), backends=["llvm"], calls=2)
    names = compiled.entries[0].compiled_graph.program.__globals__
    (loop,) = (value.loop for value in names.values() if isinstance(value, TimedLoop))
    assert isinstance(loop, PythonLoop | PartLoop) and loop.native is not None
    for kind in ("zero", "none", "beyond"):
        check(function, lambda k=kind: arguments(k), backends=["llvm"], calls=2)
