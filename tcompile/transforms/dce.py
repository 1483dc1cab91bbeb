"""What nobody can notice is not computed.

Input: a graph. Output: one without the nodes that no output needs. A node that may warn or raise is needed:
plain NumPy would have told the user of the division by zero, though the quotient is thrown away.
"""

from __future__ import annotations

from tcompile.graph import Graph, Node
from tcompile.graph.signals import may_signal
from tcompile.transforms.rewrite import keep, through_regions


def eliminate_dead_code(graph: Graph) -> Graph:
    """Drops nodes that nothing needs. Inputs stay, for they are the graph's signature."""
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
