"""What machine code reads of CPython's and NumPy's objects is what this CPython and this NumPy have."""

import platform
import sys

import numpy as np
import pytest

import tcompile
from tcompile import interpreter
from tcompile.backends.llvm.native import abi
from tcompile.runtime import native
from tcompile.runtime.dispatch import CompiledFunction
from tcompile.runtime.native import bindings, calls, layout
from tcompile.runtime.regions import ResumePoint

from .native_calls import answered, settled


@pytest.mark.skipif(
    sys.platform != "linux" or platform.machine() not in ("x86_64", "aarch64") or interpreter.refusal is not None
    or hasattr(sys, "gettotalrefcount"), reason="machine code is not for this platform",
)  # fmt: skip
def test_nothing_is_left_to_python_here():
    """Other tests are skipped where machine code is not to be had: a new version must not go unnoticed."""
    assert native.unavailable() is None and abi.unsupported() is None and abi.knows_owners()
    assert layout.is_complete(CompiledFunction) and layout.is_complete(ResumePoint)
    assert bindings.version_at({}, calls.machine().code["rebound"]) is not None


# Those through which an address is read are left out: at a wrong one there may be nothing.
@pytest.mark.parametrize(
    "field", ["OB_TYPE", "OB_SIZE", "FLOAT_VALUE", "SCALAR_VALUE", "TUPLE_ITEMS", "ARRAY_ITEMS", "ARRAY_DATA",
              "ARRAY_NDIM", "ARRAY_DTYPE", "ARRAY_FLAGS"],
)  # fmt: skip
def test_a_field_in_another_place_is_noticed(field, monkeypatch):
    assert layout.unsupported() is None
    monkeypatch.setitem(layout.OFFSETS, field, layout.OFFSETS[field] + 8)
    assert "other objects" in layout.unsupported()


def test_tuples():
    """They are read where defaults and keywords are, and made as results and as shapes."""

    def f(x, k=2.0, *, m=1.0):
        return (x * k, (x + m, ()), [()])

    compiled, x = settled(f, np.ones(3)), np.arange(3.0)
    for kwargs in ({}, {"m": 3.0}, {"m": 4.0, "k": 5.0}):
        hits, found = answered(compiled, x, **kwargs)
        hits, found = answered(compiled, x, **kwargs)
        expected = f(x, **kwargs)
        assert hits == 1 and repr(found) == repr(expected)
        hash(found[1][1:])  # since CPython 3.14 it is kept in the tuple
        with pytest.raises(TypeError):
            hash(found[:1])
    large = np.zeros((300, 5, 100))  # in memory of the pool's, with axes in another order: Python takes the shape
    transposed = settled(lambda x: x.transpose(2, 0, 1) + 1, large)
    assert transposed(large).strides == (large.transpose(2, 0, 1) + 1).strides


@tcompile.allow_in_graph
def forgets(x):
    """Takes an array away from the caller's variable, which machine code still reads."""
    frame = sys._getframe()
    while frame.f_code.co_name != "calls_compiled":
        frame = frame.f_back
    frame.f_locals["a"] = None
    np.full(1000, 7.0)  # where it was
    return x + 1


def test_arguments_are_alive_when_the_caller_forgets_them():
    """Since CPython 3.14 callers lend arguments that variables hold, and do not count these references."""
    compiled = tcompile.compile(lambda x: forgets(x * 2) * x)

    def calls_compiled():
        a = np.full(1000, 3.0)
        return compiled(a)

    for _ in range(5):
        assert calls_compiled().tolist() == [21.0] * 1000


def test_small_ints_are_read_as_any_other():
    compiled = tcompile.compile(lambda x, n: x * n, dynamic=True)
    x = np.ones(3, np.int64)
    for n in (2, 3, 4):
        compiled(x, n)
    for n in (0, 1, -1, -5, -6, 256, 257, 1024, 1025, 1 << 30, (1 << 60) + 1, -(1 << 62), True, False):
        assert compiled(x, n).tolist() == (x * n).tolist()
    assert answered(compiled, x, 5)[0] == 1
