"""Frames that go on in the middle of a captured loop.

Input: small functions whose loops read ``stop``, which is set at the second poll of a run. Output: none; the tests fail
where the frame does not go on as plain Python would from the iteration that the run reports. Why: the program that
leads to a loop's next iteration has to hand on everything that the frame and its arguments hold there.
"""

from __future__ import annotations

import gc
import math
import os
import signal
import textwrap
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from unittest import mock

import numpy as np
import pytest

import tcompile
from tcompile import polls
from tcompile.backends.llvm.scalar_loops import lower
from tcompile.runtime import changes, continuations

LIMIT = 400_000_000
WARM = (3, 30, 300, 300)
FLAGGED = """
    def f(x, limit):
        for i in range(limit):
            if stop: break
            x[i % 3] += 1.0
        return i
"""


class Stopped(dict):
    """Globals whose ``stop`` is set at a given read of it."""

    left = -1

    def __getitem__(self, name: str) -> Any:
        if name == "stop":
            self.left -= 1
            if self.left == -1:
                self["change"]()
        return dict.__getitem__(self, name)


def module(text: str, kind: type[dict[str, Any]] = dict) -> dict[str, Any]:
    """The names of a module of this text, with ``stop`` and ``change``."""
    space = kind(np=np, math=math, __name__="continuation", __builtins__=__builtins__)
    before = "stop = False\ndef change():\n    global stop\n    stop = True\n"
    exec(compile(before + textwrap.dedent(text), "<continuation>", "exec"), space)
    return space


@contextmanager
def at_poll(number: int, change: Callable[[], object]) -> Iterator[list[int]]:
    """Calls ``change`` at a poll; the number of polls so far."""
    count = [0]

    def reader() -> bool:
        count[0] += 1
        if count[0] == number:
            change()
        return changes._has_changed()

    polls.register(reader)
    try:
        yield count
    finally:
        polls.register(changes._has_changed)


def alike(one: Any, two: Any) -> bool:
    """Whether results are the same, arrays by their elements and types."""
    if type(one) is not type(two):
        return False
    if isinstance(one, tuple | list):
        return len(one) == len(two) and all(map(alike, one, two))
    if isinstance(one, np.ndarray):
        return one.dtype == two.dtype and np.array_equal(one, two)
    return bool(one == two)


def goes_on(text: str, begins_again: bool = False, most: int = LIMIT, backend: str = "llvm") -> None:
    """Runs ``f(*args(limit))``, which returns the iterations first, and compares with a run in plain Python."""
    space, twin = module(text), module(text, Stopped)
    compiled = tcompile.compile(space["f"], backend=backend, options={"exact": True})
    for limit in WARM:
        given, plain = space["args"](limit), twin["args"](limit)
        assert alike(compiled(*given), twin["f"](*plain))
        assert alike(given, plain)
    given, plain = space["args"](most), twin["args"](most)
    with at_poll(2, space["change"]):
        found = compiled(*given)
    twin.left = found[0]  # type: ignore[attr-defined]
    assert alike(found, twin["f"](*plain))
    assert alike(given, plain)
    assert begins_again or found[0]


def test_cells_of_the_function():
    """What the loop's function shares with functions inside it is the frame's own, not that of the run."""
    goes_on("""
        def args(limit): return np.zeros(3), limit
        def f(x, limit):
            n = calls = 0
            def more():
                nonlocal calls
                calls += 1
            more()
            for i in range(limit):
                if stop: break
                x[i % 3] += 1.0
                n += 1
            more()
            return n, calls
    """)


def test_a_library_call_in_the_same_stretch():
    """NumPy's flags are exceptions around library calls, among which the loop is paused."""
    goes_on("""
        def args(limit): return np.zeros(3), limit
        def f(x, limit):
            n = 0
            y = np.sort(x + 1)
            for i in range(limit):
                if stop: break
                x[i % 3] += 1.0
                n += 1
            return n, np.sort(x), y
    """)


def test_nothing_is_kept():
    """What the loop has made goes with its last name, also where the cyclic collector does not run."""
    space = module("""
        def f(x, limit):
            for i in range(limit):
                if stop: break
                x = x * 0.5 + i
            return x
    """)
    compiled = tcompile.compile(space["f"])
    for limit in WARM:
        compiled(np.zeros(20_000), limit)
    gc.collect()
    gc.disable()
    try:
        given = np.zeros(20_000)
        with at_poll(2, space["change"]):
            found = compiled(given, LIMIT)
        refs = weakref.ref(given), weakref.ref(found)
        del given, found
        assert [ref() for ref in refs] == [None, None]
    finally:
        gc.enable()


