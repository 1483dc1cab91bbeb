# ruff: noqa: E501
"""Instances, classes, methods, properties, enumerations, modules: read under guards."""

from __future__ import annotations

import dataclasses
import enum
import math
import types
import warnings
import weakref

import numpy as np
import pytest

import tcompile

from .helpers import X, broken, guards, whole


class Base:
    rate = 0.5
    table = {"a": 2}

    def __init__(self, w=2.0):
        self.w = w
        self.layers = [X, X + 1]

    def scaled(self, a):
        return a * self.w

    def hook(self, a):
        return a

    @property
    def bias(self):
        return self.w + 1

    @classmethod
    def by_rate(cls, a):
        return a * cls.rate

    @staticmethod
    def twice(a):
        return a * 2

    def __call__(self, a):
        return self.hook(self.scaled(a)) + self.bias

    def __len__(self):
        return 3

    def __getitem__(self, i):
        return self.layers[i]

    def __iter__(self):
        yield from ()

    def __add__(self, other):
        return self.w + other

    def __matmul__(self, other):
        return self.layers[0] * other


class Derived(Base):
    rate = 0.25

    def hook(self, a):
        return a - self.rate


class Plain:
    __slots__ = ("v",)

    def __init__(self, v):
        self.v = v

    def get(self):
        return self.v


class Truthy:
    def __init__(self, n):
        self.n = n

    def __bool__(self):
        return self.n > 2


@dataclasses.dataclass
class Config:
    scale: float = 2.0
    steps: int = 3
    name: str = "c"
    inner: Plain | None = None


class Mode(enum.Enum):
    FAST = 1
    SLOW = "s"


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 2


def methods(o, a):
    return o(a), o.scaled(a), o.bias, o.by_rate(a), o.twice(a), Base.twice(a), Derived.by_rate(a), Base.scaled(o, a)


def items(o, a):
    return o[0] + a, o[-1], len(o), o @ a, o + a, bool(o), o.table["a"] * a, o.layers


def slots(o, a):
    return a * o.get() + o.v


def config(o, a):
    for _ in range(o.steps):
        a = a * o.scale
    if o.name == "c" and o.inner is not None:
        a = a + o.inner.v
    return a, o


def attributes(o, a):
    return (
        getattr(o, "w") * a,
        getattr(o, "nothing", 3),
        hasattr(o, "w"),
        hasattr(o, "zz"),
        isinstance(o, Base),
        type(o) is Base,
    )


def enumerations(mode, level, a):
    if mode is Mode.FAST:
        a = a + mode.value
    if level == Level.HIGH:
        a = a * int(level)
    if level in (1, 2):
        a = a - 1
    return a, mode, Mode.SLOW.name, mode in (Mode.FAST, Mode.SLOW), mode == Mode.SLOW


@pytest.mark.parametrize("f, make_args", [
    (methods, lambda: (Base(), X)), (methods, lambda: (Derived(3.0), X)), (items, lambda: (Base(), X)),
    (slots, lambda: (Plain(2.5), X)), (config, lambda: (Config(inner=Plain(2.0)), X)), (attributes, lambda: (Base(), X)),
    (attributes, lambda: (Derived(), X)), (enumerations, lambda: (Mode.FAST, Level.HIGH, X)),
    (enumerations, lambda: (Mode.SLOW, 1, X)),
], ids=lambda v: getattr(v, "__name__", ""))  # fmt: skip
def test_captured_whole(f, make_args):
    kept = make_args()
    whole(f, lambda: kept)


def test_methods_of_compiled_classes():
    class Model:
        def __init__(self):
            self.w = 2.0

        @tcompile.compile(backend="eager", fullgraph=True)
        def forward(self, a):
            return self.inner(a) + 1

        @tcompile.compile(backend="eager", fullgraph=True)
        def inner(self, a):
            return a * self.w

    model, other = Model(), Model()
    other.w = 3.0
    np.testing.assert_array_equal(model.forward(X), X * 2 + 1)
    np.testing.assert_array_equal(other.forward(X), X * 3 + 1)
    np.testing.assert_array_equal(Model.forward(model, X), X * 2 + 1)
    assert len(Model.forward.entries) == 1 and Model.forward.graphs[0].op_count == 2


