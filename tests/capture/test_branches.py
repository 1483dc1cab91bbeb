"""Branches on values of the graph that stay in an iteration: each side is a loop of at most one iteration."""

from __future__ import annotations

import numpy as np
import pytest
from differential import check

import tcompile

from .loop_cases import each, line
from .test_exits import ops, told

# -- what becomes one node, with nothing done again in Python ----------------------------------------------------------


def skips_a_part(x, n):
    for i in range(n):
        x = x * 0.9
        if x.max() > 0.5:
            x = x - 0.1
        x = np.sqrt(x * x) + i
    return x


def is_tested_at_once(x, n):
    for i in range(n):
        if x.max() > 1:
            x = x * 0.5
        x = x + 0.1
    return x


def is_bound_by_the_branch_alone(x, n):
    """Whether the result is the argument itself only the graph's values tell."""
    for i in range(n):
        if x.sum() > 3.5:
            x = x * 0.75
    return x


def has_two_sides(x, n):
    big = small = 0
    for i in range(n):
        if x.max() > 1:
            x = x * 0.25
            big += 1
        else:
            x = x + 0.3
            small = small + i
    return x, big, small


def adapts_its_steps(y, t1, tolerance):
    t, h, steps = 0.0, 0.1, 0
    while t < t1:
        k1 = np.cos(3 * y) - y * t
        k2 = np.cos(3 * (y + h * k1)) - (y + h * k1) * (t + h)
        error = np.abs(h * (k2 - k1) / 2).max()
        if error < tolerance:
            y = y + h * (k1 + k2) / 2
            t = t + h
            steps += 1
            h = min(h * 1.5, 0.25)
        else:
            h = h * 0.5
    return y, t, steps


def binds_what_was_not_there(x, n):
    total = 0.0
    for i in range(n):
        if x[0] > 0.5:
            part = x * 0.5
            weight = 2.0
        else:
            part = x + 1
            weight = 0.5
        total = total + part.sum() * weight
        x = part - 0.25
    return x, total


def nests(x, n):
    kind = 0
    for i in range(n):
        if x.max() > 1:
            if x.min() < 0.5:
                x = x - 0.25
                kind = 1
            else:
                x = x * 0.5
                kind = 2
        elif x.sum() < 3:
            x = x + 0.5
        x = x * 1.25
    return x, kind


def of_two_tests(x, n):
    hits = 0
    for i in range(n):
        if x.max() > 1 and x.min() < 0.75:
            x = x - 0.5
            hits += 1
        if x[0] < 0 or x[1] > 2:
            x = np.abs(x) * 0.5
        x = x * 1.1 + 0.05
    return x, hits


def writes_into_an_array(x, n):
    y = np.zeros_like(x)
    for i in range(n):
        x = np.sin(x + 1)
        if x.max() > 0.9:
            y[1:] += x[:-1]
            y[0] = i
    return y


def writes_into_its_argument(x, n):
    for i in range(n):
        if x.max() > 1.5:
            x *= 0.5
        x += 0.25
    return x


def clips_a_gradient(w, n):
    norms = np.empty(n)
    for i in range(n):
        g = 2 * (w - 1) * np.exp(w)
        norm = np.sqrt((g * g).sum())
        if norm > 0.5:
            g *= 0.5 / norm
        w = w - 0.1 * g
        norms[i] = norm
    return w, norms


def keeps_the_best(x, n):
    best, at = np.inf, -1
    held = x.copy()
    for i in range(n):
        x = x * 0.9 + 0.01 * i
        value = float(np.abs(x - 0.9).sum())
        if value < best:
            best, at = value, i
            held = x.copy()
    return held, at


def has_a_loop_inside(x, n):
    for i in range(n):
        x = x + 0.3
        if x.max() > 1:
            for k in range(6):
                x = x * 0.9 - 0.01 * k
    return x


def leaves_from_a_branch_later(x, n):
    for i in range(n):
        x = x * 0.9
        if x.max() < 0.4:
            x = x + 0.05
        if x.max() < 0.2:
            break
    return x, i


