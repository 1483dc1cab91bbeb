"""Loops over elements that read the characters of texts, and those that count along."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import tcompile
from tests.differential import Run, assert_same_run

WORD = "the quick brown fox"
TEXTS = ["kitten", "sitting", "saturday", "sunday", "intention", "execution", "", "a", "ACGT" * 9, "naïve 𝄞 çà\ud800"]


class Text(str):
    pass


def longest_common(a, b):
    found = np.zeros((len(a) + 1, len(b) + 1), int)
    for i in range(len(a)):
        for j in range(len(b)):
            found[i + 1, j + 1] = found[i, j] + 1 if a[i] == b[j] else max(found[i, j + 1], found[i + 1, j])
    return found


def edit_distance(s, t):
    d = np.zeros((len(s) + 1, len(t) + 1), int)
    d[:, 0], d[0] = np.arange(len(s) + 1), np.arange(len(t) + 1)
    for i, a in enumerate(s, 1):
        for j, b in enumerate(t, 1):
            d[i, j] = min(d[i - 1, j] + 1, d[i, j - 1] + 1, d[i - 1, j - 1] + (a != b))
    return d


def in_rows(s, t):
    before = np.arange(len(t) + 1)
    for i, a in enumerate(s, 1):
        row = np.empty_like(before)
        row[0] = i
        for j, b in enumerate(t, 1):
            row[j] = min(before[j] + 1, row[j - 1] + 1, before[j - 1] + (a != b))
        before = row
    return before


def kinds(s, t):
    found = np.zeros(6, int)
    for i in range(len(s)):
        c = s[i]
        if c in "aeiou":
            found[0] += 1
        elif c == " " or c == "ab":
            found[1] += 1
        elif "a" <= c <= "z" and ord(c) % 2:
            found[2] += 1
        elif c != s[-1]:
            found[3] += ord(c)
        else:
            found[4] += i
    for c in t:
        found[5] += ord(c) * (c > "m")
    return found


def counted(s, t):
    table = np.zeros(1 << 18, np.int64)
    for c in s:
        table[ord(c)] += 1
    total = 0
    for c in t:
        total += table[ord(c)]
    return total


def first_difference(s, t):
    where = np.full(1, -1)
    for i in range(min(len(s), len(t))):
        if s[i] != t[i]:
            where[0] = i
            break
    return where


def too_far(s, t):
    found = np.zeros(3, int)
    for i in range(len(s) + 1):
        if s[i] == "i":
            found[0] += 1
    return found


def with_a_global(s, t):
    found = np.zeros(len(WORD), int)
    for i in range(len(WORD)):
        for j in range(len(s)):
            if WORD[i] == s[j]:
                found[i] += j
    return found


def same(a, b):
    return a == b


def through_functions(s, t, alphabet="aeiout"):
    found = np.zeros(len(alphabet), int)
    for k in range(len(alphabet)):
        for i in range(len(s)):
            if same(s[i], alphabet[k]):
                found[k] += 1
    return found, len(s) + len(t), s


def left_after(s, t):
    found, c = np.zeros(2, int), "?"
    for i in range(len(s)):
        c = s[i]
        found[0] += ord(c)
    return found, c


def in_a_closure(s, t):
    def told(x):
        for i in range(len(s)):
            x[i % 3] += s[i] == t
        return x

    return told(np.zeros(3, int))


@pytest.mark.parametrize("backend", ["eager", "llvm"])
@pytest.mark.recompile_limit(1000)
@pytest.mark.parametrize("function", [
    longest_common, edit_distance, in_rows, kinds, counted, first_difference, too_far, with_a_global,
    through_functions, left_after, in_a_closure,
])  # fmt: skip
def test_texts(function, backend):
    tcompile.reset()
    compiled = tcompile.compile(function, backend=backend)
    for s in TEXTS:
        for t in TEXTS[::-3]:
            assert_same_run(Run(compiled, (s, t)), Run(function, (s, t)))
    for s in (b"bytes", ["l", "i", "st"], Text("subclass"), ("a", "b"), None, 3):
        assert_same_run(Run(compiled, (s, "text")), Run(function, (s, "text")))


@pytest.mark.parametrize("function", [longest_common, edit_distance])
def test_one_entry_serves_all_texts(function):
    tcompile.reset()
    compiled = tcompile.compile(function, backend="llvm")
    for s, t in itertools.pairwise(TEXTS[:6]):
        np.testing.assert_array_equal(compiled(s, t), function(s, t))
    assert len(compiled.entries) <= 3
    assert all("scalar_loop" in [node.op.name for node in graph.nodes] for graph in compiled.graphs)


def pairs(x):
    total = 0.0
    for i, a in enumerate(x):
        for k, b in enumerate(x, 2):
            if k in (2, 5) or i not in (1, 2.0, True):
                total += a * b * i
        for k, j in enumerate(range(3, 9, 2), i):
            total -= k * j
    return total


@pytest.mark.parametrize("dtype", ["f8", "f4", "i8", "u1"])
def test_numbers_along_arrays(dtype):
    tcompile.reset()
    compiled = tcompile.compile(pairs, backend="llvm")
    for n in (7, 9, 0, 1, 30):
        assert_same_run(Run(compiled, (np.arange(n).astype(dtype),)), Run(pairs, (np.arange(n).astype(dtype),)))


def test_numbers_that_grow_too_large():
    def function(x, start):
        total = 0
        for k, v in enumerate(x, start):
            total = k
            x[0] += v
        return total

    tcompile.reset()
    compiled = tcompile.compile(function, backend="llvm")
    for start in (0, 1, (1 << 61), (1 << 62) - 3, (1 << 63) - 3, -(1 << 70), True):
        assert_same_run(Run(compiled, (np.ones(9), start)), Run(function, (np.ones(9), start)))


def test_iterations_over_a_text_that_varies_are_compiled_once():
    """The first text is gone through in the graph; from the second one on that is Python's, for any text."""
    tcompile.reset()
    compiled = tcompile.compile(in_rows, backend="llvm")
    words = [word for word in TEXTS if len(word) > 5]
    for s, t in itertools.product(words, words):
        np.testing.assert_array_equal(compiled(s, t), in_rows(s, t))
    count = len(compiled.entries)
    for s, t in itertools.product(["another", "unheard", "word"], words):
        np.testing.assert_array_equal(compiled(s, t), in_rows(s, t))
    assert len(compiled.entries) == count
    assert not any(region.limit_warned for region in (compiled.cache.first, *compiled.cache.regions.values()))
