"""Signals of nodes: floating-point conditions and exceptions.

Input: a node.
Output: whether it may signal.
Why: NumPy reports divisions by zero, overflows and invalid operations even where the result is never read; such a node
is not dead code.
"""

from __future__ import annotations

from tcompile.graph.dtypes import DType, exact_cast, kind_of
from tcompile.graph.ir import Node
from tcompile.graph.ops.opaque import CALL
from tcompile.graph.types import TensorType


def may_signal(node: Node) -> bool:
    """Whether running ``node`` may warn or raise. Integer and boolean arithmetic that wraps is silent."""
    return sets_flags(node) and not (node.silent and node.op.kind != "control" and node.op is not CALL)


def sets_flags(node: Node) -> bool:
    """Whether computing ``node`` may meet a floating-point condition, or raise, whoever hears of it."""
    effects = node.op.effects
    if effects.loud and any(isinstance(o.type, TensorType) and o.type.dtype.char in effects.loud for o in node.inputs):
        return True
    match effects.signals:
        case "never":
            return False
        case "casts":
            return _cast_may_signal(node)
        case "inexact" if isinstance(node.type, TensorType):
            return kind_of(node.type.dtype) not in "biu"
    return True


def _cast_may_signal(node: Node) -> bool:
    """NaN or infinity to an integer is invalid; a number too large for a narrower float overflows."""
    source, target = (n.tensor.dtype for n in (*node.inputs, node))
    if "b" in (kind_of(source), kind_of(target)):
        return False
    return not (exact_cast(source, target) or _integers(source, target))


def _integers(source: DType, target: DType) -> bool:
    kind = kind_of(target)
    return kind_of(source) in "iu" and (kind in "iu" or (kind == "f" and target.itemsize > 2))
