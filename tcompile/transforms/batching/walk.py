"""The walk through the nodes of one example.

Input: nodes that compute with stand-ins of one example's arrays, and for each stand-in the array of all examples.
Output: the nodes that give the results of all examples, appended to the graph.
Why: what does not differ between examples is computed once: only nodes that depend on a stand-in get a batched twin.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

from tcompile.errors import GraphError
from tcompile.graph import ops
from tcompile.graph.ir import Graph, Node, Operand, ScalarType, TensorType, Type
from tcompile.graph.op import Op
from tcompile.graph.ops.writing import step_of
from tcompile.graph.sizes import Size
from tcompile.transforms.batching.table import RULES, Batched, OneByOne
from tcompile.transforms.emit import STOPPED, Emit, Library

Results: TypeAlias = list[tuple[Node, bool]]
SEVERAL: dict[Op, Callable[[Walk, Node], Results]] = {}  # rules of operations with several results


class Walk:
    """One walk. ``new`` has the twin of each node, ``differing`` are the nodes that differ between examples.

    ``copied``: what does not differ is copied to the graph, which is another one than that of the nodes.
    """

    def __init__(
        self, graph: Graph, given: Mapping[Node, Node], differing: Sequence[Node], count: Size, library: Library,
        copied: bool = False,
    ) -> None:  # fmt: skip
        self.e = Emit(graph, library)
        self.count = count
        self.copied = copied
        self.new = dict(given)
        self.differing = set(differing)
        self.results: dict[Node, Results] = {}

    def run(self, nodes: Sequence[Node]) -> None:
        """Goes through the nodes in order."""
        for node in nodes:
            self.e.location, self.e.silent = node.location, node.silent
            if node.op is ops.GET and node.inputs[0] in self.results:
                self.new[node], differs = self.results[node.inputs[0]][node.attrs["index"]]
                if differs:
                    self.differing.add(node)
            elif any(o in self.differing for o in node.inputs):
                self._differing(node)
            elif self.copied or any(o in self.new for o in node.inputs):
                self.new[node] = self._copy(node)  # of a result that a batched loop does not change, say
            if node in STOPPED and node in self.new:
                STOPPED.add(self.new[node])

    def of(self, operand: Operand) -> Operand:
        """What stands for an operand."""
        return self.new.get(operand, operand) if isinstance(operand, Node) else operand

    def site(self, node: Node) -> Batched:
        """A node with the operands of all examples."""
        flags = [isinstance(o, Node) and o in self.differing for o in node.operands]
        return Batched(self.e, self.count, node, [self.of(o) for o in node.operands], flags)

    def _differing(self, node: Node) -> None:
        try:
            found = self._by_rule(node)
        except (OneByOne, GraphError):  # an unknown memory order, say
            found = self.one_by_one(node)
        self.differing.add(node)
        if isinstance(node.type, tuple):
            self.results[node] = found
        else:
            self.new[node] = found[0][0]

    def _by_rule(self, node: Node) -> Results:
        if isinstance(node.type, tuple):
            several = SEVERAL.get(node.op)
            if several is not None:
                return several(self, node)
        elif node.op in RULES:
            return [(RULES[node.op](self.site(node)), True)]
        raise OneByOne

    def _copy(self, node: Node) -> Node:
        operands = [self.of(o) for o in node.operands]
        made = self.e.graph.append(
            node.op, operands, node.attrs, node.type, name=node.name, location=node.location, regions=node.regions
        )
        made.silent = node.silent
        return made

    # -- a loop over the examples ------------------------------------------------------------------------------------
    def one_by_one(self, node: Node) -> Results:
        """The results of a node in a loop over the examples."""
        e, graph, site = self.e, self.e.graph, self.site(node)
        types = node.type if isinstance(node.type, tuple) else (node.type,)
        region = Graph(f"{node.name}_of_each", graph.env, scratch=True)
        counter = graph.env.counter(self.count - 1, ("example", node.name))
        region.input("example", ScalarType("int", counter))
        row = (step_of(ops.INDEX, {"key": (counter,)}),)
        inside = Emit(region, e.library, node.silent)
        inside.location = node.location
        made = [e(ops.EMPTY, shape=(self.count, *_tensor(t).shape), dtype=_tensor(t).dtype.name) for t in types]
        stacks = [region.input(f"result_{i}", one.tensor) for i, one in enumerate(made)]
        outer: list[Node] = []
        operands: list[Operand] = []
        for operand, differs, own in zip(site.operands, site.flags, node.operands, strict=True):
            if not isinstance(operand, Node):
                operands.append(operand)
                continue
            if differs and not operand.tensor.c_contiguous:
                operand = e(ops.COPY_C, operand)
            outer.append(operand)
            assert not isinstance(operand.type, tuple) and isinstance(own, Node)
            given = region.input(operand.name, operand.type)
            operands.append(inside.in_order(inside.shown(given, row), own.tensor) if differs else given)
        called = region.append(
            node.op, operands, node.attrs, node.type, name=node.name, location=node.location, regions=node.regions
        )
        called.silent = node.silent
        rows = [called]
        if isinstance(node.type, tuple):
            rows = [region.append(ops.GET, [called], {"index": i}, t) for i, t in enumerate(types)]
        written = [inside(ops.ASSIGN, stack, one, path=row) for stack, one in zip(stacks, rows, strict=True)]
        region.outputs = [*written, *region.inputs[1 + len(stacks) :]]
        region.updates = {i: 1 + i for i in range(len(stacks))}
        loop = graph.append(
            ops.FORI_LOOP, [0, self.count, *made, *outer], {}, tuple(type_of(n) for n in region.inputs[1:]),
            location=node.location, regions=(region,),
        )  # fmt: skip
        return [(get(graph, loop, i), True) for i in range(len(made))]


def _tensor(type: Type) -> TensorType:
    assert isinstance(type, TensorType)
    return type


def type_of(node: Node) -> Type:
    """The type of a node with one result."""
    assert not isinstance(node.type, tuple)
    return node.type


def get(graph: Graph, node: Node, index: int) -> Node:
    """One result of a node with several."""
    assert isinstance(node.type, tuple)
    return graph.append(ops.GET, [node], {"index": index}, node.type[index], location=node.location)


def batch(
    graph: Graph, nodes: Sequence[Node], given: Mapping[Node, Node], wanted: Sequence[Node], count: Size,
    library: Library,
) -> list[Node]:  # fmt: skip
    """The results of all examples, appended to ``graph``.

    Parameters
    ----------
    graph : Graph
        The graph that the nodes are in.
    nodes : sequence of Node
        Those that compute one example, in order.
    given : mapping of Node to Node
        For each stand-in of an example's array the array of all examples, whose first axis counts them.
    wanted : sequence of Node
        The results of one example.
    count : int or SymInt
        The number of examples.
    library : callable
        It adds calls of NumPy's functions.

    Returns
    -------
    list of Node
        For each wanted node an array of all examples; one that does not differ between them is repeated.
    """
    walk = Walk(graph, given, list(given), count, library)
    walk.run(nodes)
    found = []
    for node in wanted:
        made = walk.of(node)
        assert isinstance(made, Node)
        found.append(made if node in walk.differing else walk.e.broadcast(made, (count, *made.tensor.shape)))
    return found


__all__ = ["SEVERAL", "Results", "Walk", "batch", "get", "type_of"]
