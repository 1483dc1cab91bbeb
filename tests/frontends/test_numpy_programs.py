"""Generated programs of NumPy, as functions and as cells: a run of some seconds (``tools/fuzz.py --kind numpy`` and
``cells`` make long ones), and what they have found."""

from __future__ import annotations

import ast
import copy
import warnings
from random import Random

import numpy as np
import pytest
from differential import check as compare

import tcompile
from tcompile.observe.events import GraphCaptured
from tcompile.observe.recorder import Recorder

from . import cell_check, numpy_check, small_check, special_check
from .numpy_check import Plan, check, difference, program, shrink, unequal
from .numpy_programs import namespace

SEED, PROGRAMS = 20_261_122, 80


@pytest.mark.parametrize("part", range(4))
def test_programs(part):
    count = PROGRAMS // 4
    print(f"seeds from {SEED + part * count}, {count} programs")
    passed_over = sum(not check(SEED + part * count + i) for i in range(count))
    assert passed_over < count / 4


@pytest.mark.parametrize("kind", [cell_check, small_check, special_check])
@pytest.mark.parametrize("part", range(2))
def test_programs_as_cells_of_few_elements_and_of_special_numbers(part, kind):
    count = PROGRAMS // 8
    assert sum(not kind.check(SEED + part * count + i) for i in range(count)) < count / 4


def test_cells_of_a_program_are_compiled_in_one_namespace():
    source = """\
def inputs(k):
    return [np.arange(3.0) + k]

def f(x):
    v0 = x * 2
    v1 = np.sin(v0)
    v1 += v0
    v2 = v1[1:]
    v2 += 1
    v3 = v2.sum()
    v2 *= v3
    return v2
"""
    assert cell_check.compare(source, Plan(1))
    with Recorder() as recorder:
        notebook = cell_check.CELLS.compiled(ast.parse(source), namespace(source), Plan(1))
        rows = dict(notebook(np.arange(3.0)))
    assert len(notebook.cells) > 1
    assert len(recorder.of(GraphCaptured)) == len(notebook.cells)
    assert list(rows) == ["shown", "v0", "v1", "v2", "v3", "x"]
    assert np.shares_memory(rows["shown"], rows["v1"])


def test_same_seed_same_program():
    assert program(Random(5)) == program(Random(5))


def test_a_difference_is_found_and_made_small(monkeypatch):
    source = """\
def inputs(k):
    x = np.arange(3.0)
    return [x, 2]

def f(x, y):
    v0 = x * y
    v1 = np.sin(v0)
    x[1:] = v0[1:]
    v2 = v1[::-1]
    return v1, v2
"""
    assert difference(source, Plan(1)) is None

    def forgetting(f, **_):
        """A compiler whose functions forget to write to their arguments."""
        return lambda *args: f(*(a.copy() if isinstance(a, np.ndarray) else a for a in args))

    monkeypatch.setattr("tcompile.compile", forgetting)
    small = shrink(source, lambda text: difference(text, Plan(1)) is not None)
    assert difference(small, Plan(1)) is not None
    assert len(small.splitlines()) < 8


@pytest.mark.parametrize("by, excused", [(4, True), (400, False)])
def test_only_what_moves_may_differ(by, excused):
    want = np.array([1.0, 2.0])
    moved = [np.array([1.0 + 8 * 2**-52, 2.0]), np.array([1.0 - 8 * 2**-52, 2.0])]
    assert not unequal(want + np.array([by * 2**-52, 0]), want, moved) == excused
    assert unequal(np.array([1.0, 3.0]), want, moved)
    assert unequal(want + np.array([2**-52, 0]), want, [])


def test_a_program_without_memory_is_passed_over():
    source = "def inputs(k):\n    return [1 << 24]\n\ndef f(n):\n    np.eye(n)\n    return np()\n"
    assert numpy_check.compare(source, Plan(1)) is False


# -- what generated programs have found --------------------------------------------------------------------------------
def test_an_empty_key_between_kernels():
    compare(lambda x: (np.full((4, 2), 3)[::-1][()], x + 1), lambda: [np.ones(3)])


@pytest.mark.parametrize("name", ["argmax", "argmin"])
def test_position_with_kept_axes_owns_its_data(name):
    compare(lambda x: getattr(x, name)(keepdims=True), lambda: [np.array([[1.0, 3.0], [2.0, 0.0]])])


