"""Python's own random numbers, drawn by machine code: the stream of ``random``, number by number."""

import random
import signal
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import tcompile
from tcompile.graph.ops import python_random
from tests.capture.test_scalar_loops import ops

BACKENDS = ("eager", "llvm")
ITEMS = [3, 1, 4, 1, 5]
MANY = [float(n) for n in range(100)]
TABLE = np.arange(12.0).reshape(4, 3)


def outcome(f, args):
    try:
        return repr(f(*args))
    except Exception as error:
        return type(error), str(error)


def same(f, *args, breaks=0):
    """Checks results, and the states of the generators, over calls; returns the function compiled."""
    for backend in BACKENDS:
        tcompile.reset()
        compiled = tcompile.compile(f, backend=backend)
        for seed in range(4):
            plain, ours = [(random.Random(seed), *args) for _ in range(2)]
            for _ in range(2):  # from the state that the first call has left, too
                assert outcome(compiled, ours) == outcome(f, plain)
                assert ours[0].getstate() == plain[0].getstate()
        assert len(compiled.breaks) == breaks, compiled.breaks
    return compiled


CALLS = {
    "random": "rng.random()", "uniform": "rng.uniform(-1, 2.5)", "uniform of ints": "rng.uniform(i, 3)",
    "uniform of NumPy's": "rng.uniform(np.float64(i), 7)", "randint": "rng.randint(1, 6)",
    "randint of one": "rng.randint(i, i)", "randint of 62 bits": "rng.randint(-(1 << 61), 1 << 61)",
    "randint of 33 bits": "rng.randint(0, 1 << 32)", "randrange": "rng.randrange(10)",
    "randrange of two": "rng.randrange(-i - 1, i * i)", "randrange of 32 bits": "rng.randrange(1 << 32)",
    "randrange of a bool": "rng.randrange(True)", "randrange by names": "rng.randrange(start=3, stop=9)",
    "expovariate": "rng.expovariate(i + 0.5)", "expovariate of an int": "rng.expovariate(3)",
    "normalvariate": "rng.normalvariate(0.5, 2)", "normalvariate of none": "rng.normalvariate()",
    "gauss": "rng.gauss(0, 1)", "gauss of none": "rng.gauss()", "gauss by names": "rng.gauss(sigma=i, mu=-1)",
    "choice of a tuple": "rng.choice((2.5, 1.5, -1.0))", "choice of a list": "rng.choice(ITEMS)",
    "choice of a long list": "rng.choice(MANY)", "choice of a row": "rng.choice(TABLE)[1]",
    "choice of an array": "rng.choice(x)",
}  # fmt: skip


@pytest.mark.parametrize("name", CALLS)
def test_what_is_drawn(name):
    names = {"np": np, "ITEMS": ITEMS, "MANY": MANY, "TABLE": TABLE}
    text = f"""
def f(rng, x, n):
    out = np.zeros(n)
    for i in range(n):
        out[i] = {CALLS[name]}
    return out, rng.random() if n > 40 else 0
"""
    exec(text, names)
    compiled = same(names["f"], np.arange(5.0), 37)
    assert "scalar_loop" in ops(compiled)


@pytest.mark.parametrize("call", [
    "rng.randrange(0)", "rng.randint(3, 1)", "rng.choice(())", "rng.choice(x[:0])", "rng.expovariate(0)",
    "rng.randrange(2.5)", "rng.randint(1)", "rng.uniform()", "rng.randrange(1, 5, 0)", "rng.gauss(0, 1, 2)",
])  # fmt: skip
def test_errors(call):
    names = {"np": np}
    text = f"""
def f(rng, x):
    total = 0
    for i in range(40):
        total += rng.random()
        if i == 33:
            total += {call}
    return total
"""
    exec(text, names)
    for backend in BACKENDS:
        tcompile.reset()
        plain, ours = random.Random(1), random.Random(1)
        compiled = tcompile.compile(names["f"], backend=backend)
        for _ in range(2):
            assert outcome(compiled, (ours, np.ones(3))) == outcome(names["f"], (plain, np.ones(3)))
            assert ours.getstate() == plain.getstate()


def test_the_functions_of_the_module():
    from random import gauss, randint

    def f(n):
        inside, total = 0, 0.0
        for _ in range(n):
            x, y = random.random(), random.uniform(0, 1)
            if x * x + y * y < 1:
                inside += 1
            total += gauss(0, 1) + randint(1, 6) + random.choice((1, -1))
        return inside, total

    compiled = tcompile.compile(f)
    before = random.getstate()
    try:
        for seed in range(3):
            random.seed(seed)
            want, end = f(301), random.getstate()
            random.seed(seed)
            assert repr(compiled(301)) == repr(want)
            assert random.getstate() == end
    finally:
        random.setstate(before)
    assert "scalar_loop" in ops(compiled)


def test_the_second_normal_number_is_kept():
    def f(rng, n):
        total = 0.0
        for _ in range(n):
            total += rng.gauss(1, 2)
        for _ in range(n):
            if total > 0:
                total -= rng.gauss(0, 1)
        return total

    for n in (20, 21, 37):
        same(f, n)


def test_outside_of_loops_plain_python_draws():
    def f(rng, x):
        return x * rng.random() + rng.randint(1, 6)

    assert {found.reason.id for found in same(f, np.ones(3), breaks=2).breaks} == {"random-numbers"}


