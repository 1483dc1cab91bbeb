"""The framework of passes: one rule for nodes, applied in order, sub-graphs first.

Input: a graph, and a rule as ``Graph.rebuild`` takes it.
Output: a new graph, or the same one where nothing changes, the usual case.
Why: every pass visits the regions of control-flow operations without code of its own.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TypeAlias

from tcompile.graph import Graph, Layout, Node, Operand, TensorType
from tcompile.graph.ir import Type
from tcompile.graph.sizes import is_one, same_shape

Pass: TypeAlias = Callable[[Graph], Graph]
Rule: TypeAlias = Callable[[Graph, Node, tuple[Operand, ...]], Node | None]


def asks_sizes(transform: Pass) -> Pass:
    """Lets a pass ask about symbolic sizes: the answer is that of this call, and becomes a guard of the entry.

    Without it, what capture has not asked raises ``UnprovableSizeError``, and a pass does what is right for any size.

    Examples
    --------
    >>> from tcompile.graph.dtypes import named
    >>> @asks_sizes
    ... def note(graph):
    ...     print(graph.inputs[0].tensor.shape[0] == 3)
    ...     return graph
    >>> graph = Graph("g")
    >>> n = graph.env.symbol(3, minimum=2)
    >>> x = graph.input("x", TensorType(named("float64"), (n,)))
    >>> graph.env.frozen = True
    >>> note(graph).env.guards
    True
    {'s0 - 3 == 0': True}
    """

    @functools.wraps(transform)
    def asking(graph: Graph) -> Graph:
        with graph.env.asking():
            return transform(graph)

    return asking


def rewrite(graph: Graph, rule: Rule, inner: Pass, concerns: Callable[[Node], bool] = lambda node: True) -> Graph:
    """``graph`` with ``rule`` applied to every node, and ``inner`` to every sub-graph of a node.

    A graph without any node that the rule ``concerns`` is returned unchanged, if its sub-graphs are.
    """
    done = through_regions(graph, inner)
    if all(old is new for old, new in done.items()) and not any(map(concerns, graph.nodes)):
        return graph

    def replace(result: Graph, node: Node, operands: tuple[Operand, ...]) -> Node | None:
        made = rule(result, node, operands)
        if made is not None or not node.regions:
            return made
        return keep(result, node, operands, tuple(done[region] for region in node.regions))

    return graph.rebuild(replace)


def through_regions(graph: Graph, inner: Pass) -> dict[Graph, Graph]:
    """Applies ``inner`` to the sub-graphs of nodes; one that several nodes share stays shared."""
    done: dict[Graph, Graph] = {}
    for node in graph.nodes:
        for region in node.regions:
            if region not in done:
                done[region] = inner(region)
    return done


def keep(result: Graph, node: Node, operands: tuple[Operand, ...], regions: tuple[Graph, ...] = ()) -> Node:
    """``node`` unchanged, on new operands."""
    made = result.append(
        node.op,
        operands,
        node.attrs,
        node.type,
        name=node.name,
        location=node.location,
        regions=regions or node.regions,
    )
    made.silent = node.silent
    return made


def same_type(a: Type | tuple[Type, ...], b: Type | tuple[Type, ...]) -> bool:
    """Whether two types are indistinguishable; positions of axes of size one in memory do not count."""
    if not isinstance(a, TensorType) or not isinstance(b, TensorType):
        return a == b
    alike = a.dtype == b.dtype and same_shape(a.shape, b.shape) and a.device == b.device
    return alike and _visible(a) == _visible(b)


def _visible(type: TensorType) -> Layout:
    ranks = [0 if is_one(n) else r for n, r in zip(type.shape, type.layout.ranks, strict=True)]
    steps = sorted({0, *ranks})
    return Layout(tuple(steps.index(rank) for rank in ranks), type.layout.dense)
