"""Programs as CUDA graphs, with a driver that pretends: nothing is copied, and nothing returned is written over."""

import numpy as np
import pytest

import tcompile
from tcompile.backends import triton
from tcompile.backends.triton import cudagraphs, rows
from tcompile.backends.triton.configs import TilingConfig
from tcompile.errors import InvalidArgument
from tcompile.observe import bus
from tests.backends.fake_cupy import FakeArray, LaunchGraph, Pool


def on_gpu(x):
    return FakeArray(None, host=np.array(x))


def square(n):
    return np.arange(n * n * 1.0).reshape(n, n)


def steps(x):
    """Many small kernels, which cannot be fused into one."""
    for k in range(6):
        x = x - x.sum(axis=k % 2, keepdims=True) / 8
    return x


@pytest.fixture
def reasons():
    """Why graphs were not recorded."""
    told = []
    with bus.listening(lambda event: told.append(event.reason) if event.kind == "cuda_graph_skipped" else None):
        yield told


def compiled(function, **settings):
    return tcompile.compile(function, fullgraph=True, **(settings or {"mode": "reduce-overhead"}))


@pytest.mark.parametrize("settings", [
    {"mode": "reduce-overhead"}, {"mode": "max-autotune"}, {"options": {"triton.cudagraphs": True}},
    {"mode": "reduce-overhead", "backend": "triton"},
])  # fmt: skip
def test_a_graph_is_recorded_once_and_launched_at_every_call(gpu, reasons, settings):
    gpu()
    f, kept = compiled(steps, **settings), []
    before = LaunchGraph.started
    for n in range(4):
        given = square(5) + n
        got = f(on_gpu(given))
        kept.append((got, steps(given)))
    assert LaunchGraph.started - before == 4 and not reasons
    for got, want in kept:  # no later call has written over it
        assert type(got) is FakeArray and got.strides == want.strides
        np.testing.assert_allclose(got.host, want)
    assert len({got.data.ptr for got, _ in kept}) == 4


def test_counters_are_not_where_other_launches_write(gpu, reasons, monkeypatch):
    """Of a second kernel: temporary arrays of the first one, which are given back, use memory in turn."""
    gpu()
    monkeypatch.setattr(triton, "RESIDENT", TilingConfig(elements=16, rows=4, chunk=32, tile=None))
    monkeypatch.setattr(rows, "IN_REGISTERS", 16)

    def spread(x):
        return (x - x.sum(axis=0) / 130).var(axis=1).sum()

    f, before = compiled(spread), LaunchGraph.started
    for n in range(2):
        x = np.random.default_rng(n).normal(size=(130, 70)).astype("f4")
        np.testing.assert_allclose(f(on_gpu(x)).host, spread(x), rtol=1e-5)
    assert LaunchGraph.started - before == 2 and not reasons


def test_sizes_are_recorded_apart_up_to_a_limit(gpu, reasons, monkeypatch):
    gpu()
    monkeypatch.setattr(cudagraphs, "MOST", 2)
    f = compiled(steps, mode="reduce-overhead", dynamic=True)
    before = LaunchGraph.started
    for n in range(2, cudagraphs.MOST + 4):
        np.testing.assert_allclose(f(on_gpu(square(n))).host, steps(square(n)))
    assert LaunchGraph.started - before == cudagraphs.MOST
    assert reasons == [f"it is called with more than {cudagraphs.MOST} sets of sizes"]


def in_place(x):
    x -= x.sum()
    return x


@pytest.mark.parametrize("function, reason", [
    (in_place, "it writes to its arguments"), (lambda x: steps(x)[1:], "a result is a view"),
    (lambda x: (x[1:], steps(x)), "a result is a view"), (lambda x: x.T, "it has no kernels"),
])  # fmt: skip
def test_what_cannot_be_recorded_runs_as_it_is(gpu, reasons, function, reason):
    gpu()
    f, before = compiled(function), LaunchGraph.started
    for _ in range(2):
        got, want = f(on_gpu(square(5))), function(square(5))
        for a, b in zip(*(x if isinstance(x, tuple) else (x,) for x in (got, want)), strict=True):
            np.testing.assert_allclose(a.host, b)
    assert LaunchGraph.started == before
    assert [told.startswith(reason) for told in reasons] == [True]


def of_parts(x, y):
    """Results in C order and not, and temporary arrays of several sizes that lie in one another's memory."""
    s = x[1:, ::2].sum(axis=0)
    t = (y - y.max(axis=1, keepdims=True)).sum(axis=1)
    u = (x * s.sum()).sum(axis=0)
    return x[::-1] - s.sum() + t.sum(), (x + y).T * u.max(), t


