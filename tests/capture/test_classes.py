# ruff: noqa: E501
"""Instances made, changed and compared inside the function; attributes stored by all of Python's rules."""

from __future__ import annotations

import abc
import dataclasses
import enum
import functools
import re
from typing import Any

import numpy as np
import pytest
from differential import check

import tcompile

from .helpers import X, whole, x


class Vector:
    """A class with most of the methods that Python calls by itself."""

    made = 0

    def __init__(self, *parts, scale=1.0):
        self.parts = list(parts)
        self.scale = scale

    @property
    def first(self):
        return self.parts[0] * self.scale

    @first.setter
    def first(self, value):
        self.parts[0] = value

    @first.deleter
    def first(self):
        del self.parts[0]

    @classmethod
    def of(cls, *parts):
        return cls(*parts)

    @staticmethod
    def zero():
        return Vector(0.0)

    def __add__(self, other):
        if isinstance(other, Vector):
            return type(self)(*[p + q for p, q in zip(self.parts, other.parts)])
        if isinstance(other, int):
            return NotImplemented
        return Vector(*[p + other for p in self.parts])

    def __radd__(self, other):
        return Vector(other, *self.parts)

    def __iadd__(self, other):
        self.parts.append(other)
        return self

    def __eq__(self, other):
        return isinstance(other, Vector) and self.scale == other.scale

    __hash__ = None

    def __lt__(self, other):
        return self.scale < other.scale

    def __contains__(self, item):
        return item == self.scale

    def __iter__(self):
        return iter(self.parts)

    def __len__(self):
        return len(self.parts)

    def __getitem__(self, i):
        return self.parts[i]

    def __setitem__(self, i, v):
        self.parts[i] = v

    def __delitem__(self, i):
        del self.parts[i]

    def __call__(self, a):
        return a * self.scale

    def __bool__(self):
        return self.scale > 0

    def __neg__(self):
        return Vector(*[-p for p in self.parts])


class Deep(Vector):
    def __init__(self, *parts, **more):
        super().__init__(*parts, **more)
        self.depth = 2

    @property
    def first(self):
        return super().first * 10

    def __call__(self, a):
        return super().__call__(a) + self.depth

    @classmethod
    def of(cls, *parts):
        return super().of(*parts, 7)

    def __add__(self, other):
        return super().__add__(other)


class Slotted:
    __slots__ = ("__dict__", "__private", "v")

    def __init__(self, v):
        self.v = v
        self.__private = v + 1
        self.free = 3

    def total(self):
        return self.v + self.__private + self.free


class Typed:
    """A descriptor."""

    def __init__(self, name):
        self.name = name

    def __get__(self, owner, cls):
        return self if owner is None else owner.__dict__[self.name] if False else getattr(owner, self.name)

    def __set__(self, owner, value):
        setattr(owner, self.name, value * 2)

    def __delete__(self, owner):
        delattr(owner, self.name)


class Described:
    v = Typed("_v")

    def __init__(self, v):
        self.v = v

    @functools.cached_property
    def costly(self):
        self.count = getattr(self, "count", 0) + 1
        return self.v + self.count

    def __getattr__(self, name):
        if name.startswith("dyn"):
            return len(name)
        return 0


class Guarded:
    """Its own __setattr__."""

    def __init__(self):
        self.names = []
        self.x = 1

    def __setattr__(self, name, value):
        object.__setattr__(self, name, value)
        self.names.append(name)

    def __delattr__(self, name):
        super().__delattr__(name)
        self.names.append("-" + name)


class Singleton:
    def __new__(cls, n):
        made = super().__new__(cls)
        made.n = n
        return made

    def __init__(self, n):
        self.n = self.n + n


class Countdown:
    def __init__(self, n):
        self.n = n

    def __iter__(self):
        return self

    def __next__(self):
        if self.n <= 0:
            raise StopIteration
        self.n -= 1
        return self.n


@dataclasses.dataclass
class Config:
    scale: Any = 2.0
    steps: int = 3
    names: list = dataclasses.field(default_factory=list)

    def __post_init__(self):
        self.twice = self.scale * 2


