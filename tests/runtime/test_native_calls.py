"""Calls in machine code: what they answer, what they leave to Python, and that nobody can tell which it was."""

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
from tcompile.runtime.dispatch import CompiledFunction
from tcompile.runtime.native import calls, layout

X = np.linspace(-2, 2, 8, dtype="f4")
W = np.linspace(1, 3, 8, dtype="f4")

pytestmark = pytest.mark.skipif(
    native.unavailable() is not None, reason="no calls in machine code on this machine"
)


@pytest.fixture(autouse=True)
def _fresh():
    tcompile.reset()


def native_hits(compiled):
    """How many calls machine code has answered."""
    return sum(entry.plan.hits for entry in compiled.entries if entry.plan is not None)


def answered(compiled, *args, **kwargs):
    """Whether machine code answers this call, and the result."""
    before = native_hits(compiled)
    result = compiled(*args, **kwargs)
    return native_hits(compiled) - before, result


def settled(function, *args, **kwargs):
    """The function compiled and called so often that machine code answers such calls."""
    compiled = function if isinstance(function, CompiledFunction) else tcompile.compile(function)
    for _ in range(3):
        compiled(*args, **kwargs)
    hits, _ = answered(compiled, *args, **kwargs)
    assert hits == 1
    return compiled


def chain(x):
    return np.maximum(x * 2 + 1, 0) - x


# -- what is answered ----------------------------------------------------------------------------------------------
class Layer:
    def __init__(self, w):
        self.w, self.scale, self.parts = w, 2.0, {"bias": w * 3, "list": [w, 4]}

    def plain(self, x):
        return x * self.w + self.parts["bias"] * self.scale

    compiled = tcompile.compile(plain)


def closure(k, array):
    def inner(x):
        return x * k + array

    return inner


def reads_global(x):
    return x + W


def with_default(x, k=2.0, /, s=1, *, y=None, z=3):
    return x * k + s + z if y is None else y


def several(x, y):
    total = x + y
    return total, [x * y, (total, None, 3)], {"a": total, "b": x}


def sizes(x, n):
    return x.shape[0] * 2 + n, x[: x.shape[0] - 1], x.reshape(-1, 1)


def chosen(x, mode, flag, nothing, pair):
    if mode == "double" and flag and nothing is None:
        return x * pair[0] + pair[1]
    return x - 1


def nested(data):
    return data["a"] + data["b"][0] * data["b"][1]


ANSWERED = {
    "chain": (chain, (X,)),
    "method": (Layer(W).plain, (X,)),
    "closure": (closure(2.5, W), (X,)),
    "global": (reads_global, (X,)),
    "defaults": (with_default, (X,)),
    "several results": (several, (X, W)),
    "sizes": (sizes, (np.arange(12.0), 5)),
    "constants": (chosen, (X, "double", True, None, (2, 3.0))),
    "containers": (nested, ({"a": X, "b": [W, np.float32(2)]},)),
    "full reduction": (lambda x: x.sum(), (X,)),
    "reductions": (lambda x: (x.max(axis=0), x.mean(axis=1), x.std()), (np.arange(12.0).reshape(3, 4),)),
    "transposed": (lambda x: x * 2, (np.arange(12.0).reshape(3, 4).T,)),
    "transposed in three axes": (lambda x: x * 2, (np.arange(24.0).reshape(2, 3, 4).transpose(1, 0, 2),)),
    "strided": (lambda x: x * 2, (np.arange(12.0)[::2],)),
    "reversed": (lambda x: x * 2, (np.arange(12.0)[::-1],)),
    "no axes": (lambda x: x * 2, (np.array(3.0),)),
    "scalar": (lambda x, s: x * s, (X, np.float32(3))),
    "scalars only": (lambda s, t: s * t, (np.float64(3), np.float64(-0.5))),
    "scalar that comes back": (lambda s, t: (+s, t * 1, np.positive(t)), (np.float32(3), np.float64(2))),
    "array that comes back": (lambda x: (+x, x.reshape(x.shape)), (np.array(3.0),)),
    "complex scalar": (lambda x, s: x * s, (X.astype("c16"), np.complex128(3 - 1j))),
    "empty": (lambda x: x * 2, (np.zeros((0, 3)),)),
    "integers": (lambda x, n: x * n + n, (np.arange(8), -7)),
    "argument itself": (lambda x: (x, x * 2), (X,)),
    "library call": (lambda x: np.linalg.norm(x) + np.sort(x), (X,)),
    "large": (lambda x: x * 2 + 1, (np.arange(200_000.0),)),
    "large and transposed": (lambda x: x * 2 + 1, (np.arange(250_000.0).reshape(500, 500).T,)),
    "no array work": (lambda x, n: n, (X, 4)),
}


