"""``error_on_graph_break`` in captured code.

Input: calls of the class, objects of it that ``with`` enters and leaves, and calls of functions that it decorates.
Output: whether a break from here on is an error (``Capture.break_is_error``).
Why: the policy changes in the middle of captured code, and a break may come before plain Python has the block.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from tcompile.annotations.policy import error_on_graph_break
from tcompile.capture.guards.sources import ConstantSource, Source
from tcompile.capture.semantics.special.registry import bind, special
from tcompile.capture.values.base import Context, Rebuilder, Unrebuildable, Value
from tcompile.capture.values.constant import Constant
from tcompile.capture.values.tensor import BlockValue
from tcompile.frontends.base import CannotCapture

if TYPE_CHECKING:
    from tcompile.annotations.treatments import Treatment


class PolicyValue(BlockValue):
    """An object of ``error_on_graph_break``."""

    def __init__(self, errors: bool, source: Source | None = None) -> None:
        self.errors = errors
        self.source = source

    @property
    def python_type(self) -> type:
        """The class itself."""
        return error_on_graph_break

    def describe(self) -> str:
        """The text of the call that makes it."""
        return f"error_on_graph_break({self.errors})"

    def way_out(self, tx: Context) -> Value:
        """The method that ``with`` keeps to leave the block."""
        return PolicyChange(tx.break_is_error, "end", tx.step)

    def way_in(self, tx: Context) -> Value:
        """The method that ``with`` calls to enter the block."""
        return PolicyChange(self.errors, "start", tx.step)

    def call(self, tx: Context, args: Sequence[Value], kwargs: Mapping[str, Value]) -> Value:
        """Decorating a function is left to plain Python."""
        raise CannotCapture("unknown-function", self.describe())

    def rebuild(self, program: Rebuilder) -> str:
        """A new object, or the one from outside."""
        if self.source is not None:
            return program.load(self.source)
        return f"{program.constant(error_on_graph_break)}({self.errors})"


class PolicyChange(Value):
    """Enters a block, or leaves it.

    ``errors`` holds from then on, ``born`` is the step at which the block was met.
    """

    def __init__(self, errors: bool, side: str, born: int) -> None:
        self.errors = errors
        self.side = side
        self.born = born

    def describe(self) -> str:
        """The start or the end of the block."""
        return f"the {self.side} of error_on_graph_break"

    def call(self, tx: Context, args: Sequence[Value], kwargs: Mapping[str, Value]) -> Value:
        """Enters the block, or leaves it."""
        tx.touch()
        tx.break_is_error = self.errors
        return Constant(None)

    def rebuild(self, program: Rebuilder) -> str:
        """A block that is open where capture stops is entered by the running frame."""
        raise Unrebuildable(self, self.born)


@special(error_on_graph_break)
def _make(tx: Context, function: Constant, args: Sequence[Value], kwargs: Mapping[str, Value]) -> Value:
    (errors,) = bind("error_on_graph_break", {"errors": None}, args, kwargs)
    if not isinstance(errors, Constant) or not isinstance(errors.value, bool):
        raise CannotCapture("operation-raises", "error_on_graph_break takes a bool")
    return PolicyValue(errors.value)


def call_under_policy(
    tx: Context, function: Constant, treatment: Treatment, args: Sequence[Value], kwargs: Mapping[str, Value]
) -> Value:
    """A call of a decorated function."""
    target = function.value.__wrapped__
    before, tx.break_is_error = tx.break_is_error, treatment.flag
    # Where the call breaks, the policy inside it counts: so it is not restored then.
    source = ConstantSource.of(getattr(target, "__qualname__", "function"), target)
    result = tx.wrap(target, source).call(tx, args, kwargs)
    tx.break_is_error = before
    return result
