"""The magics ``%%tcompile`` and ``%tcompile``.

Input: the line and the text that IPython passes to a magic.
Output: a cell that ran, its report, or a usage error that names the valid values.
Why: the thin layer between IPython and the public API. Names of stances, backends and modes are validated by that API
alone.
"""

from __future__ import annotations

import ast
import bdb
import contextlib
import re
import shlex
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from IPython.core.error import UsageError
from IPython.core.magic import Magics, cell_magic, line_magic, magics_class, no_var_expand
from IPython.core.magic_arguments import argument, magic_arguments
from IPython.display import display

from tcompile import api
from tcompile.errors import InvalidArgument, InvalidType
from tcompile.runtime.dispatch import parts_of
from tcompile.stance import set_stance
from tcompile_jupyter.cells import Cell, CellSettings, prepare, running, show_error, show_users_frames
from tcompile_jupyter.compare import Comparison, compare
from tcompile_jupyter.compare_cell import Snapshot, compare_cell, compare_statements, profile_cell, snapshot
from tcompile_jupyter.displays import GradientView
from tcompile_jupyter.gradients import gradient_view, last_call
from tcompile_jupyter.options import DYNAMIC, better_error, help_text, unknown
from tcompile_jupyter.record import Record, recording
from tcompile_jupyter.report import CellReport
from tcompile_jupyter.spent import Spent
from tcompile_jupyter.status import StatusTable, current_stance
from tcompile_jupyter.watch import Watch

if TYPE_CHECKING:
    import argparse

    from IPython.core.interactiveshell import ExecutionResult

_HELP = re.compile(r"%%tcompile\s(.*\s)?(-h|--help)\s*$")
_LINE = """%tcompile [COMMAND]: inspect and control the compiler

  %tcompile               what is compiled, under which stance
  %tcompile stance NAME   change the stance, for the whole process
  %tcompile explain CALL  run the call, and explain its graphs, breaks and guards
  %tcompile compare CALL  time the call in plain Python and compiled, and compare the results
  %tcompile profile CALL  where the time of the call goes, line by line
  %tcompile grad CALL     the gradient of the call: its size, its errors, its cost and its graph
  %tcompile watch         show a line under every later cell that compiled something; watch off: no more
  %tcompile reset         forget everything that was compiled
"""
_CELL = """%%tcompile [OPTIONS]: run a cell with its code compiled, functions that it defines and statements

The cell behaves as without the magic. A report of what was compiled follows it."""
COMMANDS = "status", "stance", "explain", "compare", "profile", "grad", "watch", "reset"
WATCH = "on", "off", ""


