"""Changes from outside while a compiled loop runs.

Input: a module with a loop ``f`` and a ``change``.
Output: a failure if the loop misses the change, or if its results are not those of a whole number of iterations.
Why: several files run the same checks on other loops. ``python tools/fuzz.py --kind async`` combines loops, places and
setters at random.
"""

from __future__ import annotations

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
from contextlib import contextmanager

import numpy as np
import pytest

import tcompile

DELAY, TOO_LATE = 0.15, 1.0  # seconds from the call to the change, and to the end of a loop that never sees it
LIMIT = 400_000_000
WARM = (3, 30, 300, 300)  # iterations of the warm-up calls: the last ones run in machine code
SIGNALS = hasattr(signal, "setitimer")
SETTERS = [pytest.param("signal", marks=pytest.mark.skipif(not SIGNALS, reason="there are no such signals")), "thread"]
SETTER = "signal" if SIGNALS else "thread"


class TooLate(BaseException):
    """A loop has missed the change that should have ended it."""


@contextmanager
def changed(change, setter=SETTER, delay=DELAY) -> Iterator[list[float]]:
    """Calls ``change`` after a while, and raises TooLate if the block continues for long; yields when it was called."""
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
    """Returns the names of a module of this text."""
    space = {
        "math": math, "np": np, "os": os, "queue": queue, "random": random, "sys": sys, "threading": threading,
        "time": time, "types": types, "__name__": "async_state", **names,
    }  # fmt: skip
    exec(compile(textwrap.dedent(text), "<async state>", "exec"), space)
    space["anew"] = lambda: module(text, **names)
    return space


def counted(n: int) -> list[float]:
    """Returns the result of ``x[i % 3] += 1.0`` for ``i`` in ``range(n)`` on three zeros."""
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


def flagged(body: str) -> dict[str, object]:
    """Returns a module whose ``f`` has this body, with the flag ``stop``."""
    text = "stop, ticks, ONES, TEXT = False, 0, np.ones(1000), 'a' * 1000\nclass BOX: n = 0\n"
    text += "def change():\n    global stop\n    stop = True\n"
    return module(text + "def f(x, limit):\n" + textwrap.indent(textwrap.dedent(body), "    "))


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
