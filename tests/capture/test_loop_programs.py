"""Generated programs with loops: arrays that are rebound, written, viewed, exchanged; scalars, counters, branches.

All arithmetic is exact, so that results must agree in every bit. ``python tests/capture/test_loop_programs.py FIRST
COUNT`` runs many of them.
"""

from __future__ import annotations

import random
import sys
import types

import numpy as np
import pytest

import tcompile

ARRAYS, SCALARS, INTS = ("a", "b", "c"), ("s", "t"), ("k", "m")


class Writer:
    """Writes one program from a seed."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.lines: list[str] = []
        self.counters: list[str] = []
        self.depth = 1

    def add(self, text: str) -> None:
        self.lines.append("    " * self.depth + text)

    def pick(self, *options):
        return self.random.choice(options)

    def array(self, size: str) -> str:
        """An expression for an array of so many elements ("n": all, "m": the inner ones)."""
        x, y = self.pick(*ARRAYS), self.pick(*ARRAYS)
        if size == "m":
            x, y = (f"{v}[{self.pick('1:-1', '2:', ':-2', '1:-1')}]" for v in (x, y))
        number = self.number()
        forms = [
            f"{x} * 0.5 + {y} * 0.25", f"np.maximum({x}, {y}) * 0.5", f"np.abs({x}) - {number}", f"{x} * {number}",
            f"np.where({x} > {number}, {x} * 0.5, {y})", f"({x} - {y}) * 0.5 + {number}", f"{x} + {number}",
        ]  # fmt: skip
        if size == "n":
            forms += [f"{x}[::-1]", f"{x}.copy()", f"{x}", f"np.roll({x}, 1) * 0.5"]
            forms += [f"np.concatenate([{x}[3:], {y}[:3]])"]
        return self.pick(*forms)

    def number(self) -> str:
        forms = ["1", "0.5", "2.0", *SCALARS, *SCALARS, *INTS, *self.counters, *self.counters]
        x = self.pick(*forms)
        return self.pick(x, x, f"({x} + 1)", f"({x} * 0.5)", f"({x} - {self.pick('1', '0.25', *self.counters)})")

    def place(self) -> str:
        """An index of one element."""
        places = ["0", "-1", "3"]
        for counter in self.counters:
            places += [counter, f"{counter} + 1", f"-{counter} - 1"]
        return self.pick(*places)

    def statement(self) -> None:
        x, y = self.pick(*ARRAYS), self.pick(*ARRAYS)
        kind = self.random.randrange(23)
        if kind < 5:
            self.add(f"{x} = {self.array('n')}")
        elif kind < 7:
            self.add(f"{x}[1:-1] = {self.array('m')}")
        elif kind == 7:
            self.add(f"{x}[{self.place()}] = {self.pick(self.number(), f'{y}[{self.place()}] * 0.5')}")
        elif kind == 8:
            self.add(f"{x} {self.pick('+=', '-=', '*=')} {self.pick('0.5', self.number(), y)}")
            self.add(f"{x} *= 0.25")
        elif kind == 9:
            self.add(f"{x}, {y} = {y}, {x}")
        elif kind == 10:
            self.add(f"{x}, {y} = {y}, {self.array('n')}")
        elif kind == 11:
            value = self.pick(f"{x}.max()", f"float({x}[2])", self.number(), f"{x}[1] * 0.5")
            self.add(f"{self.pick(*SCALARS)} = {value}")
        elif kind == 12:
            self.add(f"{self.pick(*SCALARS)} = {self.pick(*SCALARS)} * 0.5 + {self.number()}")
        elif kind == 13:
            sign = self.pick("+=", "-=", "+=", "=")
            self.add(f"{self.pick(*INTS)} {sign} {self.pick('1', '3', *self.counters, *INTS)}")
        elif kind == 14:
            self.add(f"v = {x}[{self.pick('1:', '::2', ':-1')}]")
            self.add(f"v {self.pick('*=', '+=')} 0.5")
        elif kind == 15 and self.counters:
            c = self.counters[-1]
            test = self.pick(f"{c} == 0", f"{c} % 3 == 1", f"{c} < 4", f"{c} > -1", f"{c} == 7", "k > 5", "n > 3")
            self.add(f"if {test}:")
            self.block(1, 2, loop=False)
            if self.pick(True, False):
                self.add("else:")
                self.block(1, 2, loop=False)
        elif kind == 16 and self.counters:
            self.add(f"if {self.counters[-1]} == {self.pick('4', '9', 'n - 2')}:")
            self.add(f"    {self.pick('break', 'continue', 'return a, s, k')}")
        elif kind == 17 and self.depth < 3:
            self.loop()
        elif kind == 18:
            self.add(f"state = ({x}, {self.number()})")
            self.add(f"{y} = state[0] * 0.5 + state[1]")
        elif kind == 19:
            self.add(f"w = {self.array('m')}")
            self.add(f"{x}[1:-1] += w * 0.5")
        elif kind == 21 and self.counters:
            c = self.counters[-1]
            self.add(f"if {c} < 7:")
            self.add(f"    {x}[{c}] = {self.pick('min', 'max')}({y}[{c}], {x}[{c} + 1] * 0.5 + {y}[-{c} - 1])")
            self.add(f"{self.pick(*SCALARS)} = {self.pick('min', 'max')}({x}[{c} % 8], {y}[0])")
        elif kind == 20 and self.counters:
            self.add(f"d[{self.counters[-1]} % 3] = {x}")
            self.add(f"{x} = d.max(axis=0) * 0.25")
        else:
            self.add(f"{x} = {x} * 0.5 + {self.number()}")

    def block(self, least: int, most: int, loop: bool = True) -> None:
        self.depth += 1
        for _ in range(self.random.randint(least, most)):
            before = len(self.lines)
            self.statement()
            if not loop and any(word in line for line in self.lines[before:] for word in ("for ", "break", "continue")):
                del self.lines[before:]
                self.add("pass")
        self.depth -= 1

    def loop(self) -> None:
        counter = "ijh"[len(self.counters)]
        bounds = self.pick("n", "n", "n", "n + 1", "1, n", "n, 0, -1", "2, n, 2", "6", *(f"{c}" for c in self.counters))
        self.add(f"for {counter} in range({bounds}):")
        self.counters.append(counter)
        self.block(2, 6)
        self.counters.pop()
        if self.pick(True, False, False):
            self.add("else:")
            self.block(1, 1, loop=False)

    def program(self) -> str:
        self.lines = ["def f(a, b, n):", "    c = a * 2 - b", "    d = np.zeros((3, 8))"]
        self.add("s, t, k, m = 0.5, 1, 0, 2")
        if self.pick(True, False):
            self.add(f"{self.pick('c', 'b')} = {self.pick('a', 'a[:]', 'b', 'a.copy()')}")
        for _ in range(self.random.randint(1, 2)):
            self.loop()
        self.add(f"return {self.pick('a, b, c', 'a', 'c, a is c', 'b, a is b')}, s, t, k, m, d")
        return "\n".join(self.lines) + "\n"


def run(function, n):
    """The result, or the error, and what became of the arguments, with which of all these are one memory."""
    a, b = np.arange(8.0) % 5 - 1, np.arange(8.0)[::-1] * 0.5
    try:
        with np.errstate(all="ignore"):
            result = function(a, b, n)
    except Exception as error:
        result = (type(error), str(error))
    flat = [a, b]
    for item in result:
        flat += item if isinstance(item, tuple) else [item]
    arrays = [x for x in flat if isinstance(x, np.ndarray)]
    shared = [[np.shares_memory(x, y) for y in arrays] for x in arrays]
    return [picture(x) for x in flat], shared


def picture(x):
    """All that can be seen of a value."""
    if isinstance(x, np.ndarray):
        return type(x), x.dtype, x.shape, x.strides, x.flags.owndata, x.tolist()
    return type(x), x


def differs(seed: int, backends=("eager", "llvm")) -> tuple[str, int]:
    """Runs one program plainly and compiled; returns its text and how many loops became nodes."""
    text = Writer(seed).program()
    names: dict = {"np": np}
    exec(compile(text, f"<loops {seed}>", "exec"), names)
    plain = names["f"]
    nodes = 0
    for backend in backends:
        tcompile.reset()
        compiled = tcompile.compile(types.FunctionType(plain.__code__, names), backend=backend)
        for n in random.Random(seed).sample((7, 7, 0, 1, 2, 8, 6, 20), 4):
            want, got = run(plain, n), run(compiled, n)
            assert repr(got) == repr(want), f"seed {seed}, {backend}, n={n}:\n{text}\n{got}\ninstead of\n{want}"
        nodes += sum(node.op == "fori_loop" for graph in compiled.graphs for node in graph.nodes)
    return text, nodes


@pytest.mark.parametrize("first", range(0, 60, 10))
def test_generated_loops(first, monkeypatch):
    monkeypatch.setattr("tcompile.capture.loops.FEW_ROUNDS", 1)
    monkeypatch.setattr("tcompile.capture.loops.FEW_OPERATIONS", 0)
    monkeypatch.setattr("tcompile.backends.llvm.rounds.FEWEST", 1)
    with tcompile.config.patch(verify=True):
        assert sum(differs(seed)[1] for seed in range(first, first + 10))


if __name__ == "__main__":
    import traceback

    from tcompile.backends.llvm import rounds
    from tcompile.capture import loops

    loops.FEW_ROUNDS, loops.FEW_OPERATIONS, rounds.FEWEST = 1, 0, 1
    tcompile.config.verify = True
    start, count = int(sys.argv[1]), int(sys.argv[2])
    total = wrong = 0
    for number in range(start, start + count):
        try:
            total += differs(number)[1]
        except Exception as problem:
            wrong += 1
            if wrong < 4:
                print(number, "".join(traceback.format_exception_only(problem))[:3000], flush=True)
                if not isinstance(problem, AssertionError):
                    traceback.print_exc(limit=-6)
            else:
                print(number, type(problem).__name__, flush=True)
    print(f"{count} programs, {total} nodes, {wrong} differ")
