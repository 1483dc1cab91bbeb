"""The verifier accepts every graph that is built properly, and names what is wrong with the others."""

import copy

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings

from tcompile.errors import GraphError
from tcompile.graph import Graph, Layout, Location, ScalarType, ShapeEnv, TensorType, ops
from tcompile.graph.op import Op
from tcompile.graph.ops import apply
from tcompile.graph.printer import code, from_code
from tcompile.graph.verify import verify

from .programs import graphs

F32, I64, BOOL = np.dtype("float32"), np.dtype("int64"), np.dtype("bool")
V = TensorType(F32, (3,))


@settings(max_examples=100, deadline=None, suppress_health_check=list(HealthCheck))
@given(graphs())
def test_accepts_what_is_built_properly(graph):
    guards = copy.copy(graph.env.guards)
    verify(graph)
    graph.env.frozen = True
    verify(graph)
    assert graph.env.guards == guards and graph.env.frozen
    verify(from_code(code(graph)))


def chain():
    g = Graph("g")
    x = g.input("x", V)
    y = apply(g, "sin", x, location=Location("cell", 2, 4, 9, "f", "    np.sin(x)"))
    z = apply(g, "add", y, x)
    g.outputs = [z]
    return g, x, y, z


def refused(g, match):
    with pytest.raises(GraphError, match=match) as error:
        verify(g)
    return str(error.value)


def test_order():
    g, *_ = chain()
    g.nodes.reverse()
    refused(g, r"g: %add = add\(sin, x\): its operand %sin is made only later")


def test_foreign_node():
    g, *_ = chain()
    other, *_ = chain()
    g.nodes[1].operands = (other.nodes[0], g.inputs[0])
    refused(g, "%sin is not a value of this graph")


def test_node_twice_and_name_twice():
    g, *_ = chain()
    g.nodes.append(g.nodes[0])
    text = refused(g, "%sin .*stands twice")
    assert text.splitlines()[1:] == [
        "from user code:",
        '  File "cell", line 2, in f',
        "    np.sin(x)",
        "    ^^^^^",
    ]
    g, *_ = chain()
    g.nodes[1].name = "x"
    refused(g, "name of another value")


@pytest.mark.parametrize(
    "type",
    [
        TensorType(np.dtype("float64"), (3,)),
        TensorType(F32, (4,)),
        TensorType(F32, (3, 1)),
        TensorType(F32, (3,), Layout((1,), False)),
        TensorType(F32, (3,), Layout((0,))),
        ScalarType("float"),
        (V,),
    ],
)
def test_wrong_type(type):
    g, *_ = chain()
    g.nodes[0].type = type
    refused(g, r"sin\(x\): has the type .* and its operation gives f32\[3\]")


@pytest.mark.parametrize("size", [1, 0])
def test_axes_of_size_one_and_arrays_without_elements_have_no_order(size):
    g = Graph("g")
    x = g.input("x", TensorType(F32, (3, size), Layout((1, 2))))
    apply(g, "sin", x)
    g.nodes[0].type = TensorType(F32, (3, size))
    verify(g)


def test_operands_that_do_not_fit():
    g, *_ = chain()
    g.inputs[0].type = TensorType(I64, (3,))
    g.nodes[0].type = TensorType(I64, (3,))
    g.nodes[1].operands = (g.nodes[0], g.input("y", V))
    refused(g, "operands do not fit: add needs operands of one dtype")


def test_arity_unknown_operation_and_strange_operand():
    g, *_ = chain()
    g.nodes[1].operands = (g.nodes[0],)
    refused(g, "has 1 operands and takes 2")
    g, *_ = chain()
    g.nodes[1].op = Op("nope", "opaque", None, None, len)
    refused(g, "there is no operation <Op nope>")
    g, *_ = chain()
    g.nodes[1].op = g.nodes[1].op.name
    refused(g, "there is no operation '")
    g, *_ = chain()
    g.nodes[1].operands = (g.nodes[0], "x")
    refused(g, "operand 'x' is neither")


def test_outputs():
    g, *_ = chain()
    g.outputs = [Graph("h").input("q", V)]
    refused(g, "g: output %q is not a value of this graph")


