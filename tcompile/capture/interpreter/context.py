"""The state of one capture: the graph being built, the guards collected, and the frames being followed.

Input: the function, the values of one call, and records of earlier compiles.
Output: the data that ``entry.codegen`` turns into an entry.
Why: values, built-ins and the interpreter share this one object (``tx`` in their signatures).
"""

from __future__ import annotations

import itertools
import math
import re
import types
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from typing import Any, Protocol, TypeAlias

from tcompile.annotations.policy import breaks_are_errors
from tcompile.annotations.treatments import treatment_of
from tcompile.capture.context.followed import Followed
from tcompile.capture.context.loop_plan import LoopPlans
from tcompile.capture.context.options import CaptureOptions
from tcompile.capture.context.symbols import Symbols
from tcompile.capture.guards.dynamic_shapes import Profile
from tcompile.capture.guards.prologue import Prologue
from tcompile.capture.guards.sources import (
    AttributeSource,
    ComputedSource,
    ConstantSource,
    ItemSource,
    SizeSource,
    Source,
    StateSource,
)
from tcompile.capture.interpreter.arguments import bind_arguments
from tcompile.capture.semantics import from_python
from tcompile.capture.semantics.alias_count import holders
from tcompile.capture.semantics.attributes import iterator
from tcompile.capture.semantics.builtins import call_constant
from tcompile.capture.semantics.examples import examples_of
from tcompile.capture.semantics.operators import equal, ordered
from tcompile.capture.semantics.special import SPECIAL, is_marked, is_reorderable
from tcompile.capture.values.array import WHOLE, ArrayValue, Memory, is_fresh, origin
from tcompile.capture.values.base import Effect, FrameView, LazyValue, Value
from tcompile.capture.values.callable import ClosureCell, FunctionValue
from tcompile.capture.values.constant import Constant, FloatValue, IntegerValue
from tcompile.capture.values.container import SequenceValue, constant_of
from tcompile.capture.values.dicts import DictValue
from tcompile.capture.values.generator import GeneratorValue
from tcompile.capture.values.object import ObjectValue
from tcompile.capture.values.random_generator import RandomGeneratorValue
from tcompile.capture.values.scalar import ScalarValue, read
from tcompile.capture.values.selected import SelectedValue
from tcompile.capture.values.sets import SetValue
from tcompile.capture.values.tensor import TensorValue, record_value
from tcompile.capture.values.tensor import keep_apart as keep_tensors_apart
from tcompile.capture.values.text import TextValue, follows_settings, text
from tcompile.frontends.base import (
    Builder,
    CannotCapture,
    Frontend,
    Read,
    Record,
    Selected,
    Tensor,
    Traced,
    TracedNumber,
    refuse_sequential_copy,
)
from tcompile.graph import Graph, Location, Node, ScalarType, SymInt, TensorType, ops
from tcompile.graph.build import apply
from tcompile.graph.names import quoted
from tcompile.graph.ops.draws import lock_of
from tcompile.graph.ops.gathering import IN_PLACE
from tcompile.graph.ops.writing import Path
from tcompile.graph.overlap import is_view
from tcompile.observe.source_location import UserLine, expression_text
from tcompile.records import dataclass
from tcompile.strict import strict

MAX_DEPTH = 64
MOST_OF_RECURSION = 1_000  # instructions of a capture, beyond which it follows no function that calls itself
_CHANGEABLE = (ArrayValue, SequenceValue, DictValue, SetValue, ObjectValue, TensorValue)
_QUIET = (int, float, bool, str, type(None), type)  # constant folding of these raises no warning
_FIXED_MODULES = ("math", "operator", "builtins", "itertools", "random")
_MOST_TERMS = 200  # of an expression of numbers that vary: it may grow in each unrolled iteration
_OURS = ("tcompile", "tcompile_jupyter")  # our own functions are called, never followed
# Their functions are short, and call a special one.
_FOLLOWED = (
    "tcompile.annotations.batching", "tcompile.annotations.custom_rules", "tcompile.annotations.derivatives",
    "tcompile.annotations.jacobians", "tcompile.annotations.trees", "tcompile.func", "tcompile.torch_modules",
)  # fmt: skip


def _is_scalar(value: Value) -> bool:
    """Whether a value is immutable, though others of its class may not be."""
    if isinstance(value, ArrayValue):
        return value.traced.scalar
    return isinstance(value, SequenceValue | SetValue) and value.cls in (tuple, frozenset)


def _is_fixed(source: Source) -> bool:
    """Whether the object at ``source`` is always the same: a closure cell of a function that the entry holds."""
    while isinstance(source, AttributeSource | ItemSource):
        if isinstance(source, AttributeSource) and source.name != "__closure__":
            return False
        source = source.base
    return isinstance(source, ConstantSource)


