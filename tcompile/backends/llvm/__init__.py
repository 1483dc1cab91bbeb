"""The fusing CPU backend: from a graph to machine code.

Input: a ``Graph``.
Output: a callable that takes the graph's inputs and returns the tuple of its outputs.
Why: kernels with explicit vectors fuse operations that NumPy runs one by one.

The schedule (``backends.schedule``) forms kernels, ``kernels`` emits each as LLVM IR, ``native`` compiles it, and
``host`` writes the Python program around the kernels.
"""

from __future__ import annotations

import functools
import time
from collections.abc import Sequence
from typing import Any

from tcompile.backends import compiled
from tcompile.backends.llvm import host, native, tuning
from tcompile.backends.llvm.bitwise_exact import is_exact
from tcompile.backends.llvm.kernels import codegen, pointwise, routines
from tcompile.backends.llvm.kernels.choice import left_to_numpy
from tcompile.backends.llvm.kernels.nest import KernelFunction
from tcompile.backends.llvm.kernels.variants import USUAL, KernelVariant
from tcompile.backends.llvm.scalar_loops import lower
from tcompile.backends.llvm.vector.text import Module
from tcompile.backends.llvm.vector.vectors import FLOAT16
from tcompile.backends.schedule import Kernel, Schedule, Store, scalar_loop_arrays, scatters, schedule
from tcompile.backends.schedule.admission import ALONG, admits
from tcompile.backends.schedule.disjoint import reads_other_arrays
from tcompile.backends.schedule.kernel_ops import LOAD, NUMBER
from tcompile.backends.schedule.plan import Step
from tcompile.graph import Graph, Node, TensorType, ops
from tcompile.graph.dtypes import DType
from tcompile.graph.op import Op
from tcompile.graph.ops.gathering import IN_PLACE
from tcompile.graph.printer import attribute_texts
from tcompile.graph.sizes import hint
from tcompile.records import dataclass

NONTEMPORAL_BYTES = 32 << 20  # bytes from which outputs bypass the caches, which they would not fit anyway
NEVER_READ_BYTES = 1 << 20  # and from which rarely read outputs do


@dataclass(frozen=True)
class CompiledKernel(compiled.CompiledKernel):
    """A kernel. ``functions`` are the names of its functions in the module, which the kernels of a graph share."""

    language = "LLVM IR"

    functions: tuple[str, ...]
    code: native.MachineCode

    __repr__ = compiled.CompiledKernel.__repr__  # a record would write its own

    @property
    def ir(self) -> str:
        """The LLVM IR that was compiled (of all kernels of the graph, which share one module)."""
        return self.code.ir

    def assembly(self) -> str:
        """The machine code as assembly text, generated on demand."""
        return self.code.assembly()

    def listings(self) -> tuple[str, str]:
        """The part of the shared module that belongs to this kernel."""
        from tcompile.backends.llvm.listings import assembly_of, ir_of

        return ir_of(self.ir, self.functions), assembly_of(self.assembly(), self.functions)


class CompiledGraph(compiled.CompiledGraph[CompiledKernel]):
    """A compiled graph, whose machine code is compiled in the background: users of the code call ``settle``."""

    def __init__(self, graph: Graph, made: tuning.Made, variant: KernelVariant) -> None:
        super().__init__(self._first_call, made.source, [], made.schedule, made.host.regions)
        self.host = made.host
        self._waiting: tuple[Graph, tuning.Made, KernelVariant] | None = (graph, made, variant)
        self._recipe: host.Recipe | None = None

    @property
    def iterations(self) -> frozenset[str]:
        """How iterations of loops run, here and in regions: "machine code", "python iterations"."""
        own = {
            "python iterations" if iterations is None else "machine code"
            for iterations in self.host.native_loops.values()
        }
        return super().iterations | own | ({"machine code"} if self.host.scalar_loops else set())

    def launches(self) -> list[tuple[str, CompiledKernel, float | None]]:
        """The launches of the settled program, in order.

        With each the variable with the address, the kernel, and the bytes that it moves; None for a function of a
        library, which machine code calls.
        """
        written = [(step, code) for step, code in self.host.codes.items() if code.functions]
        return [
            (
                self.host.functions[function.name],
                kernel,
                None if step.kernel.form == "routine" else step.kernel.traffic / len(code.functions),
            )
            for (step, code), kernel in zip(written, self.kernels, strict=False)
            if step.kernel is not None
            for function in code.functions
        ]

    def steps(self) -> dict[str, tuple[Node, bool]]:
        """The program's variables that hold the results of steps without a kernel.

        With each its node, and whether that is a loop that machine code runs.
        """
        found = {step.node for step in self.schedule.steps if step.kernel is None and step.kind != "view"}
        native = {node for node, iterations in self.host.native_loops.items() if iterations is not None}
        return {
            name: (node, node in native or node.op is ops.SCALAR_LOOP)
            for node, name in self.host.arrays.items()
            if node in found and node.op is not ops.GET
        }

    def settle(self) -> None:
        """Waits for the machine code, sets the program's addresses, and reports the kernels."""
        if self._waiting is None:
            return
        graph, made, variant = self._waiting
        ms = made.finish()
        written = [code for code in made.host.codes.values() if code.functions]
        reports = [_report(graph, code, made.code, ms, variant) for code in written]
        self._take(reports + [_report_loop(graph, loop) for loop in made.host.scalar_loops.values()])
        self.program, self._recipe, self._waiting = made.program, made.host.recipe(), None

    def _first_call(self, *inputs: Any) -> tuple[Any, ...]:
        self.settle()
        return self.program(*inputs)

    @property
    def recipe(self) -> host.Recipe | None:
        """Its program without Python, None where it does more than launch kernels."""
        self.settle()
        return self._recipe


