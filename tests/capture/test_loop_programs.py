"""Generated programs with loops. ``python tools/fuzz.py --kind loops`` runs many of them."""

from __future__ import annotations

import textwrap
from random import Random

import pytest

from .loop_check import Plan, nodes_of, program


@pytest.mark.parametrize("first", range(100, 148, 8))
def test_generated_loops(first):
    found = 0
    for seed in range(first, first + 8):
        random = Random(seed)
        source = program(random)
        for backend in ("eager", "llvm"):
            found += nodes_of(source, Plan.random(random, backend)) or 0
    assert found


FOUND = [  # by long runs of the generator
    # What one attempt at a capture has learned of a loop's limit is said in symbols that the next attempt calls alike.
    """
    def f(a, b, n):
        for i in range(n):
            a *= 1
            j = 0
            while n > j:
                j += 1
                a = 1
                b = b + i
            if np.all(1):
                pass
        return b
    """,
    # Parts of an array that a graph writes, one of which is known only when it runs.
    """
    def f(a, b, n):
        c = a
        j = 0
        while 1:
            j += 1
            b[0] = 1
            b[j] = 1
            for e in range(7):
                c[1] = 1
            if np.all(1):
                pass
    """,
    # An array of the caller's that no iteration binds anew, where a test ends each of them.
    """
    def f(a, b, n):
        c = a.copy()
        i = 1
        while c[0] and 6 > i:
            i += 1
            if b[1]:
                continue
            a = a * 1
        return a, 1
    """,
    # What the last iteration began with is the caller's array where there is one iteration only.
    """
    def f(a, b, n):
        for i in range(n):
            c, a = a, a * 1
        return c, i
    """,
    # What a loop carries into a loop inside, which is left at once, is the caller's array in the first iteration.
    """
    def f(a, b, n):
        for i in range(n):
            for j in range(n):
                if np.any(1):
                    break
                b, a = 1, a * 1
            a[1] = 1
        return a, b
    """,
    # Loops over elements of what cannot be written to leave nothing behind.
    """
    def f(a, b, n):
        c = a
        i = int(b[1] > 0) - 1
        while n > i and c[2]:
            i += 1
            for e in range(1, i):
                b[1] = b[1] + 1
                a[1] = 1
        return c
    """,
    # What a side of a branch may hand on as it was is the array that another variable is given by the same iteration.
    """
    def f(a, b, n):
        b = a * 1
        for i in range(n):
            c = b
            if c.sum() < 1:
                c = c + 1
            a, b = b, c
        return (a is b,)
    """,
    # What a side of a branch may hand on as it was is not what the variable holds that had it before.
    """
    def f(a, b, n):
        c = a
        for i in range(n):
            d = b
            if b[1]:
                d = b * 0.5
            c, b = b, d
        return (c,)
    """,
    # Two variables take the array that a branch may have made.
    """
    def f(a, b, n):
        for i in range(n):
            if i < 4:
                b
            else:
                a = a * 0.5
            b = a
        return a, b
    """,
    # By how much an int grows is told by one iteration that is done apart, and is 0 in another.
    """
    def f(a, b, n):
        k = 1
        for i in range(6):
            for j in range(i + 1):
                a * 1
                k += i
        return (k,)
    """,
]


@pytest.mark.parametrize("source", FOUND)
def test_programs_that_showed_a_difference(source):
    for backend in ("eager", "llvm"):
        assert nodes_of(textwrap.dedent(source), Plan(backend, (7, 8, 1, 0))) is not None
        assert nodes_of(textwrap.dedent(source), Plan(backend, (20, 6))) is not None
