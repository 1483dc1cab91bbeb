"""The loop-carried values: arrays that are written, and variables that are bound anew.

Input: the values of variables before a loop, after an iteration of it, and at its exits.
Output: for each such value a ``Leaf``, one operand and one result of the loop's node.
Why: a carried value must keep its kind, dtype and shape, and the identity of objects must be as in plain Python.

An iteration may be in several *parts*, each in a graph of its own. Every leaf is an input and an output of each part. A
value that one part makes and a later part reads gets a leaf as well.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import field
from typing import TYPE_CHECKING, Any

import numpy as np

from tcompile.capture.context.loop_plan import LoopPlan, Restart
from tcompile.capture.loops.leaves import Count, Leaf, Parted, TupleNode, Unsettled, ViewLeaf, leaves_of
from tcompile.capture.loops.trip_count import int_of, is_int
from tcompile.capture.semantics.alias_count import holders
from tcompile.capture.semantics.subgraph import as_node
from tcompile.capture.values.array import ArrayValue, Choice, Memory
from tcompile.capture.values.base import Value, settled
from tcompile.capture.values.constant import Constant, FloatValue, IntegerValue, integer
from tcompile.capture.values.container import SequenceValue
from tcompile.capture.values.int_nodes import int_node
from tcompile.capture.values.scalar import ScalarValue, of_kind
from tcompile.capture.values.span import ListSlice
from tcompile.frontends.base import CannotCapture, Traced
from tcompile.graph import Graph, Node, ScalarType, SymInt, TensorType, ops
from tcompile.graph.ops import apply
from tcompile.graph.ops.control import FOREVER
from tcompile.graph.sizes import replace_sizes
from tcompile.graph.verify import fits
from tcompile.records import dataclass

if TYPE_CHECKING:
    from tcompile.capture.interpreter.context import Capture
    from tcompile.capture.interpreter.frame import Frame


@dataclass(eq=False)
class Carried:
    """All values that one loop carries."""

    tx: Capture
    plan: LoopPlan
    name: str
    counter: SymInt
    last: Any  # the number of the last iteration
    needed: set[str]  # variables that an iteration reads before it binds them
    read: set[str]  # these, and variables that are read after the loop
    after: set[str]  # variables that are read after the loop
    known: Any  # by identity, all captured values that there are before the loop
    memories: list[Memory] = field(default_factory=list)
    leaves: list[Leaf] = field(default_factory=list)
    trees: dict[str, Any] = field(default_factory=dict)
    named: dict[str, Leaf] = field(default_factory=dict)  # of variables that each iteration binds before it reads
    parts: list[Graph] = field(default_factory=list)
    homes: dict[int, Leaf] = field(default_factory=dict)  # by the identity of an array, the leaf that carries it,
    chosen: dict[int, Leaf] = field(default_factory=dict)  # and the leaf that carries it in some iterations
    starts: dict[int, Leaf] = field(default_factory=dict)  # the same at the start
    may_be_aliased: list[tuple[Leaf, Leaf | None]] = field(
        default_factory=list
    )  # at the tests that end iterations; and the source of each
    numbers: dict[Node, Node] = field(default_factory=dict)  # by carried element, the node that kernels read
    taker: Leaf | None = None
    is_mixed: bool = False  # whether a leaf may end up with an array that another one began with
    alike: set[int] = field(default_factory=set)  # the identities of arrays that several leaves start with
    alone: set[int] = field(
        default_factory=set
    )  # of arrays that iterations write to before they bind the variable anew
    shared: set[int] = field(default_factory=set)  # of arrays with aliases that are not carried

    # -- before the loop -----------------------------------------------------------------------------------------------
    def find_memories(self, f: Frame, before: dict[str, Value]) -> None:
        """Finds the memories that are written and are not carried as the value of a variable."""
        found: dict[Memory, None] = {}
        tx = self.tx
        for place, value in self.plan.written.items():
            kind, name = place
            if kind == "source":
                array: Value | None = tx.wrap(value, name)
            elif kind == "local":
                array = f.locals.get(name)
                array = settled(tx, array) if array is not None else None
            else:
                memory = tx.memory_named(name)
                if memory is not None:
                    found[memory] = None
                continue
            if isinstance(array, ArrayValue) and array.memory is not None:
                found[array.memory] = None
        for name in self.plan.carried - self.plan.induction_steps.keys():
            value = before.get(name)
            if isinstance(value, ArrayValue) and value.memory in found and self.is_alone(name, value):
                self.alone.add(id(value))
                del found[value.memory]
        self.memories = list(found)

    def is_alone(self, name: str, value: ArrayValue) -> bool:
        """Whether a variable that iterations bind anew holds the only alias of an array that is written."""
        memory = value.memory
        if memory is None or memory.kept or not self.is_free(value):
            return False
        return holders(self.tx, memory) == 1 + (name in self.plan.slots)  # a slot is shown as a variable

    def _stays_alone(self, name: str, tree: Leaf, value: Value) -> bool:
        """Whether the next iteration may write to an array in place: this one owned or made it, and it has no other
        alias.
        """
        memory = value.memory if isinstance(value, ArrayValue) else None
        if memory is None or memory.graph is not self.tx.builder.graph:
            return False
        given = next((leaf for leaf in self.leaves if leaf.inside is memory.root), None)
        if memory.root.op is ops.INPUT and (given is None or given.shows not in (None, tree)):
            return False
        return holders(self.tx, memory) == 1 + (name in self.plan.slots)

    def find_leaves(self, before: dict[str, Value]) -> None:
        """The leaves of memories and variables; two names of one array share one."""
        for name in sorted(self.plan.carried):
            value = before.get(name)
            if value is None:
                if name in self.needed:
                    raise Unsettled(f"`{name}` has no value before the loop")
                continue
            if name not in self.plan.induction_steps:
                self.trees[name] = self._tree(name, value)
        for leaf in set(leaves_of(self.trees.values())):
            if leaf.kind == "array" and self._is_held_elsewhere(leaf, before):
                self.shared.add(id(leaf.value))
        for memory in self.memories:
            if memory.kept:
                raise CannotCapture("writes-to-array", f"Writing to an array {memory.kept}")
            self.tx.claim(memory)
            self.leaves.append(Leaf("memory", memory.node, None))

    def _is_held_elsewhere(self, leaf: Leaf, before: dict[str, Value]) -> bool:
        """Whether code after the loop may see the first iteration's array through another alias."""
        memory = leaf.value.memory if isinstance(leaf.value, ArrayValue) else None
        if memory is None:
            return False
        names = [name for name, tree in self.trees.items() if leaf in leaves_of([tree])]
        objects = {id(value) if isinstance(value := before[name], SequenceValue) else name for name in names}
        dead = [name for name in before.keys() - self.read if getattr(before[name], "memory", None) is memory]
        count = holders(self.tx, memory)
        return count is None or count > len(objects) + len(dead) + sum(name in self.plan.slots for name in names)

    def _tree(self, name: str, value: Value) -> Any:
        tx = self.tx
        value = settled(tx, value)
        if isinstance(value, ArrayValue) and value.traced.scalar:
            return Leaf("scalar", value.traced.node, value)
        if isinstance(value, ArrayValue) and value.memory in self.memories:
            raise Unsettled(f"`{name}` shows an array that the first iteration writes to")
        if isinstance(value, ArrayValue):
            leaf = self.starts.setdefault(id(value), Leaf("array", value.traced.node, value))
            if name in self.plan.split_aliases:
                self.alike.add(id(value))
                leaf = Leaf("array", leaf.given, value)
            return leaf
        if isinstance(value, ScalarValue):
            return Leaf(value.cls, value.array.traced.node, value)
        if isinstance(value, FloatValue) or (isinstance(value, Constant) and type(value.value) in (float, bool)):
            return Leaf(value.python_type, as_node(tx, value), value)
        if isinstance(value, Constant) and tx.is_scalar(value.value):
            return Leaf("scalar", as_node(tx, value), value)
        if is_int(value) and name in self.plan.non_affine:
            return Leaf(int, int_node(tx, int_of(value)), value)
        if isinstance(value, SequenceValue) and value.cls is tuple:
            return TupleNode(tuple, [self._tree(name, item) for item in value.items])
        raise Unsettled(f"`{name}` is {value.describe()} before the loop and something else after an iteration")

    # -- parts ---------------------------------------------------------------------------------------------------------
    def begin(self) -> None:
        """Begins a part: its graph, with an input for each leaf."""
        tx = self.tx
        number = len(self.parts)
        graph = Graph(f"{self.name}_{number}" if number else self.name, tx.graph.env)
        graph.input("iteration", ScalarType("int", self.counter))
        self.parts.append(graph)
        tx.builder.graph = graph
        tx.open_loops[-1] = tx.open_loops[-1][0], graph
        self.homes, self.chosen = {}, {}
        for leaf in self.leaves:
            self._enter(leaf)

    def _enter(self, leaf: Leaf) -> None:
        """Adds the input of a leaf to the part that begins."""
        leaf.inside = self.parts[-1].input(leaf.given.name, leaf.given.tensor)
        leaf.inputs.append(leaf.inside)
        leaf.end = leaf.result = None

    def show(self, memory: Memory, leaf: Leaf) -> None:
        """Has a memory show the input of a leaf from now on."""
        assert leaf.inside is not None
        memory.root = memory.node = leaf.inside
        memory.graph = self.parts[-1]
        memory.version += 1
        self.tx.show_memory(leaf.inside, memory)

    def first_values(self) -> dict[str, Value]:
        """The values of the carried variables at the start of an iteration."""
        for memory, leaf in zip(self.memories, self.leaves, strict=True):
            self.show(memory, leaf)
        return {name: self._inside(tree) for name, tree in self.trees.items()}

    def _inside(self, tree: Any) -> Value:
        """The value at the start of an iteration."""
        if isinstance(tree, TupleNode):
            return SequenceValue([self._inside(part) for part in tree.parts], tree.cls)
        if tree.start is None:
            self.leaves.append(tree)
            self._enter(tree)
            kept = "" if id(tree.value) in self.alone else "that a loop carries,"
            tree.start = of_kind(self.tx, tree.kind, tree.inside, kept)
            tree.shows = tree
            alike = id(tree.value) in self.alike
            owned = self.is_free(tree.value) and not alike and id(tree.value) not in self.shared
            tree.foreign = int(tree.kind == "array" and not owned)
            if isinstance(tree.start, ArrayValue) and tree.start.memory is not None:
                tree.start.memory.leaf = tree
                if alike:
                    assert isinstance(tree.value, ArrayValue)
                    tree.start.memory.alike = tree.value
        found: Value = tree.start
        return found

    def new_leaf(self, kind: Any, type: TensorType) -> Leaf:
        """A leaf whose input no iteration reads, in all parts so far."""
        builder = self.tx.builder
        inside, builder.graph = builder.graph, self.tx.open_loops[-1][0]
        try:
            given = builder.op("full", shape=type.shape, fill_value=0, dtype=type.dtype.name)
        finally:
            builder.graph = inside
        leaf = Leaf(kind, given, None)
        for part in self.parts:
            leaf.inside = part.input(given.name, type)
            leaf.inputs.append(leaf.inside)
        leaf.ends = leaf.inputs[:-1]
        self.leaves.append(leaf)
        return leaf

    def named_leaf(self, name: str, kind: Any, node: Node) -> Leaf:
        """The leaf of a variable that each iteration binds before it reads it."""
        leaf = self.named.get(name)
        if leaf is None:
            leaf = self.named[name] = self.new_leaf(kind, self.free_type(name, node))
        if leaf.kind != kind or not fits(leaf.given.tensor, node.tensor):
            raise Unsettled(
                f"`{name}` is of type {leaf.given.type} in some iterations and of type {node.type} in others"
            )
        return leaf

    def free_type(self, name: str, node: Node) -> TensorType:
        """A type that the graph around the loop can allocate."""
        type = node.tensor
        sizes = [size for size in type.shape if isinstance(size, SymInt)]
        if not type.c_contiguous or any(str(self.counter) in size.counters() for size in sizes):
            raise CannotCapture("loop-mismatch", f"`{name}` is of type {type} after the loop")
        return type

    # -- values at the end of an iteration -----------------------------------------------------------------------------
    def set_end(self, name: str, tree: Any, value: Value) -> None:
        """Notes the value that the iteration carries to the next one in ``tree``."""
        value = settled(self.tx, value)
        if isinstance(tree, TupleNode):
            if not isinstance(value, SequenceValue) or value.cls is not tree.cls or len(value.items) != len(tree.parts):
                raise Unsettled(f"`{name}` becomes {value.describe()} after an iteration")
            for part, item in zip(tree.parts, value.items, strict=True):
                self.set_end(name, part, item)
            return
        if tree.kind == "array":
            if tree.end not in (None, value):
                raise Parted(name)
            if id(tree.value) in self.alone and not self._stays_alone(name, tree, value):
                raise Unsettled(f"`{name}` shows an array that the first iteration writes to")
            self._take(name, tree, value)
            tree.end = value
        self.taker = tree
        found = self.node(name, tree.kind, value)
        self.taker = None
        if not fits(found.tensor, tree.given.tensor):
            raise Unsettled(f"`{name}` is {tree.given.type} before an iteration and {found.type} after it")
        tree.result = found

    def _take(self, name: str, leaf: Leaf, value: Value) -> None:
        """Notes the leaf that carries an array, and the array that it may be. No other leaf may carry either."""
        met = [self.homes.setdefault(id(value), leaf), self.chosen.get(id(value), leaf)]
        choice = value.memory.choice if isinstance(value, ArrayValue) and value.memory is not None else None
        if choice is not None:
            root = id(choice.root())
            met += [self.homes.get(root, leaf), self.chosen.setdefault(root, leaf)]
        if any(other is not leaf for other in met):
            raise Unsettled(f"`{name}` and another variable are one object in some iterations only")

    def node(self, name: str, kind: Any, value: Value) -> Node:
        """The node of a value of this kind, which is new in each iteration or is an input of it."""
        tx = self.tx
        other = Unsettled(f"`{name}` is {value.describe()} after an iteration")
        if kind == "array":
            if not isinstance(value, ArrayValue) or value.traced.scalar:
                raise other
            return self._own(name, value)
        if kind == "scalar":
            if isinstance(value, ArrayValue) and value.traced.scalar:
                return self._number(value.traced.node)
            if isinstance(value, Constant) and tx.is_scalar(value.value):
                return as_node(tx, value)
            raise other
        if kind is float and value.python_type is np.float64:  # a float to Python, of another class
            was = f"`{name}` is a float of Python's before an iteration and np.float64 after it"
            raise Unsettled(f"{was}; begin with np.float64(...)")
        if value.python_type is not kind:
            raise other
        if is_int(value):
            return int_node(tx, int_of(value))
        return value.array.traced.node if isinstance(value, ScalarValue) else as_node(tx, value)

    def _number(self, node: Node) -> Node:
        """A carried scalar: for an element of an array, the node that kernels read."""
        if node.op is ops.INPUT or node.op.kind != "view":
            return node
        if node not in self.numbers:
            self.numbers[node] = self.tx.builder.op("ordered", node, axes=())
        return self.numbers[node]

    def _own(self, name: str, value: ArrayValue) -> Node:
        """The node of an array that this iteration has made, without views of it elsewhere."""
        memory, node = value.memory, value.traced.node
        if memory is not None and memory.choice is not None:
            self._check_choice(name, memory.choice)
        elif memory is not None:
            memory.ask_identity()
        carried = next((leaf for leaf in self.leaves if leaf.inside is node), None)
        source = carried.shows if carried is not None and carried is not self.taker else None
        if source is not None and source.foreign and not self.plan.tested:
            raise Unsettled(f"`{name}` becomes an array that something else may hold")
        found = memory is None or memory in self.memories or memory.graph is not self.tx.builder.graph
        if found and self._is_taken_over(name, value):
            return self.tx.builder.op("ordered", node, axes=node.tensor.layout.order)
        if memory is None or found or memory.owner is not None or value.path:
            raise Unsettled(f"`{name}` is an array or a view of one that each iteration finds, not one that it makes")
        if memory.kept and node.op is not ops.INPUT:
            raise CannotCapture("loop-mismatch", f"`{name}` is an array {memory.kept}")
        return node

    def _is_taken_over(self, name: str, value: ArrayValue) -> bool:
        """Whether the side of a branch returns an array of the iteration around it that may be taken as it is.

        The array must have no other live alias after the side: then it cannot be told from a copy.
        """
        memory = value.memory
        if not self.plan.is_branch or memory is None or memory in self.memories or value.path or memory.kept:
            return False
        outside = memory.owner is not None or memory.may_alias_input is not None or memory.alike is not None
        if outside or not memory.is_new or memory.graph is self.tx.builder.graph:
            return False
        variables = self.tx.frames[-1].locals
        same = [other for other, held in variables.items() if getattr(held, "memory", None) is memory]
        dead = [other for other in same if other not in self.after]
        return name in same and name not in dead and holders(self.tx, memory) == 1 + len(dead)

    def _check_choice(self, name: str, choice: Choice) -> None:
        """Makes sure that a possible alias of the array a variable began with returns to that variable alone."""
        if self.taker is None or choice.root() is not self.taker.start:
            raise Unsettled(f"`{name}` becomes an array that something else may hold")
        if name not in self.plan.marked:
            self.plan.marked, self.plan.looked = self.plan.marked | {name}, False
            raise Restart

    def is_free(self, value: Value | None) -> bool:
        """Whether the array that the first iteration is given has no other alias."""
        if not isinstance(value, ArrayValue) or value.memory is None:
            return value is None
        if value.memory.owner is not None or value.path or value.memory in self.memories:
            return False
        if value.memory.may_alias_input is not None or value.memory.choice is not None:
            return False
        around: Leaf | None = value.memory.leaf  # of the loop around this one
        if around is not None and not around.foreign:
            around.is_free = True
        return around is None or around.is_free

    def shown(self) -> dict[Node | None, Leaf | None]:
        """By the part's input nodes, the leaves that had these values at the start of the iteration."""
        return {leaf.inside: leaf.shows for leaf in self.leaves}

    def settle_foreign(self) -> None:
        """Computes for how many iterations leaves may carry aliased arrays, from the ends of a whole iteration."""
        shown = self.shown()
        may_be_aliased = [*self.may_be_aliased, *((leaf, shown.get(leaf.ends[-1])) for leaf in self.leaves)]
        may_be_aliased = [
            (leaf, source) for leaf, source in may_be_aliased if leaf.kind == "array" and leaf.ends != leaf.inputs
        ]
        self.is_mixed |= any(source not in (None, leaf) for leaf, source in may_be_aliased)
        for _ in range(len(self.leaves) + 1):
            again = False
            for leaf, source in may_be_aliased:
                if source is None or not source.foreign:
                    continue
                iterations = FOREVER if source is leaf else min(source.foreign + 1, FOREVER)
                if iterations > leaf.foreign and leaf.is_free:
                    raise Unsettled("an array that something else may hold goes into a loop inside")
                if iterations > leaf.foreign:
                    leaf.foreign, again = iterations, True
            if not again:
                return
        raise Unsettled("arrays that something else may hold are rotated")

    def ends(self) -> list[Node]:
        """The values at the end of the last part, after ``set_end``: leaves not bound anew keep their input."""
        return [leaf.result or leaf.inside for leaf in self.leaves]  # type: ignore[misc]

    # -- from one part to the next -------------------------------------------------------------------------------------
    def live(self, values: Iterable[tuple[str, Value]]) -> Iterator[tuple[str, ArrayValue, Any]]:
        """The arrays and scalars of this part among the values of variables: name, array, kind."""
        for name, found in values:
            value = settled(self.tx, found)
            if isinstance(value, SequenceValue) and value.source is None:  # collected items are an outer iteration's
                yield from self.live((name, item) for item in value.held if not isinstance(item, ListSlice))
            elif isinstance(value, ScalarValue):
                yield name, value.array, value.cls
            elif isinstance(value, ArrayValue):
                yield name, value, "scalar" if value.traced.scalar else "array"

    def move(self, values: Sequence[tuple[str, Value]], to_next_iteration: bool) -> dict[int, Leaf]:
        """Ends a part and begins the next, to which leaves carry the values of the variables.

        ``to_next_iteration`` says that the next iteration may begin here. Values noted by ``set_end`` have their leaves
        already. Returns the leaves, by the identity of a memory or of a scalar's array.
        """
        part = self.parts[-1]
        own = {*part.nodes, *part.inputs}
        ends: dict[Leaf, Node] = {leaf: leaf.result for leaf in self.leaves if leaf.result is not None}
        places: dict[int, Leaf] = {}
        memories: dict[Memory, Leaf] = {}
        for memory, leaf in zip(self.memories, self.leaves, strict=False):
            ends[leaf], memories[memory], places[id(memory)] = memory.node, leaf, leaf
        scalars: list[tuple[ArrayValue, Leaf]] = []
        views: list[ArrayValue] = []
        for name, array, kind in list(self.live(values)):
            held = array.memory
            if held is not None:
                if held.graph is part and held not in memories:
                    memories[held] = places[id(held)] = self._place(name, "array", held.node, ends)
                elif held.graph is not part and array.traced.node in own:
                    views.append(array)
            elif array.traced.node in own:
                leaf = places[id(array)] = self._place(name, kind, self._number(array.traced.node), ends)
                scalars.append((array, leaf))
        shown = self.shown()
        for leaf in self.leaves:
            end = ends.get(leaf, leaf.inside)
            assert end is not None
            leaf.ends.append(end)
            leaf.shows = shown.get(end)
            if to_next_iteration:
                self.may_be_aliased.append((leaf, leaf.shows))
        self.begin()
        for memory, leaf in memories.items():
            self.show(memory, leaf)
        for array, leaf in scalars:
            assert leaf.inside is not None
            array.become(Traced(leaf.inside, scalar=True))
            self.tx.remember(array)
        for array in views:  # of memories from before the loop
            assert array.memory is not None
            node = array.memory.node
            for op, attrs in array.path:
                node = apply(self.parts[-1], op, node, location=self.tx.builder.location, **dict(attrs))
            array.become(Traced(node))
            self.tx.remember(array)
        return places

    def _place(self, name: str, kind: Any, node: Node, ends: dict[Leaf, Node]) -> Leaf:
        """The leaf that carries a value of this part."""
        for leaf in self.leaves:
            if (leaf.kind == kind and ends.get(leaf) is node) or (leaf not in ends and leaf.inside is node):
                ends[leaf] = node
                return leaf
        tree = self.trees.get(name)
        if isinstance(tree, Leaf) and tree.kind == kind and tree not in ends and fits(tree.given.tensor, node.tensor):
            ends[tree] = node
            return tree
        if isinstance(tree, Leaf | TupleNode) or self.named.get(name) in ends:
            leaf = self.new_leaf(kind, self.free_type(name, node))
        else:
            leaf = self.named_leaf(name, kind, node)
        ends[leaf] = node
        return leaf

    # -- where the loop is left ----------------------------------------------------------------------------------------
    def at_exit(self, name: str, value: Value, places: dict[int, Leaf]) -> Any:
        """The value of a variable at an early exit, as a value or a tree of leaves."""
        value = settled(self.tx, value)
        if isinstance(value, IntegerValue):
            return Count(value.size) if str(self.counter) in value.size.counters() else value
        if isinstance(value, Constant | FloatValue) or id(value) in self.known or value.source is not None:
            return value
        if isinstance(value, SequenceValue) and value.cls is tuple:
            return TupleNode(tuple, [self.at_exit(name, item, places) for item in value.items])
        if isinstance(value, ScalarValue) and id(value.array) in places:
            return places[id(value.array)]
        if isinstance(value, ArrayValue):
            if value.memory is None and id(value) in places:
                return places[id(value)]
            tree, choice = self.trees.get(name), value.memory.choice if value.memory is not None else None
            is_marked = choice is not None and isinstance(tree, Leaf) and choice.root() is tree.start
            if value.memory is not None and not (is_marked and id(value.memory) in places):
                value.memory.ask_identity()
            if value.memory is not None and (id(value.memory) in self.known or value.memory in self.memories):
                if self._varies(value.path):
                    raise CannotCapture("loop-mismatch", f"`{name}` is another view in each iteration")
                return ViewLeaf(value.memory, value.path)
            if id(value.memory) in places and not value.path:
                return places[id(value.memory)]
        raise CannotCapture("loop-mismatch", f"`{name}` is {value.describe()} where the loop is left")

    def _varies(self, part: Any) -> bool:
        if isinstance(part, tuple):
            return any(map(self._varies, part))
        if isinstance(part, slice):
            return self._varies((part.start, part.stop, part.step))
        return isinstance(part, SymInt) and str(self.counter) in part.counters()

    def late(self, name: str, value: Value) -> Any:
        """The value after the loop of a variable that each iteration binds before it reads it."""
        value = settled(self.tx, value)
        if isinstance(value, Constant | FloatValue):
            return value
        if isinstance(value, IntegerValue):
            return integer(value.size.at(str(self.counter), self.last))
        if isinstance(value, SequenceValue) and value.cls is tuple:
            return TupleNode(tuple, [self.late(f"{name}[{i}]", item) for i, item in enumerate(value.items)])
        if isinstance(value, ArrayValue):
            kind: Any = "scalar" if value.traced.scalar else "array"
            if id(value) in self.known or value.source is not None:
                return value
            if id(value) in self.homes:
                return self.homes[id(value)]
            if value.memory is not None and id(value.memory) in self.known:
                return ViewLeaf(value.memory, self._in_last_iteration(value.path))
        elif isinstance(value, ScalarValue):
            kind = value.cls
        else:
            raise CannotCapture("loop-mismatch", f"`{name}` is {value.describe()} after the loop")
        node = self.node(name, kind, value)
        leaf = self.named_leaf(name, kind, node)
        leaf.result = node
        if kind == "array":
            self._take(name, leaf, value)
        return leaf

    def _in_last_iteration(self, part: Any) -> Any:
        """A view op as it is in the last iteration."""
        return replace_sizes(part, lambda size: size.at(str(self.counter), self.last))


__all__ = ["Carried"]
