"""Transforms keep values, kinds of memory and floating-point conditions, and do what their names say."""

from __future__ import annotations

import contextlib
import itertools
import warnings

import numpy as np
import pytest

import tcompile
from tcompile import transforms
from tcompile.frontends.base import Builder, Traced
from tcompile.frontends.numpy import NumPyFrontend
from tcompile.graph import Graph, TensorType
from tcompile.graph.ops import apply
from tcompile.graph.ops.control import FORI_LOOP, GET
from tcompile.graph.ops.view import INDEX
from tcompile.graph.sizes import UnprovableSizeError
from tcompile.graph.verify import verify
from tcompile.observe import bus
from tcompile.observe.events import PassFinished

FRONTEND = NumPyFrontend()


@pytest.mark.parametrize("backend", ["auto", "aot_eager"])
def test_what_a_pass_asks_about_sizes_is_guarded(backend, monkeypatch):
    asked = []

    def ask(graph):
        asked.extend(node.tensor.shape[0] == 1 for node in graph.nodes if node.op is INDEX)
        return graph

    def shifted(x):
        return x[1:] * 2

    monkeypatch.setattr(transforms, "PIPELINE", (("ask", transforms.asks_sizes(ask)), *transforms.PIPELINE))
    f = tcompile.compile(shifted, dynamic=True, backend=backend)
    for size, count in ((5, 1), (9, 1), (2, 2), (7, 2), (2, 2)):
        x = np.arange(size, dtype="f8")
        np.testing.assert_array_equal(f(x), shifted(x))
        assert len(f.entries) == count
    assert asked == [False, True]
    entries = sorted(f.entries, key=lambda entry: entry.index)
    assert [guard.text for entry in entries for guard in entry.captured.guards if guard.kind == "question"] == [
        "not (x.shape[0] - 2 == 0)", "x.shape[0] - 2 == 0",
    ]  # fmt: skip
    assert all(entry.graph.env.closed for entry in f.entries)


def test_after_the_entry_is_written_nothing_can_be_asked():
    f = tcompile.compile(lambda x: x[1:] * 2, dynamic=True)
    f(np.ones(5))
    (graph,) = f.graphs
    size = next(node.tensor.shape[0] for node in graph.nodes if node.op is INDEX)
    for block in (contextlib.nullcontext(), graph.env.asking()):
        with block, pytest.raises(UnprovableSizeError):
            bool(size == 1)


def build(function, *args):
    b = Builder()
    values = [Traced(b.graph.input(f"x{i}", FRONTEND.type_of(a))) for i, a in enumerate(args)]

    def call(f, *a, **k):
        return FRONTEND.call(b, f, a, k)

    results = function(b, call, *values)
    b.graph.outputs = [r.node for r in (results if isinstance(results, tuple) else (results,))]
    verify(b.graph)
    return b.graph


def outcome(graph, args):
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        values = graph(*args)
    return values, {str(w.message).split(" encountered")[0] for w in seen}


def ops(graph):
    return [n.op.name for n in graph.nodes]


def check(graph, *args):
    before, signals = outcome(graph, args)
    for run in (transforms.run, *(p for _, p in transforms.PIPELINE)):
        after = run(graph, verify) if run is transforms.run else run(graph)
        verify(after)
        values, others = outcome(after, args)
        assert signals == others
        for a, b in zip(before, values, strict=True):
            a, b = np.asarray(a), np.asarray(b)
            assert (a.dtype, a.shape) == (b.dtype, b.shape)
            assert a.size == 0 or strides_that_matter(a) == strides_that_matter(b)
            np.testing.assert_array_equal(a, b)
            np.testing.assert_array_equal(
                np.signbit(a) & (a == a), np.signbit(b) & (b == b)
            ) if a.dtype.kind == "f" else None
            for x in args:
                assert np.shares_memory(a, x) == np.shares_memory(b, x)
        pairs = itertools.combinations(range(len(values)), 2)
        for i, j in pairs:
            if graph.outputs[i] is not graph.outputs[j]:
                assert values[i] is not values[j] or not isinstance(values[i], np.ndarray)
            assert np.shares_memory(values[i], values[j]) == np.shares_memory(before[i], before[j])
    return transforms.run(graph, verify)


def strides_that_matter(array):
    return [s for s, n in zip(array.strides, array.shape, strict=True) if n != 1]


RNG = np.random.default_rng(0)
LAYOUTS = [
    lambda a: a, lambda a: np.asfortranarray(a), lambda a: a.transpose(1, 0, 2), lambda a: a[:, ::-1], lambda a: a[:1],
    lambda a: np.broadcast_to(a[:1], a.shape), lambda a: a[:, :, ::2],
]  # fmt: skip


