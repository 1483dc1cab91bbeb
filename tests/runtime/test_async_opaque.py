"""What a compiled loop never reads once: clocks, locks, queues, files, draws.

Input: loops that call these. Output: none; the tests fail where a call is hoisted. Why: what they return changes
without any change of what the loop's function names.
"""

from __future__ import annotations

import os
import random
import sys
import time
from collections.abc import Iterator

import numpy as np
import pytest
from runtime.async_state import (
    LOOP,
    WARM,
    changed,
    counted,
    module,
    seen,
)

import tcompile


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
