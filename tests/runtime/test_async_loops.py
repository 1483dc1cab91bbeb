"""Loops of every form that a handler or a thread ends by setting a flag.

Input: loops and the ways in which they read the flag. Output: none; the tests fail where a loop does not see it, or
has not done what so many iterations do. Why: each form has its own way to go on in plain Python.
"""

from __future__ import annotations

import numpy as np
import pytest
from runtime.async_state import (
    LIMIT,
    SETTERS,
    WARM,
    changed,
    counted,
    flagged,
    seen,
)

import tcompile

# -- loops and readers -------------------------------------------------------------------------------------------------
LOOPS = {
    "break": """
        for n in range(limit):
            if stop:
                break
            x[n % 3] += 1.0
        else:
            n = limit
        return n
    """,
    "a flag after the body": """
        for n in range(1, limit + 1):
            x[(n - 1) % 3] += 1.0
            if stop and n < limit:
                break
        return n
    """,
    "a step": """
        for n in range(5, 3 * limit + 5, 3):
            if stop:
                return (n - 5) // 3
            x[(n - 5) // 3 % 3] += 1.0
        return limit
    """,
    "down": """
        for n in range(limit, 0, -1):
            if stop:
                return limit - n
            x[(limit - n) % 3] += 1.0
        return limit
    """,
    "while": """
        n = 0
        while n < limit:
            if stop:
                break
            x[n % 3] += 1.0
            n += 1
        return n
    """,
    "while and": """
        n = 0
        while n < limit and not stop:
            x[n % 3] += 1.0
            n += 1
        return n
    """,
    "while not": """
        n = 0
        while not stop and n < limit:
            x[n % 3] += 1.0
            n += 1
        return n
    """,
    "while true": """
        n = 0
        while True:
            if stop or n == limit:
                break
            x[n % 3] += 1.0
            n += 1
        return n
    """,
    "the inner loop": """
        n = 0
        for i in range(2000):
            for j in range(limit // 2000 + 1):
                if stop or n == limit:
                    break
                x[n % 3] += 1.0
                n += 1
        return n
    """,
    "the outer loop": """
        n = 0
        for i in range(limit):
            if stop:
                break
            for j in range(1):
                x[n % 3] += 1.0
                n += 1
        return n
    """,
    "both loops": """
        n = 0
        for i in range(limit // 10 + 1):
            for j in range(10):
                if stop or n == limit:
                    break
                x[n % 3] += 1.0
                n += 1
            if stop:
                break
        return n
    """,
    "elements": """
        n = 0
        for i in range(limit // 1000 + 1):
            for e in ONES:
                if stop or n == limit:
                    return n
                x[n % 3] += e
                n += 1
        return n
    """,
    "enumerate": """
        n = 0
        for i in range(limit // 1000 + 1):
            for j, e in enumerate(ONES):
                n = i * 1000 + j
                if stop or n == limit:
                    return n
                x[n % 3] += e
        return n
    """,
    "letters": """
        n, text = 0, TEXT
        for i in range(limit // 1000 + 1):
            for c in text:
                if stop or n == limit:
                    return n
                if c != "b":
                    x[n % 3] += 1.0
                n += 1
        return n
    """,
    "another exit": """
        for n in range(limit):
            if x[1] < 0.0:
                return -1
            if stop:
                return n
            x[n % 3] += 1.0
        return limit
    """,
    "a helper": """
        def asked():
            return stop
        for n in range(limit):
            if asked():
                return n
            x[n % 3] += 1.0
        return limit
    """,
    "a loop in a helper": """
        def run(x, limit):
            for n in range(limit):
                if stop:
                    return n
                x[n % 3] += 1.0
            return limit
        return run(x, limit)
    """,
    "and": """
        for n in range(limit):
            if x[0] >= 0.0 and stop:
                return n
            x[n % 3] += 1.0
        return limit
    """,
    "or": """
        for n in range(limit):
            if x[0] < 0.0 or stop:
                return n
            x[n % 3] += 1.0
        return limit
    """,
    "else": """
        for n in range(limit):
            if not stop:
                x[n % 3] += 1.0
            else:
                return n
        return limit
    """,
    "conditional": """
        for n in range(limit):
            end = limit if not stop else n
            if n >= end:
                return n
            x[n % 3] += 1.0
        return limit
    """,
    "a name": """
        for n in range(limit):
            now = stop
            if now:
                return n
            x[n % 3] += 1.0
        return limit
    """,
    "a generator": """
        def steps():
            for i in range(limit):
                if stop:
                    return
                x[i % 3] += 1.0
                yield i
        n = -1
        for n in steps():
            pass
        return n + 1
    """,
    "a finally": """
        n = 0
        try:
            for n in range(limit):
                if stop:
                    return n
                x[n % 3] += 1.0
        finally:
            x += 0.0
        return limit
    """,
    "an attribute that it writes": """
        BOX.n = 0
        for n in range(limit):
            if stop:
                break
            x[n % 3] += 1.0
            BOX.n += 1
        return BOX.n
    """,
    "a global that it writes": """
        global ticks
        ticks = 0
        for n in range(limit):
            if stop:
                break
            x[n % 3] += 1.0
            ticks += 1
        return ticks
    """,
    "lists that it appends to": """
        out = []
        for n in range(limit):
            if stop:
                break
            x[n % 3] += 1.0
            if n % 100 == 0:
                out.append(n)
        else:
            n = limit
        assert out == list(range(0, n, 100))
        return n
    """,
    "skipped iterations": """
        skipped = 0
        for n in range(limit):
            if stop:
                skipped += 1
                if skipped == 1000:
                    break
                continue
            x[n % 3] += 1.0
        else:
            n = limit
        return n - 999 if skipped else n
    """,
}  # fmt: skip


