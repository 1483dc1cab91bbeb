"""What a newcomer asks is found in three clicks, or by one search.

Input: the rows of docs/internals/find_it.md. Output: an AssertionError that names the row.
Why: the page is true only as long as its links, searches and names lead to the files that it names.
"""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "internals" / "find_it.md"
ROW = re.compile(r"^\| (.+\?) \| (README .+) \| `(.+)` \| `(\S+)` \| `(\w+)` \|$", re.MULTILINE)
ROWS = ROW.findall(PAGE.read_text(encoding="utf-8"))


def defined(tree: ast.Module) -> set[str]:
    """The names of all functions, classes and variables of a module."""
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            found.add(node.name)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            found.add(node.id)
    return found


def links(page: Path) -> set[Path]:
    text = page.read_text(encoding="utf-8")
    return {(page.parent / target).resolve() for target in re.findall(r"\]\(([^)#:]+)", text)}


def test_all_rows_are_read():
    lines = PAGE.read_text(encoding="utf-8").splitlines()
    assert len(ROWS) == sum(line.startswith("| ") for line in lines) - 1 and len(ROWS) >= 20


@pytest.mark.parametrize("question, way, search, file, name", ROWS, ids=[row[0] for row in ROWS])
def test_a_question_is_answered(question, way, search, file, name):
    assert name in defined(ast.parse((ROOT / file).read_text(encoding="utf-8"))), f"{file} has no {name}"
    pages = [(PAGE.parent / target).resolve() for target in re.findall(r"\]\(([^)]+)\)", way)]
    assert len(pages) <= 2, "the file is the third click"
    at = ROOT / "README.md"
    for page in pages:
        assert page in links(at), f"{at.name} has no link to {page.name}"
        at = page
    folder = file.rpartition("/")[0]
    text = at.read_text(encoding="utf-8")
    assert f"`{file}`" in text or f"`{folder}/`" in text, f"{at.name} names neither {file} nor its folder"
    found = {
        path.relative_to(ROOT).as_posix()
        for path in (ROOT / "tcompile").rglob("*.py")
        if search in path.read_text(encoding="utf-8")
    }
    assert file in found, f"the search does not find {file}"
