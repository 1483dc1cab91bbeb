"""Scans: cumulative sums and products, a few rows per program, block by block.

Input: a ``Kernel`` of form ``scan_rows`` or ``scan_columns``, with one value ``along``.
Output: its functions.
Why: a block is scanned as a tree, in parallel.

The carry from before a block is added to it: sums of float32 in float64, as reductions do. Products of floats are
computed one after the other, in NumPy's order, since a product that underflows stays zero; these are kernels only where
there are enough rows to process in parallel. A few long rows are split: a first function stores the total of every
part, a second one begins each part with the totals before it.
"""

from __future__ import annotations

from tcompile.backends.schedule import Kernel, KernelValue
from tcompile.backends.schedule.kernel import Form
from tcompile.backends.schedule.kernel_ops import ALONG, REDUCE
from tcompile.backends.triton.configs import CARRIED, USUAL, TilingConfig
from tcompile.backends.triton.names import full, literal, type_of
from tcompile.backends.triton.reductions import BlockReduction
from tcompile.backends.triton.rows import Rows, SharedRows
from tcompile.backends.triton.text import TritonFunction, power_of_two
from tcompile.graph import Node, ops
from tcompile.graph.sizes import hint, product

SQUARE = 64  # elements of a column per block, where memory is contiguous along the rows
ENOUGH_ROWS = 256  # that are processed in parallel
_OPS = {"cumulative_sum": ("sum", "+"), "cumulative_prod": ("prod", "*")}
SCANS = frozenset(_OPS)


def admits(node: Node) -> bool:
    """Whether a scan is worth a kernel."""
    if node.op is not ops.CUMULATIVE_PROD or node.tensor.dtype.kind != "f":
        return True
    return hint(product(n for i, n in enumerate(node.tensor.shape) if i != node.attrs["axis"])) >= ENOUGH_ROWS


def write(kernel: Kernel, signals: bool, taken: frozenset[str], config: TilingConfig) -> list[TritonFunction]:
    """The functions of a scan."""
    scan = Scan(kernel, signals, taken, config)
    if scan.is_shared_out and not scan.in_order:
        totals = SharedRows(_totals(kernel, scan.total), signals, taken, config)
        return [totals.write(), Following(kernel, signals, taken, config).write()]
    return [scan.write()]


def _totals(kernel: Kernel, total: KernelValue) -> Kernel:
    """The kernel of the total of each row in place of the scan."""
    values = [value for value in kernel.values if value.op is not ALONG]
    form: Form = "columns" if kernel.form == "scan_columns" else "rows"
    return Kernel(f"{kernel.name}_totals", form, kernel.axes, [*values, total], [], kernel.nodes)


class Scan(Rows):
    """A few rows a program."""

    def __init__(self, kernel: Kernel, signals: bool, taken: frozenset[str], config: TilingConfig = USUAL) -> None:
        super().__init__(kernel, signals, taken, config)
        (self.value,) = (value for value in kernel.values if value.op is ALONG)
        name, self.sign = _OPS[self.value.attrs["op"]]
        is_float = self.value.dtype.kind == "f"
        # The carry before the first element is the identity; zeros keep their sign.
        attrs = {"op": name, "start": -0.0} if is_float and name == "sum" else {"op": name}
        kept = frozenset(kernel.kept)
        self.total = KernelValue(REDUCE, self.value.operands, self.value.dtype, kept, self.value.node, attrs)
        self.kind = self.kinds[self.total] = BlockReduction(self.total, signals)
        self.in_order = is_float and name == "prod"
        self.side_by_side |= self.in_order
        self.unroll_factor = config.elements // CARRIED
        narrow = kernel.form == "scan_rows" or hint(self.row) <= SQUARE
        self.whole = self.whole and narrow and not self.in_order
        self.carry = self.accumulator(self.total)

    def columns(self) -> int:
        """The number of elements of a row that a program takes at a time."""
        if self.in_order:
            return 1
        if self.kernel.form == "scan_columns":
            return min(SQUARE, power_of_two(hint(self.row)))
        return super().columns()

    def walk(self, number: int, steps: str, column: str) -> None:
        """Emits a pass over rows, block by block, with the carry."""
        self.begin()
        super().walk(number, steps, column)

    def begin(self) -> None:
        """Emits the initial carry of a row."""
        for part in self.kind.parts:
            if not part.is_rounding:
                start = literal(part.start, part.dtype)
                self.line(f"{self.carry}{part.suffix} = tl.full([ROWS, 1], {start}, {type_of(part.dtype)})")

    def compute(self, value: KernelValue) -> None:
        """Emits a value's lines, unless it has a register."""
        if value is not self.value or value in self.registers:
            super().compute(value)
            return
        assert value.node is not None
        self.note(value.node.location)
        name = self.parameters.fresh(value.node.name)
        scanned = self.parameters.fresh(f"{name}_all")
        lifted = self.kind.lift(str(self.real(value.values[0])), "inside")
        how = {"sum": ("sums_along", self.sign), "product": ("products_along", self.sign), "bits": ("bits_along", "|")}
        for part, text in zip(self.kind.parts, lifted, strict=True):
            if not part.is_rounding:
                function, sign = how[part.how]
                zero = full(-0.0 if part.dtype.kind == "f" else 0, part.dtype)
                self.scan(f"{scanned}{part.suffix}", f"{self.carry}{part.suffix}", function, sign, text, zero)
        narrower = self.kind.parts[0].dtype != value.dtype
        self.line(f"{name} = {scanned}.to({type_of(value.dtype)})" if narrower else f"{name} = {scanned}")
        flags = self.kind.flags(scanned, name)
        self.flag(flags if self.in_order or not flags else f"flags_on_the_way({flags})")
        self.registers[value] = name

    def scan(self, scanned: str, carry: str, function: str, sign: str, element: str, zero: str) -> None:
        """Emits the scan of a block of ``element``, and the carry for the next block."""
        if self.in_order:
            self.line(f"{carry} = {carry} {sign} {element}")
            self.line(f"{scanned} = {carry}")
            return
        self.line(f"{scanned} = {function}({element})")
        if not self.whole:
            self.line(f"{scanned} = {carry} {sign} {scanned}")
            self.line(f"{carry} = last_of({scanned}, {zero}, COLUMNS)")


class Following(Scan):
    """Split rows: each part begins with the totals of those before it."""

    def write(self) -> TritonFunction:
        """The function."""
        grid = self.place_part()
        self.place_pieces()
        self.once_a_row(0)
        self.merge_parts([self.total], 0, "part")
        self.walk_part()
        self.report_all()
        return self.function(self.kernel.name, grid, row=self.row)

    def begin(self) -> None:
        """Emits the totals of the parts before."""
        if self.kind.is_compensated:
            self.line(f"{self.carry} = with_error({self.carry}, {self.carry}_error)")


__all__ = ["SCANS", "admits", "write"]
