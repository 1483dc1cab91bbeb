"""The compiler's output for a program, stage by stage, as one text that is the same on every machine.

Input: a ``Program``.
Output: its text: for each compile the guards, the graph after capture and after the transforms, and the entry; for each
graph the schedule, the loop program, LLVM IR and Triton source.
Why: a text without traces of the process and the processor changes only if the compiler does.

Programs are neither compiled to machine code nor run: calls use the backend ``aot_eager``. The code generators then
produce their texts for the processor that ``MACHINE`` describes.
"""

from __future__ import annotations

import contextlib
import dis
import io
import re
import warnings
from collections.abc import Iterator, Mapping, Sequence
from typing import Any
from unittest import mock

import numpy as np

import tcompile
from tcompile.backends import llvm, triton
from tcompile.backends.llvm import native
from tcompile.backends.llvm.kernels import routines
from tcompile.backends.llvm.kernels.variants import USUAL
from tcompile.backends.llvm.listings import ir_of
from tcompile.backends.llvm.loop_program.build import Iterations
from tcompile.backends.llvm.native import entries, interrupts
from tcompile.backends.llvm.scalar_loops import values
from tcompile.backends.llvm.vector import vmath
from tcompile.backends.schedule import Access, Schedule, complex_and_half, inverses
from tcompile.backends.schedule.kernel import Kernel, KernelValue
from tcompile.backends.triton import kernels
from tcompile.backends.triton.configs import USUAL as USUAL_CONFIG
from tcompile.graph import Graph, Node
from tcompile.observe import bus
from tcompile.observe.events import (
    CompileFinished,
    CompileStarted,
    Event,
    GraphBroke,
    GraphCaptured,
    LoopDecided,
    PassFinished,
)
from tests.golden.programs import Program

THREADS = 4
MACHINE = native.Machine(
    "x86_64-unknown-linux-gnu", "haswell",
    frozenset({"sse4.2", "avx", "avx2", "bmi", "bmi2", "f16c", "fma", "popcnt"}),
)  # fmt: skip
_LIBRARY_NAMES = frozenset[str]()  # parameters that no Triton kernel may use: they depend on Triton's version


class _Code:
    """Replaces machine code: each function has an artificial address, which encodes its name."""

    ms = 0.0
    names: dict[int, str] = {}

    def __init__(self, ir: str = "") -> None:
        self.ir = ir

    def __getitem__(self, name: str) -> int:
        for address, known in self.names.items():
            if known == name:
                return address
        address = (1 << 40) + len(self.names)
        self.names[address] = name
        return address


@contextlib.contextmanager
def fixed_machine(machine: native.Machine = MACHINE) -> Iterator[None]:
    """Replaces the code generators' queries of this machine and this NumPy, and code generation itself."""
    vectors = ("_ZGVb", "_ZGVd") if machine == MACHINE else ()

    def begin(ir: str, exports: Sequence[str], symbols: Mapping[str, int] | None = None, **options: Any) -> Any:
        code = _Code(ir)
        return lambda: code

    answers: list[tuple[Any, str, Any]] = [
        (native, "machine", lambda: machine),
        (native, "has_half", lambda: True),
        (native, "has_symbol", lambda name: name.startswith(vectors)),
        (native, "has_inner_loops", lambda: True),
        (native, "num_threads", lambda: THREADS),
        (native, "begin", begin),
        (native, "shared", _Code),
        (native, "launcher", lambda: None),
        (native, "flags", dict),
        (interrupts, "functions", dict),
        (routines, "_loop", routines._loop.__wrapped__),  # caches of this machine's answers
        (values, "loop_of", values.loop_of.__wrapped__),
        (entries, "entry", lambda arrays: _Code()[f"entry_{arrays}"]),
        (entries, "clears_flags", lambda loop, floats: False),
        (complex_and_half, "fused_products", lambda: True),
        (inverses, "fused_products", lambda: True),
        (vmath, "_nan_of_numpy", lambda name, dtype: "0xFFF8000000000000"),
        (vmath, "_keeps_nans", lambda dtype: True),
    ]
    with contextlib.ExitStack() as stack:
        for owner, name, answer in answers:
            stack.enter_context(mock.patch.object(owner, name, answer))
        yield


def text_of(program: Program) -> str:
    """Returns the text of a program, compiled for this purpose."""
    events: list[Event] = []
    compiled = tcompile.compile(program.function, backend="aot_eager")
    with bus.listening(events.append), contextlib.redirect_stdout(io.StringIO()), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for case in program.cases:
            compiled(*case())
    lines: list[str] = []
    for number, compile in enumerate(_compiles(events)):
        lines += _compile_lines(compile, number, program)
    if program.bytecode and compiled.cache.rewritten is not None:
        lines += _section("rewritten code", "\n".join(_code_lines(compiled)))
    return _normal("\n".join(lines) + "\n")


