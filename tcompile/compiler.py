"""The pipeline as one column of named steps: capture, transforms, backend, entry program.

Input: a function's cache, the region where the captured code starts, and the frame's values there.
Output: one entry for the region.
Why: the whole compiler can be read at once, in the order in which it runs.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import sys
import time
import types
import weakref
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from tcompile import transforms
from tcompile.backends import Backend, find_backend, why_no_native, why_not_on
from tcompile.backends.compiled import CompiledGraph
from tcompile.callers import raise_if_callers
from tcompile.capture.context.loop_plan import LoopPlans
from tcompile.capture.context.options import CaptureOptions, Resumable
from tcompile.capture.entry.codegen import Captured, Rest
from tcompile.capture.entry.driver import Outcome, capture
from tcompile.capture.guards.entry_protocol import Start, start_of
from tcompile.capture.guards.graph_breaks import GraphBreak
from tcompile.capture.guards.prologue import Guard, LoadStep, Prologue, texts
from tcompile.capture.guards.sources import ParameterSource
from tcompile.collector import catch_up, no_collection
from tcompile.config import config
from tcompile.errors import BackendError, InvalidArgument, InvalidType, StanceError, Unsupported
from tcompile.frontends.base import CannotCapture, Frontend
from tcompile.frontends.numpy import NumPyFrontend
from tcompile.graph import Graph, ops
from tcompile.graph.verify import verify
from tcompile.observe import bus
from tcompile.observe.context import compiling, enter
from tcompile.observe.events import (
    CompileFinished,
    CompileStarted,
    FellBack,
    GraphBroke,
    GraphCaptured,
    Lazy,
    LoopDecided,
    RecompileStarted,
)
from tcompile.observe.source_location import UserLine
from tcompile.observe.warn import warn
from tcompile.runtime.cache import CompileSettings, Entry, FunctionCache, Region
from tcompile.runtime.debuggers import counts_lines
from tcompile.runtime.regions import Compiler, StaysPlain
from tcompile.runtime.rewritten import open_resume_points, open_resume_points_after, resumed_function, rewritten_of

# Never reported as bugs: errors meant for the user, and the recursion limit, near which plain Python takes over.
_PASSED_ON = (BackendError, InvalidArgument, InvalidType, StanceError)
_NUMPY = NumPyFrontend()
_reported: set[str] = set()  # reasons already reported for not capturing CuPy arrays
Program: TypeAlias = Callable[..., Any]  # takes a graph's inputs, returns the sequence of its outputs
Watcher: TypeAlias = Callable[[Graph, Sequence[Any], Backend, bool, Callable[[], Program]], Program]
watcher: Watcher | None = None  # wraps transforms and backend: calls them and inspects the result
timer: Callable[[Graph, Program], Program] | None = None  # wraps what a graph was compiled to


def frontends() -> tuple[Frontend, ...]:
    """Returns the libraries to capture: NumPy, and those that the user has imported: PyTorch, and CuPy if a GPU is
    available.
    """
    torch, cupy = sys.modules.get("torch"), sys.modules.get("cupy")
    if torch is None and cupy is None:
        return (_NUMPY,)
    found = [_NUMPY, _of_torch(torch), _of_cupy(cupy)]
    return tuple(frontend for frontend in found if frontend is not None)


def _of_torch(torch: types.ModuleType | None) -> Frontend | None:
    if torch is None or not hasattr(torch, "compile"):  # it is missing, or still being imported
        return None
    try:
        from tcompile.frontends.torch.frontend import FRONTEND  # imported late: processes without PyTorch skip the cost
        from tcompile.torch_optimizers import Stepper
    except ImportError as error:
        if "torch" not in _reported:
            _reported.add("torch")
            bus.emit(FellBack(reason="PyTorch's tensors are not captured", detail=str(error)))
        return None
    found: Any = FRONTEND
    found.stand_in_for_optimizer = Stepper
    return found  # type: ignore[no-any-return]


def _of_cupy(cupy: types.ModuleType | None) -> Frontend | None:
    if cupy is None:
        return None
    from tcompile.frontends.cupy import cupy_frontend, too_old  # imported late: processes without CuPy skip the cost

    reason = too_old(cupy) or why_not_on("cuda")
    if reason is None:
        return cupy_frontend(cupy)
    if reason not in _reported:
        _reported.add(reason)
        bus.emit(FellBack(reason="CuPy's arrays are not captured", detail=reason))
    return None


def compile_region(
    cache: FunctionCache, region: Region, values: Sequence[Any], reasons: Sequence[str], compiler: Compiler
) -> Entry:
    """Compiles one stretch of a function, from ``region``, for parameters such as ``values``.

    Raises StaysPlain if there is no native code and no other backend was requested, Unsupported for a graph break under
    ``fullgraph``, BackendError if the backend fails, and StanceError if the function changes the stance. An interrupt
    leaves the cache unchanged.
    """
    named = compiling(cache.name, f"{cache.number}/{cache.compiles}", cache.defined_in)
    with no_collection(), named, _traced() if cache.settings.traced else contextlib.nullcontext():
        return _compile_region(cache, region, values, reasons, compiler)


def _traced() -> contextlib.AbstractContextManager[None]:
    from tcompile.observe.folder import traced  # pages are opt-in

    return traced()


def _compile_region(
    cache: FunctionCache, region: Region, values: Sequence[Any], reasons: Sequence[str], compiler: Compiler
) -> Entry:
    """Runs the steps. Events belong to the compile that the caller has named."""
    settings = cache.settings
    if settings.backend == "auto" and frontends() == (_NUMPY,) and (reason := why_no_native()) is not None:
        raise StaysPlain(reason)
    index = cache.compiles
    started = time.perf_counter()
    phases: dict[str, float] = {}
    # Before any work: refuses an unregistered backend, and loads LLVM on its first use in a process.
    backend = _timed(phases, "load", lambda: find_backend(settings.backend))
    code = cache.code
    again = bool(region.entries)
    bus.emit(CompileStarted(reason="; ".join(reasons) or "first call", where=_where(code, region)))
    if again and reasons:
        bus.emit(RecompileStarted(number=index, reasons=tuple(reasons)))

    def capture_it() -> Outcome:
        return capture(
            code, cache.namespace, region.start, values, name=f"graph_{cache.number}_{index}", frontends=frontends(),
            options=_options(cache), profile=cache.profile, rewritten=lambda: rewritten_of(cache, code, compiler),
        )  # fmt: skip

    try:
        outcome = _timed(phases, "capture", capture_it)
    except _PASSED_ON:
        raise
    except Exception as error:
        raise_if_callers(error)
        outcome = _our_bug(cache.name, region, values, error)
    if not config.trace_numpy and outcome.captured.graph is not None and outcome.captured.graph.nodes:
        untraced = GraphBreak("numpy-untraced", "config.trace_numpy is False.", (_where(code, region),))
        outcome = Outcome(_by_types(region.start, values), untraced)
        bus.emit(FellBack(**cache.about, reason=untraced.reason.headline, detail=untraced.detail))
    broke = outcome.graph_break
    if broke is not None:
        refused = broke.is_error or (settings.fullgraph and broke.reason.id != "compiled-by-itself")
        if refused and broke.reason.id != "stress-break":
            raise Unsupported(broke.full_text())
        if not broke.reason.silent:
            _note_break(cache, broke)
    _emit_loops(outcome)
    captured = outcome.captured
    whole = captured.exit is None and region is cache.first
    stressed = config.stress_capture and captured.exit != region.start.offset
    if captured.does_nothing and not stressed and not (whole and not _no_work(captured.graph, values)):
        captured = captured.as_plain()
    write = functools.partial(_write_entry, cache, region, values, backend, compiler, phases, started, index)
    try:
        entry = write(captured, broke, outcome.plans)
    except _PASSED_ON:
        raise
    except CannotCapture as refusal:  # found when the graph was compiled
        broke = GraphBreak(
            refusal.reason, refusal.detail, (_where(code, region),), broke is not None and broke.is_error
        )
        if settings.fullgraph:
            raise Unsupported(broke.full_text()) from None
        captured = captured.as_plain()
        _note_break(cache, broke)
        entry = write(captured, broke, outcome.plans)
    except Exception as error:
        raise_if_callers(error)
        outcome = _our_bug(cache.name, region, values, error)
        captured, broke = outcome.captured, outcome.graph_break
        assert broke is not None
        _note_break(cache, broke)
        entry = write(captured, broke, outcome.plans)
    cache.compiles += 1
    if again and reasons:
        cache.recompiles.append(tuple(reasons))
    graph, compiled = captured.graph, entry.compiled_graph
    bus.emit(
        CompileFinished(
            outcome="plain" if graph is None else "compiled",
            backend=settings.backend_name,
            graphs=int(bool(graph is not None and graph.nodes)),
            kernels=len(entry.kernels),
            ms=entry.compile_ms,
            phases=phases,
            get_entry_code=Lazy(captured, Captured.source),
            get_graph_code=Lazy(compiled, lambda made: getattr(made, "source", "")) if compiled is not None else None,
        )
    )
    return entry


def _write_entry(
    cache: FunctionCache,
    region: Region,
    values: Sequence[Any],
    backend: Backend,
    compiler: Compiler,
    phases: dict[str, float],
    started: float,
    index: int,
    captured: Captured,
    broke: GraphBreak | None,
    plans: LoopPlans,
) -> Entry:
    """Compiles the captured graph and wraps it as an entry."""
    compiled: Callable[..., Any] | None = None
    if captured.graph is not None:
        compiled = _compile_graph(captured.graph, captured, values, backend, cache.settings, phases)
        compiled = compiled if timer is None else timer(captured.graph, compiled)
        captured.close()
    route: tuple[bool, ...] = ()
    if captured.exit is not None and cache.built is not None:
        cache.rewritten = cache.rewritten or cache.built
        open_resume_points(cache, captured, region)
        if captured.graph is not None:
            route = cache.built.route(captured.exit)
    follow = functools.partial(compiler.follow, cache, region)
    ours = compiled if backend.builtin else None  # results of third-party backends are opaque
    whole = captured.exit is None and region is cache.first
    trifling = not (whole or captured.stands_in) and _is_trifling(captured, ours)
    gains_nothing = _gains_nothing(captured, ours) if whole else trifling and not captured.calls
    runs = captured.as_plain() if gains_nothing else captured

    def program(keep: Callable[[Guard], bool] = lambda guard: True) -> Callable[..., Any]:
        made: Callable[..., Any] = runs.entry(compiled, route, follow, keep)
        return made

    if runs.has_loops:
        runs.continue_in = functools.partial(_continuation, weakref.ref(cache), region, compiler, plans)
    run = _timed(phases, "entry", program)
    if captured.graph is not None and isinstance(ours, CompiledGraph):
        captured.graph.compiled = weakref.ref(ours)
        catch_up()  # collected twice: machine code is generated now, and the entry was written before
        _timed(phases, "backend", ours.settle)
    milliseconds = (time.perf_counter() - started) * 1e3
    kernels = tuple(getattr(ours, "kernels", ()))
    rest = Rest(runs, compiled, route, follow)
    return Entry(
        index, runs, run, program, compiled, captured.graph, broke, kernels, milliseconds, cache.profile.stage, rest,
        trifling,
    )  # fmt: skip


def _continuation(
    held: weakref.ref[FunctionCache],
    region: Region,
    compiler: Compiler,
    plans: LoopPlans,
    place: tuple[str, int],
    values: Sequence[Any],
) -> Captured | None:
    """Returns the program that leads from the start of a stretch to the next iteration of a loop.

    Raises NoContinuation if there is none.
    """
    cache = held()
    if cache is None:
        return None
    code = cache.code
    options = dataclasses.replace(
        _options(cache), continues=place, arity=region.start.arity,
        resumable=functools.partial(_resumable, cache.settings, compiler),
    )  # fmt: skip
    outcome = capture(
        code, cache.namespace, region.start, values, name=f"continuation_{cache.number}", frontends=frontends(),
        options=options, profile=cache.profile, rewritten=lambda: rewritten_of(cache, code, compiler),
        plans=plans.copied(),
    )  # fmt: skip
    if outcome.graph_break is not None or outcome.captured.exit is None:  # capture did not reach the loop
        return None
    if cache.built is None or cache.built.first is None:
        return None
    return outcome.captured


def _resumable(settings: CompileSettings, compiler: Compiler, function: types.FunctionType) -> Resumable | None:
    """Returns the rewritten code of an inlined function, with a cache of its own; None if it cannot be resumed."""
    cache = FunctionCache.of(function, settings)
    rewritten = rewritten_of(cache, function.__code__, compiler)
    if rewritten is None or rewritten.first is None:
        return None

    def resume(
        function: types.FunctionType,
        offset: int,
        answer: tuple[Any, ...],
        stays_plain: bool,
        cells: tuple[types.CellType, ...],
    ) -> types.FunctionType:
        if not stays_plain:
            open_resume_points_after(cache, offset)
        given = functools.partial(_with_cells, answer, cells)
        return resumed_function(cache, compiler, function, given, stays_plain)

    return Resumable(rewritten, resume)


def _with_cells(answer: tuple[Any, ...], cells: Sequence[types.CellType], values: Sequence[Any]) -> tuple[Any, ...]:
    """The answer for a frame that has cells of its own among the ``values`` that it starts with, its own ones first."""
    own = dict(zip(map(id, cells), (value for value in values if type(value) is types.CellType), strict=False))
    for cell in cells:
        if cell != types.CellType():  # which is empty
            own[id(cell)].cell_contents = cell.cell_contents

    def moved(value: Any) -> Any:
        if type(value) is not types.FunctionType or not any(id(cell) in own for cell in value.__closure__ or ()):
            return value
        closure = tuple(own.get(id(cell), cell) for cell in value.__closure__ or ())
        made = types.FunctionType(value.__code__, value.__globals__, value.__name__, value.__defaults__, closure)
        made.__qualname__, made.__kwdefaults__ = value.__qualname__, value.__kwdefaults__
        return made

    *route, held = answer
    return (*route, tuple(map(moved, held)))


def _options(cache: FunctionCache) -> CaptureOptions:
    settings = cache.settings
    instructions = config.max_instructions * (_INSTRUCTIONS_OF_A_PATH if settings.follows_path else 1)
    return CaptureOptions(
        settings.dynamic, instructions, settings.enter_compiled, settings.exact,
        None if settings.fullgraph else config.max_unrolled, settings.plain_frame, counts_lines(),
        settings.follows_path, settings.splits_exit_loops,
    )  # fmt: skip


def _note_break(cache: FunctionCache, broke: GraphBreak) -> None:
    """Records a break, and reports it if it is new. A caller of this function may have reported it already."""
    if broke.reason.silent or (broke.reason.id == "not-differentiable" and cache.is_derivative):
        return  # the call raises DerivativeError, which says the same
    if any(broke.same_place(other) for other in cache.breaks):
        return
    cache.breaks.append(broke)
    if not any(broke.same_place(other) for other in cache.callers_breaks):
        _emit_break(broke)


def _where(code: types.CodeType, region: Region) -> UserLine:
    """Returns the user's line at which a region starts."""
    line = code.co_firstlineno
    if region.start.slots or region.start.offset != start_of(code).offset:
        lines = ((start, at) for start, end, at in code.co_lines() if at and start <= region.start.offset < end)
        line = next((at for _, at in lines), line)
    return UserLine(file=code.co_filename, line=line, function=code.co_name)