def test_bad_attributes():
    g = Graph("g")
    x = g.input("x", TensorType(F32, (2, 3)))
    g.append(ops.SUM, [x], {"axis": (5,), "keepdims": False}, TensorType(F32, (2,)))
    refused(g, r"axis \(5,\) does not fit")
    g.nodes[0].attrs = {}
    refused(g, "operands do not fit: 'axis'")


def test_symbols_must_come_from_inputs_of_this_graph():
    g = Graph("g")
    n = g.env.symbol(4, minimum=2)
    g.outputs = [apply(g, "full", shape=(n * 2,), fill_value=0, dtype="float32")]
    refused(g, "no input tells the size s0")
    g.input("x", TensorType(F32, (n,)))
    verify(g)
    g.nodes[0].attrs["shape"] = (ShapeEnv().symbol(4) * 2,)
    refused(g, "belongs to another graph")


def loop():
    g = Graph("g")
    x = g.input("x", V)
    body = Graph("body", g.env)
    body.input("i", TensorType(I64, ()))
    c = body.input("c", V)
    body.outputs = [apply(body, "add", c, 1)]
    node = g.append(ops.FORI_LOOP, (0, 4, x), {}, (V,), regions=(body,))
    g.outputs = [g.append(ops.GET, (node,), {"index": 0}, V)]
    verify(g)
    return g, node, body


def test_regions():
    g, node, body = loop()
    body.outputs = [apply(body, "greater", body.inputs[1], 0)]
    refused(g, r"region body returns b8\[3\] and needs f32\[3\]")
    g, node, body = loop()
    body.inputs[1].type = TensorType(F32, (4,))
    refused(g, r"input %c is f32\[4\] and gets f32\[3\]")
    g, node, body = loop()
    body.nodes[0].operands = (g.inputs[0], 1)
    refused(g, r"body: %add = add\(x, 1\): its operand %x is not a value of this graph")
    g, node, body = loop()
    node.regions = ()
    refused(g, "has 0 regions")
    g, node, body = loop()
    node.operands = (0, 4, 2.0)
    refused(g, "hands 2.0 to its region")
    g, node, body = loop()
    node.type = (TensorType(F32, (5,)),)
    refused(g, r"carries \(f32\[3\]\) and results in \(f32\[5\]\)")
    g, node, body = loop()
    g.nodes[1].attrs = {"index": 1}
    refused(g, "reads result 1 of 1")
    g, node, body = loop()
    g.outputs = [node]
    refused(g, "output with several results")
    g, node, body = loop()
    body.env = ShapeEnv()
    refused(g, "symbols of its own")


def test_cond_while_and_scan():
    g = Graph("g")
    x, p = g.input("x", V), g.input("p", TensorType(BOOL, ()))
    regions = []
    for op in ("sin", "cos"):
        r = Graph(op, g.env)
        r.outputs = [apply(r, op, r.input("a", V))]
        regions.append(r)
    node = g.append(ops.COND, (p, x), {}, (V,), regions=tuple(regions))
    g.outputs = [g.append(ops.GET, (node,), {"index": 0}, V)]
    verify(g)
    condition, body = Graph("condition", g.env), Graph("body", g.env)
    condition.outputs = [
        apply(condition, "any", apply(condition, "less", condition.input("a", V), 9), axis=(0,), keepdims=False)
    ]
    body.outputs = [apply(body, "add", body.input("a", V), 1)]
    node = g.append(ops.WHILE_LOOP, (x,), {}, (V,), regions=(condition, body))
    verify(g)
    condition.outputs = [condition.inputs[0]]
    refused(g, "region condition returns")
    g = Graph("g")
    xs = g.input("xs", TensorType(F32, (5, 3)))
    init = g.input("init", V)
    combine = Graph("combine", g.env)
    s = apply(combine, "add", combine.input("c", V), combine.input("x", V))
    combine.outputs = [s, s]
    node = g.append(ops.SCAN, (init, xs), {"carry": 1}, (V, TensorType(F32, (5, 3))), regions=(combine,))
    verify(g)
    node.type = (V, TensorType(F32, (4, 3)))
    refused(g, "stacks 5 rows")
