"""The triton backend's way to a GPU, through a CuPy that pretends to have one: no GPU is needed, and none is shown."""

import json
import sys

import numpy as np
import pytest

pytest.importorskip("triton")

from differential import Run, assert_same_run

import tcompile
from tcompile.backends.replay import Replay
from tcompile.backends.triton import cubins, cuda, devices, launches
from tcompile.errors import BackendError, InvalidArgument, InvalidType
from tcompile.observe import bus
from tests.backends import fake_cupy, gpu_programs
from tests.backends.gpu_programs import ON_NUMPY


def assert_same_on_gpu(function, make_args):
    compiled = tcompile.compile(function, backend="triton")
    for _ in range(2):
        want = Run(function, make_args())
        assert_same_run(Run(compiled, make_args(), interpret=False), want)


@pytest.mark.parametrize("function", ON_NUMPY)
def test_programs_are_the_same_on_a_gpu(gpu, function):
    gpu()
    make = gpu_programs.arrays
    assert_same_on_gpu(function, make)
    assert gpu.compiled  # or nothing has been shown
    assert_same_on_gpu(function, lambda: [np.asfortranarray(make()[0]), make()[1]])
    assert_same_on_gpu(function, lambda: [np.repeat(make()[0], 2, 1)[:, ::2], make()[1]])


def filled(x):
    x.fill(2)


def sorted_in_place(x):
    x.sort()


def written_in_part(x):
    x[::2] = 3
    return x[1:]


def turned(x):
    return np.flip(np.greater(x[:, None, :] * 1, x[None]).transpose(1, 0, 2)), np.moveaxis(x * 2, 0, 1)[::-1]


@pytest.mark.parametrize("function", [filled, sorted_in_place, written_in_part, turned])
def test_what_kernels_only_write_to_and_views_of_results(gpu, function):
    gpu()
    x, fallen = np.array([[3.0, 1, 2, 7], [5, 4, 6, 0]]), []
    with bus.listening(lambda event: fallen.append(event) if event.kind == "fell_back" else None):
        assert_same_on_gpu(function, lambda: [x.copy()])
        assert_same_on_gpu(function, lambda: [np.asfortranarray(x)])
    assert gpu.compiled and not fallen


def test_numbers_and_sizes_reach_the_gpu(gpu):
    gpu()
    compiled = tcompile.compile(lambda x, a: x * a + len(x), backend="triton", dynamic=True)
    for n in (5, 7, 2000):
        np.testing.assert_array_equal(compiled(np.arange(float(n)), 0.1), np.arange(float(n)) * 0.1 + n)
    assert_same_on_gpu(lambda x, y: (x * y, y + 1), lambda: [np.arange(3.0), np.array(2.0)])


def halved(x, y):
    for i in range(40):
        x[-i - 1 :] *= 0.5
    return np.sqrt(y)


def halved_until(x, y):
    x = x * 2
    for i in range(40):
        x[-i - 1 :] *= 0.5
        if x[-1] < y[0]:
            break
    return x, np.sqrt(y)


def handed_on(x, y):
    for i in range(40):
        z = x.copy()
        z[-i - 1 :] *= 0.5
        x = z
    return x, np.sqrt(y)


@pytest.mark.parametrize("where", ["gpu", "interpreter"])
@pytest.mark.parametrize("function", [halved, halved_until, handed_on])
def test_iterations_write_to_copies_of_what_they_are_given(function, where, request):
    if where == "gpu":
        request.getfixturevalue("gpu")()
    for low in (0.1, -1.0):  # of which a root is told: then plain Python does the call
        make = lambda low=low: [np.arange(1.0, 49.0), np.full(3, low)]
        want, compiled, fallen = Run(function, make()), tcompile.compile(function, backend="triton"), []
        with bus.listening(lambda event: fallen.append(event) if event.kind == "fell_back" else None):
            assert_same_run(Run(compiled, make(), interpret=where == "interpreter"), want)
        assert compiled.graphs and bool(fallen) == (low < 0)


def test_what_counts_iterations_reaches_kernels_as_a_number(gpu):
    gpu()

    def f(x):
        for i in range(1, 40):
            x[i] = np.roll(x[i - 1], 1) * 0.5 + 1
        return x

    assert_same_on_gpu(f, lambda: [np.ones((40, 1))])
    assert gpu.compiled


