"""``argmax`` and ``argmin`` in kernels: the first of the largest, NaNs first, along every axis and layout."""

import numpy as np
import pytest
from differential import check

import tcompile

SHAPES = [(5,), (1,), (1000,), (100, 3), (40, 8), (33, 33), (200, 1), (1, 7), (3, 40, 5), (6, 2000)]
DTYPES = ["f8", "f4", "i8", "i4", "u1", "i2", "u8", "f2", "?"]


def array(shape, dtype, layout):
    x = np.random.default_rng(0).integers(0, 6, shape).astype(dtype)
    if x.dtype.kind == "f" and not shape[0] % 2:
        x.flat[::11] = np.nan
    return {"C": x, "F": np.asfortranarray(x), "strided": np.repeat(x, 2, -1)[..., ::2]}[layout]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", SHAPES)
def test_along_every_axis(shape, dtype):
    layouts = ("C", "F", "strided") if dtype in DTYPES[:3] else ("C",)
    for axis in (None, *range(len(shape))):
        for layout in layouts:
            for keep in (False, True):
                check(lambda x, a=axis, k=keep: (np.argmin(x, axis=a, keepdims=k), (x + x).argmax(axis=a, keepdims=k)),
                      lambda o=layout: (array(shape, dtype, o),), backends=("llvm",), calls=1)  # fmt: skip


def test_zeros_of_both_signs_are_equal():
    x = np.array([[-0.0, 0.0], [0.0, -0.0]])
    check(lambda x: (x.argmax(1), x.argmin(1), x.argmax(0)), lambda: (x.copy(),), backends=("llvm", "aot_eager"))


def test_sizes_may_stay_open():
    compiled = tcompile.compile(lambda x: (x * 2).argmin(axis=1) + x.argmax(0)[0], fullgraph=True, dynamic=True)
    for shape in ((20, 5), (30, 7), (2, 600), (600, 2)):
        x = np.random.default_rng(1).random(shape)
        np.testing.assert_array_equal(compiled(x), (x * 2).argmin(axis=1) + x.argmax(0)[0])
    assert len(compiled.entries) == 1


def test_a_size_that_is_not_known_to_be_positive_is_numpys():
    compiled = tcompile.compile(lambda x: x[::2].argmax(), fullgraph=True, dynamic=True)
    for n in (3, 5, 8):
        x = np.arange(n) % 4
        assert compiled(x) == x[::2].argmax()
    assert len(compiled.entries) == 1


def test_few_elements_are_looked_through_in_a_kernel_and_long_rows_by_numpy():
    def first(x):
        return x.argmax(axis=-1)

    for shape, dynamic, kernels in (
        ((1000, 4), False, 1),
        ((30,), False, 1),
        ((100, 2000), False, 0),
        ((30,), True, 0),
        ((1000, 4), True, 0),
    ):
        compiled = tcompile.compile(first, dynamic=dynamic)
        compiled(np.ones(shape))
        assert len(compiled.entries[0].kernels) == kernels


def clusters(x, centres):
    for _ in range(10):
        label = ((x[:, None] - centres[None]) ** 2).sum(axis=2).argmin(axis=1)
        for k in range(3):
            mine = label == k
            centres[k] = (x * mine[:, None]).sum(axis=0) / np.maximum(mine.sum(), 1)
    return label, centres


def test_iterations_with_argmin_run_without_python():
    random = np.random.default_rng(0)
    x, centres = random.integers(0, 50, (60, 2)) * 1.0, random.integers(0, 50, (3, 2)) * 1.0  # whose sums are exact
    check(clusters, lambda: (x, centres.copy()), backends=("llvm",), calls=2)
    text = str(tcompile.explain(clusters)(x, centres.copy()))
    assert "This loop runs in machine code, iteration after iteration." in text
