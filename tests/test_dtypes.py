"""The dtype rules as one table: every pair of operand kinds under every operator, plain and compiled."""

import operator
import warnings
import zlib

import numpy as np
import pytest

import tcompile

DTYPES = [
    "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16", "float32", "float64",
    "longdouble", "complex64", "complex128", "clongdouble",
]  # fmt: skip
OPERATORS = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv, "//": operator.floordiv,
    "%": operator.mod, "**": operator.pow, "<<": operator.lshift, ">>": operator.rshift, "&": operator.and_,
    "|": operator.or_, "^": operator.xor, "==": operator.eq, "!=": operator.ne, "<": operator.lt, "<=": operator.le,
    ">": operator.gt, ">=": operator.ge, "maximum": np.maximum, "minimum": np.minimum, "arctan2": np.arctan2,
    "hypot": np.hypot, "fmod": np.fmod, "copysign": np.copysign, "where": lambda a, b: np.where(a > 0, a, b),
    "logical_and": np.logical_and, "divmod": divmod, "concatenate": lambda a, b: np.concatenate([a, b]),
}  # fmt: skip
NUMBERS = {
    "True": True, "2": 2, "-3": -3, "300": 300, "2**40": 1 << 40, "2**70": 1 << 70, "0.5": 0.5, "1e300": 1e300,
    "1j": 1j, "0": 0, "0.0": 0.0,
}  # fmt: skip
INPLACE = {
    "+=": operator.iadd, "-=": operator.isub, "*=": operator.imul, "/=": operator.itruediv, "//=": operator.ifloordiv,
    "%=": operator.imod, "**=": operator.ipow, "&=": operator.iand, "<<=": operator.ilshift,
}  # fmt: skip


ONE_IN = 6  # operators, in turn, for each pair of dtypes; 1 is the whole table, which takes minutes


def array(dtype, start):
    """Ten numbers that every dtype has."""
    return (np.arange(start, start + 10) % 6 + 1).astype(dtype)


