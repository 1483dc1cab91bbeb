"""Common subexpression elimination.

Input: a graph.
Output: one in which equal nodes are one node.
Why: equal values are computed once.

Two results that Python code can tell apart (two outputs, or views of them) keep arrays of their own. A node that an
output may alias is never merged into another, nor is one that is written to: that would cost a copy.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

from tcompile.graph import Graph, Node, Operand, ops
from tcompile.graph.op import Aliasing
from tcompile.graph.ops.scalar_loop import written_roots
from tcompile.transforms.rewrite import keep, rewrite


def eliminate_common_subexpressions(graph: Graph) -> Graph:
    """Merges equal nodes."""
    again = _repeated(graph)
    made: dict[Node, Node] = {}

    def rule(result: Graph, node: Node, operands: tuple[Operand, ...]) -> Node | None:
        if node.regions:
            return None
        first = again.get(node)
        made[node] = keep(result, node, operands) if first is None else made[first]
        return made[node]

    return rewrite(graph, rule, eliminate_common_subexpressions, again.__contains__)


def _repeated(graph: Graph) -> dict[Node, Node]:
    """The nodes that equal an earlier one, each with that one."""
    escaping = escaping_nodes(graph)
    escaping |= {target for node in graph.nodes for target in _targets(node)}  # to be written in place
    seen: dict[Hashable, Node] = {}
    again: dict[Node, Node] = {}
    for node in graph.nodes:
        if node.regions or isinstance(node.type, tuple):
            continue
        operands = tuple([_operand_key(again.get(o, o) if isinstance(o, Node) else o) for o in node.operands])
        key: tuple[Hashable, ...] = (node.op, operands, _frozen(node.attrs), node.type)
        if node.silent and key not in seen:  # no other may become silent by being merged into it
            key = (*key, "silent")
        first = seen.setdefault(key, node)
        if first is not node and node not in escaping:
            again[node] = first
    return again


def _targets(node: Node) -> Sequence[Node]:
    """The nodes that a node writes to."""
    if node.op is ops.SCALAR_LOOP:
        return [node.inputs[number] for number in written_roots(node.attrs["shows"], node.attrs["program"])]
    return node.inputs[:1] if node.op.memory is Aliasing.WRITES else ()


def escaping_nodes(graph: Graph) -> set[Node]:
    """The nodes that an output may alias: outputs, and the bases of views."""
    escaping: set[Node] = set()
    waiting = list(graph.outputs)
    while waiting:
        node = waiting.pop()
        if node in escaping:
            continue
        escaping.add(node)
        if node.op.memory in (Aliasing.VIEW, Aliasing.MAY_ALIAS):
            waiting.extend(node.inputs)
    return escaping


def _operand_key(operand: Operand) -> Hashable:
    if isinstance(operand, Node):
        return id(operand)
    return (type(operand).__name__, repr(operand))  # distinguishes 1, 1.0 and True, and -0.0 from 0.0


def _frozen(value: Any) -> Hashable:
    if isinstance(value, dict):
        return tuple((k, _frozen(v)) for k, v in sorted(value.items()))
    if isinstance(value, tuple | list):
        return tuple(map(_frozen, value))
    return (type(value).__name__, repr(value))
