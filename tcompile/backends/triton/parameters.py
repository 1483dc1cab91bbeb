"""Parameters of Triton kernels: arrays, sizes and numbers.

Input: the buffers, symbolic sizes and numbers that a kernel mentions.
Output: the kernel's parameters, each with its type and with the host program's argument.
Why: the source and the launch agree on them.
"""

from __future__ import annotations

import keyword
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from tcompile.backends.schedule import Buffer
from tcompile.backends.schedule.complex_and_half import PARTS
from tcompile.backends.schedule.kernel import Distance
from tcompile.backends.triton.names import pointer_to
from tcompile.graph import Node, Size, SymInt
from tcompile.graph.dtypes import DType
from tcompile.graph.names import is_plain

Kind: TypeAlias = Literal["array", "size", "stride", "wide", "number", "partial", "count", "counters"]


@dataclass(frozen=True)
class Parameter:
    """One parameter. ``kind`` says what its argument is:

    an ``array``; a ``size``, or the ``stride`` of an array along ``axis`` in elements, in the type of the kernel's
    indices; a size as a value (``wide``, 64 bits); the bits of a Python float (``number``, 64 bits); an array of
    ``partial`` results, of which ``axis`` is the number; the ``count`` of these in a row; an array of ``counters``,
    which are zero before and after the launch.
    """

    name: str
    kind: Kind
    source: Node | SymInt | str
    axis: int = 0
    type: str = ""

    @property
    def is_array(self) -> bool:
        """Whether it is the address of an array."""
        return self.kind in ("array", "partial", "counters")

    @property
    def is_index(self) -> bool:
        """Whether it has the type of the kernel's indices, 32 or 64 bits."""
        return self.kind in ("size", "stride", "count")


@dataclass
class TritonParameters:
    """The parameters of one kernel, in order of their first mention."""

    taken: set[str]
    found: dict[object, Parameter] = field(default_factory=dict)

    def fresh(self, name: str) -> str:
        """A name that is unique in the kernel."""
        name = name if is_plain(name) else "value"
        while name in self.taken or keyword.issoftkeyword(name):
            name += "_"
        self.taken.add(name)
        return name

    def _add(
        self, key: object, name: str, kind: Kind, source: Node | SymInt | str, axis: int = 0, type: str = ""
    ) -> str:
        if key not in self.found:
            self.found[key] = Parameter(self.fresh(name), kind, source, axis, type)
        return self.found[key].name

    def array(self, buffer: Buffer) -> str:
        """The pointer to a buffer's data."""
        return self._add(buffer, buffer.name, "array", buffer.node, type=pointer_to(buffer.type.dtype))

    def partial(self, name: str, number: int, dtype: DType) -> str:
        """The pointer to one of the arrays of partial results."""
        return self._add(("partial", number), name, "partial", "parts", number, pointer_to(dtype))

    def count(self) -> str:
        """The number of partial results for each row."""
        return self._add("count", "parts", "count", "parts")

    def counters(self) -> str:
        """The pointer to a counter for each block of rows."""
        return self._add("counters", "done", "counters", "parts", type="*i32")

    def size(self, size: Size) -> str:
        """A size: a literal, or a parameter."""
        if isinstance(size, int):
            return str(size)
        text = str(size)
        return self._add(("size", text), text if text.isidentifier() else "size", "size", size)

    def value(self, size: SymInt) -> str:
        """A size as an operand of arithmetic."""
        return self._add(("wide", str(size)), "number", "wide", size, type="i64")

    def number(self, buffer: Buffer) -> str:
        """The bits of a Python float."""
        return self._add(("number", buffer), buffer.name, "number", buffer.node, type="i64")

    def distance(self, distance: Distance, buffer: Buffer) -> tuple[int, list[str]]:
        """A distance in cells: a number, and texts to add to it."""
        cells = 2 if buffer.type.dtype in PARTS else 1
        total, texts = 0, []
        for multiple, axis in distance:
            if axis is None:
                if isinstance(multiple, int):
                    total += multiple * cells
                else:
                    texts.append(self.size(multiple * cells))
                continue
            stride = self._add(("stride", buffer, axis), f"{buffer.name}_stride_{axis}", "stride", buffer.node, axis)
            factor = multiple * cells
            texts.append(stride if isinstance(factor, int) and factor == 1 else f"{self.size(factor)} * {stride}")
        return total, texts


__all__ = ["Parameter", "TritonParameters"]
