"""Sinking of views into loop bodies and branches that only read them.

Input: a graph.
Output: one in whose loop bodies a loop-invariant view that a region takes is made inside the region, which takes the
base array.
Why: kernels read parts of arrays in place, while a view that is passed on has to be made by Python: an iteration with
``row = x[i]`` and a branch on it would run in Python.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tcompile.graph import Graph, Node, Operand, TensorType, ops
from tcompile.transforms.rewrite import keep, through_regions

_VIEWS = (ops.INDEX, ops.PERMUTE_DIMS)
_LOOPS = (ops.EXIT_LOOP, ops.FORI_LOOP)
_Views = Mapping[
    int, tuple[Node, Sequence[Node]]
]  # by position: an array, and its views, of which the last one is passed


def sink_views(graph: Graph) -> Graph:
    """Makes views in the regions that read them."""
    if not any(node.regions for node in graph.nodes):
        return graph
    done = through_regions(graph, sink_views)
    sunk = _sunk(graph) if graph.scratch else {}
    if not sunk and all(old is new for old, new in done.items()):
        return graph

    def replace(result: Graph, node: Node, operands: tuple[Operand, ...]) -> Node | None:
        if node.op is ops.GET and node.inputs[0] in sunk:
            (loop,) = operands
            assert isinstance(loop, Node) and isinstance(loop.type, tuple)
            type = loop.type[node.attrs["index"]]
            return result.append(ops.GET, operands, node.attrs, type, name=node.name, location=node.location)
        regions = tuple(done[region] for region in node.regions)
        views = sunk.get(node)
        if views is None:
            return keep(result, node, operands, regions) if regions else None
        assert isinstance(node.type, tuple)
        given, types = list(operands), list(node.type)
        for position in views:
            view = given[position + 2]
            assert isinstance(view, Node)
            array, _ = _chain(view)
            given[position + 2] = array
            types[position] = array.tensor
        return result.append(
            node.op, tuple(given), node.attrs, tuple(types), name=node.name, location=node.location,
            regions=tuple(_with_views(region, views) for region in regions),
        )  # fmt: skip

    return graph.rebuild(replace)


def _sunk(graph: Graph) -> dict[Node, _Views]:
    """The loops with views among their invariant carried values."""
    users = graph.users()
    found: dict[Node, _Views] = {}
    for node in graph.nodes:
        if node.op not in _LOOPS:
            continue
        read = {user.attrs["index"] for user in users[node] if users[user] or user in graph.outputs}
        carried = node.operands[2:]
        views: dict[int, tuple[Node, Sequence[Node]]] = {}
        for position, operand in enumerate(carried):
            if not isinstance(operand, Node) or position in read or not _stays(node, position):
                continue
            array, chain = _chain(operand)
            others = [other for other, given in enumerate(carried) if given is array]
            if chain and isinstance(array.type, TensorType) and all(_stays(node, other) for other in others):
                views[position] = array, chain
        if views:
            found[node] = views
    return found


def _stays(node: Node, position: int) -> bool:
    """Whether all parts of an iteration carry a value unchanged."""
    return all(
        region.outputs[position] is region.inputs[position + 1] and position + 1 not in region.updates.values()
        for region in node.regions
    )


def _chain(view: Node) -> tuple[Node, list[Node]]:
    """The base of views, and these, the innermost first."""
    chain: list[Node] = []
    while view.op in _VIEWS:
        chain.insert(0, view)
        view = view.inputs[0]
    return view, chain


def _with_views(region: Graph, views: _Views) -> Graph:
    """The region with arrays as inputs, in which the views are made."""
    by_input = {region.inputs[position + 1]: found for position, found in views.items()}

    def given(result: Graph, node: Node) -> Node | None:
        if node not in by_input:
            return None
        array, chain = by_input[node]
        made = result.input(node.name, array.tensor, node.location)
        for view in chain:
            made = result.append(view.op, (made,), view.attrs, view.type, name=view.name, location=view.location)
        return made

    result = region.rebuild(lambda *_: None, given)
    for position in views:
        result.outputs[position] = result.inputs[position + 1]
    return result


__all__ = ["sink_views"]
