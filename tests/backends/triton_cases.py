"""Helpers of the triton backend's tests: run a graph in Triton's interpreter and in NumPy, and compare everything."""

from __future__ import annotations

import os
import zlib
from typing import Any

import numpy as np

from tcompile.backends.triton import CompiledGraph, compile_graph, cubins
from tcompile.config import config
from tests.backends.llvm_cases import check_beside, graph_of

CAPABILITIES = (80, 90, 100)
SHARE = 40  # of one case in so many kernels are machine code, too, for one of them
_counts: dict[str, int] = {}  # of cases, by test
# TCOMPILE_TEST_CUBINS=80,90,100: every kernel that is compared is compiled for these; this takes hours.
ALL_CUBINS = tuple(map(int, filter(None, os.environ.get("TCOMPILE_TEST_CUBINS", "").split(","))))


def on_interpreter(graph: Any) -> CompiledGraph:
    """The graph, compiled for Triton's interpreter."""
    with config.patch(triton_interpret=True):
        return compile_graph(graph)


def check(build: Any, *arrays: Any, ulp: float = 0, rtol: float = 0.0, kernels: int | None = None) -> CompiledGraph:
    """Compiles ``build`` and compares it with NumPy: it must replay exactly where NumPy warns."""
    graph = graph_of(build, *arrays)
    for node in graph.nodes:  # which are exact on the CPU
        if node.op == "cumulative_sum" and node.tensor.dtype.kind == "f":
            rtol = max(rtol, 1e-5 if node.tensor.dtype.itemsize == 4 else 1e-12)
    compiled = on_interpreter(graph)
    if ALL_CUBINS:
        compile_all(compiled, ALL_CUBINS)
    elif (place := _place_in_sample()) is not None:
        compile_all(compiled, CAPABILITIES[place : place + 1])
    if kernels is not None:
        assert len(compiled.kernels) == kernels, compiled.source
    # Powers of what is infinite are left to NumPy, whose loops do not agree on them.
    may_replay = any(node.op == "pow" for node in graph.nodes) and any(np.isinf(x).any() for x in arrays)
    check_beside(compiled, graph, *arrays, ulp=ulp, rtol=rtol, may_replay=may_replay)
    return compiled


def _place_in_sample() -> int | None:
    """For which GPUs this case is compiled in the ordinary test run; None for most, always the same ones."""
    test = os.environ.get("PYTEST_CURRENT_TEST", "").partition(" ")[0]
    _counts[test] = _counts.get(test, 0) + 1
    number = zlib.crc32(f"{test} {_counts[test]}".encode()) // 7  # other ones than llvm_cases takes
    return number // SHARE % len(CAPABILITIES) if number % SHARE == 0 else None


def compile_all(compiled: CompiledGraph, capabilities: tuple[int, ...] = CAPABILITIES, wide: bool = False) -> int:
    """Compiles every kernel to machine code; returns how many pieces of it there are."""
    made = 0
    for kernel in compiled.kernels:
        for function in kernel.functions:
            aligned = tuple(parameter.kind in ("array", "partial") for parameter in function.parameters)
            for capability in capabilities:
                code = cubins.compiled(function, capability, cubins.Variant(wide, aligned))
                assert code.code[:4] == b"\x7fELF" and code.name == function.name
                made += 1
    return made
