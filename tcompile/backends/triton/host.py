"""The host program around Triton kernels.

Input: a ``Schedule`` and the functions of its kernels, as a device runs them.
Output: the program (``backends.host``), which allocates on that device, and launches there.
Why: arrays may lie in another memory than the caller's.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from tcompile.backends import host
from tcompile.backends.schedule.plan import Step
from tcompile.backends.triton.devices import Device
from tcompile.backends.triton.parameters import Parameter
from tcompile.backends.triton.text import TritonFunction
from tcompile.graph import Node, Size, SymInt, TensorType

Launchable = Callable[..., Any]


@dataclass
class TritonProgram(host.HostProgram):
    """The program under construction, and the functions of the kernels, each with its launcher."""

    functions: dict[Step, list[tuple[TritonFunction, Launchable]]] = field(default_factory=dict)
    device: Device | None = None

    def tools(self) -> dict[str, Any]:
        """The functions of the device."""
        assert self.device is not None
        return self.device.tools()

    @cached_property
    def is_resident(self) -> bool:
        """Whether all arrays are the device's, those of the caller too; then no flags are reported, as in CuPy."""
        return self.schedule.graph.device != "cpu"

    @cached_property
    def is_remote(self) -> bool:
        """Whether kernels read and write other memory than the caller."""
        return "placed" in self.tools() and not self.is_resident

    def launches(self, step: Step) -> bool:
        """Whether a step runs code that returns a status."""
        return super().launches(step) and not self.is_resident

    @cached_property
    def _constants(self) -> dict[Node, Any]:
        return {} if self.is_resident else super()._constants

    @cached_property
    def _seen_by_kernels(self) -> set[Node]:
        """The arrays that kernels read or write."""
        return self._read_by_kernels | {node.inputs[0] for step in self.schedule.steps for node in step.onto}

    def _rank_zero_inputs(self) -> None:
        """Copies the arrays that kernels read or write to the device."""
        if self.is_resident:
            return
        if not self.is_remote:
            super()._rank_zero_inputs()
            return
        for node in self.schedule.graph.inputs:
            if isinstance(node.type, TensorType):
                self._settle(node)

    def _settle(self, node: Node) -> None:
        if self.is_resident:
            return
        if not self.is_remote:
            super()._settle(node)
        elif node in self._seen_by_kernels and isinstance(node.type, TensorType):
            order = None if node.type.c_contiguous else node.type.layout.order
            name = self.for_kernels[node] = self._fresh(f"{self.arrays[node]}_there")
            self.lines.append(f"{name} = placed({self.arrays[node]}, {order})")

    def _constant_array(self, node: Node, made: Any) -> None:
        super()._constant_array(node, made)
        if self.is_remote:
            self._settle(node)

    def _guarded_call(self, function: str, arguments: Sequence[str]) -> str:
        if not self.is_remote:
            return super()._guarded_call(function, arguments)
        return super()._guarded_call("on_host", [function, *arguments])

    def control(self, node: Node, operands: Sequence[str]) -> None:
        """Writes an operation with regions; branches and iterations run on the host."""
        super().control(node, [f"to_host({operand})" if self.is_remote else operand for operand in operands])

    def launch(self, step: Step) -> None:
        """Writes the launches of a kernel's functions."""
        partials: list[str] = []
        parts = ""
        for function, launchable in self.functions[step]:
            if function.partials:
                parts = self._fresh(f"{function.name}_parts")
                chunk = dict(function.blocks)["CHUNK"]
                self.lines.append(f"{parts} = {_blocks(function.row, chunk)}")
                for partial in function.partials:
                    name = self._fresh(f"{function.name}_partials")
                    dtype = self._constant(partial.dtype.name, partial.dtype)
                    self.lines.append(f"{name} = empty((({self._size(partial.rows)}) * {parts},), {dtype})")
                    partials.append(name)
            factors = [_blocks(*factor) if factor else parts for factor in function.grid]
            programs = " * ".join(factor for factor in factors if factor != "1") or "1"
            blocks = " * ".join(factor for factor in factors if factor not in ("1", parts)) or "1"
            given = ", ".join(self._given(parameter, parts, partials, blocks) for parameter in function.parameters)
            kernel = self._constant(function.name, launchable)
            found = "" if self.is_resident else "status |= "
            self.lines.append(f"{found}{kernel}({programs}, {given})")
        if partials:
            self.lines.append(f"del {', '.join(partials)}")

    def _given(self, parameter: Parameter, parts: str, partials: list[str], blocks: str) -> str:
        source = parameter.source
        if parameter.kind == "partial":
            return partials[parameter.axis]
        if parameter.kind == "count":
            return parts
        if parameter.kind == "counters":
            return f"counters({blocks})"
        if isinstance(source, SymInt):
            return self._word(source)
        assert isinstance(source, Node)
        array = self.for_kernels.get(source, self.arrays[source])
        return f"stride({array}, {parameter.axis})" if parameter.kind == "stride" else array


def _blocks(size: Size, block: int) -> str:
    """How many blocks cover a size."""
    if isinstance(size, int):
        return str(-(-size // block))
    return f"({size})" if block == 1 else f"(({size} + {block - 1}) // {block})"


__all__ = ["TritonProgram"]