@pytest.mark.parametrize("loop", LOOPS)
def test_loops(loop):
    seen(flagged(LOOPS[loop]))


@pytest.mark.parametrize("native", [True, False])
@pytest.mark.parametrize("setter", SETTERS)
@pytest.mark.parametrize("loop", ["break", "while and", "both loops"])
def test_setters(loop, setter, native):
    seen(flagged(LOOPS[loop]), setter, native)


@pytest.mark.parametrize("setter", SETTERS)
def test_what_is_raised(setter):
    class Stop(Exception):
        pass

    stop = False

    def change():
        nonlocal stop
        stop = True

    def f(x, limit):
        for n in range(limit):
            if stop:
                raise Stop(n)
            x[n % 3] += 1.0
        return limit

    compiled = tcompile.compile(f)
    for limit in WARM:
        assert compiled(np.zeros(3), limit) == limit
    x = np.zeros(3)
    with changed(change, setter), pytest.raises(Stop) as caught:
        compiled(x, LIMIT)
    assert x.tolist() == counted(caught.value.args[0])


def test_a_constant_number_of_iterations():
    stop = False

    def change():
        nonlocal stop
        stop = True

    def f(x):
        for n in range(3_000_000_000):
            x[n % 3] += 1.0
            if stop:
                break
        return n

    compiled = tcompile.compile(f)
    stop = True
    for _ in range(4):
        assert compiled(np.zeros(3)) == 0
    stop = False
    for _ in range(3):  # the first one of these compiles it
        x = np.zeros(3)
        with changed(change):
            n = compiled(x)
        assert x.tolist() == counted(n + 1)
        stop = False
    assert n < 3_000_000_000 - 1
    assert n > 100, "the loop has begun again"


def test_before_between_and_during_calls():
    space = flagged(LOOPS["break"])
    compiled = tcompile.compile(space["f"])

    def call(limit):
        x = np.zeros(3)
        n = compiled(x, limit)
        assert x.tolist() == counted(n)
        return n

    space["stop"] = True
    assert [call(300) for _ in range(4)] == [0] * 4
    space["stop"] = False
    assert [call(300) for _ in range(4)] == [300] * 4
    space["stop"] = True
    assert call(300) == 0
    for _ in range(3):
        space["stop"] = False
        assert call(300) == 300
        with changed(space["change"]):
            n = call(LIMIT)
        assert n < LIMIT
        assert call(300) == 0
    assert n > 100, "the loop has begun again"


# -- kernels -----------------------------------------------------------------------------------------------------------
SHIFT = np.roll(np.eye(4), 1, 0)
KERNELS = {
    "new arrays": lambda u, w: u * 0.5 + w,
    "in place": lambda u, w: np.add(np.multiply(u, 0.5, out=u), w, out=u),
    "a stencil": lambda u, w: u.__setitem__(slice(1, -1), 0.5 * (u[:-2] + u[2:])) or u,
    "a product": lambda u, w: (u.reshape(4, -1).T @ SHIFT).T.reshape(-1),
}


@pytest.mark.parametrize("kernel", KERNELS)
def test_kernels(kernel):
    step, stop = KERNELS[kernel], False

    def change():
        nonlocal stop
        stop = True

    def f(u, w, limit):
        for n in range(limit):
            if stop:
                return n, u
            u = step(u, w)
        return limit, u

    def arrays():
        return np.arange(2000.0), np.linspace(0, 1, 2000)

    compiled = tcompile.compile(f)
    for limit in WARM:
        compiled(*arrays(), limit)
    u, w = arrays()
    with changed(change):
        n, got = compiled(u, w, 10_000_000)
    assert n < 10_000_000
    want, w = arrays()
    first = want
    for _ in range(n):
        want = step(want, w)
    assert got.tolist() == want.tolist()
    assert u.tolist() == first.tolist()
    assert n > 10, "the loop has begun again"