@pytest.mark.parametrize("dynamic", [None, True])
@pytest.mark.parametrize("name", ANSWERED)
def test_answered_in_machine_code(name, dynamic):
    function, args = ANSWERED[name]
    compiled = tcompile.compile(function, dynamic=dynamic)
    inner = compiled.__func__ if isinstance(compiled, types.MethodType) else compiled
    for _ in range(4):
        got, want = Run(compiled, args), Run(function, args)
        assert_same_run(got, want)
    assert native_hits(inner) >= 2 and not any(entry.replays for entry in inner.entries)


def test_hits_are_counted_wherever_a_call_is_answered():
    compiled = settled(chain, X)
    (entry,) = compiled.entries
    assert entry.hits == entry.calls + entry.plan.hits == 3


# -- what is not the same ------------------------------------------------------------------------------------------
class Sub(np.ndarray):
    pass


OTHER = {
    "dtype": (X, X.astype("f8")),
    "size": (X, np.ones(9, "f4")),
    "axes": (X, np.ones((2, 4), "f4")),
    "memory order": (np.ones((3, 4)), np.asfortranarray(np.arange(12.0).reshape(3, 4))),
    "strides": (np.arange(8.0), np.arange(16.0)[::2]),
    "class": (X, X.view(Sub)),
    "byte order": (X, X.astype(">f4")),
    "list": (X, [1.0, 2.0]),
    "scalar": (X, np.float32(2)),
    "number": (X, 2.5),
    "scalar of another class": (np.float32(2), np.float64(2)),
    "int": (3, 4),
    "int and bool": (1, True),
    "large int": (3, 1 << 70),
    "int and float": (3, 3.0),
    "zeros": (0.0, -0.0),
    "float and NaN": (1.5, float("nan")),
    "class of a float": (1.5, np.float64(1.5)),
    "str": ("a", "b"),
    "str of a class": ("a", type("Str", (str,), {})("a")),
    "None": (None, 3),
    "tuple": ((1, 2), (1, 2, 3)),
    "tuple and list": ((1, 2), [1, 2]),
    "items": ((1, 2), (1, 3)),
    "keys": ({"a": 1}, {"b": 1}),
    "order of keys": ({"a": 1, "b": 2}, {"b": 2, "a": 1}),
    "function": (np.sin, np.cos),
    "Python function": (lambda v: v + 1, lambda v: v + 2),
}


def uses(x):
    if isinstance(x, np.ndarray | np.generic | int | float) and not isinstance(x, bool):
        return W[:2] * 2 + np.sum(x), x
    if callable(x):
        return x(W)
    if isinstance(x, tuple | list):
        return W + x[0] + x[-1]
    if isinstance(x, dict):
        return W + next(iter(x.values()))
    return W, str(x), x


@pytest.mark.parametrize("dynamic", [None, False, True])
@pytest.mark.parametrize("name", OTHER)
def test_what_differs_is_told_apart(name, dynamic):
    one, other = OTHER[name]
    compiled = tcompile.compile(uses, dynamic=dynamic)
    for value in (one, one, one, other, one, other, other, other, one):
        assert_same_run(Run(compiled, (value,)), Run(uses, (value,)))


