"""The events as a JSON Schema, for readers that are not Python.

Input: the event classes.
Output: a schema (draft 2020-12) that every ``Event.as_dict()`` satisfies, with one definition for each kind.
Why: the front end's types, and files of events, are checked against the classes themselves.
``tools/write_event_schema.py`` writes it to ``events.schema.json`` beside this file.
"""

from __future__ import annotations

import dataclasses
import inspect
import types
import typing
from pathlib import Path
from typing import Any

from tcompile.observe.events import EVENTS, SCHEMA_VERSION, Event
from tcompile.observe.source_location import UserLine

PATH = Path(__file__).with_name("events.schema.json")
_PLAIN = {str: "string", int: "integer", float: "number", bool: "boolean", type(None): "null"}


def schema() -> dict[str, Any]:
    """Returns the JSON Schema of one event.

    >>> schema()["$defs"]["FellBack"]["properties"]["kind"]
    {'const': 'fell_back'}
    """
    definitions: dict[str, Any] = {UserLine.__name__: record(UserLine, {}, {})}
    for kind in EVENTS:
        fixed = {"kind": {"const": kind.kind}, "schema": {"const": SCHEMA_VERSION}}
        definitions[kind.__name__] = record(kind, fixed, definitions)
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "An event of tcompile",
        "version": SCHEMA_VERSION,
        "oneOf": [{"$ref": f"#/$defs/{kind.__name__}"} for kind in EVENTS],
        "$defs": definitions,
    }


def record(cls: type[Any], fixed: dict[str, Any], definitions: dict[str, Any]) -> dict[str, Any]:
    """Returns the schema of a dataclass, with ``fixed`` properties before its fields.

    Fields whose names begin with ``get_`` or ``draw_`` are not part of the JSON. Nested dataclasses are added to
    ``definitions``.
    """
    hints = typing.get_type_hints(cls)
    names = [f.name for f in dataclasses.fields(cls) if not f.name.startswith(("get_", "draw_"))]
    properties = {**fixed, **{name: _type(hints[name], definitions) for name in names}}
    if issubclass(cls, Event):
        properties |= {name: {"type": "string"} for name in cls.texts}
    return {
        "type": "object",
        "description": inspect.cleandoc(cls.__doc__ or "").partition("\n")[0],
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def _type(hint: Any, definitions: dict[str, Any]) -> dict[str, Any]:
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if dataclasses.is_dataclass(hint) and isinstance(hint, type):
        if hint.__name__ not in definitions:
            definitions[hint.__name__] = {}  # it may contain itself
            definitions[hint.__name__] = record(hint, {}, definitions)
        return {"$ref": f"#/$defs/{hint.__name__}"}
    if hint in _PLAIN:
        return {"type": _PLAIN[hint]}
    if origin in (types.UnionType, typing.Union):
        if all(part in _PLAIN for part in arguments):
            return {"type": [_PLAIN[part] for part in arguments]}
        return {"anyOf": [_type(part, definitions) for part in arguments]}
    if origin is tuple and arguments[1:] == (...,):
        return {"type": "array", "items": _type(arguments[0], definitions)}
    if origin is dict and arguments[0] is str:
        return {"type": "object", "additionalProperties": _type(arguments[1], definitions)}
    raise TypeError(f"a field has a type that JSON does not have: {hint}")


__all__ = ["PATH", "record", "schema"]
