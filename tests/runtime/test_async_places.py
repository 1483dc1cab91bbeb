"""Where the flag lives that a handler or a thread sets while a compiled loop runs.

Input: a loop that reads a flag. Output: none; the tests fail where a loop does not see it. Why: plain Python reads
globals, attributes, items and cells in each iteration, and machine code reads them again every few milliseconds.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from runtime.async_state import LOOP, SIGNALS, WARM, changed, module, seen

import tcompile

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


def test_an_element_that_only_a_called_function_tests():
    """No array of the caller is written, so LLVM could read the element once; and the loop raises."""

    class Stop(Exception):
        pass

    def ask(box):
        if box[0] == 2:
            raise Stop

    def f(x, limit, box):
        found = []
        for n in range(limit):
            try:
                ask(box)
            except Stop:
                break
            found.append(math.sqrt(x[n % 8] + 1.5))
        return found, n

    x, box = np.arange(8.0), np.zeros(2, int)
    compiled = tcompile.compile(f)
    for limit in WARM:
        assert compiled(x, limit, box) == f(x, limit, box)

    def change():
        box[0] = 2

    with changed(change, "thread", 0.05):
        found, n = compiled(x, 60_000_000, box)
    assert len(found) == n < 60_000_000 - 1


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
