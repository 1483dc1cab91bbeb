"""Attributes of objects and items of dicts in scalar loops.

Input: an object that the code knows, and a name.
Output: the attribute as it is before the loop; and after the loop the attributes that it sets.
Why: class-based simulations keep their state in attributes (``self.x[i] += self.dt * self.force(i)``).

No code of the user's runs where an attribute is found, so it is read once, under the guards of any attribute. Where the
loop sets one, the element of an array holds it meanwhile.
"""

from __future__ import annotations

import types
from collections.abc import Collection
from typing import Any

from tcompile.capture.loops.scalar_code import Changes
from tcompile.capture.loops.scalar_values import Values
from tcompile.capture.scalar_loops.builder import Block, is_none
from tcompile.capture.scalar_loops.node import number_of
from tcompile.capture.scalar_loops.translator import NONE, Cells, Refused, Translator, V, is_number
from tcompile.capture.values.base import Value, settled
from tcompile.capture.values.classes import MISSING, guard_definition, lookup
from tcompile.capture.values.constant import Constant
from tcompile.capture.values.dicts import DictValue
from tcompile.capture.values.object import ObjectValue
from tcompile.capture.values.phi import PhiValue
from tcompile.capture.values.random_generator import RandomGeneratorValue
from tcompile.frontends.base import CannotCapture
from tcompile.graph.ops.scalar_loop import dtype_of
from tcompile.records import dataclass

_KEPT = "gauss_next"  # of a ``random.Random``: None, or the second normal number that it has made


@dataclass(eq=False)
class _Member:
    """An attribute that the loop sets: it is the one item of a list meanwhile."""

    owner: ObjectValue
    name: str
    cells: Cells


