"""Every instruction that the running Python emits stands in a program that is run plainly and compiled."""

from __future__ import annotations

import contextlib
import dis
import sys
import textwrap
import types

import numpy as np
import pytest
from differential import check

from .helpers import X

NEVER_EMITTED = {
    # inline caches and markers, which no instruction stream shows
    "CACHE", "RESERVED", "EXTENDED_ARG",
    # of the interpreter's own trampolines
    "INTERPRETER_EXIT", "EXIT_INIT_CHECK", "ENTER_EXECUTOR", "TRACE_RECORD",
    # only where interactive input is compiled
    "PRINT_EXPR",
}  # fmt: skip

PROGRAMS = """
def arithmetic(a):
    b = -a + 2 * a ** 2 - a / 3 // 1 % 5
    return +b, ~a.ndim, not a.ndim, b @ a.T, 5 << 1 >> 1 & 6 | 1 ^ 2

def comparisons(a):
    k = a.ndim
    return k < 3, k is None, k is not a, k in (1, 2), k not in [2], 1 < k <= 2, "y" if a is not None else "n"

def conditions(a, k=None, m=3):
    if k is None and m is not None:
        k = m or a
    while not k > 5:
        k += 1
    return (k and m) or a, k == 1 or m

def in_place(a):
    b = a + 0
    b += 1; b -= 1; b *= 2
    t = [1]
    t += [2]
    k = 5
    k //= 2; k %= 5; k **= 2; k <<= 1; k >>= 1; k &= 7; k |= 8; k ^= 1; k /= 2
    return b, t, k

def items(a):
    t = [1, 2, 3, 4]
    t[0] = a
    del t[1]
    t[1:2] = [7, 8]
    k = a.ndim
    t[k:3] = [5]
    return t[0], t[1:], t[::2], (1, 2, 3)[1:], t, t[k:], t[k::2], a[:k], a[:1:k]

def attributes(a):
    o = Thing()
    o.v = a
    o.w = 1
    del o.w
    return o.v, o.method(a), a.sum(), o

def globals_(a):
    global G_ONE
    G_ONE = a
    b = G_ONE
    del G_ONE
    return b, len([a])

def built(a):
    t, l, s, d, c = (a, 1), [a, 2], {1, a.ndim}, {"k": a, a.ndim: 1}, {"x": a, "y": a}
    return t, l, s, d, c, [*l, 3], (*t, 4), {*s, 9}, {**d, "z": 1}, slice(a.ndim), f"{a.ndim}{a.ndim!r:>3}{a.ndim:2}",
    [1, 2, 3], {1, 2, 3}

def comprehended(a):
    return [a + i for i in range(2)], {i for i in range(3)}, {i: a for i in range(2)}, list(i for i in "ab"), [(lambda:
    i) for i in range(2)][0]()

def unpacked(a):
    (p, q), *r, s = (a, 1), 2, 3, 4
    p, q = q, p
    x, y, z = z_first(a)
    x, y, z, w = y, z, x, q
    return p, q, r, s, x, y, z, w

def z_first(a):
    return a, 2, 3

def closures(a):
    n = 1
    def inner(b, k: int = 2, *args, key=a, **more) -> None:
        nonlocal n
        n += k
        return b * n + key
    def gone():
        nonlocal n
        del n
    result = inner(a), inner(a, 3, key=1), inner(*[a, 1], **{"key": 2})
    gone()
    return result, (lambda: result)()

def deleted(a):
    b = a
    del b
    try:
        return b
    except UnboundLocalError:
        return 1

def maybe(a, k=0):
    if k:
        b = a
    try:
        return b
    except NameError as error:
        return str(error)

def loops(a):
    for i in range(300):
        if i > 5:
            break
        if i % 2:
            continue
        a = a + i
    else:
        a = None
    return a

def many(a):
    total = a
    while total is not None:
        total = None
    return [LONG]

def until(a):
    k, none, done = 0, None, False
    while none is None:
        k += 1
        none = k if k > 3 else None
    while not done:
        k += 1
        done = k > 8
    more = k
    while more:
        more -= 1
    return a + k

def matched(a):
    found = []
    for s in ([1, a], {"k": a}, {"k": 1, "m": 2}, Thing(), 5):
        match s:
            case [p, q]: found.append(q)
            case {"k": v, "m": w}: found.append((v, w))
            case {"k": v}: found.append(v)
            case Thing(kind=k): found.append(k)
            case _: found.append(None)
    return found

def managed(a):
    o = Thing()
    with o as v:
        a = a + v
    with o:
        raise KeyError("kept quiet")
    return a, o.log

def raised(a):
    log = []
    try:
        raise ValueError("told") from KeyError("k")
    except (TypeError, ValueError) as error:
        log.append(str(error))
    finally:
        log.append("finally")
    try:
        assert a is None, "not none"
    except AssertionError as error:
        log.append(str(error))
    try:
        try:
            {}["k"]
        except KeyError:
            raise
    except KeyError:
        log.append("again")
    return a, log

def grouped(a):
    log = []
    try:
        raise ExceptionGroup("g", [ValueError(1), TypeError(2), KeyError(3)])
    except* ValueError as group:
        log.append(len(group.exceptions))
    except* (TypeError, KeyError):
        log.append("others")
    return a, log

def yields(a):
    def one(n):
        got = yield n
        yield got
        return 5
    def two(n):
        r = yield from one(n)
        yield r
    g = two(a)
    return next(g), g.send(3), next(g)

def awaits(a):
    class Wait:
        def __await__(self):
            got = yield "waiting"
            return got
    class Rows:
        def __init__(self): self.n = 0
        def __aiter__(self): return self
        async def __anext__(self):
            self.n += 1
            if self.n > 2: raise StopAsyncIteration
            return self.n
    class Managed:
        async def __aenter__(self): return 7
        async def __aexit__(self, *error): return False
    async def numbers():
        yield 1
        yield 2
    async def main():
        got = await Wait()
        rows = [r async for r in Rows()]
        async for n in numbers():
            rows.append(n)
        async with Managed() as m:
            rows.append(m)
        return got, rows
    routine = main()
    told = routine.send(None)
    try:
        routine.send(a)
    except StopIteration as stop:
        return told, stop.value

def thrown(a):
    def inner():
        try:
            yield 1
        except KeyError:
            yield "caught"
    def outer():
        yield from inner()
    g = outer()
    return next(g), g.throw(KeyError("k")), a

def inherits(a):
    class Base:
        rate: int = 2
        def m(self, b): return b * self.rate
        @property
        def p(self): return 3
    class Child(Base):
        names = [n for n in ("x", "y")]
        local = names
        def m(self, b): return super().m(b) + super().p
    def reads():
        class Inner:
            held = a.ndim
            rate = held
        return Inner.rate
    return Child().m(a), Child.names, reads()

def imported(a):
    import math
    import os.path as path
    from math import pi, floor as down
    space = {}
    exec("from math import *\\nx: int = 3\\nname = x\\ndel x", space)
    return math.pi == pi, down(2.5), path.basename("a/b"), space["name"], space["sqrt"](4.0)

def starred(*args, **more):
    a, = args
    return max(*[1, 2], *(3,)), dict(**more, k=a)

def nothing():
    pass

def decorated(a):
    @staticmethod
    def inner(b, /, c=1):
        return b + c
    return inner(a), nothing()
"""
GENERIC = """
def generic(a):
    def first[T](x: T) -> T:
        return x
    class Box[T: int]:
        item: T
        def get(self) -> T: return 3
    type Pair[V] = tuple[V, V]
    class Scope:
        T = 1
        def m[U](self, u: U = T) -> U: return u
        held = [T for _ in range(1)] if False else T
        type Alias = T
    def outer():
        T = 5
        class Inner:
            T = T_G
            def m[U: T](self): return T
            inner = [T for _ in range(2)]
        return Inner.inner
    return first(a), Box().get(), Pair.__name__, Scope().m(), Scope.Alias.__value__, outer()
"""
if sys.version_info >= (3, 12):
    PROGRAMS += GENERIC
