# ruff: noqa: C416, F821, PIE800, PIE804, RUF021, UP008, UP031, UP033
"""Programs that use the language widely.

Input: nothing: each takes no arguments.
Output: values that can be compared.
Why: rewritten bytecode must behave like the original.
"""

import asyncio
import contextlib
import functools
import itertools
import sys
import warnings

PROGRAMS = []


def program(function):
    PROGRAMS.append(function)
    return function


class Context:
    def __init__(self, log, swallow=False):
        self.log, self.swallow = log, swallow

    def __enter__(self):
        self.log.append("enter")
        return self

    def __exit__(self, kind, error, trace):
        self.log.append(("exit", kind and kind.__name__, str(error)))
        return self.swallow

    async def __aenter__(self):
        await asyncio.sleep(0)
        return self.__enter__()

    async def __aexit__(self, *what):
        await asyncio.sleep(0)
        return self.__exit__(*what)


@program
def arithmetic():
    a, b = 3, 4.5
    c = a * b - (a + b) / 2 if a < b else a @ b
    c += a // 2
    return [c, -a, ~a, not a, a < b <= 5 < 7, a in (1, 2, 3), a is not b, a and b or c]


@program
def strings():
    s = ""
    for i in range(5):
        s += f"{i!r:>3}|{s:.2}x"
    return s.upper().replace("X", "y").split("|"), "%s-%d" % (s[:2], 4)


@program
def nested_loops():
    out = []
    for i in range(4):
        for j in range(5):
            if j == i:
                continue
            if j > 3:
                break
            out.append((i, j))
        else:
            out.append("complete")
    while out:
        last = out.pop()
        if last == (1, 0):
            break
    else:
        out = None
    return out, last, i, j


@program
def attempts():
    log = []
    for value in (0, 1, "x", None, [1]):
        try:
            try:
                log.append(10 / value)
            except ZeroDivisionError as error:
                log.append(str(error))
                continue
            except TypeError:
                log.append(type(sys.exc_info()[1]).__name__)
                if value is None:
                    break
                raise
            else:
                log.append("fine")
            finally:
                log.append(("finally", value))
        except TypeError as error:
            log.append(("outer", str(error)))
    try:
        error
    except UnboundLocalError as unbound:
        log.append(str(unbound))
    return log, sys.exc_info()


# From 3.14 on the compiler warns of it.
OVERRULES = """
def overrules(n, log):
    for i in range(n):
        try:
            if i == 2:
                return i
            log.append(i)
        finally:
            log.append("f")
            if i == 3:
                return "never"
            if i == 2 and n > 3:
                continue
    return None
"""


@program
def returns_in_finally():
    made = {}
    with warnings.catch_warnings(action="ignore", category=SyntaxWarning):
        exec(OVERRULES, made)
    log = []
    return [made["overrules"](n, log) for n in range(6)], log


@program
def returns_through_finally():
    log = []

    def f(n):
        for i in range(n):
            try:
                if i == 2:
                    return i
                log.append(i)
            finally:
                log.append("f")
        return None

    def g():
        try:
            raise ValueError("a")
        except ValueError as e:
            try:
                raise KeyError("b") from e
            finally:
                log.append(repr(sys.exc_info()[1]))

    try:
        g()
    except KeyError as e:
        log.append((repr(e), repr(e.__cause__), repr(e.__context__)))
    return f(5), f(1), log


@program
def loops_back_to_the_start():
    def down(n, unused):
        while n > 0:
            n -= len([n])
        return n

    def forever(n, unused):
        while True:
            n -= len([n])
            if n < 0:
                return n

    return down(3, "x"), forever(3, "x"), max(x % 2 for x in range(3))


@program
def contexts():
    log = []
    with Context(log) as a, Context(log, True) as b:
        for _ in range(3):
            with contextlib.suppress(KeyError):
                log.append(len([a, b]))
                {}["x"]
        raise ValueError(1)
    for i in range(3):
        with Context(log):
            if i == 1:
                break
            log.append(i)
    with Context(log):
        return log


@program
def raises_in_context():
    with Context([]):
        x = [1, 2, 3]
        return x[
            len(x)
        ]  # fmt: skip


@program
def comprehensions():
    x, k = "x", "k"
    rows = [[i * j for j in range(3) if j] for i in range(3)]
    table = {k: v for k, v in enumerate("abc")}
    chosen = {y % 3 for row in rows for y in row}
    makers = [lambda: i for i in range(3)]
    lazy = (x + str(y) for y in chosen)
    again = [x for x in range(3)], [x for x in "ab"]
    return rows, table, sorted(chosen), [f() for f in makers], sorted(lazy), again, x, k


