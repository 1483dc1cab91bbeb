"""``mode="max-autotune"``: variants give the same bits, nothing is changed on the way, and the winner is remembered."""

import itertools

import numpy as np
import pytest

import tcompile
from tcompile.backends import llvm
from tcompile.backends import tuning as shared
from tcompile.backends.disk import cache
from tcompile.backends.llvm import tuning
from tcompile.backends.llvm.kernels.variants import USUAL, KernelVariant
from tcompile.observe import bus
from tcompile.observe.events import KernelCompiled
from tests.differential import check


@pytest.fixture(autouse=True)
def afresh(monkeypatch):
    monkeypatch.setattr(shared, "_known", {})
    monkeypatch.setattr(shared, "COMPETITOR_S", 0.0)
    monkeypatch.setattr(llvm, "NONTEMPORAL_BYTES", 1 << 14)


def relu(x):
    return np.maximum(x + 1, 0) * 2


def across(x, y):
    return x.T + y


def softmax(x):
    e = np.exp(x - x.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


def sums(x):
    return (x * x).sum(), x.var(axis=0)


def in_place(x, y):
    x[1:-1] += y[1:-1] * 0.5
    return x.sum()


FUNCTIONS = [relu, across, softmax, sums, in_place]


def inputs(function):
    count = function.__code__.co_argcount
    return [np.random.default_rng(i).standard_normal((131, 131)) for i in range(count)]


@pytest.mark.parametrize("function", FUNCTIONS)
def test_every_variant_gives_the_same_bits(function, monkeypatch):
    def run(variant):
        monkeypatch.setattr(tuning, "best", lambda *_: variant)
        tcompile.reset()
        given = inputs(function)
        results = tcompile.compile(function, mode="max-autotune")(*given)
        return [np.asarray(x).tobytes() for x in ([*results] if isinstance(results, tuple) else [results]) + given]

    expected = run(USUAL)
    names = list(tuning._TRIED)
    for values in itertools.product(*((getattr(USUAL, name), tuning._TRIED[name][-1]) for name in names)):
        assert run(KernelVariant(**dict(zip(names, values, strict=True)))) == expected


@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize("dtype", ["float32", "int64", "uint8"])
def test_as_plain_python(function, dtype):
    if function is in_place and dtype != "float32":
        pytest.skip("plain Python refuses to add floats into integers")
    check(function, lambda: [(x * 9).astype(dtype) for x in inputs(function)], ulp=1000, mode="max-autotune")


def test_arguments_are_written_once():
    def twice(x):
        x *= 2
        return x

    x = np.ones(40_000)
    tcompile.compile(twice, mode="max-autotune")(x)
    assert (x == 2).all()


def test_what_plain_python_reports_it_reports_here_too():
    def overflow(x):
        return np.exp(x) * 2

    with pytest.warns(RuntimeWarning, match="overflow"):
        tcompile.compile(overflow, mode="max-autotune")(np.full(40_000, 1e4))


def test_the_winner_is_remembered_and_told(monkeypatch, tmp_path):
    monkeypatch.setattr(cache, "_directory", tmp_path / "kept")
    monkeypatch.setattr(cache, "_looked", False)
    monkeypatch.setattr(cache, "_off", "")
    timed = []

    def times(programs, given, finish):
        timed.append(len(programs))
        return [float(len(programs) - i) for i in range(len(programs))]  # the last is the fastest

    monkeypatch.setattr(shared, "_times", times)
    seen = []
    stop = bus.subscribe(seen.append)
    try:
        for _ in range(2):
            tcompile.reset()
            monkeypatch.setattr(shared, "_known", {})  # as in another process
            f = tcompile.compile(relu, mode="max-autotune")
            f(np.ones((200, 200)))
    finally:
        stop()
    assert timed and len(timed) == len(set(tuning._TRIED) - {"strip_rows"})
    wanted = KernelVariant(chunk=4.0, past_the_cache=False, unroll=4).text()
    told = [event.description for event in seen if isinstance(event, KernelCompiled)]
    assert len(told) == 2 and all(wanted in text for text in told)
    assert wanted in f.entries[0].kernels[0].description


def test_a_damaged_memory_is_no_memory(monkeypatch):
    monkeypatch.setattr(cache, "find", lambda key: b"chunk=7 \xff nonsense")
    assert shared._from_disk("00", USUAL, tuning._TRIED) is None


def test_it_is_for_our_own_backends():
    with pytest.raises(tcompile.errors.InvalidArgument, match="autotune"):
        tcompile.compile(relu, mode="max-autotune", backend=lambda graph, inputs: graph)
    for backend in ("eager", "aot_eager"):
        check(relu, lambda: [np.ones(3)], mode="max-autotune", backends=[backend])