@magics_class
class TcompileMagics(Magics):  # type: ignore[misc]
    """``%%tcompile`` compiles a cell; ``%tcompile`` inspects and controls the compiler."""

    def __init__(self, shell: Any) -> None:
        super().__init__(shell)
        self._watch = Watch(shell)
        self._reported: tuple[Any, set[str]] = None, set()  # the result of a cell, and which texts in it
        shell.input_transformers_cleanup.append(help_alone)

    @no_var_expand
    @magic_arguments("tcompile")
    @argument("--stance", help="the stance for this cell alone")
    @argument("--backend", default="auto", help="what makes machine code of graphs")
    @argument("--mode", help="a named set of options")
    @argument("--dynamic", default="auto", help="whether sizes are left open; auto: once they are seen to change")
    @argument("--fullgraph", action="store_true", help="an error where a function of this cell would break")
    @argument("--compare", action="store_true", help="run the cell again in copies, plain and compiled, and compare")
    @argument("--each", action="store_true", help="the same for each statement by itself")
    @argument("--time", action="store_true", help="run the cell again in copies, and say where its time goes, by line")
    @argument("--grad", metavar="NAME", help="the gradient of this function's last call, with values after the cell")
    @argument("--graph", action="store_true", help="draw the graphs in the report")
    @argument("--explain", action="store_true", help="say all that is known: graphs, breaks, guards, times")
    @argument("--profile", action="store_true", help="count compiles, calls and guard failures, and time the calls")
    @argument("--quiet", action="store_true", help="no report")
    @argument("-h", "--help", action="store_true", help="this text")
    @cell_magic("tcompile")
    def cell(self, line: str, body: str) -> None:
        """Run a cell with its code compiled: the functions that it defines, and its own statements.

        The cell behaves as without the magic. A report of what was compiled follows it.
        """
        try:
            options = self.cell.parser.parse_args(shlex.split(line))
        except ValueError as error:
            raise UsageError(f"%%tcompile {line.strip()}: {str(error).lower()}") from None
        except UsageError as error:
            raise UsageError(better_error(self.cell.parser, str(error))) from None
        if options.help:
            print(help_text(self.cell.parser, _CELL))
            return
        settings = _settings(options)
        with contextlib.ExitStack() as stack:
            if options.stance is not None:
                with _usage_errors():
                    stack.enter_context(set_stance.block(options.stance))
            self._run(body, settings, options)

    def _run(self, body: str, settings: CellSettings, options: argparse.Namespace) -> None:
        result = running(self.shell)  # hidden now: a cell that runs another one hides its own
        try:
            cell = prepare(self.shell, result, body)
        except UsageError:
            raise
        except Exception as error:  # the text is not Python, or one of IPython's transformers rejects it
            show_error(self.shell, result, "", error)
            self._afterwards(result, body, None)
            return
        called = last_call(cell, options.grad) if options.grad else None
        before = snapshot(cell) if options.compare or options.each or options.time else None
        profile = api.CompileProfiler() if options.profile else None
        spent = Spent()
        with recording(_cell_id(self.shell, result)) as record, profile or contextlib.nullcontext(), spent.watching():
            failed = self._execute(cell, result, settings)
        report = CellReport(
            record,
            stance=current_stance(),
            draw=options.graph,
            explain=options.explain,
            profile=profile,
            cell_file=cell.filename,
            spent=None if options.time or failed else spent.view(record),
            waiting=() if failed else _waiting(cell, record),
        )
        if before is not None and not failed:
            self._again(cell, settings, before, options, report)
        if called is not None and not failed:
            report.gradient = self._gradient_of(called)
        compiled = any(function.graphs for function in record)
        self._watch.skip()
        if options.quiet or (failed and not compiled):  # the error is self-explanatory
            self._afterwards(result, body, None)
        else:
            self._afterwards(result, body, report)

    def _execute(self, cell: Cell, result: ExecutionResult | None, settings: CellSettings) -> bool:
        """Runs the cell and shows its error. Returns whether there was one."""
        try:
            cell.run(settings)
        except (SystemExit, bdb.BdbQuit, *self.shell.custom_exceptions):
            raise  # IPython handles these itself
        except BaseException as error:
            show_error(self.shell, result, cell.filename, error)
            return True
        return False

    def _again(
        self, cell: Cell, settings: CellSettings, before: Snapshot, options: argparse.Namespace, report: CellReport
    ) -> None:
        """Runs the cell in copies, as the options ask, and adds what was measured to the report."""
        try:
            if options.compare:
                report.comparison = compare_cell(cell, settings, before)
            if options.each:
                report.statements = compare_statements(cell, settings, before)
            if options.time:
                report.times = profile_cell(cell, settings, before)
        except KeyboardInterrupt:
            print("tcompile: the cell ran; repeating it was interrupted")
        except Exception as error:
            print(f"tcompile: the cell ran, but not again: {error!r}")
        finally:
            before.forget()

    def _gradient_of(self, call: str) -> GradientView | None:
        """The gradient of a call, with the values that names have after the cell; None with the reason printed."""
        try:
            return self._gradient(call)
        except KeyboardInterrupt:
            print("tcompile: the cell ran; looking at its gradient was interrupted")
        except Exception as error:
            print(f"tcompile: the cell ran, but {call} has no gradient: {error}")
        return None

    def _afterwards(self, result: ExecutionResult | None, body: str, report: CellReport | None) -> None:
        """Shows ``report`` below all output of the cell, plots included, which IPython draws last.

        If one text runs repeatedly in one cell, as under ``%%timeit``, the first run is reported.
        """
        if result is None:
            if report is not None:
                display(report)
            return
        if self._reported[0] is not result:
            self._reported = result, set()
        if body in self._reported[1]:
            report = None
        elif report is not None:
            self._reported[1].add(body)
        if report is None and result.error_in_exec is None:
            return

        def after_cell(*_: Any) -> None:
            self.shell.events.unregister("post_run_cell", after_cell)
            if result.error_in_exec is not None:
                self.shell.last_execution_succeeded = False
            if report is not None:
                display(report)

        self.shell.events.register("post_run_cell", after_cell)

    @no_var_expand
    @line_magic("tcompile")
    def line(self, line: str) -> Any:
        """Inspect and control the compiler; ``%tcompile --help`` lists the commands."""
        command, _, what = line.strip().partition(" ")
        if command in ("-h", "--help", "help"):
            print(f"{_LINE}\n{help_text(self.cell.parser, _CELL)}")
            return None
        commands: dict[str, Callable[[str], Any]] = {
            "status": self._status,
            "stance": self._stance,
            "explain": self._explain,
            "compare": self._compare_call,
            "profile": self._profile,
            "grad": self._gradient,
            "watch": self._set_watch,
            "reset": self._reset,
        }
        if (command or "status") not in commands:
            raise UsageError(unknown("command", command, commands, "%tcompile --help describes them"))
        __tracebackhide__ = True  # IPython then shows only user frames
        try:
            return commands[command or "status"](what.strip())
        except UsageError:
            raise
        except BaseException as error:
            show_users_frames(error)
            if error.__traceback__ is None and isinstance(error, Exception):  # it is about the requested call
                raise UsageError(f"%tcompile {command}: {error}") from None
            raise

    def _status(self, what: str) -> StatusTable:
        _nothing("status", what)
        return StatusTable.of(self.shell.user_ns)

    def _stance(self, what: str) -> None:
        if not what:
            print(current_stance())
            return
        with _usage_errors():
            set_stance(what)
        print(f"stance {current_stance()}")

    def _explain(self, what: str) -> Any:
        function, args, kwargs = self._call("explain", what)
        return api.explain(function)(*args, **kwargs)

    def _compare_call(self, what: str) -> Comparison:
        function, args, kwargs = self._call("compare", what)
        return compare(function, *args, name=what if len(what) <= 40 else "", **kwargs)

    def _profile(self, what: str) -> Any:
        function, args, kwargs = self._call("profile", what)
        return api.profile(function)(*args, **kwargs)

    def _gradient(self, what: str) -> GradientView:
        function, args, kwargs = self._call("grad", what)
        return gradient_view(function, args, kwargs)

    def _set_watch(self, what: str) -> None:
        if what not in WATCH:
            raise UsageError(unknown("argument of %tcompile watch", what, WATCH))
        self._watch.set(what != "off")
        print("a line will stand under each cell that compiles something" if what != "off" else "no longer watching")

    def unload(self) -> None:
        """Undoes the changes of the magics to the shell."""
        if self._watch.on:
            print("tcompile: no longer watching; %tcompile watch starts it again")
        self._watch.set(False)
        if help_alone in self.shell.input_transformers_cleanup:
            self.shell.input_transformers_cleanup.remove(help_alone)

    def _reset(self, what: str) -> None:
        _nothing("reset", what)
        api.reset()
        print("everything that was compiled is forgotten")

    def _call(self, command: str, text: str) -> tuple[Callable[..., Any], list[Any], dict[str, Any]]:
        """Returns the function and the arguments of a call given as text; each is evaluated once."""
        try:
            call = ast.parse(text.rstrip("; "), mode="eval").body
        except SyntaxError:
            call = None
        if not isinstance(call, ast.Call):
            raise UsageError(f"%tcompile {command} takes a call, such as: %tcompile {command} f(x, y)")

        def value(node: ast.expr) -> Any:
            return eval(compile(ast.Expression(node), "<%tcompile>", "eval"), self.shell.user_ns)

        args: list[Any] = []
        for node in call.args:
            args += list(value(node.value)) if isinstance(node, ast.Starred) else [value(node)]
        kwargs: dict[str, Any] = {}
        for keyword in call.keywords:
            kwargs.update({keyword.arg: value(keyword.value)} if keyword.arg else value(keyword.value))
        return value(call.func), args, kwargs


