import numpy as np
import pytest

from tests.backends.llvm_cases import check, sample

VIEWS = {
    "c": lambda a: np.ascontiguousarray(a),
    "f": lambda a: np.asfortranarray(a),
    "transposed": lambda a: np.ascontiguousarray(a.T).T,
    "strided": lambda a: np.repeat(np.repeat(a, 2, 0), 3, 1)[::2, ::3],
    "rows": lambda a: np.repeat(a, 2, 0)[::2],
    "window": lambda a: np.pad(a, 2)[2:-2, 2:-2],
    "reversed": lambda a: np.ascontiguousarray(a[::-1, ::-1])[::-1, ::-1],
    "broadcast row": lambda a: np.broadcast_to(a[0], a.shape),
    "broadcast column": lambda a: np.broadcast_to(a[:, :1], a.shape),
    "unaligned": lambda a: unaligned(a),
}
SHAPES = [(3, 37), (16, 16), (1, 5), (5, 1), (0, 4), (4, 0), (1, 1), (65, 3)]


def unaligned(a):
    raw = np.zeros(a.nbytes + 1, "u1")
    view = raw[1:].view(a.dtype) if not a.nbytes else np.frombuffer(raw, a.dtype, a.size, 1)
    view = view.reshape(a.shape)
    view[...] = a
    return view


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("shape", SHAPES)
def test_pointwise(view, shape):
    if 0 in shape and "broadcast" in view:
        pytest.skip("nothing to broadcast")
    for dtype in ("float32", "int64", "bool"):
        a, b = VIEWS[view](sample(dtype, shape, 1)), sample(dtype, shape, 2)
        check(lambda op, x, y: [op("add", x, y), op("multiply", y, x), op("equal", x, x)], a, b)


@pytest.mark.parametrize("first", VIEWS)
@pytest.mark.parametrize("second", VIEWS)
def test_pairs(first, second):
    a, b = VIEWS[first](sample("float32", (6, 35), 1)), VIEWS[second](sample("float32", (6, 35), 2))
    check(lambda op, x, y: op("multiply", op("add", x, y), 2.0), a, b)


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("axis", [(0,), (1,), (0, 1)])
def test_reductions(view, axis):
    for dtype in ("float32", "float64", "int32", "uint8"):
        for shape in ((6, 35), (1, 40), (40, 1), (300, 5)):
            a = VIEWS[view](sample(dtype, shape))
            names = ["sum", "max", "min"]
            check(lambda op, x: [op(n, x, axis=axis, keepdims=False) for n in names], a, ulp=8, rtol=1e-5)


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0), (1, 0, 2), (2, 0, 1)])
def test_three_axes(order):
    a = sample("float32", (4, 5, 19))
    a = np.ascontiguousarray(a.transpose(order)).transpose(np.argsort(order))
    b = sample("float32", (5, 1))
    check(lambda op, x, y: op("add", op("multiply", x, y), 1.0), a, b)
    for axis in ((0,), (1,), (2,), (0, 1), (1, 2), (0, 2), (0, 1, 2)):
        for keepdims in (False, True):
            check(lambda op, x: [op(n, x, axis=axis, keepdims=keepdims) for n in ("sum", "max")], a, ulp=8, rtol=1e-4)


def test_view_ops_inside_kernels():
    a, v = sample("float32", (6, 35)), sample("float32", 35)
    one = {"kernels": 1}
    check(lambda op, x: op("add", op("permute_dims", x, axes=(1, 0)), 1.0), a, **one)
    check(lambda op, x: op("add", op("flip", x, axis=(1,)), x), a, **one)
    check(lambda op, x: op("add", op("flip", x, axis=0), x), a, **one)
    check(lambda op, x: op("square", op("index", x, key=(slice(1, -1), slice(None, None, 3)))), a, **one)
    check(lambda op, x: op("square", op("index", x, key=(slice(None, None, -2), 3))), a, **one)
    check(lambda op, x: op("square", op("index", x, key=(Ellipsis, None, 4))), a, **one)
    check(lambda op, x, y: op("multiply", op("broadcast_to", y, shape=(6, 35)), x), a, v, **one)
    check(lambda op, y: op("negative", op("expand_dims", y, axis=0)), v, **one)
    check(lambda op, x: op("negative", op("squeeze", x, axis=(0,))), v[None], **one)
    check(lambda op, x: op("negative", op("reshape", x, shape=(6, 5, 7))), a, **one)
    check(lambda op, x: op("negative", op("reshape", op("add", x, 1.0), shape=(6, 5, 7))), a, **one)
    check(lambda op, x: op("sum", op("reshape", op("add", x, 1.0), shape=(6, 5, 7)), axis=(2,), keepdims=False), a,
          ulp=4, rtol=1e-5, **one)  # fmt: skip


def test_stencil_is_one_kernel():
    a = sample("float64", (20, 45))

    def build(op, x):
        inner = (slice(1, -1), slice(1, -1))
        up, down = (slice(None, -2), slice(1, -1)), (slice(2, None), slice(1, -1))
        left, right = (slice(1, -1), slice(None, -2)), (slice(1, -1), slice(2, None))
        total = op("add", op("index", x, key=up), op("index", x, key=down))
        total = op("add", total, op("add", op("index", x, key=left), op("index", x, key=right)))
        return op("subtract", total, op("multiply", op("index", x, key=inner), 4.0))

    check(build, a, kernels=1)
    check(build, np.asfortranarray(a), kernels=1)


def test_reshape_that_mixes_axes():
    a = sample("float32", (6, 35))
    check(lambda op, x: op("add", op("reshape", op("add", x, 1.0), shape=(35, 6)), 1.0), a)
    check(lambda op, x: op("reshape", op("permute_dims", op("add", x, 1.0), axes=(1, 0)), shape=(210,)), a)
    check(lambda op, x: op("add", op("reshape", x, shape=(210,)), 1.0), a)


def test_views_are_views():
    a = sample("float32", (6, 35))
    compiled = check(
        lambda op, x: [op("permute_dims", x, axes=(1, 0)), op("index", op("add", x, 1.0), key=(slice(2),))], a
    )
    transposed, cut = compiled(a)
    assert transposed.base is a
    assert cut.base is not None
    assert compiled(a)[0].strides == a.T.strides


def test_rank_zero():
    a = np.array(2.5, "float32")
    check(lambda op, x: [op("add", x, 1.0), op("multiply", x, x)], a)
    compiled = check(lambda op, x, y: op("add", x, y), sample("float32", 40), a)
    (r,) = compiled(sample("float32", 40), np.float32(2.5))
    np.testing.assert_array_equal(r, sample("float32", 40) + np.float32(2.5))


def test_the_same_value_twice_and_inputs_as_outputs():
    a = sample("float32", 10)

    def build(op, x):
        y = op("add", x, 1.0)
        return [y, y, x, op("index", y, key=(slice(None, None, -1),))]

    check(build, a)


def test_diagonals_of_what_is_counted():
    """Rows and columns of a diagonal are one axis, which is in an index of the whole array once."""

    def diagonals(op):
        x = op("reshape", op("arange", start=0, stop=60, step=1, dtype="int64"), shape=(3, 4, 5))
        turned = op("index", x, key=(1, slice(None), slice(None, None, -1)))
        first = op("diagonal", x, offset=0, axis1=1, axis2=2)
        return op("add", first, op("diagonal", turned, offset=0, axis1=0, axis2=1))

    check(diagonals)
