"""Helpers of the triton backend's tests: run a graph in Triton's interpreter and in NumPy, and compare everything."""

from __future__ import annotations

import os
import warnings
from typing import Any

import numpy as np

from tcompile.backends.replay import Replay
from tcompile.backends.triton import CompiledGraph, compile_graph, cubins
from tcompile.config import config
from tests.backends.llvm_cases import graph_of, same

CAPABILITIES = (80, 90, 100)
# TCOMPILE_TEST_CUBINS=80,90,100: every kernel that is compared is compiled for these, too; this takes hours.
ALL_CUBINS = tuple(map(int, filter(None, os.environ.get("TCOMPILE_TEST_CUBINS", "").split(","))))


def on_interpreter(graph: Any) -> CompiledGraph:
    """The graph, compiled for Triton's interpreter."""
    with config.patch(triton_interpret=True):
        return compile_graph(graph)


def check(build: Any, *arrays: Any, ulp: float = 0, rtol: float = 0.0, kernels: int | None = None) -> CompiledGraph:
    """Compiles ``build`` and compares it with NumPy: it must replay exactly where NumPy warns."""
    graph = graph_of(build, *arrays)
    compiled = on_interpreter(graph)
    if ALL_CUBINS:
        compile_all(compiled, ALL_CUBINS)
    if kernels is not None:
        assert len(compiled.kernels) == kernels, compiled.source
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        expected = graph(*arrays)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            got = compiled(*arrays)
        except Replay:
            got = None
    if caught:
        assert got is None, f"NumPy warned ({caught[0].message}), the kernels did not notice"
        with np.errstate(all="ignore"):
            try:
                got = compiled(*arrays)
            except Replay:
                return compiled
    assert got is not None, "a replay for nothing"
    assert len(got) == len(expected)
    for a, b in zip(got, expected, strict=True):
        same(a, b, ulp, rtol)
    return compiled


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
