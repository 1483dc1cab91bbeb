"""Writes the list of all graph breaks into docs/graph_breaks.md.

Input: the catalogue in tcompile/capture/guards/graph_breaks.py, its examples beside this file, and the page.
Output: the page, its last section new.
Why: the page has every reason, with a program that breaks, its report, and the rewrite. A test fails if it is outdated.

    python tools/write_graph_breaks.py
"""

from __future__ import annotations

import builtins
import contextlib
import io
import linecache
import re
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from graph_break_examples import EXAMPLES, HERE, Example

import tcompile
from tcompile.capture.guards.graph_breaks import CATALOGUE
from tcompile.observe import bus
from tcompile.observe.events import GraphBroke

PAGE = Path(__file__).resolve().parent.parent / "docs" / "graph_breaks.md"
HEADING = "## All reasons\n"
FILE = "example.py"


def run(source: str, example: Example, compile: bool) -> tuple[Any, list[GraphBroke]]:
    """Returns the value of the example's call, with ``f`` from ``source`` plain or compiled, and its breaks."""
    linecache.cache[FILE] = (len(source), None, source.splitlines(keepends=True), FILE)
    names: dict[str, Any] = {"np": np, "tcompile": tcompile, "x": np.array([1.0, 2.0, -3.0, 4.0])}
    seen: list[GraphBroke] = []

    def note(event: object) -> None:
        if isinstance(event, GraphBroke):
            seen.append(event)

    quiet = contextlib.redirect_stdout(io.StringIO())
    with bus.listening(note), tcompile.config.patch(**example.settings), warnings.catch_warnings(), quiet:
        warnings.simplefilter("ignore", SyntaxWarning)  # `is` between numbers
        exec(builtins.compile(source, FILE, "exec"), names)
        if compile:
            names["f"] = tcompile.compile(names["f"], backend="eager")
        return eval(example.call, names), seen


def page(text: str) -> str:
    """Returns the page with its last section made of the catalogue."""
    before, heading, section = text.partition(HEADING)
    introduction = section.partition("\n### ")[0].strip()
    parts = [before + heading, f"{introduction}\n"]
    for reason in CATALOGUE.values():
        parts.append(f"### `{reason.id}`\n\n{_code(reason.headline)}.\n")
        example = EXAMPLES.get(reason.id)
        if example is not None:
            parts.append(f"```python\n{example.program}```\n\n> {_why(example)}\n")
        if reason.hints:
            parts.append("".join(f"- {_code(hint)}\n" for hint in reason.hints))
        if example is not None:
            parts.append(f"```python\n{example.rewrite}```\n")
    return "\n".join(parts)


def _why(example: Example) -> str:
    """Returns the report about the example's break."""
    _, (broke, *_) = run(example.program, example, compile=True)
    return _code(broke.explanation)


def _code(text: str) -> str:
    """Formats names of functions and settings as code."""
    return re.sub(r"(?<!`)\b((?:np|tcompile|config)\.[\w.]*\w(?:\([^)]*\))?)", r"`\1`", text)


__all__ = ["EXAMPLES", "HERE", "PAGE", "page", "run"]

if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
