"""``%%tcompile --compare``: a whole cell in plain Python and compiled.

Enters: a parsed cell, and a snapshot of the names that it mentions, taken before it ran. Leaves: a
``Comparison`` of the cell's statements. Exists apart from ``compare`` because a cell is repeated in copies of
the user's namespace.

What is repeated is the whole cell, its prints and displays caught. Values that the cell mentions are copied
for each run, and NumPy's and Python's global random streams are set back, so that all runs start from the
same state. What a cell does outside of that (files, or globals that functions of other cells change) is done
again by each run.
"""

from __future__ import annotations

import ast
import contextlib
import random
import time
import types
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from IPython.utils.capture import capture_output

import tcompile
from tcompile.debug.copying import copied
from tcompile_jupyter.cells import SHOWN, Cell, Settings
from tcompile_jupyter.compare import Comparison, take_turns


@dataclass(frozen=True)
class Snapshot:
    """The user's names before a cell ran. ``mentioned``: copies of those in the cell's text."""

    names: dict[str, Any]
    mentioned: dict[str, Any]

    def namespace(self) -> dict[str, Any]:
        """A namespace to run the cell in."""
        return {**self.names, **copied(self.mentioned)}


def snapshot(cell: Cell) -> Snapshot:
    """Copies what ``cell`` mentions of the user's namespace."""
    names = dict(cell.shell.user_ns)
    return Snapshot(names, copied({name: names[name] for name in _mentioned(cell) if name in names}))


def compare_cell(cell: Cell, settings: Settings, before: Snapshot, *, budget: float = 2.0) -> Comparison:
    """Runs ``cell`` from ``before`` in plain Python and compiled, in turn, for about ``budget`` seconds."""

    def eager() -> tuple[float, Any]:
        namespace = before.namespace()
        with tcompile.set_stance("force_eager"), _undisturbed():
            start = time.perf_counter()
            for stretch in cell.stretches:
                exec(stretch.code, namespace)
            seconds = time.perf_counter() - start
        return seconds, _data(cell, namespace)

    def compiled() -> tuple[float, Any]:
        namespace = before.namespace()
        with _undisturbed():
            start = time.perf_counter()
            for stretch in cell.stretches:
                stretch.run(namespace, settings)
            seconds = time.perf_counter() - start
        return seconds, _data(cell, namespace)

    return take_turns("the cell", eager, compiled, budget=budget)


def _mentioned(cell: Cell) -> set[str]:
    return {node.id for node in ast.walk(cell.tree) if isinstance(node, ast.Name)}


def _data(cell: Cell, namespace: dict[str, Any]) -> dict[str, Any]:
    """What the cell's names hold, functions, classes and modules left out."""
    names = sorted({*_mentioned(cell), SHOWN})
    held = {name: namespace[name] for name in names if name in namespace}
    return {name: value for name, value in held.items() if not (callable(value) or isinstance(value, types.ModuleType))}


@contextlib.contextmanager
def _undisturbed() -> Iterator[None]:
    """Nothing is shown, and the global random streams are as before afterwards."""
    states = random.getstate(), np.random.get_state()
    try:
        with capture_output():
            yield
    finally:
        random.setstate(states[0])
        np.random.set_state(states[1])
