"""Reverse mode: the cotangents of what a part of a graph was computed from.

Input: a graph, the place in it where the part begins, its outputs with their cotangents, and the nodes that are
differentiated.
Output: a node for each of these, appended to the graph; None where nothing depends on it.
Why: the derivative is part of the same graph, so whatever fuses, caches and shows graphs does that for it too.

The walk is the textbook's (Griewank and Walther, Evaluating Derivatives, 2008, chapter 3): nodes that depend on what
is differentiated are active; from the last to the first, each active node hands its cotangent to its operands.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tcompile.errors import DerivativeError
from tcompile.graph import ops
from tcompile.graph.ir import Graph, Node
from tcompile.graph.op import Op
from tcompile.graph.types import TensorType
from tcompile.transforms.autodiff.parts import is_zeros, together, writes_zeros
from tcompile.transforms.autodiff.table import COMPLEX, COMPLEX_CALLS, NO_VJP, VJPS, Part, Vjp
from tcompile.transforms.emit import CUSTOM, STOPPED, CustomRule, Emit, Library, is_complex

Loop = Callable[["Walk", Node], None]
LOOPS: dict[Op, Loop] = {}  # operations with several results and cotangents


class Walk:
    """One reverse walk over ``nodes``.

    ``splits_exit_loops``: loops with exits are split into segments, where their rows may have no room.
    """

    def __init__(
        self, graph: Graph, nodes: Sequence[Node], sources: Sequence[Node], library: Library, splits_exit_loops: bool
    ) -> None:
        self.e = Emit(graph, library)
        self.splits_exit_loops = splits_exit_loops
        self.nodes = list(nodes)
        self.active: set[Node] = set()
        self.cotangents: dict[Node, Node] = {}
        self.parts: dict[Node, list[Part]] = {}  # those of some elements of a node, not yet added
        self.results: dict[Node, dict[int, Node]] = {}  # cotangents of the results of nodes with several
        self.done: set[CustomRule] = set()
        known = set(sources)
        for node in self.nodes:
            custom = CUSTOM.get(node)
            if any(o in known for o in (node.inputs if custom is None else custom.inputs)) and _carries(node):
                known.add(node)
        self.active = known

    def add(self, node: Node, g: Node) -> None:
        """Adds a part of a node's cotangent, where the node is active."""
        if node not in self.active:
            return
        held = self.cotangents.get(node)
        self.cotangents[node] = g if held is None else self._sum(held, g)

    def _sum(self, held: Node, g: Node) -> Node:
        """The sum of two cotangents. What is added to zeros, element by element, is added to the other one."""
        if g.op is ops.COMBINE and g.attrs["ufunc"] == "add" and is_zeros(g.inputs[0]):
            return self.e(ops.COMBINE, held, *g.operands[1:], **g.attrs)
        return self.e.add(held, g)

    def total(self, node: Node) -> Node | None:
        """The cotangent of a node, all parts together; None where it is zero."""
        parts = self.parts.pop(node, None)
        if parts is not None:
            held = self.cotangents.get(node)
            self.cotangents[node] = together(self.e, node, held, parts)
        return self.cotangents.get(node)

    def has_zeros(self, node: Node) -> bool:
        """Whether the cotangent of a node was set to zero in some places."""
        held = self.cotangents.get(node)
        return held is not None and writes_zeros(held)

    def run(self) -> None:
        """Goes from the last node to the first."""
        for node in reversed(self.nodes):
            self.e.location = node.location
            if node in self.results:
                rule = LOOPS.get(node.op)
                if rule is None:
                    raise DerivativeError(self.why(node))
                rule(self, node)
                continue
            if node in CUSTOM:
                self._custom(CUSTOM[node])
                continue
            g = self.total(node)
            if g is None or node not in self.active:
                continue
            if node.op is ops.GET:
                self._several(node, g)
                continue
            rule_of = VJPS.get(node.op)
            if rule_of is None:
                raise DerivativeError(self.why(node))
            self._propagate(node, rule_of, g)

    def _propagate(self, node: Node, rule: Vjp, g: Node) -> None:
        try:
            if any(is_complex(o) for o in (node, *node.inputs) if o in self.active) and not _is_known(node):
                name = node.attrs.get("target", node.op.name)
                raise DerivativeError(f"{name} has no derivative rule for complex numbers")
            pulls = rule(self.e, node, g)
            pairs = list(zip(node.operands, pulls, strict=True))
            if node.op.memory is ops.Aliasing.WRITES:  # what was written is read before zeros are written in its place
                pairs.reverse()
            for operand, pull in pairs:
                if pull is not None and isinstance(operand, Node) and operand in self.active:
                    made = pull()
                    if isinstance(made, Part):
                        g = self.e.cast(made.g, operand.tensor.dtype)
                        self.parts.setdefault(operand, []).append(Part(made.path, g))
                    else:
                        self.add(operand, self.e.cast(made, operand.tensor.dtype))
        except DerivativeError as error:
            raise error if " (line " in str(error) else DerivativeError(_why(node, str(error))) from error

    def _custom(self, rule: CustomRule) -> None:
        """The user's rule, at the last of its results."""
        given = [self.total(node) for node in rule.results]
        if rule in self.done or all(g is None for g in given):
            return
        self.done.add(rule)
        pulled = rule.pull([
            self.e.full(node, 0.0) if g is None else g for node, g in zip(rule.results, given, strict=True)
        ])  # fmt: skip
        for node, g in zip(rule.inputs, pulled, strict=True):
            if g is not None and node in self.active:
                self.add(node, self.e.cast(g, node.tensor.dtype))

    def _several(self, node: Node, g: Node) -> None:
        held, index = self.results.setdefault(node.inputs[0], {}), node.attrs["index"]
        held[index] = g if index not in held else self.e.add(held[index], g)  # several nodes may read one result

    def why(self, node: Node, reason: str = "") -> str:
        """Why a node has no derivative, with the user's line."""
        return _why(node, reason)


