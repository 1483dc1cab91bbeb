"""Reference evaluation: runs a graph in NumPy, node by node.

Input: a graph and its input values.
Output: the tuple of output values.
Why: it defines the meaning of a graph. The ``eager`` backend is this function, and every other backend is compared with
it.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

from tcompile.errors import GraphError
from tcompile.graph.dtypes import DType, is_extension
from tcompile.graph.ir import Graph, Node, Operand
from tcompile.graph.op import Aliasing
from tcompile.graph.ops.control import EXIT_LOOP, FORI_LOOP
from tcompile.graph.ops.opaque import CALL
from tcompile.graph.ops.writing import ASSIGN, shown
from tcompile.graph.sizes import replace_sizes
from tcompile.graph.types import TensorType
from tcompile.polls import Changed

Spy: TypeAlias = Callable[[Graph, Mapping[Node, Any]], None]  # called with an evaluated graph and its values


def bind_symbols(graph: Graph, args: Sequence[Any]) -> dict[str, int]:
    """The values of the graph's symbols, read from the shapes (or values) of its inputs."""
    return {
        name: int(args[position]) if axis is None else args[position].shape[axis]
        for name, (position, axis) in graph.symbol_inputs().items()
    }


def concrete(value: Any, symbols: Mapping[str, int]) -> Any:
    """``value`` with every symbolic int inside it replaced by its run-time value."""
    return replace_sizes(value, lambda size: size.evaluate(symbols))


def run(
    graph: Graph,
    args: Sequence[Any],
    symbols: Mapping[str, int] | None = None,
    spy: Spy | None = None,
    known: Mapping[Node, Any] | None = None,
    xp: Any = np,
    stacks: Collection[int] = (),
) -> tuple[Any, ...]:
    """Runs ``graph`` on ``args`` and returns its outputs.

    ``symbols`` is given for regions: those that are bound outside of it. ``spy(graph, values)`` is called with the
    values of each evaluation of a region, and last with those of the graph. ``known`` are values of nodes, which are
    not computed. ``xp`` is the namespace of the arrays: NumPy, or CuPy. ``stacks`` are the
    numbers of a region's own inputs in which it stores a row in place.
    """
    if len(args) != len(graph.inputs):
        raise TypeError(f"{graph.name} takes {len(graph.inputs)} inputs, got {len(args)}")
    bound = {**(symbols or {}), **bind_symbols(graph, args)}
    values: dict[Node, Any] = dict(zip(graph.inputs, args, strict=True))
    rows = {graph.inputs[number] for number in stacks}

    def value_of(operand: Operand) -> Any:
        return values[operand] if isinstance(operand, Node) else concrete(operand, bound)

    if known:
        values.update(known)
    for node in graph.nodes:
        if known and node in known:
            continue
        attrs = {key: concrete(value, bound) for key, value in node.attrs.items()}
        if node.regions:
            own = _stacks(node)
            attrs["regions"] = [_callable(region, bound, spy, xp, own) for region in node.regions]
        op = node.op
        if op.memory is Aliasing.VIEW:
            (viewed,) = node.inputs
            if isinstance(values[viewed], np.generic):  # all views share one array, where NumPy has given a scalar
                values[viewed] = np.asarray(values[viewed])
        try:
            operands = [value_of(operand) for operand in node.operands]
            for number in own if node.regions else ():
                operands[number + 1] = np.copy(operands[number + 1])
            strict_dtype = dtype_of_numbers(node)
            if strict_dtype is not None:
                operands = [strict_dtype.type(x) if type(x) in (bool, int, float) else x for x in operands]
            if op is ASSIGN and node.operands[0] in rows:
                shown(operands[0], attrs["path"])[...] = operands[1]
                values[node] = operands[0]
                continue
            with np.errstate(all="ignore") if node.silent else contextlib.nullcontext():
                values[node] = op.reference(xp)(*operands, **attrs)
        except Changed as changed:
            changed.loop = node.name if symbols is None and len(changed.results) else ""
            if symbols is not None:  # in the middle of an iteration of the enclosing loop
                changed.results = changed.variables = ()
            raise
        if op is CALL:
            _check_call(node, values[node], bound)
    if spy is not None:
        spy(graph, values)
    return tuple(values[node] for node in graph.outputs)


def dtype_of_numbers(node: Node) -> DType | None:
    """The dtype that bare numbers among the operands need to be given; None where they are weak, as in NumPy.

    Beside arrays of a dtype that is none of NumPy's own they are not.
    """
    if node.op.kind != "pointwise" or len(node.inputs) == len(node.operands):
        return None
    dtype = next((n.type.dtype for n in reversed(node.inputs) if isinstance(n.type, TensorType)), None)
    return dtype if dtype is not None and is_extension(dtype) else None


def as_array(value: Any) -> Any:
    """A result without axes as an array: NumPy's operations give scalar objects there."""
    return np.asarray(value)


def copy_into(target: Any, contents: Any) -> None:
    """Gives an array, of whichever library, the elements of another one."""
    target[...] = contents


def conforms(value: Any, type: TensorType, shape: tuple[int, ...]) -> bool:
    """Whether a library's result has the dtype, the shape and the memory order of its type."""
    if value.dtype != type.dtype or value.shape != shape:
        return False
    if value.flags.c_contiguous:
        kept = [axis for axis in type.layout.order if shape[axis] != 1]
        return kept == sorted(kept) or not value.size
    if type.c_contiguous:
        return False
    order = type.layout.order
    if type.layout.dense:
        return bool(value.transpose(order).flags.c_contiguous)
    steps = [abs(value.strides[axis]) for axis in order if shape[axis] != 1]
    return steps == sorted(steps, reverse=True)


def _check_call(node: Node, value: Any, symbols: Mapping[str, int]) -> None:
    """Raises GraphError where a library call gave something else than its frontend stated."""
    types = node.type if isinstance(node.type, tuple) else (node.type,)
    values = value if isinstance(node.type, tuple) else (value,)
    for part, type in zip(leaves(values), types, strict=True):
        assert isinstance(type, TensorType)
        if not conforms(part if hasattr(part, "strides") else np.asarray(part), type, concrete(type.shape, symbols)):
            raise GraphError(f"{node.attrs['target']} gave another type than {type}")


def leaves(values: Any) -> list[Any]:
    """The arrays in nested tuples and lists, as ``get`` numbers them."""
    if isinstance(values, tuple | list):
        return [leaf for value in values for leaf in leaves(value)]
    return [values]


def _callable(
    region: Graph, symbols: Mapping[str, int], spy: Spy | None, xp: Any, stacks: Collection[int]
) -> Callable[..., tuple[Any, ...]]:
    return lambda *args: run(region, args, symbols, spy, xp=xp, stacks=stacks)


def _stacks(node: Node) -> set[int]:
    """The inputs of a loop's regions, by number, in which each iteration stores one row of a derivative's stack.

    Nothing else refers to them, so a row is stored in place. To copy the whole stack for each would take time that is
    quadratic in the trip count.
    """
    if node.op not in (FORI_LOOP, EXIT_LOOP):
        return set()
    found = {number for region in node.regions for number in region.updates.values()}
    for region in node.regions if found else ():
        users = region.users()
        for number in list(found):
            given, returned = region.inputs[number], region.outputs[number - 1]
            is_row = returned.op is ASSIGN and returned.silent and returned.inputs[0] is given
            if users[given] != ([returned] if is_row else []) or not (is_row or returned is given):
                found.remove(number)
    return found
