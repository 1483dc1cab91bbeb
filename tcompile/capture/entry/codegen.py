"""The entry program: guards, graph call and side effects as one generated Python function.

Input: a finished capture with the function's result, or one that stopped where the frame goes on by itself.
Output: ``Captured``, and from it, with a callable for the graph, the text and code of ``entry(*parameters)``.
Why: a call of compiled code computes nothing that was known at compile time.

``entry`` returns ``MISS`` where a guard fails, and ``PLAIN`` where the frame runs on in plain Python. Otherwise it
returns the function's result or, for a capture that stopped, the place where the frame goes on and its locals and stack
(``tcompile.bytecode.rewritten``).
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from dataclasses import field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from tcompile.annotations.treatments import treatment_of
from tcompile.bytecode.analysis import Point
from tcompile.bytecode.rewritten import KEEP, UNBOUND
from tcompile.callers import mark, raise_if_callers
from tcompile.capture.context.followed import Followed
from tcompile.capture.context.symbols import readable
from tcompile.capture.guards.entry_protocol import ENTRY_FILE, MISS, PLAIN, Start
from tcompile.capture.guards.prologue import Guard, GuardFailure, LoadStep, Prologue
from tcompile.capture.guards.reread import Reread
from tcompile.capture.guards.sources import SizeSource, Source
from tcompile.capture.interpreter.context import Capture
from tcompile.capture.values.array import ArrayValue, Memory
from tcompile.capture.values.base import LazyValue, Null, Rebuilder, Value, settled
from tcompile.capture.values.callable import FunctionValue, MethodValue
from tcompile.capture.values.constant import Constant
from tcompile.frontends.base import CannotCapture
from tcompile.graph import Graph, Node, ScalarType, TensorType
from tcompile.graph.evaluate import as_array, copy_into
from tcompile.graph.ops.control import LOOPS
from tcompile.graph.sizes import ShapeEnv, SymInt
from tcompile.records import dataclass

if TYPE_CHECKING:
    from tcompile.capture.entry.root_frame import RootFrame

Entry = Callable[..., Any]
_OF_WRITES = ("memory", "writeable")  # kinds of guards that plain Python does not need
_MOST_OF_PLAIN = 64  # guards before plain Python: guards on each item of a long list take longer than it


@dataclass
class Captured:
    """The result of capturing one stretch of a function, for values of one kind.

    ``graph`` is None where the frame runs in plain Python. ``prologue`` holds the guards. ``exit`` is the offset of the
    instruction at which the frame goes on; None where the function returns. ``calls``: this instruction is a call whose
    function may be compiled by itself. ``differs``: the user has asked for a difference from plain Python (a function
    was replaced, or asks whether it is being compiled). ``locks`` are the variables of random generators' locks, held
    while the graph draws. ``followed`` are the functions of the stretch. ``asked`` is the number of answers about sizes
    that are guards already. ``continue_in(place, parameters)`` captures the program that leads to the next iteration of
    a loop; the place is the loop's name, and the version of its iteration. ``continuations`` has these programs.
    ``stands_in``: plain Python goes on with a stand-in for an object. ``late_kinds`` are the kinds of the numbers that
    such a program gets from a scalar loop.
    """

    graph: Graph | None
    prologue: Prologue
    arity: int
    inputs: Sequence[str] = ()
    lines: Sequence[str] = ()
    returns: str = "None"
    effects: Sequence[str] = ()
    symbol_texts: dict[str, str] = field(default_factory=dict)
    exit: int | None = None
    extras: str = "None"
    calls: bool = False
    stands_in: bool = False
    differs: bool = False
    locks: Sequence[str] = ()
    followed: Sequence[Followed] = ()
    late_kinds: Sequence[str] | None = None
    asked: int = 0
    continue_in: Callable[[tuple[str, int], Sequence[Any]], Captured | None] | None = None
    continuations: dict[tuple[str, int], Captured | None] = field(default_factory=dict)

    @property
    def does_nothing(self) -> bool:
        """Whether plain Python would do the same: no array work, and no call to be compiled."""
        return self.graph is None or not (self.graph.nodes or self.calls or self.stands_in)

    def as_plain(self) -> Captured:
        """The same guards before plain Python, without those on memory that kernels would write to.

        Of many guards only the first ones are kept. They say when another capture is worth it; plain Python is right
        for any values.
        """
        guards = [guard for guard in self.prologue.guards if guard.kind not in _OF_WRITES]
        kept = set(map(id, guards[:_MOST_OF_PLAIN]))
        steps = [step for step in self.prologue.steps if not isinstance(step, Guard) or id(step) in kept]
        prologue = replace(self.prologue, steps=steps)
        return Captured(None, prologue, self.arity, symbol_texts=self.symbol_texts, exit=self.exit)

    @property
    def guards(self) -> list[Guard]:
        """The guards in the order in which they run."""
        return self.prologue.guards

    def close(self) -> None:
        """Adds the guards that transforms have asked for; none can be added later."""
        if self.graph is not None:
            _guard_sizes(self.graph.env, self.prologue, self.symbol_texts, self.asked)
            self.graph.env.closed = True

    def first_failure(self, values: Sequence[Any]) -> GuardFailure | None:
        """The first guard that does not hold for these parameters."""
        return next(self._failures(values), None)

    def distance(self, values: Sequence[Any]) -> int:
        """How many guards do not hold for these parameters, those that depend on others not counted."""
        return sum(1 for _ in self._failures(values))

    def _failures(self, values: Sequence[Any]) -> Iterator[GuardFailure]:
        return self.prologue.failures({f"p{i}": v for i, v in enumerate(values)})

    def source(self, route: Sequence[bool] = (), keep: Callable[[Guard], bool] = lambda guard: True) -> str:
        """The text of the entry program; guards that ``keep`` refuses are left out.

        ``route`` leads the rewritten code to ``exit``.
        """
        parameters = ", ".join(f"p{i}" for i in range(self.arity))
        body: list[str] = []
        needed = None if self.graph is not None else self.loads_for_guards()
        for step in self.prologue.steps:
            if isinstance(step, LoadStep):
                if needed is None or step.variable in needed:
                    body.append(f"{step.variable} = {step.code}")
            elif keep(step):
                body.append(f"if not ({step.code}): return MISS")
        text = [f"def entry({parameters}):"]
        if body:
            text += ["    try:", *(f"        {line}" for line in body)]
            text += ["    except Exception as error:", "        raise_if_callers(error)", "        return MISS"]
        if self.graph is None:
            return "\n".join([*text, "    return PLAIN", ""])
        return "\n".join([*text, *self.after_guards(route), ""])

    def after_guards(
        self, route: Sequence[bool], computed: bool = False, returned: Sequence[bool] | None = None
    ) -> list[str]:
        """The statements from the graph call on; from its outputs on, where it is ``computed``."""
        assert self.graph is not None
        text: list[str] = []
        outputs = "".join(f"o{i}, " for i in range(len(self.graph.outputs)))
        if (outputs or self.graph.nodes) and not computed:  # a graph without outputs may still warn or raise
            text.append(f"    {outputs and outputs + '= '}graph({', '.join(self.inputs)})")
        text += [f"    {line}" for line in self.lines]
        if self.effects:  # after the first effect the call cannot be run again
            text += ["    try:", *(f"        {line}" for line in self.effects)]
            text += ["    except Exception as error:", "        raise mark(error)"]
        if self.locks:
            one = len(self.locks) == 1  # the order does not matter then, and a plain `with` block costs 3 us less
            block = f"    with {self.locks[0]}:" if one else f"    with held({', '.join(self.locks)}):"
            text = [block, *(f"    {line}" for line in text)]
        return [*text, f"    return {self.outcome(route, returned)}"]

    def outcome(self, route: Sequence[bool], returned: Sequence[bool] | None = None) -> str:
        """The result of the program, as text.

        ``route`` leads the rewritten code to ``exit``. Where the function returns, ``returned`` leads rewritten code
        that needs a route.
        """
        if self.exit is not None:
            return f"({', '.join([self.extras, *map(str, route), self.returns])})"
        if returned is not None:
            return f"({', '.join(['None', *map(str, returned), f'({self.returns},)'])})"
        return self.returns

    def loads_for_guards(self) -> set[str]:
        """The variables that guards read, directly or through other loads."""
        needed: set[str] = set()
        for step in reversed(self.prologue.steps):
            if isinstance(step, Guard) or step.variable in needed:
                needed.update(re.findall(r"\b[vs]\d+\b", step.code))
        return needed

    def entry(
        self,
        run: Callable[..., Any] | None,
        route: Sequence[bool] = (),
        follow: Callable[[Any], Any] | None = None,
        keep: Callable[[Guard], bool] = lambda guard: True,
    ) -> Entry:
        """The entry program as a function.

        ``run`` is the compiled graph. ``follow`` replaces a function by its compiled form.
        """
        names = self.names(run, follow)
        exec(compile(self.source(route, keep), ENTRY_FILE, "exec"), names)
        made: Entry = names["entry"]
        return made

    def names(self, run: Callable[..., Any] | None, follow: Callable[[Any], Any] | None) -> dict[str, Any]:
        """The names that the program uses and does not assign."""
        return {
            **self.prologue.constants, "graph": run, "MISS": MISS, "PLAIN": PLAIN, "asarray": as_array,
            "copyto": copy_into, "follow": follow, "UNBOUND": UNBOUND, "KEEP": KEEP, "held": held, "mark": mark,
            "raise_if_callers": raise_if_callers, "captured": self,
        }  # fmt: skip

    @cached_property
    def reread(self) -> Reread:
        """Reads everything again that the entry has read."""
        late = 0 if self.late_kinds is None else 1 + len(self.late_kinds)
        return Reread(self.prologue, self.arity + late, self.names(None, None))

    @cached_property
    def _loaded(self) -> dict[str, str]:
        """For each parameter of the entry program that is loaded unchanged, the variable that has it, too."""
        steps = (step for step in self.prologue.steps if isinstance(step, LoadStep))
        return {step.code: step.variable for step in steps if step.code.startswith("p")}

    def name_of(self, parameter: str, known: Container[str]) -> str | None:
        """A variable among the ``known`` ones that has a parameter's value; None where there is none."""
        return next((name for name in (parameter, self._loaded.get(parameter, "")) if name in known), None)

    @property
    def has_loops(self) -> bool:
        """Whether a loop of the graph may run for long."""
        return self.graph is not None and any(node.op in LOOPS for node in self.graph.nodes)