@dataclasses.dataclass(frozen=True, slots=True, order=True)
class Fixed:
    a: int
    b: float = 0.5


class Narrow:
    __slots__ = ("a",)


class Base(abc.ABC):
    @abc.abstractmethod
    def run(self, a): ...


class Concrete(Base):
    def run(self, a):
        return a + 1


class Mode(enum.Enum):
    FAST = 1
    SLOW = "s"


def makes(a):
    v, w = Vector(a, 2.0), Vector.of(a + 1, 3.0)
    v.first = a * 3
    v.extra = w
    del w.first
    v[1] = 5.0
    v.scale *= 2
    return v.first, v.extra.parts, w[0], len(v), v(a), -v == v, bool(v), v.zero().parts, list(v), v.extra is w, v is w


def operators(a):
    v, w = Vector(a, scale=2), Vector(a + 1, 1.0)
    u = v
    v += 3
    total = 1 + v
    p, q = v + w, v + 2.0
    return (
        u is v,
        v.parts,
        total.parts,
        p.parts,
        q.parts,
        v == w,
        v != w,
        v == 3,
        v < w,
        w > v,
        2 in v,
        5 in v,
        2 not in v,
        v is not None,
    )


def inherits(a):
    d, e = Deep(a, scale=3.0), Deep.of(a)
    s = d + e
    return d.first, d(a), e.parts, s.parts, type(s) is Deep, isinstance(s, Vector), s.depth, d.made, s.__class__ is Deep


def slots(a):
    s = Slotted(a)
    s.v = s.v + 1
    s.other = s.total()
    return s.total(), s.other


def described(a):
    d = Described(a)
    d.v = a + 1
    x, y = d.costly, d.costly
    d._v = a
    del d._v
    return x, y, d.count, d.dynamic, d.dynamo, d.other, d.__dict__ is None if False else 0


def own_setattr(a):
    g = Guarded()
    g.y = a
    g.y = 2
    del g.x
    return g.names, g.y, hasattr(g, "y")


def own_new(a):
    return Singleton(a).n


def counts_down(a):
    total = a
    for i in Countdown(4):
        total = total + i
    return total, list(Countdown(2)), sum(Countdown(3)), 1 in Countdown(3)


def dataclass(a):
    c, d = Config(a), Config(3.0, names=[1])
    c.names.append(d.names)
    return c.names, c.twice, d.twice, d == Config(3.0, names=[1]), d == c.steps, c.steps


def fixed(a):
    p, q = Fixed(1), Fixed(1, 0.75)
    return p.a * a, p == q, p < q, p != Fixed(1), p is q


def abstract(a):
    return Concrete().run(a), isinstance(Concrete(), Base) if False else 0


def members(a):
    return Mode(1) is Mode.FAST, Mode("s"), Mode(Mode.SLOW).name, a + Mode(1).value


@pytest.mark.parametrize("f", [
    makes, operators, inherits, slots, described, own_setattr, own_new, counts_down, dataclass, fixed, abstract, members,
], ids=lambda f: f.__name__)  # fmt: skip
def test_inside(f):
    whole(f)


def test_new_objects_leave():
    def f(a, v):
        c = Config(a)
        d = Deep(a + 1, c)
        c.owner = d
        v.parts = [d, c, v]
        g = Guarded()
        return c, [d, c], Slotted(a), Fixed(3), Described(2), g

    compiled = tcompile.compile(f, backend="eager", fullgraph=True)
    v = Vector()
    for _ in range(2):
        c, (d, also), slotted, fixed, described, guarded = compiled(X, v)
        assert (
            type(c) is Config and also is c and c.owner is d and d.parts[1] is c and v.parts[0] is d and v.parts[2] is v
        )
        assert list(vars(c)) == list(vars(f(X, Vector())[0])) and c.scale is X and c.names == []
        np.testing.assert_array_equal(d.parts[0], X + 1)
        np.testing.assert_array_equal(slotted.total(), X * 2 + 4)
        assert fixed == Fixed(3) and vars(described) == {"_v": 4} and vars(guarded) == vars(Guarded())


