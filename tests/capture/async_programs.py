"""Generates programs that others change while they run: a loop, a place where a flag lives, a setter, a reader.

Input: a ``Random``.
Output: the text of a module. ``f`` is the function to compile, ``put`` writes the flag, and
``twin`` is ``f`` with each read of the flag replaced by a comparison of the iteration number with ``k``. Why: what a
signal handler or another thread changes has to be seen by a running loop as plain Python sees it. The iteration at
which that happens is chance, so ``twin`` says what the result has to be, given that iteration.

A module holds, too:

- ``VALUES``: what the flag is set to, one after the other; ``HELD``: what reads of them give.
- ``SEEN``: the number of the first value that ends the loop; ``STOPS``: whether one does.
- ``SETTER``, ``DELAY``, ``GAP``: who sets them, and when.
- ``STEP``: by how much the iteration number grows.
- ``ending(f(...), limit)``: how the loop ended (0: by itself, 1: the flag was seen, 2: another exit), the iteration at
  which the flag had changed, and the state.
- ``LIMIT``: a bound that is a constant of the code, to be replaced by a number.
"""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
from typing import Any

from .lines import Lines

NEVER = 1 << 62
AFTER = 40  # iterations that follow where what has changed is data, or what the loop skips


@dataclass(frozen=True)
class Place:
    """Where the flag lives."""

    read: str
    put: str  # a statement that writes ``value``
    setup: tuple[str, ...] = ()  # lines of the module, in which OLD stands for the first value
    box: str = "None"  # what the function is passed for it
    kinds: tuple[str, ...] = ()  # of the values that it can hold; none: all
    setters: tuple[str, ...] = ()  # that reach it; none: all


CLASS = "class Box:"
TRUTHS = ("flag", "inverse")
NUMBERS = ("flag", "inverse", "phase", "level", "limit", "rate")

PLACES = {
    "global": Place("stop", "stop = value", ("stop = OLD",)),
    "closure": Place("stop", "stop = value"),
    "self": Place("self.stop", "runner.stop = value"),
    "attribute": Place("box.stop", "BOX.stop = value", (CLASS, "    pass", "BOX = Box()", "BOX.stop = OLD"), "BOX"),
    "global attribute": Place("BOX.stop", "BOX.stop = value", (CLASS, "    pass", "BOX = Box()", "BOX.stop = OLD")),
    "attribute of an attribute": Place(
        "box.inner.stop", "BOX.inner.stop = value",
        (CLASS, "    pass", "BOX = Box()", "BOX.inner = Box()", "BOX.inner.stop = OLD"), "BOX",
    ),
    "class attribute": Place("Box.stop", "Box.stop = value", (CLASS, "    stop = OLD")),
    "class attribute of an object": Place(
        "box.stop", "Box.stop = value", (CLASS, "    stop = OLD", "BOX = Box()"), "BOX"
    ),
    "slots": Place(
        "box.stop", "BOX.stop = value", (CLASS, "    __slots__ = ('stop',)", "BOX = Box()", "BOX.stop = OLD"), "BOX"
    ),
    "property": Place(
        "box.stop", "BOX.held = value",
        (CLASS, "    held = OLD", "    @property", "    def stop(self):", "        return self.held", "BOX = Box()"),
        "BOX",
    ),
    "namespace": Place("box.stop", "BOX.stop = value", ("BOX = types.SimpleNamespace(stop=OLD)",), "BOX"),
    "function attribute": Place("mark.stop", "mark.stop = value", ("def mark():", "    pass", "mark.stop = OLD")),
    "dict": Place("STATE['stop']", "STATE['stop'] = value", ("STATE = {'stop': OLD}",)),
    "dict argument": Place("box['stop']", "STATE['stop'] = value", ("STATE = {'stop': OLD}",), "STATE"),
    "dict get": Place("STATE.get('stop')", "STATE['stop'] = value", ("STATE = {'stop': OLD}",)),
    "dict in a dict": Place(
        "box['a']['stop']", "STATE['a']['stop'] = value", ("STATE = {'a': {'stop': OLD}}",), "STATE"
    ),
    "default": Place("state['stop']", "STATE['stop'] = value", ("STATE = {'stop': OLD}",)),
    "list": Place("STATE[0]", "STATE[0] = value", ("STATE = [OLD, 7]",)),
    "list argument": Place("box[-1]", "STATE[-1] = value", ("STATE = [7, OLD]",), "STATE"),
    "list length": Place(
        "(len(STATE) > 0)", "STATE[:] = [1] if value else []", ("STATE = [1] if OLD else []",), kinds=TRUTHS
    ),
    "deque": Place(
        "bool(STATE)", "STATE.append(1) if value else STATE.clear()", ("STATE = deque([1] if OLD else [])",),
        kinds=TRUTHS,
    ),
    "set": Place(
        "('stop' in STATE)", "STATE.add('stop') if value else STATE.clear()",
        ("STATE = {'stop'} if OLD else set()",), kinds=TRUTHS,
    ),
    "element": Place("STATE[1]", "STATE[1] = value", ("STATE = np.array([OLD] * 3)",), kinds=NUMBERS),
    "element argument": Place("box[0]", "STATE[0] = value", ("STATE = np.array([OLD] * 2)",), "STATE", kinds=NUMBERS),
    "module": Place(
        "settings.stop", "settings.stop = value", ("settings = types.ModuleType('settings')", "settings.stop = OLD")
    ),
    "event": Place(
        "EVENT.is_set()", "EVENT.set() if value else EVENT.clear()",
        ("EVENT = threading.Event()", "EVENT.set() if OLD else EVENT.clear()"), kinds=TRUTHS,
    ),
    "event argument": Place(
        "box.is_set()", "EVENT.set() if value else EVENT.clear()",
        ("EVENT = threading.Event()", "EVENT.set() if OLD else EVENT.clear()"), "EVENT", kinds=TRUTHS,
    ),
    "contextvar": Place(
        "VAR.get()", "VAR.set(value)", ("VAR = ContextVar('VAR', default=OLD)",), setters=("alarm", "alarms")
    ),
}  # fmt: skip


