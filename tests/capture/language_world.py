"""The namespace of generated programs.

Input: nothing.
Output: ``WORLD``, names to objects: classes of every common kind, context managers, exceptions, functions that capture
can inline, and ones that it cannot.
Why: they are in a module of their own, so that programs call across modules. ``restore`` undoes lasting effects of a
program's run (class attributes).
"""

from __future__ import annotations

import collections
import contextlib
import copy
import dataclasses
import enum
import functools
import itertools
import math
import operator
import sys
import warnings
from typing import Any, NamedTuple

import numpy as np

import tcompile


class Oops(Exception):
    """An error of the program's own."""

    def __init__(self, value: Any = None) -> None:
        super().__init__(value)
        self.value = value


class Worse(Oops):
    """One that is caught by the other's handler, too."""


class Box:
    """A plain object: attributes, a property with a setter, class and static methods, items, a length."""

    rate = 2
    made = 0

    def __init__(self, v: Any = 0.5, n: Any = 3) -> None:
        self.v = v
        self.n = n
        self.parts = [1, 2]
        type(self).made += 1

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.v!r}, {self.n!r})"

    def apply(self, a: Any, k: Any = 1) -> Any:
        return a * self.v + k

    def bump(self, by: Any = 1) -> Box:
        self.n += by
        self.parts.append(by)
        del self.parts[:-4]
        return self

    @property
    def double(self) -> Any:
        return self.v * 2

    @double.setter
    def double(self, value: Any) -> None:
        self.v = value / 2

    @classmethod
    def scaled(cls, a: Any) -> Any:
        return a * cls.rate

    @staticmethod
    def less(a: Any) -> Any:
        return a - 1

    def __call__(self, a: Any, *, k: Any = 0) -> Any:
        return self.apply(a, k)

    def __len__(self) -> int:
        return len(self.parts)

    def __getitem__(self, i: Any) -> Any:
        return self.parts[i]

    def __setitem__(self, i: Any, value: Any) -> None:
        self.parts[i] = value

    def __contains__(self, value: Any) -> bool:
        return value in self.parts

    def __iter__(self) -> Any:
        yield from self.parts

    def __add__(self, other: Any) -> Any:
        return self.n + other if isinstance(other, int | float | np.ndarray) else NotImplemented

    def __bool__(self) -> bool:
        return bool(self.n != 0)


class Deep(Box):
    """A subclass that extends its base's methods."""

    rate = 3

    def __init__(self, v: Any = 0.5, n: Any = 3) -> None:
        super().__init__(v, n)
        self.depth = 1

    def apply(self, a: Any, k: Any = 1) -> Any:
        return super().apply(a, k) + self.depth

    def __getattr__(self, name: str) -> Any:
        if name == "missing":
            return self.n
        raise AttributeError(name)


class Slotted:
    """An object without a dictionary."""

    __slots__ = ("left", "right")

    def __init__(self, left: Any, right: Any = 2) -> None:
        self.left = left
        self.right = right

    def __repr__(self) -> str:
        return f"Slotted({self.left!r}, {self.right!r})"

    def swap(self) -> Slotted:
        self.left, self.right = self.right, self.left
        return self


@dataclasses.dataclass
class Data:
    """A dataclass with a default and a factory."""

    p: Any
    q: Any = 1
    rest: list[Any] = dataclasses.field(default_factory=list)

    def total(self) -> Any:
        return self.p + self.q


@dataclasses.dataclass(frozen=True)
class Frozen:
    """A dataclass that cannot be changed."""

    p: Any
    q: Any = 2


class Point(NamedTuple):
    """A named tuple."""

    p: Any
    q: Any = 1


class Colour(enum.Enum):
    """An enumeration."""

    RED = 1
    BLUE = 2


class Scope:
    """A context manager that writes what happens to a log, and may swallow errors."""

    def __init__(self, log: list[Any], tag: str, swallow: type[BaseException] | None = None) -> None:
        self.log = log
        self.tag = tag
        self.swallow = swallow

    def __repr__(self) -> str:
        return f"Scope({self.tag})"

    def __enter__(self) -> Scope:
        self.log.append(("enter", self.tag))
        return self

    def __exit__(self, kind: Any, value: Any, trace: Any) -> bool:
        self.log.append(("exit", self.tag, None if kind is None else kind.__name__))
        return self.swallow is not None and kind is not None and issubclass(kind, self.swallow)


@contextlib.contextmanager
def managed(log: list[Any], tag: str) -> Any:
    """A context manager made from a generator; it swallows ValueError."""
    log.append(("open", tag))
    try:
        yield tag
    except ValueError as error:
        log.append(("swallowed", tag, str(error)))
    finally:
        log.append(("close", tag))


