"""Measuring plain Python and compiled code: what is told of the samples, and that it is done honestly."""

import itertools
import math
import random

import numpy as np
import pytest
from tcompile_jupyter.compare import Comparison
from tcompile_jupyter.measure import REPEATS, Measured, Pair, Sample, crossings, measure

import tcompile
from tcompile.debug.differences import Difference, difference


def test_the_interval_holds_the_median_as_often_as_it_says():
    chance = random.Random(3)
    for n in (6, 9, 30):
        held = 0
        for _ in range(2000):
            low, high = Sample(tuple(chance.expovariate(1.0) for _ in range(n))).interval(0.9)
            held += low <= math.log(2) <= high
        assert 0.88 <= held / 2000 <= 0.99, n


def test_a_sample():
    assert math.isnan(Sample().median) and Sample().interval() == (-math.inf, math.inf)
    one = Sample((5.0,))
    assert (one.median, one.spread(), one.uncertainty()) == (5.0, (5.0, 5.0), math.inf)
    steady = Sample((2.0,) * 6)
    assert (steady.interval(), steady.uncertainty()) == ((2.0, 2.0), 0.0)


def test_it_says_when_it_is_sure():
    def known(*times):
        return Measured(Sample((1.0, 1.1) * 5), Sample(times), Difference())

    assert known(*(2.0,) * 10).sure and known(*(0.5,) * 10).sure
    assert not known(*(0.5, 2.0) * 5).sure and not known(2.0, 2.0).sure


def test_turns_are_taken_and_the_first_runs_are_not_counted():
    log = []
    clock = itertools.count(1)

    def run(kind):
        def work(calls):
            log.append((kind, calls))
            return (100.0 if len(log) <= 2 else 0.06 + next(clock) * 1e-9), kind == "neither"

        return work

    *_, known = measure(run("plain"), run("compiled"))
    assert known.done and known.repeats == REPEATS[0] and known.difference.equal
    assert max(known.eager.ms + known.compiled.ms) < 100
    assert [kind for kind, _ in log[-2 * REPEATS[0] :]] == ["plain", "compiled"] * REPEATS[0]


def test_it_goes_on_until_it_is_sure():
    chance = random.Random(5)

    def noisy(calls):
        return 0.001 * chance.uniform(0.7, 1.3), None

    def steady(calls):
        return 0.001, None

    *_, rough = measure(noisy, steady, tolerance=0.2)
    *_, fine = measure(noisy, steady, tolerance=0.05)
    assert REPEATS[0] <= rough.repeats < fine.repeats
    assert rough.uncertainty <= 0.2 and fine.uncertainty <= 0.05
    *_, short = measure(noisy, steady, tolerance=0.0, budget=0)
    assert short.repeats == REPEATS[0] and short.done
    *_, long = measure(noisy, steady, tolerance=0.0, budget=60)
    assert long.repeats == REPEATS[-1]


def test_progress_grows():
    chance = random.Random(5)
    seen = [known.progress() for known in measure(lambda n: (chance.uniform(0.9, 1.1), 1), lambda n: (1.0, 1))]
    assert 0 <= seen[0] < 1 and seen[-1] == 1.0 and max(seen[:-1]) < 1


def test_short_work_is_repeated_and_cells_are_not():
    counts = []

    def short(calls):
        counts.append(calls)
        return 2**-20, None

    list(measure(short, short, budget=0))
    assert counts[0] == 1 and counts[-1] == 210
    counts.clear()
    list(measure(short, short, budget=0, repeat=False))
    assert set(counts) == {1}


def test_results_and_arguments_are_compared_first():
    *_, known = measure(lambda n: (1.0, np.float32(1)), lambda n: (1.0, np.float64(1)), budget=0)
    assert "float64" in known.difference.mismatch


@pytest.mark.parametrize("ready", [False, True])
def test_a_pair_leaves_the_arguments_alone(ready):
    def doubled(x, by=2):
        x *= by
        return x + 1

    function = tcompile.compile(doubled) if ready else doubled
    x = np.ones(50)
    pair = Pair.of(function, (x,), {"by": 1.0})
    *_, known = pair.measure(budget=0)
    assert pair.name == "doubled" and known.difference.equal and pair.function.entries
    np.testing.assert_array_equal(x, np.ones(50))
    assert tcompile.stance.current().name == "default"


def test_crossings():
    assert crossings([], []) == []
    assert crossings([1, 10, 100, 1000], [0.5, 2.0, 0.5, 2.0]) == pytest.approx([10**0.5, 10**1.5, 10**2.5])
    assert crossings([100, 1], [10.0, 0.1]) == pytest.approx([10.0])
    assert crossings([1, 10], [math.nan, 2.0]) == []


def test_numbers_far_apart_are_no_rounding():
    near = difference(np.array([1.0, 2.0]), np.array([1.0, 2.0 + 1e-9]))
    half = difference(np.float16([1.0, 2.0]), np.float16([1.0, 2.004]))
    far = difference(np.array([1.0, 2.0]), np.array([1.0, 2.5]), "the result")
    assert (near.wrong, half.wrong, far.wrong) == ("", "", "the result: numbers differ by 0.5")
    sentence = Comparison("f", 1.0, 1.0, far, 6).sentence()
    assert sentence == "f: RESULTS DIFFER: the result: numbers differ by 0.5"
