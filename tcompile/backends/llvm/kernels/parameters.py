"""Parameters of kernels: the words through which a kernel receives its arrays and sizes.

Input: the buffers and symbolic sizes that a kernel mentions.
Output: the launch's spec and argument list, and registers that hold the words at the kernel's entry.
Why: the host program and the kernel agree on the words.
"""

from __future__ import annotations

from dataclasses import field

from tcompile.backends.llvm.vector.text import Writer
from tcompile.backends.schedule import Buffer
from tcompile.backends.schedule.kernel import Distance
from tcompile.graph import Node, ScalarType, Size, SymInt, TensorType
from tcompile.records import dataclass


@dataclass
class WordParameters:
    """The words of one kernel. ``spec`` and ``arguments`` go together: buffers, sizes, or ``"partials"``."""

    spec: str = ""
    arguments: list[Node | SymInt | str] = field(default_factory=list)
    _places: dict[object, int] = field(default_factory=dict)
    _words: int = 0

    @classmethod
    def of(cls, buffer: Buffer) -> WordParameters:
        """The parameters of a kernel that takes one array."""
        made = cls()
        made._buffer(buffer)
        return made

    def _add(self, key: object, char: str, argument: Node | SymInt | str, words: int) -> int:
        if key not in self._places:
            self.spec += char
            self.arguments.append(argument)
            self._places[key] = self._words
            self._words += words
        return self._places[key]

    def word(self, w: Writer, position: int) -> str:
        """The word as an ``i64``."""
        at = w.at_entry(f"getelementptr i64, ptr %words, i64 {position}")
        return w.at_entry(f"load i64, ptr {at}")

    def pointer(self, w: Writer, buffer: Buffer) -> str:
        """The address of a buffer's data."""
        return w.at_entry(f"inttoptr i64 {self.word(w, self._buffer(buffer))} to ptr")

    def named_pointer(self, w: Writer, name: str) -> str:
        """The address of an array that only the host program knows."""
        return w.at_entry(f"inttoptr i64 {self.word(w, self._add(name, 'a', name, 1))} to ptr")

    def number(self, w: Writer, buffer: Buffer) -> str:
        """A Python float, as a ``double``."""
        assert isinstance(buffer.node.type, ScalarType)
        return w.at_entry(f"bitcast i64 {self.word(w, self._add(buffer, 'f', buffer.node, 1))} to double")

    def _buffer(self, buffer: Buffer) -> int:
        assert isinstance(buffer.node.type, TensorType)
        strided = not buffer.type.layout.dense
        words = 1 + buffer.type.ndim if strided else 1
        return self._add(buffer, "s" if strided else "a", buffer.node, words)

    def size(self, w: Writer, size: Size) -> str:
        """A size: a literal, or the register that holds it."""
        if isinstance(size, int):
            return str(size)
        return self.word(w, self._add(str(size), "i", size, 1))

    def bytes(self, w: Writer, distance: Distance, buffer: Buffer) -> str:
        """A distance in bytes: a literal, or a register set at entry."""
        itemsize = buffer.type.dtype.itemsize
        total, terms = 0, []
        for multiple, axis in distance:
            if axis is None and isinstance(multiple, int):
                total += multiple * itemsize
                continue
            unit = str(itemsize) if axis is None else self.word(w, self._buffer(buffer) + 1 + axis)
            if isinstance(multiple, int) and multiple == 1:
                terms.append(unit)
            else:
                terms.append(w.at_entry(f"mul i64 {self.size(w, multiple)}, {unit}"))
        for term in terms:
            total = term if not total else w.at_entry(f"add i64 {total}, {term}")  # type: ignore[assignment]
        return str(total)
