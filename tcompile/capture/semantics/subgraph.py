"""Captures a function as a region: the sub-graph of a control-flow node.

Input: a captured function, and the types of the arrays that the region is called with.
Output: the region's graph and result, and the outer values that it reads, which become inputs of it too.
Why: a region is pure. So the call is not captured where the function changes an object outside of it, or returns a
value that is no array.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import field
from typing import Any

from tcompile.capture.values.array import ArrayValue, Memory
from tcompile.capture.values.base import Context, Effect, Value, settled
from tcompile.capture.values.callable import ClosureCell
from tcompile.capture.values.constant import Constant, FloatValue, IntegerValue
from tcompile.capture.values.container import SequenceValue
from tcompile.capture.values.dicts import DictValue
from tcompile.capture.values.int_nodes import int_node
from tcompile.capture.values.scalar import ScalarValue
from tcompile.frontends.base import CannotCapture, Traced
from tcompile.graph import Graph, Node, TensorType, ops
from tcompile.graph.ir import Operand, Type
from tcompile.graph.op import Op
from tcompile.graph.sizes import same_shape
from tcompile.records import dataclass

_DTYPES = {bool: "bool", float: "float64"}
_NUMBERS = (bool, int, float, complex)


@dataclass
class Subgraph:
    """A captured function: its graph, its result, and the outer nodes that it reads.

    ``leaves`` and ``spec`` are the result's arrays and structure. ``existing`` has, by identity, the objects from
    before the call.
    """

    graph: Graph
    result: Value
    existing: Collection[int]
    leaves: list[Value] = field(default_factory=list)
    spec: Any = None
    outer: list[Node] = field(default_factory=list)


def mismatch(what: str) -> CannotCapture:
    """The error that leaves the call to plain Python, which raises a clear error or does the call."""
    return CannotCapture("loop-mismatch", what)


def capture_region(
    tx: Context,
    name: str,
    types: Sequence[TensorType],
    call: Callable[[list[Value]], Value],
    finish: Callable[[Subgraph], list[Node]],
    tree: bool = True,
) -> Subgraph:
    """Follows ``call`` on one new array for each of ``types``, in a graph of its own called ``name``.

    ``finish`` returns the region's outputs; the operations that it adds are part of the region. ``tree``: the result
    must be a tree of arrays and numbers.
    """
    graph = Graph(name, tx.graph.env)
    inside: list[Value] = []
    for position, type in enumerate(types):
        if type.device != "cpu":
            raise CannotCapture("unsupported-argument", f"a control-flow function of arrays on {type.device}")
        given = Traced(graph.input(f"x{position}", type))
        array = tx.new_array(given, kept="an operand of a control-flow function,")
        inside.append(array)
    before = state_of(tx)
    outside, tx.builder.graph = tx.builder.graph, graph
    try:
        region = Subgraph(graph, call(inside), before[0].keys())
        if tree:
            region.leaves, region.spec = flatten(tx, region.result)
        graph.outputs = finish(region)
    finally:
        tx.builder.graph = outside
    if state_of(tx)[:2] != before[:2]:
        raise mismatch("A function given to it changes something outside itself.")
    known = {*graph.inputs, *graph.nodes}
    reads = [*(o for node in graph.nodes for o in node.inputs), *graph.outputs]
    region.outer = list(dict.fromkeys(node for node in reads if node not in known))
    return region


@contextlib.contextmanager
def open_region(tx: Context, graph: Graph) -> Iterator[None]:
    """Opens the graph of a loop's region, for code that may write to arrays that the loop carries."""
    outside = tx.builder.graph
    tx.builder.graph = graph
    tx.open_loops.append((outside, graph))
    try:
        yield
    finally:
        tx.open_loops.pop()
        tx.builder.graph = outside
        if not tx.open_loops:
            tx.let_go()


def lift(regions: Sequence[Subgraph]) -> tuple[list[Node], list[list[Node]]]:
    """Gives every region one more input for each outer node that any of them reads.

    Returns those nodes, and for each region its new inputs.
    """
    outer = list(dict.fromkeys(node for region in regions for node in region.outer))
    added = []
    for region in regions:
        new: dict[Node, Node] = {}
        for node in outer:
            assert not isinstance(node.type, tuple)
            new[node] = region.graph.input(f"outer_{node.name}", node.type)
        for node in region.graph.nodes:
            node.operands = tuple(new.get(o, o) if isinstance(o, Node) else o for o in node.operands)
        region.graph.outputs = [new.get(node, node) for node in region.graph.outputs]
        added.append(list(new.values()))
    return outer, added


def control_node(
    tx: Context, op: Op, operands: Sequence[Operand], types: Sequence[Type], regions: Sequence[Graph], **attrs: Any
) -> list[Node]:
    """A control-flow node in the graph being built, and the values of its results."""
    graph, location = tx.builder.graph, tx.builder.location
    node = graph.append(op, operands, attrs, tuple(types), location=location, regions=tuple(regions))
    return [
        graph.append(ops.GET, [node], {"index": index}, type, location=location) for index, type in enumerate(types)
    ]


# -- arrays ----------------------------------------------------------------------------------------------------------


