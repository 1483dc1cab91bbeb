"""The derivative of one iteration of a loop, as a region.

Input: the body of a loop, and which of the carried values are active.
Output: a region that takes the cotangents after an iteration and gives those before it, and the values of the body that
it reads as rows of stacks.
Why: counted loops and loops with early exits reverse an iteration alike. They differ in how a row is found.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, TypeAlias

from tcompile.errors import DerivativeError
from tcompile.graph import ops
from tcompile.graph.ir import Graph, Node, Operand, Type, ancestors
from tcompile.graph.ops.gathering import IN_PLACE
from tcompile.graph.ops.writing import Path
from tcompile.graph.sizes import ShapeEnv, Size, SymInt, replace_sizes, symbols_in
from tcompile.graph.types import ScalarType, TensorType
from tcompile.records import dataclass
from tcompile.transforms.autodiff.residuals import residuals, stored_bytes
from tcompile.transforms.autodiff.reverse import Walk, backward, may_carry
from tcompile.transforms.emit import STOPPED, Emit, Library

_WRITES = (ops.ASSIGN, *IN_PLACE)
Row: TypeAlias = Callable[[Emit, Node], Node]  # from a stack, the row of the iteration that is reversed


def type_of(node: Node) -> Type:
    """The type of a node with one result."""
    assert not isinstance(node.type, tuple)
    return node.type


def cotangent_type(type: Type) -> TensorType:
    """The type of the cotangent of a value that a loop carries. It lies in C order, as rules may give it in any."""
    assert isinstance(type, TensorType)
    return TensorType(type.dtype, type.shape)


def active_values(bodies: Sequence[Graph], start: Collection[int]) -> list[int]:
    """Which carried values depend on those of ``start``, after any number of iterations of any of these bodies."""
    active = set(start)
    while True:
        found = set(active)
        for body in bodies:
            known = {body.inputs[1 + i] for i in active}
            for node in body.nodes:
                if node not in STOPPED and any(o in known for o in node.inputs) and may_carry(node):
                    known.add(node)
            found |= {i for i, output in enumerate(body.outputs) if output in known}
        if found == active:
            return sorted(active)
        active = found


@dataclass
class RowAccess:
    """How a backward loop goes through iterations: its induction variable, and the row of an iteration in a stack.

    Attributes:
        counter: the backward loop's induction variable.
        count: the number of rows.
        moved: copies the body's nodes, with the number of the iteration that is reversed in them.
        row: finds the row. Both may read ``given``, one more input of the region.
        given: the type of that input, if there is one.
    """

    counter: SymInt
    count: Size
    moved: Callable[[Node | None], Moved]
    row: Callable[[Node | None], Row]
    given: TensorType | None = None


class BackwardIteration:
    """The region of one iteration.

    Its inputs are the induction variable, the row's number if it is one of the graph's, the cotangents of the active
    values, the stacks, and the values that stay. It returns them all, with new cotangents.

    Attributes:
        region: the region.
        kept: the nodes of the body whose values the stacks hold, and masks of the region (``in_body``).
        stays: the positions of the carried values that stay, which it reads.
    """

    def __init__(
        self,
        walk: Walk,
        node: Node,
        body: Graph,
        active: Sequence[int],
        fixed: Collection[int],
        access: RowAccess,
        recompute: bool,
        may_add: bool = False,
    ) -> None:
        self.walk, self.node, self.body = walk, node, body
        self.active, self.fixed, self.access = active, fixed, access
        self.types = [type_of(i) for i in body.inputs[1:]]
        self.recompute = recompute  # whether products and library calls are recomputed
        self.may_add = may_add  # whether the body may compute what the derivative reads, to store it
        self.masks: dict[Node, tuple[Operand, ...]] = {}  # the region's nodes that it may compute, and their operands
        self.region, self.kept, self.stays = self._region()

    def row_bytes(self) -> int:
        """How much is stored for each iteration, with the sizes that capture has seen."""
        return sum(map(stored_bytes, self.kept))

    def stacks(self) -> list[Node]:
        """The region's inputs that are stacks."""
        first = 1 + (self.access.given is not None) + len(self.active)
        return self.region.inputs[first : first + len(self.kept)]

    def changes(self) -> bool:
        """Whether cotangents before the iteration differ from those after it."""
        lead = 1 + (self.access.given is not None)
        cotangents = self.region.inputs[lead : lead + len(self.active)]
        return self.region.outputs[lead - 1 : lead - 1 + len(self.active)] != cotangents

    def in_body(self, kept: Node) -> Node:
        """The node of the body whose value a stack holds; adds a mask to the body."""
        found = self.of_body.get(kept, kept)
        if found is not kept or kept not in self.masks:
            return found
        operands = [self.in_body(o) if isinstance(o, Node) else o for o in self.masks[kept]]
        made = self.body.append(
            kept.op, operands, kept.attrs, type_of(kept), name=kept.name, location=kept.location
        )  # fmt: skip
        made.silent = True
        self.of_body[kept] = made
        return made

    def _region(self) -> tuple[Graph, list[Node], list[int]]:
        how = self.access
        region = Graph(f"{self.body.name}_backward", self.body.env, scratch=True)
        region.input("iteration", ScalarType("int", how.counter))
        inside = Emit(region, self.walk.e.library)
        number = None if how.given is None else region.input("row", how.given)
        row = how.row(number)
        cotangents = {
            i: region.input(f"d_{self.body.inputs[1 + i].name}", cotangent_type(self.types[i])) for i in self.active
        }
        given: dict[Node, Node] = {self.body.inputs[0]: region.inputs[0]}
        sources: dict[int, Node] = {}
        begins: dict[Node, tuple[Node, Node]] = {}  # the body's input and its stack, by the row
        for i, (old, type) in enumerate(zip(self.body.inputs[1:], self.types, strict=True)):
            if i in self.fixed:
                given[old] = sources[i] = region.input(old.name, type)
                continue
            if not isinstance(type, TensorType):
                raise DerivativeError(self.walk.why(self.node, "a number that a loop changes has no derivative rule"))
            stack = region.input(f"{old.name}_of", TensorType(type.dtype, (how.count, *type.shape)))
            given[old] = sources[i] = inside.in_order(row(inside, stack), type)
            begins[sources[i]] = (old, stack)
        new = how.moved(number).copied(self.body, region, given)
        nodes = [new[n] for n in self.body.nodes]
        ends = [(new[self.body.outputs[i]], cotangents[i]) for i in self.active]
        starts = [sources[i] for i in self.active]
        found = backward(region, nodes, ends, starts, inside.library, self.walk.splits_exit_loops)
        outputs: list[Node] = []
        lead = [] if number is None else [number]
        for place, (i, g) in enumerate(zip(self.active, found, strict=True), start=len(lead)):
            made = g if g is not None else inside.full(cotangents[i], 0.0)
            if made in outputs or not _may_stay(made, cotangents[i]):
                made = inside(ops.COPY_C, made)
            elif made.op in _WRITES:
                region.updates[place] = 1 + place
            outputs.append(made)
        stacks = self._cut(region, begins, new, outputs, row)
        used = ancestors(outputs)
        region.nodes = [n for n in region.nodes if n in used]
        wanted = [i for i in range(len(self.types)) if i in self.fixed and sources[i] in used]
        passed = [*stacks.values(), *(sources[i] for i in wanted)]
        region.inputs = [region.inputs[0], *lead, *cotangents.values(), *passed]
        region.outputs = [*lead, *outputs, *passed]
        return region, list(stacks), wanted

    def _cut(
        self,
        region: Graph,
        rows: Mapping[Node, tuple[Node, Node]],
        new: Mapping[Node, Node],
        outputs: list[Node],
        row: Row,
    ) -> dict[Node, Node]:
        """The stacks that the region reads, by the nodes of the forward body whose values they hold.

        ``rows`` are those that the region may read of what the loop carries.
        """
        used = ancestors(outputs)
        begins = {node: held for node, held in rows.items() if node in used}
        steps = {new[old]: old for old in self.body.nodes if new[old] in used}
        self.of_body = {copy: old for old, copy in new.items()}
        self.masks = self._masks([n for n in region.nodes if n in used]) if self.may_add else {}
        masks = self.masks
        nodes = [n for n in region.nodes if n in steps or n in masks]
        others = [n for n in used if n not in begins and n not in steps and n not in masks]
        read = {o for n in others for o in n.inputs}.union(outputs)
        storable = {*begins, *(node for node in nodes if self._is_storable(node))}
        kept = residuals(nodes, list(begins), read, storable, self.recompute)
        if kept is None:
            kept = list(begins)
        inside = Emit(region, self.walk.e.library)
        stacks: dict[Node, Node] = {}
        for node in kept:
            if node in begins:
                old, stack = begins[node]
                stacks[old] = stack
                continue
            old, shape = steps.get(node, node), (self.access.count, *node.tensor.shape)
            stacks[old] = region.input(f"{old.name}_of", TensorType(node.tensor.dtype, shape))
            shown = row(inside, stacks[old])
            region.nodes.insert(0, region.nodes.pop())
            for other in region.nodes:
                other.operands = tuple(shown if o is node else o for o in other.operands)
            outputs[:] = [shown if o is node else o for o in outputs]
        return stacks

    def _masks(self, nodes: Sequence[Node]) -> dict[Node, tuple[Operand, ...]]:
        """The booleans that the derivative computes from values of the iteration alone: they take few bytes."""
        counters, found = self.body.env.counters.keys(), dict[Node, tuple[Operand, ...]]()
        for node in nodes:
            if node in self.of_body or node.op.kind != "pointwise" or not isinstance(node.type, TensorType):
                continue
            fixed = not symbols_in([o for o in node.operands if not isinstance(o, Node)]) & counters
            if node.type.dtype.kind == "b" and fixed and all(o in self.of_body or o in found for o in node.inputs):
                found[node] = node.operands
        return found

    def _is_storable(self, node: Node) -> bool:
        """Whether the values of a node in all iterations can be rows of one array."""
        if not isinstance(node.type, TensorType) or not node.type.c_contiguous:
            return False
        counters = self.body.env.counters.keys()
        return not any(isinstance(n, SymInt) and n.symbols() & counters for n in node.type.shape)


