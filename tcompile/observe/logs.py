"""Logs: the event stream as text, switched on and off by artefact.

Input: ``set_logs(graph=True)``, or the variable ``TCOMPILE_LOGS`` when tcompile is imported.
Output: records of the standard loggers ``tcompile.<artefact>``.
Why: users read what happened without code. Records go to stderr without configuration, notebooks included, and wherever
the program's own logging sends them.
"""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Callable, Iterator
from typing import Any, Literal, TextIO, TypeAlias

from tcompile.errors import InvalidArgument, InvalidType, did_you_mean
from tcompile.observe import bus
from tcompile.observe.events import (
    CacheHit,
    CacheMiss,
    CallTimed,
    CompileFinished,
    CompileStarted,
    CudaGraphSkipped,
    Event,
    FellBack,
    GraphBroke,
    GraphCaptured,
    GuardFailed,
    KernelCompiled,
    LoopDecided,
    LoopTimed,
    PassFinished,
    RecompileStarted,
    StanceChanged,
)  # fmt: skip
from tcompile.observe.explain import iterations_text, loop_text
from tcompile.observe.source_location import file_label, format_line, format_stack

Switch: TypeAlias = bool | Literal["+"] | None

ARTIFACTS = {
    "graph": "each captured graph as a listing",
    "graph_code": "each captured graph as Python that runs",
    "graph_breaks": "what could not be captured, where, and what to do; + adds the callers' lines",
    "guards": "the checks under which compiled code is used again",
    "recompiles": "why a function is compiled again; + adds every guard that failed",
    "compiles": "begin and end of each compile, with times",
    "passes": "each transform, with time and number of operations; + adds the graph after it",
    "schedule": "which operations and which of the user's lines each kernel holds",
    "kernel_code": "each kernel's intermediate code; + adds its assembly",
    "output_code": "the program that runs a graph's kernels, and the one that checks guards and calls it",
    "cache": "what was found in the disk cache, and what was not",
    "perf_hints": "calls that run in plain Python, and why",
    "stances": "changes of the stance",
    "calls": "the time of each call",
}
VARIABLE = "TCOMPILE_LOGS"
# torch.compile's names for logs, with the closest log here.
_KNOWN_ELSEWHERE = {
    "aot": "passes", "aot_graphs": "passes", "post_grad_graphs": "passes", "pre_grad_graphs": "passes",
    "bytecode": "output_code", "caching": "cache", "compilation_metrics": "compiles", "dynamic": "guards",
    "dynamo": "compiles", "fusion": "schedule", "graph_sizes": "graph", "inductor": "kernel_code",
    "ir_post_fusion": "schedule", "ir_pre_fusion": "passes", "recompiles_verbose": "recompiles",
    "sym_node": "guards", "trace_source": "graph", "verbose_guards": "guards",
}  # fmt: skip

_on: dict[str, bool] = {}  # artefact: whether in detail
_unsubscribe: Callable[[], None] | None = None
_root = logging.getLogger("tcompile")


def set_logs(
    artifacts: str | None = None,
    *,
    all: Switch = None,
    graph: Switch = None,
    graph_code: Switch = None,
    graph_breaks: Switch = None,
    guards: Switch = None,
    recompiles: Switch = None,
    compiles: Switch = None,
    passes: Switch = None,
    schedule: Switch = None,
    kernel_code: Switch = None,
    output_code: Switch = None,
    cache: Switch = None,
    perf_hints: Switch = None,
    stances: Switch = None,
    calls: Switch = None,
    **unknown: Switch,
) -> None:
    """Switches logs on (True), on in detail ("+") or off (False); logs not named stay as they are.

    Parameters
    ----------
    artifacts : str, optional
        The form of the variable TCOMPILE_LOGS: names with commas between them, ``+`` before a name for detail, ``-``
        for off, as in ``set_logs("+graph_breaks,guards,-graph")``.
    all : bool or "+", optional
        Every log; it goes first.
    graph, graph_code, graph_breaks, guards, recompiles, compiles, passes : bool or "+", optional
        What capture and the transforms do.
    schedule, kernel_code, output_code : bool or "+", optional
        What the backend does.
    cache, perf_hints, stances, calls : bool or "+", optional
        What happens around calls.
    **unknown
        No other name is valid.

    Raises
    ------
    InvalidArgument
        For a name that does not exist; then nothing is changed.

    Examples
    --------
    >>> set_logs(graph=True)
    >>> set_logs(graph=False)
    """
    given: dict[str, Switch] = {
        "all": all, "graph": graph, "graph_code": graph_code, "graph_breaks": graph_breaks, "guards": guards,
        "recompiles": recompiles, "compiles": compiles, "passes": passes, "schedule": schedule,
        "kernel_code": kernel_code, "output_code": output_code, "cache": cache, "perf_hints": perf_hints,
        "stances": stances, "calls": calls, **unknown,
    }  # fmt: skip
    switches = list(_parsed(artifacts)) if artifacts is not None else []
    switches += [(name, _checked(name, value)) for name, value in given.items() if value is not None]
    switches.sort(key=lambda switch: switch[0] != "all")
    for name, value in switches:
        for artifact in ARTIFACTS if name == "all" else (name,):
            if value is False:
                _on.pop(artifact, None)
            else:
                _on[artifact] = value == "+"
    _listen()