class Members:
    """The attributes that a loop reads and sets; ``changed`` has the names that it sets, of whichever object, and the
    kinds that they get.
    """

    def __init__(self, values: Values, changed: Collection[Any]) -> None:
        self.values, self.tx, self.changed = values, values.tx, changed
        self.members: dict[tuple[int, str], _Member] = {}
        self.latest: dict[tuple[int, str], tuple[Block, V]] = {}  # what was stored last, and the block that does
        self.spares: dict[int, tuple[RandomGeneratorValue, tuple[int, int]]] = {}

    def load(self, t: Translator, owner: ObjectValue | DictValue, name: str) -> tuple[V, bool]:
        """An attribute of an object, or an item, as it is before the loop; True with a property's getter."""
        try:
            return self._item(t, owner, name) if isinstance(owner, DictValue) else self._attribute(t, owner, name)
        except CannotCapture as error:
            raise Refused(error.detail) from None

    def _item(self, t: Translator, owner: DictValue, key: str) -> tuple[V, bool]:
        return self.values.value(t, settled(self.tx, owner.item(self.tx, Constant(key)))), False

    def _attribute(self, t: Translator, owner: ObjectValue, name: str) -> tuple[V, bool]:
        tx, found = self.tx, lookup(owner.cls, name)
        if isinstance(found, property):
            if not isinstance(found.fget, types.FunctionType):
                raise Refused(f"the property {name}")
            guard_definition(tx, owner.cls, name, found)
            return self.values.value(t, settled(tx, tx.wrap_found(found.fget))), True
        if name in self.changed:
            t.accesses += 1
            block, value = self.latest.get((id(owner), name), (None, None))
            if block is t.block and value is not None:
                return value, False
            return t.cell(self._member_of(owner, name).cells, (t.constant(0).register,)), False
        if hasattr(owner.cls, "__getattr__") or not (found is MISSING or _is_plain(found)):
            raise Refused(f"the attribute {name}, which code of the user's finds")
        return self.values.value(t, settled(tx, owner.attribute(tx, name))), False

    def store(self, t: Translator, owner: ObjectValue, name: str, value: V) -> None:
        """Sets an attribute. Raises Changes where that was not known, or that it gets such values."""
        if name not in self.changed:
            raise Changes(name)
        cells = self._member_of(owner, name).cells
        kind = NONE if is_none(value) else value.kind
        if not isinstance(kind, str):
            raise Refused(f"the attribute {name} gets something else than a number")
        if kind not in cells.kinds:
            raise Changes((name, kind))
        t.accesses += 1
        t.store_cell(cells, (t.constant(0).register,), value)
        self.latest[id(owner), name] = t.block, value

    def _member_of(self, owner: ObjectValue, name: str) -> _Member:
        """The arrays for an attribute that the loop sets, which the instance itself has from the beginning."""
        key = id(owner), name
        if key not in self.members:
            tx = self.tx
            if tx.builder.graph is not tx.graph or not owner.sets_plainly(name):
                raise Refused(f"the attribute {name} is set")
            held = settled(tx, owner.attribute(tx, name))
            kinds = [kind for what, kind in filter(_has_kind, self.changed) if what == name]
            if isinstance(held, Constant) and held.value is None:
                cells = Cells((NONE,), (-1,), self.values.new_array("full", 1, "int8", fill_value=0))
            else:
                kind, number = self._array_of(held, f"the attribute {name}")
                cells = Cells((kind,), (number,))
            self.members[key] = _Member(owner, name, self.values.with_kinds(cells, kinds))
        return self.members[key]

    def _array_of(self, held: Value, what: str, dtype: str = "") -> tuple[str, int]:
        """The kind of a number, and an array whose element is that number before the loop."""
        top = self.values.top
        outer, top.block = top.block, top.entry
        try:
            value = self.values.value(top, held)
            if not is_number(value):
                raise Refused(f"{what} is no number")
            assert isinstance(value.kind, str)
            number = self.values.new_array("empty", 1, dtype or dtype_of(value.kind).name)
            top.block.lines.append(("store", -1, number, value.register, top.constant(0).register))
        finally:
            top.block = outer
        return value.kind, number

    def spare(self, generator: RandomGeneratorValue) -> tuple[int, ...]:
        """The arrays of ``draws.SPARE``: those of NumPy's generator, and for Python's what its attribute tells."""
        if generator.family is None or not generator.family.is_pythons:
            return self.values.spare(generator)
        if id(generator) not in self.spares:
            if self.tx.builder.graph is not self.tx.graph:
                raise Refused("a generator keeps a number in an attribute")
            found = settled(self.tx, generator.instance.attribute(self.tx, _KEPT))
            is_kept: Value = Constant(int(not isinstance(found, Constant)))
            number = found if not isinstance(found, Constant) else Constant(0.0)
            if isinstance(found, PhiValue):
                is_kept, number = found.which, found.values[1]
            (_, has), (kind, kept) = self._array_of(is_kept, _KEPT, "int32"), self._array_of(number, _KEPT, "float64")
            if kind != "float":
                raise Refused("a generator keeps something else than a float")
            self.spares[id(generator)] = generator, (has, kept)
        return self.spares[id(generator)][1]

    def keep(self) -> None:
        """Sets the attributes to what the loop left."""
        tx = self.tx
        for member in self.members.values():
            pairs = enumerate(zip(member.cells.kinds, member.cells.arrays, strict=True))
            found = {place: self._number(kind, array) for place, (kind, array) in pairs}
            tags = member.cells.tags
            value = found[0] if tags < 0 or len(found) == 1 else PhiValue(self._number("np.int8", tags), found)
            member.owner.store_attribute(tx, member.name, value)
        for generator, arrays in self.spares.values():
            is_kept, number = (self._number(*pair) for pair in zip(("np.int32", "float"), arrays, strict=True))
            generator.instance.store_attribute(tx, _KEPT, PhiValue(is_kept, {0: Constant(None), 1: number}))

    def _number(self, kind: str, array: int) -> Value:
        """What the element of an array is after the loop."""
        if kind == NONE:
            return Constant(None)
        node = self.tx.builder.op("index", self.values.arrays[array].traced.node, key=(0,))
        return number_of(self.tx, kind, node)


def _has_kind(what: Any) -> bool:
    """Whether a change tells a kind that attributes of a name get."""
    return isinstance(what, tuple) and isinstance(what[0], str)


def _is_plain(found: Any) -> bool:
    """Whether what a class holds under a name is read without calling anything: a method, a slot, or a value."""
    return type(found) in (types.FunctionType, types.MemberDescriptorType) or not hasattr(type(found), "__get__")


__all__ = ["Members"]
