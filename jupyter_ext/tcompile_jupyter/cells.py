"""Runs the text of a ``%%tcompile`` cell like a plain cell, with its code compiled.

Input: the text under the magic line, and the shell.
Output: the cell's effects on the user's namespace, the displayed value, and errors whose tracebacks hold only user
frames.
Why: a cell magic receives bare text. IPython syntax, display rules, line numbers and tracebacks of plain cells must be
restored.

A cell is split at each top-level ``def``. After it, the new function's name is bound to its compiled form, so later
statements call that. A displayed expression runs with the statements before it, and is displayed after them.
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
"""The name that holds the value of a displayed expression until it is displayed."""

_OURS = [sys.modules[name] for name in ("tcompile", "tcompile_jupyter")]
_PACKAGES = tuple(str(Path(module.__file__ or "").parent) + os.sep for module in _OURS)


@dataclass(frozen=True)
class CellSettings:
    """The compile arguments of a cell: those of ``tcompile.compile`` that the magic has."""

    fullgraph: bool = False
    dynamic: bool | None = None
    backend: str = "auto"
    mode: str | None = None

    def compile(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Returns the compiled form of ``function``. Raises InvalidArgument for an unknown setting."""
        compiled: Callable[..., Any] = api.compile(
            function, fullgraph=self.fullgraph, dynamic=self.dynamic, backend=self.backend, mode=self.mode
        )
        return compiled

    def run(self, code: types.CodeType, namespace: dict[str, Any]) -> None:
        """Runs the code of top-level statements with these settings. It may break, under ``fullgraph`` too."""
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
        """Returns the cell's statements, split at top-level functions and displayed expressions."""
        cut = _cut(self.tree.body, self.shell.ast_node_interactivity)
        return [Stretch(body, self.filename, kind) for body, kind in cut if body]

    def run(self, settings: CellSettings) -> None:
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


class StatementKind(enum.Enum):
    """How a group of statements runs."""

    STATEMENTS = "compiled as they stand"
    FUNCTION = "one def, whose name is then bound to the compiled function"
    INTERACTIVE = "plainly, every expression displayed, as inside a loop at an interactive prompt"


@dataclass
class Stretch:
    """Statements that run as one unit."""

    body: list[ast.stmt]
    filename: str
    kind: StatementKind

    def run(
        self,
        namespace: dict[str, Any],
        settings: CellSettings,
        earlier: dict[types.CodeType, Callable[..., Any]] | None = None,
    ) -> Callable[..., Any] | None:
        """Runs the statements in ``namespace``. Returns the compiled function, if they define one.

        ``earlier`` are the functions of earlier runs there: a definition that gives the same one keeps it, and what is
        compiled of its callers.
        """
        if self.kind is StatementKind.STATEMENTS:
            for code in self.codes():
                settings.run(code, namespace)
            return None
        exec(self.code, namespace)
        if self.kind is StatementKind.FUNCTION:
            name = self.body[0].name  # type: ignore[attr-defined]
            value = namespace.get(name)
            if isinstance(value, types.FunctionType) and not _stays_plain(value, settings):
                compiled = settings.compile(value)
                held = value.__closure__, value.__defaults__, value.__kwdefaults__, vars(value)
                if earlier is not None and not any(held) and value.__globals__ is namespace:
                    same = earlier.setdefault(value.__code__, compiled)
                    compiled = same if vars(same).keys() == vars(compiled).keys() else compiled
                namespace[name] = compiled
                return None if compiled is value else compiled  # it is another compiler's
        return None

    def codes(self) -> Iterator[types.CodeType]:
        """Returns the statements as plain Python: one unit, or single statements if Python rejects the whole.

        Single statements run one by one, as in IPython, so those before the wrong one run. Raises SyntaxError at the
        wrong one.
        """
        pieces = [self]
        try:
            self.code  # noqa: B018  # the unit is compiled for its errors only
        except SyntaxError:
            pieces = [Stretch([statement], self.filename, self.kind) for statement in self.body]
        for piece in pieces:
            yield piece.code

    @cached_property
    def code(self) -> types.CodeType:
        """Returns the statements as one code object, so that the functions of all runs share their cache."""
        if self.kind is StatementKind.INTERACTIVE:
            return compile(ast.Interactive(self.body), self.filename, "single", dont_inherit=True)
        return compile(ast.Module(self.body, type_ignores=[]), self.filename, "exec", dont_inherit=True)


def one_statement(statement: ast.stmt, filename: str) -> Stretch:
    """Returns a top-level statement by itself; the value of an expression is stored under ``SHOWN``."""
    if isinstance(statement, ast.FunctionDef):
        return Stretch([statement], filename, StatementKind.FUNCTION)
    return Stretch(
        [_kept(statement) if isinstance(statement, ast.Expr) else statement], filename, StatementKind.STATEMENTS
    )


