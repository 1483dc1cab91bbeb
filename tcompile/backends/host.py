"""The host program: straight-line Python that allocates, launches kernels, calls libraries and makes views.

Input: a ``Schedule``.
Output: Python source and the function it defines.
Why: one program serves every code generator; each subclasses ``HostProgram`` for launches and allocation.

Sizes come from the input arrays' shapes. Every array is dropped right after its last use, so that its memory is reused.
"""

from __future__ import annotations

import keyword
import re
from collections.abc import Callable, Sequence
from dataclasses import field
from functools import cached_property
from itertools import count
from types import NoneType
from typing import Any

import numpy as np

from tcompile.backends import helpers, loop_runners
from tcompile.backends.constants import constants, held
from tcompile.backends.running import KEY, RunningLoops
from tcompile.backends.schedule import Schedule
from tcompile.backends.schedule.lower import replaces_part
from tcompile.backends.schedule.plan import Step
from tcompile.backends.texts import keep_text
from tcompile.backends.timed import TimedLoop, line_of
from tcompile.graph import Graph, Node, ScalarType, Size, SymInt, TensorType, ops
from tcompile.graph.evaluate import dtype_of_numbers
from tcompile.graph.names import is_plain
from tcompile.graph.ops.control import LOOPS
from tcompile.graph.ops.gathering import IN_PLACE
from tcompile.graph.ops.opaque import AS_SEEN, Slot, resolve
from tcompile.graph.ops.writing import Path, shown
from tcompile.records import dataclass

_numbers = count()
_DTYPES = frozenset(np.dtype(c).name for c in "?bhilBHILefdFD")
_RESERVED_STARTS = ("kernel_", "numpy_", "constant_")


@dataclass(frozen=True)
class Allocate:
    """A new array, called ``key``; ``order`` lists its axes, outermost first. Sizes are expressions over symbols."""

    key: Node | str
    dtype: np.dtype[Any]
    shape: tuple[str, ...]
    order: tuple[int, ...]


@dataclass(frozen=True)
class NamedSize:
    """An int with a name, which later expressions use."""

    name: str
    value: str


@dataclass(frozen=True)
class StoreTarget:
    """``key`` is the array of ``base``, which the next kernels write to in place."""

    key: Node
    base: Node


@dataclass(frozen=True, eq=False)
class HostConstant:
    """``key`` is a constant array, which is only read."""

    key: Node
    array: np.ndarray[Any, Any]


@dataclass(frozen=True)
class FlagReport:
    """The status bits returned so far go to ``helpers.floating_point_report``.

    Or to ``undoing``, which takes ``arrays`` as well.
    """

    undoing: Callable[..., None] | None = None
    arrays: tuple[Node, ...] = ()


def _is_loop(step: Step) -> bool:
    return step.kind == "loop" or (step.node is not None and step.node.op in LOOPS)


