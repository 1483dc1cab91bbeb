"""Objects in loops over elements: attributes, methods and properties are read before the loop, and set after it."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

import tcompile
from tests.capture.scalar_loop_check import late_loops

from .test_scalar_loops import ops

BACKENDS = ("eager", "llvm")


class Sim:
    """Slots, an attribute of the class, a property and a method."""

    __slots__ = ("dt", "k", "n", "x")
    rate = 0.25

    def __init__(self, n=30):
        self.x, self.n, self.dt, self.k = np.linspace(0.0, 1.0, n), n, 0.1, 3

    @property
    def scale(self):
        return self.dt * 2

    def force(self, i, y=0.5):
        return -self.k * y + self.x[i] * self.rate

    def run(self, steps):
        e = 0.0
        for t in range(steps):
            for i in range(1, self.n - 1):
                self.x[i] += self.dt * self.force(i, self.x[i - 1]) * self.scale + self.force(0)
            e += self.x[t % self.n]
        return e


@dataclasses.dataclass
class Counter:
    """What loops set, of all kinds of numbers."""

    x: np.ndarray = dataclasses.field(default_factory=lambda: np.linspace(0.0, 1.0, 20))
    total: float = 0.0
    count: int = 0
    peak: np.float64 = dataclasses.field(default_factory=lambda: np.float64(0.1))
    seen: bool = False
    sign: int = 1
    other = 0

    def add(self, v):
        self.total += v
        self.count += 1
        if v > 0.5:
            self.seen = True

    def run(self, steps):
        for _ in range(steps):
            for i in range(len(self.x)):
                self.add(float(self.x[i]) * self.sign)
                if self.x[i] > self.peak:
                    self.peak = self.x[i]
            self.sign = -self.sign
        return self.total

    def until(self, steps):
        for i in range(steps):
            self.count += 1
            self.total += float(self.x[i % len(self.x)])
            if self.total > 40.0:
                return i
        return None

    def raises(self, steps):
        for i in range(steps):
            self.count += 1
            if i > 300:
                raise ValueError(self.count)
            self.x[i % 5] += 1

    def appends(self, steps):
        found = []
        for i in range(steps):
            self.count += 2
            if self.x[i % 20] > 0.5:
                found.append(self.count)
        return found

    def changes_kind(self, steps):
        for i in range(steps):
            self.total = self.x[i % 5] + self.total
        return self.total

    def may_set_what_only_the_class_has(self, steps):
        for i in range(steps):
            if self.x[i % 5] > 10.0:
                self.other += 1
        return self.other

    def big(self, steps):
        """Ints of more than 64 bits."""
        self.count = 1
        for i in range(steps):
            self.count = self.count * 2 + int(self.x[i % 5] > 2.0)
            if self.count == 0:
                self.count = 1
        return self.count


def picture(value):
    """All that can be seen of an object's attributes."""
    return {name: (type(one).__name__, np.asarray(one).tolist()) for name, one in sorted(vars(value).items())}


def outcome(call, *args):
    try:
        found = call(*args)
    except ValueError as error:
        return type(error).__name__, str(error)
    return type(found).__name__, found


STEPS = (40, 41, 0, 1, 600, 600, 70)


@pytest.mark.parametrize("late", [False, True])
@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize(
    "name", ["run", "until", "raises", "appends", "changes_kind", "may_set_what_only_the_class_has", "big"]
)
def test_attributes_that_a_loop_sets(name, backend, late):
    mine, plain = Counter(), Counter()
    compiled = tcompile.compile(getattr(Counter, name), backend=backend)
    for steps in STEPS:
        if late:
            with late_loops():
                found = outcome(compiled, mine, steps)
        else:
            found = outcome(compiled, mine, steps)
        assert found == outcome(getattr(plain, name), steps)
        assert picture(mine) == picture(plain)


@pytest.mark.parametrize("name", ["run", "until", "appends"])
def test_such_loops_are_nodes(name):
    compiled = tcompile.compile(getattr(Counter, name))
    compiled(Counter(), 200)
    assert "scalar_loop" in ops(compiled)


@pytest.mark.parametrize("backend", BACKENDS)
def test_slots_methods_and_properties(backend):
    mine, plain = Sim(), Sim()
    compiled = tcompile.compile(Sim.run, backend=backend)
    changes = [
        ("dt", 0.05),
        ("k", 2),
        ("k", 2.5),
        ("n", 20),
        ("x", np.linspace(0.5, 1.0, 30)),
        ("dt", np.float64(0.02)),
    ]
    for steps in (40, 41, 90):
        assert compiled(mine, steps) == plain.run(steps)
    assert "scalar_loop" in ops(compiled)
    for name, value in changes:
        for sim in (mine, plain):
            setattr(sim, name, value.copy() if isinstance(value, np.ndarray) else value)
        assert compiled(mine, 50) == plain.run(50)
        np.testing.assert_array_equal(mine.x, plain.x)


