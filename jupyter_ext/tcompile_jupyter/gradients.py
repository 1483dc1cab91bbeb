"""The gradient of a function at some arguments: its check, its cost and its graph.

Input: a function with its arguments.
Output: a ``GradientView``.
Why: ``%tcompile grad``, ``%%tcompile --grad`` and the widget ``GradientCheck`` show the same facts.

>>> import numpy as np
>>> print(gradient_view(np.linalg.norm, np.array([3.0, 4.0]), budget=0).rows[0].agrees)
True
"""

from __future__ import annotations

import ast
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from IPython.core.error import UsageError

import tcompile
from tcompile.annotations.trees import leaves_of
from tcompile.debug.copying import copied
from tcompile.gradient_checks import GradientErrors, gradient_errors
from tcompile.observe.display.html import COLOURS
from tcompile_jupyter.chart import Series, chart
from tcompile_jupyter.displays import GradientRow, GradientView

if TYPE_CHECKING:
    from tcompile_jupyter.cells import Cell

_LEAST = 1e-17  # smaller errors are drawn there
_MOST_GRAPHS = 3
_SAMPLE = 2e-4  # seconds for one sample
_WARM_UPS = 4  # calls that compile, and move to machine code


def gradient_view(
    function: Callable[..., Any], *args: Any, budget: float = 0.4, seed: int = 0, **kwargs: Any
) -> GradientView:
    """Differentiates ``function`` by all its float arguments, and looks at the result.

    Parameters
    ----------
    function : callable
        A function whose value is a float.
    *args, **kwargs
        Its arguments, which are copied for each call.
    budget : float
        The seconds that timing may take.
    seed : int
        Another seed gives other directions for the finite differences.

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
    checked = gradient_errors(function, seed)(*args, **kwargs)
    numbers = tuple(n for n, value in enumerate(args) if _has_float(value))
    names = tuple(name for name, value in kwargs.items() if _has_float(value))
    both = tcompile.value_and_grad(function, numbers, argnames=names)
    explained = tcompile.explain(both)(*copied(args), **copied(kwargs))
    value, _ = both(*copied(args), **copied(kwargs))
    views = [graph.view() for graph in explained.graphs if hasattr(graph, "view")]
    plain = function if hasattr(function, "entries") else tcompile.compile(function)
    return GradientView(
        function=str(getattr(function, "__name__", function)), value=float(value),
        rows=tuple(map(_row, checked)), steps=checked[0].steps,
        function_ms=_median(plain, args, kwargs, budget / 2), gradient_ms=_median(both, args, kwargs, budget / 2),
        lines="\n\n".join(explained.derivatives.values()), graphs=tuple(views[:_MOST_GRAPHS]),
        draw_svg=_drawing(checked),
    )  # fmt: skip


def last_call(cell: Cell, name: str) -> str:
    """The text of the last call of the function ``name`` in the statements of a cell, outside of its functions.

    It is evaluated once more after the cell, so its arguments must be names, numbers, attributes or elements. Raises
    UsageError where there is no such call.
    """
    found = [node for statement in cell.tree.body for node in _calls(statement) if ast.unparse(node.func) == name]
    if not found:
        raise UsageError(f"%%tcompile --grad {name}: no statement of this cell calls {name}; %tcompile grad CALL can")
    call = max(found, key=lambda node: (node.lineno, node.col_offset))
    for value in [*call.args, *(keyword.value for keyword in call.keywords)]:
        if not all(isinstance(node, _REPEATABLE) for node in ast.walk(value)):
            raise UsageError(
                f"%%tcompile --grad {name}: the argument {ast.unparse(value)} would be computed again; give it a name"
            )
    return ast.unparse(call)


_REPEATABLE = (
    ast.Name, ast.Constant, ast.Attribute, ast.Subscript, ast.Slice, ast.Tuple, ast.List, ast.Dict, ast.Starred,
    ast.UnaryOp, ast.unaryop, ast.BinOp, ast.operator, ast.expr_context,
)  # fmt: skip


def _calls(tree: ast.AST) -> Iterator[ast.Call]:
    if isinstance(tree, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Lambda):
        return
    if isinstance(tree, ast.Call):
        yield tree
    for inner in ast.iter_child_nodes(tree):
        yield from _calls(inner)


def _has_float(value: Any) -> bool:
    return any(np.asarray(leaf).dtype.kind == "f" for leaf in leaves_of(value))


def _row(errors: GradientErrors) -> GradientRow:
    leaves = [leaf for leaf in leaves_of(errors.gradient) if np.asarray(leaf).dtype.kind == "f"]
    finite = np.isfinite(errors.best)
    return GradientRow(
        argument=errors.argument,
        shape=", ".join(str(np.shape(leaf)) for leaf in leaves[:3]) + (", …" if len(leaves) > 3 else ""),
        norm=float(np.sqrt(sum(np.sum(np.square(leaf, dtype=float)) for leaf in leaves))),
        best=errors.best if finite else None,
        step=errors.steps[errors.errors.index(errors.best)] if finite else None,
        agrees=errors.agrees,
        errors=errors.errors,
    )


def _drawing(checked: Sequence[GradientErrors]) -> str:
    series = []
    for number, one in enumerate(checked[: len(COLOURS)]):
        points = [(step, max(error, _LEAST)) for step, error in zip(one.steps, one.errors, strict=True)]
        series.append(Series(one.argument, COLOURS[number], [(step, e, e, e) for step, e in points]))
    return chart(series, x="step of the finite differences", y="relative error", tell=lambda value: f"{value:.0e}")


def _median(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], budget: float) -> float:
    """The median time of a call, in milliseconds. Short calls are repeated for one sample."""
    end, calls = time.perf_counter() + budget, 1
    given, named = copied((args, kwargs))
    taken: list[float] = []
    for _ in range(_WARM_UPS):
        function(*given, **named)
    while not taken or time.perf_counter() < end:
        start = time.perf_counter()
        for _ in range(calls):
            function(*given, **named)
        seconds = time.perf_counter() - start
        if seconds < _SAMPLE and not taken:
            calls *= 2
            if time.perf_counter() < end:
                continue
        taken.append(seconds / calls * 1e3)
    return statistics.median(taken)


__all__ = ["gradient_view", "last_call"]
