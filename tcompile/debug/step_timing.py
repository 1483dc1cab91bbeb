"""Programs of compiled graphs that note how long each of their steps takes.

Input: a graph that the LLVM backend has compiled.
Output: the same program, which stops a clock after each step.
Why: a fused kernel, a library's function and the plain Python between graphs are told apart by measurement alone.

The program's text is rewritten: after each statement that launches a kernel or calls a library, ``lap(n)`` gives the
time since the last lap to place ``n``. Regions that Python runs have laps of their own, so no time counts twice. The
time of a loop that machine code runs stands at its ``for``, where its operations are not known line by line.
"""

from __future__ import annotations

import ast
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from time import perf_counter_ns
from typing import Any

from tcompile.backends.llvm import CompiledGraph
from tcompile.backends.loop_runners import PartLoop, PythonLoop
from tcompile.backends.schedule.costs import cost_of
from tcompile.backends.timed import TimedLoop
from tcompile.graph import Graph, Location, Node, TensorType, ops
from tcompile.graph.dtypes import FLOAT64
from tcompile.graph.ops.opaque import short_name
from tcompile.graph.sizes import hint
from tcompile.records import dataclass

FUSED, LIBRARY, PLAIN = "fused", "library", "plain"
_LAP = "__lap__"  # in the program; arrays have the user's names


@dataclass(frozen=True)
class Place:
    """What a step does: its kind, the name of a library's function, and the user's lines, each with its share of the
    time. ``traffic`` are the bytes that a kernel moves, ``work`` its operations as additions of so many ``elements``;
    0 where they are not known. ``widest`` is the size of the largest items, in bytes.
    """

    kind: str
    name: str
    lines: tuple[tuple[Location, float], ...]
    traffic: float = 0.0
    work: float = 0.0
    elements: int = 0
    widest: int = 0


@dataclass
class Laps:
    """Nanoseconds and runs by place; those of number 0 were spent outside of graphs."""

    places: list[Place] = field(default_factory=lambda: [Place(PLAIN, "", ())])
    ns: list[int] = field(default_factory=lambda: [0])
    runs: list[int] = field(default_factory=lambda: [0])
    last: int = 0

    def add(self, place: Place) -> int:
        """Returns the number of a place, which is added where there is none like it."""
        if place in self.places:
            return self.places.index(place)
        self.places.append(place)
        self.ns.append(0)
        self.runs.append(0)
        return len(self.places) - 1

    def lap(self, number: int) -> None:
        """Gives the time since the last lap to a place."""
        now = perf_counter_ns()
        self.ns[number] += now - self.last
        self.runs[number] += 1
        self.last = now

    def clear(self) -> None:
        """Forgets all times."""
        self.ns[:] = [0] * len(self.ns)
        self.runs[:] = [0] * len(self.runs)


class TimedGraph:
    """A compiled graph whose steps are timed; all else is the compiled graph's."""

    recipe = None  # machine code that runs the program without Python stops no clock

    def __init__(self, graph: Graph, compiled: Callable[..., Any], laps: Laps) -> None:
        self._compiled = compiled
        self.program = timed_program(graph, compiled, laps)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._compiled, name)

    def __call__(self, *inputs: Any) -> Any:
        """Runs the graph."""
        return self.program(*inputs)


def timed_program(graph: Graph, compiled: Callable[..., Any], laps: Laps) -> Callable[..., tuple[Any, ...]]:
    """Returns the program of a graph with laps after its steps.

    Parameters
    ----------
    graph : Graph
        The captured graph.
    compiled : callable
        What it was compiled to. What another backend than LLVM's made is timed as a whole.
    laps : Laps
        Where the places are added, and the times noted.
    """
    if not isinstance(compiled, CompiledGraph):
        return _as_a_whole(graph, compiled, laps)
    compiled.settle()
    tree = ast.parse(compiled.source)
    (function,) = tree.body
    assert isinstance(function, ast.FunctionDef)
    names = dict(compiled.program.__globals__)
    parts = {id(part): timed_program(region, part, laps) for region, part in compiled.parts.items()}
    names |= {name: _with_parts(value, parts) for name, value in names.items()}
    names[_LAP] = laps.lap
    body = list(_with_laps(function.body, _Steps(compiled, laps)))
    whole = _as_place(graph.nodes, FUSED, "")
    function.body = [_lap(0), *_before_return(body, laps.add(whole))]
    exec(compile(ast.fix_missing_locations(tree), f"<tcompile {graph.name} timed>", "exec"), names)
    program: Callable[..., tuple[Any, ...]] = names["program"]
    return program


def _as_a_whole(graph: Graph, compiled: Callable[..., Any], laps: Laps) -> Callable[..., tuple[Any, ...]]:
    number = laps.add(_as_place(graph.nodes, FUSED, ""))

    def program(*inputs: Any) -> tuple[Any, ...]:
        laps.lap(0)
        results: tuple[Any, ...] = compiled(*inputs)
        laps.lap(number)
        return results

    return program