def test_a_change_during_the_preparation(monkeypatch):
    """What was prepared meanwhile is forgotten: a later run prepares anew, and goes on."""
    space = module(FLAGGED)
    compiled = tcompile.compile(space["f"])
    for limit in WARM:
        compiled(np.zeros(3), limit)
    prepare = continuations.prepare

    def changes_first(*given):
        space["stop"] = True
        return prepare(*given)

    with monkeypatch.context() as patch:
        patch.setattr(continuations, "prepare", changes_first)
        assert compiled(np.zeros(3), LIMIT) == 0
    space["stop"] = False
    with at_poll(2, space["change"]):
        x = np.zeros(3)
        n = compiled(x, LIMIT)
    assert 0 < n < LIMIT - 1
    assert x.sum() == n


def test_two_threads_at_once():
    """Both calls go on, the one that has compiled and the one that has waited for it, and neither begins again."""
    space = module("""
        def f(x):
            for i in range(400_000_000):
                if stop: break
                x[i % 3] += 1.0
            return i
    """)
    compiled = tcompile.compile(space["f"])
    xs = np.zeros(3), np.zeros(3)
    found = [0, 0]

    def run(number: int) -> None:
        found[number] = compiled(xs[number])

    other = threading.Thread(target=run, args=(0,), daemon=True)
    with at_poll(40, space["change"]) as polls_so_far:
        other.start()
        time.sleep(0.02)  # it compiles now
        run(1)
        other.join(20.0)
    assert not other.is_alive()
    assert polls_so_far[0] >= 40
    assert [x.sum() for x in xs] == found
    assert all(found)


def test_rewritten_code_that_another_thread_makes_meanwhile():
    """The first call has done its work once its entry has, whoever makes the function's host at that time."""
    space = module(FLAGGED)
    compiled = tcompile.compile(space["f"])
    x = np.zeros(3)

    def rewritten() -> None:
        compiled.cache.rewritten = compiled.cache.built

    with at_poll(2, rewritten):
        compiled(x, 60_000_000)
    assert compiled.cache.rewritten is not None
    assert x.sum() == 60_000_000


HANDED_ON = {  # lines before the loop, in it, and what is returned besides the iterations
    "arrays that swap": ("y = np.ones_like(x)", "y[1:-1] = x[:-2] * 0.5 + 1; x, y = y, x", "x, y"),
    "a view of what is written": ("v = x[::2]", "x += 1; x *= 0.5", "x, v, v.base is x"),
    "an alias": ("prev = x", "prev = x; x = x * 0.5 + 1", "x, prev, prev is x"),
    "a generator": ("g = np.random.default_rng(1); y = g.random(3)", "x = x * 0.5 + g.random()", "x, y, g.random()"),
    "a list": ("out = [x.sum()]", "x = x * 0.5 + 1", "x, out"),
    "numbers": ("a = np.float32(1); b = 1.0", "x = x * 0.5 + 1; a = a * np.float32(0.5); b = b * 0.5", "a, b, i"),
    "a dictionary": ("d = {'x': x}", "d['x'] = d['x'] * 0.5 + 1", "d['x'], i"),
}


@pytest.mark.parametrize("what", HANDED_ON)
def test_what_is_handed_on(what):
    """Whatever the frame holds where the next iteration begins is what plain Python would hold there."""
    before, body, after = HANDED_ON[what]
    goes_on(f"""
        def args(limit): return np.zeros(20_000), limit
        def f(x, limit):
            {before}
            n = 0
            for i in range(limit):
                if stop: break
                {body}
                n += 1
            return n, {after}
    """)


