"""Outputs of rank 0, and outputs beside results of another shape; scalars and numbers where functions take arrays;
rows that are in no order, and elements, which show nothing of their array.
"""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from differential import check

import tcompile
from tcompile.observe.events import FellBack
from tcompile.observe.recorder import Recorder

# -- outputs of rank 0, and beside results of another shape ------------------------------------------------------------
ODD_OUTPUTS = {
    "divmod": (lambda u, v: np.divmod(v, 2, out=(u, None)), [(3,), (1,)], [(1, 3), (3,)], [(3,), (3,)]),
    "modf": (lambda u, v: np.modf(v, out=(None, u)), [(3,), (1,)], [(1, 3), (3,)], [(3,), (3,)]),
    "dot": (lambda u, v: np.dot(v, v, out=u), [(), (2,)]),
    "v.dot": (lambda u, v: v.dot(v, out=u), [(), (2,)]),
    "sum": (lambda u, v: np.sum(v[0], out=u), [(), (2,)]),
    "sum of an array": (lambda u, v: np.sum(v, out=u), [(), (2,)]),
    "clip": (lambda u, v: np.clip(v[0], 0, 1, out=u), [(), (2,)]),
    "v.iteration": (lambda u, v: v[0].round(out=u), [(), (2,)]),
    "max": (lambda u, v: np.max(v[0], out=u), [(), (2,)]),
}


@pytest.mark.parametrize("name", ODD_OUTPUTS)
def test_outputs_of_rank_0_and_beside_others(name):
    f, *shapes = ODD_OUTPUTS[name]
    for out, given in shapes:
        check(f, lambda out=out, given=given: [np.zeros(out), np.ones(given)])


def test_an_output_without_elements_asks_for_no_operation():
    def f(x):
        kept = x[x >= 0]
        np.power(1, x, out=kept)
        return kept

    compiled = tcompile.compile(f, backend="eager")
    with Recorder() as recorder:
        for x in (np.array([-3]), np.array([3])):
            assert compiled(x).tolist() == f(x).tolist()
    assert not recorder.of(FellBack)


@pytest.mark.parametrize(
    ("call", "values"), [("power(x, -1", [1, 1]), ("divide(x, 0.0", [1.0, 2.0]), ("floor_divide(x, 0", [1, 2])]
)
def test_what_signals_of_any_element_is_not_asked_of_those_left_out(call, values):
    space = {"np": np}
    exec(f"def f(x):\n    np.{call}, where=x > 2, out=x)\n    return x", space)
    f = space["f"]
    compiled = tcompile.compile(f)
    with Recorder() as recorder:
        assert compiled(np.array(values)).tolist() == values
    assert not recorder.of(FellBack)
    check(f, lambda: [np.array(values) * 3])


def test_elements_left_out_are_harmless_where_a_number_is():
    def f(x):
        np.power(x, -1.0, where=x > 0, out=x)
        np.log(x, where=x > 0, out=x)
        return x

    compiled = tcompile.compile(f, fullgraph=True)
    with Recorder() as recorder, np.errstate(all="raise", under="ignore"):
        for _ in range(2):
            np.testing.assert_allclose(compiled(np.arange(-3.0, 9)), f(np.arange(-3.0, 9)), rtol=1e-14)
    assert not recorder.of(FellBack)


@pytest.mark.parametrize("dynamic", [None, True])
def test_outputs_to_which_others_are_broadcast_stay_in_the_graph(dynamic):
    def f(row, rows):
        np.multiply(row, 2.0, out=rows[2:])
        np.add(row[0], 1.0, out=rows[0])

    compiled = tcompile.compile(f, fullgraph=True, dynamic=dynamic)
    for n in (5, 6, 3):
        row, rows = np.arange(4.0), np.zeros((n, 4))
        compiled(row, rows)
        assert rows[2:].tolist() == [[0, 2, 4, 6]] * (n - 2) and rows[0].tolist() == [1] * 4


NUMBERS = [np.int64(3), np.bool_(True), np.float64(2), np.complex64(1j), 2.5, 3, True, 1j]
OF_NUMBERS = [
    "np.squeeze(x)", "np.transpose(x)", "np.permute_dims(x, ())", "np.reshape(x, ())", "np.reshape(x, [])",
    "np.reshape(x, shape=())", "np.reshape(x, -1)", "np.moveaxis(x, (), ())", "np.roll(x, 1)",
]  # fmt: skip


@pytest.mark.parametrize("text", OF_NUMBERS)
@pytest.mark.parametrize("number", NUMBERS, ids=lambda x: f"{type(x).__name__}")
def test_numbers_for_arrays(text, number):
    if "permute_dims" in text and not hasattr(np, "permute_dims"):
        pytest.skip("this NumPy has it not")
    space = {"np": np, "number": number}
    exec(f"def f(x): return {text}\ndef of_global():\n    x = number\n    return {text}", space)
    check(space["f"], lambda: [number])
    check(space["of_global"], list)


def test_einsum_of_an_array_of_rank_0():
    check(lambda x: np.einsum("...->...", np.asarray(x.sum())), lambda: [np.ones(3)])
    check(lambda x: np.einsum("...->...", x), lambda: [np.ones(())])


