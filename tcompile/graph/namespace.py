"""The array namespace ``xp`` over which printed graphs run.

Input: calls written in a printed graph, ``xp.sum(x, axis=(1,), keepdims=False)``.
Output: NumPy values.
Why: the text of ``graph.code`` can be run, edited and run again with NumPy alone; every row of the op table is a
function here.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from tcompile.graph.dtypes import named
from tcompile.graph.ops import OPS
from tcompile.graph.ops.opaque import Name, Slot


class Namespace:
    """The op table as functions.

    >>> source = "def f(x): return (xp.multiply(xp.sin(x), 2.0),)"
    >>> scope = {"xp": xp}
    >>> exec(source, scope)
    >>> scope["f"](np.zeros(2))
    (array([0., 0.]),)
    """

    nan = math.nan
    inf = math.inf
    slot = Slot
    name = Name

    @staticmethod
    def const(dtype: str, value: Any) -> Any:
        """A NumPy scalar of ``dtype``."""
        return named(dtype).type(value)

    def __getattr__(self, name: str) -> Callable[..., Any]:
        op = OPS.get(name)
        if op is None:
            raise AttributeError(f"there is no operation {name!r}")
        function = op.reference(np)

        def run(*operands: Any, type: Any = None, **attrs: Any) -> Any:
            return function(*operands, **attrs)  # the type is for readers, and for from_code

        run.__name__ = run.__qualname__ = name
        run.__doc__ = op.doc
        return run

    def __dir__(self) -> list[str]:
        return sorted([*OPS, "const", "inf", "name", "nan", "slot"])

    def __repr__(self) -> str:
        return "<tcompile array namespace over NumPy>"


xp = Namespace()

__all__ = ["Namespace", "xp"]
