"""The fusing CPU backend: a graph becomes machine code.

Enters: a ``Graph``. Leaves: a callable that takes the graph's inputs and returns the tuple of its outputs. In
between: the schedule (``backends.schedule``) decides what runs together, ``nests`` writes each kernel as LLVM
IR with explicit vectors, ``native`` makes it code, and ``host`` writes the Python program around the kernels.
"""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from tcompile.backends.llvm import host, native, nests, pointwise, reductions
from tcompile.backends.llvm.choice import left_to_numpy
from tcompile.backends.llvm.exactness import is_exact
from tcompile.backends.llvm.text import SUPPORTED, Module, cells
from tcompile.backends.llvm.vectors import FLOAT16
from tcompile.backends.schedule import Kernel, Schedule, Store, inverses, products, schedule
from tcompile.backends.schedule.plan import Step
from tcompile.graph import Graph, Location, Node, SymInt, TensorType
from tcompile.graph.ops import OPS
from tcompile.graph.sizes import hint
from tcompile.graph.verify import user_line
from tcompile.observe import bus
from tcompile.observe.events import KernelCompiled, Lazy

NONTEMPORAL_BYTES = 32 << 20  # outputs this large leave the caches anyway, so they are written past them
NEVER_READ_BYTES = 1 << 20  # and what is hardly ever read at all should not even enter


@dataclass(frozen=True)
class CompiledKernel:
    """One kernel as reports show it. ``nodes`` are its results, ``computed`` all that it computes.

    ``lines`` are the user's lines it came from.
    ``functions`` are the names of its parts in the code, which the kernels of a graph share.
    """

    name: str
    nodes: tuple[Node, ...]
    computed: tuple[Node, ...]
    lines: tuple[Location, ...]
    description: str
    functions: tuple[str, ...]
    code: native.Code

    @property
    def ir(self) -> str:
        """The LLVM IR that was compiled (of all kernels of the graph, which share one module)."""
        return self.code.ir

    def assembly(self) -> str:
        """The machine code as assembly text, made anew."""
        return self.code.assembly()

    def view(self) -> Any:
        """The data of its display: a ``tcompile.observe.display.kernels.KernelView``."""
        from tcompile.backends.llvm.listings import assembly_of, ir_of
        from tcompile.graph.look import node_views
        from tcompile.observe.display.kernels import KernelView

        return KernelView(
            name=self.name, description=self.description, nodes=node_views(self.computed),
            ir=ir_of(self.ir, self.functions), assembly=assembly_of(self.assembly(), self.functions),
        )  # fmt: skip

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, Any]:
        made: dict[str, Any] = self.view().bundle()
        return made

    def __repr__(self) -> str:
        return f"<kernel {self.name}: {self.description}>"


class CompiledGraph:
    """A compiled graph: call it with the graph's inputs.

    ``source`` is the host program's text, ``kernels`` the compiled kernels, those of ``parts``, its regions, last,
    ``recipe`` the same without Python, where kernels are all there is.
    """

    def __init__(
        self, program: Callable[..., tuple[Any, ...]], source: str, kernels: list[CompiledKernel], plan: Schedule,
        host: host.Program, recipe: host.Recipe | None = None,
    ) -> None:  # fmt: skip
        self.host = host
        self.program = program
        self.recipe = recipe
        self.source = source
        program.__dict__["code"] = [kernel.code for kernel in kernels]  # the program holds bare addresses
        self.parts: dict[Graph, CompiledGraph] = {
            region: made for region, made in host.regions.items() if isinstance(made, CompiledGraph)
        }
        self._own = kernels
        self.kernels: list[CompiledKernel] = [*kernels, *(k for part in self.parts.values() for k in part.kernels)]
        self.schedule = plan

    def __call__(self, *inputs: Any) -> tuple[Any, ...]:
        """Runs the graph."""
        return self.program(*inputs)

    def groups(self) -> dict[Graph, dict[str, tuple[str, ...]]]:
        """By graph, this one and those of its regions, and by kernel, the names of the nodes that it computes."""
        found = {
            self.schedule.graph: {kernel.name: tuple(node.name for node in kernel.computed) for kernel in self._own}
        }
        for region, part in self.parts.items():
            inner = part.groups()
            found |= inner | {region: inner[part.schedule.graph]}
        return found