def _stays_plain(function: types.FunctionType, settings: CellSettings) -> bool:
    """Whether a cell leaves a function plain, which is then reported.

    A function that reads its caller's frame must find it there.
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


def _cut(statements: list[ast.stmt], interactivity: str) -> Iterator[tuple[list[ast.stmt], StatementKind]]:
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
            yield together, StatementKind.STATEMENTS
            yield [statement], StatementKind.FUNCTION
            together = []
        elif displayed and isinstance(statement, ast.Expr):
            yield [*together, _kept(statement)], StatementKind.STATEMENTS
            together = []
        elif displayed and interactivity in ("all", "last"):
            yield together, StatementKind.STATEMENTS
            yield [statement], StatementKind.INTERACTIVE
            together = []
        else:
            together.append(statement)
    yield together, StatementKind.STATEMENTS


def _kept(statement: ast.Expr) -> ast.stmt:
    """Returns ``SHOWN = expression``: it runs with its neighbours, and its value is displayed afterwards."""
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
    """Returns the result that IPython is filling for the running cell; None outside a cell."""
    result: ExecutionResult | None = shell.displayhook.exec_result
    return result


def prepare(shell: InteractiveShell, result: ExecutionResult | None, body: str) -> Cell:
    """Parses the text of a cell, whose ``result`` is being filled.

    Raises SyntaxError as IPython would, at the user's line.

    The lines above ``body``, which hold the magic, are kept as comments: tracebacks and the editor count lines from the
    top of the cell.
    """
    raw = result.info.raw_cell if result is not None else ""
    count = result.execution_count if result is not None else shell.execution_count
    above = len(raw.rstrip().splitlines()) - len(body.rstrip().splitlines())
    lines = raw.splitlines()[:above] if above > 0 else ["%%tcompile"]
    empty = len(body.splitlines()) - len(body.lstrip().splitlines())  # transform_cell removes it
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
    """Returns the file name of a cell's code, and registers ``text`` for it in ``linecache``.

    It is IPython's file of the whole cell, so a cell leaves one entry, with or without the magic.
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
    """Whether the statements themselves, not functions in them, contain an await."""
    try:
        with silent():  # it is compiled again when it runs
            code = compile(tree, "<cell>", "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, dont_inherit=True)
    except SyntaxError:
        return False  # running it raises the error
    return bool(code.co_flags & inspect.CO_COROUTINE)


# -- errors --
_ARGUMENTS = re.compile(r".+\(\) (takes|missing|got) ")  # Python's text if a call does not fit a function


def show_error(shell: InteractiveShell, result: ExecutionResult | None, filename: str, error: BaseException) -> None:
    """Shows ``error`` as the error of the running cell, whose ``result`` this is, with user frames only.

    Must be called from the ``except`` block that caught it. Outside a cell, the error is raised instead.
    """
    show_users_frames(error, filename)
    if result is None:
        raise error
    result.error_in_exec = error
    shell.showtraceback((type(error), error, error.__traceback__), tb_offset=0)


def show_users_frames(error: BaseException, filename: str = "") -> None:
    """Removes tcompile's frames from the traceback of ``error``, and of its causes."""
    error.__traceback__ = _user_traceback(error, filename)
    for earlier in _before(error):
        earlier.__traceback__ = _user_traceback(earlier, "")


def _user_traceback(error: BaseException, filename: str) -> types.TracebackType | None:
    """Returns the traceback of ``error`` from the cell's first frame on, without tcompile's frames.

    They are kept if tcompile failed by a bug of its own. Without a ``filename``, or a frame of the cell, the traceback
    begins where it does; it may then be empty.
    """
    frames = []
    entry = error.__traceback__
    while entry is not None:
        if not entry.tb_frame.f_code.co_filename.startswith("<tcompile"):  # generated, without a text to show
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
    """Whether tcompile failed in its own code: not by an invalid request, user code, or an interrupt."""
    if not files or not files[-1].startswith(_PACKAGES) or not isinstance(error, Exception):
        return False
    if isinstance(error, SyntaxError):
        return str(error.filename).startswith("<tcompile")
    if type(error) is TypeError and _ARGUMENTS.match(str(error)):
        return False
    return not isinstance(error, TcompileError | RecursionError | MemoryError)


def _before(error: BaseException) -> Iterator[BaseException]:
    """Returns the causes of ``error`` that are shown with it."""
    seen = {id(error)}
    while True:
        earlier = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
        if earlier is None or id(earlier) in seen:
            return
        seen.add(id(earlier))
        yield (error := earlier)
