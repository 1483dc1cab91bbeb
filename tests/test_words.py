"""Retired words stay retired: one word for one thing, and the field's word where there is one.

Input: the table in the last section of docs/glossary.md, and the texts of the tree.
Output: a failure for each place with a retired word: its file, line, the word, and the word to use.
Why: a word that was replaced everywhere returns with the next change, unless a test finds it.
"""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
GLOSSARY = ROOT / "docs" / "glossary.md"
FOLDERS = ("tcompile", "jupyter_ext", "docs", "tests")
SUFFIXES = (".py", ".md", ".ll")
SPACE = r"(?:_|\s+(?:# )?)"  # between words of a phrase, also in a name, and in a comment of several lines
START = r"(?:(?<![A-Za-z])|(?<=[a-z])(?=[A-Z]))"  # of a word, also inside of a name


def retired() -> dict[str, tuple[str, list[str]]]:
    """By retired word, the word to use, and the texts and folders in which it may stand."""
    section = GLOSSARY.read_text(encoding="utf-8").partition("\n## Retired words\n")[2]
    rows = [line.strip("| ").split(" | ") for line in section.splitlines() if line.startswith("| `")]
    found = {}
    for words, use, *allowed in rows:
        for word in re.findall("`([^`]+)`", words):
            found[word] = use, re.findall("`([^`]+)`", " ".join(allowed))
    return found


def key(text: str) -> str:
    """A found text as the table has it: ``Element_loops`` is "element loops"."""
    return re.sub(r"[\s_#]+", " ", text).lower()


def pattern(words: list[str]) -> re.Pattern[str]:
    """Finds retired phrases in prose and names, retired names, and retired modules in backticks."""
    phrases = sorted((word for word in words if re.fullmatch("[a-z ]+", word) and not is_name(word)), key=len)[::-1]
    names = [word for word in words if is_name(word)]
    modules = [word.removesuffix(".py") for word in words if word.endswith(".py")]
    either_case = [f"[{word[0]}{word[0].upper()}]{word[1:].replace(' ', SPACE)}" for word in phrases]
    return re.compile(
        rf"{START}(?P<phrase>{'|'.join(either_case)})(?![a-z])"
        rf"|(?<!\w)(?P<name>{'|'.join(names)})(?!\w)"
        rf"|`(?:[\w./]*[./])?(?P<module>{'|'.join(modules)})(?:\.py)?`"
    )


def is_name(word: str) -> bool:
    """Whether a retired word is a name of code, which matches only as it stands."""
    return ("_" in word and not word.endswith(".py")) or bool(re.fullmatch(r"\w*[a-z][A-Z]\w*", word))


def is_inside(text: str, match: re.Match[str], allowed: str) -> bool:
    """Whether a found word is part of an allowed text."""
    start = max(0, match.start() - 40)
    found = re.finditer(re.escape(allowed).replace(r"\ ", SPACE), text[start : match.end() + 40], re.IGNORECASE)
    return any(one.start() + start <= match.start() and match.end() <= one.end() + start for one in found)


def places(text: str, file: str, table: dict[str, tuple[str, list[str]]], find: re.Pattern[str]) -> list[str]:
    """The lines of a text with retired words that are not allowed there."""
    found = []
    for match in find.finditer(text):
        word = match["name"] or (f"{match['module']}.py" if match["module"] else key(match["phrase"]))
        use, allowed = table[word]
        if any(file.startswith(one) if "/" in one else is_inside(text, match, one) for one in allowed):
            continue
        line = text.count("\n", 0, match.start()) + 1
        found.append(f"{file}:{line}: {match[0].strip('`')!r} is retired: say {use}")
    return found


def test_no_retired_word_is_used():
    table = retired()
    find = pattern(list(table))
    found = []
    for folder in FOLDERS:
        for path in (ROOT / folder).rglob("*"):
            if path.suffix in SUFFIXES and path not in (GLOSSARY, Path(__file__)) and "node_modules" not in path.parts:
                file = path.relative_to(ROOT).as_posix()
                found += places(path.read_text(encoding="utf-8"), file, table, find)
    assert not found, "\n".join(sorted(found))


def test_words_are_found_in_prose_and_in_names():
    table = {
        "round trip time": ("x", []), "rounds": ("iterations", ["it rounds"]), "is_thin": ("has_small_rows", []),
        "thin.py": ("small_rows.py", []), "ThinNest": ("SmallRowsNest", []), "host": ("rewritten code", ["docs/"]),
    }  # fmt: skip
    find = pattern(list(table))
    text = (
        "as it rounds, FewRounds\nmany_rounds rounded is_thin this_is_thin `triton/thin.py` thin ThinNest\nHost hosts"
    )
    assert places(text, "tests/a.py", table, find) == [
        "tests/a.py:1: 'Rounds' is retired: say iterations",
        "tests/a.py:2: 'rounds' is retired: say iterations",
        "tests/a.py:2: 'is_thin' is retired: say has_small_rows",
        "tests/a.py:2: 'triton/thin.py' is retired: say small_rows.py",
        "tests/a.py:2: 'ThinNest' is retired: say SmallRowsNest",
        "tests/a.py:3: 'Host' is retired: say rewritten code",
    ]
    assert places("host", "docs/a.md", table, find) == []