def stores(o, a):
    o.w = a + 1
    o.n = o.n + 1
    o.items.append(o.n)
    o.late = o.w * 2
    if o.n > 2:
        del o.late
    o.first = 5
    return o.w + o.n


class Holder:
    def __init__(self):
        self.n = 0
        self.items = []
        self.w = None

    @property
    def first(self):
        return self.items[0]

    @first.setter
    def first(self, value):
        self.items[0] = value


def test_attributes_of_arguments_are_stored():
    compiled = tcompile.compile(stores, backend="eager", fullgraph=True)
    got, want = Holder(), Holder()
    for _ in range(4):
        np.testing.assert_array_equal(compiled(got, X), stores(want, X))
        assert list(vars(got)) == list(vars(want))
        assert (got.n, got.items) == (want.n, want.items)
        np.testing.assert_array_equal(got.w, want.w)


def test_slots_and_own_setattr_of_arguments():
    def f(s, g, d, a):
        s.v = a
        s._Slotted__private = 1
        s.extra = 2
        del s.free
        g.z = a
        del g.x
        d.v = a
        return d.costly, s.v

    compiled = tcompile.compile(f, backend="eager", fullgraph=True)
    for _ in range(2):
        got, want = [Slotted(1), Guarded(), Described(1)], [Slotted(1), Guarded(), Described(1)]
        compiled(*got, X), f(*want, X)
        for a, b in zip(got, want):
            assert list(vars(a)) == list(vars(b))
        assert got[0].v is X and got[0].extra == 2 and not hasattr(got[0], "free") and got[1].names == want[1].names
        np.testing.assert_array_equal(got[2].__dict__["costly"], want[2].__dict__["costly"])


def test_one_object_under_two_names():
    def f(p, q, a):
        p.n = 1
        q.n = q.n + 1
        return p.n, a + 1

    compiled = tcompile.compile(f, backend="eager", fullgraph=True)
    for same in (True, False, True):
        p = Holder()
        q = p if same else Holder()
        assert compiled(p, q, X)[0] == (2 if same else 1)
        assert q.n == (2 if same else 1)


@pytest.mark.parametrize("outside", [False, True])
def test_the_dict_of_an_object_is_no_other_dict(outside):
    def f(o, d, a):
        o.n = 5
        return d["n"], a + 1

    compiled = tcompile.compile(f, backend="eager")
    o = Holder()
    for own in (outside, not outside, outside):
        o.n = 0
        assert compiled(o, vars(o) if own else {"n": 0}, X)[0] == (5 if own else 0)


def test_class_changes_are_seen():
    class Local:
        def __init__(self, v):
            self.v = v

        def __add__(self, other):
            return self.v + other

    def f(o, a):
        o.w = 3
        return Local(a).v, Local(a) + 1, getattr(o, "w"), o == 1

    o = Local(0)
    compiled = tcompile.compile(f, backend="eager", fullgraph=True)
    changes = [
        lambda: setattr(Local, "__init__", lambda self, v: setattr(self, "v", v * 2)),
        lambda: setattr(Local, "__add__", lambda self, other: "new"),
        lambda: setattr(Local, "w", property(lambda self: "p", lambda self, v: None)),
        lambda: setattr(Local, "__eq__", lambda self, other: "equal"),
        lambda: setattr(Local, "__setattr__", lambda self, n, v: object.__setattr__(self, n, 8)),
        lambda: delattr(Local, "w"),
        lambda: setattr(Local, "__new__", lambda cls, v: Config(v) if False else object.__new__(cls)),
    ]
    for change in [lambda: None, *changes]:
        change()
        for _ in range(2):
            for got, want in zip(compiled(o, X), f(o, X), strict=True):
                np.testing.assert_array_equal(got, want)


