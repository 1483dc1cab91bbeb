"""The first use in a process is safe from handlers, finalizers, threads, forks, and as the interpreter ends."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap

import pytest

HEAD = """
import faulthandler, os, signal, sys, threading, time, traceback, warnings
faulthandler.dump_traceback_later(100, exit=True)
import numpy as np, tcompile

def plain_f(x):
    return np.sqrt(x * 2 + 1).sum()

def plain_g(x):
    for i in range(3):
        x = x * 2 + i
    return x.mean()

def plain_steps(x, n):
    for i in range(n):
        x = x + i
        yield float(x.sum())

f, g, steps = map(tcompile.compile, (plain_f, plain_g, plain_steps))
x = np.arange(2000.0)
expected = plain_f(x), plain_g(x), list(plain_steps(x, 3))
failed = []

def same(got, want):  # in Python alone: NumPy imports parts of it late, too
    pairs = zip(got, want, strict=True) if type(got) is list else [(got, want)]
    return all(abs(float(a) - float(b)) <= 1e-9 * abs(float(b)) for a, b in pairs)

def all_same(*functions):
    try:
        for function, want in zip((f, g, steps), expected):
            if not functions or function in functions:
                got = list(function(x, 3)) if function is steps else function(x)
                assert same(got, want), (got, want)
    except BaseException:
        failed.append(traceback.format_exc())
"""


RINGING = """
def ring(handler, seconds=0.002):
    # Again and again, each time when the handler has returned.
    def rings(*_):
        handler()
        again()
    again = lambda: signal.setitimer(signal.ITIMER_REAL, seconds)
    signal.signal(signal.SIGALRM, rings)
    again()

def silence():
    signal.signal(signal.SIGALRM, signal.SIG_IGN)
    signal.setitimer(signal.ITIMER_REAL, 0)
"""


def run(script: str, *options: str) -> str:
    """What a fresh process prints, all in all."""
    command = [sys.executable, "-W", "error", *options, "-c", HEAD + RINGING + textwrap.dedent(script)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


with_timers = pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="there are no such signals")
with_forks = pytest.mark.skipif(not hasattr(os, "fork"), reason="there are no forks")


@with_timers
@pytest.mark.parametrize("called", ["f", "g", "steps", "f, g, steps"])
def test_a_handler_of_signals_calls_compiled_functions(called):
    """It rings every other millisecond, from the first compile until calls are machine code's."""
    script = f"""
    calls = 0
    def handler():
        global calls
        calls += 1
        all_same({called})
    ring(handler)
    all_same(f)
    for _ in range(3):
        all_same()
    silence()
    all_same()
    assert not failed, failed[0]
    print(calls > 3, len(f.entries), len(f.breaks))
    """
    assert run(script) == "True 1 0\n"


@with_timers
def test_a_handler_calls_while_modules_are_imported_that_a_compile_needs():
    """It must not wait for a module that its own thread has begun to import."""
    script = """
    ring(all_same, 0.0005)
    import llvmlite.binding, difflib, html, csv, numpy.random
    silence()
    all_same()
    assert not failed, failed[0]
    print(len(f.entries))
    """
    assert run(script) == "1\n"


@with_timers
def test_a_handler_raises_during_the_first_compile():
    script = """
    warnings.simplefilter("ignore", ResourceWarning)  # of files that importlib had open
    class Rung(Exception): pass
    def handler(*_): raise Rung
    signal.signal(signal.SIGALRM, handler)
    rung = 0
    for _ in range(12):
        signal.setitimer(signal.ITIMER_REAL, 0.03)
        try:
            f(x)
        except Rung:
            rung += 1
        except RuntimeError as error:  # what CPython 3.11 makes of it while a class is made
            assert isinstance(error.__cause__, Rung), error
            rung += 1
        signal.setitimer(signal.ITIMER_REAL, 0)
    all_same()
    assert not failed, failed[0]
    print(rung > 0, len(f.entries), len(f.breaks))
    """
    assert run(script) == "True 1 0\n"


def test_an_interrupted_import_has_kept_the_lock_of_all_imports():
    """As where a handler raises after importlib has taken it; other threads could import nothing."""
    script = """
    import _imp
    _imp.acquire_lock()
    all_same()
    assert not failed, failed[0]
    print(len(f.entries), _imp.lock_held())
    """
    assert run(script) == "1 False\n"


