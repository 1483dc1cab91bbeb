"""Reports about what compiled code relies on: globals, closures, defaults, attributes, sizes, other calls."""

from __future__ import annotations

import contextlib
import threading
from collections import OrderedDict

import numpy as np
import pytest

import tcompile
from reports.programs import Table

TABLE = Table()
X = lambda: np.arange(4.0)


@TABLE.session("numba-938")
def closure_counter(jit):
    """A closure variable is the variable of a loop around the calls."""

    def run():
        @jit
        def f(a):
            return n * a

        for n in range(5):
            yield f(n), f(np.arange(3.0))

    return list(run())


TABLES = {"a": np.array([86]), "b": np.array([100]), "c": np.array([150])}


@TABLE.calls("numba-1850", *[lambda x=x: (x,) for x in (86, 100, 150, 7)])
def kind_of(x):
    """A number is looked for in several global arrays, one after the other."""
    for place, name in enumerate("abc"):
        for a in TABLES[name]:
            if x == a:
                return place
    return -1


@TABLE.session("numba-7249")
def global_array(jit):
    """An array that a function reads from outside changes between the calls of another function."""
    a = np.array([10], np.float32)
    access = jit(lambda: a[0])
    wrapper = jit(lambda fun: fun() + 1)
    seen = [wrapper(access), wrapper(access)]
    a[0] = 20
    return [*seen, wrapper(access), access()]


@TABLE.session("numba-6896")
def made_by_function(jit):
    """Closures are made by a function inside of the function that calls them."""

    @jit
    def f(record):
        def shorthands():
            return (lambda: record["a"]), (lambda: record["b"])

        a, b = shorthands()
        record["b"] += a()
        return b()

    return [f({"a": np.ones(2), "b": np.arange(2.0)}) for _ in range(3)], f({"a": 1, "b": 2})


@TABLE.session("pytorch-108898")
def other_global_function(jit):
    """A function that is called by its global name is replaced by another one."""
    scope = {"np": np, "helper": lambda x: np.sin(x) + 20}
    exec("def f(x):\n    y = helper(x)\n    return y + x", scope)
    f = jit(scope["f"])
    seen = [f(X()), f(X())]
    scope["helper"] = lambda x: np.cos(x)
    return [*seen, f(X()), f(X())]


@TABLE.session("pytorch-178365")
def other_defaults(jit):
    """Functions of one code differ in their default arguments only."""

    def make(k):
        def offset(x, by=k):
            return x + by

        return offset

    f = jit(lambda g, x: g(x) * 2)
    seen = [f(make(k), X()) for k in (1, 2, 3, 2)]
    g = make(5)
    seen += [f(g, X())]
    g.__defaults__ = (7,)
    return [*seen, f(g, X())]


@TABLE.session("pytorch-197811")
def captured_operator(jit):
    """Functions of one code capture different methods of arrays."""

    def make(op):
        return jit(lambda x, y: op(x, y))

    add, mul = make(np.ndarray.__add__), make(np.ndarray.__mul__)
    return [f(np.array(6.0), np.array([3.0])) for f in (add, mul, add, mul)]


@TABLE.calls("pytorch-97688", lambda: (X(), 3), lambda: (X(), 3.5), lambda: (X(), 4))
def named_inf(x, inf):
    """A parameter is called like something that a compiler may use itself."""
    nan, v0, o0, copyto = inf, 1, 2, 3
    return x + inf * nan + v0 + o0 + copyto


class Box:
    def __init__(self, x):
        self.x = x


@TABLE.session("pytorch-119715")
def class_becomes_number(jit):
    """The global name of a class becomes a number."""
    scope = {"T": Box}
    exec("def f(x):\n    o = T(5)\n    return o.x, x + 1", scope)
    f = jit(scope["f"])
    seen = [f(X()), f(X())]
    scope["T"] = 5
    try:
        seen.append(f(X()))
    except TypeError as error:
        seen.append(str(error))
    return seen


@TABLE.session("pytorch-176851")
def class_attribute(jit):
    """An attribute of a class changes between calls."""

    class Model:
        scale = 2.0

        def forward(self, x):
            return x * self.scale + Model.scale

    forward = jit(Model().forward)
    seen = [forward(X()), forward(X())]
    Model.scale = 3.0
    return [*seen, forward(X()), forward(X())]


