"""NumPy's inner loops: the C functions of universal functions, called from machine code without Python.

Input: a universal function and the dtypes of its operands.
Output: the address of the C function that NumPy itself would call, ``void loop(char **arrays, intp *sizes, intp
*strides, void *data)``.
Why: a product of small matrices takes less time than a call of Python. NumPy's own function chooses a routine of its
BLAS, so bits and floating-point flags are NumPy's.

The table of these functions is part of NumPy's C API (``PyUFuncObject`` in ufuncobject.h). Its fields are checked
against Python's view of the universal function, and the loop is run once beside NumPy (``available``).
"""

from __future__ import annotations

import ctypes
import platform
from functools import cache

import numpy as np

from tcompile.backends.llvm.native import target

# Offsets in bytes of PyUFuncObject: how many inputs, outputs, both; the loops, their data, how many; its name.
_NIN, _NOUT, _NARGS, _LOOPS, _DATA, _COUNT, _NAME = 16, 20, 24, 32, 40, 48, 56
_POINTER = ctypes.sizeof(ctypes.c_void_p)


def address(ufunc: np.ufunc, types: str) -> int | None:
    """The address of the loop of ``ufunc`` for these types (``"dd->d"``); None where there is none.

    The loop takes no data and does not need the GIL: it is not for Python objects.

    >>> address(np.matmul, "OO->O") is None
    True
    """
    if "O" in types or types not in ufunc.types or not _is_as_expected(ufunc):
        return None
    number = ufunc.types.index(types)
    if _word(_word(id(ufunc) + _DATA) + number * _POINTER):
        return None
    return _word(_word(id(ufunc) + _LOOPS) + number * _POINTER) or None


@cache
def available() -> bool:
    """Whether the loop of a product, called as machine code calls it, gives NumPy's result."""
    if platform.python_implementation() != "CPython" or target.unsupported() is not None:
        return False
    found = address(np.matmul, "dd->d")
    if found is None:
        return False
    a, b, out = np.arange(6.0).reshape(2, 3), np.arange(12.0).reshape(3, 4), np.zeros((2, 4))
    arrays = (ctypes.c_void_p * 3)(*(x.__array_interface__["data"][0] for x in (a, b, out)))
    sizes = (ctypes.c_ssize_t * 4)(1, 2, 3, 4)
    strides = (ctypes.c_ssize_t * 9)(0, 0, 0, *a.strides, *b.strides, *out.strides)
    ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 4)(found)(arrays, sizes, strides, None)
    return bool(np.array_equal(out, a @ b))


@cache
def _is_as_expected(ufunc: np.ufunc) -> bool:
    """Whether the object's fields are at the known offsets."""
    if type(ufunc) is not np.ufunc or np.ufunc.__basicsize__ < _NAME + _POINTER:
        return False
    at = id(ufunc)
    counts = [ctypes.c_int.from_address(at + offset).value for offset in (_NIN, _NOUT, _NARGS, _COUNT)]
    if counts != [ufunc.nin, ufunc.nout, ufunc.nargs, ufunc.ntypes] or not _word(at + _NAME):
        return False
    return ctypes.string_at(_word(at + _NAME)).decode("ascii", "replace") == ufunc.__name__


def _word(at: int) -> int:
    return ctypes.c_uint64.from_address(at).value


__all__ = ["address", "available"]
