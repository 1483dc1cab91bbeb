"""Programs as CUDA graphs: all kernels of a call are started at once, which takes as long as starting one.

Enters: a program over arrays of a GPU's, and its schedule. Leaves: a program that does the same, and records itself as
a CUDA graph, by way of CuPy, for every set of sizes that it meets. Exists for many small kernels (the option
``triton.cudagraphs``), where starting them takes longer than running them.

A CUDA graph works on the addresses that it was recorded with. So it has arrays of its own, in a memory pool of its own:
arguments are copied into these, unless they are these, and results are copied out. What a call returns is therefore its
caller's: no later call writes over it. Programs for which that cannot be, or cannot pay, are not recorded, and an event
says why.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any

from tcompile.backends.schedule import Schedule
from tcompile.graph import Node, TensorType
from tcompile.graph.ops import OPS
from tcompile.observe import bus
from tcompile.observe.events import CudaGraphSkipped
from tcompile.records import dataclass

Program = Callable[..., tuple[Any, ...]]
MOST = 8  # sets of sizes that are recorded; each holds memory


def why_not(plan: Schedule) -> str | None:
    """Why a program is not recorded; None where it is."""
    graph = plan.graph
    if graph.device == "cpu":
        return "arrays of NumPy's are copied to the GPU and back at every call"
    if graph.updates:
        return "it writes to its arguments"
    other = next((step for step in plan.steps if step.kind not in ("kernel", "view")), None)
    if other is not None:
        return f"{other.node.name if other.node is not None else 'a step'} is no kernel"
    if not all(isinstance(node.type, TensorType) for node in graph.inputs):
        return "a Python number is among its inputs"
    if any(_shown(node) in graph.inputs or OPS[node.op].kind == "movement" for node in graph.outputs):
        return "a result is a view"
    if len(set(graph.outputs)) < len(graph.outputs):
        return "two results are one array"
    copies = len(graph.inputs) + len(graph.outputs)
    if len(plan.kernels) <= copies + 1:
        return f"starting {len(plan.kernels)} kernels takes no longer than copying {copies} arrays and starting a graph"
    return None


def _shown(node: Node) -> Node:
    while node.op != "input" and OPS[node.op].kind == "movement":
        node = node.inputs[0]
    return node


def recorded(program: Program, plan: Schedule, cupy: Callable[[], Any]) -> Program:
    """The program as CUDA graphs, or as it is, where an event says why. ``cupy`` gives CuPy."""
    reason = why_not(plan)
    if reason is None:
        return Recorder(program, plan.graph.name, cupy())
    _tell(plan.graph.name, reason)
    return program


def _tell(name: str, reason: str) -> None:
    if bus.active():
        bus.emit(CudaGraphSkipped(graph=name, reason=reason))


@dataclass(eq=False)
class Recording:
    """A CUDA graph, the arrays that it reads and writes, and the pool in which they lie."""

    graph: Any
    inputs: Sequence[Any]
    outputs: Sequence[Any]
    pool: Any


class Recorder:
    """A program that records itself."""

    def __init__(self, program: Program, name: str, cupy: Any) -> None:
        self.program = program
        self.name = name
        self.cupy = cupy
        self.recordings: dict[Any, Recording] = {}
        self._lock = threading.Lock()
        self._stream: Any = None  # on which the last recording was launched
        self._given_up = False

    def __call__(self, *inputs: Any) -> tuple[Any, ...]:
        """Runs the program."""
        key = tuple((x.shape, x.strides) for x in inputs)
        with self._lock:  # a recording's arrays are one call's at a time
            found = self.recordings.get(key)
            if found is None and not self._given_up:
                found = self._record(key, inputs)
            if found is not None:
                return self._replay(found, inputs)
        return self.program(*inputs)

    def _record(self, key: Any, inputs: Sequence[Any]) -> Recording | None:
        if len(self.recordings) == MOST:
            return self._give_up(f"it is called with more than {MOST} sets of sizes")
        cuda = self.cupy.cuda
        pool, stream = cuda.MemoryPool(), cuda.Stream(non_blocking=True)
        cuda.get_current_stream().synchronize()  # what the arguments are waiting for
        try:
            with stream, cuda.using_allocator(pool.malloc):
                own = [x.copy(order="K") for x in inputs]
                self.program(*own)  # machine code is loaded, and the pool is filled
                stream.begin_capture()
                try:
                    outputs = self.program(*own)
                finally:
                    graph = stream.end_capture()
            stream.synchronize()
        except cuda.memory.OutOfMemoryError:
            raise
        except Exception as error:  # CUDA refuses to record, or CuPy to wait for what is recorded
            return self._give_up(f"{type(error).__name__}: {error}")
        if any(x.strides != mine.strides for x, mine in zip(inputs, own, strict=True)):
            return self._give_up("an argument has gaps in memory")
        made = self.recordings[key] = Recording(graph, own, outputs, pool)
        return made

    def _give_up(self, reason: str) -> Recording | None:
        self._given_up = True
        _tell(self.name, reason)
        return None

    def _replay(self, found: Recording, inputs: Sequence[Any]) -> tuple[Any, ...]:
        stream = self.cupy.cuda.get_current_stream()
        if self._stream is not None and stream != self._stream:
            self._stream.synchronize()  # the arrays are still in use there
        self._stream = stream
        for own, given in zip(found.inputs, inputs, strict=True):
            if given.data.ptr != own.data.ptr:
                own[...] = given
        found.graph.launch()
        return tuple(x.copy(order="K") for x in found.outputs)


__all__ = ["MOST", "Recorder", "recorded", "why_not"]
