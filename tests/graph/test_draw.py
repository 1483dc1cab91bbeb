"""Drawings are well formed, say what they should, escape everything, and put boxes apart."""

import re
import xml.etree.ElementTree as ElementTree
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import tcompile
from tcompile.graph import Graph, Location, TensorType
from tcompile.graph.draw import svg
from tcompile.graph.layout import layered
from tcompile.graph.op import Op
from tcompile.graph.ops import apply

from .programs import graphs

SVG = "{http://www.w3.org/2000/svg}"
V = TensorType(np.dtype("float32"), (3,))
many = settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))


def texts(picture):
    return ["".join(t.itertext()) for t in ElementTree.fromstring(picture).iter(f"{SVG}text")]


def tips(picture):
    return [t.text for t in ElementTree.fromstring(picture).iter(f"{SVG}title")]


@many
@given(graphs())
def test_every_value_is_drawn(graph):
    root = ElementTree.fromstring(svg(graph))
    boxes = [g for g in root.iter(f"{SVG}g") if g.find(f"{SVG}title") is not None]

    def count(g):
        return len(g.inputs) + len(g.nodes) + len(g.outputs) + sum(count(r) for n in g.nodes for r in n.regions)

    assert len(boxes) == count(graph)
    ElementTree.fromstring(graph.view().html())


@many
@given(
    st.integers(1, 40).flatmap(
        lambda n: st.tuples(st.just(n), st.lists(st.tuples(st.integers(0, n - 1), st.integers(0, n - 1)), max_size=80))
    )
)
def test_boxes_stand_apart_and_edges_lead_down(case):
    count, pairs = case
    edges = [(min(p), max(p)) for p in pairs if p[0] != p[1]]
    sizes = [(20 + 13 * (i % 7), 20 + 9 * (i % 3)) for i in range(count)]
    placed = layered(sizes, edges)
    places = [(x, y, x + w, y + h) for (x, y), (w, h) in zip(placed.corners, sizes)]
    for i, (a, b, c, d) in enumerate(places):
        assert a >= -1e-6 and b >= -1e-6 and c <= placed.width + 1e-6 and d <= placed.height + 1e-6
        for e, f, g, h in places[:i]:
            assert c <= e + 1e-6 or g <= a + 1e-6 or d <= f + 1e-6 or h <= b + 1e-6
    for (source, target), route in zip(edges, placed.routes):
        assert route[0][1] == pytest.approx(places[source][3]) and route[-1][1] == pytest.approx(places[target][1])
        assert places[target][0] <= route[-1][0] <= places[target][2]
        assert all(a[1] <= b[1] for a, b in pairwise(route))


def test_a_chain_hangs_straight():
    placed = layered([(10 + i, 10) for i in range(9)], [(i, i + 1) for i in range(8)])
    assert len({x + (10 + i) / 2 for i, (x, _) in enumerate(placed.corners)}) == 1


def example():
    g = Graph("g")
    x = g.input("x", V)
    at = Location("/home/me/cell.py", 3, 0, 5, "f", '    y = x < 1 & "q"')
    y = apply(g, "maximum", x, 0.5, location=at)
    z = apply(g, "sum", y, axis=(0,), keepdims=False, node_name="total")
    g.outputs = [z, y]
    return g


def test_what_is_said():
    picture = svg(example())
    assert texts(picture) == [
        "x",
        "f32[3]",
        "maximum 0.5",
        "f32[3] · line 3",
        "sum axis=(0,)",
        "total: f32[]",
        "output 0",
        "output 1",
    ]
    assert tips(picture)[1] == 'maximum: f32[3]\nmaximum(x, 0.5)\ncell.py:3 in f: y = x < 1 & "q"'
    assert 'aria-label="graph g: 2 ops, 1 input, 2 outputs"' in picture
    assert re.findall('data-node="([^"]*)"', picture) == ["x", "maximum", "total"]
    legend = example().view().html()
    assert "pointwise" in legend and "reduction" in legend and ">view" not in legend


