"""Routines: operations that machine code computes by a call of the library's own loop.

Input: a node whose result is a product of matrices, or the solution of equations.
Output: the ``Routine`` that computes it, and the ``Kernel`` that says where its operands lie.
Why: such a node is launched as kernels are, reads through transposes and slices as they do, and needs no call of
Python.

The kernel's space has the axes of the stack, then rows, columns and the summed axis; each operand has some of these.
"""

from __future__ import annotations

from collections.abc import Callable

from tcompile.backends.schedule.kernel import Axis, Buffer, Kernel, KernelValue, Store
from tcompile.backends.schedule.kernel_ops import LOAD, ROUTINE
from tcompile.backends.schedule.lower import access_of
from tcompile.backends.schedule.maps import Affine, Map, broadcast, identity, through
from tcompile.graph import Node, Size, TensorType, ops
from tcompile.graph.ops.opaque import Slot
from tcompile.graph.ops.view import address_direction
from tcompile.graph.overlap import is_view
from tcompile.graph.sizes import UnprovableSizeError
from tcompile.records import dataclass

LINEAR = "numpy.linalg._umath_linalg"


@dataclass(frozen=True)
class Routine:
    """A loop of a universal function: ``ufunc`` is its dotted name.

    ``axes`` has the letters of the core axes of each operand, and of the result: m rows, p columns, k the summed axis.
    ``sizes`` are those whose lengths the loop is passed, in its order. ``lone`` is the universal function for sums of
    one product: a sum turns a negative zero into a positive one. ``raises``: the invalid flag does not go to the error
    state in force; the library's function raises.
    """

    ufunc: str
    axes: tuple[str, ...]
    sizes: str
    dtypes: str = ""  # the characters of the dtypes that it computes as the node does; empty: all
    lacks: str = ""  # the letters that operands of one axis do not have
    lone: str = ""
    raises: bool = False


_PRODUCT = Routine("numpy.matmul", ("mk", "kp", "mp"), "mkp", lacks="mp")
_CALLS = {
    "numpy.dot": Routine("numpy.matmul", ("mk", "kp", "mp"), "mkp", lacks="mp", lone="numpy.multiply"),
    "numpy.vecdot": Routine("numpy.vecdot", ("k", "k", ""), "k"),
    "numpy.linalg.vecdot": Routine("numpy.vecdot", ("k", "k", ""), "k"),
    "numpy.matvec": Routine("numpy.matvec", ("mk", "k", "m"), "mk"),
    "numpy.vecmat": Routine("numpy.vecmat", ("k", "kp", "p"), "kp"),
    "numpy.linalg.solve": Routine(f"{LINEAR}.solve", ("mk", "kp", "mp"), "mp", "dD", raises=True),
    "numpy.linalg.inv": Routine(f"{LINEAR}.inv", ("mp", "mp"), "m", "dD", raises=True),
    "numpy.linalg.cholesky": Routine(f"{LINEAR}.cholesky_lo", ("mp", "mp"), "m", "dD", raises=True),
}
_SOLVE_ONE = Routine(f"{LINEAR}.solve1", ("mk", "k", "m"), "m", "dD", raises=True)


def routine_of(node: Node) -> Routine | None:
    """The routine that computes a node as the library's function does; None where there is none."""
    found: Routine | None = None
    if node.op is ops.MATMUL:
        found = _PRODUCT
    elif node.op is ops.CALL and not node.attrs["kwargs"]:
        if node.attrs["args"] == tuple(map(Slot, range(len(node.inputs)))):
            found = _CALLS.get(node.attrs["target"])
        if found is not None and found.ufunc.endswith(".solve") and node.inputs[1].tensor.ndim == 1:
            found = _SOLVE_ONE
    if found is None or not isinstance(node.type, TensorType) or len(node.operands) != len(node.inputs):
        return None
    dtype = node.type.dtype
    types = [operand.type for operand in node.inputs]
    if len(types) + 1 != len(found.axes) or not dtype.isnative:
        return None
    if any(not isinstance(type, TensorType) or type.dtype != dtype for type in types):
        return None
    if found.dtypes and dtype.char not in found.dtypes:
        return None
    ranks = [type.ndim for type in types if isinstance(type, TensorType)]
    if found.lone and not (ranks == [1, 1] and all(address_direction(operand, 0) for operand in node.inputs)):
        return None
    if not found.lacks and any(rank < len(axes) for rank, axes in zip(ranks, found.axes, strict=False)):
        return None
    return found


def kernel_of(node: Node, routine: Routine, name: str, buffer: Callable[[Node], Buffer]) -> Kernel:
    """The kernel of a node: loads of its operands, the routine, and the store of its result."""
    letters = [_letters(node, routine, number) for number in range(len(routine.axes))]
    stack = node.tensor.shape[: node.tensor.ndim - len(letters[-1])]
    order = [letter for letter in "mpk" if any(letter in axes for axes in routine.axes)]
    place = {letter: len(stack) + number for number, letter in enumerate(order)}
    sizes: dict[str, Size] = dict.fromkeys(order, 1)
    values: list[KernelValue] = []
    for operand, axes in zip(node.inputs, letters, strict=False):
        type = operand.tensor
        core = type.ndim - len(axes)
        sizes.update(zip(axes, type.shape[core:], strict=True))
        outer = broadcast(identity(len(stack)), type.shape[:core], stack)
        map: Map = (*outer, *(Affine(((place[letter], 1),)) for letter in axes))
        base, map = _beneath(operand, map)
        access = access_of(buffer(base), map, len(stack) + len(order))
        values.append(KernelValue(LOAD, (), type.dtype, access.axes, base, {}, access))
    kept = frozenset(range(len(stack))) | {place[letter] for letter in letters[-1]}
    space = [Axis(size) for size in stack]
    space += [Axis(sizes[letter], letter not in routine.axes[-1]) for letter in order]
    attrs = {"routine": routine, "places": tuple(place[letter] for letter in routine.sizes), "letters": place}
    value = KernelValue(ROUTINE, tuple(values), node.tensor.dtype, kept, node, attrs)
    own = (*identity(len(stack)), *(Affine(((place[letter], 1),)) for letter in letters[-1]))
    store = Store(value, access_of(buffer(node), own, len(space)))
    return Kernel(name, "routine", space, [*values, value], [store], (node,))


def bases(node: Node) -> list[Node]:
    """The arrays that a routine reads for the operands of ``node``."""
    return [_beneath(operand, identity(operand.tensor.ndim))[0] for operand in node.inputs]


def _letters(node: Node, routine: Routine, number: int) -> str:
    """The core axes that an operand, or the result, has: a product's rows or columns may be left out."""
    axes = routine.axes[number]
    if not routine.lacks:
        return axes
    vectors = [operand.tensor.ndim == 1 for operand in node.inputs]
    missing = {letter for letter, is_vector in zip(routine.lacks, vectors, strict=True) if is_vector}
    return "".join(letter for letter in axes if letter not in missing)


def _beneath(node: Node, map: Map) -> tuple[Node, Map]:
    """The base of a chain of view ops, and the map into it: each axis of the map may go to any axis there."""
    while is_view(node) and node.op not in (ops.REAL, ops.IMAG):
        try:
            inner = through(node, map)
        except UnprovableSizeError:
            inner = None
        if inner is None:
            break
        node, map = node.inputs[0], inner
    return node, map


__all__ = ["Routine", "bases", "kernel_of", "routine_of"]
