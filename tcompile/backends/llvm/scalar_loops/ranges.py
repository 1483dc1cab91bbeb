"""Range analysis of scalar loops: bounds of the ints of a program.

Input: the blocks of a program, and the sizes of its arrays where they are known.
Output: for each instruction the bounds of its operands, for each range its largest trip count.
Why: redundant checks are eliminated. LLVM takes several times as long for that, and without the checks it has little
left to do.

Bounds are propagated in the order of execution. The condition of a branch, and of a passed check, holds in all blocks
that it dominates. A loop's first bounds are widened to all of int64, and narrowed again by the conditions of its
branches.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

from tcompile.graph.ops.scalar_blocks import dominators
from tcompile.graph.ops.scalar_loop import Block, dtype_of, ways

Bounds: TypeAlias = tuple[int, int]
_Env: TypeAlias = dict[int, Bounds]
# The effect of an instruction on bounds: its kind, the register, and the operands.
_Step: TypeAlias = tuple[str, int, Any, Any]
_Arm: TypeAlias = tuple[int, int, Sequence[int]]

WHOLE: Bounds = (-(1 << 63), (1 << 63) - 1)
_BY_KIND = {"int": WHOLE, "bool": (0, 1), "np.bool": (0, 1), "float": None}
_OPPOSITE = {"<": ">=", ">=": "<", ">": "<=", "<=": ">", "==": "!=", "!=": "=="}
_SAME = ("int", "np.int64", "positive")
_SIGNS = ("+", "-", "*", "&", "|", "^", ">>", "<<", "//", "%", "step")
_KNOWN = frozenset((*_SAME, *_SIGNS, "const", "select", "draw", "abs", "negative", "invert"))
_WIDENS_AT = 2  # passes without widening
_MOST_PASSES = 12
_NARROWS, _HOLDS = -1, -2  # passes that narrow bounds, and one in which parameters keep theirs


def kind_bounds(kind: str) -> Bounds | None:
    """The bounds of a register of this kind; None for floats."""
    if kind not in _BY_KIND:
        dtype = dtype_of(kind)
        bits = dtype.itemsize * 8
        whole = {"i": (-(1 << bits - 1), (1 << bits - 1) - 1), "u": (0, (1 << bits) - 1)}
        _BY_KIND[kind] = whole.get(dtype.kind)
    return _BY_KIND[kind]


class Ranges:
    """The bounds of a program's ints. ``size(array, axis)`` is the size of an array where it is known."""

    def __init__(
        self,
        kinds: Sequence[str],
        blocks: Sequence[Block],
        order: Sequence[int],
        size: Callable[[int, int], int | None],
    ) -> None:
        self.kinds, self.blocks, self.order = kinds, blocks, order
        self.full = [kind_bounds(kind) for kind in kinds]
        self.nearest = dominators(blocks, order)
        self.made: dict[int, tuple[Any, ...]] = {
            line[1]: line for _, lines, _ in blocks for line in lines if line[1] >= 0
        }
        self.arms: dict[int, list[_Arm]] = {at: [] for at in order}
        for at in order:
            end = blocks[at][2]
            for number, way in enumerate(ways(end)):
                self.arms[way].append((at, number, end[3 + 2 * number] if end[0] == "branch" else end[2]))
        self.place = {at: number for number, at in enumerate(order)}
        # The parameters of a block that are ints, and their positions among all.
        self.ints = {at: [(n, p) for n, p in enumerate(blocks[at][0]) if self.full[p] is not None] for at in order}
        self.steps = {at: [self._steps(line, size) for line in blocks[at][1]] for at in order}
        self.flat = {at: [step for steps in self.steps[at] for step in steps] for at in order}
        self.after: dict[int, _Env] = {}
        self.phis: _Env = {}
        self._said: dict[tuple[int, bool], Sequence[tuple[int, int, bool]]] = {}  # by condition and outcome
        self._changes = 0
        self._changed: dict[int, int] = {}  # when the bounds after a block changed last,
        self._followed: dict[int, int] = {}  # and when the block was visited last
        self._solve()

    def _solve(self) -> None:
        for turn in range(_MOST_PASSES):
            if not self._pass(turn):
                break
        else:  # not stable: carried values are unbounded
            self.phis = {r: self.full[r] or WHOLE for ints in self.ints.values() for _, r in ints}
            self._pass(_HOLDS)
        self._pass(_NARROWS)
        self._pass(_NARROWS, due=True)

    def _pass(self, turn: int, due: bool = False) -> bool:
        """Visits all blocks once, or those whose predecessors have changed; returns whether bounds have grown."""
        changed = False
        phis, after = self.phis, self.after
        for at in self.order:
            arms = self.arms[at]
            if turn == 0:
                arms = [arm for arm in arms if arm[0] in after]
            elif (due or turn > 0) and not self._is_due(at, arms):
                continue
            self._followed[at] = self._changes
            ints = self.ints[at]
            if ints and turn != _HOLDS:
                ends = [(self.place[arm[0]] < self.place[at], self._after(*arm[:2]), arm[2]) for arm in arms]
                for place, parameter in ints:
                    old = phis.get(parameter)
                    first, again = self._joined(ends, place, parameter)
                    new = _join(first, again)
                    if turn == _NARROWS and old is not None:
                        new = (max(new[0], old[0]), min(new[1], old[1]))
                        new = new if new[0] <= new[1] else old  # else the edge is dead
                    elif turn >= _WIDENS_AT and old is not None:
                        least, most = self.full[parameter] or WHOLE
                        new = (
                            least if again[0] < min(first[0], old[0]) else new[0],
                            most if again[1] > max(first[1], old[1]) else new[1],
                        )  # fmt: skip
                    if new != old:
                        phis[parameter] = new
                        changed = True
            env = self._begin(at)
            self._follow(env, self.flat[at])
            if after.get(at) != env:
                self._changes += 1
                self._changed[at] = self._changes
                after[at] = env
        return changed

    def _begin(self, at: int) -> _Env:
        """The bounds at the start of a block."""
        if at == self.order[0]:
            env: _Env = {}
        else:
            env = dict(self.after[self.nearest[at]])
            if len(self.arms[at]) == 1:
                self._learn_way(env, *self.arms[at][0][:2])
        for _, parameter in self.ints[at]:
            env[parameter] = self.phis[parameter]
        return env

    def before(self, at: int) -> Iterator[Mapping[int, Bounds]]:
        """For each instruction of a block, the bounds by register where they are narrower than the kind's.

        It is one mapping, valid until the next one is asked for.
        """
        env = self._begin(at)
        for steps in self.steps[at]:
            yield env
            self._follow(env, steps)

    def _is_due(self, at: int, arms: Sequence[_Arm]) -> bool:
        """Whether the bounds of a predecessor have changed."""
        last, changed = self._followed[at], self._changed
        if at != self.order[0] and changed[self.nearest[at]] > last:
            return True
        return any(changed[arm[0]] > last for arm in arms)

    def _after(self, at: int, number: int) -> _Env:
        """The bounds on an outgoing edge of a block."""
        if self.blocks[at][2][0] != "branch":
            return self.after[at]
        env = dict(self.after[at])
        self._learn_way(env, at, number)
        return env

    def _joined(
        self, arms: Sequence[tuple[bool, _Env, Sequence[int]]], place: int, parameter: int
    ) -> tuple[Bounds, Bounds]:
        """The bounds of a parameter, joined over the edges from blocks before, and over all edges."""
        first: Bounds | None = None
        all: Bounds | None = None
        for comes_before, env, given in arms:
            register = given[place]
            found = env.get(register) or self.full[register] or WHOLE
            all = found if all is None else _join(all, found)
            if comes_before:
                first = found if first is None else _join(first, found)
        whole = self.full[parameter] or WHOLE
        return first or whole, all or whole

    # -- conditions
    # -----------------------------------------------------------------------------------------------------
    def _learn_way(self, env: _Env, at: int, number: int) -> None:
        """Applies the condition of an outgoing edge of a block."""
        end = self.blocks[at][2]
        if end[0] == "branch" and end[2] != end[4]:
            self._learn(env, end[1], number == 0)

    def _learn(self, env: _Env, condition: int, holds: bool) -> None:
        """Narrows the bounds of two ints that a test has compared, each by the other's."""
        said = self._said.get((condition, holds))
        if said is None:
            said = self._said[condition, holds] = self._says(condition, holds)
        for one, two, strictly in said:
            low, high = self.get(env, one)
            least, most = self.get(env, two)
            if low <= (top := min(high, most - strictly)):  # else the edge is dead
                env[one] = (low, top)
            if (bottom := max(least, low + strictly)) <= most:
                env[two] = (bottom, most)

    def _says(self, condition: int, holds: bool) -> Sequence[tuple[int, int, bool]]:
        """The order that a condition implies: pairs of ints, and whether it is strict."""
        line = self.made.get(condition)
        while line is not None and line[0] in ("bool", "not"):
            holds = holds != (line[0] == "not")
            line = self.made.get(line[2])
        if line is None:
            return ()
        sign, one = line[0], line[2]
        if sign == "more":
            step = self.made.get(line[4], ("",))
            sign = ">" if step[0] == "const" and step[2] < 0 else "<"
        if sign not in _OPPOSITE or self.full[one] is None or self.full[line[3]] is None:
            return ()
        two, sign = line[3], sign if holds else _OPPOSITE[sign]
        if sign in ("<", "<="):
            return ((one, two, sign == "<"),)
        if sign in (">", ">="):
            return ((two, one, sign == ">"),)
        return ((one, two, False), (two, one, False)) if sign == "==" else ()

    def get(self, env: Mapping[int, Bounds], register: int) -> Bounds:
        """The bounds of an int."""
        return env.get(register) or self.full[register] or WHOLE

    # -- instructions --------------------------------------------------------------------------------------------------
    def _steps(self, line: tuple[Any, ...], size: Callable[[int, int], int | None]) -> Sequence[_Step]:
        """The effects of an instruction on bounds: none, if it is one on floats."""
        name, result = line[:2]
        if name in ("load", "store"):
            sizes = [(at, size(line[2], axis)) for axis, at in enumerate(line[3:] if name == "load" else line[4:])]
            return [("access", at, found, None) for at, found in sizes if found is not None]
        if name == "size":
            found = size(*line[2:])
            return (("is", result, (0, 1 << 62) if found is None else (found, found), None),)
        if name == "require":
            return (("require", line[2], None, None),)
        if self.full[result] is None or name not in _KNOWN:
            return ()
        if name == "const":
            return (("is", result, (int(line[2]), int(line[2])), None),)
        if name not in _SIGNS:
            return (("compute", result, name, line),)
        one, two = line[2:4]
        ints = self.full[one] is not None and self.full[two] is not None
        return (("+" if name == "step" else name, result, one, two),) if ints else ()

    def _follow(self, env: _Env, steps: Sequence[_Step]) -> None:
        """Applies the effects of instructions to bounds."""
        full = self.full
        for what, result, one, two in steps:
            if what == "is":
                env[result] = one
            elif what == "access":  # after an access of an array of that size, the index is in range
                low, high = self.get(env, result)
                if (low := max(low, -one)) <= (high := min(high, one - 1)):
                    env[result] = (low, high)
            elif what == "require":
                self._learn(env, result, True)
            else:
                if what == "compute":
                    what, found = one, self._result(env, one, two)
                else:
                    a, b = env.get(one) or full[one] or WHOLE, env.get(two) or full[two] or WHOLE
                    found = arithmetic(what, a, b)
                whole = full[result] or WHOLE
                if found is None or (what == "<<" and (found[0] < whole[0] or found[1] > whole[1])):
                    env.pop(result, None)  # NumPy's integers wrap around
                else:
                    low, high = max(found[0], whole[0]), min(found[1], whole[1])
                    env[result] = (low, high) if low <= high else whole

    def _result(self, env: _Env, name: str, line: tuple[Any, ...]) -> Bounds | None:
        if name == "select":
            return self._selected(env, *line[2:])
        if name == "draw":
            bounds = [self.get(env, register) for register in line[5:]]
            return (bounds[0][0], bounds[1][1] - 1) if len(bounds) == 2 else None  # of integers, or of one float
        if self.full[line[2]] is None:
            return None
        a = self.get(env, line[2])
        if name in _SAME:
            return a
        if name == "abs":
            return (0 if a[0] <= 0 <= a[1] else min(abs(a[0]), abs(a[1])), max(abs(a[0]), abs(a[1])))
        if name == "negative":
            return (-a[1], -a[0])
        return (~a[1], ~a[0])  # inverted

    def _selected(self, env: _Env, condition: int, yes: int, no: int) -> Bounds | None:
        if self.full[yes] is None or self.full[no] is None:
            return None
        one, two = dict(env), dict(env)
        self._learn(one, condition, True)
        self._learn(two, condition, False)
        a, b = self.get(one, yes), self.get(two, no)
        return _join(a, b)

    # -- loops ---------------------------------------------------------------------------------------------------------
    def iterations(self, header: int) -> int | None:
        """The largest trip count of the range whose header this is; None where it is no range, or may be endless."""
        parameters, lines, end = self.blocks[header]
        if end[0] != "branch" or not lines or lines[-1][0] != "more" or end[1] != lines[-1][1]:
            return None
        at, step = lines[-1][2], self.made.get(lines[-1][4])
        if at not in parameters:
            return None
        env = dict(self.after[header])
        self._learn_way(env, header, 0)
        low, high = self.get(env, at)
        if low == WHOLE[0] or high == WHOLE[1]:
            return None
        amount = abs(step[2]) if step is not None and step[0] == "const" else 1
        return (high - low) // amount + 1


