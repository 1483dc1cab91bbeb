"""What the handlers of signals raise while compiled code runs, or is made, is the caller's, and never a reason to run
a call again.
"""

from __future__ import annotations

import ctypes
import math
import signal
import subprocess
import sys
import time
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path

import numpy as np
import pytest

import tcompile
from tcompile.backends.llvm.native import interrupts
from tcompile.observe import bus

X = np.linspace(0, 1, 10)
pytestmark = pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="there are no such signals")


class Rung(Exception):
    pass


class Bell:
    """A handler that is a function, an object, a method, or part of a function."""

    def __init__(self):
        self.rings = 0

    def __call__(self, *_):
        self.rings += 1
        raise Rung("rung")

    ring = __call__


@contextmanager
def alarm(handler):
    """It rings after 50 ms, and again if something went on that should have ended."""
    before = signal.signal(signal.SIGALRM, handler)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.05, 0.5)
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


@tcompile.allow_in_graph
def slow(x, seconds=0.0):
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        pass
    return x + 1


HANDLERS = {"object": lambda bell: bell, "method": lambda bell: bell.ring, "function": lambda bell: lambda *_: bell()}


@pytest.mark.parametrize("kind", HANDLERS)
@pytest.mark.parametrize("native", [True, False])
def test_in_a_function_that_a_graph_calls(native, kind):
    with tcompile.config.patch(native_calls=native):
        compiled = tcompile.compile(lambda x, seconds: slow(x * 2, seconds) * 3, dynamic=True)
        for seconds in (0.0, 0.001, 0.002):
            compiled(X, seconds)
        bell = Bell()
        with alarm(HANDLERS[kind](bell)), pytest.raises(Rung, match="rung"):
            compiled(X, 2.0)
        assert bell.rings == 1
        assert compiled(X, 0.0).tolist() == ((X * 2 + 1) * 3).tolist()


def relax(u, n):
    for _ in range(n):
        for i in range(1, len(u) - 1):
            u[i] = 0.25 * u[i - 1] + 0.5 * u[i] + 0.25 * u[i + 1]


@pytest.mark.parametrize("native", [True, False])
def test_in_a_loop_in_machine_code(native):
    with tcompile.config.patch(native_calls=native):
        compiled = tcompile.compile(relax, backend="llvm", dynamic=True)
        u = np.random.default_rng(5).random(144)
        for n in (100, 200):
            compiled(u, n)
        before, bell = u.copy(), Bell()
        with alarm(bell), pytest.raises(Rung, match="rung"):
            compiled(u, 20_000_000)
        assert bell.rings == 1
        np.testing.assert_array_equal(u, before)
        compiled(u, 100)
        relax(before, 100)
        np.testing.assert_array_equal(u, before)


STATE = np.array([1] * 3)


def upwards(x, n):
    s = 1.0
    for i in range(n):
        s = math.sqrt(s + 1.5) + x[i % 8]
    return s


def by_threes(x, n):
    s = 1.0
    for i in range(0, 3 * n, 3):
        s = math.sqrt(s + 1.5) + x[i % 8]
    return s


def downwards(x, n):
    s = 1.0
    for i in range(n, 0, -1):
        s = math.sqrt(s + 1.5) + x[i % 8]
    return s


def with_an_inner_loop_of_few_iterations(x, n):
    """The first iteration may skip the inner loop, so no block dominates the cycle: it is irreducible."""
    s, how = 1.0, 0
    for i in range(n):
        if STATE[1] == 2:
            how = 1
            break
        for j in range(i, 10):
            s = math.sqrt(s + 1.5) / 1.25 + x[j % 8]
        s = s * 0.5 + x[i % 8]
    return how, i, s


def with_an_empty_inner_loop(x, n):
    """An inner loop that makes no iteration takes nothing from the budget, and gives nothing back."""
    s = 1.0
    for i in range(n):
        s = s * 0.5 + x[i % 8]
        for j in range(i * 1000, -n):
            s = math.sqrt(s + x[j % 8])
    return s


SHAPES = (downwards, with_an_inner_loop_of_few_iterations, with_an_empty_inner_loop)


