"""CuPy's arrays as arguments, with a CuPy that pretends to have a GPU: captured, compiled, and never copied."""

import sys

import numpy as np
import pytest

import tcompile
from tcompile import compiler
from tcompile.backends import why_not_on
from tcompile.backends.llvm import native  # noqa: F401  # loaded before CuPy is pretended
from tcompile.backends.triton import devices
from tcompile.errors import BackendError, InvalidType, Unsupported
from tcompile.frontends.cupy import overlap
from tcompile.frontends.numpy.writing import overlaps_itself
from tcompile.graph.evaluate import run
from tcompile.graph.ops.opaque import resolve
from tcompile.observe import bus
from tests.backends import fake_cupy, gpu_programs
from tests.backends.fake_cupy import FakeArray
from tests.backends.gpu_programs import ON_CUPY


def on_gpu(x):
    return FakeArray(None, host=x) if isinstance(x, np.ndarray) else x


def arrays():
    return gpu_programs.arrays("f4")


def leaves(value):
    return [leaf for item in value for leaf in leaves(item)] if isinstance(value, tuple | list) else [value]


def assert_alike(got, want):
    got, want = leaves(got), leaves(want)
    assert len(got) == len(want)
    for a, b in zip(got, want, strict=True):
        assert type(a) is type(b)
        if isinstance(a, FakeArray):
            assert (a.dtype, a.shape, a.strides) == (b.dtype, b.shape, b.strides)
            np.testing.assert_allclose(a.host, b.host, rtol=1e-5, atol=1e-6)
        else:
            assert a == b


def assert_captured(function, make=arrays, **options):
    """One graph gives what plain Python gives, and does to its arguments what plain Python does."""
    tcompile.reset()
    compiled = tcompile.compile(function, fullgraph=True, **options)
    for _ in range(2):
        mine, plain = [[on_gpu(x) for x in make()] for _ in range(2)]
        with np.errstate(all="raise", under="ignore"):  # which CuPy never asks
            assert_alike(compiled(*mine), function(*plain))
        assert_alike(mine, plain)
    (entry,) = compiled.entries
    assert entry.kernels
    assert not any(node.regions for node in entry.graph.nodes)
    assert all(node.device == "cuda:0" for node in entry.graph.outputs)
    return compiled


@pytest.mark.parametrize("function", ON_CUPY)
def test_programs_on_arrays_of_a_gpu(gpu, function):
    gpu()
    assert_captured(function)
    if function in gpu_programs.IN_C_ORDER:
        return
    assert_captured(function, lambda: [np.asfortranarray(x) for x in arrays()])
    assert_captured(function, lambda: [np.repeat(x, 2, 1)[:, ::2] for x in arrays()])


@pytest.mark.parametrize("function", ON_CUPY)
def test_operations_mean_the_same_in_cupys_namespace(gpu, function):
    cupy = gpu()

    def reference(graph, inputs):
        return lambda *args: run(graph, args, xp=cupy)

    compiled = tcompile.compile(function, fullgraph=True, backend=reference)
    mine, plain = [[on_gpu(x) for x in arrays()] for _ in range(2)]
    assert_alike(compiled(*mine), function(*plain))
    assert_alike(mine, plain)


def test_sizes_may_stay_open(gpu):
    gpu()
    compiled = tcompile.compile(lambda x: (x * 2).sum() + len(x), fullgraph=True, dynamic=True)
    for n in (5, 7, 2000):
        got = compiled(on_gpu(np.arange(float(n))))
        assert type(got) is FakeArray and got.shape == () and float(got.host) == n * (n - 1) + n
    assert len(compiled.entries) == 1


def test_nothing_is_copied_to_the_cpu(gpu, monkeypatch):
    gpu()
    x, y = map(on_gpu, arrays())
    compiled = tcompile.compile(gpu_programs.writes_into_arguments, fullgraph=True)
    monkeypatch.setattr(FakeArray, "get", None)
    monkeypatch.setattr(FakeArray, "set", None)
    compiled(x, y)
    assert "status" not in compiled.entries[0].graph.compiled().source


@pytest.mark.parametrize("function", [
    lambda x: x // 2, lambda x: x % 2, lambda x: np.sort(x.T), lambda x: x[x > 0], lambda x: x[np.array([0])],
    lambda x: x.astype("i4"), lambda x: np.floor_divide(x, 2), lambda x: np.power(2, x.astype("i8")),
    lambda x: np.sum(x, where=x > 0), lambda x: float(x.sum()), lambda x: x.get(), lambda x: len(x[x > 0]),
    lambda x: x[0, x[0] > 0].sum(), lambda x: np.sort(x[x > 0]), lambda x: x.clip(np.nan, 1), lambda x: x.clip(1, 0),
    lambda x: x[x > 0].astype("i4").sum(), lambda x: np.linalg.solve(x[:4], x[:4]),
    lambda x: x.clip(0, 1, x), lambda x: np.clip(x, 0, 1, out=None), lambda x: x.take(x.argmax(0), mode="wrap"),
])  # fmt: skip
def test_what_cupy_does_in_its_own_way_is_left_to_it(gpu, function):
    gpu()
    with pytest.raises(Unsupported):
        tcompile.compile(function, fullgraph=True)(on_gpu(arrays()[0]))


