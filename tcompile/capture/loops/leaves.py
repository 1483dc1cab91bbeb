"""The loop-carried values: each is one operand and one result of the loop's node; and the trees of them.

Input: nothing.
Output: ``Leaf``, the trees of leaves that variables hold, and the errors for iterations that do not fit.
Why: all files that assemble loops share this data.
"""

from __future__ import annotations

from dataclasses import field
from typing import Any

from tcompile.capture.values.array import Memory
from tcompile.capture.values.base import Value
from tcompile.frontends.base import CannotCapture
from tcompile.graph import Node, SymInt
from tcompile.records import dataclass


class Unsettled(Exception):
    """An iteration changes the kind, dtype, shape or identity of a carried value."""


class Parted(Unsettled):
    """Two aliases of one array are two arrays after an iteration; ``name`` is one of them."""

    def __init__(self, name: str) -> None:
        super().__init__(f"`{name}` and another variable are one object in some iterations only")
        self.name = name


class Uneven(Unsettled):
    """The int ``name`` does not grow by the same amount in each iteration."""

    def __init__(self, name: str) -> None:
        super().__init__(f"`{name}` does not grow by the same amount in each iteration")
        self.name = name


@dataclass(eq=False)
class Leaf:
    """One carried value: an ``array``, a ``scalar`` object of the library, or a Python number that the graph computes.

    ``given`` is the node outside with the first iteration's value, ``inside`` the input of the part that is followed
    now. ``ends`` are the values at the end of each part, ``result`` is the value after the loop. ``shows`` is the leaf
    that had this leaf's value at the start of the iteration. In the first ``foreign`` iterations it may have an array
    with other aliases there. ``is_free`` says that a loop inside relies on there being no such iterations.
    """

    kind: Any
    given: Node
    value: Value | None
    inside: Node | None = None
    inputs: list[Node] = field(default_factory=list)
    ends: list[Node] = field(default_factory=list)
    result: Node | None = None
    start: Value | None = None  # the value at the start of an iteration
    end: Value | None = None  # the array object at the end of an iteration
    shows: Leaf | None = None
    foreign: int = 0
    is_free: bool = False

    def __post_init__(self) -> None:
        if self.given.device != "cpu":
            raise CannotCapture(
                "loop-mismatch", f"`{self.given.name}` is on {self.given.device}, and iterations are not"
            )


@dataclass(eq=False)
class TupleNode:
    """A tuple of carried values."""

    cls: type
    parts: list[Any]


@dataclass(eq=False)
class ViewLeaf:
    """A view of a memory from before the loop."""

    memory: Memory
    path: Any


@dataclass(eq=False)
class Count:
    """An int that depends on the iteration in which the loop is left."""

    size: SymInt


def leaves_of(trees: Any) -> list[Leaf]:
    """The leaves in trees."""
    found = []
    for tree in trees:
        found += leaves_of(tree.parts) if isinstance(tree, TupleNode) else [tree] if isinstance(tree, Leaf) else []
    return found


__all__ = ["Count", "Leaf", "Parted", "TupleNode", "Uneven", "Unsettled", "ViewLeaf", "leaves_of"]
