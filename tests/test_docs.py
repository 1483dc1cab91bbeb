"""The pages in docs/ name things that exist."""

from __future__ import annotations

import doctest
import math
import re
from pathlib import Path

import pytest

from tcompile.annotations import treatments
from tcompile.backends.llvm.vector import vmath
from tcompile.observe.logs import ARTIFACTS
from tcompile.stance import STANCES

ROOT = Path(__file__).resolve().parent.parent
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
HOWTOS = sorted((ROOT / "docs" / "howto").glob("add_*.md"))
INTERNALS = sorted((ROOT / "docs" / "internals").glob("*.md"))
OF_CODE = [
    "docs/tour.md", "docs/glossary.md", "CONTRIBUTING.md",
    *(page.relative_to(ROOT).as_posix() for folder in ("internals", "howto", "decisions")
      for page in sorted((ROOT / "docs" / folder).glob("*.md"))),
]  # fmt: skip


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8")):
        assert (page.parent / target).exists(), target


def test_every_graph_break_is_described(load_tool):
    tool = load_tool("write_graph_breaks")
    text = tool.PAGE.read_text(encoding="utf-8")
    assert text == tool.page(text), "run: python tools/write_graph_breaks.py"


def test_every_numpy_name_is_listed(load_tool):
    tool = load_tool("write_numpy_coverage")
    text = tool.PAGE.read_text(encoding="utf-8")
    if f"| NumPy {tool.version()} |" not in text:
        pytest.skip("the page lists the names of another NumPy")
    assert text == tool.page(), "run: python tools/write_numpy_coverage.py"


def test_every_vector_function_is_measured(load_tool):
    tool = load_tool("write_vector_math")
    text = tool.PAGE.read_text(encoding="utf-8")
    for dtype in tool.DTYPES:
        section = text.partition(f"## {dtype}\n")[2].partition("## ")[0]
        rows = dict(re.findall(r"^\| `np\.(\w+)` \| [\d.]+ \| ([\d.]+) \|", section, flags=re.MULTILINE))
        assert set(rows) == {name for name, _, _ in (tool.ONE | tool.TWO).values()}
        assert max(map(float, rows.values())) <= 4  # as docs/numerics.md promises
    assert {name for name in vmath.FUNCTIONS if name not in ("fmod", "nextafter")} <= set(tool.ONE | tool.TWO)
    ulp_numpy, ulp_ours, ns_numpy, ns_ours = tool.measure("tanh", "float32", 0.0)
    assert 0.5 <= ulp_numpy <= 4 and 0.5 <= ulp_ours <= 4 and min(ns_numpy, ns_ours) > 0


@pytest.mark.parametrize(
    "page, least", [("control.md", 40), ("debugging.md", 12), ("loops.md", 30), ("notebooks.md", 8)]
)
def test_the_examples_of_a_page_run(page, least):
    flags = doctest.ELLIPSIS | doctest.IGNORE_EXCEPTION_DETAIL
    try:
        failed, ran = doctest.testfile(str(ROOT / "docs" / page), module_relative=False, optionflags=flags)
    finally:
        treatments._table.pop(id(math.dist), None)
    assert not failed and ran >= least


@pytest.mark.parametrize("page", HOWTOS, ids=lambda page: page.stem)
def test_a_how_to_shows_code_that_is_there_and_runs(page):
    blocks = re.findall(r"^```python\n# (\S+)\n(.*?)^```", page.read_text(encoding="utf-8"), flags=re.M | re.S)
    for file, code in blocks:
        assert code in (ROOT / file).read_text(encoding="utf-8"), f"{file} has no such code:\n{code}"
    failed, ran = doctest.testfile(str(page), module_relative=False)
    assert blocks and ran and not failed


def test_pictures_are_there_in_both_themes():
    shown = set()
    for page in PAGES:
        for target in re.findall(r'(?:src|srcset)="([^"]+)"', page.read_text(encoding="utf-8")):
            assert (page.parent / target).exists(), target
            shown.add((page.parent / target).resolve())
    assert {path.resolve() for path in (ROOT / "docs" / "pictures").iterdir()} == shown
    tools = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "tools").glob("write_*pictures.py"))
    names = {path.stem.rpartition("-")[0] for path in shown}
    assert all(f'"{name}"' in tools for name in names)
    assert {path.stem for path in shown} == {f"{name}-{theme}" for name in names for theme in ("light", "dark")}


def test_every_magic_is_described():
    from tcompile_jupyter.displays import VIEWS
    from tcompile_jupyter.magics import COMMANDS, TcompileMagics
    from tcompile_jupyter.options import options

    text = (ROOT / "docs" / "notebooks.md").read_text(encoding="utf-8")
    for option in options(TcompileMagics.cell.parser):
        assert f"`{option}" in text, option
    for command in COMMANDS:
        assert f"`%tcompile {command}" in text or command == "status", command
    for view in VIEWS:
        assert f"| `{view.mime()}` |" in text


def test_every_log_is_described():
    text = (ROOT / "docs" / "debugging.md").read_text(encoding="utf-8")
    for name, what in ARTIFACTS.items():
        assert f"| `{name}` | {what} |" in text, name


@pytest.mark.parametrize("page", ["README.md", "docs/stances.md"])
def test_every_stance_is_described(page):
    text = (ROOT / page).read_text(encoding="utf-8")
    assert re.findall(r"^\| `(\w+)` \|", text, flags=re.MULTILINE) == list(STANCES)


@pytest.mark.parametrize("page", INTERNALS, ids=lambda page: page.stem)
def test_the_examples_of_internals_run(page):
    failed, ran = doctest.testfile(str(page), module_relative=False)
    assert not failed and bool(ran) == (">>> " in page.read_text(encoding="utf-8"))


@pytest.mark.parametrize("page", OF_CODE)
def test_files_that_are_named_exist(page):
    text = (ROOT / page).read_text(encoding="utf-8")
    for name in re.findall(r"`((?:tcompile|jupyter_ext|tools|notebooks|tests|benchmarks|docs)/[\w./]*)`", text):
        assert (ROOT / name).exists(), name


def test_the_tour_names_every_package():
    text = (ROOT / "docs" / "tour.md").read_text(encoding="utf-8")
    for folder in (ROOT / "tcompile").iterdir():
        if (folder / "__init__.py").exists():
            assert f"`tcompile/{folder.name}/`" in text, folder.name