def test_calls_between_compiled_stretches_are_cupys(gpu):
    gpu()
    compiled = tcompile.compile(lambda x, y: np.floor_divide(x * 2 + y, y) * 3 - 1)
    x, y = arrays()
    for _ in range(2):
        assert_alike(compiled(on_gpu(x), on_gpu(y)), on_gpu(np.floor_divide(x * 2 + y, y) * 3 - 1))
    assert [bool(entry.kernels) for entry in compiled.entries] == [True, True]


def test_lists_of_elements_are_cupys(gpu):
    gpu()

    def f(x):
        found = []
        for i in range(len(x)):
            if x[i] > 0:
                found.append(i)
        return found, [v for v in x if v > 3]

    compiled = tcompile.compile(f)
    for _ in range(2):
        assert_alike(compiled(on_gpu(np.arange(-9.0, 9))), f(on_gpu(np.arange(-9.0, 9))))
    assert not any(node.op.name == "scalar_loop" for graph in compiled.graphs for node in graph.nodes)


def test_what_cupys_routines_raise_or_give_is_theirs(gpu, monkeypatch):
    gpu()
    x, y = arrays()
    wrong = tcompile.compile(lambda x, y: (x * 2) @ y)
    with pytest.raises(ValueError, match="matmul"):  # as without compile
        wrong(on_gpu(x), on_gpu(y))
    resolve.cache_clear()
    monkeypatch.setattr(sys.modules["cupy"], "sort", lambda a, axis: on_gpu(np.asfortranarray(a.host.astype("f8"))))
    turned = tcompile.compile(lambda x: sys.modules["cupy"].sort(x * 2, 0) + 1)
    try:
        for _ in range(2):
            assert_alike(turned(on_gpu(x)), on_gpu((x * 2).astype("f8") + 1))
    finally:
        resolve.cache_clear()


def test_arrays_of_several_devices_are_not_mixed(gpu):
    gpu()
    x, y = arrays()
    mixed = tcompile.compile(lambda x, y: x * 2 + y)
    with pytest.raises(TypeError, match=r"Unsupported type <class 'numpy.ndarray'>"):  # CuPy's own error
        mixed(on_gpu(x), y)
    with pytest.raises(Unsupported, match="arrays on cpu and cuda:0"):
        tcompile.compile(lambda x, y: x * 2 + y, fullgraph=True)(on_gpu(x), y)
    other = FakeArray(None, host=x, number=1)
    with pytest.raises(Unsupported):
        tcompile.compile(lambda x, y: x * 2 + y, fullgraph=True)(other, other)


def test_where_a_mask_selects_nothing_cupy_says_what_follows(gpu):
    gpu()
    x = arrays()[0]
    mean = tcompile.compile(lambda x: x[x > 100].mean() * 2, fullgraph=True)
    with pytest.warns(RuntimeWarning):  # of the arrays that pretend to be CuPy's
        assert np.isnan(mean(on_gpu(x)).host)
    largest = tcompile.compile(lambda x: x[x > 100].max() * 2, fullgraph=True)
    with pytest.raises(ValueError, match="zero-size array"):
        largest(on_gpu(x))
    assert_alike(largest(on_gpu(x + 100)), on_gpu(np.array((x + 100)[x > 0].max() * 2)))


def test_cupys_functions_take_no_arrays_of_numpy(gpu):
    gpu()
    x, cupy = arrays()[0], sys.modules["cupy"]

    def doubled(x):
        xp = cupy.get_array_module(x)
        return xp.exp(x * 2) + 1

    compiled = tcompile.compile(doubled, fullgraph=True)
    np.testing.assert_allclose(compiled(x), doubled(x), rtol=1e-6)
    assert_alike(compiled(on_gpu(x)), doubled(on_gpu(x)))
    for refused in (lambda x: cupy.exp(x * 2), lambda x: cupy.where(x > 0, x, 1), lambda x: cupy.sum(x + 1)):
        with pytest.raises(Unsupported, match="arrays on cpu"):
            tcompile.compile(refused, fullgraph=True)(x)
    with pytest.raises(Unsupported, match="without an array on the same GPU"):
        tcompile.compile(lambda x: x.sum() + len(cupy.zeros(3)), fullgraph=True)(x)


def test_each_device_and_library_has_an_entry_of_its_own(gpu):
    gpu()
    compiled = tcompile.compile(lambda x: x * 2 + 1)
    x = arrays()[0]
    for _ in range(2):
        assert_alike(compiled(on_gpu(x)), on_gpu(x * 2 + 1))
        np.testing.assert_array_equal(compiled(x), x * 2 + 1)
    assert len(compiled.entries) == 2
    assert any("is on GPU 0, the current one" in guard for guard in compiled.entries[0].guards)