@pytest.mark.parametrize("first, second", [
    (lambda m: m, lambda m: m), (lambda m: m, lambda m: m[::-1]), (lambda m: m[:, ::-1], lambda m: m.T),
    (lambda m: m[:, -2::-2], lambda m: m[::-1, ::2]),
    (lambda m: m[1:-1], lambda m: m[2:]), (lambda m: m[2:], lambda m: m[1:-1]),
])  # fmt: skip
def test_arguments_may_be_parts_of_one_array(gpu, reasons, first, second):
    gpu()
    f, before = compiled(of_parts), LaunchGraph.started
    for n in range(3):
        whole = on_gpu(square(8) + n)
        got = f(first(whole), second(whole))
        want = of_parts(first(whole.host), second(whole.host))
        for a, b in zip(got, want, strict=True):
            np.testing.assert_allclose(a.host, b)
            assert a.strides == np.ascontiguousarray(b).strides or a.strides == b.strides
    aligned = not any(part(whole).data.ptr % 16 for part in (first, second))
    assert LaunchGraph.started - before == 3 * aligned and not reasons


def test_arguments_that_are_not_aligned_run_as_they_are(gpu, reasons):
    gpu()
    f, before = compiled(lambda x: x * 2 + 1), LaunchGraph.started
    whole = on_gpu(np.arange(9.0))
    for start in (1, 0, 3):
        np.testing.assert_array_equal(f(whole[start : start + 6]).host, whole.host[start : start + 6] * 2 + 1)
    assert LaunchGraph.started - before == 1 and not reasons


def test_numbers_that_vary_and_arrays_of_numpy_are_not_recorded(gpu, reasons):
    gpu()
    f = compiled(lambda x, a: steps(x) * a)
    for a in (0.5, 0.25, 0.125):
        np.testing.assert_allclose(f(on_gpu(square(5)), a).host, steps(square(5)) * a)
    assert "a Python number is among its inputs" in reasons
    del reasons[:]
    g = compiled(steps, mode="reduce-overhead", backend="triton")
    np.testing.assert_allclose(g(square(5)), steps(square(5)))
    assert reasons == ["arrays of NumPy's are copied to the GPU and back at every call"]


def test_where_memory_is_short_nothing_is_recorded(gpu, reasons, monkeypatch):
    gpu()
    monkeypatch.setattr(Pool, "limit", 700)  # so memory that launches have been given goes back to CUDA
    f, before = compiled(lambda x: steps(x).sum(axis=0) + (steps(x) * steps(x + 1)).sum(axis=1)), LaunchGraph.started
    for n in range(2):
        x = square(9) + n
        want = steps(x).sum(axis=0) + (steps(x) * steps(x + 1)).sum(axis=1)
        np.testing.assert_allclose(f(on_gpu(x)).host, want)
    assert reasons == ["the GPU has not enough memory for it"] and LaunchGraph.started == before


def test_a_change_that_fails_is_made_again(gpu, monkeypatch):
    gpu()
    f, x, y = compiled(lambda x: steps(x) + steps(x + 1)), on_gpu(square(5)), on_gpu(square(5) + 3)
    f(x)
    change, left = LaunchGraph.change, [2]

    def fails(self, number):
        left[0] -= 1
        if not left[0]:
            raise KeyboardInterrupt
        change(self, number)

    monkeypatch.setattr(LaunchGraph, "change", fails)
    with pytest.raises(KeyboardInterrupt):
        f(y)
    np.testing.assert_allclose(f(x).host, steps(square(5)) + steps(square(5) + 1))


def test_where_cuda_refuses_to_record_the_program_runs_as_it_is(gpu, reasons, monkeypatch):
    gpu()

    class Refusing:
        def __init__(self, cuda, launches):
            raise RuntimeError("cuGraphCreate of CUDA's driver gave error 201")

    monkeypatch.setattr("tcompile.backends.triton.driver.LaunchGraph", Refusing)
    f = compiled(steps)
    for _ in range(2):
        np.testing.assert_allclose(f(on_gpu(square(5))).host, steps(square(5)))
    assert reasons == ["RuntimeError: cuGraphCreate of CUDA's driver gave error 201"]


def test_modes_and_options_say_which_backends_they_are_for():
    f = lambda x: x * 2 + 1
    np.testing.assert_array_equal(tcompile.compile(f, mode="reduce-overhead")(np.ones(3)), f(np.ones(3)))
    tcompile.compile(f, mode="max-autotune", backend="llvm")
    tcompile.compile(f, mode="max-autotune", backend="triton")
    with pytest.raises(InvalidArgument, match=r"'triton.cudagraphs' is for tcompile's own backends auto, triton"):
        tcompile.compile(f, backend="llvm", options={"triton.cudagraphs": True})
    with pytest.raises(InvalidArgument, match=r"'exact' is for tcompile's own backends auto, llvm"):
        tcompile.compile(f, backend="triton", options={"exact": True})
