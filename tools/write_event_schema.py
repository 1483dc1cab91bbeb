"""Writes tcompile/observe/events.schema.json from the event classes: python tools/write_event_schema.py"""

from __future__ import annotations

import json

from tcompile.observe.schema import PATH, schema


def text() -> str:
    """The file's content."""
    return json.dumps(schema(), indent=1) + "\n"


if __name__ == "__main__":
    PATH.write_text(text(), encoding="utf-8")