def compile_graph(
    graph: Graph, example_inputs: Sequence[Any] | None = None, *, exact: bool = False, autotune: bool = False
) -> CompiledGraph:
    """Compiles ``graph``. ``example_inputs`` are what kernels are timed on under ``autotune``, and not needed
    otherwise: the graph's types say everything.

    The result takes the graph's inputs by position, arrays of exactly the graph's types, and returns a tuple
    of arrays (rank-0 results may be arrays or NumPy scalars). ``exact`` leaves to NumPy whatever kernels may
    compute with other last bits. The result raises ``Replay`` where only plain Python
    can go on. Raises BackendError where the machine has no native code.

    >>> import numpy as np
    >>> from tcompile.graph import TensorType
    >>> from tcompile.graph.ops import apply
    >>> g = Graph("example")
    >>> x = g.input("x", TensorType(np.dtype("float32"), (3,)))
    >>> g.outputs = [apply(g, "multiply", apply(g, "add", x, 1.0), 2.0)]
    >>> compile_graph(g)(np.arange(3, dtype="float32"))
    (array([2., 4., 6.], dtype=float32),)
    """
    compiled = begin_graph(graph, example_inputs, exact=exact, autotune=autotune)
    compiled.settle()
    return compiled


def begin_graph(
    graph: Graph, example_inputs: Sequence[Any] | None = None, *, exact: bool = False, autotune: bool = False
) -> CompiledGraph:
    """Starts compiling ``graph`` and returns at once: the result settles when it is first called, or asked to."""
    variant = USUAL
    if autotune and example_inputs is not None:

        def finished(variant: KernelVariant) -> tuning.Made:
            made = _make(graph, exact, variant)
            made.finish()
            return made

        variant = tuning.best(graph, example_inputs, finished)
    return CompiledGraph(graph, _make(graph, exact, variant), variant)


def _make(graph: Graph, exact: bool, variant: KernelVariant) -> tuning.Made:
    able = _supports_exactly if exact else supports
    left = left_to_numpy(graph, able)

    def computes(node: Node) -> bool:
        if node.op is ops.SCALAR_LOOP:
            return scalar_loop_arrays.seen(node) is not None and lower.can_call(node)
        return node not in left and able(node)

    plan = schedule(graph, computes, routines.admits, checks_indices_first=True)
    started = time.perf_counter()
    loops, scalar = lower.write_loops([step.node for step in plan.steps if step.kind == "loop" and step.node])
    passes, names = lower.needs_passes(loops.values()), [loop.name for loop in loops.values()]
    module = Module()
    codes: dict[Step, codegen.Code] = {}
    for step in plan.steps:
        if step.kernel is not None:
            stores = _past_the_cache(plan, step.kernel, variant)
            noalias = reads_other_arrays(step, plan.steps)
            codes[step] = codegen.write(module, step.kernel, stores, variant, bool(loops), noalias)
    if loops and not passes:
        module.include(scalar)
    functions = [function for code in codes.values() for function in code.functions]
    text, making, making_loops = "", None, None
    exports = [function.name for function in functions if function.text] + ([] if passes else names)
    if exports:
        text = f"{native.FLAGS}\n{module.text()}\n!0 = !{{i32 1}}\n"
        making = native.begin(text, exports, {**module.symbols, **native.flags()})
    if passes:  # kernels need none
        symbols = {**scalar.symbols, **native.flags()}
        making_loops = native.begin(f"{native.FLAGS}\n{scalar.text()}", names, symbols, optimise=True)
    ms = (time.perf_counter() - started) * 1e3
    # The program is written while LLVM works: it lacks only the addresses.
    regions = functools.partial(compile_graph, exact=exact)
    program = host.LlvmProgram(plan, regions, codes=codes, variant=variant, scalar_loops=loops)
    source, run = program.build()

    def finish() -> float:
        made.code = loaded = making() if making is not None else None
        looped = making_loops() if making_loops is not None else loaded
        each = sum((code.ms for code in {loaded, looped} if code is not None), ms) / max(1, len(codes) + len(loops))
        addresses = {function.name: _holder(function, loaded)[function.name] for function in functions}
        for loop in loops.values():
            assert looped is not None
            loop.code, loop.ms, addresses[loop.name] = looped, each, looped[loop.name]
        program.finish(addresses)
        run.__dict__["code"] = loaded, looped  # the program holds bare addresses
        return each

    made = tuning.Made(plan, text, program, source, run, finish)
    return made


