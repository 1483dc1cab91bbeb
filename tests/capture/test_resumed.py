"""Frames that go on in place after a break: what must hold across it."""

from __future__ import annotations

from differential import check

import tcompile

from .helpers import X


@tcompile.disable
def opaque(value):
    """Hands back its argument; capture stops at its call."""
    return value


def same(f, *args):
    """Checks a function on each of some tuples of arguments, given one after another to one compiled function."""
    waiting = []

    def make():
        if not waiting:
            waiting.extend([a for a in args for _ in (0, 1)])  # a plain call and a compiled one
        return [a.copy() if a is X else a for a in waiting.pop(0)]

    with tcompile.config.patch(stress_capture=True):
        check(f, make, backends=("eager",), calls=2 * len(args))


def test_a_variable_that_an_earlier_iteration_deleted():
    def deletes(a, n):
        for i in range(n):
            opaque(i)
            del a

    def moves(a, n):
        b = None
        for i in range(n):
            opaque(i)
            b = [b, a]
            if opaque(i):
                del a
        return b

    for f in (deletes, moves):
        same(f, (X, 1), (X, 2), (X, 3))


def test_a_closure_variable_that_an_earlier_iteration_deleted():
    def f(a, n):
        for i in range(n):
            opaque(i)
            del a
        return lambda: a  # noqa: F821

    def calls(a, n):
        try:
            return f(a, n)()
        except NameError as error:
            return str(error)

    same(calls, (X, 0), (X, 1), (X, 2), (X, 3))
    same(f, (X, 2), (X, 3))


def test_an_enumeration_from_what_is_no_int_raises_in_the_program():
    def f(a, start):
        for i, row in enumerate(a, start):
            a = a + i + row
        return a

    same(f, (X, 1), (X, "a"))
    try:
        tcompile.compile(f, backend="eager")(X, "a")
    except TypeError as error:
        frames = []
        trace = error.__traceback__
        while trace is not None:
            frames.append(trace.tb_frame.f_code.co_name)
            trace = trace.tb_next
        assert frames[-1] == "f"
