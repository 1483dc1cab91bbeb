"""Common subexpressions of PyTorch's joint graphs.

Input: a graph of ATen operations, of a forward and a backward pass.
Output: the same module, in which equal calls are one.
Why: the partitioner chooses what a backward pass gets among the values of this graph. PyTorch's own pass imports
Inductor, which takes most of a second.
"""

from __future__ import annotations

from typing import Any

import torch
from torch.fx import GraphModule
from torch.fx import Node as FxNode

from tcompile.frontends.torch.tensors import storage_of


def merge_equal_calls(module: GraphModule) -> None:
    """Replaces calls by earlier ones of the same operation on the same operands, in place.

    Results of the graph, and what they share memory with, stay apart, since in eager mode they are tensors of their
    own. A graph that writes to its values stays as it is.
    """
    nodes = list(module.graph.nodes)
    if any(_schema(node) is not None and _schema(node).is_mutable for node in nodes):
        return
    (output,) = (node for node in nodes if node.op == "output")
    kept = {storage for node in output.all_input_nodes for storage in _storages(node)}
    first: dict[Any, FxNode] = {}
    for node in nodes:
        if _schema(node) is None or not kept.isdisjoint(_storages(node)):
            continue
        if torch.Tag.nondeterministic_seeded in node.target.tags or "empty" in node.target.name():
            continue
        key = node.target, _key(node.args), _key(tuple(node.kwargs.items()))
        earlier = first.setdefault(key, node)
        if earlier is not node:
            node.replace_all_uses_with(earlier)
            module.graph.erase_node(node)
    module.recompile()


def _schema(node: FxNode) -> Any:
    """The schema of the operation that a node calls; None where it calls none."""
    return getattr(node.target, "_schema", None) if node.op == "call_function" else None


def _storages(node: FxNode) -> set[int]:
    value = node.meta.get("val")
    return {storage_of(value)} if isinstance(value, torch.Tensor) else set()


def _key(value: Any) -> Any:
    """Arguments in a form that is equal where they are the same, of the same types."""
    if isinstance(value, list | tuple):
        return type(value), *map(_key, value)
    return type(value), value if isinstance(value, FxNode) else repr(value)


__all__ = ["merge_equal_calls"]
