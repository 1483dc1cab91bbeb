"""Calls of NumPy's own loops from machine code: products of matrices, solutions of equations.

Input: a kernel of the form ``routine``.
Output: its function, which passes addresses, sizes and strides to the loop, as NumPy does, and returns the
floating-point flags it has raised.
Why: the result has NumPy's bits without a call of Python.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache

from tcompile.backends.llvm import native
from tcompile.backends.llvm.kernels.nest import KernelFunction
from tcompile.backends.llvm.kernels.parameters import WordParameters
from tcompile.backends.llvm.vector.text import Module, Writer
from tcompile.backends.llvm.vector.vectors import FLOAT16
from tcompile.backends.schedule import Kernel
from tcompile.backends.schedule.admission import COMPUTED
from tcompile.backends.schedule.kernel import Access
from tcompile.backends.schedule.routines import Routine, routine_of
from tcompile.backends.status import INVALID, ONLY_NUMPY
from tcompile.graph import Node
from tcompile.graph.ops.opaque import resolve
from tcompile.graph.sizes import is_one, product

HOLD_GIL_BELOW = 1 << 17  # multiply-adds that run with the GIL held, about a tenth of a millisecond
_ASKED_FLAGS = {"tc_clear_asked_flags": "void {}()", "tc_read_asked_flags": "i32 {}()"}
_LOCK = {
    "PyEval_SaveThread": "declare ptr @PyEval_SaveThread() nounwind",
    "PyEval_RestoreThread": "declare void @PyEval_RestoreThread(ptr) nounwind",
}


def admits(node: Node) -> bool:
    """Whether machine code can call NumPy's loop for a node."""
    routine = routine_of(node)
    if routine is None or node.tensor.dtype.name not in COMPUTED:
        return False
    return all(_loop(name, routine, node.tensor.dtype.char) for name in (routine.ufunc, routine.lone) if name)


@cache
def _loop(name: str, routine: Routine, char: str) -> int | None:
    """The address of the loop of a universal function."""
    if not native.has_inner_loops():
        return None
    try:
        ufunc = resolve(name)
    except (ImportError, AttributeError):
        return None
    return native.inner_loop(ufunc, f"{char * (len(routine.axes) - 1)}->{char}")


def write(module: Module, kernel: Kernel) -> KernelFunction:
    """The function of a kernel. As ``kernel(words, 0, 1)`` it holds the GIL and releases it for large work.

    ``kernel(words, 0, 2)`` is for callers without the GIL.
    """
    *loads, value = kernel.values
    routine: Routine = value.attrs["routine"]
    symbols = []
    for name in (routine.ufunc, *([routine.lone] if routine.lone else [])):
        address = _loop(name, routine, value.dtype.char)
        assert address is not None
        symbol = f"{name.replace('.', '_')}_{value.dtype.name}"  # bool's char is no name
        symbols.append(module.external(symbol, "void {}(ptr, ptr, ptr, ptr)", address))
    w, p = Writer(module), WordParameters()
    accesses = [*(load.access for load in loads), kernel.stores[0].access]
    _Call(w, p, kernel, [a for a in accesses if a is not None]).write(routine, *symbols)
    text = w.text(f"i32 @{kernel.name}(ptr noalias %words, i64 %begin, i64 %end)", "nounwind")
    return KernelFunction(kernel.name, text, p, (1,))


