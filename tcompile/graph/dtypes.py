"""The dtypes of graph values, and each fact about them.

Input: names, dtypes and numbers. Output: dtypes, their kinds, printed names and limits, and what several combine to.
Why: NumPy does not say of every dtype what a graph needs to know. ``bfloat16`` is a dtype of ml_dtypes; to NumPy it is
two bytes of kind ``V``. The graph asks here instead, so another such dtype is a row of these tables.
"""

from __future__ import annotations

import importlib
from functools import lru_cache
from typing import Any, TypeAlias

import numpy as np

from tcompile.errors import GraphError

DType: TypeAlias = np.dtype[Any]

_SHORT = {
    "bool": "b8", "int8": "i8", "int16": "i16", "int32": "i32", "int64": "i64", "uint8": "u8", "uint16": "u16",
    "uint32": "u32", "uint64": "u64", "float16": "f16", "float32": "f32", "float64": "f64", "bfloat16": "bf16",
    "complex64": "c64", "complex128": "c128",
}  # fmt: skip
_LONG = {short: long for long, short in _SHORT.items()}
# Of floats: the bits of the significand, the implicit one included, and those of the exponent.
_FLOATS = {"float16": (11, 5), "bfloat16": (8, 8), "float32": (24, 8), "float64": (53, 11)}
_EXTENSIONS = frozenset({"bfloat16"})  # floats of ml_dtypes

BOOL = np.dtype("bool")
INT32 = np.dtype("int32")
INT64 = np.dtype("int64")
FLOAT16, FLOAT32, FLOAT64 = np.dtype("float16"), np.dtype("float32"), np.dtype("float64")


@lru_cache(maxsize=256)
def named(name: str) -> DType:
    """The dtype of a name, long or as graphs print it. Raises GraphError where there is none.

    >>> named("f32"), named("int64")
    (dtype('float32'), dtype('int64'))
    """
    long = _LONG.get(name, name)
    if long in _EXTENSIONS:
        try:
            found: DType = np.dtype(getattr(importlib.import_module("ml_dtypes"), long))
        except ImportError as error:
            raise GraphError(f"the dtype {long} needs the package ml_dtypes") from error
        return found
    try:
        return np.dtype(long)
    except TypeError as error:
        raise GraphError(f"there is no dtype {name!r}") from error


def as_dtype(given: Any) -> DType:
    """The dtype that an attribute of a node says: by its name, or itself."""
    return named(given) if type(given) is str else np.dtype(given)


def short_name(dtype: DType) -> str:
    """The name used in printed graphs: ``f32``, ``i64``, ``b8``, ``bf16``, …"""
    return _SHORT.get(dtype.name, dtype.name)


def is_extension(dtype: DType) -> bool:
    """Whether a dtype is a float that NumPy itself does not have."""
    return dtype.kind == "V" and dtype.name in _EXTENSIONS


def kind_of(dtype: DType) -> str:
    """The kind of a dtype: ``b``, ``i``, ``u``, ``f`` or ``c``; of other dtypes what NumPy says.

    >>> kind_of(np.dtype("float16")), kind_of(np.dtype("uint8"))
    ('f', 'u')
    """
    kind = dtype.kind
    return "f" if kind == "V" and is_extension(dtype) else kind


def part_of_complex(dtype: DType) -> DType:
    """The dtype of the real and the imaginary part of a complex dtype."""
    return np.dtype(f"float{dtype.itemsize * 4}")


def limits(dtype: DType) -> Any:
    """The limits of an integer or float dtype: ``min`` and ``max``, and for floats ``eps`` and ``tiny``.

    >>> limits(np.dtype("int8")).max, float(limits(np.dtype("float32")).eps)
    (127, 1.1920928955078125e-07)
    """
    if is_extension(dtype):
        return importlib.import_module("ml_dtypes").finfo(dtype)
    return np.iinfo(dtype) if dtype.kind in "iu" else np.finfo(dtype)


def promote(*given: Any) -> DType:
    """The dtype in which dtypes and Python numbers are combined; the numbers are weak, as in NumPy.

    Beside ``bfloat16``, integers and booleans count as weak, too, and another float gives at least float32.
    """
    floats = [x for x in given if isinstance(x, np.dtype) and is_extension(x)]
    if not floats:
        return np.result_type(*given)
    rest = [x for x in given if not (isinstance(x, np.dtype) and kind_of(x) in "biu") and type(x) not in _WEAK]
    wider = [x for x in rest if not (isinstance(x, np.dtype) and is_extension(x))]
    return np.result_type(np.float32, *wider) if wider else floats[0]


_WEAK = (bool, int, float)


def exact_cast(source: DType, target: DType) -> bool:
    """Whether every value of ``source`` is a value of ``target``.

    >>> exact_cast(np.dtype("int32"), np.dtype("float64")), exact_cast(np.dtype("int64"), np.dtype("float64"))
    (True, False)
    """
    one, other = kind_of(source), kind_of(target)
    if source == target or one == "b":
        return True
    if one in "iu" and other in "iu":
        if one == other:
            return target.itemsize >= source.itemsize
        return one == "u" and target.itemsize > source.itemsize
    if other != "f":
        return False
    digits, exponent = _FLOATS.get(target.name, (0, 0))
    if one in "iu":
        return source.itemsize * 8 - (one == "i") <= digits and target.itemsize > 2
    if one != "f" or source.name not in _FLOATS:
        return False
    return all(a <= b for a, b in zip(_FLOATS[source.name], (digits, exponent), strict=True))


__all__ = [
    "BOOL", "FLOAT16", "FLOAT32", "FLOAT64", "INT32", "INT64", "DType", "as_dtype", "exact_cast", "is_extension",
    "kind_of", "limits", "named", "part_of_complex", "promote", "short_name",
]  # fmt: skip
