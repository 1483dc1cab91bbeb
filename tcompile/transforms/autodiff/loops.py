"""Derivatives of loops: a counted loop backwards.

Input: a ``fori_loop`` node, and the cotangents of what it carries at its end.
Output: the cotangents of what it carried at its start.
Why: the derivative of a loop is a loop, whose compile time does not depend on the trip count.

The forward loop stores values of its iterations, one row of a stack for each iteration. A second loop goes from
the last row to the first, recomputes the rest of the body, and walks back through it (Griewank and Walther,
Evaluating Derivatives, 2008, chapter 12). What is stored, ``residuals`` decides: neither sums that are merely added to,
nor what no iteration changes, nor an array of which an iteration reads one element.

Where the stacks would take more than ``config.autodiff_memory``, the loop becomes segments of about the square root of
its iterations: an outer loop over segments, whose derivative stores what each segment begins with and recomputes the
segment. The last segment is a loop of its own, which is not recomputed, and as long as the memory allows.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from tcompile.config import config
from tcompile.errors import DerivativeError
from tcompile.graph import ops
from tcompile.graph.ir import Graph, Node, Operand, Type, ancestors
from tcompile.graph.ops.writing import Path, step_of
from tcompile.graph.sizes import ShapeEnv, Size, SymInt, always, hint, replace_sizes
from tcompile.graph.types import ScalarType, TensorType
from tcompile.transforms.autodiff.residuals import residuals, stored_bytes
from tcompile.transforms.autodiff.reverse import LOOPS, Walk, backward, may_carry
from tcompile.transforms.autodiff.table import refused
from tcompile.transforms.emit import STOPPED, Emit


def fori_loop(walk: Walk, node: Node) -> None:
    """The rule of a counted loop: adds the backward loop."""
    start, stop, *carried = node.operands
    counter = node.regions[0].inputs[0].type
    if not isinstance(counter, ScalarType) or not isinstance(counter.symbol, SymInt):
        raise DerivativeError(walk.why(node, "a loop whose counter the graph computes has no derivative rule"))
    if start != 0 or isinstance(stop, Node):
        raise DerivativeError(walk.why(node, "a loop whose trip count the graph computes has no derivative rule"))
    first = {i for i, o in enumerate(carried) if isinstance(o, Node) and o in walk.active}
    active = sorted(_active(node.regions[0], first))
    if active and any(i in walk.results[node] for i in active):
        assert not isinstance(stop, float | complex)
        loop, memory = _Backward(walk, node, active, str(counter.symbol), stop), config.autodiff_memory
        if hint(stop) * loop.row_bytes() > memory:
            loop.recompute_products()
        row = loop.row_bytes()
        if hint(stop) >= _FEWEST and hint(stop) * row > memory and always(lambda: stop > 0):
            _in_segments(walk, node, active, counter.symbol, stop, memory // row)
        else:
            loop.run()


_FEWEST = 16  # iterations of a loop that is split


def _in_segments(walk: Walk, node: Node, active: Sequence[int], counter: SymInt, count: Size, rows: int) -> None:
    """Makes segments of a loop, of which ``node`` becomes the last one, and adds the backward loops.

    About ``rows`` rows are stored at most. The last segment is as long as they allow.
    """
    size = math.isqrt(hint(count))
    segments = (count - 1) // size
    if isinstance(count, int):
        segments = min(-(-(count - max(rows - 2 * size, 1)) // size), segments)
    name, body, graph = str(counter), node.regions[0], walk.e.graph
    env, types = body.env, [type_of(i) for i in body.inputs[1:]]
    segment, within = env.counter(segments - 1, ("segment", name)), env.counter(size - 1, ("within", name))

    def loop(into: Graph, iterations: Size, given: Sequence[Operand], region: Graph) -> tuple[Node, list[Node]]:
        made = into.append(
            ops.FORI_LOOP, [0, iterations, *given], {}, tuple(types), location=node.location, regions=(region,)
        )
        return made, [
            into.append(ops.GET, [made], {"index": i}, type, location=node.location) for i, type in enumerate(types)
        ]

    outer = Graph(f"{body.name}_segment", env, scratch=True)
    outer.input("iteration", ScalarType("int", segment))
    carried = [outer.input(i.name, type_of(i)) for i in body.inputs[1:]]
    _, ends = loop(outer, size, carried, _at_iteration(body, name, within, segment * size + within))
    fixed = [a is b for a, b in zip(body.inputs[1:], body.outputs, strict=True)]
    outer.outputs = [begin if stays else end for begin, end, stays in zip(carried, ends, fixed, strict=True)]

    place = graph.nodes.index(node)
    first, begins = loop(graph, segments, node.operands[2:], outer)
    made = graph.nodes[-1 - len(types) :]
    graph.nodes[place:] = [*made, *graph.nodes[place : -len(made)]]
    left = count - segments * size
    last = env.counter(left - 1, ("last segment", name))
    node.regions = (_at_iteration(body, name, last, segments * size + last),)
    kept = [o if stays else got for o, got, stays in zip(node.operands[2:], begins, fixed, strict=True)]
    node.operands = (0, left, *kept)

    walk.active |= {first, *(begins[i] for i in active)}
    last_segment = _Backward(walk, node, active, str(last), left)
    last_segment.recompute_products()
    last_segment.run()
    for i in active:
        g = walk.total(begins[i])
        if g is not None:
            walk.results.setdefault(first, {})[i] = g
    if first in walk.results:
        fori_loop(walk, first)


def _at_iteration(body: Graph, counter: str, own: SymInt, number: Size) -> Graph:
    """A copy of a loop's body with a counter of its own, for the iterations with these numbers."""
    made = Graph(body.name, body.env, scratch=body.scratch, updates=body.updates)
    moved = Moved({counter: number})
    given = {body.inputs[0]: made.input(body.inputs[0].name, ScalarType("int", own))}
    for old in body.inputs[1:]:
        given[old] = made.input(old.name, moved.of(old.type), old.location)
    new = moved.copied(body, made, given)
    made.outputs = [new[node] for node in body.outputs]
    return made


