"""Random Python programs of all of the language, as source text.

Input: a seed.
Output: ``program(random)`` returns a module: helper functions, generators, classes, and a function ``f``. ``arguments``
makes the arguments of a call.
Why: hand-written tests miss combinations.

The function is ``f(x, y, m, k, s, flag, name, items, table, obj, *rest, w, **more)``, with nested control flow,
exceptions, context managers, closures, mutations of its arguments, and small array work in between. Loops and recursion
are bounded, lists and numbers stay short. Programs may raise anywhere; about half of the calls do not.
"""

from __future__ import annotations

import contextlib
import linecache
import re
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import accumulate
from random import Random
from typing import Any

import numpy as np

from .language_grammar import (
    AWAITS,
    BREAKS,
    EXPRESSIONS,
    LEAVES,
    NUMBER_BREAKS,
    STATEMENTS,
    WILD,
    WILD_SECTIONS,
    YIELDS,
)  # fmt: skip
from .language_world import WORLD

KINDS = tuple(kind for kind in LEAVES if kind != "none")
DTYPES = ("f8", "f8", "f8", "f4", "i8", "i8", "i4", "u1", "?", "f8", "f8", "i8", "f2", "c16")
NAME = "<program>"  # the file name of programs
GLOBALS = "G_INT, G_STATE, G_VEC"  # what every function may assign to

_MAIN_ONLY = re.compile(r"\b(y|m|s|flag|name|items|table|obj)\b")
_NESTED = re.compile("<(block|loop|def_|class)")
_HOLE = re.compile(r"<(\w+)([!.=?]?)(\w?)>")
_MAIN = {
    "vec": ["x", "y"], "mat": ["m"], "int": ["k"], "float": ["s"], "str": ["name"], "vecs": ["items"], "tab": ["table"],
    "box": ["obj"],
}  # fmt: skip
_HELPER = {"vec": ["x"], "int": ["k"]}
_GLOBAL = {"vec": ["G_VEC"], "int": ["G_INT"], "ints": ["G_LIST"], "tab": ["G_DICT"]}


_ROWS = [
    (section, weight, text, not _MAIN_ONLY.search(text), not _NESTED.search(text))
    for section, rows in STATEMENTS.items() for weight, text in rows
]  # fmt: skip


def _fitting(table: dict[str, tuple[str, ...]], main: bool, calm: bool) -> dict[str, list[str]]:
    """The templates that may stand in ``f`` itself (``main``) or in a helper, in a calm program or in any."""
    found = {}
    for kind, texts in table.items():
        fit = [text for text in texts if main or not _MAIN_ONLY.search(text)]
        found[kind] = [text for text in fit if not (calm and WILD.search(text))] or fit
    return found


_EXPRESSIONS = {
    (main, calm): [_fitting(table, main, calm) for table in (LEAVES, EXPRESSIONS)]
    for main in (True, False)
    for calm in (True, False)
}


class Grammar:
    """The templates that one program uses: each leaves out many of them, so that rare things meet often in some.

    A ``calm`` program leaves out what breaks graphs or raises on purpose: most such are captured whole.
    """

    def __init__(self, random: Random, calm: bool) -> None:
        self.calm = calm
        share = random.choice((0.5, 0.7, 0.9, 1.0))
        sections = {section for section in STATEMENTS if section == "names" or random.random() < share}
        if calm:
            sections -= WILD_SECTIONS
        rows = [row for row in _ROWS if row[0] in sections and random.random() < share]
        if calm:
            rows = [row for row in rows if not WILD.search(row[2])]
        self.statements: dict[tuple[bool, bool], tuple[list[str], list[int]]] = {}
        for main in (True, False):
            for nested in (True, False):
                kept = [row for row in rows if (main or row[3]) and (nested or row[4])]
                self.statements[main, nested] = [row[2] for row in kept], list(accumulate(row[1] for row in kept))


class NoVariable(Exception):
    """A template needs a variable of a kind that there is none of."""


@dataclass
class Scope:
    """What may be said at one place of a function."""

    names: dict[str, list[str]]
    own: set[str]  # names that the function may assign to
    returns: str = "any"  # kind of the function's result; "yield" in generator functions
    main: bool = True
    loop: bool = False  # whether break and continue may stand here
    waits: bool = False  # whether it is a coroutine

    def inner(self, names: dict[str, list[str]], returns: str) -> Scope:
        """The scope of a function defined here."""
        seen = {kind: list(known) for kind, known in self.names.items()}
        for kind, new in names.items():
            seen.setdefault(kind, []).extend(new)
        return Scope(seen, {n for new in names.values() for n in new} | {"G_VEC", "G_INT"}, returns, self.main)


