"""Tests in scalar loops whose sides only give another value become choices of values."""

from random import Random

import numpy as np
import pytest

from tcompile.backends.llvm.scalar_loops import lower
from tcompile.graph.ops.scalar_choices import choose
from tests.capture.test_scalar_loop_vectors import function_of
from tests.capture.test_scalar_loops import BACKENDS, captured
from tests.differential import check


def largest(x, y):
    m = x[0]
    for i in range(len(x)):
        if x[i] > m:
            m = x[i]
    return m


def largest_and_where(x, y):
    m, k = x[0], 0
    for i in range(len(x)):
        if x[i] > m:
            m, k = x[i], i
    return m, k


def counted(x, y):
    n = 0
    for i in range(len(x)):
        if x[i] > y[i]:
            n += 1
    return n


def counted_down(x, y):
    n = 3
    for i in range(len(x)):
        if x[i] > y[i]:
            pass
        else:
            n = n - 2
    return n


def summed(x, y):
    s = y[0]
    for i in range(len(x)):
        if x[i] > 0:
            s += x[i]
    return s


def taken_away(x, y):
    s = y[0] - y[0]
    for i in range(len(x)):
        if x[i] > 0:
            s = s - x[i]
    return s


def minus_zero(x, y):
    s = x[0] * 0 * -1
    for i in range(len(x)):
        if x[i] > 9:
            s += x[i]
    return s, 1 / np.copysign(1.0, s)


def summed_where_it_overflows(x, y):  # what is not added raises no flag
    s = x[0] + 1.7e308
    for i in range(len(x)):
        if x[i] > 9:
            s += x[i] + 1e308
        if y[i] > 9:
            s += 1.7e308
    return s


def clipped(x, y):
    for i in range(len(x)):
        v = x[i]
        if v < 0.2:
            v = 0.2
        if v > 0.7:
            v = 0.7
        y[i] = v
    return y


def stored_either_way(x, y):
    for i in range(len(x)):
        if x[i] > 0:
            y[i] = x[i]
        else:
            y[i] = 0.5
    return y


def stored_elsewhere(x, y):
    for i in range(1, len(x)):
        if x[i] > 0:
            y[i] = x[i]
        else:
            y[i - 1] = x[i]
    return y


def stored_and_loaded(x, y):  # the second load finds another element
    for i in range(len(x)):
        m = x[i]
        x[i] = y[i]
        if m > 0:
            m = x[i]
        y[i] = m
    return x, y


def overflows(x, y):
    n = 9223372036854775806
    for i in range(len(x)):
        if x[i] > 1:
            n += 1
    return n


def shifted_register(x, y):
    for i in range(len(x)):
        c = int(x[i])
        for _ in range(8):
            c = 0xEDB88320 ^ (c >> 1) if c & 1 else c >> 1
        y[i] = c & 127
    return y


def bits_beside_a_sum(x, y):
    n = 0
    for i in range(len(x)):
        c = int(x[i])
        if c > 2:
            n += c & 6
        else:
            n += c | 9
    return n


def shifted_too_far(x, y):  # never where it is, but where it was asked for it fails
    c = 5
    for i in range(len(x)):
        k = int(y[i])
        if x[i] > 0:
            c = c >> k
    return c


def bits_of_an_element(x, y):  # which is read on one way only
    c = 1
    for i in range(len(x)):
        if i > 3:
            c = c ^ int(x[i - 3]) & 7
    return c


def summed_from_a_float(x, y):  # Python's float until the first that is added
    s, t = 0.0, 1.0
    for i in range(len(x)):
        if x[i] > 0:
            s += x[i]
        if y[i] < x[i]:
            t = t - y[i]
        else:
            t = t + 0.5
    return s, t


FUNCTIONS = [
    largest, largest_and_where, counted, counted_down, summed, taken_away, minus_zero, summed_where_it_overflows,
    clipped, stored_either_way, stored_elsewhere, stored_and_loaded, overflows,
    shifted_register, bits_beside_a_sum, shifted_too_far, bits_of_an_element, summed_from_a_float,
]  # fmt: skip


