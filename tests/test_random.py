"""Random numbers come from NumPy's own streams, in the same order and as often, however a function is run.

Each program runs plainly and compiled from equal states of all streams; values, errors, and the states in which the
streams are left must be equal. A number drawn twice (since something was run again), left out, or drawn at capture and
kept would show in both.
"""

from __future__ import annotations

import contextlib
import functools
import random
import types
from typing import Any

import numpy as np
import pytest
from differential import BACKENDS, STANCES, assert_same

import tcompile

X = np.arange(6.0)
RNG = np.random.default_rng(0)  # a global, set anew before each run
OLD = np.random.RandomState(0)


class Sampler:
    """A generator as an attribute, and one after a property."""

    shared = np.random.default_rng(0)

    def __init__(self, rng):
        self.rng, self.drawn = rng, 0

    @property
    def stream(self):
        self.drawn += 1
        return self.rng

    def sample(self, n):
        return self.rng.standard_normal(n) * 2 + 1


# -- programs: each takes a Generator and an array ---------------------------------------------------------------------
def argument(rng, x):
    a = rng.standard_normal(6)
    b = a * x + 1
    return b + rng.random(6), rng.integers(0, 10, 3)


def from_globals(rng, x):
    y = RNG.normal(size=6) + x
    z = OLD.uniform(size=6) * y
    return np.random.rand(6) + z, np.random.randint(0, 9, 4), OLD.permutation(3)


def attribute(rng, x):
    s = Sampler(rng)
    y = s.sample(6) + x
    z = s.stream.random(6) + y
    return z, s.drawn, Sampler.shared.random(2)


def closure(rng, x):
    def draw(scale):
        return rng.normal(size=6) * scale

    return draw(2) + x, [draw(i) for i in range(3)]


def loop(rng, x):
    total = np.zeros(6)
    for i in range(5):
        total = total * 0.5 + rng.random(6) + i
    while rng.random() < 0.9:
        total = total + 1
    return total


def branch(rng, x):
    if rng.random() < 0.5:
        return x + rng.random(6)
    return x - rng.standard_normal(6)


def made_inside(rng, x):
    own = np.random.default_rng(42)
    children = own.spawn(2)
    seeded = np.random.RandomState(7)
    other = np.random.Generator(np.random.PCG64(5))
    return own.random(6) + x, [c.random() for c in children], seeded.rand(2), other.random()


def legacy(rng, x):
    np.random.seed(11)
    a = np.random.randn(6) * x
    state = np.random.get_state()
    b = np.random.random(3)
    np.random.set_state(state)
    return a, b, np.random.random(3)


def in_place(rng, x):
    y = x * 2
    rng.shuffle(y)
    z = y + 1
    out = np.empty(6)
    rng.random(out=out)
    return z + out, rng.permutation(y), rng.choice(y, 3, replace=False)


def distributions(rng, x):
    return (
        rng.exponential(2.0, 3), rng.poisson(x + 1), rng.multivariate_normal(np.zeros(2), np.eye(2), 3),
        rng.binomial(10, 0.3), rng.gamma(x + 1) * 2, rng.bytes(4), float(rng.uniform()), int(rng.integers(5)),
    )  # fmt: skip


def state(rng, x):
    before = rng.bit_generator.state["state"]["state"]
    y = rng.random(6) + x
    return y, before != rng.bit_generator.state["state"]["state"]


def functions_of_functions(rng, x):
    draw = functools.partial(rng.normal, 0.0)
    return (
        [draw(s) for s in (1, 2)],
        list(map(rng.integers, [5, 10])),
        sorted(x, key=lambda _: rng.random()),
        max(rng.random(), rng.random()),
    )


def generator_function(rng, x):
    def noise():
        while True:
            yield rng.standard_normal(6) + x

    stream = noise()
    a, b = next(stream), next(stream) * 2
    return a + b, [v for _, v in zip(range(2), stream)]


def python_s_own(rng, x):
    y = x + random.random()
    items = [1, 2, 3, 4]
    random.shuffle(items)
    return y * random.gauss(0, 1), items, random.choice(items), random.Random(3).random()


def raised_late(rng, x):
    a = rng.random(6) + x
    b = a * 2
    return b.reshape(5, 5)  # fails in what is captured after the draw


def raised_by_numbers(rng, x):
    a = rng.random(6)
    with np.errstate(divide="raise"):
        return rng.random(6) + a / (x * 0)


def raised_and_caught(rng, x):
    found = []
    for i in range(4):
        try:
            y = rng.random(6) + x
            if i % 2:
                y = y[:, None] @ y[:, None]
            found.append(y * rng.random())
        except ValueError:
            found.append(rng.standard_normal(2) + i)
        finally:
            found.append(rng.integers(100))
    return found


def raised_between_draws(rng, x):
    a = rng.random(6)
    b = (a + x)[int(rng.integers(6, 9))]  # out of bounds, after the second draw
    return b + rng.random()