def _our_bug(name: str, region: Region, values: Sequence[Any], error: Exception) -> Outcome:
    """Reports an internal error with a warning and runs the frame in plain Python; ``config.verify`` raises it.

    A RecursionError near the caller's limit and a MemoryError are re-raised, not reported: they depend on this call
    only.
    """
    deep = isinstance(error, RecursionError) and _is_called_from_deep_down()
    if config.verify or deep or isinstance(error, MemoryError):
        raise error
    what = f"{type(error).__name__}: {error}"[:300]
    warn(
        f"tcompile failed on {name}, which runs in plain Python for such calls. This is a bug of "
        f"tcompile's; please report it with the function and this text: {what}"
    )
    broke = GraphBreak("internal-error", f"{what}.", ())
    return Outcome(_by_types(region.start, values), broke)


def _is_called_from_deep_down() -> bool:
    frame: types.FrameType | None = sys._getframe()
    depth = 0
    while frame is not None:
        frame, depth = frame.f_back, depth + 1
    return depth > sys.getrecursionlimit() // 2


def _no_work(graph: Graph | None, values: Sequence[Any]) -> bool:
    """Whether an entry would do nothing for arrays: no operations, no results, and no array among the arguments."""
    if graph is None:
        return True
    if graph.nodes or graph.outputs:
        return False
    return not any(frontend.type_of(value) is not None for frontend in frontends() for value in values)


