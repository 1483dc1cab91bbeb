"""Fusion: the partition of nodes into kernels, library calls and views, and their order.

Input: a graph, and a predicate for the nodes that the code generator can compute.
Output: a ``Schedule``, in an order in which every array is written before it is read.
Why: memory traffic dominates; a fused value is never stored.

A node is *materialised* where something needs it as an array: the caller, a library call, a reshape that is no affine
map, or a kernel for which recomputing costs more than reading. All other pointwise nodes are computed where they are
used. Materialised nodes and reductions join the latest group with the same iteration space that reads or computes
something in common with them, unless a path through another step would then make a cycle.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any, Literal

from tcompile.backends.schedule import inverses, products, routines, scalar_loop_arrays
from tcompile.backends.schedule.admission import ALONG, SHORT
from tcompile.backends.schedule.costs import STORE_ABOVE, cost_of
from tcompile.backends.schedule.kernel import Buffer, KernelValue
from tcompile.backends.schedule.lower import (
    ANYWHERE_IN,
    Group,
    NotAffine,
    computed_from,
    computed_type,
    keeps_elements,
    lower,
    operand_map,
    replaces_part,
    target_map,
)
from tcompile.backends.schedule.maps import ANYWHERE, Map, identity, map_key, through
from tcompile.backends.schedule.placement import Keep, Separate, place
from tcompile.backends.schedule.plan import Schedule, Step, in_order, steps_before
from tcompile.graph import Graph, Node, TensorType, ops
from tcompile.graph.ir import ancestors
from tcompile.graph.ops import k_order
from tcompile.graph.ops.gathering import IN_PLACE
from tcompile.graph.ops.rules import like_order
from tcompile.graph.ops.view import expand_key, slice_bounds
from tcompile.graph.ops.writing import part_of
from tcompile.graph.signals import may_signal, sets_flags
from tcompile.graph.sizes import UnprovableSizeError, hint, is_one, may_be_empty, product, same_shape

SMALL = 1 << 15  # elements below which unrelated work is fused just to save a launch
MOST_MEMBERS = 24
DEEPEST = 64  # the longest chain of operations in one kernel without a materialised value


def schedule(
    graph: Graph,
    supports: Callable[[Node], bool],
    has_routine: Callable[[Node], bool] = lambda node: False,
    checks_indices_first: bool = False,
) -> Schedule:
    """Plans ``graph``. ``supports`` says of a pointwise, creation or reduction node whether kernels can compute it, and
    of a scalar loop whether there is a function for it; ``has_routine`` of a library call whether machine code can do
    it (``routines``). ``checks_indices_first``: scatter kernels check all indices before the first write.
    """
    stored: set[Node] = set()
    arrays: set[Node] = set()
    alone: set[Node] = set()
    kept: set[Node] = set()
    for tries in range(9):
        planner = _Planner(graph, supports, has_routine, stored, arrays, alone, kept, final=tries == 8)
        try:
            planner.plan()
            return planner.finish(checks_indices_first)
        except Separate as wish:
            alone.update(wish.nodes)
        except Keep as wish:
            kept.update(wish.nodes)
        except NotAffine as refusal:
            arrays.add(refusal.node)
        except _MustMaterialise as wish:
            stored.update(wish.nodes)
    raise AssertionError("the last try takes what there is")


class _MustMaterialise(Exception):
    """Values that another attempt has to materialise."""

    def __init__(self, nodes: set[Node]) -> None:
        super().__init__("expensive values: materialise, do not recompute")
        self.nodes = nodes


class _Planner:
    """One attempt at a schedule: groups of nodes, and the values to materialise."""

    def __init__(
        self,
        graph: Graph,
        supports: Callable[[Node], bool],
        has_routine: Callable[[Node], bool],
        stored: set[Node],
        arrays: set[Node],
        alone: set[Node],
        kept: set[Node],
        final: bool,
    ) -> None:
        self.graph = graph
        self.final = final
        self.live = ancestors(_roots(graph))
        self.loops = {node for node in graph.nodes if node.op is ops.SCALAR_LOOP and supports(node)}
        self.kind: dict[Node, str] = dict.fromkeys(graph.inputs, "input")
        for node in graph.nodes:
            kind = self._kind(node, supports)
            self.kind[node] = "routine" if kind == "opaque" and has_routine(node) else kind
        self.stored: set[Node] = set()
        self.views: set[Node] = set()
        self.step_of: dict[Node, Step] = {}
        self.groups: list[Step] = []
        self.steps: list[Step] = []
        self.reports: dict[Node, frozenset[bool]] = {}  # of a graph with silent nodes: see _separate_silent_values
        self.buffers: dict[Node, Buffer] = {node: Buffer(node, node.name) for node in graph.inputs}
        self.extra = stored
        self.arrays = arrays
        self.alone = alone
        self.read_inside: dict[Step, set[Node]] = {}
        # Of the node that is being added to a group: the known steps before it, and its leaves at a map.
        self.earlier: set[Step] = set()
        self.leaves_of: dict[tuple[object, ...], list[tuple[Node, Map]]] = {}
        self.old = {node: _old(node) for node in kept}  # the elements that assignments replace

    def _kind(self, node: Node, supports: Callable[[Node], bool]) -> str:
        kind = node.op.kind
        if (node.op is ops.ASSIGN or node.op in IN_PLACE) and supports(node):
            return _kind_of_assignment(node)
        if node.op in (ops.GATHER, ops.ROLL, ops.MATMUL, ops.CALL) and supports(node):
            return "map"
        if node.op.fusion in ALONG and supports(node):
            return "along"
        if kind in ("opaque", "control"):
            return "opaque"
        if kind == "view":
            return "move" if _is_affine(node) else "reshape"
        if not supports(node):
            return "opaque"
        return "reduce" if kind == "reduction" else "map"

    # -- materialised values ---------------------------------------------------------------------------------------
    def _need_array(self, node: Node) -> None:
        while self.kind[node] in ("move", "reshape") and node not in self.views:
            self.views.add(node)
            node = node.inputs[0]
        if self.kind[node] in ("map", "reduce", "along"):
            self.stored.add(node)

    def plan(self) -> None:
        """Forms the groups. Raises _MustMaterialise or NotAffine where another attempt has to materialise more."""
        for node in _roots(self.graph):
            self._need_array(node)
        for node in self.extra | self.arrays:
            if node in self.live:
                self._need_array(node)
        for node in self.live:
            if self.kind[node] == "opaque":
                for operand in scalar_loop_arrays.bases(node) if node in self.loops else node.inputs:
                    self._need_array(operand)
            elif self.kind[node] == "routine":
                for operand in routines.bases(node):
                    self._need_array(operand)
            elif self.kind[node] == "reshape":
                self._need_array(node)
            elif self.kind[node] == "part":
                if keeps_elements(node):
                    self._need_array(node.inputs[0])
                if node.op in IN_PLACE and self.graph.device == "cpu":  # no replay is possible once a part is written
                    for operand in self.signalling.intersection(node.inputs[1:]):
                        self._need_array(operand)
            elif (node.op, self.kind[node]) in (*((op, "map") for op in ANYWHERE_IN), (ops.SORT, "along")):
                self._need_array(node.inputs[0])
        for node in self.alone & self.live:
            for operand in node.inputs[1:]:
                self._need_array(operand)
        self._store_partly_read_values()
        self._cut_long_chains()
        self._store_values_read_at_several_places()
        self._separate_silent_values()
        last_call: Step | None = None
        for node in self.graph.nodes:
            if node not in self.live:
                continue
            kind = self.kind[node]
            if kind == "opaque":
                is_loop = node in self.loops
                how: Literal["loop", "call"] = "loop" if is_loop else "call"
                reads = scalar_loop_arrays.bases(node) if is_loop else list(node.inputs)
                step = Step(how, node, after=self._steps_of(reads), reads=reads, writes=[node])
                if node.op is ops.CALL:
                    if last_call is not None:
                        step.after.add(last_call)
                    last_call = step
                self._place(step, node)
            elif kind == "routine":
                reads = list(dict.fromkeys(routines.bases(node)))
                step = Step("kernel", node, after=self._steps_of(reads), reads=reads, writes=[node])
                self._place(step, node)
            elif node in self.views:
                source = node.inputs[0]
                self._place(Step("view", node, after=self._steps_of([source]), reads=[source], writes=[node]), node)
            elif kind in ("reduce", "along", "part") or node in self.stored:
                self._join(node)
        if not self.final:
            self._store_expensive_values()

    @cached_property
    def signalling(self) -> set[Node]:
        """The nodes that may need a replay when they are computed where they are used."""
        found: set[Node] = set()
        for node in self.graph.nodes:
            own = self.kind[node] == "map" and may_signal(node)
            if own or (self.kind[node] in ("map", "move") and not found.isdisjoint(computed_from(node))):
                found.add(node)
        return found

    def _store_partly_read_values(self) -> None:
        """Materialises values of which only a part is read, where computing the rest may warn: NumPy computes it."""
        whole: set[Node] = set()  # nodes of which kernels compute all elements
        parts: dict[Node, list[Node]] = {}
        for node in reversed(self.graph.nodes):
            if node not in self.live:
                continue
            kind = self.kind[node]
            if kind == "map" and node in self.signalling and node not in whole:
                if _cover(node, parts.get(node, [])):
                    whole.add(node)
                else:
                    self.stored.add(node)
            if node.op is ops.INDEX and node in whole:
                parts.setdefault(node.inputs[0], []).append(node)
            if kind in ("part", "reduce", "along") or node in self.stored or node in whole:
                whole.update(operand for operand in computed_from(node) if _reads_all(node, operand))

    def _cut_long_chains(self) -> None:
        depth: dict[Node, int] = {}
        for node in self.graph.nodes:
            if node in self.live:
                depth[node] = 1 + max((depth.get(o, 0) for o in computed_from(node) if not self.is_leaf(o)), default=0)
                if depth[node] > DEEPEST and self.kind[node] == "map":
                    self.stored.add(node)

    def _store_values_read_at_several_places(self) -> None:
        """Materialises a value that is read at several places (in a stencil, say), unless recomputing it is cheap.

        Without this, a chain of stencils would be computed from its start, at a number of places that grows with every
        step.
        """
        places: dict[Node, set[tuple[object, ...]]] = {}
        for node in self.graph.nodes:
            if node in self.live and self.kind[node] in ("map", "part", "reduce", "along"):
                frame = node.inputs[0].tensor.ndim if self.kind[node] == "reduce" else computed_type(node).ndim
                reads = self._operands(node, identity(frame))
                while reads:
                    operand, map = reads.pop()
                    if self.is_leaf(operand) or map is ANYWHERE:
                        continue
                    if self.kind[operand] == "move":
                        reads += self._operands(operand, map)
                    else:
                        places.setdefault(operand, set()).add(map_key(map))
        costs: dict[Node, float] = {}
        for node in self.graph.nodes:  # from the start: a materialised value makes its users cheaper
            if node not in self.live or self.is_leaf(node):
                continue
            own = cost_of(node) if self.kind[node] == "map" else 0.0
            costs[node] = own + sum(costs.get(operand, 0.0) for operand in dict.fromkeys(computed_from(node)))
            if self.kind[node] == "map" and costs[node] * (len(places.get(node, ())) - 1) > STORE_ABOVE:
                self.stored.add(node)
                costs[node] = 0.0

    def _separate_silent_values(self) -> None:
        """Materialises values where a kernel would compute nodes that report conditions beside silent ones.

        A processor's flags do not tell which operation has set them. Silent operations that wrap or round, as sums and
        products, may stay: they set flags where their operands are infinite or very large alone.
        """
        if not any(node.silent for node in self.graph.nodes):
            return
        for node in self.graph.nodes:
            if node not in self.live or self.kind[node] not in ("map", "move", "part", "reduce", "along"):
                continue
            own = self._reports(node)
            inlined = [operand for operand in dict.fromkeys(computed_from(node)) if not self.is_leaf(operand)]
            found = own.union(*(self.reports.get(operand, frozenset()) for operand in inlined))
            if len(found) > 1:
                for operand in inlined:
                    self._need_array(operand)
                found = own
            self.reports[node] = found

    def _reports(self, node: Node) -> frozenset[bool]:
        """Whether a node's conditions are reported, or are to be kept silent; empty where it sets no flags."""
        if self.kind[node] == "move" or not sets_flags(node):
            return frozenset()
        return frozenset((not node.silent,)) if not node.silent or node.op.effects.signals == "always" else frozenset()

    def _place(self, step: Step, node: Node) -> None:
        self.steps.append(step)
        self.step_of[node] = step
        self.buffers[node] = Buffer(node, node.name)

    def _steps_of(self, nodes: Iterable[Node]) -> set[Step]:
        return {self.step_of[node] for node in nodes if node in self.step_of}

    # -- groups ---------------------------------------------------------------------------------------------------
    def is_leaf(self, node: Node) -> bool:
        """Whether kernels read ``node`` from memory (or have it as a member)."""
        kind = self.kind[node]
        own = kind in ("input", "opaque", "routine", "part", "reduce", "along", "reshape")
        return own or node in self.stored or node in self.arrays

    def leaves(self, node: Node, map: Map) -> list[tuple[Node, Map]]:
        """The leaves that ``node``, read at ``map``, depends on, and the maps at which they are read."""
        found: dict[tuple[object, ...], tuple[Node, Map]] = {}
        seen: set[tuple[object, ...]] = set()
        left = self._operands(node, map)[::-1]
        while left:
            node, map = left.pop()
            key = (node, *map_key(map))
            if key in seen:
                continue
            seen.add(key)
            if self.is_leaf(node) or map is ANYWHERE:
                found[key] = (node, map)
            else:
                left += self._operands(node, map)[::-1]
        return list(found.values())

    def _operands(self, node: Node, map: Map) -> list[tuple[Node, Map]]:
        if self.kind[node] == "move":
            inner = through(node, map)
            if inner is None:
                raise NotAffine(node)
            return [(node.inputs[0], inner)]
        if self.kind[node] in ("reduce", "along"):
            return [(node.inputs[0], map)]
        if node.op is ops.MATMUL:
            return [pair for maps in products.places(node, map) for pair in zip(node.inputs, maps, strict=True)]
        if node.op is ops.CALL:
            return inverses.places(node, map)
        found = [(operand, operand_map(node, operand, map)) for operand in computed_from(node)]
        return [(node.inputs[0], ANYWHERE), *found] if node.op in ANYWHERE_IN else found

    def _join(self, node: Node) -> None:
        """Adds a materialised node or a reduction to a group."""
        reduce = self.kind[node] == "reduce"
        base = self.step_of.get(node.inputs[0]) if replaces_part(node) else None
        self.earlier = {base, *steps_before(base)} if base is not None else set()
        self.leaves_of.clear()
        for step in reversed(self.groups):
            if self._joins(node, step, reduce):
                break
        else:
            type = computed_type(node)
            step = Step("kernel", group=Group(type.shape), after=set(), alone=node in self.alone)
            group = step.group
            assert group is not None
            if reduce:
                operand = node.inputs[0].tensor
                axis = node.attrs["axis"]
                group.shape, group.reduced = operand.shape, axis if isinstance(axis, tuple) else (axis,)
                group.order = k_order([operand], operand.shape).order
            else:
                group.order = type.layout.order
                group.along = (node.attrs["axis"],) if self.kind[node] == "along" else ()
            self.groups.append(step)
            self.steps.append(step)
        assert step.group is not None
        step.group.members.append(node)
        self.step_of[node] = step
        self.buffers[node] = Buffer(node, node.name)
        waits = [leaf for leaf, _ in self._leaves_in(node, step.group)]
        step.group.sources.update(waits)
        if replaces_part(node):
            waits.append(node.inputs[0])
        step.after |= {other for other in self._steps_of(waits) if other is not step}

    def _leaves_in(self, node: Node, group: Group) -> list[tuple[Node, Map]]:
        map = identity(len(group.shape)) if self.kind[node] == "reduce" else group.map_of(node)
        assert map is not None
        key = map_key(map)
        if key not in self.leaves_of:
            leaves = self.leaves_of[key] = self.leaves(node, map)
            for step in self._steps_of(leaf for leaf, _ in leaves):
                if step not in self.earlier:  # else the steps before it are known, too
                    self.earlier |= steps_before(step)
        return self.leaves_of[key]

    def _joins(self, node: Node, step: Step, reduce: bool) -> bool:
        group = step.group
        assert group is not None
        if step in self.earlier or len(group.members) >= MOST_MEMBERS or step.alone or node in self.alone:
            return False
        if group.along or self.kind[node] == "along":
            return False
        if node.op in IN_PLACE or group.members[0].op in IN_PLACE:
            return False
        if self.reports and len(frozenset().union(*(self.reports[other] for other in (node, *group.members)))) > 1:
            return False
        if any(self._splits(node, other) or self._splits(other, node) for other in group.members):
            return False
        type = computed_type(node)
        row_level = False
        trial = Group(group.shape, group.reduced, group.members, group.order)
        if reduce:
            axis = node.attrs["axis"]
            reduced = axis if isinstance(axis, tuple) else (axis,)
            if not same_shape(node.inputs[0].tensor.shape, group.shape):
                return False
            if group.reduced != reduced:
                if group.reduced:
                    return False
                trial.reduced = reduced
                trial.order = k_order([node.inputs[0].tensor], group.shape).order
        elif same_shape(type.shape, group.shape):
            order = [a for a in type.layout.order if not is_one(group.shape[a])]
            if not group.reduced and order != [a for a in group.order if not is_one(group.shape[a])]:
                return False
        elif group.row_map(type) is not None:
            row_level = True
        else:
            return False
        leaves = self._leaves_in(node, trial)
        if step in self.earlier:
            return False
        related = False
        mine = group.sources.union(group.members)
        for leaf, map in leaves:
            if leaf in mine:
                related = True
            if leaf in group.members:
                if not trial.fits(leaf, map):
                    return False
                if trial.is_full and not row_level and self._row_level(leaf, trial):
                    return False
        if row_level and not any(leaf in group.members for leaf, _ in leaves):
            return False
        if not related and hint(product(group.shape)) > SMALL:
            return False
        group.reduced, group.order = trial.reduced, trial.order
        return True

    def _splits(self, total: Node, value: Node) -> bool:
        """Whether a sum over outer axes and a stored value are better computed one after the other.

        The innermost axis is short, and the value is not computed from whole rows of the two innermost axes: side by
        side, rows fill vectors, but a sum needs them along an axis.
        """
        if self.kind[total] != "reduce" or self.kind[value] != "map":
            return False
        type, axis = value.tensor, total.attrs["axis"]
        if type.ndim < 3:
            return False
        *_, outer, last = type.layout.order
        size = type.shape[last]
        if last in (axis if isinstance(axis, tuple) else (axis,)) or not isinstance(size, int) or size >= SHORT:
            return False
        if not same_shape(type.shape, total.inputs[0].tensor.shape):
            return False
        for _, map in self.leaves(value, identity(type.ndim)):
            moves = {axis for index in map for axis, _ in index.terms} if map is not ANYWHERE else set()
            if (outer in moves) != (last in moves):
                return True
        return False

    def _row_level(self, member: Node, group: Group) -> bool:
        return self.kind[member] == "reduce" or not same_shape(member.tensor.shape, group.shape)

    # -- expensive values ------------------------------------------------------------------------------------------
    def _store_expensive_values(self) -> None:
        """Raises _MustMaterialise where several kernels, or one many times, would recompute an expensive value."""
        where: dict[Node, set[Step]] = {}
        wish: set[Node] = set()
        costs: dict[Node, float] = {}
        for node in self.graph.nodes:
            if node in self.live and not self.is_leaf(node):
                own = cost_of(node) if self.kind[node] == "map" else 0.0
                costs[node] = own + sum(costs.get(o, 0.0) for o in dict.fromkeys(computed_from(node)))
        for step in self.groups:
            assert step.group is not None
            points = hint(product(step.group.shape))
            visited: set[Node] = set()
            left = [operand for member in step.group.members for operand in computed_from(member)]
            while left:
                node = left.pop()
                if node in visited or self.is_leaf(node):
                    continue
                visited.add(node)
                if self.kind[node] == "map" and node.tensor.shape and costs[node] > STORE_ABOVE:
                    where.setdefault(node, set()).add(step)
                    size = hint(node.tensor.size)
                    if len(where[node]) > 1 or (points >= 2 * size > 2 and node in self._read_inside(step)):
                        wish.add(self._smaller(node, costs))
                        continue
                left += computed_from(node)
        if wish:
            raise _MustMaterialise(wish)

    def _smaller(self, node: Node, costs: Mapping[Node, float]) -> Node:
        """What to materialise in place of an expensive value: a smaller one that makes it cheap, where there is one."""
        left, seen = [*computed_from(node)], set[Node]()
        while left:
            part = left.pop()
            if part in seen or self.is_leaf(part):
                continue
            seen.add(part)
            if not costs[node] - costs[part] <= STORE_ABOVE < costs[part]:
                continue  # what it is computed from costs less
            if self.kind[part] == "map" and 2 * hint(part.tensor.size) <= hint(node.tensor.size):
                return part
            left += computed_from(part)
        return node

    def _read_inside(self, step: Step) -> set[Node]:
        """The values that are computed in the innermost loops, not once a row."""
        if step in self.read_inside:
            return self.read_inside[step]
        found = self.read_inside[step] = set()
        group = step.group
        assert group is not None
        inner = set(group.reduced or group.order[-1:])
        reads: list[tuple[Node, Map]] = []
        for member in group.members:
            map = identity(len(group.shape)) if self.kind[member] == "reduce" else group.map_of(member)
            assert map is not None
            reads += self._operands(member, map)
        seen: set[tuple[object, ...]] = set()
        while reads:
            operand, map = reads.pop()
            key = (operand, *map_key(map))
            if key in seen or self.is_leaf(operand) or map is ANYWHERE:
                continue
            seen.add(key)
            if any(axis in inner for index in map for axis, _ in index.terms):
                found.add(operand)
            reads += self._operands(operand, map)
        return found

    # -- the result -----------------------------------------------------------------------------------------------
    def finish(self, checks_indices_first: bool) -> Schedule:
        """Lowers the groups, places the stores, and orders the steps."""
        outside: set[Node] = set(_roots(self.graph))
        for step in self.steps:
            if step.group is None:
                outside.update(step.reads)
                continue
            outside.update(leaf for leaf in step.group.sources if self.step_of.get(leaf) is not step)
            for member in step.group.members:
                if replaces_part(member):
                    outside.update((member, member.inputs[0]))
        number = 0
        for step in in_order(self.steps):
            if step.kind == "kernel" and step.group is None:
                assert step.node is not None
                routine = routines.routine_of(step.node)
                assert routine is not None
                name = f"kernel_{number}_{routine.ufunc.rpartition('.')[2]}"
                step.kernel = routines.kernel_of(step.node, routine, name, self.buffers.__getitem__)
                number += 1
            if step.group is None:
                continue
            members = step.group.members
            outputs = [node for node in members if node in outside]
            name = f"kernel_{number}_{'_'.join(dict.fromkeys(_summary(step.group, members)))}"[:60]
            number += 1
            old = {node: Buffer(self.old[node], self.old[node].name) for node in outputs if node in self.old}
            step.kernel = lower(step.group, name, self.is_leaf, self.buffers.__getitem__, outputs, old)
            step.reads = [b.node for b in step.kernel.buffers if b.node not in members and b.node not in outputs]
            based = [n.inputs[0] for n in outputs if replaces_part(n) and keeps_elements(n)]
            step.reads += [base for base in based if base not in step.reads]
            step.writes = [*outputs, *(buffer.node for buffer in old.values())]
        kept = [step for step in self.steps if step.group is None or step.writes]
        placed = place(self.graph, kept, set(self.alone), set(self.old), self.final, checks_indices_first)
        first = in_order([step for step in kept if step not in placed.late])
        last = [step for step in in_order(kept) if step in placed.late]
        undo = tuple((node, self.old[node]) for node in placed.undone)
        return Schedule(self.graph, first + last, self.buffers, len(first), placed.rewritten, undo, placed.saved)


