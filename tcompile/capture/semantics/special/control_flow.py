"""``cond``, ``while_loop``, ``scan``, ``map`` and ``associative_scan``: each becomes one node of the graph.

Input: calls of them with captured functions and arrays.
Output: the results; the functions passed are regions of the node. Arrays from outside that the functions read become
operands of the node.
Why: these functions have no other form in the graph. A call is left to plain Python where structures, dtypes or shapes
do not fit, or a function has side effects or breaks.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tcompile.annotations.control_flow import COMBINE_MODES, associative_scan, cond, map, scan, while_loop
from tcompile.capture.semantics.special.registry import bind, special
from tcompile.capture.semantics.subgraph import (
    Subgraph,
    array_of,
    as_node,
    capture_region,
    control_node,
    fits,
    flatten,
    in_c_order,
    is_new,
    lift,
    mismatch,
    own_copy,
    settle_outputs,
    unflatten,
)
from tcompile.capture.values.array import ArrayValue
from tcompile.capture.values.base import Context, Value
from tcompile.capture.values.constant import Constant
from tcompile.capture.values.container import SequenceValue
from tcompile.frontends.base import CannotCapture, Traced
from tcompile.graph import Node, TensorType, ops
from tcompile.graph.dtypes import BOOL
from tcompile.graph.sizes import Size, same

_Combine = Callable[[list[Value], list[Value]], tuple[Value, Value]]
_EMPTY = SequenceValue([], tuple)


@special(cond)
def _cond(tx: Context, function: Constant, args: Sequence[Value], kwargs: Mapping[str, Value]) -> Value:
    names: dict[str, Value | None] = {"pred": None, "true_fn": None, "false_fn": None, "operands": _EMPTY}
    pred, true_fn, false_fn, given = bind("cond", names, args, kwargs)
    if not isinstance(given, SequenceValue):
        raise _unlike(f"operands is {given.describe()}.")
    operands = given.items
    if isinstance(pred, Constant) and _is_bool(tx, pred.value):
        return (true_fn if pred.value else false_fn).call(tx, operands, {})
    if not isinstance(pred, ArrayValue):
        raise _unlike(f"pred is {pred.describe()}.")
    size = pred.traced.type.size
    if not isinstance(size, int) or size != 1:
        raise CannotCapture("operation-raises", "cond: pred must have one element")
    arrays = [value for value in operands if isinstance(value, ArrayValue)]
    regions = [_branch(tx, fn, operands, arrays, name) for fn, name in ((true_fn, "true"), (false_fn, "false"))]
    yes, no = regions
    if yes.spec != no.spec or [_kind(leaf) for leaf in yes.leaves] != [_kind(leaf) for leaf in no.leaves]:
        raise _unlike("The branches return different structures.")
    for a, b in zip(yes.graph.outputs, no.graph.outputs, strict=True):
        if not fits(a, b) or a.tensor.layout != b.tensor.layout:
            raise _unlike(f"One branch returns {a.type}, the other {b.type}.")
    outer, _ = lift(regions)
    inputs = [pred.traced.node, *(a.traced.node for a in arrays), *outer]
    types = [node.tensor for node in yes.graph.outputs]
    nodes = control_node(tx, ops.COND, inputs, types, [region.graph for region in regions])
    return unflatten(yes.spec, (array_of(tx, node, _kind(leaf)) for node, leaf in zip(nodes, yes.leaves, strict=True)))


def _is_bool(tx: Context, value: Any) -> bool:
    """Whether an object is a bool, or a library's scalar object that is one."""
    return isinstance(value, bool) or (tx.is_scalar(value) and value.dtype == BOOL)


def _unlike(what: str) -> CannotCapture:
    return CannotCapture("cond-mismatch", what)


def _kind(leaf: Value) -> bool:
    """Whether a branch's result is a scalar object."""
    if not isinstance(leaf, ArrayValue):
        raise _unlike(f"A branch returns {leaf.describe()}, which is no array.")
    return leaf.traced.scalar


def _branch(
    tx: Context, function: Value, operands: Sequence[Value], arrays: Sequence[ArrayValue], name: str
) -> Subgraph:
    def call(inside: list[Value]) -> Value:
        for value, array in zip(inside, arrays, strict=True):
            assert isinstance(value, ArrayValue)
            value.become(Traced(value.traced.node, array.traced.scalar))
        new = {id(array): value for array, value in zip(arrays, inside, strict=True)}
        return function.call(tx, [new.get(id(value), value) for value in operands], {})

    def finish(region: Subgraph) -> list[Node]:
        nodes = [leaf.traced.node for leaf in region.leaves if isinstance(leaf, ArrayValue) and not _kind(leaf)]
        own = set(region.graph.nodes)
        if any(node not in own or not (is_new(node) or node.op in (ops.GET, ops.CALL)) for node in nodes):
            raise _unlike("A branch returns an operand, or a view of one, and not a new array.")
        return [as_node(tx, leaf) for leaf in region.leaves]

    return capture_region(tx, f"cond_{name}", [a.traced.type for a in arrays], call, finish)