def _gains_nothing(captured: Captured, compiled: Any) -> bool:
    """Whether a whole function is no faster than plain Python: it only calls NumPy routines, makes views, or writes
    once.
    """
    plan = getattr(compiled, "schedule", None)
    if plan is None or captured.exit is not None or captured.differs:
        return False
    if config.stress_capture or config.stress_breaks:
        return False
    if captured.effects:
        return len(captured.effects) == len(plan.graph.updates) and bool(plan.writes_once)
    return not plan.kernels and not any(node.regions or node.op in _OWN for node in plan.graph.nodes)


def _is_trifling(captured: Captured, compiled: Any) -> bool:
    """Whether a stretch inside a function computes only a few numbers, which plain Python does faster."""
    plan = getattr(compiled, "schedule", None)
    if plan is None or captured.differs or config.stress_capture or config.stress_breaks:
        return False
    if any(node.regions or node.op in _OWN for node in plan.graph.nodes):
        return False
    answer: bool = plan.computes_few_numbers(_FEW)
    return answer


_INSTRUCTIONS_OF_A_PATH = 100  # its loops are unrolled
_OWN = (ops.PYTHON_CALL, ops.SCALAR_LOOP)  # operations that NumPy lacks
_FEW = 12  # this many scalar operations cost as much as entering and leaving a stretch