def _may_stay(made: Node, own: Node) -> bool:
    """Whether a cotangent is a new array, the one that the iteration was given, or written into that one's memory."""
    if made is own:
        return True
    root = made
    while root.op in _WRITES:
        root = root.inputs[0]
    return made.tensor.c_contiguous and (root is own or (root is made and made.op.memory is ops.Aliasing.FRESH))


class Moved:
    """Copies graphs with other expressions in the place of counters: a loop's, and those of the loops in its body.

    ``recomputed``: the copies are a backward loop's.
    """

    def __init__(self, values: Mapping[str, Size], recomputed: bool = False) -> None:
        self.values = dict(values)
        self.recomputed = recomputed

    def copied(self, source: Graph, into: Graph, given: dict[Node, Node]) -> dict[Node, Node]:
        """Adds copies of a graph's nodes to another graph; ``given`` says what stands for its inputs."""
        new = dict(given)
        for node in source.nodes:
            operands = [new[o] if isinstance(o, Node) else self.of(o) for o in node.operands]
            inner = Moved(self.values, self.recomputed)  # parts of a loop share an induction variable
            regions = tuple(inner.region(part) for part in node.regions)
            attrs = self.of(node.attrs)
            other = self._other(node, operands, into)
            new[node] = other or into.append(
                node.op, operands, attrs, self._type(node.type), name=node.name, location=node.location, regions=regions
            )
            new[node].silent = node.silent or self.recomputed
            new[node].recomputed = self.recomputed or node.recomputed
            if node in STOPPED:
                STOPPED.add(new[node])
        return new

    def _other(self, node: Node, operands: Sequence[Operand], into: Graph) -> Node | None:
        """What stands for a node in place of a copy of it."""
        return None

    def region(self, source: Graph) -> Graph:
        """A copy of a region. A counter that it binds is another one in the copy."""
        made = Graph(source.name, source.env, scratch=source.scratch, updates=source.updates)
        given = {}
        for old in source.inputs:
            if isinstance(old.type, ScalarType) and isinstance(old.type.symbol, SymInt):
                name = str(old.type.symbol)
                bounds = source.env.counters.get(name)
                if bounds is not None and name not in self.values:
                    self.values[name] = _counter(source.env, name, self.of(bounds[1]))
            type = self.of(old.type)
            given[old] = made.input(old.name, type, old.location)
        new = self.copied(source, made, given)
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


