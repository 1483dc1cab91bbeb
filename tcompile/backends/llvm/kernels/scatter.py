"""Scatters: loops that write to computed places, one point after the other.

Input: a kernel of form ``scatter``: one store, of a ``scatter``.
Output: its function, which one thread runs.
Why: the order of writes is NumPy's, and a replay finds the array unchanged.

All indices are checked before the first write; where one is out of range nothing is written, as in NumPy. Where
combining floats raises a flag, the old elements are restored, last one first, from an array in which they were saved.
So a kernel that reports anything has written nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tcompile.backends.llvm.kernels import pointwise
from tcompile.backends.llvm.kernels.elements import Elements, VectorPosition
from tcompile.backends.llvm.kernels.nest import KernelFunction, Nest
from tcompile.backends.llvm.vector.text import Module, element_type
from tcompile.backends.llvm.vector.vectors import Vectors
from tcompile.backends.schedule import Kernel, KernelValue, Store
from tcompile.backends.schedule.kernel import needed, static_elements
from tcompile.backends.status import ONLY_NUMPY
from tcompile.graph.op import Op, op_named

_KEPT = "kept"  # the array of saved elements


class ScatterNest(Nest):
    """A nest over the points in order: vectorised where the innermost axis is contiguous at each place."""

    def __init__(self, module: Module, kernel: Kernel) -> None:
        super().__init__(module, kernel, ())
        self.wide = self.v, self.elements, self.lanes
        (self.store,) = kernel.stores
        self.value: KernelValue = self.store.value
        self.indices = self.value.values[-len(self.value.attrs["sizes"]) :]
        self.last = len(kernel.axes) - 1
        self.counted = sorted(
            frozenset().union(*(index.axes for index in self.indices))
        )  # axes along which places change
        lies_in_one_piece = self.last >= 0 and static_elements(self.store.access.steps[self.last]) == 1
        one = Vectors(self.w, 1, self.status)
        self.single = Elements(self.w, one, self.parameters)
        is_along = self.last not in self.counted and lies_in_one_piece
        self.narrow = self.wide if is_along else (one, self.single, 1)

    @property
    def how(self) -> Op | None:
        """The function that combines elements; None where they are replaced."""
        name = self.value.attrs["how"]
        return None if name is None else op_named(name)

    @property
    def signals(self) -> bool:
        """Whether combining elements may raise a flag."""
        return self.how is not None and self.value.dtype.kind == "f"

    def places(self) -> KernelFunction:
        """The function."""
        w = self.w
        self.begin()
        self.v, self.elements, self.lanes = self.wide
        self._walk(self.counted, self._look, reaches=False)
        self.v, self.elements, self.lanes = self.narrow
        write, leave = w.label("write"), w.label("leave")
        w.branch(w.get(f"icmp eq i32 {w.get(f'load i32, ptr {self.status}')}, 0"), write, leave)
        w.place(write)
        self._walk(range(self.last + 1), self._write)
        if self.signals:
            undo = w.label("undo")
            w.branch(w.get(f"icmp eq i32 {w.get('call i32 @tc_read_flags()')}, 0"), leave, undo)
            w.place(undo)
            w.do(f"store i32 {ONLY_NUMPY}, ptr {self.status}")
            self._walk(range(self.last + 1), self._put_back, backwards=True)
        w.jump(leave)
        w.place(leave)
        sizes = tuple(axis.size for axis in self.kernel.axes)
        return self.finish(self.kernel.name, sizes if self.signals else (1,), partial_words=int(self.signals))

    def _walk(
        self,
        axes: Sequence[int],
        body: Callable[[VectorPosition, str], None],
        reaches: bool = True,
        backwards: bool = False,
    ) -> None:
        """The loops over ``axes``, vectorised along the last one of all, where possible.

        ``body`` gets, where it ``reaches``, the address of a point's place, or of that of a vector's row.
        """
        w, last = self.w, self.last

        def level(depth: int, counters: dict[int, str]) -> None:
            here = VectorPosition(self.further(self.base, counters), counters)
            if depth == len(axes):
                body(here, self._start(here) if reaches else "")
                return
            axis = axes[depth]
            size = self.size(axis)
            start = self._start(here) if axis == last and self.lanes > 1 and reaches else ""

            def turn(i: str) -> None:
                if axis == last and self.lanes > 1:
                    rest, whole = w.get(f"sub i64 {size}, {i}"), self.whole(self.kernel.axes[axis].size)
                    body(VectorPosition(here.address, counters, axis, i, rest, whole), start)
                    return
                at = w.get(f"sub i64 {w.get(f'sub i64 {size}, 1')}, {i}") if backwards else i
                level(depth + 1, {**counters, axis: at})

            self.repeat("0", size, str(self.lanes) if axis == last else "1", turn)

        level(0, {})

    def _start(self, place: VectorPosition) -> str:
        """The address of a point's place; where its axis is vectorised, of the first one."""
        registers, _ = self.single.write(place, needed(self.kernel.values, self.indices), {})
        distances, _ = self.single.places(self.value, self.indices, self.store.access, registers)
        distance = self.w.get(f"extractelement <1 x i64> {distances}, i64 0")
        return self.w.get(f"getelementptr i8, ptr {place.address(self.store.access)}, i64 {distance}")

    def _look(self, place: VectorPosition, start: str) -> None:
        """Reports indices that are out of range."""
        registers, _ = self.elements.write(place, needed(self.kernel.values, self.indices), {})
        _, valid = self.elements.places(self.value, self.indices, self.store.access, registers)
        self.v.report(self.v.negate(valid), ONLY_NUMPY)

    def _at(self, place: VectorPosition, start: str) -> str:
        if place.axis is None:
            return start
        return self.w.reach(start, element_type(self.value.dtype), place.index)

    def _load(self, address: str, mask: str | None) -> str:
        dtype, w = self.value.dtype, self.w
        if mask is None:
            return self.elements.truth(dtype, w.get(f"load {self.elements.memory(dtype)}, ptr {address}, align 1"))
        return self.elements.truth(dtype, self.elements.masked_load(dtype, address, mask))

    def _kept(self, place: VectorPosition) -> str:
        """The address of the saved element of a point, and of those beside it."""
        number, step = "0", "1"
        for axis in range(self.last, -1, -1):
            counter = place.index if axis == place.axis else place.counters[axis]
            number = self.w.get(f"add i64 {number}, {self.w.get(f'mul i64 {counter}, {step}')}")
            step = self.w.get(f"mul i64 {step}, {self.size(axis)}")
        pointer = self.parameters.named_pointer(self.w, _KEPT)
        return self.w.get(f"getelementptr {element_type(self.value.dtype)}, ptr {pointer}, i64 {number}")

    def _write(self, place: VectorPosition, start: str) -> None:
        """Emits the write of one point, or of a vector of adjacent points at one place."""
        dtype, written, address = self.value.dtype, self.value.operands[0], self._at(place, start)
        given = [written] if isinstance(written, KernelValue) else []
        registers, mask = self.elements.write(place, needed(self.kernel.values, given), {})
        made = registers[written] if isinstance(written, KernelValue) else self.v.constant(dtype, written)
        straight: list[tuple[Store, str, str]] = []
        if self.how is not None:
            old = self._load(address, mask)
            if self.signals:
                straight.append((self.store, self.elements.bytes_of(dtype, old), self._kept(place)))
            made = pointwise.emit(self.v, self.how, dtype, dtype, [old, made])
        straight.append((self.store, self.elements.bytes_of(dtype, made), address))
        self.elements.store_straight(straight, place, mask)

    def _put_back(self, place: VectorPosition, start: str) -> None:
        """Restores the old elements of a point, or of a vector of points."""
        _, mask = self.elements.write(place, [], {})
        old = self._load(self._kept(place), mask)
        stored = self.elements.bytes_of(self.value.dtype, old)
        self.elements.store_straight([(self.store, stored, self._at(place, start))], place, mask)


__all__ = ["ScatterNest"]