def _by_types(start: Start, values: Sequence[Any]) -> Captured:
    """Returns a program that falls back to plain Python for parameters of these types."""
    prologue = Prologue()
    for position, (name, value) in enumerate(zip(start.names, values, strict=True)):
        cls = type(value)
        prologue.guard(
            ParameterSource(position, name),
            f"type({{}}) is {prologue.constant(cls)}",
            f"type({name}) is {cls.__qualname__}",
            cls.__qualname__,
            "type",
        )
    return Captured(None, prologue, start.arity)


def _compile_graph(
    graph: Graph,
    captured: Captured,
    values: Sequence[Any],
    backend: Backend,
    settings: CompileSettings,
    phases: dict[str, float],
) -> Callable[..., Any]:
    """Runs transforms and backend."""
    check = verify if config.verify else None
    if check is not None:
        check(graph)
    if graph.nodes:
        bus.emit(
            GraphCaptured(
                graph=graph.name,
                ops=graph.op_count,
                inputs=tuple(n.name for n in graph.inputs),
                guards=tuple(texts(captured.guards)),
                get_graph=Lazy(graph),
            )
        )
    if not graph.nodes:
        return graph
    of_tensors = backend.builtin and graph.is_of_tensors
    if graph.device != "cpu" and not graph.is_of_tensors:
        backend = find_backend(settings.backend, graph.device)
    wanted = watcher is not None or not backend.builtin or settings.options or of_tensors
    examples = _example_inputs(captured, values) if wanted else ()

    if of_tensors:
        from tcompile.tensor_programs import compile_tensor_graph  # which imports PyTorch

        made: Callable[..., Any] = _timed(phases, "backend", lambda: compile_tensor_graph(graph, examples, settings))
        return made

    def column() -> Callable[..., Any]:
        final = graph
        if backend.transformed:
            final = _timed(phases, "transforms", lambda: transforms.run(graph, check))
        compile = backend.compiler(dict(settings.options))
        try:
            compiled = _timed(phases, "backend", lambda: compile(final, examples))
            if not backend.builtin and isinstance(compiled, CompiledGraph):
                compiled.settle()  # a third-party backend does not settle a graph compiled by tcompile
        except Exception as error:
            raise_if_callers(error)
            if backend.builtin:
                raise
            raise BackendError(f"backend={backend.name!r} raised {type(error).__name__}: {error}") from error
        if not callable(compiled):
            raise BackendError(
                f"backend={backend.name!r} returned {type(compiled).__name__} {compiled!r}, not a callable"
            )
        made: Callable[..., Any] = compiled
        return made

    return column() if watcher is None else watcher(graph, examples, backend, settings.exact, column)


