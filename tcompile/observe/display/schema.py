"""The JSON of the displays as a JSON Schema.

Input: view classes.
Output: a schema (draft 2020-12) that every ``View.data()`` satisfies.
Why: front ends can draw the displays by themselves.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tcompile.observe.display.view import VERSION, View
from tcompile.observe.schema import record


def schema_of(views: Iterable[type[View]]) -> dict[str, Any]:
    """Returns the JSON Schema of the data of any of ``views``."""
    definitions: dict[str, Any] = {}
    roots = []
    for view in views:
        fixed = {"kind": {"const": view.kind}, "version": {"const": VERSION}}
        inner = record(view, {}, definitions)
        definitions[view.__name__] = inner
        # A nested view is its fields alone; a display by itself has its kind.
        roots.append(
            {
                "type": "object",
                "title": view.mime(),
                "properties": {**fixed, **inner["properties"]},
                "required": [*fixed, *inner["required"]],
                "additionalProperties": False,
            }
        )
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "A display of tcompile",
        "version": VERSION,
        "oneOf": roots,
        "$defs": dict(sorted(definitions.items())),
    }


__all__ = ["schema_of"]
