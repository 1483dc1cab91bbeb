"""Dead code elimination: removes nodes without live users; nodes that may warn or raise are live.

Input: a graph.
Output: one with only live nodes.
Why: plain NumPy would have reported the division by zero, though the quotient is never used.
"""

from __future__ import annotations

from tcompile.graph import Graph, Node
from tcompile.graph.signals import may_signal
from tcompile.transforms.rewrite import keep, through_regions


def eliminate_dead_code(graph: Graph) -> Graph:
    """Removes dead nodes. Inputs stay, since they are the graph's signature."""
    needed: set[Node] = set(graph.outputs)
    for node in reversed(graph.nodes):
        if node in needed or may_signal(node):
            needed.add(node)
            needed.update(node.inputs)
    regions = through_regions(graph, eliminate_dead_code)
    if all(old is new for old, new in regions.items()) and all(node in needed for node in graph.nodes):
        return graph
    result = Graph(graph.name, graph.env)
    new: dict[Node, Node] = {}
    for node in graph.inputs:
        assert not isinstance(node.type, tuple)
        new[node] = result.input(node.name, node.type, node.location)
    for node in graph.nodes:
        if node in needed:
            operands = tuple(new[o] if isinstance(o, Node) else o for o in node.operands)
            new[node] = keep(result, node, operands, tuple(regions[region] for region in node.regions))
    result.outputs = [new[node] for node in graph.outputs]
    result.updates, result.scratch = graph.updates, graph.scratch
    return result
