"""Reports about objects: closures, classes, containers, iterators, special methods."""

from __future__ import annotations

import enum
from collections import OrderedDict, namedtuple
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np
import pytest

from reports.programs import Table

TABLE = Table()
X = lambda: np.arange(4.0)


@TABLE.session("pytorch-197896")
def local_class_writes(jit):
    """A class made in the function has a method that changes a captured list and dict."""
    log, state = [], {"n": 0}

    def f(x):
        class Helper:
            def touch(self, y):
                log.append(y.shape)
                state["n"] += 1
                state["last"] = y.sum()
                return y

        return Helper().touch(x * 2)

    f = jit(f)
    return [f(X()), f(X()), f(np.ones((2, 2)))], log, state


@TABLE.session("pytorch-138112")
def shared_cell(jit):
    """Two functions share a variable, and one hands its new value to the other."""
    z, k = 1, 2

    def create():
        def inner(x):
            nonlocal k, z
            k = z

        return inner

    def run(inner, x):
        nonlocal z
        z += 3
        inner(x)
        return np.cos(x)

    f = jit(lambda x: run(create(), x))
    return [(f(X()), z, k) for _ in range(4)]


@TABLE.session("pytorch-191821")
def global_object_in_loop(jit):
    """A global is bound to a new object in each iteration, and a helper reads it."""
    scope = {"Box": Box}
    exec(
        "box = Box(0)\n"
        "def region():\n    return box.x + 1\n"
        "def f(x):\n    global box\n    for _ in range(2):\n        box = Box(x)\n        x = region()\n    return x",
        scope,
    )
    f = jit(scope["f"])
    return [(f(x), scope["box"].x) for x in (0, 3, X(), X())]


class Box:
    def __init__(self, x):
        self.x = x


@TABLE.session("pytorch-169253")
def list_of_class(jit):
    """A method appends to a list that its class holds."""

    class Model:
        items = []

        def forward(self, x):
            Model.items.append(x * 2)

    forward = jit(Model().forward)
    for _ in range(3):
        forward(X())
    return Model.items


@TABLE.session("pytorch-196212")
def iterator_argument(jit):
    """An iterator over a reversed list is an argument: iter of it is itself."""

    @jit
    def f(it, x):
        same = iter(it)
        assert same is it
        return x + next(same) * 10 + next(it)

    seen = []
    for _ in range(3):
        it = reversed([3, 5, 7])
        seen += [f(it, np.array(1)), list(it)]
    return seen


@TABLE.calls("pytorch-196211", lambda: (X(), [3, 5, 7]), lambda: (X(), [1.5, 2, 4, 8]))
def partly_consumed(x, values):
    """iter of a reversed iterator goes on where that one was."""
    it = reversed(values)
    first = next(it)
    return x * first + sum(iter(it)), list(it)


@TABLE.session("pytorch-130750")
def map_object(jit):
    """A map is returned: an iterator that computes when asked, and no tuple."""
    calls = []

    def double(a):
        calls.append(len(a))
        return a * 2

    @jit
    def f(xs):
        m = map(double, xs)
        return m, isinstance(m, tuple)

    m, is_tuple = f([X(), np.ones(2)])
    f([X()])
    before = list(calls)
    return before, next(m), list(calls), list(m), calls, is_tuple


@TABLE.calls("pytorch-130537", lambda: ({"b": X(), "a": X() + 1}, {"a": 2, "b": 3}), lambda: ({"z": X()}, {"z": 1.5}))
def sorted_like(first, second):
    """The values of one dict are taken in the order of the sorted keys of another one."""
    keys = sorted(first)
    source = dict(zip(second.keys(), second.values(), strict=True))
    return [first[k] * source[k] for k in keys], list(source)


@TABLE.session("pytorch-198190")
def generator_leaves(jit):
    """A generator that computes arrays is returned, run, sent to, and asked for its result."""

    @jit
    def f(x):
        def g():
            got = yield x * 1
            yield x + (got or 0)
            return 7

        return g()

    seen = []
    for sent in (None, 5, 6):
        it = f(X())
        seen += [type(it).__name__, next(it), it.send(sent)]
        try:
            next(it)
        except StopIteration as stop:
            seen.append(stop.value)
    return seen


class Foo:
    def __init__(self, x):
        self.x = x

    def __eq__(self, other):
        return self.x == other.x

    __hash__ = None


@TABLE.calls("pytorch-142055", lambda: (X(), 0, 0), lambda: (X(), 0, 1), lambda: (X(), 1, 1.0))
def not_equal(x, a, b):
    """Objects with an __eq__ of their own are compared with !=."""
    return x + 1, Foo(a) != Foo(b), Foo(a) in [Foo(b)]


