"""Diagnosis of the faulty stage, in one call.

Input: a function, its arguments, and how to compile it with a given backend.
Output: a ``Diagnosis``: the outcome of a call in plain Python, under ``eager`` (capture), under ``aot_eager`` (the
transforms) and under the function's own backend; the first of them that differs; and, where that is not capture, the
smallest failing graph, and the transform.
Why: users need not know the stages to report a bug.
"""

from __future__ import annotations

import random
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import field
from pathlib import Path
from types import GeneratorType
from typing import Any

import numpy as np

from tcompile import transforms
from tcompile.backends import find_backend
from tcompile.debug.copying import copied
from tcompile.debug.differences import Difference, difference
from tcompile.debug.isolated import Worker
from tcompile.debug.judge import Column, Verdict, compare, copies
from tcompile.debug.minify import Minified, minify
from tcompile.debug.script import write_minified
from tcompile.errors import InvalidArgument
from tcompile.graph import Graph
from tcompile.observe.events import FellBack
from tcompile.observe.html_form import html_form
from tcompile.observe.recorder import Recorder
from tcompile.observe.tables import table
from tcompile.records import dataclass
from tcompile.stance import set_stance

Backend = str | Callable[..., Any]
_SECONDS = 20.0  # to search the smallest graph
_MEANING = {
    "plain": "plain Python itself does not give the same twice: nothing can be compared",
    "capture": "the graph is not what the function does",
    "transforms": "the graph is right, and what the transforms make of it is not",
    "backend": "what it is given is right, and what it makes of it is not",
}


@dataclass(frozen=True)
class Subject:
    """A function to diagnose. ``under(backend, exact)`` compiles it with another backend, and a cache of its own."""

    function: Callable[..., Any]
    under: Callable[[Backend, bool], Callable[..., Any]]
    backend: Backend
    exact: bool


@dataclass(frozen=True)
class Stage:
    """One stage: its name, its outcome ("" where it equals plain Python's), and its time."""

    name: str
    backend: str
    trouble: str
    ms: float


@dataclass(frozen=True)
class Diagnosis:
    """The result of ``diagnose``. ``at_fault`` is "capture", "transforms" or "backend", "plain", or None.

    ``smallest`` is the smallest failing graph found, and ``transform`` the name of the pass that changes it.
    """

    function: str
    stages: tuple[Stage, ...]
    at_fault: str | None
    smallest: Minified | None = None
    transform: str = ""
    notes: tuple[str, ...] = field(default=())

    def write_script(self, path: str | Path = "fault.py") -> Path:
        """Writes the smallest graph as a script that shows the fault. Raises InvalidArgument where there is none."""
        if self.smallest is None:
            raise InvalidArgument("there is no graph to write: " + self.headline)
        return write_minified(Path(path), self.smallest)

    @property
    def headline(self) -> str:
        """The result in one line."""
        if self.at_fault is None:
            return f"{self.function}: compiled code does what plain Python does"
        backend = next((s.backend for s in self.stages if s.name == self.at_fault), "")
        named = f"the backend {backend}" if self.at_fault == "backend" else self.at_fault
        by = f" (pass {self.transform})" if self.transform else ""
        return f"{self.function}: at fault is {named}{by}: {_MEANING[self.at_fault]}"

    def __str__(self) -> str:
        rows = [(s.name, s.backend, f"{s.ms:.1f}", s.trouble or "the same") for s in self.stages]
        head = ("stage", "backend", "ms", "compared with plain Python")
        parts = [self.headline, table(head, rows, left=len(head)), *self.notes]
        if self.smallest is not None:
            parts.append(f"The smallest graph that shows it\n{self.smallest.graph.readable()}\n{self.smallest.verdict}")
        return "\n\n".join(parts)

    def __repr__(self) -> str:
        return f"<Diagnosis: {self.headline}>"

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        from tcompile.observe.display import html

        good = '<span class="tcd-good">the same</span>'
        rows = [
            (html.text(stage.name), html.short(stage.backend), html.time(stage.ms),
             f'<span class="tcd-bad">{html.short(stage.trouble, 300)}</span>' if stage.trouble else good)
            for stage in self.stages
        ]  # fmt: skip
        parts = [html.title("diagnose", html.short(self.headline, 300))]
        parts.append(html.table(("stage", "backend", "time", "compared with plain Python"), rows, left=(0, 1, 3)))
        parts += [f'<div class="tcd-note">{html.short(note, 400)}</div>' for note in self.notes]
        if self.smallest is not None:
            parts.append(html.note("the smallest graph that shows it", html.short(self.smallest.verdict, 300)))
            parts.append(self.smallest.graph.view().inside(opened=True))
        return {"text/plain": html.printable(str(self)), "text/html": html.page("".join(parts))}

    _repr_html_ = html_form