def goes_on_from_a_branch(x, n):
    y = x * 0
    for i in range(n):
        x = x * 0.95
        if x.max() < 0.3:
            x = x + 0.5
            continue
        y = y + x
    return x, y


class Model:
    def __init__(self, x):
        self.x = x
        self.steps = 0

    def __eq__(self, other):
        return self.steps == other.steps and np.array_equal(self.x, other.x)

    __hash__ = None


def changes_an_object(x, n):
    model = Model(x * 1)
    for i in range(n):
        model.x = model.x + 0.25
        if model.x.max() > 1:
            model.x = model.x * 0.5
            model.steps += 1
    return model.x, model.steps


def counts_large(x, n):
    """The int has more than 64 bits in the end."""
    k = 1
    for i in range(n):
        x = x * 0.9 + 0.05
        if x.max() > 0.1:
            k = k * 3
    return x, k


def counts_unevenly(x, n):
    k = 1
    for i in range(n):
        k = (k * 3 + 1) % 7
        x = 0.5 * np.sin(x) + 0.1 * k
    return x, k


def asks_for_the_iteration(x, n):
    for i in range(n):
        x = 0.5 * np.sin(x) + (1 if i % 2 else 2)
        if i % 10 == 9:
            x = x - x.mean()
        if i == 17:
            x = x * 2
        elif i > 30:
            x = x + i // 3
    return x


