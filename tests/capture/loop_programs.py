"""Generates programs with loops: arrays that are rebound, written, viewed, exchanged; scalars, counters, branches,
exits.

Input: a source of random choices.
Output: a program's text, whose ``f(a, b, n)`` takes two arrays of eight floats and an int; ``rg`` and ``rs`` are random
generators.
Why: loops combine many features. All arithmetic is exact, so results must agree in every bit. The sign of a maximal
zero is undefined, so 0 is added to each maximum. Every loop ends.
"""

from __future__ import annotations

import re
from random import Random

from .lines import Lines

ARRAYS, SCALARS, INTS = ("a", "b", "c"), ("s", "t"), ("k", "m")


class Writer(Lines):
    """Writes one program."""

    def __init__(self, random: Random) -> None:
        super().__init__(random)
        self.lists = False  # whether it appends to lists
        self.draws = False  # whether it draws random numbers
        self.kept: set[str] = set()  # counters that go on from where they were left

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
            forms += [f"limited({x})", f"halved({x}, {number})", f"handed({x})"]
            forms += [f"np.concatenate([{x}[3:], {y}[:3]])", f"{y} * ((0 + (d @ {x}).max()) * 0.01)"]
        return self.pick(*forms)

    def number(self) -> str:
        forms = ["1", "0.5", "2.0", *SCALARS, *SCALARS, *INTS, *self.counters, *self.counters]
        x = self.pick(*forms)
        if self.counters and self.pick(True, False, False, False, False, False):
            c = self.pick(*self.counters)
            x = self.pick(f"(1 / ({c} + 1))", f"(0.5 ** {c})", f"(0.5 / (1 + {c} * 0.25))", f"({x} / ({c} + 2))")
        return self.pick(x, x, f"({x} + 1)", f"({x} * 0.5)", f"({x} - {self.pick('1', '0.25', *self.counters)})")

    def product(self, x: str, y: str) -> str:
        """A product whose bits are NumPy's, whatever the rounding: it has more than a few terms."""
        return self.pick(f"{x} @ {y} * 0.01", f"np.dot({x}[::-1], {y}) * 0.01", f"np.linalg.norm({x}) * 0.1")

    def place(self) -> str:
        """An index of one element."""
        places = ["0", "-1", "3"]
        for counter in self.counters:
            places += [counter, f"{counter} + 1", f"-{counter} - 1"]
            places += [f"{counter} // 2", f"({counter} * 3) % 8", "k % 8"]
        return self.pick(*places)

    def statement(self) -> None:
        x, y = self.pick(*ARRAYS), self.pick(*ARRAYS)
        if self.draws and self.pick(True, False, False, False):
            self.draw(x, y)
            return
        if self.counters and self.pick(True, *[False] * 9):
            self.undone(x)
            return
        kind = self.random.randrange(40 if self.lists else 36)
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
            root = f"math.sqrt(np.floor({x}).sum() {self.pick('** 2', '+ 9', '')} * 0.25)"
            value = self.pick(
                root, f"0 + {x}.max()", f"float({x}[2])", self.number(), f"{x}[1] * 0.5", self.product(x, y)
            )
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
        elif kind in (23, 24) and self.counters:
            self.add(f"if {self.test()}:")
            if self.pick(True, False, False):
                self.add(f"    {self.pick(*SCALARS, *INTS)} = {self.number()}")
            self.add(f"    {self.pick('break', 'break', 'continue', 'return a, s, k', self.error())}")
        elif kind == 17 and self.depth < 3:
            self.loop()
        elif kind == 18:
            self.add(f"state = ({x}, {self.number()})")
            self.add(f"{y} = state[0] * 0.5 + state[1]")
        elif kind == 19:
            self.add(f"w = {self.array('m')}")
            self.add(f"{x}[1:-1] += w * 0.5")
        elif kind == 25 and self.counters:
            self.add(f"w = {self.array('n')}")
            self.add(f"if {self.test()}:")
            self.add(f"    {x} = w")
            self.add(f"    s = {self.pick('0.5', 's * 0.5', 'w[1] * 0.5', f'0 + {x}.max()')}")
            if self.pick(True, False, False):
                self.add(self.pick("w[0] = 1", f"{y} = {y} * 0.5 + w[0]", f"if w is {x}: k += 1"))
        elif kind == 21 and self.counters:
            c = self.counters[-1]
            self.add(f"if {c} < 7:")
            self.add(f"    {x}[{c}] = {self.pick('min', 'max')}({y}[{c}], {x}[{c} + 1] * 0.5 + {y}[-{c} - 1])")
            self.add(f"{self.pick(*SCALARS)} = {self.pick('min', 'max')}({x}[{c} % 8], {y}[0])")
        elif kind == 22:
            self.elements(x, y)
        elif kind in (26, 27, 28) and self.counters:
            self.part(x, y, self.pick(*self.counters))
        elif kind in (31, 32) and self.counters:
            test = self.pick(self.test(), self.test(), f"{self.counters[-1]} % 3 == 1", "k % 2 == 1", "m > 2")
            self.add(f"if {test}:")
            self.block(1, 3, loop=self.pick(True, False, False))
            if self.pick(True, False):
                self.add("else:")
                self.block(1, 2, loop=False)
            if self.pick(True, False, False):
                self.add(f"    if {self.test()}: {self.error()}")
                self.add(f"    elif {self.test()}: {self.pick('pass', self.error())}")
        elif kind == 33:
            name = self.pick(*INTS)
            factor, more, sign = self.pick("3", "2", "-1"), self.pick("1", "0"), self.pick("%", "//")
            self.add(f"{name} = ({name} * {factor} + {more}) {sign} 5")
        elif kind in (34, 35):
            self.row(x, y)
        elif kind > 35:
            self.append(x, y)
        elif kind == 29:
            self.add(f"z = {self.pick(x, x, f'{x}[1:]', f'[{x}][0]')}")
        elif kind == 30:
            self.add(f"z[{self.pick('0', '1:4', ':')}] {self.pick('=', '+=')} {self.number()}")
            self.add("z *= 0.25")
        elif kind == 20 and self.counters:
            self.add(f"d[{self.pick(self.counters[-1], self.counters[-1], 'm', 'k')} % 3] = {x}")
            self.add(f"{x} = (0 + d.max(axis=0)) * 0.25")
        else:
            self.add(f"{x} = {x} * 0.5 + {self.number()}")

    def part(self, x: str, y: str, c: str) -> None:
        """Work on a part that depends on the iteration, and may come to nothing in some."""
        ends = f"{c}:", f"{c} + 1:", f":{c}", f":{c} + 1", f"{c}::-1", f"{c}:{c} + 3", f"-{c} - 1:", f"{c}::2"
        bounds = self.pick(*ends)
        one, two = f"{x}[{bounds}]", f"{y}[{self.pick(bounds, bounds, bounds, '::-1][' + bounds)}]"
        name = self.pick(*SCALARS)
        self.add(
            self.pick(
                f"{one} = {two} * 0.5 + {self.number()}", f"{one} *= 0.5", f"{one} = ({one} - {two}) * 0.5",
                f"{name} = np.floor({one}).sum() * 0.25", f"{name} = ({one} > {two}).sum() * 0.5",
                f"{name} = np.dot({one}, {two})", f"d[1, {bounds}] = {two}",
                f"{x}[{c}] = np.floor({one} * {two}).sum() * 0.125", f"{name} = len({one})",
                f"{name} = (0 + {one}.max()) * 0.5", f"{one} = {two}[0] * 0.5",
            )
        )  # fmt: skip
        if self.pick(True, False):
            self.add(f"{x} = {x} * 0.25")

    def undone(self, x: str) -> None:
        """A store that is taken back further on in the iteration, unless a test has ended it before."""
        name, attribute = self.pick(x, x, *SCALARS, *INTS), self.pick("w", "h")
        value = {"a": f"{x} * 0.5", "s": f"{name} * 0.5 + 1", "k": f"{name} + 1"}
        kind = next(first for first, names in (("a", ARRAYS), ("s", SCALARS), ("k", INTS)) if name in names)
        begin, end = self.pick(
            ([f"kept, {name} = {name}, {value[kind]}"], [f"{name} = kept"]),
            ([f"kept, {name} = {name}, {value[kind]}"], [f"{name} = kept"]),
            ([f"p.{attribute} = {value[kind]}"], [f"{name} = p.{attribute}", f"del p.{attribute}"]),
            ([f"u.append({value[kind]})"] if self.lists else ["pass"], ["u.pop()"] if self.lists else ["pass"]),
        )  # fmt: skip
        for text in begin:
            self.add(text)
        test = self.pick(self.test(), self.test(), f"{self.counters[-1]} == {self.pick('3', '1')}", "k % 2")
        if self.pick(True, False):
            self.add(f"if {test}: {self.pick('continue', 'continue', 'break', 'return a, s, k', 'raise KeyError(k)')}")
            for text in end:
                self.add(text)
        else:
            self.add(f"if {test}:")
            for text in end:
                self.add(f"    {text}")

    def draw(self, x: str, y: str) -> None:
        """Random numbers, rounded to few bits."""
        size = self.pick("8", "(8,)", "size=8", "a.shape", "len(a)")
        rows = [
            f"rg.integers(-4, 5, {size}) * 0.25", f"np.floor(rg.random({size}) * 8) * 0.25", f"rs.randint(3, {size})",
            "np.floor(rs.randn(8) * 4) * 0.25", f"np.floor(rg.normal(1, {self.pick('2', '0.5', 't')}, {size}) * 4) / 4",
        ]  # fmt: skip
        rows = [row for row in rows if "size=" not in row or "randint" not in row]
        numbers = [
            "math.floor(rg.random() * 8) * 0.25", "np.floor(rs.normal() * 4) * 0.25", "rg.integers(0, 5) * 0.5",
            "math.floor(rg.exponential(2) * 4) * 0.25", "rs.randint(-2, 3) * 0.5",
            "math.floor(rg.uniform(-1, 1) * 4) * 0.25",
        ]  # fmt: skip
        self.add(
            self.pick(
                f"{x} = {y} * 0.5 + {self.pick(*rows)}", f"{x}[1:5] = ({self.pick(*rows)})[1:5]",
                f"{self.pick(*SCALARS)} = {self.pick(*numbers)}", f"{self.pick(*SCALARS)} = {self.pick(*numbers)}",
                f"{self.pick(*INTS)} += int(rg.integers(0, {self.pick('3', 'k % 5', 'm')}))",
                f"{x}[{self.place()}] = {self.pick(*numbers)}", f"{x} = {x} * 0.5 + {self.pick(*numbers)}",
                f"if rg.random() < 0.5: {x} = {x} * 0.5", f"d[rg.integers(3)] = {self.pick(*rows)}",
            )
        )  # fmt: skip

    def row(self, x: str, y: str) -> None:
        """A row at a place that is computed."""
        at = self.pick("(k * 3 + 1) % 3", "m % 3", "k % 3", *(f"g[{c} % 8]" for c in self.counters), "g[-1]")
        more = [f"{x}[1:] = v[:-1] * 0.5", "v[0] = 2", "z = v", f"{x} = v", f"d[0] = {y}", "d *= 0.5", f"d[{at}] = {x}"]
        for line in self.random.sample(more, self.pick(0, 0, 0, 1, 2)):
            self.add(line)
        if self.pick(True, False, False):
            other = self.pick(at, "1", "m % 3")
            self.add(self.pick(f"d[{at}] = d[{other}] * 0.5", f"m = int(d[{at}].argmax())", "d *= 0.5"))
            self.add(self.pick(f"s = d[{at}][2] * 0.5", f"{x}[0] = 0 + d[{at}].max()"))
            return
        self.add(f"v = d[{at}]")
        self.add(
            self.pick(
                f"{x} = {y} * 0.5 + v * 0.25",
                f"s = np.floor(v @ {y}).item() * 0.125",
                f"s = v[1] * {x}[2]",
                f"s = np.floor(d[:, {at}] * 2).sum().item() * 0.125",
                f"d[:, 1] = d[:, {at}] * 0.5 + d[1:, {at}].sum()",
            )
        )
        if self.pick(True, False, False, False):
            self.add(self.pick(*more))

    def append(self, x: str, y: str) -> None:
        """Items for a list of arrays, or of numbers."""
        arrays = [f"{x}", f"{x}", f"{x} * 0.5", f"{x} * 0.5 + {y}", f"{x}.copy()", f"{x}[1:]"]
        numbers = [f"{x}[2] * 0.5", f"float({x}[1])", f"0 + {x}.max()", self.number(), *SCALARS]
        if self.pick(True, False):
            if self.pick(True, False):
                self.add(f"{x} = {x} * 0.5 + {self.number()}")
            self.add(f"l.append({self.pick(*arrays)})")
        else:
            self.add(f"u.append({self.pick(*numbers)})")

    def elements(self, x: str, y: str) -> None:
        """A scalar loop."""
        if self.pick(True, False, False, False):
            self.add(f"{y} = {x}{self.pick('.copy()', '[::-1].copy()', ' * 1', '')}")
        last = self.pick("8", "8", "7", "6", *(f"{c} % 8" for c in self.counters), *(f"{c}" for c in self.counters))
        self.add(f"for e in range({self.pick('1', '0', '1')}, {last}):")
        self.add(f"    {x}[e] = ({x}[e] + {y}[e - 1]) * {self.pick('0.5', '0.25', self.pick(*SCALARS))}")
        more = [
            f"{self.pick(*SCALARS)} = {x}[e] * 0.5", f"if {y}[e] > {self.number()}: {self.pick('break', 'continue')}",
            f"{self.pick(*INTS)} += e % 3", f"{y}[-e] = {self.number()}", f"if {x}[e] < 0: {y}[e] = {x}[e - 1]", "pass",
            f"{x}[e] = np.floor({y}[e] * 4) * 0.25", f"s = np.maximum({x}[e], {y}[e]) * 0.5",
        ]  # fmt: skip
        if self.draws:
            more += [
                f"{x}[e] = math.floor(rg.random() * 8) * 0.25", f"m = rg.integers(0, {self.pick('e + 1', 'e', '4')})",
                f"if rg.random() < 0.25: {y}[e] = np.floor(rs.randn() * 4) * 0.25", "s = rs.randint(0, e + 2) * 0.5",
                f"{x}[rg.integers(len({x}))] = e", "s = math.floor(rg.normal(scale=2) * 4) * 0.25",
            ]  # fmt: skip
        for line in self.random.sample(more, self.pick(0, 1, 2)):
            self.add(f"    {line}")

    def block(self, least: int, most: int, loop: bool = True) -> None:
        self.depth += 1
        for _ in range(self.random.randint(least, most)):
            before = len(self.lines)
            self.statement()
            words = ("for ", "while ", "break", "continue")
            if not loop and any(word in line for line in self.lines[before:] for word in words):
                del self.lines[before:]
                self.add("pass")
        self.depth -= 1

    def error(self) -> str:
        """A statement that raises, and says in which iteration."""
        return f"raise {self.pick('ValueError', 'KeyError')}({self.counters[-1]})"

    def test(self) -> str:
        """A condition on what arrays hold."""
        x, number = self.pick(*ARRAYS), self.pick("0.25", "1.5", "0", "-0.5", *SCALARS)
        one = self.pick(
            f"{x}.max() {self.pick('<', '>')} {number}", f"{x}[2] > {number}", f"np.all({x} < {number})",
            f"np.any({x} > {number})", f"s > {self.pick('0.5', 't')}", f"not {x}[1] > {number}", f"{x}[3]",
            f"float({x}[0]) <= {number}",
        )  # fmt: skip
        if self.pick(True, False, False, False):
            sign = self.pick("and", "or")
            x = self.pick(*ARRAYS)
            more = ["rg.random() < 0.5", "not rg.integers(3)", f"rs.rand() < {x}[0]"] if self.draws else []
            return f"{one} {sign} {self.pick(f'bumped({x})', *more)}"
        return self.pick(one, one, one, f"{one} and {self.pick(*ARRAYS)}[0] < 1", f"{one} or b[1] > 0")

    def while_loop(self, most: int = 6) -> None:
        """A ``while`` loop, which counts its iterations first thing in each."""
        counter = "ijh"[len(self.counters)]
        start, last = self.pick("-1", "0"), self.pick("n - 2", "6", "9")
        if self.counters and self.pick(True, True, False):  # it goes on from where it was left the last time
            back = self.pick(f"{counter} -= {self.pick('1', '3', 'n')}", f"{counter} //= 2", f"{counter} = 0")
            self.add(self.pick(back, back, f"if {self.test()}: {back}"))
            self.kept.add(counter)
        else:
            self.add(f"{counter} = {start}")
        known = self.pick(f"{counter} < {last}", f"{last} > {counter}")
        both = self.pick(f"{known} and ({self.test()})", f"({self.test()}) and {known}", known)
        inside = self.pick(True, False, False)
        self.add(f"while {self.pick('True', self.test()) if inside else both}:")
        self.add(f"    {counter} += 1")
        if inside:
            self.add(f"    if {counter} {self.pick('>', '>=')} {last}:")
            self.add(f"        {self.pick('break', 'break', 'return b, t, m')}")
        elif self.pick(True, False, False, False):
            test = self.pick(known, f"not {known}", f"{counter} >= m", f"{counter} < k", self.test())
            self.add(f"    if {test}: break")
        self.body(counter, most)

    def loop_in_loop(self) -> None:
        """A ``while`` loop with little around it."""
        self.add(f"for i in range({self.pick('n', '12', '3')}):")
        self.counters.append("i")
        self.block(0, 1)
        self.depth += 1
        self.while_loop(1)
        self.add(self.pick("a = a * 0.5 + 1", "b = a - b * 0.5", "s = s + k", "a[1] += 0.5"))
        self.depth -= 1
        self.counters.pop()

    def body(self, counter: str, most: int = 6) -> None:
        """What a loop does in each iteration, and perhaps when all are done."""
        self.counters.append(counter)
        self.block(min(most, 2), most)
        self.counters.pop()
        if self.pick(True, False, False):
            self.add("else:")
            self.block(1, 1, loop=False)

    def loop(self) -> None:
        if self.pick(True, False, False):
            self.while_loop()
            return
        counter = "ijh"[len(self.counters)]
        if self.pick(True, False, False, False, False):
            one, two = self.pick("d", "a", "b[2:]", "d.T"), self.pick("d", "c")
            self.add(
                self.pick(
                    f"for {counter}, v in enumerate({one}):",
                    f"for {counter}, (v, w) in enumerate(zip({two}, {two})):",
                    f"for {counter}, v in enumerate(reversed({one}), 1):",
                )
            )
            self.counters.append(counter)
            self.add(f"    {self.pick('a[1:] = a[1:] * 0.5 + v.max()', 's = 0 + v.max() * 0.5', 'd[0] = 0 + v.max()')}")
            self.block(1, 5)
            self.counters.pop()
            return
        bounds = self.pick("n", "n", "n", "n + 1", "1, n", "n, 0, -1", "2, n, 2", "6", *(f"{c}" for c in self.counters))
        if self.counters and self.pick(True, False):
            c = self.counters[-1]
            bounds = self.pick(f"{c} + 1, n", f"{c}, n", f"n - {c}", f"n - 1 - {c}", f"{c}, -1, -1", f"n - 1, {c}, -1")
        self.add(f"for {counter} in range({bounds}):")
        self.body(counter)

    def helpers(self) -> list[str]:
        """Functions that branch, of which some return early, or return what they are given; one stores to ``p``."""
        test, other = (self.pick("x.max() > 1", "x[0] > 0", "x.sum() < 2", "x[1] and x[2]") for _ in range(2))
        same = self.pick("x", "x * 1", "x + 0.5")
        return [
            "def limited(x):", f"    if {test}:", "        x = x * 0.5", f"    elif {other}:", f"        x = {same}",
            "    return x", "def halved(x, k):", f"    if {other}:", f"        return {same} * 0.5",
            "    y = x * 0.25 + k", "    return y * 0.5 if y[0] > 0 else y - 1",
            "def bumped(x):", "    x[0] = x[0] * 0.5 + 1", "    return x[0] > x[1]",
            "def handed(x):", f"    if {test}:", f"        {self.pick('pass', 'p.g = x', 'p.g = x[0]')}",
            f"        return {self.pick('x', 'x', same)}", f"    {self.pick('pass', 'p.g = x * 0.5', 'p.g = 0.5')}",
            f"    return {self.pick('x', 'x * 0.5 + 1', 'x[::-1]')}",
        ]  # fmt: skip

    def program(self) -> str:
        self.lines = ["def f(a, b, n):", "    c = a * 2 - b", "    d = np.zeros((3, 8))"]
        self.add("s, t, k, m = 0.5, 1, 0, 2")
        self.add("g, v = np.arange(8) * 5 % 3, a")
        self.add(f"z = {self.pick(*ARRAYS)}")
        if self.pick(True, False):
            self.add(f"{self.pick('c', 'b')} = {self.pick('a', 'a[:]', 'b', 'a.copy()')}")
        self.lists = self.pick(True, False, False)
        self.draws = self.pick(True, False, False)
        if self.lists:
            self.add(f"l, u = {self.pick('[]', '[]', '[a]', '[b * 2]')}, {self.pick('[]', '[]', '[0.5]')}")
        for _ in range(self.random.randint(1, 2)):
            self.pick(self.loop, self.loop, self.loop, self.loop_in_loop)()
        if self.lists and self.pick(True, False):
            uses = "s = len(l) + len(u)", "if l: l[-1][0] = 2", "a = l[-1] if l else a", "c = np.array(u)", "b[0] = 3"
            for line in self.random.sample(uses, self.pick(1, 1, 2)):
                self.add(line)
        results = self.pick("a, b, c", "a", "c, a is c", "b, a is b", "z, a is z", "z, c, z is b")
        same = f", l, [e is {self.pick(*ARRAYS)} for e in l], u"
        lists = self.pick(", l, u", ", np.array(u)", ", np.array(l), np.array(u)", ", u, np.array(l)", same, same)
        self.add(f"return {results}, s, t, k, m, d{lists if self.lists else ''}")
        if self.kept:
            self.lines.insert(1, f"    {' = '.join(sorted(self.kept))} = {self.pick('0', '0', '5')}")
        if self.pick(True, False):
            self.move()
        known = ("limited(", "halved(", "bumped(", "handed(")
        helpers = self.helpers() if any(name in line for line in self.lines for name in known) else []
        return "\n".join([*helpers, *self.lines]) + "\n"

    def move(self) -> None:
        """Lets some variables be attributes and items instead; ``p`` is an object from outside. One may be global."""
        names = self.random.sample("cstkm", self.pick(1, 2, 3))
        for at, name in enumerate(names):
            place = self.pick("o.{0}", "p.{0}", "q['{0}']", "r[{1}]").format(name, at)
            self.lines[1:] = [re.sub(rf"\b{name}\b", place, line) for line in self.lines[1:]]
        first = ["    o, q, r = Box(), {}, [None, None, None]"]
        if "t" not in names and self.pick(True, False, False):
            first.insert(0, "    global t")
        self.lines[1:1] = first


def program(random: Random) -> str:
    """One program."""
    return Writer(random).program()
