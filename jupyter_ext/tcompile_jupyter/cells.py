"""Runs the text of a ``%%tcompile`` cell as IPython would run a plain cell, with its code compiled.

Input: the text under the magic line, and the shell. Output: the cell's effects on the user's namespace, the
displayed value, and errors whose tracebacks hold the user's own lines only. Why: a cell magic is
handed text alone: IPython syntax, display rules, line numbers and tracebacks of plain cells all have to be
given back to it.

A cell is run in stretches, cut around each ``def`` at the top level: after it, the new function's name is
bound to its compiled form, so that the statements after it already call that. A displayed expression runs
with the statements before it, and is displayed after them.
"""

from __future__ import annotations

import ast
import enum
import inspect
import linecache
import os
import re
import sys
import types
from collections.abc import Callable, Iterator
from dataclasses import field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from IPython.core.displayhook import DisplayHook
from IPython.core.error import UsageError

from tcompile import api
from tcompile.api import run_cell
from tcompile.errors import TcompileError
from tcompile.observe import bus
from tcompile.observe.events import FellBack
from tcompile.records import dataclass
from tcompile.runtime.cache import SUSPENDS
from tcompile.runtime.dispatch import CompiledFunction, parts_of
from tcompile.runtime.frames import look_at_callers
from tcompile.strict import silent

if TYPE_CHECKING:
    from IPython.core.interactiveshell import ExecutionResult, InteractiveShell

SHOWN = "__tcompile_shown__"
"""The name that holds the value of a displayed expression between its evaluation and its display."""

_OURS = [sys.modules[name] for name in ("tcompile", "tcompile_jupyter")]
_PACKAGES = tuple(str(Path(module.__file__ or "").parent) + os.sep for module in _OURS)