class Config:
    def __init__(self, **settings):
        self.__dict__.update(settings)

    def __eq__(self, other):
        return self.__dict__ == other.__dict__


@TABLE.session("pytorch-106125")
def compared_dicts(jit):
    """Objects are compared by their __dict__, which changes."""
    f = jit(lambda x, a, b: x * 2 if a == b else x)
    a, b = Config(k=1), Config(k=1)
    seen = [f(X(), a, b), f(X(), a, b)]
    b.extra = 3
    return [*seen, f(X(), a, b), f(X(), a, Config(k=1))]


class Layers:
    def __init__(self, *layers):
        self.layers = layers

    def __len__(self):
        return len(self.layers)


@TABLE.session("pytorch-102315")
def truth_by_length(jit):
    """An object is true or false by its __len__, in `if` and in bool()."""
    f = jit(lambda x, m: (x + 1 if m else x - 1, bool(m), not m))
    layers = [Layers(), Layers(1), Layers(), Layers(1, 2)]
    return [f(X(), m) for m in layers]


class Derived(Box):
    def __init__(self, x):
        super().__init__(x)
        self.y = x * 2


@TABLE.calls("pytorch-174050", lambda: (np.ones(1),), lambda: (X(),))
def other_class(x):
    """The class of an object is replaced, and isinstance is asked."""
    obj = Box(5)
    obj.__class__ = Derived
    return x + 1, isinstance(obj, Derived), hasattr(obj, "y"), type(obj).__name__


@runtime_checkable
class Named(Protocol):
    name: str


@runtime_checkable
class Sized(Protocol):
    size: int


@TABLE.session("pytorch-195969")
def protocols(jit):
    """isinstance is asked for a union of protocols that name data."""

    class Thing:
        def __init__(self, **members):
            vars(self).update(members)

    f = jit(lambda x, thing: x * 2 if isinstance(thing, Named | Sized) else x)
    return [f(X(), t) for t in (Thing(name="n"), Thing(), Thing(size=3), Thing(), X())]


Pair = namedtuple("Pair", ["foo", "bar"])


@TABLE.session("pytorch-124402")
def tuple_kinds(jit):
    """Whether a tuple has names is asked, and one of the same type is returned."""

    @jit
    def f(values):
        if isinstance(values, tuple) and hasattr(values, "_asdict") and hasattr(values, "_fields"):
            return type(values)(*(v * 2 for v in values))
        return type(values)([v * 3 for v in values])

    return [f(v) for v in ((X(), X()), Pair(X(), np.ones(2)), (X(), X()), Pair(1, 2))]


class Two(NamedTuple):
    first: Any
    second: Any


class Subclassed(Two):
    pass


@TABLE.session("pytorch-161610")
def attribute_of_tuple(jit):
    """An attribute is set on an object of a subclass of a named tuple."""

    @jit
    def f(tup):
        tup.extra = np.array(4.0) * tup.first
        return tup

    made = [f(Subclassed(X(), np.array(1.0))) for _ in range(3)]
    return made, [m.extra for m in made]


class Kind(enum.Enum):
    A = 0
    B = 1


class Sample:
    def is_a(self):
        return self.kind == Kind.A


class SampleOfA(Sample):
    kind = Kind.A


@TABLE.session("pytorch-135573")
def enum_of_class(jit):
    """A method of a base class compares a member of an enum that a subclass holds."""
    sample = SampleOfA()
    f = jit(lambda x: x + 1 if sample.is_a() else x - 1)
    seen = [f(X()), f(X())]
    sample.kind = Kind.B
    return [*seen, f(X()), f(X())]


class FancyPair(namedtuple("FancyPair", ["a", "b"])):
    __slots__ = ()

    def __add__(self, other):
        return FancyPair(self.a + other.a, self.b + other.b)


@TABLE.calls("pytorch-175943", lambda: (X(),), lambda: (np.ones((2, 3)),))
def added_pairs(x):
    """A named tuple has an addition of its own."""
    combined = FancyPair(np.sin(x), np.cos(x)) + FancyPair(np.maximum(x, 0), np.tanh(x))
    return combined.a * 0.5 - combined.b


class Attributes(dict):
    def __getattr__(self, name):
        value = self[name]
        return value if isinstance(value, np.ndarray) else np.array(value)


@TABLE.session("pytorch-96198")
def dict_subclass(jit):
    """A subclass of dict gives its items as attributes, after a look at their type."""
    f = jit(lambda d: d.a + d.b * len(d))
    return [f(Attributes(a=X(), b=b)) for b in (2, np.ones(4), 2.5, 3)]


