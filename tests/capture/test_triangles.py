"""Loops whose parts shrink or grow from iteration to iteration, and are empty in the first or the last one."""

from __future__ import annotations

import numpy as np
import pytest
from differential import assert_same, check

import tcompile

from .loop_cases import ops


def elimination(a, b, n):
    for k in range(n):
        for i in range(k + 1, n):
            factor = a[i, k] / a[k, k]
            a[i, k:] -= factor * a[k, k:]
            b[i] -= factor * b[k]
    return a, b


def elimination_of_numbers(a, b, n):
    for k in range(n):
        for i in range(k + 1, n):
            factor = a[i, k] / a[k, k]
            for j in range(k, n):
                a[i, j] -= factor * a[k, j]
            b[i] -= factor * b[k]
    x = np.zeros(n)
    for i in range(n - 1, -1, -1):
        rest = b[i]
        for j in range(i + 1, n):
            rest -= a[i, j] * x[j]
        x[i] = rest / a[i, i]
    return x


def orthogonal(a, b, n):
    q, r = np.zeros_like(a), np.zeros((n, n))
    for k in range(n):
        r[k, k] = np.sqrt(np.dot(a[:, k], a[:, k]))
        q[:, k] = a[:, k] / r[k, k]
        for j in range(k + 1, n):
            r[k, j] = np.dot(q[:, k], a[:, j])
            a[:, j] -= q[:, k] * r[k, j]
    return q, r


def products_of_columns(a, b, n):
    for i in range(n):
        for j in range(n):
            b[i] += np.dot(a[i + 1 :, i], a[i + 1 :, j]) * 0.125
    return b


def backwards(a, b, n):
    y, alpha, beta = np.empty_like(b), -b[0], 1.0
    y[0] = alpha
    for k in range(1, n):
        beta *= 1.0 - alpha * alpha / 512
        alpha = -(b[k] + np.dot(np.flip(b[:k]), y[:k])) / beta
        y[:k] += alpha * np.flip(y[:k]) / 64
        y[k] = alpha
    return y


def tails(a, b, n):
    made = np.zeros(n)
    for i in range(n):
        made[i] = b[i + 1 :].sum() + b[i + 1 :].prod() / 256 + (b[i + 1 :] > 0).any()
    return made


def heads(a, b, n):
    made = np.zeros(n)
    for i in range(n):
        made[i] = b[:i].sum() + b[:i] @ b[:i] + np.dot(a[:i, 0], a[:i, 1])
    return made


def rows_after(a, b, n):
    for i in range(n):
        for row in a[i + 1 :]:
            b += row * a[i] * 0.125
    return b


def three_deep(a, b, n):
    for i in range(n):
        for j in range(i + 1, n):
            for k in range(j + 1, n):
                a[k, j:] += a[i, j] * a[j, j:] * 0.125
    return a


def from_the_end(a, b, n):
    for i in range(n):
        for j in range(n - 1, i, -1):
            a[i] += a[j] * 0.125
    return a


def corners(a, b, n):
    for i in range(n):
        a[i, i + 1 :] = b[i + 1 :] * 2
        a[i + 1 :, i] = a[i, i + 1 :]
        a[i + 1 :, i + 1 :] -= np.outer(a[i + 1 :, i], a[i, i + 1 :]) * 0.125
    return a


def products_of_parts(a, b, n):
    made = np.zeros((n, n))
    for i in range(n):
        made[i] = b[i + 1 :] @ a[i + 1 :]
        made[:, i] += a[:, :i] @ b[:i]
    return made


def bubbles(a, b, n):
    for i in range(n):
        for j in range(n - 1 - i):
            if b[j] > b[j + 1]:
                b[j], b[j + 1] = b[j + 1], b[j]
    return b


def factors(a, b, n):
    for k in range(n):
        a[k + 1 :, k] /= a[k, k]
        a[k + 1 :, k + 1 :] -= np.outer(a[k + 1 :, k], a[k, k + 1 :])
    return a


def factors_by_products(a, b, n):
    for k in range(n):
        a[k + 1 :, k] /= a[k, k]
        a[k + 1 :, k + 1 :] -= a[k + 1 :, k : k + 1] @ a[k : k + 1, k + 1 :]
    return a


