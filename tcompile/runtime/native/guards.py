"""Guards as plan operations.

Input: the conditions of the entry program, as Python expressions written by ``capture``.
Output: operations that miss the plan unless the conditions hold.
Why: known forms of conditions run in machine code. Any other form is one call of Python for that condition, so no form
has to be known here.
"""

from __future__ import annotations

import ast
import ctypes
import struct
import sys
import types
from typing import Any

import numpy as np

from tcompile.capture.values.classes import lookup
from tcompile.frontends.numpy import NumPyFrontend
from tcompile.frontends.numpy.values import layout_of
from tcompile.graph import Layout
from tcompile.runtime.native import layout
from tcompile.runtime.native.bindings import version_at
from tcompile.runtime.native.words import LEAST, MOST, Words

# For each comparison of integers: the operation if it must hold, the one if it must not, and whether each swaps its
# operands.
_COMPARISONS: dict[type[ast.cmpop], tuple[tuple[str, bool], tuple[str, bool]]] = {
    ast.Lt: (("less", False), ("less_equal", True)), ast.LtE: (("less_equal", False), ("less", True)),
    ast.Gt: (("less", True), ("less_equal", False)), ast.GtE: (("less_equal", True), ("less", False)),
    ast.Eq: (("equal", False), ("not_equal", False)), ast.NotEq: (("not_equal", False), ("equal", False)),
}  # fmt: skip
_BY_EQUALITY = (str, bytes, bool)  # exact classes whose == runs no user code


