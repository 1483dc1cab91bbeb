# ruff: noqa: E501
"""Calls of user functions: arguments of every kind, closures, recursion, generators, partials."""

from __future__ import annotations

import functools
import operator

import numpy as np
import pytest

import tcompile

from .helpers import X, broken, guards, whole, x, xy

SCALE = 2.0


def helper(a, b=3, *rest, key=None, **more):
    a = a * b
    for item in rest:
        a = a + item
    if key is not None:
        a = a - key
    for name in more:
        a = a * more[name]
    return a


def straight(a, b):
    c = a + b
    d = np.exp(-c) * a
    return (d - b) / (c * c + 1)


def positional_and_keyword(a, b):
    return helper(a), helper(a, b), helper(a, b, b, 2.0), helper(a, key=b), helper(b=2, a=a, extra=b, other=2)


def stars(a, b):
    args, named = (a, 2), {"key": b}
    return helper(*args, **named) + helper(a, *[4, b], key=1, z=3)


def keyword_only(a, b):
    def inner(p, /, q, *, r=1, s):
        return p * q + r - s

    return inner(a, b, s=2) + inner(a, q=b, s=b, r=a)


def closure(a, b):
    k = 3

    def inner(v):
        return v * k + b

    k = 5
    return inner(a)


def nonlocals(a, b):
    total, count = a, 0

    def add(v):
        nonlocal total, count
        total = total + v
        count += 1

    add(b)
    add(b)
    return total * count


def nested_closures(a, b):
    def outer(p):
        def middle(q):
            def inner(r):
                return p + q * r

            return inner

        return middle

    return outer(a)(b)(2)


def lambdas(a, b):
    f = lambda v, s=2: v * s + b
    return f(a) + (lambda *v: v[0] - v[1])(a, b)


def factory_in_loop(a, b):
    functions = [lambda v, k=k: v * k for k in range(3)]
    late = [lambda v: v * k for k in range(3)]
    return [f(a) for f in functions] + [f(b) for f in late]


def comprehension_cells(a, b):
    first = [lambda: i for i in range(2)]
    second = [lambda: i for i in range(4)]
    return a * first[0]() + b * second[0]()


def cell_kept_around_comprehension(a, b):
    i = 10
    f = lambda: i
    made = [i * 2 for i in range(3)]
    return a * f() + b * made[2] + i


def recursion(a, b):
    def power(v, n):
        return v if n == 1 else v * power(v, n - 1)

    return power(a, 5) + b


def fibonacci(n):
    return n if n < 2 else fibonacci(n - 1) + fibonacci(n - 2)


def recursion_on_ints(a, b):
    return a * fibonacci(7)


def defaults_are_shared(a, b):
    def f(v, s=(1, 2)):
        return v * s[0] + s[1]

    return f(a) + f(b)


def generator(a, b):
    def numbers(n):
        for i in range(n):
            yield a * i
        yield b

    total = b
    for item in numbers(3):
        total = total + item
    return total


def generator_stopped_early(a, b):
    log = []

    def numbers():
        for i in range(5):
            log.append(i)
            yield i

    for item in numbers():
        if item == 2:
            break
    return a * len(log)


def generator_returns(a, b):
    def numbers():
        yield 1
        return 5

    return a * sum(numbers()) + b * next(iter(numbers()))


def partials(a, b):
    f = functools.partial(helper, a, key=b)
    g = functools.partial(f, 2)
    h = functools.partial(operator.mul, b)
    return f(), g(b), h(a)


def reduced(a, b):
    return functools.reduce(operator.add, [a, b, a]) + functools.reduce(lambda p, q: p * q, (2, 3), a)


def operators(a, b):
    return operator.add(a, b), operator.neg(a), operator.lt(a, b), operator.getitem(a, 1), operator.truediv(a, 2)


