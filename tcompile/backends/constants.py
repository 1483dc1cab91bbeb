"""Constant arrays: computed once, when the graph is compiled.

Input: a graph.
Output: for each node that makes an array of literals (``np.array([1.0, 2.0])``, ``np.eye(3)``) that array, and the set
of those that escape.
Why: kernels read one array in all calls instead of making it anew.

Plain Python makes a new array in each call, so a shared one must not escape. A result, a view in a result, and an
argument of code that may keep or write it are copies. Kernels, and functions that are known to return fresh memory,
read the shared array.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tcompile.backends import helpers
from tcompile.graph import Graph, Node, SymInt, TensorType, ops
from tcompile.strict import strict

_MOST_BYTES = 1 << 16  # of one constant, which lives as long as the compiled code
_OPS = (ops.EYE, ops.LINSPACE, ops.ARANGE)
_TARGETS = ("numpy.array",)
# Calls whose results share no memory with their operands.
_NEW = frozenset(
    ("numpy.dot", "numpy.inner", "numpy.tensordot", "numpy.kron", "numpy.interp", "numpy.searchsorted",
     *(f"numpy.linalg.{name}" for name in (
        "inv", "solve", "det", "slogdet", "cholesky", "pinv", "eig", "eigh", "eigvals", "eigvalsh", "svd", "qr",
     )))
)  # fmt: skip


def constants(graph: Graph) -> dict[Node, np.ndarray[Any, Any]]:
    """The arrays, read-only, by the nodes that make them."""
    found = {}
    for node in graph.nodes:
        if node.op in _OPS or (node.op is ops.CALL and node.attrs["target"] in _TARGETS):
            array = _made(node)
            if array is not None:
                found[node] = array
    return found


def held(graph: Graph, nodes: dict[Node, np.ndarray[Any, Any]]) -> set[Node]:
    """The constants among ``nodes`` that escape from the graph, or that may be written to."""
    shows: dict[Node, Node] = {node: node for node in nodes}
    found = set()
    for node in graph.nodes:
        shown = {shows[operand] for operand in node.inputs if operand in shows}
        if node.op.kind == "view" and shown:
            (shows[node],) = shown
        elif node.regions or node.op is ops.PYTHON_CALL or (node.op is ops.CALL and node.attrs["target"] not in _NEW):
            found |= shown
    return found | {shows[output] for output in graph.outputs if output in shows}


def _made(node: Node) -> np.ndarray[Any, Any] | None:
    """The array of a node; None where it depends on inputs, is large, or cannot be made without a warning."""
    if node.inputs or _varies((node.type, node.operands, node.attrs)):
        return None
    type = node.tensor
    shape = [n for n in type.shape if isinstance(n, int)]
    if np.prod(shape, dtype=object) * type.dtype.itemsize > _MOST_BYTES:
        return None
    try:
        with strict():
            value = node.op.reference(np)(*node.operands, **node.attrs)
            helpers.checked(value, type, tuple(shape), type.c_contiguous)
            made = np.array(value, order="K")
            made = made if value.flags.owndata else made[...]  # a view of an array without other references
    except Exception:
        return None
    made.flags.writeable = False
    return made


def _varies(value: Any) -> bool:
    """Whether a symbol occurs in a type, a number or a template of arguments."""
    if isinstance(value, TensorType):
        return _varies(value.shape)
    if isinstance(value, dict):
        return any(map(_varies, value.values()))
    if isinstance(value, tuple | list):
        return any(map(_varies, value))
    return isinstance(value, SymInt)


__all__ = ["constants", "held"]
