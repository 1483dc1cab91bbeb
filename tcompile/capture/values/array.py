"""Arrays and array scalars of a library.

Input: traced values, and the memory that they show.
Output: ``ArrayValue``, one for each array object.
Why: aliases must see each other's writes. Two names of one array are one ``ArrayValue``; a view is another one that
shows the same ``Memory`` through view ops. A write changes the memory, and so every array that shows it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from tcompile.capture.guards.sources import AttributeSource, Source
from tcompile.capture.values.base import Value, named, settled
from tcompile.capture.values.constant import Constant, CopiedDtype, integer
from tcompile.capture.values.memory import Memory
from tcompile.frontends.base import CannotCapture, Frontend, Traced
from tcompile.graph.sizes import SymInt

if TYPE_CHECKING:
    from tcompile.capture.entry.codegen import Rebuilder
    from tcompile.capture.interpreter.context import Capture
    from tcompile.graph.ops.writing import Path

_OPERATIONS_A_ROW = 4  # number of operations in a loop's unrolled body, of which iterating over a row counts as one


class ArrayValue(Value):
    """One array object; ``traced`` is what it shows now.

    ``path`` leads from ``memory`` to it. A scalar object, and an array as it was at one time, have no memory.
    """

    has_variable = False  # but the graph's output

    def __init__(
        self,
        traced: Traced,
        frontend: Frontend,
        source: Source | None = None,
        memory: Memory | None = None,
        path: Path = (),
    ) -> None:
        self.frontend = frontend
        self.source = source
        self.memory = memory
        self.path = path
        self.become(traced)

    def become(self, traced: Traced) -> None:
        """Shows ``traced``; a scalar object never changes."""
        self._shown = traced
        self._place = -1
        if traced.scalar:
            self.memory = None
        self._version = 0 if self.memory is None else self.memory.version

    @property
    def traced(self) -> Traced:
        """What it shows now."""
        memory = self.memory
        if memory is None or not memory.version:
            return self._shown
        nodes, place = memory.graph.nodes, self._place
        if self._version != memory.version or (
            place >= 0 and (place >= len(nodes) or nodes[place] is not self._shown.node)  # the write was undone
        ):
            node, self._place = memory.seen_through(self.path)
            self._shown, self._version = Traced(node), memory.version
            memory.known[id(self._shown)] = self._shown, self
        return self._shown

    @property
    def python_type(self) -> type:
        """The array class, or the scalar class of the dtype."""
        return self.frontend.python_type(self.traced)

    def describe(self) -> str:
        """The type and, where there is one, the user's name."""
        kind = f"{'a scalar' if self.traced.scalar else 'an array'} of type {self.traced.type}"
        return named(self.source, kind)

    def export(self, tx: Capture) -> Any:
        """What it holds now."""
        return self.traced

    def attribute(self, tx: Capture, name: str) -> Value:
        """A data attribute through the frontend, or a method bound to this array."""
        if self.frontend.has_method(self.traced, name):
            return ArrayMethod(self, name)
        memory = self.memory
        if name == "dtype" and memory is not None and memory.own_dtype and memory.owner is not None:
            assert memory.owner.source is not None
            return CopiedDtype(self.traced.type.dtype, AttributeSource(memory.owner.source, "dtype"))
        return tx.from_frontend(self.frontend.attribute(tx.builder, self.traced, name), self)

    def call(self, tx: Capture, args: Sequence[Value], kwargs: Mapping[str, Value]) -> Value:
        """Refuses it: arrays are not callable, and plain Python raises the error."""
        raise CannotCapture("operation-raises", "an array is called")

    def method(self, tx: Capture, name: str, args: Sequence[Value], kwargs: Mapping[str, Value]) -> Value:
        """``array.name(…)`` through the frontend."""
        if name in ("item", "tolist") and not args and not kwargs and (name == "item" or not self.traced.type.ndim):
            from tcompile.capture.values.scalar import read

            return read(tx, self, None)
        plain = [a.export(tx) for a in args]
        named = {k: v.export(tx) for k, v in kwargs.items()}
        return tx.from_frontend(self.frontend.method(tx.builder, self.traced, name, plain, named), self)

    def item(self, tx: Capture, key: Value) -> Value:
        """Builds ``array[key]`` through the frontend, except for rows and columns at computed indices in a loop."""
        found = _key(tx, key)
        if tx.open_loops:
            places = found if isinstance(found, tuple) else (found,)
            picked, others = _parted(places)
            if picked:
                shown = self.traced
                if not all(map(_is_all, others)):
                    shown = self.frontend.getitem(tx.builder, shown, others)
                rest = shown.type.ndim - len(picked)
                # The result has the memory order of NumPy's view: one axis is left, or rows are selected.
                if rest == 1 or (rest > 0 and shown.type.c_contiguous and max(picked) < len(picked)):
                    return self._row(tx, shown, picked)
        return tx.from_frontend(self.frontend.getitem(tx.builder, self.traced, found), self)

    def _row(self, tx: Capture, shown: Traced, picked: Mapping[int, Traced]) -> Value:
        """Returns the elements of the view of ``shown``, which this array shows, at indices along some axes.

        The result may be read, but must not escape, and the array must not be written meanwhile.
        """
        node = tx.builder.op("gather", shown.node, *(k.node for k in picked.values()), axes=tuple(picked))
        row = tx.new_array(Traced(node), kept="that is a row at a computed place,")
        assert row.memory is not None
        row.memory.stands_in = True
        if self.memory is not None:
            tx.hold_still(self.memory, row.memory)
        return row

    def store_item(self, tx: Capture, key: Value, value: Value) -> None:
        """``self[key] = value`` through the frontend."""
        self.frontend.setitem(tx.builder, self.traced, _key(tx, key), value.export(tx))
        tx.write()

    def update(self, tx: Capture, sign: str, right: Value) -> Value:
        """``self sign= right``: the object itself with new contents. Scalars have none: that is ``self sign right``."""
        tx.builder.write(self.traced, self.frontend.inplace(tx.builder, sign, self.traced, right.export(tx)).node)
        tx.write()
        return self

    def truth(self, tx: Capture) -> bool:
        """An array's truth is in its values."""
        raise CannotCapture("data-dependent-branch", tx.current_text())

    def length(self, tx: Capture) -> Value:
        """The first size."""
        shape = self.traced.type.shape
        if not shape:
            raise CannotCapture("operation-raises", "len() of unsized object")
        return integer(shape[0])

    def iterate(self, tx: Capture) -> Iterator[Value]:
        """The rows; a symbolic number of rows is fixed with a guard."""
        shape = self.traced.type.shape
        if not shape:
            raise CannotCapture("operation-raises", "iteration over a 0-d array")
        return (self.item(tx, Constant(i)) for i in range(self.check_rows(tx)))

    def check_rows(self, tx: Capture) -> int:
        """Returns the number of rows, fixed with a guard. Raises CannotCapture if they are too many to unroll."""
        size = self.traced.type.shape[0]
        count = size if isinstance(size, int) else size.specialise()
        most = tx.options.max_unrolled
        if most is not None and count > most // _OPERATIONS_A_ROW:
            raise CannotCapture("too-long", f"An array of {count} rows is walked through, row by row.")
        return count

    def rebuild(self, program: Rebuilder) -> str:
        """The argument itself where it is one, else an output of the graph."""
        if self.source is not None:
            return program.load(self.source)
        memory = self.memory
        if memory is not None and memory.choice is not None and not self.path:
            new, old = program.output(self, self.traced), program.rebuild(memory.choice.original)
            return f"({new} if {program.rebuild(memory.choice.is_new)} else {old})"
        if memory is not None:
            memory.ask_identity()
        if memory is None or memory.owner is None or not memory.version:
            return program.output(self, self.traced)
        node, _ = memory.seen_through(self.path, first=True)  # a view of the argument, which is brought up to date
        return program.output(self, Traced(node))

    def commit(self, program: Rebuilder) -> list[str]:
        """Writes the computed contents into the argument's memory, unless the graph has done so."""
        assert self.source is not None and self.memory is not None
        held, new = program.load(self.source), program.output(self.memory, Traced(self.memory.node))
        return [f"if {new} is not {held}: copyto({held}, {new})"]


