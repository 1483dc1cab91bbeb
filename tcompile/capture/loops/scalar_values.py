"""What the code of a scalar loop reads: values from before the loop, and the arrays of the program.

Input: captured values.
Output: their forms in a program (``V``), and the arrays by their numbers.
Why: a program knows arrays by number, numbers by register, and everything else as a known object.
"""

from __future__ import annotations

import types
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from tcompile.capture.guards.sources import ComputedSource, ConstantSource, Source
from tcompile.capture.loops.list_accumulators import is_own_list
from tcompile.capture.scalar_loops.node import operand_of
from tcompile.capture.scalar_loops.translator import NONE, NUMBERS, Cells, Refused, Translator, V, is_number
from tcompile.capture.values.array import ArrayValue
from tcompile.capture.values.base import LazyValue, Value, settled
from tcompile.capture.values.callable import FunctionValue, IteratorValue, MethodValue
from tcompile.capture.values.constant import Constant
from tcompile.capture.values.container import SequenceValue
from tcompile.capture.values.dicts import DictValue
from tcompile.capture.values.object import ObjectValue
from tcompile.capture.values.random_generator import (
    DrawingMethod,
    RandomGeneratorValue,
    is_drawing,
    known_generator,
    method_of_known,
)
from tcompile.frontends.base import Traced
from tcompile.graph import SymInt, TensorType
from tcompile.graph.ops.scalar_loop import ELEMENTS, code_points, dtype_of

if TYPE_CHECKING:
    from tcompile.capture.interpreter.context import Capture


