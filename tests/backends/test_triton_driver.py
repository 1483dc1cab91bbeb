"""CUDA graphs through the driver, which is pretended: what it is given lies in memory as cuda.h says."""

import ctypes
import types

import pytest

from tcompile.backends.triton import driver
from tcompile.backends.triton.launches import GpuLaunch


class Driver:
    """Graphs as lists of nodes; ``refuses`` is the function that gives an error."""

    def __init__(self, refuses=None):
        self.refuses, self.nodes, self.started, self.seen, self.gone = refuses, [], [], {}, []

    def _answer(self, name):
        return 201 if self.refuses == name else 0

    def cuGraphCreate(self, graph, flags):
        graph._obj.value = 77
        return self._answer("cuGraphCreate")

    def cuGraphAddKernelNode_v2(self, node, graph, before, count, about):
        assert graph.value == 77 and count == min(1, len(self.nodes))  # after the node before, if there is one
        assert not count or before._obj.value == 100 + len(self.nodes) - 1
        node._obj.value = 100 + len(self.nodes)
        self.nodes.append(self._read(about))
        return self._answer("cuGraphAddKernelNode")

    def cuGraphExecKernelNodeSetParams_v2(self, started, node, about):
        assert started == 88
        self.seen[node] = self._read(about)
        return self._answer("cuGraphExecKernelNodeSetParams")

    @staticmethod
    def _read(about):
        """The parameters as the driver finds them in memory: CUDA_KERNEL_NODE_PARAMS_v2 has 72 bytes."""
        memory = ctypes.string_at(ctypes.addressof(about._obj), 72)
        word = lambda at, size: int.from_bytes(memory[at : at + size], "little")
        sizes = [word(8 + 4 * i, 4) for i in range(7)]
        places = (ctypes.c_uint64 * 2).from_address(word(40, 8))
        words = [ctypes.c_int64.from_address(place).value for place in places]
        return word(0, 8), sizes, words, [word(at, 8) for at in (48, 56, 64)]


def cuda_of(fake):
    runtime = types.SimpleNamespace(
        graphLaunch=lambda graph, stream: fake.started.append((graph, stream)),
        graphInstantiate=lambda graph: 88, graphExecDestroy=fake.gone.append, graphDestroy=fake.gone.append,
    )  # fmt: skip
    return types.SimpleNamespace(runtime=runtime, get_current_stream=lambda: types.SimpleNamespace(ptr=5))


LAUNCHES = [
    GpuLaunch(types.SimpleNamespace(ptr=11), (3, 1, 1), (128, 1, 1), 64, (1 << 40, -7)),
    GpuLaunch(types.SimpleNamespace(ptr=12), (1 << 20, 1, 1), (32, 1, 1), 0, (5, 6)),
]


def test_what_the_driver_is_given(monkeypatch):
    fake = Driver()
    monkeypatch.setattr(driver, "_driver", lambda: fake)
    graph = driver.LaunchGraph(cuda_of(fake), LAUNCHES)
    assert fake.nodes == [
        (11, [3, 1, 1, 128, 1, 1, 64], [1 << 40, -7], [0, 0, 0]),
        (12, [1 << 20, 1, 1, 32, 1, 1, 0], [5, 6], [0, 0, 0]),
    ]
    graph.words[1][0] = 1 << 41
    graph.change(1)
    graph.start()
    assert fake.seen == {101: (12, [1 << 20, 1, 1, 32, 1, 1, 0], [1 << 41, 6], [0, 0, 0])}
    assert fake.started == [(88, 5)] and not fake.gone
    del graph
    assert fake.gone == [88, 77]


@pytest.mark.parametrize("refuses", ["cuGraphCreate", "cuGraphAddKernelNode", "cuGraphExecKernelNodeSetParams"])
def test_what_the_driver_refuses_is_an_error(monkeypatch, refuses):
    fake = Driver(refuses)
    monkeypatch.setattr(driver, "_driver", lambda: fake)
    with pytest.raises(RuntimeError, match=f"{refuses} of CUDA's driver gave error 201"):
        driver.LaunchGraph(cuda_of(fake), LAUNCHES).change(0)
    assert (77 in fake.gone) == (refuses != "cuGraphCreate")


def test_without_a_driver_there_is_an_error_that_recording_expects(monkeypatch):
    def missing():
        raise OSError("libcuda.so.1: cannot open shared object file")

    monkeypatch.setattr(driver, "_driver", missing)
    with pytest.raises(OSError, match="libcuda"):
        driver.LaunchGraph(cuda_of(Driver()), LAUNCHES)
