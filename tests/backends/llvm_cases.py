"""Helpers of the llvm backend's tests.

Input: a builder of a graph, and arrays.
Output: an assertion that the compiled graph gives what NumPy gives, flags included.
Why: every test of a kernel compares in the same way.
"""

from __future__ import annotations

import importlib.util
import os
import warnings
import zlib
from typing import Any

import numpy as np

from tcompile.backends.llvm import CompiledGraph, compile_graph
from tcompile.backends.replay import Replay
from tcompile.graph import Graph, Layout, Node, TensorType
from tcompile.graph.ops import apply

ON_TRITON = bool(os.environ.get("TCOMPILE_TEST_TRITON"))  # `make test-triton`: what runs here runs there, too
SHARE, SMALL = 8, 300  # else one of so many cases does, where there are no more elements: the interpreter is slow
_counts: dict[str, int] = {}  # of cases, by test
DTYPES = ["bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float32", "float64"]
INTEGERS = [d for d in DTYPES if "int" in d]
FLOATS = ["float32", "float64"]
LAYOUTS = {  # of arrays of any number of axes
    "rows": lambda x: x, "columns": np.asfortranarray, "strided": lambda x: np.repeat(x, 2, -1)[..., ::2],
    "turned": lambda x: x[..., ::-1], "spread": lambda x: np.broadcast_to(x[:1], x.shape),
    "across": lambda x: np.ascontiguousarray(x.T).T,
}  # fmt: skip


def layout_of(array: np.ndarray) -> Layout:
    """The layout by which guards would describe this array."""
    order = sorted(range(array.ndim), key=lambda a: -abs(array.strides[a]))
    ranks = [0] * array.ndim
    for position, axis in enumerate(order):
        if array.strides[axis] or array.shape[axis] == 1:
            ranks[axis] = array.ndim - position
    expected = TensorType(array.dtype, array.shape, Layout(tuple(ranks))).strides()
    dense = all(
        n == 1 or s == e * array.itemsize for n, s, e in zip(array.shape, array.strides, expected or (), strict=True)
    )
    return Layout(tuple(ranks), dense)


def type_of(array: Any) -> TensorType:
    """The graph type of an array."""
    array = np.asarray(array)
    return TensorType(array.dtype, array.shape, layout_of(array))


def graph_of(build: Any, *arrays: Any) -> Graph:
    """A graph with one input for each array; ``build(op, *inputs)`` returns the outputs, ``op`` adds an operation."""
    graph = Graph("case")
    inputs = [graph.input(f"x{i}", type_of(a)) for i, a in enumerate(arrays)]

    def op(name: str, *operands: Any, **attrs: Any) -> Node:
        return apply(graph, name, *operands, **attrs)

    outputs = build(op, *inputs)
    graph.outputs = list(outputs) if isinstance(outputs, tuple | list) else [outputs]
    return graph


def scan(axis: int, name: str = "cumulative_sum") -> Any:
    """A builder of a graph of one scan."""
    return lambda op, x: op(name, x, axis=axis)


def same(got: Any, expected: Any, ulp: float = 0, rtol: float = 0.0, node: Node | None = None) -> None:
    """Compares dtype, shape, strides and values; signed zeros and NaN too.

    Floats may differ by ``ulp`` units in the last place, plus ``rtol`` of the larger of 1 and the expected size.
    """
    got, expected = np.asarray(got), np.asarray(expected)
    assert got.dtype == expected.dtype
    assert got.shape == expected.shape
    if expected.size:
        strides = [(a, b) for a, b, n in zip(got.strides, expected.strides, got.shape, strict=True) if n > 1]
        assert all(a == b for a, b in strides), (got.strides, expected.strides)
    if got.dtype.kind == "c":
        same(got.real, expected.real, ulp, rtol)
        same(got.imag, expected.imag, ulp, rtol)
        return
    if got.dtype.kind != "f" or not (ulp or rtol):
        np.testing.assert_array_equal(got, expected)
        if got.dtype.kind == "f":
            zero = (got == 0) & (expected == 0)
            np.testing.assert_array_equal(np.signbit(got[zero]), np.signbit(expected[zero]))
        return
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(np.isnan(got), np.isnan(expected))
        exact = (got == expected) | np.isnan(expected)
        tolerance = ulp * np.spacing(np.abs(expected)) + rtol * np.maximum(np.abs(expected), 1)
        close = np.abs(got - expected) <= tolerance
    bad = ~(exact | close)
    assert not bad.any(), (got[bad][:5], expected[bad][:5])


def run_both(graph: Graph, *arrays: Any) -> tuple[tuple[Any, ...] | None, tuple[Any, ...], bool]:
    """Compiled results (None: it asked for a replay), NumPy's results, and whether NumPy warned."""
    return run_beside(compile_graph(graph), graph, *arrays)


def run_beside(compiled: Any, graph: Graph, *arrays: Any) -> tuple[tuple[Any, ...] | None, tuple[Any, ...], bool]:
    """The same for a graph that is compiled already."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        expected = graph(*arrays)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            return compiled(*arrays), expected, bool(caught)
        except Replay:
            return None, expected, bool(caught)


def check_beside(compiled: Any, graph: Graph, *arrays: Any, ulp: float, rtol: float, may_replay: bool = False) -> None:
    """A compiled graph gives what NumPy gives, and replays exactly where NumPy warns, or elsewhere if it ``may``."""
    got, expected, noisy = run_beside(compiled, graph, *arrays)
    if may_replay and got is None:
        return
    if noisy:
        assert got is None, "NumPy warned, the compiled graph did not notice"
        with np.errstate(all="ignore"):
            try:
                got = compiled(*arrays)
            except Replay:
                return
    assert got is not None, "a replay for nothing"
    assert len(got) == len(expected)
    for a, b in zip(got, expected, strict=True):
        same(a, b, ulp, rtol)


def check(build: Any, *arrays: Any, ulp: float = 0, rtol: float = 0.0, kernels: int | None = None) -> CompiledGraph:
    """Compiles ``build`` and compares it with NumPy, flags included: it must replay exactly where NumPy warns."""
    graph = graph_of(build, *arrays)
    compiled = compile_graph(graph)
    check_beside(compiled, graph, *arrays, ulp=ulp, rtol=rtol)
    if kernels is not None:
        assert len(compiled.kernels) == kernels, compiled.source
    if ON_TRITON or _is_sampled(arrays):
        from tests.backends import triton_cases

        triton_cases.check(build, *arrays, ulp=ulp, rtol=rtol)
    return compiled


def _is_sampled(arrays: Any) -> bool:
    """Whether a case is among those that run on the triton backend in the ordinary test run: always the same ones."""
    if importlib.util.find_spec("triton") is None or sum(np.size(a) for a in arrays) > SMALL:
        return False
    test = os.environ.get("PYTEST_CURRENT_TEST", "").partition(" ")[0]
    _counts[test] = _counts.get(test, 0) + 1
    return zlib.crc32(f"{test} {_counts[test]}".encode()) % SHARE == 0


def sample(dtype: str, shape: Any, seed: int = 0) -> np.ndarray:
    """Ordinary data: small numbers around zero, zeros among them."""
    rng = np.random.default_rng(seed)
    kind = np.dtype(dtype).kind
    if kind == "b":
        return rng.integers(0, 2, shape).astype(bool)
    if kind == "f":
        return rng.normal(size=shape).astype(dtype)
    low = 0 if kind == "u" else -7
    return rng.integers(low, 8, shape).astype(dtype)
