"""Functions of itertools, operator and math on captured values.

Input: captured arguments.
Output: an iterator, a callable object, or the value.
Why: this table extends that of the built-ins. Functions that it lacks are called in plain Python.
"""

from __future__ import annotations

import itertools
import math
import operator
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from tcompile.capture.semantics.attributes import attribute
from tcompile.capture.semantics.operators import binary, contains, identical
from tcompile.capture.values.base import Context, Value
from tcompile.capture.values.callable import IteratorValue
from tcompile.capture.values.constant import Constant
from tcompile.capture.values.container import SequenceValue, constant_of
from tcompile.capture.values.dicts import hashable
from tcompile.capture.values.slices import index_of
from tcompile.frontends.base import CannotCapture

Handler = Callable[["Context", Sequence[Value], Mapping[str, Value]], Value]
LIBRARY: dict[Any, tuple[int, int, Handler]] = {}
_MANY = 9999
_NONE, _ZERO, _ONE = Constant(None), Constant(0), Constant(1)


def _means(function: Any, fewest: int, most: int, *names: str) -> Callable[[Handler], Handler]:
    """Registers the meaning of ``function``: ``fewest`` to ``most`` positional arguments, keywords ``names``."""

    def register(handler: Handler) -> Handler:
        def checked(tx: Context, args: Sequence[Value], kwargs: Mapping[str, Value]) -> Value:
            if not kwargs.keys() <= set(names):
                raise CannotCapture("unknown-function", f"`{function.__name__}` with {sorted(kwargs)}")
            return handler(tx, args, kwargs)

        LIBRARY[function] = (fewest, most, checked)
        return handler

    return register


def _iterates(function: Any, fewest: int, most: int, *names: str) -> Callable[[Callable[..., Iterator[Value]]], Any]:
    """Registers a function that returns an iterator: ``make`` yields the values."""

    def register(make: Callable[..., Iterator[Value]]) -> Callable[..., Iterator[Value]]:
        def made(tx: Context, args: Sequence[Value], kwargs: Mapping[str, Value]) -> Value:
            try:
                return IteratorValue(tx, make(tx, *args, **kwargs))
            except (TypeError, ValueError, OverflowError, MemoryError) as error:
                raise CannotCapture("operation-raises", str(error)) from error

        _means(function, fewest, most, *names)(made)
        return make

    return register


def _tuple(values: Any) -> Value:
    return SequenceValue(list(values), tuple)


# -- itertools -------------------------------------------------------------------------------------------------------
@_iterates(itertools.chain, 0, _MANY)
def _chain(tx: Context, *parts: Value) -> Iterator[Value]:
    for part in parts:
        yield from part.iterate(tx)


@_iterates(itertools.chain.from_iterable, 1, 1)
def _chain_from(tx: Context, parts: Value) -> Iterator[Value]:
    return (value for part in parts.iterate(tx) for value in part.iterate(tx))


@_iterates(itertools.count, 0, 2, "start", "step")
def _count(tx: Context, start: Value = _ZERO, step: Value = _ONE) -> Iterator[Value]:
    if not all(issubclass(value.python_type, int | float) for value in (start, step)):
        raise CannotCapture("operation-raises", "a number is required")

    def values(now: Value) -> Iterator[Value]:
        while True:
            yield now
            now = binary(tx, "+", now, step)

    return values(start)


@_iterates(itertools.repeat, 1, 2)
def _repeat(tx: Context, value: Value, times: Value | None = None) -> Iterator[Value]:
    return itertools.repeat(value) if times is None else itertools.repeat(value, max(index_of(times), 0))


@_iterates(itertools.cycle, 1, 1)
def _cycle(tx: Context, values: Value) -> Iterator[Value]:
    return itertools.cycle(values.iterate(tx))


@_iterates(itertools.islice, 2, 4)
def _islice(tx: Context, values: Value, *bounds: Value) -> Iterator[Value]:
    plain = [None if bound.is_none else index_of(bound) for bound in bounds]
    if any(bound is not None and bound < 0 for bound in plain) or plain[2:] == [0]:
        raise CannotCapture("operation-raises", "islice() with a negative bound")
    return itertools.islice(values.iterate(tx), *plain)


@_iterates(itertools.takewhile, 2, 2)
def _takewhile(tx: Context, test: Value, values: Value) -> Iterator[Value]:
    return itertools.takewhile(lambda value: test.call(tx, [value], {}).truth(tx), values.iterate(tx))


@_iterates(itertools.dropwhile, 2, 2)
def _dropwhile(tx: Context, test: Value, values: Value) -> Iterator[Value]:
    return itertools.dropwhile(lambda value: test.call(tx, [value], {}).truth(tx), values.iterate(tx))


@_iterates(itertools.filterfalse, 2, 2)
def _filterfalse(tx: Context, test: Value, values: Value) -> Iterator[Value]:
    if test.is_none:
        return (value for value in values.iterate(tx) if not value.truth(tx))
    return (value for value in values.iterate(tx) if not test.call(tx, [value], {}).truth(tx))


@_iterates(itertools.starmap, 2, 2)
def _starmap(tx: Context, function: Value, rows: Value) -> Iterator[Value]:
    return (function.call(tx, list(row.iterate(tx)), {}) for row in rows.iterate(tx))


@_iterates(itertools.compress, 2, 2)
def _compress(tx: Context, values: Value, selectors: Value) -> Iterator[Value]:
    pairs = zip(values.iterate(tx), selectors.iterate(tx), strict=False)
    return (value for value, selector in pairs if selector.truth(tx))


