"""Slices of rows in scalar code: their items, lengths, sums, means and products.

Input: a ``Translator``, and an array with a slice (``v[row[i]:row[i + 1]]``), or one indexed by another (``x[cols]``).
Output: values of the kinds ``slice``, ``taken`` and ``product``, whose items are loaded where they are used.
Why: the rows of a sparse matrix, segments and windows have sizes that depend on data. No array is made for them.

NumPy copies the items of ``x[cols]`` at once. So all indices are checked there, and the loop may write neither array.
"""

from __future__ import annotations

from collections.abc import Sequence

from tcompile.capture.scalar_loops.builder import Refused, V, is_none, is_number
from tcompile.capture.scalar_loops.forms import indexed, pairwise_sum
from tcompile.capture.scalar_loops.translator import METHODS, Translator
from tcompile.graph.ops.scalar_loop import dtype_of

_VECTORS = ("slice", "taken")


def is_vector(value: V) -> bool:
    """Whether it is a slice of a row, or items of one."""
    return value.kind[0] in _VECTORS


def key_of(t: Translator, bounds: Sequence[V]) -> V:
    """A ``slice`` object with two bounds."""
    for bound in bounds:
        if not is_none(bound) and (not is_number(bound) or dtype_of(bound.kind).kind not in "iu"):
            raise Refused("a slice with other bounds than ints")
    packed = t.pack(bounds)
    return V(("key", packed.kind[1]), packed.registers, packed.known)


def cut(t: Translator, value: V, key: V) -> V:
    """``value[start:stop]`` of an array or a row with one axis left; bounds beyond the ends are cut off."""
    array = value.kind[1]
    if len(t.around.array_type(array).shape) != len(value.registers) + 1:
        raise Refused("a slice of several axes")
    size = t.add("size", "int", array, len(value.registers))
    start, stop = t.items(key)
    first = t.constant(0) if is_none(start) else _bound(t, start, size)
    last = size if is_none(stop) else _bound(t, stop, size)
    end = _select(t, t.binary("<", last, first), first, last)
    registers = (*value.registers, first.register, end.register)
    return V(("slice", array, len(value.registers)), registers)


def _bound(t: Translator, bound: V, size: V) -> V:
    """A bound of a slice as an index from 0 to the size."""
    at = V("int", t.as_ints(bound.registers), bound.known)
    zero = t.constant(0)
    if type(at.known) is not int or at.known < 0:
        at = _select(t, t.binary("<", at, zero), t.binary("+", at, size), at)
        at = _select(t, t.binary("<", at, zero), zero, at)
    return _select(t, t.binary("<", size, at), size, at)


def _select(t: Translator, condition: V, yes: V, no: V) -> V:
    return t.add("select", "int", t.truth(condition).register, yes.register, no.register)


def taken(t: Translator, value: V, key: V) -> V:
    """``value[key]`` of an array of one axis, where ``key`` is a slice of ints."""
    array = value.kind[1]
    if value.kind[0] != "array" or len(t.around.array_type(array).shape) != 1:
        raise Refused("several axes indexed by a slice")
    if key.kind[0] != "slice" or t.around.array_type(key.kind[1]).dtype.kind not in "iu":
        raise Refused("an array indexed by something else than a slice of ints")
    for read in (array, key.kind[1]):
        t.around.read_only(read)
    found = V(("taken", array, key.kind), key.registers)
    return t.call(t.object(t.around.form(indexed)), [found, value, key, length(t, key)], ())


def length(t: Translator, value: V) -> V:
    """``len(value)``."""
    start, stop = (V("int", (register,)) for register in value.registers[-2:])
    return t.binary("-", stop, start)


def item(t: Translator, value: V, key: V) -> V:
    """``value[key]`` of a slice, a part of one, or a product, by an int."""
    if value.kind[0] == "product":
        one, two = t.items(value)
        return t.binary("*", item(t, one, key), item(t, two, key))
    if value.kind[0] == "taken":
        return t.subscript(V(("array", value.kind[1])), item(t, V(value.kind[2], value.registers), key))
    if not is_number(key) or dtype_of(key.kind).kind not in "iu":
        raise Refused("a slice indexed by something else than an int")
    at, size = V("int", t.as_ints(key.registers), key.known), length(t, value)
    if type(at.known) is not int or at.known < 0:
        at = _select(t, t.binary("<", at, t.constant(0)), t.binary("+", at, size), at)
        t.require(t.binary(">=", at, t.constant(0)))
    t.require(t.binary("<", at, size))
    *lead, start, _ = value.registers
    return t.subscript(V(("row" if lead else "array", value.kind[1], *([len(lead)] if lead else [])), tuple(lead)),
                       t.binary("+", V("int", (start,)), at))  # fmt: skip


def sum_of(t: Translator, value: V, is_mean: bool = False) -> V:
    """The sum of a slice's float64 items in NumPy's order, or their mean."""
    vectors = t.items(value) if value.kind[0] == "product" else [value]
    for vector in vectors:
        if not is_vector(vector) or t.around.array_type(vector.kind[1]).dtype.name != "float64":
            raise Refused("a sum of other items than floats of 64 bits")
    size = length(t, vectors[0])
    for other in vectors[1:]:
        t.require(t.binary("==", length(t, other), size))
    if is_mean:
        t.require(t.binary(">", size, t.constant(0)))
    divisor = size if is_mean else t.constant(1.0)
    sizes, sums = (V(("array", number)) for number in t.around.scratch())
    zero = t.add("const", "np.float64", 0.0)
    form = t.object(t.around.form(pairwise_sum))
    return t.call(form, [value, size, zero, divisor, sizes, sums], ())


def product(t: Translator, one: V, two: V) -> V:
    """``one @ two``."""
    if t.around.is_exact():
        raise Refused("a product that BLAS adds up in an order of its own")
    kinds = (one.kind, two.kind)
    return sum_of(t, V(("product", kinds), (*one.registers, *two.registers), (one, two)))


def _reduced(t: Translator, method: V, arguments: list[V]) -> V:
    if arguments:
        raise Refused("a reduction with arguments")
    _, name, kind = method.kind
    return sum_of(t, V(kind, method.registers), is_mean=name == "mean")


def _product_with(t: Translator, method: V, arguments: list[V]) -> V:
    if len(arguments) != 1 or not is_vector(arguments[0]):
        raise Refused("dot with something else than a slice")
    return product(t, V(method.kind[2], method.registers), arguments[0])


def method_of(value: V, name: str) -> V:
    """A method of a slice."""
    if name not in ("sum", "mean", "dot"):
        raise Refused(f"the method {name} of a slice")
    return V(("dotted" if name == "dot" else "reduced", name, value.kind), value.registers)


METHODS["reduced"], METHODS["dotted"] = _reduced, _product_with
__all__ = ["cut", "is_vector", "item", "key_of", "length", "method_of", "product", "sum_of", "taken"]