class Guards(Words):
    """Writes the guards of a plan."""

    def binding(self, node: ast.expr) -> bool:
        """Records ``namespace[name] is object`` of a known dict, for ``unchanged``; False for another form."""
        match node:
            case ast.Compare(
                left=ast.Subscript(value=ast.Name() as base, slice=ast.Constant(value=str() as name)),
                ops=[ast.Is()], comparators=[right],
            ) if type(namespace := self.known(base)) is dict and self.is_fixed(right):  # fmt: skip
                self.bindings.setdefault(id(namespace), (namespace, {}))[1][name] = self.fixed(right)
                return True
        return False

    def unchanged(self) -> None:
        """Guards that the dicts are unchanged; nearly always one comparison of a word for each."""
        for namespace, held in self.bindings.values():
            version = version_at(namespace, self.operations["rebound"])
            if version is None:
                for name, value in held.items():
                    self.emit("dict_holds", self.address(namespace), self.address(name), self.address(value))
                continue
            pairs = [self.address(item) for pair in held.items() for item in pair]
            known = ctypes.c_uint64.from_address(version).value - 1  # the first call compares
            self.emit("unchanged", version, known, self.address(namespace), len(held), *pairs)

    def guard(self, node: ast.expr) -> None:
        """Guards that the condition holds."""
        if isinstance(node, ast.BoolOp) and isinstance(node.op, ast.And):
            for value in node.values:
                self.guard(value)
        elif not self.known_guard(node):
            skipped = self.may_be_apart(node)
            answer = self.python(node)
            self.emit("true", self.at(answer))
            if skipped is not None:
                self.code[skipped] = len(self.code) - skipped - 1

    def may_be_apart(self, node: ast.expr) -> int | None:
        """Emits a jump over a condition if two arrays are far apart; returns the position of its distance."""
        match node:
            case ast.UnaryOp(
                op=ast.Not(),
                operand=ast.Call(func=ast.Name(id=function), args=[ast.Name() as one, ast.Name() as other]),
            ) if getattr(self.constants.get(function), "__func__", None) is NumPyFrontend.overlap:  # fmt: skip
                arrays = [self.array(one), self.array(other)]
                facts = [self.of(array) for array in arrays if array is not None]
                if len(facts) == 2 and all(f.dtype is not None and 0 not in f.shape.values() for f in facts):
                    places = [self.at(array) for array in arrays if array is not None]
                    self.emit("apart", *places, *(f.dtype.itemsize for f in facts), 0)
                    return len(self.code) - 1
        return None

    def known_guard(self, node: ast.expr) -> bool:
        """Writes a condition that operations can check; False for another form."""
        match node:
            case ast.Compare(left=left, ops=[op], comparators=[right]):
                return self.comparison(left, op, right)
            case ast.Compare(left=least, ops=[ast.Lt(), ast.Lt()], comparators=[ast.Name() as middle, most]):
                return self.between(least, middle, most)
            case ast.Attribute(value=ast.Attribute(value=ast.Name() as base, attr="flags"), attr="c_contiguous"):
                array = self.array(base)
                if array is not None:
                    self.emit("flags", self.at(array), layout.C_CONTIGUOUS, layout.C_CONTIGUOUS)
                return array is not None
            case ast.UnaryOp(
                op=ast.Not(), operand=ast.Call(ast.Name("hasattr"), [ast.Name() as base, ast.Constant(str() as name)]),
            ) if isinstance(self.known(base), type):  # fmt: skip
                self.emit("class_holds", self.address(self.known(base)), self.address(sys.intern(name)), 0)
                return True
        return False

    def class_attribute(self, cls: type, name: str, wanted: Any) -> bool:
        """Guards the attribute that a class statement defines; False if the attribute's value is computed on access."""
        held = lookup(cls, name)
        if held is not wanted and not (isinstance(held, staticmethod | classmethod) and held.__func__ is wanted):
            return False
        self.emit("class_holds", self.address(cls), self.address(sys.intern(name)), self.address(held))
        return True

    def between(self, least: ast.expr, middle: ast.Name, most: ast.expr) -> bool:
        """Guards ``least < middle < most`` of an int."""
        register = self.objects.get(middle.id)
        if register is None or self.of(register).type is not int:
            return False
        try:
            low, high = (int(eval(compile(ast.Expression(end), "", "eval"), {})) for end in (least, most))
        except (NameError, TypeError, ValueError):
            return False
        if not LEAST <= low < high <= MOST:
            return False
        self.integer(register, low + 1, high - 1)
        return True

    def comparison(self, left: ast.expr, op: ast.cmpop, right: ast.expr) -> bool:
        """Guards a comparison, by its left operand."""
        match left, op:
            case ast.Call(func=ast.Name(id="type"), args=[ast.Name() as base]), ast.Is() if self.is_fixed(right):
                wanted, where = self.fixed(right), self.object(base)
                self.emit("type_is", self.at(where), self.address(wanted))
                self.of(where).type = wanted
                return True
            case ast.Call(func=ast.Name(id="len"), args=[ast.Name() as base]), ast.Eq() if self.is_fixed(right):
                where = self.object(base)
                if self.of(where).type in (list, tuple):
                    self.emit("length_is", self.at(where), self.fixed(right))
                    return True
            case ast.Call(func=ast.Name(id=function), args=[ast.Name() as base]), ast.Eq() if self.constants.get(
                function
            ) is layout_of and self.is_fixed(right):
                return self.layout(base, self.fixed(right))
            case ast.BinOp(
                left=ast.Attribute(value=ast.Attribute(value=ast.Name() as base, attr="flags"), attr="num"),
                op=ast.BitAnd(), right=ast.Constant(value=int() as mask),
            ), ast.Eq() if self.array(base) is not None and self.is_fixed(right):  # fmt: skip
                self.emit("flags", self.at(self.object(base)), mask, self.fixed(right))
                return True
            case ast.Name() as base, ast.Is() | ast.IsNot() if self.is_fixed(right):
                wanted, where = self.fixed(right), self.object(base)
                self.emit("is" if isinstance(op, ast.Is) else "is_not", self.at(where), self.address(wanted))
                if isinstance(op, ast.Is):
                    self.of(where).type = type(wanted)
                return True
            case ast.Name() as base, ast.Eq() if base.id in self.objects and self.is_fixed(right):
                return self.equality(self.objects[base.id], self.fixed(right))
            case (
                ast.Attribute(value=ast.Name() as base, attr=name)
                | ast.Attribute(value=ast.Attribute(value=ast.Name() as base, attr=name), attr="__func__")
            ), ast.Is() if isinstance(self.known(base), type) and self.is_fixed(right):  # fmt: skip
                return self.class_attribute(self.known(base), name, self.fixed(right))
            case ast.Constant(str() as name), ast.NotIn() if type(self.known(right)) is dict:
                self.emit("dict_holds", self.address(self.known(right)), self.address(name), 0)
                return True
            case ast.Attribute(value=ast.Name() as base, attr=name), ast.Is() | ast.Eq() if self.is_fixed(right):
                return self.field(base, name, op, self.fixed(right))
            case ast.Attribute(value=ast.Name() as base, attr="shape"), ast.Eq() if isinstance(right, ast.Tuple):
                return self.shape(base, right)
            case ast.Subscript(value=ast.Attribute(value=ast.Name() as base, attr="shape")), ast.Eq() if isinstance(
                left, ast.Subscript
            ) and self.is_fixed(right):
                return self.axis(base, self.fixed(left.slice), self.fixed(right))
            case (ast.Compare(left=first, ops=[inner], comparators=[second]), ast.Is()) if (
                isinstance(right, ast.Constant) and type(right.value) is bool and type(inner) in _COMPARISONS
            ):
                return self.sizes(first, inner, second, right.value)
        return type(op) in _COMPARISONS and self.sizes(left, op, right, True)

    def sizes(self, left: ast.expr, op: ast.cmpop, right: ast.expr, holds: bool) -> bool:
        """Guards a comparison of sizes, which must hold or must not."""
        mark = self.mark()
        first = self.number(left)
        second = None if first is None else self.number(right)
        if first is None or second is None:
            self.rewind(mark)
            return False
        operation, turned = _COMPARISONS[type(op)][0 if holds else 1]
        if turned:
            first, second = second, first
        self.emit(operation, self.at(first), self.at(second))
        return True

    def equality(self, where: int, wanted: Any) -> bool:
        """Guards ``==`` between an object of a known class and a constant of the same class."""
        kind = self.of(where).type
        if kind is not type(wanted):
            return False
        if isinstance(wanted, int) and kind is int and LEAST <= wanted <= MOST:
            self.integer(where, wanted, wanted)
        elif kind is float:
            self.emit("float_is", self.at(where), struct.unpack("<Q", struct.pack("<d", wanted))[0])
        elif kind in _BY_EQUALITY or (issubclass(kind, np.generic) and layout.scalar_holds_value(kind)):
            self.emit("equals", self.at(where), self.address(wanted))
        else:
            return False
        return True

    def field(self, base: ast.Name, name: str, op: ast.cmpop, wanted: Any) -> bool:
        """Guards the content of a field of an array or a function."""
        where = self.object(base)
        facts = self.of(where)
        if facts.type is np.ndarray and name == "dtype" and isinstance(op, ast.Is):
            self.emit("field_is", self.at(where), self.address(wanted), layout.OFFSETS["ARRAY_DTYPE"])
            facts.dtype = wanted
        elif facts.type is np.ndarray and name == "ndim" and type(wanted) is int and isinstance(op, ast.Eq):
            self.emit("axes", self.at(where), wanted)
            facts.ndim = wanted
        elif facts.type is types.FunctionType and name in ("__code__", "__globals__") and isinstance(op, ast.Is):
            offset = layout.function_fields()["FUNCTION_CODE" if name == "__code__" else "FUNCTION_GLOBALS"]
            self.emit("field_is", self.at(where), self.address(wanted), offset)
        else:
            return False
        return True

    def shape(self, base: ast.Name, wanted: ast.Tuple) -> bool:
        """Guards all sizes of an array."""
        array = self.array(base)
        if array is None or not all(isinstance(n, ast.Constant) and type(n.value) is int for n in wanted.elts):
            return False
        self.emit("axes", self.at(array), len(wanted.elts))
        self.of(array).ndim = len(wanted.elts)
        return all(self.axis(base, axis, self.fixed(size)) for axis, size in enumerate(wanted.elts))

    def axis(self, base: ast.Name, axis: Any, size: Any) -> bool:
        """Guards one size of an array."""
        array = self.array(base)
        if array is None or type(axis) is not int or type(size) is not int or size > MOST:
            return False
        facts = self.of(array)
        if not 0 <= axis < (facts.ndim or 0):
            return False
        self.emit("axis_is", self.at(array), axis, size)
        facts.shape[axis] = size
        return True

    def layout(self, base: ast.Name, wanted: Layout) -> bool:
        """Guards the order of the axes in memory; in dense memory, each stride follows from the sizes."""
        array = self.array(base)
        if array is None:
            return False
        facts = self.of(array)
        if facts.ndim != len(wanted.ranks) or facts.dtype is None or 0 in facts.shape.values():
            return False
        if not wanted.dense:
            itemsize, order = facts.dtype.itemsize, reversed(wanted.order)
            ranks = map(int, wanted.ranks)  # whole numbers, because the array comes from outside
            self.emit("ranked", self.at(array), itemsize, len(wanted.ranks), *ranks, *order)
            return True
        step = self.literal(facts.dtype.itemsize)
        for axis in reversed(wanted.order):
            if facts.shape.get(axis) == 1:
                continue
            stride = self.new()
            self.emit("stride", self.at(stride), self.at(array), axis)
            self.emit("equal", self.at(stride), self.at(step))
            if axis in facts.shape:
                size = self.literal(facts.shape[axis])
            else:  # open sizes are at least two
                size = self.size_of(array, axis)
                self.emit("less", self.at(self.literal(1)), self.at(size))
            step = self.arithmetic("multiply", step, size)
        return True


__all__ = ["Guards"]
