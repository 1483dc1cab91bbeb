"""Vectorisation of innermost ranges in scalar loops.

Input: a range with independent iterations (``LoopNest.dependent_iterations``), whose body is one block with float
arithmetic and contiguous accesses.
Output: IR that does as many iterations as a vector has lanes.
Why: LLVM's passes, which find the same, take as long as all the rest of the compile.

Each lane does the same as the scalar block, in the same order, so values and floating-point flags are the same. Whether
lanes would read what others write is checked when a strip of the range begins. There, and for the remainder, the scalar
block runs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from tcompile.backends.llvm.scalar_loops.loop_nest import LoopNest
from tcompile.backends.llvm.scalar_loops.ranges import kind_bounds
from tcompile.backends.llvm.scalar_loops.values import is_extreme, is_stored_again, loaded
from tcompile.backends.llvm.vector.text import Module, Writer, literal, memory_type, scalar_type, splat, suffix
from tcompile.backends.schedule.kernel import static_elements
from tcompile.backends.schedule.scalar_loop_arrays import StridedArray
from tcompile.graph.dtypes import DType
from tcompile.graph.ops.scalar_blocks import affine
from tcompile.graph.ops.scalar_loop import COMPARISONS, common, dtype_of, is_numpy
from tcompile.records import dataclass

_BYTES = 64  # of a vector: two registers of AVX2, one of AVX-512
_FLOATS = {"+": "fadd", "-": "fsub", "*": "fmul"}
_BITS = {"&": "and", "|": "or", "^": "xor"}
_FLOAT_ORDER = {"<": "olt", "<=": "ole", "==": "oeq", "!=": "une", ">": "ogt", ">=": "oge"}
_INT_ORDER = {"<": "lt", "<=": "le", ">": "gt", ">=": "ge"}
_PLAIN = ("const", "size", "step")
_EXACT = 1 << 53  # ints up to this convert exactly to float


class _NotVectorisableError(Exception):
    """The iteration has an instruction that cannot be vectorised."""


@dataclass(frozen=True)
class VectorisableRange:
    """A range of which ``count`` iterations may run at once, by the number of its header.

    ``body`` is the block with the iteration. ``more`` has for each parameter of the header its value after an
    iteration, as a number added to the induction variable. ``outside`` are the registers from before the range that
    lanes use.
    """

    counter: int
    body: int
    count: int
    more: tuple[int, ...]
    outside: tuple[int, ...]


def vectorisable_range(
    shape: LoopNest, header: int, kinds: Sequence[str], arrays: Sequence[StridedArray]
) -> VectorisableRange | None:
    """The range of this header, where it can be vectorised; None otherwise."""
    made = shape.ranges.made
    counter, _, step = shape.strips[header]
    others = shape.bodies[header] - {header}
    if step != 1 or len(others) != 1:
        return None
    (body,) = others
    parameters, lines, end = shape.blocks[body]
    asks_only = all(line[0] in (*_PLAIN, "more", "hold") for line in shape.blocks[header][1])
    if parameters or end[0] not in ("jump", "back") or not asks_only:
        return None
    more = []
    for register in end[2]:
        base, far = affine(made, kinds, register)
        if made.get(base, ("",))[0] == "step":
            base, far = made[base][2], far + 1
        if base != counter:
            return None
        more.append(far)
    used = [line[2] for line in lines if line[0] in ("load", "store")]
    if any(static_elements(arrays[number].steps[-1]) != 1 for number in used):
        return None
    sizes = [arrays[number].type.dtype.itemsize for number in used]
    lanes = Lanes(Writer(Module()), shape, header, kinds, arrays, _BYTES // max(sizes))
    iterations = shape.ranges.iterations(header)
    if iterations is not None and iterations < lanes.count:
        return None
    try:
        lanes.write(lines, lambda _: "%place", {line[1]: "%once" for line in lines if line[0] == "load"})
    except _NotVectorisableError:
        return None
    return VectorisableRange(counter, body, lanes.count, tuple(more), tuple(lanes.outside))


class Lanes:
    """Emits the instructions of an iteration, for all lanes of a vector."""

    def __init__(
        self, w: Writer, shape: LoopNest, header: int, kinds: Sequence[str], arrays: Sequence[StridedArray], count: int
    ) -> None:
        self.w, self.kinds, self.arrays, self.count, self.kept = w, kinds, arrays, count, shape.kept
        self.made = shape.ranges.made
        self.inside = {line[1] for at in shape.bodies[header] for line in shape.blocks[at][1]}
        self.inside |= {register for at in shape.bodies[header] for register in shape.blocks[at][0]}
        self.found: dict[int, str] = {}
        self.outside: dict[int, None] = {}

    def type(self, dtype: DType) -> str:
        """The vector type of a dtype in registers."""
        return f"<{self.count} x {scalar_type(dtype)}>"

    def broadcast(self, value: str, dtype: DType) -> str:
        """A vector with one number in all lanes."""
        type, w = self.type(dtype), self.w
        first = w.get(f"insertelement {type} poison, {scalar_type(dtype)} {value}, i64 0")
        return w.get(f"shufflevector {type} {first}, {type} poison, <{self.count} x i32> zeroinitializer")

    def write(
        self, lines: Sequence[tuple[Any, ...]], place: Callable[[tuple[Any, ...]], str], once: Mapping[int, str]
    ) -> None:
        """Emits an iteration. ``place`` gives the address of an access in the first lane, ``once`` hoisted loads."""
        for number, line in enumerate(lines):
            name, result, *rest = line
            if name == "load" and result in once:
                self.found[result] = once[result]
            elif name == "load":
                self.found[result] = self._loaded(self.arrays[rest[0]].type.dtype, place(line))
            elif name == "store":
                dtype = self.arrays[rest[0]].type.dtype
                again = is_stored_again(line, lines[number + 1 :])
                self._store(dtype, self.given(rest[1], dtype), place(line), again)
            elif name not in _PLAIN and not self._is_index(result):
                dtype = dtype_of(self.kinds[result])
                self.found[result] = self._computed(name, dtype, rest)
                if result in self.kept:
                    slot = self.w.slot(self.type(dtype))
                    self.w.do(f"store volatile {self.type(dtype)} {self.found[result]}, ptr {slot}, align 64")

    def _is_index(self, register: int) -> bool:
        """Whether it is an int that is only part of an address: other uses are not vectorisable."""
        return affine(self.made, self.kinds, register)[0] != register

    def _loaded(self, dtype: DType, address: str) -> str:
        w = self.w
        found = w.get(f"load <{self.count} x {memory_type(dtype)}>, ptr {address}, align {dtype.itemsize}")
        if dtype.kind == "b":
            return w.get(f"icmp ne <{self.count} x i8> {found}, zeroinitializer")
        # LLVM would turn a select between a loaded value and another, stored at the same address, into a masked store,
        # which takes some 20 cycles on AMD's processors. A frozen value is not known to be loaded.
        return w.get(f"freeze {self.type(dtype)} {found}")

    def _store(self, dtype: DType, value: str, address: str, again: bool) -> None:
        w, how = self.w, "store volatile" if again else "store"
        if dtype.kind == "b":
            value = w.get(f"zext {self.type(dtype)} {value} to <{self.count} x i8>")
        w.do(f"{how} <{self.count} x {memory_type(dtype)}> {value}, ptr {address}, align {dtype.itemsize}")

    def given(self, register: int, dtype: DType) -> str:
        """A register in all lanes, as a dtype that holds it or as a float."""
        line = self.made.get(register, ("",))
        own = dtype_of(self.kinds[register])
        if line[0] == "const" and is_extreme(line[2]):
            raise _NotVectorisableError  # a folded result raises no flag
        if line[0] == "const":
            return splat(self.count, scalar_type(dtype), self._literal(line[2], own, dtype))
        if register not in self.found:
            if register in self.inside:
                raise _NotVectorisableError
            self.outside[register] = None
            self.found[register] = "%outside"
        value = self.found[register]
        if own == dtype:
            return value
        if own.kind != "f" or dtype.kind != "f":
            raise _NotVectorisableError
        how = "fpext" if dtype.itemsize > own.itemsize else "fptrunc"
        return self.w.get(f"{how} {self.type(own)} {value} to {self.type(dtype)}")

    @staticmethod
    def _literal(value: Any, own: DType, dtype: DType) -> str:
        bounds = kind_bounds(f"np.{dtype.name}") or (-_EXACT, _EXACT)
        if (dtype.kind in "biu" and own.kind != dtype.kind and (own.kind, dtype.kind) != ("i", "u")) or (
            own.kind in "iu" and not bounds[0] <= value <= bounds[1]
        ):
            raise _NotVectorisableError
        return literal(dtype, value)

    def _computed(self, name: str, dtype: DType, operands: Sequence[int]) -> str:
        w, type = self.w, self.type(dtype)
        if name == "select":
            condition, yes, no = (
                self.given(register, d) for register, d in zip(operands, (np.dtype("bool"), dtype, dtype), strict=True)
            )
            return w.get(f"select <{self.count} x i1> {condition}, {type} {yes}, {type} {no}")
        if name in COMPARISONS:
            return self._compared(name, *operands)
        if (name in _FLOATS and dtype.kind == "f") or (name in _BITS and dtype.kind == "b"):
            one, two = (self.given(register, dtype) for register in operands)
            return w.get(f"{(_FLOATS if dtype.kind == 'f' else _BITS)[name]} {type} {one}, {two}")
        if name in ("positive", "float", "np.float64") and dtype.kind == "f":
            return self.given(operands[0], dtype)
        if name == "bool":
            return self.given(operands[0], dtype)
        if name == "not" and dtype.kind == "b":
            return w.get(f"xor {type} {self.given(operands[0], dtype)}, {splat(self.count, 'i1', 'true')}")
        if name == "negative" and dtype.kind == "f":
            return w.get(f"fneg {type} {self.given(operands[0], dtype)}")
        if name in ("abs", "math.fabs", "np.sqrt") and dtype.kind == "f":
            which = f"@llvm.{'sqrt' if name == 'np.sqrt' else 'fabs'}.{suffix(self.count, scalar_type(dtype))}"
            w.module.declare(which, f"declare {type} {which}({type})")
            return w.get(f"call {type} {which}({type} {self.given(operands[0], dtype)})")
        raise _NotVectorisableError

    def _compared(self, sign: str, a: int, b: int) -> str:
        one, two = (dtype_of(self.kinds[register]) for register in (a, b))
        dtype = common(self.kinds[a], self.kinds[b]) if is_numpy(self.kinds[a]) or is_numpy(self.kinds[b]) else one
        if "f" in (one.kind, two.kind):
            dtype, how = (dtype if dtype.kind == "f" else two), f"fcmp {_FLOAT_ORDER[sign]}"
        elif sign in _INT_ORDER:
            how = f"icmp {'s' if dtype.kind == 'i' else 'u'}{_INT_ORDER[sign]}"
        else:
            how = f"icmp {'eq' if sign == '==' else 'ne'}"
        return self.w.get(f"{how} {self.type(dtype)} {self.given(a, dtype)}, {self.given(b, dtype)}")


class VectorStrips:
    """Emits the vectorised loop before a strip's scalar loop.

    ``element`` gives the address of an element, of the array with that number, in the iteration with the counter in
    ``registers``; ``same_memory`` tells whether two arrays share memory, ``apart`` whether a store and another access
    of one array have last indices that are never equal in different iterations of a strip.
    """

    def __init__(
        self,
        lanes: Lanes,
        plan: VectorisableRange,
        lines: Sequence[tuple[Any, ...]],
        registers: Mapping[int, str],
        element: Callable[[tuple[Any, ...]], str],
        same_memory: Callable[[int, int], bool],
        apart: Callable[[tuple[Any, ...], tuple[Any, ...]], bool],
    ) -> None:
        self.lanes, self.plan, self.lines, self.registers = lanes, plan, lines, registers
        self.w = lanes.w
        self.same_memory, self.apart = same_memory, apart
        touches = [line for line in lines if line[0] in ("load", "store")]
        self.places = {line: element(line) for line in touches}

    def moves(self, line: tuple[Any, ...]) -> bool:
        """Whether an access moves with the induction variable."""
        return affine(self.lanes.made, self.lanes.kinds, line[-1])[0] == self.plan.counter

    def may_run(self, iterations: str, conditions: Sequence[str]) -> str:
        """Whether the strip, of so many iterations, may be vectorised: no lane reads or writes what another one writes.

        ``conditions`` have to hold as well.
        """
        w = self.w
        may = w.get(f"icmp sge i64 {iterations}, {self.plan.count}")
        for condition in conditions:
            may = w.get(f"and i1 {may}, {condition}")
        asked: set[frozenset[str]] = set()
        for store in self.places:
            for other in self.places:
                pair = frozenset((self.places[store], self.places[other]))
                together = self.same_memory(store[2], other[2])
                if store[0] != "store" or not together or len(pair) < 2 or self._never_meet(store, other):
                    continue
                if pair not in asked:
                    asked.add(pair)
                    may = w.get(f"and i1 {may}, {self._apart(store, other, iterations)}")
        return may

    def _never_meet(self, store: tuple[Any, ...], other: tuple[Any, ...]) -> bool:
        """Whether these accesses never share an element in different iterations, whatever the other indices are."""
        known = self.lanes.arrays[store[2]].base.tensor.layout.dense  # so that each element has its own address
        return known and store[2] == other[2] and self.apart(store, other)

    def _apart(self, store: tuple[Any, ...], other: tuple[Any, ...], iterations: str) -> str:
        """Whether a store and another access never share an element in different iterations."""
        w = self.w
        span = w.get(f"mul i64 {iterations}, {self.lanes.arrays[store[2]].type.dtype.itemsize}")
        first, second = (w.get(f"ptrtoint ptr {self.places[line]} to i64") for line in (store, other))
        far = w.get(f"sub i64 {second}, {first}")
        if not self.moves(other):
            return w.get(f"icmp uge i64 {far}, {span}")
        # As unsigned numbers: far + span is at least two spans, or far less than zero.
        shifted, both = w.get(f"add i64 {far}, {span}"), w.get(f"shl i64 {span}, 1")
        beyond = w.get(f"icmp uge i64 {w.get(f'sub i64 {shifted}, 1')}, {w.get(f'sub i64 {both}, 1')}")
        return w.get(f"or i1 {beyond}, {w.get(f'icmp eq i64 {far}, 0')}")

    def run(self, iterations: str) -> str:
        """Emits the iterations that fill vectors, of so many; returns how many have been done."""
        w, lanes, count = self.w, self.lanes, self.plan.count
        for register in self.plan.outside:
            dtype = dtype_of(lanes.kinds[register])
            lanes.found[register] = lanes.broadcast(self.registers[register], dtype)
        once = {}
        for line, address in self.places.items():
            if line[0] == "load" and not self.moves(line):
                dtype = lanes.arrays[line[2]].type.dtype
                once[line[1]] = lanes.broadcast(loaded(w, dtype, address), dtype)
        whole = w.get(f"and i64 {iterations}, {-count}")

        def body(at: str, _: list[str]) -> list[str]:
            def place(line: tuple[Any, ...]) -> str:
                cell = memory_type(lanes.arrays[line[2]].type.dtype)
                return w.in_block(f"getelementptr {cell}, ptr {self.places[line]}, i64 {at}")

            lanes.write(self.lines, place, once)
            return []

        w.loop("0", whole, str(count), [], body)
        return whole


__all__ = ["Lanes", "VectorStrips", "VectorisableRange", "vectorisable_range"]
