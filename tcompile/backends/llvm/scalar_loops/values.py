"""Lowering of single scalar instructions to LLVM IR: arithmetic, comparisons, conversions, as in Python.

Input: the kinds of registers, and operands as IR.
Output: IR that computes the result, or jumps to the block ``replay`` where Python would raise, warn, or need more than
64 bits.
Why: ``lower`` knows blocks, arrays and calls, and no arithmetic.

Remainders and quotients of floats follow CPython's ``float_divmod``, which NumPy's scalars share.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np

from tcompile.backends.llvm import native
from tcompile.backends.llvm.native import entries
from tcompile.backends.llvm.scalar_loops.ranges import WHOLE, Bounds, arithmetic, kind_bounds
from tcompile.backends.llvm.vector.text import Writer, literal, memory_type, scalar_type
from tcompile.graph.dtypes import DType
from tcompile.graph.ops.scalar_loop import common, dtype_of, is_numpy

_ORDERED = {"<": "olt", "<=": "ole", "==": "oeq", "!=": "une", ">": "ogt", ">=": "oge"}
_SIGNED = {"<": "slt", "<=": "sle", "==": "eq", "!=": "ne", ">": "sgt", ">=": "sge"}
_FLOATS = {"+": "fadd", "-": "fsub", "*": "fmul", "/": "fdiv"}
_INTEGERS = {"+": "add", "-": "sub", "*": "mul"}
_BITS = {"&": "and", "|": "or", "^": "xor"}
_INT = np.dtype("int64")
_FLOAT = np.dtype("float64")
_BOOL = np.dtype("bool")
_ROUNDED = {"np.floor": "floor", "np.ceil": "ceil", "np.trunc": "trunc", "np.rint": "nearbyint"}
_EXTREMES = {"np.maximum": "ogt", "np.minimum": "olt"}
_LEAST = 2.0**-60  # products of literals above it cannot underflow
_EXACT = {4: 24, 8: 53}  # ints of so many bits convert exactly


class Values:
    """Emits instructions. ``w`` is the function's writer; its block ``replay`` leaves to plain Python.

    ``bounds`` are those of some ints: checks that follow from them are eliminated. ``checks`` counts the others.
    """

    def __init__(self, w: Writer) -> None:
        self.w = w
        self.bounds: dict[str, Bounds] = {}
        self.checks = 0
        self._never_zero: set[str] = set()
        self._frames: dict[
            str, tuple[list[str], str]
        ] = {}  # by function, the stack slots of operands, and its arguments
        self.kept = ""  # the word with the flags from before functions that clear them; empty: there are none

    def range(self, value: str, dtype: DType) -> Bounds:
        """The bounds of an int."""
        found = self.bounds.get(value)
        if found is not None:
            return found
        if value.lstrip("-").isdigit():
            return (int(value), int(value))
        return kind_bounds(f"np.{dtype.name}") or WHOLE

    def _fits(self, bounds: Bounds | None, dtype: DType) -> bool:
        least, most = kind_bounds(f"np.{dtype.name}") or WHOLE
        return bounds is not None and least <= bounds[0] and bounds[1] <= most

    # -- leaving -------------------------------------------------------------------------------------------------------
    def need(self, condition: str) -> None:
        """Goes on only where the condition holds."""
        if condition == "true":
            return
        self.checks += 1
        label = self.w.label("ok")
        self.w.branch(condition, label, "replay")
        self.w.place(label)

    def refuse(self, condition: str) -> None:
        """Goes on only where the condition does not hold."""
        if condition == "false":
            return
        self.checks += 1
        label = self.w.label("ok")
        self.w.branch(condition, "replay", label)
        self.w.place(label)

    def unfolded(self, kind: str, value: Any) -> str:
        """A literal that LLVM cannot fold: a folded result raises no flag."""
        type = scalar_type(dtype_of(kind))
        slot = self.w.slot(type, align=8)
        self.w.entry.append(f"  store {type} {constant(kind, value)}, ptr {slot}")
        return self.w.at_entry(f"load volatile {type}, ptr {slot}")

    def intrinsic(self, name: str, types: str, result: str) -> str:
        """The name of an intrinsic, declared."""
        return self.w.module.declare(f"@{name}", f"declare {result} @{name}({types})")

    def ufunc(self, name: str, values: Sequence[str]) -> str:
        """The result of a universal function on floats."""
        if name in _ROUNDED:
            rounded = self.intrinsic(f"llvm.{_ROUNDED[name]}.f64", "double", "double")
            return self.w.get(f"call double {rounded}(double {values[0]})")
        return self._extreme(name, *values) if name in _EXTREMES else self._loop_for_one(name, values)

    def _extreme(self, name: str, a: str, b: str) -> str:
        """The larger or smaller of two floats. NumPy's own code chooses among equal ones and NaNs."""
        w, other, join, found = self.w, self.w.label("equal"), self.w.label("join"), self.w.name("extreme")
        less = w.get(f"fcmp {_EXTREMES[name]} double {a}, {b}")
        chosen = w.get(f"select i1 {less}, double {a}, double {b}")
        apart, first = w.get(f"fcmp one double {a}, {b}"), w.block
        w.branch(apart, join, other)
        w.place(other)
        called = self._loop_for_one(name, (a, b))
        last = w.block
        w.jump(join)
        w.place(join)
        w.do(f"{found} = phi double [ {chosen}, %{first} ], [ {called}, %{last} ]")
        return found

    def _loop_for_one(self, name: str, values: Sequence[str]) -> str:
        """Calls NumPy's loop as NumPy does for one number."""
        w, called, count = self.w, name.replace(".", "_"), 1 + len(values)
        address = loop_of(name, len(values))
        assert address is not None
        function = w.module.external(called, "void {}(ptr, ptr, ptr, ptr)", address)
        if called not in self._frames:
            slots = [w.slot("double", align=8) for _ in range(count)]
            arrays, strides, one = (w.slot("i64", size, align=8) for size in (str(count), str(count), "1"))
            for place, slot in enumerate(slots):
                at = w.at_entry(f"getelementptr ptr, ptr {arrays}, i64 {place}")
                step = w.at_entry(f"getelementptr i64, ptr {strides}, i64 {place}")
                w.entry += [f"  store ptr {slot}, ptr {at}", f"  store i64 0, ptr {step}"]
            w.entry.append(f"  store i64 1, ptr {one}")
            self._frames[called] = slots, f"ptr {arrays}, ptr {one}, ptr {strides}"
        slots, given = self._frames[called]
        for slot, value in zip(slots, values, strict=False):
            w.do(f"store double {value}, ptr {slot}")
        if forgets_flags(name, len(values)):
            signature = "void {}(ptr, ptr, ptr, ptr, ptr)"
            keeping = w.module.external("tc_call_keeping_flags", signature, entries.call_keeping_flags())
            w.do(f"call void {keeping}(ptr {function}, {given}, ptr {self.kept})")
        else:
            w.do(f"call void {function}({given}, ptr null)")
        return w.get(f"load double, ptr {slots[-1]}")

    # -- conversions ---------------------------------------------------------------------------------------------------
    def extend(self, value: str, dtype: DType, to: DType = _INT) -> str:
        """An int or bool as a wider int."""
        if (dtype.kind != "b" and dtype.itemsize == to.itemsize) or value.lstrip("-").isdigit():
            return value
        how = "sext" if dtype.kind == "i" else "zext"
        wide = self.w.get(f"{how} {scalar_type(dtype)} {value} to {scalar_type(to)}")
        self.bounds[wide] = self.range(value, dtype)
        return wide

    def fitting(self, value: str, dtype: DType, to: DType) -> str:
        """An int as an int of another dtype; plain Python where it does not fit."""
        if dtype == to:
            return value
        if dtype.kind == "b" or np.can_cast(dtype, to):
            return self.extend(value, dtype, to)
        whole = self.extend(value, dtype)
        if to == _INT:
            return whole
        short = self.w.get(f"trunc i64 {whole} to {scalar_type(to)}")
        if self._fits(self.range(whole, _INT), to):
            self.bounds[short] = self.range(whole, _INT)
            return short
        back = self.extend(short, to)
        self.need(self.w.get(f"icmp eq i64 {whole}, {back}"))
        return short

    def exact(self, value: str, bits: int) -> None:
        """Goes on only where an int of 64 bits has no more than so many."""
        low, high = self.range(value, _INT)
        if -(1 << bits) <= low and high <= 1 << bits:
            return
        shifted = self.w.get(f"add i64 {value}, {1 << bits}")
        self.need(self.w.get(f"icmp ule i64 {shifted}, {1 << bits + 1}"))

    def convert(self, value: str, dtype: DType, to: DType, exactly: bool = False) -> str:
        """A number as a dtype that holds it, or as a float. ``exactly``: plain Python where no float is equal."""
        if dtype == to:
            return value
        if to.kind in "biu":
            return self.fitting(value, dtype, to) if to.kind != "b" else self.truth(value, dtype)
        if dtype.kind == "f":
            how = "fpext" if to.itemsize > dtype.itemsize else "fptrunc"
            return self.w.get(f"{how} {scalar_type(dtype)} {value} to {scalar_type(to)}")
        whole = self.extend(value, dtype)
        if dtype.itemsize * 8 > _EXACT[to.itemsize] and (exactly or to.itemsize < 8):
            self.exact(whole, _EXACT[to.itemsize])
        low, high = self.range(whole, _INT)
        if low == high and abs(low) <= 1 << _EXACT[to.itemsize]:
            return literal(to, low)
        made = self.w.get(f"sitofp i64 {whole} to {scalar_type(to)}")
        if low > 0 or high < 0:
            self._never_zero.add(made)
        return made

    def truth(self, value: str, dtype: DType) -> str:
        """``bool(value)``."""
        if dtype.kind == "b":
            return value
        if dtype.kind == "f":
            return self.w.get(f"fcmp une {scalar_type(dtype)} {value}, {literal(dtype, 0)}")
        return self.w.get(f"icmp ne {scalar_type(dtype)} {value}, 0")

    def to_int(self, value: str, dtype: DType) -> str:
        """``int(value)``."""
        if dtype.kind != "f":
            return self.extend(value, dtype)
        wide = self.convert(value, dtype, _FLOAT)
        limit = literal(_FLOAT, float(1 << 62))
        size = self.w.get(f"call double {self.intrinsic('llvm.fabs.f64', 'double', 'double')}(double {wide})")
        self.need(self.w.get(f"fcmp olt double {size}, {limit}"))
        return self.w.get(f"fptosi double {wide} to i64")

    # -- two operands --------------------------------------------------------------------------------------------------
    def binary(self, sign: str, a: str, b: str, ka: str, kb: str, kind: str) -> str:
        """``a sign b``, of kinds ``ka`` and ``kb``, with a result of ``kind``."""
        da, db, dtype = dtype_of(ka), dtype_of(kb), dtype_of(kind)
        if sign in _SIGNED:
            return self._compare(sign, a, b, ka, kb)
        if sign in "&|^":
            one, two = (self.fitting(v, d, dtype) for v, d in ((a, da), (b, db)))
            return self.w.get(f"{_BITS[sign]} {scalar_type(dtype)} {one}, {two}")
        if sign == "/" and da.kind in "biu" and db.kind in "biu":
            return self._quotient(a, b, da, db, exactly=not is_numpy(kind))
        one, two = self.convert(a, da, dtype), self.convert(b, db, dtype)
        if dtype.kind == "f":
            return self._floats(sign, one, two, dtype)
        if sign in _INTEGERS:
            return self._checked(sign, one, two, dtype)
        if sign in ("<<", ">>"):
            return self._shift(sign, one, two, dtype, overflows=kind == "int")
        return self._divided(sign, one, two, dtype)

    def _compare(self, sign: str, a: str, b: str, ka: str, kb: str) -> str:
        da, db = dtype_of(ka), dtype_of(kb)
        if da.kind != "f" and db.kind != "f":
            one, two = self.extend(a, da), self.extend(b, db)
            known = _decided(sign, self.range(one, _INT), self.range(two, _INT))
            return known or self.w.get(f"icmp {_SIGNED[sign]} i64 {one}, {two}")
        weak = not is_numpy(ka) and not is_numpy(kb)
        dtype = _FLOAT if weak else common(ka, kb)
        one, two = (self.convert(v, d, dtype, exactly=weak) for v, d in ((a, da), (b, db)))
        return self.w.get(f"fcmp {_ORDERED[sign]} {scalar_type(dtype)} {one}, {two}")

    def _quotient(self, a: str, b: str, da: DType, db: DType, exactly: bool) -> str:
        self._not_zero(self.extend(b, db), _INT)
        one, two = self.convert(a, da, _FLOAT, exactly), self.convert(b, db, _FLOAT, exactly)
        return self.w.get(f"fdiv double {one}, {two}")

    def _not_zero(self, value: str, dtype: DType) -> None:
        """Goes on only where an int is not zero."""
        low, high = self.range(value, dtype)
        if low <= 0 <= high:
            self.need(self.w.get(f"icmp ne {scalar_type(dtype)} {value}, 0"))

    def _checked(self, sign: str, a: str, b: str, dtype: DType) -> str:
        """Integer arithmetic; plain Python where it overflows."""
        type = scalar_type(dtype)
        found = arithmetic(sign, self.range(a, dtype), self.range(b, dtype))
        if found is not None and self._fits(found, dtype):
            if found[0] == found[1]:
                return str(found[0])
            return self.w.get(f"{_INTEGERS[sign]} {'nuw' if dtype.kind == 'u' else 'nsw'} {type} {a}, {b}")
        name = f"llvm.{'u' if dtype.kind == 'u' else 's'}{_INTEGERS[sign]}.with.overflow.{type}"
        self.intrinsic(name, f"{type}, {type}", f"{{ {type}, i1 }}")
        both = self.w.get(f"call {{ {type}, i1 }} @{name}({type} {a}, {type} {b})")
        self.refuse(self.w.get(f"extractvalue {{ {type}, i1 }} {both}, 1"))
        return self.w.get(f"extractvalue {{ {type}, i1 }} {both}, 0")

    def _shift(self, sign: str, a: str, b: str, dtype: DType, overflows: bool) -> str:
        type, bits = scalar_type(dtype), dtype.itemsize * 8
        low, high = self.range(b, dtype)
        if low < 0 or high >= bits:
            self.need(self.w.get(f"icmp ult {type} {b}, {bits}"))
        if sign == ">>":
            return self.w.get(f"{'lshr' if dtype.kind == 'u' else 'ashr'} {type} {a}, {b}")
        made = self.w.get(f"shl {type} {a}, {b}")
        if overflows and not self._fits(arithmetic("<<", self.range(a, dtype), (low, high)), dtype):
            back = self.w.get(f"ashr {type} {made}, {b}")
            self.need(self.w.get(f"icmp eq {type} {back}, {a}"))
        return made

    def _divided(self, sign: str, a: str, b: str, dtype: DType) -> str:
        """``//`` and ``%`` of ints, which round down."""
        w, type = self.w, scalar_type(dtype)
        self._not_zero(b, dtype)
        (low, _), (least, most) = self.range(a, dtype), self.range(b, dtype)
        if low >= 0 and least >= 0:
            return w.get(f"{'udiv' if sign == '//' else 'urem'} {type} {a}, {b}")
        lowest = -(1 << dtype.itemsize * 8 - 1)
        if low == lowest and least <= -1 <= most:
            minus, smallest = w.get(f"icmp eq {type} {b}, -1"), w.get(f"icmp eq {type} {a}, {lowest}")
            self.refuse(w.get(f"and i1 {minus}, {smallest}"))
        rest = w.get(f"srem {type} {a}, {b}")
        mixed = w.get(f"xor {type} {rest}, {b}")
        opposite, some = w.get(f"icmp slt {type} {mixed}, 0"), w.get(f"icmp ne {type} {rest}, 0")
        down = w.get(f"and i1 {opposite}, {some}")
        if sign == "%":
            more = w.get(f"add {type} {rest}, {b}")
            return w.get(f"select i1 {down}, {type} {more}, {type} {rest}")
        whole = w.get(f"sdiv {type} {a}, {b}")
        return w.get(f"add {type} {whole}, {w.get(f'sext i1 {down} to {type}')}")

    def _floats(self, sign: str, a: str, b: str, dtype: DType) -> str:
        w, type, zero = self.w, scalar_type(dtype), literal(dtype, 0)
        if sign in ("/", "//", "%") and not self._is_never_zero(b):
            self.need(w.get(f"fcmp une {type} {b}, {zero}"))
        if sign in _FLOATS:
            return w.get(f"{_FLOATS[sign]} {type} {a}, {b}")
        if sign == "**":
            return self._finite(self.library("pow", [a, b]))
        rest = w.get(f"frem {type} {a}, {b}")
        some = w.get(f"fcmp une {type} {rest}, {zero}")
        signs = [w.get(f"fcmp olt {type} {value}, {zero}") for value in (b, rest)]
        apart = w.get(f"and i1 {some}, {w.get(f'xor i1 {signs[0]}, {signs[1]}')}")
        short = {"float": "f32", "double": "f64"}[type]
        copy = self.intrinsic(f"llvm.copysign.{short}", f"{type}, {type}", type)
        if sign == "%":
            moved = w.get(f"fadd {type} {rest}, {b}")
            found = w.get(f"select i1 {apart}, {type} {moved}, {type} {rest}")
            empty = w.get(f"call {type} {copy}({type} {zero}, {type} {b})")
            return w.get(f"select i1 {some}, {type} {found}, {type} {empty}")
        count = w.get(f"fdiv {type} {w.get(f'fsub {type} {a}, {rest}')}, {b}")
        less = w.get(f"fsub {type} {count}, {literal(dtype, 1)}")
        count = w.get(f"select i1 {apart}, {type} {less}, {type} {count}")
        floor = self.intrinsic(f"llvm.floor.{short}", type, type)
        down = w.get(f"call {type} {floor}({type} {count})")
        far = w.get(f"fcmp ogt {type} {w.get(f'fsub {type} {count}, {down}')}, {literal(dtype, 0.5)}")
        down = w.get(f"select i1 {far}, {type} {w.get(f'fadd {type} {down}, {literal(dtype, 1)}')}, {type} {down}")
        empty = w.get(f"call {type} {copy}({type} {zero}, {type} {w.get(f'fdiv {type} {a}, {b}')})")
        whole = w.get(f"fcmp une {type} {count}, {zero}")
        return w.get(f"select i1 {whole}, {type} {down}, {type} {empty}")

    def _is_never_zero(self, value: str) -> bool:
        return value in self._never_zero or (value.startswith("0x") and int(value, 16) << 1 & (1 << 64) - 1 != 0)

    # -- functions -----------------------------------------------------------------------------------------------------
    def library(self, name: str, operands: list[str]) -> str:
        """A call of the C library, as Python makes it: LLVM must not replace it."""
        types = ", ".join(["double"] * len(operands))
        self.w.module.declare(f"@{name}", f"declare double @{name}({types}) nobuiltin nounwind memory(none)")
        given = ", ".join(f"double {operand}" for operand in operands)
        return self.w.get(f"call double @{name}({given}) nobuiltin")

    def _finite(self, value: str) -> str:
        size = self.w.get(f"call double {self.intrinsic('llvm.fabs.f64', 'double', 'double')}(double {value})")
        self.need(self.w.get(f"fcmp olt double {size}, {literal(_FLOAT, float('inf'))}"))
        return value

    def unary(self, name: str, value: str, dtype: DType, result: DType) -> str:
        """``name`` of a number."""
        w, type = self.w, scalar_type(dtype)
        if name == "positive":
            return value
        if name == "not":
            return w.get(f"xor i1 {value}, true")
        if name == "invert":
            return w.get(f"xor {type} {value}, -1")
        if name == "bool":
            return self.truth(value, dtype)
        if name == "int":
            return self.to_int(value, dtype)
        if name in ("float", "np.float64", "np.int64"):
            return self.convert(value, dtype, result)
        if name in ("negative", "abs") and dtype.kind != "f":
            wide = self.extend(value, dtype, result)
            minus = self._checked("-", "0", wide, result)
            if name == "negative":
                return minus
            low = w.get(f"icmp slt {scalar_type(result)} {wide}, 0")
            return w.get(f"select i1 {low}, {scalar_type(result)} {minus}, {scalar_type(result)} {wide}")
        if name == "negative":
            return w.get(f"fneg {type} {value}")
        short = {"float": "f32", "double": "f64"}[type]
        which = {"abs": "fabs", "np.sqrt": "sqrt", "round": "roundeven"}[name]
        full = f"llvm.{which}.{short}"
        found = w.get(f"call {type} {self.intrinsic(full, type, type)}({type} {value})")
        return self.to_int(found, dtype) if name == "round" else found