def test_only_what_is_used_is_guarded():
    compiled = whole(lambda o, a: o.scaled(a), lambda: (Base(2.0), X))
    assert not [text for text in guards(compiled) if "layers" in text or "rate" in text]


def changes():
    """Functions, and changes after which they give something else."""

    def method(o, a):
        return o.hook(a) * o.w

    class Local(Base):
        pass

    def set_class_attribute():
        Local.hook = lambda self, a: a * 100

    def delete_class_attribute():
        del Local.hook

    o = Local(2.0)
    yield method, (o, X), [
        lambda: setattr(o, "w", 3.0), lambda: setattr(o, "w", 3), lambda: setattr(o, "w", X), set_class_attribute,
        lambda: setattr(o, "hook", lambda a: a - 1), lambda: delattr(o, "hook"), delete_class_attribute,
        lambda: setattr(o, "__class__", Derived),
    ]  # fmt: skip

    class Settings:
        rate = 2
        nested = {"k": [1, 2]}

    def of_class(a):
        return a * Settings.rate + Settings.nested["k"][0]

    yield of_class, (X,), [
        lambda: setattr(Settings, "rate", 3), lambda: setattr(Settings, "rate", 2.5), lambda: Settings.nested.update(k=[5]),
        lambda: Settings.nested["k"].__setitem__(0, 7), lambda: setattr(Settings, "rate", X),
    ]  # fmt: skip

    class Late:
        pass

    late = Late()

    def absent(o, a):
        return getattr(o, "extra", 1) * a if not hasattr(Late, "flag") else a

    yield absent, (late, X), [
        lambda: setattr(late, "extra", 5), lambda: setattr(Late, "flag", 1), lambda: delattr(Late, "flag"),
        lambda: setattr(Late, "extra", 2), lambda: delattr(late, "extra"),
    ]  # fmt: skip

    class WithProperty:
        v = 3

        @property
        def p(self):
            return self.v

    held = WithProperty()

    def of_property(o, a):
        return a * o.p

    yield of_property, (held, X), [
        lambda: setattr(held, "v", 4), lambda: setattr(WithProperty, "p", property(lambda self: self.v * 10)),
        lambda: setattr(WithProperty, "p", 9),
    ]  # fmt: skip

    module = types.ModuleType("settings")
    module.rate = 2

    def of_module(a):
        return a * module.rate

    yield of_module, (X,), [lambda: setattr(module, "rate", 3), lambda: setattr(module, "rate", 1.5)]


@pytest.mark.parametrize("f, args, steps", list(changes()), ids=lambda v: getattr(v, "__name__", ""))
def test_changes_are_seen(f, args, steps):
    compiled = tcompile.compile(f, backend="eager", fullgraph=True)
    np.testing.assert_array_equal(compiled(*args), f(*args))
    for step in steps:
        step()
        for _ in range(2):
            np.testing.assert_array_equal(compiled(*args), f(*args))


def test_a_subclass_decides_operators_first():
    class Left:
        def __add__(self, other):
            return "left"

    class Right(Left):
        def __radd__(self, other):
            return "right"

    compiled = tcompile.compile(lambda p, q, a: (p + q, a * 2), backend="eager")
    assert compiled(Left(), Right(), X)[0] == "right"
    assert compiled(Left(), 1, X)[0] == "left"


def test_in_place_methods_come_first():
    class Sum:
        def __init__(self):
            self.v = 1

        def __add__(self, other):
            return 10

        def __iadd__(self, other):
            return other * self.v

    def f(o, a):
        o += a
        return o

    whole(f, lambda: (Sum(), X))


