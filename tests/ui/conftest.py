"""One JupyterLab and one browser for all tests of the page.

Input: the machine's browser and the extra ``ui``.
Output: fixtures.
Why: starting them takes longer than most tests. Without them the tests are skipped; with ``TCOMPILE_UI`` set, as in
continuous integration, that is an error.
"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

import pytest

PICTURES = Path(__file__).resolve().parent.parent.parent / "build" / "screenshots"


def _lacking() -> str:
    """Returns what these tests lack; "" if nothing."""
    for module in ("playwright", "jupyterlab", "ipywidgets", "anywidget", "plotly"):
        try:
            __import__(module)
        except ImportError:
            return f"the package {module} is not installed: pip install 'tcompile[ui]'"
    from tests.ui.lab import browser_path

    return "" if browser_path() else "there is no Chromium on this machine: apt-get install chromium"


@pytest.fixture(scope="session")
def server(tmp_path_factory):
    lacking = _lacking()
    if lacking and os.environ.get("TCOMPILE_UI"):
        pytest.fail(lacking)
    if lacking:
        pytest.skip(lacking)
    from tests.ui.lab import Server

    made = Server(tmp_path_factory.mktemp("lab"))
    yield made
    made.close()


@pytest.fixture(scope="session")
def browser(server):
    from playwright.sync_api import sync_playwright

    from tests.ui.lab import browser_path

    with sync_playwright() as playwright:
        made = playwright.chromium.launch(executable_path=browser_path(), args=["--no-sandbox", "--disable-gpu"])
        server.wait(60)
        yield made
        made.close()


@pytest.fixture(scope="session")
def extension(server):
    """Checks that the installed JupyterLab extension is this checkout's."""
    from jupyter_core.paths import jupyter_path

    built = Path(__file__).resolve().parent.parent.parent / "labextension" / "prebuilt" / "sources.json"
    found = [Path(folder) / "tcompile" / "sources.json" for folder in jupyter_path("labextensions")]
    held = next((path for path in found if path.exists()), None)
    if held is None or held.read_text() != built.read_text():
        pytest.fail("JupyterLab has another build of the extension, or none: pip install --editable .")


@pytest.fixture(scope="session")
def kept(browser, server, extension):
    """One page for many tests, since opening one takes longer than most of them."""
    from tests.ui.lab import opened

    server.theme("light")
    with opened(browser, server, ["pass"], "kept.ipynb", PICTURES) as page:
        yield page.run()


@pytest.fixture
def page(kept):
    """A notebook with a setup and a compiled function that breaks once; both have just run, in a kernel that is new."""
    from tests.ui.extension import FUNCTION, SETUP, fresh

    fresh(kept, [SETUP, FUNCTION])
    yield kept
    assert not kept.errors


@pytest.fixture
def lab(browser, server, request):
    """``with lab([cells]) as page``: a notebook in the page; ``theme`` is ``light`` or ``dark``."""
    from tests.ui.lab import opened

    made = iter(range(1000))

    @contextlib.contextmanager
    def open(cells=(), *, theme="light", **settings):
        server.theme(theme)
        name = f"{request.node.name.translate(str.maketrans('[]/', '---'))}-{next(made)}.ipynb"
        with opened(browser, server, list(cells), name, PICTURES, **settings) as page:
            yield page
            assert not page.errors

    return open
