"""Elements of an array under a mask: ``x[m]`` while it is only computed with.

Input: an array and a mask.
Output: ``SelectedValue``, whose elements are not extracted.
Why: the number of elements is known only at run time. So the value never leaves captured code: capture ends before the
instruction that made it, which then extracts the elements in plain Python.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tcompile.capture.values.array import ArrayMethod, ArrayValue
from tcompile.capture.values.base import Context, Rebuilder, Unrebuildable, Value
from tcompile.capture.values.constant import integer
from tcompile.capture.values.container import SequenceValue
from tcompile.capture.values.scalar import read
from tcompile.frontends.base import CannotCapture, Frontend, Selected, Traced


class SelectedValue(Value):
    """An array object that holds the elements under a mask. ``born`` is the step of the function that made it."""

    def __init__(self, tx: Context, selected: Selected, frontend: Frontend) -> None:
        self.selected = selected
        self.frontend = frontend
        self.born = tx.step
        self._where = tx.user_stack()

    @property
    def python_type(self) -> type:
        """The array class."""
        return self.frontend.python_type(Traced(self.selected.whole))

    def describe(self) -> str:
        """What they are."""
        return "an array of the elements under a mask"

    def export(self, tx: Context) -> Any:
        """The elements as a frontend takes them."""
        return self.selected

    def attribute(self, tx: Context, name: str) -> Value:
        """A method, a size that is counted in the graph, or what the frontend knows."""
        if name in ("shape", "size", "nbytes"):
            return self._sizes(tx, name)
        if self.frontend.has_method(self.selected, name):
            return ArrayMethod(self, name)
        return tx.from_frontend(self.frontend.attribute(tx.builder, self.selected, name), self)

    def _sizes(self, tx: Context, name: str) -> Value:
        rest = self.selected.whole.tensor.shape[len(self.selected.masked) :]
        if name == "shape":
            return SequenceValue([self.length(tx), *map(integer, rest)], tuple)
        if name != "size" or rest:
            raise CannotCapture("data-dependent-shape", f"the {name} of elements under a mask")
        return self.length(tx)

    def method(self, tx: Context, name: str, args: Sequence[Value], kwargs: Mapping[str, Value]) -> Value:
        """``selected.name(…)`` through the frontend."""
        plain = [a.export(tx) for a in args]
        named = {k: v.export(tx) for k, v in kwargs.items()}
        return tx.from_frontend(self.frontend.method(tx.builder, self.selected, name, plain, named), self)

    def item(self, tx: Context, key: Value) -> Value:
        """Some of the elements: which they are has to be known."""
        return tx.from_frontend(self.frontend.getitem(tx.builder, self.selected, key.export(tx)), self)

    def store_item(self, tx: Context, key: Value, value: Value) -> None:
        """As for ``item``."""
        raise CannotCapture("data-dependent-shape", "some of the elements under a mask are replaced")

    def update(self, tx: Context, sign: str, right: Value) -> Value:
        """``self sign= right``: the same object with new elements."""
        new: Selected = self.frontend.inplace(tx.builder, sign, self.selected, right.export(tx))
        tx.touch()
        self.selected = new
        return self

    def length(self, tx: Context) -> Value:
        """How many elements the mask selects."""
        count = self.frontend.count(tx.builder, self.selected)
        return read(tx, ArrayValue(count, self.frontend), int)

    def truth(self, tx: Context) -> bool:
        """An array's truth is in its values."""
        raise CannotCapture("data-dependent-branch", tx.current_text())

    def iterate(self, tx: Context) -> Iterator[Value]:
        """As many as there are."""
        raise CannotCapture("data-dependent-shape", "a loop over the elements under a mask")

    def rebuild(self, program: Rebuilder) -> str:
        """There is no such array: what would have made it has to run."""
        reason = CannotCapture("data-dependent-shape", "a mask picks elements")
        raise Unrebuildable(self, self.born, reason, self._where)


__all__ = ["SelectedValue"]
