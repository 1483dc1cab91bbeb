"""Exits of scalar loops: results of several kinds, exceptions, and where a frame goes on after them."""

from __future__ import annotations

import math

import numpy as np
import pytest
from differential import check

import tcompile
from tcompile.observe import bus
from tcompile.observe.events import FellBack

from .scalar_loop_check import late_loops
from .test_scalar_loops import captured

BACKENDS = ("eager", "llvm")


class Bad(Exception):
    """Raised with what a loop has computed."""


def arrays(place, size=40):
    """Arguments in which an element at ``place`` is large; None where there is none."""
    x = np.linspace(0.5, 1.5, size)
    if place is not None:
        x[place] = 9.0
    return x, np.zeros(size)


PLACES = (None, 0, 7, 39)


# -- results of several kinds ------------------------------------------------------------------------------------------


def index_or_none(x, y):
    for i in range(len(x)):
        if x[i] > 5.0:
            return i
    return None


def pair_or_number(x, y):
    s = 0
    for i in range(len(x)):
        s += x[i]
        y[i] = s
        if x[i] > 5.0:
            return i, s
    return -1


def array_or_none(x, y):
    for i in range(len(x)):
        y[i] = 2.0 * x[i]
        if x[i] > 5.0:
            return None
    return y


def argument_or_new(x, y):
    z = np.zeros(3)
    for i in range(len(x)):
        z[i % 3] += x[i]
        if x[i] > 5.0:
            return y
    return z


def text_or_flag(x, y):
    for i in range(len(x)):
        if x[i] > 5.0:
            return "large"
        if x[i] < 0.4:
            return False
    return 0.25


def list_or_none(x, y):
    found = []
    for i in range(len(x)):
        if x[i] > 5.0:
            return found
        if i % 2:
            found.append(x[i])
    return None


def number_of_a_kind(x, y):
    s = 0
    for i in range(len(x)):
        if x[i] > 5.0:
            s += x[i]
    return s


def nested(x, y):
    for i in range(len(x)):
        for j in range(i):
            if x[i] + x[j] > 9.0:
                return i, j
    return None


def variable_or_none(x, y):
    k = None
    for i in range(len(x)):
        if x[i] > 5.0:
            k = i
            break
    if k is None:
        return y + 1.0
    return x[k] * y


def swapped(x, y):
    one, two = None, 0.5
    for i in range(len(x)):
        if x[i] > 5.0:
            one, two = two, None
            break
    y += 1.0
    return one, two


KINDS = (
    index_or_none, pair_or_number, array_or_none, argument_or_new, text_or_flag, list_or_none, number_of_a_kind, nested,
    variable_or_none, swapped,
)  # fmt: skip


@pytest.mark.parametrize("function", KINDS, ids=lambda f: f.__name__)
def test_a_loop_gives_what_its_exit_says(function):
    for compiled in check(function, lambda: arrays(7), backends=BACKENDS, ulp=0):
        for place in (*PLACES, *PLACES):
            given, wanted = arrays(place), arrays(place)
            got, want = compiled(*given), function(*wanted)
            np.testing.assert_equal(got, want)
            np.testing.assert_equal(given, wanted)
            assert type(got) is type(want)
            assert (got is given[1]) == (want is wanted[1])
            if isinstance(got, tuple):
                assert list(map(type, got)) == list(map(type, want))


@pytest.mark.parametrize("function", KINDS, ids=lambda f: f.__name__)
def test_no_exit_runs_the_loop_again(function):
    compiled = tcompile.compile(function)
    seen: list[object] = []
    with bus.listening(seen.append):
        for place in PLACES:
            compiled(*arrays(place))
    assert [event.detail for event in seen if isinstance(event, FellBack)] == []


def found(x):
    for i in range(len(x)):
        if x[i] > 5.0:
            return i
    return None


def asks_a_helper(x, y):
    k = found(x)
    if k is None:
        return y
    return y + x[k]


def moves_a_helpers_result(x, y):
    k = found(x)
    y += x
    return [k, (k, y)]


def ignores_a_helper(x, y):
    found(x)
    return x * 2.0


@pytest.mark.parametrize("function", [asks_a_helper, moves_a_helpers_result, ignores_a_helper])
@pytest.mark.parametrize("place", PLACES)
def test_a_helpers_result_of_several_kinds(function, place):
    check(function, lambda: arrays(place), backends=BACKENDS, ulp=0)


def test_a_helper_that_returns_numbers_alone_breaks_nothing():
    def total(x):
        s = 0
        for i in range(len(x)):
            if x[i] > 0.6:
                s += x[i]
        return s

    def f(x, y):
        return y + total(x) * 2.0

    captured(f, lambda: arrays(7))
    captured(f, lambda: arrays(None))


def test_fullgraph_keeps_one_graph():
    compiled = tcompile.compile(index_or_none, fullgraph=True)
    assert [compiled(*arrays(place)) for place in PLACES] == [None, 0, 7, 39]


