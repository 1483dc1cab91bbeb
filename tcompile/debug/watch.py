"""Catching of failing graphs while a program runs: ``TCOMPILE_REPRO_AFTER``.

Input: every graph that is compiled, with the inputs of the call that it is compiled for.
Output: scripts, in a folder, for those that fail.
Why: a failure somewhere in a program becomes a file of a few lines, by running it again under the variable.

``TCOMPILE_REPRO_AFTER`` selects the graph: "capture" the one that capture makes, which goes through the transforms and
the backend; "transforms" the one after the transforms, so that only the backend can be at fault.
``TCOMPILE_REPRO_LEVEL`` selects the work: 1 writes a graph that cannot be compiled or run, 2 (the default) minifies it,
3 writes every graph, failing or not, 4 is like 2 and also compares every result with NumPy's. A graph whose compiled
code ends the process is written before that, unminified.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from tcompile import compiler, process, transforms
from tcompile.backends import Backend
from tcompile.backends.replay import Interrupted, Replay
from tcompile.debug.judge import STAGES, TOLERANCE, Column, Verdict, compare, copies
from tcompile.debug.minify import minify
from tcompile.debug.script import options_of, write_minified, write_script
from tcompile.errors import InvalidArgument
from tcompile.graph import Graph, ops

VARIABLE = "TCOMPILE_REPRO_AFTER"
LEVEL = "TCOMPILE_REPRO_LEVEL"
FOLDER = "tcompile_repro"
LEVELS = {1: "write", 2: "write the smallest", 3: "write all", 4: "compare results too"}
_ELSEWHERE = {"dynamo": "capture", "aot": "transforms"}  # torch.compile's names of these stages
_SECONDS = 30.0  # for one graph


class Watcher:
    """A wrapper around the compile of each graph. ``written`` are the scripts of those that failed."""

    def __init__(
        self,
        after: str = "capture",
        level: int = 2,
        folder: str | os.PathLike[str] = FOLDER,
        tolerance: float = TOLERANCE,
    ) -> None:
        if after not in STAGES:
            hint = f" Did you mean {_ELSEWHERE[after]!r}?" if after in _ELSEWHERE else ""
            raise InvalidArgument(f"there is no stage {after!r}.{hint} Stages: {', '.join(STAGES)}")
        if level not in LEVELS:
            raise InvalidArgument(f"there is no level {level!r}. Levels: 1 to 4")
        self.after, self.level, self.tolerance = after, level, tolerance
        self.folder = Path(folder)
        self.written: list[Path] = []
        self._count = 0
        self._lock = process.lock()

    def __call__(
        self,
        graph: Graph,
        examples: Sequence[Any],
        backend: Backend,
        exact: bool,
        build: Callable[[], Callable[..., Any]],
    ) -> Callable[..., Any]:
        """Compiles a graph with ``build``, tries the result on the example inputs, and writes what fails."""
        column = Column(backend.name if backend.builtin else backend.compile, self.after, exact)
        subject = self._subject(graph, backend)
        path = self._write(subject, examples, column)
        try:
            compiled = build()
        except Exception as error:
            cause = error.__cause__ or error  # the backend's own error, where ours is around it
            self._failed(path, subject, examples, column, Verdict("compile error", f"{type(cause).__name__}: {cause}"))
            raise
        verdict = self._try(graph, compiled, examples)
        if verdict.failed:
            self._failed(path, subject, examples, column, verdict)
        elif path is not None and self.level != 3:
            path.unlink(missing_ok=True)
            path.with_suffix(".npz").unlink(missing_ok=True)
        return compiled

    def _subject(self, graph: Graph, backend: Backend) -> Graph:
        """The graph to write: the captured one, or the one after the transforms."""
        if self.after == "capture" or not backend.transformed:
            return graph
        try:
            return transforms.run(graph)
        except Exception:  # compiling it will report it
            return graph

    def _write(self, graph: Graph, inputs: Sequence[Any], column: Column) -> Path | None:
        """Writes a graph before it is compiled: a crash leaves the script behind. None where it has no text."""
        with self._lock:
            self._count += 1
            path = self.folder / f"{os.getpid()}_{self._count:03}_{graph.name}.py"
        about = f"The graph {graph.name} after {self.after}."
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            return write_script(path, graph, inputs, about, options_of(column, self.tolerance))
        except Exception as error:
            _say(f"{graph.name} cannot be written: {type(error).__name__}: {error}")
            return None

    def _try(self, graph: Graph, compiled: Callable[..., Any], examples: Sequence[Any]) -> Verdict:
        """Runs the compiled graph on copies of its inputs, unless that may have effects."""
        if any(node.op is ops.PYTHON_CALL for node in graph.nodes):
            return Verdict("same", "not tried: it calls the program's own functions")
        with np.errstate(all="ignore"):
            try:
                got = compiled(*copies(examples))
            except Interrupted as error:
                raise error.error from None
            except Replay:
                return Verdict("same", "given back to plain Python")
            except Exception as error:
                return Verdict("run error", f"{type(error).__name__}: {error}")
            if self.level < 4:
                return Verdict("same")
            try:
                return compare(graph(*copies(examples)), got, self.tolerance)
            except Exception as error:
                return Verdict("invalid", f"{type(error).__name__}: {error}")

    def _failed(self, path: Path | None, graph: Graph, inputs: Sequence[Any], column: Column, verdict: Verdict) -> None:
        """Writes the final script. Errors in here are reported as events, and never reach the program."""
        _say(f"{graph.name}: {verdict}")
        if path is None:
            return
        self.written.append(path)
        if self.level in (2, 4):
            try:
                done = minify(graph, inputs, column, tolerance=self.tolerance, seconds=_SECONDS)
                write_minified(path, done)
                _say(f"{done.ops_before} operations reduced to {done.graph.op_count}")
            except Exception as error:
                _say(f"it could not be made smaller: {type(error).__name__}: {error}")
        _say(f"written: {path}")


def _say(text: str) -> None:
    print(f"tcompile: {text}", file=sys.stderr)


@contextlib.contextmanager
def watching(
    after: str = "capture", level: int = 2, folder: str | os.PathLike[str] = FOLDER, tolerance: float = TOLERANCE
) -> Iterator[Watcher]:
    """Watches what is compiled in the block. Raises InvalidArgument for a stage or a level that does not exist."""
    before = compiler.watcher
    compiler.watcher = made = Watcher(after, level, folder, tolerance)
    try:
        yield made
    finally:
        compiler.watcher = before


def follow(value: str) -> None:
    """Watches the whole process. Raises InvalidArgument for a stage or a level that does not exist."""
    level = os.environ.get(LEVEL, "2")
    if not level.isdecimal():
        raise InvalidArgument(f"{LEVEL} is a number from 1 to 4, not {level!r}")
    compiler.watcher = Watcher(value, int(level))
    _say(f"graphs that fail are left in {FOLDER}; of one that ends the process: python <its script> --minify")


__all__ = ["FOLDER", "LEVELS", "Watcher", "follow", "watching"]
