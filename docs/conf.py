"""How the site is built: Sphinx over docs/, the notebooks, CONTRIBUTING.md and CHANGELOG.md.

Input: the repository's root as the source folder, this folder as the configuration
(``sphinx-build -c docs . build/site``).
Output: HTML, and ``objects.inv`` for other projects' intersphinx.
Why: pages link to one another and to the notebooks as files do, so that they also work on a code host.
"""

from __future__ import annotations

import re
import shutil
import sys
import tomllib
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "jupyter_ext")]  # the reference is made from the modules themselves

project, author = "tcompile", "the authors of tcompile"
version = release = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
copyright = author

root_doc = "docs/index"
include_patterns = ["docs/**", "notebooks/*.ipynb", "CONTRIBUTING.md", "CHANGELOG.md", "benchmarks/**.md"]
exclude_patterns = [".git", ".venv*", ".*_cache", "build", "labextension", "**/.ipynb_checkpoints"]
extensions = ["myst_nb", "numpydoc", "sphinx.ext.autodoc", "sphinx.ext.autosummary"]

myst_enable_extensions = ["colon_fence"]
myst_heading_anchors = 4
nb_execution_mode = "off"

autosummary_generate = False  # the tables link to the entries below them
autodoc_typehints = "none"  # the signature is for people; numpydoc's sections state types
autodoc_member_order = "bysource"
numpydoc_show_class_members = False
numpydoc_xref_param_type = False

html_theme = "pydata_sphinx_theme"
html_title = "tcompile"
html_show_sourcelink = False
html_copy_source = False
html_theme_options = {
    "navbar_end": ["theme-switcher"],
    "secondary_sidebar_items": ["page-toc"],
    "show_nav_level": 2,
    "footer_start": ["copyright"],
    "footer_end": ["sphinx-version"],
}
html_static_path = ["_static"]
html_css_files = ["site.css"]


def prepare(app: Any, docname: str, source: list[str]) -> None:
    """Puts the pages that begin the rows of an index's tables below it, and ends examples without an empty line."""
    source[0] = re.sub(r"^(```pycon\n.*?)\n\n```$", r"\1\n```", source[0], flags=re.MULTILINE | re.DOTALL)
    if docname.startswith("benchmarks/"):  # reached by links alone
        source[0] = "---\norphan: true\n---\n" + source[0]
    rows = re.findall(r"^\| \[[^\]]+\]\(([^)#:]+)\) \|", source[0], flags=re.MULTILINE)
    if rows and (docname.endswith(("/index", "_guide"))):
        source[0] += "\n```{toctree}\n:hidden:\n\n" + "\n".join(rows) + "\n```\n"


def copy_pictures(app: Any, error: Exception | None) -> None:
    """Puts pictures where the pages' own HTML looks for them, and a way to the main page where a browser begins."""
    if error is None and app.builder.format == "html":
        out = Path(app.outdir)
        shutil.copytree(ROOT / "docs" / "pictures", out / "docs" / "pictures", dirs_exist_ok=True)
        (out / "index.html").write_text(
            '<meta http-equiv="refresh" content="0; url=docs/index.html">', encoding="utf-8"
        )


def setup(app: Any) -> None:
    """Connects both."""
    app.connect("source-read", prepare)
    app.connect("build-finished", copy_pictures)
