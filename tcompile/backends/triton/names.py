"""Triton's names of dtypes and numbers.

Input: dtypes and Python numbers.
Output: text for kernels' sources and for their signatures.
Why: sources and signatures have to agree.
"""

from __future__ import annotations

import math

import numpy as np

from tcompile.backends.schedule.complex_and_half import PARTS
from tcompile.graph.dtypes import DType

BOOL = np.dtype("bool")
_POINTERS = {
    "bool": "i8", "int8": "i8", "int16": "i16", "int32": "i32", "int64": "i64", "uint8": "u8", "uint16": "u16",
    "uint32": "u32", "uint64": "u64", "float16": "fp16", "float32": "fp32", "float64": "fp64",
}  # fmt: skip


def type_of(dtype: DType) -> str:
    """The dtype as the source of a kernel names it, for elements in registers."""
    return "tl.int1" if dtype == BOOL else f"tl.{dtype.name}"


def pointer_to(dtype: DType) -> str:
    """The type of a pointer to elements in memory: booleans are bytes, complex numbers pairs.

    >>> pointer_to(np.dtype("complex64")), pointer_to(np.dtype("bool"))
    ('*fp32', '*i8')
    """
    return f"*{_POINTERS[PARTS.get(dtype, dtype).name]}"


def literal(value: bool | int | float, dtype: DType) -> str:
    """A number as a literal of ``dtype``.

    >>> literal(1, np.dtype("float32")), literal(-0.5, np.dtype("float64")), literal(float("inf"), np.dtype("float32"))
    ('1.0', '(-0.5)', 'float("inf")')
    """
    if dtype == BOOL:
        return str(bool(value))
    if dtype.kind != "f":
        return str(int(value)) if value >= 0 else f"({int(value)})"
    number = float(value)
    if not math.isfinite(number):
        text = f'float("{"nan" if math.isnan(number) else "inf"}")'
        return text if not number < 0 else 'float("-inf")'
    return repr(number) if math.copysign(1.0, number) > 0 else f"({number!r})"


def full(value: bool | int | float, dtype: DType) -> str:
    """The same as a block of one element (of scalars, the interpreter loses the dtype)."""
    return f"tl.full([1], {literal(value, dtype)}, {type_of(dtype)})"


__all__ = ["BOOL", "full", "literal", "pointer_to", "type_of"]
