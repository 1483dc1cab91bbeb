"""The host program of the CPU backend: launches of machine code, and the same as records.

Input: a ``Schedule`` and the loaded kernels.
Output: the program (``backends.host``) and, where it only allocates and launches, its ``Recipe``.
Why: native calls and native loops run a recipe without Python.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np

from tcompile.backends import host
from tcompile.backends.host import Allocate, FlagReport, HostConstant, NamedSize, StoreTarget
from tcompile.backends.llvm import native
from tcompile.backends.llvm.kernels.codegen import Code
from tcompile.backends.llvm.kernels.nest import KernelFunction, element_ns
from tcompile.backends.llvm.kernels.variants import USUAL, KernelVariant
from tcompile.backends.llvm.loop_program.build import Iterations, NotNative
from tcompile.backends.llvm.native import entries, interrupts
from tcompile.backends.llvm.scalar_loops.lower import ScalarLoop
from tcompile.backends.schedule.plan import Step
from tcompile.backends.timed import line_of
from tcompile.graph import Node, SymInt, ops
from tcompile.graph.ir import Operand
from tcompile.graph.ops.control import is_branch
from tcompile.graph.ops.opaque import THREADED
from tcompile.graph.ops.scalar_loop import dtype_of, written_roots
from tcompile.graph.sizes import hint, product
from tcompile.observe import bus
from tcompile.observe.events import LoopDecided
from tcompile.polls import Changed
from tcompile.records import dataclass

# Nanoseconds of work that pay for a second thread. Of more work, a chunk is a share: large enough to pay, small enough
# to balance threads. Larger chunks have fewer ends, at which a stencil reads rows of the next.
SHARED_NS, LEAST_NS, MOST_NS, CHUNKS_A_THREAD = 120_000.0, 30_000.0, 480_000.0, 8
SHARED_BESIDE_THREADS_NS = 960_000.0  # the same where another library's threads still spin
_SMALL_BYTES = 1 << 14


@dataclass(frozen=True)
class LaunchStep:
    """A launch of a kernel: its function's name, and the arguments of ``native.launch``. Numbers are expressions over
    symbols.
    """

    kernel: str
    spec: str
    items: str
    grain: str
    arguments: tuple[Node | SymInt | str, ...]


RecipeStep: TypeAlias = Allocate | LaunchStep | NamedSize | StoreTarget | HostConstant | FlagReport


@dataclass(frozen=True)
class Recipe:
    """A host program that only allocates and launches kernels, as records for native calls.

    ``symbols`` says which input, or which of its sizes, gives each symbol. Before the first kernel
    ``helpers.check_error_state`` is called, and where arrays of the caller are ``rewritten``, ``check_rewriting``, too.
    ``addresses`` are those of the functions.
    """

    inputs: tuple[Node, ...]
    symbols: dict[str, tuple[int, int | None]]
    steps: tuple[RecipeStep, ...]
    outputs: tuple[Node, ...]
    rewritten: bool
    addresses: Mapping[str, int]


@dataclass
class LlvmProgram(host.HostProgram):
    """The program under construction, and the kernels. ``addresses`` are those of all functions, set by ``finish``."""

    codes: dict[Step, Code] = field(default_factory=dict)
    native_loops: dict[Node, Iterations | None] = field(default_factory=dict)  # None: Python runs them
    variant: KernelVariant = USUAL
    scalar_loops: Mapping[Node, ScalarLoop] = field(default_factory=dict)
    functions: dict[str, str] = field(default_factory=dict)  # by function, the program's variable for its address
    addresses: Mapping[str, int] = field(default_factory=dict)

    def tools(self) -> dict[str, Any]:
        """Launches of machine code, and arrays and copies from the pool."""
        tools: dict[str, Any] = {"launch": native.launcher(), "empty": native.empty, "copy": native.copy}
        if self.scalar_loops:
            tools |= {
                "check_status": interrupts.check_status,
                "with_results": interrupts.with_results,
                "Changed": Changed,
                "zero": np.zeros,
            }
        return tools

    def function(self, name: str) -> str:
        """The program's name for the address of a function, which ``finish`` sets."""
        if name not in self.functions:
            self.functions[name] = self._fresh(name)
        return self.functions[name]

    def finish(self, addresses: Mapping[str, int]) -> None:
        """Sets the addresses of functions in the program that has been built."""
        self.addresses = addresses
        self.names.update((held, addresses[name]) for name, held in self.functions.items())

    def recipe(self) -> Recipe | None:
        """The program as records, which keeps its temporary arrays to the end.

        None where it does more, or where that would need more memory.
        """
        graph = self.schedule.graph
        steps = [step for step in self.schedule.steps if step.node not in self._shared]
        if any(step.kind != "kernel" or "copy" in step.onto.values() for step in steps):
            return None
        if any(isinstance(step, StoreTarget) and step.base in self.for_kernels for step in self.steps):
            return None
        made = [step for step in self.steps if isinstance(step, Allocate) and isinstance(step.key, Node)]
        lasting = {*graph.outputs, *(old for _, old in self.schedule.undo)}
        if any(step.key not in lasting and self._is_large(step) and self._dies_early(step) for step in made):
            return None
        symbols = dict(graph.symbol_inputs())
        rewritten = bool(self.schedule.rewritten)
        inputs, outputs = tuple(graph.inputs), tuple(graph.outputs)
        return Recipe(inputs, symbols, tuple(self.steps), outputs, rewritten, self.addresses)

    def _is_large(self, step: Allocate) -> bool:
        """Whether an array is freed right after its last use: it is large, or of unknown size."""
        if not all(size.isdecimal() for size in step.shape):
            return True
        return product([int(size) for size in step.shape]) * step.dtype.itemsize > _SMALL_BYTES

    def _dies_early(self, made: Allocate) -> bool:
        """Whether large arrays are allocated after the last use of a temporary one, so that they could reuse its
        memory.
        """
        names, last = {made.key}, 0
        for position, step in enumerate(self.steps):
            if isinstance(step, StoreTarget) and step.base in names:
                names.add(step.key)
            elif isinstance(step, LaunchStep) and any(given in names for given in step.arguments):
                last = position
        return any(isinstance(step, Allocate) and self._is_large(step) for step in self.steps[last + 1 :])

    def launch(self, step: Step) -> None:
        """Writes the launches of a kernel's functions."""
        code = self.codes[step]
        assert step.kernel is not None
        partial = ""
        for function in code.functions:
            items = self._items(function)
            if function.partial_words:
                partial = self._fresh(f"{step.kernel.name}_partials")
                words = self._constant("int64", np.dtype("int64"))
                self.lines.append(f"{partial}_count = {items}")
                self.lines.append(f"{partial} = empty(({partial}_count * {function.partial_words},), {words})")
                count = f"{partial}_count * {function.partial_words}"
                self.steps.append(NamedSize(f"{partial}_count", items))
                self.steps.append(Allocate(partial, np.dtype("int64"), (count,), (0,)))
                items = f"{partial}_count"
            elif partial and function is code.functions[-1]:
                items = f"{partial}_count"
            arguments = []
            for argument in function.parameters.arguments:
                if isinstance(argument, Node):
                    arguments.append(self.for_kernels.get(argument, self.arrays[argument]))
                else:
                    arguments.append(partial if isinstance(argument, str) else self._word(argument))
            kernel = self.function(function.name)
            grain = items if function is code.functions[-1] and partial else self.grain(step, function)
            given = tuple(partial if isinstance(a, str) else a for a in function.parameters.arguments)
            self.steps.append(LaunchStep(function.name, function.parameters.spec, items, str(grain), given))
            spec = repr(function.parameters.spec.encode())
            self.lines.append(f"status |= launch({', '.join([kernel, spec, items, grain, *arguments])})")
        if partial:
            self.lines.append(f"del {partial}")

    def _items(self, function: KernelFunction) -> str:
        *outer, last = function.items
        if function.per_item != 1:
            if isinstance(last, int):
                last = -(-last // function.per_item)
                return self._size(product([*outer, last]))
            inner = f"((({last}) + {function.per_item - 1}) // {function.per_item})"
            return " * ".join([*(f"({n})" for n in outer), inner])
        return self._size(product(function.items))

    @cached_property
    def _is_beside_threads(self) -> bool:
        """Whether a library with threads of its own computes between the kernels."""
        return any(n.op is ops.CALL and n.attrs["target"] in THREADED for n in self.schedule.graph.nodes)

    def grain(self, step: Step, function: KernelFunction) -> str:
        """The number of items of one chunk."""
        kernel = step.kernel
        assert kernel is not None
        if kernel.form == "routine":
            return "1"
        points = product(axis.size for axis in kernel.axes)
        per_point = element_ns(kernel.values, kernel.stores)
        items = 1
        for n in function.items:
            items *= max(1, hint(n))
        items = max(1, -(-items // function.per_item))
        per_item = per_point * max(1, hint(points)) / items
        whole = per_item * items
        threads = native.num_threads()
        part = min(max(LEAST_NS, whole / (CHUNKS_A_THREAD * threads)), MOST_NS)
        shared = SHARED_BESIDE_THREADS_NS if self._is_beside_threads else SHARED_NS
        grain = max(1, int((part if whole > shared else shared) * self.variant.chunk / per_item))
        if items > grain:  # as many chunks for each thread
            grain = -(-items // (-(-items // (grain * threads)) * threads))
        if kernel.form in ("flat", "small_rows") and len(kernel.kept) == 1:
            grain = -(-grain // 1024) * 1024
        return str(grain)

    def scalar_loop(self, step: Step) -> None:
        """Writes a scalar loop. It writes to copies, unless the old elements of an array are dead."""
        node = step.node
        assert node is not None
        self.arrays[node] = self._name(node)
        loop = self.scalar_loops[node]
        shows, program = node.attrs["shows"], node.attrs["program"]
        places = written_roots(shows, program)
        written: dict[int, str] = {}
        own = set()  # those that alias no array of the caller
        for place in places:
            root = node.inputs[place]
            if root.op in (ops.FULL, ops.EMPTY) or not self.writes_in_place(step, place):
                own.add(place)
            written[place] = self.for_kernels.get(root, self.arrays[root])
            if not self.writes_in_place(step, place):
                copied = self._fresh(f"{node.name}_{place}")
                self.lines.append(f"{copied} = copy({written[place]})")
                written[place] = copied
            else:
                self.overwrites(root)
        results = []
        for number, kind in enumerate(program[3]):
            results.append(self._fresh(f"{node.name}_result_{number}"))
            dtype = dtype_of(kind)
            self.lines.append(f"{results[-1]} = zero((), {self._constant(dtype.name, dtype)})")
        given = [self.function(loop.name)]
        for argument in loop.arguments:
            if isinstance(argument, tuple):
                match argument:
                    case ("written", number):
                        given.append(written[number])
                    case ("result", number):
                        given.append(results[number])
                    case ("pauses", _):
                        given.append(str(int(not self.schedule.graph.scratch)))  # an iteration runs to its end
            elif isinstance(argument, Node):
                given.append(self.for_kernels.get(argument, self.arrays[argument]))
            else:
                given.append(self._size(argument))
        kernel = self._constant(f"enter_{loop.arrays}", entries.entry(loop.arrays))
        spec = repr(f"i{loop.spec}".encode())
        made = [*written.values(), *results]
        launched = f"status = check_status(launch({', '.join([kernel, spec, '1', '1', *given])}), status)"
        all_made = f"({''.join(f'{name}, ' for name in made)})"
        shown = "".join(f"{name if place in own else f'copy({name})'}, " for place, name in written.items())
        paused = f"({shown}{''.join(f'{name}, ' for name in results)})"
        self.lines += [
            "try:", f"    {launched}",
            "except Changed as changed:", f"    raise with_results(changed, {node.name!r}, {paused})",
        ]  # fmt: skip
        self.lines.append(f"{self.arrays[node]} = {all_made}")
        self.loop_calls[launched] = node.name

    def writes_in_place(self, step: Step, number: int) -> bool:
        """Whether a scalar loop writes to its operand ``number`` in place."""
        node = step.node
        assert node is not None
        place = written_roots(node.attrs["shows"], node.attrs["program"]).index(number)
        given = any(get.attrs["index"] == place for get in step.onto)
        return given or self._is_done_with(node.inputs[number], step)

    def native_parts(self, node: Node, bodies: Sequence[Any], carried: int) -> Any:
        """A loop's iteration, or its parts, in machine code."""
        found = self._iterations(node, [body.host for body in bodies], carried, node.attrs.get("leaves", ()))
        return None if found is None else found.run

    def _is_taken_over(self, operand: Operand, step: Step) -> bool:
        """Whether a loop may write to the very array that it is given, which nothing else shows or reads later."""
        return isinstance(operand, Node) and self._is_done_with(operand, step, results=True)

    def _iterations(
        self, node: Node, programs: Sequence[LlvmProgram], carried: int, leaves: Sequence[bool] = ()
    ) -> Iterations | None:
        """The iterations of a loop in machine code; None where Python has to run them. Reports which, and why."""
        found, reason = None, ""
        try:
            step = next(step for step in self.schedule.steps if step.node is node)
            operands = node.operands[2:]
            found = Iterations(
                programs, carried, leaves, lambda place: self._is_taken_over(operands[place], step),
                node.attrs.get("least", ()),
            )  # fmt: skip
        except NotNative as refusal:
            reason = str(refusal)
        self.native_loops[node] = found
        if bus.active():
            outcome = "python iterations" if found is None else "machine code"
            kind = "branch" if is_branch(node) else ""
            bus.emit(LoopDecided(outcome=outcome, reason=reason, iterations=kind, where=line_of(node)))
        return found
