"""``%tcompile watch``: a line under the cells that compiled something, and under no others."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree

import pytest

DEFINE = "import tcompile\n@tcompile.compile\ndef f(x):\n    return x + 1"


@pytest.fixture
def watched(notebook):
    notebook("%tcompile watch")
    yield notebook
    notebook("%tcompile watch off")


def test_a_line_under_a_cell_that_compiled(watched):
    assert not watched(DEFINE).reports
    (report,) = watched("f(np.ones(3))").reports
    assert report.data["text/plain"].startswith("tcompile  f: 1 graph")
    assert "\n" not in report.data["text/plain"]
    tree = ElementTree.fromstring(report.data["text/html"])
    (line,) = tree.findall("details/summary")  # which opens the report
    assert "1 graph" in "".join(line.itertext())
    assert report.data["application/vnd.tcompile.report+json"]["functions"][0]["name"] == "f"


def test_no_line_where_nothing_was_compiled(watched):
    watched(DEFINE)
    watched("f(np.ones(3))")
    assert not watched("f(np.ones(3))").displayed[1:]  # the value alone
    assert not watched("1 + 1").reports and not watched("").reports and not watched("1/0", fails=True).reports


def test_breaks_and_recompiles_are_counted(watched):
    watched("import tcompile\n@tcompile.compile\ndef g(x):\n    y = x + 1\n    print(end='')\n    return y * 2")
    (report,) = watched("g(np.ones(3))").reports
    assert "1 graph break" in report.data["text/plain"]
    (report,) = watched("g(np.ones(4))").reports
    assert "recompile" in report.data["text/plain"]


def test_a_cell_with_the_magic_has_its_own_report(watched):
    (report,) = watched("%%tcompile\ndef h(x):\n    return x * 3\nh(np.ones(2))").reports
    assert "\n" in report.data["text/plain"]
    assert not watched("%%tcompile --quiet\ndef h(x):\n    return x * 4\nh(np.ones(2))").reports


def test_loading_again_says_that_it_ends_it(watched):
    assert "no longer watching" in watched("%reload_ext tcompile").stdout
    assert "nothing more" not in watched("%reload_ext tcompile").stdout


def test_twice_is_as_once_and_off_ends_it(watched):
    watched("%tcompile watch on")
    watched(DEFINE)
    assert len(watched("f(np.ones(3))").reports) == 1
    assert "no longer watching" in watched("%tcompile watch off").stdout
    assert not watched("f(np.ones(4))").reports
    ran = watched("%tcompile watch of", fails=True)
    assert "Did you mean 'off'" in ran.stderr


def test_unloading_ends_it(watched):
    watched("%unload_ext tcompile")
    try:
        watched(DEFINE)
        assert not watched("f(np.ones(3))").reports
    finally:
        watched("%load_ext tcompile")
