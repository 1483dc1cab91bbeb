"""Random graphs for tests.

Input: a source of random choices.
Output: graphs with every kind of operation, symbolic sizes, regions, odd names, user lines.
Why: printers, readers and passes must handle all of them.
"""

import numpy as np
from hypothesis import assume
from hypothesis import strategies as st

from tcompile.errors import GraphError
from tcompile.graph import Graph, Layout, Location, ScalarType, TensorType, ops
from tcompile.graph.ops import apply, k_order
from tcompile.graph.ops.opaque import Slot
from tcompile.graph.sizes import SymInt

F32, I64, BOOL = np.dtype("float32"), np.dtype("int64"), np.dtype("bool")
NAMES = [
    "x",
    "sum",
    "s0",
    "xp",
    "class",
    "a.b",
    "a_b",
    "L['w'][0]",
    "2x",
    "é",
    "lambda",
    "print",
    "_",
    "x_1",
    "",
]
LOCATIONS = [
    None,
    Location("cell", 3, 4, 9, "f", "    y = x + 1  # more"),
    Location("/a b/c: d.py", 7, None, None, "<lambda>", "g(x)\ny"),
    Location("C:\\x.py", 1, None, None, "C.f.<locals>.g", ""),
    Location("cell", 4, None, None, "f", "return '# ' + \"'''\"\t"),
]
numbers = st.sampled_from([0, 1, -3, 2.5, -0.0, float("inf"), float("-inf"), float("nan"), True, 1e300])


@st.composite
def graphs(draw, regions=True):
    g = Graph(draw(st.sampled_from(["graph_0", "f", "print", "my graph", ""])))
    n = g.env.symbol(draw(st.integers(2, 5)), minimum=2)
    m = g.env.symbol(3)
    name = st.sampled_from(NAMES)
    g.input(draw(name), TensorType(F32, (n,)))  # binds the symbol
    sizes = st.one_of(st.integers(1, 4), st.sampled_from([n, n, 1]))
    for _ in range(draw(st.integers(0, 3))):
        shape = tuple(draw(st.lists(sizes, max_size=3)))
        order = draw(st.permutations(range(len(shape))))
        layout = draw(
            st.sampled_from([Layout.c(len(shape)), Layout.of_order(tuple(order)), Layout.of_order(tuple(order), False)])
        )
        g.input(draw(name), TensorType(draw(st.sampled_from([F32, I64, BOOL])), shape, layout))
    if draw(st.booleans()):
        g.input(draw(name), ScalarType("int", m))
    if draw(st.booleans()):
        g.input(draw(name), ScalarType("float"))
    for _ in range(draw(st.integers(0, 8))):
        _grow(draw, g, n, name, regions)
    g.outputs = [v for v in [*g.inputs, *g.nodes] if isinstance(v.type, TensorType) and draw(st.booleans())]
    return g