RESULT_TYPES = {np.float16: {np.float32: np.float32}, np.int8: {np.float32: np.float16}}


@TABLE.calls("pytorch-101979", lambda: (np.float16,), lambda: (np.int8,))
def dict_of_dicts(kind):
    """A dtype is looked up in a global dict of dicts of types."""
    return np.ones(3, dtype=RESULT_TYPES[kind][np.float32])


@TABLE.calls("pytorch-108747", lambda: ((X(), X()),), lambda: ([X(), X()],), lambda: (X(),))
def types_as_keys(x):
    """Types are the keys of a dict that is made in the function."""
    known = {tuple: 2, list: 3}
    return x[0] * known.get(type(x), 5)


@TABLE.session("pytorch-196173")
def identity_decides(jit):
    """Whether two arguments are one object decides the way, and both ways change it."""

    class State:
        def __init__(self):
            self.count, self.total = 0, np.zeros(2)

    @jit
    def f(a, b, x):
        if a is b:
            a.count += 1
            a.total = a.total + x
        else:
            a.count += 10
            b.count -= 1
        return x * a.count + b.count

    a, b = State(), State()
    return [f(*args, np.ones(2)) for args in ((a, a), (a, b), (b, b), (a, b), (a, a))], vars(a), vars(b)


@TABLE.session("pytorch-192872")
def class_across_break(jit):
    """A list of a class made in the function grows before and after a break."""

    @jit
    def f(t):
        class Holder:
            items = []

        Holder.items.append(1)
        y = t * 2
        print("between")
        Holder.items.append(2)
        return (y * 3).sum() + len(Holder.items)

    return [f(X()) for _ in range(3)]


@TABLE.session("pytorch-198189")
def moved_to_end(jit):
    """An item of an OrderedDict is moved to its end, as a cache does with what was used last."""

    @jit
    def touch(cache, x):
        cache.move_to_end("a")
        return x + cache["a"]

    seen = []
    for _ in range(3):
        cache = OrderedDict(a=1, b=2, c=3)
        seen += [touch(cache, X()), list(cache), cache.popitem(last=False)]
    return seen


@TABLE.session("pytorch-150110")
def items_returned(jit):
    """The items of a dict made in the function are returned: a view, and no tuple."""
    f = jit(lambda x: {"a": 1, "b": "2", "c": x * 3}.items())
    return [(type(items).__name__, list(items), ("a", 1) in items) for items in (f(X()), f(X()), f(np.ones(2)))]


@TABLE.session("numba-8026")
def tuples_in_dict(jit):
    """Named tuples are the values of a dict that a function changes."""

    @jit
    def f(nodes, x):
        nodes["2"] = Pair(x * 2, nodes["1"].bar)
        return nodes

    return [f({"1": Pair("1", "abc")}, X()) for _ in range(3)]


@TABLE.calls("numba-1378", lambda: (3,), lambda: (0,), lambda: (5,))
def tuple_of_lists(n):
    """A named tuple of lists is returned."""
    return tuple(Pair(list(range(n)), [42, np.ones(n)]))


@TABLE.session("numba-4016")
def list_in_tuple(jit):
    """A list in a tuple that is an argument grows."""

    @jit
    def f(a, x):
        a[0].append(x * 2)
        return len(a[0])

    given = ([0],)
    return [f(given, X()) for _ in range(3)], given


@TABLE.session("numba-7108")
def grows_while_iterated(jit):
    """A dict grows while a loop goes over its keys: an error, after the first new key."""

    @jit
    def f(d, x):
        for key in d.keys():
            d[(key[0] + 1, key[1])] = x + 1
        return d

    seen = []
    for _ in range(3):
        d = {(0, 0): 1, (1, 1): 1}
        try:
            f(d, X())
        except RuntimeError as error:
            seen.append(str(error))
        seen.append(dict(d))
    return seen


@TABLE.calls(
    "numba-6570",
    lambda: (np.array([3], "u8"), np.array([5.67], "f4")),
    lambda: (np.array([1]), np.array([2.0])),
)
def tuple_as_key(a, b):
    """A tuple of NumPy's scalars is a key, and is found again."""
    d = {(a[0], b[0]): a[0] * 2}
    return (a[0], b[0]) in d, (int(a[0]), float(b[0])) in d, d[(a[0], b[0])]


@pytest.mark.parametrize("number", TABLE.numbers)
def test_report(number):
    TABLE.check(number)
