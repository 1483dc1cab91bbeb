"""Printed graphs run, and come back as the same graph."""

import ast
import warnings

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings

from tcompile.errors import GraphError
from tcompile.graph import Graph, Layout, Location, ScalarType, TensorType, ops
from tcompile.graph.namespace import xp
from tcompile.graph.ops import OPS, apply
from tcompile.graph.printer import code, from_code, readable

from .programs import arguments, graphs

F32 = np.dtype("float32")
many = settings(max_examples=100, deadline=None, suppress_health_check=list(HealthCheck))


def run(text, args):
    scope = {"xp": xp}
    exec(text, scope)
    (name,) = scope.keys() - {"xp", "__builtins__"}
    return scope[name](*args)


def quietly(function, *args):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return function(*args)


def assert_same(left, right):
    assert len(left) == len(right)
    for a, b in zip(left, right):
        assert np.asarray(a).dtype == np.asarray(b).dtype
        np.testing.assert_array_equal(a, b)


@many
@given(graphs())
def test_round_trip(graph):
    text = code(graph)
    again = from_code(text)
    assert code(again) == text
    assert [str(n.type) for n in again.nodes] == [str(n.type) for n in graph.nodes]
    assert [n.op.name for n in again.nodes] == [n.op.name for n in graph.nodes]
    places = [(l.file, l.line, l.function) if l else None for l in (n.location for n in graph.nodes)]
    assert [bool(n.location) for n in again.nodes] == [bool(p) for p in places]


@many
@given(graphs())
def test_printed_form_runs_as_the_graph_does(graph):
    args = arguments(graph)
    expected = quietly(graph, *args)
    assert_same(quietly(run, code(graph), args), expected)
    assert_same(quietly(from_code(code(graph)), *args), expected)


@many
@given(graphs())
def test_names_hide_nothing(graph):
    import builtins
    import keyword

    for function in ast.walk(ast.parse(code(graph))):
        if isinstance(function, ast.FunctionDef):
            assigned = [a.arg for a in function.args.args]
            assigned += [s.targets[0].id for s in function.body if isinstance(s, ast.Assign)]
            assert len(set(assigned)) == len(assigned)
            assert not {"xp", *dir(builtins), *keyword.kwlist} & set(assigned)


@many
@given(graphs())
def test_listing_has_a_line_for_every_value(graph):
    text = readable(graph)
    assert len(text.splitlines()) >= 2 + len(graph.inputs) + len(graph.nodes)


def test_a_write_is_listed_as_it_was_written():
    g = Graph("write")
    p = g.input("p", TensorType(F32, (4, 5)))
    turned = (("permute_dims", (("axes", (1, 0)),)), ("index", (("key", (0, slice(1, -1))),)))
    g.outputs = [apply(g, "assign", p, apply(g, "full", shape=(), fill_value=2.0, dtype="float32"), path=turned)]
    assert "assign(p, full, .permute_dims(axes=(1, 0))[0, 1:-1])" in readable(g)


def example():
    g = Graph("softmax")
    n = g.env.symbol(4, minimum=2)
    x = g.input("x", TensorType(F32, (n, 8)))
    first, second = (
        Location("cell", 3, 8, 20, "softmax", "    e = np.exp(x - x.max(1, keepdims=True))"),
        Location("cell", 4, 0, 9, "softmax", "    return e / e.sum(1)"),
    )
    m = apply(g, "max", x, axis=(1,), keepdims=True, location=first)
    e = apply(g, "exp", apply(g, "subtract", x, m, location=first), location=first)
    s = apply(g, "sum", e, axis=(1,), keepdims=True, location=second)
    g.outputs = [apply(g, "divide", e, s, location=second)]
    return g


def test_code_text():
    assert (
        code(example())
        == """\
def softmax(x: "f32[s0, 8]"):
    s0 = x.shape[0]  # 4 at capture, at least 2
    # cell:3 in softmax: e = np.exp(x - x.max(1, keepdims=True))
    max_ = xp.max(x, axis=(1,), keepdims=True)  # f32[s0, 1]
    subtract = xp.subtract(x, max_)  # f32[s0, 8]
    exp = xp.exp(subtract)  # f32[s0, 8]
    # cell:4 in softmax: return e / e.sum(1)
    sum_ = xp.sum(exp, axis=(1,), keepdims=True)  # f32[s0, 1]
    divide = xp.divide(exp, sum_)  # f32[s0, 8]
    return (divide,)
"""
    )


