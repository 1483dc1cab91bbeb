"""What signal handlers and threads change while a compiled loop runs.

Input: small loops that read a flag, and what sets it while they run. Output: none; the tests fail where a loop does not
see it. Why: plain Python reads globals, attributes, items and cells in each iteration. Machine code may read them once,
as long as it looks again every few milliseconds. ``python tools/fuzz.py --kind async`` combines loops, places and
setters at random.
"""

from __future__ import annotations

import io
import math
import os
import queue
import random
import signal
import sys
import textwrap
import threading
import time
import types
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout

import numpy as np
import pytest

import tcompile

DELAY, TOO_LATE = 0.15, 1.0  # seconds from the call to the change, and to the end of a loop that never sees it
LIMIT = 400_000_000
WARM = (3, 30, 300, 300)  # so many iterations have the calls before: the last ones are machine code's
SIGNALS = hasattr(signal, "setitimer")
SETTERS = [pytest.param("signal", marks=pytest.mark.skipif(not SIGNALS, reason="there are no such signals")), "thread"]
SETTER = "signal" if SIGNALS else "thread"


class TooLate(BaseException):
    """A loop has not seen what it should have ended for."""


@contextmanager
def changed(change, setter=SETTER, delay=DELAY) -> Iterator[list[float]]:
    """Calls ``change`` after a while, and raises TooLate where the block goes on for long; when it was called."""
    at: list[float] = []

    def step() -> None:
        change()
        at.append(time.perf_counter())

    def rings(*_: object) -> None:
        if at or setter != "signal":
            raise TooLate
        step()

    def sleeps() -> None:
        time.sleep(delay)
        step()

    thread = threading.Thread(target=sleeps) if setter == "thread" else None
    before = signal.signal(signal.SIGALRM, rings) if SIGNALS else None
    try:
        if thread:
            thread.start()
        if SIGNALS:
            signal.setitimer(signal.ITIMER_REAL, delay if setter == "signal" else delay + TOO_LATE, TOO_LATE)
        yield at
    except TooLate:
        raise AssertionError("the loop has not seen the change") from None
    finally:
        if SIGNALS:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, before)
        if thread:
            thread.join()


def module(text: str, **names: object) -> dict[str, object]:
    """The names that a module of this text has."""
    space = {
        "math": math, "np": np, "os": os, "queue": queue, "random": random, "sys": sys, "threading": threading,
        "time": time, "types": types, "__name__": "async_state", **names,
    }  # fmt: skip
    exec(compile(textwrap.dedent(text), "<async state>", "exec"), space)
    space["anew"] = lambda: module(text, **names)
    return space


def counted(n: int) -> list[float]:
    """What ``x[i % 3] += 1.0`` for ``i`` in ``range(n)`` makes of three zeros."""
    return [float(len(range(first, n, 3))) for first in range(3)]


def seen(space: dict[str, object], setter: str = SETTER, native: bool = True, goes_on: bool = True) -> None:
    """Runs ``f(x, limit)`` of a module that ``change()`` changes meanwhile.

    On a busy machine a change may come before the run has prepared to go on: then it comes later in another run.
    """
    for delay in (DELAY, 2 * DELAY, 2 * DELAY):
        n = _seen(space, setter, native, delay)
        if n > 100 or not goes_on:
            return
        space = space["anew"]()
    raise AssertionError(f"the loop has begun again: it was at iteration {n}")


def _seen(space: dict[str, object], setter: str, native: bool, delay: float) -> int:
    with tcompile.config.patch(native_calls=native):
        compiled = tcompile.compile(space["f"])
        for limit in WARM:
            x = np.zeros(3)
            assert compiled(x, limit) == limit
            assert x.tolist() == counted(limit)
        x = np.zeros(3)
        with changed(space["change"], setter, delay):
            n = compiled(x, LIMIT)
        assert x.tolist() == counted(n)
        assert n < LIMIT
        x, y = np.zeros(3), np.zeros(3)
        assert compiled(x, 1000) == space["f"](y, 1000)  # set from the beginning
        assert x.tolist() == y.tolist()
    return n


