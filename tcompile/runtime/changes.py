"""Changes that others make while a captured loop runs.

Input: the polls of running loops. Output: whether anything that the running entry has read has changed since, and then
a frame that goes on in plain Python with the loop's next iteration. Why: a signal handler or another thread that sets
``stop = True`` ends a loop of plain Python at its next test, and the captured loop has read ``stop`` once, before its
first iteration.

The first poll of a run writes the program that leads to the next iteration (``capture.continuation``): everything is
still as the run has read it. It is kept with the entry, and what it loads with the run's frame. When a later poll sees
a change, the loop ends with an iteration of its own; the program then takes the node's results as they are. Where there
is no such program, the stretch is done again from its start, as if the change had come before the loop.
"""

from __future__ import annotations

import sys
import types
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from types import CellType
from typing import Any

import numpy as np

from tcompile import polls, reentry
from tcompile.callers import raise_if_callers
from tcompile.capture.entries import MISS
from tcompile.capture.program import ENTRY_FILE, Captured, Rest
from tcompile.graph import Graph, Node, TensorType
from tcompile.graph.evaluate import run
from tcompile.graph.ops.control import LOOPS
from tcompile.graph.ops.element_loop import PYTHON, dtype_of
from tcompile.observe import bus
from tcompile.observe.events import FellBack
from tcompile.polls import Changed
from tcompile.records import dataclass
from tcompile.runtime.cache import FunctionCache

_KEPT = "continuation"  # the variable of an entry program's frame that holds the run's continuation


@dataclass(frozen=True)
class Resumed:
    """A run that was paused.

    Attributes:
        answer: what leads the function's host to the loop's next iteration, given what the frame holds where the
            stretch starts: its cells may be others than those that the run was given.
    """

    answer: Callable[[Sequence[Any]], tuple[Any, ...]]
    is_scalar: bool  # the loop's iterations are scalar code, which plain Python does sooner than stretches one by one


@dataclass(frozen=True)
class _Continuation:
    """The program that leads to the next iteration, and what it has loaded while nothing had changed."""

    captured: Captured
    loaded: Mapping[str, Any] = field(default_factory=dict)


def _has_changed() -> bool:
    """Looks again at what the innermost entry has read that runs in this thread."""
    frame: types.FrameType | None = sys._getframe(1)
    while frame is not None and not _is_entry(frame):
        frame = frame.f_back
    if frame is None:
        return False
    captured: Captured = frame.f_globals["captured"]
    known = frame.f_locals
    names = [f"p{number}" for number in range(captured.arity)]
    if not all(name in known for name in names):
        return False
    parameters = [known[name] for name in names]
    if captured.reread.has_changed(parameters, known):
        return True
    if _KEPT not in known:
        known[_KEPT] = None if reentry.is_inside() else _prepare(captured, parameters)
        if captured.reread.has_changed(parameters, known):  # meanwhile: what was prepared may be of the new state
            known[_KEPT] = None
            return True
    return False


def _is_entry(frame: types.FrameType) -> bool:
    return frame.f_code.co_filename == ENTRY_FILE and "captured" in frame.f_globals


polls.register(_has_changed)


@reentry.slow
def _prepare(captured: Captured, parameters: Sequence[Any]) -> _Continuation | None:
    """The continuation of a run with these parameters; None where the run cannot go on in the middle of its loop."""
    assert captured.graph is not None
    loop = next((node for node in captured.graph.nodes if node.op in LOOPS), None)
    if captured.continue_in is None or loop is None:
        return None
    if captured.continuation is None:
        try:
            made = captured.continue_in(loop.name, parameters)
        except Exception as error:  # what is not known here is not needed to be right
            raise_if_callers(error)
            made = None
        captured.continuation = (made,)
    (found,) = captured.continuation
    if found is None:
        return None
    extra = [1] * (1 + len(found.late_kinds or ()))
    loaded = found.reread.load([*parameters, *extra])
    if loaded is None:
        return None
    return _Continuation(found, dict(zip(found.reread.variables, loaded, strict=True)) | _named(parameters))


