"""Arrays from another process have dtypes that equal NumPy's own and are other objects: they are captured as others."""

import pickle

import numpy as np
import pytest
from differential import assert_same

import tcompile

DTYPES = ["?", "i1", "u2", "i4", "i8", "u8", "f2", "f4", "f8", "c8", "c16"]
d = np.dtype("f8")


def unpickled(array):
    made = pickle.loads(pickle.dumps(array))
    assert made.dtype is not np.dtype(made.dtype.str)
    return made


def fused(x):
    return x * 2 + 1


def views(x):
    return x, x[1:], x.copy(), x.T.reshape(-1)[::2]


def writes(x):
    x[1:] = x[:-1] + x[1:]
    return x.sum(), x


def made_from_dtype(x):
    y = np.zeros(3, dtype=x.dtype)
    return y + x[:1], x.dtype, x.dtype == np.result_type(x), x.dtype.kind, x.astype(x.dtype)[0], {x.dtype: 1}[y.dtype]


def loop(x):
    total = x[0]
    for i in range(len(x)):
        total = total + x[i] * 2
    return total


@pytest.mark.parametrize("function", [fused, views, writes, made_from_dtype, loop])
@pytest.mark.parametrize("dtype", DTYPES)
def test_as_of_other_arrays(function, dtype):
    array = np.arange(1, 7).astype(dtype)
    compiled = tcompile.compile(function)
    for _ in range(3):  # each time with another dtype object
        for made in (unpickled(array), array.copy()):
            assert_same(compiled(made.copy()), function(made.copy()))
    assert compiled.graphs
    assert len(compiled.cache.first.entries) == 2  # one for each kind, and none that Python runs


def test_no_graph_break():
    compiled = tcompile.compile(lambda x: np.zeros(3, x.dtype) + np.exp(x[:3]), fullgraph=True)
    for _ in range(3):
        np.testing.assert_allclose(compiled(unpickled(np.ones(4))), np.exp(np.ones(3)))
    assert len(compiled.entries) == 1


def which_object(x):  # of a result, it may be NumPy's own
    y = x * 2
    return x.dtype is d, x[1:].dtype is d, x.dtype.isbuiltin, y


def returned(x):
    y = x + 1
    return x.dtype, x[2:].dtype, y


def across_a_break(x):
    dtype = x.dtype
    y = x * 2
    print(end="")
    return dtype is d, np.ones(2, dtype) + y[:2]


@pytest.mark.parametrize("function", [which_object, returned, across_a_break])
def test_which_object_a_dtype_is(function):
    compiled = tcompile.compile(function)
    for _ in range(4):
        for made in (unpickled(np.arange(4.0)), np.arange(4.0)):
            got, want = compiled(made), function(made)
            assert_same(got[-1], want[-1])
            for one, other in zip(got[:-1], want[:-1], strict=True):
                assert one is other, (got, want)


def test_a_dtype_as_an_argument():
    compiled = tcompile.compile(lambda dtype, x: np.ones(3, dtype) + x)
    for _ in range(4):
        dtype = unpickled(np.ones(1, "f4")).dtype
        assert_same(compiled(dtype, np.ones(3, "f4")), np.ones(3, "f4") * 2)
    assert len(compiled.entries) == 1


def test_odd_dtypes_stay_odd():
    for dtype in (np.dtype("f8", metadata={"a": 1}), np.dtype(">f8"), np.dtype("q"), np.dtype([("a", "f8")])):
        array = np.zeros(3, dtype)
        compiled = tcompile.compile(lambda x: (x[:1], x.dtype.metadata))
        for made in (array, pickle.loads(pickle.dumps(array))):
            got, want = compiled(made), (made[:1], made.dtype.metadata)
            assert got[0].dtype == want[0].dtype and got[1] == want[1]
            assert got[0].dtype.char == want[0].dtype.char


def test_guards_say_what_came():
    compiled = tcompile.compile(fused)
    compiled(unpickled(np.ones(3)))
    compiled(np.ones(3))
    ((reason,),) = compiled.recompiles
    assert "copy of float64" in reason, reason
