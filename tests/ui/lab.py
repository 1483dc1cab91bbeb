"""A JupyterLab with a browser.

Input: notebooks, as lists of cells.
Output: pages in which they have run, and pictures of these.
Why: tests check what a user sees. Needs the packages of the extra ``ui``, and a Chromium on the machine.
"""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import shutil
import socket
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import nbformat

from tests.ui.served import Served

THEMES = {"light": "JupyterLab Light", "dark": "JupyterLab Dark"}
_NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


def browser_path() -> str | None:
    """Returns the machine's Chromium; None if there is none. ``TCOMPILE_CHROMIUM`` names another."""
    named = os.environ.get("TCOMPILE_CHROMIUM")
    return named or next((path for name in _NAMES if (path := shutil.which(name))), None)


class Server(Served):
    """A JupyterLab of this Python's, in a folder of its own, with no settings of the user's."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "notebooks"
        self.settings = folder / "settings"
        self.folder.mkdir(parents=True)
        self.token = secrets.token_hex(16)
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self._set("@jupyterlab/apputils-extension/notification", {"fetchNews": "false", "checkForUpdates": False})
        self._set("@jupyterlab/docmanager-extension/plugin", {"autosave": False})
        self.theme("light")
        env = {
            **os.environ,
            "JUPYTER_CONFIG_DIR": str(folder / "config"),
            "JUPYTER_DATA_DIR": str(folder / "data"),
            "JUPYTER_RUNTIME_DIR": str(folder / "runtime"),
            "JUPYTERLAB_SETTINGS_DIR": str(self.settings),
            "JUPYTERLAB_WORKSPACES_DIR": str(folder / "workspaces"),
            "IPYTHONDIR": str(folder / "ipython"),
            "JUPYTER_PREFER_ENV_PATH": "1",
            "PYDEVD_DISABLE_FILE_VALIDATION": "1",
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        }
        options = {
            "ServerApp.port": self.port, "ServerApp.ip": "127.0.0.1", "ServerApp.open_browser": False,
            "IdentityProvider.token": self.token, "ServerApp.root_dir": str(self.folder),
            "ServerApp.allow_root": True, "ServerApp.log_level": "ERROR", "LabApp.extension_manager": "readonly",
            "LabApp.expose_app_in_browser": True, "JupyterNotebookApp.expose_app_in_browser": True,
        }  # fmt: skip
        command = [sys.executable, "-m", "jupyterlab", *(f"--{name}={value}" for name, value in options.items())]
        super().__init__(command, env, folder, f"http://127.0.0.1:{self.port}/api?token={self.token}")

    def _set(self, plugin: str, values: dict[str, Any]) -> None:
        path = self.settings / f"{plugin}.jupyterlab-settings"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(values), encoding="utf-8")

    def theme(self, name: str) -> None:
        """Makes pages opened from now on use the ``light`` or the ``dark`` theme."""
        self._set("@jupyterlab/apputils-extension/themes", {"theme": THEMES[name]})

    def write(self, notebook: nbformat.NotebookNode, name: str, at: str = "doc/tree") -> str:
        """Puts a notebook into the folder; returns the address of its page in the front end that is ``at`` a path."""
        nbformat.write(notebook, self.folder / name)
        return f"http://127.0.0.1:{self.port}/{at}/{name}?token={self.token}"

    def read(self, name: str) -> nbformat.NotebookNode:
        """A notebook as it was saved."""
        return nbformat.read(self.folder / name, as_version=4)


class Page:
    """A notebook in the browser."""

    def __init__(self, page: Any, server: Server, name: str, pictures: Path) -> None:
        self.page = page
        self.server = server
        self.name = name
        self.pictures = pictures
        self.errors: list[str] = []
        self.updates: list[bytes] = []  # what the kernel has told the widgets
        page.on("pageerror", self._failed)
        self.sent: list[bytes] = []  # what the page has told kernels
        self.logged: list[str] = []
        page.on("console", lambda message: self.logged.append(message.text))
        page.on("websocket", self._connected)

    def _failed(self, error: Any) -> None:
        """Ignores JupyterLab's own errors, as when a kernel ends during a request."""
        if "/extensions/tcompile/" in (error.stack or "/extensions/tcompile/"):
            self.errors.append(f"{error}\n{error.stack}")

    def _connected(self, socket: Any) -> None:
        socket.on("framereceived", self._received)
        socket.on("framesent", lambda frame: self.sent.append(_bytes(frame)))

    def _received(self, frame: Any) -> None:
        frame = _bytes(frame)
        if b"comm_msg" in frame and b"update" in frame:
            self.updates.append(frame)

    def command(self, name: str) -> None:
        """Runs a command of JupyterLab's."""
        self.page.evaluate("name => window.jupyterapp.commands.execute(name)", name)

    def ready(self) -> Page:
        """Waits until the notebook is there."""
        self.page.wait_for_selector(".jp-Notebook .jp-Cell", timeout=60_000)
        self.page.wait_for_function("() => !document.querySelector('#jupyterlab-splash, #galaxy')", timeout=60_000)
        return self

    def no_kernel(self) -> None:
        """Answers the dialog for a kernel, which a notebook without a kernel's name opens: none."""
        self.page.locator(".jp-Dialog-button.jp-mod-reject").click()

    def run(self, seconds: float = 60) -> Page:
        """Runs all cells, and waits until they have run."""
        self.page.wait_for_function(
            """() => {
                const session = window.jupyterapp.shell.currentWidget.sessionContext;
                return session.isReady && session.session?.kernel?.status === 'idle';
            }""",
            timeout=60_000,
        )
        self.command("notebook:run-all-cells")
        self.page.wait_for_function(
            """() => {
                const prompts = [...document.querySelectorAll('.jp-CodeCell .jp-InputArea-prompt')];
                return prompts.length && prompts.every(p => /[0-9]/.test(p.textContent));
            }""",
            timeout=seconds * 1000,
        )
        return self

    def python(self, code: str) -> None:
        """Runs code in the notebook's kernel, as another cell would."""
        self.page.evaluate(
            """async code => {
                const panel = window.jupyterapp.shell.currentWidget;
                const future = panel.sessionContext.session.kernel.requestExecute({ code, silent: false });
                const reply = await future.done;
                if (reply.content.status !== 'ok') throw new Error(reply.content.evalue);
            }""",
            code,
        )

    def save(self) -> nbformat.NotebookNode:
        """Saves the notebook, and returns what is in the file."""
        self.page.evaluate("() => window.jupyterapp.shell.currentWidget.context.save()")
        return self.server.read(self.name)

    def picture(self, name: str, selector: str = ".jp-Notebook") -> Path:
        """Keeps a picture of the page, or of a part of it."""
        self.pictures.mkdir(parents=True, exist_ok=True)
        path = self.pictures / f"{name}.png"
        self.page.locator(selector).first.screenshot(path=str(path))
        return path

    def __getattr__(self, name: str) -> Any:
        return getattr(self.page, name)


