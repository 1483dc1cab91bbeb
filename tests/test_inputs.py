"""Every kind of input that NumPy users have: plain and compiled must be told apart by nothing."""

import numpy as np
import pytest
from differential import STANCES, check


def arange(*shape, dtype=np.float64, order="C"):
    return np.asarray(np.arange(int(np.prod(shape))).reshape(shape), dtype=dtype, order=order)


def overlapping():
    base = np.arange(10.0)
    return base[1:], base[:-1]


def readonly():
    x = np.arange(3.0)
    x.setflags(write=False)
    return (x,)


def unaligned():
    raw = np.frombuffer(b"\0" + np.arange(4.0).tobytes(), np.uint8)
    return (raw[1:].view(np.float64),)


def twice():
    x = np.arange(3.0)
    return x, x


class Meters(np.ndarray):
    pass


def reductions(x):
    return x.sum(0), x.sum(1), x.sum(), x.sum((0, 1), keepdims=True), x.mean(1), x.std(), x.var(0)


def integer_reductions(x):
    return x.sum(), x.prod(), x.mean(), x.max(), x.argmax(0), (x > 3).any(1), x.min(axis=0)


def specials(x):
    return np.maximum(x, 0), x.max(), np.fmax(x, 0), x > 0, np.sign(x), np.isnan(x), np.floor(x)


def divisions(x, y):
    return x // y, x % y, np.fmod(x, y), divmod(x, y), x / y


def choices(x):
    return np.where(x > 0, x, 0), np.where(x > 0, 1, -1), np.clip(x, -1, 1)


def reshapes(x):
    return x.reshape(-1), x.reshape(2, 6) + 1, x.ravel(), x.flatten(), x.reshape(4, 3).T.reshape(-1)


def indexing(x):
    return x[0], x[-1, 2], x[:, 1], x[..., None], x[1:, ::-1], x[1][2]


def joins(x):
    return np.concatenate([x, x * 2]), np.stack([x, x], 1), np.hstack([x, x])


def creations(x):
    return x + np.linspace(0, 1, 5) + np.arange(5) + np.zeros(5) + np.ones_like(x) + np.eye(5)[0]


def in_place(x):
    y = x * 2
    z = y
    y += 1
    y *= x
    return y, z


def in_place_with(x, y):
    a = x + 0
    a *= y
    b = y + 0
    b *= x
    return a, b


def in_place_on_the_argument(x):
    x += 1
    return x


def in_place_under_a_view(x):
    y = x * 2
    view = y[1:]
    y += 1
    return view


def unread(x):
    x / 0
    x.astype("i4")
    return x + 1


def nothing(x):
    np.log(x)


