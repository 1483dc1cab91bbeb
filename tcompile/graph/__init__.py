"""The graph IR: types, nodes, the op table, verifier, printer, drawing and reference evaluation.

Input: values built by a frontend.
Output: ``Graph``.
Why: it is the one representation between all stages; it imports nothing of tcompile but ``errors``, ``records``,
``polls`` and ``observe``. Modules inside import one another, never this one.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from tcompile.graph.ir import PRESENTERS, Graph, Location, Node, Operand
from tcompile.graph.sizes import ShapeEnv, Size, SymInt
from tcompile.graph.types import Layout, ScalarType, TensorType, Type

# How graphs run, print and draw themselves. Each function imports its module when a graph is first shown that way.


def _run(graph: Graph, args: Sequence[Any]) -> tuple[Any, ...]:
    from tcompile.graph.evaluate import run

    return run(graph, args)


def _code(graph: Graph) -> str:
    from tcompile.graph.printer import code

    return code(graph)


def _readable(graph: Graph) -> str:
    from tcompile.graph.printer import readable

    return readable(graph)


def _script(graph: Graph, about: str, inputs: Sequence[Any] | None) -> str:
    from tcompile.graph.script import script

    return script(graph, about, inputs)


def _svg(
    graph: Graph, groups: Mapping[str, Sequence[str]] | None, inner: Mapping[Graph, Mapping[str, Sequence[str]]] | None
) -> str:
    from tcompile.graph.draw import svg

    return svg(graph, groups, inner)


def _view(graph: Graph, draw: bool) -> Any:
    from tcompile.graph.display import view

    return view(graph, draw)


def _derivative_table(graph: Graph) -> str:
    from tcompile.graph.derivative_lines import derivative_table

    return derivative_table(graph)


PRESENTERS.update(
    derivative_table=_derivative_table, run=_run, code=_code, readable=_readable, script=_script, svg=_svg, view=_view
)

__all__ = [
    "Graph", "Layout", "Location", "Node", "Operand", "ScalarType", "ShapeEnv", "Size", "SymInt", "TensorType", "Type",
]  # fmt: skip
