"""The graph IR: typed, in single-assignment form, with regions.

Input: nodes, appended so that every operand precedes its users.
Output: a ``Graph``, which runs (call it), prints as Python (``code``, ``readable``) and draws itself
(``_repr_mimebundle_``).
Why: it is the one representation between capture, transforms and backends.

Operands are nodes, or bare Python numbers, which take the dtype of the node beside them (``x * 2``). Operations are
rows of ``graph.ops``; keyword attributes are plain immutable values. Operations with sub-graphs (``cond``,
``while_loop``, ``scan``, …) keep them in ``regions``. Modules that run, print and draw graphs are above this one, and
registered in ``PRESENTERS``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from typing import Any, TypeAlias

from tcompile.graph.op import INPUT, Op
from tcompile.graph.sizes import ShapeEnv, Size, SymInt
from tcompile.graph.types import ScalarType, TensorType, Type, on_device
from tcompile.observe.html_form import html_form
from tcompile.observe.warn import OURS
from tcompile.records import dataclass


@dataclass(frozen=True)
class Location:
    """The place in the user's code where a value was made: file, 1-based line, 0-based columns, function, source line.

    ``end_line`` is set where the expression spans several lines; ``end_column`` counts in it.
    """

    file: str
    line: int
    column: int | None = None
    end_column: int | None = None
    function: str = ""
    text: str = ""
    end_line: int = 0

    def __str__(self) -> str:
        return f"{self.file}:{self.line} in {self.function}"


@dataclass(eq=False)
class Node:
    """One value. ``op`` is a row of the op table, or ``INPUT``.

    ``type`` is the result's type; an operation with several results (a control-flow operation) has a tuple of
    types and is read through ``get`` nodes (attribute ``index``). ``silent``: floating-point conditions that it meets
    are not reported; so it is with derivatives, whose formulas divide by zero where there is none. ``recomputed``: it
    repeats another node for a derivative.
    """

    op: Op
    operands: tuple[Operand, ...]
    attrs: dict[str, Any]
    type: Type | tuple[Type, ...]
    name: str
    location: Location | None = None
    regions: tuple[Graph, ...] = ()
    silent: bool = False
    recomputed: bool = False

    @property
    def tensor(self) -> TensorType:
        """The type, which must be a tensor's."""
        assert isinstance(self.type, TensorType), f"{self.name} has type {self.type}"
        return self.type

    @property
    def inputs(self) -> tuple[Node, ...]:
        """The operands that are nodes."""
        return tuple([o for o in self.operands if isinstance(o, Node)])

    @property
    def users_location(self) -> Location | None:
        """The location; None where it is in tcompile and not the user's, as in ``grad(np.linalg.norm)``."""
        where = self.location
        return None if where is None or where.file.startswith(OURS) else where

    @property
    def device(self) -> str:
        """The device of the result; numbers are on the CPU."""
        type = self.type[0] if isinstance(self.type, tuple) and self.type else self.type
        return type.device if isinstance(type, TensorType) else "cpu"

    def move(self, device: str) -> None:
        """Sets another device for the result."""
        if isinstance(self.type, tuple):
            self.type = tuple(on_device(type, device) for type in self.type)
        else:
            self.type = on_device(self.type, device)

    def __repr__(self) -> str:
        return f"%{self.name}"


Operand: TypeAlias = Node | bool | int | float | complex | SymInt


def ancestors(nodes: Iterable[Node]) -> set[Node]:
    """The nodes that some nodes are computed from, these included."""
    found: set[Node] = set()
    waiting = list(nodes)
    while waiting:
        node = waiting.pop()
        if node not in found:
            found.add(node)
            waiting += node.inputs
    return found