def skips_while_asked(x, y):
    """``s`` stays a Python float as long as iterations are skipped."""
    s, how, over = 1.0, 0, 0
    for i in range(len(x)):
        if y[0] == 2.0:
            over += 1
            if over > 40:
                how = 1
                break
            continue
        s = math.sqrt(s + 1.5) / 1.25 + x[i % 8]
    return how, (i - over if over else -1), s


def test_the_last_kinds_are_those_of_the_node():
    seen: list[object] = []
    compiled = tcompile.compile(skips_while_asked, dynamic=True)
    with bus.listening(seen.append):
        for size in (60, 70, 60, 70):
            x = np.linspace(0.0, 1.0, size)
            assert compiled(x, np.zeros(3)) == skips_while_asked(x, np.zeros(3))
    assert not [event for event in seen if isinstance(event, FellBack)]
    check(skips_while_asked, lambda: (np.linspace(0.0, 1.0, 60), np.full(3, 2.0)), backends=BACKENDS, ulp=0)


# -- exceptions --------------------------------------------------------------------------------------------------------


def raises(x, y):
    s = 0.0
    for i in range(len(x)):
        s += x[i]
        y[i] = s
        if x[i] > 5.0:
            raise Bad(i, s)
    return s


def asserts(x, y):
    for i in range(len(x)):
        assert x[i] < 5.0, f"{i} of {len(x)}"
        y[i] = -x[i]
    return y


def raises_in_a_nest(x, y):
    n = 0
    for i in range(len(x)):
        for j in range(3):
            y[i] += j
            for k in range(j, 5, 2):
                n += k
                if x[i] > 5.0 and k == 3:
                    raise Bad(i, j, k, n)
    return n


def raises_in_a_while(x, y):
    i = 0
    while i < len(x):
        y[i] = i
        if x[i] > 5.0:
            raise Bad(i)
        i += 1
    return i


def handles(x, y):
    bad = 0
    for i in range(len(x)):
        try:
            y[i] += 1.0
            if x[i] > 5.0:
                raise Bad(i)
            y[i] += 2.0
        except Bad as error:
            bad += 1 + error.args[0]
    return bad


def handles_in_a_nest(x, y):
    bad = []
    for i in range(len(x)):
        for j in range(4):
            try:
                y[i] += j
                if x[i] > 5.0 and j == 2:
                    raise Bad(i)
            except Bad:
                bad.append((i, j))
    return bad


def raises_if_nothing_is_found(x, y):
    for i in range(len(x)):
        y[i] += 1.0
        if x[i] > 20.0:
            return i
    raise Bad(len(x), y[3])


def handles_in_enumerate(x, y):
    bad = 0
    for i, k in enumerate(range(1, len(x)), 5):
        try:
            if x[k] > 5.0:
                raise Bad(i)
            y[k] = i
        except Bad:
            bad += i
    return bad


def warned_before(x, y):
    np.sqrt(x - 1.0)
    for i in range(len(x)):
        if x[i] > 5.0:
            raise Bad(i)
    return i


def warned_in_the_loop(x, y):
    s = 0.0
    for i in range(len(x)):
        s += np.log(x[i] - x[1])
        if x[i] > 5.0:
            raise Bad(i)
    return s


def handles_in_a_second_loop(x, y):
    """The iterator on the stack is not that of the loop with which the node begins."""
    for i in range(len(x)):
        if x[i] > 1e9:
            return None
    bad = 0
    for j in range(5, len(x) - 3):
        try:
            y[j] += 1.0
            if x[j] > 5.0:
                raise Bad(j)
            y[j] += 2.0
        except Bad:
            bad += j
    return bad


def raises_on_the_way_out(x, y):
    for i in range(len(x)):
        y[i] += 1.0
        if x[i] > 5.0:
            t = x[i] * y[i - 1]
            if t > 2.0:
                raise Bad(i, t)
            return t
    return 0.5


def cleans_up(x, y):
    try:
        for i in range(len(x)):
            y[i] += 1.0
            if x[i] > 5.0:
                raise Bad(i)
    finally:
        y[0] = -1.0
    return y


def appends(x, y):
    seen = []
    try:
        for i in range(len(x)):
            if x[i] < 1.0 or i % 2:
                seen.append(i)
            if x[i] > 5.0:
                raise Bad(i)
    except Bad:
        return seen, "handled"
    return seen


def elements(x, y):
    s = 0.0
    for i, v in enumerate(x):
        s += v
        if v > 5.0:
            raise Bad(i, v, s)
    return s


def raises_among_inner_elements(x, y):
    w = np.arange(7.0)
    n = 0.0
    for i in range(len(x)):
        for v in w:
            y[i] += v
            n += v
            if x[i] > 5.0 and v == 4.0:
                raise Bad(i, v, n)
    return n


def handles_in_an_inner_enumerate(x, y):
    """The inner iterator goes on after the exception."""
    w = np.arange(7.0)
    bad = []
    for i in range(len(x)):
        for j, v in enumerate(w, 3):
            try:
                y[i] += v
                if x[i] > 5.0 and j == 5:
                    raise Bad(i)
                y[i] += j
            except Bad:
                bad.append((i, j, float(v)))
    return bad