@dataclass(frozen=True, eq=False)
class Rest:
    """The entry program without its guards, for a caller that has checked them and has loaded the inputs."""

    captured: Captured
    run: Callable[..., Any] | None
    route: Sequence[bool]
    follow: Callable[[Any], Any] | None

    def source(self, parameters: Sequence[str], computed: bool, returned: Sequence[bool] | None) -> str:
        """The text of a function of these variables. Where the program returns, ``returned`` leads rewritten code.

        ``computed``: from the end of the graph, whose outputs are among the variables.
        """
        body = self.captured.after_guards(self.route, computed, returned)
        return "\n".join([f"def rest({', '.join(parameters)}):", *body, ""])

    def function(self, parameters: Sequence[str], computed: bool, returned: Sequence[bool] | None) -> Entry:
        """The same as a callable."""
        names = self.captured.names(self.run, self.follow)
        exec(compile(self.source(parameters, computed, returned), ENTRY_FILE, "exec"), names)
        made: Entry = names["rest"]
        return made


def finish(tx: Capture, result: Value, arity: int) -> Captured:
    """Turns a completed capture into a program. Raises CannotCapture where the result cannot be made again."""
    builder = Rebuilder(tx.prologue)
    return _program(tx, builder, builder.rebuild(result), arity)


def finish_at(tx: Capture, frame: RootFrame, point: Point, arity: int) -> Captured:
    """The program of a capture that stopped at ``point``, where ``frame`` holds the captured locals and stack.

    Raises CannotCapture where one of them cannot be made again.
    """
    builder = Rebuilder(tx.prologue)
    values = [_local(builder, frame, name) for name in point.live]
    callee = frame.callee_slot()
    calls = False
    if [not isinstance(value, Null) for value in frame.stack] != list(point.slots):
        raise CannotCapture("internal-error", f"The stack at {point.offset} is not as it should be.")
    for slot, value in enumerate(frame.stack):
        if isinstance(value, Null):
            continue
        code = builder.rebuild(value)
        if slot == callee and (isinstance(value, FunctionValue | MethodValue | LazyValue) or _is_frame(value)):
            code, calls = f"follow({code})", True
        values.append(code)
    stand_in = _stand_in(tx, frame)
    if stand_in is not None:
        values[-1] = f"{builder.prologue.constant(stand_in)}({values[-1]})"
    returns = f"({', '.join(values)}{',' if values else ''})"
    captured = _program(tx, builder, returns, arity, _extras(builder, frame, point))
    captured.exit, captured.calls, captured.stands_in = point.offset, calls, stand_in is not None
    return captured


