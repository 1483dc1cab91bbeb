"""Generates scalar loops: branches, whiles, every kind of number, indices that wrap or miss, ints that overflow.

Input: a ``Random``.
Output: the text of a function of some arrays, a size, and a str.
Why: scalar loops follow Python's rules for every number.
"""

from __future__ import annotations

from random import Random

from .lines import Lines

ARRAYS = {"a": 1, "b": 1, "m": 2, "q": 1, "h": 1, "v": 1}
LISTS = ("xs", "la", "lb", "lb")
INTS, FLOATS = ("k", "n", "c"), ("s", "t")


class Writer(Lines):
    """Writes one program."""

    def __init__(self, random: Random) -> None:
        super().__init__(random)
        self.whiles = 0
        self.item = self.pick("{}", "int({})", "float({})", "np.float64({})", "({}, 2 * {})", "(int({}), a[{}])")
        self.appends = False
        self.letters: list[str] = []
        self.draws = self.pick(False, False, True)
        self.objects = self.pick(False, False, True)
        self.of_lists = self.pick(0.0, 0.2, 0.5)  # how many of the elements are items of lists of numbers

    def index(self, size: int) -> str:
        forms = ["0", "-1", "2", *self.counters * 3]
        text = self.pick(*forms)
        if text in self.counters:
            near = f"{text} - 1", f"{text} + 1", f"-{text} - 1", f"{text} % {size}", f"{text} // 2"
            text = self.pick(text, text, *near)
        return self.pick(text, text, text, text, "k % 4", "b[0] % 3")

    def element(self) -> str:
        if self.random.random() < self.of_lists:
            return f"{self.pick(*LISTS)}[{self.index(8)}]"
        name = self.pick(*ARRAYS)
        if ARRAYS[name] == 1:
            return f"{name}[{self.index(8)}]"
        return self.pick(f"{name}[{self.index(4)}, {self.index(5)}]", f"{name}[{self.index(4)}][{self.index(5)}]")

    def drawn(self) -> str:
        """A random number of Python's."""
        bound = self.pick("7", "8", "1 << 40", "k", "c", "b[0]", *self.counters)
        return self.pick(
            "random.random()", "random.random()", "gauss(0, 1)", f"random.gauss({self.element()}, 2)", "gauss()",
            f"random.uniform({self.element()}, {bound})", f"random.randint({bound}, 9)", f"random.randrange({bound})",
            f"random.randrange(-3, {bound})", "random.normalvariate(0.5, 2)", f"random.expovariate({bound})",
            f"random.choice({self.pick('a', 'b', 'xs', 'la', '(3, 1, 2)', 'weights', 'h', 'm[1]')})",
        )  # fmt: skip

    def number(self, depth: int = 0) -> str:
        if self.draws and self.random.random() < 0.1:
            return self.drawn()
        if self.objects and self.random.random() < 0.1:
            return self.pick("box.level", "box.level", "box.count", "box.best", f"box.step({self.pick(*FLOATS, 'k')})")
        if depth > 2 or self.random.random() < 0.35:
            return self.pick(
                *INTS, *FLOATS, *self.counters * 2, self.element(), self.element(), self.element(), "1", "2", "0.5",
                "-3", "7", "True", "1 << 40", "1e200", "0.0", "-0.0", f"ord({self.letter()})", "len(w)",
                *(["len(found)"] if self.appends else []),
            )  # fmt: skip
        one, two = self.number(depth + 1), self.number(depth + 1)
        sign = self.pick("+", "-", "*", "+", "-", "*", "/", "//", "%", "&", "|", "^", ">>", "<<", "**")
        if sign in ("&", "|", "^", ">>", "<<"):
            one, two = (self.pick(*INTS, *self.counters, "b[1]", "3", "q[0]", "h[2]") for _ in range(2))
        if sign == "**":
            two = self.pick("2", "3", "0.5")
        return self.pick(
            f"({one} {sign} {two})", f"({one} {sign} {two})", f"({one} {sign} {two})", f"min({one}, {two})",
            f"max({one}, {two})", f"abs({one})", f"-{one}", f"({one} if {self.test(depth + 1)} else {two})",
            f"float({one})", f"int({one})", f"({one} or {two})", f"math.sqrt({one})", f"np.sqrt(abs({one}))",
            self.of_math(one, two), self.of_part(), self.of_table(),
        )  # fmt: skip

    def of_math(self, one: str, two: str) -> str:
        """A function of Python's ``math``, or one of its like."""
        whole = [self.pick(*INTS, *self.counters, "b[1]", "h[2]") for _ in range(2)]
        return self.pick(
            f"math.{self.pick('atan2', 'hypot', 'fmod', 'copysign', 'remainder', 'pow')}({one}, {two})",
            f"math.{self.pick('trunc', 'floor', 'erf', 'cbrt', 'degrees', 'isfinite')}({one})", f"round({one})",
            f"math.gcd({', '.join(whole)})", f"math.comb({whole[0]}, 2)", f"divmod({one}, {two})[1]",
            f"np.{self.pick('square', 'sign', 'floor', 'isnan')}(float({one}))", f"pow({one}, 2)",
        )  # fmt: skip

    def part(self) -> str:
        """A slice with bounds that may depend on data, or items of an array at the indices of one."""
        bounds = [self.pick("", "2", "-2", "k", "c", "b[0]", *self.counters * 2, *(f"{c} + 3" for c in self.counters))
                  for _ in range(2)]  # fmt: skip
        name = self.pick("a", "a", "v", "m[1]", "m[c % 4]")
        key = f"{':'.join(bounds)}"
        return self.pick(f"{name}[{key}]", f"{name}[{key}]", f"m[2, {key}]", f"a[b[{key}]]")

    def of_part(self) -> str:
        part, index = self.part(), self.pick("0", "-1", "k", *self.counters)
        return self.pick(f"{part}.sum()", f"np.sum({part})", f"len({part})", f"{part}[{index}]", f"{part}.size")

    def of_table(self) -> str:
        """A number of a tuple or list, by an index that varies."""
        index = self.pick(*(f"{c} % 3" for c in ("k", *self.counters)), *self.counters, "k", "b[0]")
        table = self.pick("(3, 1, 2)", "[0.5, -0.0, 1e9]", "(True, False, True)", "(1, 2.0, 3)", "steps", "weights")
        return f"{table}[{index}]" if table != "steps" else f"steps[{index}][{self.pick('0', '1')}]"

    def letter(self) -> str:
        return self.pick(f"w[{self.index(8)}]", *self.letters * 2)

    def of_letters(self, sign: str) -> str:
        """A test of characters, or of whether a number is among some."""
        return self.pick(
            f"{self.letter()} {sign} {self.pick(self.letter(), repr(self.pick(*'abc')))}",
            f"{self.letter()} {self.pick('==', '!=', sign)} {self.pick(repr('ab'), repr('b'))}",
            f"{self.letter()} {self.pick('in', 'not in')} {self.pick(repr('ace'), repr(''), repr('bb'))}",
            f"{self.number(2)} {self.pick('in', 'not in')} {self.pick('(1, 2.0, True)', '(k, n)', '(0, s, 5)')}",
        )

    def test(self, depth: int = 0) -> str:
        sign = self.pick("<", "<=", "==", "!=", ">", ">=")
        if self.random.random() < 0.12:
            return self.of_letters(sign)
        if self.random.random() < 0.05:
            return self.pick("z is None", "z is not None", "not z")
        text = f"{self.number(depth + 1)} {sign} {self.number(depth + 1)}"
        if depth < 2:
            text = self.pick(text, text, f"({text}) and {self.test(depth + 1)}", f"not ({text})",
                             f"({text}) or {self.test(depth + 1)}", "q[2]", self.number(2))  # fmt: skip
        return text

    def statement(self) -> None:
        kind = self.random.randrange(26 if self.objects else 24)
        if kind < 4:
            self.add(f"{self.element()} = {self.number()}")
        elif kind < 6:
            self.add(f"{self.element()} {self.pick('+=', '-=', '*=')} {self.number()}")
        elif kind < 8:
            self.add(f"{self.pick(*FLOATS)} = {self.number()}")
        elif kind == 8:
            self.add(f"{self.pick(*INTS)} = {self.pick(*INTS, *self.counters)} {self.pick('+', '-', '*')} 3")
        elif kind == 9:
            self.add(f"{self.pick('s, t = t, s', 's, k = k, 1', 'a, h = h, a', 'k, n = n, k')}")
        elif kind in (10, 11):
            self.add(f"if {self.test()}:")
            self.block()
            if self.pick(True, False):
                self.add(f"elif {self.test()}:")
                self.block()
            if self.pick(True, False):
                self.add("else:")
                self.block()
        elif kind == 12 and self.counters:
            self.add(f"if {self.test()}:")
            leave = self.pick(
                "break", "break", "break", "continue", "continue", "return a, s, k, -1", "return", "return s",
                "return k, c", "raise ValueError(s, k)", f"raise IndexError('none', {self.pick(*self.counters)})",
            )  # fmt: skip
            self.add(f"    {leave}")
        elif kind == 13 and self.depth < 4:
            self.loop()
        elif kind == 14 and self.depth < 4:
            self.whiles += 1
            name = f"w{self.whiles}"
            self.add(f"{name} = 0")
            self.add(f"while {name} < {self.pick('5', '3', 'k % 4')} and ({self.test(1)}):")
            self.depth += 1
            self.add(f"{name} += 1")
            self.depth -= 1
            self.counters.append(name)
            self.block()
            self.counters.pop()
        elif kind == 15:
            self.row()
        elif kind > 23:
            item = self.pick("None", self.number(1), self.element(), *self.counters)
            self.add(
                self.pick(
                    f"box.{self.pick('level', 'best')} = {item}", f"box.level += {item}", "box.count += 1",
                    f"if box.best is None: box.best = {item}", f"t = box.step({item})", "z = box.best",
                )
            )  # fmt: skip
        elif kind == 20:
            self.add(f"z = {self.pick('None', 'None', *INTS, *self.counters, 's', f'lc[{self.index(8)}]')}")
        elif kind == 22 and self.of_lists:
            item = self.pick(self.number(1), self.number(1), "None", "z")
            self.add(self.pick(f"lc[{self.index(8)}] = {item}", "xs, lb = lb, xs", f"k = len({self.pick(*LISTS)})",
                               f"{self.element()} = {self.number()}"))  # fmt: skip
        elif kind == 23 and self.depth < 4 and self.counters and self.of_lists:
            if self.pick(True, False):
                self.add(f"for y, d in zip(a, {self.pick(*LISTS)}):")
                self.add("    k += d > y")
            self.add(f"for y in {self.pick(*LISTS)}:")
            self.counters.append("y")
            self.block()
            self.counters.remove("y")
        elif kind == 21 and self.depth < 4 and self.counters:
            self.add(f"for y in {self.part()}:")
            self.counters.append("y")
            self.block()
            self.counters.remove("y")
        elif kind == 19 and self.depth < 4 and self.counters:
            self.caught()
        elif kind == 18:
            self.appends = True
            item = self.item.format(self.pick("s", "k", "c", *self.counters * 3, self.element()), self.pick("0", "c"))
            self.add(f"{self.pick('', f'if {self.test()}: ', f'if {self.test()}: ')}found.append({item})")
        elif kind == 16 and self.depth < 4:
            steps = self.pick("((1, 0), (0, -1))", "((1, 2), (k, c), (-1, 0))", "((0, n),)", "((0, 1), (1, 0))")
            self.add(f"for d, e in {steps}:")
            self.counters += ["d", "e"]
            self.block()
            del self.counters[-2:]
        else:
            self.add(self.pick(f"c = {self.pick(*self.counters, 'k', '2')}", f"assert {self.test()}, k"))

    def caught(self) -> None:
        """An exception that the function itself handles."""
        self.add("try:")
        self.depth += 1
        self.add(f"if {self.test()}:")
        self.add(f"    raise {self.pick('KeyError', 'ValueError(s)')}")
        self.depth -= 1
        self.block()
        self.add("except KeyError:")
        self.add(f"    {self.pick('k', 'n', 'c')} {self.pick('=', '+=')} {self.pick('1', 'k', *self.counters)}")

    def row(self) -> None:
        """Numbers that are stored in a row, or read from one; and the larger of several."""
        items = ", ".join(self.number(2) for _ in range(self.pick(5, 5, 5, 4)))
        self.add(
            self.pick(
                f"m[{self.index(4)}] = {items}", f"m[{self.index(4)}] = [{items}]",
                f"m[{self.index(4)}] = {items}", f"m[[{self.index(4)}, {self.index(4)}]] = {self.number(2)}",
                f"s, t, c, c, k = m[{self.index(4)}]", f"z = m[{self.index(4)}]; z[1] = {self.number(2)}",
                f"s = max({', '.join(self.number(2) for _ in range(3))})",
                f"{self.element()} = min({', '.join(self.number(2) for _ in range(4))})",
            )
        )  # fmt: skip

    def block(self) -> None:
        self.depth += 1
        for _ in range(self.random.randint(1, 3)):
            self.statement()
        self.depth -= 1

    def loop(self) -> None:
        counter = "ijl"[len([c for c in self.counters if c in "ijl"]) % 3]
        bounds = self.pick(
            "8", "7", "1, 8", "7, -1, -1", "0, 8, 3", "size", "size - 1", "len(a)", "m.shape[1]", "1, 4", "9",
            *(f"{c}, 5" for c in self.counters), *(f"{c} + 1" for c in self.counters),
        )  # fmt: skip
        form, more = self.random.random(), f"x{counter}"
        if form < 0.8:
            self.add(f"for {counter} in range({bounds}):")
        elif form < 0.9:
            what = self.pick("w", "w", "a", "q", "range(9, 1, -2)", "m[2]", "m[1:, 0]", "xs", "xs[1:]", "lb")
            start = self.pick("", "", ", 1", ", k", f", {self.pick('c', *self.counters)}")
            self.add(f"for {counter}, {more} in enumerate({what}{start}):")
            (self.letters if what == "w" else self.counters).append(more)
        elif form < 0.95 and self.of_lists:
            columns = (self.pick("a", "xs", "b", "la", "lb", "range(2, 11)", "xs[k % 3:]") for _ in range(2))
            self.add(f"for {counter}, {more} in zip({', '.join(columns)}):")
            self.add(f"    {counter} = int({counter}) % 8")
            self.counters.append(more)
        else:
            self.add(f"for {more} in w:")
            self.add(f"    {counter} = ord({more}) % {self.pick(8, 4)}")
            self.letters.append(more)
        self.counters.append(counter)
        self.block()
        self.letters = [letter for letter in self.letters if letter != more]
        self.counters = [name for name in self.counters if name not in (counter, more)]
        if self.random.random() < 0.2:
            self.add("else:")
            self.block()

    def whole(self) -> None:
        """A statement about whole arrays, before a loop or after one."""
        self.add(
            self.pick(
                "v = a[::-1]", "v = a.copy()", "v = a * 2", "v = m.reshape(-1)[4:12]", "a[1:-1] = b[2:] * 0.5",
                "a *= 0.5", "m[1:] += m[0]", "m[2, 1] = a[3]", "h[::2] = 3", "a[-1] = m[1, 2] / a[0]", "b = b + 1",
                "a = a + 0.5", "s = a.max()", "m[:, 1] = np.sqrt(a[:4])",
            )
        )  # fmt: skip

    def comprehension(self) -> None:
        """A list of numbers, or what is made of it. What it reads is in cells from there on, before 3.12."""
        self.counters.append("i")
        item = self.pick("{}", "{}", "float({})", "({}, i)").format(self.number(1))
        test = self.pick("", f" if {self.test(1)}", f" if {self.test(1)}")
        self.counters.pop()
        text = f"[{item} for i in range({self.pick('8', '1, 7', 'size', 'len(a)', '9')}){test}]"
        self.add(f"found.append({self.pick('{}', 'len({})', 'np.array({})', '{}[-1:]').format(text)})")

    def program(self) -> str:
        self.lines = ["def f(a, b, m, q, h, size, w, xs):"]
        self.add("k, n, c, s, t, v, z = 0, 5, 1, 0.5, a[1], a[::-1], None")
        self.add("steps, weights = [(0, 1), (1, 0), (0, -1)], (s, 0.25, a[0] * 2)")
        number, count = self.pick("0", "0", "0.0", "True"), self.pick("18", "(size + 17)")
        self.add(f"la, lb, lc = [{number}] * {count}, xs[:], [None] * 20")
        if self.pick(True, False, False):
            made = "lb = la", "lb = [0.5] * (size + 20); lb[0] = 2.5; lb[3] = t", "lc = [3] * 30; lc[-1] = 5"
            self.add(self.pick(*made))
        self.add(f"found = [{self.pick('', '', '', 'k')}]")
        for _ in range(self.random.randint(1, 3)):
            for _ in range(self.pick(0, 0, 1, 2)):
                self.whole()
            self.loop()
        if self.random.random() < 0.15:
            self.comprehension()
        if self.pick(True, False):
            self.whole()
        given = self.pick("s, t, k", "s", "k, c", "a, s, n, t", "t", "v", "v[2:], m[1]")
        self.add(f"return {given}, n, a[0], found, z, la, lb, lc")
        return "\n".join(self.lines) + "\n"


def program(random: Random) -> str:
    """The text of one program."""
    return Writer(random).program()