@pytest.mark.recompile_limit(20)
@pytest.mark.parametrize("f", FUNCTIONS)
@pytest.mark.parametrize("dtype", ["float64", "float32", "int64", "int32"])
def test_choices(f, dtype):
    def given(size, special=False):
        x, y = np.random.default_rng(size).standard_normal((2, size)) * (1 if dtype[0] == "f" else 9)
        if special and dtype[0] == "f":
            x[::3], y[1::4] = np.nan, -0.0
        return x.astype(dtype), y.astype(dtype)

    for size in (1, 8, 30):
        if f not in (overflows, summed_where_it_overflows):
            captured(f, lambda size=size: given(size))
        list(check(f, lambda size=size: given(size), backends=BACKENDS, ulp=0))
        list(check(f, lambda size=size: given(size, True), backends=BACKENDS, ulp=0))


@pytest.fixture
def texts(monkeypatch):
    """The functions that are written, the last one last."""
    found = []
    written = lower.write
    monkeypatch.setattr(lower, "write", lambda *given: found.append(written(*given)) or found[-1])
    return found


@pytest.mark.parametrize("f", [clipped, stored_either_way])
def test_several_at_once(f, texts):
    captured(f, lambda: (np.random.default_rng(0).standard_normal(40), np.zeros(40)))
    assert "<8 x double>" in texts[-1].text


def test_operations_on_bits_are_done_ahead(texts):
    captured(shifted_register, lambda: (np.arange(40), np.zeros(40, int)))
    assert texts[-1].text.count("select i1") == 1 and texts[-1].text.count("ashr") == 1


def summed_alone(x):
    s = 0.0
    for i in range(len(x)):
        if x[i] > 0:
            s += x[i]
    return s


def test_a_sum_that_begins_as_a_float_of_pythons_is_a_choice_too(texts):
    captured(summed_alone, lambda: (np.random.default_rng(0).standard_normal(40),))
    assert "select i1" in texts[-1].text


def test_programs_without_choices_stay_what_they_are():
    blocks = ((), (("const", 0, 1),), ("jump", 1, (0,))), ((1,), (), ("exit", (1,)))
    program = (("int", "int"), (), blocks, ("int",))
    assert choose(program, lambda array: array) is program


def generated(random):
    """A loop with tests of all shapes."""

    def value():
        return random.choice(["x[i]", "x[i]", "y[i]", "m", "s", "0.5", "x[0]", "-1.0", "x[i] * 2", "y[i - 1]"])

    def side(depth):
        kind = random.random()
        if kind < 0.3:
            return [f"m = {value()}"]
        if kind < 0.5:
            return [f"s {random.choice('+-')}= {value()}"]
        if kind < 0.6:
            return [random.choice(["n += 1", "n = n - 3", "n = 2 + n", "n = n >> 1 ^ 5", "n &= n >> 2", "n = n | i"])]
        if kind < 0.8:
            return [f"y[{random.choice(['i', 'i', 'i', '0', 'i - 1'])}] = {value()}"]
        if kind < 0.85:
            return ["pass"]
        return test(depth + 1) if depth < 2 else [f"s = {value()}"]

    def test(depth=0):
        lines = [f"if {value()} {random.choice(['<', '>', '<=', '=='])} {value()}:"]
        for _ in range(random.choice([1, 1, 1, 2])):
            lines += ["    " + line for line in side(depth)]
        if random.random() < 0.5:
            lines.append("else:")
            for _ in range(random.choice([1, 1, 2])):
                lines += ["    " + line for line in side(depth)]
        return lines

    body = [line for _ in range(random.choice([1, 2, 2, 3])) for line in (test() if random.random() < 0.7 else side(0))]
    start = random.choice(["0.0", "x[0]", "y[0] * 0"])
    head = ["def f(x, y):", f"    m, s, n = x[0], {start}, 0", "    for i in range(len(x)):"]
    return "\n".join([*head, *("        " + line for line in body), "    return m, s, n, x, y", ""])


def run_generated(seed):
    """One program, compiled and not."""
    source, random = generated(Random(seed)), Random(seed)
    dtype = random.choice(["f8", "f8", "f4", "i8"])

    def given():
        made = np.random.default_rng(seed).standard_normal((2, 20)) * (1 if dtype[0] == "f" else 4)
        made[:, ::7] = 0.0 if dtype[0] == "i" else random.choice([np.nan, -0.0, np.inf, 1e300])
        with np.errstate(all="ignore"):
            return tuple(made.astype(dtype))

    fixed = given()
    list(
        check(
            function_of(source, f"<choices {seed}>"), lambda: tuple(a.copy() for a in fixed), backends=("llvm",), ulp=0
        )
    )


@pytest.mark.parametrize("seeds", range(0, 200, 50))
def test_generated(seeds):
    for seed in range(seeds, seeds + 50):
        run_generated(seed)