def test_a_call_comes_while_importlib_holds_the_lock_of_all_imports():
    script = """
    import _imp
    source = "def _get_module_lock():\\n    with_lock(all_same)"
    def with_lock(run):
        _imp.acquire_lock()
        try:
            run()
        finally:
            _imp.release_lock()
    exec(compile(source, "<frozen importlib._bootstrap>", "exec"))  # a handler that is called inside of importlib's
    _get_module_lock()
    all_same()
    assert not failed, failed[0]
    print(len(f.entries))
    """
    assert run(script) == "1\n"


def test_finalizers_call_compiled_functions():
    script = """
    import gc, weakref
    ended = []
    class Held:
        def __del__(self):
            ended.append("deleted")
            all_same()
    class Other: pass
    def backend(graph, inputs):
        held = Held()
        held.itself = held
        del held
        other = Other()
        weakref.finalize(other, lambda: (ended.append("finalized"), all_same()))
        del other
        gc.collect()
        return graph
    made = tcompile.compile(plain_f, backend=backend)
    assert same(made(x), expected[0])
    all_same()
    assert not failed, failed[0]
    print(*sorted(ended), len(f.entries))
    """
    assert run(script) == "deleted finalized 1\n"


def test_threads_call_for_the_first_time_at_once():
    script = """
    barrier = threading.Barrier(8)
    def work(number):
        own = tcompile.compile(lambda x: plain_f(x) + number)
        barrier.wait()
        for _ in range(4):
            all_same(*((f, g, steps)[number % 3 :]))
            if not same(own(x), expected[0] + number):
                failed.append("another value")
        if not own.entries:
            failed.append(f"{number} was not compiled")
    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads: thread.start()
    for thread in threads: thread.join()
    assert not failed, failed[0]
    print(len(f.entries), len(g.entries))
    """
    assert run(script) == "1 1\n"


WAIT = """
def in_child():
    child = os.fork()
    if child:
        if os.waitpid(child, 0)[1]:
            failed.append("a child has failed")
        return
    failed.clear()
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    faulthandler.register(signal.SIGALRM, chain=True)
    signal.alarm(20)  # a child that hangs ends and says where
    import gc
    for _ in range(3):
        all_same()
    if not gc.isenabled() and not inside:
        failed.append("the collector is off")
    for text in failed:
        print(text, file=sys.stderr, flush=True)
    os._exit(bool(failed))
"""


@with_forks
@with_timers
@pytest.mark.parametrize("where", ["handler", "thread"])
def test_forks_during_the_first_compile(where):
    script = f"""
    {textwrap.indent(WAIT, "    ").strip()}
    warnings.simplefilter("ignore", DeprecationWarning)  # a process with threads forks
    inside = {where == "handler"}
    if inside:
        ring(in_child, 0.01)
        all_same()
        silence()
    else:
        def forks():
            for _ in range(8):
                in_child()
                time.sleep(0.02)
        thread = threading.Thread(target=forks)
        thread.start()
        all_same()
        thread.join()
    all_same()
    assert not failed, failed[0]
    print(len(f.entries))
    """
    assert run(script) == "1\n"


@pytest.mark.parametrize("when", ["before", "after"])
def test_the_first_compile_is_made_at_exit(when):
    """A handler runs before or after tcompile's own, and nothing is said of what is thrown away then."""
    script = """
    import atexit, weakref
    class Held: pass
    held = Held()
    weakref.finalize(held, all_same)
    @atexit.register
    def last():
        all_same()
        print(failed, len(f.entries))
    """
    head = HEAD
    if when == "after":
        head = f"import atexit\nheld_back = []\natexit.register(lambda: held_back[0]())\n{HEAD}"
        script = script.replace("@atexit.register", "@held_back.append")
    command = [sys.executable, "-W", "error", "-c", head + textwrap.dedent(script)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stdout, done.stderr) == (0, "[] 1\n", "")


def test_a_generator_starts_as_the_interpreter_ends():
    script = """
    class Held:
        def __del__(self): self.all_same(self.steps)
    held = Held()
    held.all_same, held.steps = all_same, steps
    """
    assert run(script) == ""
