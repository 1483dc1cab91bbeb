"""CUDA graphs of launches with mutable arguments: the part of CUDA's driver that CuPy does not wrap.

Input: launches, one after the other.
Output: a ``LaunchGraph``, started as a whole.
Why: tests replace this module where there is no driver.
"""

from __future__ import annotations

import ctypes
import functools
import sys
from collections.abc import Sequence
from typing import Any

from tcompile.backends.triton.launches import GpuLaunch


class _Node(ctypes.Structure):
    """CUDA_KERNEL_NODE_PARAMS_v2 of cuda.h."""

    _fields_ = (
        ("function", ctypes.c_void_p), ("grid", ctypes.c_uint * 3), ("block", ctypes.c_uint * 3),
        ("shared", ctypes.c_uint), ("arguments", ctypes.c_void_p), ("extra", ctypes.c_void_p),
        ("kernel", ctypes.c_void_p), ("context", ctypes.c_void_p),
    )  # fmt: skip


@functools.cache
def _driver() -> Any:
    """CUDA's driver. Raises OSError where there is none, AttributeError where it is older than CUDA 12."""
    library = ctypes.CDLL("nvcuda.dll" if sys.platform == "win32" else "libcuda.so.1")
    word, node = ctypes.c_void_p, ctypes.POINTER(_Node)
    library.cuGraphCreate.argtypes = (ctypes.POINTER(word), ctypes.c_uint)
    library.cuGraphAddKernelNode_v2.argtypes = (
        ctypes.POINTER(word), word, ctypes.POINTER(word), ctypes.c_size_t, node
    )  # fmt: skip
    library.cuGraphExecKernelNodeSetParams_v2.argtypes = (word, word, node)
    return library


def _check(result: int, what: str) -> None:
    if result:
        raise RuntimeError(f"{what} of CUDA's driver gave error {result}")


class LaunchGraph:
    """A CUDA graph that runs launches one after the other.

    ``cuda`` is the module ``cupy.cuda``; the launches' arguments are numbers and addresses. Raises RuntimeError where
    the driver refuses, OSError or AttributeError where it is missing or too old.
    """

    def __init__(self, cuda: Any, launches: Sequence[GpuLaunch]) -> None:
        self._graph = self._started = 0
        self._runtime, self._launch, self._stream = cuda.runtime, cuda.runtime.graphLaunch, cuda.get_current_stream
        self._launches = launches  # keeps their functions loaded
        self._change = _driver().cuGraphExecKernelNodeSetParams_v2
        graph, before = ctypes.c_void_p(), ctypes.c_void_p()
        _check(_driver().cuGraphCreate(ctypes.byref(graph), 0), "cuGraphCreate")
        self._graph = graph.value or 0
        self.words: list[Any] = []  # by launch: its arguments, each in a word of 64 bits
        self._nodes: list[tuple[int, _Node, Any]] = []
        for launch in launches:
            count = len(launch.arguments)
            words = (ctypes.c_uint64 * count)(*(word & (1 << 64) - 1 for word in launch.arguments))
            places = (ctypes.c_void_p * count)(*(ctypes.addressof(words) + 8 * i for i in range(count)))
            about = _Node(
                launch.handle.ptr, launch.grid, launch.block, launch.shared, ctypes.addressof(places), None, None, None
            )  # fmt: skip
            node = ctypes.c_void_p()
            _check(
                _driver().cuGraphAddKernelNode_v2(
                    ctypes.byref(node), graph, ctypes.byref(before), len(self._nodes) > 0, ctypes.byref(about)
                ), "cuGraphAddKernelNode",
            )  # fmt: skip
            self.words.append(words)
            self._nodes.append((node.value or 0, about, (places, ctypes.byref(about))))
            before = node
        self._started = self._runtime.graphInstantiate(self._graph)

    def change(self, number: int) -> None:
        """Updates the arguments of the launch of this number from ``words``."""
        node, _, (_, about) = self._nodes[number]
        _check(self._change(self._started, node, about), "cuGraphExecKernelNodeSetParams")

    def start(self) -> None:
        """Starts the graph on CuPy's current stream, after its earlier starts."""
        self._launch(self._started, self._stream().ptr)

    def __del__(self) -> None:
        try:
            if self._started:
                self._runtime.graphExecDestroy(self._started)
            if self._graph:
                self._runtime.graphDestroy(self._graph)
        except Exception:  # the process ends, or the context is dead
            pass


__all__ = ["LaunchGraph"]
