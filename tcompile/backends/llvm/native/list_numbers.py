"""Reads the numbers of a list into an array, in machine code.

Input: a list, and an uninitialised array of its length.
Output: the array with the items' values; or False where an item is of another class, or has too many bits.
Why: NumPy takes 60 ns for each item, which is the time of a plain loop's iteration.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from tcompile.backends.llvm.native import abi, target

_DTYPES = ("float64", "int64", "bool")


@cache
def filler(dtype: str) -> Callable[[list[Any], np.ndarray[Any, Any]], bool] | None:
    """The function that fills arrays of a dtype; None where lists or numbers look different in this CPython."""
    if target.unsupported() is not None or not abi.knows_lists():
        return None
    address = _code()[f"tc_list_{dtype}"]
    run = ctypes.PYFUNCTYPE(ctypes.c_int64, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64)(address)

    def fill(items: list[Any], made: np.ndarray[Any, Any]) -> bool:
        count = len(made)
        return bool(
            run(id(items), ctypes.addressof(ctypes.c_char.from_buffer(made.data)), count) == count == len(items)
        )

    return fill


@cache
def _code() -> target.MachineCode:
    ir = target.source("list_numbers.ll", abi.OFFSETS)
    return target.keep_forever(target.load(ir, [f"tc_list_{dtype}" for dtype in _DTYPES], abi.symbols(ir)))


__all__ = ["filler"]
