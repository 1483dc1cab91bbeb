"""Runs module-level statements (a notebook cell) with their array work compiled.

Input: statements, a namespace, settings.
Output: the statements' effects in the namespace, in program order.
Why: a cell is captured like a function, but its variables are globals. Calls of compiled functions are not inlined:
they have entries of their own, which inlining would hide.
"""

from __future__ import annotations

import types
from dataclasses import replace
from typing import Any

from tcompile import interpreter
from tcompile.capture.guards.entry_protocol import PLAIN
from tcompile.runtime import refused
from tcompile.runtime.cache import CompileSettings, FunctionCache
from tcompile.runtime.cache import forget as forget_functions
from tcompile.runtime.dispatch import compiler_for
from tcompile.runtime.regions import CompileFunction
from tcompile.stance import current

CELL = "<cell>"
"""The name of a cell's own statements in events and texts; no function of the user's has it."""

_cells: dict[tuple[types.CodeType, str, int, CompileSettings], tuple[types.CodeType, FunctionCache]] = {}
_MAX_CELLS = 256


def run_statements(
    code: types.CodeType, namespace: dict[str, Any], settings: CompileSettings, compile: CompileFunction
) -> None:
    """Executes ``code`` in ``namespace``, compiled where possible. Errors are raised from the statements' own lines.

    Raises Unsupported under ``settings.fullgraph`` if the statements cannot be captured.
    """
    code, cache = _cache(code, namespace, settings)
    stance = current()
    if interpreter.refusal is not None:
        refused.note_call(cache.about)
    if stance.name == "force_eager" or interpreter.refusal is not None:
        exec(code, namespace)
        return
    compiler = compiler_for(compile)
    if cache.rewritten is None:
        # From CPython 3.14 on, annotated statements have a cell for a name that their code stores in the namespace.
        cells = tuple(types.CellType() for _ in code.co_cellvars)
        found = compiler.select(cache, cache.first, cells, stance, in_rewritten=False)
        if found is not None and found[1] is not PLAIN and cache.rewritten is None:
            return
    exec(cache.rewritten.code if cache.rewritten is not None else code, namespace)


def _cache(
    code: types.CodeType, namespace: dict[str, Any], settings: CompileSettings
) -> tuple[types.CodeType, FunctionCache]:
    """Returns a cell's code and cache; a cell that runs again has equal code and finds its entries."""
    key = (code, code.co_filename, id(namespace), settings)
    found = _cells.pop(key, None)
    if found is None:
        if len(_cells) >= _MAX_CELLS:
            _cells.clear()
        function = types.FunctionType(code, namespace, CELL)
        function.__qualname__ = CELL
        found = code, FunctionCache.of(function, replace(settings, enter_compiled=False))
    _cells[key] = found  # the last one has run last
    return found


def statement_caches(namespace: dict[str, Any]) -> tuple[FunctionCache, ...]:
    """Returns the caches of the cells' own statements that ran in ``namespace``, those that ran last at the end.

    Of an edited cell only the newest text counts.
    """
    newest: dict[str, str] = {}
    found: list[FunctionCache] = []
    for (_, file, space, _), (_, cache) in reversed(list(_cells.items())):
        if space == id(namespace) and newest.setdefault(cache.defined_in or file, file) == file:
            found.append(cache)
    return tuple(reversed(found))


def forget(namespace: dict[str, Any]) -> None:
    """Discards what was compiled of the cells that ran in ``namespace``, so that nothing here keeps it alive."""
    for key in [key for key in list(_cells) if key[2] == id(namespace)]:
        _cells.pop(key, None)
    forget_functions(namespace)


def reset() -> None:
    """Discards the entries of all cells."""
    _cells.clear()


__all__ = ["CELL", "forget", "reset", "run_statements", "statement_caches"]