def test_own_look_up_breaks():
    def f(o, a):
        return o.v * a

    broken(
        f, lambda: (type("Odd", (), {"__getattribute__": lambda self, name: 3})(), X), "unsupported-object", "o.v * a"
    )


def test_objects_pass_through():
    thing = object()
    compiled = whole(lambda o, a: (o, a + 1, [o]), lambda: (thing, X))
    assert compiled(thing, X)[2][0] is thing


def test_identity():
    def f(o, p, a, b, m=None):
        return (o is p, o is not p, o is None, m is None, a is b, a is None, None is a, (a + 1) is a, [] == [], type(a) is np.ndarray,
                math is math, o is Ellipsis)  # fmt: skip

    o, p = Base(), Base()
    whole(f, lambda: (o, p, X, X))
    compiled = tcompile.compile(f, backend="eager", fullgraph=True)
    for args in [(o, o, X, X), (o, p, X, X), (o, o, X, X + 0), (None, o, X, None)]:
        assert compiled(*args) == f(*args)


def test_identity_of_equal_values_is_left_to_python():
    for f, args in [(lambda a, b: a is b, (1000, 1000)), (lambda a, b: a is b, ("ab" * 3, "ab" * 3))]:
        compiled = tcompile.compile(lambda a, b, v, f=f: (f(a, b), v + 1), backend="eager")
        compiled(*args, X)
        assert compiled.breaks[-1].reason.id == "object-identity"


def test_class_statements_break():
    def f(a):
        class Inner:
            pass

        return a * 2

    broken(f, lambda: (X,), "unsupported-instruction", "class Inner")


def test_array_classes():
    def f(a, s):
        return (
            isinstance(a, np.ndarray),
            isinstance(s, np.float32),
            isinstance(s, (int, float)),
            type(s).__name__,
            a.dtype == s.dtype,
        )

    whole(f, lambda: (X, np.float32(2)))
    whole(f, lambda: (X, np.float64(2)))


def test_reports_run_no_code_of_the_objects_they_name():
    asked = []

    class Loud:
        def __repr__(self):
            asked.append("repr")
            return "Loud()"

        @property
        def shape(self):
            asked.append("shape")
            return (3, 4)

    class Choice(enum.Enum):
        ONE = 1

        def __repr__(self):
            asked.append("enum")
            return "ONE"

    @tcompile.compile(backend="eager")
    def f(v):
        return v is Choice.ONE, [v]

    with tcompile.config.patch(stress_capture=True):
        for v in (X, Loud(), [Loud()], (1, Loud()), {"a": Loud()}, Choice.ONE, 1, 10**5000):
            assert f(v)[0] is (v is Choice.ONE)
    assert len(f.recompiles) > 3 and not asked
    assert tcompile.compile(lambda a, d: a + d[int], backend="eager", fullgraph=True)(X, {int: 2})[0, 0] == X[0, 0] + 2


class Loud(type):
    """A metaclass that counts what is asked of its classes, and answers differently each time."""

    asked = 0

    def _answer(cls, *args):
        Loud.asked += 1
        return Loud.asked % 2

    __hash__ = __add__ = _answer

    def __bool__(cls):
        return bool(cls._answer())

    def __eq__(cls, other):
        return bool(cls._answer())

    def __contains__(cls, other):
        return bool(cls._answer())

    def __subclasscheck__(cls, other):
        return bool(cls._answer())

    def __getattr__(cls, name):
        return cls._answer()

    def __repr__(cls):
        return f"Loud {cls._answer()}"


class LoudClass(metaclass=Loud):
    pass


class Member(enum.Enum):
    ONE = 1

    def __eq__(self, other):
        return bool(LoudClass._answer())

    def __hash__(self):
        return LoudClass._answer() and 1

    def __bool__(self):
        return bool(LoudClass._answer())

    def __str__(self):
        return f"one {LoudClass._answer()}"

    def __index__(self):
        return LoudClass._answer()

    @property
    def more(self):
        return LoudClass._answer()