def _stand_in(tx: Capture, frame: RootFrame) -> Callable[[Any], Any] | None:
    """What makes the object of which plain Python reads an attribute next, where it gets another one."""
    instruction = frame.decoded.instructions[frame.at]
    if tx.tensors is None or not frame.stack or instruction.opname not in ("LOAD_METHOD", "LOAD_ATTR"):
        return None
    owner = settled(tx, frame.stack[-1])
    made: Callable[[Any], Any] | None = tx.tensors.stand_in(owner.python_type, instruction.argval)
    return made


def _is_frame(value: Value) -> bool:
    """Whether a value is a function whose own frame runs in plain Python, with its calls compiled."""
    treatment = treatment_of(value.value) if isinstance(value, Constant) else None
    return treatment is not None and treatment.kind == "frame"


def _local(builder: Rebuilder, frame: RootFrame, name: str) -> str:
    """Code for a local variable where the frame goes on."""
    value = frame.locals.get(name)
    if value is not None:
        return builder.rebuild(value)
    if name in frame.uncertain and name not in frame.assigned:
        return builder.load(frame.uncertain[name][0])
    return "UNBOUND"


def _extras(builder: Rebuilder, frame: RootFrame, point: Point) -> str:
    """Code for the changes to dead local variables: arrays are dropped, other values are kept."""
    changed = frame.assigned.difference(point.live)
    if not changed:
        return "None"
    codes = []
    for name in frame.code.co_varnames:
        if name in frame.cells:
            continue
        if name not in changed:
            codes.append("KEEP")
            continue
        value = frame.locals.get(name)
        if value is None or (isinstance(value, ArrayValue) and value.source is None):
            codes.append("UNBOUND")
            continue
        try:
            codes.append(builder.rebuild(value))
        except CannotCapture:  # the variable is dead
            codes.append("UNBOUND")
    return f"({', '.join(codes)}{',' if codes else ''})"