def records_every_tenth_iteration(x, n):
    out = np.zeros((n // 10 + 1, len(x)))
    for i in range(n):
        x = 0.5 * np.sin(x) + 0.1
        if i % 10 == 9:
            out[i // 10] = x
    return out


def fills_as_it_goes(x, n):
    out, taken = np.zeros((n, 2)), 0
    for i in range(n):
        x = 0.5 * np.sin(x) + 0.1 * (i % 3) + 0.01 * x[(i * 3) % 8]
        if x.sum() > 2:
            out[taken, 0] = x[0]
            out[taken, 1] = i
            taken += 1
    return out, taken


def chooses(x, n):
    total = 0.0
    for i in range(n):
        x = 0.5 * np.sin(x) + (0.25 if x.max() > 0.5 else 2.0)
        total += x[0] if x[1] > 0.3 else x[2]
    return x, total


def hands_an_element_on(x, n):
    s = x[0]
    for i in range(n):
        x = 0.5 * np.sin(x + s)
        s = x[1]
    return x, s


def limited(x, limit):
    norm = np.sqrt((x * x).sum())
    if norm > limit:
        x = x * (limit / norm)
    return x


def sign_of(x):
    return 1.0 if x.sum() > 0 else -0.5


def returns_early(x):
    if x.max() > 1.2:
        return x * 0.5
    y = x + 0.125
    if y.min() < -1:
        return y + 1
    return y * 0.75


def calls_functions_that_branch(x, n):
    for i in range(n):
        x = limited(x * 1.3 - 0.1, 2.0) + 0.01 * sign_of(x)
        x = returns_early(x)
    return x


ONE_NODE = [
    skips_a_part, is_tested_at_once, is_bound_by_the_branch_alone, has_two_sides, binds_what_was_not_there, nests,
    of_two_tests, writes_into_an_array, writes_into_its_argument, clips_a_gradient, keeps_the_best, has_a_loop_inside,
    leaves_from_a_branch_later, goes_on_from_a_branch, changes_an_object, counts_unevenly,
    asks_for_the_iteration, records_every_tenth_iteration, fills_as_it_goes, chooses, calls_functions_that_branch,
]  # fmt: skip


@pytest.mark.parametrize("f", ONE_NODE, ids=lambda f: f.__name__)
@pytest.mark.parametrize("n", [40, 41])
def test_a_loop_with_branches_is_one_node(f, n):
    for scale in (0.01, 1.0, 3.0):
        for compiled in each(f, lambda scale=scale: (line() * scale, n)):
            assert not compiled.breaks, tcompile.explain(f)(line() * scale, n)
            assert not any(entry.replays for entry in compiled.entries)
            assert {"fori_loop", "exit_loop"} & {*ops(compiled)}
            tcompile.reset()


def test_an_element_that_iterations_hand_on_is_read_by_a_kernel():
    for compiled in each(hands_an_element_on, lambda: (line(), 40)):
        assert not compiled.breaks
    assert told(hands_an_element_on, line(), 40)[0].startswith("This loop stays a loop")
    assert any("machine code" in text for text in tcompile.explain(hands_an_element_on)(line(), 40).loops)


def test_steps_that_adapt():
    for tolerance in (1e-2, 1e-4):
        for compiled in each(adapts_its_steps, lambda tolerance=tolerance: (line(), 3.0, tolerance)):
            assert not compiled.breaks and not any(entry.replays for entry in compiled.entries)
            tcompile.reset()


@pytest.mark.parametrize("n", [20, 41, 60])
def test_an_int_of_more_than_64_bits_is_python_s(n):
    check(counts_large, lambda: (line() + 1, n), backends=("eager", "llvm"))


@pytest.mark.parametrize("n", [20, 41])
def test_a_computed_place_out_of_range_is_python_s(n):
    def f(x, n):
        out, taken = np.zeros(12), 0
        for i in range(n):
            x = x * 0.9 + 0.05 * i
            if x.max() > 0.1:
                out[taken] = i
                taken += 1
        return out

    check(f, lambda: (line(), n), backends=("eager", "llvm"))


# -- which object it is ------------------------------------------------------------------------------------------------


def first_and_last(x, n):
    first = x
    for i in range(n):
        if x.sum() > 3.5:
            x = x * 0.75
    return x, first


def first_and_last_of_two_loops(x, n):
    first = x
    for i in range(n):
        if x.sum() > 3.5:
            x = x * 0.75
    second = x
    for i in range(n):
        if x.sum() > 2.5:
            x = x * 0.5
        if x.sum() < 0.5:
            x = x * 2
    return x, second, first


def writes_to_the_first(x, n):
    first = x
    for i in range(n):
        if x.sum() > 3.5:
            x = x * 0.75
    first[0] = 9
    return x, first


def writes_to_the_last(x, n):
    first = x
    for i in range(n):
        if x.sum() > 3.5:
            x = x * 0.75
    x[0] = 9
    return x, first


def writes_in_each_iteration(x, n):
    first = x
    for i in range(n):
        if x.sum() > 3.5:
            x = x * 0.75
        first[1] = i * 0.001
    return x, first


def asks_in_each_iteration(x, n):
    first, same = x, 0
    for i in range(n):
        if x.sum() > 3.5:
            x = x * 0.75
        same = same + (x is first)
    return x, first, same


def asks_after(x, n):
    first = x
    for i in range(n):
        if x.sum() > 3.5:
            x = x * 0.75
    return x, first, x is first


def has_two_names(x, n):
    y = x
    for i in range(n):
        if x.sum() > 3.5:
            x = x * 0.75
        y = x
    return x, y


def exchanges(x, n):
    y = x + 1
    first = x
    for i in range(n):
        if x.sum() > 3.5:
            x, y = y, x
        x = x * 0.9
    return x, y, first


def shows_a_part(x, n):
    for i in range(n):
        if x.sum() > 3.5:
            x = x * 0.75
    part = x[1:]
    part[0] = 3
    return x, part


def helper(x):
    for i in range(20):
        if x.sum() > 3.5:
            x = x * 0.75
    return x


def in_a_function(x, n):
    y = helper(x)
    y[0] = n
    return x, y


def prints_after(x, n):
    first = x
    for i in range(n):
        if x.sum() > 3.5:
            x = x * 0.75
    print(x is first)
    x += 1
    return x, first


def in_a_function_each_iteration(x, n):
    first = x
    for i in range(n):
        x = kept_or_not(x)
    return x, first


def kept_or_not(y):
    if y.sum() > 3.5:
        y = y * 0.75
    return y


def under_another_name(x, n):
    first = x
    for i in range(n):
        y = x
        if y.sum() > 3.5:
            y = y * 0.75
        if y.sum() < -2:
            y = y + 1
        x = y
    return x, first


def with_ways_out(x, n):
    first = x
    for i in range(n):
        if x.sum() > 3.5:
            x = x * 0.75
        if x.max() < 0.1:
            break
        if x.sum() > 6:
            x = x * 0.5
    return x, first


class Holder:
    x = None


def in_an_attribute(x, n):
    held = Holder()
    held.x = x
    for i in range(n):
        if x.sum() > 3.5:
            held.x = x * 0.75
        if x.max() > 100:
            continue
        x = x + 0.01
    return held.x, x


def in_an_attribute_of_all_iterations(x, n):
    held = Holder()
    held.x = x
    for i in range(n, 0, -1):
        held.x = x * 1
        if x[1] > 0:
            pass
    return held.x, x


def in_a_dict_until_a_test_leaves(x, n):
    held = {"x": x}
    for i in range(n):
        held["x"] = held["x"] * 0.5
        if held["x"].sum() < 1:
            break
        if x.sum() > 3.5:
            held["x"] = held["x"] + 0.25
    return held["x"], x


def shows_a_part_before(x, n):
    y = x[1:]
    for i in range(n):
        if y.sum() > 3.5:
            y = y * 0.75
    x[2] = 7
    return y, x


class Stepper:
    def __init__(self, x):
        self.x = x

    def step(self):
        if self.x.sum() > 3.5:
            self.x = self.x * 0.75


def in_a_method(x, n):
    stepper = Stepper(x)
    for i in range(n):
        stepper.step()
    return stepper.x, x


def in_a_tuple(x, n):
    state = x, 0.0
    for i in range(n):
        if state[0].sum() > 3.5:
            state = state[0] * 0.75, state[1] + 1.0
    return state


def in_two_items(x, n):
    held = [x, x]
    for i in range(n):
        if held[0].sum() > 3.5:
            held[0] = held[0] * 0.75
        if held[1].sum() < 100:
            held[1] = held[0]
    return held[0], held[1], x


def two_that_become_one(x, n):
    y, total = x * 0.5, 0.0
    held = [y]
    for i in range(n):
        if i > 2:
            x = x * 0.75
        total = total + y.sum()
        y = x
    return x, y, held[0]


IDENTITIES = [
    two_that_become_one, first_and_last, first_and_last_of_two_loops, writes_to_the_first, writes_to_the_last,
    writes_in_each_iteration,
    asks_in_each_iteration, asks_after, has_two_names, exchanges, shows_a_part, in_a_function, prints_after,
    in_a_function_each_iteration, under_another_name, with_ways_out, in_an_attribute, in_an_attribute_of_all_iterations,
    in_a_dict_until_a_test_leaves, shows_a_part_before, in_a_method, in_a_tuple, in_two_items,
]  # fmt: skip


@pytest.mark.parametrize("own", [False, True], ids=["argument", "own"])
@pytest.mark.parametrize("f", IDENTITIES, ids=lambda f: f.__name__)
def test_an_array_is_the_one_that_plain_python_has(f, own):
    g = (lambda x, n: f(x * 1, n)) if own else f
    for scale in (0.01, 1.0, 3.0):
        for n in (20, 3):
            for compiled in each(g, lambda scale=scale, n=n: (line() * scale, n)):
                one, two = line() * scale, line() * scale
                got, want = compiled(one, n), g(two, n)
                alike = [[a is b for b in (*got, one)] for a in (*got, one)]
                assert alike == [[a is b for b in (*want, two)] for a in (*want, two)], (scale, n)
                shared = [[np.shares_memory(a, b) for b in got] for a in got]
                assert shared == [[np.shares_memory(a, b) for b in want] for a in want]
                tcompile.reset()


# -- what stays Python's -----------------------------------------------------------------------------------------------


def is_bound_on_one_side(x, n):
    for i in range(n):
        x = x * 0.9
        if x.max() > 0.5:
            late = x * 2
    return late


def becomes_something_else(x, n):
    y = 0
    for i in range(n):
        x = x * 0.9
        if x.max() > 0.5:
            y = x * 2
    return y


def prints(x, n):
    for i in range(n):
        x = x * 0.9
        if x.max() > 0.5:
            print(i)
    return x


def raises(x, n):
    for i in range(n):
        x = x * 0.9
        if x.max() < 0.5:
            x = x + 0.01
            if x.min() < 0.01:
                raise ValueError(i)
    return x


def raises_one_of_two(x, n):
    total = 0.0
    for i in range(n):
        x = x * 1.1
        if x.max() > 1:
            x = x - 0.5
            if x.min() < -1:
                if x.sum() > 5:
                    raise ValueError(i)
                else:
                    raise KeyError(i)
            x = x * 0.99
        total = total + 0.5
        x = x + 0.01
    return x, total


def warns(x, n):
    for i in range(n):
        x = x * 0.9
        if x.max() < 0.5:
            x = np.sqrt(x - 0.2)
    return x


OTHERS = [is_bound_on_one_side, becomes_something_else, prints, raises, raises_one_of_two, warns]


@pytest.mark.parametrize("f", OTHERS, ids=lambda f: f.__name__)
def test_what_branches_may_do_besides(f):
    for n in (30, 5):
        for scale in (0.3, 1.0, 5.0):
            check(f, lambda n=n, scale=scale: (line() * scale, n), backends=("eager", "llvm"))


def test_nothing_is_told_of_a_side_that_is_not_taken():
    """Its warnings are not plain Python's."""

    def f(x, n):
        for i in range(n):
            x = x * 0.9
            if x.min() < -1:
                x = np.sqrt(x)
            x = x + 0.01
        return x

    for compiled in each(f, lambda: (line(), 40)):
        assert not any(entry.replays for entry in compiled.entries)


def test_explain_tells_of_branches():
    loop, branch = told(skips_a_part, line(), 90)
    assert loop == "This loop stays a loop: one node of the graph, 90 iterations."
    assert branch == "This branch runs in machine code."


def test_a_branch_is_drawn_as_one():
    compiled = tcompile.compile(skips_a_part)
    compiled(line(), 90)
    drawn = compiled.graphs[0]._repr_mimebundle_()["image/svg+xml"]
    assert all(text in drawn for text in ("one side of a branch", "left out if", "what it does"))


def counted(z):
    z[0] += 1
    return z[0] > 3


def writes_after_or(x, n):
    z, found = np.zeros(3), 0
    for i in range(n):
        x = x * 0.9
        if x.max() > 1 or counted(z):
            found += 1
    return found, z, x


def writes_after_and(x, n):
    z, found = np.zeros(3), 0
    for i in range(n):
        x = x * 0.9
        if x.max() < 1 and counted(z):
            continue
        found += 1
    return found, z, x


@pytest.mark.parametrize("f", [writes_after_or, writes_after_and])
def test_the_second_half_of_a_test_writes_only_where_the_first_does_not_decide(f):
    for compiled in each(f, lambda: (line(), 40)):
        assert {"fori_loop", "exit_loop"} & set(ops(compiled))


def takes_over(x, n):
    best, temperature = x.sum(), 1.0
    for i in range(n):
        y = x * 0.9 + 0.01 * i
        if y.sum() < best:
            x = y
            best = y.sum()
        temperature *= 0.99
    return x, best, temperature


def takes_over_in_two_cases(x, n):
    x, best = x.copy(), x.sum()
    for i in range(n):
        y = x * 0.9 + 0.01 * i
        if y.sum() < best or y[0] > 2:
            x = y
        best = best * 0.5 + x.max()
    return x, best


@pytest.mark.parametrize("f", [takes_over, takes_over_in_two_cases])
@pytest.mark.parametrize("n", [0, 1, 40])
def test_a_side_takes_over_what_the_iteration_has_made(f, n):
    """Nobody reads it under its other name after the side."""
    for compiled in each(f, lambda: (line(), n)):
        assert n < 40 or not compiled.breaks


def keeps_both(x, n):
    y = x
    for i in range(n):
        y = x * 0.9 + i
        if y.sum() < 20:
            x = y
        x[0] += 1
    return x, y, x is y


def test_a_side_does_not_take_over_what_is_read_under_both_names():
    for n in (0, 1, 3, 40):
        check(keeps_both, lambda n=n: (line(), n), backends=("eager", "llvm"))