@special(while_loop)
def _while_loop(tx: Context, function: Constant, args: Sequence[Value], kwargs: Mapping[str, Value]) -> Value:
    cond_fn, body_fn, carried = bind("while_loop", {"cond_fn": None, "body_fn": None, "carried": None}, args, kwargs)
    if not isinstance(carried, SequenceValue):
        raise mismatch(f"carried is {carried.describe()}.")
    leaves, spec = flatten(tx, SequenceValue(carried.items, tuple))
    state = [own_copy(tx, as_node(tx, leaf)) for leaf in leaves]
    types = [node.tensor for node in state]

    def unpack(inside: list[Value]) -> list[Value]:
        tree = unflatten(spec, iter(inside))
        assert isinstance(tree, SequenceValue)
        return tree.items

    def holds(region: Subgraph) -> list[Node]:
        (leaf,) = region.leaves if region.spec is None else (Constant(None),)
        if isinstance(leaf, Constant) and _is_bool(tx, leaf.value):
            raise mismatch(f"cond_fn always returns {bool(leaf.value)}.")
        if not isinstance(leaf, ArrayValue) or leaf.traced.type.dtype != BOOL or leaf.traced.type.size != 1:
            raise mismatch(f"cond_fn returns {leaf.describe()}, and not a boolean array of one element.")
        node = leaf.traced.node
        return [tx.builder.op("reshape", node, shape=()) if node.tensor.ndim else node]

    def goes_on(region: Subgraph) -> list[Node]:
        if spec[0] is tuple and region.spec is not None and region.spec[0] is list:
            region.spec = (tuple, region.spec[1])
        return _carry(tx, "body_fn", region, region.leaves, region.spec, spec, types, region.graph.inputs)

    if tx.differentiated and tx.options.follows_path:
        followed = _iterated(tx, cond_fn, body_fn, unpack([array_of(tx, node) for node in state]))
        if followed is not None:
            return followed
    condition = capture_region(tx, "while_cond", types, lambda inside: cond_fn.call(tx, unpack(inside), {}), holds)
    body = capture_region(tx, "while_body", types, lambda inside: body_fn.call(tx, unpack(inside), {}), goes_on)
    outer, (_, passed_on) = lift([condition, body])
    body.graph.outputs += passed_on
    everything = [*state, *outer]
    nodes = control_node(
        tx, ops.WHILE_LOOP, everything, [_type(node) for node in everything], [condition.graph, body.graph]
    )
    return unflatten(spec, (array_of(tx, node) for node in nodes))


def _iterated(tx: Context, cond_fn: Value, body_fn: Value, values: Sequence[Value]) -> Value | None:
    """The iterations that this call makes, one after the other; None where their number is not known."""
    while True:
        flag = cond_fn.call(tx, values, {})
        node = flag.traced.node if isinstance(flag, ArrayValue) else None
        goes_on = flag.value if isinstance(flag, Constant) else tx.taken(node) if node is not None else None
        if goes_on is None:
            return None
        if not goes_on:
            return SequenceValue([*values], tuple)
        after = _items_of(body_fn.call(tx, values, {}))
        _check_kept(tx, values, after)
        values = after


def _check_kept(tx: Context, before: Sequence[Value], after: Sequence[Value]) -> None:
    """Refuses an iteration that returns other structures, dtypes or shapes than it was given."""
    (old, spec), (new, other) = (flatten(tx, SequenceValue([*values], tuple)) for values in (before, after))
    if spec != other or not all(fits(as_node(tx, a), as_node(tx, b)) for a, b in zip(old, new, strict=True)):
        raise mismatch("body_fn returns values of other structures, dtypes or shapes than it was given.")


def _items_of(value: Value) -> Sequence[Value]:
    """The items of the tuple or list that a loop's function returns."""
    if not isinstance(value, SequenceValue):
        raise mismatch(f"body_fn returns {value.describe()}, and no tuple.")
    return value.items


