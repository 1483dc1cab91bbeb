"""Arrays and array scalars of a library, and the memory that an array and its views share.

Input: traced values, and nodes of the graph under construction.
Output: ``ArrayValue``, one for each array object, and ``Memory``, the alias set that an array and its views share.
Why: graphs are pure while arrays are written to, and aliases must see each other's writes. Two names of one array are
one ``ArrayValue``; a view is another one that shows the same ``Memory`` through view ops. A write gives the memory a
new node, and every array that shows it is derived from that.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from typing import Any, Protocol

from tcompile.capture.context.loop_plan import LoopPlan, Restart
from tcompile.capture.guards.sources import AttributeSource, Source
from tcompile.capture.values.base import Context, Rebuilder, Value, named, settled
from tcompile.capture.values.constant import Constant, CopiedDtype, integer
from tcompile.frontends.base import Builder, CannotCapture, Frontend, Traced
from tcompile.graph import Graph, Node, ops
from tcompile.graph.ops import apply
from tcompile.graph.ops.view import is_view_of_operand
from tcompile.graph.ops.writing import Path
from tcompile.graph.overlap import is_view
from tcompile.graph.sizes import SymInt
from tcompile.records import dataclass

WHOLE = ("index", (("key", (...,)),))  # a view of all elements
_OPERATIONS_A_ROW = 4  # number of operations in a loop's unrolled body, of which iterating over a row counts as one


class ArrayValue(Value):
    """One array object; ``traced`` is what it shows now.

    ``path`` leads from ``memory`` to it. A scalar object, and an array as it was at one time, have no memory.
    """

    has_variable = False  # but the graph's output

    def __init__(
        self,
        traced: Traced,
        frontend: Frontend,
        source: Source | None = None,
        memory: Memory | None = None,
        path: Path = (),
    ) -> None:
        self.frontend = frontend
        self.source = source
        self.memory = memory
        self.path = path
        self.become(traced)

    def become(self, traced: Traced) -> None:
        """Shows ``traced``; a scalar object never changes."""
        self._shown = traced
        self._place = -1
        if traced.scalar:
            self.memory = None
        self._version = 0 if self.memory is None else self.memory.version

    @property
    def traced(self) -> Traced:
        """What it shows now."""
        memory = self.memory
        if memory is None or not memory.version:
            return self._shown
        nodes, place = memory.graph.nodes, self._place
        if self._version != memory.version or (
            place >= 0 and (place >= len(nodes) or nodes[place] is not self._shown.node)  # the write was undone
        ):
            node, self._place = memory.seen_through(self.path)
            self._shown, self._version = Traced(node), memory.version
            memory.known[id(self._shown)] = self._shown, self
        return self._shown

    @property
    def python_type(self) -> type:
        """The array class, or the scalar class of the dtype."""
        return self.frontend.python_type(self.traced)

    def describe(self) -> str:
        """The type and, where there is one, the user's name."""
        kind = f"{'a scalar' if self.traced.scalar else 'an array'} of type {self.traced.type}"
        return named(self.source, kind)

    def export(self, tx: Context) -> Any:
        """What it holds now."""
        return self.traced

    def attribute(self, tx: Context, name: str) -> Value:
        """A data attribute through the frontend, or a method bound to this array."""
        if self.frontend.has_method(self.traced, name):
            return ArrayMethod(self, name)
        memory = self.memory
        if name == "dtype" and memory is not None and memory.own_dtype and memory.owner is not None:
            assert memory.owner.source is not None
            return CopiedDtype(self.traced.type.dtype, AttributeSource(memory.owner.source, "dtype"))
        return tx.from_frontend(self.frontend.attribute(tx.builder, self.traced, name), self)

    def call(self, tx: Context, args: Sequence[Value], kwargs: Mapping[str, Value]) -> Value:
        """Refuses it: arrays are not callable, and plain Python raises the error."""
        raise CannotCapture("operation-raises", "an array is called")

    def method(self, tx: Context, name: str, args: Sequence[Value], kwargs: Mapping[str, Value]) -> Value:
        """``array.name(…)`` through the frontend."""
        if name in ("item", "tolist") and not args and not kwargs and (name == "item" or not self.traced.type.ndim):
            return tx.read(self, None)
        plain = [a.export(tx) for a in args]
        named = {k: v.export(tx) for k, v in kwargs.items()}
        return tx.from_frontend(self.frontend.method(tx.builder, self.traced, name, plain, named), self)

    def item(self, tx: Context, key: Value) -> Value:
        """Builds ``array[key]`` through the frontend, except for rows and columns at computed indices in a loop."""
        found = settled(tx, key).as_key(tx)
        if tx.open_loops:
            places = found if isinstance(found, tuple) else (found,)
            picked, others = _parted(places)
            if picked:
                shown = self.traced
                if not all(map(_is_all, others)):
                    shown = self.frontend.getitem(tx.builder, shown, others)
                rest = shown.type.ndim - len(picked)
                # The result has the memory order of NumPy's view: one axis is left, or rows are selected.
                if rest == 1 or (rest > 0 and shown.type.c_contiguous and max(picked) < len(picked)):
                    return self._row(tx, shown, picked)
        return tx.from_frontend(self.frontend.getitem(tx.builder, self.traced, found), self)

    def _row(self, tx: Context, shown: Traced, picked: Mapping[int, Traced]) -> Value:
        """Returns the elements of the view of ``shown``, which this array shows, at indices along some axes.

        The result may be read, but must not escape, and the array must not be written meanwhile.
        """
        node = tx.builder.op("gather", shown.node, *(k.node for k in picked.values()), axes=tuple(picked))
        row = tx.new_array(Traced(node), kept="that is a row at a computed place,")
        assert isinstance(row, ArrayValue) and row.memory is not None
        row.memory.stands_in = True
        if self.memory is not None:
            self.memory.hold_still(row.memory)
        return row

    def store_item(self, tx: Context, key: Value, value: Value) -> None:
        """``self[key] = value`` through the frontend."""
        self.frontend.setitem(tx.builder, self.traced, settled(tx, key).as_key(tx), value.export(tx))
        tx.write()

    def update(self, tx: Context, sign: str, right: Value) -> Value:
        """``self sign= right``: the object itself with new contents. Scalars have none: that is ``self sign right``."""
        tx.builder.write(self.traced, self.frontend.inplace(tx.builder, sign, self.traced, right.export(tx)).node)
        tx.write()
        return self

    def truth(self, tx: Context) -> bool:
        """An array's truth is in its values."""
        node = self.truth_node(tx)
        taken = tx.taken(node) if node is not None else None
        if taken is None:
            raise CannotCapture("data-dependent-branch", tx.current_text())
        return bool(taken)

    def truth_node(self, tx: Context) -> Node | None:
        """The truth of an array of one element; None for another one."""
        node = self.traced.node
        if not isinstance(node.tensor.size, int) or node.tensor.size != 1:
            return None
        node = tx.builder.op("reshape", node, shape=()) if node.tensor.ndim else node
        return node if node.tensor.dtype.kind == "b" else tx.builder.op("not_equal", node, 0)

    def length(self, tx: Context) -> Value:
        """The first size."""
        shape = self.traced.type.shape
        if not shape:
            raise CannotCapture("operation-raises", "len() of unsized object")
        return integer(shape[0])

    def iterate(self, tx: Context) -> Iterator[Value]:
        """The rows; a symbolic number of rows is fixed with a guard."""
        shape = self.traced.type.shape
        if not shape:
            raise CannotCapture("operation-raises", "iteration over a 0-d array")
        return (self.item(tx, Constant(i)) for i in range(self.check_rows(tx)))

    def check_rows(self, tx: Context) -> int:
        """Returns the number of rows, fixed with a guard. Raises CannotCapture if they are too many to unroll."""
        size = self.traced.type.shape[0]
        count = size if isinstance(size, int) else size.specialise()
        most = tx.options.max_unrolled
        if most is not None and count > most // _OPERATIONS_A_ROW:
            raise CannotCapture("too-long", f"An array of {count} rows is walked through, row by row.")
        return count

    def rebuild(self, program: Rebuilder) -> str:
        """The argument itself where it is one, else an output of the graph."""
        if self.source is not None:
            return program.load(self.source)
        memory = self.memory
        if memory is not None and memory.choice is not None and not self.path:
            new, old = program.output(self, self.traced), program.rebuild(memory.choice.original)
            return f"({new} if {program.rebuild(memory.choice.is_new)} else {old})"
        if memory is not None:
            memory.ask_identity()
        if memory is None or memory.owner is None or not memory.version:
            return program.output(self, self.traced)
        node, _ = memory.seen_through(self.path, first=True)  # a view of the argument, which is brought up to date
        return program.output(self, Traced(node))

    def commit(self, program: Rebuilder) -> list[str]:
        """Writes the computed contents into the argument's memory, unless the graph has done so."""
        assert self.source is not None and self.memory is not None
        held, new = program.load(self.source), program.output(self.memory, Traced(self.memory.node))
        return [f"if {new} is not {held}: copyto({held}, {new})"]