# -- places ------------------------------------------------------------------------------------------------------------
PLACES = {  # lines before, the flag's expression, the statement that sets it
    "global": ("stop = False", "stop", "global stop; stop = True"),
    "attribute": ("class Box: pass\nbox = Box()\nbox.stop = False", "box.stop", "box.stop = True"),
    "attribute of an attribute": (
        "class Box: pass\nbox = Box()\nbox.inner = Box()\nbox.inner.stop = False", "box.inner.stop",
        "box.inner.stop = True",
    ),
    "attribute that is replaced": (
        "class Box: stop = False\nclass Set: stop = True\nclass Outer: pass\nbox = Outer()\nbox.inner = Box()",
        "box.inner.stop", "box.inner = Set()",
    ),
    "class attribute": ("class Box: stop = False", "Box.stop", "Box.stop = True"),
    "class attribute of an object": ("class Box: stop = False\nbox = Box()", "box.stop", "Box.stop = True"),
    "attribute over a class attribute": ("class Box: stop = False\nbox = Box()", "box.stop", "box.stop = True"),
    "base class": ("class Base: stop = False\nclass Box(Base): pass\nbox = Box()", "box.stop", "Base.stop = True"),
    "slots": (
        "class Box:\n    __slots__ = ('stop',)\nbox = Box()\nbox.stop = False", "box.stop", "box.stop = True",
    ),
    "property": (
        "class Box:\n    held = False\n    @property\n    def stop(self): return self.held\nbox = Box()",
        "box.stop", "box.held = True",
    ),
    "method": (
        "class Box:\n    held = False\n    def stop(self): return self.held\nbox = Box()", "box.stop()",
        "box.held = True",
    ),
    "call": (
        "class Box:\n    held = False\n    def __call__(self): return self.held\nbox = Box()", "box()",
        "box.held = True",
    ),
    "truth of an object": (
        "class Box:\n    held = False\n    def __bool__(self): return self.held\nbox = Box()", "box", "box.held = True",
    ),
    "namespace": ("box = types.SimpleNamespace(stop=False)", "box.stop", "box.stop = True"),
    "function attribute": ("def mark(): pass\nmark.stop = False", "mark.stop", "mark.stop = True"),
    "function": ("def stop(): return False\ndef other(): return True", "stop()", "global stop; stop = other"),
    "code of a function": (
        "def stop(): return False\ndef other(): return True", "stop()", "stop.__code__ = other.__code__",
    ),
    "default of a function": (
        "def stop(flag=False): return flag", "stop()", "stop.__defaults__ = (True,)",
    ),
    "dict": ("state = {'stop': False}", "state['stop']", "state['stop'] = True"),
    "dict in a dict": ("state = {'a': {'stop': False}}", "state['a']['stop']", "state['a']['stop'] = True"),
    "dict get": ("state = {}", "state.get('stop')", "state['stop'] = True"),
    "key": ("state = {}", "'stop' in state", "state['stop'] = True"),
    "globals": ("stop = False", "globals()['stop']", "global stop; stop = True"),
    "list": ("state = [0, False]", "state[1]", "state[1] = True"),
    "length of a list": ("state = []", "state", "state.append(1)"),
    "list that is replaced": ("state = [False]", "state[0]", "global state; state = [True]"),
    "tuple that is replaced": ("state = (0, False)", "state[1]", "global state; state = (0, True)"),
    "set": ("state = set()", "'stop' in state", "state.add('stop')"),
    "element of an array": ("state = np.zeros(2)", "state[1] > 0.5", "state[1] = 1.0"),
    "element of an array of bools": ("state = np.zeros(2, bool)", "state[1]", "state[1] = True"),
    "array without dimensions": ("state = np.array(0)", "state", "state[()] = 1"),
    "any of an array": ("state = np.zeros(4, bool)", "state.any()", "state[2] = True"),
    "module": (
        "settings = types.ModuleType('settings')\nsettings.stop = False", "settings.stop", "settings.stop = True",
    ),
    "event": ("event = threading.Event()", "event.is_set()", "event.set()"),
    "number": ("phase = 1", "phase == 2", "global phase; phase = 2"),
    "float": ("rate = 1.0", "rate > 1.0", "global rate; rate = 1.5"),
    "text": ("mode = 'run'", "mode == 'stop'", "global mode; mode = 'stop'"),
    "None": ("result = None", "result is not None", "global result; result = 5"),
    "built-in": ("", "len('') == 1", "global len; len = lambda _: 1"),
    "getattr": ("class Box: stop = False", "getattr(Box, 'stop', None)", "Box.stop = True"),
    "hasattr": ("class Box: pass\nbox = Box()", "hasattr(box, 'stop')", "box.stop = True"),
}  # fmt: skip