def handles_among_inner_items(x, y):
    bad = []
    for i in range(len(x)):
        for a, b in ((i, 2), (3, i + 1), (5, 6)):
            try:
                if x[i] > 5.0 and b == i + 1:
                    raise Bad(i)
                y[i] += a - b
            except Bad:
                bad.append((a, b))
    return bad


def handles_among_letters(x, y):
    text, bad = "gattaca", []
    for i in range(len(x)):
        for c in text:
            try:
                if x[i] > 5.0 and c == "c":
                    raise Bad(c, text)
                y[i] += ord(c)
            except Bad as error:
                bad.append((i, error.args))
    return bad


def checked(i, y, v):
    if v > 5.0:
        raise Bad(i, y[0])
    return v * 2.0


def called_too(i, y, v):
    return checked(i, y, v) + 1.0


def handles_what_a_call_raises(x, y):
    bad = 0
    for i in range(len(x)):
        try:
            y[i] += called_too(i, y, float(x[i]))
            y[i] += 2.0
        except Bad:
            bad += i
    return bad


def raises_in_a_call(x, y):
    n = 0
    for i in range(len(x)):
        for j in range(2):
            y[i] += checked(i + j, y, float(x[i]))
            n += 1
    return n


def leaves_when_a_call_raises(x, y):
    how = 0
    for i in range(len(x)):
        try:
            checked(i, y, float(x[i]))
        except Bad:
            how = 1
            break
        y[i] = i
    return how, i


def doubled(v):
    if v > 5.0:
        raise Bad(v)
    return v * 2.0


def raises_before_its_arithmetic(x, y):
    for i in range(len(x)):
        y[i] = doubled(x[i])
    return y


def appends_each(x, y):
    seen = []
    try:
        for i in range(len(x)):
            seen.append(i)
            if x[i] > 5.0:
                raise Bad(i)
            y[i] = i
    except Bad:
        return seen, "handled"
    return seen


def always_raises(i):
    raise Bad(i)


def calls_what_always_raises(x, y):
    for i in range(len(x)):
        if x[i] > 5.0:
            always_raises(i)
        y[i] = 2.0 * x[i]
    return y


def a_bound_of_an_inner_loop_in_its_header(x, y):
    for i in range(0, len(x) - 3, 3):
        for j in range(i, i + 3):
            y[j] = 2.0 * x[j]
    return i, j


@pytest.mark.filterwarnings("error::UserWarning")  # of a function that runs in plain Python
@pytest.mark.parametrize("function", [calls_what_always_raises, a_bound_of_an_inner_loop_in_its_header])
def test_loops_that_compiling_failed_on(function):
    for place in PLACES:
        check(function, lambda place=place: arrays(place), backends=BACKENDS, ulp=0)


RAISING = (
    raises, asserts, raises_in_a_nest, raises_in_a_while, handles, handles_in_a_nest, handles_in_a_second_loop,
    handles_in_enumerate, raises_on_the_way_out, raises_if_nothing_is_found, cleans_up, appends, elements,
    raises_among_inner_elements, handles_in_an_inner_enumerate, handles_among_inner_items, handles_among_letters,
    handles_what_a_call_raises, raises_in_a_call, leaves_when_a_call_raises,
    raises_before_its_arithmetic, appends_each, calls_what_always_raises,
)  # fmt: skip
WARNED = (warned_before, warned_in_the_loop)


@pytest.mark.filterwarnings("error::UserWarning")  # of a function that runs in plain Python
@pytest.mark.parametrize("function", [*RAISING, *WARNED], ids=lambda f: f.__name__)
@pytest.mark.parametrize("late", [False, True])
def test_an_exception_comes_as_in_plain_python(function, late):
    for place in PLACES:
        if late:
            with late_loops():
                check(function, lambda place=place: arrays(place), backends=BACKENDS, ulp=0)
        else:
            check(function, lambda place=place: arrays(place), backends=BACKENDS, ulp=0)


@pytest.mark.parametrize("function", [raises, raises_in_a_nest, raises_in_a_while, elements])
def test_a_loop_that_may_raise_is_one_node(function):
    captured(function, lambda: arrays(None))


@pytest.mark.parametrize("function", RAISING, ids=lambda f: f.__name__)
@pytest.mark.parametrize("backend", BACKENDS)
def test_a_long_loop_is_not_repeated_before_an_exception(function, backend):
    compiled = tcompile.compile(function, backend=backend, dynamic=True)
    seen: list[object] = []
    with late_loops(), bus.listening(seen.append):
        given, wanted = arrays(9_000, 10_000), arrays(9_000, 10_000)
        got, want = outcome(compiled, given), outcome(function, wanted)
    assert got == want
    np.testing.assert_equal(given, wanted)
    details = [event.detail for event in seen if isinstance(event, FellBack)]
    assert details == ["the call continues in plain Python in the middle of an iteration"]


def outcome(function, given):
    try:
        return repr(function(*given))
    except (Bad, AssertionError) as error:
        return repr(error)
