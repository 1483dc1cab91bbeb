"""Loops that stay loops: ``for`` over a range becomes one ``fori_loop`` node, its body followed once.

Enters: a frame at a loop's FOR_ITER. Leaves: the node in the graph, and the frame as the last round leaves it. Exists
so that a thousand time steps compile as fast as ten.

The body is followed in a graph of its own, with a symbol for the number of the round, which gives the loop variable and
every int that grows by the same amount each round. What one round hands to the next is carried: arrays that are
written, and variables that are bound anew. A round must hand on what it was given, in kind, dtype and shape; where it
does not, a first round or two are done apart (``x = None`` before the loop, an int that becomes a float). Where two
arrays change places (``u, v = v, u``), as many rounds as bring them back are one round of the node, and every array
keeps its place.

What has to be carried is seen only when the body has been followed. So a loop is looked at once, and then capture
starts anew with what was learned: nothing that was done to captured values has to be taken back. A body that cannot be
captured, or that does not settle, is noted in the same way, and the loop is then unrolled as far as that goes.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from tcompile.bytecode import NotResumable
from tcompile.bytecode.analysis import Analysis, analyse
from tcompile.capture.breaks import CATALOGUE
from tcompile.capture.instructions.registry import Returned, Yielded
from tcompile.capture.plans import Plan, Restart
from tcompile.capture.special.regions import Region, as_node, control_node, lift, open_region, state_of
from tcompile.capture.values.array import ArrayValue
from tcompile.capture.values.base import Value, settled
from tcompile.capture.values.constant import Constant, FloatValue, IntegerValue, integer
from tcompile.capture.values.container import RangeIterator, SequenceValue
from tcompile.capture.values.memory import Memory
from tcompile.capture.values.scalar import ScalarValue
from tcompile.frontends.base import CannotCapture, Traced
from tcompile.graph import Graph, Node, ScalarType, SymInt, TensorType
from tcompile.graph.sizes import Size, VariesInLoop, same
from tcompile.graph.verify import fits
from tcompile.observe.events import UserLine

if TYPE_CHECKING:
    from tcompile.capture.interpreter import Frame

FEW_ROUNDS = 4  # as many are always unrolled
FEW_OPERATIONS = 64  # a loop of a known number of rounds that comes to no more is unrolled
_MOST_APART = 2  # rounds that are done before the node
_MOST_AT_ONCE = 6  # rounds that are one round of the node, for arrays that change places
_MOST_TRIES = 8  # of one loop
_MOST_RESTARTS = 64  # of one capture
_COLLECTS = ("LIST_APPEND", "SET_ADD", "MAP_ADD")


class _Unsettled(Exception):
    """A round does not hand on what it was given."""


def _analysis(f: Frame) -> Analysis | None:
    """What is read later, at each instruction; None for code that is not understood."""
    known = f.decoded.analysed
    if not known:
        try:
            known.append(analyse(f.code))
        except NotResumable:
            known.append(None)
    return known[0]


def enter(f: Frame, items: RangeIterator) -> None:
    """Makes a node of the loop whose FOR_ITER the frame is at; the iterator then has nothing left, or the odd rounds.

    Where the loop is to be unrolled nothing is done. Raises Restart where capture has to start anew.
    """
    if items.decided:
        return
    tx = f.tx
    key = (*((id(frame.code), frame.at) for frame in tx.frames), len(tx.open_loops))
    plan = tx.loops.plans.get(key)
    left = items.left
    if plan is None:
        few = isinstance(left, int) and left <= FEW_ROUNDS
        if few or tx.loops.restarts >= _MOST_RESTARTS or _collects(f) or _analysis(f) is None:
            items.decided = True
            return
        plan = tx.loops.plans[key] = Plan(_first_line(f.user_line()), str(left))
    plan.met = True
    items.plan = plan
    if plan.outcome == "unrolled":
        items.decided = True
        return
    if items.taken < plan.apart or not left > plan.at_once - 1:
        return
    items.decided = True
    loop = _Loop(f, items, plan, left)
    try:
        loop.run()
    except (CannotCapture, VariesInLoop, Returned, Yielded, _Unsettled) as error:
        loop.refuse(error)
    if plan.outcome != "node":
        plan.outcome = "node"


def _first_line(where: UserLine) -> UserLine:
    """The line of the ``for`` itself."""
    return dataclasses.replace(where, end_line=0, end_column=None)


def _collects(f: Frame) -> bool:
    """Whether the loop is that of a comprehension or a generator expression."""
    header = f.at - 1
    instructions, positions = f.decoded.instructions, f.decoded.positions
    if f.code.co_flags & 0x20:
        return True
    end = positions[instructions[header].argval]
    last = instructions[end - 2] if end >= 2 else None
    return last is not None and last.opname in _COLLECTS and last.arg == 2 and end - 2 > header


@dataclass(eq=False)
class _Leaf:
    """One carried value: an ``array``, a ``scalar`` object of the library, or a Python number that the graph computes.

    ``given`` is the node outside that the first round starts with, ``inside`` the region's input, ``result`` the value
    after the last round.
    """

    kind: Any
    given: Node
    value: Value | None
    inside: Node | None = None
    result: Node | None = None
    start: Value | None = None  # what a round is given
    end: Value | None = None  # the array object that a round hands on


@dataclass(eq=False)
class _Many:
    """A tuple of carried values."""

    cls: type
    parts: list[Any]


@dataclass(eq=False)
class _View:
    """An array that shows a part of what is there before the loop."""

    memory: Memory
    path: Any


class _Loop:
    """One loop on its way to become a node."""

    def __init__(self, f: Frame, items: RangeIterator, plan: Plan, left: Size) -> None:
        self.f, self.items, self.plan = f, items, plan
        self.tx = f.tx
        self.left = left
        self.header = f.at - 1
        self.taker: _Leaf | None = None
        self.homes: dict[int, _Leaf] = {}  # by the identity of an array at the end of a round, where it is carried
        self.starts: dict[int, _Leaf] = {}  # the same at its start
        end = f.decoded.positions[f.decoded.instructions[self.header].argval]
        self.bound = _bound(f.decoded.instructions[self.header : end])
        found = _analysis(f)
        assert found is not None
        index = found.stream.index[f.decoded.starts[self.header]]
        self.live_after = self._names(found, found.live[found.goes[index]])
        self.live_before = self._names(found, found.live[index + 1]) | self.live_after
        self.needed = self._names(found, found.live[index + 1])

    @staticmethod
    def _names(found: Analysis, bits: int) -> set[str]:
        return {name for name, bit in found.fast_bit.items() if bits >> bit & 1}

    # -- what is learned -----------------------------------------------------------------------------------------------
    def refuse(self, error: Exception) -> None:
        """The loop is unrolled, once another round done apart does not help either."""
        plan = self.plan
        if isinstance(error, _Unsettled | VariesInLoop) and plan.apart < _MOST_APART and plan.tries < _MOST_TRIES:
            self.again(apart=plan.apart + 1, steps={}, looked=False, carried=set())
        if isinstance(error, _Left | Returned | Yielded):
            reason = "it is left from inside"
        elif isinstance(error, CannotCapture):
            known = CATALOGUE.get(error.reason)
            reason = error.detail.rstrip(".")
            if known is not None and error.reason != "loop-mismatch":
                shown = known.headline[:1].lower() + known.headline[1:]
                reason = f"{shown} ({reason})" if reason else shown
        elif isinstance(error, VariesInLoop):
            reason = "which way its body goes depends on the number of the round"
        else:
            reason = str(error)
        self.again(outcome="unrolled", reason=reason)

    def again(self, **learned: Any) -> None:
        """Starts capture anew with what was learned."""
        for name, value in learned.items():
            setattr(self.plan, name, value)
        self.plan.tries += 1
        if self.plan.tries > _MOST_TRIES:
            self.plan.outcome, self.plan.reason = "unrolled", self.plan.reason or "its values do not settle"
        self.tx.loops.restarts += 1
        raise Restart

    # -- the node ------------------------------------------------------------------------------------------------------
    def run(self) -> None:
        """Follows the body, and adds the node."""
        f, tx, plan = self.f, self.tx, self.plan
        rounds, env = self._rounds(), tx.graph.env
        counter = env.counter(rounds - 1)
        plan.steps = {name: env.adopt(amount) for name, amount in plan.steps.items()}  # learned by another attempt
        self.counter, self.last = str(counter), rounds - 1
        location = tx.builder.location
        for name in self.bound & self.needed & f.locals.keys():
            f.locals[name] = settled(tx, f.locals[name])
        before = dict(f.locals)
        memories = self.memories = self._memories()
        known = state_of(tx)
        self.known = known[0].keys()
        policy, writes = tx.break_is_error, tx.outside_mutations - tx.outside_writes
        graph = Graph(f"loop_{plan.where.line}", tx.graph.env)
        graph.input("round", ScalarType("int", counter))
        trees = self._carried(before, counter)
        leaves = self._memory_leaves(memories)
        outside = {memory: (memory.root, memory.node, memory.graph) for memory in memories}
        with open_region(tx, graph):
            for memory, leaf in zip(memories, leaves, strict=True):
                leaf.inside = graph.input(memory.root.name, leaf.given.tensor)
                memory.root = memory.node = leaf.inside
                memory.graph = graph
                memory.version += 1
                tx.show_memory(leaf.inside, memory)
            for name, tree in trees.items():
                f.locals[name] = self._inside(tree, graph, leaves)
            self.leaves = leaves
            for name, amount in plan.steps.items():
                if name in before:
                    f.locals[name] = integer(self._int(before[name]) + amount * counter)
            given = dict(f.locals)
            first_unwritten = len(tx.unplanned)
            for number in range(plan.at_once):
                self._round(counter * plan.at_once + number)
            if not plan.looked or len(tx.unplanned) > first_unwritten:
                self._look(before, given, tx.unplanned[first_unwritten:])
            results = self._results(before, given, trees, leaves, graph)
            outputs = [*(memory.node for memory in memories), *map(self._output, leaves[len(memories) :])]
            for memory, leaf in zip(memories, leaves, strict=False):
                if not fits(memory.node.tensor, leaf.given.tensor):
                    raise _Unsettled(f"an array of type {leaf.given.type} becomes one of type {memory.node.type}")
        self._check_state(known, memories, policy, writes)
        few = isinstance(rounds, int) and rounds * len(graph.nodes) <= FEW_OPERATIONS
        if few and not any(node.regions for node in graph.nodes):
            self.again(outcome="unrolled", reason=f"{rounds} rounds of {len(graph.nodes)} operations are few")
        self._add_node(graph, rounds, leaves, outputs, location)
        for memory, leaf, output in zip(memories, leaves, outputs, strict=False):
            memory.root, node, memory.graph = outside[memory]
            memory.version += 1
            memory.node = node if output is leaf.inside else self._result(leaf)
            tx.show_memory(memory.node, memory)
        self._bind(before, results, trees)
        self.items.skip(rounds * plan.at_once)

    def _rounds(self) -> Size:
        """How many rounds the node has; the odd ones that arrays changing places leave are unrolled behind it."""
        at_once = self.plan.at_once
        if at_once == 1:
            return self.left
        odd = self.left % at_once
        return (self.left - (odd if isinstance(odd, int) else odd.specialise())) // at_once

    def _round(self, number: Size) -> None:
        """Follows the body once."""
        f, tx = self.f, self.tx
        depth, rounds = len(f.stack), f.first_round
        f.first_round = {}
        f.push(integer(self.items.number(number)))
        f.at = self.header + 1
        instructions, handlers, limit = f.decoded.instructions, f.decoded.handlers, tx.options.max_instructions
        while f.at != self.header:
            at = f.at
            f.at = at + 1
            tx.instructions += 1
            if tx.instructions > limit:
                raise CannotCapture("too-long", f"More than {limit} instructions were followed.")
            f.refuse_step(instructions[at])
            run = handlers[at]
            if run is None:
                raise CannotCapture("unsupported-instruction", instructions[at].opname)
            tx.builder.location = f.location(at)
            run(f, instructions[at])
            if len(f.stack) < depth:
                raise _Left
        f.at = self.header + 1
        f.first_round = rounds

    # -- what is carried -----------------------------------------------------------------------------------------------
    def _memories(self) -> list[Memory]:
        """The memories that were seen to be written."""
        found: dict[Memory, None] = {}
        tx = self.tx
        for place, value in self.plan.written.items():
            kind, name = place
            if kind == "source":
                array: Value | None = tx.wrap(value, name)
            elif kind == "local":
                array = self.f.locals.get(name)
                array = settled(tx, array) if array is not None else None
            else:
                memory = tx.memory_named(name)
                if memory is not None:
                    found[memory] = None
                continue
            if isinstance(array, ArrayValue) and array.memory is not None:
                found[array.memory] = None
        return list(found)

    def _memory_leaves(self, memories: Sequence[Memory]) -> list[_Leaf]:
        leaves = []
        for memory in memories:
            if memory.kept:
                raise CannotCapture("writes-to-array", f"Writing to an array {memory.kept}")
            self.tx.claim(memory)
            leaves.append(_Leaf("memory", memory.node, None))
        return leaves

    def _carried(self, before: dict[str, Value], counter: SymInt) -> dict[str, Any]:
        """What the carried variables hold, as trees; two names of one array share a leaf."""
        trees: dict[str, Any] = {}
        for name in sorted(self.plan.carried):
            value = before.get(name)
            if value is None:
                if name in self.needed:
                    raise _Unsettled(f"`{name}` has no value before the loop")
                continue
            if name in self.plan.steps:
                continue
            trees[name] = self._tree(name, value)
        return trees

    def _tree(self, name: str, value: Value) -> Any:
        tx = self.tx
        value = settled(tx, value)
        if isinstance(value, ArrayValue) and value.traced.scalar:
            return _Leaf("scalar", value.traced.node, value)
        if isinstance(value, ArrayValue) and value.memory in self.memories:
            raise _Unsettled(f"`{name}` shows an array that the first round writes to")
        if isinstance(value, ArrayValue):
            return self.starts.setdefault(id(value), _Leaf("array", value.traced.node, value))
        if isinstance(value, ScalarValue):
            return _Leaf(value.cls, value.array.traced.node, value)
        if isinstance(value, FloatValue) or (isinstance(value, Constant) and type(value.value) in (float, bool)):
            return _Leaf(value.python_type, as_node(tx, value), value)
        if isinstance(value, Constant) and isinstance(value.value, np.generic):
            return _Leaf("scalar", as_node(tx, value), value)
        if isinstance(value, SequenceValue) and value.cls is tuple:
            return _Many(tuple, [self._tree(name, item) for item in value.items])
        raise _Unsettled(f"`{name}` is {value.describe()} before the loop and something else after a round")

    def _inside(self, tree: Any, graph: Graph, leaves: list[_Leaf]) -> Value:
        """The value that a round is given."""
        if isinstance(tree, _Many):
            return SequenceValue([self._inside(part, graph, leaves) for part in tree.parts], tree.cls)
        if tree.start is None:
            tree.inside = graph.input(tree.given.name, tree.given.tensor)
            leaves.append(tree)
            tree.start = self._value(tree.kind, tree.inside, "that a loop carries,")
        found: Value = tree.start
        return found

    def _value(self, kind: Any, node: Node, kept: str = "") -> Value:
        tx = self.tx
        if kind in ("array", "scalar"):
            return tx.new_array(Traced(node, kind == "scalar"), tx.frontends[0], kept=kept)
        return ScalarValue(ArrayValue(Traced(node, scalar=True), tx.frontends[0]), kind)

    @staticmethod
    def _int(value: Value) -> Any:
        """The int behind a value; _Unsettled where it is something else."""
        if isinstance(value, IntegerValue):
            return value.size
        if isinstance(value, Constant) and type(value.value) is int:
            return value.value
        raise _Unsettled(f"{value.describe()} becomes an int")

    # -- what a look at one round tells --------------------------------------------------------------------------------
    def _look(self, before: dict[str, Value], given: dict[str, Value], written: Iterable[Memory]) -> None:
        """Notes what has to be carried, and starts anew."""
        f, plan = self.f, self.plan
        places = dict(plan.written)
        for memory in written:
            places.update([self._place_of(memory, before)])
        changed = {n for n in self.needed if f.locals.get(n) is not given.get(n)}
        at_once = self._exchange(changed, given) if plan.at_once == 1 else 1
        if at_once > 1:
            self.again(at_once=at_once, written=places)
        steps: dict[str, Size] = {}
        for name in changed:
            start, end = given.get(name), f.locals.get(name)
            if start is None or end is None or not all(_is_int(value) for value in (start, end)):
                continue
            amount = self._int(end) - self._int(start)
            if isinstance(amount, SymInt) and self.counter in amount.counters():
                raise _Unsettled(f"`{name}` does not grow by the same amount in each round")
            steps[name] = amount
        self.again(looked=True, carried=plan.carried | changed, steps=steps, written=places)

    def _place_of(self, memory: Memory, before: dict[str, Value]) -> tuple[Any, Any]:
        """How an array that the body writes is found before the loop."""
        if memory.owner is not None and memory.owner.source is not None:
            source = memory.owner.source
            return ("source", source), self.tx.objects[source]
        for name, value in before.items():
            if isinstance(value, ArrayValue) and value.memory is memory:
                return ("local", name), None
        return ("root", memory.root.name), None

    def _exchange(self, changed: set[str], given: dict[str, Value]) -> int:
        """After how many rounds arrays that change places are back; 1 where none do."""
        moves: dict[str, str] = {}
        homes = {id(value): name for name, value in given.items() if isinstance(value, ArrayValue)}
        for name in changed:
            value = self.f.locals.get(name)
            if isinstance(value, ArrayValue) and id(value) in homes and not value.traced.scalar:
                moves[name] = homes[id(value)]
        for start in moves:
            at, count = moves[start], 1
            while at != start and at in moves and count <= len(moves):
                at, count = moves[at], count + 1
            if at == start and 1 < count <= _MOST_AT_ONCE:
                return count
        return 1

    # -- what a round hands on -----------------------------------------------------------------------------------------
    def _results(
        self, before: dict[str, Value], given: dict[str, Value], trees: dict[str, Any], leaves: list[_Leaf],
        graph: Graph,
    ) -> dict[str, Any]:  # fmt: skip
        """What each variable holds behind the loop, as a value or a tree of carried ones."""
        f, tx, plan = self.f, self.tx, self.plan
        results: dict[str, Any] = {}
        late: dict[int, Any] = {}
        names = sorted(given.keys() | f.locals.keys(), key=lambda name: (name not in trees, name))
        for name in names:  # what is carried first: other names may hold the same arrays
            start, end = given.get(name), f.locals.get(name)
            if name in trees:
                if end is None:
                    raise _Unsettled(f"`{name}` has no value after a round")
                self._hand_on(name, trees[name], end)
                continue
            if start is end or (start is not None and end is not None and settled(tx, start) is settled(tx, end)):
                continue
            if name not in self.live_before:
                results[name] = None  # nobody reads it any more
                continue
            if end is None:
                raise _Unsettled(f"`{name}` has no value after a round")
            if name in plan.steps:
                amount = self._int(end) - self._int(start) if start is not None else None
                if amount is None or not same(amount, plan.steps[name]):
                    raise _Unsettled(f"`{name}` does not grow by the same amount in each round")
                continue
            if name in self.needed:
                self.again(carried=plan.carried | {name})
            if id(end) not in late:
                late[id(end)] = self._late(name, end, leaves, graph)
            results[name] = late[id(end)]
        return results

    def _hand_on(self, name: str, tree: Any, value: Value) -> None:
        """Notes what the next round gets in the place of ``tree``."""
        value = settled(self.tx, value)
        if isinstance(tree, _Many):
            if not isinstance(value, SequenceValue) or value.cls is not tree.cls or len(value.items) != len(tree.parts):
                raise _Unsettled(f"`{name}` becomes {value.describe()} after a round")
            for part, item in zip(tree.parts, value.items, strict=True):
                self._hand_on(name, part, item)
            return
        if tree.kind == "array":
            if self.homes.setdefault(id(value), tree) is not tree or tree.end not in (None, value):
                raise _Unsettled(f"`{name}` and another variable are one object in some rounds only")
            tree.end = value
        self.taker = tree
        found = self._node(name, tree.kind, value)
        if not fits(found.tensor, tree.given.tensor):
            raise _Unsettled(f"`{name}` is {tree.given.type} before a round and {found.type} after it")
        tree.result = found

    def _node(self, name: str, kind: Any, value: Value) -> Node:
        """The node of a value of this kind, which is new in each round or was handed to it."""
        tx = self.tx
        other = _Unsettled(f"`{name}` is {value.describe()} after a round")
        if kind == "array":
            if not isinstance(value, ArrayValue) or value.traced.scalar:
                raise other
            return self._own(name, value)
        if kind == "scalar":
            if isinstance(value, ArrayValue) and value.traced.scalar:
                return value.traced.node
            if isinstance(value, Constant) and isinstance(value.value, np.generic):
                return as_node(tx, value)
            raise other
        if value.python_type is not kind:
            raise other
        return value.array.traced.node if isinstance(value, ScalarValue) else as_node(tx, value)

    def _own(self, name: str, value: ArrayValue) -> Node:
        """The node of an array that this round has made, of which nothing else shows a part."""
        memory, node = value.memory, value.traced.node
        carried = next((leaf for leaf in self.leaves if leaf.inside is node), None)
        if carried is not None and carried is not self.taker and not self._is_free(carried.value):
            raise _Unsettled(f"`{name}` becomes an array that something else may hold")
        found = memory is None or memory in self.memories or memory.graph is not self.tx.builder.graph
        if memory is None or found or memory.owner is not None or value.path:
            raise _Unsettled(f"`{name}` is an array or a view of one that each round finds, not one that it makes")
        if memory.kept and node.op != "input":
            raise CannotCapture("loop-mismatch", f"`{name}` is an array {memory.kept}")
        return node

    def _is_free(self, value: Value | None) -> bool:
        """Whether an array that the first round is given belongs to nobody else."""
        if not isinstance(value, ArrayValue) or value.memory is None:
            return value is None
        return value.memory.owner is None and not value.path and value.memory not in self.memories

    def _late(self, name: str, value: Value, leaves: list[_Leaf], graph: Graph) -> Any:
        """What a variable holds behind the loop that each round binds anew before it reads it."""
        tx = self.tx
        value = settled(tx, value)
        if isinstance(value, Constant):
            return value
        if isinstance(value, IntegerValue):
            return integer(value.size.at(self.counter, self.last))
        if isinstance(value, SequenceValue) and value.cls is tuple:
            return _Many(tuple, [self._late(name, item, leaves, graph) for item in value.items])
        if isinstance(value, FloatValue):
            return value
        if isinstance(value, ArrayValue):
            kind: Any = "scalar" if value.traced.scalar else "array"
            if id(value) in self.known:
                return value
            if id(value) in self.homes:
                return self.homes[id(value)]
            if value.memory is not None and id(value.memory) in self.known:
                return _View(value.memory, self._in_last_round(value.path))
        elif isinstance(value, ScalarValue):
            kind = value.cls
        else:
            raise CannotCapture("loop-mismatch", f"`{name}` is {value.describe()} behind the loop")
        node = self._node(name, kind, value)
        type = node.tensor
        sizes = [size for size in type.shape if isinstance(size, SymInt)]
        if not type.c_contiguous or any(self.counter in size.counters() for size in sizes):
            raise CannotCapture("loop-mismatch", f"`{name}` is of type {type} behind the loop")
        leaf = _Leaf(kind, self._nothing(type), None, graph.input(name, type), node)
        leaves.append(leaf)
        if kind == "array":
            self.homes[id(value)] = leaf
        return leaf

    def _in_last_round(self, part: Any) -> Any:
        """A movement as it is in the last round."""
        if isinstance(part, SymInt):
            return part.at(self.counter, self.last)
        if isinstance(part, tuple):
            return tuple(map(self._in_last_round, part))
        if isinstance(part, slice):
            return slice(*map(self._in_last_round, (part.start, part.stop, part.step)))
        return part

    def _nothing(self, type: TensorType) -> Node:
        """An array outside that no round reads."""
        builder = self.tx.builder
        inside, builder.graph = builder.graph, self.outer
        try:
            return builder.op("full", shape=type.shape, fill_value=0, dtype=type.dtype.name)
        finally:
            builder.graph = inside

    @staticmethod
    def _output(leaf: _Leaf) -> Node:
        """The region's output for a carried value."""
        found = leaf.result or leaf.inside  # as it was, where no round binds it anew
        assert found is not None
        return found

    # -- the graph around ----------------------------------------------------------------------------------------------
    @property
    def outer(self) -> Graph:
        """The graph that the node goes to."""
        return self.tx.open_loops[-1][0]

    def _check_state(self, known: Any, memories: Sequence[Memory], policy: bool, writes: int) -> None:
        """Refuses a body that changes anything but arrays and its own variables."""
        tx = self.tx
        now = state_of(tx)
        planned = {id(memory) for memory in memories}
        changes = any(found != now[0].get(key, found) for key, found in known[0].items() if key not in planned)
        if changes or known[1][:-1] != now[1][:-1] or tx.outside_mutations - tx.outside_writes != writes:
            raise CannotCapture("loop-mismatch", "a round changes an object that is no array")
        if tx.break_is_error != policy:
            raise CannotCapture("loop-mismatch", "a round changes what breaks mean")

    def _add_node(
        self, graph: Graph, rounds: Size, leaves: Sequence[_Leaf], outputs: list[Node], location: Any
    ) -> None:
        tx = self.tx
        graph.outputs, graph.scratch = outputs, True
        written = [leaf.kind == "memory" and node.op == "assign" for leaf, node in zip(leaves, outputs, strict=True)]
        graph.updates = {number: number + 1 for number, whether in enumerate(written) if whether}
        known = {*graph.inputs, *graph.nodes}
        reads = [*(o for node in graph.nodes for o in node.inputs), *outputs]
        region = Region(graph, Constant(None), (), outer=list(dict.fromkeys(n for n in reads if n not in known)))
        outer, (passed_on,) = lift([region])
        graph.outputs = [*graph.outputs, *passed_on]
        for leaf in leaves:
            leaf.result = None
        if not leaves and not graph.nodes:
            return
        tx.builder.location = location
        given = [*(leaf.given for leaf in leaves), *outer]
        types: list[Any] = [node.type for node in given]
        made = control_node(tx, "fori_loop", [0, rounds, *given], types, [graph])
        for leaf, node in zip(leaves, made, strict=False):
            leaf.result = node

    @staticmethod
    def _result(leaf: _Leaf) -> Node:
        assert leaf.result is not None
        return leaf.result

    def _bind(self, before: dict[str, Value], results: dict[str, Any], trees: dict[str, Any]) -> None:
        """Gives the variables what they hold behind the loop."""
        f, plan = self.f, self.plan
        after: dict[int, Value] = {}

        def value(tree: Any) -> Value:
            if isinstance(tree, Value):
                return tree
            if id(tree) not in after:
                if isinstance(tree, _View):
                    after[id(tree)] = self._value("array", tree.memory.seen_through(tree.path)[0])
                elif isinstance(tree, _Many):
                    after[id(tree)] = SequenceValue([value(part) for part in tree.parts], tree.cls)
                elif tree.value is not None and self._unchanged(tree):
                    after[id(tree)] = tree.value
                else:
                    after[id(tree)] = self._value(tree.kind, self._result(tree))
            return after[id(tree)]

        for name, tree in {**trees, **results}.items():
            f.assigned.add(name)
            if tree is None:
                f.locals.pop(name, None)
            else:
                f.locals[name] = value(tree)
        for name, amount in plan.steps.items():
            if name in before:
                f.locals[name] = integer(self._int(before[name]) + amount * (self.last + 1))

    def _unchanged(self, leaf: _Leaf) -> bool:
        """Whether every round hands on what it was given."""
        node = self._result(leaf)
        region = node.inputs[0].regions[0]
        return region.outputs[node.attrs["index"]] is region.inputs[node.attrs["index"] + 1]


class _Left(CannotCapture):
    """The body jumps out of the loop."""

    def __init__(self) -> None:
        super().__init__("loop-mismatch", "it is left by `break`")


def _bound(instructions: Iterable[Any]) -> set[str]:
    """The local variables that some instructions bind."""
    found: set[str] = set()
    for i in instructions:
        if i.opname in ("STORE_FAST", "STORE_FAST_STORE_FAST", "STORE_FAST_LOAD_FAST"):
            found.update(i.argval if isinstance(i.argval, tuple) else (i.argval,))
    return found


def _is_int(value: Value) -> bool:
    return isinstance(value, IntegerValue) or (isinstance(value, Constant) and type(value.value) is int)


__all__ = ["enter"]