def _parted(places: Sequence[Any]) -> tuple[dict[int, Traced], tuple[Any, ...]]:
    """Returns a key's computed integers, by axis of the view by the other items; and these items, with ``:`` in their
    place.

    Empty if the key has other items than integers and slices.
    """
    picked: dict[int, Traced] = {}
    others: list[Any] = []
    axis = 0
    for k in places:
        computed = isinstance(k, Traced) and k.scalar and k.type.dtype.kind in "iu"
        if computed:
            picked[axis] = k
        elif isinstance(k, bool) or not isinstance(k, int | SymInt | slice):
            return {}, ()
        axis += computed or isinstance(k, slice)
        others.append(slice(None) if computed else k)
    return picked, tuple(others)


def _is_all(key: Any) -> bool:
    """Whether a part of a key is ``:``."""
    return isinstance(key, slice) and key.start is None and key.stop is None and key.step is None


@dataclass(eq=False)
class Memory:
    """Elements in memory. ``root`` is the node that made them, ``node`` what they are now.

    ``owner`` is the array from outside whose elements they are; ``kept`` says in words why they cannot be written,
    where that is so. ``version`` counts the writes. ``graph`` is the graph that has the nodes. Where
    ``alike`` is the same for two, they are one in the first iteration of a loop. ``leaf`` is what a loop carries them
    in, where an iteration has just been given them. ``may_alias_input`` is the plan of a loop after which they may be
    what it was given or something new, ``may_be_aliased`` that of one after which others may be these. ``choice`` says
    which of the two, in values of the graph. ``rows`` are those at computed places that may still be read: until then
    it cannot be written, and ``kept_before`` is what ``kept`` was.
    """

    root: Node
    node: Node
    graph: Graph
    builder: Builder
    known: dict[int, tuple[Traced, ArrayValue]]
    owner: ArrayValue | None = None
    kept: str = ""
    version: int = 0
    alike: ArrayValue | None = None
    leaf: Any = None
    may_alias_input: LoopPlan | None = None
    may_be_aliased: LoopPlan | None = None
    choice: Choice | None = None
    stands_in: bool = False  # for a view at a place that the graph computes: as good as that while it is only read
    own_dtype: bool = False  # whether the dtype is an object of its own, which only equals the type's
    made: bool | None = None  # after a loop: whether its iterations have made them, whichever way it was left
    rows: list[Memory] = field(default_factory=list)
    kept_before: str = ""

    @property
    def is_new(self) -> bool:
        """Whether the graph that has them certainly makes them, in an array that nothing was before."""
        if self.root.op is ops.INPUT:  # as that of a loop which writes them
            return False
        return self.root.op is not ops.GET if self.made is None else self.made

    def ask_identity(self, to_write: bool = False) -> None:
        """Called where it matters which object an array is.

        Raises Restart where a loop has left that open, and CannotCapture where only the graph's values tell.
        """
        plan = self.may_alias_input or (self.may_be_aliased if to_write else None)
        if plan is not None and not plan.exact:
            plan.exact = True
            raise Restart
        if plan is not None or self.choice is not None:
            raise CannotCapture("object-identity", "an array after a loop is the one from before it")
        if self.stands_in:
            raise CannotCapture("object-identity", "a row at a computed place is a view")

    def hold_still(self, row: Memory) -> None:
        """Refuses writes while something holds a row, until the outermost loop has been followed."""
        if not self.rows:
            self.kept_before = self.kept
        self.rows.append(row)
        self.kept = self.kept or "of which a row at a computed place is read,"

    def let_go(self) -> None:
        """Takes back what ``hold_still`` did."""
        if self.rows:
            self.kept = self.kept_before
            self.rows.clear()

    def seen_through(self, path: Path, first: bool = False) -> tuple[Node, int]:
        """The node that shows the elements through ``path``, as they are now or were at ``first``.

        The second item is the node's place in the graph; -1 where no node was added.
        """
        node, place = self.root if first else self.node, -1
        for op, attrs in path:
            node = apply(self.graph, op, node, location=self.builder.location, **dict(attrs))
            place = len(self.graph.nodes) - 1
        return node, place


