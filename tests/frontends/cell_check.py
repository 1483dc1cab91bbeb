"""Generated programs of NumPy as the cells of a notebook, run plainly and under ``%%tcompile``.

Input: a program's text and a ``Plan``, as for ``numpy_check``. The program is split into cells, which run one after
another in one namespace, and again in the same one with other inputs.
Output: nothing, or ``Difference``.
Why: cells have globals and displays. All variables of the namespace are compared, like results in ``numpy_check``.
"""

from __future__ import annotations

import ast
import copy
import functools
from collections.abc import Callable
from random import Random
from typing import Any

from capture.language_check import Difference, checks

from tcompile.api import run_cell

from . import numpy_check
from .numpy_check import Plan, Ways, shrink
from .numpy_programs import NAME, program

SHOWN = "shown"  # the variable that holds what the program returns


class _Kept(ast.NodeTransformer):
    """What is returned is assigned: a cell does not return."""

    def visit_Return(self, node: ast.Return) -> ast.AST:
        value = node.value or ast.Constant(None)
        return ast.copy_location(ast.Assign([ast.Name(SHOWN, ast.Store())], value), node)


class Notebook:
    """The cells of a program, which ``run`` runs in one namespace."""

    def __init__(self, tree: ast.Module, space: dict[str, Any], run: Callable[[Any, dict[str, Any]], None]) -> None:
        function = next(part for part in tree.body if isinstance(part, ast.FunctionDef) and part.name == "f")
        function = ast.fix_missing_locations(_Kept().visit(copy.deepcopy(function)))
        self.parameters = [arg.arg for arg in function.args.args]
        self.space, self.run = dict(space), run
        self.others = set(space)
        # By the length of the text and not by a seed, so that plain runs with moved results have the same cells.
        random = Random(function.body[-1].lineno)
        cuts = sorted(random.sample(range(1, len(function.body)), min(len(function.body) - 1, random.randrange(4))))
        parts = [function.body[i:j] for i, j in zip([0, *cuts], [*cuts, len(function.body)], strict=True)]
        self.cells = [compile(ast.Module(part, []), NAME, "exec", dont_inherit=True) for part in parts]

    def __call__(self, *args: Any) -> Any:
        self.space |= dict(zip(self.parameters, args, strict=True))
        for cell in self.cells:
            self.run(cell, self.space)
        own = set(self.space) - self.others - {"__warningregistry__"}  # which warnings of tcompile's leave there
        return [(name, self.space[name]) for name in sorted(own)]


def _compiled(tree: ast.Module, space: dict[str, Any], plan: Plan) -> Notebook:
    return Notebook(tree, space, functools.partial(run_cell, backend=plan.backend, dynamic=plan.dynamic))


CELLS = Ways(lambda tree, space: Notebook(tree, space, exec), _compiled)
compare = functools.partial(numpy_check.compare, ways=CELLS)
check, difference = checks(program, Plan.random, compare)

__all__ = ["Difference", "Plan", "check", "compare", "difference", "program", "shrink"]