@dataclass
class HostProgram:
    """The program under construction: its text and the names it uses."""

    schedule: Schedule
    compile_region: Callable[[Graph], Callable[..., Any]]
    lines: list[str] = field(default_factory=list)
    names: dict[str, Any] = field(default_factory=dict)
    arrays: dict[Node, str] = field(default_factory=dict)
    for_kernels: dict[Node, str] = field(default_factory=dict)  # the array that kernels read, where it is another one
    guarded: bool = False  # whether library calls raise at floating-point flags already
    regions: dict[Graph, Callable[..., Any]] = field(default_factory=dict)  # the compiled ones: nodes may share one
    steps: list[Any] = field(default_factory=list)  # the same program as records, to run without Python
    loop_calls: dict[str, str] = field(default_factory=dict)  # the name of the loop that a line runs
    overwritten: set[Node] = field(default_factory=set)
    words: dict[str, None] = field(default_factory=dict)  # ints for kernels that may need more than 64 bits

    def build(self) -> tuple[str, Callable[..., tuple[Any, ...]]]:
        """Writes the program and executes its definition."""
        graph = self.schedule.graph
        self.names.update(
            as_array=np.asarray,
            check_error_state=helpers.check_error_state, report=helpers.floating_point_report,
            library_call=helpers.library_call, enough=helpers.enough, settle=helpers.settle, checked=helpers.checked,
            check_rewriting=helpers.check_rewriting, copy=helpers.copy,
            discard_imaginary=helpers.discard_imaginary, with_sizes=helpers.with_sizes,
            raise_on_flags=helpers.raise_on_flags, reset=helpers.reset, replay=helpers.replay, shown=shown,
            restore=helpers.restore, fit=helpers.fit,
        )  # fmt: skip
        self.names.update(self.tools())
        for node in graph.inputs:
            self.arrays[node] = self._name(node)
        arguments = ", ".join(self.arrays[node] for node in graph.inputs)
        self._symbols()
        launches = any(map(self.launches, self.schedule.steps))
        if launches:
            self.lines.append("check_error_state()")
            if self.schedule.rewritten:
                self.lines.append("check_rewriting()")
            self.lines.append("status = 0")
        self._rank_zero_inputs()
        steps, last = self.schedule.steps, self.schedule.last
        self._write(steps[:last], 0)
        saved = self._save()
        start = len(self.lines)
        self.words = {}
        self._write(steps[last:], last)  # from here on, arrays of the caller are written
        has_ints = any(axis is None for _, axis in graph.symbol_inputs().values())  # sizes alone fit
        if self.words and graph.updates and has_ints:
            self.lines.insert(start, f"fit({', '.join(self.words)})")
        if saved:
            self.lines[start:] = [
                "try:", *("    " + line for line in self.lines[start:]),
                "except BaseException:", f"    restore({', '.join(saved)})", "    raise",
            ]  # fmt: skip
        results = "".join(self.arrays[node] + ", " for node in graph.outputs)
        self.lines.append(f"return ({results.rstrip() if len(graph.outputs) == 1 else results.rstrip(', ')})")
        source = "\n".join([f"def program({arguments}):", *("    " + line for line in self.lines)]) + "\n"
        if self.loop_calls:
            self.names[KEY] = self._loops(source)
        file = f"<tcompile {graph.name} {next(_numbers)}>"
        exec(compile(source, file, "exec"), self.names)
        program: Callable[..., tuple[Any, ...]] = self.names["program"]
        keep_text(program, file, source)
        return source, program

    def _loops(self, source: str) -> RunningLoops:
        """The lines at which the program runs loops, and the variables that hold their results."""
        texts = enumerate(map(str.strip, source.splitlines()), 1)
        results: dict[str, dict[int, str]] = {}
        for node in self.schedule.graph.nodes:
            if node.op is not ops.GET or node.inputs[0].op not in LOOPS:
                continue
            if node in self.arrays and node not in self.overwritten:
                results.setdefault(node.inputs[0].name, {})[node.attrs["index"]] = self.arrays[node]
        return RunningLoops(
            {number: self.loop_calls[text] for number, text in texts if text in self.loop_calls}, results
        )

    def overwrites(self, node: Node) -> None:
        """Records that the array of a node is written to, so that its value is dead."""
        while node.op.kind == "view":
            node = node.inputs[0]
        self.overwritten.add(node)

    def _write(self, steps: Sequence[Step], first: int) -> None:
        """Writes some steps, of which ``first`` is the number of the first one, and the report of their flags."""
        calls = [step.node for step in steps if step.kind == "call" and step.node is not None]
        calls = [node for node in calls if node not in self._constants and node.op is not ops.GET]
        # Regions report flags themselves, by the error state in force.
        self.guarded = bool(calls) and not any(node.regions for node in calls)
        start = len(self.lines)
        # No allocation may fail once an array of the caller is written.
        if (self.schedule.undo or self.is_resident) and first == self.schedule.last:
            for step in steps:
                for node in step.writes if step.kernel is not None else ():
                    if node not in step.onto:
                        self.arrays[node] = self._name(node)
                        self._allocate(node)
        for position, step in enumerate(steps, first):
            if _is_loop(step) and any(map(self.launches, self.schedule.steps[:position])):
                self.lines += ["if status:", "    report(status)"]  # the frame may go on from the middle of the loop
            if step.kind == "kernel":
                self._launch(step)
            elif step.kind == "view":
                self._view(step)
            elif step.kind == "loop":
                self.scalar_loop(step)
            else:
                self._call(step)
            dead = [self.arrays[node] for node in self._last_uses.get(position, ()) if node not in self._shared]
            dead += [self.for_kernels[node] for node in self._last_uses.get(position, ()) if node in self.for_kernels]
            if dead:
                self.lines.append(f"del {', '.join(dead)}")
        if self.guarded:
            self.lines[start:] = [
                "token = raise_on_flags()", "try:", *("    " + line for line in self.lines[start:]),
                "except Exception as error:", "    raise replay(error) from None", "finally:", "    reset(token)",
            ]  # fmt: skip
        if any(map(self.launches, steps)):
            self._report(self.schedule.undo if first == self.schedule.last else ())

    def _save(self) -> list[str]:
        """Copies the parts of the caller's arrays that scalar loops will write; returns parts and copies."""
        found = []
        for number, (node, path) in enumerate(self.schedule.saved):
            part, old = self._fresh(f"part_{number}"), self._fresh(f"saved_{number}")
            self.lines.append(f"{part} = {self.shown(self.arrays[node], path)}")
            self.lines.append(f"{old} = copy({part})")
            found += [part, old]
        return found

    def shown(self, array: str, path: Path) -> str:
        """The part of an array that a path leads to."""
        return f"shown({array}, {self._text(path)})" if path else array

    def _report(self, undo: Sequence[tuple[Node, Node]]) -> None:
        """Writes the report of the flags; before a replay, the caller's arrays are restored."""
        if not undo:
            self.lines += ["if status:", "    report(status)"]
            self.steps.append(FlagReport())
            return
        undoing = helpers.undoing([node.attrs["path"] for node, _ in undo])
        arrays = [array for pair in undo for array in pair]
        given = ", ".join(["status", *(self.arrays[array] for array in arrays)])
        self.lines += ["if status:", f"    {self._number(undoing)}({given})"]
        self.steps.append(FlagReport(undoing, tuple(arrays)))

    # -- names ----------------------------------------------------------------------------------------------------
    def _name(self, node: Node) -> str:
        """The node's own name where it is free: not a keyword, symbol, helper or other array."""
        name = node.name if is_plain(node.name) else "value"
        if name.startswith(_RESERVED_STARTS):
            name = f"value_{name}"
        while keyword.issoftkeyword(name):
            name += "_"
        return self._fresh(name)

    def _fresh(self, name: str) -> str:
        while name in self._variables or name in self.names or name in _DTYPES:
            name += "_"
        self._variables.add(name)
        return name

    @cached_property
    def _variables(self) -> set[str]:
        """The variables that the program assigns to."""
        return {*self.schedule.graph.symbol_inputs(), "status", "token", "error"}

    def _constant(self, name: str, value: Any) -> str:
        """The name of a value that the program holds: ``name``, unless that is a variable or another value."""
        while name in self._variables or self.names.get(name, value) is not value:
            name += "_"
        self.names[name] = value
        return name

    def _size(self, size: Size) -> str:
        return str(size)

    def _word(self, size: SymInt) -> str:
        """An int argument of a kernel. A computed one is checked for overflow of 64 bits before kernels write."""
        text = self._size(size)
        if not text.isidentifier():
            self.words[text] = None
        return text

    def _shape(self, shape: Sequence[Size]) -> str:
        inside = ", ".join(map(self._size, shape))
        return f"({inside},)" if len(shape) == 1 else f"({inside})"

    def _symbols(self) -> None:
        graph = self.schedule.graph
        for name, (position, axis) in graph.symbol_inputs().items():
            source = self.arrays[graph.inputs[position]]
            self.lines.append(f"{name} = {source}" if axis is None else f"{name} = {source}.shape[{axis}]")

    def _rank_zero_inputs(self) -> None:
        """Turns NumPy scalars into 0-d arrays, which kernels can read."""
        for node in self.schedule.graph.inputs:
            if node in self._read_by_kernels and isinstance(node.type, TensorType) and not node.type.ndim:
                name = self.for_kernels[node] = self._fresh(f"{self.arrays[node]}_array")
                self.lines.append(f"{name} = as_array({self.arrays[node]})")

    @cached_property
    def _read_by_kernels(self) -> set[Node]:
        """The arrays that machine code reads, in regions too."""
        steps = self.schedule.steps
        read = {node for step in steps if self.launches(step) for node in step.reads}
        return read | {node for step in steps if step.node is not None and step.node.regions for node in step.reads}

    def _settle(self, node: Node) -> None:
        """Makes sure that a library's result lies in memory as its type says, where a kernel will read it."""
        if node not in self._read_by_kernels or not isinstance(node.type, TensorType) or not node.type.layout.dense:
            return
        type = node.type
        name = self.for_kernels[node] = self._fresh(f"{self.arrays[node]}_dense")
        dtype = self._constant(type.dtype.name, type.dtype)
        order = None if type.c_contiguous else type.layout.order
        self.lines.append(f"{name} = settle({self.arrays[node]}, {dtype}, {self._shape(type.shape)}, {order})")

    @cached_property
    def _last_uses(self) -> dict[int, list[Node]]:
        outputs = {*self.schedule.graph.outputs, *(node for pair in self.schedule.undo for node in pair)}
        last: dict[Node, int] = {}
        for position, step in enumerate(self.schedule.steps):
            for node in [*step.reads, *step.writes]:
                last[node] = position
        dead: dict[int, list[Node]] = {}
        last_loop = max((at for at, step in enumerate(self.schedule.steps) if _is_loop(step)), default=-1)
        for node, position in last.items():
            if node.op is ops.GET and node.inputs[0].op in LOOPS and not node.tensor.ndim:
                position = max(position, last_loop)  # a frame that goes on in the middle of that loop may need it
            if node not in outputs and node.op is not ops.INPUT:
                dead.setdefault(position, []).append(node)
        return dead

    # -- overridden by code generators ---------------------------------------------------------------------------------
    def tools(self) -> dict[str, Any]:
        """The program's ``launch``, and its ``empty``, which makes an array: ``empty(shape, dtype, order)``."""
        raise NotImplementedError

    @cached_property
    def is_resident(self) -> bool:
        """Whether all arrays are in the memory of a device that is not the CPU."""
        return False

    def launch(self, step: Step) -> None:
        """Writes the launch of a kernel, whose results are allocated; its status goes to ``status``."""
        raise NotImplementedError

    def launches(self, step: Step) -> bool:
        """Whether a step runs code that returns a status."""
        return step.kernel is not None or step.kind == "loop"

    def scalar_loop(self, step: Step) -> None:
        """Writes a scalar loop for which the code generator has a function."""
        raise NotImplementedError

    def loop(self, node: Node, operands: Sequence[str]) -> None:
        """Writes a loop whose region is given the induction variable."""
        (region,) = node.regions
        body, missing = self._compiled(region)
        native = self.native_parts(node, [body], len(operands) - 2)
        own = loop_runners.owned(node.regions, self.names["copy"])
        made = TimedLoop(loop_runners.PythonLoop(node.name, body, own, missing, native), line_of(node))
        name = self._constant(f"{node.name}_iterations", made)
        sizes = [f"sizes=({', '.join(missing)},)"] if missing else []
        self.lines.append(f"{self.arrays[node]} = {name}({', '.join([*operands, *sizes])})")
        self.loop_calls[self.lines[-1]] = node.name

    def native_parts(self, node: Node, bodies: Sequence[Any], carried: int) -> Any:
        """The native code for an iteration of a loop, or its parts, as ``loop_runners`` calls it; or None."""
        return None

    def exit_loop(self, node: Node, operands: Sequence[str]) -> None:
        """Writes a loop with early exits, whose iterations consist of parts."""
        compiled = [self._compiled(region) for region in node.regions]
        bodies = [body for body, _ in compiled]
        native = self.native_parts(node, bodies, len(operands) - 2)
        symbols = [missing for _, missing in compiled]
        own = loop_runners.owned(node.regions, self.names["copy"])
        made = TimedLoop(
            loop_runners.PartLoop(node.name, bodies, own=own, symbols=symbols, native=native, **node.attrs),
            line_of(node), True,
        )  # fmt: skip
        name = self._constant(f"{node.name}_iterations", made)
        sizes = "".join(f"({''.join(f'{size}, ' for size in missing)}), " for _, missing in compiled)
        self.lines.append(f"{self.arrays[node]} = {name}({', '.join([*operands, f'sizes=({sizes})'])})")
        self.loop_calls[self.lines[-1]] = node.name

    # -- steps ----------------------------------------------------------------------------------------------------

    def _launch(self, step: Step) -> None:
        for node in step.writes:
            if node in self.arrays:  # made before the program runs
                continue
            target = step.onto.get(node)
            base = None if target is None else self.for_kernels.get(node.inputs[0], self.arrays[node.inputs[0]])
            self.arrays[node] = self._name(node)
            if target is None:
                self._allocate(node)
            else:
                self.steps.append(StoreTarget(node, node.inputs[0]))
                self.lines.append(f"{self.arrays[node]} = {base if target == 'base' else f'copy({base})'}")
                if target == "base":
                    self.overwrites(node.inputs[0])
        self.launch(step)

    def _allocate(self, node: Node) -> None:
        type = node.tensor
        dtype = self._constant(type.dtype.name, type.dtype)
        order = type.layout.order
        extra = "" if order == tuple(range(type.ndim)) else f", {order}"
        self.lines.append(f"{self.arrays[node]} = empty({self._shape(type.shape)}, {dtype}{extra})")
        self.steps.append(Allocate(node, type.dtype, tuple(map(self._size, type.shape)), order))

    def _view(self, step: Step) -> None:
        node = step.node
        assert node is not None
        source = self.arrays[node.inputs[0]]
        self.arrays[node] = self._name(node)
        text = self._view_text(node, source)
        self.lines.append(f"{self.arrays[node]} = {text}")
        self._settle(node)

    def _view_text(self, node: Node, source: str) -> str:
        shape = node.tensor.shape
        if node.op is ops.PERMUTE_DIMS:
            return f"{source}.transpose({node.attrs['axes']})"
        if node.op is ops.RESHAPE:
            return f"{source}.reshape({self._shape(shape)})"
        if node.op is ops.INDEX:
            key = node.attrs["key"]
            return f"{source}[{self._key(key)}]"
        function = self._constant(f"numpy_{node.op}", node.op.reference(np))
        attrs = "".join(f", {key}={self._attribute(node, key)}" for key in node.attrs)
        return f"{function}({source}{attrs})"

    def _key(self, key: Sequence[Any]) -> str:
        def item(k: Any) -> str:
            if isinstance(k, slice):
                parts = ["" if p is None else str(p) for p in (k.start, k.stop)]
                return ":".join([*parts, *([] if k.step is None else [str(k.step)])])
            return "..." if k is Ellipsis else str(k)

        return ", ".join(item(k) for k in key) + "," if key else "()"

    def _attribute(self, node: Node, key: str) -> str:
        value = node.attrs[key]
        if _symbolic(value):
            return self._text(value)
        if isinstance(value, int | bool | tuple) and _plain(value):
            return repr(value)
        return self._constant(f"{node.name}_{key}", value)

    def _text(self, value: Any) -> str:
        if isinstance(value, tuple):
            inside = ", ".join(map(self._text, value))
            return f"({inside},)" if len(value) == 1 else f"({inside})"
        if isinstance(value, slice):
            return f"slice({self._text(value.start)}, {self._text(value.stop)}, {self._text(value.step)})"
        if isinstance(value, SymInt):
            return str(value)
        return repr(value)

    @cached_property
    def _constants(self) -> dict[Node, np.ndarray[Any, Any]]:
        return constants(self.schedule.graph)

    @cached_property
    def _shared(self) -> set[Node]:
        """The constants that are one array in all calls, since they do not escape."""
        return self._constants.keys() - held(self.schedule.graph, self._constants)

    @property
    def fixed(self) -> dict[Node, np.ndarray[Any, Any]]:
        """The shared constants, each with its node."""
        return {node: self._constants[node] for node in self._shared}

    def _constant_array(self, node: Node, made: np.ndarray[Any, Any]) -> None:
        name = self._number(made)
        if node in self._shared:
            self.arrays[node] = name
            self.steps.append(HostConstant(node, made))
        else:
            self.arrays[node] = self._name(node)
            self.lines.append(f"{self.arrays[node]} = copy({name}){'' if made.flags.owndata else '[...]'}")

    def _call(self, step: Step) -> None:
        node = step.node
        assert node is not None
        if node in self._constants:
            self._constant_array(node, self._constants[node])
            return
        self.arrays[node] = self._name(node)
        operands = []
        for operand in node.operands:
            if isinstance(operand, Node):
                found = self.arrays[operand]
                operands.append(self.for_kernels.get(operand, found) if node.regions else found)
            else:
                number = self._text(operand) if isinstance(operand, int | SymInt) else self._number(operand)
                dtype = dtype_of_numbers(node)
                operands.append(number if dtype is None else f"{self._constant(dtype.name, dtype.type)}({number})")
        if node.op is ops.GET:
            self.lines.append(f"{self.arrays[node]} = {operands[0]}[{node.attrs['index']}]")
            if node.inputs[0].op is ops.CALL:
                self._check(node)
            self._settle(node)
            return
        if node.op is ops.COND:
            yes, no = (self._region(node, i) for i in range(2))
            predicate, *rest = operands
            given = ", ".join(rest)
            self.lines.append(f"if {predicate}:")
            self.lines.append(f"    {self.arrays[node]} = {yes}({given})")
            self.lines.append("else:")
            self.lines.append(f"    {self.arrays[node]} = {no}({given})")
            return
        if node.op is ops.CALL:
            self._library_call(node, operands)
            return
        if node.op is ops.FORI_LOOP and isinstance(node.regions[0].inputs[0].type, ScalarType):
            self.loop(node, operands)
            return
        if node.op is ops.EXIT_LOOP:
            self.exit_loop(node, operands)
            return
        if node.regions:
            self.control(node, operands)
            return
        attrs = [f"{key}={self._attribute(node, key)}" for key in node.attrs]
        if node.op in IN_PLACE and self._is_done_with(node.inputs[0], step):
            function = self._constant(f"numpy_{node.op}_into", IN_PLACE[node.op])
        else:
            function = self._constant(f"numpy_{node.op}", node.op.reference(np))
        if node.op in (ops.MEAN, ops.VAR, ops.STD):
            self.lines.append(f"enough({operands[0]}, {node.attrs['axis']}, {node.attrs.get('correction', 0)})")
        if node.op is ops.ASTYPE and node.inputs[0].tensor.dtype.kind == "c" and node.tensor.dtype.kind not in "cb":
            self.lines.append(f"discard_imaginary({operands[0]})")
        self.lines.append(f"{self.arrays[node]} = {self._guarded_call(function, [*operands, *attrs])}")
        self._settle(node)

    def control(self, node: Node, operands: Sequence[str]) -> None:
        """Writes an operation with regions as Python; each region reports flags by itself."""
        attrs = [f"{key}={self._attribute(node, key)}" for key in node.attrs]
        attrs.append(f"regions=[{', '.join(self._region(node, i) for i in range(len(node.regions)))}]")
        function = self._constant(f"numpy_{node.op}", node.op.reference(np))
        self.lines.append(f"{self.arrays[node]} = {function}({', '.join([*operands, *attrs])})")

    def _is_done_with(self, base: Node, step: Step, results: bool = False) -> bool:
        """Whether a step may overwrite an operand: an array of the program's own that is dead and has no alias.

        ``results``: the step's own results may be aliases of it.
        """
        steps, graph = self.schedule.steps, self.schedule.graph
        position = steps.index(step)
        if not self._is_own(base):
            return False
        shown = {base}
        for node in graph.nodes:
            if results and node is step.node:
                continue
            if node.op.kind in ("view", "control") and not shown.isdisjoint(node.inputs):
                shown.add(node)  # a carried value may be returned unchanged
        assert step.node is not None
        others = list(step.node.inputs)
        others.remove(base)  # once: equal arrays may have been merged
        needed = {*graph.outputs, *others, *(node for s in steps[position + 1 :] for node in s.reads)}
        return shown.isdisjoint(needed)

    def _is_own(self, node: Node) -> bool:
        """Whether the array is fresh: made by machine code, or by a function that makes a copy to write to."""
        steps = {made: step for step in self.schedule.steps for made in step.writes}
        step = steps.get(node)
        if step is None:
            return False
        if node.op is ops.GET and node.inputs[0].op is ops.SCALAR_LOOP:
            return node not in steps[node.inputs[0]].onto
        if step.onto.get(node) == "base":
            return replaces_part(node) and self._is_own(node.inputs[0])
        return step.kernel is not None or node.op in IN_PLACE

    def _library_call(self, node: Node, operands: Sequence[str]) -> None:
        """Writes a call with its arguments."""
        target = node.attrs["target"]
        function = self._constant(f"numpy_{target.rpartition('.')[2]}", resolve(target))
        arguments = [self._argument(item, operands) for item in node.attrs["args"]]
        arguments += [f"{key}={self._argument(item, operands)}" for key, item in node.attrs["kwargs"]]
        self.lines.append(f"{self.arrays[node]} = {self._guarded_call(function, arguments)}")
        if not isinstance(node.type, tuple):
            self._check(node)
        self._settle(node)

    def _guarded_call(self, function: str, arguments: Sequence[str]) -> str:
        if self.guarded:
            return f"{function}({', '.join(arguments)})"
        return f"library_call({', '.join([function, *arguments])})"

    def _argument(self, template: Any, operands: Sequence[str]) -> str:
        """An argument of a call: ``Slot(i)`` in it, or in a tuple or list in it, is operand ``i``."""
        if isinstance(template, Slot):
            return operands[template.index] + AS_SEEN[template.seen]
        if type(template) in (tuple, list):
            inside = ", ".join(self._argument(item, operands) for item in template)
            return f"[{inside}]" if type(template) is list else f"({inside},)" if len(template) == 1 else f"({inside})"
        if _symbolic(template):
            return self._text(template)
        return repr(template) if type(template) in (bool, int, str, NoneType) else self._number(template)

    def _check(self, node: Node) -> None:
        """Writes the check that a library gave what the frontend stated."""
        name = self.arrays[node]
        type = self._constant(f"{name}_type", node.tensor)
        shape, in_c_order = self._shape(node.tensor.shape), node.tensor.c_contiguous
        self.lines.append(f"checked({name}, {type}, {shape}, {in_c_order})")

    def _region(self, node: Node, number: int) -> str:
        """The name of a compiled region; sizes of this graph that it reads are bound."""
        region = node.regions[number]
        body, missing = self._compiled(region)
        found = self._constant(f"{node.name}_region_{number}", body)
        return f"with_sizes({found}, ({', '.join(missing)},))" if missing else found

    def _compiled(self, region: Graph) -> tuple[Any, list[str]]:
        """A compiled region, and the sizes of this graph that it takes as its last inputs."""
        missing = sorted(free_symbols(region) - set(region.symbol_inputs()))
        if region not in self.regions:
            self.regions[region] = self.compile_region(_closed(region, missing))
        return self.regions[region], missing

    def _number(self, value: Any) -> str:
        return self._constant(f"constant_{len(self.names)}", value)


