"""Supported NumPy objects, and the conversion of arguments to operands.

Input: NumPy arrays and scalars, Python numbers, traced values, and lists of them.
Output: exact ``TensorType`` values, ``Traced`` operands, dtypes and plain argument values (axes, shapes).
Why: every handler reads its arguments in the same way, and inexact cases are refused in one place.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from functools import lru_cache
from itertools import pairwise
from typing import Any, TypeAlias

import numpy as np

from tcompile.errors import GraphError
from tcompile.frontends.base import Builder, CannotCapture, Stacked, Traced, TracedNumber, slot
from tcompile.graph import Layout, Node, Operand, TensorType, ops
from tcompile.graph.dtypes import DType
from tcompile.graph.ops.rules import broadcast_shapes, like_order
from tcompile.graph.sizes import Size, SymInt, is_one, product, same, same_shape
from tcompile.strict import strict

BOOL = np.dtype("bool")
INT = np.dtype("int64")
FLOAT = np.dtype("float64")
KINDS = "biufc"
# A bit of flags.num. To read flags.writeable is no choice: arrays that warn when they are written to warn then, too.
WRITEABLE = 1 << 10
_FEW = 9  # numbers that an array is made of in a kernel
_MOST_GIVEN = 64  # numbers in a list that is there already: more are read one by one for nothing
_OF_SCALARS = "tcompile.frontends.numpy.quiet.array_of_scalars"

Weak: TypeAlias = bool | int | float | complex | SymInt | TracedNumber


# -- NumPy objects -------------------------------------------------------------------------------------------


def takes_dtype(dtype: DType) -> bool:
    """Whether arrays of this dtype are taken: native booleans, integers, floats and complex numbers.

    None of them has metadata, or fields (integers may). Where C has two integer types of one size, it is the one that
    is NumPy's usual dtype of that size.
    """
    # A dtype with metadata, or the other one, equals the one that is taken.
    return dtype.metadata is None and _takes(dtype) and np.dtype(dtype.str).char == dtype.char


@lru_cache(maxsize=256)
def _takes(dtype: DType) -> bool:
    return dtype.isnative and dtype.names is None and dtype.kind in KINDS and dtype.char not in "gG"


def layout_of(array: np.ndarray[Any, Any]) -> Layout:
    """The memory layout of an array, from its strides. Views without elements have an order, too."""
    strides = [0 if n == 1 else abs(s) for n, s in zip(array.shape, array.strides, strict=True)]
    if array.flags.c_contiguous and (array.size or all(a >= b for a, b in pairwise(filter(None, strides)))):
        return Layout.c(array.ndim)
    distinct = sorted({s for s in strides if s})
    ranks = [1 if n == 1 else (distinct.index(s) + 1 if s else 0) for n, s in zip(array.shape, strides, strict=True)]
    layout = Layout(tuple(ranks))
    step = array.itemsize
    dense = all(s >= 0 for s in array.strides)
    for axis in reversed(layout.order):
        if array.shape[axis] != 1:
            dense = dense and strides[axis] == step
            step *= array.shape[axis]
    return Layout(layout.ranks, dense)


def copied_dtype(value: object) -> DType | None:
    """The dtype that ``value`` equals and is not, as that of an unpickled array; None where it is none that we take."""
    if not issubclass(type(value), np.dtype):  # not isinstance, which asks the object
        return None
    assert isinstance(value, np.dtype)
    if not takes_dtype(value):
        return None
    usual = np.dtype(value.str)
    return None if usual is value else usual


_OF_A_CLASS_STATEMENT = 1 << 9  # among the flags of a class: it may have a dtype of its own


def type_of(value: object) -> TensorType | None:
    """The type of an exact ndarray or NumPy scalar; None for everything else, subclasses and odd dtypes included."""
    if type(value) is np.ndarray:
        dtype = value.dtype
        return TensorType(np.dtype(dtype.str), value.shape, layout_of(value)) if takes_dtype(dtype) else None
    # Of the type itself: isinstance would ask the object, which may claim any class, or be a proxy of nothing.
    if not issubclass(type(value), np.generic) or type(value).__flags__ & _OF_A_CLASS_STATEMENT:
        return None
    assert isinstance(value, np.generic)
    taken = np.dtype(value.dtype.str)
    if type(value) is value.dtype.type is taken.type and takes_dtype(value.dtype):
        return TensorType(taken, ())
    return None


# -- operands ------------------------------------------------------------------------------------------------


def is_weak(value: object) -> bool:
    """Whether ``value`` is a Python number, known now or only at run time."""
    return type(value) in (bool, int, float, complex) or isinstance(value, SymInt | TracedNumber)


def is_constant(value: object) -> bool:
    """Whether ``value`` is a number whose value is known now."""
    return type(value) in (bool, int, float, complex) or isinstance(value, np.generic)


def refuse_list(x: Any) -> None:
    """Refuses what has no dimensions where NumPy asks an array for its own."""
    if isinstance(x, list | tuple | Stacked):
        raise CannotCapture("operation-raises", "a list has no dimensions")


def constant(b: Builder, value: np.generic) -> Traced:
    """A NumPy scalar as a node."""
    if type_of(value) is None:
        raise CannotCapture("unsupported-dtype", f"a scalar of type {type(value).__name__}")
    return Traced(b.op("full", shape=(), fill_value=value.item(), dtype=value.dtype.name), scalar=True)


def strong(b: Builder, value: Any) -> Traced:
    """A single number, weak or not, as a rank-0 value of the dtype that NumPy gives it by itself."""
    if isinstance(value, Traced):
        return value
    if isinstance(value, np.generic):
        return constant(b, value)
    if isinstance(value, TracedNumber) and value.at is not None:
        return Traced(value.node, scalar=True)
    if isinstance(value, TracedNumber):
        # As an array it is the larger one of itself and -inf, which is itself, whatever it is, and raises no flag.
        least = b.op("full", shape=(), fill_value=-math.inf, dtype=FLOAT.name)
        return Traced(b.op("maximum", least, value.node), scalar=True)
    if isinstance(value, SymInt):
        return Traced(b.op("full", shape=(), fill_value=value, dtype="int64"), scalar=True)
    if type(value) in (bool, int, float, complex):
        return constant(b, _strong_constant(value))
    raise CannotCapture("unsupported-argument", f"{type(value).__name__} where an array is expected")


def _strong_constant(value: Any) -> np.generic:
    dtype = np.asarray(value).dtype
    if not takes_dtype(dtype):
        raise CannotCapture("unsupported-dtype", f"the number {number_text(value)} has no native dtype")
    found: np.generic = dtype.type(value)
    return found


def operand(b: Builder, value: Any) -> Traced | Weak:
    """An argument of a ufunc: a traced value, or a Python number left weak."""
    if isinstance(value, Traced) or is_weak(value):
        return value  # type: ignore[no-any-return]
    return array(b, value)


def array(b: Builder, value: Any) -> Traced:
    """What ``np.asanyarray(value)`` gives for computing with: numbers and nested lists become nodes.

    The result's ``scalar`` flag is the argument's own; ask ``as_ndarray`` where a real array object is
    returned.
    """
    if isinstance(value, Traced):
        return value
    if isinstance(value, list | tuple):
        return nested(b, value)
    if isinstance(value, Stacked):
        return stacked(b, value)
    return strong(b, value)


def stacked(b: Builder, value: Stacked) -> Traced:
    """``np.array`` of a list that a loop appended to: a new array, one row an item."""
    parts = [x if many else array(b, x) for x, many in zip(value.parts, value.many, strict=True)]
    rows = next(x for x, many in zip(parts, value.many, strict=True) if many).type
    if len(parts) == 1 and (rows.ndim, rows.dtype) != (1, FLOAT) and rows.shape[0] == 0:  # NumPy cannot tell a dtype
        return Traced(b.op("full", shape=(0,), fill_value=0.0, dtype=FLOAT.name))
    for part, many in zip(parts, value.many, strict=True):
        if part.type.dtype != rows.dtype or not same_shape(part.type.shape[many:], rows.shape[1:]):
            raise CannotCapture("array-conversion", "a list of several kinds of items becomes an array")
    if len(parts) == 1:
        return Traced(b.op("copy_c", parts[0].node))
    key = (None, Ellipsis)
    nodes = [
        x.node if many else b.op("index", as_ndarray(b, x).node, key=key)
        for x, many in zip(parts, value.many, strict=True)
    ]
    return Traced(b.op("concat", *nodes, axis=0))


def array_object(b: Builder, value: Any) -> Traced:
    """``array``, but a Python number becomes an array of rank 0: what functions that call a method work on.

    NumPy's scalars have the methods themselves.
    """
    made = array(b, value)
    return made if isinstance(value, Traced | np.generic) else as_ndarray(b, made)


def nested(b: Builder, value: Any, dtype: DType | None = None) -> Traced:
    """``np.array`` of nested lists whose leaves are numbers, rank-0 traced values, or arrays of one shape."""
    stacked = _stacked(b, value, dtype)
    if stacked is not None:
        return stacked
    items: list[Any] = []
    leaves: list[Traced | TracedNumber] = []

    def walk(item: Any) -> tuple[Any, Any]:
        """The template for the graph, and a stand-in of the same types for NumPy to look at."""
        if isinstance(item, list | tuple):
            parts = [walk(i) for i in item]
            return tuple(p[0] for p in parts), [p[1] for p in parts]
        items.append(item)
        if isinstance(item, Traced):
            if item.type.ndim:
                raise CannotCapture(
                    "array-conversion", "a list with arrays in it becomes an array; np.stack joins arrays of one shape"
                )
            leaves.append(item)
            return slot(len(leaves) - 1, item), np.zeros((), item.type.dtype)[()]
        if isinstance(item, TracedNumber):
            leaves.append(item)
            return slot(len(leaves) - 1, item), 0.0
        if isinstance(item, SymInt):
            return item, 0
        if is_constant(item):
            return item.item() if isinstance(item, np.generic) else item, item
        raise CannotCapture("array-conversion", f"a list with {type(item).__name__} in it becomes an array")

    template, stand_in = walk(value)
    if not b.whole and sum(leaf.node.op is ops.INPUT for leaf in leaves) > _MOST_GIVEN:
        raise CannotCapture("array-conversion", f"a list of {len(items)} numbers becomes an array")
    try:
        with strict():
            seen = np.array(stand_in, dtype)
    except (ValueError, ArithmeticError, TypeError, Warning) as error:
        raise CannotCapture("operation-raises", str(error)) from error
    if not takes_dtype(seen.dtype):
        raise CannotCapture("unsupported-dtype", f"a list becomes an array of dtype {seen.dtype}")
    same = all(x.type.dtype == seen.dtype for x in leaves if isinstance(x, Traced))
    counted = any(isinstance(item, SymInt) for item in items)
    is_few = same and 1 < seen.size <= _FEW
    if leaves and is_few and (seen.dtype == INT or (seen.dtype == FLOAT and not counted)):
        return Traced(_one_by_one(b, items, seen.shape, seen.dtype))
    # Every leaf is converted to the common dtype by NumPy itself, so it must be passed which one that is.
    result = TensorType(seen.dtype, seen.shape)
    target = "numpy.array"
    if seen.dtype.kind in "iu":
        unsafe = [x for x in leaves if isinstance(x, Traced) and not np.can_cast(x.type.dtype, seen.dtype)]
        if not all(x.scalar for x in unsafe):
            raise CannotCapture("array-conversion", f"a list with arrays in it becomes an array of {seen.dtype}")
        if unsafe:  # NumPy refuses a scalar that does not fit, where it casts an array of rank 0
            target = _OF_SCALARS
    return call(b, target, leaves, result, template, dtype=seen.dtype.name)


def _stacked(b: Builder, value: Any, dtype: DType | None) -> Traced | None:
    """Arrays of one shape side by side along a new first axis; None for anything else in a list."""
    rows = []
    for item in value:
        row = _stacked(b, item, dtype) if isinstance(item, list | tuple) else item
        if not isinstance(row, Traced) or not row.type.ndim or not takes_dtype(row.type.dtype):
            return None
        rows.append(row)
    if not rows or not all(same_shape(row.type.shape, rows[0].type.shape) for row in rows):
        return None
    common = np.result_type(*(row.type.dtype for row in rows)) if dtype is None else dtype
    if not takes_dtype(common) or not all(np.can_cast(row.type.dtype, common) for row in rows):
        return None
    nodes = []
    for row in rows:
        node = cast(b, row, common)
        node = node if node.tensor.c_contiguous else b.op("copy_c", node)
        nodes.append(b.op("index", node, key=(None, Ellipsis)))
    return Traced(b.op("concat", *nodes, axis=0))


def _one_by_one(b: Builder, items: Sequence[Any], shape: tuple[int, ...], dtype: DType) -> Node:
    """An array of a few numbers: a kernel chooses among them, by where it is."""
    place = b.op("arange", start=0, stop=len(items), step=1, dtype=INT.name)
    place = b.op("reshape", place, shape=shape) if len(shape) > 1 else place
    found = b.op("full", shape=shape, fill_value=0, dtype=dtype.name)
    for number, item in enumerate(items):
        one: Operand
        if isinstance(item, Traced | TracedNumber):
            one = item.node
        elif isinstance(item, SymInt):
            one = item
        else:
            one = b.op("full", shape=(), fill_value=dtype.type(item).item(), dtype=dtype.name)
        found = b.op("where", b.op("equal", place, number), one, found)
    return found


def as_ndarray(b: Builder, x: Traced) -> Traced:
    """``x`` as an array object: itself, or a new rank-0 array for a scalar."""
    return Traced(b.op("copy", x.node)) if x.scalar else x


def cast(b: Builder, x: Traced, dtype: DType) -> Node:
    """The node of ``x`` in ``dtype``."""
    return x.node if x.type.dtype == dtype else b.op("astype", x.node, dtype=dtype.name)


def weak_as(value: Weak, dtype: DType) -> Operand:
    """A Python number as the bare operand of an operation in ``dtype``; refused where NumPy would raise or warn."""
    if isinstance(value, TracedNumber):
        if dtype.kind != "f" and (dtype.kind != "c" or value.at is not None):
            raise CannotCapture("unsupported-argument", f"a Python float beside {dtype}")
        return value.node if value.at is None else value.at(dtype)
    if type(value) is bool:
        if dtype.kind == "b":
            return value
        value = int(value)
    if dtype.kind in "iu" and isinstance(value, int | SymInt):
        info = np.iinfo(dtype)
        if not (isinstance(value, SymInt) and dtype == INT) and not info.min <= value <= info.max:
            raise CannotCapture("operation-raises", f"the Python int {number_text(value)} does not fit {dtype}")
        return value
    if dtype.kind == "f":
        if isinstance(value, SymInt):
            return value
        if isinstance(value, int | float):
            try:
                number = float(value)
            except OverflowError as error:
                raise CannotCapture(
                    "operation-raises", f"the Python int {number_text(value)} does not fit {dtype}"
                ) from error
            with np.errstate(all="ignore"):
                overflows = np.isfinite(number) and not np.isfinite(dtype.type(number))
            if overflows:
                raise CannotCapture("operation-raises", f"{number_text(value)} overflows {dtype}")
            return number
    if dtype.kind == "c" and isinstance(value, SymInt):
        return value
    if dtype.kind == "c" and isinstance(value, int | float | complex):
        part = np.dtype(f"float{dtype.itemsize * 4}")
        real, imag = (weak_as(x, part) for x in (value.real, value.imag))
        assert isinstance(real, int | float) and isinstance(imag, int | float)
        return complex(real, imag)
    raise CannotCapture("unsupported-argument", f"the Python number {number_text(value)} beside {dtype}")


# -- opaque calls --------------------------------------------------------------------------------------------


def call(
    b: Builder,
    target: str,
    operands: Sequence[Traced | TracedNumber],
    type: TensorType,
    *template: Any,
    scalar: bool | None = None,
    **kwargs: Any,
) -> Traced:
    """One library call of known type. ``template`` are its arguments with ``Slot(i)`` for operand ``i``.

    Without a template the operands themselves are the arguments. A result of rank 0 is a scalar by default.
    """
    read = any(isinstance(o, TracedNumber) and o.at is not None for o in operands)
    if read and target not in ("numpy.array", _OF_SCALARS):
        raise CannotCapture("data-dependent-value", f"{target} takes a Python number that is read from an array.")
    args = template or tuple(map(slot, range(len(operands)), operands))
    attrs = {"target": target, "args": args, "kwargs": tuple(sorted(kwargs.items()))}
    node = b.graph.append(
        ops.CALL, [o.node for o in operands], attrs, type, name=target.rpartition(".")[2], location=b.location
    )
    return Traced(node, scalar=not type.ndim if scalar is None else scalar)


def standin_dtype(function: Callable[..., Any], *args: Any, **kwargs: Any) -> DType:
    """The dtype that ``function`` gives, asked of NumPy on small stand-ins. What it raises, the user's call would."""
    try:
        with strict("ignore"):
            dtype: DType = np.asarray(function(*args, **kwargs)).dtype
    except Exception as error:
        raise CannotCapture("operation-raises", str(error)) from error
    if not takes_dtype(dtype):
        raise CannotCapture("unsupported-dtype", f"a result of dtype {dtype}")
    return dtype


