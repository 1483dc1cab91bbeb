# ruff: noqa: E501, UP031
"""Random Python programs over arrays and plain Python values, as source text.

``program(random)`` writes a module with globals, helper functions, a class, and a function ``f(x, y, k, s, flag, items,
table, obj)``. Numbers are small and dyadic, so that sums are exact in whatever order they are taken. A program may
raise, print, write to its arguments and branch on array values: now and then, so that most are captured whole.
"""

from __future__ import annotations

import linecache
import re
import textwrap
from dataclasses import dataclass, field
from random import Random
from typing import Any

import numpy as np

PRELUDE = """
import functools
import math
import operator
import numpy as np
from collections import namedtuple

Point = namedtuple("Point", "p q", defaults=[1])
G_INT = 3
G_FLOAT = 0.5
G_LIST = [1, 2.0, "s"]
G_DICT = {"a": 2, "b": np.arange(3.0)}
G_ARRAY = np.array([[1.0], [2.0]])[:1]
G_STATE = None


def helper(a, b=2, *rest, w=1, **more):
    for r in rest:
        a = a + r
    if w > 1:
        a = a * w
    for name in more:
        a = a - more[name]
    return a + b


def pick(flag, a, b=0):
    if flag:
        return a
    return b


def numbers(n, a):
    for i in range(n):
        if i == 3:
            return
        yield a + i


def scale(a, by=G_INT):
    a = a * by
    return a


class Thing:
    rate = 2

    def __init__(self, v=0.5, n=3):
        self.v = v
        self.n = n
        self.parts = [1, 2.5]

    def apply(self, a, k=1):
        return a * self.v + self.n * k

    @property
    def double(self):
        return self.v * 2

    @classmethod
    def make(cls, a):
        return a + cls.rate

    @staticmethod
    def less(a):
        return a - 1

    def __call__(self, a):
        return self.apply(a) + self.double

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        return self.parts[i]
"""
ARRAY_DTYPES = ("float64", "float64", "float32", "int64", "int32", "uint8", "bool", "float16", "complex128")


