"""The values after a loop, made of the results of its node, for each exit of the loop.

Input: the trees of leaves that variables hold at each exit of the loop.
Output: captured values. Where several exits meet, each variable has one value, selected by the exit that was taken.
Why: tracing the iterations, and going on after the loop, are separate tasks.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from tcompile.capture.context.loop_plan import LoopPlan
from tcompile.capture.loops.carried import Carried
from tcompile.capture.loops.discover_carried import same_constant
from tcompile.capture.loops.leaves import Count, Leaf, TupleNode, ViewLeaf
from tcompile.capture.semantics.subgraph import is_new, node_of
from tcompile.capture.values.array import ArrayValue
from tcompile.capture.values.base import Value, settled
from tcompile.capture.values.constant import Constant, integer
from tcompile.capture.values.container import SequenceValue
from tcompile.capture.values.int_nodes import check_bits
from tcompile.capture.values.phi import PhiValue
from tcompile.capture.values.scalar import number_value, of_kind
from tcompile.frontends.base import CannotCapture
from tcompile.graph import Node, SymInt
from tcompile.graph.sizes import Size, same
from tcompile.graph.verify import fits

if TYPE_CHECKING:
    from tcompile.capture.interpreter.context import Capture


class AfterLoop:
    """Makes captured values of the results of a loop's node."""

    def __init__(self, carried: Carried, iterations: Node | Size | None, whole: bool = False) -> None:
        """``whole``: at least one iteration is done, and no iteration has an early exit."""
        self.carried, self.iterations, self.whole = carried, iterations, whole
        self.before: Any = None  # the state in which tracing after the loop began
        self._own: dict[int, Value] = {}  # arrays that the loop has made, with no other alias
        self._made: dict[Any, Value] = {}

    def value(self, tree: Any) -> Value:
        """The value of a tree."""
        if isinstance(tree, Value):
            return tree
        key = str(tree.size) if isinstance(tree, Count) else id(tree)
        if key not in self._made:
            self._made[key] = self._new(tree)
        return self._made[key]

    def _new(self, tree: Any) -> Value:
        carried = self.carried
        if isinstance(tree, ViewLeaf):
            return of_kind(carried.tx, "array", tree.memory.seen_through(tree.path)[0])
        if isinstance(tree, TupleNode):
            return SequenceValue([self.value(part) for part in tree.parts], tree.cls)
        if isinstance(tree, Count):
            return self._count(tree.size)
        if tree.value is not None and tree.ends == tree.inputs:  # every iteration carries its input unchanged
            found: Value = tree.value
            return found
        made = of_kind(carried.tx, tree.kind, tree.result)
        if tree.kind == "array":
            self._own[id(made)] = made
            assert isinstance(made, ArrayValue) and made.memory is not None
            made.memory.made = self._is_made(tree)
        return made

    def _is_made(self, leaf: Leaf) -> bool:
        """Whether the array that a leaf holds after the loop was certainly made in the graph around the loop."""
        tx = self.carried.tx
        ends = list(zip(leaf.ends, leaf.inputs, strict=True))
        if any(end is not start and not tx.memory_of(end)[0].is_new for end, start in ends):
            return False
        if self.whole and all(end is not start for end, start in ends):
            return True
        given = leaf.value.memory if isinstance(leaf.value, ArrayValue) else None
        return leaf.value is None or (given is not None and given.graph is tx.builder.graph and given.is_new)

    def leave_open(self, plan: LoopPlan) -> None:
        """Notes that arrays of the loop may be the very arrays that it was given, which may have other aliases."""
        for leaf in self.carried.leaves:
            made = self._made.get(id(leaf))
            foreign = leaf.foreign or self.carried.is_mixed
            if foreign and isinstance(made, ArrayValue) and self.made(made) and made.memory is not None:
                made.memory.may_alias_input = plan
            if leaf.foreign and isinstance(leaf.value, ArrayValue) and leaf.value.memory is not None:
                leaf.value.memory.may_be_aliased = plan

    def made(self, value: Value) -> bool:
        """Whether a value is an array result of the node."""
        return id(value) in self._own

    def owns(self, value: Value) -> bool:
        """Whether an array belongs to the loop, or was made after it."""
        if id(value) in self._own or not isinstance(value, ArrayValue) or value.path or value.memory is None:
            return id(value) in self._own
        return id(value.memory) not in self.before[0] and value.memory.owner is None and is_new(value.traced.node)

    def _count(self, size: SymInt) -> Value:
        """An int that grows with each completed iteration."""
        carried, counter = self.carried, str(self.carried.counter)
        if isinstance(self.iterations, int | SymInt):
            return integer(size.at(counter, self.iterations))
        check_bits(size)
        start = size.at(counter, 0)
        by = size.at(counter, 1) - start
        if not same(size, start + by * carried.counter):
            raise CannotCapture("loop-mismatch", f"{size} is not linear in the iterations of the loop")
        op, node = carried.tx.builder.op, self.iterations
        assert node is not None
        if not same(by, 1):
            node = op("multiply", node, by)
        if not same(start, 0):
            node = op("add", node, start)
        return number_value(carried.tx, node, int)