@pytest.mark.parametrize(
    "write", ["x[...] = {}", "x[1:] = {}", "x[0] = {}", "x[:] = [{0}, 1, {0}]", "x.fill({})", "x[[0]] = {}"]
)
@pytest.mark.parametrize("dtype", ["int8", "uint8", "int64"])
@pytest.mark.parametrize("number", [np.int64(300), np.int64(-1), np.float64(2.9), np.float64(1e30), np.int8(-3)])
def test_numbers_that_do_not_fit_into_an_item(write, dtype, number):
    space = {"np": np}
    exec(f"def f(x, s):\n    s = s + 0\n    {write.format('s')}\n    return x", space)
    compare(space["f"], lambda: [np.zeros(3, dtype), number], backends=["eager", "llvm"])


@pytest.mark.parametrize("ndim", [32, 33])
def test_more_axes_than_arrays_can_have(ndim):
    def f(x):
        return np.add.outer(x, x).sum(), x[np.zeros((1,) * ndim, int), None] + 1

    compare(f, lambda: [np.ones((1,) * ndim)], backends=["eager", "llvm"])


def test_arrays_that_warn_when_they_are_written_to():
    def f(u, x):
        u += x
        return u.sum()

    def warning():
        x = np.broadcast_arrays(np.arange(2.0), np.ones((2, 2)))[0]
        return [x, 1.0]

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        tcompile.compile(f)(*warning())
    assert len(caught) == 1
    x = np.arange(4.0)
    made = tcompile.compile(f, backend="eager")
    made(x, 1.0)
    with pytest.warns(DeprecationWarning, match="broadcast_arrays"):
        made(*warning())


@pytest.mark.parametrize("shape", [(0,), (0, 2), (2, 0)])
def test_what_calls_give_of_no_elements_may_be_a_view(shape):
    def f(x):
        v = np.tile(x, 2)
        v.clip(out=v)
        return v

    compare(f, lambda: [np.broadcast_to(1, shape)], backends=["eager", "llvm"])
    compare(f, lambda: [np.ones(shape)], backends=["eager", "llvm"])


@pytest.mark.parametrize("places, values", [(4, (4,)), (0, (0,)), (4, (4, 4)), (1, (4, 1)), (4, (1,)), (4, (4, 1))])
@pytest.mark.parametrize("dynamic", [None, True])
def test_values_that_fit_to_places_or_do_not(places, values, dynamic):
    def f(x, i, v):
        np.add.at(x, i, v)
        return x

    def given():
        return [np.ones((5, 1)), np.zeros(places, int), np.ones(values)]

    compare(f, given, backends=["eager", "llvm"], dynamic=dynamic)


def test_astype_takes_arrays_only():
    compare(lambda x: np.astype(x, "f4"), lambda: [[1, 2]])
    compare(lambda x: np.astype(x, "f4"), lambda: [1.5])
    compare(lambda x: np.astype(x, "f4"), lambda: [np.int64(1)])


@pytest.mark.parametrize("shape", [(1,), (1, 1), (3, 1), (1, 3)])
@pytest.mark.parametrize("value", ["5.0", "x.sum()", "x[:1, ..., :1] * 2"])
def test_writes_to_no_elements(shape, value):
    space = {}
    text = f"v = x + 1\n    v[..., 1:] = {value}\n    v[1:] = {value}\n    x[1:] = 7.0\n    return v"
    exec(f"def f(x):\n    {text}", space)
    compare(space["f"], lambda: [np.ones(shape)])


@pytest.mark.parametrize("held", [1j, 1e300, 1.0])
@pytest.mark.parametrize("dtype", ["f2", "f4", "f8"])
def test_what_an_output_under_a_mask_holds_is_cast_too(held, dtype):
    def f(x, mask, out):
        return np.add(x, x, where=mask, out=out)

    compare(f, lambda: [np.ones(2, dtype), np.array([True, False]), np.full(2, held)])
    compare(
        lambda mask, out: np.bitwise_or(1, 2, where=mask, out=out),
        lambda: [np.array([True, False]), np.full(2, held, "c16")],
    )


def test_an_array_without_elements_is_itself():
    def f(x):
        x[...] = x
        return np.asfortranarray(x)

    for shape in ((0, 5), (2, 3), (3,)):
        compare(f, lambda: [np.ones(shape)])


MADE = [
    "np.full((2, 1), 1j, 'int64')", "np.full_like(x, 1j)", "np.full(2, np.complex64(1j), 'f4')",
    "np.full(2, 300, 'i1')", "np.array([1e300], 'f4')", "np.array([x.sum(), 1], 'i1')",
    "np.array([x.sum(), x.max()], 'u8')",
    "np.array([x[:1].reshape(()), 1], 'i1')", "np.full(2, x.sum(), 'i1')",
]  # fmt: skip


