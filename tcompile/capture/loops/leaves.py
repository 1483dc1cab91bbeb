"""The values that a loop carries: one operand and one result of its node each, and what they are parts of.

Input: nothing. Output: ``Leaf``, the trees that variables hold of them, and what is raised where iterations do not fit.
Exists as data of its own, for all who put loops together.
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
    """An iteration does not hand on what it was given."""


class Parted(Unsettled):
    """Two names of one array are names of two after an iteration; ``name`` is one of them."""

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

    ``given`` is the node outside that the first iteration starts with, ``inside`` the input of the part that is
    followed now, ``ends`` what each part hands on, ``result`` the value after the loop. ``shows`` is the leaf that had
    at the start of the iteration what this one has in the part that is followed now. In the first ``foreign``
    iterations it may have an array there that others hold. ``is_free`` says that a loop inside relies on that there are
    no such iterations.
    """

    kind: Any
    given: Node
    value: Value | None
    inside: Node | None = None
    inputs: list[Node] = field(default_factory=list)
    ends: list[Node] = field(default_factory=list)
    result: Node | None = None
    start: Value | None = None  # what an iteration is given
    end: Value | None = None  # the array object that an iteration hands on
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
    """An array that shows a part of what is there before the loop."""

    memory: Memory
    path: Any


@dataclass(eq=False)
class Count:
    """An int that depends on the induction variable in which the loop is left."""

    size: SymInt


def leaves_of(trees: Any) -> list[Leaf]:
    """The leaves in trees."""
    found = []
    for tree in trees:
        found += leaves_of(tree.parts) if isinstance(tree, TupleNode) else [tree] if isinstance(tree, Leaf) else []
    return found


__all__ = ["Count", "Leaf", "Parted", "TupleNode", "Uneven", "Unsettled", "ViewLeaf", "leaves_of"]