@dataclass(frozen=True)
class Settings:
    """How the code of a cell is compiled: those arguments of ``tcompile.compile`` that the magic has."""

    fullgraph: bool = False
    dynamic: bool | None = None
    backend: str = "auto"
    mode: str | None = None

    def compile(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """The compiled form of ``function``. Raises InvalidArgument for a setting that does not exist."""
        compiled: Callable[..., Any] = api.compile(
            function, fullgraph=self.fullgraph, dynamic=self.dynamic, backend=self.backend, mode=self.mode
        )
        return compiled

    def run(self, code: types.CodeType, namespace: dict[str, Any]) -> None:
        """Runs the code of top-level statements with these settings. They may break, under ``fullgraph`` too."""
        run_cell(code, namespace, dynamic=self.dynamic, backend=self.backend, mode=self.mode)


@dataclass
class Cell:
    """A parsed cell. ``functions`` fills with the compiled functions while it runs."""

    shell: InteractiveShell
    filename: str
    tree: ast.Module
    lines: list[str]
    quiet: bool
    functions: dict[str, Any] = field(default_factory=dict)

    @cached_property
    def stretches(self) -> list[Stretch]:
        """The cell's statements, cut around top-level functions and displayed expressions."""
        cut = _cut(self.tree.body, self.shell.ast_node_interactivity)
        return [Stretch(body, self.filename, kind) for body, kind in cut if body]

    def run(self, settings: Settings) -> None:
        """Runs the cell in the user's namespace."""
        namespace = self.shell.user_ns
        for stretch in self.stretches:
            compiled = stretch.run(namespace, settings)
            if compiled is not None:
                self.functions[compiled.__name__] = compiled
            if SHOWN in namespace:
                value = namespace.pop(SHOWN)
                if not self.quiet:
                    sys.displayhook(value)


class Kind(enum.Enum):
    """How a stretch is run."""

    STATEMENTS = "compiled as they stand"
    FUNCTION = "one def, whose name is then bound to the compiled function"
    INTERACTIVE = "plainly, every expression displayed, as inside a loop at an interactive prompt"


@dataclass
class Stretch:
    """Statements that run together."""

    body: list[ast.stmt]
    filename: str
    kind: Kind

    def run(self, namespace: dict[str, Any], settings: Settings) -> Callable[..., Any] | None:
        """Runs the statements in ``namespace``. Returns the compiled function, if they define one."""
        if self.kind is Kind.STATEMENTS:
            for code in self.codes():
                settings.run(code, namespace)
            return None
        exec(self.code, namespace)
        if self.kind is Kind.FUNCTION:
            name = self.body[0].name  # type: ignore[attr-defined]
            value = namespace.get(name)
            if isinstance(value, types.FunctionType) and not _stays_plain(value, settings):
                compiled = namespace[name] = settings.compile(value)
                return compiled
        return None

    def codes(self) -> Iterator[types.CodeType]:
        """The statements as plain Python, in one piece unless Python refuses that: then one by one, as IPython compiles
        a cell, so that those before the wrong one run. Raises SyntaxError where that one's turn comes.
        """
        pieces = [self]
        try:
            self.code  # noqa: B018  # it is kept
        except SyntaxError:
            pieces = [Stretch([statement], self.filename, self.kind) for statement in self.body]
        for piece in pieces:
            yield piece.code

    @cached_property
    def code(self) -> types.CodeType:
        """The statements as plain Python: one object, so that the functions of all runs share their cache."""
        if self.kind is Kind.INTERACTIVE:
            return compile(ast.Interactive(self.body), self.filename, "single", dont_inherit=True)
        return compile(ast.Module(self.body, type_ignores=[]), self.filename, "exec", dont_inherit=True)


def one_statement(statement: ast.stmt, filename: str) -> Stretch:
    """A top-level statement by itself; the value of an expression is left in the name ``SHOWN``."""
    if isinstance(statement, ast.FunctionDef):
        return Stretch([statement], filename, Kind.FUNCTION)
    return Stretch([_kept(statement) if isinstance(statement, ast.Expr) else statement], filename, Kind.STATEMENTS)


def _stays_plain(function: types.FunctionType, settings: Settings) -> bool:
    """Whether a cell leaves a function as it is, which is told then.

    One that looks at its caller's frame has to find it there.
    """
    if function.__code__.co_flags & SUSPENDS:
        what = "generators and coroutines are compiled where @tcompile.compile stands above them"
        line = f"line {function.__code__.co_firstlineno}"
        bus.emit(FellBack(function=function.__qualname__, reason=what, detail=line))
        return True
    look = look_at_callers(function)
    compiled = settings.compile(function) if look is not None else None
    if look is None or not isinstance(compiled, CompiledFunction):  # or it is disabled
        return False
    parts_of(compiled)[2].stay_plain(look)
    return True


def _cut(statements: list[ast.stmt], interactivity: str) -> Iterator[tuple[list[ast.stmt], Kind]]:
    statements = list(statements)
    if interactivity == "last_expr_or_assign":
        name = _assigned(statements[-1]) if statements else None
        if name is not None:
            shown = ast.Expr(ast.Name(name, ast.Load()))
            statements.append(ast.fix_missing_locations(ast.copy_location(shown, statements[-1])))
    together: list[ast.stmt] = []
    for position, statement in enumerate(statements):
        last = position == len(statements) - 1
        displayed = interactivity == "all" or (last and interactivity != "none")
        if isinstance(statement, ast.FunctionDef):
            yield together, Kind.STATEMENTS
            yield [statement], Kind.FUNCTION
            together = []
        elif displayed and isinstance(statement, ast.Expr):
            yield [*together, _kept(statement)], Kind.STATEMENTS
            together = []
        elif displayed and interactivity in ("all", "last"):
            yield together, Kind.STATEMENTS
            yield [statement], Kind.INTERACTIVE
            together = []
        else:
            together.append(statement)
    yield together, Kind.STATEMENTS


def _kept(statement: ast.Expr) -> ast.stmt:
    """``SHOWN = expression``: it runs with its neighbours, and its value is displayed afterwards."""
    assign = ast.Assign([ast.Name(SHOWN, ast.Store())], statement.value)
    return ast.fix_missing_locations(ast.copy_location(assign, statement))


def _assigned(statement: ast.stmt) -> str | None:
    target: ast.expr | None = None
    if isinstance(statement, ast.Assign) and len(statement.targets) == 1:
        target = statement.targets[0]
    elif isinstance(statement, ast.AnnAssign | ast.AugAssign):
        target = statement.target
    return target.id if isinstance(target, ast.Name) else None


# -- from text to a Cell --
def running(shell: InteractiveShell) -> ExecutionResult | None:
    """The result that IPython is filling for the cell that runs now; None when no cell does."""
    result: ExecutionResult | None = shell.displayhook.exec_result
    return result


def prepare(shell: InteractiveShell, result: ExecutionResult | None, body: str) -> Cell:
    """Parses the text of a cell, whose ``result`` is being filled.

    Raises SyntaxError as IPython would, at the line that the user sees.

    The lines above ``body``, which hold the magic itself, stay before it as comments: lines are counted
    from the top of the cell, in tracebacks as in the editor.
    """
    raw = result.info.raw_cell if result is not None else ""
    count = result.execution_count if result is not None else shell.execution_count
    above = len(raw.rstrip().splitlines()) - len(body.rstrip().splitlines())
    lines = raw.splitlines()[:above] if above > 0 else ["%%tcompile"]
    empty = len(body.splitlines()) - len(body.lstrip().splitlines())  # which transform_cell takes away
    head = "".join(f"# {line}".rstrip() + "\n" for line in lines) + "\n" * empty
    text = head + shell.transform_cell(body)
    filename = _file(shell, raw, body, text, count)
    tree = shell.transform_ast(shell.compile.ast_parse(text, filename))
    if _awaits(tree):
        raise UsageError("%%tcompile cannot run a top-level await: use a plain cell for it")
    if any(isinstance(statement, ast.ImportFrom) and statement.module == "__future__" for statement in tree.body):
        raise UsageError("%%tcompile cannot run 'from __future__ import ...': use a plain cell for it")
    return Cell(shell, filename, tree, text.splitlines(), quiet=DisplayHook.semicolon_at_end_of_expression(body))


def _file(shell: InteractiveShell, raw: str, body: str, text: str, count: int) -> str:
    """The file that a cell's code is in, for which ``linecache`` knows ``text`` from now on.

    It is the file that IPython has named for the whole cell: a cell leaves one entry, with the magic as without.
    """
    running: types.FrameType | None = sys._getframe()
    while running is not None and running.f_globals is not shell.user_global_ns:
        running = running.f_back
    if running is None or not raw.rstrip().endswith(body.rstrip()):  # another text calls the magic
        return str(shell.compile.cache(text, count, raw_code=raw or None))
    file = running.f_code.co_filename
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    return file


def _awaits(tree: ast.Module) -> bool:
    """Whether the statements themselves, not the functions in them, await something."""
    try:
        with silent():  # it is compiled again to be run
            code = compile(tree, "<cell>", "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, dont_inherit=True)
    except SyntaxError:
        return False  # running it will say what is wrong
    return bool(code.co_flags & inspect.CO_COROUTINE)


# -- errors --
_ARGUMENTS = re.compile(r".+\(\) (takes|missing|got) ")  # as Python says that a call does not fit a function


def show_error(shell: InteractiveShell, result: ExecutionResult | None, filename: str, error: BaseException) -> None:
    """Shows ``error`` as the error of the running cell, whose ``result`` this is, with the user's frames alone.

    Must be called from the ``except`` block that caught it. Where no cell runs, the error is raised instead.
    """
    show_users_frames(error, filename)
    if result is None:
        raise error
    result.error_in_exec = error
    shell.showtraceback((type(error), error, error.__traceback__), tb_offset=0)


def show_users_frames(error: BaseException, filename: str = "") -> None:
    """Takes the frames of tcompile out of what is shown of ``error``, and of the errors that led to it."""
    error.__traceback__ = _user_traceback(error, filename)
    for earlier in _before(error):
        earlier.__traceback__ = _user_traceback(earlier, "")


def _user_traceback(error: BaseException, filename: str) -> types.TracebackType | None:
    """The traceback of ``error`` from the first frame of the cell on, without the frames of tcompile.

    They stay where tcompile failed by a bug of its own. The traceback begins where it does without a ``filename``, or
    where no frame is the cell's: there may be nothing left of it then.
    """
    frames = []
    entry = error.__traceback__
    while entry is not None:
        if not entry.tb_frame.f_code.co_filename.startswith("<tcompile"):  # made, and without a text to show
            frames.append(entry)
        entry = entry.tb_next
    files = [frame.tb_frame.f_code.co_filename for frame in frames]
    start = files.index(filename) if filename in files else 0
    ours = () if _is_bug(error, files) else _PACKAGES
    kept: types.TracebackType | None = None
    for frame, file in reversed(list(zip(frames[start:], files[start:], strict=True))):
        if not file.startswith(ours):
            kept = types.TracebackType(kept, frame.tb_frame, frame.tb_lasti, frame.tb_lineno)
    return kept


def _is_bug(error: BaseException, files: list[str]) -> bool:
    """Whether tcompile failed in code of its own, and not by what the user has asked for, called or interrupted."""
    if not files or not files[-1].startswith(_PACKAGES) or not isinstance(error, Exception):
        return False
    if isinstance(error, SyntaxError):
        return str(error.filename).startswith("<tcompile")
    if type(error) is TypeError and _ARGUMENTS.match(str(error)):
        return False
    return not isinstance(error, TcompileError | RecursionError | MemoryError)


def _before(error: BaseException) -> Iterator[BaseException]:
    """The errors that led to ``error``, and are shown with it."""
    seen = {id(error)}
    while True:
        earlier = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
        if earlier is None or id(earlier) in seen:
            return
        seen.add(id(earlier))
        yield (error := earlier)