def free_symbols(graph: Graph) -> set[str]:
    """The symbols that occur anywhere in a graph: in types, operands and attributes, regions included."""
    found: set[str] = set()

    def visit(value: Any) -> None:
        if isinstance(value, SymInt):
            found.update(value.env.hints.keys() & set(re.findall(r"\w+", str(value))))
        elif isinstance(value, TensorType):
            visit(value.shape)
        elif isinstance(value, tuple | list):
            for item in value:
                visit(item)
        elif isinstance(value, slice):
            visit((value.start, value.stop, value.step))
        elif isinstance(value, dict):
            visit(list(value.values()))

    for node in [*graph.inputs, *graph.nodes]:
        visit((node.type, tuple(o for o in node.operands if not isinstance(o, Node)), node.attrs))
        for region in node.regions:
            found |= free_symbols(region) - {name for name in region.symbol_inputs() if name in graph.env.counters}
    return found


def _closed(region: Graph, symbols: Sequence[str]) -> Graph:
    """A region with one more input for each of these symbols."""
    if not symbols:
        return region
    closed = Graph(
        region.name, region.env, list(region.inputs), region.nodes, region.outputs, region.updates, region.scratch
    )
    for name in symbols:
        closed.inputs.append(Node(ops.INPUT, (), {}, ScalarType("int", SymInt(region.env, {(name,): 1})), name))
    return closed


def _symbolic(value: Any) -> bool:
    if isinstance(value, tuple):
        return any(_symbolic(item) for item in value)
    if isinstance(value, slice):
        return any(_symbolic(item) for item in (value.start, value.stop, value.step))
    return isinstance(value, SymInt)


def _plain(value: Any) -> bool:
    if isinstance(value, tuple):
        return all(_plain(item) for item in value)
    return isinstance(value, int | bool | str | None)
