"""The pipeline as one column of named steps.

Enters: a function, the values of its parameters in one call, its cache and settings. Leaves: one entry for the cache.
Exists so that a reader sees the whole compiler at once: capture, transforms, backend, entry program.
"""

from __future__ import annotations

import time
import types
import warnings
from collections.abc import Callable, Sequence
from typing import Any

from tcompile import transforms
from tcompile.backends import Backend, find_backend
from tcompile.capture.breaks import GraphBreak
from tcompile.capture.driver import Outcome, capture
from tcompile.capture.entries import local_names
from tcompile.capture.guards import LoadStep, Prologue
from tcompile.capture.program import Captured
from tcompile.capture.sources import LocalSource
from tcompile.capture.state import CaptureOptions
from tcompile.config import config
from tcompile.errors import BackendError, InvalidArgument, InvalidType, StanceError, Unsupported
from tcompile.frontends.base import Frontend
from tcompile.frontends.numpy import NumPyFrontend
from tcompile.graph import Graph
from tcompile.graph.verify import verify
from tcompile.observe import bus
from tcompile.observe.events import (
    CompileFinished,
    CompileStarted,
    GraphBroke,
    GraphCaptured,
    RecompileStarted,
    UserLine,
)
from tcompile.runtime.cache import Entry, FunctionCache, Settings

_FOR_THE_USER = (BackendError, InvalidArgument, InvalidType, StanceError)
FRONTENDS: tuple[Frontend, ...] = (NumPyFrontend(),)


def compile_cell(
    function: types.FunctionType, values: Sequence[Any], cache: FunctionCache, settings: Settings,
    reasons: Sequence[str],
) -> Entry:
    """``compile_call`` for the statements of a cell: compiled functions that they call keep entries of their own."""
    return compile_call(function, values, cache, settings, reasons, whole_program=False)


def compile_call(
    function: types.FunctionType,
    values: Sequence[Any],
    cache: FunctionCache,
    settings: Settings,
    reasons: Sequence[str],
    whole_program: bool = True,
) -> Entry:
    """Compiles one kind of call.

    Raises Unsupported for a graph break under ``fullgraph``, BackendError where the backend fails, and StanceError
    where the function changes the stance. An interrupt leaves the cache as it was.
    """
    index = cache.compiles
    compile_id = f"{cache.number}/{index}"
    started = time.perf_counter()
    phases: dict[str, float] = {}
    # Before any work: a backend that is gone is refused, and the first use of LLVM in a process loads it here.
    backend = _timed(phases, "load", lambda: find_backend(settings.backend))
    about: dict[str, Any] = {
        "function": function.__qualname__, "compile_id": compile_id, "cell": bus.current_cell.get(),
    }
    code = function.__code__
    where = UserLine(file=code.co_filename, line=code.co_firstlineno, function=code.co_name)
    bus.emit(CompileStarted(**about, reason="; ".join(reasons) or "first call", where=where))
    if index and reasons:
        bus.emit(RecompileStarted(**about, number=index, reasons=tuple(reasons)))

    try:
        outcome = _timed(phases, "capture", lambda: _capture(function, values, cache, settings, index, whole_program))
    except _FOR_THE_USER:
        raise
    except Exception as error:
        outcome = _our_bug(function, values, error)
    broke = outcome.graph_break
    if broke is not None and broke.reason.id != "compiled-by-itself":
        _tell_break(about, broke)
        if settings.fullgraph:
            raise Unsupported(broke.full_text())
    captured = outcome.captured
    graph = captured.graph
    if graph is not None and not config.stress_capture and _no_work(graph, values):
        captured, graph = _without_arrays(function, values), None
    compiled: Callable[..., Any] | None = None
    if graph is not None:
        try:
            compiled = _compile_graph(graph, captured, function, values, backend, about, phases)
        except _FOR_THE_USER:
            raise
        except Exception as error:
            outcome = _our_bug(function, values, error)
            captured, graph, broke = outcome.captured, None, outcome.graph_break
    run = _timed(phases, "entry", lambda: captured.entry(compiled))

    milliseconds = (time.perf_counter() - started) * 1e3
    kernels = tuple(getattr(compiled, "kernels", ()))
    entry = Entry(index, captured, run, compiled, graph, broke, kernels, milliseconds)
    cache.compiles += 1
    if broke is not None:
        cache.breaks.append(broke)
    if index and reasons:
        cache.recompiles.append(tuple(reasons))
    bus.emit(
        CompileFinished(
            **about, outcome="plain" if graph is None else "compiled", backend=settings.backend_name,
            graphs=int(bool(graph is not None and graph.nodes)), kernels=len(kernels), ms=milliseconds, phases=phases,
        )
    )
    return entry


