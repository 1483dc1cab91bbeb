"""Calls in machine code: what they answer, what they leave to Python, and that nobody can tell which it was."""

import types

import numpy as np
import pytest
from differential import Run, assert_same, assert_same_run

import tcompile
from tcompile.runtime import native

from .native_calls import Layer, W, X, answered, chain, chosen, native_hits, settled, several, with_default

pytestmark = pytest.mark.skipif(native.unavailable() is not None, reason="no calls in machine code on this machine")


@pytest.fixture(autouse=True)
def _fresh():
    tcompile.reset()


# -- what is answered ----------------------------------------------------------------------------------------------
def closure(k, array):
    def inner(x):
        return x * k + array

    return inner


def reads_global(x):
    return x + W


def sizes(x, n):
    return x.shape[0] * 2 + n, x[: x.shape[0] - 1], x.reshape(-1, 1)


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


def both(x, y):
    x += y * 0.5
    y[...] = x - 1
    return x[:1]


LIE = {  # how two arrays lie in one block of memory, and whether the stretches have something in common
    "apart": (lambda b: (b[:8], b[8:16]), False), "apart backwards": (lambda b: (b[7::-1], b[8:16]), False),
    "interleaved": (lambda b: (b[:16:2], b[1:16:2]), True),
    "interleaved backwards": (lambda b: (b[14::-2], b[1:16:2]), True),
    "over each other": (lambda b: (b[:8], b[4:12]), True), "turned": (lambda b: (b[:8], b[7::-1]), True),
    "after": (lambda b: (b[8:16], b[:8]), False), "touching": (lambda b: (b[1:9], b[9:17]), False),
    "columns": (lambda b: (b[:16].reshape(8, 2)[:, 0], b[:16].reshape(8, 2)[:, 1]), True),
}  # fmt: skip


@pytest.mark.parametrize("name", LIE)
def test_arrays_in_one_block_of_memory(name):
    lie, near = LIE[name]
    compiled = tcompile.compile(both)
    for _ in range(3):
        blocks = np.arange(20.0), np.arange(20.0)
        assert_same(compiled(*lie(blocks[0])), both(*lie(blocks[1])))
        np.testing.assert_array_equal(*blocks)
    assert near or native_hits(compiled) >= 1


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
