"""Lists that each iteration of a loop appends to: an array holds their items, one row an iteration.

Input: the lists that an iteration was seen to append to.
Output: the array, which iterations write like any other; and after the loop the lists, with a ``ListSlice`` of items
that are its rows.
Why: a list's length differs in each iteration, and most such lists become arrays (``xs.append(x)`` … ``np.array(xs)``).

Only fresh objects are appended: numbers, and arrays that the iteration has made and that are not written later. A
variable may hold the array of the last iteration, too; it is then the list's last item.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from tcompile.capture.loops.continuation import LateSpan
from tcompile.capture.semantics.subgraph import node_of
from tcompile.capture.values.array import ArrayValue
from tcompile.capture.values.base import Value, settled
from tcompile.capture.values.constant import Constant, FloatValue, IntegerValue, integer
from tcompile.capture.values.container import SequenceValue
from tcompile.capture.values.scalar import ScalarValue
from tcompile.capture.values.span import ListSlice
from tcompile.frontends.base import CannotCapture, Traced
from tcompile.graph import Node, TensorType
from tcompile.graph.sizes import Size, counters_in
from tcompile.graph.verify import fits
from tcompile.records import dataclass

if TYPE_CHECKING:
    from tcompile.capture.interpreter.frame import Frame
    from tcompile.capture.loops.after_loop import AfterLoop
    from tcompile.capture.loops.carried import Carried

_COLLECTED = " collected"  # in the name of an array's variable: the user's variables have no spaces in their names
_NUMBERS = (bool, int, float)


@dataclass(frozen=True)
class AccumulatorRow:
    """The items of one iteration for a list: ``count`` items of one ``kind``, as in ``Leaf``, and of one type."""

    kind: Any
    type: TensorType
    count: int


class Collected:
    """The lists of one loop.

    ``rows`` has the items of an iteration, by the name of a variable that holds the list. ``all`` are the variables of
    the arrays, for this loop and the loops around it.
    """

    def __init__(self, f: Frame, rows: Mapping[str, AccumulatorRow]) -> None:
        self.f, self.tx, self.rows = f, f.tx, rows
        self.all = {name for name in f.locals if _COLLECTED in name}.union(map(self.variable, rows))
        self.lists: dict[str, SequenceValue] = {}
        self.arrays: dict[str, ArrayValue] = {}
        self.last: dict[str, ArrayValue] = {}  # the array of an iteration's last append,
        self.others: set[int] = set()  # and the identities of arrays appended before it

    @staticmethod
    def variable(name: str) -> str:
        """The variable that holds the array of a list."""
        return name + _COLLECTED

    def begin(self, iterations: Size) -> None:
        """Makes the arrays, before the loop; ``iterations`` is the trip count of the node."""
        env = self.tx.graph.env
        for name, row in self.rows.items():
            found = self.f.locals.get(name)
            if not is_own_list(found):
                raise CannotCapture("loop-mismatch", f"`{name}` is another list in some iterations")
            assert isinstance(found, SequenceValue)
            shape = (iterations * row.count, *(env.adopt(n) for n in row.type.shape))
            node = self.tx.builder.op("empty", shape=shape, dtype=row.type.dtype.name)  # each row is assigned
            self.lists[name] = found
            made = self.arrays[name] = self.tx.new_array(Traced(node))
            self.f.locals[self.variable(name)] = made

    def open(self) -> None:
        """Collects items that are appended from now on."""
        for found in self.lists.values():
            found.collecting = []

    def learn(self, known: Mapping[int, Any], whole: bool) -> dict[str, AccumulatorRow]:
        """The items that the iteration has appended to lists.

        ``known`` has the lists as they were before it. ``whole``: no iteration has an early exit. Raises CannotCapture
        for items that differ from iteration to iteration.
        """
        rows: dict[str, AccumulatorRow] = {}
        seen: set[int] = set()
        for name, value in sorted(self.f.locals.items()):
            if not is_own_list(value) or id(value) in seen or id(value) not in known:
                continue
            assert isinstance(value, SequenceValue)
            added = value.collecting
            if added is not None and name not in self.lists:
                continue  # the loop around collects it, and has to learn of a change
            if added is None:
                before, now = known[id(value)]["_items"], list(map(id, value.held))
                if now == before or now[: len(before)] != before:
                    continue
                added = value.held[len(before) :]
            computed = [isinstance(settled(self.tx, item), ArrayValue | ScalarValue) for item in added]
            if added and (all(computed) or value.collecting is not None):  # known items are better followed
                if not whole:
                    raise CannotCapture("loop-mismatch", f"`{name}` is appended to in iterations that a test may end")
                seen.add(id(value))
                rows[name] = self._row(name, added)
        return rows

    def _row(self, name: str, added: list[Value]) -> AccumulatorRow:
        kind, node = self._item(name, added[0])
        for other in added[1:]:
            other_kind, other_node = self._item(name, other)
            if other_kind != kind or not fits(other_node.tensor, node.tensor):
                raise CannotCapture("loop-mismatch", f"an iteration appends several kinds of items to `{name}`")
        if not node.tensor.c_contiguous or any(counters_in(size) for size in node.tensor.shape):
            raise CannotCapture("loop-mismatch", f"an iteration appends an array of type {node.type} to `{name}`")
        return AccumulatorRow(kind, TensorType(node.tensor.dtype, node.tensor.shape), len(added))

    def _item(self, name: str, item: Value) -> tuple[Any, Node]:
        """The kind and the node of an item. Raises CannotCapture for an item that is not new in each iteration."""
        item = settled(self.tx, item)
        kind = self._kind(item)
        if kind is None:
            raise CannotCapture("loop-mismatch", f"an iteration appends {item.describe()} to `{name}`")
        if kind == "array" and not self._is_new(item):
            raise CannotCapture("loop-mismatch", f"an iteration appends an array to `{name}` that it has not made")
        return kind, node_of(self.tx, item)

    @staticmethod
    def _kind(item: Value) -> Any:
        if isinstance(item, ArrayValue):
            return "scalar" if item.traced.scalar else "array"
        if isinstance(item, ScalarValue | FloatValue | IntegerValue):
            return item.python_type
        return type(item.value) if isinstance(item, Constant) and type(item.value) in _NUMBERS else None

    def _is_new(self, item: Value) -> bool:
        """Whether the item is an array that the iteration has made, without views of it elsewhere."""
        memory = item.memory if isinstance(item, ArrayValue) else None
        if memory is None or memory.graph is not self.tx.builder.graph or not memory.is_new:
            return False
        assert isinstance(item, ArrayValue)
        return not (item.path or memory.kept or memory.choice or memory.may_alias_input) and bool(item.traced.type.ndim)

    def store(self, number: Size) -> None:
        """Writes the items of iteration ``number`` to the arrays."""
        arrays: set[int] = set()
        for name, found in self.lists.items():
            added = found.collecting or []
            for place, item in enumerate(added):
                _, node = self._item(name, item)
                if isinstance(item, ArrayValue) and not item.traced.scalar:
                    if id(item) in arrays:
                        raise CannotCapture("loop-mismatch", "an iteration appends an array twice")
                    arrays.add(id(item))
                    if place == len(added) - 1:
                        self.last[name] = item
                row = number * len(added) + place
                array = self.arrays[name]
                array.frontend.setitem(self.tx.builder, array.traced, integer(row).export(self.tx), Traced(node))
                self.tx.write()
        self.others = arrays - set(map(id, self.last.values()))

    def close(self, carried: Carried) -> None:
        """Ends the iteration. Raises CannotCapture where a variable may hold an item other than the last one."""
        for found in self.lists.values():
            found.collecting = None
        if any(place in carried.homes or place in carried.chosen for place in self.others):
            raise CannotCapture("loop-mismatch", "a variable holds an item of a list that is not its last")
        for name, item in list(self.last.items()):
            leaf = carried.homes.get(id(item))
            if leaf is None:
                del self.last[name]
            elif any(other.result is leaf.inside for other in carried.leaves if other is not leaf):
                raise CannotCapture("loop-mismatch", "a variable holds an item of a list that is not its last")

    def put(self, carried: Carried, after: AfterLoop, so_far: bool = False) -> None:
        """Gives the lists their items after the loop, or after the iterations so far."""
        for name, found in self.lists.items():
            array = self.f.locals.pop(self.variable(name))
            assert isinstance(array, ArrayValue)
            item = self.last.get(name)
            last = after.value(carried.homes[id(item)]) if item is not None else None
            assert last is None or isinstance(last, ArrayValue)
            whole = ListSlice(self.tx, array, self.rows[name].kind, last)
            found.held.append(LateSpan(whole, self.rows[name].count, None) if so_far else whole)
            found.spans = True


def alike(a: Mapping[str, AccumulatorRow], b: Mapping[str, AccumulatorRow]) -> bool:
    """Whether two attempts at a loop have collected items of the same types."""
    return a.keys() == b.keys() and all(
        (row.kind, row.type.dtype, row.count) == (b[name].kind, b[name].type.dtype, b[name].count)
        and str(row.type.shape) == str(b[name].type.shape)
        for name, row in a.items()
    )


def is_own_list(value: Any) -> bool:
    """Whether it is a list that the function has made."""
    return type(value) is SequenceValue and value.cls is list and value.source is None


__all__ = ["AccumulatorRow", "Collected", "alike", "is_own_list"]