def test_in_a_loop_over_arrays():
    def f(rng, x):
        for _ in range(30):
            x = x * 0.5 + rng.random() + rng.randrange(3) + rng.normalvariate(0, 1)
        return x

    same(f, np.arange(4.0))


def test_as_an_attribute():
    class Walker:
        def __init__(self, seed):
            self.rng, self.at = random.Random(seed), 0.0

        def step(self, n):
            for _ in range(n):
                self.at += self.rng.gauss(0, 1) if self.rng.random() < 0.5 else self.rng.uniform(-1, 1)
            return self.at

    compiled = tcompile.compile(Walker.step)
    one, two = Walker(3), Walker(3)
    for n in (100, 101, 102):
        assert repr(compiled(one, n)) == repr(two.step(n))
        assert one.rng.getstate() == two.rng.getstate() and one.at == two.at
    assert "scalar_loop" in ops(compiled)


def test_under_two_names():
    def f(a, b):
        total = 0.0
        for _ in range(50):
            total += a.random() - 2 * b.random()
        return total

    plain, ours, other = random.Random(1), random.Random(1), random.Random(2)
    compiled = tcompile.compile(f)
    for _ in range(2):
        assert compiled(ours, ours) == f(plain, plain)
        assert compiled(ours, other) == f(plain, random.Random(2))
        assert ours.getstate() == plain.getstate()
        other.seed(2)


class Own(random.Random):
    def random(self):
        return 0.25


def test_generators_with_other_methods_are_plain():
    def f(rng, n):
        total = 0.0
        for _ in range(n):
            total += rng.random() + rng.uniform(0, 1)
        return total

    compiled = tcompile.compile(f)
    shadowed = random.Random(1)
    shadowed.random = lambda: 0.5
    for _ in range(2):
        assert compiled(Own(1), 40) == f(Own(1), 40) == 20.0
        assert compiled(shadowed, 40) == f(shadowed, 40) == 40.0
        assert compiled(random.Random(1), 40) == f(random.Random(1), 40)
        assert 0 < compiled(random.SystemRandom(), 40) < 80
    assert {found.reason.id for found in compiled.breaks} <= {"random-numbers", "unsupported-object"}


def test_replaced_methods(monkeypatch):
    def f(rng, n):
        total = 0.0
        for _ in range(n):
            total += rng.uniform(0, 1)
        return total

    early, late = (tcompile.compile(f, dynamic=dynamic) for dynamic in (None, False))
    assert early(random.Random(1), 40) == f(random.Random(1), 40)
    for name in ("uniform", "random"):
        with monkeypatch.context() as patched:
            patched.setattr(random.Random, name, lambda self, a=0, b=0: 0.5, raising=False)
            for compiled in (early, late):
                assert compiled(random.Random(1), 40) == f(random.Random(1), 40) == 20.0
    assert early(random.Random(1), 40) == f(random.Random(1), 40)


def test_replaced_functions(monkeypatch):
    def f(n):
        total = 0.0
        for _ in range(n):
            total += random.random()
        return total

    compiled = tcompile.compile(f)
    compiled(40)
    monkeypatch.setattr(random, "random", lambda: 0.25)
    assert compiled(40) == f(40) == 10.0


def draws(out, rng):
    for i in range(len(out)):
        out[i] = rng.random()
    return out


def test_threads_share_a_stream():
    rng, count = random.Random(5), 200_000
    compiled = tcompile.compile(draws)
    with ThreadPoolExecutor(4) as pool:
        outs = list(pool.map(lambda out: compiled(out, rng), [np.zeros(count) for _ in range(8)]))
    plain = random.Random(5)
    assert np.array_equal(np.sort(np.concatenate(outs)), np.sort([plain.random() for _ in range(8 * count)]))


def test_others_draw_other_numbers_while_a_loop_runs():
    rng, drawn, over = random.Random(5), [], threading.Event()
    compiled = tcompile.compile(draws)
    compiled(np.zeros(1000), rng)

    def draw():
        while not over.wait(0.001):
            drawn.append(rng.random())

    thread = threading.Thread(target=draw)
    thread.start()
    outs = [compiled(np.zeros(5_000_000), rng) for _ in range(4)]
    over.set()
    thread.join()
    found = np.concatenate([*outs, drawn])
    assert len(np.unique(found)) == len(found)


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="no timers")
def test_a_handler_draws_by_compiled_code():
    rng, seen = random.Random(5), []
    compiled = tcompile.compile(draws)
    compiled(np.zeros(1000), rng)
    before = signal.signal(signal.SIGALRM, lambda *_: seen.append(compiled(np.zeros(1000), rng)))
    signal.setitimer(signal.ITIMER_REAL, 0.02, 0.02)
    try:
        out = compiled(np.zeros(10_000_000), rng)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    found = np.concatenate([out, *seen])
    assert seen and len(np.unique(found)) == len(found)


def test_the_state_is_as_assumed():
    assert python_random.is_known()
    rng = random.Random(3)
    words = python_random.words_of(rng).view(np.uint32)
    _, state, _ = rng.getstate()
    assert (*words[1 : 1 + python_random.LENGTH].tolist(), int(words[0])) == state