def _parted(places: Sequence[Any]) -> tuple[dict[int, Traced], tuple[Any, ...]]:
    """Returns a key's computed integers, by axis of the view by the other items; and these items, with ``:`` in their
    place.

    Empty if the key has other items than integers and slices.
    """
    picked: dict[int, Traced] = {}
    others: list[Any] = []
    axis = 0
    for k in places:
        computed = isinstance(k, Traced) and k.scalar and k.type.dtype.kind in "iu"
        if computed:
            picked[axis] = k
        elif isinstance(k, bool) or not isinstance(k, int | SymInt | slice):
            return {}, ()
        axis += computed or isinstance(k, slice)
        others.append(slice(None) if computed else k)
    return picked, tuple(others)


def _is_all(key: Any) -> bool:
    """Whether a part of a key is ``:``."""
    return isinstance(key, slice) and key.start is None and key.stop is None and key.step is None


def _key(tx: Capture, key: Value) -> Any:
    """A key for the frontend. Ints that the graph computes pick places as an array's elements do."""
    from tcompile.capture.values.container import SequenceValue
    from tcompile.capture.values.scalar import computed_int

    key = settled(tx, key)
    if isinstance(key, SequenceValue) and key.cls is tuple:
        nodes = [computed_int(tx, settled(tx, item)) for item in key.items]
        if any(node is not None for node in nodes):
            pairs = zip(key.items, nodes, strict=True)
            return tuple(item.export(tx) if node is None else Traced(node, scalar=True) for item, node in pairs)
    node = computed_int(tx, key)
    return key.export(tx) if node is None else Traced(node, scalar=True)


class ArrayMethod(Value):
    """``array.name``, waiting to be called."""

    def __init__(self, array: Value, name: str) -> None:
        self.array = array
        self.name = name

    def describe(self) -> str:
        """The method's name."""
        return f"the method `{self.name}` of {self.array.describe()}"

    def call(self, tx: Capture, args: Sequence[Value], kwargs: Mapping[str, Value]) -> Value:
        """Asks the array."""
        return self.array.method(tx, self.name, args, kwargs)

    def rebuild(self, program: Rebuilder) -> str:
        """The method of the array."""
        return f"{program.rebuild(self.array)}.{self.name}"