@pytest.mark.parametrize("f", [lambda x, k: np.median(x[:k]) + 1, lambda x, k: np.median(x[:k, None], axis=0) + 1])
def test_the_median_of_nothing_warns_as_often_as_numpy(f):
    compiled = tcompile.compile(f)
    for k in (2, 3, 0, 4, 0):
        told = []
        for g in (f, compiled):
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                g(np.arange(5.0), k)
            told.append([str(one.message) for one in caught])
        assert told[0] == told[1]


IN_ORDER = [
    "np.asarray(x, order='C')", "np.asarray(x, order='F')", "np.asanyarray(x, order='C')",
    "np.array(x, copy=None, order='F')", "np.asarray(x, float, order='C')", "np.asarray(x, order='K')",
    "np.asarray(x, order='A')", "np.array(x, order='C')", "np.ascontiguousarray(x)",
]  # fmt: skip


@pytest.mark.parametrize("text", IN_ORDER)
@pytest.mark.parametrize("part", [slice(None, None, 2), slice(None, None, -1), slice(None)])
def test_rows_in_no_order_are_copied(text, part):
    space = {"np": np}
    exec(f"def f(x):\n    v = {text}\n    v += 1\n    return v, x", space)
    check(space["f"], lambda: [np.arange(8.0)[part]])


OF_ELEMENTS = [
    "x[-1].reshape(1)", "x[-1].reshape(-1)", "x[-1].reshape(1, 1)", "np.reshape(x[-1], (1,))",
    "x[-1].real.reshape(1)", "x[1:].reshape(-1)[0].reshape(1)", "x[-1].reshape(1, order='F')", "x[-1].ravel()",
    "np.atleast_1d(x[-1])", "x[-1][None]", "np.expand_dims(x[-1], 0)", "x[-1].T.reshape(1)", "x[-1:].reshape(1)",
    "np.moveaxis(x[-1], (), ()).reshape(1)", "np.squeeze(x[-1]).reshape(1)",
]  # fmt: skip


@pytest.mark.parametrize("text", OF_ELEMENTS)
def test_an_element_is_none_of_the_array_any_more(text):
    space = {"np": np}
    exec(f"def f(x):\n    v = {text}\n    v[0] = 9\n    return v, x", space)
    check(space["f"], lambda: [np.arange(3.0)])


def test_elements_in_loops_are_none_of_the_array_any_more():
    def f(x):
        for i in range(len(x)):
            x[i].reshape(1)[0] = 9
        for v in x:
            v.reshape(-1)[0] = 9
        return x

    check(f, lambda: [np.arange(3.0)])


# -- what is not written -----------------------------------------------------------------------------------------------
FORTRAN = np.asfortranarray
REFUSED = {
    "dot, in Fortran order": ("np.dot(a, a, out=o)", FORTRAN(np.zeros((2, 2)))),
    "dot, a column": ("np.dot(a, a[0], out=o)", np.zeros((2, 2))[:, 0]),
    "a.dot": ("a.dot(a, o)", FORTRAN(np.zeros((2, 2)))),
    "multi_dot": ("np.linalg.multi_dot([a, a, a], out=o)", FORTRAN(np.zeros((2, 2)))),
    "multi_dot, a vector": ("np.linalg.multi_dot([a, a, a[0]], out=o)", np.zeros(2)),
    "dot": ("np.dot(a, a, out=o)", np.zeros((2, 2))),
    "all, an output for a dtype": ("(a > 0).all(0, o)", np.zeros(2, bool)),
    "any, keepdims for an output": ("(a > 0).any(0, None, True)", np.zeros(2, bool)),
    "all": ("(a > 0).all(0, None, o)", np.zeros(2, bool)),
    "place, an array": ("np.place(o, o > 0, a[0, :1])", np.arange(4)),
    "place, of rank 0": ("np.place(o, o > 0, np.asarray(a[0, 0]))", np.arange(4)),
    "place, a scalar": ("np.place(o, o > 0, a[0, 0])", np.arange(4)),
    "put, unsigned places": ("np.put(o, np.array([1, 2], 'u8'), 3)", np.arange(4)),
}


@pytest.mark.parametrize("name", REFUSED)
def test_outputs_that_numpy_refuses(name):
    line, out = REFUSED[name]
    space = {"np": np}
    exec(f"def f(a, o):\n    r = {line}\n    return r, o", space)
    check(space["f"], lambda: [np.array([[1.5, 2.0], [3.0, 4.0]]), out.copy("K")])


@pytest.mark.parametrize("turned", ["i, v", "i.T, v.T", "i[::-1], v", "i[::-1, ::-1], v[::-1, ::-1]", "i, v.T"])
@pytest.mark.parametrize("write", ["np.put(x, i, v)", "x.put(i, v)", "x[i] = v"])
@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_the_last_of_several_values_for_a_place_stays(turned, write, dtype):
    space = {"np": np}
    exec(f"def f(x, i, v):\n    i, v = {turned}\n    {write}\n    return x", space)
    for order in "CF":
        places, values = np.array([[1, 0], [0, 2]], order=order), np.arange(4.0).reshape(2, 2).copy(order)
        check(space["f"], lambda given=(places, values): [np.zeros(3, dtype), *given])