if sys.version_info >= (3, 13):
    PROGRAMS += """
def defaulted(a):
    def first[T = int](x: T) -> T:
        return x
    return first(a), first.__type_params__[0].__default__
"""
if sys.version_info >= (3, 14):
    PROGRAMS += """
def templates(a):
    t = t"x {a.ndim} and {a!r:>{a.ndim}} {a + 1}"
    b = a * 2
    return t.strings, [(i.value, i.expression, i.conversion, i.format_spec) for i in t.interpolations], b
"""


class Thing:
    """What the programs use."""

    kind = "thing"

    def __init__(self):
        self.log = []

    def method(self, a):
        return a + 1

    def __enter__(self):
        return 2

    def __exit__(self, kind, error, trace):
        self.log.append(kind)
        return True

    def __eq__(self, other):
        return type(other) is Thing and list(vars(self)) == list(vars(other))

    __hash__ = None


def programs() -> dict[str, types.FunctionType]:
    """The functions by name."""
    text = textwrap.dedent(PROGRAMS).replace("LONG", ", ".join(f"'{i}' if a is None else {i}.5" for i in range(300)))
    space: dict[str, object] = {"Thing": Thing, "T_G": 9, "__name__": "programs"}
    exec(compile(text, "<programs>", "exec"), space)
    return {name: f for name, f in space.items() if isinstance(f, types.FunctionType)}


