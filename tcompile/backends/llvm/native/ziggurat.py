"""NumPy's ziggurats (G. Marsaglia, W. W. Tsang, 2000): their tables, for draws in machine code.

Input: the functions of NumPy's library that draw normal and exponential numbers.
Output: for each the table of its 256 layers, and the address of ``tc_redraw``, which calls the function for the other
numbers.
Why: of a hundred numbers 99 are bits of one draw times a step of its layer. NumPy calls two functions for that, which
takes three times as long.

The tables are probed from NumPy's function itself, with a bit generator that returns given bits and counts its calls.
The assumptions about the function are checked on both sides of each limit before it is used.
"""

from __future__ import annotations

import ctypes
from functools import cache
from random import Random
from typing import Any

import numpy as np

from tcompile.backends.llvm.native import target
from tcompile.records import dataclass

LAYERS = 256
_EXPORTS = ("tc_redraw", "tc_probe", "tc_try")


@dataclass(frozen=True)
class Layout:
    """The layout of a ziggurat's first 64 bits: the layer's number, the value, of so many ``bits``, and the sign, if
    any.
    """

    layer: int
    value: int
    bits: int
    sign: int | None = None


LAYOUTS = {
    "random_standard_normal": Layout(0, 9, 52, sign=8),
    "random_standard_exponential": Layout(3, 11, 53),
}


@cache
def _code() -> target.MachineCode:
    return target.keep_forever(target.load(target.source("ziggurat.ll"), _EXPORTS, opt=0))


def redraw() -> int:
    """The address of ``double tc_redraw(double (*function)(bitgen_t *), bitgen_t *real, i64 held)``."""
    return _code()["tc_redraw"]


@cache
def table(name: str, function: int) -> Any:
    """The layers of NumPy's function ``name`` at that address: pairs of a limit, an int of 64 bits, and a step.

    Values below the limit give the value times the step. None where the function is no such ziggurat.
    """
    layout = LAYOUTS[name]
    found = np.zeros(LAYERS, [("limit", np.uint64), ("step", np.float64)])
    probe = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p, *[ctypes.c_int64] * 3, ctypes.c_void_p])(_code()["tc_probe"])
    probe(function, layout.layer, layout.value, layout.bits, found.ctypes.data)
    found.flags.writeable = False
    return found if _is_right(function, layout, found) else None


def _is_right(function: int, layout: Layout, found: Any) -> bool:
    """Whether the function agrees with the table, for numbers of all layers on both sides of the limits."""
    attempt = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p, ctypes.c_uint64, ctypes.c_void_p)(_code()["tc_try"])
    random, drawn = Random(1), ctypes.c_double()
    most = (1 << layout.bits) - 1
    for layer, (limit, step) in enumerate(found.tolist()):
        for value in (0, max(limit - 1, 0), min(limit, most), random.getrandbits(layout.bits)):
            cleared = random.getrandbits(64) & ~(most << layout.value | LAYERS - 1 << layout.layer)
            bits = cleared | value << layout.value | layer << layout.layer
            unroll_factor = bool(attempt(function, bits, ctypes.byref(drawn)))
            want = value * step * (-1.0 if layout.sign is not None and bits >> layout.sign & 1 else 1.0)
            if unroll_factor != (value < limit) or (unroll_factor and drawn.value.hex() != want.hex()):
                return False
    return True


__all__ = ["LAYOUTS", "Layout", "redraw", "table"]