def test_running_out_of_memory_goes_on_in_plain_python(gpu):
    gpu(room=1000)
    events = []
    compiled = tcompile.compile(lambda x: x + 1.0, backend="triton")
    with bus.listening(events.append):
        np.testing.assert_array_equal(compiled(np.zeros(5000)), np.ones(5000))
    (told,) = [e for e in events if e.kind == "fell_back" and "memory" in e.reason]
    assert "holds 3 MiB, of which 2 MiB are in use" in told.detail and "free_all_blocks" in told.detail
    np.testing.assert_array_equal(compiled(np.zeros(50)), np.ones(50))


def test_a_gpu_that_is_missing_or_too_old_is_one_clear_error(gpu, monkeypatch):
    compiled = lambda: tcompile.compile(lambda x: x + 1.0, backend="triton")(np.ones(3))
    gpu(capability="75")
    with pytest.raises(BackendError, match=r"compute capability 7.5.*8.0"):
        compiled()
    gpu(devices=0)
    with pytest.raises(BackendError, match="CuPy finds no GPU"):
        compiled()
    gpu()

    def no_driver():
        raise RuntimeError("cudaErrorInsufficientDriver")

    sys.modules["cupy"].cuda.runtime.getDeviceCount = no_driver
    with pytest.raises(BackendError, match=r"no NVIDIA driver.*cudaErrorInsufficientDriver.*triton_interpret"):
        compiled()
    monkeypatch.setitem(sys.modules, "cupy", None)
    with pytest.raises(BackendError, match=r"need CuPy.*pip install cupy-cuda12x"):
        compiled()


