"""Numbers, arrays and calls that others change while a compiled loop runs.

Input: loops that compute with what changes, print, or call. Output: none; the tests fail where results or output are
not those of plain Python. Why: a change may be more than a flag.
"""

from __future__ import annotations

import io
import threading
import time
from contextlib import redirect_stdout

import numpy as np
import pytest
from runtime.async_state import (
    DELAY,
    LIMIT,
    SETTERS,
    WARM,
    changed,
    counted,
    flagged,
    seen,
)

import tcompile


# -- data --------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("setter", SETTERS)
def test_a_number_that_is_data(setter):
    """Each iteration has one of the two rates, first the old one."""
    rate = 1.0

    def change():
        nonlocal rate
        rate = 3.0

    def f(x, limit):
        fast = 0
        for n in range(limit):
            now = rate
            x[0] += now
            if now > 2.0:
                fast += 1
                if fast == 50:
                    break
        return n + 1

    compiled = tcompile.compile(f)
    for limit in WARM:
        assert compiled(np.zeros(1), limit) == limit
    x = np.zeros(1)
    with changed(change, setter):
        n = compiled(x, LIMIT)
    assert x[0] == (n - 50) + 3.0 * 50
    assert n > 100, "the loop has begun again"


def test_an_array_that_is_replaced():
    w = np.ones(500)

    def change():
        nonlocal w
        w = np.full(500, 3.0)

    def f(u, limit):
        fast = 0
        for n in range(limit):
            u = u + w
            if u[-1] > 3.5 + n:
                fast += 1
                if fast == 50:
                    break
        return n + 1, u

    compiled = tcompile.compile(f)
    for limit in WARM:
        assert compiled(np.zeros(500), limit)[0] == limit
    with changed(change):
        n, u = compiled(np.zeros(500), 10_000_000)
    assert n < 10_000_000
    assert u[0] == u[-1] and n + 100 <= u[0] <= n + 2 * 51
    assert n > 100, "the loop has begun again"


def test_what_is_set_and_cleared():
    """A loop that rests meanwhile goes on; one that was not to see it does not end."""
    phase = 0

    def change():
        nonlocal phase
        phase += 1

    def f(x, limit):
        n = rested = 0
        while n < limit and phase < 3:
            if phase == 1:
                rested += 1
                continue
            x[n % 3] += 1.0
            n += 1
        return n, rested

    compiled = tcompile.compile(f)
    for limit in WARM:
        assert compiled(np.zeros(3), limit) == (limit, 0)
    x, ended = np.zeros(3), threading.Event()

    def steps():
        for _ in range(3):
            time.sleep(DELAY)
            change()
        ended.set()

    thread = threading.Thread(target=steps)
    thread.start()
    n, rested = compiled(x, LIMIT)
    assert ended.is_set()
    thread.join()
    assert x.tolist() == counted(n)
    assert n < LIMIT
    assert rested > 100
    assert n > 100, f"the loop has begun again: it was at iteration {n}"


def test_what_it_prints():
    """The global that each iteration prints is the one of that iteration."""
    level = 1

    def change():
        nonlocal level
        level = 2

    def f(x, limit):
        for n in range(limit):
            x[n % 3] += 1.0
            print(level)
            if level == 2:
                break
        return n

    compiled = tcompile.compile(f)
    out = io.StringIO()
    with redirect_stdout(out):
        for limit in WARM:
            compiled(np.zeros(3), limit)
        out.truncate(0)
        out.seek(0)
        with changed(change):
            n = compiled(np.zeros(3), LIMIT)
    printed = out.getvalue().split()
    assert printed in (["1"] * n + ["2"], ["1"] * (n + 1))  # the second, where it changes between the two reads


def test_a_print_now_and_then():
    level = 1

    def change():
        nonlocal level
        level = 2

    def f(x, limit):
        for n in range(limit):
            for _ in range(1000):
                x[n % 3] += level
            if n % 10 == 0:
                print(n, level)
            if level == 2:
                break
        return n

    compiled = tcompile.compile(f)
    out = io.StringIO()
    with redirect_stdout(out):
        for limit in (3, 3, 30, 30):
            compiled(np.zeros(3), limit)
        out.truncate(0)
        out.seek(0)
        with changed(change):
            n = compiled(np.zeros(3), 400_000)
    printed = [line.split() for line in out.getvalue().splitlines()]
    assert [int(i) for i, _ in printed] == list(range(0, n + 1, 10))
    assert {level for _, level in printed[:-1]} == {"1"}


# -- calls -------------------------------------------------------------------------------------------------------------
def test_two_loops_one_after_the_other():
    """The second one begins with what the first one has left."""
    space = flagged("""
        for n in range(limit):
            if stop:
                break
            x[n % 3] += 1.0
        else:
            n = limit
        after = 0
        for i in range(limit):
            if stop:
                break
            after += 1
        assert after == (0 if stop else limit)
        return n
    """)
    seen(space, goes_on=False)  # a stretch goes on in its first loop only


def test_a_handler_that_changes_nothing_that_is_read():
    other = 0

    def change():
        nonlocal other
        other += 1

    stop = False

    def f(x, limit):
        for n in range(limit):
            if stop:
                return n
            x[n % 3] += 1.0
        return limit

    compiled = tcompile.compile(f)
    for limit in WARM:
        compiled(np.zeros(3), limit)
    x = np.zeros(3)
    with changed(change, delay=0.01):
        assert compiled(x, 60_000_000 if compiled.graphs else 300_000) in (60_000_000, 300_000)
    assert sum(x) in (60_000_000, 300_000) and other == 1


def test_a_handler_that_writes_to_the_array():
    """Plain Python's loop goes on with what the handler wrote."""
    x, stop = np.zeros(3), False

    def change():
        nonlocal stop
        x[2] = 7.0
        stop = True

    def f(x, limit):
        for n in range(limit):
            if stop:
                return n
            x[0] += 1.0
        return limit

    compiled = tcompile.compile(f)
    for limit in WARM:
        compiled(np.zeros(3), limit)
    with changed(change):
        n = compiled(x, LIMIT)
    assert x.tolist() == [float(n), 0.0, 7.0]
