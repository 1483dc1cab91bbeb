"""Reports about random numbers: seeds, the generators' states, the order of draws."""

from __future__ import annotations

import random

import numpy as np
import pytest

from reports.programs import Table

TABLE = Table()


@TABLE.calls("numba-3888", lambda: (5,), lambda: (40,), lambda: (0,))
def drawn_pairs(n):
    """choice without replacement follows the seed that the function sets."""
    np.random.seed(1337)
    out = np.empty((n, 2), np.int32)
    for i in range(n):
        out[i] = np.random.choice(300, 2, False)
    return out, np.random.random()


@TABLE.session("numba-7715")
def seed_outside(jit):
    """NumPy's seed is set outside of the function that draws."""

    @jit
    def draw(k):
        return np.random.randint(k), np.random.rand(), np.random.rand(3) * k

    seen = []
    for _ in range(4):
        np.random.seed(2022)
        seen.append([draw(2), draw(3), np.random.rand()])
    return seen


@TABLE.calls("numba-5290", lambda: (5, 1), lambda: (12, 7))
def printed_draws(n, seed):
    """Numbers that are drawn in a loop are printed there."""
    np.random.seed(seed)
    out = np.empty(n)
    for i in range(n):
        out[i] = np.random.rand()
        print(i, round(out[i], 6))
    return out


@TABLE.session("numba-9196")
def two_generators(jit):
    """Two generators are drawn from in turn; each keeps a state of its own."""

    @jit
    def draw(a, b, n):
        return a.random(n) + b.random(n), a.integers(0, 9), b.normal()

    a, b = np.random.default_rng(1), np.random.Generator(np.random.SFC64(2))
    return [draw(a, b, n) for n in (3, 3, 2000, 3, 2000, 20000)], a.random(), b.random()


@TABLE.session("numba-8957")
def seeded_integers(jit):
    """randint gives the same integers after the same seed."""
    seed = jit(np.random.seed)

    @jit
    def draw(n):
        return np.random.randint(0, 20, size=n)

    seen = []
    for _ in range(4):
        seed(1)
        seen.append(draw(5))
    return seen


@TABLE.calls("numba-2750", lambda: (np.arange(10), 3), lambda: (np.arange(12.0).reshape(4, 3), 5))
def shuffled(x, seed):
    """Rows are permuted, as a copy and in place."""
    rng = np.random.default_rng(seed)
    y = rng.permutation(x)
    rng.shuffle(x)
    return y * 2, x


@TABLE.calls("pytorch-197101", lambda: (np.ones(2), 0), lambda: (np.ones(2), 1))
def seeded_in_function(x, seed):
    """random.seed is called in the function that draws: its first call obeys, too."""
    random.seed(seed)
    return x + random.random(), random.randint(0, 99), random.uniform(1, 2)


@TABLE.session("pytorch-197085")
def shuffled_list(jit):
    """random.shuffle and random.sample give another order in each call."""
    random.seed(5)

    @jit
    def draw(x):
        order = list(range(6))
        random.shuffle(order)
        return x[order], random.sample(range(20), 3)

    return [draw(np.arange(6.0)) for _ in range(5)], random.random()


@TABLE.session("pytorch-196437")
def own_generator(jit):
    """A random.Random draws one number per call while the sizes of arrays change."""

    @jit
    def draw(x, rng):
        return x + rng.randint(1, 100)

    rng = random.Random(0)
    shapes = ((1,), (1, 5), (2, 2), (2, 3), (2, 3), (3, 3))
    return [draw(np.zeros(shape), rng) for shape in shapes], rng.random()


@TABLE.session("pytorch-95425")
def dropped_layers(jit):
    """A number is drawn per layer to decide whether it is left out."""
    random.seed(3)

    @jit
    def run(x):
        used = 0
        for _ in range(4):
            if random.random() > 0.5:
                x, used = np.tanh(x) + 1, used + 1
        return x, used

    return [run(np.arange(3.0)) for _ in range(8)]


@TABLE.session("pytorch-145445")
def second_draw(jit):
    """The second call with one random.Random goes on where the first one stopped."""

    @jit
    def draw(x, rng):
        return x + rng.randint(1, 100)

    rng = random.Random(0)
    return [draw(np.zeros((3, 3)), rng) for _ in range(4)], rng.getstate()[1][-1]


@TABLE.calls("pytorch-107187", lambda: (4,), lambda: (5000,))
def seed_before_draw(n):
    """The seed is set before each draw: all calls give the same numbers."""
    np.random.seed(3)
    return np.random.rand(n) * 2


@TABLE.session("pytorch-145329")
def compiler_draws_nothing(jit):
    """Compiling draws nothing from the generators that the program uses."""
    random.seed(1)
    np.random.seed(1)

    @jit
    def draw(x):
        a = random.randint(1, 9)
        y = x + random.uniform(10, 20)
        return y + a, random.randint(2, 18), np.random.random()

    return [draw(np.ones((2, 2))), draw(np.ones(3)), draw(np.ones(3)), random.random(), np.random.random()]


@TABLE.session("pytorch-136559")
def uniform_by_name(jit):
    """np.random.uniform gets its arguments by name, and its array is used several times."""
    np.random.seed(4)

    @jit
    def draw():
        a = np.random.uniform(low=-1, high=1, size=(20, 1))
        return np.array([a, a, a])

    return [draw() for _ in range(4)]


@pytest.mark.parametrize("number", TABLE.numbers)
def test_report(number):
    TABLE.check(number)