@special(scan)
def _scan(tx: Context, function: Constant, args: Sequence[Value], kwargs: Mapping[str, Value]) -> Value:
    names: dict[str, Value | None] = {
        "combine_fn": None, "init": None, "xs": None, "dim": Constant(0), "reverse": Constant(False),
    }  # fmt: skip
    combine_fn, init, xs, dim, reverse = bind("scan", names, args, kwargs)
    if len(args) > 3:
        raise CannotCapture("operation-raises", "scan takes dim and reverse by name")
    backwards = _flag(reverse, "reverse")
    leaves, carry_spec = flatten(tx, init)
    state = [own_copy(tx, as_node(tx, leaf)) for leaf in leaves]
    columns, spec, _ = _columns(tx, xs, dim, backwards)

    def combine(carry: list[Value], slices: list[Value]) -> tuple[Value, Value]:
        given = [unflatten(carry_spec, iter(carry)), unflatten(spec, iter(slices))]
        result = combine_fn.call(tx, given, {})
        if not isinstance(result, SequenceValue) or result.cls not in (tuple, list) or len(result.items) != 2:
            raise mismatch("combine_fn does not return (carry, y).")
        return result.items[0], result.items[1]

    last, rows, row_spec = _scanned(tx, combine, state, carry_spec, columns)
    if backwards:
        rows = [_reversed(tx, row) for row in rows]
    ys = unflatten(row_spec, (array_of(tx, row) for row in rows))
    return SequenceValue([unflatten(carry_spec, (array_of(tx, node) for node in last)), ys], tuple)


@special(associative_scan)
def _associative_scan(tx: Context, function: Constant, args: Sequence[Value], kwargs: Mapping[str, Value]) -> Value:
    names: dict[str, Value | None] = {
        "combine_fn": None, "xs": None, "dim": Constant(0), "reverse": Constant(False),
        "combine_mode": Constant("pointwise"),
    }  # fmt: skip
    combine_fn, xs, dim, reverse, mode = bind("associative_scan", names, args, kwargs)
    if not isinstance(mode, Constant) or mode.value not in COMBINE_MODES:
        raise mismatch(f"combine_mode is {mode.describe()}.")
    backwards = _flag(reverse, "reverse")
    columns, spec, count = _columns(tx, xs, dim, backwards)
    op = tx.builder.op
    results = [own_copy(tx, column) for column in columns]
    if not isinstance(count, int) or count > 1:
        first = [op("copy_c", op("index", column, key=(0,))) for column in columns]
        rest = [op("index", column, key=(slice(1, None),)) for column in columns]

        def combine(carry: list[Value], slices: list[Value]) -> tuple[Value, Value]:
            result = combine_fn.call(tx, [unflatten(spec, iter(carry)), unflatten(spec, iter(slices))], {})
            return result, result

        _, rows, _ = _scanned(tx, combine, first, spec, rest)
        heads = [op("index", column, key=(slice(0, 1),)) for column in columns]
        results = [op("concat", head, row, axis=0) for head, row in zip(heads, rows, strict=True)]
    if backwards:
        results = [_reversed(tx, node) for node in results]
    axis = _int(dim, "dim")
    moved = [_moved(tx, node, 0, axis % node.tensor.ndim) for node in results]
    return unflatten(spec, (array_of(tx, node if is_new(node) else op("copy_c", node)) for node in moved))


@special(map)
def _map(tx: Context, function: Constant, args: Sequence[Value], kwargs: Mapping[str, Value]) -> Value:
    fn, xs = bind("map", {"fn": None, "xs": None}, args[:2], kwargs)
    columns, spec, count = _columns(tx, xs, Constant(0), False)

    def call(inside: list[Value]) -> Value:
        return fn.call(tx, [unflatten(spec, iter(inside)), *args[2:]], {})

    region = capture_region(
        tx, "map_body", [_slice_type(column) for column in columns], call,
        lambda region: settle_outputs(tx, region.graph, [as_node(tx, leaf) for leaf in region.leaves]),
    )  # fmt: skip
    types = [_stack_type(node, count) for node in region.graph.outputs]
    outer, (passed_on,) = lift([region])
    if outer:  # a scan carries the values that every slice reads
        inputs = region.graph.inputs
        region.graph.inputs = [*inputs[len(columns) :], *inputs[: len(columns)]]
        region.graph.outputs = [*passed_on, *region.graph.outputs]
        carried = [_type(node) for node in outer]
        nodes = control_node(tx, ops.SCAN, [*outer, *columns], [*carried, *types], [region.graph], carry=len(outer))
    else:
        nodes = control_node(tx, ops.MAP, columns, types, [region.graph])
    return unflatten(region.spec, (array_of(tx, node) for node in nodes[len(outer) :]))


# -- parts -----------------------------------------------------------------------------------------------------------


