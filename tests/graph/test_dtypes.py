"""What is known of dtypes, ``bfloat16`` of ml_dtypes included."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import tcompile
from tcompile.errors import GraphError
from tcompile.graph import Graph, TensorType, ops
from tcompile.graph.dtypes import as_dtype, exact_cast, is_extension, kind_of, limits, named, promote, short_name
from tcompile.graph.evaluate import run
from tcompile.graph.printer import code, from_code
from tcompile.graph.signals import may_signal
from tcompile.graph.verify import verify

NAMES = (
    "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16", "float32", "float64",
    "complex64", "complex128",
)  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
def test_numpys_own_dtypes_are_what_numpy_says(name):
    dtype = np.dtype(name)
    assert named(name) is named(short_name(dtype)) is as_dtype(name) is as_dtype(dtype) is dtype
    assert kind_of(dtype) == dtype.kind and not is_extension(dtype)
    if dtype.kind in "iuf":
        want = np.finfo(dtype) if dtype.kind == "f" else np.iinfo(dtype)
        assert (limits(dtype).min, limits(dtype).max) == (want.min, want.max)
    assert promote(dtype, 1.5) == np.result_type(dtype, 1.5)


def test_casts_that_are_exact():
    for one, other in itertools.product(map(np.dtype, NAMES), repeat=2):
        if exact_cast(one, other):
            assert np.can_cast(one, other, "safe") or (one.kind in "iu" and other.kind == "f")


def test_unknown_names_are_refused():
    with pytest.raises(GraphError, match="there is no dtype 'float33'"):
        named("float33")
    with pytest.raises(GraphError, match="is not a type"):
        from_code('def g(x: "f33[3]"):\n    return (x,)\n')


def test_without_ml_dtypes_bfloat16_names_the_package(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "ml_dtypes", None)
    named.cache_clear()
    with pytest.raises(GraphError, match="bfloat16 needs the package ml_dtypes"):
        named("bf16")


# -- bfloat16 ---------------------------------------------------------------------------------------------------------


@pytest.fixture
def bfloat16():
    pytest.importorskip("ml_dtypes")
    return named("bfloat16")


def test_facts_of_bfloat16(bfloat16):
    assert (kind_of(bfloat16), bfloat16.itemsize, short_name(bfloat16)) == ("f", 2, "bf16") and is_extension(bfloat16)
    assert named("bf16") is bfloat16 and float(limits(bfloat16).eps) == 2**-7
    f16, f32, f64 = map(np.dtype, ("float16", "float32", "float64"))
    assert exact_cast(bfloat16, f32) and not exact_cast(f32, bfloat16)
    assert not exact_cast(f16, bfloat16) and not exact_cast(bfloat16, f16)
    assert exact_cast(np.dtype("bool"), bfloat16)
    assert promote(bfloat16, 2) == promote(bfloat16, 2.5) == promote(bfloat16, np.dtype("int64")) == bfloat16
    assert promote(bfloat16, f16) == promote(f32, bfloat16) == f32 and promote(bfloat16, f64) == f64
    assert promote(bfloat16, 1j) == np.dtype("complex64")


def program(bfloat16):
    g = Graph("g")
    x = g.input("x", TensorType(bfloat16, (2, 3)))
    y = ops.apply(g, ops.ADD, ops.apply(g, ops.MULTIPLY, x, 1.5), x)
    big = ops.apply(g, ops.GREATER, y, 2.0)
    kept = ops.apply(g, ops.WHERE, big, y, 0.0)
    total = ops.apply(g, ops.SUM, ops.apply(g, ops.PERMUTE_DIMS, kept, axes=(1, 0)), axis=(0,), keepdims=False)
    ones = ops.apply(g, ops.FULL, shape=(2,), fill_value=1, dtype="bfloat16")
    wide = ops.apply(g, ops.ASTYPE, ops.apply(g, ops.SUBTRACT, total, ones), dtype="float32")
    g.outputs = [y, big, total, wide, ops.apply(g, ops.ASTYPE, wide, dtype="bfloat16")]
    return g


def test_graphs_of_bfloat16_are_checked_printed_read_and_run(bfloat16):
    g = program(bfloat16)
    verify(g)
    assert 'x: "bf16[2, 3]"' in code(g) and "# bf16[3, 2]" in code(g)
    assert code(from_code(code(g))) == code(g)
    x = np.array([[1, 2, 3], [0.5, -1, 4]], bfloat16)
    wide = x.astype("float32")
    for made in (g, from_code(code(g))):
        y, big, total, narrow, again = run(made, [x])
        assert [value.dtype for value in (y, big, total, narrow, again)] == [
            bfloat16, np.dtype("bool"), bfloat16, np.dtype("float32"), bfloat16,
        ]  # fmt: skip
        np.testing.assert_array_equal(y.astype("float32"), wide * 2.5)
        np.testing.assert_array_equal(narrow, np.where(wide * 2.5 > 2, wide * 2.5, 0).sum(axis=1) - 1)
        np.testing.assert_array_equal(again, total - bfloat16.type(1))


def test_backends_leave_bfloat16_to_its_library(bfloat16):
    from tcompile.backends.llvm import compile_graph

    g, x = program(bfloat16), np.array([[1, 2, 3], [0.5, -1, 4]], bfloat16)
    compiled = compile_graph(g)
    assert not compiled.kernels
    for made, want in zip(compiled(x), run(g, [x]), strict=True):
        assert made.dtype == want.dtype
        np.testing.assert_array_equal(made, want)


def test_effects_of_bfloat16_are_those_of_floats(bfloat16):
    g = program(bfloat16)
    by_op = {node.op: node for node in g.nodes}
    assert may_signal(by_op[ops.ADD]) and may_signal(by_op[ops.MULTIPLY])
    narrowing = g.nodes[-1]
    widening = next(node for node in g.nodes if node.op is ops.ASTYPE)
    assert may_signal(narrowing) and not may_signal(widening)


def test_the_numpy_frontend_takes_no_such_arrays(bfloat16):
    x = np.ones(3, bfloat16)
    f = tcompile.compile(lambda x: x + x)
    assert f(x).dtype == bfloat16 and not any(graph.nodes for graph in f.graphs)
