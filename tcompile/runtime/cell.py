"""Runs module-level statements (a notebook cell) with their array work compiled.

Input: statements, a namespace, settings. Output: the statements' effects in the namespace, in program order. A cell is
code like any other: it is captured from its start, and where something cannot be captured its host goes on in plain
Python. What differs is that its variables are globals, and that a call of an already compiled function is not followed:
that function has entries of its own, and following it here would hide them.
"""

from __future__ import annotations

import types
from dataclasses import replace
from typing import Any

from tcompile import interpreter
from tcompile.capture.guards.entry_protocol import PLAIN
from tcompile.runtime import refused
from tcompile.runtime.cache import FunctionCache, Settings
from tcompile.runtime.dispatch import compiler_for
from tcompile.runtime.regions import CompileFunction
from tcompile.stance import current

CELL = "<cell>"
"""The name of a cell's own statements in events and texts, which no function of the user's bears."""

_cells: dict[tuple[types.CodeType, str, int, Settings], tuple[types.CodeType, FunctionCache]] = {}
_MAX_CELLS = 256


def run_statements(
    code: types.CodeType, namespace: dict[str, Any], settings: Settings, compile: CompileFunction
) -> None:
    """Executes ``code`` in ``namespace``, compiling what it can. Errors are raised from the statements' own lines.

    Raises Unsupported under ``settings.fullgraph`` where the statements cannot be captured.
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
        # From CPython 3.14 on annotated statements have a cell, for a name that their code stores in the namespace.
        cells = tuple(types.CellType() for _ in code.co_cellvars)
        found = compiler.select(cache, cache.first, cells, stance, in_rewritten=False)
        if found is not None and found[1] is not PLAIN and cache.rewritten is None:
            return
    exec(cache.rewritten.code if cache.rewritten is not None else code, namespace)


def _cache(code: types.CodeType, namespace: dict[str, Any], settings: Settings) -> tuple[types.CodeType, FunctionCache]:
    """The code of a cell and its cache; a cell that is run again has equal code and finds its entries."""
    key = (code, code.co_filename, id(namespace), settings)
    if key not in _cells:
        if len(_cells) >= _MAX_CELLS:
            _cells.clear()
        function = types.FunctionType(code, namespace, CELL)
        function.__qualname__ = CELL
        cache = FunctionCache.of(function, replace(settings, enter_compiled=False))
        _cells[key] = (code, cache)
    return _cells[key]


def forget(namespace: dict[str, Any]) -> None:
    """Forgets the entries of the cells that ran in ``namespace``, which ends with them if nothing else holds it."""
    for key in [key for key in list(_cells) if key[2] == id(namespace)]:
        _cells.pop(key, None)


def reset() -> None:
    """Forgets the entries of all cells."""
    _cells.clear()


__all__ = ["CELL", "forget", "reset", "run_statements"]
