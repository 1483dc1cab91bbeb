"""Debuggers and coverage tools: detects them, and reports captured lines to them.

Input: the thread's trace function, the tools of ``sys.monitoring``, and the functions that a call goes through.
Output: whether a debugger may stop in one of these functions, which then run in plain Python; line events for coverage
tools.
Why: captured code runs no Python lines. Breakpoints in it would be missed, and its lines would count as never run.
"""

from __future__ import annotations

import contextlib
import functools
import sys
import threading
import types
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, cast

from tcompile.runtime.unseen import COUNTERS

if TYPE_CHECKING:
    import bdb

    from tcompile.capture.context.followed import Followed

# Packages whose trace functions never stop: they count or measure, or are tcompile's own.
_COUNTING = {"coverage"}
_NEVER_STOP = {*COUNTERS, "tcompile"}
_PYDEVD = {"_pydevd_bundle", "_pydevd_frame_eval", "_pydevd_sys_monitoring", "pydevd", "debugpy"}
_HOLDERS = ("_pydevd_bundle.pydevd_constants", "_pydevd_bundle.pydevd_comm", "pydevd")  # newer ones first
# Steps of pydevd that end in the frame where they began or in its caller: over and return, each also as "my code".
_STEPS_OVER = {108, 109, 159, 160}
_NO_STEP = -1
_WHEN = ("trace_dispatch", "dispatch_call", "stop_here", "break_anywhere", "break_here")  # methods of Bdb
_BDB = {"bdb", "pdb", "IPython.core.debugger", "IPython.terminal.debugger"}

if sys.version_info >= (3, 12):
    debugger_tool: Callable[[], Any] = functools.partial(sys.monitoring.get_tool, sys.monitoring.DEBUGGER_ID)
    _coverage_tool: Callable[[], Any] = functools.partial(sys.monitoring.get_tool, sys.monitoring.COVERAGE_ID)
else:
    debugger_tool = _coverage_tool = cast("Callable[[], Any]", type(None))
# The tool beside a trace function; on CPython 3.11 a profiler, which must see calls begin.
other_watcher = sys.getprofile if sys.version_info < (3, 12) else debugger_tool


def is_watched() -> bool:
    """Whether anything traces this thread, or a debugger has registered with ``sys.monitoring``."""
    return sys.gettrace() is not None or debugger_tool() is not None


def may_stop(functions: Iterable[Followed], frame: types.FrameType | None = None) -> bool:
    """Whether a debugger of this thread may stop in one of the functions, called now, or in ``frame``, which continues.

    It may if it steps into the next call or has a breakpoint there. A debugger of an unknown kind may stop anywhere.
    """
    if _ignored.depth:
        return False
    tracer = sys.gettrace()
    if tracer is not None:
        owner, package = _owner(tracer)
        module = sys.modules.get("bdb")
        if module is not None and isinstance(owner, module.Bdb):
            return _bdb_stops(owner, functions, frame)
        if package in _PYDEVD:
            return _pydevd_stops(functions, frame)
        if package not in _NEVER_STOP:
            return True
    if debugger_tool() is None:
        return False
    return _pydevd_stops(functions, frame)


class _Ignored(threading.local):
    depth = 0


_ignored = _Ignored()


@contextlib.contextmanager
def ignored() -> Iterator[None]:
    """A block in which this thread's compiled functions do not run plainly for a debugger: they have no plain form."""
    _ignored.depth += 1
    try:
        yield
    finally:
        _ignored.depth -= 1


def counts_lines() -> bool:
    """Whether a coverage tool counts the lines that run."""
    tracer = sys.gettrace()
    return (tracer is not None and _owner(tracer)[1] in _COUNTING) or _coverage_tool() is not None


def report_lines(functions: Iterable[Followed]) -> None:
    """Reports the captured lines to a coverage tool, in their order, once for each call.

    Code that does nothing runs through them: its line table is the function's.
    """
    for function in functions:
        calls, function.calls = function.calls, []
        for lines in calls:
            if lines:
                types.FunctionType(_passing(function, lines), {})()