@pytest.mark.parametrize("f", [
    straight, positional_and_keyword, stars, keyword_only, closure, nonlocals, nested_closures, lambdas, factory_in_loop,
    comprehension_cells, cell_kept_around_comprehension, recursion, recursion_on_ints, defaults_are_shared, generator,
    generator_stopped_early, generator_returns, partials, reduced, operators,
], ids=lambda f: f.__name__)  # fmt: skip
def test_captured_whole(f):
    whole(f, xy)


def test_ops_are_counted():
    assert whole(straight, xy).graphs[0].op_count == 8
    assert whole(lambda a: a, x).graphs[0].op_count == 0


def test_arguments_of_the_function_itself():
    def f(a, /, b, *rest, c=2.0, **more):
        return a * b + c + sum(rest) + more.get("z", 0)

    for args, kwargs in [((X, 2), {}), ((X, X, X, 1), {"c": 3}), ((X,), {"b": 2, "z": X}), ((X, 2, 3), {"y": 1})]:
        compiled = tcompile.compile(f, backend="eager", fullgraph=True)
        np.testing.assert_array_equal(compiled(*args, **kwargs), f(*args, **kwargs))
    tcompile.reset()


def test_wrong_arguments_raise_python_s_own_error():
    compiled = tcompile.compile(straight, backend="eager")
    with pytest.raises(TypeError, match=r"straight\(\) missing 1 required positional argument: 'b'"):
        compiled(X)
    with pytest.raises(TypeError, match="unexpected keyword argument 'zz'"):
        compiled(X, X, zz=1)

    def calls_wrongly(a):
        return helper()

    broken(calls_wrongly, x, "operation-raises", "helper()")


def test_arguments_only_passed_on_are_not_guarded():
    def inner(a, unused):
        return a * 2

    def f(a, unused, passed):
        kept = passed
        return inner(a, kept)

    compiled = whole(f, lambda: (X.copy(), X, [1, "two", X]))
    assert not [text for text in guards(compiled) if text.startswith(("unused", "passed"))]
    compiled(X, None, 3)
    compiled(X, 7.5, object())
    assert len(compiled.entries) == 1


def test_only_the_items_used_are_guarded():
    def f(a, table, row):
        return a * table["scale"] + row[1]

    compiled = whole(f, lambda: (X, {"scale": 2, "name": "n", "w": X}, [X, 3, "s"]))
    compiled(X, {"scale": 2, "name": "other", "w": None}, [None, 3, 4])
    assert len(compiled.entries) == 1


def test_functions_passed_in_are_known_by_their_code():
    def apply(f, a):
        return f(a)

    compiled = tcompile.compile(apply, backend="eager", fullgraph=True)
    for k in (1, 2, 2):
        np.testing.assert_array_equal(compiled(lambda v: v + 1, X), X + 1)
    for k in (2.0, 3.0, 4.0):
        np.testing.assert_array_equal(compiled(lambda v, k=k: v * k, X), X * k)
        np.testing.assert_array_equal(compiled(lambda v: v - k, X), X - k)
    assert len(compiled.entries) == 3
    assert len(tcompile.compile(apply, backend="eager").entries) == 0
    tcompile.reset()


def test_a_default_that_changes():
    def inner(a, s=2, t=3):
        return a * s + t

    def f(a):
        return inner(a)

    compiled = tcompile.compile(f, backend="eager", fullgraph=True)
    np.testing.assert_array_equal(compiled(X), X * 2 + 3)
    inner.__defaults__ = (4, 5)
    np.testing.assert_array_equal(compiled(X), X * 4 + 5)
    inner.__defaults__ = (1, 4, 5)
    np.testing.assert_array_equal(compiled(X), X * 4 + 5)

    def keyword(a, *, s=2):
        return a * s

    other = tcompile.compile(lambda a: keyword(a), backend="eager", fullgraph=True)
    np.testing.assert_array_equal(other(X), X * 2)
    keyword.__kwdefaults__["s"] = 7
    np.testing.assert_array_equal(other(X), X * 7)