def _scanned(
    tx: Context, combine: _Combine, state: Sequence[Node], carry_spec: Any, columns: Sequence[Node]
) -> tuple[list[Node], list[Node], Any]:
    """A ``scan`` node: the last carry, the stacked rows, and the structure of a row."""
    types = [node.tensor for node in state]
    count = columns[0].tensor.shape[0]
    found: list[Any] = []

    def call(inside: list[Value]) -> Value:
        carry, row = combine(inside[: len(state)], inside[len(state) :])
        found[:] = [flatten(tx, carry), flatten(tx, row)]
        return SequenceValue([carry, row], tuple)

    def finish(region: Subgraph) -> list[Node]:
        (carry, spec), (row, _) = found
        next_carry = _carry(tx, "combine_fn", region, carry, spec, carry_spec, types, region.graph.inputs)
        rows = settle_outputs(tx, region.graph, [as_node(tx, leaf) for leaf in row])
        return [*next_carry, *rows]

    region = capture_region(tx, "scan_body", [*types, *(_slice_type(column) for column in columns)], call, finish)
    row_types = [_stack_type(node, count) for node in region.graph.outputs[len(state) :]]
    outer, (passed_on,) = lift([region])
    graph, fixed = region.graph, len(state)
    # Inputs and outputs in the order: carry, outer values, slices (rows).
    body = graph.inputs[fixed : len(graph.inputs) - len(outer)]
    graph.inputs = [*graph.inputs[:fixed], *passed_on, *body]
    graph.outputs = [*graph.outputs[:fixed], *passed_on, *graph.outputs[fixed:]]
    carried = [*types, *(_type(node) for node in outer)]
    nodes = control_node(tx, ops.SCAN, [*state, *outer, *columns], [*carried, *row_types], [graph], carry=len(carried))
    return nodes[:fixed], nodes[len(carried) :], found[1][1]


def _carry(
    tx: Context,
    name: str,
    region: Subgraph,
    leaves: Sequence[Value],
    spec: Any,
    wanted: Any,
    types: Sequence[TensorType],
    inputs: Sequence[Node],
) -> list[Node]:
    """The next carried values of a loop's body, of the same types as before."""
    if spec != wanted:
        raise mismatch(f"{name} returns another structure than it is given.")
    nodes = [as_node(tx, leaf) for leaf in leaves]
    for node, before in zip(nodes, inputs, strict=False):
        if not fits(node, before):
            raise mismatch(f"{name} is given {before.type} and returns {node.type} in its place.")
    return settle_outputs(tx, region.graph, nodes, inputs[: len(types)])


def _columns(tx: Context, xs: Value, dim: Value, reverse: bool) -> tuple[list[Node], Any, Size]:
    """The leaves of ``xs`` in C order with the scanned axis first, their structure, and the number of slices."""
    axis = _int(dim, "dim")
    leaves, spec = flatten(tx, xs)
    columns: list[Node] = []
    for leaf in leaves:
        node = as_node(tx, leaf)
        if not -node.tensor.ndim <= axis < node.tensor.ndim:
            raise mismatch(f"dim {axis} is no axis of {node.type}.")
        node = _moved(tx, node, axis % node.tensor.ndim, 0)
        if reverse:
            node = tx.builder.op("index", node, key=(slice(None, None, -1),))
        columns.append(in_c_order(tx, node))
    counts = [column.tensor.shape[0] for column in columns]
    if not counts or counts[0] == 0 or not all(same(count, counts[0]) or count == counts[0] for count in counts):
        raise mismatch("The arrays in xs must have one size along dim, at least 1.")
    if not all(same(count, counts[0]) for count in counts):
        raise mismatch("The arrays in xs have sizes along dim that are equal for this call only.")
    return columns, spec, counts[0]


def _moved(tx: Context, node: Node, source: int, target: int) -> Node:
    """``np.moveaxis``."""
    order = [axis for axis in range(node.tensor.ndim) if axis != source]
    order.insert(target, source)
    return node if source == target else tx.builder.op("permute_dims", node, axes=tuple(order))


def _reversed(tx: Context, node: Node) -> Node:
    return tx.builder.op("copy_c", tx.builder.op("index", node, key=(slice(None, None, -1),)))


def _slice_type(column: Node) -> TensorType:
    return TensorType(column.tensor.dtype, column.tensor.shape[1:])


def _stack_type(row: Node, count: Size) -> TensorType:
    return TensorType(row.tensor.dtype, (count, *row.tensor.shape))


def _type(node: Node) -> Any:
    return node.type


def _flag(value: Value, name: str) -> bool:
    if isinstance(value, Constant) and isinstance(value.value, bool):
        return value.value
    raise mismatch(f"{name} is {value.describe()}.")


def _int(value: Value, name: str) -> int:
    if isinstance(value, Constant) and type(value.value) is int:
        return value.value
    raise mismatch(f"{name} is {value.describe()}.")