@pytest.mark.parametrize("name", ["mean", "var", "std"])
@pytest.mark.parametrize("dtype", ["f2", "f4", "f8", "i4", "?"])
@pytest.mark.parametrize("layout", range(len(LAYOUTS)))
def test_statistics(name, dtype, layout):
    x = LAYOUTS[layout]((RNG.random((5, 6, 7)) * 100).astype(dtype))
    function = getattr(np, name)
    for axis, keepdims in itertools.product([None, 0, 1, -1, (0, 2)], [False, True]):
        ddofs = [{}] if name == "mean" else [{}, {"ddof": 1}, {"ddof": 0.5}]
        for more in ddofs:
            try:
                graph = build(lambda b, call, v: call(function, v, axis=axis, keepdims=keepdims, **more), x)
            except Exception as error:
                assert getattr(error, "reason", None) in ("operation-raises", "memory-order")
                continue
            after = check(graph, x)
            if dtype in ("f4", "f8") and layout != 5:
                assert name not in ops(after)
                with np.errstate(all="ignore"):
                    plain = function(x, axis=axis, keepdims=keepdims, **more)
                np.testing.assert_array_equal(after(x)[0], plain)


def test_mean_of_special_values():
    for values in ([np.inf, -np.inf], [np.nan, 1], [3e38, 3e38], [1e-45, 0.0], [-0.0, -0.0]):
        x = np.array(values, "f4")
        check(build(lambda b, call, v: (call(np.mean, v), call(np.std, v)), x), x)


@pytest.mark.parametrize("dtype", ["f4", "f8", "i4", "u1"])
def test_clip(dtype):
    x = np.resize(np.array([0, -0.0, 1, 5, 3, 100]), 24).astype(dtype)
    if dtype[0] == "f":
        x[:4] = [np.nan, -0.0, np.inf, -np.inf]
        x[4:10] *= -1
    bounds = [0, 1, 5] if dtype[0] != "f" else [0.0, -0.0, 1.0, -3.0, np.inf]
    for low, high in itertools.product(bounds, bounds):
        after = check(build(lambda b, call, v: call(np.clip, v, low, high), x), x)
        assert "clip" not in ops(after)
    check(build(lambda b, call, v: call(np.clip, v, v, 5), x), x)


def test_constants_become_numbers():
    x = np.ones(4, "f4")
    graph = build(lambda b, call, v: FRONTEND.binary(b, "*", v, np.float32(2)), x)
    assert ops(check(graph, x)) == ["multiply"]
    graph = build(lambda b, call, v: call(np.add, call(np.full, (), 2.0), call(np.full, (), 3.0)), x)
    assert ops(check(graph, x)) == ["full"]
    graph = build(lambda b, call, v: call(np.divide, call(np.full, (), 2.0), call(np.full, (), 0.0)), x)
    assert "divide" in ops(check(graph, x))


def test_casts():
    x = np.arange(4, dtype="i1")
    graph = build(
        lambda b, call, v: FRONTEND.method(b, FRONTEND.method(b, v, "astype", ["i8"], {}), "astype", ["f4"], {}),
        x,
    )
    assert ops(check(graph, x)) == ["astype"]
    y = np.array([2**62 + 1, -5])
    graph = build(
        lambda b, call, v: FRONTEND.method(b, FRONTEND.method(b, v, "astype", ["f8"], {}), "astype", ["f4"], {}),
        y,
    )
    assert ops(check(graph, y)) == ["astype", "astype"]


def test_views():
    x = np.ones((3, 4), "f4")
    graph = build(lambda b, call, v: FRONTEND.binary(b, "+", call(np.transpose, call(np.transpose, v)), 1), x)
    assert ops(check(graph, x)) == ["add"]
    graph = build(lambda b, call, v: call(np.transpose, call(np.transpose, v)), x)
    assert ops(check(graph, x)) == ["permute_dims"]
    graph = build(lambda b, call, v: call(np.reshape, call(np.reshape, v, (12,)), (2, 6)), x)
    assert ops(check(graph, x)) == ["reshape"]
    f = np.asfortranarray(x)
    graph = build(lambda b, call, v: call(np.reshape, call(np.reshape, v, (12,)), (2, 6)), f)
    assert ops(check(graph, f)) == ["reshape", "reshape"]
    graph = build(lambda b, call, v: (FRONTEND.getitem(b, v, ...), v, FRONTEND.getitem(b, v, ...)), x)
    check(graph, x)


