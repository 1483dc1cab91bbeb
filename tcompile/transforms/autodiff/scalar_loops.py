"""Derivatives of scalar loops: the loop with tapes, and the loop that goes back.

Input: a ``scalar_loop`` node, and the cotangents of its results.
Output: the cotangents of its operands.
Why: ``programs`` reverses a program, and knows nothing of graphs.

The node itself becomes the loop with tapes. Their lengths follow from the trip counts. Where these depend on values, a
tape is long enough for some 50,000 iterations. Where that is too little, the derivative follows the path of the call.
"""

from __future__ import annotations

from tcompile.errors import DerivativeError
from tcompile.graph import ops
from tcompile.graph.ir import Node, Operand, Type
from tcompile.graph.ops.scalar_loop import dtype_of, written_roots
from tcompile.graph.ops.writing import path_types
from tcompile.graph.sizes import Size, SymInt
from tcompile.graph.types import TensorType
from tcompile.transforms.autodiff.program_bounds import Number
from tcompile.transforms.autodiff.program_plan import FLOATS, INTS
from tcompile.transforms.autodiff.programs import Reversed, reverse
from tcompile.transforms.autodiff.reverse import LOOPS, Walk
from tcompile.transforms.emit import is_float

_ROOM = 1 << 18  # numbers on a tape, where trip counts depend on values: its cotangents are set to zero in each call


def scalar_loop(walk: Walk, node: Node) -> None:
    """The rule of a scalar loop: adds the loop that goes back."""
    program, shows = node.attrs["program"], node.attrs["shows"]
    numbers = program[1]
    count = len(node.operands) - len(numbers)
    active = {i for i, o in enumerate(node.operands) if isinstance(o, Node) and o in walk.active and is_float(o)}
    written = written_roots(shows, program)
    cotangents = walk.results[node]
    given = {place - len(written): g for place, g in cotangents.items() if place >= len(written)}

    def known(key: Number) -> Size | None:
        operand = _size(node, *key[1:]) if key[0] == "size" else node.operands[count + numbers.index(key[1])]
        return operand if isinstance(operand, int | SymInt) else None

    try:
        made = reverse(
            program, [(root, _kind(node.operands[root])) for root, _ in shows], {i for i in active if i < count},
            {numbers[i - count] for i in active if i >= count}, set(given), known,
            node.attrs.get("runs"), _ROOM,
        )  # fmt: skip
    except DerivativeError as error:
        raise DerivativeError(walk.why(node, str(error))) from error
    ends = {root: cotangents[place] for place, root in enumerate(written) if place in cotangents}
    tapes, lengths = _record(walk, node, made, len(written), count)
    _go_back(walk, node, made, ends, given, tapes, lengths, count)


def _record(walk: Walk, node: Node, made: Reversed, written: int, count: int) -> tuple[list[Node], list[Node]]:
    """Gives the node its tapes; returns them, and their lengths, after it."""
    e, graph = walk.e, walk.e.graph
    place = graph.nodes.index(node)
    empty = [e(ops.EMPTY, shape=(room,), dtype=t) for room, t in zip(made.room, ("int64", "float64"), strict=True)]
    graph.nodes[place:] = [*empty, *graph.nodes[place : -len(empty)]]
    shows = (*node.attrs["shows"], *((count + tape, ()) for tape in (INTS, FLOATS)))
    places = [root for root in written_roots(shows, made.forward) if root >= count]  # of the tapes that are written
    for get in graph.nodes:
        if get.op is ops.GET and get.inputs[0] is node and get.attrs["index"] >= written:
            get.attrs = {"index": get.attrs["index"] + len(places)}
    assert isinstance(node.type, tuple)
    types = (
        *node.type[:written], *(empty[root - count].tensor for root in places), *node.type[written:],
        *(TensorType(dtype_of("int"), ()) for _ in empty),
    )  # fmt: skip
    node.operands = (*node.operands[:count], *empty, *node.operands[count:], *made.room)
    node.attrs = {**node.attrs, "program": made.forward, "shows": shows}
    node.type = types
    tapes = list(empty)
    for index, root in enumerate(places, written):
        tapes[root - count] = _get(walk, node, index)
    return tapes, [_get(walk, node, len(types) - 2 + tape) for tape in (INTS, FLOATS)]


def _go_back(
    walk: Walk, node: Node, made: Reversed, ends: dict[int, Node], given: dict[int, Node], tapes: list[Node],
    lengths: list[Node], count: int,
) -> None:  # fmt: skip
    """Adds the backward loop, and the cotangents of what the loop was given."""
    e, shows = walk.e, node.attrs["shows"]
    given_roots: dict[tuple[str, int], Node] = {}  # what the backward loop reads and writes
    arrays = []
    for what, array in made.arrays:
        root, path = shows[array] if what != "tape" else (array, ())
        if (what, root) not in given_roots:
            operand = node.operands[root]
            assert isinstance(operand, Node)
            if what == "cotangent":
                operand = e(ops.COPY_C, ends[root]) if root in ends else e.full(operand, 0.0)
            given_roots[what, root] = tapes[root] if what == "tape" else operand
        arrays.append(([*given_roots].index((what, root)), path))
    registers = dict(zip(made.forward[1], node.operands[count + 2 :], strict=True))

    def number(key: Number) -> Operand:
        match key:
            case ("length", tape):
                return lengths[tape]
            case ("cotangent", place):
                return e.cast(given[place], dtype_of("float"))
            case ("number", register):
                return registers[register]
            case ("room", tape):
                return made.room[tape]
        return _size(node, *key[1:])

    numbers = [number(key) for key in made.numbers]
    starts, changed = [*given_roots.values()], written_roots(arrays, made.backward)
    types: list[Type] = [starts[i].tensor for i in changed]
    types += [TensorType(dtype_of("float"), ()) for _ in made.results]
    loop = walk.e.graph.append(
        ops.SCALAR_LOOP, [*starts, *numbers],
        {"shows": tuple(arrays), "program": made.backward} | ({} if made.runs is None else {"runs": made.runs}),
        tuple(types),
        name=f"{node.name}_backward", location=node.location,
    )  # fmt: skip
    loop.silent = True
    after = dict(zip(changed, range(len(changed)), strict=True))
    for i, (what, root) in enumerate(given_roots):
        if what != "cotangent":
            continue
        operand = node.operands[root]
        assert isinstance(operand, Node)
        walk.add(operand, _get(walk, loop, after[i]) if i in after else starts[i])
    for place, register in enumerate(made.results, len(changed)):
        operand = registers[register]
        assert isinstance(operand, Node)
        walk.add(operand, e.cast(_get(walk, loop, place), operand.tensor.dtype))


def _kind(operand: Operand) -> str:
    assert isinstance(operand, Node)
    return f"np.{operand.tensor.dtype.name}"


def _size(node: Node, array: int, axis: int) -> Size:
    """The size of an array of a program along an axis."""
    root, path = node.attrs["shows"][array]
    operand = node.operands[root]
    assert isinstance(operand, Node)
    return path_types(operand.tensor, path)[-1].shape[axis] if path else operand.tensor.shape[axis]


def _get(walk: Walk, node: Node, index: int) -> Node:
    assert isinstance(node.type, tuple)
    return walk.e.graph.append(ops.GET, [node], {"index": index}, node.type[index], location=node.location)


LOOPS[ops.SCALAR_LOOP] = scalar_loop
