# ruff: noqa: E501
"""Each kind of guard: what is reported where it fails, and how the recompile is said to be avoided."""

from __future__ import annotations

import collections
import dataclasses
import enum
import functools

import numpy as np
import pytest

import tcompile
from tcompile.observe.events import GuardFailed
from tcompile.observe.recorder import Recorder

Pair = collections.namedtuple("Pair", "u v")
FACTOR = 3


def total(v):
    s = 0
    for x in v:
        s += x
    return s


class Letter(enum.Enum):
    A = 1
    B = 2


class Scale:
    w = 2

    def __init__(self, k=1):
        self.k = k

    def times(self, x):
        return x * self.w


class Steeper(Scale):
    pass


class Loud:
    """Must not be asked for its repr."""

    def __repr__(self):
        raise AssertionError("asked for its repr")


@dataclasses.dataclass
class Options:
    k: int


def ones(*shape, dtype=float, order="C"):
    return np.ones(shape, dtype, order)


def scaled(k):
    def f(x):
        return x * k

    return f


def by_global(x):
    return x * FACTOR


def helper(x):
    return x * 2


def by_helper(x):
    return helper(x)


def redefined():
    exec(compile("\n\ndef helper(x):\n    return x * 5\n", "cell 3", "exec"), globals())
    return (ones(3),)


def set_global(name, value):
    globals()[name] = value
    return (ones(3),)


def shadowed():
    scale = Scale()
    scale.w = 5
    return scale, ones(3)


def with_class(name, value):
    setattr(Scale, name, value)
    return Scale(), ones(3)


def with_cell(function, value):
    function.__closure__[0].cell_contents = value
    return (ones(3),)


double = lambda x: x * 2
length = lambda items: items[0] * len(items)
twice_k = lambda x, k: x * k
times = lambda o, x: o.times(x)
by_k = lambda o, x: x * o.k
called = lambda x, g: g(x)
by_cell = scaled(2)
changing = [1]
ONES = ones(3)

VALUES = "each value of `k` has an entry of its own: keep to a few"
TYPES = "each type of `{}` has an entry of its own: pass one type in every call"
SIZES = "a size that varies becomes symbolic at the next compile; tcompile.mark_dynamic({}) or dynamic=True make it so at once"
INT = "an int that varies becomes symbolic at the next compile; dynamic=True makes it so at once"
ORDER = "each memory order has an entry of its own: np.ascontiguousarray(x) before the call keeps to one"
LENGTH = "each class and length has an entry of its own: an array can have an open size"
QUESTION = "the code tests this, so each outcome has an entry of its own"
ONE = "sizes 0 and 1 are always compiled by themselves"