# -- plain arguments -----------------------------------------------------------------------------------------


def dtype_of(value: Any) -> DType:
    """A dtype argument. Refuses those that the graph does not have."""
    if isinstance(value, Traced | TracedNumber) or value is None:
        raise CannotCapture("unsupported-argument", "a dtype that is no dtype")
    try:
        dtype = np.dtype(value)
    except Exception as error:  # TypeError mostly; ValueError, SyntaxError and KeyError of odd descriptions
        raise CannotCapture("operation-raises", str(error)) from error
    if not takes_dtype(dtype):
        raise CannotCapture("unsupported-dtype", f"dtype {dtype}")
    native: DType = np.dtype(dtype.str)
    return native


def integer(value: Any, what: str) -> int:
    """A Python int whose value the graph depends on: a symbolic one is fixed to its value."""
    if isinstance(value, SymInt):
        return value.specialise()
    if isinstance(value, Traced | TracedNumber):
        raise CannotCapture("data-dependent-value", f"{what} is computed by the captured code")
    try:
        return operator.index(value)
    except TypeError as error:
        raise CannotCapture("operation-raises", f"{what}: {error}") from error


def diagonal_in(offset: Any, what: str = "offset") -> int:
    """The number of a diagonal. NumPy raises, or goes on in another dtype, where it is no C int."""
    number = integer(offset, what)
    if not -(1 << 31) <= number < 1 << 31:
        raise CannotCapture("unsupported-argument", f"the diagonal {number}")
    return number