@dataclass
class _Outcome:
    """The outcome of one call: its result or exception, and its arguments afterwards."""

    result: Any = None
    error: str = ""
    arguments: Any = None
    ms: float = 0.0

    def trouble(self, plain: _Outcome, tolerance: float) -> str:
        """The difference from the plain outcome; "" where there is none."""
        if self.error != plain.error:
            return f"raises {self.error or 'nothing'} where plain Python raises {plain.error or 'nothing'}"
        found = (
            difference(plain.result, self.result, attributes=True),
            difference(plain.arguments, self.arguments, "the arguments", attributes=True),
        )
        return next((text for one in found if (text := _told(one, tolerance))), "")


def _told(found: Difference, tolerance: float) -> str:
    if found.mismatch:
        return found.mismatch
    return f"{found.where}: numbers differ by {found.largest:.3g}" if found.scaled > tolerance else ""


def diagnose(
    subject: Subject, args: tuple[Any, ...], kwargs: dict[str, Any], isolate: bool, tolerance: float
) -> Diagnosis:
    """Runs the stages for one call. Arguments are copied for each run; the arguments themselves are not touched."""
    ladder = _Ladder(subject, (args, kwargs), isolate, tolerance)
    with set_stance.block("default"):
        at_fault = ladder.climb()
    smallest, transform = None, ""
    if at_fault in ("transforms", "backend"):
        smallest, transform = ladder.locate(at_fault)
    name = getattr(subject.function, "__qualname__", repr(subject.function))
    return Diagnosis(name, tuple(ladder.stages), at_fault, smallest, transform, tuple(ladder.notes))