def test_readable_text():
    assert (
        readable(example())
        == """\
graph softmax: 5 ops
  x         f32[s0, 8]  input
  s0 = x.shape[0], 4 at capture
  # cell:3 in softmax: e = np.exp(x - x.max(1, keepdims=True))
  max       f32[s0, 1]  max(x, axis=(1,), keepdims=True)
  subtract  f32[s0, 8]  subtract(x, max)
  exp       f32[s0, 8]  exp(subtract)
  # cell:4 in softmax: return e / e.sum(1)
  sum       f32[s0, 1]  sum(exp, axis=(1,), keepdims=True)
  divide    f32[s0, 8]  divide(exp, sum)
  return divide"""
    )


def test_regions_are_nested_functions():
    g = Graph("steps")
    n = g.env.symbol(3)
    x = g.input("x", TensorType(F32, (2,)))
    g.input("n", ScalarType("int", n))
    body = Graph("body", g.env)
    body.input("i", TensorType(np.dtype("int64"), ()))
    c = body.input("c", TensorType(F32, (2,)))
    body.outputs = [apply(body, "add", c, 1)]
    loop = g.append(ops.FORI_LOOP, (0, n, x), {}, (TensorType(F32, (2,)),), regions=(body,))
    g.outputs = [g.append(ops.GET, (loop,), {"index": 0}, TensorType(F32, (2,)))]
    assert (
        code(g)
        == """\
def steps(x: "f32[2]", n: "int s0"):
    s0 = n  # 3 at capture
    def body(i: "i64[]", c: "f32[2]"):
        add = xp.add(c, 1)  # f32[2]
        return (add,)
    fori_loop = xp.fori_loop(0, s0, x, regions=[body], type=("f32[2]",))  # (f32[2])
    get = xp.get(fori_loop, index=0)  # f32[2]
    return (get,)
"""
    )
    assert_same(run(code(g), [np.zeros(2, "f4"), 5]), [np.full(2, 5, "f4")])


def test_layout_and_device_survive():
    g = Graph("g")
    g.input("a", TensorType(F32, (2, 3), Layout((1, 2))))
    g.input("b", TensorType(F32, (2, 3), Layout((1, 2), False)))
    g.input("c", TensorType(F32, (2, 1, 3), Layout((1, 1, 2))))
    g.input("d", TensorType(F32, (2,), None, "cuda:0"))
    again = from_code(code(g))
    assert [n.type for n in again.inputs] == [n.type for n in g.inputs]
    assert "{order 1,0}" in code(g) and "{strided 1,2}" in code(g) and "cuda:0" in code(g)


def test_hints_and_minima_survive():
    again = from_code(code(example()))
    assert again.env.hints == {"s0": 4} and again.env.minimum == {"s0": 2}


@pytest.mark.parametrize(
    "text, message",
    [
        ("def f(x", "not Python"),
        ("x = 1", "one function"),
        ("def f(x): return (x,)", "needs its type"),
        ('def f(x: "q9[3]"): return (x,)', "not a type"),
        ('def f(x: "f32[3]"):\n    y = xp.nope(x)\n    return (y,)', "unknown operation 'nope'"),
        ('def f(x: "f32[3]"):\n    y = xp.add(x, z)\n    return (y,)', "line 2.*'z'"),
        ('def f(x: "f32[3]"):\n    y = open(x)\n    return (y,)', "not a call of an operation"),
        ('def f(x: "f32[3]"):\n    import os\n    return (x,)', "line 2"),
        ('def f(x: "f32[3]"):\n    y = xp.add(x, open("f"))\n    return (y,)', "line 2.*open"),
        ('def f(x: "f32[3]", y: "i64[3]"):\n    z = xp.add(x, y)\n    return (z,)', "line 2.*one dtype"),
    ],
)
def test_malformed_text_is_refused(text, message):
    with pytest.raises(GraphError, match=message):
        from_code(text)


def test_namespace_has_every_operation():
    assert set(OPS) <= set(dir(xp))
    assert xp.add(1, 2) == 3 and xp.add.__name__ == "add"
    with pytest.raises(AttributeError, match="no operation 'nope'"):
        xp.nope


def test_indexing_is_listed_as_it_is_written():
    graph = Graph("g")
    x = graph.input("x", TensorType(np.dtype("float64"), (5, 6, 7)))
    key = (slice(1, -1), Ellipsis, None, slice(None, None, 2), 3)
    graph.outputs = [apply(graph, "index", x, key=key)]
    assert "x[1:-1, ..., None, ::2, 3]" in graph.readable()