def raised_in_a_called_function(rng, x):
    def step(v):
        w = v + rng.random(6)
        return w.reshape(4, 2) if w[0] > -1 else w

    try:
        return step(x)
    except ValueError:
        return rng.random(6) + x


def warned(rng, x):
    a = rng.random(6) - x
    b = np.sqrt(a) + np.log(a)  # invalid: the region is dropped and run plainly
    return b + rng.random(6)


def raised_by_the_draw(rng, x):
    y = x + rng.random(6)
    try:
        rng.normal(0, -1.0, 3)
    except ValueError as error:
        return y * 2 + rng.random(6), str(error)


def in_a_with(rng, x):
    with contextlib.suppress(ZeroDivisionError):
        y = rng.random(6) + x
        y = y / 2
        1 // int(y[0] * 0)
    return y + rng.random(6)


PROGRAMS = [
    argument, from_globals, attribute, closure, loop, branch, made_inside, legacy, in_place, distributions, state,
    functions_of_functions, generator_function, python_s_own, raised_late, raised_by_numbers, raised_and_caught,
    raised_between_draws, raised_in_a_called_function, warned, raised_by_the_draw, in_a_with,
]  # fmt: skip


def seeded(number):
    """Puts all streams into a state of their own; returns the argument."""
    np.random.seed(number)
    random.seed(number)
    RNG.bit_generator.state = np.random.PCG64(number + 1).state
    Sampler.shared.bit_generator.state = np.random.PCG64(number + 2).state
    OLD.seed(number + 3)
    return np.random.default_rng(number + 4)


def left(rng):
    """The states of all streams."""
    streams = [g.bit_generator.state for g in (rng, RNG, Sampler.shared)]
    return [*streams, list(np.random.get_state()), list(OLD.get_state()), random.getstate()]


def outcome(function, rng, x) -> Any:
    try:
        with np.testing.suppress_warnings() as quiet:
            quiet.filter(RuntimeWarning)
            return function(rng, x)
    except Exception as error:
        return type(error).__name__, str(error)


def compare(function, compiled, calls=4, x=X):
    for number in range(calls):
        rng = seeded(number)
        want = outcome(function, rng, x.copy()), left(rng)
        rng = seeded(number)
        got = outcome(compiled, rng, x.copy()), left(rng)
        assert_same(got[1], want[1], f"streams after call {number}", exact=True)
        assert_same(got[0], want[0], f"call {number}")


def own(function):
    """A copy with a code object of its own: entries of other tests do not count."""
    return types.FunctionType(
        function.__code__.replace(), globals(), function.__name__, function.__defaults__, function.__closure__
    )


@pytest.mark.parametrize("function", PROGRAMS, ids=lambda f: f.__name__)
@pytest.mark.parametrize("backend", BACKENDS)
def test_the_same_numbers(function, backend):
    compare(function, tcompile.compile(own(function), backend=backend))


@pytest.mark.parametrize("function", PROGRAMS, ids=lambda f: f.__name__)
@pytest.mark.parametrize("stance", STANCES)
def test_under_stances(function, stance):
    with tcompile.set_stance(stance):
        compare(function, tcompile.compile(own(function)))


@pytest.mark.parametrize("function", PROGRAMS, ids=lambda f: f.__name__)
@pytest.mark.parametrize("every", [1, 2, 3, 7])
def test_with_breaks_everywhere(function, every):
    with tcompile.config.patch(stress_breaks=every):
        compare(function, tcompile.compile(own(function), backend="eager"), calls=2)


@pytest.mark.parametrize("function", PROGRAMS, ids=lambda f: f.__name__)
def test_with_other_sizes_and_dtypes_between(function):
    compiled = tcompile.compile(own(function))
    for x in (X, np.arange(6, dtype=np.float32), X[::-1], X):
        compare(function, compiled, calls=2, x=x)


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_failing_call_after_good_ones_draws_once(backend):
    # The entry is there: it is the guards or the kernels that find out, after numbers were drawn.
    def f(rng, x):
        a = rng.random(x.shape[0])
        b = a + x
        c = rng.standard_normal(6)
        return b[:6] * c

    compiled = tcompile.compile(f, backend=backend)
    for x in (X, X, np.arange(3.0), X, np.arange(6), np.array(["a"] * 6), X):
        compare(f, compiled, calls=2, x=x)


def test_a_generator_that_is_a_default_or_in_a_container():
    made = {"a": [np.random.default_rng(1)]}

    def f(rng, x, g=RNG):
        return g.random(6) + x, made["a"][0].random(6) * 2 + rng.random()

    def run(function):
        made["a"][0] = np.random.default_rng(1)
        return [outcome(function, seeded(i), X) for i in range(3)]

    assert_same(run(tcompile.compile(f)), run(f))


def test_another_generator_at_the_next_call():
    def f(rng, x):
        return rng.normal(size=6) + x

    compiled = tcompile.compile(f)
    for make in (np.random.default_rng, np.random.RandomState, lambda n: np.random.Generator(np.random.Philox(n))):
        for number in range(3):
            assert_same(compiled(make(number), X), f(make(number), X))
