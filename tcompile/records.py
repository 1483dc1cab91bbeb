"""Dataclasses with lazily generated methods.

Input: a class with annotated fields.
Output: the same class, which behaves as ``dataclasses.dataclass`` would make it.
Why: the standard decorator generates and compiles up to six functions for each class. For tcompile's classes that was a
third of the time from ``import tcompile`` to the first result.

Here comparison, hash and text are shared functions, and ``__init__`` is generated when the first object is made. Most
classes are never instantiated in a process. The attributes that ``dataclasses.fields``, ``replace`` and ``asdict`` read
are computed on access. There are no slots: they would need a new class.

To the type checker, ``dataclass`` is the standard one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import MISSING, Field, FrozenInstanceError, field, make_dataclass
from operator import attrgetter
from reprlib import recursive_repr
from typing import TYPE_CHECKING, Any, NoReturn

_FIELDS = "__record_fields__"


def _record(cls: type, frozen: bool, eq: bool, kw_only: bool) -> type:
    """Adds the dataclass methods to ``cls`` and returns it."""
    fields: dict[str, Field[Any]] = {}
    for base in cls.__mro__[:0:-1]:
        fields |= base.__dict__.get(_FIELDS, {})
    for name, kind in cls.__annotations__.items():
        if not kind.startswith("ClassVar"):
            fields[name] = _own_field(cls, name, kw_only)
    own = cls.__dict__
    made: dict[str, Any] = {_FIELDS: fields, "__init__": _first_init(cls, fields, frozen)}
    made["__match_args__"] = tuple(name for name, one in fields.items() if not one.kw_only)
    if "__repr__" not in own:
        made["__repr__"] = _text
    if eq:
        same, number = _comparison([name for name, one in fields.items() if one.compare])
        if own.get("__hash__") is None:
            made["__hash__"] = number if frozen else None
        if "__eq__" not in own:
            made["__eq__"] = same
    if frozen:
        made |= {"__setattr__": _no_assignment, "__delattr__": _no_deletion}
    for name in ("__dataclass_fields__", "__dataclass_params__"):
        made[name] = _Standard(cls, name, frozen, eq)
    for name, value in made.items():
        setattr(cls, name, value)
    return cls


def _own_field(cls: type, name: str, kw_only: bool) -> Field[Any]:
    given = cls.__dict__.get(name, MISSING)
    if not isinstance(given, Field):
        made: Field[Any] = field(default=given, kw_only=kw_only)
        return made
    if given.kw_only is MISSING:
        given.kw_only = kw_only
    if given.default is MISSING:
        delattr(cls, name)
    else:
        setattr(cls, name, given.default)
    return given


def _first_init(cls: type, fields: dict[str, Field[Any]], frozen: bool) -> Callable[..., None]:
    """Returns an ``__init__`` that replaces itself by the generated one. Two threads that race write the same."""

    def __init__(self: Any, /, *args: Any, **kwargs: Any) -> None:
        right = _write_init(cls, fields, frozen)
        type.__setattr__(cls, "__init__", right)
        right(self, *args, **kwargs)

    return __init__


def _write_init(cls: type, fields: dict[str, Field[Any]], frozen: bool) -> Callable[..., None]:
    names: dict[str, Any] = {"__name__": __name__, "made_": MISSING, "set_": object.__setattr__}
    head: list[str] = []
    named: list[str] = []
    body: list[str] = []
    for name, one in fields.items():
        value, default = name, ""
        if one.default is not MISSING:
            default = f"=default_{name}"
            names[f"default_{name}"] = one.default
        elif one.default_factory is not MISSING:
            default = "=made_"
            names[f"factory_{name}"] = one.default_factory
            value = f"factory_{name}() if {name} is made_ else {name}"
        (named if one.kw_only else head).append(name + default)
        body.append(f" set_(self, {name!r}, {value})" if frozen else f" self.{name} = {value}")
    if hasattr(cls, "__post_init__"):
        body.append(" self.__post_init__()")
    parameters = ", ".join(["self", *head, *(["*", *named] if named else [])])
    exec(f"def __init__({parameters}):\n" + "\n".join(body or [" pass"]), names)
    init: Callable[..., None] = names["__init__"]
    init.__qualname__ = f"{cls.__qualname__}.__init__"
    init.__module__ = cls.__module__
    return init


def _comparison(names: list[str]) -> tuple[Callable[..., Any], Callable[[Any], int]]:
    """Returns ``__eq__`` and ``__hash__`` by the tuple of these attributes."""
    values: Callable[[Any], Any]
    if len(names) > 1:
        values = attrgetter(*names)
    else:

        def values(record: Any) -> Any:
            return tuple(getattr(record, name) for name in names)

    def __eq__(self: Any, other: object) -> Any:
        return values(self) == values(other) if other.__class__ is self.__class__ else NotImplemented

    def __hash__(self: Any) -> int:
        return hash(values(self))

    return __eq__, __hash__


@recursive_repr()
def _text(self: Any) -> str:
    shown = (name for name, one in getattr(self, _FIELDS).items() if one.repr)
    return f"{self.__class__.__qualname__}({', '.join(f'{name}={getattr(self, name)!r}' for name in shown)})"


def _no_assignment(self: Any, name: str, value: Any) -> NoReturn:
    raise FrozenInstanceError(f"cannot assign to field {name!r}")


def _no_deletion(self: Any, name: str) -> NoReturn:
    raise FrozenInstanceError(f"cannot delete field {name!r}")


class _Standard:
    """The attributes that the standard library reads of a dataclass, taken from one that it makes itself."""

    def __init__(self, cls: type, name: str, frozen: bool, eq: bool) -> None:
        self.cls, self.name, self.frozen, self.eq = cls, name, frozen, eq

    def __get__(self, record: Any, kind: type) -> Any:
        kinds: dict[str, Any] = {}
        for base in self.cls.__mro__[-2::-1]:
            kinds |= base.__annotations__
        items = [(name, kinds[name], one) for name, one in getattr(self.cls, _FIELDS).items()]
        found = getattr(make_dataclass(self.cls.__name__, items, frozen=self.frozen, eq=self.eq), self.name)
        setattr(self.cls, self.name, found)
        return found


if TYPE_CHECKING:
    from dataclasses import dataclass
else:

    def dataclass(
        cls: type | None = None, /, *, frozen: bool = False, eq: bool = True, kw_only: bool = False
    ) -> type | Callable[[type], type]:
        """Makes a class's annotations its fields, like ``dataclasses.dataclass``; a decorator.

        >>> @dataclass(frozen=True)
        ... class Point:
        ...     x: "int"
        ...     y: "int" = 0
        >>> Point(1), Point(1) == Point(1, 0), len({Point(2), Point(2)})
        (Point(x=1, y=0), True, 1)
        """
        if cls is None:
            return lambda cls: _record(cls, frozen, eq, kw_only)
        return _record(cls, frozen, eq, kw_only)


__all__ = ["dataclass"]