def test_entries_are_tried_the_last_hit_first():
    compiled = tcompile.compile(chain, dynamic=False)
    kinds = [np.ones(n) for n in range(1, 5)]
    for _ in range(3):
        for x in kinds:
            compiled(x)
    assert len(compiled.entries) == 4
    for x in (*kinds, *kinds[::-1]):
        hits, result = answered(compiled, x)
        assert hits == 1
        assert_same(result, chain(x))


def test_a_changed_global_cell_attribute_or_item_is_seen():
    global W
    before = W
    cell = closure(2.0, W)
    layer = Layer(W)
    compiled = [tcompile.compile(f) for f in (reads_global, cell, layer.plain)]
    try:
        for value in (W, W, W, W + 1, W + 2, W.astype("f8"), W):
            W = value
            cell.__closure__[0].cell_contents = layer.w = value
            layer.parts["bias"] = value * 2
            for made, plain in zip(compiled, (reads_global, cell, layer.plain), strict=True):
                assert_same(made(X), plain(X))
        W = before
        del cell.__closure__[0].cell_contents, layer.parts["bias"]
        for made, plain in zip(compiled[1:], (cell, layer.plain), strict=True):
            assert_same_run(Run(made, (X,)), Run(plain, (X,)))
    finally:
        W = before


def views(rng):
    """Views of a few arrays: every other element, reversed, transposed, broadcast, with axes of no and one element."""
    for shape in ((6,), (4, 5), (1, 4), (3, 1, 4), (2, 3, 4)):
        base = rng.standard_normal((*(2 * n for n in shape), 2))
        for _ in range(12):
            view = base[..., 0] if rng.integers(2) else np.ascontiguousarray(base[..., 0])
            keys = [slice(None), slice(None, None, 2), slice(None, None, -1), slice(0, 1), slice(1, 0), slice(1, None)]
            view = view[tuple(keys[rng.integers(len(keys))] for _ in shape)]
            view = view.transpose(rng.permutation(view.ndim))
            if rng.integers(3) == 0:
                view = np.broadcast_to(view[:1], (3, *view.shape[1:])) if view.shape[0] else view
            yield view


@pytest.mark.parametrize("dynamic", [None, True])
def test_memory_orders_are_told_apart_as_python_does(dynamic):
    def f(x):
        return x * 2 + 1

    compiled = tcompile.compile(f, dynamic=dynamic)
    seen = list(views(np.random.default_rng(7)))
    with tcompile.config.patch(recompile_limit=400):
        for view in (*seen, *seen):
            assert_same_run(Run(compiled, (view,)), Run(f, (view,)))
    assert len(compiled.entries) > 10
    for view in seen:
        before = {entry: entry.plan.hits for entry in compiled.entries}
        compiled(view)
        (answering,) = [entry for entry in compiled.entries if entry.plan.hits > before[entry]]
        assert answering.captured.first_failure((view,)) is None


def fills(x, y):
    x[1:-1] = y[1:-1] * 2 + x[:-2]
    y += 1
    return y


def overwrites(x, y):
    np.divide(y, x, out=x)


def swaps(x, y):
    x[:], y[:] = y * 2, x + 1


@pytest.mark.parametrize("function", [fills, overwrites, swaps])
def test_writes_to_arguments(function):
    def make(value=2.0):
        return np.arange(1.0, 9.0), np.full(8, value)

    compiled = tcompile.compile(function)
    for _ in range(4):
        assert_same_run(Run(compiled, make()), Run(function, make()), exact=True)
    assert native_hits(compiled) >= 2
    x, y = make()
    y.flags.writeable = False
    one, other = make()
    other.flags.writeable = False
    assert_same_run(Run(compiled, (x, y)), Run(function, (one, other)))
    both = [np.arange(1.0, 9.0) for _ in range(2)]
    assert_same_run(Run(compiled, (both[0], both[0])), Run(function, (both[1], both[1])), exact=True)
    zeros = [(np.zeros(8), np.full(8, 3.0)) for _ in range(2)]
    assert_same_run(Run(compiled, zeros[0]), Run(function, zeros[1]), exact=True)
    strict = [(np.zeros(8), np.full(8, 3.0)) for _ in range(2)]
    with np.errstate(all="raise"):
        assert_same_run(Run(compiled, strict[0]), Run(function, strict[1]), exact=True)
    before = native_hits(compiled)
    compiled(*make())
    assert native_hits(compiled) == before + 1