def test_loops_are_boxes_that_say_how_many_iterations_they_have():
    def f(x, n):
        for i in range(n):
            x = 0.5 * np.sin(x) + i
        for i in range(50):
            x = 0.5 * np.sin(x) + i
            if x.max() > 1e9:
                break
        while x.max() > 1:
            x = x * 0.5
        return x

    compiled = tcompile.compile(f, backend="eager", dynamic=True)
    compiled(np.ones(5), 100)
    said = texts(svg(compiled.graphs[0]))
    assert "fori_loop s0 iterations" in said or "fori_loop s1 iterations" in said
    assert {"exit_loop at most 50 iterations", "exit_loop until a test leaves it", "each step"} <= set(said)


def test_user_text_is_escaped_and_shortened():
    g = Graph("<script>alert(1)</script>")
    x = g.input("<b>" + "long" * 30, V)
    y = g.input("\x00漢" * 40, V)
    g.outputs = [apply(g, "add", x, y, location=Location("<i>.py", 1, None, None, "&", "</title><script>"))]
    for picture in (svg(g, {"<u>&'\"": ["add"]}), g.view().html()):
        assert 'data-node="<' not in picture
        assert not re.search(r"<(script|b>l|i>|u>|/title><script)", picture)
    shown = [t for t in texts(svg(g)) if "long" in t]
    assert shown == ["<b>" + "long" * 7 + "lo…"] and len(shown[0]) == 34
    assert tips(svg(g))[0].startswith("<b>" + "long" * 30)


def test_groups():
    picture = svg(example(), {"kernel 0": ["maximum", "total"], "kernel 1": ["gone"]})
    assert "kernel 0" in texts(picture) and "kernel 1" not in texts(picture)
    assert "kernel 0: maximum, total" in tips(picture)
    g = Graph("g")  # a group around another value is no frame
    a = apply(g, "sin", g.input("x", V))
    g.outputs = [apply(g, "cos", apply(g, "exp", a))]
    ElementTree.fromstring(svg(g, {"k": ["sin", "cos"]}))


def test_empty_graph():
    assert ElementTree.fromstring(svg(Graph("empty"))) is not None


def test_bundle_of_a_graph():
    bundle = example()._repr_mimebundle_()
    assert bundle["text/plain"].startswith("graph g: 2 ops")
    assert bundle["image/svg+xml"] == example().svg() == svg(example())
    assert "<svg" in bundle["text/html"] and "<script" not in bundle["text/html"]


def test_a_graph_that_went_wrong_is_still_drawn():
    g = example()
    g.nodes[0].op = Op("nope", "opaque", None, None, len)
    g.nodes[1].operands = (Graph("h").input("foreign", V),)
    g.nodes[1].attrs["strange"] = object()
    ElementTree.fromstring(svg(g))


def test_three_hundred_nodes():
    rng = np.random.default_rng(0)
    g = Graph("big")
    values = [g.input("x", V)]
    for _ in range(300):
        a, b = (values[max(0, len(values) - 1 - int(rng.exponential(8)))] for _ in range(2))
        values.append(apply(g, "add", a, b))
    g.outputs = values[-1:]
    assert svg(g).count("<title>") == 302


def test_forward_and_backward_parts_of_a_derivative():
    def loss(w, x):
        return np.sum(np.tanh(x @ w) ** 2)

    gradient = tcompile.compile(lambda w, x: tcompile.value_and_grad(loss)(w, x))
    gradient(np.ones(3), np.ones((4, 3)))
    view = gradient.graphs[0].view()
    assert list(view.drawings) == ["whole", "forward", "backward"]
    forward, backward = view.drawings["forward"], view.drawings["backward"]
    assert 'data-node="sum"' in forward and "permute_dims" not in forward
    assert "permute_dims" in backward and 'data-node="tanh"' in backward and 'data-node="sum"' not in backward
    assert {node.backward for node in view.nodes} == {False, True}
    page = view.html()
    assert page.count("<svg") == 3 and page.count('name="tab"') == 3
    plain = tcompile.compile(loss)
    plain(np.ones(3), np.ones((4, 3)))
    assert list(plain.graphs[0].view().drawings) == ["whole"] and 'name="tab"' not in plain.graphs[0].view().html()
