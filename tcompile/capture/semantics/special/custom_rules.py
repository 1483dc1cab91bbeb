"""Functions with derivatives of the user's own: ``tcompile.custom_vjp`` and ``custom_jvp``.

Input: calls of such functions.
Output: the function's value. Where a derivative is taken, its results are marked, and the walk for cotangents calls the
user's rule in their place.
Why: the rule is Python code, which is followed like any other; so its operations fuse with those around them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tcompile.annotations import custom_rules
from tcompile.capture.semantics.special.derivatives import (
    Leaf,
    followed,
    inside,
    pull_back,
    refuse,
    result_node,
)
from tcompile.capture.semantics.special.registry import bind, special
from tcompile.capture.semantics.subgraph import as_node, flatten, mismatch, unflatten
from tcompile.capture.values.array import ArrayValue
from tcompile.capture.values.base import Context, Value, settled
from tcompile.capture.values.constant import Constant
from tcompile.capture.values.container import SequenceValue
from tcompile.capture.values.dicts import DictValue
from tcompile.frontends.base import CannotCapture, Traced
from tcompile.graph import Node

_NONE = Constant(None)
Pull = Callable[[Sequence[Value]], Sequence[Node | None]]


@special(custom_rules.with_vjp)
def _with_vjp(tx: Context, function: Constant, args: Sequence[Value], kwargs: Mapping[str, Value]) -> Value:
    names = dict.fromkeys(("custom", "fun", "forward", "backward", "args"))
    custom, fun, forward, backward, given = bind("custom_vjp", names, args, kwargs)
    assert isinstance(given, SequenceValue)
    if settled(tx, forward).is_none:
        raise refuse("The function has no rule: call its defvjp(forward, backward).")
    custom = settled(tx, custom)
    if not tx.differentiated or any(one is custom for one in tx.forward_rules):  # forward may call the function
        return fun.call(tx, given.items, {})
    _outside_of_loops(tx)
    inputs = _inputs(tx, given.items)
    tx.forward_rules.append(custom)
    try:
        pair = settled(tx, forward.call(tx, given.items, {}))
    finally:
        tx.forward_rules.pop()
    if not isinstance(pair, SequenceValue) or len(pair.items) != 2:
        raise refuse(f"forward of custom_vjp returns {pair.describe()}, and not a pair (value, residuals).")
    value, residuals = (settled(tx, item) for item in pair.items)
    kept = _kept(tx, residuals)

    def pull(cotangents: Sequence[Value]) -> Sequence[Node | None]:
        _, spec = flatten(tx, value)
        found = settled(tx, backward.call(tx, [kept, unflatten(spec, iter(cotangents))], {}))
        if not isinstance(found, SequenceValue) or len(found.items) != len(given.items):
            many = f"{len(found.items)} cotangents" if isinstance(found, SequenceValue) else found.describe()
            wanted = len(given.items)
            raise refuse(f"backward of custom_vjp returns {many}, and not a tuple of {wanted}, one for each argument.")
        nodes: list[Node | None] = []
        for number, (argument, cotangent) in enumerate(zip(inputs, found.items, strict=True)):
            nodes += _cotangents(tx, number, argument, settled(tx, cotangent))
        return nodes

    return _marked(tx, value, [node for argument in inputs for node in argument], pull)


@special(custom_rules.with_jvp)
def _with_jvp(tx: Context, function: Constant, args: Sequence[Value], kwargs: Mapping[str, Value]) -> Value:
    names = dict.fromkeys(("custom", "fun", "rule", "args"))
    _, fun, rule, given = bind("custom_jvp", names, args, kwargs)
    assert isinstance(given, SequenceValue)
    if settled(tx, rule).is_none:
        raise refuse("The function has no rule: call its defjvp(rule).")
    if not tx.differentiated:
        return fun.call(tx, given.items, {})
    _outside_of_loops(tx)
    inputs = _inputs(tx, given.items)
    primals = SequenceValue([_kept(tx, item) for item in given.items], tuple)
    value = settled(tx, fun.call(tx, given.items, {}))

    def pull(cotangents: Sequence[Value]) -> Sequence[Node | None]:
        graph = tx.builder.graph
        start = len(graph.nodes)
        dummies: list[Node] = []

        def tangent(leaf: Value) -> Value:
            node = result_node(leaf)
            if node is None or node.tensor.dtype.kind != "f":
                return Constant(0.0)
            zeros = tx.builder.op("full", shape=node.tensor.shape, fill_value=0.0, dtype=node.tensor.dtype.name)
            dummies.append(tx.builder.op("reshape", zeros, shape=node.tensor.shape))  # no constant
            return inside(tx, leaf, dummies[-1])

        leaves, spec = flatten(tx, SequenceValue(given.items, tuple))
        tangents = unflatten(spec, iter([tangent(leaf) for leaf in leaves]))
        found = settled(tx, rule.call(tx, [primals, tangents], {}))
        if not isinstance(found, SequenceValue) or len(found.items) != 2:
            raise refuse(f"The rule of custom_jvp returns {found.describe()}, and not a pair (value, tangent).")
        made, _ = flatten(tx, found.items[1])
        if len(made) != len(cotangents):
            raise refuse("The rule of custom_jvp returns a tangent of another structure than the function's value.")
        pairs = [
            (node, as_node(tx, g)) for one, g in zip(made, cotangents, strict=True)
            if (node := result_node(one)) is not None
        ]  # fmt: skip
        return pull_back(tx, graph.nodes[start:], pairs, [Leaf(_NONE, _NONE, node) for node in dummies])

    return _marked(tx, value, [node for argument in inputs for node in argument], pull)


def _outside_of_loops(tx: Context) -> None:
    if tx.in_iteration:
        raise mismatch("A function with a derivative rule of its own is called in it.")


def _inputs(tx: Context, args: Sequence[Value]) -> list[list[Node]]:
    """The nodes of floats in each argument."""
    found = []
    for arg in args:
        leaves, _ = flatten(tx, arg) if not settled(tx, arg).is_none else ([], None)
        nodes = [node for leaf in leaves if (node := result_node(leaf)) is not None]
        found.append([node for node in nodes if node.tensor.dtype.kind == "f"])
    return found


def _kept(tx: Context, value: Value) -> Value:
    """Residuals as they are now: arrays may be written to before the rule reads them."""
    value = settled(tx, value)
    if isinstance(value, SequenceValue):
        return SequenceValue([_kept(tx, item) for item in value.items], value.cls)
    if isinstance(value, DictValue):
        return DictValue({key: _kept(tx, item) for key, item in value.items.items()})
    if isinstance(value, ArrayValue) and not value.traced.scalar:
        return tx.from_frontend(Traced(tx.builder.op("copy", value.traced.node)))
    return value


def _cotangents(tx: Context, number: int, nodes: Sequence[Node], given: Value) -> list[Node | None]:
    """The cotangents of one argument's floats."""
    if given.is_none or not nodes:
        return [None] * len(nodes)
    try:
        leaves, _ = flatten(tx, given)
    except CannotCapture:
        leaves = []  # it has None in it, say
    if len(leaves) != len(nodes):
        raise refuse(f"backward of custom_vjp returns another structure than that of argument {number}.")
    found: list[Node | None] = []
    for node, leaf in zip(nodes, leaves, strict=True):
        g = as_node(tx, leaf)
        if g.tensor.ndim != node.tensor.ndim or any(
            a != b for a, b in zip(g.tensor.shape, node.tensor.shape, strict=True)
        ):
            raise refuse(
                f"backward of custom_vjp returns a cotangent of the shape {g.tensor.shape} for argument {number}, "
                f"whose shape is {node.tensor.shape}."
            )
        found.append(g)
    return found


def _marked(tx: Context, value: Value, inputs: list[Node], pull: Pull) -> Value:
    """A value whose floats are shown by nodes with the user's rule."""
    from tcompile.transforms.emit import CUSTOM, CustomRule

    leaves, spec = flatten(tx, value)
    results: list[Node] = []
    shown: list[Value] = []
    floats: list[Value] = []
    for leaf in leaves:
        node = result_node(leaf)
        if node is None or node.tensor.dtype.kind != "f":
            shown.append(leaf)
            continue
        results.append(tx.builder.op("reshape", node, shape=node.tensor.shape))
        shown.append(inside(tx, leaf, results[-1]))
        floats.append(leaf)

    def pull_nodes(cotangents: Sequence[Node]) -> Sequence[Node | None]:
        given = iter([inside(tx, leaf, g) for leaf, g in zip(floats, cotangents, strict=True)])
        every = [next(given) if any(leaf is one for one in floats) else Constant(0.0) for leaf in leaves]
        with followed(tx, []):
            return pull(every)

    rule = CustomRule(inputs, results, pull_nodes)
    for node in results:
        CUSTOM[node] = rule
    return unflatten(spec, iter(shown))


__all__: list[Any] = []
