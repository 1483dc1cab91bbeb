"""The gradient of a function at some arguments: its check, its cost and its graph.

Input: a function with its arguments.
Output: a ``GradientView``.
Why: ``%tcompile grad``, ``%%tcompile --grad`` and the widget ``GradientCheck`` show the same facts.

>>> import numpy as np
>>> gradient_view(np.linalg.norm, (np.array([3.0, 4.0]),), {}, budget=0).rows[0].agrees
True
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from IPython.core.error import UsageError

import tcompile
from tcompile.annotations.trees import leaves_of
from tcompile.debug.copying import copied
from tcompile.gradient_checks import GradientErrors, by_place, float_places, gradient_errors
from tcompile.observe.display.html import COLOURS
from tcompile_jupyter.chart import Series, chart
from tcompile_jupyter.displays import GradientRow, GradientView
from tcompile_jupyter.measure import Run, measure, timed
from tcompile_jupyter.status import is_compiled

if TYPE_CHECKING:
    from tcompile_jupyter.cells import Cell

_LEAST = 1e-17  # smaller errors are drawn there
_MOST_GRAPHS = 3


def gradient_view(
    function: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any], *, budget: float = 0.4
) -> GradientView:
    """Differentiates ``function`` by all its float arguments, and looks at the result.

    Parameters
    ----------
    function : callable
        A function whose value is a float.
    args, kwargs : sequence, mapping
        Its arguments. They are copied; the calls that are timed share a copy.
    budget : float
        The seconds after which no more calls are timed, beyond the first few.

    Returns
    -------
    GradientView
        The norms, errors, times and graphs.

    Raises
    ------
    InvalidType
        No argument is a float.
    DerivativeError
        The function has no derivative.
    """
    numbers, names = float_places("the gradient", by_place(args, kwargs))
    both = tcompile.value_and_grad(function, numbers, argnames=names)

    def call(run: Callable[..., Any]) -> Any:
        given, named = copied((tuple(args), dict(kwargs)))
        return run(*given, **named)

    explained = call(tcompile.explain(both))
    value, _ = call(both)
    views = [graph.view() for graph in explained.graphs if hasattr(graph, "view")]
    plain = function if is_compiled(function) else tcompile.compile(function)
    runs = [_run(each, args, kwargs) for each in (plain, both)]
    *_, known = measure(*runs, budget=budget)
    view = GradientView(
        function=str(getattr(function, "__name__", function)), value=_finite(value),
        function_ms=known.eager.median, gradient_ms=known.compiled.median,
        lines="\n\n".join(explained.derivatives.values()), graphs=tuple(views[:_MOST_GRAPHS]),
    )  # fmt: skip
    return with_errors(view, function, args, kwargs)


def with_errors(
    view: GradientView, function: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any], seed: int = 0
) -> GradientView:
    """The same view with errors of finite differences along random directions; another seed gives other ones."""
    checked = gradient_errors(function, seed)(*args, **kwargs)
    return replace(view, rows=tuple(map(_row, checked)), steps=checked[0].steps, draw_svg=_drawing(checked))


def _run(function: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]) -> Run:
    work = copied((tuple(args), dict(kwargs)))

    def run(calls: int) -> tuple[float, Any]:
        with np.errstate(all="ignore"):  # repeated calls may write to the same arguments
            return timed(function, work, calls)[0], None

    return run


def last_call(cell: Cell, name: str) -> str:
    """The text of the last call of the function ``name`` in the statements of a cell, outside of its functions.

    Its arguments are evaluated after the cell, so they must be names, numbers, attributes or elements. Raises
    UsageError where there is no such call.
    """
    found = [node for statement in cell.tree.body for node in _calls(statement) if ast.unparse(node.func) == name]
    if not found:
        raise UsageError(f"%%tcompile --grad {name}: no statement of this cell calls {name}; %tcompile grad CALL can")
    call = max(found, key=lambda node: (node.end_lineno or 0, node.end_col_offset or 0))
    for value in [*call.args, *(keyword.value for keyword in call.keywords)]:
        if not all(isinstance(node, _REPEATABLE) for node in ast.walk(value)):
            raise UsageError(
                f"%%tcompile --grad {name}: the argument {ast.unparse(value)} would be computed again; give it a name"
            )
    return ast.unparse(call)


_SCOPES = (  # their names are not the cell's
    ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda, ast.ListComp, ast.SetComp, ast.DictComp,
    ast.GeneratorExp,
)  # fmt: skip
_REPEATABLE = (
    ast.Name, ast.Constant, ast.Attribute, ast.Subscript, ast.Slice, ast.Tuple, ast.List, ast.Dict, ast.Starred,
    ast.UnaryOp, ast.unaryop, ast.BinOp, ast.operator, ast.expr_context,
)  # fmt: skip


def _calls(tree: ast.AST) -> Iterator[ast.Call]:
    if isinstance(tree, _SCOPES):
        return
    if isinstance(tree, ast.Call):
        yield tree
    for inner in ast.iter_child_nodes(tree):
        yield from _calls(inner)


def _row(errors: GradientErrors) -> GradientRow:
    leaves = [np.asarray(leaf, float) for leaf in leaves_of(errors.gradient)]
    largest = max(float(np.max(np.abs(leaf), initial=0.0)) for leaf in leaves)
    norm = largest * float(np.sqrt(sum(np.sum(np.square(leaf / (largest or 1.0))) for leaf in leaves)))
    return GradientRow(
        argument=errors.argument,
        shape=", ".join(str(np.shape(leaf)) for leaf in leaves[:3]) + (", …" if len(leaves) > 3 else ""),
        norm=_finite(norm), best=_finite(errors.best), step=_finite(errors.step), agrees=errors.agrees,
        differs=errors.differs, verdict=errors.verdict, errors=tuple(map(_finite, errors.errors)),
    )  # fmt: skip


def _finite(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None


def _drawing(checked: Sequence[GradientErrors]) -> str:
    series = []
    for number, one in enumerate(checked[: len(COLOURS)]):
        points = [(step, max(error, _LEAST)) for step, error in zip(one.steps, one.errors, strict=True)]
        series.append(Series(one.argument, COLOURS[number], [(step, e, e, e) for step, e in points]))
    return chart(series, x="step of the finite differences", y="relative error", tell=lambda value: f"{value:.0e}")


__all__ = ["gradient_view", "last_call", "with_errors"]