@dataclass(frozen=True)
class Kind:
    """What values the flag has, and which of them ends the loop."""

    values: str
    test: str  # of {0}, the flag
    steps: str  # more values on the way, for setters that set several


KINDS = {
    "flag": Kind("(False, True)", "{0}", "(False, True, False, True)"),
    "inverse": Kind("(True, False)", "not {0}", "(True, False, True, False)"),
    "phase": Kind("(1, 2)", "{0} == 2", "(0, 1, 2)"),
    "level": Kind("(0, 2)", "{0} == 2", "(0, 1, 0, 2)"),
    "text": Kind("('run', 'stop')", "{0} == 'stop'", "('run', 'pause', 'stop')"),
    "result": Kind("(None, 5.0)", "{0} is not None", "(None, 5.0)"),
    "limit": Kind("(1 << 60, 0)", "n >= {0}", "(1 << 60, 1 << 59, 0)"),
    "rate": Kind("(1.0, 3.0)", "{0} > 2.0", "(1.0, 1.5, 3.0)"),
    "array": Kind("(ONES, THREES)", "{0}[0] > 2.0", "(ONES, THREES)"),
}


@dataclass(frozen=True)
class Body:
    """What an iteration computes. Whatever it rounds, it rounds as NumPy and Python do."""

    before: tuple[str, ...]
    lines: tuple[str, ...]
    result: str
    exit: str  # a test that never holds
    arrays: bool = False
    module: tuple[str, ...] = ()