@dataclass
class Writer:
    """The program under construction."""

    random: Random
    grammar: Grammar
    breaks: float = 0.0  # how often an expression has a graph break around it
    lines: list[str] = field(default_factory=list)
    count: int = 0
    scope: Scope = field(default_factory=lambda: Scope({}, set()))

    def chance(self, p: float) -> bool:
        return self.random.random() < p

    def fresh(self, kind: str) -> str:
        self.count += 1
        return f"{kind[0] if kind != 'float' else 'r'}{self.count}"

    def put(self, indent: int, text: str) -> None:
        self.lines.append("    " * indent + text)

    # -- expressions -------------------------------------------------------------------------------------------------
    @property
    def expressions(self) -> list[dict[str, list[str]]]:
        """The templates of leaves and of other expressions that fit here."""
        return _EXPRESSIONS[self.scope.main, self.grammar.calm]

    def expression(self, kind: str, depth: int) -> str:
        """An expression of a kind."""
        if self.breaks and depth > 0 and kind in LEAVES and self.chance(self.breaks):
            own = NUMBER_BREAKS.get(kind)
            if own is not None and self.chance(0.5):
                return self.fill(self.random.choice(own), depth - 1)
            text = self.random.choice(BREAKS)
            return self.fill(text.replace("<it>", f"<{kind}>"), depth - 1)
        if kind in LEAVES:
            known = self.scope.names.get(kind)
            if known and self.chance(0.45 if depth > 0 else 0.7):
                return self.random.choice(known)
            if depth <= 0 or self.chance(0.15):
                return self.random.choice(self.expressions[0][kind])
        elif depth <= 0:
            if kind == "any":
                return self.expression(self.random.choice(KINDS), 0)
            if kind in ("cond", "shown"):
                return self.expression({"cond": "bool", "shown": "int"}[kind], 0)
        return self.fill(self.random.choice(self.expressions[1][kind]), depth - 1)

    def fill(self, template: str, depth: int) -> str:
        """An expression template, filled."""
        temporary: list[tuple[str, str]] = []
        text = self.line(template, depth, {}, temporary)
        for kind, name in temporary:
            self.scope.names[kind].remove(name)
        return text

    def line(self, template: str, depth: int, tags: dict[str, str], temporary: list[tuple[str, str]]) -> str:
        """One line or expression, filled; its new names are known after it."""
        new: list[tuple[str, str]] = []

        def hole(match: re.Match[str]) -> str:
            kind, sign, tag = match.groups()
            names = self.scope.names
            if sign == "!":
                name = tags.setdefault(tag, "") or self.fresh(kind)
                tags[tag] = name
                new.append((kind, name))
                return name
            if sign == "?":
                name = tags[tag] = self.fresh(kind)
                names.setdefault(kind, []).append(name)
                temporary.append((kind, name))
                return ""
            if sign:
                known = names.get(kind, ())
                if sign == "=":
                    known = [name for name in known if name in self.scope.own]
                if not known and sign == "=":
                    raise NoVariable(kind)
                return self.random.choice(known or self.expressions[0][kind])
            if len(kind) == 1:
                return tags.get(kind) or tags.setdefault(kind, self.fresh("_"))
            return self.expression(kind, depth)

        text = _HOLE.sub(hole, template)
        for kind, name in new:
            known = self.scope.names.setdefault(kind, [])
            if name not in known:
                known.append(name)
            self.scope.own.add(name)
        return text

    # -- statements ----------------------------------------------------------------------------------------------------
    def statement(self, indent: int, depth: int) -> None:
        """One statement."""
        texts, weights = self.grammar.statements[self.scope.main, depth > 0]
        while True:
            template = texts[self.random.choices(range(len(texts)), cum_weights=weights)[0]]
            start, kept = len(self.lines), {kind: list(names) for kind, names in self.scope.names.items()}
            try:
                return self.compound(indent, depth, template)
            except NoVariable:
                del self.lines[start:]
                self.scope.names = kept

    def compound(self, indent: int, depth: int, template: str) -> None:
        """A statement's template, filled."""
        if template.startswith(("<def_", "<class")):
            return getattr(self, template[1:-1])(indent)
        tags: dict[str, str] = {}
        rows = template.split("\n")
        for row in rows:
            text = row.lstrip(" ")
            inner = indent + (len(row) - len(text)) // 4
            if text in ("<block>", "<loop>"):
                self.block(inner, depth - 1, text == "<loop>")
            else:
                self.put(inner, self.line(text, self.random.choice((1, 1, 2, 2, 3)), tags, []))

    def block(self, indent: int, depth: int, loop: bool = False, size: int = 0) -> None:
        """Some statements; the names that they define are forgotten, most of the time."""
        scope = self.scope
        kept, was = {kind: list(names) for kind, names in scope.names.items()}, scope.loop
        scope.loop = loop or scope.loop
        for _ in range(size or self.random.choice((1, 1, 2, 2, 3))):
            self.statement(indent, depth)
            self.suspension(indent)
        if scope.loop and self.chance(0.25):
            what = self.random.choice(("break", "continue", "break", "continue", "return"))
            if what == "return":
                what = self.returning()
            if self.chance(0.6):
                self.compound(indent, 0, "if <cond>:")
                indent += 1
            self.put(indent, what)
        elif self.chance(0.05):
            self.put(indent, self.returning())
        if not self.chance(0.03):
            scope.names = kept
        scope.loop = was

    def suspension(self, indent: int) -> None:
        """Now and then, a statement that only generators or only coroutines may have."""
        if self.scope.returns == "yield" and self.chance(0.35):
            self.compound(indent, 1, self.random.choice(YIELDS))
        elif self.scope.waits and self.chance(0.3):
            self.compound(indent, 1, self.random.choice(AWAITS))

    def returning(self) -> str:
        """A return statement."""
        returns = self.scope.returns
        return "return" if returns == "yield" else f"return {self.expression(returns, 2)}"

    @contextlib.contextmanager
    def function(self, names: dict[str, list[str]], returns: str, module: bool = False) -> Iterator[None]:
        """Writes the body of a function with these parameters."""
        outer = self.scope
        if module:
            known = {kind: list(found) for kind, found in _GLOBAL.items()}
            known["fun"], known["gen"] = list(outer.names.get("fun", ())), list(outer.names.get("gen", ()))
            self.scope = Scope(known, set(), returns, main=False).inner(names, returns)
        else:
            self.scope = outer.inner(names, returns)
        try:
            yield
        finally:
            self.scope = outer

    def body(self, indent: int, depth: int, size: int) -> None:
        """A function's statements, without its return."""
        self.put(indent, f"global {GLOBALS}")
        for _ in range(size):
            self.statement(indent, depth)
            self.suspension(indent)

    def define(self, kind: str, name: str) -> None:
        """Makes a name known."""
        self.scope.names.setdefault(kind, []).append(name)

    def def_vec(self, indent: int, module: bool = False) -> None:
        """A function of a vector."""
        g = self.fresh("h" if module else "fun")
        v, n = ("x", "k") if module else (self.fresh("vec"), self.fresh("int"))
        default = self.expression("int", 0) if not module else "2"
        self.put(indent, f"def {g}({v}, {n}={default}, *rest, w=1, **more):")
        with self.function({"vec": [v], "int": [n, "w"]}, "vec", module):
            self.body(indent + 1, 1, self.random.randint(1, 3 if module else 2))
            self.put(indent + 1, self.returning())
        self.define("fun", g)
        if not module:
            how = self.random.choice(("<vec>", "<vec>, <int>", "<vec>, w=<int>", "*[<vec>, 1, 2], z=<int>"))
            self.compound(indent, 0, f"<vec!a> = {g}({how})")

    def def_nonlocal(self, indent: int) -> None:
        """A function that assigns to variables of the one around it."""
        g, v = self.fresh("fun"), self.fresh("vec")
        kinds = {name: kind for kind, names in self.scope.names.items() for name in names}
        own = sorted(name for name in self.scope.own if name in kinds and not name.startswith("G_"))
        if not own:
            raise NoVariable("own")
        changed = self.random.sample(own, min(len(own), 2))
        self.put(indent, f"def {g}({v}):")
        with self.function({"vec": [v]}, "vec"):
            self.scope.own |= set(changed)
            self.put(indent + 1, f"nonlocal {', '.join(changed)}")
            self.body(indent + 1, 1, self.random.randint(1, 2))
            self.put(indent + 1, f"{changed[0]} = {self.expression(kinds[changed[0]], 1)}")
            self.put(indent + 1, self.returning())
        self.define("fun", g)
        how = (f"<vec!a> = {g}(<vec>)", f"<vec!a> = {g}({g}(<vec>))", f"<vecs!a> = list(map({g}, <vecs>))")
        self.compound(indent, 0, self.random.choice(how))

    def def_gen(self, indent: int, module: bool = False) -> None:
        """A generator function of (vec, int)."""
        g, v, n = self.fresh("gen"), self.fresh("vec") if not module else "x", self.fresh("int") if not module else "k"
        self.put(indent, f"def {g}({v}, {n}=2, *rest, w=1, **more):")
        with self.function({"vec": [v], "int": [n]}, "yield", module):
            self.body(indent + 1, 1, self.random.randint(0, 2))
            self.put(indent + 1, f"for i in range(min({n}, 3)):")
            self.put(indent + 2, f"yield {v} + i")
            if self.chance(0.4):
                self.block(indent + 2, 0, loop=True, size=1)
            if self.chance(0.3):
                self.put(indent + 1, f"return {self.expression('any', 1)}")
        self.define("gen", g)

    def def_recursive(self, indent: int) -> None:
        """A function that calls itself."""
        g, v, n = self.fresh("fun"), self.fresh("vec"), self.fresh("int")
        self.put(indent, f"def {g}({v}, {n}):")
        with self.function({"vec": [v]}, "vec"):
            self.put(indent + 1, f"if {n} <= 0:")
            self.put(indent + 2, self.returning())
            self.body(indent + 1, 0, 1)
            self.put(indent + 1, f"return {g}({self.expression('vec', 1)}, {n} - 1) + 1")
        self.compound(indent, 0, f"<vec!a> = {g}(<vec>, <int> % 4)")

    def def_many(self, indent: int) -> None:
        """A function with parameters of every kind."""
        g = self.fresh("many")
        a, b, c, d, e, o = (self.fresh(kind) for kind in ("vec", "int", "int", "tup", "int", "tab"))
        first, second = self.expression("int", 0), self.expression("int", 0)
        self.put(indent, f"def {g}({a}, /, {b}, {c}={first}, *{d}, {e}={second}, **{o}):")
        with self.function({"vec": [a], "int": [b, c, e], "tab": [o]}, "any"):
            self.body(indent + 1, 1, 1)
            self.put(indent + 1, f"return {a} + {b} + {c} + {e} + len({d}) + len({o})")
        how = (
            "<vec>, <int>", f"<vec>, {b}=<int>, q=<any>", "<vec>, *<ints>", f"<vec>, 1, 2, *<ints>, {e}=<int>, **<tab>",
            "*<vecs>, **<tab>", "<vec>",
        )  # fmt: skip
        self.compound(indent, 0, f"<any!a> = {g}({self.random.choice(how)})")

    def class_(self, indent: int) -> None:
        """A class of its own, and an object of it."""
        name = self.fresh("Class")
        v, n = self.fresh("vec"), self.fresh("int")
        self.put(indent, f"class {name}({self.random.choice(('Box', 'Deep', 'Box'))}):")
        self.put(indent + 1, f"rate = {self.random.randint(0, 3)}")
        self.put(indent + 1, f"def apply(self, {v}, {n}=1):")
        with self.function({"vec": [v], "int": [n]}, "vec"):
            self.body(indent + 2, 1, self.random.randint(0, 2))
            self.put(indent + 2, f"return super().apply({v}, {n})")
        if self.chance(0.5):
            self.put(indent + 1, "@property")
            self.put(indent + 1, "def double(self):")
            self.put(indent + 2, "self.n += 1")
            self.put(indent + 2, "return super().double + self.n")
        self.compound(indent, 0, f"<box!a> = {name}(<float>, <int>)")