def compile_graph(
    graph: Graph, example_inputs: Sequence[object] | None = None, *, exact: bool = False
) -> CompiledGraph:
    """Compiles ``graph``. ``example_inputs`` are not needed: the graph's types say everything.

    The result takes the graph's inputs by position, arrays of exactly the graph's types, and returns a tuple
    of arrays (rank-0 results may be arrays or NumPy scalars). ``exact`` leaves to NumPy whatever kernels may
    compute with other last bits. The result raises ``Replay`` where only plain Python
    can go on. Raises BackendError where the machine has no native code or LLVM refuses.

    >>> import numpy as np
    >>> from tcompile.graph import TensorType
    >>> from tcompile.graph.ops import apply
    >>> g = Graph("example")
    >>> x = g.input("x", TensorType(np.dtype("float32"), (3,)))
    >>> g.outputs = [apply(g, "multiply", apply(g, "add", x, 1.0), 2.0)]
    >>> compile_graph(g)(np.arange(3, dtype="float32"))
    (array([2., 4., 6.], dtype=float32),)
    """
    able = _supports_exactly if exact else supports
    left = left_to_numpy(graph, able)
    plan = schedule(graph, lambda node: node not in left and able(node))
    started = time.perf_counter()
    module = Module()
    written: list[tuple[Step, nests.Code]] = []
    for step in plan.steps:
        if step.kernel is not None:
            stores = _past_the_cache(plan, step.kernel)
            written.append((step, nests.write(module, step.kernel, native.has_symbol, stores)))
    codes: dict[Step, tuple[nests.Code, dict[str, int]]] = {}
    kernels: list[CompiledKernel] = []
    if written:
        text = f"{native.flags_ir()}\n{module.text()}\n!0 = !{{i32 1}}\n"
        exports = [function.name for _, code in written for function in code.functions]
        loaded = native.load(text, exports)
        ms = (time.perf_counter() - started) * 1e3 / len(written)
        for step, code in written:
            codes[step] = code, {f.name: loaded[f.name] for f in code.functions}
            kernels.append(_report(graph, code, loaded, ms))
    regions = functools.partial(compile_graph, exact=exact)
    written_host = host.Program(plan, codes, regions)
    source, program = written_host.build()
    return CompiledGraph(program, source, kernels, plan, written_host, written_host.recipe())


def supports(node: Node) -> bool:
    """Whether kernels can compute this pointwise, creation or reduction node."""
    kind = OPS[node.op].kind
    types = [o.type for o in (*node.inputs, node)]
    if any(isinstance(t, TensorType) and t.dtype == FLOAT16 for t in types) and not native.has_half():
        return False
    if node.op == "gather":
        return _supports_gather(node)
    if node.op == "matmul":
        return products.is_small(node)
    if node.op == "call":
        return inverses.is_small(node)
    if node.op == "assign":
        return node.tensor.dtype.name in SUPPORTED
    if kind == "reduction":
        return reductions.supports(node)
    if kind == "pointwise":
        return pointwise.supports(node)
    return _supports_creation(node)


def _supports_gather(node: Node) -> bool:
    """Elements of one cell, at places that 64 bits with a sign can hold."""
    dtype = node.tensor.dtype
    kinds = {index.tensor.dtype.name for index in node.inputs[1:]}
    return dtype.name in SUPPORTED and cells(dtype) == 1 and dtype != FLOAT16 and "uint64" not in kinds


def _supports_exactly(node: Node) -> bool:
    return supports(node) and is_exact(node)


def _supports_creation(node: Node) -> bool:
    dtype = node.tensor.dtype
    if dtype.name not in SUPPORTED:
        return False
    if node.op == "full":
        fill = node.attrs["fill_value"]
        return pointwise.number_fits(fill, dtype)
    if node.op == "arange":
        ends = [node.attrs[key] for key in ("start", "stop", "step")]
        return dtype.kind in "iu" and dtype.itemsize >= 4 and all(isinstance(n, int | SymInt) for n in ends)
    return False


def _past_the_cache(plan: Schedule, kernel: Kernel) -> list[Store]:
    """The stores of large results that no later step of the graph reads."""
    read = {node for step in plan.steps for node in step.reads}
    never = {old for _, old in plan.undo}

    def is_large(store: Store) -> bool:
        node = store.access.buffer.node
        limit = NEVER_READ_BYTES if node in never else NONTEMPORAL_BYTES
        return node not in read and hint(node.tensor.size) * store.value.dtype.itemsize >= limit

    return [store for store in kernel.stores if is_large(store)]


def _report(graph: Graph, written: nests.Code, code: native.Code, ms: float) -> CompiledKernel:
    kernel = written.kernel
    computed = tuple(_all_nodes(kernel))
    lines = tuple(dict.fromkeys(n.location for n in computed if n.location is not None))
    functions = tuple(function.name for function in written.functions)
    made = CompiledKernel(kernel.name, kernel.nodes, computed, lines, kernel.describe(), functions, code)
    if bus.active():
        where = tuple(map(user_line, lines))
        bus.emit(
            KernelCompiled(
                kernel=kernel.name, graph=graph.name, nodes=tuple(n.name for n in computed), lines=where,
                ms=ms, description=made.description, get_ir=Lazy(made, lambda kernel: kernel.ir),
                get_assembly=Lazy(made, CompiledKernel.assembly),
            )
        )  # fmt: skip
    return made


def _all_nodes(kernel: Kernel) -> list[Node]:
    """The nodes computed in a kernel, those computed on the way included."""
    found = {v.node: None for v in kernel.values if v.node is not None and v.op not in ("load", "number")}
    return list(found)
