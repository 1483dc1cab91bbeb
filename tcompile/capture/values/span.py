"""Items that a loop appended to a list, as the rows of one array.

Input: the array, and what its rows are to Python.
Output: ``ListSlice``, which represents the items until they are read one by one, and ``CountedSpan`` for a number of
items known only at run time.
Why: a loop may append thousands, and most lists are made into an array or returned.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tcompile.capture.values.array import ArrayValue
from tcompile.capture.values.base import Context, Rebuilder, Value
from tcompile.capture.values.scalar import ScalarValue, of_kind
from tcompile.frontends.base import CannotCapture, Traced
from tcompile.graph.ops.scalar_loop import is_numpy
from tcompile.graph.sizes import Size

_MOST = 1024  # items that are read one by one


class ListSlice(Value):
    """Items of a list that are the rows of ``array``, appended by a loop's iterations. The array has no alias.

    ``kind`` is the kind of the items: an ``array``, a ``scalar`` of the library, or a number's class. ``last`` is the
    array object that is the last item, where a variable holds it as well.
    """

    def __init__(self, tx: Context, array: ArrayValue, kind: Any, last: ArrayValue | None) -> None:
        self.tx, self.array, self.kind, self.final = tx, array, kind, last
        self._version = last.memory.version if last is not None and last.memory is not None else 0

    @property
    def size(self) -> Size:
        """How many items there are."""
        return self.array.traced.type.shape[0]

    @property
    def rows(self) -> Traced:
        """The array. Raises CannotCapture where the last item was written to since."""
        if self.final is not None and self.final.memory is not None and self.final.memory.version != self._version:
            raise CannotCapture("loop-mismatch", "an item of a list was written to")
        return self.array.traced

    def items(self) -> list[Value]:
        """Each item as a value of its own; an open number of them is fixed with a guard."""
        size = self.size
        count = size if isinstance(size, int) else size.specialise()
        if count > _MOST:
            raise CannotCapture("too-long", f"{count} items of a list are read one by one.")
        return [self._item(i) for i in range(count - (self.final is not None))] + (
            [] if self.final is None else [self.final]
        )

    def _item(self, position: int) -> Value:
        node = self.tx.builder.op("index", self.array.traced.node, key=(position,))
        return of_kind(self.tx, self.kind, self.tx.builder.op("copy_c", node) if self.kind == "array" else node)

    def starred(self, program: Rebuilder) -> list[str]:
        """The items in a list's display."""
        return self.displayed(program, program.rebuild(self.array))

    def displayed(self, program: Rebuilder, rows: str) -> list[str]:
        """The items that are so many rows of the array, in a list's display."""
        if self.kind == "array":
            copy_of = getattr(self.array.python_type, "copy")  # noqa: B009  # of the array's class
            copies = f"*map({program.constant(copy_of)}, {rows}{'' if self.final is None else '[:-1]'})"
            return [copies, *([] if self.final is None else [program.rebuild(self.final)])]
        return [f"*{rows}" if self.kind == "scalar" else f"*{rows}.tolist()"]


class CountedSpan(ListSlice):
    """The first ``count`` elements of arrays as items of a list, appended by some of a loop's iterations.

    ``kinds`` are those of an element of each array (``graph.ops.scalar_loop``). There are several where the items are
    tuples.
    """

    def __init__(
        self, tx: Context, arrays: Sequence[ArrayValue], kinds: Sequence[str], is_tuple: bool, count: ScalarValue
    ) -> None:
        super().__init__(tx, arrays[0], None, None)
        self.arrays, self.kinds, self.is_tuple, self.count = arrays, kinds, is_tuple, count

    @property
    def size(self) -> Size:
        """Unknown: raises CannotCapture."""
        raise self._refusal("the length of")

    @property
    def rows(self) -> Traced:
        """No array of a known size."""
        raise self._refusal("an array of")

    def items(self) -> list[Value]:
        """They are Python's to read."""
        raise self._refusal("the items of")

    @staticmethod
    def _refusal(what: str) -> CannotCapture:
        return CannotCapture(
            "data-dependent-shape", f"{what} a list that a loop has appended to in some iterations only"
        )

    def starred(self, program: Rebuilder) -> list[str]:
        """The items in a list's display."""
        count = program.rebuild(self.count)
        columns = [
            f"{program.rebuild(array)}[:{count}]{'' if is_numpy(kind) else '.tolist()'}"
            for array, kind in zip(self.arrays, self.kinds, strict=True)
        ]
        return [f"*{program.constant(zip)}({', '.join(columns)})" if self.is_tuple else f"*{columns[0]}"]


__all__ = ["CountedSpan", "ListSlice"]
