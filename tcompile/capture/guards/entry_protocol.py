"""The protocol between an entry program and its caller: markers, and the order of the parameters.

Input: code objects.
Output: ``Start``, the parameters of an entry, and the two results that are markers.
Why: separate from ``entry.codegen``, so that a call needs nothing else of capture.
"""

from __future__ import annotations

import types
from dataclasses import field

from tcompile.bytecode.decode import CACHES, OP, NotResumable, end_of_prologue
from tcompile.records import dataclass

_RESUME = OP["RESUME"]


class Marker:
    """A unique result of an entry program."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return self.name


ENTRY_FILE = "<tcompile entry>"  # the file name of entry programs' frames
MISS = Marker("MISS")
PLAIN = Marker("PLAIN")


def local_names(code: types.CodeType) -> tuple[str, ...]:
    """Returns the parameters of a function in the order of its locals, ``*args`` and ``**kwargs`` last."""
    count = code.co_argcount + code.co_kwonlyargcount
    count += bool(code.co_flags & 0x04) + bool(code.co_flags & 0x08)
    return code.co_varnames[:count]


@dataclass(frozen=True)
class Start:
    """A place in a function where captured code may start, and the parameters of its entries.

    offset: of the instruction, in bytes. cells: the names of all cells, passed first, as cell objects. live: the local
    variables that may be read later. slots: for each stack item, deepest first, whether it is passed (the others are
    the NULLs beside callables). maybe: those of ``live`` that may be unbound.
    """

    offset: int
    cells: tuple[str, ...]
    live: tuple[str, ...]
    slots: tuple[bool, ...] = ()
    maybe: frozenset[str] = frozenset()
    top: str = field(default="", compare=False)  # the source text of the value on top of the stack, if known

    @property
    def names(self) -> tuple[str, ...]:
        """Returns the names of the parameters in guards, in order."""
        items = [f"<value {i}>" for i, full in enumerate(self.slots) if full]
        if items and self.top and self.slots[-1]:
            items[-1] = self.top
        return (*self.cells, *self.live, *items)

    @property
    def arity(self) -> int:
        """The number of parameters."""
        return len(self.cells) + len(self.live) + sum(self.slots)


def start_of(code: types.CodeType) -> Start:
    """Returns the start of a function, after its parameters are bound (closure variables: in their cells).

    The prologue before it makes cells and generators.
    """
    try:
        start = 2 * (end_of_prologue(code.co_code[::2]) + 1 + CACHES[_RESUME])
    except NotResumable:  # hand-made code
        start = 0
    cells = (*code.co_cellvars, *code.co_freevars)
    return Start(start, cells, tuple(name for name in local_names(code) if name not in cells))
