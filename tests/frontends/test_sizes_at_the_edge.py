"""Sizes that are zero or negative: indices that nobody asks an element for, and -1 that comes as an argument."""

import warnings

import numpy as np
import pytest

import tcompile
from tcompile.observe.events import FellBack
from tcompile.observe.recorder import Recorder

NONE = np.zeros(0, int)
FIVE, ONE = np.array([5]), np.array([1])
EDGES = [((3, 4), NONE), ((0, 0), NONE), ((3, 0), FIVE), ((3, 4), ONE), ((3, 2), NONE), ((0, 4), NONE)]
READS = [
    "x[i, 7]", "x[i, 2] * 2", "x[np.arange(len(x)), 0] + 1", "x[i] + 1", "x[i[:, None], [7, 8]]", "x[[5], :]",
    "np.take(x, i, axis=0)", "x[..., i]", "x[i, i]", "x[None, i, 1]",
]  # fmt: skip
WRITES = [
    "x[np.arange(len(x)), 0] = 1", "x[np.arange(len(x)), 0] += 1", "x[i, 2] *= 2", "x[[], 0] = 1", "x[0, i] = i",
    "x[i] = 5", "np.add.at(x, (i, 2), 1)", "x[i, ..., 1] = 2",
]  # fmt: skip
SHAPES = {
    "np.broadcast_to(x.ravel()[0], (k, k)).sum()": [((4,), -1), ((4,), 3), ((4,), 0)],
    "np.broadcast_to(x, (k, 4)).sum(axis=0)": [((4,), -1), ((4,), 3), ((4,), 0)],
    "(x * 2, np.broadcast_shapes((k, 4), (1, 4)))": [((3,), -1), ((3,), 3)],
    "x.reshape(-1, k).reshape(3, -1) + 1": [
        ((0,), -1), ((12,), 4), ((12,), 2), ((12,), -1), ((4, 4), 4), ((4, 4), 2), ((0, 4), -1),
    ],
    "x.reshape(-1, k).reshape(len(x), -1) + 1": [((2, 2), 2), ((3, 2), 3), ((4, 2), 2)],
    "np.roll(x.reshape(-1, k), 0, axis=1)": [((4,), -1), ((4,), 2)],
    "x.reshape(k, -1)": [((4,), -1), ((4,), 2), ((4,), -2), ((4,), 0), ((0,), 0)],
    "x.reshape(k)": [((2, 2), -1), ((2, 2), 4), ((2, 2), -4)],
}  # fmt: skip


def told(function, shape, other):
    """What a call gives or raises, leaves in its argument, and warns of."""
    x = np.arange(float(np.prod(shape))).reshape(shape)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            made = repr(function(x, other))
        except Exception as error:
            made = f"{type(error).__name__}: {error}"
    return made, repr(x), [str(w.message) for w in caught]


def same(text, calls, dynamic, backend):
    names = {"np": np}
    exec(text, names)
    for order in (calls, calls[::-1]):
        tcompile.reset()
        compiled = tcompile.compile(names["f"], dynamic=dynamic, backend=backend)
        for shape, other in order * 2:
            assert told(compiled, shape, other) == told(names["f"], shape, other)


@pytest.mark.parametrize("backend", ["llvm", "eager"])
@pytest.mark.parametrize("dynamic", [None, True, False])
def test_indices_beside_empty_ones(dynamic, backend):
    """NumPy looks at all indices where there are any, and at a single one even beside empty arrays."""
    for read in READS:
        same(f"def f(x, i):\n    return {read}\n", EDGES, dynamic, backend)
    for write in WRITES:
        same(f"def f(x, i):\n    {write}\n    return x\n", EDGES, dynamic, backend)


@pytest.mark.parametrize("backend", ["llvm", "eager"])
@pytest.mark.parametrize("dynamic", [None, True, False])
def test_sizes_that_are_arguments(dynamic, backend):
    for text, calls in SHAPES.items():
        same(f"def f(x, k):\n    return {text}\n", calls, dynamic, backend)


def test_indices_into_many_axes():
    """The order of their result is asked of NumPy, with small arrays: of 13 axes even those are large."""

    def f(x, i):
        return x[i] + 1

    i = np.array([[0, 2, 1], [1, 1, 0]])
    for axes in (7, 12):
        x = np.arange(3.0**axes).reshape((3,) * axes)[::-1]
        compiled = tcompile.compile(f)
        got, want = compiled(x, i), f(x, i)
        assert got.strides == want.strides and np.array_equal(got, want)
        assert any(node.op.name == "gather" for node in compiled.graphs[-1].nodes) == (axes == 7)
    assert {broke.reason.id for broke in compiled.breaks} == {"memory-order"}


EMPTY = {
    "new": lambda: np.zeros((0, 5, 6)), "turned": lambda: np.zeros((0, 6, 5)).swapaxes(1, 2),
    "no rows of some": lambda: np.ones((1, 5, 6))[1:], "every second": lambda: np.ones((4, 10, 12))[4:, ::2, 1::2],
    "of turned": lambda: np.ones((1, 6, 5)).swapaxes(1, 2)[1:],
    "of Fortran's": lambda: np.ones((5, 6, 1), order="F").T[1:],
    "of broadcast": lambda: np.broadcast_to(np.ones(6), (3, 5, 6))[3:],
}  # fmt: skip


@pytest.mark.parametrize("backend", ["llvm", "eager"])
@pytest.mark.parametrize("name", EMPTY)
@pytest.mark.parametrize("function", [
    lambda x: np.sum(x, axis=0), lambda x: x.any(0), lambda x: x.prod(0) + 1, lambda x: (x + 1).sum(0),
    lambda x: np.concatenate([x, np.ones((1, *x.shape[1:]))]), lambda x: np.sum(x, axis=0) is None,
])  # fmt: skip
def test_reductions_of_no_rows(function, name, backend):
    """Their results lie as the strides of the array say, which views have although there are no elements."""
    compiled = tcompile.compile(function, backend=backend)
    with Recorder() as recorder:
        for _ in range(2):
            got, want = compiled(EMPTY[name]()), function(EMPTY[name]())
            assert np.array_equal(got, want) and getattr(got, "strides", 0) == getattr(want, "strides", 0)

    assert not recorder.of(FellBack)
    if name in ("new", "no rows of some", "every second"):
        assert not compiled.breaks


@pytest.mark.parametrize("backend", ["llvm", "eager"])
@pytest.mark.parametrize("function", [
    lambda z: (np.asarray(z) + 1).real.argmax(), lambda z: np.asarray([z, 2]).imag[1, ...].flatten(),
])  # fmt: skip
def test_parts_of_one_element(function, backend):
    """One element has no gaps, also as half of a complex number: `argmax` took NumPy's scalar for an array."""
    compiled = tcompile.compile(function, backend=backend)
    with Recorder() as recorder:
        got, want = compiled(np.complex64(3 - 2j)), function(np.complex64(3 - 2j))
    assert np.array_equal(got, want) and type(got) is type(want)
    assert not recorder.of(FellBack) and not compiled.breaks


@pytest.mark.parametrize(
    "view",
    [
        np.ones((1, 17))[None].diagonal(1), np.ones((4, 6))[:0, ::2], np.ones((4, 6))[::2, :0],
        np.broadcast_to(np.ones((0, 3)), (5, 0, 3))[1:, :, ::2],
    ],
)  # fmt: skip
def test_an_array_without_elements_lies_in_c_order_whatever_its_strides(view):
    compiled = tcompile.compile(lambda x: np.ascontiguousarray(x), backend="eager")
    assert np.ascontiguousarray(view) is view
    assert compiled(view) is view
