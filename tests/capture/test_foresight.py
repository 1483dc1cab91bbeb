"""What loops hand on is told from their instructions, so that a capture is one attempt."""

from __future__ import annotations

import numpy as np
import pytest
from differential import check

import tcompile
from tcompile.capture.loops import trace_loop


def fill(to, x, n):
    to[1:-1] = x[:-2] * 0.5 + n
    to[0] += 1
    to[2:] *= 0.5


def steps(x, y, n):
    for i in range(n):
        y[i, 1:-1] = x[i, 2:]
        for j in range(1, n):
            y[j, 1:] += x[j - 1, 1:] * 0.5
        x += y
    return x, y


def fresh(x, y, n):
    total = x[0, 0]
    for i in range(n):
        y = y + x[i]
        total = total + x[i, i] * 0.5
    return y, total


def called(x, y, n):
    z = y * 0
    for i in range(n):
        fill(y[i] if i < 0 else z, x[i], i)
        fill(y, x, i)
    return x, y, z


def called_plainly(x, y, n):
    for i in range(n):
        old = y.copy()
        fill(y, old, i)
        fill(x, y, 1)
    return x, y


def not_what_it_seems(x, y, n):
    z, w = x, [x, y]
    for i in range(n):
        row = y[i]
        row[1:] *= 0.5
        z[i] = row + 1
        w[i % 2][0] += 0.25
    return x, y, z


def exchanged(x, y, n):
    for i in range(n):
        y[1:] = x[:-1] * 0.5 + i
        x, y = y, x
    return x, y


def bound_and_written(x, y, n):
    for i in range(n):
        x = x * 0.5
        x[0] = i
    return x


def counts(x, y, n):
    k = 0
    for i in range(n):
        k += 2
        x[i] += k
    return x, k


def arguments():
    return np.arange(144.0).reshape(12, 12) % 7, np.ones((12, 12)), 12


PROGRAMS = (steps, fresh, called, called_plainly, not_what_it_seems, exchanged, bound_and_written, counts)


@pytest.mark.parametrize("f", PROGRAMS)
def test_what_is_foreseen_and_what_is_not(f, monkeypatch):
    monkeypatch.setattr("tcompile.capture.loops.trace_loop.FEW_OPERATIONS", 0)
    check(f, arguments, exact=True)


@pytest.mark.parametrize(("f", "looks"), [(steps, 0), (fresh, 0), (called_plainly, 0), (counts, 1)])
def test_what_is_foreseen_is_captured_once(f, looks, monkeypatch):
    monkeypatch.setattr("tcompile.capture.loops.trace_loop.FEW_OPERATIONS", 0)
    again, restarts = trace_loop.Loop.again, []

    def counted(self, **learned):
        restarts.append(learned)
        again(self, **learned)

    monkeypatch.setattr(trace_loop.Loop, "again", counted)
    tcompile.compile(f, fullgraph=True)(*arguments())
    assert len(restarts) == looks


def stores_apart(x, n):
    for _ in range(n):
        for k in range(6):
            x[k] = x[k - 1] * 0.5 + x[k + 1]
    return x


def sums_up(x, n):
    for _ in range(n):
        y = x * 0.25
        for k in range(6):
            y = y + x[k] * 0.125
        x = y
    return x


def test_only_iterations_that_fuse_are_unrolled_inside_of_a_loop():
    for f, loops_inside in ((stores_apart, 1), (sums_up, 0)):
        compiled = check(f, lambda: (np.arange(96.0).reshape(8, 12), 30), backends=("llvm",), ulp=64)[0]
        (loop,) = [node for graph in compiled.graphs for node in graph.nodes if node.op.name == "fori_loop"]
        assert [node.op.name for node in loop.regions[0].nodes].count("fori_loop") == loops_inside