CHANGING = {  # lines of a scalar loop, whose variables have several kinds, and what is returned besides the iterations
    "an int or a float": ("y = 1 if i % 2 else 0.5; s += y", "y, s"),
    "a number or None": ("if i % 7 == 3: best = s; s += 1.0\nelif i % 7 == 5: best = None", "best, s"),
    "a float or NumPy's": ("y = float(i) if i % 3 else x[i % 5]; s += y", "y, s"),
    "arrays": ("a, b = b, a; a[i % 3] += 1.0; s += b[0]", "a, b, a is x, s"),
    "a tuple": ("y = (i, s) if i % 5 == 1 else (s, i); s += 1.0", "y, s"),
    "an int that becomes a float": ("n += 1; y += (i > 300) * 0.5; s = s + x[i % 5]", "y, s"),
}


@pytest.mark.parametrize("backend", ["llvm", "eager"])
@pytest.mark.parametrize("what", CHANGING)
def test_variables_that_change_their_kinds(what, backend):
    """The next iteration begins with the kinds that its variables have there."""
    body, after = CHANGING[what]
    lines = [
        "n = s = y = 0; best = None; a = x; b = np.ones(20)", "for i in range(limit):", "    if stop: break",
        *(f"    {line}" for line in body.splitlines()), "    n = i + 1", f"return n, {after}",
    ]  # fmt: skip
    text = "def args(limit): return np.ones(20), limit\ndef f(x, limit):\n"
    text += "".join(f"    {line}\n" for line in lines)
    goes_on(text, False, LIMIT if backend == "llvm" else 100_000_000, backend)


@pytest.mark.parametrize("head", ["for i in range(limit):", "for i, e in enumerate(w):", "while n < limit:"])
@pytest.mark.parametrize("inner", ["s = s * 0.5 + x[n % 5]", "for k in range(x.size): s = s * 0.5 + x[k]"])
def test_scalar_loops_of_the_eager_backend(head, inner):
    """A loop over scalars goes on where Python runs it."""
    goes_on(
        f"""
        def args(limit): return np.ones(20), np.ones(limit) if {"enumerate" in head} else None, limit
        def f(x, w, limit):
            n = 0; s = 0.0; out = []
            {head}
                if stop: break
                {inner}
                x[n % 3] = x[n % 3] * 0.25 + s * 0.25
                n += 1
            return n, s, x
    """,
        most=3_000_000,
        backend="eager",
    )


IN_A_CALL = {  # functions before f, and what returns the iterations and more
    "a function": (
        """
        def run(x, limit):
            n = 0
            for i in range(limit):
                if stop: break
                x[i % 3] += 1.0
                n += 1
            return n
        """,
        "n = run(x, limit); return n, x[0]",
    ),
    "in a call": (
        """
        def inner(x, y, limit):
            n = 0
            for i in range(limit):
                if stop: break
                x[i % 3] += 1.0
                n += 1
            return n, y
        def run(x, *args, more=2, **named):
            y = x[1] + 1.0
            return inner(x, *args, **named), y, more
        """,
        "(n, y), z, m = run(x, x[0], limit=limit); return n, y, z, m",
    ),
    "of arrays": (
        """
        def run(x, limit):
            n = 0
            y = np.ones_like(x)
            for i in range(limit):
                if stop: break
                y[1:-1] = x[:-2] * 0.5 + 1
                x, y = y, x
                n += 1
            return n, x, y
        """,
        "n, z, y = run(x, limit); return n, z, y, x is z, x is y",
    ),
    "a method": (
        """
        class Run:
            def run(self, x, limit):
                n = 0
                while n < limit:
                    if stop: break
                    x[n % 3] += 1.0
                    n += 1
                self.n = n
        """,
        "r = Run(); r.run(x, limit); return r.n, x[0]",
    ),
    "a closure": (
        """
        """,
        """
            m = 0
            def run():
                nonlocal m
                n = 0
                for i in range(limit):
                    if stop: break
                    x[i % 3] += 1.0
                    n += 1
                m = n
                return n
            n = run()
            return n, m, x[0]
        """,
    ),
    "a partial call": (
        """
        import functools
        def run(y, x, limit):
            n = 0
            for i in range(limit):
                if stop: break
                x[i % 3] += y
                n += 1
            return n
        """,
        "g = functools.partial(run, 2.0); return g(x, limit=limit), x[1]",
    ),
    "two calls in a comparison": (
        """
        def run(x, limit):
            n = 0
            for i in range(limit):
                if stop: break
                x[i % 3] += 1.0
                n += 1
            return n
        """,
        "y = x[2] + 1; n = [0, run(x, limit)][x.size > 2]; return n, y",
    ),
}


