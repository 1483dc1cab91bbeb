"""Operations left to NumPy, because its own loops are faster than kernels.

Input: a graph.
Output: the nodes that kernels could compute, but should not.
Why: with AVX-512, NumPy computes some functions with Intel's short vector math library, which is faster than the C
library's vector functions.

A kernel still wins where it saves passes over memory, where several threads share the work, and where arrays are so
small that a call dominates. Beside a scalar loop, which Python starts in any case, one number does not pay for
compiling a kernel.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from tcompile.backends.llvm import native
from tcompile.backends.llvm.vector.vectors import FLOAT32
from tcompile.backends.llvm.vector.vmath import FUNCTIONS, libmvec_name
from tcompile.backends.schedule.costs import small_power
from tcompile.graph import Graph, Node, TensorType, ops
from tcompile.graph.overlap import root
from tcompile.graph.sizes import hint

_Times: TypeAlias = dict[tuple[str, str], tuple[float, float]]

# Nanoseconds an element on one thread, from arrays of 10^4 elements: a kernel of its own, and NumPy's loop. Listed are
# functions that NumPy wins by more than a tenth (AMD EPYC with and without AVX-512, glibc 2.36, NumPy 2.5 and 2.4).
_NS: _Times = {
    ("tanh", "float32"): (0.28, 0.19), ("log1p", "float32"): (0.36, 0.31), ("tan", "float32"): (0.34, 0.29),
    ("atan", "float32"): (0.40, 0.35), ("asinh", "float32"): (0.54, 0.46), ("atanh", "float32"): (0.39, 0.32),
    ("acosh", "float32"): (0.74, 0.45), ("atan2", "float32"): (0.63, 0.41), ("pow", "float32"): (3.3, 0.48),
    ("nextafter", "float32"): (3.1, 1.7),
    ("sinh", "float64"): (1.2, 0.83), ("tanh", "float64"): (1.15, 0.86), ("log", "float64"): (0.84, 0.74),
    ("pow", "float64"): (6.5, 1.6),
}  # fmt: skip
_AVX512 = "_ZGVeN16v_expf"  # exported where the processor has it
_NS_WITHOUT_AVX512: _Times = {("nextafter", "float32"): (6.5, 2.9), ("nextafter", "float64"): (9.7, 7.5)}
_LISTED = frozenset(op for op, _ in (*_NS, *_NS_WITHOUT_AVX512))
_CALL_NS = 500.0  # overhead of a NumPy call
_PASS_NS = 0.2  # one more store and load of an element, since a neighbour runs in another loop
_MOST_BYTES = 16 << 20  # larger results are better allocated in the pool
_MANY = 1 << 16  # booleans that a kernel tests in the time of a call
_FUSED = ("pointwise", "reduction", "creation")
_SHARED_NS = 250_000.0  # the work from which a second thread pays


def left_to_numpy(graph: Graph, supports: Callable[[Node], bool]) -> set[Node]:
    """The nodes among those that ``supports`` admits to kernels that are left to NumPy."""
    known: _Times = {}
    if libmvec_name(FUNCTIONS["exp"], FLOAT32, 16) is not None:
        known = _NS if native.has_symbol(_AVX512) else _NS_WITHOUT_AVX512
    # A single number is no reason to run a loop's iterations in Python.
    starts_loops = not graph.scratch and any(node.op is ops.SCALAR_LOOP for node in graph.nodes)
    readers: dict[Node, list[Node]] = {}
    for node in graph.nodes:
        for operand in node.inputs:
            readers.setdefault(operand, []).append(node)

    def passes(node: Node) -> int:
        """Counts the neighbours that a kernel could fuse with it."""
        neighbours = {*node.inputs, *readers.get(node, ())}
        return sum(n.op.kind in _FUSED and supports(n) for n in neighbours)

    def is_left(node: Node) -> bool:
        if starts_loops and _is_number(node) and not passes(node):
            return True
        times = _times(node, known)
        return times is not None and _is_better(node, times, passes)

    return {node for node in graph.nodes if _stops_early(node, supports) or is_left(node)}


def _is_number(node: Node) -> bool:
    """Whether this computes a number from numbers."""
    return node.op.kind == "pointwise" and not any(
        isinstance(n.type, TensorType) and n.type.ndim for n in (node, *node.inputs)
    )


def _stops_early(node: Node, supports: Callable[[Node], bool]) -> bool:
    """Whether this is ``any`` or ``all`` of many booleans in memory: NumPy stops as soon as the result is known."""
    if node.op not in (ops.ANY, ops.ALL) or not isinstance(node.type, TensorType) or hint(node.tensor.size) != 1:
        return False
    source = node.inputs[0]
    if source.tensor.dtype.kind != "b" or hint(source.tensor.size) < _MANY:
        return False
    source = root(source)
    return source.op.kind not in _FUSED or not supports(source)


def _times(node: Node, known: _Times) -> tuple[float, float] | None:
    if node.op.name not in _LISTED or not isinstance(node.type, TensorType):
        return None
    times = known.get((node.op.name, node.tensor.dtype.name))
    return None if node.op is ops.POW and small_power(node.operands[1]) is not None else times


def _is_better(node: Node, times: tuple[float, float], passes: Callable[[Node], int]) -> bool:
    """Whether NumPy's loop is faster, for the sizes seen at capture."""
    count = hint(node.tensor.size)
    if count * node.tensor.dtype.itemsize > _MOST_BYTES:
        return False
    ours, numpys = (each * count for each in times)
    if ours > _SHARED_NS:
        ours /= native.num_threads()
    return _CALL_NS + numpys + passes(node) * _PASS_NS * count < ours


__all__ = ["left_to_numpy"]