def axis_in(axis: Any, ndim: int, what: str = "axis") -> int:
    """One axis argument, made non-negative. Some of NumPy's functions take a bool for an int, most do not."""
    if isinstance(axis, bool | np.bool_):
        raise CannotCapture("unsupported-argument", f"a bool as {what}")
    number = integer(axis, what)
    if not -ndim <= number < ndim:
        raise CannotCapture("operation-raises", f"{what} {number} is out of bounds for {ndim} dimensions")
    return number % ndim


def axes_in(axis: Any, ndim: int) -> tuple[int, ...]:
    """An axis argument of a reduction (None, int or tuple) as a sorted tuple."""
    if axis is None:
        return tuple(range(ndim))
    axes = [axis_in(a, ndim) for a in (axis if isinstance(axis, tuple) else (axis,))]
    if len(set(axes)) != len(axes):
        raise CannotCapture("operation-raises", "duplicate value in 'axis'")
    return tuple(sorted(axes))


def flag(value: Any, what: str) -> bool:
    """A boolean argument known now. One of NumPy's is left to it: most of its functions do not take it."""
    if type(value) in (bool, int):
        return bool(value)
    raise CannotCapture("unsupported-argument", f"{what} is not a plain bool")


def shape_in(shape: Any) -> tuple[Size, ...]:
    """A shape argument: an int or a sequence of ints, symbolic ones included."""
    items = shape if isinstance(shape, tuple | list) else (shape,)
    if any(isinstance(item, bool) for item in items):
        raise CannotCapture("unsupported-argument", "a bool as a size")
    return tuple(item if isinstance(item, SymInt) else integer(item, "a size") for item in items)