@cache
def loop_of(name: str, count: int) -> int | None:
    """The address of NumPy's loop for so many floats; None where there is none."""
    found = native.inner_loop(getattr(np, name.removeprefix("np.")), f"{'d' * count}->d")
    return found if native.has_inner_loops() else None


def forgets_flags(name: str, count: int) -> bool:
    """Whether NumPy's loop for so many floats clears flags that were raised before it."""
    address = loop_of(name, count)
    return address is not None and entries.clears_flags(address, count)


def _decided(sign: str, a: Bounds, b: Bounds) -> str | None:
    """The result of a comparison, where bounds imply it."""
    if sign in (">", ">="):
        return _decided("<" if sign == ">" else "<=", b, a)
    if sign == "<":
        return "true" if a[1] < b[0] else "false" if a[0] >= b[1] else None
    if sign == "<=":
        return "true" if a[1] <= b[0] else "false" if a[0] > b[1] else None
    if a[1] < b[0] or b[1] < a[0]:
        return "false" if sign == "==" else "true"
    return None


# -- memory ------------------------------------------------------------------------------------------------------------


def loaded(w: Writer, dtype: DType, address: str) -> str:
    """An element."""
    found = w.get(f"load {memory_type(dtype)}, ptr {address}, align {dtype.itemsize}")
    return w.get(f"icmp ne i8 {found}, 0") if dtype.kind == "b" else found


def stored(w: Writer, dtype: DType, value: str, address: str, for_flags: bool = False) -> None:
    """Stores an element, or a result. ``for_flags``: it is dead, but its operands may raise flags."""
    if dtype.kind == "b":
        value = w.get(f"zext i1 {value} to i8")
    how = "store volatile" if for_flags else "store"
    w.do(f"{how} {memory_type(dtype)} {value}, ptr {address}, align {dtype.itemsize}")


def is_stored_again(line: tuple[Any, ...], later: Sequence[tuple[Any, ...]]) -> bool:
    """Whether a later instruction of a block overwrites the store ``line``."""
    return any(other[0] == "store" and (other[2], other[4:]) == (line[2], line[4:]) for other in later)


def is_extreme(value: Any) -> bool:
    """Whether operations on a literal may overflow or underflow, or are invalid on zeros."""
    return type(value) is float and bool(value) and not _LEAST < abs(value) < 1 / _LEAST and value == value


def constant(kind: str, value: Any) -> str:
    """A literal of a kind."""
    return literal(dtype_of(kind), value)


__all__ = ["Values", "constant", "forgets_flags", "is_extreme", "is_stored_again", "loaded", "stored"]