class Values:
    """The values of one loop. ``top`` is the translator of the loop's own code, and ``iterator`` what it loops over.

    Attributes:
        arrays: the arrays of the program.
        lists: the lists that it appends to.
        texts: strs by the numbers of the arrays of their code points.
    """

    def __init__(self, tx: Capture) -> None:
        self.tx = tx
        self.top: Translator
        self.iterator: Value | None = None
        self.arrays: list[ArrayValue] = []
        self.lists: list[SequenceValue] = []
        self.texts: dict[int, Value] = {}
        self.stack: list[int] = []
        self.unwritten: set[int] = set()
        self.tables: dict[tuple[Any, ...], int] = {}  # arrays of numbers, by the numbers' texts or registers
        self.by_identity: dict[int, tuple[Value, V]] = {}  # a value that nothing holds would leave its identity

    def attribute(self, module: types.ModuleType, name: str) -> Any:
        """The value of a library module's attribute, under a guard."""
        if not self.tx.is_library_name(module.__name__):
            raise Refused(f"the attribute {name}")
        try:
            return self.tx.library_attribute(module, name)
        except AttributeError:
            raise Refused(f"the attribute {name}") from None

    def read(self, t: Translator, value: Value) -> V:
        """A variable's value. A str from outside is read by its characters only."""
        if isinstance(value, LazyValue) and type(value.value) is str:
            return self._text(value.value, value.source, value)
        return self.value(t, settled(self.tx, value))

    def _text(self, text: str, source: Source, value: Value) -> V:
        """A str by its code points, as the array that ``code_points`` returns."""
        if not isinstance(source, ConstantSource):
            self.tx.prologue.guard(source, "type({}) is str", f"type({source.text}) is str", "str", "type")
        array = self.tx.wrap(code_points(text), ComputedSource("{1}({0})", (source,), (code_points,)))
        assert isinstance(array, ArrayValue)
        if array not in self.arrays:
            self.arrays.append(array)
        number = self.arrays.index(array)
        self.texts[number] = value
        return V(("text", number))

    def known_text(self, text: str) -> V:
        """The same of a known str."""
        return self._text(text, ConstantSource.of(repr(text), text), Constant(text))

    def table(self, items: Sequence[V]) -> int:
        """The number of an array of numbers of one kind, which are known, or held where the loop begins."""
        key = tuple(repr(item.known) if type(item.known) in NUMBERS else item.register for item in items)
        if key not in self.tables:
            known = all(type(part) is str for part in key)
            self.tables[key] = self._constant_table(items) if known else self.filled(items)
        return self.tables[key]

    def _constant_table(self, items: Sequence[V]) -> int:
        made = np.array([item.known for item in items], dtype_of(items[0].kind))
        array = self.tx.wrap(made, ConstantSource.of(str(made.tolist()), made))
        assert isinstance(array, ArrayValue)
        self.arrays.append(array)
        return len(self.arrays) - 1

    def filled(self, items: Sequence[V]) -> int:
        """An array that the program fills before the loop."""
        top = self.top
        held = {register for register, _ in top.numbers} | {line[1] for line in top.entry.lines}
        if not all(item.register in held for item in items):
            raise Refused("an item of a tuple that the loop makes")
        number = self.new_array("empty", len(items), dtype_of(items[0].kind).name)
        block, top.block = getattr(top, "block", top.entry), top.entry
        for place, item in enumerate(items):
            top.entry.lines.append(("store", -1, number, item.register, top.constant(place).register))
        top.block = block
        return number

    def scratch(self) -> tuple[int, int]:
        """Arrays of 64 ints and 64 floats, for the stack of a sum."""
        if not self.stack:
            self.stack = [self.new_array("empty", 64, dtype) for dtype in ("int64", "float64")]
        ints, floats = self.stack
        return ints, floats

    def read_only(self, number: int) -> None:
        """Notes that the loop may not write an array."""
        self.unwritten.add(number)

    def check_writes(self, written: Iterable[int]) -> None:
        """Refuses a loop that writes an array that it may not write."""
        memories = [self.arrays[number].memory for number in self.unwritten]
        if any(self.arrays[number].memory is memory for number in written for memory in memories):
            raise Refused("an array is written that was indexed by a slice")

    def generator(self, t: Translator, generator: Any) -> V:
        """The generator whose method is a known object."""
        return self.value(t, known_generator(self.tx, generator))

    def spare(self, value: RandomGeneratorValue) -> tuple[int, ...]:
        """The arrays of a generator's data beside its state."""
        for array in value.spare(self.tx):
            if array not in self.arrays:
                self.arrays.append(array)
        return tuple(self.arrays.index(array) for array in value.spare(self.tx))

    def size(self, t: Translator, size: Any) -> V:
        """A Python int that is constant, or known when the graph runs."""
        if isinstance(size, SymInt):
            return t.operand("int", size)
        return t.constant(size)

    def value(self, t: Translator, value: Value) -> V:
        """A value's form. Raises Refused where it has none."""
        tx = self.tx
        _, known = self.by_identity.get(id(value), (value, None))
        if known is not None and not (is_number(known) and known.known is not None):
            return known
        if isinstance(value, Constant) and is_drawing(value.value):
            value = method_of_known(tx, value.value)
        if isinstance(value, Constant):
            return t.constant(value.value)
        operand = operand_of(tx, value)
        if operand is not None:
            found = self.top.operand(*operand)
        elif isinstance(value, ArrayValue):
            if value.traced.type.dtype.name not in ELEMENTS or not value.traced.type.ndim or value.memory is None:
                raise Refused(f"an array of {value.traced.type}")
            self.arrays.append(value)
            found = V(("array", len(self.arrays) - 1))
        elif isinstance(value, RandomGeneratorValue):
            if value.family is None:
                raise Refused("a generator whose state is not known")
            self.arrays.append(value.state(tx))
            t.objects[id(value)] = value
            found = V(("generator", len(self.arrays) - 1, value.family.name, value.python_type, id(value)))
        elif isinstance(value, DrawingMethod):
            return V(("drawing", self.value(t, value.owner).kind, value.name))
        elif isinstance(value, SequenceValue) and value.cls is tuple:
            return t.pack([self.value(t, settled(tx, item)) for item in value.items])
        elif isinstance(value, SequenceValue) and value.cls is list and not is_own_list(value):
            self.lists.append(value)
            found = V(("list", len(self.lists) - 1))
        elif is_own_list(value):
            assert isinstance(value, SequenceValue)
            if tx.builder.graph is not tx.graph or self._is_written_out():
                raise Refused("a list that each iteration of a loop around it appends to, or makes")
            self.lists.append(value)
            found = V(("list", len(self.lists) - 1))
        elif isinstance(value, FunctionValue | MethodValue | ObjectValue | DictValue):
            found = t.object(value)
        else:
            raise Refused(value.describe())
        self.by_identity[id(value)] = value, found
        return found

    def array_type(self, number: int) -> TensorType:
        """The type of an array of the program."""
        type_: TensorType = self.arrays[number].traced.type
        return type_

    def _is_written_out(self) -> bool:
        """Whether a loop around this one is traced iteration by iteration: each would have a program of its own."""
        held = (value for frame in self.tx.frames for value in frame.stack)
        return any(isinstance(value, IteratorValue) and value is not self.iterator for value in held)

    def new_array(self, op: str, size: Any, dtype: str, **attrs: Any) -> int:
        """Adds an array of the loop's own, which ``op`` makes; returns its number."""
        tx = self.tx
        node = tx.builder.op(op, shape=(size,), dtype=dtype, **attrs)
        self.arrays.append(tx.new_array(Traced(node)))
        return len(self.arrays) - 1

    def with_kinds(self, cells: Cells, kinds: Sequence[str]) -> Cells:
        """The same with arrays for the kinds of items that a list may get."""
        size = self.array_type(cells.indexed).shape[0]
        more = [kind for kind in kinds if kind not in cells.kinds]
        arrays = {self.array_type(n).dtype: n for n in cells.arrays if n >= 0}
        for kind in more:
            if kind != NONE and dtype_of(kind) not in arrays:
                # All elements are defined, as those of a list of one kind.
                number = self.new_array("full", size, dtype_of(kind).name, fill_value=dtype_of(kind).type(0))
                arrays[dtype_of(kind)] = number
        tags = self.new_array("full", size, "int8", fill_value=0) if more and cells.tags < 0 else cells.tags
        numbers = (arrays[dtype_of(kind)] if kind != NONE else -1 for kind in more)
        return Cells((*cells.kinds, *more), (*cells.arrays, *numbers), tags)


__all__ = ["Values"]