@pytest.mark.parametrize("made", MADE)
def test_numbers_that_do_not_fit_into_a_new_array(made):
    space = {"np": np}
    exec(f"def f(x):\n    return {made}, x + 1", space)
    compare(space["f"], lambda: [np.array([300.0, 2.5])])
    compare(space["f"], lambda: [np.array([3.0, -2.5])])


# -- what the Array API test suite has found ---------------------------------------------------------------------------
def test_each_bound_decides_the_dtype_of_arange():
    for bounds in ((0.5, 3), (0.0, 0, 1), (0, 2.0), (0, 3, 0.5), (1, 3), (2.0,), (2**63, 2**63 + 2)):
        compare(lambda x, *bounds: (np.arange(*bounds), x + 1), lambda: [np.ones(2), *bounds])


# -- what NumPy's own tests have found ---------------------------------------------------------------------------------
def test_integers_with_fields():
    fields = np.dtype((np.int32, [("a", "<i2"), ("b", "<i2")]))
    compare(lambda n: np.zeros(n, fields)["a"], lambda: [4])
    compare(lambda x: x.astype(fields)["a"], lambda: [np.arange(3.0)])


def test_differences_of_no_order_are_the_argument_itself():
    compare(lambda x: np.diff(x, n=0) is x, lambda: [[1, 2]])
    compare(lambda x: np.diff(x, n=0), lambda: [np.arange(3)])


def test_python_numbers_among_what_is_concatenated():
    for items in ([np.float32(1), 1.0], [np.ones(2, "f4"), 1.0], [np.int8(1), 2], (1, 2.5)):
        compare(lambda *x: np.concatenate(x, axis=None), lambda: items)
    compare(lambda x: np.choose(1, [x, 1.0]), lambda: [np.float32(1)])


@pytest.mark.parametrize("join", [np.concatenate, np.stack])
def test_out_or_dtype_but_not_both(join):
    compare(lambda x, out: join([x, x], out=out, dtype=out.dtype), lambda: [np.ones(2), np.ones(4)])
    compare(lambda x, out: join([x, x], axis=0, out=out), lambda: [np.ones(2), np.ones(join([[1, 2], [3, 4]]).shape)])


@pytest.mark.parametrize("dtypes", [("u4", "c8"), ("f4", "f8"), ("i8", "f4"), ("f8", "f8")])
@pytest.mark.parametrize("order", ["C", "F"])
def test_products_of_two_dtypes_have_the_bits_of_numpy(dtypes, order):
    random = np.random.default_rng(1)
    x = (random.normal(size=(7, 7)) * 9).astype(dtypes[0])
    y = (random.normal(size=(7, 3)) * 9).astype(dtypes[1], order=order)
    compare(lambda x, y: x[0] @ y + 1, lambda: [x, y], backends=["eager", "llvm"], exact=True)
    compare(lambda x, y: np.matmul(x, y), lambda: [x, y], backends=["eager", "llvm"], exact=True)


@pytest.mark.parametrize("reduce", [np.sum, np.ptp, np.cumsum, np.argsort, np.nanmax, np.add.reduce])
def test_a_bool_is_no_axis_to_most(reduce):
    compare(lambda x: reduce(x, axis=True), lambda: [np.ones((2, 3))])


def test_a_bool_of_numpy_is_no_flag_to_most():
    for name in ("np.sum(x, axis=0, keepdims=flag)", "np.linspace(0, 1, 3, endpoint=flag)", "x.mean(0, keepdims=flag)"):
        compare(eval(f"lambda x, flag=np.True_: {name}"), lambda: [np.ones((2, 3))])


def test_no_axis_is_flipped_twice():
    compare(lambda x: np.flip(x, (0, 0)), lambda: [np.ones((2, 3))])
    compare(lambda x: (np.flip(x, (0, 1)), np.flip(x, ()), np.flip(x)), lambda: [np.arange(6.0).reshape(2, 3)])


ODD = (
    "np.linspace(0, 9, 4, dtype=int)", "np.linspace(0, 9, 4, dtype='f4')",
    "np.linspace(0, 1, 1)", "np.linspace(0, 1, 0)", "np.linspace(0, 1, 1, False)", "np.linspace(2, 2, 5)",
    "np.copy(x, 1)", "np.copy(3, 'f4')",
    "np.copy(x, order='F')", "np.rot90(x, 1, 5)", "np.rot90(x, 1, x)", "np.take_along_axis(x[0], [0, 1])",
    "np.put_along_axis(x[0], [0, 1], 9, 0)", "np.pad(x, np.floating)", "np.isin(x, np.floating)",
)  # fmt: skip