def help_alone(lines: list[str]) -> list[str]:
    """Handles ``%%tcompile --help`` without a body, which IPython would refuse."""
    if lines and _HELP.match(lines[0]) and not "".join(lines[1:]).strip():
        return ["%tcompile --help\n"]
    return lines


def _waiting(cell: Cell, record: Record) -> tuple[str, ...]:
    """Returns the cell's functions that have not been called."""
    if current_stance() == "force_eager":
        return ()  # calls are not recorded
    called = {function.name for function in record}
    return tuple(
        name
        for name, made in cell.functions.items()
        if not parts_of(made)[2].entries and parts_of(made)[0].__qualname__ not in called
    )


def _settings(options: argparse.Namespace) -> CellSettings:
    """Returns the cell's settings, validated on an empty function before anything runs."""
    if options.dynamic not in DYNAMIC:
        raise UsageError(unknown("--dynamic", options.dynamic, DYNAMIC))
    settings = CellSettings(options.fullgraph, DYNAMIC[options.dynamic], options.backend, options.mode)
    with _usage_errors():
        settings.compile(lambda: None)
    return settings


@contextlib.contextmanager
def _usage_errors() -> Iterator[None]:
    """Shows the API's error about a wrong name as a usage error, without a traceback."""
    try:
        yield
    except (InvalidArgument, InvalidType) as error:
        raise UsageError(str(error)) from None


def _nothing(command: str, what: str) -> None:
    if what:
        raise UsageError(f"%tcompile {command} takes nothing after it, got {what!r}")


def _cell_id(shell: Any, result: ExecutionResult | None) -> str:
    if result is None:
        return f"In[{shell.execution_count}]"
    return result.info.cell_id or f"In[{result.execution_count}]"
