"""The fusing GPU backend: from a graph to Triton kernels, by the same schedule as the llvm backend.

Input: a ``Graph``.
Output: a callable that takes the graph's inputs and returns the tuple of its outputs.
Why: the same fused kernels run on NVIDIA's GPUs.

The schedule (``backends.schedule``) forms kernels, ``kernels`` writes each as a Triton function, ``cubins`` compiles it
for a GPU or ``interpreter`` runs it without one, and ``host`` writes the program around the kernels.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

from tcompile.backends import compiled
from tcompile.backends.schedule import Kernel, Schedule, scatters, schedule
from tcompile.backends.schedule.admission import admits
from tcompile.backends.schedule.complex_and_half import PARTS
from tcompile.backends.schedule.kernel_ops import LOAD, NUMBER
from tcompile.backends.schedule.lower import ANYWHERE_IN
from tcompile.backends.schedule.plan import Step
from tcompile.backends.triton import cubins, host, kernels, products, scans, tuning
from tcompile.backends.triton.configs import RESIDENT, USUAL, TilingConfig
from tcompile.backends.triton.cuda import on
from tcompile.backends.triton.cudagraphs import recorded
from tcompile.backends.triton.devices import Device, device
from tcompile.backends.triton.dots import Axes, axes_of
from tcompile.backends.triton.pointwise import FLOATS, INTEGERS, STORES, has_operation
from tcompile.backends.triton.small_reductions import NUMPYS_ORDER
from tcompile.backends.triton.text import TritonFunction
from tcompile.errors import BackendError
from tcompile.graph import Graph, Node, ops
from tcompile.graph.dtypes import DType
from tcompile.graph.op import Op
from tcompile.graph.ops.gathering import IN_PLACE
from tcompile.records import dataclass


@dataclass(frozen=True)
class CompiledKernel(compiled.CompiledKernel):
    """A kernel, and its functions."""

    language = "Triton"

    functions: tuple[TritonFunction, ...]

    __repr__ = compiled.CompiledKernel.__repr__  # a record would write its own

    @property
    def ir(self) -> str:
        """The source of its Triton functions."""
        return "\n\n".join(function.text for function in self.functions)

    def assembly(self, capability: int = 90) -> str:
        """Its functions as PTX for GPUs of this compute capability, generated on demand. Raises BackendError without
        Triton.
        """
        known = cubins.ArgumentFacts(False, ())
        return "\n".join(cubins.assembly(function, capability, known) for function in self.functions)

    def listings(self) -> tuple[str, str]:
        """The source and the PTX; without Triton, the reason why there is no PTX."""
        try:
            return super().listings()
        except BackendError as error:
            return self.ir, str(error)


class CompiledGraph(compiled.CompiledGraph[CompiledKernel]):
    """A compiled graph. ``on_device`` is its program without copies at the end: it takes and returns arrays of the
    device.
    """

    def __init__(
        self,
        program: Callable[..., tuple[Any, ...]],
        on_device: Callable[..., tuple[Any, ...]],
        source: str,
        kernels: list[CompiledKernel],
        plan: Schedule,
        regions: dict[Graph, Any],
    ) -> None:
        super().__init__(program, source, kernels, plan, regions)
        self.on_device = on_device


def compile_graph(
    graph: Graph,
    example_inputs: Sequence[Any] | None = None,
    *,
    cudagraphs: bool = False,
    tuned: frozenset[str] = frozenset(),
) -> CompiledGraph:
    """Compiles ``graph`` for the current device (``devices``).

    The result takes the graph's inputs by position, arrays of exactly the graph's types, and returns a tuple of arrays:
    CuPy's where the inputs are on a GPU, else NumPy's. CuPy reports no floating-point errors; nor do kernels for it.
    ``cudagraphs``: kernels of a call are started as one CUDA graph, where possible (``backends.triton.cudagraphs``).
    ``tuned``: properties that are timed on ``example_inputs`` (``backends.triton.tuning.TRIED``). It raises ``Replay``
    where only plain Python can go on. Raises BackendError where there is no device, or no Triton.
    """
    where, resident = device(graph.device), graph.device != "cpu"
    usual = config = RESIDENT if resident else USUAL
    made = _make(graph, where, usual)
    if tuned and example_inputs is not None:
        functions = [function for _, written, _ in made.kernels for function in written]

        def program(config: TilingConfig) -> Callable[..., Any]:
            return where.around(_make(graph, where, config).program, resident)

        config = tuning.best(graph, example_inputs, usual, tuned, made.schedule, functions, where, program)
        made = made if config == usual else _make(graph, where, config)
    reported = [_report(graph, kernel, written, config, config != usual, ms) for kernel, written, ms in made.kernels]
    run = recorded(made.program, made.schedule, on) if cudagraphs else made.program
    around = where.around(run, resident)
    return CompiledGraph(around, made.program, made.source, reported, made.schedule, made.regions)


@dataclass
class _Made:
    """A graph's kernels, each with its functions and the time to write them, and the program around them."""

    schedule: Schedule
    kernels: list[tuple[Kernel, list[TritonFunction], float]]
    source: str
    program: Callable[..., tuple[Any, ...]]
    regions: dict[Graph, Any]