def type_of(node: Node) -> Type:
    """The type of a node with one result."""
    assert not isinstance(node.type, tuple)
    return node.type


def _active(body: Graph, start: set[int]) -> set[int]:
    """Which carried values depend on those of ``start``, after any number of iterations."""
    carried = body.inputs[1:]
    active = set(start)
    while True:
        known = {carried[i] for i in active}
        for node in body.nodes:
            if node not in STOPPED and any(o in known for o in node.inputs) and may_carry(node):
                known.add(node)
        found = active | {i for i, output in enumerate(body.outputs) if output in known}
        if found == active:
            return active
        active = found


class _Backward:
    """One loop's derivative."""

    def __init__(self, walk: Walk, node: Node, active: Sequence[int], counter: str, count: Size) -> None:
        self.walk, self.node, self.active, self.count = walk, node, list(active), count
        self.body = node.regions[0]
        self.carried: list[Operand] = list(node.operands[2:])
        inputs = self.body.inputs[1:]
        self.fixed = {i for i, (a, b) in enumerate(zip(inputs, self.body.outputs, strict=True)) if a is b}
        self.types = [type_of(i) for i in inputs]
        self.last = self.body.env.counter(count - 1, ("backward", counter))
        self.moved = Moved({counter: count - 1 - self.last})
        self.recompute = False  # whether products and library calls are recomputed
        self.region, self.kept, self.stays = self._region()

    def recompute_products(self) -> None:
        """Has the backward body recompute products and library calls, where that takes less memory."""
        self.recompute = True
        self.region, self.kept, self.stays = self._region()

    def run(self) -> None:
        """Adds the backward loop, and the cotangents of what the loop was given."""
        e, graph, node = self.walk.e, self.walk.e.graph, self.node
        region, stored = self.region, self._store()
        ends = [self.walk.results[node].get(i) for i in self.active]
        cotangents = [
            e(ops.COPY_C, g) if g is not None else self._zeros(i) for i, g in zip(self.active, ends, strict=True)
        ]
        operands: list[Operand] = [*cotangents, *stored, *(self.carried[i] for i in self.stays)]
        types = tuple(i.type for i in region.inputs[1:])
        loop = graph.append(
            ops.FORI_LOOP, [0, self.count, *operands], {}, types,  # type: ignore[arg-type]
            location=node.location, regions=(region,),
        )  # fmt: skip
        for place, i in enumerate(self.active):
            operand, type = self.carried[i], types[place]
            assert not isinstance(type, tuple)
            got = graph.append(ops.GET, [loop], {"index": place}, type, location=node.location)
            if isinstance(operand, Node):
                self.walk.add(operand, got)

    def row_bytes(self) -> int:
        """How much is stored for each iteration, with the sizes that capture has seen."""
        return sum(map(stored_bytes, self.kept))

    def _zeros(self, i: int) -> Node:
        type = self.types[i]
        assert isinstance(type, TensorType)
        return self.walk.e(ops.FULL, shape=type.shape, fill_value=0.0, dtype=type.dtype.name)

    def _region(self) -> tuple[Graph, list[Node], list[int]]:
        """The backward body, the nodes of the body of which it reads a stack, and the carried values that stay."""
        region = Graph(f"{self.body.name}_backward", self.body.env, scratch=True)
        region.input("iteration", ScalarType("int", self.last))
        inside = Emit(region, self.walk.e.library)
        cotangents = {i: region.input(f"d_{self.body.inputs[1 + i].name}", self.types[i]) for i in self.active}
        row = (step_of(ops.INDEX, {"key": (self.count - 1 - self.last,)}),)
        given: dict[Node, Node] = {self.body.inputs[0]: region.inputs[0]}
        sources: dict[int, Node] = {}
        for i, (old, type) in enumerate(zip(self.body.inputs[1:], self.types, strict=True)):
            if i in self.fixed:
                given[old] = sources[i] = region.input(old.name, type)
                continue
            if not isinstance(type, TensorType):
                raise DerivativeError(self.walk.why(self.node, "a number that a loop changes has no derivative rule"))
            stack = region.input(f"{old.name}_of", TensorType(type.dtype, (self.count, *type.shape)))
            given[old] = sources[i] = inside.shown(stack, row)
        new = self.moved.copied(self.body, region, given)
        nodes = [new[n] for n in self.body.nodes]
        ends = [(new[self.body.outputs[i]], cotangents[i]) for i in self.active]
        found = backward(region, nodes, ends, [sources[i] for i in self.active], inside.library)
        outputs: list[Node] = []
        for place, (i, g) in enumerate(zip(self.active, found, strict=True)):
            made = g if g is not None else inside.full(cotangents[i], 0.0)
            if made in outputs or not _may_stay(made, cotangents[i]):
                made = inside(ops.COPY_C, made)
            elif made.op is ops.ASSIGN:
                region.updates[place] = 1 + place
            outputs.append(made)
        stacks = self._cut(region, sources, new, outputs, row)
        used = ancestors(outputs)
        region.nodes = [n for n in region.nodes if n in used]
        wanted = [i for i in range(len(self.types)) if i in self.fixed and sources[i] in used]
        passed = [*stacks.values(), *(sources[i] for i in wanted)]
        region.inputs = [region.inputs[0], *cotangents.values(), *passed]
        region.outputs = [*outputs, *passed]
        return region, list(stacks), wanted

    def _cut(
        self, region: Graph, sources: Mapping[int, Node], new: Mapping[Node, Node], outputs: list[Node], row: Path
    ) -> dict[Node, Node]:
        """The stacks that the region reads, by the nodes of the forward body whose values they hold."""
        used = ancestors(outputs)
        begins = {sources[i]: self.body.inputs[1 + i] for i in sources if i not in self.fixed and sources[i] in used}
        steps = {new[old]: old for old in self.body.nodes if new[old] in used}
        others = [n for n in used if n not in begins and n not in steps]
        read = {o for n in others for o in n.inputs}.union(outputs)
        storable = {node for node in (*begins, *steps) if self._is_storable(node)}
        kept = residuals([n for n in region.nodes if n in steps], list(begins), read, storable, self.recompute)
        if kept is None:
            kept = list(begins)
        inside = Emit(region, self.walk.e.library)
        stacks: dict[Node, Node] = {}
        for node in kept:
            if node in begins:
                stacks[begins[node]] = node.inputs[0]
                continue
            old, shape = steps[node], (self.count, *node.tensor.shape)
            stacks[old] = region.input(f"{old.name}_of", TensorType(node.tensor.dtype, shape))
            shown = inside.shown(stacks[old], row)
            region.nodes.insert(0, region.nodes.pop())
            for other in region.nodes:
                other.operands = tuple(shown if o is node else o for o in other.operands)
            outputs[:] = [shown if o is node else o for o in outputs]
        return stacks

    def _is_storable(self, node: Node) -> bool:
        """Whether the values of a node in all iterations can be rows of one array."""
        if not isinstance(node.type, TensorType) or not node.type.c_contiguous:
            return False
        counters = self.body.env.counters.keys()
        return not any(isinstance(n, SymInt) and n.symbols() & counters for n in node.type.shape)

    def _store(self) -> list[Node]:
        """Has the forward loop store what the backward body reads; returns the stacks."""
        graph, node, body = self.walk.e.graph, self.node, self.body
        place = graph.nodes.index(node)
        stored = []
        for old in self.kept:
            type = TensorType(old.tensor.dtype, (self.count, *old.tensor.shape))
            empty = graph.append(
                ops.FULL, [], {"shape": type.shape, "fill_value": 0.0, "dtype": type.dtype.name}, type,
                location=node.location,
            )  # fmt: skip
            graph.nodes.insert(place, graph.nodes.pop())
            place += 1
            index = len(body.outputs)
            stack = body.input(f"{old.name}_of", type)
            counter = body.inputs[0].type
            assert isinstance(counter, ScalarType)
            path = (step_of(ops.INDEX, {"key": (counter.symbol,)}),)
            made = body.append(ops.ASSIGN, [stack, old], {"path": path}, type, location=node.location)
            body.nodes.insert(body.nodes.index(old) + 1 if old in body.nodes else 0, body.nodes.pop())
            body.outputs.append(made)
            body.updates = {**body.updates, index: index + 1}
            assert isinstance(node.type, tuple)
            node.operands, node.type = (*node.operands, empty), (*node.type, type)
            got = graph.append(ops.GET, [node], {"index": index}, type, location=node.location)
            stored.append(got)
        return stored