def _compiles(events: Sequence[Event]) -> list[list[Event]]:
    """The events of each compile, in the order in which compiles started."""
    found: dict[str, list[Event]] = {}
    for event in events:
        if isinstance(event, CompileStarted) or event.compile_id in found:
            found.setdefault(event.compile_id, []).append(event)
    return list(found.values())


def _compile_lines(events: Sequence[Event], number: int, program: Program) -> list[str]:
    started, captured = events[0], ""
    assert isinstance(started, CompileStarted)
    place = "" if started.where.line == 1 else f" from its line {started.where.line}"
    lines = [f"######## compile {number} of {started.function}{place}: {started.reason}", ""]
    last: Graph | None = None
    for event in events:
        match event:
            case GraphBroke():
                lines += _section("graph break", f"{event.headline} [{event.reason}]: {event.where.text}")
            case LoopDecided():
                told = f"{event.where.text}\n{event.outcome}, iterations: {event.iterations or 'none'} {event.reason}"
                lines += _section("loop", told)
            case GraphCaptured():
                assert event.get_graph is not None
                last = event.get_graph()
                assert last is not None
                captured = last.readable()
                lines += _section("guards", "\n".join(event.guards)) + _section("captured graph", captured)
            case PassFinished():
                assert event.get_graph is not None
                last = event.get_graph()
            case CompileFinished():
                assert event.get_entry_code is not None
                lines += _section("entry", event.get_entry_code())
    if last is not None:
        changed = last.readable()
        lines += _section("transformed graph", "as captured" if changed == captured else changed)
        with fixed_machine():
            lines += _llvm_lines(last, program.ir)
        if program.triton:
            lines += _section("Triton source", "\n\n".join(_triton_source(last)))
    return lines


def _section(title: str, text: str) -> list[str]:
    return [f"==== {title}", text.strip("\n"), ""]


def _code_lines(compiled: Any) -> Iterator[str]:
    """The function's bytecode with its resume points, by opcode and argument."""
    for instruction in dis.get_instructions(compiled.cache.rewritten.code):
        constant = instruction.opname == "LOAD_CONST"  # whose text may hold an address
        told = type(instruction.argval).__name__ if constant else instruction.argrepr or instruction.arg
        yield f"{instruction.offset} {instruction.opname}" + (f" {told}" if told is not None else "")


# The llvm backend


def _llvm_lines(graph: Graph, ir: bool) -> list[str]:
    compiled = llvm.CompiledGraph(graph, llvm._make(graph, False, USUAL), USUAL)
    compiled.settle()
    return _part_lines(compiled, ir)


def _part_lines(compiled: llvm.CompiledGraph, ir: bool) -> list[str]:
    """Returns the texts of a graph, then of its regions."""
    name = compiled.schedule.graph.name
    lines = _section(f"schedule of {name}", "\n".join(_schedule_lines(compiled.schedule)))
    lines += _section(f"program around the kernels of {name}", compiled.source)
    for node in compiled.host.scalar_loops:
        told = "\n".join(_scalar_loop_lines(node.attrs["program"]))
        lines += _section(f"program of {node.name} in {name}", told)
    for node, iterations in compiled.host.native_loops.items():
        told = "Python runs it" if iterations is None else "\n".join(_iterations_lines(iterations))
        lines += _section(f"loop program of {node.name} in {name}", told)
    if ir:
        texts = {ir_of(kernel.ir, kernel.functions) for kernel in compiled._own}
        lines += _section(f"LLVM IR of {name}", "\n\n".join(sorted(texts)))
    for part in compiled.parts.values():
        assert isinstance(part, llvm.CompiledGraph)
        lines += _part_lines(part, ir)
    return lines


def _schedule_lines(plan: Schedule) -> list[str]:
    lines = []
    for number, step in enumerate(plan.steps):
        mark = " (arrays of the caller are written from here on)" if number == plan.last else ""
        told = step.kernel.describe() if step.kernel is not None else _show(step.node)
        lines.append(f"step {number}: {step.kind} {told}{mark}")
        after = sorted(plan.steps.index(other) for other in step.after if other in plan.steps)
        facts = {"after": after, "reads": step.reads, "writes": step.writes, "onto": step.onto}
        lines.append("    " + ", ".join(f"{name} {_show(fact)}" for name, fact in facts.items() if fact))
        if step.kernel is not None:
            lines += _kernel_lines(step.kernel)
    facts = {"rewritten": plan.rewritten, "undo": plan.undo, "saved": plan.saved}
    return lines + [f"{name}: {_show(fact)}" for name, fact in facts.items() if fact]


