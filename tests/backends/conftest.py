"""A GPU that is pretended, for the tests of what runs on one."""

import sys

import numpy as np
import pytest

import tcompile
from tests.backends import fake_cupy


@pytest.fixture
def gpu(monkeypatch):
    """Installs a pretended GPU: ``gpu(**facts)``. Machine code is only named, and run in the interpreter."""
    pytest.importorskip("triton")
    from tcompile.backends.triton import cubins, cuda, interpreter

    functions, launched = {}, []

    def compiled(function, capability, variant):
        cubins.check_capability(capability)
        code = f"{function.name} {len(functions)}".encode()
        run = interpreter.Interpreted(function)

        def on_gpu(grid, arguments):
            given = [a.host if isinstance(a, fake_cupy.FakeArray) else a for a in arguments]
            count = len(function.parameters)
            values = [
                np.int64(v).view(np.float64) if p.kind == "number" else v
                for p, v in zip(function.parameters, given[:count], strict=True)
            ]
            assert len(arguments) == count + function.signals + 2
            assert all(isinstance(a, np.uint64) for a in arguments[count + function.signals :])
            bits = run(grid[:2], *values)
            if function.signals:
                given[count] |= bits

        functions[code] = on_gpu
        launched.append(code)
        return cubins.Cubin(code, function.name, 4, 0, 2)

    def install(**facts):
        monkeypatch.setitem(sys.modules, "cupy", fake_cupy.module(functions, **facts))
        cuda._on.cache_clear()
        tcompile.reset()

    monkeypatch.setattr(cubins, "compiled", compiled)
    install.compiled = launched
    yield install
    cuda._on.cache_clear()
    tcompile.reset()
