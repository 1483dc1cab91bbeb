"""The gradient of a function at some arguments: its check, its cost and its graph.

Input: a function with its arguments.
Output: a ``GradientView``.
Why: ``%tcompile grad``, ``%%tcompile --grad`` and the widget ``GradientCheck`` show the same facts.

>>> import numpy as np
>>> print(gradient_view(np.linalg.norm, np.array([3.0, 4.0]), budget=0).rows[0].agrees)
True
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import tcompile
from tcompile.annotations.trees import leaves_of
from tcompile.debug.copying import copied
from tcompile.gradient_checks import GradientErrors, gradient_errors
from tcompile.observe.display.html import COLOURS
from tcompile_jupyter.chart import Series, chart
from tcompile_jupyter.displays import GradientRow, GradientView

_LEAST = 1e-17  # smaller errors are drawn there
_MOST_GRAPHS = 3


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
    """The median time of a call, in milliseconds; copies of the arguments are not timed."""
    end = time.perf_counter() + budget
    taken: list[float] = []
    function(*copied(args), **copied(kwargs))
    while not taken or (time.perf_counter() < end and len(taken) < 1000):
        given = copied(args), copied(kwargs)
        start = time.perf_counter()
        function(*given[0], **given[1])
        taken.append((time.perf_counter() - start) * 1e3)
    return statistics.median(taken)


__all__ = ["gradient_view"]
