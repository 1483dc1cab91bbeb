"""Kernels with reduced axes: each program takes a few rows.

Input: a ``Kernel``.
Output: its functions.
Why: a row that fits is held in registers, so that softmax reads it once.

A longer row is processed block by block, once for every pass (``Stages``). Rows with strided elements are adjacent in
memory: a program takes many of them, so that its loads are coalesced. Where that makes few programs with much work, the
rows are split: each pass is a function of its own (``SharedRows``), whose programs store their accumulators, and begin
by merging those of the passes before. Values with one element per row are computed by the last program that finishes a
part of that row.
"""

from __future__ import annotations

from tcompile.backends.schedule import Access, Kernel, KernelValue
from tcompile.backends.schedule.kernel import size_of
from tcompile.backends.schedule.stages import Stages
from tcompile.backends.triton import moments
from tcompile.backends.triton.configs import (
    ADJACENT,
    CARRIED,
    FEW_PROGRAMS,
    IN_REGISTERS,
    LEAST_PART,
    MANY_PROGRAMS,
    MOST_PROGRAMS,
    MOST_ROWS,
    SIDE_BY_SIDE,
    USUAL,
    WITH_MOMENTS,
    TilingConfig,
)
from tcompile.backends.triton.names import literal
from tcompile.backends.triton.reductions import Moments
from tcompile.backends.triton.text import Grid, Partial, Text, TritonFunction, power_of_two
from tcompile.graph import Size
from tcompile.graph.sizes import hint, may_be_empty


def _is_zero(size: Size) -> bool:
    return isinstance(size, int) and size == 0


