"""Checks a gradient by finite differences of many steps.

Input: a function and its arguments.
Output: a ``GradientCheck``: norms, the errors by step for each argument, cost and graph.
Why: one step alone says little. A right gradient has an error that falls with the step until rounding dominates.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ipywidgets

from tcompile.debug.copying import copied
from tcompile.observe.display.html import page
from tcompile_jupyter.gradients import gradient_view, with_errors
from tcompile_jupyter.widgets.shown import Shown, image, text


class GradientCheck(Shown):
    """The gradient of ``function(*args, **kwargs)`` beside finite differences along a random direction.

    A button takes other directions.

    Parameters
    ----------
    function : callable
        A function whose value is a float.
    *args, **kwargs
        Its arguments, which are copied.

    Raises
    ------
    InvalidType
        No argument is a float.
    DerivativeError
        The function has no derivative.

    Examples
    --------
    >>> import numpy as np
    >>> GradientCheck(np.linalg.norm, np.array([3.0, 4.0])).agrees
    True
    """

    def __init__(self, function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> None:
        self.function = function
        self._given = copied((args, kwargs))
        self.seed = 0
        self.view = gradient_view(function, args, kwargs)
        self._shows = ipywidgets.HTML()
        again = ipywidgets.Button(description="Other directions", icon="refresh", layout={"width": "auto"})
        again.on_click(lambda _: self.turn())
        super().__init__((self._shows, again))
        self._draw()

    @property
    def agrees(self) -> bool:
        """Whether finite differences confirm the gradient by each argument."""
        return all(row.agrees for row in self.view.rows)

    def turn(self) -> None:
        """Takes other directions."""
        self.seed += 1
        args, kwargs = self._given
        self.view = with_errors(self.view, self.function, args, kwargs, self.seed)
        self._draw()
        self.redraw(now=True)

    def title(self) -> str:
        """Returns whether the gradient is confirmed, in a line."""
        rows = [row for row in self.view.rows if not row.agrees]
        says = "; ".join(f"that by {row.argument} {row.verdict}" for row in rows) or "agrees with finite differences"
        return f"gradient of {self.view.function}: {says}"

    def picture(self) -> str:
        """Returns the verdicts and the errors by step."""
        lines = "".join(f"<div>{text(line)}</div>" for line in self.view.lines_of_text())
        return f"<div>{text(self.title())}</div>{lines}{image(self.view.draw_svg, self.title())}"

    def _draw(self) -> None:
        self._shows.value = page(self.view.body(), self.view.kind)


__all__ = ["GradientCheck"]