def test_super_changes_are_seen():
    class A:
        def m(self, a):
            return a

    class B(A):
        def m(self, a):
            return super().m(a) + 1

    compiled = tcompile.compile(lambda o, a: o.m(a), backend="eager", fullgraph=True)
    np.testing.assert_array_equal(compiled(B(), X), X + 1)
    A.m = lambda self, a: a * 5
    np.testing.assert_array_equal(compiled(B(), X), X * 5 + 1)

    class C(A):
        def m(self, a):
            return a - 1

    B.__bases__ = (C,)
    np.testing.assert_array_equal(compiled(B(), X), X)


class Odd(int):
    def __radd__(self, other):
        return "odd"

    def __eq__(self, other):
        return "equal"

    __hash__ = int.__hash__


class Silent:
    def __eq__(self, other):
        return NotImplemented

    def __radd__(self, other):
        return "radd", other

    __hash__ = None


class Loud(Silent):
    def __eq__(self, other):
        return "loud"

    def __radd__(self, other):
        return "loud radd", other


@pytest.mark.parametrize("left, right", [
    (lambda: 1, lambda: Odd(2)), (lambda: 1.5, lambda: Odd(2)), (lambda: Odd(1), lambda: 2), (lambda: [1], Silent), (Silent, Silent),
    (Silent, Loud), (Loud, Silent), (lambda: "a", Silent), (Silent, lambda: None), (lambda: {"a": 1}, Loud), (lambda: X, Loud),
    (lambda: (1,), Silent), (Vector, Loud), (Vector, lambda: 3), (lambda: np.float64(1), Silent),
])  # fmt: skip
def test_the_order_of_operators(left, right):
    def f(p, q, a):
        r = p
        found = []
        for name in ("add", "iadd", "eq", "ne"):
            try_one = getattr(TRIES, name)
            found.append(try_one(p, q))
        return found, p is r, a + 1

    made = [(left(), right()), (left(), right())]

    def run(function, pair):
        try:
            return function(*pair, X)
        except Exception as error:
            return type(error), str(error)

    want = run(f, made[0])
    compiled = tcompile.compile(f, backend="eager")
    got = run(compiled, made[1])
    assert re.sub("0x[0-9a-f]+", "", repr(got)) == re.sub("0x[0-9a-f]+", "", repr(want))


class TRIES:
    @staticmethod
    def add(p, q):
        return p + q

    @staticmethod
    def iadd(p, q):
        p += q
        return p

    @staticmethod
    def eq(p, q):
        return p == q

    @staticmethod
    def ne(p, q):
        return p != q


@pytest.mark.parametrize("make", [
    lambda: type("M", (type,), {"__call__": lambda cls: 5})("C", (), {}), lambda: type("D", (), {"__del__": lambda self: None}),
    lambda: type("I", (int,), {}), lambda: type("S", (), {"__init__": 3}), lambda: Base,
])  # fmt: skip
def test_other_classes_are_left_to_python(make):
    cls = make()

    def f(a):
        made = cls()
        return type(made).__name__, a + 1

    compiled = tcompile.compile(f, backend="eager")
    try:
        want = f(X)[0]
    except TypeError as error:
        with pytest.raises(TypeError, match=str(error)[:20].replace("(", r"\(")):
            compiled(X)
    else:
        assert compiled(X)[0] == want
        assert compiled.breaks


def test_errors_of_attributes_are_python_s():
    def no_setter(a):
        Deep(a).first = 1

    def frozen(a):
        Fixed(1).a = 2

    def missing(a):
        return Config(a).nothing

    def deleted(a):
        c = Config(a)
        del c.scale
        del c.scale

    def no_dict(a):
        Narrow().other = 3

    for f in (no_setter, frozen, missing, deleted, no_dict):
        with pytest.raises(AttributeError) as want:
            f(X)
        with pytest.raises(AttributeError) as got:
            tcompile.compile(f, backend="eager")(X)
        assert str(got.value) == str(want.value)


class Bag:
    __slots__ = ("__dict__", "slot")

    def __init__(self, **more):
        self.slot = 1
        self.__dict__.update(more)

    @property
    def p(self):
        return 1