def _join(a: Bounds, b: Bounds) -> Bounds:
    return (min(a[0], b[0]), max(a[1], b[1]))


def arithmetic(sign: str, a: Bounds, b: Bounds) -> Bounds | None:
    """The bounds of ``a sign b`` in unbounded ints; None where they are unknown.

    >>> arithmetic("*", (-2, 3), (1, 10)), arithmetic("&", WHOLE, (0, 255)), arithmetic("//", (0, 9), (2, 2))
    ((-20, 30), (0, 255), (0, 4))
    """
    if sign == "+":
        return (a[0] + b[0], a[1] + b[1])
    if sign == "-":
        return (a[0] - b[1], a[1] - b[0])
    if sign == "*":
        products = (a[0] * b[0], a[0] * b[1], a[1] * b[0], a[1] * b[1])
        return (min(products), max(products))
    if sign == "&":
        tops = [bounds[1] for bounds in (a, b) if bounds[0] >= 0]
        return (0, min(tops)) if tops else None
    if sign in ("|", "^"):
        return (0, (1 << max(a[1], b[1]).bit_length()) - 1) if a[0] >= 0 and b[0] >= 0 else None
    if sign == ">>" and b[0] >= 0 and b[1] < 64:
        return (min(a[0] >> b[0], a[0] >> b[1]), max(a[1] >> b[0], a[1] >> b[1]))
    if sign == "<<" and b[0] >= 0 and b[1] < 64:
        return (min(a[0] << b[0], a[0] << b[1]), max(a[1] << b[0], a[1] << b[1]))
    if sign == "//" and b[0] > 0:
        quotients = (a[0] // b[0], a[0] // b[1], a[1] // b[0], a[1] // b[1])
        return (min(quotients), max(quotients))
    if sign == "%" and b[0] > 0:
        return a if a[0] >= 0 and a[1] < b[0] else (0, b[1] - 1)
    return None


__all__ = ["WHOLE", "Bounds", "Ranges", "arithmetic", "kind_bounds"]
