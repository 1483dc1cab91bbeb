"""Jacobians of captured functions: ``tcompile.jacrev``, ``jacfwd`` and ``hessian``, through ``rows`` and ``columns``.

Input: calls of them with captured functions and arguments.
Output: the function's value and its Jacobian. The function is followed once. Its derivative is added for one stand-in
of a cotangent or tangent, and computed for all unit vectors of a result, or of an argument, in one batch.
Why: the operations of a batched derivative fuse.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tcompile.annotations import jacobians
from tcompile.capture.semantics.special.batching import computed, standing_in
from tcompile.capture.semantics.special.derivatives import (
    Argument,
    Leaf,
    Linear,
    arguments,
    as_kind,
    call,
    constant_of,
    pull_back,
    refuse,
    result_node,
    with_aux,
)
from tcompile.capture.semantics.special.registry import bind, special
from tcompile.capture.semantics.subgraph import flatten, unflatten
from tcompile.capture.values.base import Context, Value
from tcompile.capture.values.constant import Constant
from tcompile.capture.values.container import SequenceValue
from tcompile.frontends.base import Traced
from tcompile.graph import Node
from tcompile.graph.sizes import Size
from tcompile.records import dataclass


@dataclass
class Followed:
    """A function that was followed: its arguments and results, and the nodes between them."""

    chosen: list[Argument]
    several: bool
    result: Value
    more: Value
    nodes: list[Node]

    @property
    def leaves(self) -> list[Leaf]:
        """The leaves of all arguments that are differentiated."""
        return [leaf for argument in self.chosen for leaf in argument.leaves]


def _follow(tx: Context, args: Sequence[Value], kwargs: Mapping[str, Value]) -> Followed:
    names = dict.fromkeys(("function", "args", "kwargs", "numbers", "several", "has_aux"))
    called, given, named, which, several, aux = bind("jacobian", names, args, kwargs)
    chosen, positional, keywords = arguments(tx, given, named, constant_of(tx, which))
    start = len(tx.builder.graph.nodes)
    result = call(tx, called, positional, keywords, chosen)
    result, more = with_aux(tx, result, constant_of(tx, aux))
    return Followed(chosen, constant_of(tx, several), result, more, tx.builder.graph.nodes[start:])


@special(jacobians.rows)
def _rows(tx: Context, function: Constant, args: Sequence[Value], kwargs: Mapping[str, Value]) -> Value:
    done = _follow(tx, args, kwargs)
    values, spec = flatten(tx, done.result)
    found = []
    for value in values:
        node = _float_result(value)
        parts: list[Node | None] = [None] * len(done.leaves)
        if node is not None:
            with standing_in(tx, node.tensor.size) as examples:
                row = examples.stand_in(_unit_vectors(tx, node))
                start = len(tx.builder.graph.nodes)
                pulled = pull_back(tx, done.nodes, [(node, row)], done.leaves)
                made = iter(computed(tx, examples, start, [g for g in pulled if g is not None]))
                parts = [None if g is None else next(made) for g in pulled]
        found.append(_by_argument(tx, done, node, parts))
    return SequenceValue([done.result, done.more, unflatten(spec, iter(found))], tuple)


@special(jacobians.columns)
def _columns(tx: Context, function: Constant, args: Sequence[Value], kwargs: Mapping[str, Value]) -> Value:
    done = _follow(tx, args, kwargs)
    values, spec = flatten(tx, done.result)
    nodes = [_float_result(value) for value in values]
    linear = Linear(tx, done.nodes, values, done.leaves)
    pushed: list[dict[Node, Node]] = []
    for number, leaf in enumerate(done.leaves):
        with standing_in(tx, leaf.node.tensor.size) as examples:
            column = examples.stand_in(_unit_vectors(tx, leaf.node))
            start = len(tx.builder.graph.nodes)
            tangents = {node: g for node, g in linear.pushed({number: column}).items() if g is not None}
            made = computed(tx, examples, start, list(tangents.values()))
            last = (_last(tx, g) for g in made)
            pushed.append(dict(zip(tangents, last, strict=True)))
    found = [
        _by_argument(tx, done, node, [None if node is None else by_node.get(node) for by_node in pushed])
        for node in nodes
    ]
    return SequenceValue([done.result, done.more, unflatten(spec, iter(found))], tuple)


def _float_result(value: Value) -> Node | None:
    """The node of a result; None for a number on which derivatives do not depend."""
    node = result_node(value)
    if node is None or node.tensor.dtype.kind in "biu":
        return None
    if node.tensor.dtype.kind != "f":
        raise refuse("The function returns a complex number; jacrev and jacfwd take functions with real results.")
    return node


def _unit_vectors(tx: Context, node: Node) -> Node:
    """One array like the node for each of its elements, which is 1 there and 0 elsewhere."""
    tensor = node.tensor
    if tensor.dtype.kind == "c":
        raise refuse("An argument is complex: jacfwd takes real arguments.")
    eye = tx.builder.op("eye", n_rows=tensor.size, n_cols=tensor.size, k=0, dtype=tensor.dtype.name)
    return tx.builder.op("reshape", eye, shape=(tensor.size, *tensor.shape))


def _last(tx: Context, node: Node) -> Node:
    """The first axis as the last one."""
    ndim = node.tensor.ndim
    return tx.builder.op("copy_c", tx.builder.op("permute_dims", node, axes=(*range(1, ndim), 0)))


def _by_argument(tx: Context, done: Followed, node: Node | None, parts: Sequence[Node | None]) -> Value:
    """The derivatives of one result by all arguments."""
    shape: tuple[Size, ...] = () if node is None else node.tensor.shape
    made = iter([_wrapped(tx, leaf, shape, part) for leaf, part in zip(done.leaves, parts, strict=True)])
    found = [unflatten(argument.spec, made) for argument in done.chosen]
    return SequenceValue(found, tuple) if done.several else found[0]


def _wrapped(tx: Context, leaf: Leaf, shape: tuple[Size, ...], part: Node | None) -> Value:
    """The derivative of a result of some shape by one leaf, as a new array or number."""
    tensor = leaf.node.tensor
    whole = (*shape, *tensor.shape)
    if part is None:
        part = tx.builder.op("full", shape=whole, fill_value=0.0, dtype=tensor.dtype.name)
    elif not part.tensor.c_contiguous:
        part = tx.builder.op("copy_c", part)
    part = tx.builder.op("reshape", part, shape=whole)
    if part.tensor.dtype != tensor.dtype:
        part = tx.builder.op("astype", part, dtype=tensor.dtype.name)
    if not shape:
        return as_kind(tx, part, leaf.inside)
    return tx.from_frontend(Traced(tx.builder.op("copy", part)))
