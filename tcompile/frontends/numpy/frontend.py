"""The NumPy frontend object, which dispatches to the tables.

Input: NumPy objects, calls and operators on traced values.
Output: the nodes that the handlers of the sibling files build.
Why: capture calls one object.
"""

from __future__ import annotations

import types
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from tcompile.frontends.base import Builder, CannotCapture, Check, Selected, Traced
from tcompile.frontends.numpy import (
    checks,
    indexing,
    masks,
    operators,
    outputs,
    plain,
    refusals,
    subscripts,
    ufunc_methods,
    ufuncs,
    values,
    writing,
)
from tcompile.frontends.numpy.creation import scalar_type
from tcompile.frontends.numpy.forms import FORMS
from tcompile.frontends.numpy.library import METHOD_RULES, RULES, Rule, library_call
from tcompile.frontends.numpy.registry import ATTRIBUTES, FUNCTIONS, METHODS, OF_FUNCTIONS_ONLY, invoke, signature_of
from tcompile.graph import Node, TensorType, ops
from tcompile.graph.dtypes import DType
from tcompile.graph.ops.scalar_loop import COMPOSED_UFUNCS, UFUNCS

_FIXED = (
    np.ufunc, np.dtype, type, types.FunctionType, types.BuiltinFunctionType, types.MethodDescriptorType,
    types.ModuleType, type(np.sum),  # the dispatcher around NumPy's Python functions
)  # fmt: skip
# Functions that scalar loops compute, by their identities.
_INSTRUCTIONS = {
    id(getattr(np, name)): f"np.{name}"
    for name in (*UFUNCS, *COMPOSED_UFUNCS, "sqrt", "absolute", "fabs", "float64", "int64", "sum", "mean", "dot")
}
_OPERATOR_METHODS = {"__abs__": "abs", "__neg__": "-", "__pos__": "+", "__invert__": "~"}


def _module_of(function: object) -> str:
    owner = getattr(function, "__self__", None)
    for candidate in (function, owner, type(function), type(owner)):
        module = getattr(candidate, "__module__", None)
        if isinstance(module, str) and (module == "numpy" or module.startswith("numpy.")):
            return module
    return ""


def _hashed(function: object, table: Any) -> bool:
    if type(function).__flags__ & (1 << 9) and not type(function).__module__.startswith("numpy"):
        return False  # a class made by a class statement: its hash may be user code
    try:
        return function in table
    except (TypeError, ValueError):  # the latter of a memoryview of numbers
        return False