CHAIN = "s = math.sqrt(s + 1.5) / 1.25 + x[n % 8]"
BODIES = {
    "count": Body((), ("x[n % 3] += 1.0",), "x.copy()", "x[1] < 0.0"),
    "chain": Body(("s = 1.0",), (CHAIN,), "s", "s > 1e9"),
    "ints": Body(
        ("c = 1",), ("c = (c * 1103515245 + 12345) % 2147483648", "x[c % 8] += 0.5"), "c, x.copy()", "c < 0"
    ),
    "branches": Body(
        ("s = 1.0",), ("if x[n % 8] > s:", "    s = s / 0.75 + 0.25", "else:", "    s = math.sqrt(s) * 0.5"), "s",
        "s < 0.0",
    ),
    "inner": Body(
        (), ("for m in range(1, 7):", "    x[m] = 0.25 * x[m - 1] + 0.5 * x[m] + 0.25 * x[m + 1]", "x[0] += 0.001"),
        "x.copy()", "x[0] < 0.0",
    ),
    "append": Body(
        ("s = 1.0", "out = []"), (CHAIN, "if n % 16 == 0:", "    out.append(s)"), "s, out", "s > 1e9"
    ),
    "append each": Body(
        ("s = 1.0", "out = []"), (CHAIN, "s = s / 1.125 - math.sqrt(s) * 0.25", "out.append(s)"), "out", "s > 1e9"
    ),
    "attribute": Body(
        ("s = 1.0",), (CHAIN, "LOG.count += 1", "LOG.last = s"), "s, LOG.count, LOG.last", "s > 1e9",
        module=("class Log:", "    count = 0", "    last = 0.0", "LOG = Log()"),
    ),
    "draws": Body(
        ("rng = np.random.default_rng(7)", "s = 0.0"), ("s = s * 0.5 + rng.random()",), "s, rng.random()", "s > 1e9"
    ),
    "kernel": Body((), ("u = u * 0.5 + w",), "u.copy()", "u[0] > 1e9", True),
    "in place": Body((), ("u += w", "u *= 0.5"), "u.copy()", "u.max() > 1e9", True),
    "stencil": Body((), ("u[1:-1] = 0.5 * (u[:-2] + u[2:])", "u[0] += 0.001"), "u.copy()", "u[1] < 0.0", True),
    "diffusion": Body(
        ("v = u.copy()",), ("v[1:-1] += 0.125 * (v[2:] - 2.0 * v[1:-1] + v[:-2])",), "v", "v.max() > 1e9", True
    ),
    "swap": Body(("v = w.copy()",), ("u, v = v, u * 0.5 + 0.25 * v",), "u.copy(), v.copy()", "u[0] > 1e9", True),
    "product": Body(
        ("a = np.arange(16.0).reshape(4, 4)",), ("a = a @ TURN",), "a", "a[0, 0] > 1e9", True,
        module=("TURN = np.zeros((4, 4))", "TURN[[0, 1, 2, 3], [1, 2, 3, 0]] = 1.0, 1.0, -1.0, 1.0"),
    ),
    "maximum": Body(("s = 0.0",), ("u = u * 0.75 + w", "s = u.max()"), "s, u.copy()", "s > 1e9", True),
}  # fmt: skip


@dataclass(frozen=True)
class Loop:
    """How the iterations are counted."""

    head: tuple[str, ...]  # each line one level deeper; the iteration number is ``n``
    before: tuple[str, ...] = ()
    step: int = 1
    counts: bool = False  # ``n`` is a number that the loop carries
    stops: bool = True  # a break ends all of it
    arrays: bool | None = None  # only bodies of arrays, or only others
    extra: tuple[str, ...] = ()  # further lines of each iteration


ZERO = ("n = 0",)
LOOPS = {
    "for constant": Loop(("for n in range(LIMIT):",)),
    "for argument": Loop(("for n in range(limit):",)),
    "for start": Loop(("for n in range(2, limit + 2):",)),
    "for step": Loop(("for n in range(5, 3 * limit, 3):",), step=3),
    "for down": Loop(("for n in range(limit, 0, -1):",), step=-1),
    "for enumerate": Loop(
        ("for i in range(limit // 500 + 1):", "for j, e in enumerate(w):"), ZERO, counts=True, stops=False
    ),
    "while and": Loop(("while n < limit and not (TEST):",), ZERO, counts=True),
    "while not": Loop(("while not (TEST) and n < limit:",), ZERO, counts=True),
    "while": Loop(("while n < limit:",), ZERO, counts=True),
    "while true": Loop(("while True:",), ZERO, counts=True, extra=("n >= limit",)),
    "nested inner": Loop(
        ("for i in range(limit // 1000 + 1):", "for j in range(1000):"), ZERO, counts=True, stops=False
    ),
    "nested outer": Loop(("for i in range(limit // 40 + 1):", "for j in range(40):"), ZERO, counts=True),
    "nested both": Loop(("for i in range(limit // 1000 + 1):", "for j in range(1000):"), ZERO, counts=True),
    "elements": Loop(
        ("for i in range(limit // 500 + 1):", "for e in w:"), ZERO, counts=True, stops=False, arrays=False
    ),
    "rows": Loop(("for i in range(limit // 50 + 1):", "for row in GRID:"), ZERO, counts=True, stops=False, arrays=True),
    "generator": Loop(("for n in range(limit):",)),
    "comprehension": Loop(()),
    "sum": Loop(()),
}  # fmt: skip

