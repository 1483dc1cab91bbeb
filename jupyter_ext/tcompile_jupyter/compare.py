"""The same work in plain Python and compiled, timed and checked against each other.

Enters: a function with its arguments, or a cell. Leaves: a ``Comparison`` of median times and results. Exists
to answer "is it faster, and is it the same?" without a benchmark being written. All work is done on copies,
so that neither the user's arrays nor their names change. How it is timed is the business of ``measure``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

from tcompile.debug.differences import Difference
from tcompile_jupyter.measure import Measured, Pair, measure


@dataclass(frozen=True)
class Comparison:
    """Medians in milliseconds over ``rounds`` runs of each kind, and how far the results are apart."""

    name: str
    eager_ms: float
    compiled_ms: float
    difference: Difference
    rounds: int
    graphs: int | None = None
    kernels: int | None = None

    @property
    def speed_up(self) -> float:
        """How many times faster compiled code is."""
        return self.eager_ms / self.compiled_ms if self.compiled_ms else float("inf")

    def sentence(self) -> str:
        """The comparison in one line."""
        if not self.difference.equal:
            return f"{self.name}: RESULTS DIFFER: {self.difference.mismatch}"
        return (
            f"{self.name}: plain {format_ms(self.eager_ms)}, compiled {format_ms(self.compiled_ms)}, "
            f"{self.speed_up:.1f}x; largest difference {self.difference} "
            f"(medians of {self.rounds} runs)"
        )

    def __str__(self) -> str:
        return self.sentence()

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        return {"text/plain": self.sentence(), "text/html": Comparisons([self]).html()}


class Comparisons(Sequence[Comparison]):
    """Several comparisons as one table."""

    HEADS = (
        "function",
        "graphs",
        "kernels",
        "eager ms",
        "compiled ms",
        "speed-up",
        "largest difference from NumPy",
    )

    def __init__(self, comparisons: Sequence[Comparison]) -> None:
        self._rows = list(comparisons)

    def __getitem__(self, index: Any) -> Any:
        return self._rows[index]

    def __len__(self) -> int:
        return len(self._rows)

    def rows(self) -> Iterator[tuple[str, ...]]:
        """The table's texts, row by row."""
        for one in self._rows:
            graphs, kernels = ("" if n is None else str(n) for n in (one.graphs, one.kernels))
            times = f"{one.eager_ms:.3g}", f"{one.compiled_ms:.3g}", f"{one.speed_up:.1f}x"
            yield (one.name, graphs, kernels, *times, str(one.difference))

    def __repr__(self) -> str:
        table = [self.HEADS, *self.rows()]
        widths = [max(len(row[n]) for row in table) for n in range(len(self.HEADS))]
        lines = []
        for first, *others in table:
            numbers = (text.rjust(width) for text, width in zip(others, widths[1:], strict=True))
            lines.append("  ".join([first.ljust(widths[0]), *numbers]).rstrip())
        lines.insert(1, "  ".join("-" * width for width in widths))
        return "\n".join(lines)

    def html(self) -> str:
        """The table as HTML."""
        head, rows = _row(self.HEADS, "th"), "".join(_row(row, "td") for row in self.rows())
        return f"<table><thead>{head}</thead><tbody>{rows}</tbody></table>"

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        return {"text/plain": repr(self), "text/html": self.html()}


def compare(function: Callable[..., Any], *args: Any, budget: float = 1.0, name: str = "", **kwargs: Any) -> Comparison:
    """Times ``function(*args, **kwargs)`` in plain Python and compiled, and compares what it returns and
    changes.

    ``function`` may be compiled already; else it is compiled with the default settings. ``budget`` is the
    time that the timed runs may take, in seconds. The arguments are copied, once for each kind of run.

    >>> import numpy as np
    >>> compare(lambda x: x + 1, np.zeros(10), budget=0).difference.equal
    True
    """
    pair = Pair.of(function, args, kwargs)
    *_, known = pair.measure(budget)
    return _comparison(name or pair.name, known, pair.function)


def take_turns(
    name: str,
    eager: Callable[[], tuple[float, Any]],
    compiled: Callable[[], tuple[float, Any]],
    *,
    budget: float,
) -> Comparison:
    """Runs both in turn, as ``measure`` does, without repeating short work. Each returns its seconds and its result."""
    *_, known = measure(lambda _: eager(), lambda _: compiled(), budget=budget, repeat=False)
    return _comparison(name, known)


def _comparison(name: str, known: Measured, state: Any = None) -> Comparison:
    """What was measured; ``state`` is asked for its graphs and kernels."""
    graphs, kernels = counts(state)
    medians = known.eager.median, known.compiled.median
    return Comparison(name, *medians, known.difference, known.rounds, graphs, kernels)


def counts(compiled: Any) -> tuple[int | None, int | None]:
    """How many graphs and kernels the last used entry of a compiled function has; None without one."""
    entries = getattr(compiled, "entries", ())
    if not entries:
        return None, None
    return int(entries[0].graph is not None), len(entries[0].kernels)


def format_ms(ms: float) -> str:
    """Milliseconds with three digits, in the unit that suits them.

    >>> format_ms(0.0123), format_ms(12.34), format_ms(5432.1)
    ('12.3 µs', '12.3 ms', '5.43 s')
    """
    if ms < 1:
        return f"{ms * 1e3:.3g} µs"
    return f"{ms:.3g} ms" if ms < 999.5 else f"{ms / 1e3:.3g} s"


def _row(cells: Sequence[str], tag: str) -> str:
    aligned = (
        f'<{tag} style="text-align: {"right" if n else "left"}">{escape(text)}</{tag}>' for n, text in enumerate(cells)
    )
    return f"<tr>{''.join(aligned)}</tr>"