def ring_in(f):
    """Calls a function whose loop ends only where it asks for signals."""
    compiled = tcompile.compile(f, backend="llvm")
    for n in (300, 300, 300, 2000):
        assert compiled(X[:8], n) == f(X[:8], n)
    assert compiled.entries and not compiled.breaks
    bell = Bell()
    with alarm(bell), pytest.raises(Rung, match="rung"):
        compiled(X[:8], 10**15)
    assert bell.rings == 1


@pytest.mark.parametrize("f", SHAPES)
def test_in_loops_of_all_shapes(f):
    tests = str(Path(__file__).parents[1])
    script = f"import sys; sys.path[:0] = [{tests!r}]; from runtime import test_signals as t; t.ring_in(t.{f.__name__})"
    subprocess.run([sys.executable, "-c", script], check=True, timeout=60)


def trained(w, n, log, bell):
    log.append("begins")
    try:
        for it in range(n):
            w = w + 0.1 * (1 - w)
    except (Rung, KeyboardInterrupt):
        return w, it, log
    finally:
        log.append("ends")
    return log


def trained_inside(w, n, log, bell):
    x = np.ones(4) * w
    log += ["begins"]
    with suppress(Rung, KeyboardInterrupt):
        x = np.concatenate([steps(x, n), x])
    return len(x), log


def steps(x, n):
    k = 0
    while k < n:
        x = x * 0.99 + 1
        k += 1
    return x


def trained_after_a_break(w, n, log, bell):
    log.append(str(bell))
    print(end="")
    try:
        for it in range(n): w = w + 0.1 * (1 - w)  # noqa: E701  # fmt: skip
    except (Rung, KeyboardInterrupt):
        return it
    return "done"


@pytest.mark.parametrize("native", [True, False])
@pytest.mark.parametrize("interrupts", [True, False])
@pytest.mark.parametrize("f", [trained, trained_inside, trained_after_a_break])
def test_the_users_handlers_see_what_is_raised_in_a_loop(f, interrupts, native):
    def caught(*_):
        if interrupts:
            signal.raise_signal(signal.SIGINT)
        raise Rung("rung")

    with tcompile.config.patch(native_calls=native, rest_when_slower=False):
        compiled = tcompile.compile(f, dynamic=True)
        for n in (10, 100, 1000, 3000):
            expected = compiled(0.5, n, [], "bell")
        log: list[str] = []
        with alarm(caught):
            try:
                found = compiled(0.5, 1 << 40, log, "bell")
            except (Rung, KeyboardInterrupt) as error:  # which would end all tests
                pytest.fail(f"{error!r} has passed the function's handlers")
        assert sys.gettrace() is None
        if f is trained:
            assert found == (0.5, 0, ["begins", "ends"]) and found[2] is log  # as if it had come in the first iteration
        elif f is trained_inside:
            assert found == (4, ["begins"]) and found[1] is log
        else:
            assert found in (0, 1) and log == ["bell"]  # from 3.12 on the frame tells of its second iteration first
        assert compiled(0.5, 20, [], "bell") == expected


@pytest.mark.parametrize("native", [True, False])
@pytest.mark.parametrize("f", [lambda rng, n: rng.standard_normal(n), lambda rng, n: (rng.random(n), np.zeros(3))])
def test_while_random_numbers_are_drawn(f, native):
    with tcompile.config.patch(native_calls=native):
        compiled, bell = tcompile.compile(f), Bell()
        for _ in range(3):
            compiled(np.random.default_rng(3), 20_000_000)
        with alarm(bell), pytest.raises(Rung, match="rung"):
            for _ in range(100):
                rng = np.random.default_rng(3)
                compiled(rng, 20_000_000)
        assert bell.rings == 1
        assert compiled(rng, 20_000).__class__ is f(rng, 20_000).__class__


class Holder:
    w = 2.0


@pytest.mark.parametrize("native", [True, False])
@pytest.mark.parametrize("misses", [True, False])
def test_while_guards_are_looked_through(native, misses):
    """What a guard reads rings here: a handler may run there as it may anywhere."""
    holder, bell = Holder(), Bell()
    with tcompile.config.patch(native_calls=native):
        compiled = tcompile.compile(lambda x: x * holder.w, dynamic=False)
        for size in (2, 3, 4):
            compiled(np.ones(size))
        before = signal.signal(signal.SIGALRM, bell)
        try:
            Holder.w = property(lambda self: signal.raise_signal(signal.SIGALRM))
            with pytest.raises(Rung, match="rung"):
                compiled(np.ones(9 if misses else 4))
        finally:
            Holder.w = 2.0
            signal.signal(signal.SIGALRM, before)
        assert bell.rings == 1
        assert compiled(np.ones(4)).tolist() == [2.0] * 4