def program(random: Random) -> str:
    """The text of a random module that compiles."""
    while True:
        text = _write(random)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", SyntaxWarning)
                compile(text, NAME, "exec")
        except SyntaxError:  # an assignment expression where none may stand
            continue
        return text


def _write(random: Random) -> str:
    calm = random.random() < 0.3
    breaks = 0.0 if calm else random.choice((0.0, 0.02, 0.05, 0.1, 0.25))
    w = Writer(random, Grammar(random, calm), breaks)
    for _ in range(random.choice((0, 0, 1, 1, 2))):
        w.scope.main = False
        random.choice((w.def_vec, w.def_vec, w.def_gen))(0, module=True)
        w.lines.append("")
    generator = w.chance(0.04)
    names = {kind: list(found) for kind, found in _MAIN.items()}
    for kind in ("fun", "gen"):
        names.setdefault(kind, []).extend(w.scope.names.get(kind, ()))
    own = {name for found in _MAIN.values() for name in found} | {"G_VEC", "G_INT"}
    for kind, found in _GLOBAL.items():
        names.setdefault(kind, []).extend(found)
    returns = "yield" if generator else "any"
    w.scope = Scope(names, own, returns, waits=not generator and w.chance(0.03 if not calm else 0))
    start = "async def" if w.scope.waits else "def"
    parameters = "x, y, m, k=2, s=0.5, flag=None, name='a', items=(), table=None, obj=None, *rest, w=1, **more"
    w.put(0, f"{start} f({parameters}):")
    w.body(1, 2, random.choice((1, 2, 3, 3, 4, 5, 7)))
    result = [w.expression("any", 2)]
    for kind in ("vec", random.choice(list(w.scope.names))):
        result += w.scope.names[kind][-1:]
    w.put(1, "yield x" if generator else f"return {', '.join(result)}")
    return "\n".join(w.lines) + "\n"