def reflections(a, b, n):
    made = np.zeros((n, n))
    for k in range(n - 1):
        v = a[k:, k].copy()
        v[0] += np.copysign(np.linalg.norm(v), v[0])
        v /= np.linalg.norm(v)
        made[k, k:] = v
        a[k:, k:] -= 2 * np.outer(v, v @ a[k:, k:])
    return a, made


NATIVE = (factors, factors_by_products, reflections, elimination, orthogonal, products_of_columns, backwards, corners)
NODES = (*NATIVE, elimination_of_numbers, tails, heads, rows_after,
         three_deep, from_the_end, products_of_parts, bubbles)  # fmt: skip


def arguments(n):
    random = np.random.default_rng(n)
    return random.normal(size=(n, n)) + n * np.eye(n), random.normal(size=n), n


@pytest.mark.parametrize("f", NODES)
def test_iterations_that_have_nothing_to_do_are_iterations_of_a_node(f, monkeypatch):
    monkeypatch.setattr("tcompile.capture.loops.trace_loop.FEW_OPERATIONS", 0)
    for n in (9, 12):
        check(f, lambda n=n: arguments(n), ulp=64)
    compiled = tcompile.compile(f, backend="llvm")
    compiled(*arguments(12))
    assert not compiled.breaks and set(ops(compiled)) & {"fori_loop", "scalar_loop"}


@pytest.mark.parametrize("f", NATIVE)
def test_machine_code_runs_them(f):
    found = tcompile.explain(f)(*arguments(20)).loops
    assert found and all("machine code" in text for text in found)


def highest_after(a, b, n):
    for i in range(n):
        b[i] = b[i + 1 :].max()
    return b


def mean_after(a, b, n):
    made = np.zeros(n)
    for i in range(n):
        made[i] = b[i + 1 :].mean()
    return made


def first_after(a, b, n):
    for i in range(n):
        b[i] = b[i + 1 :][0]
    return b


def left_after(a, b, n):
    for i in range(n):
        for j in range(i + 1, n):
            t = a[j] * 2
            a[i] += t
    return a, t, j, i


def left_after_each_time(a, b, n):
    t = b
    for i in range(n):
        for j in range(i + 1, n):
            t = a[j] * 2
        a[i] += t
    return a, t


def last_number(a, b, n):
    j = 100
    for i in range(n):
        for j in range(i + 1, n):
            a[i] += a[j] * 0.125
        b[i] += j
    return a, b


def leaves_early(a, b, n):
    for i in range(n):
        for j in range(i + 1, n):
            if a[j].sum() < b[j]:
                break
            a[i] += a[j] * 0.125
        else:
            b[i] *= 2
    return a, b


def a_view_or_new(a, b, n):
    for i in range(n):
        row = a[i]
        for j in range(i + 1, n):
            row = row * 0.5
        row[0] = 7
    return a


def an_array_or_new(a, b, n):
    for i in range(n):
        y = a
        for j in range(i + 1, n):
            y = y * 0.5
        y[0] = i
        a = a + 1
    return a, y


def the_same_or_new(a, b, n):
    z = a
    for i in range(n):
        y = a
        for j in range(i + 1, n):
            y = y * 0.5
        z = y
    return z, z is a


def always_its_own(a, b, n):
    y = a.copy()
    for i in range(n):
        for j in range(i + 1, n):
            y = y * 0.5 + a[j]
        y[0] += 1
    return a, y


@pytest.mark.parametrize("f", [
    highest_after, mean_after, first_after, left_after, left_after_each_time, last_number, leaves_early,
    a_view_or_new, an_array_or_new, the_same_or_new, always_its_own,
])  # fmt: skip
def test_what_is_left_where_there_is_nothing_to_do(f, monkeypatch):
    monkeypatch.setattr("tcompile.capture.loops.trace_loop.FEW_OPERATIONS", 0)
    for n in (9, 12):
        check(f, lambda n=n: arguments(n), ulp=64)


def test_one_compile_serves_all_sizes():
    compiled = tcompile.compile(orthogonal, dynamic=True)
    for n in (12, 20, 31):
        assert_same(compiled(*arguments(n)), orthogonal(*arguments(n)), ulp=64)
    assert len(compiled.entries) == 1