def test_while_a_listener_is_told():
    bell = Bell()
    before = signal.signal(signal.SIGALRM, bell)
    try:
        with bus.listening(lambda event: signal.raise_signal(signal.SIGALRM)), pytest.raises(Rung, match="rung"):
            tcompile.compile(lambda x: x * 2)(X)
    finally:
        signal.signal(signal.SIGALRM, before)
    assert bell.rings == 1


class Answers(Exception):
    def __getattr__(self, name):
        return True


@pytest.mark.parametrize("native", [True, False])
def test_an_exception_that_has_every_attribute_is_no_signals(native):
    tries = []

    @tcompile.allow_in_graph
    def fails(x):
        tries.append(1)
        if len(tries) % 2 == 0:
            raise Answers
        return x + 1

    with tcompile.config.patch(native_calls=native):
        compiled = tcompile.compile(lambda x: fails(x * 2))
        assert [compiled(X).tolist() for _ in range(5)] == [(X * 2 + 1).tolist()] * 5


def test_in_a_backend():
    def backend(graph, inputs):
        slow(0, 2.0)
        return graph.call

    bell = Bell()
    compiled = tcompile.compile(lambda x: x * 2, backend=backend)
    with alarm(bell), pytest.raises(Rung, match="rung"):
        compiled(X)
    assert bell.rings == 1


def test_what_else_is_raised_there_is_not():
    """An error that no handler raised is plain Python's to raise."""
    tries = []

    @tcompile.allow_in_graph
    def once(x):
        tries.append(1)
        if len(tries) == 2:
            raise Rung("never seen: plain Python runs it again")
        return x + 1

    compiled = tcompile.compile(lambda x: once(x * 2))
    with alarm(partial(print, end="")):
        assert [compiled(X).tolist() for _ in range(3)] == [(X * 2 + 1).tolist()] * 3


BESIDE_ANOTHER_INTERPRETER = """
import numpy as np, tcompile
try:
    from concurrent import interpreters
except ImportError:
    try:
        import _interpreters as interpreters
    except ImportError:
        import _xxsubinterpreters as interpreters

@tcompile.compile(dynamic=True)
def steps(w, n):
    for it in range(n):
        w = w + 0.1 * (1 - w)
    return w

for n in (1000, 2000, 3000):
    steps(np.zeros(4), n)
other = interpreters.create()
print(steps(np.zeros(4), 1_000_000).tolist())
"""


def test_a_loop_that_asks_for_signals_beside_another_interpreter():
    done = subprocess.run([sys.executable, "-c", BESIDE_ANOTHER_INTERPRETER], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    w = 0.0
    for _ in range(1000):
        w = w + 0.1 * (1 - w)
    assert done.stdout == f"{[w] * 4}\n"


ASKED = [0]


@ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p)
def count_polls(_):
    """Stands for ``tc_late`` in machine code, which may live as long as the process."""
    ASKED[0] += 1
    return 0


def polls_of(f, n):
    """How often the machine code of a loop asks, in a call with ``n``."""
    compiled = tcompile.compile(f, backend="llvm")
    for count in (300, 400, 500):
        assert compiled(X[:8], count) == f(X[:8], count)
    ASKED[0] = 0
    compiled(X[:8], n)
    return ASKED[0]


def test_how_often_loops_ask(monkeypatch):
    """Ranges of all steps pay for each iteration alike, and so do irreducible cycles."""
    found = interrupts.functions() | {"tc_late": ctypes.cast(count_polls, ctypes.c_void_p).value}
    monkeypatch.setattr(interrupts, "functions", lambda: found)
    polls = {f: polls_of(f, 3_000_000) for f in (upwards, by_threes, *SHAPES)}
    assert polls[upwards] > 10
    for f in (by_threes, downwards):
        assert polls[upwards] / 2 < polls[f] < 2 * polls[upwards]
    assert polls[with_an_inner_loop_of_few_iterations] > 5 and polls[with_an_empty_inner_loop] > 5
