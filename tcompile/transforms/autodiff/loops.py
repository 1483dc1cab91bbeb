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
from collections.abc import Sequence

from tcompile.config import config
from tcompile.errors import DerivativeError
from tcompile.graph import ops
from tcompile.graph.ir import Graph, Node, Operand
from tcompile.graph.ops.writing import step_of
from tcompile.graph.sizes import Size, SymInt, always, hint
from tcompile.graph.types import ScalarType, TensorType
from tcompile.transforms.autodiff.iteration import (
    BackwardIteration,
    Moved,
    RowAccess,
    active_values,
    at_iteration,
    cotangent_type,
    type_of,
)
from tcompile.transforms.autodiff.reverse import LOOPS, Walk


def fori_loop(walk: Walk, node: Node) -> None:
    """The rule of a counted loop: adds the backward loop."""
    start, stop, *carried = node.operands
    counter = node.regions[0].inputs[0].type
    if not isinstance(counter, ScalarType) or not isinstance(counter.symbol, SymInt):
        raise DerivativeError(walk.why(node, "a loop whose counter the graph computes has no derivative rule"))
    if start != 0 or isinstance(stop, Node):
        raise DerivativeError(walk.why(node, "a loop whose trip count the graph computes has no derivative rule"))
    first = {i for i, o in enumerate(carried) if isinstance(o, Node) and o in walk.active}
    active = active_values(node.regions, first)
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
    _, ends = loop(outer, size, carried, at_iteration(body, name, within, segment * size + within))
    fixed = [a is b for a, b in zip(body.inputs[1:], body.outputs, strict=True)]
    outer.outputs = [begin if stays else end for begin, end, stays in zip(carried, ends, fixed, strict=True)]

    place = graph.nodes.index(node)
    first, begins = loop(graph, segments, node.operands[2:], outer)
    made = graph.nodes[-1 - len(types) :]
    graph.nodes[place:] = [*made, *graph.nodes[place : -len(made)]]
    left = count - segments * size
    last = env.counter(left - 1, ("last segment", name))
    node.regions = (at_iteration(body, name, last, segments * size + last),)
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


class _Backward:
    """One loop's derivative."""

    def __init__(self, walk: Walk, node: Node, active: Sequence[int], counter: str, count: Size) -> None:
        self.walk, self.node, self.active, self.count = walk, node, list(active), count
        self.body = node.regions[0]
        self.carried: list[Operand] = list(node.operands[2:])
        self.counter = counter
        self.last = self.body.env.counter(count - 1, ("backward", counter))
        self.iteration = self._iteration(recompute=False)

    def _iteration(self, recompute: bool) -> BackwardIteration:
        number = self.count - 1 - self.last
        path = (step_of(ops.INDEX, {"key": (number,)}),)
        moved = Moved({self.counter: number}, True)
        how = RowAccess(self.last, self.count, lambda _: moved, lambda _: lambda e, stack: e.shown(stack, path))
        fixed = {i for i, (a, b) in enumerate(zip(self.body.inputs[1:], self.body.outputs, strict=True)) if a is b}
        return BackwardIteration(self.walk, self.node, self.body, self.active, fixed, how, recompute, may_add=True)

    def recompute_products(self) -> None:
        """Has the backward body recompute products and library calls, where that takes less memory."""
        self.iteration = self._iteration(recompute=True)

    def run(self) -> None:
        """Adds the backward loop, and the cotangents of what the loop was given."""
        e, graph, node = self.walk.e, self.walk.e.graph, self.node
        region, stored = self.iteration.region, self._store()
        ends = [self.walk.results[node].get(i) for i in self.active]
        cotangents = [
            e.zeros(cotangent_type(type_of(self.body.inputs[1 + i]))) if g is None else e(ops.COPY_C, g)
            for i, g in zip(self.active, ends, strict=True)
        ]
        operands: list[Operand] = [*cotangents, *stored, *(self.carried[i] for i in self.iteration.stays)]
        types = tuple(i.type for i in region.inputs[1:])
        loop = graph.append(
            ops.FORI_LOOP, [0, self.count, *operands], {}, types,  # type: ignore[arg-type]
            location=node.location, regions=(region,),
        )  # fmt: skip
        loop.silent = True
        for place, i in enumerate(self.active):
            operand, type = self.carried[i], types[place]
            assert not isinstance(type, tuple)
            got = graph.append(ops.GET, [loop], {"index": place}, type, location=node.location)
            if isinstance(operand, Node):
                self.walk.add(operand, got)

    def row_bytes(self) -> int:
        """How much is stored for each iteration, with the sizes that capture has seen."""
        return self.iteration.row_bytes()

    def _store(self) -> list[Node]:
        """Has the forward loop store what the backward body reads; returns the stacks."""
        graph, node, body = self.walk.e.graph, self.node, self.body
        place = graph.nodes.index(node)
        stored = []
        for old in map(self.iteration.in_body, self.iteration.kept):
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
            made = body.append(ops.ASSIGN, [stack, old], {"path": path}, type, location=old.location or node.location)
            made.silent = True
            body.nodes.insert(body.nodes.index(old) + 1 if old in body.nodes else 0, body.nodes.pop())
            body.outputs.append(made)
            body.updates = {**body.updates, index: index + 1}
            assert isinstance(node.type, tuple)
            node.operands, node.type = (*node.operands, empty), (*node.type, type)
            got = graph.append(ops.GET, [node], {"index": index}, type, location=node.location)
            stored.append(got)
        return stored


LOOPS[ops.FORI_LOOP] = fori_loop

__all__ = ["fori_loop"]
