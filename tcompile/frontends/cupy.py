"""The CuPy frontend: NumPy's calls, operators and views on GPU arrays, where CuPy's semantics are the same.

Input: CuPy arrays and functions, and NumPy's functions called with CuPy arrays.
Output: nodes, whose types name the GPU.
Why: CuPy code is captured like NumPy code, and stays on its device. CuPy is the module that the user has imported.

The NumPy frontend defines what an operation computes; this file holds CuPy's differences. CuPy has no scalars: a value
without axes is an array, and ``x[0]`` of a vector a view. New arrays are in C order. Floating-point errors and integer
overflow are never reported. Functions that CuPy computes differently, or leaves to the hardware, are not captured: the
call runs in CuPy, between compiled stretches.
"""

from __future__ import annotations

import functools
import inspect
import types
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from tcompile.frontends import cupy_routines as routines
from tcompile.frontends.base import Builder, CannotCapture, Check, Selected, Traced, TracedNumber
from tcompile.frontends.numpy import NumPyFrontend, checks, masks, values
from tcompile.frontends.numpy.operators import BINARY, UNARY
from tcompile.frontends.numpy.writing import overlaps_itself
from tcompile.graph import Node, TensorType, ops
from tcompile.graph.dtypes import DType
from tcompile.graph.sizes import SymInt

_OLDEST = 14  # the first version of CuPy that promotes dtypes like NumPy 2

# Ufuncs with the same dtypes and the same elements in CuPy.
_UFUNCS = (
    "add", "subtract", "multiply", "divide", "true_divide", "negative", "positive", "absolute", "sign",
    "sqrt", "square", "cbrt", "reciprocal", "exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "sin",
    "cos", "tan", "arcsin", "arccos", "arctan", "sinh", "cosh", "tanh", "arcsinh", "arccosh", "arctanh",
    "arctan2", "hypot", "power", "equal", "not_equal", "less", "less_equal", "greater", "greater_equal",
    "logical_and", "logical_or", "logical_not", "logical_xor", "bitwise_and", "bitwise_or", "bitwise_xor",
    "invert", "maximum", "minimum", "fmax", "fmin", "isnan", "isinf", "isfinite", "signbit", "copysign",
    "floor", "ceil", "trunc", "rint",
)  # fmt: skip
_COMPLEX = frozenset({"add", "subtract", "multiply", "negative", "positive", "equal", "not_equal"})
# CuPy defines integers divided by zero, and negative powers, by itself
_ONLY_FLOATS = frozenset({"reciprocal", "power"})
_COMPARISONS = frozenset({"equal", "not_equal", "less", "less_equal", "greater", "greater_equal"})
_REDUCTIONS = ["sum", "prod", "max", "min", "amax", "amin", "mean", "var", "std", "any", "all", "argmax", "argmin"]
_OF_NOTHING = frozenset({"sum", "prod", "any", "all"})  # reductions that accept no elements
_VIEWS = ["transpose", "swapaxes", "moveaxis", "expand_dims", "squeeze", "broadcast_to", "reshape", "ravel"]
_NEW = ["where", "nonzero", "flatnonzero", "zeros_like", "ones_like", "full_like", "copy"]
_CREATED = ["zeros", "ones", "full", "empty", "eye", "identity", "arange"]
_SCANS = ["cumsum", "cumprod"]
_JOINED = ["concatenate", "stack"]
_METHODS = frozenset(
    {*_REDUCTIONS, *_SCANS, *routines.METHODS, "transpose", "swapaxes", "squeeze", "reshape", "ravel", "astype", "copy",
     "take", "nonzero", "clip"}
)  # fmt: skip
_ATTRIBUTES = frozenset({"shape", "ndim", "size", "dtype", "itemsize", "nbytes", "T", "mT"})
_NOT_CAPTURED = "unknown-function"
_ASKED = "tcompile.frontends.numpy.quiet.refuse_if_any"  # calls that only end the graph, for any arrays