def _parsed(text: str) -> Iterator[tuple[str, Switch]]:
    if not isinstance(text, str):
        raise InvalidType(f"set_logs takes names in one string, such as 'graph,guards', got {text!r}")
    for item in filter(None, map(str.strip, text.split(","))):
        sign = item[0] if item[0] in "+-" else ""
        name = item[len(sign) :].strip()
        yield name, _checked(name, "+" if sign == "+" else sign == "")


def _checked(name: str, value: Any) -> Switch:
    if name not in ARTIFACTS and name != "all":
        best = _KNOWN_ELSEWHERE.get(name)
        hint = f" Did you mean {best!r}?" if best else did_you_mean(name, [*ARTIFACTS, "all"])
        raise InvalidArgument(f"there is no log {name!r}.{hint} Logs: {', '.join(ARTIFACTS)}, all")
    if not isinstance(value, bool) and value != "+":
        raise InvalidType(f"{name} must be True, False or '+', got {value!r}")
    return value  # type: ignore[no-any-return]


def _listen() -> None:
    """Subscribes while a log is on."""
    global _unsubscribe
    if _unsubscribe is not None:
        _unsubscribe()
        _unsubscribe = None
    if _on:
        _unsubscribe = bus.subscribe(_log, calls="calls" in _on)
        if not any(isinstance(handler, _ToStderr) for handler in _root.handlers):
            _root.addHandler(_ToStderr())
        if _root.level == logging.NOTSET:
            _root.setLevel(logging.INFO)


class _ToStderr(logging.StreamHandler[TextIO]):
    """Writes to the current ``sys.stderr``, unless the program's own logging shows the record there."""

    def __init__(self) -> None:
        logging.Handler.__init__(self)

    @property
    def stream(self) -> TextIO:  # type: ignore[override]  # looked up anew: notebooks and tests replace it
        return sys.stderr

    def emit(self, record: logging.LogRecord) -> None:
        shown = _root.propagate and any(
            isinstance(handler, logging.StreamHandler) and handler.stream in (sys.stderr, sys.stdout)
            for handler in logging.getLogger().handlers
        )
        if not shown:
            super().emit(record)


def _log(event: Event) -> None:
    for artifact, kind, text in _WRITERS:
        if artifact in _on and isinstance(event, kind):
            body = text(event, _on[artifact])
            if body:
                who = f"{event.function}: " if event.function else ""
                compile_id = f"[{event.compile_id}] " if event.compile_id else ""
                logging.getLogger(f"tcompile.{artifact}").info("%s%s%s", compile_id, who, body)


# -- one function per text: the first line goes after "[compile id] function: " --------------------


def _graph(event: GraphCaptured, detail: bool) -> str:
    return "captured " + event.readable


def _graph_code(event: GraphCaptured, detail: bool) -> str:
    return f"code of {event.graph or 'the graph'}\n{_indent(event.code)}"


def _guards(event: GraphCaptured, detail: bool) -> str:
    return f"{_count(len(event.guards), 'guard')} of {event.graph or 'the graph'}\n" + _lines(event.guards)


def _graph_break(event: GraphBroke, detail: bool) -> str:
    stack = event.stack if detail and event.stack else (event.where,)
    rows = [f"graph break: {event.headline} [{event.reason}]"]
    rows += [format_stack(stack, title="")] if stack[-1].file else []
    rows += [_indent(text) for text in (event.explanation, *(f"Hint: {hint}" for hint in event.hints)) if text]
    return "\n".join(rows)


def _loop(event: LoopDecided, detail: bool) -> str:
    row = loop_text(event)
    return "\n".join([row, format_stack((event.where,), title="")]) if event.where.file else row


def _recompile(event: RecompileStarted, detail: bool) -> str:
    return f"recompile {event.number}, because no entry fits this call\n" + _lines(event.reasons)


def _guard_failed(event: GuardFailed, detail: bool) -> str:
    if not detail:
        return ""
    values = f": expected {event.expected}, seen {event.seen}" if event.expected or event.seen else ""
    hint = f"\n    Hint: {event.hint}" if event.hint else ""
    return f"guard of entry {event.entry} failed: {event.guard or event.source}{values}{hint}"


def _started(event: CompileStarted, detail: bool) -> str:
    place = f"\n{format_line(event.where)}" if event.where.file else ""
    return f"compiling, {event.reason}{place}"


