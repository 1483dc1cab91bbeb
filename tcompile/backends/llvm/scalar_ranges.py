"""Loops over elements: between which bounds the ints of a program lie.

Enters: the blocks of a program, and the sizes of its arrays where they are known. Leaves: for each instruction the
bounds of what it reads, for each range how many rounds it has at most. Exists because a check that cannot fail need not
be written: LLVM takes several times as long to find that out, and without the checks there is little left for it to do.

Bounds follow the blocks in the order in which they run. What a branch has asked, and what a check has passed, holds in
all blocks that it leads to first. A loop's first bounds are widened to whatever an int can be, and what its branches
ask makes them narrow again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, TypeAlias

from tcompile.graph.ops.element_blocks import dominators, operands
from tcompile.graph.ops.element_loop import Block, dtype_of, ways

Bounds: TypeAlias = tuple[int, int]
_Env: TypeAlias = dict[int, Bounds]
_Steps: TypeAlias = Mapping[int, Sequence[Callable[[_Env], None] | None]]  # what each instruction does, by block
_Size: TypeAlias = Callable[[int, int], int | None]

WHOLE: Bounds = (-(1 << 63), (1 << 63) - 1)
_BY_KIND = {"int": WHOLE, "bool": (0, 1), "np.bool": (0, 1), "float": None}
_OPPOSITE = {"<": ">=", ">=": "<", ">": "<=", "<=": ">", "==": "!=", "!=": "=="}
_SAME = ("int", "np.int64", "positive")
_SIGNS = ("+", "-", "*", "&", "|", "^", ">>", "<<", "//", "%", "step")
_KNOWN = frozenset((*_SAME, *_SIGNS, "const", "select", "draw", "abs", "negative", "invert"))
_WIDENS_AT = 2  # passes that are followed exactly
_MOST_PASSES = 12
_NARROWS, _HOLDS = -1, -2  # passes that make bounds narrower, and one in which parameters keep theirs


def kind_bounds(kind: str) -> Bounds | None:
    """What a register of a kind can hold; None for floats."""
    if kind not in _BY_KIND:
        dtype = dtype_of(kind)
        bits = dtype.itemsize * 8
        whole = {"i": (-(1 << bits - 1), (1 << bits - 1) - 1), "u": (0, (1 << bits) - 1)}
        _BY_KIND[kind] = whole.get(dtype.kind)
    return _BY_KIND[kind]


class Ranges:
    """The bounds of a program's ints.

    ``before[block][n]`` are those of what the block's ``n``-th instruction reads, by register, as far as more is known
    than the kind says.
    """

    def __init__(
        self, kinds: Sequence[str], blocks: Sequence[Block], order: Sequence[int],
        size: _Size,
    ) -> None:  # fmt: skip
        self.kinds, self.blocks, self.order = kinds, blocks, order
        self.full = [kind_bounds(kind) for kind in kinds]
        self.nearest = dominators(blocks, order)
        self.made: dict[int, tuple[Any, ...]] = {
            line[1]: line for _, lines, _ in blocks for line in lines if line[1] >= 0
        }
        self.arms: dict[int, list[tuple[int, int, Sequence[int]]]] = {at: [] for at in order}
        for at in order:
            end = blocks[at][2]
            for number, way in enumerate(ways(end)):
                self.arms[way].append((at, number, end[3 + 2 * number] if end[0] == "branch" else end[2]))
        self.place = {at: number for number, at in enumerate(order)}
        self.after: dict[int, _Env] = {}
        self.before: dict[int, list[_Env]] = {}
        self.phis: _Env = {}
        self._changes = 0
        self._changed: dict[int, int] = {}  # when what holds behind a block changed last,
        self._followed: dict[int, int] = {}  # and when the block was followed last
        # Nothing of this object keeps the steps, which keep it: a cycle would be left to the collector.
        self._solve({at: [self._step(line, size) for line in blocks[at][1]] for at in order})

    def _solve(self, steps: _Steps) -> None:
        for turn in range(_MOST_PASSES):
            if not self._pass(steps, turn):
                break
        else:  # not stable: nothing is known of what goes round
            self.phis = {r: self.full[r] or WHOLE for at in self.order for r in self.blocks[at][0] if self.full[r]}
            self._pass(steps, _HOLDS)
        self._pass(steps, _NARROWS)
        self._pass(steps, _NARROWS, due=True)

    def _pass(self, steps: _Steps, turn: int, due: bool = False) -> bool:
        """Follows all blocks once, or those whose sources have changed; says whether bounds have grown."""
        changed = False
        phis, after = self.phis, self.after
        for at in self.order:
            arms = self.arms[at]
            if turn == 0:
                arms = [arm for arm in arms if arm[0] in after]
            elif (due or turn > 0) and not self._is_due(at, arms):
                continue
            self._followed[at] = self._changes
            env = dict(after[self.nearest[at]]) if at != self.order[0] else {}
            ends = [(arm[0], self._behind(*arm[:2]), arm[2]) for arm in arms] if self.blocks[at][0] else []
            if len(self.arms[at]) == 1:
                self._learn_way(env, *self.arms[at][0][:2])
            for place, parameter in enumerate(self.blocks[at][0]):
                if self.full[parameter] is None:
                    continue
                old = phis.get(parameter)
                if turn == _HOLDS:
                    env[parameter] = phis[parameter]
                    continue
                first, again = self._joined(ends, at, place, parameter)
                new = _join(first, again)
                if turn == _NARROWS and old is not None:
                    new = (max(new[0], old[0]), min(new[1], old[1]))
                    new = new if new[0] <= new[1] else old  # else nobody comes here
                elif turn >= _WIDENS_AT and old is not None:
                    least, most = self.full[parameter] or WHOLE
                    new = (
                        least if again[0] < min(first[0], old[0]) else new[0],
                        most if again[1] > max(first[1], old[1]) else new[1],
                    )  # fmt: skip
                if new != old:
                    phis[parameter] = new
                    changed = True
                env[parameter] = new
            seen: list[_Env] = []
            for line, step in zip(self.blocks[at][1], steps[at], strict=True):
                if turn == _NARROWS:
                    seen.append({r: env[r] for r in operands(line) if r in env})
                if step is not None:
                    step(env)
            if turn == _NARROWS:
                self.before[at] = seen
            if after.get(at) != env:
                self._changes += 1
                self._changed[at] = self._changes
                after[at] = env
        return changed

    def _is_due(self, at: int, arms: Sequence[tuple[int, int, Sequence[int]]]) -> bool:
        """Whether anything has changed that a block's bounds come from."""
        sources = [arm[0] for arm in arms]
        if at != self.order[0]:
            sources.append(self.nearest[at])
        return any(self._changed[source] > self._followed[at] for source in sources)

    def _behind(self, at: int, number: int) -> _Env:
        """What holds on a way out of a block."""
        if self.blocks[at][2][0] != "branch":
            return self.after[at]
        env = dict(self.after[at])
        self._learn_way(env, at, number)
        return env

    def _joined(
        self, arms: Sequence[tuple[int, _Env, Sequence[int]]], to: int, place: int, parameter: int
    ) -> tuple[Bounds, Bounds]:
        """The bounds of what a parameter is given by blocks that come before, and by all."""
        first: Bounds | None = None
        all: Bounds | None = None
        for at, env, given in arms:
            register = given[place]
            found = env.get(register) or self.full[register] or WHOLE
            all = found if all is None else _join(all, found)
            if self.place[at] < self.place[to]:
                first = found if first is None else _join(first, found)
        whole = self.full[parameter] or WHOLE
        return first or whole, all or whole

    # -- what is learnt ------------------------------------------------------------------------------------------------
    def _learn_way(self, env: _Env, at: int, number: int) -> None:
        """What holds on one of the ways out of a block."""
        end = self.blocks[at][2]
        if end[0] == "branch" and end[2] != end[4]:
            self._learn(env, end[1], number == 0)

    def _learn(self, env: _Env, condition: int, holds: bool) -> None:
        line = self.made.get(condition)
        while line is not None and line[0] in ("bool", "not"):
            holds = holds != (line[0] == "not")
            line = self.made.get(line[2])
        if line is None:
            return
        sign, one = line[0], line[2]
        if sign == "more":
            step = self.made.get(line[4], ("",))
            sign = ">" if step[0] == "const" and step[2] < 0 else "<"
        if sign not in _OPPOSITE or self.full[one] is None or self.full[line[3]] is None:
            return
        sign = sign if holds else _OPPOSITE[sign]
        if sign in (">", ">="):
            self._less(env, line[3], one, sign == ">")
        elif sign in ("<", "<="):
            self._less(env, one, line[3], sign == "<")
        elif sign == "==":
            self._less(env, one, line[3], False)
            self._less(env, line[3], one, False)

    def _less(self, env: _Env, one: int, two: int, strictly: bool) -> None:
        low, high = self.get(env, one)
        least, most = self.get(env, two)
        self._narrow(env, one, (low, min(high, most - strictly)))
        self._narrow(env, two, (max(least, low + strictly), most))

    @staticmethod
    def _narrow(env: _Env, register: int, bounds: Bounds) -> None:
        if bounds[0] <= bounds[1]:  # else nobody comes here
            env[register] = bounds

    def get(self, env: Mapping[int, Bounds], register: int) -> Bounds:
        """The bounds of an int."""
        return env.get(register) or self.full[register] or WHOLE

    # -- instructions --------------------------------------------------------------------------------------------------
    def _step(self, line: tuple[Any, ...], size: _Size) -> Callable[[_Env], None] | None:
        """What an instruction does to what is known; None where it does nothing, as one on floats."""
        name, result = line[:2]
        if name in ("load", "store"):
            sizes = [(at, size(line[2], axis)) for axis, at in enumerate(line[3:] if name == "load" else line[4:])]
            known = [(at, found) for at, found in sizes if found is not None]
            return partial(self._access, known) if known else None
        if name == "size":
            found = size(*line[2:])
            return partial(self._is, result, (0, 1 << 62) if found is None else (found, found))
        if name == "const" and self.full[result] is not None:
            return partial(self._is, result, (int(line[2]), int(line[2])))
        if name == "require":
            return partial(self._require, line[2])
        if self.full[result] is None or name not in _KNOWN:
            return None
        if name not in _SIGNS:
            return partial(self._compute, name, result, line)
        one, two = line[2:4]
        ints = self.full[one] is not None and self.full[two] is not None
        return partial(self._combine, "+" if name == "step" else name, result, one, two) if ints else None

    def _access(self, places: Sequence[tuple[int, int]], env: _Env) -> None:
        """An element of an array of that many: behind it the indices are known to be in range."""
        for place, size in places:
            low, high = self.get(env, place)
            self._narrow(env, place, (max(low, -size), min(high, size - 1)))

    def _is(self, result: int, bounds: Bounds, env: _Env) -> None:
        env[result] = bounds

    def _require(self, condition: int, env: _Env) -> None:
        self._learn(env, condition, True)

    def _combine(self, sign: str, result: int, one: int, two: int, env: _Env) -> None:
        self._set(env, sign, result, arithmetic(sign, self.get(env, one), self.get(env, two)))

    def _compute(self, name: str, result: int, line: tuple[Any, ...], env: _Env) -> None:
        self._set(env, name, result, self._result(env, name, line))

    def _set(self, env: _Env, name: str, result: int, found: Bounds | None) -> None:
        full = self.full[result]
        assert full is not None
        if found is None or (name == "<<" and (found[0] < full[0] or found[1] > full[1])):  # NumPy's wrap around
            env.pop(result, None)
        else:
            low, high = max(found[0], full[0]), min(found[1], full[1])
            env[result] = (low, high) if low <= high else full

    def _result(self, env: _Env, name: str, line: tuple[Any, ...]) -> Bounds | None:
        if name == "select":
            return self._selected(env, *line[2:])
        if name == "draw":
            bounds = [self.get(env, register) for register in line[5:]]
            return (bounds[0][0], bounds[1][1] - 1) if len(bounds) == 2 else None  # of whole numbers, or of one float
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
    def rounds(self, header: int) -> int | None:
        """How many rounds the range has at most that begins there; None where it is no range, or may be endless."""
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
    """The bounds of ``a sign b`` in unbounded ints; None where nothing is known.

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