def _old(node: Node) -> Node:
    """The elements that an assignment replaces, as an array of their own."""
    part = part_of(node)
    return Node(ops.POSITIVE, (), {}, TensorType(part.dtype, part.shape, like_order(part)), f"old_{node.name}")


def _kind_of_assignment(node: Node) -> str:
    """How an assignment is done: all of it computed, a part stored, or by the library."""
    try:
        if not replaces_part(node):
            return "map"
        if any(op in ("real", "imag") for op, _ in node.attrs["path"]):
            return "opaque"
        return "opaque" if target_map(node, identity(computed_type(node).ndim)) is None else "part"
    except UnprovableSizeError:
        return "opaque"


def _reads_all(node: Node, operand: Node) -> bool:
    """Whether computing all of ``node`` reads all elements of an operand. A broadcast to an empty shape reads none."""
    arrays = isinstance(node.type, TensorType) and isinstance(operand.type, TensorType)
    if not arrays or node.op.kind == "reduction":
        return True
    shape = computed_type(node).shape
    if node.op not in (ops.INDEX, ops.DIAGONAL) and not may_be_empty(shape):
        return True
    return [str(size) for size in shape] == [str(size) for size in operand.tensor.shape]


def _cover(node: Node, parts: Sequence[Node]) -> bool:
    """Whether indices of ``node``, which differ along one axis at most, together read all its elements."""
    shape = node.tensor.shape
    boxes = []
    for part in parts:
        items = [item for item in expand_key(part.attrs["key"], len(shape)) if item is not None]
        bounds = [
            slice_bounds(item, size) if isinstance(item, slice) else (item, item + 1, 1)
            for item, size in zip(items, shape, strict=True)
        ]
        if all(isinstance(n, int) for row in bounds for n in row) and all(abs(step) == 1 for _, _, step in bounds):
            boxes.append([(a, b) if step == 1 else (b + 1, a + 1) for a, b, step in bounds])
    for axis in range(len(shape)):
        reached: Any = 0
        for box in sorted(boxes, key=lambda box: box[axis]):
            if all(same_shape(box[other], (0, shape[other])) for other in range(len(shape)) if other != axis):
                reached = max(reached, box[axis][1]) if box[axis][0] <= reached else reached
        if isinstance(shape[axis], int) and reached >= shape[axis]:
            return True
    return False


def _summary(group: Group, members: list[Node]) -> list[str]:
    return [node.op.name for node in members[-3:]]


def _is_affine(node: Node) -> bool:
    try:
        return through(node, identity(node.tensor.ndim)) is not None
    except UnprovableSizeError:
        return False


def _roots(graph: Graph) -> list[Node]:
    """The live roots: the outputs, and nodes without users.

    The transforms leave an unused node only where computing it may warn or raise, as NumPy would.
    """
    read = {operand for node in graph.nodes for operand in node.inputs}
    return [*graph.outputs, *(node for node in graph.nodes if node not in read)]


__all__ = ["KernelValue", "Schedule", "Step", "schedule"]