def _with_parts(value: Any, parts: Mapping[int, Callable[..., Any]]) -> Any:
    """A value of the program, with timed regions where Python runs them."""
    if id(value) in parts:
        return parts[id(value)]
    if isinstance(value, TimedLoop):
        return replace(value, loop=_with_parts(value.loop, parts))
    if isinstance(value, PythonLoop) and value.native is None:
        return replace(value, body=_with_parts(value.body, parts))
    if isinstance(value, PartLoop) and value.native is None:
        return replace(value, parts=[_with_parts(part, parts) for part in value.parts])
    return value


class _Steps:
    """The places of a program's statements, which are asked for in the order of the statements."""

    def __init__(self, compiled: CompiledGraph, laps: Laps) -> None:
        self._launches = deque(
            (name, laps.add(_kernel_place(kernel.computed or kernel.nodes, traffic)))
            for name, kernel, traffic in compiled.launches()
        )
        self._results = {
            name: laps.add(_step_place(node, is_native)) for name, (node, is_native) in compiled.steps().items()
        }

    def place(self, statement: ast.stmt) -> int | None:
        """The number of the place of a statement; None for one that is no step, or the beginning of one."""
        for node in ast.walk(statement):
            if isinstance(node, ast.Name):
                if self._launches and node.id == self._launches[0][0]:
                    return self._launches.popleft()[1]
                if isinstance(node.ctx, ast.Store) and node.id in self._results:
                    return self._results[node.id]
        return None


def _kernel_place(nodes: Sequence[Node], traffic: float | None) -> Place:
    """The place of a kernel that moves so many bytes; None for a function of a library."""
    if traffic is None:
        return _step_place(nodes[-1], False)
    work = sum(_elements(node) * _operations(node) * _widest(node) / FLOAT64.itemsize for node in nodes)
    elements = max(map(_elements, nodes), default=1)
    return replace(_as_place(nodes, FUSED, ""), traffic=traffic, work=work, elements=elements)


def _step_place(node: Node, is_native: bool) -> Place:
    """The place of a step that is no kernel: a library call, or an operation with regions."""
    if is_native:
        return _as_place([inner for region in node.regions for inner in _all_nodes(region)] or [node], FUSED, "")
    if node.regions:
        return _as_place([node], FUSED, "")
    name = short_name(node.attrs["target"]) if node.op is ops.CALL else str(node.op)
    return _as_place([node], LIBRARY, name)


def _all_nodes(graph: Graph) -> Iterator[Node]:
    for node in graph.nodes:
        yield node
        for region in node.regions:
            yield from _all_nodes(region)


def _as_place(nodes: Sequence[Node], kind: str, name: str) -> Place:
    """The place of some nodes: the cost model says how much of the time is whose."""
    weights: dict[Location, float] = {}
    for node in nodes:
        if node.location is not None:
            weights[node.location] = weights.get(node.location, 0.0) + _weight(node)
    total = sum(weights.values())
    lines = tuple((where, weight / total) for where, weight in weights.items())
    return Place(kind, name, lines, widest=max(map(_widest, nodes), default=0))


def _weight(node: Node) -> float:
    return _elements(node) * (0.05 + 0.03 * _operations(node))


def _operations(node: Node) -> float:
    """The additions that an element of a node costs."""
    if node.op is ops.MATMUL:  # of which ``cost_of`` takes constant sizes alone
        return 2.0 * hint(node.inputs[0].tensor.shape[-1])
    return cost_of(node)


def _elements(node: Node) -> int:
    return max(1, max((hint(type.size) for type in _arrays(node)), default=1))


def _widest(node: Node) -> int:
    """The largest item of a node and its operands, in bytes."""
    return max((type.dtype.itemsize for type in _arrays(node)), default=FLOAT64.itemsize)


def _arrays(node: Node) -> list[TensorType]:
    return [one.type for one in (node, *node.inputs) if isinstance(one.type, TensorType)]


def _with_laps(body: Sequence[ast.stmt], steps: _Steps) -> Iterator[ast.stmt]:
    """The statements, each that is a step with a lap after it; inside ``try``, too."""
    for statement in body:
        if isinstance(statement, ast.Try):
            statement.body = list(_with_laps(statement.body, steps))
            yield statement
            continue
        yield statement
        number = None if isinstance(statement, ast.Return) else steps.place(statement)
        if number is not None:
            yield _lap(number)


def _before_return(body: list[ast.stmt], number: int) -> list[ast.stmt]:
    """The statements with a lap before the last one, which returns the results."""
    return [*body[:-1], _lap(number), body[-1]]


def _lap(number: int) -> ast.stmt:
    return ast.Expr(ast.Call(ast.Name(_LAP, ast.Load()), [ast.Constant(number)], []))


__all__ = ["FUSED", "LIBRARY", "PLAIN", "Laps", "Place", "TimedGraph", "timed_program"]
