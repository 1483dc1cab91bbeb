"""Our dataclasses against the standard ones: what both make of the same class."""

from __future__ import annotations

import copy
import dataclasses
import pickle
import pprint
import threading
from dataclasses import field
from typing import Any, ClassVar

import pytest

from tcompile.records import dataclass as ours


def make(dataclass, **flags):
    """A class with a bit of everything, and one that inherits from it."""

    @dataclass(**flags)
    class Base:
        """A base."""

        kind: ClassVar[str] = "base"
        a: int
        b: list[int] = field(default_factory=list)
        c: Any = field(default="c", repr=False, compare=not flags.get("frozen"))

    @dataclass(kw_only=True, **flags)
    class Derived(Base):
        """A derived class."""

        kind: ClassVar[str] = "derived"
        d: str
        a: int = 7

        def __post_init__(self):
            object.__setattr__(self, "after", self.d * 2)

    return Base, Derived


@pytest.fixture(params=[{}, {"frozen": True}, {"eq": False}, {"frozen": True, "eq": False}])
def both(request):
    return [make(dataclass, **request.param) for dataclass in (ours, dataclasses.dataclass)]


def outcome(run):
    try:
        return run()
    except Exception as error:
        return type(error), str(error)


def standard_on_top(B):
    return dataclasses.dataclass(frozen=B.__dataclass_params__.frozen)(type("S", (B,), {}))


CASES = {
    "repr": lambda B, D: (repr(B(1)), repr(B(1, [2])), repr(D(d="x")), repr(D([1], "c", d="x", a=3))),
    "values": lambda B, D: (vars(B(1)), vars(D(d="x"))),
    "defaults are its own": lambda B, D: B(1).b is B(1).b,
    "equal": lambda B, D: (B(1) == B(1), B(1) == B(2), D(d="") == D(d=""), B(1) == D(d="", a=1), B(1) == 1),
    "compared": lambda B, D: B(1, c=1) == B(1, c=2),
    "hash": lambda B, D: len({hash(one) for one in [B(1, ()), B(1, ())]}),
    "unhashable": lambda B, D: hash(B(1)) and None,
    "missing": lambda B, D: B(),
    "missing named": lambda B, D: D(),
    "unknown": lambda B, D: B(1, q=2),
    "too many": lambda B, D: B(1, 2, 3, 4),
    "assign": lambda B, D: setattr(B(1), "a", 2),
    "assign another": lambda B, D: setattr(B(1), "zz", 2),
    "delete": lambda B, D: delattr(B(1), "a"),
    "fields": lambda B, D: [(f.name, f.type, f.repr, f.kw_only) for f in dataclasses.fields(D)],
    "fields first": lambda B, D: [f.name for f in dataclasses.fields(B)],
    "replace": lambda B, D: vars(dataclasses.replace(D(d="x"), d="yy")),
    "asdict": lambda B, D: dataclasses.asdict(B([B(1, [B(2)])])),
    "is one": lambda B, D: (dataclasses.is_dataclass(B), dataclasses.is_dataclass(D(d="x"))),
    "match": lambda B, D: (B.__match_args__, D.__match_args__),
    "pprint": lambda B, D: pprint.pformat(B(1)),
    "copy": lambda B, D: (vars(copy.copy(B(1, [2]))), vars(copy.deepcopy(D(d="x")))),
    "doc": lambda B, D: (B.__doc__, B(1) and B.__init__.__qualname__),
    "class variable": lambda B, D: (B.kind, D.kind),
    "a standard one on top": lambda B, D: repr(standard_on_top(B)(1)),
    "a plain one on top": lambda B, D: repr(type("S", (B,), {"__init__": lambda self: B.__init__(self, 3)})()),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_they_behave_as_the_standard_ones(both, case):
    mine, standard = (outcome(lambda made=made: CASES[case](*made)) for made in both)
    assert mine == standard


def test_what_a_class_says_itself_stays():
    @ours(frozen=True)
    class Odd:
        a: int

        def __repr__(self):
            return "odd"

        def __hash__(self):
            return 5

        def __eq__(self, other):
            return True

    assert repr(Odd(1)) == "odd" and hash(Odd(1)) == 5 and Odd(1) == Odd(2)


def test_one_that_holds_itself_is_written():
    @ours
    class Ring:
        next: Any = None

    ring = Ring()
    ring.next = ring
    assert repr(ring).endswith("Ring(next=...)")


@ours(frozen=True)
class Kept:
    """Found by pickle."""

    a: int
    b: tuple[int, ...] = ()


def test_pickle_before_the_first_is_made():
    kept = Kept.__new__(Kept)
    kept.__dict__.update(a=1, b=(2,))
    assert pickle.loads(pickle.dumps(kept)) == Kept(1, (2,))


def test_the_first_may_be_made_by_many_threads():
    for _ in range(50):
        Base, _derived = make(ours, frozen=True)
        start = threading.Barrier(4)
        seen = []

        def first(Base=Base, start=start, seen=seen):
            start.wait()
            seen.append(Base(1, ()))

        threads = [threading.Thread(target=first) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert seen == [Base(1, ())] * 4