def test_control_flow_functions_take_no_such_arrays(gpu):
    gpu()
    compiled = tcompile.compile(lambda x: tcompile.cond(x.sum() > 0, np.sin, np.cos, (x,)))
    with pytest.raises(InvalidType, match="cond: pred must be a bool or an array"):  # as without compile
        compiled(on_gpu(arrays()[0]))


def test_arguments_that_share_memory_are_not_written(gpu):
    gpu()

    def shift(x, y):
        x[1:] = y[:-1] * 2
        return x

    compiled = tcompile.compile(shift)
    for make in (lambda: (np.arange(9.0), np.arange(9.0)), lambda: (base := np.arange(9.0), base)):
        mine, plain = [[on_gpu(x) for x in make()] for _ in range(2)]
        assert_alike(compiled(*mine), shift(*plain))


def test_backends_of_the_cpu_refuse_such_arrays(gpu):
    gpu()
    with pytest.raises(BackendError, match=r"backend='llvm' takes no arrays on cuda:0; .*auto, triton"):
        tcompile.compile(lambda x: x * 2, backend="llvm")(on_gpu(arrays()[0]))


@pytest.mark.parametrize("facts, reason", [
    ({"version": "13.6.0"}, "from CuPy 14 on"), ({"capability": "75"}, "compute capability 7.5"),
    ({"devices": 0}, "CuPy finds no GPU"),
])  # fmt: skip
def test_without_a_gpu_that_can_be_used_cupy_runs_as_it_is(gpu, facts, reason):
    gpu(**facts)
    compiler._reported.clear()
    events = []
    compiled = tcompile.compile(lambda x: x * 2 + 1)
    x = arrays()[0]
    with bus.listening(events.append):
        assert_alike(compiled(on_gpu(x)), on_gpu(x * 2 + 1))
    assert any(e.kind == "fell_back" and reason in e.detail for e in events)


def test_on_a_dead_context_cupy_runs_as_it_is(gpu, monkeypatch):
    gpu()

    def dead():
        raise RuntimeError("cudaErrorContextIsDestroyed")

    compiler._reported.clear()
    monkeypatch.setattr(sys.modules["cupy"].cuda, "Device", dead)
    events, x = [], arrays()[0]
    with bus.listening(events.append):  # (CuPy's own error, where it is not pretended)
        assert_alike(tcompile.compile(lambda x: x * 2 + 1)(on_gpu(x)), on_gpu(x * 2 + 1))
    assert any(e.kind == "fell_back" and "CUDA needs a new process" in e.detail for e in events)


def test_out_of_memory_is_cupys_to_tell(gpu):
    gpu(room=1000)
    compiled = tcompile.compile(lambda x: x * 2 + 1)
    x = np.zeros((5000,))
    assert_alike(compiled(on_gpu(x)), on_gpu(x + 1))


@pytest.mark.parametrize("put", [on_gpu, lambda x: x])
def test_where_kernels_cannot_be_started_plain_python_goes_on(gpu, monkeypatch, put):
    gpu()

    def dead(*args, **kwargs):
        raise RuntimeError("CUDA_ERROR_CONTEXT_IS_DESTROYED")

    monkeypatch.setattr(fake_cupy.Function, "__call__", dead)
    compiled, events, x = tcompile.compile(lambda x: x * 2 + 1, backend="triton"), [], arrays()[0]
    with bus.listening(events.append):
        got = compiled(put(x))
    assert type(got) is type(put(x))
    np.testing.assert_array_equal(got.host if put is on_gpu else got, x * 2 + 1)
    assert [e.detail for e in events if e.kind == "fell_back"] == ["RuntimeError: CUDA_ERROR_CONTEXT_IS_DESTROYED"]


def test_without_triton_cupy_runs_as_it_is(gpu, monkeypatch):
    gpu()
    monkeypatch.setattr(devices.importlib.util, "find_spec", lambda name: None)
    assert why_not_on("cuda") == "kernels for GPUs need Triton: pip install triton"
    x = arrays()[0]
    compiled = tcompile.compile(lambda x: x * 2 + 1)
    assert_alike(compiled(on_gpu(x)), on_gpu(x * 2 + 1))
    assert not any(entry.kernels for entry in compiled.entries)


def test_memory_that_overlaps():
    x = on_gpu(np.zeros((4, 6)))
    assert overlap(x, x[1:]) and not overlap(x[:2], x[2:]) and overlap(x[::2], x[::-1])
    assert not overlaps_itself(x[::2, ::3]) and not overlaps_itself(x.T)
    assert overlaps_itself(on_gpu(np.broadcast_to(np.zeros(4), (3, 4))))
