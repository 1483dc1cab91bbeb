"""README.md names the reports that the programs are about, in their words."""

from __future__ import annotations

import re
from pathlib import Path

from reports import (
    test_aliasing,
    test_caching,
    test_dtypes,
    test_exceptions,
    test_functions,
    test_indexing,
    test_loops,
    test_objects,
    test_random,
)
from reports.programs import REPOSITORIES

KINDS = (
    test_aliasing, test_dtypes, test_functions, test_indexing, test_loops, test_exceptions, test_objects, test_caching,
    test_random,
)  # fmt: skip
FOLDER = Path(__file__).parent
ROW = re.compile(r"\| ([\w/-]+#\d+) \| (.+) \| (.+) \|")
OUTCOME = re.compile(r"right from the start|right, with a graph break \(.+\)|was wrong, mended in .+|a deviation: .+")


def test_page_and_programs_name_the_same_reports():
    listed = [match.groups() for match in ROW.finditer((FOLDER / "README.md").read_text(encoding="utf-8"))]
    programs = []
    for kind in KINDS:
        for number, situation in kind.TABLE.situations.items():
            name, count = number.split("-")
            programs.append((f"{REPOSITORIES[name]}#{count}", situation))
    assert [row[:2] for row in listed] == programs
    assert len({report for report, _ in programs}) == len(programs) >= 200
    assert all(OUTCOME.fullmatch(row[2]) for row in listed)


def test_every_file_of_programs_is_listed():
    assert {f"{kind.__name__.rpartition('.')[2]}.py" for kind in KINDS} | {"test_readme.py"} == {
        path.name for path in FOLDER.glob("test_*.py")
    }