@dataclass(eq=False)
class Choice:
    """An array is new where ``is_new`` says so, a bool that the graph computes, and else ``original``."""

    is_new: Value
    original: ArrayValue

    def root(self) -> ArrayValue:
        """The array that it is where nothing was made by any of the loops that it has come through."""
        found = self.original
        while found.memory is not None and found.memory.choice is not None:
            found = found.memory.choice.original
        return found


def origin(node: Node) -> tuple[Node, Path, bool]:
    """The node whose memory ``node`` shows, the view ops between, and whether that is certain.

    Where it is not (a reshape that is a view or a copy, as strides turn out), the origin is the view op itself. A
    reshape that copies gives a view of its copy, which is why that array does not own its memory.
    """
    path: list[tuple[str, tuple[tuple[str, Any], ...]]] = []
    while is_view(node):
        shows = is_view_of_operand(node.op, node.inputs[0].tensor, node.tensor)
        if not shows:
            if shows is False and node.op is ops.RESHAPE:
                path.append(WHOLE)
            return node, tuple(reversed(path)), shows is not None
        path.append((node.op.name, tuple(node.attrs.items())))
        node = node.inputs[0]
    return node, tuple(reversed(path)), True


def is_fresh(node: Node) -> bool:
    """Whether an operation always makes new elements of its own."""
    return node.op.kind in ("pointwise", "reduction", "creation")


class ArrayMethod(Value):
    """``array.name``, waiting to be called."""

    def __init__(self, array: Value, name: str) -> None:
        self.array = array
        self.name = name

    def describe(self) -> str:
        """The method's name."""
        return f"the method `{self.name}` of {self.array.describe()}"

    def call(self, tx: Context, args: Sequence[Value], kwargs: Mapping[str, Value]) -> Value:
        """Asks the array."""
        return self.array.method(tx, self.name, args, kwargs)

    def rebuild(self, program: Rebuilder) -> str:
        """The method of the array."""
        return f"{program.rebuild(self.array)}.{self.name}"


class ArrayContext(Context, Protocol):
    """The capture in progress, as what makes and writes arrays sees it."""

    def new_array(self, traced: Traced, source: Source | None = None, kept: str = "") -> ArrayValue:
        """The array object that shows ``traced``."""

    def remember(self, array: ArrayValue) -> None:
        """Notes which array object shows a traced value."""

    def claim(self, memory: Memory) -> None:
        """Makes sure that the code being followed may write to an array."""

    def show_memory(self, node: Node, memory: Memory) -> None:
        """Notes that ``node`` is what the memory holds."""
