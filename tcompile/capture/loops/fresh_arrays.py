"""Marks: variables in which iterations record whether a variable's array is new, where the graph's values decide that.

Input: the values of variables at the start of an iteration and at its end.
Output: for each variable that needs it a *mark*, which is carried like any other variable. After the loop, the
variable's array has a ``Choice``.
Why: an iteration may carry an array unchanged (``if test: x = x * 0.5``). The caller then gets the very object that was
passed in, or another one.
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

_MARK = " is new"  # in the name of a mark: the user's variables have no spaces in their names


class Marks:
    """The marks of one loop. ``names`` are the variables, ``all`` the marks of this loop and of those around it."""

    def __init__(self, f: Frame, names: Collection[str]) -> None:
        self.f = f
        self.by_name = {name: f"{name}{_MARK} {len(f.tx.open_loops)}" for name in names}
        self.all = {name for name in f.locals if _MARK in name}.union(self.by_name.values())
        self.noted: set[tuple[str, Choice]] = set()  # the choices that each mark includes

    def begin(self) -> None:
        """Sets all marks to False: before the loop no array is new."""
        self.f.locals.update(dict.fromkeys(self.by_name.values(), Constant(False)))

    def note(self, given: Mapping[str, Value]) -> None:
        """Notes variables whose array is not the one that they had at the start of the iteration."""
        f = self.f
        for name, mark in self.by_name.items():
            start, value = given.get(name), f.locals.get(name)
            if start is None or value is None:
                continue
            flags = self._new_since(mark, start, value)
            for flag in [Constant(True)] if flags is None else flags:
                f.locals[mark] = either(f.tx, f.locals[mark], flag)

    def _new_since(self, mark: str, start: Value, value: Value) -> list[Value] | None:
        """Flags that say, beside the mark, whether a value is another array than ``start``; None: it certainly is."""
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
        """Gives each variable's array after the loop its ``Choice``, and removes the marks."""
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