def _may_stay(made: Node, own: Node) -> bool:
    """Whether a cotangent is a new array, the one that the iteration was given, or written into that one's memory."""
    if made is own:
        return True
    root = made
    while root.op is ops.ASSIGN:
        root = root.inputs[0]
    return made.tensor.c_contiguous and (root is own or (root is made and made.op.memory is ops.Aliasing.FRESH))


class Moved:
    """Copies graphs with other expressions in the place of counters: a loop's, and those of the loops in its body."""

    def __init__(self, values: Mapping[str, Size]) -> None:
        self.values = dict(values)

    def copied(self, source: Graph, into: Graph, given: dict[Node, Node]) -> dict[Node, Node]:
        """Adds copies of a graph's nodes to another graph; ``given`` says what stands for its inputs."""
        new = dict(given)
        for node in source.nodes:
            operands = [new[o] if isinstance(o, Node) else self.of(o) for o in node.operands]
            regions = tuple(self.region(part) for part in node.regions)
            attrs = self.of(node.attrs)
            new[node] = into.append(
                node.op, operands, attrs, self._type(node.type), name=node.name, location=node.location, regions=regions
            )
            new[node].silent = True
            if node in STOPPED:
                STOPPED.add(new[node])
        return new

    def region(self, source: Graph) -> Graph:
        """A copy of a region. A counter that it binds is another one in the copy."""
        made = Graph(source.name, source.env, scratch=source.scratch, updates=source.updates)
        inner = Moved(self.values)
        given = {}
        for old in source.inputs:
            if isinstance(old.type, ScalarType) and isinstance(old.type.symbol, SymInt):
                name = str(old.type.symbol)
                bounds = source.env.counters.get(name)
                if bounds is not None and name not in inner.values:
                    inner.values[name] = _counter(source.env, name, self.of(bounds[1]))
            type = inner.of(old.type)
            given[old] = made.input(old.name, type, old.location)
        new = inner.copied(source, made, given)
        made.outputs = [new[node] for node in source.outputs]
        return made

    def of(self, value: Any) -> Any:
        """A size, or what holds sizes, with the other expressions in it."""
        if isinstance(value, TensorType):
            return TensorType(value.dtype, self.of(value.shape), value.layout, value.device)
        if isinstance(value, ScalarType):
            return ScalarType(value.kind, None if value.symbol is None else self.of(value.symbol))
        return replace_sizes(value, self._size)

    def _type(self, type: Type | tuple[Type, ...]) -> Any:
        return tuple(map(self.of, type)) if isinstance(type, tuple) else self.of(type)

    def _size(self, size: SymInt) -> Size:
        made: Size = size
        for name, other in self.values.items():
            made = made.replaced(name, other) if isinstance(made, SymInt) else made
        return made


def _counter(env: ShapeEnv, name: str, last: Size) -> SymInt:
    return env.counter(last, ("backward", name))


LOOPS[ops.FORI_LOOP] = fori_loop
refused("a loop that a test may end, or a branch in a loop, has no derivative rule yet", ops.EXIT_LOOP)

__all__ = ["Moved", "fori_loop", "type_of"]