def _why(node: Node, reason: str = "") -> str:
    name = node.attrs.get("target", node.op.name)
    reason = reason or NO_VJP.get(node.op, f"{name} has no derivative rule")
    where = node.users_location
    return reason if where is None else f"{reason} (line {where.line}: {where.text.strip()})"


def _is_known(node: Node) -> bool:
    """Whether a node's rule holds for complex numbers."""
    return node.op in COMPLEX or (node.op is ops.CALL and node.attrs["target"] in COMPLEX_CALLS)


def _carries(node: Node) -> bool:
    """Whether a node's result can depend smoothly on its operands."""
    if node in STOPPED:
        return False
    return may_carry(node)


def may_carry(node: Node) -> bool:
    """Whether a node has numbers that have derivatives."""
    return isinstance(node.type, tuple) or (isinstance(node.type, TensorType) and node.type.dtype.kind in "fc")


def backward(
    graph: Graph, nodes: Sequence[Node], outputs: Sequence[tuple[Node, Node]], sources: Sequence[Node],
    library: Library, splits_exit_loops: bool,
) -> list[Node | None]:  # fmt: skip
    """The cotangents of ``sources``, appended to ``graph``.

    ``nodes`` are those of the differentiated part, in order; ``outputs`` are pairs of a node and its cotangent;
    ``library`` adds calls of NumPy's functions; ``splits_exit_loops`` is as in ``Walk``. Raises DerivativeError where a
    node between has no rule, with the user's line.
    """
    walk = Walk(graph, nodes, sources, library, splits_exit_loops)
    for node, g in outputs:
        walk.add(node, g)
    walk.run()
    # Where zeros are written comes last, after what reads these places: so a loop's iteration may write in place.
    found = {source: walk.total(source) for source in sorted(sources, key=walk.has_zeros)}
    return [found[source] for source in sources]


__all__ = ["LOOPS", "Walk", "backward", "may_carry"]