IEEE = [np.nan, 1.5, -0.0, 0.0, np.inf, -np.inf, -2.5, 1e308, 5e-324]
CASES = {
    "F order": (lambda x: x * 3 + 1, lambda: (arange(3, 4, order="F"),)),
    "F and C order": (lambda x, y: x + y, lambda: (arange(3, 4, order="F"), arange(3, 4))),
    "transposed argument": (lambda x: x + 1, lambda: (arange(2, 3, 4).transpose(2, 0, 1),)),
    "transposed result": (lambda x: x.T, lambda: (arange(3, 4),)),
    "computed on a transpose": (lambda x: x.T + 1, lambda: (arange(3, 4),)),
    "strided": (lambda x: x * 2, lambda: (arange(4, 6)[::2, ::-3],)),
    "broadcast argument": (lambda x: x * 2, lambda: (np.broadcast_to(np.arange(3.0), (4, 3)),)),
    "read-only": (lambda x: x * 2, readonly),
    "overlapping": (lambda x, y: x - y, overlapping),
    "one array twice": (lambda x, y: (x is y, x + y), twice),
    "unaligned": (lambda x: x * 2, unaligned),
    "foreign byte order": (lambda x: x * 2, lambda: (np.arange(3, dtype=">f8"),)),
    "object dtype": (lambda x: x * 2, lambda: (np.array([1, 2**70, 3.5], object),)),
    "strings": (lambda x: x == "a", lambda: (np.array(["a", "b"]),)),
    "structured": (lambda x: x["a"] * 2, lambda: (np.ones(3, [("a", "f8"), ("b", "i4")]),)),
    "subclass": (lambda x: x * 2, lambda: (np.arange(3.0).view(Meters),)),
    "matrix": (lambda x: x * x, lambda: (np.arange(4.0).reshape(2, 2).view(Meters),)),
    "masked": (lambda x: x * x + 1, lambda: (np.ma.array([1, 2, 3], mask=[0, 1, 0]).filled(0),)),
    "0-d": (lambda x: (x + 1, np.sqrt(x), x), lambda: (np.array(2.0),)),
    "NumPy scalar": (lambda x: (x + 1, np.sqrt(x), x, x * np.float32(2)), lambda: (np.float32(2.0),)),
    "NumPy int": (lambda x, k: x * k, lambda: (np.arange(3, dtype=np.int8), np.int64(3))),
    "zero size": (lambda x: (x + 1, x.sum(), x.sum(0), x.T), lambda: (np.zeros((0, 3)),)),
    "maximum of nothing": (lambda x: x.max(), lambda: (np.zeros((0, 3)),)),
    "NaN, infinities, signed zeros": (specials, lambda: (np.array(IEEE),)),
    "float division": (divisions, lambda: (np.array(IEEE), np.array(IEEE[::-1]))),
    "float32 division": (divisions, lambda: (np.float32([1, -7.5, 3, 0, 2]), np.float32([2, 2, -2, 1, 0.1]))),
    "int division": (divisions, lambda: (np.arange(-3, 4), np.array([2, -2, 1, 3, -1, 7, 2]))),
    "division by zero": (lambda x: 1 / x, lambda: (np.array([0.0, 1, 2]),)),
    "int division by zero": (lambda x: 1 // x, lambda: (np.array([0, 1, 2]),)),
    "logarithm of zero": (lambda x: np.log(x), lambda: (np.array([0.0, -1, 2]),)),
    "overflow": (lambda x: np.exp(x), lambda: (np.array([1000.0, 1]),)),
    "results that nobody reads": (unread, lambda: (np.array([1.0, np.nan, 0]),)),
    "nothing but a warning": (nothing, lambda: (np.array([1.0, -1.0]),)),
    "reduced axis of size one": (
        lambda x, y: (y.sum(axis=0) + x[1:], x[:1] + (y.astype(np.float32) + 4)),
        lambda: (arange(4, 3), np.ones((1, 3))),
    ),
    "int8 wraps": (lambda x: x * x + 100, lambda: (np.arange(-128, 127, dtype=np.int8),)),
    "int8 and a number out of range": (lambda x: x + 300, lambda: (np.arange(-5, 5, dtype=np.int8),)),
    "uint8 negated": (lambda x: -x, lambda: (np.arange(5, dtype=np.uint8),)),
    "bool negated": (lambda x: -x, lambda: (np.array([True, False]),)),
    "uint64 and a large int": (lambda x: x + 2**63, lambda: (np.array([1], np.uint64),)),
    "int scalar overflow": (lambda x: x.max() * x.max(), lambda: (np.array([2**62]),)),
    "float16": (lambda x: (x * 2 + 1, x.sum(), np.sqrt(x)), lambda: (np.arange(5, dtype=np.float16),)),
    "complex": (lambda x: (x * 2 + 1, x.sum(), abs(x)), lambda: (np.arange(5) + 1j,)),
    "powers": (lambda x: (x**2, x**0.5, x**-1, x**3, x**1.5, 2**x), lambda: (np.array([1.0, 7.5, 3, 0.1]),)),
    "power by argument": (lambda x, k: x**k, lambda: (np.array([1.0, 7.5, 3, 0.1]), 2.0)),
    "negative int power": (lambda x, y: x**y, lambda: (np.arange(1, 5), -np.arange(2, 6))),
    "float argument": (lambda x, k: np.clip(x, -k, k) * k, lambda: (np.float32([1, 7.5, 0.1]), 2.5)),
    "float argument beyond float32": (lambda x, k: x * k, lambda: (np.float32([1, 7.5, 0.1]), 1e300)),
    "float32 casts": (lambda x: (x.astype(np.int32), x.astype("f4"), x.astype(bool)), lambda: (np.array([1.5, -2.5]),)),
    "cast of NaN": (lambda x: x.astype(np.int32), lambda: (np.array([1.5, np.nan, 1e30]),)),
    "reductions": (reductions, lambda: (arange(3, 4),)),
    "reductions in F order": (reductions, lambda: (arange(3, 4, order="F"),)),
    "reductions of integers": (integer_reductions, lambda: (arange(3, 4, dtype=np.int32),)),
    "choices": (choices, lambda: (np.linspace(-3, 3, 11),)),
    "reshapes": (reshapes, lambda: (arange(3, 4),)),
    "reshapes in F order": (lambda x: (x.reshape(-1), x.ravel(), x.flatten()), lambda: (arange(3, 4, order="F"),)),
    "indexing": (indexing, lambda: (arange(3, 4),)),
    "joins": (joins, lambda: (np.arange(3.0),)),
    "creations": (creations, lambda: (np.arange(5.0),)),
    "in place": (in_place, lambda: (np.arange(3.0),)),
    "in place, in other memory orders": (
        in_place_with,
        lambda: (arange(3, 4, order="F"), arange(3, 4)),
    ),
    "in place on the argument": (in_place_on_the_argument, lambda: (np.arange(3.0),)),
    "in place under a view": (in_place_under_a_view, lambda: (np.arange(3.0),)),
    "shapes that do not fit": (lambda x, y: x + y, lambda: (np.arange(3.0), np.arange(4.0))),
    "matrices that do not fit": (lambda x, y: x @ y, lambda: (np.ones((2, 3)), np.ones((2, 3)))),
    "axis out of range": (lambda x: x.sum(axis=5), lambda: (np.arange(3.0),)),
    "index out of range": (lambda x: x[7], lambda: (np.arange(3.0),)),
    "index by list": (lambda x: x[[0, 1]], lambda: (np.arange(3.0),)),
    "index by mask": (lambda x: x[x > 1], lambda: (np.arange(3.0),)),
    "singular matrix": (lambda x: np.linalg.inv(x), lambda: (np.zeros((2, 2)),)),
    "fft": (lambda x: np.abs(np.fft.fft(x)), lambda: (np.arange(9.0),)),
    "einsum": (lambda x: np.einsum("ij,jk->ik", x, x), lambda: (arange(3, 3),)),
}


@pytest.mark.parametrize("name", CASES)
def test_input(name):
    function, make = CASES[name]
    check(function, make)


@pytest.mark.parametrize("name", ["strided", "division by zero", "zero size", "in place", "shapes that do not fit"])
def test_input_under_every_stance(name):
    function, make = CASES[name]
    check(function, make, stances=STANCES)


@pytest.mark.parametrize("dynamic", [True, False, None])
@pytest.mark.parametrize("name", ["F order", "strided", "reductions", "reshapes", "joins", "indexing"])
def test_input_with_open_sizes(name, dynamic):
    function, make = CASES[name]
    check(function, make, dynamic=dynamic)