@pytest.mark.parametrize("what", IN_A_CALL)
def test_a_called_function(what):
    """The function that runs the loop goes on in its middle, and so does its caller when it returns."""
    before, after = IN_A_CALL[what]
    text = textwrap.dedent(before) + "def args(limit): return np.zeros(20), limit\n"
    goes_on(text + "def f(x, limit):\n" + textwrap.indent(textwrap.dedent(after).strip(), "    "))


def test_a_comprehension_of_a_called_function_with_closure_variables():
    """Its function shares variables with the called one: both frames have the same cells again."""
    goes_on(
        """
        def args(limit): return np.zeros(20), limit
        def run(x, limit):
            k = 0.5
            return [x[i % 3] * k + i for i in range(limit) if i % 64 == 0 and not stop]
        def f(x, limit):
            found = run(x, limit)
            return len(found), found
        """,
        most=4_000_000,
    )


LOOPS_BEFORE = {  # lines before the loop, in it, and what is returned besides the iterations
    "a number": ("s = 0.0\nfor j in range(50): s = s * 0.5 + x[j % 3]", "x[i % 3] += 1.0", "s, x"),
    "what it writes": ("for j in range(50): x[j % 3] += 2.0", "x[i % 3] += 1.0", "x, j"),
    "arrays": ("y = x + 1\nfor j in range(50): y = y * 0.5 + 1", "x = x * 0.5 + y", "x, y, j"),
    "arrays that are written": ("y = x + 1\nfor j in range(50): y = y * 0.5 + j\ny[0] = 7", "x[1:] += y[:-1]", "x, y"),
    "two loops": (
        "y = x + 1\nfor j in range(50): y = y * 0.5 + j\ns = 0.0\nfor j in range(50): s = s * 0.5 + y[j % 3]\n",
        "x = x * 0.5 + s", "x, y, s",
    ),
    "a list": ("out = []\nfor j in range(50): x = x + 1; out.append(x.sum())", "x = x * 0.5 + 1", "x, out"),
    "a view": (
        "y = x + 1\nfor j in range(50): y = y * 0.5 + j\nv = y[::2]\nv += 1", "x[1:] += y[:-1]", "v, x, v.base is y",
    ),
}  # fmt: skip

WRITTEN_OVER = {"arrays that are written", "a view"}  # in the memory of what the first loop has made


@pytest.mark.parametrize("what", LOOPS_BEFORE)
def test_a_loop_before(what):
    """What another loop has left is still there where the second one goes on."""
    before, body, after = LOOPS_BEFORE[what]
    lines = [
        *before.splitlines(), "n = 0", "for i in range(limit):", "    if stop: break", f"    {body}", "    n += 1",
        f"return n, {after}",
    ]  # fmt: skip
    text = "def args(limit): return np.zeros(2000), limit\ndef f(x, limit):\n"
    goes_on(text + "".join(f"    {line}\n" for line in lines), begins_again=what in WRITTEN_OVER)


SUM = "for k in range(200): s = math.sqrt(s + x[k]) / 1.25"
LISTS = {  # lines of the loop, and what is returned besides the iterations
    "floats": (f"{SUM}\nout.append(s)", "s"),
    "some floats": (f"{SUM}\nif i % 3: out.append(s)", "s"),
    "tuples": (f"{SUM}\nif i % 2: out.append((i, s))", "s"),
    "two at a time": (f"{SUM}\nout.append(s); out.append(s + 1)", "s"),
    "two lists": (f"{SUM}\nout.append(s); more.append(s + 1)", "s, more"),
    "floats of arrays": ("x = x * 0.5 + 1; out.append(x.sum())", "x"),
    "two of arrays": ("x = x * 0.5 + 1; out.append(x.sum()); out.append(x.max())", "x"),
    "arrays": ("x = x * 0.5 + 1; y = x[:8] * 0.5 + n; out.append(y)", "y, y is out[-1] if out else None"),
}