FUNCTIONS = programs()


def emitted() -> set[str]:
    """The names of all instructions in the programs, also in code that they compile themselves."""
    found: set[str] = set()
    waiting = [f.__code__ for f in FUNCTIONS.values()]
    waiting += [
        compile(text, "<text>", "exec")
        for text in ("from math import *\nx: int = 3\nname = x\ndel x", "x = 1\nclass C: y = x")
    ]
    while waiting:
        code = waiting.pop()
        found.update(i.opname for i in dis.get_instructions(code))
        waiting += [c for c in code.co_consts if isinstance(c, types.CodeType)]
    return found


@pytest.mark.parametrize("name", [n for n, f in FUNCTIONS.items() if f.__code__.co_argcount or n == "starred"])
def test_program(name):
    check(FUNCTIONS[name], lambda: (X.copy(),), backends=("eager",))


def test_every_instruction_has_a_program():
    known = {n for n, number in dis.opmap.items() if number < 256 and not n.startswith("INSTRUMENTED_")}
    missing = known - NEVER_EMITTED - emitted()
    assert not missing, f"give these instructions a program: {sorted(missing)}"


def test_interactive_input():
    printed = []
    with contextlib.suppress(NameError):
        code = compile("3 + 4", "<stdin>", "single")
        hook, sys.displayhook = sys.displayhook, printed.append
        try:
            check(lambda a: (exec(code), a + 1)[1], lambda: (X.copy(),), backends=("eager",))
        finally:
            sys.displayhook = hook
    assert printed and set(printed) == {7}


@pytest.mark.parametrize("function", [
    lambda x: x * any(i > 2 for i in (1, 2, 3)),
    lambda x: x * all(i > 2 for i in (1, 2, 3)),
    lambda x: x * len(tuple(i for i in (1, 2, 3))),
    lambda x: x * (any is any) + (np.sin is np.cos) + (len is abs) + (np.sum is np.sum) + (int is float),
])  # fmt: skip
def test_whether_functions_are_the_same(function):
    """CPython 3.14 asks whether ``any`` is the built-in before a generator expression that it is called with."""
    check(function, lambda: (X.copy(),), fullgraph=True)
