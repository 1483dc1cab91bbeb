"""Writes the list of all graph breaks into docs/graph_breaks.md.

Enters: the catalogue in tcompile/capture/breaks.py, and the page. Leaves: the page, its last section new. Exists
so that the page has every reason; a test fails when it has not.

    python tools/write_graph_breaks.py
"""

from __future__ import annotations

import re
from pathlib import Path

from tcompile.capture.breaks import CATALOGUE

PAGE = Path(__file__).resolve().parent.parent / "docs" / "graph_breaks.md"
HEADING = "## All reasons\n"


def page(text: str) -> str:
    """The page with its last section as the catalogue has it."""
    before, heading, section = text.partition(HEADING)
    introduction = section.partition("\n### ")[0].strip()
    parts = [before + heading, f"{introduction}\n"]
    for reason in CATALOGUE.values():
        parts.append(f"### `{reason.id}`\n\n{_code(reason.headline)}.\n")
        if reason.hints:
            parts.append("".join(f"- {_code(hint)}\n" for hint in reason.hints))
    return "\n".join(parts)


def _code(text: str) -> str:
    """Names of functions and settings as code."""
    return re.sub(r"(?<!`)\b((?:np|tcompile|config)\.[\w.]*\w(?:\([^)]*\))?)", r"`\1`", text)


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
