"""The NumPy frontend itself: one object that capture asks, dispatching to the tables.

Enters: NumPy objects, calls and operators on traced values. Leaves: what the handlers of the sibling files
built.
"""

from __future__ import annotations

import types
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np

from tcompile.frontends.base import Builder, CannotCapture, Check, Traced
from tcompile.frontends.numpy import checks, indexing, operators, plain, reductions, ufuncs, values
from tcompile.frontends.numpy.creation import scalar_type
from tcompile.frontends.numpy.registry import ATTRIBUTES, FUNCTIONS, METHODS, OPAQUE, invoke
from tcompile.graph import TensorType

_FIXED = (
    np.ufunc, np.dtype, type, types.FunctionType, types.BuiltinFunctionType, types.MethodDescriptorType,
    types.ModuleType, type(np.sum),  # the dispatcher around NumPy's Python functions
)  # fmt: skip
_OPERATOR_METHODS = {"__abs__": "abs", "__neg__": "-", "__pos__": "+", "__invert__": "~"}


def _module_of(function: object) -> str:
    owner = getattr(function, "__self__", None)
    for candidate in (function, owner, type(function), type(owner)):
        module = getattr(candidate, "__module__", None)
        if isinstance(module, str) and (module == "numpy" or module.startswith("numpy.")):
            return module
    return ""


def _hashed(function: object, table: Any) -> bool:
    try:
        return function in table
    except TypeError:
        return False


class NumPyFrontend:
    """What NumPy's calls mean in the graph.

    >>> import numpy as np
    >>> from tcompile.frontends.base import Builder
    >>> frontend, b = NumPyFrontend(), Builder()
    >>> x = Traced(b.graph.input("x", frontend.type_of(np.zeros((2, 3), "float32"))))
    >>> y = frontend.binary(b, "+", x, 1)
    >>> print(frontend.call(b, np.sum, [y], {"axis": 0}).type)
    f32[3]
    """

    name = "numpy"

    def type_of(self, value: object) -> TensorType | None:
        """The type of an exact ndarray or NumPy scalar of a dtype that we take; else None."""
        return values.type_of(value)

    def is_scalar(self, value: object) -> bool:
        """Whether ``value`` is a NumPy scalar object."""
        return isinstance(value, np.generic)

    def python_type(self, x: Traced) -> type:
        """ndarray, or the scalar class of the dtype."""
        return x.type.dtype.type if x.scalar else np.ndarray

    def checks(
        self, name: str, type: TensorType, scalar: bool, open_axes: frozenset[int], constant: Callable[[Any], str]
    ) -> list[Check]:
        """How an entry recognises an array or scalar of this type."""
        return checks.checks(name, type, scalar, open_axes, constant)

    def is_fixed(self, value: object) -> bool:
        """Functions, ufuncs, dtypes and classes of NumPy; random generators, whose every use is refused."""
        if isinstance(value, _FIXED):
            return self.knows(value)
        return type(value).__module__.startswith("numpy.random")

    def is_constant_scalar(self, value: object) -> bool:
        """Booleans and integers."""
        return isinstance(value, np.bool_ | np.integer)

    def knows(self, function: object) -> bool:
        """Whether ``function`` is NumPy's: a function, ufunc, class, or a method of one of its objects."""
        return bool(_module_of(function)) or _hashed(function, FUNCTIONS)

    def call(self, b: Builder, function: object, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        """The meaning of ``function(*args, **kwargs)``."""
        name = getattr(function, "__name__", type(function).__name__)
        handler = FUNCTIONS.get(function) if _hashed(function, FUNCTIONS) else None
        if handler is not None:
            return invoke(handler, f"np.{name}", b, args, kwargs, function)
        if isinstance(function, np.ufunc):
            return ufuncs.call_ufunc(b, function, args, kwargs)
        if _hashed(function, plain.OF_DTYPES):
            return plain.of_dtypes(function, args, kwargs)
        if isinstance(function, type) and issubclass(function, np.generic):
            if kwargs:
                raise CannotCapture("unsupported-argument", f"np.{name} with keywords")
            return scalar_type(b, function, args)
        owner = getattr(function, "__self__", None)
        if isinstance(owner, np.ufunc) and name == "reduce":
            return invoke(reductions.reduce_method, f"{owner.__name__}.reduce", b, [owner, *args], kwargs)
        if "numpy.random" in _module_of(function) or type(owner).__module__.startswith("numpy.random"):
            raise CannotCapture("random-numbers", f"np.random.{name}")
        raise CannotCapture("unknown-function", f"{_module_of(function)}.{name}")

    def method(self, b: Builder, x: Traced, name: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        """The meaning of ``x.name(*args, **kwargs)``."""
        if name in _OPERATOR_METHODS:
            return operators.unary(b, _OPERATOR_METHODS[name], x)
        handler = METHODS.get(name)
        if handler is None:
            raise CannotCapture("unknown-function", f"ndarray.{name}")
        return invoke(handler, f"ndarray.{name}", b, [x, *args], kwargs, getattr(np.ndarray, name, None))

    def attribute(self, b: Builder, x: Traced, name: str) -> Any:
        """The meaning of ``x.name`` for data attributes."""
        handler = ATTRIBUTES.get(name)
        if handler is None:
            raise CannotCapture("unknown-function", f"ndarray.{name}")
        return handler(b, x)

    def has_method(self, x: Traced, name: str) -> bool:
        """Whether ``name`` is a method of arrays, or of scalars where ``x`` is one."""
        owner = x.type.dtype.type if x.scalar else np.ndarray
        return callable(getattr(owner, name, None))

    def binary(self, b: Builder, sign: str, left: Any, right: Any) -> Any:
        """``left sign right``."""
        return operators.binary(b, sign, left, right)

    def inplace(self, b: Builder, sign: str, left: Traced, right: Any) -> Traced:
        """The new contents of ``left`` after ``left sign= right``."""
        return operators.inplace(b, sign, left, right)

    def unary(self, b: Builder, sign: str, x: Traced) -> Any:
        """``sign x``."""
        return operators.unary(b, sign, x)

    def getitem(self, b: Builder, x: Traced, key: Any) -> Any:
        """``x[key]``."""
        return indexing.getitem(b, x, key)


@cache
def coverage() -> dict[str, str]:
    """For each public function of ``numpy``: "fused", "call" (one library call, fused around), or "break"."""
    table: dict[str, str] = {}
    refusals = {plain._writes, plain._files}
    for name in dir(np):
        function = getattr(np, name, None)
        if name.startswith("_") or not callable(function):
            continue
        handler = FUNCTIONS.get(function) if _hashed(function, FUNCTIONS) else None
        if isinstance(function, np.ufunc):
            usable = function.nout == 1 and function.signature is None
            table[name] = "fused" if function in ufuncs.ROWS else "call" if usable else "break"
        elif handler is not None and handler not in refusals and handler.__doc__ is not None:
            table[name] = "break" if handler.__doc__.startswith("Refused") else "fused"
        else:
            table[name] = "break"
        if _hashed(function, OPAQUE):
            table[name] = "call"
    return table
