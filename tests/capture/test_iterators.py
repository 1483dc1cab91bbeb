"""Iterators that are held by a name, a container or a closure have moved on as far as the loops along them went."""

from __future__ import annotations

import numpy as np
import pytest

from tests.differential import check

N = 40


def grid(start=0.0):
    return np.arange(float(N)) + start


def after_a_break(x):
    pairs = enumerate(x)
    for i, v in pairs:
        x[i] += 1
        if v == 20:
            break
    return next(pairs)


def of_numbers(x):
    numbers = iter(range(N))
    for i in numbers:
        x[i] += 1
        if x[i] == 20:
            break
    return next(numbers), list(numbers)


def of_elements(x):
    elements = iter(x)
    for v in elements:
        x[int(v)] += 1
        if x[int(v)] == 20:
            break
    return next(elements)


def gone_through(x):
    n = 0
    for j in range(N):
        pairs = enumerate(x)
        for _ in pairs:
            n += 1
        for _ in pairs:
            n += 1000
        x[j] = n
    return n


def nothing_left(x):
    pairs = enumerate(x)
    for i, _ in pairs:
        x[i] += 1
    return list(pairs)


def of_a_text(x, text="a" * 30 + "bcd"):
    letters, i = iter(text), 0
    for c in letters:
        x[i] += 1
        i += 1
        if c == "b":
            break
    return next(letters)


def the_rest(x):
    numbers, s = iter(range(N)), 0.0
    for i in numbers:
        s += x[i]
        if s > 20:
            break
    for i in numbers:
        s -= x[i]
    return s


def twice_along_it(x):
    pairs = enumerate(x)
    both = zip(pairs, pairs, strict=False)
    for i, v in pairs:
        x[i] += 1
        if v == 20:
            break
    return next(both)


def inner(pairs, x):
    for i, v in pairs:
        x[i] += 1
        if v == 20:
            return i
    return -1


def of_the_caller(x):
    pairs = enumerate(x)
    return inner(pairs, x), inner(pairs, x), next(pairs, None)


def in_a_list(x):
    elements, s = iter(x), 0.0
    held = [elements]
    for v in elements:
        s += v
        if s > 50:
            break
    return s, next(held[0])


def in_a_dict_to_its_end(x):
    elements, s = iter(x), 0.0
    held = {"a": elements}
    for v in elements:
        s += v
    return s, next(held["a"], 7)


def in_a_closure(x):
    elements = iter(x)

    def following():
        return next(elements, -1)

    def run():
        s = 0.0
        for v in elements:
            s += v
            if s > 50:
                return s
        return s

    return run(), following(), run(), following()


def begun_before(x):
    elements = iter(x)
    first, s = next(elements), 0.0
    for v in elements:
        s += v * (first + 1)
    for _ in elements:
        s += 100
    return s


def one_an_element(x):
    numbers = iter(range(100))
    for i in range(N):
        x[i] += next(numbers)
    return x


def one_in_a_branch(x):
    numbers, k = iter(range(100)), 0
    for i in range(N):
        if x[i] > 10:
            k += next(numbers)
    return k


def in_every_iteration(x):
    for _ in range(3):
        pairs = enumerate(x)
        for i, v in pairs:
            x[i] += 1
            if v > 20:
                break
        for i, _ in pairs:
            x[i] -= 5
    return x.sum()


PROGRAMS = [
    after_a_break, of_numbers, of_elements, gone_through, nothing_left, of_a_text, the_rest, twice_along_it,
    of_the_caller, in_a_list, in_a_dict_to_its_end, in_a_closure, begun_before, one_an_element, one_in_a_branch,
    in_every_iteration,
]  # fmt: skip


@pytest.mark.parametrize("function", PROGRAMS)
def test_a_loop_moves_its_iterator_on_wherever_that_is_held(function):
    check(function, lambda: (grid(),))


def test_an_iterator_of_the_callers_moves_on():
    def f(x, pairs):
        for i, v in pairs:
            x[i] += 1
            if v > 20:
                break
        return x.sum(), list(pairs)

    check(f, lambda: (grid(), enumerate(grid())))


# -- dicts that change -------------------------------------------------------------------------------------------------


def new_key(d, key, x):
    keys = iter(d)
    d[key] = x
    return next(keys), x * 2


def new_key_and_values(d, key, x):
    values = iter(d.values())
    d[key] = x
    return next(values), x * 2


def new_key_and_the_rest(d, key, x):
    items = iter(d.items())
    next(items)
    d[f"{key}"] = x
    return list(items), x * 2


def after_the_last(d, key, x):
    keys = iter(d)
    got = next(keys)
    d[key] = x
    try:
        return got, next(keys)
    except (RuntimeError, StopIteration) as error:
        return got, type(error), x + 1


def same_keys(d, key, x):
    items = iter(d.items())
    d["a"] = x * 2
    return next(items)


@pytest.mark.parametrize("function", [new_key, new_key_and_values, new_key_and_the_rest, after_the_last, same_keys])
@pytest.mark.parametrize("key", ["a", "b"])
def test_an_iterator_begins_when_it_is_made(function, key):
    check(function, lambda: ({"a": 1}, key, grid()))
