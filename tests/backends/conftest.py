"""Fixtures of the backends' tests.

Input: the kernels that Triton's interpreter runs.
Output: their machine code, and a pretended GPU for tests of GPU code.
Why: interpreted kernels must also compile.
"""

import ctypes
import importlib.util
import sys
import zlib
from unittest import mock

import numpy as np
import pytest

import tcompile
from tests.backends import fake_cupy
from tests.backends.llvm_cases import ON_TRITON

POINTERS = {
    "*fp16": "float16", "*fp32": "float32", "*fp64": "float64",
    **{f"*{c}{n}": f"{t}{n}" for c, t in (("i", "int"), ("u", "uint")) for n in (8, 16, 32, 64)},
}  # fmt: skip
_compiled = set()  # what is known of the functions that were


@pytest.fixture(autouse=True)
def machine_code():
    """Compiles what the test has interpreted for one of three generations of GPUs, which its text decides.

    ``test_triton_cubins`` compiles for each of them. With `make test-triton` it would take hours.
    """
    if ON_TRITON or importlib.util.find_spec("triton") is None:
        yield
        return
    from tcompile.backends.triton.interpreter import Interpreted
    from tests.backends.triton_cases import CAPABILITIES, compile_function

    functions, run = [], Interpreted.__call__

    def noted(self, programs, *given):
        if programs:  # else nothing is started
            functions.append(self.function)
        return run(self, programs, *given)

    with mock.patch.object(Interpreted, "__call__", noted):
        yield
    for function in functions:
        parameters = [(p.name, p.type) for p in function.parameters]
        known = repr((function.text, function.blocks, function.warps, function.config, parameters))
        if known not in _compiled:
            _compiled.add(known)
            compile_function(function, (CAPABILITIES[zlib.crc32(known.encode()) % len(CAPABILITIES)],))


def at(address, dtype):
    """The memory at an address, of which only that counts."""
    return np.ndarray(1, dtype, (ctypes.c_char * 8).from_address(address))


@pytest.fixture
def gpu(monkeypatch):
    """Installs a pretended GPU: ``gpu(**facts)``. Machine code is only named, and run in the interpreter."""
    pytest.importorskip("triton")
    from tcompile.backends.triton import cubins, cuda, driver, interpreter

    functions, launched = {}, []

    def compiled(function, capability, variant):
        cubins.check_capability(capability)
        code = f"{function.name} {len(functions)}".encode()
        run = interpreter.Interpreted(function)

        def on_gpu(grid, arguments):
            given = [a.host if isinstance(a, fake_cupy.FakeArray) else a for a in arguments]
            count = len(function.parameters)
            values = []
            for p, v in zip(function.parameters, given[:count], strict=True):
                if p.is_array and isinstance(v, int):  # an address, from a CUDA graph
                    v = at(v, POINTERS[p.type])
                values.append(np.int64(v).view(np.float64) if p.kind == "number" else v)
            assert len(arguments) == count + function.signals + 2
            assert all(a == 0 for a in arguments[count + function.signals :])
            bits = run(grid[0], *values)
            if function.signals:
                words = given[count]
                words = at(words, "int32") if isinstance(words, int) else words
                words |= bits

        functions[code] = on_gpu
        launched.append(code)
        return cubins.Cubin(code, function.name, 4, 0, 2)

    def install(**facts):
        monkeypatch.setitem(sys.modules, "cupy", fake_cupy.module(functions, **facts))
        cuda._on.cache_clear()
        tcompile.reset()

    monkeypatch.setattr(cubins, "compiled", compiled)
    monkeypatch.setattr(driver, "LaunchGraph", fake_cupy.LaunchGraph)
    install.compiled = launched
    yield install
    cuda._on.cache_clear()
    tcompile.reset()
