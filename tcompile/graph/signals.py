"""Signals of nodes: floating-point conditions and exceptions.

Input: a node.
Output: whether it may signal.
Why: NumPy reports divisions by zero, overflows and invalid operations even where the result is never read; such a node
is not dead code.
"""

from __future__ import annotations

from tcompile.graph.ir import Node
from tcompile.graph.types import DType, TensorType


def may_signal(node: Node) -> bool:
    """Whether running ``node`` may warn or raise. Integer and boolean arithmetic that wraps is silent."""
    effects = node.op.effects
    if effects.loud and any(isinstance(o.type, TensorType) and o.type.dtype.char in effects.loud for o in node.inputs):
        return True
    match effects.signals:
        case "never":
            return False
        case "casts":
            return _cast_may_signal(node)
        case "inexact" if isinstance(node.type, TensorType):
            return node.type.dtype.kind not in "biu"
    return True


def _cast_may_signal(node: Node) -> bool:
    """NaN or infinity to an integer is invalid; a number too large for a narrower float overflows."""
    source, target = (n.tensor.dtype for n in (*node.inputs, node))
    return not (source.kind == "b" or target.kind == "b" or exact_cast(source, target) or _integers(source, target))


def _integers(source: DType, target: DType) -> bool:
    return source.kind in "iu" and (target.kind in "iu" or (target.kind == "f" and target.itemsize > 2))


def exact_cast(source: DType, target: DType) -> bool:
    """Whether every value of ``source`` is a value of ``target``.

    >>> import numpy as np
    >>> exact_cast(np.dtype("int32"), np.dtype("float64")), exact_cast(np.dtype("int64"), np.dtype("float64"))
    (True, False)
    """
    if source == target or source.kind == "b":
        return True
    bits = source.itemsize * 8
    if source.kind in "iu" and target.kind in "iu":
        if source.kind == target.kind:
            return target.itemsize >= source.itemsize
        return source.kind == "u" and target.itemsize > source.itemsize
    if target.kind == "f" and source.kind in "iu":
        return bits - (source.kind == "i") <= {2: 11, 4: 24, 8: 53}[target.itemsize] and target.itemsize > 2
    return source.kind == target.kind == "f" and target.itemsize >= source.itemsize
