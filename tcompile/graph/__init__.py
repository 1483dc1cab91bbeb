"""The graph language: types, nodes, the op table, verifier, printer, drawing and reference evaluation.

Enters: values built by a frontend. Leaves: ``Graph``. Imports nothing of tcompile but ``errors`` and ``observe``.
"""

from tcompile.graph.graph import Graph, Location, Node, Operand
from tcompile.graph.sizes import ShapeEnv, Size, SymInt
from tcompile.graph.types import Layout, ScalarType, TensorType, Type

__all__ = [
    "Graph", "Layout", "Location", "Node", "Operand", "ScalarType", "ShapeEnv", "Size", "SymInt", "TensorType", "Type",
]  # fmt: skip