def at_iteration(body: Graph, counter: str, own: SymInt, number: Size) -> Graph:
    """A copy of a loop's body with a counter of its own, for the iterations with these numbers."""
    made = Graph(body.name, body.env, scratch=body.scratch, updates=body.updates)
    moved = Moved({counter: number})
    given = {body.inputs[0]: made.input(body.inputs[0].name, ScalarType("int", own))}
    for old in body.inputs[1:]:
        given[old] = made.input(old.name, moved.of(old.type), old.location)
    new = moved.copied(body, made, given)
    made.outputs = [new[node] for node in body.outputs]
    return made


class MovedToRow(Moved):
    """Copies a body, with a number that the graph computes, ``row``, in the place of an induction variable.

    Elements and rows that it numbers are gathered and scattered. Where it stands elsewhere, as in the bounds of a
    slice, ``values`` says what stands for it.
    """

    def __init__(self, counter: str, row: Node, values: Mapping[str, Size], library: Library) -> None:
        super().__init__(values, True)
        self.counter, self.row, self.library = counter, row, library

    def _other(self, node: Node, operands: Sequence[Operand], into: Graph) -> Node | None:
        e = Emit(into, self.library)
        e.location = node.location
        match node.op:
            case ops.INDEX | ops.ASSIGN:
                attrs = node.attrs if node.op is ops.INDEX else self._only_step(node.attrs["path"])
                first, *rest = attrs.get("key", ()) or (None,)
                number = self._number(e, first)
                if number is None or self._stands_in(rest):
                    return None
                if node.op is ops.ASSIGN:
                    return None if rest else e(ops.SCATTER, *operands, number, axes=(0,), path=())
                taken = e(ops.GATHER, operands[0], number, axes=(0,))
                return e(ops.INDEX, taken, key=tuple(rest)) if rest else taken
            case ops.FULL if node.attrs["shape"] == ():
                number = self._number(e, node.attrs["fill_value"])
                return None if number is None else e.cast(number, node.tensor.dtype)
        if node.op.kind != "pointwise" or not self._stands_in(list(node.operands)):
            return None
        made: list[Operand] = []
        for old, new in zip(node.operands, operands, strict=True):
            number = None if isinstance(old, Node) else self._number(e, old)
            made.append(new if number is None else e.cast(number, node.inputs[0].tensor.dtype))
        return e(node.op, *made, **node.attrs)

    def _only_step(self, path: Path) -> Mapping[str, Any]:
        return dict(path[0][1]) if len(path) == 1 and path[0][0] == ops.INDEX.name else {}

    def _stands_in(self, held: Sequence[Any]) -> bool:
        return self.counter in symbols_in([x for x in held if not isinstance(x, Node)])

    def _number(self, e: Emit, size: Any) -> Node | None:
        """A size that is linear in the induction variable, of the row; None for others."""
        if not isinstance(size, SymInt) or not set(size.terms) <= {(self.counter,), ()}:
            return None
        factor, constant = size.terms.get((self.counter,), 0), size.terms.get((), 0)
        if not factor:
            return None
        made = self.row if factor == 1 else e.multiply(self.row, factor)
        return made if not constant else e.add(made, constant)


def _counter(env: ShapeEnv, name: str, last: Size) -> SymInt:
    return env.counter(last, ("backward", name))


__all__ = [
    "BackwardIteration", "Moved", "MovedToRow", "Row", "RowAccess", "active_values", "at_iteration", "cotangent_type",
    "type_of",
]  # fmt: skip
