"""The memory (alias set) that an array object and its views share.

Input: nodes of the graph under construction.
Output: for each, the node that made its elements and the view ops from there to it.
Why: graphs are pure while arrays are written to. A write gives the memory a new node, and every array object that shows
the memory is derived from it by its own view ops.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tcompile.capture.context.loop_plan import LoopPlan, Restart
from tcompile.capture.values.base import Value
from tcompile.frontends.base import Builder, CannotCapture, Traced
from tcompile.graph import Graph, Node, ops
from tcompile.graph.ops import apply
from tcompile.graph.ops.view import is_view_of_operand
from tcompile.graph.ops.writing import Path
from tcompile.graph.overlap import is_view
from tcompile.records import dataclass

if TYPE_CHECKING:
    from tcompile.capture.values.array import ArrayValue


WHOLE = ("index", (("key", (...,)),))  # a view of all elements


@dataclass(eq=False)
class Memory:
    """Elements in memory. ``root`` is the node that made them, ``node`` what they are now.

    ``owner`` is the array from outside whose elements they are; ``kept`` says in words why they cannot be written,
    where that is so. ``version`` counts the writes. ``graph`` is the graph that has the nodes. Where
    ``alike`` is the same for two, they are one in the first iteration of a loop. ``leaf`` is what a loop carries them
    in, where an iteration has just been given them. ``may_alias_input`` is the plan of a loop after which they may be
    what it was given or something new, ``may_be_aliased`` that of one after which others may be these. ``choice`` says
    which of the two, in values of the graph.
    """

    root: Node
    node: Node
    graph: Graph
    builder: Builder
    known: dict[int, tuple[Traced, ArrayValue]]
    owner: ArrayValue | None = None
    kept: str = ""
    version: int = 0
    alike: ArrayValue | None = None
    leaf: Any = None
    may_alias_input: LoopPlan | None = None
    may_be_aliased: LoopPlan | None = None
    choice: Choice | None = None
    stands_in: bool = False  # for a view at a place that the graph computes: as good as that while it is only read
    own_dtype: bool = False  # whether the dtype is an object of its own, which only equals the type's
    made: bool | None = None  # after a loop: whether its iterations have made them, whichever way it was left

    @property
    def is_new(self) -> bool:
        """Whether the graph that has them certainly makes them, in an array that nothing was before."""
        if self.root.op is ops.INPUT:  # as that of a loop which writes them
            return False
        return self.root.op is not ops.GET if self.made is None else self.made

    def ask_identity(self, to_write: bool = False) -> None:
        """Called where it matters which object an array is.

        Raises Restart where a loop has left that open, and CannotCapture where only the graph's values tell.
        """
        plan = self.may_alias_input or (self.may_be_aliased if to_write else None)
        if plan is not None and not plan.exact:
            plan.exact = True
            raise Restart
        if plan is not None or self.choice is not None:
            raise CannotCapture("object-identity", "an array after a loop is the one from before it")
        if self.stands_in:
            raise CannotCapture("object-identity", "a row at a computed place is a view")

    def seen_through(self, path: Path, first: bool = False) -> tuple[Node, int]:
        """The node that shows the elements through ``path``, as they are now or were at ``first``.

        The second item is the node's place in the graph; -1 where no node was added.
        """
        node, place = self.root if first else self.node, -1
        for op, attrs in path:
            node = apply(self.graph, op, node, location=self.builder.location, **dict(attrs))
            place = len(self.graph.nodes) - 1
        return node, place


@dataclass(eq=False)
class Choice:
    """An array is new where ``is_new`` says so, a bool that the graph computes, and else ``original``."""

    is_new: Value
    original: ArrayValue

    def root(self) -> ArrayValue:
        """The array that it is where nothing was made by any of the loops that it has come through."""
        found = self.original
        while found.memory is not None and found.memory.choice is not None:
            found = found.memory.choice.original
        return found


def origin(node: Node) -> tuple[Node, Path, bool]:
    """The node whose memory ``node`` shows, the view ops between, and whether that is certain.

    Where it is not (a reshape that is a view or a copy, as strides turn out), the origin is the view op itself. A
    reshape that copies gives a view of its copy, which is why that array does not own its memory.
    """
    path: list[tuple[str, tuple[tuple[str, Any], ...]]] = []
    while is_view(node):
        shows = is_view_of_operand(node.op, node.inputs[0].tensor, node.tensor)
        if not shows:
            if shows is False and node.op is ops.RESHAPE:
                path.append(WHOLE)
            return node, tuple(reversed(path)), shows is not None
        path.append((node.op.name, tuple(node.attrs.items())))
        node = node.inputs[0]
    return node, tuple(reversed(path)), True


def is_fresh(node: Node) -> bool:
    """Whether an operation always makes new elements of its own."""
    return node.op.kind in ("pointwise", "reduction", "creation")