class NumPyFrontend:
    """The NumPy frontend: builds NumPy's calls in the graph.

    >>> import numpy as np
    >>> from tcompile.frontends.base import Builder
    >>> frontend, b = NumPyFrontend(), Builder()
    >>> x = Traced(b.graph.input("x", frontend.type_of(np.zeros((2, 3), "float32"))))
    >>> y = frontend.binary(b, "+", x, 1)
    >>> print(frontend.call(b, np.sum, [y], {"axis": 0}).type)
    f32[3]
    """

    name = "numpy"
    device = "cpu"
    namespace: Any = np

    def type_of(self, value: object) -> TensorType | None:
        """Returns the type of an exact ndarray or NumPy scalar of a supported dtype; else None."""
        return values.type_of(value)

    def is_scalar(self, value: object) -> bool:
        """Whether ``value`` is a NumPy scalar object."""
        return isinstance(value, np.generic)

    def python_type(self, x: Traced) -> type:
        """Returns ndarray, or the scalar class of the dtype."""
        return x.type.dtype.type if x.scalar else np.ndarray

    def checks(
        self,
        name: str,
        type: TensorType,
        scalar: bool,
        open_axes: frozenset[int],
        constant: Callable[[Any], str],
        own_dtype: bool = False,
    ) -> list[Check]:
        """Returns the guards for an array or scalar of this type."""
        return checks.checks(name, type, scalar, open_axes, constant, own_dtype=own_dtype)

    def copied_dtype(self, value: object) -> DType | None:
        """Returns NumPy's own dtype if ``value`` is an equal copy."""
        return values.copied_dtype(value)

    def is_fixed(self, value: object) -> bool:
        """Whether it is a function, ufunc, dtype or class of NumPy; not a mutable object like a bit generator."""
        if issubclass(type(value), _FIXED):
            return self.knows(value)
        return any(value is known for known in subscripts.OWNERS)

    def as_array(self, b: Builder, number: Any) -> Node:
        """What ``np.array`` makes of it, as far as operations can tell."""
        made: Traced = self.call(b, np.array, [number], {})
        return made.node.inputs[0] if made.node.op is ops.COPY else made.node  # nodes never change: no need of a copy

    def scalar_instruction(self, function: object) -> str | None:
        """Universal functions, and the classes of numbers."""
        return _INSTRUCTIONS.get(id(function))

    def is_constant_scalar(self, value: object) -> bool:
        """Booleans and integers."""
        return isinstance(value, np.bool_ | np.integer)

    def knows(self, function: object) -> bool:
        """Whether ``function`` is NumPy's: a function, ufunc, class, or a method of one of its objects."""
        return bool(_module_of(function)) or _hashed(function, FUNCTIONS)

    def form(self, function: object) -> types.FunctionType | None:
        """Returns the form to inline in place of a function that calls a user function."""
        return FORMS.get(function) if _hashed(function, FORMS) else None

    def call(self, b: Builder, function: object, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        """Builds ``function(*args, **kwargs)``."""
        if masks.holds_selected(args, kwargs):
            return self._under_mask(b, function, args, kwargs)
        if isinstance(function, np.ufunc) and outputs.has_output(function, args, kwargs):
            return outputs.ufunc_into(b, function, lambda a, k: self.call(b, function, a, k), args, kwargs)
        name = getattr(function, "__name__", type(function).__name__)
        handler = FUNCTIONS.get(function) if _hashed(function, FUNCTIONS) else None
        rule = RULES.get(function) if _hashed(function, RULES) else None
        if handler is not None or rule is not None:
            found = outputs.split(signature_of(function, handler, rule.signature if rule else None), args, kwargs)
            if found is not None:
                return outputs.call_into(b, name, lambda a, k: self.call(b, function, a, k), *found)
        if handler is not None:
            return _fused_or_called(
                b, lambda: invoke(handler, f"np.{name}", b, args, kwargs, function), rule, args, kwargs
            )
        if rule is not None:
            return library_call(b, rule, args, kwargs)
        if isinstance(function, np.ufunc):
            return _fused_or_called(
                b, lambda: ufuncs.call_ufunc(b, function, args, kwargs), ufuncs.rule_of(function), args, kwargs
            )
        if _hashed(function, plain.OF_DTYPES):
            return plain.of_dtypes(function, args, kwargs)
        if isinstance(function, type) and issubclass(function, np.generic):
            if kwargs:
                raise CannotCapture("unsupported-argument", f"np.{name} with keywords")
            return scalar_type(b, function, args)
        owner = getattr(function, "__self__", None)
        if isinstance(owner, np.ufunc):
            return ufunc_methods.call_method(b, owner, name, args, kwargs)
        if _hashed(function, refusals.FUNCTIONS):
            raise CannotCapture(*refusals.FUNCTIONS[function])
        if "numpy.random" in _module_of(function) or type(owner).__module__.startswith("numpy.random"):
            raise CannotCapture("random-numbers", f"np.random.{name}")
        raise CannotCapture("unknown-function", f"{_module_of(function)}.{name}")

    def subscript(self, b: Builder, owner: object, key: Any) -> Any:
        """``np.r_[key]`` and its relatives."""
        if not any(owner is known for known in subscripts.OWNERS) or masks.holds_selected((key,), {}):
            raise CannotCapture("unsupported-object", f"A {type(owner).__name__} is subscripted.")
        return subscripts.subscript(b, owner, key)

    def _under_mask(self, b: Builder, function: object, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        """Builds a call with elements under a mask among its arguments."""
        name = masks.reduction_of(function)
        if name is not None and args and isinstance(args[0], Selected):
            return masks.reduce(b, name, args[0], args[1:], kwargs)
        return masks.compute(b, function, lambda a, k: self.call(b, function, a, k), args, kwargs)

    def count(self, b: Builder, x: Selected) -> Traced:
        """Builds the number of elements that a mask selects."""
        return masks.count(b, x)

    def method(
        self, b: Builder, x: Traced | Selected, name: str, args: Sequence[Any], kwargs: Mapping[str, Any]
    ) -> Any:
        """Builds ``x.name(*args, **kwargs)``."""
        if isinstance(x, Selected):
            return masks.method(b, x, name, args, kwargs)
        if masks.holds_selected(args, kwargs):
            raise masks.refused(f"in a call of the method {name}")
        if name in _OPERATOR_METHODS:
            if args or kwargs:
                raise CannotCapture("operation-raises", f"{name} with arguments")
            return operators.unary(b, _OPERATOR_METHODS[name], x)
        if not OF_FUNCTIONS_ONLY.get(name, set()).isdisjoint(kwargs):
            raise CannotCapture("operation-raises", f"the method {name} with keywords of the function")
        handler = METHODS.get(name)
        rule = METHOD_RULES.get(name)
        if x.scalar and rule is not None and rule.only_arrays:
            rule = None
        known = getattr(np.ndarray, name, None)
        found = outputs.split(signature_of(known, handler, rule.signature if rule else None), [x, *args], kwargs)
        if found is not None:
            return outputs.call_into(b, name, lambda a, k: self.method(b, x, name, a[1:], k), *found)
        if handler is not None:
            return _fused_or_called(
                b, lambda: invoke(handler, f"ndarray.{name}", b, [x, *args], kwargs, known), rule, [x, *args], kwargs
            )
        if rule is not None:
            return library_call(b, rule, [x, *args], kwargs)
        raise CannotCapture(*refusals.METHODS.get(name, ("unknown-function", f"ndarray.{name}")))

    def attribute(self, b: Builder, x: Traced | Selected, name: str) -> Any:
        """Builds ``x.name`` for data attributes."""
        if isinstance(x, Selected):
            return masks.attribute(x, name)
        handler = ATTRIBUTES.get(name)
        if handler is None:
            raise CannotCapture(*refusals.ATTRIBUTES.get(name, ("unknown-function", f"ndarray.{name}")))
        return handler(b, x)

    def has_method(self, x: Traced | Selected, name: str) -> bool:
        """Whether ``name`` is a method of arrays, or of scalars if ``x`` is one."""
        owner = x.type.dtype.type if isinstance(x, Traced) and x.scalar else np.ndarray
        return callable(getattr(owner, name, None))

    def binary(self, b: Builder, sign: str, left: Any, right: Any) -> Any:
        """``left sign right``."""
        if masks.holds_selected((left, right), {}):
            function = operators.BINARY.get(sign)
            return masks.compute(b, function, lambda a, k: operators.binary(b, sign, *a), (left, right), {})
        return operators.binary(b, sign, left, right)

    def takes_memory(self, sign: str, left: Any, right: Any, result: Any) -> list[int]:
        """Returns the operands that NumPy overwrites with the result: large and unshared ones."""
        return operators.takes_memory(sign, left, right, result)

    def laid_out(self, b: Builder, x: Traced, like: Traced) -> Traced:
        """``x`` in the memory order of ``like``."""
        return Traced(b.op("ordered", x.node, axes=like.type.layout.order))

    def inplace(self, b: Builder, sign: str, left: Traced | Selected, right: Any) -> Any:
        """The new contents of ``left`` after ``left sign= right``."""
        if isinstance(left, Selected):
            return masks.inplace(b, left, self.binary(b, sign, left, right))
        if isinstance(right, Selected):
            raise masks.refused("that go to other places")
        return operators.inplace(b, sign, left, right)

    def unary(self, b: Builder, sign: str, x: Traced | Selected) -> Any:
        """``sign x``."""
        if isinstance(x, Selected):
            return masks.compute(b, operators.UNARY[sign], lambda a, k: operators.unary(b, sign, *a), (x,), {})
        return operators.unary(b, sign, x)

    def getitem(self, b: Builder, x: Traced | Selected, key: Any) -> Any:
        """``x[key]``."""
        if isinstance(x, Selected):
            raise masks.refused("of which some are picked")
        return indexing.getitem(b, x, key)

    def setitem(self, b: Builder, x: Traced, key: Any, value: Any) -> None:
        """``x[key] = value``."""
        writing.setitem(b, x, key, value)

    def write_checks(self, value: Any, name: str, constant: Callable[[Any], str]) -> list[Check]:
        """Returns the guards that the array is writable and its elements do not overlap."""
        return writing.write_checks(value, name, constant)

    def overlap(self, a: Any, b: Any) -> bool:
        """Whether two arrays share memory."""
        return writing.overlap(a, b)


def _fused_or_called(
    b: Builder, fused: Callable[[], Any], rule: Rule | None, args: Sequence[Any], kwargs: Mapping[str, Any]
) -> Any:
    """Returns the nodes of ``fused``; if it refuses, one call of the library, if a ``rule`` exists."""
    mark = len(b.graph.nodes)
    try:
        return fused()
    except CannotCapture as refusal:
        if rule is None or refusal.reason not in ufuncs.NOT_FUSED:
            raise
        del b.graph.nodes[mark:], b.writes[:]
        try:
            return library_call(b, rule, args, kwargs)
        except CannotCapture as second:
            raise (refusal if second.reason in ufuncs.NOT_FUSED else second) from None
