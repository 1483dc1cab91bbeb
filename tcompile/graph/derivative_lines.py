"""The derivative in a graph, by the lines of the user's code.

Input: a graph.
Output: for each line its forward and its backward operations, and what is stored for the backward ones; both parts.
Why: it says which line of a model makes its gradient slow or large.

Nodes that a derivative has added are silent. A loop that stores rows for its derivative does so by silent writes, one
for each iteration; rows are counted with the sizes that capture has seen.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias

from tcompile.graph import ops
from tcompile.graph.ir import Graph, Node
from tcompile.graph.op import Aliasing
from tcompile.graph.sizes import hint
from tcompile.graph.types import TensorType
from tcompile.observe.tables import table
from tcompile.records import dataclass

_Place: TypeAlias = tuple[str, int]


@dataclass
class DerivativeLine:
    """One line: its text, its numbers of operations, and bytes.

    Attributes:
        forward: operations of the function.
        backward: operations of its derivative, recomputed ones left out.
        recomputed: forward operations that the derivative repeats.
        stored: the bytes of values of this line that the derivative reads.
    """

    text: str
    forward: int = 0
    backward: int = 0
    recomputed: int = 0
    stored: int = 0


def derivative_lines(graph: Graph) -> list[DerivativeLine]:
    """The lines in the order of the graph; none where the graph has no derivative."""
    rows: dict[_Place, DerivativeLine] = {}
    for node, is_backward in _nodes(graph, False):
        line = _line(rows, node)
        if line is None or node.op is ops.GET:
            continue
        if node.recomputed:
            line.recomputed += 1
        elif is_backward:
            line.backward += 1
        else:
            line.forward += 1
    if not any(line.backward for line in rows.values()):
        return []
    for node in _stored(graph):
        line = _line(rows, node)
        if line is not None:
            line.stored += _bytes(node)
    return list(rows.values())


def derivative_table(graph: Graph) -> str:
    """The same as a table; "" where the graph has no derivative."""
    lines = derivative_lines(graph)
    if not lines:
        return ""
    rows = [(line.text, *map(_number, (line.forward, line.backward, line.recomputed)), _size(line.stored))
            for line in lines]  # fmt: skip
    total = [sum(getattr(line, name) for line in lines) for name in ("forward", "backward", "recomputed", "stored")]
    rows.append(("all lines", *map(_number, total[:3]), _size(total[3])))
    return table(("line", "forward", "backward", "recomputed", "stored"), rows)


def forward_and_backward(graph: Graph) -> dict[str, Graph]:
    """The graph's two parts, by their names; none where it has no derivative.

    They share the nodes of ``graph``, and are made to be shown alone: a value of the other part is an input.
    """
    halves = {"forward": [n for n in graph.nodes if not n.silent], "backward": [n for n in graph.nodes if n.silent]}
    if not all(halves.values()):
        return {}
    parts = {}
    for name, nodes in halves.items():
        own = set(nodes)
        part = parts[name] = Graph(f"{graph.name}_{name}", graph.env)
        part.nodes = nodes
        part.inputs = list(dict.fromkeys(o for node in nodes for o in node.inputs if o not in own))
        read = {o for node in graph.nodes if node not in own for o in node.inputs}
        part.outputs = [node for node in nodes if node in read or node in graph.outputs]
    return parts


def _line(rows: dict[_Place, DerivativeLine], node: Node) -> DerivativeLine | None:
    where = node.users_location
    if where is None:
        return None
    text = f"{where.line}: {where.text.strip()}"
    return rows.setdefault((where.file, where.line), DerivativeLine(text if len(text) < 60 else f"{text[:57]}..."))


def _nodes(graph: Graph, inside: bool) -> Iterator[tuple[Node, bool]]:
    """All nodes, and whether they are the derivative's."""
    for node in graph.nodes:
        is_backward = inside or node.silent
        yield node, is_backward
        for region in node.regions:
            yield from _nodes(region, is_backward)


def _stored(graph: Graph) -> Iterator[Node]:
    """The nodes whose values the derivative reads later: those of loops once for each row."""
    nodes = list(_nodes(graph, False))
    backward = {node for node, is_backward in nodes if is_backward}
    read = {operand for node in backward for operand in node.inputs}
    for node, is_backward in nodes:
        if not is_backward:
            if node in read and node.op.memory is not Aliasing.VIEW and node.op.kind not in ("creation", "control"):
                yield node
            for region in node.regions:
                yield from (n for n in region.nodes if n.silent and n.op is ops.ASSIGN and n.inputs[0] in region.inputs)


def _bytes(node: Node) -> int:
    type = node.type
    return hint(type.size) * type.dtype.itemsize if isinstance(type, TensorType) else 0


def _number(number: int) -> str:
    return str(number) if number else ""


def _size(size: int) -> str:
    if not size:
        return ""
    return f"{size} B" if size < 1000 else f"{size / 1e3:.3g} kB" if size < 1e6 else f"{size / 1e6:.3g} MB"


__all__ = ["DerivativeLine", "derivative_lines", "derivative_table", "forward_and_backward"]