class _Ladder:
    """One diagnosis: the stages that have run, and the graphs recorded on the way."""

    def __init__(self, subject: Subject, call: Any, isolate: bool, tolerance: float) -> None:
        self.subject = subject
        self.call = call
        self.isolate = isolate
        self.tolerance = tolerance
        self.stages: list[Stage] = []
        self.notes: list[str] = []
        self.graphs: list[tuple[Graph, list[Any]]] = []
        self.random = random.getstate(), np.random.get_state()

    def climb(self) -> str | None:
        """Runs one stage after the other, until one differs; returns its name."""
        with set_stance.block("force_eager"):
            plain = self._run(self.subject.function)
            again = self._run(self.subject.function)
        self.stages.append(Stage("plain", "", again.trouble(plain, self.tolerance), plain.ms))
        if self.stages[-1].trouble:
            return "plain"
        own = find_backend(self.subject.backend)
        exact = self.subject.exact
        ladder: list[tuple[str, Backend, str, bool]] = [("capture", self._recording, "eager", False)]
        if own.transformed and own.name != "aot_eager":
            ladder += [("transforms", "aot_eager", "aot_eager", exact)]
        if own.name != "eager":
            name = "transforms" if own.name == "aot_eager" else "backend"
            ladder += [(name, self.subject.backend, own.name, exact)]
        for name, backend, shown, exactly in ladder:
            trouble, ms = self._in_another_process(name, backend), 0.0
            if not trouble:
                with Recorder(this_thread=True) as seen:
                    outcome = self._run(self.subject.under(backend, exactly))
                trouble, ms = outcome.trouble(plain, self.tolerance), outcome.ms
                told = (f"{shown}: {event.function} {event.reason}: {event.detail}" for event in seen.of(FellBack))
                self.notes += dict.fromkeys(told)
            self.stages.append(Stage(name, shown, trouble, ms))
            if trouble:
                return name
        return None

    def _run(self, function: Callable[..., Any]) -> _Outcome:
        """Calls a function on copies of the arguments, with the random state of the first call.

        Floating-point conditions are ignored: otherwise compiled code would replay in plain Python, and nothing would
        be compared.
        """
        args, kwargs = copied(self.call)
        random.setstate(self.random[0])
        np.random.set_state(self.random[1])
        outcome = _Outcome()
        started = time.perf_counter()
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            try:
                outcome.result = function(*args, **kwargs)
                if isinstance(outcome.result, GeneratorType):
                    outcome.result = list(outcome.result)
            except Exception as error:
                outcome.error = f"{type(error).__name__}: {error}"
        outcome.ms = (time.perf_counter() - started) * 1e3
        outcome.arguments = (args, kwargs)
        return outcome

    def _recording(self, graph: Graph, example_inputs: Sequence[Any]) -> Callable[..., Any]:
        """The eager backend, which also records the graphs with the inputs that they are called with."""
        compiled = find_backend("eager").compile(graph, example_inputs)

        def run(*args: Any) -> Sequence[Any]:
            self.graphs.append((graph, copies(args)))
            return compiled(*args)

        return run

    def _in_another_process(self, name: str, backend: Backend) -> str:
        """The crash or hang of a graph in another process, where isolation is requested."""
        if not self.isolate or name == "capture":
            return ""
        column = Column(backend, exact=self.subject.exact)
        if column.name() is None:
            self.notes.append("another process cannot find this backend: it ran here")
            return ""
        with Worker(column) as worker:
            for graph, inputs in self.graphs:
                verdict = self._asked(lambda: worker.judge(graph, inputs, self.tolerance))  # noqa: B023  # asked now
                if verdict.kind in ("crash", "hang"):
                    return f"{graph.name}: {verdict}"
        return ""

    @staticmethod
    def _asked(ask: Callable[[], Verdict]) -> Verdict:
        try:
            return ask()
        except Exception as error:  # a graph without a text
            return Verdict("invalid", f"{type(error).__name__}: {error}")

    # -- inside a stage ------------------------------------------------------------------------------------------------
    def locate(self, at_fault: str) -> tuple[Minified | None, str]:
        """The smallest failing graph, and the transform that breaks it."""
        backend: Backend = "aot_eager" if at_fault == "transforms" else self.subject.backend
        column = Column(backend, exact=self.subject.exact)
        isolate = self.isolate and column.name() is not None
        for graph, inputs in self.graphs:
            try:
                found = minify(
                    graph, inputs, column, tolerance=self.tolerance, isolate=isolate, seconds=_SECONDS
                )  # fmt: skip
            except InvalidArgument:  # this graph does not fail
                continue
            except Exception as error:
                self.notes.append(f"{graph.name} could not be made smaller: {type(error).__name__}: {error}")
                continue
            return found, self._transform(found.graph, found.inputs) if at_fault == "transforms" else ""
        self.notes.append("No graph by itself shows it: it takes the whole function.")
        return None, ""

    def _transform(self, graph: Graph, inputs: list[Any]) -> str:
        """The first pass whose graph gives another result."""
        with np.errstate(all="ignore"):
            expected = graph(*copies(inputs))
            for name, transform in transforms.PIPELINE:
                try:
                    graph = transform(graph)
                    verdict = compare(expected, graph(*copies(inputs)), self.tolerance)
                except Exception:
                    return name
                if verdict.failed:
                    return name
        return ""


__all__ = ["Diagnosis", "Stage", "Subject", "diagnose"]
