"""Derivatives of loops that a test may end, and of branches.

Input: an ``exit_loop`` node, and the cotangents of what it carries where it is left.
Output: the cotangents of what it carried at its start.
Why: a fixed-point iteration ends when it has converged. Its derivative repeats as many iterations backwards, in the
same code for all trip counts.

An iteration consists of parts, and ends after one of them. The first parts of an iteration, as one body, are a
*prefix*: the last iteration runs the prefix that leads to the exit that was taken, all others run all parts (or, with
``continue``, the prefix that a stack tells). The forward loop stores rows as a counted loop does. Its results say how
many iterations there were, and the exit. So the derivative first reverses the last, partial iteration: one branch for
each exit, of which at most one is taken. Then a second loop, which a test ends too, goes from the last complete
iteration to the first.

Which row it reads is known only when the graph runs. Where a slice, or an inner loop, depends on the number of the
iteration, that has to be an induction variable: the second loop then begins at the last row that there is room for, and
passes over rows that were not written.

``config.autodiff_memory`` bounds the rows; there is room for 16 at least, and for 65,536 at most. A call that needs
more runs another graph, in which such a loop is split: an outer loop over segments stores what each of them begins
with, and its derivative recomputes a segment with its rows.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TypeAlias

from tcompile.config import config
from tcompile.errors import DerivativeError
from tcompile.graph import ops
from tcompile.graph.dtypes import INT64
from tcompile.graph.ir import Graph, Node, Operand, Type
from tcompile.graph.ops.control import FOREVER, is_branch
from tcompile.graph.ops.writing import step_of
from tcompile.graph.sizes import Size, SymInt, hint, symbols_in
from tcompile.graph.types import ScalarType, TensorType
from tcompile.records import dataclass
from tcompile.transforms.autodiff.iteration import (
    BackwardIteration,
    Moved,
    MovedToRow,
    Row,
    RowAccess,
    active_values,
    at_iteration,
    cotangent_type,
    type_of,
)
from tcompile.transforms.autodiff.residuals import stored_bytes
from tcompile.transforms.autodiff.reverse import LOOPS, Walk
from tcompile.transforms.emit import Emit

_NUMBER = TensorType(INT64, ())
_FEWEST = 16  # rows that there is room for, whatever they take
_MOST, _USUAL, _OFTEN = 1 << 16, 1 << 24, 1 << 12  # limits on rows, and on bytes where that is more than so many rows
_MOST_STARTS = 1 << 31  # bytes that are reserved for what segments begin with; few are written
_MANY = 1000  # iterations: of more, rows of products and library calls may take too much memory
_MOST_PASSED = 1 << 20  # rows that a backward loop passes over in some milliseconds
_Key: TypeAlias = tuple[int, Node]  # a stack, by the part and the node whose values it holds


def exit_loop(walk: Walk, node: Node) -> None:
    """The rule of a loop that a test may end: adds the backward loop."""
    start, stop, *carried = node.operands
    counter = type_of(node.regions[0].inputs[0])
    if start != 0 or not isinstance(stop, int | SymInt) or not isinstance(counter, ScalarType):
        raise DerivativeError(walk.why(node, "a loop whose trip count the graph computes has no derivative rule"))
    assert isinstance(counter.symbol, SymInt)
    first = [i for i, o in enumerate(carried) if isinstance(o, Node) and o in walk.active]
    prefixes = {number: _prefix(node, number) for number in range(1, len(node.regions) + 1)}
    active = active_values([prefix.body for prefix in prefixes.values()], first)
    if any(i in walk.results[node] for i in active):
        is_backward = node.silent and not node.recomputed  # the loop of a derivative that is differentiated again
        memory = _MOST_STARTS if walk.splits_exit_loops and is_backward else 0
        reversal = _Reversal(walk, node, str(counter.symbol), prefixes, active, memory)
        if reversal.is_cut and walk.splits_exit_loops and not is_backward:
            reversal = _of_segments(walk, reversal, stop)
        reversal.run()


def _of_segments(walk: Walk, whole: _Reversal, stop: Size) -> _Reversal:
    """Splits a loop into segments of as many iterations as there is room for; the reversal of the outer loop."""
    node, graph, size = whole.node, walk.e.graph, whole.count
    assert type(size) is int
    env, counter = node.regions[0].env, whole.counter
    many = (stop if isinstance(stop, int) else FOREVER) // size + 1
    segment, within = env.counter(many - 1, ("segment", counter)), env.counter(size - 1, ("within", counter))
    parts = _segment(walk, whole, stop, size, segment, within)
    place, before = graph.nodes.index(node), len(graph.nodes)
    e = Emit(graph, walk.e.library, silent=False)
    e.location = node.location
    zero = e(ops.FULL, shape=(), fill_value=0, dtype=INT64.name)
    types = [type_of(old) for old in parts[0].inputs[1:]]
    made = _exit_loop(e, node, many, [*whole.carried, zero, zero], types, parts, (True,), (None, 0))[0].inputs[0]
    for get in graph.nodes[:before]:
        if get.op is ops.GET and get.inputs[0] is node:
            get.operands = (made,)
    graph.nodes[place:] = [*graph.nodes[before:], *graph.nodes[place + 1 : before]]
    walk.results[made] = walk.results.pop(node)
    prefixes = {number: _prefix(made, number) for number in (1, 2)}
    return _Reversal(walk, made, str(segment), prefixes, whole.active, _MOST_STARTS)


def _segment(
    walk: Walk, whole: _Reversal, stop: Size, size: int, segment: SymInt, within: SymInt
) -> tuple[Graph, Graph]:
    """The parts of an outer iteration: a loop over a segment, after which the outer loop may be left, and nothing.

    They carry what the whole loop carries, and its last two results: how many iterations are done, and the exit. The
    inner loop has one exit more, the first: where the trip count of the whole loop is reached.
    """
    node, env, library = whole.node, whole.node.regions[0].env, walk.e.library
    name, counter, carried = node.regions[0].name, ScalarType("int", segment), node.regions[0].inputs[1:]
    outer, nothing = (Graph(f"{name}_{part}", env, scratch=True) for part in ("segment", "next"))
    for part in (outer, nothing):
        part.input("iteration", counter)
        for old in carried:
            part.input(old.name, type_of(old))
        part.input("done", _NUMBER)
        part.input("exit", _NUMBER)
    nothing.outputs = nothing.inputs[1:]

    number = segment * size + within
    test = Graph(f"{name}_stop", env, scratch=True)
    test.input("iteration", ScalarType("int", within))
    state = [test.input(old.name, type_of(old)) for old in carried]
    inside = Emit(test, library)
    reached = inside(ops.FULL, shape=(), fill_value=number, dtype=INT64.name)
    test.outputs = [*state, inside(ops.GREATER_EQUAL, reached, stop)]
    parts = [test, *(at_iteration(part, whole.counter, within, number) for part in node.regions)]

    e, given = Emit(outer, library, silent=False), outer.inputs[1:-2]
    leaves, least = (True, *node.attrs["leaves"]), (0, *node.attrs["least"])
    *ends, done, way = _exit_loop(e, node, size, given, [type_of(old) for old in carried], parts, leaves, least)
    ends = [begin if i in whole.fixed else end for i, (begin, end) in enumerate(zip(given, ends, strict=True))]
    exit_of_whole = e(ops.MAXIMUM, e.subtract(way, 1), 0)
    outer.outputs = [*ends, e.add(done, segment * size), exit_of_whole, e(ops.GREATER, way, 0)]
    return outer, nothing


# -- the forward iteration ---------------------------------------------------------------------------------------------
@dataclass
class _Prefix:
    """The first parts of an iteration as one body, and for each of its nodes the part and the node that it copies."""

    body: Graph
    source: dict[Node, _Key]


def _prefix(node: Node, parts: int) -> _Prefix:
    first = node.regions[0]
    body = Graph(first.name, first.env, scratch=True)
    counter, *carried = (body.input(old.name, type_of(old), old.location) for old in first.inputs)
    source = {new: (0, old) for new, old in zip(carried, first.inputs[1:], strict=True)}
    state = list(carried)
    for number, part in enumerate(node.regions[:parts]):
        given = dict(zip(part.inputs, [counter, *state], strict=True))
        new = Moved({}).copied(part, body, given)
        source.update((new[old], (number, old)) for old in part.nodes)
        state = [new[output] for output in part.outputs[: len(carried)]]
    body.outputs = state
    return _Prefix(body, source)


# -- the backward loop -------------------------------------------------------------------------------------------------
@dataclass
class _Place:
    """A graph in which prefixes are reversed, and its nodes for what they read.

    Attributes:
        e: adds nodes to the graph.
        row: the number of the row, unless it is an induction variable.
        stacks: the stacks, by what they hold.
        stays: the carried values that stay, by their positions.
    """

    e: Emit
    row: Node | None
    stacks: Mapping[_Key, Node]
    stays: Mapping[int, Operand]


class _Reversal:
    """The derivative of one loop. A prefix has the number of its parts.

    Attributes:
        exits: the prefixes after which the loop may be left.
        skips: the prefixes after which the next iteration may begin, besides the whole iteration.
        single: whether the loop is a branch, which has one iteration at most.
        memory: bytes that rows may take, however little ``config.autodiff_memory`` is: 0 unless few are written.
        count: how many rows there is room for.
        is_cut: whether the loop might make more iterations.
        by_counter: whether the backward loop finds its row by its induction variable.
        reversed: the backward region of each prefix.
    """

    def __init__(
        self, walk: Walk, node: Node, counter: str, prefixes: Mapping[int, _Prefix], active: Sequence[int],
        memory: int = 0,
    ) -> None:  # fmt: skip
        self.walk, self.node, self.counter, self.prefixes, self.active = walk, node, counter, prefixes, active
        self.carried: list[Operand] = list(node.operands[2:])
        self.first = node.regions[0].inputs[1:]
        self.whole = len(node.regions)
        leaves, least = node.attrs["leaves"], node.attrs["least"]
        self.exits = [number for number, left in enumerate(leaves, 1) if left and least[number] is not None]
        self.skips = [number for number, left in enumerate(leaves, 1) if not left]
        pairs = [list(zip(s.body.inputs[1:], s.body.outputs, strict=True)) for s in prefixes.values()]
        self.fixed = {i for i in range(len(self.carried)) if all(row[i][0] is row[i][1] for row in pairs)}
        stop = node.operands[1]
        assert isinstance(stop, int | SymInt)
        self.single, self.count, self.memory = is_branch(node), stop, memory
        self.by_counter = self.recompute = self.is_cut = False
        self._reverse()
        if min(hint(stop), _MANY) * self._row_bytes() > config.autodiff_memory:
            self.recompute = True  # also products and library calls
            self._reverse()
        self.by_counter = not self.single and any(_reads(made.region, self.last) for made in self.reversed.values())
        self.count = self._room(stop)
        if self.by_counter:
            self._reverse()
        elif self.is_cut:
            self._shorten()

    def _row_bytes(self) -> int:
        return sum(stored_bytes(node) for _, node in self._keys()) + 8 * bool(self.skips)

    def _room(self, stop: Size) -> Size:
        row = self._row_bytes()
        most = _MOST_PASSED if self.by_counter else FOREVER
        if row:
            usual = min(_MOST, max(_USUAL // row, _OFTEN))  # of which few may be used
            fewest = max(min(self.memory // row, _OFTEN), _FEWEST)
            most = min(most, max(min(config.autodiff_memory // row, usual), fewest))
        if most == FOREVER or stop <= most:  # a guard, where the stop is open
            return stop
        self.is_cut = True
        return most

    def _reverse(self) -> None:
        """Makes the backward regions, with what is decided so far."""
        self.last = self.node.regions[0].env.counter(self.count - 1, ("backward", self.counter))
        if self.single or self.by_counter:
            number: Size = 0 if self.single else self.count - 1 - self.last
            path = (step_of(ops.INDEX, {"key": (number,)}),)
            moved = Moved({self.counter: number}, True)
            how = RowAccess(self.last, self.count, lambda _: moved, lambda _: lambda e, stack: e.shown(stack, path))
        else:
            how = RowAccess(self.last, self.count, self._to_row, _gathered, _NUMBER)
        self.reversed = {
            number: BackwardIteration(
                self.walk, self.node, self.prefixes[number].body, self.active, self.fixed, how, self.recompute
            )
            for number in (*self.exits, *self.skips, self.whole)
        }

    def _shorten(self) -> None:
        """Gives stacks fewer rows, where no backward region depends on the row by its induction variable."""
        assert type(self.count) is int
        self.node.regions[0].env.end_at(self.last, self.count - 1)
        for made in self.reversed.values():
            made.access.count = self.count
            for stack in made.stacks():
                stack.type = TensorType(stack.tensor.dtype, (self.count, *stack.tensor.shape[1:]))

    def _to_row(self, row: Node | None) -> Moved:
        assert row is not None
        return MovedToRow(self.counter, row, {self.counter: self.last}, self.walk.e.library)

    def _key(self, number: int, node: Node) -> _Key:
        return self.prefixes[number].source[node]

    def _keys(self) -> list[_Key]:
        """What the stacks hold."""
        return list(dict.fromkeys(self._key(n, kept) for n, made in self.reversed.items() for kept in made.kept))

    # -- the forward loop ----------------------------------------------------------------------------------------------
    def _store(self) -> tuple[dict[_Key, Node], Node | None]:
        """Has the forward loop store rows; returns the stacks, and that of the numbers of prefixes."""
        node, graph, keys = self.node, self.walk.e.graph, self._keys()
        rows = [(f"{old.name}_of", TensorType(old.tensor.dtype, (self.count, *old.tensor.shape))) for _, old in keys]
        if self.skips:
            rows.append(("parts_of", TensorType(INT64, (self.count,))))
        before, place = len(self.carried), graph.nodes.index(node)
        made = [self.walk.e(ops.EMPTY, shape=type.shape, dtype=type.dtype.name) for _, type in rows]
        if made:
            graph.nodes[place:] = [*made, *graph.nodes[place : -len(made)]]
        counter = type_of(node.regions[0].inputs[0])
        assert isinstance(counter, ScalarType) and isinstance(node.type, tuple)
        path = (step_of(ops.INDEX, {"key": (counter.symbol,)}),)
        for number, part in enumerate(node.regions):
            stacks = [part.input(name, type) for name, type in rows]
            values: dict[int, Node] = {i: old for i, (where, old) in enumerate(keys) if where == number}
            inside = Emit(part, self.walk.e.library)
            if self.skips and number + 1 in (*self.skips, self.whole):
                values[len(keys)] = inside(ops.FULL, shape=(), fill_value=number + 1, dtype=INT64.name)
            written = {}
            for i, value in values.items():
                inside.location = value.location or node.location
                written[i] = inside(ops.ASSIGN, stacks[i], value, path=path)
            part.outputs[before:before] = [written.get(i, stack) for i, stack in enumerate(stacks)]
            part.updates = {**part.updates, **{before + i: 1 + before + i for i in written}}
        node.operands = (0, self.count, *self.carried, *made)
        node.type = (*node.type[:before], *(type for _, type in rows), *node.type[before:])
        for get in graph.nodes:
            if get.op is ops.GET and get.inputs[0] is node and get.attrs["index"] >= before:
                get.attrs = {"index": get.attrs["index"] + len(rows)}
        found = [self._result(before + i) for i in range(len(rows))]
        return dict(zip(keys, found, strict=False)), found[-1] if self.skips else None

    def _result(self, index: int) -> Node:
        node = self.node
        assert isinstance(node.type, tuple)
        return self.walk.e.graph.append(ops.GET, [node], {"index": index}, node.type[index], location=node.location)

    # -- the whole -----------------------------------------------------------------------------------------------------
    def run(self) -> None:
        """Adds the backward loop, and the cotangents of what the loop was given."""
        walk, e, node = self.walk, self.walk.e, self.node
        if self.is_cut:
            node.attrs = {**node.attrs, "least": (None, *node.attrs["least"][1:])}  # there is no room for more rows
            counter = type_of(node.regions[0].inputs[0])
            assert isinstance(counter, ScalarType) and isinstance(counter.symbol, SymInt) and type(self.count) is int
            counter.symbol.env.end_at(counter.symbol, self.count - 1)
        stacks, parts = self._store()
        assert isinstance(node.type, tuple)
        done, which = (self._result(len(node.type) - i) for i in (2, 1))
        ends = [walk.results[node].get(i) for i in self.active]
        types = [cotangent_type(type_of(self.first[i])) for i in self.active]
        g = [e.zeros(type) if g is None else e(ops.COPY_C, g) for type, g in zip(types, ends, strict=True)]
        stays = {i: self.carried[i] for made in self.reversed.values() for i in made.stays}
        place = _Place(e, done, stacks, stays)
        for number in () if self.by_counter else self.exits:
            g = self._where(place, e(ops.EQUAL, which, number), number, g)
        if self.single:
            g = self._where(place, e(ops.EQUAL, which, 0), self.whole, g)
        elif self.by_counter:
            g = self._over_all_rows(place, done, which, parts, g)
        else:
            g = self._from_last_row(place, done, parts, g)
        for i, made in zip(self.active, g, strict=True):
            operand = self.carried[i]
            if isinstance(operand, Node):
                walk.add(operand, made)

    def _from_last_row(self, place: _Place, done: Node, parts: Node | None, g: Sequence[Node]) -> list[Node]:
        """Adds the loop over all complete iterations, which counts the row down."""
        loop = _Loop(self, place, {"row": place.e.subtract(done, 1)}, parts, g)
        test, inside = loop.part("test")
        test.outputs.append(Emit(test, place.e.library)(ops.LESS, inside.lead["row"], 0))
        body, inside = loop.part("body")
        made, written = self._reverse_in(inside, inside.lead["row"])
        body.outputs[0] = inside.place.e.subtract(inside.lead["row"], 1)
        inside.returns(made, written)
        return loop.add((test, body), (True,))

    def _over_all_rows(
        self, place: _Place, done: Node, which: Node, parts: Node | None, g: Sequence[Node]
    ) -> list[Node]:
        """Adds the loop over all rows there is room for. It passes over those that were not written."""
        number = self.count - 1 - self.last
        loop = _Loop(self, place, {"done": done, "exit": which}, parts, g)
        partial = [number for number in self.exits if self.reversed[number].changes()]
        test, inside = loop.part("test")
        op = ops.LESS if partial else ops.LESS_EQUAL
        test.outputs.append(inside.place.e(op, inside.lead["done"], number))
        regions = [test]
        if partial:
            part, inside = loop.part("partial")
            e, held = inside.place.e, inside.g
            is_last = e(ops.EQUAL, inside.lead["done"], number)
            for exit in partial:
                flag = e(ops.LOGICAL_AND, is_last, e(ops.EQUAL, inside.lead["exit"], exit))
                held = self._where(inside.place, flag, exit, held)
            inside.returns(held, ())
            part.outputs.append(is_last)
            regions.append(part)
        body, inside = loop.part("body")
        inside.returns(*self._reverse_in(inside, None))
        return loop.add((*regions, body), (False,) * len(regions))

    def _reverse_in(self, inside: _Inside, row: Node | None) -> tuple[list[Node], Collection[int]]:
        """Reverses a complete iteration; also says which of the cotangents are written in place."""
        if not self.skips:
            return self._inline(inside.place, self.whole, inside.g)
        e, held = inside.place.e, inside.g
        assert inside.parts is not None
        path = (step_of(ops.INDEX, {"key": (self.count - 1 - self.last,)}),)
        ran = e.shown(inside.parts, path) if row is None else _gathered(row)(e, inside.parts)
        for number in (*self.skips, self.whole):
            held = self._where(inside.place, e(ops.EQUAL, ran, number), number, held)
        return held, ()

    def _inline(self, place: _Place, number: int, g: Sequence[Node]) -> tuple[list[Node], Collection[int]]:
        """Adds the nodes that reverse a prefix; also says which of the cotangents are written in place."""
        made, graph = self.reversed[number], place.e.graph
        first = len(lead := self._lead(made, place))
        operands = [*lead, *g, *self._read(number, place)]
        inputs = dict(zip(made.region.inputs, [graph.inputs[0], *operands], strict=True))
        new = Moved({}).copied(made.region, graph, inputs)  # type: ignore[arg-type]
        results = [new[output] for output in made.region.outputs[first : first + len(g)]]
        return results, [output - first for output in made.region.updates]

    def _lead(self, made: BackwardIteration, place: _Place) -> list[Operand]:
        if made.access.given is None:
            return []
        assert place.row is not None
        return [place.row]

    def _read(self, number: int, place: _Place) -> list[Operand]:
        made = self.reversed[number]
        return [*(place.stacks[self._key(number, kept)] for kept in made.kept), *(place.stays[i] for i in made.stays)]

    def _where(self, place: _Place, flag: Node, number: int, g: Sequence[Node]) -> list[Node]:
        """Reverses a prefix where the flag holds, by a branch."""
        made = self.reversed[number]
        if not made.changes():
            return list(g)
        lead = self._lead(made, place)
        operands = [*lead, *g, *self._read(number, place), flag]
        env = made.region.env
        counter = ScalarType("int", env.counter(0, ("branch", self.counter)))
        test, taken = (Graph(f"{made.region.name}_{name}", env, scratch=True) for name in ("test", "taken"))
        both = []
        for graph in (test, taken):
            both.append([graph.input("iteration", counter)])
            both[-1] += [graph.input(old.name, type_of(old)) for old in made.region.inputs[1:]]
            both[-1].append(graph.input("is_taken", flag.tensor))
        test.outputs = [*both[0][1:], Emit(test, place.e.library)(ops.LOGICAL_NOT, both[0][-1])]
        new = Moved({}).copied(made.region, taken, dict(zip(made.region.inputs, both[1], strict=False)))
        taken.outputs = [*(new[output] for output in made.region.outputs), both[1][-1]]
        taken.updates = dict(made.region.updates)
        types = [type_of(node) for node in both[0][1:]]
        found = _exit_loop(place.e, self.node, 1, operands, types, (test, taken), (True,), (0, 0))
        return found[len(lead) : len(lead) + len(g)]


@dataclass
class _Inside:
    """A part of the backward loop's iteration, under construction: its inputs by what they are, and its graph."""

    graph: Graph
    lead: dict[str, Node]
    g: list[Node]
    place: _Place
    parts: Node | None

    def returns(self, g: Sequence[Node], written: Collection[int]) -> None:
        """Has the part return these cotangents, some of which are written into the memory of those it was given."""
        first = len(self.lead)
        self.graph.outputs[first : first + len(g)] = g
        self.graph.updates = {first + i: 1 + first + i for i in written}