def _capture(
    function: types.FunctionType, values: Sequence[Any], cache: FunctionCache, settings: Settings, index: int,
    enter_compiled: bool,
) -> Outcome:
    return capture(
        function, values, name=f"graph_{cache.number}_{index}", frontends=FRONTENDS,
        options=CaptureOptions(settings.dynamic, config.max_instructions, enter_compiled), profile=cache.profile,
    )


def _our_bug(function: types.FunctionType, values: Sequence[Any], error: Exception) -> Outcome:
    """A bug of tcompile's: a warning says so and the function runs in plain Python; ``config.verify`` raises it."""
    if config.verify:
        raise error
    what = f"{type(error).__name__}: {error}"[:300]
    warnings.warn(
        f"tcompile failed on {function.__qualname__}, which runs in plain Python for such calls. This is a bug of "
        f"tcompile's; please report it with the function and this text: {what}",
        stacklevel=7,
    )
    broke = GraphBreak("internal-error", f"{what}.", ())
    return Outcome(_without_arrays(function, values), broke)


def _no_work(graph: Graph, values: Sequence[Any]) -> bool:
    """Whether an entry would do nothing for arrays: no operations, no results, and no array among the arguments."""
    if graph.nodes or graph.outputs:
        return False
    return not any(frontend.type_of(value) is not None for value in values for frontend in FRONTENDS)


def _without_arrays(function: types.FunctionType, values: Sequence[Any]) -> Captured:
    """The program of a call without array work: plain Python for arguments of these types."""
    names = local_names(function.__code__)
    prologue = Prologue()
    for position, (name, value) in enumerate(zip(names, values, strict=True)):
        cls = type(value)
        prologue.guard(
            LocalSource(position, name), f"type({{}}) is {prologue.constant(cls)}",
            f"type({name}) is {cls.__qualname__}", cls.__qualname__, "type",
        )
    return Captured(None, prologue, len(names), plain_reason="no array work")


def _compile_graph(
    graph: Graph,
    captured: Captured,
    function: types.FunctionType,
    values: Sequence[Any],
    backend: Backend,
    about: dict[str, Any],
    phases: dict[str, float],
) -> Callable[..., Any]:
    """Transforms and backend."""
    check = verify if config.verify else None
    if check is not None:
        check(graph)
    if graph.nodes:
        bus.emit(
            GraphCaptured(
                **about, graph=graph.name, ops=graph.op_count, inputs=tuple(n.name for n in graph.inputs),
                readable=graph.readable(), code=graph.code, guards=tuple(g.text for g in captured.guards),
                get_graph=lambda: graph,
            )
        )
    if not graph.nodes:
        return graph
    final = graph
    if backend.transformed:
        final = _timed(phases, "transforms", lambda: transforms.run(graph, check))
    examples = _example_inputs(graph, captured, function, values)
    try:
        compiled = _timed(phases, "backend", lambda: backend.compile(final, examples))
    except Exception as error:
        if backend.builtin:
            raise
        raise BackendError(f"backend={backend.name!r} raised {type(error).__name__}: {error}") from error
    if not callable(compiled):
        raise BackendError(f"backend={backend.name!r} returned {type(compiled).__name__} {compiled!r}, not a callable")
    made: Callable[..., Any] = compiled
    return made


def _example_inputs(
    graph: Graph, captured: Captured, function: types.FunctionType, values: Sequence[Any]
) -> list[Any]:
    """The inputs of this call, for backends that look at them (ours do not need to)."""
    variables: dict[str, Any] = {"F": function, **{f"l{i}": v for i, v in enumerate(values)}}
    for step in captured.prologue.steps:
        if isinstance(step, LoadStep):
            variables[step.variable] = eval(step.code, captured.prologue.constants, variables)
    return [variables[name] for name in captured.inputs]


def _tell_break(about: dict[str, Any], broke: GraphBreak) -> None:
    bus.emit(
        GraphBroke(
            **about, reason=broke.reason.id, headline=broke.reason.headline, explanation=broke.explanation,
            hints=broke.reason.hints, where=broke.where, stack=broke.stack,
        )
    )


def _timed(phases: dict[str, float], name: str, run: Callable[[], Any]) -> Any:
    started = time.perf_counter()
    try:
        return run()
    finally:
        phases[name] = phases.get(name, 0.0) + (time.perf_counter() - started) * 1e3


__all__ = ["FRONTENDS", "compile_call"]
