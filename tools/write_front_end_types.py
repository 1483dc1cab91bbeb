"""Writes the TypeScript types of the kernel's messages to the JupyterLab extension.

Input: the JSON Schemas of the events and of the displays.
Output: ``labextension/src/generated/``, one file for each.
Why: the front end cannot disagree with the classes: ``tests/labextension/test_types.py`` fails if the files are
outdated.

    python tools/write_front_end_types.py
"""

from __future__ import annotations

import json
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tcompile_jupyter.displays import schema as displays_schema

from tcompile.observe.schema import schema as events_schema

FOLDER = Path(__file__).resolve().parent.parent / "labextension" / "src" / "generated"
_PLAIN = {"string": "string", "integer": "number", "number": "number", "boolean": "boolean", "null": "null"}


def typescript(schema: dict[str, Any], source: str) -> str:
    """Returns the types of a schema: an interface for each definition, and ``Any…`` for the schema itself."""
    parts = [
        f"// {schema['title']}: the types of its JSON. Made of {source} by tools/write_front_end_types.py.\n",
        f"/** The version that these types speak of. */\nexport const VERSION = {schema['version']};\n",
    ]
    for name, definition in schema["$defs"].items():
        parts.append(_interface(name, definition))
    for root in schema["oneOf"]:
        if "properties" in root:
            parts.append(_interface(_title(root), root))
    names = [_reference(root) if "$ref" in root else _title(root) for root in schema["oneOf"]]
    lines = "".join(f"\n  | {name}" for name in names)
    parts.append(f"/** {schema['title']}. */\nexport type {'Shown' if 'properties' in root else 'Event'} ={lines};\n")
    return "\n".join(parts)


def files() -> dict[Path, str]:
    """Returns the contents of each file."""
    return {
        FOLDER / "events.ts": typescript(events_schema(), "tcompile/observe/events.schema.json"),
        FOLDER / "displays.ts": typescript(displays_schema(), "jupyter_ext/tcompile_jupyter/displays.schema.json"),
    }


def _title(root: dict[str, Any]) -> str:
    """Returns ``ShownGraphBreak`` for the display of kind "graph-break"."""
    return "Shown" + "".join(part.capitalize() for part in str(root["properties"]["kind"]["const"]).split("-"))


def _interface(name: str, definition: dict[str, Any]) -> str:
    about = definition.get("description") or f"The JSON of the type ``{definition['title']}``."
    about = about.replace("``", "`")
    return f"{_comment(about)}export interface {name} {{\n{''.join(_fields(definition))}}}\n"


def _comment(text: str) -> str:
    if len(text) <= 110:
        return f"/** {text} */\n"
    lines = textwrap.wrap(text, 110)
    return "/**\n" + "".join(f" * {line}\n" for line in lines) + " */\n"


def _fields(definition: dict[str, Any]) -> Iterator[str]:
    for name, described in definition["properties"].items():
        yield f"  {name}: {_type(described)};\n"


def _reference(described: dict[str, Any]) -> str:
    return str(described["$ref"]).rpartition("/")[2]


def _type(described: dict[str, Any]) -> str:
    if "$ref" in described:
        return _reference(described)
    if "const" in described:
        return json.dumps(described["const"])
    if "anyOf" in described:
        return " | ".join(_type(part) for part in described["anyOf"])
    kind = described["type"]
    if isinstance(kind, list):
        return " | ".join(_PLAIN[part] for part in kind)
    if kind == "array":
        item = _type(described["items"])
        return f"({item})[]" if " " in item else f"{item}[]"
    if kind == "object":
        return f"Record<string, {_type(described['additionalProperties'])}>"
    return _PLAIN[kind]


if __name__ == "__main__":
    FOLDER.mkdir(parents=True, exist_ok=True)
    for path, text in files().items():
        path.write_text(text, encoding="utf-8")
