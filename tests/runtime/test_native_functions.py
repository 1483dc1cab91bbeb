"""A callable in machine code is a function: methods, pickling, switches, errors, threads."""

import asyncio
import contextvars
import gc
import inspect
import pickle
import subprocess
import sys
import threading
import types
import warnings
import weakref

import numpy as np
import pytest
from differential import Run, assert_same, assert_same_run

import tcompile
from tcompile.observe.recorder import Recorder
from tcompile.runtime import native
from tcompile.runtime.native import calls, layout

from .native_calls import Layer, W, X, answered, chain, chosen, native_hits, settled, several, with_default

pytestmark = pytest.mark.skipif(native.unavailable() is not None, reason="no calls in machine code on this machine")


@pytest.fixture(autouse=True)
def _fresh():
    tcompile.reset()


# -- being a function ----------------------------------------------------------------------------------------------
def test_methods():
    one, other = Layer(W), Layer(W * 2)
    for layer in (one, one, one, other):
        assert_same(layer.compiled(X), layer.plain(X))
    method = Layer.__dict__["compiled"]
    assert answered(method, one, X)[0] == 1
    bound = one.compiled
    assert type(bound) is types.MethodType and bound.__func__ is method and Layer.compiled is method
    before = native_hits(method)
    bound(X), one.compiled(x=X), Layer.compiled(other, X), list(map(one.compiled, [X, X]))
    assert native_hits(method) == before + 5
    assert not hasattr(method, "_tables")


@tcompile.compile
def picklable(x, k=2):
    """Twice."""
    return x * k


def test_signature_docs_and_pickling():
    compiled = settled(picklable, X)
    assert str(inspect.signature(compiled)) == "(x, k=2)" and compiled.__doc__ == "Twice."
    assert pickle.loads(pickle.dumps(compiled)) is compiled
    assert callable(compiled) and compiled.__wrapped__ is compiled.function
    compiled.note = 3
    assert compiled.note == 3


def test_collection():
    class Node:
        pass

    def make():
        node = Node()
        node.big = np.ones(8, "f4")

        def f(x):
            return x + node.big

        node.compiled = settled(f, X)  # a cycle
        return weakref.ref(node.compiled), weakref.ref(node), weakref.ref(f)

    seen = make()
    tcompile.reset()
    gc.collect()
    assert [ref() for ref in seen] == [None] * 3


@pytest.mark.parametrize("broken", [False, True])
def test_what_was_compiled_goes_with_its_function(broken):
    def make():
        namespace = {"tcompile": tcompile}
        extra = "tcompile.graph_break()" if broken else "pass"
        exec(f"@tcompile.compile\ndef f(x):\n y = x + 1\n {extra}\n return y * 2", namespace)
        f = namespace.pop("f")
        for _ in range(5):
            f(X)
        entries = f.entries
        assert len(entries) == 1 + broken and all(entry.plan.hits >= 2 for entry in entries)
        return [weakref.ref(f), weakref.ref(f.function), weakref.ref(f.function.__code__), weakref.ref(entries[0].plan)]

    seen = make()
    gc.collect()
    assert [ref() for ref in seen] == [None] * 4


def test_regions_of_a_function_with_a_break():
    said = []

    @tcompile.disable
    def side(n):
        said.append(n)
        return n

    def steps(x, n):
        for i in range(n):
            x = np.sqrt(x) + i
            side(i)
        if n > 3:
            return x, {"n": n}
        return x * 2

    compiled = tcompile.compile(steps)
    for number in (2, 2, 3, 3, 5, 5, 2, 3, 5):
        x = np.arange(1.0, 4.0)
        assert_same(compiled(x, number), steps(x, number))
    assert said == [i for n in (2, 2, 3, 3, 5, 5, 2, 3, 5) for _ in range(2) for i in range(n)]
    assert native_hits(compiled) > 10
    with tcompile.set_stance("force_eager"):
        before = native_hits(compiled)
        compiled(W, 2)
        assert native_hits(compiled) == before


def test_all_rewritten_code_of_a_function_enters_in_machine_code():
    def f(x, n):
        y = x + 1
        tcompile.graph_break()
        if n:
            y = y * 3
            tcompile.graph_break()
        return y * 2

    compiled = tcompile.compile(f)
    for _ in range(80):  # until the rewritten code has only the resume points in use
        compiled(X, 0)
    settled_rewritten = compiled.cache.rewritten
    assert settled_rewritten is not compiled.cache.built
    for n in (0, 1, 1, 1, 0):  # a resume point opens, and the whole host is back
        assert_same(compiled(X, n), f(X, n))
    before = native_hits(compiled)
    for _ in range(80):
        assert_same(compiled(X, 1), f(X, 1))
    assert native_hits(compiled) - before >= 80 * 3 - 6