def namespace(source: str) -> dict[str, Any]:
    """Runs a program; its lines can be found by tracebacks and by capture."""
    linecache.cache[NAME] = (len(source), None, source.splitlines(True), NAME)
    space: dict[str, Any] = {
        **WORLD, "__name__": "program", "LOG": [], "G_INT": 3, "G_FLOAT": 0.5, "G_FLAG": True, "G_NAME": "a",
        "G_STATE": None,
        "G_LIST": [1, 2], "G_DICT": {"a": 2, "b": 1}, "G_VEC": np.array(1.0),
    }  # fmt: skip
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SyntaxWarning)
        exec(compile(source, NAME, "exec"), space)
    return space


def state(space: dict[str, Any]) -> dict[str, Any]:
    """What a program's calls may have changed besides their arguments."""
    box, deep = WORLD["Box"], WORLD["Deep"]
    return {
        **{name: space.get(name, "deleted") for name in ("LOG", "G_INT", "G_STATE", "G_LIST", "G_DICT", "G_VEC")},
        "classes": (box.made, box.rate, vars(deep).get("made"), WORLD["gather"].__defaults__[0]),
    }


def arguments(seed: int) -> tuple[list[Any], dict[str, Any], dict[str, Any]]:
    """What one call gets, the same for the same seed: positional arguments, keywords, and globals that are set before.

    Some share memory or are one object.
    """
    random = Random(seed)
    n = random.choice((3, 3, 3, 4, 2, 5, 1, 0))

    def array(*shape: int) -> np.ndarray:
        size = int(np.prod(shape))
        dtype = random.choice(DTYPES)
        values = [random.choice((-2, -1, 0, 0.5, 1, 2, 3) if dtype[0] != "u" else (0, 1, 2, 3)) for _ in range(size)]
        return np.array(values, "f8").reshape(shape).astype(dtype)

    m = array(2, n)
    x, y = array(n), array(n)
    form = random.random()
    if form < 0.1:
        y = x
    elif form < 0.15:
        y = x[::-1]
    elif form < 0.25:
        x, y = m[0], m[1]
    elif form < 0.3:
        x = m[1]
    elif form < 0.4:
        m = np.asfortranarray(m)
    elif form < 0.5:
        x = array(2 * n)[::2]
    elif form < 0.52:
        y.flags.writeable = False
    items: Any = random.choice(([x, y], [array(n), array(n)], [array(n)], [x, x, y], [array(n), x, 1]))
    table: dict[str, Any] = {"a": random.choice((1, 2.5, 3)), "b": array(n)}
    box = WORLD["Deep"] if random.random() < 0.3 else WORLD["Box"]
    obj = box(random.choice((0.5, 2.0, 1)), random.choice((2, 3)))
    if random.random() < 0.2:
        table["items"] = items
    if random.random() < 0.2:
        obj.v = table["b"]
    k = random.choice((1, 2, 2, 3, 0, -1, 7, True))
    s = random.choice((0.5, 0.5, 2.0, -1.5, 0.0, -0.0, 1, 0.25))
    flag = random.choice((None, None, True, False, "go", 0, x))
    args = [x, y, m, k, s, flag, random.choice(("a", "a", "bc", "")), items, table, obj]
    more: dict[str, Any] = {}
    if random.random() < 0.2:
        args += [1, x][: random.choice((1, 2))]
    elif random.random() < 0.3:
        more = {"name": args[6], "items": items, "obj": obj, "table": table}
        del args[6:]
    if random.random() < 0.2:
        more |= random.choice(({"w": 2}, {"z": 1}, {"w": 2.5, "z": x}))
    names: dict[str, Any] = {"G_VEC": array(n)}
    if random.random() < 0.3:
        names["G_INT"] = random.choice((3, 4, 1))
    if random.random() < 0.1:
        names |= {"G_VEC": x, "G_LIST": random.choice(([1], [2, 3], items))}
    return args, more, names


__all__ = ["NAME", "arguments", "namespace", "program", "state"]