def _named(parameters: Sequence[Any]) -> dict[str, Any]:
    return {f"p{number}": value for number, value in enumerate(parameters)}


def go_on(error: Changed, cache: FunctionCache) -> Any:
    """What a run that was paused comes to: Resumed, or MISS where the stretch is to be done again."""
    answer = None
    found = _continuation_of(error) if error.loop else None
    if found is not None:
        try:
            answer = _answer(error, found, cache)
        except _Unlike:
            answer = None
    how = "does the stretch again" if answer is None else "goes on in plain Python with the next iteration"
    bus.emit(FellBack(**cache.about, reason="what a loop reads has changed", detail=f"the call {how}"))
    return MISS if answer is None else Resumed(answer, bool(len(error.variables)))


def _continuation_of(error: Changed) -> _Continuation | None:
    """What the paused run has prepared, from the frame of its entry program."""
    traceback = error.__traceback__
    while traceback is not None:
        if _is_entry(traceback.tb_frame):
            found: _Continuation | None = traceback.tb_frame.f_locals.get(_KEPT)
            return found
        traceback = traceback.tb_next
    return None


class _Unlike(Exception):
    """The node of the continuation is another one than that of the run."""


def _answer(error: Changed, found: _Continuation, cache: FunctionCache) -> Callable[[Sequence[Any]], tuple[Any, ...]]:
    captured, graph = found.captured, found.captured.graph
    assert graph is not None and captured.exit is not None and cache.built is not None
    node = next((node for node in graph.nodes if node.name == error.loop), None)
    if node is None:
        raise _Unlike
    results = [_results(graph, node, error)]  # taken out once: the program's names hold one another
    late = _late_numbers(captured, error)
    given = {f"p{captured.arity + place}": value for place, value in enumerate(late)}
    variables = {**found.loaded, **given}
    for step in captured.prologue.steps:  # what was loaded in place of these parameters
        code = getattr(step, "variable", None) and step.code
        if code in given:
            variables[step.variable] = given[code]  # type: ignore[union-attr]

    def evaluated(*inputs: Any) -> tuple[Any, ...]:
        with np.errstate(all="ignore"):
            return run(graph, inputs, known={node: results.pop()})

    rest = Rest(captured, evaluated, cache.built.route(captured.exit), None)

    def answer(values: Sequence[Any]) -> tuple[Any, ...]:
        cells = {id(variables[f"p{place}"]): value for place, value in enumerate(values) if type(value) is CellType}
        held = {name: cells.get(id(value), value) for name, value in variables.items()}
        made: tuple[Any, ...] = rest.function(sorted(held), False, None)(**held)
        return made

    return answer


def _results(graph: Graph, node: Node, error: Changed) -> tuple[Any, ...]:
    """The results of the node, those of an ``exit_loop`` with the number of iterations and the way out behind them."""
    results = list(error.results)
    if node.op == "exit_loop":
        results += [np.asarray(error.iterations), np.asarray(0)]
    for get in graph.nodes:
        if get.op == "get" and get.inputs[0] is node:
            place = get.attrs["index"]
            if place >= len(results) or not _fits(results[place], get.type):
                raise _Unlike
    return tuple(results)


def _fits(value: Any, type: Any) -> bool:
    if not isinstance(type, TensorType):
        return isinstance(value, int | float)
    array = np.asarray(value)
    known = [size for size in type.shape if isinstance(size, int)]
    return array.dtype == type.dtype and array.ndim == type.ndim and len(known) <= array.ndim


def _late_numbers(captured: Captured, error: Changed) -> list[Any]:
    """The parameters behind the entry's own: the iterations, and the numbers that a scalar loop holds."""
    kinds = captured.late_kinds or ()
    words = error.variables
    if not len(words):
        return [error.iterations]
    numbers = []
    for kind, word in zip(kinds, words[1:], strict=False):
        value = np.asarray(word).reshape(1).view(np.uint8)[: dtype_of(kind).itemsize].view(dtype_of(kind))[0]
        numbers.append(PYTHON[kind](value) if kind in PYTHON else value)
    return [int(words[0]), *numbers]


__all__ = ["Resumed", "go_on"]
