"""The site builds without a warning and without a network, and has every public name.

Input: docs/, the notebooks, the docstrings. Output: an AssertionError, or what Sphinx complains of.
Why: a link that leads nowhere and a docstring that is no numpydoc are seen here, before a reader sees them.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("sphinx", reason="the site needs tcompile[docs]")
pytest.importorskip("myst_nb")
pytest.importorskip("numpydoc")
pytest.importorskip("pydata_sphinx_theme")

import tcompile_jupyter
from sphinx.util.inventory import InventoryFile

import tcompile

ROOT = Path(__file__).resolve().parent.parent
# Objects of the module, which stand under their classes.
OBJECTS = {
    "config": "tcompile.config.Config", "memory": "tcompile.backends.memory_pool.MemoryPool",
    "cache": "tcompile.backends.disk.DiskCache", "custom_vjp": "tcompile.annotations.custom_rules.custom_vjp",
    "custom_jvp": "tcompile.annotations.custom_rules.custom_jvp",
}  # fmt: skip


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The site, built as ``make docs`` builds it; proxies that lead nowhere stand for a missing network."""
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", "-b", "html", "-c", "docs"]
    offline = {**os.environ, **dict.fromkeys(("http_proxy", "https_proxy"), "http://127.0.0.1:9")}
    done = subprocess.run(
        [*command, "-d", str(folder / "trees"), ".", str(folder / "html")],
        cwd=ROOT, env=offline, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return folder / "html"


def test_every_public_name_is_in_the_inventory(site):
    with (site / "objects.inv").open("rb") as file:
        inventory = InventoryFile.load(file, "", lambda base, path: path)
    known = {name for kind, names in inventory.items() if kind.startswith("py:") for name in names}
    wanted = {OBJECTS.get(name, f"tcompile.{name}") for name in tcompile.__all__}
    wanted |= {f"tcompile_jupyter.{name}" for name in tcompile_jupyter.__all__}
    assert not wanted - known


def test_pages_load_nothing_from_elsewhere(site):
    pages = [page for page in sorted(site.rglob("*.html")) if "_static" not in page.parts]  # the theme's templates
    assert {"index.html", "docs/index.html", "notebooks/quickstart.html"} <= {
        page.relative_to(site).as_posix() for page in pages
    }
    for page in pages:
        text = page.read_text(encoding="utf-8")
        loaded = re.findall(r'<(?:script|img|source)\b[^>]*\bsrc(?:set)?="([^"]+)"', text)
        loaded += re.findall(r'<link\b[^>]*\brel="(?:stylesheet|preload)"[^>]*\bhref="([^"]+)"', text)
        for target in loaded:
            assert not re.match(r"(https?:)?//", target), (page, target)
            if not target.startswith("data:"):
                assert (page.parent / target.partition("?")[0]).exists(), (page, target)
