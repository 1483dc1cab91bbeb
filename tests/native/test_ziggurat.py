"""NumPy's ziggurats, taken apart."""

import ctypes

import numpy as np
import pytest

from tcompile.backends.llvm.native import ziggurat
from tcompile.graph.ops import draws


@pytest.mark.parametrize("name", ziggurat.LAYOUTS)
def test_tables(name):
    found = ziggurat.table(name, draws.addresses("PCG64")[name])
    assert len(found) == ziggurat.LAYERS and not found.flags.writeable
    assert np.count_nonzero(found["limit"]) == ziggurat.LAYERS - 1
    # The widest layer's edge: a value of all bits is somewhat more than where the tail begins.
    edge = {"random_standard_normal": 3.6541528853610088, "random_standard_exponential": 7.69711747013104972}[name]
    assert found["limit"][0] * found["step"][0] == pytest.approx(edge)


@pytest.mark.parametrize("name", ziggurat.LAYOUTS)
def test_another_function_is_no_such_ziggurat(name):
    (other,) = set(ziggurat.LAYOUTS) - {name}
    assert ziggurat.table(name, draws.addresses("PCG64")[other]) is None


def test_a_number_drawn_again_is_the_same():
    functions = draws.addresses("PCG64")
    redraw = ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_uint64)(ziggurat.redraw())
    one, two = np.random.PCG64(7), np.random.PCG64(7)
    plain = np.random.Generator(one)
    for _ in range(2000):
        held = two.random_raw()
        got = redraw(functions["random_standard_normal"], two.ctypes.bit_generator.value, held)
        assert got.hex() == plain.standard_normal().hex()
        assert one.state == two.state


@pytest.mark.parametrize("name", ["PCG64", "SFC64"])
def test_steps_of_bit_generators(name):
    assert draws.is_plain(name)


@pytest.mark.parametrize("name", ["MT19937", "PCG64DXSM"])
def test_others_are_numpys(name):
    assert not draws.is_plain(name)