def _example_inputs(captured: Captured, values: Sequence[Any]) -> list[Any]:
    """Returns the inputs of this call, for third-party backends and for the autotuner."""
    variables: dict[str, Any] = {f"p{i}": value for i, value in enumerate(values)}
    for step in captured.prologue.steps:
        if isinstance(step, LoadStep):
            variables[step.variable] = eval(step.code, captured.prologue.constants, variables)
    return [variables[name] for name in captured.inputs]


def _emit_break(broke: GraphBreak) -> None:
    bus.emit(
        GraphBroke(
            reason=broke.reason.id,
            headline=broke.reason.headline,
            explanation=broke.explanation,
            hints=broke.reason.hints,
            where=broke.where,
            stack=broke.stack,
        )
    )


def _emit_loops(outcome: Outcome) -> None:
    """Reports the outcome of each loop."""
    for plan in outcome.loops if bus.active() else ():
        done = "one node" if plan.outcome == "node" else "unrolled" if plan.finished else "python"
        bus.emit(LoopDecided(outcome=done, reason=plan.reason, iterations=plan.iterations, where=plan.where))


def _timed(phases: dict[str, float], name: str, run: Callable[[], Any]) -> Any:
    enter(name)
    started = time.perf_counter()
    try:
        return run()
    finally:
        phases[name] = phases.get(name, 0.0) + (time.perf_counter() - started) * 1e3


__all__ = ["compile_region", "frontends"]
