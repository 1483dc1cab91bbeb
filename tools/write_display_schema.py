"""Writes displays.schema.json of tcompile_jupyter from the view classes: python tools/write_display_schema.py"""

from __future__ import annotations

import json

from tcompile_jupyter.displays import PATH, schema


def text() -> str:
    """The file's content."""
    return json.dumps(schema(), indent=1) + "\n"


if __name__ == "__main__":
    PATH.write_text(text(), encoding="utf-8")