@dataclass
class Writer:
    """The program under construction; ``names`` maps each kind of value to the variables that hold one."""

    random: Random
    lines: list[str] = field(default_factory=list)
    names: dict[str, list[str]] = field(default_factory=dict)
    count: int = 0
    loops: int = 0
    risky: float = 0.02

    def chance(self, p: float) -> bool:
        return self.random.random() < p

    def choose(self, *options: Any) -> Any:
        return self.random.choice(options)

    def fresh(self, kind: str) -> str:
        self.count += 1
        return f"{kind}{self.count}"

    def var(self, kind: str) -> str:
        return self.random.choice(self.names[kind])

    def fill(self, kind: str, depth: int, *templates: str) -> str:
        """One template, filled: ``<a>`` is a value of ``kind``, ``<b>`` one that goes with it, ``<int>`` one of that kind."""
        made: dict[str, str] = {}

        def value(match: re.Match[str]) -> str:
            name = match.group(1)
            if name not in ("a", "b"):
                return self.expression(name, min(depth - 1, 1))
            if name not in made:
                other = {
                    "array": self.choose("array", "array", "int", "float"),
                    "float": self.choose("float", "int"),
                }.get(kind, kind)
                made[name] = self.expression(kind if name == "a" else other, depth - 1)
            return made[name]

        return re.sub(r"<(\w+)>", value, self.random.choice(templates))

    def expression(self, kind: str, depth: int) -> str:
        """An expression of a kind."""
        return getattr(self, kind if kind in ("array", "scalar") else f"{kind}_")(depth)

    # -- expressions -----------------------------------------------------------------------------------------------
    def int_(self, depth: int = 2) -> str:
        if depth <= 0 or self.chance(0.3):
            return self.fill(
                "int", depth, str(self.random.randint(-3, 5)), self.var("int"), self.var("int"), "G_INT", "obj.n", "k"
            )
        return self.fill("int", depth,
            "(<a> + <b>)", "(<a> - <b>)", "(<a> * <b>)", "(<a> // 2)", "(<a> % 3)", "(-<a>)", "abs(<a>)", "(<a> ** 2)",
            "len(<list>)", "<array>.shape[0]", "<array>.ndim", "<array>.size", "min(<a>, <b>)",
            "max(<a>, <b>)", "int(<bool>)", "(<a> if <bool> else <b>)", "pick(<bool>, <a>, <b>)",
            "(<a> & 3)", "(<a> << 1)", "len(<array>)", "sum(range(<a> % 4))", "obj[0]", "(lambda q: q + <a>)(<b>)",
            "<list>[0]", "len(obj)", "G_LIST[0]", "sum([<a>, <b>])", "len(f'{k}')",
        )  # fmt: skip

    def float_(self, depth: int = 2) -> str:
        if depth <= 0 or self.chance(0.3):
            return self.fill(
                "float",
                depth,
                "0.5",
                "2.0",
                "-1.5",
                "0.25",
                "s",
                "s",
                self.var("float"),
                "G_FLOAT",
                "obj.v",
                "G_LIST[1]",
            )
        return self.fill("float", depth,
            "(<a> + <b>)", "(<a> - <b>)", "(<a> * <b>)", "(<a> / 2)", "(-<a>)", "abs(<a>)", "float(<int>)",
            "(<int> / 4)", "(<a> if <bool> else <float>)", "obj.double", "max(<a>, 0.5)",
            "math.floor(<a>) * 1.0", "helper(<a>, <b>)", "(<a> ** 2)", "scale(<a>)", "obj.parts[1]", "math.sqrt(<a> * <a>)",
            "(<a> % 1.5)", "round(<a>)*1.0",
        )  # fmt: skip

    def bool_(self, depth: int = 2) -> str:
        if depth <= 0 or self.chance(0.2):
            return self.fill("bool", depth, "True", "False", "flag", self.var("bool"), "<int> > <int>")
        if self.chance(self.risky):
            return self.fill("bool", depth, "(<array> > 0).any()", "<array>.sum() > 1")
        return self.fill("bool", depth,
            "(<int> < <int>)", "(<int> == <int>)", "(<int> >= <int>)", "(<float> < <float>)",
            "(<a> and <b>)", "(<a> or <b>)", "(not <a>)", "(<int> < <int> < <int>)",
            "(<int> in (1, 2, 3))", "('a' in table)", "(flag is None)", "(flag is not None)", "isinstance(<any>, int)",
            "isinstance(<array>, np.ndarray)", "bool(<list>)", "(<array>.dtype == np.float64)",
            "(<array> is <array>)" if self.chance(0.3) else "(k == k)", "any([<a>, <b>])", "all([<a>, <b>])",
            "(<array>.shape == <array>.shape)", "hasattr(obj, 'v')", "(flag == 'go')", "('b' not in G_DICT)",
            "(bool(<int>))", "(<int> != 0)",
        )  # fmt: skip

    def array(self, depth: int = 2) -> str:
        if depth <= 0 or self.chance(0.25):
            return self.fill("array", depth, "x", "y", self.var("array"), self.var("array"), self.var("array"))
        return self.fill("array", depth,
            "(<a> + <b>)", "(<b> - <a>)", "(<a> * <b>)", "(<a> / 2)", "(-<a>)", "abs(<a>)", "np.maximum(<a>, <b>)",
            "np.where(<a> > 0, <a>, <b>)", "(<a> > <b>)", "(<a> == <b>)", "<a>.astype('float64')", "<a>.astype(np.float32)",
            "<a>.sum(axis=0)", "<a>.max(axis=-1, keepdims=True)", "<a>[:1]", "<a>[..., ::-1]", "<a>[0]", "<a>.T", "<a>[None]",
            "np.zeros_like(<a>)", "np.ones(3)", "<a>.reshape(-1)", "helper(<a>, <b>)", "scale(<a>)", "obj.apply(<a>)", "obj(<a>)",
            "Thing.make(<a>)", "obj.less(<a>)", "np.minimum(<a>, 3)", "(<a> if <bool> else <b>)", "np.asarray(<a>)",
            "sum([<a>, <b>])", "functools.reduce(operator.add, [<a>, <b>])", "helper(<a>, *(<b>, 2), w=<int>)",
            "helper(**{'a': <a>, 'q': <b>})", "(lambda v, u=<b>: v + u)(<a>)", "np.stack([<a>, <a>])", "(<a> ** 2)",
            "np.full_like(<a>, 1)", "np.full_like(<a>, k)", "<a>[1:]", "np.concatenate([<a>, <a>])", "(G_ARRAY * <a>)",
            "pick(<bool>, <a>, <b>)", "np.broadcast_to(<a>, <a>.shape)", "(~(<a> > 0))", "np.expand_dims(<a>, 0)",
            "<a>.copy()", "functools.partial(helper, <a>)(<b>)", "next(iter([<a>]))", "[<a>, <b>][0]", "{'p': <a>}['p']",
            "(<a> + 1)", "(lambda w: w + w)(<a>)", "np.sum(<a>, axis=0)", "(<a>.mean(axis=0) * 0)" ,
        )  # fmt: skip

    def scalar(self, depth: int = 1) -> str:
        return self.fill(
            "scalar",
            depth,
            "<array>.sum()",
            "<array>.max()",
            "np.min(<array>)",
            "(<array>.sum() + 1)",
            "<array>.any()",
            "<array>.ravel()[0]",
            "(2 * <array>.min())",
        )

    def list_(self, depth: int = 2) -> str:
        if depth <= 0 or self.chance(0.4):
            return "(%s)" % self.fill("list", depth, self.var("list"), self.var("list"), "[<int>, <int>]", "items", "obj.parts")
        return "(%s)" % self.fill("list", depth,
            "[<int>, <any>]", "[<int> for _ in range(<int> % 4)] + [1]",
            "[v * 2 for v in (1, 2, 3) if v != <int>]", "list(range(1, 4))", "[1, *<list>]",
            "(<list> + [<any>])", "<list>[::1]", "sorted([3, <int>])",
            "list(map(lambda v: v + 1, [<int>]))", "[i + j for i, j in zip([1, 2], [<int>, 4])]",
            "[i for i, _ in enumerate('ab', <int>)]", "list(reversed([1, <int>]))", "[<int>] * 2",
            "list(numbers(<int> % 5, 1)) + [2]", "list({'p': 1, **table}.values())", "[*{1: 2}.items()][0:1] + [1]",
        )  # fmt: skip

    def any_(self, depth: int = 1) -> str:
        kind = self.choose(
            "int", "float", "bool", "array", "array", "scalar", "list", "tuple", "dict", "str", "none", "point"
        )
        if kind == "tuple":
            return self.fill("any", depth, "(<any>, <any>)") if depth > 0 else "(1, 'a')"
        if kind == "dict":
            return self.fill("any", depth, "{'p': <any>, 3: <int>}") if depth > 0 else self.var("dict")
        if kind == "str":
            return self.fill(
                "any",
                depth,
                "'go'",
                "f'{k}-{flag!r:>6}'",
                "f'{s:.2f}'",
                "'a' + 'b'",
                "str(<int>)",
                "'-'.join(['a', 'b'])",
            )
        if kind == "none":
            return self.fill(
                "any",
                depth,
                "None",
                "flag",
                "items",
                "table",
                "obj",
                "G_LIST",
                "G_DICT['b']",
                "type(x)",
                "x.shape",
                "x.dtype",
            )
        if kind == "point":
            return self.fill("any", depth, "Point(<any>)") if depth > 0 else "Point(1, 2).q"
        if kind == "scalar":
            return self.scalar(max(depth - 1, 0))
        return {"int": self.int_, "float": self.float_, "bool": self.bool_, "array": self.array, "list": self.list_}[
            kind
        ](depth)

    # -- statements ------------------------------------------------------------------------------------------------
    def block(self, indent: int, size: int, depth: int) -> None:
        kept = {kind: list(names) for kind, names in self.names.items()}
        for _ in range(size):
            self.statement(indent, depth)
        self.names = kept  # what a branch defines may not be defined after it

    def put(self, indent: int, text: str) -> None:
        self.lines.append("    " * indent + text)

    def assign(self, indent: int) -> None:
        kind = self.choose("array", "array", "array", "int", "float", "bool", "list")
        value = {"array": self.array, "int": self.int_, "float": self.float_, "bool": self.bool_, "list": self.list_}[
            kind
        ]()
        if kind == "list":
            value = f"list({value})"
        reuse = self.chance(0.3)
        own = [n for n in self.names[kind] if n.isidentifier() and n not in ("x", "y", "k", "s", "flag", "items")]
        name = self.random.choice(own) if reuse and own else self.fresh(kind[0])
        if self.chance(0.05):
            value = f"({self.fresh('w')} := {value})"
        self.put(indent, f"{name} = {value}")
        if name not in self.names[kind]:
            self.names[kind].append(name)

    def augment(self, indent: int) -> None:
        kind = self.choose("array", "array", "int", "float", "list")
        own = [n for n in self.names[kind] if n not in ("x", "y", "items")]
        if not own:
            return self.assign(indent)
        name = self.random.choice(own)
        if kind == "list":
            self.put(indent, f"{name} += [{self.any_(1)}]")
        elif kind == "array":
            sign, value = self.choose("+", "-", "*"), self.choose(self.int_, self.array, self.float_)(1)
            self.put(indent, f"{name} = {name} + 0")
            alias = self.fresh("a")
            self.put(indent, f"{alias} = {name}")
            self.put(indent, f"{name} {sign}= {value}")
            self.names["array"].append(alias)
        else:
            self.put(
                indent,
                f"{name} {self.choose('+', '-', '*')}= {self.choose(self.int_, self.int_, self.float_ if kind == 'float' else self.int_)(1)}",
            )

    def statement(self, indent: int, depth: int) -> None:
        pick = self.random.random()
        if pick < 0.42 or (depth <= 0 and pick < 0.7):
            self.assign(indent)
        elif pick < 0.52:
            self.augment(indent)
        elif pick < 0.62 and depth > 0:
            self.put(indent, f"if {self.bool_()}:")
            self.block(indent + 1, self.random.randint(1, 2), depth - 1)
            if self.chance(0.15):
                self.put(indent + 1, f"return {self.any_(2)}")
            if self.chance(0.3):
                self.put(indent, f"elif {self.bool_()}:")
                self.block(indent + 1, 1, depth - 1)
            if self.chance(0.5):
                self.put(indent, "else:")
                self.block(indent + 1, self.random.randint(1, 2), depth - 1)
        elif pick < 0.72 and depth > 0:
            self.loop(indent, depth)
        elif pick < 0.8:
            self.containers(indent)
        elif pick < 0.88:
            self.inner_function(indent)
        elif pick < 0.9:
            self.put(indent, "try:")
            self.block(indent + 1, 1, depth - 1)
            self.put(indent, self.choose("except ValueError:", "except Exception:", "finally:"))
            self.put(indent + 1, "pass")
        elif pick < 0.92:
            self.put(indent, f"G_STATE = {self.any_(1)}")
        elif pick < 0.92 + self.risky * 2:
            self.put(indent, self.choose(
                "print('here', k)", "x += 1", "x[0] = 1", "items.append(1)", "obj.v = 2.5", f"assert {self.bool_()}, 'no'",
                f"raise ValueError('told', {self.int_(0)})", "y *= 2", "table['new'] = x", "x = np.ones(2) + np.ones(3)", "k = undefined",
                "G_LIST.append(1)", "obj.n += 1", "k = [1][3]", "k = 1 // 0", "a, b = (1, 2, 3)", "y = x.nothing", "import math as m",
                "k = int(x.sum())", "y = x[x > 0]", "del obj.v", "s = 1 / (s * 0)", f"if {self.array(1)}.sum() > 0:\n{'    ' * (indent + 1)}k = 1",
            ))  # fmt: skip
        else:
            self.assign(indent)

    def loop(self, indent: int, depth: int) -> None:
        if self.loops >= 2:
            return self.assign(indent)
        self.loops += 1
        kept = {kind: list(names) for kind, names in self.names.items()}
        form = self.random.randint(0, 6)
        i = self.fresh("i")
        if form == 0:
            self.put(indent, f"for {i} in range({self.int_(1)} % 4):")
            self.names["int"].append(i)
        elif form == 1:
            self.put(indent, f"for {i} in [{self.array(0)}, {self.array(1)}]:")
            self.names["array"].append(i)
        elif form == 2:
            v = self.fresh("v")
            self.put(indent, f"for {i}, {v} in enumerate((x, y, {self.array(1)})):")
            self.names["int"].append(i), self.names["array"].append(v)
        elif form == 3:
            v = self.fresh("v")
            self.put(indent, f"for {i}, {v} in zip([1, 2, 3], [{self.array(0)}, 2.0]):")
            self.names["int"].append(i)
        elif form == 4:
            self.put(indent, f"{i} = 3")
            self.put(indent, f"while {i} > 0:")
            self.put(indent + 1, f"{i} -= 1")
        elif form == 5:
            self.put(indent, f"for {i} in numbers({self.int_(0)} % 5, {self.array(1)}):")
            self.names["array"].append(i)
        else:
            self.put(indent, f"for {i} in table:")
        self.block(indent + 1, self.random.randint(1, 3), depth - 1)
        if self.chance(0.2):
            self.put(indent + 1, f"if {self.bool_()}:")
            self.put(indent + 2, self.choose("break", "continue", "continue", f"return {self.any_(1)}"))
            self.assign(indent + 1)
        self.names = kept
        if self.chance(0.2):
            self.put(indent, "else:")
            self.block(indent + 1, 1, 0)
        self.loops -= 1

    def containers(self, indent: int) -> None:
        form = self.random.randint(0, 11)
        a, b = self.fresh("a"), self.fresh("a")
        if form == 0:
            self.put(indent, f"{a}, {b} = {self.array()}, {self.array()}")
            self.put(indent, f"{a}, {b} = {b}, {a}")
            self.names["array"] += [a, b]
        elif form == 1:
            l = self.fresh("l")
            self.put(indent, f"{a}, *{l} = [{self.array()}, 1, {self.any_(1)}]")
            self.names["array"].append(a)
        elif form == 2:
            l = self.fresh("l")
            self.put(indent, f"{l} = [{self.int_(1)}]")
            self.put(indent, f"{l}.append({self.any_(1)})")
            self.put(indent, f"{l}.{self.choose('reverse()', 'pop()', 'insert(0, 1)', 'extend([1, 2])')}")
            self.put(indent, f"{l} = [1] + {l}")
            self.names["list"].append(l)
        elif form == 3:
            d = self.fresh("d")
            self.put(indent, f"{d} = {{'p': {self.array()}, 'q': {self.any_(1)}}}")
            self.put(indent, f"{d}[{self.choose(repr('p'), repr('r'), 'k')}] = {self.any_(1)}")
            self.put(
                indent,
                self.choose(
                    f"{d}.pop('q')",
                    f"{d}.update(z={self.int_(0)})",
                    f"{d} |= {{'t': 1}}",
                    f"del {d}['q']",
                    f"{d}.setdefault('u', [])",
                ),
            )
            self.names["dict"].append(d)
        elif form == 4:
            self.put(indent, f"{a} = [{self.array()}, {self.array()}]")
            self.put(indent, f"{a}[{self.choose('0', '-1', '1')}] = {self.array()}")
            self.put(indent, f"{b} = {a}[0] + {a}[1]")
            self.names["array"].append(b)
        elif form == 5:
            self.put(indent, f"{a} = Point({self.array()}, q={self.array()})")
            self.put(indent, f"{b} = {a}.p + {a}[1]")
            self.names["array"].append(b)
        elif form == 6:
            self.put(indent, f"{a} = [v + {self.int_(1)} for v in (x, {self.array(1)}) if {self.bool_(1)}] or [x]")
            self.put(indent, f"{b} = {a}[0]")
            self.names["array"].append(b)
        elif form == 7:
            self.put(indent, f"{a} = {{n: v for n, v in zip('ab', ({self.array(1)}, {self.array(1)}))}}")
            self.put(indent, f"{b} = {a}['b']")
            self.names["array"].append(b), self.names["dict"].append(a)
        elif form == 8:
            self.put(indent, f"{a} = items[0] + {self.int_(0)}")
            self.put(indent, f"{b} = table['a'] + {self.float_(0)}")
            self.names["array"] += [a]
        elif form == 9:
            self.put(indent, f"{a} = {self.array()}")
            self.put(indent, f"{b} = {a}")
            self.put(indent, f"del {a}")
            self.names["array"].append(b)
        elif form == 10:
            self.put(indent, f"{a} = {self.array()} + 0")
            self.put(indent, f"{b} = [{a}, {{'k': {a}}}]")
            self.put(indent, f"{a} += {self.int_(0)}")
            self.put(indent, f"{a} = {b}[1]['k']")
            self.names["array"].append(a)
        else:
            self.put(indent, f"{a}, {b} = getattr(obj, 'v'), getattr(obj, 'zz', {self.int_(0)})")
            self.names["float"].append(a), self.names["int"].append(b)

    def inner_function(self, indent: int) -> None:
        g, r = self.fresh("g"), self.fresh("a")
        form = self.random.randint(0, 5)
        if form == 0:
            self.put(indent, f"{g} = lambda v, u={self.any_(0)}: v + {self.array(1)}")
            self.put(indent, f"{r} = {g}({self.array(1)})")
        elif form == 1:
            t = self.fresh("i")
            self.put(indent, f"{t} = {self.int_(1)}")
            self.put(indent, f"def {g}(v, n=2):")
            self.put(indent + 1, f"nonlocal {t}")
            self.put(indent + 1, f"{t} += n")
            self.put(indent + 1, f"return v * {t}")
            self.put(indent, f"{r} = {g}({self.array(1)}) + {g}({self.array(1)}, {self.int_(0)})")
            self.put(indent, f"{r} = {r} + {t}")
        elif form == 2:
            self.put(indent, f"def {g}(v, n):")
            self.put(indent + 1, f"return v if n <= 0 else {g}(v + {self.int_(0)}, n - 1)")
            self.put(indent, f"{r} = {g}({self.array(1)}, {self.int_(0)} % 4)")
        elif form == 3:
            self.put(indent, f"{g} = [lambda v, i=i: v + i * {self.int_(0)} for i in range(3)]")
            self.put(indent, f"{r} = {g}[0]({self.array(1)}) + {g}[-1]({self.array(1)})")
        elif form == 4:
            self.put(indent, f"{g} = [(lambda v: v + i) for i in range(2)] + [(lambda v: v - i) for i in range(4)]")
            self.put(indent, f"{r} = {g}[0]({self.array(1)}) + {g}[-1]({self.array(1)})")
        else:
            c = self.fresh("a")
            self.put(indent, f"{c} = {self.array(1)} + 0")
            self.put(indent, f"def {g}(*v, **o):")
            self.put(indent + 1, f"nonlocal {c}")
            self.put(indent + 1, f"{c} = {c} + v[0] * o.get('w', 1)")
            self.put(indent + 1, "return v[-1]")
            self.put(indent, f"{r} = {g}({self.int_(0)}, {self.array(1)}, {self.choose('w=2', 'z=1')})")
            self.put(indent, f"{r} = {r} + {c}")
        self.names["array"].append(r)


