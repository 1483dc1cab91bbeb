"""What running a node does besides making its value: floating-point conditions and exceptions.

Enters: a node. Leaves: whether it may signal. Exists because NumPy tells the user of divisions by zero,
overflows and invalid operations even where nobody reads the result: such a node is not dead code.
"""

from __future__ import annotations

from tcompile.graph import Node, TensorType
from tcompile.graph.ops import OPS
from tcompile.graph.types import DType

_QUIET_POINTWISE = frozenset({
    "abs", "conj", "negative", "ordered", "positive", "sign", "floor", "ceil", "trunc", "round", "copysign", "maximum",
    "minimum", "fmax", "fmin",
    "clip", "where", "bitwise_invert", "bitwise_and", "bitwise_or", "bitwise_xor", "bitwise_left_shift",
    "bitwise_right_shift", "isfinite", "isinf", "isnan", "signbit", "equal", "not_equal", "less",
    "less_equal", "greater",
    "greater_equal", "logical_and", "logical_or", "logical_xor", "logical_not",
})  # fmt: skip
# The characters of the dtypes on which some of them are loud: on complex numbers at NaN and infinity; on float16 at
# signalling NaNs, which NumPy's sort leaves.
_LOUD = {
    **dict.fromkeys(("sign", "less", "less_equal", "greater", "greater_equal"), "FD"),
    **dict.fromkeys(("floor", "ceil", "trunc", "round"), "e"),
}
_QUIET_ON_INTEGERS = frozenset({
    "add", "subtract", "multiply", "square", "sum", "prod", "matmul", "cumulative_sum", "cumulative_prod",
})  # fmt: skip
_QUIET_REDUCTIONS = frozenset({"max", "min", "any", "all", "argmax", "argmin"})
_QUIET_OPAQUE = frozenset({"assign", "concat", "copy", "copy_c", "sort", "argsort"})


def may_signal(node: Node) -> bool:
    """Whether running ``node`` may warn or raise. Integer and boolean arithmetic that wraps is silent."""
    kind = OPS[node.op].kind
    loud = _LOUD.get(node.op, "")
    if loud and any(isinstance(o.type, TensorType) and o.type.dtype.char in loud for o in node.inputs):
        return True
    if (
        kind in ("movement", "creation")
        or node.op in _QUIET_POINTWISE | _QUIET_REDUCTIONS | _QUIET_OPAQUE
        or node.op == "get"
    ):
        return False
    if node.op == "astype":
        return _cast_may_signal(node)
    if node.op in _QUIET_ON_INTEGERS and isinstance(node.type, TensorType):
        return node.type.dtype.kind not in "biu"
    return True


def _cast_may_signal(node: Node) -> bool:
    """NaN or infinity to an integer is invalid; a number too large for a narrower float overflows."""
    source, target = (n.tensor.dtype for n in (*node.inputs, node))
    return not (
        source.kind == "b" or target.kind == "b" or exact_cast(source, target) or _integers(source, target)
    )


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
