"""Loops that stay loops: ``for`` over a range or an array, or ``while``, becomes one node; its body is traced once.

Input: a frame where a loop begins.
Output: the node in the graph, and the frame after the loop.
Why: a thousand time steps compile as fast as ten.

The body is traced in a graph of its own, with a symbol for the induction variable. The loop variable, and every int
that grows by the same amount in each iteration, are expressions of it. Arrays that are written, and variables that are
bound anew, are loop-carried. A carried value keeps its kind, dtype and shape. Where it does not, one or two iterations
are peeled (``x = None`` before the loop, an int that becomes a float). Where two arrays change places (``u, v = v,
u``), the loop is unrolled by the number of iterations that brings them back. Then every array keeps its place.

A test of a computed value may leave the loop (``while err > tol``, ``if done: break``), or start the
next one (``continue``). It ends a part of the iteration (``exits``), and the node is an ``exit_loop``. A test of
ints at the start of a ``while`` loop's iteration gives the trip count.

Carried values are known only when the body has been traced. So a loop gets a trial trace, and then capture starts anew
with the plan: no changes to captured values have to be undone. A body that cannot be captured, or that does not settle,
is noted in the plan too. The loop is then unrolled as far as possible.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Collection, Iterable, Sequence
from typing import Any

from tcompile.bytecode.dialect import D
from tcompile.bytecode.instructions import Instruction
from tcompile.capture.context.loop_plan import MANY_ITERATIONS, LoopPlan, Restart, WhileLoop
from tcompile.capture.guards.graph_breaks import CATALOGUE
from tcompile.capture.interpreter.frame import HANDLERS, Frame, Returned, Yielded
from tcompile.capture.interpreter.loop_info import Header
from tcompile.capture.loops.after_loop import AfterLoop
from tcompile.capture.loops.attribute_slots import Slots
from tcompile.capture.loops.build_node import computes_constants, loop_node
from tcompile.capture.loops.carried import Carried
from tcompile.capture.loops.continuation import LateInt, LateIterator, go_to_next_iteration, is_wanted
from tcompile.capture.loops.discover_carried import look, unchanged
from tcompile.capture.loops.exits import Exits, Left, Way
from tcompile.capture.loops.fresh_arrays import Marks
from tcompile.capture.loops.leaves import Leaf, Parted, Uneven, Unsettled, leaves_of
from tcompile.capture.loops.list_accumulators import Collected, alike
from tcompile.capture.loops.predict_carried import foresee
from tcompile.capture.loops.trip_count import course, int_of, is_int, stays_while, trip_count_while, ways_of_test
from tcompile.capture.semantics.subgraph import open_region, state_of
from tcompile.capture.values.array import ArrayValue, Memory
from tcompile.capture.values.base import LazyValue, Value, settled
from tcompile.capture.values.constant import integer
from tcompile.capture.values.counted import Counted
from tcompile.frontends.base import CannotCapture
from tcompile.graph import Graph, Node, SymInt, ops
from tcompile.graph.sizes import ShapeEnv, Size, VariesInLoop, VariesUnevenly, counters_in, same
from tcompile.graph.verify import fits
from tcompile.observe.source_location import UserLine

FEW_OPERATIONS = 64  # trip count x operations: a loop of no more is unrolled
_MOST_TRIES = 12  # of one loop
_MOST_RESTARTS = 64  # of one capture
_MANY_RESTARTS, _MOST_FOLLOWED = 4, 10_000  # beyond both, no branch becomes a node: capture has taken a second
# Reasons for breaks that depend on the place in the program, not on the induction variable.
_IN_THE_FRAME = frozenset({
    "input-output", "side-effect", "graph-break-call", "disabled-function", "compiled-by-itself", "with-statement",
})  # fmt: skip


def plan_of(f: Frame, items: Counted | WhileLoop, iterations: str, unrolled: bool, side: str = "") -> LoopPlan | None:
    """The plan of the loop, or of a branch's ``side``; None where it is to be unrolled."""
    tx = f.tx
    key = (*((id(frame.code), frame.at) for frame in tx.frames), side, len(tx.open_loops))
    if isinstance(items, WhileLoop) and items.plan is not None:  # it may have been entered at another place
        plan: LoopPlan | None = items.plan
    else:
        plan = tx.loops.plans.get(key)
    if plan is None:
        if unrolled or tx.loops.restarts >= _MOST_RESTARTS or f.analysis() is None:
            items.decided = True
            return None
        plan = tx.loops.plans[key] = LoopPlan(_first_line(f.user_line()), iterations, is_branch=bool(side))
    if plan.is_branch and tx.loops.restarts > _MANY_RESTARTS and tx.loops.followed > _MOST_FOLLOWED:
        plan.outcome, plan.reason = "unrolled", "tracing branches in branches takes too long"
    plan.met = True
    items.plan = plan
    if plan.outcome == "unrolled":
        items.decided = True
        return None
    return plan


