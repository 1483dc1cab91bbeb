"""LLVM IR as text: one function, block by block, and the module around it.

Input: instructions as text.
Output: text that LLVM parses.
Why: building the same text through an object model costs more time than compiling it.

In registers a bool is an ``i1`` lane; in memory it is a byte. A complex number is two adjacent cells, in registers as
in memory; half precision is its bits.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from functools import cache

import numpy as np

from tcompile.graph.dtypes import DType

_TYPES = {
    "bool": "i1", "int8": "i8", "uint8": "i8", "int16": "i16", "uint16": "i16", "int32": "i32", "uint32": "i32",
    "int64": "i64", "uint64": "i64", "float32": "float", "float64": "double", "float16": "i16",
    "complex64": "float", "complex128": "double",
}  # fmt: skip
SUPPORTED = frozenset(_TYPES)
_ITSELF = "@<itself>"


@cache  # NumPy computes a dtype's name in Python at each access
def scalar_type(dtype: DType) -> str:
    """The type of one cell in registers."""
    return _TYPES[dtype.name]


@cache
def memory_type(dtype: DType) -> str:
    """The type of one cell in memory."""
    return "i8" if dtype.name == "bool" else _TYPES[dtype.name]


def cell_bits(cell: str) -> int:
    """How many bits a cell of this type has.

    >>> cell_bits("float"), cell_bits("i16")
    (32, 16)
    """
    return {"float": 32, "double": 64}.get(cell) or int(cell[1:])


def cells(dtype: DType) -> int:
    """How many cells one element has."""
    return 2 if dtype.kind == "c" else 1


def element_type(dtype: DType) -> str:
    """The type of one element in memory."""
    cell = memory_type(dtype)
    return cell if cells(dtype) == 1 else f"[{cells(dtype)} x {cell}]"


def suffix(lanes: int, type: str) -> str:
    """How intrinsics name a vector type: ``v16f32``."""
    short = {"float": "f32", "double": "f64"}.get(type, type)
    return f"v{lanes}{short}"


def literal(dtype: DType, value: bool | int | float) -> str:
    """A constant of one lane."""
    kind = dtype.kind
    if kind == "f" and dtype.itemsize == 2:
        with np.errstate(all="ignore"):
            return str(int(np.float16(value).view(np.uint16)))
    if kind == "f":
        exact = float(value)
        if dtype.itemsize == 4:
            with np.errstate(all="ignore"):
                exact = float(np.float32(value))
        return f"0x{struct.unpack('<Q', struct.pack('<d', exact))[0]:016X}"
    if kind == "b":
        return "true" if value else "false"
    return str(int(value))


class Module:
    """The declarations and helper functions that the functions of one module share."""

    def __init__(self) -> None:
        self._declared: dict[str, str] = {}
        self._helpers: dict[str, str] = {}
        self._functions: dict[str, str] = {}  # by text without the name, the name
        self.symbols: dict[str, int] = {}  # addresses of declared functions, for the linker

    def declare(self, name: str, text: str) -> str:
        """Declares an external function or intrinsic once; returns its name."""
        self._declared.setdefault(name, text)
        return name

    def external(self, name: str, signature: str, address: int) -> str:
        """Declares a function of this process by its address, ``"double {}(ptr)"``; returns its name."""
        self.symbols[name] = address
        return self.declare(f"@{name}", f"declare {signature.format(f'@{name}')} nounwind")

    def helper(self, name: str, write: Callable[[], str]) -> str:
        """Defines an internal function once; returns its name."""
        if name not in self._helpers:
            self._helpers[name] = ""  # helpers may call one another
            self._helpers[name] = write()
        return name

    def add(self, name: str, text: str) -> str:
        """Adds the function ``name``, unless there is one that differs in its name alone; returns that one's name.

        A loop's first iteration, and its iterations with swapped buffers, contain the same kernels again.

        >>> module = Module()
        >>> module.add("f", "define void @f() { ret void }"), module.add("g", "define void @g() { ret void }")
        ('f', 'f')
        """
        return self._functions.setdefault(text.replace(f"@{name}", _ITSELF), name)

    def include(self, other: Module) -> None:
        """Adds what another module holds, whose functions have names of their own."""
        self._declared = {**other._declared, **self._declared}
        self._helpers = {**other._helpers, **self._helpers}
        self._functions = {**other._functions, **self._functions}
        self.symbols = {**other.symbols, **self.symbols}

    def text(self) -> str:
        """The whole module."""
        functions = (text.replace(_ITSELF, f"@{name}") for text, name in self._functions.items())
        return "\n".join([*self._declared.values(), *self._helpers.values(), *functions]) + "\n"


class Writer:
    """One function's blocks. ``entry`` instructions precede everything else, whenever they are added."""

    def __init__(self, module: Module) -> None:
        self.module = module
        self.entry: list[str] = []
        self.lines: list[str] = []
        self.block = "entry"
        self._count = 0
        self._entry_values: dict[str, str] = {}
        self._block_values: dict[str, str] = {}
        self._displaced: dict[str, tuple[str, int]] = {}

    def name(self, hint: str = "v") -> str:
        """A new local name."""
        self._count += 1
        return f"%{hint}{self._count}"

    def do(self, text: str) -> None:
        """Adds an instruction without a result."""
        self.lines.append(f"  {text}")

    def get(self, text: str, hint: str = "v") -> str:
        """Adds an instruction and returns its result."""
        name = self.name(hint)
        self.lines.append(f"  {name} = {text}")
        return name

    def at_entry(self, text: str, hint: str = "c") -> str:
        """Adds an instruction to the entry block; the same text is computed once."""
        found = self._entry_values.get(text)
        if found is None:
            found = self._entry_values[text] = self.name(hint)
            self.entry.append(f"  {found} = {text}")
        return found

    def in_block(self, text: str, hint: str = "v") -> str:
        """Adds an instruction whose result depends on its text alone, unless the block has it already."""
        found = self._block_values.get(text)
        if found is None:
            found = self._block_values[text] = self.get(text, hint)
        return found

    def displaced(self, address: str, distance: int, at_entry: bool = False) -> str:
        """The address some bytes further; ``reach`` starts from ``address`` and comes here last."""
        if not distance:
            return address
        place = self.at_entry if at_entry else self.in_block
        found = place(f"getelementptr i8, ptr {address}, i64 {distance}")
        if -(1 << 31) < distance < 1 << 31:
            self._displaced[found] = address, distance
        return found

    def reach(self, address: str, type: str, index: str) -> str:
        """The address of the element ``index`` of ``type`` from ``address`` on.

        Constant distances are added last, where they fold into a load or store: so the accesses of a stencil share the
        rest of their addresses.
        """
        start, distance = self._displaced.get(address, (address, 0))
        return self.displaced(self.in_block(f"getelementptr {type}, ptr {start}, i64 {index}"), distance)

    def slot(self, type: str, count: str = "1", align: int = 64) -> str:
        """Stack memory for the whole call."""
        name = self.name("slot")
        self.entry.append(f"  {name} = alloca {type}, i64 {count}, align {align}")
        return name

    def label(self, hint: str = "b") -> str:
        """A new block name, not yet placed."""
        return self.name(hint)[1:]

    def place(self, label: str) -> None:
        """Starts the block ``label``; the block before it must have ended."""
        self.lines.append(f"{label}:")
        self.block = label
        self._block_values.clear()

    def jump(self, label: str) -> None:
        """Ends the block."""
        self.do(f"br label %{label}")

    def branch(self, condition: str, yes: str, no: str) -> None:
        """Ends the block."""
        self.do(f"br i1 {condition}, label %{yes}, label %{no}")

    def phi(self, type: str, first: str, origin: str) -> Phi:
        """A loop-carried value: a phi whose second arm is filled in by ``close``."""
        name = self.name("p")
        self.lines.append("")
        return Phi(self, name, type, first, origin, len(self.lines) - 1)

    def select_phi(self, type: str, arms: Sequence[tuple[str, str]]) -> str:
        """A phi over the predecessors of this block."""
        return self.get(f"phi {type} " + ", ".join(f"[ {value}, %{block} ]" for value, block in arms))

    def loop(
        self,
        start: str,
        stop: str,
        step: str,
        carried: Sequence[tuple[str, str]],
        body: Callable[[str, list[str]], Sequence[str]],
    ) -> list[str]:
        """A counted loop, run only while ``counter < stop``; returns the carried values after it.

        ``carried`` are (type, initial value); ``body(counter, carried)`` returns their next values.
        """  # fmt: skip
        origin, head, end = self.block, self.label("head"), self.label("done")
        inside = self.label("body")
        self.jump(head)
        self.place(head)
        counter = self.phi("i64", start, origin)
        phis = [self.phi(type, value, origin) for type, value in carried]
        more = self.get(f"icmp slt i64 {counter.name}, {stop}")
        self.branch(more, inside, end)
        self.place(inside)
        following = list(body(counter.name, [phi.name for phi in phis]))
        counted = counter.name if step == "1" else self.opaque(counter.name)
        advanced = self.get(f"add i64 {counted}, {step}")
        back = self.block
        counter.close(advanced, back)
        for phi, value in zip(phis, following, strict=True):
            phi.close(value, back)
        self.jump(head)
        self.place(end)
        return [phi.name for phi in phis]

    def opaque(self, number: str) -> str:
        """The same number, hidden from instruction selection; no instruction.

        For counters: addresses are a counter plus invariants, as instructions take them. LLVM's loop strength reduction
        would look for better ones in up to a third of the time of a compile. Its passes see through it.
        """
        name = "@llvm.expect.i64"
        self.module.declare(name, f"declare i64 {name}(i64, i64)")
        return self.get(f"call i64 {name}(i64 {number}, i64 0)")

    def text(self, signature: str, attributes: str) -> str:
        """The function."""
        return "\n".join([f"define {signature} {attributes} {{", "entry:", *self.entry, *self.lines, "}"])


class Phi:
    """A loop-carried value, whose second arm is filled in after the loop's body."""

    def __init__(self, writer: Writer, name: str, type: str, first: str, origin: str, line: int) -> None:
        self.writer, self.name, self.type, self.first, self.origin, self.line = (
            writer, name, type, first, origin, line,
        )  # fmt: skip

    def close(self, value: str, block: str) -> None:
        """Sets the value from the end of the loop's body."""
        self.writer.lines[self.line] = (
            f"  {self.name} = phi {self.type} [ {self.first}, %{self.origin} ], [ {value}, %{block} ]"
        )


def splat(lanes: int, type: str, value: str) -> str:
    """A constant vector with the same lane everywhere.

    >>> splat(8, "i64", "7"), splat_of(splat(8, "i64", "7")), splat_of("%v7")
    ('splat (i64 7)', '7', None)
    """
    return f"splat ({type} {value})" if lanes > 1 else f"<{type} {value}>"


def splat_of(register: str) -> str | None:
    """The scalar of a ``splat``; None for any other vector."""
    return register.split()[-1].rstrip(")>") if register.startswith(("splat", "<")) else None