def _bytes(frame: Any) -> bytes:
    return frame if isinstance(frame, bytes) else str(frame).encode()


@contextlib.contextmanager
def opened(
    browser: Any,
    server: Server,
    cells: list[str],
    name: str,
    pictures: Path,
    *,
    kernel: str = "python3",
    notebook: nbformat.NotebookNode | None = None,
    height: int = 1000,
    at: str = "doc/tree",
) -> Iterator[Page]:
    """A page with a notebook of these cells, or with ``notebook`` itself."""
    if notebook is None:
        notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
    notebook.metadata = {"kernelspec": {"name": kernel, "display_name": kernel}}
    address = server.write(notebook, name, at)
    context = browser.new_context(viewport={"width": 1100, "height": height}, device_scale_factor=1)
    context.set_default_timeout(60_000)
    try:
        page = Page(context.new_page(), server, name, pictures)
        page.page.goto(address)
        yield page.ready()
    except Exception:
        pictures.mkdir(parents=True, exist_ok=True)
        page.page.screenshot(path=str(pictures / f"failed-{Path(name).stem}.png"))
        raise
    finally:
        with contextlib.suppress(Exception):
            page.page.evaluate("() => { window.jupyterapp.shell.currentWidget.sessionContext.shutdown(); }")
        context.close()
