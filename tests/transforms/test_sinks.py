"""Views that branches and loops inside of iterations only read are made there: what is given is the array."""

from __future__ import annotations

import numpy as np
import pytest
from differential import check

import tcompile
from tcompile.observe import bus
from tcompile.observe.events import LoopDecided


def limited(x):
    if x.min() < -2:
        return np.zeros_like(x)
    return np.sqrt(x - x.min())


def rows_with_a_branch(a, n):
    out = []
    for row in a[:n]:
        out.append(limited(row).sum())
    return out


def columns(a, n):
    total = np.zeros(a.shape[0])
    for k in range(n):
        column = a.T[k][::-1]
        if column[0] > 0:
            total += column
        else:
            total -= column * 2
    return total


def inner_loops(a, n):
    best = np.zeros(n)
    for k in range(n):
        row = a[k, 1:]
        for j in range(9):
            best[k] += np.abs(row - j).min()
            if best[k] > 6:
                break
    return best


def parts_that_are_written(a, n):
    for k in range(1, n):
        row = a[k]
        if a[k - 1].sum() > 0:
            row *= 0.5
            a[k - 1] = row
        a[0] += row
    return a


def read_and_written(a, n):
    """The row is the array's as it was before the branch, also where that has changed it."""
    kept = np.zeros(a.shape[1])
    for k in range(1, n):
        row = a[k].copy()
        view = a[k - 1]
        if view.max() > 1:
            a[k - 1] = 0
            kept = kept + view + row
        else:
            kept = kept - view
    return kept, a


def handed_on(a, n):
    last = a[0]
    for k in range(1, n):
        row = a[k]
        if row[0] > last[0]:
            last = row
    return last


LOOPS = [rows_with_a_branch, columns, inner_loops, parts_that_are_written, read_and_written, handed_on]


@pytest.mark.parametrize("dynamic", [None, True])
@pytest.mark.parametrize("loop", LOOPS)
def test_as_in_plain_python(loop, dynamic):
    for rows, n in ((14, 12), (20, 20), (9, 8)):
        a = np.random.default_rng(rows).integers(-8, 9, (rows, 7 + n)) / 4.0
        check(loop, lambda a=a, n=n: (a.copy(), n), dynamic=dynamic)


@pytest.mark.parametrize("loop", [rows_with_a_branch, columns, inner_loops])
def test_iterations_with_views_run_in_machine_code(loop):
    events = []
    with bus.listening(events.append):
        tcompile.compile(loop)(np.random.default_rng(0).normal(size=(30, 40)), 20)
    told = {(event.outcome, event.reason) for event in events if isinstance(event, LoopDecided)}
    assert ("machine code", "") in told
    assert not [reason for outcome, reason in told if outcome == "python iterations"]


def test_what_keeps_iterations_from_machine_code_is_told():
    def f(a, n):
        total = np.zeros(a.shape[1])
        for k in range(n):
            row = a[k]
            if row.sum() > 0:
                row = row * 2  # after the branch it is one or the other
            total += row
        return total

    events = []
    with bus.listening(events.append):
        tcompile.compile(f)(np.random.default_rng(0).normal(size=(30, 40)), 20)
    told = [event.reason for event in events if isinstance(event, LoopDecided) and event.outcome == "python iterations"]
    assert told == ["they carry a part of an array"]
