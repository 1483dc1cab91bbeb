"""Early exits: parts of an iteration that a test of the graph's values ends, and the frame after the loop.

Input: a frame in an iteration of a loop, at a jump on a value that the graph computes.
Output: the end of a part of the iteration, with the flag that ends it. After the loop: the frame where it goes on,
whichever exit was taken.
Why: ``while error > tolerance`` and ``break`` depend on values that only the graph has.

A jump out of the loop, or to its next iteration, ends a part. The values of variables are carried to the next part, and
variables that are read after the exit are noted. Where a loop has several exits, each one is followed up to where they
meet. There, the values of variables are selected by the exit that was taken. An exit that ends in ``raise`` is left to
plain Python.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from tcompile.bytecode.instructions import Instruction
from tcompile.capture.interpreter.frame import Returned
from tcompile.capture.interpreter.loop_info import Header
from tcompile.capture.loops.after_loop import AfterLoop, Select
from tcompile.capture.loops.carried import Carried
from tcompile.capture.loops.discover_carried import same_constant, unchanged
from tcompile.capture.loops.leaves import Count, Leaf, Unsettled, leaves_of
from tcompile.capture.loops.trip_count import course, int_of, is_int, stays_while, trip_count_while, ways_of_test
from tcompile.capture.semantics.operators import binary
from tcompile.capture.semantics.subgraph import state_of
from tcompile.capture.values.base import Value, settled
from tcompile.capture.values.constant import Constant, IntegerValue, integer
from tcompile.capture.values.int_nodes import int_node
from tcompile.capture.values.scalar import truth_node, truth_of
from tcompile.frontends.base import CannotCapture
from tcompile.graph import Node, SymInt
from tcompile.graph.ops.control import FOREVER
from tcompile.graph.sizes import Size, VariesInLoop, same
from tcompile.records import dataclass

if TYPE_CHECKING:
    from tcompile.capture.interpreter.frame import Frame

_MOST_STEPS = 400  # that are followed after an exit, where a loop has several
_COMPARE = {
    "<": "less", "<=": "less_equal", "==": "equal", "!=": "not_equal", ">": "greater", ">=": "greater_equal",
}  # fmt: skip


class Left(CannotCapture):
    """The body jumps out of the loop."""

    def __init__(self) -> None:
        super().__init__("loop-mismatch", "it is left by `break`")


@dataclass
class Way:
    """One exit of a loop: the number of the part that it ends, the frame's next instruction, and its values.

    Number 0 is the exit after all iterations.
    """

    number: int
    at: int
    values: dict[str, Any]
    stack: list[Value]
    shown: list[Leaf]  # the leaves that had its values at the start of the iteration
    iteration: Size | None = None  # in which it is taken, where it is taken and that is known


class Exits:
    """The exits of one loop, and the parts of its iterations."""

    def __init__(self, f: Frame, carried: Carried, header: Header, loop: Any) -> None:
        self.f, self.carried, self.header, self.loop = f, carried, header, loop
        self.tx, self.flow = f.tx, f.decoded.flow
        self.starts = frozenset((header.at, header.entry))
        self.flags: list[Node] = []
        self.leaves: list[bool] = []
        self.ways: list[Way] = []
        self.known: list[Size | None] = []  # for each test, the iteration in which it leaves, where that is known
        self._iteration: Size | None = None  # the same for the last comparison
        self._nexts: list[dict[str, Any]] = []
        self._seen: list[tuple[set[str], dict[str, Value]]] = []  # for each test: variables read later, values
        # The first half of `a and b`, the target where it fails, and the number of changes before the second half.
        self._pending: tuple[Node, int, int] | None = None

    # -- tests ---------------------------------------------------------------------------------------------------------
    def take(self, at: int, i: Instruction, looking: bool) -> bool:
        """Follows an instruction of a test of the graph's values; False for other instructions."""
        f, tx, name = self.f, self.tx, i.opname
        if name in ("TO_BOOL", "UNARY_NOT"):
            flag = self._truth(f.peek(1))
            if flag is not None:
                f.pop()
                f.push(truth_of(tx, flag if name == "TO_BOOL" else tx.builder.op("logical_not", flag)))
            return flag is not None
        if name == "COMPARE_OP":
            return self._compare(at, i)
        if not _is_test(name):
            return False
        flag = self._truth(f.peek(1))
        if flag is not None and tx.options.follows_path:
            raise CannotCapture("data-dependent-branch", tx.current_text())
        if flag is None:
            if self._pending is not None:
                raise CannotCapture("data-dependent-branch", tx.current_text())
            return False
        f.pop()
        self._branch(at, i, flag, looking)
        return True

    def _is_open(self, size: Size) -> bool:
        """Whether the graph tests an int that depends on the induction variable."""
        return self.carried.plan.open_tests or (isinstance(size, SymInt) and size.varies_unevenly())

    def _truth(self, value: Value) -> Node | None:
        """The truth of a value that the graph computes, or of an int that is zero in some iterations; or None."""
        value = settled(self.tx, value)
        if not isinstance(value, IntegerValue):
            return truth_node(self.tx, value)
        try:
            bool(value.size)
        except VariesInLoop:
            if self._is_open(value.size):
                return self.tx.builder.op("not_equal", int_node(self.tx, value.size), 0)
        return None

    def _compare(self, at: int, i: Instruction) -> bool:
        """A comparison: of ints that differ from iteration to iteration, or one whose result is tested."""
        f, tx = self.f, self.tx
        left, right = settled(tx, f.stack[-2]), settled(tx, f.stack[-1])
        sign = i.argval.removeprefix("bool(").removesuffix(")")
        try:
            result = binary(tx, sign, left, right)
        except VariesInLoop:
            test = at + 1
            while self.flow.instructions[test].opname == "TO_BOOL":
                test += 1
            is_test = _is_test(self.flow.instructions[test].opname)
            if not is_test:
                raise
            distance = int_of(left) - int_of(right)
            leads = any(map(self._kind, self.flow.ways(test)))
            if not leads and not self._is_open(distance):
                raise
            stays = stays_while(self.flow, self.header, at, i) if leads else None
            found = course(distance, str(self.carried.counter)) if stays is not None else None
            self._iteration = trip_count_while(*found, stays) if found is not None and stays is not None else None
            if self._iteration is not None and not self._iteration < self.loop.left:  # no iteration leaves by it
                f.pop_many(2)
                f.at, _ = ways_of_test(self.flow, self.header, at)
                return True
            result = truth_of(tx, tx.builder.op(_COMPARE[sign], int_node(tx, distance), 0))
        f.pop_many(2)
        flag = truth_node(tx, result) if i.argrepr.startswith("bool(") else None
        if flag is not None:
            result = truth_of(tx, flag)
        elif i.argrepr.startswith("bool("):
            result = Constant(result.truth(tx))
        f.push(result)
        return True

    def _kind(self, way: int) -> str | None:
        """The target of a jump: out of the loop ("leave"), its next iteration ("next"), or this iteration (None)."""
        if way not in self.header.inside:
            return "leave"
        return "next" if self._through(way) in self.starts else None

    def _through(self, at: int) -> int:
        return self.flow.through(at, self.starts)

    def _branch(self, at: int, i: Instruction, flag: Node, looking: bool) -> None:
        """Follows the way that stays in the iteration; the other one ends a part of it."""
        op, f = self.tx.builder.op, self.f
        target, on = self.flow.target(at), at + 1
        yes, no = (target, on) if i.opname.endswith("TRUE") else (on, target)
        pairs = ((yes, no, flag), (no, yes, op("logical_not", flag)))
        if self._pending is not None:
            (came, other, changes), self._pending, self._iteration = self._pending, None, None
            if self.tx.mutations != changes:  # the second half is done only where the first half does not decide
                self.loop.again(split_short_circuit=True)
            for way, stay, holds in pairs:
                if self._through(stay) == other and self._kind(way):
                    return self.cut(op("logical_and", came, holds), way, stay, looking)
            raise CannotCapture("data-dependent-branch", self.tx.current_text())
        for kind in ("leave", "next"):
            for way, stay, holds in pairs:
                if self._kind(way) == kind and self._kind(stay) != "leave":
                    return self.cut(holds, way, stay, looking)
        for way, other, holds in () if self.carried.plan.split_short_circuit else pairs:
            test = self.flow.second_test(way, self._through(other), self.starts | self.f.decoded.headers.keys())
            if test is not None and any(map(self._kind, self.flow.ways(test))):
                self._pending, self._iteration = (holds, self._through(other), self.tx.mutations), None
                f.at = way
                return None
        self.loop.branch(at, yes, no, flag)
        return None

    def cut(self, flag: Node, way: int, stay: int, looking: bool) -> None:
        """Ends a part of the iteration with a flag."""
        f, carried, plan, loop = self.f, self.carried, self.carried.plan, self.loop
        leaves = self._kind(way) == "leave"
        known, self._iteration = self._iteration, None
        self.known.append(known)
        loop.slots.note()  # slots may have their old values back after the test
        loop.slots.show()
        loop.marks.note(loop.given)
        read = loop.live_at(way) if leaves else loop.live_before
        f.at = stay
        if looking:
            self._seen.append((read, dict(f.locals)))
            loop.slots.hide()
            return
        if plan.unroll_factor > 1:
            raise CannotCapture("loop-mismatch", "arrays change places in an iteration that a test may end")
        wanted = read | loop.live(stay)
        for name in [name for name in f.locals if name not in wanted]:
            del f.locals[name]
        for name, tree in carried.trees.items():
            if name in read:
                if name not in f.locals:
                    raise Unsettled(f"`{name}` has no value where a test ends the iteration")
                carried.set_end(name, tree, f.locals[name])
        if not leaves:
            self._check_given(plan)
        self.flags.append(flag)
        self.leaves.append(leaves)
        values = [(name, f.locals[name]) for name in sorted(wanted) if name in f.locals]
        places = carried.move([*values, *(("", value) for value in f.stack)], to_next_iteration=not leaves)
        loop.slots.hide()
        if not leaves:
            own = carried.trees.keys() | plan.induction_steps.keys()
            late = loop.live_after - own
            bound = {n: v for n, v in values if n in late and not unchanged(self.tx, loop.given.get(n), v)}
            self._nexts.append({name: carried.at_exit(name, value, places) for name, value in bound.items()})
            return
        held = {name: carried.at_exit(name, value, places) for name, value in values if name in read}
        left = leaves_of(held.values())
        carried.is_mixed |= any(leaf.kind == "array" and leaf.shows not in (None, leaf) for leaf in left)
        shown = [leaf.shows for leaf in left if leaf.shows is not None]
        self.ways.append(Way(len(self.flags), way, held, list(f.stack), shown, known))

    def _check_given(self, plan: Any) -> None:
        """The next iteration must begin with the values of this one, except for carried values."""
        f, loop = self.f, self.loop
        for name in loop.needed - self.carried.trees.keys():
            start, end = loop.given.get(name), f.locals.get(name)
            if name in plan.induction_steps and start is not None and end is not None:
                if not (is_int(end) and same(int_of(end) - int_of(start), plan.induction_steps[name])):
                    loop.compute({name})
            elif not unchanged(self.tx, start, end):
                loop.again(carried=plan.carried | {name})

    def check_halves(self) -> None:
        """Refuses an iteration that ends before the second half of an ``a and b``."""
        if self._pending is not None:
            raise CannotCapture("data-dependent-branch", self.tx.current_text())

    @property
    def tests(self) -> bool:
        """Whether the trial trace of the iteration has met a test."""
        return bool(self._seen)

    def asked(self, given: dict[str, Value]) -> set[str]:
        """The variables that are read after a test and not bound before it."""
        return {n for read, held in self._seen for n in read if held.get(n) is given.get(n)}

    def check_next(self, results: dict[str, Any]) -> None:
        """The values of variables after all iterations must not depend on the end of the last iteration."""
        late = {name for name, tree in results.items() if tree is not None}
        for held in self._nexts:
            for name in held.keys() | late:
                at_test: Any = held.get(name)
                at_end: Any = results.get(name)
                if isinstance(at_test, Count):
                    at_test = integer(at_test.size.at(str(self.carried.counter), self.carried.last))
                alike = at_test is at_end or same_constant(at_test, at_end)
                if not alike and not (_both_ints(at_test, at_end) and same(int_of(at_test), int_of(at_end))):
                    raise CannotCapture("loop-mismatch", f"`{name}` depends on how the last iteration ends")

    # -- after the loop -----------------------------------------------------------------------------------------------
    def allow(self, node: Node, ways: Sequence[Way], after: AfterLoop | None = None) -> None:
        """Notes in the loop's node the exits that it may take, each with a least number of iterations.

        The identity of an array with other aliases is left open until it matters. Then iterations record it in marks.
        Where they cannot, the loop must have made the array. A branch is refused, as its side may never be taken.
        """
        plan = self.carried.plan
        least: list[int | None] = [None] * (len(self.flags) + 1)
        for way in ways:
            least[way.number] = max((leaf.foreign for leaf in way.shown), default=0)
        if any(least) and after is not None and self._tells_new(ways):
            after.leave_open(plan)
            least = [None if foreign is None else 0 for foreign in least]
        if any(least) and plan.is_branch:
            raise CannotCapture("loop-mismatch", "which array a variable holds depends on it")
        if any(foreign is not None and foreign >= FOREVER for foreign in least):
            raise Unsettled("an array that something else may hold is carried from iteration to iteration")
        node.attrs["least"] = tuple(least)

    def _tell_new(self, after: AfterLoop, which: Node, ways: Sequence[Way]) -> None:
        """Sets for the arrays of marked variables whether they are new."""
        select = Select(self.tx, after, which, [way.number for way in ways])
        for mark in self.loop.marks.by_name.values():
            if ways and all(mark in way.values for way in ways):
                self.f.locals[mark] = select.merged(mark, [way.values[mark] for way in ways])
        self.loop.marks.tell(self.carried, after)

    def _tells_new(self, ways: Sequence[Way]) -> bool:
        """Whether marks say which arrays are new, or it does not matter."""
        plan = self.carried.plan
        if not plan.exact or plan.made:
            return not plan.made
        foreign = {leaf for way in ways for leaf in way.shown if leaf.foreign}
        names = {name for name, tree in self.carried.trees.items() if tree in foreign}
        if self.carried.is_mixed or len(names) < len(foreign):
            return False
        if not names <= plan.marked:
            self.loop.again(marked=plan.marked | names, looked=False)
        return True

    def leave(self, made: Sequence[Node], end: Way | None) -> Value | None:
        """Moves the frame to where it goes on; the value where the function returns there.

        ``end`` is the exit after all iterations.
        """
        try:
            return self._leave(made, end)
        except CannotCapture as error:
            if error.reason != "object-identity" or not self.loop.marks.by_name or self.carried.plan.made:
                raise
            again = self.loop.again
            again(made=True, marked=set(), looked=False, carried=set(), asked=set(), induction_steps={})
            raise

    def _leave(self, made: Sequence[Node], end: Way | None) -> Value | None:
        tx = self.tx
        *_, iterations, which = made
        ways = list(self.ways)
        known = [way.iteration for way in ways if way.iteration is not None]
        if end is not None and not known:
            ways.insert(0, end)
        after = AfterLoop(self.carried, iterations if len(ways) > 1 or not known else known[0])
        for way in ways:
            way.values = {name: after.value(tree) for name, tree in way.values.items() if tree is not None}
        chains = [self.flow.chain(way.at) for way in ways]
        raising = [way.at in self.flow.lost for way in ways]
        ways = [way for way, raises in zip(ways, raising, strict=True) if not raises]
        self.allow(which.inputs[0], ways, after)
        self._tell_new(after, which, ways)
        chains = [chain for chain, raises in zip(chains, raising, strict=True) if not raises]
        if not ways:
            raise CannotCapture("loop-mismatch", "it ends in an exception")
        tx.touch()
        if len(ways) == 1:
            self._go_to(ways[0])
            return None
        meet = next((at for at in chains[0] if all(at in chain for chain in chains)), None)
        if meet is None and not all(self._returns(chain) for chain in chains):
            raise CannotCapture("loop-mismatch", "the code after it depends on how it is left")
        self._go_to(ways[0])
        slots = self.loop.slots
        start = slots.values()
        after.before = before = state_of(tx)  # of live values: the exits hold them
        written = tx.written()  # also the contents of lists and dicts from outside
        stored = {key: effect.value for key, effect in tx.effects.items()}  # a store to a global makes another effect
        held = [way.values for way in ways]
        returned = [self._follow(way, meet) for way in ways]
        slots.put(start)
        now_held = state_of(tx)
        del held
        same_globals = before[1] == now_held[1] and all(tx.effects[key].value is held for key, held in stored.items())
        now = tx.written()
        same_globals = same_globals and all(now.get(memory, count) == count for memory, count in written.items())
        if not same_globals or any(found != now_held[0].get(key, found) for key, found in before[0].items()):
            raise CannotCapture("loop-mismatch", "the code after one of its exits has side effects")
        select = Select(tx, after, which, [way.number for way in ways])
        names = self.loop.live(meet) if meet is not None else set(start)
        if meet is not None and len({len(way.stack) for way in ways}) != 1:
            raise CannotCapture("loop-mismatch", "the code after it depends on how it is left")
        found = {n: [way.values.get(n) for way in ways] for n in names if any(n in way.values for way in ways)}
        ways[0].values = {name: select.merged(f"`{name}`", values) for name, values in found.items()}
        if meet is None:
            slots.put(ways[0].values)
            return select.merged("the result", [value for value in returned if value is not None])
        stacks = [*zip(*(way.stack for way in ways), strict=True)]
        ways[0].stack = [select.merged("a value", list(values)) for values in stacks]
        ways[0].at = meet
        self._go_to(ways[0])
        return None

    def meet(self, made: Sequence[Node], ways: Sequence[Way], names: set[str]) -> None:
        """Moves the frame to where all exits lead that do not end in an exception. ``names`` are read there.

        A variable that only some exits have bound is bound anew before it is read.
        """
        *_, iterations, which = made
        after = AfterLoop(self.carried, iterations)
        for way in ways:
            way.values = {name: after.value(tree) for name, tree in way.values.items() if tree is not None}
        meet = ways[0].at
        ways = [way for way in ways if way.at == meet or way.at not in self.flow.lost]
        if any(way.at != meet for way in ways):
            raise CannotCapture("data-dependent-branch", self.tx.current_text())
        self.allow(which.inputs[0], ways, after)
        self._tell_new(after, which, ways)
        after.before = state_of(self.tx)
        values, stacks = {}, [*zip(*(way.stack for way in ways), strict=True)]
        for name in names:
            having = [way for way in ways if name in way.values]
            if having:
                select = Select(self.tx, after, which, [way.number for way in having])
                values[name] = select.merged(f"`{name}`", [way.values[name] for way in having])
        select = Select(self.tx, after, which, [way.number for way in ways])
        stack = [select.merged("a value", list(held)) for held in stacks]
        self._go_to(Way(0, meet, values, stack, []))

    def _returns(self, chain: list[int]) -> bool:
        return self.flow.instructions[chain[-1]].opname.startswith("RETURN_")

    def _go_to(self, way: Way) -> None:
        f = self.f
        f.locals.clear()
        f.locals.update(way.values)
        self.loop.slots.store()
        f.stack[:] = way.stack
        f.at = way.at

    def _follow(self, way: Way, meet: int | None) -> Value | None:
        """Follows the instructions after one exit, up to where all exits meet; the value where it returns."""
        f, tx = self.f, self.tx
        self._go_to(way)
        for _ in range(_MOST_STEPS):
            if f.at == meet:
                way.values, way.stack = {**f.locals, **self.loop.slots.values()}, list(f.stack)
                return None
            at = f.at
            f.at = at + 1
            i, run = f.decoded.instructions[at], f.decoded.handlers[at]
            f.refuse_step(i)
            if run is None:
                raise CannotCapture("unsupported-instruction", i.opname)
            tx.builder.location = f.location(at)
            try:
                run(f, i)
            except Returned as returned:
                way.values = self.loop.slots.values()
                return settled(tx, returned.value)
        raise CannotCapture("too-long", "the code after a loop")


def _is_test(name: str) -> bool:
    return name.startswith("POP_JUMP") and name.endswith(("TRUE", "FALSE"))


def _both_ints(a: Any, b: Any) -> bool:
    return all(isinstance(x, Value) and is_int(x) for x in (a, b))


__all__ = ["Exits", "Left", "Way"]
