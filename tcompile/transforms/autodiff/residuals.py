"""Which values of an iteration its derivative stores: the cheapest ones from which the rest is recomputed.

Input: the nodes of an iteration that its derivative depends on, the values with which the iteration begins, and the
nodes that the derivative reads.
Output: the nodes to store.
Why: an iteration that reads one element of an array need not store the array.

It is a minimum cut, by bytes, of the graph that leads from the values at the iteration's beginning to those that the
derivative reads (Chen and others, Training deep nets with sublinear memory cost, 2016, have the trade of memory for
computing; the cut is Ford and Fulkerson's, Maximal flow through a network, 1956). Results of products and of library
calls count as given, too: they are stored, or something that depends on them, but not recomputed.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Sequence
from typing import TypeAlias

from tcompile.graph import ops
from tcompile.graph.ir import Node
from tcompile.graph.sizes import hint
from tcompile.graph.types import TensorType

_UNSTORABLE = 1 << 60
_EXPENSIVE = (ops.MATMUL, ops.CALL)
_Vertex: TypeAlias = "tuple[Node, bool] | str"  # a node's entry or its exit
_SOURCE, _SINK = "source", "sink"


def stored_bytes(node: Node) -> int:
    """The bytes of a node's value, with the sizes that capture has seen."""
    type = node.type
    return hint(type.size) * type.dtype.itemsize if isinstance(type, TensorType) else _UNSTORABLE


def residuals(
    nodes: Sequence[Node], given: Sequence[Node], read: Collection[Node], storable: Collection[Node], recompute: bool
) -> list[Node] | None:
    """The nodes to store, in order; None where some value can be neither stored nor recomputed.

    ``nodes`` and ``given`` are the iteration's, in order, ``read`` those that the derivative reads. ``recompute``:
    products and calls may be recomputed.
    """
    flow = _Flow()
    inside = {*given, *nodes}
    known = set(given)  # and what depends on it
    for node in (*given, *nodes):
        flow.add((node, False), (node, True), stored_bytes(node) if node in storable else _UNSTORABLE)
        if not known.isdisjoint(node.inputs):
            known.add(node)
        if node in given or (node in known and node.op in _EXPENSIVE and node in storable and not recompute):
            flow.add(_SOURCE, (node, False), _UNSTORABLE)
        if node in read:
            flow.add((node, True), _SINK, _UNSTORABLE)
        for operand in dict.fromkeys(node.inputs):
            if operand in inside:
                flow.add((operand, True), (node, False), _UNSTORABLE)
    if flow.saturate() >= _UNSTORABLE:
        return None
    after = flow.leads_to_sink()
    return [node for node in (*given, *nodes) if (node, True) in after and (node, False) not in after]


class _Flow:
    """A maximal flow, by shortest paths."""

    def __init__(self) -> None:
        self.left: dict[_Vertex, dict[_Vertex, int]] = {_SOURCE: {}, _SINK: {}}

    def add(self, start: _Vertex, end: _Vertex, capacity: int) -> None:
        """Adds an edge."""
        self.left.setdefault(start, {})[end] = capacity
        self.left.setdefault(end, {}).setdefault(start, 0)

    def saturate(self) -> int:
        """The flow from the source to the sink, which is the capacity of the cheapest cut."""
        total = 0
        while total < _UNSTORABLE:
            before = self._path()
            if before is None:
                return total
            edges: list[tuple[_Vertex, _Vertex]] = []
            at: _Vertex = _SINK
            while at != _SOURCE:
                edges.append((before[at], at))
                at = before[at]
            least = min(self.left[a][b] for a, b in edges)
            for a, b in edges:
                self.left[a][b] -= least
                self.left[b][a] += least
            total += least
        return total

    def _path(self) -> dict[_Vertex, _Vertex] | None:
        before: dict[_Vertex, _Vertex] = {_SOURCE: _SOURCE}
        waiting: deque[_Vertex] = deque([_SOURCE])
        while waiting:
            at = waiting.popleft()
            for end, capacity in self.left[at].items():
                if capacity and end not in before:
                    before[end] = at
                    if end == _SINK:
                        return before
                    waiting.append(end)
        return None

    def leads_to_sink(self) -> set[_Vertex]:
        """The vertices from which more could flow to the sink: those after the cut that is nearest to it."""
        found: set[_Vertex] = {_SINK}
        waiting: list[_Vertex] = [_SINK]
        while waiting:
            at = waiting.pop()
            for start in self.left[at]:  # each edge is there in both directions
                if self.left[start].get(at) and start not in found:
                    found.add(start)
                    waiting.append(start)
        return found


__all__ = ["residuals", "stored_bytes"]
