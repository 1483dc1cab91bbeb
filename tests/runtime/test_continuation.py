"""Frames that go on in the middle of a captured loop.

Input: small functions whose loops read ``stop``, which is set at the second poll of a run. Output: none; the tests fail
where the frame does not go on as plain Python would from the iteration that the run reports. Why: the program that
leads to a loop's next iteration has to hand on everything that the frame and its arguments hold there.
"""

from __future__ import annotations

import gc
import textwrap
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

import tcompile
from tcompile import polls
from tcompile.runtime import changes, continuations

LIMIT = 400_000_000
WARM = (3, 30, 300, 300)


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
    space = kind(np=np, __name__="continuation", __builtins__=__builtins__)
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


def goes_on(text: str, begins_again: bool = False) -> None:
    """Runs ``f(*args(limit))``, which returns the iterations first, and compares with a run in plain Python."""
    space, twin = module(text), module(text, Stopped)
    compiled = tcompile.compile(space["f"], options={"exact": True})
    for limit in WARM:
        given, plain = space["args"](limit), twin["args"](limit)
        assert alike(compiled(*given), twin["f"](*plain))
        assert alike(given, plain)
    given, plain = space["args"](LIMIT), twin["args"](LIMIT)
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
    space = module("""
        def f(x, limit):
            for i in range(limit):
                if stop: break
                x[i % 3] += 1.0
            return i
    """)
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


def test_a_host_that_another_thread_makes_meanwhile():
    """The first call has done its work once its entry has, whoever makes the function's host at that time."""
    space = module("""
        def f(x, limit):
            for i in range(limit):
                if stop: break
                x[i % 3] += 1.0
            return i
    """)
    compiled = tcompile.compile(space["f"])
    x = np.zeros(3)

    def host() -> None:
        compiled.cache.host = compiled.cache.built

    with at_poll(2, host):
        compiled(x, 60_000_000)
    assert compiled.cache.host is not None
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