def test_a_closure_variable_that_changes():
    k = 2

    def f(a):
        return a * k

    compiled = tcompile.compile(f, backend="eager", fullgraph=True)
    for value in (2, 3, 2.5, X, np.float32(2)):
        k = value
        np.testing.assert_array_equal(compiled(X), X * value)


def test_copies_of_a_function_share_entries():
    def make(k):
        def f(a):
            return a * k

        return f

    first, second = (tcompile.compile(make(k), backend="eager") for k in (2.0, 3.0))
    np.testing.assert_array_equal(first(X), X * 2)
    np.testing.assert_array_equal(second(X), X * 3)
    assert len(second.entries) == 1


def test_compiled_functions_are_followed():
    inner = tcompile.compile(lambda a: a * 2, backend="eager")

    def f(a):
        return inner(a) + 1

    assert whole(f, x, ops=2)


def test_generators_with_clean_up_are_left_to_python():
    def f(a, log):
        def numbers():
            try:
                yield 1
                yield 2
            finally:
                log.append("closed")

        for _ in numbers():
            break
        return a * 2

    broken(f, lambda: (X, []), "generator", "numbers()")


def test_deep_recursion():
    def count(a, n):
        return a if n == 0 else count(a, n - 1) + 1

    broken(lambda a: count(a, 200), x, "recursion", "count(a, n - 1)")


def halves(a):
    if len(a) == 1:
        return a
    even, odd = halves(a[::2]), halves(a[1::2])
    return np.concatenate([even + odd * 0.5, even - odd * 0.5])


def test_a_recursion_that_doubles_is_not_followed_to_its_end():
    """A tree of calls would be one graph of thousands of operations."""
    a = np.arange(256.0)
    compiled = tcompile.compile(halves)
    for _ in range(3):
        np.testing.assert_array_equal(compiled(a), halves(a))
    assert "recursion" in {broke.reason.id for broke in compiled.cache.breaks}
    assert max(len(graph.nodes) for graph in compiled.graphs) < 200
    followed = tcompile.compile(halves, fullgraph=True)  # which asks for one graph
    np.testing.assert_array_equal(followed(a[:16]), halves(a[:16]))


def test_star_recursion():
    def f(*args):
        return args[0] if len(args) == 1 else args[0] + f(*args[1:])

    whole(lambda a: f(a, a, 2.0, 1), x, ops=2)


@tcompile.compile(backend="eager")
def compiled_itself(v=1):
    return v


class WithCompiled:
    @tcompile.compile(backend="eager")
    def method(self):
        return 3


def test_compiled_callables_leave_as_themselves():
    def f(c):
        g = compiled_itself
        return g, [g], type(g), c.method, WithCompiled.method, functools.partial(g, 2), g(4), c.method(), g.__name__

    c = WithCompiled()
    with tcompile.config.patch(stress_capture=True):
        made = tcompile.compile(f, backend="eager")
        for _ in range(2):
            got, want = made(c), f(c)
            assert got[:5] == want[:5] and got[0] is compiled_itself and got[4] is WithCompiled.method
            assert got[5].func is compiled_itself and got[6:] == want[6:]
    assert not made.breaks


def test_a_global_function_defined_again_with_the_same_code():
    """Two entries serve any number of definitions."""
    text = "def inner(a, scale=2.0):\n    return a * scale + SHIFT\n"
    names = {"np": np, "SHIFT": 1.0}
    again = compile(text, "<again>", "exec")
    exec(again, names)
    exec("def outer(a):\n    return inner(a).sum()", names)
    outer = tcompile.compile(names["outer"])
    for _ in range(20):
        exec(again, names)
        assert outer(np.ones(4)) == 12.0
    assert len(outer.entries) <= 2
    names["inner"].__defaults__ = (3.0,)
    assert outer(np.ones(4)) == 16.0
    exec(text.replace("+", "-"), names)
    assert outer(np.ones(4)) == 4.0
