"""Functions of tcompile itself that mean something inside a captured function.

Enters: calls of ``is_compiling``, ``graph_break``, ``cond``, ``set_stance`` and functions marked by ``disable`` or by a
stance. Leaves: constants, breaks, ``cond`` nodes. What these functions do in plain Python is in ``intrinsics``.
"""

from __future__ import annotations

import types
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from tcompile.capture.intrinsics import cond, graph_break, is_compiling
from tcompile.capture.values.array import ArrayValue
from tcompile.capture.values.base import Value
from tcompile.capture.values.constant import Constant
from tcompile.capture.values.container import DictValue, SequenceValue
from tcompile.frontends.base import CannotCapture, Traced
from tcompile.graph import Graph, Node, TensorType
from tcompile.graph.sizes import same_shape
from tcompile.stance import refusal, set_stance

if TYPE_CHECKING:
    from tcompile.capture.state import Capture

Handler = Callable[["Capture", Constant, Sequence[Value], Mapping[str, Value]], Value]
SPECIAL: dict[int, Handler] = {}


def special(function: Any) -> Callable[[Handler], Handler]:
    """Registers what a call of ``function`` means in a captured function."""

    def register(handler: Handler) -> Handler:
        SPECIAL[id(function)] = handler
        return handler

    return register


@special(is_compiling)
def _is_compiling(tx: Capture, function: Constant, args: Sequence[Value], kwargs: Mapping[str, Value]) -> Value:
    return Constant(True)


@special(graph_break)
def _graph_break(tx: Capture, function: Constant, args: Sequence[Value], kwargs: Mapping[str, Value]) -> Value:
    reason = next((str(v.value) for v in [*args, *kwargs.values()] if isinstance(v, Constant)), "")
    raise CannotCapture("graph-break-call", reason or "The program asks for it.")


@special(set_stance)
def _set_stance(tx: Capture, function: Constant, args: Sequence[Value], kwargs: Mapping[str, Value]) -> Value:
    raise refusal("a call of set_stance", tx.user_stack())


def refuse_marked(tx: Capture, function: Any) -> None:
    """Stops at functions that a stance decorates (an error) or that are excluded from compilation (a break)."""
    if not is_marked(function):
        return
    if hasattr(function, "__tcompile_stance__"):
        raise refusal(f"{function.__qualname__}, which set_stance decorates", tx.user_stack())
    why = function.__tcompile_disabled__
    raise CannotCapture("disabled-function", f"`{function.__qualname__}` is disabled{f': {why}' if why else '.'}")


def is_marked(function: Any) -> bool:
    """Whether ``refuse_marked`` stops at ``function``."""
    if not issubclass(type(function), types.FunctionType):
        return False  # and an object of a user's class is not asked: it might answer in Python
    return hasattr(function, "__tcompile_stance__") or hasattr(function, "__tcompile_disabled__")


# -- cond ------------------------------------------------------------------------------------------------------------


@special(cond)
def _cond(tx: Capture, function: Constant, args: Sequence[Value], kwargs: Mapping[str, Value]) -> Value:
    named = dict(zip(("pred", "true_fn", "false_fn", "operands"), args, strict=False)) | dict(kwargs)
    pred, true_fn, false_fn = (named[k] for k in ("pred", "true_fn", "false_fn"))
    operands = list(named["operands"].iterate(tx)) if "operands" in named else []
    if isinstance(pred, Constant) and isinstance(pred.value, bool | np.bool_):
        return (true_fn if pred.value else false_fn).call(tx, operands, {})
    if not isinstance(pred, ArrayValue):
        raise CannotCapture("cond-mismatch", f"pred is {pred.describe()}.")
    size = pred.traced.type.size
    if not isinstance(size, int) or size != 1:
        raise CannotCapture("operation-raises", "cond: pred must have one element")
    arrays = [value for value in operands if isinstance(value, ArrayValue)]
    branches = [_branch(tx, fn, operands, arrays, name) for fn, name in ((true_fn, "true"), (false_fn, "false"))]
    (true_graph, shape, outer), (false_graph, other_shape, other_outer) = branches
    if _structure(shape) != _structure(other_shape):
        raise CannotCapture("cond-mismatch", "The branches return different structures.")
    for a, b in zip(true_graph.outputs, false_graph.outputs, strict=True):
        if a.tensor.dtype != b.tensor.dtype or not same_shape(a.tensor.shape, b.tensor.shape) or (
            a.tensor.layout != b.tensor.layout
        ):
            raise CannotCapture("cond-mismatch", f"One branch returns {a.type}, the other {b.type}.")
    lifted = list(dict.fromkeys([*outer, *other_outer]))
    for graph, own in ((true_graph, outer), (false_graph, other_outer)):
        _lift(graph, own, lifted)
    types = tuple(node.tensor for node in true_graph.outputs)
    inputs: list[Any] = [pred.traced.node, *(a.traced.node for a in arrays), *lifted]
    builder = tx.builder
    node = builder.graph.append(
        "cond", inputs, {}, types, location=builder.location, regions=(true_graph, false_graph)
    )
    results: list[Value] = []
    for index, (type_, like) in enumerate(zip(types, _leaves(shape), strict=True)):
        got = builder.graph.append("get", [node], {"index": index}, type_, location=builder.location)
        results.append(tx.from_frontend(Traced(got, like.traced.scalar), like))
    return _refill(shape, iter(results))


