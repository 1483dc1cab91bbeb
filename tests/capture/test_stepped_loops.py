"""Loops that print now and then run in the frame: single iterations are compiled, not all up to the print."""

from __future__ import annotations

import numpy as np
import pytest
from differential import check

import tcompile


def spread(x):
    x[1:-1] += 0.1 * (x[:-2] - 2 * x[1:-1] + x[2:])


def until_a_time(x, stop, every):
    t, step, dt = 0.0, 0, 0.01
    while t < stop:
        spread(x)
        t += dt
        step += 1
        if step % every == 0:
            print(step, x.max())
    return x, t, step


def over_a_range(x, stop, every):
    for step in range(int(stop * 100)):
        spread(x)
        if step % every == every - 1:
            print(step, x.max())
    return x


def until_broken_off(x, stop, every):
    step = 0
    while True:
        step += 1
        if step % 3 == 0:
            x *= 0.5
            continue
        spread(x)
        if step % every == 0:
            print(step)
        if step >= stop * 100:
            break
    else:
        x[:] = 0
    return x, step


def the_first_is_told(x, stop, every):
    told, t = False, 0.0
    while t < stop:
        if not told:
            print("begins", every)
            told = True
        spread(x)
        t += 0.01
    return x, t


def inside_of_others(x, stop, every):
    n = 0
    while n < 6:
        k = 0
        while k < stop * 20:
            spread(x)
            k += 1
            if (k + n) % every == 0:
                print(n, k)
        for j in range(5):
            x = x * 0.9
        n += 1
    return x


def told_from_below(x, stop, every):
    def report(step, x):
        if step % every == 0:
            print(step, x.max())

    step = 0
    while step < stop * 100:
        spread(x)
        step += 1
        report(step, x)
    return x


LOOPS = [until_a_time, over_a_range, until_broken_off, the_first_is_told, inside_of_others, told_from_below]


@pytest.mark.recompile_limit(16)
@pytest.mark.parametrize("every", [1, 2, 7, 30, 1000])
@pytest.mark.parametrize("loop", LOOPS)
def test_as_in_plain_python(loop, every):
    for stop in (0.6, 0.0, 0.35):
        check(loop, lambda stop=stop: (np.arange(12.0) % 5, stop, every), calls=2)


@pytest.mark.parametrize("loop", [until_a_time, over_a_range, the_first_is_told, inside_of_others])
def test_graphs_stay_small(loop):
    compiled = tcompile.compile(loop)
    for _ in range(3):
        compiled(np.arange(12.0) % 5, 0.8, 20)
    assert compiled.entries
    assert all(entry.graph is None or entry.graph.op_count <= 60 for entry in compiled.entries)
    assert len(compiled.entries) <= 12


def test_a_graph_that_has_to_be_whole_has_all_iterations():
    for loop in (until_a_time, over_a_range):
        check(loop, lambda: (np.arange(12.0) % 5, 0.12, 1000), fullgraph=True)


def grows(x, n):
    while len(x) < n:
        x = np.concatenate([x, x[:2] * 0.5])
    return x


def along_links(x, n):
    links = None
    for k in range(n):
        links = (k, links)
    link = links
    while link is not None:
        k, link = link
        x = np.concatenate([x, x[:1] + k])
    return x


@pytest.mark.recompile_limit(64)
@pytest.mark.parametrize("loop", [grows, along_links])
def test_while_loops_are_written_out_up_to_the_limit(loop):
    """Also on 3.11, where a test ends each iteration with a jump back."""
    with tcompile.config.patch(max_unrolled=20):
        check(loop, lambda: (np.arange(4.0), 60), calls=2)
        tcompile.reset()
        compiled = tcompile.compile(loop)
        compiled(np.arange(4.0), 60)
        assert all(entry.graph is None or entry.graph.op_count <= 40 for entry in compiled.entries)


@pytest.mark.parametrize("product", [lambda a, x: a @ x, lambda a, x: a.dot(x), lambda a, x: np.dot(a, x)])
def test_columns_of_products_are_stored_in_place_whatever_the_size(product):
    """With a copy of the whole array in each iteration, the time is quadratic in the trip count."""

    def columns(a, n):
        x, v = np.zeros((4, n + 1)), np.ones((4, n))
        for t in range(n):
            x[:, t + 1] = product(a, x[:, t]) + v[:, t]
        return x

    a, compiled = np.arange(16.0).reshape(4, 4) / 64, tcompile.compile(columns)
    for n in (20, 30, 45):
        np.testing.assert_allclose(compiled(a, n), columns(a, n), rtol=1e-13)
    assert compiled.entries[0].compiled_graph.iterations == {"machine code"}
    assert "s0" in compiled.entries[0].graph.code