def test_what_the_class_says_is_guarded(monkeypatch):
    mine, plain = Sim(), Sim()
    compiled = tcompile.compile(Sim.run)
    assert compiled(mine, 40) == plain.run(40)
    monkeypatch.setattr(Sim, "rate", 0.5)
    assert compiled(mine, 40) == plain.run(40)
    monkeypatch.setattr(Sim, "scale", property(lambda self: self.dt * 3))
    assert compiled(mine, 40) == plain.run(40)
    monkeypatch.setattr(Sim, "force", lambda self, i, y=0.5: y * 0.25)
    assert compiled(mine, 40) == plain.run(40)


class Many:
    """Values that are read one after the other, and that nothing else holds."""

    def __init__(self):
        self.x = np.linspace(0.0, 1.0, 20)
        for number in range(24):
            setattr(self, f"a{number}", 0.25 * number if number % 3 else np.float64(number))


def test_many_attributes_are_each_their_own():
    lines = [f"        t += self.a{n} * self.x[(i + {n}) % 20] * {(-1) ** n}\n" for n in range(24)]
    names = {}
    exec(
        "def weighted(self, steps):\n    t = 0.0\n    for i in range(steps):\n" + "".join(lines) + "    return t\n",
        names,
    )
    weighted, mine = names["weighted"], Many()
    compiled = tcompile.compile(weighted)
    for steps in (40, 41, 200):
        assert compiled(mine, steps) == weighted(mine, steps)
    assert "scalar_loop" in ops(compiled)


class Modes:
    """Texts that are asked about."""

    def __init__(self):
        self.mode, self.x = "run", np.linspace(0.0, 1.0, 20)

    @property
    def stops(self):
        return self.mode == "stop"

    def run(self, steps):
        t = 0.0
        for i in range(steps):
            if self.stops:
                break
            if self.mode != "slow":
                t += self.x[i % 20]
            t += self.x[i % 3]
        return t


def test_texts_of_objects():
    mine, plain = Modes(), Modes()
    compiled = tcompile.compile(Modes.run)
    for mode in ("run", "slow", "stop", "run"):
        mine.mode = plain.mode = mode
        assert compiled(mine, 60) == plain.run(60)
    assert "scalar_loop" in ops(compiled)


class Pair:
    def __init__(self):
        self.a = self.b = Counter()

    def run(self, steps):
        for i in range(steps):
            self.a.total += 1.5 * float(self.a.x[i % 20])
            self.b.count += int(self.b.total > 3.0)
        return self.b.total

    def apart(self, steps):
        self.b = Counter()
        return self.run(steps)


@pytest.mark.parametrize("name", ["run", "apart"])
def test_objects_in_objects(name):
    mine, plain = Pair(), Pair()
    compiled = tcompile.compile(getattr(Pair, name))
    for steps in (50, 51, 300):
        assert compiled(mine, steps) == getattr(plain, name)(steps)
        assert picture(mine.a) == picture(plain.a) and picture(mine.b) == picture(plain.b)
        assert (mine.a is mine.b) == (plain.a is plain.b)


class Watching:
    """Code of the user's runs where attributes are found or set."""

    def __init__(self):
        self.x, self.log, self.total = np.arange(5.0), [], 0.0

    def __setattr__(self, name, value):
        if name == "total":
            self.log.append(value)
        object.__setattr__(self, name, value)

    def __getattr__(self, name):
        self.log.append(name)
        return 1.5

    def run(self, steps):
        for i in range(steps):
            self.total = self.total + float(self.x[i % 5]) * self.missing
        return self.total


def test_attributes_that_code_of_the_users_finds():
    mine, plain = Watching(), Watching()
    compiled = tcompile.compile(Watching.run)
    for steps in (30, 31, 100):
        assert compiled(mine, steps) == plain.run(steps)
        assert mine.log == plain.log


def weighs(d, steps):
    t = 0.0
    for i in range(steps):
        t += d["x"][i % 20] * d["inner"]["k"]
        if t > d["limit"]:
            d["x"][i % 20] = 0.0
    return t


def counts_in_a_dict(d, steps):
    for i in range(steps):
        d["n"] += 1
        if d["x"][i % 20] > 0.5:
            d["t"] = i
    return d["n"]


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("f", [weighs, counts_in_a_dict])
def test_items_of_dicts(f, backend):
    def made():
        return {"x": np.linspace(0.0, 1.0, 20), "inner": {"k": 0.5}, "limit": 3.0, "n": 0}

    mine, plain = made(), made()
    compiled = tcompile.compile(f, backend=backend)
    for steps in (40, 41, 300):
        assert compiled(mine, steps) == f(plain, steps)
    for name, value in (("limit", 1.0), ("inner", {"k": 2}), ("x", np.ones(20))):
        for d in (mine, plain):
            d[name] = value.copy() if isinstance(value, np.ndarray) else value
        assert compiled(mine, 100) == f(plain, 100)
    np.testing.assert_equal(mine, plain)
    assert list(mine) == list(plain)
    if f is weighs:
        assert "scalar_loop" in ops(compiled)
        with pytest.raises(KeyError):
            compiled({}, 30)
