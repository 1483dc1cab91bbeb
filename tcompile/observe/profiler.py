"""Statistics over a period of a program: compiles, recompiles and their reasons, fallbacks.

Input: the events emitted in a ``with`` block.
Output: ``CompileProfiler.report()``, a text with a table of functions and, below it, each graph break, guard failure
and fallback with its count.
Why: it answers "why is this slow?" for a long-running program; ``explain`` answers it for one call.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import field
from typing import Any

from tcompile import process
from tcompile.observe import bus
from tcompile.observe.events import (
    CallTimed,
    CompileFinished,
    Event,
    FellBack,
    GraphBroke,
    GraphCaptured,
    GuardFailed,
    LoopTimed,
)
from tcompile.observe.explain import merged
from tcompile.observe.html_form import html_form
from tcompile.observe.source_location import file_label
from tcompile.observe.tables import table
from tcompile.records import dataclass


@dataclass
class FunctionProfile:
    """The statistics of one function. Times are milliseconds.

    ``calls`` and ``call_ms`` count calls answered by compiled code; for many short calls they are estimates from a
    sample.
    """

    name: str
    compiles: int = 0
    compile_ms: float = 0.0
    graphs: int = 0
    ops: int = 0
    kernels: int = 0
    calls: int = 0
    call_ms: float = 0.0
    breaks: Counter[str] = field(default_factory=Counter)
    guard_failures: Counter[str] = field(default_factory=Counter)
    fallbacks: Counter[str] = field(default_factory=Counter)
    hints: dict[str, str] = field(default_factory=dict)  # for a break or a guard failure, its advice

    def counters(self) -> tuple[tuple[str, Counter[str]], ...]:
        """Returns the counts of breaks, guard failures and fallbacks, by name."""
        return (
            ("graph breaks", self.breaks), ("guard failures", self.guard_failures),
            ("ran in plain Python", self.fallbacks),
        )  # fmt: skip

    @property
    def empty(self) -> bool:
        """Whether there is nothing to report."""
        return not (self.compiles or self.calls or self.breaks or self.guard_failures or self.fallbacks)


class CompileProfiler:
    """Collects statistics of all compiled functions of the process while its ``with`` block runs.

    Used as a backend, it only observes: it runs the captured graphs in NumPy. So captures and recompiles show without
    code generation.

    >>> import numpy as np, tcompile
    >>> with CompileProfiler() as prof:
    ...     f = tcompile.compile(lambda x: x + 1, backend=prof)
    ...     for size in (2, 3):
    ...         _ = f(np.ones(size))
    >>> prof.functions["<lambda>"].guard_failures
    Counter({'x.shape == (2,): seen (3,)': 1})
    >>> prof.report().splitlines()[0]  # doctest: +ELLIPSIS
    '1 function, 2 compiles in ... ms, 1 guard failure'
    """

    __name__ = "CompileProfiler"  # the name of this backend in displays

    def __init__(self) -> None:
        self.functions: dict[str, FunctionProfile] = {}
        self.loops: dict[tuple[str, int], LoopTimed] = {}
        self._lock = process.lock()
        self._stops: list[Callable[[], None]] = []

    def __enter__(self) -> CompileProfiler:
        self._stops.append(bus.subscribe(self._take) if not self._stops else lambda: None)
        return self

    def __exit__(self, *error: object) -> None:
        self._stops.pop()()

    def __call__(self, graph: Any, example_inputs: Sequence[Any]) -> Any:
        """Compiles a graph as the observing backend: the graph itself, which runs in NumPy."""
        return graph

    def _take(self, event: Event) -> None:
        with self._lock:
            if isinstance(event, LoopTimed):
                key = event.where.file, event.where.line
                self.loops[key] = event if key not in self.loops else merged(self.loops[key], event)
                return
            about = self.functions.setdefault(event.function, FunctionProfile(event.function))
            match event:
                case CompileFinished():
                    about.compiles += 1
                    about.compile_ms += event.ms
                    about.graphs += event.graphs
                    about.kernels += event.kernels
                case GraphCaptured():
                    about.ops += event.ops
                case CallTimed():
                    about.calls += event.calls
                    about.call_ms += event.ms * event.calls
                case GraphBroke():
                    line = event.where
                    place = f" ({file_label(line.file)}, line {line.line})" if line.file else ""
                    self._count(about, about.breaks, f"{event.headline} [{event.reason}]{place}", *event.hints)
                case GuardFailed():
                    text = f"{event.guard or event.source}: seen {event.seen}"
                    self._count(about, about.guard_failures, text, event.hint)
                case FellBack():
                    about.fallbacks[f"{event.reason}: {event.detail}" if event.detail else event.reason] += 1

    @staticmethod
    def _count(about: FunctionProfile, counter: Counter[str], text: str, *hints: str) -> None:
        counter[text] += 1
        if any(hints):
            about.hints[text] = "\n".join(filter(None, hints))

    def clear(self) -> None:
        """Discards all statistics."""
        with self._lock:
            self.functions.clear()
            self.loops.clear()

    def report(self) -> str:
        """Returns the statistics as text, functions with the longest compile times first."""
        reported = self._reported()
        if not reported:
            return "nothing was compiled"
        parts = [self._headline(reported), table(_HEAD, [_row(about) for about in reported])]
        if self.loops:
            parts.append(table(_LOOPS, self._loop_rows()))
        parts += [_details(about) for about in reported]
        return "\n\n".join(filter(None, parts))

    def _reported(self) -> list[FunctionProfile]:
        with self._lock:
            reported = [about for about in self.functions.values() if not about.empty]
        return sorted(reported, key=lambda about: (-about.compile_ms, about.name))

    def _loop_rows(self) -> list[tuple[str, ...]]:
        """Returns a row for each loop of a graph, the longest running first."""
        with self._lock:
            loops = sorted(self.loops.values(), key=lambda loop: -loop.ms)
        return [
            (
                f"{file_label(loop.where.file)}, line {loop.where.line}: {loop.where.text}", str(loop.runs),
                str(loop.iterations), f"{loop.ms:.1f}",
                f"{loop.ms / loop.iterations * 1e3:.3g}" if loop.iterations else "",
            )
            for loop in loops
        ]  # fmt: skip

    @staticmethod
    def _headline(reported: list[FunctionProfile]) -> str:
        compiles = sum(about.compiles for about in reported)
        parts = [
            f"{_number(len(reported), 'function')}, {_number(compiles, 'compile')} in "
            f"{sum(about.compile_ms for about in reported):.1f} ms"
        ]
        for noun, counts in (
            ("graph break", [about.breaks for about in reported]),
            ("guard failure", [about.guard_failures for about in reported]),
            ("fallback", [about.fallbacks for about in reported]),
        ):
            total = sum(counter.total() for counter in counts)
            parts += [_number(total, noun)] if total else []
        return ", ".join(parts)

    def __str__(self) -> str:
        return self.report()

    def __repr__(self) -> str:
        return f"<CompileProfiler: {self._headline(self._reported())}>"

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        from tcompile.observe.display import html

        return {"text/plain": html.printable(self.report()), "text/html": html.page(self.body())}

    _repr_html_ = html_form

    def body(self) -> str:
        """Returns the report as HTML, without its frame."""
        from tcompile.observe.display import html

        reported = self._reported()
        if not reported:
            return html.title("profile", "nothing was compiled")
        rows = [(f"<code>{html.short(name)}</code>", *figures) for name, *figures in map(_row, reported)]
        parts = [html.title("profile", f'<span class="tcd-dim">{html.text(self._headline(reported))}</span>')]
        parts.append(html.table(_HEAD, rows))
        if self.loops:
            rows = [(f"<code>{html.short(name, 80)}</code>", *figures) for name, *figures in self._loop_rows()]
            parts.append(html.table(_LOOPS, rows))
        for about in reported:
            for kind, counter in about.counters():
                for text, count in counter.most_common():
                    hints = about.hints.get(text, "").splitlines()
                    what = f"in <code>{html.short(about.name, 60)}</code>, {count} × {html.code(text, 300)}"
                    parts.append(html.note(kind, what, map(html.code, hints)))
        return "".join(parts)


_HEAD = ("function", "compiles", "ms", "graphs", "ops", "kernels", "calls", "µs a call")
_LOOPS = ("loop", "runs", "iterations", "ms", "µs an iteration")


def _row(about: FunctionProfile) -> tuple[str, ...]:
    each = f"{about.call_ms / about.calls * 1e3:.1f}" if about.calls else ""
    return (
        about.name or "(no function)", str(about.compiles), f"{about.compile_ms:.1f}", str(about.graphs),
        str(about.ops), str(about.kernels), str(about.calls), each,
    )  # fmt: skip


def _details(about: FunctionProfile) -> str:
    rows = []
    for title, counter in about.counters():
        rows += [f"{about.name or '(no function)'}: {title}"] if counter else []
        advice: dict[str, None] = {}
        for text, count in counter.most_common():
            rows.append(f"    {count} × {text}".replace("\n", "\n        "))
            advice.update(dict.fromkeys(about.hints.get(text, "").splitlines()))
        rows += [f"    Hint: {hint}" for hint in advice]
    return "\n".join(rows)


def _number(count: int, noun: str) -> str:
    return f"{count} {noun}{'' if count == 1 else 's'}"


__all__ = ["CompileProfiler", "FunctionProfile"]