def logged(function: Any) -> Any:
    """A decorator that counts calls."""

    @functools.wraps(function)
    def wrapper(*args: Any, **more: Any) -> Any:
        wrapper.calls += 1
        return function(*args, **more)

    wrapper.calls = 0
    return wrapper


def helper(a: Any, b: Any = 2, *rest: Any, w: Any = 1, **more: Any) -> Any:
    """Arguments of every kind."""
    for r in rest:
        a = a + r
    if w != 1:
        a = a * w
    for name in more:
        a = a - more[name]
    return a + b


def pick(flag: Any, a: Any, b: Any = 0) -> Any:
    """One of two."""
    if flag:
        return a
    return b


def gather(a: Any, into: list[Any] = []) -> Any:
    """A default that is one list for all calls."""
    into.append(len(into))
    del into[3:]
    return a + len(into)


def numbers(a: Any, n: int = 3) -> Any:
    """A generator."""
    for i in range(n):
        if i == 4:
            return
        yield a + i


def guarded(log: list[Any], a: Any, n: int = 2) -> Any:
    """A generator with a ``finally``; it answers what it is sent."""
    got = 0
    try:
        for i in range(n):
            got = (yield a + i) or got
    finally:
        log.append(("generator done", got))


async def later(value: Any) -> Any:
    """Hands back its argument after it has waited once."""
    await _Turn()
    return value


class _Turn:
    """Waits for one turn of the loop."""

    def __await__(self) -> Any:
        yield


class asynchronous:
    """An asynchronous context manager; it swallows ValueError."""

    def __init__(self, log: list[Any], tag: str) -> None:
        self.log = log
        self.tag = tag

    async def __aenter__(self) -> str:
        self.log.append(("enter", await later(self.tag)))
        return self.tag

    async def __aexit__(self, kind: Any, value: Any, trace: Any) -> bool:
        self.log.append(("exit", await later(self.tag), None if kind is None else kind.__name__))
        return kind is not None and issubclass(kind, ValueError)


async def eventually(a: Any, n: int = 2) -> Any:
    """An asynchronous generator."""
    for i in range(n):
        yield a + await later(i)


def note(log: list[Any], *values: Any) -> None:
    """Writes copies of values to a log."""
    log.append(tuple(np.array(v) if isinstance(v, np.ndarray) else v for v in values))


def write(a: Any, value: Any = 1) -> Any:
    """Writes to an array."""
    a[...] = value
    return a


def double(a: Any) -> Any:
    """Changes an array in place."""
    a *= 2
    return a


def echo(value: Any) -> Any:
    """Prints, then hands back its argument."""
    print("echo", type(value).__name__)
    return value


def raising(value: Any, kind: Any = ValueError) -> Any:
    """Raises."""
    raise kind(value)


@tcompile.disable
def opaque(value: Any) -> Any:
    """Hands back its argument; capture does not look inside."""
    return value


@tcompile.disable
def poke(values: Any, i: Any = 0) -> Any:
    """Changes a container or an array after capture's back; hands back what it was given."""
    if isinstance(values, np.ndarray):
        if values.ndim:
            values[:1] = i
    elif isinstance(values, list):
        values.append(i)
        del values[:-5]
    elif isinstance(values, dict):
        values["poked"] = i
    elif isinstance(values, set):
        values.add(i)
    elif isinstance(values, Box):
        values.n = i
    return values


@tcompile.disable
def call(function: Any, *args: Any) -> Any:
    """Calls a function of the program from outside."""
    return function(*args)


WORLD: dict[str, Any] = {
    "np": np, "math": math, "operator": operator, "functools": functools, "itertools": itertools, "copy": copy,
    "collections": collections, "sys": sys, "warnings": warnings, "contextlib": contextlib, "tcompile": tcompile,
    **{
        thing.__name__: thing
        for thing in (
            Oops, Worse, Box, Deep, Slotted, Data, Frozen, Point, Colour, Scope, managed, logged, helper, pick,
            gather, numbers, guarded, later, asynchronous, eventually, note, write, double, echo, raising, opaque, poke,
            call,
        )
    },
}  # fmt: skip


def restore() -> None:
    """Undoes what a program's run left in this module."""
    Box.made, Box.rate, Deep.rate = 0, 2, 3
    if "made" in vars(Deep):
        del Deep.made
    gather.__defaults__[0].clear()


__all__ = ["WORLD", "restore"]