def program(random: Random, risky: float = 0.02) -> str:
    """The text of a random module."""
    w = Writer(random, risky=risky)
    w.names = {
        "array": ["x", "y"], "int": ["k"], "float": ["s"], "bool": ["(flag is None)"], "list": ["items"], "dict": ["table"],
    }  # fmt: skip
    stores = w.chance(0.2)
    w.put(0, "def f(x, y, k=2, s=0.5, flag=None, items=(), table=None, obj=None):")
    if stores:
        w.put(1, "global G_STATE")
    for _ in range(random.randint(2, 8)):
        w.statement(1, 2)
    triple, row = f"({w.array()}, {w.any_(2)}, {w.array()})", f"[{w.array()}, {w.var('array')}, {w.var('array')}]"
    w.put(1, f"return {w.choose(w.any_(2), triple, row)}")
    text = "\n".join(w.lines)
    return textwrap.dedent(PRELUDE) + "\n\n" + text + "\n"


def namespace(source: str, name: str) -> dict[str, Any]:
    """Runs the module; its lines can be found by tracebacks and by capture."""
    linecache.cache[name] = (len(source), None, source.splitlines(True), name)
    space: dict[str, Any] = {"__name__": "program"}
    exec(compile(source, name, "exec"), space)
    return space


def arguments(seed: int, space: dict[str, Any]) -> list[Any]:
    """Arguments of one call, the same for the same seed."""
    random = Random(seed)
    n, m = random.choice([(2, 3), (2, 3), (4, 3), (1, 3), (5, 2), (0, 3), (3, 3)])

    def array() -> np.ndarray:
        shape = random.choice([(n, m), (n, m), (n, m), (m,), (n, 1), (1, m), ()])
        size = int(np.prod(shape))
        values = np.array([random.choice([-2, -1, 0, 0.5, 1, 2, 3]) for _ in range(size)]).reshape(shape)
        value = (
            values.astype(random.choice(ARRAY_DTYPES))
            if values.min(initial=0) >= 0
            else values.astype(random.choice(ARRAY_DTYPES[:5]))
        )
        return value if random.random() < 0.8 else np.asfortranarray(value)

    x, y = array(), array()
    k = random.choice([1, 2, 2, 3, 0, -1, True])
    s = random.choice([0.5, 0.5, 2.0, -1.5, 0.0, -0.0, 1])
    flag = random.choice([None, True, False, "go", 0, 1.5])
    items = [array(), random.choice([1, 2]), "s"]
    table = {"a": random.choice([1, 2.5]), "b": array()}
    obj = space["Thing"](random.choice([0.5, 2.0, 1]), random.choice([2, 3]))
    if random.random() < 0.1:
        y = x
    return [x, y, k, s, flag, items, table, obj]


