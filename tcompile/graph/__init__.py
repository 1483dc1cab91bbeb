"""The graph language: types, nodes, the op table, verifier, printer, drawing and reference evaluation.

Input: values built by a frontend. Output: ``Graph``. Why: it is the language between all stages; it imports nothing of
tcompile but ``errors``, ``records``, ``polls`` and ``observe``. Modules inside import one another, never this one.
"""

from collections.abc import Callable
from importlib import import_module
from typing import Any

from tcompile.graph.ir import PRESENTERS, Graph, Location, Node, Operand
from tcompile.graph.sizes import ShapeEnv, Size, SymInt
from tcompile.graph.types import Layout, ScalarType, TensorType, Type


def _later(module: str, name: str) -> Callable[..., Any]:
    """A function of a module that is imported when a graph is first shown that way."""

    def present(*args: Any) -> Any:
        PRESENTERS[name] = function = getattr(import_module(f"{__name__}.{module}"), name)
        return function(*args)

    return present


PRESENTERS |= {name: _later(module, name) for module, name in (
    ("evaluate", "run"), ("printer", "code"), ("printer", "readable"), ("script", "script"), ("draw", "svg"),
    ("look", "view"),
)}  # fmt: skip

__all__ = [
    "Graph", "Layout", "Location", "Node", "Operand", "ScalarType", "ShapeEnv", "Size", "SymInt", "TensorType", "Type",
]  # fmt: skip