@pytest.mark.parametrize("text", ODD)
def test_odd_arguments(text):
    compare(eval(f"lambda x: {text}"), lambda: [np.ones((2, 3))])


def test_integers_of_two_names_and_one_size():
    compare(lambda x: (x.astype("q") @ x.astype("q"), np.ones(3, np.ulonglong).sum()), lambda: [np.ones(3)])


def test_copies_of_the_copy_module_keep_their_order():
    compare(lambda x: (copy.copy(x), copy.copy(x[0]), x.__copy__()), lambda: [np.ones((2, 3), order="F")])


@pytest.mark.parametrize(
    "text",
    [
        "e + x[i]", "x[i] * e", "np.take(x, i) + e", "none[:, i]", "none[:, i] + 1", "none.T[i]", "e[i]",
        "x[[0, 7]][:1]", "e[None] + e[[0]]",
    ],
)  # fmt: skip
def test_places_are_looked_at_even_where_nothing_is_read(text):
    space = {"np": np}
    exec(f"def f(x, e, i):\n    none = np.zeros((0, 3))\n    return {text}", space)
    compare(space["f"], lambda: [np.arange(3.0), np.zeros(0), np.array([7])])


def test_an_array_in_too_many_pieces_is_left_to_numpy():
    compiled = tcompile.compile(lambda x: np.unstack(x)[0] + np.split(x, 1000)[1])
    assert compiled(np.arange(1000.0)) == 1
    assert {broke.reason.id for broke in compiled.breaks} == {"too-long"}


def test_imaginary_parts_are_dropped_at_the_users_line():
    def f(x, z):
        np.subtract.at(x, 0, z)
        return x

    for backend in ("eager", "llvm"):
        with pytest.warns(np.exceptions.ComplexWarning) as caught:
            tcompile.compile(f, backend=backend)(np.arange(3), np.array(1j))
        assert [w.filename for w in caught] == [__file__]


@pytest.mark.parametrize("dtype", ["np", "'f4,('", "{'names': 1}", "'nothing'"])
def test_what_is_no_dtype(dtype):
    space = {"np": np}
    exec(f"def f(x):\n    return x.astype({dtype})", space)
    compare(space["f"], lambda: [np.ones(2)])


@pytest.mark.parametrize("text", ["v = np.kron(x, x[1:])\n    for row in x:\n        v = v.clip(0)",
                                  "v = x\n    for row in x:\n        v[::2] = 1",
                                  "v = x[:, None].astype(complex)[:2].sum()"])  # fmt: skip
def test_sizes_that_may_be_nothing_in_a_loop(text):
    space = {"np": np}
    exec(f"def f(x):\n    {text}\n    return v", space)
    compiled = tcompile.compile(space["f"])
    with tcompile.config.patch(verify=True):
        for n in (1, 3, 4, 5):
            np.testing.assert_array_equal(compiled(np.arange(float(n))), space["f"](np.arange(float(n))))


class Void(np.void):
    dtype = "f,f"


def test_objects_that_say_odd_things_of_themselves():
    compare(lambda: np.ctypeslib.as_ctypes(np.zeros(5, "b"))._length_, list)
    with tcompile.config.patch(verify=True):
        assert type(tcompile.compile(lambda x: (np.ones(2) + 1, x))(Void(1))[1]) is Void
    compare(lambda x: np.array([x]).astype(np.dtypes.StringDType()).size, lambda: ["a"])


def test_a_slice_that_varies_and_has_one_element_is_squeezed():
    def f(x):
        part = x[1:, :-1]
        return np.squeeze(part), np.squeeze(part, 1) if x.shape[1] == 2 else 0

    compiled = tcompile.compile(f)
    for shape in ((1, 1), (1, 1), (17, 2), (17, 3), (5, 2), (2, 2)):
        for got, want in zip(compiled(np.ones(shape)), f(np.ones(shape)), strict=True):
            assert np.shape(got) == np.shape(want)


def test_nothing_is_written_to_a_scalar():
    def f(x, y):
        v = np.float64(0)
        y.fill(1)
        v[...] = 1

    compare(f, lambda: [np.ones(2), np.ones(2)])


def test_products_of_booleans():
    compare(lambda x: ((x > 1) @ (x > 0), np.vecdot(x > 1, x > 0)), lambda: [np.arange(9.0)])
