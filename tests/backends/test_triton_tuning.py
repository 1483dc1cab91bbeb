"""``mode="max-autotune"`` for Triton kernels: what is tried, what is kept, with a CuPy that pretends to have a GPU."""

import numpy as np
import pytest

pytest.importorskip("triton")

import tcompile
from tcompile.backends import triton
from tcompile.backends import tuning as shared
from tcompile.backends.triton import rows as rows_module
from tcompile.backends.triton import tuning
from tcompile.backends.triton.configs import USUAL, TilingConfig
from tcompile.observe import bus
from tcompile.observe.events import KernelCompiled
from tests.backends.fake_cupy import FakeArray, Stream
from tests.backends.llvm_cases import sample
from tests.backends.test_triton import softmax
from tests.backends.triton_cases import check, compile_all


def relu(x):
    return np.maximum(x + 1, 0) * 2


def rows(x):
    return (x * x).sum(axis=1), x - x.max(axis=1, keepdims=True)


def in_place(x):
    x *= 2
    return x @ x.T + 1


def on_gpu(x):
    return FakeArray(None, host=x)


@pytest.fixture
def afresh(gpu, monkeypatch):
    gpu()
    monkeypatch.setattr(shared, "_known", {})
    monkeypatch.setattr(shared, "COMPETITOR_S", 0.0)
    monkeypatch.setattr(shared.cache, "find", lambda key: None)


@pytest.mark.parametrize("function", [relu, rows, in_place])
def test_results_are_the_same(afresh, function):
    compiled = tcompile.compile(function, mode="max-autotune-no-cudagraphs")
    for _ in range(2):
        mine, plain = on_gpu(sample("float32", (9, 40))), on_gpu(sample("float32", (9, 40)))
        got, want = compiled(mine), function(plain)
        for a, b in zip(*(x if isinstance(x, tuple) else (x,) for x in (got, want)), strict=True):
            np.testing.assert_allclose(a.host, b.host, rtol=1e-5)
        np.testing.assert_array_equal(mine.host, plain.host)  # written once


def test_the_winner_is_remembered_and_told(afresh, monkeypatch):
    kept, seen, timed = {}, [], []
    monkeypatch.setattr(shared.cache, "find", kept.get)
    monkeypatch.setattr(shared.cache, "keep", kept.__setitem__)

    def times(programs, given, finish):
        timed.append(len(programs))
        return [float(len(programs) - i) for i in range(len(programs))]  # the last is the fastest

    monkeypatch.setattr(shared, "_times", times)
    with bus.listening(seen.append):
        for _ in range(2):
            tcompile.reset()
            monkeypatch.setattr(shared, "_known", {})  # as in another process
            tcompile.compile(relu, mode="max-autotune")(on_gpu(np.ones((20, 20))))
    assert timed == [3, 3]
    told = [event.description for event in seen if isinstance(event, KernelCompiled)]
    assert len(told) == 2 and all("tuned: points=4096 side=64" in text and "warps=2.0" in text for text in told)
    assert [value for value in kept.values() if value.startswith(b"points")] == [
        b"points=4096 side=64 elements=4096 rows=32 chunk=16384 warps=2.0 stages=3 tile=none padded=False"
    ]


def test_what_cannot_be_started_has_lost():
    def refused():
        raise RuntimeError("CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES")

    assert shared._times([lambda: None, refused], [], lambda: None)[1] == float("inf")
    with pytest.raises(RuntimeError, match="OUT_OF_RESOURCES"):
        shared._times([refused], [], lambda: None)


def test_each_program_is_waited_for(afresh, monkeypatch):
    waited = []
    monkeypatch.setattr(Stream, "synchronize", lambda self: waited.append(self))
    tcompile.compile(relu, mode="max-autotune-no-cudagraphs")(on_gpu(np.ones((20, 20))))
    assert len(waited) > 6


def test_where_there_is_no_gpu_nothing_is_timed(monkeypatch):
    monkeypatch.setattr(shared, "fastest", lambda *args: pytest.fail("timed"))
    with tcompile.config.patch(triton_interpret=True):
        compiled = tcompile.compile(relu, backend="triton", mode="max-autotune")
        np.testing.assert_array_equal(compiled(np.ones(5)), relu(np.ones(5)))


@pytest.mark.parametrize("config", [
    TilingConfig(points=512, side=16, elements=64, rows=16, chunk=256, warps=0.5, stages=1),
    TilingConfig(points=4096, side=64, elements=256, rows=32, chunk=1024, warps=2.0, stages=5),
], ids=["small", "large"])  # fmt: skip
def test_kernels_of_every_configuration(config, monkeypatch):
    monkeypatch.setattr(triton, "USUAL", config)
    monkeypatch.setattr(rows_module, "IN_REGISTERS", 64)
    a, b = sample("float32", (70, 90)), sample("float32", (90, 70))
    for made in (
        check(lambda op, x, y: op("add", op("permute_dims", x, axes=(1, 0)), y), a, b),
        check(softmax(1), sample("float32", (3, 700)), ulp=8, rtol=1e-6),
        check(
            lambda op, x: [op("sum", x, axis=(0,), keepdims=False), op("cumulative_sum", x, axis=0)],
            sample("float64", 2000),
            rtol=1e-12,
        ),
    ):
        assert all(function.config == config for kernel in made.kernels for function in kernel.functions)
        compile_all(made, (90,))


def test_every_property_may_be_tried():
    assert set(tuning.TRIED) == set(USUAL.__annotations__)