@pytest.mark.parametrize(
    "f",
    [
        lambda: bool(LoudClass), lambda: not LoudClass, lambda: 1 if LoudClass else 2, lambda: LoudClass == 3,
        lambda: 3 == LoudClass, lambda: hash(LoudClass), lambda: repr(LoudClass), lambda: f"{LoudClass}",
        lambda: str(LoudClass), lambda: 3 in LoudClass, lambda: LoudClass + 1, lambda: issubclass(int, LoudClass),
        lambda: isinstance(3, (str, (LoudClass,))), lambda: isinstance(3, str | LoudClass), lambda: {LoudClass: 1},
        lambda: LoudClass in (1, 2), lambda: (LoudClass,) == (3,), lambda: hasattr(LoudClass, "z"),
        lambda: bool(Member.ONE), lambda: Member.ONE == 1, lambda: str(Member.ONE), lambda: f"{Member.ONE}",
        lambda: [1, 2][Member.ONE], lambda: range(Member.ONE), lambda: "a" * Member.ONE, lambda: {Member.ONE: 1},
        lambda: frozenset([Member.ONE]), lambda: Member.ONE in (1, 2), lambda: Member.ONE.more, lambda: Member.ONE.value,
        lambda: hasattr(Member.ONE, "more"), lambda: Member.ONE is Member.ONE,
    ],
)  # fmt: skip
def test_operators_of_constants_that_answer_in_python(f):
    def outcomes(call):
        Loud.asked = 0
        found = []
        for _ in range(3):
            found.append((str(call()), Loud.asked))
        return found

    with tcompile.config.patch(stress_capture=True):
        assert outcomes(tcompile.compile(f, backend="eager")) == outcomes(f)


def test_match_args_that_are_no_tuple():
    class Point:
        __match_args__ = ["x"]
        x = 2

    def f(p):
        match p:
            case Point(x):
                return x

    with tcompile.config.patch(stress_capture=True), pytest.raises(TypeError, match="__match_args__ must be a tuple"):
        tcompile.compile(f, backend="eager")(Point())


def test_objects_that_claim_another_class():
    asked = []

    class Liar:
        @property
        def __class__(self):
            asked.append(1)
            return np.float64

    def gone():
        return weakref.proxy(Base())

    def f(a, o):
        return a + 1, o

    made = tcompile.compile(f, backend="eager", fullgraph=True)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for o in (Liar(), gone(), Liar(), gone()):
            np.testing.assert_equal(made(X, o)[0], X + 1)
            assert type(tcompile.compile(lambda o: [o, o], backend="eager")(o)) is list
    assert not asked


class Bits(enum.IntFlag):
    R = 4
    W = 2


class Loud(enum.IntEnum):
    ONE = 1

    def __add__(self, other):
        TOLD.append(other)
        return int(self) + other


TOLD: list = []


def test_operators_of_enumerations():
    def f(a, k):
        return Bits.R | k, k & Bits.R, Bits.R == k, Level.HIGH + k, Bits.R ^ Bits.W, a + k

    compiled = tcompile.compile(f, backend="eager", fullgraph=True)
    for k in (1, 2, 3, 4, 4):
        got, want = compiled(X, k)[:5], f(X, k)[:5]
        assert got == want and [type(v) for v in got] == [type(v) for v in want]

    def g(a):
        return Loud.ONE + 1, a + 1

    compiled = tcompile.compile(g, backend="eager")
    for count in range(1, 4):
        assert compiled(X)[0] == 2 and len(TOLD) == count


def test_built_in_methods_of_fixed_objects_are_made_by_each_read():
    def f(x):
        reduce = np.maximum.reduce
        return [reduce, reduce, np.maximum.reduce, (5).__add__, dict.fromkeys, object.__new__], reduce(x)

    def same(call):
        found = [*call(X)[0], *call(X)[0]]
        return [[a is b for a in found] for b in found]

    compiled = tcompile.compile(f, fullgraph=True)
    assert same(compiled) == same(f)
    assert np.array_equal(compiled(X)[1], X.max(axis=0))
