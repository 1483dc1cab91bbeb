"""Recursion beyond a raised limit ends in RecursionError, wherever calls are machine code, Python's or generators'."""

import subprocess
import sys
import threading

import numpy as np
import pytest

import tcompile
from tcompile import system
from tcompile.runtime.native import calls, stack

PROGRAM = """
import sys, threading
import numpy as np
import tcompile

sys.setrecursionlimit(200_000)

@tcompile.compile
def plain(x, n):
    return x if n == 0 else plain(x, n - 1) + 1

@tcompile.compile
def spread(*both):
    return both[0] if both[1] == 0 else spread(both[0], both[1] - 1) + 1

@tcompile.compile
def broken(x, n):
    print(end="")
    return x if n == 0 else broken(x, n - 1) + 1

@tcompile.compile
def items(x, n):
    if n:
        yield from items(x, n - 1)
    else:
        yield x

def tell():
    for f in (plain, spread, broken, lambda x, n: sum(items(x, n)) + n):
        for n in (20, 30_000, 20):
            try:
                print(f(np.zeros(2), n)[0])
            except RecursionError as error:
                print(str(error).split(":")[0])
"""


@pytest.mark.parametrize("end", ["tell()", "t = threading.Thread(target=tell); t.start(); t.join()"])
@pytest.mark.parametrize("stance", ["default", "force_eager"])
def test_recursion_ends_before_the_stack(end, stance):
    # The functions are compiled before, so that there is machine code to ask.
    first = "threading.stack_size(1 << 20)\nfor f in (plain, spread, broken): f(np.zeros(2), 2)\n"
    program = f"{PROGRAM}\n{first}tcompile.set_stance({stance!r})\n{end}"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    told = done.stdout.splitlines()
    assert len(told) == 12
    for few, many, again in zip(told[::3], told[1::3], told[2::3], strict=True):
        assert float(few) == float(again) == 20
        # From 3.14 on CPython itself counts what it uses of the stack of C.
        assert many == "30000.0" or "recursion depth exceeded" in many or "Stack overflow" in many


def test_each_thread_has_its_own_stack():
    f = tcompile.compile(lambda x: x + 1)
    f(np.ones(3))
    if isinstance(calls.machine(), str):
        pytest.skip("no machine code here")
    seen = []

    def here():
        f(np.ones(3))
        seen.append(tuple(stack.room))

    thread = threading.Thread(target=here)
    thread.start()
    thread.join()
    here()
    assert seen[0] != seen[1]
    assert sys.platform != "linux" or all(high > least > end > 0 for least, high, end in seen)


def test_where_nothing_is_known_calls_may_begin_anywhere(monkeypatch):
    monkeypatch.setattr(system, "stack_bounds", lambda: (0, 0))
    stack.measure()
    assert tuple(stack.room) == (0, 2**64 - 1, 0)
    stack.check()
    monkeypatch.undo()
    stack.measure()


def test_a_stack_that_is_not_the_threads_own_may_be_called_from(monkeypatch):
    """Another language's coroutines have such: only what lies between the reserve and the stack's end is refused."""
    f = tcompile.compile(lambda x: x + 1)
    f(np.ones(3))
    stack.measure()
    here, size = stack.room[1], 1 << 16
    monkeypatch.setattr(system, "stack_bounds", lambda: (here + size, 1 << 20))  # all of it above
    stack.measure()
    f(np.ones(3))
    stack.check()
    monkeypatch.setattr(system, "stack_bounds", lambda: (here - (1 << 23), 1 << 40))  # the reserve reaches up to here
    monkeypatch.setattr(stack, "_RESERVE", 1 << 30)
    stack.measure()
    if not isinstance(calls.machine(), str):
        with pytest.raises(RecursionError):
            f(np.ones(3))
        with pytest.raises(RecursionError):
            stack.check()
    monkeypatch.undo()
    stack.measure()
    f(np.ones(3))


def test_what_a_call_needs_may_be_replaced_while_the_stack_is_measured(monkeypatch):
    """Measuring is Python's, and lets other threads run."""
    f = tcompile.compile(lambda x: x + 1)
    known = system.stack_bounds()

    def replaced():
        monkeypatch.setattr(system, "stack_bounds", lambda: known)
        tcompile.reset()
        f(np.ones(4))
        return known

    for _ in range(20):
        f(np.ones(3))
        f(np.ones(3))
        stack.room[1] = 0
        monkeypatch.setattr(system, "stack_bounds", replaced)
        assert f(np.ones(3)).tolist() == [2, 2, 2]
