"""Results that are written past the cache: rows that begin anywhere in a cache line, and end anywhere."""

import ctypes

import numpy as np
import pytest

import tcompile
from tcompile.backends import llvm
from tcompile.backends.llvm import compile_graph, native
from tests.backends.llvm_cases import DTYPES, check, graph_of, sample
from tests.backends.test_llvm_fusion import layer_norm, softmax


@pytest.fixture(autouse=True)
def everything_is_large(monkeypatch):
    monkeypatch.setattr(llvm, "NONTEMPORAL_BYTES", 0)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("width", [1, 3, 15, 16, 17, 37, 64, 100, 131])
def test_pointwise_rows(dtype, width):
    a = sample(dtype, (7, width + 2))
    inner = (slice(None), slice(1, -1))
    compiled = check(lambda op, x: op("equal" if dtype == "bool" else "add", op("index", x, key=inner), 1), a)
    compiled = check(lambda op, x: op("maximum", op("index", x, key=inner), op("index", x, key=inner)), a)
    if np.dtype(dtype).itemsize >= 4 and width > 1:
        assert "!nontemporal" in compiled.kernels[0].ir


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("width", [9, 16, 17, 33, 100, 131, 1000])
def test_rows_with_reductions(dtype, width):
    a = sample(dtype, (9, width))
    compiled = check(softmax(1), a, ulp=8, rtol=1e-6)
    assert "!nontemporal" in compiled.kernels[0].ir
    check(layer_norm(1, width), a, sample(dtype, width, 3), sample(dtype, width, 4), ulp=16, rtol=2e-4)
    check(softmax(0), a, ulp=8, rtol=1e-6)


def anywhere(array, byte):
    """A copy of an array that begins so many bytes after the start of a cache line."""
    room = np.zeros(array.nbytes + 128, np.uint8)
    start = -room.ctypes.data % 64 + byte
    copy = room[start : start + array.nbytes].view(array.dtype).reshape(array.shape)
    copy[...] = array
    return copy


def add_into(x, y, to):
    np.add(x, y, out=to)


def softmax_into(x, y, to):
    e = np.exp(x - x.max(axis=1, keepdims=True))
    to[...] = e / e.sum(axis=1, keepdims=True)


@pytest.mark.parametrize("dtype", ["float32", "float64", "int64"])
@pytest.mark.parametrize("f", [add_into, softmax_into])
def test_arrays_of_callers_begin_anywhere_in_a_cache_line(f, dtype):
    compiled = tcompile.compile(f, backend="llvm", dynamic=False)
    x, y = sample(dtype, (5, 64)), sample(dtype, (5, 64), 1)
    result = np.zeros((5, 64), "float64" if f is softmax_into else dtype)
    for byte in range(0, 64, result.itemsize):
        got, want = anywhere(result, byte), result.copy()
        compiled(x, y, got)
        f(x, y, want)
        np.testing.assert_allclose(got, want, rtol=0 if f is add_into else 1e-6)
    assert "!nontemporal" in compiled.entries[0].kernels[0].ir


DIRT = """
define i32 @dirty(ptr %words, i64 %begin, i64 %end) {
  %room = alloca [131072 x i8]
  br label %more
more:
  %at = phi i64 [ 0, %0 ], [ %next, %more ]
  %place = getelementptr i8, ptr %room, i64 %at
  store volatile float 0x7FF4000000000000, ptr %place
  %next = add i64 %at, 4
  %on = icmp slt i64 %next, 131072
  br i1 %on, label %more, label %done
done:
  ret i32 0
}"""  # signalling NaNs, all over the stack


@pytest.mark.parametrize("width", [9, 17, 33, 100])
def test_row_buffers_are_not_read_where_nothing_is_in_them(width):
    """Rows that begin elsewhere in a cache line are walked in other vectors than those that filled their buffer."""
    code = native.load(DIRT, ["dirty"])
    dirty = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_long, ctypes.c_long)(code["dirty"])
    a = sample("float32", (9, width))
    compiled = compile_graph(graph_of(softmax(1), a))
    kept = []
    for number in range(50):
        dirty(None, 0, 0)
        kept.append((compiled(a), np.empty(4 * number, np.uint8)))  # raises Replay where a flag is set


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("axis", [0, 1, 2, (0, 1), (1, 2), (0, 2), (0, 1, 2)])
def test_reduced_axes_that_are_walked_one_by_one(dtype, axis):
    axes = (axis,) if isinstance(axis, int) else axis
    for shape in ((3, 4, 9), (3, 1000, 37), (70, 3, 21), (20, 33, 65)):
        a = sample(dtype, shape)
        views = [a, a.transpose(2, 1, 0), np.ascontiguousarray(a.transpose(2, 1, 0)).transpose(2, 1, 0), a[:, ::-1]]
        for x in views:
            y = sample(dtype, x.shape, 1)

            def build(op, x, y):
                centred = op("subtract", y, op("max", op("add", x, y), axis=axes, keepdims=True))
                return [centred, op("multiply", centred, y)]

            check(build, x, y)


def test_flags_of_the_first_and_the_last_elements():
    for column in (0, 1, 15, 16, 36):
        a = np.ones((3, 39), "float32")
        a[2, 1 + column] = 0
        inner = (slice(None), slice(1, -1))
        check(lambda op, x: op("divide", 1.0, op("index", x, key=inner)), a)
    check(lambda op, x: op("divide", 1.0, op("index", x, key=inner)), np.where(a == 0, 1, a))