class _Call:
    """The call of a loop, under construction."""

    def __init__(self, w: Writer, p: WordParameters, kernel: Kernel, accesses: Sequence[Access]) -> None:
        self.w, self.p, self.kernel, self.accesses = w, p, kernel, accesses
        self.stack = len(kernel.axes) - len(kernel.values[-1].attrs["letters"])

    def write(self, routine: Routine, symbol: str, lone: str = "") -> None:
        """Emits the function: a loop over the outer axes of the stack; the innermost one is NumPy's."""
        w, count = self.w, len(self.accesses)
        letters = self.kernel.values[-1].attrs["letters"]
        inner = self.stack - 1 if self.stack else None
        arrays = w.slot("ptr", str(count), align=16)
        sizes = [1 if inner is None else self.kernel.axes[inner].size]
        sizes += [self.kernel.axes[letters[letter]].size for letter in routine.sizes]
        strides = ["0" if inner is None else self.stride(access, inner) for access in self.accesses]
        for access, core in zip(self.accesses, routine.axes, strict=True):
            strides += [self.stride(access, letters[letter]) for letter in core]
        sizes_at = self.table([self.p.size(w, size) for size in sizes])
        strides_at = self.table(strides)
        addresses = [self.base(access) for access in self.accesses]
        work = product(axis.size for axis in self.kernel.axes)
        free, kept = w.label("free"), w.label("kept")

        def call(addresses: Sequence[str]) -> None:
            for number, at in enumerate(addresses):
                w.do(f"store ptr {at}, ptr {w.get(f'getelementptr ptr, ptr {arrays}, i64 {number}')}")
            if not lone:
                w.do(f"call void {symbol}(ptr {arrays}, ptr {sizes_at}, ptr {strides_at}, ptr null)")
                return
            one, more, done = w.label("one"), w.label("more"), w.label("done")
            summed = self.p.size(w, self.kernel.axes[letters["k"]].size)
            w.do(f"br i1 {w.get(f'icmp eq i64 {summed}, 1')}, label %{one}, label %{more}")
            for label, name in ((one, lone), (more, symbol)):
                w.place(label)
                w.do(f"call void {name}(ptr {arrays}, ptr {sizes_at}, ptr {strides_at}, ptr null)")
                w.do(f"br label %{done}")
            w.place(done)

        half = self.kernel.values[-1].dtype == FLOAT16  # its conversions in C ask for the overflow flag
        if half:
            for name, signature in _ASKED_FLAGS.items():
                w.module.external(name, signature, native.shared()[name])

        def calls() -> str:
            w.do("call void @tc_clear_flags()")
            if half:
                w.do("call void @tc_clear_asked_flags()")
            self.stacks(addresses, 0, call)
            flags = w.get("call i32 @tc_read_flags()")
            if half:
                flags = w.get(f"or i32 {flags}, {w.get('call i32 @tc_read_asked_flags()')}")
            if not routine.raises:
                return flags
            invalid = w.get(f"icmp ne i32 {w.get(f'and i32 {flags}, {INVALID}')}, 0")
            return w.get(f"select i1 {invalid}, i32 {ONLY_NUMPY}, i32 0")

        start = f"br label %{kept}"
        small = isinstance(work, int) and work <= HOLD_GIL_BELOW
        if not small:
            for name, text in _LOCK.items():
                w.module.declare(name, text)
            w.module.symbols.update(native.symbols("\n".join(_LOCK.values())))
            large = w.at_entry(f"icmp sgt i64 {self.products()}, {HOLD_GIL_BELOW}")
            held = w.at_entry("icmp eq i64 %end, 1")
            lets_go = w.at_entry(f"and i1 {large}, {held}")
            start = f"br i1 {lets_go}, label %{free}, label %{kept}"
            w.place(free)
            thread = w.get("call ptr @PyEval_SaveThread()")
            status = calls()
            w.do(f"call void @PyEval_RestoreThread(ptr {thread})")
            w.do(f"ret i32 {status}")
        w.place(kept)
        w.do(f"ret i32 {calls()}")
        w.entry.append(f"  {start}")

    def products(self) -> str:
        """The number of multiply-adds, multiplied here: a loop's iterations take sizes, which have to be linear."""
        first, *others = [self.p.size(self.w, axis.size) for axis in self.kernel.axes]
        for other in others:
            first = self.w.at_entry(f"mul i64 {first}, {other}")
        return first

    def stacks(self, addresses: Sequence[str], axis: int, call: Callable[[Sequence[str]], None]) -> None:
        """Emits a call for each index along the outer axes of the stack."""
        if axis >= self.stack - 1:
            call(addresses)
            return
        w = self.w
        steps = [self.stride(access, axis) for access in self.accesses]

        def body(counter: str, carried: list[str]) -> list[str]:
            self.stacks(carried, axis + 1, call)
            pairs = zip(carried, steps, strict=True)
            return [w.get(f"getelementptr i8, ptr {at}, i64 {step}") for at, step in pairs]

        w.loop("0", self.p.size(w, self.kernel.axes[axis].size), "1", [("ptr", at) for at in addresses], body)

    def stride(self, access: Access, axis: int) -> str:
        """The stride of an axis in bytes; 0 along one of size one, as in NumPy."""
        if is_one(self.kernel.axes[axis].size):
            return "0"
        return self.p.bytes(self.w, access.steps[axis], access.buffer)

    def base(self, access: Access) -> str:
        """The address of an operand's first element."""
        pointer = self.p.pointer(self.w, access.buffer)
        offset = self.p.bytes(self.w, access.offset, access.buffer)
        return pointer if offset == "0" else self.w.at_entry(f"getelementptr i8, ptr {pointer}, i64 {offset}")

    def table(self, numbers: Sequence[str]) -> str:
        """The address of a table of these numbers."""
        at = self.w.slot("i64", str(len(numbers)), align=16)
        for place, number in enumerate(numbers):
            where = self.w.at_entry(f"getelementptr i64, ptr {at}, i64 {place}")
            self.w.entry.append(f"  store i64 {number}, ptr {where}")
        return at


__all__ = ["admits", "write"]
