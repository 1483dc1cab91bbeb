"""Which arrays are new after a loop: an account that its iterations keep, where the graph's own values decide.

Input: what variables hold where an iteration began, and hold where it ends. Output: for each variable that asks for it
a *mark*, a variable of the iterations' own that is carried as all others are, and after the loop a ``Choice`` for its
array.
Why: an iteration may hand on an array as it was given it (``if test: x = x * 0.5``): what the caller gets back is
then the very object that was passed in, or another one.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING

from tcompile.capture.loops.leaves import Leaf
from tcompile.capture.values.array import ArrayValue, Choice
from tcompile.capture.values.base import Value
from tcompile.capture.values.constant import Constant
from tcompile.capture.values.scalar import either

if TYPE_CHECKING:
    from tcompile.capture.interpreter.frame import Frame
    from tcompile.capture.loops.after_loop import AfterLoop
    from tcompile.capture.loops.carried import Carried

_MARK = " is new"  # in the name of a mark: no variable of the user's has spaces in its name


class Marks:
    """The marks of one loop. ``names`` are the variables, ``all`` the marks of this loop and of those around it."""

    def __init__(self, f: Frame, names: Collection[str]) -> None:
        self.f = f
        self.by_name = {name: f"{name}{_MARK} {len(f.tx.open_loops)}" for name in names}
        self.all = {name for name in f.locals if _MARK in name}.union(self.by_name.values())
        self.noted: set[tuple[str, Choice]] = set()  # what each mark has taken account of

    def begin(self) -> None:
        """Before the loop nothing is new."""
        self.f.locals.update(dict.fromkeys(self.by_name.values(), Constant(False)))

    def note(self, given: Mapping[str, Value]) -> None:
        """Notes which of the variables hold other arrays than they did where the iteration began."""
        f = self.f
        for name, mark in self.by_name.items():
            start, value = given.get(name), f.locals.get(name)
            if start is None or value is None:
                continue
            flags = self._new_since(mark, start, value)
            for flag in [Constant(True)] if flags is None else flags:
                f.locals[mark] = either(f.tx, f.locals[mark], flag)

    def _new_since(self, mark: str, start: Value, value: Value) -> list[Value] | None:
        """What says, beside the mark, whether a value is another array than ``start``; None where it is one."""
        flags: list[Value] = []
        while value is not start:
            choice = value.memory.choice if isinstance(value, ArrayValue) and value.memory is not None else None
            if choice is None:
                return None
            if (mark, choice) in self.noted:
                break
            self.noted.add((mark, choice))
            flags.append(choice.is_new)
            value = choice.original
        return flags

    def tell(self, carried: Carried, after: AfterLoop) -> None:
        """Says of the variables' arrays after the loop whether they are new, and takes the marks away."""
        for name, mark in self.by_name.items():
            tree, is_new = carried.trees.get(name), self.f.locals.pop(mark, None)
            if not isinstance(tree, Leaf) or not tree.foreign or is_new is None:
                continue
            value, original = after.value(tree), tree.value
            if not (isinstance(value, ArrayValue) and isinstance(original, ArrayValue) and after.made(value)):
                continue
            assert value.memory is not None and original.memory is not None
            if original.memory.may_alias_input is not None:
                original.memory.ask_identity()
            original.memory.may_be_aliased, value.memory.may_alias_input = carried.plan, None
            value.memory.choice = Choice(is_new, original)


__all__ = ["Marks"]
