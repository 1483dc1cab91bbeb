"""What is computed twice is computed once.

Enters: a graph. Leaves: one in which nodes that say the same are one node. Two results that Python code can
tell apart (two outputs, or views of them) keep arrays of their own: a node whose memory may reach an output
is never merged into another, nor is one that is written to: that would cost a copy.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

from tcompile.graph import Graph, Node, Operand
from tcompile.graph.ops import OPS
from tcompile.transforms.rewrite import keep, rewrite


def merge_common(graph: Graph) -> Graph:
    """Merges equal nodes."""
    escaping = escaping_nodes(graph)
    escaping |= {node.inputs[0] for node in graph.nodes if node.op == "assign"}  # to be written in their places
    seen: dict[Hashable, Node] = {}

    def rule(result: Graph, node: Node, operands: tuple[Operand, ...]) -> Node | None:
        if node.regions or isinstance(node.type, tuple):
            return None
        key = (node.op, tuple(map(_operand_key, operands)), _frozen(node.attrs), node.type)
        found = seen.get(key)
        if found is not None and node not in escaping:
            return found
        made = keep(result, node, operands)
        seen.setdefault(key, made)
        return made

    return rewrite(graph, rule, merge_common)


def escaping_nodes(graph: Graph) -> set[Node]:
    """The nodes whose memory may be that of an output: outputs, and what they may be views of."""
    escaping: set[Node] = set()
    waiting = list(graph.outputs)
    while waiting:
        node = waiting.pop()
        if node in escaping:
            continue
        escaping.add(node)
        if node.op != "input" and (OPS[node.op].kind in ("movement", "control") or node.op in ("call", "python_call")):
            waiting.extend(node.inputs)
    return escaping


def _operand_key(operand: Operand) -> Hashable:
    if isinstance(operand, Node):
        return id(operand)
    return (type(operand).__name__, repr(operand))  # tells 1, 1.0 and True apart, and -0.0 from 0.0


def _frozen(value: Any) -> Hashable:
    if isinstance(value, dict):
        return tuple((k, _frozen(v)) for k, v in sorted(value.items()))
    if isinstance(value, tuple | list):
        return tuple(map(_frozen, value))
    return (type(value).__name__, repr(value))