def test_cse():
    x = np.ones((3, 4), "f4")
    graph = build(lambda b, call, v: call(np.add, call(np.sin, v), call(np.sin, v)), x)
    assert ops(check(graph, x)) == ["sin", "add"]
    graph = build(lambda b, call, v: (call(np.sin, v), call(np.sin, v)), x)
    assert ops(check(graph, x)) == ["sin", "sin"]
    graph = build(
        lambda b, call, v: (
            call(np.transpose, call(np.sin, v)),
            call(np.sin, v),
            call(np.add, call(np.sin, v), 1),
        ),
        x,
    )
    assert ops(check(graph, x)).count("sin") == 2
    graph = build(
        lambda b, call, v: (call(np.multiply, v, 0.0), call(np.multiply, v, -0.0), call(np.multiply, v, 1)), x
    )
    assert ops(check(graph, x)).count("multiply") == 3
    graph = build(lambda b, call, v: (call(np.transpose, v), call(np.transpose, v)), x)
    assert ops(check(graph, x)) == ["permute_dims"] * 2


def two_targets(n):
    a, b = np.zeros(n, np.int64), np.zeros(n, np.int64)
    for i in range(n):
        a[i] = i
    for i in range(n):
        b[i] = a[i] * a[i - 1]
    return a.sum() + b.sum()


def test_what_loops_over_elements_write_to_is_not_merged():
    compiled = tcompile.compile(two_targets)
    assert compiled(30) == two_targets(30)
    (entry,) = compiled.entries
    assert [node.op.name for node in entry.graph.nodes].count("full") == 2
    assert "copy(" not in entry.compiled_graph.source


def test_dead_code_that_warns_stays():
    x = np.zeros(3, "f4")

    def function(b, call, v):
        call(np.divide, v, v)
        call(np.add, call(np.equal, v, v), call(np.isnan, v))
        call(np.transpose, v)
        return call(np.negative, v)

    after = check(build(function, x), x)
    assert ops(after) == ["divide", "negative"]


def test_regions():
    f4 = np.dtype("f4")
    outer = Graph("loop")
    x = outer.input("x", TensorType(f4, (4,)))
    body = Graph("body", outer.env)
    body.input("i", TensorType(np.dtype("int64"), ()))
    v = body.input("v", TensorType(f4, (4,)))
    apply(body, "negative", v)
    mean = apply(body, "mean", v, axis=(0,), keepdims=False)
    same = apply(body, "mean", v, axis=(0,), keepdims=False)
    body.outputs = [apply(body, "subtract", v, apply(body, "add", mean, same))]
    loop = outer.append(FORI_LOOP, (0, 3, x), {}, (TensorType(f4, (4,)),), regions=(body,))
    outer.outputs = [outer.append(GET, (loop,), {"index": 0}, TensorType(f4, (4,)))]
    verify(outer)
    value = np.arange(4, dtype="f4")
    after = transforms.run(outer, verify)
    np.testing.assert_array_equal(outer(value)[0], after(value)[0])
    assert ops(after.nodes[0].regions[0]) == ["sum", "divide", "add", "subtract"]


def test_passes_are_told():
    x = np.ones(4, "f4")
    graph = build(lambda b, call, v: call(np.mean, v), x)
    told, seen = [], []
    with bus.listening(told.append):
        transforms.run(graph, on_pass=lambda name, g: seen.append(name))
    assert [e.name for e in told if isinstance(e, PassFinished)] == seen == [name for name, _ in transforms.PIPELINE]
    assert (told[0].before, told[0].after) == (1, 2)


def test_symbolic_sizes():
    b = Builder()
    n = b.env.symbol(5, minimum=2)
    x = Traced(b.graph.input("x", TensorType(np.dtype("f4"), (n, 3))))
    b.graph.outputs = [
        FRONTEND.call(b, np.var, [x], {"axis": 0, "ddof": 1}).node,
        FRONTEND.call(b, np.mean, [x], {}).node,
    ]
    after = transforms.run(b.graph, verify)
    assert not {"var", "mean"} & set(ops(after))
    for rows in (5, 9):
        value = RNG.random((rows, 3)).astype("f4")
        np.testing.assert_array_equal(after(value)[0], np.var(value, axis=0, ddof=1))
        np.testing.assert_array_equal(after(value)[1], np.mean(value))


def test_passes_without_anything_to_do_keep_the_graph():
    def sums(b, call, x, y):
        return call(np.add, x, call(np.sin, y))

    graph = build(sums, np.ones(3), np.ones(3))
    for name, transform in transforms.PIPELINE:
        assert (transform(graph) is graph) == (name != "fold"), name
