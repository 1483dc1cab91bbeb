"""Loops whose iterations store to attributes, items, closure variables and globals: nodes carry what these hold."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from differential import assert_same

import tcompile

from .loop_cases import N, each, line, ops
from .test_declined_loops import told


class State:
    """Some attributes."""

    def __init__(self, **held):
        self.__dict__.update(held)


class Model:
    """What simulations look like."""

    def __init__(self, u):
        self.u = u
        self.v = np.zeros_like(u)
        self.t = 0.0
        self.count = 0
        self.best = None

    def force(self):
        return self.u[2:] - 2 * self.u[1:-1] + self.u[:-2]

    def advance(self, dt):
        self.v[1:-1] += dt * self.force()
        self.u = self.u + dt * self.v
        self.t += dt
        self.count += 1

    def run(self, n):
        for _ in range(n):
            self.advance(0.1)
        return self.t


@dataclasses.dataclass
class Slotted:
    __slots__ = ("t", "x")
    x: object
    t: float


def attributes(u, n):
    model = Model(u)
    for i in range(n):
        model.advance(0.1)
        model.last = i
        top = model.u.max()
        model.best = top if model.best is None else max(model.best, top)
    return model.u, model.v, model.t, model.count, model.last, model.best


def in_a_method(u, n):
    model = Model(u)
    return model.run(n), model.u, model.count


def items(x, n):
    state, parts = {"x": x, "t": 0.0, "n": 3}, [x * 2, 0, "name"]
    for i in range(n):
        state["x"] = 0.5 * np.sin(state["x"]) + parts[0] * 0.1
        state["t"] += 0.25
        state["n"] -= 2
        parts[0] = parts[0] * 0.5 + state["t"] + i
        parts[1] = i
        parts[2] = "other"
    return state, parts


def deeper(x, n):
    state = State(inner={"list": [x, 1.5]}, other=(State(t=1.0),))
    for _ in range(n):
        state.inner["list"][0] = state.inner["list"][0] * 0.5 + state.inner["list"][1]
        state.inner["list"][1] *= 0.5
        state.other[0].t += 1.0
    return state.inner, state.other[0].t


def closure(x, n):
    t = 0.0

    def add():
        nonlocal x, t
        x = 0.5 * np.sin(x) + np.cos(x) * 0.1 + i + t
        t += 0.5

    for i in range(n):
        add()
    return x, t, i


def changes_places(u, n):
    state = State(u=u * 1, v=u * 2)
    for _ in range(n):
        state.v[1:-1] = 0.5 * (state.u[2:] + state.u[:-2])
        state.u, state.v = state.v, state.u
    return state.u, state.v


def stores_what_it_has(u, n):
    state = State(u=u)
    for _ in range(n):
        state.u += 0.125
        state.u *= 0.5
    return state.u is u, u


def two_names(x, n):
    state = State(x=x * 2, y=0.0)
    y = state.x
    for _ in range(n):
        state.x = state.x * 0.5 + y
        y = state.x
        state.y = float(y[0])
    return state.x, y, state.x is y, state.y


def nested(x, n):
    state = State(t=0.0, k=0, x=x)
    for i in range(n):
        for j in range(7):
            state.x = 0.5 * np.sin(state.x) + state.t * 0.01 + j
            state.t += 0.5
        state.k += 2
        state.t *= 0.5
    return state.x, state.t


def slotted(x, n):
    state = Slotted(x, 0.0)
    for _ in range(n):
        state.x = 0.5 * np.sin(state.x) + state.t
        state.t += 0.5
    return state.x, state.t


def defaults(x, n):
    def step(v, counts=[0.0], *, times={"k": 0}):
        counts[0] += 0.5
        times["k"] += 1
        return v * 0.5 + counts[0]

    for _ in range(n):
        x = step(x) * 0.5
    return x, step(x)


NODES = [
    attributes, in_a_method, items, deeper, closure, changes_places, stores_what_it_has, two_names, nested, slotted,
    defaults,
]  # fmt: skip


@pytest.mark.parametrize("f", NODES, ids=lambda f: f.__name__)
def test_what_objects_hold_is_carried(f):
    for n in (N, N + 1):
        for compiled in each(f, lambda n=n: (line(), n)):
            assert "fori_loop" in ops(compiled)
            assert not compiled.breaks


@pytest.mark.parametrize("f", NODES[1:], ids=lambda f: f.__name__)
def test_the_number_of_iterations_varies(f):
    for compiled in (tcompile.compile(f, backend=backend, dynamic=True) for backend in ("eager", "llvm")):
        for n in (N, N + 4, 5, 1, 0, 2):
            if n or f is not closure:
                assert_same(compiled(line(), n), f(line(), n), ulp=64)


# -- tests that leave the loop -----------------------------------------------------------------------------------------


def until_a_time(x, last):
    state = State(t=0.0, x=x, k=0)
    while state.t < last:
        state.x = 0.5 * np.sin(state.x) + state.t
        state.t += 0.25
        state.k += 1
    return state.x, state.t, state.k


def until_it_settles(x, least):
    state = State(x=x * 5, err=1e9, k=0, old=x * 0)
    while True:
        if state.err < least:
            break
        new = 0.5 * np.sin(state.x)
        state.err = float(np.abs(new - state.x).max())
        state.k += 1
        if state.err > 1e8:
            continue
        state.old = state.x
        state.x = new
    return state.x, state.old, state.err, state.k


def returns_from_inside(x, least):
    state = State(x=x * 5, k=0, why="")
    for k in range(50):
        state.x = state.x * 0.5
        if state.x.max() < least:
            state.why = "small"
            return state.x, state.k, state.why, k
        state.k += 1
        if state.x[3] > 1e9:
            return state.x * 2, state.k, state.why, k
    return state.x, state.k, state.why, -1


@pytest.mark.parametrize("f", [until_a_time, until_it_settles, returns_from_inside], ids=lambda f: f.__name__)
@pytest.mark.parametrize("last", [0.001, 30.0, 1e-30, 2e9])
def test_a_test_leaves_the_loop(f, last):
    if f is until_a_time:
        last = min(last, 30.0)
    elif f is until_it_settles:
        last = max(last, 1e-9)
    for _ in each(f, lambda: (line(), last)):
        pass


def test_a_loop_that_a_test_leaves_is_a_node():
    for compiled in each(until_it_settles, lambda: (line(), 0.001)):
        assert "exit_loop" in ops(compiled)
        assert not compiled.breaks


# -- objects from outside ----------------------------------------------------------------------------------------------


def outside(state, table, values, n):
    for i in range(n):
        state.x = 0.5 * np.sin(state.x) + table["t"]
        table["t"] += 0.125
        values[1] = values[1] * 0.5 + i
        state.u += 0.1
    return state.x


def run_twice(f, make, iterations):
    """Both ways, with the same objects from one call to the next; what they hold is compared."""
    for backend in ("eager", "llvm"):
        tcompile.reset()
        compiled = tcompile.compile(f, backend=backend)
        got, want = make(), make()
        kept = [state.__dict__.copy() if isinstance(state, State) else None for state in got]
        for n in iterations:
            results = []
            for run, args in ((compiled, got), (f, want)):
                try:
                    results.append(run(*args, n))
                except Exception as error:
                    results.append((type(error), str(error)))
            assert_same(results[0], results[1], ulp=64)
            for ours, theirs, first in zip(got, want, kept):
                if isinstance(ours, State):
                    assert_same(ours.__dict__, theirs.__dict__, ulp=64)
                    if n == 0 and n == iterations[0]:
                        assert all(ours.__dict__[name] is value for name, value in first.items())
                else:
                    assert_same(ours, theirs, ulp=64)
        yield compiled


def test_objects_from_outside():
    def make():
        return State(x=line(), u=line() * 2), {"t": 0.5, "other": 1}, [None, 1.0, "x"]

    for compiled in run_twice(outside, make, (N, N, 0, 1, N + 3)):
        assert any("fori_loop" in (node.op.name for node in graph.nodes) for graph in compiled.graphs)
    for _ in run_twice(outside, make, (0, N)):
        pass


def test_an_error_comes_in_its_iteration_and_shows_what_was_stored_before():
    rows = np.linspace(0, 1, 30)

    def f(state, n):
        for i in range(n):
            state.count += 1
            state.x = state.x * 0.5 + rows[i]
            state.t += 0.5
        return state.x

    for compiled in run_twice(f, lambda: (State(x=line(), t=0.0, count=0),), (20, 29, 40, 35, 20)):
        assert any("fori_loop" in (node.op.name for node in graph.nodes) for graph in compiled.graphs)


def test_one_object_under_two_names():
    def f(a, b, n):
        for _ in range(n):
            a.x = a.x * 0.5 + b.x * 0.25
            b.x = b.x + 1
            a.t += 1
        return a.x, b.x, a.t

    def make():
        state = State(x=line(), t=0)
        return state, state

    for _ in run_twice(f, make, (N, N)):
        pass
    for _ in run_twice(f, lambda: (State(x=line(), t=0), State(x=line() * 2, t=0)), (N, N)):
        pass


total = 0.0


def adds_to_a_global(x, n):
    global total
    for _ in range(n):
        x = 0.5 * np.sin(x) + total
        total = total * 0.5 + x.sum()
    return x


def test_a_global_variable():
    global total
    for backend in ("eager", "llvm"):
        seen = []
        for f in (adds_to_a_global, tcompile.compile(adds_to_a_global, backend=backend)):
            total = 0.5
            seen.append([(f(line(), n), total) for n in (N, N + 1, 0, 3)])
        assert_same(seen[1], seen[0], ulp=64)
        assert told(adds_to_a_global, line(), 100)[0].startswith("This loop stays a loop")


def sets_a_global_where_it_is_left(x, n):
    global total
    total = 1
    for _ in range(n):
        x[1] = x[1] * 0.5
        if x[1] < 0.25:
            total = x[0]
            break
    return x


@pytest.mark.parametrize("backend", ["eager", "llvm"])
def test_a_global_variable_of_one_way_out(backend):
    global total
    compiled = tcompile.compile(sets_a_global_where_it_is_left, backend=backend)
    for n, want in ((1, 1), (10, 0.0), (0, 1)):
        seen = [(f(np.arange(3.0), n), total) for f in (sets_a_global_where_it_is_left, compiled)]
        assert_same(seen[1], seen[0])
        assert total == want and type(total) is type(seen[0][1])


# -- what stays Python's -----------------------------------------------------------------------------------------------


def adds_keys(x, n):
    found = {}
    for i in range(n):
        x = 0.5 * np.sin(x)
        found[i] = x.sum()
    return x, found


def adds_to_a_set(x, n):
    found = {1}
    for i in range(n):
        x = 0.5 * np.sin(x)
        found.add(i)
    return x, sorted(found)


def takes_attributes_away(x, n):
    state = State(x=x, t=1)
    for _ in range(n):
        state.x = 0.5 * np.sin(state.x) + state.t
        del state.t
        state.t = 2
    return state.x, [*vars(state)]


def grows(x, n):
    state = State(x=x, k=1)
    for i in range(n):
        state.x = np.concatenate([state.x, state.x[:1] + i])
        state.k *= 2
    return state.x, state.k


def a_new_object_each_time(x, n):
    state = State(x=x)
    for _ in range(n):
        state = State(x=0.5 * np.sin(state.x))
    return state.x


@pytest.mark.parametrize(
    "f", [adds_keys, adds_to_a_set, takes_attributes_away, grows, a_new_object_each_time], ids=lambda f: f.__name__
)
def test_whatever_a_loop_stores_is_stored(f):
    for n in (0, 2, N):
        for _ in each(f, lambda n=n: (line(), n)):
            pass


@pytest.mark.parametrize("start", [0, 0.5], ids=["int", "float"])
def test_a_function_that_counts_its_calls_in_a_closure_variable(start):
    """The loop meets the variable in the called function alone."""

    def counter():
        count = start

        def counted(x):
            nonlocal count
            count += 1
            return x + count

        return counted

    def f(n, counted):
        total = 0
        for _ in range(n):
            total = counted(total)
        return total

    compiled, want, got = tcompile.compile(f, backend="eager"), counter(), counter()
    with tcompile.config.patch(verify=True):
        for n in (100, 1000, 20, 3000):
            assert_same(compiled(n, got), f(n, want))