def _finished(event: CompileFinished, detail: bool) -> str:
    phases = ", ".join(f"{phase} {ms:.2f}" for phase, ms in event.phases.items())
    made = f"{_count(event.graphs, 'graph')}, {_count(event.kernels, 'kernel')}"
    by = f" by {event.backend}" if event.backend else ""
    outcome = f"compiled{by}" if event.outcome == "compiled" else "stays in plain Python"
    return f"{outcome} in {event.ms:.2f} ms: {made}" + (f" (ms: {phases})" if phases else "")


def _pass(event: PassFinished, detail: bool) -> str:
    head = f"pass {event.name}: {event.before} to {event.after} ops in {event.ms:.2f} ms"
    graph = event.get_graph() if detail and event.get_graph is not None else None
    return f"{head}\n{_indent(graph.readable())}" if graph is not None else head


def _output_code(event: CompileFinished, detail: bool) -> str:
    programs = (("around the kernels", event.get_graph_code), ("of the entry", event.get_entry_code))
    texts = [(title, get() or "") for title, get in programs if get is not None]
    return "\n".join(f"program {title}\n{_indent(text)}" for title, text in texts if text)


def _cache_hit(event: CacheHit, detail: bool) -> str:
    return f"found {event.key} in the disk cache in {event.ms:.2f} ms"


def _cache_miss(event: CacheMiss, detail: bool) -> str:
    return f"{event.key} is not in the disk cache" + (f": {event.reason}" if event.reason else "")


def _schedule(event: KernelCompiled, detail: bool) -> str:
    rows = [f"kernel {event.kernel}" + (f": {event.description}" if event.description else "")]
    rows += [f"    {_count(len(event.nodes), 'op')}: {', '.join(event.nodes)}"] if event.nodes else []
    rows += dict.fromkeys(format_line(line, caret=False) for line in event.lines)
    return "\n".join(rows)


def _kernel_code(event: KernelCompiled, detail: bool) -> str:
    rows = [f"kernel {event.kernel}, compiled in {event.ms:.2f} ms"]
    rows += [_indent(event.get_ir())] if event.get_ir is not None else []
    rows += ["assembly", _indent(event.get_assembly())] if detail and event.get_assembly is not None else []
    return "\n".join(rows)


def _fell_back(event: FellBack, detail: bool) -> str:
    return f"runs in plain Python: {event.reason}" + (f"\n{_indent(event.detail)}" if event.detail else "")


def _skipped(event: CudaGraphSkipped, detail: bool) -> str:
    return f"no CUDA graph for {event.graph}: {event.reason}"


def _stance(event: StanceChanged, detail: bool) -> str:
    where = "" if event.scope == "process" else f" ({event.scope})"
    return f"stance {event.previous} to {event.stance}{where}"


def _call(event: CallTimed, detail: bool) -> str:
    return f"{event.path} call, {event.ms:.3f} ms"


def _iterations(event: LoopTimed, detail: bool) -> str:
    runs = "" if event.runs == 1 else f" in {event.runs} runs"
    return f"the loop of {file_label(event.where.file)}, line {event.where.line}: {iterations_text(event)}{runs}"


_WRITERS: list[tuple[str, type[Event], Callable[[Any, bool], str]]] = [
    ("compiles", CompileStarted, _started),
    ("recompiles", GuardFailed, _guard_failed),
    ("recompiles", RecompileStarted, _recompile),
    ("graph", GraphCaptured, _graph),
    ("graph_code", GraphCaptured, _graph_code),
    ("guards", GraphCaptured, _guards),
    ("graph_breaks", GraphBroke, _graph_break),
    ("passes", PassFinished, _pass),
    ("schedule", KernelCompiled, _schedule),
    ("kernel_code", KernelCompiled, _kernel_code),
    ("cache", CacheHit, _cache_hit),
    ("cache", CacheMiss, _cache_miss),
    ("perf_hints", LoopDecided, _loop),
    ("perf_hints", FellBack, _fell_back),
    ("perf_hints", CudaGraphSkipped, _skipped),
    ("output_code", CompileFinished, _output_code),
    ("compiles", CompileFinished, _finished),
    ("stances", StanceChanged, _stance),
    ("calls", CallTimed, _call),
    ("calls", LoopTimed, _iterations),
]


def _lines(items: tuple[str, ...]) -> str:
    return _indent("\n".join(items))


def _indent(text: str) -> str:
    return "\n".join(f"    {line}".rstrip() for line in text.splitlines())


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def _read_variable() -> None:
    """Follows TCOMPILE_LOGS. A wrong value is reported once, and never prevents importing tcompile."""
    text = os.environ.get(VARIABLE, "")
    try:
        set_logs(text)
    except InvalidArgument as error:
        print(f"tcompile: {VARIABLE}={text!r} is ignored: {error}", file=sys.stderr)


_read_variable()

__all__ = ["ARTIFACTS", "VARIABLE", "set_logs"]
