"""The node of a loop, made of the parts of its iteration.

Input: the values that a loop carries, its parts with their graphs, and the flags that end them.
Output: the node, whose results are in the leaves.
Why: tracing a body, and assembling its graphs, are separate tasks.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from tcompile.capture.loops.carried import Carried
from tcompile.capture.semantics.subgraph import Subgraph, control_node, lift
from tcompile.capture.values.constant import Constant
from tcompile.frontends.base import CannotCapture
from tcompile.graph import Node, TensorType, ops
from tcompile.graph.dtypes import INT64
from tcompile.graph.ops.control import is_branch
from tcompile.graph.ops.gathering import IN_PLACE
from tcompile.graph.sizes import Size, symbols_in

if TYPE_CHECKING:
    from tcompile.capture.interpreter.context import Capture

_COUNT = TensorType(INT64, ())


def computes_constants(carried: Carried) -> bool:
    """Whether iterations compute Python numbers from constants and from one another alone."""
    starts = all(isinstance(leaf.kind, type) and _is_constant(leaf.given) for leaf in carried.leaves)
    own = {node for part in carried.parts for node in part.inputs}
    return starts and all(_computes_constants(part.nodes, own, symbols_in(carried.counter)) for part in carried.parts)


def _computes_constants(nodes: Sequence[Node], own: set[Node], counter: set[str]) -> bool:
    for node in nodes:
        if (node.regions and not is_branch(node)) or not symbols_in([*node.operands, *node.attrs.values()]) <= counter:
            return False
        if isinstance(node.type, TensorType) and node.tensor.ndim:  # an array would be computed in each iteration
            return False
        if not all(operand in own or _is_constant(operand) for operand in node.inputs):
            return False
        if not all(_computes_constants(part.nodes, {*own, *part.inputs}, counter) for part in node.regions):
            return False
        own.add(node)
    return True


def _is_constant(node: Node) -> bool:
    return node.op is ops.FULL and node.tensor.ndim == 0 and not node.inputs


def loop_node(
    tx: Capture, carried: Carried, iterations: Size, flags: Sequence[Node], leaves: Sequence[bool], location: Any
) -> Sequence[Node]:
    """Adds the node; returns its results.

    Each part but the last ends with a flag, which leaves the loop or starts its next iteration. Raises CannotCapture
    where a part reads a node of another part that is not carried.
    """
    parts = carried.parts
    regions = []
    own = {node for part in parts for node in (*part.inputs, *part.nodes)}
    for number, part in enumerate(parts):
        part.inputs[1:] = [leaf.inputs[number] for leaf in carried.leaves]
        ends = [leaf.ends[number] for leaf in carried.leaves]
        part.outputs = [*ends, *flags[number : number + 1]]
        part.scratch = True
        written = (place for place, leaf in enumerate(carried.leaves) if leaf.kind in ("memory", "array"))
        part.updates = {place: place + 1 for place in written if _is_written(ends[place])}
        known = {*part.inputs, *part.nodes}
        reads = [*(o for node in part.nodes for o in node.inputs), *part.outputs]
        outer = list(dict.fromkeys(node for node in reads if node not in known))
        if not own.isdisjoint(outer):
            raise CannotCapture("loop-mismatch", "a value is kept from before a test to after it")
        regions.append(Subgraph(part, Constant(None), (), outer=outer))
    outer, passed_on = lift(regions)
    for part, more in zip(parts, passed_on, strict=True):
        part.outputs[len(carried.leaves) : len(carried.leaves)] = more
    for leaf in carried.leaves:
        leaf.result = None
    if not carried.leaves and not any(part.nodes for part in parts) and not flags:
        return ()
    tx.builder.location = location
    given = [*(leaf.given for leaf in carried.leaves), *outer]
    types: list[Any] = [node.type for node in given]
    if flags:
        made = control_node(
            tx, ops.EXIT_LOOP, [0, iterations, *given], [*types, _COUNT, _COUNT], parts,
            leaves=tuple(leaves), least=(None,) * len(parts),
        )  # fmt: skip
    else:
        made = control_node(tx, ops.FORI_LOOP, [0, iterations, *given], types, parts)
    for leaf, node in zip(carried.leaves, made, strict=False):
        leaf.result = node
    return made


def _is_written(node: Node) -> bool:
    """Whether a node is an assignment to another array, or the result of a scalar loop that writes one."""
    return node.op in (ops.ASSIGN, *IN_PLACE) or (node.op is ops.GET and node.inputs[0].op is ops.SCALAR_LOOP)


__all__ = ["loop_node"]