def too_old(cupy: Any) -> str | None:
    """Returns why this CuPy is not captured; None if it is.

    >>> too_old(types.SimpleNamespace(__version__="13.6.0"))
    'CuPy 13.6.0 promotes dtypes in its own way; from CuPy 14 on its arrays are captured'
    """
    major = cupy.__version__.partition(".")[0]
    if major.isdecimal() and int(major) >= _OLDEST:
        return None
    return f"CuPy {cupy.__version__} promotes dtypes in its own way; from CuPy {_OLDEST} on its arrays are captured"


@functools.lru_cache(maxsize=1)
def cupy_frontend(cupy: Any) -> CuPyFrontend:
    """Returns the frontend for this module ``cupy``."""
    return CuPyFrontend(cupy)


def overlap(a: Any, b: Any) -> bool:
    """Whether the memory ranges of two arrays overlap."""
    (first, last), (start, end) = _stretch(a), _stretch(b)
    return first < end and start < last


def _stretch(array: Any) -> tuple[int, int]:
    if not array.size:
        return 0, 0
    steps = [(n - 1) * s for n, s in zip(array.shape, array.strides, strict=True)]
    low, high = sum(s for s in steps if s < 0), sum(s for s in steps if s > 0)
    return array.data.ptr + low, array.data.ptr + high + array.itemsize


