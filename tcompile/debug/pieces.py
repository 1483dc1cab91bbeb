"""Pieces of graphs: a part of a graph as a graph of its own, with its external operands as inputs.

Input: a graph and its inputs.
Output: smaller graphs with their inputs.
Why: the minifier tries them. No graph is edited in place.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from tcompile.debug.judge import arranged, copies
from tcompile.errors import GraphError
from tcompile.graph import Graph, Node, Operand, ScalarType, SymInt, TensorType, ops
from tcompile.graph.evaluate import bind_symbols, concrete, run
from tcompile.graph.ops import apply
from tcompile.graph.printer import states_type
from tcompile.graph.verify import verify

Piece = tuple[Graph, list[Any]]


class Whole:
    """A graph with the values of all its nodes, from which pieces are cut."""

    def __init__(self, graph: Graph, inputs: Sequence[Any]) -> None:
        self.graph = graph
        self.values: dict[Node, Any] = dict(zip(graph.inputs, inputs, strict=True))

        def keep(evaluated: Graph, values: Mapping[Node, Any]) -> None:
            if evaluated is graph:
                self.values = {**values, **self.values}

        with np.errstate(all="ignore"):
            run(graph, copies(inputs), spy=keep)
        self.users = graph.users()

    def live_out(self, nodes: Iterable[Node]) -> list[Node]:
        """The ``nodes`` with users outside, or that are outputs of the graph."""
        kept = set(nodes)
        returned = set(self.graph.outputs)
        return [
            node
            for node in self.graph.nodes
            if node in kept
            and not isinstance(node.type, tuple)
            and (node in returned or not self.users[node] or any(user not in kept for user in self.users[node]))
        ]

    def closed(self, nodes: Iterable[Node]) -> list[Node]:
        """``nodes`` with those that cannot be inputs: operations with several results."""
        kept = set(nodes)
        for node in reversed(self.graph.nodes):
            if node in kept:
                kept.update(operand for operand in node.inputs if isinstance(operand.type, tuple))
        return [node for node in self.graph.nodes if node in kept]

    def piece(self, nodes: Iterable[Node], outputs: Sequence[Node] | None = None) -> Piece:
        """The graph of ``nodes`` alone, without those that ``outputs`` (by default all that are read outside) do not
        need.

        Other operands become inputs. Raises GraphError where that is impossible.
        """
        kept = self.closed(nodes)
        returned = self.live_out(kept) if outputs is None else list(outputs)
        needed = _needed(kept, returned)
        made = Graph(self.graph.name, self.graph.env)
        new: dict[Node, Node] = {}
        inputs: list[Any] = []
        symbolic = bool(self.graph.symbol_inputs())

        def bring(node: Node) -> None:
            assert not isinstance(node.type, tuple)
            value = self.values[node]
            if isinstance(node.type, TensorType):
                value = arranged(value, node.type.layout) if node.type.layout.dense else np.asarray(value)
            new[node] = made.input(node.name, node.type, node.location)
            inputs.append(value)

        for node in self.graph.inputs:
            if symbolic or any(node in other.inputs for other in needed) or node in returned:
                bring(node)  # every input, since one may bind a symbol
        for node in needed:
            for operand in node.inputs:
                if operand not in new:
                    bring(operand)
            operands = tuple(new[o] if isinstance(o, Node) else o for o in node.operands)
            new[node] = made.append(
                node.op, operands, node.attrs, node.type, name=node.name, location=node.location, regions=node.regions
            )
        made.outputs = [new[node] for node in returned]
        if not made.outputs:
            raise GraphError("nothing would be left to return")
        verify(made)
        return made, inputs


def _needed(nodes: Sequence[Node], outputs: Sequence[Node]) -> list[Node]:
    needed = set(outputs)
    for node in reversed(nodes):
        if node in needed:
            needed.update(node.inputs)
    return [node for node in nodes if node in needed]


def with_outputs(graph: Graph, inputs: Sequence[Any], outputs: Sequence[Node]) -> Piece:
    """The graph with fewer outputs, and without the nodes and inputs that only the others needed."""
    return Whole(graph, inputs).piece(graph.nodes, outputs)


def specialised(graph: Graph, inputs: Sequence[Any]) -> Piece:
    """The graph for exactly these sizes: every symbol is replaced by its value.

    Raises GraphError where an operation does not allow it.
    """
    symbols = bind_symbols(graph, inputs)
    result = Graph(graph.name)
    made = _specialise(graph, symbols, result)
    verify(made)
    return made, list(inputs)


def _specialise(graph: Graph, symbols: dict[str, int], result: Graph) -> Graph:
    new: dict[Node, Node] = {}
    regions: dict[Graph, Graph] = {}
    for node in graph.inputs:
        kind = _static(node.type, symbols)
        new[node] = result.input(node.name, kind, node.location)
    for node in graph.nodes:
        for region in node.regions:
            if region not in regions:
                regions[region] = _specialise(region, symbols, Graph(region.name, result.env))
        operands = tuple(new[o] if isinstance(o, Node) else concrete(o, symbols) for o in node.operands)
        attrs = {key: concrete(value, symbols) for key, value in node.attrs.items()}
        type = node.type
        kinds: Any = tuple(_static(t, symbols) for t in type) if isinstance(type, tuple) else _static(type, symbols)
        new[node] = result.append(
            node.op, operands, attrs, kinds, name=node.name, location=node.location,
            regions=tuple(regions[region] for region in node.regions),
        )  # fmt: skip
    result.outputs = [new[node] for node in graph.outputs]
    return result


def _static(type: Any, symbols: dict[str, int]) -> Any:
    if isinstance(type, TensorType):
        return replace(type, shape=concrete(type.shape, symbols))
    if isinstance(type, ScalarType) and isinstance(type.symbol, SymInt):
        return ScalarType("int", type.symbol.evaluate(symbols))
    return type


def sizes(graph: Graph) -> list[int]:
    """The sizes of axes of the inputs, largest first, each once."""
    found = {size for node in graph.inputs if isinstance(node.type, TensorType) for size in node.type.shape}
    return sorted((size for size in found if isinstance(size, int) and size > 1), reverse=True)


def smaller(graph: Graph, inputs: Sequence[Any], size: int, start: int, stop: int) -> Piece:
    """The graph on inputs of which every axis of ``size`` is cut to ``start:stop``.

    Raises GraphError where the operations do not fit smaller inputs.
    """
    result = Graph(graph.name, graph.env)
    new: dict[Node, Node] = {}
    cut: list[Any] = []
    for node, value in zip(graph.inputs, inputs, strict=True):
        assert not isinstance(node.type, tuple)
        kind = node.type
        if isinstance(kind, TensorType):
            keys = tuple(slice(start, stop) if length == size else slice(None) for length in kind.shape)
            kind = replace(kind, shape=tuple(stop - start if n == size else n for n in kind.shape))
            value = arranged(value[keys], kind.layout) if kind.shape else value
        new[node] = result.input(node.name, kind, node.location)
        cut.append(value)
    for node in graph.nodes:
        if node.regions or states_type(node) or node.op is ops.GET:
            raise GraphError(f"{node.op} states its sizes")
        operands: list[Operand] = [new[o] if isinstance(o, Node) else o for o in node.operands]
        new[node] = apply(result, node.op, *operands, location=node.location, node_name=node.name, **node.attrs)
    result.outputs = [new[node] for node in graph.outputs]
    verify(result)
    return result, cut


__all__ = ["Piece", "Whole", "sizes", "smaller", "specialised", "with_outputs"]