def test_a_generator_outlives_its_function():
    def make():
        namespace = {"tcompile": tcompile}
        text = "@tcompile.compile\ndef f(x, n):\n for i in range(n):\n  x = x * 2 + i\n  yield x"
        exec(text, namespace)
        f = namespace.pop("f")
        for _ in range(4):
            list(f(X, 3))
        return f(X, 4)

    want, x = [], X
    for i in range(4):
        x = x * 2 + i
        want.append(x)
    running = make()
    got = [next(running)]
    tcompile.reset()
    gc.collect()
    got += list(running)
    assert_same(got, want)


def test_references_are_given_back():
    layer, text = Layer(W), "double"
    functions = {
        "method": (settled(Layer.plain, layer, X), (layer, X)),
        "results": (settled(several, X, W), (X, W)),
        "defaults": (settled(with_default, X), (X,)),
        "constants": (settled(chosen, X, text, True, None, (2, 3.0)), (X, text, True, None, (2, 3.0))),
        "scalar": (settled(lambda x: x.sum(), X), (X,)),
        "miss": (settled(chain, X), ("no array",)),
        "plain": (settled(lambda x, n: n, X, 4), (X, 4)),
        "body": (settled(lambda x: np.sort(x), X), (X,)),
    }
    things = (X, W, layer, layer.parts, layer.w, text, X.dtype, np.ndarray, several, Layer, None, chain, 4)
    for compiled, args in functions.values():
        for _ in range(3):
            Run(compiled, args)
        for count in (10, 100):
            gc.collect()
            before = [sys.getrefcount(thing) for thing in things]
            for _ in range(count):
                try:
                    compiled(*args)
                except TypeError:
                    pass
            gc.collect()
            after = [sys.getrefcount(thing) for thing in things]
        assert all(abs(b - a) < 10 for a, b in zip(before, after, strict=True)), (compiled, before, after)


def test_memory_stays_flat():
    compiled = settled(several, X, W)
    keywords = settled(with_default, X)

    def run(count):
        for _ in range(count):
            compiled(X, W)
            keywords(X, s=2)

    run(100)
    gc.collect()
    before = sys.getallocatedblocks()
    run(5000)
    gc.collect()
    assert sys.getallocatedblocks() - before < 200


# -- switches ------------------------------------------------------------------------------------------------------
def test_stances_are_followed():
    compiled = settled(chain, X)
    with tcompile.set_stance("force_eager"):
        assert answered(compiled, X)[0] == 0
        with tcompile.set_stance("fail_on_recompile"), pytest.raises(tcompile.errors.RecompileError):
            compiled(X.astype("f8"))
    assert answered(compiled, X)[0] == 1
    tcompile.set_stance("force_eager")
    try:
        assert answered(compiled, X)[0] == 0
    finally:
        tcompile.set_stance("default")
    assert answered(compiled, X)[0] == 1


def test_a_stance_is_its_threads_and_tasks_own():
    compiled = settled(chain, X)
    seen = {}

    def other():
        seen["thread"] = answered(compiled, X)[0]

    async def later(event):
        await event.wait()
        return answered(compiled, X)[0]

    async def main():
        event = asyncio.Event()
        with tcompile.set_stance("force_eager"):
            inside = asyncio.ensure_future(later(event))
            await asyncio.sleep(0)
        outside = asyncio.ensure_future(later(event))
        event.set()
        return await inside, await outside

    with tcompile.set_stance("force_eager"):
        thread = threading.Thread(target=other)
        thread.start()
        thread.join()
    assert seen == {"thread": 1}
    assert asyncio.run(main()) == (0, 1)
    with tcompile.set_stance("force_eager"):
        context = contextvars.copy_context()
    assert context.run(answered, compiled, X)[0] == 0 and answered(compiled, X)[0] == 1


def test_the_setting():
    compiled = settled(chain, X)
    with tcompile.config.patch(native_calls=False):
        assert answered(compiled, X)[0] == 0
        other = tcompile.compile(lambda x: x + 3)
        for _ in range(3):
            other(X)
        assert native_hits(other) == 0
    settled(other, X)
    assert answered(compiled, X)[0] == 1
    del tcompile.config.native_calls
    assert answered(compiled, X)[0] == 1


def test_listeners_hear_of_every_call():
    compiled = settled(chain, X)
    other = tcompile.compile(lambda x: x * 3)
    with Recorder() as recorder:
        assert answered(compiled, X)[0] == 0
        for _ in range(3):
            other(X)
        assert native_hits(other) == 0
    assert {event.kind for event in recorder.events} >= {"call_timed", "compile_finished"}
    assert answered(compiled, X)[0] == 1
    settled(other, X)


def test_reset():
    compiled = settled(chain, X)
    tcompile.reset()
    assert compiled.entries == ()
    assert_same(compiled(X), chain(X))
    assert len(compiled.entries) == 1
    settled(compiled, X)


def test_objects_that_look_different_leave_calls_to_python(monkeypatch):
    monkeypatch.setattr(layout, "_floats", lambda: False)
    calls.machine.cache_clear()
    try:
        assert "floats" in native.unavailable()
        compiled = tcompile.compile(chain)
        for _ in range(4):
            assert_same(compiled(X), chain(X))
        assert native_hits(compiled) == 0
    finally:
        calls.machine.cache_clear()