def _grow(draw, g, n, name, regions):
    values = [v for v in [*g.inputs, *g.nodes] if isinstance(v.type, TensorType)]
    x = draw(st.sampled_from(values))
    y = draw(st.sampled_from([v for v in values if v.type.dtype == x.type.dtype]))
    t = x.type
    at = {"location": draw(st.sampled_from(LOCATIONS)), "node_name": draw(st.one_of(st.none(), name))}
    kinds = [
        "add",
        "number",
        "less",
        "where",
        "astype",
        "reduce",
        "permute",
        "index",
        "full",
        "arange",
        "call",
        "reshape",
    ]
    kind = draw(st.sampled_from(kinds + ["cond", "fori", "map"] * regions))
    try:
        if kind == "add":
            apply(g, "add", x, y, **at)
        elif kind == "number":
            apply(g, "maximum", x, draw(numbers), **at)
        elif kind == "less":
            apply(g, "less", x, y, **at)
        elif kind == "where" and t.dtype == BOOL:
            z = draw(st.sampled_from(values))
            apply(g, "where", x, z, draw(numbers), **at)
        elif kind == "astype":
            apply(
                g,
                "astype",
                x,
                dtype=draw(st.sampled_from(["float32", np.dtype("int64"), np.float64, "bool"])),
                **at,
            )
        elif kind == "reduce" and t.ndim and t.dtype != BOOL:
            axis = tuple(a for a in range(t.ndim) if draw(st.booleans()))
            apply(g, "max", x, axis=axis, keepdims=draw(st.booleans()), **at)
        elif kind == "permute":
            apply(g, "permute_dims", x, axes=tuple(draw(st.permutations(range(t.ndim)))), **at)
        elif kind == "index" and t.ndim:
            key = draw(
                st.sampled_from([(0,), (slice(None, None, -1),), (..., None), (slice(0, 1, None), ...), (None, -1)])
            )
            apply(g, "index", x, key=key, **at)
        elif kind == "full":
            shape = draw(st.sampled_from([(n,), (n * 2 + 1,), (n // 2 + 1, 2), (), (n % 3 + 1,)]))
            value = draw(st.one_of(numbers, st.sampled_from([np.float32(0.1), 1j, complex(-0.0, float("nan")), n])))
            apply(g, "full", shape=shape, fill_value=value, dtype=np.dtype("complex64"), **at)
        elif kind == "arange":
            apply(g, "arange", start=0, stop=n, step=1, dtype="int64", **at)
        elif kind == "reshape":
            apply(g, "reshape", x, shape=(t.size,), **at)
        elif kind == "call" and t.dtype.kind in "fc":  # with numbers, others may compute in another dtype than stated
            slots = (Slot(0), Slot(0))
            g.append(
                ops.CALL, [x], {"target": "numpy.minimum", "args": slots, "kwargs": (("out", None),)},
                TensorType(t.dtype, t.shape, k_order([t], t.shape)), name=at["node_name"], location=at["location"],
            )  # fmt: skip
        elif kind in ("cond", "fori", "map"):
            _region(draw, g, kind, x, n, at)
    except GraphError:
        pass  # types that do not fit


def _region(draw, g, kind, x, n, at):
    t = x.type
    inner = [TensorType(I64, ()), t] if kind == "fori" else [TensorType(t.dtype, t.shape[1:])] if kind == "map" else [t]
    assume(kind != "map" or (t.ndim and t.c_contiguous))
    made = []
    for which in range(2 if kind == "cond" else 1):
        r = Graph(draw(st.sampled_from(["body", "true", "x", "def"])), g.env)
        args = [r.input(draw(st.sampled_from(NAMES)), type) for type in inner]
        v = args[-1]
        if t.dtype != BOOL:
            v = apply(r, "multiply", v, which + 2, location=draw(st.sampled_from(LOCATIONS)))
        if draw(st.booleans()):
            apply(r, "full", shape=(n,), fill_value=1, dtype="int64")
        r.outputs = [v]
        made.append(r)
    out = made[0].outputs[0].type
    if any(r.outputs[0].type != out for r in made):
        return
    if kind == "fori":
        if out != t:
            return
        operands, types = (0, n, x), (t,)
    elif kind == "map":
        operands, types = (x,), (TensorType(out.dtype, (t.shape[0], *out.shape)),)
    else:
        pred = apply(g, "full", shape=(), fill_value=draw(st.booleans()), dtype="bool")
        operands, types = (pred, x), (out,)
    op = {"fori": "fori_loop"}.get(kind, kind)
    row, names = ops.op_named(op), {"name": at["node_name"], "location": at["location"]}
    node = g.append(row, operands, {}, types, regions=tuple(made), **names)
    g.append(ops.GET, (node,), {"index": 0}, types[0], name="get")


def arguments(g, seed=0):
    """Values for the graph's inputs, with the layouts that their types say and the hints as sizes."""
    rng = np.random.default_rng(seed)
    made = []
    for node in g.inputs:
        if isinstance(node.type, ScalarType):
            made.append(node.type.symbol.hint if isinstance(node.type.symbol, SymInt) else 1.5)
            continue
        shape = [s.hint if isinstance(s, SymInt) else s for s in node.type.shape]
        order = node.type.layout.order
        step = 1 if node.type.layout.dense else 2
        wide = rng.integers(0, 5, [shape[a] * step for a in order]).astype(node.type.dtype)
        wide = wide[tuple(slice(None, None, step) for _ in order)]
        made.append(np.transpose(wide, np.argsort(order)) if order else wide)
    return made