def bags(a):
    b = Bag(x=a, y=2)
    d = b.__dict__
    d["z"] = 3
    b.w = a + 1
    del d["y"]
    return (
        list(d), d["w"], "z" in d, len(d), d.get("q", 5), d.pop("z"), [*vars(b).items()],
        dict(d), b.__dict__.copy(), sorted(vars(b)), b, bool(vars(Bag())), next(iter(d.values())), d.setdefault("n", 1), b.n,
    )  # fmt: skip


def test_the_dict_of_an_instance():
    def f(a):
        *found, b, empty, first, n, also = bags(a)
        return found, vars(b), empty, first, n, also

    whole(f)


def test_the_dict_of_an_argument():
    def f(o, a):
        vars(o)["late"] = a
        n = o.__dict__.get("n", 0)
        o.__dict__["n"] = n + 1
        return list(vars(o)), o.late + n, "gone" in o.__dict__

    compiled = tcompile.compile(f, backend="eager", fullgraph=True)
    got, want = Holder(), Holder()
    for step in range(4):
        if step == 2:
            got.gone = want.gone = 1
        a, b = compiled(got, X), f(want, X)
        assert a[0] == b[0] and a[2] == b[2] and list(vars(got)) == list(vars(want)) and got.n == want.n
        np.testing.assert_array_equal(a[1], b[1])


def test_the_dict_past_descriptors_is_left_to_python():
    def f(a):
        b = Bag()
        b.__dict__["p"] = 5
        b.__dict__["slot"] = 6
        return b.p, b.slot, vars(b), a + 1

    assert tcompile.compile(f, backend="eager")(X)[:3] == (1, 1, {"p": 5, "slot": 6})


def test_a_class_method_is_a_new_object_at_each_access():
    def f(x):
        first = Vector.of
        return [Vector.of, first, first], Vector.of(x).parts[0] + 1

    for compiled in (f, *check(f, x)):
        (a, b, c), _ = compiled(X.copy())
        assert a == b and a is not b and b is c


class Asked:
    """Counts the reads of a class attribute."""

    reads = 0

    def __get__(self, holder, cls=None):
        Asked.reads += 1
        return f"{holder is None} {cls.__qualname__} {Asked.reads}"


class AskedMeta(type):
    """Answers for its classes."""

    __name__ = __doc__ = property(lambda cls: Asked().__get__(None, cls))


class AskedBefore(type):
    """Is asked first."""

    def __getattribute__(cls, name):
        Asked.reads += name == "__doc__"
        return super().__getattribute__(name)


def classes_that_are_asked():
    class Documented:
        __doc__ = Asked()

    class Derived(Documented):
        pass

    class Placed:
        __module__ = property(lambda self: "somewhere")

    return Documented, Derived, AskedMeta("OfMeta", (), {}), AskedBefore("Before", (), {"__doc__": "text"}), Placed


@pytest.mark.parametrize("cls", classes_that_are_asked(), ids=lambda cls: type.__dict__["__name__"].__get__(cls))
def test_texts_of_a_class_that_python_code_makes(cls):
    """They are read where the function reads them, as often as it does."""
    found = []
    for run in (f := lambda: (cls.__doc__, cls.__name__, cls.__module__), tcompile.compile(f, backend="eager")):
        Asked.reads = 0
        found.append([(*map(str, run()), Asked.reads) for _ in range(3)])
    assert found[0] == found[1]


def test_text_of_a_class_that_reads_its_own_cell():
    """Since CPython 3.15 dataclasses make theirs when it is read."""

    def documented(cls):
        cls.__doc__ = Reads()
        return cls

    class Reads:
        def __get__(self, holder, cls=None):
            return cls.name(None)

    def f():
        @documented
        class C:
            def name(self):
                return C.__name__

        return C.__doc__

    compiled = tcompile.compile(f, backend="eager")
    assert [compiled() for _ in range(3)] == ["C"] * 3