@TABLE.session("pytorch-98928")
def instance_attribute(jit):
    """An attribute of an object changes between calls: a flag, then a function."""

    class Model:
        def __init__(self):
            self.training, self.activation = True, np.tanh

        @jit
        def forward(self, x):
            return self.activation(x) * (2 if self.training else 1)

    model = Model()
    seen = [model.forward(X()), model.forward(X())]
    model.training = False
    seen += [model.forward(X())]
    model.activation = np.abs
    return [*seen, model.forward(X())]


@TABLE.session("pytorch-124717")
def flag_in_manager(jit):
    """A context manager outside sets a flag of an object that a compiled method reads."""

    class Model:
        disabled = False

        @jit
        def forward(self, x):
            out = x * x
            return out if self.disabled else out + 1

    @contextlib.contextmanager
    def disable(model):
        model.disabled = True
        try:
            yield
        finally:
            model.disabled = False

    model = Model()
    seen = [model.forward(X())]
    with disable(model):
        seen.append(model.forward(X()))
    return [*seen, model.forward(X())]


@TABLE.session("pytorch-124357")
def value_of_object(jit):
    """A number that an object holds is set anew before each call."""

    class Toy:
        def __init__(self):
            self.value, self.cache = -1, np.ones((2, 3))

        def forward(self):
            return self.cache + self.value

    toy = Toy()
    forward = jit(toy.forward)
    seen = []
    for value in (6, 8, 10, 10.5):
        toy.value = value
        seen.append(forward())
    return seen


@TABLE.session("pytorch-197860")
def other_code(jit):
    """The code of a method is replaced by that of another function."""

    def first(self, x):
        return x * 2.0

    def second(self, x):
        return x * 9.0

    class Model:
        m = first

    model = Model()
    f = jit(lambda x: model.m(x))
    seen = [f(X()), f(X())]
    Model.m.__code__ = second.__code__
    return [*seen, f(X()), f(X())]


@TABLE.session("pytorch-197859")
def shadowed(jit):
    """A name in an object's __dict__ begins to hide what __getattr__ gave."""

    class Model:
        def __init__(self):
            self.parts = {"sub": 2.0}

        def __getattr__(self, name):
            return self.parts[name]

        def forward(self, x):
            return x * self.sub

    model = Model()
    forward = jit(model.forward)
    seen = [forward(X()), forward(X())]
    object.__setattr__(model, "sub", 5.0)
    seen.append(forward(X()))
    del model.sub
    return [*seen, forward(X())]


@TABLE.session("pytorch-115774")
def cache_replaced(jit):
    """An array that a method writes to is replaced by another one between calls."""

    class Model:
        def __init__(self):
            self.cache = np.array([0, 0])

        @jit
        def forward(self, x, pos):
            self.cache[pos] = x
            return self.cache

    model = Model()
    seen = [model.forward(2, 0).copy()]
    model.cache = np.array([0, 0])
    return [*seen, model.forward(1, 1).copy(), model.forward(5, 1)]


@TABLE.session("pytorch-124269")
def made_by_exec(jit):
    """Many functions are made of one text by exec, and each one is compiled."""
    seen = []
    for k in range(12):
        scope = {"np": np, "k": k}
        exec("def op(x):\n    return np.mean(x) + k", scope)
        seen.append(jit(scope["op"])(X()))
    return seen


@TABLE.session("pytorch-149405")
def other_floats(jit):
    """A Python float is another one in each call: one entry serves all."""
    f = jit(lambda x, y: x * y)
    seen = [f(X(), y) for y in (1.5, 2.5, -0.0, float("nan"), float("inf"), 3.5)]
    assert jit is not tcompile.compile or len(f.entries) <= 2
    return seen


@TABLE.session("pytorch-93457")
def computed_sizes(jit):
    """Ints are made of the elements of an array, others in each call."""
    f = jit(lambda box: int(box[2] + box[0]) * int(box[3] - box[1]))
    rng = np.random.default_rng(0)
    return [f(rng.integers(0, 10000, 4)) for _ in range(8)]


