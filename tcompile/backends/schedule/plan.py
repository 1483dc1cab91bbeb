"""The schedule: steps in order, with their dependences.

Input: nothing; these are the records that ``fusion`` fills in.
Output: ``Step`` and ``Schedule``.
Why: fusion, placement and the code generators share them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field
from typing import Literal, TypeAlias

from tcompile.backends.schedule.kernel import Buffer, Kernel, size_of
from tcompile.backends.schedule.lower import Group
from tcompile.graph import Graph, Node, ops
from tcompile.graph.ops.writing import Path
from tcompile.graph.sizes import hint
from tcompile.records import dataclass

Target: TypeAlias = Literal["base", "copy"]


@dataclass(eq=False)
class Step:
    """One step: a ``kernel``, a library ``call`` of ``node``, a ``view`` of another array (``node``, a view op), or a
    scalar ``loop`` for which the code generator has a function.

    ``onto`` says where an ``assign`` node is stored: in the memory of its base, or of a copy; or, with ``base``, which
    arrays a loop writes in place. No other node joins a kernel that runs ``alone``.
    """

    kind: Literal["kernel", "call", "view", "loop"]
    node: Node | None = None
    kernel: Kernel | None = None
    group: Group | None = None
    after: set[Step] = field(default_factory=set)
    reads: list[Node] = field(default_factory=list)
    writes: list[Node] = field(default_factory=list)
    onto: dict[Node, Target] = field(default_factory=dict)
    alone: bool = False


@dataclass
class Schedule:
    """The steps in order, and the arrays: graph inputs, and what the steps write.

    From step number ``last`` on, arrays of the caller are written: no later step may need their old elements for a
    replay. Where ``rewritten`` holds, plain Python writes the same elements again before it reads them, so that a
    replay is still possible if it runs to the end. For any other replay, the elements that the assignments in ``undo``
    have replaced are restored, last one first: each is saved in the array beside it. Where scalar loops write, the
    parts of the caller's arrays in ``saved`` are copied before, and restored after any error.
    """

    graph: Graph
    steps: list[Step]
    buffers: dict[Node, Buffer]
    last: int
    rewritten: bool = False
    undo: tuple[tuple[Node, Node], ...] = ()
    saved: tuple[tuple[Node, Path], ...] = ()

    @property
    def writes_once(self) -> bool:
        """Whether the graph is a single in-place operation whose kernel would save old elements, or a move within one
        array, which the library does at once.
        """
        done = [node.op for node in self.graph.nodes if node.op.kind != "view"]
        if len(done) == 2 and set(done) == {ops.ASSIGN, ops.ORDERED}:
            return len(self.kernels) == 2
        kinds = [op.kind for op in done]
        return len(self.undo) == 1 and sorted(kinds) == ["opaque", "pointwise"] and len(self.kernels) == 1

    @property
    def kernels(self) -> list[Kernel]:
        """The fused kernels, in order."""
        return [step.kernel for step in self.steps if step.kernel is not None]

    def computes_few_numbers(self, most: int) -> bool:
        """Whether the kernels compute single numbers only, in ``most`` operations or fewer."""
        nodes = {value.node for kernel in self.kernels for value in kernel.values if value.operands}
        nodes.update(node for kernel in self.kernels for node in kernel.nodes)
        return len(nodes) <= most and all(hint(size_of(kernel.axes)) <= 1 for kernel in self.kernels)


def steps_before(step: Step) -> set[Step]:
    """All steps that ``step`` depends on."""
    seen: set[Step] = set()
    stack = list(step.after)
    while stack:
        current = stack.pop()
        if current not in seen:
            seen.add(current)
            stack.extend(current.after)
    return seen - {step}


def in_order(steps: Sequence[Step]) -> list[Step]:
    """Sorts steps topologically, otherwise in the order in which they were made."""
    numbers = {step: number for number, step in enumerate(steps)}
    ordered: dict[Step, None] = {}
    met: set[Step] = set()
    left = list(reversed(steps))
    while left:
        step = left.pop()
        if step in met:
            ordered[step] = None
            continue
        met.add(step)
        left.append(step)  # visited again after its dependences
        left += sorted((s for s in step.after if s in numbers and s not in met), key=lambda s: -numbers[s])
    return list(ordered)
