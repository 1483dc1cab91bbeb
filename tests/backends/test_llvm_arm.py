"""The machine code of kernels for 64-bit ARM: vectors of NEON, in every loop.

Input: the kernels of the benchmarks, and small graphs. Output: an AssertionError where code goes element by element.
Why: what a processor has no instruction for LLVM takes apart, which is right, many times slower, and fails no other
test. LLVM makes code for this processor on any other.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tcompile
from benchmarks.kernels import KERNELS
from tcompile.backends import llvm
from tcompile.backends.llvm import native
from tcompile.backends.llvm.kernels.variants import USUAL
from tcompile.backends.llvm.listings import assembly_of
from tcompile.backends.llvm.native import target
from tcompile.graph import Graph, TensorType
from tcompile.graph.ops import apply
from tcompile.observe import bus
from tcompile.observe.events import Event, PassFinished
from tests.golden.texts import fixed_machine

MACHINE = native.Machine("aarch64-unknown-linux-gnu", "neoverse-n1", frozenset({"neon", "fp-armv8"}))
WIDE = native.Machine("aarch64-unknown-linux-gnu", "neoverse-v1", frozenset({"neon", "fp-armv8", "sve"}), 256)
VECTOR = re.compile(r"^\s*f(add|sub|mul|div|mla|sqrt|max|min|cm\w\w)\s+v\d+\.(4s|2d)", re.MULTILINE)
SCALABLE = re.compile(r"^\s*f(add|sub|mul|div|n?m[al]\w|sqrt|max|min|cm\w\w)\s+[zp]\d+\.[sd]", re.MULTILINE)
SCALAR = re.compile(r"^\s*(f(add|sub|mul|div|madd|sqrt|max|min|cmpe?|ccmp)\s+[sd]\d|csetm)", re.MULTILINE)
SHAPES = {"pairwise": (200, 64), "transpose_add": (1024, 1024)}


@pytest.fixture(scope="module", autouse=True)
def has_target():
    try:
        target.assembly_for(MACHINE, "define void @nothing() {\n  ret void\n}")
    except RuntimeError as error:
        pytest.skip(f"this LLVM makes no code for ARM: {error}")


def graph_of(function: Callable[..., Any], *arguments: Any) -> Graph:
    """The graph of a function, as backends see it."""
    events: list[Event] = []
    with bus.listening(events.append):
        tcompile.compile(function, backend="aot_eager")(*arguments)
    graph = [event for event in events if isinstance(event, PassFinished)][-1].get_graph()
    assert graph is not None
    return graph


def assembly(graph: Graph, machine: native.Machine = MACHINE) -> str:
    """Its kernels, without the functions that they call for single lanes."""
    with fixed_machine(machine):
        compiled = llvm.CompiledGraph(graph, llvm._make(graph, False, USUAL), USUAL)
        compiled.settle()
    (kernel,) = compiled.kernels
    text = target.assembly_for(machine, kernel.ir)
    return assembly_of(text, [name for name in kernel.functions if not name.endswith("_combine")])


def one(name: str, *operands: tuple[str, tuple[int, ...]], **attributes: Any) -> Graph:
    """A graph of one operation on inputs of these dtypes and shapes."""
    graph = Graph(name)
    inputs = [graph.input(f"x{i}", TensorType(np.dtype(d), shape)) for i, (d, shape) in enumerate(operands)]
    graph.outputs = [apply(graph, name, *inputs, **attributes)]
    return graph


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", KERNELS)
def test_kernels_of_the_benchmarks(name, dtype):
    kernel = KERNELS[name]
    text = assembly(graph_of(kernel.numpy, *kernel.inputs(SHAPES.get(name, (1024, 1024)), np.dtype(dtype))))
    vector, scalar = (len(pattern.findall(text)) for pattern in (VECTOR, SCALAR))
    assert vector and scalar <= vector // 4, (vector, scalar, text)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_transposes_stay_in_registers(dtype):
    arguments = KERNELS["transpose_add"].inputs((1024, 1024), np.dtype(dtype))
    text = assembly(graph_of(KERNELS["transpose_add"].numpy, *arguments))
    lanes = 16 if dtype == "float32" else 8
    assert len(re.findall(r"\bzip[12]\b", text)) >= lanes * lanes * np.dtype(dtype).itemsize // 16, text


@pytest.mark.parametrize("name", ["less", "less_equal", "greater", "greater_equal", "equal", "not_equal"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_comparisons(name, dtype):
    """No flag for NaN, which the instructions raise that compare sizes, and no comparison lane by lane."""
    text = assembly(one(name, (dtype, (64,)), (dtype, (64,))))
    assert "fcmeq" in text and not re.search(r"\bfcm(gt|ge|lt|le)\b|\bfcmpe?\b", text), text


@pytest.mark.parametrize("name, instruction", [
    ("maximum", "fmax"), ("minimum", "fmin"), ("fmax", "fmaxnm"), ("fmin", "fminnm"),
])  # fmt: skip
def test_extremes(name, instruction):
    text = assembly(one(name, ("float32", (64,)), ("float32", (64,))))
    assert re.search(rf"\b{instruction}\s+v\d+\.4s", text) and not re.search(r"\bfcm|\bbsl\b|\bbit\b|\bbif\b", text)


@pytest.mark.parametrize("name", ["max", "min"])
def test_extremes_of_all(name):
    text = assembly(one(name, ("float64", (64, 64)), axis=(1,), keepdims=False))
    assert len(re.findall(rf"\bf{name}\s+v\d+\.2d", text)) >= 4 and "fcm" not in text, text


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "int8", "uint32", "int64", "bool"])
def test_large_results(dtype):
    """They are written past the caches, which takes an instruction of another processor's afterwards, or none."""
    text = assembly(one("logical_not" if dtype == "bool" else "negative", (dtype, (1 << 26,))))
    assert re.search(r"\bst[rpn]", text)


