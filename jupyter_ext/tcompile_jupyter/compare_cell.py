"""``%%tcompile --compare``, ``--each`` and ``--time``: a cell is repeated, to be compared or timed.

Input: a parsed cell, and a snapshot of the names that it mentions, taken before it ran.
Output: a ``Comparison`` of the cell, or ``Comparisons``, a row for each statement.
Why: a cell is repeated in copies of the user's namespace, which functions do not need.

The whole cell is repeated, with its prints and displays captured. Values that the cell mentions are copied for each
run, and NumPy's and Python's global random streams are reset. So all runs start from the same state. Effects outside of
that (files, or globals of other cells' functions) happen again in each run.
"""

from __future__ import annotations

import ast
import contextlib
import random
import time
import types
from collections.abc import Callable, Iterator
from dataclasses import field
from typing import TYPE_CHECKING, Any

import numpy as np
from IPython.utils.capture import capture_output

from tcompile.debug.copying import copied
from tcompile.debug.differences import difference
from tcompile.observe.context import of_no_cell
from tcompile.observe.display.profiles import ProfileView
from tcompile.records import dataclass
from tcompile.runtime.cell import forget
from tcompile.stance import set_stance
from tcompile_jupyter.cells import SHOWN, Cell, CellSettings, one_statement
from tcompile_jupyter.compare import Comparison, Comparisons, comparison, take_turns
from tcompile_jupyter.measure import REPEATS, TOLERANCE, Measured, Sample

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell

_UNTIMED = ast.FunctionDef | ast.ClassDef | ast.Import | ast.ImportFrom | ast.Pass


@dataclass(frozen=True)
class Snapshot:
    """The user's names before a cell ran. ``mentioned``: copies of those in the cell's text.

    One namespace serves all plain runs, one all compiled ones, and one those whose steps are timed: compiled code
    belongs to the namespace in which it was compiled. ``functions`` are those that these runs have defined.
    """

    names: dict[str, Any]
    mentioned: dict[str, Any]
    spaces: tuple[dict[str, Any], ...] = field(default_factory=lambda: ({}, {}, {}))
    functions: tuple[dict[types.CodeType, Callable[..., Any]], ...] = field(default_factory=lambda: ({}, {}, {}))

    def again(self, kind: int) -> dict[str, Any]:
        """Returns the namespace of plain (0), compiled (1) or timed (2) runs, reset to the user's at that time."""
        namespace = self.spaces[kind]
        namespace.clear()
        namespace.update(self.names)
        namespace.update(copied(self.mentioned))
        return namespace

    def forget(self) -> None:
        """Releases the objects of the runs, and the code compiled for them."""
        for namespace, functions in zip(self.spaces, self.functions, strict=True):
            forget(namespace)
            namespace.clear()
            functions.clear()


def snapshot(cell: Cell) -> Snapshot:
    """Copies what ``cell`` mentions of the user's namespace."""
    names = dict(cell.shell.user_ns)
    shell = cell.shell
    held = {name: names[name] for name in _mentioned(cell.tree) if name in names}
    return Snapshot(names, copied({name: value for name, value in held.items() if not _is_shells(value, shell)}))


def _is_shells(value: Any, shell: InteractiveShell) -> bool:
    """Whether it is the shell or a method of it: magics and commands are calls of ``get_ipython``."""
    return value is shell or (isinstance(value, types.MethodType) and value.__self__ is shell)


def compare_cell(cell: Cell, settings: CellSettings, before: Snapshot, *, budget: float = 2.0) -> Comparison:
    """Runs ``cell`` from ``before`` in plain Python and compiled, alternately, for about ``budget`` seconds."""

    def eager() -> tuple[float, Any]:
        namespace = before.again(0)
        with set_stance.block("force_eager"), _undisturbed(cell.shell, namespace):
            start = time.perf_counter()
            for stretch in cell.stretches:
                for code in stretch.codes():
                    exec(code, namespace)
            seconds = time.perf_counter() - start
        return seconds, _data(_mentioned(cell.tree), namespace)

    def compiled() -> tuple[float, Any]:
        namespace = before.again(1)
        with _undisturbed(cell.shell, namespace):
            start = time.perf_counter()
            for stretch in cell.stretches:
                stretch.run(namespace, settings, before.functions[1])
            seconds = time.perf_counter() - start
        return seconds, _data(_mentioned(cell.tree), namespace)

    return take_turns("the cell", eager, compiled, budget=budget)


