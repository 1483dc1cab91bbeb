"""Placement of stores: assignments and scalar loops write in place, or into a copy of their base.

Input: the steps of a schedule, lowered.
Output: for each ``assign``, and each array that a loop writes, its target; new dependences between steps; and the steps
that write arrays of the caller.
Why: the graph is pure, so a written array is another value. Both can share memory only where all reads of the first
come before the write.

An array of the caller is written only when no step can fail any more. After the write, plain Python could not take over
(to warn, or to raise), with two exceptions. It may write the same elements again before it reads any of them; or the
kernels save the old elements, so that they can be restored. A scalar loop may always replay, and saves nothing: the
parts that it and the steps around it write are copied before.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tcompile.backends.schedule.disjoint import disjoint
from tcompile.backends.schedule.kernel import Store, same_distance
from tcompile.backends.schedule.kernel_ops import GATHER, LOAD, NUMBER, SCATTER, Operation
from tcompile.backends.schedule.lower import keeps_elements, replaces_part
from tcompile.backends.schedule.plan import Step, in_order, steps_before
from tcompile.graph import Graph, Node, SymInt, ops
from tcompile.graph.op import Aliasing
from tcompile.graph.ops.gathering import IN_PLACE
from tcompile.graph.ops.scalar_loop import written_arrays, written_roots
from tcompile.graph.ops.writing import Path
from tcompile.graph.signals import may_signal
from tcompile.records import dataclass


class Separate(Exception):
    """These assignments need separate kernels, before others: computing them reads written elements, or may signal."""

    def __init__(self, nodes: set[Node]) -> None:
        super().__init__("values that are stored before they are assigned")
        self.nodes = nodes


class Keep(Exception):
    """These assignments should save the elements that they replace, so that they can be restored."""

    def __init__(self, nodes: set[Node]) -> None:
        super().__init__("elements that are kept")
        self.nodes = nodes


@dataclass(frozen=True)
class WritePlan:
    """The steps that write arrays of the caller, or depend on one that does.

    ``rewritten``: whether plain Python would write the same elements again; ``undone``: the assignments whose old
    elements are restored before a replay, in the order in which they are stored; ``saved``: the parts of inputs that
    are copied before anything is written.
    """

    late: set[Step]
    rewritten: bool
    undone: tuple[Node, ...] = ()
    saved: tuple[tuple[Node, Path], ...] = ()


def place(
    graph: Graph, steps: Sequence[Step], alone: set[Node], kept: set[Node], final: bool, checks_indices_first: bool
) -> WritePlan:
    """Decides where each assignment is stored.

    ``alone`` are the assignments that already have a kernel of their own, ``kept`` those that save the elements they
    replace. ``checks_indices_first``: scatter kernels check all indices before the first write. Raises Separate or Keep
    where others should, unless this is the ``final`` try.
    """
    return _Placer(graph, steps, alone, kept, final, checks_indices_first).run()


class _Placer:
    """The placement under construction."""

    def __init__(
        self,
        graph: Graph,
        steps: Sequence[Step],
        alone: set[Node],
        kept: set[Node],
        final: bool,
        checks_indices_first: bool,
    ) -> None:
        self.checks_indices_first = checks_indices_first
        self.kept = kept
        self.graph = graph
        self.steps = steps
        self.alone = alone
        self.final = final
        self.step_of = {node: step for step in steps for node in step.writes}
        self._shown: dict[Node, frozenset[Node]] = {}
        self.ends = self._memories(graph.outputs)
        self.chains: list[list[Node]] = []
        self.wish: set[Node] = set()
        self.keep: set[Node] = set()

    def run(self) -> WritePlan:
        found = [
            self._chain(self.graph.outputs[output], self.graph.inputs[number])
            for output, number in self.graph.updates.items()
        ]
        for chain in sorted(found, key=_has_loop, reverse=True):  # these decide how what is written is kept
            if chain and self._update(chain):
                self.chains.append(chain)
        given = {node for chain in self.chains for node in chain}
        for step in self.steps:
            for node in step.writes:
                if step.kernel is not None and replaces_part(node):
                    base = node.inputs[0]
                    if not keeps_elements(node):
                        continue
                    kept = node in given or (self._own(base) and self._fits_without_late_signals(node, step))
                    step.onto[node] = "base" if kept else "copy"
                elif node in given:
                    self._writer(node).onto[node] = "base"
        if self.keep and not self.final:
            raise Keep(self.keep)
        if self.wish and not self.final:
            raise Separate(self.wish)
        if self.graph.scratch:
            return WritePlan(set(), False)
        late = self._late(self.chains)
        if any(map(_has_loop, self.chains)):
            return WritePlan(set(late), False, saved=self._saved())
        signals = self._may_replay_after_a_write(late, self.chains)
        if not signals or not given <= self.kept:
            return WritePlan(set(late), signals)
        order = [node for step in in_order(self.steps) for node in step.writes if node in given]
        return WritePlan(set(late), False, tuple(order))

    def _chain(self, last: Node, base: Node) -> list[Node]:
        """The assignments and loops that lead from an input to its updated value, in order; empty if other nodes do."""
        chain = []
        node = last
        while node is not base:
            before = self._base(node)
            if before is None:
                return []
            chain.append(node)
            node = before
        return chain[::-1]

    def _base(self, node: Node) -> Node | None:
        """The array that an assignment of a kernel, or a scalar loop, has written in place; None where neither has made
        it.
        """
        if node.op is ops.ASSIGN or node.op in IN_PLACE:
            step = self.step_of.get(node)
            return None if step is None or step.kernel is None else node.inputs[0]
        if not _is_of_loop(node) or self._writer(node).kind != "loop":
            return None
        loop = node.inputs[0]
        written = written_roots(loop.attrs["shows"], loop.attrs["program"])
        number = node.attrs["index"]
        if number >= len(written):
            return None
        base = loop.inputs[written[number]]
        if base.type != node.type:  # a copy has no gaps
            return None
        others = list(loop.inputs)
        others.remove(base)  # once: equal arrays may have become one
        return None if self._memory(base) & self._memories(others) else base  # the others are other memory to the loop

    def _writer(self, node: Node) -> Step:
        """The step that writes an array in a chain."""
        return self.step_of[node.inputs[0] if _is_of_loop(node) else node]

    def _saved(self) -> tuple[tuple[Node, Path], ...]:
        """The parts of inputs that the chains write."""
        found: list[tuple[Node, Path]] = []
        for chain in self.chains:
            first = self._base(chain[0])
            assert first is not None
            for node in chain:
                if not _is_of_loop(node):
                    found.append((first, node.attrs.get("path", ())))
                    continue
                loop, base = node.inputs[0], self._base(node)
                shows = loop.attrs["shows"]
                for number in written_arrays(loop.attrs["program"]):
                    root, path = shows[number]
                    if loop.inputs[root] is base:
                        found.append((first, path))
        whole = {node for node, path in found if not path}
        rows = {(node, repr(path)): (node, path) for node, path in found}  # slices in paths have no hashes
        return tuple(row for row in rows.values() if not row[1] or row[0] not in whole)

    def _late(self, chains: Sequence[Sequence[Node]]) -> list[Step]:
        """The steps that write arrays of the caller, and those that depend on one that does."""
        found = dict.fromkeys(self._writer(node) for chain in chains for node in chain)
        for step in in_order(self.steps) if found else ():
            if not found.keys().isdisjoint(step.after):
                found[step] = None
        return list(found)

    def _update(self, chain: list[Node]) -> bool:
        """Whether assignments can be stored in the caller's array itself."""
        before = {step: set(step.after) for step in self.steps}
        base = self._base(chain[0])
        kept = (
            chain[:-1] if base is None or not self.graph.scratch else [base, *chain[:-1]]
        )  # an iteration may return it
        allowed = not self._memories(kept) & self.ends
        allowed = allowed and all(self._fits(node, self._writer(node)) for node in chain)
        if self.graph.scratch:
            if not allowed:
                self._put_back(before)
            return allowed
        chains = [*self.chains, chain]
        late = self._late(chains)
        again = all(map(self._is_written_first, chains)) and not self._may_raise_before_the_last_write(late, chains)
        if any(map(_is_scattered, chain)) and not self.checks_indices_first and self.graph.device == "cpu":
            allowed = False
        if (
            allowed
            and self._may_replay_after_a_write(late, chains)
            and not again
            and not self._can_be_undone(late, chains)
        ):
            assigned = [node for node in chain if not _is_of_loop(node)]
            writers = {self.step_of[node] for node in assigned}
            wish = {node for node in assigned if self._signals(self.step_of[node])} - self.alone
            if not any(self._signals(step) for step in late if step not in writers):
                self.wish |= wish
            allowed = False
        if not allowed:
            self._put_back(before)
        return allowed

    @staticmethod
    def _put_back(before: Mapping[Step, set[Step]]) -> None:
        """Restores the dependences of steps."""
        for step, after in before.items():
            step.after = after

    def _can_be_undone(self, late: Sequence[Step], chains: Sequence[Sequence[Node]]) -> bool:
        """Whether all writes can be undone. Elements that are not saved yet will be at the next try."""
        if any(map(_has_loop, chains)):  # everything is copied before
            nodes = [step.node for step in late if step.node is not None]
            return not any(node.regions or node.op is ops.PYTHON_CALL for node in nodes)
        assigned = {node for chain in chains for node in chain}
        if any(step.kernel is None and step.kind != "view" for step in late):
            return False
        if any(map(_is_scattered, assigned)):
            return False
        if any(self.step_of.get(n.inputs[0]) is self.step_of[n] or _varies(n.attrs["path"]) for n in assigned):
            return False
        self.keep |= assigned - self.kept
        return not (self.final and self.keep)

    def _may_replay_after_a_write(self, late: Sequence[Step], chains: Sequence[Sequence[Node]]) -> bool:
        """Whether a step may need a replay after an array of the caller may have been written.

        A scatter kernel that checks all indices before its first write needs none, if it is the only one that writes.
        """
        writers = {self._writer(node) for chain in chains for node in chain}
        first = {step for step in writers if len(writers) == 1 and any(map(_is_scattered, step.writes))}
        return any(self._signals(step) for step in late if step not in first)

    def _may_raise_before_the_last_write(self, late: Sequence[Step], chains: Sequence[Sequence[Node]]) -> bool:
        """Whether an exception in one of the steps may end plain Python before it has done all of the assignments."""
        order = {node: position for position, node in enumerate(self.graph.nodes)}
        last = max(order[node] for chain in chains for node in chain)
        return any(order[node] < last for step in late for node in _raising(step))

    def _is_written_first(self, chain: Sequence[Node]) -> bool:
        """Whether all reads of the caller's array come after all of the assignments."""
        held = {self._base(chain[0]), *chain[:-1]}
        copied = [
            node.inputs[0] for step in self.steps for node in step.writes
            if step.kernel is not None and replaces_part(node) and node not in chain
        ]  # fmt: skip
        if self._memories(copied) & held:
            return False
        return not any(step.kind != "view" and self._read_by(step) & held for step in self.steps)

    def _own(self, base: Node) -> bool:
        """Whether a kernel or a loop has made the array, and no result of the graph is a view of it."""
        step = self.step_of.get(base)
        made = step is not None and (step.kernel is not None or self._base(base) is not None)
        return made and base not in self.ends

    def _fits_without_late_signals(self, node: Node, step: Step) -> bool:
        """The same as ``_fits``, and no other step that may replay comes to depend on a write to the caller's arrays.

        Whether these writes can be undone was decided for the steps that came after them then.
        """
        if not self.chains or self.graph.scratch:
            return self._fits(node, step)
        before, late = {step: set(step.after) for step in self.steps}, set(self._late(self.chains))
        fits = self._fits(node, step)
        if fits and any(map(self._signals, set(self._late(self.chains)) - late)):
            self._put_back(before)
            return False
        return fits

    def _fits(self, node: Node, step: Step) -> bool:
        """Whether all reads of the base's old elements can come before the write. Adds the dependences."""
        base = self._base(node)
        assert base is not None
        if step.kernel is not None:
            if any(other is not node and replaces_part(other) and other.inputs[0] is base for other in step.writes):
                return False  # one kernel makes two arrays of it
            (store,) = (s for s in step.kernel.stores if s.access.buffer.node is node)
            if not self._reads_in_place(step, base, store):
                if not (self.graph.scratch and base.op is ops.INPUT and self._becomes_result(node)):
                    self.wish |= {node} - self.alone
                return False  # a loop has a double buffer then
        readers = [other for other in self.steps if other is not step and base in self._memories(other.reads)]
        if any(step in steps_before(other) for other in readers):
            return False
        step.after.update(readers)
        return True

    def _becomes_result(self, node: Node) -> bool:
        """Whether a result is this array, as later assignments leave it."""
        for result in self.graph.outputs:
            at: Node | None = result
            while at is not None and at is not node:
                at = self._base(at)
            if at is node:
                return True
        return False

    def _reads_in_place(self, step: Step, base: Node, store: Store) -> bool:
        """Whether a kernel reads of the base only elements that it does not write, or the one that it replaces."""
        assert step.kernel is not None
        for value in step.kernel.values:
            access = value.access
            if access is None or base not in self._memories([access.buffer.node]):
                continue
            if access.buffer.node is not base or value.op is GATHER or store.value.op is SCATTER:
                return False
            if disjoint(access, store.access, step.kernel.axes):
                continue
            if step.kernel.reduced:
                return False
            pairs = zip((*access.steps, access.offset), (*store.access.steps, store.access.offset), strict=True)
            if not all(same_distance(one, two) for one, two in pairs):
                return False
        return True

    def _signals(self, step: Step) -> bool:
        """Whether a step may need a replay. Kernels on a GPU's own arrays report nothing."""
        if step.kernel is None:
            return step.kind == "loop" or (step.kind == "call" and not _is_of_loop(step.node))
        computed = {v.node for v in step.kernel.values if v.node is not None and v.op not in (LOAD, NUMBER)}
        return self.graph.device == "cpu" and any(map(may_signal, computed))

    def _read_by(self, step: Step) -> frozenset[Node]:
        """The memories of which a step reads elements; an assignment does not read the elements that it keeps."""
        if step.kernel is None:
            return self._memories(step.reads)
        read = [value.access.buffer.node for value in step.kernel.values if value.access is not None]
        return self._memories([*read, *(node.inputs[0] for node in step.writes if node.op is ops.COMBINE)])

    def _memories(self, nodes: Sequence[Node]) -> frozenset[Node]:
        """The nodes whose memory any of these may alias."""
        return frozenset().union(*map(self._memory, nodes))

    def _memory(self, node: Node) -> frozenset[Node]:
        left = [node]
        while node not in self._shown:
            at = left[-1]
            of = self._may_show(at)
            missing = [operand for operand in of if operand not in self._shown]
            if missing:
                left += missing
                continue
            own = frozenset() if at.op.memory is Aliasing.VIEW else frozenset((at,))
            self._shown[left.pop()] = own.union(*(self._shown[operand] for operand in of))
        return self._shown[node]

    def _may_show(self, node: Node) -> Sequence[Node]:
        """The operands of which a value may be a view."""
        step = self.step_of.get(node)
        may_be_view = node.op in (ops.CALL, ops.PYTHON_CALL) and (step is None or step.kernel is None)
        if (node.op.kind in ("view", "control") and not _is_of_loop(node)) or may_be_view:
            return node.inputs
        return ()