def is_known(env: ShapeEnv, size: Size) -> bool:
    """Whether a size of another attempt consists of symbols that this attempt has, too."""
    return isinstance(size, int) or set(re.findall(r"\bs\d+\b", str(size))) <= env.hints.keys()


def make(loop: Loop) -> bool:
    """Makes the node, or notes why there is none. Returns whether the frame is where it goes on after the loop."""
    try:
        elsewhere, returned = loop.run()
    except (CannotCapture, VariesInLoop, Returned, Yielded, Unsettled) as error:
        loop.refuse(error)
    loop.plan.outcome, loop.plan.reason = "node", ""
    if returned is not None:
        raise Returned(returned)
    return elsewhere


def _first_line(where: UserLine) -> UserLine:
    """The line of the ``for`` itself."""
    return dataclasses.replace(where, end_line=0, end_column=None)


class Loop:
    """One loop, or a side of a branch, on its way to become a node: ``whole_loop`` and ``branches`` say which."""

    most_apart = 2  # iterations that may be peeled

    def __init__(self, f: Frame, items: Counted | WhileLoop, plan: LoopPlan, header: Header, sure: bool) -> None:
        self.f, self.items, self.plan, self.header, self.sure = f, items, plan, header, sure
        self.tx = f.tx
        self.left = items.left
        self.is_for = isinstance(items, Counted)
        self.finds_limits = not self.is_for and not plan.unknown_trip_count and plan.unroll_factor == 1
        self.number = 0  # of the iteration that is traced, where the node's loop is unrolled
        self.bound = _bound(f.decoded.instructions[at] for at in header.inside)
        found = f.analysis()
        assert found is not None
        self.analysis = found
        self.slots = Slots(f, plan.slots)
        self.marks = Marks(f, plan.marked)
        self.collected = Collected(f, plan.collected)
        after = set() if not self.is_for else self.live(f.decoded.flow.target(header.at))
        if plan.limit is not None:
            after = self.live(self.way_out())
        self.changes = 0  # of captured state, before the iteration
        self.live_after = self.live_past = after
        self.needed = self.live(header.at + self.is_for) | plan.asked
        self.live_before = self.needed | after

    def live_at(self, way: int) -> set[str]:
        """The variables that are live where a test leaves the loop."""
        return self.live(way)

    def live(self, at: int) -> set[str]:
        """The variables that are live at an instruction, and the variables of slots, marks and lists."""
        found = self.analysis
        bits = found.live[found.stream.index[self.f.decoded.instructions[at].start]]
        return {name for name, bit in found.fast_bit.items() if bits >> bit & 1} | self.hidden

    @property
    def hidden(self) -> set[str]:
        """The variables of slots, marks and lists."""
        return self.slots.known.keys() | self.marks.all | self.collected.all

    # -- restarts ------------------------------------------------------------------------------------------------------
    def refuse(self, error: Exception) -> None:
        """Peels another iteration where that may help, else has the loop unrolled."""
        plan = self.plan
        if isinstance(error, Parted) and plan.tested and error.name not in plan.split_aliases:
            self.again(split_aliases=plan.split_aliases | {error.name})
        varies = isinstance(error, VariesInLoop)
        helps = not (varies and plan.open_tests) and not isinstance(error, VariesUnevenly)
        more = plan.peeled < self.most_apart and plan.tries < _MOST_TRIES
        if isinstance(error, Unsettled | VariesInLoop) and helps and more:
            self.tx.loops.reconsider_inside(plan, varies)
            self.look_again(peeled=plan.peeled + 1, reason=why(error))
        non_affine = {error.name} if isinstance(error, Uneven) else set(plan.induction_steps) if varies else set()
        if not non_affine <= plan.non_affine or (varies and not plan.open_tests):
            self.compute(non_affine, peeled=0, open_tests=plan.open_tests or varies)
        in_the_frame = isinstance(error, CannotCapture) and error.reason in _IN_THE_FRAME
        stepped = in_the_frame and self.tx.options.max_unrolled is not None
        self.again(outcome="unrolled", reason=why(error), interpreted_loop=stepped)

    def compute(self, names: set[str], **more: Any) -> None:
        """Starts anew with ints that the graph computes: they do not grow by the same amount in each iteration."""
        self.look_again(non_affine=self.plan.non_affine | names, **more)

    def look_again(self, **learned: Any) -> None:
        """Starts anew with another trial trace, as the iterations have changed."""
        self.again(induction_steps={}, looked=False, carried=set(), limit=None, limit_at=-1, **learned)

    def again(self, **learned: Any) -> None:
        """Starts capture anew with changes to the plan."""
        self.plan.learn(learned)
        self.plan.tries += 1
        if self.plan.tries > _MOST_TRIES:
            self.plan.outcome, self.plan.reason = "unrolled", self.plan.reason or "its values do not settle"
        self.tx.loops.restarts += 1
        raise Restart

    # -- the node ------------------------------------------------------------------------------------------------------
    def run(self) -> tuple[bool, Value | None]:
        """Traces the body, and adds the node.

        Returns whether the frame is where it goes on after the loop, and the function's result where it returns there.
        """
        f, tx = self.f, self.tx
        self._predict()
        iterations = self._iterations()
        self.slots.begin()
        counter = self._count(iterations)
        self.marks.begin()
        self.collected.begin(iterations)
        location, policy = tx.builder.location, tx.break_is_error
        before, stack = dict(f.locals), list(f.stack)
        known = state_of(tx)
        outside = self._prepare(before, counter, known[0].keys())
        trees = self.carried.trees.items() if not self.sure else ()
        shared = any(self._is_shared(name, tree, before[name]) for name, tree in trees)
        with open_region(tx, Graph(self.name, tx.graph.env)):
            results = self._trace(before, counter, known)
            self._reconcile(results, shared)
        self._check_state(known, self.carried.memories, policy)
        self._check_worth(iterations)
        made = loop_node(tx, self.carried, iterations, self.exits.flags, self.exits.leaves, location)
        if any(self.exits.leaves):
            self.plan.may_end_early()
        self._take_results(outside)
        return self._resume(made, iterations, before, results, stack)

    def _predict(self) -> None:
        """Takes over the prediction of the carried variables from the bytecode, in the first attempt."""
        f, plan = self.f, self.plan
        foreseen = foresee(f, self.header.inside, self.needed) if self.is_for and not plan.tries else None
        if foreseen is not None:
            plan.looked, plan.carried = True, foreseen[0]
            plan.written = {("local", name): None for name in sorted(foreseen[1] & f.locals.keys())}

    def _count(self, iterations: Size) -> SymInt:
        """The induction variable, once the ints that grow with it are known. Raises Unsettled where they are not."""
        f, tx, plan, env = self.f, self.tx, self.plan, self.tx.graph.env
        for name in sorted(self.needed & f.locals.keys()):  # other ints may be expressions of their symbols
            value = f.locals[name]
            if name in self.bound or (isinstance(value, LazyValue) and type(value.value) is int):
                f.locals[name] = settled(tx, value)
        if any(name in f.locals and not is_int(f.locals[name]) for name in plan.induction_steps):
            self.look_again()  # the loop around computes it
        if not all(is_known(env, amount) for amount in plan.induction_steps.values()):
            raise Unsettled("by how much an int grows is not known where the loop begins")
        counter = env.counter(iterations - 1, id(plan))
        # The plan's steps are in the symbols of the attempt that found them.
        plan.induction_steps = {name: env.adopt(amount) for name, amount in plan.induction_steps.items()}
        self.counter, self.last = str(counter), iterations - 1
        return counter

    def _prepare(
        self, before: dict[str, Value], counter: SymInt, known: Collection[int]
    ) -> dict[Memory, tuple[Node, Node, Graph]]:
        """Finds the carried values of the plan; returns the contents of the carried memories outside the loop."""
        f, tx, plan = self.f, self.tx, self.plan
        self.name = f"loop_{plan.where.line}"
        self.carried = Carried(
            tx, plan, self.name, counter, self.last, self.needed, self.live_before, self.live_past, known
        )
        self.carried.find_memories(f, before)
        outside = {memory: (memory.root, memory.node, memory.graph) for memory in self.carried.memories}
        self.exits = Exits(f, self.carried, self.header, self)
        self.carried.find_leaves(before)
        return outside

    def _trace(self, before: dict[str, Value], counter: SymInt, known: Any) -> dict[str, Any]:
        """Traces the body in the open region; returns the values of the carried variables after an iteration."""
        f, tx, plan = self.f, self.tx, self.plan
        self.carried.begin()
        f.locals.update(self.carried.first_values())
        for name, amount in plan.induction_steps.items():
            if name in before:
                f.locals[name] = integer(int_of(before[name]) + amount * counter)
        self.given = dict(f.locals)
        self.slots.store()
        self.collected.open()
        first_unwritten = len(tx.unplanned)
        for number in range(plan.unroll_factor):
            self.number = number
            self._iteration(counter * plan.unroll_factor + number)
        self._collect(known, counter)
        self.changed_slots = self.slots.changed()
        self.slots.show()
        self.marks.note(self.given)
        if not plan.looked or self.changed_slots or len(tx.unplanned) > first_unwritten:
            look(self, before, tx.unplanned[first_unwritten:], self.changed_slots)
        return self._results(before)

    def _reconcile(self, results: dict[str, Any], shared: bool) -> None:
        """Gives each leaf its node at the end of the iteration. Raises Unsettled where an iteration changes a leaf's
        type.
        """
        carried = self.carried
        self.collected.close(carried)
        left = bool(self.changed_slots or self.collected.lists or self.exits.flags or shared)
        if not self.sure and (left or any(x is not None for x in results.values())):
            raise CannotCapture("loop-mismatch", "its results are not known where it has no iterations")
        outputs = [*(memory.node for memory in carried.memories), *carried.ends()[len(carried.memories) :]]
        for leaf, output in zip(carried.leaves, outputs, strict=True):
            leaf.ends.append(output)
            for end in leaf.ends if leaf.kind == "memory" else ():
                if not fits(end.tensor, leaf.given.tensor):
                    raise Unsettled(f"an array of type {leaf.given.type} becomes one of type {end.type}")
        if self.exits.flags:
            carried.settle_foreign()

    def _check_worth(self, iterations: Size) -> None:
        """Starts anew with the loop unrolled, where it is short or computes constants."""
        tx, parts = self.tx, self.carried.parts
        most = [iterations, *(known for known in self.exits.known if known is not None)]
        count = sum(len(part.nodes) for part in parts)
        sizes = [size for size in most if isinstance(size, int)]
        few = bool(sizes) and min(sizes) * count <= FEW_OPERATIONS and None not in self.exits.known
        nodes = [node for part in parts for node in part.nodes]
        if few and not any(node.regions for node in nodes) and not (tx.open_loops and self._stores_apart(nodes)):
            self.again(outcome="unrolled", reason=f"{min(sizes)} iterations of {count} operations are few")
        many = not isinstance(iterations, int) or iterations > MANY_ITERATIONS
        if not many and not tx.open_loops and computes_constants(self.carried):
            self.again(outcome="unrolled", reason="it computes constants")

    def _take_results(self, outside: dict[Memory, tuple[Node, Node, Graph]]) -> None:
        """Has the carried memories show the node's results."""
        for memory, leaf in zip(self.carried.memories, self.carried.leaves, strict=False):
            memory.root, node, memory.graph = outside[memory]
            memory.version += 1
            memory.node = node if leaf.ends == leaf.inputs else self._result(leaf)
            self.tx.show_memory(memory.node, memory)
        self.f.assigned |= self.bound
        self.tx.touch()

    def _resume(
        self,
        made: Sequence[Node],
        iterations: Size,
        before: dict[str, Value],
        results: dict[str, Any],
        stack: list[Value],
    ) -> tuple[bool, Value | None]:
        """Moves the frame to where it goes on after the loop; returns as ``run`` does."""
        f, plan = self.f, self.plan
        after = AfterLoop(self.carried, None, whole=self.sure and not self.exits.flags)
        if made and is_wanted(f, made[0].inputs[0].name):
            self._continue(before, results, stack, after)
        if not self.exits.ways:
            self._hold(self._after(before, results), after)
            self.collected.put(self.carried, after)
        f.stack[:] = stack
        if self.exits.ways:
            if isinstance(self.items, Counted):
                self.items.leave(early=True)
            return True, self._leave(made, self._end(before, results, stack))
        if self.exits.flags:
            way = self._end(before, results, stack)
            self.exits.allow(made[-1].inputs[0], [] if way is None else [way], after)
        if isinstance(self.items, Counted):
            self.items.skip(iterations * plan.unroll_factor)
            return False, None
        if plan.limit is None:
            raise CannotCapture("loop-mismatch", "nothing ends it")
        f.at = self.way_out()
        return True, None

    def _hold(self, held: dict[str, Any], after: AfterLoop) -> None:
        """Gives variables and slots their values after the loop."""
        f = self.f
        for name, tree in held.items():
            if tree is None:
                f.locals.pop(name, None)
            else:
                f.locals[name] = after.value(tree)
        self.marks.tell(self.carried, after)
        self.slots.store()

    def _continue(
        self, before: dict[str, Value], results: dict[str, Any], stack: list[Value], after: AfterLoop
    ) -> None:
        """Ends the capture where the next iteration begins, after a number of iterations that is not known yet."""
        f, tx = self.f, self.tx
        ints = {
            n: LateInt(tx, int_of(before[n]), amount) for n, amount in self.plan.induction_steps.items() if n in before
        }
        self._hold({**self.carried.trees, **results, **ints}, after)
        self.collected.put(self.carried, after, so_far=True)
        f.stack[:] = stack
        items = self.items
        advanced = LateIterator(tx, items, self.plan.unroll_factor) if isinstance(items, Counted) else None
        go_to_next_iteration(f, self.header.at, advanced)

    def _collect(self, known: Any, counter: Size) -> None:
        """Stores the items that the iteration has appended to lists, where the plan has them; else starts anew."""
        plan = self.plan
        if plan.is_branch:
            return
        found = self.collected.learn(known[0], whole=not (self.exits.flags or self.exits.ways))
        if not alike(found, plan.collected):
            plan.written.update({("local", Collected.variable(name)): None for name in found})
            self.again(collected=found)
        self.collected.store(counter)

    def _leave(self, made: Sequence[Node], end: Way | None) -> Value | None:
        """Moves the frame to where it goes on; the value where the function returns there."""
        return self.exits.leave(made, end)

    def _is_shared(self, name: str, tree: Any, value: Value) -> bool:
        """Whether an array of a variable has other aliases, where no iteration may bind the variable."""
        if not any(leaf.kind == "array" for leaf in leaves_of([tree])):
            return False
        value = settled(self.tx, value)
        return not (isinstance(value, ArrayValue) and self.carried.is_alone(name, value))

    def _stores_apart(self, nodes: Sequence[Node]) -> bool:
        """Whether iterations only store to parts of arrays, each to its own: nothing can be fused."""
        stored = [node.attrs["path"] for node in nodes if node.op is ops.ASSIGN]
        return not self.carried.trees and bool(stored) and all(self.counter in counters_in(path) for path in stored)

    def _end(self, before: dict[str, Value], results: dict[str, Any], stack: list[Value]) -> Way | None:
        """The exit after all iterations; None where the loop never ends by itself."""
        if self.is_for:
            return self.way(self.f.decoded.flow.target(self.header.at), before, results, stack[: -D.iterator_items])
        return None if self.plan.limit is None else self.way(self.way_out(), before, results, stack)

    def way(self, at: int, before: dict[str, Value], results: dict[str, Any], stack: list[Value]) -> Way:
        """The exit after all iterations, where it leads to ``at``."""
        held = {**before, **self._after(before, results)}
        shown = leaves_of(tree for name, tree in held.items() if name in self.live_after)
        return Way(0, at, held, stack, shown)

    def _after(self, before: dict[str, Value], results: dict[str, Any]) -> dict[str, Any]:
        """The values of variables after all iterations, as values or trees of leaves; or None."""
        steps = {n: amount for n, amount in self.plan.induction_steps.items() if n in before}
        ints = {name: integer(int_of(before[name]) + amount * (self.last + 1)) for name, amount in steps.items()}
        return {**self.carried.trees, **results, **ints}

    def way_out(self) -> int:
        """The target of the test that limits the trip count, outside the loop."""
        return ways_of_test(self.f.decoded.flow, self.header, self.plan.limit_at)[1]

    def _iterations(self) -> Size:
        """The trip count of the node. The odd iterations of an unrolled loop are done after it."""
        unroll_factor = self.plan.unroll_factor
        if unroll_factor == 1:
            return self.left
        odd = self.left % unroll_factor
        return (self.left - (odd if isinstance(odd, int) else odd.specialise())) // unroll_factor

    # -- tracing an iteration ------------------------------------------------------------------------------------------
    def branch(self, at: int, yes: int, no: int, flag: Node) -> None:
        """Follows both ways of a jump on a value of the graph, up to where they meet in this iteration."""
        raise NotImplementedError

    def _iteration(self, number: Size) -> None:
        """Follows the body once."""
        f, items, header = self.f, self.items, self.header
        depth, iterations = len(f.stack), f.first_iteration
        f.first_iteration = {}
        self.changes = self.tx.mutations
        f.at = header.at
        if isinstance(items, Counted):
            f.push(items.number(number))
            f.at += 1
        starts = {header.at, header.entry}
        self._follow(starts, starts, depth)
        f.at = header.at + 1
        f.first_iteration = iterations

    def _follow(self, starts: set[int], ends: set[int], depth: int) -> None:
        """Follows instructions up to one of ``ends``."""
        f = self.f
        while True:
            self._step(starts)
            if len(f.stack) < depth:
                raise Left
            if f.at in ends and len(f.stack) >= depth:
                break
        self.exits.check_halves()
        f.came_back = -1

    def _step(self, starts: set[int]) -> None:
        """Follows one instruction."""
        f, tx = self.f, self.tx
        at = f.at
        i = f.decoded.instructions[at]
        tx.instructions += 1
        if tx.instructions > tx.options.max_instructions:
            raise CannotCapture("too-long", f"More than {tx.options.max_instructions} instructions were followed.")
        f.at = at + 1
        f.refuse_step(i)
        tx.builder.location = f.location(at)
        if at == self.plan.limit_at:  # it holds in all iterations of the node
            self._check_limit(*f.pop_many(2))
            f.at, _ = ways_of_test(f.decoded.flow, self.header, at)
            return
        if i.opname == "COMPARE_OP" and self.finds_limits and self.plan.limit is None and self.plan.looked:
            self._look_for_limit(at, i)
        if self.exits.take(at, i, looking=not self.plan.looked):
            return
        run = f.decoded.handlers[at] if at not in starts else HANDLERS.get(i.opname)
        if run is None:
            raise CannotCapture("unsupported-instruction", i.opname)
        run(f, i)

    def _look_for_limit(self, at: int, i: Instruction) -> None:
        """Starts anew with a trip count, where a comparison of ints at the start of the iteration gives it."""
        left, right = settled(self.tx, self.f.stack[-2]), settled(self.tx, self.f.stack[-1])
        if not (is_int(left) and is_int(right)):
            return
        distance = int_of(left) - int_of(right)
        if not isinstance(distance, SymInt) or self.counter not in distance.counters() or not self._nothing_done():
            return
        sign = stays_while(self.f.decoded.flow, self.header, at, i)
        found = course(distance, self.counter)
        limit = trip_count_while(*found, sign) if found is not None and sign is not None else None
        if limit is not None:
            self.again(limit=limit, limit_at=at, limit_by=found)

    def _check_limit(self, left: Value, right: Value) -> None:
        """Starts anew without a trip count, where the ints differ from those that it was found for."""
        found = course(int_of(left) - int_of(right), self.counter) if is_int(left) and is_int(right) else None
        (start, by), unroll_factor = self.plan.limit_by, self.plan.unroll_factor
        first = self.tx.graph.env.adopt(start) + self.number * by
        if found is None or found[1] != by * unroll_factor or not same(found[0], first):
            self.look_again(unknown_trip_count=True, reason="its trip count differs from one entry to the next")

    def _nothing_done(self) -> bool:
        """Whether all variables and arrays are as at the start of the iteration."""
        f, carried = self.f, self.carried
        if self.tx.mutations != self.changes:  # also in the earlier parts of the iteration
            return False
        same_names = all(f.locals.get(name) is self.given.get(name) for name in self.live_before | self.bound)
        return same_names and all(
            memory.node is leaf.inside for memory, leaf in zip(carried.memories, carried.leaves, strict=False)
        )

    # -- values after an iteration -------------------------------------------------------------------------------------
    def _results(self, before: dict[str, Value]) -> dict[str, Any]:
        """The value of each variable after the loop, as a value or a tree of leaves."""
        f, tx, plan, given, carried = self.f, self.tx, self.plan, self.given, self.carried
        results: dict[str, Any] = {}
        late: dict[int, Any] = {}
        trees = carried.trees
        names = sorted(given.keys() | f.locals.keys(), key=lambda name: (name not in trees, name))
        for name in names:  # carried variables first: others may be aliases of their arrays
            start, end = given.get(name), f.locals.get(name)
            if name in trees:
                if end is None:
                    raise Unsettled(f"`{name}` has no value after an iteration")
                carried.set_end(name, trees[name], end)
                continue
            if name not in plan.induction_steps and unchanged(
                tx, start, end
            ):  # the steps may be those of a peeled iteration
                continue
            if name not in self.live_before:
                results[name] = None  # it is dead
                continue
            if end is None:
                raise Unsettled(f"`{name}` has no value after an iteration")
            if name in plan.induction_steps:
                amount = int_of(end) - int_of(start) if start is not None else None
                if amount is None or not same(amount, plan.induction_steps[name]):
                    raise Uneven(name)
                continue
            if name in self.needed:
                self.again(carried=plan.carried | {name})
            if id(end) not in late:
                late[id(end)] = carried.late(name, end)
            results[name] = late[id(end)]
        self.exits.check_next(results)
        return results

    # -- the graph around ----------------------------------------------------------------------------------------------
    def _check_state(self, known: Any, memories: Sequence[Memory], policy: bool) -> None:
        """Refuses a body that changes anything but arrays, slots and its own variables."""
        tx = self.tx
        now = state_of(tx)
        planned = {id(memory) for memory in memories}
        for key, before in known[0].items():
            after = now[0].get(key, before)
            if before != after and key not in planned and not self.slots.is_but_for_slots(key, before, after):
                raise CannotCapture("loop-mismatch", "an iteration changes an object other than by a store to it")
        if known[1][:-1] != now[1][:-1]:
            raise CannotCapture("loop-mismatch", "an iteration deletes or adds globals")
        if tx.break_is_error != policy:
            raise CannotCapture("loop-mismatch", "an iteration changes the policy for graph breaks")

    @staticmethod
    def _result(leaf: Leaf) -> Node:
        assert leaf.result is not None
        return leaf.result


def why(error: Exception) -> str:
    """The reason why a loop is no node, in words."""
    if isinstance(error, Left | Returned | Yielded):
        return "it is left from inside"
    if isinstance(error, VariesInLoop):
        return "which way its body goes depends on the induction variable"
    if not isinstance(error, CannotCapture):
        return str(error)
    known, reason = CATALOGUE.get(error.reason), error.detail.rstrip(".")
    reason = ": ".join([reason, *getattr(error, "__notes__", ())])
    if known is None or error.reason == "loop-mismatch":
        return reason
    shown = known.headline[:1].lower() + known.headline[1:]
    return f"{shown} ({reason})" if reason else shown


def _bound(instructions: Iterable[Any]) -> set[str]:
    """The local variables that some instructions bind."""
    found: set[str] = set()
    for i in instructions:
        if i.opname in ("STORE_FAST", "STORE_FAST_STORE_FAST", "STORE_FAST_LOAD_FAST"):
            found.update(i.argval if isinstance(i.argval, tuple) else (i.argval,))
    return found


__all__ = ["Loop", "is_known", "make", "plan_of", "why"]