# A function, the calls (or what makes a call's arguments), the report of the last one's newest entry, and the hint.
CASES = {
    "dtype": (
        double, [(ones(3),), (ones(3, dtype="f4"),)], "x.dtype == float64, got float32",
        "each dtype has an entry of its own: x.astype('float64') before the call keeps to one",
    ),
    "dtype of an item": (
        lambda items: items[0] * 2, [([ones(3)],), ([ones(3, dtype="f4")],)], "items[0].dtype == float64, got float32",
        "each dtype has an entry of its own: items[0].astype('float64') before the call keeps to one",
    ),
    "array, then number": (double, [(ones(3),), (2.0,)], "type(x) is ndarray, got float", TYPES.format("x")),
    "array, then scalar": (double, [(ones(3),), (np.float32(2),)], "type(x) is ndarray, got float32", TYPES.format("x")),
    "scalar, then array": (double, [(np.float32(2),), (ones(3),)], "type(x) is float32, got ndarray", TYPES.format("x")),
    "size": (double, [(ones(3),), (ones(4),)], "x.shape == (3,), got (4,)", SIZES.format("x, 0")),
    "two sizes": (double, [(ones(3, 4),), (ones(4, 5),)], "x.shape == (3, 4), got (4, 5)", SIZES.format("x, (0, 1)")),
    "size that stayed fixed": (
        double, [(ones(3, 4),), (ones(5, 4),), (ones(5, 6),)], "x.shape[1] == 4, got (5, 6)", SIZES.format("x, axis"),
    ),
    "number of axes": (
        double, [(ones(3),), (ones(3, 3),)], "x.shape == (3,), got (3, 3)",
        "each number of axes has an entry of its own",
    ),
    "size one": (double, [(ones(3),), (ones(1),)], "x.shape == (3,), got (1,)", ONE),
    "open size one": (double, [(ones(3),), (ones(4),), (ones(1),)], "x.shape[0] >= 2, got 1", ONE),
    "sizes that were equal": (
        lambda x, y: x.sum() + y.sum(), [(ones(3), ones(3)), (ones(4), ones(4)), (ones(4), ones(5))],
        "y.shape[0] == x.shape[0] (expected the same size, got 5)",
        "sizes that were equal are compiled as equal; the next compile tells them apart",
    ),
    "C order": (double, [(ones(3, 4),), (ones(3, 4, order="F"),)], "x is C-contiguous, got F-contiguous", ORDER),
    "F order": (double, [(ones(3, 4, order="F"),), (ones(3, 4),)], "x is F-contiguous, got C-contiguous", ORDER),
    "other order": (
        double, [(ones(2, 3, 4).transpose(1, 0, 2),), (ones(3, 2, 4),)],
        "x is dense with its axes in memory order (1, 0, 2), got C-contiguous", ORDER,
    ),
    "strides": (double, [(ones(4),), (ones(8)[::2],)], "x is C-contiguous, got strides (16,)", ORDER),
    "no strides": (double, [(ones(8)[::2],), (ones(4),)], "x is strided, got C-contiguous", ORDER),
    "int": (twice_k, [(ones(3), 2), (ones(3), 3)], "k == 2, got 3", INT),
    "huge int": (twice_k, [(ones(3), 2), (ones(3), 1 << 70)], "k == 2, got 0x400000000000000000", INT),
    "int, then bool": (twice_k, [(ones(3), 2), (ones(3), True)], "k == 2, got True", TYPES.format("k")),
    "int, then array": (
        twice_k, [(ones(3), 2), (ones(3), ones(3))], "k == 2, got an ndarray of float64 and shape (3,)", TYPES.format("k"),
    ),
    "open int out of range": (
        twice_k, [(ones(3), 2), (ones(3), 3), (ones(3), 2**63)],
        "type(k) is int (expected an int below 2**62, got 9223372036854775808)",
        "each int of 2**62 or more has an entry of its own",
    ),
    "open int, then bool": (
        twice_k, [(ones(3), 2), (ones(3), 3), (ones(3), True)],
        "type(k) is int (expected an int below 2**62, got True)", TYPES.format("k"),
    ),
    "float, then int": (twice_k, [(ones(3), 2.0), (ones(3), 3)], "type(k) is float, got int", TYPES.format("k")),
    "float that is needed": (
        lambda x, k: x.reshape(int(k)), [(ones(0), 0.0), (ones(0), -0.0)], "k == 0.0, got -0.0",
        "the function needs this float while it is compiled, so each value has an entry of its own",
    ),
    "complex": (twice_k, [(ones(3), 2j), (ones(3), 3j)], "k == 2j, got 3j", VALUES),
    "bool": (lambda x, k: x * 2 if k else x, [(ones(3), True), (ones(3), False)], "k is True, got False", VALUES),
    "None": (lambda x, k: x * 2 if k is None else x, [(ones(3), None), (ones(3), 1)], "k is None, got 1", VALUES),
    "None, then an object": (
        lambda x, k: x * 2 if k is None else x, [(ones(3), None), (ones(3), Loud())], "k is None, got a Loud object", VALUES,
    ),
    "str": (lambda x, k: x * 2 if k == "a" else x, [(ones(3), "a"), (ones(3), "b")], "k == 'a', got 'b'", VALUES),
    "long str": (
        lambda x, k: x * 2 if k == "a" else x, [(ones(3), "a"), (ones(3), "b" * 500)],
        f"k == 'a', got '{'b' * 116}...", VALUES,
    ),
    "enum": (
        lambda x, k: x * 2 if k is Letter.A else x, [(ones(3), Letter.A), (ones(3), Letter.B)],
        "k is Letter.A, got Letter.B", VALUES,
    ),
    "dtype as argument": (
        lambda x, k: x.astype(k), [(ones(3), np.dtype("f4")), (ones(3), np.dtype("i4"))],
        "k is dtype('float32'), got dtype('int32')", VALUES,
    ),
    "class as argument": (lambda x, k: x.astype(k), [(ones(3), float), (ones(3), int)], "k is float, got int", VALUES),
    "length": (length, [([ones(3)],), ([ones(3)] * 2,)], "items is a list of length 1, got a list of length 2", LENGTH),
    "list of numbers": (
        total, [([1.5] * 30,), ([2] * 30,)], "v is a list of floats, got a list of ints",
        "each class of a list's numbers has an entry of its own: keep to one",
    ),
    "list of several classes": (
        total, [([1.5] * 30,), ([1.5] * 29 + [2],)], "v is a list of floats, got a list of others",
        "each class of a list's numbers has an entry of its own: keep to one",
    ),
    "list, then tuple": (length, [([ones(3)],), ((ones(3),),)], "items is a list of length 1, got a tuple of length 1", LENGTH),
    "list, then array": (
        length, [([ones(3)],), (ones(3),)], "items is a list of length 1, got ndarray", LENGTH,
    ),
    "named tuple": (
        lambda p: p[0] * p[1], [(Pair(ones(3), 1),), ((ones(3), 1),)], "p is a Pair of length 2, got a tuple of length 2", LENGTH,
    ),
    "keys": (
        lambda d: d["u"] * 2, [({"u": ones(3)},), ({"u": ones(3), "v": Loud()},)],
        "d is a dict with keys ['u'], got keys ['u', 'v']", "each set of keys has an entry of its own: keep to one",
    ),
    "dict, then list": (lambda d: d[0] * 2, [({0: ones(3)},), ([ones(3)],)], "d is a dict with keys [0], got list", TYPES.format("d")),
    "slice": (lambda x, s: x[s], [(ones(8), slice(0, 2)), (ones(8), slice(0, 3))], "s.stop == 2, got 3", INT),
    "slice, then int": (lambda x, s: x[s], [(ones(8), slice(0, 2)), (ones(8), 3)], "type(s) is slice, got int", TYPES.format("s")),
    "range": (lambda x, r: x * sum(r), [(ones(8), range(3)), (ones(8), range(4))], "r.stop == 3, got 4", INT),
    "attribute": (by_k, [(Scale(2), ones(3)), (Scale(2.5), ones(3))], "o.k == 2, got 2.5", TYPES.format("o.k")),
    "attribute of a dataclass": (by_k, [(Options(2), ones(3)), (Options(3), ones(3))], "o.k == 2, got 3", INT),
    "class": (by_k, [(Scale(2), ones(3)), (Steeper(2), ones(3))], "type(o) is Scale, got Steeper", TYPES.format("o")),
    "attribute hidden": (
        times, [(Scale(), ones(3)), shadowed], "o has no attribute 'w' of its own, got own attributes ['k', 'w']",
        "an attribute of the object hides the one of its class: set it on every object, or on none",
    ),
    "attribute of a class": (times, [(Scale(), ones(3)), lambda: with_class("w", 7)], "o.w == 2, got 7", INT),
    "method of a class": (
        times, [(Scale(), ones(3)), lambda: with_class("times", lambda self, x: x * 9)],
        "Scale.times is unchanged, got another definition", "the class was changed, and is compiled as it is now",
    ),
    "global": (by_global, [(ones(3),), lambda: set_global("FACTOR", 4)], "FACTOR == 3, got 4", INT),
    "global gone": (by_global, [(ones(3),), lambda: globals().pop("FACTOR") and (ones(3),)], "FACTOR cannot be read: KeyError: 'FACTOR'", ""),
    "function redefined": (
        by_helper, [(ones(3),), redefined],
        f"helper is helper (test_guard_reports.py, line {helper.__code__.co_firstlineno}), got helper (cell 3, line 3)",
        "`helper` was defined anew, and the new definition is compiled",
    ),
    "function as argument": (
        called, [(ones(3), scaled(2)), (ones(3), by_global)],
        f"g is scaled.<locals>.f (test_guard_reports.py, line {by_cell.__code__.co_firstlineno}), "
        f"got by_global (test_guard_reports.py, line {by_global.__code__.co_firstlineno})",
        "each function passed as `g` has an entry of its own: keep to a few",
    ),
    "NumPy function as argument": (
        called, [(ones(3), np.sin), (ones(3), np.cos)], "g is sin, got cos", VALUES.replace("k", "g", 1),
    ),
    "method as argument": (called, [(ones(3), Scale().times), (ones(3), np.sin)], "type(g) is method, got ufunc", TYPES.format("g")),
    "partial as argument": (
        called, [(ones(3), functools.partial(twice_k, k=2)), (ones(3), np.sin)], "type(g) is partial, got ufunc", TYPES.format("g"),
    ),
    "variable of an outer function": (by_cell, [(ones(3),), lambda: with_cell(by_cell, 2.5)], "k == 2, got 2.5", TYPES.format("k")),
    "default": (lambda x, k=2: x * k, [(ones(3),), (ones(3), 5)], "k == 2, got 5", INT),
    "question about a size": (
        lambda x: x * 2 if len(x) > 3 else x, [(ones(5),), (ones(6),), (ones(2),)], "x.shape[0] - 3 > 0 does not hold", QUESTION,
    ),
    "question about an int": (
        lambda x, k: x * 2 if k > 3 else x, [(ones(3), 4), (ones(3), 5), (ones(3), 2)], "k - 3 > 0 does not hold", QUESTION,
    ),
    "question about a float": (
        lambda x, k: x * 2 if k > 3.0 else x, [(ones(3), 4.0), (ones(3), 2.0)], "k > 3.0 does not hold", QUESTION,
    ),
    "question about a formula": (
        lambda x, k, m: x * 2 if (k + m) / -2.0 > k * abs(m - 1) + k * m else x, [(ones(3), -1.0, -2.0), (ones(3), 1.0, 2.0)],
        "(k + m) / (-2.0) > (k * abs(m - 1)) + (k * m) does not hold", QUESTION,
    ),
    "identity": (
        lambda x, y: x + y if x is y else x - y, [(ONES, ONES), (ones(3), ones(3))],
        "x is y does not hold", QUESTION,
    ),
    "type of a result": (
        lambda x, k: x * k**0.5, [(ones(3), 4.0), (ones(3), -2.0)], "type(k ** 0.5) is float, got complex", TYPES.format("k ** 0.5"),
    ),
    "two names of one list": (
        lambda x, a, b: (a.append(1), x * len(b))[1], [(ones(3), [1], [2]), (ones(3), changing, changing)],
        "a is not b does not hold", "which of these are one object is compiled in: keep it the same",
    ),
    "global over a built-in": (
        lambda x: abs(x), [(ones(3),), lambda: set_global("abs", np.sqrt)], "no global named 'abs', got one",
        "a global hides the built-in function of that name: rename the global",
    ),
    "dynamic=False, size": (
        double, [(ones(3),), (ones(4),)], "x.shape == (3,), got (4,)",
        "dynamic=False compiles each size by itself; without it, one that varies becomes symbolic",
    ),
    "dynamic=False, int": (
        twice_k, [(ones(3), 2), (ones(3), 3)], "k == 2, got 3",
        "dynamic=False compiles each int by itself; without it, one that varies becomes symbolic",
    ),
    "marked size": (
        double, [lambda: (tcompile.mark_dynamic(array := ones(5), 0, max=8), (array,))[1], (ones(9),)], "x.shape[0] <= 8, got 9",
        "these are the bounds given to mark_dynamic",
    ),
}  # fmt: skip


