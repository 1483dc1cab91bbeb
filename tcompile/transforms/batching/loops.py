"""Batches of operations with several results: counted loops, and library calls.

Input: a ``fori_loop`` or ``call`` node with the operands of all examples.
Output: their results for all examples.
Why: an iteration of a counted loop computes all examples at once. A loop that a test may end has another trip count for
each example, so these run one after the other.
"""

from __future__ import annotations

from tcompile.graph import ops
from tcompile.graph.ir import Graph, Node, Operand, TensorType
from tcompile.transforms.batching.calls import several
from tcompile.transforms.batching.table import OneByOne, each
from tcompile.transforms.batching.walk import SEVERAL, Results, Walk, get, type_of
from tcompile.transforms.emit import Emit


def _call(walk: Walk, node: Node) -> Results:
    return [(made, True) for made in several(walk.site(node))]


def _fori_loop(walk: Walk, node: Node) -> Results:
    site = walk.site(node)
    if any(site.flags[:2]):
        raise OneByOne  # another trip count for each example
    body = node.regions[0]
    carried = body.inputs[1:]
    differs = {i for i, flag in enumerate(site.flags[2:]) if flag}
    while True:
        region, outputs = _region(walk, node, differs)
        found = differs | {i for i, differing in enumerate(outputs) if differing}
        if found == differs:
            break
        differs = found
    e, graph = walk.e, walk.e.graph
    operands: list[Operand] = list(site.operands[:2])
    for i in range(len(carried)):
        operand = site.operands[2 + i]
        if i in differs:
            if not isinstance(operand, Node):
                raise OneByOne
            operand = site.whole(2 + i)
            operand = operand if operand.tensor.c_contiguous else e(ops.COPY_C, operand)
        operands.append(operand)
    types = tuple(type_of(i) for i in region.inputs[1:])
    loop = graph.append(ops.FORI_LOOP, operands, node.attrs, types, location=node.location, regions=(region,))
    loop.silent = node.silent
    return [(get(graph, loop, i), i in differs) for i in range(len(types))]


def _region(walk: Walk, node: Node, differs: set[int]) -> tuple[Graph, list[bool]]:
    """The body for all examples, and which of its results differ between them."""
    body = node.regions[0]
    region = Graph(body.name, body.env, scratch=body.scratch, updates=body.updates)
    given: dict[Node, Node] = {}
    differing = []
    for number, old in enumerate(body.inputs):
        type = type_of(old)
        if number - 1 in differs:
            if not isinstance(type, TensorType):
                raise OneByOne
            type = TensorType(type.dtype, (walk.count, *type.shape))
            differing.append(old)
        given[old] = region.input(old.name, type, old.location)
    inner = Walk(region, given, differing, walk.count, walk.e.library, copied=True)
    inner.run(body.nodes)
    outputs: list[Node] = []
    flags = []
    e: Emit = inner.e
    for i, old in enumerate(body.outputs):
        made = inner.new[old]
        flags.append(old in inner.differing)
        if i in differs:
            if not flags[-1]:
                made = e.broadcast(made, (walk.count, *made.tensor.shape))
            passed = made is region.inputs[1 + i]
            fresh = made.op.memory in (ops.Aliasing.FRESH, ops.Aliasing.WRITES) and made not in outputs
            if not passed and not (fresh and made.tensor.c_contiguous):
                made = e(ops.COPY_C, made)
        outputs.append(made)
    region.outputs = outputs
    return region, flags


SEVERAL[ops.FORI_LOOP] = _fori_loop
SEVERAL[ops.CALL] = _call
each("each example runs its own loop: its trip count, or its exit, may be another one",
     ops.EXIT_LOOP, ops.WHILE_LOOP, ops.SCALAR_LOOP)  # fmt: skip
each("each example takes its own branch", ops.COND)
each("a control-flow function of tcompile's", ops.SCAN, ops.MAP)
each("a function that is compiled by itself", ops.INVOKE)
each("Python computes it", ops.PYTHON_CALL)
each("PyTorch computes it", ops.TENSOR_CALL)
each("each example may take another path", ops.EXPECT)