def _branch(
    tx: Capture, function: Value, operands: Sequence[Value], arrays: Sequence[ArrayValue], name: str
) -> tuple[Graph, Value, list[Node]]:
    """Captures one branch: its region, its result, and the outer nodes that it reads besides its operands."""
    graph = Graph(f"cond_{name}", tx.graph.env)
    inside = {id(a): ArrayValue(Traced(graph.input(f"x{i}", a.traced.type), a.traced.scalar), a.frontend)
              for i, a in enumerate(arrays)}  # fmt: skip
    for value in inside.values():
        value.shared = True
        tx.remember(value)
    before = _visible_state(tx)
    outside = tx.builder.graph
    tx.builder.graph = graph
    try:
        result = function.call(tx, [inside.get(id(v), v) for v in operands], {})
    finally:
        tx.builder.graph = outside
    if _visible_state(tx) != before:
        raise CannotCapture("cond-mismatch", "A branch changes something outside itself.")
    leaves = _leaves(result)
    graph.outputs = [leaf.traced.node for leaf in leaves]
    own = set(graph.nodes)
    if any(node not in own or node.op in ("index", "reshape", "permute_dims") for node in graph.outputs):
        raise CannotCapture("cond-mismatch", "A branch returns an operand, or a view of one, and not a new array.")
    known = own | set(graph.inputs)
    foreign = dict.fromkeys(o for node in graph.nodes for o in node.inputs if o not in known)
    return graph, result, list(foreign)


def _lift(graph: Graph, read: Sequence[Node], all_lifted: Sequence[Node]) -> None:
    """Gives ``graph`` one input for each outer node in ``all_lifted`` and makes its nodes read those."""
    new: dict[Node, Node] = {}
    for node in all_lifted:
        assert not isinstance(node.type, tuple)
        new[node] = graph.input(f"outer_{node.name}", node.type)
    for node in graph.nodes:
        node.operands = tuple(new.get(o, o) if isinstance(o, Node) else o for o in node.operands)


def _leaves(value: Value) -> list[ArrayValue]:
    """The arrays in a branch's result, in order."""
    if isinstance(value, ArrayValue):
        return [value]
    if isinstance(value, SequenceValue):
        return [leaf for item in value.items for leaf in _leaves(item)]
    if isinstance(value, DictValue):
        return [leaf for item in value.items.values() for leaf in _leaves(item)]
    raise CannotCapture("cond-mismatch", f"A branch returns {value.describe()}.")


def _structure(value: Value) -> Any:
    if isinstance(value, ArrayValue):
        return ("array", value.traced.scalar, isinstance(value.traced.node.type, TensorType))
    if isinstance(value, SequenceValue):
        return (value.cls, [_structure(item) for item in value.items])
    assert isinstance(value, DictValue)
    return {key: _structure(item) for key, item in value.items.items()}


def _refill(value: Value, results: Iterator[Value]) -> Value:
    if isinstance(value, ArrayValue):
        return next(results)
    if isinstance(value, SequenceValue):
        return SequenceValue([_refill(item, results) for item in value.items], value.cls)
    assert isinstance(value, DictValue)
    return DictValue({key: _refill(item, results) for key, item in value.items.items()})


def _visible_state(tx: Capture) -> list[Any]:
    """A fingerprint of everything the captured frames can reach, to see whether a branch changed it."""
    seen: dict[int, Any] = {}

    def visit(value: Any) -> None:
        if id(value) in seen or (getattr(value, "source", None) is not None and not isinstance(value, ArrayValue)):
            return  # changes of what came from outside are counted
        if isinstance(value, ArrayValue):
            seen[id(value)] = id(value.traced)
        elif isinstance(value, SequenceValue):
            seen[id(value)] = [id(item) for item in value.items]
            for item in value.items:
                visit(item)
        elif isinstance(value, DictValue):
            seen[id(value)] = [(key, id(item)) for key, item in value.items.items()]
            for item in value.items.values():
                visit(item)

    for frame in tx.frames:
        for value in [*frame.locals.values(), *frame.stack]:
            visit(value)
        for cell in frame.cells.values():
            seen[id(cell)] = id(cell.value)
            visit(cell.value)
    return [sorted(seen.items(), key=lambda item: item[0]), list(tx.effects), tx.outside_mutations]