READERS = (
    "break", "break", "return", "raise", "helper", "method", "late", "and", "or", "skip", "data", "marks", "caught",
    "conditional", "else", "match",
)  # fmt: skip
EXPRESSIONS = ("comprehension", "sum")  # loops that are no statements
COUNTING = ("skip", "data", "marks")  # readers after which some iterations follow
SETTERS = ("alarm", "alarm", "alarms", "timer", "thread", "threads")
HEADER = """\
import math
import threading
import types
from collections import deque
from contextvars import ContextVar

import numpy as np


class Stop(Exception):
    pass


ONES, THREES, GRID = np.ones(SIZE), np.full(SIZE, 3.0), np.arange(50.0 * SIZE).reshape(50, SIZE) % 7.0


def args():
    if "LOG" in globals():
        LOG.count, LOG.last = 0, 0.0
    return np.arange(8.0) * 0.25, np.linspace(0.0, 1.0, SIZE), np.linspace(1.0, 2.0, SIZE)

"""


class Writer(Lines):
    """Writes one program."""

    def __init__(self, random: Random, **chosen: str) -> None:
        super().__init__(random)
        self.depth = 0
        place_of = self._chosen("place", PLACES, chosen)
        self.place: Place = PLACES[place_of]
        loop_of = self._chosen("loop", LOOPS, chosen)
        self.loop = LOOPS[loop_of]
        alone = loop_of in (*EXPRESSIONS, "while and", "while not", "nested outer", "nested both", "generator")
        readers = READERS if self.loop.stops else [name for name in READERS if name not in COUNTING]
        reader = self.own(loop_of) if alone else self._chosen("reader", readers, chosen)
        bodies = [name for name, body in BODIES.items() if self.loop.arrays in (None, body.arrays)]
        if reader == "data":
            kinds: tuple[str, ...] = ("rate", "array")
        else:
            kinds = ("flag", "flag", "flag", "inverse", "phase", "text", "result", "limit")
        if reader == "marks":
            kinds = ("level",)
        kinds = tuple(kind for kind in kinds if not self.place.kinds or kind in self.place.kinds)
        if not kinds:  # the place holds no data
            reader, kinds = "break", ("flag",)
        kind = chosen.get("kind") or self.pick(*kinds)
        if kind == "array":
            bodies = [name for name in bodies if name in ("kernel", "in place", "maximum")] or ["kernel"]
        body_of = "value" if loop_of in EXPRESSIONS else self._chosen("body", bodies, chosen)
        setter = chosen.get("setter") or self.pick(*(self.place.setters or SETTERS))
        stops = (self.loop.stops and loop_of not in EXPRESSIONS) or reader in ("return", "raise")
        if reader == "marks":
            setter = "alarms" if setter.startswith("alarm") else "threads"
        elif not stops or reader in COUNTING:  # one number says when all that was seen has changed
            setter = setter.removesuffix("s")
        self.kind, self.reader, self.body = KINDS[kind], reader, BODIES.get(body_of)
        self.loop_of, self.place_of, self.kind_of, self.setter = loop_of, place_of, kind, setter
        self.stops = stops
        self.wrapped = self.random.random() < 0.2
        self.first = self.random.random() < 0.5
        self.exits = self.random.random() < 0.2 and "append" not in body_of  # such loops would be Python's
        self.delay, self.size = self.pick(0.03, 0.03, 0.04, 0.05, 0.08), self.pick(64, 64, 500)
        if loop_of in ("elements", "for enumerate"):
            self.size = 500
        names = {"loop": loop_of, "place": place_of, "setter": setter, "reader": reader, "body": body_of, "kind": kind}
        self.title = "; ".join(f"{name}: {value}" for name, value in names.items())

    def _chosen(self, name: str, options: Any, chosen: dict[str, str]) -> str:
        made = self.pick(*options)  # in any case: what else is drawn does not depend on what was chosen
        return chosen.get(name) or made

    def own(self, loop: str) -> str:
        """Loops that read the flag in a way of their own."""
        return {"while and": "header", "while not": "header", "generator": "return"}.get(loop, "own")

    # -- the module ----------------------------------------------------------------------------------------------------
    def module(self) -> str:
        several = self.setter in ("alarms", "threads")
        values = self.kind.steps if several else self.kind.values
        count = values.count(",") + 1
        seen = 1 if self.kind_of in TRUTHS else count - 1
        self.add(f"# {self.title}")
        self.lines += HEADER.replace("SIZE", str(self.size)).splitlines()
        self.add(f"VALUES, SEEN, STEP = {values}, {seen}, {self.loop.step}")
        self.add(f"STOPS, SETTER, DELAY, GAP = {self.stops}, {self.setter!r}, {self.delay}, {self.pick(0.02, 0.03)}")
        self.add("HELD = tuple(np.array(VALUES))" if self.place_of.startswith("element") else "HELD = VALUES")
        for line in self.body.module if self.body else ():
            self.add(line)
        for line in self.place.setup:
            self.add(line.replace("OLD", "VALUES[0]"))
        self.program()
        self.add("")
        self.add("")
        self.twin()
        self.ending()
        return "\n".join(self.lines) + "\n"

    def program(self) -> None:
        """``f`` and ``put``, where the place has them."""
        read = self.place.read
        if self.place_of == "closure":
            self.begin("def made():")
            self.add("stop = VALUES[0]")
            self.put("nonlocal stop")
            self.functions(read, "")
            self.add("return f, put")
            self.depth -= 1
            self.add("f, put = made()")
        elif self.place_of == "self":
            self.begin("class Runner:")
            self.functions(read, "self")
            self.depth -= 1
            self.add("runner = Runner()")
            self.add("runner.stop = VALUES[0]")
            self.add("f = runner.f")
            self.put("")
        else:
            self.put("global stop" if self.place_of == "global" else "")
            self.functions(read, "")

    def begin(self, line: str) -> None:
        self.add(line)
        self.depth += 1

    def put(self, scope: str) -> None:
        self.begin("def put(value):")
        if scope:
            self.add(scope)
        self.add(self.place.put)
        self.depth -= 1

    def functions(self, read: str, owner: str) -> None:
        """The functions of the program: helpers, the loop, and ``f``."""
        first = [owner] if owner else []
        state = ", state=STATE" if self.place_of == "default" else ""
        given = ", state" if state else ""
        parameters = ", ".join([*first, "x", "u", "w", "limit", f"box={self.place.box}"]) + state
        ask = ", ".join([*first, "n", "box"]) + given
        call = f"self.asked(n, box{given})" if owner else f"asked(n, box{given})"
        test = self.kind.test.format(read)
        if self.reader in ("helper", "caught"):
            self.begin(f"def asked({ask}):")
            if self.reader == "caught":
                self.begin(f"if {test}:")
                self.add("raise Stop")
                self.depth -= 1
            else:
                self.add(f"return {test}")
            self.depth -= 1
        elif self.reader == "method":
            self.begin("class Asker:")
            self.begin(f"def asked(self, n, box{given}{', runner' if owner else ''}):")
            self.add(f"return {test.replace('self.', 'runner.')}")
            self.depth -= 2
            if owner:
                self.add("asker = Asker()")
                call = f"self.asker.asked(n, box{given}, self)"
            else:
                self.add("asker = Asker()")
                call = f"asker.asked(n, box{given})"
        if self.loop_of == "generator":
            self.begin(f"def steps({parameters}):")
            self.steps(test)
            self.depth -= 1
            self.begin(f"def f({parameters}):")
            self.consume(f"{'self.' if owner else ''}steps(x, u, w, limit, box{given})")
            self.depth -= 1
            return
        self.begin(f"def {'work' if self.wrapped else 'f'}({parameters}):")
        self.loops(test, read, call)
        self.depth -= 1
        if self.wrapped:
            self.begin(f"def f({parameters}):")
            self.add("x[7] = 0.5")
            self.add(f"found = {'self.' if owner else ''}work(x, u, w, limit, box{given})")
            self.add("return found")
            self.depth -= 1

    def twin(self) -> None:
        """The same with ``n >= k`` for each read; ``k`` has a number for each change that is seen."""
        sign = ">=" if self.loop.step > 0 else "<="
        read = f"(HELD[SEEN] if n {sign} k else HELD[0])"
        if self.kind_of == "flag":
            read = f"(n {sign} k)"
        if self.reader == "marks":
            read = f"(l2 if n {sign} k2 else l1 if n {sign} k1 else l if n {sign} k else 0)"
        test = self.kind.test.format(read)
        if self.loop_of == "generator":
            self.begin("def twin_steps(x, u, w, limit, k):")
            self.steps(test)
            self.depth -= 1
            self.begin("def twin(x, u, w, limit, k):")
            self.consume("twin_steps(x, u, w, limit, k)")
            self.depth -= 1
            return
        self.begin(f"def twin(x, u, w, limit, k{', k1, k2, l, l1, l2' if self.reader == 'marks' else ''}):")
        if self.wrapped:
            self.add("x[7] = 0.5")
        self.loops(test, read, test)
        self.depth -= 1

    def ending(self) -> None:
        """How what ``f`` returns tells the end of the loop, the iteration of the change, and the state."""
        self.begin("def ending(found, limit):")
        if self.loop_of in EXPRESSIONS:
            self.add(f"k = {'found' if self.loop_of == 'sum' else 'len(found)'}")
            self.add(f"return int(k < limit), k if k < limit else {NEVER}, found")
        else:
            self.add("return found")
        self.depth -= 1

    # -- loops ---------------------------------------------------------------------------------------------------------
    def result(self, how: str, k: str) -> str:
        return f"({how}, {k}, {self.body.result if self.body else 'values'})"

    def work(self) -> None:
        """The body's own lines."""
        for line in self.body.lines:
            self.add(line.replace("+ w", "+ row").replace("+= w", "+= row") if self.loop_of == "rows" else line)
        if self.loop_of in ("elements", "for enumerate") and not self.body.arrays:
            self.add("x[4] = x[4] * 0.5 + e")

    def steps(self, test: str) -> None:
        for line in self.body.before:
            self.add(line)
        for line in self.loop.head:
            self.begin(line)
        self.begin(f"if {test}:")
        self.add("return")
        self.depth -= 1
        self.work()
        self.add(f"yield n, {self.body.result.replace('.copy()', '[0]') if self.body.arrays else 'x[1]'}")
        self.depth -= 1

    def consume(self, call: str) -> None:
        self.add("n, value = -1, 0.0")
        self.begin(f"for n, *value in {call}:")
        self.add("pass")
        self.depth -= 1
        self.add(f"return int(n + 1 < limit), n + 1 if n + 1 < limit else {NEVER}, value, x.copy()")

    def loops(self, test: str, read: str, call: str) -> None:
        """The loop, and what it returns. ``test`` is of the flag that ``read`` reads; ``call`` asks a helper for it."""
        if self.loop_of in EXPRESSIONS:
            value = "math.sqrt(x[n % 8] + n)"
            if self.loop_of == "sum":
                self.add(f"return sum(1 for n in range(limit) if not ({test}))")
            else:
                self.add(f"return [{value} for n in range(limit) if not ({test})]")
            return
        never = NEVER * (1 if self.loop.step > 0 else -1)
        count = self.reader in ("skip", "data")
        for line in (*self.body.before, *self.loop.before):
            self.add(line)
        self.add(f"how{', over' if count else ''} = 0{', 0' if count else ''}")
        if self.reader == "data":
            self.add("total = 0.0")
        if self.reader == "marks":
            self.add(f"was, j, marks, levels = 0, 0, np.full(4, {never}), np.zeros(4, int)")
        level = self.depth
        if self.loop_of == "nested outer":
            self.begin(self.loop.head[0])
            self.begin(f"if {test}:")
            self.add("how = 1")
            self.add("break")
            self.depth -= 1
            self.begin(self.loop.head[1])
            self.work()
            self.add("n += 1")
            self.depth = level
        elif self.loop_of == "nested both":
            self.begin(self.loop.head[0])
            self.begin(self.loop.head[1])
            self.begin(f"if {test}:")
            self.add("break")
            self.depth -= 1
            self.work()
            self.add("n += 1")
            self.depth -= 1
            self.begin(f"if {test}:")
            self.add("how = 1")
            self.add("break")
            self.depth = level
        elif self.reader == "header":
            self.begin(self.loop.head[0].replace("TEST", test))
            self.work()
            self.add("n += 1")
            self.depth = level
            self.add("how = 1 if n < limit else 0")
        else:
            for line in self.loop.head:
                self.begin(line)
            for extra in self.loop.extra:
                self.begin(f"if {extra}:")
                self.add("break")
                self.depth -= 1
            self.iteration(test, read, call)
            if self.loop.counts:
                self.add("n += 1")
            if self.exits:
                self.begin(f"if {self.body.exit}:")
                self.add("how = 2")
                self.add("break")
                self.depth -= 1
            self.depth = level
        k = f"n if how == 1 else {never}"
        if count:
            k = f"n - {self.loop.step} * (over - 1) if over else {never}"
            if self.loop.counts:
                k = f"n - (over - 1) - (how == 0) if over else {never}"
        if self.reader == "marks":
            k = "marks.tolist()[:3] + levels.tolist()[:3]"
        extra = "total, " if self.reader == "data" else "over, " if self.reader == "skip" else ""
        self.add(f"return (how, {k}, {extra}{self.body.result})")

    def iteration(self, test: str, read: str, call: str) -> None:
        """The lines of an iteration: the read of the flag, and the body."""
        done = ("how = 1", "break")
        ahead = self.loop.counts  # ``n`` grows after the body, before which the flag is read
        match self.reader:
            case "return" | "raise":
                result = self.result("1", "n")
                self.asks(test, f"return {result}" if self.reader == "return" else f"raise Stop(*{result})")
                self.work()
            case "helper" | "method":
                self.asks(call, *done)
                self.work()
            case "late":
                self.add(f"now = {test}")
                self.work()
                self.asks("now", *done)
            case "and":
                self.asks(f"({test}) and n > 7" if self.first else f"x[0] > -1.0 and {test}", *done)
                self.work()
            case "or":
                self.asks(f"({test}) or x[0] < -1.0" if self.first else f"x[0] < -1.0 or {test}", *done)
                self.work()
            case "skip":
                more = ("n += 1",) if ahead else ()
                self.begin(f"if {test}:")
                self.add("over += 1")
                self.asks(f"over > {AFTER}", *done)
                for line in (*more, "continue"):
                    self.add(line)
                self.depth -= 1
                self.work()
            case "data":
                self.add(f"now = {read}")
                if self.kind_of == "array":
                    self.add("u = u * 0.5 + now")
                    self.add("now = now[0]")
                self.add("total += now")
                self.work()
                self.begin("if now > 2.0:")
                self.add("over += 1")
                self.asks(f"over > {AFTER}", *done)
                self.depth -= 1
            case "marks":
                self.add(f"now = {read}")
                self.begin("if now != was:")
                self.add("marks[j] = n")
                self.add("levels[j] = now")
                self.add("j += 1")
                self.add("was = now")
                self.asks("now == 2", *done)
                self.depth -= 1
                self.work()
            case "caught":
                if call == test:
                    self.asks(call, *done)
                else:
                    self.begin("try:")
                    self.add(call)
                    self.depth -= 1
                    self.begin("except Stop:")
                    for line in done:
                        self.add(line)
                    self.depth -= 1
                self.work()
            case "conditional":
                self.add(f"end = 1 if {test} else 0")
                self.asks("end", *done)
                self.work()
            case "else":
                self.begin(f"if not ({test}):")
                self.work()
                self.depth -= 1
                self.begin("else:")
                for line in done:
                    self.add(line)
                self.depth -= 1
            case "match":
                self.begin(f"match bool({test}):")
                self.begin("case True:")
                for line in done:
                    self.add(line)
                self.depth -= 1
                self.begin("case _:")
                self.work()
                self.depth -= 2
            case _:
                self.asks(test, *done)
                self.work()

    def asks(self, test: str, *lines: str) -> None:
        self.begin(f"if {test}:")
        for line in lines:
            self.add(line)
        self.depth -= 1


def program(random: Random, **chosen: str) -> str:
    """The text of one program; ``chosen`` fixes its loop, place, reader, setter, kind or body."""
    return Writer(random, **chosen).module()