def state(args: list[Any], space: dict[str, Any]) -> Any:
    """What a call may have changed: arguments, objects, globals."""
    obj = args[-1]
    return [
        *args[:-1],
        vars(obj),
        *(space.get(n, "deleted") for n in ("G_STATE", "G_INT", "G_FLOAT", "G_LIST", "G_DICT", "G_ARRAY")),
    ]


def plain(value: Any) -> Any:
    """A value with classes of the program itself replaced, so that those of two runs of the module compare."""
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return (type(value).__name__, *(plain(v) for v in value))
    if isinstance(value, list | tuple):
        return type(value)(plain(v) for v in value)
    if isinstance(value, dict):
        return {key: plain(v) for key, v in value.items()}
    if type(value).__name__ == "Thing":
        return {"thing": plain(vars(value))}
    if callable(value) and not isinstance(value, type):
        return "callable"
    return value


def identities(value: Any) -> list[Any]:
    """For each mutable object in ``value``, in order: the number of its first occurrence; for arrays whose memory too."""
    seen: dict[int, int] = {}
    arrays: list[np.ndarray] = []
    found: list[Any] = []

    def visit(item: Any) -> None:
        if isinstance(item, np.ndarray):
            found.append(seen.setdefault(id(item), len(seen)))
            found.append([np.shares_memory(item, other) for other in arrays[:12]])
            arrays.append(item)
        elif isinstance(item, list | dict) or type(item).__name__ == "Thing":
            found.append(seen.setdefault(id(item), len(seen)))
            for inner in item if isinstance(item, list) else item.values() if isinstance(item, dict) else ():
                visit(inner)
        elif isinstance(item, tuple):
            for inner in item:
                visit(inner)

    visit(value)
    return found


__all__ = ["arguments", "identities", "namespace", "plain", "program", "state"]