class _Loop:
    """A backward loop under construction: what it carries, and its parts."""

    def __init__(
        self, reversal: _Reversal, place: _Place, lead: Mapping[str, Node], parts: Node | None, g: Sequence[Node]
    ) -> None:
        self.reversal, self.outside, self.lead, self.length = reversal, place, dict(lead), len(g)
        first = reversal.first
        rows: list[tuple[str, Operand, Type]] = [(name, node, node.tensor) for name, node in lead.items()]
        rows += [(f"d_{first[i].name}", node, node.tensor) for i, node in zip(reversal.active, g, strict=True)]
        rows += [(f"{old.name}_of", node, node.tensor) for (_, old), node in place.stacks.items()]
        rows += [(first[i].name, operand, type_of(first[i])) for i, operand in place.stays.items()]
        rows += [("parts_of", parts, parts.tensor)] if parts is not None else []
        self.rows, self.has_parts = rows, parts is not None

    def part(self, name: str) -> tuple[Graph, _Inside]:
        """A new part, which returns what it is given."""
        reversal, outside = self.reversal, self.outside
        graph = Graph(f"{reversal.node.regions[0].name}_{name}", reversal.node.regions[0].env, scratch=True)
        graph.input("iteration", ScalarType("int", reversal.last))
        inputs = [graph.input(name, type) for name, _, type in self.rows]
        graph.outputs = list(inputs)
        given = iter(inputs)
        lead = {name: next(given) for name in self.lead}
        g = [next(given) for _ in range(self.length)]
        stacks = {key: next(given) for key in outside.stacks}
        stays = {i: next(given) for i in outside.stays}
        place = _Place(Emit(graph, outside.e.library), lead.get("row"), stacks, stays)
        return graph, _Inside(graph, lead, g, place, inputs[-1] if self.has_parts else None)

    def add(self, parts: Sequence[Graph], leaves: Sequence[bool]) -> list[Node]:
        """Adds the node; returns the cotangents after all iterations."""
        operands, types = [row[1] for row in self.rows], [row[2] for row in self.rows]
        reversal = self.reversal
        least = (0,) * len(parts)
        found = _exit_loop(self.outside.e, reversal.node, reversal.count, operands, types, parts, leaves, least)
        return found[len(self.lead) : len(self.lead) + self.length]