def _kernel_lines(kernel: Kernel) -> list[str]:
    axes = ", ".join(f"{axis.size} reduced" if axis.reduced else f"{axis.size}" for axis in kernel.axes)
    lines = [f"    {kernel.name}: {kernel.form} over [{axes}]"]
    names: dict[KernelValue, str] = {}
    for value in kernel.values:
        names[value] = f"%{len(names)}"
        operands = [names[o] if isinstance(o, KernelValue) else repr(o) for o in value.operands]
        told = [f"{name}={_show(attribute)}" for name, attribute in value.attrs.items() if name != "own_cost"]
        cost = value.attrs.get("own_cost")
        told += [f"cost={cost:g}"] if cost else []
        place = f" {_show(value.access)}" if value.access is not None else ""
        made = f"{value.op}({', '.join(operands + told)}){place}"
        along = ",".join(map(str, sorted(value.axes))) or "no axis"
        lines.append(f"        {names[value]} = {made} {value.dtype} along {along}")
    lines += [f"        store {names[store.value]} to {_show(store.access)}" for store in kernel.stores]
    return lines


def _iterations_lines(iterations: Iterations) -> list[str]:
    lines = [f"array {number}: {_show(array)}" for number, array in enumerate(iterations.arrays)]
    lines += [f"step {number}: {_show(step)}" for number, step in enumerate(iterations.steps)]
    facts = (
        "counter",
        "inputs",
        "fixed",
        "moves",
        "swaps",
        "period",
        "double_buffers",
        "copied_once",
        "fresh",
        "exits",
        "floats",
    )
    return lines + [f"{name}: {_show(getattr(iterations, name))}" for name in facts]


def _scalar_loop_lines(program: Sequence[Any], depth: int = 0) -> list[str]:
    """The program of a scalar loop, an instruction a line."""
    lines = []
    for item in program:
        if isinstance(item, tuple) and any(isinstance(part, tuple) and part for part in item) and len(str(item)) > 100:
            lines += ["    " * depth + "(", *_scalar_loop_lines(item, depth + 1), "    " * depth + ")"]
        else:
            lines.append("    " * depth + _show(item))
    return lines


def _show(value: Any) -> str:
    """A value as text, without addresses."""
    match value:
        case Node() | Graph():
            return value.name
        case Iterations():
            return f"the loop program of {value.graph.name}"
        case np.ndarray():
            return f"{value.dtype}{list(value.shape)}"
        case np.dtype():
            return value.name
        case Access():
            return f"{value.buffer.name}[{', '.join(map(_distance, (value.offset, *value.steps)))}]"
        case int() if value in _Code.names:
            return _Code.names[value]
        case dict():
            return "{" + ", ".join(f"{_show(key)}: {_show(item)}" for key, item in value.items()) + "}"
        case set() | frozenset():
            return "{" + ", ".join(sorted(map(_show, value))) + "}"
        case list() | tuple():
            return "[" + ", ".join(map(_show, value)) + "]"
    fields = getattr(type(value), "__dataclass_fields__", None)
    if fields is not None and not isinstance(value, KernelValue):
        return f"{type(value).__name__}({', '.join(f'{name}={_show(getattr(value, name))}' for name in fields)})"
    return str(value)


def _distance(distance: Any) -> str:
    return " + ".join(f"{times}" if axis is None else f"{times} * stride {axis}" for times, axis in distance) or "0"


# The triton backend


def _triton_source(graph: Graph) -> Iterator[str]:
    plan, dots = triton._planned(graph, USUAL_CONFIG)
    for kernel in plan.kernels:
        for function in kernels.write(kernel, True, _LIBRARY_NAMES, USUAL_CONFIG, dots.get(kernel)):
            yield function.text


# Numbers that vary


def _normal(text: str) -> str:
    """The text without what depends on the process, or on where a function stands in a file of ours."""
    text = re.sub(r"\bgraph_\d+_(\d+)\b", r"graph_\1", text)  # which function of the process
    text = re.sub(r"\bcontinuation_\d+\b", "continuation", text)
    text = re.sub(r"\b(programs\.py|derivatives\.py)(:|, line )\d+", r"\1", text)
    text = re.sub(r"^ *# \w+\.py:1 +(in|def) .*\n", "", text, flags=re.MULTILINE)  # only some versions of CPython say
    return re.sub(r"[ \t]+$", "", text, flags=re.MULTILINE)