def _program(tx: Capture, builder: Rebuilder, returns: str, arity: int, extras: str = "None") -> Captured:
    """The program that computes the graph, does the side effects, and returns."""
    effects = []
    for effect in tx.effects.values():
        namespace = builder.constant(effect.namespace)
        if effect.value is None:
            effects.append(f"{namespace}.pop({effect.name!r}, None)")
        else:
            effects.append(f"{namespace}[{effect.name!r}] = {builder.rebuild(effect.value)}")
    tx.keep_apart()
    for changed in tx.mutated.values():
        effects += changed.commit(builder)
    tx.loosen()
    graph = tx.graph
    graph.outputs = [_as_it_was(tx, held, traced.node) for held, traced in builder.outputs]
    known = set(graph.nodes)
    graph.outputs += [check for check in tx.taken_path.values() if check in known]  # a trial trace takes its nodes back
    _bind_numbers(tx)
    inputs = _prune_inputs(graph, tx.input_sources)
    places = {node: position for position, node in enumerate(graph.inputs)}
    for position, (held, _) in enumerate(builder.outputs):
        if isinstance(held, Memory) and held.root in places:
            graph.updates[position] = places[held.root]
    fixes = []
    for position, (_, traced) in enumerate(builder.outputs):
        if traced.scalar:
            fixes.append(f"o{position} = o{position}[()]")
        elif not traced.type.ndim and traced.type.device == "cpu":
            fixes.append(f"o{position} = asarray(o{position})")
    _guard_sizes(graph.env, tx.prologue, tx.symbols.texts)
    return Captured(
        graph, tx.prologue, arity, [tx.prologue.load(source) for source in inputs], [*fixes, *builder.lines],
        returns, effects, symbol_texts=tx.symbols.texts, extras=extras, differs=tx.differs, locks=tx.locks(),
        followed=tuple(tx.followed.values()),
        late_kinds=tuple(tx.late_kinds) if tx.options.continues else None, asked=len(graph.env.guards),
    )  # fmt: skip


