"""Loops that come, after a long time, to what only plain Python does.

Input: loops that an element of an array ends, which compiled code reads in each iteration. Output: none; the tests fail
where the loop begins again. Why: plain Python goes on near that iteration: what has been done is not repeated.
"""

from __future__ import annotations

import numpy as np
import pytest
from runtime.async_state import changed

import tcompile
from tcompile.backends.llvm.loop_program import encoding

LIMIT, FEWEST = 200_000_000, 10  # a call that begins again ends in its first iteration


def run(function, *args, flag, **options):
    """The result of a compiled call during which the flag's second element is set."""
    compiled = tcompile.compile(function, **options)
    for limit in (300, 400, 500):
        compiled(*args, limit)
    with changed(lambda: flag.__setitem__(1, True)):
        return compiled(*args, LIMIT)


def test_an_exception_in_a_loop_of_arrays():
    flag = np.zeros(3, bool)

    def f(a, limit):
        a = a.copy()
        n = 0
        while n < limit:
            if flag[1]:
                raise StopIteration(n, a)
            a = a * 0.5 + 1.0
            n += 1
        return n

    with pytest.raises(StopIteration) as raised:
        run(f, np.arange(16.0), flag=flag)
    assert raised.value.args[0] > FEWEST


def test_an_exception_before_what_an_iteration_writes_in_place():
    """Python runs the iterations of this loop, since it carries a part of an array."""
    flag = np.zeros(3, bool)

    def f(v, limit):
        for n in range(limit):
            if flag[1]:
                raise StopIteration(n, v)
            v[1:-1] += 0.125 * (v[2:] - 2.0 * v[1:-1] + v[:-2])
        return v

    with pytest.raises(StopIteration) as raised:
        run(f, np.linspace(0.0, 1.0, 64), flag=flag)
    assert raised.value.args[0] > FEWEST


def test_an_exit_before_the_first_swap_of_an_inner_loop():
    """The caller's array may still be one of both there: plain Python knows."""
    flag = np.zeros(3, bool)

    def f(u, w, limit):
        v = w.copy()
        n = found = 0
        for _ in range(limit // 1000 + 1):
            if found:
                break
            for _ in range(1000):
                if not flag[1]:
                    u, v = v, u * 0.5 + 0.25 * v
                else:
                    found = 1
                    break
                n += 1
        return n, u.copy(), v.copy()

    assert run(f, np.linspace(0.0, 1.0, 64), np.linspace(1.0, 2.0, 64), flag=flag)[0] > FEWEST


def test_a_number_that_becomes_one_of_numpy_in_the_first_iteration():
    """The exit of later iterations is that of the node, and the first one's plain Python's."""
    flag = np.zeros(3, bool)

    def f(x, limit):
        s = 1.0
        how = 0
        for n in range(limit):
            if flag[1]:
                how = 1
                break
            s = s / 1.25 + x[n % 8]
        return n if how == 1 else -1, s

    n, s = run(f, np.arange(8.0), flag=flag)
    assert n > FEWEST and type(s) is np.float64
    flag[:] = True
    s = tcompile.compile(f)(np.arange(8.0), 9)[1]
    assert s == 1.0 and type(s) is float


@pytest.mark.parametrize("backend", ["llvm", "eager"])
def test_an_inner_loop_that_takes_long(backend):
    """The outer loop goes on with the iteration in which it was left."""
    stop = False

    def change():
        nonlocal stop
        stop = True

    def f(x, limit):
        n = 0
        for _ in range(limit):
            for _ in range(200):
                if stop:
                    break
                x = x * 0.5 + 1.0
                n += 1
            if stop:
                break
        return n, x

    compiled = tcompile.compile(f, backend=backend)
    for limit in (3, 4):
        compiled(np.ones(64), limit)
    with changed(change):
        n, x = compiled(np.ones(64), LIMIT)
    assert n >= 200
    np.testing.assert_array_equal(x, np.full(64, 2.0))


def swapped(u, v, n):
    for _ in range(n):
        u, v = v, u * 0.5 + 0.25 * v
    return u


def test_a_condition_that_is_ignored_pauses_a_loop_now_and_then(monkeypatch):
    """Underflow is ignored by default. The loop goes on, and is not paused after each iteration."""
    runs = []
    run = encoding.Level.run
    monkeypatch.setattr(encoding.Level, "run", lambda self, count: (runs.append(count), run(self, count))[1])

    compiled = tcompile.compile(swapped, backend="llvm")
    u, v = np.linspace(0.0, 1.0, 64), np.linspace(1.0, 2.0, 64)
    for n in (10, 20, 20_000, 20_000):
        np.testing.assert_array_equal(compiled(u, v, n), swapped(u, v, n))
    assert 0 < len(runs) < 1000


def test_a_call_does_not_take_over_the_clock_of_the_call_before(monkeypatch):
    """The other call may have had quicker iterations, and so a longer stretch from one poll to the next."""
    clocks = []
    begin = encoding.Level.begin

    def begun(self, given, stop):
        self.clock[:2] = 1 << 40
        clocks.append(self.clock)
        return begin(self, given, stop)

    monkeypatch.setattr(encoding.Level, "begin", begun)
    compiled = tcompile.compile(swapped, backend="llvm")
    for _ in range(4):
        compiled(np.linspace(0.0, 1.0, 64), np.linspace(1.0, 2.0, 64), 50)
    assert clocks and all(clock[0] < 1 << 30 for clock in clocks)
