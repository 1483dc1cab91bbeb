"""Runs module-level statements (a notebook cell) with their array work compiled.

Enters: statements, a namespace, settings. Leaves: the statements' effects in the namespace, in program order. Exists
because a cell is no function: its variables are globals, so a break between two statements needs no resumption, and
each stretch between breaks is a frame of its own.

Statements that define or import things run plainly. A call of an already compiled function ends the stretch: that
function has its own entries, and following it here would hide them.
"""

from __future__ import annotations

import ast
import types
from collections.abc import Sequence
from typing import Any

from tcompile.capture.entries import MISS, PLAIN
from tcompile.errors import StanceError
from tcompile.observe import bus
from tcompile.observe.events import FellBack, UserLine
from tcompile.runtime.cache import Entry, FunctionCache, Settings, numbers
from tcompile.runtime.dispatch import CompileFunction
from tcompile.stance import current

_DEFINITIONS = (
    ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Import, ast.ImportFrom, ast.With, ast.AsyncWith, ast.Try,
    ast.TryStar, ast.Raise, ast.Global, ast.Nonlocal,
)
_stretches: dict[tuple[types.CodeType, Settings], FunctionCache] = {}
_MAX_STRETCHES = 256
_MAX_ENTRIES = 4


def run_statements(
    body: Sequence[ast.stmt], filename: str, namespace: dict[str, Any], settings: Settings, compile: CompileFunction
) -> None:
    """Executes ``body`` in ``namespace``, compiling what it can. Errors are raised from the statements' own lines.

    Raises Unsupported under ``settings.fullgraph`` where a stretch of statements cannot be captured.
    """
    position = 0
    while position < len(body):
        end = position
        while end < len(body) and not isinstance(body[end], _DEFINITIONS):
            end += 1
        if end == position:
            _run_plainly(body[position : position + 1], filename, namespace)
            position += 1
            continue
        position += _run_stretch(body[position:end], filename, namespace, settings, compile)


def _run_stretch(
    body: Sequence[ast.stmt], filename: str, namespace: dict[str, Any], settings: Settings, compile: CompileFunction
) -> int:
    """Runs the longest captured beginning of ``body``, or its first statement plainly; returns how many ran."""
    if current().name != "default":
        _run_plainly(body, filename, namespace)
        return len(body)
    function = _function(body, filename, namespace)
    cache = _cache(function, settings)
    for entry in cache.entries:
        if entry.broke is None and _run_entry(entry, function, body, filename, namespace):
            return len(body)
    reasons = tuple(
        f"entry {e.index}: {failure}" for e in cache.entries if (failure := e.captured.first_failure(function, ()))
    )
    try:
        entry = compile(function, (), cache, settings, reasons)
    except StanceError:  # a cell is no compiled function: its statements may change the stance
        _run_plainly(body[:1], filename, namespace)
        return 1
    if entry.broke is None:
        cache.entries = (entry, *cache.entries[: _MAX_ENTRIES - 1])
        _run_entry(entry, function, body, filename, namespace)
        return len(body)
    count = _before_break(body, entry.broke.stack)
    if not count:
        _run_plainly(body[:1], filename, namespace)
        return 1
    if not any(_may_hold_arrays(statement) for statement in body[:count]):
        _run_plainly(body[:count], filename, namespace)
        return count
    return _run_stretch(body[:count], filename, namespace, settings, compile)


def _run_entry(
    entry: Entry, function: types.FunctionType, body: Sequence[ast.stmt], filename: str, namespace: dict[str, Any]
) -> bool:
    """Runs an entry if its guards hold; a run that raises is done again plainly, from its start."""
    try:
        result = entry.run(function)
    except Exception as error:
        result = PLAIN
        entry.replays += 1
        bus.emit(FellBack(function=function.__qualname__, reason="replayed in plain Python", detail=str(error)))
    if result is MISS:
        return False
    entry.hits += 1
    if result is PLAIN:
        _run_plainly(body, filename, namespace)
    return True


def _function(body: Sequence[ast.stmt], filename: str, namespace: dict[str, Any]) -> types.FunctionType:
    code = compile(ast.Module(list(body), type_ignores=[]), filename, "exec", dont_inherit=True)
    function = types.FunctionType(code, namespace, "cell")
    function.__qualname__ = "cell"
    return function


def _cache(function: types.FunctionType, settings: Settings) -> FunctionCache:
    """The cache of a stretch; a cell that is run again has equal code and finds its entries."""
    key = (function.__code__, settings)
    if key not in _stretches:
        if len(_stretches) >= _MAX_STRETCHES:
            _stretches.clear()
        _stretches[key] = FunctionCache("cell", next(numbers))
    return _stretches[key]


def _before_break(body: Sequence[ast.stmt], stack: Sequence[UserLine]) -> int:
    """How many statements stand before the one at which capture stopped."""
    line = stack[0].line if stack else body[0].lineno
    for count, statement in enumerate(body):
        if line <= (statement.end_lineno or statement.lineno):
            return count
    return len(body) - 1


def _may_hold_arrays(statement: ast.stmt) -> bool:
    """Whether a statement does anything that could be array work (an operator, a call or an index)."""
    return any(isinstance(node, ast.BinOp | ast.Call | ast.Subscript | ast.AugAssign) for node in ast.walk(statement))


def _run_plainly(body: Sequence[ast.stmt], filename: str, namespace: dict[str, Any]) -> None:
    exec(compile(ast.Module(list(body), type_ignores=[]), filename, "exec", dont_inherit=True), namespace)


def reset() -> None:
    """Forgets the entries of all stretches."""
    _stretches.clear()


__all__ = ["reset", "run_statements"]