def outcome(function, *args):
    """Type, dtype, shape and values of the result, or the error, and the warnings."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            result, error = function(*args), None
        except Exception as raised:
            result, error = None, (type(raised), str(raised))
    return result, error, sorted({(w.category.__name__, str(w.message)) for w in caught})


def assert_same(got, want, about):
    if isinstance(want, tuple):
        assert isinstance(got, tuple) and len(got) == len(want), about
        for a, b in zip(got, want, strict=True):
            assert_same(a, b, about)
        return
    assert type(got) is type(want), (about, type(got), type(want))
    if isinstance(want, np.ndarray | np.generic):
        assert got.dtype == want.dtype and got.shape == want.shape, (about, got.dtype, want.dtype)
        with np.errstate(all="ignore"):
            if want.dtype.kind in "fc":
                step = 4 * np.finfo(want.dtype).eps
                np.testing.assert_allclose(got, want, rtol=float(step), atol=0, err_msg=str(about))
            else:
                np.testing.assert_array_equal(got, want, err_msg=str(about))
    else:
        assert got == want or got != got, about


def compare(function, cases, backend="auto"):
    """Calls ``function`` on every case, plain and compiled."""
    tcompile.reset()
    compiled = tcompile.compile(function, backend=backend)
    with tcompile.config.patch(recompile_limit=1000):
        for about, make in cases:
            want, got = outcome(function, *make()), outcome(compiled, *make())
            assert got[1:] == want[1:], (about, got, want)
            assert_same(got[0], want[0], about)


def compare_operators(about, names, make):
    """Compares every operator on ``make()``: those that report nothing in one function, the others one by one.

    Which dtype comes out is the frontend's business, so most run on the backend that compiles at once, some in kernels.
    """
    turn = zlib.crc32(str(about).encode())
    names = list(names)[turn % ONE_IN :: ONE_IN]
    reports = {name: outcome(OPERATORS[name], *make())[1:] != (None, []) for name in names}
    quiet = tuple(OPERATORS[name] for name in names if not reports[name])
    compare(lambda a, b: tuple([operate(a, b) for operate in quiet]), [(about, make)], "eager")
    if turn % 3 == 0:
        compare(lambda a, b: tuple([operate(a, b) for operate in quiet]), [(about, make)])
    for name in names:
        if reports[name]:
            operate = OPERATORS[name]
            compare(lambda a, b: operate(a, b), [((about, name), make)], "eager")


ELEMENTWISE = [name for name in OPERATORS if name != "concatenate"]


@pytest.mark.parametrize("left", DTYPES)
def test_arrays_with_arrays(left):
    for right in DTYPES:
        compare_operators((left, right), OPERATORS, lambda: (array(left, 1), array(right, 2)))


@pytest.mark.parametrize("kind", NUMBERS)
def test_arrays_and_scalars_with_python_numbers(kind):
    number = NUMBERS[kind]
    for dtype in DTYPES:
        compare_operators((dtype, kind), ELEMENTWISE, lambda: (array(dtype, 1), number))
        compare_operators((kind, dtype), ELEMENTWISE, lambda: (number, array(dtype, 1)))
        compare_operators((dtype, kind, "scalar"), ELEMENTWISE, lambda: (array(dtype, 1)[2], number))


@pytest.mark.parametrize("left", DTYPES)
def test_scalars_with_arrays_and_scalars(left):
    for right in DTYPES:
        compare_operators((left, right), ELEMENTWISE, lambda: (array(left, 1)[2], array(right, 3)))
        compare_operators((left, right, "scalars"), ELEMENTWISE, lambda: (array(left, 1)[2], array(right, 3)[1]))


@pytest.mark.parametrize("name", ELEMENTWISE)
def test_scalars_that_the_function_computes(name):
    operate = OPERATORS[name]
    places = range(len(DTYPES))
    pairs = [(DTYPES[i], DTYPES[(i * 5 + ELEMENTWISE.index(name)) % len(DTYPES)]) for i in places]
    compare(
        lambda a, b: operate(a.max(), b.min()),
        [((x, y), lambda x=x, y=y: (array(x, 1), array(y, 3))) for x, y in pairs],
    )


@pytest.mark.parametrize("name", INPLACE)
def test_operators_in_place(name):
    operate = INPLACE[name]

    def function(a, b):
        c = a.copy()
        c = operate(c, b)
        return c

    place = list(INPLACE).index(name)
    pairs = [(x, y) for i, x in enumerate(DTYPES) for j, y in enumerate(DTYPES) if (i + j + place) % 4 == 0]
    compare(function, [((x, y), lambda x=x, y=y: (array(x, 1), array(y, 3))) for x, y in pairs])
    some = [(x, n) for x in DTYPES for n in ("2", "0.5", "1j")]
    compare(function, [((x, n), lambda x=x, n=n: (array(x, 1), NUMBERS[n])) for x, n in some])


@pytest.mark.parametrize("dtype", DTYPES)
def test_conversions(dtype):
    for target in DTYPES:
        compare(lambda a: (a.astype(target), a[1].astype(target)), [((dtype, target), lambda: (array(dtype, 1),))])


@pytest.mark.parametrize("dtype", DTYPES)
def test_reductions(dtype):
    for function in (
        lambda a: (a.sum(), a.sum(axis=0), a.prod(), a.prod(axis=1), a.cumsum()),
        lambda a: (a.mean(), a.mean(axis=1), a.var(), a.std(axis=0)),
        lambda a: (a.max(), a.min(axis=0), a.any(), a.all(axis=1), abs(a), abs(a[2]), a.argmax()),
        lambda a: (-a, -a[2, 1], +a),
    ):
        compare(function, [(dtype, lambda: (array(dtype, 1).reshape(5, 2),))])


@pytest.mark.parametrize("dtype", [name for name in DTYPES if np.dtype(name).kind in "iu"])
def test_integers_wrap_and_divide_as_numpys_do(dtype):
    info = np.iinfo(dtype)
    edges = np.array([info.min, info.min + 1, -1 if info.min else 1, 0, 1, 2, info.max - 1, info.max], dtype)
    a, b = (x.ravel().copy() for x in np.meshgrid(edges, edges))
    for name in ("+", "-", "*", "/", "//", "%", "divmod", "fmod", "<<", ">>", "<", "maximum"):
        operate = OPERATORS[name]
        compare(lambda x, y: operate(x, y), [(name, lambda: (a, b))])
        pairs = [(x, y) for x in edges[::2] for y in edges[::2]]
        compare(lambda x, y: operate(x, y), [((name, *pair), lambda pair=pair: pair) for pair in pairs])
    compare(lambda x: (-x, abs(x), x.sum(), x.prod(), x**2, x**3, ~x), [(dtype, lambda: (edges,))])


STRUCTURED = np.dtype([("a", "i4"), ("b", "f8")])
ODD = {
    "datetime64": lambda: np.array(["2020-01-01", "2021-03-04"], "M8[D]"),
    "timedelta64": lambda: np.array([3, 5], "m8[h]"),
    "str": lambda: np.array(["x", "yy"]),
    "bytes": lambda: np.array([b"x", b"yy"]),
    "object": lambda: np.array([1, 2.5], object),
    "structured": lambda: np.array([(1, 2.0), (3, 4.0)], STRUCTURED),
    "big-endian": lambda: np.array([1.5, 2.5], ">f8"),
}


@pytest.mark.parametrize("kind", ODD)
def test_other_dtypes_are_plain_numpys(kind):
    programs = [
        lambda x: x + x, lambda x: x == x, lambda x: x[::-1].copy(), lambda x: (x.shape, x.dtype, x.nbytes),
        lambda x: np.sort(x), lambda x: x.max(), lambda x: x - x, lambda x: x * 2, lambda x: np.concatenate([x, x]),
        lambda x: (np.arange(2.0) * 2 + 1, x[1]), lambda x: x.astype("U"), lambda x: np.where([True, False], x, x),
    ]  # fmt: skip
    for number, function in enumerate(programs):
        compare(function, [((kind, number), lambda: (ODD[kind](),))])
    compare(lambda x: x["b"] * 2, [("field", lambda: (ODD["structured"](),))])


def test_metadata_is_no_part_of_equality():
    """A dtype with metadata equals the one without, and is another one all the same."""

    def annotated(x):
        made = np.dtype("i", metadata={"unit": "m"})
        return np.asarray(x, dtype=made), np.asarray(x, dtype="i"), x * 2 + 1

    x = np.arange(3, dtype="i")
    compiled = tcompile.compile(annotated)
    for _ in range(2):
        other, same, doubled = compiled(x)
        assert other is not x and other.base is x and other.dtype.metadata == {"unit": "m"}
        assert same is x and doubled.tolist() == [1, 3, 5]


def test_a_bool_of_another_byte_is_true():
    def f(m):
        return m.sum(), np.where(m, 3, 4), m | False, m + 1, ~m, m.any(axis=0), np.count_nonzero(m)

    def other():
        m = np.zeros(40, bool)
        m.view(np.uint8)[::3] = 2
        return m

    compiled = tcompile.compile(f)
    for _ in range(2):
        for got, want in zip(compiled(other()), f(other()), strict=True):
            np.testing.assert_array_equal(got, want)
    assert other().copy().view(np.uint8)[0] == 2
    assert (other() | False).view(np.uint8)[0] == 1