def _apart(changed: Sequence[Any], others: Sequence[Any]) -> bool:
    """Whether the changed objects are distinct, and distinct from the others."""
    known = set(map(id, changed))
    return len(known) == len(changed) and known.isdisjoint(map(id, others))


class Runnable(FrameView, Protocol):
    """A frame that can be run."""

    @property
    def has_blocks(self) -> bool:
        """Whether its code has ``try`` or ``with`` in it."""

    def run(self) -> Value:
        """Runs until the function returns."""

    def resume(self, sent: Value | None) -> tuple[Value, bool]:
        """Runs a generator's frame to its next yield."""


OpenFrame: TypeAlias = "Callable[[Capture, FunctionValue, dict[str, Value], Location | None], Runnable]"


@dataclass
class Capture:
    """The state of one capture."""

    frontends: Sequence[Frontend]
    options: CaptureOptions
    profile: Profile
    graph: Graph
    code: types.CodeType  # of the function being captured
    namespace: dict[str, Any]  # its globals
    open_frame: OpenFrame  # how the frame of a called function is made
    prologue: Prologue = field(default_factory=Prologue)
    frames: list[FrameView] = field(default_factory=list)
    effects: dict[tuple[int, str], Effect] = field(default_factory=dict)
    instructions: int = 0
    followed: dict[types.CodeType, Followed] = field(default_factory=dict)
    step: int = 0  # instructions of the compiled function itself that have been followed
    mutations: int = 0  # how often captured state was changed in place
    outside_mutations: int = 0  # how often an object from outside was
    outside_writes: int = 0  # how often that was an array
    loops: LoopPlans = field(default_factory=LoopPlans)
    open_loops: list[tuple[Graph, Graph]] = field(default_factory=list)  # for each, the graphs around and in it
    unplanned: list[Memory] = field(default_factory=list)  # memories that a loop writes, and that its plan lacks
    mutated: dict[int, Value] = field(default_factory=dict)  # changed objects from outside, in order
    left_open: dict[str, type] = field(default_factory=dict)  # places of numbers whose values are not fixed
    late_kinds: list[str] = field(default_factory=list)  # of the numbers that a continuation gets from a scalar loop
    late_is_scalar: bool = False  # whether the continuation is in a scalar loop
    differentiated: int = 0  # how many functions that are differentiated are being followed
    forward_rules: list[Value] = field(default_factory=list)  # the functions whose own forward rules are followed
    # The checks of the values that decide the path through branches.
    taken_path: dict[Node, Node] = field(default_factory=dict)
    differs: bool = False  # the user has asked for a difference from plain Python
    input_sources: list[Source] = field(default_factory=list)
    objects: dict[Source, Any] = field(default_factory=dict)  # the object at each source
    examples: dict[Node, Any] = field(default_factory=dict)  # values in this call, as far as they were needed
    regions: list[Any] = field(default_factory=list)  # captured regions that calls may share
    _outside: list[Value] = field(default_factory=list)  # the objects from outside that can change
    _known: dict[int, Value] = field(default_factory=dict)  # the same by identity, but for arrays
    _wrapped: dict[Source, Value] = field(default_factory=dict)
    _arrays: dict[int, tuple[Traced, ArrayValue]] = field(default_factory=dict)
    _memories: dict[Node, Memory] = field(default_factory=dict)  # by the nodes that make their elements, now or before
    tensor_values: dict[int, Value] = field(default_factory=dict)  # by the identities of traced tensors
    _numbers: dict[Source, TracedNumber] = field(default_factory=dict)

    def __post_init__(self) -> None:
        options = self.options
        self.tensors: Any = next((f for f in self.frontends if f.device == "torch"), None)
        self._by_device = {frontend.device: frontend for frontend in reversed(self.frontends)}
        self.builder = Builder(self.graph, exact=options.exact, whole=options.max_unrolled is None)
        self.symbols = Symbols(self.graph.env, self.prologue, self.profile, options.dynamic, self.user_stack)
        self.break_is_error = breaks_are_errors()  # changed where captured code enters or leaves such a block

    # -- values from outside -------------------------------------------------------------------------------------
    def wrap(self, value: Any, source: Source) -> Value:
        """The captured value of an object found at ``source``, with the guards that its kind needs."""
        found = self._wrapped.get(source)
        if found is None:
            found = self._known.get(id(value))
            if found is None:
                found = from_python.wrap(self, value, source)
                self.objects[source] = value
                if isinstance(found, _CHANGEABLE) and found.source is source and not _is_scalar(found):
                    self._know(value, found)
            else:  # one object in two places is one value
                assert found.source is not None
                other = found.source
                text = f"{source.text} is {other.text}"
                self.prologue.guard(source, f"{{}} is {self.prologue.load(other)}", text, "the same object", "identity")
                self.objects[source] = value
            self._wrapped[source] = found
        return found

    def _know(self, value: Any, found: Value) -> None:
        """Notes an object that can change, so that a second place finds the same value."""
        for changed in self.mutated.values():
            self._check_apart(changed, found)
        self._outside.append(found)
        if not isinstance(found, ArrayValue):  # aliases of an array need no guard until it is written
            self._known[id(value)] = found

    def cell(self, cell: types.CellType, source: Source, contents: Source) -> ClosureCell:
        """The captured closure cell found at ``source``; one for each cell."""
        found = self._known.get(id(cell))
        if found is None:
            found = ClosureCell(tx=self, outside=(cell, source, contents))
            self.objects[source] = cell
            self._know(cell, found)
        elif found.source != source:
            assert found.source is not None
            if not (_is_fixed(source) and _is_fixed(found.source)):
                where, text = self.prologue.load(found.source), f"{contents.text} is one variable"
                self.prologue.guard(source, f"{{}} is {where}", text, "the same variable", "identity")
        assert isinstance(found, ClosureCell)
        return found

    def touch(self) -> None:
        """Notes that captured state is about to change in place: the current instruction cannot be undone."""
        self.mutations += 1

    def mutate(self, value: Value) -> None:
        """Notes that ``value`` is about to change. Objects from outside are updated after the graph."""
        self.touch()
        if value.source is None:
            return
        self.outside_mutations += 1
        if id(value) in self.mutated:
            return
        for other in list(self._outside):
            self._check_apart(value, other)
        if isinstance(value, ArrayValue):
            found = value.frontend.write_checks(self.objects[value.source], value.source.text, self.prologue.constant)
            for check in found:
                self.prologue.guard(value.source, check.code, check.text, check.expected, check.kind)
        self.mutated[id(value)] = value

    def _check_apart(self, changed: Value, other: Value) -> None:
        """Raises CannotCapture where a change of one object from outside would be seen through another value."""
        if changed is other or changed.source is None or other.source is None:
            return
        for owner, held in ((changed, other), (other, changed)):
            own = owner.value.__dict__ if isinstance(owner, ObjectValue) and owner.has_plain_dict else None
            if isinstance(held, DictValue) and held.source is not None and own is self.objects[held.source]:
                text = f"Changing {owner.describe()}, whose attributes are {held.describe()},"
                raise CannotCapture("side-effect", text)
        one, two = self.objects[changed.source], self.objects[other.source]
        if one is two:
            text = f"Writing to {changed.describe()}, which is {other.source.text} too,"
            raise CannotCapture("writes-to-array", text)
        if isinstance(changed, ArrayValue) and isinstance(other, ArrayValue) and changed.frontend.overlap(one, two):
            text = f"Writing to {changed.describe()}, which shares memory with {other.source.text},"
            raise CannotCapture("writes-to-array", text)

    def locks(self) -> list[str]:
        """The variables of the entry program with the locks of generators whose states were changed."""
        states = [value.source for value in self.mutated.values() if isinstance(value.source, StateSource)]
        generators = dict.fromkeys(state.generator for state in states)
        return [self.prologue.load(ComputedSource("{1}({0})", (found,), (lock_of,))) for found in generators]

    def keep_apart(self) -> None:
        """Guards that a changed object from outside is no other object that was met, and is not held by one."""
        dicts = [value for value in self._outside if isinstance(value, DictValue)]
        objects = [value for value in self._outside if isinstance(value, ObjectValue) and value.has_plain_dict]
        for owner, held in itertools.product(objects, dicts):
            if id(owner) in self.mutated or id(held) in self.mutated:
                assert owner.source is not None and held.source is not None
                text = f"{held.source.text} is not {owner.source.text}.__dict__"
                code = f"{self.prologue.load(owner.source)}.__dict__ is not {{}}"
                self.prologue.guard(held.source, code, text, "another dict", "identity")
        keep_tensors_apart(self)
        alike: dict[type, list[Value]] = {}
        for value in self._outside:
            alike.setdefault(value.python_type, []).append(value)
        for values in alike.values():
            changed = [value for value in values if id(value) in self.mutated]
            places = [value.source for value in values if value.source is not None]
            if not changed or len(values) < 2 or all(map(_is_fixed, places)):
                continue
            if isinstance(changed[0], ArrayValue):
                self._keep_memory_apart(changed, values)
                continue
            if len(places) == 2:
                code, text = f"{{}} is not {self.prologue.load(places[1])}", f"{places[0].text} is not {places[1].text}"
                self.prologue.guard(places[0], code, text, "another object", "identity")
                continue
            others = [value for value in values if id(value) not in self.mutated]
            lists = [", ".join(self.prologue.load(v.source) for v in part if v.source) for part in (changed, others)]
            code = f"{self.prologue.constant(_apart)}([{lists[0]}], [{lists[1]}])"
            shown = ", ".join([place.text for place in places[:4]] + ["…"] * (len(places) > 4))
            text = f"{shown} are different objects"
            self.prologue.guard(places[0], code, text, "another object", "identity")

    def _keep_memory_apart(self, changed: Sequence[Value], values: Sequence[Value]) -> None:
        """Guards that no written array shares memory with another array that was met."""
        for position, one in enumerate(changed):
            assert isinstance(one, ArrayValue) and one.source is not None
            for two in values:
                if two is one or two in changed[:position]:
                    continue
                if getattr(one.source, "generator", None) == getattr(two.source, "generator", two):
                    continue  # parts of one state
                if isinstance(one.source, StateSource) is not isinstance(two.source, StateSource):
                    continue  # an array of a generator's state has no alias
                assert two.source is not None
                overlap = self.prologue.constant(one.frontend.overlap)
                text = f"{one.source.text} and {two.source.text} share no memory"
                code = f"not {overlap}({{}}, {self.prologue.load(two.source)})"
                self.prologue.guard(one.source, code, text, "memory of its own", "memory")

    def stored_global(self, namespace: dict[str, Any], name: str) -> Value | None:
        """The value that captured code has stored as a global; None: it has not. Breaks where it has deleted it."""
        effect = self.effects.get((id(namespace), name))
        if effect is not None and effect.value is None:
            raise CannotCapture("operation-raises", f"name {name!r} is not defined")
        return None if effect is None else effect.value

    def store_global(self, namespace: dict[str, Any], name: str, value: Value | None) -> None:
        """Remembers a store to a global (None: its deletion), done after the graph."""
        key = id(namespace), name
        if value is None and self.stored_global(namespace, name) is None:
            if name not in namespace:
                raise CannotCapture("operation-raises", f"name {name!r} is not defined")
            source = ConstantSource.of("globals()", namespace)
            self.prologue.guard(source, f"{quoted(name)} in {{}}", f"a global named {name!r}", "a global")
        self.touch()
        self.effects.pop(key, None)
        self.effects[key] = Effect(namespace, name, value)

    def library_attribute(self, module: types.ModuleType, name: str) -> Any:
        """The value of a library module's attribute, guarded to stay; raises AttributeError where there is none.

        Attributes that the module makes on request are not guarded.
        """
        found, namespace = getattr(module, name), vars(module)
        if namespace.get(name) is found:
            owner = module.__name__
            source, text = ConstantSource.of(owner, namespace), f"{owner}.{name} is unchanged"
            self.prologue.guard_binding(source, namespace, name, text, name, "library")
        return found

    def wrap_found(self, found: Any) -> Value:
        """The value of an attribute of a guarded constant: itself constant."""
        if self.tensors is not None and self.tensors.is_of_training(found):
            return Constant(found)
        if self.is_special(found) or self.frontend_of(found) is not None:
            return Constant(found)
        if isinstance(found, types.FunctionType):
            return FunctionValue.of(self, found, None)
        inner = self.inlined_function(found)
        if inner is not None:
            return FunctionValue.compiled(self, found, inner, None)
        return Constant(found)

    @staticmethod
    def is_special(value: Any) -> bool:
        """Whether a call of ``value`` has a meaning of its own, or must not be followed."""
        return id(value) in SPECIAL or is_marked(value) or treatment_of(value) is not None or is_reorderable(value)

    def inlined_function(self, value: Any) -> types.FunctionType | None:
        """The user's function in an already compiled one."""
        if not self.options.enter_compiled or treatment_of(value) is not None:
            return None
        inner = getattr(type(value), "__tcompile_inline__", None)
        function = inner(value) if inner is not None else None
        return function if isinstance(function, types.FunctionType) else None

    def is_library_name(self, module: object) -> bool:
        """Whether the contents of a module are taken as fixed (array libraries and the standard library's math).

        ``module`` is no str for some classes: those of C code may name no module, others have a property there.
        """
        root = module.partition(".")[0] if isinstance(module, str) else ""
        return root in _FIXED_MODULES or any(root == frontend.name for frontend in self.frontends)

    def is_fixed(self, value: Any) -> bool:
        """Whether a library says that ``value`` is fully known by its identity."""
        return any(frontend.is_fixed(value) for frontend in self.frontends)

    def frontend_of(self, function: Any) -> Frontend | None:
        """The frontend that knows ``function``."""
        return next((f for f in self.frontends if f.knows(function)), None)

    def frontend_at(self, device: str) -> Frontend:
        """The frontend whose arrays are on ``device``."""
        return self._by_device[device.partition(":")[0]]

    def is_scalar(self, value: Any) -> bool:
        """Whether an object is a scalar object of a library, such as ``np.float64(1)``."""
        return any(frontend.is_scalar(value) for frontend in self.frontends)

    def scalar_instruction(self, function: Any) -> str | None:
        """The instruction of a scalar loop for a library's function."""
        return next((name for f in self.frontends if (name := f.scalar_instruction(function)) is not None), None)

    # -- arrays ----------------------------------------------------------------------------------------------------
    def array_input(self, type: TensorType, scalar: bool, source: Source) -> ArrayValue:
        """A graph input for an array found at ``source``."""
        return self.new_array(Traced(self.graph_input(type, source), scalar), source)

    def number_input(self, source: Source) -> TracedNumber:
        """A graph input for a Python float computed from ``source``."""
        if source not in self._numbers:
            self.prologue.load(source)
            self._numbers[source] = TracedNumber(self.graph_input(ScalarType("float"), source))
        return self._numbers[source]

    def graph_input(self, type: TensorType | ScalarType, source: Source) -> Node:
        """A new input of the graph."""
        name = re.sub(r"\W+", "_", source.text).strip("_") or "value"
        self.input_sources.append(source)
        return self.graph.input(name if not name[0].isdigit() else f"_{name}", type)

    def taken(self, node: Node) -> Any:
        """The value that a node has in this call, which the graph then relies on; None where that is not known."""
        if not self.options.follows_path or self.builder.graph is not self.graph:
            return None  # a loop's iteration is followed for all of them
        if node not in self.taken_path:
            xp = self.frontend_at(node.device).namespace
            try:
                with xp.errstate(all="ignore"):
                    (value,) = examples_of(self, [node])
            except CannotCapture:
                return None
            # Checked before what is computed on this path alone.
            check = apply(self.graph, ops.EXPECT, node, expected=xp.asarray(value).item())
            self.taken_path[node] = check
        return self.taken_path[node].attrs["expected"]

    def new_array(self, traced: Traced, source: Source | None = None, kept: str = "") -> ArrayValue:
        """The array object that shows ``traced``. ``kept`` is the reason, in words, why it cannot be written."""
        array = ArrayValue(traced, self.frontend_at(traced.type.device), source)
        if not traced.scalar:
            array.memory, array.path = self.memory_of(traced.node)
            array.memory.kept = array.memory.kept or kept
            if source is not None:
                array.memory.owner = array
            array.become(traced)
        self.remember(array)
        return array

    def remember(self, array: ArrayValue) -> None:
        """Notes which array object shows a traced value, so that frontends can return the same object."""
        traced = array.traced
        self._arrays[id(traced)] = (traced, array)

    def memory_of(self, node: Node) -> tuple[Memory, Path]:
        """The memory whose elements ``node`` shows, and the view ops that lead to it."""
        root, path, certain = origin(node)
        memory = self._memories.get(root)
        if memory is None:
            graph = self.graph if root.op is ops.INPUT and root in self.graph.inputs else self.builder.graph
            memory = self._memories[root] = Memory(root, root, graph, self.builder, self._arrays)
        if not certain:  # neither may be written: the other may be an alias
            whole = self.memory_of(root.inputs[0])[0]
            if whole.owner is not None and whole.version:  # its elements are written when the graph has run
                raise CannotCapture("memory-order", "A reshape that may show an array which was written to")
            memory.kept = whole.kept = "of which a reshape may be a view or a copy,"
        return memory, path

    def show_memory(self, node: Node, memory: Memory) -> None:
        """Notes that ``node`` has the memory's elements."""
        self._memories[node] = memory

    def written(self) -> dict[Memory, int]:
        """How often each memory has been written."""
        return {memory: memory.version for memory in self._memories.values()}

    def memory_named(self, name: str) -> Memory | None:
        """The memory whose first node has this name."""
        return next((memory for memory in self._memories.values() if memory.root.name == name), None)

    def let_go(self) -> None:
        """Allows writes again to arrays whose rows iterations have read: the outermost loop has been followed."""
        for memory in self._memories.values():
            memory.let_go()

    def _let_go_of(self, memory: Memory) -> None:
        """Allows writes again to one array, where no row of it is held any more."""
        if memory.rows and all(holders(self, row) == 0 for row in memory.rows):
            memory.let_go()

    def claim(self, memory: Memory) -> None:
        """Makes sure that the code being followed may write to an array.

        A loop that does not carry the array needs another trial trace, so later values of the array do not matter now.
        """
        graph = self.builder.graph
        if memory.graph is graph:
            return
        if not (self.open_loops and self.open_loops[-1][1] is graph):
            raise CannotCapture("writes-to-array", "Writing to an array from inside a control-flow function")
        self.unplanned.append(memory)
        memory.graph = graph

    def write(self) -> None:
        """Does the writes that a frontend has asked for: their memories have other elements from now on."""
        writes = list(self.builder.writes)
        self.builder.writes.clear()
        for target, contents in writes:
            memory, path = self.memory_of(target.node)
            memory.ask_identity(to_write=True)
            self._let_go_of(memory)
            if memory.kept:
                raise CannotCapture("writes-to-array", f"Writing to an array {memory.kept}")
            self.claim(memory)
            if memory.owner is None:
                self.touch()
            else:
                self.outside_writes += 1
                self.mutate(memory.owner)
            if memory.version and origin(contents)[:2] == (memory.node, path):
                continue  # x[1:] += 1 stores the view again, after the write to it
            base, old, whole = memory.node, memory.node.tensor, not path
            if whole and memory.owner is not None:
                base = memory.root
            elif whole and old.c_contiguous:  # all old elements are overwritten
                base = self.builder.op("full", shape=old.shape, fill_value=0, dtype=old.dtype.name)
            elif whole:
                path = (WHOLE,)
            direct = whole and memory.owner is None and contents.type == old and is_fresh(contents)
            if contents.op in IN_PLACE and origin(contents.inputs[0])[:2] == (memory.node, path):
                contents = self._scattered(contents, memory.node, path)
            elif not direct or contents in self._memories:
                if is_view(contents) and self.memory_of(contents)[0] is memory:
                    refuse_sequential_copy(target.node, contents)  # a kernel can keep elements that it overwrites
                    contents = self.builder.op("ordered", contents, axes=contents.tensor.layout.order)
                contents = self.builder.op("assign", base, contents, path=path)
            memory.node = contents
            memory.version += 1
            self._memories[contents] = memory

    def _scattered(self, node: Node, base: Node, path: Path) -> Node:
        """A scatter into a view, as a scatter into the part of ``base`` that the view shows."""
        if not path:
            return node
        self.builder.graph.nodes.remove(node)
        return self.builder.op(node.op, base, *node.operands[1:], **{**node.attrs, "path": path})

    def from_frontend(self, result: Any, owner: Value | None = None) -> Value:
        """The captured value of a frontend's result."""
        if self.builder.writes:
            self.write()
        if isinstance(result, Traced):
            known = self._arrays.get(id(result))
            if known is not None and known[0] is result:
                return known[1]
            return self.new_array(result)
        if isinstance(result, Tensor):
            return self.tensor_values.setdefault(id(result), TensorValue(result, self.tensors))
        if isinstance(result, Record):
            return record_value(self, result)
        if isinstance(result, Selected):
            return SelectedValue(self, result, self.frontend_at(result.whole.tensor.device))
        if isinstance(result, SymInt):
            return IntegerValue(result)
        if isinstance(result, Read):
            return self.read(self.new_array(Traced(result.node, scalar=True)), result.cls)
        if isinstance(result, tuple | list):
            return SequenceValue([self.from_frontend(item, owner) for item in result], type(result))
        if isinstance(result, dict):
            return DictValue({key: self.from_frontend(item, owner) for key, item in result.items()})
        return Constant(result)

    def read(self, array: Value, cls: type | None) -> Value:
        """``array.item()`` (``cls`` None), ``float(array)``, ``int(array)`` or ``bool(array)``."""
        assert isinstance(array, ArrayValue)
        return read(self, array, cls)

    def draw(self, generator: Value, name: str, args: Sequence[Value], kwargs: Mapping[str, Value]) -> Value:
        """The result of a random generator's method."""
        from tcompile.capture.semantics import draws  # loaded by the first draw

        assert isinstance(generator, RandomGeneratorValue)
        return draws.call(self, generator, name, args, kwargs)

    # -- numbers -----------------------------------------------------------------------------------------------------
    def decide(self, source: Source, code: str, text: str, holds: bool) -> bool:
        """The answer to a question about a run-time number, as seen now, under a guard."""
        self.prologue.guard(source, f"({code}) is {holds}", text if holds else f"not ({text})", str(holds), "question")
        return holds

    def loosen(self) -> None:
        """Drops guards on containers that the program does not depend on."""
        for value in self._outside:
            if isinstance(value, SequenceValue | DictValue):
                value.loosen()

    @property
    def in_iteration(self) -> bool:
        """Whether the frame is in an iteration of a loop that becomes a node."""
        return bool(self.open_loops) or any(frame.peeled for frame in self.frames)

    def key_source(self, key: Value) -> tuple[Source, str] | None:
        """The source and the text of a container's key that may vary from call to call; None for any other."""
        if self.in_iteration:
            return None
        if isinstance(key, LazyValue) and type(key.value) is str and key.source not in self._wrapped:
            text = key.source.text
            self.prologue.guard(key.source, "type({}) is str", f"type({text}) is str", "str", "type")
            return key.source, text
        if isinstance(key, IntegerValue) and not key.size.counters():
            return SizeSource(str(key.size)), self.symbols.readable(str(key.size))
        return None

    @staticmethod
    def is_plain(key: Value) -> bool:
        """Whether a key is known, and hashes and compares without running the user's code."""
        return isinstance(key, Constant) and type(key.value) in (*_QUIET[:5], bytes)

    def waits(self, key: Value) -> bool:
        """Whether a key varies and can be made after the graph. A NaN must be one object wherever it is used."""
        if isinstance(key, SequenceValue):
            items = key.held if key.cls is tuple else []
            return any(map(self.waits, items)) and all(self.is_plain(item) or self.waits(item) for item in items)
        if isinstance(key, ArrayValue):
            return key.traced.scalar and key.traced.type.dtype.kind in "biu" and not self.in_iteration
        if isinstance(key, ScalarValue):
            return key.cls is not float and not self.in_iteration
        if isinstance(key, FloatValue) and isinstance(key.source, ComputedSource):
            return False
        if isinstance(key, FloatValue | TextValue):
            return not self.in_iteration
        return self.key_source(key) is not None

    def number_source(self, value: Value) -> Source | None:
        """A source for a Python number that varies; None for constants."""
        if isinstance(value, FloatValue):
            return value.source
        if isinstance(value, IntegerValue):
            if value.size.counters():
                raise CannotCapture("unsupported-operands", "a number that differs in each iteration of a loop")
            return SizeSource(str(value.size))
        return None

    def compute(self, template: str, operands: Sequence[Value], run: Callable[..., Any]) -> Value:
        """A Python number that plain Python computes before the graph: ``template`` over the operands' sources."""
        hints = []
        parts: list[Source] = []
        fields: list[str] = []
        for operand in operands:
            source = self.number_source(operand)
            if source is None:
                number = constant_of(operand, "a number")
                hints.append(number)
                fields.append(self._number_text(number))
                continue
            hints.append(operand.hint if isinstance(operand, FloatValue) else operand.size.hint)  # type: ignore[attr-defined]
            fields.append(f"{{{len(parts)}}}")
            parts.append(source)
        try:
            result = run(*hints)
        except Exception as error:
            raise CannotCapture("operation-raises", str(error)) from error
        if type(result) is bool:
            source = ComputedSource(template.format(*fields), tuple(parts))
            return Constant(self.decide(source, "{}", source.text, result))
        if type(result) is not float:
            text = ComputedSource(template.format(*fields), tuple(parts)).text
            raise CannotCapture("unsupported-operands", f"`{text}` of numbers that vary")
        # The result's type may change with the values (a negative base gives a complex power).
        formula = template.format(*fields)
        source = ComputedSource(formula if template.endswith("({})") else f"({formula})", tuple(parts))
        if source.terms > _MOST_TERMS:
            raise CannotCapture("unsupported-operands", "an expression of too many numbers that vary")
        self.prologue.guard(source, "type({}) is float", f"type({source.text}) is float", "float", "type")
        return FloatValue(source, result)

    @staticmethod
    def _number_text(number: Any) -> str:
        """A constant beside run-time numbers, as an expression."""
        if type(number) is float and not math.isfinite(number):
            return f"float({str(number)!r})"
        if type(number) not in (float, bool) and not (type(number) is int and abs(number) < 1 << 64):
            raise CannotCapture("unsupported-operands", f"a {type(number).__name__} beside a number that varies")
        return f"({number!r})" if repr(number)[0] == "-" else repr(number)

    # -- operations that values ask for ------------------------------------------------------------------------------
    def equal(self, left: Value, right: Value) -> bool:
        """``left == right`` as containers compare their items."""
        return equal(self, left, right)

    def ordered(self, values: Sequence[Value], key: Value | None, reverse: Value | None) -> list[Value]:
        """``sorted(values, key=key, reverse=reverse)``."""
        return ordered(self, values, key, reverse)

    def iterator(self, value: Value) -> Value:
        """``iter(value)``."""
        return iterator(self, value)

    def text(self, function: Callable[..., Any], args: Sequence[Value], kwargs: Mapping[str, Value]) -> Value:
        """The str ``function(*args, **kwargs)``."""
        return text(self, function, args, kwargs)

    # -- calls -----------------------------------------------------------------------------------------------------
    def fold(self, function: Callable[..., Any], args: Sequence[Value], kwargs: Mapping[str, Value]) -> Value:
        """Calls a pure function now; all arguments must be constants."""
        name = getattr(function, "__name__", "an operator")
        plain = [constant_of(arg, f"an argument of {name}") for arg in args]
        named = {key: constant_of(value, f"an argument of {name}") for key, value in kwargs.items()}
        quiet = all(type(value) in _QUIET for value in [*plain, *named.values()])
        try:
            if quiet:
                result = function(*plain, **named)
            else:
                # Warnings belong to each call: leave them to plain Python.
                with strict():
                    result = function(*plain, **named)
        except Exception as error:
            raise CannotCapture("operation-raises", f"{type(error).__name__}: {error}") from error
        if follows_settings(result, plain, self.is_scalar):
            raise CannotCapture("unsupported-argument", f"The result of {name} depends on settings of the process.")
        return self.plain_value(result)

    def plain_value(self, result: Any) -> Value:
        """The value of a plain Python object that capture itself has just made."""
        if isinstance(result, tuple | list) and type(result) in (tuple, list):
            return SequenceValue([self.plain_value(item) for item in result], type(result))
        if type(result) is dict:
            return DictValue({key: self.plain_value(item) for key, item in result.items()})
        return Constant(result)

    def call_constant(self, function: Value, args: Sequence[Value], kwargs: Mapping[str, Value]) -> Value:
        """The meaning of calling a built-in, a class, or a library function."""
        assert isinstance(function, Constant)
        return call_constant(self, function, args, kwargs)

    def inline_form(self, form: types.FunctionType, args: Sequence[Value], kwargs: Mapping[str, Value]) -> Value:
        """Follows the Python form of a library's function, which happens on the user's line."""
        depth, function = len(self.frames), FunctionValue.of(self, form, None)
        try:
            return self.inline(function, args, kwargs, at=self.builder.location)
        except CannotCapture as refusal:
            if len(self.frames) > depth + 1:  # in the user's function, called by it
                raise
            del self.frames[depth:]
            text = f"{form.__name__} calls a function of Python, in a way that is not followed."
            raise CannotCapture("unsupported-object", text) from refusal

    def inline(
        self, function: Value, args: Sequence[Value], kwargs: Mapping[str, Value], at: Location | None = None
    ) -> Value:
        """Follows a user's function, or a function of tcompile on the user's line ``at``."""
        assert isinstance(function, FunctionValue)
        module = str(function.globals.get("__name__", ""))
        if module in _FOLLOWED:
            at = self.builder.location
        if at is None and module.partition(".")[0] in _OURS and module not in _FOLLOWED:
            raise CannotCapture("unknown-function", function.describe())
        if len(self.frames) >= MAX_DEPTH:
            raise CannotCapture("recursion", f"{function.describe()} is {MAX_DEPTH} calls deep.")
        self._check_recursion(function)
        frame = self.open_frame(self, function, bind_arguments(self, function, args, kwargs), at)
        if function.code.co_flags & 0x20:
            if frame.has_blocks:
                raise CannotCapture("generator", f"{function.describe()} (with `try` or `with` in it)")
            frame.resume(None)  # up to where the generator is made
            return GeneratorValue(self, frame.resume)
        if function.code.co_flags & 0x280:
            raise CannotCapture("generator", function.describe())
        value = frame.run()
        return value.settle(self) if isinstance(value, LazyValue) else value

    def _check_recursion(self, function: FunctionValue) -> None:
        """Refuses to follow much recursion: the calls of a tree double with each level."""
        code = function.code
        limited = self.options.max_unrolled is not None and not self.options.follows_path
        if not limited or all(frame.code is not code for frame in self.frames):
            return
        if self.instructions > MOST_OF_RECURSION:
            self.profile.deep.add(code)
        if code in self.profile.deep:
            raise CannotCapture("recursion", f"{function.describe()} calls itself many times.")

    # -- where we are ------------------------------------------------------------------------------------------------
    def current_text(self) -> str:
        """The source text of the expression being executed."""
        return (expression_text(self.frames[-1].user_line()) if self.frames else "") or "this expression"

    def user_stack(self) -> tuple[UserLine, ...]:
        """The user's lines, outermost first."""
        if not self.frames:
            code = self.code
            return (UserLine(file=code.co_filename, line=code.co_firstlineno, function=code.co_name),)
        return tuple(frame.user_line() for frame in self.frames)


__all__ = ["Capture"]