@pytest.fixture(autouse=True)
def _put_back():
    names, scale = dict(globals()), dict(vars(Scale))
    yield
    globals().clear()
    globals().update(names)
    for name in ("w", "times"):
        setattr(Scale, name, scale[name])
    tcompile.set_logs(all=False)


def call(compiled, args):
    try:
        return compiled(*(args() if callable(args) else args))
    except NameError:
        return None


@pytest.mark.parametrize("name", CASES)
def test_report(name, capsys):
    function, calls, report, hint = CASES[name]
    tcompile.reset()
    by_cell.__closure__[0].cell_contents = 2
    compiled = tcompile.compile(function, backend="eager", dynamic=False if "dynamic=False" in name else None)
    for args in calls[:-1]:
        call(compiled, args)
    entry = compiled.entries[0].index
    tcompile.set_logs(recompiles=True)
    with Recorder() as recorder:
        call(compiled, calls[-1])
    lines = [f"entry {entry}: {report}", *([f"  Hint: {hint}"] if hint else [])]

    assert compiled.recompiles[-1][0] == "\n".join(lines)
    number = len(calls) - 1
    head = f"{compiled.function.__qualname__}: recompile {number}, because no entry fits this call\n"
    logged = capsys.readouterr().err.partition("] ")[2]
    assert logged.startswith(head + "".join(f"    {line}\n" for line in lines)), logged

    failed = recorder.of(GuardFailed)[0]
    assert failed.entry == entry and failed.hint == hint
    assert report.startswith((failed.guard or "FACTOR") + (" does not hold" if "does not hold" in report else ""))
    assert failed.seen in report or "does not hold" in report


def test_the_nearest_entry_comes_first_and_alone_has_advice():
    def zscore(x, axis=0):
        return (x - x.mean(axis, keepdims=True)) / x.std(axis, keepdims=True)

    compiled = tcompile.compile(zscore)
    for x, axis in ((np.ones((10, 5)), 0), (np.ones((10, 5, 2)), 0), (np.ones((10, 5)), 1)):
        with np.errstate(all="ignore"):
            compiled(x, axis)
    nearest, other = compiled.recompiles[-1]
    assert nearest.startswith("entry 0: axis == 0, got 1\n  Hint: ")
    assert other == "entry 1: x.shape == (10, 5, 2), got (10, 5)"


def test_what_depends_on_a_failed_guard_is_not_asked():
    class Loud:
        @property
        def rate(self):
            raise AssertionError("it was asked")

    class Quiet:
        rate = 2.0

    def f(x, holder, n):
        return x * holder.rate + n

    compiled = tcompile.compile(f)
    compiled(np.ones(3), Quiet(), 1)
    with pytest.raises(AssertionError, match="it was asked"):  # by the function itself
        compiled(np.ones(3), Loud(), 1)
    assert len(compiled.recompiles) <= 1
