"""Runs the same work in plain Python and compiled, timed and checked against each other.

Input: a function with its arguments, or a cell.
Output: a ``Comparison`` of median times and results.
Why: it answers "is it faster, and is it the same?" without a benchmark. All work is done on copies, so the user's
arrays and names do not change. ``measure`` does the timing.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from tcompile.debug.differences import Difference
from tcompile.observe.display.html import cut
from tcompile.observe.display.html import speed as speed_text
from tcompile.observe.display.html import time as format_ms
from tcompile.observe.html_form import html_form
from tcompile.records import dataclass
from tcompile.runtime.dispatch import parts_of
from tcompile_jupyter.displays import ComparisonRow, ComparisonView, tone_of
from tcompile_jupyter.measure import Measured, Pair, measure
from tcompile_jupyter.status import is_compiled


@dataclass(frozen=True)
class Comparison:
    """Medians in milliseconds over ``repeats`` runs of each kind, and the difference of the results.

    ``uncertainty`` is the larger relative error of the two medians, with 95% confidence.
    """

    name: str
    eager_ms: float
    compiled_ms: float
    difference: Difference
    repeats: int
    graphs: int | None = None
    kernels: int | None = None
    uncertainty: float | None = None

    @property
    def speed_up(self) -> float:
        """How many times faster compiled code is."""
        return self.eager_ms / self.compiled_ms if self.compiled_ms else float("inf")

    def speed(self) -> str:
        """Returns the speed-up in words: ``6.5x faster``."""
        return speed_text(self.speed_up, self.uncertainty)

    def sentence(self) -> str:
        """Returns the comparison in one line."""
        if self.difference.wrong:
            return f"{self.name}: RESULTS DIFFER: {self.difference.wrong}"
        return (
            f"{self.name}: plain {format_ms(self.eager_ms)}, compiled {format_ms(self.compiled_ms)}, "
            f"{self.speed()}; largest difference {self.difference} "
            f"(medians of {self.repeats} runs{', ' + self.sure() if self.sure() else ''})"
        )

    def sure(self) -> str:
        """Returns ``±3%``; "" if unknown."""
        known = self.uncertainty is not None and math.isfinite(self.uncertainty)
        return f"±{100 * (self.uncertainty or 0.0):.2g}%" if known else ""

    def __str__(self) -> str:
        return self.sentence()

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, Any]:
        return Comparisons([self]).view(self.sentence()).bundle()

    _repr_html_ = html_form


class Comparisons(Sequence[Comparison]):
    """Several comparisons as one table, of each ``what`` ("function", "statement")."""

    HEADS = "graphs", "kernels", "eager ms", "compiled ms", "speed-up", "largest difference from NumPy"

    def __init__(self, comparisons: Sequence[Comparison], what: str = "function") -> None:
        self._rows = list(comparisons)
        self._what = what

    def __getitem__(self, index: Any) -> Any:
        return self._rows[index]

    def __len__(self) -> int:
        return len(self._rows)

    def rows(self) -> Iterator[tuple[str, ...]]:
        """Returns the table's texts, row by row."""
        for one in self._rows:
            graphs, kernels = ("" if n is None else str(n) for n in (one.graphs, one.kernels))
            times = f"{one.eager_ms:.3g}", f"{one.compiled_ms:.3g}", one.speed()
            yield (cut(one.name, 60), graphs, kernels, *times, one.difference.wrong or str(one.difference))

    def __repr__(self) -> str:
        table = [(self._what, *self.HEADS), *self.rows()]
        widths = [max(len(row[n]) for row in table) for n in range(len(table[0]))]
        lines = []
        for first, *others in table:
            numbers = (text.rjust(width) for text, width in zip(others, widths[1:], strict=True))
            lines.append("  ".join([first.ljust(widths[0]), *numbers]).rstrip())
        lines.insert(1, "  ".join("-" * width for width in widths))
        return "\n".join(lines)

    def view(self, text: str = "") -> ComparisonView:
        """Returns the data of the table's display; ``text`` is its text form, by default the table."""
        rows = tuple(
            ComparisonRow(
                name=one.name, eager_ms=one.eager_ms, compiled_ms=one.compiled_ms,
                speed_up=one.speed_up if math.isfinite(one.speed_up) else None, speed=one.speed(),
                tone=tone_of(one.eager_ms, one.compiled_ms, one.speed()),
                equal=not one.difference.wrong, difference=one.difference.wrong or str(one.difference),
                repeats=one.repeats, graphs=one.graphs, kernels=one.kernels,
                uncertainty=one.uncertainty if one.sure() else None,
            )
            for one in self._rows
        )  # fmt: skip
        return ComparisonView(what=self._what, rows=rows, draw_text=text or repr(self))

    def html(self) -> str:
        """Returns the table as HTML."""
        return self.view().html()

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, Any]:
        return self.view().bundle()

    _repr_html_ = html_form


def compare(function: Callable[..., Any], *args: Any, budget: float = 1.0, name: str = "", **kwargs: Any) -> Comparison:
    """Times ``function(*args, **kwargs)`` in plain Python and compiled, and compares what it returns and changes.

    Parameters
    ----------
    function : callable
        A compiled function, or a plain one, which is compiled with the default settings.
    *args, **kwargs
        The arguments of the call. They are copied, once for each kind of run.
    budget : float
        The seconds that the timed runs may take.
    name : str
        What the comparison is called.

    Returns
    -------
    Comparison
        The times, and how far the results differ.

    Examples
    --------
    >>> import numpy as np
    >>> compare(lambda x: x + 1, np.zeros(10), budget=0).difference.equal
    True
    """
    pair = Pair.of(function, args, kwargs)
    *_, known = pair.measure(budget)
    return comparison(name or pair.name, known, pair.function)


def take_turns(
    name: str,
    eager: Callable[[], tuple[float, Any]],
    compiled: Callable[[], tuple[float, Any]],
    *,
    budget: float,
) -> Comparison:
    """Runs both alternately, like ``measure``, without repeating short work. Each returns seconds and result."""
    *_, known = measure(lambda _: eager(), lambda _: compiled(), budget=budget, repeat=False)
    return comparison(name, known)


def comparison(name: str, known: Measured, state: Any = None) -> Comparison:
    """Returns the measurement; the graphs and kernels are those of ``state``."""
    graphs, kernels = counts(state)
    medians = known.eager.median, known.compiled.median
    return Comparison(name, *medians, known.difference, known.repeats, graphs, kernels, known.uncertainty)


def counts(compiled: Any) -> tuple[int | None, int | None]:
    """Returns the numbers of graphs and kernels of a compiled function's last used entry; None without one."""
    function = getattr(compiled, "__func__", compiled)  # of a method
    entries = parts_of(function)[2].entries if is_compiled(function) else ()
    if not entries:
        return None, None
    return int(entries[0].graph is not None), len(entries[0].kernels)
