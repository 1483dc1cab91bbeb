"""Calls of NumPy's functions that rules of derivatives and batches add to a graph.

Input: a function of NumPy's, nodes and constants.
Output: the nodes of its results, in whichever way the frontend expresses it.
Why: a rule may name any function, and has no operations to list.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tcompile.capture.values.base import Context
from tcompile.frontends.base import Traced
from tcompile.graph import Graph, Node
from tcompile.graph.ir import Location


def library_call(
    tx: Context,
    graph: Graph,
    location: Location | None,
    function: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
) -> Sequence[Node]:
    """A call of one of NumPy's functions, as its frontend expresses it."""
    held = tx.builder.graph, tx.builder.location
    tx.builder.graph, tx.builder.location = graph, location
    try:
        found = tx.frontend_at("cpu").call(tx.builder, function, [_traced(arg) for arg in args], _traced(kwargs))
    finally:
        tx.builder.graph, tx.builder.location = held
    parts = found if isinstance(found, tuple) else (found,)
    return [part.node for part in parts if isinstance(part, Traced)]


def _traced(value: Any) -> Any:
    if isinstance(value, Node):
        return Traced(value)
    if isinstance(value, tuple | list):
        return type(value)(_traced(item) for item in value)
    return {key: _traced(item) for key, item in value.items()} if isinstance(value, dict) else value


__all__ = ["library_call"]