def as_node(tx: Context, leaf: Value) -> Node:
    """The array of a leaf; a number becomes a 0-d array."""
    if isinstance(leaf, ArrayValue):
        return leaf.traced.node
    if isinstance(leaf, Constant) and type(leaf.value) in _DTYPES:
        return tx.builder.op("full", shape=(), fill_value=leaf.value, dtype=_DTYPES[type(leaf.value)])
    return tx.frontend_at("cpu").as_array(tx.builder, leaf.export(tx))


def node_of(tx: Context, value: Value) -> Node:
    """The same for values that a loop may carry: ints have 64 bits."""
    if isinstance(value, ScalarValue):
        return value.array.traced.node
    if isinstance(value, IntegerValue):
        return int_node(tx, value.size)
    if isinstance(value, Constant) and type(value.value) is int:
        return int_node(tx, value.value)
    return as_node(tx, value)


def in_c_order(tx: Context, node: Node) -> Node:
    """The array, or a copy of it where it does not lie in C order."""
    return node if node.tensor.c_contiguous else tx.builder.op("copy_c", node)


def own_copy(tx: Context, node: Node) -> Node:
    """A new array in C order without aliases."""
    return node if node.op is ops.FULL else tx.builder.op("copy_c", node)


def settle_outputs(
    tx: Context, graph: Graph, nodes: Sequence[Node], passed_on: Sequence[Node | None] = ()
) -> list[Node]:
    """The outputs of a region as arrays in C order, without aliases.

    ``passed_on[i]`` is the input that output ``i`` may be unchanged.
    """
    taken: set[Node] = set()
    made = set(graph.nodes)
    outputs = []
    for position, node in enumerate(nodes):
        if not (position < len(passed_on) and node is passed_on[position]):
            new = node in made and node not in taken and is_new(node)
            if not new or not node.tensor.c_contiguous:
                node = tx.builder.op("copy_c", node)
        taken.add(node)
        outputs.append(node)
    return outputs


def is_new(node: Node) -> bool:
    """Whether an operation makes an array that shares memory with no other."""
    return node.op.memory is ops.Aliasing.FRESH


def fits(a: Node, b: Node) -> bool:
    """Whether two arrays have one dtype and provably one shape."""
    return a.tensor.dtype == b.tensor.dtype and same_shape(a.tensor.shape, b.tensor.shape)


def array_of(tx: Context, node: Node, scalar: bool = False) -> Value:
    """The captured value of a node."""
    return tx.from_frontend(Traced(node, scalar))


# -- trees -----------------------------------------------------------------------------------------------------------


def flatten(tx: Context, value: Value) -> tuple[list[Value], Any]:
    """The arrays and numbers in a tree of containers, in order, and the tree's structure."""
    value = settled(tx, value)
    if isinstance(value, ArrayValue | IntegerValue | FloatValue | ScalarValue):
        return [value], None
    if isinstance(value, Constant) and (isinstance(value.value, _NUMBERS) or tx.is_scalar(value.value)):
        return [value], None
    if isinstance(value, SequenceValue):
        items = [flatten(tx, item) for item in value.items]
        return [leaf for item in items for leaf in item[0]], (value.cls, tuple(item[1] for item in items))
    if isinstance(value, DictValue):
        parts = {key: flatten(tx, item) for key, item in value.items.items()}
        spec = (dict, tuple((key, part[1]) for key, part in parts.items()))
        return [leaf for part in parts.values() for leaf in part[0]], spec
    raise mismatch(f"{value.describe()} is no array, number or container of these.")


def unflatten(spec: Any, leaves: Iterator[Value]) -> Value:
    """The tree of a structure with new leaves."""
    if spec is None:
        return next(leaves)
    cls, inner = spec
    if cls is dict:
        return DictValue({key: unflatten(part, leaves) for key, part in inner})
    return SequenceValue([unflatten(part, leaves) for part in inner], cls)


# -- purity ----------------------------------------------------------------------------------------------------------


def state_of(tx: Context) -> tuple[dict[int, Any], list[Any], list[Any]]:
    """A fingerprint of all captured state, to find whether following a function has changed it.

    The last item only keeps objects alive whose identities the others have.
    """
    seen: dict[int, Any] = {}
    alive: list[Any] = []
    waiting: list[Any] = list(tx.effects.values())
    for frame in tx.frames:
        waiting += [*frame.locals.values(), *frame.stack, *frame.cells.values()]
    while waiting:
        value = waiting.pop()
        if id(value) in seen or not isinstance(value, _STATE):
            continue
        if isinstance(value, SequenceValue | DictValue) and value.source is not None:
            continue  # its changes are counted, and reading an item changes its record
        parts = {key: part for key, part in vars(value).items() if key not in NOT_STATE}
        seen[id(value)] = {key: _shallow(part) for key, part in parts.items()}
        alive.append(parts)
        for part in parts.values():
            waiting += part.values() if type(part) is dict else part if type(part) in (list, tuple) else (part,)
    return seen, [*tx.effects, tx.outside_mutations], alive


_STATE = (Value, ClosureCell, Effect, Memory)
NOT_STATE = (
    "_shown", "_place", "_version", "_asked", "_loosen", "_tighten", "known", "builder", "frontend", "source",
    "globals", "home", "code", "rows", "kept_before",
)  # fmt: skip


def _shallow(part: Any) -> Any:
    if type(part) is dict:
        return [(key, id(item)) for key, item in part.items()]
    return [id(item) for item in part] if type(part) in (list, tuple) else id(part)
