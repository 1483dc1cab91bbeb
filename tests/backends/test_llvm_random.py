"""Random graphs: pointwise chains, view ops, reductions and library calls, compiled and in NumPy."""

import warnings

import numpy as np
from hypothesis import HealthCheck, given, note, settings
from hypothesis import strategies as st

from tcompile.backends.llvm import compile_graph
from tcompile.backends.replay import Replay
from tcompile.errors import GraphError
from tcompile.graph import Graph
from tcompile.graph.ops import apply
from tests.backends.llvm_cases import same, type_of

UNARY = ["negative", "abs", "square", "sign", "floor"]
FLOAT_UNARY = ["tanh", "exp", "sqrt", "sin", "reciprocal", "log1p"]
BINARY = ["add", "subtract", "multiply", "maximum", "minimum", "divide"]
DTYPES = ["float32", "float64", "int32", "int64", "uint8"]


@st.composite
def arrays(draw, shape):
    dtype = draw(st.sampled_from(DTYPES))
    rng = np.random.default_rng(draw(st.integers(0, 1000)))
    wide = tuple(n * draw(st.sampled_from([1, 1, 2])) for n in shape)
    a = rng.integers(0 if dtype[0] == "u" else -5, 6, wide) + (rng.random(wide) if dtype[0] == "f" else 0)
    a = a.astype(dtype)[tuple(slice(None, None, w // n if n else 1) for w, n in zip(wide, shape, strict=True))]
    if draw(st.booleans()):
        order = draw(st.permutations(range(a.ndim)))
        a = np.ascontiguousarray(a.transpose(order)).transpose(np.argsort(order))
    return a


@st.composite
def programs(draw):
    ndim = draw(st.integers(1, 3))
    shape = tuple(draw(st.sampled_from([1, 2, 3, 5, 16, 17, 33])) for _ in range(ndim))
    inputs = [draw(arrays(shape))]
    if draw(st.booleans()):
        inputs.append(draw(arrays(tuple(n if draw(st.booleans()) else 1 for n in shape))))
    graph = Graph("random")
    values = [graph.input(f"x{i}", type_of(a)) for i, a in enumerate(inputs)]
    for _ in range(draw(st.integers(1, 10))):
        try:
            values.append(draw(steps(graph, values)))
        except GraphError:
            continue
    number = draw(st.integers(1, 3))
    outputs = [draw(st.sampled_from(values)) for _ in range(number - 1)]
    graph.outputs = [*outputs, values[-1]]
    live, stack = set(), list(graph.outputs)
    while stack:
        node = stack.pop()
        live.add(node)
        stack.extend(node.inputs)
    graph.nodes = [node for node in graph.nodes if node in live]  # dead code is another stage's business
    return graph, inputs


@st.composite
def steps(draw, graph, values):
    x = draw(st.sampled_from(values))
    type = x.tensor
    kind = draw(st.sampled_from(["unary", "binary", "binary", "reduce", "move", "cast", "compare", "number"]))
    if kind == "unary":
        names = UNARY + (FLOAT_UNARY if type.dtype.kind == "f" else [])
        if type.dtype.kind == "b":
            return apply(graph, "logical_not", x)
        return apply(graph, draw(st.sampled_from(names)), x)
    if kind == "number":
        return apply(graph, draw(st.sampled_from(["add", "multiply"])), x, 1 if type.dtype.kind != "b" else True)
    if kind in ("binary", "compare"):
        others = [v for v in values if v.tensor.dtype == type.dtype]
        y = draw(st.sampled_from(others))
        if kind == "compare":
            z = apply(graph, draw(st.sampled_from(["less", "equal", "greater_equal"])), x, y)
            return apply(graph, "where", z, x, y) if draw(st.booleans()) else z
        names = BINARY if type.dtype.kind == "f" else BINARY[:-1]
        if type.dtype.kind == "b":
            names = ["add", "multiply", "maximum"]
        return apply(graph, draw(st.sampled_from(names)), x, y)
    if kind == "cast":
        if type.dtype.kind == "f":
            return apply(graph, "astype", x, dtype=np.dtype(draw(st.sampled_from(["float32", "float64"]))))
        return apply(graph, "astype", x, dtype=np.dtype(draw(st.sampled_from(["float64", "int32", "uint8", "bool"]))))
    if not type.ndim:
        return apply(graph, "expand_dims", x, axis=0)
    if kind == "reduce":
        axis = tuple(sorted(draw(st.sets(st.integers(0, type.ndim - 1), min_size=1))))
        names = ["any", "all"] if type.dtype.kind == "b" else ["sum", "max", "min"]
        return apply(graph, draw(st.sampled_from(names)), x, axis=axis, keepdims=draw(st.booleans()))
    move = draw(st.sampled_from(["permute", "flip", "index", "index", "expand", "reshape"]))
    if move == "permute":
        return apply(graph, "permute_dims", x, axes=tuple(draw(st.permutations(range(type.ndim)))))
    if move == "flip":
        return apply(graph, "flip", x, axis=(draw(st.integers(0, type.ndim - 1)),))
    if move == "expand":
        return apply(graph, "expand_dims", x, axis=draw(st.integers(0, type.ndim)))
    if move == "reshape":
        return apply(graph, "reshape", x, shape=(int(np.prod(type.shape)),))
    key = []
    for size in type.shape:
        choice = draw(st.integers(0, 4))
        key.append([slice(None), slice(1, None), slice(None, None, -1), slice(None, None, 2), size - 1][choice])
    return apply(graph, "index", x, key=tuple(key))


@settings(max_examples=250, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)
@given(programs())
def test_random_graphs(case):
    graph, inputs = case
    note("\n".join(f"{n.name}: {n.op.name} {n.operands} {n.attrs} {n.type}" for n in [*graph.inputs, *graph.nodes]))
    note(f"outputs {graph.outputs}")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        expected = graph(*inputs)
    compiled = compile_graph(graph)
    try:
        got = compiled(*inputs)
        assert not caught
    except Replay:
        with np.errstate(all="ignore"):
            try:
                got = compiled(*inputs)
            except Replay:
                return
    for a, b in zip(got, expected, strict=True):
        scale = 1.0
        if np.asarray(b).dtype.kind == "f" and np.asarray(b).size:
            with np.errstate(all="ignore"):
                finite = np.abs(b)[np.isfinite(b)]
            scale = float(finite.max(initial=1.0))
        same(a, b, ulp=64, rtol=2e-5 * scale)