@dataclass(eq=False)
class Graph:
    """A function over arrays, as a list of nodes.

    ``inputs`` are ``input`` nodes, ``outputs`` any nodes (the same one may be returned twice). ``env`` holds the
    symbols that occur in shapes. ``updates`` maps, by number, outputs to the inputs in whose memory the caller will
    store them: a backend may do that itself, and return the input. ``compiled`` refers to the backend's result, as long
    as that is alive.

    >>> import numpy as np
    >>> from tcompile.graph import ops
    >>> g = Graph("example")
    >>> x = g.input("x", TensorType(np.dtype("float32"), (3,)))
    >>> g.outputs = [ops.apply(g, "multiply", ops.apply(g, "sin", x), 2.0)]
    >>> g(np.zeros(3, "float32"))
    (array([0., 0., 0.], dtype=float32),)
    """

    name: str = "graph"
    env: ShapeEnv = field(default_factory=ShapeEnv)
    inputs: list[Node] = field(default_factory=list)
    nodes: list[Node] = field(default_factory=list)
    outputs: list[Node] = field(default_factory=list)
    updates: dict[int, int] = field(default_factory=dict)
    scratch: bool = False
    compiled: Callable[[], Any] | None = None
    _names: dict[str, int] = field(default_factory=dict)

    # -- building --------------------------------------------------------------------------------------------
    def input(self, name: str, type: Type, location: Location | None = None) -> Node:
        """Adds an input."""
        node = Node(INPUT, (), {}, type, self._unique(name), location)
        self.inputs.append(node)
        return node

    def append(
        self,
        op: Op,
        operands: Sequence[Operand],
        attrs: Mapping[str, Any],
        type: Type | tuple[Type, ...],
        *,
        name: str | None = None,
        location: Location | None = None,
        regions: tuple[Graph, ...] = (),
    ) -> Node:
        """Adds a node whose type is already known (``ops.apply`` infers it). Its device is that of its operands."""
        node = Node(op, tuple(operands), dict(attrs), type, self._unique(name or op.name), location, regions)
        device = next((d for other in node.inputs if (d := other.device) != "cpu"), "cpu")
        if device != "cpu":
            node.move(device)
        self.nodes.append(node)
        return node

    def _unique(self, name: str) -> str:
        count = self._names.get(name, 0)
        self._names[name] = count + 1
        if not count:
            return name
        return self._unique(f"{name}_{count}")

    # -- reading ---------------------------------------------------------------------------------------------
    @property
    def device(self) -> str:
        """The device of its arrays: the CPU, unless an input says otherwise."""
        return next((device for node in self.inputs if (device := node.device) != "cpu"), "cpu")

    @property
    def is_of_tensors(self) -> bool:
        """Whether its values are PyTorch's tensors."""
        return any(node.op.name == "tensor_call" for node in self.nodes)

    def __iter__(self) -> Iterator[Node]:
        return iter(self.nodes)

    def users(self) -> dict[Node, list[Node]]:
        """For each node, the nodes that read it (graph outputs not counted)."""
        users: dict[Node, list[Node]] = {node: [] for node in [*self.inputs, *self.nodes]}
        for node in self.nodes:
            for operand in node.inputs:
                users[operand].append(node)
        return users

    def rebuild(
        self,
        replace: Callable[[Graph, Node, tuple[Operand, ...]], Node | None],
        given: Callable[[Graph, Node], Node | None] = lambda graph, node: None,
    ) -> Graph:
        """Returns a new graph in which ``replace(graph, node, operands)`` gives the replacement of each node.

        ``operands`` are already those of the new graph; None keeps the node unchanged. A transform is written so: it
        visits the nodes in order and never edits a graph in place. ``given(graph, node)`` may add another input in the
        place of one, and returns its replacement.
        """
        result = Graph(self.name, self.env, scratch=self.scratch)
        new: dict[Node, Node] = {}
        for node in self.inputs:
            assert not isinstance(node.type, tuple)
            new[node] = given(result, node) or result.input(node.name, node.type, node.location)
        for node in self.nodes:
            operands = tuple(new[o] if isinstance(o, Node) else o for o in node.operands)
            before = len(result.nodes)
            made = replace(result, node, operands)
            if made is None:
                made = result.append(
                    node.op, operands, node.attrs, node.type,
                    name=node.name, location=node.location, regions=node.regions,
                )  # fmt: skip
            if node.silent:
                for added in result.nodes[before:]:
                    added.silent = True
            new[node] = made
        result.outputs = [new[node] for node in self.outputs]
        result.updates = self.updates
        return result

    @property
    def op_count(self) -> int:
        """The number of operations, those in regions included."""
        return sum(1 + sum(region.op_count for region in node.regions) for node in self.nodes)

    def symbol_inputs(self) -> dict[str, tuple[int, int | None]]:
        """The input that binds each symbol at run time: input number and axis (axis None: the Python int itself)."""
        found: dict[str, tuple[int, int | None]] = {}
        for position, node in enumerate(self.inputs):
            places: list[tuple[Size | None, int | None]] = []
            if isinstance(node.type, TensorType):
                places += [(size, axis) for axis, size in enumerate(node.type.shape)]
            elif isinstance(node.type, ScalarType):
                places.append((node.type.symbol, None))
            for size, axis in places:
                if isinstance(size, SymInt) and str(size) in size.env.hints:
                    found.setdefault(str(size), (position, axis))
        return found

    # -- display ---------------------------------------------------------------------------------------------
    def __call__(self, *args: Any) -> tuple[Any, ...]:
        """Runs the graph with NumPy and returns the tuple of its outputs."""
        results: tuple[Any, ...] = PRESENTERS["run"](self, args)
        return results

    @property
    def code(self) -> str:
        """The graph as the text of a runnable Python function over an array namespace ``xp``."""
        text: str = PRESENTERS["code"](self)
        return text

    def readable(self) -> str:
        """A compact listing: one typed line for each value, under the user's line that made it."""
        text: str = PRESENTERS["readable"](self)
        return text

    def script(self, about: str = "", inputs: Sequence[Any] | None = None) -> str:
        """The text of a file that runs the graph and compares the backends on it; ``about`` is its heading."""
        text: str = PRESENTERS["script"](self, about, inputs)
        return text

    def derivative_table(self) -> str:
        """A table of the derivative in the graph, by the user's lines; "" where there is none."""
        text: str = PRESENTERS["derivative_table"](self)
        return text

    def svg(
        self,
        groups: Mapping[str, Sequence[str]] | None = None,
        inner: Mapping[Graph, Mapping[str, Sequence[str]]] | None = None,
    ) -> str:
        """The drawing, as SVG text; ``groups`` maps names, say of kernels, to the names of the nodes in them.

        ``inner`` has such groups for sub-graphs.
        """
        text: str = PRESENTERS["svg"](self, groups, inner)
        return text

    def fused(self) -> tuple[Graph, dict[Graph, dict[str, tuple[str, ...]]]] | None:
        """The compiled graph: the graph after the transforms; by graph and kernel the names of nodes.

        None where it has not been compiled into kernels, or where these are dead.
        """
        made = self.compiled() if self.compiled is not None else None
        return None if made is None else (made.schedule.graph, made.groups())

    def view(self, draw: bool = True) -> Any:
        """The data of its display, a ``tcompile.observe.display.graphs.GraphView``; with the drawing or without."""
        return PRESENTERS["view"](self, draw)

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, Any]:
        view = self.view()
        made: dict[str, Any] = view.bundle(**{"image/svg+xml": view.draw_svg} if view.draw_svg else {})
        return made

    _repr_html_ = html_form

    def __repr__(self) -> str:
        return f"<Graph {self.name}: {len(self.inputs)} inputs, {self.op_count} ops, {len(self.outputs)} outputs>"


# The functions by which a graph runs, prints and draws itself, by name: set by ``graph/__init__``.
PRESENTERS: dict[str, Callable[..., Any]] = {}

__all__ = ["PRESENTERS", "Graph", "Location", "Node", "Operand", "ScalarType", "TensorType", "Type"]
