"""Helpers of the triton backend's tests.

Input: a builder of a graph, and arrays.
Output: an assertion that the graph in Triton's interpreter gives what NumPy gives.
Why: every test of a kernel compares in the same way.
"""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from tcompile.backends.triton import CompiledGraph, compile_graph, cubins
from tcompile.config import config
from tests.backends.llvm_cases import check_beside, graph_of

CAPABILITIES = (80, 90, 100)


def on_interpreter(graph: Any) -> CompiledGraph:
    """The graph, compiled for Triton's interpreter; for a real GPU with ``TCOMPILE_TEST_TRITON=gpu``."""
    with config.patch(triton_interpret=os.environ.get("TCOMPILE_TEST_TRITON") != "gpu"):
        return compile_graph(graph)


def check(build: Any, *arrays: Any, ulp: float = 0, rtol: float = 0.0, kernels: int | None = None) -> CompiledGraph:
    """Compiles ``build`` and compares it with NumPy: it must replay exactly where NumPy warns."""
    graph = graph_of(build, *arrays)
    for node in graph.nodes:  # which are exact on the CPU
        if node.op.name == "cumulative_sum" and node.tensor.dtype.kind == "f":
            rtol = max(rtol, 1e-5 if node.tensor.dtype.itemsize == 4 else 1e-12)
    compiled = on_interpreter(graph)
    if kernels is not None:
        assert len(compiled.kernels) == kernels, compiled.source
    # Powers of what is infinite are left to NumPy, whose loops do not agree on them.
    may_replay = any(node.op.name == "pow" for node in graph.nodes) and any(np.isinf(x).any() for x in arrays)
    check_beside(compiled, graph, *arrays, ulp=ulp, rtol=rtol, may_replay=may_replay)
    return compiled


def compile_all(compiled: CompiledGraph, capabilities: tuple[int, ...] = CAPABILITIES, wide: bool = False) -> int:
    """Compiles every kernel to machine code; returns how many pieces of it there are."""
    functions = [function for kernel in compiled.kernels for function in kernel.functions]
    for function in functions:
        compile_function(function, capabilities, wide)
    return len(functions) * len(capabilities)


def compile_function(function: Any, capabilities: tuple[int, ...] = CAPABILITIES, wide: bool = False) -> None:
    """Compiles one function of a kernel to machine code."""
    aligned = tuple(parameter.is_array for parameter in function.parameters)
    for capability in capabilities:
        code = cubins.compiled(function, capability, cubins.ArgumentFacts(wide, aligned))
        assert code.code[:4] == b"\x7fELF" and code.name == function.name
