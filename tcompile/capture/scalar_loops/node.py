"""Makes the graph node of a scalar-loop program.

Input: a program and its captured operands.
Output: a ``scalar_loop`` node in the graph, the arrays after it, and its results.
Why: separate from ``loops.scalar``, for programs that do not come from bytecode.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tcompile.capture.scalar_loops.builder import Instructions, Refused
from tcompile.capture.values.array import ArrayContext, ArrayValue, Memory
from tcompile.capture.values.base import Context, Value
from tcompile.capture.values.constant import FloatValue, IntegerValue
from tcompile.capture.values.scalar import ScalarValue, number_value
from tcompile.errors import GraphError
from tcompile.frontends.base import Traced
from tcompile.graph import Node, TensorType, ops
from tcompile.graph.ops.rules import like_order
from tcompile.graph.ops.scalar_blocks import tidy
from tcompile.graph.ops.scalar_carry import carry
from tcompile.graph.ops.scalar_choices import choose
from tcompile.graph.ops.scalar_loop import ELEMENTS, PYTHON, dtype_of, is_numpy, written_arrays
from tcompile.graph.ops.scalar_versions import merge_versions
from tcompile.graph.ops.writing import Path, path_types


def operand_of(tx: Context, value: Value) -> tuple[str, Any] | None:
    """Returns an open number's kind and operand; None for any other value."""
    if isinstance(value, IntegerValue):
        return "int", value.size
    if isinstance(value, FloatValue):
        return "float", tx.number_input(value.source).node
    if isinstance(value, ScalarValue):
        return value.cls.__name__, value.array.traced.node
    if isinstance(value, ArrayValue) and value.traced.scalar:
        name = value.traced.type.dtype.name
        if name not in ELEMENTS:
            raise Refused(f"a {name}")
        return f"np.{name}", value.traced.node
    return None


def number_of(tx: Context, kind: str, node: Node) -> Value:
    """Returns the value of a carried number."""
    if is_numpy(kind):
        return tx.new_array(Traced(node, True))
    return number_value(tx, node, PYTHON[kind])


def append(
    tx: ArrayContext, t: Instructions, arrays: Sequence[ArrayValue], kinds: Sequence[str], what: str = "loop"
) -> list[Node]:
    """Adds the node of what ``t`` has written; returns the results, which are of such ``kinds``. ``what`` it is called.

    Raises Refused where an array may not be written.
    """
    blocks = tuple((tuple(b.parameters), tuple(b.lines), b.end) for b in t.blocks)
    given = tuple(register for register, _ in t.numbers)
    program = tidy(merge_versions((tuple(t.kinds), given, blocks, tuple(kinds))))
    program = choose(program, lambda number: id(arrays[number].memory))
    program = carry(program, lambda number: id(arrays[number].memory))
    written = {id(arrays[number].memory) for number in written_arrays(program)}
    roots: list[Node] = []
    memories: list[Memory | None] = []
    shows: list[tuple[int, Path]] = []
    for array in arrays:
        memory = array.memory
        assert memory is not None
        changes = id(memory) in written
        if changes:
            memory.ask_identity(to_write=True)
        if changes and memory.kept:
            raise Refused(f"an array {memory.kept} is written")
        if changes and memory.owner is None and not memory.node.tensor.layout.dense:
            raise Refused("an array with gaps is written")
        node, path = (memory.node, array.path) if changes else (array.traced.node, ())
        if changes:
            try:
                path_types(node.tensor, path)
            except GraphError as error:  # the first write says what is wrong
                raise Refused("a view that cannot be written to is written") from error
        if node not in roots:
            roots.append(node)
            memories.append(memory if changes else None)
        shows.append((roots.index(node), path))
    for memory in memories:
        if memory is not None:
            tx.claim(memory)
    places = sorted({shows[number][0] for number in written_arrays(program)})
    types: list[Any] = []
    for place in places:
        old = roots[place].tensor
        types.append(TensorType(old.dtype, old.shape, like_order(old)))
    types += [TensorType(dtype_of(kind), ()) for kind in kinds]
    graph, location = tx.builder.graph, tx.builder.location
    operands = [*roots, *(operand for _, operand in t.numbers)]
    attrs = {"shows": tuple(shows), "program": program}
    name = f"{what}_{location.line}" if location is not None else what
    node = graph.append(ops.SCALAR_LOOP, operands, attrs, tuple(types), name=name, location=location)
    made = [
        graph.append(ops.GET, [node], {"index": index}, type_, location=location) for index, type_ in enumerate(types)
    ]
    for place, new in zip(places, made, strict=False):
        _written(tx, memories[place], new)
    return made[len(places) :]


def _written(tx: ArrayContext, memory: Memory | None, node: Node) -> None:
    """Sets the new contents of a memory."""
    assert memory is not None
    if memory.owner is None:
        tx.touch()
    else:
        tx.outside_writes += 1
        tx.mutate(memory.owner)
    memory.node = node
    memory.version += 1
    tx.show_memory(node, memory)


__all__ = ["append", "number_of", "operand_of"]