def _make(graph: Graph, where: Device, config: TilingConfig) -> _Made:
    plan, dots = _planned(graph, config)
    names = cubins.library_names()
    functions: dict[Step, list[tuple[TritonFunction, Callable[..., Any]]]] = {}
    made: list[tuple[Kernel, list[TritonFunction], float]] = []
    for step in plan.steps:
        if step.kernel is not None:
            started = time.perf_counter()
            written = kernels.write(step.kernel, graph.device == "cpu", names, config, dots.get(step.kernel))
            functions[step] = [(function, where.launcher(function)) for function in written]
            made.append((step.kernel, written, (time.perf_counter() - started) * 1e3))
    program = host.TritonProgram(plan, compile_graph, functions=functions, device=where)
    source, run = program.build()
    return _Made(plan, made, source, run, program.regions)


def _planned(graph: Graph, config: TilingConfig) -> tuple[Schedule, dict[Kernel, Axes]]:
    """The schedule, and the axes of those of its kernels that multiply matrices.

    A schedule that would store the terms of a product, or sum them in another kernel, leaves that product to the
    library.
    """
    graph = products.padded(graph) if config.padded else graph
    if config.tile is None:
        return schedule(graph, supports), {}
    refused: frozenset[str] = frozenset()
    while True:
        made = products.expanded(graph, refused)
        plan, terms = schedule(made.graph, supports), frozenset(made.terms)
        dots = {kernel: axes for kernel in plan.kernels if (axes := axes_of(kernel, terms)) is not None}
        stored = {node for step in plan.steps for node in step.writes}
        fit = {value.node for kernel in dots for value in kernel.values} - stored
        unfit = frozenset(made.terms[term].name for term in terms - fit)
        if not unfit:
            for kernel in dots:
                kernel.form = "dots"
            return plan, dots
        refused |= unfit


def supports(node: Node) -> bool:
    """Whether kernels can compute this pointwise, creation or reduction node, this scan, or this scatter."""
    if node.op in IN_PLACE:
        return _admits_scatter(node)
    if node.op in ANYWHERE_IN and node.tensor.dtype in PARTS:
        return False
    if node.op is ops.PROD and not _admits_product(node):
        return False
    return admits(node, _has_operation) and (node.op.fusion != "scan" or scans.admits(node))


def _admits_product(node: Node) -> bool:
    """Admits small float products that a thread computes in NumPy's order, where NumPy would report errors: in another
    order a partial sum may overflow unseen.
    """
    x, axes = node.inputs[0].tensor, node.attrs["axis"]
    if x.dtype.kind not in "fc" or node.device != "cpu" or not axes:
        return True
    (row, *others), rows = [x.shape[axis] for axis in axes], [n for i, n in enumerate(x.shape) if i not in axes]
    return isinstance(row, int) and row < NUMPYS_ORDER and not others and any(n != 1 for n in rows)


def _admits_scatter(node: Node) -> bool:
    """Admits scatters whose order is free, or CuPy's, which promises none; the GPU combines elements in memory."""
    dtype, how, of_cupy = node.tensor.dtype, node.attrs.get("ufunc"), node.device != "cpu"
    if dtype in PARTS or not scatters.admits(node, STORES.keys()) or not (of_cupy or scatters.is_in_any_order(node)):
        return False
    return how is None or dtype.name in (INTEGERS | FLOATS if of_cupy and how == "add" else INTEGERS)


def _has_operation(op: Op, dtype: DType) -> bool:
    return op.fusion == "scan" or has_operation(op, dtype)


def _report(
    graph: Graph, kernel: Kernel, functions: list[TritonFunction], config: TilingConfig, is_tuned: bool, ms: float
) -> CompiledKernel:
    found = {v.node: None for v in kernel.values if v.node is not None and v.op not in (LOAD, NUMBER)}
    computed = tuple(found)
    lines = tuple(dict.fromkeys(n.location for n in computed if n.location is not None))
    summary = f"{kernel.describe()}; tuned: {config.text()}" if is_tuned else kernel.describe()
    made = CompiledKernel(kernel.name, kernel.nodes, computed, lines, summary, tuple(functions))
    made.report_compiled(graph, ms)
    return made