# -- binding -------------------------------------------------------------------------------------------------------
CALLS = [
    ((X,), {}), ((X, 3.0), {}), ((X, 3.0, 4), {}), ((X,), {"s": 5}), ((X,), {"z": 1, "s": 2}), ((X, 2.0), {"y": X}),
    ((), {}), ((X, 1, 2, 3), {}), ((), {"x": X}), ((X,), {"k": 1}), ((X,), {"nobody": 1}), ((X, 1, 2), {"s": 3}),
]  # fmt: skip


@pytest.mark.parametrize("number", range(len(CALLS)))
def test_arguments_are_bound_as_python_binds_them(number):
    args, kwargs = CALLS[number]
    compiled = tcompile.compile(with_default)
    for _ in range(4):
        got, want = (Run(lambda f=f: f(*args, **kwargs), ()) for f in (compiled, with_default))
        assert_same_run(got, want)
    assert want.error is not None or native_hits(compiled) >= 2


def test_keywords_of_any_name():
    def f(self, fn, args, kwargs, called, nargs=1):
        return self + fn * args - kwargs + called * nargs

    compiled = settled(f, self=X, fn=X, args=X, kwargs=X, called=X)
    assert_same(compiled(kwargs=X, called=W, self=W, args=X, fn=W), f(W, W, X, X, W))
    name = "".join(["n", "args"])  # not the string that the code has
    assert_same(compiled(X, X, X, X, X, **{name: 2}), f(X, X, X, X, X, 2))


def test_defaults_are_those_that_the_function_has_now():
    def f(x, k=2, *, z=3):
        return x * k + z

    compiled = settled(f, X)
    f.__defaults__ = (5,)
    for _ in range(4):
        assert_same(compiled(X), X * 5 + 3)
    f.__kwdefaults__["z"] = 7
    for _ in range(4):
        assert_same(compiled(X), X * 5 + 7)
    f.__defaults__ = f.__kwdefaults__ = None
    with pytest.raises(TypeError, match="missing 1 required positional argument: 'k'"):
        compiled(X)


def test_many_arguments():
    names = ", ".join(f"a{i}" for i in range(60))
    namespace = {}
    exec(f"def f({names}): return {names.replace(',', ' +')}", namespace)
    compiled = settled(namespace["f"], *[X] * 60)
    assert_same(compiled(*[W] * 60), namespace["f"](*[W] * 60))
    for count in (59, 61, 2000):
        with pytest.raises(TypeError, match="positional argument"):
            compiled(*[X] * count)


def test_new_code_is_seen():
    def f(x):
        return x + 1

    def g(x):
        return x + 2

    compiled = settled(f, X)
    f.__code__ = g.__code__
    for _ in range(4):
        assert_same(compiled(X), X + 2)


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


def test_every_host_of_a_function_enters_in_machine_code():
    def f(x, n):
        y = x + 1
        tcompile.graph_break()
        if n:
            y = y * 3
            tcompile.graph_break()
        return y * 2

    compiled = tcompile.compile(f)
    for _ in range(80):  # until the host has only the gates in use
        compiled(X, 0)
    settled_host = compiled.cache.host
    assert settled_host is not compiled.cache.built
    for n in (0, 1, 1, 1, 0):  # a gate opens, and the whole host is back
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
    script = "import sys, tcompile; print([m for m in sys.modules if m.startswith(('tcompile.capture.p', 'llvmlite'))])"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert eval(done.stdout) == ["tcompile.capture.policy"]


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