def profile_cell(cell: Cell, settings: CellSettings, before: Snapshot) -> ProfileView:
    """Says where the time of ``cell`` goes, line by line; it is run from ``before`` again and again."""
    from tcompile.debug.profile import Work, profile  # which imports the compiler

    def work(kind: int) -> Work:
        @contextlib.contextmanager
        def around() -> Iterator[dict[str, Any]]:
            namespace = before.again(kind)
            with _undisturbed(cell.shell, namespace):
                yield namespace

        def run(namespace: dict[str, Any]) -> None:
            for stretch in cell.stretches:
                if kind:
                    stretch.run(namespace, settings, before.functions[kind])
                else:
                    for code in stretch.codes():
                        exec(code, namespace)

        return Work(around, run)

    return profile("the cell", work(1), work(2), work(0))


def compare_statements(cell: Cell, settings: CellSettings, before: Snapshot, *, budget: float = 4.0) -> Comparisons:
    """Times each statement of ``cell``, each compiled by itself, in plain Python and compiled, alternately.

    The cell runs from ``before`` as often as about ``budget`` seconds allow. After the first run, the values of the
    names that a statement mentions are compared. Definitions and imports run and are not timed.
    """
    alone = [(statement, one_statement(statement, cell.filename)) for statement in cell.tree.body]
    timed = [number for number, (statement, _) in enumerate(alone) if not isinstance(statement, _UNTIMED)]

    def run(kind: int, compare: bool = False) -> tuple[list[float], list[dict[str, Any]]]:
        namespace, seconds, left = before.again(kind), [], []
        with contextlib.ExitStack() as stack:
            if kind == 0:
                stack.enter_context(set_stance.block("force_eager"))
            stack.enter_context(_undisturbed(cell.shell, namespace))
            for statement, stretch in alone:
                start = time.perf_counter()
                if kind == 0:
                    exec(stretch.code, namespace)
                else:
                    stretch.run(namespace, settings, before.functions[1])
                seconds.append(time.perf_counter() - start)
                left.append(copied(_data(_mentioned(statement), namespace)) if compare else {})
                namespace.pop(SHOWN, None)
        return seconds, left

    apart = [difference(plain, ours) for plain, ours in zip(run(0, True)[1], run(1, True)[1], strict=True)]
    end = time.perf_counter() + budget
    run(1)  # sizes that have changed are compiled anew
    samples: list[tuple[list[float], list[float]]] = [([], []) for _ in alone]
    while True:
        for kind in (0, 1):
            for taken, seconds in zip(samples, run(kind)[0], strict=True):
                taken[kind].append(seconds * 1e3)
        known = [Measured(Sample(tuple(e)), Sample(tuple(c)), d) for (e, c), d in zip(samples, apart, strict=True)]
        sure = all(known[number].uncertainty <= TOLERANCE for number in timed)
        repeats = len(samples[0][0]) if samples else REPEATS[-1]
        if repeats >= REPEATS[0] and (sure or repeats >= REPEATS[-1] or time.perf_counter() > end):
            break
    lines = [alone[number][0].lineno for number in timed]
    return Comparisons(
        [comparison(f"{at}: {cell.lines[at - 1].strip()}", known[n]) for at, n in zip(lines, timed, strict=True)],
        what="statement",
    )


def _mentioned(tree: ast.AST) -> set[str]:
    return {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}


def _data(mentioned: set[str], namespace: dict[str, Any]) -> dict[str, Any]:
    """Returns the values of these names and of the displayed expression, without functions, classes and modules."""
    names = sorted({*mentioned, SHOWN})
    held = {name: namespace[name] for name in names if name in namespace}
    return {name: value for name, value in held.items() if not (callable(value) or isinstance(value, types.ModuleType))}


@contextlib.contextmanager
def _undisturbed(shell: InteractiveShell, namespace: dict[str, Any]) -> Iterator[None]:
    """Suppresses displays, runs magics in ``namespace``, and restores the global random streams afterwards.

    What is compiled here is of no cell, and counts nowhere.
    """
    states = random.getstate(), np.random.get_state()
    users, shell.user_ns = shell.user_ns, namespace
    try:
        with capture_output(), of_no_cell():
            yield
    finally:
        shell.user_ns = users
        random.setstate(states[0])
        np.random.set_state(states[1])