def _passing(function: Followed, lines: list[int]) -> types.CodeType:
    """Returns code that passes lines and does nothing."""
    from tcompile.bytecode import positions
    from tcompile.bytecode.assemble import op, units

    at, table = function.first, [positions.plain(function.first, function.first, units("RESUME", 1))]
    for line in lines:
        table.append(positions.plain(line, at, 1))
        at = line
    table.append(positions.plain(at, at, 2))
    return _nothing.__code__.replace(
        co_code=op("RESUME") + op("NOP") * len(lines) + op("LOAD_CONST") + op("RETURN_VALUE"),
        co_consts=(None,), co_linetable=b"".join(table), co_exceptiontable=b"", co_stacksize=1,
        co_filename=function.file, co_name=function.name, co_qualname=function.name, co_firstlineno=function.first,
    )  # fmt: skip


def _nothing() -> None:
    """The template of ``_passing``."""


def _owner(tracer: Any) -> tuple[Any, str]:
    """Returns the object that owns a trace function, and its package."""
    owner = tracer.__self__ if isinstance(tracer, types.MethodType) else tracer
    about = owner if isinstance(owner, types.FunctionType) else type(owner)
    return owner, str(about.__module__).partition(".")[0]


def _has_line(functions: Iterable[Followed], lines_of: Callable[[str], Iterable[int]]) -> bool:
    return any(
        function.first <= line <= function.last for function in functions for line in lines_of(function.file)
    )  # fmt: skip


def _bdb_stops(debugger: bdb.Bdb, functions: Iterable[Followed], frame: types.FrameType | None) -> bool:
    """Predicts ``Bdb.stop_here`` and ``Bdb.break_here`` of pdb, IPython's debugger and similar ones."""
    kind = type(debugger)
    if any(getattr(kind, name).__module__ not in _BDB for name in _WHEN):
        return True
    stop = getattr(debugger, "stopframe", None)
    if stop is None:  # it steps into every call
        return True
    goes_on = getattr(debugger, "stoplineno", 0) == _NO_STEP
    if frame is not None and not goes_on and frame in (stop, getattr(debugger, "returnframe", None)):
        return True
    breaks = debugger.breaks
    return bool(breaks) and _has_line(functions, lambda file: breaks.get(debugger.canonic(file), ()))


def _pydevd_stops(functions: Iterable[Followed], frame: types.FrameType | None) -> bool:
    """The same for pydevd: debugpy, the kernels of JupyterLab and VS Code, and PyCharm."""
    try:
        debugger = _pydevd()
        step = getattr(getattr(threading.current_thread(), "additional_info", None), "pydev_step_cmd", _NO_STEP)
        if step != _NO_STEP and (frame is not None or step not in _STEPS_OVER):
            return True
        if getattr(debugger, "function_breakpoint_name_to_breakpoint", None):
            return True
        breaks = debugger.breakpoints
        if not breaks:
            return False
        name_of = sys.modules["pydevd_file_utils"].get_abs_path_real_path_and_base_from_file
        return _has_line(functions, lambda file: breaks.get(name_of(file)[1], ()))
    except Exception:  # a debugger of another kind or version
        return True


def _pydevd() -> Any:
    """Returns pydevd's only debugger. Raises LookupError if there is none."""
    for name in _HOLDERS:
        ask = getattr(sys.modules.get(name), "get_global_debugger", None)
        if ask is not None and (found := ask()) is not None:
            return found
    raise LookupError("pydevd")


def passes_line_again(frame: types.FrameType) -> None:
    """Hides from a debugger that a frame returns to its current line from out-of-line code.

    CPython 3.11 reports a new line whenever a frame jumps back to it.
    """
    trace, line, at = frame.f_trace, frame.f_lineno, frame.f_lasti
    if sys.version_info >= (3, 12) or trace is None:
        return

    def first(frame: types.FrameType, event: str, arg: Any) -> Any:
        is_again = event == "line" and frame.f_lineno == line and frame.f_lasti < at
        return trace if is_again else trace(frame, event, arg)

    frame.f_trace = first


__all__ = [
    "counts_lines", "debugger_tool", "ignored", "is_watched", "may_stop", "other_watcher", "passes_line_again",
    "report_lines",
]  # fmt: skip