def supports(node: Node) -> bool:
    """Whether kernels can compute this pointwise, creation or reduction node, or do this scatter."""
    if node.op in IN_PLACE:
        ordered = scatters.is_in_any_order(node) or scatters.is_in_their_order(node)
        return ordered and scatters.admits(node, scatters.COMBINED.get(node.tensor.dtype.kind, frozenset({None})))
    if node.op is ops.SCALAR_POW and node.tensor.ndim:  # libm is called for a single number
        return False
    types = [o.type for o in (*node.inputs, node)]
    if any(isinstance(t, TensorType) and t.dtype == FLOAT16 for t in types) and not native.has_half():
        return False
    return admits(node, _has_lowering)


def _has_lowering(op: Op, dtype: DType) -> bool:
    return op.fusion in ALONG or pointwise.has_lowering(op, dtype)


def _supports_exactly(node: Node) -> bool:
    return supports(node) and is_exact(node)


def _past_the_cache(plan: Schedule, kernel: Kernel, variant: KernelVariant) -> list[Store]:
    """The stores of large results that no later step of the graph reads, or those that a variant selects."""
    if not variant.past_the_cache and not kernel.reduced:
        return []
    read = {node for step in plan.steps for node in step.reads}
    never = {old for _, old in plan.undo}

    def is_large(store: Store) -> bool:
        node = store.access.buffer.node
        limit = NEVER_READ_BYTES if node in never else NONTEMPORAL_BYTES
        return node not in read and hint(node.tensor.size) * store.value.dtype.itemsize >= limit

    return [store for store in kernel.stores if is_large(store)]


def _holder(function: KernelFunction, made: native.MachineCode | None) -> native.MachineCode:
    """The code with a function of a kernel: the graph's module, or the shared one."""
    if not function.text:
        return native.shared()
    assert made is not None
    return made


def _report(
    graph: Graph, written: codegen.Code, made: native.MachineCode | None, ms: float, variant: KernelVariant
) -> CompiledKernel:
    kernel = written.kernel
    computed = tuple(_all_nodes(kernel))
    lines = tuple(dict.fromkeys(n.location for n in computed if n.location is not None))
    functions = tuple(function.name for function in written.functions)
    summary = kernel.describe() if variant == USUAL else f"{kernel.describe()}; tuned: {variant.text()}"
    code = _holder(written.functions[0], made)
    found = CompiledKernel(kernel.name, kernel.nodes, computed, lines, summary, functions, code)
    found.report_compiled(graph, ms)
    return found


def _report_loop(graph: Graph, loop: lower.ScalarLoop) -> CompiledKernel:
    node, name, code = loop.node, loop.name, loop.code
    assert code is not None
    lines = (node.location,) if node.location is not None else ()
    summary = f"a scalar loop: {attribute_texts(node)[0]}"
    made = CompiledKernel(name, (node,), (node,), lines, summary, (name,), code)
    made.report_compiled(graph, loop.ms)
    return made


def _all_nodes(kernel: Kernel) -> list[Node]:
    """The nodes computed in a kernel, intermediate ones included."""
    found = {v.node: None for v in kernel.values if v.node is not None and v.op not in (LOAD, NUMBER)}
    return list(found)
