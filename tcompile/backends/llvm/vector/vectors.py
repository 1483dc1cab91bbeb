"""Vector arithmetic on W lanes: the vocabulary of lowerings.

Input: register names with their dtypes.
Output: instructions in a ``Writer``.
Why: lowerings need not know vector widths or instruction sets.

A vector's type follows from the dtype; masks are vectors of ``i1``. Comparisons are quiet: a NaN lane gives false (true
for ``ne``) and raises no flag.
"""

from __future__ import annotations

import numpy as np

from tcompile.backends.llvm import native
from tcompile.backends.llvm.vector.text import Writer, cell_bits, cells, literal, scalar_type, splat, splat_of, suffix
from tcompile.graph.dtypes import DType

BOOL = np.dtype("bool")
INT32 = np.dtype("int32")
INT64 = np.dtype("int64")
FLOAT16 = np.dtype("float16")
FLOAT32 = np.dtype("float32")
FLOAT64 = np.dtype("float64")
_QUIET = frozenset({"oeq", "une", "uno"})  # predicates that raise no flag for NaN: the last tests one vector


class Vectors:
    """Emits instructions on vectors of ``lanes`` lanes."""

    def __init__(self, writer: Writer, lanes: int, status: str) -> None:
        self.w = writer
        self.lanes = lanes
        self.status = status

    def of(self, lanes: int) -> Vectors:
        """The same for vectors of another width."""
        return Vectors(self.w, lanes, self.status)

    # -- types and constants --------------------------------------------------------------------------------------
    def type(self, dtype: DType) -> str:
        """The vector type of a dtype."""
        return f"<{self.lanes * cells(dtype)} x {scalar_type(dtype)}>"

    def constant(self, dtype: DType, value: bool | int | float) -> str:
        """A constant in every lane."""
        return splat(self.lanes, scalar_type(dtype), literal(dtype, value))

    def spread(self, type: str, scalar: str) -> str:
        """Broadcasts a scalar register; ``type`` is the scalar's type."""
        vector = f"<{self.lanes} x {type}>"
        first = self.w.get(f"insertelement {vector} poison, {type} {scalar}, i64 0")
        return self.w.get(f"shufflevector {vector} {first}, {vector} poison, <{self.lanes} x i32> zeroinitializer")

    def widened(self, dtype: DType, one: str) -> str:
        """Broadcasts the lane of a vector of one."""
        return self.shuffle(scalar_type(dtype), one, [0] * self.lanes, count=1)

    # -- instructions ---------------------------------------------------------------------------------------------
    def op(self, name: str, dtype: DType, a: str, b: str | None = None) -> str:
        """A plain instruction, such as ``fadd``, on one dtype."""
        if name in ("fadd", "fsub", "fmul", "fdiv"):
            assert b is not None
            return self._strict(name, dtype, dtype, a, b)
        return self.w.get(f"{name} {self.type(dtype)} {a}" + (f", {b}" if b is not None else ""))

    def call(self, name: str, dtype: DType, *operands: str, extra: str = "") -> str:
        """An LLVM intrinsic, such as ``sqrt``, overloaded on one dtype."""
        type = self.type(dtype)
        full = f"@llvm.{name}.{suffix(self.lanes, scalar_type(dtype))}"
        kinds = ", ".join([type] * len(operands)) + (", i1" if extra else "")
        self.w.module.declare(full, f"declare {type} {full}({kinds})")
        given = ", ".join(f"{type} {operand}" for operand in operands) + extra
        return self.w.get(f"call {type} {full}({given})")

    def compare(self, sign: str, dtype: DType, a: str, b: str) -> str:
        """``eq ne lt le gt ge``; a mask."""
        if dtype.kind == "f":
            if sign in ("eq", "ne"):  # these are quiet without help
                return self.w.get(f"fcmp {'oeq' if sign == 'eq' else 'une'} {self.type(dtype)} {a}, {b}")
            return self.quiet("o" + sign, dtype, a, b)
        if sign not in ("eq", "ne"):
            sign = ("s" if dtype.kind == "i" else "u") + sign
        return self.w.get(f"icmp {sign} {self.type(dtype)} {a}, {b}")

    def quiet(self, predicate: str, dtype: DType, a: str, b: str) -> str:
        """A float comparison with one of LLVM's predicates (``olt``, ``ugt``, …) that raises no flag for NaN."""
        return self._compare_floats("fcmp", predicate, dtype, a, b)

    def signalling(self, predicate: str, dtype: DType, a: str, b: str) -> str:
        """A float comparison that raises the invalid flag for NaN, as C's ``<`` does."""
        return self._compare_floats("fcmps", predicate, dtype, a, b)

    def _compare_floats(self, intrinsic: str, predicate: str, dtype: DType, a: str, b: str) -> str:
        type = self.type(dtype)
        if self.lanes > 1 and native.machine().has_extremes:
            if intrinsic == "fcmps" or predicate in _QUIET:
                return self.w.get(f"fcmp {predicate} {type} {a}, {b}")
            return self._compare_extremes(predicate, dtype, a, b)
        mask = f"<{self.lanes} x i1>"
        name = f"@llvm.experimental.constrained.{intrinsic}.{suffix(self.lanes, scalar_type(dtype))}"
        self.w.module.declare(name, f"declare {mask} {name}({type}, {type}, metadata, metadata)")
        return self.w.get(
            f'call {mask} {name}({type} {a}, {type} {b}, metadata !"{predicate}", metadata !"fpexcept.strict") strictfp'
        )

    def _compare_extremes(self, predicate: str, dtype: DType, a: str, b: str) -> str:
        """A comparison by equality alone: the first number is not less where it is the larger of the two.

        NaN is equal to nothing.
        """
        ordered, sign = predicate[0] == "o", predicate[1:]
        extreme = self.call("maximum" if sign in ("ge", "lt") else "minimum", dtype, a, b)
        reached = self.w.get(f"fcmp oeq {self.type(dtype)} {extreme}, {a}")
        if sign in ("ge", "le"):
            return reached if ordered else self.mask("or", reached, self.is_nan(dtype, extreme))
        beyond = self.negate(reached)
        return self.mask("and", beyond, self.negate(self.is_nan(dtype, extreme))) if ordered else beyond

    def is_nan(self, dtype: DType, a: str) -> str:
        """The mask of NaN lanes."""
        return self.w.get(f"fcmp uno {self.type(dtype)} {a}, {a}")

    def pick(self, mask: str, dtype: DType, yes: str, no: str) -> str:
        """Lane by lane, ``yes`` where the mask is set."""
        type = self.type(dtype)
        return self.w.get(f"select <{self.lanes} x i1> {mask}, {type} {yes}, {type} {no}")

    def mask(self, name: str, a: str, b: str) -> str:
        """``and``, ``or`` or ``xor`` of masks."""
        return self.w.get(f"{name} <{self.lanes} x i1> {a}, {b}")

    def negate(self, mask: str) -> str:
        """The complement of a mask."""
        return self.mask("xor", mask, splat(self.lanes, "i1", "true"))

    def _strict(self, name: str, source: DType, target: DType, *operands: str) -> str:
        """Float arithmetic that LLVM must not fold, so that its flags are raised at run time.

        For SVE, LLVM lacks such arithmetic, and would go lane by lane. Plain arithmetic it folds only for constants.
        """
        if native.machine().scales_registers and not all(splat_of(operand) is not None for operand in operands):
            if name in ("sqrt", "fma"):
                return self.call(name, target, *operands)
            if source == target:
                return self.w.get(f"{name} {self.type(target)} {', '.join(operands)}")
            return self.w.get(f"{name} {self.type(source)} {operands[0]} to {self.type(target)}")
        given, type = self.type(source), self.type(target)
        lanes = suffix(self.lanes, scalar_type(target))
        if source != target:
            lanes += "." + suffix(self.lanes, scalar_type(source))
        full = f"@llvm.experimental.constrained.{name}.{lanes}"
        kinds = ", ".join([given] * len(operands))
        self.w.module.declare(full, f"declare {type} {full}({kinds}, metadata, metadata)")
        arguments = ", ".join(f"{given} {operand}" for operand in operands)
        return self.w.get(
            f'call {type} {full}({arguments}, metadata !"round.tonearest", metadata !"fpexcept.strict") strictfp'
        )

    def sqrt(self, dtype: DType, a: str) -> str:
        """The square root, with the invalid flag where it is raised."""
        return self._strict("sqrt", dtype, dtype, a)

    def fma(self, dtype: DType, a: str, b: str, c: str) -> str:
        """``a * b + c``, rounded once, with its flags."""
        return self._strict("fma", dtype, dtype, a, b, c)

    def from_half(self, a: str) -> str:
        """Half precision as float32."""
        half = self.w.get(f"bitcast <{self.lanes} x i16> {a} to <{self.lanes} x half>")
        return self.w.get(f"fpext <{self.lanes} x half> {half} to {self.type(FLOAT32)}")

    def to_half(self, a: str) -> str:
        """Converts float32 to half precision, with its flags.

        Never wider than the processor's instruction: LLVM aborts the process otherwise.
        """
        most = 16 if native.machine().scales_vectors else 8
        n = min(self.lanes, most)
        type, result = f"<{n} x float>", f"<{n} x half>"
        name = f"@llvm.experimental.constrained.fptrunc.v{n}f16.v{n}f32"
        self.w.module.declare(name, f"declare {result} {name}({type}, metadata, metadata)")
        parts = []
        for start in range(0, self.lanes, n):
            part = a if n == self.lanes else self.shuffle("float", a, list(range(start, start + n)))
            half = self.w.get(
                f'call {result} {name}({type} {part}, metadata !"round.tonearest", '
                'metadata !"fpexcept.strict") strictfp'
            )
            parts.append(self.w.get(f"bitcast {result} {half} to <{n} x i16>"))
        while len(parts) > 1:
            pairs = zip(parts[::2], parts[1::2], strict=True)
            parts = [self.shuffle("i16", x, list(range(2 * n)), y, n) for x, y in pairs]
            n *= 2
        return parts[0]

    def shuffle(self, cell: str, a: str, wanted: list[int], b: str | None = None, count: int | None = None) -> str:
        """The cells of ``a``, then those of ``b``, that ``wanted`` numbers; each vector has ``count`` cells."""
        type = f"<{count or self.lanes} x {cell}>"
        mask = ", ".join(f"i32 {i}" for i in wanted)
        return self.w.get(f"shufflevector {type} {a}, {type} {b or 'poison'}, <{len(wanted)} x i32> <{mask}>")

    def opaque(self, cell: str, a: str) -> str:
        """The same vector, hidden from LLVM's search for better instructions.

        Where the vector is no register of this processor, or of another kind of processor: ``a`` itself.
        """
        machine, bits = native.machine(), self.lanes * cell_bits(cell)
        if not machine.triple.startswith("x86_64") or not 128 <= bits <= machine.vector_bits:
            return a
        type, kind = f"<{self.lanes} x {cell}>", "v" if machine.masks_bytes else "x"
        return self.w.get(f'call {type} asm "", "={kind},0"({type} {a})')

    def convert(self, name: str, a: str, source: DType, target: DType) -> str:
        """A conversion instruction, such as ``sitofp``."""
        if name == "fptrunc":
            return self._strict(name, source, target, a)
        return self.w.get(f"{name} {self.type(source)} {a} to {self.type(target)}")

    def bits(self, dtype: DType, a: str) -> tuple[str, DType]:
        """The bits of a float vector as integers."""
        integer = INT32 if dtype == FLOAT32 else INT64
        return self.convert("bitcast", a, dtype, integer), integer

    def any(self, mask: str) -> str:
        """Whether any lane of a mask is set, as an ``i1``."""
        packed = self.w.get(f"bitcast <{self.lanes} x i1> {mask} to i{self.lanes}")
        return self.w.get(f"icmp ne i{self.lanes} {packed}, 0")

    def report(self, mask: str, bit: int) -> None:
        """Sets a status bit where any lane of the mask is set."""
        some = self.any(mask)
        yes, on = self.w.label("report"), self.w.label("on")
        self.w.branch(some, yes, on)
        self.w.place(yes)
        old = self.w.get(f"load i32, ptr {self.status}")
        new = self.w.get(f"or i32 {old}, {bit}")
        self.w.do(f"store i32 {new}, ptr {self.status}")
        self.w.jump(on)
        self.w.place(on)
