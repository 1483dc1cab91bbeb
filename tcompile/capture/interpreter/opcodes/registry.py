"""What instructions and frames agree on: the table of handlers, and how a frame ends.

Input: handlers, as the sibling files define them. Output: ``HANDLERS``, which the interpreter looks up. Exists apart
so that the interpreter knows no instruction and an instruction only its frame.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeAlias

from tcompile.bytecode.instructions import Instruction
from tcompile.capture.values.base import Value

if TYPE_CHECKING:
    from tcompile.capture.interpreter.frame import Frame

Handler: TypeAlias = "Callable[[Frame, Instruction], None]"
HANDLERS: dict[str, Handler] = {}


def handler(*names: str) -> Callable[[Handler], Handler]:
    """Registers the meaning of the instructions ``names``."""

    def register(function: Handler) -> Handler:
        for name in names:
            HANDLERS[name] = function
        return function

    return register


class Returned(Exception):
    """Ends a frame; carries the value returned."""

    def __init__(self, value: Value) -> None:
        self.value = value


class Yielded(Exception):
    """Suspends a generator's frame; carries the value yielded."""

    def __init__(self, value: Value) -> None:
        self.value = value
