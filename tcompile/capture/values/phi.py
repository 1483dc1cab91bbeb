"""A value with several definitions: which of them it has depends on the exit that a loop takes.

Input: the number of the exit, which the graph computes, and the value at each exit.
Output: ``PhiValue``, which leaves the graph as the value of the exit that was taken.
Why: a search returns an index or None, which no array holds. So a phi is only moved and returned. Captured code that
needs its value ends the graph, and goes on with the object that it has become.
"""

from __future__ import annotations

from collections.abc import Mapping

from tcompile.capture.values.base import Context, Rebuilder, Value
from tcompile.frontends.base import CannotCapture


class PhiValue(Value):
    """The value of the exit with number ``which``, of the values by the numbers of the exits."""

    def __init__(self, which: Value, values: Mapping[int, Value]) -> None:
        self.which, self.values = which, values

    @property
    def is_none(self) -> bool:
        """Known only when the graph has run."""
        raise CannotCapture("data-dependent-value", f"The exit of a loop decides whether it is {self.describe()}.")

    @property
    def python_type(self) -> type:
        """The same."""
        raise CannotCapture("data-dependent-value", f"The exit of a loop decides whether it is {self.describe()}.")

    def truth(self, tx: Context) -> bool:
        """The same."""
        raise CannotCapture("data-dependent-branch", tx.current_text())

    def describe(self) -> str:
        """The kinds of the values."""
        kinds = dict.fromkeys(value.describe() for value in self.values.values())
        return " or ".join(kinds)

    def rebuild(self, program: Rebuilder) -> str:
        """Selects the value."""
        which = program.rebuild(self.which)
        made = {number: program.rebuild(value) for number, value in self.values.items()}
        _, last = made.popitem()
        tests = "".join(f"{value} if {which} == {number} else " for number, value in made.items())
        return f"({tests}{last})"


__all__ = ["PhiValue"]