def new_shape(shape: Any) -> tuple[Size, ...]:
    """The shape of a new array: none negative, and not so large that NumPy refuses it."""
    sizes = shape_in(shape)
    if any(n < 0 for n in sizes):
        raise CannotCapture("operation-raises", "negative dimensions are not allowed")
    if len(sizes) > 64 or product(n for n in sizes if isinstance(n, int)) > 2**56:
        raise CannotCapture("operation-raises", "the array is too large")
    return sizes


def sizes_equal(a: Size, b: Size) -> bool:
    """Whether two sizes agree, recording a guard only where it cannot be proved."""
    return same(a, b) or a == b


def broadcast(shapes: Sequence[tuple[Size, ...]]) -> tuple[Size, ...]:
    """NumPy's broadcasting; CannotCapture where it raises."""
    try:
        return broadcast_shapes(shapes)
    except GraphError as error:
        raise CannotCapture("operation-raises", str(error)) from error


# -- memory order --------------------------------------------------------------------------------------------


def same_order(a: TensorType, b: Layout) -> bool:
    """Whether a value's layout and another agree on the axes that matter (those of size other than one)."""
    kept = [axis for axis, n in enumerate(a.shape) if not is_one(n)]
    return [axis for axis in a.layout.order if axis in kept] == [axis for axis in b.order if axis in kept]


def kept_order(type: TensorType) -> Layout:
    """The layout of a copy of one operand in K order."""
    return like_order(type)


def certainly_not_c(node: Node) -> bool:
    """Whether a value that the type does not call C-contiguous is known not to be.

    Types are careful: a view of a view may be called strided though its strides happen to be dense.
    """
    type = node.tensor
    if type.c_contiguous:
        return False
    if node.op is ops.INPUT or type.never_c_contiguous:
        return True
    if node.op is ops.PERMUTE_DIMS:
        return certainly_not_c(node.inputs[0])
    static = all(isinstance(n, int) for n in type.shape)
    return node.op is ops.INDEX and static and node.inputs[0].tensor.layout.dense


def require_c(name: str, *operands: Traced) -> None:
    """Refuses operands that do not lie in C order, where the order of the result would not be certain."""
    for x in operands:
        if x.type.ndim > 1 and not x.type.c_contiguous:
            raise CannotCapture("memory-order", f"{name} of an array that is not in C order")


def number_text(number: Any) -> str:
    """A number as text. Of an int Python refuses to write thousands of digits."""
    large = type(number) is int and number.bit_length() > 64
    return f"an int of {number.bit_length()} bits" if large else str(number)
