"""Programs as CUDA graphs: all kernels of a call are started at once, in less host time than one launch.

Input: a program over GPU arrays, and its schedule.
Output: a program that does the same, and keeps its launches as a CUDA graph for every set of sizes.
Why: small kernels run for less time than their launches take (the option ``triton.cudagraphs``).

Kernels of a CUDA graph have fixed addresses. So the program is run once without starting anything, to record its
launches and their arrays. Before a graph is started, the kernels that read arguments or write results get the addresses
of this call. Nothing is copied, and results belong to the caller, as without graphs: no later call overwrites them.
Programs that cannot be recorded run as they are, and an event says why.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from tcompile.backends.schedule import Schedule
from tcompile.backends.triton import driver
from tcompile.backends.triton.launches import GpuLaunch, noted
from tcompile.graph import Node, TensorType, ops
from tcompile.graph.overlap import is_view
from tcompile.observe import bus
from tcompile.observe.events import CudaGraphSkipped
from tcompile.records import dataclass

if TYPE_CHECKING:
    from tcompile.backends.triton.cuda import Cuda

Runnable = Callable[..., tuple[Any, ...]]
MOST = 8  # sets of sizes that are recorded; each holds memory


def why_not(plan: Schedule) -> str | None:
    """The reason why a program is not recorded; None where it is."""
    graph = plan.graph
    if graph.device == "cpu":
        return "arrays of NumPy's are copied to the GPU and back at every call"
    if graph.updates:
        return "it writes to its arguments"
    other = next((step for step in plan.steps if step.kind not in ("kernel", "view")), None)
    if other is not None:
        return f"{other.node.name if other.node is not None else 'a step'} is no kernel"
    if any("copy" in step.onto.values() for step in plan.steps):
        return "it writes to a copy"
    if any(node is not None and _may_copy(node) for node in (step.node for step in plan.steps if step.kind == "view")):
        return "an array is reshaped that does not lie in C order"
    if not plan.kernels:
        return "it has no kernels"
    if not all(isinstance(node.type, TensorType) for node in graph.inputs):
        return "a Python number is among its inputs"
    if any(is_view(node) or node in graph.inputs for node in graph.outputs):
        return "a result is a view"
    if len(set(graph.outputs)) < len(graph.outputs):
        return "two results are one array"
    return None


def _may_copy(node: Node) -> bool:
    return node.op is ops.RESHAPE and not node.inputs[0].tensor.c_contiguous


class _Notes:
    """The launches of a program, with the memory they use: no array is held, so that temporaries reuse memory."""

    def __init__(self, cuda: Any, inputs: Sequence[Any]) -> None:
        self._cuda = cuda
        self._acquired = 0
        self.pool = cuda.MemoryPool(self._acquire)
        self.launches: list[GpuLaunch] = []
        self.seen: list[list[tuple[int, int, int]]] = []  # by launch: words, owner of the memory, and the offset in it
        self.owners = {x.data.mem.ptr: number for number, x in enumerate(inputs)}  # by address, the latest
        self._count = len(inputs)

    def _acquire(self, nbytes: int) -> Any:
        """Allocates memory for the pool."""
        made = self._cuda.MemoryPointer(self._cuda.Memory(nbytes), 0)
        self._acquired += nbytes
        return made

    @property
    def is_whole(self) -> bool:
        """Whether the pool never freed memory: where CUDA has no more, it frees what is unused just then."""
        return bool(self.pool.total_bytes() == self._acquired)

    def malloc(self, nbytes: int) -> Any:
        """Allocates memory, and numbers it."""
        made = self.pool.malloc(nbytes)
        self.owners[made.mem.ptr] = self._count = self._count + 1
        return made

    def take(self, launch: GpuLaunch) -> None:
        """Records a launch."""
        seen, arguments = [], []
        for word, argument in enumerate(launch.arguments):
            whole = getattr(getattr(argument, "data", None), "mem", None)
            if whole is None:  # a number
                arguments.append(int(argument))
                continue
            address = argument.data.ptr
            arguments.append(address)
            if whole.ptr in self.owners:
                seen.append((word, self.owners[whole.ptr], address - whole.ptr))
        self.launches.append(GpuLaunch(launch.handle, launch.grid, launch.block, launch.shared, tuple(arguments)))
        self.seen.append(seen)

    def places(self, arrays: Sequence[Any]) -> list[tuple[int, list[tuple[int, int, int]]]]:
        """For each launch that uses any of the arrays: words, the array, and the offset from its first element."""
        known = {self.owners[x.data.mem.ptr]: (number, x.data.ptr - x.data.mem.ptr) for number, x in enumerate(arrays)}
        found = []
        for launch, seen in enumerate(self.seen):
            places = [(word, known[owner][0], at - known[owner][1]) for word, owner, at in seen if owner in known]
            if places:
                found.append((launch, places))
        return found


def recorded(program: Runnable, plan: Schedule, device: Callable[[str], Cuda]) -> Runnable:
    """The program as CUDA graphs, or as it is, where an event says why. ``device`` gives the GPU of a name."""
    reason = why_not(plan)
    if reason is None:
        return Recorder(program, plan, device(plan.graph.device))
    _tell_skipped(plan.graph.name, reason)
    return program


def _tell_skipped(name: str, reason: str) -> None:
    if bus.active():
        bus.emit(CudaGraphSkipped(graph=name, reason=reason))


@dataclass(eq=False)
class Recording:
    """A CUDA graph for arguments of some sizes.

    ``places`` has for each launch that uses arguments or results the words that hold an address in them, and the offset
    from the first element; ``addresses`` are those of the arguments and results that it uses now. ``held`` is its
    memory for temporary arrays, the words of status bits, and its counters.
    """

    graph: Any
    places: list[tuple[int, list[tuple[int, int, int]]]]
    held: Any
    addresses: tuple[int, ...] = ()

    def see(self, addresses: tuple[int, ...]) -> None:
        """Sets the addresses of arguments and results."""
        self.addresses = ()  # until all of them are set
        for launch, places in self.places:
            words = self.graph.words[launch]
            for word, array, distance in places:
                words[word] = addresses[array] + distance
            self.graph.change(launch)
        self.addresses = addresses


class Recorder:
    """A program that is recorded. Raises the errors of the program."""

    def __init__(self, program: Runnable, plan: Schedule, device: Cuda) -> None:
        self.program = program
        self.name = plan.graph.name
        self.device = device
        self.recordings: dict[Any, Runnable] = {}
        inputs = [node.tensor for node in plan.graph.inputs]
        self._fixed = not plan.graph.symbol_inputs() and all(type.layout.dense for type in inputs)
        self._only: Runnable | None = None  # where sizes are fixed: the runner of the one recording
        self._lock = threading.Lock()
        self._given_up = False

    def __call__(self, *inputs: Any) -> tuple[Any, ...]:
        """Runs the program."""
        only = self._only
        if only is not None:
            return only(*inputs)
        key = None if self._fixed else tuple((x.shape, x.strides) for x in inputs)
        with self._lock:
            found = self.recordings.get(key)
            if found is None and not self._given_up and not any(x.data.ptr & 15 for x in inputs):
                found = self._record(key, inputs)
        if found is None:
            return self.program(*inputs)
        if self._fixed:
            self._only = found
        return found(*inputs)

    def _written(self, recording: Recording, count: int, outputs: Sequence[Any]) -> Runnable:
        """Generates the Python function that runs a recording.

        Where arguments are not aligned, the original program runs: recorded kernels use vector loads. The words of a
        recording belong to one call at a time.
        """
        given = [f"a{i}" for i in range(count)]
        made = [f"r{i}" for i in range(len(outputs))]
        known: dict[str, Any] = {
            "program": self.program, "recording": recording, "graph": recording.graph, "lock": threading.Lock(),
            "new": self.device.cupy.ndarray, "empty": self.device.empty,
        }  # fmt: skip
        lines = [f"def run({', '.join(given)}):"]
        lines += [f"    p{i} = {name}.data.ptr" for i, name in enumerate(given)]
        lines += [f"    if ({' | '.join(f'p{i}' for i in range(count))}) & 15:"]
        lines += [f"        return program({', '.join(given)})"]
        for name, x in zip(made, outputs, strict=True):
            known[f"{name}_dtype"] = x.dtype
            order = None if x._c_contiguous else tuple(sorted(range(x.ndim), key=lambda axis: -x.strides[axis]))
            text = f"new({x.shape}, {name}_dtype)" if order is None else f"empty({x.shape}, {name}_dtype, {order})"
            lines.append(f"    {name} = {text}")
        seen = ", ".join([*(f"p{i}" for i in range(count)), *(f"{name}.data.ptr" for name in made)])
        lines += [
            f"    addresses = ({seen},)",
            "    with lock:",
            "        if addresses != recording.addresses:",
            "            recording.see(addresses)",
            "        graph.start()",
            f"    return ({', '.join(made)},)",
        ]
        exec(compile("\n".join(lines), f"<tcompile recording of {self.name}>", "exec"), known)
        run: Runnable = known["run"]
        return run

    def _record(self, key: Any, inputs: Sequence[Any]) -> Runnable | None:
        if len(self.recordings) == MOST:
            self._give_up(f"it is called with more than {MOST} sets of sizes")
            return None
        cuda = self.device.cupy.cuda
        own = [self._like(x) for x in inputs]  # distinct memory, which arguments need not have
        notes = _Notes(cuda, own)
        with noted(notes.take), cuda.using_allocator(notes.malloc), self.device.lent() as counters:
            outputs = self.program(*own)
        if not notes.is_whole:
            self._give_up("the GPU has not enough memory for it")
            return None
        try:
            graph = driver.LaunchGraph(cuda, notes.launches)
        except (RuntimeError, OSError, AttributeError) as error:
            self._give_up(f"{type(error).__name__}: {error}")
            return None
        recording = Recording(graph, notes.places([*own, *outputs]), (notes.pool, self.device.words, counters))
        made = self.recordings[key] = self._written(recording, len(inputs), outputs)
        return made

    def _like(self, x: Any) -> Any:
        """An array of the same shape and strides in memory of its own, which is never read."""
        low = sum((n - 1) * s for n, s in zip(x.shape, x.strides, strict=True) if s < 0 and x.size)
        high = sum((n - 1) * s for n, s in zip(x.shape, x.strides, strict=True) if s > 0 and x.size)
        before = -(low // 16) * 16  # the memory before the first element, which keeps that aligned
        memory = self.device.cupy.cuda.alloc(before + high + x.itemsize)
        return self.device.cupy.ndarray(x.shape, x.dtype, memory + before, x.strides)

    def _give_up(self, reason: str) -> None:
        self._given_up = True
        _tell_skipped(self.name, reason)


__all__ = ["MOST", "Recorder", "recorded", "why_not"]