@TABLE.session("pytorch-106067")
def unused_argument(jit):
    """The size of an argument that is not used changes to zero and one."""
    f = jit(lambda x, y: y + 2)
    return [f(np.zeros(n), X()) for n in (0, 2, 1, 5, 0)]


@TABLE.calls(
    "pytorch-136640",
    *[lambda n=n, m=m: (np.arange(n), np.arange(m)) for n, m in ((4, 8), (8, 8), (8, 4), (4, 4), (8, 12))],
)
def reshaped_and_broadcast(x, y):
    """Arrays of changing sizes are reshaped to rows and broadcast if one has a single row."""
    return x.reshape(-1, 4) * y.reshape(-1, 4)


@TABLE.calls("pytorch-145775", lambda: (np.ones((5, 5)),), lambda: (np.ones((2, 5)),), lambda: (np.ones((0, 5)),))
def joined_to_constant(x):
    """An array of changing length is joined to one of a constant shape."""
    return np.concatenate([x, np.ones((5, 5))])


@TABLE.session("pytorch-114511")
def many_objects(jit):
    """One method is called with many objects that differ in their numbers."""

    class Layer:
        def __init__(self, k):
            self.k = k

        @jit
        def forward(self, x):
            return x + self.k

    layers = [Layer(k) for k in range(20)]
    x = X()
    for layer in layers:
        x = layer.forward(x)
    return x


@TABLE.session("pytorch-143670")
def key_in_dict(jit):
    """Whether an int is a key of a dict that grows decides what is returned."""
    f = jit(lambda x, d, n: x + 1 if n in d else x + 2)
    return [f(X(), d, n) for d, n in (({1: "1"}, 1), ({1: "1", 2: "2"}, 1), ({2: "2"}, 2), ({2: "2"}, 1), ({}, 1))]


@TABLE.session("pytorch-175858")
def new_key(jit):
    """A call adds a key to a dict that it gets."""

    @jit
    def step(state):
        state["loss"] = (state["obs"] ** 2).sum()
        return state

    state = {"obs": X()}
    return [dict(step(state)) for _ in range(3)], list(state)


@TABLE.session("pytorch-196208")
def changed_by_thread(jit):
    """Another thread changes an OrderedDict while compiled code reads from it."""
    state = OrderedDict((f"item{i}", i) for i in range(50))
    state["anchor"] = 3
    f = jit(lambda mapping, x: x * mapping["anchor"])
    stop = threading.Event()

    def change():
        k = 0
        while not stop.is_set():
            state[f"extra{k % 7}"] = k
            state.pop(f"extra{(k + 3) % 7}", None)
            k += 1

    thread = threading.Thread(target=change)
    thread.start()
    try:
        return [f(state, X()) for _ in range(40)]
    finally:
        stop.set()
        thread.join()


@TABLE.session("jax-284")
def compiled_as_argument(jit):
    """A compiled function is an argument of another one."""
    f = jit(lambda x: np.square(x))
    g, h = jit(lambda f, x: f(x) + 1), jit(lambda f, x: f(x) - 1)
    return [k(f, X()) for k in (g, g, h, h)], f(X())


@TABLE.session("jax-7155")
def inner_function(jit):
    """A compiled function is called ten times by another one."""
    inner = jit(lambda state: 2 * state)

    @jit
    def outer(x):
        old = x
        for _ in range(10):
            x = inner(x)
        return x + old

    return [outer(np.arange(5, dtype=np.uint32)) for _ in range(3)]


@TABLE.session("jax-9288")
def compiled_in_loop(jit):
    """A function is compiled anew in each iteration of a loop."""

    def body(i):
        return i + 1

    def f(x, n):
        i = 0
        while i < n:
            i = jit(body)(i)
        return x + i

    g = jit(f)
    return [f(10, 3), g(10, 3), g(10, 4), g(np.ones(2), 3)]


@TABLE.session("jax-31319")
def calls_back(jit):
    """A compiled function calls a function of Python's that counts its calls."""
    count = []

    def outside(x):
        count.append(len(count))
        return x + len(count)

    f = jit(lambda x: outside(x * 2))
    return [f(X()) for _ in range(4)], count


@pytest.mark.parametrize("number", TABLE.numbers)
def test_report(number):
    TABLE.check(number)