class Select:
    """Selects among the values that variables hold at several exits of a loop."""

    def __init__(self, tx: Capture, after: AfterLoop, which: Node, numbers: list[int]) -> None:
        self.tx, self.after, self.which, self.numbers = tx, after, which, numbers
        self._made: dict[tuple[int, ...], Value] = {}
        self._taken: dict[int, tuple[int, ...]] = {}

    def merged(self, name: str, found: Sequence[Value | None]) -> Value:
        """One value for the values at the exits."""
        tx = self.tx
        values = [settled(tx, value) for value in found if value is not None]
        key = tuple(map(id, values))
        other = CannotCapture("loop-mismatch", f"{name} depends on how it is left")
        if len(values) != len(self.numbers):
            raise other
        first = values[0]
        if all(value is first or same_constant(value, first) for value in values):
            self._claim(values, (), other)
            return first
        if key not in self._made:
            made = self._made[key] = self._new(name, values, other)
            self._claim(values, () if isinstance(made, PhiValue) else key, other)
        return self._made[key]

    def _claim(self, values: Sequence[Value], key: tuple[int, ...], other: Exception) -> None:
        """Makes sure that an array of the loop is not selected in one place, and itself or otherwise in another.

        The key is empty where the array itself is the value.
        """
        for value in values:
            if self.after.owns(value) and self._taken.setdefault(id(value), key) != key:
                raise other

    def _new(self, name: str, values: Sequence[Value], other: Exception) -> Value:
        tx = self.tx
        if all(isinstance(value, SequenceValue) and value.cls is tuple for value in values):
            rows = [value.items for value in values if isinstance(value, SequenceValue)]
            if len({len(row) for row in rows}) == 1:
                parts = zip(*rows, strict=True)
                return SequenceValue([self.merged(name, list(part)) for part in parts], tuple)
            return self._phi(values, other)
        kinds = [self._kind(value) for value in values]
        if kinds[0] is None or any(kind != kinds[0] for kind in kinds):
            return self._phi(values, other)
        nodes = [node_of(tx, value) for value in values]
        if any(not fits(node.tensor, nodes[0].tensor) for node in nodes):
            return self._phi(values, other)
        op, result = tx.builder.op, nodes[0]
        for number, node in zip(self.numbers[1:], nodes[1:], strict=True):
            result = op("where", op("equal", self.which, number), node, result)
        merged = of_kind(tx, kinds[0], result)
        if isinstance(merged, ArrayValue) and merged.memory is not None:
            merged.memory.made = all(x.memory.is_new for x in values if isinstance(x, ArrayValue) and x.memory)
        return merged

    def _phi(self, values: Sequence[Value], other: Exception) -> Value:
        """A value of several kinds. A loop around this one could not carry it."""
        tx = self.tx
        if tx.builder.graph is not tx.graph:
            raise other
        return PhiValue(number_value(tx, self.which, int), dict(zip(self.numbers, values, strict=True)))

    def _kind(self, value: Value) -> Any:
        """The kind of a value that the graph can select; None for others."""
        if isinstance(value, ArrayValue):
            if not value.traced.scalar and not self.after.owns(value):
                return None
            if value.memory is not None:
                value.memory.ask_identity()
            return "scalar" if value.traced.scalar else "array"
        if isinstance(value, Constant) and self.tx.is_scalar(value.value):
            return "scalar"
        kind = value.python_type
        return kind if kind in (bool, int, float) else None


__all__ = ["AfterLoop", "Select"]