LOOP = """
{before}

def f(x, limit):
    for n in range(limit):
        if {read}:
            return n
        x[n % 3] += 1.0
    return limit

def change():
    {change}
"""


@pytest.mark.parametrize("place", PLACES)
def test_places(place):
    before, read, change = PLACES[place]
    seen(module(LOOP.format(before=before, read=read, change=change)))


def test_a_closure():
    text = """
    def made():
        stop = False

        def f(x, limit):
            for n in range(limit):
                if stop:
                    return n
                x[n % 3] += 1.0
            return limit

        def change():
            nonlocal stop
            stop = True

        return f, change

    f, change = made()
    """
    seen(module(text))


def test_an_attribute_of_self():
    text = """
    class Run:
        stop = False

        def stopped(self):
            return self.stop

        def f(self, x, limit):
            for n in range(limit):
                if self.stopped():
                    return n
                x[n % 3] += 1.0
            return limit

        def change(self):
            self.stop = True

    run = Run()
    f, change = run.f, run.change
    """
    seen(module(text))


@pytest.mark.parametrize("default", ["state={'stop': False}", "*, state={'stop': False}"])
def test_a_default_argument(default):
    text = f"""
    def f(x, limit, {default}):
        for n in range(limit):
            if state["stop"]:
                return n
            x[n % 3] += 1.0
        return limit

    def change():
        held = f.__defaults__ or tuple(f.__kwdefaults__.values())
        held[0]["stop"] = True
    """
    seen(module(text))


@pytest.mark.skipif(not SIGNALS, reason="there are no such signals")
def test_a_context_variable():
    text = """
    from contextvars import ContextVar
    var = ContextVar("var", default=False)

    def f(x, limit):
        for n in range(limit):
            if var.get():
                return n
            x[n % 3] += 1.0
        return limit

    def change():
        var.set(True)
    """
    seen(module(text), "signal")


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


def flagged(body: str) -> dict[str, object]:
    """A module whose ``f`` has this body, in which ``stop`` is the flag."""
    text = "stop, ticks, ONES = False, 0, np.ones(1000)\nclass BOX: n = 0\n"
    text += "def change():\n    global stop\n    stop = True\n"
    return module(text + "def f(x, limit):\n" + textwrap.indent(textwrap.dedent(body), "    "))


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


# -- what is never read once -------------------------------------------------------------------------------------------
@pytest.mark.parametrize("clock", ["time", "time_ns", "perf_counter", "perf_counter_ns", "monotonic", "process_time"])
def test_clocks(clock):
    def f(x, end):
        n = 0
        while read() < end:
            x[n % 3] += 1.0
            n += 1
        return n

    read = getattr(time, clock)
    compiled = tcompile.compile(f)
    for _ in range(3):
        x, end = np.zeros(3), read() + (10_000_000 if clock.endswith("ns") else 0.01)
        with changed(lambda: None):
            n = compiled(x, end)
        assert read() >= end
        assert x.tolist() == counted(n)
    assert n > 0


