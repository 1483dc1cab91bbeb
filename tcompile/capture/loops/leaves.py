"""The values that a loop carries: one operand and one result of its node each, and what they are parts of.

Enters: nothing. Leaves: ``Leaf``, the trees that variables hold of them, and what is raised where rounds do not fit.
Exists as data of its own, for all who put loops together.
"""

from __future__ import annotations

from dataclasses import field
from typing import Any

from tcompile.capture.values.base import Value
from tcompile.capture.values.memory import Memory
from tcompile.frontends.base import CannotCapture
from tcompile.graph import Node, SymInt
from tcompile.records import dataclass


class Unsettled(Exception):
    """A round does not hand on what it was given."""


class Parted(Unsettled):
    """Two names of one array are names of two after a round; ``name`` is one of them."""

    def __init__(self, name: str) -> None:
        super().__init__(f"`{name}` and another variable are one object in some rounds only")
        self.name = name


class Uneven(Unsettled):
    """The int ``name`` does not grow by the same amount in each round."""

    def __init__(self, name: str) -> None:
        super().__init__(f"`{name}` does not grow by the same amount in each round")
        self.name = name


@dataclass(eq=False)
class Leaf:
    """One carried value: an ``array``, a ``scalar`` object of the library, or a Python number that the graph computes.

    ``given`` is the node outside that the first round starts with, ``inside`` the input of the part that is followed
    now, ``ends`` what each part hands on, ``result`` the value behind the loop. ``shows`` is the leaf that had at the
    start of the round what this one has in the part that is followed now. In the first ``foreign`` rounds it may have
    an array there that others hold. ``is_free`` says that a loop inside relies on that there are no such rounds.
    """

    kind: Any
    given: Node
    value: Value | None
    inside: Node | None = None
    inputs: list[Node] = field(default_factory=list)
    ends: list[Node] = field(default_factory=list)
    result: Node | None = None
    start: Value | None = None  # what a round is given
    end: Value | None = None  # the array object that a round hands on
    shows: Leaf | None = None
    foreign: int = 0
    is_free: bool = False

    def __post_init__(self) -> None:
        if self.given.device != "cpu":
            raise CannotCapture("loop-mismatch", f"`{self.given.name}` is on {self.given.device}, and rounds are not")


@dataclass(eq=False)
class Many:
    """A tuple of carried values."""

    cls: type
    parts: list[Any]


@dataclass(eq=False)
class View:
    """An array that shows a part of what is there before the loop."""

    memory: Memory
    path: Any


@dataclass(eq=False)
class Count:
    """An int that depends on the number of the round in which the loop is left."""

    size: SymInt


def leaves_of(trees: Any) -> list[Leaf]:
    """The leaves in trees."""
    found = []
    for tree in trees:
        found += leaves_of(tree.parts) if isinstance(tree, Many) else [tree] if isinstance(tree, Leaf) else []
    return found


__all__ = ["Count", "Leaf", "Many", "Parted", "Uneven", "Unsettled", "View", "leaves_of"]
