"""Derivatives of what ``tcompile.cond``, ``scan``, ``map`` and ``nested_compile_region`` make.

Input: a node with regions, and the cotangents of its results.
Output: the cotangents of its operands.
Why: a branch's derivative is a branch, a region's a region, and a scan's a loop.

A region's intermediate values are not kept: its backward region computes them once more. ``tcompile.checkpoint`` is
that.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tcompile.graph import ops
from tcompile.graph.ir import Graph, Node, ancestors
from tcompile.graph.ops.writing import step_of
from tcompile.graph.types import ScalarType, TensorType
from tcompile.transforms.autodiff.iteration import Moved, type_of
from tcompile.transforms.autodiff.loops import fori_loop
from tcompile.transforms.autodiff.reverse import LOOPS, Walk, backward
from tcompile.transforms.autodiff.table import refused
from tcompile.transforms.emit import Emit


# -- functions and branches --------------------------------------------------------------------------------------------
def _regions(walk: Walk, node: Node) -> None:
    """The rule of regions that run once: the backward regions compute them once more, and walk back through them."""
    first = int(node.op is ops.COND)  # a branch's condition
    given = node.operands[first:]
    active = [i for i, o in enumerate(given) if isinstance(o, Node) and o in walk.active]
    cotangents = walk.results[node]
    if not active:
        return
    made = tuple(_back(walk, region, active, cotangents) for region in node.regions)
    types = tuple(type_of(output) for output in made[0].outputs)
    back = walk.e.graph.append(
        node.op, [*node.operands, *cotangents.values()], {}, types, location=node.location, regions=made
    )
    back.silent = True
    for place, i in enumerate(active):
        operand = given[i]
        assert isinstance(operand, Node)
        walk.add(operand, walk.e.graph.append(ops.GET, [back], {"index": place}, types[place], location=node.location))


def _back(walk: Walk, body: Graph, active: Sequence[int], cotangents: Mapping[int, Node]) -> Graph:
    """A region of the same inputs, and the cotangents of some results, which gives those of some inputs."""
    region = Graph(f"{body.name}_backward", body.env, scratch=True)
    given = {old: region.input(old.name, type_of(old), old.location) for old in body.inputs}
    seeds = {i: region.input(f"d_{body.outputs[i].name}", type_of(g)) for i, g in cotangents.items()}
    inside = Emit(region, walk.e.library)
    sources = [given[body.inputs[i]] for i in active]
    new = Moved({}, True).copied(body, region, given)
    ends = [(new[body.outputs[i]], seed) for i, seed in seeds.items()]
    found = backward(region, [new[n] for n in body.nodes], ends, sources, inside.library, walk.splits_exit_loops)
    outputs: list[Node] = []
    for source, g in zip(sources, found, strict=True):
        made = inside.full(source, 0.0) if g is None else g
        if made in outputs or made.op.memory is not ops.Aliasing.FRESH or not made.tensor.c_contiguous:
            made = inside(ops.COPY_C, made)
        outputs.append(made)
    used = ancestors(outputs)
    region.nodes = [n for n in region.nodes if n in used]
    region.outputs = outputs
    return region


# -- scans -------------------------------------------------------------------------------------------------------------
def _scan(walk: Walk, node: Node) -> None:
    """A scan or a map becomes a counted loop, which reads a row of each column and writes a row of each result."""
    combine, carry = node.regions[0], node.attrs.get("carry", 0)
    columns = [o for o in node.operands[carry:] if isinstance(o, Node)]
    assert isinstance(node.type, tuple)
    rows = [type for type in node.type[carry:] if isinstance(type, TensorType)]
    graph, env = walk.e.graph, combine.env
    counter = env.counter(columns[0].tensor.shape[0] - 1)
    body = Graph(combine.name, env, scratch=combine.scratch)
    body.input("iteration", ScalarType("int", counter))
    inside = Emit(body, walk.e.library, silent=False)
    state = [body.input(i.name, type_of(i)) for i in combine.inputs[:carry]]
    given = [body.input(column.name, type_of(column)) for column in columns]
    stacks = [body.input(f"{o.name}_rows", type) for o, type in zip(combine.outputs[carry:], rows, strict=True)]
    key = (step_of(ops.INDEX, {"key": (counter,)}),)
    parts = [inside.shown(column, key) for column in given]
    new = Moved({}).copied(combine, body, dict(zip(combine.inputs, [*state, *parts], strict=True)))
    ends = [new[output] for output in combine.outputs]
    written = [inside(ops.ASSIGN, stack, row, path=key) for stack, row in zip(stacks, ends[carry:], strict=True)]
    body.outputs = [*ends[:carry], *given, *written]
    first = carry + len(given)
    body.updates = {first + i: 1 + first + i for i in range(len(stacks))}

    place = graph.nodes.index(node)
    empty = [walk.e(ops.FULL, shape=type.shape, fill_value=0.0, dtype=type.dtype.name) for type in rows]
    if empty:
        graph.nodes[place:] = [*empty, *graph.nodes[place : -len(empty)]]
    for get in graph.nodes:
        if get.op is ops.GET and get.inputs[0] is node and get.attrs["index"] >= carry:
            get.attrs = {"index": get.attrs["index"] + len(columns)}
    walk.results[node] = {i + len(columns) * (i >= carry): g for i, g in walk.results[node].items()}
    node.type = (*node.type[:carry], *map(type_of, columns), *rows)
    node.op, node.attrs, node.regions = ops.FORI_LOOP, {}, (body,)
    node.operands = (0, columns[0].tensor.shape[0], *node.operands, *empty)
    fori_loop(walk, node)


LOOPS[ops.INVOKE] = LOOPS[ops.COND] = _regions
LOOPS[ops.SCAN] = LOOPS[ops.MAP] = _scan
refused("a while_loop has the derivative of the iterations that a call makes", ops.WHILE_LOOP)
refused("what Python computes in the middle of a graph has no derivative rule", ops.PYTHON_CALL)
refused("PyTorch differentiates calls of its own", ops.TENSOR_CALL)