@program
def comprehension_of_unbound():
    out = []
    for flag in (True, False):
        if not flag:
            maybe = 1
        out.append([maybe for maybe in range(2)])
    del flag
    try:
        raise_in = [1 // none for none in (1, 0)]
    except ZeroDivisionError:
        out.append("caught")
    try:
        return raise_in
    except UnboundLocalError:
        return out, maybe


@program
def closures():
    count = 0
    names = []

    def step(by=1, *rest, key=None, **more):
        nonlocal count
        count += by
        names.append((key, rest, sorted(more.items())))
        return lambda: (count, by)

    readers = [step(i, i, i, key=str(i), z=i) for i in range(3)]
    step(*[1, 2], **{"key": 5, "q": 6})
    step(4, key="kw")
    arguments = {"a": 1}
    step(*(1,), 2, key=None, **arguments, b=3)
    del arguments
    return [r() for r in readers], count, names


@program
def cells_deleted():
    x = 1

    def get():
        return x

    out = [get()]
    del x
    try:
        get()
    except NameError as error:
        out.append(str(error))
    x = 2
    return out, get()


@program
def generators():
    log = []

    def inner(n):
        try:
            for i in range(n):
                got = yield i * 2
                log.append(got)
        except ValueError as error:
            log.append(str(error))
            yield "caught"
        finally:
            log.append("closed")
        return n

    def outer(n):
        result = yield from inner(n)
        log.append(("result", result))
        yield from [7, 8]
        return (yield)

    g = outer(2)
    log.append([next(g), g.send("a"), g.send("b"), next(g), next(g)])
    try:
        g.send("end")
    except StopIteration as stop:
        log.append(stop.value)
    g = outer(3)
    log.append(next(g))
    log.append(g.throw(ValueError("thrown")))
    g.close()
    g = outer(1)
    next(g)
    log.append(g.gi_yieldfrom is not None)
    g.close()
    total = 0
    for value in outer(4):
        total += value or 0
    log.append(total)
    log.append(list(itertools.chain(outer(2), inner(1))))

    def wrong():
        yield 1
        raise StopIteration

    try:
        list(wrong())
    except RuntimeError as error:
        log.append(str(error))
    return log


@program
def coroutines():
    log = []

    async def numbers(n):
        for i in range(n):
            await asyncio.sleep(0)
            yield i

    async def work(n):
        async with Context(log, True) as c:
            async for i in numbers(n):
                if i == 2:
                    continue
                log.append(await double(i))
            else:
                log.append("done")
            log.append([x + 1 async for x in numbers(3) if x])
            log.append([await double(x) for x in range(2)])
            c.log.append(await asyncio.gather(double(5), double(6)))
            raise ValueError("inside")
        try:
            async for _ in numbers(5):
                raise KeyError(1)
        except KeyError:
            log.append("key")
        a = numbers(2)
        log.append((await a.asend(None), await anext(a)))
        await a.aclose()
        return n

    async def double(x):
        try:
            await asyncio.sleep(0)
        finally:
            log.append("double")
        return 2 * x

    async def cancelled():
        try:
            await asyncio.sleep(10)
        except asyncio.CancelledError:
            log.append("cancelled")
            raise

    async def main():
        task = asyncio.ensure_future(cancelled())
        await asyncio.sleep(0)
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task
        return await work(4)

    return asyncio.run(main()), log


class Shape:
    __match_args__ = ("x", "y")

    def __init__(self, x, y):
        self.x, self.y = x, y


@program
def matches():
    out = []
    for subject in (1, "s", [1, 2, 3], {"k": 1, "z": 2}, Shape(1, [2]), Shape(0, 0), None, (), {"k": 3}):
        match subject:
            case int() | float() if subject:
                out.append("number")
            case str(s):
                out.append(s)
            case [first, *rest]:
                out.append((first, rest))
            case {"k": value, **others}:
                out.append((value, others))
            case Shape(x=0, y=0):
                out.append("origin")
            case Shape(x, [y]):
                out.append((x, y))
            case None:
                out.append("none")
            case _ as whole:
                out.append(whole)
    return out


@program
def groups():
    log = []

    def run(*errors):
        try:
            raise ExceptionGroup("g", errors)
        except* ValueError as group:
            log.append(("value", [str(e) for e in group.exceptions]))
        except* TypeError as group:
            log.append(("type", [str(e) for e in group.exceptions]))
            raise KeyError("new")
        else:
            log.append("none")
        finally:
            log.append("finally")

    run(ValueError("a"))
    for errors in ([ValueError("a"), TypeError("b")], [OSError("c"), ValueError("d")], [TypeError("e")]):
        try:
            run(*errors)
        except* Exception as group:
            log.append(len(group.exceptions))
            log.append(repr(group.exceptions[0]))
    return log


class Base:
    def __init__(self, *items, **named):
        self.items = items
        self.named = named

    def method(self, x, *, y=1):
        return (x, y, self.items)

    @classmethod
    def make(cls, *items):
        return cls(*items)


class Derived(Base):
    def __init__(self, a, b=2):
        super().__init__(a, b, key=a)
        self.a = a

    def method(self, x, *, y=2):
        found = super().method(x + 1, y=y if x else -y)
        return found, super(Derived, self).method(x, y=super().method(y)[0]), __class__.__name__

    @property
    def twice(self):
        return self.a * 2

    @classmethod
    def make(cls, *items):
        return super().make(*items)


@program
def classes():
    d = Derived.make(3)
    d.a += 1
    d.extra = d.items[0] if d.items else None
    del d.extra

    class Local(Derived):
        count = len(d.items)
        table = [x for x in range(3)]

        def method(self, x):
            return super().method(x), count_of(self)

    def count_of(o):
        return o.count

    return d.method(0), d.method(5), d.twice, getattr(d, "extra", "gone"), d.named, Local(1).method(2), Local.table


@program
def unpacking():
    a, (b, *c), d = 1, (2, 3, 4), {"x": 5}
    e, *f = "xyz"
    g = [*c, *f, a]
    h = {**d, "y": b, **{"z": e}}
    i = (*g, *h)
    j = {*g}
    k = g[1:-1], g[::2], slice(1)
    g[1:2] = [0, 0]
    del g[0], h["x"]
    g[0] += 5
    h["y"] -= 1
    a, b = b, a
    a, b, c = c, a, b
    return a, b, c, d, e, f, g, h, i, len(j), k


@program
def conditional_calls():
    out = []
    for x in (0, 1, 2, None):
        out.append(str(x or "empty").center(10 if x else len(out) + 7, "-" if x is None else "+"))
        out.append((lambda *a, **k: (a, sorted(k)))(x, x and x + 1, u=x is None, v=not x))
        out.append(out.count if x else 3)
        print(x, end=" " if x else "\n")
    return [o if not callable(o) else "method" for o in out]


@program
def deleted_locals():
    out = []
    for i in range(4):
        if i % 2:
            thing = i
        try:
            out.append(thing)
            del thing
        except UnboundLocalError as error:
            out.append(str(error))
    return out


@program
def many_parameters():
    def f(a, /, b, *c, d, e=5, **g):
        b = b if a else None
        c = (*c, a)
        del a
        return [b, c, d, e, g, locals()]

    return f(1, 2, 3, d=4, z=6), f(0, 0, d=0)


def decorate(function):
    @functools.wraps(function)
    def wrapper(*args, **kwargs):
        return [function(*args, **kwargs)]

    return wrapper


@program
def decorators():
    @decorate
    @functools.lru_cache(maxsize=None)
    def fib(n):
        return n if n < 2 else fib(n - 1)[0] + fib(n - 2)[0]

    return fib(12)


@program
def assertion():
    total = 0
    for i in range(5):
        total += i
        assert (
            total < 5
            or i == 0
        ), f"total {total}"  # fmt: skip


@program
def imports():
    import os.path as p
    from math import cos, sin

    return p.join("a", "b"), cos(0), sin(0), p.__name__ == "posixpath"


@program
def locals_seen():
    a = 1
    b = [a, len([a]) + 1]

    def inner():
        return b, sorted(locals())

    return sorted(locals()), inner(), sorted(vars())


@program
def walrus_and_chains():
    out = []
    data = iter(range(10))
    while (chunk := list(itertools.islice(data, 3))) and (total := sum(chunk)) < 20:
        out.append((chunk, total))
    return out, chunk, total, 1 < len(out) < 5, [y := 3, y**2], any((hit := n) > 2 for n in range(5)), hit


@program
def deep_stack():
    f = lambda *a: a
    x = 2
    return f(1, f(x + 1, f(x * 2, f(x - 1, [x, x + 5, {x: f(x + 7)}], x**2).index(1)), k := x), {**{"a": x + k}})


@program
def recursion_error():
    def f(n):
        return f(n + 1) + 1

    try:
        f(0)
    except RecursionError:
        return "deep"
