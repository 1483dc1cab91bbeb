"""Resumes a paused loop: evaluates its continuation and returns where the frame continues.

Input: an entry while its loop runs, and later the loop's results after its last iteration.
Output: where the rewritten code resumes, with which locals and stack.
Why: separate from ``changes``, so that a process without such changes does not load it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from types import CellType
from typing import Any

import numpy as np

from tcompile.callers import raise_if_callers
from tcompile.capture.entry.codegen import Captured, Rest
from tcompile.graph import Graph, Node, TensorType, ops
from tcompile.graph.evaluate import run
from tcompile.graph.ops.control import LOOPS
from tcompile.graph.ops.scalar_loop import PYTHON, dtype_of, held_versions
from tcompile.polls import Changed
from tcompile.records import dataclass
from tcompile.runtime.cache import FunctionCache


@dataclass(frozen=True)
class Continuation:
    """The program that leads to the next iteration, with the values loaded before any change.

    ``earlier`` holds results of loops that the run has finished, by loop name and result number.
    """

    captured: Captured
    loaded: Mapping[str, Any] = field(default_factory=dict)
    earlier: dict[tuple[str, int], Any] = field(default_factory=dict)


def prepare(captured: Captured, loop: str, parameters: Sequence[Any]) -> dict[tuple[str, int], Continuation | None]:
    """Returns the continuations of a run with these parameters, one for each version of the loop's iteration."""
    graph = captured.graph
    node = None if graph is None else next((node for node in graph.nodes if node.name == loop), None)
    versions = held_versions(node.attrs["program"]) if node is not None and node.op is ops.SCALAR_LOOP else 1
    places = [(loop, version) for version in range(max(versions, 1))]  # one at least: what cannot go on is kept, too
    return {place: prepared(captured, place, parameters) for place in places}


def prepared(captured: Captured, place: tuple[str, int], parameters: Sequence[Any]) -> Continuation | None:
    """Returns the continuation of a run with these parameters; None if its loop cannot be resumed in the middle."""
    if captured.continue_in is None:
        return None
    if place not in captured.continuations:
        try:
            made = captured.continue_in(place, parameters)
        except Exception as error:  # an optimisation: any failure means no continuation
            raise_if_callers(error)
            made = None
        captured.continuations[place] = made
    found = captured.continuations[place]
    if found is None:
        return None
    extra = [1] * (1 + len(found.late_kinds or ()))
    loaded = found.reread.load([*parameters, *extra])
    if loaded is None:
        return None
    return Continuation(found, dict(zip(found.reread.variables, loaded, strict=True)) | _named(parameters))


def _named(parameters: Sequence[Any]) -> dict[str, Any]:
    return {f"p{number}": value for number, value in enumerate(parameters)}


class Unlike(Exception):
    """The continuation's node differs from the one that ran."""


def answer(error: Changed, found: Continuation, cache: FunctionCache) -> Callable[[Sequence[Any]], tuple[Any, ...]]:
    """Returns a function from the resumed frame's parameters to the resume point, locals and stack.

    The frame has cells of its own. Raises Unlike if the results cannot be used, or NumPy would warn.
    """
    captured, graph = found.captured, found.captured.graph
    assert graph is not None and captured.exit is not None and cache.built is not None
    node = next((node for node in graph.nodes if node.name == error.loop), None)
    if node is None:
        raise Unlike
    known = [_known(graph, node, error, found.earlier)]  # popped once: the program's names reference one another
    late = _late_numbers(captured, error)
    given = {f"p{captured.arity + place}": value for place, value in enumerate(late)}
    variables = {**found.loaded, **given}
    for step in captured.prologue.steps:  # values loaded from these parameters
        code = getattr(step, "variable", None) and step.code
        if code in given:
            variables[step.variable] = given[code]  # type: ignore[union-attr]

    # What ran before the loop has raised no flag, or plain Python had repeated it. What had not run yet may raise one.
    modes: dict[str, Any] = {kind: mode if mode == "ignore" else "raise" for kind, mode in np.geterr().items()}
    try:
        with np.errstate(**modes):
            results = [run(graph, [variables[name] for name in captured.inputs], known=known.pop())]
    except FloatingPointError:
        raise Unlike from None

    def evaluated(*_: Any) -> tuple[Any, ...]:
        return results.pop()

    # A function that is called next is called as it is, in plain Python.
    rest = Rest(captured, evaluated, cache.built.route(captured.exit), lambda called: called)

    def answered(values: Sequence[Any]) -> tuple[Any, ...]:
        cells = {id(variables[f"p{place}"]): value for place, value in enumerate(values) if type(value) is CellType}
        held = {name: cells.get(id(value), value) for name, value in variables.items()}
        made: tuple[Any, ...] = rest.function(sorted(held), False, None)(**held)
        return made

    return answered


def _known(graph: Graph, node: Node, error: Changed, earlier: Mapping[tuple[str, int], Any]) -> dict[Node, Any]:
    """Returns the values of the paused loop's node, and of others that are known or not needed.

    Raises Unlike if another loop would have to run again.
    """
    known: dict[Node, Any] = {node: _results(graph, node, error)}
    for get in graph.nodes:
        value = earlier.get((get.inputs[0].name, get.attrs["index"])) if get.op is ops.GET else None
        if value is not None and get.inputs[0] is not node and _fits(value, get.type):
            known[get] = value
    needed: set[Node] = set()
    waiting = [*graph.outputs]
    while waiting:
        other = waiting.pop()
        if other not in needed:
            needed.add(other)
            waiting += () if other in known else other.inputs
    if any(other.op in LOOPS and other not in known for other in needed):
        raise Unlike
    return {**dict.fromkeys(other for other in graph.nodes if other not in needed), **known}


def _results(graph: Graph, node: Node, error: Changed) -> tuple[Any, ...]:
    """Returns the node's results; those of an ``exit_loop`` end with the iteration count and the exit taken."""
    results = list(error.results)
    if node.op is ops.EXIT_LOOP:
        results += [np.asarray(error.iterations), np.asarray(0)]
    for get in graph.nodes:
        if get.op is ops.GET and get.inputs[0] is node:
            place = get.attrs["index"]
            if place >= len(results) or not _fits(results[place], get.type):
                raise Unlike
    return tuple(results)


def _fits(value: Any, type: Any) -> bool:
    if not isinstance(type, TensorType):
        return isinstance(value, int | float)
    array = np.asarray(value)
    pairs = zip(array.shape, type.shape, strict=False)
    same = all(have == size for have, size in pairs if isinstance(size, int))
    return array.dtype == type.dtype and array.ndim == type.ndim and same


def _late_numbers(captured: Captured, error: Changed) -> list[Any]:
    """Returns the parameters after the entry's own: the iterations, and the numbers that a scalar loop holds."""
    kinds = captured.late_kinds or ()
    words = error.variables
    if not len(words):
        return [error.iterations]
    numbers = []
    for kind, word in zip(kinds, words[2:], strict=False):
        value = np.asarray(word).reshape(1).view(np.uint8)[: dtype_of(kind).itemsize].view(dtype_of(kind))[0]
        numbers.append(PYTHON[kind](value) if kind in PYTHON else value)
    return [int(words[0]), *numbers]


__all__ = ["Continuation", "Unlike", "answer", "prepare", "prepared"]
