"""Display data of graphs.

Input: a ``Graph``.
Output: a ``GraphView``, the data of its display, with the drawing.
Why: displays know no graphs, and graphs know no HTML.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from tcompile.graph.derivative_lines import forward_and_backward
from tcompile.graph.draw import KINDS, kind_of, svg
from tcompile.graph.ir import Graph, Node
from tcompile.graph.op import INPUT
from tcompile.graph.printer import call_text, readable, title, type_text
from tcompile.graph.types import TensorType
from tcompile.graph.verify import user_line
from tcompile.observe.display.graphs import MOST, GraphView, NodeView
from tcompile.observe.source_location import UserLine

_MOST_APART = 500  # operations of a graph whose forward and backward parts are drawn by themselves, too
_Groups = Mapping[str, Sequence[str]]  # by kernel, the names of nodes


def view(graph: Graph, draw: bool = True) -> GraphView:
    """The data of the graph's display: as captured; and with its kernels, where it is compiled."""
    fused = graph.fused()
    final, groups = fused if fused is not None else (graph, {})
    kernels = groups.get(final, {})
    small = len(final.nodes) <= MOST
    parts = forward_and_backward(final) if draw and len(final.nodes) <= _MOST_APART else {}
    return GraphView(
        name=graph.name,
        ops=graph.op_count,
        transformed=fused is not None,
        inputs=tuple(node_view(node) for node in final.inputs),
        nodes=node_views(final.nodes[:MOST], _by_node(kernels), groups),
        outputs=tuple(node.name for node in final.outputs),
        kernels=tuple(_kernels(final, groups)),
        listing=readable(graph),
        draw_svg=svg(final, kernels, groups) if draw and small else "",
        draw_parts=tuple((name, svg(part, kernels, groups)) for name, part in parts.items()),
        draw_legend=tuple(_legend(final)),
    )


def node_views(
    nodes: Iterable[Node], kernels: Mapping[str, str] | None = None, inner: Mapping[Graph, _Groups] | None = None
) -> tuple[NodeView, ...]:
    """The data of nodes; ``kernels`` has the kernel of each by name, ``inner`` the kernels of sub-graphs."""
    return tuple(node_view(node, (kernels or {}).get(node.name, ""), inner or {}) for node in nodes)


def node_view(node: Node, kernel: str = "", inner: Mapping[Graph, _Groups] | None = None) -> NodeView:
    """The data of one node."""
    parts = ((region, _by_node((inner or {}).get(region, {}))) for region in node.regions)
    type = node.type
    return NodeView(
        name=node.name,
        op=title(node),
        sort=kind_of(node),
        type=type_text(type),
        dtype=str(type.dtype) if isinstance(type, TensorType) else "",
        shape=tuple(map(str, type.shape)) if isinstance(type, TensorType) else (),
        call="" if node.op is INPUT else _call(node),
        inputs=tuple(operand.name for operand in node.inputs),
        where=user_line(node.location) if node.location is not None else UserLine(),
        kernel=kernel,
        backward=node.silent,
        inside=tuple(view for region, kernels in parts for view in node_views(region.nodes, kernels, inner)),
    )


def _kernels(graph: Graph, groups: Mapping[Graph, _Groups]) -> Iterator[str]:
    yield from groups.get(graph, {})
    for node in graph.nodes:
        for region in node.regions:
            yield from _kernels(region, groups)


def _by_node(groups: _Groups) -> dict[str, str]:
    return {node: kernel for kernel, nodes in groups.items() for node in nodes}


def _call(node: Node) -> str:
    try:
        return call_text(node)
    except (TypeError, ValueError):  # malformed graphs are shown too
        return node.op.name


def _legend(graph: Graph) -> Iterator[tuple[str, str]]:
    seen = set(_kinds([*graph.inputs, *graph.nodes]))
    yield from ((kind, colour) for kind, colour in KINDS.items() if kind in seen)


def _kinds(nodes: Sequence[Node]) -> Iterator[str]:
    for node in nodes:
        yield kind_of(node)
        for region in node.regions:
            yield from _kinds([*region.inputs, *region.nodes])


__all__ = ["node_view", "node_views", "view"]