@contextlib.contextmanager
def held(*locks: Any) -> Iterator[None]:
    """A block in which all the locks are held. They are acquired in one order, so that threads do not deadlock."""
    with contextlib.ExitStack() as stack:
        for lock in sorted(locks, key=lambda lock: id(getattr(lock, "lock", lock))):
            stack.enter_context(lock)
        yield


def _as_it_was(tx: Capture, held: object, node: Node) -> Node:
    """An output; copied where it shows an argument's elements from before a later write."""
    if isinstance(held, ArrayValue) and held.memory is None:
        memory, _ = tx.memory_of(node)
        if memory.owner is not None and memory.version:
            return tx.builder.op("copy", node)
    return node


def plain(tx: Capture, start: Start) -> Captured:
    """The program of a frame that runs on in plain Python whenever the guards collected so far hold."""
    tx.loosen()
    _guard_sizes(tx.graph.env, tx.prologue, tx.symbols.texts)
    return Captured(None, tx.prologue, start.arity, symbol_texts=tx.symbols.texts, exit=start.offset)


def _bind_numbers(tx: Capture) -> None:
    """Gives the graph an input for each Python int that is part of it."""
    if not tx.symbols.numbers:
        return
    used: set[str] = set()

    def note(value: Any) -> None:
        if isinstance(value, SymInt):
            used.update(re.findall(r"\bs\d+\b", str(value)))
        elif isinstance(value, tuple | list):
            for item in value:
                note(item)
        elif isinstance(value, slice):
            note((value.start, value.stop, value.step))
        elif isinstance(value, TensorType):
            note(value.shape)

    def visit(body: Graph) -> None:
        for node in [*body.inputs, *body.nodes]:
            note(node.operands)
            note(tuple(node.attrs.values()))
            note(node.type)
            for region in node.regions:
                visit(region)

    visit(tx.graph)
    for name, (symbol, source) in tx.symbols.numbers.items():
        if name in used:
            tx.graph_input(ScalarType("int", symbol), source)


def _prune_inputs(graph: Graph, sources: Sequence[Source]) -> list[Source]:
    """Drops unused inputs (unless they bind a symbol); returns the sources of the others."""
    read: set[Node] = set(graph.outputs)
    symbols: set[str] = set()

    def visit(body: Graph) -> None:
        for node in body.nodes:
            read.update(node.inputs)
            for region in node.regions:
                visit(region)

    visit(graph)
    for name, (position, _) in graph.symbol_inputs().items():
        if graph.inputs[position] not in read:
            bound_elsewhere = any(_binds(node, name) for node in graph.inputs if node in read)
            if not bound_elsewhere:
                symbols.add(name)
                read.add(graph.inputs[position])
    kept = [(node, source) for node, source in zip(graph.inputs, sources, strict=True) if node in read]
    graph.inputs[:] = [node for node, _ in kept]
    return [source for _, source in kept]


def _binds(node: Node, symbol: str) -> bool:
    sizes = getattr(node.type, "shape", ()) or (getattr(node.type, "symbol", None),)
    return any(isinstance(size, SymInt) and str(size) == symbol for size in sizes)


def _guard_sizes(env: ShapeEnv, prologue: Prologue, symbol_texts: Mapping[str, str], first: int = 0) -> None:
    """Adds guards for assumptions about symbolic sizes, from the ``first`` one on, and freezes the environment."""
    for relation, holds in list(env.guards.items())[first:]:
        text = readable(relation, symbol_texts)
        prologue.guard(
            SizeSource(relation), f"({{}}) is {holds}", text if holds else f"not ({text})", str(holds), "question"
        )
    env.frozen = True