OPAQUE = {
    "locked": ("lock = threading.Lock()", "lock.locked()", "lock.acquire()"),
    "acquire": (
        "lock = threading.Lock()\nlock.acquire()", "lock.acquire(False) and not lock.release()", "lock.release()",
    ),
    "semaphore": (
        "lock = threading.Semaphore(0)", "lock.acquire(blocking=False) and not lock.release()", "lock.release()",
    ),
    "condition": (
        "condition = threading.Condition()\nheld = []", "condition.wait_for(lambda: True, 0) and held",
        "held.append(1)",
    ),
    "queue empty": ("items = queue.Queue()", "not items.empty()", "items.put(1)"),
    "queue size": ("items = queue.Queue()", "items.qsize() > 0", "items.put(1)"),
    "simple queue": ("items = queue.SimpleQueue()", "not items.empty()", "items.put(1)"),
    "deque": ("from collections import deque\nitems = deque()", "len(items) > 0", "items.append(1)"),
    "wait": ("event = threading.Event()", "event.wait(0)", "event.set()"),
    "barrier": ("barrier = threading.Barrier(2)", "barrier.broken", "barrier.abort()"),
    "getsize": ("file = open(PATH, 'w')", "os.path.getsize(PATH) > 0", "file.write('x'), file.flush()"),
    "stat": ("file = open(PATH, 'w')", "os.stat(PATH).st_size > 0", "file.write('x'), file.flush()"),
    "exists": ("", "os.path.exists(PATH)", "open(PATH, 'w').close()"),
    "environ": ("os.environ['TC_STOP'] = ''", "os.environ['TC_STOP']", "os.environ['TC_STOP'] = '1'"),
    "environ get": ("os.environ['TC_STOP'] = ''", "os.environ.get('TC_STOP')", "os.environ['TC_STOP'] = '1'"),
    "environ in": ("os.environ.pop('TC_STOP', 0)", "'TC_STOP' in os.environ", "os.environ['TC_STOP'] = '1'"),
    "getenv": ("os.environ['TC_STOP'] = ''", "os.getenv('TC_STOP')", "os.environ['TC_STOP'] = '1'"),
    "a file that is read": ("open(PATH, 'w').close()\nfile = open(PATH)", "file.seek(0) or file.read(1)",
                            "with open(PATH, 'w') as other: other.write('x')"),
    "input": ("text = ''\ndef input(): return text", "input()", "global text; text = 'x'"),
    "readline": ("import io\nfile = io.StringIO()", "file.seek(0) or file.readline()", "file.seek(0); file.write('x')"),
    "weak reference": (
        "import weakref\nclass Box: pass\nbox = Box()\nref = weakref.ref(box)", "ref() is None",
        "global box; box = None",
    ),
    "number of C": ("import ctypes\nheld = ctypes.c_int(0)", "held.value", "held.value = 1"),
    "bytes": ("held = bytearray(1)", "held[0]", "held[0] = 1"),
    "array over bytes": ("held = bytearray(8)\na = np.frombuffer(held, 'u1')", "a[3] == 1", "held[3] = 1"),
    "recursion limit": ("", "sys.getrecursionlimit() == 1234", "sys.setrecursionlimit(1234)"),
    "switch interval": ("", "sys.getswitchinterval() > 0.0059", "sys.setswitchinterval(0.006)"),
}  # fmt: skip


@pytest.fixture
def as_before() -> Iterator[None]:
    """Puts the process's settings back."""
    recursion, interval = sys.getrecursionlimit(), sys.getswitchinterval()
    yield
    sys.setrecursionlimit(recursion)
    sys.setswitchinterval(interval)
    os.environ.pop("TC_STOP", None)


@pytest.mark.filterwarnings("ignore::ResourceWarning")
@pytest.mark.parametrize("what", OPAQUE)
def test_what_is_never_read_once(what, tmp_path, as_before):
    before, read, change = OPAQUE[what]
    space = module(LOOP.format(before=before, read=read, change=change), PATH=str(tmp_path / "file"))
    try:
        seen(space, "thread", goes_on=False)  # a handler would wait for a lock that the loop holds
    finally:
        if (file := space.get("file")) is not None:
            file.close()


@pytest.mark.parametrize("draw", ["random.random()", "np.random.random()", "next(numbers)", "numbers.__next__()"])
def test_draws(draw):
    """Each iteration draws a number of its own."""
    text = f"""
    def f(x, limit):
        for n in range(limit):
            x[n % 3] += {draw}
        return limit
    """
    found = []
    for made in (lambda f: f, tcompile.compile):
        space = module(text)
        function = made(space["f"])
        random.seed(3)
        np.random.seed(3)
        space["numbers"] = iter(np.random.default_rng(1).random(5000).tolist())
        x = np.zeros(3)
        for limit in WARM:
            function(x, limit)
        found.append([*x.tolist(), random.random(), np.random.random(), next(space["numbers"])])
    assert found[0] == found[1]
