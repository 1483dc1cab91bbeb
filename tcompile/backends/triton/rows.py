"""Kernels with reduced axes: each program takes a few rows.

Enters: a ``Kernel``. Leaves: its functions. A row that fits is held in registers whole, so that softmax reads it once;
a longer one is walked block by block, once for every stage. Where there are few rows, and long ones, the parts of a row
are shared out among programs (``Parts``), and a second function merges what they leave (``Merged``).
"""

from __future__ import annotations

from collections.abc import Sequence

from tcompile.backends.schedule import Kernel, Value
from tcompile.backends.schedule.kernel import size_of
from tcompile.backends.schedule.stages import Stages
from tcompile.backends.triton.configs import USUAL, Config
from tcompile.backends.triton.names import literal, type_of
from tcompile.backends.triton.reductions import Part, Reduction
from tcompile.backends.triton.text import Function, Grid, Partial, Text, power_of_two
from tcompile.graph import Size
from tcompile.graph.sizes import hint

IN_REGISTERS = 8192  # elements of a row that a program holds at once
FEW_ROWS, LONG_ROW = 256, 1 << 15  # fewer rows than that, each longer than that, are shared out
CHUNK = 1 << 14  # elements of a row that is shared out, for one program
MOST_ROWS = 64  # that a program takes at once


def is_shared_out(kernel: Kernel) -> bool:
    """Whether there are few rows, and long ones."""
    row, rows = (hint(size_of([kernel.axes[a] for a in axes])) for axes in (kernel.reduced, kernel.kept))
    return row > LONG_ROW and rows < FEW_ROWS


def _block(part: Part) -> str:
    """A block of accumulators before the first element."""
    return f"tl.full([ROWS, COLUMNS], {literal(part.start, part.dtype)}, {type_of(part.dtype)})"


