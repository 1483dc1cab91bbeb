"""Scripts of graphs: the behaviour of a file written by ``graph.script()``.

Input: the script's own file and its inputs.
Output: a line for each backend, saying whether it agrees with NumPy, and an exit status of 1 where one does not; with
``--minify``, a smaller script beside it.
Why: a failing graph can be shared as one file.
"""

from __future__ import annotations

import argparse
import ast
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tcompile.backends import list_backends
from tcompile.debug.isolated import Worker, load, save
from tcompile.debug.judge import STAGES, TOLERANCE, Column, judge, random_inputs
from tcompile.debug.minify import SECONDS, Minified, minify
from tcompile.errors import GraphError, InvalidArgument
from tcompile.graph import Graph
from tcompile.graph.reader import from_code
from tcompile.graph.script import input_text, script


def main(
    file: str,
    inputs: Sequence[Any] = (),
    *,
    data: str = "",
    backend: str = "",
    after: str = "capture",
    tolerance: float | None = TOLERANCE,
    exact: bool = False,
) -> None:
    """Runs the graph in ``file``, by the options of the command line. Ends the process with status 1 on a failure.

    inputs: of these, None stands for one that is in the file ``data`` beside the script, or is random. backend: the one
    to check, by default every backend of tcompile's own.
    """
    parser = argparse.ArgumentParser(description="Compares backends with NumPy on the graph in this file.")
    parser.add_argument("--backend", default=backend, help="one backend: a name, or module:function (default: all)")
    parser.add_argument("--after", default=after, choices=STAGES, help="which stages the graph has after it")
    parser.add_argument("--tolerance", default=tolerance, type=float, help="relative; what is further off is wrong")
    parser.add_argument("--seed", default=0, type=int, help="of the inputs that are made up")
    parser.add_argument("--minify", action="store_true", help="write a smaller graph that fails in the same way")
    parser.add_argument("--seconds", default=SECONDS, type=float, help="for --minify")
    parser.add_argument("--here", action="store_true", help="run in this process, where a debugger can follow")
    options = parser.parse_args()
    sys.path[:0] = [str(Path(file).resolve().parent)]
    graph = graph_in(Path(file).read_text(encoding="utf-8"))
    values = _complete(graph, inputs, Path(file).with_name(data) if data else None, options.seed)
    columns = [Column(name, options.after, exact) for name in ([options.backend] if options.backend else _own())]
    failing = []
    with Worker(columns[0]) as worker:
        for column in columns:
            worker.use(column)
            if options.here:
                verdict = judge(graph, values, column, options.tolerance)
            else:
                verdict = worker.judge(graph, values, options.tolerance)
            print(f"{column.backend}: {verdict if verdict.failed else verdict.detail or 'the same as NumPy'}")
            failing += [column] if verdict.failed else []
    if options.minify and failing:
        _minify(file, graph, values, failing[0], options)
    sys.exit(bool(failing))


def _own() -> list[str]:
    return ["eager", "aot_eager", *(name for name in list_backends() if name == "llvm")]


def _minify(file: str, graph: Graph, values: Sequence[Any], column: Column, options: argparse.Namespace) -> None:
    tolerance = TOLERANCE if options.tolerance is None else options.tolerance
    done = minify(
        graph, values, column, tolerance=tolerance, isolate=not options.here, seconds=options.seconds
    )  # fmt: skip
    path = write_minified(Path(file).with_name(f"{Path(file).stem}_small.py"), done)
    print(f"\n{done}\n\nwritten: {path}")


def graph_in(text: str) -> Graph:
    """The graph in a script: its one function whose arguments have types in quotes. Raises GraphError."""
    for statement in ast.parse(text).body:
        if isinstance(statement, ast.FunctionDef) and all(
            isinstance(argument.annotation, ast.Constant) for argument in statement.args.args
        ):
            lines = text.splitlines()[statement.lineno - 1 : statement.end_lineno]
            return from_code("\n".join(lines) + "\n")
    raise GraphError("there is no graph in this file")


def _complete(graph: Graph, inputs: Sequence[Any], data: Path | None, seed: int) -> list[Any]:
    if inputs and len(inputs) != len(graph.inputs):
        raise InvalidArgument(f"the graph has {len(graph.inputs)} inputs, the script {len(inputs)}")
    rest = load(data) if data is not None else random_inputs(graph, seed)
    given = list(inputs) or [None] * len(rest)
    return [other if value is None else value for value, other in zip(given, rest, strict=True)]


def write_script(path: Path, graph: Graph, inputs: Sequence[Any], about: str, options: str) -> Path:
    """Writes a graph with its inputs; those that are too large for the text go into a file beside it."""
    if any(input_text(value) == "None" for value in inputs):
        data = path.with_suffix(".npz")
        save(data, inputs)
        options = ", ".join(filter(None, (options, f"data={data.name!r}")))
    path.write_text(script(graph, about, inputs, options), encoding="utf-8")
    return path


def write_minified(path: Path, done: Minified) -> Path:
    """Writes the minifier's result."""
    about = f"{done.ops_before} operations reduced to {done.graph.op_count}.\n{done.verdict}"
    return write_script(path, done.graph, done.inputs, about, options_of(done.column, done.tolerance))


def options_of(column: Column, tolerance: float | None) -> str:
    """The arguments of ``main`` by which a script repeats a failure."""
    parts = [f"backend={column.name()!r}" if column.name() else "", f"after={column.after!r}"]
    parts += [f"tolerance={tolerance!r}" if tolerance != TOLERANCE else "", "exact=True" if column.exact else ""]
    return ", ".join(part for part in parts if part and part != "after='capture'")


__all__ = ["graph_in", "main", "options_of", "write_minified", "write_script"]
