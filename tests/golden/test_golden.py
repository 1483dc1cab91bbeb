"""What the compiler makes of some programs is what it was.

Input: the programs of ``programs.py``, and for each its text in the folder ``texts``.
Output: an AssertionError with the lines that differ.
Why: a change that only moves or renames code leaves every text as it was; any other is seen here, stage by stage.
"""

from __future__ import annotations

import difflib
import platform
import sys
from pathlib import Path

import pytest

if sys.platform != "linux" or platform.machine() != "x86_64":
    pytest.skip("the texts are those of Linux on x86-64", allow_module_level=True)
if sys.version_info[:2] > (3, 13):
    pytest.skip("the texts are those of CPython 3.11 to 3.13", allow_module_level=True)

from tests.golden.programs import PROGRAMS
from tests.golden.texts import text_of

FOLDER = Path(__file__).resolve().parent / "texts"
WRITTEN_ON = (3, 11)  # the version of CPython of those texts that depend on it
MOST_LINES = 200  # of a difference


@pytest.mark.parametrize("name", PROGRAMS)
def test_text(name: str, request: pytest.FixtureRequest) -> None:
    """The text of a program, or with ``--update-golden`` writes it."""
    program = PROGRAMS[name]
    if program.bytecode and sys.version_info[:2] != WRITTEN_ON:
        pytest.skip(f"another version of CPython has other bytecode for it than {WRITTEN_ON[0]}.{WRITTEN_ON[1]}")
    path, text = FOLDER / f"{name}.txt", text_of(program)
    if request.config.getoption("update_golden"):
        FOLDER.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
    written = path.read_text(encoding="utf-8") if path.exists() else ""
    if text != written:
        pytest.fail(_difference(written, text, path.name), pytrace=False)


def test_every_text_has_its_program(request: pytest.FixtureRequest) -> None:
    """No text is left of a program that is gone; ``--update-golden`` removes it."""
    left = [path for path in FOLDER.glob("*.txt") if path.stem not in PROGRAMS]
    if request.config.getoption("update_golden"):
        for path in left:
            path.unlink()
        return
    assert not left, "no program has these texts; `pytest tests/golden --update-golden` removes them"


def _difference(written: str, text: str, name: str) -> str:
    """What differs, and how to accept it."""
    names = f"{name} as written", f"{name} now"
    lines = list(difflib.unified_diff(written.splitlines(), text.splitlines(), *names, lineterm=""))
    more = [f"... and {len(lines) - MOST_LINES} more lines"] if len(lines) > MOST_LINES else []
    told = "Where this is meant, `pytest tests/golden --update-golden` writes the texts anew; review the git diff."
    return "\n".join([*lines[:MOST_LINES], *more, "", told])