def test_without_triton_there_is_one_clear_error(gpu, monkeypatch):
    gpu()
    monkeypatch.setattr(devices.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(BackendError, match="kernels for GPUs need Triton: pip install triton"):
        tcompile.compile(lambda x: x + 1.0, backend="triton")(np.ones(3))
    with pytest.raises(BackendError, match="kernels for GPUs need Triton"), tcompile.device("cuda"):
        pytest.fail("entered")


def test_a_dead_context_is_one_clear_error(gpu, monkeypatch):
    gpu()

    def dead():
        raise RuntimeError("cudaErrorContextIsDestroyed")

    monkeypatch.setattr(sys.modules["cupy"].cuda, "Device", dead)
    with pytest.raises(BackendError, match=r"cannot use its current GPU \(cudaErrorContextIsDestroyed\).*new process"):
        tcompile.compile(lambda x: x + 1.0, backend="triton")(np.ones(3))


@pytest.mark.parametrize("error", [BackendError("Triton refuses kernel_0"), RuntimeError("cudaErrorIllegalAddress")])
def test_what_cannot_be_compiled_or_loaded_runs_in_plain_python(gpu, monkeypatch, error):
    gpu()

    def refuses(*args):
        raise error

    monkeypatch.setattr(cubins, "compiled", refuses)
    events, compiled = [], tcompile.compile(lambda x: x + 1.0, backend="triton")
    with bus.listening(events.append):
        np.testing.assert_array_equal(compiled(np.ones(3)), [2, 2, 2])
    assert [e.detail for e in events if e.kind == "fell_back"] == [f"{type(error).__name__}: {error}"]


def test_a_block_runs_on_the_gpu_what_is_compiled_for_the_cpu(gpu):
    gpu()
    compiled = tcompile.compile(lambda x: x * 2.0)
    for _ in range(2):
        with tcompile.device("cuda"):
            np.testing.assert_array_equal(compiled(np.arange(3.0)), [0, 2, 4])
        np.testing.assert_array_equal(compiled(np.arange(3.0)), [0, 2, 4])
    assert len(gpu.compiled) == 1 and tcompile.stance.current().name == "default"
    gpu(devices=0)
    with pytest.raises(BackendError, match="CuPy finds no GPU"), tcompile.device("cuda"):
        pytest.fail("entered")
    with pytest.raises(InvalidArgument, match=r"no device 'cuda:1'.*cupy.cuda.Device\(1\)"):
        tcompile.device("cuda:1")
    with pytest.raises(InvalidType, match="device must be str"):
        tcompile.device(0)


def test_the_benchmark_checks_times_and_writes(gpu, monkeypatch, tmp_path, capsys):
    from benchmarks import gpu as benchmark

    gpu()
    monkeypatch.setattr(benchmark, "SHAPE", (24, 24))
    monkeypatch.setattr(benchmark, "milliseconds", lambda cupy, run, real=benchmark.milliseconds: real(cupy, run, 0.0))
    monkeypatch.setattr(
        benchmark,
        "by_host_clock",
        lambda cupy, run, real=benchmark.by_host_clock: real(cupy, run, 1, 1),
    )
    monkeypatch.setattr(benchmark, "KERNELS", {name: benchmark.KERNELS[name] for name in ("relu", "softmax")})
    monkeypatch.setattr(benchmark, "MODES", {"tcompile": "default"})
    monkeypatch.setattr(benchmark, "MANY", 2)
    assert benchmark.main(["--out", str(tmp_path)]) == 0
    (written,) = tmp_path.glob("*.json")
    told = json.loads(written.read_text())
    names = [row["name"] for row in told["rows"]]
    assert written.stem.endswith("-gpu-pretended-gpu-float32") and names == [*benchmark.KERNELS, "layer"]
    assert told["about"]["device"] == "Pretended GPU"
    assert all(row["ms"]["tcompile"] > 0 and row["ms"]["CuPy"] > 0 for row in told["rows"])
    assert "cupy.fuse" in told["rows"][0]["refused"]  # of a CuPy that pretends
    assert len(told["host"]["a call, µs"]) >= 6 and min(told["host"]["a call, µs"].values()) > 0
    assert "np.maximum(x + 1, 0) * 2" in capsys.readouterr().out
    page = written.with_suffix(".md").read_text()
    assert "Kernels on a GPU (Pretended GPU)" in page and "| `np.maximum(x + 1, 0) * 2` |" in page
    assert written.with_suffix(".png").stat().st_size > 10_000


def test_offsets_have_64_bits_where_an_array_is_that_large(gpu, monkeypatch):
    gpu()
    device, kinds = cuda.current(), []
    known = cubins.compiled
    monkeypatch.setattr(cubins, "compiled", lambda f, c, variant: kinds.append(variant.wide) or known(f, c, variant))
    kernel, small = device.launcher(_function()), device.placed(np.ones(3))
    kernel(1, small, small)
    monkeypatch.setattr(launches, "WIDE", 3)  # elements, in place of 2**31
    device.launcher(_function())(1, small, small)
    assert kinds == [False, True]
    assert launches.extent(np.zeros((4, 4), np.complex64)) == 31


def test_memory_that_others_describe_is_not_asked_for_its_size(gpu, monkeypatch):
    gpu()
    kinds, known = [], cubins.compiled
    monkeypatch.setattr(launches, "WIDE", 1 << 17)
    monkeypatch.setattr(cubins, "compiled", lambda f, c, variant: kinds.append(variant.wide) or known(f, c, variant))
    f = tcompile.compile(lambda x: x.sum(axis=1), fullgraph=True, dynamic=True)
    for shape in ((16, 32), (16, 64), (16, 16000)):
        x = np.ones(shape)
        there = fake_cupy.FakeArray(None, host=x)
        there.mem.size = 8 * sum(shape)  # as CuPy has it for arrays of another library's
        np.testing.assert_array_equal(f(there).host, x.sum(axis=1))
    assert kinds == [False, True]


def test_what_kernels_find_after_a_report_is_found(gpu):
    gpu()
    words = cuda.current().words
    first, second = launches.Status(words), launches.Status(words)
    assert not (0 | first)
    words.fill(8)
    status = first | second
    assert status & 8 and not words.get()[0]


def test_arrays_on_two_gpus_do_not_mix(gpu):
    gpu()
    device = cuda.current()
    here, elsewhere = device.placed(np.ones(3)), device.placed(np.ones(3))
    elsewhere.device.id = 1
    kernel = device.launcher(_function())
    assert not kernel(1, here, here)
    with pytest.raises(Replay, match="arrays on GPU 1, kernels on GPU 0"):
        kernel(1, elsewhere, here)


def _function():
    from tests.backends.llvm_cases import graph_of
    from tests.backends.triton_cases import on_interpreter

    made = on_interpreter(graph_of(lambda op, x: op("add", x, 1.0), np.ones(3)))
    return made.kernels[0].functions[0]