def _is_of_loop(node: Node | None) -> bool:
    """Whether it is a result of a scalar loop."""
    return node is not None and node.op is ops.GET and node.inputs[0].op is ops.SCALAR_LOOP


def _is_scattered(node: Node) -> bool:
    """Whether it writes to computed places."""
    return node.op in IN_PLACE


def _has_loop(chain: Sequence[Node]) -> bool:
    return any(map(_is_of_loop, chain))


def _varies(value: Any) -> bool:
    """Whether a path contains sizes that are unknown now."""
    if isinstance(value, slice):
        return _varies((value.start, value.stop, value.step))
    return isinstance(value, SymInt) or (isinstance(value, tuple | list) and any(map(_varies, value)))


# Numbers of Python's own, of which plain Python raises whatever the error state is.
_ERRORS = frozenset[Operation]({GATHER, SCATTER, ops.PYTHON_SQRT, ops.PYTHON_DIVIDE, ops.FINITE})


def _raising(step: Step) -> list[Node]:
    """The nodes that may raise: library calls (also those that kernels make), indices out of range, and functions of
    Python's numbers.
    """
    if step.kernel is not None:
        computed = [(v.op, v.node) for v in step.kernel.values if v.node is not None and v.op not in (LOAD, NUMBER)]
        return [node for op, node in computed if op in _ERRORS or node.op is ops.CALL]
    node = step.node
    if node is None or step.kind != "call" or node.op.kind not in ("opaque", "control"):
        return []
    return [node] if may_signal(node) else []


__all__ = ["Keep", "Separate", "WritePlan", "place"]