class Rows(Text):
    """A few rows a program."""

    def __init__(self, kernel: Kernel, signals: bool, taken: frozenset[str], config: Config = USUAL) -> None:
        super().__init__(kernel, signals, taken, config)
        self.stages = Stages(kernel, frozenset(kernel.kept))
        self.row = size_of([kernel.axes[a] for a in kernel.reduced])
        self.rows = size_of([kernel.axes[a] for a in kernel.kept])
        self.kinds = {v: Reduction(v, signals) for v in kernel.values if v.op == "reduce"}
        self.accumulators: dict[Value, str] = {}
        self.whole = isinstance(self.row, int) and self.row <= IN_REGISTERS

    def mask(self, axes: frozenset[int]) -> str:
        """By whether an access moves from row to row, and along a row."""
        moves, runs = bool(axes & set(self.kernel.kept)), bool(axes & set(self.kernel.reduced))
        return "inside" if moves and runs else "in_rows" if moves else "in_row" if runs else ""

    def place_rows(self, columns: int, program: int = 0) -> tuple[tuple[Size, int], ...]:
        """The rows of this program, and the status of what is computed once a row."""
        many = max(1, min(MOST_ROWS, self.config.elements // columns))
        count = min(many, power_of_two(hint(self.rows)))
        self.blocks.append(("ROWS", count))
        self.line(f"row = (tl.program_id({program}).to(INDEX) * ROWS + tl.arange(0, ROWS))[:, None]")
        self.line(f"in_rows = row < {self.parameters.size(self.rows)}")
        if self.kernel.kept:
            self.split("row", self.kernel.kept)
        self.line("row_found = tl.full([ROWS, 1], 0, tl.int32)")
        return ((self.rows, count),)

    def place_columns(self, text: str) -> None:
        """The elements of the rows that are walked now."""
        self.line(f"column = ({text}).to(INDEX)")
        self.line(f"in_row = column < {self.parameters.size(self.row)}")
        self.line("inside = in_rows & in_row")
        self.split("column", self.kernel.reduced)

    def columns(self) -> int:
        """How many elements of a row a program takes at a time."""
        return power_of_two(hint(self.row)) if self.whole else min(self.config.columns, power_of_two(hint(self.row)))

    def write(self) -> Function:
        """The function."""
        columns = self.columns()
        grid = Grid(self.place_rows(columns))
        self.blocks.append(("COLUMNS", columns))
        passes = self.stages.passes
        told = len(self.lines)
        if self.whole:
            self.place_columns("tl.arange(0, COLUMNS)[None, :]")
        for number in range(passes + 1):
            self.once_a_row(number)
            if number < passes:
                if self.whole:
                    self.one_pass(number)
                else:
                    self.walk(number, "range(0, {row}, COLUMNS)", "start + tl.arange(0, COLUMNS)[None, :]")
        self.tell_all(told)
        return self.function(self.kernel.name, grid, row=self.row)

    def tell_all(self, told: int) -> None:
        """Tells what was found once a row, and in passes, which begin behind line ``told``."""
        if self.any_flags:
            self.lines.insert(told, "    told = tl.full([ROWS, COLUMNS], 0, tl.int32)")
        self.tell(["tl.where(in_rows, row_found, 0)", "told"])

    def place_part(self) -> tuple[tuple[Size, int], ...]:
        """The rows of this program, and which part of them, where parts are shared out."""
        along = self.place_rows(self.config.columns, program=1)
        self.blocks += [("COLUMNS", self.config.columns), ("CHUNK", CHUNK)]
        self.line("part = tl.program_id(0).to(INDEX)")
        self.line("first = part * CHUNK")
        return along

    def walk_part(self) -> None:
        """The pass over a part."""
        self.walk(0, "range(0, CHUNK, COLUMNS)", "first + start + tl.arange(0, COLUMNS)[None, :]")

    def once_a_row(self, number: int, stores: bool = True) -> None:
        """What is computed once a row before a pass."""
        self.flagged = "row_found"
        for value in self.stages.row_values(number):
            self.compute(value)
        for store in self.stages.row_stores(number) if stores else ():
            self.store(store)

    def elements(self, number: int) -> None:
        """What is computed for each element in a pass, and its stores."""
        self.flagged = "found"
        at, before = len(self.lines), self.any_flags
        self.any_flags = False
        for value in self.stages.needed(number, {}):
            self.compute(value)
        for store in self.stages.stores(number) if self.row != 0 else ():
            self.store(store)
        if self.any_flags:
            self.lines.insert(at, "    " * self.indent + "found = tl.full([ROWS, COLUMNS], 0, tl.int32)")
            self.line("told |= tl.where(inside, found, 0)")
        self.any_flags |= before

    def one_pass(self, number: int) -> None:
        """A pass over rows that are whole."""
        self.elements(number)
        for reduce in self.stages.reductions(number):
            name, kind = self.accumulator(reduce), self.kinds[reduce]
            for line in kind.across(name, kind.lift(str(self.real(reduce.values[0])), "inside")):
                self.line(line)
            self.finish(reduce, errors=False)

    def merge_parts(self, reductions: Sequence[Value], end: str) -> None:
        """What the parts of a row before number ``end`` have left, merged."""
        p, number = self.parameters, 0
        for reduce in reductions:
            for part in self.kinds[reduce].parts:
                self.line(f"{self.accumulator(reduce)}{part.suffix} = {_block(part)}")
        self.line(f"for start in range(0, {end}, COLUMNS):")
        self.indent += 1
        self.line("piece = (start + tl.arange(0, COLUMNS)[None, :]).to(INDEX)")
        self.line(f"inside = in_rows & (piece < {end})")
        for reduce in reductions:
            name, kind, texts = self.accumulator(reduce), self.kinds[reduce], []
            for part in kind.parts:
                pointer = p.partial(f"{name}{part.suffix}_parts", number, part.dtype)
                number += 1
                place = f"{pointer} + (row * {p.count()} + piece)"
                texts.append(f"tl.load({place}, mask=inside, other={literal(part.start, part.dtype)})")
            for line in kind.merge(name, texts):
                self.line(line)
        self.indent -= 1
        for reduce in reductions:
            for line in self.kinds[reduce].across(self.accumulator(reduce)):
                self.line(line)

    def accumulator(self, reduce: Value) -> str:
        """The name of a reduction's accumulators."""
        if reduce not in self.accumulators:
            name = reduce.node.name if reduce.node is not None else "total"
            self.accumulators[reduce] = self.parameters.fresh(f"{name}_so_far")
        return self.accumulators[reduce]

    def walk(self, number: int, steps: str, column: str) -> None:
        """A pass over rows, block by block."""
        reductions = self.stages.reductions(number)
        for reduce in reductions:
            name = self.accumulator(reduce)
            for part in self.kinds[reduce].parts:
                self.line(f"{name}{part.suffix} = {_block(part)}")
        self.line(f"for start in {steps.format(row=self.parameters.size(self.row))}:")
        self.indent += 1
        outside = dict(self.registers)
        self.place_columns(column)
        self.elements(number)
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
            self.finish(reduce, errors=True)

    def finish(self, reduce: Value, errors: bool) -> None:
        """The result of a reduction, from the accumulators of its rows."""
        self.note(reduce.node.location if reduce.node is not None else None)
        name, kind = self.accumulator(reduce), self.kinds[reduce]
        made = self.parameters.fresh(reduce.node.name if reduce.node is not None else "value")
        self.line(f"{made} = {kind.finish(name, errors)}")
        self.registers[reduce] = made
        self.flagged = "row_found"
        self.flag(kind.flags(name, made))


class Parts(Rows):
    """Rows whose parts are shared out among programs: each leaves its accumulators."""

    def write(self) -> Function:
        """The function."""
        along = self.place_part()
        told = len(self.lines)
        self.once_a_row(0, stores=False)  # which the function that merges does once
        self.finished: list[Value] = []
        self.walk_part()
        partials: list[Partial] = []
        for reduce in self.finished:
            for part in self.kinds[reduce].parts:
                name = f"{self.accumulator(reduce)}{part.suffix}"
                pointer = self.parameters.partial(f"{name}_parts", len(partials), part.dtype)
                self.line(f"tl.store({pointer} + (row * {self.parameters.count()} + part), {name}, mask=in_rows)")
                partials.append(Partial(part.dtype, self.rows))
        self.tell_all(told)
        return self.function(self.kernel.name, Grid(None, along), partials, self.row)

    def finish(self, reduce: Value, errors: bool) -> None:
        """The accumulators are left as they are."""
        self.finished.append(reduce)


class Merged(Rows):
    """What merges the accumulators of the parts, and computes what depends on the totals."""

    def write(self) -> Function:
        """The function."""
        grid = Grid(self.place_rows(self.config.columns))
        self.blocks.append(("COLUMNS", self.config.columns))
        reductions = self.stages.reductions(0)
        # What the parts may have reported has been: this computes, once more, what is the same along a row.
        signals, self.signals = self.signals, False
        self.once_a_row(0)
        self.signals = signals
        self.merge_parts(reductions, self.parameters.count())
        for reduce in reductions:
            self.finish(reduce, errors=True)
        self.once_a_row(1)
        self.tell(["tl.where(in_rows, row_found, 0)"])
        return self.function(f"{self.kernel.name}_merged", grid)


__all__ = ["CHUNK", "Merged", "Parts", "Rows", "is_shared_out"]