def test_nothing_is_loaded_before_something_is_compiled():
    late = (
        "tcompile.capture.entry",
        "tcompile.capture.values",
        "tcompile.backends.llvm",
        "tcompile.bytecode.rewritten",
        "llvmlite",
    )
    script = f"import sys, tcompile; print([m for m in sys.modules if m.startswith({late})])"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert eval(done.stdout) == []


# -- errors --------------------------------------------------------------------------------------------------------
def divides(x, y):
    return x / y


def test_floating_point_errors_are_numpys():
    compiled = settled(divides, X, W)
    zeros = np.zeros(8, "f4")
    with pytest.warns(RuntimeWarning, match="divide by zero") as caught:
        assert_same(compiled(X, zeros), np.divide(X, zeros, where=True))
    assert {w.filename for w in caught if "divide" in str(w.message)} >= {__file__}
    with np.errstate(divide="raise"), pytest.raises(FloatingPointError):
        compiled(X, zeros)
    with np.errstate(divide="ignore"), warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in range(3):
            hits, result = answered(compiled, X, zeros)
            assert hits == 1 and np.isinf(result).all()
    with np.errstate(under="raise"):
        assert answered(compiled, X, W)[0] == 0
    assert answered(compiled, X, W)[0] == 1


def test_an_entry_that_is_always_replayed_is_left_to_python():
    compiled = tcompile.compile(divides)
    zeros = np.zeros(8, "f4")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for _ in range(40):
            assert_same_run(Run(compiled, (X, zeros)), Run(divides, (X, zeros)))
    assert calls.attached(compiled, calls_slot()) is False


def calls_slot():
    from tcompile.runtime import dispatch

    return dispatch._TABLES


def test_an_interrupt_is_raised(monkeypatch):
    from tcompile.backends import helpers

    compiled = settled(divides, X, W)
    monkeypatch.setattr(helpers.np, "geterr", lambda: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        helpers.floating_point_report(1)

    def interrupt():
        raise KeyboardInterrupt

    monkeypatch.setattr(helpers.np, "geterr", interrupt)
    with pytest.raises(KeyboardInterrupt):
        compiled(X, np.zeros(8, "f4"))
    monkeypatch.undo()
    assert answered(compiled, X, W)[0] == 1


def test_errors_of_the_function_are_its_own():
    def f(x, n):
        if n:
            raise KeyError(n)
        return x

    compiled = tcompile.compile(f)
    for _ in range(4):
        assert_same_run(Run(compiled, (X, 3)), Run(f, (X, 3)))


# -- at the same time ----------------------------------------------------------------------------------------------
def test_calls_within_calls():
    calls_made = []

    @tcompile.compile
    def inner(x):
        return x * 2

    @tcompile.disable
    def again(x, n):
        calls_made.append(n)
        return outer(x, n - 1) if n else inner(x)

    @tcompile.compile
    def outer(x, n):
        return again(x + 1, n) + 1

    for _ in range(4):
        assert_same(outer(X, 5), (X + 6) * 2 + 6)
    assert len(calls_made) == 24


def test_entries_that_go_while_a_call_runs():
    @tcompile.disable
    def forget(x):
        tcompile.reset()
        gc.collect()
        return x

    def f(x):
        return x * 2 + 1

    compiled = settled(f, X)

    class Forgetful:
        @property
        def shape(self):
            return forget(X).shape

    for _ in range(4):
        assert_same_run(Run(compiled, (Forgetful(),)), Run(f, (Forgetful(),)))
        assert_same(compiled(X), f(X))


def test_threads_with_arrays_of_several_kinds():
    compiled = tcompile.compile(reads_and_scales)
    large = np.arange(300_000.0)
    kinds = [np.arange(n, dtype=dtype) for n in (3, 70) for dtype in ("f4", "f8", "i8")] + [large]
    wanted = [reads_and_scales(x) for x in kinds]
    wrong = []

    def work():
        for _ in range(60):
            for x, want in zip(kinds, wanted, strict=True):
                if not np.array_equal(compiled(x), want):
                    wrong.append(x.dtype)

    def disturb():
        for i in range(30):
            globals()["_UNUSED"] = i
            compiled.note = i
            if i % 10 == 0:
                tcompile.reset()

    threads = [threading.Thread(target=work) for _ in range(6)] + [threading.Thread(target=disturb)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def reads_and_scales(x):
    return x * 2 + x.shape[0]


def test_argument_that_is_replaced_while_a_kernel_runs():
    holder = types.SimpleNamespace(w=np.ones(400_000))

    @tcompile.compile
    def f(x, holder):
        return np.sin(x) + np.cos(holder.w)

    x = np.zeros(400_000)
    want = f(x, holder)
    stop = threading.Event()

    def replace():
        while not stop.is_set():
            holder.w = np.ones(400_000)

    thread = threading.Thread(target=replace)
    thread.start()
    try:
        for _ in range(40):
            assert np.array_equal(f(x, holder), want)
    finally:
        stop.set()
        thread.join()


_UNUSED = 0