def _exit_loop(
    e: Emit,
    like: Node,
    stop: Size,
    operands: Sequence[Operand],
    types: Sequence[Type],
    parts: Sequence[Graph],
    leaves: Sequence[bool],
    least: Sequence[int | None],
) -> list[Node]:
    """Adds an ``exit_loop`` at the place of another one; returns its results: what it carries, and two numbers."""
    attrs, all_types = {"leaves": tuple(leaves), "least": tuple(least)}, (*types, _NUMBER, _NUMBER)
    loop = e.graph.append(
        ops.EXIT_LOOP, [0, stop, *operands], attrs, all_types,
        location=like.location, regions=tuple(parts),
    )  # fmt: skip
    loop.silent = e.silent
    return [
        e.graph.append(ops.GET, [loop], {"index": i}, type, location=like.location) for i, type in enumerate(all_types)
    ]


def _gathered(number: Node | None) -> Row:
    """The row with a number that the graph computes."""
    assert number is not None
    return lambda e, stack: e(ops.GATHER, stack, number, axes=(0,))


def _reads(graph: Graph, counter: SymInt) -> bool:
    """Whether anything in a graph depends on an induction variable."""
    name = str(counter)
    for node in graph.nodes:
        types = node.type if isinstance(node.type, tuple) else (node.type,)
        sizes = [t.shape for t in types if isinstance(t, TensorType)]
        held = [sizes, [o for o in node.operands if not isinstance(o, Node)], list(node.attrs.values())]
        if name in symbols_in(held) or any(_reads(region, counter) for region in node.regions):
            return True
    return False


LOOPS[ops.EXIT_LOOP] = exit_loop
__all__ = ["exit_loop"]