class CuPyFrontend:
    """The CuPy frontend: builds CuPy's calls in the graph."""

    name = "cupy"
    device = "cuda"

    def __init__(self, cupy: Any) -> None:
        self.cupy = self.namespace = cupy
        self.numpy = NumPyFrontend()
        self.functions: dict[Any, Any] = {}  # NumPy's functions, by identity and by CuPy's function of that name
        names = (*_UFUNCS, *_REDUCTIONS, *_VIEWS, *_NEW, *_CREATED, *_SCANS, *_JOINED, "take", "clip")
        wanted = {*(getattr(np, name) for name in names), *routines.ROUTINES}
        for theirs, ours in ((np, cupy), (np.linalg, getattr(cupy, "linalg", None))):
            for name in dir(theirs):  # NumPy has one object for several names, where CuPy may have several
                own, known = getattr(ours, name, None), getattr(theirs, name)
                if own is not None and callable(known) and not isinstance(known, type) and known in wanted:
                    self.functions[own] = self.functions[known] = known
        self.ufuncs = {getattr(np, name): name for name in reversed(_UFUNCS)}

    # -- objects --------------------------------------------------------------------------------------------------
    def is_here(self, value: Any) -> bool:
        """Whether an array is on CuPy's current GPU."""
        return bool(value.device.id == self.cupy.cuda.Device().id)

    def type_of(self, value: object) -> TensorType | None:
        """Returns the type of an array of exactly CuPy's class, of a supported dtype, on the current GPU."""
        if type(value) is not self.cupy.ndarray:
            return None
        array: Any = value
        dtype = array.dtype
        if not values.takes_dtype(dtype) or np.dtype(dtype.str) is not dtype or not self.is_here(array):
            return None
        return TensorType(dtype, tuple(array.shape), values.layout_of(array), f"cuda:{array.device.id}")

    def is_scalar(self, value: object) -> bool:
        """Returns False: CuPy has no scalars."""
        return False

    def python_type(self, x: Traced) -> type:
        """Returns the class of CuPy's arrays."""
        cls: type = self.cupy.ndarray
        return cls

    def checks(
        self,
        name: str,
        type: TensorType,
        scalar: bool,
        open_axes: frozenset[int],
        constant: Callable[[Any], str],
        own_dtype: bool = False,
    ) -> list[Check]:
        """Returns the guards for an array of this type, on the same GPU, if that is the current one."""
        contiguous = "{}._c_contiguous"  # which is there before the flags are an object
        found = checks.checks(name, type, scalar, open_axes, constant, self.cupy.ndarray, contiguous)
        number = type.device.partition(":")[2]
        code = f"{{}}.data.device_id == {number} == {constant(self.cupy.cuda.device.get_device_id)}()"
        return [*found, Check(code, f"{name} is on GPU {number}, the current one", f"GPU {number}", "device")]

    def copied_dtype(self, value: object) -> None:
        """Returns None: arrays with such dtypes are refused, and dtypes are NumPy's."""

    def is_fixed(self, value: object) -> bool:
        """Whether it is a function, ufunc or class of CuPy."""
        return callable(value) and self.knows(value)

    def as_array(self, b: Builder, number: Any) -> Node:
        """Numbers are not on a GPU."""
        raise CannotCapture(_NOT_CAPTURED, f"{type(number).__name__} as an array of CuPy's")

    def scalar_instruction(self, function: object) -> None:
        """Scalar loops run on the CPU."""

    def is_constant_scalar(self, value: object) -> bool:
        """There are none."""
        return False

    def knows(self, function: object) -> bool:
        """Whether ``function`` is CuPy's: a function, ufunc or class."""
        itself = isinstance(function, types.FunctionType | types.BuiltinFunctionType | type)
        module = getattr(function if itself else type(function), "__module__", None)
        return isinstance(module, str) and module.partition(".")[0] == "cupy"

    def form(self, function: object) -> types.FunctionType | None:
        """Returns None: no CuPy function is inlined."""
        return None

    # -- what is computed -----------------------------------------------------------------------------------------
    def call(self, b: Builder, function: object, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        """Builds ``function(*args, **kwargs)`` for a function of CuPy's, or of NumPy's called on its arrays."""
        try:
            known = self.functions.get(function)
        except TypeError:
            known = None
        name = getattr(function, "__name__", type(function).__name__)
        if function is getattr(self.cupy, "get_array_module", None) and not kwargs:
            return self.cupy if any(isinstance(x, Traced | Selected) and _type(x).device != "cpu" for x in args) else np
        if known is None:
            raise CannotCapture(_NOT_CAPTURED, f"cupy.{name}")
        if known in self.ufuncs:
            return self._ufunc(b, self.ufuncs[known], args, kwargs)
        _bind(name, self._own(known), args, kwargs)
        if known in routines.ROUTINES:
            if masks.holds_selected(args, kwargs):
                raise masks.refused(f"in a call of cupy.{name}")
            return routines.routine(b, known, args, kwargs, _common_device((*args, *kwargs.values())))
        if known in (np.take, np.clip):
            return self._of_one(b, known.__name__, *args, **kwargs)
        if known.__name__ in _CREATED:
            return self._created(b, known, args, kwargs)
        if known.__name__ in _SCANS:
            args = (_in_c_order(b, args[0] if args else None), *args[1:])
        if known.__name__ in _REDUCTIONS:
            _check_reduced(known.__name__, args[0] if args else None, args[1:], kwargs)
        elif known is np.where and not (len(args) in (1, 3) and isinstance(args[0], Traced)):
            raise CannotCapture("unsupported-argument", "cupy.where of other than an array, or an array and two values")
        elif known.__name__ in _JOINED:
            return self._joined(b, known, args, kwargs)
        return self._made(b, lambda: self.numpy.call(b, known, args, kwargs), (*args, *kwargs.values()),
                          known.__name__ in (*_REDUCTIONS, *_SCANS) or known is np.where)  # fmt: skip

    def _own(self, known: Any) -> Any:
        """Returns CuPy's function of the same name as NumPy's."""
        at = self.cupy.linalg if routines.ROUTINES.get(known, "").startswith("cupy.linalg") else self.cupy
        return getattr(at, known.__name__)

    def _joined(self, b: Builder, known: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        parts = args[0] if args and isinstance(args[0], tuple | list) else ()
        if not parts or not all(isinstance(part, Traced) and part.type.c_contiguous for part in parts):
            raise CannotCapture("memory-order", f"cupy.{known.__name__} of other than arrays in C order")
        return self._made(b, lambda: self.numpy.call(b, known, args, kwargs), (*parts, *args[1:]), True)

    def _of_one(self, b: Builder, name: str, *args: Any, **kwargs: Any) -> Any:
        """Builds ``take`` or ``clip``, without CuPy's additional arguments."""
        made = self._taken if name == "take" else self._clipped
        _bind(name, made, (b, *args), kwargs)
        return made(b, *args, **kwargs)

    def _taken(self, b: Builder, a: Any, indices: Any, axis: Any = None) -> Any:
        if not isinstance(a, Traced):
            raise CannotCapture("unsupported-argument", f"cupy.take of {type(a).__name__}")
        return self.getitem(b, a, routines.taken(a, indices, axis))

    def _clipped(self, b: Builder, x: Any, a_min: Any = None, a_max: Any = None) -> Any:
        """Builds ``clip`` between numbers; zeros and NaNs follow CuPy's comparisons."""
        if not isinstance(x, Traced) or x.type.dtype.kind not in "iuf":
            raise CannotCapture("unsupported-argument", f"cupy.clip of {type(x).__name__}")
        known = (int,) if x.type.dtype.kind in "iu" else (int, float)
        bounds = [bound for bound in (a_min, a_max) if bound is not None]
        in_order = all(type(bound) in known and bounds[0] <= bound for bound in bounds)  # also excludes NaNs
        if not bounds or not in_order:
            raise CannotCapture("unsupported-argument", "cupy.clip between other than two numbers in order")

        def build() -> Traced:
            made = x
            for bound, beyond in ((a_max, np.greater), (a_min, np.less)):
                if bound is not None:
                    outside = self.numpy.call(b, beyond, (x, bound), {})
                    made = self.numpy.call(b, np.where, (outside, bound, made), {})
            return made

        return self._made(b, build, (x,), True)

    def _created(self, b: Builder, known: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        """Builds an array of sizes and numbers, on the GPU of the given arrays."""
        device = f"{self.device}:{self.cupy.cuda.Device().id}"
        if not any(isinstance(node.type, TensorType) and node.device == device for node in b.graph.inputs):
            raise CannotCapture("unsupported-argument", f"cupy.{known.__name__} without an array on the same GPU")
        given = (*args, *kwargs.values())
        if any(isinstance(x, Traced | TracedNumber) for x in given):
            raise CannotCapture("unsupported-argument", f"cupy.{known.__name__} of computed numbers")
        if known is np.arange and any(type(x) is float for x in given):
            raise CannotCapture("unsupported-argument", "cupy.arange of floats")
        return self._made(b, lambda: self.numpy.call(b, known, args, kwargs), (), True, device)

    def _ufunc(self, b: Builder, name: str, operands: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        if kwargs:
            raise CannotCapture("unsupported-argument", f"cupy.{name} with {next(iter(kwargs))}=")
        _check_ufunc(name, operands)
        return self._made(b, lambda: self.numpy.call(b, getattr(np, name), operands, {}), operands, True)

    def _made(
        self, b: Builder, build: Callable[[], Any], given: Sequence[Any], is_new: bool, device: str | None = None
    ) -> Any:
        """Returns what ``build`` adds to the graph, on the GPU of ``given``; ``is_new``: the result is a new array."""
        device, first = device or _common_device(given), len(b.graph.nodes)
        made = build()
        for node in b.graph.nodes[first:]:
            is_foreign = node.op is ops.CALL and node.attrs["target"] != _ASKED
            if is_foreign or node.op is ops.PYTHON_CALL or node.regions:
                del b.graph.nodes[first:], b.writes[:]
                raise CannotCapture(_NOT_CAPTURED, f"{node.name}, which NumPy computes on the CPU,")
            node.move(device)
        if not isinstance(made, Traced):
            return made
        node = made.node
        if is_new and not node.tensor.c_contiguous:
            node = b.op("ordered", node, axes=tuple(range(node.tensor.ndim)))
        return Traced(node) if made.scalar or node is not made.node else made

    def subscript(self, b: Builder, owner: object, key: Any) -> Any:
        """Refuses ``cupy.r_`` and its relatives."""
        raise CannotCapture("unsupported-object", f"A {type(owner).__name__} is subscripted.")

    def method(
        self, b: Builder, x: Traced | Selected, name: str, args: Sequence[Any], kwargs: Mapping[str, Any]
    ) -> Any:
        """Builds ``x.name(*args, **kwargs)``."""
        if name not in _METHODS:
            raise CannotCapture(_NOT_CAPTURED, f"cupy.ndarray.{name}")
        if any(argument in kwargs for argument in ("out", "where", "initial", "device")):
            raise CannotCapture("unsupported-argument", f"cupy.ndarray.{name} with {', '.join(kwargs)}")
        if name in _REDUCTIONS:
            _check_reduced(name, x, args, kwargs)
        if name == "astype":
            _check_cast(x, args[0] if args else kwargs.get("dtype"))
        given = (x, *args, *kwargs.values())
        if isinstance(x, Selected):
            return self._made(b, lambda: self.numpy.method(b, x, name, args, kwargs), given, True)
        if name in routines.METHODS:
            device = _common_device(given)
            return routines.routine(b, routines.METHODS[name], (x, *args), kwargs, device)
        if name in ("take", "clip"):
            return self._of_one(b, name, x, *args, **kwargs)
        if name in _SCANS:
            x = _in_c_order(b, x)
        is_new = name in (*_REDUCTIONS, *_SCANS)
        return self._made(b, lambda: self.numpy.method(b, x, name, args, kwargs), given, is_new)

    def attribute(self, b: Builder, x: Traced | Selected, name: str) -> Any:
        """Builds ``x.name`` for data attributes."""
        if name not in _ATTRIBUTES:
            raise CannotCapture(_NOT_CAPTURED, f"cupy.ndarray.{name}")
        if isinstance(x, Selected):
            return masks.attribute(x, name)
        return self._made(b, lambda: self.numpy.attribute(b, x, name), (x,), False)

    def has_method(self, x: Traced | Selected, name: str) -> bool:
        """Whether ``name`` is a method of CuPy's arrays."""
        return callable(getattr(self.cupy.ndarray, name, None))

    def count(self, b: Builder, x: Selected) -> Traced:
        """To count them is to wait for the GPU, which CuPy does."""
        raise CannotCapture("data-dependent-shape", "the number of elements under a mask")

    def binary(self, b: Builder, sign: str, left: Any, right: Any) -> Any:
        """Builds ``left sign right``."""
        if sign == "@":
            return self.call(b, np.matmul, (left, right), {})
        name = BINARY[sign].__name__ if sign in BINARY else ""
        if name not in _UFUNCS:
            raise CannotCapture(_NOT_CAPTURED, f"the operator {sign} on CuPy arrays")
        return self._ufunc(b, name, (left, right), {})

    def takes_memory(self, sign: str, left: Any, right: Any, result: Any) -> list[int]:
        """Returns nothing: CuPy always makes a new array."""
        return []

    def laid_out(self, b: Builder, x: Traced, like: Traced) -> Traced:
        """Returns ``x`` in the memory order of ``like``."""
        return self.numpy.laid_out(b, x, like)

    def inplace(self, b: Builder, sign: str, left: Traced | Selected, right: Any) -> Any:
        """Builds the new contents of ``left`` after ``left sign= right``."""
        name = BINARY[sign].__name__ if sign in BINARY else ""
        if name not in _UFUNCS or name == "power":
            raise CannotCapture(_NOT_CAPTURED, f"the operator {sign}= on CuPy arrays")
        _check_ufunc(name, (left, right))
        return self._made(b, lambda: self.numpy.inplace(b, sign, left, right), (left, right), False)

    def unary(self, b: Builder, sign: str, x: Traced | Selected) -> Any:
        """Builds ``sign x``."""
        return self._ufunc(b, UNARY[sign].__name__, (x,), {})

    # -- elements -------------------------------------------------------------------------------------------------
    def getitem(self, b: Builder, x: Traced | Selected, key: Any) -> Any:
        """Builds ``x[key]`` for whole numbers and slices, always a view, for arrays of integers, and for a mask."""
        if isinstance(x, Selected):
            raise masks.refused("of which some are picked")
        if _has_mask(key):
            return self._made(b, lambda: self.numpy.getitem(b, x, key), (x, *_items(key)), True)
        if _has_arrays(key):
            return self._made(b, lambda: self.numpy.getitem(b, x, routines.wrapped(b, self.numpy, x, key)),
                              (x, *_items(key)), True)  # fmt: skip
        return self._made(b, lambda: self.numpy.getitem(b, x, _basic(key)), (x,), False)

    def setitem(self, b: Builder, x: Traced, key: Any, value: Any) -> None:
        """Builds ``x[key] = value`` for whole numbers and slices, for arrays of integers, and for a mask.

        A mask accepts numbers, and results computed from elements under it.
        """
        if _has_mask(key):
            if isinstance(value, Traced) and value.type.ndim:
                raise CannotCapture("unsupported-argument", "values for the elements under a mask")
        elif _has_arrays(key):
            _common_device((x, *_items(key)))
            key = routines.wrapped(b, self.numpy, x, key)
        else:
            key = _basic(key)
        if isinstance(value, Traced | Selected):
            _check_cast(value, x.type.dtype)
        self._made(b, lambda: self.numpy.setitem(b, x, key, value), (x, *_items(key), value), False)

    def write_checks(self, value: Any, name: str, constant: Callable[[Any], str]) -> list[Check]:
        """Returns the guard that elements do not overlap; CuPy has no read-only arrays."""
        if overlaps_itself(value):
            raise CannotCapture("writes-to-array", f"Writing to `{name}`, some of whose elements lie in one place,")
        code, text = f"not {constant(overlaps_itself)}({{}})", f"each element of {name} has its own place"
        return [Check(code, text, "no two elements in one place", "memory")]

    def overlap(self, a: Any, b: Any) -> bool:
        """Whether two arrays may share memory."""
        return overlap(a, b)


def _bind(name: str, function: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
    """Refuses arguments that CuPy's function lacks, and ``out``."""
    try:
        inspect.signature(function).bind(*args, **kwargs)
    except (TypeError, ValueError) as error:
        raise CannotCapture("unsupported-argument", f"cupy.{name}: {error}") from error
    if kwargs.get("out") is not None:
        raise CannotCapture("unsupported-argument", f"cupy.{name} with out=")


def _check_ufunc(name: str, operands: Sequence[Any]) -> None:
    """Refuses dtypes for which CuPy's loops differ from NumPy's."""
    dtypes = [dtype for x in operands if (dtype := _dtype_of(x)) is not None]
    if any(dtype.kind == "c" for dtype in dtypes) and name not in _COMPLEX:
        raise CannotCapture("unsupported-dtype", f"cupy.{name} of complex numbers")
    if name in _ONLY_FLOATS and not any(dtype.kind == "f" for dtype in dtypes):
        raise CannotCapture("unsupported-dtype", f"cupy.{name} of integers")
    if name in _COMPARISONS and any(d.name == "uint64" for d in dtypes) and any(d.kind == "i" for d in dtypes):
        raise CannotCapture("unsupported-dtype", f"cupy.{name} of uint64 and signed integers")


def _check_reduced(name: str, x: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
    """Refuses reductions that CuPy lacks or computes differently; only the first of ``args`` is the same in both."""
    if not isinstance(x, Traced | Selected) or len(args) > 1:
        raise CannotCapture("unsupported-argument", f"cupy.{name} of {type(x).__name__} and {len(args)} others")
    if _type(x).dtype.kind == "c" and name != "sum":
        raise CannotCapture("unsupported-dtype", f"cupy.{name} of complex numbers")
    if name not in _OF_NOTHING and any(type(n) is int and n == 0 for n in _type(x).shape):
        raise CannotCapture("operation-raises", f"cupy.{name} of no elements")
    if kwargs.get("dtype") is not None:
        _check_cast(x, kwargs["dtype"])


def _check_cast(x: Traced | Selected, dtype: Any) -> None:
    """Refuses casts that lose more than digits: CuPy leaves a float's conversion to integer to the GPU."""
    target, own = values.dtype_of(dtype), _type(x).dtype
    if not np.can_cast(own, target, "same_kind") and (own.kind in "fc" and target.kind != "b"):
        raise CannotCapture("unsupported-dtype", f"{own} becomes {target}")


def _type(x: Traced | Selected) -> TensorType:
    """Returns the type of an array, or of the whole array of elements under a mask."""
    return x.whole.tensor if isinstance(x, Selected) else x.type


def _dtype_of(x: Any) -> DType | None:
    """Returns the dtype of an operand. A Python complex number or float counts as its kind, other numbers as none."""
    if isinstance(x, Traced | Selected):
        return _type(x).dtype
    if isinstance(x, np.generic):
        return x.dtype
    if isinstance(x, TracedNumber):
        return np.dtype("float64")
    return {complex: np.dtype("complex128"), float: np.dtype("float64")}.get(type(x))


def _common_device(given: Sequence[Any]) -> str:
    """Returns the GPU of the traced arrays among arguments. Refuses several devices."""
    found: list[str] = []
    for x in given:
        if isinstance(x, Traced | Selected):
            found.append(_type(x).device)
        elif isinstance(x, TracedNumber) and x.at is not None:
            raise CannotCapture("data-dependent-value", "a Python number that is read from an array")
        elif isinstance(x, tuple | list) and any(isinstance(item, Traced | Selected) for item in x):
            raise CannotCapture("array-conversion", "a list of CuPy arrays")
    if len(set(found)) != 1 or found[0] == "cpu":
        raise CannotCapture("unsupported-operands", f"arrays on {' and '.join(sorted(set(found))) or 'no device'}")
    return found[0]


def _has_arrays(key: Any) -> bool:
    """Whether a key contains arrays of integers."""
    return any(isinstance(item, Traced) and item.type.dtype.kind in "iu" for item in _items(key))


def _has_mask(key: Any) -> bool:
    """Whether a key is one mask, or the indices that one selects, with whole slices and an ellipsis around it.

    CuPy applies ints beside a mask first, NumPy treats them as arrays.
    """
    items = _items(key)
    found = [k for k in items if isinstance(k, Selected) or (isinstance(k, Traced) and k.type.dtype.kind == "b")]
    if not found:
        return False
    others = all(k is Ellipsis or type(k) is slice for k in items if not any(k is one for one in found))
    if not others or not all(isinstance(k, Selected) or k.type.ndim for k in found):
        raise CannotCapture("advanced-indexing", "a mask beside other indices")
    return True


def _items(key: Any) -> tuple[Any, ...]:
    """Returns the items of a key."""
    return key if type(key) is tuple else (key,)


def _in_c_order(b: Builder, x: Any) -> Traced:
    """Returns an array in the form that CuPy scans."""
    if not isinstance(x, Traced) or x.type.dtype.kind == "c":
        raise CannotCapture("unsupported-argument", f"a scan of {type(x).__name__}")
    if x.type.c_contiguous:
        return x
    return Traced(b.op("ordered", x.node, axes=tuple(range(x.type.ndim))))


def _basic(key: Any) -> tuple[Any, ...]:
    """Returns a key of whole numbers and slices, with an ellipsis: the result is an array and a view."""
    items = _items(key)
    for item in items:
        known = item is None or item is Ellipsis or type(item) in (int, slice)
        if not known and not isinstance(item, SymInt | np.integer):
            raise CannotCapture(_NOT_CAPTURED, f"an index of type {type(item).__name__} into a CuPy array")
    return items if any(item is Ellipsis for item in items) else (*items, Ellipsis)


__all__ = ["CuPyFrontend", "cupy_frontend", "overlap", "too_old"]
