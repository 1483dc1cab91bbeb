"""The op table, one file a kind of operation. Importing this package fills ``OPS``."""

from tcompile.graph.ops import (
    control,
    creation,
    element_loop,
    gathering,
    opaque,
    pointwise,
    python,
    reduction,
    view,
    writing,
)
from tcompile.graph.ops.table import OPS, Op, apply, broadcast_shapes, k_order

__all__ = [
    "OPS", "Op", "apply", "broadcast_shapes", "control", "creation", "element_loop", "gathering", "k_order",
    "opaque", "pointwise", "python", "reduction", "view", "writing",
]  # fmt: skip