@_iterates(itertools.accumulate, 1, 2, "func", "initial")
def _accumulate(tx: Context, values: Value, func: Value = _NONE, initial: Value = _NONE) -> Iterator[Value]:
    source = values.iterate(tx)

    def totals() -> Iterator[Value]:
        total = next(source, None) if initial.is_none else initial
        if total is not None:
            yield total
            for value in source:
                total = binary(tx, "+", total, value) if func.is_none else func.call(tx, [total, value], {})
                yield total

    return totals()


@_iterates(itertools.zip_longest, 0, _MANY, "fillvalue")
def _zip_longest(tx: Context, *columns: Value, fillvalue: Value = _NONE) -> Iterator[Value]:
    return map(_tuple, itertools.zip_longest(*[column.iterate(tx) for column in columns], fillvalue=fillvalue))


@_iterates(itertools.pairwise, 1, 1)
def _pairwise(tx: Context, values: Value) -> Iterator[Value]:
    return map(_tuple, itertools.pairwise(values.iterate(tx)))


@_iterates(itertools.product, 0, _MANY, "repeat")
def _product(tx: Context, *columns: Value, repeat: Value = _ONE) -> Iterator[Value]:
    count = index_of(repeat)
    if count < 0:
        raise CannotCapture("operation-raises", "repeat argument cannot be negative")
    return map(_tuple, itertools.product(*[column.collect(tx, tuple) for column in columns], repeat=count))


def _choices(function: Callable[..., Any], needs_count: bool) -> None:
    def make(tx: Context, values: Value, r: Value = _NONE) -> Iterator[Value]:
        if r.is_none and needs_count:
            raise CannotCapture("operation-raises", "r is missing")
        pool = list(values.collect(tx, tuple))
        count = len(pool) if r.is_none else index_of(r)
        if count < 0:
            raise CannotCapture("operation-raises", "r must be non-negative")
        return map(_tuple, function(pool, count))

    _iterates(function, 1, 2, "r")(make)


_choices(itertools.combinations, True)
_choices(itertools.combinations_with_replacement, True)
_choices(itertools.permutations, False)
if sys.version_info >= (3, 12):

    @_iterates(itertools.batched, 2, 2)
    def _batched(tx: Context, values: Value, n: Value) -> Iterator[Value]:
        if index_of(n) < 1:
            raise CannotCapture("operation-raises", "n must be at least one")
        return map(_tuple, itertools.batched(values.iterate(tx), index_of(n)))


# -- operator --------------------------------------------------------------------------------------------------------
GETTERS = (operator.itemgetter, operator.attrgetter, operator.methodcaller)


def call_getter(tx: Context, getter: Any, args: Sequence[Value], kwargs: Mapping[str, Value]) -> Value:
    """The result of ``itemgetter(…)``, ``attrgetter(…)`` or ``methodcaller(…)`` for one object."""
    made = getter.__reduce__()
    if len(args) != 1 or kwargs or made[0] is not type(getter) or not made[1]:
        raise CannotCapture("unknown-function", f"`{type(getter).__name__}`")
    (owner,) = args
    if isinstance(getter, operator.methodcaller):
        return attribute(tx, owner, made[1][0]).call(tx, [Constant(value) for value in made[1][1:]], {})
    found = []
    for key in made[1]:
        if isinstance(getter, operator.itemgetter):
            found.append(owner.item(tx, Constant(key)))
            continue
        value = owner
        for name in key.split("."):
            value = attribute(tx, value, name)
        found.append(value)
    return found[0] if len(found) == 1 else _tuple(found)


def _getter(cls: Any) -> None:
    def make(tx: Context, args: Sequence[Value], kwargs: Mapping[str, Value]) -> Value:
        given = [hashable(arg, f"an argument of {cls.__name__}") for arg in args]
        try:
            return Constant(cls(*given))
        except TypeError as error:
            raise CannotCapture("operation-raises", str(error)) from error

    _means(cls, 1, _MANY)(make)


for _cls in GETTERS:
    _getter(_cls)


@_means(operator.setitem, 3, 3)
def _setitem(tx: Context, args: Sequence[Value], kwargs: Mapping[str, Value]) -> Value:
    args[0].store_item(tx, args[1], args[2])
    return Constant(None)


@_means(operator.delitem, 2, 2)
def _delitem(tx: Context, args: Sequence[Value], kwargs: Mapping[str, Value]) -> Value:
    args[0].delete_item(tx, args[1])
    return Constant(None)


@_means(operator.is_not, 2, 2)
def _is_not(tx: Context, args: Sequence[Value], kwargs: Mapping[str, Value]) -> Value:
    return Constant(not identical(tx, args[0], args[1]))


@_means(operator.countOf, 2, 2)
def _count_of(tx: Context, args: Sequence[Value], kwargs: Mapping[str, Value]) -> Value:
    found = [contains(tx, _tuple([value]), args[1]) for value in args[0].iterate(tx)]
    return Constant(sum(found))


# -- math ------------------------------------------------------------------------------------------------------------
@_means(math.prod, 1, 1, "start")
def _prod(tx: Context, args: Sequence[Value], kwargs: Mapping[str, Value]) -> Value:
    start = kwargs.get("start", _ONE)
    factors = list(args[0].iterate(tx))
    if not all(issubclass(value.python_type, int) for value in [start, *factors]):
        plain, first = [constant_of(value, "a factor") for value in factors], constant_of(start, "a factor")
        return tx.fold(lambda: math.prod(plain, start=first), (), {})
    for value in factors:
        start = binary(tx, "*", start, value)
    return start


@_means(math.fsum, 1, 1)
def _fsum(tx: Context, args: Sequence[Value], kwargs: Mapping[str, Value]) -> Value:
    plain = [constant_of(value, "a number") for value in args[0].iterate(tx)]
    return tx.fold(lambda: math.fsum(plain), (), {})