class Rows(Text):
    """A few rows a program."""

    def __init__(self, kernel: Kernel, signals: bool, taken: frozenset[str], config: TilingConfig = USUAL) -> None:
        super().__init__(kernel, signals, taken, config)
        self.stages = Stages(kernel, frozenset(kernel.kept))
        self.row = size_of([kernel.axes[a] for a in kernel.reduced])
        self.rows = size_of([kernel.axes[a] for a in kernel.kept])
        self.unroll_factor = config.elements // power_of_two(
            max(map(self._carried, range(self.stages.passes)), default=1)
        )
        self.side_by_side = kernel.form in ("columns", "scan_columns")
        # Reading rows again costs more than reading fewer adjacent ones.
        self.least = 1 if not self.side_by_side else ADJACENT if self.stages.passes > 1 else config.rows
        self.whole = isinstance(self.row, int) and power_of_two(self.row) * self.least <= IN_REGISTERS
        self.walks_last = False  # now, over rows that are not read again

    def mask(self, axes: frozenset[int]) -> str:
        """The mask of an access: by whether it moves from row to row, and along a row."""
        moves, runs = bool(axes & set(self.kernel.kept)), bool(axes & set(self.kernel.reduced))
        return "inside" if moves and runs else "in_rows" if moves else "in_row" if runs else ""

    def reads_once(self, access: Access) -> bool:
        """Whether long rows are read for the last time: then they need not stay in the cache.

        A kernel without stores precedes another one that reads the same.
        """
        if not self.walks_last or not self.kernel.stores:
            return False
        every = frozenset(range(len(self.kernel.axes)))
        reads = [v for v in self.kernel.values if v.access is not None and v.access.buffer is access.buffer]
        return access.axes == every and sum(v.access.axes == every for v in reads if v.access) == 1

    @property
    def together(self) -> int:
        """The number of rows that a program processes at once.

        More where blocks have moments, which are reduced across threads in each iteration.
        """
        has_moments = any(isinstance(kind, Moments) for kind in self.kinds.values())
        most = self.config.rows * (WITH_MOMENTS if has_moments else 1)
        return min(most, power_of_two(hint(self.rows))) if self.side_by_side else 1

    @property
    def is_shared_out(self) -> bool:
        """Whether rows are split, since too few programs would have too much work.

        Empty rows have no parts, which could not report anything.
        """
        if self.whole or (self.signals and may_be_empty([self.row])):
            return False
        return self._programs() < FEW_PROGRAMS and hint(self.row) >= 2 * self.chunk

    @property
    def chunk(self) -> int:
        """The number of elements of a split row per program."""
        chunk = self.config.chunk * (SIDE_BY_SIDE if self.side_by_side else 1)
        chunk = max(chunk, self.config.elements) // self.together
        programs, row = self._programs(), hint(self.row)
        while programs * -(-row // chunk) > MOST_PROGRAMS:
            chunk *= 2
        while programs * -(-row // chunk) < FEW_PROGRAMS and chunk * self.together > LEAST_PART:
            chunk //= 2
        return chunk

    def _carried(self, number: int) -> int:
        """The number of accumulators of a pass per element that a program takes at once."""
        kinds = [self.kinds[reduce] for reduce in self.stages.reductions(number)]
        return sum(CARRIED if kind.is_compensated else 1 for kind in kinds if not isinstance(kind, Moments))

    def clear(self, reduce: KernelValue, shape: str) -> None:
        """Emits the accumulators of a reduction before the first element."""
        super().clear(reduce, "[ROWS, 1]" if isinstance(self.kinds[reduce], Moments) else shape)

    def _programs(self) -> int:
        return -(-hint(self.rows) // self.together)

    def place_rows(self, program: str = "tl.program_id(0)") -> Grid:
        """Emits the rows of this program."""
        columns = self.columns()
        most = min(MOST_ROWS, max(self.least, self.config.elements // columns)) if self.whole else self.together
        count = min(most, power_of_two(hint(self.rows)))
        while self.whole and count > self.least and hint(self.rows) < MANY_PROGRAMS * count:
            count //= 2
        self.blocks.append(("ROWS", count))
        before = f"({program}).to(INDEX) * ROWS + " if program else ""
        self.line(f"row = ({before}tl.arange(0, ROWS)).to(INDEX)[:, None]")
        self.line(f"in_rows = row < {self.parameters.size(self.rows)}")
        if self.kernel.kept:
            self.split("row", self.kernel.kept)
        self.begun = len(self.lines)
        return ((self.rows, count),)

    def place_columns(self, text: str) -> None:
        """Emits the elements of the rows in this block."""
        self.line(f"column = ({text}).to(INDEX)")
        self.line(f"in_row = column < {self.parameters.size(self.row)}")
        self.line("inside = in_rows & in_row")
        self.split("column", self.kernel.reduced)

    def columns(self) -> int:
        """The number of elements of a row that a program takes at a time."""
        row = power_of_two(hint(self.row))
        return row if self.whole else min(max(1, self.unroll_factor // self.together), row)

    def write(self) -> TritonFunction:
        """The function."""
        grid = self.place_rows()
        self.blocks.append(("COLUMNS", self.columns()))
        passes = self.stages.passes
        if self.whole:
            self.place_columns("tl.arange(0, COLUMNS)[None, :]")
        for number in range(passes + 1):
            self.once_a_row(number)
            if number < passes:
                if self.whole:
                    self.one_pass(number)
                else:
                    steps = f"range(0, {self.parameters.size(self.row)}, COLUMNS)"
                    self.walk(number, steps, "start + tl.arange(0, COLUMNS)[None, :]")
                for reduce in self.stages.reductions(number):
                    self.finish(reduce, errors=not self.whole)
        self.report_all()
        return self.function(self.kernel.name, grid, row=self.row, per_warp=256 // self.words if self.whole else 256)

    def report_all(self) -> None:
        """Emits the report of flags of row values, and of passes."""
        found = ["row_found = tl.full([ROWS, 1], 0, tl.int32)", "flags_found = tl.full([ROWS, COLUMNS], 0, tl.int32)"]
        if self.any_flags:
            self.lines[self.begun : self.begun] = [f"    {line}" for line in found]
        self.report(["tl.where(in_rows, row_found, 0)", "flags_found"])

    def place_part(self, backwards: bool = False) -> Grid:
        """Emits the rows of this program, and which part of them, where rows are split.

        The elements read last are still in the cache: the next pass begins with them (``backwards``).
        """
        self.whole = False
        across = self.count(self.rows, self.together)
        self.line("program = tl.program_id(0).to(INDEX)")
        several = across != "1"
        self.line(f"part = program // {across}" if several else "part = program")
        if backwards:
            self.line(f"part = {self.parameters.count()} - 1 - part")
        self.block_of_rows = f"program % {across}" if several else ""
        grid = self.place_rows(self.block_of_rows)
        self.blocks += [("COLUMNS", min(self.columns(), self.chunk)), ("CHUNK", self.chunk)]
        self.line("first = part * CHUNK")
        return *grid, None

    def walk_part(self, number: int = 0, backwards: bool = False) -> None:
        """Emits the pass over a part."""
        begins = "first + CHUNK - COLUMNS - start" if backwards else "first + start"
        self.walk(number, "range(0, CHUNK, COLUMNS)", f"{begins} + tl.arange(0, COLUMNS)[None, :]")

    def once_a_row(self, number: int, stores: bool = True) -> None:
        """Emits the row values before a pass."""
        self.flagged = "row_found"
        for value in self.stages.row_values(number):
            self.compute(value)
        for store in self.stages.row_stores(number) if stores else ():
            self.store(store)

    def elements(self, number: int) -> None:
        """Emits the element values of a pass, and its stores."""
        self.flagged = "found"
        at, before = len(self.lines), self.any_flags
        self.any_flags = False
        for value in self.stages.needed(number, {}):
            self.compute(value)
        for store in self.stages.stores(number) if not _is_zero(self.row) else ():
            self.store(store)
        if self.any_flags:
            self.lines.insert(at, "    " * self.indent + "found = tl.full([ROWS, COLUMNS], 0, tl.int32)")
            self.line("flags_found |= tl.where(inside, found, 0)")
        self.any_flags |= before

    def one_pass(self, number: int) -> None:
        """Emits a pass over whole rows."""
        self.elements(number)
        for reduce in self.stages.reductions(number):
            name, kind = self.accumulator(reduce), self.kinds[reduce]
            for line in kind.across(name, kind.lift(str(self.real(reduce.values[0])), "inside")):
                self.line(line)

    def walk(self, number: int, steps: str, column: str) -> None:
        """Emits a pass over rows, block by block."""
        reductions = self.stages.reductions(number)
        for reduce in reductions:
            self.clear(reduce, "[ROWS, COLUMNS]")
        self.line(f"for start in {steps}:")
        self.indent += 1
        outside = dict(self.registers)
        self.place_columns(column)
        self.walks_last = number == self.stages.passes - 1
        self.elements(number)
        self.walks_last = False
        for reduce in reductions:
            kind = self.kinds[reduce]
            lifted = kind.lift(str(self.real(reduce.values[0])), "inside")
            for line in kind.merge(self.accumulator(reduce), lifted):
                self.line(line)
        self.indent -= 1
        self.registers = outside
        for reduce in reductions:
            for line in self.kinds[reduce].across(self.accumulator(reduce)):
                self.line(line)

    def finish(self, reduce: KernelValue, errors: bool) -> None:
        """The result of a reduction, from the accumulators of its rows."""
        self.flagged = "row_found"
        super().finish(reduce, errors)

    # -- partial results of split rows --------------------------------------------------------------------------------
    def place_pieces(self) -> None:
        """Emits how many partial results of a row are merged at a time."""
        pieces = power_of_two(-(-hint(self.row) // self.chunk))
        self.blocks.append(("PIECES", min(pieces, max(1, self.unroll_factor // self.together))))

    def partial(self, reduce: KernelValue, number: int, piece: str) -> list[str]:
        """The pointers to the partial results of a part; those of a row are numbered from ``number`` on."""
        p, places = self.parameters, []
        for count, part in enumerate(self.kinds[reduce].parts, number):
            pointer = p.partial(f"{self.accumulator(reduce)}{part.suffix}_parts", count, part.dtype)
            places.append(f"{pointer} + ({piece} * {p.size(self.rows)} + row)")
        return places

    def number_of(self, number: int) -> int:
        """The number of arrays of partial results of the passes before this one."""
        before = [reduce for earlier in range(number) for reduce in self.stages.reductions(earlier)]
        return sum(len(self.kinds[reduce].parts) for reduce in before)

    def merge_parts(self, reductions: list[KernelValue], number: int, end: str) -> None:
        """Merges the partial results of the parts of a row before number ``end``; the first array is that of
        ``number``.
        """
        if not reductions:
            return
        for reduce in reductions:
            self.clear(reduce, "[ROWS, PIECES]")
        self.line(f"for begin in range(0, {end}, PIECES):")
        self.indent += 1
        self.line("piece = (begin + tl.arange(0, PIECES)[None, :]).to(INDEX)")
        self.line(f"inside = in_rows & (piece < {end})")
        for reduce in reductions:
            kind, texts = self.kinds[reduce], []
            for part, place in zip(kind.parts, self.partial(reduce, number, "piece"), strict=True):
                other = literal(part.start, part.dtype)  # ".cg": not from this processor's own cache
                texts.append(f'tl.load({place}, mask=inside, other={other}, cache_modifier=".cg")')
            number += len(texts)
            for line in kind.merge(self.accumulator(reduce), texts):
                self.line(line)
        self.indent -= 1
        for reduce in reductions:
            for line in self.kinds[reduce].across(self.accumulator(reduce)):
                self.line(line)

    def merge_pass(self, number: int, signals: bool) -> None:
        """Emits the results of a pass, from its partial results; ``signals``: whether flags are reported."""
        self.merge_parts(self.stages.reductions(number), self.number_of(number), self.parameters.count())
        before, self.signals = self.signals, signals
        for reduce in self.stages.reductions(number):
            self.finish(reduce, errors=True)
        self.signals = before


class SharedRows(Rows):
    """A pass over split rows: each program stores its accumulators.

    Row values are stored in the last pass: by the last program that arrives at some rows, from the partial results of
    all parts. A function of its own would take as long to start as reading some megabytes.
    """

    def __init__(
        self, kernel: Kernel, signals: bool, taken: frozenset[str], config: TilingConfig = USUAL, number: int = 0
    ) -> None:
        super().__init__(kernel, signals, taken, config)
        self.number = number
        if not self.side_by_side:
            self.unroll_factor *= 2  # of a row alone: a few percent faster, with more loads in flight
        self.stores = number == self.stages.passes - 1 and any(map(self.stages.row_store, kernel.stores))

    def write(self) -> TritonFunction:
        """The function."""
        number, backwards = self.number, self.number % 2 == 1
        grid = self.place_part(backwards)
        if number or self.stores:
            self.place_pieces()
        signals, self.signals = self.signals, False  # earlier flags were reported, except those of the last pass
        for earlier in range(number):
            self.once_a_row(earlier, stores=False)
            self.merge_pass(earlier, signals and earlier == number - 1)
        self.signals = signals
        self.once_a_row(number, stores=False)
        self.walk_part(number, backwards)
        partials: list[Partial] = []
        first = self.number_of(number)
        for reduce in self.stages.reductions(number):
            places = self.partial(reduce, first + len(partials), "part")
            for part, place in zip(self.kinds[reduce].parts, places, strict=True):
                self.line(f"tl.store({place}, {self.accumulator(reduce)}{part.suffix}, mask=in_rows)")
                partials.append(Partial(part.dtype, self.rows))
        if self.stores:
            self.store_rows()
        self.report_all()
        name = f"{self.kernel.name}_pass_{number}" if number else self.kernel.name
        return self.function(name, grid, partials, self.row)

    def store_rows(self) -> None:
        """Stores row values: those known before the last pass in the program with the first part of the row."""
        known, merged = range(self.number + 1), bool(self.stages.reductions(self.number))
        if merged:
            counter = self.parameters.counters() + (f" + {self.block_of_rows}" if self.block_of_rows else "")
            self.line(f"if is_last({counter}, {self.parameters.count()}):")
            self.line(f"    tl.store({counter}, 0)")
        else:
            self.line("if part == 0:")
        self.indent += 1
        for store in (store for number in known for store in self.stages.row_stores(number)):
            self.store(store)
        self.merge_pass(self.number, self.signals)
        self.once_a_row(self.number + 1)
        self.indent -= 1


def write(kernel: Kernel, signals: bool, taken: frozenset[str], config: TilingConfig) -> list[TritonFunction]:
    """The functions of a kernel."""
    rows = Rows(kernel, signals, taken, config)
    if not signals and not rows.whole:
        kernel = moments.in_one_pass(kernel)
        rows = Rows(kernel, signals, taken, config)
    if not rows.is_shared_out:
        return [rows.write()]
    return [SharedRows(kernel, signals, taken, config, number).write() for number in range(rows.stages.passes)]


__all__ = ["Rows", "SharedRows", "write"]