@pytest.mark.parametrize("head", ["for i in range(limit):", "for i in range(5, 2 * limit, 2):", "while n < limit:"])
@pytest.mark.parametrize("what", LISTS)
def test_lists(what, head):
    """A list holds what the iterations so far have appended to it."""
    body, after = LISTS[what]
    lines = [
        "out = []; more = [1.0]; i = n = 0; y = None; s = 0.0", head, "    if stop: break",
        *(f"    {line}" for line in body.splitlines()), "    n += 1",
        *(["    i = n"] if "while" in head else []), f"return n, out, {after}",
    ]  # fmt: skip
    text = "def args(limit): return np.ones(2000), limit\ndef f(x, limit):\n"
    most = 16_000 if SUM in body else 100_000 if what == "arrays" else 10_000_000  # Python runs a list of arrays
    goes_on(text + "".join(f"    {line}\n" for line in lines), most=most)


@pytest.mark.parametrize("comes_from", ["a handler", "a thread"])
def test_what_changes_while_the_continuation_is_captured_does_not_begin_the_loop_again(comes_from, monkeypatch):
    """The capture reads what the loop has read: neither a handler nor a thread may change it before."""
    names = module(FLAGGED)
    prepare, before = continuations.prepare, signal.getsignal(signal.SIGALRM)
    woken = threading.Event()

    def prepared(*given):
        if comes_from == "a handler":
            os.kill(os.getpid(), signal.SIGALRM)
            time.sleep(0.02)  # without the GIL
        else:
            woken.set()  # the thread wants the GIL from here on
            end = time.perf_counter() + 0.03  # several switch intervals
            while time.perf_counter() < end:
                pass
        return prepare(*given)

    def wait_and_change():
        woken.wait(10)
        names["change"]()

    compiled = tcompile.compile(names["f"])
    for limit in WARM:
        compiled(np.zeros(3), limit)
    monkeypatch.setattr(continuations, "prepare", prepared)
    signal.signal(signal.SIGALRM, lambda *_: names["change"]())
    other = threading.Thread(target=wait_and_change)
    try:
        if comes_from == "a thread":
            other.start()
        x = np.zeros(3)
        k = compiled(x, LIMIT)
    finally:
        woken.set()
        if other.ident is not None:
            other.join()
        signal.signal(signal.SIGALRM, before)
    assert 0 < k < LIMIT - 1
    assert x.sum() == k


BOX = [7, True]


def peeled(u, w, limit, box=BOX):
    s, n, how = 0.0, 0, 0
    for _ in range(limit // 1000 + 1):
        for _ in range(1000):
            now = not box[-1]
            u = u * 0.75 + w
            s = u.max()
            if now:
                how = 1
                break
            n += 1
            if s > 1e9:
                how = 2
                break
    return (n if how == 1 else -1), how, s, u.copy()


def calls_peeled(x, u, w, limit, box=BOX):
    x[7] = 0.5
    found = peeled(u, w, limit, box)
    return found


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="there are no such signals")
def test_numbers_of_an_inner_loop_that_was_peeled():
    """The first iteration of the outer loop is a loop of its own, whose numbers the next one begins with."""
    compiled = tcompile.compile(calls_peeled)
    u, w = np.linspace(0.0, 1.0, 64), np.linspace(1.0, 2.0, 64)
    for limit in (300, 300, 300, 4000, 4000, 20000):
        assert alike(compiled(np.zeros(8), u, w, limit), calls_peeled(np.zeros(8), u, w, limit))
    before = signal.signal(signal.SIGALRM, lambda *_: BOX.__setitem__(-1, False))
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.1)
        n, how, *_ = compiled(np.zeros(8), u, w, 4_000_000)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
        BOX[-1] = True
    assert how == 1
    assert n > 1000


def test_a_warning_of_what_had_not_run_yet():
    """A kernel that comes after the loop in the schedule, and before it in the code."""

    def f(a, m, q, h):
        m[:, 1] = np.sqrt(a[:4])
        for _ in range(1):
            assert q[1], "the second"
            a, h = h, a

    def run(g, second):
        a, m = np.arange(8.0) - 4, np.zeros((4, 5))
        with pytest.warns(RuntimeWarning, match="invalid value encountered in sqrt"):
            try:
                g(a, m, np.array([True, second]), np.arange(8))
            except AssertionError as error:
                return m.tobytes(), repr(error)
        return m.tobytes(), None

    with mock.patch.object(lower, "_BUDGET", 0), mock.patch.object(polls, "_INTERVAL", 0.0):
        compiled = tcompile.compile(f)
        for second in (False, False, True, False):
            assert run(compiled, second) == run(f, second)
