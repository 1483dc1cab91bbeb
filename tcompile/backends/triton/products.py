"""Products of matrices as sums of products, to fuse them with their neighbours.

Input: a graph.
Output: the same graph in which ``matmul``, and CuPy's, are a ``multiply`` of broadcast factors and a ``sum`` over their
shared axis (``expanded``). Or CuPy's products of matrices with rows of odd length, padded with zeros (``padded``).
Why: the schedule fuses multiply and sum with the code before and after them; ``dots`` writes such a kernel, and stores
nothing in between.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

import numpy as np

from tcompile.backends.schedule import products as small
from tcompile.graph import Graph, Node, Operand, Size, TensorType, ops
from tcompile.graph.dtypes import DType
from tcompile.graph.ops import apply
from tcompile.graph.ops.opaque import Slot

# The dtype of the sum: products of two halves are exact in single precision, in which NumPy adds them, too.
CARRIED: dict[DType, DType] = {
    np.dtype("float16"): np.dtype("float32"), np.dtype("float32"): np.dtype("float32"),
    np.dtype("float64"): np.dtype("float64"),
}  # fmt: skip
ALIGNED = 16  # bytes: the alignment of rows for vector loads
_OF_CUPY = ("cupy.matmul", "cupy.dot")


@dataclass
class Expanded:
    """A graph, and for each ``multiply`` the product of the original whose terms it computes."""

    graph: Graph
    terms: dict[Node, Node] = field(default_factory=dict)


def is_product(node: Node) -> bool:
    """Whether a node is a product of two matrices, or of two stacks of them, of floats."""
    if node.op is ops.CALL:
        if node.attrs["target"] not in _OF_CUPY or not _is_plain(node):
            return False
    elif node.op is not ops.MATMUL or small.is_small(node):
        return False
    a, b = (operand.tensor for operand in node.inputs)
    stacks = node.op is ops.MATMUL or node.attrs["target"] == "cupy.matmul"
    deep = a.ndim >= 2 <= b.ndim if stacks else a.ndim == 2 == b.ndim
    dtypes = {a.dtype, b.dtype, node.tensor.dtype}
    return deep and len(dtypes) == 1 and dtypes <= CARRIED.keys()


def _is_plain(node: Node) -> bool:
    """Whether a call has two arrays for arguments, in this order, and nothing else."""
    return node.attrs["args"] == (Slot(0), Slot(1)) and not node.attrs["kwargs"] and len(node.inputs) == 2


def expanded(graph: Graph, refused: frozenset[str] = frozenset()) -> Expanded:
    """``graph`` with its products of matrices as sums, except those whose names are ``refused``."""
    found = Expanded(graph)

    def replace(result: Graph, node: Node, operands: tuple[Operand, ...]) -> Node | None:
        if node.name in refused or not is_product(node):
            return None

        op = partial(apply, result, location=node.location)
        dtype = node.tensor.dtype
        a, b = (o if CARRIED[dtype] == dtype else op("astype", o, dtype=CARRIED[dtype]) for o in operands)
        assert isinstance(a, Node) and isinstance(b, Node)
        turned = (*range(b.tensor.ndim - 2), b.tensor.ndim - 1, b.tensor.ndim - 2)
        across = op("expand_dims", op("permute_dims", b, axes=turned), axis=b.tensor.ndim - 2)
        terms = op("multiply", op("expand_dims", a, axis=a.tensor.ndim - 1), across)
        made = op("sum", terms, axis=(terms.tensor.ndim - 1,), keepdims=False)
        made.name = node.name
        found.terms[terms] = node
        whole = made if CARRIED[dtype] == dtype else op("astype", made, dtype=dtype)
        for last in (made, whole):
            last.type = TensorType(last.tensor.dtype, made.tensor.shape, node.tensor.layout, node.device)
        return whole

    if any(map(is_product, graph.nodes)):
        found.graph = graph.rebuild(replace)
    return found


def is_ragged(node: Node) -> bool:
    """Whether some row of a product of CuPy's two matrices has a length that is no multiple of ``ALIGNED`` bytes."""
    if node.op is not ops.CALL or not is_product(node):
        return False
    (m, k), (_, n) = (operand.tensor.shape[-2:] for operand in node.inputs)
    if any(operand.tensor.ndim != 2 for operand in node.inputs) or not all(isinstance(size, int) for size in (m, k, n)):
        return False
    return any(size * node.tensor.dtype.itemsize % ALIGNED for size in (k, n))


def padded(graph: Graph) -> Graph:
    """``graph`` with factors padded to aligned rows; the product's own padding is sliced off."""

    def replace(result: Graph, node: Node, operands: tuple[Operand, ...]) -> Node | None:
        if not is_ragged(node):
            return None

        op = partial(apply, result, location=node.location)
        dtype, cells = node.tensor.dtype, ALIGNED // node.tensor.dtype.itemsize
        (m, k), (_, n) = (operand.tensor.shape for operand in node.inputs)
        deep, wide = (-(-size // cells) * cells for size in (k, n))
        factors = [
            _filled_up(op, factor, shape, node.device)
            for factor, shape in zip(operands, ((m, deep), (deep, wide)), strict=True)
        ]
        type = TensorType(dtype, (m, wide), device=node.device)
        product = result.append(ops.CALL, factors, node.attrs, type, location=node.location)
        shown = op("index", product, key=(slice(None), slice(0, n, None)))
        return op("ordered", shown, axes=(0, 1))

    return graph.rebuild(replace) if any(map(is_ragged, graph.nodes)) else graph


def _filled_up(op: Callable[..., Node], factor: Operand, shape: tuple[Size, Size], device: str) -> Operand:
    """A factor padded with zeros along both axes."""
    assert isinstance(factor, Node)
    if factor.tensor.shape == shape:
        return factor
    zeros = op("full", shape=shape, fill_value=0.0, dtype=factor.tensor.dtype)
    zeros.move(device)
    rows, columns = factor.tensor.shape
    path = (("index", (("key", (slice(0, rows, None), slice(0, columns, None))),)),)
    return op("assign", zeros, factor, path=path)


__all__ = ["CARRIED", "Expanded", "expanded", "is_product", "is_ragged", "padded"]