@pytest.mark.parametrize("name, dtype", [
    ("floor_divide", "float64"), ("remainder", "int32"), ("floor_divide", "int64"), ("pow", "float32"),
    ("hypot", "float64"), ("fmod", "float32"), ("logaddexp", "float64"), ("pow", "int32"),
])  # fmt: skip
def test_other_operations_can_be_made(name, dtype):
    assert "ret" in assembly(one(name, (dtype, (64,)), (dtype, (64,))))


@pytest.mark.parametrize("source", ["float16", "float32", "float64"])
@pytest.mark.parametrize("to", ["float16", "float32", "float64", "uint8", "int32", "uint32", "int64", "uint64"])
def test_conversions_can_be_made(source, to):
    if source != to and not (source == "float16" and not to.startswith("float")):
        assert "ret" in assembly(one("astype", (source, (64,)), dtype=np.dtype(to)))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", [name for name in KERNELS if name != "pairwise"])
def test_wider_registers(name, dtype):
    """SVE's, where they are wider than NEON's; but shuffles there are expensive. Rows of a few elements fit NEON's."""
    kernel = KERNELS[name]
    text = assembly(graph_of(kernel.numpy, *kernel.inputs(SHAPES.get(name, (1024, 1024)), np.dtype(dtype))), WIDE)
    if name == "transpose_add":
        assert not re.search(r"\bz\d", text), text
        return
    wide, narrow, scalar = (len(pattern.findall(text)) for pattern in (SCALABLE, VECTOR, SCALAR))
    assert wide > narrow and scalar <= wide // 4, (wide, narrow, scalar, text)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("machine", [MACHINE, WIDE], ids=["neon", "sve"])
@pytest.mark.parametrize("function", [
    lambda x: x.sum(axis=0), lambda x: np.cumsum(x, axis=1), lambda x: np.sort(x[:, :5], axis=1),
    lambda x: x < 1, lambda x: x.max(), lambda x: x[:, ::2] + 1, lambda x: x[:, ::-1] * 2,
    lambda x: np.where(x > 0, x, -x),
    lambda x: (x > 0).any(axis=1), lambda x: x.argmax(axis=1), lambda x: x.astype("int32").prod(axis=1),
    lambda x: np.isnan(x).sum(), lambda x: x.std(axis=1), lambda x: x[:, :3].sum(axis=1),
    lambda x: (x + 1j).conj() * 2,
], ids=[
    "column sums", "scan", "sort", "comparison", "maximum", "steps", "backwards", "choice", "any", "argmax", "products",
    "count", "deviation", "short rows", "complex",
])  # fmt: skip
def test_other_loops_can_be_made(function, machine, dtype):
    graph = graph_of(function, np.ones((64, 67), dtype))
    with fixed_machine(machine):
        compiled = llvm.CompiledGraph(graph, llvm._make(graph, False, USUAL), USUAL)
        compiled.settle()
    for kernel in compiled.kernels:
        assert "ret" in target.assembly_for(machine, kernel.ir)
